#include "config/schema.h"
#include "systems/infer.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/infer/infer_data.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "store/folder.h"
#include "systems/files.h"

/* ---- what the model takes: from its graph, or from the plan ---- */

/* Index of the name in the face, GIVEN, or −1. */
enum { GIVEN = 255 };

static int number_of(const pl_face *face, const char *name)
{
    if (face->given.value && strcmp(face->given.as.name, name) == 0) return GIVEN;
    for (int k = 0; k < PL_FACE_IN_MAX && face->in[k].name; k++)
        if (strcmp(face->in[k].name, name) == 0) return k;
    return -1;
}

static const char *name_of(const pl_face *face, uint64_t number)
{
    if (number == GIVEN) return face->given.as.name;
    return number < PL_FACE_IN_MAX && face->in[number].name ? face->in[number].name : "";
}

static bool is_read_as_picture(const pl_graph *g, pl_id id)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_PATCHES && pl_value_root(g, g->node[i].patches.image) == id) return true;
    return false;
}

static pl_status see_port(const pl_graph *g, pl_id id, pl_infer_port *p, pl_error *err)
{
    const pl_value *v = &g->value[id];
    const char *dot = strchr(v->name, '.');
    *p = (pl_infer_port){.dtype = v->dtype, .rank = v->shape.rank - 1, .picture = is_read_as_picture(g, id)};
    snprintf(p->name, sizeof p->name, "%s", dot ? dot + 1 : v->name);
    const bool fine = v->shape.rank >= 2 && p->rank <= PL_INFER_RANK_MAX && v->shape.symbolic == 1 &&
                      v->shape.dim[0] == 1 && (v->dtype == PL_DTYPE_F32 || v->dtype == PL_DTYPE_I32);
    if (!fine) return pl_fail(err, PL_E_UNSUPPORTED, "%s of this model cannot be read from files", p->name);
    for (uint32_t i = 0; i < p->rank; i++) p->dim[i] = (uint64_t)v->shape.dim[i + 1];
    if (v->dtype == PL_DTYPE_I32) (void)pl_graph_find_id_limit(g, id, &p->below);
    return PL_OK;
}

static pl_status see_ports(const pl_graph *g, pl_infer_setup *s, pl_error *err)
{
    const pl_id program = pl_graph_find_program(g, PL_INFER_PROGRAM);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_LOAD || pl_region_program(g, n->region) != program) continue;
        for (int k = 0; k < PL_NODE_OUT_MAX && n->out[k] != PL_NONE; k++)
            if (!pl_is_sample_number(&g->value[n->out[k]]) && s->ports < PL_INFER_PORTS_MAX)
                PL_TRY(see_port(g, n->out[k], &s->port[s->ports++], err));
    }
    return s->ports ? PL_OK : pl_fail(err, PL_E_UNSUPPORTED, "this model takes nothing that files could bring");
}

/* ---- as facts ---- */

static const char *fact_name(uint32_t k, const char *end, char name[PL_FACT_NAME_BYTES])
{
    snprintf(name, PL_FACT_NAME_BYTES, "in%u%s", k, end);
    return name;
}

static pl_status tell_ports(const pl_face *face, const pl_infer_setup *s, pl_facts *to, pl_error *err)
{
    char name[PL_FACT_NAME_BYTES];
    bool fits = true;
    for (uint32_t k = 0; k < s->ports; k++) {
        const pl_infer_port *p = &s->port[k];
        const uint64_t number = (uint64_t)number_of(face, p->name) & 255;
        const uint64_t what = (uint64_t)p->dtype | (uint64_t)p->picture << 8 | (uint64_t)p->rank << 16 | number << 24 |
                              (uint64_t)p->below << 32;
        fits = fits && pl_facts_add(to, fact_name(k, "", name), what) &&
               pl_facts_add(to, fact_name(k, "_a", name), p->dim[0] | p->dim[1] << 32) &&
               (p->rank <= 2 || pl_facts_add(to, fact_name(k, "_b", name), p->dim[2] | p->dim[3] << 32));
    }
    return fits ? PL_OK : pl_fail(err, PL_E_INTERNAL, "no room to tell the model's inputs in a plan");
}

static pl_status read_ports(const pl_face *face, const pl_facts *from, pl_infer_setup *s, pl_error *err)
{
    char name[PL_FACT_NAME_BYTES];
    for (uint64_t what; s->ports < PL_INFER_PORTS_MAX; s->ports++) {
        pl_infer_port *p = &s->port[s->ports];
        what = pl_facts_value(from, fact_name(s->ports, "", name), UINT64_MAX);
        if (what == UINT64_MAX) break;
        const uint64_t a = pl_facts_value(from, fact_name(s->ports, "_a", name), 0),
                       b = pl_facts_value(from, fact_name(s->ports, "_b", name), 0);
        *p = (pl_infer_port){.dtype = (pl_dtype)(what & 255),
                             .picture = what >> 8 & 1,
                             .rank = what >> 16 & 255,
                             .dim = {a & UINT32_MAX, a >> 32, b & UINT32_MAX, b >> 32},
                             .below = (int64_t)(what >> 32)};
        snprintf(p->name, sizeof p->name, "%s", name_of(face, what >> 24 & 255));
        if (p->rank < 1 || p->rank > PL_INFER_RANK_MAX || !p->name[0])
            return pl_fail(err, PL_E_DATA, "the plan is of another model; plan again");
    }
    return s->ports ? PL_OK : pl_fail(err, PL_E_DATA, "the plan tells no inputs of the model; plan again");
}

/* ---- inputs are not overwritten ---- */

/* A file is first written under another name. */
static pl_status check_pair(const char *read, const char *as, const char *written, pl_error *err)
{
    char first[PL_FILE_TEMPORARY_MAX];
    if (strlen(written) >= PL_FILE_PATH_MAX) return PL_OK; /* nothing is written there */
    pl_file_temporary(written, "", first);
    if (!pl_files_are_one(read, written) && !pl_files_are_one(read, first)) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%.300s is read as %s, and the results would be written over it: they are the same file; "
                   "choose another name",
                   read, as);
}

static pl_status check_lists(const char *lists, const char *written, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    for (const char *end; (end = strchr(lists, '\n')); lists = end + 1) {
        snprintf(path, sizeof path, "%.*s", (int)(end - lists), lists);
        PL_TRY(check_pair(path, "a list of files", written, err));
    }
    return PL_OK;
}

/* Against all inputs, lists and weights. */
static pl_status check_apart(const pl_infer_data *d, const char *written, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const char *dataset;
    for (uint64_t n = 0; n < d->names.count; n++) {
        PL_TRY(pl_rows_split(d->names.name[n].path, path, &dataset, err));
        PL_TRY(check_pair(path, d->setup.port[d->names.name[n].port].name, written, err));
    }
    PL_TRY(check_lists(pl_str_text(&d->names.lists), written, err));
    return d->data.weights ? check_pair(d->data.weights, "weights", written, err) : PL_OK;
}

static pl_status check_results(const pl_infer_data *d, const char *written, pl_error *err)
{
    PL_TRY(check_apart(d, written, err));
    return pl_file_check_free(written, NULL, err);
}

static pl_status check_array(const pl_infer_data *d, const pl_face_port *as, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (!as->name) return PL_OK;
    const int n = snprintf(path, sizeof path, "%s.%s.npy", d->setup.arrays, as->name);
    if (n < 0 || (size_t)n >= sizeof path)
        return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", d->setup.arrays);
    return check_results(d, path, err);
}

static pl_status check_written(const pl_infer_data *d, const pl_face *face, pl_error *err)
{
    if (d->setup.to) PL_TRY(check_results(d, d->setup.to, err));
    for (int k = 0; k < PL_FACE_STORED_MAX && d->setup.arrays; k++) PL_TRY(check_array(d, &face->stored[k], err));
    for (int k = 0; k < PL_FACE_SCORED_MAX && d->setup.arrays; k++) PL_TRY(check_array(d, &face->scored[k], err));
    return PL_OK;
}

/* The file of 8-bit weights that a calibration makes. */
static pl_status check_quantized(const pl_config *c, const pl_infer_data *d, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_system_find_quantized(c, path, err));
    return check_apart(d, path, err);
}

/* ---- which commands ---- */

const char *pl_system_files(const pl_config *c, pl_command command)
{
    if (pl_command_does(command, PL_USES_FILES)) return c->infer.files;
    const bool calibrates = pl_command_does(command, PL_USES_CALIBRATION) && c->quantization.files[0];
    return calibrates ? c->quantization.files : NULL;
}

bool pl_system_is_seeded(const pl_config *c, pl_command command)
{
    return pl_command_does(command, PL_USES_FILES) && c->infer.seeded;
}

/* ---- opening ---- */

/* The machine's folder for large temporary files; /tmp is often in memory. */
static const char SCRATCH[] = "/var/tmp";

const char *pl_system_scratch(const pl_config *c) { return c->infer.scratch[0] ? c->infer.scratch : SCRATCH; }

static void read_how(const pl_config *c, pl_command command, pl_infer_setup *s)
{
    const pl_config_infer *i = &c->infer;
    s->batch = i->batch == PL_CONFIG_AUTO ? 0 : (uint64_t)i->batch;
    s->latency = i->latency;
    s->brief = i->brief;
    s->say = pl_dataset_of(c, command)->say_inferred;
    s->to = i->to[0] ? i->to : NULL;
    s->arrays = i->npy[0] ? i->npy : NULL;
}

/* The option's value; the config's is about the texts that were trained on. NULL: the option was not given. */
static const void *read_option(const pl_config *c, const char *option)
{
    pl_config_key_set keys;
    const size_t count = pl_config_keys_of_option(option, keys);
    for (size_t i = 0; i < count; i++)
        if (pl_config_is_used(c, keys[i]) && pl_config_is_option(c, keys[i]->path))
            return pl_config_value_of(c, keys[i]);
    return NULL;
}

static pl_texts_form read_form(const pl_config *c)
{
    pl_config_text_format format = PL_CONFIG_TEXTS_AUTO;
    const void *given = read_option(c, "text_format");
    if (given) memcpy(&format, given, sizeof format);
    if (format == PL_CONFIG_TEXTS_AUTO || format == PL_CONFIG_TEXTS_GRAMMAR) return PL_TEXTS_AUTO_LINES;
    return format == PL_CONFIG_TEXTS_FOLDER ? PL_TEXTS_WHOLE : (pl_texts_form)(format - 1);
}

static const char *read_key(const pl_config *c)
{
    const char *key = read_option(c, "text_key");
    return key && key[0] ? key : NULL;
}

static pl_status read_setup(const pl_config *c, pl_command command, const pl_graph *faced, const pl_facts *planned,
                            pl_infer_setup *s, pl_error *err)
{
    *s = (pl_infer_setup){.files = pl_system_files(c, command),
                          .scratch = pl_system_scratch(c),
                          .staged = planned ? pl_facts_value(planned, PL_FACT_STAGED, 0) : 0,
                          .batch = 1, /* a calibration's */
                          .looks = faced != NULL};
    if (pl_command_does(command, PL_USES_FILES)) read_how(c, command, s);
    s->scratch_is_memory = s->looks && pl_disk_is_memory(s->scratch);
    return faced ? see_ports(faced, s, err) : read_ports(&pl_model_family(c)->face, planned, s, err);
}

static pl_status finish(const pl_config *c, pl_command command, pl_infer_data *d, pl_error *err)
{
    const pl_face *face = &pl_model_family(c)->face;
    const bool calibrates = pl_command_does(command, PL_USES_CALIBRATION);
    PL_TRY(tell_ports(face, &d->setup, &d->data.identity, err));
    if (d->setup.looks) PL_TRY(calibrates ? check_quantized(c, d, err) : check_written(d, face, err));
    return calibrates ? pl_system_plan_calibration(c, &d->data, err) : PL_OK;
}

pl_status pl_system_take_files(const pl_config *c, pl_command command, pl_data *of, const pl_graph *faced,
                               const pl_facts *planned, const pl_staging_told *told, pl_data **data, pl_error *err)
{
    pl_infer_data *d = NULL;
    pl_infer_setup s;
    pl_status status = read_setup(c, command, faced, planned, &s, err);
    if (status != PL_OK) return pl_data_close(of), status;
    s.told = told;
    const pl_dataset *dataset = pl_dataset_of(c, command);
    for (uint32_t k = 0; k < s.ports; k++) {
        s.port[k].kind = dataset->rows, s.port[k].of = of;
        s.port[k].form = read_form(c), s.port[k].key = read_key(c);
        if (dataset->scale_input) dataset->scale_input(c, of, &s.port[k]);
    }
    PL_TRY(pl_infer_data_open(&s, of, &d, err));
    status = finish(c, command, d, err);
    if (status != PL_OK) return pl_data_close(&d->data), status;
    *data = &d->data;
    return PL_OK;
}

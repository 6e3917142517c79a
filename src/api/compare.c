/* A model in each form beside each other: how a config means a form, what of its work signs could do, and what is heard
 * of the processes that run it. */
#include "plimsoll/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "base/alloc.h"
#include "config/schema.h"
#include "ir/properties.h"
#include "rewrite/rewrite.h"
#include "store/safetensors.h"
#include "systems/files.h"

static const char *const names[] = {"f32", "bf16", "int8", "binary"};
_Static_assert((int)PL_VARIANTS == (int)PL_COMPARE_ROWS, "a row for each");
_Static_assert((int)PL_COMPARE_TURNS_MAX == (int)PL_COMPARE_TURNS, "each turn has its place");

const char *pl_variant_name(pl_variant v) { return names[v]; }

/* ---- the keys that say a form ---- */

static pl_status set(pl_config *c, const char *key, const char *value, pl_error *err)
{
    return pl_config_set(c, key, value, "the comparison", err);
}

/* The key that --weights sets in this config; NULL: its models are given none. */
static const pl_config_key *weights_key(const pl_config *c)
{
    for (const pl_config_key *k = pl_config_keys; k < PL_CONFIG_KEYS_END; k++)
        if (pl_config_has_option(k, "weights") && pl_config_is_used(c, k) && !pl_config_is_meant_for_another(c, k))
            return k;
    return NULL;
}

static const char *arch_of(const pl_config *c)
{
    const pl_config_key *key = pl_config_find("model.arch");
    return key->names[c->model.arch];
}

static pl_status set_weights(const pl_compare *p, pl_config *c, const char *file, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (!p->weights) return PL_OK;
    const int n = file ? snprintf(path, sizeof path, "%s/%s.safetensors", p->folder, file) : snprintf(path, 8, "none");
    if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", p->folder);
    return set(c, p->weights->path, path, err);
}

/* What the words of infer say is of other runs. */
static pl_status forget_files(pl_config *c, pl_error *err)
{
    static const char *const plain[][2] = {
        {"infer.files", ""},      {"infer.to", "none"},      {"infer.npy", "none"},  {"infer.latency", "false"},
        {"infer.brief", "false"}, {"infer.seeded", "false"}, {"infer.batch", "auto"}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) PL_TRY(set(c, plain[i][0], plain[i][1], err));
    return PL_OK;
}

static pl_status set_form(const pl_compare *p, pl_variant v, pl_config *c, pl_error *err)
{
    const pl_narrow_way *narrow = &pl_system_of(c)->narrow;
    if (narrow->key) PL_TRY(set(c, narrow->key, v == PL_VARIANT_BF16 ? narrow->narrow : narrow->wide, err));
    if (p->report.is_binary && v == PL_VARIANT_F32) PL_TRY(set(c, "model.binary", "none", err));
    return PL_OK;
}

static pl_status set_made(const pl_compare *p, pl_variant v, pl_config *c, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(set_form(p, v, c, err));
    PL_TRY(set_weights(p, c, p->by[v] == PL_COMPARE_BY_SEEDED ? NULL : "base", err));
    if (p->by[v] != PL_COMPARE_BY_QUANTIZE) return PL_OK;
    const int n = snprintf(path, sizeof path, "%s/%s.safetensors", p->folder, names[v]);
    if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", p->folder);
    return set(c, "quantization.output", path, err);
}

static pl_status set_run(const pl_compare *p, pl_variant v, pl_config *c, pl_error *err)
{
    PL_TRY(set_form(p, v, c, err));
    return set_weights(p, c, pl_compare_is_base(p, v) ? "base" : names[v], err);
}

static pl_status set_step(const pl_compare *p, pl_variant v, pl_compare_step step, pl_config *c, pl_error *err)
{
    PL_TRY(forget_files(c, err));
    if (step != PL_COMPARE_RUN) PL_TRY(set(c, "memory.budget", "none", err)); /* it is of what is compared */
    if (step == PL_COMPARE_MAKE) return set_made(p, v, c, err);
    if (step != PL_COMPARE_BASE) return set_run(p, v, c, err);
    return p->report.is_binary ? PL_OK : set_form(p, PL_VARIANT_F32, c, err);
}

pl_status pl_compare_config(const pl_compare *p, pl_variant v, pl_compare_step step, char **text, size_t *bytes,
                            pl_error *err)
{
    pl_config *c = pl_config_copy(p->config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = set_step(p, v, step, c, err);
    if (status == PL_OK) status = pl_config_text(c, PL_CONFIG_YAML, text, bytes, err);
    pl_config_destroy(c);
    return status;
}

/* ---- which forms there are ---- */

static void refuse(pl_compare *p, pl_variant v, const char *format, const char *arch)
{
    p->report.row[v].why[0] = 0;
    pl_str s = pl_str_fixed(p->report.row[v].why, sizeof p->report.row[v].why);
    pl_str_printf(&s, "arch %s ", arch);
    pl_str_append(&s, format);
}

static void remark(pl_compare *p, pl_variant v, const char *text)
{
    snprintf(p->report.row[v].remark, sizeof p->report.row[v].remark, "%s", text);
}

/* Where there is nothing to judge by, what comes out is held against what comes of f32. */
static void find_judged(pl_compare *p)
{
    char text[PL_COMPARE_NAME + 160];
    const bool judges = pl_system_of(p->config)->job[PL_COMMAND_EVALUATE] != NULL;
    snprintf(text, sizeof text,
             "arch %s has no command eval, since nobody knows what is right; how near to f32 is what comes out stands "
             "above",
             p->report.arch);
    for (int v = 0; v < PL_VARIANTS; v++)
        if (pl_compare_runs(p, (pl_variant)v) && !judges) pl_compare_refuse_judged(p, (pl_variant)v, text);
    if (judges && p->report.is_binary)
        pl_compare_refuse_judged(p, PL_VARIANT_F32, "its weights are first values, which were not trained");
}

static void find_forms(pl_compare *p)
{
    const pl_system *y = pl_system_of(p->config);
    const char *arch = p->report.arch;
    const bool binary = p->report.is_binary, can = p->report.possible_flops >= 0;
    p->by[PL_VARIANT_F32] = binary ? PL_COMPARE_BY_SEEDED : PL_COMPARE_BY_EXPORT;
    p->by[PL_VARIANT_INT8] = PL_COMPARE_BY_QUANTIZE;
    p->by[PL_VARIANT_BINARY] = PL_COMPARE_BY_PACKED;
    if (binary)
        remark(p, PL_VARIANT_F32,
               "the same sizes with model.binary none and first values, for the time and the "
               "bytes: what was trained multiplies signs");
    if (!y->narrow.key)
        refuse(p, PL_VARIANT_BF16,
               "runs in f32, whatever it was trained in: no key of a config has infer, eval or "
               "generate store its numbers in 16 bits (train.mixed_precision is of trainings)",
               arch);
    else if (binary)
        refuse(p, PL_VARIANT_BF16, "has nothing in 16 bits beside layers of signs (docs/binary.md)", arch);
    else if (y->narrow.remark)
        remark(p, PL_VARIANT_BF16, y->narrow.remark);
    if (!y->job[PL_COMMAND_QUANTIZE]) refuse(p, PL_VARIANT_INT8, "has no command quantize: no weights in 8 bits", arch);
    if (binary) remark(p, PL_VARIANT_INT8, "layers of signs stay as they were trained, the others are in 8 bits");
    if (!can)
        refuse(p, PL_VARIANT_BINARY, "has no layers of signs (model.binary)", arch);
    else if (!binary)
        refuse(p, PL_VARIANT_BINARY,
               "can have layers of signs, and this model has none: they come of a training of its "
               "own with model.binary: blocks, which is another model",
               arch);
}

/* ---- what signs could do of its work ---- */

static pl_status count_work(const pl_config *c, const pl_facts *extents, pl_work_share *share, pl_error *err)
{
    pl_graph *g = NULL;
    const pl_status status = pl_build_graph(c, PL_COMMAND_INFER, extents, &g, err);
    if (status == PL_OK) *share = pl_program_binary_share(g, pl_graph_find_program(g, PL_INFER_PROGRAM));
    pl_graph_destroy(g); /* what was built before it failed, too */
    return status;
}

static pl_status count_possible(pl_compare *p, pl_error *err)
{
    pl_work_share share = {0};
    p->report.possible_flops = -1;
    if (!pl_config_is_used(p->config, pl_config_find("model.binary"))) return PL_OK;
    pl_config *c = pl_config_copy(p->config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = set(c, "model.binary", "blocks", err);
    if (status == PL_OK) status = count_work(c, &p->data->extents, &share, err);
    pl_config_destroy(c);
    if (status == PL_OK) p->report.possible_flops = share.binary_flops;
    return status;
}

static pl_status look_at_work(pl_compare *p, pl_error *err)
{
    pl_work_share share;
    PL_TRY(pl_open_data(p->config, PL_COMMAND_INFER, PL_DATA_FOR_RUN, NULL, &p->data, err));
    PL_TRY(count_work(p->config, &p->data->extents, &share, err));
    p->report.flops = share.flops;
    p->report.binary_flops = share.binary_flops;
    p->report.is_binary = share.binary_flops > 0;
    return count_possible(p, err);
}

/* ---- opening ---- */

/* What a comparison does by itself, for each form anew. */
static const pl_config_key *find_own(const pl_config *c)
{
    static const char *const own[] = {"infer.files", "infer.to",     "infer.npy",          "infer.latency",
                                      "infer.brief", "infer.seeded", "quantization.output"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const pl_config_key *key = pl_config_find(own[i]);
        if (pl_config_origin_at(c, key)->level == PL_CONFIG_FROM_COMMAND_LINE) return key;
    }
    return NULL;
}

pl_status pl_compare_check_options(const pl_config *c, pl_error *err)
{
    static const pl_config_reader readers = 1 << PL_COMMAND_INFER | 1 << PL_COMMAND_QUANTIZE | 1 << PL_COMMAND_EVALUATE;
    const pl_config_key *own = find_own(c);
    if (!own) return pl_config_check_options(c, readers, err);
    return pl_fail(err, PL_E_USAGE, "%s: a comparison sets %s by itself, for each form anew; take it away",
                   pl_config_origin_at(c, own)->by, own->path);
}

/* From such a file there is no way back to f32. */
static pl_status check_weights(const pl_compare *p, pl_error *err)
{
    pl_safetensors *file;
    const char *path = p->weights ? pl_config_path_at(p->config, p->weights) : "";
    if (!path[0]) return PL_OK;
    PL_TRY(pl_safetensors_open(path, &file, err));
    const char *format = pl_safetensors_metadata(file, "format");
    const bool packed = format && strncmp(format, "plimsoll.", 9) == 0;
    pl_safetensors_destroy(file);
    if (!packed) return PL_OK;
    return pl_fail(
        err, PL_E_USAGE,
        "%s: holds weights that are packed already, and what they were made of is not in it; leave %s out, or "
        "name weights in f32: a comparison packs them itself",
        path, p->weights->path);
}

static pl_status copy_texts(pl_compare *p, const pl_compare_options *o, pl_error *err)
{
    p->title = pl_strdup(o->title);
    p->folder = pl_strdup(o->folder);
    return p->title && p->folder ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for a comparison");
}

static void begin_report(pl_compare *p, const pl_compare_options *o)
{
    pl_report_compare *r = &p->report;
    r->title = p->title;
    r->arch = arch_of(p->config);
    r->sample = pl_system_words(p->config)->sample;
    r->turns = o->turns;
    for (int v = 0; v < PL_VARIANTS; v++) {
        r->row[v].name = names[v];
        r->row[v].runs[0].batch = 1;
        r->row[v].runs[1].batch = o->batch;
    }
}

static pl_status open_compare(pl_compare *p, const pl_config *config, const pl_compare_options *o, pl_error *err)
{
    PL_TRY(copy_texts(p, o, err));
    p->config = pl_config_copy(config);
    if (!p->config) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    if (o->turns < 1 || o->turns > PL_COMPARE_TURNS_MAX)
        return pl_fail(err, PL_E_USAGE, "%u turns; 1 to %d were expected", o->turns, (int)PL_COMPARE_TURNS_MAX);
    PL_TRY(pl_system_require(config, PL_COMMAND_INFER, err));
    p->weights = weights_key(p->config);
    PL_TRY(check_weights(p, err));
    PL_TRY(forget_files(p->config, err));
    begin_report(p, o);
    PL_TRY(look_at_work(p, err));
    find_forms(p);
    find_judged(p);
    return PL_OK;
}

pl_status pl_compare_create(const pl_config *config, const pl_compare_options *o, pl_compare **compare, pl_error *err)
{
    *compare = NULL;
    if (o->page) PL_TRY(pl_file_check_free(o->page, NULL, err));
    pl_compare *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory for a comparison");
    pl_status status = open_compare(p, config, o, err);
    if (status != PL_OK) return pl_compare_destroy(p), status;
    *compare = p;
    return PL_OK;
}

void pl_compare_destroy(pl_compare *p)
{
    if (!p) return;
    pl_data_close(p->data);
    pl_config_destroy(p->config);
    pl_free(p->title);
    pl_free(p->folder);
    pl_free(p);
}

bool pl_compare_runs(const pl_compare *p, pl_variant v) { return p->report.row[v].why[0] == 0; }
pl_compare_maker pl_compare_made_by(const pl_compare *p, pl_variant v) { return p->by[v]; }

bool pl_compare_is_base(const pl_compare *p, pl_variant v)
{
    return v == PL_VARIANT_F32 && p->by[v] == PL_COMPARE_BY_EXPORT;
}

bool pl_compare_judges(const pl_compare *p, pl_variant v)
{
    return pl_system_of(p->config)->job[PL_COMMAND_EVALUATE] && pl_compare_runs(p, v) &&
           p->by[v] != PL_COMPARE_BY_SEEDED;
}

/* ---- inputs ---- */

static pl_status list_inputs(const pl_compare *p, char **files, pl_error *err)
{
    pl_str s = {0};
    size_t bytes;
    const pl_infer_data *d = pl_infer_data_of(p->data);
    for (uint32_t k = 0; k < d->setup.ports; k++)
        pl_str_printf(&s, "%s%s=%s/input.%s.npy", k ? "\n" : "", d->setup.port[k].name, p->folder,
                      d->setup.port[k].name);
    return pl_give_text(&s, files, &bytes, err);
}

pl_status pl_compare_make_inputs(pl_compare *p, uint64_t items, char **files, pl_error *err)
{
    char prefix[PL_FILE_PATH_MAX], said[PL_INPUTS_SAID_BYTES];
    *files = NULL;
    PL_TRY(pl_path_join(prefix, sizeof prefix, p->folder, "input", err));
    PL_TRY(pl_system_write_inputs(p->config, pl_infer_data_of(p->data), items, prefix, said, err));
    pl_compare_name_inputs(p, said);
    return list_inputs(p, files, err);
}

void pl_compare_name_inputs(pl_compare *p, const char *words)
{
    snprintf(p->report.inputs, sizeof p->report.inputs, "%s", words);
}

/* ---- as text ---- */

pl_status pl_compare_text(const pl_compare *p, pl_compare_form form, unsigned columns, char **text, size_t *bytes,
                          pl_error *err)
{
    pl_str s = {0};
    if (form == PL_COMPARE_REPORT)
        pl_report_compare_text(&p->report, columns ? columns : 80, &s);
    else if (form == PL_COMPARE_JSON)
        pl_report_compare_json(&p->report, &s);
    else
        pl_report_compare_html(&p->report, &s);
    return pl_give_text(&s, text, bytes, err);
}

/* The forms of a model side by side: opened, asked, shown. */
#include "plimsoll/compare.h"

#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "base/alloc.h"
#include "config/schema.h"
#include "store/safetensors.h"
#include "systems/files.h"

static const char *const trained[PL_VARIANTS] = {"f32", "bf16", "int8", "binary"};
_Static_assert((int)PL_COMPARE_FORMS_MAX == (int)PL_COMPARE_ROWS_MAX, "a row for each");
_Static_assert((int)PL_COMPARE_TURNS_MAX == (int)PL_COMPARE_TURNS, "each turn has its place");

int pl_compare_count(const pl_compare *p) { return p->report.rows; }
const char *pl_compare_name(const pl_compare *p, int v) { return p->report.row[v].name; }

/* ---- opening ---- */

static const char *arch_of(const pl_config *c)
{
    const pl_config_key *key = pl_config_find("model.arch");
    return key->names[c->model.arch];
}

/* Such a file cannot be turned back into f32. */
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
    r->rows = p->encoding ? PL_COMPARE_FORMS_MAX : PL_VARIANTS;
    for (int v = 0; v < r->rows; v++) {
        r->row[v].name = p->encoding ? pl_compare_pretrained_forms[v].name : trained[v];
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
    p->weights = pl_compare_weights_key(p->config);
    p->encoding = pl_config_find_for(p->config, "<encoding>");
    PL_TRY(check_weights(p, err));
    PL_TRY(pl_compare_forget_files(p->config, err));
    begin_report(p, o);
    return pl_compare_find_forms(p, err);
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

bool pl_compare_runs(const pl_compare *p, int v) { return p->report.row[v].why[0] == 0; }
pl_compare_maker pl_compare_made_by(const pl_compare *p, int v) { return p->by[v]; }

bool pl_compare_is_base(const pl_compare *p, int v)
{
    return p->by[v] == PL_COMPARE_BY_KEY || (v == 0 && p->by[v] == PL_COMPARE_BY_EXPORT);
}

bool pl_compare_judges(const pl_compare *p, int v)
{
    return pl_task_of(p->config)->job[PL_COMMAND_EVALUATE] && pl_compare_runs(p, v) && p->by[v] != PL_COMPARE_BY_SEEDED;
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
    static const pl_doc_form forms[] = {
        [PL_COMPARE_REPORT] = PL_FORM_TEXT, [PL_COMPARE_JSON] = PL_FORM_JSON, [PL_COMPARE_HTML] = PL_FORM_PAGE};
    pl_str s = {0};
    pl_report_compare_write(&p->report, forms[form], columns, &s);
    return pl_give_text(&s, text, bytes, err);
}

/* What processes told that ran a form of a model, judged it, or could not. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "base/json_read.h"

/* ---- refused ---- */

static void keep(char to[PL_COMPARE_SENTENCE], const char *why) { snprintf(to, PL_COMPARE_SENTENCE, "%s", why); }

void pl_compare_refuse(pl_compare *p, int v, const char *why)
{
    keep(p->report.row[v].why, why);
    p->report.row[v].remark[0] = p->report.row[v].not_judged[0] = 0;
}

void pl_compare_refuse_run(pl_compare *p, int v, bool at_once, const char *why)
{
    p->report.row[v].runs[at_once].turns = 0;
    keep(p->report.row[v].runs[at_once].why, why);
}

void pl_compare_refuse_judged(pl_compare *p, int v, const char *why) { keep(p->report.row[v].not_judged, why); }

void pl_compare_take_file(pl_compare *p, int v, uint64_t bytes) { p->report.row[v].file_bytes = bytes; }

_Static_assert(1 + (int)PL_LOSS_METRICS_MAX <= (int)PL_COMPARE_METRICS, "each metric has its place");

/* ---- JSON ---- */

static pl_status read_json(const char *text, size_t bytes, const char *schema, json_t **root, pl_error *err)
{
    json_error_t why;
    pl_status status = pl_json_read(text, bytes, 0, root, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory to read what a process told");
    const char *is = status == PL_OK ? json_string_value(json_object_get(*root, "schema")) : NULL;
    if (is && strcmp(is, schema) == 0) return PL_OK;
    if (status == PL_OK) json_decref(*root);
    return pl_fail(err, PL_E_DATA, "a process told something that is no %s: %.200s", schema, text);
}

static double real(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static uint64_t count(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

/* One by one the median of the items; at once what all took, by their number. */
static double seconds_of_item(const json_t *root, bool at_once, uint64_t items)
{
    return at_once ? real(root, "run_seconds") / (double)items : real(root, "median_seconds");
}

static bool take_inferred(const json_t *root, bool at_once, pl_compare_run *r)
{
    const uint64_t items = count(root, "items");
    const double seconds = items ? seconds_of_item(root, at_once, items) : NAN;
    if (!isfinite(seconds) || r->turns == PL_COMPARE_TURNS) return false;
    const uint64_t measured = count(root, "measured_bytes");
    r->items = items;
    if (r->batch > items) r->batch = items;
    r->seconds[r->turns++] = seconds;
    r->planned_bytes = count(root, "planned_bytes");
    if (measured > r->measured_bytes) r->measured_bytes = measured;
    return measured > 0;
}

/* Nothing can be compared with these. */
static void remark_not_finite(pl_compare_row *r, uint64_t bad)
{
    static const char what[] = "numbers of the results are infinite or NaN";
    const size_t used = strlen(r->remark);
    if (bad == 0 || strstr(r->remark, what)) return;
    snprintf(r->remark + used, sizeof r->remark - used, "%s%" PRIu64 " %s", used ? "; " : "", bad, what);
}

pl_status pl_compare_take_inferred(pl_compare *p, int v, bool at_once, const char *text, size_t bytes, pl_error *err)
{
    json_t *root;
    PL_TRY(read_json(text, bytes, "plimsoll.infer/1", &root, err));
    const bool taken = take_inferred(root, at_once, &p->report.row[v].runs[at_once]);
    remark_not_finite(&p->report.row[v], count(root, "not_finite"));
    json_decref(root);
    return taken ? PL_OK : pl_fail(err, PL_E_DATA, "a process told no time or no memory: %.200s", text);
}

/* All numbers but where the weights came from and how many items there were. */
static void take_metrics(json_t *root, const char *items, pl_compare_row *r)
{
    const char *key;
    json_t *value;
    r->metrics = 0;
    json_object_foreach(root, key, value)
    {
        const bool told = strcmp(key, "schema") != 0 && strcmp(key, "step") != 0 && strcmp(key, items) != 0;
        const bool is_metric = json_is_number(value) || json_is_null(value); /* null: not finite */
        if (!told || !is_metric || r->metrics == PL_COMPARE_METRICS) continue;
        pl_compare_metric *m = &r->metric[r->metrics++];
        snprintf(m->name, sizeof m->name, "%s", key);
        m->value = json_is_null(value) ? NAN : json_number_value(value);
    }
}

pl_status pl_compare_take_judged(pl_compare *p, int v, const char *text, size_t bytes, pl_error *err)
{
    json_t *root;
    PL_TRY(read_json(text, bytes, "plimsoll.eval/1", &root, err));
    take_metrics(root, pl_system_words(p->config)->items, &p->report.row[v]);
    json_decref(root);
    return PL_OK;
}

/* ---- arrays ---- */

static pl_status prefix_of(const pl_compare *p, int v, char prefix[PL_FILE_PATH_MAX], pl_error *err)
{
    return pl_path_join(prefix, PL_FILE_PATH_MAX, p->folder, pl_compare_name(p, v), err);
}

pl_status pl_compare_take_outputs(pl_compare *p, int v, pl_error *err)
{
    char prefix[PL_FILE_PATH_MAX], wide[PL_FILE_PATH_MAX];
    pl_output_difference found[PL_OUTPUTS_MAX];
    pl_compare_row *r = &p->report.row[v];
    size_t outputs = 0;
    if (v == 0 || p->report.is_binary || !p->report.row[0].runs[0].turns) return PL_OK;
    PL_TRY(prefix_of(p, v, prefix, err));
    PL_TRY(prefix_of(p, 0, wide, err));
    PL_TRY(pl_system_compare_outputs(p->config, prefix, wide, found, &outputs, err));
    for (r->outputs = 0; r->outputs < outputs; r->outputs++) {
        const pl_output_difference *d = &found[r->outputs];
        pl_compare_output *o = &r->output[r->outputs];
        snprintf(o->name, sizeof o->name, "%s", d->name);
        o->difference = d->difference;
        o->has_cosine = d->has_cosine;
        o->mean_cosine = d->mean_cosine, o->least_cosine = d->least_cosine;
    }
    return PL_OK;
}
_Static_assert((int)PL_OUTPUTS_MAX <= (int)PL_COMPARE_OUTPUTS, "each output has its place");

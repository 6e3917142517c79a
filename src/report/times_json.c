/* The table of times out of the file that a run leaves (docs/times.md). */
#include <math.h>
#include <string.h>

#include "base/json_read.h"
#include "report/times.h"

/* Older tables have no such key. */
static bool take_new(const json_t *of, const char *key, double unknown, double *to)
{
    const json_t *value = json_object_get(of, key);
    *to = json_is_number(value) ? json_number_value(value) : unknown;
    return !value || ((json_is_number(value) || json_is_null(value)) && isfinite(*to));
}

/* null stands for `unknown`; NAN there: it must be a number. */
static bool take_real(const json_t *of, const char *key, double unknown, double *to)
{
    const json_t *value = json_object_get(of, key);
    *to = json_is_number(value) ? json_number_value(value) : unknown;
    return (json_is_number(value) || (json_is_null(value) && !isnan(unknown))) && isfinite(*to);
}

static bool take_count(const json_t *of, const char *key, uint64_t *to)
{
    const json_t *value = json_object_get(of, key);
    *to = json_is_integer(value) && json_integer_value(value) >= 0 ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool take_name(const json_t *of, const char *key, char to[PL_REPORT_TIMES_NAME])
{
    const char *text = json_string_value(json_object_get(of, key));
    if (!text || strlen(text) >= PL_REPORT_TIMES_NAME) return false;
    strcpy(to, text);
    return true;
}

static bool take_phase(const json_t *of, pl_phase *phase)
{
    const char *text = json_string_value(json_object_get(of, "pass"));
    for (int k = 0; text && k < PL_PHASE_COUNT; k++)
        if (strcmp(text, pl_phase_name((pl_phase)k)) == 0) return *phase = (pl_phase)k, true;
    return false;
}

static bool take_row(const json_t *row, const pl_report_times *t, pl_report_time *r)
{
    return take_name(row, "name", r->name) && take_phase(row, &r->phase) &&
           take_real(row, "seconds", t->runs ? NAN : 0, &r->seconds) &&
           take_real(row, "predicted_seconds", -1, &r->predicted_seconds) && take_real(row, "flops", NAN, &r->flops) &&
           take_real(row, "bytes", NAN, &r->bytes) && take_real(row, "least_seconds", -1, &r->least_seconds) &&
           take_new(row, "computing_seconds", -1, &r->computing_seconds);
}

static bool take_rows(const json_t *rows, pl_report_times *t)
{
    if (!json_is_array(rows) || json_array_size(rows) > PL_COMPONENTS_MAX) return false;
    for (t->count = 0; t->count < json_array_size(rows); t->count++)
        if (!take_row(json_array_get(rows, t->count), t, &t->row[t->count])) return false;
    return true;
}

static bool take_besides(const json_t *rows, pl_report_times *t)
{
    if (!json_is_array(rows) || json_array_size(rows) > PL_REPORT_TIMES_BESIDES) return false;
    for (t->besides_count = 0; t->besides_count < json_array_size(rows); t->besides_count++) {
        const json_t *row = json_array_get(rows, t->besides_count);
        pl_report_besides *b = &t->besides[t->besides_count];
        if (!take_name(row, "name", b->name) || !take_real(row, "seconds", NAN, &b->seconds) ||
            !take_count(row, "count", &b->count))
            return false;
    }
    return true;
}

static bool take_all(const json_t *root, pl_report_times *t)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    return schema && strcmp(schema, PL_TIMES_SCHEMA) == 0 && take_name(root, "program", t->program) &&
           take_name(root, "run", t->run) && take_count(root, "runs", &t->runs) &&
           take_count(root, "first", &t->first) && take_real(root, "seconds", t->runs ? NAN : 0, &t->seconds) &&
           take_real(root, "other_seconds", t->runs ? NAN : 0, &t->other_seconds) &&
           take_real(root, "predicted_seconds", -1, &t->predicted_seconds) &&
           take_new(root, "estimated_seconds", 0, &t->estimated_seconds) &&
           take_real(root, "flops_per_second", 0, &t->flops_per_second) &&
           take_real(root, "bytes_per_second", 0, &t->bytes_per_second) &&
           take_rows(json_object_get(root, "components"), t) && take_besides(json_object_get(root, "besides"), t);
}

pl_status pl_report_times_read(const char *name, const char *text, size_t bytes, pl_report_times *t, pl_error *err)
{
    json_error_t why;
    json_t *root;
    *t = (pl_report_times){0};
    pl_status status = pl_json_read(text, bytes, 0, &root, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s: no memory to read it", name);
    if (status != PL_OK)
        return pl_fail(err, PL_E_DATA, "%s:%d:%d: is no table of times: %s; run the command again", name, why.line,
                       why.column, why.text);
    const bool whole = take_all(root, t);
    json_decref(root);
    if (whole) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: is no table of times of this version (schema %s); run the command again", name,
                   PL_TIMES_SCHEMA);
}

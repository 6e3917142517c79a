/* Metrics and ledgers from the files that a training left (docs/formats.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_read.h"
#include "report/training.h"

/* ---- metrics.jsonl ---- */

static int add_point(pl_report_series *s, double step, double value)
{
    while (s->count && s->point[s->count - 1].step >= step) s->count--; /* repeated after a kill */
    if (pl_grow(&s->point, &s->capacity, s->count, sizeof *s->point)) return -1;
    s->point[s->count++] = (pl_curve_point){step, value};
    return 0;
}

static double number_of(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The value and the ITEMS of ITEMS_per_second. */
static double rate_of(json_t *line, char *name, size_t room)
{
    static const char ending[] = "_per_second";
    const char *key;
    json_t *value;
    json_object_foreach(line, key, value)
    {
        const size_t bytes = strlen(key), end = sizeof ending - 1;
        if (bytes <= end || strcmp(key + bytes - end, ending) != 0 || !json_is_number(value)) continue;
        snprintf(name, room, "%.*s", (int)(bytes - end), key);
        return json_number_value(value);
    }
    return NAN;
}

static int add_sample(pl_report_metrics *m, double step, const char *text)
{
    if (pl_grow(&m->sample, &m->sample_capacity, m->samples, sizeof *m->sample)) return -1;
    m->sample[m->samples] = (pl_report_sample){step, pl_strdup(text)};
    return m->sample[m->samples].text ? m->samples++, 0 : -1;
}

static int take_metrics(json_t *line, void *context)
{
    pl_report_metrics *m = context;
    const char *sample = json_string_value(json_object_get(line, "sample"));
    const double step = number_of(line, "step"), loss = number_of(line, "loss"),
                 validation = number_of(line, "validation_loss"), lr = number_of(line, "lr");
    if (!isfinite(step)) return 0;
    if (sample) return add_sample(m, step, sample);
    const double rate = rate_of(line, m->rate_name, sizeof m->rate_name);
    return (isfinite(loss) && add_point(&m->loss, step, loss)) ||
           (isfinite(validation) && add_point(&m->validation, step, validation)) ||
           (isfinite(rate) && add_point(&m->rate, step, rate)) ||
           (isfinite(lr) && add_point(&m->learning_rate, step, lr));
}

/* take: -1 when memory is refused. */
static pl_status read_lines(const char *lines, size_t bytes, int (*take)(json_t *line, void *), void *context)
{
    pl_status status = PL_OK;
    for (size_t at = 0, end; at < bytes && status != PL_E_NOMEM; at = end + 1) {
        const char *newline = memchr(lines + at, '\n', bytes - at);
        json_t *line;
        json_error_t why;
        end = newline ? (size_t)(newline - lines) : bytes;
        status = pl_json_read(lines + at, end - at, 0, &line, &why);
        if (status == PL_OK && take(line, context)) status = PL_E_NOMEM;
        json_decref(line);
    }
    return status == PL_E_NOMEM ? status : PL_OK;
}

pl_status pl_report_metrics_read(const char *lines, size_t bytes, pl_report_metrics *m, pl_error *err)
{
    *m = (pl_report_metrics){0};
    const pl_status status = read_lines(lines, bytes, take_metrics, m);
    if (status == PL_OK) return status;
    pl_report_metrics_deinit(m);
    return pl_fail(err, status, "no memory for the curves of a run");
}

void pl_report_metrics_deinit(pl_report_metrics *m)
{
    pl_free(m->loss.point);
    pl_free(m->validation.point);
    pl_free(m->rate.point);
    pl_free(m->learning_rate.point);
    for (size_t i = 0; i < m->samples; i++) pl_free(m->sample[i].text);
    pl_free(m->sample);
    *m = (pl_report_metrics){0};
}

/* ---- starts.jsonl ---- */

static void copy_word(const json_t *line, const char *key, char *to, size_t room)
{
    const char *text = json_string_value(json_object_get(line, key));
    snprintf(to, room, "%s", text ? text : "");
}

static int take_start(json_t *line, void *context)
{
    pl_report_starts *s = context;
    const char *schema = json_string_value(json_object_get(line, "schema"));
    const char *command = json_string_value(json_object_get(line, "command"));
    if (!schema || strcmp(schema, "plimsoll.start/1") != 0) return 0;
    if (pl_grow(&s->start, &s->capacity, s->count, sizeof *s->start)) return -1;
    pl_report_start *start = &s->start[s->count];
    *start = (pl_report_start){.command = pl_strdup(command ? command : "")};
    if (!start->command) return -1;
    s->count++;
    copy_word(line, "time", start->time, sizeof start->time);
    copy_word(line, "machine", start->machine, sizeof start->machine);
    copy_word(line, "version", start->version, sizeof start->version);
    const char *commit = json_string_value(json_object_get(line, "commit"));
    const size_t used = strlen(start->version);
    if (commit && used) snprintf(start->version + used, sizeof start->version - used, " (%s)", commit);
    return 0;
}

pl_status pl_report_starts_read(const char *lines, size_t bytes, pl_report_starts *s, pl_error *err)
{
    *s = (pl_report_starts){0};
    const pl_status status = read_lines(lines, bytes, take_start, s);
    if (status == PL_OK) return status;
    pl_report_starts_deinit(s);
    return pl_fail(err, status, "no memory for how a run was begun");
}

void pl_report_starts_deinit(pl_report_starts *s)
{
    for (size_t i = 0; i < s->count; i++) pl_free(s->start[i].command);
    pl_free(s->start);
    *s = (pl_report_starts){0};
}

/* ---- report.json ---- */

static uint64_t count_of(const json_t *of, const char *key)
{
    const json_t *value = json_object_get(of, key);
    return json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static bool find_kind(const char *name, pl_memory_kind *kind)
{
    for (int k = 0; name && k < PL_MEMORY_KIND_COUNT; k++)
        if (strcmp(name, pl_memory_kind_name((pl_memory_kind)k)) == 0) return *kind = (pl_memory_kind)k, true;
    return false;
}

static bool take_row(const json_t *from, const char *which, size_t *count, pl_memory_row *rows)
{
    char bytes[32], number[32];
    const char *name = json_string_value(json_object_get(from, "name"));
    pl_memory_row row = {0};
    if (!json_is_true(json_object_get(from, which))) return true;
    if (!name || !find_kind(json_string_value(json_object_get(from, "kind")), &row.kind) ||
        *count == PL_MEMORY_ROWS_MAX)
        return false;
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(bytes, sizeof bytes, "%s_bytes", which);
    snprintf(number, sizeof number, "%s_count", which);
    row.resident_bytes = count_of(from, bytes);
    row.count = (uint32_t)count_of(from, number);
    rows[(*count)++] = row;
    return true;
}

static bool take_ledger(const json_t *root, pl_report_memory *m)
{
    const json_t *rows = json_object_get(root, "rows");
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strcmp(schema, "plimsoll.ledger/1") != 0 || !json_is_array(rows)) return false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!take_row(row, "planned", &m->planned.row_count, m->planned.row) ||
            !take_row(row, "measured", &m->measured.row_count, m->measured.row))
            return false;
    }
    m->planned.resident_bytes = count_of(root, "planned_bytes");
    m->planned.page_table_bytes = count_of(root, "planned_page_table_bytes");
    m->measured.unexplained_bytes = count_of(root, "unexplained_bytes");
    m->measured.explained_bytes = count_of(root, "measured_bytes") - m->measured.unexplained_bytes;
    m->measured.peak_bytes = count_of(root, "peak_bytes");
    m->measured.page_table_bytes = count_of(root, "measured_page_table_bytes");
    return true;
}

pl_status pl_report_memory_read(const char *name, const char *text, size_t bytes, pl_report_memory *m, pl_error *err)
{
    json_t *root;
    json_error_t why;
    *m = (pl_report_memory){0};
    const pl_status status = pl_json_read(text, bytes, 0, &root, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s: no memory to read it", name);
    const bool whole = status == PL_OK && take_ledger(root, m);
    json_decref(root);
    return whole ? PL_OK : pl_fail(err, PL_E_DATA, "%s: is no ledger of a run; run the command again", name);
}

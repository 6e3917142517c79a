#include "report/validated.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_read.h"
#include "show/html.h"

/* ---- lines ---- */

enum { CURVES = PL_METRIC_CURVES };

typedef struct validated {
    const pl_metric_chart *chart;
    size_t charts, most;   /* lines, at most */
    pl_curve_point *point; /* [charts][CURVES][most]; NaN: the line has no such number */
    size_t count;
} validated;

static pl_curve_point *points_of(const validated *v, size_t chart, size_t curve)
{
    return v->point + (chart * CURVES + curve) * v->most;
}

static size_t count_lines(const char *at, size_t bytes)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += at[i] == '\n';
    return lines;
}

static double number_of(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void take_line(validated *v, const json_t *line)
{
    const double step = number_of(line, "step");
    if (!json_object_get(line, "validation_loss")) return;
    for (size_t k = 0; k < v->charts; k++)
        for (size_t i = 0; i < CURVES && v->chart[k].curve[i].key; i++)
            points_of(v, k, i)[v->count] = (pl_curve_point){step, number_of(line, v->chart[k].curve[i].key)};
    v->count++;
}

static pl_status read_line(validated *v, const char *text, size_t bytes, pl_error *err)
{
    json_t *line;
    json_error_t why;
    const pl_status status = pl_json_read(text, bytes, 0, &line, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory for the curves of validations");
    if (status == PL_OK && json_is_object(line)) take_line(v, line);
    json_decref(line);
    return PL_OK;
}

static pl_status read_lines(validated *v, const char *lines, size_t bytes, pl_error *err)
{
    for (size_t at = 0, end; at < bytes; at = end + 1) {
        const char *newline = memchr(lines + at, '\n', bytes - at);
        end = newline ? (size_t)(newline - lines) : bytes;
        PL_TRY(read_line(v, lines + at, end - at, err));
    }
    return PL_OK;
}

/* ---- charts ---- */

static bool has(const validated *v, size_t chart)
{
    for (size_t i = 0; i < v->count; i++)
        if (isfinite(points_of(v, chart, 0)[i].value)) return true;
    return false;
}

static void draw(const validated *v, size_t chart, pl_str *out)
{
    const pl_metric_chart *r = &v->chart[chart];
    pl_html_curve curve[CURVES];
    size_t count = 0;
    for (; count < CURVES && r->curve[count].key; count++)
        curve[count] =
            (pl_html_curve){points_of(v, chart, count), v->count,  r->curve[count].line, r->curve[count].mark,
                            r->curve[count].name,       count == 0};
    pl_html_curves(
        &(pl_html_chart){
            .title = r->title, .unit = r->unit, .axis = "step", .least_tick = 1, .curve = curve, .count = count},
        out);
}

pl_status pl_report_add_validated(const char *lines, size_t bytes, const pl_metric_chart *chart, pl_doc *d,
                                  pl_error *err)
{
    validated v = {.chart = chart, .most = count_lines(lines, bytes)};
    while (chart && chart[v.charts].title) v.charts++;
    if (v.charts == 0) return PL_OK;
    v.point = pl_alloc(v.most * v.charts * CURVES, sizeof *v.point);
    if (!v.point) return pl_fail(err, PL_E_NOMEM, "no memory for the curves of validations");
    const pl_status status = read_lines(&v, lines, bytes, err);
    for (size_t k = 0; k < v.charts && status == PL_OK; k++) {
        if (!has(&v, k)) continue;
        draw(&v, k, pl_doc_drawing(d));
        pl_doc_drawing_end(d);
    }
    pl_free(v.point);
    return status;
}

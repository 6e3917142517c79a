#include "report/validated.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_read.h"
#include "show/html.h"

enum { CURVES = 4, CHARTS = 8 };

typedef struct row {
    const char *title, *unit;
    struct {
        const char *key, *line, *mark, *name;
    } curve[CURVES]; /* key NULL after the last */
} row;

#define GATES(name, which)                                                                                             \
    {                                                                                                                  \
        "Gates: " name, "of all " which " that were validated",                                                        \
        {                                                                                                              \
            {name "_gate_mean", "valid", "gradient", "mean"}, {name "_gate_median", "train", "weight", "median"},      \
                {name "_gate_max", "most", "saved", "largest"}, {name "_gate_min", "least", "optimizer", "least"},     \
        }                                                                                                              \
    }

static const row rows[CHARTS] = {
    GATES("fusion", "tokens"),
    GATES("adapter", "tokens"),
    GATES("planner", "pages"),
    {"Noise left",
     "of what noise adds to features or pixels, in squares, behind adapter, denoiser or policy: 1 where these leave it",
     {{"noise_left", "valid", "gradient", "noise left"}}},
    {"Signal to noise",
     "dB, peak, over the pixels of all pages that were validated",
     {{"psnr", "valid", "gradient", "what comes out"},
      {"psnr_denoised", "train", "weight", "behind the denoiser alone"},
      {"psnr_noisy", "most", "saved", "noisy pages"}}},
    {"Choices of the policy",
     "how much the denoiser counts, in the mean, and the share of pages that are drawn as they are",
     {{"strength", "valid", "gradient", "strength"}, {"as_is", "train", "weight", "drawn as they are"}}},
    {"Choice entropy",
     "nat, of size and place together: 6.74 where each is as likely as any other",
     {{"choice_entropy", "valid", "gradient", "choice entropy"}}},
    {"Path entropy",
     "nat, of the shares of the planner's ways: the logarithm of their number when all count alike",
     {{"path_entropy", "valid", "gradient", "path entropy"}}},
};

/* ---- lines ---- */

typedef struct validated {
    pl_curve_point *point[CHARTS][CURVES]; /* NaN: the line has no such number */
    pl_curve_point *all;
    size_t count;
} validated;

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
    for (size_t k = 0; k < CHARTS; k++)
        for (size_t i = 0; i < CURVES && rows[k].curve[i].key; i++)
            v->point[k][i][v->count] = (pl_curve_point){step, number_of(line, rows[k].curve[i].key)};
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
        if (isfinite(v->point[chart][0][i].value)) return true;
    return false;
}

static void draw(const validated *v, size_t chart, pl_str *out)
{
    const row *r = &rows[chart];
    pl_html_curve curve[CURVES];
    size_t count = 0;
    for (; count < CURVES && r->curve[count].key; count++)
        curve[count] = (pl_html_curve){v->point[chart][count], v->count,  r->curve[count].line, r->curve[count].mark,
                                       r->curve[count].name,   count == 0};
    pl_html_curves(
        &(pl_html_chart){
            .title = r->title, .unit = r->unit, .axis = "step", .least_tick = 1, .curve = curve, .count = count},
        out);
}

pl_status pl_report_add_validated(const char *lines, size_t bytes, pl_doc *d, pl_error *err)
{
    const size_t most = count_lines(lines, bytes);
    validated v = {.all = pl_alloc(most * CHARTS * CURVES, sizeof *v.all)};
    if (!v.all) return pl_fail(err, PL_E_NOMEM, "no memory for the curves of validations");
    for (size_t k = 0; k < CHARTS * CURVES; k++) v.point[k / CURVES][k % CURVES] = v.all + k * most;
    const pl_status status = read_lines(&v, lines, bytes, err);
    for (size_t k = 0; k < CHARTS && status == PL_OK; k++) {
        if (!has(&v, k)) continue;
        draw(&v, k, pl_doc_drawing(d));
        pl_doc_drawing_end(d);
    }
    pl_free(v.all);
    return status;
}

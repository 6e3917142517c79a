/* The page about trainings of a regression: the table, and predicted against true, a panel each. */
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html_rollout.h"
#include "report/regression.h"

enum { PANEL = 200, EDGE = 10, POINTS_MAX = 2000, TEXT = 64 };

/* ---- the table ---- */

static void cell(const char *label, double value, pl_str *out)
{
    char text[TEXT] = "–";
    if (isfinite(value)) pl_print(text, sizeof text, "%.3f", value);
    pl_html_cell(label, text, out);
}

static void put_row(const pl_regression_row *r, pl_str *out)
{
    pl_str_append(out, "<tr><td class='h'>");
    pl_html_text(out, r->name);
    pl_str_append(out, "</td><td class='w'>");
    pl_html_text(out, r->held_out);
    pl_str_append(out, "</td>");
    pl_html_cell_count("samples", r->count, out);
    cell("MAE", r->mae, out);
    cell("RMSE", r->rmse, out);
    cell("R²", r->r2, out);
    cell("the mean’s MAE", r->mean_mae, out);
    cell("share", r->mean_mae > 0 ? r->mae / r->mean_mae : NAN, out);
    cell("median |e|", r->quantile[1], out);
    cell("90 % of |e|", r->quantile[3], out);
    pl_str_append(out, "</tr>\n");
}

static void put_table(const pl_regression_report *p, pl_str *out)
{
    pl_html_section("What was held out",
                    "Each training is judged by samples that it never saw. Share: its MAE over that of "
                    "who always says the mean of the labels that were trained on.",
                    out);
    pl_str_append(out, "<table class='labels'><tr><th>training</th><th>held out</th><th class='n'>samples</th><th "
                       "class='n'>MAE</th><th class='n'>RMSE</th><th class='n'>R²</th><th class='n'>the mean’s MAE</th>"
                       "<th class='n'>share</th><th class='n'>median |e|</th><th class='n'>90 % of |e|</th></tr>\n");
    for (uint32_t i = 0; i < p->rows; i++) put_row(&p->row[i], out);
    pl_str_append(out, "</table></section>\n");
}

/* ---- pictures ---- */

/* One scale for all, so that panels can be compared. */
static void find_range(const pl_regression_report *p, double range[2])
{
    range[0] = INFINITY, range[1] = -INFINITY;
    for (uint32_t i = 0; i < p->rows; i++)
        for (uint64_t k = 0; k < p->row[i].count; k++) {
            const double both[] = {p->row[i].truth[k], p->row[i].predicted[k]};
            for (int n = 0; n < 2; n++) {
                if (both[n] < range[0]) range[0] = both[n];
                if (isfinite(both[n]) && both[n] > range[1]) range[1] = both[n];
            }
        }
    if (!(range[0] < range[1])) range[0] -= 1, range[1] = range[0] + 2;
}

static double at(const double range[2], double value)
{
    const double share = (value - range[0]) / (range[1] - range[0]);
    return EDGE + fmin(fmax(share, 0), 1) * (PANEL - 2 * EDGE);
}

static void put_points(const pl_regression_row *r, const double range[2], pl_str *out)
{
    const uint64_t every = r->count / POINTS_MAX + 1;
    pl_str_append(out, "<path class='points weight' d='");
    for (uint64_t k = 0; k < r->count; k += every)
        pl_str_printf(out, "M%.1f %.1fh0", at(range, r->truth[k]), PANEL - at(range, r->predicted[k]));
    pl_str_append(out, "'/>\n");
}

static void put_panel(const pl_regression_report *p, const pl_regression_row *r, const double range[2], pl_str *out)
{
    pl_str_printf(out, "<figure class='pair'><svg viewBox='0 0 %d %d' role='img' aria-label='predicted against true, ",
                  PANEL, PANEL);
    pl_html_text(out, r->name);
    pl_str_printf(out, "'><rect class='frame' x='1' y='1' width='%d' height='%d' rx='4'/>\n", PANEL - 2, PANEL - 2);
    pl_str_printf(out, "<path class='even' d='M%d %dL%d %d'/>\n", EDGE, PANEL - EDGE, PANEL - EDGE, EDGE);
    put_points(r, range, out);
    pl_str_append(out, "</svg><figcaption><b>");
    pl_html_text(out, r->name);
    pl_str_printf(out, "</b><br>→ true, ↑ predicted: %.2f to %.2f %s</figcaption></figure>\n", range[0], range[1],
                  p->unit);
}

static void put_pictures(const pl_regression_report *p, pl_str *out)
{
    double range[2];
    find_range(p, range);
    pl_html_section("Predicted against true", "A point for each sample; on the dashed line a prediction is right.",
                    out);
    pl_str_append(out, "<div class='pairs'>\n");
    for (uint32_t i = 0; i < p->rows; i++) put_panel(p, &p->row[i], range, out);
    pl_str_append(out, "</div></section>\n");
}

/* ---- all of it ---- */

static void put_cards(const pl_regression_report *p, pl_str *out)
{
    char number[TEXT], words[TEXT];
    double mae = 0, share = 0;
    uint32_t folds = 0;
    for (uint32_t i = 0; i < p->rows; i++)
        if (p->row[i].is_fold) mae += p->row[i].mae, share += p->row[i].mae / p->row[i].mean_mae, folds++;
    pl_html_cards_begin(out);
    snprintf(number, sizeof number, "%u of %u", p->rows, p->stages);
    pl_html_card(number, "trainings are done", out);
    if (folds) {
        pl_print(number, sizeof number, "%.3f %s", mae / folds, p->unit);
        snprintf(words, sizeof words, "MAE, mean of %u fold%s", folds, pl_plural(folds));
        pl_html_card(number, words, out);
        pl_print(number, sizeof number, "%.2f", share / folds);
        pl_html_card(number, "of the error of who always says the mean", out);
    }
    pl_html_cards_end(out);
}

void pl_regression_html(const pl_regression_report *p, pl_str *out)
{
    pl_html_results_begin(p->title, "Trainings of a regression, one after another.", out);
    put_cards(p, out);
    put_table(p, out);
    put_pictures(p, out);
    pl_html_page_end(out);
}

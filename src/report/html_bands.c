/* A quantity over the states of many rollouts: for each policy the median as a line and what lies between two quantiles
 * as a band, and the same as numbers. */
#include <inttypes.h>
#include <math.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html_rollout.h"

enum { WIDTH = 540, HEIGHT = 250, LEFT = 62, RIGHT = 14, TOP = 10, BOTTOM = 46, ROWS = 11 };

typedef struct frame {
    const pl_html_bands *bands;
    double low, high; /* of the values' axis: of their logarithms where it is one */
    double floor;     /* what is less, or nothing, lies at the lower edge of a logarithmic axis */
    bool is_log, has_less;
    double last; /* state */
    pl_str *out;
} frame;

/* ---- the axis of the values ---- */

typedef struct range {
    double least, largest, least_above_0;
} range;

static void widen(range *r, double value)
{
    if (!isfinite(value)) return;
    r->least = fmin(r->least, value), r->largest = fmax(r->largest, value);
    if (value > 0) r->least_above_0 = fmin(r->least_above_0, value);
}

static range find_range(const pl_html_bands *b)
{
    range r = {INFINITY, -INFINITY, INFINITY};
    for (size_t k = 0; k < b->count; k++)
        for (size_t i = b->first; i < b->states; i++) widen(&r, b->band[k].at[i].low), widen(&r, b->band[k].at[i].high);
    return r;
}

/* Logarithmic where nothing is below 0 and the largest is a hundred times the least above it. */
static void choose_axis(frame *f, const range *r)
{
    f->is_log = r->least >= 0 && r->largest >= 100 * r->least_above_0;
    f->has_less = f->is_log && r->least == 0;
    f->floor = f->is_log ? r->least_above_0 : 0;
    f->low = f->is_log ? log10(r->least_above_0) : r->least;
    f->high = f->is_log ? log10(r->largest) : r->largest;
    const double span = f->high - f->low, least = 1e-4 * fmax(fabs(f->low), fabs(f->high));
    double room = fmax(0.04 * span, (least - span) / 2); /* what is nearly constant is shown so */
    if (!(room > 0)) room = 0.5;
    f->low -= room, f->high += room;
}

static double y_of(const frame *f, double value)
{
    double v = !f->is_log ? value : value >= f->floor ? log10(value) : f->low;
    return HEIGHT - BOTTOM - (v - f->low) / (f->high - f->low) * (HEIGHT - TOP - BOTTOM);
}

static double x_of(const frame *f, double state)
{
    return LEFT + (f->last > 0 ? state / f->last : 0.5) * (WIDTH - LEFT - RIGHT);
}

/* ---- axes ---- */

static void draw_tick(const frame *f, double value, const char *text)
{
    pl_str_printf(f->out,
                  "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/><text class='soft end' x='%d' "
                  "y='%.1f'>%s</text>\n",
                  LEFT, WIDTH - RIGHT, y_of(f, value), y_of(f, value), LEFT - 8, y_of(f, value) + 4.5, text);
}

static void draw_values(const frame *f)
{
    char text[32];
    double step = pl_html_tick(f->high - f->low, 5);
    if (f->is_log && step < 1) step = 1;
    const double most = fmax(fabs(f->low), fabs(f->high));
    const int digits = most > 1e5 * step ? (int)ceil(log10(most / step)) + 1 : 5; /* that tell ticks apart */
    for (double v = ceil(f->low / step) * step; v <= f->high; v += step) {
        const double shown = fabs(v) < 1e-9 * step ? 0 : v;
        if (f->is_log)
            pl_print(text, sizeof text, "1e%.0f", shown);
        else
            pl_print(text, sizeof text, "%.*g", digits, shown);
        draw_tick(f, f->is_log ? pow(10, v) : v, text);
    }
}

static void draw_states(const frame *f)
{
    double step = fmax(pl_html_tick(f->last, 5), 1);
    for (double v = 0; v <= f->last; v += step)
        pl_str_printf(f->out,
                      "<line class='axis' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft mid' x='%.1f' "
                      "y='%d'>%.8g</text>\n",
                      x_of(f, v), x_of(f, v), HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5, x_of(f, v), HEIGHT - BOTTOM + 20,
                      v);
    pl_str_printf(f->out,
                  "<line class='axis' x1='%d' x2='%d' y1='%d' y2='%d'/><text class='soft mid' x='%d' "
                  "y='%d'>state</text>\n",
                  LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
}

/* ---- bands and lines: a piece for each stretch without a gap ---- */

static bool has_value(const pl_html_band *band, size_t i) { return isfinite(band->at[i].median); }

static void draw_piece(const frame *f, const pl_html_band *band, size_t first, size_t end)
{
    const uint32_t *state = f->bands->state;
    const char *class = pl_html_policy_class(band->policy);
    const double half = end - first == 1 ? 3 : 0; /* of one state alone: a stroke */
    pl_str_printf(f->out, "<path class='band %s' d='", class);
    for (size_t i = first; i < end; i++)
        pl_str_printf(f->out, "%c%.1f %.1f", i == first ? 'M' : 'L', x_of(f, state[i]) - half,
                      y_of(f, band->at[i].high));
    for (size_t i = end; i-- > first;)
        pl_str_printf(f->out, "L%.1f %.1f", x_of(f, state[i]) + half, y_of(f, band->at[i].low));
    pl_str_printf(f->out, "Z'/><path class='curve %s' d='", class);
    for (size_t i = first; i < end; i++) {
        const double y = y_of(f, band->at[i].median);
        pl_str_printf(f->out, "%c%.1f %.1f", i == first ? 'M' : 'L', x_of(f, state[i]) - half, y);
        if (half > 0) pl_str_printf(f->out, "H%.1f", x_of(f, state[i]) + half);
    }
    pl_str_append(f->out, "'/>\n");
}

static void draw_band(const frame *f, const pl_html_band *band)
{
    for (size_t i = f->bands->first, end; i < f->bands->states; i = end) {
        for (end = i; end < f->bands->states && has_value(band, end); end++) continue;
        if (end > i) draw_piece(f, band, i, end);
        end += end == i;
    }
}

static void draw_legend(const pl_html_bands *b, pl_str *out)
{
    char count[32];
    pl_str_append(out, "<div class='legend'>");
    for (size_t k = 0; k < b->count; k++)
        pl_str_printf(out, "<span><i class='%s'></i>%s, %s rollout%s</span>", pl_html_policy_class(b->band[k].policy),
                      pl_html_policy_name(b->band[k].policy), pl_format_count(b->band[k].series, count, sizeof count),
                      pl_plural(b->band[k].series));
    pl_str_append(out, "</div>\n");
}

/* ---- in words and numbers ---- */

static void say_not_finite(const pl_html_bands *b, const frame *f)
{
    char bad[32], all[32];
    for (size_t k = 0; k < b->count; k++) {
        const pl_html_band *band = &b->band[k];
        if (band->not_finite)
            pl_str_printf(f->out, "<p class='bad'>%s: %s of %s values %s not finite and left out.</p>\n",
                          pl_html_policy_name(band->policy), pl_format_count(band->not_finite, bad, sizeof bad),
                          pl_format_count(band->values + band->not_finite, all, sizeof all),
                          band->not_finite == 1 ? "is" : "are");
    }
}

static void put_number(const char *label, double value, pl_str *out)
{
    char text[32] = "–";
    if (isfinite(value)) pl_print(text, sizeof text, "%.6g", value);
    pl_html_cell(label, text, out);
}

static void put_row(const pl_html_bands *b, size_t k, size_t i, pl_str *out)
{
    const pl_html_quantiles *q = &b->band[k].at[i];
    pl_str_printf(out, "<tr><td>state %" PRIu32 ", %s</td>", b->state[i], pl_html_policy_name(b->band[k].policy));
    put_number("10 %", q->low, out);
    put_number("median", q->median, out);
    put_number("90 %", q->high, out);
    pl_html_cell_count("values", q->values, out);
    pl_str_append(out, "</tr>\n");
}

static void put_numbers(const pl_html_bands *b, pl_str *out)
{
    const size_t drawn = b->states > b->first ? b->states - b->first : 0, rows = drawn < ROWS ? drawn : ROWS;
    if (rows == 0) return;
    pl_str_append(out, "<details><summary>as numbers</summary><table class='labels'><tr><th></th><th class='n'>10 "
                       "%</th><th class='n'>median</th><th class='n'>90 %</th><th class='n'>values</th></tr>\n");
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < b->count; k++)
            put_row(b, k, b->first + (rows > 1 ? r * (drawn - 1) / (rows - 1) : 0), out);
    pl_str_append(out, "</table></details>\n");
}

void pl_html_band_chart(const pl_html_bands *b, pl_str *out)
{
    frame f = {.bands = b, .out = out, .last = b->states ? b->state[b->states - 1] : 0};
    const range r = find_range(b);
    pl_str_printf(out, "<div><h3>%s</h3><p>%s", b->title, b->words);
    if (r.least <= r.largest) {
        choose_axis(&f, &r);
        pl_str_printf(out, "%s%s</p>\n<svg viewBox='0 0 %d %d' role='img' aria-label='%s by state'>\n",
                      f.is_log ? "; logarithmic" : "", f.has_less ? ", 0 at the lower edge" : "", WIDTH, HEIGHT,
                      b->title);
        draw_values(&f);
        draw_states(&f);
        for (size_t k = 0; k < b->count; k++) draw_band(&f, &b->band[k]);
        pl_str_append(out, "</svg>\n");
    } else {
        pl_str_append(out, "</p>\n<p>There is no finite value.</p>\n");
    }
    draw_legend(b, out);
    say_not_finite(b, &f);
    put_numbers(b, out);
    pl_str_append(out, "</div>\n");
}

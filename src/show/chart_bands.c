/* Medians as lines, and what lies between two quantiles as bands. */
#include <math.h>

#include "base/locale.h"
#include "show/chart.h"
#include "show/html.h"

enum { WIDTH = 540, HEIGHT = 250, LEFT = 70, RIGHT = 14, TOP = 10, BOTTOM = 46, KEYS = 12 };

typedef struct frame {
    const pl_chart_bands *bands;
    double low, high; /* of the values' axis: of their logarithms where it is one */
    double floor;     /* what is less, or nothing, lies at the lower edge of a logarithmic axis */
    bool is_log, has_less;
    double last; /* place */
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

static range find_range(const pl_chart_bands *b)
{
    range r = {INFINITY, -INFINITY, INFINITY};
    for (size_t k = 0; k < b->count; k++)
        for (size_t i = b->first; i < b->places; i++) widen(&r, b->band[k].at[i].low), widen(&r, b->band[k].at[i].high);
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

static double x_of(const frame *f, double place)
{
    return LEFT + (f->last > 0 ? place / f->last : 0.5) * (WIDTH - LEFT - RIGHT);
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
    for (double v = ceil(f->low / step) * step; v <= f->high; v += step) {
        if (f->is_log)
            pl_print(text, sizeof text, "1e%.0f", fabs(v) < step / 2 ? 0 : v);
        else
            (void)pl_html_tick_text(v, step, text);
        draw_tick(f, f->is_log ? pow(10, v) : v, text);
    }
}

static void draw_places(const frame *f)
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
                  "y='%d'>%s</text>\n",
                  LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6,
                  f->bands->axis);
}

/* ---- bands and lines: a piece for each stretch without a gap ---- */

static bool has_value(const pl_chart_band *band, size_t i) { return isfinite(band->at[i].median); }

static void draw_piece(const frame *f, const pl_chart_band *band, size_t first, size_t end)
{
    const uint32_t *place = f->bands->place;
    const char *class = band->key.class_name;
    const double half = end - first == 1 ? 3 : 0; /* of one place alone: a stroke */
    pl_str_printf(f->out, "<path class='band %s' d='", class);
    for (size_t i = first; i < end; i++)
        pl_str_printf(f->out, "%c%.1f %.1f", i == first ? 'M' : 'L', x_of(f, place[i]) - half,
                      y_of(f, band->at[i].high));
    for (size_t i = end; i-- > first;)
        pl_str_printf(f->out, "L%.1f %.1f", x_of(f, place[i]) + half, y_of(f, band->at[i].low));
    pl_str_printf(f->out, "Z'/><path class='curve %s' d='", class);
    for (size_t i = first; i < end; i++) {
        const double y = y_of(f, band->at[i].median);
        pl_str_printf(f->out, "%c%.1f %.1f", i == first ? 'M' : 'L', x_of(f, place[i]) - half, y);
        if (half > 0) pl_str_printf(f->out, "H%.1f", x_of(f, place[i]) + half);
    }
    pl_str_append(f->out, "'/>\n");
}

static void draw_band(const frame *f, const pl_chart_band *band)
{
    for (size_t i = f->bands->first, end; i < f->bands->places; i = end) {
        for (end = i; end < f->bands->places && has_value(band, end); end++) continue;
        if (end > i) draw_piece(f, band, i, end);
        end += end == i;
    }
}

static void say_axis(const frame *f)
{
    if (f->is_log)
        pl_str_printf(f->out, "<p>The axis is logarithmic%s.</p>\n", f->has_less ? ", 0 at its lower edge" : "");
}

void pl_chart_draw_bands(const pl_chart_bands *b, pl_str *out)
{
    frame f = {.bands = b, .out = out, .last = b->places ? b->place[b->places - 1] : 0};
    pl_chart_key key[KEYS];
    const range r = find_range(b);
    if (r.least <= r.largest) {
        choose_axis(&f, &r);
        say_axis(&f);
        pl_str_printf(out, "<svg class='small' viewBox='0 0 %d %d' role='img' aria-label='%s by %s'>\n", WIDTH, HEIGHT,
                      b->title, b->axis);
        draw_values(&f);
        draw_places(&f);
        for (size_t k = 0; k < b->count; k++) draw_band(&f, &b->band[k]);
        pl_str_append(out, "</svg>\n");
    } else {
        pl_str_append(out, "<p>There is no finite value.</p>\n");
    }
    for (size_t k = 0; k < b->count && k < KEYS; k++) key[k] = b->band[k].key;
    pl_chart_legend(key, b->count < KEYS ? b->count : KEYS, out);
}

void pl_chart_legend(const pl_chart_key *key, size_t count, pl_str *out)
{
    pl_str_append(out, "<div class='legend'>");
    for (size_t k = 0; k < count; k++) {
        pl_str_printf(out, "<span><i class='%s'></i>", key[k].class_name);
        pl_html_text(out, key[k].name);
        pl_str_append(out, "</span>");
    }
    pl_str_append(out, "</div>\n");
}

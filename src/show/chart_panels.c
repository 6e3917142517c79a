/* Points and counts. Words stand below a panel, not in it: so they are read on a telephone as well. */
#include <inttypes.h>
#include <math.h>

#include "base/units.h"
#include "show/chart.h"
#include "show/html.h"

enum { PANEL = 200, EDGE = 6, WIDE = 1000, WIDE_FOOT = 40 };
#define HIGHEST 0.9 /* of a panel's height */

static double at(double share) { return EDGE + fmin(fmax(share, 0), 1) * (PANEL - 2 * EDGE); }

void pl_chart_panels_begin(pl_str *out) { pl_str_append(out, "<div class='panels'>\n"); }
void pl_chart_panels_end(pl_str *out) { pl_str_append(out, "</div>\n"); }

static void begin_svg(const char *name, int width, int height, pl_str *out)
{
    pl_str_printf(out, "<svg viewBox='0 0 %d %d' role='img' aria-label='", width, height);
    pl_html_text(out, name);
    pl_str_append(out, "'>\n");
}

static void begin_panel(const char *name, pl_str *out)
{
    pl_str_append(out, "<figure>");
    begin_svg(name, PANEL, PANEL, out);
    pl_str_printf(out, "<rect class='frame' x='1' y='1' width='%d' height='%d' rx='4'/>\n", PANEL - 2, PANEL - 2);
}

static void end_panel(const char *title, const char *caption, pl_str *out)
{
    pl_str_append(out, title[0] ? "</svg><figcaption><b>" : "</svg><figcaption>");
    pl_html_text(out, title);
    pl_str_append(out, title[0] ? "</b><br>" : "");
    pl_html_lines(out, caption);
    pl_str_append(out, "</figcaption></figure>\n");
}

/* ---- points ---- */

static void draw_set(const pl_chart_points *p, unsigned set, pl_str *out)
{
    bool begun = false;
    for (uint64_t i = 0; i < p->count; i += p->every) {
        const pl_chart_point point = p->at(p->of, i);
        if (point.set != set) continue;
        if (!begun) pl_str_printf(out, "<path class='points %s' d='", p->class_name[set]);
        begun = true;
        pl_str_printf(out, "M%.1f %.1fh0", at(point.x), PANEL - at(point.y));
    }
    if (begun) pl_str_append(out, "'/>\n");
}

void pl_chart_draw_points(const pl_chart_points *p, pl_str *out)
{
    begin_panel(p->name, out);
    if (p->diagonal)
        pl_str_printf(out, "<path class='even' d='M%d %dL%d %d'/>\n", EDGE, PANEL - EDGE, PANEL - EDGE, EDGE);
    for (unsigned set = p->sets; set-- > 0;) draw_set(p, set, out);
    end_panel(p->title, p->caption, out);
}

/* ---- counts ---- */

static uint64_t most_of(const pl_chart_counts *c)
{
    uint64_t most = 1;
    for (unsigned i = 0; i < c->bins; i++) most = c->count[i] > most ? c->count[i] : most;
    return most;
}

/* From x = left to left + width; the highest bar is `high`, and stands on y = foot. */
static void draw_bars(const pl_chart_counts *c, int left, int width, int foot, double high, pl_str *out)
{
    const double step = (double)width / c->bins, bin = (c->high - c->low) / c->bins, most = (double)most_of(c);
    char count[32];
    for (unsigned i = 0; i < c->bins; i++) {
        const double height = high * (double)c->count[i] / most;
        if (!c->count[i]) continue;
        pl_str_printf(out,
                      "<rect class='staging' x='%.1f' y='%.1f' width='%.1f' height='%.1f'><title>%.6g to %.6g: "
                      "%s</title></rect>\n",
                      left + i * step + 1, foot - height, step - 2, height, c->low + i * bin, c->low + (i + 1) * bin,
                      pl_format_count(c->count[i], count, sizeof count));
    }
}

void pl_chart_draw_counts(const pl_chart_counts *c, pl_str *out)
{
    const double high = HIGHEST * (PANEL - 2 * EDGE);
    begin_panel(c->name, out);
    draw_bars(c, EDGE, PANEL - 2 * EDGE, PANEL - EDGE, high, out);
    pl_str_printf(out, "<path class='even' d='M%d %.1fH%d'/>", EDGE, PANEL - EDGE - high * c->even / (double)most_of(c),
                  PANEL - EDGE);
    end_panel("", c->caption, out);
}

void pl_chart_draw_histogram(const pl_chart_counts *c, pl_str *out)
{
    const int y = PANEL + WIDE_FOOT - 8;
    begin_svg(c->name, WIDE, PANEL + WIDE_FOOT, out);
    draw_bars(c, 0, WIDE, PANEL, PANEL - 4, out);
    pl_str_printf(out,
                  "<line class='axis' x1='0' x2='%d' y1='%d' y2='%d'/><text class='soft' x='0' y='%d'>%.4g</text>"
                  "<text class='soft mid' x='%d' y='%d'>%.4g</text><text class='soft end' x='%d' y='%d'>%.4g</text>"
                  "</svg>\n",
                  WIDE, PANEL, PANEL, y, c->low, WIDE / 2, y, (c->low + c->high) / 2, WIDE, y, c->high);
}

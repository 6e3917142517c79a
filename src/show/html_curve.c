/* Curves over steps or seconds, with axes and a legend. */
#include <math.h>

#include "show/html.h"

enum { WIDTH = 1080, CURVE = 330, LEFT = 60, RIGHT = 20, TOP = 14, BOTTOM = 46 };

typedef struct frame {
    const pl_html_chart *chart;
    double left, right, low, high; /* along the axis, of values */
    pl_str *out;
} frame;

static double x_of(const frame *f, double step)
{
    return LEFT + (step - f->left) / (f->right - f->left) * (WIDTH - LEFT - RIGHT);
}
static double y_of(const frame *f, double loss)
{
    return CURVE - BOTTOM - (loss - f->low) / (f->high - f->low) * (CURVE - TOP - BOTTOM);
}

static void widen(frame *f, const pl_curve_point *point, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(point[i].value) || !isfinite(point[i].step)) continue;
        f->left = fmin(f->left, point[i].step), f->right = fmax(f->right, point[i].step);
        f->low = fmin(f->low, point[i].value), f->high = fmax(f->high, point[i].value);
    }
}

/* A line through the points; where a value is not finite it is interrupted. */
static void draw_curve(const frame *f, const pl_curve_point *point, size_t count, const char *class)
{
    bool pen = false;
    if (count == 0) return;
    pl_str_printf(f->out, "<path class='%s' d='", class);
    for (size_t i = 0; i < count; i++) {
        bool finite = isfinite(point[i].value) && isfinite(point[i].step);
        if (finite)
            pl_str_printf(f->out, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(f, point[i].step), y_of(f, point[i].value));
        pen = finite;
    }
    pl_str_append(f->out, "'/>\n");
}

static void draw_dots(const frame *f, const pl_curve_point *point, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(point[i].value) && isfinite(point[i].step))
            pl_str_printf(
                f->out, "<circle class='dot' cx='%.1f' cy='%.1f' r='3.2'><title>%s %.5g: %.4f</title></circle>\n",
                x_of(f, point[i].step), y_of(f, point[i].value), f->chart->axis, point[i].step, point[i].value);
}

/* The number of a tick: a multiple, not a sum, so that 0 is 0 and never -0. */
static double number_of(double tick, double step) { return tick == 0 ? 0 : tick * step; }

/* Lines of the values' axis lie under the curves; its words, which stand within a narrow picture, above them. */
static void draw_values(const frame *f, bool words)
{
    char text[32];
    double step = pl_html_tick(f->high - f->low, 6), v;
    for (double k = ceil(f->low / step); (v = number_of(k, step)) <= f->high; k++)
        if (words)
            pl_str_printf(f->out, "<text class='soft end tick' x='%d' y='%.1f'>%s</text>\n", LEFT - 8, y_of(f, v) + 4.5,
                          pl_html_tick_text(v, step, text));
        else
            pl_str_printf(f->out, "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>\n", LEFT, WIDTH - RIGHT,
                          y_of(f, v), y_of(f, v));
}

static void draw_steps(const frame *f)
{
    double step = fmax(pl_html_tick(f->right - f->left, 8), f->chart->least_tick), v;
    for (double k = ceil(f->left / step); (v = number_of(k, step)) <= f->right; k++)
        pl_str_printf(f->out,
                      "<line class='axis' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft mid step' x='%.1f' "
                      "y='%d'>%.8g</text>\n",
                      x_of(f, v), x_of(f, v), CURVE - BOTTOM, CURVE - BOTTOM + 5, x_of(f, v), CURVE - BOTTOM + 20, v);
    pl_str_printf(
        f->out,
        "<line class='axis' x1='%d' x2='%d' y1='%d' y2='%d'/><text class='soft mid title' x='%d' y='%d'>%s</text>\n",
        LEFT, WIDTH - RIGHT, CURVE - BOTTOM, CURVE - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, CURVE - 6, f->chart->axis);
}

static void draw_mark(const frame *f)
{
    double x = x_of(f, f->chart->mark);
    bool flip = x > WIDTH / 2.0;
    if (!f->chart->mark_words) return;
    pl_str_printf(f->out,
                  "<line class='mark' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='mark halo%s' x='%.1f' "
                  "y='%d'>%s</text>\n",
                  x, x, TOP, CURVE - BOTTOM, flip ? " end" : "", flip ? x - 6 : x + 6, TOP + 14, f->chart->mark_words);
}

static void draw_legend(const pl_html_chart *c, pl_str *out)
{
    pl_str_append(out, "<div class='legend'>");
    for (size_t i = 0; i < c->count && c->count > 1; i++)
        if (c->curve[i].count) {
            pl_str_printf(out, "<span><i class='%s'></i>", c->curve[i].mark);
            pl_html_text(out, c->curve[i].name);
            pl_str_append(out, "</span>");
        }
    pl_str_append(out, "</div>\n");
}

static frame frame_of(const pl_html_chart *c, pl_str *out)
{
    frame f = {.chart = c, .left = INFINITY, .right = -INFINITY, .low = INFINITY, .high = -INFINITY, .out = out};
    for (size_t i = 0; i < c->count; i++) widen(&f, c->curve[i].point, c->curve[i].count);
    return f;
}

void pl_html_curves(const pl_html_chart *c, pl_str *out)
{
    frame f = frame_of(c, out);
    if (!(f.left <= f.right)) return;
    pl_str_append(out, "<section><h2>");
    pl_html_text(out, c->title);
    pl_str_append(out, "</h2>");
    pl_html_draw_curves(c, out);
    pl_str_append(out, "</section>\n");
}

void pl_html_draw_curves(const pl_html_chart *c, pl_str *out)
{
    frame f = frame_of(c, out);
    if (!(f.left <= f.right)) return;
    if (c->mark_words) f.left = fmin(f.left, c->mark), f.right = fmax(f.right, c->mark);
    if (c->from_zero) f.low = fmin(f.low, 0);
    const double span = f.high - f.low, least = 1e-3 * fmax(fabs(f.low), fabs(f.high));
    double room = span > 0 ? fmax(0.05 * span, (least - span) / 2) : 0.5; /* what is nearly constant is shown so */
    if (!c->from_zero) f.low -= room;
    f.high += room;
    if (f.right - f.left < c->least_tick) f.right = f.left + c->least_tick;
    pl_str_append(out, "<p>");
    pl_html_text(out, c->unit);
    pl_str_printf(out, "</p>\n<svg viewBox='0 0 %d %d' role='img' aria-label='%s by %s'>\n", WIDTH, CURVE, c->title,
                  c->axis);
    draw_values(&f, false);
    draw_steps(&f);
    draw_mark(&f);
    for (size_t i = 0; i < c->count; i++) draw_curve(&f, c->curve[i].point, c->curve[i].count, c->curve[i].line);
    for (size_t i = 0; i < c->count; i++)
        if (c->curve[i].dots) draw_dots(&f, c->curve[i].point, c->curve[i].count);
    draw_values(&f, true);
    pl_str_append(out, "</svg>\n");
    draw_legend(c, out);
}

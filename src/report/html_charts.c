/* Bars by component, and the curve of the losses. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "report/html.h"

enum { WIDTH = 1080, ROW = 24, BAR = 15, NAME = 190, SUM = 90, SHOWN = 40 };
enum { CURVE = 330, LEFT = 60, RIGHT = 20, TOP = 14, BOTTOM = 46 };

/* ---- components ---- */

static void draw_component(const pl_report_component *c, const char *more, double largest, int row, pl_str *out)
{
    double x = NAME, scale = (WIDTH - NAME - SUM) / largest;
    int y = row * ROW;
    char text[32];
    pl_str_printf(out, "<text class='end' x='%d' y='%d'>", NAME - 10, y + 16);
    if (more)
        pl_html_text(out, more);
    else if (c->bytes == 0)
        pl_str_append(out, "(the whole)");
    else
        pl_html_text_bytes(out, c->scope, c->bytes < 26 ? c->bytes : 26);
    pl_str_append(out, "</text>");
    for (int k = 0; k < PL_GROUP_COUNT; k++) {
        if (c->group_bytes[k] == 0) continue;
        double w = (double)c->group_bytes[k] * scale;
        pl_str_printf(out,
                      "<rect class='%s' x='%.2f' y='%d' width='%.2f' height='%d'><title>%s: %s bytes</title></rect>",
                      pl_html_group_class((pl_report_group)k), x, y + 4, w, BAR,
                      pl_report_group_title((pl_report_group)k), pl_format_count(c->group_bytes[k], text, sizeof text));
        x += w;
    }
    pl_str_printf(out, "<text class='soft' x='%.1f' y='%d'>%s</text>\n", x + 8, y + 16,
                  pl_format_bytes(c->total_bytes, text, sizeof text));
}

void pl_html_components(const pl_report_components *c, pl_str *out)
{
    pl_report_component rest = {0};
    size_t shown = c->count > SHOWN ? SHOWN : c->count;
    double largest = 1;
    char more[64];
    for (size_t i = 0; i < c->count; i++) {
        if (i < shown) {
            largest = fmax(largest, (double)c->item[i].total_bytes);
            continue;
        }
        for (int k = 0; k < PL_GROUP_COUNT; k++) rest.group_bytes[k] += c->item[i].group_bytes[k];
        rest.total_bytes += c->item[i].total_bytes;
    }
    largest = fmax(largest, (double)rest.total_bytes);
    pl_str_printf(out,
                  "<section><h2>By component, at the peak</h2>\n<svg viewBox='0 0 %d %zu' role='img' aria-label='bytes "
                  "by component'>\n",
                  WIDTH, ROW * (shown + (c->count > shown)));
    for (size_t i = 0; i < shown; i++) draw_component(&c->item[i], NULL, largest, (int)i, out);
    snprintf(more, sizeof more, "and %zu more", c->count - shown);
    if (c->count > shown) draw_component(&rest, more, largest, (int)shown, out);
    pl_str_append(out, "</svg>\n<div class='legend'>");
    for (int k = 0; k < PL_GROUP_COUNT; k++)
        pl_str_printf(out, "<span><i class='%s'></i>%s</span>", pl_html_group_class((pl_report_group)k),
                      pl_report_group_title((pl_report_group)k));
    pl_str_append(out, "</div></section>\n");
}

/* ---- losses ---- */

typedef struct frame {
    double left, right, low, high; /* of steps, of losses */
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

static void widen(frame *f, const pl_report_point *point, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(point[i].value) || !isfinite(point[i].step)) continue;
        f->left = fmin(f->left, point[i].step), f->right = fmax(f->right, point[i].step);
        f->low = fmin(f->low, point[i].value), f->high = fmax(f->high, point[i].value);
    }
}

/* A line through the points; where a loss is not finite it is interrupted. */
static void draw_curve(const frame *f, const pl_report_point *point, size_t count, const char *class)
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

static void draw_dots(const frame *f, const pl_report_point *point, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(point[i].value) && isfinite(point[i].step))
            pl_str_printf(f->out,
                          "<circle class='dot' cx='%.1f' cy='%.1f' r='3.2'><title>step %.0f: %.4f</title></circle>\n",
                          x_of(f, point[i].step), y_of(f, point[i].value), point[i].step, point[i].value);
}

static void draw_axes(const frame *f)
{
    double step = pl_html_tick(f->high - f->low, 6);
    for (double v = ceil(f->low / step) * step; v <= f->high; v += step)
        pl_str_printf(f->out,
                      "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/><text class='soft end' x='%d' "
                      "y='%.1f'>%.5g</text>\n",
                      LEFT, WIDTH - RIGHT, y_of(f, v), y_of(f, v), LEFT - 8, y_of(f, v) + 4.5, v);
    step = fmax(pl_html_tick(f->right - f->left, 8), 1);
    for (double v = ceil(f->left / step) * step; v <= f->right; v += step)
        pl_str_printf(f->out,
                      "<line class='axis' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft mid' x='%.1f' "
                      "y='%d'>%.8g</text>\n",
                      x_of(f, v), x_of(f, v), CURVE - BOTTOM, CURVE - BOTTOM + 5, x_of(f, v), CURVE - BOTTOM + 20, v);
    pl_str_printf(
        f->out,
        "<line class='axis' x1='%d' x2='%d' y1='%d' y2='%d'/><text class='soft mid' x='%d' y='%d'>step</text>\n", LEFT,
        WIDTH - RIGHT, CURVE - BOTTOM, CURVE - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, CURVE - 6);
}

void pl_html_losses(const pl_report_run *run, pl_str *out)
{
    frame f = {.left = INFINITY, .right = -INFINITY, .low = INFINITY, .high = -INFINITY, .out = out};
    widen(&f, run->training, run->training_count);
    widen(&f, run->validation, run->validation_count);
    if (!(f.left <= f.right)) return;
    double room = f.high > f.low ? 0.05 * (f.high - f.low) : 0.5;
    f.low -= room, f.high += room;
    if (f.right - f.left < 1) f.right = f.left + 1;
    pl_str_printf(
        out,
        "<section><h2>Loss</h2><p>nat per token</p>\n<svg viewBox='0 0 %d %d' role='img' aria-label='loss by step'>\n",
        WIDTH, CURVE);
    draw_axes(&f);
    draw_curve(&f, run->training, run->training_count, "train");
    draw_curve(&f, run->validation, run->validation_count, "valid");
    draw_dots(&f, run->validation, run->validation_count);
    pl_str_append(out, "</svg>\n<div class='legend'>");
    if (run->training_count) pl_str_append(out, "<span><i class='weight'></i>training</span>");
    if (run->validation_count) pl_str_append(out, "<span><i class='gradient'></i>validation</span>");
    pl_str_append(out, "</div></section>\n");
}

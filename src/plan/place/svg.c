/* The arena as a picture: time runs to the right, offset upward, one rectangle a buffer, the colour by the logarithm of
 * its size, so that alike sizes (layers) show as a pattern. The peak is the top of the frame; the dashed line is the
 * lower bound: with a gap between them there is air above it. */
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"

enum { WIDTH = 1200, HEIGHT = 700, LEFT = 116, RIGHT = 24, TOP = 64, BOTTOM = 64, TICKS = 6 };

typedef struct frame {
    uint64_t begin, end; /* time; exact, for late moments close together are one as doubles */
    double top;          /* bytes at the upper edge */
    double smallest, largest;
} frame;

static frame measure(const pl_place_problem *problem, const pl_place_solution *solution)
{
    frame f = {UINT64_MAX, 0, fmax((double)solution->peak, 1), INFINITY, 1};
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *b = &problem->buffers[i];
        if (!b->size) continue;
        if (b->lower < f.begin) f.begin = b->lower;
        if (b->upper > f.end) f.end = b->upper;
        f.smallest = fmin(f.smallest, (double)b->size), f.largest = fmax(f.largest, (double)b->size);
    }
    if (f.end < f.begin) f.begin = 0, f.end = 1, f.smallest = 1;
    return f;
}

static double x_of(const frame *f, uint64_t time)
{
    return LEFT + (double)(time - f->begin) / (double)(f->end - f->begin) * (WIDTH - LEFT - RIGHT);
}
static double y_of(const frame *f, double bytes) { return HEIGHT - BOTTOM - bytes / f->top * (HEIGHT - TOP - BOTTOM); }

/* XML takes no control characters and no bytes that are not UTF-8: one of them and nothing is shown. */
static void escape(pl_str *out, const char *text)
{
    size_t left = strlen(text), n;
    for (const char *c = text; left; c += n, left -= n) {
        n = pl_json_utf8_length((const unsigned char *)c, left);
        if (n == 0)
            n = 1, pl_str_append(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (*c == '&')
            pl_str_append(out, "&amp;");
        else if (*c == '<')
            pl_str_append(out, "&lt;");
        else if (*c == '>')
            pl_str_append(out, "&gt;");
        else if ((unsigned char)*c < 32)
            pl_str_append(out, " ");
        else
            pl_str_append_bytes(out, c, n);
    }
}

static void draw_buffer(const frame *f, const pl_place_buffer *b, size_t i, uint64_t offset, pl_str *out)
{
    double x = x_of(f, b->lower), y = y_of(f, (double)offset + (double)b->size), range = log(f->largest / f->smallest);
    double w = x_of(f, b->upper) - x, h = y_of(f, (double)offset) - y;
    double share = range > 0 ? log((double)b->size / f->smallest) / range : 1;
    char size[16];
    pl_str_printf(out, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='hsl(%.0f,%.0f%%,%.0f%%)'><title>", x,
                  y, fmax(w, 0.3), fmax(h, 0.3), 205 - 175 * share, 45 + 25 * share, 80 - 22 * share);
    if (b->id)
        escape(out, b->id);
    else
        pl_str_printf(out, "buffer %zu", i);
    pl_str_printf(out, ": %s at offset %" PRIu64 ", alive [%" PRIu64 ", %" PRIu64 ")</title></rect>\n",
                  pl_format_bytes(b->size, size, sizeof size), offset, b->lower, b->upper);
}

/* The largest of 1, 2, 5 × 10^k that gives at most TICKS + 1 steps over the range. */
static double tick_step(double range)
{
    double step = pow(10, floor(log10(range / TICKS)));
    static const double nice[] = {1, 2, 5, 10};
    for (int k = 0; k < 4; k++)
        if (range / (step * nice[k]) <= TICKS) return step * nice[k];
    return step * 10;
}

static void draw_times(const frame *f, pl_str *out)
{
    char label[32];
    uint64_t range = f->end - f->begin, step = (uint64_t)fmax(tick_step((double)range), 1);
    uint64_t at = (step - f->begin % step) % step; /* from the begin on */
    for (; at <= range; at += step) {
        double x = x_of(f, f->begin + at);
        pl_str_printf(out,
                      "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#444'/><text x='%.1f' y='%d' "
                      "text-anchor='middle'>%s</text>\n",
                      x, x, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 6, x, HEIGHT - BOTTOM + 22,
                      pl_format_count(f->begin + at, label, sizeof label));
        if (range - at < step) break; /* the next one might not fit 64 bits */
    }
}

static void draw_axes(const frame *f, pl_str *out)
{
    char label[32];
    pl_str_printf(out, "<g stroke='#8a8a8a' fill='none'><rect x='%d' y='%d' width='%d' height='%d'/></g>\n", LEFT, TOP,
                  WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    double step = tick_step(f->top);
    for (double bytes = 0; bytes <= f->top * 1.0001; bytes += step)
        pl_str_printf(out,
                      "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#444'/><text x='%d' y='%.1f' "
                      "text-anchor='end'>%s</text>\n",
                      LEFT - 6, LEFT, y_of(f, bytes), y_of(f, bytes), LEFT - 10, y_of(f, bytes) + 5,
                      pl_format_bytes((uint64_t)bytes, label, sizeof label));
    draw_times(f, out);
    pl_str_printf(out, "<text x='%d' y='%d' text-anchor='middle'>time</text>\n", (LEFT + WIDTH - RIGHT) / 2,
                  HEIGHT - 14);
    pl_str_printf(out, "<text x='18' y='%d' text-anchor='middle' transform='rotate(-90 18 %d)'>offset</text>\n",
                  (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2);
}

static void draw_title(const pl_place_problem *problem, const pl_place_solution *s, pl_str *out)
{
    char peak[16], bound[16], count[32];
    pl_str_printf(out, "<text x='%d' y='28' font-size='20' font-weight='600'>%s buffers: peak %s</text>\n", LEFT,
                  pl_format_count(problem->buffer_count, count, sizeof count),
                  pl_format_bytes(s->peak, peak, sizeof peak));
    double gap = s->lower_bound ? 100 * ((double)s->peak / (double)s->lower_bound - 1) : 0;
    pl_str_printf(out, "<text x='%d' y='50'>lower bound %s%s, gap %.2f %%%s; %s</text>\n", LEFT,
                  pl_format_bytes(s->lower_bound, bound, sizeof bound), s->lower_bound < s->peak ? " (dashed)" : "",
                  gap, s->optimal ? " (optimal)" : "", s->heuristic);
}

void place_svg(const pl_place_problem *problem, const pl_place_solution *s, pl_str *out)
{
    frame f = measure(problem, s);
    pl_str_printf(out,
                  "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' "
                  "font-family='system-ui, sans-serif' font-size='15' fill='#222'>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    pl_str_printf(out, "<rect width='%d' height='%d' fill='#fff'/>\n", WIDTH, HEIGHT);
    draw_title(problem, s, out);
    pl_str_printf(out, "<g stroke='#333' stroke-width='%s'>\n", problem->buffer_count > 3000 ? "0" : "0.4");
    for (size_t i = 0; i < problem->buffer_count; i++)
        if (problem->buffers[i].size) draw_buffer(&f, &problem->buffers[i], i, s->offsets[i], out);
    pl_str_append(out, "</g>\n");
    draw_axes(&f, out);
    if (s->lower_bound && s->lower_bound < s->peak)
        pl_str_printf(out,
                      "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#c00' stroke-width='1.5' "
                      "stroke-dasharray='8 5'/>\n",
                      LEFT, WIDTH - RIGHT, y_of(&f, (double)s->lower_bound), y_of(&f, (double)s->lower_bound));
    pl_str_append(out, "</svg>\n");
}

/* Cells of time × address. In each cell the buffer with the largest area inside it wins; a cell whose claims add up to
 * more than its own area, at some moment it covers, is marked '!' – which a right placement never shows, because claims
 * are clipped to the cell and lives do not overlap there. */
#include "map.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
enum { LEGEND = 12 };

typedef struct canvas {
    const pl_place_problem *problem;
    const pl_place_solution *solution;
    unsigned width, height;
    uint64_t begin, end;    /* of time; exact, for late moments close together are one as doubles */
    double peak;            /* of address */
    double *best, *claimed; /* by cell: the winner's area, all areas */
    char *cells;
    uint32_t *by_area; /* buffers, largest first */
} canvas;

static double area(const pl_place_buffer *b) { return (double)(b->upper - b->lower) * (double)b->size; }

static int compare_area(const void *left, const void *right, void *context)
{
    const canvas *c = context;
    uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
    double a = area(&c->problem->buffers[i]), b = area(&c->problem->buffers[j]);
    return a != b ? (a > b ? -1 : 1) : i < j ? -1 : i > j;
}

static double shared(double a_begin, double a_end, double b_begin, double b_end)
{
    double length = fmin(a_end, b_end) - fmax(a_begin, b_begin);
    return length > 0 ? length : 0;
}

static unsigned cell_of(double at, unsigned cells) { return at < cells ? (unsigned)at : cells; }

static void paint(canvas *c, uint32_t i, char letter)
{
    const pl_place_buffer *b = &c->problem->buffers[i];
    double offset = (double)c->solution->offsets[i];
    double dt = (double)(c->end - c->begin) / c->width, da = c->peak / c->height;
    double begin = (double)(b->lower - c->begin), end = (double)(b->upper - c->begin);
    unsigned x0 = cell_of(begin / dt, c->width), y0 = cell_of(offset / da, c->height);
    for (unsigned x = x0; x < c->width && x * dt < end; x++) {
        double time = shared(begin, end, x * dt, (x + 1) * dt) / dt;
        for (unsigned y = y0; y < c->height && y * da < offset + (double)b->size; y++) {
            size_t at = (size_t)y * c->width + x;
            double part = time * shared(offset, offset + (double)b->size, y * da, (y + 1) * da) / da;
            c->claimed[at] += part;
            if (part <= c->best[at]) continue;
            c->best[at] = part;
            c->cells[at] = letter;
        }
    }
}

static void print_legend(const canvas *c, size_t count, pl_str *out)
{
    char size[16];
    for (size_t k = 0; k < count && k < LEGEND; k++) {
        const pl_place_buffer *b = &c->problem->buffers[c->by_area[k]];
        pl_str_printf(out, "  %c ", letters[k % (sizeof letters - 1)]);
        if (b->id)
            pl_str_append(out, b->id);
        else
            pl_str_printf(out, "buffer %" PRIu32, c->by_area[k]);
        pl_str_printf(out, ", %s, alive [%" PRIu64 ", %" PRIu64 ")\n", pl_format_bytes(b->size, size, sizeof size),
                      b->lower, b->upper);
    }
    if (count > LEGEND) pl_str_printf(out, "  and %zu smaller ones\n", count - LEGEND);
}

static void print_rows(const canvas *c, pl_str *out)
{
    char size[16];
    for (unsigned y = c->height; y-- > 0;) {
        bool labelled = y == c->height - 1 || y == 0 || y == c->height / 2;
        double address = y == c->height - 1 ? c->peak : c->peak * y / c->height;
        pl_str_printf(out, "%9s |", labelled ? pl_format_bytes((uint64_t)address, size, sizeof size) : "");
        for (unsigned x = 0; x < c->width; x++) {
            size_t at = (size_t)y * c->width + x;
            char cell[2] = {c->claimed[at] > 1 + 1e-6 ? '!' : c->best[at] > 0 ? c->cells[at] : '.', 0};
            pl_str_append(out, cell);
        }
        pl_str_append(out, "|\n");
    }
    char last[24];
    int digits = snprintf(last, sizeof last, "%" PRIu64, c->end);
    char first[24];
    int used = snprintf(first, sizeof first, "%" PRIu64, c->begin);
    int gap = (int)c->width - digits - used;
    pl_str_printf(out, "%9s  %s%*s%s\n", "time", first, gap > 1 ? gap : 1, "", last);
}

static size_t list_buffers(canvas *c)
{
    size_t count = 0;
    c->begin = UINT64_MAX, c->end = 0;
    for (size_t i = 0; i < c->problem->buffer_count; i++) {
        const pl_place_buffer *b = &c->problem->buffers[i];
        if (!b->size) continue;
        c->by_area[count++] = (uint32_t)i;
        if (b->lower < c->begin) c->begin = b->lower;
        if (b->upper > c->end) c->end = b->upper;
    }
    qsort_r(c->by_area, count, sizeof *c->by_area, compare_area, c);
    return count;
}

pl_status pl_place_map(const pl_place_problem *problem, const pl_place_solution *solution, unsigned width,
                       unsigned height, pl_str *out, pl_error *err)
{
    if (!width || !height) return PL_OK;
    canvas c = {.problem = problem,
                .solution = solution,
                .width = width,
                .height = height,
                .peak = fmax((double)solution->peak, 1)};
    size_t cells = (size_t)width * height;
    c.best = pl_alloc(cells, sizeof *c.best);
    c.claimed = pl_alloc(cells, sizeof *c.claimed);
    c.cells = pl_alloc(cells, 1);
    c.by_area = pl_alloc(problem->buffer_count, sizeof *c.by_area);
    int refused = !c.best || !c.claimed || !c.cells || !c.by_area;
    size_t count = refused ? 0 : list_buffers(&c);
    if (!refused && !count) pl_str_append(out, "(nothing to place)\n");
    if (count) {
        for (size_t k = 0; k < count; k++) paint(&c, c.by_area[k], letters[k % (sizeof letters - 1)]);
        print_rows(&c, out);
        print_legend(&c, count, out);
    }
    pl_free(c.by_area);
    pl_free(c.cells);
    pl_free(c.claimed);
    pl_free(c.best);
    return refused || out->failed ? pl_fail(err, PL_E_NOMEM, "no memory to draw the arena map") : PL_OK;
}

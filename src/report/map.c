/* Cells of time × address. A block adds its area to its role in every cell that it meets; the role with the largest
 * area gives the cell its letter, and a cell less than half full is '.'. (plan/place/map.h draws a bare placement,
 * buffer by buffer; a reader of a plan asks what the bytes are for.)
 *
 *   12.0 MB |GGGGSSSSSSSSSSSSSSSSStttt....|
 *    6.0 MB |OOOOOOOOOOOOOOOOOOOOOOOOOOOOO|
 *       0 B |WWWWWWWWWWWWWWWWWWWWWWWWWWWWW|
 *            train ^ peak          evaluate
 */
#include "report/map.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/account.h"

enum { LABEL = 11 }; /* columns left of the picture */

static const char letters[PL_ROLE_COUNT + 1] = "WGOACStkiorf";
static const unsigned char ansi[PL_ROLE_COUNT] = {34, 33, 35, 94, 36, 32, 92, 90, 37, 37, 31, 31};

typedef struct canvas {
    unsigned width, height;
    double positions, top; /* of time, of address */
    float *area;           /* [height][width][role], 1 = the whole cell */
} canvas;

static double overlap(double a_begin, double a_end, double b_begin, double b_end)
{
    double length = fmin(a_end, b_end) - fmax(a_begin, b_begin);
    return length > 0 ? length : 0;
}

/* All in units of cells. */
static void paint(canvas *c, const pl_block *b, pl_role role)
{
    if (b->bytes == 0 || b->space != PL_SPACE_RAM || b->last <= b->first) return;
    double x0 = (double)b->first / c->positions * c->width, x1 = (double)b->last / c->positions * c->width;
    double y0 = (double)b->offset / c->top * c->height, y1 = (double)(b->offset + b->bytes) / c->top * c->height;
    for (unsigned y = (unsigned)y0; y < c->height && y < y1; y++)
        for (unsigned x = (unsigned)x0; x < c->width && x < x1; x++)
            c->area[((size_t)y * c->width + x) * PL_ROLE_COUNT + role] +=
                (float)(overlap(x0, x1, x, x + 1) * overlap(y0, y1, y, y + 1));
}

/* The role of a cell, or PL_ROLE_COUNT when it is mostly free. */
static pl_role cell_role(const canvas *c, unsigned x, unsigned y)
{
    const float *area = &c->area[((size_t)y * c->width + x) * PL_ROLE_COUNT];
    pl_role best = PL_ROLE_WEIGHT;
    float sum = 0;
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        sum += area[r];
        if (area[r] > area[best]) best = (pl_role)r;
    }
    return sum < 0.5f ? PL_ROLE_COUNT : best;
}

static void print_row(const canvas *c, unsigned y, bool color, pl_str *out)
{
    pl_role before = PL_ROLE_COUNT;
    for (unsigned x = 0; x < c->width; x++) {
        pl_role role = cell_role(c, x, y);
        if (color && role != before) pl_str_printf(out, "\033[%dm", role == PL_ROLE_COUNT ? 0 : ansi[role]);
        pl_str_append_bytes(out, role == PL_ROLE_COUNT ? "." : &letters[role], 1);
        before = role;
    }
    if (color && before != PL_ROLE_COUNT) pl_str_append(out, "\033[0m");
}

static void print_rows(const canvas *c, bool color, pl_str *out)
{
    char size[16];
    for (unsigned y = c->height; y-- > 0;) {
        bool labelled = y == c->height - 1 || y == 0 || y % 6 == 0;
        double address = y == c->height - 1 ? c->top : c->top * y / c->height;
        pl_str_printf(out, "%*s |", LABEL - 2, labelled ? pl_format_bytes((uint64_t)address, size, sizeof size) : "");
        print_row(c, y, color, out);
        pl_str_append(out, "|\n");
    }
}

static unsigned column_of(const canvas *c, uint64_t position)
{
    return (unsigned)((double)position / c->positions * c->width);
}

/* Writes text into the line at the column when it is free there: nothing that stands in the line is overwritten. */
static bool put(char *line, unsigned width, unsigned column, const char *text)
{
    size_t n = strlen(text);
    if (n > width) return true; /* no line is long enough */
    if (column + n > width) column = (unsigned)(width - n);
    for (size_t i = 0; i <= n && column + i < width; i++)
        if (line[column + i] != ' ') return false;
    memcpy(line + column, text, n);
    return true;
}

static void print_line(pl_str *out, char *line, unsigned width)
{
    while (width && line[width - 1] == ' ') width--;
    pl_str_pad(out, ' ', LABEL);
    pl_str_append_bytes(out, line, width);
    pl_str_append(out, "\n");
}

static void put_peak(const canvas *c, unsigned column, char *line)
{
    memset(line, ' ', c->width);
    if (column + 6 <= c->width)
        put(line, c->width, column, "^ peak");
    else if (column >= 5)
        put(line, c->width, column - 5, "peak ^");
}

/* Under the picture: the peak, then each program where it begins; names that meet go into further lines. */
static void print_time(const canvas *c, const pl_plan *p, char *line, pl_str *out)
{
    bool left = true, missed;
    put_peak(c, column_of(c, p->arena->peak_position), line);
    print_line(out, line, c->width);
    for (size_t from = 0, again; left; from = again) {
        memset(line, ' ', c->width);
        missed = left = false;
        again = p->graph->region_count;
        for (size_t i = from; i < p->graph->region_count; i++) {
            uint64_t first, last;
            char name[32] = "|";
            if (p->graph->region[i].parent != PL_NONE) continue;
            pl_plan_program_span(p->graph, (pl_id)i, &first, &last);
            if (last == first) continue;
            memcpy(name + 1, p->graph->region[i].name, strnlen(p->graph->region[i].name, sizeof name - 2));
            if (missed || !put(line, c->width, column_of(c, first), name)) {
                if (!missed) again = i;
                missed = left = true;
            }
        }
        print_line(out, line, c->width);
    }
}

static void print_legend(const pl_plan *p, unsigned width, bool color, pl_str *out)
{
    bool used[PL_ROLE_COUNT] = {0};
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (p->value[i].bytes) used[p->graph->value[i].role] = true;
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->workspace[i].bytes) used[PL_ROLE_WORKSPACE] = true;
    size_t column = 0;
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        if (!used[r]) continue;
        size_t n = strlen(pl_report_role_title((pl_role)r)) + 4;
        if (column && column + n > width) pl_str_append(out, "\n"), column = 0;
        pl_str_pad(out, ' ', column ? 2 : LABEL);
        if (color)
            pl_str_printf(out, "\033[%dm%c\033[0m", ansi[r], letters[r]);
        else
            pl_str_append_bytes(out, &letters[r], 1);
        pl_str_printf(out, " %s", pl_report_role_title((pl_role)r));
        column += n;
    }
    if (column + 8 > width) pl_str_append(out, "\n"), pl_str_pad(out, ' ', LABEL - 2);
    pl_str_append(out, "  . free\n");
}

pl_status pl_report_map(const pl_plan *p, unsigned width, unsigned height, bool color, pl_str *out, pl_error *err)
{
    const pl_graph *g = p->graph;
    if (!width || !height || g->node_count == 0 || p->arena->bytes == 0) return PL_OK;
    canvas c = {.width = width, .height = height, .positions = (double)g->node_count, .top = (double)p->arena->bytes};
    char *line = pl_alloc(width, 1);
    c.area = pl_alloc((size_t)width * height, PL_ROLE_COUNT * sizeof *c.area);
    bool refused = !line || !c.area;
    if (!refused) {
        for (size_t i = 0; i < g->value_count; i++) paint(&c, &p->value[i], g->value[i].role);
        for (size_t i = 0; i < g->node_count; i++) paint(&c, &p->workspace[i], PL_ROLE_WORKSPACE);
        print_rows(&c, color, out);
        print_time(&c, p, line, out);
        print_legend(p, width, color, out);
    }
    pl_free(line);
    pl_free(c.area);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to draw the arena map") : PL_OK;
}

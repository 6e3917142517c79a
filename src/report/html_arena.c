/* The arena: time (positions of the schedule) to the right, addresses upward, a rectangle a block. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "report/html.h"

enum { WIDTH = 1080, HEIGHT = 540, LEFT = 74, RIGHT = 14, TOP = 26, BOTTOM = 46 };

typedef struct frame {
    const pl_plan *plan;
    double positions, top;
    pl_str *out;
} frame;

static double x_of(const frame *f, double position) { return LEFT + position / f->positions * (WIDTH - LEFT - RIGHT); }
static double y_of(const frame *f, double bytes) { return HEIGHT - BOTTOM - bytes / f->top * (HEIGHT - TOP - BOTTOM); }

/* A block thinner than its edge would be hidden by it, so its edge has its own colour. */
static bool begin_block(const frame *f, const pl_block *b, pl_role role)
{
    if (b->bytes == 0 || b->space != PL_SPACE_RAM) return false;
    double x = x_of(f, (double)b->first), y = y_of(f, (double)(b->offset + b->bytes));
    double w = x_of(f, (double)b->last) - x, h = y_of(f, (double)b->offset) - y;
    pl_str_printf(f->out, "<rect class='%s%s' x='%.7g' y='%.7g' width='%.6g' height='%.6g'><title>", pl_role_name(role),
                  w < 2.5 || h < 2.5 ? " thin" : "", x, y, w, h);
    return true;
}

static void say_component(const frame *f, const char *scope)
{
    if (!scope[0]) return;
    pl_str_append(f->out, ", part of ");
    pl_html_text(f->out, scope);
}

static void say_bytes(const frame *f, const pl_block *b, pl_role role, const char *scope)
{
    char count[32], bytes[16];
    pl_str_printf(f->out, "\n%s, %s bytes (%s)", pl_role_name(role), pl_format_count(b->bytes, count, sizeof count),
                  pl_format_bytes(b->bytes, bytes, sizeof bytes));
    say_component(f, scope);
}

static void end_block(const frame *f, const pl_block *b)
{
    char offset[32], first[32], last[32];
    pl_str_printf(f->out, "\noffset %s, alive from node %s to %s</title></rect>\n",
                  pl_format_count(b->offset, offset, sizeof offset), pl_format_count(b->first, first, sizeof first),
                  pl_format_count(b->last - 1, last, sizeof last));
}

static const char *reason_of(pl_role role)
{
    static const char *const reasons[PL_ROLE_COUNT] = {
        [PL_ROLE_WEIGHT] = "the model itself",
        [PL_ROLE_GRADIENT] = "what the backward pass finds and the update applies",
        [PL_ROLE_OPTIMIZER] = "what the optimizer remembers from step to step",
        [PL_ROLE_AVERAGE] = "a running average of weights",
        [PL_ROLE_STATE] = "what is carried from step to step",
        [PL_ROLE_SAVED] = "kept from the forward pass for the backward pass",
        [PL_ROLE_TEMPORARY] = "a result that later nodes read",
        [PL_ROLE_WORKSPACE] = "room that the kernel of one node computes in",
        [PL_ROLE_INPUT] = "what the program is given",
        [PL_ROLE_OUTPUT] = "what the program returns",
        [PL_ROLE_STAGING] = "where data wait before or after they are computed with",
        [PL_ROLE_IO] = "room for reading and writing files",
    };
    return reasons[role];
}

static void say_node(const frame *f, const char *what, pl_id node)
{
    char position[32];
    const pl_node *n = &f->plan->graph->node[node];
    pl_str_printf(f->out, "%s %s", what, pl_op_name(n->op));
    if (n->scope[0]) pl_str_append(f->out, " of ");
    pl_html_text(f->out, n->scope);
    pl_str_printf(f->out, " (node %s)", pl_format_count(node, position, sizeof position));
}

/* Why it is there: what it is for, who makes it, who needs it last. */
static void say_reason(const frame *f, pl_id value, pl_id last_reader)
{
    const pl_value *v = &f->plan->graph->value[value];
    const bool is_unread = last_reader == PL_NONE && v->role == PL_ROLE_TEMPORARY;
    pl_str_printf(f->out, "\n%s", is_unread ? "a result that nothing reads here" : reason_of(v->role));
    if (v->program == PL_NONE)
        pl_str_append(f->out, "; held as long as the process");
    else if (v->producer != PL_NONE)
        say_node(f, "; made by", v->producer);
    if (last_reader != PL_NONE) say_node(f, "; last read by", last_reader);
    if (v->program != PL_NONE && last_reader != PL_NONE && f->plan->value[value].last > last_reader + 1)
        pl_str_append(f->out, "; kept until its program, or the part of it that repeats, has ended");
}

/* The last node that reads each value, or a view or a version of it: of storage roots. NULL when memory is refused. */
static pl_id *find_last_readers(const pl_graph *g)
{
    pl_id *last = pl_alloc(g->value_count + 1, sizeof *last);
    for (size_t i = 0; last && i < g->value_count; i++) last[i] = PL_NONE;
    for (size_t i = 0; last && i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (g->node[i].in[k] != PL_NONE) last[pl_value_root(g, g->node[i].in[k])] = (pl_id)i;
    return last;
}

static void draw_values(const frame *f)
{
    const pl_graph *g = f->plan->graph;
    pl_id *last = find_last_readers(g);
    if (!last) f->out->failed = 1;
    for (size_t i = 0; last && i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        const pl_block *b = &f->plan->value[i];
        char shape[160];
        if (!begin_block(f, b, v->role)) continue;
        pl_html_text(f->out, v->name);
        pl_str_printf(f->out, " %s %s", pl_dtype_name(v->dtype), pl_shape_text(&v->shape, shape, sizeof shape));
        say_bytes(f, b, v->role, v->scope);
        say_reason(f, (pl_id)i, last[i]);
        end_block(f, b);
    }
    pl_free(last);
}

static void draw_workspaces(const frame *f)
{
    const pl_graph *g = f->plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_block *b = &f->plan->workspace[i];
        if (!begin_block(f, b, PL_ROLE_WORKSPACE)) continue;
        pl_str_printf(f->out, "workspace of %s", pl_op_name(g->node[i].op));
        say_bytes(f, b, PL_ROLE_WORKSPACE, g->node[i].scope);
        pl_str_printf(f->out, "\n%s", reason_of(PL_ROLE_WORKSPACE));
        end_block(f, b);
    }
}

static void draw_blocks(const frame *f)
{
    pl_str_append(f->out, "<g class='blocks'>\n");
    draw_values(f);
    draw_workspaces(f);
    pl_str_append(f->out, "</g>\n");
}

/* Lines lie under the blocks; their words, which stand within a narrow picture, above them. */
static void draw_scale(const frame *f, bool words)
{
    char label[16];
    double step = pl_html_tick(f->top, 6);
    pl_str_append(f->out, "<g class='ticks'>\n");
    for (double bytes = 0; bytes <= f->top * 1.0001; bytes += step)
        if (words)
            pl_str_printf(f->out, "<text class='soft end tick' data-y='%.0f' x='%d' y='%.1f'>%s</text>\n", bytes,
                          LEFT - 8, y_of(f, bytes) + 4.5, pl_format_bytes((uint64_t)bytes, label, sizeof label));
        else
            pl_str_printf(f->out, "<line class='grid' data-y='%.0f' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>\n", bytes,
                          LEFT, WIDTH - RIGHT, y_of(f, bytes), y_of(f, bytes));
    pl_str_append(f->out, "</g>\n");
}

/* Names of the programs below their stretch; one that is too narrow for its name has it in a second line. */
static void draw_programs(const frame *f)
{
    const pl_graph *g = f->plan->graph;
    double free_from[2] = {0, 0};
    for (size_t i = 0; i < g->region_count; i++) {
        uint64_t first, last;
        if (g->region[i].parent != PL_NONE) continue;
        pl_plan_program_span(g, (pl_id)i, &first, &last);
        if (first == last) continue;
        double x = x_of(f, (double)first), end = x + 8 * (double)strlen(g->region[i].name) + 12;
        bool flip = end > WIDTH;
        if (flip) end = WIDTH;
        int line = x >= free_from[0] && !(flip && free_from[0] > x) ? 0 : 1;
        free_from[line] = end;
        pl_str_printf(f->out,
                      "<line class='axis' data-x='%" PRIu64
                      "' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft wide%s' "
                      "data-x='%" PRIu64 "' x='%.1f' y='%d'>",
                      first, x, x, TOP, HEIGHT - BOTTOM + 8 + 16 * line, flip ? " end" : "", first,
                      flip ? WIDTH - 2 : x + 5, HEIGHT - BOTTOM + 17 + 16 * line);
        pl_html_text(f->out, g->region[i].name);
        pl_str_append(f->out, "</text>\n");
    }
}

/* Where the picture is narrow the names would run into each other: then they stand below it. */
static void list_programs(const pl_graph *g, pl_str *out)
{
    const char *before = "From left to right: ";
    pl_str_append(out, "<p class='narrow'>");
    for (size_t i = 0; i < g->region_count; i++) {
        uint64_t first, last;
        if (g->region[i].parent != PL_NONE) continue;
        pl_plan_program_span(g, (pl_id)i, &first, &last);
        if (first == last) continue;
        pl_str_append(out, before);
        pl_html_text(out, g->region[i].name);
        before = ", ";
    }
    pl_str_append(out, "</p>\n");
}

/* Lines and words that move with the blocks (explore.js) say where they belong on the axes. */
static void draw_level(const frame *f, double bytes)
{
    pl_str_printf(f->out, "<line class='mark' data-y='%.0f' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>\n", bytes, LEFT,
                  WIDTH - RIGHT, y_of(f, bytes), y_of(f, bytes));
}

/* A budget below the peak has its words below its line, so that the two never meet. */
static void draw_budget(const frame *f, double budget_top, uint64_t budget_bytes)
{
    char text[16];
    if (budget_top <= 0) return;
    double y = y_of(f, budget_top);
    bool over = budget_top < (double)f->plan->arena->bytes;
    draw_level(f, budget_top);
    pl_str_printf(
        f->out,
        "<text class='mark halo' data-y='%.0f' x='%d' y='%.1f'>budget %s, less the rest of the process</text>\n",
        budget_top, LEFT + 8, over ? y + 16 : y - 7, pl_format_bytes(budget_bytes, text, sizeof text));
}

static void draw_peak(const frame *f)
{
    const pl_plan *p = f->plan;
    char text[16];
    double x = x_of(f, (double)p->arena->peak_position + 0.5), y = y_of(f, (double)p->arena->bytes);
    bool flip = x > WIDTH / 2.0;
    pl_str_printf(f->out, "<line class='mark' data-x='%.1f' x1='%.1f' x2='%.1f' y1='%.1f' y2='%d'/>\n",
                  (double)p->arena->peak_position + 0.5, x, x, y, HEIGHT - BOTTOM);
    draw_level(f, (double)p->arena->bytes);
    pl_str_printf(f->out,
                  "<text class='mark halo%s' data-x='%.1f' data-y='%" PRIu64 "' x='%.1f' y='%.1f'>peak %s at node "
                  "%" PRIu64 "</text>\n",
                  flip ? " end" : "", (double)p->arena->peak_position + 0.5, p->arena->bytes, flip ? x - 6 : x + 6,
                  y - 7, pl_format_bytes(p->arena->bytes, text, sizeof text), p->arena->peak_position);
}

static void draw_legend(const frame *f, pl_str *out)
{
    const pl_plan *p = f->plan;
    bool used[PL_ROLE_COUNT] = {0};
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (p->value[i].bytes) used[p->graph->value[i].role] = true;
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->workspace[i].bytes) used[PL_ROLE_WORKSPACE] = true;
    pl_str_append(out, "<div class='legend'>");
    for (int r = 0; r < PL_ROLE_COUNT; r++)
        if (used[r])
            pl_str_printf(out, "<span><i class='%s'></i>%s</span>", pl_role_name((pl_role)r),
                          pl_report_role_title((pl_role)r));
    pl_str_append(out, "</div>\n");
}

/* How high the arena could be: the budget less everything charged that is not the arena. 0: not shown, since there is
 * no budget, it is below that, or so far above that the picture would be mostly empty. */
static double budget_in_arena(const pl_plan *p, uint64_t budget_bytes)
{
    uint64_t others = pl_plan_charged_bytes(p) - p->arena->bytes;
    if (budget_bytes == PL_REPORT_NO_BUDGET || budget_bytes <= others) return 0;
    double room = (double)(budget_bytes - others);
    return room < 1.8 * (double)p->arena->bytes ? room : 0;
}

void pl_html_arena(const pl_plan *p, uint64_t budget_bytes, pl_str *out)
{
    if (p->graph->node_count == 0 || p->arena->bytes == 0) return;
    double budget = budget_in_arena(p, budget_bytes), arena = (double)p->arena->bytes;
    frame f = {.plan = p,
               .positions = (double)p->graph->node_count,
               .top = 1.02 * (budget > arena ? budget : arena),
               .out = out};
    pl_str_append(out, "<p>Nodes in the order of the schedule to the right, addresses upward; point at a block for its "
                       "name, size and life.</p>\n");
    pl_str_append(out, "<div class='explore'>\n");
    pl_str_printf(out,
                  "<svg viewBox='0 0 %d %d' role='img' aria-label='arena over time' data-frame='%d %d %d %d' "
                  "data-right='%.0f node' data-up='%.0f B'>\n",
                  WIDTH, HEIGHT, LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, f.positions, f.top);
    pl_str_printf(out, "<rect class='free' x='%d' y='%.1f' width='%d' height='%.1f'/>\n", LEFT, y_of(&f, arena),
                  WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - y_of(&f, arena));
    draw_scale(&f, false);
    draw_blocks(&f);
    draw_scale(&f, true);
    draw_programs(&f);
    draw_budget(&f, budget, budget_bytes);
    draw_peak(&f);
    pl_str_append(out, "</svg>\n</div>\n");
    list_programs(p->graph, out);
    draw_legend(&f, out);
}

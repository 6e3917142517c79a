/* The schedule of a training step: one lane a phase, a rectangle a node, as wide as all of its runs are predicted to
 * take (all alike when that is not known). A repeated region is drawn once, with its number of trips above. */
#include <inttypes.h>

#include "base/units.h"
#include "ir/properties.h"
#include "report/html.h"

enum { WIDTH = 1080, LEFT = 74, RIGHT = 14, TOP = 30, LANE = 36, KINDS = 7 };

static const char *const kind_class[KINDS + 1] = {"weight",    "gradient", "saved",   "optimizer",
                                                  "temporary", "input",    "staging", "workspace"};

typedef struct line {
    const pl_plan *plan;
    pl_id train;
    bool timed;
    double whole; /* length of a step: seconds or nodes */
    pl_report_kind kind[PL_OP_COUNT];
    size_t kinds;
    pl_str *out;
} line;

static bool belongs(const line *l, const pl_node *n)
{
    return !n->dead && pl_region_program(l->plan->graph, n->region) == l->train;
}

static double length_of(const line *l, size_t node)
{
    const pl_graph *g = l->plan->graph;
    return l->timed ? l->plan->seconds[node] * (double)pl_node_trips(g, &g->node[node]) : 1;
}
static double x_of(const line *l, double at) { return LEFT + at / l->whole * (WIDTH - LEFT - RIGHT); }

static const char *class_of(const line *l, pl_op op)
{
    for (size_t k = 0; k < l->kinds && k < KINDS; k++)
        if (l->kind[k].op == op) return kind_class[k];
    return kind_class[KINDS];
}

static void draw_node(const line *l, size_t i, double at)
{
    const pl_node *n = &l->plan->graph->node[i];
    char seconds[32], number[32];
    const double x = x_of(l, at), w = x_of(l, at + length_of(l, i)) - x;
    pl_str_printf(l->out, "<rect class='%s%s' x='%.7g' y='%d' width='%.6g' height='%d'><title>%s", class_of(l, n->op),
                  w < 2.5 ? " thin" : "", x, TOP + LANE * (int)n->phase + 3, w, LANE - 6, pl_op_name(n->op));
    if (n->scope[0]) pl_str_append(l->out, " of ");
    pl_html_text(l->out, n->scope);
    pl_str_printf(l->out, "\nnode %s, %s", pl_format_count(i, number, sizeof number), pl_phase_name(n->phase));
    if (l->timed)
        pl_str_printf(l->out, "\npredicted %s", pl_format_seconds(l->plan->seconds[i], seconds, sizeof seconds));
    const uint64_t trips = pl_node_trips(l->plan->graph, n);
    if (trips > 1)
        pl_str_printf(l->out, "%s%s times", l->timed ? ", " : "\n", pl_format_count(trips, number, sizeof number));
    pl_str_append(l->out, "</title></rect>\n");
}

/* A bracket over the nodes of a repeated region (the innermost that repeats). */
static void draw_repeats(const line *l)
{
    const pl_graph *g = l->plan->graph;
    for (size_t r = 0; r < g->region_count; r++) {
        if (g->region[r].trip < 2 || pl_region_program(g, (pl_id)r) != l->train) continue;
        double at = 0, first = -1, last = 0;
        for (size_t i = 0; i < g->node_count; i++) {
            if (!belongs(l, &g->node[i])) continue;
            if (g->node[i].region == r && first < 0) first = at;
            at += length_of(l, i);
            if (g->node[i].region == r) last = at;
        }
        if (first < 0) continue;
        double x0 = x_of(l, first), x1 = x_of(l, last);
        pl_str_printf(
            l->out,
            "<line class='axis' data-x='%.9g %.9g' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft mid' "
            "data-x='%.9g' x='%.1f' y='%d'>",
            first, last, x0, x1, TOP - 8, TOP - 8, (first + last) / 2, (x0 + x1) / 2, TOP - 13);
        pl_html_text(l->out, g->region[r].name);
        pl_str_printf(l->out, ": %" PRIu64 " times</text>\n", g->region[r].trip);
    }
}

static void draw_lanes(const line *l)
{
    for (int phase = 0; phase < PL_PHASE_COUNT; phase++)
        pl_str_printf(
            l->out,
            "<text class='soft end wide' x='%d' y='%d'>%s</text><line class='grid' x1='%d' x2='%d' y1='%d' y2='%d'/>\n",
            LEFT - 8, TOP + LANE * phase + LANE / 2 + 5, pl_phase_name((pl_phase)phase), LEFT, WIDTH - RIGHT,
            TOP + LANE * (phase + 1), TOP + LANE * (phase + 1));
    char label[32];
    int y = TOP + LANE * PL_PHASE_COUNT;
    double step = pl_html_tick(l->whole, 8);
    pl_str_append(l->out, "<g class='ticks'>\n");
    for (double at = 0; at <= l->whole; at += step) {
        if (l->timed)
            pl_format_seconds(at, label, sizeof label);
        else
            pl_format_count((uint64_t)at, label, sizeof label);
        pl_str_printf(
            l->out,
            "<line class='axis' data-x='%.9g' x1='%.1f' x2='%.1f' y1='%d' y2='%d'/><text class='soft mid step' "
            "data-x='%.9g' x='%.1f' y='%d'>%s</text>\n",
            at, x_of(l, at), x_of(l, at), y, y + 5, at, x_of(l, at), y + 20, at == 0 ? "0" : label);
    }
    pl_str_append(l->out, "</g>\n");
}

/* Where the picture is narrow their names would lie on the bars: then they stand below it. */
static void name_lanes(pl_str *out)
{
    pl_str_append(out, "<p class='narrow'>From top to bottom: ");
    for (int phase = 0; phase < PL_PHASE_COUNT; phase++)
        pl_str_printf(out, "%s%s", phase ? ", " : "", pl_phase_name((pl_phase)phase));
    pl_str_append(out, ".</p>\n");
}

static void draw_legend(const line *l)
{
    pl_str_append(l->out, "<div class='legend'>");
    for (size_t k = 0; k < l->kinds && k < KINDS; k++)
        pl_str_printf(l->out, "<span><i class='%s'></i>%s</span>", kind_class[k], pl_op_name(l->kind[k].op));
    if (l->kinds > KINDS) pl_str_printf(l->out, "<span><i class='%s'></i>others</span>", kind_class[KINDS]);
    pl_str_append(l->out, "</div>\n");
}

void pl_html_timeline(const pl_plan *p, pl_str *out)
{
    line l = {.plan = p, .train = pl_graph_find_trained(p->graph), .out = out};
    char seconds[32];
    if (l.train == PL_NONE) return;
    double total = pl_plan_program_seconds(p, l.train), at = 0;
    l.timed = total > 0;
    l.kinds = pl_report_kinds(p, l.train, l.kind);
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (belongs(&l, &p->graph->node[i])) l.whole += length_of(&l, i);
    if (!(l.whole > 0)) return;
    pl_str_append(out, "<section><h2>Schedule of a training step</h2><p>");
    if (l.timed)
        pl_str_printf(out, "Predicted: %s a step. Repeated nodes are drawn once, as wide as all of their runs.",
                      pl_format_seconds(total, seconds, sizeof seconds));
    else
        pl_str_append(out, "Nodes in their order, each equally wide: this plan has no predicted times.");
    const int height = TOP + LANE * PL_PHASE_COUNT;
    pl_str_printf(out,
                  "</p>\n<div class='explore'>\n<svg viewBox='0 0 %d %d' role='img' aria-label='schedule' "
                  "data-frame='%d %d %d %d' data-right='%.9g %s'>\n",
                  WIDTH, height + 30, LEFT, TOP, WIDTH - LEFT - RIGHT, height - TOP, l.whole, l.timed ? "s" : "node");
    draw_lanes(&l);
    draw_repeats(&l);
    pl_str_append(out, "<g class='blocks'>\n");
    for (size_t i = 0; i < p->graph->node_count; i++) {
        if (!belongs(&l, &p->graph->node[i])) continue;
        draw_node(&l, i, at);
        at += length_of(&l, i);
    }
    pl_str_append(out, "</g>\n</svg>\n</div>\n");
    name_lanes(out);
    draw_legend(&l);
    pl_str_append(out, "</section>\n");
}

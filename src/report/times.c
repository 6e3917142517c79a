#include "report/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "ir/op.h"
#include "report/table.h"

/* A node that takes less than this share of its program says nothing about rates: the clock is too coarse for it. */
#define RATE_SHARE 1e-3

typedef struct node_time {
    double trips, seconds; /* of one execution; negative: not known */
    pl_cost cost;
} node_time;

static node_time time_of(const pl_plan *p, size_t i)
{
    const pl_graph *g = p->graph;
    return (node_time){.trips = (double)pl_node_trips(g, &g->node[i]),
                       .seconds = p->seconds[i],
                       .cost = pl_op_rule_of(g->node[i].op)->cost(g, &g->node[i])};
}

static void learn_rates(const pl_plan *p, const pl_components *c, pl_report_times *t)
{
    for (size_t i = 0; i < p->graph->node_count; i++) {
        if (c->of[i] == PL_COMPONENT_NONE) continue;
        const node_time n = time_of(p, i);
        if (!(n.seconds > 0) || n.seconds * n.trips < RATE_SHARE * t->predicted_seconds) continue;
        const double flops = n.cost.flops / n.seconds, bytes = n.cost.bytes / n.seconds;
        if (flops > t->flops_per_second) t->flops_per_second = flops;
        if (bytes > t->bytes_per_second) t->bytes_per_second = bytes;
    }
}

/* What was measured to take less (a node too small to set a rate) takes that. */
static double least_of(const pl_report_times *t, const node_time *n)
{
    if (!(t->flops_per_second > 0) || !(t->bytes_per_second > 0)) return -1;
    const double computing = n->cost.flops / t->flops_per_second, moving = n->cost.bytes / t->bytes_per_second;
    const double least = computing > moving ? computing : moving;
    return n->trips * (n->seconds >= 0 && n->seconds < least ? n->seconds : least);
}

/* A sum that lacks a part is not known. */
static double plus(double sum, double part) { return sum < 0 || part < 0 ? -1 : sum + part; }

static void add_node(const pl_plan *p, size_t i, pl_report_time *row, pl_report_times *t)
{
    const node_time n = time_of(p, i);
    row->predicted_seconds = plus(row->predicted_seconds, n.seconds < 0 ? -1 : n.trips * n.seconds);
    row->flops += n.trips * n.cost.flops;
    row->bytes += n.trips * n.cost.bytes;
    row->least_seconds = plus(row->least_seconds, least_of(t, &n));
}

void pl_report_times_predict(const pl_plan *p, pl_id program, const pl_components *c, pl_report_times *t)
{
    *t = (pl_report_times){.count = c->count, .predicted_seconds = -1};
    if (program == PL_NONE) return;
    snprintf(t->program, sizeof t->program, "%s", p->graph->region[program].name);
    snprintf(t->run, sizeof t->run, "run");
    const double predicted = pl_plan_program_seconds(p, program);
    t->predicted_seconds = predicted > 0 ? predicted : -1; /* without a calibration all are 0 */
    for (size_t i = 0; i < c->count; i++) {
        t->row[i].phase = c->item[i].phase;
        snprintf(t->row[i].name, sizeof t->row[i].name, "%.*s", (int)c->item[i].bytes, c->item[i].name);
    }
    learn_rates(p, c, t);
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (c->of[i] != PL_COMPONENT_NONE) add_node(p, i, &t->row[c->of[i]], t);
    for (size_t i = 0; i < c->count && predicted == 0; i++) t->row[i].predicted_seconds = -1;
}

pl_report_time pl_report_times_sum(const pl_report_times *t)
{
    pl_report_time sum = {.name = "sum"};
    for (size_t i = 0; i < t->count; i++) {
        const pl_report_time *r = &t->row[i];
        sum.seconds += r->seconds;
        sum.predicted_seconds = plus(sum.predicted_seconds, r->predicted_seconds);
        sum.flops += r->flops;
        sum.bytes += r->bytes;
        sum.least_seconds = plus(sum.least_seconds, r->least_seconds);
    }
    return sum;
}

const char *pl_report_time_title(const pl_report_time *r, char *text, size_t room)
{
    char name[PL_REPORT_TIMES_NAME];
    pl_text_clean(name, sizeof name, r->name[0] ? r->name : "no component");
    snprintf(text, room, "%s%s", name, r->phase == PL_PHASE_BACKWARD ? ", backward" : "");
    return text;
}

/* ---- as text ---- */

static void cell_seconds(pl_table *t, double seconds)
{
    char text[32];
    if (seconds < 0)
        pl_table_cell(t, "?");
    else
        pl_table_cell(t, "%s", seconds >= PL_REPORT_TIME_SHOWN ? pl_format_seconds(seconds, text, sizeof text) : "-");
}

static void cell_flops(pl_table *t, double flops)
{
    static const char units[] = "kMGTPE";
    size_t k = 0;
    for (flops /= 1e3; flops >= 999.5 && units[k + 1]; k++) flops /= 1e3;
    if (flops > 0)
        pl_table_cell(t, "%.*f %c", flops < 9.995 ? 2 : flops < 99.95 ? 1 : 0, flops, units[k]);
    else
        pl_table_cell(t, "-");
}

static void cell_percent(pl_table *t, double part, double whole, int decimals)
{
    if (whole > 0 && part > 0)
        pl_table_cell(t, "%.*f %%", decimals, 100 * part / whole);
    else
        pl_table_cell(t, "-");
}

/* A row of a table whose measured columns are there only after runs. */
static void put_row(pl_table *t, const pl_report_times *all, const pl_report_time *r, const char *title)
{
    const double whole = all->runs ? all->seconds : all->predicted_seconds;
    const double seconds = all->runs ? r->seconds : r->predicted_seconds;
    pl_table_cell(t, "%s", title);
    if (all->runs) cell_seconds(t, r->seconds);
    cell_percent(t, seconds, whole, 1);
    cell_seconds(t, r->predicted_seconds);
    cell_flops(t, r->flops);
    cell_percent(t, seconds > 0 ? r->flops / seconds : 0, all->flops_per_second, 0);
    cell_seconds(t, r->least_seconds);
    pl_table_end_row(t);
}

static void put_titles(pl_table *t, const pl_report_times *all)
{
    static const char *const titles[] = {"share", "predicted", "FLOP", "of rate", "at least"};
    pl_table_cell(t, "%s", "");
    if (all->runs) pl_table_cell(t, "%s", "measured");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) pl_table_cell(t, "%s", titles[i]);
    pl_table_end_row(t);
}

static void put_table(const pl_report_times *all, pl_str *out)
{
    char title[64];
    pl_report_time sum = pl_report_times_sum(all);
    const pl_report_time other = {.seconds = all->other_seconds};
    for (pl_table t = pl_table_begin(out, all->runs ? "lrrrrrr" : "lrrrrr"); pl_table_pass(&t);) {
        put_titles(&t, all);
        for (size_t i = 0; i < all->count; i++)
            put_row(&t, all, &all->row[i], pl_report_time_title(&all->row[i], title, sizeof title));
        if (all->runs) put_row(&t, all, &other, "other");
        pl_table_rule(&t, 1, all->runs ? 7 : 6);
        sum.seconds += all->other_seconds;
        snprintf(title, sizeof title, "a %s", all->run);
        put_row(&t, all, &sum, title);
        sum.seconds -= all->other_seconds;
    }
}

static void put_passes(const pl_report_times *t, pl_str *out)
{
    double pass[PL_PHASE_COUNT] = {0};
    bool known = t->runs || t->predicted_seconds > 0;
    for (size_t i = 0; i < t->count; i++)
        pass[t->row[i].phase] += t->runs ? t->row[i].seconds : t->row[i].predicted_seconds;
    const double whole = t->runs ? t->seconds : t->predicted_seconds;
    if (!known || !(whole > 0) || !(pass[PL_PHASE_BACKWARD] > 0)) return;
    pl_str_printf(out, "Forward %.1f %%, backward %.1f %%, update %.1f %%.\n", 100 * pass[PL_PHASE_FORWARD] / whole,
                  100 * pass[PL_PHASE_BACKWARD] / whole, 100 * pass[PL_PHASE_UPDATE] / whole);
}

static void put_besides(const pl_report_times *t, pl_str *out)
{
    char text[32];
    for (size_t i = 0; i < t->besides_count; i++) {
        const pl_report_besides *b = &t->besides[i];
        char name[PL_REPORT_TIMES_NAME];
        pl_text_clean(name, sizeof name, b->name);
        pl_str_printf(out, "%s%s %s in %" PRIu64 " time%s", i ? ", " : "Besides: ", name,
                      pl_format_seconds(b->seconds, text, sizeof text), b->count, pl_plural(b->count));
    }
    if (t->besides_count) pl_str_append(out, ".\n");
}

static void put_heading(const pl_report_times *t, pl_str *out)
{
    char run[PL_REPORT_TIMES_NAME];
    pl_text_clean(run, sizeof run, t->run);
    if (!t->runs) {
        pl_str_printf(out, "Time by component of a %s, predicted:\n", run);
        return;
    }
    pl_str_printf(out, "Time by component of a %s, mean of %" PRIu64, run, t->runs);
    if (t->first)
        pl_str_printf(out, " (%" PRIu64 " to %" PRIu64 ", since it went on)", t->first + 1, t->first + t->runs);
    pl_str_append(out, ":\n");
}

void pl_report_times_text(const pl_report_times *t, pl_str *out)
{
    put_heading(t, out);
    put_table(t, out);
    put_passes(t, out);
    put_besides(t, out);
    if (t->flops_per_second > 0 && t->bytes_per_second > 0)
        pl_str_printf(out,
                      "Rate: %.1f GFLOP/s, %.1f GB/s: the best of the plan's own nodes,\nas calibrated.\n",
                      t->flops_per_second / 1e9, t->bytes_per_second / 1e9);
}

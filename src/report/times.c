#include "report/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "ir/op.h"
#include "report/interval.h"
#include "report/table.h"

/* A sum that lacks a part is not known. */
static double plus(double sum, double part) { return sum < 0 || part < 0 ? -1 : sum + part; }

static void add_node(const pl_plan *p, size_t i, pl_report_time *row)
{
    const pl_graph *g = p->graph;
    const pl_node *n = &g->node[i];
    const pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    const double trips = (double)pl_node_trips(g, n), seconds = p->seconds[i];
    row->predicted_seconds = plus(row->predicted_seconds, seconds < 0 ? -1 : trips * seconds);
    row->flops += trips * cost.flops;
    row->bytes += trips * cost.bytes;
    if (!(p->rates.bytes > 0)) {
        row->least_seconds = row->computing_seconds = -1;
        return;
    }
    row->computing_seconds += trips * pl_node_computing_seconds(g, n, &p->rates);
    row->least_seconds += trips * pl_node_least_seconds(g, n, &p->rates);
}

/* What was measured to be done in less shows that the rates were measured while somebody else used the machine: the
 * ceiling is the highest that was ever seen. */
void pl_report_times_raise(pl_report_times *t)
{
    double times = 1;
    for (size_t i = 0; i < t->count; i++) {
        const pl_report_time *r = &t->row[i];
        const double seconds = t->runs ? r->seconds : r->predicted_seconds;
        if (seconds > 0 && r->least_seconds > times * seconds) times = r->least_seconds / seconds;
    }
    t->flops_per_second *= times;
    t->bytes_per_second *= times;
    for (size_t i = 0; i < t->count && times > 1; i++) {
        t->row[i].least_seconds /= times;
        t->row[i].computing_seconds /= times;
    }
}

/* Of the numbers that most of the program's products multiply. */
static double rate_of(const pl_plan *p, const pl_components *c)
{
    double flops[PL_ARITHMETIC_COUNT] = {0};
    int most = PL_ARITHMETIC_F32;
    for (size_t i = 0; i < p->graph->node_count; i++) {
        const pl_node *n = &p->graph->node[i];
        if (c->of[i] == PL_COMPONENT_NONE) continue;
        flops[pl_node_arithmetic(p->graph, n)] +=
            (double)pl_node_trips(p->graph, n) * pl_op_rule_of(n->op)->cost(p->graph, n).products;
    }
    for (int k = 0; k < PL_ARITHMETIC_COUNT; k++)
        if (flops[k] > flops[most]) most = k;
    return p->rates.operations[most];
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
    t->flops_per_second = rate_of(p, c);
    t->bytes_per_second = p->rates.bytes;
    t->estimated_seconds = predicted > 0 ? pl_report_estimated_seconds(p, program) : 0;
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (c->of[i] != PL_COMPONENT_NONE) add_node(p, i, &t->row[c->of[i]]);
    for (size_t i = 0; i < c->count && predicted == 0; i++) t->row[i].predicted_seconds = -1;
    pl_report_times_raise(t);
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
        sum.computing_seconds = plus(sum.computing_seconds, r->computing_seconds);
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
    cell_percent(t, r->computing_seconds, seconds, 0);
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
    if (t->estimated_seconds > 0) {
        const size_t from = out->bytes;
        pl_str_append(out, "Predicted:");
        pl_report_say_basis(t->predicted_seconds, 0, 0, t->estimated_seconds, 1, out);
        pl_str_append(out, "\n");
        pl_str_fold(out, from, PL_TEXT_COLUMNS);
    }
    if (t->flops_per_second > 0 && t->bytes_per_second > 0)
        pl_str_printf(out, "Rate: %.1f GFLOP/s of multiply-adds, %.1f GB/s from memory: what this machine\nreaches.\n",
                      t->flops_per_second / 1e9, t->bytes_per_second / 1e9);
}

#include "report/times.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "ir/op.h"
#include "report/interval.h"

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

/* "head", "head, backward", "update". */
static void add_title(const pl_report_time *r, pl_doc *d)
{
    pl_doc_words(d, "%s%s", r->name[0] ? r->name : "no component", r->phase == PL_PHASE_BACKWARD ? ", backward" : "");
}

/* ---- what is shown ---- */

static const pl_doc_column columns[] = {{NULL, ""},
                                        {"seconds", "measured", PL_DOC_SECONDS},
                                        {NULL, "share", PL_DOC_PERCENT, 1},
                                        {"predicted_seconds", "predicted", PL_DOC_SECONDS},
                                        {"flops", "FLOP", PL_DOC_OPERATIONS},
                                        {NULL, "of rate", PL_DOC_PERCENT},
                                        {"least_seconds", "at least", PL_DOC_SECONDS},
                                        {NULL, "", PL_DOC_BAR}};

static const char *const pass_class[PL_PHASE_COUNT] = {"weight", "gradient", "optimizer"};

static double whole_of(const pl_report_times *t) { return t->runs ? t->seconds : t->predicted_seconds; }

static void add_share(pl_doc *d, double part, double whole)
{
    part > 0 && whole > 0 ? pl_doc_real(d, part / whole) : pl_doc_unknown(d);
}

static void add_known(pl_doc *d, double seconds) { seconds < 0 ? pl_doc_unknown(d) : pl_doc_real(d, seconds); }

/* From the second column to the last but one. */
static void add_numbers(const pl_report_times *t, const pl_report_time *r, pl_doc *d)
{
    const double seconds = t->runs ? r->seconds : r->predicted_seconds;
    t->runs ? pl_doc_real(d, r->seconds) : pl_doc_blank(d);
    add_share(d, seconds, whole_of(t));
    add_known(d, r->predicted_seconds);
    pl_doc_real(d, r->flops);
    pl_doc_key_real(d, "bytes", r->bytes);
    add_share(d, r->computing_seconds, seconds);
    add_known(d, r->least_seconds);
}

static void add_row(const pl_report_times *t, const pl_report_time *r, pl_doc *d)
{
    const double seconds = t->runs ? r->seconds : r->predicted_seconds, whole = whole_of(t);
    pl_doc_row(d, 0);
    add_title(r, d);
    pl_doc_key_words(d, "name", r->name);
    pl_doc_key_words(d, "pass", pl_phase_name(r->phase));
    if (!t->runs) pl_doc_key_null(d, "seconds");
    add_numbers(t, r, d);
    pl_doc_key_real_if(d, r->computing_seconds >= 0, "computing_seconds", r->computing_seconds);
    pl_doc_bar(d, pass_class[r->phase], whole > 0 ? seconds / whole : 0);
    pl_doc_bar_end(d);
    pl_doc_row_end(d);
}

static void add_sum(const pl_report_times *t, const pl_report_time *r, const char *title, unsigned flags, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN | flags);
    pl_doc_words(d, "%s", title);
    add_numbers(t, r, d);
    pl_doc_row_end(d);
}

static void add_rows(const pl_report_times *t, pl_doc *d)
{
    char title[PL_REPORT_TIMES_NAME + 4];
    pl_report_time sum = pl_report_times_sum(t);
    const pl_report_time other = {.seconds = t->other_seconds};
    pl_doc_table(d, "components", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < t->count; i++) add_row(t, &t->row[i], d);
    if (t->runs) add_sum(t, &other, "other", 0, d);
    sum.seconds += t->other_seconds;
    snprintf(title, sizeof title, "a %s", t->run);
    add_sum(t, &sum, title, PL_DOC_TOTAL, d);
    pl_doc_table_end(d);
}

static void say_passes(const pl_report_times *t, pl_doc *d)
{
    double pass[PL_PHASE_COUNT] = {0};
    bool known = t->runs || t->predicted_seconds > 0;
    for (size_t i = 0; i < t->count; i++)
        pass[t->row[i].phase] += t->runs ? t->row[i].seconds : t->row[i].predicted_seconds;
    const double whole = whole_of(t);
    if (!known || !(whole > 0) || !(pass[PL_PHASE_BACKWARD] > 0)) return;
    pl_doc_say(d, 0, "Forward %.1f %%, backward %.1f %%, update %.1f %%.", 100 * pass[PL_PHASE_FORWARD] / whole,
               100 * pass[PL_PHASE_BACKWARD] / whole, 100 * pass[PL_PHASE_UPDATE] / whole);
}

static void add_besides(const pl_report_times *t, pl_doc *d)
{
    char text[32];
    pl_doc_array(d, "besides");
    for (size_t i = 0; i < t->besides_count; i++) {
        pl_doc_object(d, NULL);
        pl_doc_key_words(d, "name", t->besides[i].name);
        pl_doc_key_real(d, "seconds", t->besides[i].seconds);
        pl_doc_key_count(d, "count", t->besides[i].count);
        pl_doc_object_end(d);
    }
    pl_doc_array_end(d);
    pl_str *out = pl_doc_paragraph(d, 0);
    for (size_t i = 0; i < t->besides_count; i++) {
        const pl_report_besides *b = &t->besides[i];
        pl_str_printf(out, "%s%s %s in %" PRIu64 " time%s", i ? ", " : "Besides: ", b->name,
                      pl_format_seconds(b->seconds, text, sizeof text), b->count, pl_plural(b->count));
    }
    if (t->besides_count) pl_str_append(out, ".");
    pl_doc_paragraph_end(d);
}

static void say_what(const pl_report_times *t, pl_doc *d)
{
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "Of a %s, ", t->run);
    if (t->runs)
        pl_str_printf(out, "mean of %" PRIu64, t->runs);
    else
        pl_str_append(out, "predicted");
    if (t->runs && t->first)
        pl_str_printf(out, " (%" PRIu64 " to %" PRIu64 ", since it resumed)", t->first + 1, t->first + t->runs);
    pl_str_append(out, ".");
    pl_doc_paragraph_end(d);
}

static void say_basis(const pl_report_times *t, pl_doc *d)
{
    if (t->estimated_seconds > 0) {
        pl_str *out = pl_doc_paragraph(d, 0);
        pl_str_append(out, "Predicted:");
        pl_report_say_basis(t->predicted_seconds, 0, 0, t->estimated_seconds, 1, out);
        pl_doc_paragraph_end(d);
    }
    if (t->flops_per_second > 0 && t->bytes_per_second > 0)
        pl_doc_say(
            d, 0,
            "Rate: %.1f GFLOP/s of multiply-adds, %.1f GB/s from memory: what this machine reaches. At that rate "
            "products, and bytes that no cache holds, take at least the time of the last column.",
            t->flops_per_second / 1e9, t->bytes_per_second / 1e9);
}

static void add_head(const pl_report_times *t, pl_doc *d)
{
    pl_doc_key_words(d, "schema", PL_TIMES_SCHEMA);
    pl_doc_key_words(d, "program", t->program);
    pl_doc_key_words(d, "run", t->run);
    pl_doc_key_count(d, "runs", t->runs);
    pl_doc_key_count(d, "first", t->first);
    pl_doc_key_real_if(d, t->runs > 0, "seconds", t->seconds);
    pl_doc_key_real_if(d, t->runs > 0, "other_seconds", t->other_seconds);
    pl_doc_key_real_if(d, t->predicted_seconds >= 0, "predicted_seconds", t->predicted_seconds);
    pl_doc_key_real_if(d, t->predicted_seconds >= 0, "estimated_seconds", t->estimated_seconds);
    pl_doc_key_real_if(d, t->flops_per_second > 0, "flops_per_second", t->flops_per_second);
    pl_doc_key_real_if(d, t->bytes_per_second > 0, "bytes_per_second", t->bytes_per_second);
}

void pl_report_times_add(const pl_report_times *t, pl_doc *d)
{
    add_head(t, d);
    pl_doc_section_long(d, "Time by component");
    say_what(t, d);
    add_rows(t, d);
    say_passes(t, d);
    add_besides(t, d);
    say_basis(t, d);
    pl_doc_section_end(d);
}

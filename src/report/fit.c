/* The text of `plimsoll fit CONFIG`. */
#include "report/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "ir/op.h"
#include "report/account.h"
#include "report/interval.h"
#include "show/plot.h"
#include "report/table.h"

enum { PLOT_HEIGHT = 8, TEXT = 48 };

typedef struct page {
    const pl_fit_result *result;
    const pl_plan *plan;
    const pl_report_fit_options *options;
    const pl_fit_point **front;
    size_t front_count;
    pl_str *out;
} page;

static void heading(const page *g, const char *text)
{
    pl_str_printf(g->out, g->options->color ? "\n\033[1;34m%s\033[0m\n" : "\n%s\n", text);
}

static pl_table begin(const page *g, const char *columns)
{
    pl_table t = pl_table_begin(g->out, columns);
    t.color = g->options->color;
    t.line = g->options->width;
    return t;
}

static const char *seconds_text(double seconds, char text[TEXT])
{
    return pl_report_seconds(seconds, false, "0 s", text);
}

/* ---- the chosen plan ---- */

static void fold(const page *g, size_t from) { pl_str_fold(g->out, from, g->options->width); }

static void print_head(const page *g)
{
    size_t from = g->out->bytes;
    const pl_fit_result *r = g->result;
    char text[TEXT], title[PL_TABLE_CELL_BYTES];
    if (g->options->title) {
        pl_text_clean(title, sizeof title, g->options->title);
        pl_str_printf(g->out, "%s: ", title);
    }
    pl_report_fit_batch(r, "x", g->out);
    pl_str_append(g->out, "; ");
    if (r->budget_bytes == UINT64_MAX)
        pl_str_append(g->out, "no budget");
    else
        pl_str_printf(g->out, "budget %s bytes charged", pl_format_count(r->budget_bytes, text, sizeof text));
    pl_report_fit_group(g->plan, g->out);
    pl_str_append(g->out, "\n");
    fold(g, from);
}

/* Of the program that is searched: of all, where none is trained, the busiest. */
static double busy_of(const page *g)
{
    double busy = 1;
    const pl_id trained = pl_graph_find_trained(g->plan->graph);
    if (trained != PL_NONE) return pl_plan_program_time(g->plan, trained).busy;
    for (size_t i = 0; i < g->plan->graph->region_count; i++)
        if (g->plan->graph->region[i].parent == PL_NONE)
            busy = fmax(busy, pl_plan_program_time(g->plan, (pl_id)i).busy);
    return busy;
}

static void print_time(const page *g, const pl_fit_point *p)
{
    char text[TEXT], low[TEXT], high[TEXT];
    if (p->seconds < 0) {
        pl_str_append(g->out, "; the time of a step is not known");
        return;
    }
    pl_str_append(g->out, "; a step takes ");
    pl_report_say_interval(p->seconds, p->low, p->high, g->out);
    pl_str_printf(g->out, ", %s %s/s", pl_report_rate(pl_report_items_per_second(g->result, p), text, sizeof text),
                  g->result->words->items);
    if (g->options->steps)
        pl_str_printf(g->out, "; %s for %s step%s", seconds_text(p->seconds * (double)g->options->steps, low),
                      pl_format_count(g->options->steps, high, sizeof high), pl_plural(g->options->steps));
    pl_str_append(g->out, ".");
    pl_report_say_basis(p->seconds, p->low, p->high, p->estimated_seconds, busy_of(g), g->out);
}

static void axis_row(const page *g, pl_table *t, size_t axis)
{
    char words[PL_FIT_WORDS_BYTES], why[PL_TABLE_CELL_BYTES];
    pl_str said = pl_str_fixed(words, sizeof words), reason = pl_str_fixed(why, sizeof why);
    words[0] = why[0] = 0;
    pl_fit_axis_say(axis, g->result, &g->result->point[g->result->chosen].choice, &said);
    pl_report_reason(g->result, axis, &reason);
    pl_table_cell(t, "  %s", pl_fit_axis_name(axis));
    pl_table_cell(t, "%s", words);
    pl_table_end_row(t);
    if (!why[0]) return;
    pl_table_cell(t, "%s", "");
    pl_table_cell(t, "(%s)", why);
    pl_table_end_row(t);
}

static void pages_row(const page *g, pl_table *t)
{
    const pl_fit_result *r = g->result;
    uint64_t huge = r->point[r->chosen].huge_bytes;
    char text[TEXT];
    pl_table_cell(t, "%s", "  huge pages");
    if (r->huge_pages)
        pl_table_cell(t, "%s", "asked for");
    else
        pl_table_cell(t, "no (%s)",
                      huge ? pl_format_bytes(huge, text, sizeof text) : "rounding up to them does not pay");
    pl_table_end_row(t);
}

static void print_chosen(const page *g)
{
    const pl_fit_point *p = &g->result->point[g->result->chosen];
    char text[TEXT], exact[TEXT];
    uint64_t charged = pl_plan_charged_bytes(g->plan);
    heading(g, "Chosen");
    size_t from = g->out->bytes;
    pl_str_printf(g->out, "%s bytes charged (%s)", pl_format_count(charged, exact, sizeof exact),
                  pl_format_bytes(charged, text, sizeof text));
    if (g->result->budget_bytes != UINT64_MAX)
        pl_str_printf(g->out, ", %s left", pl_format_bytes(g->result->budget_bytes - charged, text, sizeof text));
    print_time(g, p);
    pl_str_append(g->out, "\n");
    fold(g, from);
    for (pl_table t = begin(g, "ll"); pl_table_pass(&t);) {
        for (size_t k = 0; k < pl_fit_axis_count(); k++)
            if (pl_fit_axis_applies(k, g->result)) axis_row(g, &t, k);
        pages_row(g, &t);
    }
    from = g->out->bytes;
    pl_str_append(g->out,
                  "In brackets: the fastest plan that fits with another value there, all else chosen anew; where "
                  "none fits, the smallest.\n");
    fold(g, from);
}

/* ---- what holds it up ---- */

static void print_bottleneck(const page *g)
{
    pl_report_step s;
    if (!pl_report_time_step(g->plan, &s)) return;
    heading(g, "What holds a step up");
    size_t from = g->out->bytes;
    char text[PL_TABLE_CELL_BYTES];
    pl_print(text, sizeof text,
             "%s: %.0f %% of the time computes at up to %.0f GFLOP/s, %.0f %% moves bytes at up to %.1f GB/s, %.0f %% "
             "are calls too small for either, or wait for threads.\n",
             s.bottleneck, 100 * s.computing_seconds / s.seconds, s.flops_per_second / 1e9,
             100 * s.moving_seconds / s.seconds, s.bytes_per_second / 1e9, 100 * s.small_seconds / s.seconds);
    pl_str_append(g->out, text);
    pl_print(text, sizeof text,
             "Data is read ahead by a thread of its own: %.1f kB of %s a second. Disk: nothing within a step.\n",
             pl_report_items_per_second(g->result, &g->result->point[g->result->chosen]) * 4 / 1e3,
             g->result->words->items);
    pl_str_append(g->out, text);
    fold(g, from);
}

static void print_larger_budget(const page *g, pl_table *t)
{
    const pl_fit_point *p = pl_report_larger_budget(g->result), *chosen = &g->result->point[g->result->chosen];
    char text[TEXT];
    pl_table_cell(t, "%s", "  a larger budget");
    if (p)
        pl_table_cell(t, "%.1f %% less time with %s bytes", 100 * (1 - p->seconds / chosen->seconds),
                      pl_format_count(p->charged_bytes, text, sizeof text));
    else
        pl_table_cell(t, "%s", "nothing: no plan that was looked at is faster");
    pl_table_end_row(t);
}

static void print_precision(const page *g, pl_table *t)
{
    const pl_fit_point *p = &g->result->narrow, *chosen = &g->result->point[g->result->chosen];
    char text[TEXT];
    if (chosen->choice.precision != PL_DTYPE_F32) return;
    pl_table_cell(t, "%s", "  bf16");
    if (p->least_bytes == 0)
        pl_table_cell(t, "%s", "nothing: no plan with it fits");
    else if (p->seconds < 0)
        pl_table_cell(t, "%s", "unknown: not measured; fit.allow: [bf16] measures it and may take it");
    else
        pl_table_cell(t, "%.1f %% %s time%s, with at least %s bytes; it changes numbers",
                      100 * fabs(1 - p->seconds / chosen->seconds), p->seconds < chosen->seconds ? "less" : "more",
                      p->estimated_seconds > 0 ? " (estimated)" : "",
                      pl_format_count(p->least_bytes, text, sizeof text));
    pl_table_end_row(t);
}

static void print_potential(const page *g)
{
    pl_report_step s;
    int threads = g->plan->team.threads;
    if (!pl_report_time_step(g->plan, &s)) return;
    heading(g, "What would make it faster");
    for (pl_table t = begin(g, "ll"); pl_table_pass(&t);) {
        print_larger_budget(g, &t);
        pl_table_cell(&t, "%s", "  twice the batch");
        pl_table_cell(&t, "%.1f %% more %s a second; it changes the training", 100 * pl_report_larger_batch_gain(&s),
                      g->result->words->items);
        pl_table_end_row(&t);
        pl_table_cell(&t, "%s", "  one more core");
        pl_table_cell(&t, "at most %.0f %% more: no more than %d thread%s were measured", 100.0 / threads, threads,
                      pl_plural((uint64_t)threads));
        pl_table_end_row(&t);
        print_precision(g, &t);
    }
}

/* ---- the front ---- */

static void point_row(const page *g, pl_table *t, const pl_fit_point *p)
{
    char words[PL_TABLE_CELL_BYTES], text[TEXT];
    pl_str said = pl_str_fixed(words, sizeof words);
    words[0] = 0;
    double rate = pl_report_items_per_second(g->result, p);
    t->strong = g->result->chosen != PL_FIT_NONE && p == &g->result->point[g->result->chosen];
    pl_table_cell(t, "%s", t->strong ? "*" : "");
    pl_table_bytes(t, p->charged_bytes);
    pl_table_cell(t, "%s", pl_report_seconds(p->seconds, p->estimated_seconds > 0, "0 s", text));
    pl_table_cell(t, "%s", rate > 0 ? pl_report_rate(rate, text, sizeof text) : "unknown");
    pl_fit_choice_say(g->result, &p->choice, &said);
    pl_table_cell(t, "%s", words);
    pl_table_end_row(t);
}

static void print_table(const page *g)
{
    static const char *const titles[] = {"", "charged, bytes", "MB", "a step"};
    size_t planned = 0;
    bool estimated = false;
    for (size_t i = 0; i < g->result->count; i++) planned += g->result->point[i].charged_bytes != 0;
    for (size_t i = 0; i < g->front_count; i++) estimated |= g->front[i]->estimated_seconds > 0;
    heading(g, "The front: more bytes, less time");
    for (pl_table t = begin(g, "lrrrrl"); pl_table_pass(&t);) {
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) pl_table_cell(&t, "%s", titles[i]);
        pl_table_cell(&t, "%s/s", g->result->words->items);
        pl_table_cell(&t, "%s", "");
        pl_table_end_row(&t);
        for (size_t i = 0; i < g->front_count; i++) point_row(g, &t, g->front[i]);
    }
    if (estimated) pl_str_append(g->out, PL_REPORT_ESTIMATED_NOTE);
    pl_str_printf(g->out, "%zu choice%s looked at, %zu planned; pages of 4 KiB\n", g->result->count,
                  pl_plural(g->result->count), planned);
}

/* Over the budget: the time of the fastest plan that fits it. The first column is the smallest plan's bytes, the last
 * one the largest's, so the picture begins and ends with what the table begins and ends with. */
static void print_plot(const page *g)
{
    double column[PL_PLOT_COLUMNS_MAX], most = 0;
    char top[TEXT], left[TEXT], right[TEXT];
    unsigned columns = pl_plot_columns(g->options->width);
    if (columns == 0 || g->front_count < 2 || g->front[0]->seconds <= 0) return;
    uint64_t low = g->front[0]->charged_bytes, high = g->front[g->front_count - 1]->charged_bytes;
    for (unsigned x = 0; x < columns; x++) {
        double budget = (double)low + (double)(high - low) * x / (columns - 1);
        column[x] = -1;
        for (size_t i = 0; i < g->front_count; i++)
            if ((double)g->front[i]->charged_bytes <= budget) column[x] = g->front[i]->seconds;
        most = fmax(most, column[x]);
    }
    heading(g, "Seconds of a step by budget");
    pl_plot plot = {.column = column,
                    .columns = columns,
                    .height = PLOT_HEIGHT,
                    .most = most,
                    .top = seconds_text(most, top),
                    .bottom = "0 s",
                    .left = pl_format_bytes(low, left, sizeof left),
                    .right = pl_format_bytes(high, right, sizeof right)};
    pl_plot_write(&plot, g->out);
}

/* ---- nothing fits ---- */

static void role_rows(const page *g)
{
    pl_report_account a = pl_report_sum(g->result->smallest);
    for (pl_table t = begin(g, "lrr"); pl_table_pass(&t);)
        for (int r = 0; r < PL_ROLE_COUNT; r++) {
            if (a.role_bytes[r] == 0) continue;
            pl_table_cell(&t, "  %s", pl_report_role_title((pl_role)r));
            pl_table_bytes(&t, a.role_bytes[r]);
            pl_table_end_row(&t);
        }
}

static pl_status print_alive(const page *g, pl_error *err)
{
    const pl_plan *p = g->result->smallest;
    pl_report_alive *alive;
    size_t count, from = g->out->bytes;
    PL_TRY(pl_report_alive_at_peak(p, &alive, &count, err));
    pl_report_say_peak(p, g->out);
    pl_str_append(g->out, "\n");
    fold(g, from);
    role_rows(g);
    pl_str_append(g->out, "The largest that are not held all the time:\n");
    for (pl_table t = begin(g, "llrr"); pl_table_pass(&t);)
        for (size_t i = 0; i < count && i < PL_REPORT_FIT_ALIVE; i++) {
            bool workspace = alive[i].value == PL_NONE;
            const pl_value *v = workspace ? NULL : &p->graph->value[alive[i].value];
            pl_table_cell(&t, "  %s", workspace ? pl_op_name(p->graph->node[alive[i].node].op) : v->name);
            pl_table_cell(&t, "%s", workspace ? "workspace" : pl_role_name(v->role));
            pl_table_bytes(&t, alive[i].block->bytes);
            pl_table_end_row(&t);
        }
    pl_free(alive);
    return PL_OK;
}

static void permission_row(const page *g, pl_table *t, size_t i)
{
    const pl_fit_permission *p = &g->result->permission[i];
    char text[TEXT], words[PL_TABLE_CELL_BYTES] = "";
    pl_str said = pl_str_fixed(words, sizeof words);
    pl_report_say_permission(g->result, p, &said);
    t->strong = i == g->result->cheapest;
    pl_table_cell(t, "%s %s: %s", t->strong ? "*" : " ", p->key, p->value);
    pl_table_cell(t, "%s", p->fits ? "fits" : "does not fit");
    if (p->charged_bytes) {
        pl_table_count(t, p->charged_bytes);
        pl_table_cell(t, "%s", seconds_text(p->seconds, text));
        if (words[0]) pl_table_cell(t, "(%s)", words);
    }
    pl_table_end_row(t);
}

/* Of what is not trained: for the user to choose, since the results are others. */
static void print_numbers(const page *g)
{
    if (!g->plan || !g->result->permission_count) return;
    heading(g, "With other numbers, each alone");
    for (pl_table t = begin(g, "llrrl"); pl_table_pass(&t);)
        for (size_t i = 0; i < g->result->permission_count; i++) permission_row(g, &t, i);
}

static pl_status print_certificate(const page *g, pl_error *err)
{
    const pl_fit_result *r = g->result;
    heading(g, "Nothing fits");
    size_t from = g->out->bytes;
    pl_report_say_least(r, g->out);
    pl_str_append(g->out, "\n");
    fold(g, from);
    PL_TRY(print_alive(g, err));
    heading(g, r->permission_count ? "What would change that, each alone" : "Nothing more could be allowed");
    for (pl_table t = begin(g, "llrrl"); pl_table_pass(&t);)
        for (size_t i = 0; i < r->permission_count; i++) permission_row(g, &t, i);
    from = g->out->bytes;
    pl_report_say_remedy(r, g->out);
    pl_str_append(g->out, "\n");
    fold(g, from);
    return PL_OK;
}

static pl_status print(page *g, pl_error *err)
{
    print_head(g);
    if (g->plan) print_chosen(g);
    print_numbers(g);
    if (g->result->smallest) PL_TRY(print_certificate(g, err));
    PL_TRY(pl_report_front(g->result, &g->front, &g->front_count, err));
    if (g->front_count) print_table(g);
    print_plot(g);
    if (g->plan) print_bottleneck(g), print_potential(g);
    return g->out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the text of the search") : PL_OK;
}

pl_status pl_report_fit(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_str *out,
                        pl_error *err)
{
    page g = {.result = r, .plan = plan, .options = o, .out = out};
    pl_status status = print(&g, err);
    pl_free(g.front);
    return status;
}

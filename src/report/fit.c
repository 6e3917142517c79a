/* What a search found, as a document: the chosen plan and why, what its step waits for, what other settings would bring
 * or why nothing fits, and the front of time against bytes. */
#include "report/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "ir/op.h"
#include "report/account.h"
#include "report/interval.h"
#include "show/html.h"
#include "show/plot.h"

enum { PLOT_HEIGHT = 8, TEXT = 48, NAME = 64, ALIVE_SHOWN = 8 };

typedef struct search {
    const pl_fit_result *result;
    const pl_plan *plan;
    const pl_report_fit_options *options;
    const pl_fit_point **front; /* by bytes */
    size_t front_count;
    char rate_key[NAME], rate_title[NAME]; /* ITEMS_per_second, ITEMS/s */
} search;

static const pl_fit_point *chosen_of(const search *s) { return &s->result->point[s->result->chosen]; }

/* ---- what was asked ---- */

static void say_what(const search *s, pl_doc *d)
{
    const pl_fit_result *r = s->result;
    const pl_work *w = s->plan ? s->plan->work : NULL;
    char count[TEXT];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "batch %" PRId64, r->batch);
    if (r->trained && r->rows > 1)
        pl_str_printf(out, " × %" PRId64 " %s", r->rows, r->words->items);
    else
        pl_str_printf(out, " %s", r->batch == 1 ? r->words->sample : r->words->samples);
    if (r->budget_bytes == UINT64_MAX)
        pl_str_append(out, "; no budget");
    else
        pl_str_printf(out, "; budget %s bytes charged", pl_format_count(r->budget_bytes, count, sizeof count));
    if (w && w->count > 1) pl_str_printf(out, "; of %zu shapes the largest, %s", w->count, w->group[w->largest].text);
    pl_doc_paragraph_end(d);
}

static void add_cards(const search *s, pl_doc *d)
{
    const pl_fit_result *r = s->result;
    char text[TEXT];
    if (r->budget_bytes != UINT64_MAX)
        pl_doc_card(d, pl_format_bytes(r->budget_bytes, text, sizeof text),
                    s->plan ? "budget" : "budget: nothing fits");
    if (!s->plan) return;
    const pl_fit_point *p = chosen_of(s);
    const double rate = pl_report_items_per_second(r, p);
    pl_doc_card(d, pl_format_bytes(pl_plan_charged_bytes(s->plan), text, sizeof text), "charged, planned");
    pl_doc_card(d, pl_report_seconds(p->seconds, p->estimated_seconds > 0, "0 s", text), "a step, predicted");
    if (rate > 0) pl_doc_card(d, pl_format_rate(rate, text, sizeof text), "%s a second", r->words->items);
}

static void add_head(const search *s, pl_doc *d)
{
    const pl_fit_result *r = s->result;
    if (s->options->title) pl_doc_title(d, NULL, "fit", s->options->title);
    pl_doc_key_words(d, "schema", "plimsoll.fit/1");
    pl_doc_key_words(d, "title", s->options->title);
    pl_doc_key_count_if(d, r->budget_bytes != UINT64_MAX, "budget_bytes", r->budget_bytes);
    pl_doc_key_difference(d, "batch", r->batch);
    pl_doc_key_difference(d, r->words->sample, r->rows);
    pl_doc_key_count_if(d, s->options->steps, "steps", s->options->steps);
    say_what(s, d);
    add_cards(s, d);
}

/* ---- the chosen plan ---- */

/* For the program that is searched; where none is trained, for the busiest. */
static double busy_of(const pl_plan *p)
{
    double busy = 1;
    const pl_id trained = pl_graph_find_trained(p->graph);
    if (trained != PL_NONE) return pl_plan_program_time(p, trained).busy;
    for (size_t i = 0; i < p->graph->region_count; i++)
        if (p->graph->region[i].parent == PL_NONE) busy = fmax(busy, pl_plan_program_time(p, (pl_id)i).busy);
    return busy;
}

static void say_time(const search *s, const pl_fit_point *p, pl_str *out)
{
    const uint64_t steps = s->options->steps;
    char rate[TEXT], seconds[TEXT], count[TEXT];
    if (p->seconds < 0) {
        pl_str_append(out, "; the time of a step is not known");
        return;
    }
    pl_str_append(out, "; a step takes ");
    pl_report_say_interval(p->seconds, p->low, p->high, out);
    pl_str_printf(out, ", %s %s", pl_format_rate(pl_report_items_per_second(s->result, p), rate, sizeof rate),
                  s->rate_title);
    if (steps)
        pl_str_printf(out, "; %s for %s step%s", pl_report_seconds(p->seconds * (double)steps, false, "0 s", seconds),
                      pl_format_count(steps, count, sizeof count), pl_plural(steps));
    pl_str_append(out, ".");
    pl_report_say_basis(p->seconds, p->low, p->high, p->estimated_seconds, busy_of(s->plan), out);
}

static void say_chosen(const search *s, pl_doc *d)
{
    const uint64_t charged = pl_plan_charged_bytes(s->plan), budget = s->result->budget_bytes;
    char text[TEXT], exact[TEXT];
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "%s bytes charged (%s)", pl_format_count(charged, exact, sizeof exact),
                  pl_format_bytes(charged, text, sizeof text));
    if (budget != UINT64_MAX) pl_str_printf(out, ", %s left", pl_format_bytes(budget - charged, text, sizeof text));
    say_time(s, chosen_of(s), out);
    pl_doc_paragraph_end(d);
}

static void add_chosen_keys(const search *s, pl_doc *d)
{
    const pl_fit_point *p = chosen_of(s);
    const bool timed = p->seconds >= 0;
    pl_doc_key_count(d, "point", s->result->chosen);
    pl_doc_key_count(d, "charged_bytes", pl_plan_charged_bytes(s->plan));
    pl_doc_key_count(d, "resident_bytes", pl_plan_resident_bytes(s->plan));
    pl_doc_key_count(d, "arena_bytes", s->plan->arena->bytes);
    pl_doc_key_bool(d, "huge_pages", s->result->huge_pages);
    pl_doc_key_real_if(d, timed, "seconds", p->seconds);
    pl_doc_key_real_if(d, timed, "seconds_low", p->low);
    pl_doc_key_real_if(d, timed, "seconds_high", p->high);
    pl_doc_key_real_if(d, timed, "estimated_seconds", p->estimated_seconds);
    pl_doc_key_real_if(d, timed && s->options->steps, "run_seconds", p->seconds * (double)s->options->steps);
}

static const pl_doc_column word_columns[] = {{NULL, ""}, {NULL, "", .is_remark = true}};

/* The reasons get a row of their own: they are long. */
static void add_axis(const search *s, size_t axis, pl_doc *d)
{
    const char *name = pl_fit_axis_name(axis);
    pl_doc_row_of(d, name, 0);
    pl_doc_words(d, "%s", name);
    pl_fit_axis_say(axis, s->result, &chosen_of(s)->choice, pl_doc_sentence(d, NULL));
    pl_doc_sentence_end(d);
    const size_t begin = pl_doc_sentence(d, name)->bytes;
    pl_report_reason(s->result, axis, &d->body);
    const bool has_reason = d->body.bytes > begin;
    pl_doc_sentence_end(d);
    pl_doc_row_end(d);
    if (!has_reason) return;
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_blank(d);
    pl_str_append(pl_doc_sentence(d, NULL), "(");
    pl_report_reason(s->result, axis, &d->body);
    pl_str_append(&d->body, ")");
    pl_doc_sentence_end(d);
    pl_doc_row_end(d);
}

static void add_pages(const search *s, pl_doc *d)
{
    const uint64_t huge = chosen_of(s)->huge_bytes;
    char text[TEXT];
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "huge pages");
    if (s->result->huge_pages)
        pl_doc_words(d, "asked for");
    else
        pl_doc_words(d, "no (%s)",
                     huge ? pl_format_bytes(huge, text, sizeof text) : "rounding up to them does not pay");
    pl_doc_row_end(d);
}

static void add_chosen(const search *s, pl_doc *d)
{
    if (!s->plan) {
        pl_doc_key_null(d, "chosen");
        return;
    }
    pl_doc_section(d, "Chosen");
    pl_doc_object(d, "chosen");
    add_chosen_keys(s, d);
    say_chosen(s, d);
    pl_doc_object(d, "reasons");
    pl_doc_table(d, NULL, word_columns, 2);
    for (size_t k = 0; k < pl_fit_axis_count(); k++)
        if (pl_fit_axis_applies(k, s->result)) add_axis(s, k, d);
    add_pages(s, d);
    pl_doc_table_end(d);
    pl_doc_object_end(d);
    pl_doc_say(d, 0,
               "In brackets: the fastest plan that fits with another value there, all else chosen anew; where none "
               "fits, the smallest.");
    pl_doc_object_end(d);
    pl_doc_section_end(d);
}

/* ---- what its step waits for ---- */

static void add_step_keys(const search *s, const pl_report_step *t, pl_doc *d)
{
    const pl_fit_point *larger = pl_report_larger_budget(s->result), *narrow = &s->result->narrow;
    pl_doc_key_words(d, "bottleneck", t->bottleneck);
    pl_doc_key_real(d, "computing_seconds", t->computing_seconds);
    pl_doc_key_real(d, "moving_seconds", t->moving_seconds);
    pl_doc_key_real(d, "small_calls_seconds", t->small_seconds);
    pl_doc_key_real(d, "once_seconds", t->once_seconds);
    pl_doc_key_real(d, "flops_per_second", t->flops_per_second);
    pl_doc_key_real(d, "bytes_per_second", t->bytes_per_second);
    pl_doc_key_real(d, "twice_the_batch_gain", pl_report_larger_batch_gain(t));
    pl_doc_key_count_if(d, larger, "larger_budget_bytes", larger ? larger->charged_bytes : 0);
    pl_doc_key_real_if(d, larger, "larger_budget_seconds", larger ? larger->seconds : 0);
    pl_doc_key_count_if(d, narrow->least_bytes, "bf16_least_bytes", narrow->least_bytes);
    pl_doc_key_real_if(d, narrow->least_bytes && narrow->seconds >= 0, "bf16_seconds", narrow->seconds);
}

static void say_bottleneck(const search *s, const pl_report_step *t, pl_doc *d)
{
    pl_doc_say(
        d, 0,
        "%s: %.0f %% of the time computes at up to %.0f GFLOP/s, %.0f %% moves bytes at up to %.1f GB/s, %.0f %% "
        "are calls too small for either, or wait for threads.",
        t->bottleneck, 100 * t->computing_seconds / t->seconds, t->flops_per_second / 1e9,
        100 * t->moving_seconds / t->seconds, t->bytes_per_second / 1e9, 100 * t->small_seconds / t->seconds);
    pl_doc_say(d, 0, "Data is read ahead by a thread of its own: %.1f kB of %s a second. Disk: nothing within a step.",
               pl_report_items_per_second(s->result, chosen_of(s)) * 4 / 1e3, s->result->words->items);
}

static void add_larger_budget(const search *s, pl_doc *d)
{
    const pl_fit_point *p = pl_report_larger_budget(s->result);
    char text[TEXT];
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "a larger budget");
    if (p)
        pl_doc_words(d, "%.1f %% less time with %s bytes", 100 * (1 - p->seconds / chosen_of(s)->seconds),
                     pl_format_count(p->charged_bytes, text, sizeof text));
    else
        pl_doc_words(d, "nothing: no plan that was looked at is faster");
    pl_doc_row_end(d);
}

static void add_precision(const search *s, pl_doc *d)
{
    const pl_fit_point *p = &s->result->narrow, *chosen = chosen_of(s);
    char text[TEXT];
    if (chosen->choice.precision != PL_DTYPE_F32) return;
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "bf16");
    if (p->least_bytes == 0)
        pl_doc_words(d, "nothing: no plan with it fits");
    else if (p->seconds < 0)
        pl_doc_words(d, "unknown: not measured; fit.allow: [bf16] measures it and may take it");
    else
        pl_doc_words(d, "%.1f %% %s time%s, with at least %s bytes; it changes numbers",
                     100 * fabs(1 - p->seconds / chosen->seconds), p->seconds < chosen->seconds ? "less" : "more",
                     p->estimated_seconds > 0 ? " (estimated)" : "",
                     pl_format_count(p->least_bytes, text, sizeof text));
    pl_doc_row_end(d);
}

static void add_potential(const search *s, const pl_report_step *t, pl_doc *d)
{
    const int threads = s->plan->team.threads;
    pl_doc_section(d, "What would make it faster");
    pl_doc_table(d, NULL, word_columns, 2);
    add_larger_budget(s, d);
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "twice the batch");
    pl_doc_words(d, "%.1f %% more %s a second; it changes the training", 100 * pl_report_larger_batch_gain(t),
                 s->result->words->items);
    pl_doc_row_end(d);
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "one more core");
    pl_doc_words(d, "at most %.0f %% more: no more than %d thread%s were measured", 100.0 / threads, threads,
                 pl_plural((uint64_t)threads));
    pl_doc_row_end(d);
    add_precision(s, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void add_step(const search *s, pl_doc *d)
{
    pl_report_step t;
    if (!s->plan || !pl_report_time_step(s->plan, &t)) {
        pl_doc_key_null(d, "step");
        return;
    }
    pl_doc_object(d, "step");
    add_step_keys(s, &t, d);
    pl_doc_object_end(d);
    pl_doc_section(d, "What holds a step up");
    say_bottleneck(s, &t, d);
    pl_doc_section_end(d);
    add_potential(s, &t, d);
}

/* ---- other numbers, one setting at a time: when nothing fits, or, untrained, for the user to choose ---- */

static void add_permission(const search *s, size_t i, pl_doc *d)
{
    const pl_fit_permission *p = &s->result->permission[i];
    const bool is_cheapest = i == s->result->cheapest;
    pl_doc_row(d, is_cheapest ? PL_DOC_STRONG : 0);
    pl_doc_key_words(d, "key", p->key);
    pl_doc_key_words(d, "value", p->value);
    pl_doc_words(d, "%s: %s%s", p->key, p->value, is_cheapest ? " *" : "");
    pl_doc_bool(d, p->fits);
    p->charged_bytes ? pl_doc_count(d, p->charged_bytes) : pl_doc_unknown(d);
    p->seconds >= 0 ? pl_doc_real(d, p->seconds) : pl_doc_unknown(d);
    pl_report_say_permission(s->result, p, pl_doc_sentence(d, NULL));
    pl_doc_sentence_end(d);
    pl_doc_row_end(d);
}

static void add_permissions(const search *s, const char *key, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""},
                                            {"fits", "fits", PL_DOC_BOOL},
                                            {"charged_bytes", "charged", PL_DOC_EXACT},
                                            {"seconds", "a step", PL_DOC_SECONDS},
                                            {NULL, "", .is_remark = true}};
    pl_doc_table(d, key, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->result->permission_count; i++) add_permission(s, i, d);
    pl_doc_table_end(d);
}

/* ---- nothing fits ---- */

static void add_roles(const pl_plan *p, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {"bytes", "bytes", PL_DOC_BYTES}};
    const pl_report_account a = pl_report_sum(p);
    pl_doc_table(d, "roles", columns, 2);
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        if (a.role_bytes[r] == 0) continue;
        pl_doc_row(d, 0);
        pl_doc_words(d, "%s", pl_report_role_title((pl_role)r));
        pl_doc_key_words(d, "role", pl_role_name((pl_role)r));
        pl_doc_count(d, a.role_bytes[r]);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
}

static pl_status add_alive(const pl_plan *p, pl_doc *d, pl_error *err)
{
    static const pl_doc_column columns[] = {{"name", ""}, {"role", "role"}, {"bytes", "bytes", PL_DOC_BYTES}};
    pl_report_alive *alive;
    size_t count;
    PL_TRY(pl_report_alive_at_peak(p, &alive, &count, err));
    pl_doc_say(d, 0, "The largest that are not held all the time:");
    pl_doc_table(d, "alive", columns, 3);
    for (size_t i = 0; i < count && i < ALIVE_SHOWN; i++) {
        const bool is_workspace = alive[i].value == PL_NONE;
        const pl_value *v = is_workspace ? NULL : &p->graph->value[alive[i].value];
        pl_doc_row(d, 0);
        pl_doc_words(d, "%s", is_workspace ? pl_op_name(p->graph->node[alive[i].node].op) : v->name);
        pl_doc_words(d, "%s", is_workspace ? "workspace" : pl_role_name(v->role));
        pl_doc_count(d, alive[i].block->bytes);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_free(alive);
    return PL_OK;
}

static void say(void (*what)(const pl_fit_result *, pl_str *), const pl_fit_result *r, pl_doc *d)
{
    what(r, pl_doc_paragraph(d, 0));
    pl_doc_paragraph_end(d);
}

static pl_status add_certificate(const search *s, pl_doc *d, pl_error *err)
{
    const pl_fit_result *r = s->result;
    const uint64_t least = r->point[r->least].charged_bytes;
    pl_doc_object(d, "certificate");
    pl_doc_key_count(d, "least_bytes", least);
    pl_doc_key_count(d, "missing_bytes", least - r->budget_bytes);
    pl_doc_key_count(d, "point", r->least);
    pl_doc_section(d, "Nothing fits");
    say(pl_report_say_least, r, d);
    say(pl_report_say_peak, r, d);
    add_roles(r->smallest, d);
    PL_TRY(add_alive(r->smallest, d, err));
    pl_doc_section_end(d);
    pl_doc_section(d, r->permission_count ? "What would change that, each alone" : "Nothing more could be allowed");
    add_permissions(s, "permissions", d);
    say(pl_report_say_remedy, r, d);
    pl_doc_section_end(d);
    pl_doc_key_count_if(d, r->cheapest != PL_FIT_NONE, "cheapest", r->cheapest);
    pl_doc_object_end(d);
    return PL_OK;
}

static pl_status add_others(const search *s, pl_doc *d, pl_error *err)
{
    const bool is_titled = s->plan && s->result->permission_count;
    if (s->result->smallest) return add_certificate(s, d, err);
    pl_doc_key_null(d, "certificate");
    if (is_titled) pl_doc_section(d, "With other numbers, each alone");
    add_permissions(s, "other_numbers", d);
    if (is_titled) pl_doc_section_end(d);
    return PL_OK;
}

/* ---- the front ---- */

/* The time of the fastest plan that fits, against the budget. The first column is the smallest plan's bytes, the last
 * one the largest's, so the picture begins and ends as the table does. */
static void draw_plot(const void *of, unsigned width, bool color, pl_str *out)
{
    const search *s = of;
    double column[PL_PLOT_COLUMNS_MAX], most = 0;
    char top[TEXT], left[TEXT], right[TEXT];
    const unsigned columns = pl_plot_columns(width);
    const uint64_t low = s->front[0]->charged_bytes, high = s->front[s->front_count - 1]->charged_bytes;
    (void)color;
    if (columns == 0) return;
    for (unsigned x = 0; x < columns; x++) {
        const double budget = (double)low + (double)(high - low) * x / (columns - 1);
        column[x] = -1;
        for (size_t i = 0; i < s->front_count; i++)
            if ((double)s->front[i]->charged_bytes <= budget) column[x] = s->front[i]->seconds;
        most = fmax(most, column[x]);
    }
    pl_plot_write(&(pl_plot){.column = column,
                             .columns = columns,
                             .height = PLOT_HEIGHT,
                             .most = most,
                             .top = pl_report_seconds(most, false, "0 s", top),
                             .bottom = "0 s",
                             .left = pl_format_bytes(low, left, sizeof left),
                             .right = pl_format_bytes(high, right, sizeof right)},
                  out);
}

/* Where the budget is so far away that the front would shrink to a corner of the picture, words say where it is. */
static void place_budget(const pl_fit_result *r, double least, double most, pl_html_chart *chart, char text[2 * TEXT])
{
    char bytes[TEXT];
    const double budget = (double)r->budget_bytes / 1e6, room = most - least;
    if (r->budget_bytes == UINT64_MAX) return;
    pl_format_bytes(r->budget_bytes, bytes, sizeof bytes);
    if (budget >= least - room && budget <= most + room) {
        snprintf(text, 2 * TEXT, "budget %s", bytes);
        chart->mark = budget;
        chart->mark_words = text;
    } else {
        snprintf(text, 2 * TEXT, "seconds of a step, predicted; the budget of %s lies far to the %s", bytes,
                 budget > most ? "right" : "left");
        chart->unit = text;
    }
}

/* As a staircase: between two points the smaller one fits, and the last one does however large the budget. */
static size_t build_stairs(const search *s, pl_curve_point *stairs)
{
    size_t made = 0;
    for (size_t i = 0; i < s->front_count; i++) {
        if (s->front[i]->seconds < 0) continue;
        const double megabytes = (double)s->front[i]->charged_bytes / 1e6;
        if (made) stairs[made] = (pl_curve_point){megabytes, stairs[made - 1].value}, made++;
        stairs[made++] = (pl_curve_point){megabytes, s->front[i]->seconds};
    }
    return made;
}

static void draw_curve(const void *of, pl_str *out)
{
    const search *s = of;
    const pl_fit_result *r = s->result;
    pl_curve_point chosen, *stairs = pl_alloc(2 * s->front_count + 1, sizeof *stairs);
    char text[2 * TEXT];
    if (!stairs) {
        out->failed = 1;
        return;
    }
    size_t made = build_stairs(s, stairs);
    pl_html_chart chart = {.title = "Time against memory",
                           .unit = "seconds of a step, predicted",
                           .axis = "MB charged",
                           .least_tick = 0.001,
                           .from_zero = true,
                           .count = 1};
    if (made) place_budget(r, stairs[0].step, stairs[made - 1].step, &chart, text);
    if (chart.mark_words && chart.mark > stairs[made - 1].step)
        stairs[made] = (pl_curve_point){chart.mark, stairs[made - 1].value}, made++;
    pl_html_curve curves[2] = {{stairs, made, "train", "weight", "the fastest plan that fits", false}};
    if (r->chosen != PL_FIT_NONE && r->point[r->chosen].seconds >= 0) {
        chosen = (pl_curve_point){(double)r->point[r->chosen].charged_bytes / 1e6, r->point[r->chosen].seconds};
        curves[chart.count++] = (pl_html_curve){&chosen, 1, "valid", "gradient", "chosen", true};
    }
    chart.curve = curves;
    pl_html_draw_curves(&chart, out);
    pl_free(stairs);
}

static void add_choice(const pl_fit_result *r, const pl_choice *c, pl_doc *d)
{
    pl_doc_object(d, "choice");
    for (size_t k = 0; k < pl_fit_axis_count(); k++) {
        if (!pl_fit_axis_applies(k, r)) continue;
        pl_fit_axis_short(k, r, c, pl_doc_sentence(d, pl_fit_axis_name(k)));
        pl_doc_sentence_end(d);
    }
    pl_doc_object_end(d);
}

static void add_point(const search *s, const pl_fit_point *p, unsigned flags, pl_doc *d)
{
    const pl_fit_result *r = s->result;
    const bool timed = p->seconds >= 0, is_chosen = r->chosen != PL_FIT_NONE && p == chosen_of(s);
    const double rate = pl_report_items_per_second(r, p);
    pl_doc_row(d, flags | (is_chosen ? PL_DOC_STRONG : 0));
    pl_doc_words(d, "%s", is_chosen ? "chosen" : p->charged_bytes > r->budget_bytes ? "too big" : "");
    add_choice(r, &p->choice, d);
    pl_doc_key_difference(d, "micro_batch", p->choice.micro_batch);
    pl_doc_key_difference(d, "threads", p->choice.threads ? p->choice.threads : r->threads);
    pl_doc_key_count_if(d, p->least_bytes, "least_bytes", p->least_bytes);
    p->charged_bytes ? pl_doc_count(d, p->charged_bytes) : pl_doc_unknown(d);
    pl_doc_key_count_if(d, p->huge_bytes, "huge_pages_bytes", p->huge_bytes);
    pl_doc_key_real_if(d, timed, "seconds", p->seconds);
    pl_doc_key_real_if(d, timed, "seconds_spread", (p->high - p->low) / 2);
    pl_doc_key_real_if(d, timed, "seconds_low", p->low);
    pl_doc_key_real_if(d, timed, "seconds_high", p->high);
    pl_doc_key_real_if(d, timed, "estimated_seconds", p->estimated_seconds);
    pl_doc_seconds(d, p->seconds, p->estimated_seconds > 0);
    rate > 0 ? pl_doc_real(d, rate) : pl_doc_unknown(d);
    pl_fit_choice_say(r, &p->choice, pl_doc_sentence(d, NULL));
    pl_doc_sentence_end(d);
    pl_doc_key_bool(d, "front", p->front);
    pl_doc_row_end(d);
}

/* People see the front, by bytes; programs see all that was examined. */
static void add_points(const search *s, pl_doc *d)
{
    const pl_doc_column columns[] = {{NULL, ""},
                                     {"charged_bytes", "charged", PL_DOC_BYTES},
                                     {NULL, "a step", PL_DOC_SECONDS},
                                     {s->rate_key, s->rate_title, PL_DOC_RATE},
                                     {NULL, "", .is_remark = true}};
    pl_doc_table(d, "points", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->front_count; i++) add_point(s, s->front[i], PL_DOC_SHOWN, d);
    for (size_t i = 0; i < s->result->count; i++) add_point(s, &s->result->point[i], PL_DOC_HIDDEN, d);
    pl_doc_table_end(d);
}

static void say_front(const search *s, pl_doc *d)
{
    size_t planned = 0;
    bool is_estimated = false;
    for (size_t i = 0; i < s->result->count; i++) planned += s->result->point[i].charged_bytes != 0;
    for (size_t i = 0; i < s->front_count; i++) is_estimated |= s->front[i]->estimated_seconds > 0;
    if (is_estimated) pl_doc_say(d, 0, PL_REPORT_ESTIMATED_NOTE);
    pl_doc_say(d, 0, "%zu choice%s looked at, %zu planned; pages of 4 KiB", s->result->count,
               pl_plural(s->result->count), planned);
}

static void add_front(const search *s, pl_doc *d)
{
    if (s->front_count) pl_doc_section(d, "The front: more bytes, less time");
    add_points(s, d);
    if (s->front_count) say_front(s, d), pl_doc_section_end(d);
    if (s->front_count < 2 || s->front[0]->seconds <= 0) return;
    pl_doc_section(d, "Time against memory: seconds of a step by budget");
    pl_doc_draw(d, &(pl_doc_figure){.text = draw_plot, .page = draw_curve, .of = s});
    pl_doc_section_end(d);
}

/* ---- all of it ---- */

static pl_status write(search *s, pl_doc *d, pl_doc_form form, pl_str *out, pl_error *err)
{
    PL_TRY(pl_report_front(s->result, &s->front, &s->front_count, err));
    add_head(s, d);
    add_chosen(s, d);
    add_step(s, d);
    PL_TRY(add_others(s, d, err));
    add_front(s, d);
    pl_doc_write(d, form, &(pl_text_form){.columns = s->options->width, .color = s->options->color}, out);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the report of the search") : PL_OK;
}

pl_status pl_report_fit(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_doc_form form,
                        pl_str *out, pl_error *err)
{
    search s = {.result = r, .plan = plan, .options = o};
    pl_doc d = pl_doc_begin();
    snprintf(s.rate_key, sizeof s.rate_key, "%s_per_second", r->words->items);
    snprintf(s.rate_title, sizeof s.rate_title, "%s/s", r->words->items);
    const pl_status status = write(&s, &d, form, out, err);
    pl_free(s.front);
    pl_doc_deinit(&d);
    return status;
}

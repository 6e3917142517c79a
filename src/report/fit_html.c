/* The page of a search: the front as a curve and as a table, and the choices. One file, nothing loaded from outside. */
#include <stdio.h>

#include "base/units.h"
#include "ir/op.h"
#include "report/account.h"
#include "report/fit.h"
#include "report/html.h"
#include "report/interval.h"

enum { TEXT = 48 };

static void cell(pl_str *out, const char *class, const char *text)
{
    pl_str_printf(out, "<td%s%s%s>", class ? " class='" : "", class ? class : "", class ? "'" : "");
    pl_html_text(out, text);
    pl_str_append(out, "</td>");
}

static const char *seconds_text(double seconds, char text[TEXT])
{
    return pl_report_seconds(seconds, false, "0 s", text);
}

static void write_point(const pl_fit_result *r, const pl_fit_point *p, pl_str *out)
{
    char text[TEXT];
    pl_str words = {0};
    double rate = pl_report_items_per_second(r, p);
    bool chosen = r->chosen != PL_FIT_NONE && p == &r->point[r->chosen];
    pl_str_append(out, chosen ? "<tr class='total'>" : "<tr>");
    cell(out, NULL, chosen ? "chosen" : p->charged_bytes > r->budget_bytes ? "does not fit" : "");
    cell(out, "n", pl_format_count(p->charged_bytes, text, sizeof text));
    cell(out, "n", pl_report_seconds(p->seconds, p->estimated_seconds > 0, "0 s", text));
    cell(out, "n", rate > 0 ? pl_report_rate(rate, text, sizeof text) : "unknown");
    pl_fit_choice_say(r, &p->choice, &words);
    cell(out, "w", pl_str_text(&words));
    out->failed |= words.failed;
    pl_str_deinit(&words);
    pl_str_append(out, "</tr>\n");
}

static void write_table(const pl_fit_result *r, const pl_fit_point **front, size_t count, pl_str *out)
{
    pl_str_printf(
        out,
        "<section><h2>The front</h2><p>nothing that was looked at is both faster and smaller; ~ is estimated, not "
        "measured</p>\n<table>"
        "<tr><th></th><th class='n'>bytes charged</th><th class='n'>a step</th><th class='n'>%s/s"
        "</th><th></th></tr>\n",
        r->words->items);
    for (size_t i = 0; i < count; i++) write_point(r, front[i], out);
    pl_str_append(out, "</table></section>\n");
}

/* Where the budget is so far away that the front would be a corner of the picture, words say where it is. */
static void place_budget(const pl_fit_result *r, double least, double most, pl_html_chart *chart, char text[2 * TEXT])
{
    char bytes[TEXT];
    double budget = (double)r->budget_bytes / 1e6, room = most - least;
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

/* As a staircase: between two points the smaller one is what fits; and the last one is, however large the budget. */
static pl_status write_curve(const pl_fit_result *r, const pl_fit_point **front, size_t count, pl_str *out,
                             pl_error *err)
{
    pl_curve_point chosen, *stairs = pl_alloc(2 * count + 1, sizeof *stairs);
    size_t made = 0;
    char text[2 * TEXT];
    if (!stairs) return pl_fail(err, PL_E_NOMEM, "no memory for the page");
    for (size_t i = 0; i < count; i++) {
        if (front[i]->seconds < 0) continue;
        double megabytes = (double)front[i]->charged_bytes / 1e6;
        if (made) stairs[made] = (pl_curve_point){megabytes, stairs[made - 1].value}, made++;
        stairs[made++] = (pl_curve_point){megabytes, front[i]->seconds};
    }
    pl_html_chart chart = {.title = "Time against memory",
                           .unit = "seconds of a step, predicted",
                           .axis = "MB charged",
                           .least_tick = 0.001,
                           .from_zero = true};
    if (made) place_budget(r, stairs[0].step, stairs[made - 1].step, &chart, text);
    if (chart.mark_words && chart.mark > stairs[made - 1].step)
        stairs[made] = (pl_curve_point){chart.mark, stairs[made - 1].value}, made++;
    pl_html_curve curves[2] = {{stairs, made, "train", "weight", "the fastest plan that fits", false}};
    size_t n = 1;
    if (r->chosen != PL_FIT_NONE && r->point[r->chosen].seconds >= 0) {
        chosen = (pl_curve_point){(double)r->point[r->chosen].charged_bytes / 1e6, r->point[r->chosen].seconds};
        curves[n++] = (pl_html_curve){&chosen, 1, "valid", "gradient", "chosen", true};
    }
    chart.curve = curves;
    chart.count = n;
    pl_html_curves(&chart, out);
    pl_free(stairs);
    return PL_OK;
}

static void write_choices(const pl_fit_result *r, pl_str *out)
{
    pl_str_append(
        out, "<section><h2>Chosen</h2><p>In small letters: the fastest plan that fits with another value there, all "
             "else chosen anew; where none fits, the smallest.</p>\n<table>\n");
    for (size_t k = 0; k < pl_fit_axis_count(); k++) {
        pl_str words = {0}, why = {0};
        if (!pl_fit_axis_applies(k, r)) continue;
        pl_fit_axis_say(k, r, &r->point[r->chosen].choice, &words);
        pl_report_reason(r, k, &why);
        pl_str_append(out, "<tr>");
        cell(out, NULL, pl_fit_axis_name(k));
        cell(out, "h", pl_str_text(&words));
        cell(out, "w", pl_str_text(&why));
        pl_str_append(out, "</tr>\n");
        out->failed |= words.failed | why.failed;
        pl_str_deinit(&words);
        pl_str_deinit(&why);
    }
    pl_str_append(out, "</table></section>\n");
}

/* ---- nothing fits: what the text says, in the same words ---- */

static void write_sentence(void (*say)(const pl_fit_result *, pl_str *), const pl_fit_result *r, pl_str *out)
{
    pl_str words = {0};
    say(r, &words);
    pl_str_append(out, "<p>");
    pl_html_text(out, pl_str_text(&words));
    pl_str_append(out, "</p>\n");
    out->failed |= words.failed;
    pl_str_deinit(&words);
}

static void write_permission(const pl_fit_result *r, const pl_fit_permission *p, bool cheapest, pl_str *out)
{
    char text[TEXT];
    pl_str words = {0};
    pl_report_say_permission(r, p, &words);
    pl_str_append(out, cheapest ? "<tr class='total'>" : "<tr>");
    cell(out, NULL, p->key);
    cell(out, NULL, p->value);
    cell(out, NULL, p->fits ? "fits" : "does not fit");
    cell(out, "n", p->charged_bytes ? pl_format_count(p->charged_bytes, text, sizeof text) : "");
    cell(out, "n", p->charged_bytes ? seconds_text(p->seconds, text) : "");
    cell(out, "w", pl_str_text(&words));
    pl_str_append(out, "</tr>\n");
    out->failed |= words.failed;
    pl_str_deinit(&words);
}

static void write_bytes(uint64_t bytes, pl_str *out)
{
    char text[TEXT];
    cell(out, "n", pl_format_count(bytes, text, sizeof text));
    cell(out, "n", pl_format_bytes(bytes, text, sizeof text));
}

static void say_peak(const pl_fit_result *r, pl_str *out) { pl_report_say_peak(r->smallest, out); }

static pl_status write_alive(const pl_fit_result *r, pl_str *out, pl_error *err)
{
    const pl_plan *p = r->smallest;
    pl_report_account a = pl_report_sum(p);
    pl_report_alive *alive;
    size_t count;
    PL_TRY(pl_report_alive_at_peak(p, &alive, &count, err));
    write_sentence(say_peak, r, out);
    pl_str_append(out, "<table>");
    for (int role = 0; role < PL_ROLE_COUNT; role++) {
        if (a.role_bytes[role] == 0) continue;
        pl_str_append(out, "<tr>");
        cell(out, NULL, pl_report_role_title((pl_role)role));
        write_bytes(a.role_bytes[role], out);
        pl_str_append(out, "</tr>\n");
    }
    pl_str_append(out, "</table>\n<p>The largest that are not held all the time:</p>\n<table>");
    for (size_t i = 0; i < count && i < PL_REPORT_FIT_ALIVE; i++) {
        bool workspace = alive[i].value == PL_NONE;
        const pl_value *v = workspace ? NULL : &p->graph->value[alive[i].value];
        pl_str_append(out, "<tr>");
        cell(out, NULL, workspace ? pl_op_name(p->graph->node[alive[i].node].op) : v->name);
        cell(out, NULL, workspace ? "workspace" : pl_role_name(v->role));
        write_bytes(alive[i].block->bytes, out);
        pl_str_append(out, "</tr>\n");
    }
    pl_str_append(out, "</table>\n");
    pl_free(alive);
    return PL_OK;
}

static void write_permissions(const pl_fit_result *r, pl_str *out)
{
    if (!r->permission_count) return;
    pl_str_append(out, "<table><tr><th></th><th></th><th></th><th class='n'>bytes charged</th><th class='n'>a step"
                       "</th><th></th></tr>\n");
    for (size_t i = 0; i < r->permission_count; i++) write_permission(r, &r->permission[i], i == r->cheapest, out);
    pl_str_append(out, "</table>\n");
}

static void write_numbers(const pl_fit_result *r, pl_str *out)
{
    if (r->chosen == PL_FIT_NONE || !r->permission_count) return;
    pl_str_append(out, "<section><h2>With other numbers, each alone</h2>\n");
    write_permissions(r, out);
    pl_str_append(out, "</section>\n");
}

static pl_status write_certificate(const pl_fit_result *r, pl_str *out, pl_error *err)
{
    pl_str_append(out, "<section><h2>Nothing fits</h2>");
    write_sentence(pl_report_say_least, r, out);
    PL_TRY(write_alive(r, out, err));
    pl_str_printf(out, "</section><section><h2>%s</h2>\n",
                  r->permission_count ? "What would change that, each alone" : "Nothing more could be allowed");
    write_permissions(r, out);
    write_sentence(pl_report_say_remedy, r, out);
    pl_str_append(out, "</section>\n");
    return PL_OK;
}

static void write_rate(pl_str *out, double rate, const pl_words *words)
{
    char number[TEXT], text[2 * TEXT];
    snprintf(text, sizeof text, "%s a second", words->items);
    pl_html_card(pl_report_rate(rate, number, sizeof number), text, out);
}

static void write_head(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_str *out)
{
    char text[TEXT];
    pl_html_page_begin(&(pl_html_page){.title = o->title ? o->title : "Plimsoll", .what = "fit"}, out);
    pl_str_append(out, "<p>");
    pl_report_fit_batch(r, "×", out);
    pl_report_fit_group(plan, out);
    pl_str_append(out, "</p>\n");
    pl_html_cards_begin(out);
    if (r->budget_bytes != UINT64_MAX) pl_html_card(pl_format_bytes(r->budget_bytes, text, sizeof text), "budget", out);
    if (plan) {
        const pl_fit_point *p = &r->point[r->chosen];
        pl_html_card(pl_format_bytes(pl_plan_charged_bytes(plan), text, sizeof text), "charged, planned", out);
        pl_html_card(seconds_text(p->seconds, text), "a step, predicted", out);
        double rate = pl_report_items_per_second(r, p);
        if (rate > 0) write_rate(out, rate, r->words);
    } else {
        pl_html_card("nothing fits", "the budget", out);
    }
    pl_html_cards_end(out);
}

pl_status pl_report_fit_html(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_str *out,
                             pl_error *err)
{
    const pl_fit_point **front;
    size_t count;
    write_head(r, plan, o, out);
    PL_TRY(pl_report_front(r, &front, &count, err));
    pl_status status = count > 1 ? write_curve(r, front, count, out, err) : PL_OK;
    if (plan) write_choices(r, out);
    write_numbers(r, out);
    if (status == PL_OK && r->smallest) status = write_certificate(r, out, err);
    if (count) write_table(r, front, count, out);
    pl_free(front);
    pl_html_page_end(out);
    if (status == PL_OK && out->failed) status = pl_fail(err, PL_E_NOMEM, "no memory for the page");
    return status;
}

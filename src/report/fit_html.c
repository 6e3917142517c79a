/* The page of a search: the front as a curve and as a table, and the choices. One file, nothing loaded from outside. */
#include "base/units.h"
#include "report/fit.h"
#include "report/html.h"

enum { TEXT = 48 };

static void cell(pl_str *out, const char *class, const char *text)
{
    pl_str_printf(out, "<td%s%s%s>", class ? " class='" : "", class ? class : "", class ? "'" : "");
    pl_html_text(out, text);
    pl_str_append(out, "</td>");
}

static const char *seconds_text(double seconds, char text[TEXT])
{
    return seconds >= 0 ? pl_format_seconds(seconds, text, TEXT) : "unknown";
}

static void write_point(const pl_fit_result *r, const pl_fit_point *p, pl_str *out)
{
    char text[TEXT];
    pl_str words = {0};
    double rate = pl_report_tokens_per_second(r, p);
    bool chosen = r->chosen != PL_FIT_NONE && p == &r->point[r->chosen];
    pl_str_append(out, chosen ? "<tr class='total'>" : "<tr>");
    cell(out, NULL, chosen ? "chosen" : p->charged_bytes > r->budget_bytes ? "does not fit" : "");
    cell(out, "n", pl_format_count(p->charged_bytes, text, sizeof text));
    cell(out, "n", seconds_text(p->seconds, text));
    cell(out, "n", rate > 0 ? pl_format_count((uint64_t)rate, text, sizeof text) : "unknown");
    pl_fit_choice_say(r, &p->choice, &words);
    cell(out, "w", pl_str_text(&words));
    out->failed |= words.failed;
    pl_str_deinit(&words);
    pl_str_append(out, "</tr>\n");
}

static void write_table(const pl_fit_result *r, const pl_fit_point **front, size_t count, pl_str *out)
{
    pl_str_append(out,
                  "<section><h2>The front</h2><p>nothing that was looked at is both faster and smaller</p>\n<table>"
                  "<tr><th></th><th class='n'>bytes charged</th><th class='n'>a step</th><th class='n'>tokens/s"
                  "</th><th></th></tr>\n");
    for (size_t i = 0; i < count; i++) write_point(r, front[i], out);
    pl_str_append(out, "</table></section>\n");
}

/* As a staircase: between two points the smaller one is what fits. */
static pl_status write_curve(const pl_fit_result *r, const pl_fit_point **front, size_t count, pl_str *out,
                             pl_error *err)
{
    pl_report_point chosen, *stairs = pl_alloc(2 * count + 1, sizeof *stairs);
    size_t made = 0;
    if (!stairs) return pl_fail(err, PL_E_NOMEM, "no memory for the page");
    for (size_t i = 0; i < count; i++) {
        if (front[i]->seconds < 0) continue;
        double megabytes = (double)front[i]->charged_bytes / 1e6;
        if (made) stairs[made] = (pl_report_point){megabytes, stairs[made - 1].value}, made++;
        stairs[made++] = (pl_report_point){megabytes, front[i]->seconds};
    }
    pl_html_curve curves[2] = {{stairs, made, "train", "weight", "the fastest plan that fits", false}};
    size_t n = 1;
    if (r->chosen != PL_FIT_NONE && r->point[r->chosen].seconds >= 0) {
        chosen = (pl_report_point){(double)r->point[r->chosen].charged_bytes / 1e6, r->point[r->chosen].seconds};
        curves[n++] = (pl_html_curve){&chosen, 1, "valid", "gradient", "chosen", true};
    }
    pl_html_curves(&(pl_html_chart){.title = "Time against memory",
                                    .unit = "seconds of a step, predicted",
                                    .axis = "MB charged",
                                    .least_tick = 0.001,
                                    .curve = curves,
                                    .count = n},
                   out);
    pl_free(stairs);
    return PL_OK;
}

static void write_choices(const pl_fit_result *r, pl_str *out)
{
    pl_str_append(out, "<section><h2>Chosen</h2><table>\n");
    for (size_t k = 0; k < pl_fit_axis_count(); k++) {
        pl_str words = {0}, why = {0};
        pl_fit_axis_say(k, r, &r->point[r->chosen].choice, &words);
        pl_report_reason(r, k, &why);
        pl_str_append(out, "<tr>");
        cell(out, NULL, pl_fit_axis_name(k));
        cell(out, NULL, pl_str_text(&words));
        cell(out, "w", pl_str_text(&why));
        pl_str_append(out, "</tr>\n");
        out->failed |= words.failed | why.failed;
        pl_str_deinit(&words);
        pl_str_deinit(&why);
    }
    pl_str_append(out, "</table></section>\n");
}

static void write_permission(const pl_fit_permission *p, bool cheapest, pl_str *out)
{
    char text[TEXT];
    pl_str_append(out, cheapest ? "<tr class='total'>" : "<tr>");
    cell(out, NULL, p->key);
    cell(out, NULL, p->value);
    cell(out, NULL, p->fits ? "fits" : "does not fit");
    cell(out, "n", p->charged_bytes ? pl_format_count(p->charged_bytes, text, sizeof text) : "");
    cell(out, "n", p->charged_bytes ? seconds_text(p->seconds, text) : "");
    pl_str_append(out, "</tr>\n");
}

/* Why nothing fits, and what would change that, each alone. */
static void write_certificate(const pl_fit_result *r, pl_str *out)
{
    char least[TEXT], missing[TEXT];
    pl_str words = {0};
    uint64_t bytes = r->point[r->least].charged_bytes;
    pl_fit_choice_say(r, &r->point[r->least].choice, &words);
    pl_str_printf(out,
                  "<section><h2>Nothing fits</h2><p>Of %zu plans that are allowed none needs less than %s bytes "
                  "charged, %s more than the budget: ",
                  r->count, pl_format_count(bytes, least, sizeof least),
                  pl_format_bytes(bytes - r->budget_bytes, missing, sizeof missing));
    pl_html_text(out, pl_str_text(&words));
    pl_str_append(out, "</p>\n<table><tr><th>what would change that, each alone</th><th></th><th></th>"
                       "<th class='n'>bytes charged</th><th class='n'>a step</th></tr>\n");
    for (size_t i = 0; i < r->permission_count; i++) write_permission(&r->permission[i], i == r->cheapest, out);
    pl_str_append(out, "</table></section>\n");
    out->failed |= words.failed;
    pl_str_deinit(&words);
}

static void write_card(pl_str *out, const char *number, const char *words)
{
    pl_str_printf(out, "<div class='card'><b>%s</b><span>%s</span></div>\n", number, words);
}

static void write_head(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_str *out)
{
    const char *title = o->title ? o->title : "Plimsoll";
    char text[TEXT];
    pl_str_append(out, "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
                       "content='width=device-width'><title>");
    pl_html_text(out, title);
    pl_str_append(out, " – fit</title>\n<style>\n");
    pl_str_append(out, pl_html_style);
    pl_str_append(out, "</style></head>\n<body><main>\n<h1>");
    pl_html_text(out, title);
    pl_str_printf(out, "</h1>\n<p>batch %lld × %lld tokens</p>\n<div class='cards'>\n", (long long)r->batch,
                  (long long)r->sequence);
    if (r->budget_bytes != UINT64_MAX) write_card(out, pl_format_bytes(r->budget_bytes, text, sizeof text), "budget");
    if (plan) {
        const pl_fit_point *p = &r->point[r->chosen];
        write_card(out, pl_format_bytes(pl_plan_charged_bytes(plan), text, sizeof text), "charged, planned");
        write_card(out, seconds_text(p->seconds, text), "a step, predicted");
        double rate = pl_report_tokens_per_second(r, p);
        if (rate > 0) write_card(out, pl_format_count((uint64_t)rate, text, sizeof text), "tokens a second");
    } else {
        write_card(out, "nothing fits", "the budget");
    }
    pl_str_append(out, "</div>\n");
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
    if (r->smallest) write_certificate(r, out);
    if (count) write_table(r, front, count, out);
    pl_free(front);
    pl_str_append(out, "</main></body></html>\n");
    if (status == PL_OK && out->failed) status = pl_fail(err, PL_E_NOMEM, "no memory for the page");
    return status;
}

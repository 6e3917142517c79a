/* The table of times on a page: the rows of the text, with a bar for each component's share. */
#include <inttypes.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html.h"
#include "report/times.h"

static const char *const pass_class[PL_PHASE_COUNT] = {"weight", "gradient", "optimizer"};

static void cell_seconds(pl_str *out, const char *label, double seconds)
{
    char text[32];
    pl_html_cell(label,
                 seconds < 0                       ? "unknown"
                 : seconds >= PL_REPORT_TIME_SHOWN ? pl_format_seconds(seconds, text, sizeof text)
                                                   : "–",
                 out);
}

static void cell_ratio(pl_str *out, const char *label, double part, double whole, const char *format)
{
    char text[32] = "–";
    if (part > 0 && whole > 0) pl_print(text, sizeof text, format, part / whole);
    pl_html_cell(label, text, out);
}

static double shown(const pl_report_times *t, const pl_report_time *r)
{
    return t->runs ? r->seconds : r->predicted_seconds;
}

static double whole_of(const pl_report_times *t) { return t->runs ? t->seconds : t->predicted_seconds; }

static void put_row(const pl_report_times *t, const pl_report_time *r, const char *title, const char *class,
                    pl_str *out)
{
    const double seconds = shown(t, r), whole = whole_of(t);
    pl_str_printf(out, "<tr%s><td>", class ? "" : " class='total'");
    pl_html_text(out, title);
    pl_str_append(out, "</td>");
    if (t->runs) cell_seconds(out, "measured", r->seconds);
    cell_ratio(out, "share, %", 100 * seconds, whole, "%.1f");
    cell_seconds(out, "predicted", r->predicted_seconds);
    cell_ratio(out, "GFLOP", r->flops, 1e9, "%.3f");
    cell_ratio(out, "of rate, %", 100 * r->computing_seconds, seconds, "%.0f");
    cell_seconds(out, "at least", r->least_seconds);
    pl_str_append(out, "<td class='bar'>");
    if (class && seconds > 0 && whole > 0)
        pl_str_printf(out, "<i class='%s' style='width:%.2f%%'></i>", class,
                      seconds < whole ? 100 * seconds / whole : 100.0);
    pl_str_append(out, "</td></tr>\n");
}

static void put_rows(const pl_report_times *t, pl_str *out)
{
    char title[64];
    pl_report_time sum = pl_report_times_sum(t);
    const pl_report_time other = {.seconds = t->other_seconds};
    for (size_t i = 0; i < t->count; i++)
        put_row(t, &t->row[i], pl_report_time_title(&t->row[i], title, sizeof title), pass_class[t->row[i].phase], out);
    if (t->runs) put_row(t, &other, "other", "staging", out);
    sum.seconds += t->other_seconds;
    pl_print(title, sizeof title, "a %s", t->run);
    put_row(t, &sum, title, NULL, out);
}

static void put_besides(const pl_report_times *t, pl_str *out)
{
    char text[32];
    if (!t->besides_count) return;
    pl_str_append(out, "<p>Besides: ");
    for (size_t i = 0; i < t->besides_count; i++) {
        const pl_report_besides *b = &t->besides[i];
        if (i) pl_str_append(out, ", ");
        pl_html_text(out, b->name);
        pl_str_printf(out, " %s in %" PRIu64 " time%s", pl_format_seconds(b->seconds, text, sizeof text), b->count,
                      pl_plural(b->count));
    }
    pl_str_append(out, ".</p>\n");
}

/* Of the passes that there are. */
static void put_legend(const pl_report_times *t, pl_str *out)
{
    bool there[PL_PHASE_COUNT] = {false};
    for (size_t i = 0; i < t->count; i++) there[t->row[i].phase] = true;
    pl_str_append(out, "<div class='legend'>");
    for (int k = 0; k < PL_PHASE_COUNT; k++)
        if (there[k])
            pl_str_printf(out, "<span><i class='%s'></i>%s</span>", pass_class[k], pl_phase_name((pl_phase)k));
    pl_str_append(out, "</div>\n");
}

void pl_html_times(const pl_report_times *t, pl_str *out)
{
    if (!t->count || !(whole_of(t) > 0)) return;
    pl_str_append(out, "<section><h2>Time by component</h2><p>Of a ");
    pl_html_text(out, t->run);
    if (t->runs)
        pl_str_printf(out, ", the mean of %" PRIu64, t->runs);
    else
        pl_str_append(out, ", predicted");
    if (t->runs && t->first)
        pl_str_printf(out, " (%" PRIu64 " to %" PRIu64 ", since it went on)", t->first + 1, t->first + t->runs);
    if (t->flops_per_second > 0)
        pl_str_printf(out,
                      ". Rate: %.1f GFLOP/s of multiply-adds, %.1f GB/s from memory, what this machine reaches; at "
                      "that rate products, and bytes that no cache holds, take at least the time of the last column",
                      t->flops_per_second / 1e9, t->bytes_per_second / 1e9);
    if (t->estimated_seconds > 0 && t->predicted_seconds > 0)
        pl_str_printf(out, ". Of what is predicted %.2g %% is estimated, not measured",
                      100 * t->estimated_seconds / t->predicted_seconds);
    pl_str_append(out, ".</p><table class='labels'><tr><th></th>");
    if (t->runs) pl_str_append(out, "<th class='n'>measured</th>");
    pl_str_append(out, "<th class='n'>share, %</th><th class='n'>predicted</th><th class='n'>GFLOP</th><th "
                       "class='n'>of rate, %</th><th class='n'>at least</th><th></th></tr>\n");
    put_rows(t, out);
    pl_str_append(out, "</table>\n");
    put_legend(t, out);
    put_besides(t, out);
    pl_str_append(out, "</section>\n");
}

pl_status pl_report_times_page(const char *title, const pl_report_times *t, const char *sections, pl_str *out,
                               pl_error *err)
{
    pl_html_page_begin(&(pl_html_page){.title = title, .what = "times"}, out);
    pl_html_times(t, out);
    pl_str_append(out, sections);
    pl_html_page_end(out);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the page") : PL_OK;
}

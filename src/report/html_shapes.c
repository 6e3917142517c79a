/* Planned against measured, a row for each shape of operators: each has a plan and processes of its own. */
#include <inttypes.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html_rollout.h"

enum { OPEN_ROWS = 24, TEXT = 48 };

static const char *difference(int64_t bytes, char text[TEXT])
{
    char count[32];
    snprintf(text, TEXT, "%s%s",
             bytes < 0 ? "−"
             : bytes   ? "+"
                       : "",
             pl_format_count(bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes, count, sizeof count));
    return text;
}

static const char *rate(uint64_t states, double seconds, char text[TEXT])
{
    const double value = seconds > 0 ? (double)states / seconds : 0;
    if (!(value > 0)) return "–";
    pl_print(text, TEXT, value < 100 ? "%.3g" : "%.0f", value);
    return text;
}

static void put_measured(const pl_html_shape *s, pl_str *out)
{
    char text[TEXT];
    pl_html_cell("planned", pl_format_count(s->planned_bytes, text, sizeof text), out);
    pl_html_cell("measured", pl_format_count(s->peak_bytes, text, sizeof text), out);
    pl_html_cell("difference", difference((int64_t)(s->peak_bytes - s->planned_bytes), text), out);
    pl_html_cell("states/s", rate(s->states, s->seconds, text), out);
    pl_html_cell("processes", pl_format_count(s->processes, text, sizeof text), out);
}

static void put_shape(const pl_html_shape *s, pl_str *out)
{
    char done[32], all[32], text[TEXT + 32];
    pl_str_append(out, s->processes && !s->as_planned ? "<tr class='bad'><td class='h'>" : "<tr><td class='h'>");
    pl_html_text(out, s->words);
    pl_str_append(out, "</td>");
    snprintf(text, sizeof text, "%s of %s", pl_format_count(s->done, done, sizeof done),
             pl_format_count(s->operators, all, sizeof all));
    pl_html_cell("finished", text, out);
    if (s->processes)
        put_measured(s, out);
    else
        pl_str_append(out, "<td class='w'>no process has told</td><td></td><td></td><td></td><td></td>");
    pl_str_append(out, "</tr>\n");
}

/* A shape that nothing was done for yet has nothing to show. */
static bool is_shown(const pl_html_shape *s) { return s->processes || s->done; }

static void put_cards(const pl_html_shape *shape, size_t count, pl_str *out)
{
    uint64_t planned = 0, measured = 0, states = 0, processes = 0, odd = 0;
    double seconds = 0;
    char text[TEXT], words[64];
    for (size_t i = 0; i < count; i++) {
        const pl_html_shape *s = &shape[i];
        if (s->planned_bytes > planned) planned = s->planned_bytes;
        if (s->peak_bytes > measured) measured = s->peak_bytes;
        states += s->states, seconds += s->seconds, processes += s->processes;
        odd += s->processes && !s->as_planned;
    }
    if (processes == 0) return;
    pl_html_cards_begin(out);
    pl_html_card(pl_format_bytes(planned, text, sizeof text), "largest peak, planned", out);
    pl_html_card(pl_format_bytes(measured, text, sizeof text), "largest peak, measured", out);
    pl_html_card(rate(states, seconds, text), "states a second, over all processes", out);
    snprintf(words, sizeof words, "of %" PRIu64 " process%s", processes, processes == 1 ? "" : "es");
    pl_html_card(odd ? "not as planned" : "as planned", words, out);
    pl_html_cards_end(out);
}

void pl_html_shapes(const pl_html_shape *shape, size_t count, const char *remark, pl_str *out)
{
    size_t shown = 0;
    char text[32], words[160];
    for (size_t i = 0; i < count; i++) shown += is_shown(&shape[i]);
    snprintf(words, sizeof words, "Operators of one shape share a plan and a process. There %s %s shape%s%s",
             count == 1 ? "is" : "are", pl_format_count(count, text, sizeof text), pl_plural(count),
             shown < count ? "; those not begun are left out." : ".");
    pl_html_section("Memory, planned and measured", words, out);
    if (remark[0]) pl_str_append(out, "<p>");
    pl_html_text(out, remark);
    if (remark[0]) pl_str_append(out, "</p>\n");
    put_cards(shape, count, out);
    if (shown > OPEN_ROWS) pl_str_printf(out, "<details><summary>all %zu shapes</summary>\n", shown);
    if (shown)
        pl_str_append(out,
                      "<table class='labels'><tr><th></th><th class='n'>finished</th><th class='n'>planned</th><th "
                      "class='n'>measured</th><th class='n'>difference</th><th class='n'>states/s</th><th "
                      "class='n'>processes</th></tr>\n");
    for (size_t i = 0; i < count; i++)
        if (is_shown(&shape[i])) put_shape(&shape[i], out);
    if (shown) pl_str_append(out, "</table>\n");
    if (shown > OPEN_ROWS) pl_str_append(out, "</details>\n");
    pl_str_append(out, "</section>\n");
}

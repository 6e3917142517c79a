/* The page: one file, no scripts, nothing loaded from elsewhere. Whatever comes from a graph or a path is escaped. */
#include "report/html.h"
#include "report/interval.h"
#include "report/advice.h"
#include "report/times.h"
#include "report/work.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "ir/properties.h"

void pl_html_text_bytes(pl_str *out, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < bytes;) {
        size_t n = pl_json_utf8_length(p + i, bytes - i);
        if (n == 0 || (p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f)
            pl_str_append(out, "\xef\xbf\xbd");
        else if (strchr("&<>\"'", p[i]))
            pl_str_printf(out, "&#%d;", p[i]);
        else
            pl_str_append_bytes(out, p + i, n);
        i += n ? n : 1;
    }
}

void pl_html_text(pl_str *out, const char *text) { pl_html_text_bytes(out, text, strlen(text)); }

double pl_html_tick(double range, int ticks)
{
    if (!(range > 0)) return 1;
    double step = pow(10, floor(log10(range / ticks)));
    if (range / step <= ticks) return step;
    if (range / (2 * step) <= ticks) return 2 * step;
    return range / (5 * step) <= ticks ? 5 * step : 10 * step;
}

const char *pl_html_role_class(pl_role role) { return pl_role_name(role); }

const char *pl_html_group_class(pl_report_group group)
{
    static const char *const classes[] = {"weight", "gradient", "optimizer", "saved", "workspace", "other"};
    return classes[group];
}

static void write_time_card(const pl_plan *p, pl_id train, pl_str *out)
{
    char number[48], low[32], high[32], words[128];
    const pl_duration t = pl_plan_program_time(p, train);
    const bool estimated = pl_report_estimated_seconds(p, train) > 0;
    if (t.high > t.low)
        snprintf(words, sizeof words, "a step, predicted: %s to %s", pl_format_seconds(t.low, low, sizeof low),
                 pl_format_seconds(t.high, high, sizeof high));
    else
        snprintf(words, sizeof words, "a step, predicted");
    if (t.busy >= PL_REPORT_BUSY)
        snprintf(words + strlen(words), sizeof words - strlen(words), "; this machine was busy");
    else if (estimated)
        snprintf(words + strlen(words), sizeof words - strlen(words), "; ~ in part estimated");
    pl_html_card(pl_report_seconds(t.seconds, estimated, "0 s", number), words, out);
}

static void write_cards(const pl_plan *p, const pl_report_run *run, const pl_report_options *o, pl_str *out)
{
    char number[48], words[96], text[32];
    pl_id train = pl_graph_find_trained(p->graph);
    double seconds = train == PL_NONE ? 0 : pl_plan_program_seconds(p, train);
    pl_html_cards_begin(out);
    pl_html_card(pl_format_bytes(pl_plan_resident_bytes(p), number, sizeof number), "resident, planned", out);
    if (run && run->measured)
        pl_html_card(pl_format_bytes(run->measured->peak_bytes, number, sizeof number), "peak, measured", out);
    if (o->budget_bytes == PL_REPORT_NO_BUDGET)
        snprintf(words, sizeof words, "charged, planned");
    else
        snprintf(words, sizeof words, "charged, planned, of %s", pl_format_bytes(o->budget_bytes, text, sizeof text));
    pl_html_card(pl_format_bytes(pl_plan_charged_bytes(p), number, sizeof number), words, out);
    pl_print(words, sizeof words, "arena, %.2f %% above its lower bound",
             p->arena->lower_bound_bytes ? 100 * ((double)p->arena->bytes / (double)p->arena->lower_bound_bytes - 1)
                                         : 0);
    pl_html_card(pl_format_bytes(p->arena->bytes, number, sizeof number), words, out);
    if (seconds > 0) write_time_card(p, train, out);
    if (seconds < 0) pl_html_card("unknown", "a step, predicted", out);
    if (run && run->steps && run->seconds > 0) {
        snprintf(words, sizeof words, "a step, measured over %s", pl_format_count(run->steps, text, sizeof text));
        pl_html_card(pl_format_seconds(run->seconds / (double)run->steps, number, sizeof number), words, out);
    }
    pl_html_cards_end(out);
}

static void write_head(const pl_plan *p, const pl_report_run *run, const pl_report_options *o, pl_str *out)
{
    char count[32];
    pl_report_model m = pl_report_describe(p);
    pl_html_page_begin(&(pl_html_page){.title = o->title ? o->title : "Plimsoll", .what = run ? "run" : "plan"}, out);
    pl_str_printf(out, "<p>%s parameters", pl_format_count(m.parameters, count, sizeof count));
    if (m.layers) pl_str_printf(out, " in %" PRIu64 " layer%s", m.layers, pl_plural(m.layers));
    if (m.batch) pl_str_append(out, "; ");
    pl_report_batch(&m, out);
    pl_str_printf(out, "; %d thread%s, %s", p->team.threads, pl_plural((uint64_t)p->team.threads),
                  pl_isa_name(p->team.isa));
    if (run && run->verdict) {
        pl_str_append(out, ". ");
        pl_html_text(out, run->verdict);
    }
    pl_str_append(out, "</p>\n");
}

static pl_status write_counted(const pl_plan *p, const pl_report_options *o, pl_str *out, pl_error *err)
{
    pl_report_components components;
    pl_report_programs programs;
    pl_report_alive *alive;
    size_t count;
    PL_TRY(pl_report_components_create(p, o->scope_depth, &components, err));
    pl_html_components(&components, out);
    pl_report_components_deinit(&components);
    PL_TRY(pl_report_alive_at_peak(p, &alive, &count, err));
    pl_html_alive(p, alive, count, o->values, out);
    pl_free(alive);
    uint64_t *sum = pl_alloc(p->graph->node_count + 1, sizeof *sum);
    if (!sum) return pl_fail(err, PL_E_NOMEM, "no memory to report on %zu nodes", p->graph->node_count);
    pl_plan_alive(p, PL_SPACE_RAM, sum);
    pl_status status = pl_report_programs_create(p, sum, &programs, err);
    pl_free(sum);
    PL_TRY(status);
    pl_html_programs(p, &programs, out);
    pl_report_programs_deinit(&programs);
    return PL_OK;
}

/* Where the time of a step is predicted to go. */
static pl_status write_times(const pl_plan *p, pl_str *out, pl_error *err)
{
    const pl_id train = pl_graph_find_trained(p->graph);
    pl_components components;
    if (train == PL_NONE) return PL_OK;
    PL_TRY(pl_components_create(p->graph, train, &components, err));
    pl_report_times *t = pl_alloc(1, sizeof *t); /* large */
    pl_status status = t ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the table of times");
    if (t) {
        pl_report_times_predict(p, train, &components, t);
        pl_print(t->run, sizeof t->run, "step");
        pl_html_times(t, out);
    }
    pl_free(t);
    pl_components_deinit(&components);
    return status;
}

pl_status pl_report_html(const pl_plan *p, const pl_report_run *run, const pl_report_options *options, pl_str *out,
                         pl_error *err)
{
    pl_report_options defaults = pl_report_options_default();
    const pl_report_options *o = options ? options : &defaults;
    pl_report_account account = pl_report_sum(p);
    write_head(p, run, o, out);
    write_cards(p, run, o, out);
    if (run) pl_html_losses(run, pl_plan_words_of(p), out);
    pl_html_arena(p, &account, o->budget_bytes, out);
    pl_html_ledger(p, &account, o->budget_bytes, out);
    if (p->work) pl_report_work_html(p->work, pl_plan_words_of(p), out);
    if (p->advice) pl_report_advice_html(p, out);
    if (run && run->measured) pl_html_measured(&p->ledger, run->measured, out);
    PL_TRY(write_counted(p, o, out, err));
    PL_TRY(write_times(p, out, err));
    pl_html_timeline(p, out);
    pl_html_page_end(out);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the page") : PL_OK;
}

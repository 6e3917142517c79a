#include "report/interval.h"

#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"

double pl_report_estimated_seconds(const pl_plan *p, pl_id program)
{
    const pl_graph *g = p->graph;
    double sum = 0;
    if (!p->estimated) return p->estimated_share * fmax(pl_plan_program_seconds(p, program), 0);
    for (size_t i = 0; i < g->node_count; i++)
        if (p->estimated[i] && p->seconds[i] > 0 && pl_region_program(g, g->node[i].region) == program)
            sum += p->seconds[i] * (double)pl_node_trips(g, &g->node[i]);
    return sum;
}

const char *pl_report_seconds(double seconds, bool estimated, const char *none, char text[48])
{
    char number[32];
    if (seconds < 0)
        snprintf(text, 48, "unknown");
    else if (seconds == 0)
        snprintf(text, 48, "%s", none);
    else
        snprintf(text, 48, "%s%s", estimated ? PL_REPORT_ESTIMATED : "",
                 pl_format_seconds(seconds, number, sizeof number));
    return text;
}

void pl_report_say_interval(double seconds, double low, double high, pl_str *out)
{
    char text[32];
    pl_str_append(out, pl_format_seconds(seconds, text, sizeof text));
    if (!(high > low)) return;
    pl_str_printf(out, " (%s to ", pl_format_seconds(low, text, sizeof text));
    pl_str_printf(out, "%s)", pl_format_seconds(high, text, sizeof text));
}

void pl_report_say_basis(double seconds, double low, double high, double estimated_seconds, double busy, pl_str *out)
{
    char text[160];
    if (!(seconds > 0)) return;
    if (estimated_seconds > 0) {
        const double percent = 100 * estimated_seconds / seconds;
        pl_print(text, sizeof text, percent < 0.95 ? " %.1g %%" : " %.0f %%", fmin(percent, 100));
        pl_str_printf(out, "%s of it is estimated, not measured.", text);
    }
    if (busy < PL_REPORT_BUSY) return;
    const double factor = low > 0 ? fmax(high / seconds, seconds / low) : high / seconds;
    pl_print(text, sizeof text,
             factor < 9.95 ? " This machine was busy when kernels were measured: it may be off by a factor of %.1f."
                           : " This machine was busy when kernels were measured: it may be off by a factor of %.0f.",
             factor);
    pl_str_append(out, text);
}

void pl_report_add_range(pl_doc *d, const char *low, const char *high, const char *estimated, const pl_duration *p,
                         double estimated_seconds)
{
    const bool known = p->seconds > 0;
    pl_doc_key_real_if(d, known, low, p->low);
    pl_doc_key_real_if(d, known, high, p->high);
    pl_doc_key_real_if(d, known, estimated, estimated_seconds);
    pl_doc_key_real_if(d, known, "busy", p->busy);
}

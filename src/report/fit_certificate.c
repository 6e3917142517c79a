/* The sentences of a certificate: why nothing fits, and what would change that. */
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "ir/op.h"
#include "report/fit.h"

void pl_report_say_least(const pl_fit_result *r, pl_str *out)
{
    char exact[32], more[32];
    const pl_fit_point *least = &r->point[r->least];
    pl_str_printf(out, "Of %zu plan%s allowed none needs less than %s bytes charged, ", r->count,
                  r->count == 1 ? " that is" : "s that are",
                  pl_format_count(least->charged_bytes, exact, sizeof exact));
    pl_str_printf(
        out, "%s more than the budget: ", pl_format_bytes(least->charged_bytes - r->budget_bytes, more, sizeof more));
    pl_fit_choice_say(r, &least->choice, out);
    pl_str_append(out, ".");
}

void pl_report_say_peak(const pl_fit_result *r, pl_str *out)
{
    const pl_plan *p = r->smallest;
    const pl_node *n = &p->graph->node[p->arena->peak_position];
    pl_str_printf(out, "At its peak (%s in %s, %s pass) are alive:", pl_op_name(n->op),
                  n->scope[0] ? n->scope : "no component", pl_phase_name(n->phase));
}

void pl_report_say_permission(const pl_fit_result *r, const pl_fit_permission *p, pl_str *out)
{
    const bool fits = r->chosen != PL_FIT_NONE;
    const pl_fit_point *least = &r->point[fits ? r->chosen : r->least];
    char text[96] = "";
    if (p->charged_bytes == 0) return; /* weights and what belongs to them are larger than the budget */
    if (p->seconds >= 0 && least->seconds > 0)
        pl_print(text, sizeof text, "%+.1f %% against %s", 100 * (p->seconds / least->seconds - 1),
                 fits ? "what was chosen" : "the smallest plan");
    else if (p->work > 0 && least->work > 0)
        pl_print(text, sizeof text, "not measured; by operations and bytes %+.0f %%",
                 100 * (p->work / least->work - 1));
    pl_str_append(out, text);
}

void pl_report_say_remedy(const pl_fit_result *r, pl_str *out)
{
    char exact[32], floor[32];
    if (r->cheapest != PL_FIT_NONE)
        pl_str_printf(out, "The cheapest is %s: %s.", r->permission[r->cheapest].key, r->permission[r->cheapest].value);
    else if (r->budget_bytes < r->floor_bytes)
        pl_str_printf(out, "None makes it fit, and " PL_FIT_NO_MODEL("%s") ": raise the budget to %s bytes.",
                      pl_format_count(r->floor_bytes, floor, sizeof floor),
                      pl_format_count(r->point[r->least].charged_bytes, exact, sizeof exact));
    else
        pl_str_printf(out, "None makes it fit: raise the budget to %s bytes, or make %s smaller.",
                      pl_format_count(r->point[r->least].charged_bytes, exact, sizeof exact), r->words->size_keys);
}

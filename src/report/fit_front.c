/* The front in order, and the reasons: for each axis the chosen point beside those that differ from it there alone. */
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/fit.h"

enum { REASONS_MAX = 3 };

static int by_bytes(const void *a, const void *b)
{
    const pl_fit_point *p = *(const pl_fit_point *const *)a, *q = *(const pl_fit_point *const *)b;
    return (p->charged_bytes > q->charged_bytes) - (p->charged_bytes < q->charged_bytes);
}

pl_status pl_report_front(const pl_fit_result *r, const pl_fit_point ***front, size_t *count, pl_error *err)
{
    *count = 0;
    *front = pl_alloc(r->count + 1, sizeof **front);
    if (!*front) return pl_fail(err, PL_E_NOMEM, "no memory for a front of %zu choices", r->count);
    for (size_t i = 0; i < r->count; i++)
        if (r->point[i].front) (*front)[(*count)++] = &r->point[i];
    qsort(*front, *count, sizeof **front, by_bytes);
    return PL_OK;
}

double pl_report_tokens_per_second(const pl_fit_result *r, const pl_fit_point *p)
{
    return p->seconds > 0 ? (double)r->batch * (double)r->sequence / p->seconds : -1;
}

static bool differs_there_alone(const pl_fit_result *r, size_t axis, const pl_fit_point *p)
{
    const pl_choice *chosen = &r->point[r->chosen].choice;
    for (size_t k = 0; k < pl_fit_axis_count(); k++)
        if (pl_fit_axis_same(k, r, chosen, &p->choice) == (k == axis)) return false;
    return true;
}

static void say_other(const pl_fit_result *r, size_t axis, const pl_fit_point *p, pl_str *out)
{
    const pl_fit_point *chosen = &r->point[r->chosen];
    char bytes[32], more[32], text[64];
    uint64_t least = p->charged_bytes ? p->charged_bytes : p->least_bytes;
    pl_fit_axis_short(axis, r, &p->choice, out);
    if (least > r->budget_bytes) {
        pl_str_printf(out, ": %s%s, %s more than the budget", p->charged_bytes ? "" : "at least ",
                      pl_format_bytes(least, bytes, sizeof bytes),
                      pl_format_bytes(least - r->budget_bytes, more, sizeof more));
        return;
    }
    if (p->seconds < 0 || chosen->seconds <= 0) {
        pl_str_printf(out, ": %s%s, its time is not known", p->charged_bytes ? "" : "at least ",
                      pl_format_bytes(least, bytes, sizeof bytes));
        return;
    }
    pl_print(text, sizeof text, ": %+.1f %% time", 100 * (p->seconds / chosen->seconds - 1));
    pl_str_printf(out, "%s, %s%s", text, p->charged_bytes ? "" : "at least ",
                  pl_format_bytes(least, bytes, sizeof bytes));
}

/* A value once, though several choices may have it that differ in what the axes do not tell. */
void pl_report_reason(const pl_fit_result *r, size_t axis, pl_str *out)
{
    const pl_choice *said[REASONS_MAX];
    int count = 0;
    for (size_t i = 0; i < r->count && count < REASONS_MAX; i++) {
        const pl_choice *other = &r->point[i].choice;
        bool again = i == r->chosen || !differs_there_alone(r, axis, &r->point[i]);
        for (int k = 0; k < count && !again; k++) again = pl_fit_axis_same(axis, r, said[k], other);
        if (again) continue;
        pl_str_append(out, count ? "; " : "");
        say_other(r, axis, &r->point[i], out);
        said[count++] = other;
    }
}

/* The front in order, and the reasons: for each axis the chosen point beside the best with another value there. */
#include <stdlib.h>

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

double pl_report_items_per_second(const pl_fit_result *r, const pl_fit_point *p)
{
    return p->seconds > 0 ? (double)r->batch * (double)r->rows / p->seconds : -1;
}

/* What a plan of this choice is charged, or holds at least where none was made. */
static uint64_t bytes_of(const pl_fit_point *p) { return p->charged_bytes ? p->charged_bytes : p->least_bytes; }

/* Is p a better answer to "why not that value?" than q: it fits and takes less time; or nothing fits, and it is
 * smaller. A plan that was not made may be larger than what is known of it; then its time is a bound for those that
 * do fit. */
static bool is_better(const pl_fit_result *r, const pl_fit_point *p, const pl_fit_point *q)
{
    bool fits = bytes_of(p) <= r->budget_bytes, other_fits = bytes_of(q) <= r->budget_bytes;
    if (fits != other_fits) return fits;
    if (fits && (p->seconds < 0) != (q->seconds < 0)) return q->seconds < 0;
    if (fits && p->seconds >= 0 && p->seconds != q->seconds) return p->seconds < q->seconds;
    return bytes_of(p) < bytes_of(q);
}

static void say_other(const pl_fit_result *r, size_t axis, const pl_fit_point *p, pl_str *out)
{
    const pl_fit_point *chosen = &r->point[r->chosen];
    const char *least = p->charged_bytes ? "" : "at least ";
    char bytes[32], more[32], text[64];
    pl_format_bytes(bytes_of(p), bytes, sizeof bytes);
    pl_fit_axis_short(axis, r, &p->choice, out);
    if (bytes_of(p) > r->budget_bytes) {
        pl_str_printf(out, ": %s%s, %s more than the budget", least, bytes,
                      pl_format_bytes(bytes_of(p) - r->budget_bytes, more, sizeof more));
        return;
    }
    if (p->seconds < 0 || chosen->seconds <= 0) {
        pl_str_printf(out, ": %s%s, its time is not known", least, bytes);
        return;
    }
    pl_print(text, sizeof text, "%+.1f %% time", 100 * (p->seconds / chosen->seconds - 1));
    pl_str_printf(out, ": %s%s, %s", least, text, bytes);
}

/* Each other value of the axis once, told from the plan that the same budget would get if that value had to be: the
 * nearest first. So there is no better one of the same value, and what is said of two values can be compared. */
void pl_report_reason(const pl_fit_result *r, size_t axis, pl_str *out)
{
    const pl_choice *said[REASONS_MAX + 1] = {&r->point[r->chosen].choice};
    for (int count = 1; count <= REASONS_MAX; count++) {
        const pl_fit_point *best = NULL;
        for (size_t i = 0; i < r->count; i++) {
            const pl_fit_point *p = &r->point[i];
            bool again = best && !is_better(r, p, best);
            for (int k = 0; k < count && !again; k++) again = pl_fit_axis_same(axis, r, said[k], &p->choice);
            if (!again) best = p;
        }
        if (!best) return;
        pl_str_append(out, count > 1 ? "; " : "");
        say_other(r, axis, best, out);
        said[count] = &best->choice;
    }
}

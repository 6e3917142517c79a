/* Fit: the fastest of all ways to run a training inside a budget, and why; the front of time against memory; and, when
 * nothing fits, what would.
 *
 *     pl_fit_answer *answer;
 *     pl_status status = pl_fit_make(config, cache, NULL, NULL, &answer, &error);      PL_E_BUDGET: nothing fits
 *     …   pl_fit_text(answer, PL_FIT_REPORT, 100, false, &text, NULL, &error), pl_plan_save(pl_fit_plan(answer), …)
 *     pl_fit_destroy(answer);
 */
#ifndef PLIMSOLL_FIT_H
#define PLIMSOLL_FIT_H

#include "plimsoll/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_fit_answer pl_fit_answer;

/* Searches for the fastest training within memory.budget: the plan that pl_plan_make makes for the same budget, and
 * everything that was looked at on the way, including what does not fit. The data must be prepared. Kernels that were
 * never measured here are measured first, but not when nothing fits. PL_E_BUDGET with a sentence when nothing fits:
 * then there is an answer, too, without a plan. After any other failure there is no answer. */
PL_API PL_MUST_USE pl_status pl_fit_make(const pl_config *, const char *cache_folder, pl_progress, void *context,
                                         pl_fit_answer **, pl_error *);
PL_API void pl_fit_destroy(pl_fit_answer *); /* NULL is fine */

/* The chosen plan; it belongs to the answer. NULL when nothing fits. */
PL_API const pl_plan *pl_fit_plan(const pl_fit_answer *);

typedef enum pl_fit_form {
    PL_FIT_REPORT, /* for a person */
    PL_FIT_JSON,   /* schema plimsoll.fit/1 */
    PL_FIT_HTML,   /* one page with pictures */
} pl_fit_form;
/* Text in a block for pl_text_free; columns of a line (0: 80) and colour matter for the report only. */
PL_API PL_MUST_USE pl_status pl_fit_text(const pl_fit_answer *, pl_fit_form, unsigned columns, bool color, char **text,
                                         size_t *bytes, pl_error *);

#ifdef __cplusplus
}
#endif
#endif

/* Raising errors. `return pl_fail(err, PL_E_DATA, "…")` fills the caller's error and gives the status back;
 * PL_TRY passes a failure on. err may be NULL: then only the status travels. */
#ifndef PL_BASE_ERROR_H
#define PL_BASE_ERROR_H

#include "plimsoll/status.h"

/* Sets status and text (replacing what was there) and returns status. */
pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...) PL_PRINTF(3, 4);

/* Puts "prefix: " before the text that is already there (adds the place to a sentence from below); returns the
 * status. */
pl_status pl_fail_prefix(pl_error *err, pl_status status, const char *fmt, ...) PL_PRINTF(3, 4);

/* Puts more behind the text that is already there, as far as there is room; the status stays. */
void pl_error_append(pl_error *err, const char *fmt, ...) PL_PRINTF(2, 3);

void pl_error_clear(pl_error *err);

#define PL_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        pl_status pl_try_status_ = (expr);                                                                             \
        if (pl_try_status_ != PL_OK) return pl_try_status_;                                                            \
    } while (0)

/* The same where something has to be released: needs `pl_status status;` and a label `done:` in the function. */
#define PL_TRY_DONE(expr)                                                                                              \
    do {                                                                                                               \
        status = (expr);                                                                                               \
        if (status != PL_OK) goto done;                                                                                \
    } while (0)

#endif

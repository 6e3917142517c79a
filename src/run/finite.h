/* Does a tensor hold numbers only? */
#ifndef PL_RUN_FINITE_H
#define PL_RUN_FINITE_H

#include <stdbool.h>

#include "run/session.h"
#include "store/safetensors.h"

/* F32 and BF16: no infinity, no NaN. U8: rows of base/block8.h, whose scales tell. */
bool pl_finite_tensor(const pl_st_entry *);

/* The name of the first of the model's weights that holds an infinity or a NaN; NULL: none does. Of those in integers
 * nothing is known. Asks for no memory. */
const char *pl_finite_find_bad(const pl_session *);

#endif

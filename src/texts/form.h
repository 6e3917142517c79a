/* What a file holds, where its user does not say: by its name and its first bytes, unpacked. */
#ifndef PL_TEXTS_FORM_H
#define PL_TEXTS_FORM_H

#include <stddef.h>

#include "base/error.h"
#include "texts/setup.h"

/* What an ending, in any case and before ".gz", says about a file: the form of its texts. Where the name alone does not
 * tell that, or they cannot be read: what it is, and what to do. */
typedef struct pl_text_ending {
    const char *ending;
    pl_texts_form form;
    const char *is, *remedy; /* NULL: it is read in that form */
} pl_text_ending;
const pl_text_ending *pl_text_ending_of(const char *path); /* NULL: its name says nothing */

/* PL_E_DATA, with what to do, for what nobody means as a text: compressed by a program other than gzip, or Parquet. */
pl_status pl_text_form_check(const char *path, const uint8_t *head, size_t bytes, pl_error *);
/* jsonl: by its name (.jsonl, .ndjson), or if its first two lines are objects. csv: by its name. squad: a .json that
 * begins so. All else is whole. PL_E_NOMEM. */
pl_status pl_text_form_find(const char *path, const uint8_t *head, size_t bytes, pl_texts_form *, pl_error *);

#endif

/* What a file holds that its user does not say: by its name and its first bytes, unpacked. */
#ifndef PL_TEXTS_FORM_H
#define PL_TEXTS_FORM_H

#include <stddef.h>

#include "base/error.h"
#include "texts/setup.h"

/* What an ending, in any case and before ".gz", says of a file: the form of its texts. Where that is not known by the
 * name alone, or they cannot be read: what it is, and what to do. */
typedef struct pl_text_ending {
    const char *ending;
    pl_texts_form form;
    const char *is, *remedy; /* NULL: it is read in that form */
} pl_text_ending;
const pl_text_ending *pl_text_ending_of(const char *path); /* NULL: its name says nothing */

/* PL_E_DATA for what nobody means as a text: compressed by another program than gzip, or Parquet; with what to do. */
pl_status pl_text_form_check(const char *path, const uint8_t *head, size_t bytes, pl_error *);
/* jsonl: by its name (.jsonl, .ndjson), or where its first two lines are objects. csv: by its name. squad: a .json that
 * begins so. All else is whole. PL_E_NOMEM. */
pl_status pl_text_form_find(const char *path, const uint8_t *head, size_t bytes, pl_texts_form *, pl_error *);

#endif

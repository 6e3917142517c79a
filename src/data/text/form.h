/* Is a file a text to learn, or evidently something else? Any bytes can be learnt, so only what is certain is refused:
 * what an archiver begins its files with, lines that are JSON, and what its name says. */
#ifndef PL_DATA_TEXT_FORM_H
#define PL_DATA_TEXT_FORM_H

#include "base/error.h"

/* PL_E_DATA, with what to do, where it is compressed, JSON Lines or CSV. What cannot be opened is for others to say. */
pl_status pl_text_check_form(const char *path, pl_error *);

#endif

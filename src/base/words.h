/* The words of a plan that no system is known of. */
#ifndef PL_BASE_WORDS_H
#define PL_BASE_WORDS_H

#include "plimsoll/words.h"

extern const pl_words pl_words_plain; /* item, sample */

#endif

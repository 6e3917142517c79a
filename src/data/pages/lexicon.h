/* The words that pages are made of and read as: those of a file, one a line, or made from a seed. */
#ifndef PL_DATA_LEXICON_H
#define PL_DATA_LEXICON_H

#include <stdint.h>

#include "base/error.h"

enum { PL_LEXICON_WORD_BYTES = 32, PL_LEXICON_MADE_MAX = 1 << 16 };

typedef struct pl_lexicon {
    char (*word)[PL_LEXICON_WORD_BYTES]; /* zero-terminated, no two the same, of printable ASCII without spaces */
    uint8_t *bytes;                      /* of each */
    uint32_t count;
    uint64_t hash; /* of all of them, in order */
} pl_lexicon;

/* The first `count` words of the file. PL_E_DATA, with the line, for what is no such word or is there twice; and where
 * there are fewer. */
pl_status pl_lexicon_read(const char *path, uint32_t count, pl_lexicon *, pl_error *);
/* Of two or three syllables, no two the same; at most PL_LEXICON_MADE_MAX. */
pl_status pl_lexicon_make(uint64_t seed, uint32_t count, pl_lexicon *, pl_error *);
void pl_lexicon_deinit(pl_lexicon *);

#endif

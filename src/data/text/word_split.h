/* Words as Hugging Face's library cuts them with the pre-tokenizer WhitespaceSplit, and the normalizer Lowercase before
 * it: what is between white space, punctuation and all. Text comes in any portions. Bytes that are not UTF-8 become
 * U+FFFD. */
#ifndef PL_DATA_WORD_SPLIT_H
#define PL_DATA_WORD_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "data/text/tokenizer.h"

/* word: with a blank before it, as in tokens of words. NULL: a word longer than any token. */
typedef pl_status (*pl_word_found)(void *context, const uint8_t *word, size_t bytes, pl_error *);

typedef struct pl_word_split {
    bool lower;
    pl_word_found found;
    void *context;
    /* private */
    uint32_t bytes, held_bytes;
    bool is_long;
    uint8_t held[4]; /* the beginning of a character */
    uint8_t word[PL_TOKEN_BYTES_MAX + 8];
} pl_word_split;

void pl_word_split_init(pl_word_split *, bool lower, pl_word_found, void *context);
pl_status pl_word_split_feed(pl_word_split *, const uint8_t *text, size_t bytes, pl_error *);
/* The text ends here, and the word with it. */
pl_status pl_word_split_end(pl_word_split *, pl_error *);

#endif

/* A bounded table of words (pieces of the pattern) and how often each occurred. When it is full the rarest half leaves:
 * lowest count first and, among equals, the one seen last first. So the table depends on the text alone.
 *
 * It begins small and doubles up to its bounds: a planner with little room pays for the words that a text has. */
#ifndef PL_DATA_WORDS_H
#define PL_DATA_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_word {
    uint64_t count;
    uint32_t offset, bytes; /* in text */
} pl_word;

typedef struct pl_words {
    pl_word *word; /* in order of first appearance */
    uint8_t *text;
    uint32_t *slot; /* [mask + 1] -> index + 1; 0 = free */
    uint32_t count, text_bytes;
    uint32_t word_room, text_room; /* as far as the arrays reach now */
    uint32_t word_limit, text_limit, mask;
    bool refused;     /* no memory to grow: words are missing */
    uint64_t evicted; /* occurrences that left the table */
} pl_words;

/* Heap that the table holds at most: with its search table twice, in halves, while it grows. */
uint64_t pl_words_bytes(uint32_t word_limit, uint32_t text_limit);
/* word_limit ≥ 2; text_limit at least two of the longest words. */
pl_status pl_words_init(pl_words *, uint32_t word_limit, uint32_t text_limit, pl_error *);
/* When it cannot grow, `refused` is set and nothing is added any more. */
void pl_words_add(pl_words *, const uint8_t *text, uint32_t bytes);
/* Gives the search table back; words can no longer be added. */
void pl_words_close(pl_words *);
void pl_words_deinit(pl_words *);

#endif

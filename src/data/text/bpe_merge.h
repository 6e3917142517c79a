/* The merges of one piece: the pair of lowest rank first, among equals the leftmost, until no pair has a merge. */
#ifndef PL_DATA_BPE_MERGE_H
#define PL_DATA_BPE_MERGE_H

#include "data/text/tokenizer_impl.h"

typedef struct pl_symbol {
    uint32_t id, prev, next; /* places; PL_TOKEN_NONE at the ends. A symbol that was merged away has id PL_TOKEN_NONE */
} pl_symbol;

/* Room for pieces of up to `cap` bytes, in the caller's memory. */
typedef struct pl_bpe_work {
    pl_symbol *symbol; /* [cap] */
    uint64_t *heap;    /* [3·cap]: rank << 32 | place of the left symbol */
    uint32_t heap_count;
} pl_bpe_work;

/* Merges the piece; afterwards symbols 0, symbol[0].next, … are its ids. Returns how many there are (symbol 0 exists
 * whenever the number is not 0). */
uint32_t pl_bpe_merge_piece(const pl_tokenizer *, pl_bpe_work *, const uint8_t *piece, size_t bytes);

#endif

/* The merges of one piece: the pair of lowest rank first (with scores: the pair that makes the token of the highest
 * score), among equals the leftmost, until no pair has a merge. */
#ifndef PL_DATA_BPE_MERGE_H
#define PL_DATA_BPE_MERGE_H

#include "data/text/tokenizer_impl.h"

typedef struct pl_symbol {
    /* id: the token, or with scores where the symbol begins in the piece; PL_TOKEN_NONE: it was merged away. prev and
     * next are places, PL_TOKEN_NONE at the ends. */
    uint32_t id, prev, next;
} pl_symbol;

/* Room for pieces of up to `cap` bytes, in the caller's memory. */
typedef struct pl_bpe_work {
    pl_symbol *symbol; /* [cap] */
    uint64_t *heap;    /* [2·cap]: rank << 32 | place of the left symbol; afterwards the ids */
    uint32_t heap_count;
} pl_bpe_work;

/* Merges the piece; its ids are at *ids then, inside the work. Returns how many there are. */
uint32_t pl_bpe_merge_piece(const pl_tokenizer *, pl_bpe_work *, const uint8_t *piece, size_t bytes,
                            const uint32_t **ids);

/* Where no pattern cuts: bytes of the first piece of p[0 … n), as pl_pretoken_length; it ends where merges cannot cross
 * or, with cuts_blanks, before a blank. */
size_t pl_bpe_cut(const pl_tokenizer *, const uint8_t *p, size_t n, int final, size_t cap);

#endif

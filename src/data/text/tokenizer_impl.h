/* The inside of a tokenizer, shared by the files that build, use and write it. Vocabulary and merges are flat arrays;
 * two open-addressing tables (index + 1, 0 = free) find a token by its bytes and a merge by its pair. */
#ifndef PL_DATA_TOKENIZER_IMPL_H
#define PL_DATA_TOKENIZER_IMPL_H

#include "data/text/tokenizer.h"

typedef struct pl_merge {
    uint32_t left, right, id; /* left right -> id; its index in the array is its rank, the lowest merges first */
} pl_merge;

typedef struct pl_added_token {
    uint32_t id, bytes; /* its text is the token's */
    int special, normalized, in_model;
} pl_added_token;

struct pl_tokenizer {
    pl_tokenizer_kind kind;
    uint32_t vocab, longest;
    uint8_t *text;    /* all tokens' bytes, one after the other, by id */
    uint32_t *offset; /* [vocab + 1] */
    uint64_t hash;

    /* bpe */
    pl_merge *merge;
    uint32_t merge_count, pair_mask, token_mask;
    uint32_t *pair_slot;  /* [pair_mask + 1] -> merge index + 1 */
    uint32_t *token_slot; /* [token_mask + 1] -> id + 1; the model's tokens, without added ones that it lacks */
    uint32_t byte_id[256];
    pl_added_token *added; /* longest first, so that the first that matches is the longest */
    uint32_t added_count, added_longest;
    uint8_t added_first[256]; /* may an added token begin with this byte? */
    int added_mixed;          /* some are looked for in the normalized text, some in the raw: which ones decides ids */
    uint32_t unknown;         /* for a byte that the vocabulary lacks; PL_TOKEN_NONE: such a byte is left out */
    int fuse_unknown, ignore_merges, add_prefix_space;

    /* words: token_slot, added ones and unknown, too */
    int lower;

    /* chars */
    uint32_t *code_point; /* [vocab − 1], rising; the id is the place + 1 */
};

/* What a tokenizer is built from. Texts need not live longer than the call. */
typedef struct pl_vocab_entry {
    const uint8_t *text;
    uint32_t bytes;
    int in_model; /* take part in the search by bytes (merges, ignore_merges) */
} pl_vocab_entry;

typedef struct pl_bpe_parts {
    const pl_merge *merge;
    uint32_t merge_count;
    const pl_added_token *added;
    uint32_t added_count;
    uint32_t unknown;
    int fuse_unknown, ignore_merges, add_prefix_space;
} pl_bpe_parts;

typedef struct pl_word_parts {
    const pl_added_token *added;
    uint32_t added_count, unknown;
    int lower;
} pl_word_parts;

/* A tokenizer with this vocabulary, on which pl_tokenizer_find works; for bpe and words the second call adds the rest
 * (ids in the parts are below vocab). All copy. The caller destroys the tokenizer when the second fails. */
pl_status pl_tokenizer_begin(pl_tokenizer_kind, const pl_vocab_entry *entry, uint32_t vocab, pl_tokenizer **,
                             pl_error *);
pl_status pl_tokenizer_finish_bpe(pl_tokenizer *, const pl_bpe_parts *, pl_error *);
pl_status pl_tokenizer_finish_words(pl_tokenizer *, const pl_word_parts *, pl_error *);

/* Rank of a pair's merge, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_rank(const pl_tokenizer *, uint32_t left, uint32_t right);
/* Id of the model's token with these bytes, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_find(const pl_tokenizer *, const uint8_t *text, size_t bytes);
/* chars: id of a code point (0 = unknown). */
uint32_t pl_tokenizer_char_id(const pl_tokenizer *, uint32_t code_point);

uint64_t pl_hash_bytes(const void *data, size_t bytes);
uint64_t pl_hash_pair(uint32_t left, uint32_t right);
/* The smallest power of two that is at least twice count (and 16). */
uint32_t pl_table_size(uint32_t count);

#endif

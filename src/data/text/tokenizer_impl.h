/* The inside of a tokenizer, shared by the files that build, use and write it. Vocabulary and merges are flat arrays;
 * two open-addressing tables (index + 1, 0 = free) find a token by its bytes and a merge by its pair. */
#ifndef PL_DATA_TOKENIZER_IMPL_H
#define PL_DATA_TOKENIZER_IMPL_H

#include <jansson.h>

#include "data/text/pretoken.h"
#include "data/text/tokenizer.h"

typedef struct pl_merge {
    uint32_t left, right, id; /* left right -> id; its index in the array is its rank, the lowest merges first */
} pl_merge;

typedef struct pl_added_token {
    uint32_t id, bytes; /* its text is the token's */
    int special, normalized, in_model;
    int strips_left, strips_right; /* white space next to it goes with it */
    const uint8_t *wanted; /* what is looked for, its text in the normal form; NULL before it is built: its text */
    uint32_t wanted_bytes;
} pl_added_token;

/* Added tokens that are looked for in the same text. */
typedef struct pl_added_set {
    const pl_added_token **by_text; /* in the order of what is looked for, as bytes */
    uint32_t count, longest;
    int strips_left;      /* does any? */
    int is_longest_first; /* a longer token that begins later goes before a shorter one that it overlaps (llama.cpp) */
    uint8_t first[256];   /* may one begin with this byte? */
} pl_added_set;

enum { PL_TEMPLATE_IDS_MAX = 16 };

/* A blank put before text that has none. */
typedef enum pl_prefix {
    PL_PREFIX_NONE,
    PL_PREFIX_MISSING, /* before each segment between added tokens that does not begin with one */
    PL_PREFIX_FIRST,   /* the same, only at the beginning of the text */
    PL_PREFIX_ALWAYS,  /* before each segment, before normalized added tokens are looked for */
} pl_prefix;

/* What is done before and after the merges. U+2581, which SentencePiece writes for a blank, is one here, in texts and
 * tokens: normalizers make no difference between them, and decoding ends with blanks. */
typedef struct pl_pipeline {
    int is_bytes; /* symbols are bytes (ByteLevel); otherwise characters */
    int is_utf8;  /* other bytes are refused: the text is looked at character by character before it is cut */
    int has_nfc, has_blanks, cuts_blanks; /* has_blanks: U+2581 is a blank; cuts_blanks: a piece begins at each */
    pl_pretoken pretoken;
    pl_prefix prefix;
    int byte_fallback, joins_bytes, strips_blank; /* decoding: tokens <0xXX> are bytes; the text's first blank goes */
    uint32_t before[PL_TEMPLATE_IDS_MAX], after[PL_TEMPLATE_IDS_MAX], before_count, after_count; /* special tokens */
} pl_pipeline;

struct pl_tokenizer {
    pl_tokenizer_kind kind;
    uint32_t vocab, longest;
    uint8_t *text;    /* all tokens' bytes, one after the other, by id */
    uint32_t *offset; /* [vocab + 1] */
    uint64_t hash;

    /* bpe */
    pl_pipeline pipeline;
    pl_merge *merge;
    uint32_t merge_count, pair_mask, token_mask;
    uint32_t *pair_slot;   /* [pair_mask + 1] -> merge index + 1 */
    uint32_t *token_slot;  /* [token_mask + 1] -> id + 1; the model's tokens, without added ones that it lacks */
    float *score;          /* [vocab], SentencePiece: in place of merges, the best token of two neighbours goes first */
    uint32_t byte_id[256]; /* of the token of this byte, or <0xXX> with byte_fallback */
    uint8_t *inner; /* [inner_mask / 8 + 1], bits: may a token hold these two characters next to each other? NULL:
                              a piece must not be cut between them */
    uint32_t inner_mask;
    pl_added_token *added; /* longest first, so that the first that matches is the longest */
    uint8_t *wanted;       /* what is looked for and is not a token's text, in a row */
    uint8_t *added_bit;    /* [vocab / 8 + 1]: is the id one of these? */
    uint32_t added_count;
    pl_added_set raw, normalized; /* looked for in the text as it is, and in its normal form */
    int added_mixed;              /* there are both kinds: which ones decides ids */
    uint32_t unknown;             /* for a byte or character that the vocabulary lacks; PL_TOKEN_NONE: it is left out */
    int fuse_unknown, ignore_merges;
    uint32_t special_id[PL_SPECIALS]; /* bos, eos, …, as its files say; or PL_TOKEN_NONE */

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
    int is_added;
} pl_vocab_entry;

/* In a table of ids + 1 by text (0 = free, the mask is its size − 1): the slot of the entry with these bytes, or the
 * free one where it would go. */
uint32_t *pl_vocab_place(const pl_vocab_entry *entry, uint32_t *slot, uint32_t mask, const void *text, size_t bytes);

typedef struct pl_bpe_parts {
    const pl_merge *merge;
    uint32_t merge_count;
    const pl_added_token *added;
    uint32_t added_count;
    uint32_t unknown;
    int fuse_unknown, ignore_merges;
    pl_pipeline pipeline;
    const float *score; /* [vocab], or NULL */
    int is_gguf; /* added tokens are looked for longest first, and of a pair that is listed twice the first counts */
} pl_bpe_parts;

/* ---- tokenizer_pipeline.c ---- */
/* What surrounds the model in a tokenizer.json; `name` is for messages, which quote whatever is not supported. */
pl_status pl_pipeline_read(const char *name, const json_t *root, pl_pipeline *, pl_error *);
/* The normal form of an added token's text; out has room for PL_NORMAL_MAX bytes. */
enum { PL_NORMAL_MAX = 3 * PL_TOKEN_BYTES_MAX + 1 };
size_t pl_pipeline_normalize(const pl_pipeline *, const uint8_t *text, size_t bytes, uint8_t *out);
/* true or false; `otherwise` where it is absent or null. */
pl_status pl_tokenizer_read_bool(const char *name, const json_t *object, const char *key, int otherwise, int *value,
                                 pl_error *);

/* ByteLevel with GPT-2's pattern. */
pl_pipeline pl_pipeline_gpt2(int add_prefix_space);

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

void pl_tokenizer_hash_again(pl_tokenizer *);

/* Rank of a pair's merge, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_rank(const pl_tokenizer *, uint32_t left, uint32_t right);
/* Id of the model's token with these bytes, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_find(const pl_tokenizer *, const uint8_t *text, size_t bytes);
/* chars: id of a code point (0 = unknown). */
uint32_t pl_tokenizer_char_id(const pl_tokenizer *, uint32_t code_point);

/* Writes text with U+2581 as a blank; `out` may be `text`. Returns its bytes. */
size_t pl_fold_blanks(const uint8_t *text, size_t bytes, uint8_t *out);
/* The byte that a text such as <0x0A> stands for, or −1. */
int pl_byte_of_name(const uint8_t *text, size_t bytes);

/* ---- tokenizer_gguf.c ---- */
typedef enum pl_gguf_token_type {
    PL_GGUF_TOKEN_NORMAL = 1,
    PL_GGUF_TOKEN_UNKNOWN,
    PL_GGUF_TOKEN_CONTROL,
    PL_GGUF_TOKEN_USER_DEFINED,
    PL_GGUF_TOKEN_UNUSED,
    PL_GGUF_TOKEN_BYTE,
} pl_gguf_token_type;

/* A pre-tokenizer that has a name there; the name of the last is NULL. */
typedef struct pl_gguf_pre {
    const char *name;
    pl_pretoken rule;
    int has_nfc, ignore_merges;
} pl_gguf_pre;
extern const pl_gguf_pre pl_gguf_pres[];

/* ---- tokenizer_write.c ---- */
/* A token of the model as it stands in a file: in the alphabet of GPT-2, or with U+2581 for blanks. */
void pl_tokenizer_append_token(const pl_tokenizer *, uint32_t id, pl_str *out);
/* An added token's text in a file: its blanks are not folded. */
void pl_tokenizer_append_added(const pl_tokenizer *, const pl_added_token *, pl_str *out);

/* ---- added_tokens.c ---- */
/* Fills t->added and both sets. */
pl_status pl_tokenizer_set_added(pl_tokenizer *, const pl_added_token *, uint32_t count, pl_error *);
void pl_tokenizer_free_added(pl_tokenizer *);
/* The longest token of the set that text begins with, or NULL. */
const pl_added_token *pl_added_longest(const pl_added_set *, const uint8_t *text, size_t bytes);
/* The first token in p[*at … end), where `bytes` are there to look at; *at moves to it, or as far as it is known that
 * none begins: all the way only if the text ends there (final). */
const pl_added_token *pl_added_search(const pl_added_set *, const uint8_t *p, size_t bytes, int final, size_t *at);

uint64_t pl_hash_bytes(const void *data, size_t bytes);
uint64_t pl_hash_pair(uint32_t left, uint32_t right);
/* The smallest power of two that is at least twice count (and 16). */
uint32_t pl_table_size(uint32_t count);

#endif

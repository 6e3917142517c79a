/* The tokenizer of a GGUF file (keys tokenizer.ggml.…): "gpt2", byte-level BPE whose pre-tokenizer has a name, and
 * "llama", SentencePiece with scores. Ids are those of llama.cpp; where the file says "qwen2", text is normalized first
 * (NFC), as Hugging Face's library does. */
#ifndef PL_DATA_TOKENIZER_GGUF_H
#define PL_DATA_TOKENIZER_GGUF_H

#include "data/text/tokenizer.h"

/* The i-th string of an array, valid until the next call. Asked for in rising order from 0 on, several times over: 0
 * begins anew. */
typedef pl_status (*pl_gguf_string_at)(void *context, uint32_t i, const char **text, size_t *bytes, pl_error *);

enum { PL_GGUF_ABSENT = -1 };

/* What a reader of the file finds. Nothing needs to live longer than the call. */
typedef struct pl_gguf_tokenizer {
    const char *name;        /* of the file, for messages */
    const char *model, *pre; /* NULL: absent */
    uint32_t tokens, merges; /* lengths of the arrays */
    pl_gguf_string_at token, merge;
    void *context;
    const void *types;                      /* [tokens] i32, as they lie in the file, not aligned; NULL: absent */
    const void *scores;                     /* [tokens] f32, the same */
    int64_t special_id[PL_SPECIALS];        /* tokenizer.ggml.bos_token_id, …, or PL_GGUF_ABSENT */
    int add_bos, add_eos, add_space_prefix; /* 0, 1, or PL_GGUF_ABSENT */
} pl_gguf_tokenizer;

pl_status pl_tokenizer_create_gguf(const pl_gguf_tokenizer *, pl_tokenizer **, pl_error *);
/* Heap that this holds at most. */
pl_status pl_tokenizer_gguf_bytes(const pl_gguf_tokenizer *, uint64_t *bytes, pl_error *);

/* ---- tokenizer_gguf_write.c: the other way ---- */

/* How a GGUF file says it. A sentence in `note` tells what it has no place for, where ids can differ; "" for none. */
typedef struct pl_gguf_tokenizer_words {
    const char *model, *pre; /* "gpt2", "smollm" */
    uint32_t bos, eos;       /* or PL_TOKEN_NONE */
    int has_scores, add_bos, add_eos, add_space_prefix;
    char note[256];
} pl_gguf_tokenizer_words;

/* PL_E_UNSUPPORTED: it has no words for this one; `name` is that of the tokenizer, for the sentence. */
pl_status pl_tokenizer_name_gguf(const pl_tokenizer *, const char *name, pl_gguf_tokenizer_words *, pl_error *);
/* Token and type of an id; one that no token has is unused, as "[PAD7]". */
int32_t pl_tokenizer_gguf_token(const pl_tokenizer *, uint32_t id, pl_str *text);
uint32_t pl_tokenizer_gguf_merges(const pl_tokenizer *);
void pl_tokenizer_gguf_merge(const pl_tokenizer *, uint32_t i, pl_str *text);
/* [vocab] of one with merges, which are turned into the order of what they make. */
void pl_tokenizer_gguf_scores(const pl_tokenizer *, float *score, uint32_t vocab);
/* Gives one with scores merges, too: all pairs of tokens that make one, in falling order of its score. */
pl_status pl_tokenizer_merge_by_scores(pl_tokenizer *, pl_error *);

#endif

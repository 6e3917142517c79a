/* A tokenizer turns bytes into ids below its vocabulary size and back. Four kinds:
 *
 *   bpe    byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), stored as a Hugging Face
 *          tokenizer.json. Every byte sequence has ids and comes back from them unchanged, UTF-8 or not.
 *   bytes  id = byte, vocabulary 256.
 *   chars  id 0 is <unk>, then the code points of a text in order; what it does not know becomes <unk>.
 *   words  what is between white space, in lower case (word_split.h), stored as a Hugging Face tokenizer.json of the
 *          model WordLevel. A token of a word begins with a blank; what is not in the vocabulary becomes <UNK>.
 *
 * A tokenizer never changes once made, and several threads may use it. Of what follows, only the functions that create
 * one allocate. Encoding is in encoder.h, training in bpe_train.h, chars.h and words_train.h. */
#ifndef PL_DATA_TOKENIZER_H
#define PL_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

#define PL_TOKEN_NONE  UINT32_MAX
#define PL_END_OF_TEXT "<|endoftext|>"

enum {
    PL_VOCAB_MAX = 1 << 20,            /* ids of a tokenizer file are below this */
    PL_TOKEN_BYTES_MAX = 1024,         /* bytes of a token in a file */
    PL_TOKENIZER_FILE_MAX = 64 << 20,  /* bytes of a tokenizer.json */
    PL_TOKENIZER_TREE_MAX = 256 << 20, /* bytes it may take as a tree in memory while it is read */
};

typedef enum pl_tokenizer_kind {
    PL_TOKENIZER_BPE,
    PL_TOKENIZER_BYTES,
    PL_TOKENIZER_CHARS,
    PL_TOKENIZER_WORDS,
    PL_TOKENIZER_KINDS
} pl_tokenizer_kind;

typedef struct pl_tokenizer pl_tokenizer;

/* ---- tokenizer_read.c, tokenizer_write.c ---- */
pl_status pl_tokenizer_load(const char *path, pl_tokenizer **, pl_error *);
/* Heap that loading this file holds at most; ids are not looked at, so any may be the largest. 0 when it cannot be
 * read. */
uint64_t pl_tokenizer_load_bytes(const char *path);
/* Loads from memory; name is for messages. */
pl_status pl_tokenizer_parse(const char *name, const char *json, size_t bytes, pl_tokenizer **, pl_error *);
pl_status pl_tokenizer_save(const pl_tokenizer *, const char *path, pl_error *);
void pl_tokenizer_print(const pl_tokenizer *, pl_str *out);

/* ---- tokenizer.c ---- */
pl_status pl_tokenizer_create_bytes(pl_tokenizer **, pl_error *);
/* Code points in rising order; ids are 1, 2, … */
pl_status pl_tokenizer_create_chars(const uint32_t *code_points, size_t count, pl_tokenizer **, pl_error *);
void pl_tokenizer_destroy(pl_tokenizer *);

pl_tokenizer_kind pl_tokenizer_kind_of(const pl_tokenizer *);
const char *pl_tokenizer_kind_name(pl_tokenizer_kind);              /* "bpe", "bytes", "chars", "words" */
int pl_tokenizer_kind_parse(const char *name, pl_tokenizer_kind *); /* 0 on success */
uint32_t pl_tokenizer_vocab_size(const pl_tokenizer *);             /* the largest id + 1 */
uint32_t pl_tokenizer_longest_token(const pl_tokenizer *);          /* bytes */
uint64_t pl_tokenizer_hash(const pl_tokenizer *);                   /* of everything that decides ids */
/* The bytes an id stands for, in the tokenizer's memory; an id without a token (or out of range) has 0 bytes. */
const uint8_t *pl_tokenizer_token(const pl_tokenizer *, uint32_t id, size_t *bytes);
/* The id of an added token such as PL_END_OF_TEXT, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_added_id(const pl_tokenizer *, const char *content);
/* The id of the token that ends a text (PL_END_OF_TEXT; for words <EOS>), or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_end_id(const pl_tokenizer *);
/* The id of the token <unk>, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_unknown_id(const pl_tokenizer *);

/* ---- decoder.c: ids one at a time -> whole UTF-8 characters ---- */
/* What a token leaves unfinished waits for the next one. Bytes that can never become a character come out as they are.
 * Starts zeroed. */
typedef struct pl_decoder {
    uint8_t held[4];
    uint32_t held_bytes;
} pl_decoder;

/* Appends what is complete now to out, which has room for pl_tokenizer_longest_token() + 4 bytes; returns how much. */
size_t pl_decoder_push(pl_decoder *, const pl_tokenizer *, uint32_t id, uint8_t *out);
/* What is still held (at most 3 bytes), as it is. */
size_t pl_decoder_finish(pl_decoder *, uint8_t out[4]);

#endif

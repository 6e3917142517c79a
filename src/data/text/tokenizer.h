/* A tokenizer turns bytes into ids below its vocabulary size and back. Four kinds:
 *
 *   bpe    byte-pair encoding (Sennrich et al. 2016), stored as a Hugging Face tokenizer.json, with what surrounds it
 *          in the models of people: byte-level (Radford et al. 2019; every byte sequence has ids then and comes back
 *          from them unchanged, UTF-8 or not) or of characters with a fallback to bytes (SentencePiece), normalizers,
 *          pre-tokenizers, added and special tokens. Also from a GGUF file (tokenizer_gguf.h).
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

/* Tokens with a meaning of their own, as the files of a model name them. */
typedef enum pl_special {
    PL_SPECIAL_BOS,
    PL_SPECIAL_EOS,
    PL_SPECIAL_UNKNOWN,
    PL_SPECIAL_PADDING,
    PL_SPECIAL_EOT, /* end of a turn; only GGUF names it */
    PL_SPECIAL_EOM, /* end of a message */
    PL_SPECIALS
} pl_special;

typedef struct pl_tokenizer pl_tokenizer;

/* ---- tokenizer_file.c, tokenizer_read.c, tokenizer_write.c ---- */
pl_status pl_tokenizer_load(const char *path, pl_tokenizer **, pl_error *);
/* Heap that loading this file holds at most. 0 when it cannot be read. */
uint64_t pl_tokenizer_load_bytes(const char *path);
/* Loads from memory; name is for messages. */
pl_status pl_tokenizer_parse(const char *name, const char *json, size_t bytes, pl_tokenizer **, pl_error *);
/* What the tokenizer_config.json next to it says, before anybody uses it: which tokens are special, and that a template
 * has no bos or eos after all (add_bos_token, add_eos_token). Tokens that it lacks stay PL_TOKEN_NONE. */
pl_status pl_tokenizer_read_config(pl_tokenizer *, const char *name, const char *json, size_t bytes, pl_error *);
/* Has tokenizer.json words for it? PL_E_USAGE, PL_E_UNSUPPORTED: it has rules of a GGUF file. */
pl_status pl_tokenizer_check_json(const pl_tokenizer *, const char *name, pl_error *);
pl_status pl_tokenizer_save(const pl_tokenizer *, const char *path, pl_error *);
void pl_tokenizer_print(const pl_tokenizer *, pl_str *out); /* a checked one */

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
/* The id of the token that ends a text (what its files name eos, else PL_END_OF_TEXT; for words <EOS>), or
 * PL_TOKEN_NONE. */
uint32_t pl_tokenizer_end_id(const pl_tokenizer *);
/* The id of the token <unk>, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_unknown_id(const pl_tokenizer *);
/* The id that its files name so, or PL_TOKEN_NONE. */
uint32_t pl_tokenizer_special_id(const pl_tokenizer *, pl_special);
/* Ids that end a generated text: eos and, from a GGUF file, eot, eom and known names such as <|im_end|>. Returns how
 * many there are; at most `room` are written. */
uint32_t pl_tokenizer_stop_ids(const pl_tokenizer *, uint32_t *ids, uint32_t room);
/* The ids that encoding with special tokens puts before and after a text. */
const uint32_t *pl_tokenizer_template(const pl_tokenizer *, int after, uint32_t *count);
uint32_t pl_tokenizer_added_count(const pl_tokenizer *);
/* The i-th added token, longest text first: its id, and whether it is special. Its text is pl_tokenizer_token's. */
uint32_t pl_tokenizer_added_at(const pl_tokenizer *, uint32_t i, int *special);

/* ---- decoder.c: ids one at a time -> whole UTF-8 characters ---- */
enum { PL_DECODER_HELD_MAX = 256 };

/* What a token leaves unfinished waits for the next one. Starts zeroed but for the first two: bytes that can never
 * become a character come out as they are, or as U+FFFD (is_text), the text of Hugging Face's library then: a run of
 * tokens for single bytes waits for its end, or for PL_DECODER_HELD_MAX bytes of it. */
typedef struct pl_decoder {
    int is_text;
    int skips_special;      /* added tokens that are special give nothing */
    const pl_tokenizer *of; /* private, as what follows */
    int has_begun, run_is_broken;
    uint32_t held_bytes;
    uint8_t held[PL_DECODER_HELD_MAX];
} pl_decoder;

/* Bytes that a call may output. */
size_t pl_decoder_room(const pl_tokenizer *);
/* Appends what is complete now to out, which has pl_decoder_room(); returns how much. */
size_t pl_decoder_push(pl_decoder *, const pl_tokenizer *, uint32_t id, uint8_t *out);
/* What is still held: 3 bytes at most, or for a text as much as above. */
size_t pl_decoder_finish(pl_decoder *, uint8_t *out);

#endif

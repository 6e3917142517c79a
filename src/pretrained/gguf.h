/* GGUF files (github.com/ggml-org/ggml, docs/gguf.md), versions 2 and 3: the header, its keys and the list of tensors.
 * Arrays are read through and not kept: a vocabulary of 256 thousand tokens costs a reader its time, but no memory.
 * Nothing is trusted: counts and lengths are held against the size of the file, and what is kept is bounded. */
#ifndef PL_PRETRAINED_GGUF_H
#define PL_PRETRAINED_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/encoding.h"
#include "base/error.h"
#include "store/model_file.h"

enum {
    PL_GGUF_RANK_MAX = 4,
    PL_GGUF_NAME_MAX = 64, /* bytes of a tensor's name, with the zero at its end */
    PL_GGUF_KEY_MAX = 256, /* of a key */
    PL_GGUF_KEYS_MAX = 4096,
    PL_GGUF_TENSORS_MAX = 16384,
    PL_GGUF_ALIGNMENT = 32, /* of the data where no key says otherwise */
};

typedef enum pl_gguf_type {
    PL_GGUF_U8,
    PL_GGUF_I8,
    PL_GGUF_U16,
    PL_GGUF_I16,
    PL_GGUF_U32,
    PL_GGUF_I32,
    PL_GGUF_F32,
    PL_GGUF_BOOL,
    PL_GGUF_STRING,
    PL_GGUF_ARRAY, /* of no value below: is_array, and the type of its elements */
    PL_GGUF_U64,
    PL_GGUF_I64,
    PL_GGUF_F64,
    PL_GGUF_TYPE_COUNT
} pl_gguf_type;

typedef struct pl_gguf_value {
    const char *key;
    pl_gguf_type type; /* of the value, or of an array's elements */
    bool is_array;
    uint64_t count;         /* elements */
    uint64_t offset, bytes; /* where the first element lies in the file, and all of them together */
    uint64_t longest_bytes; /* of its strings */
} pl_gguf_value;

typedef struct pl_gguf_tensor {
    const char *name;
    uint32_t rank;
    uint64_t ne[PL_GGUF_RANK_MAX]; /* the first is the contiguous one; 1 from the rank on */
    uint32_t type;                 /* as ggml numbers them */
    pl_encoding encoding;          /* PL_ENCODING_COUNT: not one of ours */
    uint64_t offset, bytes;        /* in the file; 0 bytes where the type is not ours */
} pl_gguf_tensor;

typedef struct pl_gguf pl_gguf;

/* The file stays the caller's, and open until pl_gguf_destroy. */
pl_status pl_gguf_open(const pl_model_file *, pl_gguf **, pl_error *);
void pl_gguf_destroy(pl_gguf *); /* NULL is fine */

size_t pl_gguf_tensor_count(const pl_gguf *);
const pl_gguf_tensor *pl_gguf_tensor_at(const pl_gguf *, size_t index); /* in the order of their names */
const char *pl_gguf_type_name(uint32_t type);                           /* "Q2_K", or "unknown" */

pl_encoding pl_gguf_encoding(uint32_t type); /* PL_ENCODING_COUNT: not one of ours */

const pl_gguf_value *pl_gguf_find(const pl_gguf *, const char *key); /* NULL: it has none */
size_t pl_gguf_value_count(const pl_gguf *);
const pl_gguf_value *pl_gguf_value_at(const pl_gguf *, size_t index); /* in the order of their keys */
/* Some of a value's bytes as they lie in the file, from `at` on. */
pl_status pl_gguf_bytes(const pl_gguf *, const pl_gguf_value *, uint64_t at, void *to, size_t bytes, pl_error *);

/* One number as f64 (a whole one beyond 2^53 is rounded; a bool is 0 or 1). PL_E_DATA: it is no number. */
pl_status pl_gguf_number(const pl_gguf *, const pl_gguf_value *, double *, pl_error *);
/* A string with a zero at its end; `to` has longest_bytes + 1 bytes. PL_E_DATA: it is no string. */
pl_status pl_gguf_string(const pl_gguf *, const pl_gguf_value *, char *to, pl_error *);

/* The elements of an array, or the one of a plain value, in order. */
typedef struct pl_gguf_cursor {
    const pl_gguf *file;
    const pl_gguf_value *value;
    uint64_t left;   /* elements to come */
    uint64_t offset; /* in the file, of what follows the bytes in the buffer */
    unsigned char *buffer;
    size_t room, at, held;
} pl_gguf_cursor;

/* `buffer` has at least pl_gguf_cursor_bytes bytes, and is read through: 64 kB reads faster. */
size_t pl_gguf_cursor_bytes(const pl_gguf_value *);
pl_gguf_cursor pl_gguf_begin(const pl_gguf *, const pl_gguf_value *, void *buffer, size_t room);
/* The next one (left is above 0). The text is valid until the next call, and has no zero at its end. */
pl_status pl_gguf_next_string(pl_gguf_cursor *, const char **text, size_t *bytes, pl_error *);
pl_status pl_gguf_next_number(pl_gguf_cursor *, double *, pl_error *);

#endif

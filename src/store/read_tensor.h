/* A tensor of a file into memory: in pieces that fit a staging, each converted and put where it belongs, and dropped
 * from the page cache again. All weights that are not used in their file or copied as they are come this way: of
 * checkpoints, of files that a config names, of Hugging Face's folders and of GGUF. Asks for no memory. */
#ifndef PL_STORE_READ_TENSOR_H
#define PL_STORE_READ_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/encoding.h"
#include "store/model_file.h"

/* How it lies there. */
typedef struct pl_tensor_source {
    const pl_model_file *file;
    const char *name; /* in the file */
    uint64_t offset;
    pl_encoding encoding;
    bool is_f64;        /* in place of f32 */
    bool adds_one;      /* to each number; then it is read in f32 */
    int64_t columns;    /* of a row there, of one that is transposed */
    int64_t first;      /* row there, column where it is transposed, or number of a vector */
    int64_t pair_heads; /* 0, or: so many heads whose pairs of rows are neighbours there */
    bool is_vector, is_transposed;
} pl_tensor_source;

typedef struct pl_tensor_place {
    int64_t rows, columns; /* a vector has one row */
    pl_encoding encoding;
    void *data;
} pl_tensor_place;

enum { PL_TENSOR_STAGING_MIN = 4096 };

/* Staging and data are aligned as a float is. Numbers are copied where that is how they are stored, else widened to
 * f32, and rounded once. PL_E_DATA: a block has a scale that is not finite, or a number is too large for the place. */
pl_status pl_tensor_read(const pl_tensor_source *, const pl_tensor_place *, void *staging, size_t staging_bytes,
                         pl_error *);
/* The same of n of its numbers that were read already: whole blocks on both sides. */
pl_status pl_tensor_convert(const pl_tensor_source *, const void *from, int64_t n, pl_encoding to, void *into,
                            pl_error *);

#endif

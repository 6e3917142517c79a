/* How the numbers of a tensor are stored.
 *
 * Row by row: a row is a whole number of blocks, each of which holds its own scales; the layouts are those of GGUF
 * (ggml), so that blocks of a file are used as they are. Scalar and exact: each operation is one f32 operation, rounded
 * to nearest, none fused; vector code is held to these.
 *
 * As a whole: where a number lies follows from the shape of the tensor. Headers of their own say how. */
#ifndef PL_BASE_ENCODING_H
#define PL_BASE_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pl_encoding {
    PL_ENCODING_F32,
    PL_ENCODING_BF16,
    PL_ENCODING_F16,
    PL_ENCODING_Q4_0,
    PL_ENCODING_Q4_1,
    PL_ENCODING_Q5_0,
    PL_ENCODING_Q5_1,
    PL_ENCODING_Q8_0,
    PL_ENCODING_Q4_K,
    PL_ENCODING_Q5_K,
    PL_ENCODING_Q6_K,
    PL_ENCODING_COUNT, /* of those that are stored row by row */
    PL_ENCODING_INT8,  /* a matrix as products of 8 bits read it (base/quantize.h) */
    PL_ENCODING_SIGNS, /* a matrix as products of signs read it (base/binary.h) */
    PL_ENCODING_SIGNED8,
    PL_ENCODING_ROOT8, /* moments of the optimizer in blocks of 256 (base/block8.h); ROOT8: of the root of each */
    PL_ENCODING_END
} pl_encoding;

enum { PL_ENCODING_BLOCK_MAX = 256 }; /* numbers of a block */

const char *pl_encoding_name(pl_encoding);               /* "f32", "bf16", …, "q6_k", "int8", …, "root8" */
bool pl_encoding_parse(const char *name, pl_encoding *); /* in small letters or capitals */
bool pl_encoding_is_whole(pl_encoding);                  /* not row by row */
/* Bytes of a tensor of so many rows and columns, in any encoding; −1 where rows are not whole blocks, or too many. */
int64_t pl_encoding_bytes(pl_encoding, int64_t rows, int64_t columns);

/* ---- row by row ---- */

int64_t pl_encoding_block(pl_encoding); /* numbers of a block; 1 where each stands alone */
int64_t pl_encoding_block_bytes(pl_encoding);
/* Bytes of a row of so many numbers; −1 where they are not whole blocks. */
int64_t pl_encoding_row_bytes(pl_encoding, int64_t numbers);

/* `numbers` is a whole number of blocks. */
void pl_encoding_widen(pl_encoding, const void *blocks, int64_t numbers, float *to);
/* As ggml's reference quantizers, byte for byte. Not for the K types, which pl_encoding_is_written excludes. */
bool pl_encoding_is_written(pl_encoding);
void pl_encoding_narrow(pl_encoding, const float *from, int64_t numbers, void *blocks);

#endif

/* How the numbers of a matrix row are stored. A row is a whole number of blocks, each of which holds its own scales;
 * the layouts are those of GGUF (ggml), so that blocks of a file are used as they are. Scalar and exact: each operation
 * is one f32 operation, rounded to nearest, none fused; vector code is held to these. */
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
    PL_ENCODING_COUNT
} pl_encoding;

enum { PL_ENCODING_BLOCK_MAX = 256 }; /* numbers of a block */

const char *pl_encoding_name(pl_encoding);               /* "f32", "bf16", …, "q4_0", …, "q6_k" */
bool pl_encoding_parse(const char *name, pl_encoding *); /* in small letters or capitals */
int64_t pl_encoding_block(pl_encoding);                  /* numbers of a block; 1 where each stands alone */
int64_t pl_encoding_block_bytes(pl_encoding);
/* Bytes of a row of so many numbers; −1 where they are not whole blocks. */
int64_t pl_encoding_row_bytes(pl_encoding, int64_t numbers);

/* `numbers` is a whole number of blocks. */
void pl_encoding_widen(pl_encoding, const void *blocks, int64_t numbers, float *to);
/* As ggml's reference quantizers, byte for byte. Not for the K types, which pl_encoding_is_written excludes. */
bool pl_encoding_is_written(pl_encoding);
void pl_encoding_narrow(pl_encoding, const float *from, int64_t numbers, void *blocks);

#endif

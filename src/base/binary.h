/* How weights of one bit lie as products read them, on every processor (kernels/words.h): alpha of the rows as f32,
 * then panels of 16 rows, in which a word of 32 neighbours of one row lies behind that of the row before; a bit is 1
 * where the number is below 0. Rows are filled up to whole panels with zeros, the bits of a row to whole words. */
#ifndef PL_BASE_BINARY_H
#define PL_BASE_BINARY_H

#include <stdint.h>

#define PL_BINARY_PACKED ".binary" /* behind the name of a weight that is packed */
enum { PL_BINARY_PANEL = 16, PL_BINARY_WORD = 32, PL_BINARY_K_MAX = 1 << 24 }; /* a float counts to there */

static inline int64_t pl_binary_words(int64_t k) { return (k + PL_BINARY_WORD - 1) / PL_BINARY_WORD; } /* of a row */

static inline int64_t pl_binary_rows(int64_t n)
{
    return (n + PL_BINARY_PANEL - 1) / PL_BINARY_PANEL * PL_BINARY_PANEL;
}

static inline uint64_t pl_binary_packed_bytes(int64_t n, int64_t k)
{
    return (uint64_t)pl_binary_rows(n) * (sizeof(float) + sizeof(uint32_t) * (uint64_t)pl_binary_words(k));
}

/* From the beginning of the packed bytes of [n,k]: where word p of row j is. */
static inline uint64_t pl_binary_word_at(int64_t n, int64_t k, int64_t j, int64_t p)
{
    const int64_t before = j / PL_BINARY_PANEL * pl_binary_words(k) * PL_BINARY_PANEL;
    return sizeof(float) * (uint64_t)pl_binary_rows(n) +
           sizeof(uint32_t) * (uint64_t)(before + p * PL_BINARY_PANEL + j % PL_BINARY_PANEL);
}

#endif

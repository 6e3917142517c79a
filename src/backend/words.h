/* Products of words (kernels/words.h): what int8 and binary products have in common. */
#ifndef PL_BACKEND_WORDS_H
#define PL_BACKEND_WORDS_H

#include "backend/calls.h"
#include "kernels/words.h"

typedef struct pl_words_product {
    const pl_words_kernels *kernels;
    int64_t m, n, words; /* of C; of k */
    int64_t row_bytes;   /* what a row of x has; words, but for the last one's end */
    const char *x;
    int64_t stride; /* bytes from row to row of x */
    const char *panels;
    pl_words_epilogue epilogue;
    /* Rows [begin, end) of x are made before the product, by all threads; NULL: they are there. */
    void (*make_rows)(const struct pl_words_product *, int64_t begin, int64_t end);
    const void *call; /* for make_rows */
    pl_isa isa;
} pl_words_product;

/* Pointers are not looked at, and of the epilogue only whether it gates. */
uint64_t pl_words_workspace_bytes(const pl_words_product *, int threads);
void pl_words_exec(const pl_words_product *, void *workspace, int threads);

/* Columns as packed weights have them: whole panels. */
static inline int64_t pl_words_columns(int64_t n) { return (n + PL_WORDS_PANEL - 1) / PL_WORDS_PANEL * PL_WORDS_PANEL; }

/* Word (p, j) of packed panels. */
static inline uint64_t pl_words_at(int64_t words, int64_t p, int64_t j)
{
    const int64_t panel = j / PL_WORDS_PANEL * words * PL_WORDS_LINE_BYTES;
    return (uint64_t)(panel + p * PL_WORDS_LINE_BYTES + j % PL_WORDS_PANEL * 4);
}

/* The calls with a table of the caller's choice, for tests and benches. */
uint64_t pl_int8_workspace_bytes_with(const pl_words_kernels *, const pl_int8_call *, pl_team);
uint64_t pl_binary_workspace_bytes_with(const pl_words_kernels *, const pl_binary_call *, pl_team);
void pl_int8_exec_with(const pl_words_kernels *, const pl_int8_call *, void *workspace, pl_team);
void pl_binary_exec_with(const pl_words_kernels *, const pl_binary_call *, void *workspace, pl_team);

#endif

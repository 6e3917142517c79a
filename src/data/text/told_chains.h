/* The file of what an evaluation tells of chains: a line for each, its number in the file of chains first. */
#ifndef PL_DATA_TOLD_CHAINS_H
#define PL_DATA_TOLD_CHAINS_H

#include <stdint.h>

#include "base/error.h"

/* told: rows of base/chain.h, the first that of chain number `first`. */
pl_status pl_told_chains_write(const char *path, uint64_t first, const float *told, uint64_t count, pl_error *);

typedef struct pl_told_chains {
    uint64_t chains, tokens, right, answers_right;
} pl_told_chains;
/* PL_E_DATA when it is no such file. */
pl_status pl_told_chains_sum(const char *path, pl_told_chains *, pl_error *);

#endif

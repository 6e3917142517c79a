/* Choosing the next token from logits: temperature, top-k, top-p (Holtzman et al. 2020), by a counter-based random
 * number, so that the same seed gives the same text. Works in caller memory. */
#ifndef PL_JOBS_SAMPLE_H
#define PL_JOBS_SAMPLE_H

#include <stdint.h>

typedef struct pl_sampling {
    double temperature; /* 0: the likeliest token */
    int64_t top_k;      /* 0: off */
    double top_p;       /* 1: off */
    uint64_t seed;
    uint64_t tokens; /* to generate */
} pl_sampling;

uint64_t pl_sample_workspace_bytes(uint32_t vocab);
/* position: the number of the token in the text, the counter of the random number. */
uint32_t pl_sample_token(const float *logits, uint32_t vocab, const pl_sampling *, uint64_t position, void *workspace);

#endif

/* Choosing the next token from logits. In this order: what was there already is made less likely (repetition, frequency
 * and presence penalties; Keskar et al. 2019), temperature, top-k, top-p (Holtzman et al. 2020), min-p (Nguyen et al.
 * 2024), and a draw by a counter-based random number, so that the same seed gives the same text. Works in caller
 * memory. */
#ifndef PL_JOBS_SAMPLE_H
#define PL_JOBS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_sampling {
    double temperature;                                         /* 0: the likeliest token */
    int64_t top_k;                                              /* 0: off */
    double top_p;                                               /* 1: off */
    double min_p;                                               /* 0: off */
    double repeat_penalty, frequency_penalty, presence_penalty; /* 1, 0, 0: off */
    int64_t repeat_last_n;                                      /* tokens that those look back; -1: all */
    uint64_t seed;
    uint64_t tokens; /* to generate, at most */
} pl_sampling;

/* Do the penalties do anything? */
bool pl_sampling_penalizes(const pl_sampling *);

uint64_t pl_sample_workspace_bytes(uint32_t vocab);
/* count: how often each token was there, [vocab]; NULL: nothing is penalized. position: the number of the token in the
 * text, and sample: that of the text; together the counter of the random number. */
uint32_t pl_sample_token(const float *logits, uint32_t vocab, const pl_sampling *, const uint32_t *count,
                         uint64_t position, uint32_t sample, void *workspace);

#endif

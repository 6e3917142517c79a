/* Chains of thought as the data of a training, from their file (chains.h). Ports, all i32, −1 where there is nothing:
 * "tokens" [B,T], none at the places of latents; "targets" [B,R], what stands behind eot; "answers" [B,R], likewise but
 * only the answer and its end. The last chains of the file are held out. */
#ifndef PL_DATA_CHAIN_DATA_H
#define PL_DATA_CHAIN_DATA_H

#include "data/text/chains.h"
#include "stream/data.h"

typedef struct pl_chain_setup {
    const char *path; /* of the file */
    pl_chain_layout layout;
    uint32_t batch;
    uint64_t seed; /* of the order */
    double held_out;
} pl_chain_setup;

typedef struct pl_chain_data {
    pl_data data; /* first: this is one. Identity: "chains" */
    pl_source source;
    pl_tokens tokens;
    pl_chain_layout layout;
    uint64_t seed;
    uint64_t first[2], count[2]; /* of each part: its first chain, and how many */
    uint32_t *counted;           /* targets of each chain */
} pl_chain_data;

/* PL_E_DATA where the file is no file of chains of this layout, or a part has none. */
pl_status pl_chain_data_open(const pl_chain_setup *, pl_chain_data **, pl_error *);
static inline const pl_chain_data *pl_chain_data_of(const pl_data *d) { return (const pl_chain_data *)d; }

#endif

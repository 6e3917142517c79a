/* Weights that were made elsewhere, for a model to begin with: a file of safetensors with the model's names and shapes,
 * whose numbers may be f32, bf16 or f16, whatever the model has. They pass through one small buffer, in the order of
 * the file, into their places: nothing else of it stays in memory, neither as a copy nor in the page cache. */
#ifndef PL_STORE_WEIGHTS_H
#define PL_STORE_WEIGHTS_H

#include "base/narrow.h"
#include "store/safetensors.h"

/* Has the file each tensor of the list, in its shape, and no other? Reads no data. PL_E_DATA. */
pl_status pl_weights_match(const pl_safetensors *, const pl_st_list *, pl_error *);

/* Reads it all: every number must be finite, also as `narrowest`. *checksum is the xxh64 of the file. PL_E_DATA. */
pl_status pl_weights_check(const pl_safetensors *, pl_real narrowest, uint64_t *checksum, pl_error *);

/* Into the places of a list that it matches, rounded or widened to what they hold. PL_E_DATA when the file is no longer
 * the one with that checksum: the places then hold anything. Asks for no memory. */
pl_status pl_weights_load(const pl_safetensors *, const pl_st_list *, uint64_t checksum, pl_error *);

#endif

/* Weights that were made elsewhere, for a model to begin with: a file of safetensors with the model's names and shapes,
 * whose numbers may be f32, bf16 or f16, whatever the model has; bytes are taken as they are. They pass through one
 * small buffer, in the order of the file, into their places: nothing else of it stays in memory, neither as a copy nor
 * in the page cache. */
#ifndef PL_STORE_WEIGHTS_H
#define PL_STORE_WEIGHTS_H

#include "base/binary.h"
#include "base/narrow.h"
#include "base/quantize.h"
#include "store/safetensors.h"

/* A file that is of one part of the model alone, and perhaps of other models besides. */
typedef struct pl_weights_part {
    const char *prefix; /* of the model's names of that part, which the file's have not got: "clip." */
    /* What the file's begin with: "vision_model.". There something more may stand before it, in all of them; tensors
     * without it are of other parts, and not read. */
    const char *root;
    const char *const *unused; /* names behind the root that the model has no use for; NULL behind the last */
    /* It is of the whole model (prefix and root ""), and of a larger one, whose other tensors are not read. A tensor
     * may have another shape there if it is the same as a matrix: without leading dimensions of 1, all but the first
     * made one. */
    bool is_larger;
} pl_weights_part;

/* In all functions `part` may be NULL: then the file is of the whole model, under its names.
 *
 * Has the file each tensor of the list that is of the part, in its shape, and of the part no other? Reads no data.
 * PL_E_DATA. */
pl_status pl_weights_match(const pl_safetensors *, const pl_weights_part *, const pl_st_list *, pl_error *);

/* Reads it all: every number of the part must be finite, also as `narrowest`, and the tensors those that a checksum in
 * the metadata is of. *checksum is the xxh64 of the file. PL_E_DATA. */
pl_status pl_weights_check(const pl_safetensors *, const pl_weights_part *, pl_real narrowest, uint64_t *checksum,
                           pl_error *);

#define PL_WEIGHTS_CONFIG "plimsoll.config" /* in the metadata: the config that they were made with, YAML */
/* Likewise: xxh64 of the whole file, these 16 hex digits being PL_WEIGHTS_NO_CHECKSUM. Of version 1 it was of the data
 * alone, and a file could have none. */
#define PL_WEIGHTS_CHECKSUM    "plimsoll.checksum"
#define PL_WEIGHTS_NO_CHECKSUM "0000000000000000"
#define PL_WEIGHTS_FORMAT      "plimsoll.int8/2"   /* "format" in the metadata of a file with such weights */
#define PL_BINARY_FORMAT       "plimsoll.binary/2" /* or whose packed weights are all of one bit (base/binary.h) */
/* Weights in 8 bits (base/quantize.h), U8. */
size_t pl_weights_count_packed(const pl_safetensors *);

/* Tensors that are not read: of other parts, or of no use. */
size_t pl_weights_count_unread(const pl_safetensors *, const pl_weights_part *);

/* Into the places of a list that it matches, rounded or widened to what they hold; places of other parts stay as they
 * are. PL_E_DATA when the file is no longer the one with that checksum: the places then hold anything. Asks for no
 * memory. */
pl_status pl_weights_load(const pl_safetensors *, const pl_weights_part *, const pl_st_list *, uint64_t checksum,
                          pl_error *);

#endif

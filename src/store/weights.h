/* Weights made elsewhere, for a model to begin with: a safetensors file, or several with an index, with the model's
 * names and shapes, whose numbers may be f32, bf16 or f16, whatever the model has; bytes are taken as they are. They
 * pass through one small buffer, in file order, into their places: nothing else of the file stays in memory, neither as
 * a copy nor in the page cache. */
#ifndef PL_STORE_WEIGHTS_H
#define PL_STORE_WEIGHTS_H

#include "base/binary.h"
#include "base/narrow.h"
#include "base/quantize.h"
#include "store/safetensors.h"

/* A file of only one part of the model, perhaps with parts of other models, too. */
typedef struct pl_weights_part {
    const char *prefix; /* of the model's names for that part, which the file's lack: "clip." */
    /* What the file's names begin with: "vision_model.", possibly after something that all of them have. Tensors
     * without it are of other parts, and not read. */
    const char *root;
    const char *const *unused; /* names after the root that the model has no use for; NULL after the last */
    /* The file is of the whole model (prefix and root "") and more: its other tensors are not read. A tensor may have
     * another shape there if it is the same as a matrix: without leading dimensions of 1, all but the first made
     * one. */
    bool is_larger;
} pl_weights_part;

/* In all functions `part` may be NULL: then the file is of the whole model, under the model's names.
 *
 * Does the file have exactly the part's tensors in the list, in their shapes? Reads no data. PL_E_DATA. */
pl_status pl_weights_match(const pl_safetensors *, const pl_weights_part *, const pl_st_list *, pl_error *);

/* Reads it all: every number of the part must be finite, also as `narrowest`, and the tensors must match a checksum in
 * the metadata. *checksum is the xxh64 of the file, or made of those of several. PL_E_DATA. */
pl_status pl_weights_check(const pl_safetensors *, const pl_weights_part *, pl_real narrowest, uint64_t *checksum,
                           pl_error *);

#define PL_WEIGHTS_CONFIG "plimsoll.config" /* in the metadata: the config that they were made with, YAML */
/* Likewise: xxh64 of the whole file, these 16 hex digits being PL_WEIGHTS_NO_CHECKSUM. In version 1 it covered only the
 * data, and was optional. */
#define PL_WEIGHTS_CHECKSUM    "plimsoll.checksum"
#define PL_WEIGHTS_NO_CHECKSUM "0000000000000000"
#define PL_WEIGHTS_FORMAT      "plimsoll.int8/2"   /* "format" in the metadata of a file with such weights */
#define PL_BINARY_FORMAT       "plimsoll.binary/2" /* or one whose packed weights are all of one bit (base/binary.h) */
/* Weights in 8 bits (base/quantize.h), U8. */
size_t pl_weights_count_packed(const pl_safetensors *);

/* Tensors that are not read: of other parts, or of no use. */
size_t pl_weights_count_unread(const pl_safetensors *, const pl_weights_part *);

/* Loads into the places of a matching list, rounded or widened to their type; places of other parts stay as they are.
 * PL_E_DATA when the file is no longer the one with that checksum: the places then hold anything. Asks for no
 * memory. */
pl_status pl_weights_load(const pl_safetensors *, const pl_weights_part *, const pl_st_list *, uint64_t checksum,
                          pl_error *);

#endif

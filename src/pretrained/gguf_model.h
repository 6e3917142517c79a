/* What the keys of a GGUF file say about its model. */
#ifndef PL_PRETRAINED_GGUF_MODEL_H
#define PL_PRETRAINED_GGUF_MODEL_H

#include "pretrained/families.h"
#include "pretrained/pretrained.h"

/* Biases, the tied table and the size of the vocabulary follow from the tensors. */
pl_status pl_gguf_model_read(const pl_gguf *, const pl_model_file *, const pl_lm_family **, pl_causal_lm *,
                             pl_pretrained_defaults *, pl_error *);
const pl_gguf_tensor *pl_gguf_find_tensor(const pl_gguf *, const char *name); /* NULL: it has none */

#endif

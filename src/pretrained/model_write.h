/* What a model is, in the words of the other form: the keys of a GGUF file, the config.json of a folder. What the
 * target has no place for, or cannot say exactly, is refused or noted. */
#ifndef PL_PRETRAINED_MODEL_WRITE_H
#define PL_PRETRAINED_MODEL_WRITE_H

#include "base/str.h"
#include "pretrained/gguf_write.h"

enum { PL_MODEL_NOTE_BYTES = 512 };

/* gguf_model_write.c: general.* and the keys of the architecture; the tokenizer's are not among them. `note`: a
 * sentence about what gets lost, or "". `divisors`: the vector that the file needs, numbers NULL where it needs none;
 * it is the model's own memory or `room`. */
typedef struct pl_gguf_model_written {
    pl_gguf_vector divisors;
    float room[PL_ROPE_PAIRS_MAX];
    char note[PL_MODEL_NOTE_BYTES];
} pl_gguf_model_written;

pl_status pl_gguf_model_write(const pl_pretrained *, pl_encoding matrices, pl_gguf_keys *, pl_gguf_model_written *,
                              pl_error *);
/* general.file_type of a file whose matrices are so. */
uint32_t pl_gguf_file_type(pl_encoding matrices);

/* hf_config_write.c: config.json of a model that was a GGUF file, and generation_config.json. */
pl_status pl_hf_config_write(const pl_pretrained *, pl_encoding matrices, const int64_t *stop, size_t stops, pl_str *,
                             pl_error *);
pl_status pl_hf_generation_write(const pl_pretrained *, const int64_t *stop, size_t stops, pl_str *, pl_error *);
/* The config.json of a folder with another dtype and otherwise to the byte as it is. */
pl_status pl_hf_config_with_dtype(const char *path, pl_encoding matrices, pl_str *, pl_error *);

#endif

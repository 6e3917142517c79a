/* The header of a GGUF file, version 3, in memory: keys one after the other, then the list of tensors. */
#ifndef PL_PRETRAINED_GGUF_WRITE_H
#define PL_PRETRAINED_GGUF_WRITE_H

#include "base/str.h"
#include "pretrained/gguf.h"
#include "pretrained/written.h"

typedef struct pl_gguf_keys {
    pl_str text; /* its `failed` says that memory was refused */
    uint64_t count;
} pl_gguf_keys;

void pl_gguf_put_string(pl_gguf_keys *, const char *key, const char *text, size_t bytes);
void pl_gguf_put_u32(pl_gguf_keys *, const char *key, uint64_t); /* below 2^32 */
void pl_gguf_put_f32(pl_gguf_keys *, const char *key, double);
void pl_gguf_put_bool(pl_gguf_keys *, const char *key, bool);
/* The head of an array, whose `count` elements follow: by pl_gguf_put_text, or their bytes. */
void pl_gguf_put_array(pl_gguf_keys *, const char *key, pl_gguf_type, uint64_t count);
void pl_gguf_put_text(pl_gguf_keys *, const char *text, size_t bytes);
/* A key of another file as it stands there. */
pl_status pl_gguf_put_value(pl_gguf_keys *, const pl_gguf *, const pl_gguf_value *, pl_error *);

/* Lays the tensors out in their order, and makes what stands before them: `header`, as long as they begin. `extra`: a
 * vector in f32 that is not of the list, first among them (NULL: none). *bytes: of the whole file. */
typedef struct pl_gguf_vector {
    const char *name;
    const float *numbers;
    uint64_t count;
} pl_gguf_vector;

pl_status pl_gguf_lay_out(const pl_gguf_keys *, const pl_gguf_vector *extra, pl_written_list *, pl_str *header,
                          uint64_t *bytes, pl_error *);
/* Appends zeros up to the place where the next tensor begins. */
pl_status pl_gguf_pad(pl_file_writer *, pl_error *);

#endif

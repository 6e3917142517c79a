/* Pretrained language models in another form: a folder of Hugging Face, or a GGUF file; in another encoding, or in
 * fewer or more files. */
#ifndef PLIMSOLL_CONVERT_H
#define PLIMSOLL_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of the new files, as it was written. */
typedef struct pl_converted_tensor {
    char name[160];
    const char *from, *to; /* encodings: "bf16", "q4_0" */
    uint64_t numbers, bytes;
    double relative_error; /* root mean square of what rounding changed, over that of the numbers; 0: nothing was */
    double largest_error;  /* of one number */
} pl_converted_tensor;

typedef struct pl_convert_options {
    const char *encoding; /* of the matrices: "f32", "bf16", "f16"; in a GGUF file also "q8_0", "q5_1", "q5_0", "q4_1",
                             "q4_0"; NULL: as they are stored, in a folder f32 where that is in blocks */
    uint64_t shard_bytes; /* a folder's files of weights are at most so large; 0: 5e9 */
    bool without_tokenizer;
} pl_convert_options;

typedef struct pl_converted {
    const pl_converted_tensor *tensor;  /* in the order of the files */
    uint64_t tensors, rounded, numbers; /* rounded: tensors of which a number changed */
    uint64_t files, file_bytes;
    double relative_error; /* over all numbers of the tensors that were rounded */
    double worst_relative_error;
    const char *worst;                      /* which tensor that is; NULL: none */
    uint64_t planned_bytes, measured_bytes; /* of memory while tensors are written: known before, and found */
    uint64_t prepared_bytes;                /* the most that was held before, while headers and tokenizer were read */
    char note[1024];                        /* what the new form has no place for; "" for nothing */
} pl_converted;

/* `out` ends in .gguf: such a file; otherwise a folder. Nothing may be there. All of it appears at once and whole, or
 * nothing does. PL_E_UNSUPPORTED names what the other form cannot say; PL_E_DATA, PL_E_STORAGE, PL_E_USAGE. */
PL_API PL_MUST_USE pl_status pl_convert(const char *model, const char *out, const pl_convert_options *, pl_converted **,
                                        pl_error *);
PL_API void pl_converted_destroy(pl_converted *); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif

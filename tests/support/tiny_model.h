/* A pretrained model of a few kilobytes, a llama, as a folder and as a GGUF file. A formula gives its numbers. */
#ifndef TESTS_SUPPORT_TINY_MODEL_H
#define TESTS_SUPPORT_TINY_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    TINY_WIDTH = 32,
    TINY_LAYERS = 2,
    TINY_HEADS = 2,
    TINY_KEY_HEADS = 1,
    TINY_HEAD_WIDTH = 16,
    TINY_INNER = 64,
    TINY_VOCAB = 40,
    TINY_TENSORS = 3 + 9 * TINY_LAYERS,
    TINY_HEADER_MAX = 8192,
};

typedef struct tiny_tensor {
    char name[64]; /* as in folders */
    int64_t rows, columns;
} tiny_tensor;

tiny_tensor tiny_tensor_at(size_t index); /* of TINY_TENSORS */
/* Number i of that tensor, row after row: a multiple of 1/64 in [-1, 1), which 16 bits hold. */
float tiny_number(const tiny_tensor *, int64_t i);

/* config.json, generation_config.json and model.safetensors in F32 into a folder that is there. */
void tiny_write_folder(const char *folder);
void tiny_write_text(const char *folder, const char *name, const char *text);
extern const char tiny_config[];
size_t tiny_print_header(char header[TINY_HEADER_MAX]); /* the JSON of model.safetensors; returns its bytes */

/* The bytes of a GGUF file, into a block for free(); type: as ggml numbers them, 0 (F32), 1 (F16), 2 (Q4_0) or 8 (Q8_0)
 * for matrices; vectors are F32. */
unsigned char *tiny_make_gguf(uint32_t type, size_t *bytes);

#endif

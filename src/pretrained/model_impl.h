/* What is inside of an opened model: its files, the tensors as they are stored, and ours, which are taken from them. */
#ifndef PL_PRETRAINED_MODEL_IMPL_H
#define PL_PRETRAINED_MODEL_IMPL_H

#include "base/alloc.h"
#include "pretrained/families.h"
#include "pretrained/pretrained.h"

/* A tensor as a file has it, in either format. */
typedef struct pl_source {
    const char *name;
    uint32_t rank, file;
    uint64_t rows, columns; /* 0, 0 with more than two dimensions */
    const char *type;       /* for sentences */
    pl_encoding encoding;   /* PL_ENCODING_COUNT: not one of ours */
    bool is_f64;
    bool is_used;
    uint64_t offset; /* in the file */
} pl_source;

/* How a tensor of ours lies in a source. */
typedef struct pl_taken {
    const pl_source *source;
    int64_t first;      /* row of the source, column where it is transposed, or number of a vector */
    int64_t pair_heads; /* 0, or: so many heads whose pairs of rows are neighbours in the file */
    bool is_vector, is_transposed;
} pl_taken;

struct pl_pretrained {
    pl_pool *pool;
    pl_causal_lm model;
    const pl_lm_family *family;
    pl_pretrained_defaults defaults;
    pl_gguf *gguf; /* NULL: a folder */
    const char *path;
    const char *parts[PL_PRETRAINED_PART_COUNT];
    pl_model_file *files;
    size_t file_count, file_room;
    pl_source *sources; /* by name */
    size_t source_count, source_room;
    pl_pretrained_tensor *tensors; /* in the order of the model */
    pl_taken *taken;               /* of each tensor */
    size_t tensor_count, tensor_room, taken_room;
};

pl_source *pl_pretrained_add_source(pl_pretrained *, const char *name, pl_error *); /* NULL: no memory */
void pl_pretrained_sort_sources(pl_pretrained *);
pl_source *pl_pretrained_find_source(const pl_pretrained *, const char *name); /* NULL: there is none */

pl_status pl_hf_folder_open(pl_pretrained *, pl_error *);    /* hf_folder.c */
pl_status pl_weights_map_apply(pl_pretrained *, pl_error *); /* weights_map.c */

#endif

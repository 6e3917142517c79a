/* Within src/store: what is inside of a file that is read, or of several with an index. */
#ifndef PL_STORE_SAFETENSORS_IMPL_H
#define PL_STORE_SAFETENSORS_IMPL_H

#include <jansson.h>

#include "base/alloc.h"
#include "store/model_file.h"
#include "store/safetensors.h"

struct pl_safetensors {
    pl_model_file file; /* fd -1: parsed from memory, or an index, of which only the path is kept */
    json_t *header;     /* owns the names; of a shard NULL: `names` does */
    json_t *metadata;
    char *names;
    pl_st_tensor *tensors; /* by offset; NULL: an index */
    size_t count;
    const pl_st_tensor **by_name; /* of all files */
    uint64_t data_at;
    pl_safetensors **shard; /* of an index, by name; NULL: one file */
    uint32_t shards;
};

pl_status pl_safetensors_open_one(const char *path, pl_safetensors **, pl_error *);
pl_status pl_safetensors_open_index(const char *path, pl_safetensors **, pl_error *); /* safetensors_index.c */
void pl_safetensors_sort(pl_safetensors *);                                           /* by_name */

#endif

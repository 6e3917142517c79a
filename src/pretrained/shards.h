/* The weights of a folder: one file, model.safetensors, or several and an index. */
#ifndef PL_PRETRAINED_SHARDS_H
#define PL_PRETRAINED_SHARDS_H

#include "pretrained/written.h"
#include "base/str.h"
#include "store/safetensors.h"

enum { PL_SHARD_NAME_BYTES = 64, PL_SHARDS_MAX = 9999 };

typedef struct pl_shards {
    pl_written_list *list;
    pl_st_entry *entry; /* of each tensor */
    uint32_t count;
    char *header;                 /* of the longest one */
    uint64_t header_bytes, bytes; /* bytes: of all files */
} pl_shards;

/* Deals the tensors out, in their order, to files of at most so many bytes (one that is larger has a file alone). To be
 * given back whatever is returned. */
pl_status pl_shards_init(pl_shards *, pl_written_list *, uint64_t most_bytes, pl_error *);
void pl_shards_deinit(pl_shards *);
const char *pl_shards_name(const pl_shards *, uint32_t shard, char name[PL_SHARD_NAME_BYTES]);
void pl_shards_print_index(const pl_shards *, pl_str *);

/* What writing a tensor lost, to whoever tells of it. */
typedef void (*pl_written_teller)(void *context, const pl_written *, const pl_written_loss *);
/* Writes one of the files; asks for no memory. */
pl_status pl_shards_write(const pl_shards *, uint32_t shard, const pl_pretrained *, const pl_written_room *,
                          pl_file_writer *, pl_written_teller, void *context, pl_error *);

#endif

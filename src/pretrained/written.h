/* What a model becomes in a file of either form: a list of tensors, each made of one or several of ours, and how they
 * are written, a tile of rows at a time. */
#ifndef PL_PRETRAINED_WRITTEN_H
#define PL_PRETRAINED_WRITTEN_H

#include "base/alloc.h"
#include "base/file.h"
#include "pretrained/pretrained.h"

enum { PL_WRITTEN_PARTS_MAX = 3 };

typedef struct pl_written {
    const char *name; /* in the file */
    const pl_pretrained_tensor *part[PL_WRITTEN_PARTS_MAX];
    uint32_t parts;        /* one after the other, by rows */
    int64_t rows, columns; /* of all; a vector has one row */
    int64_t pair_heads;    /* 0, or: so many heads whose pairs of rows become neighbours */
    bool is_vector, is_transposed;
    bool is_stored;               /* the numbers of the file that is read, to which nothing is added */
    bool lacks_one;               /* 1 is taken from each number */
    bool is_table, is_vocabulary; /* positions; a row for each token */
    pl_encoding encoding;
    uint64_t offset, bytes; /* in its file, by whoever lays it out */
    uint32_t file;
} pl_written;

typedef struct pl_written_list {
    pl_pool *pool;
    pl_written *of;
    size_t count, room;
    const char *left_out; /* a tensor of the part that sees pictures, which is not written; NULL: there is none */
} pl_written_list;

/* weights_map.c: names and shapes. To be given back whatever is returned. */
pl_status pl_written_list_make(const pl_pretrained *, bool is_gguf, pl_written_list *, pl_error *);
void pl_written_list_deinit(pl_written_list *);

/* The encoding of each. `wanted`: of the matrices; PL_ENCODING_COUNT: as they are stored (in f32, where a folder has no
 * form for that). In a GGUF file vectors, the table of positions and rows that are no whole blocks stay in f32, and the
 * rows of tokens are in 8 bits where the rest is in fewer. */
pl_status pl_written_list_encode(const pl_written_list *, bool is_gguf, pl_encoding wanted, pl_error *);

/* The memory through which tensors are written. */
typedef struct pl_written_room {
    uint64_t staging_bytes, number_bytes, row_bytes, block_bytes;
    void *staging;
    float *numbers;        /* a tile in f32 */
    float *row;            /* rows of a tensor that is transposed, before that */
    unsigned char *blocks; /* the tile as it is written */
} pl_written_room;

pl_written_room pl_written_room_plan(const pl_pretrained *, const pl_written_list *); /* its sizes */
uint64_t pl_written_room_bytes(const pl_written_room *);
pl_status pl_written_room_init(pl_written_room *, pl_error *);
void pl_written_room_deinit(pl_written_room *);

/* How far a tensor's numbers moved when they were rounded; zeros where they did not. */
typedef struct pl_written_loss {
    double squares, error_squares, largest;
} pl_written_loss;

/* Appends the tensor. Asks for no memory. */
pl_status pl_written_put(const pl_pretrained *, const pl_written *, const pl_written_room *, pl_file_writer *,
                         pl_written_loss *, pl_error *);

#endif

/* What a block file holds: datasets, arrays under a name; and blocks, the portions in which they are made.
 *
 * A kind of blocks cuts the leading dimensions of its datasets, its axes, into equal pieces: each axis one by one, the
 * last by `step`. So a block's piece of a dataset is contiguous, and its number alone tells where it lies. A rollout of
 * N operators, M realisations and T states has
 *
 *   kind "states"     axes operator N, realisation M, state T by 25   trajectories [N,M,T,C,H,W], metrics/… [N,M,T]
 *   kind "features"   axes operator N                                  features/operator [N,10]
 *
 * Kind 0 has the blocks 0 …, the last axis fastest; kind 1 goes on behind it. Everything here is a pure function of
 * plain values. */
#ifndef PL_STORE_BLOCK_LAYOUT_H
#define PL_STORE_BLOCK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ir/types.h"

enum {
    PL_BLOCK_KINDS_MAX = 8,
    PL_BLOCK_AXES_MAX = 4,
    PL_BLOCK_DATASETS_MAX = 40,
    PL_BLOCK_ATTRIBUTES_MAX = 32,
    PL_BLOCK_RANK_MAX = 8,
    PL_BLOCK_NAME_BYTES = 64,     /* of a dataset's name, with its end */
    PL_BLOCK_WORD_BYTES = 24,     /* of the name of a kind or an axis */
    PL_BLOCK_TEXT_MAX = 4 << 20,  /* bytes of the text that says what made it */
    PL_BLOCK_SENTENCE_BYTES = 320 /* a block by its name */
};
#define PL_BLOCK_NO_KIND UINT32_MAX
#define PL_BLOCK_NONE    UINT64_MAX

typedef struct pl_block_axis {
    const char *name; /* "operator": what a message calls it */
    uint64_t extent;  /* at least 1 */
    uint64_t step;    /* 1, but for the last axis: so many of it are one block */
} pl_block_axis;

typedef struct pl_block_kind {
    const char *name; /* "states" */
    uint32_t axes;    /* 0: one block */
    pl_block_axis axis[PL_BLOCK_AXES_MAX];
} pl_block_kind;

/* Names are of a-z, A-Z, 0-9 and _, in parts divided by "/": groups of HDF5. The leading dimensions are those of the
 * axes of its kind. */
typedef struct pl_block_dataset {
    const char *name;
    pl_dtype dtype;
    bool is_text; /* u8: the last dimension is the bytes of a text, with zeros behind it */
    uint32_t rank;
    uint64_t shape[PL_BLOCK_RANK_MAX];
    uint32_t kind;        /* of the blocks that make it; PL_BLOCK_NO_KIND: it is a constant without axes */
    const void *constant; /* all its bytes, written when the file is made: no block makes it, whatever its kind */
} pl_block_dataset;

/* Said beside the data, in the HDF5 form alone (the other two have it in `text`): an attribute of that group. */
typedef struct pl_block_attribute {
    const char *group, *name; /* "metadata", "version" */
    const char *text;         /* NULL: the number */
    int64_t number;
} pl_block_attribute;

/* Everything that the pointers lead to must outlive what is made of it. */
typedef struct pl_block_layout {
    const char *text; /* JSON: what made it. A file with another text is another job's */
    const pl_block_kind *kind;
    uint32_t kinds;
    const pl_block_dataset *dataset;
    uint32_t datasets;
    const pl_block_attribute *attribute;
    uint32_t attributes;
    /* A part of a larger job (--part I/N): the first axis of each kind begins at `first` of `whole`; 0: it is all. */
    uint64_t first, whole;
    /* Room for the bytes from which the next block of a sequence goes on, in so many sequences at once; not part of the
     * identity: who goes on uses the file's own number of slots. */
    uint32_t carry_slots;
    uint64_t carry_bytes;
} pl_block_layout;

/* PL_E_USAGE with the first thing that is wrong: names, shapes that are not those of the axes, sums that overflow. */
pl_status pl_block_layout_check(const pl_block_layout *, pl_error *);

uint64_t pl_block_count(const pl_block_layout *); /* of all kinds */
uint64_t pl_block_count_of(const pl_block_kind *);
/* The block of a kind at these places of its axes; a place on the last axis is that of any element in the block. */
uint64_t pl_block_at(const pl_block_layout *, uint32_t kind, const uint64_t place[]);
/* The kind of a block, and the half-open range of each of its axes. */
uint32_t pl_block_ranges(const pl_block_layout *, uint64_t block, uint64_t begin[PL_BLOCK_AXES_MAX],
                         uint64_t end[PL_BLOCK_AXES_MAX]);

uint64_t pl_block_dataset_bytes(const pl_block_dataset *);
/* Of the blocks whose bit is set. */
uint64_t pl_block_done_bytes(const pl_block_layout *, const uint64_t *bitmap);
/* Do blocks make this dataset? */
static inline bool pl_block_is_made(const pl_block_dataset *d) { return !d->constant && d->kind != PL_BLOCK_NO_KIND; }
/* Where in the dataset the block's piece lies; false, and 0 bytes, when its kind makes none of it. */
bool pl_block_piece(const pl_block_layout *, uint64_t block, uint32_t dataset, uint64_t *offset, uint64_t *bytes);

/* "states of operator 12, realisation 3, state 25 to 49"; returns text. */
const char *pl_block_name(const pl_block_layout *, uint64_t block, char text[PL_BLOCK_SENTENCE_BYTES]);

/* Index of the dataset of that name, or PL_BLOCK_NO_KIND. */
uint32_t pl_block_find(const pl_block_layout *, const char *dataset);

#endif

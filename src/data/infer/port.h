/* An input of a model that is run on files: what it is called and what one item of it is. */
#ifndef PL_DATA_INFER_PORT_H
#define PL_DATA_INFER_PORT_H

#include <string.h>

#include "base/scaler.h"
#include "stream/source.h"
#include "texts/setup.h"

struct pl_data;
struct pl_rows_kind;

enum { PL_INFER_PORTS_MAX = 4, PL_INFER_RANK_MAX = 4, PL_INFER_NAME_BYTES = 24 };

#define PL_INFER_DIM_ANY UINT64_MAX /* a port's: the file says it */

typedef struct pl_infer_port {
    char name[PL_INFER_NAME_BYTES];
    pl_dtype dtype; /* f32, or i32: ids */
    bool picture;   /* planes [colours, height, width] from 0 (black) to 1 (white) */
    bool bytes;     /* not a picture, but bytes from 0 to 255 mean 0 to 1 all the same */
    /* How numbers of a file become what the model was trained on: so many in a row are scaled by their own mean and
     * deviation (0: none), number k of an item by scaler[k] (NULL: not at all), which outlives the port. */
    uint64_t scaled_together;
    const pl_scaler *scaler;
    uint32_t rank;
    uint64_t dim[PL_INFER_RANK_MAX];
    const char *dim_key;             /* key that sets dim[0], for sentences; NULL: the model does */
    const struct pl_rows_kind *kind; /* of files that only its system can read; NULL: there are none */
    const struct pl_data *of;        /* the system's own data, for that kind */
    pl_texts_form form;              /* for files of texts: AUTO_LINES, or what the user said */
    const char *key;                 /* of the texts in records; NULL: the usual one */
    int64_t below;                   /* ids: each in [0, below), or −1 for none; 0: any number */
} pl_infer_port;

/* What a model gives out for an item. */
typedef struct pl_infer_output {
    const char *name;
    uint32_t rank; /* of an item */
    uint64_t dim[PL_RANK_MAX], elems;
} pl_infer_output;

/* What was found so far for an item that comes in parts; zeros before the first. */
typedef struct pl_infer_sums {
    double loss;
    uint64_t count, ids;
} pl_infer_sums;

/* An item, or a part of one (pl_rows_part), and the model's outputs for it. */
typedef struct pl_infer_item {
    const pl_infer_output *output;
    const float *const *values; /* [outputs] */
    size_t outputs;
    const int32_t *ids; /* those of its input of ids; NULL: it has none */
    uint64_t id_count;
    const struct pl_rows_remark *const *remark; /* [remarks] */
    size_t remarks;
    uint64_t again; /* ids at its beginning that the previous part had, too; 0: it is the first */
    bool is_last;
    pl_infer_sums *sums;
} pl_infer_item;

/* The numbers of the output of that name; NULL: there is none. */
static inline const float *pl_infer_item_find(const pl_infer_item *i, const char *name, const pl_infer_output **output)
{
    for (size_t k = 0; k < i->outputs; k++)
        if (strcmp(i->output[k].name, name) == 0) return *output = &i->output[k], i->values[k];
    return NULL;
}

static inline uint64_t pl_infer_port_elems(const pl_infer_port *p)
{
    uint64_t elems = 1;
    for (uint32_t i = 0; i < p->rank; i++) elems *= p->dim[i];
    return elems;
}
/* Bytes of an item; f32 and i32 have four bytes a number. */
static inline uint64_t pl_infer_port_bytes(const pl_infer_port *p) { return 4 * pl_infer_port_elems(p); }

#endif

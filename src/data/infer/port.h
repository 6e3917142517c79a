/* An input of a model that is run on files: what it is called and what one item of it is. */
#ifndef PL_DATA_INFER_PORT_H
#define PL_DATA_INFER_PORT_H

#include "stream/source.h"

enum { PL_INFER_PORTS_MAX = 4, PL_INFER_RANK_MAX = 4, PL_INFER_NAME_BYTES = 24 };

typedef struct pl_infer_port {
    char name[PL_INFER_NAME_BYTES];
    pl_dtype dtype; /* f32, or i32: ids */
    bool picture;   /* planes [colours, height, width] from 0 (black) to 1 (white) */
    uint32_t rank;
    uint64_t dim[PL_INFER_RANK_MAX];
    int64_t below; /* ids: each is one of [0, below), or −1 for none; 0: any number will do */
} pl_infer_port;

static inline uint64_t pl_infer_port_elems(const pl_infer_port *p)
{
    uint64_t elems = 1;
    for (uint32_t i = 0; i < p->rank; i++) elems *= p->dim[i];
    return elems;
}
/* Of an item; f32 and i32 have four bytes a number. */
static inline uint64_t pl_infer_port_bytes(const pl_infer_port *p) { return 4 * pl_infer_port_elems(p); }

#endif

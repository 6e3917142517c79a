/* Which products of a program can be done in 8 bits, and where what comes to them is the same: a site. Who observes a
 * calibration and who carries its result out must agree on both, and on the names in the file between them. */
#ifndef PL_REWRITE_INT8_SITES_H
#define PL_REWRITE_INT8_SITES_H

#include "ir/graph.h"

typedef struct pl_int8_site {
    pl_id x;      /* what comes to its layers, f32 */
    pl_id first;  /* of its layers: a node */
    pl_id weight; /* which that one reads, */
    uint32_t use; /* when so many nodes have read it before */
} pl_int8_site;

typedef struct pl_int8_sites {
    pl_int8_site *site;
    size_t count, capacity;
    uint32_t *of; /* [nodes] its site; PL_NONE: it is no such layer */
} pl_int8_sites;

/* Layers are linear nodes of the program (PL_NONE: of all of them) that always run and whose weight is a matrix of f32,
 * at most PL_INT8_K_MAX wide, that nothing in the graph reads but such nodes, and that is no view of a part of another.
 * like: a graph of other programs that are to take the same weights; only what is such a layer in one of those, too, is
 * one here. NULL: there is none. Needs: feed-forward layers taken apart (unfold.c), nothing fused. PL_E_UNSUPPORTED for
 * a weight with a longer name than PL_INT8_WEIGHT_BYTES. */
pl_status pl_int8_sites_find(const pl_graph *, pl_id program, const pl_graph *like, pl_int8_sites *, pl_error *);
void pl_int8_sites_deinit(pl_int8_sites *);

/* "WEIGHT.input.USE"; returns name. */
enum { PL_INT8_NAME_BYTES = 288, PL_INT8_WEIGHT_BYTES = 250 };
const char *pl_int8_site_name(const pl_graph *, const pl_int8_site *, char name[PL_INT8_NAME_BYTES]);

#endif

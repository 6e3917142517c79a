/* Between the two files of the layer-major rewrite: what is where (layer_major.c), and the new graph
 * (layer_major_build.c). */
#ifndef PL_REWRITE_LAYER_MAJOR_H
#define PL_REWRITE_LAYER_MAJOR_H

#include "rewrite/rewrite.h"

enum { PL_NO_GROUP = -1 };

typedef struct pl_layers {
    pl_graph *g;
    pl_id program, region; /* the region that is taken apart */
    size_t begin, end;     /* its nodes */
    size_t values;         /* before the rewrite */
    uint64_t trips;
    int groups, keep; /* the input of every keep-th group is kept; 0: of none */
    bool forward;     /* a region that only fills the stacks of kept inputs comes first */
    pl_id load;       /* node */
    pl_id sample;     /* the input that names the micro-batch's first sequence, where a node of the region reads it */
    /* [nodes of the region] */
    bool *backward; /* depends on the loss; else it may run again */
    int *group;
    /* [values] by root */
    bool *outside;    /* seen by nodes outside of the region, or persistent: an accumulator, the loss, a weight */
    bool *from_loss;  /* made by backward nodes */
    int *made_in;     /* group that makes it: the highest of forward nodes, the lowest of backward ones */
    int *bound;       /* of an input of groups that is kept: the lowest kept group behind the one that makes it */
    bool *carried;    /* goes from region to region through a stack */
    int *last_reader; /* of what is carried: last of the regions that read it, counted in their order */
    uint32_t *writer; /* first of the list of nodes that write it; index + 1 into link */
    struct {
        pl_id node;
        uint32_t next;
    } * link;
    /* which nodes the region at hand has: stamp[node] == its number + 1 */
    uint32_t *stamp;
    pl_id *todo;
} pl_layers;

/* Regions are numbered in their order: the forward one if there is one, then those of the groups, the last group's
 * first. The group of a region; `groups` for the forward one. */
static inline int pl_layers_group(const pl_layers *l, int region) { return l->groups - 1 - region + l->forward; }
static inline int pl_layers_regions(const pl_layers *l) { return l->groups + l->forward; }
static inline bool pl_layers_chosen(const pl_layers *l, int region, size_t node)
{
    return l->stamp[node - l->begin] == (uint32_t)region + 1;
}
/* Stamps the nodes that a region needs; for regions in rising order. */
void pl_layers_choose(pl_layers *, int region);
/* May the region's node `writer` put its output where the tile of `root` lies? Nothing reads that one any more. */
bool pl_layers_may_overwrite(const pl_layers *, int region, size_t writer, int out, pl_id root);

/* ---- layer_major_build.c ---- */
pl_status pl_layers_build(pl_layers *, pl_error *);

#endif

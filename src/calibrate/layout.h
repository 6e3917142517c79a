/* Where the values of a replay lie in the scratch memory. Each kind of value has an area:
 *
 *      own          integers, sums, scalars: what must hold sensible numbers, each in a place of its own
 *      workspace    one place for all nodes; apart from everything else, because calls keep counters in it
 *      weight     \
 *      gradient    > one place each; when an area is smaller than what it stands for, a ring: in each turn a value
 *      moment     /  lies behind where it lay before, so that it is found as cold as in the run
 *      activation   by their lives, like the plan does; shared with the moments when memory is short
 *
 * Invariant: with enough memory (bytes_max) nothing overlaps that is alive together, and the replay computes what the
 * program would. With less, contents are lost but not the places' sizes, and times hold as long as caches are smaller.
 */
#ifndef PL_CALIBRATE_LAYOUT_H
#define PL_CALIBRATE_LAYOUT_H

#include "calibrate/calibrate.h"

typedef enum pl_area_kind {
    PL_AREA_OWN,
    PL_AREA_WORKSPACE,
    PL_AREA_WEIGHT,
    PL_AREA_GRADIENT,
    PL_AREA_MOMENT,
    PL_AREA_ACTIVATION,
    PL_AREA_COUNT
} pl_area_kind;

typedef struct pl_area {
    uint64_t demand_bytes, largest_bytes; /* of all its values, of one */
    uint64_t begin, bytes;                /* in the scratch memory */
} pl_area;

typedef struct pl_layout {
    const pl_graph *graph;
    bool *run;                 /* [nodes] are replayed; those that have no room are taken out */
    uint8_t *kind;             /* [values] of roots: pl_area_kind; PL_AREA_COUNT: not touched */
    uint64_t *home;            /* [values] of roots, within what its area stands for */
    uint64_t *workspace_bytes; /* [nodes] */
    pl_area area[PL_AREA_COUNT];
    uint64_t bytes;      /* scratch memory needed */
    bool moments_shared; /* with activations */
} pl_layout;

/* run: the nodes to be replayed; kept and changed by the layout, owned by the caller. */
pl_status pl_layout_init(pl_layout *, const pl_graph *, bool *run, pl_team, uint64_t bytes_max, pl_error *);
void pl_layout_deinit(pl_layout *);

/* Offset of a root in the scratch memory in this turn. */
uint64_t pl_layout_offset(const pl_layout *, pl_id root, uint64_t turn);

#endif

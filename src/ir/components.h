/* The components of a program, by which its time is told: every node belongs to exactly one.
 *
 * A component is the first part of a node's scope that is not one of many alike: attention of block.3/attention/qkv,
 * vit of vit/layer.0/feed_forward, convolution1 of frame.2/convolution1. Models name it as they enter their scopes;
 * gradients and what is computed again for them stand in the scope of what they are of, in the backward pass. The pass
 * that changes weights is one component, whatever it changes. */
#ifndef PL_IR_COMPONENTS_H
#define PL_IR_COMPONENTS_H

#include "ir/graph.h"

enum { PL_COMPONENTS_MAX = 120, PL_COMPONENT_NONE = 255 /* nodes of other programs */ };

typedef struct pl_component {
    const char *name; /* not terminated: a part of a scope of the graph */
    size_t bytes;     /* 0: the scope is empty */
    pl_phase phase;
} pl_component;

typedef struct pl_components {
    pl_component item
        [PL_COMPONENTS_MAX]; /* by passes, then in the order of their first nodes; of more the last is of all others */
    size_t count;
    uint8_t *of; /* [nodes] */
} pl_components;

/* Where the component's name begins in the scope, and its length. */
const char *pl_component_name(const char *scope, size_t *bytes);
/* PL_E_NOMEM. */
pl_status pl_components_create(const pl_graph *, pl_id program, pl_components *, pl_error *);
void pl_components_deinit(pl_components *);

#endif

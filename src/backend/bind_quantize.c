/* What a calibration sees. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_observe(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.observe = (pl_observe_call){.count = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                        .x = pl_address_of(g, a, n->in[0]),
                                        .extremes = pl_address_of(g, a, n->in[1]),
                                        .bin = pl_address_of(g, a, n->in[2])};
}

static uint64_t workspace_observe(const pl_call *c, pl_team team)
{
    return pl_observe_workspace_bytes(&c->u.observe, team);
}

static void exec_observe(const pl_call *c, pl_team team) { pl_observe_exec(&c->u.observe, c->workspace, team); }

const pl_binding pl_binding_OBSERVE_EXTREMES = {bind_observe, workspace_observe, exec_observe};
const pl_binding pl_binding_OBSERVE_SPREAD = {bind_observe, workspace_observe, exec_observe};

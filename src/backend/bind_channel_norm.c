/* Norms of images. */
#include "backend/backend.h"
#include "ir/op.h"

/* How x [samples, ..., positions, channels] is cut: rows of all samples, and positions of a row. */
typedef struct extent {
    int64_t samples, rows, positions, channels;
} extent;

static extent extent_of(const pl_shape *x)
{
    extent e = {x->dim[0], 1, x->rank > 2 ? x->dim[x->rank - 2] : 1, pl_shape_last(x)};
    for (uint32_t i = 1; i + 2 < x->rank; i++) e.rows *= x->dim[i];
    return e;
}

static void bind_moments(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    extent e = extent_of(&pl_in(g, n, 0)->shape);
    call->u.channel_moments = (pl_channel_moments_call){
        e.samples * e.rows,     e.positions, e.channels, pl_address_of(g, a, n->in[0]), pl_address_of(g, a, n->out[0]),
        pl_real_of(g, n->in[0])};
}

static void exec_moments(const pl_call *c, pl_team team) { pl_channel_moments_exec(&c->u.channel_moments, team); }

const pl_binding pl_binding_CHANNEL_MOMENTS = {bind_moments, NULL, exec_moments};

static void bind_group_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    extent e = extent_of(&pl_in(g, n, 0)->shape);
    call->u.channel_norm = (pl_channel_norm_call){.samples = e.samples,
                                                  .rows = e.rows,
                                                  .positions = e.positions,
                                                  .channels = e.channels,
                                                  .groups = n->attr[0].i,
                                                  .eps = (float)n->attr[1].f,
                                                  .act = (pl_activation)n->attr[2].i,
                                                  .x = pl_address_of(g, a, n->in[0]),
                                                  .moments = pl_address_of(g, a, n->in[1]),
                                                  .gamma = pl_address_of(g, a, n->in[2]),
                                                  .beta = pl_address_of(g, a, n->in[3]),
                                                  .residual = pl_address_of(g, a, n->in[4]),
                                                  .y = pl_address_of(g, a, n->out[0]),
                                                  .mean = pl_address_of(g, a, n->out[1]),
                                                  .rstd = pl_address_of(g, a, n->out[2]),
                                                  .type = pl_real_of(g, n->in[0])};
}

static uint64_t workspace_norm(const pl_call *c, pl_team team)
{
    return pl_channel_norm_workspace_bytes(&c->u.channel_norm, team);
}
static void exec_norm(const pl_call *c, pl_team team) { pl_channel_norm_exec(&c->u.channel_norm, c->workspace, team); }

const pl_binding pl_binding_GROUP_NORM = {bind_group_norm, workspace_norm, exec_norm};

/* Noise, the next state and the metrics of a rollout. */
#include "backend/backend.h"
#include "ir/op.h"

static int64_t elems_per_sample(const pl_value *x) { return (int64_t)pl_shape_elems(&x->shape) / x->shape.dim[0]; }

static void bind_noise(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t *dim = pl_in(g, n, 0)->shape.dim;
    call->u.noise = (pl_noise_call){.samples = dim[0],
                                    .height = dim[1],
                                    .width = dim[2],
                                    .channels = dim[3],
                                    .correlated = n->attr[2].i != 0,
                                    .seed = (uint64_t)n->attr[0].i,
                                    .stream = (uint64_t)n->attr[1].i,
                                    .parameters = pl_address_of(g, a, n->in[1]),
                                    .ids = pl_address_of(g, a, n->in[2]),
                                    .step = pl_address_of(g, a, n->in[3]),
                                    .x = pl_address_of(g, a, n->in[0]),
                                    .y = pl_address_of(g, a, n->out[0]),
                                    .type = pl_real_of(g, n->in[0]),
                                    .dropout = n->attr[3].i != 0};
}

static uint64_t workspace_noise(const pl_call *c, pl_team team) { return pl_noise_workspace_bytes(&c->u.noise, team); }
static void exec_noise(const pl_call *c, pl_team team) { pl_noise_exec(&c->u.noise, c->workspace, team); }

const pl_binding pl_binding_NOISE = {bind_noise, workspace_noise, exec_noise};

static void bind_evolve(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0);
    call->u.evolve = (pl_evolve_call){.samples = x->shape.dim[0],
                                      .elems_per_sample = elems_per_sample(x),
                                      .parameters = pl_address_of(g, a, n->in[2]),
                                      .x = pl_address_of(g, a, n->out[0]),
                                      .previous = pl_address_of(g, a, n->out[1]),
                                      .y = pl_address_of(g, a, n->in[1]),
                                      .type = pl_real_of(g, n->in[1])};
}

static void exec_evolve(const pl_call *c, pl_team team) { pl_evolve_exec(&c->u.evolve, team); }

const pl_binding pl_binding_EVOLVE = {bind_evolve, NULL, exec_evolve};

static void bind_field_metrics(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0);
    call->u.field_metrics = (pl_field_metrics_call){.samples = x->shape.dim[0],
                                                    .elems_per_sample = elems_per_sample(x),
                                                    .x = pl_address_of(g, a, n->in[0]),
                                                    .previous = pl_address_of(g, a, n->in[1]),
                                                    .metrics = pl_address_of(g, a, n->out[0])};
}

static void exec_field_metrics(const pl_call *c, pl_team team) { pl_field_metrics_exec(&c->u.field_metrics, team); }

const pl_binding pl_binding_FIELD_METRICS = {bind_field_metrics, NULL, exec_field_metrics};

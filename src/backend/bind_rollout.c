/* Noise, the next state and the metrics of a rollout. */
#include "backend/backend.h"
#include "ir/op.h"

static int64_t elems_per_sample(const pl_value *x) { return (int64_t)pl_shape_elems(&x->shape) / x->shape.dim[0]; }

static void bind_noise(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t *dim = g->value[n->noise.x].shape.dim;
    call->u.noise = (pl_noise_call){.samples = dim[0],
                                    .height = dim[1],
                                    .width = dim[2],
                                    .channels = dim[3],
                                    .correlated = n->noise.correlated != 0,
                                    .seed = (uint64_t)n->noise.seed,
                                    .stream = (uint64_t)n->noise.stream,
                                    .parameters = pl_address_of(g, a, n->noise.parameters),
                                    .ids = pl_address_of(g, a, n->noise.ids),
                                    .step = pl_address_of(g, a, n->noise.step),
                                    .x = pl_address_of(g, a, n->noise.x),
                                    .y = pl_address_of(g, a, n->noise.y),
                                    .type = pl_real_of(g, n->noise.x),
                                    .dropout = n->noise.dropout != 0};
}

static uint64_t workspace_noise(const pl_call *c, pl_team team) { return pl_noise_workspace_bytes(&c->u.noise, team); }
static void exec_noise(const pl_call *c, pl_team team) { pl_noise_exec(&c->u.noise, c->workspace, team); }

const pl_binding pl_binding_NOISE = {bind_noise, workspace_noise, exec_noise};

static void bind_evolve(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->evolve.x];
    call->u.evolve = (pl_evolve_call){.samples = x->shape.dim[0],
                                      .elems_per_sample = elems_per_sample(x),
                                      .parameters = pl_address_of(g, a, n->evolve.parameters),
                                      .x = pl_address_of(g, a, n->evolve.x_new),
                                      .previous = pl_address_of(g, a, n->evolve.previous_new),
                                      .y = pl_address_of(g, a, n->evolve.y),
                                      .type = pl_real_of(g, n->evolve.y)};
}

static void exec_evolve(const pl_call *c, pl_team team) { pl_evolve_exec(&c->u.evolve, team); }

const pl_binding pl_binding_EVOLVE = {bind_evolve, NULL, exec_evolve};

static void bind_field_metrics(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->field_metrics.x];
    call->u.field_metrics = (pl_field_metrics_call){.samples = x->shape.dim[0],
                                                    .elems_per_sample = elems_per_sample(x),
                                                    .x = pl_address_of(g, a, n->field_metrics.x),
                                                    .previous = pl_address_of(g, a, n->field_metrics.before),
                                                    .metrics = pl_address_of(g, a, n->field_metrics.metrics)};
}

static void exec_field_metrics(const pl_call *c, pl_team team) { pl_field_metrics_exec(&c->u.field_metrics, team); }

const pl_binding pl_binding_FIELD_METRICS = {bind_field_metrics, NULL, exec_field_metrics};

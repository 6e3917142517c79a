/* What a policy draws and tries. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_perturb(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->perturb.x].shape;
    call->u.perturb = (pl_perturb_call){.samples = x->dim[0],
                                        .count = n->perturb.count,
                                        .width = x->dim[1],
                                        .kind = (pl_perturbation)n->perturb.kind,
                                        .scale = n->perturb.scale,
                                        .seed = (uint64_t)n->perturb.seed,
                                        .stream = (uint64_t)n->perturb.stream,
                                        .step = pl_address_of(g, a, n->perturb.step),
                                        .first_sample = pl_address_of(g, a, n->perturb.first_sample),
                                        .x = pl_address_of(g, a, n->perturb.x),
                                        .y = pl_address_of(g, a, n->perturb.y)};
}

static void exec_perturb(const pl_call *c, pl_team team) { pl_perturb_exec(&c->u.perturb, team); }

const pl_binding pl_binding_PERTURB = {bind_perturb, NULL, exec_perturb};

static void bind_shift(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *page = &g->value[n->shift.page].shape;
    call->u.shift = (pl_shift_call){.pages = page->dim[0],
                                    .height = page->dim[1],
                                    .width = page->dim[2],
                                    .reach = n->shift.reach,
                                    .x = pl_address_of(g, a, n->shift.page),
                                    .across = pl_address_of(g, a, n->shift.across),
                                    .down = pl_address_of(g, a, n->shift.down),
                                    .y = pl_address_of(g, a, n->shift.y)};
}

static void exec_shift(const pl_call *c, pl_team team) { pl_shift_exec(&c->u.shift, team); }

const pl_binding pl_binding_SHIFT = {bind_shift, NULL, exec_shift};

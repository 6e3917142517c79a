/* What a policy draws and tries. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_perturb(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.perturb = (pl_perturb_call){.samples = x->dim[0],
                                        .count = n->attr[0].i,
                                        .width = x->dim[1],
                                        .kind = (pl_perturbation)n->attr[1].i,
                                        .scale = n->attr[2].f,
                                        .seed = (uint64_t)n->attr[3].i,
                                        .stream = (uint64_t)n->attr[4].i,
                                        .step = pl_address_of(g, a, n->in[1]),
                                        .first_sample = pl_address_of(g, a, n->in[2]),
                                        .x = pl_address_of(g, a, n->in[0]),
                                        .y = pl_address_of(g, a, n->out[0])};
}

static void exec_perturb(const pl_call *c, pl_team team) { pl_perturb_exec(&c->u.perturb, team); }

const pl_binding pl_binding_PERTURB = {bind_perturb, NULL, exec_perturb};

static void bind_shift(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *page = &pl_in(g, n, 0)->shape;
    call->u.shift = (pl_shift_call){.pages = page->dim[0],
                                    .height = page->dim[1],
                                    .width = page->dim[2],
                                    .reach = n->attr[0].i,
                                    .x = pl_address_of(g, a, n->in[0]),
                                    .across = pl_address_of(g, a, n->in[1]),
                                    .down = pl_address_of(g, a, n->in[2]),
                                    .y = pl_address_of(g, a, n->out[0])};
}

static void exec_shift(const pl_call *c, pl_team team) { pl_shift_exec(&c->u.shift, team); }

const pl_binding pl_binding_SHIFT = {bind_shift, NULL, exec_shift};

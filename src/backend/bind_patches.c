/* Patches of images, positions, a row in front. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_patches(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    const bool planes = pl_in(g, n, 0)->dtype == PL_DTYPE_F32;
    const int high = planes ? 2 : 1;
    call->u.patches = (pl_patches_call){.standardize = n->attr[2].i != 0,
                                        .samples = x->dim[0],
                                        .height = x->dim[high],
                                        .width = x->dim[high + 1],
                                        .depth = !planes && x->rank == 4 ? x->dim[3] : 1,
                                        .patch = n->attr[0].i,
                                        .channels = n->attr[1].i,
                                        .x = planes ? NULL : pl_address_of(g, a, n->in[0]),
                                        .planes = planes ? pl_address_of(g, a, n->in[0]) : NULL,
                                        .y = pl_address_of(g, a, n->out[0])};
}

static void exec_patches(const pl_call *c, pl_team team) { pl_patches_exec(&c->u.patches, team); }

const pl_binding pl_binding_PATCHES = {bind_patches, NULL, exec_patches};

static void bind_pixels(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.pixels = (pl_pixels_call){.elems = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                      .x = pl_address_of(g, a, n->in[0]),
                                      .y = pl_address_of(g, a, n->out[0]),
                                      .type = pl_real_of(g, n->in[0])};
}

static void exec_pixels(const pl_call *c, pl_team team) { pl_pixels_exec(&c->u.pixels, team); }

const pl_binding pl_binding_PIXELS = {bind_pixels, NULL, exec_pixels};

static void bind_add_positions(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t once = (int64_t)pl_shape_elems(&pl_in(g, n, 1)->shape);
    call->u.add_positions = (pl_add_positions_call){.samples = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape) / once,
                                                    .elems_per_sample = once,
                                                    .x = pl_address_of(g, a, n->in[0]),
                                                    .p = pl_address_of(g, a, n->in[1]),
                                                    .y = pl_address_of(g, a, n->out[0]),
                                                    .type = pl_real_of(g, n->in[0])};
}

static void exec_add_positions(const pl_call *c, pl_team team) { pl_add_positions_exec(&c->u.add_positions, team); }

const pl_binding pl_binding_ADD_POSITIONS = {bind_add_positions, NULL, exec_add_positions};

static void bind_prepend_row(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.prepend_row = (pl_prepend_row_call){.samples = x->dim[0],
                                                .rows = x->dim[1],
                                                .width = x->dim[2],
                                                .x = pl_address_of(g, a, n->in[0]),
                                                .row = pl_address_of(g, a, n->in[1]),
                                                .y = pl_address_of(g, a, n->out[0]),
                                                .type = pl_real_of(g, n->in[0])};
}

static void exec_prepend_row(const pl_call *c, pl_team team) { pl_prepend_row_exec(&c->u.prepend_row, team); }

const pl_binding pl_binding_PREPEND_ROW = {bind_prepend_row, NULL, exec_prepend_row};

static void bind_drop_row(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    call->u.drop_row = (pl_drop_row_call){.samples = x->dim[0],
                                          .rows = x->dim[1] - 1,
                                          .width = x->dim[2],
                                          .x = pl_address_of(g, a, n->in[0]),
                                          .y = pl_address_of(g, a, n->out[0]),
                                          .sum = pl_address_of(g, a, n->out[1]),
                                          .type = pl_real_of(g, n->in[0])};
}

static void exec_drop_row(const pl_call *c, pl_team team) { pl_drop_row_exec(&c->u.drop_row, team); }

const pl_binding pl_binding_DROP_ROW = {bind_drop_row, NULL, exec_drop_row};

/* Patches of images, positions, a row in front. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_patches(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->patches.image].shape;
    const bool planes = g->value[n->patches.image].dtype == PL_DTYPE_F32;
    const int high = planes ? 2 : 1;
    call->u.patches = (pl_patches_call){.standardize = n->patches.standardize != 0,
                                        .samples = x->dim[0],
                                        .height = x->dim[high],
                                        .width = x->dim[high + 1],
                                        .depth = !planes && x->rank == 4 ? x->dim[3] : 1,
                                        .patch = n->patches.patch,
                                        .channels = n->patches.channels,
                                        .x = planes ? NULL : pl_address_of(g, a, n->patches.image),
                                        .planes = planes ? pl_address_of(g, a, n->patches.image) : NULL,
                                        .y = pl_address_of(g, a, n->patches.y)};
}

static void exec_patches(const pl_call *c, pl_team team) { pl_patches_exec(&c->u.patches, team); }

const pl_binding pl_binding_PATCHES = {bind_patches, NULL, exec_patches};

static void bind_pixels(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.pixels = (pl_pixels_call){.elems = (int64_t)pl_shape_elems(&g->value[n->pixels.x].shape),
                                      .x = pl_address_of(g, a, n->pixels.x),
                                      .y = pl_address_of(g, a, n->pixels.y),
                                      .type = pl_real_of(g, n->pixels.x)};
}

static void exec_pixels(const pl_call *c, pl_team team) { pl_pixels_exec(&c->u.pixels, team); }

const pl_binding pl_binding_PIXELS = {bind_pixels, NULL, exec_pixels};

static void bind_add_positions(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t once = (int64_t)pl_shape_elems(&g->value[n->add_positions.positions].shape);
    call->u.add_positions =
        (pl_add_positions_call){.samples = (int64_t)pl_shape_elems(&g->value[n->add_positions.x].shape) / once,
                                .elems_per_sample = once,
                                .x = pl_address_of(g, a, n->add_positions.x),
                                .p = pl_address_of(g, a, n->add_positions.positions),
                                .y = pl_address_of(g, a, n->add_positions.y),
                                .type = pl_real_of(g, n->add_positions.x)};
}

static void exec_add_positions(const pl_call *c, pl_team team) { pl_add_positions_exec(&c->u.add_positions, team); }

const pl_binding pl_binding_ADD_POSITIONS = {bind_add_positions, NULL, exec_add_positions};

static void bind_prepend_row(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->prepend_row.x].shape;
    call->u.prepend_row = (pl_prepend_row_call){.samples = x->dim[0],
                                                .rows = x->dim[1],
                                                .width = x->dim[2],
                                                .x = pl_address_of(g, a, n->prepend_row.x),
                                                .row = pl_address_of(g, a, n->prepend_row.row),
                                                .y = pl_address_of(g, a, n->prepend_row.y),
                                                .type = pl_real_of(g, n->prepend_row.x)};
}

static void exec_prepend_row(const pl_call *c, pl_team team) { pl_prepend_row_exec(&c->u.prepend_row, team); }

const pl_binding pl_binding_PREPEND_ROW = {bind_prepend_row, NULL, exec_prepend_row};

static void bind_drop_row(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->drop_row.x].shape;
    call->u.drop_row = (pl_drop_row_call){.samples = x->dim[0],
                                          .rows = x->dim[1] - 1,
                                          .width = x->dim[2],
                                          .x = pl_address_of(g, a, n->drop_row.x),
                                          .y = pl_address_of(g, a, n->drop_row.y),
                                          .sum = pl_address_of(g, a, n->drop_row.sum_new),
                                          .type = pl_real_of(g, n->drop_row.x)};
}

static void exec_drop_row(const pl_call *c, pl_team team) { pl_drop_row_exec(&c->u.drop_row, team); }

const pl_binding pl_binding_DROP_ROW = {bind_drop_row, NULL, exec_drop_row};

/* What a batch carries from step to step, and codebooks. */
#include "backend/backend.h"
#include "ir/op.h"

static pl_carry_call carry_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, int first_sample)
{
    const pl_value *x = pl_in(g, n, 1);
    return (pl_carry_call){.places = pl_in(g, n, 0)->shape.dim[0],
                           .samples = x->shape.dim[0],
                           .row_bytes = (int64_t)(pl_value_bytes(g, n->in[1]) / (uint64_t)x->shape.dim[0]),
                           .first_sample = pl_address_of(g, a, n->in[first_sample]),
                           .x = pl_address_of(g, a, n->in[1]),
                           .state = pl_address_of(g, a, n->in[0])};
}

static void bind_carry_read(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.carry = carry_of(g, n, a, 3);
    call->u.carry.done = pl_address_of(g, a, n->in[2]);
    call->u.carry.y = pl_address_of(g, a, n->out[0]);
    call->u.carry.below = n->attr[0].i;
}
static void exec_carry_read(const pl_call *c, pl_team team) { pl_carry_read_exec(&c->u.carry, team); }
const pl_binding pl_binding_CARRY_READ = {bind_carry_read, NULL, exec_carry_read};

static void bind_carry_write(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.carry = carry_of(g, n, a, 2);
}
static void exec_carry_write(const pl_call *c, pl_team team) { pl_carry_write_exec(&c->u.carry, team); }
const pl_binding pl_binding_CARRY_WRITE = {bind_carry_write, NULL, exec_carry_write};

static void bind_halt(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.halt = (pl_halt_call){.places = pl_in(g, n, 0)->shape.dim[0],
                                  .samples = pl_in(g, n, 1)->shape.dim[0],
                                  .limit = n->attr[0].i,
                                  .exploration = (float)n->attr[1].f,
                                  .seed = (uint64_t)n->attr[2].i,
                                  .stream = (uint64_t)n->attr[3].i,
                                  .step = pl_address_of(g, a, n->in[2]),
                                  .first_sample = pl_address_of(g, a, n->in[3]),
                                  .q = pl_address_of(g, a, n->in[1]),
                                  .done = pl_address_of(g, a, n->out[0]),
                                  .type = pl_real_of(g, n->in[1])};
}
static void exec_halt(const pl_call *c, pl_team team) { pl_halt_exec(&c->u.halt, team); }
const pl_binding pl_binding_HALT = {bind_halt, NULL, exec_halt};

static void bind_ramp(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.ramp = (pl_ramp_call){.high = n->attr[0].f,
                                  .first = n->attr[1].i,
                                  .second = n->attr[2].i,
                                  .last = n->attr[3].i,
                                  .step = pl_address_of(g, a, n->in[1]),
                                  .y = pl_address_of(g, a, n->out[0])};
}
static void exec_ramp(const pl_call *c, pl_team team) { pl_ramp_exec(&c->u.ramp, team); }
const pl_binding pl_binding_RAMP = {bind_ramp, NULL, exec_ramp};

/* ---- codebooks ---- */

static void bind_nearest_code(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *z = &pl_in(g, n, 0)->shape;
    call->u.nearest_code = (pl_nearest_code_call){.rows = pl_shape_rows(z),
                                                  .codes = pl_in(g, n, 1)->shape.dim[0],
                                                  .width = pl_shape_last(z),
                                                  .z = pl_address_of(g, a, n->in[0]),
                                                  .codebook = pl_address_of(g, a, n->in[1]),
                                                  .index = pl_address_of(g, a, n->out[0]),
                                                  .code = pl_address_of(g, a, n->out[1]),
                                                  .type = pl_real_of(g, n->in[0])};
}
static uint64_t workspace_nearest_code(const pl_call *c, pl_team team)
{
    return pl_nearest_code_workspace_bytes(&c->u.nearest_code, team);
}
static void exec_nearest_code(const pl_call *c, pl_team team)
{
    pl_nearest_code_exec(&c->u.nearest_code, c->workspace, team);
}
const pl_binding pl_binding_NEAREST_CODE = {bind_nearest_code, workspace_nearest_code, exec_nearest_code};

static void bind_code_sum(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *z = &pl_in(g, n, 1)->shape;
    const pl_value *counted = pl_in(g, n, 3);
    call->u.code_sum = (pl_code_sum_call){.rows = pl_shape_rows(z),
                                          .rows_of_sample = pl_shape_rows(z) / z->dim[0],
                                          .codes = pl_in(g, n, 2)->shape.dim[0],
                                          .width = pl_shape_last(z),
                                          .index = pl_address_of(g, a, n->in[0]),
                                          .z = pl_address_of(g, a, n->in[1]),
                                          .counted = pl_address_of(g, a, n->in[3]),
                                          .counted_stride = counted ? counted->stride[0] : 0,
                                          .sums = pl_address_of(g, a, n->out[0]),
                                          .type = pl_real_of(g, n->in[1])};
}
static void exec_code_sum(const pl_call *c, pl_team team) { pl_code_sum_exec(&c->u.code_sum, team); }
const pl_binding pl_binding_CODE_SUM = {bind_code_sum, NULL, exec_code_sum};

static void bind_code_update(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *codes = &pl_in(g, n, 1)->shape;
    call->u.code_update = (pl_code_update_call){.codes = codes->dim[0],
                                                .width = codes->dim[1],
                                                .rate = n->attr[0].f,
                                                .eps = n->attr[1].f,
                                                .sums = pl_address_of(g, a, n->out[0]),
                                                .codebook = pl_address_of(g, a, n->out[1]),
                                                .sizes = pl_address_of(g, a, n->out[2]),
                                                .averages = pl_address_of(g, a, n->out[3])};
}
static void exec_code_update(const pl_call *c, pl_team team) { pl_code_update_exec(&c->u.code_update, team); }
const pl_binding pl_binding_CODE_UPDATE = {bind_code_update, NULL, exec_code_update};

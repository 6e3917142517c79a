/* What a batch carries from step to step, and codebooks. */
#include "backend/backend.h"
#include "ir/op.h"

static pl_carry_call carry_of(const pl_graph *g, const pl_addresses *a, pl_id state, pl_id x, pl_id first_sample)
{
    const int64_t samples = g->value[x].shape.dim[0];
    return (pl_carry_call){.places = g->value[state].shape.dim[0],
                           .samples = samples,
                           .row_bytes = (int64_t)(pl_value_bytes(g, x) / (uint64_t)samples),
                           .first_sample = pl_address_of(g, a, first_sample),
                           .x = pl_address_of(g, a, x),
                           .state = pl_address_of(g, a, state)};
}

static void bind_carry_read(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.carry = carry_of(g, a, n->carry_read.state, n->carry_read.fresh, n->carry_read.first_sample);
    call->u.carry.done = pl_address_of(g, a, n->carry_read.done);
    call->u.carry.y = pl_address_of(g, a, n->carry_read.y);
    call->u.carry.below = n->carry_read.below;
}
static void exec_carry_read(const pl_call *c, pl_team team) { pl_carry_read_exec(&c->u.carry, team); }
const pl_binding pl_binding_CARRY_READ = {bind_carry_read, NULL, exec_carry_read};

static void bind_carry_write(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.carry = carry_of(g, a, n->carry_write.state, n->carry_write.x, n->carry_write.first_sample);
}
static void exec_carry_write(const pl_call *c, pl_team team) { pl_carry_write_exec(&c->u.carry, team); }
const pl_binding pl_binding_CARRY_WRITE = {bind_carry_write, NULL, exec_carry_write};

static void bind_halt(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.halt = (pl_halt_call){.places = g->value[n->halt.done].shape.dim[0],
                                  .samples = g->value[n->halt.q].shape.dim[0],
                                  .limit = n->halt.limit,
                                  .exploration = (float)n->halt.exploration,
                                  .seed = (uint64_t)n->halt.seed,
                                  .stream = (uint64_t)n->halt.stream,
                                  .step = pl_address_of(g, a, n->halt.step),
                                  .first_sample = pl_address_of(g, a, n->halt.first_sample),
                                  .q = pl_address_of(g, a, n->halt.q),
                                  .done = pl_address_of(g, a, n->halt.done_new),
                                  .type = pl_real_of(g, n->halt.q)};
}
static void exec_halt(const pl_call *c, pl_team team) { pl_halt_exec(&c->u.halt, team); }
const pl_binding pl_binding_HALT = {bind_halt, NULL, exec_halt};

static void bind_ramp(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.ramp = (pl_ramp_call){.high = n->ramp.high,
                                  .first = n->ramp.first,
                                  .second = n->ramp.second,
                                  .last = n->ramp.last,
                                  .step = pl_address_of(g, a, n->ramp.step),
                                  .y = pl_address_of(g, a, n->ramp.state_new)};
}
static void exec_ramp(const pl_call *c, pl_team team) { pl_ramp_exec(&c->u.ramp, team); }
const pl_binding pl_binding_RAMP = {bind_ramp, NULL, exec_ramp};

/* ---- codebooks ---- */

static void bind_nearest_code(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *z = &g->value[n->nearest_code.z].shape;
    call->u.nearest_code = (pl_nearest_code_call){.rows = pl_shape_rows(z),
                                                  .codes = g->value[n->nearest_code.codebook].shape.dim[0],
                                                  .width = pl_shape_last(z),
                                                  .z = pl_address_of(g, a, n->nearest_code.z),
                                                  .codebook = pl_address_of(g, a, n->nearest_code.codebook),
                                                  .index = pl_address_of(g, a, n->nearest_code.index),
                                                  .code = pl_address_of(g, a, n->nearest_code.code),
                                                  .type = pl_real_of(g, n->nearest_code.z)};
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
    const pl_shape *z = &g->value[n->code_sum.z].shape;
    const pl_value *counted = pl_value_at(g, n->code_sum.counted);
    call->u.code_sum = (pl_code_sum_call){.rows = pl_shape_rows(z),
                                          .rows_of_sample = pl_shape_rows(z) / z->dim[0],
                                          .codes = g->value[n->code_sum.sums].shape.dim[0],
                                          .width = pl_shape_last(z),
                                          .index = pl_address_of(g, a, n->code_sum.index),
                                          .z = pl_address_of(g, a, n->code_sum.z),
                                          .counted = pl_address_of(g, a, n->code_sum.counted),
                                          .counted_stride = counted ? counted->stride[0] : 0,
                                          .sums = pl_address_of(g, a, n->code_sum.sums_new),
                                          .type = pl_real_of(g, n->code_sum.z)};
}
static void exec_code_sum(const pl_call *c, pl_team team) { pl_code_sum_exec(&c->u.code_sum, team); }
const pl_binding pl_binding_CODE_SUM = {bind_code_sum, NULL, exec_code_sum};

static void bind_code_update(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *codes = &g->value[n->code_update.codebook].shape;
    call->u.code_update = (pl_code_update_call){.codes = codes->dim[0],
                                                .width = codes->dim[1],
                                                .rate = n->code_update.rate,
                                                .eps = n->code_update.eps,
                                                .sums = pl_address_of(g, a, n->code_update.sums_new),
                                                .codebook = pl_address_of(g, a, n->code_update.codebook_new),
                                                .sizes = pl_address_of(g, a, n->code_update.sizes_new),
                                                .averages = pl_address_of(g, a, n->code_update.averages_new)};
}
static void exec_code_update(const pl_call *c, pl_team team) { pl_code_update_exec(&c->u.code_update, team); }
const pl_binding pl_binding_CODE_UPDATE = {bind_code_update, NULL, exec_code_update};

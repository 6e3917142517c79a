/* What a batch carries from step to step: a row of numbers for each of its S places, in which a sample may stay several
 * steps (deep supervision, Jolicoeur-Martineau 2025). Sample number n of the data stands in place n mod S, S being the
 * batch; rows of a micro-batch past the last place are padding and are not kept. `done` counts how many steps the
 * sample in a place has had; 0: the place is free, and the next sample of the data takes it.
 *
 * What is carried is detached: no gradient passes from one step to the step before. */
#include "ir/op.h"

/* [S,...] and [samples,...]: as many numbers a row. */
static pl_status expect_places(const pl_graph *g, const pl_node *n, const pl_id *state, const pl_id *rows,
                               pl_error *err)
{
    const pl_shape *s = &g->value[*state].shape, *x = &g->value[*rows].shape;
    if (x->rank < 1 || x->symbolic & ~1u || pl_shape_elems(x) == 0)
        return pl_fail_operand(g, n, rows, "[samples, ...]", err);
    bool fits = s->rank == x->rank && !s->symbolic && s->dim[0] >= 1;
    for (uint32_t i = 1; fits && i < x->rank; i++) fits = s->dim[i] == x->dim[i];
    return fits ? PL_OK : pl_fail_operand(g, n, state, "[places, ...], a row like those of the samples for each", err);
}

static bool is_count(const pl_value *done, int64_t places)
{
    return done->shape.rank == 1 && !done->shape.symbolic && (places < 0 || done->shape.dim[0] == places);
}

/* ---- carry_read: state [S,...], fresh [samples,...], done i32 [S], first sample → y as fresh ----
 * The row of the place if that is taken, else the fresh one. below: for ids, how many there are; a state's number that
 * is neither an id nor −1 becomes −1, so that no file can make a reader of ids leave its table. */
static pl_status shape_carry_read(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_carry_read_args *a = &n->carry_read;
    const pl_value *state = &g->value[a->state], *fresh = &g->value[a->fresh];
    PL_TRY(expect_places(g, n, &a->state, &a->fresh, err));
    if (state->dtype != fresh->dtype) return pl_fail_operand(g, n, &a->state, "of the type of the fresh rows", err);
    if (a->below < 0 || (a->below && state->dtype != PL_DTYPE_I32))
        return pl_fail(err, PL_E_INTERNAL, "carry_read in %s: only ids, i32, are below a number", n->scope);
    if (!is_count(&g->value[a->done], state->shape.dim[0])) return pl_fail_operand(g, n, &a->done, "i32 [places]", err);
    *out = pl_out_like(fresh);
    return PL_OK;
}

/* Reads as many bytes as it writes: the samples' rows. */
_Static_assert(offsetof(pl_carry_read_args, fresh) == offsetof(pl_carry_write_args, x), "one rule reads both");

static pl_cost cost_carry(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(&g->value[n->carry_read.fresh])};
}

const pl_op_rule pl_rule_CARRY_READ = {shape_carry_read, NULL, cost_carry};

/* ---- carry_write: state [S,...], x [samples,...], first sample ---- */
static pl_status shape_carry_write(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_carry_write_args *a = &n->carry_write;
    (void)out;
    PL_TRY(expect_places(g, n, &a->state, &a->x, err));
    if (g->value[a->state].dtype == g->value[a->x].dtype) return PL_OK;
    return pl_fail_operand(g, n, &a->x, "of the type of the state", err);
}

const pl_op_rule pl_rule_CARRY_WRITE = {shape_carry_write, NULL, cost_carry};

/* ---- halt: done i32 [S], q [samples,1], step, first sample ----
 * One more step is done. A sample is finished, and its place free, after `limit` steps, or sooner where q > 0; but with
 * probability `exploration` not before a number of steps that is drawn from 2 … limit, anew at each step. */
static pl_status shape_halt(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_halt_args *a = &n->halt;
    const pl_value *done = &g->value[a->done];
    const pl_shape *q = &g->value[a->q].shape;
    (void)out;
    if (!is_count(done, -1) || done->shape.dim[0] < 1) return pl_fail_operand(g, n, &a->done, "i32 [places]", err);
    if (q->rank < 1 || q->symbolic & ~1u || (int64_t)pl_shape_elems(q) != q->dim[0])
        return pl_fail_operand(g, n, &a->q, "one logit a sample", err);
    if (a->limit >= 1 && a->limit <= INT32_MAX && a->exploration >= 0 && a->exploration <= 1) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "halt in %s: a limit of at least 1, and a probability in [0, 1]", n->scope);
}

static pl_cost cost_halt(const pl_graph *g, const pl_node *n)
{
    const double samples = pl_value_elems_f(&g->value[n->halt.q]);
    return (pl_cost){20 * samples, 12 * samples};
}

const pl_op_rule pl_rule_HALT = {shape_halt, NULL, cost_halt};

/* ---- ramp: state f32 [1], step → state' = high while step ≤ first, 0 while step ≤ second, then straight from high to
 * −high at `last`, and there it stays ---- */
static pl_status shape_ramp(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_ramp_args *a = &n->ramp;
    (void)g, (void)out;
    if (a->first >= 0 && a->second >= a->first && a->last > a->second) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "ramp in %s: first, second and last are not in their order", n->scope);
}

static pl_cost cost_ramp(const pl_graph *g, const pl_node *n)
{
    (void)g, (void)n;
    return (pl_cost){4, 12};
}

const pl_op_rule pl_rule_RAMP = {shape_ramp, NULL, cost_ramp};

/* Dynamic loss scaling as nodes (Micikevicius et al. 2018): the gradient of the loss is multiplied by S, so that small
 * gradients stay above f16's smallest number, and the update divides by S again.
 *
 *   linear_ce_bwd(…, S)                        all gradients of the step are S times too large
 *   sum of squares → clip_scale(sum, S, skipped)   clips by the norm of gradient/S; gives 1/S with it, and "finite",
 *                                              and counts the steps that are not
 *   adamw(…, scale, skipped) when finite       an overflow anywhere shows in the sum: the update is skipped, and the
 *                                              correction of the moments does not count it (as GradScaler has it);
 *                                              the averages of the weights stay, too
 *   loss_scale(finite, S, good)                overflow: S/2 (never below 1); no overflow in 2000 steps: 2·S
 *
 * S and the counts are state, saved with the optimizer's. Factors of two: scaling itself rounds nothing.
 * A program without an update gives its gradients out: S is then an input, and whoever reads them divides. */
#include "ir/inputs.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

enum { GROWTH_STEPS = 2000 };

typedef struct scaler {
    pl_graph *g;
    pl_id program;
    pl_builder b;
    pl_id scale, good, skipped;
    pl_id clipped, finite, counted; /* outputs of clip_scale; `skipped` goes in */
} scaler;

static bool is_of(const scaler *s, const pl_node *n)
{
    return !n->dead && pl_region_program(s->g, n->region) == s->program;
}

static bool is_optimizer(const scaler *s, const pl_node *n) { return pl_op_rule_of(n->op)->optimizer && is_of(s, n); }

/* The first node of the program that updates a weight; PL_NONE when there is none. */
static pl_id find_update(const scaler *s)
{
    for (size_t i = 0; i < s->g->node_count; i++)
        if (is_optimizer(s, &s->g->node[i])) return (pl_id)i;
    return PL_NONE;
}

static pl_id find_clip(const scaler *s)
{
    for (size_t i = 0; i < s->g->node_count; i++)
        if (s->g->node[i].op == PL_OP_CLIP_SCALE && is_of(s, &s->g->node[i])) return (pl_id)i;
    return PL_NONE;
}

/* A state and its first content: a node of the init program, where there is one. */
static pl_id add_state(scaler *s, pl_dtype dtype, double first, const char *name)
{
    pl_id value = pl_build_persistent(&s->b, PL_ROLE_STATE, dtype, pl_shape_of(1, (int64_t)1), "%s", name);
    const pl_id init = pl_graph_find_program(s->g, "init");
    pl_fill_args fill = pl_fill_none;
    if (init == PL_NONE || s->b.status != PL_OK) return value;
    pl_builder b = pl_builder_begin(s->g, init, s->b.err);
    pl_builder_enter(&b, "loss_scale");
    fill.y = value, fill.value = first;
    pl_build_fill(&b, &fill);
    s->b.status = b.status;
    return value;
}

static void scale_losses(scaler *s)
{
    for (size_t i = 0; i < s->g->node_count; i++) {
        int scale = pl_op_rule_of(s->g->node[i].op)->loss_scale;
        if (scale && is_of(s, &s->g->node[i])) s->g->node[i].in[scale] = s->scale;
    }
}

/* Without clipping nobody has summed squares yet. The gradients are what the optimizer's nodes read. */
static void add_clip_scale(scaler *s, size_t nodes)
{
    pl_graph *g = s->g;
    pl_clip_scale_args clip = pl_clip_scale_none;
    pl_fill_args zero = pl_fill_none;
    zero.y = pl_build_temporary(&s->b, PL_ROLE_STATE, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "grad_norm_squared");
    clip.sum = pl_build_fill(&s->b, &zero);
    for (size_t i = 0; i < nodes && s->b.status == PL_OK; i++) {
        if (!is_optimizer(s, &g->node[i])) continue;
        pl_sum_squares_args squares = pl_sum_squares_none;
        squares.x = g->node[i].adamw.gradient, squares.sum = clip.sum;
        clip.sum = pl_build_sum_squares(&s->b, &squares);
    }
    clip.loss_scale = s->scale, clip.skipped = s->skipped;
    pl_build_clip_scale(&s->b, &clip);
    s->clipped = clip.scale, s->finite = clip.finite, s->counted = clip.skipped_new;
}

static void find_clip_scale(scaler *s, pl_id clip)
{
    pl_clip_scale_args *a = &s->g->node[clip].clip_scale;
    a->loss_scale = s->scale;
    s->clipped = a->scale, s->finite = a->finite, s->counted = a->skipped_new;
}

static void scale_updates(scaler *s, size_t nodes)
{
    for (size_t i = 0; i < nodes; i++) {
        pl_node *n = &s->g->node[i];
        if (n->op == PL_OP_EMA && is_of(s, n)) n->predicate = s->finite;
        if (!is_optimizer(s, n)) continue;
        n->adamw.scale = s->clipped;
        n->adamw.skipped = s->counted;
        n->predicate = s->finite;
    }
}

/* [0, first) [nodes, summed) [first, nodes) [summed, end): the sums before the first update, the rest behind. */
static pl_status order(const scaler *s, size_t first, size_t nodes, size_t summed, pl_error *err)
{
    const size_t pieces[4][2] = {{0, first}, {nodes, summed}, {first, nodes}, {summed, s->g->node_count}};
    size_t at = 0;
    pl_id *sorted = pl_alloc(s->g->node_count + 1, sizeof *sorted);
    if (!sorted) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (int p = 0; p < 4; p++)
        for (size_t i = pieces[p][0]; i < pieces[p][1]; i++) sorted[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(s->g, sorted, err);
    pl_free(sorted);
    return status == PL_OK ? pl_graph_group_programs(s->g, err) : status;
}

static pl_status add_update(scaler *s, pl_id first, pl_error *err)
{
    size_t nodes = s->g->node_count;
    pl_id clip = find_clip(s);
    s->b.phase = PL_PHASE_UPDATE;
    if (clip == PL_NONE)
        add_clip_scale(s, nodes);
    else
        find_clip_scale(s, clip);
    PL_TRY(s->b.status);
    size_t summed = s->g->node_count;
    scale_updates(s, nodes);
    pl_loss_scale_args a = pl_loss_scale_none;
    a.finite = s->finite, a.loss_scale = s->scale, a.good_steps = s->good, a.growth_steps = GROWTH_STEPS;
    pl_build_loss_scale(&s->b, &a);
    PL_TRY(s->b.status);
    return order(s, first, nodes, summed, err);
}

pl_status pl_rewrite_loss_scale(pl_graph *g, pl_id program, pl_error *err)
{
    scaler s = {.g = g, .program = program, .b = pl_builder_begin(g, program, err)};
    pl_id first = find_update(&s);
    pl_builder_enter(&s.b, "loss_scale");
    if (first == PL_NONE) {
        s.scale = pl_build_persistent(&s.b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(1, (int64_t)1), "%s",
                                      pl_input_name(PL_INPUT_LOSS_SCALE));
        if (s.b.status == PL_OK) scale_losses(&s);
        return s.b.status;
    }
    s.scale = add_state(&s, PL_DTYPE_F32, PL_LOSS_SCALE_FIRST, "loss_scale");
    s.good = add_state(&s, PL_DTYPE_I32, 0, "loss_scale.good_steps");
    s.skipped = pl_graph_find_value(g, PL_SKIPPED_STEPS);
    PL_TRY(s.b.status);
    scale_losses(&s);
    return add_update(&s, first, err);
}

/* Reverse mode over the graph: the nodes of the forward pass are visited from last to first and each operator's rule,
 * in ir/, adds the nodes of its derivative. The driver knows by name only what it adds itself: zeros, sums and what
 * finishes these.
 *
 * A weight that several nodes read (tied embeddings) has an accumulator for each of them, which are added to the first
 * when the last micro-batch is done. In one accumulator their terms would take turns, micro-batch by micro-batch, and
 * its last bits would depend on the size of these. A program that mixes the samples of a batch sees all of them at
 * once: there is one accumulator, to which the readers add one after the other.
 *
 * Where an operator sees a weight as something else that is made of it (signs), what is accumulated is the gradient of
 * that, and one node behind the sums makes it the weight's.
 *
 * A frozen weight has none. What only such weights and data have made needs no gradient, so nothing computes it.
 *
 * A loss may have several terms, each node adding its own to the same value. Backward nodes that take the place of such
 * nodes come in the opposite order, so the versions of the loss are dealt out anew: the first node in the new order
 * takes the first. */
#include "grad/differentiate.h"

#include "ir/properties.h"
#include "ir/op.h"

typedef struct finished { /* the last version of an accumulator */
    pl_id weight, version;
} finished;

typedef struct driver {
    pl_gradient grad;
    uint32_t *readers; /* [values] nodes of the program that read it and pass a gradient to it */
    bool *reached;     /* [values] of roots: something on the way from it to the loss passes a gradient */
    bool *wanted;      /* [values] of roots: as in pl_gradient */
    pl_id *waiting; /* [values] of a weight: the accumulator of the next reader to be visited; the others follow it */
    bool whole;     /* the batch is never cut into micro-batches */
    finished *finished;
    size_t finished_count, finished_room;
    pl_id *losses; /* [loss_count + 1] the versions of the loss, in their order; the first is what comes in */
    size_t loss_count;
} driver;

static bool is_of(const pl_graph *g, const pl_node *n, pl_id program)
{
    return !n->dead && pl_region_program(g, n->region) == program;
}

/* Will a gradient reach an output of this node? */
static bool is_reached(const pl_graph *g, const pl_node *n, const bool *reached)
{
    if (pl_op_rule_of(n->op)->loss) return true;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE && reached[pl_value_root(g, n->out[k])]) return true;
    return false;
}

/* How many of the program's nodes read each value and pass a gradient to it: not those whose results are detached. What
 * is read by none but such has one reader, and a gradient that stays zero. */
static void count_readers(const pl_graph *g, pl_id program, uint32_t *readers, bool *reached)
{
    for (size_t i = g->node_count; i-- > 0;) {
        const pl_node *n = &g->node[i];
        if (!is_of(g, n, program) || !pl_op_rule_of(n->op)->gradient || !is_reached(g, n, reached)) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (n->in[k] != PL_NONE) readers[n->in[k]]++, reached[pl_value_root(g, n->in[k])] = true;
    }
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX && is_of(g, &g->node[i], program); k++)
            if (g->node[i].in[k] != PL_NONE && readers[g->node[i].in[k]] == 0) readers[g->node[i].in[k]] = 1;
}

/* A window on a weight would be trained by nobody. */
static pl_status check_windows(const pl_graph *g, const uint32_t *readers, pl_error *err)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_id root = pl_value_root(g, (pl_id)i);
        bool window = g->value[i].view_of != PL_NONE && pl_value_is_trained(g, root);
        if (window && readers[i])
            return pl_fail(err, PL_E_UNSUPPORTED, "the weight %s is read through a window, which has no gradient rule",
                           g->value[root].name);
    }
    return PL_OK;
}

static bool reads_wanted(const driver *d, const pl_graph *g, const pl_node *n)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && d->wanted[pl_value_root(g, n->in[k])]) return true;
    return false;
}

/* What a trained weight has a part in. Below that the backward pass has no nodes. */
static void find_wanted(driver *d, const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->value_count; i++)
        d->wanted[i] = pl_value_is_trained(g, (pl_id)i) && pl_value_root(g, (pl_id)i) == i;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        bool passes = is_of(g, n, program) && pl_op_rule_of(n->op)->gradient;
        if (!passes || !reads_wanted(d, g, n)) continue;
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (n->out[k] != PL_NONE) d->wanted[pl_value_root(g, n->out[k])] = true;
    }
}

static pl_id add_zeroed(pl_builder *b, pl_id value)
{
    pl_fill_args fill = pl_fill_none;
    fill.y = value;
    pl_build_fill(b, &fill);
    return value;
}

/* For each weight that the program reads a zeroed gradient, and one after the other the sums of its further readers. */
static pl_status add_accumulators(driver *d)
{
    pl_builder *b = d->grad.b;
    pl_graph *g = b->graph;
    for (size_t i = 0; i < d->grad.count && b->status == PL_OK; i++) {
        if (!pl_value_is_trained(g, (pl_id)i) || !d->readers[i]) continue;
        const char *name = g->value[i].name;
        pl_shape shape = g->value[i].shape;
        pl_builder_at_value(b, (pl_id)i);
        d->waiting[i] = add_zeroed(b, pl_build_temporary(b, PL_ROLE_GRADIENT, PL_DTYPE_F32, shape, "grad.%s", name));
        pl_build_belongs(b, d->waiting[i], (pl_id)i);
        for (uint32_t k = 1; k < d->readers[i] && !d->whole; k++)
            add_zeroed(b, pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, shape, "sum.%u.%s", k + 1, name));
        d->grad.accumulator[i] = d->waiting[i];
    }
    b->scope[0] = 0;
    return b->status;
}

/* The next reader of a weight whose accumulator has just been written gets the next one. */
static pl_status finish_accumulators(driver *d, const pl_node *n)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        pl_id weight = n->in[k] < d->grad.count ? n->in[k] : PL_NONE;
        if (weight == PL_NONE || d->grad.accumulator[weight] == d->waiting[weight]) continue;
        if (d->whole) {
            d->waiting[weight] = d->grad.accumulator[weight];
            continue;
        }
        if (pl_grow(&d->finished, &d->finished_room, d->finished_count, sizeof *d->finished))
            return pl_fail(d->grad.b->err, PL_E_NOMEM, "no memory to differentiate the graph");
        d->finished[d->finished_count++] = (finished){weight, d->grad.accumulator[weight]};
        d->grad.accumulator[weight] = ++d->waiting[weight];
    }
    return PL_OK;
}

static pl_status visit(driver *d, pl_id id, pl_id program)
{
    pl_gradient *grad = &d->grad;
    pl_graph *g = grad->b->graph;
    pl_node n = g->node[id]; /* a copy: the array may move while rules add to it */
    const pl_op_rule *rule = pl_op_rule_of(n.op);
    if (!is_of(g, &n, program) || !rule->gradient) return PL_OK;
    pl_builder_at_node(grad->b, &n);
    grad->replaced = false;
    PL_TRY(rule->gradient(grad, &n));
    if (grad->replaced) grad->b->graph->node[id].dead = true;
    return grad->b->status == PL_OK ? finish_accumulators(d, &n) : grad->b->status;
}

/* Behind everything else of the program: total += the sum of a further reader. */
static pl_status add_sums(driver *d, pl_id program)
{
    pl_builder *b = d->grad.b;
    b->region = program;
    for (size_t i = 0; i < d->finished_count && b->status == PL_OK; i++) {
        pl_add_to_args add = pl_add_to_none;
        pl_id weight = d->finished[i].weight, total = PL_NONE;
        for (size_t k = 0; k < i; k++)
            if (d->finished[k].weight == weight) total = d->finished[k].version;
        if (total == PL_NONE) continue;
        pl_builder_at_value(b, weight);
        add.x = d->finished[i].version, add.sum = total;
        d->finished[i].version = pl_build_add_to(b, &add);
    }
    return b->status;
}

/* The last version of a weight's gradient, PL_NONE where nothing came in. */
static pl_id last_version(const driver *d, pl_id weight)
{
    if (d->whole) return d->grad.accumulator[weight];
    for (size_t i = d->finished_count; i-- > 0;)
        if (d->finished[i].weight == weight) return d->finished[i].version;
    return PL_NONE;
}

/* Behind the sums. */
static pl_status finish_gradients(driver *d, pl_id program)
{
    pl_builder *b = d->grad.b;
    b->region = program;
    for (size_t i = 0; i < d->grad.count && b->status == PL_OK; i++) {
        const pl_id sum = last_version(d, (pl_id)i);
        if (!d->grad.finish[i] || sum == PL_NONE) continue;
        pl_builder_at_value(b, (pl_id)i);
        d->grad.finish[i](b, sum, (pl_id)i);
    }
    return b->status;
}

/* The zero nodes were added behind the forward nodes; they belong before everything else of their program. */
static pl_status zero_first(pl_graph *g, size_t first_zero, size_t zeros, pl_error *err)
{
    pl_id *order = pl_alloc(g->node_count, sizeof *order), at = 0;
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < zeros; i++) order[at++] = (pl_id)(first_zero + i);
    for (size_t i = 0; i < g->node_count; i++)
        if (i < first_zero || i >= first_zero + zeros) order[at++] = (pl_id)i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status == PL_OK ? pl_graph_group_programs(g, err) : status;
}

static bool is_loss(const pl_graph *g, const pl_node *n, pl_id program)
{
    return is_of(g, n, program) && pl_op_rule_of(n->op)->loss;
}

/* One value must tell what is made smaller. */
static pl_status check_loss(const pl_graph *g, pl_id program, pl_error *err)
{
    pl_id loss = pl_graph_find_loss(g, program);
    if (loss == PL_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED, "the program %s has no loss to differentiate", g->region[program].name);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!is_loss(g, n, program)) continue;
        pl_id other = pl_value_root(g, pl_node_result(n));
        if (other != loss)
            return pl_fail(err, PL_E_UNSUPPORTED, "the program %s has two losses, %s and %s; add both to one value",
                           g->region[program].name, g->value[loss].name, g->value[other].name);
    }
    return PL_OK;
}

static void note_losses(driver *d, const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!is_loss(g, n, program)) continue;
        if (d->loss_count == 0) d->losses[0] = n->in[pl_node_alias(n, 0).update];
        d->losses[++d->loss_count] = pl_node_result(n);
    }
}

static void deal_out_losses(const driver *d, pl_graph *g, pl_id program)
{
    size_t k = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        pl_node *n = &g->node[i];
        if (!is_loss(g, n, program)) continue;
        n->in[pl_node_alias(n, 0).update] = d->losses[k++];
        *n->out = d->losses[k];
        g->value[pl_node_result(n)].producer = (pl_id)i;
    }
}

pl_status pl_grad_differentiate(pl_graph *g, pl_id program, pl_error *err)
{
    size_t values = g->value_count, nodes = g->node_count;
    pl_status status = PL_OK;
    pl_builder b = pl_builder_begin(g, program, err);
    driver d = {.grad = {.b = &b, .count = values}};
    d.grad.of = pl_alloc(values, sizeof *d.grad.of);
    d.grad.accumulator = pl_alloc(values, sizeof *d.grad.accumulator);
    d.waiting = pl_alloc(values, sizeof *d.waiting);
    d.grad.finish = pl_alloc(values, sizeof *d.grad.finish);
    d.readers = pl_alloc(values + 1, sizeof *d.readers);
    d.reached = pl_alloc(values + 1, sizeof *d.reached);
    d.grad.wanted = d.wanted = pl_alloc(values + 1, sizeof *d.wanted);
    d.losses = pl_alloc(nodes + 1, sizeof *d.losses);
    PL_TRY_DONE(check_loss(g, program, err));
    if (!d.losses || !d.grad.of || !d.grad.accumulator || !d.waiting || !d.grad.finish || !d.readers || !d.reached ||
        !d.wanted)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to differentiate the graph"));
    note_losses(&d, g, program);
    d.whole = pl_graph_find_mixer(g, program) != PL_NONE;
    count_readers(g, program, d.readers, d.reached);
    find_wanted(&d, g, program);
    PL_TRY_DONE(check_windows(g, d.readers, err));
    for (size_t i = 0; i < values; i++) d.grad.of[i] = d.grad.accumulator[i] = d.waiting[i] = PL_NONE;
    PL_TRY_DONE(add_accumulators(&d));
    size_t zeros = g->node_count - nodes;
    b.phase = PL_PHASE_BACKWARD;
    for (size_t i = nodes; i-- > 0;) PL_TRY_DONE(visit(&d, (pl_id)i, program));
    deal_out_losses(&d, g, program);
    PL_TRY_DONE(add_sums(&d, program));
    PL_TRY_DONE(finish_gradients(&d, program));
    PL_TRY_DONE(zero_first(g, nodes, zeros, err));
    pl_graph_sweep(g);
done:
    pl_free(d.grad.of);
    pl_free(d.grad.accumulator);
    pl_free(d.waiting);
    pl_free(d.grad.finish);
    pl_free(d.readers);
    pl_free(d.reached);
    pl_free(d.wanted);
    pl_free(d.finished);
    pl_free(d.losses);
    return status;
}

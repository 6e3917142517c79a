/* Nodes keep their ids until the end, where all of them move at once: `order` and `place` say meanwhile in which order
 * they come. What is moved is moved a few places, within its layer, so that a pass costs as much as the graph is long.
 */
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct fuser {
    pl_graph *g;
    pl_readers readers;
    pl_id *order; /* [nodes] which node comes i-th */
    pl_id *place; /* [nodes] its inverse */
    pl_id *moved; /* [nodes] scratch */
} fuser;

/* y = linear(x); a = act(y)  →  y, a = linear(x, act) */
static bool is_epilogue(const pl_graph *g, const pl_node *act)
{
    pl_id producer = g->value[act->activation.x].producer;
    if (producer == PL_NONE) return false;
    const pl_node *linear = &g->node[producer];
    bool plain = linear->op == PL_OP_LINEAR && !linear->dead && linear->linear.act == PL_ACT_NONE;
    if (!plain || linear->phase != act->phase || linear->region != act->region) return false;
    if (linear->linear.act_y != PL_NONE || linear->predicate != act->predicate) return false;
    return g->value[linear->linear.y].update_of == PL_NONE && g->value[act->activation.y].update_of == PL_NONE;
}

static void fuse_forward(pl_graph *g, pl_node *act)
{
    if (!is_epilogue(g, act)) return;
    pl_id producer = g->value[act->activation.x].producer;
    pl_node *linear = &g->node[producer];
    linear->linear.act = act->activation.act;
    linear->linear.act_y = act->activation.y;
    act->dead = true;
    g->value[linear->linear.act_y].producer = producer;
}

/* The same activation of u made again in the backward pass, if there is one: the first. */
static pl_id find_again(const fuser *f, const pl_node *bwd, pl_id before)
{
    pl_id best = PL_NONE;
    for (const pl_reader *r = pl_readers_first(&f->readers, bwd->activation_bwd.x); r;
         r = pl_readers_next(&f->readers, r)) {
        const pl_node *n = &f->g->node[r->node];
        if (n->op == PL_OP_ACTIVATION && !n->dead && n->phase == PL_PHASE_BACKWARD &&
            n->activation.x == bwd->activation_bwd.x && n->activation.act == bwd->activation_bwd.act &&
            n->region == bwd->region && f->place[r->node] < f->place[before] &&
            (best == PL_NONE || f->place[r->node] < f->place[best]))
            best = r->node;
    }
    return best;
}

static bool is_read_between(const fuser *f, pl_id value, pl_id after, pl_id last)
{
    for (const pl_reader *r = pl_readers_first(&f->readers, value); r; r = pl_readers_next(&f->readers, r))
        if (f->place[r->node] > f->place[after] && f->place[r->node] <= f->place[last] &&
            pl_node_reads(&f->g->node[r->node], value))
            return true;
    return false;
}

/* A weight's gradient that reads `made` may wait until after node `last`, unless something up to there reads what it
 * gives (a second gradient of the same weight). */
static bool may_wait(const fuser *f, pl_id id, pl_id last, pl_id made)
{
    const pl_node *n = &f->g->node[id];
    if (n->op != PL_OP_LINEAR_DW || n->linear_dw.x != made || n->linear_dw.dy == made) return false;
    return !is_read_between(f, n->linear_dw.dweight_new, id, last);
}

static bool all_may_wait(const fuser *f, pl_id after, pl_id last, pl_id made)
{
    for (const pl_reader *r = pl_readers_first(&f->readers, made); r; r = pl_readers_next(&f->readers, r)) {
        bool between = f->place[r->node] > f->place[after] && f->place[r->node] <= f->place[last];
        if (between && pl_node_reads(&f->g->node[r->node], made) &&
            (r->node == last || !may_wait(f, r->node, last, made)))
            return false;
    }
    return true;
}

/* Moves the readers of `made` from `begin` up to `last` behind `last`. */
static void move_readers(fuser *f, pl_id begin, pl_id last, pl_id made)
{
    pl_id from = f->place[begin], to = f->place[last] + 1, at = from;
    for (int late = 0; late < 2; late++)
        for (pl_id i = from; i < to; i++) {
            const pl_node *n = &f->g->node[f->order[i]];
            if (pl_node_reads(n, made) == (late == 1)) f->moved[at++] = f->order[i];
        }
    for (pl_id i = from; i < to; i++) {
        f->order[i] = f->moved[i];
        f->place[f->moved[i]] = i;
    }
}

/* d = linear_dx(dy, W); du = act'(u)·d  →  du[, act(u)] = linear_dx(dy, W, u). What reads act(u) between the two must
 * then come after: those readers (the weight's gradient) are moved behind the fused node. u must be there before it. */
static pl_status fuse_backward(fuser *f, pl_id id, pl_error *err)
{
    pl_graph *g = f->g;
    pl_node *bwd = &g->node[id];
    pl_id d = bwd->activation_bwd.dy, producer = g->value[d].producer;
    if (producer == PL_NONE || f->readers.viewed[d] || !pl_readers_have_one(&f->readers, g, d)) return PL_OK;
    pl_node *dx = &g->node[producer];
    if (dx->op != PL_OP_LINEAR_DX || dx->linear_dx.u != PL_NONE || dx->region != bwd->region ||
        f->place[id] < f->place[producer])
        return PL_OK;
    pl_id u_from = g->value[pl_value_root(g, bwd->activation_bwd.x)].producer;
    if (dx->predicate != bwd->predicate || (u_from != PL_NONE && f->place[u_from] >= f->place[producer])) return PL_OK;
    dx->linear_dx.act = bwd->activation_bwd.act;
    dx->linear_dx.u = bwd->activation_bwd.x;
    dx->linear_dx.dx = bwd->activation_bwd.dx;
    g->value[dx->linear_dx.dx].producer = producer;
    PL_TRY(pl_readers_add(&f->readers, dx->linear_dx.u, producer, err));
    bwd->dead = true;
    pl_id again = find_again(f, bwd, id);
    if (again == PL_NONE) return PL_OK;
    if (is_epilogue(g, &g->node[again])) return PL_OK; /* its linear is made again too: act(u) dies before du is born */
    pl_id made = g->node[again].activation.y;
    bool early = f->place[again] < f->place[producer];
    if (early && !all_may_wait(f, again, producer, made)) return PL_OK;
    dx->linear_dx.act_u = made;
    g->value[made].producer = producer;
    g->node[again].dead = true;
    if (early) move_readers(f, again, producer, made);
    return PL_OK;
}

static pl_status init(fuser *f, pl_graph *g, pl_error *err)
{
    *f = (fuser){.g = g};
    f->order = pl_alloc(g->node_count + 1, sizeof *f->order);
    f->place = pl_alloc(g->node_count + 1, sizeof *f->place);
    f->moved = pl_alloc(g->node_count + 1, sizeof *f->moved);
    if (!f->order || !f->place || !f->moved) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (size_t i = 0; i < g->node_count; i++) f->order[i] = f->place[i] = (pl_id)i;
    return pl_readers_init(&f->readers, g, err);
}

static void deinit(fuser *f)
{
    pl_readers_deinit(&f->readers);
    pl_free(f->order);
    pl_free(f->place);
    pl_free(f->moved);
}

pl_status pl_rewrite_fuse(pl_graph *g, pl_error *err)
{
    fuser f;
    pl_status status;
    PL_TRY_DONE(init(&f, g, err));
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_ACTIVATION_BWD && !g->node[i].dead) PL_TRY_DONE(fuse_backward(&f, (pl_id)i, err));
    PL_TRY_DONE(pl_graph_reorder(g, f.order, err));
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_ACTIVATION && !g->node[i].dead) fuse_forward(g, &g->node[i]);
    pl_graph_sweep(g);
done:
    deinit(&f);
    return status;
}

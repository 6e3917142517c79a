/* Sizes are those of the values, as the planner counts: a result counts until its last reader has run. What the
 * rewrites behind this one will do is taken into account where it is certain: between neighbours the second of which
 * may take the first one's storage, or is fused into it, nothing is counted twice; nor where a backward node is the
 * last to read what it may write over. Statistics (outputs beyond the first that are kept) count as always there;
 * weights and gradients, there whatever is decided, with zero bytes. */
#include "recompute_problem.h"

#include "ir/op.h"
#include "rewrite/rewrite.h"

enum { NO_GROUP = UINT32_MAX };

typedef struct grouper {
    recompute_problem *p;
    const pl_graph *g;
    const double *seconds;
    pl_id region;
    bool *may;         /* [nodes] may run again */
    uint32_t *readers; /* [values], roots: nodes of the region that read it, each once */
    uint32_t *writers; /* likewise that write it */
    bool *outside;     /* [values], roots: read or written by another region */
    uint32_t *owner;   /* [values], roots: the group whose size holds it */
    size_t dep_count;
} grouper;

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory to plan what to recompute"); }

static bool is_in(const grouper *c, pl_id node)
{
    return node < c->g->node_count && !c->g->node[node].dead && c->g->node[node].region == c->region;
}

static bool reads(const grouper *c, const pl_node *n, pl_id root)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && pl_value_root(c->g, n->in[k]) == root) return true;
    return false;
}

static void count_uses(grouper *c)
{
    for (pl_id i = 0; i < c->g->node_count; i++) {
        const pl_node *n = &c->g->node[i];
        if (n->dead) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            if (n->in[k] == PL_NONE) continue;
            pl_id root = pl_value_root(c->g, n->in[k]);
            bool again = false;
            for (int j = 0; j < k; j++) again |= n->in[j] != PL_NONE && pl_value_root(c->g, n->in[j]) == root;
            c->readers[root] += !again && is_in(c, i);
            c->outside[root] |= !is_in(c, i);
        }
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            if (n->out[k] == PL_NONE) continue;
            c->writers[pl_value_root(c->g, n->out[k])] += is_in(c, i);
            c->outside[pl_value_root(c->g, n->out[k])] |= !is_in(c, i);
        }
    }
}

/* Bytes that come and go with the decision: not weights, gradients and what else stays in any case, nor what goes from
 * region to region, which recompute_regions.c counts. */
static uint64_t bytes_of(const grouper *c, pl_id root)
{
    const pl_value *v = &c->g->value[root];
    bool comes_and_goes = v->program != PL_NONE && (v->role == PL_ROLE_TEMPORARY || v->role == PL_ROLE_SAVED);
    return comes_and_goes && c->writers[root] && !c->outside[root] ? pl_value_bytes(c->g, root) : 0;
}

/* Backward nodes run once, so between them what the first one has read may go before the second reads other things; but
 * those that are fused stay together. */
static bool stays_apart(const pl_node *next)
{
    return next->phase == PL_PHASE_BACKWARD && next->op != PL_OP_ACTIVATION_BWD;
}

/* Is what `node` makes read by its neighbour alone? */
static bool is_joined(const grouper *c, pl_id node)
{
    const pl_graph *g = c->g;
    const pl_node *n = &g->node[node], *next = &g->node[node + 1];
    if (!is_in(c, node + 1) || next->phase != n->phase || pl_node_result(n) == PL_NONE || stays_apart(next))
        return false;
    pl_id made = pl_node_result(n);
    for (int k = 1; k < PL_NODE_OUT_MAX; k++)
        if (pl_node_remakes(n, k)) return false;
    return pl_value_root(g, made) == made && c->readers[made] == 1 && c->writers[made] == 1 && bytes_of(c, made) &&
           reads(c, next, made);
}

/* May the neighbour put its result where `made` is? */
static bool goes_in_place(const grouper *c, const pl_node *next, pl_id made)
{
    const pl_value *v = &c->g->value[made];
    uint32_t may = pl_node_alias(next, 0).may;
    if (pl_node_result(next) == PL_NONE) return false;
    const pl_value *out = &c->g->value[pl_node_result(next)];
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (next->in[k] == made && may >> k & 1)
            return pl_shape_equal(&v->shape, &out->shape) && v->dtype == out->dtype;
    return false;
}

/* The group in whose storage a backward node will put its result: it is the last to read what lies there. */
static uint32_t group_below(const grouper *c, const pl_node *n)
{
    for (int k = 0; k < PL_NODE_IN_MAX && n->phase == PL_PHASE_BACKWARD; k++) {
        pl_id made = n->in[k];
        if (made == PL_NONE || pl_value_root(c->g, made) != made || c->readers[made] != 1 || c->writers[made] != 1)
            continue;
        if (c->owner[made] != NO_GROUP && bytes_of(c, made) && goes_in_place(c, n, made)) return c->owner[made];
    }
    return NO_GROUP;
}

static pl_status add_dep(grouper *c, uint32_t group, uint32_t dep, pl_error *err)
{
    recompute_problem *p = c->p;
    pl_recompute_node *n = &p->node[group];
    if (dep == NO_GROUP || dep == group || p->node[dep].size == 0) return PL_OK;
    for (size_t k = 0; k < n->dep_count; k++)
        if (p->deps[c->dep_count - n->dep_count + k] == dep) return PL_OK;
    if (pl_grow(&p->deps, &p->deps_capacity, c->dep_count, sizeof *p->deps)) return no_memory(err);
    p->deps[c->dep_count++] = dep;
    n->dep_count++;
    return PL_OK;
}

/* A large output beside the first, and smaller than that, has readers of its own: it is a group whose part is to be
 * there. What is larger than the first goes with it. */
static bool is_beside(const grouper *c, const pl_node *n, int k)
{
    return k > 0 && pl_node_remakes(n, k) && bytes_of(c, n->out[k]) < bytes_of(c, pl_node_result(n));
}

/* Those of the group's last node. */
static pl_status add_beside(grouper *c, uint32_t group, pl_id node, pl_error *err)
{
    recompute_problem *p = c->p;
    const pl_node *n = &c->g->node[node];
    for (int k = 1; k < PL_NODE_OUT_MAX; k++) {
        if (n->out[k] == PL_NONE || !is_beside(c, n, k)) continue;
        const pl_id root = pl_value_root(c->g, n->out[k]);
        if (bytes_of(c, root) == 0 || c->owner[root] != NO_GROUP) continue;
        const uint32_t own = (uint32_t)p->problem.node_count++;
        p->group[own] = (recompute_group){.first = node + 1, .end = node + 1, .once = p->group[group].once};
        PL_TRY(add_dep(c, own, group, err));
        c->owner[root] = own;
        p->node[own].size = bytes_of(c, root);
    }
    return PL_OK;
}

/* Storage that is written here for the first time belongs to this group; who writes into older storage needs it. */
static pl_status add_outputs(grouper *c, uint32_t group, pl_id node, bool last, pl_error *err)
{
    const pl_node *n = &c->g->node[node];
    pl_recompute_node *to = &c->p->node[group];
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
        if (n->out[k] == PL_NONE) continue;
        pl_id root = pl_value_root(c->g, n->out[k]);
        uint64_t bytes = bytes_of(c, root);
        if (bytes == 0) continue;
        if (c->owner[root] != NO_GROUP) {
            PL_TRY(add_dep(c, group, c->owner[root], err));
        } else if (k == 0 && group_below(c, n) != NO_GROUP) {
            c->owner[root] = group_below(c, n);
        } else if (is_beside(c, n, k)) {
            continue; /* add_beside */
        } else if (c->may[node] && !pl_node_remakes(n, k)) {
            c->p->problem.fixed += bytes;
        } else if (last) {
            c->owner[root] = group;
            to->size += bytes;
        } else if (!goes_in_place(c, n + 1, root) && bytes > to->work) {
            to->work = bytes;
        }
    }
    return PL_OK;
}

static pl_status add_member(grouper *c, uint32_t group, pl_id node, bool last, pl_error *err)
{
    const pl_node *n = &c->g->node[node];
    recompute_group *to = &c->p->group[group];
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE) PL_TRY(add_dep(c, group, c->owner[pl_value_root(c->g, n->in[k])], err));
    to->seconds += c->seconds[node];
    to->once |= !c->may[node];
    c->p->node[group].keep |= !c->may[node] && n->phase == PL_PHASE_FORWARD; /* whatever is made of it may run again */
    return add_outputs(c, group, node, last, err);
}

static pl_status add_groups(grouper *c, pl_error *err)
{
    recompute_problem *p = c->p;
    for (pl_id i = 0; i < c->g->node_count; i++) {
        if (!is_in(c, i)) continue;
        uint32_t group = (uint32_t)p->problem.node_count++;
        p->group[group] = (recompute_group){.first = i};
        for (;; i++) {
            bool last = !is_joined(c, i);
            PL_TRY(add_member(c, group, i, last, err));
            if (last) break;
        }
        p->group[group].end = i + 1;
        p->seconds += p->group[group].seconds;
        PL_TRY(add_beside(c, group, i, err));
    }
    return PL_OK;
}

/* What runs only once costs as much as everything together; that which frees no bytes is simply kept. */
static void set_costs(recompute_problem *p)
{
    uint32_t *dep = p->deps;
    for (size_t i = 0; i < p->problem.node_count; i++) {
        pl_recompute_node *n = &p->node[i];
        n->cost = p->group[i].seconds + (p->group[i].once && n->size ? p->seconds : 0);
        n->keep |= n->size == 0;
        n->deps = dep;
        dep += n->dep_count;
    }
    p->problem.nodes = p->node;
    p->problem.budget = PL_RECOMPUTE_NONE;
}

pl_status recompute_problem_init(recompute_problem *p, const pl_graph *g, pl_id region, const double *seconds,
                                 pl_error *err)
{
    *p = (recompute_problem){0};
    grouper c = {.p = p, .g = g, .seconds = seconds, .region = region};
    pl_status status = PL_OK;
    c.may = pl_alloc(g->node_count + 1, sizeof *c.may);
    c.readers = pl_alloc(g->value_count + 1, sizeof *c.readers);
    c.writers = pl_alloc(g->value_count + 1, sizeof *c.writers);
    c.outside = pl_alloc(g->value_count + 1, sizeof *c.outside);
    c.owner = pl_alloc(g->value_count + 1, sizeof *c.owner);
    p->group = pl_alloc(g->node_count * PL_NODE_OUT_MAX + 1, sizeof *p->group);
    p->node = pl_alloc(g->node_count * PL_NODE_OUT_MAX + 1, sizeof *p->node);
    if (!c.may || !c.readers || !c.writers || !c.outside || !c.owner || !p->group || !p->node)
        PL_TRY_DONE(no_memory(err));
    for (size_t i = 0; i < g->value_count; i++) c.owner[i] = NO_GROUP;
    PL_TRY_DONE(pl_recompute_find_repeatable(g, c.may, err));
    count_uses(&c);
    PL_TRY_DONE(add_groups(&c, err));
    set_costs(p);
done:
    pl_free(c.may);
    pl_free(c.readers);
    pl_free(c.writers);
    pl_free(c.outside);
    pl_free(c.owner);
    if (status != PL_OK) recompute_problem_deinit(p);
    return status;
}

void recompute_problem_deinit(recompute_problem *p)
{
    pl_free(p->group);
    pl_free(p->node);
    pl_free(p->deps);
    *p = (recompute_problem){0};
}

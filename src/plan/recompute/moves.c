/* What a move is: a gap of one value turned round (dropped where it was kept, or the reverse); or two, one for another
 * at the same stage, often a value and one that it is computed from; or the gaps of a whole stretch of nodes, as the
 * inside of a layer is; or two neighbours of the order that change places.
 *
 * A gap reaches as far as the value is untouched and wanted alike. *Far*, it may run past stages that touch the value:
 * then two reads share one computation, or no longer do. */
#include "moves.h"

enum { LATE = 8, FAR = 4, PAIR = 2, BLOCK = 12, ORDER = 16 };

typedef recompute_random *dice;

static bool extends(const matrix *m, dice r, uint32_t touching, uint32_t row, uint32_t v, bool wanted, bool far)
{
    if (matrix_wants(m, row, v) != wanted) return false;
    return !matrix_touches(m, touching, v) || (far && !recompute_random_one_in(r, FAR));
}

/* The gap of v around the beginning of stage t, which lies behind its own. */
static matrix_flip find_gap(const matrix *m, dice r, uint32_t v, uint32_t t, bool far)
{
    bool wanted = matrix_wants(m, t, v);
    matrix_flip f = {v, t, t + 1};
    while (f.first - 1 > m->stage_of[v] && extends(m, r, f.first - 1, f.first - 1, v, wanted, far)) f.first--;
    while (f.last < m->count && extends(m, r, f.last - 1, f.last, v, wanted, far)) f.last++;
    return f;
}

static void add_gap(const matrix *m, dice r, const pl_recompute_options *o, uint32_t v, uint32_t t, matrix_change *c)
{
    bool far = o->anneal_far && recompute_random_one_in(r, FAR);
    c->flips[c->count++] = find_gap(m, r, v, t, far);
}

static bool may_flip(const matrix *m, uint32_t v, uint32_t t) { return m->stage_of[v] < t && !m->g->keep[v]; }

/* Somebody that v reads or that reads v. */
static uint32_t find_neighbour(const matrix *m, dice r, uint32_t v)
{
    const recompute_graph *g = m->g;
    uint32_t deps = g->dep_begin[v + 1] - g->dep_begin[v], uses = g->use_begin[v + 1] - g->use_begin[v];
    if (deps + uses == 0) return v;
    uint32_t k = recompute_random_below(r, deps + uses);
    return k < deps ? g->dep[g->dep_begin[v] + k] : g->use[g->use_begin[v] + k - deps];
}

/* One in for one out. */
static void add_partner(const matrix *m, dice r, const pl_recompute_options *o, uint32_t v, uint32_t t,
                        matrix_change *c)
{
    uint32_t other = m->node_at[recompute_random_below(r, t)];
    if (recompute_random_one_in(r, 2)) {
        uint32_t near = find_neighbour(m, r, v);
        if (m->stage_of[near] < t) other = near;
    }
    if (other != v && may_flip(m, other, t) && matrix_wants(m, t, other) != matrix_wants(m, t, v))
        add_gap(m, r, o, other, t, c);
}

/* A stretch of the order, all its values that are wanted (or not) as its first. */
static bool pick_block(const matrix *m, dice r, uint32_t t, matrix_change *c)
{
    uint32_t begin = recompute_random_below(r, t), length = 2 + recompute_random_below(r, MATRIX_FLIPS_MAX / 4);
    bool wanted = matrix_wants(m, t, m->node_at[begin]);
    for (uint32_t k = begin; k < begin + length && k < t; k++) {
        uint32_t v = m->node_at[k];
        if (may_flip(m, v, t) && matrix_wants(m, t, v) == wanted && (wanted || m->last_stage[v] >= t))
            c->flips[c->count++] = find_gap(m, r, v, t, false);
    }
    return c->count > 0;
}

static bool reads(const recompute_graph *g, uint32_t reader, uint32_t v)
{
    for (uint32_t k = g->dep_begin[reader]; k < g->dep_begin[reader + 1]; k++)
        if (g->dep[k] == v) return true;
    return false;
}

static bool pick_swap(const matrix *m, uint32_t t, matrix_change *c)
{
    uint32_t first = m->node_at[t - 1], second = m->node_at[t];
    if (reads(m->g, second, first)) return false;
    c->swapped = t - 1;
    /* the second now runs a stage earlier, and must be held from there on if it was held before */
    if (t + 1 < m->count && matrix_wants(m, t + 1, second) && !matrix_wants(m, t, second))
        c->flips[c->count++] = (matrix_flip){second, t, t + 1};
    return true;
}

bool moves_pick(const matrix *m, const pl_recompute_options *o, recompute_random *r, matrix_change *c)
{
    uint32_t t = 1 + recompute_random_below(r, m->count - 1);
    c->count = 0;
    c->swapped = RECOMPUTE_NO_NODE;
    if (o->anneal_orders && recompute_random_one_in(r, ORDER)) return pick_swap(m, t, c);
    if (o->anneal_blocks && recompute_random_one_in(r, BLOCK)) return pick_block(m, r, t, c);
    uint32_t v = m->node_at[recompute_random_below(r, t)];
    if (!may_flip(m, v, t) || (m->last_stage[v] < t && !recompute_random_one_in(r, LATE))) return false;
    add_gap(m, r, o, v, t, c);
    if (o->anneal_pairs && recompute_random_one_in(r, PAIR)) add_partner(m, r, o, v, t, c);
    return true;
}

/* Which regions have something to decide, and what lies beside each.
 *
 * A value that two regions use lies there from the first of them to the last, through those between, and so does every
 * gradient: its accumulator waits for the trips of its region. What no decision changes matters all the same where the
 * peaks of regions are compared. */
#include "fit/recompute_problem.h"

typedef struct span { /* of the regions, in their order, that use a root */
    uint32_t first, last;
} span;

typedef struct finder {
    const pl_graph *g;
    uint32_t *order; /* [regions] how many of the program begin before it, + 1; 0: not seen yet */
    bool *has;       /* [regions] a backward pass */
    span *used;      /* [values] by root; of nothing where last is 0 */
    uint32_t count;
} finder;

static void use(finder *f, pl_id value, uint32_t at)
{
    if (value == PL_NONE) return;
    span *s = &f->used[pl_value_root(f->g, value)];
    if (s->last == 0) s->first = at;
    s->last = at;
}

/* Nodes that no micro-batch repeats stand in the program itself. */
static void walk(finder *f, pl_id program)
{
    for (size_t i = 0; i < f->g->node_count; i++) {
        const pl_node *n = &f->g->node[i];
        if (n->dead || n->region == program || pl_region_program(f->g, n->region) != program) continue;
        if (f->order[n->region] == 0) f->order[n->region] = ++f->count;
        f->has[n->region] |= n->phase == PL_PHASE_BACKWARD;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) use(f, n->in[k], f->order[n->region]);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) use(f, n->out[k], f->order[n->region]);
    }
}

static uint64_t bytes_beside(const finder *f, uint32_t at)
{
    uint64_t sum = 0;
    for (size_t v = 0; v < f->g->value_count; v++) {
        const pl_value *value = &f->g->value[v];
        const span *s = &f->used[v];
        bool gradient = value->role == PL_ROLE_GRADIENT;
        bool comes_and_goes = value->role == PL_ROLE_TEMPORARY || value->role == PL_ROLE_SAVED || gradient;
        if (value->program == PL_NONE || !comes_and_goes || !(gradient || s->first < s->last)) continue;
        if (s->first <= at && at <= s->last) sum += pl_value_bytes(f->g, (pl_id)v);
    }
    return sum;
}

static void list(const finder *f, recompute_region *region, size_t *count)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t at = 1; at <= f->count; at++)
        for (pl_id r = 0; r < f->g->region_count; r++)
            if (f->order[r] == at && f->has[r])
                region[(*count)++] = (recompute_region){.region = r, .beside = bytes_beside(f, at)};
    for (size_t i = 0; i < *count; i++)
        if (region[i].beside < least) least = region[i].beside;
    for (size_t i = 0; i < *count; i++) region[i].beside -= least;
}

pl_status recompute_regions_find(const pl_graph *g, pl_id program, recompute_region **region, size_t *count,
                                 pl_error *err)
{
    finder f = {.g = g,
                .order = pl_alloc(g->region_count + 1, sizeof *f.order),
                .has = pl_alloc(g->region_count + 1, sizeof *f.has),
                .used = pl_alloc(g->value_count + 1, sizeof *f.used)};
    bool whole = f.order && f.has && f.used;
    *count = 0;
    *region = whole ? pl_alloc(g->region_count + 1, sizeof **region) : NULL;
    if (*region) {
        walk(&f, program);
        list(&f, *region, count);
    }
    pl_free(f.order);
    pl_free(f.has);
    pl_free(f.used);
    return *region ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to plan what to recompute");
}

/* A topological order that keeps little alive: of the nodes that are ready, the one that lets the resident bytes grow
 * least (its result, less the inputs that nobody else still waits for) runs next; of equals the earliest. */
#include "graph.h"

#include "base/alloc.h"

typedef struct list {
    uint32_t *ready, *waits; /* who may run; by node: inputs not yet computed */
    uint32_t *users;         /* by node: readers that did not run yet */
    uint32_t ready_count;
} list;

static int64_t growth(const recompute_graph *g, const list *l, uint32_t v)
{
    int64_t bytes = g->use_begin[v] == g->use_begin[v + 1] && !g->keep[v] ? 0 : g->size[v];
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
        uint32_t d = g->dep[k];
        if (l->users[d] == 1 && !g->keep[d]) bytes -= g->size[d];
    }
    return bytes;
}

static uint32_t take_best(const recompute_graph *g, list *l)
{
    uint32_t best = 0;
    int64_t least = INT64_MAX;
    for (uint32_t r = 0; r < l->ready_count; r++) {
        int64_t bytes = growth(g, l, l->ready[r]);
        if (bytes > least || (bytes == least && l->ready[r] > l->ready[best])) continue;
        least = bytes;
        best = r;
    }
    uint32_t v = l->ready[best];
    l->ready[best] = l->ready[--l->ready_count];
    return v;
}

static void mark_done(const recompute_graph *g, list *l, uint32_t v)
{
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) l->users[g->dep[k]]--;
    for (uint32_t k = g->use_begin[v]; k < g->use_begin[v + 1]; k++)
        if (--l->waits[g->use[k]] == 0) l->ready[l->ready_count++] = g->use[k];
}

pl_status recompute_order_low_peak(const recompute_graph *g, uint32_t *order, pl_error *err)
{
    size_t n = g->count;
    list l = {pl_alloc(n, sizeof *l.ready), pl_alloc(n, sizeof *l.waits), pl_alloc(n, sizeof *l.users), 0};
    bool ok = l.ready && l.waits && l.users;
    for (uint32_t v = 0; ok && v < n; v++) {
        l.waits[v] = g->dep_begin[v + 1] - g->dep_begin[v];
        l.users[v] = g->use_begin[v + 1] - g->use_begin[v];
        if (l.waits[v] == 0) l.ready[l.ready_count++] = v;
    }
    for (uint32_t t = 0; ok && t < n; t++) {
        order[t] = take_best(g, &l);
        mark_done(g, &l, order[t]);
    }
    pl_free(l.ready);
    pl_free(l.waits);
    pl_free(l.users);
    return ok ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to order %zu nodes", n);
}

/* Building and checking the planner's view of a problem, and its floor: what one node needs at least.
 *
 * Floor: when v runs, its inputs are resident, and so is every kept node that v depends on, however far away, because
 * it ran before. And at the end everything kept is resident. No order and no recomputation gets below. */
#include "graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { COUNT_MAX = 1 << 24 };
#define BYTES_MAX (INT64_MAX / 2)
#define COST_MAX  1e300

static pl_status check_node(const pl_recompute_node *node, size_t i, pl_error *err)
{
    if (!(node->cost >= 0) || !isfinite(node->cost))
        return pl_fail(err, PL_E_DATA, "node %zu costs %g; expected a finite number, not negative", i, node->cost);
    for (size_t k = 0; k < node->dep_count; k++)
        if (node->deps[k] >= i)
            return pl_fail(err, PL_E_DATA, "node %zu depends on node %" PRIu32 "; a node comes after what it reads", i,
                           node->deps[k]);
    return PL_OK;
}

static pl_status check_sums(const pl_recompute_problem *p, double *base_cost, pl_error *err)
{
    uint64_t bytes = p->fixed, work = 0;
    int over = 0;
    *base_cost = 0;
    for (size_t i = 0; i < p->node_count; i++) {
        over |= pl_size_add(bytes, p->nodes[i].size, &bytes);
        if (p->nodes[i].work > work) work = p->nodes[i].work;
        *base_cost += p->nodes[i].cost;
    }
    if (over | pl_size_add(bytes, work, &bytes) || bytes > BYTES_MAX)
        return pl_fail(err, PL_E_DATA, "all results together exceed 2^62 bytes; sizes are in bytes, not scaled");
    if (*base_cost > COST_MAX) return pl_fail(err, PL_E_DATA, "all costs together exceed 1e300; give a larger unit");
    return PL_OK;
}

static pl_status check(const pl_recompute_problem *p, double *base_cost, uint64_t *dep_count, pl_error *err)
{
    if (p->node_count > COUNT_MAX)
        return pl_fail(err, PL_E_DATA, "%zu nodes; at most %d are taken", p->node_count, COUNT_MAX);
    for (size_t i = 0; i < p->node_count; i++) {
        PL_TRY(check_node(&p->nodes[i], i, err));
        *dep_count += p->nodes[i].dep_count;
    }
    if (*dep_count > UINT32_MAX) return pl_fail(err, PL_E_DATA, "more than 2^32 dependencies");
    return check_sums(p, base_cost, err);
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void sort_ids(uint32_t *row, size_t count)
{
    for (size_t k = 1; k < count; k++)
        if (row[k] < row[k - 1]) {
            qsort(row, count, sizeof *row, compare_ids);
            return;
        }
}

/* A dependency named twice counts once. */
static void fill_deps(recompute_graph *g, const pl_recompute_node *nodes)
{
    uint32_t end = 0;
    for (uint32_t v = 0; v < g->count; v++) {
        uint32_t *row = g->dep + end, count = 0;
        if (nodes[v].dep_count) memcpy(row, nodes[v].deps, nodes[v].dep_count * sizeof *row);
        sort_ids(row, nodes[v].dep_count);
        for (uint32_t k = 0; k < nodes[v].dep_count; k++)
            if (count == 0 || row[count - 1] != row[k]) row[count++] = row[k];
        g->dep_begin[v] = end;
        end += count;
    }
    g->dep_begin[g->count] = end;
}

static void fill_uses(recompute_graph *g)
{
    for (uint32_t k = 0; k < g->dep_begin[g->count]; k++) g->use_begin[g->dep[k] + 1]++;
    for (uint32_t v = 0; v < g->count; v++) g->use_begin[v + 1] += g->use_begin[v];
    for (uint32_t v = g->count; v-- > 0;) /* from the last: each row is filled from its end */
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            uint32_t d = g->dep[k];
            g->use[--g->use_begin[d + 1]] = v;
        }
    for (uint32_t v = 0; v < g->count; v++) g->use_begin[v] = g->use_begin[v + 1];
    g->use_begin[g->count] = g->dep_begin[g->count];
}

static void raise_floor(recompute_graph *g, int64_t bytes, uint32_t node)
{
    if (bytes <= g->floor) return;
    g->floor = bytes;
    g->floor_node = node;
}

enum { BATCH = 64 };

/* Adds to each node the bytes of those kept nodes of a batch that it depends on, read or from afar. `behind` gets which
 * they are, by node: a bit each, and its own. */
static void add_batch(const recompute_graph *g, const uint32_t *batch, uint32_t count, uint64_t *behind, int64_t *bytes)
{
    uint32_t met = 0;
    memset(behind, 0, g->count * sizeof *behind);
    for (uint32_t v = batch[0]; v < g->count; v++) {
        uint64_t ancestors = 0;
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) ancestors |= behind[g->dep[k]];
        for (uint64_t rest = ancestors; rest; rest &= rest - 1) bytes[v] += g->size[batch[__builtin_ctzll(rest)]];
        if (met < count && batch[met] == v) ancestors |= UINT64_C(1) << met++;
        behind[v] = ancestors;
    }
}

/* Of all kept nodes, in batches. */
static void add_kept(const recompute_graph *g, uint64_t *behind, int64_t *bytes)
{
    uint32_t batch[BATCH], count = 0;
    for (uint32_t v = 0; v < g->count; v++) {
        if (g->keep[v]) batch[count++] = v;
        if (count < BATCH && (v + 1 < g->count || count == 0)) continue;
        add_batch(g, batch, count, behind, bytes);
        count = 0;
    }
}

static pl_status find_floor(recompute_graph *g, pl_error *err)
{
    enum { FAR_COUNT_MAX = 4096 }; /* looking afar grows with the square */
    bool far = g->count <= FAR_COUNT_MAX;
    int64_t kept = g->fixed, *bytes = pl_alloc((size_t)g->count + 1, sizeof *bytes);
    uint64_t *behind = pl_alloc((size_t)g->count + 1, sizeof *behind);
    pl_status status = PL_OK;
    if (!bytes || !behind) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", g->count));
    if (far) add_kept(g, behind, bytes);
    g->floor_node = g->count;
    for (uint32_t v = 0; v < g->count; v++) {
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++)
            if (!far || !g->keep[g->dep[k]]) bytes[v] += g->size[g->dep[k]];
        raise_floor(g, g->fixed + bytes[v] + g->size[v] + g->work[v], v);
        if (g->keep[v]) kept += g->size[v];
    }
    raise_floor(g, kept, g->count);
done:
    pl_free(behind);
    pl_free(bytes);
    return status;
}

static pl_status allocate(recompute_graph *g, uint64_t dep_count, pl_error *err)
{
    size_t n = g->count;
    g->cost = pl_alloc(n, sizeof *g->cost);
    g->size = pl_alloc(n, sizeof *g->size);
    g->work = pl_alloc(n, sizeof *g->work);
    g->keep = pl_alloc(n, sizeof *g->keep);
    g->dep_begin = pl_alloc(n + 1, sizeof *g->dep_begin);
    g->use_begin = pl_alloc(n + 1, sizeof *g->use_begin);
    g->dep = pl_alloc(dep_count, sizeof *g->dep);
    g->use = pl_alloc(dep_count, sizeof *g->use);
    if (g->cost && g->size && g->work && g->keep && g->dep_begin && g->use_begin && g->dep && g->use) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to plan %zu nodes", n);
}

pl_status recompute_graph_init(recompute_graph *g, const pl_recompute_problem *p, pl_error *err)
{
    uint64_t dep_count = 0;
    *g = (recompute_graph){0};
    PL_TRY(check(p, &g->base_cost, &dep_count, err));
    g->count = (uint32_t)p->node_count;
    PL_TRY(allocate(g, dep_count, err));
    g->fixed = (int64_t)p->fixed;
    g->budget = p->budget > BYTES_MAX ? BYTES_MAX : (int64_t)p->budget;
    for (uint32_t v = 0; v < g->count; v++) {
        g->cost[v] = p->nodes[v].cost;
        g->size[v] = (int64_t)p->nodes[v].size;
        g->work[v] = (int64_t)p->nodes[v].work;
        g->keep[v] = p->nodes[v].keep;
    }
    fill_deps(g, p->nodes);
    fill_uses(g);
    return find_floor(g, err);
}

void recompute_graph_deinit(recompute_graph *g)
{
    pl_free(g->cost);
    pl_free(g->size);
    pl_free(g->work);
    pl_free(g->keep);
    pl_free(g->dep_begin);
    pl_free(g->use_begin);
    pl_free(g->dep);
    pl_free(g->use);
}

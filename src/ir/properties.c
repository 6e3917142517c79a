#include "ir/properties.h"

#include "ir/op.h"

static bool is_of(const pl_graph *g, const pl_node *n, pl_id program)
{
    return !n->dead && pl_region_program(g, n->region) == program;
}

bool pl_program_is_trained(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].phase != PL_PHASE_FORWARD && is_of(g, &g->node[i], program)) return true;
    return false;
}

bool pl_program_has_mean_loss(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (pl_op_rule_of(g->node[i].op)->scaled && is_of(g, &g->node[i], program)) return true;
    return false;
}

bool pl_program_loads(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LOAD && is_of(g, &g->node[i], program)) return true;
    return false;
}

pl_id pl_node_returned_port(const pl_graph *g, const pl_node *n)
{
    if (n->op != PL_OP_STORE || !n->store.back) return PL_NONE;
    const pl_id root = pl_value_root(g, n->store.port[0]), maker = g->value[root].producer;
    if (maker == PL_NONE || g->node[maker].op != PL_OP_LOAD) return PL_NONE;
    pl_id k = 0;
    while (g->node[maker].load.port[k] != root) k++;
    return k;
}

pl_id pl_graph_find_trained(const pl_graph *g)
{
    pl_id first = PL_NONE;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].dead || g->node[i].phase == PL_PHASE_FORWARD) continue;
        pl_id program = pl_region_program(g, g->node[i].region);
        if (program < first) first = program;
    }
    return first;
}

pl_id pl_graph_find_loss(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_op_rule_of(n->op)->loss && is_of(g, n, program)) return pl_value_root(g, pl_node_result(n));
    }
    return PL_NONE;
}

pl_id pl_graph_find_mixer(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (pl_op_rule_of(g->node[i].op)->mixes_samples && is_of(g, &g->node[i], program)) return (pl_id)i;
    return PL_NONE;
}

#define WORK_FLOPS_PER_SECOND 5e10
#define WORK_BYTES_PER_SECOND 1e10
#define WORK_CALL_SECONDS     2e-6

double pl_node_work(const pl_graph *g, const pl_node *n)
{
    const pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    return cost.flops / WORK_FLOPS_PER_SECOND + cost.bytes / WORK_BYTES_PER_SECOND + WORK_CALL_SECONDS;
}

pl_arithmetic pl_node_arithmetic(const pl_graph *g, const pl_node *n)
{
    if (n->op == PL_OP_LINEAR_BINARY) return PL_ARITHMETIC_SIGNS;
    if (pl_op_is_int8(n->op)) return PL_ARITHMETIC_INT8;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && g->value[n->in[k]].dtype == PL_DTYPE_BF16) return PL_ARITHMETIC_BF16;
    return PL_ARITHMETIC_F32;
}

double pl_node_computing_seconds(const pl_graph *g, const pl_node *n, const pl_rates *rates)
{
    const double rate = rates->operations[pl_node_arithmetic(g, n)];
    return rate > 0 && n->predicate == PL_NONE ? pl_op_rule_of(n->op)->cost(g, n).products / rate : 0;
}

/* Each value once, however often a kernel goes over it; no more than its rule says, which knows what is left out. */
static double moved_bytes(const pl_graph *g, const pl_node *n)
{
    const double most = pl_op_rule_of(n->op)->cost(g, n).bytes;
    double bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE) bytes += (double)pl_value_bytes(g, n->in[k]);
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) bytes += (double)pl_value_bytes(g, n->out[k]);
    return bytes < most ? bytes : most;
}

double pl_node_moving_seconds(const pl_graph *g, const pl_node *n, const pl_rates *rates)
{
    const double bytes = moved_bytes(g, n) - 2 * rates->cache_bytes;
    return rates->bytes > 0 && bytes > 0 && n->predicate == PL_NONE ? bytes / rates->bytes : 0;
}

double pl_node_least_seconds(const pl_graph *g, const pl_node *n, const pl_rates *rates)
{
    const double computing = pl_node_computing_seconds(g, n, rates), moving = pl_node_moving_seconds(g, n, rates);
    return computing > moving ? computing : moving;
}

pl_id pl_node_find_ids(const pl_graph *g, const pl_node *n, int64_t *below)
{
    const pl_op_rule *rule = pl_op_rule_of(n->op);
    pl_id table = rule->ids_below || rule->ids_dim ? n->in[rule->ids_below] : PL_NONE;
    if (table == PL_NONE) return PL_NONE;
    const pl_shape *s = &g->value[table].shape;
    *below = rule->ids_dim < 0 ? pl_shape_last(s) : s->dim[rule->ids_dim];
    return n->in[rule->ids];
}

bool pl_graph_find_id_limit(const pl_graph *g, pl_id value, int64_t *below)
{
    pl_id root = pl_value_root(g, value);
    *below = INT64_MAX;
    for (size_t i = 0; i < g->node_count; i++) {
        int64_t limit;
        pl_id ids = g->node[i].dead ? PL_NONE : pl_node_find_ids(g, &g->node[i], &limit);
        if (ids != PL_NONE && pl_value_root(g, ids) == root && limit < *below) *below = limit;
    }
    return *below < INT64_MAX;
}

pl_status pl_graph_pair_averages(const pl_graph *g, pl_id **partner, pl_error *err)
{
    *partner = NULL;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_EMA || n->dead) continue;
        if (!*partner) {
            *partner = pl_alloc(g->value_count, sizeof **partner);
            if (!*partner) return pl_fail(err, PL_E_NOMEM, "no memory to find the averages of weights");
            for (size_t v = 0; v < g->value_count; v++) (*partner)[v] = PL_NONE;
        }
        const pl_id average = pl_value_root(g, n->ema.average), weight = pl_value_root(g, n->ema.weight);
        (*partner)[average] = weight;
        (*partner)[weight] = average;
    }
    return PL_OK;
}

static double count_runs(const pl_graph *g, const pl_node *n)
{
    double runs = 1;
    for (pl_id r = n->region; r != PL_NONE; r = g->region[r].parent) runs *= (double)g->region[r].trip;
    return runs;
}

pl_work_share pl_program_binary_share(const pl_graph *g, pl_id program)
{
    pl_work_share share = {0};
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program || pl_op_is_outside(n->op)) continue;
        const double flops = pl_op_rule_of(n->op)->cost(g, n).flops * count_runs(g, n);
        share.flops += flops;
        if (n->op == PL_OP_LINEAR_BINARY) share.binary_flops += flops;
    }
    return share;
}

bool pl_graph_has_rings(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_CACHE_WRITE && g->node[i].cache_write.ring) return true;
    return false;
}

/* Averages of weights take the place of the weights in the programs that only use them: evaluating, generating, making
 * samples. Programs that change weights (the first values, training) keep the weights themselves. */
#include "grad/differentiate.h"
#include "ir/op.h"
#include "ir/properties.h"

typedef struct reader {
    pl_builder b;
    const pl_id *average; /* [values at the start] of a weight; PL_NONE: it has none */
    pl_id *instead; /* [values at the start] what is read instead of a window on such a weight; PL_NONE: not made */
    const bool *changes; /* [regions] programs that write a weight */
} reader;

static bool is_lasting_weight(const pl_graph *g, pl_id value)
{
    const pl_value *root = &g->value[pl_value_root(g, value)];
    return root->role == PL_ROLE_WEIGHT && root->program == PL_NONE;
}

static void find_changes(const pl_graph *g, bool *changes)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (g->node[i].out[k] != PL_NONE && is_lasting_weight(g, g->node[i].out[k]))
                changes[pl_region_program(g, g->node[i].region)] = true;
}

/* A window on a weight has its like on the average. */
static pl_id read_instead(reader *r, pl_id value)
{
    const pl_graph *g = r->b.graph;
    if (value == PL_NONE) return PL_NONE;
    const pl_value v = g->value[value];
    pl_id average = r->average[pl_value_root(g, value)];
    if (average == PL_NONE || !is_lasting_weight(g, value)) return value;
    if (v.view_of == PL_NONE) return average;
    if (r->instead[value] == PL_NONE)
        r->instead[value] = pl_build_view(&r->b, read_instead(r, v.view_of), v.shape, v.view_offset, v.stride);
    return r->instead[value];
}

pl_status pl_grad_read_averages(pl_graph *g, pl_error *err)
{
    pl_id *average = NULL;
    PL_TRY(pl_graph_pair_averages(g, &average, err));
    if (!average) return PL_OK;
    pl_status status = PL_OK;
    const size_t values = g->value_count;
    bool *changes = pl_alloc(g->region_count + 1, sizeof *changes);
    pl_id *instead = pl_alloc(values, sizeof *instead);
    if (!changes || !instead) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to put averages in place of weights"));
    for (size_t i = 0; i < values; i++) instead[i] = PL_NONE;
    find_changes(g, changes);
    reader r = {pl_builder_begin(g, 0, err), average, instead, changes};
    for (size_t i = 0; i < g->node_count; i++) {
        if (changes[pl_region_program(g, g->node[i].region)]) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) g->node[i].in[k] = read_instead(&r, g->node[i].in[k]);
    }
    status = r.b.status;
done:
    pl_free(average);
    pl_free(changes);
    pl_free(instead);
    return status;
}

#include "api/narrow.h"

#include "ir/op.h"
#include "rewrite/passes.h"

bool pl_is_narrow(const pl_config *c) { return c->run.precision == PL_CONFIG_RUN_BFLOAT16; }

pl_status pl_narrow_check(const pl_config *c, const pl_graph *g, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (!pl_is_narrow(c)) return PL_OK;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const bool is_binary = n->op == PL_OP_LINEAR_BINARY;
        if (n->dead || (!is_binary && !pl_op_is_int8(n->op))) continue;
        return pl_fail(err, PL_E_CONFIG,
                       "%s: run.precision bfloat16, but %s has %s, which %s numbers in f32; take float32",
                       pl_config_where(c, "run.precision", where, sizeof where), n->scope,
                       is_binary ? "a layer of signs" : "weights in 8 bits",
                       is_binary ? "takes them of" : "are multiplied with what is made of");
    }
    return PL_OK;
}

pl_status pl_narrow_weights(pl_graph *g, pl_error *err)
{
    const pl_rewrites r = {.precision = PL_DTYPE_BF16, .frozen = PL_DTYPE_BF16};
    PL_TRY(pl_rewrite_passes(g, &r, PL_PASS_PRECISION, PL_PASS_PRECISION + 1, err));
    return pl_rewrite_passes(g, &r, PL_PASS_FROZEN_STORAGE, PL_PASS_FROZEN_STORAGE + 1, err);
}

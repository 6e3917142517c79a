#include "api/narrow.h"

#include "config/schema.h"
#include "ir/op.h"
#include "rewrite/passes.h"

pl_dtype pl_narrow_dtype(const pl_config *c)
{
    static const pl_dtype dtypes[] = {[PL_CONFIG_RUN_FLOAT32] = PL_DTYPE_F32,
                                      [PL_CONFIG_RUN_BFLOAT16] = PL_DTYPE_BF16,
                                      [PL_CONFIG_RUN_FLOAT16] = PL_DTYPE_F16};
    /* --precision sets the keys of all systems that have one. */
    return pl_config_is_used(c, pl_config_find("run.precision")) ? dtypes[c->run.precision] : PL_DTYPE_F32;
}

const char *pl_narrow_word(const pl_config *c) { return pl_config_find("run.precision")->names[c->run.precision]; }

pl_status pl_narrow_check(const pl_config *c, const pl_graph *g, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (pl_narrow_dtype(c) == PL_DTYPE_F32) return PL_OK;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const bool is_binary = n->op == PL_OP_LINEAR_BINARY;
        if (n->dead || (!is_binary && !pl_op_is_int8(n->op))) continue;
        return pl_fail(err, PL_E_CONFIG, "%s: run.precision %s, but %s has %s, which %s numbers in f32; take f32",
                       pl_config_where(c, "run.precision", where, sizeof where), pl_narrow_word(c), n->scope,
                       is_binary ? "a layer of signs" : "weights in 8 bits",
                       is_binary ? "takes them of" : "are multiplied with what is made of");
    }
    return PL_OK;
}

pl_status pl_narrow_weights(pl_graph *g, pl_dtype dtype, pl_error *err)
{
    const pl_rewrites r = {.precision = dtype, .frozen = dtype};
    PL_TRY(pl_rewrite_passes(g, &r, PL_PASS_PRECISION, PL_PASS_PRECISION + 1, err));
    return pl_rewrite_passes(g, &r, PL_PASS_FROZEN_STORAGE, PL_PASS_FROZEN_STORAGE + 1, err);
}

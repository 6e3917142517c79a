/* Moments of the optimizer in fewer bits. Operators, their order and shapes stay: only the storage of m and v, and of
 * every version of them, gets another dtype or encoding; initial zeros are zero bytes in all of them. */
#include "ir/op.h"
#include "rewrite/rewrite.h"

enum { ELEMS_MIN_8BIT = 4096 }; /* smaller tensors (norms, biases) gain nothing and matter most */

_Static_assert(offsetof(pl_adamw_args, m) == offsetof(pl_adam_atan2_args, m) &&
                   offsetof(pl_adamw_args, v) == offsetof(pl_adam_atan2_args, v),
               "all optimizers are read as one");

/* In 8 bits. */
static void mark_moments(const pl_graph *g, pl_encoding *of)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!pl_op_rule_of(n->op)->optimizer || n->dead) continue;
        of[pl_value_root(g, n->adamw.m)] = PL_ENCODING_SIGNED8;
        of[pl_value_root(g, n->adamw.v)] = PL_ENCODING_ROOT8;
    }
}

pl_status pl_rewrite_optimizer_state(pl_graph *g, pl_dtype dtype, pl_error *err)
{
    if (dtype == PL_DTYPE_F32) return PL_OK;
    pl_encoding *of = pl_alloc(g->value_count + 1, sizeof *of);
    if (!of) return pl_fail(err, PL_E_NOMEM, "no memory to change the optimizer's state");
    mark_moments(g, of);
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        const pl_encoding e = of[pl_value_root(g, (pl_id)i)];
        if (e == PL_ENCODING_F32) continue;
        if (dtype != PL_DTYPE_U8)
            v->dtype = dtype;
        else if (pl_shape_elems(&v->shape) >= ELEMS_MIN_8BIT)
            v->encoding = e;
    }
    pl_free(of);
    return PL_OK;
}

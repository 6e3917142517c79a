/* Moments of the optimizer in fewer bits. Operators and their order stay: only the storage of m and v, and of every
 * version of them, gets another dtype and, for 8 bits, another shape; initial zeros are zero bytes in all of them. */
#include "base/block8.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

enum { ELEMS_MIN_8BIT = 4096 }; /* smaller tensors (norms, biases) gain nothing and matter most */

_Static_assert(offsetof(pl_adamw_args, m) == offsetof(pl_adam_atan2_args, m) &&
                   offsetof(pl_adamw_args, v) == offsetof(pl_adam_atan2_args, v),
               "all optimizers are read as one");

typedef struct form {
    pl_shape shape;
    pl_dtype dtype;
} form;

static form form_of(const pl_value *moment, pl_dtype dtype)
{
    uint64_t elems = pl_shape_elems(&moment->shape);
    if (dtype != PL_DTYPE_U8) return (form){moment->shape, dtype};
    if (elems < ELEMS_MIN_8BIT) return (form){moment->shape, PL_DTYPE_F32};
    return (form){pl_shape_of(2, (int64_t)pl_block8_blocks(elems), (int64_t)PL_BLOCK8_BYTES), PL_DTYPE_U8};
}

static void mark_moments(const pl_graph *g, bool *is_moment)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!pl_op_rule_of(n->op)->optimizer || n->dead) continue;
        is_moment[pl_value_root(g, n->adamw.m)] = true;
        is_moment[pl_value_root(g, n->adamw.v)] = true;
    }
}

pl_status pl_rewrite_optimizer_state(pl_graph *g, pl_dtype dtype, pl_error *err)
{
    if (dtype == PL_DTYPE_F32) return PL_OK;
    bool *is_moment = pl_alloc(g->value_count + 1, sizeof *is_moment);
    if (!is_moment) return pl_fail(err, PL_E_NOMEM, "no memory to change the optimizer's state");
    mark_moments(g, is_moment);
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        if (!is_moment[pl_value_root(g, (pl_id)i)]) continue;
        form to = form_of(v, dtype);
        v->shape = to.shape;
        v->dtype = to.dtype;
        pl_value_default_strides(v);
    }
    pl_free(is_moment);
    return PL_OK;
}

/* What no header tells of weights of one bit. */
#include "backend/calls.h"
#include "run/session_impl.h"

pl_status pl_session_check_binary(const pl_session *s, const pl_node *n, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_linear_binary_args *a = &n->linear_binary;
    const pl_id packed = pl_value_root(g, a->packed);
    const pl_shape *w = &g->value[packed].shape;
    const int64_t row = pl_binary_check(w->dim[0], w->dim[1], pl_session_address(s, packed));
    if (row < 0) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: tensor \"%.200s\", row %lld: its scale is no number of at least 0, or bits are set behind its "
                   "end; the file is damaged: make it again (plimsoll export --format safetensors --packed)",
                   s->o.data->weights, g->value[packed].name, (long long)row);
}

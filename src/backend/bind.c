/* From nodes to calls: the table of bindings and what they share. */
#include "backend/backend.h"

#include "ir/op.h"

static const pl_binding *const bindings[PL_OP_COUNT] = {
#define PL_OP(constant, name, ins, outs, attrs) [PL_OP_##constant] = &pl_binding_##constant,
#include "ir/ops.def"
};

void *pl_address_of(const pl_graph *g, const pl_addresses *a, pl_id value)
{
    if (value == PL_NONE) return NULL;
    pl_id root = pl_value_root(g, value);
    uint64_t offset = a->offset ? a->offset[root] : 0;
    offset += (uint64_t)pl_value_root_offset(g, value) * pl_dtype_bytes(g->value[value].dtype);
    if (g->value[value].tile) offset += a->trip * pl_value_bytes(g, value);
    return a->base[g->value[root].space] + offset;
}

_Static_assert((int)PL_DTYPE_F32 == (int)PL_REAL_F32 && (int)PL_DTYPE_BF16 == (int)PL_REAL_BF16 &&
                   (int)PL_DTYPE_F16 == (int)PL_REAL_F16,
               "the first dtypes are those that kernels compute with");

uint64_t pl_elems_of(const pl_graph *g, pl_id value)
{
    return value == PL_NONE ? 0 : pl_shape_elems(&g->value[value].shape);
}

pl_real pl_real_of(const pl_graph *g, pl_id value) { return (pl_real)g->value[value].dtype; }

int64_t pl_tokens_of(const pl_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 1; i + 1 < s->rank; i++) n *= s->dim[i];
    return n;
}

int pl_has_few_tokens(const pl_shape *s) { return pl_tokens_of(s) <= 8; }

static bool samples_are_whole(const pl_value *v)
{
    pl_value sample = *v;
    if (v->shape.rank < 2) return false;
    sample.shape.dim[0] = 1;
    pl_value_default_strides(&sample);
    for (uint32_t i = 1; i < v->shape.rank; i++)
        if (v->shape.dim[i] != 1 && v->stride[i] != sample.stride[i]) return false;
    return true;
}

/* A kernel takes whole tensors, unless the operand is tagged. */
static bool layout_fits(const pl_value *v, const pl_operand *row, int k)
{
    if (pl_value_is_contiguous(v)) return true;
    if (pl_operand_has(row, k, PL_SAMPLES)) return samples_are_whole(v);
    return pl_operand_has(row, k, PL_ROWS) && v->shape.rank == 3 && (v->stride[2] == 1 || v->shape.dim[2] == 1);
}

static pl_status check_layout(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_signature *s = pl_signature_of(n->op);
    for (int k = 0; k < s->ins; k++)
        if (n->in[k] != PL_NONE && !layout_fits(&g->value[n->in[k]], s->in, k))
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s in %s: no kernel reads input %s as such a window on another value", s->name, n->scope,
                           pl_position_name_of(s->in, k).text);
    for (int k = 0; k < s->outs; k++)
        if (n->out[k] != PL_NONE && !layout_fits(&g->value[n->out[k]], s->out, k))
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s in %s: no kernel writes output %s as such a window on another value", s->name, n->scope,
                           pl_position_name_of(s->out, k).text);
    return PL_OK;
}

pl_status pl_backend_bind(const pl_graph *g, const pl_node *n, const pl_addresses *a, void *workspace, pl_call *call,
                          pl_error *err)
{
    PL_TRY(check_layout(g, n, err));
    *call = (pl_call){.op = n->op, .workspace = workspace, .predicate = pl_address_of(g, a, n->predicate)};
    bindings[n->op]->bind(g, n, a, call);
    return PL_OK;
}

pl_status pl_backend_workspace_bytes(const pl_graph *g, const pl_node *n, pl_team team, uint64_t *bytes, pl_error *err)
{
    pl_call call;
    /* sizing looks at which pointers are set, never at what they point to */
    pl_addresses nowhere = {0};
    for (int k = 0; k < PL_SPACES_MAX; k++) nowhere.base[k] = (unsigned char *)64;
    pl_status status = pl_backend_bind(g, n, &nowhere, NULL, &call, err);
    *bytes = status == PL_OK && bindings[n->op]->workspace ? bindings[n->op]->workspace(&call, team) : 0;
    return status;
}

void pl_backend_exec(const pl_call *call, pl_team team)
{
    if (call->predicate && *call->predicate == 0) return;
    if (bindings[call->op]->exec) bindings[call->op]->exec(call, team);
}

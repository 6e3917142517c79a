/* What is between two layers of 8 bits becomes the first one's own work:
 *
 *      y = linear_int8(x, W, R, b);   h = activation(y) or gated_activation(y)
 *   →  h = hidden_int8(x, W, R, b, S)
 *
 * So y, with a gate the widest value of all, never exists; and where all that read h are such layers and of one range
 * S, h is rounded once, by who makes it, and has a quarter of the bytes. */
#include "base/quantize.h"
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

_Static_assert(offsetof(pl_activation_args, x) == offsetof(pl_gated_activation_args, x) &&
                   offsetof(pl_activation_args, y) == offsetof(pl_gated_activation_args, y) &&
                   offsetof(pl_activation_args, act) == offsetof(pl_gated_activation_args, act),
               "one rule reads both");
_Static_assert(offsetof(pl_linear_int8_args, range) == offsetof(pl_hidden_int8_args, range), "one rule reads both");

typedef struct fuser {
    pl_graph *g;
    pl_readers readers;
} fuser;

/* Nodes that read it whole are all that know it. */
static bool is_between(const fuser *f, pl_id value)
{
    return f->g->value[value].role == PL_ROLE_TEMPORARY && pl_readers_know(&f->readers, f->g, value);
}

static bool is_gate(const pl_node *n) { return n->op == PL_OP_GATED_ACTIVATION; }

/* The layer whose product is all that the activation reads, and nobody else; NULL: there is none. */
static pl_node *layer_before(const fuser *f, const pl_node *act)
{
    pl_graph *g = f->g;
    const pl_id y = act->activation.x, producer = g->value[y].producer;
    const pl_value *h = &g->value[act->activation.y];
    if (is_gate(act) && act->gated_activation.up != PL_NONE) return NULL; /* two layers */
    if (producer == PL_NONE || !is_between(f, y) || !pl_readers_have_one(&f->readers, g, y)) return NULL;
    pl_node *n = &g->node[producer];
    const pl_linear_int8_args *a = &n->linear_int8;
    if (n->dead || n->op != PL_OP_LINEAR_INT8 || a->act != PL_ACT_NONE || a->residual != PL_NONE) return NULL;
    if (a->act_y != PL_NONE || n->predicate != act->predicate || n->region != act->region) return NULL;
    if (h->view_of != PL_NONE || h->update_of != PL_NONE) return NULL;
    return is_gate(act) && pl_shape_last(&g->value[y].shape) % (2 * (int64_t)PL_INT8_PANEL) ? NULL : n;
}

/* As what comes to the layer, and nowhere else. */
static bool reads_rounded(const pl_node *n, pl_id value)
{
    int times = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) times += n->in[k] == value;
    return pl_op_is_int8(n->op) && n->linear_int8.x == value && times == 1;
}

/* What all that read it round it to; PL_NONE: they do not, or not alike. */
static pl_id range_of_readers(const fuser *f, pl_id value)
{
    pl_id range = PL_NONE;
    if (!is_between(f, value)) return PL_NONE;
    for (const pl_reader *r = pl_readers_first(&f->readers, value); r; r = pl_readers_next(&f->readers, r)) {
        const pl_node *n = &f->g->node[r->node];
        if (!reads_rounded(n, value) || (range != PL_NONE && range != n->linear_int8.range)) return PL_NONE;
        range = n->linear_int8.range;
    }
    return range;
}

static void fuse(fuser *f, pl_node *act)
{
    pl_node *layer = layer_before(f, act);
    if (!layer) return;
    const pl_linear_int8_args old = layer->linear_int8;
    const pl_activation_args *next = &act->activation;
    pl_hidden_int8_args *a = &layer->hidden_int8;
    pl_value *h = &f->g->value[next->y];
    layer->op = PL_OP_HIDDEN_INT8;
    a->x = old.x, a->weight = old.weight, a->range = old.range, a->bias = old.bias;
    a->act = next->act, a->gated = is_gate(act);
    a->hidden_range = range_of_readers(f, next->y);
    h->producer = f->g->value[next->x].producer;
    a->y = next->y;
    if (a->hidden_range != PL_NONE) h->dtype = PL_DTYPE_U8, pl_value_default_strides(h);
    act->dead = true;
}

static bool has_layers(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->node[i].dead && g->node[i].op == PL_OP_LINEAR_INT8) return true;
    return false;
}

pl_status pl_rewrite_int8_hidden(pl_graph *g, pl_error *err)
{
    fuser f = {.g = g};
    if (!has_layers(g)) return PL_OK;
    PL_TRY(pl_readers_init(&f.readers, g, err));
    for (size_t i = 0; i < g->node_count; i++) {
        pl_node *n = &g->node[i];
        if (!n->dead && (n->op == PL_OP_ACTIVATION || is_gate(n))) fuse(&f, n);
    }
    pl_graph_sweep(g);
    pl_readers_deinit(&f.readers);
    return PL_OK;
}

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

enum { ACT = 1, GATED, RANGE = 4 }; /* attributes and the last input of hidden_int8 */

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
    const pl_id y = act->in[0], producer = g->value[y].producer;
    if (producer == PL_NONE || !is_between(f, y) || !pl_readers_have_one(&f->readers, g, y)) return NULL;
    pl_node *n = &g->node[producer];
    if (n->dead || n->op != PL_OP_LINEAR_INT8 || n->attr[ACT].i != PL_ACT_NONE || n->in[RANGE] != PL_NONE) return NULL;
    if (n->out[1] != PL_NONE || n->predicate != act->predicate || n->region != act->region) return NULL;
    if (g->value[act->out[0]].view_of != PL_NONE || g->value[act->out[0]].update_of != PL_NONE) return NULL;
    return is_gate(act) && n->attr[0].i % (2 * (int64_t)PL_INT8_PANEL) ? NULL : n;
}

static bool reads_rounded(const pl_node *n, pl_id value)
{
    for (int k = 1; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] == value) return false;
    return pl_op_is_int8(n->op) && n->in[0] == value;
}

/* What all that read it round it to; PL_NONE: they do not, or not alike. */
static pl_id range_of_readers(const fuser *f, pl_id value)
{
    pl_id range = PL_NONE;
    if (!is_between(f, value)) return PL_NONE;
    for (const pl_reader *r = pl_readers_first(&f->readers, value); r; r = pl_readers_next(&f->readers, r)) {
        const pl_node *n = &f->g->node[r->node];
        if (!reads_rounded(n, value) || (range != PL_NONE && range != n->in[2])) return PL_NONE;
        range = n->in[2];
    }
    return range;
}

static void fuse(fuser *f, pl_node *act)
{
    pl_node *layer = layer_before(f, act);
    if (!layer) return;
    pl_value *h = &f->g->value[act->out[0]];
    layer->op = PL_OP_HIDDEN_INT8;
    layer->attr[ACT] = act->attr[0];
    layer->attr[GATED] = pl_attr_i(is_gate(act));
    layer->in[RANGE] = range_of_readers(f, act->out[0]);
    h->producer = f->g->value[act->in[0]].producer;
    layer->out[0] = act->out[0];
    if (layer->in[RANGE] != PL_NONE) h->dtype = PL_DTYPE_U8, pl_value_default_strides(h);
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

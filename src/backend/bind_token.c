/* Where data enter and leave: load, store; tokens' embedding; and the loss: linear + cross-entropy. */
#include "backend/backend.h"
#include "ir/op.h"
#include "ir/properties.h"

static void bind_load(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_id *port = n->load.port;
    pl_load_call *c = &call->u.load;
    *c = (pl_load_call){0};
    for (int k = 0; k < PL_OUTS_OF_LOAD && port[k] != PL_NONE; k++) {
        void *at = pl_address_of(g, a, port[k]);
        if (pl_is_sample_number(&g->value[port[k]]))
            c->first_sample = at;
        else
            c->port[c->ports++] = (pl_call_port){at, pl_value_bytes(g, port[k]), g->value[port[k]].dtype};
    }
}

const pl_binding pl_binding_LOAD = {bind_load, NULL, NULL};

static void bind_store(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_id *port = n->store.port;
    pl_store_call *c = &call->u.store;
    *c = (pl_store_call){.returned = pl_node_returned_port(g, n)};
    for (int k = 0; k < PL_INS_OF_STORE && port[k] != PL_NONE; k++)
        c->port[c->ports++] =
            (pl_call_port){pl_address_of(g, a, port[k]), pl_value_bytes(g, port[k]), g->value[port[k]].dtype};
}

const pl_binding pl_binding_STORE = {bind_store, NULL, NULL};

static void bind_embedding(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *tokens = &g->value[n->embedding.tokens], *table = &g->value[n->embedding.table];
    call->u.embedding = (pl_embedding_call){.batch = tokens->shape.dim[0],
                                            .tokens_per_sequence = tokens->shape.dim[1],
                                            .vocab = table->shape.dim[0],
                                            .width = table->shape.dim[1],
                                            .window = n->embedding.window,
                                            .token = pl_address_of(g, a, n->embedding.tokens),
                                            .table = pl_address_of(g, a, n->embedding.table),
                                            .position_table = pl_address_of(g, a, n->embedding.positions),
                                            .position = pl_address_of(g, a, n->embedding.position),
                                            .positions = (int64_t)pl_elems_of(g, n->embedding.position),
                                            .y = pl_address_of(g, a, n->embedding.x),
                                            .type = pl_real_of(g, n->embedding.x),
                                            .tables = pl_real_of(g, n->embedding.table),
                                            .encoding = table->encoding};
}

static void exec_embedding(const pl_call *c, pl_team team) { pl_embedding_exec(&c->u.embedding, team); }

const pl_binding pl_binding_EMBEDDING = {bind_embedding, NULL, exec_embedding};

static void bind_embedding_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *tokens = &g->value[n->embedding_bwd.tokens], *table = pl_value_at(g, n->embedding_bwd.dtable),
                   *places = pl_value_at(g, n->embedding_bwd.dpositions);
    call->u.embedding_bwd = (pl_embedding_bwd_call){.batch = tokens->shape.dim[0],
                                                    .tokens_per_sequence = tokens->shape.dim[1],
                                                    .vocab = table ? table->shape.dim[0] : 0,
                                                    .width = (table ? table : places)->shape.dim[1],
                                                    .window = n->embedding_bwd.window,
                                                    .token = pl_address_of(g, a, n->embedding_bwd.tokens),
                                                    .dy = pl_address_of(g, a, n->embedding_bwd.dy),
                                                    .dtable = pl_address_of(g, a, n->embedding_bwd.dtable_new),
                                                    .dposition = pl_address_of(g, a, n->embedding_bwd.dpositions_new),
                                                    .type = pl_real_of(g, n->embedding_bwd.dy)};
}

static void exec_embedding_bwd(const pl_call *c, pl_team team) { pl_embedding_bwd_exec(&c->u.embedding_bwd, team); }

const pl_binding pl_binding_EMBEDDING_BWD = {bind_embedding_bwd, NULL, exec_embedding_bwd};

_Static_assert(offsetof(pl_linear_ce_args, loss) == offsetof(pl_linear_ce_bwd_args, loss) &&
                   offsetof(pl_linear_ce_args, loss_new) == offsetof(pl_linear_ce_bwd_args, loss_new) &&
                   offsetof(pl_linear_ce_args, chunk_rows) == offsetof(pl_linear_ce_bwd_args, chunk_rows),
               "one function reads both");

static void bind_both(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_linear_ce_args *x = &n->linear_ce;
    const pl_value *h = &g->value[x->h], *w = &g->value[x->weight];
    call->u.linear_ce = (pl_linear_ce_call){.rows = pl_shape_rows(&h->shape),
                                            .width = w->shape.dim[1],
                                            .vocab = w->shape.dim[0],
                                            .chunk_rows = x->chunk_rows,
                                            .h = pl_address_of(g, a, x->h),
                                            .weight = pl_address_of(g, a, x->weight),
                                            .h_encoding = h->encoding,
                                            .encoding = w->encoding,
                                            .target = pl_address_of(g, a, x->target),
                                            .scale = pl_address_of(g, a, x->scale),
                                            .loss = pl_address_of(g, a, x->loss_new),
                                            .type = pl_real_of(g, x->h),
                                            .tokens = pl_tokens_of(&h->shape)};
}

static void bind_linear_ce(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_both(g, n, a, call);
    call->u.linear_ce.row_loss = pl_address_of(g, a, n->linear_ce.row_loss);
    call->u.linear_ce.cap = (float)n->linear_ce.cap;
}

static void bind_linear_ce_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_both(g, n, a, call);
    call->u.linear_ce.dh = pl_address_of(g, a, n->linear_ce_bwd.dh);
    call->u.linear_ce.dweight = pl_address_of(g, a, n->linear_ce_bwd.dweight_new);
    call->u.linear_ce.loss_scale = pl_address_of(g, a, n->linear_ce_bwd.loss_scale);
}

static uint64_t workspace_linear_ce(const pl_call *c, pl_team team)
{
    return pl_linear_ce_workspace_bytes(&c->u.linear_ce, team);
}
static void exec_linear_ce(const pl_call *c, pl_team team) { pl_linear_ce_exec(&c->u.linear_ce, c->workspace, team); }

const pl_binding pl_binding_LINEAR_CE = {bind_linear_ce, workspace_linear_ce, exec_linear_ce};
const pl_binding pl_binding_LINEAR_CE_BWD = {bind_linear_ce_bwd, workspace_linear_ce, exec_linear_ce};

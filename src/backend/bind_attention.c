/* Attention, its derivative and the key-value cache. */
#include "backend/backend.h"
#include "ir/op.h"

/* [B,T,width] as it lies in memory: distance between sequences and between tokens. */
static pl_attention_strides strides_of(const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return (pl_attention_strides){v->stride[0], v->stride[1]};
}

_Static_assert(offsetof(pl_attention_args, sequences) == offsetof(pl_attention_bwd_args, sequences),
               "one function reads both");

static pl_attention_drops drops_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_id step,
                                   pl_id first_sample)
{
    const pl_attention_args *x = &n->attention;
    return (pl_attention_drops){.probability = (float)x->probability,
                                .seed = (uint64_t)x->seed,
                                .stream = (uint64_t)x->stream,
                                .sequences = x->sequences ? x->sequences : 1,
                                .step = pl_address_of(g, a, step),
                                .first_sample = pl_address_of(g, a, first_sample)};
}

static void bind_attention(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *q = &g->value[n->attention.q], *k = &g->value[n->attention.k];
    call->u.attention = (pl_attention_call){.batch = q->shape.dim[0],
                                            .tq = q->shape.dim[1],
                                            .tk = k->shape.dim[1],
                                            .heads = n->attention.heads,
                                            .head_width = q->shape.dim[2] / n->attention.heads,
                                            .causal = (int)n->attention.causal,
                                            .scale = (float)n->attention.scale,
                                            .q = pl_address_of(g, a, n->attention.q),
                                            .k = pl_address_of(g, a, n->attention.k),
                                            .v = pl_address_of(g, a, n->attention.v),
                                            .sq = strides_of(g, n->attention.q),
                                            .sk = strides_of(g, n->attention.k),
                                            .sv = strides_of(g, n->attention.v),
                                            .so = strides_of(g, n->attention.o),
                                            .o = pl_address_of(g, a, n->attention.o),
                                            .lse = pl_address_of(g, a, n->attention.lse),
                                            .position = pl_address_of(g, a, n->attention.position),
                                            .positions = (int64_t)pl_elems_of(g, n->attention.position),
                                            .sequence = pl_address_of(g, a, n->attention.sequence),
                                            .type = pl_real_of(g, n->attention.q),
                                            .drops = drops_of(g, n, a, n->attention.step, n->attention.first_sample),
                                            .key_type = pl_real_of(g, n->attention.k),
                                            .key_heads = n->attention.key_heads,
                                            .window = n->attention.window,
                                            .cap = (float)n->attention.cap,
                                            .key_encoding = k->encoding};
}

static uint64_t workspace_attention(const pl_call *c, pl_team team)
{
    return pl_attention_workspace_bytes(&c->u.attention, team);
}
static void exec_attention(const pl_call *c, pl_team team) { pl_attention_exec(&c->u.attention, c->workspace, team); }

const pl_binding pl_binding_ATTENTION = {bind_attention, workspace_attention, exec_attention};

static void bind_attention_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_attention_bwd_args *x = &n->attention_bwd;
    const pl_value *q = &g->value[x->q], *k = &g->value[x->k];
    pl_attention_bwd_call c = {.batch = q->shape.dim[0],
                               .tq = q->shape.dim[1],
                               .tk = k->shape.dim[1],
                               .heads = x->heads,
                               .head_width = q->shape.dim[2] / x->heads,
                               .causal = (int)x->causal,
                               .scale = (float)x->scale,
                               .type = pl_real_of(g, x->q),
                               .drops = drops_of(g, n, a, x->step, x->first_sample)};
    c.q = pl_address_of(g, a, x->q), c.sq = strides_of(g, x->q);
    c.k = pl_address_of(g, a, x->k), c.sk = strides_of(g, x->k);
    c.v = pl_address_of(g, a, x->v), c.sv = strides_of(g, x->v);
    c.o = pl_address_of(g, a, x->o), c.so = strides_of(g, x->o);
    c.lse = pl_address_of(g, a, x->lse);
    c.d_o = pl_address_of(g, a, x->d_o), c.sdo = strides_of(g, x->d_o);
    c.dq = pl_address_of(g, a, x->dq), c.sdq = strides_of(g, x->dq);
    c.dk = pl_address_of(g, a, x->dk), c.sdk = strides_of(g, x->dk);
    c.dv = pl_address_of(g, a, x->dv), c.sdv = strides_of(g, x->dv);
    call->u.attention_bwd = c;
}

static uint64_t workspace_attention_bwd(const pl_call *c, pl_team team)
{
    return pl_attention_bwd_workspace_bytes(&c->u.attention_bwd, team);
}
static void exec_attention_bwd(const pl_call *c, pl_team team)
{
    pl_attention_bwd_exec(&c->u.attention_bwd, c->workspace, team);
}

const pl_binding pl_binding_ATTENTION_BWD = {bind_attention_bwd, workspace_attention_bwd, exec_attention_bwd};

static void bind_cache_write(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->cache_write.x], *cache = &g->value[n->cache_write.cache];
    call->u.cache_write = (pl_cache_write_call){.sequences = x->shape.dim[0],
                                                .rows = x->shape.dim[1],
                                                .width = x->shape.dim[2],
                                                .ld = x->stride[1],
                                                .stride = x->stride[0],
                                                .room = cache->shape.dim[1],
                                                .x = pl_address_of(g, a, n->cache_write.x),
                                                .cache = pl_address_of(g, a, n->cache_write.cache_new),
                                                .position = pl_address_of(g, a, n->cache_write.position),
                                                .positions = (int64_t)pl_elems_of(g, n->cache_write.position),
                                                .sequence = pl_address_of(g, a, n->cache_write.sequence),
                                                .type = pl_real_of(g, n->cache_write.x),
                                                .cache_type = pl_real_of(g, n->cache_write.cache),
                                                .encoding = cache->encoding,
                                                .ring = n->cache_write.ring != 0};
}

static void exec_cache_write(const pl_call *c, pl_team team) { pl_cache_write_exec(&c->u.cache_write, team); }

const pl_binding pl_binding_CACHE_WRITE = {bind_cache_write, NULL, exec_cache_write};

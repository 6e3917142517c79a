/* Attention, its derivative and the key-value cache. */
#include "backend/backend.h"
#include "ir/op.h"

enum { HEADS, CAUSAL, SCALE, PROBABILITY, SEED, STREAM, SEQUENCES };

/* [B,T,width] as it lies in memory: distance between sequences and between tokens. */
static pl_attention_strides strides_of(const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return (pl_attention_strides){v->stride[0], v->stride[1]};
}

/* step: the input that holds it; the number of the first sample is the next. */
static pl_attention_drops drops_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, int step)
{
    return (pl_attention_drops){.probability = (float)n->attr[PROBABILITY].f,
                                .seed = (uint64_t)n->attr[SEED].i,
                                .stream = (uint64_t)n->attr[STREAM].i,
                                .sequences = n->attr[SEQUENCES].i ? n->attr[SEQUENCES].i : 1,
                                .step = pl_address_of(g, a, n->in[step]),
                                .first_sample = pl_address_of(g, a, n->in[step + 1])};
}

static void bind_attention(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *q = &g->value[n->attention.q], *k = &g->value[n->attention.k];
    call->u.attention = (pl_attention_call){.batch = q->shape.dim[0],
                                            .tq = q->shape.dim[1],
                                            .tk = k->shape.dim[1],
                                            .heads = n->attr[HEADS].i,
                                            .head_width = q->shape.dim[2] / n->attr[HEADS].i,
                                            .causal = (int)n->attr[CAUSAL].i,
                                            .scale = (float)n->attr[SCALE].f,
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
                                            .type = pl_real_of(g, n->attention.q),
                                            .drops = drops_of(g, n, a, 4)};
}

static uint64_t workspace_attention(const pl_call *c, pl_team team)
{
    return pl_attention_workspace_bytes(&c->u.attention, team);
}
static void exec_attention(const pl_call *c, pl_team team) { pl_attention_exec(&c->u.attention, c->workspace, team); }

const pl_binding pl_binding_ATTENTION = {bind_attention, workspace_attention, exec_attention};

static void bind_attention_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *q = &g->value[n->attention_bwd.q], *k = &g->value[n->attention_bwd.k];
    pl_attention_bwd_call c = {.batch = q->shape.dim[0],
                               .tq = q->shape.dim[1],
                               .tk = k->shape.dim[1],
                               .heads = n->attr[HEADS].i,
                               .head_width = q->shape.dim[2] / n->attr[HEADS].i,
                               .causal = (int)n->attr[CAUSAL].i,
                               .scale = (float)n->attr[SCALE].f,
                               .type = pl_real_of(g, n->attention_bwd.q),
                               .drops = drops_of(g, n, a, 6)};
    c.q = pl_address_of(g, a, n->attention_bwd.q), c.sq = strides_of(g, n->attention_bwd.q);
    c.k = pl_address_of(g, a, n->attention_bwd.k), c.sk = strides_of(g, n->attention_bwd.k);
    c.v = pl_address_of(g, a, n->attention_bwd.v), c.sv = strides_of(g, n->attention_bwd.v);
    c.o = pl_address_of(g, a, n->attention_bwd.o), c.so = strides_of(g, n->attention_bwd.o);
    c.lse = pl_address_of(g, a, n->attention_bwd.lse);
    c.d_o = pl_address_of(g, a, n->attention_bwd.d_o), c.sdo = strides_of(g, n->attention_bwd.d_o);
    c.dq = pl_address_of(g, a, n->attention_bwd.dq), c.sdq = strides_of(g, n->attention_bwd.dq);
    c.dk = pl_address_of(g, a, n->attention_bwd.dk), c.sdk = strides_of(g, n->attention_bwd.dk);
    c.dv = pl_address_of(g, a, n->attention_bwd.dv), c.sdv = strides_of(g, n->attention_bwd.dv);
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
    call->u.cache_write = (pl_cache_write_call){.rows = x->shape.dim[1],
                                                .width = x->shape.dim[2],
                                                .ld = x->stride[1],
                                                .room = cache->shape.dim[1],
                                                .x = pl_address_of(g, a, n->cache_write.x),
                                                .cache = pl_address_of(g, a, n->cache_write.cache_new),
                                                .position = pl_address_of(g, a, n->cache_write.position),
                                                .type = pl_real_of(g, n->cache_write.x)};
}

static void exec_cache_write(const pl_call *c, pl_team team) { pl_cache_write_exec(&c->u.cache_write, team); }

const pl_binding pl_binding_CACHE_WRITE = {bind_cache_write, NULL, exec_cache_write};

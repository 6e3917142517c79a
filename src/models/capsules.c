/* Pages to capsules: the recursive vision transformer of docs/capsules.md (arch capsules), under the names of the
 * project that it comes from (TRMVisionEncoderWithChecksums):
 *
 *   encoder.patch_embed.weight, .bias                         a convolution whose windows do not overlap: one linear
 *   encoder.pos_embed.pos_embedding                           [1,N,D]
 *   encoder.L_blocks.I.self_attn.qkv_proj.weight, .o_proj.weight
 *   encoder.L_blocks.I.mlp.gate_up_proj.weight, .down_proj.weight
 *   encoder.pre_pool_norm.weight, .bias
 *   encoder.spatial_pool.attn_conv.weight, .bias              pooling_method attention alone
 *   checksum_head.0.weight, .bias, .2.weight, .bias
 *   children_projection.weight, .bias
 *
 *   f(h): for each block h = norm(h + attention(h)), h = norm(h + swiglu(h)), norm without a gain
 *   x = patches + positions;   flat: x = f(x), H·L times;   trm: H times: L times z_L = f(z_L + z_H + x), then z_H =
 *   f(z_H + z_L); x = z_H. They begin as the vectors encoder.H_init and encoder.L_init [D], the same for all tokens
 *   t = layer_norm(x);  a = softmax over the tokens of a linear layer of t, for each capsule;  sketch = Σ a·t
 *   checksum = linear(relu(linear(sketch)));  children = linear(the tokens of the largest a)
 *
 * One graph holds two programs: init, encode. Ports of the data, in this order: "pages" u8 [B,H,W], "remarks" u8 [B].
 * "encode" stores, in f16, sketches [B,K,D], checksums [B,K,R] and children [B,K,m,D], and the remarks as they came;
 * where its entropy is wanted the attention a, f32 [B,K,N]; for a witness (the extent "witness") the pages, too. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "models/check.h"
#include "models/model.h"
#include "models/recursion.h"

enum { COLOURS = 3, CHECKSUM_WIDTH = 128 };
#define POSITION_STD 0.02

typedef struct encoder {
    pl_model *m;
    const pl_config_encoder *c;
    pl_dtype type; /* of what flows, and of matrices */
    int64_t tokens, width;
} encoder;

static int64_t side_of(const pl_config_encoder *c) { return c->image_size / c->patch_size; }

static pl_dtype type_of(const pl_config_encoder *c)
{
    static const pl_dtype types[] = {[PL_CONFIG_ENCODER_FLOAT32] = PL_DTYPE_F32,
                                     [PL_CONFIG_ENCODER_BFLOAT16] = PL_DTYPE_BF16,
                                     [PL_CONFIG_ENCODER_FLOAT16] = PL_DTYPE_F16};
    return types[c->precision];
}

/* ---- layers ---- */

/* To f16, where it is not so already. */
static pl_id narrow(const encoder *e, pl_id x, const char *name)
{
    pl_net *n = &e->m->net;
    if (n->b.status != PL_OK || n->b.graph->value[x].dtype == PL_DTYPE_F16) return x;
    return pl_net_cast(n, x, PL_DTYPE_F16, "%s", name);
}

static pl_id embed(const encoder *e, pl_id pages)
{
    const int64_t p = e->c->patch_size, d = e->width, colours = COLOURS;
    const pl_patch_embedding how = {.patch = p,
                                    .channels = colours,
                                    .width = d,
                                    .tokens = e->tokens,
                                    .weight_shape = pl_shape_of(4, d, colours, p, p),
                                    .init = pl_affine_torch(e->type, colours * p * p),
                                    .position_init = pl_init_truncated(POSITION_STD),
                                    .type = e->type,
                                    .cast = e->type == PL_DTYPE_F32 ? NULL : "encode.patches",
                                    .patches = "encoder.patch_embed",
                                    .positions = "encoder.pos_embed.pos_embedding",
                                    .position_rank = 3};
    return pl_net_embed_patches(&e->m->net, &how, pages);
}

/* ---- recursion ---- */

static pl_id recur(const encoder *e, pl_id x)
{
    const pl_recursion r = {.n = &e->m->net,
                            .is_all = true,
                            .names = "encoder.L_blocks",
                            .states = "encoder",
                            .count = e->c->layers,
                            .heads = e->c->heads,
                            .width = e->width,
                            .inner = pl_recursion_inner(e->c->expansion, e->width),
                            .eps = e->c->rms_norm_eps,
                            .type = e->type};
    if (e->c->recursion == PL_CONFIG_RECURSION_FLAT) return pl_recursion_flat(&r, x, e->c->H_cycles * e->c->L_cycles);
    return pl_recursion_two_states(&r, x, e->c->H_cycles, e->c->L_cycles);
}

/* ---- capsules ---- */

typedef struct capsules {
    pl_id sketches, attention; /* [B,K,D]; f32 [B,K,N] or PL_NONE */
} capsules;

static capsules attend(const encoder *e, pl_id t)
{
    pl_net *n = &e->m->net;
    const int64_t one = 1;
    pl_capsule_pool_args pool = pl_capsule_pool_none;
    pool.tokens = t;
    pool.logits = pl_net_torch_linear(n, t, e->type, pl_shape_of(4, e->c->target_capsules, e->width, one, one),
                                      "encoder.spatial_pool.attn_conv");
    if (e->c->real_children || e->c->attention_entropy) pool.assignment = PL_NONE;
    pl_build_capsule_pool(&n->b, &pool);
    return (capsules){pool.y, pool.assignment};
}

/* The means of the fields of a grid. */
static capsules average(const encoder *e, pl_id t)
{
    pl_net *n = &e->m->net;
    const int64_t side = side_of(e->c), height = (int64_t)e->c->capsule_grid_shape.item[0],
                  width = (int64_t)e->c->capsule_grid_shape.item[1];
    pl_id image = pl_net_view(n, t, pl_shape_of(4, PL_B(1), side, side, e->width));
    pl_id means = pl_net_mean_of_grid(n, image, height, width);
    return (capsules){pl_net_view(n, means, pl_shape_of(3, PL_B(1), e->c->target_capsules, e->width)), PL_NONE};
}

static pl_id checksums(const encoder *e, pl_id sketches)
{
    return pl_net_two_linears(&e->m->net, sketches, e->type, CHECKSUM_WIDTH, PL_ACT_RELU, e->c->checksum_dim,
                              "checksum_head");
}

static pl_id same_children(const encoder *e, pl_id sketches)
{
    pl_repeat_args a = pl_repeat_none;
    a.x = sketches, a.count = e->c->children_per_capsule;
    return pl_build_repeat(&e->m->net.b, &a);
}

static pl_id children(const encoder *e, pl_id t, capsules k)
{
    pl_net *n = &e->m->net;
    const bool real = k.attention != PL_NONE && e->c->real_children;
    pl_id rows = real ? pl_net_top_rows(n, t, k.attention, e->c->children_per_capsule) : same_children(e, k.sketches);
    return pl_net_torch_linear(n, rows, e->type, pl_shape_of(2, e->width, e->width), "children_projection");
}

static void give_out(const encoder *e, pl_id t, pl_id remarks, pl_id pages)
{
    pl_builder *b = &e->m->net.b;
    const bool witness = pl_facts_value(e->m->extents, "witness", 0);
    const bool attends = e->c->pooling_method == PL_CONFIG_POOLING_ATTENTION;
    pl_store_args store = pl_store_none;
    int count = 0;
    pl_builder_enter(b, "capsules");
    const capsules k = attends ? attend(e, t) : average(e, t);
    store.port[count++] = narrow(e, k.sketches, "encode.sketches");
    store.port[count++] = narrow(e, checksums(e, k.sketches), "encode.checksums");
    store.port[count++] = narrow(e, children(e, t, k), "encode.children");
    store.port[count++] = remarks;
    if (attends && e->c->attention_entropy) store.port[count++] = k.attention;
    if (witness) store.port[count++] = pages;
    pl_builder_leave(b);
    pl_builder_enter(b, "results");
    pl_build_store(b, &store);
    pl_builder_leave(b);
}

static pl_status build(pl_model *m)
{
    const pl_config_encoder *c = &m->config->encoder;
    const encoder e = {.m = m, .c = c, .type = type_of(c), .tokens = side_of(c) * side_of(c), .width = c->width};
    const pl_norm last = {.eps = c->rms_norm_eps};
    const pl_model_port ports[] = {{"pages", PL_DTYPE_U8, pl_shape_of(3, PL_B(1), c->image_size, c->image_size)},
                                   {"remarks", PL_DTYPE_U8, pl_shape_of(1, PL_B(1))}};
    pl_id load[2];
    m->net.seed = (uint64_t)c->seed;
    pl_model_begin_program(m, "encode");
    PL_TRY(pl_model_load(m, ports, 2, load));
    pl_id x = recur(&e, embed(&e, load[0]));
    give_out(&e, pl_net_norm(&m->net, x, &last, "encoder.pre_pool_norm"), load[1], load[0]);
    return m->net.b.status;
}

/* ---- its part of a config ---- */

static pl_status check_grid(const pl_config *cfg, pl_error *err)
{
    const pl_config_encoder *c = &cfg->encoder;
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t rows = (int64_t)c->capsule_grid_shape.item[0], columns = (int64_t)c->capsule_grid_shape.item[1];
    if (rows * columns != c->target_capsules) {
        pl_config_blame(cfg, "encoder.capsule_grid_shape", "encoder.target_capsules", where);
        return pl_fail(err, PL_E_CONFIG,
                       "%s: encoder.capsule_grid_shape %" PRId64 " by %" PRId64
                       " is not encoder.target_capsules %" PRId64 "; make rows times columns that number",
                       where, rows, columns, c->target_capsules);
    }
    if (c->pooling_method == PL_CONFIG_POOLING_ATTENTION || (rows <= side_of(c) && columns <= side_of(c))) return PL_OK;
    pl_config_blame(cfg, "encoder.capsule_grid_shape", "encoder.patch_size", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: a page has %" PRId64 " patches either way, fewer than encoder.capsule_grid_shape %" PRId64
                   " by %" PRId64 "; make patches smaller, or the grid",
                   where, side_of(c), rows, columns);
}

static pl_status check_children(const pl_config *cfg, pl_error *err)
{
    const pl_config_encoder *c = &cfg->encoder;
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t tokens = side_of(c) * side_of(c);
    const bool real = c->real_children && c->pooling_method == PL_CONFIG_POOLING_ATTENTION;
    if (!real || c->children_per_capsule <= tokens) return PL_OK;
    pl_config_blame(cfg, "encoder.children_per_capsule", "encoder.patch_size", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: encoder.children_per_capsule %" PRId64 " is more than the %" PRId64
                   " patches of a page; take at most that",
                   where, c->children_per_capsule, tokens);
}

/* Each application of a block is some ten nodes of the graph. */
enum { BLOCKS_MAX = 4096 };

static pl_status check_depth(const pl_config *cfg, pl_error *err)
{
    const pl_config_encoder *c = &cfg->encoder;
    char where[PL_CONFIG_WHERE_BYTES];
    const bool two = c->recursion == PL_CONFIG_RECURSION_TRM;
    const int64_t blocks = c->layers * c->H_cycles * (c->L_cycles + two);
    if (pl_recursion_inner(c->expansion, c->width) < 1)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: encoder.expansion %g leaves the feed-forward layers without a number; take a larger one",
                       pl_config_where(cfg, "encoder.expansion", where, sizeof where), c->expansion);
    if (blocks <= BLOCKS_MAX) return PL_OK;
    pl_config_blame(cfg, "encoder.L_cycles", "encoder.H_cycles", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: encoder.layers, H_cycles and L_cycles apply %" PRId64
                   " blocks to each text; make them smaller, at most %d can be planned",
                   where, blocks, BLOCKS_MAX);
}

static pl_status check(const pl_config *cfg, pl_error *err)
{
    const pl_config_encoder *c = &cfg->encoder;
    PL_TRY(check_depth(cfg, err));
    PL_TRY(pl_check_divides(cfg, "encoder.image_size", c->image_size, "encoder.patch_size", c->patch_size, err));
    PL_TRY(pl_check_divides(cfg, "encoder.width", c->width, "encoder.heads", c->heads, err));
    PL_TRY(check_grid(cfg, err));
    return check_children(cfg, err);
}

const pl_arch pl_arch_capsules = {.build = build, .check = check, .plan_bytes_per_layer = 4 << 10};

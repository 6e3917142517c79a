/* Pages to words, through capsules (arch hybrid): docs/hybrid.md, which learns what arch capsules computes.
 *
 *   clip.*       the frozen tower, CLIP's vision transformer, under the names of its files on Hugging Face
 *   vit.*        the trained tower, a vision transformer under the names of ViTModel
 *   fusion.*     f = g·clip + (1 − g)·vit, a gate for each token, or attention between the two; without the three
 *                (fusion_type none) f are the patches, embedded by encoder.patch_embed and encoder.pos_embed
 *   adapter.*    layers after it: s·layers(f) + (1 − s)·f, s for each token
 *   encoder.*    blocks, H·L times, and the capsule heads (models/capsules.c)
 *   reasoner.*   over the capsules: L times z_L = net(z_L + z_H + capsules), then z_H = net(z_H + z_L), H times.
 *                Gradients pass through the last of these cycles alone, so nothing of the others is kept
 *   planner.*    ways to go on, refined by layers that all share, weighed by a score, and a gate for each page
 *   q_head, output_head
 *
 * Weights are in f32. That of the trained tower's convolution, whose windows do not overlap, [out, 3, p, p] elsewhere,
 * is the matrix [out, 3·p·p] here.
 *
 * One graph holds three programs: init, train, evaluate; for export infer in place of evaluate, which stores of "pages"
 * alone the logits of words f32 [B,K,…] and of halting f32 [B,1], and the capsules f32 [B,K,D]; or init and encode
 * (hybrid_encode.c).
 *
 * Ports of the data, in this order: "pages" u8 [B,H,W], "labels"
 * i32 [B,K], −1 where a page has no such word; and where what the frozen tower makes is kept, "features" f32 [B,N,D]
 * and "missing" i32 [1]: the tower runs where that is 1, in the place of the features, and gives them back. Where what
 * the denoiser makes is kept, "denoised" u8 [B,H,W,3] and "missing", likewise. Where a trained policy says how pages
 * are drawn, "pages" come in all sizes of the font, and "feature" after the labels.
 * "train.loss" is the mean of all that docs/hybrid.md lists, "evaluate.loss" the sum of the cross-entropy of the words;
 * both f64 [1]. "evaluate" stores of each sample what base/told.h lists: how many words it has, how many are read
 * rightly, what gates and planner did; and after that the gates of each part that there is: fusion,
 * adapter, planner.
 *
 * denoiser.only, page_policy.only and n2n_pretrain.only: both programs are those of another training. Of the denoiser
 * alone (hybrid_denoiser.c), denoiser.*, for which the data bring "noise" f32 and "numbers" i64 [B,…] (base/rollout.h);
 * of the policy alone (hybrid_policy.c), policy.* and the denoiser that it tries, for which they bring "pages" in all
 * sizes of the font, "feature" in the place of the labels, "noise" and "numbers"; or of the adapter alone
 * (hybrid_n2n.c), whose model has clip.* and adapter.*. "evaluate.loss" is then the sum of the mean squared error of
 * each page. */
#include "models/hybrid.h"

#include <inttypes.h>
#include <string.h>

#include "base/policy.h"
#include "base/rollout.h"
#include "base/row_loss.h"
#include "models/check.h"
#include "models/recursion.h"

#define WEIGHT_HALT   0.5
#define WEIGHT_RECALL 0.5
#define WEIGHT_CHILD  0.2
#define WEIGHT_NORM   0.01
#define WEIGHT_CODES  0.25

/* ---- losses ---- */

/* The mean over all words of the batch; where pages stay for several steps, over those of a page and then over pages,
 * for how many words the pages of a step have is then known to nobody before the step. */
static void add_words(const pl_hybrid *k, pl_id logits, pl_id right, pl_id *loss)
{
    const bool by_page = k->carried != NULL;
    const pl_id scale = by_page          ? pl_hybrid_scale(k, 1, 1)
                        : k->n->training ? k->n->input[PL_INPUT_ITEM_SCALE]
                                         : pl_hybrid_number(k, 1);
    pl_loss_term term = pl_loss_term_of(scale, *loss);
    if (by_page) term.counted = pl_hybrid_column(k, right, PL_RIGHT_WORDS);
    *loss = pl_net_cross_entropy(k->n, logits, k->labels, &term);
}

static void tell(const pl_hybrid *k, pl_id right, pl_id high)
{
    k->told->halt = pl_hybrid_halt(k, high);
    const pl_id gates[] = {k->told->fusion_gates, k->told->adapter_gates, k->told->planner_gate};
    pl_store_args store = pl_store_none;
    pl_id *port = store.port;
    *port++ = pl_hybrid_tell(k, right);
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (gates[i] != PL_NONE) *port++ = gates[i];
    pl_build_store(&k->n->b, &store);
}

static pl_id logits_of(const pl_hybrid *k, pl_id planned, pl_hybrid_code *code)
{
    return pl_hybrid_linear(k, pl_hybrid_find_code(k, planned, code), k->words + PL_HYBRID_CONTROLS,
                            "output_head.output_proj");
}

static void read_words(pl_hybrid *k, pl_id planned, pl_id high, pl_id *loss)
{
    pl_builder *b = &k->n->b;
    pl_hybrid_code code;
    pl_count_right_args count = pl_count_right_none;
    pl_builder_enter(b, "words");
    count.logits = logits_of(k, planned, &code), count.target = k->labels;
    const pl_id right = pl_build_count_right(b, &count);
    add_words(k, count.logits, right, loss);
    pl_builder_leave(b);
    if (!k->n->training) {
        tell(k, right, high);
        return;
    }
    k->counted = pl_hybrid_column(k, right, PL_RIGHT_WORDS);
    if (code.code != PL_NONE)
        pl_hybrid_learn_code(k, planned, &code, pl_hybrid_scale(k, WEIGHT_CODES, k->capsules * k->width), loss);
    pl_builder_enter(b, "halting");
    pl_id halt = pl_hybrid_halt(k, high);
    const pl_loss_term term = pl_hybrid_term(k, pl_hybrid_scale(k, WEIGHT_HALT, 1), *loss);
    *loss = pl_net_logit_loss(k->n, halt, pl_hybrid_column(k, right, PL_RIGHT_ALL), &term);
    if (k->carried) pl_hybrid_end_carry(k, halt);
    pl_builder_leave(b);
}

/* The state is to be like the capsule, the mean of its children too, and a checksum of length one. */
static void recall(const pl_hybrid *k, const pl_hybrid_capsules *c, pl_id high, pl_id *loss)
{
    pl_net *n = k->n;
    pl_builder_enter(&n->b, "recall");
    pl_loss_term term = pl_hybrid_term(k, pl_hybrid_scale(k, WEIGHT_RECALL, k->capsules), *loss);
    term.sum = pl_net_cosine_loss(n, high, c->sketches, &term);
    term.scale = pl_hybrid_scale(k, WEIGHT_RECALL * WEIGHT_CHILD, k->capsules * k->width);
    term.sum = pl_net_squared_error(n, c->child_means, c->sketches, &term);
    term.scale = pl_hybrid_scale(k, WEIGHT_RECALL * WEIGHT_NORM, k->capsules);
    *loss = pl_net_norm_penalty(n, c->checksums, &term);
    pl_builder_leave(&n->b);
}

/* ---- programs ---- */

/* Those of the data, or where a page stays that page. The labels go with them. */
static pl_id take_pages(pl_hybrid *k, pl_id fresh)
{
    if (!k->carried) return fresh;
    pl_builder_enter(&k->n->b, "carry");
    pl_id pages = pl_hybrid_take(k, k->carried->pages, fresh, 0);
    k->labels = pl_hybrid_take(k, k->carried->labels, k->labels, k->words);
    pl_hybrid_keep(k, &k->carried->pages, pages);
    pl_hybrid_keep(k, &k->carried->labels, k->labels);
    pl_builder_leave(&k->n->b);
    return pages;
}

static void read_pages(pl_hybrid *k, pl_id pages, pl_id *loss)
{
    pl_hybrid_capsules c = {.sketches = PL_NONE};
    pl_id tokens = pl_hybrid_see(k, take_pages(k, pages));
    pl_hybrid_encode(k, tokens, &c);
    pl_id high = pl_hybrid_reason(k, c.sketches);
    read_words(k, pl_hybrid_plan(k, high), high, loss);
    if (k->n->training) recall(k, &c, high, loss);
}

/* What its steps begin with, before their micro-batches. */
static void begin_reading(pl_hybrid *k, pl_hybrid_carried *carried)
{
    k->carried = k->n->training && pl_hybrid_carries(k->m->config) ? carried : NULL;
    if (k->carried) pl_hybrid_begin_carry(k, carried);
    pl_hybrid_begin_fusion(k);
    pl_hybrid_begin_codes(k);
}

static const char *const aims[] = {[PL_HYBRID_READS] = NULL,
                                   [PL_HYBRID_ADAPTS] = "n2n_pretrain.only",
                                   [PL_HYBRID_DENOISES] = "denoiser.only",
                                   [PL_HYBRID_CHOOSES] = "page_policy.only"};

pl_hybrid_aim pl_hybrid_aim_of(const pl_config *c)
{
    return c->page_policy.only    ? PL_HYBRID_CHOOSES
           : c->denoiser.only     ? PL_HYBRID_DENOISES
           : c->n2n_pretrain.only ? PL_HYBRID_ADAPTS
                                  : PL_HYBRID_READS;
}

const char *pl_hybrid_aim_key(const pl_config *c) { return aims[pl_hybrid_aim_of(c)]; }

bool pl_hybrid_has_noise(const pl_config *c)
{
    const pl_hybrid_aim aim = pl_hybrid_aim_of(c);
    return aim == PL_HYBRID_DENOISES || aim == PL_HYBRID_CHOOSES || c->reading.noise > 0;
}

/* Ports of the data, in their order; how many there are. to: what becomes of each. */
static size_t list_ports(pl_hybrid *k, pl_id *pages, pl_model_port port[], pl_id *to[])
{
    const pl_config *c = k->m->config;
    size_t n = 0;
    const bool chooses = pl_hybrid_aim_of(c) == PL_HYBRID_CHOOSES, in_sizes = chooses || pl_hybrid_has_policy(c);
    const bool appended = pl_hybrid_has_policy(c) && pl_hybrid_has_noise(c);
    const int64_t sizes = PL_POLICY_SIZES, columns = PL_ROLLOUT_COLUMNS,
                  feature = PL_POLICY_FEATURES + 1 + (appended ? columns : 0);
    const pl_shape page = pl_shape_of(3, PL_B(1), k->side, k->side), one = pl_shape_of(1, (int64_t)1);
    to[n] = pages;
    port[n++] =
        (pl_model_port){"pages", PL_DTYPE_U8, in_sizes ? pl_shape_of(4, PL_B(1), sizes, k->side, k->side) : page};
    to[n] = &k->labels;
    if (!chooses) port[n++] = (pl_model_port){"labels", PL_DTYPE_I32, pl_shape_of(2, PL_B(1), k->capsules)};
    to[n] = &k->feature;
    if (in_sizes) port[n++] = (pl_model_port){"feature", PL_DTYPE_F32, pl_shape_of(2, PL_B(1), feature)};
    if (pl_hybrid_has_noise(c)) {
        to[n] = &k->noise;
        if (!appended) port[n++] = (pl_model_port){"noise", PL_DTYPE_F32, pl_shape_of(2, PL_B(1), columns)};
        to[n] = &k->numbers;
        port[n++] = (pl_model_port){"numbers", PL_DTYPE_I64, pl_shape_of(2, PL_B(1), (int64_t)PL_ROLLOUT_IDS)};
        return n;
    }
    const bool keeps_pages = pl_hybrid_keeps_pages(c);
    if (!keeps_pages && !c->vision_encoder.features_cache) return n;
    to[n] = keeps_pages ? &k->denoised : &k->features;
    if (!keeps_pages)
        port[n++] = (pl_model_port){"features", PL_DTYPE_F32, pl_shape_of(3, PL_B(1), k->tokens, k->width)};
    else if (!in_sizes)
        port[n++] = (pl_model_port){"denoised", PL_DTYPE_U8, pl_hybrid_image(k, 1)};
    to[n] = &k->missing;
    port[n++] = (pl_model_port){"missing", PL_DTYPE_I32, one};
    return n;
}

void pl_hybrid_forget_ports(pl_hybrid *k)
{
    k->labels = k->feature = k->noise = k->numbers = k->features = k->denoised = k->missing = PL_NONE;
}

static pl_status begin_micro(pl_hybrid *k, pl_id program, pl_id *pages)
{
    pl_model_port port[PL_OUTS_OF_LOAD];
    pl_id load[PL_OUTS_OF_LOAD], *to[PL_OUTS_OF_LOAD + 1];
    pl_hybrid_forget_ports(k);
    const size_t ports = list_ports(k, pages, port, to);
    PL_TRY(pl_model_begin_micro(k->m, program, port, ports, load));
    for (size_t i = 0; i < ports; i++) *to[i] = load[i];
    if (k->noise == PL_NONE && pl_hybrid_has_noise(k->m->config)) { /* after the feature */
        k->noise = pl_net_slice(k->n, k->feature, PL_POLICY_FEATURES + 1, PL_ROLLOUT_COLUMNS);
    }
    if (k->denoised == PL_NONE && k->missing != PL_NONE && k->features == PL_NONE) /* in the place of the pages */
        k->denoised = pl_net_view(k->n, *pages, pl_hybrid_image(k, 1));
    return k->n->b.status;
}

static pl_status build_program(pl_hybrid *k, const char *name, bool training)
{
    pl_model *m = k->m;
    const pl_hybrid_aim aim = pl_hybrid_aim_of(m->config);
    pl_id program = pl_model_begin_program(m, name), pages = PL_NONE;
    m->net.training = training;
    pl_id loss = pl_model_loss(m, name);
    pl_hybrid_told told = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    pl_hybrid_carried carried;
    k->told = training ? NULL : &told;
    if (aim == PL_HYBRID_READS) begin_reading(k, &carried);
    PL_TRY(begin_micro(k, program, &pages));
    if (aim == PL_HYBRID_CHOOSES) {
        pl_hybrid_learn_policy(k, pages, &loss);
        return m->net.b.status;
    }
    pages = pl_hybrid_make_pages(k, pages);
    if (aim == PL_HYBRID_DENOISES)
        pl_hybrid_learn_to_denoise(k, pages, &loss);
    else if (aim == PL_HYBRID_ADAPTS)
        pl_hybrid_learn_from_noise(k, pages, &loss);
    else
        read_pages(k, pages, &loss);
    return m->net.b.status;
}

/* For other programs (the extent "export"): pages alone come in, as they are, and logits go out. */
static pl_status build_inference(pl_hybrid *k)
{
    pl_model *m = k->m;
    const pl_model_port port[] = {{"pages", PL_DTYPE_U8, pl_shape_of(3, PL_B(1), k->side, k->side)}};
    pl_hybrid_told told = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    pl_hybrid_capsules c = {.sketches = PL_NONE};
    pl_hybrid_code code;
    pl_store_args store = pl_store_none;
    pl_id program = pl_model_begin_program(m, "infer"), load[1];
    m->net.training = false;
    k->told = &told, k->carried = NULL;
    pl_hybrid_forget_ports(k);
    pl_hybrid_begin_fusion(k);
    pl_hybrid_begin_codes(k);
    PL_TRY(pl_model_begin_micro(m, program, port, 1, load));
    pl_hybrid_encode(k, pl_hybrid_see(k, pl_hybrid_make_pages(k, load[0])), &c);
    pl_id high = pl_hybrid_reason(k, c.sketches), planned = pl_hybrid_plan(k, high);
    pl_builder_enter(&m->net.b, "words");
    store.port[0] = logits_of(k, planned, &code);
    pl_builder_leave(&m->net.b);
    store.port[1] = pl_hybrid_halt(k, high);
    store.port[2] = c.sketches;
    pl_build_store(&m->net.b, &store);
    return m->net.b.status;
}

static pl_status build(pl_model *m)
{
    static const pl_input inputs[] = {PL_INPUT_LR, PL_INPUT_STEP, PL_INPUT_ITEM_SCALE, PL_INPUT_FIRST_SAMPLE};
    const pl_config *c = m->config;
    const int64_t patches = c->vision_encoder.image_size / c->vision_encoder.patch_size;
    pl_hybrid k = {.m = m,
                   .n = &m->net,
                   .coloured = pl_hybrid_makes_pages(c),
                   .side = c->vision_encoder.image_size,
                   .tokens = patches * patches,
                   .width = c->vision_encoder.width,
                   .capsules = c->vision_encoder.target_capsules,
                   .words = c->reading.words};
    pl_model_inputs(m, inputs, sizeof inputs / sizeof *inputs);
    PL_TRY(m->net.b.status);
    if (pl_facts_value(m->extents, PL_HYBRID_ENCODES, 0)) return pl_hybrid_build_encode(&k);
    PL_TRY(build_program(&k, "train", true));
    const bool is_exported = pl_facts_value(m->extents, "export", 0);
    return is_exported && pl_hybrid_can_be_used(c) ? build_inference(&k) : build_program(&k, "evaluate", false);
}

/* ---- its part of a config ---- */

static pl_status check_rope(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t width = c->vision_encoder.width / c->reasoning.heads;
    if (width % 2 == 0) return PL_OK;
    pl_config_blame(c, "reasoning.heads", "vision_encoder.width", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: reasoning.heads %" PRId64 " gives heads %" PRId64
                   " numbers wide, which cannot be turned in pairs; take a number that gives an even width",
                   where, c->reasoning.heads, width);
}

static pl_status check_children(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t side = c->vision_encoder.image_size / c->vision_encoder.patch_size, tokens = side * side;
    if (c->vision_encoder.children_per_capsule <= tokens) return PL_OK;
    pl_config_blame(c, "vision_encoder.children_per_capsule", "vision_encoder.patch_size", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: vision_encoder.children_per_capsule %" PRId64 " is more than the %" PRId64
                   " patches of a page; take fewer",
                   where, c->vision_encoder.children_per_capsule, tokens);
}

static pl_status check_inner(const pl_config *c, const char *key, double expansion, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (pl_recursion_inner(expansion, c->vision_encoder.width) > 0) return PL_OK;
    pl_config_blame(c, key, "vision_encoder.width", where);
    return pl_fail(err, PL_E_CONFIG, "%s: %s %g leaves the feed-forward layers no width; make it larger", where, key,
                   expansion);
}

static pl_status check_thawed(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t thawed = c->vision_encoder.unfreeze_pretrained_layers, layers = c->vision_encoder.pretrained_layers;
    if (thawed <= layers) return PL_OK;
    pl_config_blame(c, "vision_encoder.unfreeze_pretrained_layers", "vision_encoder.pretrained_layers", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: vision_encoder.unfreeze_pretrained_layers %" PRId64 " is more than the %" PRId64
                   " layers that the frozen tower has; take fewer",
                   where, thawed, layers);
}

static pl_status check_kept(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (c->vision_encoder.features_cache && pl_hybrid_carries(c)) {
        pl_config_blame(c, "vision_encoder.features_cache", "reasoning.halt_max_steps", where);
        return pl_fail(
            err, PL_E_CONFIG,
            "%s: vision_encoder.features_cache keeps what the tower makes of the pages that a step brings, and "
            "with reasoning.halt_max_steps above 1 a step works on those that stay, too; leave one of the two "
            "out",
            where);
    }
    if (!c->vision_encoder.features_cache || !c->vision_encoder.unfreeze_pretrained_layers) return PL_OK;
    pl_config_blame(c, "vision_encoder.features_cache", "vision_encoder.unfreeze_pretrained_layers", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: vision_encoder.features_cache keeps what a frozen tower makes, and "
                   "vision_encoder.unfreeze_pretrained_layers trains a part of it; leave one of the two out",
                   where);
}

/* What there is to say of towers, where there are none. */
static pl_status check_towers(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_vision_encoder *v = &c->vision_encoder;
    const struct {
        bool is_said;
        const char *key;
    } of_towers[] = {{v->pretrained_weights[0] != 0, "vision_encoder.pretrained_weights"},
                     {v->unfreeze_pretrained_layers != 0, "vision_encoder.unfreeze_pretrained_layers"},
                     {v->features_cache != 0, "vision_encoder.features_cache"},
                     {v->progressive_fusion, "vision_encoder.progressive_fusion"},
                     {c->n2n_pretrain.enabled, "n2n_pretrain.enabled"},
                     {c->n2n_pretrain.only, "n2n_pretrain.only"}};
    for (size_t i = 0; i < sizeof of_towers / sizeof *of_towers && !pl_hybrid_has_towers(c); i++) {
        if (!of_towers[i].is_said) continue;
        pl_config_blame(c, "vision_encoder.fusion_type", of_towers[i].key, where);
        return pl_fail(err, PL_E_CONFIG,
                       "%s: vision_encoder.fusion_type none leaves both towers out, and %s is of these; leave one of "
                       "the two out",
                       where, of_towers[i].key);
    }
    return PL_OK;
}

/* Its schedule is of all steps, and of gates. */
static pl_status check_progress(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_fusion type = c->vision_encoder.fusion_type;
    if (c->vision_encoder.progressive_fusion && type == PL_CONFIG_FUSION_AVERAGE)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: vision_encoder.progressive_fusion moves the fusion's gates, and vision_encoder.fusion_type "
                       "average leaves them at one half; leave one of the two out",
                       pl_config_blame(c, "vision_encoder.progressive_fusion", "vision_encoder.fusion_type", where));
    if (c->vision_encoder.progressive_fusion && type == PL_CONFIG_FUSION_ATTENTION) {
        pl_config_blame(c, "vision_encoder.progressive_fusion", "vision_encoder.fusion_type", where);
        return pl_fail(err, PL_E_CONFIG,
                       "%s: vision_encoder.progressive_fusion adds to the logits of the fusion's gates, and "
                       "vision_encoder.fusion_type attention has no gate; leave it out, or take gated",
                       where);
    }
    if (!c->vision_encoder.progressive_fusion || c->train.steps != PL_CONFIG_AUTO) return PL_OK;
    pl_config_blame(c, "vision_encoder.progressive_fusion", "train.steps", where);
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: vision_encoder.progressive_fusion follows the share of the steps that are done, and train.steps is auto: "
        "write \"steps: …\" under train",
        where);
}

/* The documented section has keys for what other sections say, too. */
static pl_status check_frozen(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *const freeze = "task_training.freeze_pretrained", *const layers =
                                                                      "vision_encoder.unfreeze_pretrained_layers";
    const int64_t thawed = c->vision_encoder.unfreeze_pretrained_layers;
    if (c->task_training.freeze_pretrained == PL_SWITCH_OFF && thawed == 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: task_training.freeze_pretrained is false: say with %s how many of the %" PRId64
                       " layers of the frozen tower, the last ones, are trained",
                       pl_config_where(c, freeze, where, sizeof where), layers, c->vision_encoder.pretrained_layers);
    if (c->task_training.freeze_pretrained == PL_SWITCH_ON && thawed)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: task_training.freeze_pretrained is true, and %s %" PRId64 "; leave one of the two out",
                       pl_config_blame(c, freeze, layers, where), layers, thawed);
    return PL_OK;
}

static pl_status check_n2n(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *const key = c->n2n_pretrain.only ? "n2n_pretrain.only" : "n2n_pretrain.enabled",
                      *const layers = "vision_encoder.adapter_layers",
                      *const freeze = "task_training.freeze_n2n_adapter",
                      *const thaw = "vision_encoder.unfreeze_pretrained_layers";
    if (!c->n2n_pretrain.only && !c->n2n_pretrain.enabled) return PL_OK;
    if (c->vision_encoder.adapter_layers == 0)
        return pl_fail(err, PL_E_CONFIG, "%s: %s is true, and with %s 0 there is no adapter to train; write false",
                       pl_config_blame(c, key, layers, where), key, layers);
    if (!c->n2n_pretrain.only) return PL_OK;
    if (c->task_training.freeze_n2n_adapter)
        return pl_fail(err, PL_E_CONFIG, "%s: %s trains the adapter alone, and %s says that it stays; leave one out",
                       pl_config_blame(c, key, freeze, where), key, freeze);
    if (c->vision_encoder.unfreeze_pretrained_layers)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s trains the adapter alone, and %s a part of the frozen tower; leave one out",
                       pl_config_blame(c, key, thaw, where), key, thaw);
    return PL_OK;
}

/* Its grid is halved at each level. */
static pl_status check_grid(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t side = c->vision_encoder.image_size, parts = INT64_C(1) << c->denoiser.depth;
    if (side % parts == 0) return PL_OK;
    pl_config_blame(c, "denoiser.depth", "vision_encoder.image_size", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: denoiser.depth %" PRId64
                   " halves the grid of a page so often, and vision_encoder.image_size %" PRId64
                   " is no multiple of %" PRId64 "; take fewer levels",
                   where, c->denoiser.depth, side, parts);
}

const char *pl_hybrid_narrows(const pl_config *c)
{
    const pl_config_frozen_storage as = c->vision_encoder.pretrained_precision;
    const bool searches = (c->fit.allow & (PL_ALLOW_FROZEN_BF16 | PL_ALLOW_FROZEN_FP16)) != 0;
    if (as == PL_CONFIG_FROZEN_AUTO) return searches ? "fit.allow" : NULL;
    return as == PL_CONFIG_FROZEN_F32 ? NULL : "vision_encoder.pretrained_precision";
}

/* Its weights come out of another run's files as they are there, in f32. */
static pl_status check_narrow(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *key = pl_hybrid_narrows(c);
    if (!key) return PL_OK;
    pl_config_blame(c, "dataset.denoiser_path", key, where);
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: dataset.denoiser_path brings weights in f32, and %s stores what is frozen in 16 bits; leave one "
        "of the two out",
        where, key);
}

static pl_status check_used_policy(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (!c->dataset.use_policy || pl_hybrid_is_denoised(c)) return PL_OK;
    const char *key = c->dataset.use_denoiser ? "dataset.denoiser_path" : "dataset.use_denoiser";
    return pl_fail(err, PL_E_CONFIG,
                   "%s: dataset.use_policy draws pages as the policy says that was trained with the denoiser of "
                   "dataset.denoiser_path, and %s; train it with `stage` policy, and name its folder",
                   pl_config_blame(c, "dataset.use_policy", key, where),
                   c->dataset.use_denoiser ? "that names none" : "dataset.use_denoiser is false");
}

/* What the tower makes of a page is kept under the page's number, as if it were always the same page. */
static pl_status check_made_pages(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *key = c->reading.noise > 0 ? "reading.noise" : "dataset.denoiser_path";
    PL_TRY(check_used_policy(c, err));
    if (!pl_hybrid_makes_pages(c)) return PL_OK;
    if (pl_hybrid_is_denoised(c)) {
        PL_TRY(check_grid(c, err));
        PL_TRY(check_narrow(c, err));
    }
    if (pl_hybrid_keeps_pages(c) && c->reading.noise > 0)
        return pl_fail(
            err, PL_E_CONFIG,
            "%s: dataset.cache_images keeps what the denoiser makes of a page, and with reading.noise a page "
            "is another each time that it is seen; leave one of the two out",
            pl_config_blame(c, "dataset.cache_images", "reading.noise", where));
    if (!c->vision_encoder.features_cache) return PL_OK;
    pl_config_blame(c, key, "vision_encoder.features_cache", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: vision_encoder.features_cache keeps what the tower makes of pages as they are drawn, and %s "
                   "makes others of them; leave one of the two out",
                   where, key);
}

/* Pages alone are trained with, or what is said of them: no tower, no adapter. */
static pl_status check_alone(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *const only = pl_hybrid_aim_key(c);
    const char *key = c->vision_encoder.features_cache                         ? "vision_encoder.features_cache"
                      : c->vision_encoder.pretrained_weights[0]                ? "vision_encoder.pretrained_weights"
                      : c->n2n_pretrain.only                                   ? "n2n_pretrain.only"
                      : c->denoiser.only && strcmp(only, "denoiser.only") != 0 ? "denoiser.only"
                                                                               : NULL;
    PL_TRY(check_grid(c, err));
    if (!key) return PL_OK;
    pl_config_blame(c, only, key, where);
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: %s trains the %s alone, which has no frozen tower and no adapter, and there is %s; leave one of "
        "the two out",
        where, only, c->page_policy.only ? "policy" : "denoiser", key);
}

/* It tries what a denoiser makes of pages, and without one nothing is tried. */
static pl_status check_policy(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    PL_TRY(check_alone(c, err));
    if (pl_hybrid_is_denoised(c)) return check_narrow(c, err);
    const char *key = c->dataset.use_denoiser ? "dataset.denoiser_path" : "dataset.use_denoiser";
    pl_config_blame(c, "page_policy.only", key, where);
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: page_policy.only learns how pages pass a denoiser, and %s; train one with `stage` denoiser, and name "
        "its folder with dataset.denoiser_path",
        where, c->dataset.use_denoiser ? "dataset.denoiser_path names none" : "dataset.use_denoiser is false");
}

static pl_status check_aim(const pl_config *c, pl_error *err)
{
    switch (pl_hybrid_aim_of(c)) {
    case PL_HYBRID_CHOOSES:
        return check_policy(c, err);
    case PL_HYBRID_DENOISES:
        return check_alone(c, err);
    default:
        return check_made_pages(c, err);
    }
}

static pl_status check_documented(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t width = c->reasoning.width;
    if (width != PL_CONFIG_AUTO && width != c->vision_encoder.width)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: reasoning.width %" PRId64 " is not vision_encoder.width %" PRId64
                       ", and capsules go from one to the other as they are; leave it out",
                       pl_config_blame(c, "reasoning.width", "vision_encoder.width", where), width,
                       c->vision_encoder.width);
    PL_TRY(check_n2n(c, err));
    PL_TRY(check_aim(c, err));
    return check_frozen(c, err);
}

static pl_status check(const pl_config *c, pl_error *err)
{
    const int64_t width = c->vision_encoder.width;
    const char *const width_key = "vision_encoder.width";
    PL_TRY(pl_check_divides(c, "vision_encoder.image_size", c->vision_encoder.image_size, "vision_encoder.patch_size",
                            c->vision_encoder.patch_size, err));
    PL_TRY(pl_check_divides(c, width_key, width, "vision_encoder.vit_heads", c->vision_encoder.vit_heads, err));
    PL_TRY(pl_check_divides(c, width_key, width, "vision_encoder.heads", c->vision_encoder.heads, err));
    PL_TRY(pl_check_divides(c, width_key, width, "reasoning.heads", c->reasoning.heads, err));
    PL_TRY(check_towers(c, err));
    PL_TRY(check_thawed(c, err));
    PL_TRY(check_kept(c, err));
    PL_TRY(check_rope(c, err));
    PL_TRY(check_inner(c, "vision_encoder.expansion", c->vision_encoder.expansion, err));
    PL_TRY(check_inner(c, "reasoning.expansion", c->reasoning.expansion, err));
    PL_TRY(check_progress(c, err));
    PL_TRY(pl_check_binary(c, err));
    PL_TRY(check_documented(c, err));
    return check_children(c, err);
}

const pl_arch pl_arch_hybrid = {.build = build, .check = check, .plan_bytes_per_layer = 4 << 10};

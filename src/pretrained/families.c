#include "pretrained/families.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SILU .activation_key = "hidden_act", .activation = "silu", .form.is_gated = true
#define GEMMA                                                                                                          \
    .head_width = 256, .eps = 1e-6, .is_tied = true, .adds_one = true, .form.is_gated = true,                          \
    .scales_embedding = true, .query_bias = PL_BIAS_OPTION, .output_bias = PL_BIAS_OPTION,                             \
    .activation = "gelu_pytorch_tanh"

static const pl_lm_family families[] = {
    {.name = "llama",
     .class_name = "LlamaForCausalLM",
     .arch = "llama",
     .vocab = 32000,
     .width = 4096,
     .inner = 11008,
     .layers = 32,
     .heads = 32,
     .context = 2048,
     .theta = 1e4,
     .eps = 1e-6,
     .query_bias = PL_BIAS_OPTION,
     .output_bias = PL_BIAS_OPTION,
     .inner_bias = PL_BIAS_OPTION,
     .is_permuted = true,
     SILU},
    {.name = "mistral",
     .class_name = "MistralForCausalLM",
     .vocab = 32000,
     .width = 4096,
     .inner = 14336,
     .layers = 32,
     .heads = 32,
     .key_heads = 8,
     .context = 131072,
     .window = 4096,
     .theta = 1e4,
     .eps = 1e-6,
     .window_rule = PL_WINDOW_ALL,
     SILU},
    {.name = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .arch = "qwen2",
     .vocab = 151936,
     .width = 4096,
     .inner = 22016,
     .layers = 32,
     .heads = 32,
     .key_heads = 32,
     .context = 32768,
     .window = 4096,
     .theta = 1e4,
     .eps = 1e-6,
     .query_bias = PL_BIAS_ALWAYS,
     .window_rule = PL_WINDOW_FROM_LAYER,
     SILU},
    {.name = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .arch = "qwen3",
     .vocab = 151936,
     .width = 4096,
     .inner = 22016,
     .layers = 32,
     .heads = 32,
     .key_heads = 32,
     .head_width = 128,
     .context = 32768,
     .window = 4096,
     .theta = 1e4,
     .eps = 1e-6,
     .form.has_qk_norm = true,
     .query_bias = PL_BIAS_OPTION,
     .output_bias = PL_BIAS_OPTION,
     .window_rule = PL_WINDOW_FROM_LAYER,
     SILU},
    {.name = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .arch = "smollm3",
     .vocab = 128256,
     .width = 2048,
     .inner = 11008,
     .layers = 36,
     .heads = 16,
     .key_heads = 4,
     .context = 32768,
     .theta = 2e6,
     .eps = 1e-6,
     .is_tied = true,
     .query_bias = PL_BIAS_OPTION,
     .output_bias = PL_BIAS_OPTION,
     .inner_bias = PL_BIAS_OPTION,
     .is_permuted = true,
     .may_lack_rope = true,
     .window_rule = PL_WINDOW_WITHOUT_ROPE,
     SILU},
    {.name = "gemma",
     .class_name = "GemmaForCausalLM",
     .arch = "gemma",
     GEMMA,
     .vocab = 256000,
     .context = 8192,
     .theta = 1e4,
     .width = 3072,
     .inner = 24576,
     .layers = 28,
     .heads = 16,
     .key_heads = 16,
     .activation_key = "hidden_act"},
    {.name = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .arch = "gemma2",
     GEMMA,
     .vocab = 256000,
     .context = 8192,
     .theta = 1e4,
     .width = 2304,
     .inner = 9216,
     .layers = 26,
     .heads = 8,
     .key_heads = 4,
     .form.has_post_norms = true,
     .attention_cap = 50,
     .output_cap = 30,
     .window = 4096,
     .window_rule = PL_WINDOW_PATTERN,
     .pattern = 2,
     .unscaled_layers = 46,
     .has_scalar = true,
     .activation_key = "hidden_activation"},
    {.name = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .arch = "gemma3",
     GEMMA,
     .vocab = 262208,
     .width = 2304,
     .inner = 9216,
     .layers = 26,
     .heads = 8,
     .key_heads = 4,
     .context = 131072,
     .theta = 1e6,
     .form.has_post_norms = true,
     .form.has_qk_norm = true,
     .output_cap = -1,
     .window = 4096,
     .window_rule = PL_WINDOW_PATTERN,
     .pattern = 6,
     .unscaled_layers = 62,
     .has_scalar = true,
     .has_local_rope = true,
     .activation_key = "hidden_activation"},
    {.name = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .arch = "olmo2",
     .vocab = 50304,
     .width = 4096,
     .inner = 11008,
     .layers = 32,
     .heads = 32,
     .context = 2048,
     .theta = 1e4,
     .eps = 1e-5,
     .form.has_post_norms = true,
     .form.lacks_pre_norms = true,
     .form.has_qk_norm = true,
     .form.has_joint_qk_norm = true,
     .query_bias = PL_BIAS_OPTION,
     .output_bias = PL_BIAS_OPTION,
     SILU},
    {.name = "gpt2",
     .class_name = "GPT2LMHeadModel",
     .arch = "gpt2",
     .vocab = 50257,
     .width = 768,
     .layers = 12,
     .heads = 12,
     .context = 1024,
     .theta = 1e4,
     .eps = 1e-5,
     .is_tied = true,
     .form.is_layer_norm = true,
     .form.has_position_table = true,
     .is_fused_in_gguf = true,
     .query_bias = PL_BIAS_ALWAYS,
     .output_bias = PL_BIAS_ALWAYS,
     .inner_bias = PL_BIAS_ALWAYS,
     .activation_key = "activation_function",
     .activation = "gelu_new"},
    {.name = "phi3",
     .class_name = "Phi3ForCausalLM",
     .arch = "phi3",
     .vocab = 32064,
     .width = 3072,
     .inner = 8192,
     .layers = 32,
     .heads = 32,
     .context = 4096,
     .theta = 1e4,
     .eps = 1e-5,
     .is_fused = true,
     .is_fused_in_gguf = true,
     .window_rule = PL_WINDOW_ALL,
     .has_plain_rope = true,
     SILU},
};

enum { COUNT = sizeof families / sizeof *families };

const pl_lm_family *pl_lm_family_of(const char *model_type)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(families[i].name, model_type) == 0) return &families[i];
    return NULL;
}

const pl_lm_family *pl_lm_family_of_arch(const char *arch)
{
    for (int i = 0; i < COUNT; i++)
        if (families[i].arch && strcmp(families[i].arch, arch) == 0) return &families[i];
    return NULL;
}

const char *pl_lm_family_names(char *text, size_t room)
{
    size_t at = 0;
    for (int i = 0; i < COUNT; i++)
        at += (size_t)snprintf(text + at, room > at ? room - at : 0, "%s%s", i ? ", " : "", families[i].name);
    return text;
}

void pl_lm_begin(pl_causal_lm *m, const pl_lm_family *f)
{
    *m = (pl_causal_lm){.form = f->form,
                        .has_query_bias = f->query_bias == PL_BIAS_ALWAYS,
                        .has_output_bias = f->output_bias == PL_BIAS_ALWAYS,
                        .has_inner_bias = f->inner_bias == PL_BIAS_ALWAYS,
                        .embedding_scale = 1};
    snprintf(m->family, sizeof m->family, "%s", f->name);
}

void pl_lm_finish(pl_causal_lm *m, const pl_lm_family *f)
{
    if (f->scales_embedding) m->embedding_scale = sqrt((double)m->width);
    if (m->attention_scale == 0 && m->head_width > 0) m->attention_scale = 1 / sqrt((double)m->head_width);
}

bool pl_lm_set_activation(pl_causal_lm *m, const pl_lm_family *f, const char *name)
{
    static const struct {
        const char *name;
        pl_activation activation;
    } known[] = {{"silu", PL_ACT_SILU},
                 {"gelu_pytorch_tanh", PL_ACT_GELU_TANH},
                 {"gelu_new", PL_ACT_GELU_TANH},
                 {"gelu", PL_ACT_GELU}};
    if (strcmp(f->name, "gemma") == 0 && strcmp(name, "gelu") == 0) name = f->activation; /* its first files say so */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return m->activation = known[i].activation, true;
    return false;
}

/* ---- checks ---- */

static void check_rope(const pl_rope_scaling *s, pl_problems *p)
{
    const bool scales = s->kind != PL_ROPE_DEFAULT, has_context = s->kind >= PL_ROPE_LLAMA3;
    if (!(s->theta > 1 && isfinite(s->theta))) pl_problems_add(p, "rope_theta is %g", s->theta);
    if (scales && !(s->factor > 0 && isfinite(s->factor)))
        pl_problems_add(p, "the factor of rotary positions is %g or missing", s->factor);
    if (has_context && !(s->original_context > 0 && isfinite(s->original_context)))
        pl_problems_add(p, "original_max_position_embeddings is %g", s->original_context);
    if (s->kind == PL_ROPE_LLAMA3 && !(s->low_factor > 0 && s->high_factor > s->low_factor && isfinite(s->high_factor)))
        pl_problems_add(p, "low_freq_factor and high_freq_factor are %g and %g", s->low_factor, s->high_factor);
    if (s->kind == PL_ROPE_YARN && !(s->beta_fast > 0 && s->beta_slow > 0 && isfinite(pl_rope_magnitude(s)) &&
                                     isfinite(s->beta_fast + s->beta_slow)))
        pl_problems_add(p, "beta_fast, beta_slow or the attention factor of yarn are out of range");
}

void pl_lm_check(const pl_causal_lm *m, pl_problems *p)
{
    if (m->key_heads < 1 || m->heads % m->key_heads)
        pl_problems_add(p, "%" PRId64 " heads cannot share %" PRId64 " key heads", m->heads, m->key_heads);
    if (m->head_width < 1 || m->head_width % 2 || m->head_width > 2 * PL_ROPE_PAIRS_MAX)
        pl_problems_add(p, "a head is %" PRId64 " wide; an even number up to %d is supported", m->head_width,
                        2 * PL_ROPE_PAIRS_MAX);
    if (!(m->norm_eps >= 0 && isfinite(m->norm_eps))) pl_problems_add(p, "the epsilon of norms is %g", m->norm_eps);
    if (!(m->attention_scale > 0 && isfinite(m->attention_scale)))
        pl_problems_add(p, "the scale of attention scores is %g", m->attention_scale);
    if (!(m->attention_cap >= 0 && isfinite(m->attention_cap) && m->output_cap >= 0 && isfinite(m->output_cap)))
        pl_problems_add(p, "a soft cap is negative or not finite");
    bool is_used[PL_CAUSAL_LM_ROPES] = {false};
    for (int64_t i = 0; i < m->layers && i < PL_CAUSAL_LM_BLOCKS_MAX; i++)
        is_used[m->block[i].rope] |= m->block[i].has_rope;
    for (int i = 0; i < PL_CAUSAL_LM_ROPES; i++)
        if (is_used[i]) check_rope(&m->rope[i], p);
}

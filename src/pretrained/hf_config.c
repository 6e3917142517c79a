/* Keys in the spelling of transformers 5 and in the older ones. Wrong values and everything that is not supported are
 * collected and said at once. */
#include "pretrained/hf_config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_read.h"

enum { CONFIG_BYTES_MAX = 256 << 10 };

typedef struct reading {
    const json_t *config; /* of the text model */
    const pl_lm_family *family;
    pl_causal_lm *m;
    pl_problems problems;
} reading;

/* ---- values ---- */

/* NULL where it is missing or null; an array of equal numbers, one for each layer, is that number. */
static const json_t *find(reading *r, const json_t *in, const char *key)
{
    const json_t *v = json_object_get(in, key), *first = json_array_get(v, 0);
    if (!v || json_is_null(v)) return NULL;
    if (!json_is_array(v) || !json_is_number(first)) return v;
    for (size_t i = 1; i < json_array_size(v); i++)
        if (!json_equal(first, json_array_get(v, i))) {
            pl_problems_add(&r->problems, "%s differs between layers", key);
            break;
        }
    return first;
}

/* A whole number of 1 to `most`, under one of two names (the second may be NULL). */
static int64_t whole(reading *r, const char *key, const char *other, int64_t most, int64_t absent)
{
    const json_t *v = find(r, r->config, key);
    if (!v && other) v = find(r, r->config, key = other);
    if (!v) return absent;
    const double x = json_number_value(v);
    if (json_is_number(v) && x >= 1 && x <= (double)most && x == floor(x)) return (int64_t)x;
    pl_problems_add(&r->problems, "%s is not a whole number of 1 to %" PRId64, key, most);
    return 1;
}

static double real(reading *r, const json_t *in, const char *key, double absent)
{
    const json_t *v = find(r, in, key);
    if (!v) return absent;
    if (json_is_number(v)) return json_number_value(v);
    pl_problems_add(&r->problems, "%s is not a number", key);
    return absent;
}

static bool flag(reading *r, const char *key, bool absent)
{
    const json_t *v = find(r, r->config, key);
    if (!v) return absent;
    if (!json_is_boolean(v)) pl_problems_add(&r->problems, "%s is neither true nor false", key);
    return json_is_true(v);
}

static const char *text_of(const json_t *in, const char *key) { return json_string_value(json_object_get(in, key)); }

/* ---- what is not supported ---- */

static bool is_on(const json_t *v)
{
    return v && !json_is_null(v) && !json_is_false(v) && !(json_is_number(v) && json_number_value(v) == 0);
}

static void refuse_keys(reading *r, const json_t *in)
{
    static const char *const keys[] = {
        "quantization_config", "use_bidirectional_attention",     "num_experts",        "num_local_experts",
        "n_routed_experts",    "scale_attn_by_inverse_layer_idx", "add_cross_attention"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_on(json_object_get(in, keys[i]))) pl_problems_add(&r->problems, "%s is not supported", keys[i]);
}

/* Code that comes with a model is only known where it is a copy of the family's own. */
static void refuse_code(reading *r, const json_t *root)
{
    const char *code = text_of(json_object_get(root, "auto_map"), "AutoModelForCausalLM");
    const char *name = code && strrchr(code, '.') ? strrchr(code, '.') + 1 : code;
    if (name && strcmp(name, r->family->class_name) != 0)
        pl_problems_add(&r->problems, "auto_map names code of its own, \"%.60s\"", code);
}

static void refuse_partial(reading *r, const json_t *in)
{
    const double part = real(r, in, "partial_rotary_factor", 1);
    if (part != 1) pl_problems_add(&r->problems, "partial_rotary_factor %g is not supported", part);
}

static void refuse_unsupported(reading *r, const json_t *root)
{
    const double cap = real(r, r->config, "attn_logit_softcapping", 0);
    refuse_keys(r, root);
    if (r->config != root) refuse_keys(r, r->config);
    refuse_code(r, root);
    refuse_partial(r, r->config);
    if (r->family->has_local_rope && cap != 0)
        pl_problems_add(&r->problems, "attn_logit_softcapping is not supported in this family");
}

/* ---- sizes and options ---- */

/* Where the key is missing the class's own number, where it is null the number of heads. */
static int64_t key_heads(reading *r)
{
    const bool is_null = json_is_null(json_object_get(r->config, "num_key_value_heads"));
    const int64_t absent = r->family->key_heads && !is_null ? r->family->key_heads : r->m->heads;
    return whole(r, "num_key_value_heads", NULL, PL_LM_HEADS_MAX, absent);
}

static void read_sizes(reading *r)
{
    pl_causal_lm *m = r->m;
    const pl_lm_family *f = r->family;
    m->vocab = whole(r, "vocab_size", NULL, PL_LM_VOCAB_MAX, f->vocab);
    m->width = whole(r, "hidden_size", "n_embd", PL_LM_WIDTH_MAX, f->width);
    m->layers = whole(r, "num_hidden_layers", "n_layer", PL_CAUSAL_LM_BLOCKS_MAX, f->layers);
    m->heads = whole(r, "num_attention_heads", "n_head", PL_LM_HEADS_MAX, f->heads);
    m->key_heads = key_heads(r);
    m->context = whole(r, "max_position_embeddings", "n_positions", PL_LM_CONTEXT_MAX, f->context);
    m->inner = whole(r, "intermediate_size", "n_inner", PL_LM_WIDTH_MAX, f->inner ? f->inner : 4 * m->width);
    m->head_width =
        whole(r, "head_dim", NULL, 2 * PL_ROPE_PAIRS_MAX, f->head_width ? f->head_width : m->width / m->heads);
    if (!json_is_number(json_object_get(r->config, "head_dim")) && !f->head_width && m->width % m->heads)
        pl_problems_add(&r->problems, "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads", m->width,
                        m->heads);
}

static double attention_scale(reading *r)
{
    if (r->family->has_scalar) return 1 / sqrt(real(r, r->config, "query_pre_attn_scalar", 256));
    return flag(r, "scale_attn_weights", true) ? 0 : 1;
}

/* A cap that is null in the file is none. */
static double cap(reading *r, const char *key, double absent)
{
    if (absent == 0) return 0;
    if (json_is_null(json_object_get(r->config, key))) return 0;
    return real(r, r->config, key, absent < 0 ? 0 : absent);
}

static void read_options(reading *r)
{
    pl_causal_lm *m = r->m;
    const pl_lm_family *f = r->family;
    const json_t *name = find(r, r->config, f->activation_key);
    const char *activation = name ? json_string_value(name) : f->activation;
    if (!activation || !pl_lm_set_activation(m, f, activation))
        pl_problems_add(&r->problems, "%s \"%.40s\" is not supported", f->activation_key,
                        activation ? activation : "?");
    m->norm_eps = real(r, r->config, f->form.is_layer_norm ? "layer_norm_epsilon" : "rms_norm_eps", f->eps);
    m->is_tied = flag(r, "tie_word_embeddings", f->is_tied);
    m->attention_scale = attention_scale(r);
    m->attention_cap = cap(r, "attn_logit_softcapping", f->attention_cap);
    m->output_cap = cap(r, "final_logit_softcapping", f->output_cap);
    if (f->query_bias == PL_BIAS_OPTION) m->has_query_bias = m->has_output_bias = flag(r, "attention_bias", false);
    if (f->inner_bias == PL_BIAS_OPTION) m->has_inner_bias = flag(r, "mlp_bias", false);
}

/* ---- layers ---- */

/* Has block i a window? -1: layer_types, which may be missing, says nothing. */
static int window_of_type(reading *r, int64_t i)
{
    const json_t *types = find(r, r->config, "layer_types");
    if (!types) return -1;
    const char *type = json_string_value(json_array_get(types, (size_t)i));
    if (type && strcmp(type, "sliding_attention") == 0) return 1;
    if (!type || strcmp(type, "full_attention") != 0)
        pl_problems_add(&r->problems, "layer_types[%" PRId64 "] \"%.40s\" is not supported", i, type ? type : "?");
    return 0;
}

static bool is_windowed(reading *r, int64_t i, bool has_rope)
{
    const int said = window_of_type(r, i);
    switch (r->family->window_rule) {
    case PL_WINDOW_NEVER:
        return false;
    case PL_WINDOW_ALL:
        if (i > 0 && said >= 0 && said != window_of_type(r, 0))
            pl_problems_add(&r->problems, "mixed layer_types are not supported in this family");
        return true;
    case PL_WINDOW_FROM_LAYER:
        return flag(r, "use_sliding_window", false) &&
               (said >= 0 ? said : (double)i >= real(r, r->config, "max_window_layers", 28));
    case PL_WINDOW_WITHOUT_ROPE:
        return flag(r, "use_sliding_window", false) && (said >= 0 ? said : !has_rope);
    case PL_WINDOW_PATTERN:
        break;
    }
    return said >= 0 ? said : (i + 1) % whole(r, "sliding_window_pattern", NULL, 1 << 20, r->family->pattern) != 0;
}

static bool has_rope(reading *r, int64_t i)
{
    const json_t *list = json_object_get(r->config, "no_rope_layers");
    if (!r->family->may_lack_rope) return !r->family->form.has_position_table;
    if (json_array_size(list)) return is_on(json_array_get(list, (size_t)i));
    return (i + 1) % whole(r, "no_rope_layer_interval", NULL, 1 << 20, 4) != 0;
}

static void check_list(reading *r, const char *key)
{
    const json_t *list = json_object_get(r->config, key);
    if (json_array_size(list) && json_array_size(list) != (size_t)r->m->layers)
        pl_problems_add(&r->problems, "%s has %zu entries for %" PRId64 " layers", key, json_array_size(list),
                        r->m->layers);
}

static void read_layers(reading *r)
{
    const pl_lm_family *f = r->family;
    const bool is_null = json_is_null(json_object_get(r->config, "sliding_window"));
    const bool may_window = f->window_rule != PL_WINDOW_NEVER;
    const int64_t window = may_window && !is_null ? whole(r, "sliding_window", NULL, PL_LM_CONTEXT_MAX, f->window) : 0;
    check_list(r, "layer_types");
    check_list(r, "no_rope_layers");
    for (int64_t i = 0; i < r->m->layers && r->problems.count < 20; i++) {
        pl_causal_lm_block *b = &r->m->block[i];
        b->has_rope = has_rope(r, i);
        const bool is_windowed_here = is_windowed(r, i, b->has_rope);
        b->window = is_windowed_here ? window : 0;
        b->rope = f->has_local_rope && is_windowed_here;
    }
}

/* ---- rotary positions ---- */

static bool parse_kind(const char *type, pl_rope_kind *kind)
{
    static const char *const names[] = {"default", "linear", "llama3", "yarn"};
    for (int i = 0; i < 4; i++)
        if (strcmp(type, names[i]) == 0) return *kind = (pl_rope_kind)i, true;
    return false;
}

static double original_context(reading *r, const json_t *p)
{
    const double own = real(r, p, "original_max_position_embeddings", (double)r->m->context);
    return real(r, r->config, "original_max_position_embeddings", own);
}

/* `p` may be NULL. */
static void read_rope(reading *r, const json_t *p, double theta, pl_rope_scaling *s)
{
    const char *type = text_of(p, "rope_type");
    if (!type) type = text_of(p, "type");
    *s = (pl_rope_scaling){.theta = real(r, p, "rope_theta", theta)};
    if (type && (!parse_kind(type, &s->kind) || (r->family->has_plain_rope && s->kind != PL_ROPE_DEFAULT)))
        pl_problems_add(&r->problems, "rope_type \"%.40s\" is not supported", type);
    refuse_partial(r, p);
    if (s->kind == PL_ROPE_DEFAULT) return;
    s->original_context = original_context(r, p);
    s->factor = real(r, p, "factor", s->kind == PL_ROPE_YARN ? (double)r->m->context / s->original_context : 0);
    s->low_factor = real(r, p, "low_freq_factor", 0);
    s->high_factor = real(r, p, "high_freq_factor", 0);
    s->beta_fast = real(r, p, "beta_fast", 32);
    s->beta_slow = real(r, p, "beta_slow", 1);
    s->attention_factor = real(r, p, "attention_factor", 0);
    s->mscale = real(r, p, "mscale", 0);
    s->mscale_all = real(r, p, "mscale_all_dim", 0);
    s->keeps_fractions = json_is_false(json_object_get(p, "truncate"));
}

/* NULL where it is missing, null or empty. */
static const json_t *object(reading *r, const json_t *in, const char *key)
{
    const json_t *v = find(r, in, key);
    if (v && !json_is_object(v)) pl_problems_add(&r->problems, "%s is not an object", key);
    return json_object_size(v) ? v : NULL;
}

static void read_ropes(reading *r)
{
    const json_t *new = object(r, r->config, "rope_parameters"), *old = object(r, r->config, "rope_scaling");
    const json_t *full = object(r, new, "full_attention"), *local = object(r, new, "sliding_attention");
    double theta = real(r, r->config, "rope_theta", r->family->theta);
    if (r->family->has_local_rope) {
        theta = real(r, full, "rope_theta", theta);
        read_rope(r, old ? old : full, theta, &r->m->rope[0]);
        read_rope(r, local, real(r, r->config, "rope_local_base_freq", 1e4), &r->m->rope[1]);
    } else {
        if (full || local)
            pl_problems_add(&r->problems, "rope_parameters by layer type are not supported in this family");
        read_rope(r, old ? old : new, theta, &r->m->rope[0]);
    }
}

/* ---- tokens ---- */

static void add_stop(pl_pretrained_defaults *d, int64_t token)
{
    if (d->eos == PL_PRETRAINED_NO_TOKEN) d->eos = token;
    for (size_t i = 0; i < d->stops; i++)
        if (d->stop[i] == token) return;
    if (d->stops < PL_PRETRAINED_STOPS_MAX) d->stop[d->stops++] = token;
}

static void read_token(const json_t *v, int64_t *token)
{
    if (*token == PL_PRETRAINED_NO_TOKEN && json_is_integer(v) && json_integer_value(v) >= 0)
        *token = json_integer_value(v);
}

static void read_tokens(const json_t *in, pl_pretrained_defaults *d)
{
    const json_t *eos = json_object_get(in, "eos_token_id");
    int64_t token = PL_PRETRAINED_NO_TOKEN;
    read_token(json_object_get(in, "bos_token_id"), &d->bos);
    read_token(json_object_get(in, "pad_token_id"), &d->pad);
    read_token(eos, &token);
    if (token != PL_PRETRAINED_NO_TOKEN) add_stop(d, token);
    for (size_t i = 0; i < json_array_size(eos); i++) {
        token = PL_PRETRAINED_NO_TOKEN;
        read_token(json_array_get(eos, i), &token);
        if (token != PL_PRETRAINED_NO_TOKEN) add_stop(d, token);
    }
}

/* ---- the two files ---- */

/* A picture model's config holds that of its text model. */
static pl_status find_family(reading *r, const char *path, const json_t *root, pl_error *err)
{
    char names[160];
    const char *type = text_of(root, "model_type");
    if (type && strcmp(type, "gemma3") == 0) {
        r->config = json_object_get(root, "text_config");
        type = "gemma3_text";
    }
    r->family = type ? pl_lm_family_of(type) : NULL;
    if (r->family) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED, "%s: model_type \"%.60s\" is not supported; those that are: %s, gemma3", path,
                   type ? type : "", pl_lm_family_names(names, sizeof names));
}

static pl_status read_config(reading *r, const char *path, const json_t *root, pl_error *err)
{
    PL_TRY(find_family(r, path, root, err));
    pl_lm_begin(r->m, r->family);
    refuse_unsupported(r, root);
    read_sizes(r);
    read_options(r);
    read_layers(r);
    if (!r->family->form.has_position_table) read_ropes(r);
    pl_lm_finish(r->m, r->family);
    pl_lm_check(r->m, &r->problems);
    return pl_problems_fail(&r->problems, PL_E_UNSUPPORTED, path, "this model cannot be used", err);
}

pl_status pl_hf_config_read(const char *path, const pl_lm_family **family, pl_causal_lm *m, pl_pretrained_defaults *d,
                            pl_error *err)
{
    json_t *root;
    PL_TRY(pl_json_read_file(path, CONFIG_BYTES_MAX, &root, err));
    reading r = {.config = root, .m = m};
    const pl_status status = read_config(&r, path, root, err);
    *family = r.family;
    read_tokens(root, d);
    if (r.config != root) read_tokens(r.config, d);
    json_decref(root);
    return status;
}

static void read_sampling(const json_t *in, const char *key, bool *has, double *value)
{
    const json_t *v = json_object_get(in, key);
    *has = json_is_number(v);
    if (*has) *value = json_number_value(v);
}

pl_status pl_hf_generation_read(const char *path, pl_pretrained_defaults *d, pl_error *err)
{
    json_t *root;
    double top_k = 0;
    PL_TRY(pl_json_read_file(path, CONFIG_BYTES_MAX, &root, err));
    read_tokens(root, d);
    read_sampling(root, "temperature", &d->has_temperature, &d->temperature);
    read_sampling(root, "top_p", &d->has_top_p, &d->top_p);
    read_sampling(root, "repetition_penalty", &d->has_repetition_penalty, &d->repetition_penalty);
    read_sampling(root, "top_k", &d->has_top_k, &top_k);
    if (top_k >= 0 && top_k <= INT32_MAX) d->top_k = (int64_t)top_k;
    json_decref(root);
    return PL_OK;
}

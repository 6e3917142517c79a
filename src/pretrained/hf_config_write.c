/* config.json and generation_config.json as transformers reads them, in its newer spelling. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "pretrained/model_impl.h"
#include "pretrained/model_write.h"

enum { CONFIG_BYTES_MAX = 256 << 10, KEY_BYTES = 256 };

static const char *dtype_of(pl_encoding matrices)
{
    return matrices == PL_ENCODING_BF16 ? "bfloat16" : matrices == PL_ENCODING_F16 ? "float16" : "float32";
}

/* ---- from a GGUF file ---- */

typedef struct writing {
    pl_json j;
    const pl_pretrained *p;
    const pl_causal_lm *m;
    const pl_lm_family *f;
    pl_rope_scaling llama3; /* whose divisors are those of the file */
    pl_problems problems;
} writing;

/* None is null: where a key is missing some families have numbers of their own. */
static void put_token(writing *w, const char *key, int64_t token)
{
    pl_json_key(&w->j, key);
    token == PL_PRETRAINED_NO_TOKEN ? pl_json_null(&w->j) : pl_json_int(&w->j, token);
}

static void put_tokens(writing *w, const int64_t *stop, size_t stops)
{
    put_token(w, "bos_token_id", w->p->defaults.bos);
    put_token(w, "pad_token_id", w->p->defaults.pad);
    if (stops < 2) {
        put_token(w, "eos_token_id", stops ? stop[0] : PL_PRETRAINED_NO_TOKEN);
        return;
    }
    pl_json_key(&w->j, "eos_token_id"), pl_json_array(&w->j);
    for (size_t i = 0; i < stops; i++) pl_json_int(&w->j, stop[i]);
    pl_json_array_end(&w->j);
}

/* With a point or an exponent, since transformers takes no whole number where it expects a real one. */
static void put_number(writing *w, double x)
{
    const size_t before = w->j.out->bytes;
    pl_json_double(&w->j, x);
    const char *text = pl_str_text(w->j.out);
    if (w->j.out->bytes > before && !strpbrk(text + before, ".e")) pl_str_append(w->j.out, ".0");
}

static void put_real(writing *w, const char *key, double x)
{
    pl_json_key(&w->j, key);
    put_number(w, x);
}

/* 0 is none. */
static void put_cap(writing *w, const char *key, double cap)
{
    pl_json_key(&w->j, key);
    cap != 0 ? put_number(w, cap) : pl_json_null(&w->j);
}

static void put_sizes(writing *w)
{
    const pl_causal_lm *m = w->m;
    const bool is_gpt2 = m->form.has_position_table;
    pl_json_kv_int(&w->j, "vocab_size", m->vocab);
    pl_json_kv_int(&w->j, is_gpt2 ? "n_embd" : "hidden_size", m->width);
    pl_json_kv_int(&w->j, is_gpt2 ? "n_layer" : "num_hidden_layers", m->layers);
    pl_json_kv_int(&w->j, is_gpt2 ? "n_head" : "num_attention_heads", m->heads);
    pl_json_kv_int(&w->j, is_gpt2 ? "n_inner" : "intermediate_size", m->inner);
    pl_json_kv_int(&w->j, is_gpt2 ? "n_positions" : "max_position_embeddings", m->context);
    put_real(w, m->form.is_layer_norm ? "layer_norm_epsilon" : "rms_norm_eps", m->norm_eps);
    pl_json_kv_bool(&w->j, "tie_word_embeddings", m->is_tied);
    pl_json_kv_string(&w->j, w->f->activation_key, w->f->activation);
    if (is_gpt2) return;
    pl_json_kv_int(&w->j, "num_key_value_heads", m->key_heads);
    pl_json_kv_int(&w->j, "head_dim", m->head_width);
}

static void put_options(writing *w)
{
    const pl_causal_lm *m = w->m;
    if (w->f->query_bias == PL_BIAS_OPTION) pl_json_kv_bool(&w->j, "attention_bias", m->has_query_bias);
    if (w->f->inner_bias == PL_BIAS_OPTION) pl_json_kv_bool(&w->j, "mlp_bias", m->has_inner_bias);
    if (w->f->query_bias == PL_BIAS_OPTION && m->has_query_bias != m->has_output_bias)
        pl_problems_add(&w->problems, "biases of queries without those of the output have no place there");
    if (w->f->has_scalar)
        pl_json_kv_int(&w->j, "query_pre_attn_scalar", llround(1 / (m->attention_scale * m->attention_scale)));
    if (w->f->attention_cap != 0 || w->f->has_local_rope) put_cap(w, "attn_logit_softcapping", m->attention_cap);
    if (w->f->output_cap != 0) put_cap(w, "final_logit_softcapping", m->output_cap);
}

static void put_layers(writing *w)
{
    const pl_causal_lm *m = w->m;
    int64_t window = 0;
    for (int64_t i = 0; i < m->layers; i++)
        if (m->block[i].window > 0) window = m->block[i].window;
    if (w->f->window_rule == PL_WINDOW_NEVER) return;
    pl_json_key(&w->j, "sliding_window");
    window ? pl_json_int(&w->j, window) : pl_json_null(&w->j);
    if (w->f->window_rule != PL_WINDOW_PATTERN) return;
    pl_json_key(&w->j, "layer_types"), pl_json_array(&w->j);
    for (int64_t i = 0; i < m->layers; i++)
        pl_json_string(&w->j, m->block[i].window > 0 ? "sliding_attention" : "full_attention");
    pl_json_array_end(&w->j);
}

static void put_nopes(writing *w)
{
    if (!w->f->may_lack_rope) return;
    pl_json_key(&w->j, "no_rope_layers"), pl_json_array(&w->j);
    for (int64_t i = 0; i < w->m->layers; i++) pl_json_int(&w->j, w->m->block[i].has_rope);
    pl_json_array_end(&w->j);
}

/* ---- rotary positions ---- */

/* The rule of llama3 that has these divisors. Between its two bounds they are 1/(u + (1 − u)/factor) with a u that is
 * linear in the frequency: a line through two of them gives the bounds, of which the lower one is 1 by custom. */
static bool find_llama3(const pl_rope_scaling *s, int64_t half, pl_rope_scaling *found)
{
    double f[2], u[2];
    int between = 0;
    const double factor = (double)s->divisor[half - 1];
    for (int64_t j = 0; j < half; j++) {
        const double at = (1 / (double)s->divisor[j] - 1 / factor) / (1 - 1 / factor);
        if (at <= 1e-4 || at >= 1 - 1e-4) continue;
        const int k = between ? 1 : 0; /* the first and the last */
        f[k] = pow(s->theta, -(double)j / (double)half), u[k] = at;
        between++;
    }
    *found = (pl_rope_scaling){.kind = PL_ROPE_LLAMA3,
                               .theta = s->theta,
                               .factor = factor,
                               .low_factor = 1,
                               .high_factor = 4,
                               .original_context = 8192};
    if (factor > 1 && between > 1) {
        const double slope = (u[0] - u[1]) / (f[0] - f[1]), low = slope * f[0] - u[0]; /* low / (high − low) */
        found->high_factor = round((1 + 1 / low) * 1e3) / 1e3;
        found->original_context = round(slope / low * 2 * M_PI);
    }
    for (int64_t j = 0; j < half; j++) {
        const pl_rope_scaling plain = {.theta = s->theta};
        const double divisor = pl_rope_frequency(&plain, half, j) / pl_rope_frequency(found, half, j);
        if (!(fabs(divisor / (double)s->divisor[j] - 1) < 1e-5)) return false;
    }
    return true;
}

static void put_scaling(writing *w, const pl_rope_scaling *s)
{
    static const char *const names[] = {"default", "linear", "llama3", "yarn"};
    pl_json_kv_string(&w->j, "rope_type", names[s->kind]);
    put_real(w, "rope_theta", s->theta);
    if (s->kind != PL_ROPE_DEFAULT) put_real(w, "factor", s->factor);
    if (s->kind >= PL_ROPE_LLAMA3)
        pl_json_kv_int(&w->j, "original_max_position_embeddings", (int64_t)s->original_context);
    if (s->kind == PL_ROPE_LLAMA3) {
        put_real(w, "low_freq_factor", s->low_factor);
        put_real(w, "high_freq_factor", s->high_factor);
    } else if (s->kind == PL_ROPE_YARN) {
        put_real(w, "beta_fast", s->beta_fast);
        put_real(w, "beta_slow", s->beta_slow);
    }
}

static void put_rope(writing *w)
{
    const pl_rope_scaling *s = w->m->rope;
    if (w->m->form.has_position_table) return;
    if (s->divisors &&
        (s->kind != PL_ROPE_DEFAULT || w->f->has_local_rope || !find_llama3(s, w->m->head_width / 2, &w->llama3)))
        pl_problems_add(&w->problems, "rope_freqs.weight holds divisors that are not those of llama3's rule");
    pl_json_key(&w->j, "rope_parameters"), pl_json_object(&w->j);
    if (w->f->has_local_rope) {
        static const char *const types[] = {"full_attention", "sliding_attention"};
        for (int i = 0; i < 2; i++) {
            pl_json_key(&w->j, types[i]), pl_json_object(&w->j);
            put_scaling(w, &s[i]);
            pl_json_object_end(&w->j);
        }
    } else {
        put_scaling(w, s->divisors ? &w->llama3 : s);
    }
    pl_json_object_end(&w->j);
}

pl_status pl_hf_config_write(const pl_pretrained *p, pl_encoding matrices, const int64_t *stop, size_t stops,
                             pl_str *to, pl_error *err)
{
    writing w = {.j = pl_json_begin(to, false), .p = p, .m = &p->model, .f = p->family};
    pl_json_object(&w.j);
    pl_json_key(&w.j, "architectures"), pl_json_array(&w.j);
    pl_json_string(&w.j, w.f->class_name);
    pl_json_array_end(&w.j);
    pl_json_kv_string(&w.j, "model_type", w.f->name);
    pl_json_kv_string(&w.j, "dtype", dtype_of(matrices));
    put_sizes(&w);
    put_options(&w);
    put_layers(&w);
    put_nopes(&w);
    put_rope(&w);
    put_tokens(&w, stop, stops);
    pl_json_object_end(&w.j);
    pl_str_append(to, "\n");
    if (to->failed) return pl_fail(err, PL_E_NOMEM, "no memory for config.json");
    return pl_problems_fail(&w.problems, PL_E_UNSUPPORTED, p->path, "this model cannot be written as a folder", err);
}

pl_status pl_hf_generation_write(const pl_pretrained *p, const int64_t *stop, size_t stops, pl_str *to, pl_error *err)
{
    writing w = {.j = pl_json_begin(to, false), .p = p};
    pl_json_object(&w.j);
    put_tokens(&w, stop, stops);
    pl_json_object_end(&w.j);
    pl_str_append(to, "\n");
    return to->failed ? pl_fail(err, PL_E_NOMEM, "no memory for generation_config.json") : PL_OK;
}

/* ---- from a folder ---- */

/* Members of an object are copied; those that name the type of numbers get another value. */
typedef struct copying {
    pl_json_scan scan;
    size_t copied; /* so far */
    const char *dtype;
    pl_str *to;
    pl_error *err;
} copying;

static pl_status copy_object(copying *c, int depth)
{
    char key[KEY_BYTES];
    size_t bytes;
    bool more;
    PL_TRY(pl_json_scan_enter(&c->scan, '{', c->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&c->scan, '{', first, &more, c->err));
        if (!more) return PL_OK;
        PL_TRY(pl_json_scan_key(&c->scan, key, sizeof key - 1, &bytes, c->err));
        key[bytes] = 0;
        const char opens = pl_json_scan_peek(&c->scan);
        if (opens == '{' && depth == 0 && strcmp(key, "text_config") == 0) {
            PL_TRY(copy_object(c, 1));
            continue;
        }
        const bool is_dtype = opens == '"' && (strcmp(key, "dtype") == 0 || strcmp(key, "torch_dtype") == 0);
        if (is_dtype) {
            pl_str_append_bytes(c->to, c->scan.text + c->copied, c->scan.at - c->copied);
            pl_str_printf(c->to, "\"%s\"", c->dtype);
        }
        PL_TRY(pl_json_scan_skip(&c->scan, c->err));
        if (is_dtype) c->copied = c->scan.at;
    }
}

pl_status pl_hf_config_with_dtype(const char *path, pl_encoding matrices, pl_str *to, pl_error *err)
{
    char *text;
    size_t bytes;
    PL_TRY(pl_file_read_all(path, CONFIG_BYTES_MAX, &text, &bytes, err));
    copying c = {
        .scan = {.name = path, .text = text, .bytes = bytes}, .dtype = dtype_of(matrices), .to = to, .err = err};
    const pl_status status = copy_object(&c, 0);
    pl_str_append_bytes(to, text + c.copied, bytes - c.copied);
    pl_free(text);
    if (status == PL_OK && to->failed) return pl_fail(err, PL_E_NOMEM, "no memory for config.json");
    return status;
}

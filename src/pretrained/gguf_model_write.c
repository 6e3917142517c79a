#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pretrained/model_impl.h"
#include "pretrained/model_write.h"

typedef struct writing {
    pl_gguf_keys *to;
    const pl_causal_lm *m;
    const pl_lm_family *family; /* of the file */
    pl_gguf_model_written *written;
    pl_problems problems;
} writing;

static const char *whole_key(const writing *w, const char *key, char room[PL_GGUF_KEY_MAX])
{
    snprintf(room, PL_GGUF_KEY_MAX, "%s.%s", w->family->arch, key);
    return room;
}

static void put_whole(writing *w, const char *key, int64_t x)
{
    char room[PL_GGUF_KEY_MAX];
    pl_gguf_put_u32(w->to, whole_key(w, key, room), (uint64_t)x);
}

static void put_real(writing *w, const char *key, double x)
{
    char room[PL_GGUF_KEY_MAX];
    pl_gguf_put_f32(w->to, whole_key(w, key, room), x);
}

static void put_text(writing *w, const char *key, const char *text)
{
    char room[PL_GGUF_KEY_MAX];
    pl_gguf_put_string(w->to, whole_key(w, key, room), text, strlen(text));
}

/* ---- general ---- */

uint32_t pl_gguf_file_type(pl_encoding e)
{
    static const uint32_t types[PL_ENCODING_COUNT] = {
        [PL_ENCODING_F32] = 0,   [PL_ENCODING_F16] = 1,   [PL_ENCODING_Q4_0] = 2,  [PL_ENCODING_Q4_1] = 3,
        [PL_ENCODING_Q8_0] = 7,  [PL_ENCODING_Q5_0] = 8,  [PL_ENCODING_Q5_1] = 9,  [PL_ENCODING_Q4_K] = 15,
        [PL_ENCODING_Q5_K] = 17, [PL_ENCODING_Q6_K] = 18, [PL_ENCODING_BF16] = 32,
    };
    return types[e];
}

static void write_general(writing *w, const char *path, pl_encoding matrices)
{
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    size_t begin = bytes;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    pl_gguf_put_string(w->to, "general.architecture", w->family->arch, strlen(w->family->arch));
    pl_gguf_put_string(w->to, "general.type", "model", 5);
    pl_gguf_put_string(w->to, "general.name", path + begin, bytes - begin);
    pl_gguf_put_u32(w->to, "general.file_type", pl_gguf_file_type(matrices));
    pl_gguf_put_u32(w->to, "general.quantization_version", 2);
}

/* ---- sizes ---- */

static void write_sizes(writing *w)
{
    const pl_causal_lm *m = w->m;
    put_whole(w, "vocab_size", m->vocab);
    put_whole(w, "context_length", m->context);
    put_whole(w, "embedding_length", m->width);
    put_whole(w, "block_count", m->layers);
    put_whole(w, "feed_forward_length", m->inner);
    put_whole(w, "attention.head_count", m->heads);
    put_whole(w, "attention.head_count_kv", m->key_heads);
    put_real(w, m->form.is_layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
             m->norm_eps);
    if (m->form.has_position_table) return;
    put_whole(w, "attention.key_length", m->head_width);
    put_whole(w, "attention.value_length", m->head_width);
    put_whole(w, "rope.dimension_count", m->head_width);
}

static void write_caps(writing *w)
{
    const pl_lm_family *f = w->family;
    if (f->attention_cap != 0 && w->m->attention_cap != 0) put_real(w, "attn_logit_softcapping", w->m->attention_cap);
    if (f->output_cap != 0 && w->m->output_cap != 0) put_real(w, "final_logit_softcapping", w->m->output_cap);
    if ((f->attention_cap > 0 && w->m->attention_cap == 0) || (f->output_cap > 0 && w->m->output_cap == 0))
        pl_problems_add(&w->problems, "a soft cap of none has no place there");
}

/* What a reader of the file takes for granted. */
static void check_scale(writing *w)
{
    const pl_causal_lm *m = w->m;
    const bool is_unscaled = w->family->unscaled_layers == m->layers;
    const double width = (double)(is_unscaled ? m->width / m->heads : m->head_width);
    if (fabs(m->attention_scale * sqrt(width) - 1) > 1e-6)
        pl_problems_add(&w->problems, "scores of attention are scaled by %g, which has no place there",
                        m->attention_scale);
}

static void check_activation(writing *w)
{
    pl_causal_lm usual = {0};
    (void)pl_lm_set_activation(&usual, w->family, w->family->activation);
    if (usual.activation != w->m->activation)
        pl_problems_add(&w->problems, "the activation is not that of its family, and has no place there");
}

/* ---- layers ---- */

static int64_t pattern_of(const pl_lm_family *f, const pl_causal_lm *m)
{
    for (int64_t i = 0; i < m->layers; i++)
        if ((m->block[i].window > 0) != ((i + 1) % f->pattern != 0)) return 0;
    return f->pattern;
}

static void write_windows(writing *w)
{
    const pl_causal_lm *m = w->m;
    int64_t window = 0;
    for (int64_t i = 0; i < m->layers; i++)
        if (m->block[i].window > 0) window = m->block[i].window;
    const pl_window_rule rule = w->family->window_rule;
    if (rule == PL_WINDOW_ALL) {
        if (window) put_whole(w, "attention.sliding_window", window);
    } else if (rule == PL_WINDOW_PATTERN) {
        char room[PL_GGUF_KEY_MAX];
        put_whole(w, "attention.sliding_window", window);
        if (pattern_of(w->family, m)) return; /* what a reader takes for granted */
        pl_gguf_put_array(w->to, whole_key(w, "attention.sliding_window_pattern", room), PL_GGUF_BOOL,
                          (uint64_t)m->layers);
        for (int64_t i = 0; i < m->layers; i++) pl_str_append_bytes(&w->to->text, &(char){m->block[i].window > 0}, 1);
    } else if (window) {
        snprintf(w->written->note, sizeof w->written->note,
                 "GGUF files of %s have no place for the window of %" PRId64
                 " tokens; from then on attention goes to all tokens before",
                 w->family->arch, window);
    }
}

static void check_layers(writing *w)
{
    for (int64_t i = 0; i < w->m->layers; i++) {
        const bool usual = !w->m->form.has_position_table && !(w->family->may_lack_rope && (i + 1) % 4 == 0);
        if (w->m->block[i].has_rope == usual) continue;
        pl_problems_add(&w->problems, "block %" PRId64 " %s rotary positions, which has no place there", i,
                        usual ? "lacks" : "has");
        return;
    }
}

/* ---- rotary positions ---- */

static void write_scaling(writing *w, const pl_rope_scaling *s)
{
    put_text(w, "rope.scaling.type", s->kind == PL_ROPE_YARN ? "yarn" : "linear");
    put_real(w, "rope.scaling.factor", s->factor);
    if (s->kind != PL_ROPE_YARN) return;
    put_whole(w, "rope.scaling.original_context_length", (int64_t)s->original_context);
    put_real(w, "rope.scaling.yarn_beta_fast", s->beta_fast);
    put_real(w, "rope.scaling.yarn_beta_slow", s->beta_slow);
    const pl_rope_scaling usual = {.kind = PL_ROPE_YARN, .factor = s->factor};
    if (s->keeps_fractions || pl_rope_magnitude(s) != pl_rope_magnitude(&usual))
        pl_problems_add(&w->problems, "yarn with a factor of its own for attention, or that is not truncated, has no "
                                      "place there");
}

/* The frequencies of llama3 are divided, each by what its rule says. */
static void write_divisors(writing *w, const pl_rope_scaling *s)
{
    const int64_t half = w->m->head_width / 2;
    pl_gguf_model_written *to = w->written;
    to->divisors = (pl_gguf_vector){"rope_freqs.weight", to->room, (uint64_t)half};
    const pl_rope_scaling plain = {.kind = PL_ROPE_DEFAULT, .theta = s->theta};
    for (int64_t j = 0; j < half; j++)
        to->room[j] = (float)(pl_rope_frequency(&plain, half, j) / pl_rope_frequency(s, half, j));
}

static void write_ropes(writing *w)
{
    const pl_rope_scaling *s = w->m->rope;
    put_real(w, "rope.freq_base", s->theta);
    if (s->kind == PL_ROPE_LLAMA3 || s->divisors)
        write_divisors(w, s);
    else if (s->kind != PL_ROPE_DEFAULT)
        write_scaling(w, s);
    if (!w->family->has_local_rope) return;
    put_real(w, "rope.freq_base_swa", s[1].theta);
    if (s[1].kind != PL_ROPE_DEFAULT || w->written->divisors.numbers)
        pl_problems_add(&w->problems, "these rotary positions of blocks with a window have no place there");
}

pl_status pl_gguf_model_write(const pl_pretrained *p, pl_encoding matrices, pl_gguf_keys *to,
                              pl_gguf_model_written *out, pl_error *err)
{
    writing w = {.to = to,
                 .m = &p->model,
                 .family = p->family->arch ? p->family : pl_lm_family_of_arch("llama"),
                 .written = out};
    *out = (pl_gguf_model_written){0};
    write_general(&w, p->path, matrices);
    write_sizes(&w);
    write_caps(&w);
    check_scale(&w);
    check_activation(&w);
    write_windows(&w);
    check_layers(&w);
    if (!p->model.form.has_position_table) write_ropes(&w);
    return pl_problems_fail(&w.problems, PL_E_UNSUPPORTED, p->path, "this model cannot be written as GGUF", err);
}

#include "pretrained/gguf_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARCH_BYTES = 64 };

typedef struct reading {
    const pl_gguf *g;
    const pl_model_file *file;
    const pl_lm_family *family;
    const char *arch;
    pl_causal_lm *m;
    pl_problems problems;
    pl_status status; /* of reading the file, the first that failed */
    pl_error *err;
} reading;

const pl_gguf_tensor *pl_gguf_find_tensor(const pl_gguf *g, const char *name)
{
    size_t low = 0, high = pl_gguf_tensor_count(g);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const pl_gguf_tensor *t = pl_gguf_tensor_at(g, middle);
        const int order = strcmp(name, t->name);
        if (order == 0) return t;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- values ---- */

/* The key of this architecture, or of all where it begins with a dot. */
static const pl_gguf_value *find(const reading *r, const char *key)
{
    char whole[PL_GGUF_KEY_MAX];
    if (*key == '.') return pl_gguf_find(r->g, key + 1);
    snprintf(whole, sizeof whole, "%s.%s", r->arch, key);
    return pl_gguf_find(r->g, whole);
}

/* A number, or an array of equal ones. */
static double constant(reading *r, const pl_gguf_value *v, const char *key)
{
    unsigned char buffer[512];
    double x = NAN, next = 0;
    pl_gguf_cursor c = pl_gguf_begin(r->g, v, buffer, sizeof buffer);
    if (v->type == PL_GGUF_STRING || v->count > PL_CAUSAL_LM_BLOCKS_MAX) return NAN;
    while (c.left && r->status == PL_OK) {
        const bool is_first = c.left == v->count;
        r->status = pl_gguf_next_number(&c, &next, r->err);
        if (is_first) x = next;
        if (r->status != PL_OK || next == x) continue;
        pl_problems_add(&r->problems, "%s differs between layers", key);
        break;
    }
    return x;
}

static double real(reading *r, const char *key, double absent)
{
    const pl_gguf_value *v = find(r, key);
    if (!v) return absent;
    const double x = constant(r, v, key);
    if (!isfinite(x)) pl_problems_add(&r->problems, "%s is not a number", key);
    return isfinite(x) ? x : absent;
}

/* A whole number of 1 to `most`; absent 0: it has to be there. */
static int64_t whole(reading *r, const char *key, int64_t most, int64_t absent)
{
    const double x = real(r, key, (double)absent);
    if (x >= 1 && x <= (double)most && x == floor(x)) return (int64_t)x;
    pl_problems_add(&r->problems, "%s.%s is missing or not a whole number of 1 to %" PRId64, r->arch, key, most);
    return 1;
}

/* A string of fewer than `room` bytes; "" where it is missing or longer. */
static const char *text(reading *r, const char *key, char *to, size_t room)
{
    const pl_gguf_value *v = find(r, key);
    *to = 0;
    if (v && v->type == PL_GGUF_STRING && !v->is_array && v->longest_bytes < room && r->status == PL_OK)
        r->status = pl_gguf_string(r->g, v, to, r->err);
    else if (v)
        pl_problems_add(&r->problems, "%s is not a short text", key);
    return to;
}

/* ---- the model ---- */

static void refuse_unsupported(reading *r)
{
    char type[ARCH_BYTES];
    if (find(r, ".general.type") && strcmp(text(r, ".general.type", type, sizeof type), "model") != 0)
        pl_problems_add(&r->problems, "general.type is \"%s\", not a model", type);
    if (real(r, ".split.count", 0) > 1)
        pl_problems_add(&r->problems,
                        "split.count: one of several files is not supported; join them with llama-gguf-split");
    if (real(r, "expert_count", 0) > 0) pl_problems_add(&r->problems, "expert_count: experts are not supported");
    if (real(r, "attention.causal", 1) == 0) pl_problems_add(&r->problems, "attention.causal false is not supported");
    if (real(r, "rope.scaling.attn_factor", 1) != 1)
        pl_problems_add(&r->problems, "rope.scaling.attn_factor is not supported");
    if (real(r, "rope.dimension_count", (double)r->m->head_width) != (double)r->m->head_width)
        pl_problems_add(&r->problems, "rope.dimension_count %g of heads that are %" PRId64 " wide is not supported",
                        real(r, "rope.dimension_count", 0), r->m->head_width);
    if (real(r, "attention.value_length", (double)r->m->head_width) != (double)r->m->head_width)
        pl_problems_add(&r->problems, "attention.value_length is another than key_length");
}

static void read_sizes(reading *r)
{
    pl_causal_lm *m = r->m;
    m->layers = whole(r, "block_count", PL_CAUSAL_LM_BLOCKS_MAX, 0);
    m->width = whole(r, "embedding_length", PL_LM_WIDTH_MAX, 0);
    m->inner = whole(r, "feed_forward_length", PL_LM_WIDTH_MAX, 0);
    m->context = whole(r, "context_length", PL_LM_CONTEXT_MAX, 0);
    m->heads = whole(r, "attention.head_count", PL_LM_HEADS_MAX, 0);
    m->key_heads = whole(r, "attention.head_count_kv", PL_LM_HEADS_MAX, m->heads);
    m->head_width = whole(r, "attention.key_length", 2 * PL_ROPE_PAIRS_MAX, m->width / m->heads);
    m->norm_eps =
        real(r, m->form.is_layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", NAN);
    if (r->family->unscaled_layers == m->layers) m->attention_scale = 1 / sqrt((double)(m->width / m->heads));
    if (r->family->attention_cap > 0) m->attention_cap = real(r, "attn_logit_softcapping", r->family->attention_cap);
    if (r->family->output_cap != 0)
        m->output_cap = real(r, "final_logit_softcapping", r->family->output_cap > 0 ? r->family->output_cap : 0);
}

static const pl_gguf_tensor *tensor(const reading *r, const char *name) { return pl_gguf_find_tensor(r->g, name); }

static void read_tensors(reading *r)
{
    pl_causal_lm *m = r->m;
    const pl_lm_family *f = r->family;
    const pl_gguf_tensor *table = tensor(r, "token_embd.weight");
    m->vocab = table && table->ne[1] <= PL_LM_VOCAB_MAX ? (int64_t)table->ne[1] : 0;
    if (m->vocab < 1) pl_problems_add(&r->problems, "token_embd.weight is missing or of no use");
    m->is_tied = !tensor(r, "output.weight");
    if (f->query_bias == PL_BIAS_OPTION) m->has_query_bias = tensor(r, "blk.0.attn_q.bias");
    if (f->output_bias == PL_BIAS_OPTION) m->has_output_bias = tensor(r, "blk.0.attn_output.bias");
    if (f->inner_bias == PL_BIAS_OPTION) m->has_inner_bias = tensor(r, "blk.0.ffn_up.bias");
}

/* ---- layers ---- */

/* The pattern as an array, one for each layer; false: there is none. */
static bool read_pattern(reading *r, bool *slides)
{
    const pl_gguf_value *v = find(r, "attention.sliding_window_pattern");
    unsigned char buffer[512];
    if (!v || !v->is_array) return false;
    if (v->type == PL_GGUF_STRING || v->count != (uint64_t)r->m->layers) {
        pl_problems_add(&r->problems, "attention.sliding_window_pattern has not one number for each layer");
        return false;
    }
    pl_gguf_cursor c = pl_gguf_begin(r->g, v, buffer, sizeof buffer);
    for (int64_t i = 0; i < r->m->layers && r->status == PL_OK; i++) {
        double x = 0;
        r->status = pl_gguf_next_number(&c, &x, r->err);
        slides[i] = x != 0;
    }
    return true;
}

static void read_windows(reading *r)
{
    const pl_lm_family *f = r->family;
    bool slides[PL_CAUSAL_LM_BLOCKS_MAX];
    /* only gemma2's files leave it out */
    double window = real(r, "attention.sliding_window", f->attention_cap > 0 ? (double)f->window : 0);
    if (!(window >= 0 && window <= PL_LM_CONTEXT_MAX && window == floor(window))) {
        pl_problems_add(&r->problems, "attention.sliding_window is %g", window);
        window = 0;
    }
    if (f->window_rule == PL_WINDOW_ALL || !read_pattern(r, slides)) {
        const double n =
            f->window_rule == PL_WINDOW_ALL ? 0 : real(r, "attention.sliding_window_pattern", (double)f->pattern);
        for (int64_t i = 0; i < r->m->layers; i++) slides[i] = n < 1 || fmod((double)i, floor(n)) < floor(n) - 1;
    }
    for (int64_t i = 0; i < r->m->layers; i++) r->m->block[i].window = slides[i] ? (int64_t)window : 0;
}

/* Of the others no window is written, and llama.cpp applies none. */
static void read_layers(reading *r)
{
    const pl_lm_family *f = r->family;
    if (f->window_rule == PL_WINDOW_ALL || f->window_rule == PL_WINDOW_PATTERN) read_windows(r);
    for (int64_t i = 0; i < r->m->layers; i++) {
        pl_causal_lm_block *b = &r->m->block[i];
        b->has_rope = !f->form.has_position_table && !(f->may_lack_rope && (i + 1) % 4 == 0);
        b->rope = f->has_local_rope && b->window > 0;
    }
}

/* ---- rotary positions ---- */

static pl_rope_kind read_kind(reading *r, double factor)
{
    char type[ARCH_BYTES];
    text(r, "rope.scaling.type", type, sizeof type);
    if (strcmp(type, "yarn") == 0) return PL_ROPE_YARN;
    if (*type && strcmp(type, "linear") != 0 && strcmp(type, "none") != 0)
        pl_problems_add(&r->problems, "rope.scaling.type \"%s\" is not supported", type);
    return factor != 0 && strcmp(type, "none") != 0 ? PL_ROPE_LINEAR : PL_ROPE_DEFAULT;
}

static void read_rope(reading *r, pl_rope_scaling *s)
{
    s->theta = real(r, "rope.freq_base", 1e4);
    s->factor = real(r, "rope.scaling.factor", real(r, "rope.scale_linear", 0));
    s->kind = read_kind(r, s->factor);
    if (r->family->has_plain_rope && s->kind != PL_ROPE_DEFAULT)
        pl_problems_add(&r->problems, "rope.scaling is not supported in this family");
    if (s->kind != PL_ROPE_YARN) return;
    s->original_context = real(r, "rope.scaling.original_context_length", (double)r->m->context);
    s->beta_fast = real(r, "rope.scaling.yarn_beta_fast", 32);
    s->beta_slow = real(r, "rope.scaling.yarn_beta_slow", 1);
}

/* rope_freqs.weight: what each pair's frequency is divided by. */
static void read_divisors(reading *r, pl_rope_scaling *s)
{
    const pl_gguf_tensor *t = tensor(r, "rope_freqs.weight");
    const int64_t pairs = r->m->head_width / 2;
    if (!t || r->status != PL_OK) return;
    if (t->encoding != PL_ENCODING_F32 || t->ne[0] != (uint64_t)pairs || t->bytes != (uint64_t)pairs * sizeof(float)) {
        pl_problems_add(&r->problems, "rope_freqs.weight is not %" PRId64 " numbers in F32", pairs);
        return;
    }
    r->status = pl_model_file_read(r->file, t->offset, s->divisor, (size_t)t->bytes, r->err);
    s->divisors = pairs;
    for (int64_t j = 0; j < pairs && r->status == PL_OK; j++)
        if (!(s->divisor[j] > 0 && isfinite(s->divisor[j]))) {
            pl_problems_add(&r->problems, "rope_freqs.weight holds %g", (double)s->divisor[j]);
            break;
        }
}

static void read_ropes(reading *r)
{
    pl_rope_scaling *s = r->m->rope;
    read_rope(r, &s[0]);
    read_divisors(r, &s[0]);
    if (!r->family->has_local_rope) return;
    s[1] = (pl_rope_scaling){.theta = real(r, "rope.freq_base_swa", 1e4), .divisors = s[0].divisors};
    memcpy(s[1].divisor, s[0].divisor, sizeof s[1].divisor);
}

/* ---- tokens ---- */

static int64_t token(reading *r, const char *key)
{
    const double x = real(r, key, PL_PRETRAINED_NO_TOKEN);
    return x >= 0 && x <= PL_LM_VOCAB_MAX ? (int64_t)x : PL_PRETRAINED_NO_TOKEN;
}

static void read_tokens(reading *r, pl_pretrained_defaults *d)
{
    d->bos = token(r, ".tokenizer.ggml.bos_token_id");
    d->eos = token(r, ".tokenizer.ggml.eos_token_id");
    d->pad = token(r, ".tokenizer.ggml.padding_token_id");
    const int64_t ends[] = {d->eos, token(r, ".tokenizer.ggml.eot_token_id"), token(r, ".tokenizer.ggml.eom_token_id")};
    for (int i = 0; i < 3; i++) {
        bool is_new = ends[i] != PL_PRETRAINED_NO_TOKEN;
        for (size_t j = 0; j < d->stops; j++) is_new = is_new && d->stop[j] != ends[i];
        if (is_new) d->stop[d->stops++] = ends[i];
    }
}

static pl_status find_family(reading *r, char arch[ARCH_BYTES])
{
    char names[160];
    text(r, ".general.architecture", arch, ARCH_BYTES);
    PL_TRY(r->status);
    r->arch = arch;
    r->family = pl_lm_family_of_arch(arch);
    if (r->family) return PL_OK;
    return pl_fail(r->err, PL_E_UNSUPPORTED,
                   "%s: general.architecture \"%s\" is not supported; models of %s are, where they are written as GGUF",
                   r->file->path, arch, pl_lm_family_names(names, sizeof names));
}

pl_status pl_gguf_model_read(const pl_gguf *g, const pl_model_file *file, const pl_lm_family **family, pl_causal_lm *m,
                             pl_pretrained_defaults *d, pl_error *err)
{
    char arch[ARCH_BYTES];
    reading r = {.g = g, .file = file, .arch = "", .m = m, .err = err};
    PL_TRY(find_family(&r, arch));
    *family = r.family;
    pl_lm_begin(m, r.family);
    read_sizes(&r);
    refuse_unsupported(&r);
    read_tensors(&r);
    read_layers(&r);
    if (!r.family->form.has_position_table) read_ropes(&r);
    (void)pl_lm_set_activation(m, r.family, r.family->activation);
    read_tokens(&r, d);
    pl_lm_finish(m, r.family);
    pl_lm_check(m, &r.problems);
    PL_TRY(r.status);
    return pl_problems_fail(&r.problems, PL_E_UNSUPPORTED, file->path, "this model cannot be used", err);
}

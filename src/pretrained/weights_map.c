/* Which tensors a model has, what they are called in each kind of file, and how they lie there: a table, by which
 * files are read and written. Fused tensors hold several of ours, row after row; gpt2's matrices in folders have a row
 * for each input. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pretrained/model_impl.h"
#include "pretrained/written.h"

/* ---- the table ---- */

typedef enum size { ONE, WIDTH, QUERIES, KEYS, INNER, VOCAB, CONTEXT, HEAD } size;

typedef enum need {
    ALWAYS,
    NEVER,
    LAYER_NORM,
    PRE_NORMS,
    POST_NORMS,
    BOTH_NORMS,
    NO_POST_NORMS,
    QK_NORM,
    JOINT_QK_NORM,
    GATED,
    TABLE,
    UNTIED,
    QUERY_BIAS,
    OUTPUT_BIAS,
    INNER_BIAS
} need;

typedef enum part { WHOLE, QUERY_PART, KEY_PART, VALUE_PART, GATE_PART, UP_PART } part;

typedef struct row {
    const char *name; /* ours, and in folders, after model. or model.layers.N. */
    size rows, columns;
    need when, bias;
    bool is_norm, is_rotary;
    const char *gpt2, *gguf, *fused, *fused_gguf;
    part part;      /* of the fused ones */
    part gpt2_part; /* of gpt2's name */
} row;

static const row outer_rows[] = {
    {"embed_tokens", VOCAB, WIDTH, ALWAYS, NEVER, .gpt2 = "wte", .gguf = "token_embd"},
    {"embed_positions", CONTEXT, WIDTH, TABLE, NEVER, .gpt2 = "wpe", .gguf = "position_embd"},
    {"norm", ONE, WIDTH, ALWAYS, LAYER_NORM, .is_norm = true, .gpt2 = "ln_f", .gguf = "output_norm"},
    {"lm_head", VOCAB, WIDTH, UNTIED, NEVER, .gpt2 = "lm_head", .gguf = "output"},
};

static const row block_rows[] = {
    {"input_layernorm", ONE, WIDTH, PRE_NORMS, LAYER_NORM, .is_norm = true, .gpt2 = "ln_1", .gguf = "attn_norm"},
    {"self_attn.q_proj", QUERIES, WIDTH, ALWAYS, QUERY_BIAS, .is_rotary = true, .gpt2 = "attn.c_attn",
     .gpt2_part = QUERY_PART, .gguf = "attn_q", .fused = "self_attn.qkv_proj", .fused_gguf = "attn_qkv",
     .part = QUERY_PART},
    {"self_attn.k_proj", KEYS, WIDTH, ALWAYS, QUERY_BIAS, .is_rotary = true, .gpt2 = "attn.c_attn",
     .gpt2_part = KEY_PART, .gguf = "attn_k", .fused = "self_attn.qkv_proj", .fused_gguf = "attn_qkv",
     .part = KEY_PART},
    {"self_attn.v_proj", KEYS, WIDTH, ALWAYS, QUERY_BIAS, .gpt2 = "attn.c_attn", .gpt2_part = VALUE_PART,
     .gguf = "attn_v", .fused = "self_attn.qkv_proj", .fused_gguf = "attn_qkv", .part = VALUE_PART},
    {"self_attn.q_norm", ONE, HEAD, QK_NORM, NEVER, .is_norm = true, .gguf = "attn_q_norm"},
    {"self_attn.k_norm", ONE, HEAD, QK_NORM, NEVER, .is_norm = true, .gguf = "attn_k_norm"},
    {"self_attn.q_norm", ONE, QUERIES, JOINT_QK_NORM, NEVER, .is_norm = true, .gguf = "attn_q_norm"},
    {"self_attn.k_norm", ONE, KEYS, JOINT_QK_NORM, NEVER, .is_norm = true, .gguf = "attn_k_norm"},
    {"self_attn.o_proj", WIDTH, QUERIES, ALWAYS, OUTPUT_BIAS, .gpt2 = "attn.c_proj", .gguf = "attn_output"},
    {"post_attention_layernorm", ONE, WIDTH, NO_POST_NORMS, LAYER_NORM, .is_norm = true, .gpt2 = "ln_2",
     .gguf = "ffn_norm"},
    {"post_attention_layernorm", ONE, WIDTH, POST_NORMS, NEVER, .is_norm = true, .gguf = "post_attention_norm"},
    {"pre_feedforward_layernorm", ONE, WIDTH, BOTH_NORMS, NEVER, .is_norm = true, .gguf = "ffn_norm"},
    {"mlp.gate_proj", INNER, WIDTH, GATED, INNER_BIAS, .gguf = "ffn_gate", .fused = "mlp.gate_up_proj",
     .fused_gguf = "ffn_up", .part = GATE_PART},
    {"mlp.up_proj", INNER, WIDTH, ALWAYS, INNER_BIAS, .gpt2 = "mlp.c_fc", .gguf = "ffn_up", .fused = "mlp.gate_up_proj",
     .fused_gguf = "ffn_up", .part = UP_PART},
    {"mlp.down_proj", WIDTH, INNER, ALWAYS, INNER_BIAS, .gpt2 = "mlp.c_proj", .gguf = "ffn_down"},
    {"post_feedforward_layernorm", ONE, WIDTH, POST_NORMS, NEVER, .is_norm = true, .gguf = "post_ffw_norm"},
};

/* Tensors of a file that no computation needs, by how their names begin or end. */
typedef struct ignored {
    const char *family; /* NULL: all */
    const char *begins, *ends;
} ignored;

static const ignored ignored_names[] = {
    {NULL, NULL, ".rotary_emb.inv_freq"},
    {"gpt2", NULL, ".attn.bias"},
    {"gpt2", NULL, ".attn.masked_bias"},
    {"gemma3_text", "vision_tower.", NULL},
    {"gemma3_text", "model.vision_tower.", NULL},
    {"gemma3_text", "multi_modal_projector.", NULL},
    {"gemma3_text", "model.multi_modal_projector.", NULL},
};

/* ---- what a model has ---- */

static int64_t size_of(const pl_causal_lm *m, size s)
{
    const int64_t sizes[] = {[ONE] = 1,
                             [WIDTH] = m->width,
                             [QUERIES] = m->heads * m->head_width,
                             [KEYS] = m->key_heads * m->head_width,
                             [INNER] = m->inner,
                             [VOCAB] = m->vocab,
                             [CONTEXT] = m->context,
                             [HEAD] = m->head_width};
    return sizes[s];
}

static bool has(const pl_causal_lm *m, need n)
{
    const bool answers[] = {[ALWAYS] = true,
                            [NEVER] = false,
                            [LAYER_NORM] = m->form.is_layer_norm,
                            [POST_NORMS] = m->form.has_post_norms,
                            [NO_POST_NORMS] = !m->form.has_post_norms,
                            [PRE_NORMS] = !m->form.lacks_pre_norms,
                            [BOTH_NORMS] = m->form.has_post_norms && !m->form.lacks_pre_norms,
                            [QK_NORM] = m->form.has_qk_norm && !m->form.has_joint_qk_norm,
                            [JOINT_QK_NORM] = m->form.has_joint_qk_norm,
                            [GATED] = m->form.is_gated,
                            [TABLE] = m->form.has_position_table,
                            [UNTIED] = !m->is_tied,
                            [QUERY_BIAS] = m->has_query_bias,
                            [OUTPUT_BIAS] = m->has_output_bias,
                            [INNER_BIAS] = m->has_inner_bias};
    return answers[n];
}

/* Rows of the fused tensor that a part is of, and where it begins. */
static int64_t fused_rows(const pl_causal_lm *m, part p, int64_t rows, int64_t *first)
{
    const int64_t queries = size_of(m, QUERIES), keys = size_of(m, KEYS);
    *first = p == KEY_PART ? queries : p == VALUE_PART ? queries + keys : p == UP_PART ? m->inner : 0;
    return p == WHOLE ? rows : p >= GATE_PART ? 2 * m->inner : queries + 2 * keys;
}

/* ---- names in files ---- */

typedef struct mapping {
    pl_pretrained *p;
    const pl_lm_family *family;
    bool is_gguf;       /* of the file that is read, or written */
    const char *prefix; /* in folders */
    const char *head;   /* lm_head there, which stands outside of the prefix */
    bool is_gpt2;       /* with the names of its folders */
    pl_problems problems;
} mapping;

enum { NAME_BYTES = 160, OUTER = -1 };

static const char *find_prefix(const pl_pretrained *p, bool is_gpt2)
{
    static const char *const prefixes[] = {"model.", "language_model.model.", "model.language_model.", "transformer."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s%s.weight", prefixes[i], is_gpt2 ? "wte" : "embed_tokens");
        if (pl_pretrained_find_source(p, name)) return prefixes[i];
    }
    return "";
}

static bool begins_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* Names of a folder are those that this model's own has, if it is one. */
static mapping begin(pl_pretrained *p, bool is_gguf)
{
    const pl_lm_family *f = p->gguf || !is_gguf || p->family->arch ? p->family : pl_lm_family_of_arch("llama");
    mapping m = {.p = p, .family = f, .is_gguf = is_gguf, .is_gpt2 = f->form.is_layer_norm && !is_gguf};
    m.prefix = !p->gguf ? find_prefix(p, f->form.is_layer_norm) : m.is_gpt2 ? "transformer." : "model.";
    m.head = begins_with(m.prefix, "language_model.") ? "language_model.lm_head" : "lm_head";
    return m;
}

static void print_name(const mapping *m, const char *base, int64_t block, const char *ending, char name[NAME_BYTES])
{
    const char *prefix = m->is_gguf ? "" : m->prefix, *blocks = m->is_gguf ? "blk" : m->is_gpt2 ? "h" : "layers";
    if (!m->is_gguf && strcmp(base, "lm_head") == 0)
        snprintf(name, NAME_BYTES, "%s%s", m->head, ending);
    else if (block == OUTER)
        snprintf(name, NAME_BYTES, "%s%s%s", prefix, base, ending);
    else
        snprintf(name, NAME_BYTES, "%s%s.%" PRId64 ".%s%s", prefix, blocks, block, base, ending);
}

/* The name of the tensor that a row of the table is a part of; false: such files have it alone. */
static bool print_fused(const mapping *m, const row *r, int64_t block, const char *ending, part *of,
                        char name[NAME_BYTES])
{
    const pl_lm_family *f = m->family;
    const char *fused = m->is_gguf ? (f->is_fused_in_gguf ? r->fused_gguf : NULL) : f->is_fused ? r->fused : NULL;
    if (!fused || (r->part >= GATE_PART && !f->is_fused)) return false;
    print_name(m, fused, block, ending, name);
    *of = r->part;
    return true;
}

static void print_alone(const mapping *m, const row *r, int64_t block, const char *ending, part *of,
                        char name[NAME_BYTES])
{
    print_name(m, m->is_gguf ? r->gguf : m->is_gpt2 ? r->gpt2 : r->name, block, ending, name);
    *of = m->is_gpt2 ? r->gpt2_part : WHOLE;
}

static void print_ours(const row *r, int64_t block, const char *ending, char name[NAME_BYTES])
{
    if (block == OUTER)
        snprintf(name, NAME_BYTES, "%s%s%s", strcmp(r->name, "lm_head") ? "model." : "", r->name, ending);
    else
        snprintf(name, NAME_BYTES, "model.layers.%" PRId64 ".%s%s", block, r->name, ending);
}

/* The source of a row of the table: its name, what is there of that name (NULL), and which part of it. In GGUF files
 * queries, keys and values are met fused and alone. */
static pl_source *find_source(const mapping *m, const row *r, int64_t block, const char *ending, part *of,
                              char name[NAME_BYTES])
{
    if (print_fused(m, r, block, ending, of, name)) {
        pl_source *s = pl_pretrained_find_source(m->p, name);
        if (s || !m->is_gguf || r->part >= GATE_PART) return s;
    }
    print_alone(m, r, block, ending, of, name);
    return pl_pretrained_find_source(m->p, name);
}

/* So many heads whose pairs of rows are neighbours in the file; 0: they are not. */
static int64_t pair_heads(const mapping *m, const row *r)
{
    if (!m->is_gguf || !m->family->is_permuted || !r->is_rotary) return 0;
    return r->rows == QUERIES ? m->p->model.heads : m->p->model.key_heads;
}

/* ---- matching ---- */

static void check_source(mapping *m, const pl_source *s, bool is_vector, int64_t rows, int64_t columns)
{
    const bool is_gguf = m->is_gguf;
    if (s->rows != (uint64_t)rows || s->columns != (uint64_t)columns || (!is_gguf && s->rank != (is_vector ? 1 : 2)))
        pl_problems_add(&m->problems,
                        "tensor %s has %" PRIu64 " × %" PRIu64 " numbers%s; %" PRId64 " × %" PRId64 " were expected",
                        s->name, s->rows, s->columns, s->rank > 2 ? " (or more dimensions)" : "", rows, columns);
    else if (s->encoding == PL_ENCODING_COUNT || (is_vector && pl_encoding_block(s->encoding) > 1))
        pl_problems_add(&m->problems, "tensor %s is of type %s, which is not supported%s", s->name, s->type,
                        is_vector ? " for vectors" : "");
}

static pl_status add_tensor(mapping *m, const char *name, int64_t rows, int64_t columns, const pl_taken *taken,
                            bool only_f32, pl_error *err)
{
    pl_pretrained *p = m->p;
    pl_pretrained_tensor *t;
    if (pl_grow(&p->tensors, &p->tensor_room, p->tensor_count, sizeof *p->tensors) ||
        pl_grow(&p->taken, &p->taken_room, p->tensor_count, sizeof *p->taken) ||
        !(name = pl_pool_strdup(p->pool, name)))
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", p->path);
    t = &p->tensors[p->tensor_count];
    *t = (pl_pretrained_tensor){.name = name, .rows = rows, .columns = columns, .only_f32 = only_f32};
    t->encoding = taken->source->encoding;
    t->file = taken->source->file;
    t->bytes = (uint64_t)rows * (uint64_t)pl_encoding_row_bytes(t->encoding, columns);
    p->taken[p->tensor_count++] = *taken;
    return PL_OK;
}

/* The weight or the bias of a row of the table. */
static pl_status map_tensor(void *to, const row *r, int64_t block, bool is_bias, pl_error *err)
{
    mapping *m = to;
    const pl_causal_lm *lm = &m->p->model;
    const char *ending = is_bias ? ".bias" : ".weight";
    char name[NAME_BYTES], ours[NAME_BYTES];
    part of;
    pl_source *s = find_source(m, r, block, ending, &of, name);
    if (!s) {
        pl_problems_add(&m->problems, "tensor %s is missing", name);
        return PL_OK;
    }
    const bool is_vector = is_bias || r->rows == ONE;
    const int64_t outputs = size_of(lm, r->rows == ONE ? r->columns : r->rows), inputs = size_of(lm, r->columns);
    pl_taken taken = {.source = s, .pair_heads = pair_heads(m, r), .is_vector = is_vector};
    const int64_t all = fused_rows(lm, of, outputs, &taken.first);
    taken.is_transposed = m->is_gpt2 && block != OUTER && !is_vector;
    if (is_vector)
        check_source(m, s, true, 1, all);
    else if (taken.is_transposed)
        check_source(m, s, false, inputs, all);
    else
        check_source(m, s, false, all, inputs);
    s->is_used = true;
    if (m->problems.count) return PL_OK;
    print_ours(r, block, ending, ours);
    return add_tensor(m, ours, is_vector ? 1 : outputs, is_vector ? outputs : inputs, &taken,
                      r->is_norm && m->family->adds_one && !m->is_gguf, err);
}

typedef pl_status (*row_visitor)(void *, const row *, int64_t block, bool is_bias, pl_error *);

static pl_status visit_rows(const pl_causal_lm *lm, const row *rows, size_t count, int64_t block, row_visitor visit,
                            void *to, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!has(lm, rows[i].when)) continue;
        PL_TRY(visit(to, &rows[i], block, false, err));
        if (has(lm, rows[i].bias)) PL_TRY(visit(to, &rows[i], block, true, err));
    }
    return PL_OK;
}

/* All tensors of a model, in its order. */
static pl_status visit_all(const pl_causal_lm *lm, row_visitor visit, void *to, pl_error *err)
{
    PL_TRY(visit_rows(lm, outer_rows, sizeof outer_rows / sizeof *outer_rows, OUTER, visit, to, err));
    for (int64_t i = 0; i < lm->layers; i++)
        PL_TRY(visit_rows(lm, block_rows, sizeof block_rows / sizeof *block_rows, i, visit, to, err));
    return PL_OK;
}

/* ---- what is left over ---- */

static bool is_ignored(const mapping *m, const char *name)
{
    if (m->is_gguf) return strcmp(name, "rope_freqs.weight") == 0;
    if (m->p->model.is_tied && begins_with(name, m->head) && strcmp(name + strlen(m->head), ".weight") == 0)
        return true;
    for (size_t i = 0; i < sizeof ignored_names / sizeof *ignored_names; i++) {
        const ignored *g = &ignored_names[i];
        if (g->family && strcmp(g->family, m->p->model.family) != 0) continue;
        if (g->begins ? begins_with(name, g->begins) : pl_ends_with(name, g->ends)) return true;
    }
    return false;
}

static void refuse_unknown(mapping *m)
{
    for (size_t i = 0; i < m->p->source_count; i++) {
        const pl_source *s = &m->p->sources[i];
        if (!s->is_used && !is_ignored(m, s->name)) pl_problems_add(&m->problems, "tensor %s is unknown", s->name);
    }
}

pl_status pl_weights_map_apply(pl_pretrained *p, pl_error *err)
{
    mapping m = begin(p, p->gguf != NULL);
    PL_TRY(visit_all(&p->model, map_tensor, &m, err));
    refuse_unknown(&m);
    return pl_problems_fail(&m.problems, PL_E_DATA, p->path, "its tensors are not those of its config", err);
}

/* ---- writing ---- */

typedef struct writing {
    mapping map;
    size_t next; /* of our tensors: they come in the same order */
    pl_written_list *list;
} writing;

/* The one that this is a part of, which came a few rows before; or a new one. NULL: no memory. */
static pl_written *find_written(writing *w, const char *name)
{
    pl_written_list *l = w->list;
    for (size_t i = l->count; i-- > 0 && l->count - i <= 2 * PL_WRITTEN_PARTS_MAX;)
        if (strcmp(l->of[i].name, name) == 0) return &l->of[i];
    const char *copy = pl_pool_strdup(l->pool, name);
    if (!copy || pl_grow(&l->of, &l->room, l->count, sizeof *l->of)) return NULL;
    l->of[l->count] = (pl_written){.name = copy};
    return &l->of[l->count++];
}

static pl_status write_tensor(void *to, const row *r, int64_t block, bool is_bias, pl_error *err)
{
    writing *w = to;
    const mapping *m = &w->map;
    const pl_pretrained_tensor *t = &m->p->tensors[w->next++];
    const char *ending = is_bias ? ".bias" : ".weight";
    char name[NAME_BYTES];
    part of;
    if (!print_fused(m, r, block, ending, &of, name)) print_alone(m, r, block, ending, &of, name);
    pl_written *written = find_written(w, name);
    if (!written) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of tensors", m->p->path);
    written->part[written->parts++] = t;
    written->is_vector = is_bias || r->rows == ONE;
    written->rows = written->is_vector ? 1 : written->rows + t->rows;
    written->columns = written->is_vector ? written->columns + t->columns : t->columns;
    written->pair_heads = pair_heads(m, r);
    written->is_transposed = m->is_gpt2 && block != OUTER && !written->is_vector;
    written->is_stored = r->is_norm && m->is_gguf == (m->p->gguf != NULL);
    written->lacks_one = r->is_norm && m->family->adds_one && !m->is_gguf && !written->is_stored;
    written->is_table = strcmp(r->name, "embed_positions") == 0;
    written->is_vocabulary = r->rows == VOCAB;
    return PL_OK;
}

static const char *find_left_out(const pl_pretrained *p)
{
    for (size_t i = 0; i < p->source_count; i++)
        for (size_t k = 0; k < sizeof ignored_names / sizeof *ignored_names; k++)
            if (ignored_names[k].begins && begins_with(p->sources[i].name, ignored_names[k].begins))
                return p->sources[i].name;
    return NULL;
}

pl_status pl_written_list_make(const pl_pretrained *p, bool is_gguf, pl_written_list *list, pl_error *err)
{
    writing w = {.map = begin((pl_pretrained *)p, is_gguf), .list = list};
    *list = (pl_written_list){.pool = pl_pool_create()};
    if (!list->pool) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of tensors", p->path);
    list->left_out = find_left_out(p);
    return visit_all(&p->model, write_tensor, &w, err);
}

void pl_written_list_deinit(pl_written_list *list)
{
    if (list->pool) pl_pool_destroy(list->pool);
    pl_free(list->of);
}

/* What a pretrained model is, as its files say: for `plimsoll report MODEL`. */
#include <inttypes.h>
#include <stddef.h>

#include "base/units.h"
#include "systems/pretrained.h"
#include "systems/system.h"

typedef struct kept {
    uint64_t tensors, numbers, bytes;
} kept;

typedef struct facts {
    const pl_pretrained *model;
    const pl_text_data *text;
    kept all, stored[PL_ENCODING_COUNT];
} facts;

static void add(kept *k, const pl_pretrained_tensor *t)
{
    k->tensors++;
    k->numbers += (uint64_t)(t->rows * t->columns);
    k->bytes += t->bytes;
}

static void count(facts *f)
{
    for (size_t i = 0; i < pl_pretrained_tensor_count(f->model); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(f->model, i);
        add(&f->all, t);
        add(&f->stored[t->encoding], t);
    }
}

/* ---- what it is ---- */

/* Programs have keys of their own for what people see in a row. */
#define show(d, ...) (pl_doc_shown(d), pl_system_show_fact(d, __VA_ARGS__), pl_doc_shown_end(d))

static void say_cards(const facts *f, pl_doc *d)
{
    char text[32];
    pl_doc_card(d, pl_format_count(f->all.numbers, text, sizeof text), "parameters");
    pl_doc_card(d, pl_format_bytes(f->all.bytes, text, sizeof text), "of weights");
    pl_doc_card(d, pl_format_count((uint64_t)pl_pretrained_model(f->model)->context, text, sizeof text),
                "tokens of context that it was made for");
}

/* One row to people, one number to programs. */
static void say_size(pl_doc *d, const char *key, const char *name, int64_t value)
{
    char text[32];
    show(d, name, "%s", pl_format_count((uint64_t)value, text, sizeof text));
    pl_doc_key_count(d, key, (uint64_t)value);
}

static void say_sizes(const pl_causal_lm *m, pl_doc *d)
{
    say_size(d, "layers", "blocks", m->layers);
    say_size(d, "width", "width", m->width);
    say_size(d, "heads", "attention heads", m->heads);
    say_size(d, "key_heads", "heads of keys and values", m->key_heads);
    say_size(d, "head_width", "width of a head", m->head_width);
    say_size(d, "feed_forward", "inner width of the feed-forward", m->inner);
    say_size(d, "vocab_size", "rows of the embedding", m->vocab);
    say_size(d, "context", "context", m->context);
}

static void say_words(pl_doc *d, const char *key, const char *name, const char *words)
{
    show(d, name, "%s", words);
    pl_doc_key_words(d, key, words);
}

static int64_t windows_of(const pl_causal_lm *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->layers; i++) n += m->block[i].window > 0;
    return n;
}

static int64_t unrotated_of(const pl_causal_lm *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->layers; i++) n += !m->block[i].has_rope;
    return n;
}

static const char *positions_of(const pl_causal_lm *m)
{
    static const char *const names[] = {"rotary", "rotary, linear", "rotary, llama3", "rotary, yarn"};
    return m->form.has_position_table ? "a table"
           : m->rope[0].divisors      ? "rotary, with divisors"
                                      : names[m->rope[0].kind];
}

static void say_form(const pl_causal_lm *m, pl_doc *d)
{
    say_words(d, "norm", "norms", m->form.is_layer_norm ? "layer_norm" : "rms_norm");
    say_words(d, "activation", m->form.is_gated ? "activation, gated" : "activation",
              pl_activation_name(m->activation));
    say_words(d, "positions", "positions", positions_of(m));
    say_words(d, "output", "output layer", m->is_tied ? "the embedding" : "its own");
    if (windows_of(m)) say_size(d, "window_layers", "blocks that see a window of tokens only", windows_of(m));
    if (unrotated_of(m) && !m->form.has_position_table)
        say_size(d, "unrotated_layers", "blocks without positions", unrotated_of(m));
}

/* ---- how it is stored ---- */

static void say_stored(const facts *f, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"encoding", "stored as"},
                                            {"tensors", "tensors", PL_DOC_COUNT},
                                            {"numbers", "numbers", PL_DOC_COUNT},
                                            {"bytes", "bytes", PL_DOC_BYTES}};
    pl_doc_section(d, "Its tensors");
    pl_doc_table(d, "stored", columns, sizeof columns / sizeof *columns);
    for (int e = 0; e < PL_ENCODING_COUNT; e++) {
        const kept *k = &f->stored[e];
        if (!k->tensors) continue;
        pl_doc_row(d, 0);
        pl_doc_words(d, "%s", pl_encoding_name((pl_encoding)e));
        pl_doc_count(d, k->tensors);
        pl_doc_count(d, k->numbers);
        pl_doc_count(d, k->bytes);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

/* ---- texts ---- */

static void say_ends(const facts *f, pl_doc *d)
{
    size_t bytes;
    for (const uint32_t *id = f->text->end; *id != PL_TOKEN_NONE; id++) {
        const char *text = (const char *)pl_tokenizer_token(f->text->tokenizer, *id, &bytes);
        show(d, "ends a text", "%.*s (%" PRIu32 ")", (int)bytes, bytes ? text : "", *id);
    }
    pl_doc_array(d, "ends");
    for (const uint32_t *id = f->text->end; *id != PL_TOKEN_NONE; id++) pl_doc_key_count(d, "", *id);
    pl_doc_array_end(d);
}

static void say_sampling(const pl_pretrained_defaults *g, pl_doc *d)
{
    if (g->has_temperature) show(d, "temperature", "%g", g->temperature);
    if (g->has_top_k) show(d, "top_k", "%" PRId64, g->top_k);
    if (g->has_top_p) show(d, "top_p", "%g", g->top_p);
    if (g->has_repetition_penalty) show(d, "repeat_penalty", "%g", g->repetition_penalty);
}

static void say_texts(const facts *f, pl_doc *d)
{
    const bool chats = f->text->chat.text != NULL;
    pl_doc_section(d, "Its texts");
    pl_system_show_facts(d);
    say_size(d, "tokens", "tokens of its tokenizer", pl_tokenizer_vocab_size(f->text->tokenizer));
    say_ends(f, d);
    show(d, "chat template", "%s", chats ? "yes" : "none; `plimsoll chat` needs --chat_template");
    pl_doc_key_bool(d, "chat_template", chats);
    say_sampling(pl_pretrained_generation(f->model), d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

/* ---- all of it ---- */

void pl_pretrained_describe(const pl_pretrained *p, const pl_text_data *text, pl_doc *d)
{
    facts f = {.model = p, .text = text};
    const pl_causal_lm *m = pl_pretrained_model(p);
    count(&f);
    pl_doc_title(d, NULL, "model", text->data.path);
    pl_doc_key_words(d, "schema", "plimsoll.model/1");
    pl_doc_key_words(d, "family", m->family);
    pl_doc_key_count(d, "parameters", f.all.numbers);
    pl_doc_key_count(d, "weight_bytes", f.all.bytes);
    say_cards(&f, d);
    pl_doc_section_named(d, "The model: %s", m->family);
    pl_system_show_facts(d);
    say_sizes(m, d);
    say_form(m, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    say_stored(&f, d);
    say_texts(&f, d);
}

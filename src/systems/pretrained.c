/* The row of pretrained language models, and how the files of one are opened. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "config/schema.h"
#include "data/text/judged.h"
#include "data/text/text_data.h"
#include "store/folder.h"
#include "systems/infer.h"
#include "systems/pretrained.h"
#include "systems/system.h"
#include "systems/text.h"

enum { STAGING_BYTES = 64 << 10 };

typedef struct pretrained_data {
    pl_text_data text; /* first: this is one, with a tokenizer */
    pl_pretrained *model;
    pl_brought_weights weights;
    void *staging; /* through which weights are read */
    char source[PL_FILE_PATH_MAX];
} pretrained_data;

/* ---- weights ---- */

/* Divisors of rotary positions are part of what the files say about the model. NULL: it is another weight. */
static const pl_rope_scaling *rope_of(const pretrained_data *d, const char *name)
{
    const size_t prefix = sizeof PL_ROPE_DIVISORS - 1;
    return strncmp(name, PL_ROPE_DIVISORS, prefix) == 0 ? &pl_pretrained_model(d->model)->rope[name[prefix] - '0']
                                                        : NULL;
}

static pl_status match_weight(const void *from, const pl_graph *g, pl_id id, pl_error *err)
{
    const pretrained_data *d = from;
    const pl_value *v = &g->value[id];
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(d->model, v->name);
    if (rope_of(d, v->name)) return PL_OK;
    if (t && (uint64_t)(t->rows * t->columns) == pl_shape_elems(&v->shape)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s: the model takes a weight %s of %lld numbers, which the files have not",
                   d->text.data.path, v->name, (long long)pl_shape_elems(&v->shape));
}

static pl_status read_weight(const void *from, const pl_graph *g, pl_id id, void *to, pl_error *err)
{
    const pretrained_data *d = from;
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(d->model, g->value[id].name);
    const pl_rope_scaling *rope = rope_of(d, g->value[id].name);
    if (rope) return (void)memcpy(to, rope->divisor, pl_value_bytes(g, id)), PL_OK;
    return pl_pretrained_read(d->model, t, g->value[id].encoding, to, d->staging, STAGING_BYTES, err);
}

static uint64_t place_of(const void *from, const pl_graph *g, pl_id id)
{
    const pl_pretrained *model = ((const pretrained_data *)from)->model;
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(model, g->value[id].name);
    return t ? pl_pretrained_place(model, t, g->value[id].encoding) : PL_PRETRAINED_NO_PLACE;
}

static pl_status map_files(const void *from, void *at, uint64_t bytes, pl_error *err)
{
    return pl_pretrained_map(((const pretrained_data *)from)->model, at, bytes, err);
}

static pl_status check_files(const void *from, pl_error *err)
{
    return pl_pretrained_check_mapped(((const pretrained_data *)from)->model, err);
}

static const char *file_at(const void *from, uint64_t offset)
{
    return pl_pretrained_file_at(((const pretrained_data *)from)->model, offset);
}

/* ---- the kind of data ---- */

/* There are no checkpoints of it. */
static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    (void)data, (void)saved, (void)saved_path, (void)trains, (void)err;
    return PL_OK;
}

static void close_pretrained(pl_data *data)
{
    pretrained_data *d = (pretrained_data *)data;
    pl_pretrained_close(d->model);
    pl_tokenizer_destroy(d->text.tokenizer);
    pl_free(d->text.chat.text);
    if (data->held) close(data->held);
    pl_free(d->staging);
    pl_free(d);
}

static const pl_data_kind kind = {.match = match, .close = close_pretrained};

/* ---- opening ---- */

static pl_status find_context(const pl_config *c, bool in_chunks, const pl_causal_lm *m, uint64_t *context,
                              pl_error *err)
{
    enum { CONTEXT_AUTO = 2048, CHUNK_AUTO = 512 /* llama.cpp's */ };
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t asked = c->model.context, usual = in_chunks ? CHUNK_AUTO : CONTEXT_AUTO;
    *context = (uint64_t)(asked != PL_CONFIG_AUTO ? asked : m->context < usual ? m->context : usual);
    if (asked <= m->context) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.context %" PRId64 " is more than the %" PRId64 " tokens that %.300s was made for; take "
                   "at most that",
                   pl_config_where(c, "model.context", where, sizeof where), asked, m->context, c->model.source);
}

static bool is_in_chunks(const pl_config *c)
{
    return !c->eval.choices[0] && c->eval.protocol == PL_CONFIG_PROTOCOL_CHUNKS;
}

/* Between the beginnings of windows; 0: chunks. */
static pl_status find_stride(const pl_config *c, uint64_t window, uint64_t *stride, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    *stride = 0;
    if (is_in_chunks(c)) {
        if (window >= 4) return PL_OK;
        return pl_fail(err, PL_E_CONFIG, "%s: a chunk has 4 tokens at least; make `model.context` larger",
                       pl_config_where(c, "model.context", where, sizeof where));
    }
    if (window < 2)
        return pl_fail(err, PL_E_CONFIG, "%s: a window has 2 tokens at least; make `model.context` larger",
                       pl_config_where(c, "model.context", where, sizeof where));
    *stride = c->eval.stride == PL_CONFIG_AUTO ? (window + 1) / 2 : (uint64_t)c->eval.stride;
    if (*stride <= window) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: eval.stride %" PRIu64 " is more than a window of %" PRIu64
                   " tokens (`model.context`), so that some would never be judged; take at most that",
                   pl_config_where(c, "eval.stride", where, sizeof where), *stride, window);
}

static pl_status open_model(pretrained_data *d, const pl_config *c, pl_command command, pl_error *err)
{
    const bool is_judged = command == PL_COMMAND_EVALUATE;
    uint64_t context, identity, stride;
    pl_data *data = &d->text.data;
    d->staging = pl_alloc(1, STAGING_BYTES);
    if (!d->staging) return pl_fail(err, PL_E_NOMEM, "no memory to read the weights of %s", c->model.source);
    PL_TRY(pl_pretrained_open(c->model.source, &d->model, err));
    const pl_causal_lm *m = pl_pretrained_model(d->model);
    PL_TRY(pl_pretrained_identify(d->model, d->staging, STAGING_BYTES, &identity, err));
    PL_TRY(find_context(c, is_judged && is_in_chunks(c), m, &context, err));
    if (is_judged) PL_TRY(find_stride(c, context, &stride, err));
    d->weights = (pl_brought_weights){d, match_weight, read_weight, place_of, map_files, check_files, file_at};
    data->brought = &d->weights;
    pl_facts_add(&data->identity, "pretrained_model", pl_fact_of_hash(identity));
    pl_facts_add(&data->extents, "vocab", (uint64_t)m->vocab);
    pl_facts_add(&data->extents, PL_FACT_CONTEXT, context);
    pl_facts_add(&data->extents, PL_FACT_CONTEXT_MOST, (uint64_t)m->context);
    if (command == PL_COMMAND_GENERATE && pl_config_sequences(c) > 1)
        pl_facts_add(&data->extents, PL_FACT_SEQUENCES, (uint64_t)pl_config_sequences(c));
    return PL_OK;
}

static void add_end(pl_text_data *text, uint32_t *count, uint32_t id)
{
    for (uint32_t i = 0; i < *count; i++)
        if (text->end[i] == id) return;
    if (*count + 1 < PL_TEXT_ENDS_MAX) text->end[(*count)++] = id;
}

/* Its tokenizer names some, its other files may name more. */
static void find_ends(pretrained_data *d)
{
    const pl_pretrained_defaults *g = pl_pretrained_generation(d->model);
    uint32_t of_tokenizer[PL_TEXT_ENDS_MAX], count = 0;
    const uint32_t found = pl_tokenizer_stop_ids(d->text.tokenizer, of_tokenizer, PL_TEXT_ENDS_MAX);
    for (uint32_t i = 0; i < found && i < PL_TEXT_ENDS_MAX; i++) add_end(&d->text, &count, of_tokenizer[i]);
    for (size_t i = 0; i < g->stops; i++) add_end(&d->text, &count, (uint32_t)g->stop[i]);
    d->text.end[count] = PL_TOKEN_NONE;
}

static pl_status open_tokenizer(pretrained_data *d, pl_error *err)
{
    snprintf(d->text.tokenizer_path, sizeof d->text.tokenizer_path, "%s", d->source);
    PL_TRY(pl_pretrained_load_tokenizer(d->model, &d->text.tokenizer, err));
    pl_facts_add(&d->text.data.identity, "tokenizer", pl_tokenizer_hash(d->text.tokenizer));
    return PL_OK;
}

/* ---- what is judged ---- */

static pl_status check_wish(const pl_config *c, pl_error *err)
{
    const bool has_text = c->data.text[0], has_choices = c->eval.choices[0];
    if (has_text && has_choices)
        return pl_fail(err, PL_E_USAGE,
                       "a text (`data.text`) and choices (`eval.choices`) are judged one at a time; "
                       "leave one of them out");
    return has_text || has_choices ? PL_OK
                                   : pl_fail(err, PL_E_USAGE,
                                             "there is nothing to judge: give a text (`data.text`), or prompts with "
                                             "choices (`eval.choices`)");
}

static pl_status make_judged(pretrained_data *d, const pl_config *c, uint64_t *fact, pl_error *err)
{
    pl_data *data = &d->text.data;
    pl_text_paths paths = {.input = "/dev/stdin"};
    pl_judged_wish w = {.has_choices = c->eval.choices[0], .tokenizer = d->text.tokenizer};
    w.vocab = (uint32_t)pl_pretrained_model(d->model)->vocab;
    w.window = pl_facts_value(&data->extents, PL_FACT_CONTEXT, 0);
    w.folder = pl_system_scratch(c), w.is_memory = pl_disk_is_memory(w.folder);
    snprintf(paths.tokens, sizeof paths.tokens, "%s/plimsoll-%ld", w.folder, (long)getpid());
    w.texts = pl_text_wish(c, &paths);
    if (w.has_choices) w.texts.names = c->eval.choices, w.texts.form = PL_TEXTS_LINES, w.texts.key = NULL;
    PL_TRY(find_stride(c, w.window, &w.stride, err));
    return pl_judged_make(&w, &data->held, fact, err);
}

/* A run finds what was made before planning by the fact in its plan. */
static pl_status find_judged(pretrained_data *d, const pl_config *c, const pl_facts *planned, pl_error *err)
{
    uint64_t fact = planned ? pl_facts_value(planned, PL_FACT_JUDGED, 0) : 0;
    if (planned && fact == 0) return PL_OK; /* a plan of which only the size is asked for */
    if (planned) PL_TRY(pl_judged_find(fact, &d->text.data.held, err));
    if (!planned) PL_TRY(check_wish(c, err));
    if (!planned) PL_TRY(make_judged(d, c, &fact, err));
    pl_facts_add(&d->text.data.identity, PL_FACT_JUDGED, fact);
    return PL_OK;
}

static pl_status open_files(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                            pl_data **data, pl_error *err)
{
    const bool judges = command == PL_COMMAND_EVALUATE && (use == PL_DATA_FOR_PLAN || planned);
    pretrained_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the model's files");
    d->text.data.kind = &kind, d->text.tokens.fd = -1;
    snprintf(d->source, sizeof d->source, "%s", c->model.source);
    d->text.data.path = d->source, d->text.has_special = true;
    if (c->generate.prompt_cache[0]) d->text.data.kernel_cache_bytes = 2 * PL_FILE_WINDOW_BYTES;
    pl_status status = open_model(d, c, command, err);
    if (status == PL_OK) status = open_tokenizer(d, err);
    if (status == PL_OK && judges) status = find_judged(d, c, planned, err);
    if (status == PL_OK && command == PL_COMMAND_GENERATE && c->generate.chat)
        status = pl_pretrained_load_template(d->model, c, &d->text.chat, err);
    if (status != PL_OK) return close_pretrained(&d->text.data), status;
    find_ends(d);
    *data = &d->text.data;
    return PL_OK;
}

static pl_status describe(const pl_config *c, pl_doc *doc, pl_error *err)
{
    pl_data *data;
    PL_TRY(open_files(c, PL_COMMAND_INFER, PL_DATA_FOR_PLAN, NULL, &data, err));
    pretrained_data *d = (pretrained_data *)data;
    const pl_status status = pl_pretrained_take_template(d->model, &d->text.chat, err);
    if (status == PL_OK) pl_pretrained_describe(d->model, &d->text, doc);
    close_pretrained(data);
    return status;
}

static const char *const files[] = {NULL};

static const pl_dataset dataset = {.files = files,
                                   .rows = &pl_text_rows,
                                   .say_inferred = pl_text_say_inferred,
                                   .open = open_files,
                                   .describe = describe};

static const pl_task task = {.job = {[PL_COMMAND_EVALUATE] = &pl_job_score,
                                     [PL_COMMAND_GENERATE] = &pl_job_generate,
                                     [PL_COMMAND_INFER] = &pl_job_infer},
                             .plans = PL_COMMAND_GENERATE,
                             .tell_jobs = pl_text_tell_jobs,
                             .take_sampling = pl_pretrained_take_sampling};

const pl_system pl_system_pretrained = {.words = {"token", "tokens", "sequence", "sequences", "tok/s", "text", "step",
                                                  "part", "nats per token", "model.context", "model.context",
                                                  "the model"},
                                        .dataset = {&dataset},
                                        .task = &task};

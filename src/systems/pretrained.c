/* The row of pretrained language models, and how the files of one are opened. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/schema.h"
#include "data/text/text_data.h"
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
    pl_free(d->staging);
    pl_free(d);
}

static const pl_data_kind kind = {.match = match, .close = close_pretrained};

/* ---- opening ---- */

static pl_status find_context(const pl_config *c, const pl_causal_lm *m, uint64_t *context, pl_error *err)
{
    enum { CONTEXT_AUTO = 2048 };
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t asked = c->model.context, most = m->context < CONTEXT_AUTO ? m->context : CONTEXT_AUTO;
    *context = (uint64_t)(asked == PL_CONFIG_AUTO ? most : asked);
    if (asked <= m->context) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.context %" PRId64 " is more than the %" PRId64 " tokens that %.300s was made for; take "
                   "at most that",
                   pl_config_where(c, "model.context", where, sizeof where), asked, m->context, c->model.source);
}

static pl_status open_model(pretrained_data *d, const pl_config *c, pl_error *err)
{
    uint64_t context;
    pl_data *data = &d->text.data;
    d->staging = pl_alloc(1, STAGING_BYTES);
    if (!d->staging) return pl_fail(err, PL_E_NOMEM, "no memory to read the weights of %s", c->model.source);
    PL_TRY(pl_pretrained_open(c->model.source, &d->model, err));
    const pl_causal_lm *m = pl_pretrained_model(d->model);
    PL_TRY(find_context(c, m, &context, err));
    d->weights = (pl_brought_weights){d, match_weight, read_weight};
    data->brought = &d->weights;
    pl_facts_add(&data->extents, "vocab", (uint64_t)m->vocab);
    pl_facts_add(&data->extents, PL_FACT_CONTEXT, context);
    return PL_OK;
}

static void find_ends(pretrained_data *d)
{
    const pl_pretrained_defaults *g = pl_pretrained_generation(d->model);
    uint32_t count = pl_tokenizer_stop_ids(d->text.tokenizer, d->text.end, PL_TEXT_ENDS_MAX - 1);
    for (size_t i = 0; i < g->stops && count + 1 < PL_TEXT_ENDS_MAX; i++) d->text.end[count++] = (uint32_t)g->stop[i];
    d->text.end[count] = PL_TOKEN_NONE;
}

static pl_status open_tokenizer(pretrained_data *d, pl_error *err)
{
    snprintf(d->text.tokenizer_path, sizeof d->text.tokenizer_path, "%s", d->source);
    PL_TRY(pl_pretrained_load_tokenizer(d->model, &d->text.tokenizer, err));
    pl_facts_add(&d->text.data.identity, "tokenizer", pl_tokenizer_hash(d->text.tokenizer));
    return PL_OK;
}

static pl_status open_files(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                            pl_data **data, pl_error *err)
{
    (void)use, (void)planned;
    pretrained_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the model's files");
    d->text.data.kind = &kind, d->text.tokens.fd = -1;
    snprintf(d->source, sizeof d->source, "%s", c->model.source);
    d->text.data.path = d->source, d->text.has_special = true;
    if (c->generate.prompt_cache[0]) d->text.data.kernel_cache_bytes = 2 * PL_FILE_WINDOW_BYTES;
    pl_status status = open_model(d, c, err);
    if (status == PL_OK) status = open_tokenizer(d, err);
    if (status == PL_OK && command == PL_COMMAND_GENERATE && c->generate.chat)
        status = pl_pretrained_load_template(d->model, c, &d->text.chat, err);
    if (status != PL_OK) return close_pretrained(&d->text.data), status;
    find_ends(d);
    *data = &d->text.data;
    return PL_OK;
}

static const char *const files[] = {NULL};

static const pl_dataset dataset = {
    .files = files, .rows = &pl_text_rows, .say_inferred = pl_text_say_inferred, .open = open_files};

static const pl_task task = {.job = {[PL_COMMAND_GENERATE] = &pl_job_generate, [PL_COMMAND_INFER] = &pl_job_infer},
                             .tell_jobs = pl_text_tell_jobs,
                             .take_sampling = pl_pretrained_take_sampling};

const pl_system pl_system_pretrained = {.words = {"token", "tokens", "sequence", "sequences", "tok/s", "text", "step",
                                                  "part", "nats per token", "model.context", "model.context",
                                                  "model.source"},
                                        .dataset = {&dataset},
                                        .task = &task};

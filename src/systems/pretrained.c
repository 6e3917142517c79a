/* The row of pretrained language models, and how the files of one are opened. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/text_data.h"
#include "pretrained/pretrained.h"
#include "systems/system.h"

enum { STAGING_BYTES = 64 << 10 };

typedef struct pretrained_data {
    pl_text_data text; /* first: this is one, with a tokenizer */
    pl_pretrained *model;
    pl_brought_weights weights;
    void *staging; /* through which weights are read */
} pretrained_data;

/* ---- weights ---- */

static pl_status match_weight(const void *from, const pl_graph *g, pl_id id, pl_error *err)
{
    const pretrained_data *d = from;
    const pl_value *v = &g->value[id];
    const pl_pretrained_tensor *t = pl_pretrained_find(d->model, v->name);
    if (t && t->rows * t->columns == pl_shape_elems(&v->shape)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s: the model takes a weight %s of %lld numbers, which the files have not",
                   d->text.data.path, v->name, (long long)pl_shape_elems(&v->shape));
}

static pl_status read_weight(const void *from, const pl_graph *g, pl_id id, void *to, pl_error *err)
{
    const pretrained_data *d = from;
    const pl_pretrained_tensor *t = pl_pretrained_find(d->model, g->value[id].name);
    return pl_pretrained_read(d->model, t, PL_ENCODING_F32, to, d->staging, STAGING_BYTES, err);
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
    pl_free(d->staging);
    pl_free(d);
}

static const pl_data_kind kind = {.match = match, .close = close_pretrained};

/* ---- opening ---- */

static pl_status open_model(pretrained_data *d, const char *source, pl_error *err)
{
    d->staging = pl_alloc(1, STAGING_BYTES);
    if (!d->staging) return pl_fail(err, PL_E_NOMEM, "no memory to read the weights of %s", source);
    PL_TRY(pl_pretrained_open(source, &d->model, err));
    d->weights = (pl_brought_weights){d, match_weight, read_weight};
    d->text.data.brought = &d->weights;
    pl_facts_add(&d->text.data.identity, PL_FACT_WEIGHTS, pl_pretrained_hash(d->model));
    pl_facts_add(&d->text.data.extents, "vocab", (uint64_t)pl_pretrained_model(d->model)->vocab);
    return PL_OK;
}

static pl_status open_tokenizer(pretrained_data *d, pl_error *err)
{
    const char *path = pl_pretrained_tokenizer_path(d->model);
    snprintf(d->text.tokenizer_path, sizeof d->text.tokenizer_path, "%s", path);
    PL_TRY(pl_tokenizer_load(path, &d->text.tokenizer, err));
    pl_facts_add(&d->text.data.identity, "tokenizer", pl_tokenizer_hash(d->text.tokenizer));
    return PL_OK;
}

static pl_status open_files(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                            pl_data **data, pl_error *err)
{
    (void)command, (void)use, (void)planned;
    pretrained_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the model's files");
    d->text.data.kind = &kind, d->text.data.path = c->model.source, d->text.tokens.fd = -1;
    pl_status status = open_model(d, c->model.source, err);
    if (status == PL_OK) status = open_tokenizer(d, err);
    if (status != PL_OK) return close_pretrained(&d->text.data), status;
    *data = &d->text.data;
    return PL_OK;
}

static pl_status check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (c->model.source[0]) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.arch is decoder, but model.source names no model; give its folder or GGUF file",
                   pl_config_where(c, "model.arch", where, sizeof where));
}

static const char *const files[] = {NULL};

static const pl_dataset dataset = {.check = check, .files = files, .open = open_files};

static const pl_task task = {.job = {[PL_COMMAND_GENERATE] = &pl_job_generate}, .tell_jobs = pl_text_tell_jobs};

const pl_system pl_system_pretrained = {
    .words = {"token", "tokens", "sequence", "sequences", "tok/s", "text", "step", "part", "nats per token",
              "model.sequence", "model.sequence", "model.source"},
    .dataset = {&dataset},
    .task = &task};

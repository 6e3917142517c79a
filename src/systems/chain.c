/* The row of chains of thought whose steps become latent (docs/chain.md). */
#include "systems/chain.h"

#include "data/text/chain_data.h"
#include "data/text/prepare.h"
#include "models/model.h"

#define CHAINS_FILE "chains.bin"

pl_chain_layout pl_chain_layout_of(const pl_config *c)
{
    return (pl_chain_layout){.sequence = (uint32_t)c->model.sequence,
                             .question = (uint32_t)c->chain.question,
                             .latents = (uint32_t)(c->chain.latents * c->chain.replaced),
                             .replaced = (uint32_t)c->chain.replaced,
                             .answer_only = c->chain.answer_only};
}

/* ---- from lines to their file ---- */

typedef struct preparation {
    pl_preparation *p;
    const char *path;
} preparation;

static pl_status before_writing(void *context, pl_error *err)
{
    preparation *w = context;
    PL_TRY(pl_preparation_lock(w->p, err));
    return pl_made_file(&w->p->made, w->path, err);
}

/* A resumed run keeps its file: another one is refused before anything is written. */
static pl_status check_same(const pl_preparation *p, const char *path, pl_error *err)
{
    const pl_config *c = p->config;
    const uint64_t then = pl_preparation_saved(p, "chains");
    uint64_t now;
    if (!then || c->run.resume == PL_SWITCH_OFF) return PL_OK;
    const pl_corpus_wish wish = {.names = c->chain.file, .form = PL_TEXTS_WHOLE};
    PL_TRY(pl_text_find_hash(&wish, path, &now, err));
    if (now == then) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.300s: are not the chains that the run in %.300s was trained on; resume with its file, or train "
                   "on this one in another folder with `run.out`",
                   c->chain.file, p->out);
}

static pl_status prepare(pl_preparation *p, pl_progress progress, void *context, pl_error *err)
{
    const pl_config *c = p->config;
    char path[PL_FILE_PATH_MAX];
    preparation writing = {p, path};
    PL_TRY(pl_config_require(c, "chain.file", "this command", err));
    PL_TRY(pl_config_run_path(c, CHAINS_FILE, path, err));
    PL_TRY(check_same(p, path, err));
    const pl_file_use uses[] = {{path, "the chains as tokens", PL_FILE_WRITTEN},
                                {c->chain.file, "chain.file", PL_FILE_READ}};
    PL_TRY(pl_files_check(uses, 2, err));
    const pl_chains_options o = {.path = c->chain.file,
                                 .tokens_path = path,
                                 .layout = pl_chain_layout_of(c),
                                 .progress = progress,
                                 .context = context,
                                 .before_writing = before_writing,
                                 .writing = &writing};
    return pl_chains_prepare(&o, err);
}

/* ---- the rest of the row ---- */

static pl_status open_chains(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_chain_data *d;
    (void)use, (void)planned;
    PL_TRY(pl_config_run_path(c, CHAINS_FILE, path, err));
    const pl_chain_setup s = {.path = path,
                              .layout = pl_chain_layout_of(c),
                              .batch = (uint32_t)pl_system_batch(c, command),
                              .seed = (uint64_t)c->train.seed,
                              .held_out = c->chain.held_out};
    PL_TRY(pl_chain_data_open(&s, &d, err));
    *data = &d->data;
    return PL_OK;
}

static size_t metrics(double loss, const pl_facts *validation, pl_loss_metric *to)
{
    (void)validation;
    to[0] = pl_system_perplexity(loss);
    return 1;
}

static const char *const files[] = {CHAINS_FILE, NULL};

static const pl_dataset dataset = {.prepare = prepare, .files = files, .magic = PL_TOKENS_MAGIC, .open = open_chains};

static const pl_task task = {.job = {PL_JOBS_OF_TRAINED},
                             .metrics = metrics,
                             .measure = pl_chain_measure,
                             .keep_predictions = pl_chain_keep_predictions,
                             .stage_key = "chain.stage",
                             .stage = pl_chain_stage,
                             .report_stages = pl_chain_report_stages};

const pl_system pl_system_chain = {
    .words = {"token", "tokens", "chain", "chains", "tok/s", "chains of thought", "step", "part", "nats per token",
              "train.micro_batch", "model.sequence, model.width or model.layers", "model.width or model.layers"},
    .check = pl_chain_check,
    .dataset = {&dataset},
    .task = &task};

/* The row of text, and how its data are opened. */
#include "systems/text.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/text/bpe_train.h"
#include "data/text/prepare.h"
#include "data/text/text_data.h"
#include "systems/system.h"

#define TOKENS_FILE    "tokens.bin"
#define TOKENIZER_FILE "tokenizer.json"

/* The config's limits are the code's: ranges are checked where the config is read. */
_Static_assert((int)PL_CONFIG_BPE_VOCABULARY_MAX == (int)PL_BPE_VOCAB_MAX, "data.vocab_size");
_Static_assert((int)PL_CONFIG_VOCABULARY_MAX == (int)PL_VOCAB_MAX, "model.vocab_size");

pl_status pl_text_find_paths(const pl_config *c, pl_text_paths *p, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(pl_path_join(p->tokens, sizeof p->tokens, c->data.cache[0] ? c->data.cache : out, TOKENS_FILE, err));
    PL_TRY(pl_path_join(p->input, sizeof p->input, out, PL_INPUT_FILE, err));
    return pl_path_join(p->tokenizer, sizeof p->tokenizer, out, TOKENIZER_FILE, err);
}

#define SAME(ours, theirs) _Static_assert((int)PL_CONFIG_TEXTS_##ours == (int)PL_TEXTS_##theirs + 1, #ours)
SAME(LINES, LINES);
SAME(JSONL, JSONL);
SAME(CSV, CSV);
SAME(SQUAD, SQUAD);
SAME(PLAIN, WHOLE);

static pl_texts_form form_of(const pl_config *c)
{
    if (c->data.format == PL_CONFIG_TEXTS_AUTO) return PL_TEXTS_AUTO;
    return c->data.format == PL_CONFIG_TEXTS_FOLDER ? PL_TEXTS_WHOLE : (pl_texts_form)(c->data.format - 1);
}

pl_corpus_wish pl_text_wish(const pl_config *c, const pl_text_paths *p)
{
    const bool is_input = strcmp(c->data.text, "-") == 0;
    return (pl_corpus_wish){.names = is_input ? p->input : c->data.text,
                            .form = form_of(c),
                            .key = c->data.key[0] ? c->data.key : NULL,
                            .scratch = p->tokens};
}

pl_sampler_options pl_text_sampler(const pl_config *c, pl_command command)
{
    return (pl_sampler_options){.sequence = (uint32_t)c->model.sequence,
                                .batch = (uint32_t)pl_system_batch(c, command),
                                .validation_fraction = c->data.validation_fraction,
                                .seed = (uint64_t)c->train.seed};
}

/* ---- what the planner needs to know ---- */

/* In a shared folder the token file may already be another one than was prepared. */
static pl_status check_prepared(const pl_config *c, const pl_text_paths *paths, const pl_text_data *t, pl_error *err)
{
    bool same;
    char said[PL_CORPUS_SAID_BYTES];
    const pl_corpus_wish wish = pl_text_wish(c, paths);
    PL_TRY(pl_text_match(&wish, t->tokens.path, &t->tokens.info, &same, err));
    if (same && t->tokens.info.tokenizer_hash == pl_tokenizer_hash(t->tokenizer)) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%.350s: was made from another text than %.300s, or with another tokenizer than %.300s; when another "
        "command uses this folder too, start this one again",
        t->tokens.path, pl_corpus_said(wish.names, said), t->tokenizer_path);
}

/* For bits per byte: only the text of the targets that this command evaluates, since elsewhere a token may stand for
 * more or fewer bytes. Targets come from front to back, so they are one range of the token file. */
static pl_status count_validation(const pl_config *c, pl_command command, pl_text_data *t, pl_error *err)
{
    pl_tokens_reader reader;
    uint64_t begin, end, bytes;
    uint64_t batches = pl_command_does(command, PL_USES_UPDATE) ? (uint64_t)c->train.eval_batches : 0;
    if (!pl_command_does(command, PL_USES_VALIDATION) || !pl_data_has(&t->data, PL_PART_VALIDATION)) return PL_OK;
    pl_sampler_targets(&t->source.sampler[PL_PART_VALIDATION], batches, &begin, &end);
    void *memory = pl_alloc(1, pl_tokens_reader_bytes(&t->tokens.info));
    if (!memory) return pl_fail(err, PL_E_NOMEM, "no memory to read %s", t->tokens.path);
    pl_tokens_reader_init(&reader, &t->tokens, memory);
    pl_status status = pl_text_count_bytes(&reader, t->tokenizer, begin, end, &bytes, err);
    pl_free(memory);
    if (status != PL_OK || begin == end) return status;
    pl_facts_add(&t->data.validation, "tokens", end - begin);
    pl_facts_add(&t->data.validation, "bytes", bytes);
    return PL_OK;
}

static bool writes_text(const pl_config *c, pl_command command)
{
    return pl_command_does(command, PL_USES_TEXT) ||
           (pl_command_does(command, PL_USES_UPDATE) && c->train.sample_every > 0);
}

static pl_status ask_for_plan(const pl_config *c, pl_command command, const pl_text_paths *paths, pl_text_data *t,
                              pl_error *err)
{
    if (t->tokens_open) PL_TRY(check_prepared(c, paths, t, err));
    return t->tokens_open ? count_validation(c, command, t, err) : PL_OK;
}

static pl_status open_text(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                           pl_data **data, pl_error *err)
{
    pl_text_data *t;
    pl_text_paths paths;
    const bool samples = pl_command_does(command, PL_USES_DATA);
    uint64_t own = 0;
    PL_TRY(pl_text_find_paths(c, &paths, err));
    if (command == PL_COMMAND_EVALUATE && use == PL_DATA_FOR_PLAN) PL_TRY(pl_text_find_own(c, &own, err));
    pl_text_data_options o = {.tokens_path = samples ? paths.tokens : NULL,
                              .tokenizer_path = paths.tokenizer,
                              .tokenizer = use == PL_DATA_FOR_PLAN || writes_text(c, command),
                              .own = own,
                              .sampler = pl_text_sampler(c, command)};
    if (planned) o.sampler.whole = pl_facts_value(planned, PL_FACT_WHOLE, 0);
    pl_status status = pl_text_data_open(&o, &t, err);
    if (status == PL_E_DATA && access(paths.tokenizer, F_OK) != 0)
        pl_error_append(err, "; train first (plimsoll train), which makes it");
    if (status != PL_OK) return status;
    status = use == PL_DATA_FOR_PLAN ? ask_for_plan(c, command, &paths, t, err) : PL_OK;
    if (status != PL_OK) return pl_data_close(&t->data), status;
    *data = &t->data;
    return PL_OK;
}

/* ---- the rest of the row ---- */

static size_t metrics(double loss, const pl_facts *validation, pl_loss_metric *to)
{
    const double tokens = (double)pl_facts_value(validation, "tokens", 0), bits = loss / log(2);
    const double bytes = (double)pl_facts_value(validation, "bytes", 0);
    to[0] = pl_system_perplexity(loss);
    to[1] = (pl_loss_metric){
        .key = "bits_per_token", .words = "bits per token", .brief = "bits/token", .decimals = 4, .value = bits};
    if (tokens == 0 || bytes == 0) return 2;
    to[2] = (pl_loss_metric){.key = "bits_per_byte",
                             .words = "bits per byte",
                             .brief = "bits/byte",
                             .decimals = 4,
                             .brief_decimals = 3,
                             .uses = PL_METRIC_VALIDATED,
                             .value = bits / (bytes / tokens)};
    return 3;
}

static pl_status keep(pl_config *c, pl_error *err)
{
    pl_text_paths paths;
    PL_TRY(pl_text_find_paths(c, &paths, err));
    if (strcmp(c->data.text, paths.input) == 0) memcpy(c->data.text, "-", 2); /* wherever the folder will be */
    if (c->data.tokenizer.kind != PL_CONFIG_TOKENIZER_FILE) return PL_OK;
    memcpy(c->data.tokenizer.path, paths.tokenizer, strlen(paths.tokenizer) + 1);
    return PL_OK;
}

pl_status pl_text_tell_jobs(const pl_config *c, void **own, pl_error *err)
{
    pl_generate_settings *g = pl_alloc(1, sizeof *g);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for the settings of generate");
    const pl_config_generate *from = &c->generate;
    *g = (pl_generate_settings){.prompt = from->prompt,
                                .prompt_file = from->prompt_file[0] ? from->prompt_file : NULL,
                                .stop = from->stop,
                                .context = (uint64_t)c->model.sequence,
                                .ends_at_context = c->model.arch == PL_ARCH_DECODER,
                                .prompts = from->prompts[0] ? from->prompts : NULL,
                                .prompt_cache = from->prompt_cache[0] ? from->prompt_cache : NULL,
                                .samples = (uint32_t)from->num_samples,
                                .answers = from->interactive,
                                .chats = from->chat,
                                .system = from->system,
                                .sampling = {.temperature = from->temperature,
                                             .top_k = from->top_k,
                                             .top_p = from->top_p,
                                             .min_p = from->min_p,
                                             .repeat_penalty = from->repeat_penalty,
                                             .frequency_penalty = from->frequency_penalty,
                                             .presence_penalty = from->presence_penalty,
                                             .repeat_last_n = from->repeat_last_n,
                                             .seed = (uint64_t)from->seed,
                                             .tokens = (uint64_t)from->tokens}};
    *own = g;
    return PL_OK;
}

static const char *const files[] = {TOKENS_FILE, TOKENIZER_FILE, PL_INPUT_FILE, NULL};

static const pl_dataset dataset = {.say_inferred = pl_text_say_inferred,
                                   .rows = &pl_text_rows,
                                   .prepare = pl_text_prepare_run,
                                   .files = files,
                                   .magic = PL_TOKENS_MAGIC,
                                   .record = TOKENIZER_FILE,
                                   .check_folder = pl_text_check_folder,
                                   .keep = keep,
                                   .open = open_text};

static const pl_task task = {.job = {PL_JOBS_OF_TRAINED, [PL_COMMAND_GENERATE] = &pl_job_generate},
                             .show = &pl_job_generate,
                             .metrics = metrics,
                             .tell_jobs = pl_text_tell_jobs};

const pl_system pl_system_text = {
    .words = {"token", "tokens", "sequence", "sequences", "tok/s", "text", "step", "part", "nats per token",
              "train.micro_batch", "model.sequence, model.width or model.layers", "model.width or model.layers"},
    .check = pl_text_check,
    .dataset = {&dataset},
    .task = &task};

/* From a config to a plan: the whole pipeline. Read make_graph and pl_compile first; everything above them is what
 * the stages need to know. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/compile.h"
#include "api/decided.h"
#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "data/bpe_train.h"
#include "data/encoder.h"
#include "data/tokenizer.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "run/program.h"
#include "run/threads.h"
#include "store/folder.h"

/* What a config may ask for is what there is: the ranges are checked where the config is read. */
_Static_assert((int)PL_ALLOW_OPTIMIZER_BF16 == (int)PL_FIT_ALLOW_OPTIMIZER_BF16 &&
                   (int)PL_ALLOW_OPTIMIZER_8BIT == (int)PL_FIT_ALLOW_OPTIMIZER_8BIT &&
                   (int)PL_ALLOW_BF16 == (int)PL_FIT_ALLOW_BF16 && (int)PL_ALLOW_FP16 == (int)PL_FIT_ALLOW_FP16,
               "fit.allow");
_Static_assert((int)PL_CONFIG_THREADS_MAX == (int)PL_THREADS_MAX, "run.threads");
_Static_assert((int)PL_CONFIG_BPE_VOCABULARY_MAX == (int)PL_BPE_VOCAB_MAX, "data.vocab_size");
_Static_assert((int)PL_CONFIG_VOCABULARY_MAX == (int)PL_VOCAB_MAX, "model.vocab_size");

enum { HEAP_FIXED_BYTES = 384 << 10 }; /* libyaml, libgomp, jansson reading a checkpoint's header, the session */
enum { ENTRY_BYTES = 96, HEADER_BYTES = 1300 }; /* of the heap, for each tensor of a checkpoint */
enum { CANDIDATE_SECONDS_TENTHS = 13 };         /* calibration time of one candidate; mostly the first one fits */

/* Without a budget a model larger than this machine is planned for another one, up to a depth at which planning itself
 * takes a gigabyte and half a minute. */
enum { LAYERS_FOR_ELSEWHERE = 4096 };

typedef struct compiler {
    const pl_config *config;
    pl_config *decided; /* the config as this run goes on with it; NULL: as it was given */
    pl_command command;
    pl_machine machine;
    pl_tokens tokens;
    bool tokens_open;
    uint32_t vocab;
    pl_settings settings;
    pl_calibration *calibration;
    bool measured;   /* nothing more is measured */
    int team_wanted; /* threads that measuring takes and the system was not asked for yet; 0: it was */
    pl_session_disk disk;
    uint64_t plan_text_bytes;
    char budget[128];                             /* as in the plan */
    uint64_t validation_tokens, validation_bytes; /* as in the plan */
    /* that the runner holds for it at most: the tokenizer, and its file's tree or an encoder */
    uint64_t tokenizer_bytes;
} compiler;

/* ---- run.dump: what a stage made, as text in the run's folder ---- */

static pl_status dump(const compiler *c, const char *stage, pl_str *text, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], name[64];
    snprintf(name, sizeof name, "dump-%s.txt", stage);
    pl_status status = text->failed ? pl_fail(err, PL_E_NOMEM, "no memory to print %s", stage)
                                    : pl_folder_create(c->settings.out, err);
    if (status == PL_OK) status = pl_path_join(path, sizeof path, c->settings.out, name, err);
    if (status == PL_OK) status = pl_file_write_all(path, pl_str_text(text), text->bytes, err);
    pl_str_deinit(text);
    return status;
}

static pl_status dump_graph(const compiler *c, uint32_t bit, const char *stage, const pl_graph *g, pl_error *err)
{
    pl_str text = {0};
    if (!(c->config->run.dump & bit)) return PL_OK;
    pl_graph_print(g, &text);
    return dump(c, stage, &text, err);
}

static pl_status dump_program(const compiler *c, const pl_plan *plan, pl_error *err)
{
    pl_str text = {0};
    pl_program *program;
    if (!(c->config->run.dump & PL_DUMP_PROGRAM)) return PL_OK;
    PL_TRY(pl_program_create(plan, (void *)(uintptr_t)PL_PLAN_ALIGNMENT, UINT64_MAX, &program, err));
    pl_program_print(program, &text);
    pl_program_destroy(program);
    return dump(c, "program", &text, err);
}

static pl_status dump_plan(const compiler *c, const pl_plan *plan, pl_error *err)
{
    pl_str text = {0};
    PL_TRY(dump_graph(c, PL_DUMP_REWRITE, "rewrite", plan->graph, err));
    PL_TRY(dump_program(c, plan, err));
    if (!(c->config->run.dump & PL_DUMP_PLAN)) return PL_OK;
    pl_plan_print(plan, &text);
    return dump(c, "plan", &text, err);
}

/* ---- the graph ---- */

static bool keeps_data(pl_command command) { return command != PL_COMMAND_GENERATE; }

static pl_status keep_programs(pl_graph *g, pl_command command, pl_error *err)
{
    switch (command) {
    case PL_COMMAND_TRAIN:
        return PL_OK;
    case PL_COMMAND_EVALUATE:
        return pl_rewrite_keep_programs(g, (const char *const[]){"evaluate"}, 1, err);
    case PL_COMMAND_GENERATE:
        return pl_rewrite_keep_programs(g, (const char *const[]){"generate"}, 1, err);
    case PL_COMMAND_GRADIENTS:
        return pl_rewrite_keep_programs(g, (const char *const[]){"init", "train"}, 2, err);
    }
    return PL_OK;
}

static pl_status add_update(pl_graph *g, const pl_config *c, pl_id train, pl_error *err)
{
    pl_grad_update u = {.beta1 = c->train.beta1,
                        .beta2 = c->train.beta2,
                        .epsilon = c->train.epsilon,
                        .weight_decay = c->train.weight_decay,
                        .clip = c->train.grad_clip,
                        .seed = (uint64_t)c->train.seed,
                        .lr = pl_graph_find_value(g, "input.lr"),
                        .step = pl_graph_find_value(g, "input.step")};
    return pl_grad_add_update(g, train, &u, err);
}

/* Without an update nothing reads the gradients: they are what the program gives out, and so is the batch. */
static void keep_gradients(pl_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        if (v->role == PL_ROLE_GRADIENT || strcmp(v->name, "train.tokens") == 0 ||
            strcmp(v->name, "train.targets") == 0)
            v->role = PL_ROLE_OUTPUT;
    }
}

static pl_status make_graph(const compiler *c, pl_graph **graph, pl_error *err)
{
    PL_TRY(pl_model_build(c->config, c->vocab, graph, err));
    PL_TRY(keep_programs(*graph, c->command, err));
    PL_TRY(pl_graph_check(*graph, PL_STAGE_MODEL, err));
    PL_TRY(dump_graph(c, PL_DUMP_MODEL, "model", *graph, err));
    if (c->command != PL_COMMAND_TRAIN && c->command != PL_COMMAND_GRADIENTS) return PL_OK;
    pl_id train = pl_graph_find_program(*graph, "train");
    PL_TRY(pl_grad_differentiate(*graph, train, err));
    if (c->command == PL_COMMAND_TRAIN)
        PL_TRY(add_update(*graph, c->config, train, err));
    else
        keep_gradients(*graph);
    return pl_graph_check(*graph, PL_STAGE_GRAD, err);
}

/* ---- what fit asks for ---- */

static pl_status add_staging(pl_graph *g, const char *name, uint64_t bytes, pl_role role, pl_error *err)
{
    if (bytes == 0) return PL_OK;
    if (bytes >> 40)
        return pl_fail(err, PL_E_CONFIG, "%s would take %llu bytes; make train.micro_batch or model.sequence smaller",
                       name, (unsigned long long)bytes);
    pl_builder b = pl_builder_begin(g, 0, err);
    pl_builder_enter(&b, "staging");
    pl_build_persistent(&b, role, PL_DTYPE_U8, pl_shape_of(1, (int64_t)bytes), "%s", name);
    return b.status;
}

static pl_status stage(void *context, pl_graph *g, int64_t micro_batch, pl_error *err)
{
    compiler *c = context;
    pl_session_staging s;
    c->settings.run.micro_batch = (uint32_t)micro_batch;
    PL_TRY(pl_session_measure_staging(g, &c->settings.run, c->tokens_open ? &c->tokens : NULL, &s, &c->disk, err));
    PL_TRY(add_staging(g, PL_STAGING_LOADER, s.loader_bytes, PL_ROLE_STAGING, err));
    PL_TRY(add_staging(g, PL_STAGING_CHECKPOINT, s.checkpoint_bytes, PL_ROLE_IO, err));
    PL_TRY(add_staging(g, PL_STAGING_TRACE, s.trace_bytes, PL_ROLE_IO, err));
    return add_staging(g, PL_STAGING_SAMPLING, s.sampling_bytes, PL_ROLE_STAGING, err);
}

/* In a small container there may be no room to measure: then times are not known, and what fits runs all the same. */
static pl_status measure(void *context, const pl_graph *g, pl_error *err)
{
    compiler *c = context;
    size_t missing = 0;
    if (c->team_wanted) PL_TRY(pl_calibration_count_missing(c->calibration, g, &missing, err));
    if (missing) {
        PL_TRY(pl_threads_probe(c->team_wanted, err));
        c->team_wanted = 0;
    }
    pl_error why = {0};
    pl_status status = pl_calibration_measure(c->calibration, g, &why);
    if (status == PL_E_NOMEM && pl_process_fence_left() != UINT64_MAX) return PL_OK;
    if (status != PL_OK) *err = why;
    return status;
}

/* The tensors of a checkpoint: an entry in the session's lists each and, while one is read, its part of the header and
 * of the header's tree (1.2 kB measured, model and state at once). A training that begins reads none, and is planned
 * with room for it all the same: it may be interrupted, and what goes on must fit where it began. */
static uint64_t checkpoint_heap(const pl_graph *g)
{
    uint64_t tensors = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        bool kept = v->role == PL_ROLE_WEIGHT || v->role == PL_ROLE_OPTIMIZER;
        tensors += kept && v->program == PL_NONE && pl_value_root(g, (pl_id)i) == i;
    }
    return tensors * (ENTRY_BYTES + HEADER_BYTES);
}

/* What the runner will hold on its heap: measured by doing here what it does there (read the plan, bind it, read config
 * and tokenizer), plus a fixed part for libraries and each thread of the team. The plan's text is there while it is
 * read; what is bound takes its place then, and a quarter is allowed for what does not fit into it. */
static pl_status find_heap(compiler *c, const pl_plan *plan, uint64_t *bytes, pl_error *err)
{
    pl_status status = PL_OK;
    pl_str text = {0};
    pl_plan *copy = NULL;
    pl_program *program = NULL;
    pl_plan_print(plan, &text);
    if (text.failed) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to print the plan"));
    c->plan_text_bytes = text.bytes;
    uint64_t before = pl_alloc_live_bytes();
    PL_TRY_DONE(pl_plan_copy_as_read(plan, &copy, err));
    uint64_t read = pl_alloc_live_bytes();
    PL_TRY_DONE(pl_program_create(copy, (void *)(uintptr_t)PL_PLAN_ALIGNMENT, UINT64_MAX, &program, err));
    uint64_t bound = pl_alloc_live_bytes() - read, more = bound > text.bytes ? bound : text.bytes,
             less = bound + text.bytes - more;
    uint64_t base = read - before + more + less / 4;
    *bytes = pl_align_up(base + base / 32 + checkpoint_heap(plan->graph) + c->tokenizer_bytes + HEAP_FIXED_BYTES +
                             pl_threads_heap_bytes(plan->team.threads),
                         64 << 10);
done:
    pl_program_destroy(program);
    pl_plan_destroy(copy);
    pl_str_deinit(&text);
    return status;
}

static void add_disk(pl_plan *p, const char *name, uint64_t bytes)
{
    if (bytes == 0 || p->disk_count == PL_PLAN_DISK_ROWS_MAX) return;
    pl_plan_disk_row *r = &p->disk[p->disk_count++];
    strncpy(r->name, name, sizeof r->name - 1);
    r->bytes = bytes;
}

/* Pages of files being written: two windows of a checkpoint's largest file, or all of a small checkpoint; metrics,
 * events and trace beside it. Before the first checkpoint the plan lies there, in the memory files that bring it to the
 * runner: as text and as a page, about as large. On a disk that is memory all files stay charged. */
static uint64_t files_bytes(const compiler *c, const pl_plan *p)
{
    enum { BESIDE = 1 << 20 };
    uint64_t brought = 2 * c->plan_text_bytes + (64 << 10), windows = 2 * (uint64_t)PL_FILE_WINDOW_BYTES,
             written = (c->disk.checkpoint_bytes < windows ? c->disk.checkpoint_bytes : windows) + BESIDE, kept = 0;
    if (c->command != PL_COMMAND_TRAIN) return 0;
    for (size_t i = 0; i < p->disk_count; i++) kept += p->disk[i].bytes;
    if (pl_disk_is_memory(c->settings.out)) written = kept + brought + BESIDE;
    return pl_align_up(written > brought ? written : brought, PL_PAGE_BYTES);
}

/* The rows of the whole process. */
static pl_status settle(void *context, pl_plan *p, pl_error *err)
{
    compiler *c = context;
    p->numerics_hash = pl_config_hash_numerics(c->config);
    if (c->tokens_open) {
        p->text_hash = c->tokens.info.source_hash;
        p->tokenizer_hash = c->tokens.info.tokenizer_hash;
        p->validation_tokens = c->validation_tokens;
        p->validation_bytes = c->validation_bytes;
    }
    p->config = pl_strdup(c->settings.config_text);
    if (!p->config) return pl_fail(err, PL_E_NOMEM, "no memory for the plan");
    add_disk(p, "checkpoints kept", c->disk.disk_bytes - (c->disk.disk_bytes ? c->disk.checkpoint_bytes : 0));
    add_disk(p, "checkpoint being written", c->disk.disk_bytes ? c->disk.checkpoint_bytes : 0);
    if (c->tokens_open) add_disk(p, "token file", pl_tokens_file_bytes(&c->tokens.info));
    PL_TRY(find_heap(c, p, &p->process.heap_bytes, err));
    p->writer_cache_bytes = files_bytes(c, p);
    memcpy(p->budget, c->budget, sizeof p->budget);
    return pl_plan_account(p, c->tokens_open ? 1 : 0, err);
}

/* ---- options ---- */

static pl_team team_of(const compiler *c)
{
    static const pl_isa isas[] = {[PL_CONFIG_ISA_REF] = PL_ISA_REF,
                                  [PL_CONFIG_ISA_BASELINE] = PL_ISA_BASELINE,
                                  [PL_CONFIG_ISA_AVX2] = PL_ISA_AVX2,
                                  [PL_CONFIG_ISA_AVX512] = PL_ISA_AVX512,
                                  [PL_CONFIG_ISA_AVX512_BF16] = PL_ISA_AVX512_BF16};
    pl_isa best = c->machine.isa, wanted = c->config->run.isa == PL_CONFIG_ISA_AUTO ? best : isas[c->config->run.isa];
    int limit = pl_threads_limit(), most = c->machine.cores < limit ? c->machine.cores : limit;
    int threads = c->config->run.threads == PL_CONFIG_AUTO ? most : (int)c->config->run.threads;
    return (pl_team){.threads = threads, .isa = wanted < best ? wanted : best};
}

static pl_dtype precision_of(const pl_config *c)
{
    static const pl_dtype dtypes[] = {[PL_MIXED_AUTO] = PL_DTYPE_F32,
                                      [PL_MIXED_OFF] = PL_DTYPE_F32,
                                      [PL_MIXED_BF16] = PL_DTYPE_BF16,
                                      [PL_MIXED_FP16] = PL_DTYPE_F16};
    return dtypes[c->train.mixed_precision];
}

static pl_choice_optimizer_state state_of(const pl_config *c)
{
    static const pl_choice_optimizer_state states[] = {[PL_OPTIMIZER_STATE_AUTO] = PL_CHOICE_STATE_F32,
                                                       [PL_OPTIMIZER_STATE_F32] = PL_CHOICE_STATE_F32,
                                                       [PL_OPTIMIZER_STATE_BF16] = PL_CHOICE_STATE_BF16,
                                                       [PL_OPTIMIZER_STATE_8BIT] = PL_CHOICE_STATE_8BIT};
    return states[c->train.optimizer_state];
}

static void say_budget(const pl_machine_budget *b, char *text, size_t room)
{
    char all[32], reserve[32], left[32];
    snprintf(text, room, "%s (auto: %s by %s, less a reserve of %s for others)",
             pl_format_bytes(b->bytes, left, sizeof left), pl_format_bytes(b->room_bytes, all, sizeof all), b->bound_by,
             pl_format_bytes(b->reserve_bytes, reserve, sizeof reserve));
}

static pl_status find_budget(compiler *c, uint64_t *bytes, pl_error *err)
{
    pl_machine_budget automatic;
    *bytes = c->config->memory.budget;
    if (*bytes == PL_CONFIG_BYTES_NONE) *bytes = PL_FIT_NO_BUDGET;
    if (*bytes != PL_CONFIG_BYTES_AUTO) return PL_OK;
    PL_TRY(pl_machine_auto_budget(&c->machine, &automatic, err));
    *bytes = automatic.bytes;
    say_budget(&automatic, c->budget, sizeof c->budget);
    return PL_OK;
}

static pl_choice_recompute recompute_of(pl_config_checkpointing c)
{
    static const pl_choice_recompute table[] = {[PL_CHECKPOINTING_OFF] = PL_CHOICE_STORE_ALL,
                                                [PL_CHECKPOINTING_AUTO] = PL_CHOICE_RECOMPUTE_CHEAP,
                                                [PL_CHECKPOINTING_FULL] = PL_CHOICE_RECOMPUTE_FULL};
    return table[c];
}

/* What the config says about the order of the step; auto is what needs no more time. */
static void find_order(const compiler *c, pl_choice *given, int64_t batch)
{
    const pl_config_train *t = &c->config->train;
    if (c->command != PL_COMMAND_TRAIN) return;
    given->layer_major = t->layer_major == PL_CONFIG_AUTO ? 0 : t->layer_major;
    given->layer_major_keep = t->layer_major_keep == PL_CONFIG_AUTO ? 1 : t->layer_major_keep;
    given->feed_forward_rows = t->feed_forward_rows == PL_CONFIG_AUTO ? 0 : t->feed_forward_rows;
    given->update_early = t->update_in_backward == PL_EARLY_ON;
    if (given->update_early && given->layer_major == 0 && given->micro_batch == 0) given->micro_batch = batch;
}

/* A permission is of use where its key is left open. */
static uint32_t find_leave(const pl_config *c)
{
    uint32_t leave = c->fit.allow;
    if (c->train.optimizer_state != PL_OPTIMIZER_STATE_AUTO)
        leave &= ~(uint32_t)(PL_ALLOW_OPTIMIZER_BF16 | PL_ALLOW_OPTIMIZER_8BIT);
    if (c->train.mixed_precision != PL_MIXED_AUTO) leave &= ~(uint32_t)(PL_ALLOW_BF16 | PL_ALLOW_FP16);
    return leave;
}

/* What the config leaves open. */
static void find_freedom(const compiler *c, pl_fit_options *o)
{
    const pl_config_train *t = &c->config->train;
    bool trains = c->command == PL_COMMAND_TRAIN;
    o->choose_update = trains && t->update_in_backward == PL_EARLY_AUTO;
    o->choose_layer_major =
        trains && t->layer_major == PL_CONFIG_AUTO && t->update_in_backward != PL_EARLY_OFF; /* it updates early */
    o->choose_major_keep = trains && t->layer_major_keep == PL_CONFIG_AUTO;
    o->choose_chunks = trains && t->feed_forward_rows == PL_CONFIG_AUTO;
    o->allow = trains ? find_leave(c->config) : 0;
}

static pl_status find_options(compiler *c, pl_fit_options *o, pl_error *err)
{
    pl_process_options process = pl_process_options_default();
    process.thread_stack_reserved_bytes = pl_align_up(c->config->memory.thread_stack, PL_PAGE_BYTES);
    *o = (pl_fit_options){.plan = {.team = team_of(c), .process = process, .helper_threads = c->tokens_open ? 1 : 0},
                          .batch = c->config->train.batch_size,
                          .sequence = c->config->model.sequence,
                          .given = {.micro_batch = c->settings.run.micro_batch,
                                    .recompute = recompute_of(c->config->train.gradient_checkpointing),
                                    .precision = precision_of(c->config),
                                    .huge_pages = c->config->memory.huge_pages == PL_HUGE_PAGES_AUTO,
                                    .optimizer_state = state_of(c->config),
                                    .threads = c->config->run.threads == PL_CONFIG_AUTO ? 0 : team_of(c).threads},
                          .plan_recompute = c->command == PL_COMMAND_TRAIN &&
                                            c->config->train.gradient_checkpointing == PL_CHECKPOINTING_AUTO,
                          .stage = stage,
                          .settle = settle,
                          .context = c};
    find_freedom(c, o);
    find_order(c, &o->given, o->batch);
    for (int64_t m = 1; c->command == PL_COMMAND_EVALUATE && o->given.micro_batch == 0 && m <= o->batch; m++)
        if (o->batch % m == 0 && (m * o->sequence >= 256 || m == o->batch)) o->given.micro_batch = m;
    if (c->command == PL_COMMAND_GENERATE) o->given.micro_batch = 1;
    return find_budget(c, &o->budget_bytes, err);
}

/* A budget that nobody gave as a size is explained where it is too small. */
static pl_status explain_budget(const compiler *c, pl_status status, pl_error *err)
{
    size_t used = strlen(err->text);
    if (status == PL_E_BUDGET && c->budget[0])
        snprintf(err->text + used, sizeof err->text - used, "; the budget is %s", c->budget);
    return status;
}

/* ---- calibration ---- */

typedef struct told {
    pl_progress progress;
    void *context;
} told;

static void tell_calibration(void *context, size_t done, size_t total, double seconds)
{
    told *t = context;
    (void)seconds;
    if (t->progress) (void)t->progress(t->context, "measuring kernels", done, total);
}

static pl_status open_calibration(compiler *c, pl_fit_options *o, const char *folder, told *t, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_error ignored = {0};
    bool kept = folder && pl_folder_create(folder, &ignored) == PL_OK;
    if (kept) PL_TRY(pl_calibration_path(path, sizeof path, folder, err));
    uint64_t room = pl_process_fence_left() / 2; /* the rest is for what plans */
    bool little = room < PL_CALIBRATION_BYTES_MAX;
    pl_calibration_options co = {.team = o->plan.team,
                                 .huge_pages = o->given.huge_pages && !little,
                                 .bytes_max = little ? room + 1 : 0,
                                 .seconds_max = CANDIDATE_SECONDS_TENTHS / 10.0,
                                 .progress = tell_calibration,
                                 .progress_context = t};
    PL_TRY(pl_calibration_open(kept ? path : NULL, &co, &c->calibration, err));
    c->team_wanted = o->plan.team.threads;
    o->measure = c->measured ? NULL : measure;
    o->plan.cost = (pl_cost_model){pl_calibration_seconds, pl_calibration_spread, c->calibration};
    return PL_OK;
}

/* ---- data ---- */

/* jansson's tree of a tokenizer.json: a node, a hash entry and a key for each short string, under 16 times the text. */
static pl_status tree_bytes(const char *path, uint64_t *bytes, pl_error *err)
{
    int fd;
    PL_TRY(pl_file_open(path, &fd, bytes, err));
    close(fd);
    *bytes *= 16;
    return PL_OK;
}

/* In a folder that others use too the token file may already be another one than was prepared. */
static pl_status open_tokens(compiler *c, uint64_t tokenizer_hash, pl_error *err)
{
    int same;
    PL_TRY(pl_tokens_open(&c->tokens, c->settings.tokens_path, err));
    c->tokens_open = true;
    PL_TRY(pl_text_match(c->config->data.text, &c->tokens.info, &same, err));
    if (same && c->tokens.info.tokenizer_hash == tokenizer_hash) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%.350s: was made from another text than %.300s, or with another tokenizer than %.300s; when another "
        "command uses this folder too, start this one again",
        c->settings.tokens_path, c->config->data.text, c->settings.tokenizer_path);
}

/* For bits per byte: the text behind the targets that this command evaluates, and no other, for elsewhere in the text a
 * token may stand for more or fewer bytes. They come from front to back, so they are one range of the token file. */
static pl_status count_validation(compiler *c, const pl_tokenizer *t, pl_error *err)
{
    pl_sampler sampler;
    pl_tokens_reader reader;
    uint64_t begin, end;
    bool evaluates = c->command == PL_COMMAND_TRAIN || c->command == PL_COMMAND_EVALUATE;
    pl_sampler_options o = pl_settings_sampler(c->config, c->tokens.info.count);
    if (!evaluates || o.validation_fraction <= 0) return PL_OK;
    PL_TRY(pl_sampler_init(&sampler, &o, PL_PART_VALIDATION, err));
    pl_sampler_targets(&sampler, c->command == PL_COMMAND_TRAIN ? c->settings.run.eval_batches : 0, &begin, &end);
    void *memory = pl_alloc(1, pl_tokens_reader_bytes(&c->tokens.info));
    if (!memory) return pl_fail(err, PL_E_NOMEM, "no memory to read %s", c->tokens.path);
    pl_tokens_reader_init(&reader, &c->tokens, memory);
    pl_status status = pl_text_count_bytes(&reader, t, begin, end, &c->validation_bytes, err);
    c->validation_tokens = end - begin;
    pl_free(memory);
    return status;
}

static pl_status read_data(compiler *c, const pl_tokenizer *tokenizer, pl_error *err)
{
    c->vocab = pl_tokenizer_vocab_size(tokenizer);
    if (keeps_data(c->command)) PL_TRY(open_tokens(c, pl_tokenizer_hash(tokenizer), err));
    PL_TRY(pl_settings_fill(c->config, c->command, c->tokens_open ? &c->tokens : NULL, c->vocab, &c->settings, err));
    return c->tokens_open ? count_validation(c, tokenizer, err) : PL_OK;
}

static pl_status open_data(compiler *c, pl_error *err)
{
    pl_tokenizer *tokenizer = NULL;
    PL_TRY(pl_settings_paths(c->config, &c->settings, err));
    PL_TRY(pl_tokenizer_load(c->settings.tokenizer_path, &tokenizer, err));
    uint64_t held = pl_tokenizer_bytes(tokenizer), encoder = pl_encoder_bytes(tokenizer), tree = 0;
    pl_status status = read_data(c, tokenizer, err);
    pl_tokenizer_destroy(tokenizer);
    if (status != PL_OK) return status;
    PL_TRY(tree_bytes(c->settings.tokenizer_path, &tree, err));
    if (c->settings.run.tokenizer_path) c->tokenizer_bytes = held + (tree > encoder ? tree : encoder);
    return PL_OK;
}

/* The config takes what was chosen and becomes text. */
static pl_status print_decided(const compiler *c, pl_config *copy, const pl_choice *choice, char **text, pl_error *err)
{
    pl_str printed = {0};
    pl_decide(copy, choice);
    if (!copy->run.out[0] && strlen(c->settings.out) < sizeof copy->run.out) strcpy(copy->run.out, c->settings.out);
    pl_config_print_yaml(copy, &printed);
    if (printed.failed) return pl_str_deinit(&printed), pl_fail(err, PL_E_NOMEM, "no memory for the plan's config");
    pl_free(*text);
    *text = printed.data;
    return PL_OK;
}

static pl_status copy_config(const pl_config *config, pl_config **copy, pl_error *err)
{
    *copy = pl_config_create();
    if (!*copy) return pl_fail(err, PL_E_NOMEM, "no memory for the plan's config");
    **copy = *config;
    return PL_OK;
}

/* What is staged for saving, and the heap, have room for the config with the longest words that may be chosen. They are
 * counted from the config as it was given, and of "resume: true" and "false" the longer one: what this run will have
 * decided, or has, makes no difference, so a run that goes on needs the bytes of the one that began. */
static pl_status reserve_words(compiler *c, const pl_config *given, pl_error *err)
{
    const pl_choice longest = {.optimizer_state = PL_CHOICE_STATE_8BIT, .precision = PL_DTYPE_BF16};
    pl_config *copy;
    if (c->command != PL_COMMAND_TRAIN) return PL_OK;
    PL_TRY(copy_config(given, &copy, err));
    copy->run.resume = false;
    pl_status status = print_decided(c, copy, &longest, &c->settings.config_text, err);
    c->settings.run.config_text = c->settings.config_text;
    pl_config_destroy(copy);
    return status;
}

static pl_status go_on(compiler *c, pl_error *err)
{
    if (c->command != PL_COMMAND_TRAIN || !c->config->run.resume || !c->config->fit.allow) return PL_OK;
    PL_TRY(copy_config(c->config, &c->decided, err));
    c->config = c->decided;
    return pl_decide_as_kept(c->decided, err);
}

static pl_status keep_choice(const compiler *c, const pl_choice *choice, pl_plan *plan, pl_error *err)
{
    pl_config *copy;
    if (c->command != PL_COMMAND_TRAIN) return PL_OK;
    PL_TRY(copy_config(c->config, &copy, err));
    pl_status status = print_decided(c, copy, choice, &plan->config, err);
    plan->numerics_hash = pl_config_hash_numerics(copy);
    pl_config_destroy(copy);
    return status;
}

pl_status pl_compile(const pl_config *config, const pl_compile_options *o, pl_fit_result *result, pl_plan **plan,
                     pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *graph = NULL;
    pl_fit_options fit;
    told listener = {o->progress, o->context};
    const pl_command command = o->command;
    pl_fit_result own = {0};
    if (!result) result = &own;
    *result = (pl_fit_result){.chosen = PL_FIT_NONE, .least = PL_FIT_NONE, .cheapest = PL_FIT_NONE};
    *plan = NULL;
    compiler *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to plan");
    c->config = config;
    c->command = command;
    c->measured = o->measured;
    c->tokens.fd = -1;
    PL_TRY_DONE(pl_config_check(config, err));
    PL_TRY_DONE(go_on(c, err));
    PL_TRY_DONE(pl_machine_read("", &c->machine, err));
    PL_TRY_DONE(open_data(c, err));
    PL_TRY_DONE(reserve_words(c, config, err));
    PL_TRY_DONE(find_options(c, &fit, err));
    fit.everything = o->everything;
    if (o->steps) *o->steps = c->settings.run.steps;
    if (fit.budget_bytes == PL_FIT_NO_BUDGET && config->model.layers > LAYERS_FOR_ELSEWHERE)
        PL_TRY_DONE(pl_plan_check_config(config, command, err));
    if (fit.budget_bytes != PL_FIT_NO_BUDGET && !(o->everything && config->model.layers <= LAYERS_FOR_ELSEWHERE))
        PL_TRY_DONE(pl_room_check_state(config, command, c->vocab, fit.budget_bytes, "the budget of", err));
    PL_TRY_DONE(make_graph(c, &graph, err));
    if (command == PL_COMMAND_TRAIN && !o->unmeasured)
        PL_TRY_DONE(open_calibration(c, &fit, o->cache_folder, &listener, err));
    PL_TRY_DONE(dump_graph(c, PL_DUMP_GRAD, "grad", graph, err));
    PL_TRY_DONE(explain_budget(c, pl_fit_find(graph, &fit, result, plan, err), err));
    PL_TRY_DONE(keep_choice(c, &result->point[result->chosen].choice, *plan, err));
    PL_TRY_DONE(dump_plan(c, *plan, err));
    if (c->calibration) PL_TRY_DONE(pl_calibration_save(c->calibration, err));
done:
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    pl_fit_result_deinit(&own);
    pl_graph_destroy(graph);
    pl_calibration_close(c->calibration);
    if (c->tokens_open) pl_tokens_close(&c->tokens);
    pl_settings_deinit(&c->settings);
    pl_config_destroy(c->decided);
    pl_free(c);
    return status;
}

pl_status pl_plan_make(const pl_config *config, pl_command command, const char *cache_folder, pl_progress progress,
                       void *context, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = command, .cache_folder = cache_folder, .progress = progress, .context = context};
    return pl_compile(config, &o, NULL, plan, err);
}

pl_status pl_plan_make_unmeasured(const pl_config *config, pl_plan **plan, pl_error *err)
{
    pl_compile_options o = {.command = PL_COMMAND_TRAIN, .unmeasured = true};
    return pl_compile(config, &o, NULL, plan, err);
}

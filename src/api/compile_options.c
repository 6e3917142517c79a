/* A config as what fit understands: what is given, what is left to the search, and the budget. */
#include <stdio.h>

#include "api/compiler.h"
#include "base/size.h"
#include "base/units.h"
#include "run/threads.h"

/* What a config may ask for is what there is: the ranges are checked where the config is read. */
_Static_assert((int)PL_ALLOW_OPTIMIZER_BF16 == (int)PL_FIT_ALLOW_OPTIMIZER_BF16 &&
                   (int)PL_ALLOW_OPTIMIZER_8BIT == (int)PL_FIT_ALLOW_OPTIMIZER_8BIT &&
                   (int)PL_ALLOW_BF16 == (int)PL_FIT_ALLOW_BF16 && (int)PL_ALLOW_FP16 == (int)PL_FIT_ALLOW_FP16,
               "fit.allow");
_Static_assert((int)PL_CONFIG_THREADS_MAX == (int)PL_THREADS_MAX, "run.threads");

static pl_team team_of(const pl_compiler *c)
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

static pl_status find_budget(pl_compiler *c, uint64_t *bytes, pl_error *err)
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
static void find_order(const pl_compiler *c, pl_choice *given, int64_t batch)
{
    const pl_config_train *t = &c->config->train;
    if (!pl_command_does(c->command, PL_USES_UPDATE)) return;
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
static void find_freedom(const pl_compiler *c, pl_fit_options *o)
{
    const pl_config_train *t = &c->config->train;
    bool trains = pl_command_does(c->command, PL_USES_UPDATE);
    o->choose_update = trains && t->update_in_backward == PL_EARLY_AUTO;
    o->choose_layer_major =
        trains && t->layer_major == PL_CONFIG_AUTO && t->update_in_backward != PL_EARLY_OFF; /* it updates early */
    o->choose_major_keep = trains && t->layer_major_keep == PL_CONFIG_AUTO;
    o->choose_chunks = trains && t->feed_forward_rows == PL_CONFIG_AUTO;
    o->allow = trains ? find_leave(c->config) : 0;
}

static void tell_search(void *context, size_t done, size_t total)
{
    const pl_told *t = &((pl_compiler *)context)->told;
    if (t->progress) (void)t->progress(t->context, "planning", done, total);
}

/* Without gradients a few samples are as fast as many; without data there is one. */
static int64_t forward_micro_batch(const pl_compiler *c, const pl_fit_options *o)
{
    if (!pl_command_does(c->command, PL_USES_DATA)) return 1;
    if (o->given.micro_batch) return o->given.micro_batch;
    int64_t m = 1;
    while (o->batch % m || (m * o->sequence < 256 && m < o->batch)) m++;
    return m;
}

pl_status pl_compiler_find_options(pl_compiler *c, pl_fit_options *o, pl_error *err)
{
    pl_process_options process = pl_process_options_default();
    process.thread_stack_reserved_bytes = pl_align_up(c->config->memory.thread_stack, PL_PAGE_BYTES);
    *o = (pl_fit_options){.plan = {.team = team_of(c), .process = process, .helper_threads = c->data->source ? 1 : 0},
                          .batch = c->config->train.batch_size,
                          .sequence = c->config->model.sequence,
                          .given = {.micro_batch = c->settings.run.micro_batch,
                                    .recompute = recompute_of(c->config->train.gradient_checkpointing),
                                    .precision = precision_of(c->config),
                                    .huge_pages = c->config->memory.huge_pages == PL_HUGE_PAGES_AUTO,
                                    .optimizer_state = state_of(c->config),
                                    .threads = c->config->run.threads == PL_CONFIG_AUTO ? 0 : team_of(c).threads},
                          .plan_recompute = pl_command_does(c->command, PL_USES_UPDATE) &&
                                            c->config->train.gradient_checkpointing == PL_CHECKPOINTING_AUTO,
                          .stage = pl_compiler_stage,
                          .settle = pl_compiler_settle,
                          .tell = tell_search,
                          .context = c};
    find_freedom(c, o);
    find_order(c, &o->given, o->batch);
    if (!pl_command_does(c->command, PL_USES_GRADIENT)) o->given.micro_batch = forward_micro_batch(c, o);
    PL_TRY(pl_compiler_find_floor(c, o, err));
    return find_budget(c, &o->budget_bytes, err);
}

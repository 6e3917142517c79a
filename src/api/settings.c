/* From a config to what the runner needs. */
#include <string.h>

#include "api/api.h"
#include "base/units.h"

static uint64_t or_auto(int64_t value, uint64_t chosen)
{
    return value == PL_CONFIG_AUTO ? (chosen ? chosen : 1) : (uint64_t)value;
}

pl_status pl_settings_paths(const pl_config *c, pl_settings *s, pl_error *err)
{
    PL_TRY(pl_config_run_folder(c, s->out, sizeof s->out, err));
    const char *folder = c->data.cache[0] ? c->data.cache : s->out;
    PL_TRY(pl_path_join(s->tokens_path, sizeof s->tokens_path, folder, "tokens.bin", err));
    return pl_path_join(s->tokenizer_path, sizeof s->tokenizer_path, s->out, "tokenizer.json", err);
}

static pl_lr_schedule schedule_of(const pl_config *c, uint64_t steps)
{
    static const pl_lr_kind kinds[] = {[PL_SCHEDULE_COSINE] = PL_LR_COSINE,
                                       [PL_SCHEDULE_LINEAR] = PL_LR_LINEAR,
                                       [PL_SCHEDULE_CONSTANT] = PL_LR_CONSTANT,
                                       [PL_SCHEDULE_PLATEAU] = PL_LR_PLATEAU};
    return (pl_lr_schedule){.kind = kinds[c->train.schedule],
                            .lr = c->train.learning_rate,
                            .min_ratio = c->train.min_lr_ratio,
                            .warmup = or_auto(c->train.warmup_steps, steps / 50),
                            .steps = steps,
                            .patience = (uint64_t)c->train.plateau_patience,
                            .factor = c->train.plateau_factor};
}

pl_sampler_options pl_settings_sampler(const pl_config *c, uint64_t tokens)
{
    return (pl_sampler_options){.tokens = tokens,
                                .sequence = (uint32_t)c->model.sequence,
                                .batch = (uint32_t)c->train.batch_size,
                                .validation_fraction = c->data.validation_fraction,
                                .seed = (uint64_t)c->train.seed};
}

static pl_status find_steps(const pl_config *c, const pl_tokens *tokens, uint64_t *steps, pl_error *err)
{
    pl_sampler sampler;
    pl_sampler_options o = pl_settings_sampler(c, tokens->info.count);
    PL_TRY(pl_sampler_init(&sampler, &o, PL_PART_TRAIN, err));
    *steps = c->train.steps != PL_CONFIG_AUTO ? (uint64_t)c->train.steps
                                              : sampler.steps_per_epoch * (uint64_t)c->train.epochs;
    return PL_OK;
}

static pl_status print_values(const pl_config *c, char **text, pl_error *err)
{
    pl_str s = {0};
    pl_config_print_yaml(c, &s);
    if (s.failed) return pl_str_deinit(&s), pl_fail(err, PL_E_NOMEM, "no memory to print the config");
    *text = s.data;
    return PL_OK;
}

/* The text has no file name any more that an automatic folder could be named after, so it names the folder. */
static pl_status print_config(const pl_config *c, const char *out, char **text, pl_error *err)
{
    if (c->run.out[0] || strlen(out) >= sizeof c->run.out) return print_values(c, text, err);
    pl_config *copy = pl_alloc(1, sizeof *copy);
    if (!copy) return pl_fail(err, PL_E_NOMEM, "no memory to print the config");
    *copy = *c;
    memcpy(copy->run.out, out, strlen(out) + 1);
    pl_status status = print_values(copy, text, err);
    pl_free(copy);
    return status;
}

pl_status pl_settings_fill(const pl_config *c, pl_command command, const pl_tokens *tokens, uint32_t vocab,
                           pl_settings *s, pl_error *err)
{
    uint64_t steps = 0;
    bool trains = pl_command_does(command, PL_USES_UPDATE);
    PL_TRY(pl_settings_paths(c, s, err));
    if (tokens) PL_TRY(find_steps(c, tokens, &steps, err));
    if (!s->config_text) PL_TRY(print_config(c, s->out, &s->config_text, err));
    int64_t micro = c->train.micro_batch == PL_CONFIG_AUTO ? 0 : c->train.micro_batch;
    if (pl_command_does(command, PL_USES_WHOLE_BATCH)) micro = c->train.batch_size;
    bool writes_text = pl_command_does(command, PL_USES_TEXT) || (trains && c->train.sample_every > 0);
    uint64_t eval_every = or_auto(c->train.eval_every, steps / 10);
    s->run = (pl_run_settings){.out = s->out,
                               .tokens_path = tokens ? s->tokens_path : NULL,
                               .tokenizer_path = writes_text ? s->tokenizer_path : NULL,
                               .prompt = c->generate.prompt,
                               .batch = (uint32_t)c->train.batch_size,
                               .micro_batch = (uint32_t)micro,
                               .sequence = (uint32_t)c->model.sequence,
                               .vocab = vocab,
                               .validation_fraction = c->data.validation_fraction,
                               .seed = (uint64_t)c->train.seed,
                               .steps = steps,
                               .lr = schedule_of(c, steps),
                               .eval_every = eval_every,
                               .eval_batches = (uint64_t)c->train.eval_batches,
                               .checkpoint_every = or_auto(c->train.checkpoint_every, eval_every),
                               .sample_every = (uint64_t)c->train.sample_every,
                               .log_every = or_auto(c->train.log_every, steps / 200),
                               .keep_last = trains ? (uint32_t)c->train.keep_last : 0,
                               .keep_best = c->train.keep_best,
                               .tensorboard = c->train.tensorboard,
                               .may_begin = c->run.resume != PL_SWITCH_ON,
                               .may_resume = c->run.resume != PL_SWITCH_OFF,
                               .model_hash = pl_config_hash_model(c) ^ vocab,
                               .plan_hash = pl_config_hash_numerics(c),
                               .config_text = s->config_text,
                               .sampling = {.temperature = c->generate.temperature,
                                            .top_k = c->generate.top_k,
                                            .top_p = c->generate.top_p,
                                            .seed = (uint64_t)c->generate.seed,
                                            .tokens = (uint64_t)c->generate.tokens},
                               .trace_path = c->run.trace[0] ? c->run.trace : NULL};
    return PL_OK;
}

void pl_settings_deinit(pl_settings *s)
{
    pl_free(s->config_text);
    s->config_text = NULL;
}

/* From a config to what the runner needs. */
#include <string.h>

#include "api/api.h"
#include "config/schema.h"
#include "systems/infer.h"

static uint64_t or_auto(int64_t value, uint64_t chosen)
{
    return value == PL_CONFIG_AUTO ? (chosen ? chosen : 1) : (uint64_t)value;
}

/* In a system that is trained in epochs, a tenth of the steps at most: else a short training would only warm up. */
static uint64_t warmup_of(const pl_config *c, uint64_t steps)
{
    enum { EPOCHS_WARMUP = 2000 };
    if (!pl_task_of(c)->in_epochs) return or_auto(c->train.warmup_steps, steps / 50);
    const uint64_t warmup = or_auto(c->train.warmup_steps, EPOCHS_WARMUP);
    return warmup < steps / 10 ? warmup : steps / 10;
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
                            .warmup = warmup_of(c, steps),
                            .steps = steps,
                            .patience = (uint64_t)c->train.plateau_patience,
                            .factor = c->train.plateau_factor};
}

/* A command that sees samples once, or files, has none: its parts say how far it is. */
static uint64_t find_steps(const pl_config *c, pl_command command, const pl_data *data)
{
    if (!data->source || data->calibration.passes || pl_system_files(c, command)) return 0;
    if (pl_command_does(command, PL_USES_RESULTS)) return data->source->steps_per_epoch[PL_PART_TRAIN];
    return c->train.steps != PL_CONFIG_AUTO ? (uint64_t)c->train.steps
                                            : data->source->steps_per_epoch[PL_PART_TRAIN] * pl_system_epochs(c);
}

static uint64_t epoch_of(const pl_data *data)
{
    return data->source ? data->source->steps_per_epoch[PL_PART_TRAIN] : 0;
}

/* First values, or the data's own; a model that is trained elsewhere has no others. */
static bool begins_first(const pl_config *c, pl_command command, const pl_data *data)
{
    if (data->brought) return true;
    return pl_system_files(c, command) &&
           (pl_system_is_seeded(c, command) || data->weights || !pl_task_of(c)->job[PL_COMMAND_TRAIN]);
}

/* What is kept as a trained model's output never comes from first values. */
static bool needs_saved(const pl_config *c, pl_command command, const pl_data *data)
{
    if (pl_system_files(c, command)) return !begins_first(c, command, data);
    return pl_command_does(command, PL_USES_RESULTS) && pl_task_of(c)->job[PL_COMMAND_TRAIN];
}

static pl_status print_values(const pl_config *c, char **text, pl_error *err)
{
    pl_str s = {0};
    pl_config_print_yaml(c, &s);
    if (s.failed) return pl_str_deinit(&s), pl_fail(err, PL_E_NOMEM, "no memory to print the config");
    *text = s.data;
    return PL_OK;
}

/* The text has lost the file name that an automatic folder is named after, so it names the folder. */
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

/* Weights fit a model of the same keys whose shapes depend on the same extents. */
static uint64_t hash_model(const pl_config *c, const pl_data *data)
{
    uint64_t hash = pl_config_hash_model(c);
    for (uint32_t i = 0; i < data->extents.count; i++) hash ^= data->extents.fact[i].value << 8 * i % 64;
    return hash;
}

/* A system with samples other than a training's says itself how many a step has. */
static int64_t batch_of(const pl_config *c, const pl_data *data)
{
    if (data->at_once) return data->at_once;
    return data->source ? data->source->batch : pl_config_batch(c);
}

static int64_t micro_batch_of(const pl_config *c, pl_command command, const pl_data *data)
{
    if (data->at_once) return data->at_once;
    if (data->source && data->source->at_once) return data->source->at_once;
    if (pl_command_does(command, PL_USES_WHOLE_BATCH)) return pl_config_batch(c);
    if (batch_of(c, data) == 1) return 1;
    if (pl_command_does(command, PL_USES_FILES)) return 0; /* it has no key train.micro_batch */
    return c->train.micro_batch == PL_CONFIG_AUTO ? 0 : c->train.micro_batch;
}

/* Samples of a calibration come one at a time, those of files infer.batch at a time: no other key lowers that. */
static const pl_words *words_of(const pl_config *c, pl_command command, pl_words *own)
{
    const pl_words *words = pl_system_words(c);
    const pl_job *job = pl_task_of(c)->job[command];
    const bool is_cut = pl_command_does(command, PL_USES_CALIBRATION | PL_USES_FILES);
    const bool has_several = command == PL_COMMAND_GENERATE && pl_config_sequences(c) > 1;
    if (!is_cut && !has_several && (!job || !job->words)) return words;
    *own = is_cut || has_several ? *words : *job->words;
    own->at_once_key = words->at_once_key;
    own->size_keys = has_several ? "generate.batch or model.context" : words->size_keys;
    own->weight_keys = words->weight_keys;
    if (!is_cut) return own;
    own->size_keys = words->weight_keys;
    if (pl_command_does(command, PL_USES_FILES)) own->at_once_key = "infer.batch";
    return own;
}

static void take_part(pl_model_part part, pl_run_settings *r)
{
    r->part_from = part.from, r->part = part.names, r->part_too = part.too;
    r->part_key = part.key, r->part_sizes = part.sizes;
}

pl_status pl_settings_fill(const pl_config *c, pl_command command, const pl_data *data, pl_settings *s, pl_error *err)
{
    const pl_family *family = pl_model_family(c);
    const pl_config_key *held_out = pl_config_find_held_out(c);
    const uint64_t steps = find_steps(c, command, data),
                   eval_every = or_auto(c->train.eval_every, pl_task_of(c)->in_epochs ? epoch_of(data) : steps / 10);
    PL_TRY(pl_config_run_folder(c, s->out, sizeof s->out, err));
    PL_TRY(pl_path_of_part(s->trace, sizeof s->trace, c->run.trace, data->piece, err));
    PL_TRY(pl_system_find_jobs(c, command, data, &s->jobs, err));
    PL_TRY(print_config(c, s->out, &s->config_text, err));
    PL_TRY(pl_system_tell_jobs(c, command, &s->own, err));
    s->run = (pl_run_settings){.out = s->out,
                               .data = &pl_system_data,
                               .words = words_of(c, command, &s->words),
                               .batch = (uint32_t)batch_of(c, data),
                               .micro_batch = (uint32_t)micro_batch_of(c, command, data),
                               .steps = steps,
                               .lr = schedule_of(c, steps),
                               .eval_every = eval_every,
                               .eval_batches = (uint64_t)c->train.eval_batches,
                               .checkpoint_every = or_auto(c->train.checkpoint_every, eval_every),
                               .sample_every = (uint64_t)c->train.sample_every,
                               .log_every = or_auto(c->train.log_every, steps / 200),
                               .keep_last = pl_command_does(command, PL_USES_UPDATE) ? (uint32_t)c->train.keep_last : 0,
                               .early_patience = (uint64_t)c->train.early_stopping_patience,
                               .early_min_delta = c->train.early_stopping_min_delta,
                               .keep_best = c->train.keep_best,
                               .init_from = c->train.init_from[0] ? c->train.init_from : NULL,
                               .tensorboard = c->train.tensorboard,
                               .may_begin = c->run.resume != PL_SWITCH_ON,
                               .may_resume = c->run.resume != PL_SWITCH_OFF,
                               .model_hash = hash_model(c, data),
                               .plan_hash = pl_config_hash_numerics(c),
                               .config_text = s->config_text,
                               .begins_first = begins_first(c, command, data),
                               .needs_saved = needs_saved(c, command, data),
                               .held_out = held_out ? held_out->path : NULL,
                               .own = s->own,
                               .trace_path = c->run.trace[0] ? s->trace : NULL};
    if (family->find_part) take_part(family->find_part(c), &s->run);
    return PL_OK;
}

void pl_settings_deinit(pl_settings *s)
{
    pl_free(s->config_text);
    pl_free(s->own);
    s->config_text = NULL;
    s->own = NULL;
}

/* What a calibration (plimsoll quantize) sees, and what its job is told: the same in all systems. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "store/run_files.h"
#include "systems/files.h"
#include "systems/infer.h"
#include "systems/system.h"

#define ALIKE(ours, theirs) _Static_assert((int)PL_CONFIG_##ours == (int)PL_##theirs, #ours)
ALIKE(RANGE_MINMAX, SPAN_MINMAX);
ALIKE(RANGE_PERCENTILE, SPAN_PERCENTILE);
ALIKE(RANGE_ENTROPY, SPAN_ENTROPY);

/* The range of each layer's inputs; if the method asks for it, their spread; the cost of 8 bits. Where no held-out data
 * can judge, whole outputs are compared: in f32, and in 8 bits. */
static uint64_t passes_of(const pl_config *c)
{
    const uint64_t of_layers = c->quantization.method == PL_CONFIG_RANGE_MINMAX ? 2 : 3;
    return pl_system_judges_calibration(c) ? of_layers : of_layers + 2;
}

bool pl_system_judges_calibration(const pl_config *c)
{
    return pl_task_of(c)->job[PL_COMMAND_EVALUATE] && !pl_system_files(c, PL_COMMAND_QUANTIZE);
}

enum { WANTED = 64 };

/* Files were chosen by the user, so all of them. */
static uint64_t wanted_of(const pl_config *c, uint64_t there)
{
    if (c->quantization.samples != PL_CONFIG_AUTO) return (uint64_t)c->quantization.samples;
    return pl_system_files(c, PL_COMMAND_QUANTIZE) ? there : WANTED;
}

pl_status pl_system_plan_calibration(const pl_config *c, pl_data *data, pl_error *err)
{
    const pl_source *source = data->source;
    const uint64_t there = source->steps_per_epoch[PL_PART_TRAIN], wanted = wanted_of(c, there);
    const pl_words *words = pl_system_words(c);
    if (there == 0)
        return pl_fail(err, PL_E_DATA, "%s: has no %s to calibrate with; give more of them", data->path, words->sample);
    data->calibration = (pl_calibration_work){.samples = wanted < there ? wanted : there, .passes = passes_of(c)};
    data->has_less = wanted > there;
    if (!data->has_less) return PL_OK;
    const bool files = pl_system_files(c, PL_COMMAND_QUANTIZE); /* a picture is not text */
    const char *one = files ? "item" : words->sample, *many = files ? "items" : words->samples;
    snprintf(data->said, sizeof data->said, "there %s %" PRIu64 " %s, and the calibration sees no more",
             there == 1 ? "is" : "are", there, there == 1 ? one : many);
    return PL_OK;
}

/* ---- the job ---- */

typedef struct told {
    pl_quantize_settings settings; /* first */
    char path[PL_FILE_PATH_MAX];
    char config[]; /* the model's keys */
} told;

pl_status pl_system_find_quantized(const pl_config *c, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    const char *given = c->quantization.output;
    if (!given[0]) return pl_config_run_path(c, PL_RUN_INT8_FILE, path, err);
    snprintf(path, PL_FILE_PATH_MAX, "%s", given);
    return PL_OK;
}

static pl_status check_apart(const char *weights, const char *path, pl_error *err)
{
    if (!weights[0] || !pl_files_are_one(weights, path)) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%.300s: the weights in 8 bits would be written over those that they are made of; give "
                   "quantization.output another name",
                   path);
}

static told *make_told(const pl_config *c)
{
    pl_str text = {0};
    pl_config_print_model(c, &text);
    told *t = text.failed ? NULL : pl_alloc(1, sizeof *t + text.bytes + 1);
    if (t) strcpy(t->config, pl_str_text(&text));
    pl_str_deinit(&text);
    return t;
}

/* The file keeps only the model's keys of the config: the same samples make the same file, however they were run. */
static pl_status tell_quantize(const pl_config *c, void **own, pl_error *err)
{
    told *t = *own = make_told(c);
    if (!t) return pl_fail(err, PL_E_NOMEM, "no memory for the settings of 8 bits");
    t->settings = (pl_quantize_settings){.path = t->path,
                                         .config = t->config,
                                         .in_folder = !c->quantization.output[0],
                                         .method = (pl_span_method)c->quantization.method,
                                         .percentile = c->quantization.percentile,
                                         .keep = (uint64_t)c->quantization.keep_f32};
    PL_TRY(pl_system_find_quantized(c, t->path, err));
    PL_TRY(pl_file_check_free(t->path, PL_RUN_INT8_FILE, err));
    PL_TRY(check_apart(c->run.weights, t->path, err));
    return check_apart(c->encoder.weights, t->path, err);
}

pl_status pl_system_tell_jobs(const pl_config *c, pl_command command, void **own, pl_error *err)
{
    const pl_task *t = pl_task_of(c);
    if (pl_command_does(command, PL_USES_CALIBRATION)) return tell_quantize(c, own, err);
    return t->tell_jobs ? t->tell_jobs(c, own, err) : PL_OK;
}

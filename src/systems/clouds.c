/* The row of cloud heights, and how its data are opened. */
#include "systems/clouds.h"

#include <string.h>

#include "data/clouds/clouds_data.h"
#include "models/model.h"
#include "systems/arrays.h"
#include "systems/clouds_measure.h"
#include "systems/clouds_stages.h"

/* ---- the data of a stage ---- */

static bool is_fold(const char *stage) { return strncmp(stage, PL_CLOUDS_LOO, strlen(PL_CLOUDS_LOO)) == 0; }

/* Which stage it is, and its flight. The name lives as long as the setup. */
static pl_status read_stage(const pl_config *c, const char *stage, pl_clouds_setup *s, pl_error *err)
{
    if (!stage[0])
        return pl_fail(err, PL_E_CONFIG,
                       "there is nothing to train: name pretrain_flight or validation_flight, or set loo to true");
    s->stage_key = "stage";
    if (is_fold(stage)) {
        s->stage = PL_SPLIT_LEAVE_OUT;
        s->flight = stage + strlen(PL_CLOUDS_LOO);
    } else if (strcmp(stage, PL_CLOUDS_PRETRAIN) == 0) {
        s->stage = PL_SPLIT_PRETRAIN;
        s->stage_key = "pretrain_flight", s->flight = c->clouds.pretrain_flight;
    } else {
        s->stage = PL_SPLIT_FINAL;
        s->stage_key = "validation_flight", s->flight = c->clouds.validation_flight;
    }
    return PL_OK;
}

const char *pl_clouds_overweight(const pl_config *c)
{
    if (c->clouds.overweight_flight[0]) return c->clouds.overweight_flight;
    return strcmp(c->clouds.pretrain_flight, c->clouds.validation_flight) == 0 ? "" : c->clouds.pretrain_flight;
}

static pl_clouds_setup setup_of(const pl_config *c, pl_command command)
{
    const int angles = c->clouds.angles_mode;
    return (pl_clouds_setup){.overweight = pl_clouds_overweight(c),
                             .overweight_factor = c->clouds.overweight_factor,
                             .window = (uint32_t)c->clouds.temporal_frames,
                             .batch = (uint32_t)pl_system_batch(c, command),
                             .seed = (uint64_t)c->train.seed,
                             .augment = c->clouds.augment && !pl_command_does(command, PL_USES_CALIBRATION),
                             .zscore = c->clouds.zscore_normalize,
                             .zenith = angles == PL_CONFIG_ANGLES_BOTH || angles == PL_CONFIG_ANGLES_SZA_ONLY,
                             .azimuth = angles == PL_CONFIG_ANGLES_BOTH || angles == PL_CONFIG_ANGLES_SAA_ONLY,
                             .evaluates = pl_command_does(command, PL_USES_VALIDATION) &&
                                          !pl_command_does(command, PL_USES_UPDATE)};
}

/* If the folder of a training was moved, its config still names the old place of the folder above. */
static pl_status require_frames(const char *path, pl_error *err)
{
    bool is_there;
    PL_TRY(pl_file_look(path, &is_there, err));
    if (is_there) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%s: is not there: it holds what the flights were made into; `cache` names the folder where it lies, "
        "and plimsoll train makes it",
        path);
}

/* Planning without flights is allowed; training is not. */
static pl_status check_folder(pl_preparation *p, pl_command command, pl_error *err)
{
    (void)command;
    return p->config->clouds.flights.count ? PL_OK : pl_clouds_need_flights(err);
}

/* As many samples as the config says, with frames of so many pixels: for a plan where there are no flights yet. The
 * plan may read noise; a run has nothing to read. */
static pl_status open_counted(const pl_config *c, pl_command command, pl_data_use use, pl_data **data, pl_error *err)
{
    pl_clouds_data *d;
    pl_clouds_setup s = setup_of(c, command);
    if (c->clouds.count == 0) return pl_clouds_need_flights(err);
    s.is_noise = use == PL_DATA_FOR_PLAN;
    s.count = (uint64_t)c->clouds.count;
    s.height = (uint32_t)(c->clouds.swath_slice.item[1] - c->clouds.swath_slice.item[0]);
    s.width = (uint32_t)c->clouds.frame_width;
    s.form = c->clouds.frame_form == PL_CONFIG_FRAMES_F16 ? PL_FRAMES_F16 : PL_FRAMES_U8;
    PL_TRY(pl_clouds_data_open(&s, &d, err));
    d->data.instead = "noise";
    *data = &d->data;
    return PL_OK;
}

/* In a shared folder the file may already be another one than was prepared. */
static pl_status check_prepared(const pl_clouds_options *o, pl_clouds_data *d, pl_error *err)
{
    bool same;
    pl_status status = pl_clouds_match(o, &d->frames, &same, err);
    if (status == PL_OK && !same)
        status = pl_fail(err, PL_E_DATA,
                         "%.350s: was made of other flights, or in another way, than this config says; when another "
                         "command uses this folder too, start this one again",
                         d->frames.path);
    if (status != PL_OK) pl_data_close(&d->data);
    return status;
}

static pl_status open_clouds(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    char stage[PL_STAGE_NAME_BYTES];
    if (c->clouds.flights.count == 0) return open_counted(c, command, use, data, err);
    pl_clouds_data *d;
    pl_clouds_reading *r;
    pl_clouds_setup s = setup_of(c, command);
    (void)planned;
    pl_clouds_stage_of(c, stage);
    PL_TRY(read_stage(c, stage, &s, err));
    PL_TRY(pl_clouds_read(c, &r, err));
    s.frames_path = r->path;
    pl_status status = require_frames(r->path, err);
    if (status == PL_OK) status = pl_clouds_data_open(&s, &d, err);
    /* A runner compares with the plan's identity, and may not have the flights' files. */
    if (status == PL_OK && use == PL_DATA_FOR_PLAN) status = check_prepared(&r->options, d, err);
    pl_clouds_reading_destroy(r);
    if (status == PL_OK) *data = &d->data;
    return status;
}

static uint64_t epochs_of(const pl_config *c)
{
    char stage[PL_STAGE_NAME_BYTES];
    pl_clouds_stage_of(c, stage);
    return (uint64_t)(c->clouds.flights.count && is_fold(stage) ? c->clouds.loo_epochs : c->train.epochs);
}

/* run.out says it all, whatever becomes of the folder. */
static pl_status keep(pl_config *c, pl_error *err)
{
    (void)err;
    memset(c->clouds.save_name, 0, sizeof c->clouds.save_name);
    return PL_OK;
}

/* ---- the row ---- */

static void say_inferred(const pl_data *of, const pl_infer_item *item, pl_json *j)
{
    const pl_infer_output *o;
    const float *height = pl_infer_item_find(item, "height", &o);
    const pl_scaler *s = of->kind->labels->scaler(of);
    if (height) pl_json_kv_double(j, "height_km", (double)(float)pl_unscale(s, (double)*height));
}

static const char *const files[] = {"frames.bin", NULL};

static const pl_dataset dataset = {.say_inferred = say_inferred,
                                   .prepare = pl_clouds_prepare_run,
                                   .check_folder = check_folder,
                                   .files = files,
                                   .magic = PL_FRAMES_MAGIC,
                                   .check = pl_clouds_check_flights,
                                   .keep = keep,
                                   .open = open_clouds};

static const pl_task task = {.job = {PL_JOBS_OF_TRAINED},
                             .in_epochs = true,
                             .epochs = epochs_of,
                             .measure = pl_clouds_measure,
                             .keep_predictions = pl_clouds_keep_predictions,
                             .stage_key = "stage",
                             .stage = pl_clouds_stage,
                             .report_stages = pl_clouds_report_stages};

const pl_system pl_system_clouds = {.words = {"sample", "samples", "sample", "samples", "samples/s", "flights", "step",
                                              "part", "of standardised heights", "batch_size",
                                              "batch_size, temporal_frames or channels", "channels"},
                                    .check = pl_clouds_check_folder,
                                    .dataset = {&dataset, &pl_dataset_arrays},
                                    .task = &task};

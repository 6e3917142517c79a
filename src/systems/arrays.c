/* Samples of a regression from a user's own arrays: the dataset of `samples_from: arrays`. */
#include "systems/arrays.h"

#include <string.h>

#include "base/alloc.h"
#include "data/arrays/arrays_data.h"
#include "data/arrays/arrays_prepare.h"

static bool is_meant(const pl_config *c, pl_command command)
{
    (void)command;
    return c->clouds.samples_from == PL_CONFIG_SAMPLES_ARRAYS;
}

#define ARRAYS_FILE "arrays.bin"

static pl_status need_arrays(const pl_config *c, pl_error *err)
{
    PL_TRY(pl_config_require(c, "arrays.images", "a model of arrays", err));
    return pl_config_require(c, "arrays.target", "a model of arrays", err);
}

static pl_status check_folder(pl_preparation *p, pl_command command, pl_error *err)
{
    (void)command;
    return need_arrays(p->config, err);
}

static const char *given(const char *path) { return path[0] ? path : NULL; }

static pl_arrays_wish wish_of(const pl_config *c)
{
    return (pl_arrays_wish){.file = {given(c->arrays.images), given(c->arrays.angles), given(c->arrays.target)},
                            .window = (uint32_t)c->clouds.temporal_frames};
}

static pl_status open_arrays(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_arrays_data *d;
    pl_arrays_setup s = {.path = path,
                         .images = given(c->arrays.images),
                         .window = (uint32_t)c->clouds.temporal_frames,
                         .batch = (uint32_t)pl_system_batch(c, command),
                         .seed = (uint64_t)c->train.seed,
                         .held_out = c->arrays.held_out,
                         .zscore = c->clouds.zscore_normalize,
                         .evaluates =
                             pl_command_does(command, PL_USES_VALIDATION) && !pl_command_does(command, PL_USES_UPDATE)};
    (void)planned, (void)use;
    PL_TRY(pl_config_run_path(c, ARRAYS_FILE, path, err));
    PL_TRY(pl_arrays_data_open(&s, &d, err));
    *data = &d->data;
    return PL_OK;
}

static void forget_data(pl_config *c) { c->arrays.images[0] = c->arrays.angles[0] = c->arrays.target[0] = 0; }

/* What the model needs from them: image sizes, means and deviations. */
static pl_status open_model(const pl_config *c, pl_data **data, pl_error *err)
{
    pl_config *without = pl_alloc(1, sizeof *without);
    if (!without) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    *without = *c;
    forget_data(without);
    const pl_status status = open_arrays(without, PL_COMMAND_EVALUATE, PL_DATA_FOR_RUN, NULL, data, err);
    pl_free(without);
    return status;
}

static void scale_input(const pl_config *c, const pl_data *of, pl_infer_port *p)
{
    const pl_arrays_data *d = pl_arrays_data_of(of);
    p->bytes = strcmp(p->name, "images") == 0;
    if (p->bytes && c->clouds.zscore_normalize) p->scaled_together = d->record.height * d->record.width;
    if (strcmp(p->name, "angles") == 0) p->scaler = d->scaler.angle;
}

static void say_inferred(const pl_data *of, const pl_infer_item *item, pl_json *j)
{
    const pl_infer_output *o;
    const float *predicted = pl_infer_item_find(item, "height", &o);
    if (predicted)
        pl_json_kv_double(j, "predicted", (double)(float)pl_unscale(of->kind->labels->scaler(of), (double)*predicted));
}

/* ---- preparation ---- */

typedef struct preparation {
    pl_preparation *p;
    const char *path;
    pl_progress progress;
    void *context;
} preparation;

static pl_status before_writing(void *context, pl_error *err)
{
    const preparation *p = context;
    PL_TRY(pl_preparation_lock(p->p, err));
    return pl_made_file(&p->p->made, p->path, err);
}

static bool tell(void *context, uint64_t done, uint64_t of)
{
    const preparation *p = context;
    return !p->progress || p->progress(p->context, "reading arrays", done, of);
}

/* The file that is made here must not be one of its own sources. */
static pl_status spare_arrays(const pl_config *c, const char *path, pl_error *err)
{
    const pl_file_use uses[] = {{path, "the file of the arrays", PL_FILE_WRITTEN},
                                {c->arrays.images, "arrays.images", PL_FILE_READ},
                                {c->arrays.angles, "arrays.angles", PL_FILE_READ},
                                {c->arrays.target, "arrays.target", PL_FILE_READ}};
    return pl_files_check(uses, sizeof uses / sizeof *uses, err);
}

/* Data that cannot be trained on are not kept. */
static pl_status try_to_open(const pl_config *c, pl_error *err)
{
    pl_data *data = NULL;
    const pl_status status = open_arrays(c, PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN, NULL, &data, err);
    pl_data_close(data);
    return status;
}

/* A run keeps the arrays that it was trained on: a look at it with other arrays must not replace them. */
static pl_status spare_trained(const pl_preparation *of, const pl_arrays_wish *w, pl_error *err)
{
    const uint64_t trained = pl_preparation_saved(of, "arrays");
    uint64_t content;
    bool made;
    if (trained == 0) return PL_OK;
    PL_TRY(pl_arrays_is_made(w, &made, &content, err));
    if (made || content != trained) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.300s: holds the arrays that this run was trained on, and arrays.images, arrays.angles or "
                   "arrays.target name others; name the same, try others with plimsoll infer, or train on them in "
                   "another folder with `run.out`",
                   w->path);
}

static pl_status prepare(pl_preparation *of, pl_progress progress, void *context, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    preparation p = {of, path, progress, context};
    pl_arrays_wish w = wish_of(of->config);
    PL_TRY(need_arrays(of->config, err));
    PL_TRY(pl_config_run_path(of->config, ARRAYS_FILE, path, err));
    PL_TRY(spare_arrays(of->config, path, err));
    w.folder = of->out, w.path = path;
    w.before_writing = before_writing, w.tell = tell, w.context = &p;
    PL_TRY(spare_trained(of, &w, err));
    PL_TRY(pl_arrays_prepare(&w, err));
    return try_to_open(of->config, err);
}

static const char *const files[] = {ARRAYS_FILE, NULL};

static const pl_words words = {"sample",
                               "samples",
                               "sample",
                               "samples",
                               "samples/s",
                               "arrays",
                               "step",
                               "part",
                               "of standardised targets",
                               "batch_size",
                               "batch_size, temporal_frames or channels",
                               "channels"};

const pl_dataset pl_dataset_arrays = {.is_meant = is_meant,
                                      .prepare = prepare,
                                      .files = files,
                                      .magic = PL_STAGING_MAGIC,
                                      .words = &words,
                                      .check_folder = check_folder,
                                      .open = open_arrays,
                                      .open_model = open_model,
                                      .forget_data = forget_data,
                                      .say_inferred = say_inferred,
                                      .scale_input = scale_input};

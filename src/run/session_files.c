/* What a session keeps on disk: checkpoints, metrics, events; and how it resumes from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/block8.h"
#include "base/philox.h"
#include "base/size.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "run/session_impl.h"
#include "store/run_files.h"

enum { CONFIG_BYTES_MAX = 1 << 20 /* no config is longer */, CHECKPOINT_STEP = 1024 };

/* ---- which tensors ---- */

static const struct {
    pl_dtype dtype;
    pl_st_dtype as;
} saved_dtypes[] = {{PL_DTYPE_F32, PL_ST_F32}, {PL_DTYPE_BF16, PL_ST_BF16}, {PL_DTYPE_F16, PL_ST_F16},
                    {PL_DTYPE_U8, PL_ST_U8},   {PL_DTYPE_I32, PL_ST_I32},   {PL_DTYPE_I64, PL_ST_I64},
                    {PL_DTYPE_F64, PL_ST_F64}};
enum { SAVED_DTYPES = sizeof saved_dtypes / sizeof *saved_dtypes };

/* What no type of the file can tell is bytes there; of moments a row for each block. */
static void shape_bytes(pl_encoding as, pl_st_entry *e)
{
    const bool blocks = as == PL_ENCODING_SIGNED8 || as == PL_ENCODING_ROOT8;
    e->dtype = PL_ST_U8;
    e->rank = blocks ? 2 : 1;
    e->shape[0] = blocks ? e->bytes / PL_BLOCK8_BYTES : e->bytes;
    e->shape[1] = blocks ? PL_BLOCK8_BYTES : 0;
}

pl_status pl_session_fill_entry(const pl_graph *g, const pl_program *program, pl_id id, pl_st_entry *e, pl_error *err)
{
    const pl_value *v = &g->value[id];
    int k = 0;
    while (k < SAVED_DTYPES && saved_dtypes[k].dtype != v->dtype) k++;
    if (k == SAVED_DTYPES)
        return pl_fail(err, PL_E_UNSUPPORTED, "%s: only f32, bf16, f16, f64, u8, i32 and i64 values are saved",
                       v->name);
    *e = (pl_st_entry){.name = v->name,
                       .dtype = saved_dtypes[k].as,
                       .rank = v->shape.rank,
                       .bytes = pl_value_bytes(g, id),
                       .optional = v->role == PL_ROLE_STATE && !v->inference};
    for (uint32_t i = 0; i < v->shape.rank; i++) e->shape[i] = (uint64_t)v->shape.dim[i];
    if (pl_encoding_is_whole(v->encoding)) shape_bytes(v->encoding, e);
    if (program) e->data = pl_program_address(program, id);
    return PL_OK;
}

/* The number of skipped steps is progress like the number of steps, and stands next to it in the record. */
static bool is_in_record(const pl_value *v) { return strcmp(v->name, PL_SKIPPED_STEPS) == 0; }

pl_session_kept pl_session_keeps(const pl_graph *g, pl_id id)
{
    const pl_value *v = &g->value[id];
    if (v->program != PL_NONE || pl_value_root(g, id) != id) return PL_KEPT_NOT;
    if (v->encoding && !pl_encoding_is_whole(v->encoding)) return PL_KEPT_NOT; /* it stays where it comes from */
    if (v->role == PL_ROLE_WEIGHT || v->role == PL_ROLE_AVERAGE || v->inference) return PL_KEPT_WITH_MODEL;
    bool state = v->role == PL_ROLE_OPTIMIZER || (v->role == PL_ROLE_STATE && !is_in_record(v));
    return state ? PL_KEPT_WITH_STATE : PL_KEPT_NOT;
}

/* A weight's average is the model for others, under the weight's name; the weight itself then only serves to go on
 * training. partner: pl_graph_pair_averages. */
static pl_session_kept keeps_paired(const pl_graph *g, const pl_id *partner, pl_id id)
{
    const bool has_average = partner && partner[id] != PL_NONE && g->value[id].role == PL_ROLE_WEIGHT;
    return has_average ? PL_KEPT_WITH_STATE : pl_session_keeps(g, id);
}

/* Weights and moments first, then the numbers that only some precisions have: so the beginning is always the same. */
static pl_status list_kept(const pl_graph *g, const pl_id *partner, const pl_program *program, pl_session_kept kept,
                           pl_st_entry **list, size_t *count, pl_error *err)
{
    *count = 0;
    for (size_t i = 0; i < g->value_count; i++) *count += keeps_paired(g, partner, (pl_id)i) == kept;
    *list = pl_alloc(*count + 1, sizeof **list);
    if (!*list) return pl_fail(err, PL_E_NOMEM, "no memory for the list of tensors");
    size_t at = 0;
    for (int state = 0; state < 2; state++)
        for (size_t i = 0; i < g->value_count; i++) {
            const pl_value *v = &g->value[i];
            if (keeps_paired(g, partner, (pl_id)i) != kept || (v->role == PL_ROLE_STATE) != state) continue;
            PL_TRY(pl_session_fill_entry(g, program, (pl_id)i, &(*list)[at], err));
            if (v->role == PL_ROLE_AVERAGE && partner) (*list)[at].name = g->value[partner[i]].name;
            at++;
        }
    return PL_OK;
}

pl_status pl_session_lists(const pl_graph *g, const pl_program *program, pl_st_entry **model, size_t *models,
                           pl_st_entry **state, size_t *states, pl_error *err)
{
    pl_id *partner = NULL;
    PL_TRY(pl_graph_pair_averages(g, &partner, err));
    pl_status status = list_kept(g, partner, program, PL_KEPT_WITH_MODEL, model, models, err);
    if (status == PL_OK) status = list_kept(g, partner, program, PL_KEPT_WITH_STATE, state, states, err);
    pl_free(partner);
    return status;
}

/* ---- the record ---- */

static const pl_st_text model_metadata[] = {{"format", "pt"}};

/* In a record, a fact that depends on another comes before it. */
static pl_facts reversed(const pl_facts *facts)
{
    pl_facts to = {0};
    for (uint32_t i = facts->count; i-- > 0;) pl_facts_add(&to, facts->fact[i].name, facts->fact[i].value);
    return to;
}

static bool trains(const pl_session *s) { return s->settings->keep_last > 0; }

static void shape_record(pl_session *s)
{
    const pl_run_settings *r = s->settings;
    const pl_job *job = s->jobs.job[0];
    size_t count = 0;
    s->counter[count++].key = s->words->items;
    for (size_t i = 0; i < PL_JOB_COUNTERS_MAX && job->counter[i]; i++) s->counter[count++].key = job->counter[i];
    s->record_shape = (pl_record){.model_hash = r->model_hash,
                                  .plan_hash = r->plan_hash,
                                  .identity = reversed(&s->o.data->identity),
                                  .config = r->config_text,
                                  .best_metric = job->best_metric,
                                  .counters = s->counter,
                                  .counter_count = count};
    s->spec.folder = r->out;
    s->spec.keep_last = r->keep_last ? r->keep_last : 1;
    s->spec.keep_best = r->keep_best;
    s->spec.record = &s->record_shape;
    s->spec.model.metadata = model_metadata;
    s->spec.model.metadata_count = 1;
    s->spec.state.more_numbers = true;       /* from another precision */
    s->spec.state.more_tensors = !trains(s); /* moments, where only weights are wanted */
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The hash of all that a file's header says about a tensor. */
static uint64_t hash_entry(uint64_t hash, const pl_st_entry *e)
{
    hash = mix(mix(hash, pl_stream_id(e->name)), (uint64_t)e->dtype << 8 | e->rank);
    for (uint32_t i = 0; i < e->rank; i++) hash = mix(hash, e->shape[i]);
    return mix(hash, e->bytes);
}

static uint64_t hash_tensors(const pl_session *s)
{
    uint64_t hash = mix(s->spec.model.count, s->record_shape.counter_count);
    for (size_t i = 0; i < s->spec.model.count; i++) hash = hash_entry(hash, &s->model_entry[i]);
    hash = mix(hash, s->spec.state.count);
    for (size_t i = 0; i < s->spec.state.count; i++) hash = hash_entry(hash, &s->state_entry[i]);
    return hash ? hash : 1;
}

static pl_status measure_tensors(const pl_session *s, pl_session_disk *disk, pl_error *err)
{
    pl_checkpoint_sizes sizes;
    uint64_t tensors = hash_tensors(s);
    if (disk->tensors == tensors) return PL_OK;
    PL_TRY(pl_checkpoint_measure(&s->spec, &sizes, err));
    *disk = (pl_session_disk){tensors, sizes.scratch_bytes, sizes.disk_bytes, sizes.checkpoint_bytes};
    return PL_OK;
}

static pl_status measure_checkpoints(const pl_graph *g, const pl_run_settings *r, const pl_data *data,
                                     const pl_job_list *jobs, pl_session_disk *disk, pl_error *err)
{
    pl_status status = PL_OK;
    pl_session *s = pl_alloc(1, sizeof *s); /* holds the shapes only */
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory to measure checkpoints");
    s->settings = r;
    s->o.data = data;
    s->jobs = *jobs;
    s->words = r->words;
    shape_record(s);
    PL_TRY_DONE(
        pl_session_lists(g, NULL, &s->model_entry, &s->spec.model.count, &s->state_entry, &s->spec.state.count, err));
    s->spec.model.entries = s->model_entry;
    s->spec.state.entries = s->state_entry;
    status = measure_tensors(s, disk, err);
done:
    pl_free(s->model_entry);
    pl_free(s->state_entry);
    pl_free(s);
    return status;
}

pl_status pl_session_rehearse_load(const pl_session_options *options, pl_session_goes_on *goes_on, void *context,
                                   pl_error *err)
{
    pl_alloc_meter *meter = pl_alloc_set_meter(NULL); /* the session has these already */
    pl_session *s = pl_alloc(1, sizeof *s);           /* holds the shapes only */
    if (!s) return pl_alloc_set_meter(meter), pl_fail(err, PL_E_NOMEM, "no memory to rehearse a checkpoint");
    s->o = *options;
    s->settings = options->settings;
    s->words = options->settings->words;
    s->jobs = options->jobs;
    shape_record(s);
    pl_status status = pl_session_list_tensors(s, err);
    (void)pl_alloc_set_meter(meter);
    if (status == PL_OK) status = pl_saved_rehearse(&s->spec, goes_on, context, err);
    pl_free(s->model_entry);
    pl_free(s->state_entry);
    pl_free(s);
    return status;
}

/* LOAD copies a slot and releases it, so it is refilled while the step computes; a second slot, if it is small, makes
 * up for a late refill. */
pl_ring_options pl_session_ring_options(const pl_source *source, const pl_run_settings *r)
{
    const uint32_t threads = pl_source_threads(source);
    pl_ring_options o = {.source = source, .micro_batch = r->micro_batch, .slots = threads + 1, .threads = threads};
    uint64_t bytes;
    pl_error err = {0};
    if (source && pl_ring_bytes(&o, &bytes, &err) == PL_OK && bytes > PL_SESSION_TWO_SLOTS_MAX_BYTES) o.slots = threads;
    return o;
}

/* ---- results ---- */

/* Twice as many blocks may be finished before waiting for the disk. */
pl_block_use pl_session_block_use(const pl_run_settings *r, const pl_block_sink *sink)
{
    const uint32_t open = sink && sink->open_max ? sink->open_max : r->micro_batch + 1;
    return (pl_block_use){.open_max = open, .finished_max = 2 * open};
}

static pl_status measure_results(const pl_run_settings *r, const pl_data *data, uint64_t *bytes, pl_error *err)
{
    pl_block_sizes sizes = {0};
    const pl_block_use use = pl_session_block_use(r, data->sink);
    if (data->sink) PL_TRY(pl_block_file_measure(data->sink->layout, data->sink->form, &use, &sizes, err));
    *bytes = sizes.memory_bytes;
    return PL_OK;
}

uint64_t pl_session_results_left(const pl_session *s)
{
    if (!s->results) return 0;
    return pl_block_count(s->o.data->sink->layout) - pl_block_file_done(s->results);
}

pl_status pl_session_open_results(pl_session *s, pl_error *err)
{
    const pl_block_sink *sink = s->o.data->sink;
    const pl_graph *g = s->o.plan->graph;
    uint64_t bytes;
    if (!sink) return PL_OK;
    const pl_block_use use = pl_session_block_use(s->settings, sink);
    PL_TRY(measure_results(s->settings, s->o.data, &bytes, err));
    pl_id staging = pl_graph_find_value(g, PL_STAGING_RESULTS);
    if (staging == PL_NONE || pl_value_bytes(g, staging) < bytes)
        return pl_fail(err, PL_E_DATA, "the plan has too little staging for %s; plan again", sink->path);
    return pl_block_file_open(sink->path, sink->layout, &use, pl_session_address(s, staging), bytes, &s->results, err);
}

/* Numbers in a checkpoint's record have more digits with more data; that must not move what follows. */
static uint64_t checkpoint_bytes(const pl_run_settings *r, const pl_session_disk *disk)
{
    return r->keep_last ? pl_align_up(disk->scratch_bytes, CHECKPOINT_STEP) : 0;
}

/* The ring, checkpoints, the trace and results, then what the jobs keep. */
pl_status pl_session_measure_staging(const pl_graph *g, const pl_run_settings *r, const pl_data *data,
                                     const pl_job_list *jobs, pl_session_staging staging[PL_SESSION_STAGING_MAX],
                                     size_t *count, pl_session_disk *disk, pl_error *err)
{
    uint64_t loader = 0;
    pl_ring_options ro = pl_session_ring_options(data->source, r);
    if (data->source) PL_TRY(pl_ring_bytes(&ro, &loader, err));
    if (r->keep_last) PL_TRY(measure_checkpoints(g, r, data, jobs, disk, err));
    staging[0] = (pl_session_staging){PL_STAGING_LOADER, loader, PL_ROLE_STAGING};
    staging[1] = (pl_session_staging){PL_STAGING_CHECKPOINT, checkpoint_bytes(r, disk), PL_ROLE_IO};
    staging[2] = (pl_session_staging){PL_STAGING_TRACE, r->trace_path ? PL_TRACE_STAGING_BYTES : 0, PL_ROLE_IO};
    uint64_t results;
    PL_TRY(measure_results(r, data, &results, err));
    staging[3] = (pl_session_staging){PL_STAGING_RESULTS, results, PL_ROLE_IO};
    *count = 4;
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->job[i]->staging)
            staging[(*count)++] =
                (pl_session_staging){jobs->job[i]->staging, jobs->job[i]->staging_bytes(g, r, data), PL_ROLE_STAGING};
    return PL_OK;
}

/* ---- opening ---- */

pl_status pl_session_list_tensors(pl_session *s, pl_error *err)
{
    PL_TRY(pl_session_lists(s->o.plan->graph, s->program, &s->model_entry, &s->spec.model.count, &s->state_entry,
                            &s->spec.state.count, err));
    /* A model is used in a precision of its own, whatever it was saved in. */
    for (size_t i = 0; i < s->spec.model.count; i++) s->model_entry[i].converts = !trains(s);
    s->spec.model.entries = s->model_entry;
    s->spec.state.entries = s->state_entry;
    return PL_OK;
}

pl_status pl_session_open_files(pl_session *s, pl_error *err)
{
    PL_TRY(pl_session_list_tensors(s, err));
    shape_record(s);
    s->writes_checkpoints = trains(s);
    if (!s->writes_checkpoints) return PL_OK;
    PL_TRY(pl_folder_create(s->settings->out, err));
    PL_TRY(pl_folder_lock(s->settings->out, &s->lock, err));
    pl_run_sweep(s->settings->out, s->settings->data);
    return PL_OK;
}

pl_status pl_session_check_counter(const pl_saved *saved, const char *key, double otherwise, double least, double most,
                                   pl_error *err)
{
    double value = pl_record_counter_value(saved->record, key, otherwise);
    if (value >= least && value <= most) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.350s: the counter \"%s\" is %g, a number from %g to %g was expected; take another checkpoint",
                   saved->path, key, value, least, most);
}

static pl_status take_progress(pl_session *s, const pl_saved *saved, pl_error *err)
{
    const pl_job *job = s->jobs.job[0];
    PL_TRY(pl_session_check_counter(saved, s->words->items, 0, 0, 0x1p63, err));
    s->step = s->saved_step = saved->record->step;
    s->items_seen = (uint64_t)pl_record_counter_value(saved->record, s->words->items, 0);
    return job->take_up ? job->take_up(s, s->job_state[0], saved, err) : PL_OK;
}

/* State that the checkpoint lacks begins as in a new run. It may have been made with another precision, or before the
 * loss scale was a tensor; then its record has the scale. */
static pl_status begin_missing(pl_session *s, const pl_saved *saved, pl_error *err)
{
    bool lacks = false;
    if (s->spec.state.count) PL_TRY(pl_saved_lacks(saved, &s->spec.state, &lacks, err));
    if (!lacks) return PL_OK;
    if (s->init == PL_NONE) return pl_fail(err, PL_E_DATA, "the plan has no program that begins its state; plan again");
    PL_TRY(pl_session_run_program(s, s->init, true, err));
    if (!s->loss_scale) return PL_OK;
    PL_TRY(pl_session_check_counter(saved, "loss_scale", 1, 1, 0x1p24, err));
    PL_TRY(pl_session_check_counter(saved, "loss_scale_good_steps", 0, 0, INT32_MAX, err));
    *s->loss_scale = (float)pl_record_counter_value(saved->record, "loss_scale", (double)*s->loss_scale);
    *s->good_steps = (int32_t)pl_record_counter_value(saved->record, "loss_scale_good_steps", (double)*s->good_steps);
    return PL_OK;
}

static pl_status check_loss_scale(const pl_session *s, const pl_saved *saved, pl_error *err)
{
    if (!s->loss_scale) return PL_OK;
    bool fine = *s->loss_scale >= 1 && *s->loss_scale <= 0x1p24f && *s->good_steps >= 0;
    if (fine) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.350s: the loss scale is %g after %d good steps, a number from 1 to 16777216 after 0 or more was "
                   "expected; take another checkpoint",
                   saved->path, (double)*s->loss_scale, (int)*s->good_steps);
}

static pl_status load_saved(pl_session *s, const pl_saved *saved, pl_error *err)
{
    if (saved->warning[0]) pl_session_warn(s, saved->warning);
    PL_TRY(s->o.data->kind->match(s->o.data, &saved->record->identity, saved->path, trains(s), err));
    if (trains(s) && s->settings->goes_on)
        PL_TRY(s->settings->goes_on(s->settings->goes_on_context, saved, &s->changes, err));
    PL_TRY(pl_saved_match(saved, s->settings->model_hash, s->settings->config_text, &s->spec.model, err));
    PL_TRY(begin_missing(s, saved, err));
    PL_TRY(pl_saved_load(saved, &s->spec.model, s->spec.state.count ? &s->spec.state : NULL, err));
    PL_TRY(check_loss_scale(s, saved, err));
    return take_progress(s, saved, err);
}

static pl_status find_saved(pl_session *s, pl_saved *saved, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    pl_saved_part part = s->spec.state.count ? PL_SAVED_WHOLE : PL_SAVED_WEIGHTS;
    if (r->checkpoint) return pl_saved_open(r->checkpoint, part, saved, err);
    if (trains(s)) return pl_saved_find(r->out, part, saved, err);
    PL_TRY(pl_saved_find_best(r->out, part, saved, err));
    return saved->record ? PL_OK : pl_saved_find(r->out, part, saved, err);
}

static pl_status check_start(const pl_session *s, const pl_saved *saved, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    if (!r->may_resume) PL_TRY(pl_saved_refuse_new(r->out, saved, err));
    if (!r->may_begin) PL_TRY(pl_saved_refuse_none(r->out, saved, err));
    return pl_saved_refuse_past(r->out, saved, r->steps, err);
}

/* Or without its first and last line, a mark and a checksum, which earlier builds did not write. */
static bool is_kept_text(const char *kept, const char *text, size_t bytes)
{
    const size_t all = strlen(kept), first = strcspn(kept, "\n") + 1;
    size_t last = all - 1;
    if (bytes == all && memcmp(text, kept, all) == 0) return true;
    while (last > first && kept[last - 1] != '\n') last--;
    return bytes == last - first && memcmp(text, kept + first, bytes) == 0;
}

/* A run creates its checkpoints' folder first of all, so a config without one is foreign, unless it says what this run
 * would write. */
static pl_status spare_foreign_config(const pl_session *s, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text;
    size_t bytes;
    bool is_there;
    const char *kept = s->settings->kept_config;
    if (!kept) return PL_OK;
    PL_TRY(pl_path_join(path, sizeof path, s->settings->out, "checkpoints", err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (is_there) return PL_OK;
    PL_TRY(pl_path_join(path, sizeof path, s->settings->out, "config.yaml", err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    PL_TRY(pl_file_read_all(path, CONFIG_BYTES_MAX, &text, &bytes, err));
    const bool is_same = is_kept_text(kept, text, bytes);
    pl_free(text);
    if (is_same) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: exists but belongs to no run (no checkpoints beside it), and training would overwrite it; "
                   "move it away or choose another folder with `run.out`",
                   path);
}

/* With it, the folder of the run has all that a later command needs. */
static pl_status keep_config(const pl_session *s, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const char *text = s->settings->kept_config;
    if (!text || s->step >= s->settings->steps) return PL_OK; /* nothing is trained with it */
    PL_TRY(pl_path_join(path, sizeof path, s->settings->out, "config.yaml", err));
    return pl_file_write_all(path, text, strlen(text), err);
}

static void tell_of_links(pl_session *s)
{
    const char *note = pl_checkpoint_take_note(s->checkpoint);
    if (note) pl_session_warn(s, note);
}

static pl_status open_outputs(pl_session *s, const pl_record *resumed, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    void *scratch = pl_session_value(s, PL_STAGING_CHECKPOINT);
    if (!scratch) return pl_fail(err, PL_E_DATA, "the plan has no staging for checkpoints; plan again");
    uint64_t bytes = pl_value_bytes(s->o.plan->graph, pl_graph_find_value(s->o.plan->graph, PL_STAGING_CHECKPOINT));
    PL_TRY(spare_foreign_config(s, err));
    PL_TRY(pl_checkpoint_create(&s->spec, resumed, scratch, bytes, &s->checkpoint, err)); /* may make room */
    tell_of_links(s);
    PL_TRY(pl_checkpoint_reserve(&s->spec, err));
    PL_TRY(keep_config(s, err));
    PL_TRY(pl_path_join(path, sizeof path, s->settings->out, "metrics.jsonl", err));
    PL_TRY(pl_metrics_open(&s->metrics, path, s->step ? s->step : PL_METRICS_NONE, err));
    if (!s->settings->tensorboard) return PL_OK;
    /* At a fresh start too: a run that died before its first checkpoint may have left events, as it left metrics. */
    pl_tensorboard_open(&s->tensorboard, s->settings->out, floor(pl_session_wall_seconds()), s->step + 1);
    return PL_OK;
}

/* A folder whose weights a new run begins with: the prefix of their names, the key that names the folder, and the keys
 * that say how large they are; NULL: the model's own. */
typedef struct origin {
    const char *folder, *prefix, *key, *sizes;
} origin;

static bool is_of(const origin *o, const pl_st_entry *e) { return strncmp(e->name, o->prefix, strlen(o->prefix)) == 0; }

static pl_status load_entries(const origin *o, const pl_saved *saved, const pl_st_list *part, pl_error *err)
{
    pl_error why;
    const pl_status status = pl_saved_load(saved, part, NULL, &why);
    if (status == PL_OK) return PL_OK;
    if (status != PL_E_DATA || !o->sizes) return *err = why, status;
    return pl_fail(err, status, "%s; %s must be what they are in that run's config.yaml", why.text, o->sizes);
}

/* How many tensors were found in a file, and how many it has. */
typedef struct taken {
    size_t found, there;
} taken;

/* Loads consecutive wanted entries, from `from` on; those that the file lacks are left as they are. */
static pl_status take_entries(pl_session *s, const origin *o, const pl_saved *saved, size_t *from, taken *t,
                              pl_error *err)
{
    pl_st_list part = {.entries = s->model_entry + *from, .more_tensors = true};
    size_t count = 0;
    for (; *from < s->spec.model.count && is_of(o, &s->model_entry[*from]); (*from)++, part.count++)
        s->model_entry[*from].optional = true;
    pl_status status = pl_saved_count(saved, &part, &count, &t->there, err);
    if (status == PL_OK && count) status = load_entries(o, saved, &part, err);
    for (size_t i = 0; i < part.count; i++) s->model_entry[*from - 1 - i].optional = false;
    t->found += count;
    return status;
}

/* Reports the unexpected: tensors that begin at random, and those that have no place here. */
static void tell_taken(pl_session *s, const origin *o, const pl_saved *saved, const taken *t)
{
    const size_t all = s->spec.model.count, unused = o->prefix[0] ? 0 : t->there - t->found;
    char text[400];
    pl_str out = pl_str_fixed(text, sizeof text);
    if (t->found == all && !unused) return;
    pl_str_printf(&out, "begins with %zu of its %zu tensors from %.200s", t->found, all, saved->path);
    if (unused) pl_str_printf(&out, "; %zu more that are there have no place here", unused);
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = text, .text_bytes = strlen(text)});
}

/* Weights of another training of this model, or of a part of it: what that lacks begins as in a new run. */
static pl_status take_part(pl_session *s, const origin *o, const pl_saved *saved, pl_error *err)
{
    taken t = {0};
    for (size_t i = 0; i < s->spec.model.count;) {
        if (!is_of(o, &s->model_entry[i]))
            i++;
        else
            PL_TRY(take_entries(s, o, saved, &i, &t, err));
    }
    if (t.found == 0 && o->prefix[0])
        return pl_fail(err, PL_E_DATA,
                       "%s: has no weights of this model that begin with \"%s\"; name another run with %s", saved->path,
                       o->prefix, o->key);
    if (t.found == 0)
        return pl_fail(err, PL_E_DATA, "%s: has no tensor of this model; name another run with %s", saved->path,
                       o->key);
    return tell_taken(s, o, saved, &t), PL_OK;
}

/* A new run begins with another's weights: its best, else its latest; the optimizer starts afresh. */
static pl_status take_origin(pl_session *s, const origin *o, pl_error *err)
{
    pl_saved saved = {0};
    const bool is_part = o->prefix[0] != 0;
    pl_status status = pl_saved_find_best(o->folder, PL_SAVED_WEIGHTS, &saved, err);
    if (status == PL_OK && !saved.record) status = pl_saved_find(o->folder, PL_SAVED_WEIGHTS, &saved, err);
    if (status == PL_OK && !saved.record)
        status = pl_fail(err, PL_E_DATA,
                         "%s: has no checkpoint to begin with; name the folder of a run that was trained, or leave %s "
                         "out%s",
                         o->folder, o->key, is_part ? "" : " to begin with random weights");
    if (status == PL_OK && saved.warning[0]) pl_session_warn(s, saved.warning);
    if (status == PL_OK && !is_part)
        status = pl_saved_match(&saved, s->settings->model_hash, s->settings->config_text, &s->spec.model, err);
    if (status == PL_OK) status = take_part(s, o, &saved, err);
    pl_saved_deinit(&saved);
    return status;
}

/* Does the run to begin with have the part already? Then the part's own folder may be gone. */
static pl_status has_part(const pl_session *s, bool *has, pl_error *err)
{
    const origin o = {s->settings->init_from, s->settings->part, NULL, NULL};
    pl_saved saved = {0};
    *has = false;
    pl_status status = pl_saved_find(o.folder, PL_SAVED_RECORD, &saved, err);
    size_t i = 0, found = 0, there; /* it has all of them or none: the first tells */
    while (i < s->spec.model.count && !is_of(&o, &s->model_entry[i])) i++;
    const pl_st_list first = {.entries = s->model_entry + i, .count = i < s->spec.model.count};
    if (status == PL_OK && saved.record) status = pl_saved_count(&saved, &first, &found, &there, err);
    *has = found > 0;
    pl_saved_deinit(&saved);
    return status;
}

/* The part last: its own key decides, whatever the run that comes first had. */
pl_status pl_session_begin_from(pl_session *s, pl_error *err)
{
    const pl_run_settings *r = s->settings;
    bool has = false;
    if (r->init_from) PL_TRY(take_origin(s, &(origin){r->init_from, "", "train.init_from", NULL}, err));
    if (!r->part_from) return PL_OK;
    if (r->init_from && access(r->part_from, F_OK) != 0) PL_TRY(has_part(s, &has, err));
    if (has) return PL_OK;
    PL_TRY(take_origin(s, &(origin){r->part_from, r->part, r->part_key, r->part_sizes}, err));
    return r->part_too ? take_origin(s, &(origin){r->part_from, r->part_too, r->part_key, NULL}, err) : PL_OK;
}

/* Once, before any other message: a user who starts two at once must know that neither is refused. */
void pl_session_tell_of_locks(pl_session *s)
{
    char text[PL_ERROR_TEXT_BYTES];
    const bool has = (!s->results || pl_block_file_has_locks(s->results)) &&
                     (!s->writes_checkpoints || pl_folder_has_locks(s->settings->out));
    if (has) return;
    snprintf(text, sizeof text,
             "%.400s: " PL_IO_NO_LOCKS "nothing refuses a second command that writes the same files at the same time: "
             "start none",
             s->results ? s->o.data->sink->path : s->settings->out);
    pl_session_warn(s, text);
}

pl_status pl_session_load(pl_session *s, bool *loaded, pl_error *err)
{
    pl_saved saved = {0};
    pl_status status = PL_OK;
    *loaded = false;
    const bool looks = !pl_session_begins_with_file(s->o.data) && (s->settings->out || s->settings->checkpoint);
    if (looks) PL_TRY_DONE(find_saved(s, &saved, err));
    if (trains(s)) PL_TRY_DONE(check_start(s, &saved, err));
    if (saved.record) {
        PL_TRY_DONE(load_saved(s, &saved, err));
        *loaded = true;
    }
    if (s->writes_checkpoints) PL_TRY_DONE(open_outputs(s, saved.record, err));
done:
    pl_saved_deinit(&saved);
    return status;
}

/* ---- saving ---- */

pl_status pl_session_save(pl_session *s, pl_error *err)
{
    if (!s->writes_checkpoints || s->saved_step == s->step) return PL_OK;
    char name[PL_STEP_NAME_BYTES];
    double counter[PL_JOB_COUNTERS_MAX] = {0};
    s->record = s->record_shape;
    s->record.step = s->step;
    const uint64_t epoch = s->o.data->source->steps_per_epoch[PL_PART_TRAIN];
    s->record.epoch = s->step / epoch;
    s->record.sample = s->step % epoch * s->settings->batch;
    s->counter[0].value = (double)s->items_seen;
    if (s->jobs.job[0]->note) s->jobs.job[0]->note(s, s->job_state[0], counter, &s->record);
    for (size_t i = 1; i < s->record.counter_count; i++) s->counter[i].value = counter[i - 1];
    if (s->metrics_lost.status == PL_OK) PL_TRY(pl_metrics_sync(&s->metrics, err));
    double began = pl_run_now();
    PL_TRY(pl_checkpoint_save(s->checkpoint, &s->record, err));
    tell_of_links(s);
    pl_session_trace(s, "save", "checkpoint", began, pl_run_now());
    s->saved_step = s->step;
    pl_step_name_print(s->step, name);
    pl_session_tell(
        s, (pl_event){
               .kind = PL_EVENT_SAVED, .text = name, .text_bytes = strlen(name), .best_loss = s->record.best_value});
    return PL_OK;
}

void pl_session_close_files(pl_session *s)
{
    pl_metrics_close(&s->metrics);
    pl_tensorboard_close(&s->tensorboard);
    pl_folder_unlock(&s->lock);
    pl_free(s->model_entry);
    pl_free(s->state_entry);
}

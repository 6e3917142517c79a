/* A model in 8 bits (docs/quantize.md): the samples of a calibration go through its program. First it is seen how large
 * what comes to each layer is, then how it is spread, where the method asks for that; then ranges and packed weights
 * are made, and with them each layer is done once more in 8 bits beside itself, which tells what that costs it. The
 * layers that lose most may stay in f32. Where the system evaluates and something is held out, the model is judged on
 * that, as it was and with those layers in 8 bits. The file that comes out has the model's weights, packed where they
 * are in 8 bits, and a range for each site (rewrite/observe.c): whoever is given it does those layers so. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "ir/op.h"
#include "jobs/quantize_impl.h"
#include "store/folder.h"

#define STAGING "quantize.rows"

/* Judged by what is held out, and not by what comes out. */
static bool is_evaluated(const pl_session *s) { return s->jobs.job[0] == &pl_job_quantize_evaluate; }

/* ---- what there is ---- */

/* What the calibration keeps of that value, by its dtype; NULL: nothing. */
static void *beside(const pl_session *s, pl_id of, pl_dtype dtype)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].of == of && g->value[i].dtype == dtype && g->value[i].role == PL_ROLE_STAGING)
            return pl_session_address(s, (pl_id)i);
    return NULL;
}

static void add_site(pl_session *s, pl_quantizing *q, const pl_node *n)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_id root = pl_value_root(g, n->observe_extremes.extremes), range = g->value[root].of;
    q->site[q->sites++] = (pl_quantize_site){.name = g->value[root].name,
                                             .seen = pl_session_address(s, root),
                                             .bin = beside(s, range, PL_DTYPE_I64),
                                             .range = pl_session_address(s, range),
                                             .range_root = range};
}

/* A weight that is packed in a file is its own: it belongs to no other. */
static bool is_layer(const pl_graph *g, const pl_node *n)
{
    return n->op == PL_OP_LINEAR_INT8 && g->value[pl_value_root(g, n->linear_int8.weight)].of != PL_NONE;
}

static void add_layer(pl_session *s, pl_quantizing *q, const pl_node *n)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_linear_int8_args *a = &n->linear_int8;
    const pl_id root = pl_value_root(g, a->weight), weight = g->value[root].of;
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].packed_root == root) return;
    q->layer[q->layers++] = (pl_quantize_layer){.name = g->value[weight].name,
                                                .weight = pl_session_address(s, weight),
                                                .real = pl_quantize_reals[g->value[weight].dtype],
                                                .packed = pl_session_address(s, root),
                                                .rows = g->value[root].shape.dim[0],
                                                .width = g->value[root].shape.dim[1],
                                                .difference = beside(s, weight, PL_DTYPE_F64),
                                                .taken = beside(s, weight, PL_DTYPE_I32),
                                                .packed_root = root,
                                                .weight_root = weight};
}

static size_t count_nodes(const pl_graph *g, pl_op op)
{
    size_t count = 0;
    for (size_t i = 0; i < g->node_count; i++) count += g->node[i].op == op;
    return count;
}

static void find_all(pl_session *s, pl_quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].op == PL_OP_OBSERVE_EXTREMES) add_site(s, q, &g->node[i]);
        if (is_layer(g, &g->node[i])) add_layer(s, q, &g->node[i]);
    }
}

/* ---- the file ---- */

static const pl_quantize_layer *layer_of_weight(const pl_quantizing *q, pl_id root)
{
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].weight_root == root) return &q->layer[i];
    return NULL;
}

static bool is_in_8_bits(const pl_quantizing *q, pl_id packed_root)
{
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].packed_root == packed_root) return !q->layer[i].kept;
    return false;
}

static const pl_quantize_site *site_of_range(const pl_quantizing *q, pl_id root)
{
    for (size_t k = 0; k < q->sites; k++)
        if (q->site[k].range_root == root) return &q->site[k];
    return NULL;
}

static void mark_sites(const pl_session *s, pl_quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!is_layer(g, n) || !is_in_8_bits(q, pl_value_root(g, n->linear_int8.weight))) continue;
        const pl_id range = pl_value_root(g, n->linear_int8.range);
        for (size_t k = 0; k < q->sites; k++) q->site[k].used |= q->site[k].range_root == range;
    }
}

/* Weights as they are, packed ones in the place of theirs, and the ranges of sites that need them. */
static bool is_written(const pl_graph *g, const pl_quantizing *q, pl_id id)
{
    const pl_quantize_layer *l = layer_of_weight(q, id);
    const pl_quantize_site *of = site_of_range(q, id);
    if (pl_session_keeps(g, id) == PL_KEPT_WITH_MODEL) return !l || l->kept;
    return of ? of->used : is_in_8_bits(q, id);
}

/* everything: whatever may come to be written. */
static pl_status list_tensors(const pl_session *s, pl_quantizing *q, bool everything, pl_st_list *list, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    q->text[0] = (pl_st_text){"format", PL_WEIGHTS_FORMAT};
    q->text[1] = (pl_st_text){PL_WEIGHTS_CONFIG, q->how->config};
    q->text[2] = (pl_st_text){PL_WEIGHTS_CHECKSUM, q->checksum};
    *list = (pl_st_list){.entries = q->entry, .metadata = q->text, .metadata_count = 3};
    for (size_t i = 0; i < g->value_count; i++) {
        const bool may = everything && (layer_of_weight(q, (pl_id)i) || site_of_range(q, (pl_id)i));
        if (may || is_written(g, q, (pl_id)i))
            PL_TRY(pl_session_fill_entry(g, s->program, (pl_id)i, &q->entry[list->count++], err));
    }
    return PL_OK;
}

/* While memory may be asked for: a part of a list that is right is right. */
static pl_status check_tensors(const pl_session *s, pl_quantizing *q, pl_error *err)
{
    pl_st_list list;
    PL_TRY(list_tensors(s, q, true, &list, err));
    return pl_safetensors_check(&list, err);
}

/* Of the file at the most: each layer in whichever of both takes more. */
static uint64_t most_bytes(const pl_session *s, const pl_quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    uint64_t bytes = (q->sites + q->layers + 1) * sizeof(float[2]) + PL_ST_PIECE_BYTES + 2 * strlen(q->how->config);
    for (size_t i = 0; i < g->value_count; i++)
        if (pl_session_keeps(g, (pl_id)i) == PL_KEPT_WITH_MODEL) bytes += pl_value_bytes(g, (pl_id)i);
    for (size_t i = 0; i < q->layers; i++) {
        const uint64_t wide = pl_value_bytes(g, q->layer[i].weight_root),
                       packed = pl_value_bytes(g, q->layer[i].packed_root);
        if (packed > wide) bytes += packed - wide;
    }
    return bytes;
}

/* Before anything is done: can the file be made where it is to be, and is there room for it? */
static pl_status try_place(const pl_session *s, pl_quantizing *q, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    if (q->how->in_folder) PL_TRY(pl_folder_create(s->settings->out, err));
    PL_TRY(pl_file_look(q->how->path, &q->was_there, err));
    PL_TRY(pl_file_create(&q->writer->file, q->how->path, err));
    pl_file_abandon(&q->writer->file);
    const char *slash = strrchr(q->how->path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - q->how->path) + 1 : 1, slash ? q->how->path : ".");
    return pl_disk_require(folder, most_bytes(s, q), "the file of weights", err);
}

static pl_status write_file(const pl_session *s, pl_quantizing *q, pl_error *err)
{
    pl_st_list list;
    mark_sites(s, q);
    PL_TRY(list_tensors(s, q, false, &list, err));
    memcpy(q->checksum, PL_WEIGHTS_NO_CHECKSUM, sizeof q->checksum);
    pl_checksum_print(pl_safetensors_checksum(&list), q->checksum);
    return pl_safetensors_write(q->writer, q->how->path, &list, NULL, err);
}

/* ---- opening ---- */

/* Is there anything to do, and would it be done? */
static pl_status check_layers(const pl_graph *g, const pl_quantizing *q, pl_error *err)
{
    if (q->layers == 0 && count_nodes(g, PL_OP_LINEAR_BINARY) > 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "the model has no layer that can be done in 8 bits: its layers are of signs (model.binary), and "
                       "plimsoll export --format safetensors --packed writes those as bits");
    if (q->layers == 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "the model has no layer that can be done in 8 bits: its matrices are not "
                       "in float32, or are read by something else besides");
    if (q->how->keep < q->layers) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "quantization.keep_f32 is %llu, and the model has %zu layers that can be done in 8 bits: none would "
                   "be; keep fewer",
                   (unsigned long long)q->how->keep, q->layers);
}

static pl_status open_quantize(pl_session *s, void *state, pl_error *err)
{
    pl_quantizing *q = state;
    const pl_graph *g = s->o.plan->graph;
    const size_t sites = count_nodes(g, PL_OP_OBSERVE_EXTREMES), layers = count_nodes(g, PL_OP_LINEAR_INT8);
    q->how = s->settings->own;
    q->site = pl_alloc(sites + 1, sizeof *q->site);
    q->layer = pl_alloc(layers + 1, sizeof *q->layer);
    q->worst = pl_alloc(layers + 1, sizeof *q->worst);
    q->entry = pl_alloc(g->value_count + 1, sizeof *q->entry);
    q->writer = pl_alloc(1, sizeof *q->writer);
    q->scratch = pl_alloc(PL_SPAN_SCRATCH, sizeof *q->scratch);
    if (!q->site || !q->layer || !q->worst || !q->entry || !q->writer || !q->scratch)
        return pl_fail(err, PL_E_NOMEM, "no memory for the list of layers");
    find_all(s, q);
    q->rows = pl_session_value(s, STAGING);
    PL_TRY(check_layers(g, q, err));
    if (!is_evaluated(s)) pl_quantize_open_outputs(s, q);
    PL_TRY(check_tensors(s, q, err));
    const pl_job *job = s->jobs.job[0];
    return pl_session_find_program(s, job->program[job->repeated], &q->program, err);
}

static void close_quantize(pl_session *s, void *state)
{
    pl_quantizing *q = state;
    (void)s;
    pl_free(q->site);
    pl_free(q->layer);
    pl_free(q->worst);
    pl_free(q->entry);
    pl_free(q->writer);
    pl_free(q->scratch);
}

static uint64_t layer_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    uint64_t most = 0;
    (void)r, (void)data;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_linear_int8_args *a = &g->node[i].linear_int8;
        if (!is_layer(g, &g->node[i])) continue;
        const pl_shape *w = &g->value[a->weight].shape;
        const uint64_t rows = (uint64_t)w->dim[0], width = (uint64_t)w->dim[1];
        const uint64_t bytes = (rows + width) * sizeof(float) + rows * width;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Where outputs are compared. */
static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    const uint64_t most = layer_bytes(g, r, data), outputs = pl_quantize_output_bytes(g);
    return most && outputs > most ? outputs : most;
}

/* ---- the samples ---- */

void pl_quantize_note(pl_session *s, const char *text)
{
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = text, .text_bytes = strlen(text)});
}

static pl_status stop(pl_error *err) { return pl_fail(err, PL_E_STOPPED, "stopped; nothing was written"); }

/* Parts are samples, through all passes. */
static pl_status run_program(pl_session *s, pl_quantizing *q, pl_error *err)
{
    const pl_calibration_work *work = &s->o.data->calibration;
    if (pl_session_should_stop(s)) return stop(err);
    s->part = q->done, s->parts = work->samples * work->passes;
    PL_TRY(pl_session_run_program(s, q->program, false, err));
    s->part = ++q->done;
    return PL_OK;
}

static pl_status pass(pl_session *s, pl_quantizing *q, const char *what, pl_error *err)
{
    const uint64_t samples = s->o.data->calibration.samples;
    pl_quantize_note(s, what);
    pl_ring_begin(s->ring, PL_PART_TRAIN, 0, samples);
    for (uint64_t i = 0; i < samples; i++) PL_TRY(run_program(s, q, err));
    return PL_OK;
}

static void forget(pl_quantizing *q)
{
    for (size_t i = 0; i < q->sites; i++) {
        *q->site[i].seen = (pl_extremes){0};
        if (q->site[i].bin) memset(q->site[i].bin, 0, PL_SPREAD_BINS * sizeof *q->site[i].bin);
    }
    for (size_t i = 0; i < q->layers; i++) {
        q->layer[i].difference[0] = q->layer[i].difference[1] = 0;
        *q->layer[i].taken = 0;
    }
}

static pl_status check_seen(const pl_quantizing *q, pl_error *err)
{
    for (size_t i = 0; i < q->sites; i++)
        if (q->site[i].seen->not_finite > 0)
            return pl_fail(err, PL_E_DATA,
                           "%s: %.0f numbers that come to it are infinite or NaN; look at the weights, or at the "
                           "samples of the calibration",
                           q->site[i].name, (double)q->site[i].seen->not_finite);
    return PL_OK;
}

/* ---- ranges and weights ---- */

static void make_ranges(pl_quantizing *q)
{
    for (size_t i = 0; i < q->sites; i++) {
        pl_quantize_site *of = &q->site[i];
        const pl_span span = pl_span_of(q->how->method, q->how->percentile, of->seen, of->bin, q->scratch);
        of->range[0] = span.least, of->range[1] = span.largest;
        of->clipped = span.clipped;
        for (int k = 0; of->bin && k < PL_SPREAD_BINS; k++) of->count += (uint64_t)of->bin[k];
    }
}

static void pack_layer(const pl_quantizing *q, const pl_quantize_layer *l)
{
    float *scale = (float *)(void *)q->rows, *row = scale + l->rows;
    int8_t *rows = (int8_t *)(row + l->width);
    for (int64_t i = 0; i < l->rows; i++) {
        for (int64_t k = 0; k < l->width; k++) row[k] = pl_real_get(l->real, l->weight, i * l->width + k);
        scale[i] = pl_int8_quantize_channel(l->width, row, rows + i * l->width);
    }
    pl_int8_pack(l->rows, l->width, rows, l->width, scale, l->packed);
}

/* What is not finite is so in f32 already, or too large for the sums of 8 bits: no file is made of that. */
static pl_status check_compared(const pl_quantizing *q, pl_error *err)
{
    for (size_t i = 0; i < q->layers; i++)
        if (!isfinite(q->layer[i].difference[0]) || !isfinite(q->layer[i].difference[1]))
            return pl_fail(err, PL_E_DATA,
                           "%s: what it gives out, in f32 or in 8 bits, is not finite; look at the weights",
                           q->layer[i].name);
    return PL_OK;
}

/* Of what comes out, by its size: 0 where nothing does. */
double pl_quantize_loss(const pl_quantize_layer *l)
{
    return l->difference[1] > 0 ? sqrt(l->difference[0] / l->difference[1]) : 0;
}

static void order(pl_quantizing *q)
{
    for (size_t i = 0; i < q->layers; i++) {
        size_t at = i;
        for (; at > 0 && pl_quantize_loss(q->worst[at - 1]) < pl_quantize_loss(&q->layer[i]); at--)
            q->worst[at] = q->worst[at - 1];
        q->worst[at] = &q->layer[i];
    }
    for (size_t i = 0; i < q->layers && i < q->how->keep; i++) q->worst[i]->kept = true;
}

/* ---- the model as a whole ---- */

/* Does the model have those layers in 8 bits? */
static void take(pl_session *s, pl_quantizing *q, bool narrow)
{
    pl_session_set_integer(s, PL_INPUT_COMPARING, narrow);
    for (size_t i = 0; i < q->layers; i++) *q->layer[i].taken = narrow && !q->layer[i].kept;
}

static pl_status evaluate(pl_session *s, pl_quantizing *q, const char *what, pl_quantize_judged *to, pl_error *err)
{
    pl_quantize_note(s, what);
    q->takes = PL_QUANTIZE_EVALUATED;
    const pl_status status = pl_evaluate(s, 0, &to->loss, &to->items, err);
    q->takes = PL_QUANTIZE_NOTHING;
    if (status == PL_E_STOPPED) return stop(err);
    if (status == PL_OK) to->metrics = pl_session_find_metrics(s, to->loss, to->metric);
    return status;
}

static pl_status evaluate_both(pl_session *s, pl_quantizing *q, pl_error *err)
{
    if (!pl_data_has(s->o.data, PL_PART_VALIDATION)) return PL_OK;
    take(s, q, false);
    PL_TRY(evaluate(s, q, "what is held out, in f32", &q->wide, err));
    take(s, q, true);
    PL_TRY(evaluate(s, q, "what is held out, in 8 bits", &q->narrow, err));
    pl_quantize_tell_judged(s, q);
    return PL_OK;
}

static pl_status run_again(pl_session *s, pl_quantizing *q, uint64_t sample, pl_quantize_takes takes, pl_error *err)
{
    take(s, q, takes == PL_QUANTIZE_NARROW);
    q->takes = takes;
    pl_ring_begin(s->ring, PL_PART_TRAIN, sample, sample + 1);
    const pl_status status = run_program(s, q, err);
    q->takes = PL_QUANTIZE_NOTHING;
    return status;
}

static pl_status compare_outputs(pl_session *s, pl_quantizing *q, pl_error *err)
{
    if (q->outputs == 0) return PL_OK;
    pl_quantize_note(s, "what comes out, in f32 and in 8 bits");
    for (uint64_t i = 0; i < s->o.data->calibration.samples; i++) {
        PL_TRY(run_again(s, q, i, PL_QUANTIZE_WIDE, err));
        PL_TRY(run_again(s, q, i, PL_QUANTIZE_NARROW, err));
    }
    PL_TRY(pl_quantize_check_outputs(q, err));
    pl_quantize_tell_outputs(s, q);
    return PL_OK;
}

/* By what is held out, where the system evaluates; else by what comes out. */
static pl_status judge(pl_session *s, pl_quantizing *q, pl_error *err)
{
    return is_evaluated(s) ? evaluate_both(s, q, err) : compare_outputs(s, q, err);
}

/* ---- the work ---- */

static pl_status look(pl_session *s, pl_quantizing *q, pl_error *err)
{
    forget(q);
    pl_session_set_integer(s, PL_INPUT_COUNTING, 0);
    pl_session_set_integer(s, PL_INPUT_COMPARING, 0);
    PL_TRY(pass(s, q, "how large is what comes to each layer", err));
    PL_TRY(check_seen(q, err));
    pl_session_set_integer(s, PL_INPUT_COUNTING, 1);
    if (q->how->method != PL_SPAN_MINMAX) PL_TRY(pass(s, q, "how it is spread", err));
    pl_session_set_integer(s, PL_INPUT_COUNTING, 0);
    return PL_OK;
}

static pl_status quantize(pl_session *s, pl_quantizing *q, pl_error *err)
{
    PL_TRY(look(s, q, err));
    make_ranges(q);
    pl_quantize_warn_of_ranges(s, q);
    for (size_t i = 0; i < q->layers; i++) pack_layer(q, &q->layer[i]);
    pl_session_set_integer(s, PL_INPUT_COMPARING, 1);
    PL_TRY(pass(s, q, "each layer in 8 bits beside itself", err));
    PL_TRY(check_compared(q, err));
    order(q);
    pl_quantize_tell(s, q);
    PL_TRY(judge(s, q, err));
    return write_file(s, q, err);
}

static pl_status run_quantize(pl_session *s, void *state, pl_error *err)
{
    pl_quantizing *q = state;
    if (s->o.data->has_less) pl_session_warn(s, s->o.data->said);
    PL_TRY(try_place(s, q, err));
    const pl_status status = quantize(s, q, err);
    if (status == PL_OK)
        pl_quantize_tell_file(s, q);
    else if (q->was_there)
        pl_error_append(err, "; %.400s is what was there before", q->how->path);
    if (status == PL_E_STOPPED) pl_quantize_note(s, err->text); /* who asked for it hears no complaint */
    return status;
}

/* What the program gives out is wanted where the model is judged. */
static pl_status store(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    pl_quantizing *q = state;
    if (q->takes == PL_QUANTIZE_EVALUATED)
        return pl_job_evaluate.store(s, pl_session_job_state(s, &pl_job_evaluate), call, err);
    if (q->takes != PL_QUANTIZE_NOTHING) pl_quantize_take_outputs(s, q, call);
    return PL_OK;
}

static double count_runs(const pl_data *data, uint32_t micro_batch, size_t k)
{
    (void)micro_batch;
    return k == 0 ? 1 : (double)data->calibration.samples * (double)data->calibration.passes;
}

#define QUANTIZE(bytes)                                                                                                \
    .staging = STAGING, .staging_bytes = bytes, .state_bytes = sizeof(pl_quantizing), .open = open_quantize,           \
    .close = close_quantize, .run = run_quantize, .store = store

/* First values where there is no file of weights: no encoder is trained. */
const pl_job pl_job_quantize_encode = {
    .program = {"init", "encode"}, .repeated = 1, .count_runs = count_runs, QUANTIZE(staging_bytes)};
/* Of either, on the user's files. */
const pl_job pl_job_quantize_infer = {
    .program = {"init", PL_INFER_PROGRAM}, .repeated = 1, .count_runs = count_runs, QUANTIZE(staging_bytes)};
/* Of what was trained. */
const pl_job pl_job_quantize_evaluate = {.program = {"evaluate"}, QUANTIZE(layer_bytes)};

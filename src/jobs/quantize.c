/* A model in 8 bits (MODELS.md 2.13): the samples of a calibration go through its program. First it is seen
 * how large what comes to each layer is, then how it is spread, where the method asks for that; then ranges and packed
 * weights are made, and with them each layer is done once more in 8 bits beside itself, which tells what that costs it.
 * The layers that lose most may stay in f32. The file that comes out has the model's weights, packed where they are in
 * 8 bits, and a range for each site (rewrite/observe.c): whoever is given it does those layers so. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/quantize.h"
#include "base/size.h"
#include "ir/op.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"
#include "store/weights.h"

#define STAGING "quantize.rows"
enum { SHOWN = 300 };

typedef struct site {
    const char *name;
    pl_extremes *seen;
    int64_t *bin;
    float *range;
    pl_id range_root;
    uint64_t clipped, count; /* numbers outside of the range, of all that came */
    bool used;               /* by a layer that is in 8 bits */
} site;

typedef struct layer {
    const char *name;
    const float *weight;
    void *packed;
    int64_t rows, width;
    const double *difference; /* Σ (y − y8)², Σ y² */
    pl_id packed_root, weight_root;
    bool kept; /* in f32 */
} layer;

typedef struct quantizing {
    const pl_quantize_settings *how;
    pl_id program;
    site *site;
    layer *layer;
    layer **worst; /* the largest difference first */
    pl_st_entry *entry;
    pl_st_writer *writer;
    double *scratch;
    size_t sites, layers;
    char *rows; /* of the widest layer: 8 bits a number, and the scales */
} quantizing;

enum { INIT, PROGRAM };

/* ---- what there is ---- */

static void *beside(const pl_session *s, const char *name, size_t bytes, const char *end)
{
    char whole[PL_ST_TEXT_MAX];
    snprintf(whole, sizeof whole, "%.*s%s", (int)bytes, name, end);
    return pl_session_value(s, whole);
}

static void add_site(pl_session *s, quantizing *q, const pl_node *n)
{
    static const char end[] = ".extremes";
    const pl_graph *g = s->o.plan->graph;
    const char *name = g->value[pl_value_root(g, n->in[1])].name;
    const size_t bytes = strlen(name) - (sizeof end - 1);
    char range[PL_ST_TEXT_MAX];
    snprintf(range, sizeof range, "%.*s", (int)bytes, name);
    q->site[q->sites++] = (site){.name = name,
                                 .seen = pl_session_value(s, name),
                                 .bin = beside(s, name, bytes, ".bins"),
                                 .range = pl_session_value(s, range),
                                 .range_root = pl_graph_find_value(g, range)};
}

static void add_layer(pl_session *s, quantizing *q, const pl_node *n)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_id root = pl_value_root(g, n->in[1]);
    const char *name = g->value[root].name;
    const size_t bytes = strlen(name) - strlen(PL_INT8_PACKED);
    char whole[PL_ST_TEXT_MAX];
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].packed_root == root) return;
    snprintf(whole, sizeof whole, "%.*s", (int)bytes, name);
    const pl_id weight = pl_graph_find_value(g, whole);
    if (weight == PL_NONE) return;
    q->layer[q->layers++] = (layer){.name = g->value[weight].name,
                                    .weight = pl_session_address(s, weight),
                                    .packed = pl_session_address(s, root),
                                    .rows = n->attr[0].i,
                                    .width = pl_shape_last(&g->value[n->in[0]].shape),
                                    .difference = beside(s, name, bytes, ".difference"),
                                    .packed_root = root,
                                    .weight_root = weight};
}

static bool is_layer(const pl_graph *g, const pl_node *n)
{
    return n->op == PL_OP_LINEAR_INT8 && pl_ends_with(g->value[pl_value_root(g, n->in[1])].name, PL_INT8_PACKED);
}

static size_t count_nodes(const pl_graph *g, pl_op op)
{
    size_t count = 0;
    for (size_t i = 0; i < g->node_count; i++) count += g->node[i].op == op;
    return count;
}

static void find_all(pl_session *s, quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].op == PL_OP_OBSERVE_EXTREMES) add_site(s, q, &g->node[i]);
        if (is_layer(g, &g->node[i])) add_layer(s, q, &g->node[i]);
    }
}

/* ---- the file ---- */

static const layer *layer_of_weight(const quantizing *q, pl_id root)
{
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].weight_root == root) return &q->layer[i];
    return NULL;
}

static bool is_in_8_bits(const quantizing *q, pl_id packed_root)
{
    for (size_t i = 0; i < q->layers; i++)
        if (q->layer[i].packed_root == packed_root) return !q->layer[i].kept;
    return false;
}

static const site *site_of_range(const quantizing *q, pl_id root)
{
    for (size_t k = 0; k < q->sites; k++)
        if (q->site[k].range_root == root) return &q->site[k];
    return NULL;
}

static void mark_sites(const pl_session *s, quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!is_layer(g, n) || !is_in_8_bits(q, pl_value_root(g, n->in[1]))) continue;
        for (size_t k = 0; k < q->sites; k++) q->site[k].used |= q->site[k].range_root == pl_value_root(g, n->in[2]);
    }
}

/* Weights as they are, packed ones in the place of theirs, and the ranges of sites that need them. */
static bool is_written(const pl_graph *g, const quantizing *q, pl_id id)
{
    const layer *l = layer_of_weight(q, id);
    const site *of = site_of_range(q, id);
    if (pl_session_keeps(g, id) == PL_KEPT_WITH_MODEL) return !l || l->kept;
    return of ? of->used : is_in_8_bits(q, id);
}

/* everything: whatever may come to be written. */
static pl_status list_tensors(const pl_session *s, quantizing *q, bool everything, pl_st_list *list, pl_error *err)
{
    static const pl_st_text text[] = {{"format", PL_WEIGHTS_FORMAT}};
    const pl_graph *g = s->o.plan->graph;
    *list = (pl_st_list){.entries = q->entry, .metadata = text, .metadata_count = 1};
    for (size_t i = 0; i < g->value_count; i++) {
        const bool may = everything && (layer_of_weight(q, (pl_id)i) || site_of_range(q, (pl_id)i));
        if (may || is_written(g, q, (pl_id)i))
            PL_TRY(pl_session_fill_entry(g, s->program, (pl_id)i, &q->entry[list->count++], err));
    }
    return PL_OK;
}

/* While memory may be asked for: a part of a list that is right is right. */
static pl_status check_tensors(const pl_session *s, quantizing *q, pl_error *err)
{
    pl_st_list list;
    PL_TRY(list_tensors(s, q, true, &list, err));
    return pl_safetensors_check(&list, err);
}

/* Before anything is done: can the file be made where it is to be? */
static pl_status try_place(const pl_session *s, quantizing *q, pl_error *err)
{
    if (q->how->in_folder) PL_TRY(pl_folder_create(s->settings->out, err));
    PL_TRY(pl_file_create(&q->writer->file, q->how->path, err));
    pl_file_abandon(&q->writer->file);
    return PL_OK;
}

static pl_status write(const pl_session *s, quantizing *q, pl_error *err)
{
    pl_st_list list;
    mark_sites(s, q);
    PL_TRY(list_tensors(s, q, false, &list, err));
    return pl_safetensors_write(q->writer, q->how->path, &list, NULL, err);
}

/* ---- opening ---- */

static pl_status open_quantize(pl_session *s, void *state, pl_error *err)
{
    quantizing *q = state;
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
    if (q->layers == 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "the model has no layer that can be done in 8 bits: its matrices are not "
                       "in float32, or are read by something else besides");
    PL_TRY(check_tensors(s, q, err));
    return pl_session_find_program(s, pl_job_quantize_encode.program[PROGRAM], &q->program, err);
}

static void close_quantize(pl_session *s, void *state)
{
    quantizing *q = state;
    (void)s;
    pl_free(q->site);
    pl_free(q->layer);
    pl_free(q->worst);
    pl_free(q->entry);
    pl_free(q->writer);
    pl_free(q->scratch);
}

static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    uint64_t most = 0;
    (void)r, (void)data;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (!is_layer(g, n)) continue;
        const uint64_t rows = (uint64_t)n->attr[0].i, width = (uint64_t)pl_shape_last(&g->value[n->in[0]].shape);
        const uint64_t bytes = rows * sizeof(float) + rows * width;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* ---- the samples ---- */

static void tell_stop(pl_session *s)
{
    static const char text[] = "stopped; nothing was written";
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = text, .text_bytes = sizeof text - 1});
}

static pl_status pass(pl_session *s, const quantizing *q, const char *what, pl_error *err)
{
    const uint64_t samples = s->o.data->source->steps_per_epoch[PL_PART_TRAIN];
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = what, .text_bytes = strlen(what)});
    pl_ring_begin(s->ring, PL_PART_TRAIN, 0, samples);
    s->part = 0;
    s->parts = samples;
    for (uint64_t i = 0; i < samples; i++) {
        if (pl_session_should_stop(s)) return tell_stop(s), pl_fail(err, PL_E_STOPPED, "nothing was written");
        PL_TRY(pl_session_run_program(s, q->program, false, err));
        s->part++;
    }
    return PL_OK;
}

static void forget(quantizing *q)
{
    for (size_t i = 0; i < q->sites; i++) {
        *q->site[i].seen = (pl_extremes){0};
        memset(q->site[i].bin, 0, PL_SPREAD_BINS * sizeof *q->site[i].bin);
    }
    for (size_t i = 0; i < q->layers; i++) memset((void *)(uintptr_t)q->layer[i].difference, 0, 2 * sizeof(double));
}

static pl_status check_seen(const quantizing *q, pl_error *err)
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

static void make_ranges(quantizing *q)
{
    for (size_t i = 0; i < q->sites; i++) {
        site *of = &q->site[i];
        const pl_span span = pl_span_of(q->how->method, q->how->percentile, of->seen, of->bin, q->scratch);
        of->range[0] = span.least, of->range[1] = span.largest;
        of->clipped = span.clipped;
        for (int k = 0; k < PL_SPREAD_BINS; k++) of->count += (uint64_t)of->bin[k];
    }
}

static void pack_layer(const quantizing *q, const layer *l)
{
    float *scale = (float *)(void *)q->rows;
    int8_t *rows = (int8_t *)(q->rows + (size_t)l->rows * sizeof *scale);
    for (int64_t i = 0; i < l->rows; i++)
        scale[i] = pl_int8_quantize_channel(l->width, l->weight + i * l->width, rows + i * l->width);
    pl_int8_pack(l->rows, l->width, rows, l->width, scale, l->packed);
}

/* Of what comes out, by its size: 0 where nothing does. */
static double loss_of(const layer *l) { return l->difference[1] > 0 ? sqrt(l->difference[0] / l->difference[1]) : 0; }

static void order(quantizing *q)
{
    for (size_t i = 0; i < q->layers; i++) {
        size_t at = i;
        for (; at > 0 && loss_of(q->worst[at - 1]) < loss_of(&q->layer[i]); at--) q->worst[at] = q->worst[at - 1];
        q->worst[at] = &q->layer[i];
    }
    for (size_t i = 0; i < q->layers && i < q->how->keep; i++) q->worst[i]->kept = true;
}

/* ---- what is told ---- */

static void tell(pl_session *s, const char *text, int bytes, size_t room)
{
    if (bytes < 0) return;
    const size_t length = (size_t)bytes < room ? (size_t)bytes : room - 1;
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_NOTE, .text = text, .text_bytes = length});
}

/* Without ".weight", which all have, and which would make lines too long; and without what a state's name ends with. */
static const char *shown(const char *name, const char *end, char text[SHOWN])
{
    static const char weight[] = ".weight";
    const size_t bytes = strlen(name) - (pl_ends_with(name, end) ? strlen(end) : 0);
    const char *at = strstr(name, weight);
    const size_t before = at ? (size_t)(at - name) : bytes, after = at ? before + sizeof weight - 1 : bytes;
    snprintf(text, SHOWN, "%.*s%.*s", (int)before, name, (int)(bytes - after), name + after);
    return text;
}

/* Two tables: what 8 bits cost each layer, the worst first, and the range of what comes to each site. */
static void tell_layers(pl_session *s, const quantizing *q)
{
    char text[400], name[SHOWN];
    tell(s, text, snprintf(text, sizeof text, "%-48s %11s  %8s", "layer", "shape", "error"), sizeof text);
    for (size_t i = 0; i < q->layers; i++) {
        const layer *l = q->worst[i];
        char shape[48];
        snprintf(shape, sizeof shape, "%lld x %lld", (long long)l->rows, (long long)l->width);
        tell(s, text,
             snprintf(text, sizeof text, "%-48s %11s  %6.3f %%%s", shown(l->name, "", name), shape, 100 * loss_of(l),
                      l->kept ? "  stays in f32" : ""),
             sizeof text);
    }
}

static void tell_sites(pl_session *s, const quantizing *q)
{
    static const char end[] = ".extremes";
    char text[400], name[SHOWN];
    tell(s, text, snprintf(text, sizeof text, "%-48s %9s %9s  %9s", "what comes to it", "least", "largest", "beyond"),
         sizeof text);
    for (size_t i = 0; i < q->sites; i++) {
        const site *of = &q->site[i];
        const double share = of->count ? 100 * (double)of->clipped / (double)of->count : 0;
        tell(s, text,
             snprintf(text, sizeof text, "%-48s %9.4g %9.4g  %7.4f %%", shown(of->name, end, name),
                      (double)of->range[0], (double)of->range[1], share),
             sizeof text);
    }
}

static void tell_file(pl_session *s, const quantizing *q)
{
    char text[PL_FILE_PATH_MAX + 100];
    size_t kept = 0;
    for (size_t i = 0; i < q->layers; i++) kept += q->layer[i].kept;
    tell(s, text,
         snprintf(text, sizeof text, "%s: %zu layers in 8 bits, %zu in f32", q->how->path, q->layers - kept, kept),
         sizeof text);
}

/* ---- the work ---- */

static pl_status run_quantize(pl_session *s, void *state, pl_error *err)
{
    quantizing *q = state;
    if (s->o.data->has_less)
        pl_session_tell(
            s, (pl_event){.kind = PL_EVENT_WARNING, .text = s->o.data->said, .text_bytes = strlen(s->o.data->said)});
    PL_TRY(try_place(s, q, err));
    forget(q);
    pl_session_set_integer(s, PL_INPUT_COUNTING, 0);
    pl_session_set_integer(s, PL_INPUT_COMPARING, 0);
    PL_TRY(pass(s, q, "how large is what comes to each layer", err));
    PL_TRY(check_seen(q, err));
    pl_session_set_integer(s, PL_INPUT_COUNTING, 1);
    if (q->how->method != PL_SPAN_MINMAX) PL_TRY(pass(s, q, "how it is spread", err));
    pl_session_set_integer(s, PL_INPUT_COUNTING, 0);
    make_ranges(q);
    for (size_t i = 0; i < q->layers; i++) pack_layer(q, &q->layer[i]);
    pl_session_set_integer(s, PL_INPUT_COMPARING, 1);
    PL_TRY(pass(s, q, "each layer in 8 bits beside itself", err));
    order(q);
    tell_layers(s, q);
    tell_sites(s, q);
    PL_TRY(write(s, q, err));
    tell_file(s, q);
    return PL_OK;
}

/* What the program gives out otherwise is not wanted. */
static pl_status leave(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    (void)s, (void)state, (void)call, (void)err;
    return PL_OK;
}

static double count_runs(const pl_data *data, uint32_t micro_batch, size_t k)
{
    (void)micro_batch;
    return k == INIT ? 1 : 3 * (double)data->source->steps_per_epoch[PL_PART_TRAIN];
}

const pl_job pl_job_quantize_encode = {.program = {[INIT] = "init", [PROGRAM] = "encode"},
                                       .repeated = PROGRAM,
                                       .count_runs = count_runs,
                                       .staging = STAGING,
                                       .staging_bytes = staging_bytes,
                                       .state_bytes = sizeof(quantizing),
                                       .open = open_quantize,
                                       .close = close_quantize,
                                       .run = run_quantize,
                                       .store = leave};

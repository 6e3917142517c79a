#include "jobs/rollout_witness.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/activation.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/remove.h"
#include "jobs/witness.h"
#include "run/session_impl.h"
#include "store/npy.h"

enum { FIELD, STATES, NOISE, METRICS, DROPOUT, PARAMETERS };
_Static_assert((int)PARAMETERS == (int)PL_WITNESS_FILES, "arrays come first");
static const char *const names[] = {"field.npy",   "states.npy",      "noise.npy", "metrics.npy",
                                    "dropout.npy", "parameters.json", NULL};
static const char by[] = "plimsoll rollout --witness"; /* in the weights, which come first */

/* ---- parameters ---- */

static void write_shape(const pl_witness *w, pl_json *j)
{
    static const char *const numbers[] = {"num_layers", "base_channels", "kernel_size", "grid_size"}, *const norms[] = {
                                                                                                          "instance",
                                                                                                          "group",
                                                                                                          "batch"};
    const pl_facts *e = &w->d->data.extents;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        pl_json_kv_uint(j, numbers[i], pl_facts_value(e, numbers[i], 0));
    pl_json_kv_string(j, "activation", pl_activation_name((pl_activation)pl_facts_value(e, "activation", 0)));
    pl_json_kv_string(j, "normalization", norms[pl_facts_value(e, "normalization", 0)]);
    pl_json_kv_string(j, "precision", pl_dtype_name((pl_dtype)pl_facts_value(e, "precision", 0)));
}

static void write_features(const pl_witness *w, pl_json *j)
{
#define FEATURE_WORD(c, word) word,
    static const char *const words[] = {PL_OPERATOR_FEATURE_COLUMNS(FEATURE_WORD)};
    if (!w->d->setup.features) return;
    pl_json_key(j, "features");
    pl_json_object(j);
    for (int k = 0; k < PL_OPERATOR_FEATURES; k++) pl_json_kv_double(j, words[k], w->feature[k]);
    pl_json_object_end(j);
}

static pl_status write_parameters(const pl_witness *w, const char *path, pl_error *err)
{
#define COLUMN_NAME(c, word) word,
    static const char *const noises[] = {PL_NOISE_KINDS(COLUMN_NAME)},
                             *const schedules[] = {PL_NOISE_SCHEDULES(COLUMN_NAME)},
                             *const policies[] = {PL_UPDATE_POLICIES(COLUMN_NAME)},
                             *const posts[] = {PL_POST_PROCESSES(COLUMN_NAME)};
    float row[PL_ROLLOUT_COLUMNS];
    pl_str text = {0};
    pl_json j = pl_json_begin(&text, false);
    pl_rollout_fill_row(w->d, w->operator, row);
    pl_json_object(&j);
    pl_json_kv_string(&j, "arch", w->d->setup.arch);
    pl_json_kv_uint(&j, "operator", w->operator);
    write_shape(w, &j);
    pl_json_kv_string(&j, "noise_type", noises[(int)row[PL_ROLLOUT_NOISE_KIND]]);
    pl_json_kv_double(&j, "noise_scale", row[PL_ROLLOUT_NOISE_SCALE]);
    pl_json_kv_string(&j, "noise_schedule", schedules[(int)row[PL_ROLLOUT_NOISE_SCHEDULE]]);
    pl_json_kv_double(&j, "spatial_correlation", row[PL_ROLLOUT_NOISE_CORRELATION]);
    pl_json_kv_string(&j, "update_policy", policies[(int)row[PL_ROLLOUT_POLICY]]);
    pl_json_kv_double(&j, "dt", row[PL_ROLLOUT_DT]);
    pl_json_kv_double(&j, "alpha", row[PL_ROLLOUT_ALPHA]);
    pl_json_kv_string(&j, "post_process", posts[(int)row[PL_ROLLOUT_POST_PROCESS]]);
    pl_json_kv_double(&j, "clamp_low", row[PL_ROLLOUT_CLAMP_LOW]);
    pl_json_kv_double(&j, "clamp_high", row[PL_ROLLOUT_CLAMP_HIGH]);
    pl_json_kv_double(&j, "dropout_rate", row[PL_ROLLOUT_DROPOUT_RATE]);
    pl_json_kv_uint(&j, "seed", w->d->setup.seed);
    write_features(w, &j);
    pl_json_object_end(&j);
    pl_str_append(&text, "\n");
    pl_status status = text.failed ? pl_fail(err, PL_E_NOMEM, "no memory for the parameters")
                                   : pl_file_write_all(path, pl_str_text(&text), text.bytes, err);
    pl_str_deinit(&text);
    return status;
}

/* ---- arrays ---- */

static uint32_t shape_of(const pl_witness *w, int file, uint64_t shape[4])
{
    const uint64_t grid = w->d->grid, channels = file == NOISE ? w->noise_channels : PL_ROLLOUT_FIELD_CHANNELS;
    if (file == METRICS) return shape[0] = w->steps + 1, shape[1] = PL_FIELD_METRICS, 2;
    if (file == DROPOUT) return shape[0] = w->steps, shape[1] = w->dropout_channels, 2;
    if (file == FIELD) return shape[0] = channels, shape[1] = shape[2] = grid, 3;
    return shape[0] = w->steps, shape[1] = channels, shape[2] = shape[3] = grid, 4;
}

static pl_status open_array(pl_witness *w, int file, const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], header[PL_NPY_HEADER_MAX];
    uint64_t shape[4];
    const uint32_t rank = shape_of(w, file, shape);
    PL_TRY(pl_path_join(path, sizeof path, folder, names[file], err));
    PL_TRY(pl_file_create(&w->file[file], path, err));
    w->open++;
    return pl_file_write(&w->file[file], header, pl_npy_header(PL_DTYPE_F32, 0, rank, shape, header), err);
}

/* Channels of the value that the noise is added to: the last port that "step" stores. */
static uint64_t find_channels(const pl_graph *g)
{
    const pl_id step = pl_graph_find_program(g, "step");
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op == PL_OP_STORE && pl_region_program(g, n->region) == step && n->store.port[3] != PL_NONE)
            return (uint64_t)pl_shape_last(&g->value[n->store.port[3]].shape);
    }
    return 0;
}

/* ---- dropout ---- */

/* The nodes of "step" that drop channels, in their order; *at: where to look on. NULL: no more. */
static const pl_node *next_dropout(const pl_graph *g, size_t *at)
{
    const pl_id step = pl_graph_find_program(g, "step");
    while (*at < g->node_count) {
        const pl_node *n = &g->node[(*at)++];
        if (n->op == PL_OP_NOISE && n->noise.dropout && !n->dead && pl_region_program(g, n->region) == step) return n;
    }
    return NULL;
}

static uint64_t count_dropout(const pl_graph *g)
{
    uint64_t channels = 0;
    const pl_node *n;
    for (size_t at = 0; (n = next_dropout(g, &at));) channels += (uint64_t)pl_shape_last(&g->value[n->noise.x].shape);
    return channels;
}

/* What each channel was multiplied with in step t, as kernels/rollout.h defines it. */
static pl_status put_dropout(pl_witness *w, uint64_t t, pl_error *err)
{
    const pl_graph *g = w->s->o.plan->graph;
    float row[PL_ROLLOUT_COLUMNS];
    const pl_node *n;
    pl_rollout_fill_row(w->d, w->operator, row);
    const float rate = row[PL_ROLLOUT_DROPOUT_RATE];
    for (size_t at = 0; (n = next_dropout(g, &at));) {
        const int64_t channels = pl_shape_last(&g->value[n->noise.x].shape);
        const pl_philox p = pl_philox_init((uint64_t)n->noise.seed, (uint64_t)n->noise.stream);
        for (int64_t c = 0; c < channels; c++) {
            uint32_t bits[4];
            pl_philox_block(&p, (uint32_t)t, (uint64_t)w->operator<< 32, (uint32_t)(c / 4), bits);
            const float factor = pl_uniform_f32(bits[c % 4]) < rate ? 0 : 1 / (1 - rate);
            PL_TRY(pl_file_write(&w->file[DROPOUT], &factor, sizeof factor, err));
        }
    }
    return PL_OK;
}

pl_status pl_witness_open(pl_witness *w, pl_session *s, uint32_t number, uint64_t steps, const char *folder,
                          pl_error *err)
{
    memset(w, 0, sizeof *w); /* 40 kB: too much for a literal, which not every compiler builds in place */
    w->s = s;
    w->d = pl_rollout_data_of(s->o.data);
    w->operator= number;
    w->folder = folder;
    w->steps = steps;
    w->noise_channels = find_channels(s->o.plan->graph);
    w->dropout_channels = count_dropout(s->o.plan->graph);
    if (!w->noise_channels) return pl_fail(err, PL_E_DATA, "the plan was not made for a witness; plan again");
    const uint64_t channels =
        w->noise_channels > PL_ROLLOUT_FIELD_CHANNELS ? w->noise_channels : PL_ROLLOUT_FIELD_CHANNELS;
    w->scratch = pl_alloc((uint64_t)w->d->grid * w->d->grid * channels, sizeof *w->scratch);
    if (!w->scratch) return pl_fail(err, PL_E_NOMEM, "no memory for what the witness writes");
    PL_TRY(pl_folder_create(folder, err));
    PL_TRY(pl_witness_check_folder(folder, by, names, err));
    const int files = w->dropout_channels ? PL_WITNESS_FILES : PL_WITNESS_FILES - 1;
    for (int k = 0; k < files; k++) PL_TRY(open_array(w, k, folder, err));
    return PL_OK;
}

/* The image b − a by channels; a NULL: b. */
static pl_status put_image(pl_witness *w, int file, const pl_call_port *a, const pl_call_port *b, uint64_t channels,
                           pl_error *err)
{
    const uint64_t pixels = (uint64_t)w->d->grid * w->d->grid;
    const pl_real type = b->dtype == PL_DTYPE_F32    ? PL_REAL_F32
                         : b->dtype == PL_DTYPE_BF16 ? PL_REAL_BF16
                                                     : PL_REAL_F16;
    for (uint64_t i = 0; i < pixels; i++)
        for (uint64_t c = 0; c < channels; c++) {
            const int64_t at = (int64_t)(i * channels + c);
            w->scratch[c * pixels + i] = pl_real_get(type, b->at, at) - (a ? pl_real_get(type, a->at, at) : 0);
        }
    return pl_file_write(&w->file[file], w->scratch, pixels * channels * sizeof(float), err);
}

pl_status pl_witness_put(pl_witness *w, uint64_t t, const pl_store_call *call, pl_error *err)
{
    PL_TRY(put_image(w, t ? STATES : FIELD, NULL, &call->port[0], PL_ROLLOUT_FIELD_CHANNELS, err));
    PL_TRY(pl_file_write(&w->file[METRICS], call->port[1].at, PL_FIELD_METRICS * sizeof(float), err));
    if (t && w->dropout_channels) PL_TRY(put_dropout(w, t, err));
    return t ? put_image(w, NOISE, &call->port[2], &call->port[3], w->noise_channels, err) : PL_OK;
}

static pl_status remove_one(const pl_witness *w, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, w->folder, name, err));
    return pl_remove_file(path, err);
}

/* Wherever this is cut off: with parameters.json all files are of one witness. */
static pl_status complete_all(pl_witness *w, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(remove_one(w, names[PARAMETERS], path, err));
    PL_TRY(remove_one(w, names[DROPOUT], path, err)); /* this one may have none */
    PL_TRY(pl_path_join(path, sizeof path, w->folder, names[PARAMETERS], err));
    PL_TRY(pl_witness_write_weights(w->s, w->folder, by, err));
    for (uint32_t k = 0; k < w->open; k++) PL_TRY(pl_file_commit(&w->file[k], err));
    return write_parameters(w, path, err);
}

pl_status pl_witness_close(pl_witness *w, bool complete, pl_error *err)
{
    pl_status status = complete ? complete_all(w, err) : PL_OK;
    for (uint32_t k = 0; k < w->open; k++) pl_file_abandon(&w->file[k]);
    pl_free(w->scratch);
    return status;
}

#include "data/fields/rollout_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/activation.h"
#include "base/alloc.h"
#include "base/size.h"

/* ---- operators ---- */

#define DIMENSION_NAME(c, name, otherwise)  name,
#define DIMENSION_VALUE(c, name, otherwise) otherwise,
static const char *const dimension_names[] = {PL_ROLLOUT_DIMENSIONS(DIMENSION_NAME)};
static const double dimension_values[] = {PL_ROLLOUT_DIMENSIONS(DIMENSION_VALUE)};

double pl_rollout_value(const pl_rollout_data *d, uint32_t number, pl_rollout_dimension dimension)
{
    double value[PL_SPACE_DIMENSIONS];
    if (d->at[dimension] < 0) return dimension_values[dimension];
    pl_space_point(&d->space, number, value, NULL);
    return value[d->at[dimension]];
}

void pl_rollout_fill_row(const pl_rollout_data *d, uint32_t number, float row[PL_ROLLOUT_COLUMNS])
{
    const pl_rollout_setup *o = &d->setup;
    memset(row, 0, PL_ROLLOUT_COLUMNS * sizeof *row);
    row[PL_ROLLOUT_NOISE_KIND] = (float)pl_rollout_value(d, number, PL_DIMENSION_NOISE_TYPE);
    row[PL_ROLLOUT_NOISE_SCALE] = (float)pl_rollout_value(d, number, PL_DIMENSION_NOISE_SCALE);
    row[PL_ROLLOUT_NOISE_SCHEDULE] = (float)pl_rollout_value(d, number, PL_DIMENSION_NOISE_SCHEDULE);
    row[PL_ROLLOUT_NOISE_PERIOD] = (float)o->noise_period;
    row[PL_ROLLOUT_NOISE_STEPS] = (float)o->states;
    row[PL_ROLLOUT_NOISE_CORRELATION] = (float)pl_rollout_value(d, number, PL_DIMENSION_SPATIAL_CORRELATION);
    row[PL_ROLLOUT_POLICY] = (float)pl_rollout_value(d, number, PL_DIMENSION_UPDATE_POLICY);
    row[PL_ROLLOUT_DT] = (float)o->dt;
    row[PL_ROLLOUT_ALPHA] = (float)o->alpha;
    row[PL_ROLLOUT_POST_PROCESS] = (float)o->post;
    row[PL_ROLLOUT_CLAMP_LOW] = (float)o->clamp_low;
    row[PL_ROLLOUT_CLAMP_HIGH] = (float)o->clamp_high;
    if (o->drops) row[PL_ROLLOUT_DROPOUT_RATE] = (float)pl_rollout_value(d, number, PL_DIMENSION_DROPOUT_RATE);
}

/* ---- the source ---- */

static const pl_rollout_data *data_of(const pl_source *source)
{
    return (const pl_rollout_data *)((const char *)source - offsetof(pl_rollout_data, source));
}

static uint64_t field_elems(const pl_rollout_data *d)
{
    return (uint64_t)d->grid * d->grid * PL_ROLLOUT_FIELD_CHANNELS;
}

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_rollout_data *d = data_of(source);
    uint64_t state;
    if (pl_size_mul(field_elems(d) * sizeof(float), micro_batch, &state))
        return pl_fail(err, PL_E_CONFIG, "%u realisations of a grid of %u at once are absurdly many", micro_batch,
                       d->grid);
    const uint64_t rows = micro_batch * (uint64_t)PL_ROLLOUT_COLUMNS * sizeof(float);
    const uint64_t ids = micro_batch * (uint64_t)PL_ROLLOUT_IDS * sizeof(int64_t);
    *l = (pl_source_layout){.port = {{"state", PL_DTYPE_F32, state, 0, NULL},
                                     {"parameters", PL_DTYPE_F32, rows, 0, NULL},
                                     {"ids", PL_DTYPE_I64, ids, 0, NULL}},
                            .ports = 3,
                            .scratch_bytes = pl_initial_scratch_bytes(&d->setup.initial)};
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch) { (void)source, (void)scratch; }

/* All realisations of an operator begin from one field; only their noise tells them apart. */
static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_rollout_data *d = data_of(source);
    const uint64_t elems = field_elems(d);
    const uint32_t number = d->setup.first + (uint32_t)slot->step;
    float *state = slot->port[0].at, *row = slot->port[1].at;
    int64_t *ids = slot->port[2].at;
    (void)err;
    pl_initial_fill(&d->setup.initial, number, 0, scratch, state);
    for (uint32_t i = 0; i < slot->rows; i++) {
        if (i) memcpy(state + i * elems, state, elems * sizeof *state);
        pl_rollout_fill_row(d, number, row + (size_t)i * PL_ROLLOUT_COLUMNS);
        ids[i * PL_ROLLOUT_IDS + PL_ROLLOUT_OPERATOR] = number;
        ids[i * PL_ROLLOUT_IDS + PL_ROLLOUT_REALISATION] = slot->micro * (int64_t)slot->rows + i;
    }
    slot->counted = slot->rows;
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    (void)part, (void)step;
    return source->batch;
}

static const pl_source_kind fields = {
    .name = "fields", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

/* ---- the layout of the results ---- */

static pl_block_dataset *add_dataset(pl_rollout_data *d, const char *name, pl_dtype dtype, uint32_t kind,
                                     const uint64_t *shape, uint32_t rank)
{
    pl_block_dataset *to = &d->dataset[d->layout.datasets++];
    *to = (pl_block_dataset){.name = name, .dtype = dtype, .rank = rank, .kind = kind};
    memcpy(to->shape, shape, rank * sizeof *shape);
    return to;
}

static void add_states(pl_rollout_data *d)
{
#define METRIC_PATH(c, word) "metrics/" word,
    static const char *const metrics[] = {PL_FIELD_METRIC_COLUMNS(METRIC_PATH)};
    const pl_rollout_setup *o = &d->setup;
    const uint64_t shape[] = {o->count, o->realisations, o->states, PL_ROLLOUT_FIELD_CHANNELS, d->grid, d->grid};
    d->states_at = o->keeps_states ? d->layout.datasets : PL_BLOCK_NO_KIND;
    if (o->keeps_states) add_dataset(d, "outputs/fields", o->state_dtype, PL_ROLLOUT_STATES, shape, 6);
    d->metrics_at = d->layout.datasets;
    for (int k = 0; k < PL_FIELD_METRICS; k++) add_dataset(d, metrics[k], PL_DTYPE_F32, PL_ROLLOUT_STATES, shape, 3);
}

static void add_inputs(pl_rollout_data *d)
{
    const pl_rollout_setup *o = &d->setup;
    d->fields_at = d->layout.datasets;
    add_dataset(d, "inputs/fields", PL_DTYPE_F32, PL_ROLLOUT_FIELDS,
                (uint64_t[]){o->count, PL_ROLLOUT_FIELD_CHANNELS, d->grid, d->grid}, 4);
    add_dataset(d, "parameters/params", PL_DTYPE_F32, PL_ROLLOUT_FIELDS, (uint64_t[]){o->count, d->space.dimensions}, 2)
        ->constant = d->parameters;
}

static void add_features(pl_rollout_data *d)
{
#define FEATURE_NAME(c, word) word,
    static const char names[PL_OPERATOR_FEATURES][24] = {PL_OPERATOR_FEATURE_COLUMNS(FEATURE_NAME)};
    const uint64_t operators = d->setup.count;
    d->features_at = PL_BLOCK_NO_KIND;
    if (!d->setup.features) return;
    d->kind[PL_ROLLOUT_FEATURES] = (pl_block_kind){.name = "features", .axes = 1, .axis = {{"operator", operators, 1}}};
    d->layout.kinds++;
    d->features_at = d->layout.datasets;
    add_dataset(d, "features/operator", PL_DTYPE_F32, PL_ROLLOUT_FEATURES,
                (uint64_t[]){operators, PL_OPERATOR_FEATURES}, 2);
    pl_block_dataset *text = add_dataset(d, "features/names", PL_DTYPE_U8, PL_BLOCK_NO_KIND,
                                         (uint64_t[]){PL_OPERATOR_FEATURES, sizeof *names}, 2);
    text->is_text = true;
    text->constant = names;
}

static pl_status check_states(const pl_rollout_setup *o, pl_error *err)
{
    uint64_t states;
    if (!pl_size_mul(o->count, o->realisations, &states) && !pl_size_mul(states, o->states, &states) &&
        states <= INT64_MAX)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "sampling.total_samples, simulation.num_realizations and simulation.num_timesteps multiply to more "
                   "states than 2^63: %u operators, %u realisations and %u states; take fewer",
                   o->count, o->realisations, o->states);
}

static pl_status make_layout(pl_rollout_data *d, pl_error *err)
{
    const pl_rollout_setup *o = &d->setup;
    PL_TRY(check_states(o, err));
    d->kind[PL_ROLLOUT_STATES] = (pl_block_kind){
        .name = "states",
        .axes = 3,
        .axis = {{"operator", o->count, 1}, {"realisation", o->realisations, 1}, {"state", o->states, o->piece}}};
    d->kind[PL_ROLLOUT_FIELDS] = (pl_block_kind){.name = "fields", .axes = 1, .axis = {{"operator", o->count, 1}}};
    d->layout = (pl_block_layout){.text = o->text,
                                  .kind = d->kind,
                                  .kinds = 2,
                                  .dataset = d->dataset,
                                  .attribute = d->attribute,
                                  .first = o->first,
                                  .whole = o->count < o->operators ? o->operators : 0,
                                  .carry_slots = o->piece < o->states ? o->realisations : 0, /* else none goes on */
                                  .carry_bytes = field_elems(d) * sizeof(float)};
    const pl_block_attribute attributes[] = {{"metadata", "grid_size", NULL, d->grid},
                                             {"metadata", "num_realizations", NULL, o->realisations},
                                             {"metadata", "num_parameter_sets", NULL, o->operators},
                                             {"metadata", "config", o->text, 0}};
    memcpy(d->attribute, attributes, sizeof attributes);
    d->layout.attributes = sizeof attributes / sizeof *attributes;
    add_states(d);
    add_inputs(d);
    add_features(d);
    d->sink = (pl_block_sink){o->path, o->form, &d->layout};
    d->data.sink = &d->sink;
    return pl_block_layout_check(&d->layout, err);
}

/* ---- open ---- */

static void close_data(pl_data *data)
{
    pl_rollout_data *d = pl_rollout_data_of(data);
    pl_free(d->path);
    pl_free(d->text);
    pl_free(d->parameters);
    pl_free(d->group_memory);
    pl_free(d);
}

static pl_status match(const pl_data *data, const pl_facts *saved, const char *path, bool trains, pl_error *err)
{
    (void)data, (void)saved, (void)trains;
    return pl_fail(err, PL_E_CONFIG, "%s: random operators have no checkpoint", path);
}

static pl_status choose(pl_data *data, uint32_t group, pl_error *err)
{
    return pl_rollout_data_choose(pl_rollout_data_of(data), group, err);
}

/* The dimensions that make the operators of a group differ from those of others. */
static const pl_rollout_dimension shape_dimensions[] = {PL_DIMENSION_NUM_LAYERS,    PL_DIMENSION_BASE_CHANNELS,
                                                        PL_DIMENSION_KERNEL_SIZE,   PL_DIMENSION_ACTIVATION,
                                                        PL_DIMENSION_NORMALIZATION, PL_DIMENSION_GRID_SIZE};
enum { SHAPE_DIMENSIONS = sizeof shape_dimensions / sizeof *shape_dimensions };

static void say_value(pl_rollout_dimension dimension, double value, pl_str *out)
{
    static const char *const norms[] = {"instance", "group", "batch"}; /* as pl_rollout_norm */
    if (dimension == PL_DIMENSION_ACTIVATION)
        pl_str_append(out, pl_activation_name((pl_activation)value));
    else if (dimension == PL_DIMENSION_NORMALIZATION)
        pl_str_append(out, norms[(int)value]);
    else
        pl_str_printf(out, "%g", value);
}

/* Or do all operators have the same? */
static bool differs(const pl_rollout_data *d, pl_rollout_dimension dimension)
{
    if (d->at[dimension] < 0) return false;
    const pl_dimension *of = &d->space.dimension[d->at[dimension]];
    return of->type == PL_DIMENSION_CHOICE ? of->choices > 1 : of->type == PL_DIMENSION_BOOLEAN || of->low < of->high;
}

static void say_group(const pl_data *data, pl_str *out)
{
    const pl_rollout_data *d = (const pl_rollout_data *)data;
    const uint32_t number = pl_rollout_operator(d, 0);
    const size_t from = out->bytes;
    for (size_t i = 0; i < SHAPE_DIMENSIONS; i++) {
        if (!differs(d, shape_dimensions[i])) continue;
        pl_str_printf(out, "%s%s ", out->bytes > from ? ", " : "", dimension_names[shape_dimensions[i]]);
        say_value(shape_dimensions[i], pl_rollout_value(d, number, shape_dimensions[i]), out);
    }
}

static const pl_data_kind rollouts = {match, close_data, choose, say_group};

static void find_dimensions(pl_rollout_data *d)
{
    for (int k = 0; k < PL_ROLLOUT_DIMENSION_COUNT; k++) {
        d->at[k] = -1;
        for (uint32_t i = 0; i < d->space.dimensions; i++)
            if (strcmp(d->space.dimension[i].name, dimension_names[k]) == 0) d->at[k] = (int)i;
    }
}

/* Fields of one file are of one size. */
static pl_status find_grid(pl_rollout_data *d, pl_error *err)
{
    d->grid = (uint32_t)pl_rollout_value(d, d->setup.first, PL_DIMENSION_GRID_SIZE);
    d->setup.initial.height = d->setup.initial.width = d->grid;
    d->setup.initial.channels = PL_ROLLOUT_FIELD_CHANNELS;
    return pl_initial_check(&d->setup.initial, err);
}

pl_status pl_rollout_check_grid_sizes(const pl_rollout_data *d, pl_error *err)
{
    for (uint32_t n = 0; n < d->setup.operators; n++)
        if (pl_rollout_value(d, n, PL_DIMENSION_GRID_SIZE) != d->grid)
            return pl_fail(err, PL_E_CONFIG,
                           "parameter_space.operator.grid_size: fields of %u and of %g pixels do not fit one file of "
                           "results; take one size, and a config for each",
                           d->grid, pl_rollout_value(d, n, PL_DIMENSION_GRID_SIZE));
    return PL_OK;
}

static pl_status make_parameters(pl_rollout_data *d, pl_error *err)
{
    const uint32_t count = d->space.dimensions;
    d->parameters = pl_alloc((uint64_t)d->setup.count * count, sizeof *d->parameters);
    if (!d->parameters) return pl_fail(err, PL_E_NOMEM, "no memory for the operators' parameters");
    for (uint32_t n = 0; n < d->setup.count; n++) {
        double value[PL_SPACE_DIMENSIONS];
        pl_space_point(&d->space, d->setup.first + n, value, NULL);
        for (uint32_t i = 0; i < count; i++) d->parameters[(size_t)n * count + i] = (float)value[i];
    }
    return PL_OK;
}

static pl_status make_groups(pl_rollout_data *d, pl_error *err)
{
    uint64_t bytes;
    PL_TRY(pl_space_groups_bytes(&d->space, d->setup.count, &bytes, err));
    d->group_memory = pl_alloc(1, bytes);
    if (!d->group_memory) return pl_fail(err, PL_E_NOMEM, "no memory for the groups of operators");
    pl_space_groups_init(&d->groups, &d->space, d->setup.first, d->setup.count, d->group_memory);
    return PL_OK;
}

/* Not the points of the config that are asked for, but all that its sequence begins with, must be even. */
pl_status pl_rollout_check_points(const pl_rollout_data *d, pl_error *err)
{
    pl_quality q;
    if (isinf(d->setup.limit.discrepancy) && isinf(d->setup.limit.correlation)) return PL_OK;
    void *scratch = pl_alloc(1, pl_quality_bytes(d->space.dimensions, d->setup.operators));
    if (!scratch) return pl_fail(err, PL_E_NOMEM, "no memory to check the points of the parameter space");
    pl_quality_measure(&d->space.sobol, d->setup.operators, scratch, &q);
    pl_free(scratch);
    return pl_quality_check(&q, &d->setup.limit, d->setup.operators, err);
}

static pl_status fill_data(pl_rollout_data *d, pl_error *err)
{
    const pl_rollout_setup *o = &d->setup;
    d->setup.path = d->path = pl_strdup(o->path);
    d->setup.text = d->text = pl_strdup(o->text);
    if (!d->path || !d->text) return pl_fail(err, PL_E_NOMEM, "no memory for the operators");
    PL_TRY(pl_space_init(&d->space, o->dimension, o->dimensions, err));
    if (o->scramble) pl_sobol_scramble(&d->space.sobol, o->sobol_seed);
    find_dimensions(d);
    PL_TRY(find_grid(d, err));
    PL_TRY(make_parameters(d, err));
    PL_TRY(make_groups(d, err));
    PL_TRY(make_layout(d, err));
    d->source =
        (pl_source){.kind = &fields, .batch = o->realisations, .at_once = o->at_once, .steps_per_epoch = {o->count, 0}};
    d->data.source = &d->source;
    d->data.path = "the operators";
    return pl_rollout_data_choose(d, 0, err);
}

pl_status pl_rollout_data_open(const pl_rollout_setup *setup, pl_rollout_data **data, pl_error *err)
{
    pl_rollout_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the operators");
    d->data.kind = &rollouts;
    d->setup = *setup;
    pl_status status = fill_data(d, err);
    if (status != PL_OK) return close_data(&d->data), status;
    *data = d;
    return PL_OK;
}

/* ---- a group ---- */

static void find_extents(pl_rollout_data *d)
{
    const uint32_t number = pl_rollout_operator(d, 0);
    d->data.extents = d->setup.extents;
    for (size_t i = 0; i < SHAPE_DIMENSIONS; i++)
        pl_facts_add(&d->data.extents, dimension_names[shape_dimensions[i]],
                     (uint64_t)pl_rollout_value(d, number, shape_dimensions[i]));
}

pl_status pl_rollout_data_choose(pl_rollout_data *d, uint32_t group, pl_error *err)
{
    if (group >= d->groups.groups)
        return pl_fail(err, PL_E_DATA, "the operators have %u shapes, number %u was planned; plan again",
                       d->groups.groups, group);
    d->group = group;
    d->first = d->groups.first[group];
    d->operators = d->groups.first[group + 1] - d->first;
    d->data.groups = d->groups.groups;
    d->data.group_items = d->operators;
    d->data.group_samples = (uint64_t)d->operators * d->setup.realisations;
    d->data.identity = (pl_facts){0};
    pl_facts_add(&d->data.identity, "shape", group);
    if (d->groups.groups > 1) snprintf(d->data.piece, sizeof d->data.piece, "shape-%u", group + 1);
    find_extents(d);
    return PL_OK;
}

static uint32_t group_of(const pl_rollout_data *d, uint32_t number, uint32_t *place)
{
    for (uint32_t group = 0, i = 0; group < d->groups.groups; group++)
        for (; i < d->groups.first[group + 1]; i++)
            if (pl_space_groups_point(&d->groups, i) == number) return *place = i, group;
    return *place = 0;
}

pl_status pl_rollout_data_witness(pl_rollout_data *d, uint64_t number, const char *fact, pl_error *err)
{
    uint32_t place;
    if (number < d->setup.first || number - d->setup.first >= d->setup.count)
        return pl_fail(err, PL_E_CONFIG, "there is no operator %llu: this job has %u, from %u on",
                       (unsigned long long)number, d->setup.count, d->setup.first);
    const uint32_t group = group_of(d, (uint32_t)number, &place);
    PL_TRY(pl_rollout_data_choose(d, group, err));
    d->first = place;
    d->operators = 1;
    d->data.groups = 0;
    d->data.sink = NULL;
    pl_facts_add(&d->data.identity, fact, number);
    pl_facts_add(&d->data.extents, "witness", 1);
    return PL_OK;
}

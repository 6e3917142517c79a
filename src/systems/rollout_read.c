/* A config of rollouts as plain values for its data. */
#include <math.h>
#include <string.h>

#include "base/convolution.h"
#include "config/schema.h"
#include "models/rollout.h"
#include "systems/rollout.h"

/* The config's words have the numbers of the enums that operators read. */
#define SAME(ours, theirs) _Static_assert((int)PL_CONFIG_##ours == (int)PL_##theirs, #ours)
SAME(NOISE_GAUSSIAN, NOISE_GAUSSIAN);
SAME(NOISE_LAPLACE, NOISE_LAPLACE);
SAME(NOISE_MULTIPLICATIVE, NOISE_MULTIPLICATIVE);
SAME(NOISE_DROPOUT, NOISE_DROPOUT2D);
SAME(NOISE_CONSTANT, NOISE_SCHEDULE_CONSTANT);
SAME(NOISE_ANNEALING, NOISE_SCHEDULE_ANNEALING);
SAME(NOISE_PERIODIC, NOISE_SCHEDULE_PERIODIC);
SAME(POLICY_AUTOREGRESSIVE, POLICY_AUTOREGRESSIVE);
SAME(POLICY_RESIDUAL, POLICY_RESIDUAL);
SAME(POLICY_CONVEX, POLICY_CONVEX);
SAME(POST_PROCESS_NONE, POST_NONE);
SAME(POST_PROCESS_MINMAX, POST_MINMAX);
SAME(POST_PROCESS_ZSCORE, POST_ZSCORE);
SAME(FIELD_NORM_INSTANCE, ROLLOUT_NORM_INSTANCE);
SAME(FIELD_NORM_GROUP, ROLLOUT_NORM_GROUP);
SAME(FIELD_NORM_BATCH, ROLLOUT_NORM_BATCH);
SAME(BACKEND_NATIVE, BLOCK_NATIVE);
SAME(BACKEND_HDF5, BLOCK_HDF5);
SAME(BACKEND_NPY, BLOCK_NPY);

/* ---- the parameter space ---- */

static const pl_dimension_type dimension_types[] = {[PL_CONFIG_DIMENSION_INTEGER] = PL_DIMENSION_INTEGER,
                                                    [PL_CONFIG_DIMENSION_CONTINUOUS] = PL_DIMENSION_CONTINUOUS,
                                                    [PL_CONFIG_DIMENSION_CHOICE] = PL_DIMENSION_CHOICE,
                                                    [PL_CONFIG_DIMENSION_BOOLEAN] = PL_DIMENSION_BOOLEAN};

/* Does this parameter decide the graph of an operator? */
static bool is_shape(const char *name)
{
    static const char *const names[] = {"num_layers", "base_channels", "kernel_size",
                                        "activation", "normalization", "grid_size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static pl_dimension dimension_of(const pl_config_dimension *d)
{
    pl_dimension to = {
        .name = d->name, .type = dimension_types[d->type], .log_scale = d->log_scale, .is_shape = is_shape(d->name)};
    if (d->bounds) to.low = d->bounds->item[0], to.high = d->bounds->item[1];
    if (!d->choices) return to;
    to.choices = (uint32_t)d->choices->count;
    memcpy(to.choice, d->choices->item, to.choices * sizeof *to.choice);
    for (uint32_t i = 0; strcmp(d->name, "activation") == 0 && i < to.choices; i++)
        to.choice[i] = pl_model_activation_of((pl_config_activation)to.choice[i]);
    if (d->weights) memcpy(to.weight, d->weights->item, (size_t)d->weights->count * sizeof *to.weight);
    return to;
}

static void read_space(const pl_config *c, pl_rollout_reading *r)
{
    for (int i = 0; i < PL_CONFIG_DIMENSION_COUNT; i++) {
        const pl_config_dimension d = pl_config_dimension_of(c, (pl_config_dimension_id)i);
        if (d.is_used) r->dimension[r->setup.dimensions++] = dimension_of(&d);
    }
    r->setup.dimension = r->dimension;
}

static bool may_correlate(const pl_config *c)
{
    const pl_config_dimension d = pl_config_dimension_of(c, PL_CONFIG_DIMENSION_spatial_correlation);
    const pl_config_list *list = d.bounds ? d.bounds : d.choices;
    for (int64_t i = 0; list && i < list->count; i++)
        if (list->item[i] > 0) return true;
    return d.type == PL_CONFIG_DIMENSION_BOOLEAN;
}

/* ---- initial fields ---- */

static pl_initial_choice *add_choice(pl_initial *to, const char *name, pl_initial_kind kind, double weight)
{
    pl_initial_choice *choice = &to->choice[to->choices];
    if (weight > 0) to->choices++;
    *choice = (pl_initial_choice){.name = name, .kind = kind, .weight = weight};
    return choice;
}

static void add_random(pl_initial *to, const char *name, double weight, double length, double variance)
{
    pl_initial_choice *choice = add_choice(to, name, PL_INITIAL_RANDOM, weight);
    choice->variance = variance;
    choice->lengths = 1;
    choice->length[0] = length;
}

static void add_multiscale(pl_initial *to, const char *name, double weight, const pl_config_list *scales,
                           double variance)
{
    pl_initial_choice *choice = add_choice(to, name, PL_INITIAL_RANDOM, weight);
    choice->variance = variance;
    for (int64_t i = 0; i < scales->count && i < PL_INITIAL_LENGTHS; i++)
        choice->length[choice->lengths++] = scales->item[i];
}

static void add_drawn(const pl_config *c, pl_initial *to, double stripes, double blobs)
{
    pl_initial_choice *choice = add_choice(to, "structured", PL_INITIAL_STRIPES, stripes);
    choice->count = (uint32_t)c->structured.num_structures;
    choice->low = 1, choice->high = 6;
    choice = add_choice(to, "localized", PL_INITIAL_BLOBS, blobs);
    choice->count = (uint32_t)c->localized.num_blobs;
    choice->low = c->localized.min_width, choice->high = c->localized.max_width;
}

static void add_sampled(const pl_config *c, pl_initial *to)
{
    const pl_config_ic_type_weights *w = &c->ic_type_weights;
#define ADD_RANDOM(name)     add_random(to, #name, w->name, c->name.length_scale, c->name.variance)
#define ADD_MULTISCALE(name) add_multiscale(to, #name, w->name, &c->name.scales, c->name.variance)
    add_random(to, "gaussian_random_field", w->gaussian_random_field, c->input_generation.length_scale,
               c->input_generation.variance);
    ADD_RANDOM(gaussian_random_field_v0);
    ADD_RANDOM(gaussian_random_field_v1);
    ADD_RANDOM(gaussian_random_field_v2);
    ADD_RANDOM(gaussian_random_field_v3);
    ADD_RANDOM(gaussian_random_field_v4);
    ADD_MULTISCALE(multiscale_grf_low);
    ADD_MULTISCALE(multiscale_grf_mid);
    ADD_MULTISCALE(multiscale_grf_high);
    add_drawn(c, to, w->structured, w->localized);
}

static void read_initial(const pl_config *c, pl_initial *to)
{
    const pl_config_field_method method = c->input_generation.method;
    double sum = 0;
    *to = (pl_initial){.seed = (uint64_t)c->simulation.seed};
    if (method == PL_CONFIG_FIELD_SAMPLED)
        add_sampled(c, to);
    else if (method == PL_CONFIG_FIELD_GAUSSIAN)
        add_random(to, "gaussian_random_field", 1, c->input_generation.length_scale, c->input_generation.variance);
    else
        add_drawn(c, to, method == PL_CONFIG_FIELD_STRUCTURED, method == PL_CONFIG_FIELD_LOCALIZED);
    for (uint32_t i = 0; i < to->choices; i++) sum += to->choice[i].weight;
    for (uint32_t i = 0; i < to->choices; i++) to->choice[i].weight /= sum;
}

/* ---- all of it ---- */

pl_status pl_rollout_read_share(const pl_config *c, pl_share *share, pl_error *err)
{
    return pl_share_read(c, "sampling.part", c->sampling.part, "operators", (uint64_t)c->sampling.total_samples, share,
                         err);
}

static bool measures_operators(const pl_config *c)
{
    return c->simulation.extract_operator_features && pl_config_store_of(c) != PL_CONFIG_STORE_TRAJECTORIES;
}

static pl_facts extents_of(const pl_config *c)
{
    static const pl_dtype precisions[] = {[PL_CONFIG_PRECISION_FLOAT32] = PL_DTYPE_F32,
                                          [PL_CONFIG_PRECISION_BFLOAT16] = PL_DTYPE_BF16,
                                          [PL_CONFIG_PRECISION_FLOAT16] = PL_DTYPE_F16};
    static const uint64_t convolutions[] = {[PL_CONFIG_CONVOLUTION_AUTO] = 0,
                                            [PL_CONFIG_CONVOLUTION_DIRECT] = 1 + PL_CONVOLUTION_DIRECT,
                                            [PL_CONFIG_CONVOLUTION_WINOGRAD] = 1 + PL_CONVOLUTION_WINOGRAD4};
    pl_facts e = {0};
    pl_facts_add(&e, "precision", precisions[c->simulation.precision]);
    pl_facts_add(&e, "convolution", convolutions[c->simulation.convolution]);
    pl_facts_add(&e, "correlated", may_correlate(c));
    pl_facts_add(&e, "dropout", c->simulation.rollout_dropout);
    pl_facts_add(&e, "seed", (uint64_t)c->simulation.seed);
    pl_facts_add(&e, "features", measures_operators(c));
    return e;
}

static void read_numbers(const pl_config *c, pl_rollout_setup *o)
{
    const pl_config_list *clamp = &c->update.clamp;
    const pl_config_sampling_validation *v = &c->sampling_validation;
    const pl_config_store store = pl_config_store_of(c);
    *o = (pl_rollout_setup){.arch = pl_config_find("model.arch")->names[c->model.arch],
                            .sobol_seed = (uint64_t)c->sobol.seed,
                            .scramble = c->sobol.scramble,
                            .operators = (uint32_t)c->sampling.total_samples,
                            .count = (uint32_t)c->sampling.total_samples,
                            .realisations = (uint32_t)c->simulation.num_realizations,
                            .states = (uint32_t)c->simulation.num_timesteps,
                            .piece = (uint32_t)c->storage.block_states,
                            .at_once = c->simulation.realizations_at_once == PL_CONFIG_AUTO
                                           ? 0
                                           : (uint32_t)c->simulation.realizations_at_once,
                            .limit = {.discrepancy = v->check_discrepancy ? v->max_discrepancy : INFINITY,
                                      .correlation = v->check_correlation ? v->max_pairwise_correlation : INFINITY},
                            .noise_period = (double)c->update.schedule_period,
                            .dt = c->update.dt,
                            .alpha = c->update.alpha,
                            .post = (pl_post_process)c->update.post_process,
                            .clamp_low = clamp->count ? clamp->item[0] : -INFINITY,
                            .clamp_high = clamp->count ? clamp->item[1] : INFINITY,
                            .keeps_states = store != PL_CONFIG_STORE_FEATURES,
                            .features = measures_operators(c),
                            .drops = c->simulation.rollout_dropout,
                            .seed = (uint64_t)c->simulation.seed,
                            .state_dtype = c->storage.state_dtype == PL_CONFIG_STATE_F16 ? PL_DTYPE_F16 : PL_DTYPE_F32,
                            .form = (pl_block_form)c->storage.backend,
                            .extents = extents_of(c)};
    if (o->piece > o->states) o->piece = o->states;
    if (o->at_once > o->realisations) o->at_once = o->realisations;
}

pl_status pl_rollout_read(const pl_config *c, pl_rollout_reading *r, pl_error *err)
{
    pl_share share;
    *r = (pl_rollout_reading){0};
    read_numbers(c, &r->setup);
    PL_TRY(pl_rollout_read_share(c, &share, err));
    r->setup.first = (uint32_t)share.first;
    r->setup.count = (uint32_t)share.count;
    read_space(c, r);
    read_initial(c, &r->setup.initial);
    PL_TRY(pl_results_find_path(c, "dataset.output_path", c->dataset.output_path, c->storage.backend, &share, r->path,
                                err));
    PL_TRY(pl_results_say_identity(c, PL_CONFIG_BY_ROLLOUT, NULL, &r->text, err));
    r->setup.path = r->path;
    r->setup.text = pl_str_text(&r->text);
    return PL_OK;
}

void pl_rollout_reading_deinit(pl_rollout_reading *r) { pl_str_deinit(&r->text); }

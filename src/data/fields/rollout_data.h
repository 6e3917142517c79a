/* Random operators and the fields that they begin from, as the data of a command: point n of a parameter space is
 * operator n. Its source has a step for each operator, whose samples are the realisations: each gets the operator's
 * initial field, its row of parameters and its ids (base/rollout.h). Operators of one shape are a group, and a process
 * works on one group. What comes out goes into a block file, whose layout is made here.
 *
 * Kinds of blocks: "states" (operator, realisation, states by `piece`), "fields" (operator) and, where they are wanted,
 * "features" (operator). */
#ifndef PL_DATA_ROLLOUT_DATA_H
#define PL_DATA_ROLLOUT_DATA_H

#include "base/rollout.h"
#include "data/fields/initial.h"
#include "data/fields/quality.h"
#include "data/fields/space.h"
#include "store/block_sink.h"
#include "stream/data.h"

/* The dimensions that something is made of. What a space has not got is as its row says. */
#define PL_ROLLOUT_DIMENSIONS(X)                                                                                       \
    X(NUM_LAYERS, "num_layers", 4)                                                                                     \
    X(BASE_CHANNELS, "base_channels", 64)                                                                              \
    X(KERNEL_SIZE, "kernel_size", 3)                                                                                   \
    X(ACTIVATION, "activation", 1)                                                                                     \
    X(DROPOUT_RATE, "dropout_rate", 0)                                                                                 \
    X(NOISE_TYPE, "noise_type", 0)                                                                                     \
    X(NOISE_SCALE, "noise_scale", 0)                                                                                   \
    X(NOISE_SCHEDULE, "noise_schedule", 0)                                                                             \
    X(SPATIAL_CORRELATION, "spatial_correlation", 0)                                                                   \
    X(NORMALIZATION, "normalization", 0)                                                                               \
    X(GRID_SIZE, "grid_size", 128)                                                                                     \
    X(UPDATE_POLICY, "update_policy", 1)
#define PL_ROLLOUT_DIMENSION_ENUM(c, name, otherwise) PL_DIMENSION_##c,
typedef enum pl_rollout_dimension {
    PL_ROLLOUT_DIMENSIONS(PL_ROLLOUT_DIMENSION_ENUM) PL_ROLLOUT_DIMENSION_COUNT
} pl_rollout_dimension;

enum { PL_ROLLOUT_FIELD_CHANNELS = 3 };

/* What a config says, as plain values; names of dimensions outlive the data, the other texts are copied. */
typedef struct pl_rollout_setup {
    const char *arch; /* a constant, as names of dimensions are */
    const pl_dimension *dimension;
    uint32_t dimensions;
    uint64_t sobol_seed;
    bool scramble;
    uint32_t operators;                   /* of the whole job */
    uint32_t first, count;                /* the part of it that is worked on: first … first + count − 1 */
    uint32_t realisations, states, piece; /* piece: states of a block */
    uint32_t at_once;                     /* realisations in memory; 0: the planner chooses */
    pl_quality limit;                     /* how even the points must be */
    double noise_period, dt, alpha;
    pl_post_process post;
    double clamp_low, clamp_high; /* infinite: none */
    pl_initial initial;           /* but for the size of its fields */
    bool keeps_states, features;  /* are they stored? */
    bool drops;                   /* channels, by the dropout rate of the operator */
    pl_dtype state_dtype;         /* f32 or f16 */
    const char *path;             /* of the results */
    pl_block_form form;
    const char *text; /* what made them */
    uint64_t seed;    /* of weights and features */
    pl_facts extents; /* that are no dimension: "precision", "convolution", "correlated", "dropout", … */
} pl_rollout_setup;

typedef struct pl_rollout_data {
    pl_data data; /* first: this is one. Identity: "shape", the group; extents: as models/rollout.h wants them */
    pl_source source;
    pl_rollout_setup setup;
    pl_space space;
    pl_space_groups groups;
    int at[PL_ROLLOUT_DIMENSION_COUNT]; /* of the space's dimensions; −1: it has none */
    uint32_t group;
    uint32_t first, operators; /* of the group: the first of its entries, and how many they are */
    uint32_t grid;
    /* results */
    pl_block_sink sink;
    pl_block_layout layout;
    pl_block_kind kind[3];
    pl_block_dataset dataset[5 + PL_FIELD_METRICS];
    pl_block_attribute attribute[4];
    /* of datasets; PL_BLOCK_NO_KIND: states are not kept, features are not wanted */
    uint32_t states_at, metrics_at, fields_at, features_at;
    float *parameters; /* [count, dimensions], all of the space */
    void *group_memory;
    char *path, *text;
} pl_rollout_data;

enum { PL_ROLLOUT_STATES, PL_ROLLOUT_FIELDS, PL_ROLLOUT_FEATURES }; /* kinds of blocks */

/* Opened for group 0; all that can be told without a group is there. PL_E_CONFIG; PL_E_NOMEM. */
pl_status pl_rollout_data_open(const pl_rollout_setup *, pl_rollout_data **, pl_error *);
/* Have all operators of the job fields of one size, as one file of results must? PL_E_CONFIG. */
pl_status pl_rollout_check_grid_sizes(const pl_rollout_data *, pl_error *);
/* Are the points as even as the limits say? PL_E_CONFIG. Takes time by the square of their number, up to a limit. */
pl_status pl_rollout_check_points(const pl_rollout_data *, pl_error *);
/* Its work is that of this group from now on. */
pl_status pl_rollout_data_choose(pl_rollout_data *, uint32_t group, pl_error *);
/* Its work is that operator's, for a witness: it has no results. */
pl_status pl_rollout_data_witness(pl_rollout_data *, uint64_t number, const char *fact, pl_error *);
static inline pl_rollout_data *pl_rollout_data_of(const pl_data *d) { return (pl_rollout_data *)d; }

/* Its place in the file of results. */
static inline uint64_t pl_rollout_place(const pl_rollout_data *d, uint32_t number) { return number - d->setup.first; }
/* The i-th of the group. */
static inline uint32_t pl_rollout_operator(const pl_rollout_data *d, uint32_t i)
{
    return pl_space_groups_point(&d->groups, d->first + i);
}
/* The value of a dimension at an operator. */
double pl_rollout_value(const pl_rollout_data *, uint32_t number, pl_rollout_dimension);
/* The row of parameters of an operator. */
void pl_rollout_fill_row(const pl_rollout_data *, uint32_t number, float row[PL_ROLLOUT_COLUMNS]);

#endif

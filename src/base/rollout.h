/* What a rollout is told about each realisation, as a row of f32 numbers: the source writes the rows, the operators
 * noise and evolve read them. A row of its own for each sample, so that the bits hang on no grouping. Choices stand as
 * the numbers of the enums below; a number that is none of them counts as the first.
 *
 * And what it tells about each state, the columns of field_metrics, and about each operator, its features. */
#ifndef PL_BASE_ROLLOUT_H
#define PL_BASE_ROLLOUT_H

/* The word is that of the config. */
#define PL_NOISE_KINDS(X)                                                                                              \
    X(GAUSSIAN, "gaussian")             /* x + s·N(0,1) */                                                            \
    X(LAPLACE, "laplace")               /* x + s·(exponential number with a random sign) */                           \
    X(MULTIPLICATIVE, "multiplicative") /* x·(1 + s·N(0,1)) */                                                       \
    X(DROPOUT2D, "dropout2d")           /* whole channels are 0 with probability s, the others x/(1 − s) */

/* s = scale · … at step t */
#define PL_NOISE_SCHEDULES(X)                                                                                          \
    X(CONSTANT, "constant")                                                                                            \
    X(ANNEALING, "annealing") /* 1 − t/steps */                                                                      \
    X(PERIODIC, "periodic")   /* 1 + sin(2π·t/period)/2 */

/* The next state from the last one, X, and what the operator made of it, Y. */
#define PL_UPDATE_POLICIES(X)                                                                                          \
    X(AUTOREGRESSIVE, "autoregressive") /* Y */                                                                        \
    X(RESIDUAL, "residual")             /* X + dt·Y */                                                                \
    X(CONVEX, "convex")                 /* alpha·X + (1 − alpha)·Y */

/* Over all numbers of a realisation's state. */
#define PL_POST_PROCESSES(X)                                                                                           \
    X(NONE, "none")                                                                                                    \
    X(MINMAX, "minmax") /* (X − min)/(max − min); 0 where they are equal */                                        \
    X(ZSCORE, "zscore") /* (X − mean)/(standard deviation + 1e-8) */

#define PL_ROLLOUT_NOISE_ENUM(c, word)    PL_NOISE_##c,
#define PL_ROLLOUT_SCHEDULE_ENUM(c, word) PL_NOISE_SCHEDULE_##c,
#define PL_ROLLOUT_POLICY_ENUM(c, word)   PL_POLICY_##c,
#define PL_ROLLOUT_POST_ENUM(c, word)     PL_POST_##c,
typedef enum pl_noise_kind { PL_NOISE_KINDS(PL_ROLLOUT_NOISE_ENUM) PL_NOISE_KIND_COUNT } pl_noise_kind;
typedef enum pl_noise_schedule {
    PL_NOISE_SCHEDULES(PL_ROLLOUT_SCHEDULE_ENUM) PL_NOISE_SCHEDULE_COUNT
} pl_noise_schedule;
typedef enum pl_update_policy { PL_UPDATE_POLICIES(PL_ROLLOUT_POLICY_ENUM) PL_POLICY_COUNT } pl_update_policy;
typedef enum pl_post_process { PL_POST_PROCESSES(PL_ROLLOUT_POST_ENUM) PL_POST_COUNT } pl_post_process;

/* Columns of the parameters, f32 [samples, PL_ROLLOUT_COLUMNS]. */
typedef enum pl_rollout_column {
    PL_ROLLOUT_NOISE_KIND,
    PL_ROLLOUT_NOISE_SCALE,
    PL_ROLLOUT_NOISE_SCHEDULE,
    PL_ROLLOUT_NOISE_PERIOD,
    PL_ROLLOUT_NOISE_STEPS,       /* T of the annealing schedule */
    PL_ROLLOUT_NOISE_CORRELATION, /* part of the image's height; 0: each number for itself */
    PL_ROLLOUT_POLICY,
    PL_ROLLOUT_DT,
    PL_ROLLOUT_ALPHA,
    PL_ROLLOUT_POST_PROCESS,
    PL_ROLLOUT_CLAMP_LOW, /* −inf: none */
    PL_ROLLOUT_CLAMP_HIGH,
    PL_ROLLOUT_DROPOUT_RATE, /* of the channels behind each activation; 0: none is dropped */
    PL_ROLLOUT_COLUMNS
} pl_rollout_column;

/* Columns of the ids, i64 [samples, PL_ROLLOUT_IDS]: they key the random numbers, so each is below 2^32. */
typedef enum pl_rollout_id { PL_ROLLOUT_OPERATOR, PL_ROLLOUT_REALISATION, PL_ROLLOUT_IDS } pl_rollout_id;

/* Columns of the metrics of a state, f32 [samples, PL_FIELD_METRICS]. */
#define PL_FIELD_METRIC_COLUMNS(X)                                                                                     \
    X(ENERGY, "energy")   /* Σ x² */                                                                                 \
    X(ENTROPY, "entropy") /* in nats, of a histogram of PL_FIELD_BINS bins over [min, max] */                          \
    X(AUTOCORRELATION,                                                                                                 \
      "autocorrelation")                /* Pearson's, with the state before; 0 without one or where one is constant */ \
    X(VARIANCE, "variance")             /* over n − 1 */                                                             \
    X(MEAN_MAGNITUDE, "mean_magnitude") /* mean |x| */
#define PL_ROLLOUT_METRIC_ENUM(c, word) PL_FIELD_##c,
typedef enum pl_field_metric { PL_FIELD_METRIC_COLUMNS(PL_ROLLOUT_METRIC_ENUM) PL_FIELD_METRICS } pl_field_metric;
enum { PL_FIELD_BINS = 50 };

/* Columns of the features of an operator, f32 [operators, PL_OPERATOR_FEATURES] (data/fields/features.h). */
#define PL_OPERATOR_FEATURE_COLUMNS(X)                                                                                 \
    X(LIPSCHITZ_4, "lipschitz_eps_1e-4")                                                                               \
    X(LIPSCHITZ_3, "lipschitz_eps_1e-3")                                                                               \
    X(LIPSCHITZ_2, "lipschitz_eps_1e-2")                                                                               \
    X(GAIN_50, "gain_scale_0.50")                                                                                      \
    X(GAIN_75, "gain_scale_0.75")                                                                                      \
    X(GAIN_125, "gain_scale_1.25")                                                                                     \
    X(GAIN_150, "gain_scale_1.50")                                                                                     \
    X(LINEARITY, "linearity_r2")                                                                                       \
    X(SATURATION, "saturation_degree")                                                                                 \
    X(COMPRESSION, "compression_ratio")
#define PL_ROLLOUT_FEATURE_ENUM(c, word) PL_FEATURE_##c,
typedef enum pl_operator_feature {
    PL_OPERATOR_FEATURE_COLUMNS(PL_ROLLOUT_FEATURE_ENUM) PL_OPERATOR_FEATURES
} pl_operator_feature;

/* A choice as it stands in a row; garbage (measuring fills rows with any numbers) is choice 0. */
static inline int pl_rollout_choice(float number, int count)
{
    return number >= 0 && number < (float)count ? (int)number : 0;
}

#endif

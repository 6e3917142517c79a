/* Noise, the next state, metrics: each sample is done by the numbers of its own row. Noise of a sample is shared out in
 * pieces whose bits do not depend on each other: pixels, or strips of channels where it is correlated. A state is
 * small: a sample's is done by one thread. */
#include <math.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { PIXELS_PIECE = 64 };

/* ---- noise ---- */

typedef struct noise_work {
    const pl_noise_call *call;
    const pl_kernels *kernels;
    pl_philox philox;
    unsigned char *workspace;
    uint64_t workspace_bytes; /* of a thread */
} noise_work;

static double schedule(const float *row, double step)
{
    switch (pl_rollout_choice(row[PL_ROLLOUT_NOISE_SCHEDULE], PL_NOISE_SCHEDULE_COUNT)) {
    case PL_NOISE_SCHEDULE_ANNEALING:
        return 1 - step / (double)row[PL_ROLLOUT_NOISE_STEPS];
    case PL_NOISE_SCHEDULE_PERIODIC:
        return 1 + 0.5 * sin(6.283185307179586476925 * step / (double)row[PL_ROLLOUT_NOISE_PERIOD]);
    default:
        return 1;
    }
}

static pl_noise noise_of(const noise_work *w, int64_t sample)
{
    const pl_noise_call *c = w->call;
    const float *row = c->parameters + sample * PL_ROLLOUT_COLUMNS;
    const int64_t *id = c->ids + sample * PL_ROLLOUT_IDS;
    double correlation = c->correlated && row[PL_ROLLOUT_NOISE_CORRELATION] > 0 ? row[PL_ROLLOUT_NOISE_CORRELATION] : 0;
    pl_noise n = {.philox = w->philox,
                  .step = (uint32_t)*c->step,
                  .sample = (uint64_t)id[PL_ROLLOUT_OPERATOR] << 32 | (uint32_t)id[PL_ROLLOUT_REALISATION],
                  .kind = (pl_noise_kind)pl_rollout_choice(row[PL_ROLLOUT_NOISE_KIND], PL_NOISE_KIND_COUNT),
                  .scale = (float)(row[PL_ROLLOUT_NOISE_SCALE] * schedule(row, (double)*c->step)),
                  .correlation = correlation * (double)c->height,
                  .height = c->height,
                  .width = c->width,
                  .channels = c->channels};
    if (c->dropout) n.kind = PL_NOISE_DROPOUT2D, n.scale = row[PL_ROLLOUT_DROPOUT_RATE];
    if (n.kind == PL_NOISE_DROPOUT2D) n.correlation = 0;
    return n;
}

static int64_t strips_of(const pl_noise_call *c) { return (c->channels + PL_NOISE_STRIP - 1) / PL_NOISE_STRIP; }

/* Threads that filter a strip, each in memory of its own. */
static int workers_of(const pl_noise_call *c, int threads)
{
    return threads < strips_of(c) ? threads : (int)strips_of(c);
}

static void noise_sample(const noise_work *w, const pl_noise *n, const void *x, void *y, int part, int parts)
{
    pl_real type = w->call->type;
    if (n->correlation > 0) {
        const int workers = workers_of(w->call, parts);
        if (part >= workers) return;
        pl_range strips = pl_range_of_part(strips_of(w->call), 1, part, workers);
        void *own = w->workspace + (uint64_t)part * w->workspace_bytes;
        for (int64_t s = strips.begin; s < strips.end; s++) w->kernels->noise_correlated(n, s, type, x, y, own);
        return;
    }
    pl_range pixels = pl_range_of_part(n->height * n->width, PIXELS_PIECE, part, parts);
    w->kernels->noise(n, pixels.begin, pixels.end, type, x, y);
}

static void noise_part(const void *work, int part, int parts)
{
    const noise_work *w = work;
    const pl_noise_call *c = w->call;
    int64_t elems = c->height * c->width * c->channels;
    for (int64_t s = 0; s < c->samples; s++) {
        pl_noise n = noise_of(w, s);
        noise_sample(w, &n, pl_real_at(c->type, c->x, s * elems), pl_real_at(c->type, c->y, s * elems), part, parts);
    }
}

static uint64_t workspace_of_thread(const pl_noise_call *c)
{
    return c->correlated ? pl_noise_lay_out(c->height, c->width, NULL).bytes : 0;
}

uint64_t pl_noise_workspace_bytes(const pl_noise_call *c, pl_team team)
{
    return workspace_of_thread(c) * (uint64_t)workers_of(c, team.threads > 1 ? team.threads : 1);
}

void pl_noise_exec(const pl_noise_call *c, void *workspace, pl_team team)
{
    noise_work w = {c, pl_kernels_get(team.isa), pl_philox_init(c->seed, c->stream), workspace, workspace_of_thread(c)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, noise_part, &w);
}

/* ---- the next state ---- */

typedef struct state_work {
    const void *call;
    const pl_kernels *kernels;
} state_work;

static void evolve_part(const void *work, int part, int parts)
{
    const state_work *w = work;
    const pl_evolve_call *c = w->call;
    pl_range samples = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t s = samples.begin; s < samples.end; s++) {
        const float *row = c->parameters + s * PL_ROLLOUT_COLUMNS;
        int64_t at = s * c->elems_per_sample;
        pl_evolve how = {.policy = (pl_update_policy)pl_rollout_choice(row[PL_ROLLOUT_POLICY], PL_POLICY_COUNT),
                         .dt = row[PL_ROLLOUT_DT],
                         .alpha = row[PL_ROLLOUT_ALPHA],
                         .post_process =
                             (pl_post_process)pl_rollout_choice(row[PL_ROLLOUT_POST_PROCESS], PL_POST_COUNT),
                         .clamp_low = row[PL_ROLLOUT_CLAMP_LOW],
                         .clamp_high = row[PL_ROLLOUT_CLAMP_HIGH]};
        w->kernels->evolve(&how, c->elems_per_sample, c->x + at, c->previous ? c->previous + at : NULL, c->type,
                           pl_real_at(c->type, c->y, at));
    }
}

void pl_evolve_exec(const pl_evolve_call *c, pl_team team)
{
    state_work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples > 1 ? c->samples * c->elems_per_sample : 0, evolve_part, &w);
}

/* ---- metrics ---- */

static void field_metrics_part(const void *work, int part, int parts)
{
    const state_work *w = work;
    const pl_field_metrics_call *c = w->call;
    pl_range samples = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t s = samples.begin; s < samples.end; s++) {
        int64_t at = s * c->elems_per_sample;
        w->kernels->field_metrics(c->elems_per_sample, c->x + at, c->previous ? c->previous + at : NULL,
                                  c->metrics + s * PL_FIELD_METRICS);
    }
}

void pl_field_metrics_exec(const pl_field_metrics_call *c, pl_team team)
{
    state_work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples > 1 ? c->samples * c->elems_per_sample : 0, field_metrics_part, &w);
}

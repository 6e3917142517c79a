/* Noise, the next state and metrics at every level against doubles written here: noise number by number from
 * base/philox.h, correlated noise by a discrete Fourier transform of all of it, metrics by their definitions. The same
 * bits for any team, in place, and for a sample alone. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/calls.h"
#include "base/philox.h"
#include "base/rollout.h"
#include "support/program.h"
#include "support/seed.h"

enum { SAMPLES = 5, HEIGHT = 12, WIDTH = 9, PIXELS = HEIGHT * WIDTH, CHANNELS_MAX = 38, MAX = PIXELS * CHANNELS_MAX };

static uint64_t seed;
static float x[SAMPLES * MAX], y[SAMPLES * MAX], first[SAMPLES * MAX], rows[SAMPLES * PL_ROLLOUT_COLUMNS];
static int64_t ids[SAMPLES * PL_ROLLOUT_IDS], step = 17;
static _Alignas(64) unsigned char workspace[1 << 20];
static const int threads[] = {1, 2, 3, 16};
static const double turn = 6.283185307179586476925;

static void normals(uint64_t number, int64_t count, float *out)
{
    pl_philox p = pl_philox_init(seed, 1);
    pl_philox_normal_f32(&p, 0, number, 0, (uint64_t)count, out);
}

static float *row(int64_t sample) { return rows + sample * PL_ROLLOUT_COLUMNS; }

/* All kinds, two of them twice; ids up to the largest. */
static void prepare_rows(float correlation)
{
    memset(rows, 0, sizeof rows);
    for (int s = 0; s < SAMPLES; s++) {
        row(s)[PL_ROLLOUT_NOISE_KIND] = (float)(s % PL_NOISE_KIND_COUNT);
        row(s)[PL_ROLLOUT_NOISE_SCALE] = 0.3f + 0.1f * (float)s;
        row(s)[PL_ROLLOUT_NOISE_CORRELATION] = correlation * (float)(s + 1);
        row(s)[PL_ROLLOUT_CLAMP_LOW] = -INFINITY, row(s)[PL_ROLLOUT_CLAMP_HIGH] = INFINITY;
        ids[2 * s] = s == 1 ? (int64_t)UINT32_MAX : 100 + s, ids[2 * s + 1] = s == 2 ? (int64_t)UINT32_MAX : s;
    }
    normals(0, SAMPLES * MAX, x);
}

static pl_noise_call noise_call(int64_t channels, pl_real type)
{
    return (pl_noise_call){SAMPLES, HEIGHT, WIDTH, channels, 1, seed, 6, rows, ids, &step, x, y, type};
}

static void run_noise(const pl_noise_call *c, pl_team team)
{
    assert_true(pl_noise_workspace_bytes(c, team) <= sizeof workspace);
    pl_noise_exec(c, workspace, team);
}

/* ---- noise, in double, of the uniform numbers in f32 that it is defined by ---- */

static uint32_t word_of(const pl_noise_call *c, int64_t sample, int64_t element)
{
    uint32_t bits[4];
    pl_philox p = pl_philox_init(c->seed, c->stream);
    uint64_t number = (uint64_t)ids[2 * sample] << 32 | (uint64_t)ids[2 * sample + 1];
    pl_philox_block(&p, (uint32_t)*c->step, number, (uint32_t)(element / 4), bits);
    return bits[element % 4];
}

static double white(const pl_noise_call *c, int64_t sample, int64_t pixel, int64_t channel)
{
    int64_t e = pixel * ((c->channels + 3) / 4 * 4) + channel;
    uint32_t a = word_of(c, sample, e / 2 * 2), b = word_of(c, sample, e / 2 * 2 + 1), own = e % 2 ? b : a;
    if (row(sample)[PL_ROLLOUT_NOISE_KIND] == PL_NOISE_LAPLACE)
        return -log(((float)(own >> 1) + 0.5f) / 0x1p31) * (own & 1 ? -1 : 1);
    return sqrt(-2 * log(((float)a + 0.5f) / 0x1p32)) * (e % 2 ? sin(turn * b / 0x1p32) : cos(turn * b / 0x1p32));
}

/* One way of the transform along lines of n points, not divided. */
static void transform(double complex *plane, int64_t n, int64_t apart, int64_t lines, int64_t between, int sign)
{
    double complex line[PIXELS], root[PIXELS];
    for (int64_t k = 0; k < n; k++) root[k] = cexp(sign * I * turn * (double)k / (double)n);
    for (int64_t l = 0; l < lines; l++) {
        for (int64_t i = 0; i < n; i++) line[i] = plane[l * between + i * apart];
        for (int64_t k = 0; k < n; k++) {
            double complex sum = 0;
            for (int64_t i = 0; i < n; i++) sum += line[i] * root[k * i % n];
            plane[l * between + k * apart] = sum;
        }
    }
}

static double frequency(int64_t k, int64_t n) { return (double)(2 * k < n ? k : k - n) / (double)n; }

/* Noise with a correlation as it is defined: modes of white noise · exp(−f²·(correlation·H)²/2), transformed back. */
static void filter(double complex *plane, double correlation)
{
    transform(plane, WIDTH, 1, HEIGHT, WIDTH, -1);
    transform(plane, HEIGHT, WIDTH, WIDTH, 1, -1);
    for (int64_t i = 0; i < PIXELS; i++) {
        double fy = frequency(i / WIDTH, HEIGHT), fx = frequency(i % WIDTH, WIDTH), s = correlation * HEIGHT;
        plane[i] *= exp(-(fx * fx + fy * fy) * s * s / 2) / PIXELS;
    }
    transform(plane, WIDTH, 1, HEIGHT, WIDTH, 1);
    transform(plane, HEIGHT, WIDTH, WIDTH, 1, 1);
}

static void expected_noise(const pl_noise_call *c, int64_t sample, int64_t channel, double *out)
{
    double complex plane[PIXELS];
    double correlation = row(sample)[PL_ROLLOUT_NOISE_CORRELATION], mean = 0, squares = 0;
    for (int64_t p = 0; p < PIXELS; p++) plane[p] = white(c, sample, p, channel);
    if (correlation > 0) {
        filter(plane, correlation);
        for (int64_t p = 0; p < PIXELS; p++)
            assert_true(fabs(cimag(plane[p])) < 1e-12), mean += creal(plane[p]) / PIXELS;
        for (int64_t p = 0; p < PIXELS; p++) squares += (creal(plane[p]) - mean) * (creal(plane[p]) - mean);
    }
    double strength = correlation > 0 ? sqrt(squares / (PIXELS - 1)) : 1;
    if (correlation > 0 && row(sample)[PL_ROLLOUT_NOISE_KIND] == PL_NOISE_LAPLACE) strength /= sqrt(2);
    for (int64_t p = 0; p < PIXELS; p++) out[p] = creal(plane[p]) / strength;
}

static double expected(const pl_noise_call *c, int64_t sample, int64_t channel, double eps, double in, double scale)
{
    switch ((int)row(sample)[PL_ROLLOUT_NOISE_KIND]) {
    case PL_NOISE_MULTIPLICATIVE:
        return in * (1 + scale * eps);
    case PL_NOISE_DROPOUT2D:
        return (word_of(c, sample, channel) >> 8) / 0x1p24 < (float)scale ? 0 : in / (1 - scale);
    default:
        return in + scale * eps;
    }
}

static double scale_of(int64_t sample) /* the constant schedule */ { return row(sample)[PL_ROLLOUT_NOISE_SCALE]; }

/* |difference| within `share` of the noise's own size and of what a stored number is rounded by */
static void check_noise(const pl_noise_call *c, double share, double rounding)
{
    double eps[PIXELS];
    for (int64_t s = 0; s < SAMPLES; s++)
        for (int64_t ch = 0; ch < c->channels; ch++) {
            expected_noise(c, s, ch, eps);
            for (int64_t p = 0; p < PIXELS; p++) {
                int64_t at = (s * PIXELS + p) * c->channels + ch;
                double in = pl_real_get(c->type, c->x, at), out = pl_real_get(c->type, c->y, at);
                double want = expected(c, s, ch, eps[p], in, scale_of(s));
                if (fabs(out - want) > share * (1 + fabs(eps[p])) * (1 + fabs(in)) + rounding * fabs(want))
                    fail_msg("sample %d channel %d pixel %d: %.9g, expected %.9g", (int)s, (int)ch, (int)p, out, want);
            }
        }
}

static void noise_at_every_level(float correlation, double share)
{
    prepare_rows(correlation);
    for (int64_t channels = 1; channels <= CHANNELS_MAX; channels += channels < 3 ? 1 : 7)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
            for (int t = 0; t < 4; t++) {
                pl_noise_call c = noise_call(channels, PL_REAL_F32);
                size_t bytes = (size_t)(SAMPLES * PIXELS * channels) * sizeof(float);
                y[SAMPLES * PIXELS * channels - (channels == CHANNELS_MAX)] = 99;
                run_noise(&c, (pl_team){threads[t], (pl_isa)isa});
                if (t == 0) check_noise(&c, share, 1e-6), memcpy(first, y, bytes);
                assert_memory_equal(first, y, bytes);
                if (channels < CHANNELS_MAX) assert_true(y[SAMPLES * PIXELS * channels] == 99);
            }
}

static void white_noise(void **state) { (void)state, noise_at_every_level(0, 6e-7); }
static void correlated_noise_is_filtered_white_noise(void **state)
{
    (void)state;
    noise_at_every_level(0.02f, 2e-6); /* hardly a filter: its weights reach all around */
    noise_at_every_level(0.1f, 2e-6);
}

/* A sample's bits are the same alone, in place, and stored in 16 bits after the same arithmetic. */
static void noise_alone_and_in_place(void **state)
{
    (void)state;
    pl_team team = {2, pl_isa_of_machine()};
    for (int correlated = 0; correlated < 2; correlated++) {
        prepare_rows(correlated ? 0.1f : 0);
        pl_noise_call c = noise_call(18, PL_REAL_F32);
        run_noise(&c, team);
        memcpy(first, y, sizeof first);
        for (int64_t s = 0; s < SAMPLES; s++) {
            int64_t at = s * PIXELS * 18;
            pl_noise_call one = c;
            one.samples = 1, one.parameters = row(s), one.ids = ids + 2 * s, one.x = one.y = x + at;
            run_noise(&one, team);
            assert_memory_equal(first + at, x + at, (size_t)(PIXELS * 18) * sizeof(float));
        }
    }
}

static void noise_in_sixteen_bits(void **state)
{
    (void)state;
    static uint16_t narrow[SAMPLES * MAX], out[SAMPLES * MAX];
    for (int type = PL_REAL_BF16; type <= PL_REAL_F16; type++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
            for (int correlated = 0; correlated < 2; correlated++) {
                prepare_rows(correlated ? 0.1f : 0);
                pl_noise_call c = noise_call(21, (pl_real)type);
                for (int i = 0; i < SAMPLES * MAX; i++) pl_real_put((pl_real)type, narrow, i, x[i]);
                c.x = narrow, c.y = out;
                run_noise(&c, (pl_team){3, (pl_isa)isa});
                check_noise(&c, 2e-6, type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11);
            }
}

/* Dropout is noise of the kind dropout2d, by a rate of its own, whatever kind, size and schedule the noise has. */
static void dropout_is_that_noise(void **state)
{
    static float dropped[SAMPLES * MAX];
    pl_noise_call c = noise_call(18, PL_REAL_F32);
    (void)state;
    prepare_rows(0.1f);
    for (int s = 0; s < SAMPLES; s++) {
        row(s)[PL_ROLLOUT_DROPOUT_RATE] = 0.1f * (float)s;
        row(s)[PL_ROLLOUT_NOISE_SCHEDULE] = PL_NOISE_SCHEDULE_PERIODIC;
        row(s)[PL_ROLLOUT_NOISE_PERIOD] = 7;
    }
    c.dropout = 1;
    run_noise(&c, (pl_team){2, pl_isa_of_machine()});
    memcpy(dropped, y, sizeof(float) * (size_t)(SAMPLES * PIXELS * c.channels));
    for (int s = 0; s < SAMPLES; s++) {
        row(s)[PL_ROLLOUT_NOISE_KIND] = PL_NOISE_DROPOUT2D;
        row(s)[PL_ROLLOUT_NOISE_SCALE] = 0.1f * (float)s;
        row(s)[PL_ROLLOUT_NOISE_SCHEDULE] = PL_NOISE_SCHEDULE_CONSTANT;
        row(s)[PL_ROLLOUT_NOISE_CORRELATION] = 0;
    }
    c.dropout = 0;
    run_noise(&c, (pl_team){1, pl_isa_of_machine()});
    check_noise(&c, 0, 1e-6);
    assert_memory_equal(dropped, y, sizeof(float) * (size_t)(SAMPLES * PIXELS * c.channels));
}

/* Each step, realisation and operator has numbers of its own; without the workspace rows are taken as uncorrelated. */
static void noise_is_keyed(void **state)
{
    (void)state;
    pl_team team = {1, pl_isa_of_machine()};
    prepare_rows(0);
    for (int s = 0; s < SAMPLES; s++)
        row(s)[PL_ROLLOUT_NOISE_KIND] = PL_NOISE_GAUSSIAN, ids[2 * s] = ids[2 * s + 1] = 7;
    ids[2] = 8, ids[5] = 8;
    memset(x, 0, sizeof x);
    pl_noise_call c = noise_call(4, PL_REAL_F32);
    run_noise(&c, team);
    size_t n = PIXELS * 4;
    for (size_t i = 0; i < n; i++) /* samples 3 and 4 have the same key and 6/7 of the scale */
        assert_true(fabs(y[3 * n + i] / 0.6 - y[4 * n + i] / 0.7) < 1e-5 && y[n + i] != y[2 * n + i] &&
                    y[i] != y[n + i]);
    memcpy(first, y, sizeof first);
    step++;
    run_noise(&c, team);
    step--;
    for (size_t i = 0; i < n; i++) assert_true(first[i] != y[i]);
    c.correlated = 0;
    row(0)[PL_ROLLOUT_NOISE_CORRELATION] = 0.2f;
    assert_int_equal(pl_noise_workspace_bytes(&c, team), 0);
    pl_noise_exec(&c, NULL, team);
    assert_memory_equal(first, y, n * sizeof(float));
}

static void schedules(void **state)
{
    (void)state;
    static const double want[] = {0.3, 0.3 * (1 - 17.0 / 50), 0.3 * 1.5, 0.3 * 0.5, 0};
    prepare_rows(0);
    for (int s = 0; s < SAMPLES; s++) {
        row(s)[PL_ROLLOUT_NOISE_KIND] = PL_NOISE_GAUSSIAN, row(s)[PL_ROLLOUT_NOISE_SCALE] = 0.3f;
        row(s)[PL_ROLLOUT_NOISE_STEPS] = s == 4 ? 17 : 50, row(s)[PL_ROLLOUT_NOISE_PERIOD] = s == 2 ? 68 : 68.0f / 3;
        row(s)[PL_ROLLOUT_NOISE_SCHEDULE] =
            (float[]){PL_NOISE_SCHEDULE_CONSTANT, PL_NOISE_SCHEDULE_ANNEALING, PL_NOISE_SCHEDULE_PERIODIC,
                      PL_NOISE_SCHEDULE_PERIODIC, PL_NOISE_SCHEDULE_ANNEALING}[s];
        ids[2 * s] = ids[2 * s + 1] = 3;
    }
    memset(x, 0, sizeof x);
    pl_noise_call c = noise_call(4, PL_REAL_F32);
    run_noise(&c, (pl_team){2, PL_ISA_REF});
    for (int s = 1; s < SAMPLES; s++)
        for (int i = 0; i < PIXELS * 4; i++)
            assert_true(fabs(y[s * PIXELS * 4 + i] - y[i] * want[s] / want[0]) < 1e-6 * (1 + fabs((double)y[i])));
}

/* Moments of many numbers of one key: always the same ones. */
static void noise_has_its_moments(void **state)
{
    (void)state;
    static float zeros[64 * 64 * 16], out[64 * 64 * 16];
    prepare_rows(0);
    row(0)[PL_ROLLOUT_NOISE_SCALE] = 1;
    for (int kind = PL_NOISE_GAUSSIAN; kind <= PL_NOISE_LAPLACE; kind++) {
        double sum[5] = {0}, n = 64 * 64 * 16;
        row(0)[PL_ROLLOUT_NOISE_KIND] = (float)kind;
        pl_noise_call c = {1, 64, 64, 16, 0, 5, 6, rows, ids, &step, zeros, out, PL_REAL_F32};
        pl_noise_exec(&c, NULL, (pl_team){2, pl_isa_of_machine()});
        for (int i = 0; i < 64 * 64 * 16; i++)
            for (int p = 1; p < 5; p++) sum[p] += pow(out[i], p) / n;
        double variance = kind == PL_NOISE_GAUSSIAN ? 1 : 2, fourth = kind == PL_NOISE_GAUSSIAN ? 3 : 24;
        assert_true(fabs(sum[1]) < 0.03 && fabs(sum[2] - variance) < 0.1 && fabs(sum[3]) < 0.6);
        assert_true(fabs(sum[4] / fourth - 1) < 0.15);
    }
}

/* ---- the next state ---- */

enum { ELEMS = 341 };
static float previous[SAMPLES * ELEMS];

static double policy(int64_t s, double from, double to)
{
    double dt = row(s)[PL_ROLLOUT_DT], alpha = row(s)[PL_ROLLOUT_ALPHA];
    int kind = (int)row(s)[PL_ROLLOUT_POLICY];
    return kind == PL_POLICY_RESIDUAL ? from + dt * to
           : kind == PL_POLICY_CONVEX ? alpha * from + (1 - alpha) * to
                                      : to;
}

static void expected_state(int64_t s, const float *from, const float *to, double *out)
{
    double low = INFINITY, high = -INFINITY, mean = 0, squares = 0;
    for (int i = 0; i < ELEMS; i++) {
        out[i] = policy(s, from[i], to[i]);
        low = fmin(low, out[i]), high = fmax(high, out[i]), mean += out[i] / ELEMS;
    }
    for (int i = 0; i < ELEMS; i++) squares += (out[i] - mean) * (out[i] - mean);
    for (int i = 0; i < ELEMS; i++) {
        int post = (int)row(s)[PL_ROLLOUT_POST_PROCESS];
        if (post == PL_POST_MINMAX) out[i] = (out[i] - low) / (high - low);
        if (post == PL_POST_ZSCORE) out[i] = (out[i] - mean) / (sqrt(squares / (ELEMS - 1)) + 1e-8);
        out[i] = fmax(row(s)[PL_ROLLOUT_CLAMP_LOW], fmin(row(s)[PL_ROLLOUT_CLAMP_HIGH], out[i]));
    }
}

static void prepare_policies(int post)
{
    prepare_rows(0);
    normals(1, SAMPLES * MAX, y);
    for (int s = 0; s < SAMPLES; s++) {
        row(s)[PL_ROLLOUT_POLICY] = (float)(s % PL_POLICY_COUNT), row(s)[PL_ROLLOUT_DT] = 0.05f;
        row(s)[PL_ROLLOUT_ALPHA] = 0.3f, row(s)[PL_ROLLOUT_POST_PROCESS] = (float)post;
        if (s > 2) row(s)[PL_ROLLOUT_CLAMP_LOW] = -0.25f, row(s)[PL_ROLLOUT_CLAMP_HIGH] = 0.75f;
    }
}

static void check_evolve(int post, pl_team team, int again)
{
    double want[ELEMS];
    float before[SAMPLES * ELEMS];
    prepare_policies(post);
    memcpy(before, x, sizeof before);
    pl_evolve_call c = {SAMPLES, ELEMS, rows, x, previous, y, PL_REAL_F32};
    pl_evolve_exec(&c, team);
    assert_memory_equal(before, previous, sizeof before);
    for (int s = 0; s < SAMPLES; s++) {
        expected_state(s, before + s * ELEMS, y + s * ELEMS, want);
        for (int i = 0; i < ELEMS; i++) assert_true(fabs(want[i] - (double)x[s * ELEMS + i]) < 2e-6);
    }
    if (again) assert_memory_equal(first, x, sizeof before);
    memcpy(first, x, sizeof before);
}

static void policies_and_post_processes(void **state)
{
    (void)state;
    for (int post = 0; post < PL_POST_COUNT; post++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
            for (int t = 0; t < 4; t++) check_evolve(post, (pl_team){threads[t], (pl_isa)isa}, t > 0);
}

/* alpha 1 and dt 0 keep the state; a constant state becomes 0; numbers that are none are not hidden. */
static void states_that_stay(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        pl_team team = {1, (pl_isa)isa};
        prepare_policies(PL_POST_NONE);
        pl_evolve_call c = {1, ELEMS, rows, x, NULL, y, PL_REAL_F32};
        memcpy(first, x, sizeof first);
        row(0)[PL_ROLLOUT_POLICY] = PL_POLICY_RESIDUAL, row(0)[PL_ROLLOUT_DT] = 0;
        pl_evolve_exec(&c, team);
        row(0)[PL_ROLLOUT_POLICY] = PL_POLICY_CONVEX, row(0)[PL_ROLLOUT_ALPHA] = 1;
        pl_evolve_exec(&c, team);
        assert_memory_equal(first, x, sizeof first);
        row(0)[PL_ROLLOUT_POLICY] = PL_POLICY_AUTOREGRESSIVE;
        for (int post = PL_POST_MINMAX; post < PL_POST_COUNT; post++) {
            row(0)[PL_ROLLOUT_POST_PROCESS] = (float)post;
            for (int i = 0; i < ELEMS; i++) y[i] = 2.5f;
            pl_evolve_exec(&c, team);
            for (int i = 0; i < ELEMS; i++) assert_true(x[i] == 0);
        }
        y[5] = NAN, row(0)[PL_ROLLOUT_POST_PROCESS] = PL_POST_NONE, row(0)[PL_ROLLOUT_CLAMP_HIGH] = 1;
        pl_evolve_exec(&c, team);
        assert_true(isnan(x[5]) && x[6] == 1);
    }
}

static void states_from_sixteen_bits(void **state)
{
    (void)state;
    uint16_t narrow[ELEMS];
    for (int type = PL_REAL_BF16; type <= PL_REAL_F16; type++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            prepare_policies(PL_POST_NONE);
            row(0)[PL_ROLLOUT_POLICY] = PL_POLICY_CONVEX;
            for (int i = 0; i < ELEMS; i++) pl_real_put((pl_real)type, narrow, i, y[i]);
            memcpy(first, x, sizeof first);
            pl_evolve_call c = {1, ELEMS, rows, x, NULL, narrow, (pl_real)type};
            pl_evolve_exec(&c, (pl_team){1, (pl_isa)isa});
            for (int i = 0; i < ELEMS; i++)
                assert_true(fabs(policy(0, first[i], pl_real_get((pl_real)type, narrow, i)) - (double)x[i]) < 2e-6);
        }
}

/* ---- metrics ---- */

static float metrics[SAMPLES * PL_FIELD_METRICS];

static double expected_entropy(const float *v)
{
    double low = v[0], high = v[0], sum = 0;
    for (int i = 0; i < ELEMS; i++) low = fmin(low, v[i]), high = fmax(high, v[i]);
    for (int b = 0; b < PL_FIELD_BINS; b++) {
        double from = low + b * (high - low) / PL_FIELD_BINS, to = low + (b + 1) * (high - low) / PL_FIELD_BINS, n = 0;
        for (int i = 0; i < ELEMS; i++) n += v[i] >= from && (v[i] < to || b == PL_FIELD_BINS - 1);
        if (n > 0) sum -= n / ELEMS * log(n / ELEMS);
    }
    return sum;
}

static void expected_metrics(const float *v, const float *before, double *m)
{
    double mean = 0, mean_before = 0, own = 0, both = 0, other = 0;
    m[PL_FIELD_ENERGY] = m[PL_FIELD_MEAN_MAGNITUDE] = 0;
    for (int i = 0; i < ELEMS; i++) {
        m[PL_FIELD_ENERGY] += (double)v[i] * v[i], m[PL_FIELD_MEAN_MAGNITUDE] += fabs((double)v[i]) / ELEMS;
        mean += (double)v[i] / ELEMS, mean_before += (double)before[i] / ELEMS;
    }
    for (int i = 0; i < ELEMS; i++) {
        own += (v[i] - mean) * (v[i] - mean), other += (before[i] - mean_before) * (before[i] - mean_before);
        both += (v[i] - mean) * (before[i] - mean_before);
    }
    m[PL_FIELD_ENTROPY] = expected_entropy(v);
    m[PL_FIELD_AUTOCORRELATION] = both / sqrt(own * other);
    m[PL_FIELD_VARIANCE] = own / (ELEMS - 1);
}

static void check_metrics(int t, pl_team team)
{
    double want[PL_FIELD_METRICS];
    normals(2, SAMPLES * ELEMS, x);
    normals(3, SAMPLES * ELEMS, previous);
    for (int i = 0; i < SAMPLES * ELEMS; i++) previous[i] = 0.4f * previous[i] + x[i] + 3;
    pl_field_metrics_exec(&(pl_field_metrics_call){SAMPLES, ELEMS, x, previous, metrics}, team);
    if (t == 0) memcpy(first, metrics, sizeof metrics);
    assert_memory_equal(first, metrics, sizeof metrics);
    for (int s = 0; s < SAMPLES; s++) {
        expected_metrics(x + s * ELEMS, previous + s * ELEMS, want);
        for (int k = 0; k < PL_FIELD_METRICS; k++)
            if (fabs(want[k] - (double)metrics[s * PL_FIELD_METRICS + k]) > 1e-6 * (1 + fabs(want[k])))
                fail_msg("metric %d: %.9g, expected %.9g", k, (double)metrics[s * PL_FIELD_METRICS + k], want[k]);
    }
}

static void metrics_of_random_states(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int t = 0; t < 4; t++) check_metrics(t, (pl_team){threads[t], (pl_isa)isa});
}

static void expect_metrics(pl_team team, const float *before, double energy, double entropy, double correlation,
                           double variance, double magnitude)
{
    const double want[PL_FIELD_METRICS] = {energy, entropy, correlation, variance, magnitude};
    pl_field_metrics_exec(&(pl_field_metrics_call){1, 100, x, before, metrics}, team);
    for (int k = 0; k < PL_FIELD_METRICS; k++)
        assert_true(isnan(want[k]) ? isnan(metrics[k]) : fabs(want[k] - (double)metrics[k]) <= 1e-6 * fabs(want[k]));
}

/* A constant state; one of two numbers, with itself, its opposite, and nothing before it; one that is no more. */
static void metrics_in_closed_form(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        pl_team team = {1, (pl_isa)isa};
        for (int i = 0; i < 100; i++) x[i] = 0.1f, previous[i] = (float)i;
        expect_metrics(team, previous, 100 * (double)0.1f * 0.1f, 0, 0, 0, 0.1f);
        for (int i = 0; i < 100; i++) x[i] = i % 4 == 0 ? 3 : -1, previous[i] = -2 * x[i];
        double entropy = -0.25 * log(0.25) - 0.75 * log(0.75);
        expect_metrics(team, previous, 300, entropy, -1, 300.0 / 99, 1.5);
        expect_metrics(team, x, 300, entropy, 1, 300.0 / 99, 1.5);
        expect_metrics(team, NULL, 300, entropy, 0, 300.0 / 99, 1.5);
        x[7] = NAN;
        expect_metrics(team, previous, NAN, NAN, NAN, NAN, NAN);
        x[7] = INFINITY;
        pl_field_metrics_exec(&(pl_field_metrics_call){1, 100, x, NULL, metrics}, team);
        assert_true(isinf(metrics[PL_FIELD_ENERGY]) && isnan(metrics[PL_FIELD_ENTROPY]));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_noise),
        cmocka_unit_test(correlated_noise_is_filtered_white_noise),
        cmocka_unit_test(dropout_is_that_noise),
        cmocka_unit_test(noise_alone_and_in_place),
        cmocka_unit_test(noise_in_sixteen_bits),
        cmocka_unit_test(noise_is_keyed),
        cmocka_unit_test(schedules),
        cmocka_unit_test(noise_has_its_moments),
        cmocka_unit_test(policies_and_post_processes),
        cmocka_unit_test(states_that_stay),
        cmocka_unit_test(states_from_sixteen_bits),
        cmocka_unit_test(metrics_of_random_states),
        cmocka_unit_test(metrics_in_closed_form),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

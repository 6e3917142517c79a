/* A convolution with a pool behind it, and its gradient, are held to the calls that they are made of, to the bit: with
 * y kept and without, in one call and sample by sample, for every type and level, odd sizes, small windows and
 * Winograd, with one thread and more. What the pool takes is held to a search of its own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/convolution_pool.h"
#include "backend/pool.h"
#include "base/philox.h"
#include "support/program.h"
#include "support/seed.h"

typedef struct trial {
    pl_convolution_shape s;
    pl_convolution_algorithm algorithm;
    pl_real type;
    int with_film, with_bias;
} trial;

typedef struct data {
    void *x, *weight, *g, *y, *pooled, *dx;
    float *bias, *gamma, *film, *moments, *spread, *dw;
    uint8_t *argmax;
    uint64_t y_elems, pooled_elems, x_elems, moment_elems, weight_elems;
} data;

static uint64_t seed;

static float number(uint64_t sample, uint64_t stream)
{
    pl_philox p = pl_philox_init(seed, stream);
    uint32_t out[4];
    pl_philox_block(&p, 0, sample, 0, out);
    return (float)((double)out[0] / 0x1p31 - 1);
}

static void *fill(pl_real type, uint64_t count, uint64_t stream)
{
    void *to = malloc((count + 16) * sizeof(float));
    assert_non_null(to);
    for (uint64_t i = 0; i < count; i++) pl_real_put(type, to, (int64_t)i, number(i, stream));
    return to;
}

static data make_data(const trial *t)
{
    const pl_convolution_shape *s = &t->s;
    data d = {.x_elems = (uint64_t)(s->batch * s->height * s->width * s->in),
              .y_elems = (uint64_t)(s->batch * s->out_height * s->out_width * s->out),
              .pooled_elems = (uint64_t)(s->batch * (s->out_height / 2) * (s->out_width / 2) * s->out),
              .moment_elems = (uint64_t)(s->batch * s->out_height * 2 * s->out),
              .weight_elems = (uint64_t)(s->out * s->kernel * s->kernel * s->in)};
    d.x = fill(t->type, d.x_elems, 1), d.weight = fill(t->type, d.weight_elems, 2);
    d.g = fill(t->type, d.pooled_elems, 3), d.y = fill(t->type, d.y_elems, 4);
    d.pooled = fill(t->type, d.pooled_elems, 5), d.dx = fill(t->type, d.x_elems, 6);
    d.bias = fill(PL_REAL_F32, (uint64_t)s->out, 7), d.gamma = fill(PL_REAL_F32, (uint64_t)s->out, 8);
    d.film = fill(PL_REAL_F32, (uint64_t)(2 * s->batch * s->out), 9);
    d.moments = fill(PL_REAL_F32, d.moment_elems, 10), d.spread = fill(PL_REAL_F32, (uint64_t)(3 * s->out), 11);
    d.dw = fill(PL_REAL_F32, d.weight_elems, 12);
    d.argmax = calloc(d.pooled_elems + 16, 1);
    assert_non_null(d.argmax);
    d.gamma[0] = 0; /* then the first of each window counts */
    return d;
}

static void destroy(data *d)
{
    void *const all[] = {d->x,     d->weight, d->g,       d->y,      d->pooled, d->dx,    d->bias,
                         d->gamma, d->film,   d->moments, d->spread, d->dw,     d->argmax};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void *workspace_of(uint64_t bytes)
{
    void *w = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(w);
    memset(w, 0xff, bytes);
    return w;
}

static pl_convolution_call convolution_of(const trial *t, const data *d)
{
    return (pl_convolution_call){.shape = t->s,
                                 .algorithm = t->algorithm,
                                 .type = t->type,
                                 .x = d->x,
                                 .weight = d->weight,
                                 .bias = t->with_bias ? d->bias : NULL};
}

static void convolve(pl_convolution_call c, pl_team team)
{
    void *workspace = workspace_of(pl_convolution_workspace_bytes(&c, team));
    pl_convolution_exec(&c, workspace, team);
    free(workspace);
}

static void pool(const trial *t, data *d, int keep, pl_team team)
{
    pl_convolution_pool_call c = {.convolution = convolution_of(t, d),
                                  .gamma = d->gamma,
                                  .film = t->with_film ? d->film : NULL,
                                  .pooled = d->pooled,
                                  .argmax = d->argmax};
    c.convolution.moments = d->moments;
    c.convolution.y = keep ? d->y : NULL;
    void *workspace = workspace_of(pl_convolution_pool_workspace_bytes(&c, team));
    pl_convolution_pool_exec(&c, workspace, team);
    free(workspace);
}

/* By a search through each window of y. */
static void check_pool(const trial *t, const data *d, const void *y)
{
    const pl_convolution_shape *s = &t->s;
    const int64_t w = s->out_width / 2, h = s->out_height / 2;
    for (int64_t e = 0; e < (int64_t)d->pooled_elems; e++) {
        const int64_t c = e % s->out, j = e / s->out % w, i = e / s->out / w % h, b = e / s->out / w / h;
        const float slope = d->gamma[c] * (t->with_film ? d->film[2 * b * s->out + c] : 1);
        float best = 0;
        int place = -1;
        for (int k = 0; k < 4; k++) {
            const int64_t at = ((b * s->out_height + 2 * i + k / 2) * s->out_width + 2 * j + k % 2) * s->out + c;
            const float v = pl_real_get(t->type, y, at);
            if (place < 0 || (slope > 0 && v > best) || (slope < 0 && v < best)) best = v, place = k;
        }
        if (pl_real_get(t->type, d->pooled, e) != best || d->argmax[e] != place)
            fail_msg("number %lld of the pool is %g from %d, expected %g from %d", (long long)e,
                     pl_real_get(t->type, d->pooled, e), d->argmax[e], best, place);
    }
}

static void check_forward(const trial *t, pl_team team)
{
    data d = make_data(t), kept = make_data(t);
    pl_convolution_call c = convolution_of(t, &d);
    c.y = d.y, c.moments = d.moments;
    convolve(c, (pl_team){1, team.isa});
    pool(t, &kept, 1, team);
    assert_memory_equal(kept.y, d.y, d.y_elems * (uint64_t)pl_real_bytes(t->type));
    assert_memory_equal(kept.moments, d.moments, d.moment_elems * sizeof(float));
    check_pool(t, &kept, d.y);
    pool(t, &d, 0, team);
    assert_memory_equal(kept.moments, d.moments, d.moment_elems * sizeof(float));
    assert_memory_equal(kept.pooled, d.pooled, d.pooled_elems * (uint64_t)pl_real_bytes(t->type));
    assert_memory_equal(kept.argmax, d.argmax, d.pooled_elems);
    destroy(&d);
    destroy(&kept);
}

/* The calls that conv2d_pool_bwd stands for, each of the whole batch. */
static void backward_by_calls(const trial *t, data *d, pl_team team)
{
    pl_convolution_call c = convolution_of(t, d);
    c.y = d->y;
    convolve(c, team);
    pl_spread_call s = {.samples = t->s.batch,
                        .height = t->s.out_height,
                        .width = t->s.out_width,
                        .channels = t->s.out,
                        .g = d->g,
                        .argmax = d->argmax,
                        .spread = d->spread,
                        .y = d->y,
                        .dy = d->y,
                        .type = t->type};
    pl_spread_exec(&s, team);
    pl_convolution_dw_call dw = {.shape = t->s, .type = t->type, .dy = d->y, .x = d->x, .dw = d->dw};
    dw.algorithm = pl_convolution_choose_dw(&t->s, t->algorithm);
    void *workspace = workspace_of(pl_convolution_dw_workspace_bytes(&dw, team));
    pl_convolution_dw_exec(&dw, workspace, team);
    free(workspace);
    pl_convolution_dx_call dx = {
        .shape = t->s, .algorithm = t->algorithm, .type = t->type, .dy = d->y, .weight = d->weight, .dx = d->dx};
    workspace = workspace_of(pl_convolution_dx_workspace_bytes(&dx, team));
    pl_convolution_dx_exec(&dx, workspace, team);
    free(workspace);
}

/* dx in the place of x, which has been read by then. */
static void check_backward(const trial *t, pl_team team)
{
    data whole = make_data(t), d = make_data(t);
    for (uint64_t e = 0; e < d.pooled_elems; e++) whole.argmax[e] = d.argmax[e] = (uint8_t)(number(e, 20) * 2 + 2) & 3;
    backward_by_calls(t, &whole, (pl_team){1, team.isa});
    pl_convolution_pool_bwd_call c = {
        .convolution = convolution_of(t, &d), .g = d.g, .argmax = d.argmax, .spread = d.spread, .dx = d.x, .dw = d.dw};
    void *workspace = workspace_of(pl_convolution_pool_bwd_workspace_bytes(&c, team));
    pl_convolution_pool_bwd_exec(&c, workspace, team);
    free(workspace);
    assert_memory_equal(d.dw, whole.dw, d.weight_elems * sizeof(float));
    assert_memory_equal(d.x, whole.dx, d.x_elems * (uint64_t)pl_real_bytes(t->type));
    destroy(&whole);
    destroy(&d);
}

static trial make_trial(int64_t batch, int64_t height, int64_t width, int64_t in, int64_t out, int64_t kernel)
{
    trial t = {.s = {batch, height, width, in, 0, 0, out, kernel, 1, kernel / 2}};
    t.s.out_height = pl_convolution_outputs(height, kernel, 1, t.s.pad);
    t.s.out_width = pl_convolution_outputs(width, kernel, 1, t.s.pad);
    t.algorithm = pl_convolution_choose(&t.s);
    t.with_film = batch > 2, t.with_bias = in > 1;
    return t;
}

/* A channel without a slope takes the first of each window, whatever the others are. */
static void the_first_where_there_is_no_slope(void **state)
{
    (void)state;
    trial t = make_trial(2, 8, 10, 2, 19, 3);
    for (t.type = PL_REAL_F32; t.type <= PL_REAL_F16; t.type++)
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
            data d = make_data(&t);
            memset(d.gamma, 0, (size_t)t.s.out * sizeof *d.gamma);
            pl_real_put(t.type, d.x, 60, INFINITY);
            pool(&t, &d, 1, (pl_team){1, isa});
            for (uint64_t e = 0; e < d.pooled_elems; e++) assert_int_equal(d.argmax[e], 0);
            destroy(&d);
        }
}

static void check(const trial *t, pl_isa isa, int threads)
{
    check_forward(t, (pl_team){threads, isa});
    check_backward(t, (pl_team){threads, isa});
}

static void the_same_as_its_calls(void **state)
{
    (void)state;
    trial trials[] = {make_trial(3, 9, 14, 1, 19, 3), make_trial(2, 18, 21, 17, 35, 3), make_trial(4, 5, 6, 3, 5, 2),
                      make_trial(3, 7, 8, 4, 6, 1)};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (trials[i].type = PL_REAL_F32; trials[i].type <= PL_REAL_F16; trials[i].type++)
            for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
                for (int threads = 1; threads <= 3; threads += 2) check(&trials[i], isa, threads);
}

/* So large that each sample goes alone. */
static void one_sample_after_the_other(void **state)
{
    (void)state;
    const trial t = make_trial(3, 162, 220, 1, 64, 3);
    check(&t, pl_isa_of_machine(), 2);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_as_its_calls),
                                       cmocka_unit_test(the_first_where_there_is_no_slope),
                                       cmocka_unit_test(one_sample_after_the_other)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Patches, positions, a row in front, capsules, what is picked and copied, against loops straight from the definition:
 * every level of this machine, f32, bf16 and f16, several teams, sample by sample, in place, outputs left out, guard
 * zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/tokens.h"
#include "support/guarded.h"
#include "support/program.h"

static const pl_real types[] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};
static const int teams[] = {1, 2, 5};
enum { TYPES = 3, TEAMS = 3 };

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

/* An array of numbers of this type. */
static void *numbers(pl_real type, int64_t count, uint64_t stream)
{
    const float *from = guarded_normal(count, stream);
    void *to = guarded(type, count);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, from[i]);
    return to;
}

static void *copy_of(pl_real type, const void *from, int64_t count)
{
    return memcpy(guarded(type, count), from, (size_t)(count * pl_real_bytes(type)));
}

/* ---- patches ---- */

static uint8_t pixel(int64_t i) { return (uint8_t)((uint64_t)i * 2654435761u >> 13); }

static float patch_element(const pl_patches_call *c, int64_t index)
{
    int64_t p = c->patch, q = index % p, r = index / p % p, channel = index / p / p % c->channels,
            patch = index / p / p / c->channels, columns = c->width / p, gx = patch % columns,
            gy = patch / columns % (c->height / p), b = patch / columns / (c->height / p);
    int64_t at = (b * c->height + gy * p + r) * c->width + gx * p + q;
    return (float)c->x[at * c->depth + (c->depth > 1 ? channel : 0)] / 255.0f;
}

static void check_patches(pl_patches_call c)
{
    int64_t bytes = c.samples * c.height * c.width * c.depth, count = bytes / c.depth * c.channels;
    uint8_t *x = guarded_bytes((uint64_t)bytes, 3);
    for (int64_t i = 0; i < bytes; i++) x[i] = pixel(i);
    c.x = x;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TEAMS; t++) {
            c.y = guarded_f32(count);
            pl_patches_exec(&c, (pl_team){teams[t], isa});
            for (int64_t i = 0; i < count; i++)
                if (c.y[i] != patch_element(&c, i)) fail_msg("patch of %d: element %d", (int)c.patch, (int)i);
        }
    guarded_check_all();
    guarded_free_all();
}

static void patches(void **state)
{
    (void)state;
    check_patches((pl_patches_call){.samples = 3, .height = 32, .width = 48, .depth = 1, .patch = 16, .channels = 3});
    check_patches((pl_patches_call){.samples = 2, .height = 48, .width = 32, .depth = 3, .patch = 16, .channels = 3});
    check_patches((pl_patches_call){.samples = 5, .height = 46, .width = 69, .depth = 1, .patch = 23, .channels = 2});
    check_patches((pl_patches_call){.samples = 2, .height = 5, .width = 3, .depth = 1, .patch = 1, .channels = 1});
    check_patches((pl_patches_call){.samples = 1, .height = 6, .width = 9, .depth = 4, .patch = 3, .channels = 4});
}

/* The image that is drawn: white is 1, black 0, and every channel of a patch is the same. */
static void a_page(void **state)
{
    (void)state;
    static uint8_t page[224 * 224];
    static float y[196 * 768];
    memset(page, 255, sizeof page);
    page[17 * 224 + 34] = 0; /* row 1, column 2 of the patches; there row 1, column 2 */
    pl_patches_call c = {.samples = 1, .height = 224, .width = 224, .depth = 1, .patch = 16, .channels = 3, .x = page};
    c.y = y;
    pl_patches_exec(&c, (pl_team){2, pl_isa_of_machine()});
    for (int64_t i = 0; i < 196 * 768; i++) {
        bool black = i / 768 == 16 && i % 256 == 18;
        assert_true(y[i] == (black ? 0 : 1));
    }
}

/* ---- pixels ---- */

static void pixels(void **state)
{
    (void)state;
    static const struct {
        float x;
        uint8_t y;
    } known[] = {
        {0, 0},     {1, 255},   {-0.0f, 0},      {-3, 0},         {1.5f, 255},    {0.5f, 128}, /* 127.5: to even */
        {0.1f, 26}, {0.3f, 77}, {1 / 255.0f, 1}, {INFINITY, 255}, {-INFINITY, 0}, {NAN, 0}};
    enum { KNOWN = sizeof known / sizeof *known, COUNT = 1000 };
    for (int type = 0; type < TYPES; type++) {
        void *x = numbers(types[type], COUNT, 4);
        for (int i = 0; i < KNOWN; i++)
            if (type == 0 || i < 6 || i > 8) pl_real_put(types[type], x, i, known[i].x);
        for (int t = 0; t < TEAMS; t++) {
            uint8_t *y = guarded_bytes(COUNT, 3);
            pl_pixels_exec(&(pl_pixels_call){COUNT, x, y, types[type]}, (pl_team){teams[t], pl_isa_of_machine()});
            for (int i = 0; i < COUNT; i++) {
                const double v = fmin(fmax((double)pl_real_get(types[type], x, i), 0), 1) * 255;
                if (i < KNOWN && (type == 0 || i < 6 || i > 8))
                    assert_int_equal(y[i], known[i].y);
                else
                    assert_true(fabs(v - y[i]) <= 0.5);
            }
        }
    }
    guarded_check_all();
    guarded_free_all();
}

/* ---- positions ---- */

static void check_positions(pl_real type, pl_isa isa, int64_t samples, int64_t elems)
{
    int64_t count = samples * elems;
    void *x = numbers(type, count, 1);
    float *p = guarded_normal(elems, 2);
    for (int t = 0; t < TEAMS; t++)
        for (int in_place = 0; in_place < 2; in_place++) {
            void *from = copy_of(type, x, count), *y = in_place ? from : guarded(type, count);
            pl_add_positions_call c = {samples, elems, from, p, y, type};
            pl_add_positions_exec(&c, (pl_team){teams[t], isa});
            for (int64_t i = 0; i < count; i++) {
                float want = 0;
                pl_real_put(type, &want, 0, pl_real_get(type, x, i) + p[i % elems]);
                assert_true(pl_real_get(type, y, i) == pl_real_get(type, &want, 0));
            }
        }
    guarded_check_all();
    guarded_free_all();
}

static void positions(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TYPES; t++) {
            check_positions(types[t], isa, 1, 1);
            check_positions(types[t], isa, 7, 33);
            check_positions(types[t], isa, 3, 5000);
        }
}

/* ---- a row in front ---- */

/* Rounded to the type, as it would be stored. */
static float stored(pl_real type, float x)
{
    float y = 0;
    pl_real_put(type, &y, 0, x);
    return pl_real_get(type, &y, 0);
}

static void check_prepended(pl_real type, pl_isa isa, int64_t samples, int64_t rows, int64_t width)
{
    int64_t count = samples * (1 + rows) * width;
    void *x = numbers(type, samples * rows * width, 1);
    float *row = guarded_normal(width, 2);
    for (int t = 0; t < 2 * TEAMS; t++) {
        void *y = guarded(type, count);
        pl_prepend_row_call c = {samples, rows, width, x, t % 2 ? NULL : row, y, type};
        pl_prepend_row_exec(&c, (pl_team){teams[t / 2], isa});
        for (int64_t i = 0; i < count; i++) {
            int64_t b = i / width / (1 + rows), n = i / width % (1 + rows);
            float first = t % 2 ? 0 : stored(type, row[i % width]);
            assert_true(pl_real_get(type, y, i) ==
                        (n == 0 ? first : pl_real_get(type, x, (b * rows + n - 1) * width + i % width)));
        }
    }
    guarded_check_all();
    guarded_free_all();
}

/* Samples are added one after the other to what is there, so a call for each gives the same bits. */
static void check_dropped(pl_real type, pl_isa isa, int64_t samples, int64_t rows, int64_t width)
{
    int64_t of_x = (1 + rows) * width, of_y = rows * width;
    void *x = numbers(type, samples * of_x, 1);
    float *before = guarded_normal(width, 2), *want = guarded_copy(before, width);
    for (int64_t i = 0; i < samples * width; i++) want[i % width] += pl_real_get(type, x, i / width * of_x + i % width);
    for (int t = 0; t < 4 * TEAMS; t++) {
        void *y = t % 4 == 3 ? NULL : guarded(type, samples * of_y);
        float *sum = t % 4 == 2 ? NULL : guarded_copy(before, width);
        int64_t each = t % 2 ? 1 : samples;
        for (int64_t b = 0; b < samples; b += each) {
            pl_drop_row_call c = {each, rows, width, pl_real_at(type, x, b * of_x), NULL, sum, type};
            c.y = y ? pl_real_at(type, y, b * of_y) : NULL;
            pl_drop_row_exec(&c, (pl_team){teams[t / 4], isa});
        }
        if (sum) assert_memory_equal(sum, want, (size_t)width * sizeof *sum);
        for (int64_t i = 0; i < samples * of_y && y; i++)
            assert_true(pl_real_get(type, y, i) == pl_real_get(type, x, i / of_y * of_x + width + i % of_y));
    }
    guarded_check_all();
    guarded_free_all();
}

static void rows_in_front(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 4, 5}, {7, 1, 33}, {2, 49, 96}, {5, 6, 401}};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < TYPES * 5; i++) {
            check_prepended(types[i / 5], isa, sizes[i % 5][0], sizes[i % 5][1], sizes[i % 5][2]);
            check_dropped(types[i / 5], isa, sizes[i % 5][0], sizes[i % 5][1], sizes[i % 5][2]);
        }
}

/* ---- capsules ---- */

/* How a result is made: all of these must give the same bits. */
enum { WAYS = 4 };
static const struct {
    int threads;
    bool by_sample, in_place;
} ways[WAYS] = {{1, false, false}, {1, true, true}, {3, false, true}, {3, true, false}};

typedef struct pool {
    int64_t samples, positions, channels, capsules;
    pl_real type;
    void *t, *logits, *dy, *partial;
    float *da;
} pool;

static int64_t tokens_of(const pool *p) { return p->samples * p->positions * p->channels; }
static int64_t weights_of(const pool *p) { return p->samples * p->positions * p->capsules; }
static int64_t sums_of(const pool *p) { return p->samples * p->capsules * p->channels; }

static void make_operands(pool *p)
{
    p->t = numbers(p->type, tokens_of(p), 1), p->logits = numbers(p->type, weights_of(p), 2);
    p->dy = numbers(p->type, sums_of(p), 3), p->partial = numbers(p->type, tokens_of(p), 4);
    p->da = guarded_normal(weights_of(p), 5);
}

static double weight_of(const pool *p, int64_t b, int64_t k, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < p->positions; i++)
        sum += exp(pl_real_get(p->type, p->logits, (b * p->positions + i) * p->capsules + k) -
                   pl_real_get(p->type, p->logits, (b * p->positions + n) * p->capsules + k));
    return 1 / sum;
}

/* What a step of the type, and sums in f32, may lose. */
static void assert_near(pl_real type, const void *got, int64_t i, double want, const char *what)
{
    double step = type == PL_REAL_F32 ? 4e-6 : type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11;
    double x = pl_real_get(type, got, i);
    if (!(fabs(x - want) <= step * fabs(want) + 4e-6))
        fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, x, want);
}

static void check_sums(const pool *p, const void *y, const float *a)
{
    for (int64_t i = 0; i < p->samples * p->capsules; i++) {
        int64_t b = i / p->capsules;
        double all = 0;
        for (int64_t n = 0; n < p->positions; n++) {
            assert_near(PL_REAL_F32, a, i * p->positions + n, weight_of(p, b, i % p->capsules, n), "a");
            all += a[i * p->positions + n];
        }
        assert_true(fabs(all - 1) < 1e-5);
        for (int64_t c = 0; c < p->channels; c++) {
            double sum = 0;
            for (int64_t n = 0; n < p->positions; n++)
                sum += (double)a[i * p->positions + n] *
                       pl_real_get(p->type, p->t, (b * p->positions + n) * p->channels + c);
            assert_near(p->type, y, i * p->channels + c, sum, "y");
        }
    }
}

/* The call of `count` samples from sample `b` on. */
static pl_capsule_pool_call forward_of(const pool *p, int64_t b, int64_t count, void *y, float *a)
{
    int64_t weights = p->positions * p->capsules;
    return (pl_capsule_pool_call){count,
                                  p->positions,
                                  p->channels,
                                  p->capsules,
                                  pl_real_at(p->type, p->t, b * p->positions * p->channels),
                                  pl_real_at(p->type, p->logits, b * weights),
                                  pl_real_at(p->type, y, b * p->capsules * p->channels),
                                  a ? a + b * weights : NULL,
                                  p->type};
}

static void check_forward(const pool *p, pl_isa isa)
{
    void *first = guarded(p->type, sums_of(p));
    for (int w = 0; w < WAYS; w++) {
        pl_team team = {ways[w].threads, isa};
        void *y = w == 0 ? first : guarded(p->type, sums_of(p));
        float *a = w % 2 == 0 ? guarded_f32(weights_of(p)) : NULL;
        int64_t count = ways[w].by_sample ? 1 : p->samples;
        for (int64_t b = 0; b < p->samples; b += count) {
            pl_capsule_pool_call c = forward_of(p, b, count, y, a);
            pl_capsule_pool_exec(&c, guarded_bytes(pl_capsule_pool_workspace_bytes(&c, team), 0), team);
        }
        if (a) check_sums(p, y, a);
        assert_memory_equal(y, first, (size_t)(sums_of(p) * pl_real_bytes(p->type)));
    }
}

static double worth_of(const pool *p, int64_t b, int64_t k, int64_t n)
{
    double sum = p->da[(b * p->capsules + k) * p->positions + n];
    for (int64_t c = 0; c < p->channels; c++)
        sum += (double)pl_real_get(p->type, p->dy, (b * p->capsules + k) * p->channels + c) *
               pl_real_get(p->type, p->t, (b * p->positions + n) * p->channels + c);
    return sum;
}

static void check_gradients(const pool *p, const void *dt, const void *dlogits)
{
    double *weight = guarded_bytes((uint64_t)weights_of(p) * sizeof *weight, 0); /* [sample, capsule, position] */
    for (int64_t i = 0; i < weights_of(p); i++)
        weight[i] = weight_of(p, i / p->positions / p->capsules, i / p->positions % p->capsules, i % p->positions);
    for (int64_t i = 0; i < tokens_of(p); i++) {
        int64_t n = i / p->channels % p->positions, b = i / p->channels / p->positions;
        double sum = pl_real_get(p->type, p->partial, i);
        for (int64_t k = 0; k < p->capsules; k++)
            sum += weight[(b * p->capsules + k) * p->positions + n] *
                   pl_real_get(p->type, p->dy, (b * p->capsules + k) * p->channels + i % p->channels);
        assert_near(p->type, dt, i, sum, "dt");
    }
    for (int64_t i = 0; i < p->samples * p->capsules; i++) {
        int64_t b = i / p->capsules, k = i % p->capsules;
        double mean = 0;
        for (int64_t n = 0; n < p->positions; n++) mean += weight[i * p->positions + n] * worth_of(p, b, k, n);
        for (int64_t n = 0; n < p->positions; n++)
            assert_near(p->type, dlogits, (b * p->positions + n) * p->capsules + k,
                        weight[i * p->positions + n] * (worth_of(p, b, k, n) - mean), "dlogits");
    }
}

static void run_backward(const pool *p, int w, pl_isa isa, void **dt, void **dlogits)
{
    pl_team team = {ways[w].threads, isa};
    void *partial = copy_of(p->type, p->partial, tokens_of(p)), *logits = copy_of(p->type, p->logits, weights_of(p));
    *dt = ways[w].in_place ? partial : guarded(p->type, tokens_of(p));
    *dlogits = ways[w].in_place ? logits : guarded(p->type, weights_of(p));
    int64_t count = ways[w].by_sample ? 1 : p->samples, weights = p->positions * p->capsules;
    for (int64_t b = 0; b < p->samples; b += count) {
        int64_t at = b * p->positions * p->channels;
        pl_capsule_pool_bwd_call c = {count,
                                      p->positions,
                                      p->channels,
                                      p->capsules,
                                      pl_real_at(p->type, p->dy, b * p->capsules * p->channels),
                                      pl_real_at(p->type, p->t, at),
                                      pl_real_at(p->type, logits, b * weights),
                                      p->da + b * weights,
                                      pl_real_at(p->type, partial, at),
                                      pl_real_at(p->type, *dt, at),
                                      pl_real_at(p->type, *dlogits, b * weights),
                                      p->type};
        pl_capsule_pool_bwd_exec(&c, guarded_bytes(pl_capsule_pool_bwd_workspace_bytes(&c, team), 0), team);
    }
}

/* dt over t, and nothing else. */
static void check_alone(const pool *p, pl_isa isa)
{
    pl_team team = {2, isa};
    void *t = copy_of(p->type, p->t, tokens_of(p)), *dt = guarded(p->type, tokens_of(p));
    pl_capsule_pool_bwd_call c = {p->samples, p->positions, p->channels, p->capsules, p->dy, p->t,
                                  p->logits,  NULL,         NULL,        dt,          NULL,  p->type};
    pl_capsule_pool_bwd_exec(&c, guarded_bytes(pl_capsule_pool_bwd_workspace_bytes(&c, team), 0), team);
    c.t = c.dt = t;
    pl_capsule_pool_bwd_exec(&c, guarded_bytes(pl_capsule_pool_bwd_workspace_bytes(&c, team), 0), team);
    assert_memory_equal(t, dt, (size_t)(tokens_of(p) * pl_real_bytes(p->type)));
}

static void check_pool(pool p)
{
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        void *dt, *dlogits, *more, *and_more;
        make_operands(&p);
        check_forward(&p, isa);
        run_backward(&p, 0, isa, &dt, &dlogits);
        check_gradients(&p, dt, dlogits);
        for (int w = 1; w < WAYS; w++) {
            run_backward(&p, w, isa, &more, &and_more);
            assert_memory_equal(dt, more, (size_t)(tokens_of(&p) * pl_real_bytes(p.type)));
            assert_memory_equal(dlogits, and_more, (size_t)(weights_of(&p) * pl_real_bytes(p.type)));
        }
        check_alone(&p, isa);
        guarded_check_all();
        guarded_free_all();
    }
}

static void capsules(void **state)
{
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        check_pool((pool){.samples = 1, .positions = 1, .channels = 1, .capsules = 1, .type = types[t]});
        check_pool((pool){.samples = 3, .positions = 5, .channels = 17, .capsules = 2, .type = types[t]});
        check_pool((pool){.samples = 5, .positions = 19, .channels = 37, .capsules = 13, .type = types[t]});
        check_pool((pool){.samples = 2, .positions = 66, .channels = 96, .capsules = 12, .type = types[t]});
    }
}

/* ---- what is picked ---- */

static void picks(pl_isa isa, int64_t count, const float *x, const int32_t *want)
{
    int32_t *y = guarded_bytes((uint64_t)count * sizeof *y, 0);
    float *from = guarded_copy(x, 6);
    pl_top_k_exec(&(pl_top_k_call){1, 6, count, from, y}, (pl_team){1, isa});
    assert_memory_equal(y, want, (size_t)count * sizeof *y);
    guarded_check_all();
    guarded_free_all();
}

static void the_first_of_equal_ones(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        picks(isa, 6, (float[]){1, 3, 2, 3, 1, 2}, (int32_t[]){1, 3, 2, 5, 0, 4});
        picks(isa, 2, (float[]){0, -0.0f, 0, -0.0f, 0, 0}, (int32_t[]){0, 1});
        picks(isa, 6, (float[]){NAN, 1, NAN, INFINITY, -INFINITY, 1}, (int32_t[]){3, 1, 5, 4, 0, 2});
        picks(isa, 3, (float[]){NAN, NAN, NAN, NAN, NAN, -1}, (int32_t[]){5, 0, 1});
        picks(isa, 1, (float[]){-5, -4, -3, -3, -4, -5}, (int32_t[]){2});
    }
}

/* Rows of a few different numbers, so that many are equal. */
static void check_top_k(int64_t rows, int64_t width, int64_t count)
{
    int32_t *first = NULL;
    float *x = guarded_normal(rows * width, 1);
    for (int64_t i = 0; i < rows * width; i++) x[i] = roundf(4 * x[i]);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TEAMS; t++) {
            int32_t *y = guarded_bytes((uint64_t)(rows * count) * sizeof *y, 0);
            pl_top_k_exec(&(pl_top_k_call){rows, width, count, x, y}, (pl_team){teams[t], isa});
            first = first ? first : y;
            assert_memory_equal(y, first, (size_t)(rows * count) * sizeof *y);
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < count; j++) {
            const float *row = x + r * width;
            int32_t at = first[r * count + j];
            int64_t before = 0;
            assert_in_range(at, 0, width - 1);
            for (int64_t i = 0; i < width; i++) before += row[i] > row[at] || (row[i] == row[at] && i < at);
            assert_int_equal(before, j);
        }
    guarded_check_all();
    guarded_free_all();
}

static void the_largest(void **state)
{
    (void)state;
    check_top_k(1, 1, 1), check_top_k(7, 5, 5), check_top_k(24, 196, 4), check_top_k(200, 100, 33);
}

static void check_gather(pl_real type, pl_isa isa, int64_t samples, int64_t positions, int64_t count, int64_t width)
{
    int64_t tokens = samples * positions * width, picked = samples * count * width;
    void *t = numbers(type, tokens, 1), *dy = numbers(type, picked, 2), *partial = numbers(type, tokens, 3);
    int32_t *index = guarded_bytes((uint64_t)(samples * count) * sizeof *index, 0);
    for (int64_t i = 0; i < samples * count; i++) index[i] = pixel(i) % positions;
    for (int w = 0; w < TEAMS; w++) {
        void *y = guarded(type, picked), *kept = copy_of(type, partial, tokens), *dt = guarded(type, tokens);
        pl_team team = {teams[w], isa};
        pl_gather_rows_exec(&(pl_gather_rows_call){samples, positions, count, width * pl_real_bytes(type), t, index, y},
                            team);
        pl_gather_rows_bwd_exec(
            &(pl_gather_rows_bwd_call){samples, positions, count, width, dy, index, kept, kept, type}, team);
        pl_gather_rows_bwd_exec(&(pl_gather_rows_bwd_call){samples, positions, count, width, dy, index, NULL, dt, type},
                                team);
        for (int64_t i = 0; i < picked; i++) {
            int64_t j = i / width, row = j / count * positions + index[j];
            assert_true(pl_real_get(type, y, i) == pl_real_get(type, t, row * width + i % width));
        }
        for (int64_t i = 0; i < tokens; i++) {
            int64_t row = i / width, b = row / positions;
            double sum = 0;
            for (int64_t j = b * count; j < (b + 1) * count; j++)
                if (index[j] == row % positions) sum += pl_real_get(type, dy, j * width + i % width);
            assert_near(type, dt, i, sum, "dt");
            assert_near(type, kept, i, sum + pl_real_get(type, partial, i), "dt + partial");
        }
    }
    guarded_check_all();
    guarded_free_all();
}

static void check_repeat(pl_real type, pl_isa isa, int64_t rows, int64_t count, int64_t width)
{
    int64_t elems = rows * width;
    void *x = numbers(type, elems, 1), *dy = numbers(type, elems * count, 2);
    for (int w = 0; w < TEAMS; w++) {
        void *y = guarded(type, elems * count), *dx = guarded(type, elems);
        pl_team team = {teams[w], isa};
        pl_repeat_exec(&(pl_repeat_call){rows, count, width * pl_real_bytes(type), x, y}, team);
        pl_repeat_bwd_exec(&(pl_repeat_bwd_call){rows, count, width, dy, dx, type}, team);
        for (int64_t i = 0; i < elems * count; i++)
            assert_true(pl_real_get(type, y, i) == pl_real_get(type, x, i / width / count * width + i % width));
        for (int64_t i = 0; i < elems; i++) {
            double sum = 0;
            for (int64_t j = 0; j < count; j++)
                sum += pl_real_get(type, dy, (i / width * count + j) * width + i % width);
            assert_near(type, dx, i, sum, "dx");
        }
    }
    guarded_check_all();
    guarded_free_all();
}

static void copies(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TYPES; t++) {
            check_gather(types[t], isa, 1, 1, 1, 1), check_gather(types[t], isa, 3, 7, 12, 33);
            check_gather(types[t], isa, 2, 66, 48, 96);
            check_repeat(types[t], isa, 1, 1, 1), check_repeat(types[t], isa, 5, 3, 17);
            check_repeat(types[t], isa, 24, 4, 160);
        }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patches),
                                       cmocka_unit_test(a_page),
                                       cmocka_unit_test(pixels),
                                       cmocka_unit_test(positions),
                                       cmocka_unit_test(rows_in_front),
                                       cmocka_unit_test(capsules),
                                       cmocka_unit_test(the_first_of_equal_ones),
                                       cmocka_unit_test(the_largest),
                                       cmocka_unit_test(copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

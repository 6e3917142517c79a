/* Choosing tokens: against the distribution that temperature, top-k and top-p define, computed here in double, and
 * random cases of the whole chain against its definition step by step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "jobs/sample.h"
#include "support/program.h"
#include "support/seed.h"

enum { VOCAB = 12, DRAWS = 40000 };

static const float logits[VOCAB] = {0.5f, 2.0f, -1.0f, 2.0f, 0.0f, 1.0f, -3.0f, 0.25f, -0.5f, 1.5f, -2.0f, 0.75f};

/* Probability of each token by repeated selection of the largest. */
static void expected(const pl_sampling *s, double p[VOCAB])
{
    double weight[VOCAB], total = 0, kept = 0;
    int taken[VOCAB] = {0};
    for (int i = 0; i < VOCAB; i++) weight[i] = exp((double)logits[i] / s->temperature), p[i] = 0;
    double all = 0;
    int limit = s->top_k > 0 && s->top_k < VOCAB ? (int)s->top_k : VOCAB;
    for (int pass = 0; pass < 2; pass++) {
        memset(taken, 0, sizeof taken);
        kept = 0;
        for (int n = 0; n < limit; n++) {
            int best = -1;
            for (int i = 0; i < VOCAB; i++)
                if (!taken[i] && (best < 0 || logits[i] > logits[best])) best = i;
            taken[best] = 1;
            kept += weight[best];
            if (pass == 1) p[best] = weight[best], total += weight[best];
            if (pass == 1 && kept >= s->top_p * all) break;
        }
        all = kept;
    }
    for (int i = 0; i < VOCAB; i++) p[i] /= total;
}

static void check(pl_sampling s)
{
    double p[VOCAB], chi = 0;
    int count[VOCAB] = {0}, cells = 0;
    void *work = malloc(pl_sample_workspace_bytes(VOCAB));
    s.seed = 7;
    expected(&s, p);
    for (unsigned i = 0; i < DRAWS; i++) count[pl_sample_token(logits, VOCAB, &s, NULL, i, 0, work)]++;
    for (int i = 0; i < VOCAB; i++) {
        if (p[i] == 0)
            assert_int_equal(count[i], 0);
        else
            chi += pow(count[i] - DRAWS * p[i], 2) / (DRAWS * p[i]), cells++;
    }
    assert_true(chi < 40 ||
                cells < 2); /* 11 degrees of freedom: 40 is passed once in 30,000 seeds, and this seed is fixed */
    free(work);
}

static void test_distributions(void **state)
{
    (void)state;
    check((pl_sampling){.temperature = 1, .top_p = 1});
    check((pl_sampling){.temperature = 0.7, .top_p = 1, .top_k = 4});
    check((pl_sampling){.temperature = 1.3, .top_p = 0.8});
    check((pl_sampling){.temperature = 0.9, .top_p = 0.6, .top_k = 6});
    check((pl_sampling){.temperature = 1, .top_p = 1e-9});
}

static void test_greedy_takes_the_first_of_the_likeliest_and_never_nan(void **state)
{
    (void)state;
    float some[4] = {NAN, 1, 1, NAN}, none[2] = {NAN, NAN};
    char work[256];
    pl_sampling greedy = {.temperature = 0, .top_p = 1};
    assert_int_equal(pl_sample_token(logits, VOCAB, &greedy, NULL, 0, 0, work), 1);
    assert_int_equal(pl_sample_token(some, 4, &greedy, NULL, 0, 0, work), 1);
    assert_true(pl_sample_token(none, 2, &greedy, NULL, 0, 0, work) < 2);
    pl_sampling warm = {.temperature = 1, .top_p = 1};
    for (unsigned i = 0; i < 100; i++) {
        uint32_t id = pl_sample_token(some, 4, &warm, NULL, i, 0, work);
        assert_true(id == 1 || id == 2);
    }
}

static uint32_t draw(const pl_sampling *s, uint64_t position, uint32_t sample)
{
    char work[256];
    return pl_sample_token(logits, VOCAB, s, NULL, position, sample, work);
}

static void test_same_seed_and_place_same_token(void **state)
{
    (void)state;
    pl_sampling a = {.temperature = 1, .top_p = 1, .seed = 3}, b = a;
    b.seed = 4;
    int differ = 0, of_others = 0;
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(draw(&a, i, 0), draw(&a, i, 0));
        differ += draw(&a, i, 0) != draw(&b, i, 0);
        of_others += draw(&a, i, 0) != draw(&a, i, 1);
    }
    assert_true(differ > 10 && of_others > 10);
}

/* ---- the whole chain, step by step and slowly, in double ---- */

enum { MANY = 40 };

typedef struct chain {
    double z[MANY], p[MANY]; /* p: 0 where it is not kept */
    int order[MANY];         /* the likeliest first, of two alike the lower id */
    int kept;
} chain;

static void penalize(chain *c, const float *z, const pl_sampling *s, const uint32_t *count)
{
    for (int i = 0; i < MANY; i++) {
        c->z[i] = (double)z[i];
        if (count[i] == 0) continue;
        c->z[i] = c->z[i] < 0 ? c->z[i] * s->repeat_penalty : c->z[i] / s->repeat_penalty;
        c->z[i] -= s->frequency_penalty * count[i] + s->presence_penalty;
    }
}

static void put_in_order(chain *c)
{
    for (int i = 0; i < MANY; i++) {
        int at = i;
        while (at > 0 && c->z[c->order[at - 1]] < c->z[i]) c->order[at] = c->order[at - 1], at--;
        c->order[at] = i;
    }
}

static void softmax(chain *c, double temperature)
{
    double sum = 0;
    memset(c->p, 0, sizeof c->p);
    for (int k = 0; k < c->kept; k++)
        sum += c->p[c->order[k]] = exp((c->z[c->order[k]] - c->z[c->order[0]]) / temperature);
    for (int k = 0; k < c->kept; k++) c->p[c->order[k]] /= sum;
}

/* How near the nearest decision was: of a case where that is nothing both answers are right. */
static double keep(chain *c, const pl_sampling *s)
{
    double near = 1, sum = 0;
    for (int k = 1; k < MANY; k++) {
        const double apart = c->z[c->order[k - 1]] - c->z[c->order[k]];
        if (apart > 0) near = fmin(near, apart);
    }
    c->kept = s->top_k > 0 && s->top_k < MANY ? (int)s->top_k : MANY;
    softmax(c, s->temperature);
    for (int k = 0; k < c->kept; k++) {
        sum += c->p[c->order[k]];
        if (s->top_p < 1) near = fmin(near, fabs(sum - s->top_p));
        if (s->top_p < 1 && sum >= s->top_p) c->kept = k + 1;
    }
    softmax(c, s->temperature);
    for (int k = 1; k < c->kept; k++) {
        const double share = c->p[c->order[k]] / c->p[c->order[0]];
        if (s->min_p > 0) near = fmin(near, fabs(share - s->min_p));
        if (share < s->min_p) c->kept = k;
    }
    softmax(c, s->temperature);
    return near;
}

static uint64_t dice;

static uint32_t below(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % n;
}

static double unit(void) { return below(1 << 20) * 0x1p-20; }

static pl_sampling random_sampling(void)
{
    return (pl_sampling){.temperature = 0.2 + 2 * unit(),
                         .top_k = below(MANY + 5),
                         .top_p = below(3) ? 0.05 + 0.95 * unit() : 1,
                         .min_p = below(2) ? unit() : 0,
                         .repeat_penalty = below(2) ? 0.5 + unit() : 1,
                         .frequency_penalty = below(2) ? unit() - 0.3 : 0,
                         .presence_penalty = below(2) ? unit() - 0.3 : 0,
                         .repeat_last_n = -1,
                         .seed = below(1000)};
}

/* The id that the draw's number picks; near: as above. */
static int pick(const chain *c, const pl_sampling *s, uint64_t position, uint32_t sample, double *near)
{
    uint32_t bits[4];
    double sum = 0;
    pl_philox random = pl_philox_init(s->seed, pl_stream_id("generate"));
    pl_philox_block(&random, sample, position, 0, bits);
    const double u = (bits[0] + 0.5) * 0x1p-32;
    int picked = -1;
    for (int k = 0; k < c->kept; k++) {
        sum += c->p[c->order[k]];
        if (k + 1 < c->kept) *near = fmin(*near, fabs(sum - u));
        if (picked < 0 && (u < sum || k + 1 == c->kept)) picked = c->order[k];
    }
    return picked;
}

static int check_case(void)
{
    chain c;
    float z[MANY];
    uint32_t count[MANY];
    char work[1024];
    const pl_sampling s = random_sampling();
    const uint64_t position = below(1 << 30);
    const uint32_t sample = below(3);
    for (int i = 0; i < MANY; i++) z[i] = (float)(below(41) / 4.0 - 5), count[i] = below(3) ? 0 : below(4);
    penalize(&c, z, &s, count);
    put_in_order(&c);
    double near = keep(&c, &s);
    const int expected = pick(&c, &s, position, sample, &near);
    const uint32_t *counted = pl_sampling_penalizes(&s) ? count : NULL;
    const uint32_t id = pl_sample_token(z, MANY, &s, counted, position, sample, work);
    if (near < 1e-5) return 0;
    if ((int)id != expected)
        fail_msg("drew %u, not %d: temperature %g, top_k %d, top_p %g, min_p %g, penalties %g %g %g", id, expected,
                 s.temperature, (int)s.top_k, s.top_p, s.min_p, s.repeat_penalty, s.frequency_penalty,
                 s.presence_penalty);
    return 1;
}

static void test_chain_of_random_cases(void **state)
{
    (void)state;
    int checked = 0;
    for (int i = 0; i < 5000; i++) checked += check_case();
    assert_true(checked > 4500);
}

static void test_penalties_that_look_at_nothing(void **state)
{
    (void)state;
    const pl_sampling off = {.repeat_penalty = 1, .repeat_last_n = -1}, none = {.repeat_penalty = 2},
                      all = {.repeat_penalty = 2, .repeat_last_n = -1};
    assert_false(pl_sampling_penalizes(&off));
    assert_false(pl_sampling_penalizes(&none));
    assert_true(pl_sampling_penalizes(&all));
}

PL_TEST_PROGRAM(argc, argv)
{
    dice = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distributions),
                                       cmocka_unit_test(test_greedy_takes_the_first_of_the_likeliest_and_never_nan),
                                       cmocka_unit_test(test_same_seed_and_place_same_token),
                                       cmocka_unit_test(test_chain_of_random_cases),
                                       cmocka_unit_test(test_penalties_that_look_at_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

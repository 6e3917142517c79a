/* Every weight's gradient of random small models, from the interpreted differentiated graph, against central
 * differences of the interpreted forward graph, both in double: relative 1e-6 with step 1e-5·(1+|x|),
 * relative to the larger of the element and a hundredth of the tensor's largest. All elements of small
 * tensors, a sample of large ones. `property_grad test_finite_differences SEED` repeats one case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 200, ALL_BELOW = 16, SAMPLE = 8 };
static uint64_t only_seed;

typedef struct problem {
    tiny t;
    pl_graph *forward, *backward;
    reference *f, *b;
} problem;

static double loss_of(problem *p)
{
    tiny_reference_step(&p->t, p->f, "train", 1);
    return *reference_find(p->f, "train.loss") * (float)tiny_token_scale(&p->t, 1);
}

static double difference(problem *p, double *x, double step)
{
    double old = *x;
    *x = old + step;
    double above = loss_of(p);
    *x = old - step;
    double below = loss_of(p);
    *x = old;
    return (above - below) / (2 * step);
}

/* Where the loss bends sharply, or relu has its kink within the step, a smaller step decides. */
static void check_element(problem *p, const char *name, uint64_t e, double *x, double gradient, double largest)
{
    double error = 0, d = 0;
    for (double shrink = 1; shrink >= 0.009; shrink /= 10) {
        d = difference(p, x, 1e-5 * (1 + fabs(*x)) * shrink);
        error = fabs(d - gradient) / fmax(fmax(fabs(d), fabs(gradient)), fmax(largest / 100, 1e-3));
        if (error <= 1e-6) return;
    }
    tiny_print(&p->t);
    fail_msg("gradient of %s[%llu] is %.12g, the difference is %.12g: relative error %.2g", name, (unsigned long long)e,
             gradient, d, error);
}

static void check_weight(problem *p, pl_id weight)
{
    char name[300];
    snprintf(name, sizeof name, "grad.%s", p->forward->value[weight].name);
    double *w = reference_address(p->f, weight), *g = reference_find(p->b, name), largest = 0;
    uint64_t elems = reference_elems(p->f, weight), checks = elems <= ALL_BELOW ? elems : SAMPLE;
    for (uint64_t e = 0; e < elems; e++) largest = fmax(largest, fabs(g[e]));
    for (uint64_t i = 0; i < checks; i++) {
        uint64_t e = checks == elems ? i : (uint64_t)tiny_roll(&p->t, 0, (int64_t)elems - 1);
        check_element(p, name, e, &w[e], g[e], largest);
    }
}

static void one_case(uint64_t seed)
{
    static problem p;
    tiny_random(&p.t, seed);
    p.t.recompute = p.t.fuse = p.t.in_place = tiny_roll(&p.t, 0, 1);
    p.forward = tiny_forward(&p.t);
    p.backward = tiny_compiled(&p.t);
    p.f = reference_create(p.forward);
    p.b = reference_create(p.backward);
    tiny_reference_weights(&p.t, p.f);
    tiny_reference_weights(&p.t, p.b);
    tiny_reference_step(&p.t, p.b, "train", 1);
    double loss = loss_of(&p), again = *reference_find(p.b, "train.loss") * (float)tiny_token_scale(&p.t, 1);
    if (!(fabs(loss - again) <= 1e-12 * fabs(loss))) tiny_print(&p.t);
    assert_true(fabs(loss - again) <= 1e-12 * fabs(loss));
    for (size_t i = 0; i < p.forward->value_count; i++)
        if (p.forward->value[i].role == PL_ROLE_WEIGHT) check_weight(&p, (pl_id)i);
    reference_destroy(p.f);
    reference_destroy(p.b);
    pl_graph_destroy(p.forward);
    pl_graph_destroy(p.backward);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) one_case(seed);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_agree_with_finite_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

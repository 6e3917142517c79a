/* Learning rates against the closed forms, written out here once more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "run/settings.h"
#include "support/program.h"

static pl_lr_schedule schedule(pl_lr_kind kind)
{
    return (pl_lr_schedule){
        .kind = kind, .lr = 2e-3, .min_ratio = 0.1, .warmup = 10, .steps = 110, .patience = 2, .factor = 0.5};
}

static void near(double a, double b) { assert_true(fabs(a - b) <= 1e-12 * fabs(b) + 1e-18); }

static void test_warmup_rises_to_the_rate(void **state)
{
    (void)state;
    pl_lr_schedule s = schedule(PL_LR_COSINE);
    for (unsigned t = 0; t < 10; t++) near(pl_lr_at(&s, NULL, t), 2e-3 * (t + 1) / 10);
}

static void test_curves(void **state)
{
    (void)state;
    pl_lr_schedule c = schedule(PL_LR_COSINE), l = schedule(PL_LR_LINEAR), k = schedule(PL_LR_CONSTANT);
    for (unsigned t = 10; t <= 130; t++) {
        double p = t < 110 ? (t - 10) / 100.0 : 1;
        near(pl_lr_at(&c, NULL, t), 2e-3 * (0.1 + 0.9 * 0.5 * (1 + cos(acos(-1) * p))));
        near(pl_lr_at(&l, NULL, t), 2e-3 * (1 - 0.9 * p));
        near(pl_lr_at(&k, NULL, t), 2e-3);
    }
}

static void test_plateau_waits_then_halves_down_to_its_floor(void **state)
{
    (void)state;
    pl_lr_schedule s = schedule(PL_LR_PLATEAU);
    pl_plateau p;
    pl_plateau_init(&p);
    pl_plateau_update(&p, &s, 3.0);
    for (int i = 0; i < 2; i++) pl_plateau_update(&p, &s, 3.0), near(pl_lr_at(&s, &p, 50), 2e-3);
    pl_plateau_update(&p, &s, 2.9999); /* better by less than 1e-4 relative: no improvement */
    near(pl_lr_at(&s, &p, 50), 1e-3);
    pl_plateau_update(&p, &s, 2.0);
    near(pl_lr_at(&s, &p, 50), 1e-3);
    for (int i = 0; i < 100; i++) pl_plateau_update(&p, &s, 5.0);
    near(pl_lr_at(&s, &p, 50), 2e-4);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_warmup_rises_to_the_rate), cmocka_unit_test(test_curves),
                                       cmocka_unit_test(test_plateau_waits_then_halves_down_to_its_floor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

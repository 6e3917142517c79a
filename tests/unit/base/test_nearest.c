/* Did you mean: the nearest of some words, all at once and one by one. Oracle: distances counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "support/program.h"

static const char *const words[] = {"layers", "learning_rate", "log_every", "layer_norm", "seed"};
enum { WORDS = sizeof words / sizeof *words };

static void the_nearest_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *word, *nearest;
    } rows[] = {
        {"layers", "layers"},
        {"layer", "layers"},
        {"lyaers", "layers"},    /* swapped: 1 */
        {"layersss", "layers"},  /* 2 of 8 letters */
        {"laayersss", "layers"}, /* 3 of 9 */
        {"laayerssss", NULL},    /* 4 of 10 */
        {"learnig_rat", "learning_rate"},
        {"sed", "seed"},
        {"se", NULL},
        {"", NULL},
        {"xyz", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *found = pl_nearest(rows[i].word, words, WORDS);
        if (found != rows[i].nearest && (!found || !rows[i].nearest)) fail_msg("%s: %s", rows[i].word, found);
        if (found) assert_string_equal(found, rows[i].nearest);
    }
}

/* Only what is nearer than all before it: of two that are as near, the first. */
static void one_by_one_each_must_be_nearer(void **state)
{
    (void)state;
    size_t best = SIZE_MAX;
    assert_false(pl_nearer("layers", "seed", &best));
    assert_true(best == SIZE_MAX);
    assert_true(pl_nearer("layers", "lxyxrs", &best));
    assert_int_equal(best, 2);
    assert_false(pl_nearer("layers", "layrrr", &best));
    assert_true(pl_nearer("layers", "layer", &best));
    assert_false(pl_nearer("layers", "ayers", &best));
    assert_true(pl_nearer("layers", "layers", &best));
    assert_int_equal(best, 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_is_found),
        cmocka_unit_test(one_by_one_each_must_be_nearer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Named numbers: what is added is found, and nothing that has no name, no room or a name that is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/facts.h"
#include "support/program.h"

static void test_what_is_added_is_found(void **state)
{
    (void)state;
    pl_facts f = {0};
    assert_true(pl_facts_add(&f, "text", UINT64_MAX) && pl_facts_add(&f, "tokenizer_2", 0));
    assert_true(pl_facts_value(&f, "text", 1) == UINT64_MAX && pl_facts_value(&f, "tokenizer_2", 1) == 0);
    assert_true(pl_facts_value(&f, "tex", 7) == 7 && pl_facts_value(&f, "", 7) == 7);
    assert_true(pl_facts_equal(PL_FACT("vocab", 5), PL_FACT("vocab", 5)));
    assert_false(pl_facts_equal(PL_FACT("vocab", 5), PL_FACT("vocab", 6)));
    assert_false(pl_facts_equal(PL_FACT("vocab", 5), PL_FACT("voca", 5)));
    assert_false(pl_facts_equal(&f, PL_FACT("text", UINT64_MAX)));
}

static void test_what_is_not_taken(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "A", "a b", "a=1", "\n", "text", "abcdefghijklmnopqrstuvwx"};
    pl_facts f = {0};
    assert_true(pl_facts_add(&f, "text", 1));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(pl_facts_add(&f, bad[i], 2));
    assert_true(f.count == 1 && pl_facts_value(&f, "text", 0) == 1);
    assert_true(pl_facts_add(&f, "abcdefghijklmnopqrstuvw", 3));
    for (char name[] = "c"; f.count < PL_FACTS_MAX; name[0]++) assert_true(pl_facts_add(&f, name, 4));
    assert_false(pl_facts_add(&f, "b", 6));
    assert_int_equal(f.count, PL_FACTS_MAX);
}

static void test_what_was_not_known_does_not_differ(void **state)
{
    (void)state;
    const pl_facts none = {0};
    assert_true(pl_facts_differ(PL_FACT("text", 1), PL_FACT("text", 2), "text"));
    assert_true(pl_facts_differ(PL_FACT("text", 1), PL_FACT("text", 0), "text"));
    assert_true(pl_facts_differ(PL_FACT("text", 1), &none, "text"));
    assert_false(pl_facts_differ(PL_FACT("text", 1), PL_FACT("text", 1), "text"));
    assert_false(pl_facts_differ(PL_FACT("text", 0), PL_FACT("text", 2), "text"));
    assert_false(pl_facts_differ(&none, PL_FACT("text", 2), "text"));
    assert_false(pl_facts_differ(PL_FACT("text", 1), PL_FACT("text", 2), "font"));
    assert_true(pl_fact_of_hash(0) == 1 && pl_fact_of_hash(1) == 1 && pl_fact_of_hash(UINT64_MAX) == UINT64_MAX);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_added_is_found),
        cmocka_unit_test(test_what_is_not_taken),
        cmocka_unit_test(test_what_was_not_known_does_not_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

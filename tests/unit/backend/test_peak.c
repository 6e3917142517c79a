/* What a team can do at most: how many operations are counted, at each level that this machine has, for each kind of
 * numbers; and that memory is read, all of it, by any team. How long that takes is nobody's matter here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/peak.h"
#include "kernels/kernels.h"
#include "support/program.h"

/* By rounds and by threads; and a wider vector does more in a round. */
static void operations_are_counted(void **state)
{
    (void)state;
    double before = 0;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        for (int what = 0; what < PL_ARITHMETIC_COUNT; what++) {
            const double one = pl_peak_exec((pl_team){1, isa}, (pl_arithmetic)what, 1);
            for (int threads = 1; threads <= 2; threads++)
                for (int64_t rounds = 1; rounds <= 1000; rounds *= 10)
                    assert_true(pl_peak_exec((pl_team){threads, isa}, (pl_arithmetic)what, rounds) ==
                                one * (double)rounds * threads);
            if (what == PL_ARITHMETIC_F32) {
                assert_true(one >= before && one > 0);
                before = one;
            }
            if (what == PL_ARITHMETIC_BF16) assert_true(one >= before); /* never slower by count than f32 */
        }
        assert_true((pl_peak_exec((pl_team){1, isa}, PL_ARITHMETIC_SIGNS, 1) > 0) ==
                    ((pl_isa_extras(isa) & PL_ISA_VPOPCNTDQ) != 0));
    }
}

static void memory_is_read(void **state)
{
    (void)state;
    enum { WORDS = 5000 };
    static uint64_t word[WORDS];
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum += word[i] = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        assert_true(pl_kernels_get(isa)->read_words(WORDS, word) == sum);
        assert_true(pl_kernels_get(isa)->read_words(0, word) == 0);
        for (int threads = 1; threads <= 2; threads++) pl_read_exec((pl_team){threads, isa}, word, sizeof word);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_are_counted), cmocka_unit_test(memory_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Winograd's transforms in halves: what the left and the right half of the points give, one after the other, are the
 * bits of the whole, at every level and for every type of number. (That the whole is right: tests/property/backend.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/winograd.h"
#include "support/guarded.h"
#include "support/program.h"

enum { M = 4, T = 6, POINTS = 36, HALF = 18, CHANNELS = 37, VECTORS = 2, LANES = 16 };

static void check_input(const pl_winograd_kernels *k, pl_real type)
{
    const float *drawn = guarded_normal(T * T * CHANNELS, 1);
    void *window = guarded_bytes((uint64_t)(T * T * CHANNELS * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < T * T * CHANNELS; i++) pl_real_put(type, window, i, drawn[i]);
    float *whole = guarded_f32(POINTS * CHANNELS), *left = guarded_f32(HALF * CHANNELS),
          *right = guarded_f32(HALF * CHANNELS);
    k->input(PL_WINOGRAD_WHOLE, type, CHANNELS, window, T * CHANNELS, CHANNELS, whole, CHANNELS);
    k->input(PL_WINOGRAD_LEFT, type, CHANNELS, window, T * CHANNELS, CHANNELS, left, CHANNELS);
    k->input(PL_WINOGRAD_RIGHT, type, CHANNELS, window, T * CHANNELS, CHANNELS, right, CHANNELS);
    assert_memory_equal(left, whole, HALF * CHANNELS * sizeof(float));
    assert_memory_equal(right, whole + HALF * CHANNELS, HALF * CHANNELS * sizeof(float));
}

static void check_output(const pl_winograd_kernels *k)
{
    enum { POINT = VECTORS * LANES };
    const float *sums = guarded_normal(POINTS * POINT, 2);
    float *kept = guarded_f32(PL_WINOGRAD_KEPT * POINT), *whole = guarded_f32(M * M * POINT),
          *halves = guarded_f32(M * M * POINT);
    memset(whole, 0, M * M * POINT * sizeof(float)), memset(halves, 0, M * M * POINT * sizeof(float));
    k->output(PL_WINOGRAD_WHOLE, VECTORS, sums, POINT, NULL, whole, M * POINT, POINT);
    k->output(PL_WINOGRAD_LEFT, VECTORS, sums, POINT, kept, NULL, 0, 0);
    k->output(PL_WINOGRAD_RIGHT, VECTORS, sums + HALF * POINT, POINT, kept, halves, M * POINT, POINT);
    assert_memory_equal(halves, whole, M * M * POINT * sizeof(float));
}

static void halves_have_the_bits_of_the_whole(void **unused)
{
    (void)unused;
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++) {
        const pl_winograd_kernels *k = pl_winograd_kernels_of((pl_isa)isa, M);
        for (int type = PL_REAL_F32; type <= PL_REAL_F16; type++) check_input(k, (pl_real)type);
        check_output(k);
        guarded_check_all();
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves_have_the_bits_of_the_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One number that is none, anywhere in a tensor of any form, is found; extreme numbers are numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/block8.h"
#include "base/narrow.h"
#include "run/finite.h"
#include "support/program.h"

enum { COUNT = 70001, ROWS = 5 };
static const float bad[] = {INFINITY, -INFINITY, NAN}, good[] = {3e38f, -3e38f, 1e-45f, 0, -0.0f};
static float whole[COUNT];
static uint16_t half[COUNT];
static unsigned char blocks[ROWS * PL_BLOCK8_BYTES];

static bool check(pl_st_dtype dtype, void *data, uint64_t bytes)
{
    return pl_finite_tensor(&(pl_st_entry){.name = "x", .dtype = dtype, .data = data, .bytes = bytes});
}

static void check_at(uint64_t at, float x, bool finite)
{
    float scale = x;
    unsigned char *row = blocks + at % ROWS * PL_BLOCK8_BYTES;
    whole[at] = x, half[at] = pl_bf16_of_f32(x);
    memcpy(row + PL_BLOCK8_ELEMS, &scale, sizeof scale);
    assert_int_equal(check(PL_ST_F32, whole, sizeof whole), finite);
    assert_int_equal(check(PL_ST_BF16, half, sizeof half), finite);
    assert_int_equal(check(PL_ST_U8, blocks, sizeof blocks), finite);
    assert_true(pl_finite_tensor(
        &(pl_st_entry){.name = "bytes", .dtype = PL_ST_U8, .data = blocks, .bytes = sizeof blocks, .optional = true}));
    whole[at] = 0, half[at] = 0, memset(row, 0xff, PL_BLOCK8_ELEMS), memset(row + PL_BLOCK8_ELEMS, 0, 4);
}

static void test_each_place(void **state)
{
    (void)state;
    static const uint64_t places[] = {0, 1, 2, 65535, 65536, 65537, COUNT - 2, COUNT - 1};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        for (int i = 0; i < 3; i++) check_at(places[p], bad[i], false);
        for (int i = 0; i < 5; i++) check_at(places[p], good[i], true);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

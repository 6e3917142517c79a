/* Sizes and times as people write and read them; the expected numbers are written out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/units.h"
#include "support/program.h"

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"007", 7},
                {" 500 MB ", 500000000},
                {"500MiB", 524288000},
                {"1.5GiB", 1610612736},
                {".5k", 500},
                {"1e3", 1000},
                {"2.5e3kB", 2500000},
                {"3t", 3000000000000},
                {"9007199254740993", 9007199254740993}, /* 2⁵³ + 1: no double */
                {"9007199254740993B", 9007199254740993},
                {"9223372036854775807", INT64_MAX},
                {"9223372036854775kB", 9223372036854775000},
                {"9007199254740991KiB", 9223372036854774784},
                {"8388607TiB", UINT64_C(8388607) << 40}};
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "+1",
                                      ".",
                                      "x",
                                      "0x10",
                                      "inf",
                                      "nan",
                                      "1x",
                                      "1 k B x",
                                      "1kk",
                                      "1bb",
                                      "1e400",
                                      "1e30T",
                                      "9223372036854775808",
                                      "9e999T",
                                      "1..",
                                      "8388608TiB",
                                      "99999999999999999999",
                                      "9223372036854776kB"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (pl_parse_bytes(good[i].text, &bytes)) fail_msg("\"%s\" is refused", good[i].text);
        if (bytes != good[i].bytes) fail_msg("\"%s\" is read as %llu", good[i].text, (unsigned long long)bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (pl_parse_bytes(bad[i], &bytes) == 0) fail_msg("\"%s\" is read as %llu", bad[i], (unsigned long long)bytes);
}

static void test_parse_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"90", 90}, {"90s", 90}, {"15m", 900}, {"15min", 900}, {"1.5h", 5400}, {"2 d", 172800}, {".5s", 0.5}};
    static const char *const bad[] = {"",     "s",    "-1s",   "0",      "0h",  "1w", "1hh",
                                      "1 h ", "0x10", "1e400", "40000d", "nan", "inf"};
    double seconds;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (pl_parse_seconds(good[i].text, &seconds)) fail_msg("\"%s\" is refused", good[i].text);
        assert_true(seconds == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (pl_parse_seconds(bad[i], &seconds) == 0) fail_msg("\"%s\" is read as %g s", bad[i], seconds);
}

static void test_seconds(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } times[] = {{0, "0 us"},         {0.34, "340 ms"},       {12.3, "12.3 s"},
                 {245, "4 min 05 s"}, {7380, "2 h 03 min"},   {3.6e12, "1000000000 h 00 min"},
                 {3.6e15, "1e+12 h"}, {1e300, "2.78e+296 h"}, {-1, "?"},
                 {NAN, "?"},          {INFINITY, "?"}};
    char text[32];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_string_equal(pl_format_seconds(times[i].seconds, text, sizeof text), times[i].text);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_parse_seconds),
                                       cmocka_unit_test(test_seconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

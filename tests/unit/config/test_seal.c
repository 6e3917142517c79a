/* A config as a run keeps it: whichever bit of it flips, it is refused, and who edited it on purpose is told what to
 * do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "support/flip.h"
#include "support/program.h"

#define LAST "# checksum 0123456789abcdef\n"

static pl_config config, other;

static pl_str sealed_text(void)
{
    pl_error err = {0};
    pl_str text = {0};
    pl_config_default(&config);
    assert_int_equal(pl_config_set(&config, "train.learning_rate", "0.00123", "test", &err), PL_OK);
    pl_config_begin_sealed(&text);
    pl_config_print_yaml(&config, &text);
    pl_config_end_sealed(&text);
    assert_false(text.failed);
    return text;
}

static pl_status load(const char *text, size_t bytes, pl_error *err)
{
    pl_config_default(&other);
    return pl_config_load_text(&other, "kept.yaml", text, bytes, err);
}

static void it_reads_back(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_str text = sealed_text();
    assert_int_equal(load(text.data, text.bytes, &err), PL_OK);
    assert_true(pl_config_equal(&config, &other));
    pl_str_deinit(&text);
}

static bool is_refused_or_same(void *context, const char *text, size_t bytes)
{
    pl_error err = {0};
    (void)context;
    const pl_status status = load(text, bytes, &err);
    return status == PL_OK ? pl_config_equal(&config, &other) : status == PL_E_DATA;
}

static void a_flipped_bit_is_no_other_config(void **state)
{
    (void)state;
    pl_str text = sealed_text();
    flip_bits(text.data, text.bytes, strcspn(text.data, "\n") + 1, sizeof LAST, 4000, is_refused_or_same, NULL);
    pl_str_deinit(&text);
}

static void check_refused(const char *text, size_t bytes)
{
    pl_error err = {0};
    assert_int_equal(load(text, bytes, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "kept.yaml:1:1: the config is not as the run wrote it"));
    assert_non_null(strstr(err.text, "take out its first line and its last"));
}

/* Without its first line and its last it is no longer the run's own, and any change counts; with one of them it is
 * damaged. */
static void who_edits_it_takes_both_lines_out(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_str text = sealed_text();
    const size_t first = strcspn(text.data, "\n") + 1, last = text.bytes - (sizeof LAST - 1);
    char *rate = strstr(text.data, "0.00123");
    assert_non_null(rate);
    rate[6] = '9';
    check_refused(text.data, text.bytes);
    check_refused(text.data, last);
    check_refused(text.data + first, text.bytes - first);
    check_refused(text.data, text.bytes - 1);
    assert_int_equal(load(text.data + first, last - first, &err), PL_OK);
    assert_true(other.train.learning_rate > 0.00128 && other.train.learning_rate < 0.0013);
    pl_str_deinit(&text);
}

/* A person's config, whose last line only begins as a run's does. */
static void a_comment_is_no_checksum(void **state)
{
    static const char text[] = "train:\n  learning_rate: 0.5\n# checksum of my data is in data.sum\n";
    static const char as_long[] = "train:\n  learning_rate: 0.5\n# checksum of my own data..\n";
    pl_error err = {0};
    (void)state;
    assert_int_equal(load(text, sizeof text - 1, &err), PL_OK);
    assert_int_equal(load(as_long, sizeof as_long - 1, &err), PL_OK);
    assert_true(other.train.learning_rate == 0.5);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_back),
        cmocka_unit_test(a_flipped_bit_is_no_other_config),
        cmocka_unit_test(who_edits_it_takes_both_lines_out),
        cmocka_unit_test(a_comment_is_no_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

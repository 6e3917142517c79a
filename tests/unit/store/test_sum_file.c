/* A file that is trusted later: whichever bit of it or of its checksum flips, it is not as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "store/sum_file.h"
#include "support/flip.h"
#include "support/folder.h"
#include "support/program.h"

static const char text[] = "flight,frame,true_km,predicted_km\n10Feb25,3,1.25,1.125\n";
static char folder[] = "/tmp/test_sum_file.XXXXXX";

static void write_text(const char *name, const char *what, size_t bytes)
{
    pl_error err = {0};
    if (pl_file_write_all(name, what, bytes, &err) != PL_OK) fail_msg("%s", err.text);
}

static bool is_sound(void)
{
    bool sound = false;
    pl_error err = {0};
    if (pl_sum_file_check("kept.csv", &sound, &err) != PL_OK) fail_msg("%s", err.text);
    return sound;
}

static bool is_found(void *name, const char *changed, size_t bytes)
{
    write_text(name, changed, bytes);
    return !is_sound();
}

static void a_flipped_bit_is_found(void **state)
{
    (void)state;
    char sum[64], name[] = "kept.csv", sum_name[] = "kept.csv" PL_SUM_FILE_ENDING;
    pl_error err = {0};
    assert_false(is_sound()); /* there is none */
    write_text(name, text, sizeof text - 1);
    assert_true(is_sound()); /* as an earlier build left it */
    if (pl_sum_file_write(name, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(is_sound());
    flip_bits(text, sizeof text - 1, 0, 0, sizeof text * 8, is_found, name);
    write_text(name, text, sizeof text - 1);
    FILE *f = fopen(sum_name, "r");
    assert_non_null(f);
    const size_t bytes = fread(sum, 1, sizeof sum, f);
    fclose(f);
    assert_int_equal(bytes, 16 + 2 + strlen(name) + 1);
    flip_bits(sum, bytes, bytes, 0, 0, is_found, sum_name);
    write_text(sum_name, "", 0);
    assert_false(is_sound());
    char *much = calloc(1, 4096); /* longer than it can be */
    assert_non_null(much);
    write_text(sum_name, much, 4096);
    free(much);
    assert_false(is_sound());
    write_text(sum_name, sum, bytes);
    assert_true(is_sound());
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_flipped_bit_is_found)};
    if (enter_folder(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return leave_folder(folder) ? 1 : failed;
}

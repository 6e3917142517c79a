/* run.json: whichever bit of it flips, it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "store/record.h"
#include "support/flip.h"
#include "support/program.h"

static bool is_refused(void *context, const char *text, size_t bytes)
{
    pl_error err = {0};
    pl_record *r = NULL;
    (void)context;
    const pl_status status = pl_record_parse(text, bytes, "run.json", &r, &err);
    pl_record_destroy(r);
    return status == PL_E_DATA;
}

static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_record_counter counter[] = {{"tokens", 192}, {"plateau_scale", 0.5}};
    const pl_record r = {.step = 12,
                         .epoch = 1,
                         .sample = 3,
                         .model_hash = 0x1234567890abcdef,
                         .plan_hash = 77,
                         .identity = {{{"tokenizer", 5}, {"text", 6}}, 2},
                         .config = "model:\n  width: 4\n",
                         .best_metric = "validation_loss",
                         .best_value = 1.5,
                         .best_step = 10,
                         .has_best = true,
                         .counters = counter,
                         .counter_count = 2,
                         .model = {100, 1},
                         .state = {200, 2}};
    const uint64_t bytes = pl_record_bytes(&r);
    char *text = pl_alloc(bytes + 1, 1);
    assert_non_null(text);
    assert_int_equal(pl_record_print(&r, text, bytes, &err), PL_OK);
    flip_bits(text, bytes, bytes, 0, 0, is_refused, NULL);
    pl_free(text);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_flipped_bit_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The file of pages that were read, there and back: its sums against those of the rows that it was written from. */
#include <math.h>

#include "unit/data/scratch.h"

#include "base/alloc.h"
#include "base/policy.h"
#include "base/told.h"
#include "data/pages/read_pages.h"
#include "support/comma.h"
#include "support/program.h"
#include "support/seed.h"

enum { MOST = 300 };
static uint64_t seed;
static scratch_random numbers;
static pl_error err;
static float told[MOST][PL_TOLD_COLUMNS];
static uint32_t page[MOST];

static void test_there_and_back(void **state)
{
    const char *path = scratch_path("predictions.csv");
    pl_read_pages sum, wanted = {.pages = MOST};
    (void)state;
    for (uint32_t i = 0; i < MOST; i++) {
        const uint64_t words = scratch_next(&numbers, 12), right = scratch_next(&numbers, words + 1);
        const bool all = right == words, halts = scratch_next(&numbers, 2) == 1;
        page[i] = UINT32_MAX - i;
        told[i][PL_TOLD_WORDS] = (float)words, told[i][PL_TOLD_RIGHT] = (float)right, told[i][PL_TOLD_ALL_RIGHT] = all;
        told[i][PL_TOLD_HALT] = halts ? 1e-6f : -3.4e38f;
        told[i][PL_TOLD_FUSION + 1] = 0.123456789f;
        told[i][PL_TOLD_ADAPTER + 1] = told[i][PL_TOLD_PLANNER] = (float)PL_TOLD_ABSENT;
        wanted.words += words, wanted.right += right, wanted.all_right += all, wanted.halted_rightly += all == halts;
    }
    assert_int_equal(pl_read_pages_write(path, page, told[0], MOST, &err), PL_OK);
    if (pl_read_pages_sum(path, PL_LINES_READ, &sum, &err) != PL_OK) fail_msg("%s", err.text);
    assert_memory_equal(&sum, &wanted, sizeof sum);
    assert_int_equal(pl_read_pages_sum(path, PL_LINES_CLEANED, &sum, &err), PL_E_DATA); /* of the other kind */
    assert_int_equal(pl_read_pages_write(path, page, told[0], 0, &err), PL_OK);
    assert_int_equal(pl_read_pages_sum(path, PL_LINES_READ, &sum, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "has no page; delete the file"));
}

static void test_cleaned(void **state)
{
    enum { COUNT = 3 };
    static const float rows[COUNT][PL_TOLD_NOISE_COLUMNS] = {
        {4, 2, 0.25f, 0.5f}, {8, 1, 0.25f, (float)PL_TOLD_ABSENT}, {0.5f, 3e38f, 0, 0}};
    static const uint32_t of_page[COUNT] = {7, 0, UINT32_MAX};
    (void)state;
    pl_read_pages sum;
    const char *path = scratch_file("cleaned.csv", "", 0);
    assert_int_equal(pl_cleaned_pages_write(path, of_page, rows[0], COUNT, &err), PL_OK);
    if (pl_read_pages_sum(path, PL_LINES_CLEANED, &sum, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(sum.pages, COUNT);
    assert_true(sum.noise == 12.5 && fabs(sum.noise_left / 3e38 - 1) < 1e-6 && sum.words == 0);
    assert_int_equal(pl_read_pages_sum(path, PL_LINES_READ, &sum, &err), PL_E_DATA);
}

static void test_chosen(void **state)
{
    enum { COUNT = 2 };
    static float rows[COUNT][PL_TOLD_POLICY_COLUMNS] = {{4, 2, -1, -1, 3}, {8, 1, -1, -1, 5}};
    static const uint32_t of_page[COUNT] = {7, UINT32_MAX};
    (void)state;
    pl_read_pages sum;
    char *text;
    size_t bytes;
    const char *path = scratch_file("chosen.csv", "", 0);
    rows[0][PL_TOLD_POLICY + PL_POLICY_SIZE + PL_POLICY_SIZE_AS_IS] = 1;
    rows[0][PL_TOLD_POLICY + PL_POLICY_ACROSS + 10] = 1;
    assert_int_equal(pl_chosen_pages_write(path, of_page, rows[0], COUNT, &err), PL_OK);
    if (pl_read_pages_sum(path, PL_LINES_CHOSEN, &sum, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(sum.pages == COUNT && sum.noise == 12 && sum.noise_left == 3 && sum.denoised_left == 8 &&
                sum.words == 0);
    assert_int_equal(pl_read_pages_sum(path, PL_LINES_CLEANED, &sum, &err), PL_E_DATA);
    assert_int_equal(pl_file_read_all(path, 1 << 20, &text, &bytes, &err), PL_OK);
    assert_string_equal(text, "page,noise,noise_left,denoised_left,size,across,down,strength\n7,4,2,3,0,5,-5,0.5\n"
                              "4294967295,8,1,5,-3,-5,-5,0.5\n");
    pl_free(text);
    path = scratch_file("chosen.csv", "", 0);
    rows[1][PL_TOLD_DENOISED] = NAN;
    assert_int_equal(pl_chosen_pages_write(path, of_page, rows[0], COUNT, &err), PL_OK);
    assert_int_equal(pl_read_pages_sum(path, PL_LINES_CHOSEN, &sum, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, ":3: is no page"));
}

static void refuse_of(bool cleaned, const char *text, const char *words)
{
    pl_read_pages sum;
    const char *path = scratch_file("damaged.csv", text, strlen(text));
    assert_int_equal(pl_read_pages_sum(path, cleaned ? PL_LINES_CLEANED : PL_LINES_READ, &sum, &err), PL_E_DATA);
    if (!strstr(err.text, words)) fail_msg("%s", err.text);
}

static void refuse(const char *text, const char *words) { refuse_of(false, text, words); }

static void test_damaged(void **state)
{
#define HEAD "page,words,right,all_right,q_halt,fusion_gate,adapter_gate,planner_gate\n"
    (void)state;
    refuse("", ":1: the first line of such a file is \"page,words,right");
    refuse("page,words\n", ":1: the first line of such a file is \"page,words,right");
    refuse(HEAD "1,2,2,1,-5,,,\n1,2,2\n", ":3: is no page");
    refuse(HEAD "1,2,3,0,-5,,,\n", ":2: is no page"); /* more are right than there are */
    refuse(HEAD "1,-2,-3,0,-5,,,\n", ":2: is no page");
    refuse(HEAD "1,2,2,2,-5,,,\n", ":2: is no page");
    refuse(HEAD "1,nan,2,1,-5,,,\n", ":2: is no page");
    refuse(HEAD "1,2,2,1,nan,,,\n", ":2: is no page");
    refuse(HEAD "1,2,2,1,-5,,,", ":2: is no page"); /* cut off */
#define CLEANED "page,noise,noise_left,adapter_gate\n"
    refuse(CLEANED "1,2,2,\n", ":1: the first line");
    refuse_of(true, HEAD "1,2,2,1,-5,,,\n", ":1: the first line of such a file is \"page,noise,noise_left");
    refuse_of(true, CLEANED "1,2,-2,\n", ":2: is no page");
    refuse_of(true, CLEANED "1,2,2,\n1,1e308,2,\n",
              ":3: is no page"); /* f32 has none so large, and their sum is not finite */
    refuse_of(true, CLEANED "1,nan,2,\n", ":2: is no page");
    refuse_of(true, CLEANED, "has no page; delete the file");
}

/* A host program may have a locale that writes 0,5. */
static void test_comma(void **state)
{
    if (!comma_begin(scratch_path("."))) skip();
    test_there_and_back(state);
    test_cleaned(state);
    comma_end();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_cleaned),
                                       cmocka_unit_test(test_chosen), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_comma)};
    seed = test_seed_said(argc, argv);
    numbers = (scratch_random){.key = pl_philox_init(seed, 23)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

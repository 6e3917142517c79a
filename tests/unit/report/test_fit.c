/* What is said of a search: against one that was written down by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report/fit.h"
#include "support/program.h"

enum { POINTS = 8, MB = 1000000, COLUMNS = 60 };

static const pl_words text_words = {"token", "tokens", "sequence", "sequences"};

static pl_fit_point point(int64_t micro_batch, pl_recompute_rule recompute, uint64_t charged, double seconds)
{
    return (pl_fit_point){.choice = {.micro_batch = micro_batch, .recompute = recompute},
                          .least_bytes = charged,
                          .charged_bytes = charged,
                          .seconds = seconds};
}

/* Budget 12 MB. What differs from the chosen plan in its micro-batch alone does not fit (8) or keeps less than it could
 * (2): with another recompute both values have a better plan inside the same budget. */
static pl_fit_result search(pl_fit_point points[POINTS])
{
    points[0] = point(4, PL_RECOMPUTE_CHEAP, 10 * MB, 1.0);
    points[1] = point(8, PL_RECOMPUTE_CHEAP, 16 * MB, 0.95);
    points[2] = point(8, PL_RECOMPUTE_FULL, 11500000, 1.1);
    points[3] = point(2, PL_RECOMPUTE_CHEAP, 8 * MB, 1.5);
    points[4] = point(2, PL_RECOMPUTE_NOTHING, 9500000, 1.2);
    points[5] = point(1, PL_RECOMPUTE_CHEAP, 7 * MB, 1.3);
    points[5].charged_bytes = 0; /* not planned */
    points[6] = point(16, PL_RECOMPUTE_CHEAP, 13 * MB, 0.9);
    points[6].charged_bytes = 0;
    points[7] = point(16, PL_RECOMPUTE_NOTHING, 20 * MB, 0.8);
    points[0].front = points[1].front = points[3].front = points[7].front = true;
    return (pl_fit_result){.point = points,
                           .count = POINTS,
                           .chosen = 0,
                           .least = PL_FIT_NONE,
                           .cheapest = PL_FIT_NONE,
                           .budget_bytes = 12 * MB,
                           .batch = 16,
                           .rows = 8,
                           .words = &text_words,
                           .threads = 2};
}

static void check_reason(const pl_fit_result *r, const char *axis, const char *expected)
{
    pl_str why = {0};
    for (size_t k = 0; k < pl_fit_axis_count(); k++)
        if (strcmp(pl_fit_axis_name(k), axis) == 0) pl_report_reason(r, k, &why);
    assert_string_equal(pl_str_text(&why), expected);
    pl_str_deinit(&why);
}

static void test_reasons_are_of_one_budget(void **state)
{
    (void)state;
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    check_reason(&r, "micro-batch",
                 "8: +10.0 % time, 11.5 MB; 2: +20.0 % time, 9.50 MB; 1: at least +30.0 % time, 7.00 MB");
    check_reason(&r, "recompute", "blocks: +10.0 % time, 11.5 MB; nothing: +20.0 % time, 9.50 MB");
    check_reason(&r, "threads", "");
    r.budget_bytes = 10 * MB;
    check_reason(&r, "micro-batch",
                 "2: +20.0 % time, 9.50 MB; 1: at least +30.0 % time, 7.00 MB; "
                 "8: 11.5 MB, 1.50 MB more than the budget");
    r.budget_bytes = UINT64_MAX;
    check_reason(&r, "micro-batch", "16: -20.0 % time, 20.0 MB; 8: -5.0 % time, 16.0 MB; 2: +20.0 % time, 9.50 MB");
}

/* For any search: no point of the value that is told is better at this budget, and none that is told twice. */
static void test_reasons_of_random_searches(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        pl_fit_point points[POINTS];
        pl_fit_result r = search(points);
        srand(seed);
        for (size_t i = 1; i < POINTS; i++)
            points[i] = point(1 << rand() % 4, (pl_recompute_rule)(rand() % 3), (uint64_t)(rand() % 20 + 1) * MB,
                              1 + rand() % 50 / 16.0);
        pl_str why = {0};
        pl_report_reason(&r, 0, &why);
        for (int64_t value = 1; value <= 8; value *= 2) {
            char words[64];
            const pl_fit_point *fastest = NULL;
            for (size_t i = 1; i < POINTS; i++)
                if (points[i].choice.micro_batch == value && points[i].charged_bytes <= r.budget_bytes &&
                    (!fastest || points[i].seconds < fastest->seconds))
                    fastest = &points[i];
            if (!fastest || value == 4) continue;
            pl_str expected = pl_str_fixed(words, sizeof words);
            pl_str_printf(&expected, "%d: %+.1f %% time, ", (int)value, 100 * (fastest->seconds - 1));
            if (!strstr(pl_str_text(&why), words))
                fail_msg("seed %u: \"%s\" is not in %s", seed, words, pl_str_text(&why));
        }
        pl_str_deinit(&why);
    }
}

/* The first column has the first row's time, and so the height of the picture; the last column the last row's. */
static void test_plot_and_table_begin_alike(void **state)
{
    (void)state;
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    pl_str text = {0};
    pl_error err = {0};
    points[3].charged_bytes = points[3].least_bytes = 9990000; /* so near the next that both are in the first column */
    points[3].seconds = 3;
    assert_int_equal(pl_report_fit(&r, NULL, &(pl_report_fit_options){.width = COLUMNS}, PL_FORM_TEXT, &text, &err),
                     PL_OK);
    const char *plot = strstr(pl_str_text(&text), "Time against memory: seconds of a step by budget\n");
    assert_non_null(plot);
    plot += strlen("Time against memory: seconds of a step by budget\n");
    assert_memory_equal(plot, "      3 s |█", strlen("      3 s |█"));
    assert_non_null(strstr(plot, "9.99 MB"));
    assert_non_null(strstr(plot, "20.0 MB\n"));
    pl_str_deinit(&text);
}

static void test_page_shows_the_budget_and_begins_at_zero(void **state)
{
    (void)state;
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    pl_str near = {0}, far = {0};
    pl_error err = {0};
    pl_report_fit_options o = {.width = COLUMNS};
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_PAGE, &near, &err), PL_OK);
    assert_non_null(strstr(pl_str_text(&near), ">budget 12.0 MB</text>"));
    assert_non_null(strstr(pl_str_text(&near), ">0</text>"));
    r.budget_bytes = 500 * (uint64_t)MB; /* far beyond the front: a picture of it would be empty */
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_PAGE, &far, &err), PL_OK);
    assert_null(strstr(pl_str_text(&far), ">budget 500"));
    assert_non_null(strstr(pl_str_text(&far), "the budget of 500.0 MB lies far to the right"));
    pl_str_deinit(&near);
    pl_str_deinit(&far);
}

/* The front by bytes, each point with its number of items a second; programs get what is no part of it, too. */
static void test_front_is_one_table(void **state)
{
    (void)state;
    static const char rows[] = "The front: more bytes, less time\n"
                               "            charged     MB  a step  tokens/s\n"
                               "          8,000,000   8.00   1.5 s      85.3  micro-batch 2\n"
                               "chosen   10,000,000  10.00     1 s       128  micro-batch 4\n"
                               "too big  16,000,000  16.00  950 ms       135  micro-batch 8\n"
                               "too big  20,000,000  20.00  800 ms       160  micro-batch 16,\n"
                               "                                              recompute nothing\n";
    static const char cells[] = "<tr class='strong'><td>chosen</td><td class='n' data-l='charged'>10,000,000</td>"
                                "<td class='n' data-l='MB'>10.00</td><td class='n' data-l='a step'>1 s</td>"
                                "<td class='n' data-l='tokens/s'>128</td><td class='w'>micro-batch 4</td></tr>";
    static const char unplanned[] =
        "      \"micro_batch\": 1,\n      \"threads\": 2,\n      \"least_bytes\": 7000000,\n"
        "      \"charged_bytes\": null,\n      \"huge_pages_bytes\": null,\n"
        "      \"seconds\": 1.3,\n";
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    pl_str text = {0};
    pl_error err = {0};
    pl_report_fit_options o = {.width = 68};
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_TEXT, &text, &err), PL_OK);
    if (!strstr(pl_str_text(&text), rows)) fail_msg("%s", pl_str_text(&text));
    assert_non_null(strstr(pl_str_text(&text), "\n8 choices looked at, 6 planned; pages of 4 KiB\n"));
    pl_str_clear(&text);
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_PAGE, &text, &err), PL_OK);
    if (!strstr(pl_str_text(&text), cells)) fail_msg("%s", pl_str_text(&text));
    pl_str_clear(&text);
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_JSON, &text, &err), PL_OK);
    if (!strstr(pl_str_text(&text), unplanned)) fail_msg("%s", pl_str_text(&text));
    pl_str_deinit(&text);
}

static void check_words(const char *text, const char *rate)
{
    if (!strstr(text, rate)) fail_msg("no \"%s\" in %s", rate, text);
    if (strstr(text, "token") || strstr(text, "sequence")) fail_msg("a word of another system: %s", text);
}

/* Of another system: its words everywhere, keys included, and none of a text's. */
static void test_words_are_those_of_the_system(void **state)
{
    (void)state;
    static const pl_words words = {"voxel", "voxels", "scan", "scans"};
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    pl_str text = {0}, json = {0}, page = {0}, said = {0};
    pl_error err = {0};
    pl_report_fit_options o = {.width = 100};
    r.words = &words;
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_TEXT, &text, &err), PL_OK);
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_JSON, &json, &err), PL_OK);
    assert_int_equal(pl_report_fit(&r, NULL, &o, PL_FORM_PAGE, &page, &err), PL_OK);
    pl_fit_axis_say(0, &r, &points[0].choice, &said);
    check_words(pl_str_text(&text), "voxels/s");
    check_words(pl_str_text(&json), "\"voxels_per_second\": ");
    check_words(pl_str_text(&json), "\"scan\": 8");
    check_words(pl_str_text(&page), "voxels/s");
    assert_string_equal(pl_str_text(&said), "4 scans at once, 4 times a step");
    pl_str_clear(&said);
    pl_fit_axis_say(0, &r, &points[5].choice, &said);
    assert_string_equal(pl_str_text(&said), "1 scan at once, 16 times a step");
    pl_str_deinit(&text);
    pl_str_deinit(&json);
    pl_str_deinit(&page);
    pl_str_deinit(&said);
}

/* Where nothing makes it fit, the keys that say how large a model and its samples are. */
static void test_remedy_names_the_keys_of_the_system(void **state)
{
    (void)state;
    static const pl_words own = {"voxel", "voxels", "scan", "scans",        "voxels/s",       "scans",
                                 "step",  "part",   "nats", "data.at_once", "data.scan_edge", "model.depth"};
    pl_fit_point points[POINTS];
    pl_fit_result r = search(points);
    pl_str said = {0};
    r.least = 0;
    r.words = &own;
    pl_report_say_remedy(&r, &said);
    assert_string_equal(pl_str_text(&said), "None makes it fit: raise the budget to 10,000,000 bytes, or make "
                                            "data.scan_edge smaller.");
    pl_str_deinit(&said);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons_are_of_one_budget),
                                       cmocka_unit_test(test_reasons_of_random_searches),
                                       cmocka_unit_test(test_plot_and_table_begin_alike),
                                       cmocka_unit_test(test_page_shows_the_budget_and_begins_at_zero),
                                       cmocka_unit_test(test_front_is_one_table),
                                       cmocka_unit_test(test_words_are_those_of_the_system),
                                       cmocka_unit_test(test_remedy_names_the_keys_of_the_system)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

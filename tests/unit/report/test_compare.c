/* The comparison of a model's forms, from an answer written by hand: text, JSON and page show its numbers, medians and
 * limits are those of arithmetic, and what was not measured is shown as such, with its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include <jansson.h>

#include "report/compare.h"
#include "show/cell.h"
#include "support/program.h"

enum { COLUMNS = 72 };
static pl_report_compare c; /* large */

static void took(pl_compare_run *r, double a, double b, double x, uint64_t bytes)
{
    r->items = 32, r->turns = 3;
    r->seconds[0] = a, r->seconds[1] = b, r->seconds[2] = x;
    r->planned_bytes = r->measured_bytes = bytes;
}

/* f32 and int8 ran; bf16 is none; of signs there is nothing, and one way of int8 did not fit. */
static void fill(void)
{
    static const char *const names[] = {"f32", "bf16", "int8", "binary"};
    c = (pl_report_compare){.title = "a<b>",
                            .arch = "gpt",
                            .sample = "text",
                            .inputs = "32 texts of what is held out",
                            .turns = 3,
                            .flops = 8e9,
                            .binary_flops = 0,
                            .possible_flops = 6e9,
                            .rows = sizeof names / sizeof *names};
    for (int i = 0; i < c.rows; i++) c.row[i].name = names[i], c.row[i].runs[0].batch = 1, c.row[i].runs[1].batch = 16;
    took(&c.row[0].runs[0], 0.012, 0.010, 0.030, 84900000);
    took(&c.row[0].runs[1], 0.008, 0.006, 0.007, 120000000);
    took(&c.row[2].runs[0], 0.004, 0.004, 0.005, 39100000);
    strcpy(c.row[2].runs[1].why, "the smallest plan needs 5 bytes more");
    strcpy(c.row[1].why, "there is <no> such key");
    strcpy(c.row[3].why, "it has no such layers");
    c.row[0].file_bytes = 62400000, c.row[2].file_bytes = 16200000;
    c.row[0].metric[0] = (pl_compare_metric){"loss", 2.5};
    c.row[0].metric[1] = (pl_compare_metric){"exact_pages", NAN};
    c.row[0].metrics = 2;
    strcpy(c.row[2].not_judged, "the text is gone");
    c.row[2].output[0] = (pl_compare_output){"capsules", 0.012, true, 0.9991, 0.9978};
    c.row[2].output[1] = (pl_compare_output){.name = "height", .difference = 0.25};
    c.row[2].outputs = 2;
}

static void numbers(void **state)
{
    (void)state;
    fill();
    assert_true(pl_compare_median(&c.row[0].runs[0]) == 0.012);
    c.row[0].runs[0].turns = 2;
    assert_true(fabs(pl_compare_median(&c.row[0].runs[0]) - 0.011) < 1e-12);
    assert_true(fabs(pl_compare_spread(&c.row[0].runs[0]) - 1.0 / 11) < 1e-9);
    assert_true(pl_compare_median(&c.row[1].runs[0]) == 0 && pl_compare_spread(&c.row[1].runs[0]) == 0);
    assert_true(pl_compare_share(&c) == 0.75 && pl_compare_limit(&c) == 4);
    c.is_binary = true, c.binary_flops = 4e9;
    assert_true(pl_compare_share(&c) == 0.5 && pl_compare_limit(&c) == 2);
    c.is_binary = false, c.possible_flops = -1;
    assert_true(pl_compare_share(&c) < 0 && pl_compare_limit(&c) == 1);
}

static void has(const char *text, const char *words)
{
    if (!strstr(text, words)) fail_msg("\"%s\" is not in\n%s", words, text);
}

static void text(void **state)
{
    (void)state;
    pl_str s = {0};
    fill();
    pl_report_compare_write(&c, PL_FORM_TEXT, COLUMNS, &s);
    const char *t = pl_str_text(&s);
    has(t, "a<b>\n");
    has(t, "\n"
           "What it takes\n"
           "        sample at 1  sample at 16     file  memory at 1  memory at 16\n"
           "f32           12 ms          7 ms  62.4 MB      84.9 MB      120.0 MB\n"
           "bf16              -             -        -            -             -\n"
           "int8           4 ms             -  16.2 MB      39.1 MB             -\n"
           "binary            -             -        -            -             -\n");
    has(t, "\n"
           "What comes of it\n"
           "                        f32  bf16    int8  binary\n"
           "loss                    2.5     -       -       -\n"
           "exact pages               -     -       -       -\n"
           "capsules: difference      -     -   0.012       -\n"
           "capsules: mean cosine     -     -  0.9991       -\n"
           "capsules: least cosine    -     -  0.9978       -\n"
           "height: difference        -     -    0.25       -\n"
           "of what is held out, and of the same inputs");
    has(t, "bf16    there is <no> such key.\n");
    has(t, "int8    at 16: the smallest plan needs 5 bytes more.\n");
    has(t, "int8    not judged: the text is gone.\n");
    has(t, "75.0 % could be");
    has(t, "at most 4.00 times");
    has(t, "at most 150 %"); /* 30 ms beside 12 */
    for (const char *line = t, *end; (end = strchr(line, '\n')); line = end + 1)
        assert_true(pl_text_columns(line, (size_t)(end - line)) <= COLUMNS);
    pl_str_deinit(&s);
}

static void json(void **state)
{
    (void)state;
    pl_str s = {0};
    json_error_t why;
    fill();
    pl_report_compare_write(&c, PL_FORM_JSON, COLUMNS, &s);
    json_t *root = json_loads(pl_str_text(&s), 0, &why);
    if (!root) fail_msg("%s in %s", why.text, pl_str_text(&s));
    assert_string_equal(json_string_value(json_object_get(root, "schema")), PL_COMPARE_SCHEMA);
    const json_t *rows = json_object_get(root, "variants");
    assert_int_equal(json_array_size(rows), c.rows);
    const json_t *f32 = json_array_get(rows, 0), *bf16 = json_array_get(rows, 1), *int8 = json_array_get(rows, 2);
    const json_t *one = json_array_get(json_object_get(f32, "runs"), 0);
    assert_true(json_number_value(json_object_get(one, "seconds")) == 0.012);
    assert_int_equal(json_array_size(json_object_get(one, "turns")), 3);
    assert_int_equal(json_integer_value(json_object_get(one, "measured_bytes")), 84900000);
    assert_true(json_is_null(json_object_get(f32, "why_not")));
    assert_true(json_is_null(json_object_get(json_object_get(f32, "held_out"), "exact_pages"))); /* NaN */
    assert_string_equal(json_string_value(json_object_get(bf16, "why_not")), "there is <no> such key");
    assert_true(json_is_null(json_object_get(bf16, "file_bytes")) && json_is_null(json_object_get(bf16, "held_out")));
    const json_t *many = json_array_get(json_object_get(int8, "runs"), 1);
    assert_true(json_is_null(json_object_get(many, "seconds")));
    assert_string_equal(json_string_value(json_object_get(many, "why_not")), "the smallest plan needs 5 bytes more");
    const json_t *height = json_array_get(json_object_get(int8, "outputs"), 1);
    assert_true(json_number_value(json_object_get(height, "difference")) == 0.25);
    assert_true(json_is_null(json_object_get(height, "mean_cosine")));
    assert_true(json_number_value(json_object_get(json_object_get(root, "binary"), "amdahl_limit")) == 4);
    json_decref(root);
    pl_str_deinit(&s);
}

static void page(void **state)
{
    (void)state;
    pl_str s = {0};
    fill();
    pl_report_compare_write(&c, PL_FORM_PAGE, COLUMNS, &s);
    const char *t = pl_str_text(&s);
    assert_memory_equal(t, "<!doctype html>", 15);
    has(t, "<h1>a&#60;b&#62;</h1>");
    has(t, "there is &#60;no&#62; such key");
    has(t, "data-l='sample at 16'>7 ms</td>");
    has(t, "<i class='weight' style='width:33.33%'></i>"); /* 4 ms beside 12 */
    has(t, ">capsules: mean cosine</td>");
    assert_null(strstr(t, "src="));
    assert_null(strstr(t, "http"));
    pl_str_deinit(&s);
}

/* One sentence for all, where it is the same. */
static void nothing_to_judge_by(void **state)
{
    (void)state;
    pl_str s = {0};
    fill();
    assert_null(pl_compare_not_judged(&c)); /* f32 was */
    c.row[0].metrics = 0;
    assert_null(pl_compare_not_judged(&c)); /* f32 does not say why */
    for (int i = 0; i < c.rows; i += 2) strcpy(c.row[i].not_judged, "nobody knows");
    assert_string_equal(pl_compare_not_judged(&c), "nobody knows");
    pl_report_compare_write(&c, PL_FORM_TEXT, COLUMNS, &s);
    has(pl_str_text(&s), "all     not judged: nobody knows.\n");
    assert_null(strstr(pl_str_text(&s), "int8    not judged"));
    pl_str_deinit(&s);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(text),
        cmocka_unit_test(json),
        cmocka_unit_test(page),
        cmocka_unit_test(nothing_to_judge_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* CSV in and out, JSON, SVG and the arena map. Every bad file gets its position and a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "plimsoll/place.h"
#include "base/alloc.h"
#include "base/file.h"
#include "plan/place/map.h"
#include "support/program.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static pl_place_table *read_good(const char *text)
{
    pl_place_table *t;
    pl_error err = {0};
    if (pl_place_table_parse(text, strlen(text), "t.csv", &t, &err) != PL_OK) fail_msg("%s", err.text);
    return t;
}

static void test_reads(void **state)
{
    (void)state;
    pl_place_table *t = read_good("\xef\xbb\xbfSize, offset,id ,upper,lower,alignment\r\n\r\n"
                                  "1.5KiB,,\"a, \"\"b\"\"\",5,0,64\r\n   \n4096 , 64, c ,9223372036854775807, 3 ,");
    pl_place_problem p = pl_place_table_problem(t);
    assert_int_equal(p.buffer_count, 2);
    assert_int_equal(p.capacity, PL_PLACE_NONE);
    assert_string_equal(p.buffers[0].id, "a, \"b\"");
    assert_int_equal(p.buffers[0].size, 1536);
    assert_int_equal(p.buffers[0].alignment, 64);
    assert_int_equal(p.buffers[0].fixed_offset, PL_PLACE_NONE);
    assert_string_equal(p.buffers[1].id, "c");
    assert_int_equal(p.buffers[1].lower, 3);
    assert_int_equal(p.buffers[1].upper, INT64_MAX);
    assert_int_equal(p.buffers[1].alignment, 1);
    assert_int_equal(p.buffers[1].fixed_offset, 64);
    pl_place_table_destroy(t);
    t = read_good("id,lower,upper,size\n");
    assert_int_equal(pl_place_table_problem(t).buffer_count, 0);
    pl_place_table_destroy(t);
    t = read_good("id,lower,upper,size\na,0,1,9007199254740993\n"); /* above 2^53, exact */
    assert_int_equal(pl_place_table_problem(t).buffers[0].size, 9007199254740993);
    pl_place_table_destroy(t);
}

#define HEAD "id,lower,upper,size\n"

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", "t.csv:1:1: the file is empty"},
        {"\n \n\t\n", "the file is empty"},
        {"id,lower,upper\na,0,1\n", "t.csv:1:1: the header lacks the column 'size'"},
        {"id,lower,upper,size,sise\n", "t.csv:1:21: unknown column 'sise', did you mean 'size'?"},
        {"id,lower,upper,size,id\n", "t.csv:1:21: column 'id' appears twice"},
        {"id,lower,upper,size,alignment,offset,x\n", "t.csv:1:38: more than 6 cells"},
        {"0,0,1,5\n", "t.csv:1:1: unknown column '0'"},
        {HEAD "a,0,1\n", "t.csv:2:6: 3 cells in this row; expected 4"},
        {HEAD "a,0,1,2,3\n", "t.csv:2:9: more than 4 cells"},
        {HEAD "a,0,1,\n", "t.csv:2:7: size is empty"},
        {HEAD ",0,1,2\n", "t.csv:2:1: the id is empty"},
        {HEAD "a,0,1,-2\n", "t.csv:2:7: size is '-2'"},
        {HEAD "a,0,1,2x\n", "t.csv:2:7: size is '2x'"},
        {HEAD "a,0,1,nan\n", "t.csv:2:7: size is 'nan'"},
        {HEAD "a,0,1,1e400\n", "size is '1e400'"},
        {HEAD "a,0,1,9223372036854775808\n", "beyond 2^63 - 1"},
        {HEAD "a,0,1,99999999999999999999\n", "t.csv:2:7: size is '99999999999999999999'"},
        {HEAD "a,0,1,1000000000000T\n", "t.csv:2:7: size"},
        {HEAD "a,0.5,1,2\n", "t.csv:2:3: lower is '0.5'; expected a whole number"},
        {HEAD "a,0,1k,2\n", "t.csv:2:5: upper is '1k'"},
        {HEAD "a,1,1,2\n", "t.csv:2:5: upper is 1 and lower 1"},
        {HEAD "a,0,1,2\nb,0,1,2\n\na,0,1,2\n", "t.csv:5:1: the id 'a' was used before, in line 2"},
        {HEAD "\"a,0,1,2\n", "t.csv:2:1: a quote opens here and is never closed"},
        {HEAD "\"a\nb\",0,1,2\n", "t.csv:2:1: a quoted cell runs past the end of the line"},
        {HEAD "\"a\"b,0,1,2\n", "t.csv:2:4: text after a closing quote"},
        {HEAD "\"", "a quote opens here"},
        {"id,lower,upper,size,alignment\na,0,1,2,3\n", "t.csv:2:9: alignment is 3, not a power of two"},
        {"id,lower,upper,size,alignment\na,0,1,2,0\n", "t.csv:2:9: alignment is 0"},
        {"id,lower,upper,size,alignment,offset\na,0,1,2,8,4\n", "t.csv:2:11: the fixed offset 4 is not a multiple"},
    };
    for (size_t k = 0; k < COUNT(bad); k++) {
        pl_place_table *t;
        pl_error err = {0};
        assert_int_equal(pl_place_table_parse(bad[k].text, strlen(bad[k].text), "t.csv", &t, &err), PL_E_DATA);
        assert_null(t);
        if (!strstr(err.text, bad[k].expected)) fail_msg("'%s' does not say '%s'", err.text, bad[k].expected);
    }
    pl_place_table *t;
    pl_error err = {0};
    assert_int_equal(pl_place_table_parse(HEAD "a\0b,0,1,2\n", sizeof HEAD + 10, "t.csv", &t, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "zero byte"));
    assert_int_equal(pl_place_table_read("/nonexistent/x.csv", &t, &err), PL_E_DATA);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void test_sizes(void **state)
{
    (void)state;
    uint64_t n;
    assert_int_equal(pl_place_parse_size("18446744073709551615", &n), 0);
    assert_int_equal(n, UINT64_MAX);
    assert_int_equal(pl_place_parse_size("1.5MiB", &n), 0);
    assert_int_equal(n, 1572864);
    assert_int_not_equal(pl_place_parse_size("18446744073709551616", &n), 0);
    assert_int_not_equal(pl_place_parse_size("", &n), 0);
    assert_int_not_equal(pl_place_parse_size("-1", &n), 0);
    assert_int_not_equal(pl_place_parse_size("12 apples", &n), 0);
}

/* --- out --- */

static uint64_t offsets[8];

static pl_place_table *solved(const char *text, pl_place_problem *problem, pl_place_solution *s)
{
    pl_place_table *t = read_good(text);
    pl_place_options options = pl_place_options_default();
    pl_error err = {0};
    *problem = pl_place_table_problem(t);
    *s = (pl_place_solution){.offsets = offsets};
    assert_int_equal(pl_place(problem, &options, s, &err), PL_OK);
    return t;
}

static char *print(const pl_place_problem *problem, const pl_place_solution *s, pl_place_form form)
{
    char *text;
    size_t bytes;
    pl_error err = {0};
    assert_int_equal(pl_place_print(problem, s, form, &text, &bytes, &err), PL_OK);
    assert_int_equal(strlen(text), bytes);
    return text;
}

static void test_csv_out(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "c,2,4,10\nb,1,3,5\n\"a,\"\"\",0,2,10\n", &problem, &s);
    char *text = print(&problem, &s, PL_PLACE_CSV);
    assert_string_equal(text, "id,lower,upper,size,offset\nc,2,4,10,0\nb,1,3,5,10\n\"a,\"\"\",0,2,10,0\n");
    pl_place_table *again = read_good(text); /* offsets are now fixed */
    assert_int_equal(pl_place_table_problem(again).buffers[1].fixed_offset, 10);
    pl_place_text_free(text);
    pl_place_table_destroy(again);
    pl_place_table_destroy(t);
    t = solved("id,lower,upper,size,alignment\na,0,1,10,64\n", &problem, &s);
    text = print(&problem, &s, PL_PLACE_CSV);
    assert_string_equal(text, "id,lower,upper,size,alignment,offset\na,0,1,10,64,0\n");
    pl_place_text_free(text);
    pl_place_table_destroy(t);
}

static void test_json_out(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "x,0,2,10\n\"y\"\"<&\",1,3,5\n", &problem, &s);
    char *text = print(&problem, &s, PL_PLACE_JSON);
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "plimsoll.place/1");
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "fits");
    assert_true(json_is_null(json_object_get(json, "capacity_bytes")));
    assert_int_equal(json_integer_value(json_object_get(json, "peak_bytes")), 15);
    assert_int_equal(json_integer_value(json_object_get(json, "lower_bound_bytes")), 15);
    assert_true(json_is_true(json_object_get(json, "optimal")));
    json_t *row = json_array_get(json_object_get(json, "buffers"), 1);
    assert_string_equal(json_string_value(json_object_get(row, "id")), "y\"<&");
    assert_int_equal(json_integer_value(json_object_get(row, "offset")), 10);
    json_decref(json);
    pl_place_text_free(text);
    text = print(&problem, &s, PL_PLACE_SVG);
    assert_non_null(strstr(text, "y\"&lt;&amp;: 5 B at offset 10, alive [1, 3)"));
    assert_non_null(strstr(text, "2 buffers: peak 15 B"));
    pl_place_text_free(text);
    pl_place_table_destroy(t);
}

/* An id may be any bytes; a picture with bytes that are not UTF-8 is no XML. */
static void test_svg_is_utf8(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "caf\xe9,0,1,5\nd\xc3\xbc\xf0\x9f,0,1,5\n", &problem, &s);
    char *text = print(&problem, &s, PL_PLACE_SVG);
    assert_non_null(strstr(text, "<title>caf\xef\xbf\xbd: 5 B"));
    assert_non_null(strstr(text, "<title>d\xc3\xbc\xef\xbf\xbd\xef\xbf\xbd: 5 B"));
    pl_place_text_free(text);
    pl_place_table_destroy(t);
}

/* Moments beyond 2^53 that a double cannot tell apart: the axis once stepped on the spot for ever. */
static void test_late_times_in_svg(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "a,1152921504606846976,1152921504606846986,10\n"
                                    "b,1152921504606846981,1152921504606846986,20\n",
                               &problem, &s);
    char *text = print(&problem, &s, PL_PLACE_SVG);
    assert_non_null(strstr(text, "<rect x='646.00' y='254.67' width='530.00'")); /* b: the right half */
    assert_non_null(strstr(text, ">1,152,921,504,606,846,980</text>"));
    assert_null(strstr(text, "nan"));
    pl_place_text_free(text);
    pl_place_table_destroy(t);
    t = solved(HEAD "a,0,9223372036854775807,10\n", &problem, &s); /* the longest time line */
    text = print(&problem, &s, PL_PLACE_SVG);
    assert_non_null(strstr(text, ">8,000,000,000,000,000,000</text>"));
    pl_place_text_free(text);
    pl_place_table_destroy(t);
}

static void test_map(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "a,0,4,20\nb,4,8,10\nc,6,8,10\n", &problem, &s);
    pl_str out = {0};
    pl_error err = {0};
    s.offsets[0] = 0, s.offsets[1] = 0, s.offsets[2] = 10;
    assert_int_equal(pl_place_map(&problem, &s, 8, 4, &out, &err), PL_OK);
    assert_string_equal(pl_str_text(&out), "     20 B |AAAA..CC|\n"
                                           "     10 B |AAAA..CC|\n"
                                           "          |AAAABBBB|\n"
                                           "      0 B |AAAABBBB|\n"
                                           "     time  0      8\n"
                                           "  A a, 20 B, alive [0, 4)\n"
                                           "  B b, 10 B, alive [4, 8)\n"
                                           "  C c, 10 B, alive [6, 8)\n");
    pl_str_clear(&out);
    s.offsets[2] = 0; /* wrong: on top of b */
    assert_int_equal(pl_place_map(&problem, &s, 8, 2, &out, &err), PL_OK);
    assert_non_null(strstr(pl_str_text(&out), "|AAAABB!!|"));
    pl_str_deinit(&out);
    pl_place_table_destroy(t);
}

/* Above 2^53 the moments below are one and the same as doubles. */
static void test_map_of_late_times(void **state)
{
    (void)state;
    pl_place_problem problem;
    pl_place_solution s;
    pl_place_table *t = solved(HEAD "a,9223372036854775799,9223372036854775803,20\n"
                                    "b,9223372036854775803,9223372036854775807,10\n",
                               &problem, &s);
    pl_str out = {0};
    pl_error err = {0};
    assert_int_equal(pl_place_map(&problem, &s, 8, 2, &out, &err), PL_OK);
    assert_string_equal(pl_str_text(&out), "     20 B |AAAA....|\n"
                                           "      0 B |AAAABBBB|\n"
                                           "     time  9223372036854775799 9223372036854775807\n"
                                           "  A a, 20 B, alive [9223372036854775799, 9223372036854775803)\n"
                                           "  B b, 10 B, alive [9223372036854775803, 9223372036854775807)\n");
    pl_str_clear(&out);
    s.offsets[1] = UINT64_MAX - 10; /* wrong: far above the peak */
    assert_int_equal(pl_place_map(&problem, &s, 8, 2, &out, &err), PL_OK);
    assert_non_null(strstr(pl_str_text(&out), "|AAAA....|\n      0 B |AAAA....|"));
    pl_str_deinit(&out);
    pl_place_table_destroy(t);
}

static void test_save(void **state)
{
    (void)state;
    char folder[] = "/tmp/pl_place_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.csv", folder);
    pl_error err = {0};
    assert_int_equal(pl_file_write_all(path, HEAD "a,0,1,7\n", strlen(HEAD) + 8, &err), PL_OK);
    pl_place_table *t;
    assert_int_equal(pl_place_table_read(path, &t, &err), PL_OK);
    assert_int_equal(pl_place_table_problem(t).buffers[0].size, 7);
    pl_place_table_destroy(t);
    unlink(path);
    rmdir(folder);
    assert_int_equal(pl_file_write_all(path, "x", 1, &err), PL_E_STORAGE);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] = HEAD "a,0,4,20\n\"b\",4,8,10\nc,6,8,10\n";
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_place_table *t;
        pl_error err = {0};
        char *printed = NULL;
        size_t bytes;
        pl_alloc_fail_at(n, 1);
        status = pl_place_table_parse(text, sizeof text - 1, "t", &t, &err);
        if (status == PL_OK) {
            pl_place_problem problem = pl_place_table_problem(t);
            pl_place_solution s = {.offsets = offsets, .heuristic = ""};
            for (int form = PL_PLACE_CSV; form <= PL_PLACE_SVG && status == PL_OK; form++) {
                status = pl_place_print(&problem, &s, (pl_place_form)form, &printed, &bytes, &err);
                pl_place_text_free(printed);
            }
            pl_place_table_destroy(t);
        }
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
        assert_int_equal(pl_alloc_live_blocks(), 0);
        assert_true(n < 1000);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads),
                                       cmocka_unit_test(test_bad_files),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_csv_out),
                                       cmocka_unit_test(test_json_out),
                                       cmocka_unit_test(test_map),
                                       cmocka_unit_test(test_map_of_late_times),
                                       cmocka_unit_test(test_save),
                                       cmocka_unit_test(test_every_allocation_may_fail),
                                       cmocka_unit_test(test_late_times_in_svg),
                                       cmocka_unit_test(test_svg_is_utf8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

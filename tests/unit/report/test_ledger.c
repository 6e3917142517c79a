/* Planned against measured, with rows made up: equal, one differs, one missing, one too many, something unexplained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "report/report.h"
#include "show/render.h"
#include "support/program.h"

static pl_process_planned planned;
static pl_memory_measured measured;

static void add(pl_memory_kind kind, const char *name, uint64_t bytes)
{
    pl_memory_row *row = &planned.row[planned.row_count++];
    *row = (pl_memory_row){.kind = kind, .count = 1, .reserved_bytes = bytes, .resident_bytes = bytes};
    snprintf(row->name, sizeof row->name, "%s", name);
    planned.resident_bytes += bytes;
}

static void sum_up(void)
{
    measured.explained_bytes = 0;
    for (size_t i = 0; i < measured.row_count; i++) measured.explained_bytes += measured.row[i].resident_bytes;
    measured.rollup_bytes = measured.peak_bytes = measured.explained_bytes + measured.unexplained_bytes;
}

static int setup(void **state)
{
    (void)state;
    memset(&planned, 0, sizeof planned);
    memset(&measured, 0, sizeof measured);
    add(PL_MEMORY_ARENA, "ram", 40000000);
    add(PL_MEMORY_HEAP, "heap", 1 << 20);
    add(PL_MEMORY_THREAD_STACK, "thread stacks", 131072);
    add(PL_MEMORY_LIBRARY, "libm.so.6", 917504);
    measured.row_count = planned.row_count;
    memcpy(measured.row, planned.row, sizeof planned.row);
    sum_up();
    return 0;
}

/* The text is judged after it is checked that neither heap nor more than the promised bytes were needed. */
static const char *text_of(void)
{
    static char memory[PL_REPORT_LEDGER_BYTES];
    static _Alignas(8) char document[PL_REPORT_LEDGER_DOC_BYTES];
    uint64_t before = pl_alloc_request_count();
    pl_str s = pl_str_fixed(memory, sizeof memory);
    pl_doc d = pl_doc_begin_fixed(document, sizeof document);
    pl_report_ledger(&planned, &measured, &d);
    pl_doc_print(&d, &(pl_text_form){.columns = 400}, &s); /* sentences stay whole */
    assert_false(s.failed);
    assert_int_equal(pl_alloc_request_count(), before);
    return memory;
}

/* The JSON's rows must add up to its totals, whatever was measured. */
static json_t *json_of(void)
{
    static char memory[PL_REPORT_LEDGER_JSON_BYTES];
    static _Alignas(8) char document[PL_REPORT_LEDGER_DOC_BYTES];
    pl_str s = pl_str_fixed(memory, sizeof memory);
    pl_doc d = pl_doc_begin_fixed(document, sizeof document);
    pl_report_ledger(&planned, &measured, &d);
    pl_doc_write_json(&d, false, &s);
    assert_false(s.failed);
    json_error_t error;
    json_t *root = json_loads(memory, JSON_REJECT_DUPLICATES, &error), *row;
    assert_non_null(root);
    json_int_t sums[3] = {0}, unexplained = json_integer_value(json_object_get(root, "unexplained_bytes"));
    size_t i;
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        sums[0] += json_integer_value(json_object_get(row, "planned_bytes"));
        sums[1] += json_integer_value(json_object_get(row, "measured_bytes"));
        sums[2] += json_integer_value(json_object_get(row, "difference_bytes"));
    }
    assert_int_equal(sums[0], json_integer_value(json_object_get(root, "planned_bytes")));
    assert_int_equal(sums[1] + unexplained, json_integer_value(json_object_get(root, "measured_bytes")));
    assert_int_equal(sums[2] + unexplained, json_integer_value(json_object_get(root, "difference_bytes")));
    return root;
}

static void test_equal(void **state)
{
    (void)state;
    pl_report_verdict v = pl_report_judge(&planned, &measured);
    assert_true(v.as_planned && v.peak_as_planned);
    assert_int_equal(v.difference_bytes, 0);
    assert_null(v.worst_name);
    assert_int_equal(v.allowed_bytes, 1000000); /* 1 % of 42 MB is less */
    assert_non_null(strstr(text_of(), "As planned, to the byte.\n"));
    json_t *root = json_of();
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "plimsoll.ledger/1");
    assert_true(json_is_true(json_object_get(root, "as_planned")));
    assert_true(json_is_null(json_object_get(root, "worst")));
    json_decref(root);
}

static void test_one_differs(void **state)
{
    (void)state;
    measured.row[1].resident_bytes += 2000000;
    measured.row[3].resident_bytes -= 4096;
    sum_up();
    pl_report_verdict v = pl_report_judge(&planned, &measured);
    assert_false(v.as_planned);
    assert_false(v.peak_as_planned);
    assert_int_equal(v.difference_bytes, 2000000 - 4096);
    assert_string_equal(v.worst_name, "heap");
    assert_int_equal(v.worst_difference_bytes, 2000000);
    assert_non_null(
        strstr(text_of(),
               "NOT as planned: 1,995,904 bytes over (1.00 MB allowed). The row that differs most is heap \"heap\", by "
               "+2,000,000 bytes.\n"));
    assert_non_null(strstr(text_of(), "VmHWM: above the plan"));
    json_decref(json_of());
}

static void test_just_within_and_just_beyond(void **state)
{
    (void)state;
    measured.row[0].resident_bytes -= 1000000;
    sum_up();
    assert_true(pl_report_judge(&planned, &measured).as_planned);
    measured.row[0].resident_bytes -= 1;
    sum_up();
    assert_false(pl_report_judge(&planned, &measured).as_planned);
    planned.row[0].resident_bytes += 1000000000, planned.resident_bytes += 1000000000; /* 1 % is more than 1 MB */
    measured.row[0].resident_bytes += 1000000000 - 9000000;
    sum_up();
    pl_report_verdict v = pl_report_judge(&planned, &measured);
    assert_int_equal(v.allowed_bytes, planned.resident_bytes / 100);
    assert_true(v.as_planned);
}

static void test_one_missing_and_one_too_many(void **state)
{
    (void)state;
    snprintf(measured.row[3].name, sizeof measured.row[3].name, "libother.so");
    sum_up();
    const char *text = text_of();
    assert_non_null(strstr(text, "not found in the process"));
    assert_non_null(strstr(text, "not planned"));
    assert_non_null(strstr(text, "-917,504"));
    assert_non_null(strstr(text, "+917,504"));
    json_t *root = json_of();
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 5);
    json_decref(root);
}

/* Pages of files come and go: they are in no sum, and the process's peak may have as many of them as there are. */
static void test_mapped_files(void **state)
{
    (void)state;
    assert_null(strstr(text_of(), "mapped files"));
    add(PL_MEMORY_FILES, "files", 0);
    planned.row[4].reserved_bytes = 90000000;
    measured.row[measured.row_count++] = planned.row[4];
    measured.row[4].resident_bytes = measured.files_bytes = 70000000;
    measured.committed = (pl_process_faults){1200, 34};
    measured.peak_bytes = planned.resident_bytes + 90000000 + 1000000;
    const pl_report_verdict v = pl_report_judge(&planned, &measured);
    assert_true(v.as_planned && v.peak_as_planned && v.difference_bytes == 0 && !v.worst_name);
    const char *text = text_of();
    assert_non_null(strstr(text, "As planned, to the byte.\n"));
    assert_non_null(strstr(text, "90,000,000"));
    assert_non_null(strstr(text, "70,000,000"));
    assert_non_null(strstr(text,
                           "Page faults of mapped files since the start of the work: 1,200, and 34 that waited for "
                           "the disk.\n"));
    json_t *root = json_of();
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 4);
    assert_int_equal(json_integer_value(json_object_get(root, "mapped_files_at_most_bytes")), 90000000);
    assert_int_equal(json_integer_value(json_object_get(root, "mapped_files_bytes")), 70000000);
    assert_int_equal(json_integer_value(json_object_get(root, "mapped_files_minor_faults")), 1200);
    assert_int_equal(json_integer_value(json_object_get(root, "mapped_files_major_faults")), 34);
    json_decref(root);
    measured.peak_bytes++;
    assert_false(pl_report_judge(&planned, &measured).peak_as_planned);
}

/* A lock that a copy of the program under another name runs. */
static void test_program_of_another_name(void **state)
{
    (void)state;
    add(PL_MEMORY_PROGRAM, "plimsoll", 2000000);
    measured.row[measured.row_count] = planned.row[planned.row_count - 1];
    snprintf(measured.row[measured.row_count++].name, sizeof measured.row[0].name, "copy-of-plimsoll");
    sum_up();
    const char *text = text_of();
    assert_null(strstr(text, "not found in the process"));
    assert_null(strstr(text, "not planned"));
    assert_non_null(strstr(text, "plimsoll"));
    json_t *root = json_of();
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 5);
    json_decref(root);
    assert_int_equal(pl_report_judge(&planned, &measured).worst_difference_bytes, 0);
}

static void test_unexplained_is_listed(void **state)
{
    (void)state;
    measured.unexplained_count = 2;
    measured.unexplained_bytes = 5000000 + 4096 + 8192; /* one mapping more than fits the list */
    measured.unexplained[0] = (pl_memory_unexplained){0x7f1200000000, 0x7f1200500000, 5000000, "rw-p", ""};
    measured.unexplained[1] =
        (pl_memory_unexplained){0x7f1300000000, 0x7f1300001000, 4096, "r--p", "/tmp/\033[31mfile"};
    sum_up();
    const char *text = text_of();
    assert_non_null(strstr(text, "7f1200000000-7f1200500000  5,000,000"));
    assert_non_null(strstr(text, "anonymous"));
    assert_non_null(strstr(text, "/tmp/?[31mfile"));
    assert_non_null(strstr(text, "The row that differs most is what is unexplained, by +5,012,288 bytes."));
    json_t *root = json_of();
    assert_int_equal(json_array_size(json_object_get(root, "unexplained")), 2);
    json_decref(root);
}

/* The promise holds for a table as full as it can be. */
static void test_full_table_needs_no_more_room(void **state)
{
    (void)state;
    while (planned.row_count < PL_MEMORY_ROWS_MAX) {
        char name[PL_MEMORY_NAME_BYTES];
        snprintf(name, sizeof name, "libwithaverylongnamefortheledger-%zu.so.1", planned.row_count);
        add(PL_MEMORY_LIBRARY, name, 123456789);
    }
    measured.row_count = planned.row_count;
    memcpy(measured.row, planned.row, sizeof planned.row);
    measured.unexplained_count = PL_MEMORY_UNEXPLAINED_MAX;
    for (size_t i = 0; i < measured.unexplained_count; i++) {
        pl_memory_unexplained *u = &measured.unexplained[i];
        *u = (pl_memory_unexplained){0x7f1300000000, 0x7f1300001000, 4096, "rw-p",
                                     "/a/path/as/long/as/fits/the/list/of/these"};
        measured.unexplained_bytes += 4096;
    }
    sum_up();
    text_of();
    json_decref(json_of());
}

static void test_too_little_room_is_said(void **state)
{
    (void)state;
    for (size_t room = 1; room < 4000; room += 97) {
        char memory[4000];
        pl_str s;
        pl_doc d = pl_doc_begin_in(memory, room, &s);
        pl_report_ledger(&planned, &measured, &d);
        pl_doc_print(&d, NULL, &s);
        assert_true(s.failed);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_equal, setup),
        cmocka_unit_test_setup(test_one_differs, setup),
        cmocka_unit_test_setup(test_just_within_and_just_beyond, setup),
        cmocka_unit_test_setup(test_one_missing_and_one_too_many, setup),
        cmocka_unit_test_setup(test_mapped_files, setup),
        cmocka_unit_test_setup(test_program_of_another_name, setup),
        cmocka_unit_test_setup(test_unexplained_is_listed, setup),
        cmocka_unit_test_setup(test_full_table_needs_no_more_room, setup),
        cmocka_unit_test_setup(test_too_little_room_is_said, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

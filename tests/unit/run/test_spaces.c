/* A plan over two spaces: each has its own arena, placed, judged, printed, read and bound for itself. The second space
 * is a piece of this test's memory, so that what runs there can be looked at. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/size.h"
#include "plan/plan.h"
#include "run/program.h"
#include "run/spaces.h"
#include "support/program.h"

/* near → far → near → far, 1000 numbers each: w and y lie far away, x and z near; x dies before z is there. */
static const char text[] = "graph 1\n"
                           "space \"far\"\n"
                           "region 0 \"p\"\n"
                           "value 0 \"w\" f32 [1000] weight space=1\n"
                           "value 1 \"x\" f32 [1000] temporary program=0\n"
                           "value 2 \"y\" f32 [1000] temporary program=0 space=1\n"
                           "value 3 \"z\" f32 [1000] output program=0\n"
                           "node 0 activation region=0 in=0 out=1 act=tanh\n"
                           "node 1 activation region=0 in=1 out=2 act=tanh\n"
                           "node 2 activation region=0 in=2 out=3 act=tanh\n"
                           "end graph\n";
enum { ELEMS = 1000, BYTES = 4032 /* 4000, in lines of 64 */ };

static _Alignas(64) unsigned char near_memory[1 << 14], far_memory[1 << 14];

static pl_plan *make_plan(void)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default(), .huge_pages = true};
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (pl_plan_create(g, &options, &p, &err) != PL_OK || pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

static void each_space_has_an_arena(void **state)
{
    (void)state;
    uint64_t alive[3];
    pl_plan *p = make_plan();
    assert_int_equal(p->arena[PL_SPACE_RAM].bytes, 2 * BYTES); /* z is an output: it lives as long as the program */
    assert_int_equal(p->arena[1].bytes, 2 * BYTES);
    assert_int_equal(p->arena[1].lower_bound_bytes, 2 * BYTES);
    for (int i = 0; i < 4; i++) assert_int_equal(p->value[i].space, i == 0 || i == 2);
    pl_plan_alive(p, 1, alive);
    assert_true(alive[0] == BYTES && alive[1] == 2 * BYTES && alive[2] == 2 * BYTES);
    size_t rows = 0;
    for (size_t i = 0; i < p->ledger.row_count; i++) {
        const pl_memory_row *r = &p->ledger.row[i];
        if (r->kind != PL_MEMORY_ARENA) continue;
        assert_string_equal(r->name, rows++ ? "far" : "ram");
        assert_int_equal(r->resident_bytes, pl_align_up(2 * BYTES, PL_PAGE_BYTES));
    }
    assert_int_equal(rows, 2);
    pl_plan_destroy(p);
}

static void the_judge_keeps_spaces_apart(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p = make_plan();
    assert_true(p->value[0].offset == 0 && p->value[1].offset + p->value[3].offset == BYTES); /* the same addresses */
    p->value[2].space = PL_SPACE_RAM;
    assert_int_equal(pl_plan_check(p, &err), PL_E_INTERNAL);
    p->value[2].space = 1;
    p->value[2].offset = p->value[0].offset;
    assert_int_equal(pl_plan_check(p, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "overlap"));
    p->value[2].offset = 2 * BYTES;
    assert_int_equal(pl_plan_check(p, &err), PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "outside the arena"));
    pl_plan_destroy(p);
}

static pl_status parse(const pl_str *s, pl_plan **p, pl_error *err)
{
    return pl_plan_parse("t", pl_str_text(s), s->bytes, p, err);
}

static void it_reads_back(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_str once = {0}, again = {0};
    pl_plan *p = make_plan(), *read = NULL;
    pl_plan_print(p, &once);
    if (parse(&once, &read, &err) != PL_OK) fail_msg("%s", err.text);
    pl_plan_print(read, &again);
    assert_string_equal(pl_str_text(&once), pl_str_text(&again));
    assert_int_equal(pl_plan_check(read, &err), PL_OK);
    pl_plan_destroy(read);
    assert_int_equal(pl_plan_copy_as_read(p, &read, &err), PL_OK);
    again.bytes = 0;
    pl_plan_print(read, &again);
    assert_string_equal(pl_str_text(&once), pl_str_text(&again));
    pl_plan_destroy(read);
    char *line = strstr(once.data, "arena_of 1"); /* without it, and with one too many */
    assert_non_null(line);
    line[9] = '2';
    assert_int_equal(parse(&once, &read, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "space 1"));
    pl_str_deinit(&once);
    pl_str_deinit(&again);
    pl_plan_destroy(p);
}

static void programs_run_over_both(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p = make_plan();
    pl_program *program = NULL;
    assert_int_equal(pl_program_create(p, near_memory, sizeof near_memory, &program, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "8064 bytes of far"));
    pl_program_memory memory[PL_SPACES_MAX] = {{near_memory, sizeof near_memory}, {far_memory, sizeof far_memory}};
    memset(near_memory, 0xFF, sizeof near_memory);
    memset(far_memory, 0xFF, sizeof far_memory);
    assert_int_equal(pl_program_create_in(p, memory, &program, &err), PL_OK);
    float *w = pl_program_find(program, "w"), *z = pl_program_find(program, "z");
    assert_ptr_equal(w, far_memory + p->value[0].offset);
    assert_ptr_equal(z, near_memory + p->value[3].offset);
    for (int i = 0; i < ELEMS; i++) w[i] = (float)i / 100 - 5;
    assert_int_equal(pl_program_run(program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    for (int i = 0; i < ELEMS; i++) assert_true(fabs(z[i] - tanh(tanh(tanh((float)i / 100 - 5)))) < 1e-6);
    for (size_t i = 2 * BYTES; i < sizeof near_memory; i++)
        assert_true(near_memory[i] == 0xFF && far_memory[i] == 0xFF);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

/* ---- files ---- */

/* Two weights of 1000 and 10 bytes in files, the second in front of the first. */
static const char in_files[] = "graph 2\n"
                               "space \"files\"\n"
                               "region 0 \"p\"\n"
                               "value 0 \"w\" f32 [250] weight space=1 place=9002 frozen=1\n"
                               "value 1 \"v\" bf16 [5] weight space=1 place=2 frozen=1\n"
                               "value 2 \"x\" f32 [250] output program=0\n"
                               "value 3 \"y\" bf16 [5] output program=0\n"
                               "node 0 activation region=0 x=0 y=2 act=tanh\n"
                               "node 1 activation region=0 x=1 y=3 act=tanh\n"
                               "end graph\n";

static pl_plan *plan_files(const char *graph, pl_error *err)
{
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    const pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    if (pl_graph_parse("t", graph, strlen(graph), &g, err) != PL_OK) return NULL;
    if (pl_graph_check(g, PL_STAGE_BOUND, err) != PL_OK || pl_plan_create(g, &options, &p, err) != PL_OK)
        pl_graph_destroy(g);
    return p;
}

static void values_in_files_stay_where_they_are(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_str once = {0}, again = {0};
    pl_plan *p = plan_files(in_files, &err), *read = NULL;
    if (!p || pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(p->value[0].offset == 9002 && p->value[1].offset == 2);
    assert_int_equal(p->arena[1].bytes, 10002);
    const pl_memory_row *row = pl_memory_find_row(p->ledger.row, p->ledger.row_count, PL_MEMORY_FILES, "files");
    assert_true(row && row->reserved_bytes == 3 * PL_PAGE_BYTES && row->resident_bytes == 0);
    pl_plan_print(p, &once);
    if (parse(&once, &read, &err) != PL_OK || pl_plan_check(read, &err) != PL_OK) fail_msg("%s", err.text);
    pl_plan_print(read, &again);
    assert_string_equal(pl_str_text(&once), pl_str_text(&again));
    pl_plan_destroy(read);
    p->value[0].offset += 2; /* it would be read from where it is not */
    assert_int_equal(pl_plan_check(p, &err), PL_E_INTERNAL);
    pl_plan_destroy(p);
    pl_str_deinit(&once);
    pl_str_deinit(&again);
}

static void only_frozen_weights_lie_in_files(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"place=2 frozen=1", "place=2", "only a frozen weight can lie in files"},
        {"output program=0\nn", "output program=0 space=1\nn", "only a frozen weight can lie in files"},
        {"space=1 place=9002", "place=9002", "only what lies in files has a place there"},
        {"place=9002", "place=72057594037927936", "its place overflows"},
        {"place=9002", "place=8", "overlap"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char changed[1024];
        pl_error err = {0};
        const char *at = strstr(in_files, wrong[i][0]);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - in_files), in_files, wrong[i][1],
                 at + strlen(wrong[i][0]));
        pl_plan *p = plan_files(changed, &err);
        if (p) assert_int_equal(pl_plan_check(p, &err), PL_E_INTERNAL);
        if (!strstr(err.text, wrong[i][2])) fail_msg("\"%s\" does not say \"%s\"", err.text, wrong[i][2]);
        pl_plan_destroy(p);
    }
}

static void files_begin_as_zeros(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_arena a;
    static pl_memory_owners owners;
    const pl_space_kind *files = pl_space_find("files");
    assert_true(files && files->is_files);
    assert_int_equal(files->map(&a, 10002, &(pl_arena_options){.name = "files"}, &owners, &err), PL_OK);
    assert_int_equal((uintptr_t)a.base % PL_PAGE_BYTES, 0);
    for (size_t i = 0; i < 3 * PL_PAGE_BYTES; i++) assert_int_equal(a.base[i], 0);
    assert_true(owners.count == 1 && owners.range[0].kind == PL_MEMORY_FILES);
    files->unmap(&a);
    assert_int_equal(owners.count, 0);
}

static void who_provides_spaces(void **state)
{
    (void)state;
    assert_non_null(pl_space_find("ram"));
    assert_null(pl_space_find("far"));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_space_has_an_arena), cmocka_unit_test(the_judge_keeps_spaces_apart),
        cmocka_unit_test(it_reads_back),           cmocka_unit_test(programs_run_over_both),
        cmocka_unit_test(who_provides_spaces),     cmocka_unit_test(values_in_files_stay_where_they_are),
        cmocka_unit_test(files_begin_as_zeros),    cmocka_unit_test(only_frozen_weights_lie_in_files),
    };
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

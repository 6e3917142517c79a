/* Programs made by hand: nested regions and their hooks, predicates, single trips, views, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/interpret.h"
#include "reference/tiny.h"
#include "support/load.h"
#include "support/program.h"

static _Alignas(64) unsigned char memory[1 << 16];

static pl_plan *plan_of(const char *text)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (pl_plan_create(g, &options, &p, &err) != PL_OK || pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

static pl_program *program_of(const pl_plan *p)
{
    pl_error err = {0};
    pl_program *program = NULL;
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(p, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    return program;
}

static void run(pl_program *program, pl_id which, bool single_trip)
{
    pl_error err = {0};
    pl_program_hooks hooks = {.single_trip = single_trip};
    assert_int_equal(pl_program_run(program, which, &hooks, &err), PL_OK);
}

/* sum is doubled by every node: how often each ran can be read off it. */
static const char nested[] = "graph 1\n"
                             "region 0 \"p\"\n"
                             "region 1 \"outer\" in=0 trip=2\n"
                             "region 2 \"inner\" in=1 trip=3\n"
                             "region 3 \"other\" in=1 trip=2\n"
                             "region 4 \"empty\" in=1 trip=9\n"
                             "value 0 \"x\" f32 [1] input\n"
                             "value 1 \"zero\" f32 [1] output program=0\n"
                             "value 2 \"a\" f64 [1] output program=0\n"
                             "value 3 \"a.1\" f64 [1] output program=0 update=2\n"
                             "value 4 \"a.2\" f64 [1] output program=0 update=3\n"
                             "value 5 \"a.3\" f64 [1] output program=0 update=4\n"
                             "value 6 \"a.4\" f64 [1] output program=0 update=5\n"
                             "node 0 fill region=0 out=1 value=0\n"
                             "node 1 fill region=0 out=2 value=0\n"
                             "node 2 sum_squares region=2 in=0,2 out=3\n"
                             "node 3 sum_squares region=1 in=0,3 out=4\n"
                             "node 4 sum_squares region=3 in=0,4 out=5\n"
                             "node 5 sum_squares region=0 in=0,5 out=6\n"
                             "end graph\n";

static void nested_regions_run_their_trips(void **state)
{
    (void)state;
    pl_plan *p = plan_of(nested);
    pl_program *program = program_of(p);
    *(float *)pl_program_find(program, "x") = 1;
    run(program, 0, false);
    assert_true(*(double *)pl_program_find(program, "a") == 2 * (3 + 1 + 2) + 1);
    run(program, 0, true);
    assert_true(*(double *)pl_program_find(program, "a") == 4);
    reference *r = reference_create(p->graph);
    *reference_find(r, "x") = 1;
    reference_run(r, 0, NULL, NULL);
    assert_true(*reference_find(r, "a") == 13);
    reference_destroy(r);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

/* Every node of a program opens and closes as many regions as they nest. */
static void deep_regions_with_few_nodes(void **state)
{
    (void)state;
    pl_str text = {0};
    enum { PROGRAMS = 6, DEPTH = 8 };
    pl_str_append(&text, "graph 1\n");
    for (int p = 0; p < PROGRAMS; p++)
        for (int d = 0; d <= DEPTH; d++) {
            int id = p * (DEPTH + 1) + d;
            if (d == 0)
                pl_str_printf(&text, "region %d \"p%d\"\n", id, p);
            else
                pl_str_printf(&text, "region %d \"r\" in=%d trip=2\n", id, id - 1);
        }
    for (int p = 0; p < PROGRAMS; p++)
        pl_str_printf(&text, "value %d \"y%d\" f32 [1] output program=%d\n", p, p, p * (DEPTH + 1));
    for (int p = 0; p < PROGRAMS; p++)
        pl_str_printf(&text, "node %d fill region=%d out=%d value=%d\n", p, p * (DEPTH + 1) + DEPTH, p, p + 1);
    pl_str_append(&text, "end graph\n");
    pl_plan *plan = plan_of(pl_str_text(&text));
    pl_program *program = program_of(plan);
    for (pl_id p = 0; p < PROGRAMS; p++) {
        char name[8];
        snprintf(name, sizeof name, "y%u", p);
        run(program, p * (DEPTH + 1), false);
        assert_true(*(float *)pl_program_find(program, name) == (float)p + 1);
    }
    pl_program_destroy(program);
    pl_plan_destroy(plan);
    pl_str_deinit(&text);
}

static void regions_too_deep_are_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_program *program = NULL;
    pl_str text = {0};
    pl_str_append(&text, "graph 1\nregion 0 \"p\"\n");
    for (int d = 1; d <= 9; d++) pl_str_printf(&text, "region %d \"r\" in=%d\n", d, d - 1);
    pl_str_append(&text, "value 0 \"y\" f32 [1] output program=0\nnode 0 fill region=9 out=0 value=0\nend graph\n");
    pl_plan *p = plan_of(pl_str_text(&text));
    assert_int_equal(pl_program_create(p, memory, sizeof memory, &program, &err), PL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "deeper"));
    pl_plan_destroy(p);
    pl_str_deinit(&text);
}

/* Three trips leave a tile each; the next region finds them again. */
static const char tiled[] = "graph 1\n"
                            "region 0 \"p\" batch=1\n"
                            "region 1 \"first\" in=0 trip=3\n"
                            "region 2 \"second\" in=0 trip=3\n"
                            "value 0 \"table\" f32 [4,2] weight\n"
                            "value 1 \"tokens\" i32 [3,2] output program=0\n"
                            "value 2 \"tokens.1\" i32 [1,2] output program=0 view=1 offset=0 strides=2,1 tile=1\n"
                            "value 3 \"targets\" i32 [1,2] output program=0\n"
                            "value 4 \"sample\" i64 [3] output program=0\n"
                            "value 5 \"sample.1\" i64 [1] output program=0 view=4 offset=0 strides=1 tile=1\n"
                            "value 6 \"tokens.2\" i32 [1,2] output program=0 view=1 offset=0 strides=2,1 tile=1\n"
                            "value 7 \"x\" f32 [3,2,2] output program=0\n"
                            "value 8 \"x.1\" f32 [1,2,2] output program=0 view=7 offset=0 strides=4,2,1 tile=1\n"
                            "node 0 load region=1 out=2,3,5\n"
                            "node 1 embedding region=2 in=6,0 out=8 window=1\n"
                            "end graph\n";

static pl_status load_trip(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)err;
    uint64_t iteration = pl_trips_last(trips);
    assert_int_equal(iteration, (*(uint64_t *)context)++);
    load_tokens(call)[0] = (int32_t)iteration, load_tokens(call)[1] = 3 - (int32_t)iteration;
    load_targets(call)[0] = load_targets(call)[1] = -1;
    *call->first_sample = 100 + (int64_t)iteration;
    return PL_OK;
}

static void count_trip(void *context) { (*(uint64_t *)context)++; }

static void tiles_move_on_with_the_trips(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p = plan_of(tiled);
    pl_program *program = program_of(p);
    float *table = pl_program_find(program, "table"), *x = pl_program_find(program, "x");
    for (int i = 0; i < 8; i++) table[i] = (float)i;
    uint64_t loads = 0, trips = 0;
    pl_program_hooks hooks = {.load = load_trip, .context = &loads};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    for (int t = 0; t < 3; t++) {
        assert_int_equal(((int64_t *)pl_program_find(program, "sample"))[t], 100 + t);
        for (int i = 0; i < 2; i++)
            assert_true(x[4 * t + i] == (float)(2 * t + i) && x[4 * t + 2 + i] == (float)(2 * (3 - t) + i));
    }
    assert_int_equal(pl_program_count_trips(program, 0), 6);
    pl_plan_destroy(p);
    pl_program_destroy(program);
    p = plan_of(nested);
    program = program_of(p);
    hooks = (pl_program_hooks){.trip = count_trip, .context = &trips};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    assert_int_equal(trips, pl_program_count_trips(program, 0));
    assert_int_equal(trips, 2 + 2 * 3 + 2 * 2);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

/* What goes out is there in each trip, in regions within regions; two ports, of which one is a tile. */
static const char stored[] = "graph 1\n"
                             "region 0 \"p\" batch=1\n"
                             "region 1 \"outer\" in=0 trip=2\n"
                             "region 2 \"inner\" in=1 trip=3\n"
                             "value 0 \"numbers\" i32 [2] temporary program=0\n"
                             "value 1 \"stack\" f32 [3,2] output program=0\n"
                             "value 2 \"tile\" f32 [1,2] output program=0 view=1 offset=0 strides=2,1 tile=1\n"
                             "node 0 load region=2 out=0\n"
                             "node 1 fill region=2 out=2 value=2.5\n"
                             "node 2 store region=2 in=0,2\n"
                             "end graph\n";

static pl_status load_trips(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)context, (void)err;
    int32_t *to = call->port[0].at;
    assert_int_equal(trips->depth, 2);
    assert_int_equal(call->ports, 1);
    assert_null(call->first_sample);
    to[0] = (int32_t)trips->trip[0], to[1] = (int32_t)trips->trip[1];
    return PL_OK;
}

typedef struct sink {
    const float *stack;
    int count, fail_at;
} sink;

static pl_status take(void *context, const pl_trips *trips, const pl_store_call *call, pl_error *err)
{
    sink *s = context;
    const int32_t *numbers = call->port[0].at;
    const float *tile = call->port[1].at;
    assert_int_equal(call->ports, 2);
    assert_int_equal(call->port[0].dtype, PL_DTYPE_I32);
    assert_int_equal(call->port[1].bytes, 8);
    assert_int_equal(numbers[0], s->count / 3);
    assert_int_equal(numbers[1], s->count % 3);
    assert_true(tile == s->stack + 2 * trips->trip[1] && tile[1] == 2.5f);
    return s->count++ == s->fail_at ? pl_fail(err, PL_E_STORAGE, "the disk is full") : PL_OK;
}

static void stores_hand_out_what_each_trip_made(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p = plan_of(stored);
    pl_program *program = program_of(p);
    sink s = {pl_program_find(program, "stack"), 0, -1};
    pl_program_hooks hooks = {.load = load_trips, .store = take, .context = &s};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    assert_int_equal(s.count, 6);
    s = (sink){s.stack, 0, 4};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_E_STORAGE);
    assert_int_equal(s.count, 5);
    hooks.store = NULL;
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

/* A row is written where the trip's number says: by the inner region, and by the outer one once the inner is through. */
static const char counted[] = "graph 1\n"
                              "region 0 \"p\"\n"
                              "region 1 \"outer\" in=0 trip=2\n"
                              "region 2 \"inner\" in=1 trip=4\n"
                              "value 0 \"input.trip\" i64 [1] input\n"
                              "value 1 \"x\" f32 [1,1,1] output program=0\n"
                              "value 2 \"in\" f32 [1,6,1] state\n"
                              "value 3 \"in.1\" f32 [1,6,1] state update=2\n"
                              "value 4 \"out\" f32 [1,6,1] state\n"
                              "value 5 \"out.1\" f32 [1,6,1] state update=4\n"
                              "value 6 \"after\" f32 [1,6,1] state\n"
                              "value 7 \"after.1\" f32 [1,6,1] state update=6\n"
                              "node 0 fill region=0 out=1 value=1\n"
                              "node 1 cache_write region=2 in=1,2,0 out=3\n"
                              "node 2 cache_write region=1 in=1,4,0 out=5\n"
                              "node 3 cache_write region=0 in=1,6,0 out=7\n"
                              "end graph\n";

static void the_trip_is_an_input(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rows;
    } written[] = {{"in", 4}, {"out", 2}, {"after", 1}};
    pl_plan *p = plan_of(counted);
    pl_program *program = program_of(p);
    for (int k = 0; k < 3; k++) memset(pl_program_find(program, written[k].name), 0, 6 * sizeof(float));
    run(program, 0, false);
    for (int k = 0; k < 3; k++)
        for (int row = 0; row < 6; row++)
            assert_true(((float *)pl_program_find(program, written[k].name))[row] == (row < written[k].rows));
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

static const char predicated[] =
    "graph 1\nregion 0 \"p\"\nvalue 0 \"w\" f32 [2] weight\nvalue 1 \"sum\" f64 [1] input\nvalue 2 \"scale\" f32 [1] "
    "output program=0\nvalue 3 \"finite\" i32 [1] output program=0\n"
    "value 4 \"unused\" f32 [1] temporary program=0\n"
    "node 0 clip_scale region=0 in=1 out=2,3 max_norm=1\nnode 1 fill region=0 out=0 value=3 predicate=3\nend graph\n";

static void a_predicate_of_zero_skips_the_node(void **state)
{
    (void)state;
    pl_plan *p = plan_of(predicated);
    pl_program *program = program_of(p);
    float *w = pl_program_find(program, "w");
    w[0] = w[1] = 7;
    *(double *)pl_program_find(program, "sum") = 1.0 / 0.0;
    run(program, 0, false);
    assert_true(w[0] == 7 && w[1] == 7);
    *(double *)pl_program_find(program, "sum") = 4;
    run(program, 0, false);
    assert_true(w[0] == 3 && w[1] == 3);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

static void names_without_bytes_are_not_found(void **state)
{
    (void)state;
    pl_plan *p = plan_of(predicated);
    pl_program *program = program_of(p);
    assert_null(pl_program_find(program, "no such value"));
    assert_null(pl_program_find(program, "unused")); /* no node touches it, so the plan gave it no place */
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

static void too_little_memory_is_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_program *program = NULL;
    pl_plan *p = plan_of(nested);
    assert_int_equal(pl_program_create(p, memory, p->arena->bytes - 1, &program, &err), PL_E_USAGE);
    assert_int_equal(pl_program_create(p, memory + 4, sizeof memory - 4, &program, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "aligned"));
    pl_plan_destroy(p);
}

typedef struct loads {
    uint64_t seen[16];
    int count, fail_at;
} loads;

static pl_status note_load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    loads *l = context;
    assert_int_equal(load_count(call), 6);
    if (l->count == l->fail_at) return pl_fail(err, PL_E_DATA, "no more text");
    l->seen[l->count++] = pl_trips_last(trips);
    return PL_OK;
}

static void loads_are_told_their_trip_and_may_stop_the_run(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p =
        plan_of("graph 1\nregion 0 \"p\"\nregion 1 \"micro\" in=0 trip=4\nvalue 0 \"t\" i32 [2,3] temporary program=0\n"
                "value 1 \"u\" i32 [2,3] temporary program=0\nnode 0 load region=1 out=0,1 wait=1\nend graph\n");
    pl_program *program = program_of(p);
    loads l = {.fail_at = -1};
    pl_program_hooks hooks = {.load = note_load, .context = &l};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    assert_int_equal(l.count, 4);
    for (uint64_t i = 0; i < 4; i++) assert_int_equal(l.seen[i], i);
    l = (loads){.fail_at = 2};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_E_DATA);
    assert_string_equal(err.text, "no more text");
    assert_int_equal(l.count, 2);
    double seconds[1] = {0};
    hooks = (pl_program_hooks){.single_trip = true, .seconds = seconds};
    assert_int_equal(pl_program_run(program, 0, &hooks, &err), PL_OK);
    assert_true(seconds[0] >= 0);
    pl_program_destroy(program);
    pl_plan_destroy(p);
}

/* Windows that no kernel reads or writes are refused when they are bound, never read wrongly. */
static void check_not_bound(const char *lines)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    pl_str text = {0};
    pl_str_printf(&text, "graph 1\nregion 0 \"p\"\nvalue 0 \"base\" f32 [2,3,8] input\n%send graph\n", lines);
    if (pl_graph_parse("t", pl_str_text(&text), text.bytes, &g, &err) != PL_OK ||
        pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_status status = pl_plan_create(g, &options, &p, &err);
    if (status != PL_E_UNSUPPORTED || !strstr(err.text, "window"))
        fail_msg("%s \"%s\" for\n%s", pl_status_name(status), err.text, lines);
    pl_graph_destroy(g);
    pl_str_deinit(&text);
}

static void windows_without_a_kernel_are_refused(void **state)
{
    (void)state;
    check_not_bound("value 1 \"v\" f32 [2,3,4] input view=0 offset=0 strides=24,8,1\nvalue 2 \"y\" f32 [2,3,4] "
                    "temporary program=0\n"
                    "node 0 activation region=0 in=1 out=2 act=gelu\n");
    check_not_bound("value 1 \"y\" f32 [2,3,8] temporary program=0\nvalue 2 \"v\" f32 [2,3,4] temporary program=0 "
                    "view=1 offset=0 strides=24,8,1\n"
                    "value 3 \"x\" f32 [2,3,4] input\nnode 0 activation region=0 in=3 out=2 act=gelu\n");
    check_not_bound("value 1 \"v\" f32 [2,3,4] input view=0 offset=0 strides=24,8,2\nvalue 2 \"y\" f32 [2,3,4] "
                    "temporary program=0\n"
                    "node 0 attention region=0 in=1,1,1 out=2 heads=1 causal=1 scale=1\n");
    check_not_bound("value 1 \"q\" f32 [2,3,4] input\nvalue 2 \"l\" f32 [2,1,3] input view=0 offset=0 strides=24,8,2\n"
                    "value 3 \"dq\" f32 [2,3,4] temporary program=0\nvalue 4 \"dk\" f32 [2,3,4] temporary "
                    "program=0\nvalue 5 \"dv\" f32 [2,3,4] temporary program=0\n"
                    "node 0 attention_bwd region=0 in=1,1,1,1,2,1 out=3,4,5 heads=1 causal=1 scale=1\n");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_move_on_with_the_trips),
        cmocka_unit_test(nested_regions_run_their_trips),
        cmocka_unit_test(deep_regions_with_few_nodes),
        cmocka_unit_test(regions_too_deep_are_refused),
        cmocka_unit_test(stores_hand_out_what_each_trip_made),
        cmocka_unit_test(the_trip_is_an_input),
        cmocka_unit_test(a_predicate_of_zero_skips_the_node),
        cmocka_unit_test(names_without_bytes_are_not_found),
        cmocka_unit_test(too_little_memory_is_refused),
        cmocka_unit_test(loads_are_told_their_trip_and_may_stop_the_run),
        cmocka_unit_test(windows_without_a_kernel_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

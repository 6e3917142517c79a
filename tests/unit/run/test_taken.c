/* What a program stores goes to the job whose program it is: to no other, never before commit, and a failure of the job
 * ends the program. A program that stores what nobody takes is refused. And what comes in: a slot of much memory is the
 * only one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "run/session_impl.h"
#include "support/program.h"

static const char text[] = "graph 1\n"
                           "region 0 \"count\"\n"
                           "region 1 \"micro\" in=0 trip=3\n"
                           "region 2 \"lost\"\n"
                           "value 0 \"a\" f32 [2] output program=0\n"
                           "value 1 \"b\" f32 [1] output program=2\n"
                           "node 0 fill region=1 out=0 value=2.5\n"
                           "node 1 store region=1 in=0\n"
                           "node 2 fill region=2 out=1 value=1\n"
                           "node 3 store region=2 in=1\n"
                           "end graph\n";
static _Alignas(64) unsigned char memory[1 << 12];

typedef struct taken {
    int count, fail_at;
} taken;

static pl_status take(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    taken *t = state;
    const float *port = call->port[0].at;
    assert_non_null(s);
    assert_int_equal(call->ports, 1);
    assert_int_equal(call->port[0].bytes, 8);
    assert_true(port[0] == 2.5f && port[1] == 2.5f);
    return t->count++ == t->fail_at ? pl_fail(err, PL_E_STORAGE, "the disk is full") : PL_OK;
}

static pl_status never(pl_session *s, void *state, const pl_store_call *call, pl_error *err)
{
    (void)s, (void)state, (void)call, (void)err;
    fail_msg("a job got what another's program stored");
    return PL_OK;
}

static void open_program(pl_session *s, pl_plan **plan)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_plan_create(g, &options, plan, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_program_create(*plan, memory, sizeof memory, &s->program, &err) != PL_OK) fail_msg("%s", err.text);
    s->o.plan = *plan;
}

static void the_job_of_the_program_takes_it(void **state)
{
    (void)state;
    static const pl_job other = {.program = {"init", "lost too"}, .store = never}, idle = {.program = {"count"}},
                        counts = {.program = {"init", "count"}, .store = take};
    pl_error err = {0};
    pl_plan *plan;
    taken t = {0, -1};
    pl_session s = {.jobs = {.job = {&other, &idle, &counts}, .count = 3}, .job_state = {NULL, NULL, &t}};
    open_program(&s, &plan);
    assert_int_equal(pl_session_run_program(&s, 0, true, &err), PL_OK);
    assert_int_equal(t.count, 0);
    assert_int_equal(pl_session_run_program(&s, 0, false, &err), PL_OK);
    assert_int_equal(t.count, 3);
    t = (taken){0, 1};
    assert_int_equal(pl_session_run_program(&s, 0, false, &err), PL_E_STORAGE);
    assert_int_equal(t.count, 2);
    assert_int_equal(pl_session_run_program(&s, 2, false, &err), PL_E_INTERNAL);
    assert_string_equal(err.text, "the program \"lost\" gives out values that no job takes");
    pl_program_destroy(s.program);
    pl_plan_destroy(plan);
}

typedef struct sized {
    pl_source source;
    uint64_t sample_bytes;
} sized;

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const sized *s = (const sized *)source;
    (void)err;
    *l = (pl_source_layout){.ports = 1, .port = {{.name = "x", .bytes = micro_batch * s->sample_bytes}}};
    return PL_OK;
}

/* What both of them would take decides, whatever it is made of. */
static void a_large_slot_is_the_only_one(void **state)
{
    (void)state;
    static const pl_source_kind kind = {.name = "sized", .describe = describe};
    static const struct {
        uint64_t sample_bytes;
        uint32_t micro_batch, slots;
    } cases[] = {{64, 1, 2}, {1 << 20, 1, 2}, {1 << 20, 3, 1}, {3 << 20, 1, 1}, {64, 1 << 14, 2}, {64, 1 << 16, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sized s = {{.kind = &kind}, cases[i].sample_bytes};
        const pl_run_settings settings = {.micro_batch = cases[i].micro_batch};
        assert_int_equal(pl_session_ring_options(&s.source, &settings).slots, cases[i].slots);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_job_of_the_program_takes_it),
                                       cmocka_unit_test(a_large_slot_is_the_only_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

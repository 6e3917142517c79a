/* The judge of plans refuses each kind of damage with its sentence: one thing is changed in a good plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/size.h"
#include "reference/tiny.h"
#include "support/program.h"

static pl_plan *good_plan(void)
{
    static tiny t;
    tiny_random(&t, 8);
    t.config.model.arch = PL_ARCH_GPT;
    t.config.train.grad_clip = 1;
    t.update = true;
    t.micro = 2;
    t.trips = 2;
    return tiny_plan(&t, (pl_team){2, PL_ISA_BASELINE});
}

static void must_fail(pl_plan *p, const char *words)
{
    pl_error err = {0};
    pl_status status = pl_plan_check(p, &err);
    if (status != PL_E_INTERNAL || !strstr(err.text, words))
        fail_msg("%s \"%s\" does not say \"%s\"", pl_status_name(status), err.text, words);
    pl_plan_destroy(p);
}

static pl_id value_of_role(const pl_plan *p, pl_role role)
{
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (p->graph->value[i].role == role && p->value[i].bytes) return (pl_id)i;
    fail_msg("no value is a %s", pl_role_name(role));
    return PL_NONE;
}

static void blocks_lie_in_the_arena(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->value[value_of_role(p, PL_ROLE_WEIGHT)].offset = p->arena->bytes;
    must_fail(p, "outside the arena");
    p = good_plan();
    p->value[value_of_role(p, PL_ROLE_TEMPORARY)].offset = UINT64_MAX - 63;
    must_fail(p, "outside the arena");
    p = good_plan();
    p->value[value_of_role(p, PL_ROLE_TEMPORARY)].offset += 4;
    must_fail(p, "not aligned");
    p = good_plan();
    p->arena->bytes /= 2;
    must_fail(p, "outside the arena");
}

static void blocks_alive_together_are_apart(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->value[value_of_role(p, PL_ROLE_OPTIMIZER)].offset = p->value[value_of_role(p, PL_ROLE_WEIGHT)].offset;
    must_fail(p, "overlap");
    p = good_plan();
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->workspace[i].bytes) p->workspace[i].offset = p->value[value_of_role(p, PL_ROLE_WEIGHT)].offset;
    must_fail(p, "overlap");
}

static void a_value_has_all_its_bytes(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->value[value_of_role(p, PL_ROLE_WEIGHT)].bytes -= 4;
    must_fail(p, "bytes");
    p = good_plan();
    p->value[value_of_role(p, PL_ROLE_TEMPORARY)].bytes = 0;
    must_fail(p, "bytes");
}

static void a_value_lives_while_it_is_needed(void **state)
{
    (void)state;
    static const pl_role roles[] = {PL_ROLE_WEIGHT, PL_ROLE_OPTIMIZER, PL_ROLE_OUTPUT, PL_ROLE_GRADIENT,
                                    PL_ROLE_SAVED,  PL_ROLE_STATE,     PL_ROLE_INPUT};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        pl_plan *p = good_plan();
        p->value[value_of_role(p, roles[i])].last--;
        must_fail(p, "live");
        p = good_plan();
        p->value[value_of_role(p, roles[i])].first++;
        must_fail(p, "live");
    }
}

static void a_workspace_is_as_large_as_its_kernel_asks(void **state)
{
    (void)state;
    for (int damage = 0; damage < 3; damage++) {
        pl_plan *p = good_plan();
        size_t i = 0;
        while (p->workspace[i].bytes == 0) i++;
        if (damage == 0) p->workspace[i].bytes = 0;
        if (damage == 1) p->workspace[i].bytes -= 1;
        if (damage == 2) p->workspace[i].first++, p->workspace[i].last++;
        must_fail(p, damage < 2 ? "workspace" : "overlap");
    }
}

static void a_predicate_has_a_place(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    pl_id predicate = PL_NONE;
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->graph->node[i].predicate != PL_NONE) predicate = p->graph->node[i].predicate;
    assert_true(predicate != PL_NONE);
    p->value[predicate].last = p->value[predicate].first + 1;
    must_fail(p, "live");
}

static void dead_nodes_are_not_planned(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->graph->node[p->graph->node_count - 1].dead = true;
    must_fail(p, "dead");
}

static void a_team_has_threads(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->team.threads = 0;
    must_fail(p, "thread");
}

static void the_totals_are_the_sums_of_the_rows(void **state)
{
    (void)state;
    pl_plan *p = good_plan();
    p->ledger.resident_bytes -= 4096;
    must_fail(p, "do not add up");
    p = good_plan();
    p->ledger.charged_bytes = 0;
    must_fail(p, "do not add up");
    p = good_plan();
    p->ledger.row[0].resident_bytes = UINT64_MAX;
    must_fail(p, "do not add up");
}

static void absurd_sizes_are_refused_before_they_are_laid_out(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *p = NULL;
    static const char text[] =
        "graph 1\nregion 0 \"p\"\nvalue 0 \"a\" f32 [1048576,1048576,32768] weight\nvalue 1 \"b\" f32 "
        "[1048576,1048576,32768] weight\nvalue 2 \"c\" f32 [1048576,1048576,32768] weight\n"
        "value 3 \"d\" f32 [1048576,1048576,32768] weight\nvalue 4 \"e\" f32 [1048576,1048576,32768] weight\nvalue 5 "
        "\"f\" f32 [1048576,1048576,32768] weight\nnode 0 fill region=0 out=0 value=0\nend graph\n";
    pl_graph *g = NULL;
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    assert_int_equal(pl_graph_parse("t", text, sizeof text - 1, &g, &err), PL_OK);
    assert_int_equal(pl_plan_create(g, &options, &p, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "smaller"));
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_lie_in_the_arena),
        cmocka_unit_test(blocks_alive_together_are_apart),
        cmocka_unit_test(a_value_has_all_its_bytes),
        cmocka_unit_test(a_value_lives_while_it_is_needed),
        cmocka_unit_test(a_workspace_is_as_large_as_its_kernel_asks),
        cmocka_unit_test(a_predicate_has_a_place),
        cmocka_unit_test(dead_nodes_are_not_planned),
        cmocka_unit_test(a_team_has_threads),
        cmocka_unit_test(the_totals_are_the_sums_of_the_rows),
        cmocka_unit_test(absurd_sizes_are_refused_before_they_are_laid_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The figures of docs/recompute.md, held: forward and backward of a language model (6 layers, width 256, batch 32 by
 * 128, flash attention; costs in FLOPs), at the default effort. It is the graph of lm6_flash_oib.dag (PLANNING.md, D).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "support/program.h"

enum { LAYERS = 6, NONE = -1, INPUTS = 3 };

/* A node of a layer; inputs are nodes of the same layer, forward and then backward, or IN: what enters it. */
enum {
    LN1,
    QKV,
    O,
    A,
    X2,
    LN2,
    F,
    G,
    M,
    X,
    FORWARD,
    DG = FORWARD,
    GW2,
    DF,
    GW1,
    DLN2,
    DX2,
    GWO,
    DO,
    DQKV,
    GWQKV,
    DLN1,
    DX,
    PARTS,
    IN,
    DIN
};

static const struct {
    double cost;
    uint64_t size;
    int inputs[INPUTS];
} parts[PARTS] = {
    [LN1] = {4194304, 4194304, {IN, NONE, NONE}},       [QKV] = {1610612736, 12582912, {LN1, NONE, NONE}},
    [O] = {536870912, 4325376, {QKV, NONE, NONE}},      [A] = {536870912, 4194304, {O, NONE, NONE}},
    [X2] = {2097152, 4194304, {IN, A, NONE}},           [LN2] = {4194304, 4194304, {X2, NONE, NONE}},
    [F] = {2147483648, 16777216, {LN2, NONE, NONE}},    [G] = {33554432, 16777216, {F, NONE, NONE}},
    [M] = {2147483648, 4194304, {G, NONE, NONE}},       [X] = {2097152, 4194304, {X2, M, NONE}},
    [DG] = {2147483648, 16777216, {DIN, NONE, NONE}},   [GW2] = {2147483648, 1049600, {G, DIN, NONE}},
    [DF] = {50331648, 16777216, {F, DG, NONE}},         [GW1] = {2147483648, 1052672, {LN2, DF, NONE}},
    [DLN2] = {2147483648, 4194304, {DF, NONE, NONE}},   [DX2] = {8388608, 4194304, {X2, DIN, DLN2}},
    [GWO] = {536870912, 263168, {O, DX2, NONE}},        [DO] = {536870912, 4194304, {DX2, NONE, NONE}},
    [DQKV] = {1342177280, 12582912, {QKV, O, DO}},      [GWQKV] = {1610612736, 789504, {LN1, DQKV, NONE}},
    [DLN1] = {1610612736, 4194304, {DQKV, NONE, NONE}}, [DX] = {8388608, 4194304, {IN, DX2, DLN1}},
};

static recompute_case one;

static uint32_t add(double cost, uint64_t size, int first, int second)
{
    uint32_t v = case_add(&one, cost, size);
    if (first != NONE) case_read(&one, v, (uint32_t)first);
    if (second != NONE) case_read(&one, v, (uint32_t)second);
    return v;
}

/* Parts [begin, end) of a layer; `node` says where its parts are, IN and DIN included. */
static void add_parts(int begin, int end, uint32_t *node)
{
    for (int p = begin; p < end; p++) {
        node[p] = case_add(&one, parts[p].cost, parts[p].size);
        for (int k = 0; k < INPUTS; k++)
            if (parts[p].inputs[k] != NONE) case_read(&one, node[p], node[parts[p].inputs[k]]);
    }
}

static void build(void)
{
    static uint32_t node[LAYERS][DIN + 1];
    case_begin(&one, 1);
    uint32_t x = add(2097152, 4194304, NONE, NONE);
    for (int l = 0; l < LAYERS; l++) {
        node[l][IN] = x;
        add_parts(0, FORWARD, node[l]);
        x = node[l][X];
    }
    uint32_t norm = add(4194304, 4194304, (int)x, NONE), logits = add(1652555776, 12910592, (int)norm, NONE);
    uint32_t error = add(25821184, 12910592, (int)logits, NONE);
    add(1652555776, 806912, (int)norm, (int)error);
    uint32_t dnorm = add(1652555776, 4194304, (int)error, NONE), dx = add(6291456, 4194304, (int)x, (int)dnorm);
    for (int l = LAYERS; l-- > 0;) {
        node[l][DIN] = dx;
        add_parts(FORWARD, PARTS, node[l]);
        dx = node[l][DX];
    }
    add(2097152, 131072, (int)dx, NONE);
}

static void test_figures(void **state)
{
    (void)state;
    static const struct {
        double share, added_percent;
    } wanted[] = {{0.5, 7.1}, {0.262, 17.2}, {0.2, 19.6}, {0.15, 44}};
    build();
    assert_int_equal(one.count, 140);
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        pl_recompute_options options = pl_recompute_options_default();
        pl_recompute_problem problem = case_problem(&one, (uint64_t)(wanted[k].share * 437649408));
        pl_recompute_solution s;
        pl_error err = {0};
        double cost;
        uint64_t peak;
        if (pl_recompute(&problem, &options, &s, &err) != PL_OK) fail_msg("%s", err.text);
        assert_int_equal(s.store_all_peak, 437649408);
        if (pl_recompute_validate(&problem, s.steps, s.step_count, &cost, &peak, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_true(peak <= problem.budget);
        double added = 100 * (cost / s.base_cost - 1);
        printf("  %4.1f %% of storing all: %6.3f %% added, %.2f s, %s\n", 100 * wanted[k].share, added, s.seconds,
               s.method);
        assert_true(added <= wanted[k].added_percent);
        pl_recompute_solution_deinit(&s);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_figures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

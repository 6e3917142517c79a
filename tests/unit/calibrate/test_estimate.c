/* Times of sizes that were never measured. The table is filled by a law that is known, so what must come out is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/table.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "support/program.h"

#define PACE 0.125

static const pl_calibration_options options = {.team = {1, PL_ISA_REF}};

static void assert_near(double a, double b, double within)
{
    if (!(fabs(a - b) <= within)) fail_msg("%.12g and %.12g are more than %g apart", a, b, within);
}

/* A product of rows [rows, width] with a weight [out, width]. */
static pl_graph *make_graph(int64_t rows, int64_t width, int64_t out)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "forward", PL_NONE, 1), &err);
    const pl_id x = pl_build_persistent(&b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(2, rows, width), "x");
    const pl_id w = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(2, out, width), "w");
    pl_id y = PL_NONE;
    pl_build_node(&b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(0)}, 4, (pl_id[]){x, w, PL_NONE, PL_NONE}, 1, &y);
    assert_int_equal(b.status, PL_OK);
    return g;
}

static double vectors(int64_t out) { return (double)((out + 15) / 16 * 16) / (double)out; }

static double work_of(int64_t rows, int64_t width, int64_t out)
{
    pl_graph *g = make_graph(rows, width, out);
    const double work = pl_node_work(g, &g->node[0]) * vectors(out);
    pl_graph_destroy(g);
    return work;
}

/* As if it had been measured, at a pace. */
static void note(pl_calibration *c, int64_t rows, int64_t width, int64_t out, double pace)
{
    pl_graph *g = make_graph(rows, width, out);
    char memory[PL_CALIBRATION_KEY_BYTES];
    pl_str key = pl_str_fixed(memory, sizeof memory);
    pl_calibration_key(g, &g->node[0], &options, &key);
    const double work = pl_node_work(g, &g->node[0]);
    const pl_calibration_entry figures = {.seconds = work * vectors(out) * pace, .work = work, .samples = 1};
    assert_int_equal(pl_calibration_put(c, memory, &figures, NULL), PL_OK);
    assert_non_null(pl_calibration_touch(c, memory));
    pl_graph_destroy(g);
}

static double wide;             /* how far the interval of the last estimate reaches, as a factor */
static double own_seconds = -1; /* that the last one should have, if it was measured */

static double estimate(pl_calibration *c, int64_t rows, int64_t width, int64_t out, double *distance)
{
    pl_graph *g = make_graph(rows, width, out);
    const pl_duration d = pl_calibration_predict(c, g, &g->node[0]);
    const double expected = pl_node_work(g, &g->node[0]) * vectors(out);
    if (distance) *distance = pl_calibration_distance(c, g, &g->node[0]);
    pl_graph_destroy(g);
    assert_true(d.seconds > 0 && d.low < d.seconds && d.high > d.seconds &&
                d.estimated == !(fabs(d.seconds - own_seconds) < 1e-9 * own_seconds));
    wide = d.high / d.seconds;
    assert_near(d.seconds / d.low, wide, 1e-9 * wide);
    return d.seconds / expected; /* the pace */
}

static pl_calibration *open_table(void)
{
    pl_calibration *c;
    assert_int_equal(pl_calibration_open(NULL, &options, &c, NULL), PL_OK);
    return c;
}

/* One pace for all: every size has it, and a last vector that is not full counts as full. */
static void test_one_pace(void **state)
{
    (void)state;
    double distance;
    pl_calibration *c = open_table();
    assert_near(estimate(c, 100, 64, 64, &distance), 1, 1e-9); /* of a made-up machine: no rate is known */
    assert_true(isinf(distance) && wide >= 2);
    note(c, 100, 64, 64, PACE);
    assert_true(pl_calibration_error(c) < 0); /* of one nothing is left to estimate it from */
    note(c, 200, 32, 48, PACE);
    note(c, 50, 128, 17, PACE);
    for (int64_t out = 1; out < 80; out += 7) assert_near(estimate(c, 40 + out, 3 * out, out, NULL), PACE, 1e-9 * PACE);
    assert_near(pl_calibration_error(c), 0, 1e-9);
    pl_calibration_close(c);
}

/* What was measured is given back as it is; near to it, nearly so; and an estimate lies between its neighbours. */
static void test_between(void **state)
{
    (void)state;
    double distance;
    pl_calibration *c = open_table();
    note(c, 100, 64, 64, PACE);
    note(c, 100, 256, 256, 2 * PACE);
    own_seconds = work_of(100, 64, 64) * PACE;
    assert_near(estimate(c, 100, 64, 64, &distance), PACE, 1e-9 * PACE);
    assert_true(distance == 0);
    const double of_measured = wide;
    own_seconds = -1;
    assert_near(estimate(c, 101, 64, 64, &distance), PACE, 1e-2 * PACE);
    assert_true(distance > 0.01 && distance < 0.02); /* x and y are a hundredth longer: √2 log(102/101) */
    const double of_near = wide, middle = estimate(c, 100, 128, 128, NULL);
    assert_true(of_measured > 1 && of_near > of_measured && wide > of_near); /* the farther, the less is known */
    assert_true(middle > 1.3 * PACE && middle < 1.5 * PACE); /* the root of two, but for sizes counted from one */
    assert_near(pl_calibration_error(c), (1 * 1 * 64 * 64 + 0.5 * 2 * 256 * 256) / (64 * 64 + 2 * 256 * 256), 0.1);
    pl_calibration_close(c);
}

/* Another kind says nothing, and then the rates do; the same operator with something else about it says a little. */
static void test_kinds(void **state)
{
    (void)state;
    pl_calibration *c = open_table();
    const pl_calibration_entry figures = {.seconds = 1, .work = 1, .samples = 1};
    assert_int_equal(pl_calibration_put(c, "norm f32[100,64] > f32[100,64] forward 1 ref", &figures, NULL), PL_OK);
    const double peak = 100e9, memory = 10e9;
    pl_graph *g = make_graph(100, 64, 64);
    c->rates.operations[PL_ARITHMETIC_F32] = peak, c->rates.bytes = memory;
    const double least = pl_node_least_seconds(g, &g->node[0], &c->rates);
    const pl_duration by_rates = pl_calibration_predict(c, g, &g->node[0]);
    assert_near(least, 2.0 * 100 * 64 * 64 / peak, 1e-9 * least);
    assert_true(by_rates.seconds > least && by_rates.low >= least / 2 && by_rates.estimated);
    const double of_rates = by_rates.high / by_rates.seconds;
    assert_int_equal(
        pl_calibration_put(c, "linear f32[9,9] f16[9,9] - - > f32[9,9] - act=0 forward 1 ref", &figures, NULL), PL_OK);
    assert_near(estimate(c, 100, 64, 64, NULL), 9.0 / 16, 1e-9); /* its pace is 1 of whole vectors, 9 of 16 in use */
    const double of_operator = wide;
    note(c, 90, 64, 64, PACE);
    assert_near(estimate(c, 100, 64, 64, NULL), PACE, 1e-9 * PACE);
    assert_true(of_rates > of_operator && of_operator > wide);
    pl_graph_destroy(g);
    pl_calibration_close(c);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_pace), cmocka_unit_test(test_between),
                                       cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Few samples, of which some met something else than the kernel; and what was measured in a hurry. The linker puts a
 * clock that stands still but for what a kernel is said to take in the place of the machine's (--wrap, in
 * tests/CMakeLists.txt): so nothing hangs on how busy the machine is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calibrate/table.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "support/program.h"

#define USUAL   20e-6 /* seconds of a kernel */
#define STALLED 24.5e-3

static bool is_faked;
static double clock_seconds, stall_seconds;
static bool is_disturbed;                      /* each kernel is */
static bool is_busy;                           /* the machine is, whenever somebody looks */
static int executed, stalled_from, stalled_to; /* executions that take STALLED: [from, to) */

int __real_clock_gettime(clockid_t, struct timespec *);
int __wrap_clock_gettime(clockid_t, struct timespec *);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!is_faked) return __real_clock_gettime(clock, t);
    t->tv_sec = (time_t)clock_seconds;
    t->tv_nsec = (long)((clock_seconds - (double)t->tv_sec) * 1e9);
    return 0;
}

int __real_getrusage(int, struct rusage *);
int __wrap_getrusage(int, struct rusage *);
int __wrap_getrusage(int who, struct rusage *usage)
{
    const int rc = __real_getrusage(who, usage);
    /* Nobody else takes the processor away, also in the other tests of this program: what is measured is known then. */
    static long looks;
    usage->ru_nivcsw = is_busy ? (looks += 100) : is_disturbed ? executed : 0;
    return rc;
}

void __real_pl_backend_exec(const pl_call *, pl_team);
void __wrap_pl_backend_exec(const pl_call *, pl_team);
void __wrap_pl_backend_exec(const pl_call *call, pl_team team)
{
    __real_pl_backend_exec(call, team);
    clock_seconds += executed >= stalled_from && executed < stalled_to ? stall_seconds : USUAL;
    executed++;
}

static void stall(int from, int to)
{
    is_faked = true;
    is_disturbed = false;
    stall_seconds = STALLED;
    clock_seconds = 1000;
    executed = 0;
    stalled_from = from, stalled_to = to;
}

static int end_of_fake(void **state)
{
    (void)state;
    is_faked = is_disturbed = is_busy = false;
    return 0;
}

/* The fewest runs: the time is over at once. */
static pl_calibration_options hurried(void)
{
    return (pl_calibration_options){.team = {1, PL_ISA_REF}, .seconds_max = 1e-9, .brief = true};
}

static pl_graph *make_graph(int64_t rows)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "forward", PL_NONE, 1), &err);
    const pl_id x = pl_build_persistent(&b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(2, rows, (int64_t)16), "x");
    const pl_id w =
        pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(2, (int64_t)16, (int64_t)16), "w");
    pl_id y = PL_NONE;
    pl_build_node(&b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(0)}, 4, (pl_id[]){x, w, PL_NONE, PL_NONE}, 1, &y);
    assert_int_equal(b.status, PL_OK);
    return g;
}

static pl_calibration *open_table(const char *path, const pl_calibration_options *o)
{
    pl_calibration *c;
    assert_int_equal(pl_calibration_open(path, o, &c, NULL), PL_OK);
    return c;
}

static double measure(pl_calibration *c, const pl_graph *g)
{
    pl_error err = {0};
    if (pl_calibration_measure(c, g, &err) != PL_OK) fail_msg("%s", err.text);
    return pl_calibration_seconds(c, g, &g->node[0]);
}

static size_t count_missing(pl_calibration *c, const pl_graph *g)
{
    size_t count = 0;
    assert_int_equal(pl_calibration_count_missing(c, g, &count, NULL), PL_OK);
    return count;
}

static void assert_usual(double seconds)
{
    if (!(seconds >= 0.99 * USUAL && seconds <= 2 * USUAL)) fail_msg("%g s, after %d executions", seconds, executed);
}

/* Wherever one execution or two stand still, the figure is that of the others. */
static void test_one_that_stood_still(void **state)
{
    (void)state;
    const pl_calibration_options o = hurried();
    pl_graph *g = make_graph(8);
    for (int from = 0; from < 5; from++)
        for (int count = 0; count < 3; count++) {
            pl_calibration *c = open_table(NULL, &o);
            stall(from, from + count);
            assert_usual(measure(c, g));
            assert_true(executed < 30);
            pl_calibration_close(c);
        }
    pl_graph_destroy(g);
}

/* All of the first ones did: other sizes tell, and it is run again. */
static void test_all_stood_still(void **state)
{
    (void)state;
    const pl_calibration_options o = hurried();
    pl_graph *g = make_graph(8), *other = make_graph(24);
    pl_calibration *c = open_table(NULL, &o);
    stall(0, 0);
    assert_usual(measure(c, other));
    stall(0, 4);
    assert_usual(measure(c, g));
    pl_calibration_close(c);
    /* What always takes ten times as long is taken for true in the end. */
    c = open_table(NULL, &o);
    stall(0, 0);
    assert_usual(measure(c, other));
    stall(0, 1000);
    stall_seconds = 10 * USUAL;
    assert_true(measure(c, g) > 9.9 * USUAL && pl_calibration_cost(c, g, &g->node[0]) > 9.9 * USUAL);
    assert_true(executed < 30 && count_missing(c, g) == 0);
    pl_calibration_close(c);
    pl_graph_destroy(g);
    pl_graph_destroy(other);
}

static void name_file(char path[64])
{
    strcpy(path, "/tmp/pl_samples_XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
}

static void assert_is_guessed(pl_calibration *c, const pl_graph *g)
{
    assert_int_equal(count_missing(c, g), 1);
    assert_true(isinf(pl_calibration_distance(c, g, &g->node[0])));
    assert_true(pl_calibration_seconds(c, g, &g->node[0]) > 0.99 * STALLED);
    const double guess = pl_calibration_cost(c, g, &g->node[0]);
    if (!(guess > USUAL / 4 && guess < 4 * USUAL)) fail_msg("%g s", guess);
}

/* On a busy machine no run may be undisturbed. What is far off then is no measurement: not in this process, nor in the
 * next, in a hurry or not, until one is near. What is not far off will do. */
static void test_busy(void **state)
{
    (void)state;
    char path[64];
    name_file(path);
    pl_graph *g = make_graph(8), *other = make_graph(24);
    for (int i = 0; i < 4; i++) {
        pl_calibration_options o = hurried();
        o.brief = i % 2;
        pl_calibration *c = open_table(path, &o);
        stall(0, i == 0 ? 0 : 1000);
        is_disturbed = true;
        if (i == 0) assert_usual(measure(c, other));
        if (i == 1 || i == 3) measure(c, g);
        if (i > 0) assert_is_guessed(c, g);
        assert_int_equal(count_missing(c, other), 0);
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        pl_calibration_close(c);
    }
    pl_calibration_options o = hurried();
    pl_calibration *c = open_table(path, &o);
    stall(0, 0);
    assert_usual(measure(c, g));
    assert_int_equal(count_missing(c, g), 0);
    pl_calibration_close(c);
    unlink(path);
    pl_graph_destroy(g);
    pl_graph_destroy(other);
}

/* What was measured in a hurry serves the next hurry, also from the file; who has time measures it again, once. */
static void test_hurry(void **state)
{
    (void)state;
    char path[64];
    name_file(path);
    pl_calibration_options o = hurried();
    pl_graph *g = make_graph(8);
    for (int i = 0; i < 2; i++) {
        pl_calibration *c = open_table(path, &o);
        stall(0, 1000);
        stall_seconds = 3 * USUAL;
        assert_int_equal(count_missing(c, g), i == 0);
        assert_true(measure(c, g) > 2.99 * USUAL);
        assert_true(pl_calibration_distance(c, g, &g->node[0]) == 0);
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        pl_calibration_close(c);
    }
    for (int i = 0; i < 3; i++) {
        o.brief = i == 2;
        pl_calibration *c = open_table(path, &o);
        stall(0, 0);
        assert_int_equal(count_missing(c, g), i == 0);
        assert_true(isinf(pl_calibration_distance(c, g, &g->node[0])) == (i == 0));
        assert_true(pl_calibration_seconds(c, g, &g->node[0]) > 0); /* better than nothing */
        assert_usual(measure(c, g));
        assert_true(pl_calibration_distance(c, g, &g->node[0]) == 0);
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        pl_calibration_close(c);
    }
    unlink(path);
    pl_graph_destroy(g);
}

static pl_duration predict(pl_calibration *c, const pl_graph *g) { return pl_calibration_predict(c, g, &g->node[0]); }

/* Half of the runs take five times as long, since somebody takes the processor away: the figure is that of the others,
 * but its interval holds what a run would meet. On a quiet machine it is narrow, except on a virtual one. */
static void test_disturbance_widens(void **state)
{
    (void)state;
    pl_graph *g = make_graph(8);
    const pl_calibration_options o = {.team = {1, PL_ISA_REF}, .seconds_max = 1e-3};
    double wide[2];
    for (int busy = 0; busy < 2; busy++) {
        pl_calibration *c = open_table(NULL, &o);
        c->machine.is_virtual = false;
        stall(3, busy ? 30 : 3);
        stall_seconds = 5 * USUAL;
        is_disturbed = busy;
        measure(c, g);
        const pl_duration d = predict(c, g);
        assert_true(d.seconds > 0 && !d.estimated && d.busy >= 1);
        wide[busy] = d.high / d.seconds;
        if (busy) assert_true(d.busy > PL_CALIBRATION_BUSY && d.high > 2 * USUAL && d.low < USUAL);
        if (!busy) assert_true(d.busy < PL_CALIBRATION_BUSY && d.high < 1.5 * d.seconds && d.low > d.seconds / 1.5);
        pl_calibration_close(c);
    }
    assert_true(wide[1] > 2 * wide[0]);
    pl_calibration *c = open_table(NULL, &o);
    c->machine.is_virtual = true;
    stall(0, 0);
    measure(c, g);
    const pl_duration d = predict(c, g);
    assert_true(d.busy < PL_CALIBRATION_BUSY && d.high > 1.5 * d.seconds && d.low < d.seconds / 1.5);
    pl_calibration_close(c);
    pl_graph_destroy(g);
}

/* What was done is not begun again for a day, in this process or another; another job is. */
static void test_jobs(void **state)
{
    (void)state;
    char path[64];
    name_file(path);
    pl_graph *g = make_graph(8);
    const pl_calibration_options o = hurried();
    for (int i = 0; i < 3; i++) {
        pl_calibration *c = open_table(path, &o);
        stall(0, 0);
        assert_true(pl_calibration_is_finished(c, "job") == (i > 0));
        assert_false(pl_calibration_is_finished(c, "another"));
        measure(c, g);
        assert_int_equal(pl_calibration_finish(c, "job", NULL), PL_OK);
        assert_true(pl_calibration_is_finished(c, "job"));
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        assert_true(pl_calibration_has_news(c) == (i == 0));
        pl_calibration_close(c);
    }
    pl_calibration *c = open_table(path, &o);
    const uint64_t now = (uint64_t)time(NULL), day = 24 * 3600;
    const struct {
        uint64_t at;
        bool holds;
    } notes[] = {{now - day + 600, true}, {now - day - 1, false}, {now + 600, false}};
    for (int i = 0; i < 3; i++) {
        const pl_calibration_entry note = {.samples = 1, .at = notes[i].at};
        assert_int_equal(pl_calibration_put(c, "finished job", &note, NULL), PL_OK);
        assert_true(pl_calibration_is_finished(c, "job") == notes[i].holds);
    }
    pl_calibration_close(c);
    unlink(path);
    pl_graph_destroy(g);
}

/* What was measured while the machine was busy stays as it is as long as it is busy, and is measured again when it is
 * quiet: once. */
static void test_quiet_again(void **state)
{
    (void)state;
    char path[64];
    name_file(path);
    pl_graph *g = make_graph(8);
    const pl_calibration_options o = {.team = {1, PL_ISA_REF}, .seconds_max = 1e-3};
    for (int i = 0; i < 4; i++) { /* busy, busy, quiet, quiet */
        pl_calibration *c = open_table(path, &o);
        stall(3, i < 2 ? 30 : 3);
        stall_seconds = 5 * USUAL;
        is_busy = i < 2;
        assert_true(pl_calibration_is_finished(c, "job") == (i == 1 || i == 3));
        if (i == 0 || i == 2) {
            pl_calibration_measure_busy_again(c);
            assert_int_equal(count_missing(c, g), 1);
            is_busy = false, is_disturbed = i == 0;
            measure(c, g);
            assert_int_equal(count_missing(c, g), 0);
            assert_int_equal(pl_calibration_finish(c, "job", NULL), PL_OK);
        }
        assert_true((predict(c, g).busy > PL_CALIBRATION_BUSY) == (i < 2));
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        pl_calibration_close(c);
    }
    unlink(path);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_one_that_stood_still, end_of_fake),
                                       cmocka_unit_test_teardown(test_all_stood_still, end_of_fake),
                                       cmocka_unit_test_teardown(test_busy, end_of_fake),
                                       cmocka_unit_test_teardown(test_hurry, end_of_fake),
                                       cmocka_unit_test_teardown(test_disturbance_widens, end_of_fake),
                                       cmocka_unit_test_teardown(test_jobs, end_of_fake),
                                       cmocka_unit_test_teardown(test_quiet_again, end_of_fake)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

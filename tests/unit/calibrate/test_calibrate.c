/* Keys, table, file, and that measuring keeps its promises. No test looks at how long anything took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/block8.h"
#include "calibrate/table.h"
#include "ir/op.h"
#include "support/program.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pl_calibrate_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", folder, folder);
    return system(command);
}

static void join(char path[128], const char *name) { snprintf(path, 128, "%s/%s", folder, name); }

static pl_calibration_options quick(void)
{
    return (pl_calibration_options){.team = {1, PL_ISA_REF}, .seconds_max = 0.02};
}

/* One program, a region of `trips` trips: tokens, embedding, `layers` linears, loss with its gradient, and an update.
 */
static pl_graph *make_graph(int64_t rows, int64_t width, uint64_t trips, int layers)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    pl_id program = pl_graph_add_region(g, "train", PL_NONE, 1);
    pl_builder b = pl_builder_begin(g, program, &err);
    pl_id table = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(2, (int64_t)32, width), "table");
    pl_id scale = pl_build_persistent(&b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(1, (int64_t)1), "scale");
    pl_id step = pl_build_persistent(&b, PL_ROLE_INPUT, PL_DTYPE_I64, pl_shape_of(1, (int64_t)1), "step");
    pl_id gradient =
        pl_build_persistent(&b, PL_ROLE_GRADIENT, PL_DTYPE_F32, pl_shape_of(2, (int64_t)32, width), "grad.table");
    pl_id m = pl_build_persistent(&b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, pl_shape_of(2, (int64_t)32, width), "m");
    pl_id v = pl_build_persistent(&b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, pl_shape_of(2, (int64_t)32, width), "v");
    pl_id loss = pl_build_temporary(&b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "loss"),
          zeroed = loss;
    pl_build_node(&b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &zeroed);
    b.region = pl_graph_add_region(g, "micro", program, trips);
    pl_id load[2] = {
        pl_build_temporary(&b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, pl_shape_of(2, (int64_t)1, rows), "tokens"),
        pl_build_temporary(&b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, pl_shape_of(2, (int64_t)1, rows), "targets")};
    pl_build_node(&b, PL_OP_LOAD, NULL, 0, NULL, 2, load);
    pl_id x = PL_NONE;
    pl_build_node(&b, PL_OP_EMBEDDING, (pl_attr[]){pl_attr_i(1)}, 4, (pl_id[]){load[0], table, PL_NONE, PL_NONE}, 1,
                  &x);
    for (int i = 0; i < layers; i++) {
        pl_id w = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(2, width, width), "w%d", i),
              y = PL_NONE;
        pl_build_node(&b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(0)}, 4, (pl_id[]){x, w, PL_NONE, PL_NONE}, 1, &y);
        x = y;
    }
    pl_id out[3] = {PL_NONE, PL_NONE, PL_NONE};
    b.phase = PL_PHASE_BACKWARD;
    pl_build_node(&b, PL_OP_LINEAR_CE_BWD, (pl_attr[]){pl_attr_i(32)}, 6,
                  (pl_id[]){x, table, load[1], scale, loss, gradient}, 3, out);
    b.region = program;
    b.phase = PL_PHASE_UPDATE;
    pl_id updated[3] = {PL_NONE, PL_NONE, PL_NONE};
    pl_attr rates[PL_ATTR_MAX] = {pl_attr_f(0.9), pl_attr_f(0.95), pl_attr_f(1e-8),
                                  pl_attr_f(0.1), pl_attr_i(1),    pl_attr_i(2)};
    pl_build_node(&b, PL_OP_ADAMW, rates, 6, (pl_id[]){table, out[2], m, v, scale, step}, 3, updated);
    if (b.status != PL_OK) fail_msg("%s", err.text);
    return g;
}

static const pl_node *find(const pl_graph *g, pl_op op, int which)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == op && which-- == 0) return &g->node[i];
    fail_msg("no such node");
    return NULL;
}

static pl_calibration *open_calibration(const char *path, const pl_calibration_options *options)
{
    pl_error err = {0};
    pl_calibration *c = NULL;
    if (pl_calibration_open(path, options, &c, &err) != PL_OK) fail_msg("%s", err.text);
    return c;
}

static void measure(pl_calibration *c, const pl_graph *g)
{
    pl_error err = {0};
    if (pl_calibration_measure(c, g, &err) != PL_OK) fail_msg("%s", err.text);
}

static size_t count_missing(pl_calibration *c, const pl_graph *g)
{
    size_t count = 0;
    assert_int_equal(pl_calibration_count_missing(c, g, &count, NULL), PL_OK);
    return count;
}

static uint64_t bytes_of(pl_calibration *c, const pl_graph *g)
{
    uint64_t bytes = 0;
    assert_int_equal(pl_calibration_bytes(c, g, &bytes, NULL), PL_OK);
    return bytes;
}

static void assert_same_key(const pl_graph *g, const pl_node *a, const pl_graph *h, const pl_node *b,
                            pl_calibration_options o, bool same)
{
    pl_str x = {0}, y = {0};
    pl_calibration_options plain = quick();
    pl_calibration_key(g, a, &plain, &x);
    pl_calibration_key(h, b, &o, &y);
    if ((strcmp(pl_str_text(&x), pl_str_text(&y)) == 0) != same) fail_msg("%s / %s", pl_str_text(&x), pl_str_text(&y));
    pl_str_deinit(&x);
    pl_str_deinit(&y);
}

static void test_keys(void **state)
{
    (void)state;
    pl_graph *g = make_graph(8, 16, 4, 3), *trips = make_graph(8, 16, 9, 1), *other = make_graph(16, 16, 4, 1);
    const pl_node *linear = find(g, PL_OP_LINEAR, 0);
    pl_calibration_options more = quick(), isa = quick(), huge = quick();
    more.team.threads = 2;
    isa.team.isa = PL_ISA_BASELINE;
    huge.huge_pages = true;
    assert_same_key(g, linear, g, find(g, PL_OP_LINEAR, 2), quick(), true);
    assert_same_key(g, linear, trips, find(trips, PL_OP_LINEAR, 0), quick(), true);
    assert_same_key(g, linear, other, find(other, PL_OP_LINEAR, 0), quick(), false);
    assert_same_key(g, linear, g, linear, more, false);
    assert_same_key(g, linear, g, linear, isa, false);
    assert_same_key(g, linear, g, linear, huge, false);
    pl_node changed = *linear;
    changed.attr[0].i = 1; /* another activation */
    assert_same_key(g, linear, g, &changed, quick(), false);
    changed = *linear;
    changed.in[3] = changed.in[0]; /* a residual */
    assert_same_key(g, linear, g, &changed, quick(), false);
    changed = *linear;
    changed.phase = PL_PHASE_BACKWARD;
    assert_same_key(g, linear, g, &changed, quick(), false);
    changed = *find(g, PL_OP_ADAMW, 0);
    changed.attr[3].f = 0.2; /* a number that is no work */
    assert_same_key(g, find(g, PL_OP_ADAMW, 0), g, &changed, quick(), true);
    pl_graph_destroy(g);
    pl_graph_destroy(trips);
    pl_graph_destroy(other);
}

static double spread_of(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    const pl_calibration_entry *e = pl_calibration_entry_of(c, g, n);
    return e ? e->spread : 0;
}

static void test_measured_nodes_are_known(void **state)
{
    (void)state;
    pl_calibration_options o = quick();
    pl_graph *g = make_graph(8, 16, 4, 3), *deep = make_graph(8, 16, 2, 30), *other = make_graph(16, 16, 4, 1);
    pl_calibration *c = open_calibration(NULL, &o);
    assert_true(pl_calibration_seconds(c, g, find(g, PL_OP_LINEAR, 0)) < 0);
    assert_int_equal(count_missing(c, g), 5); /* fill, embedding, linear, loss, update */
    measure(c, g);
    assert_int_equal(count_missing(c, g), 0);
    assert_int_equal(count_missing(c, deep), 0);
    assert_int_equal(pl_calibration_count(c), 5);
    for (size_t i = 0; i < g->node_count; i++) assert_true(pl_calibration_seconds(c, g, &g->node[i]) >= 0);
    assert_true(pl_calibration_seconds(c, g, find(g, PL_OP_LINEAR, 0)) > 0);
    assert_true(pl_calibration_seconds(c, g, find(g, PL_OP_LINEAR, 0)) ==
                pl_calibration_seconds(c, deep, find(deep, PL_OP_LINEAR, 20)));
    assert_true(spread_of(c, g, find(g, PL_OP_LINEAR, 0)) >= 0);
    assert_int_equal(count_missing(c, other), 3); /* embedding, linear, loss: fill and update do not know the rows */
    pl_calibration_close(c);
    pl_graph_destroy(g);
    pl_graph_destroy(deep);
    pl_graph_destroy(other);
}

static void keep_moments_as(pl_graph *g, pl_dtype dtype)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        if (v->role != PL_ROLE_OPTIMIZER) continue;
        if (dtype == PL_DTYPE_U8)
            v->encoding = v->name[0] == 'm' ? PL_ENCODING_SIGNED8 : PL_ENCODING_ROOT8;
        else
            v->dtype = dtype;
    }
}

/* Moments of another form make another update, and nothing else: also where memory is short and areas are shared. */
static void test_small_moments(void **state)
{
    (void)state;
    const pl_dtype forms[] = {PL_DTYPE_BF16, PL_DTYPE_U8};
    pl_graph *g = make_graph(8, 256, 2, 2);
    pl_calibration_options o = quick();
    for (int small = 0; small < 2; small++) {
        pl_calibration *c = open_calibration(NULL, &o);
        measure(c, g);
        for (int f = 0; f < 2; f++) {
            pl_graph *other = make_graph(8, 256, 2, 2);
            keep_moments_as(other, forms[f]);
            assert_int_equal(count_missing(c, other), 1);
            measure(c, other);
            assert_int_equal(count_missing(c, other), 0);
            assert_true(pl_calibration_seconds(c, other, find(other, PL_OP_ADAMW, 0)) > 0);
            pl_graph_destroy(other);
        }
        pl_calibration_close(c);
        o.bytes_max = 1 << 20;
    }
    pl_graph_destroy(g);
}

static void test_file_round_trip(void **state)
{
    (void)state;
    char path[128];
    join(path, "new/cache/c.json");
    pl_calibration_options o = quick();
    pl_graph *g = make_graph(8, 16, 4, 2);
    pl_calibration *c = open_calibration(path, &o);
    assert_string_equal(pl_calibration_warning(c), "");
    measure(c, g);
    assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
    assert_string_equal(pl_calibration_warning(c), "");
    pl_calibration *again = open_calibration(path, &o);
    assert_string_equal(pl_calibration_warning(again), "");
    assert_int_equal(count_missing(again, g), 0);
    assert_int_equal(bytes_of(again, g), 0);
    for (size_t i = 0; i < g->node_count; i++) {
        assert_true(pl_calibration_seconds(c, g, &g->node[i]) == pl_calibration_seconds(again, g, &g->node[i]));
        assert_true(spread_of(c, g, &g->node[i]) == spread_of(again, g, &g->node[i]));
    }
    pl_calibration_close(c);
    pl_calibration_close(again);
    pl_graph_destroy(g);
}

static void write_text(const char *path, const char *text, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    fclose(f);
}

/* Whatever is in the file: an empty table and a sentence, and it can be measured and kept anew. */
static void assert_ignored(const char *path, const char *text, size_t bytes)
{
    pl_calibration_options o = quick();
    write_text(path, text, bytes);
    pl_calibration *c = open_calibration(path, &o);
    assert_int_equal(pl_calibration_count(c), 0);
    assert_non_null(strstr(pl_calibration_warning(c), "measured anew"));
    pl_calibration_close(c);
}

static void test_damaged_files(void **state)
{
    (void)state;
    char path[128];
    join(path, "c.json");
    pl_calibration_options o = quick();
    pl_graph *g = make_graph(8, 16, 4, 2);
    pl_calibration *c = open_calibration(path, &o);
    measure(c, g);
    assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
    pl_calibration_close(c);
    static char good[1 << 16], bad[1 << 16], large[(1 << 20) + 1];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t bytes = fread(good, 1, sizeof good - 1, f);
    fclose(f);
    for (size_t cut = 0; cut + 2 < bytes; cut += 97) assert_ignored(path, good, cut);
    static const char *const changes[][2] = {
        {"calibration 3", "calibration 2"}, {"\"cpu\":\"", "\"cpu\":\"x"},     {"\"kernels\":\"", "\"kernels\":\"0"},
        {"\"cores\":", "\"cores\":9"},      {"\"seconds\":", "\"seconds\":-"}, {"\"samples\":", "\"sample\":"},
        {"\"entries\"", "\"entry\""},       {"\"work\":", "\"work\":-"},       {"\"key\":\"", "\"key\":1, \"k\":\""}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char *at = strstr(good, changes[i][0]);
        if (!at) fail_msg("%s is not in the file", changes[i][0]);
        int length =
            snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, changes[i][1], at + strlen(changes[i][0]));
        assert_ignored(path, bad, (size_t)length);
    }
    memset(large, ' ', sizeof large);
    assert_ignored(path, large, sizeof large);
    write_text(path, good, bytes);
    c = open_calibration(path, &o);
    assert_string_equal(pl_calibration_warning(c), "");
    assert_int_equal(count_missing(c, g), 0);
    pl_calibration_close(c);
    pl_graph_destroy(g);
}

/* A table of many configurations stays small, in the file and while it is read; what is in use stays in it, whatever
 * was measured since. */
static void test_full_file(void **state)
{
    (void)state;
    enum { CONFIGURATIONS = 90, KERNELS = 80 };
    char path[128], key[200];
    join(path, "full.json");
    pl_calibration_options o = quick();
    struct stat st;
    for (int i = 0; i < CONFIGURATIONS; i++) {
        uint64_t before = pl_alloc_live_bytes();
        pl_calibration *c = open_calibration(path, &o);
        assert_string_equal(pl_calibration_warning(c), "");
        assert_true(pl_alloc_live_bytes() - before < 1600000 && pl_calibration_held_bytes(c) < 1200000);
        for (int k = 0; k < KERNELS; k++) {
            snprintf(key, sizeof key, "%0120d of %d", k, i);
            assert_int_equal(
                pl_calibration_put(c, key, &(pl_calibration_entry){.seconds = 1e-6 * (k + 1), .samples = 1}, NULL),
                PL_OK);
            assert_non_null(pl_calibration_touch(c, key));
        }
        snprintf(key, sizeof key, "%0120d of %d", 7, 3); /* asked for again and again */
        if (i >= 3 && !pl_calibration_touch(c, key)) fail_msg("forgotten after %d configurations", i);
        c->changed = true;
        assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
        pl_calibration_close(c);
        assert_int_equal(stat(path, &st), 0);
        assert_true((uint64_t)st.st_size <= PL_CALIBRATION_FILE_BYTES_MAX);
    }
    pl_calibration *c = open_calibration(path, &o);
    snprintf(key, sizeof key, "%0120d of %d", 7, 4);
    assert_null(pl_calibration_find(c, key)); /* older than its room */
    snprintf(key, sizeof key, "%0120d of %d", 7, CONFIGURATIONS - 1);
    assert_non_null(pl_calibration_find(c, key));
    pl_calibration_close(c);
    c = open_calibration(path, &o); /* looking at what stands in front puts it behind, with nothing measured */
    char first[200];
    snprintf(first, sizeof first, "%s", c->entry[0].key);
    assert_non_null(pl_calibration_find(c, first)); /* no use of it */
    assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
    pl_calibration_close(c);
    c = open_calibration(path, &o);
    assert_string_equal(c->entry[0].key, first);
    assert_non_null(pl_calibration_touch(c, first));
    assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
    pl_calibration_close(c);
    c = open_calibration(path, &o);
    assert_string_equal(c->entry[c->count - 1].key, first);
    pl_calibration_close(c);
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    char file[128], path[128];
    join(file, "plain");
    write_text(file, "x", 1);
    join(path, "plain/c.json"); /* below a file: refused to root as well */
    pl_calibration_options o = quick();
    pl_graph *g = make_graph(8, 16, 4, 1);
    pl_calibration *c = open_calibration(path, &o);
    measure(c, g);
    assert_int_equal(pl_calibration_save(c, NULL), PL_OK);
    assert_non_null(strstr(pl_calibration_warning(c), "not kept"));
    assert_int_equal(count_missing(c, g), 0);
    pl_calibration_close(c);
    pl_graph_destroy(g);
}

static void test_path(void **state)
{
    (void)state;
    char a[256], b[256], small[8];
    assert_int_equal(pl_calibration_path(a, sizeof a, "/x", NULL), PL_OK);
    assert_int_equal(pl_calibration_path(b, sizeof b, "/x", NULL), PL_OK);
    assert_string_equal(a, b);
    assert_int_equal(strncmp(a, "/x/calibration-", 15), 0);
    assert_int_not_equal(pl_calibration_path(small, sizeof small, "/x", NULL), PL_OK);
}

/* From what everything needs down to less than one operand: never more than allowed, never a crash; what has no room
 * stays unknown, and more memory never means fewer keys. */
static void test_memory_bound(void **state)
{
    (void)state;
    pl_graph *g = make_graph(64, 64, 4, 6);
    pl_calibration_options o = quick();
    o.seconds_max = 0.005;
    size_t before = SIZE_MAX;
    for (uint64_t limit = 1 << 20; limit >= 64; limit = limit * 3 / 4) {
        o.bytes_max = limit;
        pl_calibration *c = open_calibration(NULL, &o);
        assert_true(bytes_of(c, g) <= limit);
        measure(c, g);
        assert_true(pl_calibration_count(c) <= before);
        before = pl_calibration_count(c);
        pl_calibration_close(c);
    }
    assert_int_equal(before, 0);
    pl_graph_destroy(g);
}

/* What all calls may take is over before the first node: nothing is known, nothing is wrong. With a moment more some
 * are known, and a call that begins behind the end adds none. */
static void test_time_bound(void **state)
{
    (void)state;
    pl_graph *g = make_graph(64, 64, 4, 6);
    pl_calibration_options o = quick();
    o.total_seconds_max = 1e-12;
    pl_calibration *c = open_calibration(NULL, &o);
    measure(c, g);
    assert_int_equal(pl_calibration_count(c), 0);
    pl_calibration_close(c);

    o.total_seconds_max = 1e-4;
    o.seconds_max = 10;
    c = open_calibration(NULL, &o);
    measure(c, g);
    assert_true(pl_calibration_measured_seconds(c) < 5);
    size_t known = pl_calibration_count(c);
    measure(c, g);
    assert_int_equal(pl_calibration_count(c), known);
    pl_calibration_close(c);
    pl_graph_destroy(g);
}

static void test_refused_memory(void **state)
{
    (void)state;
    pl_graph *g = make_graph(8, 16, 4, 2);
    pl_calibration_options o = quick();
    o.seconds_max = 0.001;
    uint64_t live = pl_alloc_live_blocks();
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        pl_error err = {0};
        pl_calibration *c = NULL;
        pl_alloc_fail_at(n, 1);
        pl_status status = pl_calibration_open(NULL, &o, &c, &err);
        if (status == PL_OK) status = pl_calibration_measure(c, g, &err);
        pl_alloc_fail_at(0, 0);
        done = status == PL_OK;
        if (!done) assert_int_equal(status, PL_E_NOMEM);
        if (!done) assert_true(err.text[0]);
        pl_calibration_close(c);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),           cmocka_unit_test(test_measured_nodes_are_known),
        cmocka_unit_test(test_small_moments),  cmocka_unit_test(test_file_round_trip),
        cmocka_unit_test(test_damaged_files),  cmocka_unit_test(test_unwritable_folder),
        cmocka_unit_test(test_path),           cmocka_unit_test(test_memory_bound),
        cmocka_unit_test(test_refused_memory), cmocka_unit_test(test_time_bound),
        cmocka_unit_test(test_full_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

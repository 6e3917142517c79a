/* A model in the caller's memory: what is refused, and that whatever request for memory fails, all is given back. What
 * it computes is held against the command in tests/cli/infer_tests.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "config/config.h"
#include "plimsoll/plimsoll.h"
#include "store/hdf5_load.h"
#include "support/program.h"

enum { GRID = 8, BATCH = 2, ELEMS = BATCH * GRID * GRID * 3 };
static const char operators[] =
    "model: {arch: cnn_operator}\n"
    "parameter_space:\n"
    "  operator: {grid_size: {type: choice, choices: [8]}}\n"
    "  architecture: {base_channels: {type: choice, choices: [4]}, num_layers: {type: choice, choices: [2]}}\n"
    "run: {threads: 1, out: nowhere}\n";
static pl_error err;
static float in[ELEMS], out[ELEMS];

static pl_config *config(void)
{
    pl_config *c = pl_config_create();
    assert_non_null(c);
    if (pl_config_load_text(c, "c.yaml", operators, sizeof operators - 1, &err)) fail_msg("%s", err.text);
    return c;
}

static void refused(pl_status found, pl_status wanted, const char *says)
{
    if (found != wanted || !strstr(err.text, says))
        fail_msg("status %d, \"%s\" was expected in: %s", found, says, err.text);
}

static void what_is_refused(void **state)
{
    (void)state;
    pl_infer *m = NULL;
    pl_config *c = config();
    refused(pl_infer_open(&(pl_infer_options){.model = "gone.yaml"}, &m, &err), PL_E_CONFIG, "gone.yaml");
    refused(pl_infer_open(&(pl_infer_options){0}, &m, &err), PL_E_USAGE, "no model is named");
    refused(pl_infer_open(&(pl_infer_options){.config = c, .seeded = true, .checkpoint = "x"}, &m, &err), PL_E_USAGE,
            "leave one out");
    assert_null(m);
    if (pl_infer_plan(&(pl_infer_options){.config = c, .batch = BATCH}, &m, &err)) fail_msg("%s", err.text);
    pl_config_destroy(c);
    assert_int_equal(pl_infer_values(m), 2);
    const pl_infer_value state_in = pl_infer_value_at(m, 0);
    assert_string_equal(state_in.name, "state");
    assert_true(state_in.is_input && !state_in.is_whole && state_in.rank == 4 && state_in.bytes == sizeof in);
    assert_true(state_in.dim[0] == BATCH && state_in.dim[1] == GRID && state_in.dim[2] == GRID && state_in.dim[3] == 3);
    refused(pl_infer_step(m, &err), PL_E_USAGE, "has no weights yet");
    const uint64_t bytes = pl_infer_bytes(m);
    char *block = aligned_alloc(64, (bytes + 127) / 64 * 64);
    refused(pl_infer_load(m, block + 4, bytes, &err), PL_E_USAGE, "a multiple of 64");
    refused(pl_infer_load(m, block, bytes - 1, &err), PL_E_USAGE, "bytes of memory, and is given");
    if (pl_infer_load(m, block, bytes, &err)) fail_msg("%s", err.text);
    refused(pl_infer_load(m, block, bytes, &err), PL_E_USAGE, "loaded already");
    refused(pl_infer_step(m, &err), PL_E_USAGE, "input state is bound to nothing");
    refused(pl_infer_bind(m, "field", in, sizeof in, &err), PL_E_USAGE, "\"field\"; it has state, output");
    refused(pl_infer_bind(m, "state", in, sizeof in - 4, &err), PL_E_USAGE, "is bound to 1532");
    assert_int_equal(pl_infer_bind(m, "state", in, sizeof in, &err), PL_OK);
    assert_int_equal(pl_infer_step(m, &err), PL_OK); /* what comes out, nobody wants */
    pl_infer_close(m);
    free(block);
}

/* The same numbers in a second model on the heap, whatever lay in its memory before. */
static void in_any_memory(void **state)
{
    (void)state;
    static float again[ELEMS];
    pl_config *c = config();
    for (int i = 0; i < ELEMS; i++) in[i] = (float)(i % 17) / 8 - 1;
    for (int k = 0; k < 2; k++) {
        pl_infer *m = NULL;
        if (pl_infer_plan(&(pl_infer_options){.config = c, .batch = BATCH}, &m, &err)) fail_msg("%s", err.text);
        const uint64_t bytes = (pl_infer_bytes(m) + 63) / 64 * 64;
        void *block = k ? memset(aligned_alloc(64, bytes), 0x7f, bytes) : NULL;
        if (pl_infer_load(m, block, block ? bytes : 0, &err)) fail_msg("%s", err.text);
        assert_int_equal(pl_infer_bind(m, "output", k ? again : out, sizeof out, &err), PL_OK);
        assert_int_equal(pl_infer_bind(m, "state", in, sizeof in, &err), PL_OK);
        assert_int_equal(pl_infer_step(m, &err), PL_OK);
        pl_infer_close(m);
        free(block);
    }
    assert_memory_equal(out, again, sizeof out);
    assert_true(out[0] != out[1]);
    pl_config_destroy(c);
}

static void no_memory(void **state)
{
    (void)state;
    pl_config *c = config();
    const uint64_t before = pl_alloc_live_blocks(), asked = pl_alloc_request_count();
    pl_infer *m = NULL;
    if (pl_infer_open(&(pl_infer_options){.config = c}, &m, &err)) fail_msg("%s", err.text);
    pl_infer_close(m);
    const uint64_t all = pl_alloc_request_count() - asked;
    for (uint64_t n = 1; n <= all; n += 1 + all / 60) {
        m = NULL;
        pl_alloc_fail_at(n, 0);
        const pl_status status = pl_infer_open(&(pl_infer_options){.config = c}, &m, &err);
        pl_alloc_fail_at(0, 0);
        if (status == PL_OK) pl_infer_close(m);
        if (status != PL_OK && (status != PL_E_NOMEM || m)) fail_msg("request %d: %s", (int)n, err.text);
        assert_int_equal(pl_alloc_live_blocks(), before);
    }
    pl_config_destroy(c);
}

/* ---- on files: what was made ready is the plan's ---- */

static char folder[] = "/tmp/plimsoll-infer-XXXXXX";
static char told[2][1 << 16];
static const char *const files[] = {"x.h5:/in/state", "x.npy"};

static void write_at(const char *path, uint64_t offset, const void *data, size_t bytes)
{
    FILE *f = fopen(path, offset ? "r+b" : "wb");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void write_inputs(void)
{
    char npy[128] = "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 8, 8, 3), }", why[200];
    pl_hdf5_array a = {.name = "in/state", .dtype = "f32", .rank = 4, .shape = {BATCH, GRID, GRID, 3}};
    pl_module hdf5;
    for (int i = 0; i < ELEMS; i++) in[i] = (float)(i % 13) / 8 - 1;
    for (size_t i = 10; i < sizeof npy; i++)
        if (!npy[i]) npy[i] = i + 1 == sizeof npy ? '\n' : ' ';
    write_at("x.npy", 0, npy, sizeof npy);
    write_at("x.npy", sizeof npy, in, sizeof in);
    if (pl_hdf5_load("this test", "", &hdf5, &err)) skip();
    const pl_hdf5_module *module = hdf5.functions;
    if (module->create("x.h5", &a, 1, NULL, 0, why, sizeof why)) fail_msg("%s", why);
    write_at("x.h5", a.offset, in, sizeof in);
    pl_module_unload(&hdf5);
}

static void hear(void *context, const pl_event *e)
{
    char *to = context;
    if (e->kind == PL_EVENT_TEXT)
        snprintf(to + strlen(to), sizeof told[0] - strlen(to), "%.*s", (int)e->text_bytes, e->text);
}

static pl_status run_plan(const pl_plan *plan, char *to)
{
    pl_run *run = NULL;
    pl_inferred inferred;
    to[0] = 0;
    pl_status status = pl_run_open(plan, &(pl_run_options){.host = true, .listener = hear, .context = to}, &run, &err);
    if (status == PL_OK) status = pl_run_infer(run, &inferred, &err);
    pl_run_close(run);
    return status;
}

/* What it says of the items, without where they came from. */
static void strip_sources(char *text)
{
    char *from, *to;
    while ((from = strstr(text, "\"source\":\"")) && (to = strchr(from + 10, ','))) memmove(from, to + 1, strlen(to));
}

static void plan_and_run(int k)
{
    pl_plan *plan = NULL, *loaded = NULL;
    pl_config *c = config();
    assert_int_equal(pl_config_set(c, "infer.files", files[k], "this test", &err), PL_OK);
    assert_int_equal(pl_config_set(c, "infer.scratch", ".", "this test", &err), PL_OK);
    if (pl_plan_make(c, PL_COMMAND_INFER, NULL, NULL, NULL, &plan, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < 2; i++)
        if (run_plan(plan, told[k])) fail_msg("%s", err.text);
    assert_int_equal(pl_plan_save(plan, "lock", &err), PL_OK);
    assert_int_equal(pl_plan_load("lock", &loaded, &err), PL_OK);
    assert_int_equal(run_plan(loaded, told[k]), PL_OK);
    assert_non_null(strstr(told[k], k ? "\"x.npy[1]\"" : "\"x.h5:/in/state[1]\""));
    pl_plan_destroy(plan);
    static char none[sizeof told[0]];
    refused(run_plan(loaded, none), k ? PL_OK : PL_E_DATA, k ? "" : "gone with the process that planned");
    pl_plan_destroy(loaded);
    pl_config_destroy(c);
}

static void on_files(void **state)
{
    (void)state;
    write_inputs();
    const uint64_t before = pl_alloc_live_blocks();
    for (int k = 0; k < 2; k++) plan_and_run(k), strip_sources(told[k]);
    assert_string_equal(told[0], told[1]);
    assert_true(strlen(told[0]) > ELEMS);
    assert_int_equal(pl_alloc_live_blocks(), before);
}

static int enter(void **state) { return (void)state, mkdtemp(folder) ? chdir(folder) : -1; }

static int leave(void **state)
{
    static const char *const names[] = {"x.h5", "x.npy", "lock"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)unlink(names[i]);
    return chdir("/") || rmdir(folder); /* nothing else is left */
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_refused), cmocka_unit_test(in_any_memory),
                                       cmocka_unit_test(no_memory), cmocka_unit_test(on_files)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, enter, leave);
}

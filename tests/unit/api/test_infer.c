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
    for (uint64_t n = 1; n <= all; n += 1 + all / 400) {
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

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_refused), cmocka_unit_test(in_any_memory),
                                       cmocka_unit_test(no_memory)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

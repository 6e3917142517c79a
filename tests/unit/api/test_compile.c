/* What pl_compile says, to a caller that asks for no sentence, too; and of a room that no depth fits into. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/compiler.h"
#include "models/model.h"
#include "support/program.h"
#include "unit/api/small_run.h"

static pl_config *config_with(const char *key, const char *value)
{
    pl_error err = {0};
    pl_config *config = pl_config_create();
    assert_non_null(config);
    pl_status status = pl_config_load_file(config, "small.yaml", &err);
    if (status == PL_OK) status = pl_config_set(config, key, value, "test", &err);
    if (status != PL_OK) fail_msg("%s", err.text);
    return config;
}

static void test_no_error_asked(void **state)
{
    (void)state;
    static const struct {
        const char *budget;
        pl_status status;
    } cases[] = {{"none", PL_OK}, {"1MB", PL_E_BUDGET}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_plan *plan = NULL;
        pl_config *config = config_with("memory.budget", cases[i].budget);
        assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, NULL), PL_OK);
        assert_int_equal(pl_plan_make_unmeasured(config, &plan, NULL), cases[i].status);
        assert_int_equal(plan != NULL, cases[i].status == PL_OK);
        pl_plan_destroy(plan);
        pl_config_destroy(config);
    }
}

/* What is counted on models of two and three blocks is what the deep one holds; one that is not deep is built. */
static void test_weights_are_counted(void **state)
{
    (void)state;
    pl_error err = {0};
    static const char *const archs[] = {"gpt", "mlp"}, *const layers[] = {"1", "4", "64", "65", "100", "100000"};
    static const char *const majors[] = {"auto", "1"};
    for (int k = 0; k < 24; k++) {
        pl_config *config = config_with("model.layers", layers[k / 4]);
        assert_int_equal(pl_config_set(config, "model.arch", archs[k % 2], "test", &err), PL_OK);
        assert_int_equal(pl_config_set(config, "train.layer_major", majors[k / 2 % 2], "test", &err), PL_OK);
        pl_data data = {.extents = *PL_FACT("vocab", 256)};
        pl_compiler c = {.config = config, .command = PL_COMMAND_TRAIN, .data = &data};
        assert_int_equal(pl_system_find_jobs(config, PL_COMMAND_TRAIN, &data, &c.settings.jobs, &err), PL_OK);
        pl_graph *counted = NULL, *built = NULL;
        if (pl_compiler_count(&c, &counted, &err) != PL_OK) fail_msg("%s", err.text);
        assert_int_equal(counted != NULL, config->model.layers <= (k / 2 % 2 ? 3 : 64));
        uint64_t bytes = 0;
        if (config->model.layers <= 100) {
            assert_int_equal(pl_model_build(config, &data.extents, &built, &err), PL_OK);
            for (size_t i = 0; i < built->value_count; i++)
                if (built->value[i].role == PL_ROLE_WEIGHT) bytes += pl_value_bytes(built, (pl_id)i);
            assert_true(bytes == c.weight_bytes && bytes == c.trained_bytes);
        }
        pl_graph_destroy(built);
        pl_graph_destroy(counted);
        pl_config_destroy(config);
    }
}

/* The bytes that a graph of 2 layers takes are one too many where one fewer are allowed. */
static void test_no_depth_fits(void **state)
{
    (void)state;
    pl_error err = {0};
    uint64_t two = 0, room[] = {1000, 0, 0};
    pl_config *config = config_with("model.layers", "9000");
    for (int i = 0; i < 3; i++) {
        pl_data data = {.extents = *PL_FACT("vocab", 256)};
        pl_compiler c = {.config = config, .command = PL_COMMAND_TRAIN, .data = &data};
        assert_int_equal(pl_system_find_jobs(config, PL_COMMAND_TRAIN, &data, &c.settings.jobs, &err), PL_OK);
        c.machine.ram_bytes = c.machine.cgroup_limit_bytes = c.machine.address_space_limit_bytes =
            c.machine.data_limit_bytes = PL_MACHINE_UNLIMITED;
        c.machine.data_limit_bytes = room[i];
        pl_graph *graph = NULL;
        assert_int_equal(pl_compiler_count(&c, &graph, &err), PL_OK);
        assert_null(graph);
        assert_int_equal(pl_compiler_check_work(&c, &err), PL_E_BUDGET);
        const char *none = strstr(err.text, "not even 2 can be planned");
        if (i < 2 ? !none : !strstr(err.text, ": 2 can be planned")) fail_msg("%" PRIu64 ": %s", room[i], err.text);
        if (i == 0 && sscanf(none, "not even 2 can be planned in less than %" SCNu64 " bytes", &two) != 1)
            fail_msg("%s", err.text);
        room[1] = two - 1;
        room[2] = two;
    }
    pl_config_destroy(config);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_error_asked), cmocka_unit_test(test_no_depth_fits),
                                       cmocka_unit_test(test_weights_are_counted)};
    return cmocka_run_group_tests(tests, small_run_begin, small_run_end);
}

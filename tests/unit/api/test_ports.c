/* A dataset and a model are joined by ports: where a source offers something else than the model's programs load, the
 * sentence says what each has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/compiler.h"
#include "models/model.h"
#include "support/program.h"

enum { FRAMES = 3, HEIGHT = 16, WIDTH = 24 };

static pl_source_layout offered;

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    (void)source, (void)err;
    *l = offered;
    for (uint32_t k = 0; k < l->ports; k++) l->port[k].bytes *= micro_batch;
    return PL_OK;
}

static const pl_source_kind kind = {.name = "offered", .describe = describe};
static const pl_source source = {.kind = &kind, .batch = 4};

static void offer_what_is_taken(void)
{
    offered = (pl_source_layout){.port = {{"images", PL_DTYPE_F32, FRAMES * HEIGHT * WIDTH * 4, 0, NULL},
                                          {"angles", PL_DTYPE_F32, 8, 0, NULL},
                                          {"target", PL_DTYPE_F32, 4, 0, NULL}},
                                 .ports = 3};
}

static pl_graph *build(void)
{
    pl_config *c = pl_config_create();
    pl_graph *g = NULL;
    pl_error err = {0};
    pl_facts extents = {0};
    assert_non_null(c);
    pl_facts_add(&extents, "height", HEIGHT);
    pl_facts_add(&extents, "width", WIDTH);
    assert_int_equal(pl_config_set(c, "model.arch", "clouds", "test", &err), PL_OK);
    assert_int_equal(pl_config_set(c, "temporal_frames", "3", "test", &err), PL_OK);
    if (pl_model_build(c, &extents, &g, &err) != PL_OK) fail_msg("%s", err.text);
    pl_config_destroy(c);
    return g;
}

static void check_refused(const pl_graph *g, const char *end)
{
    static const char taken[] =
        "the model clouds takes images f32 [B, 3, 16, 24], angles f32 [B, 2], target f32 [B, 1]; "
        "here.bin offers ";
    pl_error err = {0};
    assert_int_equal(pl_check_ports(g, &source, "clouds", "here.bin", &err), PL_E_DATA);
    assert_memory_equal(err.text, taken, strlen(taken));
    assert_string_equal(err.text + strlen(taken), end);
}

static void ports_meet_or_the_sentence_names_both(void **state)
{
    (void)state;
    pl_graph *g = build();
    pl_error err = {0};
    offer_what_is_taken();
    if (pl_check_ports(g, &source, "clouds", "here.bin", &err) != PL_OK) fail_msg("%s", err.text);
    offered.port[0].bytes += 4;
    check_refused(g,
                  "images f32 of 4612 bytes a sample, angles f32 of 8 bytes a sample, target f32 of 4 bytes a sample");
    offer_what_is_taken();
    offered.port[2].dtype = PL_DTYPE_I32;
    check_refused(g,
                  "images f32 of 4608 bytes a sample, angles f32 of 8 bytes a sample, target i32 of 4 bytes a sample");
    offer_what_is_taken();
    offered.port[1].name = "times";
    check_refused(g,
                  "images f32 of 4608 bytes a sample, times f32 of 8 bytes a sample, target f32 of 4 bytes a sample");
    offer_what_is_taken();
    offered.ports = 2;
    check_refused(g, "images f32 of 4608 bytes a sample, angles f32 of 8 bytes a sample");
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ports_meet_or_the_sentence_names_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

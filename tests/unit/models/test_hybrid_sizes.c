/* Arch hybrid against the figures of docs/hybrid.md: the documented and the tiny model, part by part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ir/properties.h"
#include "models/model.h"
#include "reference/tiny.h"
#include "support/program.h"

/* Weights, and the codes, which are an average. Of the figures' tower the last norm, 2·D numbers that nothing reads, is
 * not made here; the reasoner's first states, which the figures leave out as buffers, are weights here, 2·D again. */
static bool is_counted(const pl_value *v) { return v->role == PL_ROLE_WEIGHT || v->inference; }

static uint64_t numbers(const pl_graph *g, const char *begin, bool trained)
{
    uint64_t total = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (v->view_of != PL_NONE || v->update_of != PL_NONE || v->program != PL_NONE || !is_counted(v)) continue;
        if (strncmp(v->name, begin, strlen(begin)) != 0 || (trained && !pl_value_is_trained(g, (pl_id)i))) continue;
        total += pl_shape_elems(&v->shape);
    }
    return total;
}

static pl_graph *build(const pl_config *c)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_model_build(c, PL_FACT("vocab", 1), &g, &err) != PL_OK) fail_msg("%s", err.text);
    tiny_check(g, PL_STAGE_MODEL);
    return g;
}

static void begin(pl_config *c)
{
    pl_config_default(c);
    c->model.arch = PL_ARCH_HYBRID;
    c->output_head.vq_codebook = PL_CONFIG_CODEBOOK_BESIDE;
}

static void the_documented_model(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "clip.", false), 85799424 - 2 * 768);
    assert_int_equal(numbers(g, "clip.", true), 0);
    assert_int_equal(numbers(g, "vit.", true), 43271424);
    assert_int_equal(numbers(g, "fusion.", true), 1181185);
    assert_int_equal(numbers(g, "adapter.", true), 21264385);
    assert_int_equal(numbers(g, "reasoner.", true), 28311552);
    assert_int_equal(numbers(g, "reasoner.", false), 28311552 + 2 * 768);
    assert_int_equal(numbers(g, "planner.", true), 19936130);
    assert_int_equal(numbers(g, "output_head.", false) + numbers(g, "q_head.", false), 3156231);
    assert_int_equal(numbers(g, "", false), 217780023);
    assert_int_equal(numbers(g, "", true), 130404663);
    pl_graph_destroy(g);
}

static uint64_t latent_numbers(const pl_graph *g)
{
    uint64_t total = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].latent) total += pl_shape_elems(&g->value[i].shape);
    return total;
}

/* Products of so many rows with a block's weights; attention's own are none of signs. */
static double block_flops(double rows, double numbers_of_block) { return 2 * rows * numbers_of_block; }

/* With blocks of signs: the weights of 2.14, and the FLOP of 2.15 that are left to them. The rest of the work, the
 * frozen tower's most of all, bounds what quicker signs can do (2.18: Amdahl). */
static void the_documented_model_in_signs(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    c.model.binary = PL_CONFIG_BINARY_BLOCKS;
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "", false), 217780023);
    assert_int_equal(latent_numbers(g), 42467328 + 14155776 + 28311552);
    const pl_work_share share = pl_program_binary_share(g, pl_graph_find_program(g, "evaluate"));
    const double vit = block_flops(197, 42467328), encoder = block_flops(196, 6 * 14155776),
                 reasoner = block_flops(12, 8 * 28311552);
    assert_true(share.binary_flops == vit + encoder + reasoner);
    assert_true(share.flops > 1.036e11 && share.flops < 1.06e11); /* 103.7 G, and what is elementwise */
    pl_graph_destroy(g);
}

/* The training of the adapter alone has the frozen tower beside it and nothing else. */
static void the_adapter_alone(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    c.n2n_pretrain.only = true;
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "", true), 21264385);
    assert_int_equal(numbers(g, "", false), 85799424 - 2 * 768 + 21264385);
    pl_graph_destroy(g);
}

/* The denoiser alone; its running means and variances are not among the figures. */
static void the_denoiser(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    c.denoiser.only = true;
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "", true), 7766051);
    assert_int_equal(numbers(g, "denoiser.", true), 7766051);
    pl_graph_destroy(g);
}

/* The policy alone is trained, and the denoiser that it tries stays as it is (docs/hybrid.md: 270,366). */
static void the_policy(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    c.page_policy.only = c.dataset.use_denoiser = true;
    snprintf(c.dataset.denoiser_path, sizeof c.dataset.denoiser_path, "some");
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "", true), 270366);
    assert_int_equal(numbers(g, "policy.", false), 270366);
    assert_int_equal(numbers(g, "denoiser.", false), 7766051 + 5888); /* and the running means and variances */
    pl_graph_destroy(g);
}

static void the_tiny_model(void **state)
{
    (void)state;
    static pl_config c;
    begin(&c);
    c.vision_encoder.image_size = c.vision_encoder.width = c.reading.words = 64;
    c.vision_encoder.pretrained_layers = c.vision_encoder.vit_layers = c.latent_planning.latent_num_paths = 2;
    c.vision_encoder.vit_heads = c.vision_encoder.heads = c.reasoning.heads = 4;
    c.vision_encoder.adapter_layers = c.reasoning.L_layers = 1;
    pl_graph *g = build(&c);
    assert_int_equal(numbers(g, "", false), 706519);
    assert_int_equal(numbers(g, "", true), 555991 - 64 * 64 - 4 * 64); /* neither the codes nor the controls */
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_model), cmocka_unit_test(the_documented_model_in_signs),
        cmocka_unit_test(the_adapter_alone),    cmocka_unit_test(the_denoiser),
        cmocka_unit_test(the_policy),           cmocka_unit_test(the_tiny_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

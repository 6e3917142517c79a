/* The encoder of pages: the figures of docs/capsules.md against its graph, and small ones as programs against the
 * interpreter, at every level and in every precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/narrow.h"
#include "base/philox.h"
#include "models/model.h"
#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;

/* As a file with nothing but the arch would be. */
static pl_config *documented(void)
{
    static pl_config c;
    pl_config_default(&c);
    c.model.arch = PL_ARCH_CAPSULES;
    return &c;
}

/* docs/capsules.md. */
static pl_config *tiny_encoder(void)
{
    pl_config *c = documented();
    c->encoder.image_size = 64;
    c->encoder.width = 64;
    c->encoder.heads = 4;
    c->encoder.layers = 1;
    c->encoder.H_cycles = 1;
    c->encoder.L_cycles = 2;
    c->encoder.seed = (int64_t)(seed >> 1);
    return c;
}

static pl_graph *build(const pl_config *c)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_facts e = {0};
    if (pl_model_check(c, &err) != PL_OK || pl_model_build(c, &e, &g, &err) != PL_OK) fail_msg("%s", err.text);
    tiny_check(g, PL_STAGE_MODEL);
    return g;
}

/* ---- figures ---- */

static uint64_t parameters(const pl_graph *g, const char *of)
{
    uint64_t total = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT && g->value[i].view_of == PL_NONE && strstr(g->value[i].name, of))
            total += pl_shape_elems(&g->value[i].shape);
    return total;
}

/* Two for each multiplication of a matrix; of one text. */
static double flops(const pl_config *c)
{
    double total = 0;
    pl_graph *g = build(c);
    pl_error err = {0};
    const pl_id encode = pl_graph_find_program(g, "encode");
    assert_int_equal(pl_rewrite_bind_batch(g, encode, 1, NULL, 1, &err), PL_OK);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const bool multiplies = n->op == PL_OP_LINEAR || n->op == PL_OP_ATTENTION ||
                                n->op == PL_OP_GATED_FEED_FORWARD || n->op == PL_OP_CAPSULE_POOL;
        if (multiplies) total += pl_op_rule_of(n->op)->cost(g, n).flops;
    }
    pl_graph_destroy(g);
    return total;
}

static void check_parameters(const pl_config *c, uint64_t encoder, uint64_t heads)
{
    pl_graph *g = build(c);
    assert_int_equal(parameters(g, "encoder."), encoder);
    assert_int_equal(parameters(g, "checksum_head.") + parameters(g, "children_projection."), heads);
    assert_int_equal(parameters(g, ""), encoder + heads);
    pl_graph_destroy(g);
}

static void the_encoder_of_the_book(void **state)
{
    (void)state;
    check_parameters(documented(), 14907660, 693152);
    if (!(fabs(flops(documented()) / 35.008e9 - 1) < 1e-3)) fail_msg("%.4g FLOP", flops(documented()));
    check_parameters(tiny_encoder(), 116684, 16608); /* 133,292 */
}

static void the_narrower_one(void **state)
{
    (void)state;
    pl_config *c = documented();
    c->encoder.width = 512;
    check_parameters(c, 7317004, 332448); /* 7,649,452 */
}

/* 16 applications of the blocks in place of 12, and two vectors. */
static void two_states(void **state)
{
    (void)state;
    pl_config *c = documented();
    c->encoder.recursion = PL_CONFIG_RECURSION_TRM;
    pl_graph *g = build(c);
    assert_int_equal(parameters(g, "encoder."), 14907660 + 2 * 768);
    pl_graph_destroy(g);
    if (!(fabs(flops(c) / 46.58e9 - 1) < 1e-3)) fail_msg("%.4g FLOP", flops(c));
}

/* ---- docs/capsules.md: what the document got wrong, and what is right ---- */

enum { BATCH = 192, TEXTS = 1907747 };

/* Bytes of the largest value that the program makes of this many numbers a text, in f32; 0: there is none. */
static uint64_t bytes_of(const pl_graph *g, uint64_t numbers)
{
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        const bool is_made = v->program != PL_NONE && v->view_of == PL_NONE && v->dtype == PL_DTYPE_F32;
        if (is_made && pl_shape_elems(&v->shape) == numbers * BATCH) return pl_value_bytes(g, (pl_id)i);
    }
    return 0;
}

static uint64_t stored_bytes(const pl_graph *g)
{
    static const char *const names[] = {"encode.sketches", "encode.checksums", "encode.children"};
    uint64_t bytes = 0;
    for (int k = 0; k < 3; k++) bytes += pl_value_bytes(g, pl_graph_find_value(g, names[k]));
    return bytes;
}

static uint64_t f32_bytes(const pl_graph *g, const char *name)
{
    return 2 * pl_value_bytes(g, pl_graph_find_value(g, name));
}

/* What a batch leaves, by kind; how many fit in 2 GB and in 12; and how few of larger batches make a shard. */
static void check_outputs_of_a_batch(const pl_graph *g)
{
    assert_int_equal(f32_bytes(g, "encode.sketches"), 7077888);
    assert_int_equal(f32_bytes(g, "encode.checksums"), 294912);
    assert_int_equal(f32_bytes(g, "encode.children"), 28311552);
    assert_int_equal(100 * f32_bytes(g, "encode.sketches"), 707788800); /* of 200 batches in f16: not 1,770 MB */
    assert_int_equal(100 * f32_bytes(g, "encode.checksums"), 29491200);
    assert_int_equal(100 * f32_bytes(g, "encode.children"), UINT64_C(2831155200));
    assert_int_equal(50 * 2 * stored_bytes(g), 1784217600);
    assert_int_equal(UINT64_C(2000000000) / stored_bytes(g), 112); /* a checkpoint every 200 batches is 3.57 GB */
    assert_int_equal(UINT64_C(10494000000) / stored_bytes(g), 588);
    assert_int_equal(UINT64_C(10494000000) / (2 * stored_bytes(g)), 294);
    assert_int_equal(200 * BATCH / 256, 150);
    assert_int_equal(200 * BATCH / 384, 100);
}

/* Of a page one grey byte a pixel; the document's has three, and is cached as a file of 128 bytes more. */
static void check_pages(const pl_graph *g)
{
    const uint64_t page = pl_value_bytes(g, pl_graph_find_value(g, "encode.pages")) / BATCH;
    assert_int_equal(3 * page * BATCH, 28901376);               /* prefetched, of 8 bits a channel */
    assert_int_equal(3 * page * TEXTS, UINT64_C(287169340416)); /* raw: not 286 GB, and .npy packs nothing */
    assert_int_equal((3 * page + 128) * TEXTS, UINT64_C(287413532032));
    assert_int_equal(page / 8, 6272); /* with a bit a pixel */
    assert_int_equal(page / 8 * TEXTS, UINT64_C(11965389184));
    const uint64_t results = stored_bytes(g) / BATCH * TEXTS;
    const uint64_t giga = 1000000000;                                                  /* rounded */
    assert_int_equal(((3 * page + 128) * TEXTS + 2 * results + giga / 2) / giga, 642); /* in the end: not 220 GB */
    assert_int_equal((page / 8 * TEXTS + results + giga / 2) / giga, 189);
}

static void the_errata_of_the_document(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = build(documented());
    assert_int_equal(parameters(g, "self_attn"), 4718592); /* not 9.4M */
    assert_int_equal(pl_rewrite_bind_batch(g, pl_graph_find_program(g, "encode"), BATCH, NULL, 1, &err), PL_OK);
    assert_int_equal(bytes_of(g, 3 * 224 * 224), 115605504);                              /* images in f32: not 55 MB */
    assert_int_equal(pl_value_bytes(g, pl_graph_find_value(g, "encode.pages")), 9633792); /* in fact grey bytes */
    assert_int_equal(bytes_of(g, 196 * 3 * 768), 346816512);                              /* Q, K, V: not 172 MB */
    assert_int_equal(bytes_of(g, 8 * 196 * 196), 0);     /* scores, 236.0 MB and not 471, are never there */
    assert_int_equal(bytes_of(g, 196 * 768), 115605504); /* the context: not 57 MB */
    assert_int_equal(bytes_of(g, 196 * 3072), 0);        /* the hidden values are no layer of 3072 (450 MB) */
    assert_int_equal(bytes_of(g, 2 * 196 * 2048), 0);    /* but gate and up, 616.6 MB, which are never there either */
    assert_int_equal(bytes_of(g, 196 * 2048), 0);
    assert_int_equal(stored_bytes(g), 17842176);                               /* a batch: 35.68 MB in f32 */
    assert_int_equal(200 * stored_bytes(g), UINT64_C(3568435200));             /* not 8.9 GB */
    assert_int_equal(stored_bytes(g) / BATCH, 92928);                          /* a text */
    assert_int_equal(stored_bytes(g) / BATCH * TEXTS, UINT64_C(177283113216)); /* all of them: not counted there */
    assert_int_equal((TEXTS + BATCH - 1) / BATCH, 9937);
    check_outputs_of_a_batch(g);
    check_pages(g);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_encoder_of_the_book),
        cmocka_unit_test(the_narrower_one),
        cmocka_unit_test(two_states),
        cmocka_unit_test(the_errata_of_the_document),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

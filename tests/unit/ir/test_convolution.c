/* The rules of conv2d and its derivatives: shapes that fit make the outputs that they should, each of those that do not
 * is refused with a sentence; FLOPs are those of the taps that lie in the image, counted one by one; the rule that
 * chooses an algorithm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/convolution.h"
#include "ir/op.h"
#include "support/program.h"

typedef struct maker {
    pl_graph *g;
    pl_builder b;
    pl_error err;
} maker;

static maker maker_create(void)
{
    maker m = {.g = pl_graph_create()};
    assert_non_null(m.g);
    return m;
}

static void begin(maker *m)
{
    m->err = (pl_error){0};
    m->b = pl_builder_begin(m->g, pl_graph_add_region(m->g, "p", PL_NONE, 1), &m->err);
}

static pl_id value(maker *m, pl_dtype type, int64_t a, int64_t b, int64_t c, int64_t d)
{
    static int made;
    return pl_build_persistent(&m->b, PL_ROLE_STATE, type, pl_shape_of(4, a, b, c, d), "v%d", made++);
}

static pl_id f32(maker *m, int64_t a, int64_t b, int64_t c, int64_t d) { return value(m, PL_DTYPE_F32, a, b, c, d); }

static void refused(maker *m, const char *part)
{
    assert_int_equal(m->b.status, PL_E_INTERNAL);
    if (!strstr(m->err.text, part)) fail_msg("'%s' does not say '%s'", m->err.text, part);
}

typedef struct window {
    int64_t act, stride, pad, algorithm, height, width;
} window;

static void forward(maker *m, const pl_id in[4], window w, pl_id out[3])
{
    pl_attr attr[] = {pl_attr_i(w.act), pl_attr_i(w.stride), pl_attr_i(w.pad), pl_attr_i(w.algorithm)};
    for (int k = 0; k < 3; k++) out[k] = PL_NONE;
    pl_build_node(&m->b, PL_OP_CONV2D, attr, 4, in, 3, out);
}

static void shapes_follow_from_the_window(void **state)
{
    (void)state;
    static const int64_t cases[][6] = {{3, 1, 1, 0, 9, 8}, {3, 2, 1, 0, 5, 4},   {1, 1, 0, 0, 9, 8},
                                       {7, 1, 3, 0, 9, 8}, {16, 16, 5, 0, 1, 1}, {2, 2, 0, 0, 4, 4}};
    maker m = maker_create();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *c = cases[i];
        pl_id out[3];
        begin(&m);
        pl_id x = value(&m, PL_DTYPE_BF16, PL_B(1), 9, 8, 3), w = value(&m, PL_DTYPE_BF16, 4, c[0], c[0], 3);
        forward(&m, (pl_id[]){x, w, PL_NONE, PL_NONE}, (window){0, c[1], c[2], 0, 0, 0}, out);
        if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
        pl_shape y = pl_shape_of(4, PL_B(1), c[4], c[5], 4L), moments = pl_shape_of(4, PL_B(1), c[4], 2L, 4L);
        assert_true(pl_shape_equal(&m.g->value[out[0]].shape, &y) && pl_shape_equal(&m.g->value[out[1]].shape, &y));
        assert_true(pl_shape_equal(&m.g->value[out[2]].shape, &moments));
        assert_true(m.g->value[out[0]].dtype == PL_DTYPE_BF16 && m.g->value[out[2]].dtype == PL_DTYPE_F32);
    }
    pl_graph_destroy(m.g);
}

static void refuse_forward(maker *m, const pl_id in[4], window w, const char *part)
{
    pl_id out[3];
    forward(m, in, w, out);
    refused(m, part);
    begin(m);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const window plain = {.stride = 1, .pad = 1};
    maker m = maker_create();
    begin(&m);
    pl_id x = f32(&m, PL_B(1), 9, 8, 3), w = f32(&m, 4, 3, 3, 3), none = PL_NONE;
    pl_id flat = pl_build_persistent(&m.b, PL_ROLE_STATE, PL_DTYPE_F32, pl_shape_of(2, 9L, 3L), "flat");
    refuse_forward(&m, (pl_id[]){flat, w, none, none}, plain, "[batch, height, width, in]");
    refuse_forward(&m, (pl_id[]){f32(&m, 2, PL_B(9), 8, 3), w, none, none}, plain, "[batch, height, width, in]");
    refuse_forward(&m, (pl_id[]){x, f32(&m, 4, 3, 2, 3), none, none}, plain, "square kernel");
    refuse_forward(&m, (pl_id[]){x, f32(&m, 4, 3, 3, 5), none, none}, plain, "the input's channels");
    refuse_forward(&m, (pl_id[]){x, value(&m, PL_DTYPE_F16, 4, 3, 3, 3), none, none}, plain, "expected f32");
    refuse_forward(&m, (pl_id[]){x, w, flat, none}, plain, "f32 [out]");
    refuse_forward(&m, (pl_id[]){x, w, none, x}, plain, "the shape of the output");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 0, .pad = 1}, "stride of at least 1");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = INT64_MAX, .pad = 1}, "stride");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 1, .pad = 3}, "less than the kernel");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 1, .pad = -1}, "not negative");
    refuse_forward(&m, (pl_id[]){x, f32(&m, 4, 16, 16, 3), none, none}, (window){.stride = 1, .pad = 1},
                   "smaller than the kernel");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 1, .pad = 1, .algorithm = 3}, "algorithm 3");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 1, .pad = 1, .algorithm = -1}, "algorithm -1");
    refuse_forward(&m, (pl_id[]){x, w, none, none}, (window){.stride = 2, .pad = 1, .algorithm = 2}, "winograd4");
    pl_graph_destroy(m.g);
}

static void refuse_dx(maker *m, pl_id dy, pl_id w, pl_id partial, window at, const char *part)
{
    pl_attr attr[] = {pl_attr_i(0),         pl_attr_i(at.stride), pl_attr_i(at.pad), pl_attr_i(at.algorithm),
                      pl_attr_i(at.height), pl_attr_i(at.width)};
    pl_id out[2] = {PL_NONE, PL_NONE};
    pl_build_node(&m->b, PL_OP_CONV2D_DX, attr, 4, (pl_id[]){dy, w, partial, PL_NONE}, 2, out);
    if (part) {
        refused(m, part);
        begin(m);
    } else if (m->b.status != PL_OK) {
        fail_msg("%s", m->err.text);
    }
}

static void derivatives_fit_their_convolution(void **state)
{
    (void)state;
    maker m = maker_create();
    begin(&m);
    pl_id dy = f32(&m, 2, 5, 4, 4), w = f32(&m, 4, 3, 3, 3), x = f32(&m, 2, 9, 8, 3), acc = f32(&m, 4, 3, 3, 3);
    refuse_dx(&m, dy, w, PL_NONE, (window){.stride = 2, .pad = 1, .height = 9, .width = 8}, NULL);
    refuse_dx(&m, dy, w, x, (window){.stride = 2, .pad = 1, .height = 9, .width = 8}, NULL);
    refuse_dx(&m, dy, w, x, (window){.stride = 2, .pad = 1, .height = 10, .width = 8}, "the shape of the output");
    refuse_dx(&m, dy, w, PL_NONE, (window){.stride = 2, .pad = 1, .height = 11, .width = 8}, "of that height");
    refuse_dx(&m, dy, w, PL_NONE, (window){.stride = 2, .pad = 1, .height = 0, .width = 8}, "no gradient");
    refuse_dx(&m, dy, x, PL_NONE, (window){.stride = 2, .pad = 1, .height = 9, .width = 8}, "square kernel");
    refuse_dx(&m, dy, w, PL_NONE, (window){.stride = 2, .pad = 4, .height = 9, .width = 8}, "less than the kernel");

    pl_attr attr[] = {pl_attr_i(2), pl_attr_i(1), pl_attr_i(0)}, winograd[] = {attr[0], attr[1], pl_attr_i(2)};
    pl_id out = PL_NONE;
    pl_build_node(&m.b, PL_OP_CONV2D_DW, attr, 3, (pl_id[]){dy, x, acc}, 1, &out);
    assert_int_equal(m.b.status, PL_OK);
    assert_true(m.g->value[out].update_of == acc);
    pl_build_node(&m.b, PL_OP_CONV2D_DW, attr, 3, (pl_id[]){x, x, acc}, 1, (pl_id[]){PL_NONE});
    refused(&m, "the output of the convolution");
    begin(&m);
    pl_build_node(&m.b, PL_OP_CONV2D_DW, attr, 3, (pl_id[]){dy, f32(&m, 2, 9, 8, 5), acc}, 1, (pl_id[]){PL_NONE});
    refused(&m, "f32 [out, kernel, kernel, in]");
    begin(&m);
    pl_build_node(&m.b, PL_OP_CONV2D_DW, winograd, 3, (pl_id[]){dy, x, acc}, 1, (pl_id[]){PL_NONE});
    refused(&m, "winograd4");
    pl_graph_destroy(m.g);
}

/* ---- base/convolution.h ---- */

static double taps_counted(int64_t n, int64_t outputs, const pl_convolution_shape *s)
{
    double taps = 0;
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t t = 0; t < s->kernel; t++) {
            int64_t at = o * s->stride - s->pad + t;
            taps += at >= 0 && at < n;
        }
    return taps;
}

static void only_taps_in_the_image_are_counted(void **state)
{
    (void)state;
    for (int64_t kernel = 1; kernel <= 7; kernel++)
        for (int64_t pad = 0; pad < kernel; pad++)
            for (int64_t stride = 1; stride <= 4; stride++)
                for (int64_t n = 1; n <= 12; n++) {
                    pl_convolution_shape s = {1, n, n + 3, 2, 0, 0, 5, kernel, stride, pad};
                    s.out_height = pl_convolution_outputs(n, kernel, stride, pad);
                    s.out_width = pl_convolution_outputs(n + 3, kernel, stride, pad);
                    if (s.out_height < 1) continue;
                    double want = 10 * taps_counted(n, s.out_height, &s) * taps_counted(n + 3, s.out_width, &s);
                    assert_true(pl_convolution_macs(&s) == want);
                }
}

/* Of F(4×4) 36 products for each 16 outputs of a channel and an input where the definition has 144, of F(2×2) 16 for 4
 * where it has 36; a window that juts out counts as a whole. */
static void winograd_counts_its_own_products(void **state)
{
    (void)state;
    for (int64_t height = 1; height < 12; height++) {
        const pl_convolution_shape s = {7, height, 9, 3, height, 9, 5, 3, 1, 1};
        int64_t windows[2] = {0, 0};
        for (int64_t y = 0; y < height; y += 2)
            for (int64_t x = 0; x < 9; x += 2) windows[0]++, windows[1] += y % 4 == 0 && x % 4 == 0;
        assert_true(pl_convolution_products(&s, PL_CONVOLUTION_DIRECT) == pl_convolution_macs(&s));
        assert_true(pl_convolution_products(&s, PL_CONVOLUTION_WINOGRAD2) == (double)(windows[0] * 16 * 3 * 5));
        assert_true(pl_convolution_products(&s, PL_CONVOLUTION_WINOGRAD4) == (double)(windows[1] * 36 * 3 * 5));
    }
    const pl_convolution_shape large = {1, 128, 128, 64, 128, 128, 64, 3, 1, 1};
    const double ratio = pl_convolution_macs(&large) / pl_convolution_products(&large, PL_CONVOLUTION_WINOGRAD4);
    assert_true(ratio > 3.9 && ratio <= 4);
}

static void the_rule_looks_at_the_shape_alone(void **state)
{
    (void)state;
    pl_convolution_shape s = {1, 128, 128, 64, 128, 128, 64, 3, 1, 1}, other = s;
    assert_int_equal(pl_convolution_choose(&s), PL_CONVOLUTION_WINOGRAD4);
    other.batch = 1000;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_WINOGRAD4);
    other = s, other.in = 3;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_DIRECT);
    other = s, other.out = 15;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_DIRECT);
    other = s, other.stride = 2;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_DIRECT);
    other = s, other.kernel = 5;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_DIRECT);
    other = s, other.out_width = 3;
    assert_int_equal(pl_convolution_choose(&other), PL_CONVOLUTION_DIRECT);
    assert_non_null(strstr(pl_convolution_rule(), "winograd4"));

    for (int a = 0; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++)
        assert_int_equal(pl_convolution_choose_dw(&s, (pl_convolution_algorithm)a), a);
    other = s, other.batch = 1000, other.out_height = other.out_width = 16;
    assert_int_equal(pl_convolution_choose_dw(&other, PL_CONVOLUTION_WINOGRAD2), PL_CONVOLUTION_WINOGRAD2);
    other.out_width = 15;
    assert_int_equal(pl_convolution_choose_dw(&other, PL_CONVOLUTION_WINOGRAD4), PL_CONVOLUTION_DIRECT);
    other = s, other.in = 3;
    assert_int_equal(pl_convolution_choose_dw(&other, PL_CONVOLUTION_WINOGRAD4), PL_CONVOLUTION_DIRECT);
}

static void algorithms_have_names(void **state)
{
    (void)state;
    for (int a = 0; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++) {
        pl_convolution_algorithm back = PL_CONVOLUTION_ALGORITHM_COUNT;
        assert_int_equal(
            pl_convolution_algorithm_parse(pl_convolution_algorithm_name((pl_convolution_algorithm)a), &back), 0);
        assert_int_equal(back, a);
    }
    assert_int_equal(pl_convolution_algorithm_parse("auto", &(pl_convolution_algorithm){0}), -1);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_follow_from_the_window),
                                       cmocka_unit_test(what_does_not_fit_is_refused),
                                       cmocka_unit_test(derivatives_fit_their_convolution),
                                       cmocka_unit_test(only_taps_in_the_image_are_counted),
                                       cmocka_unit_test(winograd_counts_its_own_products),
                                       cmocka_unit_test(the_rule_looks_at_the_shape_alone),
                                       cmocka_unit_test(algorithms_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

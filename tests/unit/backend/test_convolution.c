/* Convolutions: how large Winograd's error is, at every level; nodes that are bound run the call that they mean.
 * (Values and bits over random shapes: tests/property/backend/test_convolution.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "ir/op.h"
#include "support/guarded.h"
#include "support/program.h"

/* ---- Winograd's error ---- */

enum { SIZE = 14, CHANNELS = 64, OUT = 16 };
static const pl_convolution_shape shape = {1, SIZE, SIZE, CHANNELS, SIZE, SIZE, OUT, 3, 1, 1};

static double output_at(const float *x, const float *w, int64_t y, int64_t column, int64_t n)
{
    double sum = 0;
    for (int64_t u = 0; u < 3; u++)
        for (int64_t v = 0; v < 3; v++) {
            int64_t row = y + u - 1, at = column + v - 1;
            if (row < 0 || row >= SIZE || at < 0 || at >= SIZE) continue;
            for (int64_t c = 0; c < CHANNELS; c++)
                sum += (double)x[(row * SIZE + at) * CHANNELS + c] * w[((n * 3 + u) * 3 + v) * CHANNELS + c];
        }
    return sum;
}

/* √(Σ error² / Σ y²) */
static double relative_error(const float *x, const float *w, const float *y)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < SIZE * SIZE * OUT; i++) {
        double want = output_at(x, w, i / OUT / SIZE, i / OUT % SIZE, i % OUT);
        error += (y[i] - want) * (y[i] - want), size += want * want;
    }
    return sqrt(error / size);
}

/* docs/convolution.md has these figures. */
static void errors_are_as_documented(void **unused)
{
    static const double most[PL_CONVOLUTION_ALGORITHM_COUNT] = {1e-6, 1e-6, 4e-6};
    (void)unused;
    const float *x = guarded_normal(SIZE * SIZE * CHANNELS, 1), *w = guarded_normal(OUT * 9 * CHANNELS, 2);
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++)
        for (int a = 0; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++) {
            pl_team team = {1, (pl_isa)isa};
            float *y = guarded_f32(SIZE * SIZE * OUT);
            pl_convolution_call call = {
                .shape = shape, .algorithm = (pl_convolution_algorithm)a, .x = x, .weight = w, .y = y};
            pl_convolution_exec(&call, guarded_bytes(pl_convolution_workspace_bytes(&call, team), 0), team);
            double error = relative_error(x, w, y);
            print_message("%s %s: relative error %.2g\n", pl_isa_name((pl_isa)isa),
                          pl_convolution_algorithm_name((pl_convolution_algorithm)a), error);
            assert_true(error <= most[a] && error > 1e-9);
        }
    guarded_check_all();
    guarded_free_all();
}

/* ---- Winograd's error in the gradient of the weights ---- */

/* Windows of several stretches, which have several chunks; oracle: sums in double for the first output channel. */
static const pl_convolution_shape long_images = {2, 50, 210, 64, 50, 210, 4, 3, 1, 1};

static double gradient_at(const pl_convolution_shape *s, const float *dy, const float *x, int64_t tap, int64_t c)
{
    double sum = 0;
    for (int64_t i = 0; i < s->batch * s->height * s->width; i++) {
        int64_t row = i / s->width % s->height + tap / 3 - 1, at = i % s->width + tap % 3 - 1;
        if (row < 0 || row >= s->height || at < 0 || at >= s->width) continue;
        sum += (double)dy[i * s->out] *
               x[(i / s->width / s->height * s->height + row) * s->width * s->in + at * s->in + c];
    }
    return sum;
}

static float *gradient_of(const pl_convolution_shape *s, pl_convolution_algorithm a, const float *dy, const float *x,
                          int64_t images_first, pl_team team)
{
    float *dw = guarded_f32(s->out * 9 * s->in);
    memset(dw, 0, (size_t)(s->out * 9 * s->in) * sizeof *dw);
    for (int64_t from = 0, to = images_first ? images_first : s->batch; from < s->batch; from = to, to = s->batch) {
        pl_convolution_dw_call call = {.shape = *s, .algorithm = a, .dw = dw};
        call.shape.batch = to - from;
        call.dy = dy + from * s->out_height * s->out_width * s->out, call.x = x + from * s->height * s->width * s->in;
        pl_convolution_dw_exec(&call, guarded_bytes(pl_convolution_dw_workspace_bytes(&call, team), 0), team);
    }
    return dw;
}

/* docs/convolution.md has these figures, too. */
static void errors_of_gradients_are_as_documented(void **unused)
{
    static const double most[PL_CONVOLUTION_ALGORITHM_COUNT] = {1e-5, 3e-6, 1e-5};
    const pl_convolution_shape *s = &long_images;
    int64_t pixels = s->batch * s->height * s->width;
    double want[9 * 64], size = 0;
    (void)unused;
    const float *x = guarded_normal(pixels * s->in, 3), *dy = guarded_normal(pixels * s->out, 4);
    for (int64_t i = 0; i < 9 * s->in; i++)
        want[i] = gradient_at(s, dy, x, i / s->in, i % s->in), size += want[i] * want[i];
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++)
        for (int a = 0; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++) {
            const char *name = pl_convolution_algorithm_name((pl_convolution_algorithm)a);
            const float *dw = gradient_of(s, (pl_convolution_algorithm)a, dy, x, 0, (pl_team){1, (pl_isa)isa});
            const float *cut = gradient_of(s, (pl_convolution_algorithm)a, dy, x, 1, (pl_team){3, (pl_isa)isa});
            double error = 0;
            for (int64_t i = 0; i < 9 * s->in; i++) error += (dw[i] - want[i]) * (dw[i] - want[i]);
            error = sqrt(error / size);
            print_message("%s %s: relative error of dW %.2g\n", pl_isa_name((pl_isa)isa), name, error);
            assert_true(error <= most[a] && error > 1e-9);
            assert_memory_equal(cut, dw, (size_t)(s->out * 9 * s->in) * sizeof *dw);
        }
    guarded_check_all();
    guarded_free_all();
}

/* So many channels that their sums are made in several blocks: the direct gradient, and bits for any cut. */
static void gradients_of_many_channels_agree(void **unused)
{
    static const pl_convolution_shape wide = {2, 6, 9, 173, 6, 9, 231, 3, 1, 1};
    const int64_t weights = wide.out * 9 * wide.in;
    (void)unused;
    const float *x = guarded_normal(wide.batch * 6 * 9 * wide.in, 5),
                *dy = guarded_normal(wide.batch * 6 * 9 * wide.out, 6);
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++) {
        pl_team one = {1, (pl_isa)isa}, some = {5, (pl_isa)isa};
        const float *direct = gradient_of(&wide, PL_CONVOLUTION_DIRECT, dy, x, 0, one);
        for (int a = PL_CONVOLUTION_WINOGRAD2; a < PL_CONVOLUTION_ALGORITHM_COUNT; a++) {
            const float *dw = gradient_of(&wide, (pl_convolution_algorithm)a, dy, x, 0, one);
            const float *cut = gradient_of(&wide, (pl_convolution_algorithm)a, dy, x, 1, some);
            double error = 0, size = 0;
            for (int64_t i = 0; i < weights; i++) error += pow((double)dw[i] - direct[i], 2), size += pow(direct[i], 2);
            assert_true(sqrt(error / size) < 1e-5 && error > 0);
            assert_memory_equal(cut, dw, (size_t)weights * sizeof *dw);
        }
    }
    guarded_check_all();
    guarded_free_all();
}

/* ---- nodes ---- */

typedef struct bound {
    pl_graph *g;
    pl_builder b;
    pl_error err;
    uint64_t offset[32], end;
    unsigned char *memory;
} bound;

enum { B = 2, H = 9, W = 7, IN = 3, HO = 5, WO = 4, N = 5 }; /* kernel 3, stride 2, padding 1 */

static pl_id value(bound *t, const char *name, pl_shape s, uint64_t stream)
{
    pl_id id = pl_build_persistent(&t->b, PL_ROLE_STATE, PL_DTYPE_F32, s, "%s", name);
    assert_true(id < 32);
    t->offset[id] = t->end;
    t->end += (pl_value_bytes(t->g, id) + 63) / 64 * 64;
    assert_true(t->end <= 1 << 16);
    memcpy(t->memory + t->offset[id], guarded_normal((int64_t)pl_shape_elems(&s), stream), pl_value_bytes(t->g, id));
    return id;
}

static float *at(const bound *t, pl_id id) { return (float *)(void *)(t->memory + t->offset[id]); }

/* Runs the node that was built last. */
static void run_last(bound *t, pl_team team)
{
    pl_addresses addresses = {.base = {t->memory}, .offset = t->offset};
    uint64_t bytes;
    pl_call call;
    assert_int_equal(t->b.status, PL_OK);
    const pl_node *n = &t->g->node[t->g->node_count - 1];
    assert_int_equal(pl_backend_workspace_bytes(t->g, n, team, &bytes, &t->err), PL_OK);
    assert_int_equal(pl_backend_bind(t->g, n, &addresses, guarded_bytes(bytes, 0), &call, &t->err), PL_OK);
    pl_backend_exec(&call, team);
}

static void same(const bound *t, pl_id id, const float *want)
{
    assert_memory_equal(at(t, id), want, pl_value_bytes(t->g, id));
}

static const pl_convolution_shape strided = {B, H, W, IN, HO, WO, N, 3, 2, 1};

static void check_forward(bound *t, pl_id x, pl_id w, pl_shape y_shape, pl_team team)
{
    pl_id bias = value(t, "bias", pl_shape_of(1, (int64_t)N), 5), residual = value(t, "residual", y_shape, 6);
    pl_id out[3] = {value(t, "y", y_shape, 7), value(t, "act", y_shape, 8),
                    value(t, "moments", pl_shape_of(4, (int64_t)B, (int64_t)HO, 2L, (int64_t)N), 9)};
    pl_attr attr[] = {pl_attr_i(PL_ACT_GELU), pl_attr_i(2), pl_attr_i(1), pl_attr_i(0)};
    pl_build_node(&t->b, PL_OP_CONV2D, attr, 4, (pl_id[]){x, w, bias, residual}, 3, out);
    run_last(t, team);
    float *y = guarded_f32(B * HO * WO * N), *act = guarded_f32(B * HO * WO * N),
          *moments = guarded_f32(B * HO * 2 * N);
    pl_convolution_call call = {.shape = strided,
                                .x = at(t, x),
                                .weight = at(t, w),
                                .bias = at(t, bias),
                                .residual = at(t, residual),
                                .y = y,
                                .act = PL_ACT_GELU,
                                .act_out = act,
                                .moments = moments};
    pl_convolution_exec(&call, guarded_bytes(pl_convolution_workspace_bytes(&call, team), 0), team);
    same(t, out[0], y), same(t, out[1], act), same(t, out[2], moments);
}

static void check_backward(bound *t, pl_id x, pl_id w, pl_id dy, pl_team team)
{
    pl_shape x_shape = t->g->value[x].shape, w_shape = t->g->value[w].shape;
    pl_id partial = value(t, "partial", x_shape, 10), u = value(t, "u", x_shape, 11);
    pl_id out[2] = {value(t, "dx", x_shape, 12), value(t, "again", x_shape, 13)};
    pl_attr attr[] = {pl_attr_i(PL_ACT_TANH), pl_attr_i(2), pl_attr_i(1), pl_attr_i(0), pl_attr_i(H), pl_attr_i(W)};
    pl_build_node(&t->b, PL_OP_CONV2D_DX, attr, 4, (pl_id[]){dy, w, partial, u}, 2, out);
    run_last(t, team);
    float *dx = guarded_f32(B * H * W * IN), *again = guarded_f32(B * H * W * IN);
    pl_convolution_dx_call call = {.shape = strided,
                                   .dy = at(t, dy),
                                   .weight = at(t, w),
                                   .residual = at(t, partial),
                                   .act = PL_ACT_TANH,
                                   .grad_of = at(t, u),
                                   .dx = dx,
                                   .act_again = again};
    pl_convolution_dx_exec(&call, guarded_bytes(pl_convolution_dx_workspace_bytes(&call, team), 0), team);
    same(t, out[0], dx), same(t, out[1], again);

    pl_id acc = value(t, "dw", w_shape, 14), after = PL_NONE;
    float *dw = guarded_copy(at(t, acc), N * 9 * IN);
    pl_build_node(&t->b, PL_OP_CONV2D_DW, attr + 1, 3, (pl_id[]){dy, x, acc}, 1, &after);
    run_last(t, team);
    pl_convolution_dw_call weights = {.shape = strided, .dy = at(t, dy), .x = at(t, x), .dw = dw};
    pl_convolution_dw_exec(&weights, guarded_bytes(pl_convolution_dw_workspace_bytes(&weights, team), 0), team);
    same(t, acc, dw);
}

/* conv2d_dw by the algorithm that its node names. */
static void check_algorithm(bound *t, pl_id x, pl_team team)
{
    pl_id dy = value(t, "dy1", pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)N), 16);
    pl_id acc = value(t, "dw1", pl_shape_of(4, (int64_t)N, 3L, 3L, (int64_t)IN), 17), after = PL_NONE;
    pl_attr attr[] = {pl_attr_i(1), pl_attr_i(1), pl_attr_i(PL_CONVOLUTION_WINOGRAD4)};
    float *dw[] = {guarded_copy(at(t, acc), N * 9 * IN), guarded_copy(at(t, acc), N * 9 * IN)};
    pl_build_node(&t->b, PL_OP_CONV2D_DW, attr, 3, (pl_id[]){dy, x, acc}, 1, &after);
    run_last(t, team);
    for (int i = 0; i < 2; i++) {
        pl_convolution_dw_call call = {.shape = {B, H, W, IN, H, W, N, 3, 1, 1}, .dy = at(t, dy), .x = at(t, x)};
        call.dw = dw[i], call.algorithm = i ? PL_CONVOLUTION_DIRECT : PL_CONVOLUTION_WINOGRAD4;
        pl_convolution_dw_exec(&call, guarded_bytes(pl_convolution_dw_workspace_bytes(&call, team), 0), team);
    }
    same(t, acc, dw[0]);
    assert_memory_not_equal(dw[0], dw[1], N * 9 * IN * sizeof(float));
}

static void nodes_run_their_call(void **unused)
{
    (void)unused;
    bound t = {.g = pl_graph_create(), .memory = guarded_bytes(1 << 16, 0)};
    assert_non_null(t.g);
    t.b = pl_builder_begin(t.g, pl_graph_add_region(t.g, "p", PL_NONE, 1), &t.err);
    pl_team team = {1, pl_isa_of_machine()};
    pl_shape y_shape = pl_shape_of(4, (int64_t)B, (int64_t)HO, (int64_t)WO, (int64_t)N);
    pl_id x = value(&t, "x", pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)IN), 3);
    pl_id w = value(&t, "w", pl_shape_of(4, (int64_t)N, 3L, 3L, (int64_t)IN), 4);
    check_forward(&t, x, w, y_shape, team);
    check_backward(&t, x, w, value(&t, "dy", y_shape, 15), team);
    check_algorithm(&t, x, team);
    pl_graph_destroy(t.g);
    guarded_check_all();
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_as_documented), cmocka_unit_test(errors_of_gradients_are_as_documented),
        cmocka_unit_test(gradients_of_many_channels_agree), cmocka_unit_test(nodes_run_their_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

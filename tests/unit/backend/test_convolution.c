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
    pl_convolution_dw_call weights = {strided, PL_REAL_F32, at(t, dy), at(t, x), dw};
    pl_convolution_dw_exec(&weights, guarded_bytes(pl_convolution_dw_workspace_bytes(&weights, team), 0), team);
    same(t, acc, dw);
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
    pl_graph_destroy(t.g);
    guarded_check_all();
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_as_documented),
                                       cmocka_unit_test(nodes_run_their_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

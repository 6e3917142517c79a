/* What is carried from step to step, codebooks and what stands for what, in the graph of around.h. */
#include "around.h"

#include "base/policy.h"
#include "base/row_loss.h"

enum { PLACES = 3, CODES = 5 };

static pl_id state_of(maker *m, pl_dtype dtype, pl_shape shape, const char *name)
{
    return pl_build_persistent(&m->b, PL_ROLE_STATE, dtype, shape, "%s", name);
}

static pl_id state(maker *m, pl_shape shape, const char *name) { return state_of(m, PL_DTYPE_F32, shape, name); }

static pl_id counts(maker *m) { return state_of(m, PL_DTYPE_I32, pl_shape_of(1, (int64_t)PLACES), "done"); }

/* Sample 10 stands in place 1, and both samples of the batch have one. Of the numbers of steps 0 … 4 some are 0. */
static pl_id make_carried(maker *m, pl_id x)
{
    pl_id held = state(m, pl_shape_of(4, (int64_t)PLACES, (int64_t)H, (int64_t)W, (int64_t)C), "held");
    pl_id fresh = input(m, PL_DTYPE_F32, value_of(m, x)->shape, "fresh");
    pl_id in[4] = {held, fresh, counts(m), m->first_sample};
    pl_id y = plus(m, linear(m, node(m, PL_OP_CARRY_READ, (pl_attr[]){pl_attr_i(0)}, 4, in, 1), C), x);
    node(m, PL_OP_CARRY_WRITE, NULL, 3, (pl_id[]){held, y, m->first_sample}, 1);
    return y;
}

/* Ids at and above 3 become -1, which the loss of labels counts as none. The last micro-batch has a row of padding. */
static pl_id make_carried_ids(maker *m, pl_id x)
{
    pl_id held = state_of(m, PL_DTYPE_I32, pl_shape_of(4, 11L, (int64_t)H, (int64_t)W, (int64_t)1), "held");
    pl_id fresh = input(m, PL_DTYPE_I32, pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)1), "fresh");
    pl_id done = input(m, PL_DTYPE_I32, pl_shape_of(1, 11L), "done");
    pl_id ids =
        node(m, PL_OP_CARRY_READ, (pl_attr[]){pl_attr_i(3)}, 4, (pl_id[]){held, fresh, done, m->first_sample}, 1);
    node(m, PL_OP_CARRY_WRITE, NULL, 3, (pl_id[]){held, ids, m->first_sample}, 1);
    pl_id weight_of = input(m, PL_DTYPE_F32, pl_shape_of(1, 1L), "weight.0");
    pl_id in[4] = {linear(m, x, V), ids, weight_of, m->sum};
    m->sum = node(m, PL_OP_CROSS_ENTROPY, (pl_attr[]){pl_attr_i(PL_CROSS_ENTROPY_SOFTMAX)}, 4, in, 1);
    m->has_losses = true;
    return x;
}

/* A policy: of each sample actions are drawn, tried on what no gradient comes to, and the best are learnt from. Of what
 * is drawn nothing changes where a weight moves by as little as a difference does. */
static pl_id make_policy(maker *m, pl_id x)
{
    enum { CHOICES = 5, TRIED = 6, KEPT = 3 };
    const pl_shape one_each = pl_shape_of(1, (int64_t)(B * TRIED)), rows = pl_shape_of(2, (int64_t)B, (int64_t)TRIED);
    const pl_attr gumbel[] = {pl_attr_i(TRIED), pl_attr_i(PL_PERTURB_GUMBEL), pl_attr_f(1), pl_attr_i(5), pl_attr_i(6)},
                  normal[] = {pl_attr_i(TRIED), pl_attr_i(PL_PERTURB_NORMAL), pl_attr_f(2), pl_attr_i(5), pl_attr_i(7)};
    const int64_t line = W, along = 1;
    pl_id mean = average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1);
    pl_id flat = pl_build_view(&m->b, mean, pl_shape_of(2, (int64_t)B, (int64_t)C), 0, (int64_t[]){C, 1});
    pl_id logits = linear(m, flat, CHOICES),
          drawn = node(m, PL_OP_PERTURB, gumbel, 3, (pl_id[]){logits, m->step, m->first_sample}, 1);
    pl_id action = node(m, PL_OP_TOP_K, (pl_attr[]){pl_attr_i(1)}, 1, &drawn, 1);
    pl_id pages = input(m, PL_DTYPE_U8, pl_shape_of(3, (int64_t)(B * TRIED), (int64_t)H, (int64_t)W), "pages");
    pl_id id = pl_build_view(&m->b, action, one_each, 0, (int64_t[]){1});
    pl_id moved = node(m, PL_OP_SHIFT, (pl_attr[]){pl_attr_i(2)}, 3, (pl_id[]){pages, id, id}, 1);
    pl_id seen = node(m, PL_OP_PATCHES, (pl_attr[]){pl_attr_i(1), pl_attr_i(1), pl_attr_i(0)}, 1, &moved, 1);
    pl_id image = pl_build_view(&m->b, seen, pl_shape_of(4, (int64_t)(B * TRIED), (int64_t)H, (int64_t)W, (int64_t)1),
                                0, (int64_t[]){H * W, line, along, 1});
    pl_id energy = average(m, image, PL_OP_ADAPTIVE_AVG_POOL, 1, 1);
    pl_id reward = pl_build_view(&m->b, energy, rows, 0, (int64_t[]){TRIED, 1});
    pl_id kept = node(m, PL_OP_TOP_K, (pl_attr[]){pl_attr_i(KEPT)}, 1, &reward, 1);
    pl_id done = with(m, PL_OP_GATHER_ROWS, action, kept);
    pl_id said = node(m, PL_OP_REPEAT, (pl_attr[]){pl_attr_i(KEPT)}, 1, &logits, 1);
    pl_id scale = input(m, PL_DTYPE_F32, pl_shape_of(1, 1L), "weight.0");
    m->sum = node(m, PL_OP_CROSS_ENTROPY, (pl_attr[]){pl_attr_i(PL_CROSS_ENTROPY_SOFTMAX)}, 4,
                  (pl_id[]){said, done, scale, m->sum}, 1);
    /* near what no weight moves: differences would see what gradients are not to */
    pl_id held = input(m, PL_DTYPE_F32, pl_shape_of(2, (int64_t)B, 1L), "held");
    pl_id strength = linear(m, flat, 1),
          near = node(m, PL_OP_PERTURB, normal, 3, (pl_id[]){held, m->step, m->first_sample}, 1);
    pl_id tried = with(m, PL_OP_GATHER_ROWS, near, kept),
          again = node(m, PL_OP_REPEAT, (pl_attr[]){pl_attr_i(KEPT)}, 1, &strength, 1);
    pl_id weight_of = input(m, PL_DTYPE_F32, pl_shape_of(1, 1L), "weight.1");
    m->sum = node(m, PL_OP_SQUARED_ERROR, NULL, 4, (pl_id[]){again, tried, weight_of, m->sum}, 1);
    m->has_losses = true;
    return x;
}

static pl_id make_halting_steps(maker *m, pl_id x)
{
    pl_attr attr[4] = {pl_attr_i(4), pl_attr_f(0.5), pl_attr_i(7), pl_attr_i(9)};
    pl_id q = linear(m, average(m, x, PL_OP_ADAPTIVE_AVG_POOL, 1, 1), 1);
    node(m, PL_OP_HALT, attr, 4, (pl_id[]){counts(m), q, m->step, m->first_sample}, 1);
    return x;
}

/* Step 3 lies where it falls, at the end of the fall, or behind it; and in front of it. */
static pl_id make_ramps(maker *m, pl_id x)
{
    static const int64_t turn[4][3] = {{1, 2, 9}, {0, 1, 3}, {0, 1, 2}, {3, 5, 6}};
    char name[16];
    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "ramp.%d", k);
        pl_attr attr[4] = {pl_attr_f(0.3), pl_attr_i(turn[k][0]), pl_attr_i(turn[k][1]), pl_attr_i(turn[k][2])};
        pl_id in[2] = {state(m, pl_shape_of(1, (int64_t)1), name), m->step};
        pl_id now = node(m, PL_OP_RAMP, attr, 2, in, 1);
        x = linear(m, with(m, PL_OP_ADD_POSITIONS, linear(m, x, 1), now), 2);
    }
    return x;
}

static pl_id find_code(maker *m, pl_id z, pl_id book, pl_id *index)
{
    pl_id out[2] = {PL_NONE, PL_NONE};
    pl_build_node(&m->b, PL_OP_NEAREST_CODE, NULL, 2, (pl_id[]){z, book}, 2, out);
    *index = out[0];
    return out[1];
}

static pl_id squared(maker *m, pl_id z, pl_id e)
{
    pl_id weight_of = input(m, PL_DTYPE_F32, pl_shape_of(1, 1L), "weight.0");
    m->sum = node(m, PL_OP_SQUARED_ERROR, NULL, 4, (pl_id[]){z, e, weight_of, m->sum}, 1);
    m->has_losses = true;
    return z;
}

/* The codes are made anew, vectors near them are counted, and draw them; gradients come to the vectors alone. */
static pl_id make_codes(maker *m, pl_id x)
{
    pl_id in[4] = {state(m, pl_shape_of(2, (int64_t)CODES, C + 1L), "sums"),
                   state(m, pl_shape_of(2, (int64_t)CODES, (int64_t)C), "book"),
                   state(m, pl_shape_of(1, (int64_t)CODES), "sizes"),
                   state(m, pl_shape_of(2, (int64_t)CODES, (int64_t)C), "averages")};
    pl_id out[4] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE}, index;
    pl_build_node(&m->b, PL_OP_CODE_UPDATE, (pl_attr[]){pl_attr_f(0.9), pl_attr_f(1e-3)}, 4, in, 4, out);
    pl_id e = find_code(m, x, out[1], &index);
    pl_id counted = input(m, PL_DTYPE_F32, pl_shape_of(2, (int64_t)B, 3L), "counted");
    pl_id some = PL_NONE;
    pl_build_node(&m->b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_RELU)}, 1, &counted, 1, &some);
    for (int64_t k = 0; k < 3; k++) {
        pl_id column = pl_build_view(&m->b, some, pl_shape_of(2, (int64_t)B, 1L), k, (int64_t[]){3, 1});
        out[0] = node(m, PL_OP_CODE_SUM, NULL, 4, (pl_id[]){index, x, out[0], column}, 1);
    }
    node(m, PL_OP_CODE_SUM, NULL, 3, (pl_id[]){index, x, out[0]}, 1);
    return squared(m, x, e);
}

/* Where what stands for x is x, detached, the gradient is that of x. */
static pl_id make_straight(maker *m, pl_id x)
{
    pl_id e = node(m, PL_OP_DETACH, NULL, 1, &x, 1);
    return linear(m, with(m, PL_OP_STRAIGHT_THROUGH, x, e), 3);
}

/* The terms of a page are divided by how many there are. */
static pl_id make_means_of_samples(maker *m, pl_id x)
{
    pl_id target = input(m, PL_DTYPE_I32, pl_shape_of(3, (int64_t)B, (int64_t)H, (int64_t)W), "labels");
    pl_id logits = linear(m, x, V), right = with(m, PL_OP_COUNT_RIGHT, logits, target);
    for (int kind = 0; kind < PL_CROSS_ENTROPY_COUNT; kind++) {
        char name[16];
        snprintf(name, sizeof name, "weight.%d", kind);
        pl_id scale = input(m, PL_DTYPE_F32, pl_shape_of(1, 1L), name);
        pl_id words = pl_build_view(&m->b, right, pl_shape_of(2, (int64_t)B, 1L), 0, (int64_t[]){3, 1});
        pl_id in[6] = {logits, target, scale, m->sum, PL_NONE, words};
        m->sum = node(m, PL_OP_CROSS_ENTROPY, (pl_attr[]){pl_attr_i(kind)}, 6, in, 1);
    }
    m->has_losses = true;
    return x;
}

static void carried(void **unused)
{
    (void)unused;
    CHECK(carried), CHECK(carried_ids), CHECK(halting_steps), CHECK(ramps), CHECK(policy);
}

static void codes(void **unused)
{
    (void)unused;
    CHECK(codes), CHECK(straight);
}

static void means(void **unused)
{
    (void)unused;
    CHECK(means_of_samples);
}

/* Of eight codes those that are never the nearest stay where they are, and the others end in the means of what lies
 * near them: two clouds of points, far apart. */
static void codes_end_in_means(void **unused)
{
    (void)unused;
    enum { V_ = 8, D_ = 2, POINTS = 10 };
    float sums[V_ * (D_ + 1)] = {0}, book[V_ * D_], sizes[V_], averages[V_ * D_], first[V_ * D_], code[POINTS * D_];
    float point[POINTS * D_], row[4 * D_];
    int32_t index[POINTS];
    for (int v = 0; v < V_; v++) sizes[v] = 1, book[v * D_] = (float)v, book[v * D_ + 1] = (float)(v % 2);
    memcpy(averages, book, sizeof book), memcpy(first, book, sizeof book);
    for (int p = 0; p < POINTS; p++) point[p * D_] = p % 2 ? 9.f : -3.f, point[p * D_ + 1] = (float)(p / 2) - 2;
    const pl_team team = {2, PL_ISA_REF};
    const pl_nearest_code_call find = {POINTS, V_, D_, point, book, index, code, PL_REAL_F32};
    const pl_code_sum_call add = {POINTS, 1, V_, D_, index, point, NULL, 0, sums, PL_REAL_F32};
    const pl_code_update_call update = {V_, D_, 0.9, 1e-6, sums, book, sizes, averages};
    pl_code_update_exec(&update, team); /* nothing was counted yet */
    assert_memory_equal(book, first, sizeof book);
    for (int step = 0; step < 400; step++) {
        pl_nearest_code_exec(&find, row, team);
        pl_code_sum_exec(&add, team);
        pl_code_update_exec(&update, team);
    }
    for (int p = 0; p < POINTS; p++) {
        assert_int_equal(index[p], p % 2 ? V_ - 1 : 0);
        assert_true(fabs((double)code[p * D_] - (p % 2 ? 9 : -3)) < 1e-3 && fabs((double)code[p * D_ + 1]) < 1e-3);
    }
    sums[D_] = 1, sums[0] = INFINITY; /* it counts nothing, and harms no code */
    pl_code_update_exec(&update, team);
    for (int i = 0; i < V_ * D_; i++) assert_true(isfinite(book[i]));
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(carried), cmocka_unit_test(codes), cmocka_unit_test(means),
                                       cmocka_unit_test(codes_end_in_means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

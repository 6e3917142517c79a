/* Gradients of layers of signs cannot be told by finite differences: a sign has none. So a scalar tape does by the
 * definition what the graph does (docs/binary.md): two layers, one weight read twice, a residual between them. The
 * interpreter of the differentiated graph agrees with it in double; kernels are held to the same formulas in
 * unit/backend/test_binary.c. */
#include "around.h"
#include "base/binary.h"
#include "support/seed.h"

static uint64_t seed;

/* ---- a tape of scalars ---- */

enum { TAPE_MAX = 1 << 18 };
typedef struct scalar {
    int a, b;          /* what it is made of; −1: nothing */
    double of_a, of_b; /* derivatives */
    double value, grad;
} scalar;
static scalar tape[TAPE_MAX];
static int taped;

static int push(double value, int a, double of_a, int b, double of_b)
{
    assert_true(taped < TAPE_MAX);
    tape[taped] = (scalar){a, b, of_a, of_b, value, 0};
    return taped++;
}

static int leaf(double value) { return push(value, -1, 0, -1, 0); }
static int plus_of(int a, int b) { return push(tape[a].value + tape[b].value, a, 1, b, 1); }
static int times(int a, int b) { return push(tape[a].value * tape[b].value, a, tape[b].value, b, tape[a].value); }
static double sign_of(double x) { return x < 0 ? -1 : 1; }
static int size_of(int a)
{
    const double x = tape[a].value;
    return push(fabs(x), a, x == 0 ? 0 : sign_of(x), -1, 0);
}
static int scaled(int a, double by) { return push(tape[a].value * by, a, by, -1, 0); }
/* Straight through. */
static int sign(int a) { return push(sign_of(tape[a].value), a, fabs(tape[a].value) <= 1, -1, 0); }

static void back(int from)
{
    for (int i = 0; i < taped; i++) tape[i].grad = 0;
    tape[from].grad = 1;
    for (int i = from; i >= 0; i--) {
        if (tape[i].a >= 0) tape[tape[i].a].grad += tape[i].of_a * tape[i].grad;
        if (tape[i].b >= 0) tape[tape[i].b].grad += tape[i].of_b * tape[i].grad;
    }
}

/* ---- the layer ---- */

/* W~ of a weight: leaves, whose gradients become the weight's by the paper's rule. */
typedef struct shadow {
    int64_t n, k;
    const double *w;
    int first;
} shadow;

static double mean_size(const double *x, int64_t k)
{
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += fabs(x[i]);
    return sum / (double)k;
}

static shadow shadow_of(const double *w, int64_t n, int64_t k)
{
    const shadow s = {n, k, w, taped};
    /* alpha is f32 where it is packed */
    for (int64_t e = 0; e < n * k; e++) leaf((double)(float)mean_size(w + e / k * k, k) * sign_of(w[e]));
    return s;
}

static double weight_gradient(const shadow *s, int64_t e)
{
    const double alpha = mean_size(s->w + e / s->k * s->k, s->k);
    return tape[s->first + e].grad * (1 / (double)s->k + alpha * (fabs(s->w[e]) <= 1));
}

static void layer(const shadow *s, const int *x, const int *bias, int *y)
{
    int beta = leaf(0);
    for (int64_t p = 0; p < s->k; p++) beta = plus_of(beta, size_of(x[p]));
    beta = scaled(beta, 1 / (double)s->k);
    for (int64_t j = 0; j < s->n; j++) {
        int sum = leaf(0);
        for (int64_t p = 0; p < s->k; p++) sum = plus_of(sum, times(sign(x[p]), s->first + (int)(j * s->k + p)));
        y[j] = times(beta, sum);
        if (bias) y[j] = plus_of(y[j], bias[j]);
    }
}

/* ---- the same as a graph: y = layer2(x + layer1(layer1(x))) with layer1 square ---- */

enum { ROWS = 5, WIDTH = 37, OUT = 7 };

static pl_id packed(maker *m, pl_id w)
{
    m->b.graph->value[w].latent = true;
    return node(m, PL_OP_PACK_SIGNS, NULL, 1, &w, 1);
}

static pl_id binary(maker *m, pl_id x, pl_id w, pl_id signs, pl_id bias, pl_id residual)
{
    return node(m, PL_OP_LINEAR_BINARY, NULL, 5, (pl_id[]){x, signs, bias, residual, w}, 1);
}

typedef struct built {
    pl_graph *g;
    pl_id x, square, bias, last, targets;
} built;

static built build(bool as_numbers, unsigned frozen)
{
    maker m = {.frozen = frozen};
    built r = {.g = pl_graph_create()};
    assert_non_null(r.g);
    m.b = pl_builder_begin(r.g, pl_graph_add_region(r.g, "train", PL_NONE, 1), &m.err);
    const pl_shape one = pl_shape_of(1, (int64_t)1);
    r.x = weight(&m, pl_shape_of(2, (int64_t)ROWS, (int64_t)WIDTH)); /* that what reaches x is told */
    r.square = weight(&m, pl_shape_of(2, (int64_t)WIDTH, (int64_t)WIDTH));
    r.bias = weight(&m, pl_shape_of(1, (int64_t)WIDTH));
    r.last = weight(&m, pl_shape_of(2, (int64_t)OUT, (int64_t)WIDTH));
    r.targets = input(&m, PL_DTYPE_F32, pl_shape_of(3, 1L, (int64_t)ROWS, (int64_t)OUT), "targets");
    pl_id scale = input(&m, PL_DTYPE_F32, one, "scale");
    pl_id loss = pl_build_temporary(&m.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, one, "loss"), out = loss;
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    pl_id signs = packed(&m, r.square);
    pl_id zeros = pl_build_temporary(&m.b, PL_ROLE_TEMPORARY, PL_DTYPE_F32,
                                     pl_shape_of(3, 1L, (int64_t)ROWS, (int64_t)WIDTH), "zeros");
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &zeros);
    pl_id x = with(&m, PL_OP_ADD_POSITIONS, zeros, r.x);
    pl_id h = binary(&m, binary(&m, x, r.square, signs, r.bias, PL_NONE), r.square, signs, PL_NONE, x);
    if (as_numbers) h = node(&m, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 2, (pl_id[]){h, r.square}, 1);
    pl_id y = binary(&m, h, r.last, packed(&m, r.last), PL_NONE, PL_NONE);
    node(&m, PL_OP_SQUARED_ERROR, NULL, 4, (pl_id[]){y, r.targets, scale, loss}, 1);
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    return r;
}

static void fill(reference *r, pl_id id, double size)
{
    double *x = reference_address(r, id);
    for (uint64_t e = 0; e < reference_elems(r, id); e++)
        x[e] = e % 11 == 3 ? 0 : (double)(float)(size * (2 * tiny_uniform(seed, id, e) - 1));
}

static void compare(const char *what, const double *got, const double *want, int64_t count)
{
    double largest = 0;
    for (int64_t e = 0; e < count; e++) largest = fmax(largest, fabs(want[e]));
    for (int64_t e = 0; e < count; e++)
        if (!(fabs(got[e] - want[e]) <= 1e-9 * largest))
            fail_msg("seed %llu: %s[%lld] is %.15g, the tape has %.15g", (unsigned long long)seed, what, (long long)e,
                     got[e], want[e]);
}

/* What the tape makes of the same numbers: its loss, and the gradients. */
static double on_tape(const built *b, reference *r, double *dx, double *dsquare, double *dbias, double *dlast)
{
    taped = 0;
    const shadow square = shadow_of(reference_address(r, b->square), WIDTH, WIDTH),
                 last = shadow_of(reference_address(r, b->last), OUT, WIDTH);
    int bias[WIDTH], loss = leaf(0);
    static int x[ROWS][WIDTH];
    for (int j = 0; j < WIDTH; j++) bias[j] = leaf(reference_address(r, b->bias)[j]);
    for (int i = 0; i < ROWS; i++) {
        int h[WIDTH], again[WIDTH], y[OUT];
        for (int p = 0; p < WIDTH; p++) x[i][p] = leaf(reference_address(r, b->x)[i * WIDTH + p]);
        layer(&square, x[i], bias, h);
        layer(&square, h, NULL, again);
        for (int p = 0; p < WIDTH; p++) again[p] = plus_of(again[p], x[i][p]);
        layer(&last, again, NULL, y);
        for (int j = 0; j < OUT; j++) {
            const int apart = plus_of(y[j], leaf(-reference_address(r, b->targets)[i * OUT + j]));
            loss = plus_of(loss, scaled(times(apart, apart), 0.25));
        }
    }
    back(loss);
    for (int i = 0; i < ROWS * WIDTH; i++) dx[i] = tape[x[i / WIDTH][i % WIDTH]].grad;
    for (int e = 0; e < WIDTH * WIDTH; e++) dsquare[e] = weight_gradient(&square, e);
    for (int j = 0; j < WIDTH; j++) dbias[j] = tape[bias[j]].grad;
    for (int e = 0; e < OUT * WIDTH; e++) dlast[e] = weight_gradient(&last, e);
    return tape[loss].value;
}

static void gradients_follow_the_definition(void **unused)
{
    (void)unused;
    pl_error err = {0};
    static double dx[ROWS * WIDTH], dsquare[WIDTH * WIDTH], dbias[WIDTH], dlast[OUT * WIDTH];
    built b = build(false, 0);
    if (pl_grad_differentiate(b.g, 0, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_graph_check(b.g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    reference *r = reference_create(b.g);
    fill(r, b.x, 1.5), fill(r, b.square, 1.25), fill(r, b.bias, 0.3), fill(r, b.last, 1), fill(r, b.targets, 1);
    *reference_find(r, "scale") = 0.25;
    const double loss = on_tape(&b, r, dx, dsquare, dbias, dlast);
    reference_run_named(r, "train", NULL, NULL);
    compare("loss", reference_find(r, "loss"), &loss, 1);
    compare("dx", reference_find(r, "grad.w0"), dx, ROWS * WIDTH);
    compare("dw of the weight that is read twice", reference_find(r, "grad.w1"), dsquare, WIDTH * WIDTH);
    compare("db", reference_find(r, "grad.w2"), dbias, WIDTH);
    compare("dw", reference_find(r, "grad.w3"), dlast, OUT * WIDTH);
    reference_destroy(r);
    pl_graph_destroy(b.g);
}

/* A weight that a product reads as numbers, too, has no gradient that is both. */
static void read_as_numbers_is_refused(void **unused)
{
    (void)unused;
    pl_error err = {0};
    built b = build(true, 0);
    assert_int_equal(pl_grad_differentiate(b.g, 0, &err), PL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "w1 is read as numbers and as signs"));
    pl_graph_destroy(b.g);
}

/* A frozen one has none, and nothing finishes it. */
static void frozen_weights(void **unused)
{
    (void)unused;
    pl_error err = {0};
    built b = build(false, 1u << 1);
    assert_int_equal(pl_grad_differentiate(b.g, 0, &err), PL_OK);
    int finished = 0;
    for (size_t i = 0; i < b.g->node_count; i++) finished += b.g->node[i].op == PL_OP_LATENT_GRADIENT;
    assert_int_equal(finished, 1);
    pl_graph_destroy(b.g);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_follow_the_definition),
                                       cmocka_unit_test(read_as_numbers_is_refused), cmocka_unit_test(frozen_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

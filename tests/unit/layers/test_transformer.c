/* Blocks of layers_transformer.c of random kinds, also those that no arch has, against the formulas of their header:
 * plain loops over doubles that find the weights by their names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "layers/layers.h"
#include "reference/tiny.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 150, ROWS_MAX = 12, INNER_MAX = 12, COLUMNS_MAX = 72 };
static uint64_t seed, this_case;

typedef double rows_of[ROWS_MAX][COLUMNS_MAX]; /* of joined matrices, too */

/* ---- a block and its graph ---- */

static int64_t roll(uint64_t what, int64_t count)
{
    return (int64_t)(tiny_uniform(seed, this_case, what) * (double)count);
}

static const char *const linears[] = {"q.weight",    "k.weight",    "v.weight",  "out.weight", "up.weight",
                                      "down.weight", "gate.weight", "q.bias",    "k.bias",     "v.bias",
                                      "out.bias",    "up.bias",     "down.bias", "gate.bias"};
enum { Q, K, V, OUT, UP, DOWN, GATE, MATRICES };

static pl_projection projection(int which, bool has_bias)
{
    const pl_init init = pl_init_within(0.7), none = {PL_INIT_ABSENT};
    return (pl_projection){linears[which], linears[MATRICES + which], init, has_bias ? init : none};
}

static pl_transformer random_block(void)
{
    static const pl_activation activations[] = {PL_ACT_SILU, PL_ACT_RELU, PL_ACT_GELU_TANH};
    const bool has_bias = roll(0, 2), is_apart = roll(1, 2), is_rms = roll(2, 2);
    const int64_t heads = (int64_t)1 << roll(4, 3);
    pl_transformer t = {.width = 4 * heads,
                        .heads = heads,
                        .head_width = roll(14, 2) ? 2 + 2 * roll(15, 3) : 0,
                        .key_heads = roll(16, 2) ? heads >> roll(17, 3) : 0,
                        .scale = roll(18, 2) ? 0.1 + 0.1 * (double)roll(19, 5) : 0,
                        .cap = roll(20, 3) ? 0 : 0.5 + (double)roll(21, 3),
                        .inner = 3 + roll(5, INNER_MAX - 3),
                        .norm = {.is_rms = is_rms, .eps = 1e-5},
                        .norm1 = "first",
                        .norm2 = "second",
                        .is_post_norm = roll(6, 2),
                        .query = projection(Q, has_bias),
                        .is_causal = roll(7, 2),
                        .theta = roll(8, 2) ? 100 : 0,
                        .sequences = roll(9, 2) ? 2 : 0,
                        .up = projection(UP, has_bias),
                        .down = projection(DOWN, has_bias),
                        .is_gated = roll(3, 2),
                        .activation = activations[roll(10, 3)]};
    if (is_apart) t.key = projection(K, has_bias), t.value = projection(V, has_bias);
    if (is_apart && roll(22, 2)) t.query_norm = "q_norm", t.key_norm = "k_norm";
    if (roll(11, 4) || t.head_width) t.output = projection(OUT, roll(23, 2));
    if (is_rms && roll(12, 2)) t.norm1 = t.norm2 = NULL;
    if (!t.is_post_norm && roll(24, 2)) t.attention_norm = "added_first", t.feed_forward_norm = "added_second";
    if (t.is_gated && roll(25, 2)) t.gate = projection(GATE, roll(26, 2));
    return t;
}

static int64_t head_width_of(const pl_transformer *t) { return t->head_width ? t->head_width : t->width / t->heads; }
static int64_t key_heads_of(const pl_transformer *t) { return t->key_heads ? t->key_heads : t->heads; }

/* ---- positions and windows, which differ between blocks ---- */

typedef struct surroundings {
    pl_rope_scaling rope;
    bool has_rope;
    int64_t window;
} surroundings;

static double divisor_of(int64_t pair) { return 1 + 0.3 * (double)pair; }

static surroundings random_surroundings(const pl_transformer *t)
{
    surroundings s = {.rope = {.kind = (pl_rope_kind)roll(30, 4),
                               .theta = 50,
                               .factor = 4,
                               .original_context = 16,
                               .low_factor = 1,
                               .high_factor = 4,
                               .beta_slow = 1,
                               .beta_fast = 32,
                               .divisors = roll(34, 3) ? 0 : head_width_of(t) / 2}};
    s.has_rope = t->theta == 0 && roll(31, 3);
    s.window = t->is_causal && roll(32, 2) ? 1 + roll(33, 6) : 0;
    return s;
}

/* A program of x [B,positions,width] through block 3; returns y. */
static pl_id build_program(pl_net *n, const pl_transformer *t, const surroundings *s, int64_t positions,
                           const char *name)
{
    pl_error *err = n->err;
    pl_graph *g = n->b.graph;
    const pl_shape shape =
        t->cached ? pl_shape_of(3, (int64_t)1, positions, t->width) : pl_shape_of(3, PL_B(1), positions, t->width);
    const pl_id x = pl_build_persistent(&n->b, PL_ROLE_INPUT, PL_DTYPE_F32, shape, "x.%s", name);
    const pl_id position = t->cached ? n->input[PL_INPUT_POSITION] : PL_NONE;
    pl_rotation rotation;
    n->b = pl_builder_begin(g, pl_graph_add_region(g, name, PL_NONE, 1), err);
    if (s->has_rope) rotation = pl_net_rotation(n, &s->rope, position, positions, head_width_of(t), "divisors");
    const pl_block_attention attention = {s->window, s->has_rope ? &rotation : NULL};
    return pl_net_stack(n, &(pl_stack){"block", "blocks", true, 3, 1, &attention}, t, x);
}

/* "run", and where it shares its cache also "next", of one row. */
static pl_graph *build(const pl_transformer *t, const surroundings *s, int64_t positions, pl_id y[2])
{
    pl_error err = {0};
    pl_net n;
    pl_graph *g = pl_graph_create();
    pl_net_init(&n, g, pl_graph_add_region(g, "init", PL_NONE, 1), &err);
    n.seed = seed + this_case;
    n.input[PL_INPUT_POSITION] = pl_build_persistent(&n.b, PL_ROLE_INPUT, pl_input_dtype(PL_INPUT_POSITION),
                                                     pl_shape_of(1, (int64_t)1), "position");
    y[0] = build_program(&n, t, s, positions, "run");
    if (t->shares_cache) y[1] = build_program(&n, t, s, 1, "next");
    if (n.b.status != PL_OK || pl_net_finish(&n) != PL_OK) fail_msg("%s", err.text);
    pl_net_deinit(&n);
    for (size_t i = 0; i < g->region_count; i++)
        if (pl_rewrite_bind_batch(g, (pl_id)i, 1, NULL, 1, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

/* ---- the formulas ---- */

static double *find(reference *r, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "blocks.3.%s", name);
    double *found = reference_find(r, whole);
    if (!found) fail_msg("no %s", whole);
    return found;
}

static void multiply(reference *r, const pl_projection *p, rows_of x, int64_t rows, int64_t in, int64_t out, rows_of y)
{
    const double *w = find(r, p->weight), *b = p->bias_init.kind == PL_INIT_ABSENT ? NULL : find(r, p->bias);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t o = 0; o < out; o++) {
            y[t][o] = b ? b[o] : 0;
            for (int64_t i = 0; i < in; i++) y[t][o] += w[o * in + i] * x[t][i];
        }
}

static void normalise_one(reference *r, const pl_transformer *t, const char *name, double *x, int64_t width)
{
    char gain[64], bias[64];
    double mean = 0, square = 0;
    snprintf(gain, sizeof gain, "%s.weight", name ? name : "");
    snprintf(bias, sizeof bias, "%s.bias", name ? name : "");
    for (int64_t i = 0; i < width && !t->norm.is_rms; i++) mean += x[i] / (double)width;
    for (int64_t i = 0; i < width; i++) square += (x[i] - mean) * (x[i] - mean) / (double)width;
    for (int64_t i = 0; i < width; i++) {
        x[i] = (x[i] - mean) / sqrt(square + t->norm.eps);
        if (name) x[i] *= find(r, gain)[i];
        if (name && !t->norm.is_rms) x[i] += find(r, bias)[i];
    }
}

static void normalise(reference *r, const pl_transformer *t, const char *name, rows_of x, int64_t rows)
{
    for (int64_t k = 0; k < rows; k++) normalise_one(r, t, name, x[k], t->width);
}

static void normalise_heads(reference *r, const pl_transformer *t, const char *name, rows_of x, int64_t rows,
                            int64_t heads)
{
    const int64_t width = head_width_of(t);
    for (int64_t k = 0; k < rows && name; k++)
        for (int64_t h = 0; h < heads; h++) normalise_one(r, t, name, &x[k][h * width], width);
}

static double pair_of_turns(const pl_rope_scaling *r, double head, double turns)
{
    return head * log(r->original_context / (2 * acos(-1) * turns)) / (2 * log(r->theta));
}

/* The share of a pair's frequency that yarn divides. */
static double share_of_yarn(const pl_rope_scaling *r, double head, double pair)
{
    const double low = fmax(floor(pair_of_turns(r, head, r->beta_fast)), 0);
    double high = fmin(ceil(pair_of_turns(r, head, r->beta_slow)), head - 1);
    if (low == high) high += 0.001;
    return fmin(fmax((pair - low) / (high - low), 0), 1);
}

static double scaled(const pl_rope_scaling *r, double f, double head, double pair)
{
    const double length = 2 * acos(-1) / f, short_end = r->original_context / r->high_factor;
    double share = 1; /* of what is divided */
    if (r->kind == PL_ROPE_DEFAULT) share = 0;
    if (r->kind == PL_ROPE_YARN) share = share_of_yarn(r, head, pair);
    if (r->kind == PL_ROPE_LLAMA3 && length < short_end) share = 0;
    if (r->kind == PL_ROPE_LLAMA3 && length >= short_end && length <= r->original_context / r->low_factor)
        share = 1 - (r->original_context / length - r->low_factor) / (r->high_factor - r->low_factor);
    return (1 - share) * f + share * f / r->factor;
}

static double frequency(const pl_transformer *t, const surroundings *s, int64_t head, int64_t pair)
{
    const double f = pow(s->has_rope ? s->rope.theta : t->theta, -2.0 * (double)pair / (double)head);
    if (!s->has_rope) return f;
    return scaled(&s->rope, f, (double)head, (double)pair) / (s->rope.divisors ? divisor_of(pair) : 1);
}

/* The halves of a head are the real and imaginary parts of numbers, which turn by the place's angle. */
static void turn(const pl_transformer *t, const surroundings *s, rows_of x, int64_t rows, int64_t heads)
{
    const int64_t head = head_width_of(t), half = head / 2;
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < heads * head; i++) {
            if (i % head >= half) continue;
            const int64_t place = t->sequences ? k % (rows / t->sequences) : k;
            const double angle = (double)place * frequency(t, s, head, i % head);
            const double m = s->has_rope && s->rope.kind == PL_ROPE_YARN ? 0.1 * log(s->rope.factor) + 1 : 1;
            const double re = m * x[k][i], im = m * x[k][i + half];
            x[k][i] = re * cos(angle) - im * sin(angle), x[k][i + half] = re * sin(angle) + im * cos(angle);
        }
}

static double score(const pl_transformer *t, const double *q, const double *k)
{
    const int64_t width = head_width_of(t);
    double sum = 0;
    for (int64_t i = 0; i < width; i++) sum += q[i] * k[i];
    sum *= t->scale > 0 ? t->scale : 1 / sqrt((double)width);
    return exp(t->cap > 0 ? t->cap * tanh(sum / t->cap) : sum);
}

static bool sees(const pl_transformer *t, const surroundings *s, int64_t a, int64_t b)
{
    return !t->is_causal || (b <= a && (!s->window || a - b < s->window));
}

static void attend(const pl_transformer *t, const surroundings *s, rows_of q, rows_of k, rows_of v, int64_t rows,
                   rows_of y)
{
    const int64_t length = t->sequences ? rows / t->sequences : rows, width = head_width_of(t);
    memset(y, 0, sizeof(rows_of));
    for (int64_t a = 0; a < rows; a++)
        for (int64_t head = 0; head < t->heads; head++) {
            const int64_t own = head * width, shared = head / (t->heads / key_heads_of(t)) * width;
            double total = 0;
            for (int64_t b = 0; b < rows; b++) {
                if (a / length != b / length || !sees(t, s, a, b)) continue;
                const double e = score(t, &q[a][own], &k[b][shared]);
                total += e;
                for (int64_t i = 0; i < width; i++) y[a][own + i] += e * v[b][shared + i];
            }
            for (int64_t i = 0; i < width; i++) y[a][own + i] /= total;
        }
}

static void attention(reference *r, const pl_transformer *t, const surroundings *s, rows_of x, int64_t rows, rows_of y)
{
    static rows_of q, k, v, heads;
    const int64_t d = t->width, head = head_width_of(t), wide = t->heads * head, keys = key_heads_of(t) * head;
    multiply(r, &t->query, x, rows, d, t->key.weight ? wide : wide + 2 * keys, q);
    if (t->key.weight) multiply(r, &t->key, x, rows, d, keys, k), multiply(r, &t->value, x, rows, d, keys, v);
    for (int64_t a = 0; a < rows && !t->key.weight; a++) {
        memcpy(k[a], &q[a][wide], (size_t)keys * sizeof(double));
        memcpy(v[a], &q[a][wide + keys], (size_t)keys * sizeof(double));
    }
    normalise_heads(r, t, t->query_norm, q, rows, t->heads);
    normalise_heads(r, t, t->key_norm, k, rows, key_heads_of(t));
    if (t->theta > 0 || s->has_rope) turn(t, s, q, rows, t->heads), turn(t, s, k, rows, key_heads_of(t));
    attend(t, s, q, k, v, rows, heads);
    if (t->output.weight)
        multiply(r, &t->output, heads, rows, wide, d, y);
    else
        memcpy(y, heads, sizeof(rows_of));
}

static double activate(const pl_transformer *t, double x)
{
    if (t->activation == PL_ACT_SILU) return x / (1 + exp(-x));
    if (t->activation == PL_ACT_RELU) return x > 0 ? x : 0;
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static void feed_forward(reference *r, const pl_transformer *t, const surroundings *s, rows_of x, int64_t rows,
                         rows_of y)
{
    static rows_of h, up;
    const bool is_joined = t->is_gated && !t->gate.weight;
    (void)s;
    multiply(r, t->gate.weight ? &t->gate : &t->up, x, rows, t->width, is_joined ? 2 * t->inner : t->inner, h);
    if (t->gate.weight) multiply(r, &t->up, x, rows, t->width, t->inner, up);
    for (int64_t a = 0; a < rows; a++)
        for (int64_t i = 0; i < t->inner; i++)
            h[a][i] = activate(t, h[a][i]) * (is_joined ? h[a][t->inner + i] : t->gate.weight ? up[a][i] : 1);
    multiply(r, &t->down, h, rows, t->inner, t->width, y);
}

typedef void layer_of(reference *, const pl_transformer *, const surroundings *, rows_of, int64_t, rows_of);

static void sublayer(reference *r, const pl_transformer *t, const surroundings *s, layer_of *layer, const char *norm,
                     const char *added, rows_of x, int64_t rows)
{
    static rows_of in, out;
    memcpy(in, x, sizeof(rows_of));
    if (!t->is_post_norm) normalise(r, t, norm, in, rows);
    layer(r, t, s, in, rows, out);
    if (added) normalise(r, t, added, out, rows);
    for (int64_t a = 0; a < rows; a++)
        for (int64_t i = 0; i < t->width; i++) x[a][i] += out[a][i];
    if (t->is_post_norm) normalise(r, t, norm, x, rows);
}

static void block_of(reference *r, const pl_transformer *t, const surroundings *s, rows_of x, int64_t rows)
{
    sublayer(r, t, s, attention, t->norm1, t->attention_norm, x, rows);
    sublayer(r, t, s, feed_forward, t->norm2, t->feed_forward_norm, x, rows);
}

/* ---- both ---- */

/* Gains and what comes in; first values alone would leave every gain, and every divisor, at 1. */
static void fill(double *x, uint64_t count, uint64_t what)
{
    for (uint64_t i = 0; i < count; i++) x[i] = tiny_uniform(seed + what, this_case, 100 + i) + 0.25 * (double)(i % 3);
}

static void fill_norm(reference *r, const pl_transformer *t, const char *name, int64_t width, uint64_t what)
{
    char whole[64];
    if (!name) return;
    snprintf(whole, sizeof whole, "%s.weight", name);
    fill(find(r, whole), (uint64_t)width, what);
    snprintf(whole, sizeof whole, "%s.bias", name);
    if (!t->norm.is_rms) fill(find(r, whole), (uint64_t)width, what + 50);
}

static void fill_weights(reference *r, const pl_transformer *t, const surroundings *s)
{
    for (int64_t pair = 0; pair < s->rope.divisors && s->has_rope; pair++)
        reference_find(r, "divisors")[pair] = divisor_of(pair);
    fill_norm(r, t, t->norm1, t->width, 2), fill_norm(r, t, t->norm2, t->width, 3);
    fill_norm(r, t, t->attention_norm, t->width, 4), fill_norm(r, t, t->feed_forward_norm, t->width, 5);
    fill_norm(r, t, t->query_norm, head_width_of(t), 6), fill_norm(r, t, t->key_norm, head_width_of(t), 7);
}

static void expect(const pl_transformer *t, const double *got, const double *wanted, int64_t row)
{
    for (int64_t i = 0; i < t->width; i++)
        if (!(fabs(got[i] - wanted[i]) <= 1e-6 * (1 + fabs(wanted[i]))))
            fail_msg("case %d: row %d, column %d is %.9g, not %.9g", (int)this_case, (int)row, (int)i, got[i],
                     wanted[i]);
}

static void check_block(void)
{
    static rows_of x;
    const pl_transformer t = random_block();
    surroundings s = random_surroundings(&t);
    const int64_t rows = 2 * (1 + roll(13, ROWS_MAX / 2));
    pl_id y[2] = {PL_NONE, PL_NONE};
    if (t.sequences) s.has_rope = false;
    pl_graph *g = build(&t, &s, rows, y);
    reference *r = reference_create(g);
    reference_run_named(r, "init", NULL, NULL);
    fill(reference_find(r, "x.run"), (uint64_t)(rows * t.width), 1);
    fill_weights(r, &t, &s);
    for (int64_t a = 0; a < rows; a++)
        memcpy(x[a], reference_find(r, "x.run") + a * t.width, (size_t)t.width * sizeof(double));
    reference_run_named(r, "run", NULL, NULL);
    block_of(r, &t, &s, x, rows);
    for (int64_t a = 0; a < rows; a++) expect(&t, reference_address(r, y[0]) + a * t.width, x[a], a);
    reference_destroy(r);
    pl_graph_destroy(g);
}

static void blocks_are_their_formulas(void **state)
{
    (void)state;
    for (this_case = 0; this_case < CASES; this_case++) check_block();
}

/* So many tokens at a time through a cache, or one at a time by another program that shares it: the rows of the whole
 * sequence, each of which sees those before it. At its end may be some that the cache has no room for, which change
 * nothing. */
static void check_cache(void)
{
    static rows_of x, whole;
    pl_transformer t = random_block();
    const int64_t rows = 1 + roll(13, ROWS_MAX);
    pl_id y[2] = {PL_NONE, PL_NONE};
    t.is_causal = true, t.theta = 0, t.sequences = 0, t.cached = rows;
    t.cache_type = (pl_dtype)roll(40, 3), t.shares_cache = roll(42, 2);
    const surroundings s = random_surroundings(&t);
    const int64_t together = 1 + roll(41, rows < 5 ? rows : 5);
    t.cached_rows = roll(43, 2) * together;
    pl_graph *g = build(&t, &s, together, y);
    reference *r = reference_create(g);
    reference_run_named(r, "init", NULL, NULL);
    fill_weights(r, &t, &s);
    for (int64_t a = 0; a < ROWS_MAX; a++) fill(x[a], (uint64_t)t.width, (uint64_t)(8 + a));
    memcpy(whole, x, sizeof whole);
    block_of(r, &t, &s, whole, rows);
    for (int64_t first = 0, count; first < rows; first += count) {
        const bool is_next = t.shares_cache && roll((uint64_t)(50 + first), 2);
        count = is_next ? 1 : together;
        double *to = reference_find(r, is_next ? "x.next" : "x.run");
        for (int64_t a = first; a < first + count && a < ROWS_MAX; a++)
            memcpy(to + (a - first) * t.width, x[a], (size_t)t.width * sizeof(double));
        *reference_find(r, "position") = (double)first;
        reference_run_named(r, is_next ? "next" : "run", NULL, NULL);
        for (int64_t a = first; a < first + count && a < rows; a++)
            expect(&t, reference_address(r, y[is_next]) + (a - first) * t.width, whole[a], a);
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

static void caches_are_the_whole_sequence(void **state)
{
    (void)state;
    for (this_case = 0; this_case < CASES; this_case++) check_cache();
}

/* ---- what is refused ---- */

static pl_net begin(pl_graph **g, pl_error *err)
{
    pl_net n;
    *g = pl_graph_create();
    pl_net_init(&n, *g, pl_graph_add_region(*g, "init", PL_NONE, 1), err);
    return n;
}

static void expect_refused(pl_net *n, pl_graph *g, const pl_error *err, pl_status status, const char *words)
{
    if (n->b.status != status || !strstr(err->text, words)) fail_msg("status %d: %s", (int)n->b.status, err->text);
    pl_net_deinit(n);
    pl_graph_destroy(g);
}

static void what_a_block_cannot_be_is_refused(void **state)
{
    static const pl_rotation rotation = {PL_NONE, PL_NONE};
    static const pl_block_attention turned = {0, &rotation};
    static const struct {
        pl_transformer t;
        const pl_block_attention *attention;
        const char *words;
    } cases[] = {
        {{.theta = 1e4, .cached = 8}, NULL, "rotary positions have no cache"},
        {{.theta = 1e4}, &turned, "by theta or by a rotation"},
        {{.is_post_norm = true, .attention_norm = "a"}, NULL, "or its sum has"},
        {{.query_norm = "q"}, NULL, "where each projection has its matrix"},
        {{.gate = {.weight = "g"}}, NULL, "no gate"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err = {0};
        pl_graph *g;
        pl_net n = begin(&g, &err);
        pl_transformer t = cases[i].t;
        t.width = 4, t.heads = 1, t.inner = 4;
        const pl_id x = pl_build_persistent(&n.b, PL_ROLE_INPUT, PL_DTYPE_F32,
                                            pl_shape_of(3, (int64_t)1, (int64_t)1, (int64_t)4), "x");
        pl_net_stack(&n, &(pl_stack){"block", "blocks", true, 0, 1, cases[i].attention}, &t, x);
        expect_refused(&n, g, &err, PL_E_UNSUPPORTED, cases[i].words);
    }
}

static void names_stand_for_one_value(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g;
    char name[300];
    pl_net n = begin(&g, &err);
    const pl_init init = pl_init_normal(1);
    pl_net_weight(&n, init, PL_DTYPE_F32, pl_shape_of(2, (int64_t)3, (int64_t)4), "w");
    assert_int_equal(pl_net_weight(&n, init, PL_DTYPE_F32, pl_shape_of(2, (int64_t)4, (int64_t)3), "w"), PL_NONE);
    expect_refused(&n, g, &err, PL_E_INTERNAL, "w is made twice");
    n = begin(&g, &err);
    memset(name, 'n', sizeof name - 1), name[sizeof name - 1] = 0;
    assert_int_equal(pl_net_weight(&n, init, PL_DTYPE_F32, pl_shape_of(1, (int64_t)4), "%s", name), PL_NONE);
    expect_refused(&n, g, &err, PL_E_INTERNAL, "more than 255 bytes");
}

/* Columns of a wider value do not lie one after the other. */
static void a_part_is_not_viewed_as_a_whole(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g;
    pl_net n = begin(&g, &err);
    const pl_id x =
        pl_build_persistent(&n.b, PL_ROLE_INPUT, PL_DTYPE_F32, pl_shape_of(3, (int64_t)1, (int64_t)2, (int64_t)6), "x");
    assert_int_equal(pl_net_view(&n, pl_net_columns(&n, x, 0, 3), pl_shape_of(2, (int64_t)1, (int64_t)6)), PL_NONE);
    expect_refused(&n, g, &err, PL_E_INTERNAL, "viewed as a whole");
}

/* Asked for twice, a weight is the same; absent, it is none; and the first failure is the one that stays. */
static void what_lasts_is_made_once(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g;
    pl_net n = begin(&g, &err);
    const pl_id w = pl_net_weight(&n, pl_init_normal(1), PL_DTYPE_F32, pl_shape_of(2, (int64_t)3, (int64_t)4),
                                  "layer.%d.weight", 7);
    assert_int_equal(
        pl_net_weight(&n, pl_init_all(0), PL_DTYPE_F32, pl_shape_of(2, (int64_t)3, (int64_t)4), "layer.7.weight"), w);
    assert_int_equal(pl_net_weight(&n, (pl_init){PL_INIT_ABSENT}, PL_DTYPE_F32, pl_shape_of(1, (int64_t)3), "bias"),
                     PL_NONE);
    assert_int_equal(g->node_count, 1);
    assert_int_equal(pl_net_add(&n, w, PL_NONE), PL_NONE);
    const pl_error first = err;
    assert_int_equal(pl_net_linear(&n, w, (pl_affine){w, w}, PL_NONE), PL_NONE);
    assert_int_equal(pl_net_cast(&n, PL_NONE, PL_DTYPE_F16, "x"), PL_NONE);
    assert_int_equal(pl_net_extent(&n, PL_NONE, 0), 1);
    expect_refused(&n, g, &err, PL_E_INTERNAL, first.text);
}

static void frozen_parts_nest(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g;
    pl_net n = begin(&g, &err);
    const bool outer = pl_net_freeze(&n, true), inner = pl_net_freeze(&n, false);
    const pl_id a = pl_net_weight(&n, pl_init_all(0), PL_DTYPE_F32, pl_shape_of(1, (int64_t)4), "a");
    pl_net_thaw(&n, inner);
    const pl_id b = pl_net_weight(&n, pl_init_all(0), PL_DTYPE_F32, pl_shape_of(1, (int64_t)4), "b");
    pl_net_thaw(&n, outer);
    const pl_id c = pl_net_weight(&n, pl_init_all(0), PL_DTYPE_F32, pl_shape_of(1, (int64_t)4), "c");
    assert_true(g->value[a].frozen && g->value[b].frozen && !g->value[c].frozen);
    pl_net_deinit(&n);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_their_formulas),
                                       cmocka_unit_test(caches_are_the_whole_sequence),
                                       cmocka_unit_test(what_a_block_cannot_be_is_refused),
                                       cmocka_unit_test(names_stand_for_one_value),
                                       cmocka_unit_test(a_part_is_not_viewed_as_a_whole),
                                       cmocka_unit_test(what_lasts_is_made_once),
                                       cmocka_unit_test(frozen_parts_nest)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

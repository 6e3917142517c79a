/* A graph around one operator: an image goes through a linear layer, the operator and into the loss. Every element of
 * every weight is held to central differences of the interpreter, in double, and once more with every set of weights
 * frozen; and every value that the kernels make of the same graph, backward nodes too, is held to the interpreter's, at
 * each level of this machine. */
#ifndef PL_TESTS_GRAD_AROUND_H
#define PL_TESTS_GRAD_AROUND_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/convolution.h"
#include "base/regression.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { B = 2, H = 4, W = 6, C = 4, V = 5 };

typedef struct maker {
    pl_builder b;
    pl_error err;
    pl_id step, first_sample;
    int weights;
    unsigned frozen; /* bit i: weight i is */
    pl_op loss;      /* of regression, or LINEAR_CE */
    pl_regression_kind kind;
    bool has_losses; /* the operator under test made them: of rows, each scaled by itself */
    pl_id sum;       /* of the losses so far */
} maker;

static inline const pl_value *value_of(const maker *m, pl_id id) { return &m->b.graph->value[id]; }

static inline pl_id weight(maker *m, pl_shape shape)
{
    pl_id id = pl_build_persistent(&m->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, "w%d", m->weights);
    assert_int_not_equal(id, PL_NONE);
    m->b.graph->value[id].frozen = m->frozen >> m->weights++ & 1;
    return id;
}

static inline pl_id gain(maker *m, pl_id x) { return weight(m, pl_shape_of(1, pl_shape_last(&value_of(m, x)->shape))); }

static inline pl_id input(maker *m, pl_dtype dtype, pl_shape shape, const char *name)
{
    return pl_build_persistent(&m->b, PL_ROLE_INPUT, dtype, shape, "%s", name);
}

static inline pl_id node(maker *m, pl_op op, const pl_attr *attr, int ins, const pl_id *in, int outs)
{
    pl_id out[PL_NODE_OUT_MAX] = {PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    return pl_build_node(&m->b, op, attr, ins, in, outs, out);
}

static inline pl_id linear(maker *m, pl_id x, int64_t n)
{
    pl_id w = weight(m, pl_shape_of(2, n, pl_shape_last(&value_of(m, x)->shape)));
    return node(m, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 2, (pl_id[]){x, w}, 1);
}

static inline pl_id plus(maker *m, pl_id x, pl_id y) { return node(m, PL_OP_ADD, NULL, 2, (pl_id[]){x, y}, 1); }

static inline pl_id average(maker *m, pl_id x, pl_op op, int64_t a, int64_t b)
{
    return node(m, op, (pl_attr[]){pl_attr_i(a), pl_attr_i(b)}, 1, &x, 1);
}

static inline pl_id with(maker *m, pl_op op, pl_id x, pl_id other)
{
    return node(m, op, NULL, 2, (pl_id[]){x, other}, 1);
}

/* ---- the graph around them ---- */

typedef pl_id (*make_op)(maker *, pl_id x);

static inline void add_loss(maker *m, pl_id x, pl_id scale, pl_id loss)
{
    pl_shape rows = value_of(m, x)->shape;
    if (m->loss == PL_OP_LINEAR_CE) {
        pl_id w = weight(m, pl_shape_of(2, (int64_t)V, rows.dim[--rows.rank]));
        pl_id in[5] = {x, w, input(m, PL_DTYPE_I32, rows, "targets"), scale, loss};
        node(m, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(4), pl_attr_f(0)}, 5, in, 1);
        return;
    }
    pl_attr attr[7] = {pl_attr_i(m->kind), pl_attr_f(0.25), pl_attr_f(0.7), pl_attr_f(1.5),
                       pl_attr_f(1.75),    pl_attr_f(0.35), pl_attr_f(1.5)};
    pl_id in[4] = {x, input(m, PL_DTYPE_F32, pl_shape_of(2, (int64_t)B, (int64_t)(H * W)), "targets"), scale, loss};
    node(m, m->loss, attr, 4, in, 1);
}

static inline pl_graph *graph_around(make_op make, unsigned frozen, int *weights)
{
    maker m = {.frozen = frozen, .loss = PL_OP_LINEAR_CE};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    m.b = pl_builder_begin(g, pl_graph_add_region(g, "train", PL_NONE, 1), &m.err);
    pl_shape one = pl_shape_of(1, (int64_t)1);
    pl_id image = input(&m, PL_DTYPE_F32, pl_shape_of(4, (int64_t)B, (int64_t)H, (int64_t)W, (int64_t)3), "image");
    m.step = input(&m, PL_DTYPE_I64, one, "step");
    m.first_sample = input(&m, PL_DTYPE_I64, one, "first_sample");
    pl_id scale = input(&m, PL_DTYPE_F32, one, "scale");
    pl_id loss = pl_build_temporary(&m.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, one, "loss"), out = loss;
    pl_build_node(&m.b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    m.sum = loss;
    pl_builder_enter(&m.b, "under_test");
    pl_id x = make(&m, linear(&m, image, C));
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    if (!m.has_losses) add_loss(&m, x, scale, loss);
    if (m.b.status != PL_OK) fail_msg("%s", m.err.text);
    tiny_check(g, PL_STAGE_BOUND);
    *weights = m.weights;
    return g;
}

static inline void set_inputs(const pl_graph *g, reference *r)
{
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        bool integer = v->dtype == PL_DTYPE_I32 || v->dtype == PL_DTYPE_U8, is_state = v->role == PL_ROLE_STATE;
        if (v->program != PL_NONE || pl_value_root(g, (pl_id)i) != i) continue;
        for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++) {
            double u = tiny_uniform(5, i, e);
            reference_address(r, (pl_id)i)[e] = integer    ? floor((v->dtype == PL_DTYPE_U8 ? 256 : V) * u)
                                                : is_state ? (float)(0.5 + u)
                                                           : (float)(2 * u - 1);
        }
    }
    pl_id targets = pl_graph_find_value(g, "targets");
    if (targets != PL_NONE && g->value[targets].dtype == PL_DTYPE_F32) /* one that is not counted */
        reference_address(r, targets)[5] = NAN;
    pl_id labels = pl_graph_find_value(g, "labels");
    for (uint64_t e = 0; labels != PL_NONE && e < reference_elems(r, labels); e++) /* the second sample has none */
        if (e % 4 == 3 || e >= reference_elems(r, labels) / 2) reference_address(r, labels)[e] = -1;
    *reference_find(r, "step") = 3;
    *reference_find(r, "first_sample") = 10;
    *reference_find(r, "scale") = 0.25;
}

static inline void set_states(const pl_graph *g, reference *r)
{
    for (size_t i = 0; i < g->value_count; i++)
        for (uint64_t e = 0; g->value[i].role == PL_ROLE_STATE && e < reference_elems(r, (pl_id)i); e++) {
            const double u = tiny_uniform(5, pl_value_root(g, (pl_id)i), e);
            reference_address(r, (pl_id)i)[e] = g->value[i].dtype == PL_DTYPE_I32 ? floor(V * u) : (float)(0.5 + u);
        }
}

static inline double run(const pl_graph *g, reference *r)
{
    set_states(g, r);
    reference_run_named(r, "train", NULL, NULL);
    return *reference_find(r, "loss") * (pl_graph_find_value(g, "weight.0") == PL_NONE ? 0.25 : 1);
}

static inline bool is_weight(const pl_graph *g, size_t i)
{
    return g->value[i].role == PL_ROLE_WEIGHT && g->value[i].view_of == PL_NONE;
}

static inline void check_weight(const pl_graph *g, reference *f, reference *b, pl_id id, const char *of)
{
    char name[64];
    snprintf(name, sizeof name, "grad.%s", g->value[id].name);
    double *w = reference_address(f, id), *grad = reference_find(b, name);
    for (uint64_t e = 0; e < reference_elems(f, id); e++) {
        double old = w[e], step = 1e-5 * (1 + fabs(old));
        w[e] = old + step;
        double above = run(g, f);
        w[e] = old - step;
        double d = (above - run(g, f)) / (2 * step);
        w[e] = old;
        if (!(fabs(d - grad[e]) <= 1e-6 * fmax(fmax(fabs(d), fabs(grad[e])), 1e-2)))
            fail_msg("%s: %s[%llu] is %.12g, the difference is %.12g", of, name, (unsigned long long)e, grad[e], d);
    }
}

static inline pl_graph *differentiated(const char *name, make_op make, unsigned frozen)
{
    pl_error err = {0};
    int weights;
    pl_graph *g = graph_around(make, frozen, &weights);
    if (pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err) != PL_OK) fail_msg("%s: %s", name, err.text);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s, frozen %x: %s", name, frozen, err.text);
    return g;
}

/* Trained weights get the gradient that they get when nothing is frozen, to the last bit; frozen ones none. */
static inline void check_frozen(const char *name, make_op make, reference *whole, unsigned frozen)
{
    pl_graph *g = differentiated(name, make, frozen);
    reference *r = reference_create(g);
    set_inputs(g, r);
    run(g, r);
    for (size_t i = 0; i < g->value_count; i++) {
        char grad[64];
        if (!is_weight(g, i)) continue;
        snprintf(grad, sizeof grad, "grad.%s", g->value[i].name);
        assert_int_equal(pl_graph_find_value(g, grad) == PL_NONE, g->value[i].frozen);
        if (!g->value[i].frozen)
            assert_memory_equal(reference_find(r, grad), reference_find(whole, grad),
                                reference_elems(r, (pl_id)i) * sizeof(double));
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

/* ---- the same graph by kernels, each value in a place of its own ---- */

static inline double number_at(pl_dtype dtype, const void *p, uint64_t e)
{
    switch (dtype) {
    case PL_DTYPE_F64:
        return ((const double *)p)[e];
    case PL_DTYPE_I64:
        return (double)((const int64_t *)p)[e];
    case PL_DTYPE_I32:
        return ((const int32_t *)p)[e];
    case PL_DTYPE_U8:
        return ((const uint8_t *)p)[e];
    default:
        return ((const float *)p)[e];
    }
}

static inline void put_number(pl_dtype dtype, void *p, uint64_t e, double x)
{
    if (dtype == PL_DTYPE_I64)
        ((int64_t *)p)[e] = (int64_t)x;
    else if (dtype == PL_DTYPE_I32)
        ((int32_t *)p)[e] = (int32_t)x;
    else if (dtype == PL_DTYPE_U8)
        ((uint8_t *)p)[e] = (uint8_t)x;
    else
        ((float *)p)[e] = (float)x;
}

static inline void run_kernels(const pl_graph *g, const pl_addresses *a, pl_team team)
{
    for (size_t i = 0; i < g->node_count; i++) {
        pl_error err = {0};
        pl_call call;
        uint64_t bytes;
        if (g->node[i].dead) continue;
        if (pl_backend_workspace_bytes(g, &g->node[i], team, &bytes, &err) != PL_OK) fail_msg("%s", err.text);
        void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
        assert_non_null(workspace);
        memset(workspace, 0xff, bytes);
        if (pl_backend_bind(g, &g->node[i], a, workspace, &call, &err) != PL_OK) fail_msg("%s", err.text);
        pl_backend_exec(&call, team);
        free(workspace);
    }
}

static inline void compare_value(const pl_graph *g, reference *r, const pl_addresses *a, pl_id id, const char *name)
{
    const double *want = reference_address(r, id);
    double largest = 0;
    for (uint64_t e = 0; e < reference_elems(r, id); e++) largest = fmax(largest, fabs(want[e]));
    for (uint64_t e = 0; e < reference_elems(r, id); e++) {
        double got = number_at(g->value[id].dtype, pl_address_of(g, a, id), e);
        if (isnan(got) && isnan(want[e])) continue;
        if (!(fabs(got - want[e]) <= 2e-5 * largest + 1e-7))
            fail_msg("%s: %s[%llu] is %.9g, the interpreter has %.9g", name, g->value[id].name, (unsigned long long)e,
                     got, want[e]);
    }
}

static inline void check_kernels(const char *name, const pl_graph *g, reference *r)
{
    uint64_t *offset = calloc(g->value_count, sizeof *offset), bytes = 0;
    assert_non_null(offset);
    for (size_t i = 0; i < g->value_count; i++) {
        offset[i] = bytes;
        if (pl_value_root(g, (pl_id)i) == i) bytes += (pl_value_bytes(g, (pl_id)i) + 63) / 64 * 64;
    }
    unsigned char *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        pl_addresses a = {.base = {memory}, .offset = offset};
        memset(memory, 0xff, bytes);
        set_inputs(g, r);
        set_states(g, r);
        for (size_t i = 0; i < g->value_count; i++)
            for (uint64_t e = 0; g->value[i].program == PL_NONE && e < reference_elems(r, (pl_id)i); e++)
                put_number(g->value[i].dtype, pl_address_of(g, &a, (pl_id)i), e, reference_address(r, (pl_id)i)[e]);
        run(g, r);
        run_kernels(g, &a, (pl_team){2, isa});
        for (size_t i = 0; i < g->value_count; i++)
            if (pl_value_root(g, (pl_id)i) == i) compare_value(g, r, &a, (pl_id)i, name);
    }
    free(memory);
    free(offset);
}

static inline void check_operator(const char *name, make_op make)
{
    int weights;
    pl_graph *forward = graph_around(make, 0, &weights), *backward = differentiated(name, make, 0);
    reference *f = reference_create(forward), *b = reference_create(backward);
    set_inputs(forward, f);
    set_inputs(backward, b); /* ids of the model stay */
    double loss = run(forward, f);
    assert_true(fabs(run(backward, b) - loss) < 1e-12);
    for (size_t i = 0; i < forward->value_count; i++)
        if (is_weight(forward, i)) check_weight(forward, f, b, (pl_id)i, name);
    for (unsigned frozen = 1; frozen < 1u << weights; frozen++) check_frozen(name, make, b, frozen);
    check_kernels(name, backward, b);
    reference_destroy(f);
    reference_destroy(b);
    pl_graph_destroy(forward);
    pl_graph_destroy(backward);
}

/* No gradient: the refusal says why. */
static inline void check_refused(make_op make, const char *words)
{
    pl_error err = {0};
    int weights;
    pl_graph *g = graph_around(make, 0, &weights);
    assert_int_equal(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), PL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, words));
    pl_graph_destroy(g);
}

#define CHECK(what) check_operator(#what, make_##what)

#endif

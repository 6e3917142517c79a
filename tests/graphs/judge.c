/* Oracles: the legality check, the printer and the parser against each other, and numbers by the scalar interpreter of
 * tests/reference, in double precision. A graph that is not bound is interpreted as a copy that is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "graphs/graphs.h"
#include "ir/op.h"
#include "reference/interpret.h"
#include "reference/tiny.h"

static bool is_bound(const pl_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].shape.symbolic) return false;
    return true;
}

void judge_graph(const subject *s, const char *behind)
{
    pl_error err = {0};
    pl_graph *again = NULL;
    pl_str first = {0}, second = {0};
    if (pl_graph_check(s->graph, is_bound(s->graph) ? PL_STAGE_BOUND : PL_STAGE_GRAD, &err) != PL_OK)
        subject_broken(s, "behind \"%s\" the graph is not legal: %s", behind, err.text);
    pl_graph_print(s->graph, &first);
    if (pl_graph_parse("printed", pl_str_text(&first), first.bytes, &again, &err) != PL_OK)
        subject_broken(s, "behind \"%s\" what was printed is refused: %s", behind, err.text);
    pl_graph_print(again, &second);
    if (strcmp(pl_str_text(&first), pl_str_text(&second)) != 0)
        subject_broken(s, "behind \"%s\" print, parse, print is not the identity", behind);
    pl_graph_destroy(again);
    pl_str_deinit(&first);
    pl_str_deinit(&second);
}

/* ---- running a graph ---- */

typedef struct machine {
    const subject *s;
    pl_graph *graph; /* bound */
    reference *r;
    uint64_t load; /* so many micro-batches were loaded */
} machine;

static double uniform(const subject *s, const char *name, uint64_t elem)
{
    return tiny_uniform(s->seed, pl_stream_id(name), elem);
}

/* What lies in a value before the program runs. Tokens are 0 or 1; a count is 0; a loss scale is a power of two. */
static double first_content(const subject *s, const pl_value *v, uint64_t elem)
{
    double u = uniform(s, v->name, elem);
    if (strcmp(v->name, "input.step") == 0) return 3;
    if (v->role == PL_ROLE_STATE) return v->dtype == PL_DTYPE_F32 ? 4 : 0;
    if (v->role == PL_ROLE_STAGING) return 0; /* what whoever runs the program has not filled yet */
    if (!pl_dtype_is_real(v->dtype) && v->role == PL_ROLE_INPUT) return (double)(int)(2 * u);
    if (v->role == PL_ROLE_OPTIMIZER || strncmp(v->name, "input.", 6) == 0) return (float)u;
    return (float)(2 * u - 1);
}

/* What is there before the program runs: the rest stays not-a-number until a node writes it. */
static void fill(machine *m)
{
    for (pl_id i = 0; i < m->graph->value_count; i++) {
        const pl_value *v = &m->graph->value[i];
        if (pl_value_root(m->graph, i) != i || (v->program != PL_NONE && v->role != PL_ROLE_INPUT)) continue;
        double *block = reference_address(m->r, i);
        for (uint64_t e = 0; e < reference_elems(m->r, i); e++) block[e] = first_content(m->s, v, e);
    }
}

static machine start(const subject *s, const pl_graph *g)
{
    pl_error err = {0};
    machine m = {.s = s, .graph = pl_graph_copy(g)};
    if (!m.graph) subject_broken(s, "no memory");
    if (!is_bound(g) && pl_rewrite_passes(m.graph, &s->with, PL_PASS_BIND_BATCH, PL_PASS_BIND_BATCH + 1, &err) != PL_OK)
        subject_broken(s, "cannot be bound: %s", err.text);
    m.r = reference_create(m.graph);
    fill(&m);
    return m;
}

static void stop(machine *m)
{
    reference_destroy(m->r);
    pl_graph_destroy(m->graph);
}

static void load(void *context, uint64_t trip, int64_t count, double *inputs, double *targets)
{
    const machine *m = context;
    const pl_graph *g = m->graph;
    pl_id program = pl_graph_find_program(g, "train"), first = pl_graph_find_value(g, "input.first_sample");
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != PL_OP_LOAD || (program != PL_NONE && pl_region_program(g, n->region) != program)) continue;
        bool real = pl_dtype_is_real(g->value[n->out[0]].dtype);
        for (int64_t e = 0; e < count; e++) {
            double u = uniform(m->s, "loaded", (uint64_t)e + 1000 * trip);
            inputs[e] = real ? (float)(2 * u - 1) : (int)(2 * u);
        }
        for (uint64_t e = 0; e < reference_elems(m->r, n->out[1]); e++)
            targets[e] = (int)(2 * uniform(m->s, "targets", e + 1000 * trip));
    }
    if (first != PL_NONE) *reference_address(m->r, first) = (double)trip;
}

/* The program "train", or whichever there is. */
static void run(machine *m)
{
    pl_id train = pl_graph_find_program(m->graph, "train");
    reference_run(m->r, train == PL_NONE ? 0 : train, load, m);
}

/* ---- the same numbers ---- */

static bool lasts(const pl_value *v, bool gradients)
{
    return v->program == PL_NONE || v->role == PL_ROLE_OUTPUT || v->role == PL_ROLE_STATE ||
           (gradients && v->role == PL_ROLE_GRADIENT);
}

/* A moment that was packed into blocks has other sizes, the interpreter uses its first elements. */
static void compare(subject *s, machine *a, pl_id was, machine *b, pl_id is, double within)
{
    const double *x = reference_address(a->r, was), *y = reference_address(b->r, is);
    uint64_t n = reference_elems(a->r, was), others = reference_elems(b->r, is);
    for (uint64_t e = 0; e < n && e < others; e++) {
        if (isnan(x[e]) && isnan(y[e])) continue;
        if (memcmp(&x[e], &y[e], sizeof *x) != 0 && !(fabs(x[e] - y[e]) <= within * (1 + fabs(x[e]))))
            subject_broken(s, "%s[%llu] is %.17g, and %.17g before the pass", a->graph->value[was].name,
                           (unsigned long long)e, y[e], x[e]);
        s->numbers++;
    }
}

void judge_same(subject *s, const pl_graph *before, bool scaled, double within)
{
    machine a = start(s, before), b = start(s, s->graph);
    size_t compared = s->numbers;
    run(&a);
    run(&b);
    for (pl_id i = 0; i < a.graph->value_count; i++) {
        const pl_value *v = &a.graph->value[i];
        if (pl_value_root(a.graph, i) != i || !lasts(v, !scaled)) continue;
        pl_id same = pl_graph_find_value(b.graph, v->name);
        if (same == PL_NONE) subject_broken(s, "%s is gone", v->name);
        compare(s, &a, i, &b, same, within);
    }
    if (s->numbers == compared) subject_broken(s, "nothing lasts that could be compared");
    stop(&a);
    stop(&b);
}

/* ---- gradients ---- */

static const pl_node *find_loss(const subject *s, const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (pl_op_rule_of(g->node[i].op)->loss) return &g->node[i];
    subject_broken(s, "there is no loss to differentiate");
}

/* What the sum that a loss adds to its value is to be multiplied with: the losses of rows have done so. */
static double scale_of(const machine *m, const pl_node *loss)
{
    switch (loss->op) {
    case PL_OP_LINEAR_CE:
        return *reference_address(m->r, loss->in[3]);
    case PL_OP_REGRESSION_LOSS:
    case PL_OP_MINED_REGRESSION_LOSS:
        return *reference_address(m->r, loss->in[2]);
    default:
        return 1;
    }
}

/* The loss times its scale, with one element of a weight moved. */
static double loss_at(const subject *s, const pl_graph *before, const char *weight, uint64_t elem, double by)
{
    machine m = start(s, before);
    const pl_node *loss = find_loss(s, before);
    reference_find(m.r, weight)[elem] += by;
    run(&m);
    double value = *reference_address(m.r, pl_value_root(before, loss->out[0])) * scale_of(&m, loss);
    stop(&m);
    return value;
}

static void judge_gradient(subject *s, const pl_graph *before, machine *m, pl_id gradient)
{
    const double step = 1e-5, *g = reference_address(m->r, gradient);
    const char *weight = m->graph->value[gradient].name + strlen("grad.");
    for (uint64_t e = 0; e < reference_elems(m->r, gradient); e++, s->numbers++) {
        double slope = (loss_at(s, before, weight, e, step) - loss_at(s, before, weight, e, -step)) / (2 * step);
        if (!(fabs(slope - g[e]) < 1e-7))
            subject_broken(s, "grad.%s[%llu] is %g, the difference quotient %g", weight, (unsigned long long)e, g[e],
                           slope);
    }
}

void judge_gradients(subject *s, const pl_graph *before)
{
    machine m = start(s, s->graph);
    run(&m);
    for (pl_id i = 0; i < m.graph->value_count; i++)
        if (m.graph->value[i].role == PL_ROLE_GRADIENT && pl_value_root(m.graph, i) == i)
            judge_gradient(s, before, &m, i);
    stop(&m);
}

/* ---- the update ---- */

/* Of all gradients what each is multiplied with. */
static double clip_factor(machine *a, double clip)
{
    double squares = 0;
    for (pl_id i = 0; i < a->graph->value_count; i++) {
        if (a->graph->value[i].role != PL_ROLE_GRADIENT || pl_value_root(a->graph, i) != i) continue;
        const double *g = reference_address(a->r, i);
        for (uint64_t e = 0; e < reference_elems(a->r, i); e++) squares += g[e] * g[e];
    }
    return clip > 0 ? fmin(1, clip / (sqrt(squares) + 1e-6)) : 1;
}

static double *find_of(machine *m, const char *prefix, const char *weight)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", prefix, weight);
    return reference_find(m->r, name);
}

static void expect_near(const subject *s, const char *what, const char *weight, double is, double wanted)
{
    if (!(fabs(is - wanted) <= 1e-12 * (1 + fabs(wanted))))
        subject_broken(s, "%s%s is %.17g, by definition %.17g", what, weight, is, wanted);
}

/* Loshchilov & Hutter 2019, algorithm 2, or Everett et al. 2024; `a` has the gradients, `b` was updated, `c` not run at
 * all. */
static void judge_weight(subject *s, machine *a, machine *b, machine *c, pl_id weight)
{
    const pl_value *v = &c->graph->value[weight];
    double factor = clip_factor(a, s->clip), lr = *reference_find(c->r, "input.lr"), t = 3;
    double decay = v->shape.rank >= 2 ? step_decay : 0;
    for (uint64_t e = 0; e < reference_elems(c->r, weight); e++, s->numbers += 3) {
        double g = factor * find_of(a, "grad.", v->name)[e], w = find_of(c, "", v->name)[e];
        double m = step_beta1 * find_of(c, "m.", v->name)[e] + (1 - step_beta1) * g;
        double u = step_beta2 * find_of(c, "v.", v->name)[e] + (1 - step_beta2) * g * g;
        double ahead = m / (1 - pow(step_beta1, t)), size = sqrt(u / (1 - pow(step_beta2, t)));
        expect_near(s, "m.", v->name, find_of(b, "m.", v->name)[e], m);
        expect_near(s, "v.", v->name, find_of(b, "v.", v->name)[e], u);
        double direction = s->angle ? atan2(ahead, size) : ahead / (size + step_epsilon);
        double updated = w * (1 - lr * decay) - lr * direction;
        expect_near(s, "", v->name, find_of(b, "", v->name)[e], updated);
        if (s->ema_rate == 0) continue;
        expect_near(s, "ema.", v->name, find_of(b, "ema.", v->name)[e],
                    s->ema_rate * find_of(c, "ema.", v->name)[e] + (1 - s->ema_rate) * updated);
    }
}

void judge_update(subject *s, const pl_graph *before)
{
    machine a = start(s, before), b = start(s, s->graph), c = start(s, s->graph);
    run(&a);
    run(&b);
    for (pl_id i = 0; i < c.graph->value_count; i++) {
        bool weight = pl_value_is_trained(c.graph, i) && pl_value_root(c.graph, i) == i;
        if (weight) judge_weight(s, &a, &b, &c, i);
    }
    stop(&a);
    stop(&b);
    stop(&c);
}

/* The model of cloud heights: the parameters of docs/clouds.md, the gradients of a tiny one against finite differences,
 * the compiled program against the interpreter at every level, and what is computed again against what is not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "grad/differentiate.h"
#include "models/model.h"
#include "reference/tiny.h"
#include "support/program.h"
#include "support/seed.h"

enum { BATCH = 3, SIDE = 17, WIDE = 19, STEPS = 3, PORTS = 3, FIRST_SAMPLE = 40 };
static uint64_t seed;

static void must(pl_status status, const pl_error *err)
{
    if (status != PL_OK) fail_msg("%s: %s", pl_status_name(status), err->text);
}

static pl_config *config_of(const char *const *sets)
{
    static pl_config c;
    pl_error err = {0};
    pl_config_default(&c);
    c.model.arch = PL_ARCH_CLOUDS;
    c.train.seed = (int64_t)(seed & INT32_MAX);
    c.train.epsilon = 1e-3; /* so that an update is smooth where a gradient is nearly 0 */
    for (; sets && *sets; sets += 2) must(pl_config_set(&c, sets[0], sets[1], "the test", &err), &err);
    return &c;
}

static pl_graph *build(const pl_config *c, uint64_t height, uint64_t width)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_facts e = {0};
    pl_facts_add(&e, "height", height);
    pl_facts_add(&e, "width", width);
    must(pl_model_build(c, &e, &g, &err), &err);
    tiny_check(g, PL_STAGE_MODEL);
    return g;
}

/* ---- figures ---- */

static void expect_parameters(const char *const *sets, uint64_t expected)
{
    uint64_t total = 0;
    pl_graph *g = build(config_of(sets), 440, 640);
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT && g->value[i].update_of == PL_NONE)
            total += pl_shape_elems(&g->value[i].shape);
    assert_int_equal(total, expected);
    pl_graph_destroy(g);
}

#define SMALL_CHANNELS "channels", "[8,16,32]", "dense", "[32,16]"

static void parameters_are_those_of_the_book(void **state)
{
    (void)state;
    expect_parameters(NULL, 536846);
    expect_parameters((const char *[]){"memory_optimized", "true", NULL}, 143886);
    expect_parameters((const char *[]){SMALL_CHANNELS, NULL}, 13134);
    expect_parameters((const char *[]){"use_spatial_attention", "false", NULL}, 536846 - 12);
    expect_parameters((const char *[]){"use_temporal_attention", "false", NULL}, 536846 - 33025);
    expect_parameters((const char *[]){"architecture.name", "cnn", NULL}, 536846 - 33025);
}

static void other_lengths_make_legal_graphs(void **state)
{
    static const char *const frames[] = {"1", "2", "9", "10", "64"};
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        pl_graph_destroy(build(config_of((const char *[]){SMALL_CHANNELS, "temporal_frames", frames[i], NULL}), 8, 9));
}

static void frames_that_are_too_small_are_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_facts e = {0};
    pl_facts_add(&e, "height", 7);
    pl_facts_add(&e, "width", 640);
    assert_int_equal(pl_model_build(config_of(NULL), &e, &g, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "7 × 640"));
    assert_int_equal(pl_model_check(config_of((const char *[]){"train.batch_size", "1", NULL}), &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "train.batch_size 1"));
}

static void sizes_beyond_counting_are_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_facts e = {0};
    pl_facts_add(&e, "height", 65536);
    pl_facts_add(&e, "width", 1 << 30);
    const char *const sets[] = {
        "channels", "[65536,65536,65536]", "train.batch_size", "16777216", "temporal_frames", "64", NULL};
    assert_int_equal(pl_model_build(config_of(sets), &e, &g, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "exceed 2^60 bytes"));
}

/* Each frame's norms change what lasts: once a step, with the whole batch. */
static void layer_major_order_is_not_for_it(void **state)
{
    (void)state;
    pl_error err = {0};
    const char *why;
    pl_graph *g = build(config_of(NULL), 8, 8);
    pl_id train = pl_graph_find_program(g, "train");
    must(pl_grad_differentiate(g, train, &err), &err);
    pl_grad_update u = {
        0.9, 0.999, 1e-8, 0, 0, pl_graph_find_value(g, "input.lr"), pl_graph_find_value(g, "input.step"), 1};
    must(pl_grad_add_update(g, train, &u, &err), &err);
    assert_false(pl_rewrite_layer_major_possible(g, train, &why));
    assert_non_null(strstr(why, "mixes the samples"));
    assert_true(pl_rewrite_update_early_possible(g, train, 1, &why));
    pl_graph_destroy(g);
}

/* ---- first values ---- */

static void check_deviation(reference *r, const pl_graph *g, const char *name, double deviation)
{
    const uint64_t elems = reference_elems(r, pl_graph_find_value(g, name));
    const double *w = reference_find(r, name);
    double squares = 0;
    for (uint64_t e = 0; e < elems; e++) squares += w[e] * w[e];
    if (!(fabs(sqrt(squares / (double)elems) / deviation - 1) < 5 / sqrt(2 * (double)elems)))
        fail_msg("%s deviates by %.4g, expected %.4g", name, sqrt(squares / (double)elems), deviation);
}

static void check_range(reference *r, const pl_graph *g, const char *name, double low, double high)
{
    const double *w = reference_find(r, name);
    for (uint64_t e = 0; e < reference_elems(r, pl_graph_find_value(g, name)); e++)
        assert_true(w[e] >= low && w[e] <= high);
}

static pl_graph *without_loads(pl_graph *);

static void first_values_are_those_of_the_book(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = without_loads(build(config_of(NULL), 8, 8));
    const pl_rewrites r = {.micro_batch = 2, .trips = 1};
    must(pl_rewrite_passes(g, &r, PL_PASS_BIND_BATCH, PL_PASS_UPDATE_ORDER, &err), &err);
    reference *i = reference_create(g);
    reference_run_named(i, "init", NULL, NULL);
    check_deviation(i, g, "cnn_layers.10.weight", sqrt(2.0 / (256 * 9)));
    check_deviation(i, g, "dense_layers.4.weight", sqrt(2.0 / (256 + 128)));
    check_deviation(i, g, "film_layers.0.film_mlp.2.weight", sqrt(2.0 / (256 + 128)));
    check_deviation(i, g, "output.weight", 0.5);
    check_range(i, g, "cnn_layers.5.bias", -1 / 24.0, 1 / 24.0);
    check_deviation(i, g, "cnn_layers.5.bias", 1 / 24.0 / sqrt(3));
    check_range(i, g, "output.bias", 0.0999999, 0.1000001);
    check_range(i, g, "temporal_attention.fc1.bias", 0, 0);
    check_range(i, g, "cnn_layers.1.weight", 1, 1);
    check_range(i, g, "cnn_layers.1.running_mean", 0, 0);
    check_range(i, g, "dense_layers.5.running_var", 1, 1);
    reference_destroy(i);
    pl_graph_destroy(g);
}

/* ---- data: functions of step, port and element ---- */

static float datum(const char *port, uint64_t step, uint64_t e)
{
    pl_philox p = pl_philox_init(seed, pl_stream_id(port));
    float x[4];
    pl_philox_normal_f32(&p, (uint32_t)step, e / 4, 0, 4, x);
    return strcmp(port, "target") == 0 && e == BATCH - 1 && step == 2 ? NAN : x[e % 4];
}

static float scale_of(uint64_t step) { return 1.0f / (float)(step == 2 ? BATCH - 1 : BATCH); }

static float moved(const pl_graph *g, pl_id weight, uint64_t e, double first)
{
    pl_philox p = pl_philox_init(seed + 1, pl_stream_id(g->value[weight].name));
    uint32_t bits[4];
    pl_philox_block(&p, 0, e, 0, bits);
    return (float)((float)first + 0.2 * (bits[0] * 0x1p-32) - 0.1);
}

static bool is_weight(const pl_graph *g, size_t i)
{
    const pl_value *v = &g->value[i];
    return v->role == PL_ROLE_WEIGHT && v->program == PL_NONE && v->update_of == PL_NONE;
}

static bool is_state(const pl_graph *g, size_t i) { return g->value[i].inference; }

/* ---- from a config to a program ---- */

typedef struct road {
    const pl_config *c;
    pl_recompute_rule recompute;
    bool early, update, keep_gradients;
    pl_dtype precision;
} road;

static void check_pass(void *context, pl_pass pass, pl_graph *g)
{
    const road *r = context;
    for (size_t i = 0; i < g->value_count && r->keep_gradients && pass == PL_PASS_BIND_BATCH; i++)
        if (g->value[i].role == PL_ROLE_GRADIENT) g->value[i].role = PL_ROLE_OUTPUT;
    tiny_check(g, pass < PL_PASS_BIND_BATCH ? PL_STAGE_GRAD : PL_STAGE_BOUND);
}

static void rewrite(const road *way, pl_graph *g, pl_pass first)
{
    pl_error err = {0};
    pl_rewrites r = {.micro_batch = BATCH,
                     .trips = 1,
                     .precision = way->precision,
                     .recompute = way->recompute,
                     .update_early = way->early,
                     .after = check_pass,
                     .context = (void *)(uintptr_t)way};
    must(pl_rewrite_passes(g, &r, first, PL_PASS_COUNT, &err), &err);
}

static pl_graph *compiled(const road *way)
{
    const pl_config_train *c = &way->c->train;
    pl_error err = {0};
    pl_graph *g = build(way->c, SIDE, WIDE);
    pl_id train = pl_graph_find_program(g, "train");
    must(pl_grad_differentiate(g, train, &err), &err);
    pl_grad_update u = {c->beta1,
                        c->beta2,
                        c->epsilon,
                        c->weight_decay,
                        0,
                        pl_graph_find_value(g, "input.lr"),
                        pl_graph_find_value(g, "input.step"),
                        seed};
    if (way->update) must(pl_grad_add_update(g, train, &u, &err), &err);
    rewrite(way, g, 0);
    return g;
}

/* ---- the interpreter ---- */

/* Its load nodes know of tokens: here their ports become inputs. */
static pl_graph *without_loads(pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LOAD || g->node[i].op == PL_OP_STORE) {
            for (int k = 0; k < PL_NODE_OUT_MAX && g->node[i].out[k] != PL_NONE; k++)
                g->value[g->node[i].out[k]].role = PL_ROLE_INPUT;
            g->node[i].dead = true;
        }
    return g;
}

static void interpret_weights(reference *r, const pl_graph *g)
{
    reference_run_named(r, "init", NULL, NULL);
    for (size_t i = 0; i < g->value_count; i++) {
        if (!is_weight(g, i)) continue;
        double *w = reference_address(r, (pl_id)i);
        for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++) w[e] = moved(g, (pl_id)i, e, w[e]);
    }
}

static const char *const port_names[PORTS] = {"images", "angles", "target"};

static void interpret(reference *r, const pl_graph *g, const char *program, uint64_t step)
{
    char name[64];
    for (int k = 0; k < PORTS; k++) {
        snprintf(name, sizeof name, "%s.%s", program, port_names[k]);
        double *x = reference_find(r, name);
        const uint64_t elems = reference_elems(r, pl_graph_find_value(g, name));
        for (uint64_t e = 0; e < elems; e++) x[e] = datum(port_names[k], step, e);
    }
    *reference_find(r, "input.lr") = (float)0.01;
    *reference_find(r, "input.step") = (double)step;
    *reference_find(r, "input.first_sample") = FIRST_SAMPLE;
    *reference_find(r, "input.token_scale") = scale_of(step);
    reference_run_named(r, program, NULL, NULL);
}

/* ---- gradients ---- */

typedef struct differences {
    const pl_graph *forward;
    reference *f, *b;
} differences;

/* Running statistics are written and never read: the loss is a function of the weights. */
static double loss_of(const differences *d)
{
    interpret(d->f, d->forward, "train", 2);
    return *reference_find(d->f, "train.loss") * scale_of(2);
}

static void check_element(const differences *d, const char *name, uint64_t e, double *x, double gradient,
                          double largest)
{
    double error = 0, slope = 0;
    const double old = *x;
    for (double step = 1e-5 * (1 + fabs(old)); step >= 0.9e-8; step /= 10) {
        *x = old + step;
        const double above = loss_of(d);
        *x = old - step;
        slope = (above - loss_of(d)) / (2 * step);
        *x = old;
        error = fabs(slope - gradient) / fmax(fmax(fabs(slope), fabs(gradient)), fmax(largest / 100, 1e-3));
        if (error <= 2e-6) return;
    }
    fail_msg("gradient of %s[%llu] is %.12g, the difference is %.12g: relative error %.2g", name, (unsigned long long)e,
             gradient, slope, error);
}

static void check_weight(const differences *d, pl_id weight)
{
    enum { CHECKS = 2 };
    char name[300];
    snprintf(name, sizeof name, "grad.%s", d->forward->value[weight].name);
    double *w = reference_address(d->f, weight), *g = reference_find(d->b, name), largest = 0;
    const uint64_t elems = reference_elems(d->f, weight);
    for (uint64_t e = 0; e < elems; e++) largest = fmax(largest, fabs(g[e]));
    for (uint64_t i = 0; i < CHECKS && i < elems; i++) {
        const uint64_t e = (i * elems / CHECKS + seed) % elems;
        check_element(d, name, e, &w[e], g[e], largest);
    }
}

static void check_gradients(const char *const *sets)
{
    const road way = {.c = config_of(sets), .recompute = PL_RECOMPUTE_FULL};
    pl_graph *forward = build(way.c, SIDE, WIDE), *backward = without_loads(compiled(&way));
    without_loads(forward);
    rewrite(&(road){.c = way.c}, forward, PL_PASS_BIND_BATCH);
    differences d = {forward, reference_create(forward), reference_create(backward)};
    interpret_weights(d.f, forward);
    interpret_weights(d.b, backward);
    interpret(d.b, backward, "train", 2);
    const double again = *reference_find(d.b, "train.loss") * scale_of(2);
    assert_true(fabs(loss_of(&d) - again) <= 1e-12 * fabs(again));
    for (size_t i = 0; i < forward->value_count; i++)
        if (is_weight(forward, i)) check_weight(&d, (pl_id)i);
    reference_destroy(d.f);
    reference_destroy(d.b);
    pl_graph_destroy(forward);
    pl_graph_destroy(backward);
}

#define TINY "channels", "[3,5,4]", "dense", "[4,3]", "temporal_frames", "2"

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    check_gradients((const char *[]){TINY, NULL});
    check_gradients((const char *[]){TINY, "loss_type", "weighted_huber_mae", "under_weight", "2",
                                     "use_temporal_attention", "false", "use_spatial_attention", "false", NULL});
    check_gradients((const char *[]){TINY, "architecture.name", "cnn", "hard_mining_k", "0", NULL});
}

/* ---- the compiled program ---- */

typedef struct process {
    pl_plan *plan;
    pl_program *p;
    unsigned char *memory;
    uint64_t step;
    float prediction[BATCH];
} process;

static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const process *p = context;
    (void)trips, (void)err;
    assert_int_equal(call->ports, PORTS);
    for (int k = 0; k < PORTS; k++)
        for (uint64_t e = 0; e < call->port[k].bytes / sizeof(float); e++)
            ((float *)call->port[k].at)[e] = datum(port_names[k], p->step, e);
    return PL_OK;
}

static pl_status store(void *context, const pl_trips *trips, const pl_store_call *call, pl_error *err)
{
    process *p = context;
    (void)trips, (void)err;
    assert_int_equal(call->ports, 1);
    assert_int_equal(call->port[0].bytes, sizeof p->prediction);
    memcpy(p->prediction, call->port[0].at, sizeof p->prediction);
    return PL_OK;
}

static void run(process *p, const char *program, uint64_t step)
{
    pl_error err = {0};
    p->step = step;
    *(float *)pl_program_find(p->p, "input.lr") = 0.01f;
    *(int64_t *)pl_program_find(p->p, "input.step") = (int64_t)step;
    *(int64_t *)pl_program_find(p->p, "input.first_sample") = FIRST_SAMPLE;
    *(float *)pl_program_find(p->p, "input.token_scale") = scale_of(step);
    must(pl_program_run(p->p, pl_graph_find_program(p->plan->graph, program),
                        &(pl_program_hooks){.load = load, .store = store, .context = p}, &err),
         &err);
}

static process begin(const road *way, pl_team team)
{
    process p = {0};
    pl_error err = {0};
    pl_plan_options o = {.team = team, .process = pl_process_options_default()};
    must(pl_plan_create(compiled(way), &o, &p.plan, &err), &err);
    must(pl_plan_check(p.plan, &err), &err);
    const uint64_t bytes = (p.plan->arena->bytes / PL_PLAN_ALIGNMENT + 1) * PL_PLAN_ALIGNMENT;
    p.memory = aligned_alloc(PL_PLAN_ALIGNMENT, bytes);
    assert_non_null(p.memory);
    memset(p.memory, 0xFF, bytes);
    must(pl_program_create(p.plan, p.memory, bytes, &p.p, &err), &err);
    run(&p, "init", 0);
    const pl_graph *g = p.plan->graph;
    for (size_t i = 0; i < g->value_count; i++) {
        if (!is_weight(g, i)) continue;
        float *w = pl_program_address(p.p, (pl_id)i);
        for (uint64_t e = 0; e < pl_shape_elems(&g->value[i].shape); e++) w[e] = moved(g, (pl_id)i, e, w[e]);
    }
    return p;
}

static void end(process *p)
{
    pl_program_destroy(p->p);
    pl_plan_destroy(p->plan);
    free(p->memory);
}

/* ‖a − b‖² into sums[0], ‖b‖² into sums[1]. */
static void add_squares(double sums[2], const float *a, const double *b, uint64_t elems)
{
    for (uint64_t e = 0; e < elems; e++) sums[0] += (a[e] - b[e]) * (a[e] - b[e]), sums[1] += b[e] * b[e];
}

/* Of all values of that kind together: what a bias in front of a norm has as gradient is rounding alone. */
static double distance(process *p, reference *r, const pl_graph *of, bool (*which)(const pl_graph *, size_t))
{
    const pl_graph *g = p->plan->graph;
    double sums[2] = {0};
    for (size_t i = 0; i < g->value_count; i++) {
        if (!which(g, i)) continue;
        const pl_id there = pl_graph_find_value(of, g->value[i].name);
        assert_int_not_equal(there, PL_NONE);
        add_squares(sums, pl_program_address(p->p, (pl_id)i), reference_address(r, there),
                    pl_shape_elems(&g->value[i].shape));
    }
    assert_true(sums[1] > 0);
    return sqrt(sums[0] / sums[1]);
}

static bool is_gradient(const pl_graph *g, size_t i)
{
    return g->value[i].role == PL_ROLE_OUTPUT && strncmp(g->value[i].name, "grad.", 5) == 0 &&
           g->value[i].update_of == PL_NONE;
}

/* One step's gradients, and the running statistics behind it. In 16 bits a norm over three samples magnifies rounding:
 * what is wrong is off by the size of a gradient. */
static void check_program(const char *const *sets, pl_dtype precision, double allowed)
{
    const road way = {.c = config_of(sets), .recompute = PL_RECOMPUTE_CHEAP, .keep_gradients = true};
    road narrow = way;
    narrow.precision = precision;
    pl_graph *g = without_loads(compiled(&way));
    reference *r = reference_create(g);
    interpret_weights(r, g);
    interpret(r, g, "train", 2);
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        process p = begin(&narrow, (pl_team){1 + isa % 3, isa});
        run(&p, "train", 2);
        const double gradients = distance(&p, r, g, is_gradient), states = distance(&p, r, g, is_state);
        if (!(gradients < allowed && states < allowed / 20))
            fail_msg("level %d, precision %d: gradients are off by %.3g, running statistics by %.3g", (int)isa,
                     (int)precision, gradients, states);
        end(&p);
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

static void programs_are_those_of_the_interpreter(void **state)
{
    (void)state;
    check_program((const char *[]){TINY, NULL}, PL_DTYPE_F32, 1e-3);
    check_program((const char *[]){TINY, "architecture.name", "cnn", NULL}, PL_DTYPE_F32, 1e-3);
    check_program((const char *[]){TINY, NULL}, PL_DTYPE_BF16, 0.5);
}

/* ---- evaluation ---- */

/* With the running statistics that a step has left, without dropout and mining; and the predictions that are stored. */
static void evaluation_is_that_of_the_interpreter(void **state)
{
    (void)state;
    const road way = {.c = config_of((const char *[]){TINY, NULL})};
    process p = begin(&way, (pl_team){2, pl_isa_of_machine()});
    pl_graph *g = without_loads(compiled(&way));
    reference *r = reference_create(g);
    interpret_weights(r, g);
    interpret(r, g, "train", 1);
    interpret(r, g, "evaluate", 2);
    run(&p, "train", 1);
    run(&p, "evaluate", 2);
    pl_id prediction = PL_NONE;
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_STORE) prediction = g->node[i].in[0];
    double sums[2] = {0};
    add_squares(sums, p.prediction, reference_address(r, prediction), BATCH);
    assert_true(sqrt(sums[0] / sums[1]) < 1e-4);
    const double loss = *(double *)pl_program_find(p.p, "evaluate.loss"), want = *reference_find(r, "evaluate.loss");
    assert_true(fabs(loss - want) < 1e-4 * fabs(want));
    end(&p);
    reference_destroy(r);
    pl_graph_destroy(g);
}

/* ---- what is computed again ---- */

static void same_bits(process *a, process *b)
{
    const pl_graph *g = a->plan->graph;
    size_t compared = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (v->program != PL_NONE || v->role == PL_ROLE_INPUT || v->update_of != PL_NONE) continue;
        pl_id there = pl_graph_find_value(b->plan->graph, v->name);
        assert_int_not_equal(there, PL_NONE);
        if (memcmp(pl_program_address(a->p, (pl_id)i), pl_program_address(b->p, there), pl_value_bytes(g, (pl_id)i)))
            fail_msg("%s has other bits", v->name);
        compared++;
    }
    assert_true(compared > 30);
}

/* Weights, moments and running statistics after some steps, however much is computed again. */
static void recompute_keeps_the_bits(void **state)
{
    (void)state;
    static const pl_recompute_rule rules[] = {PL_RECOMPUTE_NOTHING, PL_RECOMPUTE_CHEAP, PL_RECOMPUTE_FULL};
    static const pl_dtype precisions[] = {PL_DTYPE_F32, PL_DTYPE_BF16};
    for (int k = 0; k < 2; k++)
        for (int early = 0; early < 2; early++) {
            process p[3];
            for (int i = 0; i < 3; i++) {
                const road way = {.c = config_of((const char *[]){TINY, "temporal_frames", "3", NULL}),
                                  .recompute = rules[i],
                                  .early = early,
                                  .update = true,
                                  .precision = precisions[k]};
                p[i] = begin(&way, (pl_team){1 + i, pl_isa_of_machine()});
                for (uint64_t step = 1; step <= STEPS; step++) run(&p[i], "train", step);
            }
            for (int i = 1; i < 3; i++) same_bits(&p[0], &p[i]);
            for (int i = 0; i < 3; i++) end(&p[i]);
        }
}

/* The bytes that are alive at most: with all frames kept it is all of them, recomputed one by one it is one. */
static void a_frame_at_a_time_is_kept(void **state)
{
    static const char *const frames[] = {"2", "8"};
    uint64_t bytes[2][2];
    (void)state;
    for (int full = 0; full < 2; full++)
        for (int i = 0; i < 2; i++) {
            pl_error err = {0};
            pl_plan *plan;
            pl_plan_options o = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default(), .quick = true};
            const road way = {.c = config_of((const char *[]){SMALL_CHANNELS, "temporal_frames", frames[i], NULL}),
                              .recompute = full ? PL_RECOMPUTE_FULL : PL_RECOMPUTE_NOTHING};
            must(pl_plan_create(compiled(&way), &o, &plan, &err), &err);
            bytes[full][i] = plan->arena->bytes;
            pl_plan_destroy(plan);
        }
    const uint64_t frame = sizeof(float) * BATCH * SIDE * WIDE * 8; /* what the first convolution makes of one */
    assert_true(bytes[0][1] - bytes[0][0] > 6 * 2 * frame);
    assert_true(bytes[1][1] - bytes[1][0] < 6 * frame / 2);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_the_book),
        cmocka_unit_test(first_values_are_those_of_the_book),
        cmocka_unit_test(other_lengths_make_legal_graphs),
        cmocka_unit_test(frames_that_are_too_small_are_refused),
        cmocka_unit_test(sizes_beyond_counting_are_refused),
        cmocka_unit_test(layer_major_order_is_not_for_it),
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(programs_are_those_of_the_interpreter),
        cmocka_unit_test(evaluation_is_that_of_the_interpreter),
        cmocka_unit_test(recompute_keeps_the_bits),
        cmocka_unit_test(a_frame_at_a_time_is_kept),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "reference/tiny.h"

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
#include "reference/state.h"
#include "rewrite/passes.h"
#include "support/load.h"

enum { STREAM_ROLL = 1, STREAM_TOKEN = 2, STREAM_TARGET = 3, STREAM_WEIGHT = 4 };

static uint32_t bits_of(uint64_t seed, uint64_t stream, uint64_t a, uint64_t b, uint64_t c)
{
    pl_philox philox = pl_philox_init(seed, stream);
    uint32_t bits[4];
    pl_philox_block(&philox, (uint32_t)a, b, (uint32_t)c, bits);
    return bits[0];
}

double tiny_uniform(uint64_t seed, uint64_t a, uint64_t b) { return bits_of(seed, STREAM_WEIGHT, a, b, 0) * 0x1p-32; }

int64_t tiny_roll(tiny *t, int64_t low, int64_t high)
{
    return low + bits_of(t->seed, STREAM_ROLL, 0, t->rolls++, 0) % (high - low + 1);
}

static void random_model(tiny *t)
{
    pl_config_model *m = &t->config.model;
    m->arch = tiny_roll(t, 0, 2) ? PL_ARCH_GPT : PL_ARCH_MLP;
    m->heads = tiny_roll(t, 1, 3);
    m->width = m->heads *
               tiny_roll(t, m->heads == 1 ? 4 : 2, 6); /* a norm over 2 numbers is a sign: no derivative to speak of */
    m->layers = tiny_roll(t, 1, 2);
    m->sequence = tiny_roll(t, 1, 6);
    m->feed_forward = tiny_roll(t, 0, 1) ? PL_CONFIG_AUTO : tiny_roll(t, 3, 11);
    m->window = tiny_roll(t, 1, 4);
    m->norm = tiny_roll(t, 0, 1) ? PL_NORM_LAYER_NORM : PL_NORM_RMS_NORM;
    m->activation = (pl_config_activation)tiny_roll(t, 0, 3);
    m->bias = tiny_roll(t, 0, 1);
    m->attention_bias = tiny_roll(t, 0, 1);
    m->tie_embeddings = tiny_roll(t, 0, 1);
    m->dropout = tiny_roll(t, 0, 1) ? 0.3 : 0;
    m->init_std = 0.4;
}

void tiny_random(tiny *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    pl_config_default(&t->config);
    t->seed = seed;
    random_model(t);
    t->vocab = tiny_roll(t, 5, 19);
    t->micro = tiny_roll(t, 1, 3);
    t->trips = (uint64_t)tiny_roll(t, 1, 3);
    t->config.train.seed = (int64_t)seed;
    t->config.train.epsilon = 1e-3; /* so that an update is smooth where a gradient is nearly 0 */
    t->config.train.grad_clip = tiny_roll(t, 0, 1) ? 0.5 : 0;
    t->recompute = t->fuse = t->in_place = true;
}

void tiny_print(const tiny *t)
{
    const pl_config_model *m = &t->config.model;
    fprintf(stderr,
            "seed %llu: %s vocab %lld width %lld heads %lld layers %lld T %lld window %lld norm %d act %d bias %d "
            "attention_bias %d "
            "tied %d dropout %g clip %g micro %lld trips %llu missing %llu recompute %d fuse %d in_place %d "
            "update_early %d layer_major %lld "
            "keep %lld feed_forward_rows %lld frozen %d\n",
            (unsigned long long)t->seed, m->arch == PL_ARCH_GPT ? "gpt" : "mlp", (long long)t->vocab,
            (long long)m->width, (long long)m->heads, (long long)m->layers, (long long)m->sequence,
            (long long)m->window, (int)m->norm, (int)m->activation, m->bias, m->attention_bias, m->tie_embeddings,
            m->dropout, t->config.train.grad_clip, (long long)t->micro, (unsigned long long)t->trips,
            (unsigned long long)t->missing, t->recompute, t->fuse, t->in_place, t->update_early,
            (long long)t->layer_major, (long long)t->layer_major_keep, (long long)t->feed_forward_rows, t->frozen);
}

/* ---- data ---- */

int32_t tiny_token(const tiny *t, uint64_t step, uint64_t sample, int64_t place)
{
    return (int32_t)(bits_of(t->seed, STREAM_TOKEN, step, sample, (uint64_t)place) % (uint64_t)t->vocab);
}

int32_t tiny_target(const tiny *t, uint64_t step, uint64_t sample, int64_t place)
{
    uint32_t bits = bits_of(t->seed, STREAM_TARGET, step, sample, (uint64_t)place);
    if (sample + t->missing >= (uint64_t)t->micro * t->trips) return -1;
    return sample + (uint64_t)place > 0 && bits >> 29 == 0 ? -1 : (int32_t)(bits % (uint64_t)t->vocab);
}

double tiny_token_scale(const tiny *t, uint64_t step)
{
    uint64_t counted = 0, samples = (uint64_t)t->micro * t->trips;
    for (uint64_t s = 0; s < samples; s++)
        for (int64_t i = 0; i < t->config.model.sequence; i++) counted += tiny_target(t, step, s, i) >= 0;
    return 1 / (double)counted;
}

/* ---- graphs ---- */

static void must(pl_status status, const pl_error *err, const tiny *t)
{
    if (status == PL_OK) return;
    if (t) tiny_print(t);
    fail_msg("%s: %s", pl_status_name(status), err->text);
}

void tiny_check(const pl_graph *g, pl_graph_stage stage)
{
    pl_error err = {0};
    must(pl_graph_check(g, stage, &err), &err, NULL);
}

/* Behind each pass the graph is as legal as its stage asks. */
static void check_pass(void *context, pl_pass pass, pl_graph *g)
{
    const tiny *t = context;
    pl_error err = {0};
    for (size_t i = 0; i < g->value_count && t->keep_gradients && pass == PL_PASS_BIND_BATCH; i++)
        if (g->value[i].role == PL_ROLE_GRADIENT) g->value[i].role = PL_ROLE_OUTPUT;
    if (pl_graph_check(g, pass < PL_PASS_BIND_BATCH ? PL_STAGE_GRAD : PL_STAGE_BOUND, &err) != PL_OK) {
        fprintf(stderr, "after the pass \"%s\":\n", pl_pass_name(pass));
        must(err.status, &err, t);
    }
}

static void rewrite(const tiny *t, pl_graph *g, pl_pass first, pl_pass end)
{
    pl_error err = {0};
    pl_rewrites r = {.micro_batch = t->micro,
                     .trips = t->trips,
                     .precision = t->precision,
                     .feed_forward_rows = t->feed_forward_rows,
                     .layer_major = t->layer_major,
                     .layer_major_keep = t->layer_major_keep,
                     .recompute = t->decision    ? PL_RECOMPUTE_LISTED
                                  : t->recompute ? PL_RECOMPUTE_CHEAP
                                                 : PL_RECOMPUTE_NOTHING,
                     .decision = t->decision,
                     .moments = t->moments,
                     .update_early = t->update_early,
                     .without = (t->update ? 0 : 1u << PL_PASS_OPTIMIZER_STATE) | (t->fuse ? 0 : 1u << PL_PASS_FUSE) |
                                (t->in_place ? 0 : 1u << PL_PASS_IN_PLACE),
                     .after = check_pass,
                     .context = (void *)(uintptr_t)t};
    must(pl_rewrite_passes(g, &r, first, end, &err), &err, t);
}

bool tiny_is_frozen(const tiny *t, const char *weight)
{
    return 100 * tiny_uniform(t->seed + 1, pl_stream_id(weight), 0) < t->frozen;
}

pl_graph *tiny_model(const tiny *t)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    must(pl_model_build(&t->config, PL_FACT("vocab", t->vocab), &g, &err), &err, t);
    for (size_t i = 0; i < g->value_count; i++)
        g->value[i].frozen = g->value[i].role == PL_ROLE_WEIGHT && tiny_is_frozen(t, g->value[i].name);
    tiny_check(g, PL_STAGE_MODEL);
    return g;
}

pl_graph *tiny_forward(const tiny *t)
{
    pl_graph *g = tiny_model(t);
    rewrite(t, g, PL_PASS_BIND_BATCH, PL_PASS_UPDATE_ORDER);
    return g;
}

static void add_update(const tiny *t, pl_graph *g, pl_id train)
{
    const pl_config_train *c = &t->config.train;
    pl_error err = {0};
    pl_grad_update u = {c->beta1,
                        c->beta2,
                        c->epsilon,
                        c->weight_decay,
                        c->grad_clip,
                        pl_graph_find_value(g, "input.lr"),
                        pl_graph_find_value(g, "input.step"),
                        t->seed,
                        c->optimizer == PL_OPTIMIZER_ADAM_ATAN2,
                        c->ema_rate};
    must(pl_grad_add_update(g, train, &u, &err), &err, t);
    must(pl_grad_read_averages(g, &err), &err, t);
    tiny_check(g, PL_STAGE_GRAD);
}

pl_graph *tiny_differentiated(const tiny *t)
{
    pl_error err = {0};
    pl_graph *g = tiny_model(t);
    pl_id train = pl_graph_find_program(g, "train");
    must(pl_grad_differentiate(g, train, &err), &err, t);
    tiny_check(g, PL_STAGE_GRAD);
    if (t->update) add_update(t, g, train);
    rewrite(t, g, 0, PL_PASS_RECOMPUTE);
    return g;
}

pl_graph *tiny_compiled(const tiny *t)
{
    pl_graph *g = tiny_differentiated(t);
    rewrite(t, g, PL_PASS_RECOMPUTE, PL_PASS_COUNT);
    return g;
}

pl_plan *tiny_plan(const tiny *t, pl_team team)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_plan_options options = {.team = team, .process = pl_process_options_default()};
    must(pl_plan_create(tiny_compiled(t), &options, &plan, &err), &err, t);
    must(pl_plan_check(plan, &err), &err, t);
    return plan;
}

/* ---- the interpreter ---- */

/* How far a weight is moved from its first value: by its name, for rewrites may give it another id. */
static double shift_of(const tiny *t, const pl_graph *g, pl_id weight, uint64_t elem)
{
    return (float)(0.6 * tiny_uniform(t->seed, pl_stream_id(g->value[weight].name), elem) - 0.3);
}

void tiny_reference_weights(const tiny *t, reference *r)
{
    const pl_graph *g = r->graph;
    reference_run_named(r, "init", NULL, NULL);
    for (size_t i = 0; i < g->value_count; i++) {
        if (g->value[i].role != PL_ROLE_WEIGHT || g->value[i].program != PL_NONE || g->value[i].update_of != PL_NONE)
            continue; /* neither an update nor a copy of 16 bits */
        double *w = reference_address(r, (pl_id)i);
        for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++) w[e] = (float)(w[e] + shift_of(t, g, (pl_id)i, e));
    }
}

typedef struct reference_feed {
    const tiny *t;
    reference *r;
    uint64_t step;
} reference_feed;

static void load_reference(void *context, uint64_t iteration, int64_t count, double *tokens, double *targets)
{
    const reference_feed *f = context;
    int64_t length = f->t->config.model.sequence;
    uint64_t first = iteration * (uint64_t)f->t->micro;
    *reference_find(f->r, "input.first_sample") = (double)(f->step * 1000 + first);
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = tiny_token(f->t, f->step, first + (uint64_t)(i / length), i % length);
        targets[i] = tiny_target(f->t, f->step, first + (uint64_t)(i / length), i % length);
    }
}

void tiny_reference_step(const tiny *t, reference *r, const char *program, uint64_t step)
{
    reference_feed feed = {t, r, step};
    *reference_find(r, "input.lr") = (float)0.01;
    *reference_find(r, "input.step") = (double)step;
    *reference_find(r, "input.token_scale") = (float)tiny_token_scale(t, step);
    reference_run_named(r, program, load_reference, &feed);
}

/* ---- the compiled program ---- */

tiny_run tiny_run_begin(const tiny *t, pl_team team)
{
    pl_error err = {0};
    tiny_run run = {.plan = tiny_plan(t, team)};
    run.memory = aligned_alloc(PL_PLAN_ALIGNMENT,
                               (run.plan->arena->bytes + PL_PLAN_ALIGNMENT) / PL_PLAN_ALIGNMENT * PL_PLAN_ALIGNMENT);
    assert_non_null(run.memory);
    memset(run.memory, 0xFF, run.plan->arena->bytes); /* f32 and f64 not-a-number, integers −1 */
    must(pl_program_create(run.plan, run.memory, run.plan->arena->bytes, &run.program, &err), &err, t);
    return run;
}

void tiny_run_end(tiny_run *run)
{
    pl_program_destroy(run->program);
    pl_plan_destroy(run->plan);
    free(run->memory);
}

static void run_named(const tiny *t, tiny_run *run, const char *name, const pl_program_hooks *hooks)
{
    pl_error err = {0};
    must(pl_program_run(run->program, pl_graph_find_program(run->plan->graph, name), hooks, &err), &err, t);
}

void tiny_run_weights(const tiny *t, tiny_run *run)
{
    const pl_graph *g = run->plan->graph;
    pl_program_hooks none = {0};
    run_named(t, run, "init", &none);
    for (size_t i = 0; i < g->value_count; i++) {
        if (g->value[i].role != PL_ROLE_WEIGHT || g->value[i].program != PL_NONE || g->value[i].update_of != PL_NONE)
            continue; /* neither an update nor a copy of 16 bits */
        float *w = pl_program_address(run->program, (pl_id)i);
        for (uint64_t e = 0; e < pl_shape_elems(&g->value[i].shape); e++)
            w[e] = (float)(w[e] + shift_of(t, g, (pl_id)i, e));
    }
}

typedef struct run_feed {
    const tiny *t;
    tiny_run *run;
    uint64_t step;
} run_feed;

static pl_status load_run(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)err;
    const run_feed *f = context;
    int64_t length = f->t->config.model.sequence;
    uint64_t first = pl_trips_last(trips) * (uint64_t)f->t->micro;
    int64_t *sample = pl_program_find(f->run->program, "input.first_sample");
    *sample = (int64_t)(f->step * 1000 + first);
    if (call->first_sample) *call->first_sample = *sample;
    for (int64_t i = 0; i < load_count(call); i++) {
        load_tokens(call)[i] = tiny_token(f->t, f->step, first + (uint64_t)(i / length), i % length);
        load_targets(call)[i] = tiny_target(f->t, f->step, first + (uint64_t)(i / length), i % length);
    }
    return PL_OK;
}

void tiny_run_step(const tiny *t, tiny_run *run, const char *program, uint64_t step)
{
    run_feed feed = {t, run, step};
    pl_program_hooks hooks = {.load = load_run, .context = &feed};
    *(float *)pl_program_find(run->program, "input.lr") = 0.01f;
    *(int64_t *)pl_program_find(run->program, "input.step") = (int64_t)step;
    *(float *)pl_program_find(run->program, "input.token_scale") = (float)tiny_token_scale(t, step);
    run_named(t, run, program, &hooks);
}

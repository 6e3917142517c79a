/* One training step of the model of cloud heights and an evaluation behind it, for clouds.py: every tensor as a line
 * "name dim dim …" and its numbers in f32 behind it. Nothing is dropped, so that another program can do the same.
 * Usage: plimsoll_clouds HEIGHT WIDTH BATCH SEED [KEY VALUE]... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "grad/differentiate.h"
#include "models/model.h"
#include "plan/plan.h"
#include "rewrite/passes.h"
#include "run/program.h"

enum { FIRST = 5, PORTS = 3 };
static const char *const port_names[PORTS] = {"images", "angles", "target"};

static void must(pl_status status, const pl_error *err)
{
    if (status == PL_OK) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void write_tensor(const char *prefix, const char *name, const pl_shape *s, const float *x)
{
    const uint64_t elems = pl_shape_elems(s);
    printf("%s%s", prefix, name);
    for (uint32_t d = 0; d < s->rank; d++) printf(" %lld", (long long)s->dim[d]);
    printf("\n");
    if (fwrite(x, sizeof *x, elems, stdout) != elems) exit(1);
}

typedef struct job {
    uint64_t seed;
    const pl_graph *graph;
    const char *program;
} job;

static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const job *j = context;
    (void)trips, (void)err;
    for (uint32_t k = 0; k < PORTS; k++) {
        const pl_philox p = pl_philox_init(j->seed, k);
        const uint64_t count = call->port[k].bytes / sizeof(float);
        char name[64];
        pl_philox_normal_f32(&p, 0, 0, 0, count, call->port[k].at);
        snprintf(name, sizeof name, "%s.%s", j->program, port_names[k]);
        write_tensor(name, "", &j->graph->value[pl_graph_find_value(j->graph, name)].shape, call->port[k].at);
    }
    return PL_OK;
}

static pl_status store(void *context, const pl_trips *trips, const pl_store_call *call, pl_error *err)
{
    const pl_shape s = pl_shape_of(1, (int64_t)(call->port[0].bytes / sizeof(float)));
    (void)context, (void)trips, (void)err;
    write_tensor("", "prediction", &s, call->port[0].at);
    return PL_OK;
}

static void drop_nothing(pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_DROPOUT || g->node[i].op == PL_OP_CHANNEL_DROPOUT) g->node[i].attr[0].f = 0;
}

/* Gradients are still there when the program has run. */
static void keep_gradients(void *context, pl_pass pass, pl_graph *g)
{
    (void)context;
    for (size_t i = 0; i < g->value_count && pass == PL_PASS_BIND_BATCH; i++)
        if (g->value[i].role == PL_ROLE_GRADIENT) g->value[i].role = PL_ROLE_OUTPUT;
}

static pl_plan *plan_of(int argc, char **argv, const pl_config *c)
{
    pl_error err = {0};
    pl_facts e = {0};
    pl_graph *g = NULL;
    pl_plan *plan = NULL;
    const pl_rewrites r = {
        .micro_batch = atoll(argv[3]), .trips = 1, .recompute = PL_RECOMPUTE_FULL, .after = keep_gradients};
    const pl_plan_options o = {.team = {2, pl_isa_of_machine()}, .process = pl_process_options_default()};
    (void)argc;
    pl_facts_add(&e, "height", (uint64_t)atoll(argv[1]));
    pl_facts_add(&e, "width", (uint64_t)atoll(argv[2]));
    must(pl_model_build(c, &e, &g, &err), &err);
    drop_nothing(g);
    must(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), &err);
    must(pl_rewrite_passes(g, &r, 0, PL_PASS_COUNT, &err), &err);
    must(pl_plan_create(g, &o, &plan, &err), &err);
    return plan;
}

static void write_values(const pl_plan *plan, pl_program *p, const char *prefix, bool gradients)
{
    const pl_graph *g = plan->graph;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        const bool lasts = (v->role == PL_ROLE_WEIGHT || v->inference) && v->program == PL_NONE;
        const bool gradient = strncmp(v->name, "grad.", 5) == 0 && v->role == PL_ROLE_OUTPUT;
        if ((gradients ? gradient : lasts) && v->update_of == PL_NONE)
            write_tensor(prefix, v->name, &v->shape, pl_program_address(p, (pl_id)i));
    }
}

static void run(const pl_plan *plan, pl_program *p, const char *name, uint64_t seed)
{
    pl_error err = {0};
    job j = {seed, plan->graph, name};
    must(pl_program_run(p, pl_graph_find_program(plan->graph, name),
                        &(pl_program_hooks){.load = load, .store = store, .context = &j}, &err),
         &err);
}

int main(int argc, char **argv)
{
    static pl_config c;
    pl_error err = {0};
    pl_program *p = NULL;
    if (argc < FIRST) return 2;
    const uint64_t seed = strtoull(argv[4], NULL, 10);
    pl_config_default(&c);
    c.model.arch = PL_ARCH_CLOUDS;
    c.train.seed = (int64_t)(seed & INT32_MAX);
    for (int i = FIRST; i + 1 < argc; i += 2) must(pl_config_set(&c, argv[i], argv[i + 1], "the test", &err), &err);
    pl_plan *plan = plan_of(argc, argv, &c);
    const uint64_t bytes = (plan->arena->bytes / PL_PLAN_ALIGNMENT + 1) * PL_PLAN_ALIGNMENT;
    void *memory = aligned_alloc(PL_PLAN_ALIGNMENT, bytes);
    if (!memory) return 1;
    must(pl_program_create(plan, memory, bytes, &p, &err), &err);
    run(plan, p, "init", seed);
    write_values(plan, p, "first:", false);
    *(float *)pl_program_find(p, "input.lr") = 0;
    *(int64_t *)pl_program_find(p, "input.step") = 1;
    *(int64_t *)pl_program_find(p, "input.first_sample") = 0;
    *(float *)pl_program_find(p, "input.token_scale") = 1 / (float)atoll(argv[3]);
    run(plan, p, "train", seed);
    write_values(plan, p, "", true);
    write_values(plan, p, "then:", false);
    run(plan, p, "evaluate", seed + 1);
    pl_program_destroy(p);
    pl_plan_destroy(plan);
    free(memory);
    return 0;
}

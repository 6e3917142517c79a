/* bench_predict [--threads N] [--isa LEVEL] [--micro_batch N] [--batch_size N] [--steps N] [--huge 0|1] [--cache FILE]
 *               [--seconds S] [--mib N] [--patience S] [--brief] [--width N] [--layers N] …: predicts the time of a
 * training step from a calibration, then measures real steps of the planned program in the same process, and prints
 * both per kind of node. Options that it does not know go to the configuration. Other work on the machine disturbs: up
 * to --patience seconds (default 20) are spent to get --steps steps during which others used less than 5 % of the
 * processors (/proc/stat). With --brief (bench.h) a tiny model is the default, a short calibration and a single
 * step, disturbed or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/machine.h"
#include "bench.h"
#include "calibrate/calibrate.h"
#include "config/config.h"
#include "gemm_rate.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "models/model.h"
#include "rewrite/passes.h"
#include "run/arena.h"
#include "run/program.h"

enum { STEPS_MAX = 1000 };

typedef struct request {
    pl_config config;
    pl_calibration_options calibration;
    int64_t micro_batch;
    int steps;
    double patience;
    const char *cache;
} request;

/* Removes "--name value" from argv; NULL when it is not there. */
static const char *take(int *argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0) continue;
        const char *value = argv[i + 1];
        memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof *argv);
        *argc -= 2;
        return value;
    }
    return NULL;
}

static void set_defaults(request *r)
{
    r->calibration.team = (pl_team){2, pl_isa_of_machine()};
    r->calibration.huge_pages = true;
    r->micro_batch = 1;
    r->steps = bench_samples(10);
    r->patience = bench_sample_seconds(20);
    pl_config_default(&r->config);
    if (!bench_is_brief()) return;
    r->config.model.width = 32;
    r->config.model.layers = 1;
    r->config.model.heads = 2;
    r->config.model.sequence = 16;
    r->config.train.batch_size = 2;
    r->calibration.seconds_max = 0.05;
    r->calibration.bytes_max = UINT64_C(1) << 20;
}

/* What no single option can tell. */
static pl_status check(const request *r, pl_error *err)
{
    PL_TRY(pl_config_check(&r->config, err));
    if (r->calibration.team.threads < 1 || r->steps < 1 || r->steps > STEPS_MAX)
        return pl_fail(err, PL_E_USAGE, "--threads or --steps is out of range");
    if (r->calibration.team.isa > pl_isa_of_machine())
        return pl_fail(err, PL_E_USAGE, "--isa %s is more than this processor has",
                       pl_isa_name(r->calibration.team.isa));
    if (r->micro_batch < 1 || r->config.train.batch_size % r->micro_batch != 0)
        return pl_fail(err, PL_E_USAGE, "--micro_batch %lld does not divide the batch of %lld",
                       (long long)r->micro_batch, (long long)r->config.train.batch_size);
    return PL_OK;
}

static pl_status parse(int argc, char **argv, request *r, pl_error *err)
{
    const char *value;
    set_defaults(r);
    if ((value = take(&argc, argv, "--threads"))) r->calibration.team.threads = atoi(value);
    if ((value = take(&argc, argv, "--isa")) && pl_isa_parse(value, &r->calibration.team.isa))
        return pl_fail(err, PL_E_USAGE, "--isa %s is unknown", value);
    if ((value = take(&argc, argv, "--micro_batch"))) r->micro_batch = atoll(value);
    if ((value = take(&argc, argv, "--steps"))) r->steps = atoi(value);
    if ((value = take(&argc, argv, "--huge"))) r->calibration.huge_pages = atoi(value) != 0;
    if ((value = take(&argc, argv, "--seconds"))) r->calibration.seconds_max = atof(value);
    if ((value = take(&argc, argv, "--mib"))) r->calibration.bytes_max = (uint64_t)atoll(value) << 20;
    if ((value = take(&argc, argv, "--patience"))) r->patience = atof(value);
    r->cache = take(&argc, argv, "--cache");
    PL_TRY(pl_config_apply_args(&r->config, &argc, argv, err));
    return argc > 1 ? pl_fail(err, PL_E_USAGE, "%s is unknown", argv[1]) : check(r, err);
}

static pl_status build(const request *r, pl_graph **graph, pl_error *err)
{
    const pl_config *c = &r->config;
    PL_TRY(pl_model_build(c, PL_FACT("vocab", 788), graph, err));
    pl_graph *g = *graph;
    pl_id train = pl_graph_find_program(g, "train");
    pl_grad_update update = {c->train.beta1,
                             c->train.beta2,
                             c->train.epsilon,
                             c->train.weight_decay,
                             c->train.grad_clip,
                             pl_graph_find_value(g, "input.lr"),
                             pl_graph_find_value(g, "input.step")};
    PL_TRY(pl_grad_differentiate(g, train, err));
    PL_TRY(pl_grad_add_update(g, train, &update, err));
    pl_rewrites rewrites = {.micro_batch = r->micro_batch,
                            .trips = (uint64_t)(c->train.batch_size / r->micro_batch),
                            .recompute = PL_RECOMPUTE_CHEAP};
    return pl_rewrite_passes(g, &rewrites, 0, PL_PASS_COUNT, err);
}

/* Random text: what decides the time is how many tokens there are. */
static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)trips, (void)err;
    unsigned *state = context;
    int32_t *tokens = call->port[0].at, *targets = call->port[1].at;
    for (size_t i = 0; i < call->port[0].bytes / sizeof *tokens; i++) {
        *state = *state * 1664525u + 1013904223u;
        double u = (double)(*state >> 8) * 0x1p-24;
        tokens[i] = (int32_t)(u * u * 788);
        targets[i] = tokens[i] / 2;
    }
    return PL_OK;
}

static void set_inputs(pl_program *p, int64_t step)
{
    *(float *)pl_program_find(p, "input.lr") = 1e-4f;
    *(int64_t *)pl_program_find(p, "input.step") = step;
    *(float *)pl_program_find(p, "input.token_scale") = 1.0f / 4096;
    *(int64_t *)pl_program_find(p, "input.first_sample") = 0;
    *(int64_t *)pl_program_find(p, "input.position") = 0;
}

/* Seconds of all processors spent by anybody, and by this process. */
typedef struct usage {
    double all, own, wall;
} usage;

static usage read_usage(void)
{
    unsigned long long user = 0, nice = 0, system = 0, idle, io, irq = 0, soft = 0, steal = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &io, &irq, &soft,
                    &steal) != 8)
        user = 0;
    if (f) fclose(f);
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (usage){(double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK),
                   (double)t.tv_sec + 1e-9 * (double)t.tv_nsec, bench_seconds()};
}

/* The kernel counts in hundredths of a second, our own time is exact: over a short while the difference may be less
 * than nothing. */
static double foreign_share(usage from, usage to)
{
    double foreign = to.all - from.all - (to.own - from.own);
    return foreign > 0 ? foreign / (to.wall - from.wall) / (double)sysconf(_SC_NPROCESSORS_ONLN) : 0;
}

/* Steps that were disturbed are made again while there is patience; how many were quiet is returned. */
static pl_status run_steps(const pl_plan *plan, pl_program *p, const request *r, double *step, double *cpu,
                           double *node, int *quiet, pl_error *err)
{
    unsigned state = 1;
    pl_id train = pl_graph_find_program(plan->graph, "train");
    pl_program_hooks hooks = {.load = load, .context = &state};
    set_inputs(p, 1);
    PL_TRY(pl_program_run(p, pl_graph_find_program(plan->graph, "init"), &hooks, err));
    PL_TRY(pl_program_run(p, train, &hooks, err)); /* warm-up */
    double begin = bench_seconds();
    *quiet = 0;
    for (int s = 0, number = 2; s < r->steps; number++) {
        double *seconds = &node[(size_t)s * plan->graph->node_count];
        memset(seconds, 0, plan->graph->node_count * sizeof *seconds);
        set_inputs(p, number);
        hooks.seconds = seconds;
        usage before = read_usage();
        PL_TRY(pl_program_run(p, train, &hooks, err));
        usage after = read_usage();
        step[s] = after.wall - before.wall;
        cpu[s] = after.own - before.own;
        bool undisturbed = foreign_share(before, after) < 0.05;
        if (!undisturbed && bench_seconds() - begin < r->patience) continue;
        *quiet += undisturbed;
        s++;
    }
    return PL_OK;
}

/* Predicted over measured; in words where one of them is missing. */
static const char *print_ratio(char text[static 16], double predicted, double measured)
{
    if (predicted >= 0 && measured > 0)
        snprintf(text, 16, "%.3f", predicted / measured);
    else
        snprintf(text, 16, "unknown");
    return text;
}

static const char *print_ms(char text[static 24], double seconds)
{
    if (seconds >= 0)
        snprintf(text, 24, "%.2f ms", seconds * 1e3);
    else
        snprintf(text, 24, "unknown");
    return text;
}

static void print_kind(int kind, double predicted, double measured)
{
    char time[24], ratio[16];
    printf("%-16s %-9s %11s %8.2f ms %7s\n", pl_op_name((pl_op)(kind / PL_PHASE_COUNT)),
           pl_phase_name((pl_phase)(kind % PL_PHASE_COUNT)), print_ms(time, predicted), measured * 1e3,
           print_ratio(ratio, predicted, measured));
}

/* Per kind of node: predicted, and the median over the steps of what was measured. */
static void print_kinds(const pl_plan *plan, int steps, const double *node)
{
    const pl_graph *g = plan->graph;
    pl_id train = pl_graph_find_program(g, "train");
    printf("%-16s %-9s %10s %10s %7s\n", "operator", "phase", "predicted", "measured", "ratio");
    for (int kind = 0; kind < PL_OP_COUNT * PL_PHASE_COUNT; kind++) {
        bool known = true; /* a sum that lacks a part is no prediction */
        double predicted = 0, measured[STEPS_MAX] = {0};
        for (size_t i = 0; i < g->node_count; i++) {
            const pl_node *n = &g->node[i];
            if ((int)n->op * PL_PHASE_COUNT + (int)n->phase != kind || pl_region_program(g, n->region) != train)
                continue;
            if (plan->seconds[i] < 0) known = false;
            predicted += plan->seconds[i] * (double)pl_node_trips(g, n);
            for (int s = 0; s < steps; s++) measured[s] += node[(size_t)s * g->node_count + i];
        }
        qsort(measured, (size_t)steps, sizeof *measured, bench_ascending);
        double median = measured[steps / 2];
        if (!known || predicted > 0 || median > 0) print_kind(kind, known ? predicted : -1, median);
    }
}

static void print_load(void)
{
    char line[128] = "unknown\n";
    FILE *f = fopen("/proc/loadavg", "r");
    if (f && !fgets(line, sizeof line, f)) strcpy(line, "unknown\n");
    if (f) fclose(f);
    printf("load %s", line);
}

/* Training FLOP/s (6·parameters·tokens, attention counted causal, three times the forward pass) over the rate of the
 * model's own matrix products, each at its best number of rows, on the same team in the same run. */
static pl_status print_yardstick(const request *r, double step_seconds, pl_error *err)
{
    const pl_config_model *m = &r->config.model;
    if (m->arch != PL_ARCH_GPT) return PL_OK;
    static const int64_t rows[] = {128, 256, 512, 1024};
    double d = (double)m->width, f = (double)pl_config_feed_forward(&r->config), t = (double)m->sequence,
           layers = (double)m->layers;
    double tokens = (double)r->config.train.batch_size * t,
           parameters = 788 * d + t * d + layers * (4 * d * d + 2 * d * f + f + d + 4 * d) + 2 * d;
    double attention = 3 * layers * tokens * t * d * 2; /* 4·T·D a token and layer, half of it masked */
    double rate = bench_gemm_rate(&(bench_model){m->width, pl_config_feed_forward(&r->config), 788, m->layers}, rows,
                                  bench_samples(4), r->calibration.team);
    if (rate < 0) return pl_fail(err, PL_E_NOMEM, "no memory for the model's matrix products alone");
    double flops = (6 * parameters * tokens + attention) / step_seconds;
    printf("training %.1f GFLOP/s, %.0f tokens/s; the model's matrix products alone %.1f GFLOP/s: ratio %.3f\n",
           flops * 1e-9, tokens / step_seconds, rate * 1e-9, flops / rate);
    return PL_OK;
}

static void print_step(const pl_plan *plan, int steps, int quiet, double *step)
{
    char time[24], to_median[16], to_fastest[16];
    double predicted = pl_plan_program_seconds(plan, pl_graph_find_program(plan->graph, "train"));
    qsort(step, (size_t)steps, sizeof *step, bench_ascending);
    printf("step: predicted %s, measured median %.2f ms (fastest %.2f; %d of %d quiet), ratio %s (to the fastest %s)\n",
           print_ms(time, predicted), step[steps / 2] * 1e3, step[0] * 1e3, quiet, steps,
           print_ratio(to_median, predicted, step[steps / 2]), print_ratio(to_fastest, predicted, step[0]));
}

/* What a thread that is alone got, whoever else was waiting. */
static void print_processor_time(const pl_plan *plan, int steps, double *cpu)
{
    char ratio[16];
    double predicted = pl_plan_program_seconds(plan, pl_graph_find_program(plan->graph, "train"));
    qsort(cpu, (size_t)steps, sizeof *cpu, bench_ascending);
    printf("      processor time median %.2f ms, ratio %s\n", cpu[steps / 2] * 1e3,
           print_ratio(ratio, predicted, cpu[steps / 2]));
}

static pl_status measure(const pl_plan *plan, const request *r, pl_error *err)
{
    pl_status status;
    pl_arena arena = {0};
    pl_program *program = NULL;
    int quiet = 0;
    double step[STEPS_MAX], cpu[STEPS_MAX], *node = calloc((size_t)r->steps * plan->graph->node_count, sizeof *node);
    pl_arena_options options = {"ram", plan->huge_pages};
    if (!node) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory"));
    PL_TRY_DONE(pl_arena_map(&arena, plan->arena->bytes, &options, NULL, err));
    PL_TRY_DONE(pl_program_create(plan, arena.base, arena.bytes, &program, err));
    PL_TRY_DONE(run_steps(plan, program, r, step, cpu, node, &quiet, err));
    print_kinds(plan, r->steps, node);
    print_step(plan, r->steps, quiet, step);
    PL_TRY_DONE(print_yardstick(r, step[r->steps / 2], err));
    if (plan->team.threads == 1) print_processor_time(plan, r->steps, cpu);
done:
    pl_program_destroy(program);
    pl_arena_unmap(&arena);
    free(node);
    return status;
}

static pl_status calibrate(const request *r, const pl_graph *g, pl_calibration **calibration, pl_error *err)
{
    uint64_t bytes;
    size_t missing;
    PL_TRY(pl_calibration_open(r->cache, &r->calibration, calibration, err));
    pl_calibration *c = *calibration;
    PL_TRY(pl_calibration_count_missing(c, g, &missing, err));
    PL_TRY(pl_calibration_bytes(c, g, &bytes, err));
    usage before = read_usage();
    PL_TRY(pl_calibration_measure(c, g, err));
    double foreign = missing ? foreign_share(before, read_usage()) : 0;
    PL_TRY(pl_calibration_save(c, err));
    printf("calibration: %zu of %zu keys measured in %.2f s with %.1f MB, others took %.0f %% %s\n", missing,
           pl_calibration_count(c), pl_calibration_measured_seconds(c), (double)bytes * 1e-6, 100 * foreign,
           pl_calibration_warning(c));
    return PL_OK;
}

static pl_status run(const request *r, pl_error *err)
{
    pl_status status;
    pl_graph *g = NULL;
    pl_plan *plan = NULL;
    pl_calibration *calibration = NULL;
    PL_TRY_DONE(build(r, &g, err));
    print_load();
    PL_TRY_DONE(calibrate(r, g, &calibration, err));
    pl_plan_options options = {.team = r->calibration.team,
                               .huge_pages = r->calibration.huge_pages,
                               .process = pl_process_options_default(),
                               .cost = {pl_calibration_cost, pl_calibration_range, calibration}};
    double begin = bench_seconds();
    PL_TRY_DONE(pl_plan_create(g, &options, &plan, err));
    g = NULL; /* the plan's now */
    printf("plan: %.1f ms, arena %.1f MB\n", (bench_seconds() - begin) * 1e3, (double)plan->arena->bytes * 1e-6);
    PL_TRY_DONE(measure(plan, r, err));
    print_load();
done:
    pl_plan_destroy(plan);
    pl_graph_destroy(g);
    pl_calibration_close(calibration);
    return status;
}

int main(int argc, char **argv)
{
    static request r;
    pl_error err = {0};
    bench_begin(&argc, argv,
                "bench_predict [--threads N] [--isa LEVEL] [--micro_batch N] [--steps N] [--huge 0|1] [--cache FILE] "
                "[--seconds S] [--mib N] [--patience S] [--brief] [--batch_size N, … as for plimsoll train]");
    pl_status status = parse(argc, argv, &r, &err);
    if (status == PL_OK) status = pl_process_start(&err);
    if (status == PL_OK) status = run(&r, &err);
    if (status != PL_OK) fprintf(stderr, "bench_predict: %s\n", err.text);
    if (status == PL_E_USAGE) bench_refuse();
    return pl_status_exit_code(status);
}

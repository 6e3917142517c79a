/* Models whose sizes do not fit 32 or 64 bits: dimensions drawn from the ends of their ranges, powers of two and their
 * neighbours, for every command and budget. Each gives a plan or a sentence, within seconds and with little memory of
 * the planner's own, and never a crash; what has more weights than bytes exist is never planned. Oracle: the weights of
 * the matrices alone, added up in floating point, where nothing wraps around. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/philox.h"
#include "config/config.h"
#include "plimsoll/plimsoll.h"
#include "support/program.h"
#include "support/seed.h"

/* Against what never ends: kernels are measured at the plan's own shapes in that time. Sanitizers make a search several
 * times as long. */
#if defined(__SANITIZE_ADDRESS__)
enum { TRIES = 6, SECONDS_MAX = 180 };
#else
enum { TRIES = 20, SECONDS_MAX = 60 };
#endif
enum { TEXT_LINES = 2000 };

static char folder[] = "/tmp/plimsoll-extremes-XXXXXX";
static uint64_t seed;
static pl_error err;
static const char *const commands[] = {"train", "evaluate", "generate", "gradients"};

/* ---- what is drawn ---- */

static uint64_t draw(uint64_t below)
{
    static uint64_t draws;
    uint32_t r[4];
    pl_philox p = pl_philox_init(seed, 0);
    pl_philox_block(&p, 0, draws++, 0, r);
    return ((uint64_t)r[0] << 32 | r[1]) % below;
}

/* 1 … max: mostly the ends, a power of two or one beside it. */
static int64_t extreme(int64_t max)
{
    int64_t power = INT64_C(1) << draw(64 - (uint64_t)__builtin_clzll((uint64_t)max));
    int64_t chosen[] = {1, 2, max, max - 1, power, power + 1, power - 1, 8};
    int64_t x = chosen[draw(8)];
    return x < 1 ? 1 : x > max ? max : x;
}

static void set(pl_config *c, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    if (pl_config_set(c, key, text, "test", &err)) fail_msg("%s=%s: %s", key, text, err.text);
}

/* A deep one is planned for long where it fits; this one does so nowhere. */
static int64_t draw_layers(const pl_config *c)
{
    bool deep = c->memory.budget < 100000000 && draw(4) == 0;
    return draw(2) ? 1 : deep ? 100000 - (int64_t)draw(2) : extreme(32);
}

static pl_config *small_config(const char *arch, const char *budget)
{
    const char *fixed[][2] = {{"data.text", "text.txt"},
                              {"data.tokenizer", "bytes"},
                              {"run.out", "out"},
                              {"run.threads", "1"},
                              {"model.arch", arch},
                              {"memory.budget", budget},
                              {"data.validation_fraction", "0.5"}};
    pl_config *c = pl_config_create();
    assert_non_null(c);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (pl_config_set(c, fixed[i][0], fixed[i][1], "test", &err)) fail_msg("%s", err.text);
    return c;
}

static pl_config *draw_config(pl_command command)
{
    static const char *const budgets[] = {"none", "none", "64MB", "1GB", "1048576TiB"};
    bool mlp = draw(4) == 0;
    int64_t sequence = extreme(command == PL_COMMAND_GENERATE ? 1 << 24 : 1 << 13), width = extreme(1 << 24);
    int64_t batch = extreme(1 << 24), heads = 1;
    for (uint64_t i = draw(16); i > 0 && width % (heads * 2) == 0; i--) heads *= 2;
    pl_config *c = small_config(mlp ? "mlp" : "gpt", budgets[draw(5)]);
    set(c, "model.width", width);
    set(c, "model.layers", draw_layers(c));
    set(c, "model.sequence", sequence);
    set(c, "train.batch_size", batch);
    if (draw(2)) set(c, "train.micro_batch", 1 + (int64_t)draw((uint64_t)batch));
    if (mlp) set(c, "model.window", 1 + (int64_t)draw((uint64_t)(sequence < 65536 ? sequence : 65536)));
    if (!mlp) set(c, "model.heads", heads);
    if (!mlp && draw(2)) set(c, "model.feed_forward", extreme(1 << 26));
    return c;
}

/* ---- what must come ---- */

/* Bytes of the largest matrices, at least. */
static double weight_bytes(const pl_config *c)
{
    const pl_config_model *m = &c->model;
    double d = (double)m->width, layers = (double)m->layers;
    if (m->arch == PL_ARCH_MLP) return 4 * d * d * (layers - 1);
    return 4 * layers * d * (4 * d + 2 * (double)pl_config_feed_forward(c));
}

/* Takes the config. */
static void try(pl_command command, pl_config *c)
{
    char line[512];
    pl_plan *plan = NULL;
    snprintf(line, sizeof line,
             "%s %s width %" PRId64 " layers %" PRId64 " heads %" PRId64 " feed_forward %" PRId64 " sequence %" PRId64
             " window %" PRId64 " batch %" PRId64 " in %" PRId64 " budget %" PRIu64,
             commands[command], c->model.arch == PL_ARCH_MLP ? "mlp" : "gpt", c->model.width, c->model.layers,
             c->model.heads, c->model.feed_forward, c->model.sequence, c->model.window, c->train.batch_size,
             c->train.micro_batch, c->memory.budget);
    clock_t began = clock();
    err = (pl_error){0};
    pl_status status = pl_config_check(c, &err);
    if (status == PL_OK && command != PL_COMMAND_GENERATE) status = pl_prepare(c, command, NULL, NULL, &err);
    if (status == PL_OK) status = pl_plan_make(c, command, "cache", NULL, NULL, &plan, &err);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    bool said = status == PL_E_BUDGET ? strstr(err.text, " bytes") || strstr(err.text, "2^")
                                      : status == PL_E_CONFIG && strlen(err.text) > 30;
    if (status != PL_OK && !said)
        fail_msg("seed %" PRIu64 ": %s: %s: %s", seed, line, pl_status_name(status), err.text);
    if (status == PL_OK && !((double)pl_plan_resident_bytes(plan) >= weight_bytes(c)))
        fail_msg("seed %" PRIu64 ": %s: planned in %" PRIu64 " bytes, of which weights %g", seed, line,
                 pl_plan_resident_bytes(plan), weight_bytes(c));
    if (seconds > SECONDS_MAX) fail_msg("seed %" PRIu64 ": %s: took %.1f s: %s", seed, line, seconds, err.text);
    if (getenv("PL_VERBOSE")) print_message("%s: %.2f s: %s\n", line, seconds, status == PL_OK ? "planned" : err.text);
    pl_plan_destroy(plan);
    pl_config_destroy(c);
}

static void each_gives_a_plan_or_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) try((pl_command)(i % 4), draw_config((pl_command)(i % 4)));
}

/* What a search has found: the loss of 10^11 rows at once, whose chunks were looked at one after the other. */
static void most_rows(void **state)
{
    (void)state;
    pl_config *c = small_config("gpt", "none");
    set(c, "model.width", 8);
    set(c, "model.layers", 1);
    set(c, "model.heads", 8);
    set(c, "model.sequence", 8192);
    set(c, "train.batch_size", 16777216);
    set(c, "train.micro_batch", 16741766);
    try(PL_COMMAND_EVALUATE, c);
}

/* ---- before and after ---- */

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chdir(folder)) return -1;
    FILE *f = fopen("text.txt", "w");
    if (!f) return -1;
    for (int i = 0; i < TEXT_LINES; i++) fputs("the quick brown fox jumps over the lazy dog\n", f);
    pl_config *c = pl_config_create();
    bool made = c && !pl_config_set(c, "data.text", "text.txt", "test", &err) &&
                !pl_config_set(c, "data.tokenizer", "bytes", "test", &err) &&
                !pl_config_set(c, "run.out", "out", "test", &err) && fclose(f) == 0 &&
                !pl_prepare(c, PL_COMMAND_TRAIN, NULL, NULL, &err);
    pl_config_destroy(c);
    return made ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char line[64];
    snprintf(line, sizeof line, "rm -r %s", folder);
    return chdir("/") || system(line);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
#if !defined(__SANITIZE_ADDRESS__)
    struct rlimit limit = {UINT64_C(2) << 30, UINT64_C(2) << 30};
    if (setrlimit(RLIMIT_AS, &limit)) return 1;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_gives_a_plan_or_a_sentence), cmocka_unit_test(most_rows)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

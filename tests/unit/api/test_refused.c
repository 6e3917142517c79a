/* The public functions when memory is refused: each request of each function, once and from then on. The answer is
 * PL_E_NOMEM with a sentence (or the usual one, where the memory was for something that can be done without), nothing
 * is kept, and what the caller holds is as good as before: the same call then succeeds. Oracle: the call that was
 * refused nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "plimsoll/plimsoll.h"
#include "support/folder.h"
#include "support/program.h"

static char folder[] = "/tmp/plimsoll-refused-XXXXXX";
static const char yaml[] = "model:\n  arch: mlp\n  width: 8\n  layers: 1\n  sequence: 8\n  window: 4\n"
                           "data:\n  text: text.txt\n  tokenizer: bytes\n"
                           "train:\n  batch_size: 2\n  steps: 2\n  eval_batches: 1\n"
                           "generate:\n  tokens: 3\nmemory:\n  budget: 1GB\nrun:\n  threads: 1\n  out: out\n";
static const char csv[] =
    "id,lower,upper,size,alignment,offset\na,0,4,100,1,\nb,2,6,50,8,\nc,5,9,70,1,0\nd,1,8,33,4,\n";

static pl_error err;
static pl_config *config;
static pl_plan *plan;
static pl_command command;
static const char *tokenizer;

/* ---- the sweep ---- */

/* Does one thing and gives everything back, whether or not it succeeds. */
typedef pl_status (*operation)(void);

static void refuse(const char *name, operation run, uint64_t n, int forever)
{
    uint64_t live = pl_alloc_live_blocks();
    err = (pl_error){0};
    pl_alloc_fail_at(n, forever);
    pl_status status = run();
    pl_alloc_fail_at(0, 0);
    if (pl_alloc_live_blocks() != live)
        fail_msg("%s, request %llu %s: %lld blocks are kept", name, (unsigned long long)n, forever ? "forever" : "once",
                 (long long)(pl_alloc_live_blocks() - live));
    if (status == PL_OK) return;
    if (status != PL_E_NOMEM || !strstr(err.text, "memory"))
        fail_msg("%s, request %llu %s: %s \"%s\"", name, (unsigned long long)n, forever ? "forever" : "once",
                 pl_status_name(status), err.text);
}

/* every: 1, or where much was swept before in another's name, each so-manieth request; 0: SPREAD of them, for what asks
 * millions of times. */
enum { SPREAD = 2 };
static void sweep(const char *name, operation run, unsigned every)
{
    if (run() != PL_OK) fail_msg("%s: %s", name, err.text); /* what is made only the first time is there now */
    uint64_t before = pl_alloc_request_count();
    if (run() != PL_OK) fail_msg("%s: %s", name, err.text);
    uint64_t requests = pl_alloc_request_count() - before;
    if (every == 0) every = (unsigned)(requests / SPREAD) + 1;
    for (int forever = 0; forever < 2; forever++)
        for (uint64_t n = 1 + forever % every; n <= requests; n += every) refuse(name, run, n, forever);
    if (run() != PL_OK) fail_msg("%s, afterwards: %s", name, err.text);
    print_message("%-24s %6llu requests\n", name, (unsigned long long)requests);
}

/* ---- config ---- */

static pl_status print_config(const pl_config *c)
{
    for (int form = PL_CONFIG_YAML; form <= PL_CONFIG_KEPT; form++) {
        char *text = NULL;
        size_t bytes = 0;
        pl_status status = pl_config_text(c, (pl_config_form)form, &text, &bytes, &err);
        pl_text_free(text);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

static pl_status load_config(void)
{
    char program[] = "x", option[] = "--width", value[] = "4", path[256], variable[] = "PLIMSOLL_TRAIN_SEED=7";
    char *argv[] = {program, option, value, NULL}, *envp[] = {variable, NULL};
    int argc = 3;
    pl_config *c = pl_config_create();
    if (!c) return strcpy(err.text, "no memory"), PL_E_NOMEM;
    pl_status status = pl_config_load_file(c, "c.yaml", &err);
    if (status == PL_OK) status = pl_config_apply_args(c, &argc, argv, &err);
    if (status == PL_OK) status = pl_config_apply_env(c, envp, &err);
    if (status == PL_OK) status = pl_config_set(c, "run.out", "elsewhere", "test", &err);
    if (status == PL_OK) status = pl_config_check(c, &err);
    if (status == PL_OK) status = pl_config_run_folder(c, path, sizeof path, &err);
    if (status == PL_OK) status = print_config(c);
    pl_config_destroy(c);
    return status;
}

static char *text_of(const pl_config *c)
{
    char *text;
    assert_int_equal(pl_config_text(c, PL_CONFIG_YAML, &text, NULL, &err), PL_OK);
    return text;
}

/* A file that is refused half-way leaves the config as it was. */
static void a_config_stays_usable(void **state)
{
    (void)state;
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_config *c = pl_config_create();
        assert_non_null(c);
        pl_alloc_fail_at(n, 0);
        status = pl_config_load_file(c, "c.yaml", &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(pl_config_load_file(c, "c.yaml", &err), PL_OK);
        char *text = text_of(c), *wanted = text_of(config);
        assert_string_equal(text, wanted);
        pl_text_free(wanted);
        pl_text_free(text);
        pl_config_destroy(c);
    }
}

static void config_functions(void **state)
{
    (void)state;
    sweep("config", load_config, 1);
}

/* ---- text ---- */

static pl_status prepare_anew(void)
{
    char *argv[] = {(char *)"x", NULL};
    int argc = 1;
    pl_config *c = pl_config_create();
    if (!c) return strcpy(err.text, "no memory"), PL_E_NOMEM;
    pl_status status = pl_config_apply_args(c, &argc, argv, &err);
    if (status == PL_OK) status = pl_config_load_file(c, "c.yaml", &err);
    if (status == PL_OK) status = pl_config_set(c, "data.tokenizer", tokenizer, "test", &err);
    if (status == PL_OK && strcmp(tokenizer, "bpe") == 0)
        status = pl_config_set(c, "data.vocab_size", "264", "test", &err);
    if (status == PL_OK) status = pl_config_set(c, "run.out", "new", "test", &err);
    if (status == PL_OK) status = pl_prepare(c, PL_COMMAND_TRAIN, NULL, NULL, &err);
    if (status != PL_OK && access("new", F_OK) == 0) fail_msg("refused, and yet the folder is there: %s", err.text);
    if (status == PL_OK) assert_int_equal(system("rm -r new"), 0);
    pl_config_destroy(c);
    return status;
}

static void preparation(void **state)
{
    (void)state;
    static const char *const tokenizers[] = {"bytes", "chars", "bpe", "out/tokenizer.json"};
    for (int i = 0; i < 4; i++) {
        tokenizer = tokenizers[i];
        sweep(tokenizer, prepare_anew, 1);
    }
}

/* ---- plans ---- */

static pl_status print_plan(const pl_plan *p)
{
    for (int form = PL_PLAN_REPORT; form <= PL_PLAN_GRAPH; form++) {
        char *text = NULL;
        size_t bytes = 0;
        pl_status status = pl_plan_text(p, (pl_plan_form)form, &text, &bytes, &err);
        pl_text_free(text);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

static pl_status make_plan(void)
{
    pl_plan *made = NULL, *read = NULL;
    pl_status status = pl_check_folder(config, command, &err);
    if (status == PL_OK) status = pl_command_check_options(command, config, &err);
    if (status == PL_OK) status = pl_plan_make_here(config, command, "cache", NULL, NULL, &made, &err);
    if (status == PL_OK) status = pl_plan_check_machine(made, &err);
    if (status == PL_OK) status = print_plan(made);
    if (status == PL_OK) status = pl_plan_save(made, "plan.lock", &err);
    if (status == PL_OK) status = pl_plan_load("plan.lock", &read, &err);
    pl_plan_destroy(read);
    pl_plan_destroy(made);
    return status;
}

static pl_status help(void)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_command_help(command, &text, &bytes, &err);
    pl_text_free(text);
    return status;
}

/* A plan's three thousand requests come through some two hundred places, most of them a dozen times: with sanitizers,
 * which make a plan five times as slow, fewer are refused at each place. */
#if defined(__SANITIZE_ADDRESS__)
enum { TRAIN_EVERY = 8 };
#else
enum { TRAIN_EVERY = 2 };
#endif

static void planning(void **state)
{
    (void)state;
    static const char *const names[] = {"plan train", "plan evaluate", "plan generate", "plan gradients"};
    for (int i = PL_COMMAND_TRAIN; i <= PL_COMMAND_GRADIENTS; i++) {
        command = (pl_command)i;
        assert_int_equal(pl_config_set(config, "memory.budget", "none", "test", &err), PL_OK);
        sweep(names[i], make_plan, i == PL_COMMAND_TRAIN ? TRAIN_EVERY : 9);
        assert_int_equal(pl_config_set(config, "memory.budget", "1GB", "test", &err), PL_OK);
        if (i == PL_COMMAND_TRAIN) sweep("search", make_plan, 0); /* it plans hundreds of times over */
        sweep("help", help, 1);
    }
}

/* ---- runs ---- */

static pl_status work(pl_run *run)
{
    double loss;
    uint64_t tokens;
    if (command == PL_COMMAND_TRAIN) return pl_run_train(run, &err);
    if (command == PL_COMMAND_EVALUATE) return pl_run_evaluate(run, &loss, &tokens, &err);
    if (command == PL_COMMAND_GENERATE) return pl_run_generate(run, &err);
    return pl_run_write_gradients(run, "gradients.safetensors", &err);
}

/* "After pl_run_open has returned, training, evaluating, generating and saving ask for no memory." */
static pl_status run_plan(void)
{
    pl_run_options options = {.host = true};
    pl_run *run = NULL;
    pl_status status = pl_run_open(plan, &options, &run, &err);
    uint64_t before = pl_alloc_request_count();
    if (status == PL_OK) status = work(run);
    if (command != PL_COMMAND_GRADIENTS) assert_int_equal(pl_alloc_request_count(), before);
    pl_run_close(run);
    if (command == PL_COMMAND_TRAIN)
        assert_int_equal(system("rm -rf out/checkpoints out/metrics.jsonl out/events.*"), 0);
    return status;
}

static pl_status bind_program(void)
{
    static uint64_t memory[1 << 18] __attribute__((aligned(64)));
    pl_program *program = NULL;
    pl_status status = pl_program_create(plan, memory, sizeof memory, &program, &err);
    if (status == PL_OK) assert_non_null(pl_program_find(program, "train.loss"));
    pl_program_destroy(program);
    return status;
}

static void train_once(void)
{
    pl_run_options options = {.host = true};
    pl_run *run = NULL;
    if (pl_run_open(plan, &options, &run, &err) || pl_run_train(run, &err)) fail_msg("%s", err.text);
    pl_run_close(run);
}

static void running(void **state)
{
    (void)state;
    static const char *const names[] = {"run train", "run evaluate", "run generate", "run gradients"};
    for (int i = PL_COMMAND_TRAIN; i <= PL_COMMAND_GRADIENTS; i++) {
        command = (pl_command)i;
        if (pl_plan_make(config, command, "cache", NULL, NULL, &plan, &err)) fail_msg("%s", err.text);
        sweep(names[i], run_plan, 1);
        if (command == PL_COMMAND_TRAIN) {
            sweep("program", bind_program, 1);
            train_once(); /* a checkpoint for the others */
        }
        pl_plan_destroy(plan);
    }
}

/* ---- placement ---- */

static pl_status place(void)
{
    uint64_t offsets[8];
    pl_place_table *table = NULL;
    pl_place_options options = pl_place_options_default();
    pl_status status = pl_place_table_parse(csv, strlen(csv), "test", &table, &err);
    if (status != PL_OK) return status;
    pl_place_problem problem = pl_place_table_problem(table);
    pl_place_solution solution = {.offsets = offsets};
    status = pl_place(&problem, &options, &solution, &err);
    if (status == PL_OK) status = pl_place_validate(&problem, offsets, NULL, &err);
    for (int form = PL_PLACE_CSV; form <= PL_PLACE_SVG && status == PL_OK; form++) {
        char *text = NULL;
        size_t bytes;
        status = pl_place_print(&problem, &solution, (pl_place_form)form, &text, &bytes, &err);
        pl_place_text_free(text);
    }
    pl_place_table_destroy(table);
    return status;
}

static void placement(void **state)
{
    (void)state;
    sweep("place", place, 1);
}

/* ---- before and after ---- */

static int make_folder(void **state)
{
    (void)state;
    if (enter_folder(folder)) return -1;
    write_file("text.txt", "the quick brown fox jumps over the lazy dog\n", 60);
    write_file("c.yaml", yaml, 1);
    config = pl_config_create();
    return !config || pl_config_load_file(config, "c.yaml", &err) || pl_config_check(config, &err) ||
           pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &err);
}

static int remove_folder(void **state)
{
    (void)state;
    pl_config_destroy(config);
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_functions), cmocka_unit_test(a_config_stays_usable),
        cmocka_unit_test(preparation),      cmocka_unit_test(planning),
        cmocka_unit_test(running),          cmocka_unit_test(placement),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

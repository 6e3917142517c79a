/* Options and variables: what they set, what they leave alone, who wins, and the sentences for mistakes. */
#include "helpers.h"
#include "support/program.h"

static void give(pl_config *cfg, int *argc, char **argv)
{
    pl_error err = {0};
    if (pl_config_apply_args(cfg, argc, argv, &err) != PL_OK) fail_msg("%s", err.text);
}

static void options_are_taken_and_the_rest_stays_in_order(void **state)
{
    (void)state;
    char *argv[] = {"train",
                    "c.yaml",
                    "--batch_size",
                    "8",
                    "--json",
                    "--batch-size=9",
                    "--resume",
                    "more",
                    "--no-tensorboard",
                    "--set",
                    "model.heads=4",
                    "--budget=500MB",
                    "--set=train.beta1=0.5",
                    "--prompt",
                    "--strange prompt",
                    "--capacity",
                    "5",
                    "-x",
                    "--",
                    "--threads",
                    "3"};
    int argc = COUNT(argv);
    pl_config cfg;
    pl_config_default(&cfg);
    give(&cfg, &argc, argv);
    const char *rest[] = {"train", "c.yaml", "--json", "more", "--capacity", "5", "-x", "--", "--threads", "3"};
    assert_int_equal(argc, COUNT(rest));
    for (int i = 0; i < argc; i++) assert_string_equal(argv[i], rest[i]);
    assert_int_equal(cfg.train.batch_size, 9);
    assert_int_equal(cfg.run.resume, PL_SWITCH_ON);
    assert_false(cfg.train.tensorboard);
    assert_int_equal(cfg.model.heads, 4);
    assert_true(cfg.memory.budget == 500000000);
    assert_true(cfg.train.beta1 == 0.5);
    assert_string_equal(cfg.generate.prompt, "--strange prompt");
    assert_int_equal(cfg.run.threads, PL_CONFIG_AUTO);
}

static void one_option_may_set_two_keys(void **state)
{
    (void)state;
    char *argv[] = {"--seed", "7", "--text=2024", "--prompt", "", "--dump=plan,model", "--resume=false"};
    int argc = COUNT(argv);
    pl_config cfg;
    pl_config_default(&cfg);
    give(&cfg, &argc, argv);
    assert_int_equal(argc, 0);
    assert_int_equal(cfg.train.seed, 7);
    assert_int_equal(cfg.generate.seed, 7);
    assert_string_equal(cfg.data.text, "2024"); /* what is text takes an option as it is */
    assert_int_equal(cfg.run.dump, PL_DUMP_PLAN | PL_DUMP_MODEL);
    assert_int_equal(cfg.run.resume, PL_SWITCH_OFF);
}

static void mistakes_on_the_command_line_have_their_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *words[2];
        pl_status status;
        const char *error;
    } rows[] = {
        {{"--batch_size", "x"}, PL_E_CONFIG, "--batch_size must be an integer from 1 to 16777216, not \"x\""},
        {{"--batch-size=0"}, PL_E_CONFIG, "--batch-size must be an integer from 1 to 16777216, not 0"},
        {{"--batch_size"}, PL_E_USAGE, "--batch_size needs a value: --batch_size VALUE"},
        {{"--text", "--quiet"},
         PL_E_USAGE,
         "--text needs a value: --text VALUE; --quiet is an option (as a value: --text=--quiet)"},
        {{"--text", "--"}, PL_E_USAGE, "--text needs a value: --text VALUE; -- is an option (as a value: --text=--)"},
        {{"--batch_size="}, PL_E_CONFIG, "--batch_size has no value; give an integer from 1 to 16777216"},
        {{"--text="}, PL_E_CONFIG, "--text: data.text has no value; give a path, or none"},
        {{"--set", "model.layer=3"}, PL_E_CONFIG, "--set: unknown key \"model.layer\"; did you mean \"model.layers\"?"},
        {{"--set", "layers=3"}, PL_E_CONFIG, "--set: unknown key \"layers\"; did you mean \"model.layers\"?"},
        {{"--set", "q=3"},
         PL_E_CONFIG,
         "--set: unknown key \"q\"; a key is written section.key, such as train.batch_size"},
        {{"--set", "model.layers"},
         PL_E_USAGE,
         "--set: \"model.layers\" is not section.key=value, such as train.batch_size=8"},
        {{"--set", "model.layers=0"},
         PL_E_CONFIG,
         "--set model.layers: model.layers must be an integer from 1 to 100000, not 0"},
        {{"--set"}, PL_E_USAGE, "--set needs a value: --set section.key=VALUE, such as --set train.batch_size=8"},
        {{"--set", "model.abcd=3"}, /* two letters of model.arch, behind what all keys of the section begin with */
         PL_E_CONFIG,
         "--set: unknown key \"model.abcd\"; a key is written section.key, such as train.batch_size"},
        {{"--set", "modl.layers=3"}, PL_E_CONFIG, "--set: unknown key \"modl.layers\"; did you mean \"model.layers\"?"},
        {{"--set", "train.width=3"}, PL_E_CONFIG, "--set: unknown key \"train.width\"; did you mean \"model.width\"?"},
        {{"--set", "generate.sede=3"},
         PL_E_CONFIG,
         "--set: unknown key \"generate.sede\"; did you mean \"generate.seed\"?"},
        {{"--threads=1025"},
         PL_E_CONFIG,
         "--threads: run.threads must be an integer from 1 to 1024, or auto (or 0, the same), not 1025"},
        {{"--vocab_size=65536"},
         PL_E_CONFIG,
         "--vocab_size: data.vocab_size must be an integer from 257 to 65535, not 65536"},
        {{"--resume=maybe"}, PL_E_CONFIG, "--resume: run.resume must be true or false, or auto, not \"maybe\""},
        {{"--no-resume=true"}, PL_E_USAGE, "--no-resume: takes no value"},
        {{"--prompt=a\xff"},
         PL_E_CONFIG,
         "--prompt: generate.prompt is not printable UTF-8 at byte 1 (0xff); write it as UTF-8"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char words[2][64], *argv[] = {words[0], words[1]};
        int argc = rows[i].words[1] ? 2 : 1;
        pl_config cfg;
        pl_error err = {0};
        for (int w = 0; w < argc; w++) snprintf(words[w], sizeof words[w], "%s", rows[i].words[w]);
        pl_config_default(&cfg);
        assert_int_equal(pl_config_apply_args(&cfg, &argc, argv, &err), rows[i].status);
        assert_string_equal(err.text, rows[i].error);
    }
}

/* What one of its keys cannot have is an error where that key is used, and nowhere else; by a variable likewise. */
static void an_option_of_several_keys_is_judged_by_the_one_that_is_used(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pl_status status;
        const char *error;
    } rows[] = {{"model: {arch: gpt}", PL_OK, ""},
                {"model: {arch: capsules}", PL_E_CONFIG, ": encoder.layers must be an integer from 1 to 1024"}};
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        char words[] = "--layers=2000", wanted[128], *argv[] = {words}, *envp[] = {"PLIMSOLL_LAYERS=2000", NULL};
        const bool by_option = i < COUNT(rows);
        int argc = 1;
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        if (by_option) assert_int_equal(pl_config_apply_args(&cfg, &argc, argv, &err), PL_OK);
        const char *text = rows[i % COUNT(rows)].text;
        assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_OK);
        if (!by_option) assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_OK);
        assert_int_equal(cfg.model.layers, 2000);
        assert_int_equal(pl_config_check_keys(&cfg, &err), rows[i % COUNT(rows)].status);
        snprintf(wanted, sizeof wanted, "%s%s", by_option ? "--layers" : "PLIMSOLL_LAYERS",
                 rows[i % COUNT(rows)].error);
        if (err.text[0]) assert_string_equal(err.text, wanted);
    }
}

static void unknown_options_get_a_suggestion(void **state)
{
    (void)state;
    static const char *const own[] = {"--json", "--capacity"};
    static const struct {
        const char *word, *error;
    } rows[] = {
        {"--jsn", "unknown option --jsn; did you mean --json?"},
        {"--batchsize=8", "unknown option --batchsize=8; did you mean --batch_size?"},
        {"--norm_eps", "unknown option --norm_eps; where model.arch is gpt or chain, write --set model.norm_eps=…"},
        {"--thread-stack=1MB", "unknown option --thread-stack=1MB; write --set memory.thread_stack=…"},
        {"--block_sise", "unknown option --block_sise; did you mean --block_size, which is --sequence?"},
        {"--warmup-ratio=0.1",
         "unknown option --warmup-ratio: it is a share of all steps, and here the warm-up is a number of "
         "steps; write --warmup_steps N (without it they are 2 % of the steps)"},
        {"--zzzzzzzzzzz", "unknown option --zzzzzzzzzzz; see --help"},
        {"-x", "unknown option -x; see --help"},
        {"--abcd", "unknown option --abcd; see --help"}, /* not --arch */
        {"--fooo", "unknown option --fooo; see --help"}, /* not --json */
        {"--xy", "unknown option --xy; see --help"},
        {"--widht=3", "unknown option --widht=3; did you mean --width?"}, /* two neighbours swapped: one edit */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_error err = {0};
        assert_int_equal(pl_config_unknown_option(rows[i].word, own, COUNT(own), &err), PL_E_USAGE);
        assert_string_equal(err.text, rows[i].error);
    }
}

static void epochs_win_over_steps_that_were_said_less_strongly(void **state)
{
    (void)state;
    static const char text[] = "train: {steps: 200, epochs: 9}";
    static const struct {
        const char *options[2], *variable;
        int64_t steps;
    } rows[] = {
        {{NULL}, NULL, 200},
        {{"--epochs=3"}, NULL, PL_CONFIG_AUTO},
        {{"--num_train_epochs=3"}, NULL, PL_CONFIG_AUTO},
        {{NULL}, "PLIMSOLL_EPOCHS=3", PL_CONFIG_AUTO},
        {{"--epochs=3", "--steps=7"}, NULL, 7},
        {{"--steps=7"}, "PLIMSOLL_EPOCHS=3", 7},
        {{"--epochs=3"}, "PLIMSOLL_STEPS=7", PL_CONFIG_AUTO},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) { /* the options before the file, as the command does, and after it */
        char words[2][32] = {{0}}, variable[32] = "", *argv[] = {words[0], words[1]}, *envp[] = {variable, NULL};
        const size_t r = i / 2;
        int argc = 0;
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        for (; argc < 2 && rows[r].options[argc]; argc++) strcpy(words[argc], rows[r].options[argc]);
        if (rows[r].variable) strcpy(variable, rows[r].variable);
        if (i % 2) assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_OK);
        give(&cfg, &argc, argv);
        if (i % 2 == 0) assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_OK);
        if (variable[0]) assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_OK);
        if (cfg.train.steps != rows[r].steps) fail_msg("row %zu: %lld steps", r, (long long)cfg.train.steps);
    }
}

static void variables_set_keys(void **state)
{
    (void)state;
    char *envp[] = {"HOME=/",
                    "PLIMSOLL_TRAIN_BATCH_SIZE=8",
                    "PLIMSOLL_ISA=avx2",
                    "PLIMSOLL_SEED=3",
                    "PLIMSOLL_TEST_X=1",
                    "PLIMSOLL_INTERNAL_PLAN=y",
                    "PLIMSOLL_WIDTH=",
                    "PLIMSOLL_MODEL_NORM=rms_norm",
                    "PLIMSOLL_RUN_ISA=avx2",
                    NULL};
    pl_config cfg;
    pl_error err = {0};
    pl_config_default(&cfg);
    assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_OK);
    assert_int_equal(cfg.train.batch_size, 8);
    assert_int_equal(cfg.run.isa, PL_CONFIG_ISA_AVX2);
    assert_int_equal(cfg.train.seed, 3);
    assert_int_equal(cfg.generate.seed, 3);
    assert_int_equal(cfg.model.norm, PL_NORM_RMS_NORM);
    assert_int_equal(cfg.model.width, 256);
}

/* The variables as kubelet writes them (pkg/kubelet/envvars) and Docker for --link web:plimsoll. */
static void what_others_inject_sets_nothing(void **state)
{
    (void)state;
    char *envp[] = {"PLIMSOLL_SERVICE_HOST=10.0.0.11",
                    "PLIMSOLL_SERVICE_PORT=80",
                    "PLIMSOLL_SERVICE_PORT_HTTP_ALT=8080",
                    "PLIMSOLL_PORT=tcp://10.0.0.11:80",
                    "PLIMSOLL_PORT_80_TCP=tcp://10.0.0.11:80",
                    "PLIMSOLL_PORT_80_TCP_PROTO=tcp",
                    "PLIMSOLL_PORT_80_TCP_PORT=80",
                    "PLIMSOLL_PORT_80_TCP_ADDR=10.0.0.11",
                    "PLIMSOLL_BATCH_SIZE_PORT_53_UDP_ADDR=fd00::1",
                    "PLIMSOLL_WEB_PORT=udp://[fd00::1]:53",
                    "PLIMSOLL_WEB_PORT_9_SCTP=sctp://[fd00::1]:9",
                    "PLIMSOLL_NAME=/trainer/plimsoll",
                    "PLIMSOLL_ENV_LANG=\xff",
                    "PLIMSOLL_PORT_8000_TCP_START=tcp://172.17.0.5:8000",
                    NULL};
    pl_config cfg, untouched;
    pl_error err = {0};
    memset(&untouched, 0, sizeof untouched);
    memset(&cfg, 0, sizeof cfg);
    pl_config_default(&cfg);
    pl_config_default(&untouched);
    assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_OK);
    assert_memory_equal(&cfg, &untouched, sizeof cfg);
    for (char **v = envp; *v; v++) assert_false(pl_config_is_variable(*v));
    assert_true(pl_config_is_variable("PLIMSOLL_SEED=3"));
    assert_true(pl_config_is_variable("PLIMSOLL_SEDE=3"));
    assert_false(pl_config_is_variable("PLIMSOLL_SEED="));
    assert_false(pl_config_is_variable("HOME=/"));
}

static void mistakes_in_variables_have_their_sentence(void **state)
{
    (void)state;
    static const struct {
        char *first, *second;
        const char *error;
    } rows[] = {
        {"PLIMSOLL_TRAIN_BATCH_SIZE=x", NULL,
         "PLIMSOLL_TRAIN_BATCH_SIZE: train.batch_size must be an integer from 1 to 16777216, not \"x\""},
        {"PLIMSOLL_TRAIN_BATCHSIZE=8", NULL,
         "the variable PLIMSOLL_TRAIN_BATCHSIZE is not one of Plimsoll's; did you mean PLIMSOLL_TRAIN_BATCH_SIZE?"},
        {"PLIMSOLL_QQQQQQQQQQQQ=8", NULL,
         "the variable PLIMSOLL_QQQQQQQQQQQQ is not one of Plimsoll's; unset it (docs/config.md lists them)"},
        {"PLIMSOLL_PORT=8080", NULL,
         "the variable PLIMSOLL_PORT is not one of Plimsoll's; did you mean PLIMSOLL_PART?"},
        {"PLIMSOLL_PORT_TCP_80=tcp://10.0.0.1:80", NULL,
         "the variable PLIMSOLL_PORT_TCP_80 is not one of Plimsoll's; unset it (docs/config.md lists them)"},
        {"PLIMSOLL_CLOUDS_SAVED_NAME=/a/b", NULL,
         "the variable PLIMSOLL_CLOUDS_SAVED_NAME is not one of Plimsoll's; unset it (docs/config.md lists them)"},
        {"PLIMSOLL_ISA=avx2", "PLIMSOLL_RUN_ISA=avx512",
         "PLIMSOLL_ISA and PLIMSOLL_RUN_ISA are both set and differ; unset one"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *envp[] = {rows[i].first, rows[i].second, NULL};
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_E_CONFIG);
        assert_string_equal(err.text, rows[i].error);
    }
}

/* File, environment and command line in all six orders: the command line wins, then the environment. */
static void precedence_does_not_depend_on_the_order_of_calls(void **state)
{
    (void)state;
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < COUNT(orders); i++) {
        const char *text = "train:\n  batch_size: 1\n  keep_last: 1\n  steps: 1\n";
        char *envp[] = {"PLIMSOLL_BATCH_SIZE=2", "PLIMSOLL_KEEP_LAST=2", NULL}, *argv[] = {"--batch-size", "3"},
             where[64];
        int argc = 2;
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        for (int k = 0; k < 3; k++) {
            if (orders[i][k] == 0)
                assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_OK);
            if (orders[i][k] == 1) assert_int_equal(pl_config_apply_env(&cfg, envp, &err), PL_OK);
            if (orders[i][k] == 2) assert_int_equal(pl_config_apply_args(&cfg, &argc, argv, &err), PL_OK);
        }
        assert_int_equal(cfg.train.batch_size, 3);
        assert_int_equal(cfg.train.keep_last, 2);
        assert_int_equal(cfg.train.steps, 1);
        assert_string_equal(pl_config_where(&cfg, "train.batch_size", where, sizeof where), "--batch-size");
        assert_string_equal(pl_config_where(&cfg, "train.keep_last", where, sizeof where), "PLIMSOLL_KEEP_LAST");
        assert_string_equal(pl_config_where(&cfg, "train.steps", where, sizeof where), "c.yaml:4:10");
        assert_string_equal(pl_config_where(&cfg, "train.seed", where, sizeof where), "the default");
    }
}

/* A value that a stronger source hides is still read, and refused when it is wrong. */
static void hidden_values_are_validated(void **state)
{
    (void)state;
    const char *text = "train: {batch_size: 0}";
    pl_config cfg;
    pl_error err = {0};
    pl_config_default(&cfg);
    assert_int_equal(pl_config_set(&cfg, "train.batch_size", "4", "--batch_size", &err), PL_OK);
    assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:1:21: train.batch_size must be an integer from 1 to 16777216, not 0");
}

/* What libyaml reads of the same brackets in a file. */
static void a_list_is_what_a_file_would_make_of_it(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"data.text", "[a, b]"},
        {"data.text", "[ 'a, b' ,\"c d\",e f, ]"},
        {"data.text", "[only]"},
        {"data.text", "[]"},
        {"data.text", "[ ]"},
        {"data.text", "['@list', \"*.txt\"]"},
        {"run.dump", "[model, \"plan\"]"},
        {"run.dump", "[]"},
        {"fit.allow", "['optimizer_bf16',bf16]"},
        {"encoder.capsule_grid_shape", "[2, 6]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char yaml[200], word[200], variable[200];
        const int section = (int)strcspn(rows[i][0], ".");
        const pl_config_key *key = pl_config_find(rows[i][0]);
        pl_config file, option, environment;
        pl_error err = {0};
        snprintf(yaml, sizeof yaml, "%.*s:\n  %s: %s\n", section, rows[i][0], key->name, rows[i][1]);
        snprintf(word, sizeof word, "--set=%s=%s", rows[i][0], rows[i][1]);
        snprintf(variable, sizeof variable, "PLIMSOLL_%s=%s", rows[i][0], rows[i][1]);
        for (char *at = variable; *at != '='; at++) *at = *at == '.' ? '_' : *at >= 'a' ? *at - 32 : *at;
        must_load(&file, yaml);
        pl_config_default(&option), pl_config_default(&environment);
        give(&option, &(int){1}, (char *[]){word});
        if (pl_config_apply_env(&environment, (char *[]){variable, NULL}, &err) != PL_OK) fail_msg("%s", err.text);
        if (!pl_config_value_equal(&file, &option, key)) fail_msg("%s", word);
        if (!pl_config_value_equal(&file, &environment, key)) fail_msg("%s", variable);
    }
}

/* An option of names has patterns, which may begin and end so; it is given again for a further one. */
static void brackets_of_an_option_are_a_pattern(void **state)
{
    (void)state;
    char *argv[] = {"--text", "[ab]", "--text=[c]", "--set=train.batch_size=2"};
    int argc = COUNT(argv);
    pl_error err = {0};
    pl_config cfg;
    pl_config_default(&cfg);
    give(&cfg, &argc, argv);
    assert_string_equal(cfg.data.text, "[ab]\n[c]");
    char *empty[] = {"--set=data.text=[a,,b]"};
    assert_int_equal(pl_config_apply_args(&cfg, &(int){1}, empty, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "an item of data.text must be one path, and one in \"[a,,b]\" is empty"));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_taken_and_the_rest_stays_in_order),
        cmocka_unit_test(one_option_may_set_two_keys),
        cmocka_unit_test(mistakes_on_the_command_line_have_their_sentence),
        cmocka_unit_test(an_option_of_several_keys_is_judged_by_the_one_that_is_used),
        cmocka_unit_test(unknown_options_get_a_suggestion),
        cmocka_unit_test(epochs_win_over_steps_that_were_said_less_strongly),
        cmocka_unit_test(variables_set_keys),
        cmocka_unit_test(what_others_inject_sets_nothing),
        cmocka_unit_test(mistakes_in_variables_have_their_sentence),
        cmocka_unit_test(precedence_does_not_depend_on_the_order_of_calls),
        cmocka_unit_test(hidden_values_are_validated),
        cmocka_unit_test(a_list_is_what_a_file_would_make_of_it),
        cmocka_unit_test(brackets_of_an_option_are_a_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

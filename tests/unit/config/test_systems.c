/* What hangs on the system of a config: defaults of its own, other names of keys, keys that are accepted and do
 * nothing. The numbers are those of docs/sources/cloud-heights.md. */
#include "helpers.h"
#include "support/program.h"

#define CLOUDS       "model: {arch: clouds}\n"
#define FLIGHT(name) "{name: " name ", iFileName: a.h5, cFileName: b.h5, nFileName: c.h5}"

static void check_documented(const pl_config *cfg)
{
    const pl_config_train *t = &cfg->train;
    assert_true(t->learning_rate == 1e-3 && t->weight_decay == 0.04 && t->epochs == 50 && t->batch_size == 20);
    assert_true(t->schedule == PL_SCHEDULE_PLATEAU && t->plateau_patience == 5 && t->plateau_factor == 0.5);
    assert_true(t->min_lr_ratio * t->learning_rate == 1e-6 && t->beta2 == 0.999 && t->grad_clip == 1);
    assert_true(t->early_stopping_patience == 15 && t->early_stopping_min_delta == 0.00025);
    assert_true(t->warmup_steps == 2000 && t->eval_batches == 0);
}

static void check_of_text(const pl_config *cfg)
{
    const pl_config_train *t = &cfg->train;
    assert_true(t->learning_rate == 3e-4 && t->weight_decay == 0.1 && t->epochs == 1 && t->batch_size == 32);
    assert_true(t->schedule == PL_SCHEDULE_COSINE && t->min_lr_ratio == 0.1 && t->beta2 == 0.95 && t->grad_clip == 0);
    assert_true(t->early_stopping_patience == 0 && t->early_stopping_min_delta == 0);
    assert_true(t->warmup_steps == PL_CONFIG_AUTO && t->eval_batches == 20);
}

/* Whoever says the arch, and in whatever order. */
static void defaults_are_those_of_the_system(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "");
    check_of_text(&cfg);
    must_load(&cfg, CLOUDS);
    check_documented(&cfg);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        assert_true(pl_config_is_default(&cfg, key) || key == &pl_config_keys[PL_CONFIG_KEY_model_arch]);
    assert_int_equal(pl_config_set(&cfg, "model.arch", "gpt", "--arch", &err), PL_OK);
    check_of_text(&cfg);
    assert_int_equal(pl_config_set(&cfg, "model.arch", "mlp", "--arch", &err), PL_OK);
    check_of_text(&cfg);
    assert_int_equal(pl_config_set(&cfg, "model.arch", "clouds", "--arch", &err), PL_OK);
    check_documented(&cfg);
    pl_config_default(&cfg); /* the option first, then a file that says another arch */
    assert_int_equal(pl_config_set(&cfg, "model.arch", "clouds", "--arch", &err), PL_OK);
    assert_int_equal(pl_config_load_text(&cfg, "c.yaml", "model: {arch: gpt}", 18, &err), PL_OK);
    check_documented(&cfg);
}

static void what_is_said_is_no_default(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "train: {epochs: 1}\n" CLOUDS);
    assert_int_equal(cfg.train.epochs, 1);
    assert_int_equal(cfg.train.batch_size, 20);
    assert_false(pl_config_is_default(&cfg, pl_config_find("train.epochs")));
    pl_config_default(&cfg);
    assert_int_equal(pl_config_set(&cfg, "train.epochs", "7", "--epochs", &err), PL_OK);
    assert_int_equal(pl_config_set(&cfg, "model.arch", "clouds", "--arch", &err), PL_OK);
    assert_int_equal(cfg.train.epochs, 7);
    assert_int_equal(pl_config_set(&cfg, "model.arch", "gpt", "--arch", &err), PL_OK);
    assert_int_equal(cfg.train.epochs, 7);
}

/* It says so where it is read, and prints it. */
static void another_default_is_told(void **state)
{
    (void)state;
    pl_config cfg;
    pl_str help = {0}, page = {0}, yaml = {0};
    pl_config_describe(pl_config_find("train.beta2"), &help);
    assert_string_equal(pl_str_text(&help), "decay of the mean of the squared gradients (default 0.95; clouds: 0.999)");
    pl_config_print_markdown(&page);
    assert_non_null(strstr(pl_str_text(&page), "| `cosine`; clouds: `plateau` | `--schedule` |"));
    assert_non_null(
        strstr(pl_str_text(&page), "\n| `scheduler` | `train.schedule` | gpt, mlp, clouds, hybrid or chain |  |\n"));
    assert_non_null(strstr(pl_str_text(&page), "\n| `train.schedule` | `ReduceLROnPlateau` | `plateau` |  |\n"));
    assert_non_null(strstr(pl_str_text(&page), "`model.vision_encoder` is `vision_encoder`, "));
    must_load(&cfg, CLOUDS);
    pl_config_print_yaml(&cfg, &yaml);
    assert_non_null(strstr(pl_str_text(&yaml), "\n  beta2: 0.999\n"));
    pl_str_deinit(&help);
    pl_str_deinit(&page);
    pl_str_deinit(&yaml);
}

/* ---- other names ---- */

static void documented_names_are_keys(void **state)
{
    (void)state;
    static const char *const words[] = {"adamW", "AdamW", "ADAMW", "adamw", "\"AdamW\""};
    pl_config cfg;
    char where[PL_CONFIG_WHERE_BYTES];
    must_load(&cfg, CLOUDS "learning_rate: 0.5\nweight_decay: 0.25\nepochs: 3\nbatch_size: 4\noptimizer: AdamW\n"
                           "scheduler: ReduceLROnPlateau\nwarmup_steps: 5\nearly_stopping_patience: 6\n"
                           "early_stopping_min_delta: 0.125\ngradient_checkpointing: true\noutput_directory: out/x\n"
                           "seed: 7\n");
    const pl_config_train *t = &cfg.train;
    assert_true(t->learning_rate == 0.5 && t->weight_decay == 0.25 && t->epochs == 3 && t->batch_size == 4);
    assert_true(t->schedule == PL_SCHEDULE_PLATEAU && t->warmup_steps == 5 && t->early_stopping_patience == 6);
    assert_true(t->early_stopping_min_delta == 0.125 && t->gradient_checkpointing == PL_CHECKPOINTING_FULL);
    assert_string_equal(cfg.run.out, "out/x");
    assert_int_equal(t->seed, 7);
    assert_string_equal(pl_config_where(&cfg, "train.learning_rate", where, sizeof where), "c.yaml:2:16");
    for (size_t i = 0; i < COUNT(words); i++) {
        char text[64];
        snprintf(text, sizeof text, CLOUDS "optimizer: %s\nscheduler: cosine", words[i]);
        must_load(&cfg, text);
        assert_int_equal(cfg.train.optimizer, PL_OPTIMIZER_ADAMW);
        assert_int_equal(cfg.train.schedule, PL_SCHEDULE_COSINE);
    }
}

/* true and false as documented, and the key's own words. */
static void checkpointing_has_words_of_both(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int wanted;
    } rows[] = {{"true", PL_CHECKPOINTING_FULL}, {"false", PL_CHECKPOINTING_AUTO}, {"off", PL_CHECKPOINTING_OFF},
                {"auto", PL_CHECKPOINTING_AUTO}, {"full", PL_CHECKPOINTING_FULL},  {"True", PL_CHECKPOINTING_FULL}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        char text[64];
        snprintf(text, sizeof text, CLOUDS "gradient_checkpointing: %s", rows[i].text);
        must_load(&cfg, text);
        assert_int_equal(cfg.train.gradient_checkpointing, rows[i].wanted);
    }
}

/* As options and variables, too. */
static void words_of_others_are_values_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        int checkpointing, mixed;
    } rows[] = {{"true", PL_CHECKPOINTING_FULL, PL_MIXED_BF16}, {"False", PL_CHECKPOINTING_AUTO, PL_MIXED_OFF}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        char text[128], variable[64];
        char *envp[] = {variable, NULL}, *argv[] = {"--gradient_checkpointing", (char *)rows[i].word};
        int argc = COUNT(argv);
        snprintf(text, sizeof text, "train:\n  gradient_checkpointing: %s\n  mixed_precision: %s\n", rows[i].word,
                 rows[i].word);
        must_load(&cfg, text);
        assert_true((int)cfg.train.gradient_checkpointing == rows[i].checkpointing &&
                    (int)cfg.train.mixed_precision == rows[i].mixed);
        pl_config_default(&cfg);
        snprintf(variable, sizeof variable, "PLIMSOLL_MIXED_PRECISION=%s", rows[i].word);
        if (pl_config_apply_args(&cfg, &argc, argv, &err) != PL_OK) fail_msg("%s", err.text);
        if (pl_config_apply_env(&cfg, envp, &err) != PL_OK) fail_msg("%s", err.text);
        assert_true((int)cfg.train.gradient_checkpointing == rows[i].checkpointing &&
                    (int)cfg.train.mixed_precision == rows[i].mixed);
    }
}

/* ---- the arch, where nobody says it ---- */

/* A key that the default does not read says it, if only one system reads all that is set; in whatever order. */
static void keys_imply_the_arch(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pl_config_arch arch;
    } rows[] = {
        {"", PL_ARCH_GPT},
        {"epochs: 3\nbatch_size: 4\n", PL_ARCH_GPT},
        {"temporal_frames: 3\nepochs: 3\n", PL_ARCH_CLOUDS},
        {"epochs: 3\ntemporal_frames: 3\n", PL_ARCH_CLOUDS},
        {"flights: [" FLIGHT("a") "]\n", PL_ARCH_CLOUDS},
        {"simulation: {precision: float16, batch_size: 2}\n", PL_ARCH_CNN_OPERATOR},
        {"parameter_space: {architecture: {base_channels: {type: integer, bounds: [16, 48]}}}\n", PL_ARCH_CNN_OPERATOR},
        {"swath_slice: [4, 8]\n", PL_ARCH_CLOUDS},
        {"model: {vision_encoder: {num_layers: 2}}\ntraining: {task_training: {lr: 1e-3}}\n", PL_ARCH_HYBRID},
        {"task_training: {lr: 1e-3}\n", PL_ARCH_HYBRID},
        {"encoder: {num_layers: 2}\n", PL_ARCH_CAPSULES},
        {"model: {window: 4}\n", PL_ARCH_GPT}, /* mlp reads it, and is of the default's system */
        {"dataset: {use_denoiser: false}\nsimulation: {seed: 3}\n", PL_ARCH_GPT}, /* no system reads both */
        {"model: {arch: hybrid}\ntemporal_frames: 3\n", PL_ARCH_HYBRID},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        must_load(&cfg, rows[i].text);
        if (cfg.model.arch != rows[i].arch) fail_msg("%s: arch %d", rows[i].text, (int)cfg.model.arch);
    }
}

static void the_implied_arch_has_its_defaults(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    pl_str yaml = {0};
    must_load(&cfg, "memory_optimized: true\n");
    check_documented(&cfg);
    pl_config_print_yaml(&cfg, &yaml);
    assert_non_null(strstr(pl_str_text(&yaml), "model:\n  arch: clouds\n"));
    assert_int_equal(pl_config_set(&cfg, "model.arch", "gpt", "--arch", &err), PL_OK);
    check_of_text(&cfg);
    pl_config_default(&cfg); /* an option says it as well, one that several systems share does not */
    char *argv[] = {"--temporal_frames", "4", "--seed", "3", "--cache", "x", "--batch_size", "8"};
    int argc = COUNT(argv);
    assert_int_equal(pl_config_apply_args(&cfg, &argc, argv, &err), PL_OK);
    assert_int_equal(cfg.model.arch, PL_ARCH_CLOUDS);
    pl_config_default(&cfg); /* what a program sets by itself says nothing */
    assert_int_equal(pl_config_set(&cfg, "temporal_frames", "4", "a program", &err), PL_OK);
    assert_int_equal(cfg.model.arch, PL_ARCH_GPT);
    pl_str_deinit(&yaml);
}

/* A run keeps the key by its own name, and the same config by either name has the same hash. */
static void what_is_printed_has_the_key_s_name(void **state)
{
    (void)state;
    pl_config cfg, own;
    pl_str yaml = {0}, again = {0};
    must_load(&cfg, CLOUDS "epochs: 3\nscheduler: linear\n");
    must_load(&own, CLOUDS "train: {epochs: 3, schedule: linear}\n");
    assert_true(pl_config_equal(&cfg, &own));
    assert_true(pl_config_hash_numerics(&cfg) == pl_config_hash_numerics(&own));
    pl_config_print_yaml(&cfg, &yaml);
    pl_config_print_yaml(&own, &again);
    assert_string_equal(pl_str_text(&yaml), pl_str_text(&again));
    assert_null(strstr(pl_str_text(&yaml), "\nepochs:"));
    pl_str_deinit(&yaml);
    pl_str_deinit(&again);
}

/* A stronger source keeps its value, whichever name the file uses. */
static void an_option_is_stronger(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    static const char text[] = CLOUDS "epochs: 3\n";
    pl_config_default(&cfg);
    assert_int_equal(pl_config_set(&cfg, "train.epochs", "9", "--epochs", &err), PL_OK);
    assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, strlen(text), &err), PL_OK);
    assert_int_equal(cfg.train.epochs, 9);
}

/* ---- mistakes ---- */

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {CLOUDS "epochs: 3\ntrain:\n  epochs: 4\n",
         "c.yaml:4:3: train.epochs is here a second time, as \"epochs\"; the first, \"epochs\", is on line 2; take one "
         "out"},
        {CLOUDS "train:\n  schedule: cosine\nscheduler: cosine\n",
         "c.yaml:4:1: train.schedule is here a second time, as \"scheduler\"; the first, \"schedule\", is on line 3; "
         "take one out"},
        {CLOUDS "epochs: 3\nepochs: 4\n", "c.yaml:3:1: key \"epochs\" is here a second time; the first is on line 2"},
        {CLOUDS "epoch: 3\n", "c.yaml:2:1: unknown key \"epoch\"; did you mean \"epochs\"?"},
        {CLOUDS "temporal_frame: 3\n", "c.yaml:2:1: unknown key \"temporal_frame\"; did you mean \"temporal_frames\"?"},
        {CLOUDS "epochs: 0\n", "c.yaml:2:9: train.epochs must be an integer from 1 to 1000000, not 0"},
        {CLOUDS "scheduler: Cosine\n",
         "c.yaml:2:12: train.schedule must be cosine, linear, constant or plateau, not \"Cosine\"; did you mean "
         "\"cosine\"?"},
        {CLOUDS "train: {gradient_checkpointing: yes}\n",
         "c.yaml:2:33: train.gradient_checkpointing must be off, auto or full, not \"yes\""},
        {"model: {arch: capsules}\nepochs: 3\n",
         "c.yaml:2:9: train.epochs is not used when model.arch is capsules; take it out"},
        {"temporal_frames: 3\ndata: {text: x}\n",
         "c.yaml:1:18: temporal_frames is read when model.arch is clouds, and no arch is said: "
         "write \"arch: clouds\" under model"},
        {"config: other.yaml\n",
         "c.yaml:1:1: \"config\" is no key here: the name of a config stands by itself, as in plimsoll train FILE"},
        {"model: {arch: gpt}\ntask_training: {lr: 1e-3}\n",
         "c.yaml:2:21: task_training.lr is not used when model.arch is gpt; write \"learning_rate\" under train"},
        {"training:\n  n2n_pretrain: {augmentations: [crop]}\n",
         "c.yaml:2:18: \"augmentations\" is no key here: crops and flips would move what a patch shows, so the adapter "
         "learns from features with noise instead (n2n_pretrain.noise); take it out"},
        {"training:\n  fine_tune: {enabled: false}\n",
         "c.yaml:2:3: unknown section \"fine_tune\" in training; did you mean \"finetune\"?"},
        {"model:\n  reasoning: {L_layers: 2}\nreasoning: {L_layers: 3}\n",
         "c.yaml:3:1: section \"reasoning\" is here a second time; the first is on line 2"},
        {"vision_encoder: {pretrained_model: dinov2}\n",
         "c.yaml:1:36: vision_encoder.pretrained_model cannot be dinov2: DINOv2's patches of 14 pixels are 256 tokens "
         "of a "
         "page of 224, where the trained tower has 196; the frozen tower is CLIP's: write \"pretrained_model: clip\""},
        {"vision_encoder: {pretrained_model: 'SigLIP'}\n",
         "c.yaml:1:36: vision_encoder.pretrained_model cannot be siglip: SigLIP's tower has no class token, and no "
         "reader "
         "of its weights is there; the frozen tower is CLIP's: write \"pretrained_model: clip\""},
        {"model: {arch: gpt}\ntemporal_frames: 3\n",
         "c.yaml:2:18: temporal_frames is not used when model.arch is gpt; take it out"},
        {CLOUDS "data: {text: x}\n", "c.yaml:2:14: data.text is not used when model.arch is clouds; take it out"},
        {"model: {arch: clouds, heads: 3}\n",
         "c.yaml:1:30: model.heads is not used when model.arch is clouds; take it out"},
    };
    int wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        pl_status status = load(&cfg, rows[i].text, &err);
        if (status == PL_OK) status = pl_config_check_keys(&cfg, &err);
        if (status == PL_E_CONFIG && strcmp(err.text, rows[i].sentence) == 0) continue;
        print_error("for\n%s\ngot  %s\nwant %s\n", rows[i].text, err.text, rows[i].sentence);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* ---- keys of other programs ---- */

static void keys_of_other_programs_are_named_with_what_stands_for_them(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    pl_str text = {0}, yaml = {0};
    must_load(&cfg, CLOUDS "hpc_mode: true\nnum_workers: 2\npin_memory: true\nprefetch_factor: 3\ntorch_compile: true\n"
                           "torch_compile_mode: \"max-autotune\"\nscalar_features: 3\nlog_dir: logs\n"
                           "models_directory: m\n");
    assert_int_equal(pl_config_check_keys(&cfg, &err), PL_OK);
    pl_config_print_without_effect(&cfg, &text);
    assert_string_equal(
        pl_str_text(&text),
        "hpc_mode (how data are read and what memory is taken the plan says), "
        "scalar_features (a model is told two angles, which of them angles_mode says), models_directory, log_dir "
        "(weights and logs lie in the folder of the run), num_workers, pin_memory, prefetch_factor (how data are read "
        "and "
        "what memory is taken the plan says), torch_compile, torch_compile_mode (kernels are compiled already, and "
        "every "
        "plan fuses those that can be fused)");
    pl_config_print_yaml(&cfg, &yaml);
    assert_non_null(strstr(pl_str_text(&yaml), "\ntorch_compile_mode: max-autotune\n"));
    assert_null(strstr(pl_str_text(&yaml), "\nhpc_mode")); /* at its default */
    assert_int_equal(load(&cfg, CLOUDS "torch_compile_mode: fast\n", &err), PL_E_CONFIG);
    assert_string_equal(err.text,
                        "c.yaml:2:21: torch_compile_mode must be default, reduce-overhead or max-autotune, not "
                        "\"fast\"");
    pl_str_deinit(&text);
    pl_str_deinit(&yaml);
}

/* As documented, each an option of the command line. */
static void documented_options_are_taken(void **state)
{
    (void)state;
    char *argv[] = {"--batch_size",
                    "4",
                    "--temporal_frames",
                    "3",
                    "--epochs",
                    "2",
                    "--learning_rate",
                    "0.5",
                    "--weight_decay",
                    "0.25",
                    "--loss_type",
                    "mse_mae",
                    "--angles_mode",
                    "none",
                    "--architecture_name",
                    "cnn",
                    "--loo",
                    "--no_pretrain",
                    "--no_final",
                    "--save_name",
                    "mine",
                    "--no-augment"};
    int argc = COUNT(argv);
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, CLOUDS);
    if (pl_config_apply_args(&cfg, &argc, argv, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(argc, 0);
    const pl_config_clouds *c = &cfg.clouds;
    assert_true(cfg.train.batch_size == 4 && cfg.train.epochs == 2 && c->temporal_frames == 3);
    assert_true(cfg.train.learning_rate == 0.5 && cfg.train.weight_decay == 0.25);
    assert_true(c->loss_type == PL_CONFIG_LOSS_MSE_MAE && c->angles_mode == PL_CONFIG_ANGLES_NONE);
    assert_true(cfg.architecture.name == PL_CONFIG_ARCHITECTURE_CNN && c->loo && !c->pretrain && !c->final);
    assert_false(c->augment);
    assert_string_equal(c->save_name, "mine");
    assert_int_equal(pl_config_check_keys(&cfg, &err), PL_OK);
}

/* save_name is a folder in run.out, once. */
static void a_save_name_is_a_folder(void **state)
{
    (void)state;
    static const struct {
        const char *text, *folder;
    } rows[] = {
        {CLOUDS, "runs/c"},
        {CLOUDS "save_name: mine", "runs/mine"},
        {CLOUDS "save_name: mine\noutput_directory: a/b", "a/b/mine"},
        {CLOUDS "save_name: mine\nrun: {out: a/mine}", "a/mine"},
        {CLOUDS "save_name: mine\nrun: {out: a/mine/}", "a/mine/"},
        {CLOUDS "save_name: mine\nrun: {out: mine}", "mine"},
        {CLOUDS "save_name: mine\nrun: {out: a/mine/loo-b}", "a/mine/loo-b"},
        {CLOUDS "save_name: mine\nrun: {out: a/undermine}", "a/undermine/mine"},
        {CLOUDS "save_name: mine\nrun: {out: /mines//mi}", "/mines//mi/mine"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        char folder[64];
        must_load(&cfg, rows[i].text);
        assert_int_equal(pl_config_run_folder(&cfg, folder, sizeof folder, &err), PL_OK);
        assert_string_equal(folder, rows[i].folder);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_system),
        cmocka_unit_test(what_is_said_is_no_default),
        cmocka_unit_test(another_default_is_told),
        cmocka_unit_test(documented_names_are_keys),
        cmocka_unit_test(checkpointing_has_words_of_both),
        cmocka_unit_test(words_of_others_are_values_everywhere),
        cmocka_unit_test(keys_imply_the_arch),
        cmocka_unit_test(the_implied_arch_has_its_defaults),
        cmocka_unit_test(what_is_printed_has_the_key_s_name),
        cmocka_unit_test(an_option_is_stronger),
        cmocka_unit_test(each_mistake_has_its_sentence),
        cmocka_unit_test(keys_of_other_programs_are_named_with_what_stands_for_them),
        cmocka_unit_test(documented_options_are_taken),
        cmocka_unit_test(a_save_name_is_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What only several keys together can tell, with the place of the mistake; the hashes; resuming. */
#include "helpers.h"
#include "support/program.h"

static const struct {
    const char *text;         /* the file */
    const char *path, *value; /* set on the command line besides, or NULL */
    const char *error;
} refused[] = {
    {"model: {arch: mlp, heads: 4}", NULL, NULL,
     "c.yaml:1:27: model.heads is not used when model.arch is mlp; take it out"},
    {"model: {arch: mlp}", "model.norm", "rms_norm",
     "--set model.norm: model.norm is not used when model.arch is mlp; take it out"},
    {"model: {window: 4}", NULL, NULL, "c.yaml:1:17: model.window is not used when model.arch is gpt; take it out"},
    {"data: {tokenizer: bytes, vocab_size: 300}", NULL, NULL,
     "c.yaml:1:38: data.vocab_size is not used when data.tokenizer is bytes; take it out"},
    {"data: {tokenizer: a/tokenizer.json, vocab_size: 300}", NULL, NULL,
     "c.yaml:1:49: data.vocab_size is not used when data.tokenizer is a/tokenizer.json; take it out"},
    {"train: {plateau_factor: 0.2}", NULL, NULL,
     "c.yaml:1:25: train.plateau_factor is not used when train.schedule is cosine; take it out"},
    {"train: {schedule: constant, min_lr_ratio: 0.2}", NULL, NULL,
     "c.yaml:1:43: train.min_lr_ratio is not used when train.schedule is constant; take it out"},
    {"model: {heads: 7}", NULL, NULL, "c.yaml:1:16: model.heads 7 does not divide model.width 256; take 4 or 8 heads"},
    {"model: {heads: 7}", "model.width", "100",
     "--set model.width: model.heads 7 does not divide model.width 100; take 5 or 10 heads"},
    {"model: {width: 4}", NULL, NULL,
     "c.yaml:1:16: model.heads 8 is more than model.width 4; take at most that many heads"},
    {"model: {vocab_size: 100}", NULL, NULL,
     "c.yaml:1:21: model.vocab_size 100 has no room for the 788 tokens of data.vocab_size; take auto or at least as "
     "many"},
    {"model: {vocab_size: 255}\ndata: {tokenizer: bytes}", NULL, NULL,
     "c.yaml:1:21: model.vocab_size 255 has no room for the 256 tokens of the tokenizer bytes; take auto"},
    {"model: {width: 16777216, layers: 100000}", NULL, NULL,
     "c.yaml:1:16: a model of model.width 16777216, model.layers 100000 and model.feed_forward 67108864 holds more "
     "than 2^60 "
     "bytes; take smaller numbers"},
    {"model: {arch: mlp, width: 16777216, layers: 100000}", NULL, NULL,
     "c.yaml:1:27: a model of model.width 16777216, model.layers 100000 and model.window 8 holds more than 2^60 "
     "bytes; take smaller numbers"},
    {"model: {arch: mlp, width: 16777216, layers: 1, sequence: 2048, window: 2048}", NULL, NULL,
     "c.yaml:1:27: a model of model.width 16777216, model.layers 1 and model.window 2048 holds more than 2^60 "
     "bytes; take smaller numbers"},
    {"model: {sequence: 16777216, width: 1048576, layers: 1}\ntrain: {batch_size: 16777216}", NULL, NULL,
     "c.yaml:2:21: one layer's activations, train.batch_size 16777216 times model.sequence 16777216 times 4194304 "
     "numbers a token, exceed 2^58 bytes; take smaller numbers"},
    {"model: {width: 1024, feed_forward: 67108864, sequence: 8192, layers: 1}\n"
     "train: {batch_size: 16777216, micro_batch: 8388608}",
     NULL, NULL,
     "c.yaml:2:44: one layer's activations, train.micro_batch 8388608 times model.sequence 8192 times 67108864 "
     "numbers a token, exceed 2^58 bytes; take smaller numbers"},
    {"model: {sequence: 16777216, width: 8}\ntrain: {batch_size: 65536, steps: 1099511627776}", NULL, NULL,
     "c.yaml:2:35: train.steps 1099511627776 with train.batch_size 65536 is more than 2^63 tokens; take fewer"},
    {"train: {micro_batch: 33}", NULL, NULL,
     "c.yaml:1:22: train.micro_batch 33 is more than train.batch_size 32; take at most that, or auto"},
    {"train: {micro_batch: 33, batch_size: 64}", "train.batch_size", "8",
     "--set train.batch_size: train.micro_batch 33 is more than train.batch_size 8; take at most that, or auto"},
    {"train: {steps: 10, warmup_steps: 11}", NULL, NULL,
     "c.yaml:1:34: train.warmup_steps 11 is more than train.steps 10; take fewer, or auto"},
    {"train: {schedule: plateau}\ndata: {validation_fraction: 0}", NULL, NULL,
     "c.yaml:1:19: the schedule plateau watches the validation loss, but data.validation_fraction is 0; raise it, or "
     "take "
     "another schedule"},
    {"train: {eval_every: 10}\ndata: {validation_fraction: 0}", NULL, NULL,
     "c.yaml:1:21: train.eval_every needs text held out, but data.validation_fraction is 0; raise it, or take "
     "train.eval_every out"},
    {"data: {validation_fraction: 0}", "train.eval_batches", "3",
     "--set train.eval_batches: train.eval_batches needs text held out, but data.validation_fraction is 0; raise it, "
     "or take train.eval_batches out"},
    {"model: {arch: mlp, window: 129}", NULL, NULL,
     "c.yaml:1:28: model.window 129 is more than model.sequence 128; take at most that, or a longer sequence"},
    {"model: {arch: mlp, window: 8}", "model.sequence", "7",
     "--set model.sequence: model.window 8 is more than model.sequence 7; take at most that, or a longer sequence"},
};

static void each_contradiction_has_its_sentence(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < COUNT(refused); i++) {
        pl_config cfg;
        pl_error err = {0};
        char label[64];
        must_load(&cfg, refused[i].text);
        if (refused[i].path) {
            snprintf(label, sizeof label, "--set %s", refused[i].path);
            assert_int_equal(pl_config_set(&cfg, refused[i].path, refused[i].value, label, &err), PL_OK);
        }
        pl_status status = pl_config_check(&cfg, &err);
        if (status == PL_E_CONFIG && strcmp(err.text, refused[i].error) == 0) continue;
        print_error("for\n%s\ngot  %s: %s\nwant %s\n", refused[i].text, pl_status_name(status), err.text,
                    refused[i].error);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* A key of a system that there is not yet: refused as one of another arch, and used where it is at home. */
static void a_key_of_another_system_is_refused(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    const pl_config_key *own = pl_config_find("generate.tokens");
    pl_config_key other = *own;
    must_load(&cfg, "generate: {tokens: 5}");
    assert_int_equal(pl_config_system_of(&cfg), PL_SYSTEM_TEXT);
    assert_int_equal(own->use.systems, 1u << PL_SYSTEM_TEXT | 1u << PL_SYSTEM_PRETRAINED);
    assert_null(pl_config_unused_by(&cfg, own));
    assert_int_equal(pl_config_check_used(&cfg, own, &err), PL_OK);

    other.use.systems = 1u << PL_SYSTEM_COUNT;
    assert_int_equal(pl_config_archs_of(&other), 0);
    assert_false(pl_config_is_used(&cfg, &other));
    assert_int_equal(pl_config_check_used(&cfg, &other, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:1:20: generate.tokens is not used when model.arch is gpt; take it out");
    other.use.systems |= 1u << PL_SYSTEM_TEXT;
    assert_int_equal(pl_config_check_used(&cfg, &other, &err), PL_OK);

    other.use.archs = 1u << PL_ARCH_MLP; /* of the right system, but of another arch */
    assert_int_equal(pl_config_archs_of(&other), 1u << PL_ARCH_MLP);
    assert_int_equal(pl_config_check_used(&cfg, &other, &err), PL_E_CONFIG);

    pl_config_default(&cfg); /* not set: nothing to refuse, and still not read */
    assert_int_equal(pl_config_check_used(&cfg, &other, &err), PL_OK);
    assert_false(pl_config_is_used(&cfg, &other));
}

/* --seed sets two keys: where one of them is another system's, the option is still right, the key itself is not. */
static void an_option_of_two_keys_needs_one_that_is_used(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        pl_status status;
    } rows[] = {{"--seed", PL_OK}, {"PLIMSOLL_SEED", PL_OK}, {"--set generate.seed", PL_E_CONFIG}};
    pl_config_key other = *pl_config_find("generate.seed");
    other.use.systems = 1u << PL_SYSTEM_COUNT;
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        assert_int_equal(pl_config_set(&cfg, other.path, "7", rows[i].label, &err), PL_OK);
        assert_int_equal(pl_config_check_used(&cfg, &other, &err), rows[i].status);
    }
}

static void sound_configs_pass(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "model: {arch: mlp, window: 4}",
        "model: {width: 96, heads: 96}",
        "model: {vocab_size: 788}",
        "data: {tokenizer: a.json}\nmodel: {vocab_size: 2}",
        "train: {schedule: plateau, plateau_factor: 0.1, min_lr_ratio: 0}",
        "train: {micro_batch: 5, batch_size: 7, steps: 3, warmup_steps: 3}",
        "train: {keep_best: false}\ndata: {validation_fraction: 0}",
        "train: {keep_best: true, eval_batches: 20, eval_every: auto}\ndata: {validation_fraction: 0}", /* defaults */
        "model: {arch: mlp, window: 128}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        pl_config cfg;
        pl_error err = {0};
        must_load(&cfg, texts[i]);
        if (pl_config_check(&cfg, &err) != PL_OK) fail_msg("%s: %s", texts[i], err.text);
    }
}

/* The file asked for evaluations, the command line for none: the stronger source has its way, nobody contradicts. */
static void a_stronger_source_may_switch_evaluation_off(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "train: {eval_every: 10, eval_batches: 5}");
    assert_int_equal(pl_config_set(&cfg, "data.validation_fraction", "0", "--validation_fraction", &err), PL_OK);
    if (pl_config_check(&cfg, &err) != PL_OK) fail_msg("%s", err.text);
    pl_config again;
    pl_str printed = {0};
    pl_config_print_yaml(&cfg, &printed);
    must_load(&again, pl_str_text(&printed));
    if (pl_config_check(&again, &err) != PL_OK) fail_msg("printed: %s", err.text);
    pl_str_deinit(&printed);
}

/* A run keeps its config as it is printed; generate and eval read that. */
static void a_printed_config_passes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "model: {arch: mlp}",
        "data: {validation_fraction: 0}",
        "data: {validation_fraction: 0, tokenizer: bytes}\ntrain: {keep_best: false, steps: 5}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        pl_config cfg, again;
        pl_error err = {0};
        pl_str printed = {0};
        must_load(&cfg, texts[i]);
        pl_config_print_yaml(&cfg, &printed);
        must_load(&again, pl_str_text(&printed));
        if (pl_config_check(&again, &err) != PL_OK) fail_msg("%s, printed: %s", texts[i], err.text);
        assert_true(pl_config_hash_numerics(&cfg) == pl_config_hash_numerics(&again));
        pl_str_deinit(&printed);
    }
}

/* Of the table of commands, in its order, those with one of these uses: "train, eval and verify". */
static void name_commands(uint32_t uses, uint32_t but, char *text, size_t room)
{
    static const struct {
        const char *name;
        uint32_t uses;
    } commands[] = {
#define PL_COMMAND_ROW(id, name, other, typed, summary, uses) {typed, uses},
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    };
    size_t count = 0, told = 0;
    text[0] = 0;
    for (size_t i = 0; i < COUNT(commands); i++) count += commands[i].uses & uses && !(commands[i].uses & but);
    for (size_t i = 0; i < COUNT(commands); i++) {
        if (!(commands[i].uses & uses) || commands[i].uses & but) continue;
        snprintf(text + strlen(text), room - strlen(text), "%s%s",
                 told == 0           ? ""
                 : told + 1 == count ? " and "
                                     : ", ",
                 commands[i].name);
        told++;
    }
}

/* Readers are called as they are typed; in the order of the table of commands. */
static void an_option_that_is_not_read_names_who_does(void **state)
{
    (void)state;
    static const struct {
        const char *path, *label;
        pl_config_reader by;
        const char *error;
        uint32_t uses, but; /* whose names stand for %s */
        const char *value;  /* NULL: 2 */
    } rows[] = {
        {"train.batch_size", "--batch_size", PL_CONFIG_BY_GENERATE,
         "--batch_size: this command does not read train.batch_size (%s do); take it away", PL_USES_DATA,
         PL_USES_CALIBRATION | PL_USES_RESULTS},
        {"train.micro_batch", "--micro_batch", PL_CONFIG_BY_GRADIENTS,
         "--micro_batch: this command does not read train.micro_batch (%s do); take it away", PL_USES_DATA,
         PL_USES_WHOLE_BATCH | PL_USES_CALIBRATION},
        {"model.dropout", "--dropout", PL_CONFIG_BY_EVALUATE,
         "--dropout: this command does not read model.dropout (train and verify do); take it away", 0, 0, "0.5"},
        {"train.epochs", "--epochs", PL_CONFIG_BY_EVALUATE,
         "--epochs: this command does not read train.epochs (train does); take it away"},
        {"generate.tokens", "--tokens", PL_CONFIG_BY_EVALUATE,
         "--tokens: this command does not read generate.tokens (generate does); take it away"},
        {"generate.tokens", "--tokens", PL_CONFIG_BY_TRAIN,
         "--tokens: train reads generate.tokens only for samples of text; give --sample_every too, or take it away"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        char who[128], wanted[256];
        name_commands(rows[i].uses, rows[i].but, who, sizeof who);
        snprintf(wanted, sizeof wanted, rows[i].error, who);
        pl_config_default(&cfg);
        assert_int_equal(pl_config_set(&cfg, rows[i].path, rows[i].value ? rows[i].value : "2", rows[i].label, &err),
                         PL_OK);
        assert_int_equal(pl_config_check_options(&cfg, rows[i].by, &err), PL_E_USAGE);
        assert_string_equal(err.text, wanted);
        assert_int_equal(pl_config_set(&cfg, "train.sample_every", "2", "--set train.sample_every", &err), PL_OK);
        if (rows[i].by == PL_CONFIG_BY_TRAIN) assert_int_equal(pl_config_check_options(&cfg, rows[i].by, &err), PL_OK);
    }
}

static void what_a_command_needs_is_asked_for(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "");
    assert_int_equal(pl_config_require(&cfg, "data.text", "train", &err), PL_E_CONFIG);
    assert_string_equal(
        err.text,
        "c.yaml: train needs data.text: write \"text: …\" under data in the config file, or give `data.text` …");
    assert_int_equal(pl_config_require(&cfg, "train.seed", "train", &err), PL_E_INTERNAL);
    must_load(&cfg, "data: {text: x.txt}");
    assert_int_equal(pl_config_require(&cfg, "data.text", "train", &err), PL_OK);
}

/* Each key, changed alone, changes the hashes that its flags say and no other. */
static void hashes_follow_the_flags(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value;
        int model, numerics;
    } rows[] = {
        {"model.width", "128", 1, 1},       {"model.norm", "rms_norm", 1, 1},   {"model.bias", "false", 1, 1},
        {"data.tokenizer", "chars", 1, 1},  {"data.tokenizer", "a.json", 1, 1}, {"data.vocab_size", "300", 1, 1},
        {"model.norm_eps", "1e-6", 1, 1},   {"model.dropout", "0.1", 0, 1},     {"train.batch_size", "8", 0, 1},
        {"train.learning_rate", "1", 0, 1}, {"data.text", "x", 0, 1},           {"train.seed", "2", 0, 1},
        {"train.micro_batch", "4", 0, 0},   {"run.threads", "2", 0, 0},         {"memory.budget", "1GB", 0, 0},
        {"run.isa", "avx2", 0, 0},          {"generate.seed", "5", 0, 0},       {"model.window", "3", 0, 0},
    };
    pl_config base;
    pl_error err = {0};
    pl_config_default(&base);
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg = base;
        assert_int_equal(pl_config_set(&cfg, rows[i].path, rows[i].value, "--set", &err), PL_OK);
        if ((pl_config_hash_model(&cfg) != pl_config_hash_model(&base)) != rows[i].model) fail_msg("%s", rows[i].path);
        if ((pl_config_hash_numerics(&cfg) != pl_config_hash_numerics(&base)) != rows[i].numerics)
            fail_msg("%s", rows[i].path);
        assert_int_equal(pl_config_check_same_model(&base, &cfg, &err) == PL_OK, !rows[i].model);
    }
}

/* "@examples/gpt.yaml": a file. */
static void must_load_text_or_file(pl_config *cfg, const char *text)
{
    FILE *file = text[0] == '@' ? open_in_repository(text + 1, "r") : NULL;
    assert_true(file || text[0] != '@');
    char *of_file = file ? read_text(file) : NULL;
    must_load(cfg, of_file ? of_file : text);
    if (file) fclose(file);
    free(of_file);
}

/* Runs on disks hold these: whatever becomes of the table, the same config has the same hash. */
static void hashes_are_those_of_saved_runs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t model, numerics;
    } rows[] = {
        {"", UINT64_C(0xe375b0270097f532), UINT64_C(0xfdcdb80efbba90b7)},
        {"model: {arch: mlp}", UINT64_C(0x6dd9a3b1c39bc067), UINT64_C(0x57c77cb9d9d997ec)},
        {"data: {tokenizer: a.json}\ntrain: {schedule: plateau}", UINT64_C(0x0108c7634576cb72),
         UINT64_C(0x71f1720f8f26aaee)},
        {"fit: {allow: [bf16]}\nmodel: {dropout: 0.1, norm: rms_norm}", UINT64_C(0x16f4e92f3b50df5d),
         UINT64_C(0x841d349d879224ed)},
        {"data: {tokenizer: chars, text: x}", UINT64_C(0x8a249ffea4b5edaa), UINT64_C(0x3411597921fd2947)},
        {"model: {arch: cnn_operator}", UINT64_C(0xbedc0ee26993d71a), UINT64_C(0x149673f00fb03ec4)},
        {"model: {arch: unet_operator}", UINT64_C(0x28c6a908d22df409), UINT64_C(0x44a6fa752ac925c4)},
        {"model: {arch: fno_operator}", UINT64_C(0x60bc0fe9a2287112), UINT64_C(0x03242753ab272289)},
        {"model: {arch: gpt}\ntrain: {schedule: plateau, warmup_steps: 9, eval_batches: 3}",
         UINT64_C(0xe375b0270097f532), UINT64_C(0xa68fb2743cb51c63)},
        {"@examples/gpt.yaml", UINT64_C(0xe375b0270097f532), UINT64_C(0x3ade1c82a8d1da58)},
        {"@examples/mlp.yaml", UINT64_C(0xdf2a70701bd8e467), UINT64_C(0x688d43ee3ad55bff)},
        {"@examples/tiny.yaml", UINT64_C(0x06676d08edb93c45), UINT64_C(0xd9c5ce8afb699b5d)},
        {"@examples/rollout.yaml", UINT64_C(0xbedc0ee26993d71a), UINT64_C(0x7ab990d124237ce9)},
        {"@examples/rollout_tiny.yaml", UINT64_C(0xbedc0ee26993d71a), UINT64_C(0x48d0922d1db10153)},
        {"@examples/rollout_unet.yaml", UINT64_C(0x28c6a908d22df409), UINT64_C(0x744b7bff50b482d4)},
        {"@examples/rollout_fno.yaml", UINT64_C(0x60bc0fe9a2287112), UINT64_C(0xd880d2e400b03097)},
        {"@examples/capsules.yaml", UINT64_C(0x8b76b07aaa3c64b0), UINT64_C(0x52d48ef98b2ea4ed)},
        {"@examples/capsules_tiny.yaml", UINT64_C(0xf25d07209df7aefc), UINT64_C(0x64dc8b10d80c38d9)},
        {"@examples/chain_tiny.yaml", UINT64_C(0x289ad56da71c7909), UINT64_C(0xde8a9b532ab84bdf)},
        {"@examples/clouds_full.yaml", UINT64_C(0x730577cc25141051), UINT64_C(0x0edc8d2000341eaf)},
        {"@examples/hybrid.yaml", UINT64_C(0x614056ed66522d84), UINT64_C(0x56a23306d0e2362a)},
        {"@examples/hybrid_pretrained.yaml", UINT64_C(0x30311ac98a8f1ead), UINT64_C(0x596e761c7bedaf3a)},
        {"@examples/hybrid_small.yaml", UINT64_C(0x05a105de8177015b), UINT64_C(0x1e869c8f8f3face6)},
        {"@examples/hybrid_tiny.yaml", UINT64_C(0x7909088c006b18c4), UINT64_C(0x1ffa87fd4e53005c)},
        /* by names that keys and words had when such runs were saved, and by those that they have */
        {"encoder: {hidden_size: 64, num_heads: 4, precision: bfloat16}", UINT64_C(0x8e80ede7f2e28f9d),
         UINT64_C(0x63089ff8a2385c1a)},
        {"encoder: {width: 64, heads: 4, precision: bf16}", UINT64_C(0x8e80ede7f2e28f9d), UINT64_C(0x63089ff8a2385c1a)},
        {"vision_encoder: {hidden_size: 96, num_heads: 4, num_layers: 3}\nreasoning: {hidden_size: 96, num_heads: 6}",
         UINT64_C(0x3d45975b83c1724e), UINT64_C(0xa19a41f3c3b350fe)},
        {"vision_encoder: {width: 96, heads: 4, layers: 3}\nreasoning: {width: 96, heads: 6}",
         UINT64_C(0x3d45975b83c1724e), UINT64_C(0xa19a41f3c3b350fe)},
        {"model: {arch: fno_operator}\nsimulation: {precision: float16}", UINT64_C(0x60bc0fe9a2287112),
         UINT64_C(0x923374c3b9db8c8f)},
        {"model: {arch: fno_operator}\nsimulation: {precision: fp16}", UINT64_C(0x60bc0fe9a2287112),
         UINT64_C(0x923374c3b9db8c8f)},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        must_load_text_or_file(&cfg, rows[i].text);
        if (pl_config_hash_model(&cfg) != rows[i].model) fail_msg("%s: model", rows[i].text);
        if (pl_config_hash_numerics(&cfg) != rows[i].numerics) fail_msg("%s: numerics", rows[i].text);
    }
}

static void another_model_is_named(void **state)
{
    (void)state;
    pl_config saved, now;
    pl_error err = {0};
    must_load(&saved, "model: {width: 128}");
    must_load(&now, "train: {batch_size: 3}\nmodel: {width: 64}");
    assert_int_equal(pl_config_check_same_model(&saved, &now, &err), PL_E_CONFIG);
    assert_string_equal(err.text,
                        "c.yaml:2:16: model.width is 64 here and 128 in the saved run, which is another model; set it "
                        "back, or choose another `run.out`");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_contradiction_has_its_sentence),
        cmocka_unit_test(a_key_of_another_system_is_refused),
        cmocka_unit_test(an_option_of_two_keys_needs_one_that_is_used),
        cmocka_unit_test(sound_configs_pass),
        cmocka_unit_test(a_stronger_source_may_switch_evaluation_off),
        cmocka_unit_test(a_printed_config_passes),
        cmocka_unit_test(an_option_that_is_not_read_names_who_does),
        cmocka_unit_test(what_a_command_needs_is_asked_for),
        cmocka_unit_test(hashes_follow_the_flags),
        cmocka_unit_test(hashes_are_those_of_saved_runs),
        cmocka_unit_test(another_model_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

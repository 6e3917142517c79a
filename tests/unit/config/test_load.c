/* Reading YAML: what is accepted means what the YAML 1.2 core schema says, what is refused gets its exact sentence. */
#include "helpers.h"
#include "support/program.h"

#include <math.h>
#include <unistd.h>

static void defaults_are_those_of_the_benchmark(void **state)
{
    (void)state;
    pl_config cfg;
    pl_config_default(&cfg);
    assert_int_equal(cfg.model.arch, PL_ARCH_GPT);
    assert_int_equal(cfg.model.vocab_size, PL_CONFIG_AUTO);
    assert_int_equal(cfg.model.width, 256);
    assert_int_equal(cfg.model.layers, 6);
    assert_int_equal(cfg.model.heads, 8);
    assert_int_equal(cfg.model.feed_forward, PL_CONFIG_AUTO);
    assert_int_equal(pl_config_feed_forward(&cfg), 1024);
    assert_int_equal(cfg.model.sequence, 128);
    assert_true(cfg.model.bias && !cfg.model.attention_bias && cfg.model.tie_embeddings);
    assert_true(cfg.model.norm_eps == 1e-5 && cfg.model.init_std == 0.02 && cfg.model.dropout == 0);
    assert_int_equal(cfg.data.vocab_size, 788);
    assert_int_equal(cfg.data.tokenizer.kind, PL_CONFIG_TOKENIZER_BPE);
    assert_string_equal(cfg.data.text, "");
    assert_int_equal(cfg.train.batch_size, 32);
    assert_int_equal(cfg.train.steps, PL_CONFIG_AUTO);
    assert_true(cfg.train.learning_rate == 3e-4 && cfg.train.beta1 == 0.9 && cfg.train.beta2 == 0.95);
    assert_true(cfg.train.keep_best && cfg.train.tensorboard && cfg.run.resume == PL_SWITCH_OFF);
    assert_true(cfg.memory.budget == PL_CONFIG_BYTES_NONE);
    assert_int_equal(cfg.memory.thread_stack, 256 << 10);
    assert_int_equal(cfg.run.threads, PL_CONFIG_AUTO);
    assert_int_equal(cfg.run.log, PL_LOG_INFO);
    pl_error err = {0};
    assert_int_equal(pl_config_check(&cfg, &err), PL_OK);
}

static size_t alignment_of(pl_config_type type)
{
    if (type == PL_CONFIG_BOOL || type == PL_CONFIG_TEXT || type == PL_CONFIG_PATH) return 1;
    if (type == PL_CONFIG_INT || type == PL_CONFIG_BYTES || type == PL_CONFIG_REAL) return 8;
    if (type == PL_CONFIG_LIST || type == PL_CONFIG_RECORDS) return 8; /* a count comes first */
    return 4;
}

/* Of its struct. */
static size_t alignment_of_section(const pl_config_section *section)
{
    size_t largest = 1;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->section == section && alignment_of(key->type) > largest) largest = alignment_of(key->type);
    return largest;
}

/* Every byte of the values belongs to a row of the table: nothing but padding lies between two rows. */
static void every_field_has_a_row(void **state)
{
    (void)state;
    size_t end = 0;
    for (size_t i = 0; i < PL_CONFIG_KEY_COUNT; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        size_t alignment = alignment_of(key->type);
        if (i && key->section != pl_config_keys[i - 1].section) {
            const size_t before = alignment_of_section(pl_config_keys[i - 1].section);
            end = (end + before - 1) & ~(before - 1); /* the struct ends */
            alignment = alignment_of_section(key->section);
        }
        if (key->offset != ((end + alignment - 1) & ~(alignment - 1))) fail_msg("no row before %s", key->path);
        end = key->offset + key->bytes;
    }
    assert_in_range(offsetof(pl_config, file) - end, 0, 7);
}

static void values_of_every_kind(void **state)
{
    (void)state;
    pl_config cfg;
    must_load(&cfg,
              "%YAML 1.2\n---\n"
              "model:\n  arch: \"mlp\"\n  width: 0x40\n  layers: 0o17\n  vocab_size: auto\n  activation: 'tanh'\n"
              "  bias: FALSE\n  dropout: .5\n"
              "data:\n  text: 'it''s here.txt'\n  tokenizer: ./tok.json\n  validation_fraction: 1e-2\n  cache: auto\n"
              "train: {batch_size: +8, learning_rate: 2, schedule: plateau, seed: 9223372036854775807}\n"
              "generate:\n  prompt: |\n    two\n    lines\n  temperature: 0\n"
              "memory:\n  budget: 1.5GiB\n  thread_stack: 1 MB\n"
              "run:\n  dump: [plan, model]\n  threads: 0\n  trace: none\n  out: \"auto\"\n  resume: true\n...\n");
    assert_int_equal(cfg.model.arch, PL_ARCH_MLP);
    assert_int_equal(cfg.model.width, 64);
    assert_int_equal(cfg.model.layers, 15);
    assert_int_equal(cfg.model.activation, PL_ACTIVATION_TANH);
    assert_false(cfg.model.bias);
    assert_true(cfg.model.dropout == 0.5);
    assert_string_equal(cfg.data.text, "it's here.txt");
    assert_int_equal(cfg.data.tokenizer.kind, PL_CONFIG_TOKENIZER_FILE);
    assert_string_equal(cfg.data.tokenizer.path, "./tok.json");
    assert_true(cfg.data.validation_fraction == 0.01);
    assert_int_equal(cfg.train.batch_size, 8);
    assert_true(cfg.train.learning_rate == 2.0);
    assert_true(cfg.train.seed == INT64_MAX);
    assert_string_equal(cfg.generate.prompt, "two\nlines\n");
    assert_true(cfg.memory.budget == UINT64_C(3) << 29);
    assert_int_equal(cfg.memory.thread_stack, 1000000);
    assert_int_equal(cfg.run.dump, PL_DUMP_MODEL | PL_DUMP_PLAN);
    assert_int_equal(cfg.run.threads, PL_CONFIG_AUTO);
    assert_string_equal(cfg.run.trace, "");
    assert_string_equal(cfg.run.out, "");
    assert_int_equal(cfg.run.resume, PL_SWITCH_ON);
}

/* The names in the table stand in the order of the enums in config.h. */
static void words_mean_their_constants(void **state)
{
    (void)state;
    static const struct {
        const char *path, *word;
        int value;
    } rows[] = {
        {"model.arch", "gpt", PL_ARCH_GPT},
        {"model.arch", "mlp", PL_ARCH_MLP},
        {"model.norm", "layer_norm", PL_NORM_LAYER_NORM},
        {"model.norm", "rms_norm", PL_NORM_RMS_NORM},
        {"model.activation", "gelu", PL_ACTIVATION_GELU},
        {"model.activation", "silu", PL_ACTIVATION_SILU},
        {"model.activation", "relu", PL_ACTIVATION_RELU},
        {"model.activation", "tanh", PL_ACTIVATION_TANH},
        {"data.tokenizer", "bpe", PL_CONFIG_TOKENIZER_BPE},
        {"data.tokenizer", "bytes", PL_CONFIG_TOKENIZER_BYTES},
        {"data.tokenizer", "chars", PL_CONFIG_TOKENIZER_CHARS},
        {"data.tokenizer", "./bpe", PL_CONFIG_TOKENIZER_FILE},
        {"train.schedule", "cosine", PL_SCHEDULE_COSINE},
        {"train.schedule", "linear", PL_SCHEDULE_LINEAR},
        {"train.schedule", "constant", PL_SCHEDULE_CONSTANT},
        {"train.schedule", "plateau", PL_SCHEDULE_PLATEAU},
        {"train.optimizer", "adamw", PL_OPTIMIZER_ADAMW},
        {"train.optimizer", "adam_atan2", PL_OPTIMIZER_ADAM_ATAN2},
        {"train.mixed_precision", "auto", PL_MIXED_AUTO},
        {"train.mixed_precision", "off", PL_MIXED_OFF},
        {"train.mixed_precision", "bf16", PL_MIXED_BF16},
        {"train.mixed_precision", "fp16", PL_MIXED_FP16},
        {"train.optimizer_state", "auto", PL_OPTIMIZER_STATE_AUTO},
        {"train.optimizer_state", "f32", PL_OPTIMIZER_STATE_F32},
        {"train.optimizer_state", "bf16", PL_OPTIMIZER_STATE_BF16},
        {"train.optimizer_state", "8bit", PL_OPTIMIZER_STATE_8BIT},
        {"memory.huge_pages", "auto", PL_HUGE_PAGES_AUTO},
        {"memory.huge_pages", "off", PL_HUGE_PAGES_OFF},
        {"run.isa", "auto", PL_CONFIG_ISA_AUTO},
        {"run.isa", "ref", PL_CONFIG_ISA_REF},
        {"run.isa", "baseline", PL_CONFIG_ISA_BASELINE},
        {"run.isa", "avx2", PL_CONFIG_ISA_AVX2},
        {"run.isa", "avx512", PL_CONFIG_ISA_AVX512},
        {"run.progress", "auto", PL_PROGRESS_AUTO},
        {"run.progress", "bar", PL_PROGRESS_BAR},
        {"run.progress", "plain", PL_PROGRESS_PLAIN},
        {"run.progress", "json", PL_PROGRESS_JSON},
        {"run.dump", "model", PL_DUMP_MODEL},
        {"run.dump", "grad", PL_DUMP_GRAD},
        {"run.dump", "rewrite", PL_DUMP_REWRITE},
        {"run.dump", "plan", PL_DUMP_PLAN},
        {"run.dump", "program", PL_DUMP_PROGRAM},
        {"run.log", "error", PL_LOG_ERROR},
        {"run.log", "warn", PL_LOG_WARN},
        {"run.log", "info", PL_LOG_INFO},
        {"run.log", "debug", PL_LOG_DEBUG},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        int value;
        pl_config_default(&cfg);
        assert_int_equal(pl_config_set(&cfg, rows[i].path, rows[i].word, "--set", &err), PL_OK);
        memcpy(&value, (char *)&cfg + pl_config_find(rows[i].path)->offset, sizeof value);
        if (value != rows[i].value) fail_msg("%s: %s", rows[i].path, rows[i].word);
    }
}

static void sizes_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"1152921504606846976", UINT64_C(1) << 60},
                {"1152921504606846975", (UINT64_C(1) << 60) - 1},
                {"9007199254740993", UINT64_C(9007199254740993)},
                {"500MB", 500000000},
                {"500MiB", 500u << 20},
                {"2G", 2000000000},
                {"auto", PL_CONFIG_BYTES_AUTO},
                {"none", PL_CONFIG_BYTES_NONE},
                {"0x10", 16}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[80];
        pl_config cfg;
        snprintf(text, sizeof text, "memory: {budget: %s}", rows[i].text);
        must_load(&cfg, text);
        if (cfg.memory.budget != rows[i].bytes) fail_msg("%s", rows[i].text);
    }
}

static void nothing_means_all_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "# a comment\n",
                                        "---\n",
                                        "---\n...\n",
                                        "{}",
                                        "~",
                                        "train:\nmodel: ~\n",
                                        "\xef\xbb\xbf# after a byte order mark\n",
                                        "\xef\xbb\xbf",
                                        "\xef\xbb\xbfmodel:\n",
                                        "\xef\xbb\xbf---\nmodel: {}\r\n",
                                        "model: {}\r\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        pl_config cfg, defaults;
        pl_config_default(&defaults);
        must_load(&cfg, texts[i]);
        assert_true(pl_config_equal(&cfg, &defaults));
    }
}

static const struct {
    const char *text, *error;
} refused[] = {
    /* keys */
    {"model:\n  layer: 6\n", "c.yaml:2:3: unknown key \"layer\" in model; did you mean \"layers\"?"},
    {"model:\n  batch_size: 6\n", "c.yaml:2:3: unknown key \"batch_size\" in model; it is a key of train"},
    {"memory:\n  zzzzzzzz: 6\n", "c.yaml:2:3: unknown key \"zzzzzzzz\" in memory; its keys are budget, thread_stack, "
                                 "huge_pages"},
    {"modle:\n  width: 6\n", "c.yaml:1:1: unknown section \"modle\"; did you mean \"model\"?"},
    {"width: 6\n", "c.yaml:1:1: unknown section \"width\"; it is a key of model"},
    {"model:\n  width: 6\n  width: 7\n",
     "c.yaml:3:3: key \"model.width\" is here a second time; the first is on line 2"},
    {"run:\n\nmodel:\nrun:\n", "c.yaml:4:1: section \"run\" is here a second time; the first is on line 1"},
    {"model: 7\n", "c.yaml:1:8: model is a section: its keys stand under it, indented, one \"key: value\" a line, "
                   "a space after the colon"},
    {"model: [1]\n", "c.yaml:1:8: model is a section: its keys stand under it, indented, one \"key: value\" a line, "
                     "a space after the colon"},
    {"- model\n", "c.yaml:1:1: a config begins with a section, such as \"train:\", and keys indented under it"},
    {"hello\n", "c.yaml:1:1: a config begins with a section, such as \"train:\", and keys indented under it"},
    {"? [a]\n: b\n", "c.yaml:1:3: the name of a section must be a word"},
    {"model:\n  ? {a: b}\n  : c\n", "c.yaml:2:5: a key of model must be a word"},
    {"model:\n  \"wid\\0th\": 3\n", "c.yaml:2:3: a key of model must be a word"},
    /* types and ranges */
    {"train:\n  batch_size: x\n", "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not \"x\""},
    {"train:\n  batch_size: 0\n", "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not 0"},
    {"train:\n  batch_size: 2.5\n", "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not 2.5"},
    {"train:\n  batch_size: 99999999999999999999\n",
     "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not 99999999999999999999"},
    {"train:\n  batch_size: \"32\"\n",
     "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not \"32\"; take the quotes away"},
    {"train:\n  batch_size: auto\n",
     "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not \"auto\""},
    {"train:\n  batch_size: 1_000\n",
     "c.yaml:2:15: train.batch_size must be an integer from 1 to 16777216, not \"1_000\""},
    {"train:\n  batch_size:\n", "c.yaml:2:14: train.batch_size has no value; give an integer from 1 to 16777216"},
    {"train:\n  batch_size: null\n",
     "c.yaml:2:15: train.batch_size has no value; give an integer from 1 to 16777216, or "
     "take the line out for the default"},
    {"train:\n  seed: -1\n", "c.yaml:2:9: train.seed must be an integer from 0 to 9223372036854775807, not -1"},
    {"train:\n  seed: 18446744073709551615\n",
     "c.yaml:2:9: train.seed must be an integer from 0 to 9223372036854775807, not 18446744073709551615"},
    {"train:\n  steps: true\n",
     "c.yaml:2:10: train.steps must be an integer from 1 to 1099511627776, or auto, not \"true\""},
    {"train:\n  learning_rate: 0\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not 0"},
    {"train:\n  learning_rate: .nan\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not \".nan\""},
    {"train:\n  learning_rate: .inf\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not \".inf\""},
    {"train:\n  learning_rate: 1e999\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not 1e999"},
    {"train:\n  learning_rate: 1,5\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not \"1,5\""},
    {"train:\n  learning_rate: '1e-3'\n",
     "c.yaml:2:18: train.learning_rate must be a number above 0 and at most 100, not "
     "\"1e-3\"; take the quotes away"},
    {"train:\n  beta1: 1\n", "c.yaml:2:10: train.beta1 must be a number of at least 0 and below 1, not 1"},
    {"data:\n  validation_fraction: 1.0\n",
     "c.yaml:2:24: data.validation_fraction must be a number of at least 0 and below 1, not 1.0"},
    {"data:\n  vocab_size: 256\n", "c.yaml:2:15: data.vocab_size must be an integer from 257 to 65535, not 256"},
    {"model:\n  bias: yes\n", "c.yaml:2:9: model.bias must be true or false, not \"yes\""},
    {"model:\n  bias: 1\n", "c.yaml:2:9: model.bias must be true or false, not 1"},
    {"model:\n  bias: 'true'\n", "c.yaml:2:9: model.bias must be true or false, not \"true\"; take the quotes away"},
    {"model:\n  activation: gelo\n",
     "c.yaml:2:15: model.activation must be gelu, silu, relu, tanh or gelu_tanh, not \"gelo\"; did you mean \"gelu\"?"},
    {"model:\n  activation: swishish\n",
     "c.yaml:2:15: model.activation must be gelu, silu, relu, tanh or gelu_tanh, not \"swishish\""},
    {"train:\n  optimizer: sgd\n", "c.yaml:2:14: train.optimizer must be adamw or adam_atan2, not \"sgd\""},
    {"train:\n  optimizer_state: 8\n", "c.yaml:2:20: train.optimizer_state must be auto, f32, bf16 or 8bit, not 8"},
    {"train:\n  optimizer_state: int8\n",
     "c.yaml:2:20: train.optimizer_state must be auto, f32, bf16 or 8bit, not \"int8\""},
    {"memory:\n  budget: lots\n", "c.yaml:2:11: memory.budget must be a size from 1 to 1048576TiB, such as 500MB or "
                                  "2GiB, or auto, or none, not \"lots\""},
    {"memory:\n  budget: -5\n",
     "c.yaml:2:11: memory.budget must be a size from 1 to 1048576TiB, such as 500MB or 2GiB, or auto, or none, not -5"},
    {"memory:\n  budget: 1.5\n", "c.yaml:2:11: memory.budget must be a size from 1 to 1048576TiB, such as 500MB or "
                                 "2GiB, or auto, or none, not 1.5"},
    {"memory:\n  thread_stack: 1KiB\n",
     "c.yaml:2:17: memory.thread_stack must be a size from 64KiB to 1GiB, such as 500MB or 2GiB, not \"1KiB\""},
    {"data:\n  text: 2024\n", "c.yaml:2:9: data.text must be a path, or none, not 2024; put it in quotes"},
    {"data:\n  text: ~\n",
     "c.yaml:2:9: data.text has no value; give a path, or none, or take the line out for the default"},
    {"generate:\n  prompt: true\n", "c.yaml:2:11: generate.prompt must be text, not \"true\"; put it in quotes"},
    {"generate:\n  prompt: \"a\\0b\"\n",
     "c.yaml:2:11: generate.prompt is not printable UTF-8 at byte 1 (0x00); write it as UTF-8"},
    {"data:\n  tokenizer: byte\n",
     "c.yaml:2:14: data.tokenizer must be bpe, bytes, chars, words or a path with a / or a dot in it, "
     "not \"byte\"; did you mean \"bytes\"?"},
    {"run:\n  dump: [plans]\n", "c.yaml:2:10: run.dump must be a list of model, grad, rewrite, plan and program, not "
                                "\"plans\"; did you mean \"plan\"?"},
    {"run:\n  dump: plan,,model\n",
     "c.yaml:2:9: run.dump must be a list of model, grad, rewrite, plan and program, not \"\""},
    /* structure */
    {"model:\n  width:\n    deep: 1\n",
     "c.yaml:3:5: model.width must be an integer from 1 to 16777216, not a mapping; a "
     "config has sections and keys and nothing deeper"},
    {"model:\n  width: [[1]]\n",
     "c.yaml:2:10: model.width must be an integer from 1 to 16777216, not a list; a config has "
     "sections and keys and nothing deeper"},
    {"run:\n  dump: [[plan]]\n",
     "c.yaml:2:10: run.dump must be a list of model, grad, rewrite, plan and program, not a list; "
     "a config has sections and keys and nothing deeper"},
    {"model: &m\n  width: 1\n", "c.yaml:1:8: an anchor (&m) is not allowed here; take it away"},
    {"model:\n  width: *w\n", "c.yaml:2:10: an alias (*w) is not allowed here; write the value out"},
    {"model:\n  width: !!int 5\n",
     "c.yaml:2:10: a tag (tag:yaml.org,2002:int) is not allowed here; the key alone says the type"},
    {"model:\n  width: 5\n---\nmodel:\n", "c.yaml:3:1: a second document begins; a config is one document"},
    {"model:\n\twidth: 5\n", "c.yaml:2:1: a tab: YAML indents with spaces"},
    {"# \xc3\xa9\nmodel:\n  \twidth: 5\n", "c.yaml:3:3: a tab: YAML indents with spaces"},
    {"model:\n  width:5\n  heads: 3\n", "c.yaml:2:3: model is a section: its keys stand under it, indented, one \"key: "
                                        "value\" a line, a space after the colon"},
    {"model:\n  width: 3\n  heads\n  layers: 3\n", "c.yaml:3:3: this is not a \"key: value\" line"},
    {"model: {width: 5\n", "c.yaml:2:1: not YAML: did not find expected ',' or '}' (while parsing a flow mapping)"},
    {"generate:\n  prompt: \"abc\n",
     "c.yaml:3:1: not YAML: found unexpected end of stream (while scanning a quoted scalar)"},
    /* bytes */
    {"model:\n  # caf\xe9\n", "c.yaml:2:8: byte 14 (0xe9) is not printable UTF-8; save the file as UTF-8"},
    {"# \xc3\xa9\x07\n", "c.yaml:1:4: the control character 0x07 at byte 4; take it out"},
    {"# \xed\xa0\x80\n", "c.yaml:1:3: byte 2 (0xed) is not printable UTF-8; save the file as UTF-8"},
    {"\xff\xfem\x01", "c.yaml:1:1: byte 0 (0xff) is not printable UTF-8; save the file as UTF-8"},
};

static void an_unknown_section_names_those_there_are(void **state)
{
    (void)state;
    static const char wanted[] =
        "c.yaml:1:1: unknown section \"qqqqqqqq\"; the sections are model, data, train, generate, eval, infer, memory, "
        "fit, run, metadata, parameter_space, sampling, simulation, dataset, logging, architecture, arrays, "
        "texts, encoder, pipeline, quantization, vision_encoder, reasoning, latent_planning, output_head, reading, "
        "denoiser, page_policy, n2n_pretrain, task_training, finetune, chain";
    pl_config cfg;
    pl_error err;
    assert_int_equal(load(&cfg, "qqqqqqqq: 6\n", &err), PL_E_CONFIG);
    assert_string_equal(err.text, wanted);
}

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < COUNT(refused); i++) {
        pl_config cfg, before;
        pl_error err = {0};
        pl_config_default(&before);
        pl_status status = load(&cfg, refused[i].text, &err);
        if (status == PL_E_CONFIG && strcmp(err.text, refused[i].error) == 0 && memcmp(&cfg, &before, sizeof cfg) == 0)
            continue;
        print_error("for\n%sgot  %s: %s\nwant %s\n", refused[i].text, pl_status_name(status), err.text,
                    refused[i].error);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void long_text_is_refused(void **state)
{
    (void)state;
    char text[6000] = "data: {text: /";
    size_t start = strlen(text);
    pl_config cfg;
    pl_error err = {0};
    memset(text + start, 'a', 4094);
    strcpy(text + start + 4094, "}");
    must_load(&cfg, text);
    assert_int_equal(strlen(cfg.data.text), 4095);
    memset(text + start, 'a', 4095);
    strcpy(text + start + 4095, "}");
    assert_int_equal(load(&cfg, text, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:1:14: data.text has 4096 bytes; at most 4095 fit");
}

static void big_files_and_second_files_are_refused(void **state)
{
    (void)state;
    static char text[PL_CONFIG_FILE_MAX_BYTES + 2];
    pl_config cfg;
    pl_error err = {0};
    memset(text, '\n', sizeof text - 1);
    assert_int_equal(load(&cfg, text, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml: has 1000001 bytes; a config has at most 1000000: is this the right file?");
    text[PL_CONFIG_FILE_MAX_BYTES] = 0;
    must_load(&cfg, text);
    assert_int_equal(pl_config_load_text(&cfg, "d.yaml", "", 0, &err), PL_E_USAGE);
    assert_string_equal(err.text, "d.yaml: a config file was read already (c.yaml); one command takes one");
}

/* Deep nesting in every form that YAML has: refused at once, no recursion, no quadratic time. */
/* What an editor put before it moves no position. */
static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0}, plain = {0};
    must_load(&cfg, "\xef\xbb\xbfmodel:\n  width: 96\n");
    assert_int_equal(cfg.model.width, 96);
    assert_int_equal(load(&cfg, "{model: {widht: 96}}", &plain), PL_E_CONFIG);
    assert_int_equal(load(&cfg, "\xef\xbb\xbf{model: {widht: 96}}", &err), PL_E_CONFIG);
    assert_string_equal(err.text, plain.text);
}

static void deep_nesting_is_refused_fast(void **state)
{
    (void)state;
    static const char *const units[] = {"[",   "{",   "- ", "? ", "a: {", "[{",  "model: [",
                                        "!a ", "&a ", "\"", "'",  "|",    "a:\n"};
    static const char *const heads[] = {"", "model: ", "model:\n  width: ", "run:\n  dump: "};
    static char text[PL_CONFIG_FILE_MAX_BYTES];
    for (size_t h = 0; h < COUNT(heads); h++) {
        for (size_t u = 0; u < COUNT(units); u++) {
            pl_config cfg;
            pl_error err = {0};
            size_t n = strlen(heads[h]), unit = strlen(units[u]);
            memcpy(text, heads[h], n);
            for (; n + unit < sizeof text; n += unit) memcpy(text + n, units[u], unit);
            pl_config_default(&cfg);
            assert_int_equal(pl_config_load_text(&cfg, "c.yaml", text, n, &err), PL_E_CONFIG);
        }
    }
}

static void files_are_read_and_named(void **state)
{
    (void)state;
    char path[] = "/tmp/pl_config_XXXXXX", folder[64], expected[128];
    pl_config cfg;
    pl_error err = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "model: {width: 0}\n", 18), 18);
    pl_config_default(&cfg);
    assert_int_equal(pl_config_load_file(&cfg, path, &err), PL_E_CONFIG);
    snprintf(expected, sizeof expected, "%s:1:16: model.width must be an integer from 1 to 16777216, not 0", path);
    assert_string_equal(err.text, expected);
    assert_int_equal(pwrite(fd, "model: {width: 8}\n", 18, 0), 18);
    assert_int_equal(pl_config_load_file(&cfg, path, &err), PL_OK);
    assert_int_equal(cfg.model.width, 8);
    assert_int_equal(pl_config_run_folder(&cfg, folder, sizeof folder, &err), PL_OK);
    snprintf(expected, sizeof expected, "runs/%s", path + 5);
    assert_string_equal(folder, expected);
    close(fd);
    unlink(path);
    pl_config_default(&cfg);
    assert_int_equal(pl_config_load_file(&cfg, "/nowhere/c.yaml", &err), PL_E_CONFIG);
    assert_string_equal(err.text, "config file: /nowhere/c.yaml: cannot be opened: No such file or directory");
    assert_int_equal(pl_config_load_file(&cfg, "/tmp", &err), PL_E_CONFIG);
    assert_string_equal(err.text, "config file: /tmp: is not a regular file");
}

static void run_folder_follows_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *name, *folder;
    } rows[] = {
        {"gpt.yaml", "runs/gpt"}, {"examples/gpt.v2.yaml", "runs/gpt.v2"}, {"a/b", "runs/b"}, {".yaml", "runs/.yaml"}};
    char folder[64];
    pl_error err = {0};
    pl_config cfg;
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config_default(&cfg);
        assert_int_equal(pl_config_load_text(&cfg, rows[i].name, "", 0, &err), PL_OK);
        assert_int_equal(pl_config_run_folder(&cfg, folder, sizeof folder, &err), PL_OK);
        assert_string_equal(folder, rows[i].folder);
    }
    pl_config_default(&cfg);
    assert_int_equal(pl_config_run_folder(&cfg, folder, sizeof folder, &err), PL_OK);
    assert_string_equal(folder, "runs/plimsoll");
    assert_int_equal(pl_config_set(&cfg, "run.out", "there", "--out", &err), PL_OK);
    assert_int_equal(pl_config_run_folder(&cfg, folder, sizeof folder, &err), PL_OK);
    assert_string_equal(folder, "there");
    assert_int_equal(pl_config_run_folder(&cfg, folder, 5, &err), PL_E_USAGE);
}

/* Every request for memory made to fail, once and for ever: a clean status, nothing leaked, the config unchanged. */
static void refused_memory_is_clean(void **state)
{
    (void)state;
    char path[] = "/tmp/pl_config_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "model: {width: 8}\n", 18), 18);
    close(fd);
    uint64_t live = pl_alloc_live_blocks();
    for (int forever = 0; forever < 2; forever++) {
        int failures = 0;
        for (uint64_t n = 1; n < 1000; n++) {
            pl_config cfg, before;
            pl_error err = {0};
            pl_config_default(&cfg);
            before = cfg;
            pl_alloc_fail_at(n, forever);
            pl_status status = pl_config_load_file(&cfg, path, &err);
            pl_alloc_fail_at(0, 0);
            assert_int_equal(pl_alloc_live_blocks(), live);
            if (status == PL_OK) break;
            assert_int_equal(status, PL_E_NOMEM);
            assert_memory_equal(&cfg, &before, sizeof cfg);
            failures++;
        }
        assert_true(failures > 0);
    }
    unlink(path);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_benchmark),
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(values_of_every_kind),
        cmocka_unit_test(words_mean_their_constants),
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(nothing_means_all_defaults),
        cmocka_unit_test(an_unknown_section_names_those_there_are),
        cmocka_unit_test(each_mistake_has_its_sentence),
        cmocka_unit_test(long_text_is_refused),
        cmocka_unit_test(big_files_and_second_files_are_refused),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(deep_nesting_is_refused_fast),
        cmocka_unit_test(files_are_read_and_named),
        cmocka_unit_test(run_folder_follows_the_file),
        cmocka_unit_test(refused_memory_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

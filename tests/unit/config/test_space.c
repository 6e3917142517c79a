/* Sections in sections, lists, and the parameter space of a rollout: what a config of the documented form means, what
 * sources of a dimension's fields may come together, and the sentence for each mistake. */
#include "helpers.h"
#include "support/program.h"

#define HEAD "model: {arch: cnn_operator}\n"

/* Every key that such configs have, those included that have no effect here. */
static const char documented[] =
    HEAD "version: \"1.0\"\n"
         "metadata:\n  name: \"temporal\"\n  description: |\n    Two\n    lines.\n  author: \"A\"\n"
         "  created: \"2025-12-29\"\n  purpose: |\n    One.\n"
         "parameter_space:\n"
         "  architecture:\n"
         "    num_layers:\n      type: integer\n      bounds: [2, 5]\n      description: \"Number of layers\"\n"
         "    base_channels:\n      type: integer\n      bounds: [16, 48]\n"
         "    kernel_size:\n      type: choice\n      choices: [3, 5, 7]\n"
         "    activation:\n      type: choice\n      choices: [\"gelu\"]\n"
         "    dropout_rate:\n      type: continuous\n      bounds: [0.0, 0.3]\n"
         "  stochastic:\n"
         "    noise_type:\n      type: choice\n      choices: [\"gaussian\"]\n"
         "    noise_scale:\n      type: continuous\n      bounds: [0.00001, 1.0]\n      log_scale: true\n"
         "    noise_schedule:\n      type: choice\n      choices: [\"constant\", \"periodic\"]\n"
         "    spatial_correlation:\n      type: continuous\n      bounds: [0.0, 0.3]\n"
         "  operator:\n"
         "    normalization:\n      type: choice\n      choices: [\"instance\"]\n"
         "    grid_size:\n      type: choice\n      choices: [128]\n"
         "  evolution:\n"
         "    update_policy:\n      type: choice\n      choices: [\"residual\", \"convex\"]\n"
         "      weights: [0.75, 0.25]\n"
         "sampling:\n  strategy: \"sobol_stratified\"\n"
         "  sobol:\n    scramble: true\n    seed: 43\n"
         "  stratification:\n    method: \"adaptive\"\n    num_strata_per_dim: 3\n    min_samples_per_stratum: 10\n"
         "  validation:\n    check_discrepancy: true\n    check_correlation: true\n"
         "  total_samples: 9000\n  batch_size: 2\n"
         "simulation:\n  device: \"cuda\"\n"
         "  parallelism:\n    strategy: \"data_parallel\"\n    devices: \"auto\"\n"
         "  input_generation:\n    method: \"sampled\"\n"
         "    ic_type_weights:\n      gaussian_random_field_v0: 0.05\n      multiscale_grf_low: 0.0833\n"
         "      localized: 0.25\n"
         "    gaussian_random_field_v0:\n      length_scale: 0.05\n      variance: 0.25\n"
         "    multiscale_grf_low:\n      scales: [0.30, 0.35, 0.45]\n      variance: 1.0\n"
         "    structured:\n      num_structures: 3\n      structure_types: [\"stripe\"]\n"
         "    localized:\n      num_blobs: 5\n      min_width: 5.0\n      max_width: 15.0\n"
         "  precision: \"float16\"\n  num_realizations: 3\n  num_timesteps: 500\n  extract_operator_features: true\n"
         "dataset:\n  output_path: \"./data/x.h5\"\n"
         "  storage:\n    backend: \"hdf5\"\n    compression: \"gzip\"\n    compression_level: 4\n    chunk_size: 5\n"
         "    store_trajectories: false\n"
         "logging:\n  level: \"INFO\"\n";

static void must_check(const pl_config *cfg)
{
    pl_error err = {0};
    if (pl_config_check(cfg, &err) != PL_OK) fail_msg("%s", err.text);
}

static void the_documented_form_is_read(void **state)
{
    (void)state;
    pl_config cfg;
    pl_str none = {0};
    must_load(&cfg, documented);
    must_check(&cfg);
    assert_string_equal(cfg.document.version, "1.0");
    assert_string_equal(cfg.metadata.description, "Two\nlines.\n");
    assert_string_equal(cfg.num_layers.description, "Number of layers");
    assert_true(cfg.base_channels.bounds.item[1] == 48 && cfg.noise_scale.log_scale);
    assert_true(cfg.noise_schedule.choices.count == 2 &&
                cfg.noise_schedule.choices.item[1] == PL_CONFIG_NOISE_PERIODIC);
    assert_true(cfg.sampling.total_samples == 9000 && cfg.sobol.seed == 43 && cfg.sobol.scramble);
    assert_true(cfg.multiscale_grf_low.scales.count == 3 && cfg.multiscale_grf_low.scales.item[2] == 0.45);
    assert_true(cfg.ic_type_weights.localized == 0.25 && cfg.ic_type_weights.structured == 0);
    assert_int_equal(cfg.simulation.precision, PL_CONFIG_PRECISION_FLOAT16);
    assert_int_equal(pl_config_store_of(&cfg), PL_CONFIG_STORE_FEATURES);
    pl_config_print_without_effect(&cfg, &none);
    assert_string_equal(pl_str_text(&none),
                        "sampling.batch_size (operators come one after another, and how many realisations at once the "
                        "plan says), sampling.stratification.method, sampling.stratification.num_strata_per_dim, "
                        "sampling.stratification.min_samples_per_stratum, simulation.device (the processor computes), "
                        "simulation.parallelism.strategy, simulation.parallelism.devices, dataset.storage.compression "
                        "(files are not compressed while they are written; h5repack does it afterwards), "
                        "dataset.storage.compression_level (see compression), dataset.storage.chunk_size (data sets "
                        "are contiguous; block_states says what is written together), logging.level");
    pl_str_deinit(&none);
}

static void the_dimensions_are_the_documented_ones(void **state)
{
    (void)state;
    static const char *const names[] = {"num_layers",          "base_channels", "kernel_size", "activation",
                                        "dropout_rate",        "noise_type",    "noise_scale", "noise_schedule",
                                        "spatial_correlation", "normalization", "grid_size",   "update_policy"};
    pl_config cfg;
    must_load(&cfg, documented);
    assert_int_equal(PL_CONFIG_DIMENSION_COUNT, COUNT(names));
    for (int i = 0; i < PL_CONFIG_DIMENSION_COUNT; i++)
        assert_string_equal(pl_config_dimension_of(&cfg, (pl_config_dimension_id)i).name, names[i]);
    pl_config_dimension d = pl_config_dimension_of(&cfg, PL_CONFIG_DIMENSION_noise_scale);
    assert_true(d.type == PL_CONFIG_DIMENSION_CONTINUOUS && d.log_scale && !d.is_words && d.bounds->item[0] == 1e-5);
    d = pl_config_dimension_of(&cfg, PL_CONFIG_DIMENSION_update_policy);
    assert_string_equal(d.path, "parameter_space.evolution.update_policy");
    assert_true(d.type == PL_CONFIG_DIMENSION_CHOICE && d.is_words && !d.bounds && !d.log_scale);
    assert_true(d.choices->count == 2 && d.choices->item[0] == PL_CONFIG_POLICY_RESIDUAL && d.weights->item[1] == .25);
}

static void print_and_load(const pl_config *cfg, pl_config *again)
{
    pl_str text = {0};
    pl_config_print_yaml(cfg, &text);
    must_load(again, pl_str_text(&text));
    if (!pl_config_equal(cfg, again)) fail_msg("%s", pl_str_text(&text));
    pl_str_deinit(&text);
}

static void what_is_printed_is_loaded_and_right(void **state)
{
    (void)state;
    static const char *const texts[] = {documented, HEAD, HEAD "dataset: {store: both}\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        pl_config cfg, again;
        must_load(&cfg, texts[i]);
        print_and_load(&cfg, &again);
        must_check(&again);
    }
}

/* A field keeps what the stronger source said, whichever came first; the others come from the file. */
static void fields_come_from_several_sources(void **state)
{
    (void)state;
    static const char file[] = HEAD "parameter_space: {architecture: {num_layers: {type: choice, choices: [2, 4]}, "
                                    "dropout_rate: {bounds: [0, 0.5], log_scale: false}}}\n";
    for (int order = 0; order < 2; order++) {
        char *argv[] = {"--set",
                        "parameter_space.architecture.num_layers.choices=[3,5]",
                        "--set=parameter_space.architecture.num_layers.weights=.5, 0.5",
                        "--set",
                        "parameter_space.architecture.activation.choices=[\"silu\", 'relu']",
                        "--set",
                        "version=2"};
        char *env[] = {"PLIMSOLL_PARAMETER_SPACE_ARCHITECTURE_DROPOUT_RATE_BOUNDS=[0.1,0.2]",
                       "PLIMSOLL_PARAMETER_SPACE_ARCHITECTURE_NUM_LAYERS_CHOICES=7", NULL};
        int argc = COUNT(argv);
        pl_config cfg;
        pl_error err = {0};
        pl_config_default(&cfg);
        if (order == 0) assert_int_equal(pl_config_load_text(&cfg, "c.yaml", file, strlen(file), &err), PL_OK);
        if (pl_config_apply_args(&cfg, &argc, argv, &err) || pl_config_apply_env(&cfg, env, &err))
            fail_msg("%s", err.text);
        if (order == 1) assert_int_equal(pl_config_load_text(&cfg, "c.yaml", file, strlen(file), &err), PL_OK);
        must_check(&cfg);
        assert_int_equal(cfg.num_layers.type, PL_CONFIG_DIMENSION_CHOICE);
        assert_true(cfg.num_layers.choices.count == 2 && cfg.num_layers.choices.item[1] == 5);
        assert_true(cfg.num_layers.weights.count == 2 && cfg.num_layers.weights.item[0] == .5);
        assert_true(cfg.activation_function.choices.item[0] == PL_ACTIVATION_SILU);
        assert_true(cfg.dropout_rate.bounds.item[0] == .1 && cfg.dropout_rate.bounds.item[1] == .2);
        assert_string_equal(cfg.document.version, "2");
    }
}

#define LAYERS(text) HEAD "parameter_space:\n  architecture:\n    num_layers: {" text "}\n"
#define KERNEL(text) HEAD "parameter_space:\n  architecture:\n    kernel_size: {" text "}\n"
#define NOISE(text)  HEAD "parameter_space:\n  stochastic:\n    noise_scale: {" text "}\n"
#define POLICY(text) HEAD "parameter_space:\n  evolution:\n    update_policy: {" text "}\n"
#define P_LAYERS     "parameter_space.architecture.num_layers"
#define P_KERNEL     "parameter_space.architecture.kernel_size"
#define P_NOISE      "parameter_space.stochastic.noise_scale"
#define P_POLICY     "parameter_space.evolution.update_policy"

static const struct {
    const char *text, *error;
} refused[] = {
    /* names and places */
    {"sobol: {seed: 1}\n", "c.yaml:1:1: unknown section \"sobol\"; it belongs in sampling"},
    {"architecture: {num_layers: {}}\n",
     "c.yaml:1:16: unknown key \"num_layers\" in architecture; it belongs in parameter_space.architecture"},
    {"versio: 1\n", "c.yaml:1:1: unknown key \"versio\"; did you mean \"version\"?"},
    {"num_layers:\n", "c.yaml:1:12: model.layers has no value; give an integer from 1 to 100000"},
    {"parameter_space:\n  architectur: {}\n",
     "c.yaml:2:3: unknown section \"architectur\" in parameter_space; did you mean \"architecture\"?"},
    {"parameter_space:\n  zzzz: {}\n", "c.yaml:2:3: unknown section \"zzzz\" in parameter_space; its sections are "
                                       "architecture, stochastic, operator, evolution"},
    {"parameter_space:\n  architecture:\n    layers: {}\n",
     "c.yaml:3:5: unknown section \"layers\" in parameter_space.architecture; it is a key of model"},
    {"sampling:\n  sobl: {}\n", "c.yaml:2:3: unknown key \"sobl\" in sampling; did you mean \"sobol\"?"},
    {"dataset:\n  qqqqqqqq: {}\n", "c.yaml:2:3: unknown key \"qqqqqqqq\" in dataset; its keys are output_path, store, "
                                   "use_denoiser, denoiser_path, use_policy, cache_images, cache_size, storage"},
    {"sampling:\n  sobol: 3\n", "c.yaml:2:10: sampling.sobol is a section: its keys stand under it, indented, one "
                                "\"key: value\" a line, a space after the colon"},
    {"sampling:\n  sobol: {}\n  seed: 3\n", "c.yaml:3:3: unknown key \"seed\" in sampling; it is a key of train"},
    {"sampling:\n  sobol: {}\n  sobol: {}\n",
     "c.yaml:3:3: section \"sampling.sobol\" is here a second time; the first is on line 2"},
    {"parameter_space:\n  operator:\nparameter_space:\n",
     "c.yaml:3:1: section \"parameter_space\" is here a second time; the first is on line 1"},
    {"version: a\nversion: b\n", "c.yaml:2:1: key \"version\" is here a second time; the first is on line 1"},
    {"version: 1.0\n", "c.yaml:1:10: version must be text, not 1.0; put it in quotes"},
    {"parameter_space:\n  ? [a]\n  : b\n", "c.yaml:2:5: a key of parameter_space must be a word"},
    {POLICY("bounds: [1, 2]"),
     "c.yaml:4:21: unknown key \"bounds\" in " P_POLICY "; its keys are type, choices, weights, description"},
    /* fields */
    {LAYERS("type: array"),
     "c.yaml:4:24: " P_LAYERS ".type must be integer, continuous, choice or boolean, not \"array\""},
    {LAYERS("bounds: [2]"),
     "c.yaml:4:26: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not a list of 1"},
    {LAYERS("bounds: [2, 3, 4]"),
     "c.yaml:4:33: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, and this is one too many"},
    {LAYERS("bounds: 3"),
     "c.yaml:4:26: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not a list of 1"},
    {LAYERS("bounds: [2, 17]"), "c.yaml:4:30: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not 17"},
    {LAYERS("bounds: [2, 2.5]"), "c.yaml:4:30: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not 2.5"},
    {LAYERS("bounds: [2, \"3\"]"),
     "c.yaml:4:30: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not \"3\"; take the quotes away"},
    {LAYERS("bounds: [[2], 3]"), "c.yaml:4:27: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not a "
                                 "list; a config has sections and keys and nothing deeper"},
    {LAYERS("bounds: {low: 2}"), "c.yaml:4:26: " P_LAYERS ".bounds must be a list of 2 integers from 1 to 16, not a "
                                 "mapping; a config has sections and keys and nothing deeper"},
    {KERNEL("choices: [3, 4]"),
     "c.yaml:4:32: " P_KERNEL ".choices must be a list of 1 to 16 odd integers from 1 to 15, not 4"},
    {KERNEL("choices: [3, 5, 3]"), "c.yaml:4:35: " P_KERNEL ".choices has 3 twice; take one out"},
    {KERNEL("choices: []"),
     "c.yaml:4:28: " P_KERNEL ".choices must be a list of 1 to 16 odd integers from 1 to 15, not a list of 0"},
    {POLICY("choices: [residual, conves]"),
     "c.yaml:4:41: " P_POLICY ".choices must be a list of autoregressive, residual or convex, not \"conves\"; did you "
     "mean \"convex\"?"},
    {POLICY("choices: [residual, residual]"), "c.yaml:4:41: " P_POLICY ".choices has residual twice; take one out"},
    {POLICY("weights: [1.5, -0.5]"),
     "c.yaml:4:31: " P_POLICY ".weights must be a list of 1 to 16 numbers of at least 0 and at most 1, not 1.5"},
    {POLICY("weights: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"),
     "c.yaml:4:63: " P_POLICY ".weights must be a list of 1 to 16 numbers of at least 0 and at most 1, and this is one "
     "too many"},
    /* fields that contradict each other */
    {LAYERS("bounds: [5, 2]"),
     "c.yaml:4:26: the bounds of " P_LAYERS " begin at 5, above their end 2; write the least first"},
    {LAYERS("type: continuous"), "c.yaml:4:24: " P_LAYERS " is of type continuous; it can be integer or choice"},
    {LAYERS("type: boolean"), "c.yaml:4:24: " P_LAYERS " is of type boolean; it can be integer or choice"},
    {LAYERS("type: choice"), "c.yaml:4:24: " P_LAYERS " has no choices; write \"choices: […]\" under it"},
    {LAYERS("type: choice, bounds: [2, 3], choices: [3]"),
     "c.yaml:4:40: " P_LAYERS ".bounds is not used when " P_LAYERS ".type is choice; take it out"},
    {LAYERS("log_scale: true"),
     "c.yaml:4:29: " P_LAYERS ".log_scale is not used when " P_LAYERS ".type is integer; take it out"},
    {KERNEL("type: integer"), "c.yaml:4:25: " P_KERNEL " is of type integer; it can be choice"},
    {POLICY("type: continuous"), "c.yaml:4:27: " P_POLICY " is of type continuous; it can be choice"},
    {NOISE("type: integer"), "c.yaml:4:25: " P_NOISE " is of type integer; it can be continuous or choice"},
    {NOISE("log_scale: true, bounds: [0, 1]"), "c.yaml:4:44: " P_NOISE " has a log scale, and bounds that begin at 0; "
                                               "begin above 0, or take log_scale out"},
    {POLICY("weights: [0.5, 0.25, 0.25]"), "c.yaml:4:30: " P_POLICY " has 3 weights and 2 choices; give one for each"},
    {POLICY("weights: [0.5, 0.25]"),
     "c.yaml:4:30: the weights of " P_POLICY " sum to 0.75, not to 1; divide each by that"},
    /* the rest */
    {HEAD "simulation: {input_generation: {method: sampled}}\n",
     "c.yaml:2:41: fields are sampled by weights, and simulation.input_generation.ic_type_weights gives none above 0; "
     "write \"localized: 1\" or others under it"},
    {HEAD "simulation: {input_generation: {method: localized, localized: {min_width: 20}}}\n",
     "c.yaml:2:75: blobs have a min_width of 20 and a max_width of 15; take at most that, at least this"},
    {HEAD "simulation: {update: {clamp: [2, 1]}}\n",
     "c.yaml:2:30: simulation.update.clamp holds states between 2 and 1; write the less first"},
    {HEAD "simulation: {update: {clamp: [1, 1]}}\n",
     "c.yaml:2:30: simulation.update.clamp holds states between 1 and 1; give two different numbers"},
    {POLICY("weights: [0, 0]"),
     "c.yaml:4:30: the weights of " P_POLICY " sum to 0, not to 1; give at least one of them more than 0"},
    {POLICY("weights: [1]"), "c.yaml:4:30: " P_POLICY " has 1 weight and 2 choices; give one for each"},
    {HEAD "simulation: {input_generation: {ic_type_weights: {structured: 1}}}\n",
     "c.yaml:2:63: simulation.input_generation.ic_type_weights.structured is not used when "
     "simulation.input_generation.method is gaussian_random_field; take it out"},
    {"sampling: {total_samples: 5}\ndata: {text: x}\n",
     "c.yaml:1:27: sampling.total_samples is read when model.arch is cnn_operator, unet_operator or fno_operator, and "
     "no arch is said: write \"arch: cnn_operator\" under model"},
};

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < COUNT(refused); i++) {
        pl_config cfg;
        pl_error err = {0};
        pl_status status = load(&cfg, refused[i].text, &err);
        if (status == PL_OK) status = pl_config_check(&cfg, &err);
        if (status == PL_E_CONFIG && strcmp(err.text, refused[i].error) == 0) continue;
        print_error("for\n%sgot  %s: %s\nwant %s\n", refused[i].text, pl_status_name(status), err.text,
                    refused[i].error);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void mistakes_of_options_have_their_sentence(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {P_LAYERS ".bound=[2,3]", "--set: unknown key \"" P_LAYERS ".…\"; did you mean \"" P_LAYERS ".bounds\"?"},
        {P_LAYERS ".bounds=[2,x]",
         "--set " P_LAYERS ".bounds: " P_LAYERS ".bounds must be a list of 2 integers from 1 to "
         "16, not \"x\""},
        {P_LAYERS ".bounds=[2,3",
         "--set " P_LAYERS ".bounds: " P_LAYERS ".bounds must be a list of 2 integers from 1 to "
         "16, not \"[2\""},
        {P_LAYERS ".bounds=",
         "--set " P_LAYERS ".bounds: " P_LAYERS ".bounds has no value; give a list of 2 integers from "
         "1 to 16"},
        {P_LAYERS "=3", "--set: " P_LAYERS " is a section; set one of its keys, such as " P_LAYERS ".type"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[160], *argv[] = {"--set", text};
        int argc = 2;
        pl_config cfg;
        pl_error err = {0};
        snprintf(text, sizeof text, "%s", rows[i][0]);
        pl_config_default(&cfg);
        assert_int_equal(pl_config_apply_args(&cfg, &argc, argv, &err), PL_E_CONFIG);
        assert_string_equal(err.text, rows[i][1]);
    }
}

static void notes_have_their_length(void **state)
{
    (void)state;
    char text[400] = "metadata: {name: ";
    const size_t start = strlen(text);
    pl_config cfg;
    pl_error err = {0};
    memset(text + start, 'a', 255);
    strcpy(text + start + 255, "}");
    must_load(&cfg, text);
    assert_int_equal(strlen(cfg.metadata.name), 255);
    memset(text + start, 'a', 256);
    strcpy(text + start + 256, "}");
    assert_int_equal(load(&cfg, text, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:1:18: metadata.name has 256 bytes; at most 255 fit");
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_form_is_read),
        cmocka_unit_test(the_dimensions_are_the_documented_ones),
        cmocka_unit_test(what_is_printed_is_loaded_and_right),
        cmocka_unit_test(fields_come_from_several_sources),
        cmocka_unit_test(each_mistake_has_its_sentence),
        cmocka_unit_test(mistakes_of_options_have_their_sentence),
        cmocka_unit_test(notes_have_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

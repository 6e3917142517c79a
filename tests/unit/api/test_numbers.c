/* Numbers at the edge and beyond, for every key of the schema that takes one (a new key is covered by being there):
 * each is taken or refused as the table below and the key's range say, from an option and from a file; a refusal names
 * key and place; what is taken reads back as the same number, and gives a plan or a sentence, soon and without a crash.
 * Oracle: the values written beside the texts by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/schema.h"
#include "plimsoll/plimsoll.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static char folder[] = "/tmp/plimsoll-numbers-XXXXXX";
static pl_error err;

/* ---- the texts ---- */

typedef enum kind { NONE, WHOLE, REAL, SIZE } kind;

static const struct {
    const char *text;
    kind kind;
    int64_t whole; /* WHOLE, SIZE */
    double real;   /* REAL */
} numbers[] = {
    {"0", WHOLE, 0},
    {"1", WHOLE, 1},
    {"-1", WHOLE, -1},
    {"+5", WHOLE, 5},
    {"00010", WHOLE, 10},
    {"0x10", WHOLE, 16},
    {"0o17", WHOLE, 15},
    {"255", WHOLE, 255},
    {"65537", WHOLE, 65537},
    {"2147483647", WHOLE, INT32_MAX},
    {"2147483648", WHOLE, INT64_C(1) << 31},
    {"4294967295", WHOLE, UINT32_MAX},
    {"4294967296", WHOLE, INT64_C(1) << 32},
    {"4294967297", WHOLE, (INT64_C(1) << 32) + 1},
    {"9007199254740993", WHOLE, (INT64_C(1) << 53) + 1},
    {"0x7fffffffffffffff", WHOLE, INT64_MAX},
    {"9223372036854775807", WHOLE, INT64_MAX},
    {"-9223372036854775807", WHOLE, -INT64_MAX},
    {"-9223372036854775808", REAL, 0, -0x1p63},
    {"9223372036854775808", REAL, 0, 0x1p63},
    {"18446744073709551615", REAL, 0, 0x1p64},
    {"18446744073709551616", REAL, 0, 0x1p64},
    {"18446744073709551617", REAL, 0, 0x1p64},
    {"99999999999999999999999999", REAL, 0, 1e26},
    {"0.5", REAL, 0, 0.5},
    {".5", REAL, 0, 0.5},
    {"5.", REAL, 0, 5},
    {"0.9999999999999999999", REAL, 0, 1},
    {"1e2", REAL, 0, 100},
    {"1e308", REAL, 0, 1e308},
    {"1e309", REAL, 0, INFINITY},
    {"-1e309", REAL, 0, -INFINITY},
    {"1e99999999999999999999", REAL, 0, INFINITY},
    {"1e-400", REAL, 0, 0},
    {"4.9e-324", REAL, 0, 4.9e-324},
    {"1e-40", REAL, 0, 1e-40},
    {"-0.0", REAL, 0, 0},
    {"nan", NONE},
    {".nan", NONE},
    {".NaN", NONE},
    {"-nan", NONE},
    {"nan(1)", NONE},
    {"inf", NONE},
    {".inf", NONE},
    {"-.inf", NONE},
    {"+inf", NONE},
    {"infinity", NONE},
    {"", NONE},
    {"1e", NONE},
    {"e5", NONE},
    {"1e+", NONE},
    {"0x", NONE},
    {"0x1p3", NONE},
    {"0xffffffffffffffff", NONE},
    {"-0x10", NONE},
    {"1_000", NONE},
    {"1,5", NONE},
    {"1.2.3", NONE},
    {"--5", NONE},
    {"+-5", NONE},
    {"5x", NONE},
    {"5%", NONE},
    {"½", NONE},
    {"١٢", NONE},
    {"１２", NONE},
    {"five", NONE},
    {"true", NONE},
    {"~", NONE},
    {"[5]", NONE},
    {"500MB", SIZE, 500000000},
    {"256 KiB", SIZE, 256 << 10},
    {"1.5MiB", SIZE, 3 << 19},
    {".5GB", SIZE, 500000000},
    {"1048576TiB", SIZE, INT64_C(1) << 60},
    {"8388607TiB", SIZE, INT64_C(8388607) << 40},
    {"8388608TiB", NONE},
    {"16777216TiB", NONE},
    {"16777217TiB", NONE},
    {"18446744073709551616B", NONE},
    {"99999999999999999999GB", NONE},
    {"1e30GB", NONE},
    {"-5MB", NONE},
    {"infGB", NONE},
    {"nanMB", NONE},
    {"0x10MB", NONE},
    {".MB", NONE},
    {"5MBMB", NONE},
    {"MB", NONE},
};

static bool in_range(const pl_config_key *key, double x)
{
    bool above = key->flags & PL_CONFIG_FLAG_OVER_MIN ? x > key->min_real : x >= key->min_real;
    bool below = key->flags & PL_CONFIG_FLAG_UNDER_MAX ? x < key->max_real : x <= key->max_real;
    return above && below;
}

static bool is_wanted(const pl_config_key *key, size_t i)
{
    bool fits = numbers[i].whole >= key->min_int && numbers[i].whole <= key->max_int;
    if (key->type == PL_CONFIG_REAL)
        return numbers[i].kind == WHOLE  ? in_range(key, (double)numbers[i].whole)
               : numbers[i].kind == REAL ? in_range(key, numbers[i].real)
                                         : false;
    if (numbers[i].kind == WHOLE && numbers[i].whole == 0 && key->flags & PL_CONFIG_FLAG_ZERO_IS_AUTO) return true;
    return (numbers[i].kind == WHOLE || (numbers[i].kind == SIZE && key->type == PL_CONFIG_BYTES)) && fits;
}

static bool takes_number(const pl_config_key *key)
{
    return key->type == PL_CONFIG_INT || key->type == PL_CONFIG_REAL || key->type == PL_CONFIG_BYTES;
}

/* Under sanitizers a key is given one in so many of the texts, which ones hangs on the seed; in the plain tree's `make
 * soak` all. Of one key in so many, its largest number and one in so many of the others are planned with. */
#if defined(__SANITIZE_ADDRESS__)
enum { TEXTS_EVERY = 6, KEYS_EVERY = 4, EVERY = 64 };
#else
enum { TEXTS_EVERY = 1, KEYS_EVERY = 1, EVERY = 1 };
#endif

static bool is_tried(const pl_config_key *key, size_t k, size_t i)
{
    return takes_number(key) && (i + k + seed) % TEXTS_EVERY == 0;
}

/* ---- taken or refused ---- */

static bool is_number_of(const pl_config *c, const pl_config_key *key, size_t i)
{
    int64_t whole;
    double real, wanted = numbers[i].kind == WHOLE ? (double)numbers[i].whole : numbers[i].real;
    const char *field = (const char *)c + key->offset;
    memcpy(&whole, field, sizeof whole);
    memcpy(&real, field, sizeof real);
    if (key->type == PL_CONFIG_REAL) return real == wanted && !(real == 0 && signbit(real));
    return whole == numbers[i].whole || (numbers[i].whole == 0 && key->flags & PL_CONFIG_FLAG_ZERO_IS_AUTO);
}

static void judge(pl_status status, const pl_config *c, const pl_config_key *key, size_t i, const char *place)
{
    const char *text = numbers[i].text;
    if (is_wanted(key, i)) {
        if (status != PL_OK) fail_msg("%s, %s: \"%s\" is refused: %s", key->path, place, text, err.text);
        if (!is_number_of(c, key, i)) fail_msg("%s, %s: \"%s\" is taken as another number", key->path, place, text);
        return;
    }
    if (status == PL_OK) fail_msg("%s, %s: \"%s\" is taken", key->path, place, text);
    if (status != PL_E_CONFIG || !strstr(err.text, key->path) || !strstr(err.text, place))
        fail_msg("%s, %s: \"%s\": %s: %s", key->path, place, text, pl_status_name(status), err.text);
}

/* The key in its section, and that in the one around it: a line for each. Returns which line the number is in. */
static uint32_t print_key(const pl_config_key *key, const char *number, char *yaml, size_t room)
{
    const uint32_t depth = pl_config_depth(key->section->name);
    size_t used = 0;
    for (uint32_t i = 0; i < depth; i++) {
        size_t bytes;
        const char *level = pl_config_level_of(key->section->name, i, &bytes);
        used += (size_t)snprintf(yaml + used, room - used, "%*s%.*s:\n", 2 * (int)i, "", (int)bytes, level);
    }
    snprintf(yaml + used, room - used, "%*s%s: %s\n", 2 * (int)depth, "", key->name, number);
    return depth + 1;
}

static void every_key_takes_what_it_should(void **state)
{
    (void)state;
    char yaml[256], place[32];
    size_t tried = 0;
    for (size_t k = 0; k < PL_CONFIG_KEY_COUNT; k++) {
        const pl_config_key *key = &pl_config_keys[k];
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            if (!is_tried(key, k, i)) continue;
            tried++;
            pl_config *c = pl_config_create(), *f = pl_config_create();
            assert_true(c && f);
            judge(pl_config_set(c, key->path, numbers[i].text, "an option", &err), c, key, i, "an option");
            snprintf(place, sizeof place, "c.yaml:%u:", print_key(key, numbers[i].text, yaml, sizeof yaml));
            judge(pl_config_load_text(f, "c.yaml", yaml, strlen(yaml), &err), f, key, i, place);
            pl_config_destroy(f);
            pl_config_destroy(c);
        }
    }
    print_message("%zu numbers, each as an option and in a file\n", tried);
}

/* Printed and read again it is the same number. */
static void what_is_taken_reads_back(void **state)
{
    (void)state;
    for (size_t k = 0; k < PL_CONFIG_KEY_COUNT; k++) {
        const pl_config_key *key = &pl_config_keys[k];
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            if (!is_tried(key, k, i)) continue;
            pl_config *c = pl_config_create(), *back = pl_config_create();
            char *text;
            size_t bytes;
            assert_true(c && back);
            if (pl_config_set(c, key->path, numbers[i].text, "an option", &err) == PL_OK) {
                assert_int_equal(pl_config_text(c, PL_CONFIG_YAML, &text, &bytes, &err), PL_OK);
                if (pl_config_load_text(back, "back", text, bytes, &err)) fail_msg("%s: %s", key->path, err.text);
                assert_true(pl_config_value_equal(c, back, key));
                pl_text_free(text);
            }
            pl_config_destroy(back);
            pl_config_destroy(c);
        }
    }
}

/* ---- planned or refused ---- */

enum { SEARCH_EVERY = 64 }; /* with a budget hundreds of plans are made for each */
enum { SECONDS_MAX = 60 };  /* against what never ends; kernels are measured in it, with sanitizers too */
static const char small[] = "model:\n  arch: %s\n  width: 8\n  layers: 1\n  sequence: 8\n"
                            "data:\n  text: text.txt\n  tokenizer: %s\n  validation_fraction: 0.1\n"
                            "train:\n  batch_size: 2\nmemory:\n  budget: 64MB\nrun:\n  threads: 1\n  out: %s\n";

static pl_config *small_config(const char *arch, const char *tokenizer)
{
    char yaml[512], out[32];
    pl_config *c = pl_config_create();
    snprintf(out, sizeof out, "out-%s", tokenizer);
    snprintf(yaml, sizeof yaml, small, arch, tokenizer, out);
    assert_non_null(c);
    if (pl_config_load_text(c, "c.yaml", yaml, strlen(yaml), &err)) fail_msg("%s", err.text);
    return c;
}

/* Of another system than text's: what every system has. */
static pl_config *plain_config(const char *arch)
{
    char yaml[512];
    pl_config *c = pl_config_create();
    snprintf(yaml, sizeof yaml,
             "model:\n  arch: %s\n  width: 8\n  layers: 1\ntrain:\n  batch_size: 2\n  steps: 20\nmemory:\n  budget: "
             "64MB\nrun:\n  threads: 1\n  out: out-%s\n",
             arch, arch);
    assert_non_null(c);
    if (pl_config_load_text(c, "c.yaml", yaml, strlen(yaml), &err)) fail_msg("%s", err.text);
    return c;
}

/* Two operators; fields of every kind can be asked for. */
static const char two_operators[] =
    "model: {arch: cnn_operator}\n"
    "parameter_space:\n  architecture: {num_layers: {bounds: [2, 2]}, base_channels: {bounds: [4, 4]}, "
    "kernel_size: {choices: [3]}}\n  operator: {grid_size: {choices: [8]}}\n"
    "sampling: {total_samples: 2, validation: {check_discrepancy: false, check_correlation: false}}\n"
    "simulation:\n  num_realizations: 2\n  num_timesteps: 4\n"
    "  input_generation: {method: sampled, ic_type_weights: {localized: 1}}\n"
    "run: {threads: 1, out: out-rollout}\n";

static pl_config *rollout_config(void)
{
    pl_config *c = pl_config_create();
    assert_non_null(c);
    if (pl_config_load_text(c, "c.yaml", two_operators, strlen(two_operators), &err)) fail_msg("%s", err.text);
    return c;
}

static double now(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* A plan, or a sentence of a status that says whose fault it is. */
static pl_status plan(pl_config *c, pl_command command, const char *what)
{
    pl_plan *p = NULL;
    double began = now();
    err = (pl_error){0};
    pl_status status = pl_config_check(c, &err);
    if (status == PL_OK && command != PL_COMMAND_GENERATE) status = pl_prepare(c, command, NULL, NULL, &err);
    if (status == PL_OK) status = pl_plan_make(c, command, "cache", NULL, NULL, &p, &err);
    bool said = status == PL_OK ||
                ((status == PL_E_CONFIG || status == PL_E_BUDGET || status == PL_E_DATA) && strlen(err.text) > 30);
    if (!said) fail_msg("%s: %s: %s", what, pl_status_name(status), err.text);
    if (status == PL_OK) assert_true(pl_plan_resident_bytes(p) > pl_plan_arena_bytes(p));
    pl_plan_destroy(p);
    if (now() - began > SECONDS_MAX) fail_msg("%s: took %.1f s: %s", what, now() - began, err.text);
    return status;
}

/* The kind of network and the tokenizer for which the key is read. */
static pl_config *config_for(const pl_config_key *key)
{
    const pl_config_key *arch = pl_config_find("model.arch");
    pl_config *c = small_config("gpt", "bytes");
    if (pl_config_is_used(c, key)) return c;
    pl_config_destroy(c);
    c = small_config("mlp", "bytes");
    if (pl_config_is_used(c, key)) return c;
    pl_config_destroy(c);
    for (size_t i = 0; i < arch->name_count; i++) {
        c = plain_config(arch->names[i]);
        if (pl_config_system_of(c) != PL_SYSTEM_TEXT && pl_config_is_used(c, key)) return c;
        pl_config_destroy(c);
    }
    c = plain_config("clouds");
    if (pl_config_set(c, "samples_from", "arrays", "test", &err)) fail_msg("%s", err.text);
    if (pl_config_is_used(c, key)) return c;
    pl_config_destroy(c);
    c = plain_config("decoder");
    if (pl_config_set(c, "eval.protocol", "windows", "test", &err)) fail_msg("%s", err.text);
    if (pl_config_is_used(c, key)) return c;
    pl_config_destroy(c);
    c = plain_config("capsules");
    if (pl_config_set(c, "quantization.method", "percentile", "test", &err)) fail_msg("%s", err.text);
    if (pl_config_is_used(c, key)) return c;
    pl_config_destroy(c);
    c = small_config("gpt", "bpe");
    if (pl_config_is_used(c, key)) return c;
    if (pl_config_set(c, "train.schedule", "plateau", "test", &err)) fail_msg("%s", err.text);
    assert_true(pl_config_is_used(c, key));
    return c;
}

/* What else would be searched. */
static void decide(pl_config *c)
{
    static const char *const set[][2] = {{"train.gradient_checkpointing", "off"},
                                         {"train.layer_major", "0"},
                                         {"train.feed_forward_rows", "0"},
                                         {"train.update_in_backward", "off"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (pl_config_set(c, set[i][0], set[i][1], "test", &err)) fail_msg("%s", err.text);
}

static void every_number_gives_a_plan_or_a_sentence(void **state)
{
    (void)state;
    char what[128];
    size_t planned = 0, refused = 0;
    for (size_t k = 0; k < PL_CONFIG_KEY_COUNT; k++) {
        const pl_config_key *key = &pl_config_keys[k];
        if (!takes_number(key) || (k + seed) % KEYS_EVERY != 0) continue;
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            bool last = i + 1 < sizeof numbers / sizeof *numbers && !is_wanted(key, i + 1);
            const bool rollout = key->use.systems == 1u << PL_SYSTEM_ROLLOUT;
            const size_t every = rollout ? 3 * EVERY : EVERY;
            if (!is_wanted(key, i) || (!last && i % every != (k + seed) % every)) continue;
            pl_config *c = rollout ? rollout_config() : config_for(key);
            if (!rollout && (i + k) % SEARCH_EVERY) decide(c);
            snprintf(what, sizeof what, "%s=%s", key->path, numbers[i].text);
            if (pl_config_set(c, key->path, numbers[i].text, "an option", &err)) fail_msg("%s: %s", what, err.text);
            if (plan(c, rollout ? PL_COMMAND_ROLLOUT : PL_COMMAND_TRAIN, what) == PL_OK)
                planned++;
            else
                refused++;
            pl_config_destroy(c);
        }
    }
    print_message("%zu planned, %zu refused\n", planned, refused);
}

/* ---- before and after ---- */

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chdir(folder)) return -1;
    FILE *f = fopen("text.txt", "w");
    if (!f) return -1;
    for (int i = 0; i < 100; i++) fputs("the quick brown fox jumps over the lazy dog\n", f);
    return fclose(f);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_takes_what_it_should),
        cmocka_unit_test(what_is_taken_reads_back),
        cmocka_unit_test(every_number_gives_a_plan_or_a_sentence),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

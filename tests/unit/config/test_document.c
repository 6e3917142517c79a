/* What is generated from the table: docs/config.md is what is committed (--write refreshes it), --help fits its
 * columns, the JSON Schema is JSON and has every key, and the examples load. */
#include "helpers.h"
#include "support/program.h"

#include <jansson.h>

static void the_reference_is_current(void **state)
{
    (void)state;
    pl_str text = {0};
    pl_config_print_markdown(&text);
    FILE *file = open_in_repository("docs/config.md", "r");
    assert_non_null(file);
    char *committed = read_text(file);
    fclose(file);
    if (strcmp(committed, pl_str_text(&text)) != 0)
        fail_msg("docs/config.md is not what the table prints; run this test with --write");
    free(committed);
    for (size_t i = 0; i < PL_CONFIG_KEY_COUNT; i++) {
        char cell[64];
        snprintf(cell, sizeof cell, "\n| `%s` | ", pl_config_keys[i].name);
        assert_non_null(strstr(pl_str_text(&text), cell));
    }
    pl_str_deinit(&text);
}

static size_t columns(const char *line, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) n += ((unsigned char)line[i] & 0xc0) != 0x80;
    return n;
}

static void help_fits_and_names_every_option(void **state)
{
    (void)state;
    pl_str text = {0}, options = {0};
    pl_config_print_help(&text);
    pl_config_print_options(&options);
    for (const char *line = pl_str_text(&text); *line;) {
        size_t n = strcspn(line, "\n");
        if (columns(line, n) > 80) fail_msg("too long: %.*s", (int)n, line);
        if (n && line[n - 1] == ' ') fail_msg("blank at the end: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
    for (size_t i = 0; i < PL_CONFIG_KEY_COUNT; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        char word[128];
        snprintf(word, sizeof word, key->option ? "--%s" : "--set %s=", key->option ? key->option : key->path);
        if (key->type == PL_CONFIG_RECORDS) snprintf(word, sizeof word, "%s: (file only)", key->path);
        if (key->section->is_dimension) snprintf(word, sizeof word, "--set %s.FIELD=", key->section->name);
        if (!strstr(pl_str_text(&text), word)) fail_msg("%s", word);
        snprintf(word, sizeof word, "%s %s%s", key->path, key->option ? "--" : "-", key->option ? key->option : "");
        const char *line = strstr(pl_str_text(&options), word);
        assert_non_null(line);
        for (size_t k = 0; k < key->name_count; k++) {
            snprintf(word, sizeof word, " %s", key->names[k]);
            const char *value = strstr(line, word);
            if (!value || value > strchr(line, '\n')) fail_msg("%s: no %s", key->path, word);
        }
    }
    pl_str_deinit(&text);
    pl_str_deinit(&options);
}

/* An option means something else to each arch; to one that reads two of its rows they are one. */
static void help_tells_what_an_option_is_to_each_arch(void **state)
{
    static const struct {
        const char *row;
        size_t count;
    } wanted[] = {{"\n  --stage TEXT ", 3}, {"\n  --seed N ", 2}, {"\n  --steps N ", 1}};
    (void)state;
    pl_str text = {0};
    pl_config_print_help(&text);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        size_t count = 0;
        for (const char *at = pl_str_text(&text); (at = strstr(at, wanted[i].row)); at++) count++;
        if (count != wanted[i].count) fail_msg("%zu times%s", count, wanted[i].row);
    }
    assert_non_null(strstr(pl_str_text(&text), "pretrain, final"));
    assert_non_null(strstr(pl_str_text(&text), "denoiser, policy, which tries"));
    pl_str_deinit(&text);
}

/* A list of records, or a key whose default hangs on model.arch, which its description tells. */
static bool is_key_without_default(json_t *entry)
{
    const char *text = json_string_value(json_object_get(entry, "description"));
    return json_object_get(entry, "items") || (text && strstr(text, "; clouds: "));
}

/* Below a section: what has a default is a key, and some that have none. */
static size_t count_keys(json_t *section)
{
    const char *name;
    json_t *entry;
    size_t count = 0;
    json_object_foreach(json_object_get(section, "properties"), name, entry) count +=
        json_object_get(entry, "default") || is_key_without_default(entry) ? 1 : count_keys(entry);
    return count;
}

static void check_description(const pl_config_key *key, json_t *entry)
{
    const char *text = json_string_value(json_object_get(entry, "description"));
    const bool hangs = pl_config_find_default(key, PL_SYSTEM_CLOUDS) != NULL;
    assert_non_null(text);
    if (strncmp(text, key->help, strlen(key->help)) != 0 || !hangs != !text[strlen(key->help)])
        fail_msg("%s", key->path);
    assert_int_equal(hangs || key->type == PL_CONFIG_RECORDS, !json_object_get(entry, "default"));
}

/* It refers to a key, or a section, that is there. */
static void check_reference(const char *section, const char *name, json_t *entry)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, name ? "#/properties/%s/properties/%s" : "#/properties/%s", section, name);
    assert_string_equal(json_string_value(json_object_get(entry, "$ref")), wanted);
}

/* What stands at "section.word", or at the word alone. */
static json_t *entry_at(json_t *schema, const char *path)
{
    json_t *in = json_object_get(schema, "properties");
    const char *dot = strchr(path, '.');
    char section[64];
    if (!dot) return json_object_get(in, path);
    snprintf(section, sizeof section, "%.*s", (int)(dot - path), path);
    return json_object_get(json_object_get(json_object_get(in, section), "properties"), dot + 1);
}

static void the_schema_is_json_with_every_key(void **state)
{
    (void)state;
    pl_str text = {0};
    json_error_t error;
    pl_config_print_json_schema(&text);
    json_t *schema = json_loads(pl_str_text(&text), JSON_REJECT_DUPLICATES, &error);
    if (!schema) fail_msg("%s in line %d", error.text, error.line);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        json_t *at = schema;
        char path[128], *word = path;
        snprintf(path, sizeof path, "%s", key->path);
        while (word) { /* through the sections to the key */
            char *dot = strchr(word, '.');
            if (dot) *dot++ = 0;
            assert_true(json_is_false(json_object_get(at, "additionalProperties")));
            at = json_object_get(json_object_get(at, "properties"), word);
            if (!at) fail_msg("%s", key->path);
            word = dot;
        }
        check_description(key, at);
    }
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++) {
        json_t *entry = entry_at(schema, alias->path);
        if (pl_config_find_alias(alias->path) != alias)
            continue; /* an option of several keys: the first is that in a file */
        if (alias->key && alias->means)
            assert_string_equal(json_string_value(json_object_get(entry, "type")), "boolean");
        else if (alias->means)
            assert_non_null(json_object_get(entry, "const"));
        else if (alias->key)
            check_reference(alias->key->section->name, alias->key->name, entry);
        else if (entry && !pl_config_find(alias->path)) /* refused as an option: here it is a key, or a section */
            assert_non_null(json_object_get(entry, "properties"));
    }
    for (int i = 0; i < PL_CONFIG_PLACE_COUNT; i++)
        check_reference(pl_config_places[i].section, NULL, entry_at(schema, pl_config_places[i].path));
    assert_int_equal(count_keys(schema), PL_CONFIG_KEY_COUNT);
    json_decref(schema);
    pl_str_deinit(&text);
}

static void the_examples_load(void **state)
{
    (void)state;
    static const char *const names[] = {"examples/gpt.yaml",          "examples/mlp.yaml",
                                        "examples/tiny.yaml",         "examples/rollout.yaml",
                                        "examples/rollout_tiny.yaml", "examples/rollout_unet.yaml",
                                        "examples/rollout_fno.yaml",  "examples/clouds_full.yaml",
                                        "examples/clouds_small.yaml", "examples/clouds_tiny.yaml"};
    for (size_t i = 0; i < COUNT(names); i++) {
        pl_config cfg;
        pl_error err = {0};
        FILE *file = open_in_repository(names[i], "r");
        assert_non_null(file);
        char *text = read_text(file);
        fclose(file);
        pl_config_default(&cfg);
        if (pl_config_load_text(&cfg, names[i], text, strlen(text), &err) != PL_OK) fail_msg("%s", err.text);
        if (pl_config_check(&cfg, &err) != PL_OK) fail_msg("%s", err.text);
        free(text);
    }
}

/* Refused memory shows in `failed`, wherever it happens, and leaves nothing behind. */
static void printing_reports_refused_memory(void **state)
{
    (void)state;
    static void (*const printers[])(pl_str *) = {pl_config_print_help, pl_config_print_options,
                                                 pl_config_print_markdown, pl_config_print_json_schema};
    uint64_t live = pl_alloc_live_blocks();
    for (size_t i = 0; i < COUNT(printers); i++) {
        int failures = 0;
        for (uint64_t n = 1;; n++) {
            pl_str text = {0};
            pl_alloc_fail_at(n, 1);
            printers[i](&text);
            pl_alloc_fail_at(0, 0);
            int failed = text.failed;
            pl_str_deinit(&text);
            assert_int_equal(pl_alloc_live_blocks(), live);
            if (!failed) break;
            failures++;
        }
        assert_true(failures > 3);
    }
}

static int write_reference(void)
{
    pl_str text = {0};
    pl_config_print_markdown(&text);
    FILE *file = open_in_repository("docs/config.md", "w");
    if (!file || fputs(pl_str_text(&text), file) < 0 || fclose(file) != 0) return 1;
    pl_str_deinit(&text);
    return 0;
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_current),
        cmocka_unit_test(help_fits_and_names_every_option),
        cmocka_unit_test(help_tells_what_an_option_is_to_each_arch),
        cmocka_unit_test(the_schema_is_json_with_every_key),
        cmocka_unit_test(the_examples_load),
        cmocka_unit_test(printing_reports_refused_memory),
    };
    if (argc > 1 && strcmp(argv[1], "--write") == 0) return write_reference();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

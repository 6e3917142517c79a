/* The table itself, held against the text of src/config/sections: every row is there once, in its section, in the order
 * of the files; numbers and names agree. */
#include "helpers.h"
#include "support/program.h"

/* Rows of several keys. */
static const struct {
    const char *kind, *keys[6];
} groups[] = {
    {"NUMBER_DIMENSION", {"type", "bounds", "log_scale", "choices", "weights", "description"}},
    {"WORD_DIMENSION", {"type", "choices", "weights", "description"}},
    {"GAUSSIAN_FIELD", {"length_scale", "variance"}},
    {"MULTISCALE_FIELD", {"scales", "variance"}},
};
static const char *const kinds[] = {"INT",  "BYTES", "REAL", "BOOL",      "BOOL_OR_AUTO", "ENUM",         "SET",
                                    "LIST", "TEXT",  "NOTE", "WORD_LIST", "PATH",         "NAME_OR_PATH", "RECORDS"};

/* "KIND(a, b, …" at the beginning of a line: whether it is that. */
static bool is_row(const char *line, const char *kind, char a[64], char b[64])
{
    const size_t bytes = strlen(kind);
    b[0] = 0;
    return strncmp(line, kind, bytes) == 0 && line[bytes] == '(' &&
           sscanf(line + bytes + 1, "%63[A-Za-z0-9_], %63[A-Za-z0-9_]", a, b) >= 1;
}

/* Walks through the files; the i-th key or section is what is met there. */
typedef struct walk {
    size_t keys, sections;
    const char *text; /* of the file */
} walk;

/* Whose keys stand outside of any section. */
static bool is_nameless(const char *id)
{
    return strcmp(id, "document") == 0 || strcmp(id, "clouds") == 0 || strcmp(id, "elsewhere") == 0;
}

/* What the file calls the section: its own name, or that of `#define NAME_section , "name"`. */
static void check_section(walk *w, const char *id)
{
    char define[96], name[96];
    snprintf(define, sizeof define, "#define NAME_%s ", id);
    snprintf(name, sizeof name, "%s", id);
    const char *line = strstr(w->text, define);
    if (line) assert_true(sscanf(line + strlen(define), " , \"%95[a-z0-9_.]", name) == 1 || is_nameless(id));
    if (is_nameless(id)) name[0] = 0;
    const pl_config_section *section = &pl_config_sections[w->sections++];
    assert_true(w->sections <= PL_CONFIG_SECTION_COUNT);
    assert_string_equal(section->name, name);
    assert_true(strlen(section->help) > 0);
    if (name[0]) assert_ptr_equal(pl_config_find_section(name, strlen(name)), section);
}

static void check_key(walk *w, const char *name)
{
    assert_true(w->keys < PL_CONFIG_KEY_COUNT);
    assert_string_equal(pl_config_keys[w->keys].name, name);
    assert_ptr_equal(pl_config_keys[w->keys].section, &pl_config_sections[w->sections - 1]);
    w->keys++;
}

static void check_line(walk *w, const char *line)
{
    char a[64], b[64];
    if (is_row(line, "SECTION", a, b)) check_section(w, a);
    for (size_t i = 0; i < COUNT(groups); i++) {
        if (!is_row(line, groups[i].kind, a, b)) continue;
        check_section(w, a);
        for (size_t k = 0; k < COUNT(groups[i].keys) && groups[i].keys[k]; k++) check_key(w, groups[i].keys[k]);
    }
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (is_row(line, kinds[i], a, b)) check_key(w, b);
}

static void every_row_of_the_files_is_a_key(void **state)
{
    (void)state;
    walk w = {0};
    section_files of;
    read_sections(&of);
    for (size_t f = 0; f < of.count; f++) {
        char *text = read_file_of(of.name[f]);
        w.text = text;
        for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
            check_line(&w, line);
        free(text);
    }
    assert_int_equal(w.keys, PL_CONFIG_KEY_COUNT);
    assert_int_equal(w.sections, PL_CONFIG_SECTION_COUNT);
    pl_config *none = NULL;
    assert_int_equal(COUNT(none->origins), w.keys);
    assert_int_equal(PL_CONFIG_SECTION_model, 0);
    assert_string_equal(pl_config_sections[PL_CONFIG_SECTION_run].name, "run");
    assert_null(pl_config_find_section("mode", 4));
    assert_null(pl_config_find_section("models", 6));
    assert_null(pl_config_find_section("parameter_space", 15));
}

/* What lies in a section is printed in one piece: it follows the section, or another that lies there. */
static void sections_in_one_follow_each_other(void **state)
{
    (void)state;
    for (int i = 1; i < PL_CONFIG_SECTION_COUNT; i++)
        for (int k = 0; k + 1 < i; k++) {
            const char *name = pl_config_sections[i].name, *before = pl_config_sections[k].name;
            const uint32_t shared = pl_config_shared_levels(name, before);
            if (shared > pl_config_shared_levels(name, pl_config_sections[i - 1].name)) fail_msg("%s", name);
        }
}

static void keys_are_found_by_path_name_and_number(void **state)
{
    (void)state;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        char path[128];
        const char *section = key->section->name;
        snprintf(path, sizeof path, "%s%s%s", section, section[0] ? "." : "", key->name);
        assert_string_equal(key->path, path);
        assert_ptr_equal(pl_config_find(path), key);
        assert_ptr_equal(pl_config_find_in(key->section, key->name), key);
        assert_true(strlen(path) + sizeof "--set " <= sizeof(pl_config_origin){0}.by);
    }
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_model_arch].path, "model.arch");
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_run_log].path, "run.log");
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_document_version].path, "version");
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_num_layers_bounds].path,
                        "parameter_space.architecture.num_layers.bounds");
}

/* Two keys cannot be one variable of the environment. */
static void variables_are_distinct(void **state)
{
    (void)state;
    for (const pl_config_key *a = pl_config_keys; a < PL_CONFIG_KEYS_END; a++)
        for (const pl_config_key *b = pl_config_keys; b < a; b++) {
            char x[128], y[128];
            snprintf(x, sizeof x, "%s", a->path);
            snprintf(y, sizeof y, "%s", b->path);
            for (char *at = x; *at; at++) *at = *at == '.' ? '_' : *at;
            for (char *at = y; *at; at++) *at = *at == '.' ? '_' : *at;
            if (strcmp(x, y) == 0) fail_msg("%s and %s", a->path, b->path);
        }
}

/* What a row says about its use can be asked: of an enum or a name, among its words; of systems and archs that are. */
static void conditions_can_be_asked(void **state)
{
    (void)state;
    const uint32_t every_system = (1u << PL_SYSTEM_COUNT) - 1, every_arch = (1u << PL_ARCH_COUNT) - 1;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        const pl_config_use *use = &key->use;
        if (!use->systems || use->systems & ~every_system || !use->archs || use->archs & ~every_arch)
            fail_msg("%s", key->path);
        if (!pl_config_archs_of(key)) fail_msg("no arch uses %s", key->path);
        if (!use->by) continue;
        assert_true(use->by->type == PL_CONFIG_ENUM || use->by->type == PL_CONFIG_NAME_OR_PATH);
        assert_true(use->values && use->values >> use->by->name_count == 0);
    }
}

/* Room for a value on a stack is room for that of any key but records. */
static void a_value_has_room(void **state)
{
    (void)state;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        assert_true(key->bytes <= sizeof(pl_config_value) || key->type == PL_CONFIG_RECORDS);
}

/* What hashes leave out was in them else; what is not printed is so for one reason. */
static void a_default_is_left_out_for_one_reason(void **state)
{
    (void)state;
    const uint32_t unprinted =
                       PL_CONFIG_FLAG_UNSAID | PL_CONFIG_FLAG_NO_EFFECT | PL_CONFIG_FLAG_KEPT | PL_CONFIG_FLAG_ASIDE,
                   new = PL_CONFIG_FLAG_LATER | PL_CONFIG_FLAG_UNSAID;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (__builtin_popcount(key->flags & unprinted) > 1) fail_msg("%s is not printed for two reasons", key->path);
        if ((key->flags & new) == PL_CONFIG_FLAG_UNSAID) fail_msg("%s would change the hashes of kept runs", key->path);
        if ((key->flags & new) == PL_CONFIG_FLAG_LATER && !(key->flags & PL_CONFIG_FLAG_NUMERICS))
            fail_msg("%s is in no hash that it could be left out of", key->path);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_files_is_a_key),
        cmocka_unit_test(sections_in_one_follow_each_other),
        cmocka_unit_test(keys_are_found_by_path_name_and_number),
        cmocka_unit_test(variables_are_distinct),
        cmocka_unit_test(conditions_can_be_asked),
        cmocka_unit_test(a_value_has_room),
        cmocka_unit_test(a_default_is_left_out_for_one_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

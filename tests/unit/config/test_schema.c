/* The table itself, held against the text of src/config/sections: every row is there once, in its section, in the order
 * of the files; numbers and names agree. */
#include "helpers.h"
#include "support/program.h"

/* "KIND(section, name, …" at the beginning of a line: whether it is a row of a key, and the name. */
static bool read_row(const char *line, const char *section, char name[64])
{
    static const char *const kinds[] = {"INT",  "BYTES", "REAL", "BOOL", "BOOL_OR_AUTO",
                                        "ENUM", "SET",   "TEXT", "PATH", "NAME_OR_PATH"};
    char start[96];
    for (size_t i = 0; i < COUNT(kinds); i++) {
        snprintf(start, sizeof start, "%s(%s, ", kinds[i], section);
        if (strncmp(line, start, strlen(start)) == 0) return sscanf(line + strlen(start), "%63[a-z0-9_]", name) == 1;
    }
    return false;
}

static void the_sections_stand_in_order(void **state)
{
    (void)state;
    section_names s;
    read_sections(&s);
    assert_int_equal(PL_CONFIG_SECTION_COUNT, s.count);
    for (size_t i = 0; i < s.count; i++) {
        assert_string_equal(pl_config_sections[i].name, s.name[i]);
        assert_true(strlen(pl_config_sections[i].help) > 0);
        assert_ptr_equal(pl_config_find_section(s.name[i], strlen(s.name[i])), &pl_config_sections[i]);
    }
    assert_int_equal(PL_CONFIG_SECTION_model, 0);
    assert_string_equal(s.name[PL_CONFIG_SECTION_run], "run");
    assert_null(pl_config_find_section("mode", 4));
    assert_null(pl_config_find_section("models", 6));
}

static void every_row_of_the_files_is_a_key(void **state)
{
    (void)state;
    size_t count = 0;
    section_names of;
    read_sections(&of);
    for (size_t s = 0; s < of.count; s++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "src/config/sections/%s.def", of.name[s]);
        FILE *file = open_in_repository(path, "r");
        assert_non_null(file);
        char *text = read_text(file);
        fclose(file);
        for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
            if (!read_row(line, of.name[s], name)) continue;
            assert_true(count < PL_CONFIG_KEY_COUNT);
            assert_string_equal(pl_config_keys[count].name, name);
            assert_ptr_equal(pl_config_keys[count].section, &pl_config_sections[s]);
            count++;
        }
        free(text);
    }
    assert_int_equal(count, PL_CONFIG_KEY_COUNT);
    pl_config *none = NULL;
    assert_int_equal(COUNT(none->origins), count);
}

static void keys_are_found_by_path_name_and_number(void **state)
{
    (void)state;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        char path[64];
        snprintf(path, sizeof path, "%s.%s", key->section->name, key->name);
        assert_string_equal(key->path, path);
        assert_ptr_equal(pl_config_find(path), key);
        assert_ptr_equal(pl_config_find_in(key->section, key->name), key);
    }
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_model_arch].path, "model.arch");
    assert_string_equal(pl_config_keys[PL_CONFIG_KEY_run_log].path, "run.log");
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

/* Room for a value on a stack is room for that of any key. */
static void a_value_has_room(void **state)
{
    (void)state;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        assert_true(key->bytes <= sizeof(pl_config_value));
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sections_stand_in_order),
        cmocka_unit_test(every_row_of_the_files_is_a_key),
        cmocka_unit_test(keys_are_found_by_path_name_and_number),
        cmocka_unit_test(conditions_can_be_asked),
        cmocka_unit_test(a_value_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lists of records: the flights of a regression of cloud heights. What is read, what is printed, and the sentence of
 * each mistake with its place. */
#include "helpers.h"
#include "support/program.h"

#define FLIGHT(name) "{name: " name ", iFileName: a.h5, cFileName: b.h5, nFileName: c.h5}"

static const pl_config_key *const flights = &pl_config_keys[PL_CONFIG_KEY_clouds_flights];

static void what_is_written_is_read(void **state)
{
    (void)state;
    pl_config cfg;
    char where[PL_CONFIG_WHERE_BYTES];
    must_load(&cfg, "model: {arch: clouds}\nflights:\n"
                    "  - name: 10Feb25\n    iFileName: 10Feb25/i.h5\n    nFileName: n.h5\n    cFileName: 'c d.h5'\n"
                    "  - " FLIGHT("\"007\"") "\n");
    assert_int_equal(cfg.clouds.flights.count, 2);
    const pl_config_flight *item = cfg.clouds.flights.item;
    assert_string_equal(item[0].name, "10Feb25");
    assert_string_equal(item[0].camera, "10Feb25/i.h5");
    assert_string_equal(item[0].lidar, "c d.h5");
    assert_string_equal(item[0].navigation, "n.h5");
    assert_string_equal(item[1].name, "007");
    assert_string_equal(item[1].navigation, "c.h5");
    assert_true(pl_config_is_set(&cfg, "flights"));
    assert_string_equal(pl_config_where(&cfg, "flights", where, sizeof where), "c.yaml:3:3");
    assert_false(pl_config_is_default(&cfg, flights));
    must_load(&cfg, "model: {arch: clouds}");
    assert_int_equal(cfg.clouds.flights.count, 0);
    assert_true(pl_config_is_default(&cfg, flights));
}

static void what_is_printed_is_what_was_read(void **state)
{
    (void)state;
    pl_config cfg;
    pl_str yaml = {0}, line = {0};
    must_load(&cfg, "model: {arch: clouds}\nflights: [" FLIGHT("A") ", " FLIGHT("b-2") "]");
    pl_config_print_yaml(&cfg, &yaml);
    assert_non_null(strstr(pl_str_text(&yaml), "\nflights:\n"
                                               "  - name: \"A\"\n"
                                               "    iFileName: a.h5\n"
                                               "    cFileName: b.h5\n"
                                               "    nFileName: c.h5\n"
                                               "  - name: \"b-2\"\n"));
    pl_config_print_value(flights, &cfg.clouds.flights, &line);
    assert_string_equal(pl_str_text(&line), "[{name: \"A\", iFileName: a.h5, cFileName: b.h5, nFileName: c.h5}, "
                                            "{name: \"b-2\", iFileName: a.h5, cFileName: b.h5, nFileName: c.h5}]");
    pl_str_deinit(&yaml);
    pl_str_deinit(&line);
    must_load(&cfg, "model: {arch: clouds}"); /* none: an empty list could not be read back */
    pl_config_print_yaml(&cfg, &yaml);
    assert_null(strstr(pl_str_text(&yaml), "\nflights:"));
    pl_str_deinit(&yaml);
}

#define LIST_IS "flights must be a list of 1 to 32 mappings with name, iFileName, cFileName and nFileName"

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"flights: []", "c.yaml:1:10: " LIST_IS ", not an empty list"},
        {"flights:",
         "c.yaml:1:9: flights has no value; give a list of 1 to 32 mappings with name, iFileName, cFileName "
         "and nFileName"},
        {"flights: x", "c.yaml:1:10: " LIST_IS ", not \"x\""},
        {"flights: {a: b}", "c.yaml:1:10: " LIST_IS ", not a mapping"},
        {"flights: [x]", "c.yaml:1:11: " LIST_IS "; this is no mapping, such as \"- name: …\""},
        {"flights: [{}]", "c.yaml:1:11: flights[1] has no name; write \"name: …\" in it"},
        {"flights:\n- " FLIGHT("a") "\n- {name: b, cFileName: d, nFileName: e}",
         "c.yaml:3:3: flights[2] has no iFileName; write \"iFileName: …\" in it"},
        {"flights:\n- " FLIGHT("a") "\n- " FLIGHT("b") "\n- " FLIGHT("a"),
         "c.yaml:4:3: flights[3] and flights[1] are both called a; give each a name of its own"},
        {"flights: [{name: a, name: b}]",
         "c.yaml:1:21: key \"flights[1].name\" is here a second time; the first is on line 1"},
        {"flights: [{name: a, iFilename: b}]",
         "c.yaml:1:21: unknown key \"iFilename\" in flights[1]; did you mean \"iFileName\"?"},
        {"flights: [{name: a, weight: 2}]", "c.yaml:1:21: unknown key \"weight\" in flights[1]; its keys are name, "
                                            "iFileName, cFileName, nFileName"},
        {"flights: [{[a]: b}]", "c.yaml:1:12: a key of flights[1] must be a word"},
        {"flights: [{name: [a]}]", "c.yaml:1:18: flights[1].name must be text, not a list"},
        {"flights: [{name: {a: b}}]", "c.yaml:1:18: flights[1].name must be text, not a mapping"},
        {"flights: [{name: }]", "c.yaml:1:18: flights[1].name has no value; give a name"},
        {"flights: [{iFileName: \"\"}]", "c.yaml:1:23: flights[1].iFileName has no value; give a path"},
        {"flights: [{iFileName: ~}]", "c.yaml:1:23: flights[1].iFileName has no value; give a path"},
        {"flights: [{name: 12}]", "c.yaml:1:18: flights[1].name must be text, not 12; put it in quotes"},
        {"flights: [{name: a/b}]", "c.yaml:1:18: flights[1].name \"a/b\" is no name of a folder; take letters, digits, "
                                   "_ and, not in front, - and ."},
        {"flights: [{name: ..}]", "c.yaml:1:18: flights[1].name \"..\" is no name of a folder; take letters, digits, "
                                  "_ and, not in front, - and ."},
        {"flights: [{name: a23456789b123456789c123456789d12}]",
         "c.yaml:1:18: flights[1].name has 32 bytes; at most 31 fit"},
        {"flights: [{cFileName: \"a\\0b\"}]",
         "c.yaml:1:23: flights[1].cFileName is not printable UTF-8 at byte 1 (0x00); write it as UTF-8"},
        {"flights: [*a]", "c.yaml:1:11: an alias (*a) is not allowed here; write the value out"},
        {"flights: [&a {}]", "c.yaml:1:11: an anchor (&a) is not allowed here; take it away"},
        {"flights: [" FLIGHT("a") "]\nflights: [" FLIGHT("a") "]",
         "c.yaml:2:1: key \"flights\" is here a second time; the first is on line 1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg, before;
        pl_error err = {0};
        pl_config_default(&before);
        assert_int_equal(load(&cfg, rows[i].text, &err), PL_E_CONFIG);
        if (strcmp(err.text, rows[i].sentence) != 0)
            fail_msg("%s:\n  %s\n  %s", rows[i].text, err.text, rows[i].sentence);
        assert_memory_equal(&cfg, &before, sizeof cfg);
    }
}

/* name: a number. */
static void print_list(pl_str *text, int count, size_t path_bytes)
{
    pl_str_append(text, "model: {arch: clouds}\nflights:\n");
    for (int i = 0; i < count; i++) {
        pl_str_printf(text, "- {name: f%d, cFileName: c, nFileName: n, iFileName: ", i);
        pl_str_pad(text, 'p', path_bytes);
        pl_str_append(text, "}\n");
    }
}

static void rooms_are_full_and_no_fuller(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    pl_str text = {0};
    print_list(&text, 32, 159);
    must_load(&cfg, pl_str_text(&text));
    assert_int_equal(cfg.clouds.flights.count, 32);
    assert_int_equal(strlen(cfg.clouds.flights.item[31].camera), 159);
    assert_string_equal(cfg.clouds.flights.item[31].name, "f31");
    pl_str_clear(&text);
    print_list(&text, 33, 1);
    assert_int_equal(load(&cfg, pl_str_text(&text), &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:35:3: " LIST_IS ", and this is one too many");
    pl_str_clear(&text);
    print_list(&text, 1, 160);
    assert_int_equal(load(&cfg, pl_str_text(&text), &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:3:53: flights[1].iFileName has 160 bytes; at most 159 fit");
    pl_str_deinit(&text);
}

static void only_a_file_gives_them(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    char *variable[] = {"PLIMSOLL_FLIGHTS=a", NULL};
    pl_config_default(&cfg);
    assert_int_equal(pl_config_set(&cfg, "flights", "[]", "--set flights", &err), PL_E_CONFIG);
    assert_string_equal(err.text, "--set flights: flights is a list of mappings, which only a config file can give");
    assert_int_equal(pl_config_apply_env(&cfg, variable, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "PLIMSOLL_FLIGHTS: flights is a list of mappings, which only a config file can give");
}

/* Of a run that has begun: which flights, in which order; where their files lie may change, contents count. */
static void a_resume_keeps_the_names(void **state)
{
    (void)state;
    pl_config saved, now;
    pl_error err = {0};
    must_load(&saved, "model: {arch: clouds}\nflights: [" FLIGHT("a") ", " FLIGHT("b") "]");
    must_load(
        &now,
        "model: {arch: clouds}\nflights: [{name: a, iFileName: z, cFileName: b.h5, nFileName: c.h5}, " FLIGHT("b") "]");
    assert_false(pl_config_equal(&saved, &now));
    assert_int_equal(pl_config_check_begun(&saved, &now, &err), PL_OK);
    assert_true(pl_config_hash_model(&saved) == pl_config_hash_model(&now));
    assert_false(pl_config_hash_numerics(&saved) == pl_config_hash_numerics(&now));
    must_load(&now, "model: {arch: clouds}\nflights: [" FLIGHT("b") ", " FLIGHT("a") "]");
    assert_int_equal(pl_config_check_begun(&saved, &now, &err), PL_E_CONFIG);
    assert_string_equal(err.text,
                        "c.yaml:2:10: flights is [b, a] here and [a, b] in the saved run, which keeps it from "
                        "its first step to its last; set it back, or choose another `run.out`");
    must_load(&now, "model: {arch: clouds}\nflights: [" FLIGHT("a") "]");
    assert_int_equal(pl_config_check_begun(&saved, &now, &err), PL_E_CONFIG);
}

static void a_command_may_need_them(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "model: {arch: clouds}");
    assert_int_equal(pl_config_require(&cfg, "flights", "train", &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml: train needs flights: write \"flights:\" in the config file and under it "
                                  "\"- name: …\"");
    assert_int_equal(pl_config_require(&cfg, "data_directory", "train", &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml: train needs data_directory: write \"data_directory: …\" in the config file, "
                                  "or give `data_directory` …");
    must_load(&cfg, "model: {arch: clouds}\nflights: [" FLIGHT("a") "]\ndata_directory: d");
    assert_int_equal(pl_config_require(&cfg, "flights", "train", &err), PL_OK);
    assert_int_equal(pl_config_require(&cfg, "data_directory", "train", &err), PL_OK);
}

static void another_system_has_none(void **state)
{
    (void)state;
    pl_config cfg;
    pl_error err = {0};
    must_load(&cfg, "model: {arch: mlp}\nflights: [" FLIGHT("a") "]");
    assert_int_equal(pl_config_check_keys(&cfg, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "c.yaml:2:10: flights is not used when model.arch is mlp; take it out");
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),       cmocka_unit_test(what_is_printed_is_what_was_read),
        cmocka_unit_test(each_mistake_has_its_sentence), cmocka_unit_test(rooms_are_full_and_no_fuller),
        cmocka_unit_test(only_a_file_gives_them),        cmocka_unit_test(a_resume_keeps_the_names),
        cmocka_unit_test(a_command_may_need_them),       cmocka_unit_test(another_system_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

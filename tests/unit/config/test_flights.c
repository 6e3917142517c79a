/* Flights and the trainings on them: names that must be there, trainings that would see what they are judged by. */
#include "helpers.h"
#include "support/program.h"
#include "systems/clouds.h"

#define FLIGHT(name) "{name: " name ", iFileName: a.h5, cFileName: b.h5, nFileName: c.h5}"
#define CLOUDS(lines)                                                                                                  \
    "model: {arch: clouds}\n" lines "\nflights: [" FLIGHT("10Feb25") ", " FLIGHT("30Oct24") "]\ndata_directory: d\n"

static const struct {
    const char *text, *sentence; /* NULL: it is sound */
} rows[] = {
    {"model: {arch: clouds}", NULL},
    {"model: {arch: clouds}\npretrain_flight: x\nvalidation_flight: y", NULL}, /* no list to compare with */
    {CLOUDS("validation_flight: 10Feb25"), NULL},
    {CLOUDS("validation_flight: 10Feb25\npretrain_flight: 30Oct24\noverweight_flight: 30Oct24\nloo: true"), NULL},
    {CLOUDS("final: false"), NULL},
    {CLOUDS(""), NULL},
    {CLOUDS("stage: loo-10Feb25"), NULL},
    {CLOUDS("stage: pretrain\npretrain_flight: 10Feb25"), NULL},
    {CLOUDS("stage: final\nvalidation_flight: 10Feb25"), NULL},
    {CLOUDS("pretrain: false\nvalidation_flight: 10Feb25\npretrain_flight: 10Feb25"), NULL},
    {CLOUDS("swath_slice: [7, 8]\nfinal: false"), NULL},
    {"model: {arch: clouds}\nswath_slice: [40, 40]",
     "c.yaml:2:14: swath_slice begins at row 40 and ends before row 40; write the first row, then the one behind the "
     "last"},
    {"model: {arch: clouds}\ncount: 40\nframe_width: 64", NULL},
    {CLOUDS("count: 40\nfinal: false"),
     "c.yaml:2:8: count is of a plan without flights, and there are flights, which say it; take it out"},
    {CLOUDS("frame_width: 64\nfinal: false"),
     "c.yaml:2:14: frame_width is of a plan without flights, and there are flights, which say it; take it out"},
    {CLOUDS("pretrain_flight: 10feb25"),
     "c.yaml:2:18: pretrain_flight names the flight \"10feb25\", which flights has not; did you mean \"10Feb25\"?"},
    {CLOUDS("validation_flight: unknown"), "c.yaml:2:20: validation_flight names the flight \"unknown\", which flights "
                                           "has not; it has [10Feb25, 30Oct24]"},
    {CLOUDS("overweight_flight: unknown"), "c.yaml:2:20: overweight_flight names the flight \"unknown\", which flights "
                                           "has not; it has [10Feb25, 30Oct24]"},
    {CLOUDS("stage: loo-unknown"),
     "c.yaml:2:8: stage names the flight \"unknown\", which flights has not; it has [10Feb25, 30Oct24]"},
    {CLOUDS("stage: test"),
     "c.yaml:2:8: stage must be pretrain, final, or loo- and the name of a flight, not \"test\"; "
     "leave it empty for all"},
    {CLOUDS("stage: pretrain"), "c.yaml:2:8: the stage pretrain needs a flight; name it by pretrain_flight"},
    {CLOUDS("stage: final"), "c.yaml:2:8: the stage final needs a flight; name it by validation_flight"},
    {CLOUDS("stage: loo-"),
     "c.yaml:2:8: stage must be pretrain, final, or loo- and the name of a flight, not \"loo-\"; "
     "leave it empty for all"},
    {CLOUDS("pretrain_flight: 10Feb25\nvalidation_flight: 10Feb25"),
     "c.yaml:2:18: pretrain_flight and validation_flight are both 10Feb25: the final training would begin from weights "
     "that have seen what it is judged by; name another, or set pretrain to false"},
    {CLOUDS("overweight_flight: 10Feb25\nvalidation_flight: 10Feb25"),
     "c.yaml:2:20: overweight_flight and validation_flight are both 10Feb25, and the final training never sees it; "
     "name "
     "another, or take overweight_flight out"},
    {"model: {arch: clouds}\nvalidation_flight: a\nflights: [" FLIGHT("a") "]\ndata_directory: d",
     "c.yaml:3:10: flights has one flight, and a training that is judged by a flight of its own needs another to learn "
     "from; add one, or set final and loo to false"},
    {"model: {arch: clouds}\nfinal: false\nflights: [{name: a, iFileName: /a, cFileName: /b, nFileName: /c}]", NULL},
    {"model: {arch: clouds}\nfinal: false\nflights: [{name: a, iFileName: /a, cFileName: /b, nFileName: c}]",
     "c.yaml:3:10: flights[1].nFileName is no absolute path, and data_directory does not say where it begins; write "
     "\"data_directory: …\" in the config file, or give `data_directory` …"},
    {"model: {arch: clouds}\nsave_name: a/b", "c.yaml:2:12: save_name \"a/b\" is no name of a folder; take letters, "
                                              "digits, _ and, not in front, - and ."},
};

static void each_contradiction_has_its_sentence(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        pl_config cfg;
        pl_error err = {0};
        must_load(&cfg, rows[i].text);
        const pl_status status = pl_config_check(&cfg, &err);
        if (status == (rows[i].sentence ? PL_E_CONFIG : PL_OK) &&
            strcmp(err.text, rows[i].sentence ? rows[i].sentence : "") == 0)
            continue;
        print_error("for\n%s\ngot  %s\nwant %s\n", rows[i].text, err.text, rows[i].sentence ? rows[i].sentence : "-");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void one_flight_may_weigh_more(void **state)
{
    (void)state;
    pl_config cfg;
    must_load(&cfg, CLOUDS("pretrain_flight: 30Oct24\nvalidation_flight: 10Feb25"));
    assert_string_equal(pl_clouds_overweight(&cfg), "30Oct24"); /* that of the pre-training */
    must_load(&cfg, CLOUDS("pretrain_flight: 30Oct24\nvalidation_flight: 30Oct24\npretrain: false"));
    assert_string_equal(pl_clouds_overweight(&cfg), ""); /* but not where it is held out */
    must_load(&cfg, CLOUDS("pretrain_flight: 30Oct24\noverweight_flight: 10Feb25"));
    assert_string_equal(pl_clouds_overweight(&cfg), "10Feb25");
    must_load(&cfg, CLOUDS(""));
    assert_string_equal(pl_clouds_overweight(&cfg), "");
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_contradiction_has_its_sentence),
        cmocka_unit_test(one_flight_may_weigh_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The frame file of a run and the data of its stages, from a config as a user writes it and synthetic flights: where
 * the file lies, when it is made and when used again, whom it spares; what each stage and command then opens. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "data/clouds/clouds_data.h"
#include "plimsoll/synth.h"
#include "store/folder.h"
#include "store/hdf5_load.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/seed.h"
#include "systems/system.h"

enum { LABELS = 9, FLIGHTS = 3, HEIGHT = 24, WIDTH = 33, PICTURES_TOLD = 4 };

static uint64_t seed;
static pl_error err;
static pl_config config;
static char folder[] = "/tmp/plimsoll-clouds-XXXXXX", *flights;
static uint32_t told, stop_at; /* 0: never */

/* ---- a config ---- */

static void load(const char *out)
{
    pl_str text = {0};
    pl_config_default(&config);
    pl_str_printf(&text,
                  "model: {arch: clouds}\nrun: {out: %s}\nbatch_size: 4\ntemporal_frames: 3\n"
                  "pretrain_flight: 10Feb25\nvalidation_flight: 30Oct24\n%s",
                  out, flights);
    if (pl_config_load_text(&config, "c.yaml", pl_str_text(&text), text.bytes, &err) != PL_OK) fail_msg("%s", err.text);
    pl_str_deinit(&text);
}

static void set(const char *key, const char *value)
{
    if (pl_config_set(&config, key, value, "test", &err) != PL_OK) fail_msg("%s", err.text);
}

/* ---- preparing ---- */

static bool tell(void *context, const char *phase, uint64_t done, uint64_t all)
{
    (void)context;
    assert_string_equal(phase, "preparing frames");
    assert_true(done >= 1 && done <= all);
    return ++told != stop_at;
}

static pl_status prepare(void)
{
    static pl_preparation p;
    told = 0;
    pl_status status = pl_preparation_begin(&p, &config, &config, PL_COMMAND_TRAIN, &err);
    if (status == PL_OK) status = pl_system_clouds.dataset[0]->prepare(&p, tell, NULL, &err);
    pl_preparation_end(&p, status);
    return status;
}

static void must_prepare(bool makes)
{
    if (prepare() != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(told > 0, makes);
}

static void refused(pl_status status, const char *says)
{
    err.text[0] = 0;
    assert_int_equal(prepare(), status);
    if (!strstr(err.text, says)) fail_msg("\"%s\" was expected in: %s", says, err.text);
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void made_once(void **state)
{
    (void)state;
    load("out");
    must_prepare(true);
    assert_true(exists("out/frames.bin"));
    must_prepare(false);
    set("stage", "loo-10Feb25"); /* every stage has the same */
    must_prepare(false);
    set("clahe_clip_limit", "0.02");
    must_prepare(true);
    set("cache", "shared/frames");
    must_prepare(true);
    assert_true(exists("shared/frames/frames.bin"));
    must_prepare(false);
    assert_int_equal(truncate("shared/frames/frames.bin", 5000), 0);
    must_prepare(true);
}

static void nothing_is_left_of_what_fails(void **state)
{
    (void)state;
    load("new/run");
    stop_at = PICTURES_TOLD;
    refused(PL_E_STOPPED, "stopped at picture");
    assert_false(exists("new"));
    set("cache", "deep/er");
    refused(PL_E_STOPPED, "stopped at picture");
    assert_false(exists("new") || exists("deep"));
    stop_at = 0;
    set("frame_bytes", "1MiB");
    set("temporal_frames", "1");
    must_prepare(true);
    assert_true(exists("deep/er/frames.bin"));
}

static void others_are_spared(void **state)
{
    (void)state;
    int lock;
    load("held");
    assert_int_equal(mkdir("held", 0777), 0);
    assert_int_equal(pl_folder_lock("held", &lock, &err), PL_OK);
    refused(PL_E_STORAGE, "held");
    assert_false(exists("held/frames.bin"));
    pl_folder_unlock(&lock);
    write_file("held/frames.bin", "holiday pictures\n", 9);
    refused(PL_E_STORAGE, "held/frames.bin: exists but is no frame file");
    unlink("held/frames.bin");
    must_prepare(true);
    assert_int_equal(rename(config.clouds.data_directory, "elsewhere"), 0);
    refused(PL_E_DATA, "SYNTHETIC_IRAI");
    assert_true(exists("held/frames.bin"));
    assert_int_equal(rename("elsewhere", config.clouds.data_directory), 0);
    must_prepare(false);
}

static void flights_are_asked_for(void **state)
{
    (void)state;
    load("out");
    config.clouds.data_directory[0] = 0;
    refused(PL_E_CONFIG, "data_directory");
    /* The result must not lie on what it is made of. */
    load("a/10Feb25");
    snprintf(config.clouds.flights.item[1].lidar, sizeof config.clouds.flights.item[1].lidar, "10Feb25/frames.bin");
    refused(PL_E_USAGE, "the same file");
}

static void whole_paths_need_no_folder(void **state)
{
    char whole[PL_FILE_PATH_MAX], at[PL_FILE_PATH_MAX];
    (void)state;
    load("whole");
    assert_non_null(getcwd(whole, sizeof whole));
    for (int64_t i = 0; i < FLIGHTS; i++) {
        pl_config_flight *f = &config.clouds.flights.item[i];
        char *const name[] = {f->camera, f->lidar, f->navigation};
        for (int k = 0; k < 3; k++) {
            snprintf(at, sizeof at, "%.60s/a/%.80s", whole, name[k]);
            snprintf(name[k], sizeof f->camera, "%s", at);
        }
    }
    config.clouds.data_directory[0] = 0;
    must_prepare(true);
    must_prepare(false);
}

/* ---- opening ---- */

static pl_clouds_data *open_data(pl_command command, pl_data_use use)
{
    pl_data *data;
    if (pl_system_clouds.dataset[0]->open(&config, command, use, NULL, &data, &err) != PL_OK) fail_msg("%s", err.text);
    return (pl_clouds_data *)data;
}

/* Training and validation samples; of LABELS a flight two stop (85 %), in the pre-training also two (80 %). */
static void check_stage(const char *stage, uint64_t train, uint64_t inner, uint64_t test)
{
    set("stage", stage);
    pl_clouds_data *d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN);
    const pl_facts identity = d->data.identity;
    assert_int_equal(d->source.samples[PL_PART_TRAIN].count, train);
    assert_int_equal(d->source.samples[PL_PART_VALIDATION].count, inner);
    assert_int_equal(d->source.source.at_once, 4);
    pl_data_close(&d->data);
    d = open_data(PL_COMMAND_EVALUATE, PL_DATA_FOR_RUN);
    assert_true(pl_facts_equal(&identity, &d->data.identity));
    assert_int_equal(d->source.samples[PL_PART_VALIDATION].count, test);
    pl_data_close(&d->data);
    d = open_data(PL_COMMAND_GRADIENTS, PL_DATA_FOR_PLAN);
    assert_int_equal(d->source.source.at_once, 4);
    pl_data_close(&d->data);
}

static void stages_open(void **state)
{
    (void)state;
    load("out");
    if (prepare() != PL_OK) fail_msg("%s", err.text);
    check_stage("pretrain", 7, 2, 2);
    check_stage("final", 14, 4, LABELS);
    check_stage("loo-10Feb25", 14, 4, LABELS);
    pl_clouds_data *d = open_data(PL_COMMAND_EVALUATE, PL_DATA_FOR_PLAN);
    assert_string_equal(d->data.kind->labels->at(&d->data, 0).group, "10Feb25");
    assert_int_equal(pl_facts_value(&d->data.extents, "height", 0), HEIGHT);
    pl_data_close(&d->data);
    set("stage", ""); /* the first of all */
    d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN);
    assert_int_equal(d->source.samples[PL_PART_TRAIN].count, 7);
    pl_data_close(&d->data);
}

/* A step of the training part, for a layout of two rows. */
static pl_status fill_two(const pl_clouds_data *d, const float **images)
{
    static float image[2 * 3 * 16 * 24], angle[4], target[2];
    pl_source_layout layout;
    pl_slot slot = {.part = PL_PART_TRAIN, .rows = 2};
    assert_int_equal(d->source.source.kind->describe(&d->source.source, 2, &layout, &err), PL_OK);
    void *scratch = aligned_alloc(64, layout.scratch_bytes + 64 - layout.scratch_bytes % 64);
    assert_non_null(scratch);
    slot.port[0].at = (void *)image, slot.port[1].at = (void *)angle, slot.port[2].at = (void *)target;
    *images = image;
    const pl_status status = d->source.source.kind->fill(&d->source.source, scratch, &slot, &err);
    free(scratch);
    return status;
}

/* Without flights: a plan is of so many samples of so many pixels, and may read noise; a run is refused, at its folder
 * and at its first picture. */
static void no_flights_are_counted(void **state)
{
    static const char *const forms[] = {"u8", "f16"};
    const float *images;
    (void)state;
    load("none");
    config.clouds.flights.count = 0;
    set("count", "40"), set("frame_width", "24"), set("swath_slice", "[4, 20]");
    must_prepare(false);
    assert_false(exists("none"));
    for (int i = 0; i < 2; i++) {
        set("frame_form", forms[i]);
        pl_clouds_data *d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN);
        assert_int_equal(pl_facts_value(&d->data.extents, "height", 0), 16);
        assert_int_equal(pl_facts_value(&d->data.extents, "width", 0), 24);
        assert_int_equal(d->source.samples[PL_PART_TRAIN].count, 34);
        assert_int_equal(d->source.samples[PL_PART_VALIDATION].count, 6);
        assert_non_null(strstr(d->data.said, "40 samples of 3 frames of 16 x 24 pixels, which are counted"));
        if (fill_two(d, &images) != PL_OK) fail_msg("%s", err.text);
        for (int k = 0; k < 2 * 3 * 16 * 24; k++) assert_true(isfinite(images[k]));
        pl_data_close(&d->data);
        d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_RUN);
        assert_int_equal(fill_two(d, &images), PL_E_DATA);
        pl_data_close(&d->data);
    }
    assert_int_equal(
        pl_system_clouds.dataset[0]->check_folder(&(pl_preparation){.config = &config}, PL_COMMAND_TRAIN, &err),
        PL_E_CONFIG);
    assert_non_null(strstr(err.text, "this command needs flights"));
    set("count", "0");
    pl_data *data;
    assert_int_equal(pl_system_open(&config, PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN, NULL, &data, &err), PL_E_CONFIG);
}

/* Angles that are told, the flight that is drawn more often, windows: the source has what the config says. */
static void keys_reach_the_source(void **state)
{
    static const struct {
        const char *mode;
        bool zenith, azimuth;
    } angles[] = {{"both", true, true}, {"sza_only", true, false}, {"saa_only", false, true}, {"none", false, false}};
    (void)state;
    load("out");
    set("stage", "final");
    for (int i = 0; i < 4; i++) {
        set("angles_mode", angles[i].mode), set("augment", i & 1 ? "true" : "false");
        set("zscore_normalize", i & 2 ? "true" : "false"), set("overweight_flight", i & 1 ? "04Nov24" : "");
        pl_clouds_data *d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN);
        assert_int_equal(d->source.zenith, angles[i].zenith);
        assert_int_equal(d->source.azimuth, angles[i].azimuth);
        assert_int_equal(d->source.augment, i & 1);
        assert_int_equal(d->source.zscore, i >> 1);
        assert_int_equal(d->source.window, 3);
        assert_true(d->source.draw.weighted && fabs(d->source.draw.share - 3.5 / 4.5) < 1e-12);
        assert_int_equal(d->heavy_begin, i & 1 ? 7 : 0); /* else that of the pre-training */
        pl_data_close(&d->data);
    }
    set("pretrain", "false"), set("overweight_flight", ""), set("pretrain_flight", "30Oct24");
    pl_clouds_data *d = open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN); /* held out: nothing weighs more */
    assert_true(d->source.draw.share == 0);
    pl_data_close(&d->data);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    pl_data *data;
    load("out");
    must_prepare(false);
    set("flat_field_correction", "false");
    assert_int_equal(pl_system_clouds.dataset[0]->open(&config, PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN, NULL, &data, &err),
                     PL_E_DATA);
    assert_non_null(strstr(err.text, "out/frames.bin: was made of other flights, or in another way"));
    pl_data_close(&open_data(PL_COMMAND_TRAIN, PL_DATA_FOR_RUN)->data); /* the plan's identity tells */
    load("out");
    config.clouds.pretrain = config.clouds.final = false;
    assert_int_equal(pl_system_clouds.dataset[0]->open(&config, PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN, NULL, &data, &err),
                     PL_E_CONFIG);
    assert_non_null(strstr(err.text, "there is nothing to train"));
}

static void without_memory(void **state)
{
    const uint64_t held = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    pl_data *data;
    (void)state;
    load("out");
    for (uint64_t n = 1; status == PL_E_NOMEM; n++) {
        pl_alloc_fail_at(n, 0);
        status = pl_system_clouds.dataset[0]->open(&config, PL_COMMAND_TRAIN, PL_DATA_FOR_PLAN, NULL, &data, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(pl_alloc_live_blocks(), held);
    }
    assert_int_equal(status, PL_OK);
    pl_data_close(data);
    assert_int_equal(pl_alloc_live_blocks(), held);
}

static int begin(void **state)
{
    pl_synth_clouds_options o = pl_synth_clouds_default();
    size_t bytes;
    (void)state;
    o.flights = FLIGHTS, o.labels = LABELS, o.height = HEIGHT, o.width = WIDTH, o.seed = seed;
    return enter_folder(folder) != 0 || pl_synth_clouds("a", &o, &flights, &bytes, &err) != PL_OK;
}

static int finish(void **state)
{
    (void)state;
    pl_free(flights);
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    pl_module hdf5;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_once),
        cmocka_unit_test(nothing_is_left_of_what_fails),
        cmocka_unit_test(others_are_spared),
        cmocka_unit_test(flights_are_asked_for),
        cmocka_unit_test(whole_paths_need_no_folder),
        cmocka_unit_test(stages_open),
        cmocka_unit_test(no_flights_are_counted),
        cmocka_unit_test(keys_reach_the_source),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(without_memory),
    };
    seed = test_seed_said(argc, argv);
    if (pl_hdf5_load("this test", "", &hdf5, &err) != PL_OK) return printf("not without libhdf5: %s\n", err.text), 0;
    const int failed = cmocka_run_group_tests(tests, begin, finish);
    pl_module_unload(&hdf5);
    return failed;
}

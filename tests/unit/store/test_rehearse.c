/* What loading a checkpoint will ask of the heap: rehearsed without a file, and counted while a real one is loaded.
 * Never less, and little more; of lists of which a part is read, less by a thousandth at most. */
#include "unit/store/scratch_folder.h"

#include "base/alloc.h"
#include "base/json_read.h"
#include "store/checkpoint.h"
#include "support/program.h"

enum { TENSORS_MAX = 9000, PART_MAX = 1024 }; /* longer lists are rehearsed in part */

static float numbers[TENSORS_MAX];
static char names[TENSORS_MAX][64];
static pl_st_entry entries[TENSORS_MAX];
static pl_error err;
static unsigned compared, close_ones;

static void assert_ok(pl_status status)
{
    if (status != PL_OK) fail_msg("%s: %s", pl_status_name(status), err.text);
}

/* Layers of twelve tensors, every other one a vector; one of several ranks now and then. */
static void make_entries(void)
{
    for (size_t i = 0; i < TENSORS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "transformer.h.%zu.%s.weight", i / 12, i % 3 ? "mlp.c_fc" : "ln_1");
        snprintf(names[i] + strlen(names[i]), 8, ".%zu", i % 12);
        entries[i] = (pl_st_entry){names[i], PL_ST_F32, i % 2 ? 1 : 2, {1, 1, 1, 1}, &numbers[i], sizeof numbers[i]};
        if (i % 100 == 0) entries[i].rank = 4;
    }
}

static pl_status goes_on(void *context, const pl_saved *saved, pl_error *e)
{
    (void)e;
    ++*(int *)context;
    return saved->record->config ? PL_OK : PL_E_INTERNAL;
}

static void begin(pl_alloc_meter *m)
{
    *m = (pl_alloc_meter){0};
    (void)pl_alloc_set_meter(m);
    pl_json_count(true);
}

static uint64_t end(const pl_alloc_meter *m)
{
    pl_json_count(false);
    (void)pl_alloc_set_meter(NULL);
    assert_int_equal(m->held_bytes, 0);
    return m->peak_bytes;
}

static uint64_t count_load(const pl_checkpoint_spec *spec)
{
    pl_alloc_meter m;
    pl_saved s;
    begin(&m);
    assert_ok(pl_saved_find(spec->folder, spec->state.count ? PL_SAVED_WHOLE : PL_SAVED_WEIGHTS, &s, &err));
    assert_non_null(s.record);
    assert_ok(pl_saved_load(&s, &spec->model, spec->state.count ? &spec->state : NULL, &err));
    pl_saved_deinit(&s);
    return end(&m);
}

static uint64_t count_rehearsal(const pl_checkpoint_spec *spec)
{
    pl_alloc_meter m;
    int asked = 0;
    begin(&m);
    assert_ok(pl_saved_rehearse(spec, goes_on, &asked, &err));
    assert_int_equal(asked, 1);
    return end(&m);
}

static void save(const pl_checkpoint_spec *spec, pl_record *record)
{
    pl_checkpoint_sizes sizes;
    pl_checkpoint *checkpoint;
    assert_ok(pl_checkpoint_measure(spec, &sizes, &err));
    void *scratch = aligned_alloc(64, (sizes.scratch_bytes + 63) / 64 * 64);
    assert_non_null(scratch);
    assert_ok(pl_checkpoint_create(spec, NULL, scratch, sizes.scratch_bytes, &checkpoint, &err));
    assert_ok(pl_checkpoint_save(checkpoint, record, &err));
    free(scratch);
}

static void compare(size_t models, size_t states)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", in_folder("run-%zu-%zu", models, states));
    pl_record record = {.config = "model:\n  width: 100\n", .best_metric = "validation_loss", .step = 7};
    const pl_checkpoint_spec spec = {.folder = folder,
                                     .model = {entries, models, NULL, 0},
                                     .state = {entries, states, NULL, 0},
                                     .keep_last = 1,
                                     .record = &record};
    save(&spec, &record);
    const uint64_t loaded = count_load(&spec), rehearsed = count_rehearsal(&spec);
    print_message("%zu and %zu tensors: %llu bytes, %llu rehearsed\n", models, states, (unsigned long long)loaded,
                  (unsigned long long)rehearsed);
    assert_true(rehearsed >= loaded - (models > PART_MAX || states > PART_MAX ? loaded / 1000 : 0));
    compared++;
    close_ones += rehearsed <= loaded + loaded / 64;
}

/* Just before a table doubles a part has it doubled. */
static void expect_close(void)
{
    if (close_ones * 8 < compared * 7) fail_msg("%u of %u are close", close_ones, compared);
}

static void a_load_takes_what_was_rehearsed(void **state)
{
    (void)state;
    make_entries();
    const size_t count[][2] = {{1, 0},       {2, 2},       {64, 128},    {1000, 0},    {1024, 1024},
                               {1025, 2050}, {3000, 6000}, {4097, 8193}, {4400, 8800}, {TENSORS_MAX, TENSORS_MAX}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) compare(count[i][0], count[i][1]);
    expect_close();
}

static void no_doubling_is_missed(void **state)
{
    (void)state;
    make_entries();
    for (size_t n = 2000; n < TENSORS_MAX; n += 599) compare(n, 0);
    expect_close();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_load_takes_what_was_rehearsed),
                                       cmocka_unit_test(no_doubling_is_missed)};
    return cmocka_run_group_tests_name("rehearse", tests, make_test_folder, remove_test_folder);
}

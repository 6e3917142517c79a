/* Checkpoints that somebody moved to another disk, leaving links to them. */
#include "unit/store/scratch_folder.h"

#include "support/folder.h"
#include "support/program.h"
#include "unit/store/small_run.h"

static small_run run;
static pl_error err;

static void assert_ok(pl_status status)
{
    if (status != PL_OK) fail_msg("%s: %s", pl_status_name(status), err.text);
}

/* A fresh run in a fresh folder. */
static const char *begin(const char *name, uint32_t keep_last)
{
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", in_folder("%s", name));
    small_run_init(&run, folder, keep_last);
    assert_ok(small_run_create(&run, NULL, &err));
    return folder;
}

static void save(uint64_t step) { assert_ok(small_run_save(&run, step, &err)); }

static uint64_t latest(const char *folder)
{
    pl_saved s;
    assert_ok(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err));
    assert_non_null(s.record);
    const uint64_t step = s.record->step;
    pl_saved_deinit(&s);
    return step;
}

/* Moves one away, and leaves a link to it. */
static void move_away(const char *name)
{
    char to[1024];
    (void)mkdir(in_folder("big"), 0755);
    snprintf(to, sizeof to, "%s", in_folder("big/%s", strrchr(name, '/') + 1));
    assert_int_equal(rename(in_folder("%s", name), to), 0);
    assert_int_equal(symlink(to, in_folder("%s", name)), 0);
}

static void resume_at(uint64_t step)
{
    const pl_record resumed = {.step = step};
    assert_ok(small_run_create(&run, &resumed, &err));
}

/* What a link leads to was moved there by somebody: it is loaded, and neither removed nor counted. */
static void test_links_are_left(void **state)
{
    const char *folder = begin("linked", 2);
    (void)state;
    run.spec.keep_best = false;
    save(1), save(2), save(3);
    move_away("linked/checkpoints/step-00000003");
    assert_int_equal(latest(folder), 3);
    resume_at(3);
    assert_says(pl_checkpoint_take_note(run.checkpoint), "step-00000003 is a link, or has one in it: left alone");
    assert_null(pl_checkpoint_take_note(run.checkpoint));
    save(4), save(5);
    assert_true(exists(in_folder("linked/checkpoints/step-00000004"))); /* two that count: 4 and 5 */
    save(6);
    assert_null(pl_checkpoint_take_note(run.checkpoint)); /* it was told */
    assert_false(exists(in_folder("linked/checkpoints/step-00000004")));
    assert_true(exists(in_folder("linked/checkpoints/step-00000003/state.safetensors")));
    move_away("linked/checkpoints/step-00000005/model.safetensors"); /* one file of it alone */
    save(7);
    assert_says(pl_checkpoint_take_note(run.checkpoint), "is a link, or has one in it (and 1 more there)");
    save(8), save(9);
    assert_true(exists(in_folder("linked/checkpoints/step-00000005/state.safetensors")));
    assert_true(exists(in_folder("big/model.safetensors")));
    assert_false(exists(in_folder("linked/checkpoints/step-00000007")));
    assert_true(exists(in_folder("linked/checkpoints/step-00000008")));
}

/* Older builds had renamed the link before they failed; .tmp and .old of a step that is past stay as links. */
static void test_links_that_are_left_over(void **state)
{
    const char *folder = begin("linked-left", 2);
    (void)state;
    save(1), save(2), save(3);
    move_away("linked-left/checkpoints/step-00000002");
    assert_int_equal(rename(in_folder("linked-left/checkpoints/step-00000002"),
                            in_folder("linked-left/checkpoints/step-00000002.tmp")),
                     0);
    resume_at(3);
    assert_says(pl_checkpoint_take_note(run.checkpoint), "step-00000002.tmp is a link, or has one in it");
    save(4);
    assert_true(exists(in_folder("big/step-00000002/model.safetensors")));
    assert_true(exists(in_folder("linked-left/checkpoints/step-00000002.tmp")));
    assert_int_equal(latest(folder), 4);
}

/* What the run needs the place of is said at the start. */
static void test_links_in_the_way(void **state)
{
    const pl_record resumed = {.step = 1};
    (void)begin("linked-way", 2);
    (void)state;
    save(1), save(7);
    move_away("linked-way/checkpoints/step-00000007");
    assert_int_equal(small_run_create(&run, &resumed, &err), PL_E_STORAGE);
    assert_says(err.text, "step-00000007: is a link, or has one in it, and is not replaced when the run reaches");
    assert_int_equal(rename(in_folder("linked-way/checkpoints/step-00000007"),
                            in_folder("linked-way/checkpoints/step-00000007.tmp")),
                     0);
    assert_int_equal(small_run_create(&run, &resumed, &err), PL_E_STORAGE);
    assert_says(err.text, "step-00000007.tmp: is a link, so neither it nor what it leads to is removed; move it away");
    assert_int_equal(unlink(in_folder("linked-way/checkpoints/step-00000007.tmp")), 0);
    resume_at(1);
    assert_int_equal(symlink(in_folder("big/step-00000007"), in_folder("linked-way/checkpoints/step-00000007")), 0);
    assert_int_equal(small_run_save(&run, 7, &err), PL_E_STORAGE); /* it came meanwhile */
    assert_says(err.text, "step-00000007: is a link");
    assert_true(exists(in_folder("big/step-00000007/model.safetensors")));
    assert_false(exists(in_folder("linked-way/checkpoints/step-00000007.tmp")));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_are_left),
        cmocka_unit_test(test_links_that_are_left_over),
        cmocka_unit_test(test_links_in_the_way),
    };
    return cmocka_run_group_tests_name("linked", tests, make_test_folder, remove_test_folder);
}

/* Checkpoints: what is kept, what is found after damage, what a failing disk leaves, without memory after create. */
#include "unit/store/scratch_folder.h"

#include <errno.h>

#include "base/alloc.h"
#include "store/folder.h"
#include "support/folder.h"
#include "support/program.h"
#include "unit/store/small_run.h"

static small_run run, back;
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

static void save_best(uint64_t step)
{
    run.record.has_best = true;
    run.record.best_step = step;
    run.record.best_value = 3.0 - (double)step / 1000;
    save(step);
}

/* Finds and loads into `back`; the step found. */
static uint64_t find_and_load(const char *folder, char warning[PL_ERROR_TEXT_BYTES])
{
    pl_saved s;
    assert_ok(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err));
    assert_non_null(s.record);
    small_run_init(&back, folder, 1);
    assert_ok(pl_saved_load(&s, &back.spec.model, &back.spec.state, &err));
    uint64_t step = s.record->step;
    assert_false(small_run_differs(&back, step));
    strcpy(warning, s.warning);
    pl_saved_deinit(&s);
    return step;
}

static char warning[PL_ERROR_TEXT_BYTES];

static uint64_t hash_in(const pl_record *r, const char *name) { return pl_facts_value(&r->identity, name, 0); }

static void test_save_and_load(void **state)
{
    const char *folder = begin("simple", 3);
    pl_saved s;
    (void)state;
    assert_ok(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err));
    assert_null(s.record);
    save_best(1200);
    assert_int_equal(find_and_load(folder, warning), 1200);
    assert_string_equal(warning, "");

    assert_ok(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err));
    assert_string_equal(strrchr(s.path, '/'), "/step-00001200");
    assert_int_equal(s.record->epoch, 120);
    assert_int_equal(s.record->sample, 1200 * 32);
    assert_int_equal(s.record->plan_hash, 0xfedcba9876543210u);
    assert_int_equal(hash_in(s.record, "tokenizer"), 0x123456789u);
    assert_true(hash_in(s.record, "text") == UINT64_MAX);
    assert_string_equal(s.record->config, run.record.config);
    assert_string_equal(s.record->best_metric, "validation_loss");
    assert_true(s.record->has_best && s.record->best_value == 3.0 - 1.2 && s.record->best_step == 1200);
    assert_true(pl_record_counter_value(s.record, "tokens", 0) == 1200 * 4096.0);
    assert_true(pl_record_counter_value(s.record, "loss_scale", 0) == 1.5);
    assert_true(pl_record_counter_value(s.record, "other", 7) == 7);
    pl_saved_deinit(&s);
    assert_ok(pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err));
    assert_int_equal(s.record->step, 1200);
    pl_saved_deinit(&s);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static uint64_t file_bytes(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void test_sizes_are_exact(void **state)
{
    const char *folder = begin("sizes", 2);
    pl_checkpoint_sizes sizes;
    (void)state;
    assert_ok(pl_checkpoint_measure(&run.spec, &sizes, &err));
    for (uint64_t step = 1; step < 2000000000; step = step * 37 + 1) {
        run.counters[1].value = -1.0 / (double)step;
        save(step);
        assert_int_equal(
            file_bytes(in_folder("sizes/checkpoints/step-%08llu/model.safetensors", (unsigned long long)step)),
            sizes.model_bytes);
        assert_int_equal(
            file_bytes(in_folder("sizes/checkpoints/step-%08llu/state.safetensors", (unsigned long long)step)),
            sizes.state_bytes);
        assert_int_equal(file_bytes(in_folder("sizes/checkpoints/step-%08llu/run.json", (unsigned long long)step)),
                         sizes.record_bytes);
        assert_int_equal(find_and_load(folder, warning), step);
    }
    assert_int_equal(sizes.disk_bytes, 4 * sizes.checkpoint_bytes);
    assert_int_equal(pl_checkpoint_create(&run.spec, NULL, run.scratch, sizes.scratch_bytes - 1, &run.checkpoint, &err),
                     PL_E_INTERNAL);
    assert_ok(pl_checkpoint_create(&run.spec, NULL, run.scratch, sizes.scratch_bytes, &run.checkpoint, &err));
    run.spec.keep_last = 0;
    assert_int_equal(pl_checkpoint_measure(&run.spec, &sizes, &err), PL_E_USAGE);
}

static void test_saving_takes_no_memory(void **state)
{
    begin("sealed", 1);
    (void)state;
    uint64_t before = pl_alloc_request_count();
    pl_alloc_seal(1);
    for (uint64_t step = 1; step < 6; step++) save_best(step);
    save(5); /* again */
    pl_alloc_seal(0);
    assert_int_equal(pl_alloc_request_count(), before);
}

static void test_what_is_kept(void **state)
{
    const char *folder = begin("kept", 2);
    (void)state;
    save(10);
    save_best(20);
    for (uint64_t step = 30; step <= 60; step += 10) save(step);
    write_bytes(in_folder("kept/checkpoints/notes.txt"), "mine", 4);
    for (uint64_t step = 10; step <= 60; step += 10)
        assert_int_equal(exists(in_folder("kept/checkpoints/step-%08d", (int)step)), step == 20 || step >= 50);
    /* A resume from 50 cuts the future off; what a person put into a checkpoint's folder is not removed. */
    write_bytes(in_folder("kept/checkpoints/step-00000060/mine.txt"), "mine", 4);
    assert_ok(small_run_create(&run, &(pl_record){.step = 50, .has_best = true, .best_step = 20}, &err));
    save(55);
    assert_false(exists(in_folder("kept/checkpoints/step-00000060")));
    assert_true(exists(in_folder("kept/checkpoints/step-00000060.tmp/mine.txt")));
    assert_true(exists(in_folder("kept/checkpoints/notes.txt")));
    assert_int_equal(find_and_load(folder, warning), 55);
    run.spec.keep_best = false;
    save(70);
    assert_false(exists(in_folder("kept/checkpoints/step-00000020")));
}

/* A kill after a save and before it thins out leaves one too many: the next start removes it, though nothing may be
 * left to be saved. Later steps stay until something is saved: this may be a fall-back from a damaged one. */
static void test_resume_thins_out(void **state)
{
    const char *folder = begin("thinned", 4);
    (void)state;
    for (uint64_t step = 1; step <= 4; step++) save(step);
    small_run_init(&run, folder, 1);
    assert_ok(small_run_create(&run, NULL, &err)); /* not a resume */
    assert_ok(small_run_create(&run, &(pl_record){.step = 9, .has_best = true, .best_step = 1}, &err)); /* no such */
    for (int step = 1; step <= 4; step++) assert_true(exists(in_folder("thinned/checkpoints/step-%08d", step)));
    assert_ok(small_run_create(&run, &(pl_record){.step = 3, .has_best = true, .best_step = 1}, &err));
    for (int step = 1; step <= 4; step++)
        assert_int_equal(exists(in_folder("thinned/checkpoints/step-%08d", step)), step != 2);
    assert_int_equal(find_and_load(folder, warning), 3);
    run.spec.keep_best = false;
    assert_ok(small_run_create(&run, &(pl_record){.step = 4}, &err));
    for (int step = 1; step <= 4; step++)
        assert_int_equal(exists(in_folder("thinned/checkpoints/step-%08d", step)), step == 4);
    assert_int_equal(find_and_load(folder, warning), 4);
}

/* A start that finds all as it should be writes nothing: the disk may be full. */
static void test_resume_writes_nothing(void **state)
{
    begin("full", 1);
    (void)state;
    save_best(1);
    for (pl_io_kind kind = PL_IO_OPEN; kind < PL_IO_KINDS; kind++) {
        if (kind == PL_IO_READ || kind == PL_IO_OPEN) continue; /* it looks */
        pl_io_fail_at(kind, 1, ENOSPC, 1);
        pl_status status = small_run_create(&run, &(pl_record){.step = 1, .has_best = true, .best_step = 1}, &err);
        pl_io_fail_at(kind, 0, 0, 0);
        assert_ok(status);
    }
}

static void flip_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 4, f);
    fclose(f);
}

static void test_pointers_are_put_right(void **state)
{
    const char *folder = begin("best", 2);
    pl_saved s;
    (void)state;
    save_best(1);
    save_best(2);
    assert_ok(small_run_create(&run, &(pl_record){.step = 1, .has_best = true, .best_step = 1}, &err));
    assert_int_equal(find_and_load(folder, warning), 1);
    assert_ok(pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err));
    assert_int_equal(s.record->step, 1);
    pl_saved_deinit(&s);
    assert_ok(small_run_create(&run, &(pl_record){.step = 2, .has_best = true, .best_step = 99},
                               &err)); /* gone: no best rather than a wrong one */
    assert_ok(pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err));
    assert_null(s.record);
    assert_int_equal(find_and_load(folder, warning), 2);
    assert_ok(small_run_create(&run, &(pl_record){.step = 2, .has_best = true, .best_step = 2}, &err));
    flip_byte(in_folder("best/checkpoints/step-00000002/model.safetensors"), 50);
    assert_int_equal(pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err), PL_E_DATA);
    assert_says(err.text, "step-00000002/model.safetensors: does not match its checksum");
    assert_says(err.text, "the run's best checkpoint");
}

/* Any byte of any of the three files: the one before is used, and the warning names the file. */
static void test_damage_falls_back(void **state)
{
    static const char *const names[] = {"run.json", "model.safetensors", "state.safetensors"};
    const char *folder = begin("damage", 3);
    pl_saved s;
    (void)state;
    for (int f = 0; f < 3; f++) {
        save(1), save(2), save(3);
        const char *path = in_folder("damage/checkpoints/step-00000003/%s", names[f]);
        for (long at = 0; at < (long)file_bytes(path); at += f == 0 ? 13 : 1201) {
            flip_byte(path, at);
            assert_int_equal(find_and_load(folder, warning), 2);
            assert_says(warning, names[f]);
            assert_says(warning, "step 2 is used");
            flip_byte(path, at);
        }
        assert_int_equal(truncate(path, 100), 0);
        assert_int_equal(find_and_load(folder, warning), 2);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(find_and_load(folder, warning), 2);
        flip_byte(in_folder("damage/checkpoints/step-00000002/%s", names[f]), 50);
        assert_int_equal(find_and_load(folder, warning), 1);
        flip_byte(in_folder("damage/checkpoints/step-00000001/%s", names[f]), 50);
        assert_int_equal(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err), PL_E_DATA);
        assert_says(err.text, "no sound checkpoint is left");
        assert_ok(small_run_create(&run, NULL, &err));
    }
}

/* Without its state a checkpoint is whole for who needs weights, and none for who goes on: they take the one before. */
static void test_weights_alone(void **state)
{
    const char *folder = begin("weights", 3);
    pl_saved s;
    (void)state;
    save(1), save_best(2);
    assert_int_equal(unlink(in_folder("weights/checkpoints/step-00000002/state.safetensors")), 0);
    assert_int_equal(find_and_load(folder, warning), 1);
    assert_says(warning, "step-00000002/state.safetensors: is missing, and training cannot go on from weights alone");
    for (int best = 0; best < 2; best++) {
        assert_ok((best ? pl_saved_find_best : pl_saved_find)(folder, PL_SAVED_WEIGHTS, &s, &err));
        assert_true(s.record->step == 2 && !s.warning[0]);
        assert_ok(pl_saved_load(&s, &run.spec.model, NULL, &err));
        pl_saved_deinit(&s);
    }
    flip_byte(in_folder("weights/checkpoints/step-00000002/model.safetensors"), 200);
    assert_ok(pl_saved_find(folder, PL_SAVED_WEIGHTS, &s, &err));
    assert_int_equal(s.record->step, 1);
    pl_saved_deinit(&s);
}

/* What the system does not give is not damaged: an older one would undo steps without need. */
static void test_refused_opens_do_not_fall_back(void **state)
{
    static const int reasons[] = {EACCES, EMFILE, EIO, ENFILE};
    const char *folder = begin("refused", 3);
    pl_saved s;
    (void)state;
    save(1), save_best(2);
    for (int r = 0; r < 4; r++)
        for (uint64_t n = 1;; n++) {
            pl_io_fail_at(PL_IO_OPEN, n, reasons[r], 0);
            pl_status status = n % 2 ? pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err)
                                     : pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err);
            bool hit = pl_io_inject(PL_IO_OPEN) == 0;
            pl_io_fail_at(PL_IO_OPEN, 0, 0, 0);
            if (status == PL_OK) {
                assert_int_equal(s.record->step, 2);
                pl_saved_deinit(&s);
                if (n > 8) break;
            } else {
                assert_true(hit);
                assert_int_equal(status, PL_E_STORAGE);
                assert_says(err.text, strerror(reasons[r]));
            }
        }
}

/* A folder in a file's place: the step is done again, and the sentence says what to do. */
static void test_checkpoint_that_cannot_be_replaced(void **state)
{
    const char *folder = begin("in_the_way", 3);
    (void)state;
    save(1), save(2);
    assert_int_equal(unlink(in_folder("in_the_way/checkpoints/step-00000002/model.safetensors")), 0);
    assert_int_equal(mkdir(in_folder("in_the_way/checkpoints/step-00000002/model.safetensors"), 0755), 0);
    assert_int_equal(find_and_load(folder, warning), 1);
    assert_says(warning, "is not a regular file");
    assert_int_equal(small_run_save(&run, 2, &err), PL_E_STORAGE);
    assert_says(err.text, "step-00000002.tmp: cannot be emptied: Is a directory; move it away");
    assert_int_equal(find_and_load(folder, warning), 2);
    pl_record resumed = {.step = 1};
    assert_int_equal(rename(in_folder("in_the_way/checkpoints/step-00000002.tmp"),
                            in_folder("in_the_way/checkpoints/step-00000003")),
                     0);
    assert_int_equal(small_run_create(&run, &resumed, &err), PL_E_STORAGE); /* said at the start */
    assert_says(err.text, "step-00000003/model.safetensors: is a folder where a file was expected");
    assert_says(err.text, "move it away");
}

static void test_latest_is_a_text_file(void **state)
{
    const char *folder = begin("latest", 3);
    char text[64] = {0};
    (void)state;
    save(1), save(2);
    read_bytes(in_folder("latest/checkpoints/latest"), text, sizeof text - 1);
    assert_string_equal(text, "step-00000002\n");
    write_bytes(in_folder("latest/checkpoints/latest"), "step-00000001\n", 14); /* a kill just before it was replaced */
    assert_int_equal(find_and_load(folder, warning), 1);
    assert_string_equal(warning, "");
    write_bytes(in_folder("latest/checkpoints/latest"), "../../etc", 9);
    assert_int_equal(find_and_load(folder, warning), 2);
    assert_says(warning, "does not name a checkpoint");
    assert_int_equal(unlink(in_folder("latest/checkpoints/latest")), 0);
    assert_int_equal(find_and_load(folder, warning), 2);
}

static void test_another_model(void **state)
{
    const char *folder = begin("another", 1);
    pl_saved s;
    pl_st_entry other[2];
    (void)state;
    save(1);
    assert_ok(pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err));
    assert_ok(pl_saved_match(&s, SMALL_MODEL_HASH, run.record.config, &run.spec.model, &err));
    assert_int_equal(pl_saved_match(&s, 1, "model:\n  width: 128\n", &run.spec.model, &err), PL_E_CONFIG);
    assert_says(err.text, "line 2 of its config is \"  width: 100\", here it is \"  width: 128\"");
    memcpy(other, run.model, sizeof other);
    other[0].shape[0] = 20, other[0].shape[1] = 50;
    pl_st_list list = {other, 2, NULL, 0};
    assert_int_equal(pl_saved_match(&s, 1, "", &list, &err), PL_E_CONFIG);
    assert_says(err.text, "\"weight\" is F32 [10, 100] there, but F32 [20, 50] was expected");
    float untouched[SMALL_ELEMS] = {0};
    other[0] = run.model[0];
    other[0].data = untouched;
    other[1].name = "gain";
    assert_int_equal(pl_saved_load(&s, &list, NULL, &err), PL_E_DATA);
    assert_says(err.text, "has no tensor \"gain\"");
    assert_true(untouched[1] == 0);
    assert_ok(pl_saved_load(&s, &run.spec.model, NULL, &err));
    pl_saved_deinit(&s);
}

static void assert_no_left_overs(uint64_t step)
{
    assert_false(exists(in_folder("failing/checkpoints/step-%08llu.tmp", (unsigned long long)step)));
}

/* Every call of a save fails in turn, once and for good: what was there loads, and a later save works. */
static void test_failing_disk(void **state)
{
    const char *folder = begin("failing", 2);
    int failures = 0;
    (void)state;
    save(1), save(2);
    uint64_t done = 2;
    for (int forever = 0; forever < 2; forever++) {
        for (pl_io_kind kind = PL_IO_OPEN; kind < PL_IO_KINDS; kind++) {
            if (kind == PL_IO_READ) continue;
            for (uint64_t n = 1;; n++, failures++) {
                pl_io_fail_at(kind, n, ENOSPC, forever);
                pl_status status = small_run_save(&run, done + 1, &err);
                pl_io_fail_at(kind, 0, 0, 0);
                uint64_t found = find_and_load(folder, warning);
                if (status == PL_OK) {
                    assert_int_equal(found, done + 1);
                    done = found;
                    break;
                }
                assert_int_equal(status, PL_E_STORAGE);
                assert_says(err.text, "the checkpoint of step");
                assert_true(found == done || found == done + 1);
                assert_string_equal(warning, "");
                /* While no folder can be opened, none can be emptied; the next start does it. */
                bool locked_out = forever && kind == PL_IO_OPEN;
                if (!locked_out) assert_no_left_overs(done + 1);
                if (n % 3 == 0 || locked_out) assert_ok(small_run_create(&run, NULL, &err));
                assert_no_left_overs(done + 1);
            }
        }
    }
    assert_true(failures > 40);
}

static bool points_to(const char *pointer, const char *step)
{
    char text[64] = {0};
    read_bytes(in_folder("pointers/checkpoints/%s", pointer), text, sizeof text - 1);
    return strcmp(text, step) == 0;
}

/* Wherever a save ends early, a latest that is its own best has `best`, too: after the last step nothing is saved. */
static void test_latest_never_precedes_its_best(void **state)
{
    int without_latest = 0;
    (void)state;
    for (uint64_t n = 1;; n++) {
        (void)begin("pointers", 2);
        save_best(1);
        run.record.best_step = 2;
        pl_io_fail_at(PL_IO_RENAME, n, ENOSPC, true);
        const pl_status status = small_run_save(&run, 2, &err);
        pl_io_fail_at(PL_IO_RENAME, 0, 0, 0);
        const bool is_latest = points_to("latest", "step-00000002\n"), is_best = points_to("best", "step-00000002\n");
        assert_true(is_best || !is_latest);
        without_latest += is_best && !is_latest;
        remove_tree(in_folder("pointers"));
        if (status == PL_OK) break;
    }
    assert_int_equal(without_latest, 1);
}

static void copy_step(const char *from, const char *to)
{
    static const char *const names[] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE};
    static char bytes[1 << 16];
    assert_int_equal(mkdir(in_folder("tidy/checkpoints/%s", to), 0755), 0);
    for (int i = 0; i < 3; i++) {
        const size_t n = read_bytes(in_folder("tidy/checkpoints/%s/%s", from, names[i]), bytes, sizeof bytes);
        write_bytes(in_folder("tidy/checkpoints/%s/%s", to, names[i]), bytes, n);
    }
}

/* A run that is complete and was killed before its thinning is as without a kill. */
static void test_complete_run_is_put_in_order(void **state)
{
    const char *folder = begin("tidy", 2);
    pl_saved s;
    (void)state;
    save_best(2), save(3), save(4), save(5);
    copy_step("step-00000004", "step-00000001");
    copy_step("step-00000004", "step-00000003");
    copy_step("step-00000004", "step-00000006.tmp");
    assert_int_equal(unlink(in_folder("tidy/checkpoints/best")), 0);
    assert_ok(pl_saved_find(folder, PL_SAVED_RECORD, &s, &err));
    const pl_checkpoint_spec spec = {.folder = folder, .keep_last = 2, .keep_best = true};
    assert_ok(pl_checkpoint_tidy(&spec, s.record, &err));
    pl_saved_deinit(&s);
    for (int step = 1; step <= 5; step++)
        assert_int_equal(exists(in_folder("tidy/checkpoints/step-%08d", step)), step == 2 || step >= 4);
    assert_false(exists(in_folder("tidy/checkpoints/step-00000006.tmp")));
    assert_ok(pl_saved_find_best(folder, PL_SAVED_WHOLE, &s, &err));
    assert_int_equal(s.record->step, 2);
    pl_saved_deinit(&s);
}

static void test_left_overs_are_removed(void **state)
{
    const char *folder = begin("left", 2);
    (void)state;
    save(1), save(2);
    assert_int_equal(mkdir(in_folder("left/checkpoints/step-00000003.tmp"), 0755), 0);
    write_bytes(in_folder("left/checkpoints/step-00000003.tmp/model.safetensors.plimsoll.tmp"), "x", 1);
    write_bytes(in_folder("left/checkpoints/latest.plimsoll.tmp"), "x", 1);
    assert_int_equal(
        rename(in_folder("left/checkpoints/step-00000001"), in_folder("left/checkpoints/step-00000001.old")), 0);
    assert_int_equal(mkdir(in_folder("left/checkpoints/step-00000002.old"), 0755), 0);
    assert_ok(small_run_create(&run, NULL, &err));
    assert_false(exists(in_folder("left/checkpoints/step-00000003.tmp")));
    assert_false(exists(in_folder("left/checkpoints/latest.plimsoll.tmp")));
    assert_true(exists(in_folder("left/checkpoints/step-00000001/run.json"))); /* stepped aside, and back */
    assert_false(exists(in_folder("left/checkpoints/step-00000002.old")));
    assert_int_equal(find_and_load(folder, warning), 2);
}

static void test_disk_too_small(void **state)
{
    const char *folder = begin("reserve", 2);
    pl_st_entry huge = {"huge", PL_ST_F32, 2, {1 << 30, 1 << 24}, NULL, (uint64_t)1 << 56};
    (void)state;
    assert_ok(pl_checkpoint_reserve(&run.spec, &err));
    run.spec.model = (pl_st_list){&huge, 1, NULL, 0};
    assert_int_equal(pl_checkpoint_reserve(&run.spec, &err), PL_E_STORAGE);
    assert_says(err.text, "4 checkpoints need 288");
    run.spec.keep_last = 1000;
    assert_int_equal(pl_checkpoint_reserve(&run.spec, &err), PL_E_USAGE);
    assert_int_equal(pl_disk_require(in_folder("not/there/yet"), 1, "a test", &err), PL_OK);
    (void)folder;
}

/* What a killed save left behind goes before anything is written, so it need not be free. */
static void test_reserve_counts_leftovers(void **state)
{
    static const char *const leftovers[] = {"step-00000007.tmp", "step-00000006.tmp"};
    const char *folder = begin("leftovers", 1);
    uint64_t available, half = 32 << 20;
    (void)state;
    run.spec.keep_best = false;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mkdir(in_folder("leftovers/checkpoints/%s", leftovers[i]), 0755), 0);
        int fd = open(in_folder("leftovers/checkpoints/%s/%s", leftovers[i],
                                i ? "model.safetensors" : "state.safetensors.plimsoll.tmp"),
                      O_CREAT | O_WRONLY, 0644);
        assert_int_equal(posix_fallocate(fd, 0, (off_t)half), 0);
        close(fd);
    }
    assert_ok(pl_disk_free(folder, &available, &err));
    uint64_t elems = (available + half) / 2 / sizeof(float); /* of each of two checkpoints */
    pl_st_entry huge = {"huge", PL_ST_F32, 1, {elems}, NULL, elems * sizeof(float)};
    run.spec.model = (pl_st_list){&huge, 1, NULL, 0};
    assert_ok(pl_checkpoint_reserve(&run.spec, &err));
    remove_tree(in_folder("leftovers"));
}

static void test_folder_that_cannot_be_used(void **state)
{
    (void)state;
    write_bytes(in_folder("a_file"), "x", 1);
    small_run_init(&run, in_folder("a_file"), 1);
    assert_int_equal(small_run_create(&run, NULL, &err), PL_E_STORAGE);
    int lock;
    assert_int_equal(pl_folder_lock(in_folder("a_file"), &lock, &err), PL_E_STORAGE);
    assert_int_equal(lock, -1);
}

static void test_second_run_is_refused(void **state)
{
    int first, second;
    char expected[64];
    (void)state;
    assert_ok(pl_folder_lock(in_folder("lock"), &first, &err));
    assert_int_equal(pl_folder_lock(in_folder("lock"), &second, &err), PL_E_STORAGE);
    snprintf(expected, sizeof expected, "another run (process %ld)", (long)getpid());
    assert_says(err.text, expected);
    write_file(in_folder("lock/lock"), "1\n", 1); /* as who had it before and ended just now left it */
    assert_int_equal(pl_folder_lock(in_folder("lock"), &second, &err), PL_E_STORAGE);
    assert_says(err.text, expected);
    assert_int_equal(unlink(in_folder("lock/lock")), 0); /* that does not let it in */
    assert_int_equal(pl_folder_lock(in_folder("lock"), &second, &err), PL_E_STORAGE);
    pl_folder_unlock(&first);
    assert_ok(pl_folder_lock(in_folder("lock"), &second, &err));
    pl_folder_unlock(&second);
    pl_folder_unlock(&second);
}

static void test_hostile_records(void **state)
{
    static const char *const bodies[] = {"",
                                         "{}",
                                         "[]",
                                         "{\"schema\":\"plimsoll.run/9\"",
                                         "{\"schema\":\"plimsoll.run/1\",\"step\":-1",
                                         "{\"schema\":\"plimsoll.run/1\",\"step\":1.5"};
    pl_record *r;
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char text[512], digits[PL_CHECKSUM_TEXT_BYTES];
        int n = snprintf(text, sizeof text, "%s%s", bodies[i], bodies[i][0] == '{' && bodies[i][1] == '"' ? "," : "");
        pl_checksum_print(pl_checksum_of(text, (size_t)n), digits);
        n += snprintf(text + n, sizeof text - (size_t)n, "\n  \"checksum\": \"%s\"\n}\n", digits);
        for (int cut = 0; cut <= n; cut++)
            assert_int_equal(pl_record_parse(text, (size_t)cut, "R", &r, &err), PL_E_DATA);
        assert_says(err.text, "R");
    }
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

/* The record of a run without its member `key`, or with `value` there. */
static pl_status parse_changed(const char *key, const char *value, pl_record **r)
{
    static char text[8192], changed[8192];
    char digits[PL_CHECKSUM_TEXT_BYTES], member[64];
    uint64_t bytes = pl_record_bytes(&run.record);
    assert_true(bytes < sizeof text);
    assert_ok(pl_record_print(&run.record, text, bytes, &err));
    snprintf(member, sizeof member, "\"%s\": \"", key);
    char *at = strstr(text, member), *tail = strstr(text, "\n  \"checksum\"");
    assert_true(at && tail);
    char *end = strstr(at, ",") + 1;
    int n = snprintf(changed, sizeof changed, "%.*s%s%.*s", (int)(at - text), text, value, (int)(tail - end), end);
    pl_checksum_print(pl_checksum_of(changed, (size_t)n), digits);
    n += snprintf(changed + n, sizeof changed - (size_t)n, "\n  \"checksum\": \"%s\"\n}\n", digits);
    return pl_record_parse(changed, (size_t)n, "R", r, &err);
}

/* Members that came later may be absent, not wrong; those that were always there may not be absent. */
static void test_records_of_older_versions(void **state)
{
    pl_record *r;
    (void)state;
    begin("older", 1);
    assert_ok(parse_changed("tokenizer_hash", "", &r));
    assert_true(hash_in(r, "tokenizer") == 0 && hash_in(r, "text") == UINT64_MAX);
    pl_record_destroy(r);
    assert_ok(parse_changed("text_hash", "", &r));
    assert_true(hash_in(r, "tokenizer") == 0x123456789u && hash_in(r, "text") == 0);
    pl_record_destroy(r);
    assert_int_equal(parse_changed("text_hash", "\"text_hash\": \"xyz\",", &r), PL_E_DATA);
    assert_says(err.text, "R: \"text_hash\" is missing or not 16 hexadecimal digits");
    assert_int_equal(parse_changed("text_hash", "\"text_hash\": 5,", &r), PL_E_DATA);
    assert_int_equal(parse_changed("plan_hash", "", &r), PL_E_DATA);
}

/* The record alone: a damaged model is not looked at, a damaged record is stepped over. */
static void test_peek(void **state)
{
    const char *folder = begin("peek", 3);
    pl_saved s;
    (void)state;
    assert_ok(pl_saved_find(folder, PL_SAVED_RECORD, &s, &err));
    assert_null(s.record);
    save(1), save(2);
    assert_int_equal(truncate(in_folder("peek/checkpoints/step-00000002/model.safetensors"), 10), 0);
    assert_ok(pl_saved_find(folder, PL_SAVED_RECORD, &s, &err));
    assert_int_equal(s.record->step, 2);
    assert_int_equal(pl_saved_refuse_new(folder, &s, &err), PL_E_STORAGE);
    assert_says(err.text, "holds a run that is at step 2");
    pl_saved_deinit(&s);
    assert_int_equal(truncate(in_folder("peek/checkpoints/step-00000002/run.json"), 10), 0);
    assert_ok(pl_saved_find(folder, PL_SAVED_RECORD, &s, &err));
    assert_int_equal(s.record->step, 1);
    pl_saved_deinit(&s);
    assert_int_equal(truncate(in_folder("peek/checkpoints/step-00000001/run.json"), 10), 0);
    assert_int_equal(pl_saved_find(folder, PL_SAVED_RECORD, &s, &err), PL_E_DATA);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void test_refused_memory(void **state)
{
    const char *folder = begin("memory", 2);
    pl_saved s;
    (void)state;
    save(1);
    for (uint64_t n = 1;; n++) {
        pl_alloc_fail_at(n, 1);
        pl_status status = pl_saved_find(folder, PL_SAVED_WHOLE, &s, &err);
        if (status == PL_OK) status = pl_saved_load(&s, &run.spec.model, &run.spec.state, &err);
        pl_alloc_fail_at(0, 0);
        pl_saved_deinit(&s);
        assert_int_equal(pl_alloc_live_blocks(), 0);
        if (status == PL_OK) break;
        assert_int_equal(status, PL_E_NOMEM);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_sizes_are_exact),
        cmocka_unit_test(test_saving_takes_no_memory),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_resume_thins_out),
        cmocka_unit_test(test_resume_writes_nothing),
        cmocka_unit_test(test_pointers_are_put_right),
        cmocka_unit_test(test_damage_falls_back),
        cmocka_unit_test(test_weights_alone),
        cmocka_unit_test(test_refused_opens_do_not_fall_back),
        cmocka_unit_test(test_checkpoint_that_cannot_be_replaced),
        cmocka_unit_test(test_latest_is_a_text_file),
        cmocka_unit_test(test_another_model),
        cmocka_unit_test(test_failing_disk),
        cmocka_unit_test(test_latest_never_precedes_its_best),
        cmocka_unit_test(test_complete_run_is_put_in_order),
        cmocka_unit_test(test_left_overs_are_removed),
        cmocka_unit_test(test_disk_too_small),
        cmocka_unit_test(test_reserve_counts_leftovers),
        cmocka_unit_test(test_folder_that_cannot_be_used),
        cmocka_unit_test(test_second_run_is_refused),
        cmocka_unit_test(test_hostile_records),
        cmocka_unit_test(test_refused_memory),
        cmocka_unit_test(test_records_of_older_versions),
        cmocka_unit_test(test_peek),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, make_test_folder, remove_test_folder);
}

/* Block files: what is written is where it should be, in each form; what is damaged, cut off, another's or in use is
 * said and mended; nothing is marked that is not on the disk. */
#include "unit/store/small_blocks.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "store/block_index.h"
#include "store/folder.h"
#include "support/program.h"

static small_blocks b;
static pl_error err;
static pl_block_found found;

static void must(pl_status status)
{
    if (status != PL_OK) fail_msg("%s", err.text);
}

static void expect(pl_status wanted, pl_status status, const char *part)
{
    if (status != wanted)
        fail_msg("%s came, %s was expected: %s", pl_status_name(status), pl_status_name(wanted), err.text);
    assert_says(err.text, part);
}

static bool has_hdf5(void)
{
    if (pl_block_file_make(in_folder("probe"), PL_BLOCK_HDF5, &small_layout, &found, &err) == PL_OK) {
        unlink(in_folder("probe"));
        return true;
    }
    if (err.status != PL_E_UNSUPPORTED) fail_msg("%s", err.text);
    printf("not in the HDF5 form: %s\n", err.text);
    return false;
}

/* ---- what comes out ---- */

static uint64_t bytes_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static void run_form(pl_block_form form)
{
    char path[256];
    pl_block_sizes sizes;
    snprintf(path, sizeof path, "%s", in_folder("whole-%s", pl_block_form_name(form)));
    must(small_run_all(&b, path, form, &small_layout, &found, &err));
    assert_true(found.is_new);
    assert_int_equal(found.blocks, BLOCKS);
    assert_int_equal(b.computed, SEQUENCES * STATES);
    check_complete(path);
    must(pl_block_file_measure(&small_layout, form, &b.use, &sizes, &err));
    if (form != PL_BLOCK_NPY) assert_in_range(bytes_of(path), sizes.data_bytes + sizes.index_bytes, sizes.disk_bytes);
    must(small_run_all(&b, path, form, &small_layout, &found, &err)); /* again: nothing is left to do */
    assert_false(found.is_new);
    assert_int_equal(found.done, BLOCKS);
    assert_int_equal(found.done_bytes, sizes.data_bytes - sizeof small_names);
    assert_int_equal(b.computed, 0);
}

static void test_native(void **state)
{
    (void)state;
    run_form(PL_BLOCK_NATIVE);
}

static void test_npy(void **state)
{
    static const char wanted[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False, "
                                 "'shape': (3, 2, 11, 700, ), }";
    char header[128];
    (void)state;
    run_form(PL_BLOCK_NPY);
    assert_int_equal(read_bytes(in_folder("whole-npy/outputs.fields.npy"), header, sizeof header), sizeof header);
    assert_memory_equal(header, wanted, sizeof wanted - 1);
    assert_int_equal(header[127], '\n');
    assert_int_equal(bytes_of(in_folder("whole-npy/outputs.fields.npy")), 128 + sizeof expected_arrays()->fields);
}

static void test_hdf5(void **state)
{
    (void)state;
    if (!has_hdf5()) skip();
    run_form(PL_BLOCK_HDF5);
}

static void test_names(void **state)
{
    char text[PL_BLOCK_SENTENCE_BYTES];
    uint64_t offset, bytes;
    pl_block_layout part = small_layout;
    (void)state;
    assert_string_equal(pl_block_name(&small_layout, state_block(&small_layout, 3, 2), text),
                        "states of operator 1, realisation 1, state 8 to 10");
    part.first = 40, part.whole = 100;
    assert_string_equal(pl_block_name(&part, BLOCKS - 1, text), "features of operator 42");
    for (uint64_t block = 0, at = 0; block < SEQUENCES * PIECES; block++, at += bytes) { /* one after another */
        assert_true(pl_block_piece(&small_layout, block, TRAJECTORIES, &offset, &bytes));
        assert_int_equal(offset, at);
    }
    assert_int_equal(offset + bytes, sizeof expected_arrays()->fields);
    assert_false(pl_block_piece(&small_layout, 0, FEATURE, &offset, &bytes));
}

/* ---- layouts that are none ---- */

static void refuse_dataset(pl_block_dataset d, const char *part)
{
    pl_block_layout l = small_layout;
    l.dataset = &d;
    l.datasets = 1;
    expect(PL_E_USAGE, pl_block_layout_check(&l, &err), part);
}

static void test_layouts(void **state)
{
    pl_block_kind kind = {"k", 2, {{"a", 3, 2}, {"b", 4, 1}}};
    pl_block_dataset two[] = {{"a/b", PL_DTYPE_F32, false, 1, {3}, 1, NULL},
                              {"a", PL_DTYPE_F32, false, 1, {3}, 1, NULL}};
    pl_block_layout l = small_layout;
    (void)state;
    refuse_dataset((pl_block_dataset){"../x", PL_DTYPE_F32, false, 1, {OPERATORS}, 1, NULL}, "has no name");
    refuse_dataset((pl_block_dataset){"a//b", PL_DTYPE_F32, false, 1, {OPERATORS}, 1, NULL}, "has no name");
    refuse_dataset((pl_block_dataset){"a", PL_DTYPE_F32, false, 1, {4}, 1, NULL}, "not that of its axes");
    refuse_dataset((pl_block_dataset){"a", PL_DTYPE_F32, false, 2, {OPERATORS, 0}, 1, NULL}, "holds a 0");
    refuse_dataset((pl_block_dataset){"a", PL_DTYPE_F32, false, 3, {OPERATORS, 1L << 40, 1L << 40}, 1, NULL},
                   "more bytes");
    refuse_dataset((pl_block_dataset){"a", PL_DTYPE_F32, false, 1, {3}, 7, NULL}, "its kind");
    refuse_dataset((pl_block_dataset){"a", PL_DTYPE_F32, false, 1, {3}, PL_BLOCK_NO_KIND, NULL}, "no constant");
    l.dataset = two, l.datasets = 2;
    expect(PL_E_USAGE, pl_block_layout_check(&l, &err), "in the group");
    l = small_layout;
    l.kind = &kind, l.kinds = 1;
    expect(PL_E_USAGE, pl_block_layout_check(&l, &err), "step 1 but for the last");
    l = small_layout;
    l.datasets = 2;
    expect(PL_E_USAGE, pl_block_layout_check(&l, &err), "features: blocks of this kind make no dataset");
    l = small_layout;
    l.first = 98, l.whole = 100;
    expect(PL_E_USAGE, pl_block_layout_check(&l, &err), "more than the whole");
}

/* ---- another's file ---- */

static void test_another_config(void **state)
{
    const char *path = in_folder("mine");
    pl_block_layout l = small_layout;
    pl_block_kind kind[2] = {small_kind[0], small_kind[1]};
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &l, &found, &err));
    l.text = "{\n  \"seed\": 8,\n  \"dt\": 0.01\n}";
    expect(PL_E_CONFIG, pl_block_file_make(path, PL_BLOCK_NATIVE, &l, &found, &err),
           "is \"  \"seed\": 7,\" there and \"  \"seed\": 8,\" here");
    expect(PL_E_CONFIG, small_open(&b, path, &l, &err), "\"seed\": 7");
    l.text = "{\n  \"seed\": 7,\n  \"dt\": 0.01\n}\n";
    expect(PL_E_CONFIG, pl_block_file_look(path, PL_BLOCK_NATIVE, &l, &found, &err), "another configuration");
    l = small_layout;
    kind[0].axis[2].step = 5;
    l.kind = kind;
    expect(PL_E_CONFIG, pl_block_file_make(path, PL_BLOCK_NATIVE, &l, &found, &err),
           "state in a block of states is 4 there and 5 here");
    expect(PL_E_CONFIG, pl_block_file_make(path, PL_BLOCK_NPY, &small_layout, &found, &err), "in the form native");
    assert_non_null(strstr(err.text, "; no block of it is done: if nobody is at work on it, it can be removed"));
    l = small_layout;
    l.carry_slots = 7; /* how many are in flight is no part of what results are */
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &l, &found, &err));
    assert_int_equal(found.carry_slots, small_layout.carry_slots);
    must(small_run_all(&b, path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    expect(PL_E_CONFIG, pl_block_file_make(path, PL_BLOCK_NPY, &small_layout, &found, &err), "in the form native");
    assert_null(strstr(err.text, "can be removed"));
}

static void test_two_writers(void **state)
{
    static small_blocks other;
    const char *path = in_folder("used");
    int ready[2], how;
    char c;
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (small_open(&other, path, &small_layout, &err) != PL_OK || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    expect(PL_E_STORAGE, small_open(&b, path, &small_layout, &err), "another process is writing this file");
    expect(PL_E_STORAGE, pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err), "another process");
    must(pl_block_file_look(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    close(ready[0]);
    close(ready[1]);
    must(small_open(&b, path, &small_layout, &err));
    must(pl_block_file_close(b.file, &err));
}

/* ---- damage ---- */

static void change(const char *path, long offset, int by)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c ^ by, f);
    assert_int_equal(fclose(f), 0);
}

static void note_name(void *context, uint64_t block, const char *name)
{
    (void)block;
    strcat(context, name);
    strcat(context, ";");
}

static void check_damage(const char *path, bool repair, const char *names)
{
    char told[1024] = "";
    pl_block_reader *r;
    pl_block_checked c;
    must(pl_block_reader_open(path, repair, &r, &err));
    must(pl_block_reader_check(r, note_name, told, &c, &err));
    assert_string_equal(told, names);
    pl_block_reader_close(r);
}

static void test_flipped_byte(void **state)
{
    const char *path = in_folder("flipped"), *sound = in_folder("sound");
    const long fields = 4096 + 4096 + 2 * 2 * 4096; /* header, marks, carry */
    (void)state;
    must(small_run_all(&b, sound, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    must(small_run_all(&b, path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    change(path, fields + ((3 * STATES + 5) * WIDTH + 100) * 2, 4);
    check_damage(path, false, "states of operator 1, realisation 1, state 4 to 7;");
    check_damage(path, true, "states of operator 1, realisation 1, state 4 to 7;");
    must(small_run_all(&b, path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    assert_int_equal(found.done, BLOCKS - 1);
    assert_int_equal(b.computed, STEP);
    assert_same_files(sound, path);
    change(path, 4096 + 16 * 5 + 3, 1); /* a mark: as if there were none */
    must(small_run_all(&b, path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    assert_int_equal(found.lost, 1);
    assert_int_equal(found.done, BLOCKS - 1);
    assert_same_files(sound, path);
}

/* What follows the text up to the marks is padding, and means nothing. */
static void test_flipped_bits_of_the_header(void **state)
{
    enum { HEADER_BYTES = 4096 };
    const char *path = in_folder("bits");
    unsigned char header[HEADER_BYTES];
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    assert_int_equal(read_bytes(path, header, sizeof header), sizeof header);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t bit = 0; bit < 8 * sizeof header; bit++) {
        pl_block_reader *r = NULL;
        const unsigned char was = header[bit / 8];
        if (was == 0 && bit / 8 > 2000 && bit % 8) continue;
        assert_int_equal(fseek(f, (long)(bit / 8), SEEK_SET), 0);
        assert_int_equal(fputc(was ^ 1 << bit % 8, f), was ^ 1 << bit % 8);
        assert_int_equal(fflush(f), 0);
        const pl_status status = pl_block_reader_open(path, false, &r, &err);
        if (status == PL_OK) pl_block_reader_close(r);
        if (status != PL_E_DATA && (status != PL_OK || was != 0))
            fail_msg("byte %zu, bit %zu: status %d", bit / 8, bit % 8, (int)status);
        assert_int_equal(fseek(f, (long)(bit / 8), SEEK_SET), 0);
        assert_int_equal(fputc(was, f), was);
    }
    assert_int_equal(fclose(f), 0);
}

static void test_damaged_header(void **state)
{
    const char *path = in_folder("header");
    pl_block_reader *r;
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    change(path, 400, 1);
    expect(PL_E_DATA, small_open(&b, path, &small_layout, &err), "is damaged (its checksum is another)");
    expect(PL_E_DATA, pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err), "damaged");
    change(path, 400, 1);
    change(path, 0, 1);
    expect(PL_E_DATA, pl_block_reader_open(path, false, &r, &err), "is it one of results?");
    assert_int_equal(truncate(path, 5000), 0);
    change(path, 0, 1);
    expect(PL_E_DATA, pl_block_reader_open(path, false, &r, &err), "truncated");
    assert_int_equal(truncate(path, 0), 0);
    expect(PL_E_DATA, pl_block_reader_open(path, false, &r, &err), "is it one of results?");
    expect(PL_E_DATA, pl_block_reader_open(in_folder("nothing"), false, &r, &err), "cannot be opened");
}

static void run_truncated(pl_block_form form, const char *victim, uint64_t less)
{
    char path[256], cut[256], sound[256];
    snprintf(path, sizeof path, "%s", in_folder("cut-%s", pl_block_form_name(form)));
    snprintf(sound, sizeof sound, "%s", in_folder("uncut-%s", pl_block_form_name(form)));
    snprintf(cut, sizeof cut, "%s%s", path, victim);
    must(small_run_all(&b, sound, form, &small_layout, &found, &err));
    must(small_run_all(&b, path, form, &small_layout, &found, &err));
    assert_int_equal(truncate(cut, (off_t)(bytes_of(cut) - less)), 0);
    expect(PL_E_DATA, small_open(&b, path, &small_layout, &err), "truncated");
    must(small_run_all(&b, path, form, &small_layout, &found, &err));
    assert_in_range(found.lost, 1, BLOCKS - 1);
    assert_int_equal(found.done + found.lost, BLOCKS);
    check_complete(path);
    assert_same_results(sound, path, form);
}

/* What lies beside the data, too: headers of .npy, libhdf5's own. */
static void run_structure(pl_block_form form, const char *victim, long offset, const char *what)
{
    char path[256], sound[256], file[256];
    snprintf(path, sizeof path, "%s", in_folder("cut-%s", pl_block_form_name(form)));
    snprintf(sound, sizeof sound, "%s", in_folder("uncut-%s", pl_block_form_name(form)));
    snprintf(file, sizeof file, "%s%s", path, victim);
    change(file, offset, 1);
    check_damage(path, false, what);
    must(pl_block_file_make(path, form, &small_layout, &found, &err));
    assert_int_equal(found.done, BLOCKS);
    check_damage(path, false, "");
    assert_same_results(sound, path, form);
}

static void test_truncated(void **state)
{
    (void)state;
    run_truncated(PL_BLOCK_NATIVE, "", 2 * 4096); /* into the features */
    run_truncated(PL_BLOCK_NPY, "/outputs.fields.npy", 50000);
    run_truncated(PL_BLOCK_NPY, "/metrics.energy.npy",
                  sizeof expected_arrays()->energy - 20); /* all but five numbers */
    run_structure(PL_BLOCK_NATIVE, "", -100, "what lies between the datasets, or behind them;");
    run_structure(PL_BLOCK_NPY, "/features.npy", 60, "the header of a .npy file, or what lies behind its data;");
    if (!has_hdf5()) return;
    run_truncated(PL_BLOCK_HDF5, "", 30000);
    run_structure(PL_BLOCK_HDF5, "", 700, "what HDF5 has around its datasets, or what lies behind them;");
}

/* ---- what is not ours ---- */

/* Names that a person may have chosen are not taken for temporary ones; left-overs of a maker that was killed are. */
static void test_temporary_names(void **state)
{
    char text[16] = "", path[256];
    (void)state;
    for (int form = 0; form < PL_BLOCK_FORMS; form += 2) {
        snprintf(path, sizeof path, "%s", in_folder("mine-%d", form));
        write_bytes(in_folder("mine-%d.tmp", form), "mine", 4);
        if (form == PL_BLOCK_NPY) assert_int_equal(mkdir(in_folder("mine-%d.plimsoll.tmp", form), 0755), 0);
        write_bytes(in_folder("mine-%d.plimsoll.tmp%s", form, form == PL_BLOCK_NPY ? "/index" : ""), "left over", 9);
        must(small_run_all(&b, path, (pl_block_form)form, &small_layout, &found, &err));
        check_complete(path);
        assert_int_equal(read_bytes(in_folder("mine-%d.tmp", form), text, sizeof text), 4);
        assert_memory_equal(text, "mine", 4);
        assert_false(exists(in_folder("mine-%d.plimsoll.tmp", form)));
    }
}

/* Neither is what came meanwhile replaced: here a link that leads nowhere, which looks like no file. */
static void test_nothing_is_replaced(void **state)
{
    char path[256];
    (void)state;
    snprintf(path, sizeof path, "%s", in_folder("came"));
    assert_int_equal(symlink("nowhere", path), 0);
    write_bytes(in_folder("made"), "made", 4);
    expect(PL_E_STORAGE, pl_block_give_name(in_folder("made"), path, &err), "is not replaced");
    assert_true(exists(in_folder("made")));
    assert_int_equal(unlink(path), 0);
    must(pl_block_give_name(in_folder("made"), path, &err));
    assert_false(exists(in_folder("made")));
    assert_true(exists(path));
}

/* ---- what the disk refuses ---- */

static void test_no_room(void **state)
{
    const char *path = in_folder("no/room");
    pl_block_dataset huge = {"huge", PL_DTYPE_F32, false, 2, {OPERATORS, 1L << 55}, 1, NULL};
    pl_block_layout l = small_layout;
    (void)state;
    l.kind = small_kind + 1, l.kinds = 1;
    huge.kind = 0;
    l.dataset = &huge, l.datasets = 1;
    expect(PL_E_STORAGE, pl_block_file_make(path, PL_BLOCK_NATIVE, &l, &found, &err), "are free there");
    expect(PL_E_STORAGE, pl_block_file_look(path, PL_BLOCK_NATIVE, &l, &found, &err), "short; free space");
    for (int form = 0; form < PL_BLOCK_FORMS; form += 2) {
        for (uint64_t n = 1; n < 40; n++) {
            pl_io_fail_at(PL_IO_WRITE, n, ENOSPC, 1);
            pl_status status = pl_block_file_make(path, (pl_block_form)form, &small_layout, &found, &err);
            pl_io_fail_at(PL_IO_WRITE, 0, 0, 0);
            if (status == PL_OK) {
                assert_true(n > 4);
                remove_tree(path);
                break;
            }
            expect(PL_E_STORAGE, status, "free space on that disk");
            assert_false(exists(path));
            assert_false(exists(in_folder("no/room.plimsoll.tmp")));
        }
    }
}

static void test_no_folder_on_a_read_only_disk(void **state)
{
    (void)state;
    pl_io_fail_at(PL_IO_OPEN, 1, EROFS, 1);
    pl_status status = pl_folder_create_one(in_folder("read-only"), &err);
    pl_io_fail_at(PL_IO_OPEN, 0, 0, 0);
    expect(PL_E_STORAGE, status, "choose a folder on a writable file system");
}

/* Whichever sync fails, what is marked afterwards is sound, and the run goes on to the undisturbed file. */
static void test_failed_sync(void **state)
{
    const char *path = in_folder("sync"), *sound = in_folder("synced");
    (void)state;
    must(small_run_all(&b, sound, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    for (uint64_t n = 1; n < 12; n++) {
        unlink(path);
        must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
        must(small_open(&b, path, &small_layout, &err));
        pl_io_fail_at(PL_IO_FSYNC, n, EIO, 0);
        pl_status status = PL_OK;
        for (int o = 0; o < OPERATORS && status == PL_OK; o++) status = run_operator(&b, &small_layout, o, &err);
        if (status != PL_OK) expect(PL_E_STORAGE, status, "did not reach the disk");
        uint64_t done = pl_block_file_done(b.file);
        if (status != PL_OK) expect(PL_E_STORAGE, pl_block_file_close(b.file, &err), "did not reach the disk");
        if (status == PL_OK) must(pl_block_file_close(b.file, &err));
        pl_io_fail_at(PL_IO_FSYNC, 0, 0, 0);
        if (status != PL_OK) assert_true(done < BLOCKS);
        check_damage(path, false, "");
        must(small_run_all(&b, path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
        assert_int_equal(b.lost, 0);
        assert_same_files(sound, path);
    }
}

/* ---- the runner's word ---- */

static void test_no_memory_after_open(void **state)
{
    const char *path = in_folder("sealed");
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    uint64_t requests = pl_alloc_request_count();
    must(small_open(&b, path, &small_layout, &err));
    uint64_t measured = pl_alloc_request_count();
    assert_int_equal(measured, requests + 1); /* of measure, before open */
    for (int o = 0; o < OPERATORS; o++) must(run_operator(&b, &small_layout, o, &err));
    assert_int_equal(pl_block_file_written_bytes(b.file), sizeof(small_arrays));
    assert_int_equal(pl_block_file_there_bytes(b.file), sizeof(small_arrays));
    assert_int_equal(pl_block_file_data_bytes(b.file), sizeof(small_arrays));
    must(pl_block_file_close(b.file, &err));
    assert_int_equal(pl_alloc_request_count(), measured);
}

static void test_misuse(void **state)
{
    const char *path = in_folder("misused");
    char bytes[64] = {0};
    (void)state;
    must(pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    must(small_open(&b, path, &small_layout, &err));
    expect(PL_E_INTERNAL, pl_block_file_put(b.file, 0, ENERGY, 4, bytes, 4, &err), "does not go on");
    expect(PL_E_INTERNAL, pl_block_file_put(b.file, 0, ENERGY, 0, bytes, 20, &err), "too much");
    expect(PL_E_INTERNAL, pl_block_file_put(b.file, 0, FEATURE, 0, bytes, 4, &err), "does not make");
    must(pl_block_file_put(b.file, 0, ENERGY, 0, bytes, 16, &err));
    expect(PL_E_INTERNAL, pl_block_file_finish(b.file, 0, &err), "not whole");
    must(pl_block_file_put(b.file, 1, ENERGY, 0, bytes, 16, &err));
    expect(PL_E_INTERNAL, pl_block_file_put(b.file, 2, ENERGY, 0, bytes, 4, &err), "more blocks are open");
    pl_block_file_abandon(b.file, 1);
    must(pl_block_file_put(b.file, 2, ENERGY, 0, bytes, 4, &err));
    expect(PL_E_INTERNAL, pl_block_file_finish(b.file, 4, &err), "not begun");
    must(pl_block_file_close(b.file, &err));
    must(pl_block_file_look(path, PL_BLOCK_NATIVE, &small_layout, &found, &err));
    assert_int_equal(found.done, 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_native),
                                       cmocka_unit_test(test_npy),
                                       cmocka_unit_test(test_hdf5),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_another_config),
                                       cmocka_unit_test(test_two_writers),
                                       cmocka_unit_test(test_flipped_byte),
                                       cmocka_unit_test(test_flipped_bits_of_the_header),
                                       cmocka_unit_test(test_damaged_header),
                                       cmocka_unit_test(test_truncated),
                                       cmocka_unit_test(test_temporary_names),
                                       cmocka_unit_test(test_nothing_is_replaced),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_no_folder_on_a_read_only_disk),
                                       cmocka_unit_test(test_failed_sync),
                                       cmocka_unit_test(test_no_memory_after_open),
                                       cmocka_unit_test(test_misuse)};
    use_memory_for_folder();
    return cmocka_run_group_tests_name("block file", tests, make_test_folder, remove_test_folder);
}

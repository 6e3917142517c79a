/* Names of files, lists in lists; and what is made ready of files by a child, with a kind of files of the test's own:
 * numbers come back as they were put, whatever fails is told and leaves nothing, and a child that dies is no harm. */
#include "unit/data/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>

#include "base/child.h"
#include "data/infer/infer_data.h"
#include "support/program.h"
#include "support/seed.h"

static pl_error err;
static scratch_random numbers;

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* ---- names ---- */

static const pl_infer_port two[] = {{.name = "images"}, {.name = "angles"}};

static void expect_names(const char *text, uint32_t ports, const char *wanted)
{
    pl_infer_names n;
    char got[600] = "";
    if (pl_infer_names_read(text, two, ports, &n, &err)) fail_msg("%s: %s", text, err.text);
    for (uint64_t i = 0; i < n.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%u:%s ", n.name[i].port, n.name[i].path);
    assert_string_equal(got, wanted);
    pl_infer_names_deinit(&n);
}

static void refuse_names(const char *text, pl_status status, const char *says)
{
    const uint64_t before = pl_alloc_live_blocks();
    pl_infer_names n;
    assert_int_equal(pl_infer_names_read(text, two, 2, &n, &err), status);
    pl_infer_names_deinit(&n);
    assert_says(&err, says);
    assert_int_equal(pl_alloc_live_blocks(), before);
}

static void names(void **state)
{
    char text[500], wanted[600];
    (void)state;
    expect_names("a\nb", 1, "0:a 0:b ");
    expect_names("a\nb", 2, "0:a 1:b ");
    expect_names("angles=a\nb\nimages=c\nangles=d=e\n", 2, "1:a 0:b 0:c 1:d=e ");
    expect_names("image=a\nangles.npy", 2, "0:image=a 1:angles.npy ");
    expect_names("./@a", 1, "0:./@a ");
    const char *list = scratch_file("list", "x\r\n\r\nangles=y\n\nz", 16);
    snprintf(text, sizeof text, "images=@%s\nimages=w", list);
    snprintf(wanted, sizeof wanted, "0:%1$s/x 1:%1$s/y 0:%1$s/z 0:w ", scratch_folder); /* from the list's folder */
    expect_names(text, 2, wanted);
    snprintf(text, sizeof text, "@%s\n", list);
    snprintf(wanted, sizeof wanted, "0:%1$s/x 0:%1$s/angles=y 0:%1$s/z ", scratch_folder);
    expect_names(text, 1, wanted);
    snprintf(text, sizeof text, "@%s\nangles=@list", list);
    const char *outer = scratch_file("outer", text, strlen(text));
    snprintf(text, sizeof text, "images=@%s", outer);
    snprintf(wanted, sizeof wanted, "0:%1$s/x 1:%1$s/y 0:%1$s/z 1:%1$s/x 1:%1$s/y 1:%1$s/z ", scratch_folder);
    expect_names(text, 2, wanted);
    snprintf(text, sizeof text, "@%s", outer);
    (void)scratch_file("outer", text, strlen(text));
    refuse_names(text, PL_E_DATA, "is a list in a list, more than 8 deep");
    refuse_names("a\nb\nc", PL_E_USAGE, "c: each of the model's 2 inputs has a file already");
    refuse_names("images=", PL_E_USAGE, "a file of images has no name");
    refuse_names("@gone", PL_E_DATA, "gone: cannot be opened");
    snprintf(text, sizeof text, "@%s", scratch_file("to_gone", "a\n\n@gone\n", 9));
    refuse_names(text, PL_E_DATA, "to_gone:3: ");
    snprintf(text, sizeof text, "@%s", scratch_file("none", "\n\r\n", 3));
    refuse_names(text, PL_E_DATA, "the list names no files");
    snprintf(text, sizeof text, "@%s", scratch_file("zero", "a\0b", 3));
    refuse_names(text, PL_E_DATA, "is no list of files");
}

static void names_without_memory(void **state)
{
    char text[300];
    (void)state;
    snprintf(text, sizeof text, "@%s\nb", scratch_file("list", "x\ny", 3));
    const uint64_t before = pl_alloc_live_blocks();
    int well = 0;
    for (uint64_t n = 1; n < 20; n++) {
        pl_infer_names names;
        pl_alloc_fail_at(n, 0);
        const pl_status status = pl_infer_names_read(text, two, 1, &names, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK && status != PL_E_NOMEM) fail_msg("%d: %s", (int)n, err.text);
        well += status == PL_OK && names.count == 3;
        pl_infer_names_deinit(&names);
        assert_int_equal(pl_alloc_live_blocks(), before);
    }
    assert_true(well > 2 && well < 17);
}

/* ---- a child ---- */

enum { WELL = 1000, REFUSED, SILENT };
static pid_t parent;

static pl_status work(void *context, int way, pl_error *e)
{
    const int how = *(const int *)context;
    (void)way;
    if (getpid() == parent) return pl_fail(e, PL_E_INTERNAL, "not in a child");
    if (how == SILENT) _exit(0);
    if (how < WELL) raise(how);
    return how == WELL ? PL_OK : pl_fail(e, PL_E_CONFIG, "no more than %d", 7);
}

static void leave(int number) { _exit(number); }

static void children(void **state)
{
    static const int ends[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGKILL, SIGTERM};
    const int before = open_descriptors();
    int by, how = WELL;
    const pl_child_work w = {work, NULL, &how};
    (void)state;
    parent = getpid();
    signal(SIGSEGV, leave); /* of a host: not the child's */
    assert_int_equal(pl_child_run(&w, &by, &err), PL_OK);
    assert_int_equal(by, 0);
    how = REFUSED;
    assert_int_equal(pl_child_run(&w, &by, &err), PL_E_CONFIG);
    assert_string_equal(err.text, "no more than 7");
    assert_int_equal(by, 0);
    how = SILENT;
    assert_int_equal(pl_child_run(&w, &by, &err), PL_E_INTERNAL);
    assert_false(pl_child_crashed(by));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        how = ends[i];
        assert_int_equal(pl_child_run(&w, &by, &err), PL_E_INTERNAL);
        assert_int_equal(by, ends[i]);
        assert_int_equal(pl_child_crashed(by), i < 5);
    }
    signal(SIGSEGV, SIG_DFL);
    assert_int_equal(open_descriptors(), before);
}

/* ---- files of "MINE", a letter that says what is to happen, and numbers of f32: three of them are an item ---- */

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    (void)port;
    return bytes >= 5 && memcmp(head, "MINE", 4) == 0;
}

enum { PIECES = 6 };

static pl_status stage(pl_stager *s, const pl_rows *r, pl_error *e)
{
    char *text = NULL;
    size_t bytes;
    PL_TRY(pl_file_read_all(r->path, 1 << 20, &text, &bytes, e));
    const char how = text[4];
    if (how == 'c') raise(SIGSEGV);
    if (how == 'k') raise(SIGKILL);
    pl_status status = how == 'd' ? pl_fail(e, PL_E_DATA, "%s: is damaged", r->path)
                                  : pl_stager_reserve(s, r->path, how == 'h' ? UINT64_C(1) << 60 : bytes, e);
    for (size_t at = 5; at < bytes && status == PL_OK; at += PIECES)
        status = pl_stager_put(s, text + at, bytes - at < PIECES ? bytes - at : PIECES, e);
    s->array = (pl_npy_array){.number = PL_NPY_F32, .rank = 2, .dim = {(bytes - 5) / 12, 3}};
    return pl_free(text), status;
}

static const pl_rows_kind mine = {.what = "files of the test", .is_mine = is_mine, .stage = stage};

static pl_status match(const pl_data *d, const pl_facts *f, const char *path, bool trains, pl_error *e)
{
    return (void)d, (void)f, (void)path, (void)trains, (void)e, PL_OK;
}
static void close_own(pl_data *d) { (void)d; }
static const pl_data_kind own_kind = {.match = match, .close = close_own};
static pl_data own = {.kind = &own_kind};

static pl_infer_setup setup(const char *files)
{
    return (pl_infer_setup){
        .port = {{.name = "x", .dtype = PL_DTYPE_F32, .rank = 1, .dim = {3}, .kind = &mine}},
        .ports = 1,
        .files = files,
        .scratch = scratch_folder,
        .looks = true,
    };
}

enum { ITEMS = 70000 }; /* of the long one: more than a window of the disk's */

static const char *some(const char *name, char how, uint32_t items, float first)
{
    char *data = malloc(5 + 12 * (size_t)items);
    assert_non_null(data);
    memcpy(data, "MINE", 4), data[4] = how;
    for (uint32_t i = 0; i < 3 * items; i++) memcpy(data + 5 + 4 * i, &(float){first + (float)i}, 4);
    const char *path = scratch_file(name, data, 5 + 12 * (size_t)items);
    free(data);
    return path;
}

static const char *three_files(void)
{
    static char text[500];
    snprintf(text, sizeof text, "%s\n", some("a", 'p', 2, 100));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", some("b", 'p', ITEMS, 1000));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", some("c", 'p', 1, -5));
    return text;
}

static void expect_items(const pl_infer_data *d)
{
    char scratch[PL_ROWS_SCRATCH_BYTES];
    float row[3];
    const pl_infer_files *f = &d->input[0];
    const float first[] = {100, 1000, -5};
    assert_int_equal(d->items, 2 + ITEMS + 1);
    for (int k = 0; k < 200; k++) {
        const uint64_t item = k == 0 ? 0 : k == 1 ? d->items - 1 : scratch_next(&numbers, (uint32_t)d->items);
        const uint64_t at = item < 2 ? 0 : item < 2 + ITEMS ? 1 : 2;
        assert_int_equal(pl_rows_read(&f->rows[at], item - f->first[at], row, scratch, &err), PL_OK);
        for (int i = 0; i < 3; i++) assert_true(row[i] == first[at] + (float)(3 * (item - f->first[at]) + (uint64_t)i));
    }
}

static void expect_folder_as_it_was(void)
{
    DIR *folder = opendir(scratch_folder);
    for (const struct dirent *e; (e = readdir(folder));)
        if (strstr(e->d_name, "plimsoll")) fail_msg("%s is left", e->d_name);
    closedir(folder);
}

static void made_ready(void **state)
{
    (void)state;
    const int before = open_descriptors();
    const uint64_t blocks = pl_alloc_live_blocks();
    pl_infer_setup s = setup(three_files());
    pl_infer_data *planned, *run;
    if (pl_infer_data_open(&s, &own, &planned, &err)) fail_msg("%s", err.text);
    assert_int_equal(open_descriptors(), before + 1);
    expect_items(planned);
    assert_true(planned->data.file_bytes > 12 * ITEMS && planned->data.held > 2);
    s.looks = false, s.staged = pl_facts_value(&planned->data.identity, PL_FACT_STAGED, 0);
    assert_true(s.staged != 0);
    assert_int_equal(truncate(scratch_path("b"), 7), 0); /* nobody looks at it again */
    if (pl_infer_data_open(&s, &own, &run, &err)) fail_msg("%s", err.text);
    expect_items(run);
    assert_true(pl_facts_equal(&planned->data.identity, &run->data.identity));
    pl_data_close(&planned->data);
    expect_items(run); /* its own descriptor */
    assert_int_equal(pl_infer_data_open(&s, &own, &planned, &err), PL_E_DATA);
    assert_says(&err, "gone with the process that planned");
    s.staged = (s.staged & INT32_MAX & ~UINT64_C(255)) | (uint64_t)run->data.held; /* there, and another's */
    assert_int_equal(pl_infer_data_open(&s, &own, &planned, &err), PL_E_DATA);
    pl_data_close(&run->data);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(pl_alloc_live_blocks(), blocks);
    expect_folder_as_it_was();
}

static void refuse(char how, pl_status status, const char *says)
{
    char text[300];
    snprintf(text, sizeof text, "%s\n", some("good", 'p', 1, 0));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", some("bad", how, how == 'n' ? 0 : 1, 0));
    const int before = open_descriptors();
    const pl_infer_setup s = setup(text);
    pl_infer_data *d;
    assert_int_equal(pl_infer_data_open(&s, &own, &d, &err), status);
    assert_says(&err, says);
    assert_says(&err, "/bad");
    assert_int_equal(open_descriptors(), before);
}

static void what_is_refused(void **state)
{
    (void)state;
    refuse('d', PL_E_DATA, "is damaged");
    refuse('c', PL_E_DATA,
           "was ended by signal 11, a crash of the library: perhaps it got no memory, or the file is damaged");
    refuse('k', PL_E_NOMEM, "was ended (signal 9)");
    refuse('h', PL_E_STORAGE, "its numbers take");
    refuse('n', PL_E_DATA, "has no items");
    pl_infer_setup s = setup(some("good", 'p', 1, 0));
    pl_infer_data *d;
    s.scratch_is_memory = true;
    assert_int_equal(pl_infer_data_open(&s, &own, &d, &err), PL_E_STORAGE);
    assert_says(&err, "lies in memory");
    s.scratch_is_memory = false, s.scratch = "gone";
    assert_int_equal(pl_infer_data_open(&s, &own, &d, &err), PL_E_STORAGE);
    assert_says(&err, "gone: no file for what is read");
}

/* A file system that has no nameless files: one that loses its name. */
static void without_nameless_files(void **state)
{
    (void)state;
    const pl_infer_setup s = setup(some("good", 'p', 1, 0));
    pl_infer_data *d;
    pl_io_fail_at(PL_IO_OPEN, 2, EOPNOTSUPP, 0); /* the first looks at the user's */
    const pl_status status = pl_infer_data_open(&s, &own, &d, &err);
    pl_io_fail_at(PL_IO_OPEN, 0, 0, 0);
    if (status != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(d->items, 1);
    pl_data_close(&d->data);
    expect_folder_as_it_was();
}

/* Whatever request for memory and whatever call on files fails, here or in the child: all is given back. */
static void whatever_fails(void **state)
{
    char text[300];
    (void)state;
    snprintf(text, sizeof text, "%s\n", some("one", 'p', 3, 0));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", some("two", 'p', 3, 0));
    const pl_infer_setup s = setup(text);
    const int before = open_descriptors();
    const uint64_t blocks = pl_alloc_live_blocks();
    static const pl_io_kind kinds[] = {PL_IO_OPEN, PL_IO_READ, PL_IO_WRITE};
    for (int kind = -1; kind < 3; kind++) {
        int failed = 0, well = 0;
        for (uint64_t n = 1; n < 60; n++) {
            pl_infer_data *d;
            if (kind < 0)
                pl_alloc_fail_at(n, 0);
            else
                pl_io_fail_at(kinds[kind], n, ENOSPC, 0);
            const pl_status status = pl_infer_data_open(&s, &own, &d, &err);
            pl_alloc_fail_at(0, 0);
            for (int k = 0; k < 3; k++) pl_io_fail_at(kinds[k], 0, 0, 0);
            if (status == PL_OK) well++, pl_data_close(&d->data);
            if (status != PL_OK) failed++;
            if (status != PL_OK && status != (kind < 0 ? PL_E_NOMEM : PL_E_STORAGE))
                fail_msg("%d: %s", (int)n, err.text);
            assert_int_equal(open_descriptors(), before);
            assert_int_equal(pl_alloc_live_blocks(), blocks);
        }
        assert_true(failed > 2 && well > 2);
        expect_folder_as_it_was();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),
                                       cmocka_unit_test(names_without_memory),
                                       cmocka_unit_test(children),
                                       cmocka_unit_test(made_ready),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(whatever_fails),
                                       cmocka_unit_test(without_nameless_files)};
    numbers = (scratch_random){.key = pl_philox_init(test_seed_said(argc, argv), 41)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

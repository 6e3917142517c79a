/* What a file may be written over: a regular file, or a link to one. Whatever else is there (a device, a pipe, a
 * folder, a link that leads nowhere or to one of those) is refused, and is afterwards what it was. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "support/program.h"

static char folder[64], before[4096];

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pl_file_XXXXXX");
    return mkdtemp(folder) && getcwd(before, sizeof before) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir(before) == 0 && system(command) == 0 ? 0 : -1;
}

static void check_content(const char *path, const char *expected)
{
    char *text;
    size_t bytes;
    pl_error err = {0};
    assert_int_equal(pl_file_read_all(path, 100, &text, &bytes, &err), PL_OK);
    assert_string_equal(text, expected);
    pl_free(text);
}

static void must_write(const char *path, const char *text)
{
    pl_error err = {0};
    if (pl_file_write_all(path, text, strlen(text), &err) != PL_OK) fail_msg("%s", err.text);
    check_content(path, text);
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void refused(const char *path, const char *sentence)
{
    struct stat was = {0}, is = {0};
    char expected[256];
    pl_error err = {0};
    assert_int_equal(lstat(path, &was), 0);
    assert_int_equal(pl_file_write_all(path, "new", 3, &err), PL_E_STORAGE);
    snprintf(expected, sizeof expected, "%s: %s", path, sentence);
    assert_string_equal(err.text, expected);
    assert_int_equal(lstat(path, &is), 0);
    assert_true(was.st_ino == is.st_ino && was.st_mode == is.st_mode);
}

/* Whichever step fails: what was there is there, and nothing else. */
static void several_are_all_there_or_none(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    static pl_file_writer w[3];
    static const struct {
        pl_io_kind kind;
        int count;
    } steps[] = {{PL_IO_FSYNC, 3}, {PL_IO_RENAME, 3}};
    (void)state;
    for (int new_ones = 0; new_ones < 2; new_ones++)
        for (int k = 0; k < 2; k++)
            for (int n = 0; n <= steps[k].count; n++) {
                pl_error err = {0};
                for (int i = 0; i < 3; i++) {
                    unlink(names[i]);
                    if (i != new_ones) must_write(names[i], "old");
                    assert_int_equal(pl_file_create(&w[i], names[i], &err), PL_OK);
                    assert_int_equal(pl_file_write(&w[i], "new", 3, &err), PL_OK);
                }
                pl_io_fail_at(steps[k].kind, (uint64_t)n, ENOSPC, 0);
                const pl_status status = pl_file_commit_all(w, 3, &err);
                pl_io_fail_at(steps[k].kind, 0, 0, 0);
                assert_int_equal(status, n ? PL_E_STORAGE : PL_OK);
                for (int i = 0; i < 3; i++) {
                    pl_file_abandon(&w[i]);
                    if (n && i == new_ones)
                        assert_int_not_equal(access(names[i], F_OK), 0);
                    else
                        check_content(names[i], n ? "old" : "new");
                    char left[32];
                    snprintf(left, sizeof left, "%s" PL_FILE_TEMPORARY, names[i]);
                    assert_int_not_equal(access(left, F_OK), 0);
                }
            }
}

static void a_regular_file_is_replaced(void **state)
{
    (void)state;
    must_write("file", "first");
    must_write("file", "second, longer");
    must_write("file", "");
    assert_int_not_equal(access("file.plimsoll.tmp", F_OK), 0);
}

static void a_link_is_followed_and_stays(void **state)
{
    (void)state;
    assert_int_equal(mkdir("elsewhere", 0755), 0);
    must_write("elsewhere/file", "first");
    assert_int_equal(symlink("elsewhere/file", "link"), 0);
    assert_int_equal(symlink("link", "link to link"), 0);
    must_write("link to link", "second");
    check_content("elsewhere/file", "second");
    assert_true(is_link("link") && is_link("link to link") && !is_link("elsewhere/file"));
    assert_int_not_equal(access("elsewhere/file.plimsoll.tmp", F_OK), 0);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    static const char is_other[] = "exists and is not a regular file; give another name";
    static const char leads_to_other[] = "is a link to something that is not a regular file; give another name";
    assert_int_equal(mkfifo("pipe", 0600) | mkdir("folder", 0755), 0);
    assert_int_equal(symlink("nothing", "dangling") | symlink("round", "round"), 0);
    assert_int_equal(symlink("pipe", "to pipe") | symlink("folder", "to folder") | symlink("/dev/full", "to full"), 0);
    refused("/dev/null", is_other);
    refused("pipe", is_other);
    refused("folder", is_other);
    refused("to pipe", leads_to_other);
    refused("to folder", leads_to_other);
    refused("to full", leads_to_other);
    refused("dangling", "is a link that leads nowhere: No such file or directory");
    refused("round", "is a link that leads nowhere: Too many levels of symbolic links");
}

/* Whoever may write in the folder could lay a link where the temporary file will be. */
static void a_link_at_the_temporary_name_is_not_followed(void **state)
{
    (void)state;
    pl_error err = {0};
    must_write("precious", "kept");
    assert_int_equal(symlink("precious", "out.plimsoll.tmp"), 0);
    assert_int_equal(pl_file_write_all("out", "new", 3, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "out.plimsoll.tmp: cannot be created: "));
    check_content("precious", "kept");
    assert_int_equal(mkfifo("other.plimsoll.tmp", 0600), 0);
    assert_int_equal(pl_file_write_all("other", "new", 3, &err), PL_E_STORAGE); /* and does not wait for a reader */
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void what_only_looks_temporary_stays(void **state)
{
    (void)state;
    put("out.tmp", "somebody's");
    put("out.plimsoll.tmp", "of one that was killed, longer than what comes");
    must_write("out", "new");
    check_content("out.tmp", "somebody's");
    assert_int_equal(access("out.plimsoll.tmp", F_OK), -1);
}

/* Two at work on one path do not see each other; the last one has the name. */
static void two_writers_have_files_of_their_own(void **state)
{
    (void)state;
    static pl_file_writer one, two, gone;
    pl_error err = {0};
    assert_int_equal(pl_file_create(&one, "page", &err) | pl_file_write(&one, "first", 5, &err), PL_OK);
    assert_int_equal(pl_file_create(&two, "page", &err) | pl_file_write(&two, "sec", 3, &err), PL_OK);
    assert_int_equal(pl_file_create(&gone, "page", &err) | pl_file_write(&gone, "nothing", 7, &err), PL_OK);
    pl_file_abandon(&gone);
    if (pl_file_commit(&one, &err) != PL_OK) fail_msg("%s", err.text);
    check_content("page", "first");
    assert_int_equal(pl_file_write(&two, "ond", 3, &err), PL_OK);
    if (pl_file_commit(&two, &err) != PL_OK) fail_msg("%s", err.text);
    check_content("page", "second");
    assert_int_equal(unlink("page") | chdir(before) | rmdir(folder), 0); /* nothing else was left in it */
    assert_int_equal(mkdir(folder, 0700) | chdir(folder), 0);
}

/* As `plimsoll storage report` holds a lease on it for a moment, to ask who has it open. */
static void who_looks_at_the_temporary_file_disturbs_nobody(void **state)
{
    (void)state;
    int fd = open("page" PL_FILE_TEMPORARY, O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0 && fcntl(fd, F_SETSIG, SIGURG) == 0);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        print_message("skipped: leases are not to be had here: %s\n", strerror(errno));
        close(fd);
        return;
    }
    must_write("page", "new");
    assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK) | close(fd), 0);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    pl_error err = {0};
    assert_int_equal(pl_file_write_all("missing/file", "new", 3, &err), PL_E_STORAGE);
    assert_string_equal(err.text, "missing/file: cannot be created: No such file or directory");
}

/* The kernel tells of a write-back that failed once; who starts write-back early must not lose it. */
static void a_failed_write_back_is_heard(void **state)
{
    (void)state;
    const size_t bytes = 2 * PL_FILE_WINDOW_BYTES + 1;
    char *data = pl_alloc(bytes, 1);
    pl_error err = {0};
    for (uint64_t n = 1; n <= 3; n++) {
        must_write("old", "before");
        pl_io_fail_at(PL_IO_FSYNC, n, EIO, 0);
        pl_status status = pl_file_write_all("old", data, bytes, &err);
        pl_io_fail_at(PL_IO_FSYNC, 0, 0, 0);
        assert_int_equal(status, PL_E_STORAGE);
        assert_non_null(strstr(err.text, "did not reach the disk: Input/output error"));
        check_content("old", "before");
        assert_int_equal(access("old.plimsoll.tmp", F_OK), -1);
    }
    pl_free(data);
}

static void kinds_are_told_apart(void **state)
{
    (void)state;
    char long_name[5000] = "";
    pl_error err = {0};
    memset(long_name, 'x', sizeof long_name - 1);
    must_write("file", "text");
    assert_int_equal(mkdir("folder", 0700) | symlink("nothing", "dangling") | symlink("folder", "link"), 0);
    const struct {
        const char *path;
        pl_file_kind kind;
    } cases[] = {{"file", PL_FILE_OTHER},     {"folder", PL_FILE_FOLDER},  {"link", PL_FILE_FOLDER},
                 {"dangling", PL_FILE_OTHER}, {"missing", PL_FILE_NONE},   {"file/below", PL_FILE_NONE},
                 {long_name, PL_FILE_NONE},   {"two\nnames", PL_FILE_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_file_kind kind;
        assert_int_equal(pl_file_find_kind(cases[i].path, &kind, &err), PL_OK);
        if (kind != cases[i].kind) fail_msg("%.40s is of kind %d, not %d", cases[i].path, kind, cases[i].kind);
    }
}

/* A signal between is none of the caller's business. */
static void an_interrupted_call_is_made_again(void **state)
{
    (void)state;
    for (pl_io_kind kind = PL_IO_OPEN; kind <= PL_IO_FSYNC; kind++) {
        for (uint64_t n = 1; n <= 2; n++) {
            pl_io_fail_at(kind, n, EINTR, 0);
            must_write("f", "text");
            pl_io_fail_at(kind, 0, 0, 0);
        }
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_regular_file_is_replaced, begin, end),
        cmocka_unit_test_setup_teardown(several_are_all_there_or_none, begin, end),
        cmocka_unit_test_setup_teardown(a_link_is_followed_and_stays, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_link_at_the_temporary_name_is_not_followed, begin, end),
        cmocka_unit_test_setup_teardown(what_only_looks_temporary_stays, begin, end),
        cmocka_unit_test_setup_teardown(two_writers_have_files_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(who_looks_at_the_temporary_file_disturbs_nobody, begin, end),
        cmocka_unit_test_setup_teardown(a_missing_folder_is_named, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_write_back_is_heard, begin, end),
        cmocka_unit_test_setup_teardown(an_interrupted_call_is_made_again, begin, end),
        cmocka_unit_test_setup_teardown(kinds_are_told_apart, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

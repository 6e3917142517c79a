/* A folder of its own for each test program under TMPDIR, removed at the end; and small helpers to look into files. */
#ifndef TESTS_STORE_SCRATCH_FOLDER_H
#define TESTS_STORE_SCRATCH_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
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

static char test_folder[256];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* For a test that syncs often: what a process leaves, killed or not, is the kernel's, and a disk would only be waited
 * for. */
static inline void use_memory_for_folder(void)
{
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
}

static inline int make_test_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(test_folder, sizeof test_folder, "%s/plimsoll-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(test_folder) ? 0 : -1;
}

static inline int remove_test_folder(void **state)
{
    (void)state;
    remove_tree(test_folder);
    return 0;
}

/* test_folder/format…; four paths at a time may be in use. */
__attribute__((format(printf, 1, 2))) static inline const char *in_folder(const char *format, ...)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    int n = snprintf(path, 1024, "%s/", test_folder);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, 1024 - (size_t)n, format, args);
    va_end(args);
    return path;
}

static inline void write_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static inline size_t read_bytes(const char *path, void *data, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, room, f);
    fclose(f);
    return n;
}

static inline int exists(const char *path) { return access(path, F_OK) == 0; }

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

#endif

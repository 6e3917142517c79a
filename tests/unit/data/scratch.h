/* A folder of its own for each test program, and a few things the tests of data/ share. */
#ifndef PL_TESTS_UNIT_DATA_SCRATCH_H
#define PL_TESTS_UNIT_DATA_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/philox.h"

static char scratch_folder[64];

static inline int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch_folder, "/tmp/plimsoll-data-XXXXXX");
    return mkdtemp(scratch_folder) ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_folder);
    return system(command);
}

/* The path of a file in the folder; four of them can be in use. */
static inline const char *scratch_path(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline const char *scratch_file(const char *name, const void *data, size_t bytes)
{
    const char *path = scratch_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
    return path;
}

/* Overwrites one byte in place. */
static inline void scratch_damage(const char *path, long offset)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, offset, SEEK_SET);
    int c = fgetc(f);
    fseek(f, offset, SEEK_SET);
    fputc(c ^ 0x41, f);
    fclose(f);
}

/* The text of the error has this in it. */
static inline void assert_says(const pl_error *err, const char *part)
{
    if (!strstr(err->text, part)) fail_msg("\"%s\" was expected in: %s", part, err->text);
}

/* Runs under a tool with an allocator of its own (AddressSanitizer, ThreadSanitizer, valgrind), which asks the kernel
 * for memory when it likes: limits on memory say nothing then. */
static inline int scratch_instrumented(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 1;
#else
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return 1;
#endif
#endif
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
#endif
}

/* A stream of random numbers for a test. */
typedef struct scratch_random {
    pl_philox key;
    uint64_t at;
} scratch_random;

static inline uint32_t scratch_next(scratch_random *r, uint32_t below)
{
    uint32_t out[4];
    pl_philox_block(&r->key, 0, r->at++, 0, out);
    return out[0] % below;
}

#endif

/* The fence around a planner, each time in a child: it is of the whole process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/procfile.h"
#include "support/program.h"

#if defined(__SANITIZE_ADDRESS__)
enum { INSTRUMENTED = 1 }; /* shadow memory is data as well */
#else
enum { INSTRUMENTED = 0 };
#endif

#define CHECK(what)                                                                                                    \
    if (!(what)) return __LINE__

static int in_child(int (*body)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) _exit(body() ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static uint64_t held(void)
{
    pl_process_fence(UINT64_C(1) << 40, 1); /* far away: tells how much there is */
    uint64_t bytes = (UINT64_C(1) << 40) - pl_process_fence_left();
    pl_process_fence_open();
    return bytes;
}

static int holds(void)
{
    uint64_t limit = held() + (16 << 20);
    struct rlimit before, now;
    CHECK(getrlimit(RLIMIT_DATA, &before) == 0 && pl_process_fence_left() == UINT64_MAX);
    pl_process_fence(limit, 1);
    CHECK(pl_process_fence_left() <= 16 << 20 && pl_process_fence_left() > 12 << 20);
    void *small = pl_alloc(1, 4 << 20);
    CHECK(small && !pl_process_fence_struck());
    CHECK(!pl_alloc(1, 64 << 20) && pl_process_fence_struck());
    CHECK(!pl_realloc(small, 1, 64 << 20));
    pl_free(small);
    pl_process_fence_open();
    CHECK(getrlimit(RLIMIT_DATA, &now) == 0 && now.rlim_cur == before.rlim_cur);
    void *large = pl_alloc(1, 64 << 20);
    CHECK(large);
    pl_free(large);
    return 0;
}

/* The limits that are reported are those of the user, not ours. */
static int is_no_limit_of_the_user(void)
{
    pl_machine m;
    pl_error err = {0};
    struct rlimit limit = {(rlim_t)1 << 33, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
    pl_process_fence(held() + (16 << 20), 4);
    CHECK(pl_machine_read("", &m, &err) == PL_OK && m.data_limit_bytes == limit.rlim_cur);
    pl_process_fence_open();
    CHECK(pl_machine_read("", &m, &err) == PL_OK && m.data_limit_bytes == limit.rlim_cur);
    return 0;
}

/* A lower limit of the user's stays, and what it refuses is not the fence's doing. */
static int leaves_lower_limits(void)
{
    struct rlimit limit = {held() + (8 << 20), RLIM_INFINITY}, now;
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
    pl_process_fence(UINT64_C(1) << 30, 1);
    CHECK(getrlimit(RLIMIT_DATA, &now) == 0 && now.rlim_cur == limit.rlim_cur);
    CHECK(!pl_alloc(1, 64 << 20) && !pl_process_fence_struck());
    return 0;
}

/* What a test refuses is not the fence's doing either. */
static int tells_refusals_apart(void)
{
    pl_process_fence(held() + (64 << 20), 1);
    pl_alloc_fail_at(1, 0);
    CHECK(!pl_alloc(1, 16) && !pl_process_fence_struck());
    CHECK(!pl_alloc(SIZE_MAX, 2) && !pl_process_fence_struck());
    return 0;
}

static int hears_of_libraries(void)
{
    pl_process_fence(held() + (1 << 20), 1);
    pl_alloc_note_refusal(8 << 20);
    CHECK(pl_process_fence_struck());
    return 0;
}

static char unset[1 << 20];

/* What the kernel counts for the fence at the start: mappings of files, .bss, and beside them memory of the loader. */
static int modules_are_counted_already(void)
{
    pl_mapping m;
    pl_procfile maps;
    pl_error err = {0};
    uint64_t files = 0;
    CHECK(pl_process_start(&err) == PL_OK && pl_procfile_open(&maps, "/proc/self/maps") == 0);
    for (char *line; (line = pl_procfile_line(&maps));)
        if (pl_mapping_parse(line, &m) && m.protection[1] == 'w' && m.protection[3] == 'p' && m.inode)
            files += m.end - m.begin;
    pl_procfile_close(&maps);
    memset(unset, 1, sizeof unset);
    CHECK(pl_process_modules_written_bytes() >= files + sizeof unset);
    CHECK(pl_process_modules_written_bytes() <= held());
    return unset[sizeof unset / 2] - 1;
}

static void run(int (*body)(void))
{
    if (INSTRUMENTED) skip();
    assert_int_equal(in_child(body), 0);
}

static void test_holds(void **state) { (void)state, run(holds); }
static void test_user(void **state) { (void)state, run(is_no_limit_of_the_user); }
static void test_lower(void **state) { (void)state, run(leaves_lower_limits); }
static void test_apart(void **state) { (void)state, run(tells_refusals_apart); }
static void test_libraries(void **state) { (void)state, run(hears_of_libraries); }
static void test_modules(void **state) { (void)state, run(modules_are_counted_already); }

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holds),     cmocka_unit_test(test_user),
                                       cmocka_unit_test(test_lower),     cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_libraries), cmocka_unit_test(test_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

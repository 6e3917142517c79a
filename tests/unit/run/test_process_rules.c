/* The rules after "committed" are enforced, and what breaks them or stands in the way before gives a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/procfile.h"
#include "run/arena.h"
#include "run/threads.h"
#include "support/process/collapse.h"
#include "support/runner.h"

static runner_result got;

static runner_request small(int threads, const char *misdeed)
{
    runner_request r = runner_request_default(threads);
    r.arena_bytes = 1 << 20;
    r.loops = 3;
    snprintf(r.misdeed, sizeof r.misdeed, "%s", misdeed);
    return r;
}

static void test_filter_kills(void **state)
{
    (void)state;
    static const char *const misdeeds[] = {"mmap", "brk", "team"};
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        runner_request r = small(8, misdeeds[i]);
        r.lockdown = PL_LOCKDOWN_KILL;
        int status = runner_run(&r, NULL, &got);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
    }
}

static void test_filter_counts_and_names(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    static const char *const misdeeds[] = {"mmap", "brk"};
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        runner_request r = small(2, misdeeds[i]);
        r.lockdown = PL_LOCKDOWN_COUNT;
        assert_int_equal(runner_run(&r, NULL, &got), 0);
        assert_int_equal(got.lockdown.offences, 1);
        assert_true(got.lockdown.offence[0].address != 0);
    }
}

/* Runs under the preloaded counter; the report's text into `text`. */
static void run_counted(runner_request *r, char *text, size_t room)
{
    char path[] = "/tmp/plimsoll-malloc-XXXXXX", report[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    snprintf(report, sizeof report, "PL_MALLOC_REPORT=%s", path);
    char *extra[] = {"LD_PRELOAD=" PL_PRELOAD_MALLOC, report, NULL};
    int status = runner_run(r, extra, &got);
    ssize_t bytes = read(fd, text, room - 1);
    text[bytes > 0 ? bytes : 0] = 0;
    close(fd);
    unlink(path);
    assert_int_equal(status, 0);
}

static void test_heap_calls_are_found_and_named(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    char text[4096];
    runner_request r = small(8, "");
    r.loops = 50;
    run_counted(&r, text, sizeof text);
    static const char none[] = "malloc 0 calloc 0 realloc 0 free 0 other 0\nspare ";
    assert_memory_equal(text, none, sizeof none - 1);
    assert_string_equal(strchr(text + sizeof none, '\n'), "\n"); /* and nobody is named */
    r = small(8, "malloc");
    run_counted(&r, text, sizeof text);
    assert_ptr_equal(strstr(text, "malloc 1 calloc 0 realloc 0 free 1 other 0\n"), text);
    assert_non_null(strstr(text, "malloc 1 runner+0x"));
    if (getenv("PL_TABLE")) {
        r = small(8, "region1");
        run_counted(&r, text, sizeof text);
        printf("a region of one thread after a team of 8: %s", text);
    }
}

static void expect_sentence(runner_request r, char *variable, pl_status status, const char *word)
{
    char *extra[] = {variable, NULL};
    int state = runner_run(&r, variable ? extra : NULL, &got);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 1);
    assert_int_equal(got.error.status, status);
    if (!strstr(got.error.text, word)) fail_msg("no '%s' in: %s", word, got.error.text);
}

static void test_environment_of_openmp(void **state)
{
    (void)state;
    static char limit4[] = "OMP_THREAD_LIMIT=4";
    expect_sentence(small(8, ""), limit4, PL_E_USAGE, "OMP_THREAD_LIMIT allows 4");
    static char *const harmless[] = {
        "OMP_DYNAMIC=true",        "OMP_NUM_THREADS=3",       "OMP_THREAD_LIMIT=8",
        "OMP_STACKSIZE=8M",        "OMP_MAX_ACTIVE_LEVELS=0", "OMP_NESTED=true",
        "OMP_PROC_BIND=true",      "LC_ALL=C.UTF-8",          "GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        "MALLOC_TOP_PAD_=1000000", "MALLOC_ARENA_MAX=4",      "GLIBC_TUNABLES=glibc.rtld.nns=4"};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        char *extra[] = {harmless[i], NULL};
        runner_request r = small(8, "");
        r.lockdown = RUNNER_EXACT ? PL_LOCKDOWN_KILL : PL_LOCKDOWN_OFF;
        int status = runner_run(&r, extra, &got);
        if (status) fail_msg("with %s: %s", harmless[i], got.error.text);
        assert_int_equal(got.end.threads, 8);
        if (RUNNER_EXACT) assert_int_equal(got.faults_in_loop, 0);
        if (RUNNER_EXACT) assert_int_equal(got.end.unexplained_bytes, 0);
    }
}

static void test_limits_give_sentences(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    runner_request r = small(1, "");
    r.address_limit_bytes = 64 << 20;
    r.arena_bytes = 100 << 20;
    expect_sentence(r, NULL, PL_E_NOMEM, "arena 'ram'");
    r = small(64, "");
    r.address_limit_bytes = 24 << 20;
    expect_sentence(r, NULL, PL_E_NOMEM, "refuses thread");
    r = small(1, "");
    r.options.heap_bytes = (uint64_t)1 << 30;
    r.address_limit_bytes = 64 << 20;
    expect_sentence(r, NULL, PL_E_NOMEM, "heap");
    static char large[120 << 10];
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "LARGE=", 6);
    r = small(1, "");
    r.options.main_stack_bytes = 128 << 10;
    expect_sentence(r, large, PL_E_USAGE, "main stack");
    r = small(1, "");
    r.arena_bytes = UINT64_MAX - 5;
    expect_sentence(r, NULL, PL_E_NOMEM, "arena");
}

static void test_other_address_layouts(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    for (int layout = 0; layout < 2; layout++) {
        runner_request r = small(8, "");
        r.endless_stack = layout == 0;
        r.fixed_addresses = layout == 1;
        pl_process_planned plan;
        pl_error err = {0};
        pl_process_arena arena = {"ram", r.arena_bytes};
        assert_int_equal(pl_process_plan(&r.options, 8, 0, &arena, 1, &plan, &err), PL_OK);
        assert_int_equal(runner_run(&r, NULL, &got), 0);
        assert_int_equal(got.end.unexplained_bytes, 0);
        assert_int_equal(got.end.rollup_bytes, plan.resident_bytes);
        assert_int_equal(got.end.explained_bytes, plan.resident_bytes);
        assert_int_equal(got.faults_in_loop, 0);
    }
}

static void test_what_is_not_planned_shows(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    runner_request r = small(2, "pre-leak");
    assert_int_equal(runner_run(&r, NULL, &got), 0);
    assert_int_equal(got.end.unexplained_bytes, 4096);
    assert_int_equal(got.end.unexplained_count, 1);
    assert_int_equal(got.end.unexplained[0].resident_bytes, 4096);
    r = small(2, "pre-heap");
    assert_int_equal(runner_run(&r, NULL, &got), 0);
    const pl_memory_row *heap = pl_memory_find_row(got.end.row, got.end.row_count, PL_MEMORY_HEAP, NULL);
    if (heap->resident_bytes < 2 * r.options.heap_bytes)
        fail_msg("heap %llu, unexplained %llu", (unsigned long long)heap->resident_bytes,
                 (unsigned long long)got.end.unexplained_bytes);
    assert_int_equal(got.end.unexplained_bytes, 0);
}

typedef struct collapsing {
    long regions;
    int refused;
} collapsing;

static void collapse(pid_t pid, void *context)
{
    collapsing *c = context;
    long regions = collapse_process(pid);
    if (regions > c->regions) c->regions = regions;
    if (regions < 0 && (errno == EPERM || errno == ENOSYS)) c->refused = 1;
}

/* The emulation must bite where nothing was prepared (the control), and must not where it was. */
static void test_huge_pages_always(void **state)
{
    (void)state;
    if (!RUNNER_EXACT) skip();
    runner_request r = small(8, "pre-thp");
    r.seconds = 1;
    r.options.heap_bytes = 6 << 20;
    collapsing control = {0}, prepared = {0};
    assert_int_equal(runner_run_watched(&r, NULL, &got, collapse, &control), 0);
    if (control.refused || control.regions == 0) skip(); /* not root, or a kernel before 6.1 */
    assert_true(got.end.rollup_bytes >= got.committed.rollup_bytes + (14 << 20));
    r.misdeed[0] = 0;
    assert_int_equal(runner_run_watched(&r, NULL, &got, collapse, &prepared), 0);
    assert_int_equal(prepared.regions, 0);
    assert_int_equal(got.end.rollup_bytes, got.committed.rollup_bytes);
    assert_int_equal(got.end.rollup_huge_bytes, 0);
    assert_int_equal(got.end.minor_faults, got.committed.minor_faults);
}

/* The real thing, for a machine whose transparent huge pages are set to "always": PL_TEST_THP_SECONDS=45 (khugepaged
 * looks at a process every ten seconds). */
static void test_huge_pages_of_the_system(void **state)
{
    (void)state;
    const char *seconds = getenv("PL_TEST_THP_SECONDS");
    if (!seconds || !RUNNER_EXACT) skip();
    runner_request r = small(8, "");
    r.seconds = atoi(seconds);
    r.options.heap_bytes = 6 << 20;
    r.options.thread_stack_reserved_bytes = 8 << 20; /* sparse: what khugepaged likes to fill */
    assert_int_equal(runner_run(&r, NULL, &got), 0);
    printf("committed %llu, %s s later %llu, huge %llu\n", (unsigned long long)got.committed.rollup_bytes, seconds,
           (unsigned long long)got.end.rollup_bytes, (unsigned long long)got.end.rollup_huge_bytes);
    assert_int_equal(got.end.rollup_bytes, got.committed.rollup_bytes);
    assert_int_equal(got.end.rollup_huge_bytes, 0);
}

static void test_arena_alone(void **state)
{
    (void)state;
    pl_error err = {0};
    static pl_memory_owners owners;
    for (int huge = 0; huge < 2; huge++) {
        pl_arena arena;
        pl_arena_options options = {"test", huge};
        assert_int_equal(pl_arena_map(&arena, 3 * PL_HUGE_PAGE_BYTES - 100, &options, &owners, &err), PL_OK);
        assert_int_equal(arena.resident_bytes, 3 * PL_HUGE_PAGE_BYTES);
        assert_int_equal((uintptr_t)arena.base % (huge ? PL_HUGE_PAGE_BYTES : PL_PAGE_BYTES), 0);
        assert_int_equal(pl_arena_untouched_bytes(&arena), arena.resident_bytes);
        arena.base[0] = 1;
        arena.base[2 * PL_PAGE_BYTES - 1] = 1;
        assert_int_equal(pl_arena_untouched_bytes(&arena), arena.resident_bytes - 2 * PL_PAGE_BYTES);
        assert_int_equal(owners.count, 1);
        pl_arena_unmap(&arena);
        assert_int_equal(owners.count, 0);
        assert_null(arena.base);
        pl_arena_unmap(&arena);
    }
    pl_arena none;
    pl_arena_options options = {"none", true};
    assert_int_equal(pl_arena_map(&none, 0, &options, &owners, &err), PL_OK);
    assert_int_equal(pl_arena_untouched_bytes(&none), 0);
    pl_arena_unmap(&none);
    pl_arena_unmap(NULL);
}

static void test_mode_text(void **state)
{
    (void)state;
    pl_lockdown_mode mode;
    pl_error err = {0};
    assert_int_equal(pl_lockdown_parse(NULL, &mode, &err), PL_OK);
    assert_int_equal(mode, PL_LOCKDOWN_OFF);
    assert_int_equal(pl_lockdown_parse("1", &mode, &err), PL_OK);
    assert_int_equal(mode, PL_LOCKDOWN_KILL);
    assert_int_equal(pl_lockdown_parse("count", &mode, &err), PL_OK);
    assert_int_equal(mode, PL_LOCKDOWN_COUNT);
    assert_int_equal(pl_lockdown_parse("yes", &mode, &err), PL_E_USAGE);
    assert_int_equal(pl_threads_create(0, 0, NULL, NULL, &err), PL_E_USAGE);
    assert_int_equal(pl_threads_create(1025, 0, NULL, NULL, &err), PL_E_USAGE);
}

/* In a process of its own: the limit, and the team, are this one's until it ends. */
static int ask_twice(void)
{
    enum { THREADS = 64, LARGER = 160 };
    const uint64_t stacks = pl_threads_missing_bytes(THREADS);
    struct rlimit limit;
    uint64_t held = 0;
    pl_error err = {0};
    if (pl_threads_missing_bytes(1) != 0 || stacks == 0 || stacks % (THREADS - 1) != 0) return 1;
    if (!pl_procfile_find("/proc/self/status", "VmData", &held) || getrlimit(RLIMIT_DATA, &limit)) return 2;
    limit.rlim_cur = held + stacks + stacks / 2;
    if (setrlimit(RLIMIT_DATA, &limit)) return 3;
    for (int i = 0; i < 3; i++)
        if (pl_threads_probe(THREADS, 0, &err) != PL_OK) return fprintf(stderr, "%s\n", err.text), 4;
    if (pl_threads_missing_bytes(THREADS) != 0) return 5;
    if (pl_threads_missing_bytes(LARGER) != stacks / (THREADS - 1) * (LARGER - THREADS)) return 6;
    if (pl_threads_probe(LARGER, 0, &err) != PL_E_NOMEM) return 7;
    if (!strstr(err.text, "thread 65 of 160 ") || !strstr(err.text, "`run.threads` 64")) {
        return fprintf(stderr, "%s\n", err.text), 8;
    }
    return pl_threads_probe(THREADS, 0, &err) == PL_OK ? 0 : 9;
}

/* Who plans asks once a plan, and makes several: there is room for one team, and the team is there. */
static void test_team_is_asked_for_once(void **state)
{
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(ask_twice());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv, char **envp)
{
    runner_main(argc, argv, envp);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_kills),
        cmocka_unit_test(test_filter_counts_and_names),
        cmocka_unit_test(test_heap_calls_are_found_and_named),
        cmocka_unit_test(test_environment_of_openmp),
        cmocka_unit_test(test_limits_give_sentences),
        cmocka_unit_test(test_other_address_layouts),
        cmocka_unit_test(test_what_is_not_planned_shows),
        cmocka_unit_test(test_huge_pages_always),
        cmocka_unit_test(test_huge_pages_of_the_system),
        cmocka_unit_test(test_arena_alone),
        cmocka_unit_test(test_mode_text),
        cmocka_unit_test(test_team_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

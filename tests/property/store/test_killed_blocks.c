/* A child makes a block file and fills it; it is killed, at random instants and before random system calls, and cut
 * off at each of its writes. What is marked then is sound, the next one goes on where it stood (no sequence begins anew
 * that had a block done), and the file that comes out has the bytes of one that nothing happened to. In each form.
 * Usage: program [seed] */
#include "unit/store/small_blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/philox.h"
#include "support/program.h"
#include "support/seed.h"

enum { LIVES = 25, CALLS_KILLED = 12, CALLS_MET = 60, WRITES_AFTER = 70 };

static uint64_t seed, drawn;
static small_blocks b;
static pl_block_found found;
static pl_error err;

static uint32_t draw(uint32_t below)
{
    pl_philox p = pl_philox_init(seed, 1);
    uint32_t out[4];
    pl_philox_block(&p, 0, drawn++, 0, out);
    return out[0] % below;
}

/* What a killed run left: nothing, or a file of which all that is marked is sound. */
static void check_left(const char *path)
{
    pl_block_reader *r;
    pl_block_checked c;
    if (!exists(path)) return;
    if (pl_block_reader_open(path, false, &r, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(pl_block_reader_bad_marks(r), 0);
    if (pl_block_reader_check(r, NULL, NULL, &c, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(c.damaged + c.constants_damaged, 0);
    pl_block_reader_close(r);
}

/* Exit code 0: all is done; 1: it failed; 2: a sequence began anew. */
static void live(const char *path, pl_block_form form)
{
    pl_status status = small_run_all(&b, path, form, &small_layout, &found, &err);
    if (status != PL_OK) fprintf(stderr, "%s\n", err.text);
    _exit(status != PL_OK ? 1 : b.lost ? 2 : 0);
}

static uint32_t microseconds_of_a_run(const char *path, pl_block_form form)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (small_run_all(&b, path, form, &small_layout, &found, &err) != PL_OK) fail_msg("%s", err.text);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint32_t)((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
}

/* true when the run got through. */
static bool run_for(const char *path, pl_block_form form, uint32_t life_us)
{
    int how;
    pid_t child = fork();
    if (child == 0) live(path, form);
    usleep(life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how)) assert_int_equal(WEXITSTATUS(how), 0);
    return WIFEXITED(how);
}

/* Stopped before its n-th system call, or through. */
static pid_t start_until(const char *path, pl_block_form form, uint32_t n, uint32_t *calls, int *how)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(3);
        raise(SIGSTOP);
        live(path, form);
    }
    assert_int_equal(waitpid(child, how, 0), child);
    uint32_t stop = 0;
    for (; stop < 2 * (uint64_t)n - 1 && WIFSTOPPED(*how); stop++) { /* stops before and after each call */
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        assert_int_equal(waitpid(child, how, 0), child);
    }
    if (calls) *calls = stop / 2;
    return child;
}

/* Killed before its n-th system call. 1: it was; 0: it got through; -1: processes may not be traced here. */
static int run_until(const char *path, pl_block_form form, uint32_t n, uint32_t *calls)
{
    int how;
    pid_t child = start_until(path, form, n, calls, &how);
    if (WIFEXITED(how)) {
        if (WEXITSTATUS(how) == 3) return -1;
        assert_int_equal(WEXITSTATUS(how), 0);
        return 0;
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    return 1;
}

/* Goes on without kills, and compares. */
static void complete(const char *path, const char *sound, pl_block_form form)
{
    if (small_run_all(&b, path, form, &small_layout, &found, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(b.lost, 0);
    assert_int_equal(found.lost, 0);
    check_complete(path);
    assert_same_results(sound, path, form);
}

/* How many are killed depends on the machine; what comes out does not. */
static void at_instants(const char *path, const char *sound, pl_block_form form, uint32_t life_us)
{
    uint32_t lives = 0, kills = 0, files = 0;
    while (lives < LIVES) {
        remove_tree(path);
        small_finished_max = 1 + draw(9);
        for (bool through = false; !through && lives < LIVES; check_left(path), lives++) {
            through = run_for(path, form, draw(life_us));
            kills += !through;
        }
        complete(path, sound, form);
        files++;
    }
    printf("%s: %u kills at random instants, %u files\n", pl_block_form_name(form), kills, files);
}

static void at_calls(const char *path, const char *sound, pl_block_form form)
{
    uint32_t calls;
    remove_tree(path);
    int killed = run_until(path, form, UINT32_MAX / 2, &calls);
    if (killed == -1) return;
    assert_int_equal(killed, 0);
    for (int i = 0; i < CALLS_KILLED; i++) {
        remove_tree(path);
        small_finished_max = 1 + draw(9);
        for (int times = 1 + (int)draw(3); times > 0; times--) { /* a run that was killed is killed again */
            (void)run_until(path, form, 1 + draw(calls), NULL);
            check_left(path);
        }
        complete(path, sound, form);
    }
    printf("%s: a run of %u calls, killed before %d of them\n", pl_block_form_name(form), calls, CALLS_KILLED);
}

/* Between two system calls of one that makes the file and fills it, another does the same. Both may not; what the one
 * named and filled the other, which had it open under its first name, must not empty. */
static void meet_another(const char *path, pl_block_form form)
{
    uint32_t calls, met = 0;
    int how;
    for (uint32_t n = 1; n <= CALLS_MET; n++) {
        remove_tree(path);
        pid_t child = start_until(path, form, n, &calls, &how);
        if (WIFEXITED(how)) break;
        pl_status status = small_run_all(&b, path, form, &small_layout, &found, &err);
        if (status != PL_OK && status != PL_E_STORAGE) fail_msg("%s", err.text);
        assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && (status == PL_OK || WEXITSTATUS(how) == 0));
        check_complete(path);
        met++;
    }
    remove_tree(path);
    printf("%s: met another before %u calls\n", pl_block_form_name(form), met);
}

/* Cut off at its n-th write, from which on all fail: a kill that can be tried at each of them. Whether it was. */
static bool cut_at(const char *path, pl_block_form form, uint64_t n)
{
    b.lost = 0;
    pl_io_fail_at(PL_IO_WRITE, n, EIO, 1);
    const pl_status status = small_run_all(&b, path, form, &small_layout, &found, &err);
    pl_io_fail_at(PL_IO_WRITE, 0, 0, 0);
    if (status != PL_OK && status != PL_E_STORAGE) fail_msg("%s", err.text);
    assert_int_equal(b.lost, 0);
    return status != PL_OK;
}

/* Each write once, and then one of those with which it goes on: what a sequence goes on from is there as long as it is
 * needed, also where its slot has become another's. Not in the HDF5 form: libhdf5 does not stand being begun and ended
 * thousands of times in a process, and from there on all forms are alike. */
static void at_writes(const char *path, const char *sound, pl_block_form form)
{
    uint32_t cuts = 0;
    for (small_finished_max = 1; small_finished_max <= 9; small_finished_max++)
        for (uint64_t n = 1, is_cut = true; is_cut; n++, cuts++) {
            const uint32_t then = 1 + draw(WRITES_AFTER);
            remove_tree(path);
            is_cut = cut_at(path, form, n);
            (void)cut_at(path, form, then);
            check_left(path);
            complete(path, sound, form);
        }
    printf("%s: cut off at %u writes\n", pl_block_form_name(form), cuts);
    assert_true(cuts > 100); /* else writes were not those that are counted */
}

static void kill_form(pl_block_form form)
{
    char path[256], sound[256];
    snprintf(path, sizeof path, "%s", in_folder("killed-%s", pl_block_form_name(form)));
    snprintf(sound, sizeof sound, "%s", in_folder("sound-%s", pl_block_form_name(form)));
    uint32_t life_us = microseconds_of_a_run(sound, form);
    at_instants(path, sound, form, life_us + life_us / 2 + 500);
    if (form != PL_BLOCK_HDF5) at_writes(path, sound, form);
    at_calls(path, sound, form);
    meet_another(path, form);
}

static void test_native(void **state)
{
    (void)state;
    kill_form(PL_BLOCK_NATIVE);
}

static void test_npy(void **state)
{
    (void)state;
    kill_form(PL_BLOCK_NPY);
}

static void test_hdf5(void **state)
{
    (void)state;
    if (pl_block_file_make(in_folder("probe"), PL_BLOCK_HDF5, &small_layout, &found, &err) == PL_E_UNSUPPORTED) {
        printf("not in the HDF5 form: %s\n", err.text);
        skip();
    }
    kill_form(PL_BLOCK_HDF5);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_native), cmocka_unit_test(test_npy),
                                       cmocka_unit_test(test_hdf5)};
    seed = test_seed(argc, argv);
    use_memory_for_folder();
    printf("repeat with: %s %" PRIu64 " (the instants themselves depend on the machine)\n", argv[0], seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("killed blocks", tests, make_test_folder, remove_test_folder);
}

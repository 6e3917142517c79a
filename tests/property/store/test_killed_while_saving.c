/* A child saves one checkpoint after another, telling each step it has finished; it is killed at a random instant. What
 * is found then is whole, and never older than the last step told; the next child goes on from there. Usage: program
 * [seed] */
#include "unit/store/scratch_folder.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/philox.h"
#include "store/folder.h"
#include "unit/store/small_run.h"
#include "support/program.h"
#include "support/seed.h"

enum { KILLS = 60, LONGEST_LIFE_US = 120000 };

static uint64_t seed;
static small_run run, back;
static pl_error err;

/* Saves until it is killed. */
static void live(const pl_record *resumed, int tell)
{
    int lock;
    small_run_init(&run, test_folder, 2);
    if (pl_folder_lock(test_folder, &lock, &err) != PL_OK || small_run_create(&run, resumed, &err) != PL_OK) _exit(1);
    run.record.has_best = resumed && resumed->has_best;
    run.record.best_step = resumed ? resumed->best_step : 0;
    for (uint64_t step = resumed ? resumed->step + 1 : 1;; step++) {
        if (step % 3 == 0) run.record.has_best = true, run.record.best_step = step;
        if (small_run_save(&run, step, &err) != PL_OK) _exit(1);
        if (write(tell, &step, sizeof step) != sizeof step) _exit(1);
    }
}

/* Runs a child for so long from this record; the last step that it told, or `told`. */
static uint64_t run_and_kill(const pl_record *resumed, uint32_t life_us, uint64_t told)
{
    int pipe_ends[2], how;
    uint64_t next;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) live(resumed, pipe_ends[1]);
    close(pipe_ends[1]);
    usleep(life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFSIGNALED(how)) fail_msg("the child could not save or start");
    while (read(pipe_ends[0], &next, sizeof next) == sizeof next) told = next;
    close(pipe_ends[0]);
    return told;
}

/* What is found is whole, and of the last step that is known to be done or of the one after. Where there was no
 * `latest` yet, a kill may leave a folder just before the pointer to it; that is said. */
static void check_found(const pl_saved *s, int was_pointed, uint64_t done)
{
    uint64_t step = s->record->step;
    if (s->warning[0] && was_pointed) fail_msg("%s", s->warning);
    small_run_init(&back, test_folder, 1);
    if (pl_saved_load(s, &back.spec.model, &back.spec.state, &err) != PL_OK) fail_msg("%s", err.text);
    assert_false(small_run_differs(&back, step));
    if (step < done) fail_msg("step %" PRIu64 " was done, %" PRIu64 " is found", done, step);
}

/* Lives are long enough for a start and some saves on this disk. */
static uint32_t longest_life_us(void)
{
    struct timespec begin, end;
    small_run_init(&run, in_folder("timing"), 2);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(small_run_create(&run, NULL, &err), PL_OK);
    for (uint64_t step = 1; step < 5; step++) assert_int_equal(small_run_save(&run, step, &err), PL_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000 + 5000;
    return us < LONGEST_LIFE_US ? (uint32_t)us : LONGEST_LIFE_US;
}

static void test_killed_while_saving(void **state)
{
    uint32_t longest = longest_life_us();
    pl_philox p = pl_philox_init(seed, 1);
    pl_saved s = {0};
    uint64_t done = 0;
    (void)state;
    for (int i = 0; i < KILLS; i++) {
        uint32_t random[4];
        pl_philox_block(&p, 0, (uint64_t)i, 0, random);
        int was_pointed = exists(in_folder("checkpoints/latest"));
        uint64_t told = run_and_kill(s.record, random[0] % longest, 0);
        if (told > done) done = told;
        pl_saved_deinit(&s);
        if (pl_saved_find(test_folder, PL_SAVED_WHOLE, &s, &err) != PL_OK) fail_msg("kill %d: %s", i, err.text);
        if (s.record)
            check_found(&s, was_pointed, done);
        else
            assert_int_equal(done, 0);
        if (s.record) done = s.record->step;
    }
    printf("%d kills, %" PRIu64 " steps\n", KILLS, done);
    pl_saved_deinit(&s);
}

/* Lets a child start from this record, then save the next step, killed before its n-th system call. 1: killed, 0: it
 * got through, -1: this machine does not let processes be traced. */
static int save_and_kill_at(const pl_record *resumed, int n)
{
    int how;
    pid_t child = fork();
    if (child == 0) {
        small_run_init(&run, test_folder, 1);
        run.record.has_best = true;
        run.record.best_step = resumed ? resumed->step + resumed->step % 2 : 1;
        if (small_run_create(&run, resumed, &err) != PL_OK || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(2);
        raise(SIGSTOP);
        _exit(small_run_save(&run, resumed ? resumed->step + 1 : 1, &err) == PL_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    for (int stop = 0; stop < 2 * n - 1 && WIFSTOPPED(how); stop++) { /* stops before and after each call */
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        assert_int_equal(waitpid(child, &how, 0), child);
    }
    if (WIFEXITED(how)) {
        assert_int_not_equal(WEXITSTATUS(how), 1);
        return WEXITSTATUS(how) == 2 ? -1 : 0;
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    return 1;
}

/* The next start leaves the one that it goes on from, the best, and nothing that is older. */
static void check_kept(const pl_record *found)
{
    small_run_init(&run, test_folder, 1);
    if (small_run_create(&run, found, &err) != PL_OK) fail_msg("%s", err.text);
    for (uint64_t step = 1; step <= found->step; step++) {
        int kept = step == found->step || (found->has_best && step == found->best_step);
        if (exists(in_folder("checkpoints/step-%08" PRIu64, step)) != kept)
            fail_msg("step %" PRIu64 " is %s after a start from %" PRIu64, step, kept ? "gone" : "there", found->step);
    }
}

static void test_killed_at_every_call(void **state)
{
    pl_saved s = {0};
    uint64_t done = 0;
    int killed = 1, n = 1;
    (void)state;
    remove_tree(in_folder("checkpoints"));
    for (; killed == 1; n++) {
        int was_pointed = exists(in_folder("checkpoints/latest"));
        killed = save_and_kill_at(s.record, n);
        if (killed == -1) skip();
        pl_saved_deinit(&s);
        if (pl_saved_find(test_folder, PL_SAVED_WHOLE, &s, &err) != PL_OK)
            fail_msg("killed before call %d: %s", n, err.text);
        if (s.record)
            check_found(&s, was_pointed, done + (killed == 0)), check_kept(s.record);
        else
            assert_int_equal(done, 0);
        if (s.record) done = s.record->step;
    }
    printf("a save of %d calls, killed before each; %" PRIu64 " steps\n", n - 2, done);
    assert_true(n > 40);
    pl_saved_deinit(&s);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_while_saving),
                                       cmocka_unit_test(test_killed_at_every_call)};
    seed = test_seed(argc, argv);
    printf("repeat with: %s %" PRIu64 " (the instants themselves depend on the machine)\n", argv[0], seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("killed while saving", tests, make_test_folder, remove_test_folder);
}

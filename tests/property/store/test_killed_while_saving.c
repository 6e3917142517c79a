/* A child saves one checkpoint after another, telling each step it has finished; it is killed at a random instant. What is
 * found then is whole, and never older than the last step told; the next child goes on from there.
 * Usage: program [seed] */
#include "unit/store/scratch_folder.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/philox.h"
#include "store/folder.h"
#include "unit/store/small_run.h"

enum { KILLS = 60, LONGEST_LIFE_US = 30000 };

static uint64_t seed;
static small_run run, back;
static pl_error err;

/* Saves until it is killed. */
static void live(uint64_t step, uint64_t best_step, int tell)
{
    int lock;
    small_run_init(&run, test_folder, 2);
    if (pl_folder_lock(test_folder, &lock, &err) != PL_OK || small_run_create(&run, best_step, &err) != PL_OK) _exit(1);
    run.record.has_best = best_step != PL_STEP_NONE;
    run.record.best_step = best_step;
    for (;; step++) {
        if (step % 3 == 0) run.record.has_best = true, run.record.best_step = step;
        if (small_run_save(&run, step, &err) != PL_OK) _exit(1);
        if (write(tell, &step, sizeof step) != sizeof step) _exit(1);
    }
}

/* Runs a child for so long from this step; the last step that it told, or `told`. */
static uint64_t run_and_kill(uint64_t step, uint64_t best_step, uint32_t life_us, uint64_t told)
{
    int pipe_ends[2], how;
    uint64_t next;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) live(step, best_step, pipe_ends[1]);
    close(pipe_ends[1]);
    usleep(life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFSIGNALED(how)) fail_msg("the child could not save or start");
    while (read(pipe_ends[0], &next, sizeof next) == sizeof next) told = next;
    close(pipe_ends[0]);
    return told;
}

static void test_killed_while_saving(void **state)
{
    pl_philox p = pl_philox_init(seed, 1);
    uint64_t found = 0, told = 0, best = PL_STEP_NONE;
    (void)state;
    for (int i = 0; i < KILLS; i++) {
        uint32_t random[4];
        pl_saved s;
        pl_philox_block(&p, 0, (uint64_t)i, 0, random);
        told = run_and_kill(found + 1, best, random[0] % LONGEST_LIFE_US, told);
        if (pl_saved_find(test_folder, &s, &err) != PL_OK) fail_msg("kill %d: %s", i, err.text);
        /* Only the first save can leave no `latest`; it is then said. */
        if (s.warning[0] && found != 0) fail_msg("kill %d: %s", i, s.warning);
        if (!s.record) {
            assert_int_equal(told, 0);
            continue;
        }
        small_run_init(&back, test_folder, 1);
        if (pl_saved_load(&s, &back.spec.model, &back.spec.state, &err) != PL_OK) fail_msg("kill %d: %s", i, err.text);
        assert_false(small_run_differs(&back, s.record->step));
        assert_true(s.record->step >= told);
        assert_true(s.record->step <= told + 1 || s.record->step == found);
        found = s.record->step;
        best = s.record->has_best ? s.record->best_step : PL_STEP_NONE;
        pl_saved_deinit(&s);
    }
    assert_true(found > 0);
    printf("%d kills, %" PRIu64 " steps\n", KILLS, found);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_while_saving)};
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    printf("repeat with: %s %" PRIu64 " (the instants themselves depend on the machine)\n", argv[0], seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("killed while saving", tests, make_test_folder, remove_test_folder);
}

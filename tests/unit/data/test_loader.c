/* The loader against reading directly, from any position; switching streams; errors of the thread; no system call that
 * asks for memory once it runs. */
#include "unit/data/token_file.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "data/loader.h"
#include "support/program.h"

enum { COUNT = 50000, VOCAB = 788, SEQUENCE = 24, BATCH = 10, MICRO = 4 };

static pl_error err;
static pl_tokens tokens;
static pl_sampler train, validation;

static int make_tokens(void **state)
{
    if (scratch_make(state)) return -1;
    write_known_tokens(scratch_path("tokens"), COUNT, VOCAB);
    pl_sampler_options o = {
        .tokens = COUNT, .sequence = SEQUENCE, .batch = BATCH, .validation_fraction = 0.1, .seed = 5};
    return pl_tokens_open(&tokens, scratch_path("tokens"), &err) || pl_sampler_init(&train, &o, PL_PART_TRAIN, &err) ||
           pl_sampler_init(&validation, &o, PL_PART_VALIDATION, &err);
}

static int drop_tokens(void **state)
{
    pl_tokens_close(&tokens);
    return scratch_remove(state);
}

static void *loader_memory(uint64_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static pl_loader *make_loader(uint32_t slots, void **memory)
{
    pl_loader_options o = {
        .tokens = &tokens, .micro_batch = MICRO, .sequence = SEQUENCE, .slots = slots, .stack_bytes = 65536};
    pl_loader *l;
    *memory = loader_memory(pl_loader_bytes(&o));
    assert_int_equal(pl_loader_init(*memory, &o, &l, &err), PL_OK);
    if (pl_loader_start(l, &err) != PL_OK) fail_msg("%s", err.text);
    return l;
}

static void check_row(const pl_batch *b, uint32_t row, pl_window w)
{
    for (uint32_t i = 0; i < SEQUENCE; i++) {
        int32_t token = b->tokens[row * SEQUENCE + i], target = b->targets[row * SEQUENCE + i];
        if (token != (i < w.counted ? (int32_t)known_token(w.start + i, VOCAB) : 0) ||
            target != (i < w.counted ? (int32_t)known_token(w.start + i + 1, VOCAB) : -1))
            fail_msg("step %llu, row %u, place %u: %d -> %d", (unsigned long long)b->step, row, i, token, target);
    }
}

static void check_stream(pl_loader *l, const pl_sampler *s, uint64_t first, uint64_t end)
{
    pl_batch b;
    assert_int_equal(pl_loader_begin(l, s, first, end, &err), PL_OK);
    for (uint64_t step = first; step < end; step++) {
        uint64_t counted = 0;
        for (uint32_t micro = 0; micro < 3; micro++) {
            assert_int_equal(pl_loader_next(l, &b, &err), PL_OK);
            assert_int_equal(b.step, step);
            assert_int_equal(b.micro, micro);
            assert_int_equal(b.micro_count, 3);
            assert_int_equal(b.first_sample, step * BATCH + micro * MICRO);
            for (uint32_t row = 0; row < MICRO; row++)
                check_row(&b, row, pl_sampler_window(s, step, micro * MICRO + row));
            counted += b.counted;
            pl_loader_release(l);
        }
        assert_int_equal(counted, pl_sampler_step_tokens(s, step));
    }
    assert_int_equal(pl_loader_next(l, &b, &err), PL_OK);
    assert_null(b.tokens);
}

static void test_streams(void **state)
{
    (void)state;
    for (uint32_t slots = 1; slots <= 4; slots++) {
        void *memory;
        pl_loader *l = make_loader(slots, &memory);
        check_stream(l, &train, 0, 2 * train.steps_per_epoch + 3);
        check_stream(l, &train, 117, 140); /* resumed in the middle of an epoch */
        check_stream(l, &validation, 0, validation.steps_per_epoch);
        check_stream(l, &train, 9, 9);
        pl_loader_deinit(l);
        free(memory);
    }
}

/* A new stream begins while the old one still fills and has slots ready. */
static void test_switching(void **state)
{
    (void)state;
    void *memory;
    pl_batch b;
    pl_loader *l = make_loader(2, &memory);
    for (uint64_t i = 0; i < 300; i++) {
        assert_int_equal(pl_loader_begin(l, i % 2 ? &train : &validation, i, i + 50, &err), PL_OK);
        for (uint64_t k = 0; k < i % 3; k++) {
            assert_int_equal(pl_loader_next(l, &b, &err), PL_OK);
            assert_int_equal(b.step, i);
            assert_int_equal(b.micro, k);
            check_row(&b, 0, pl_sampler_window(i % 2 ? &train : &validation, i, (uint32_t)k * MICRO));
            pl_loader_release(l);
        }
    }
    pl_loader_deinit(l); /* with work under way */
    free(memory);
}

static void test_errors_of_the_thread(void **state)
{
    (void)state;
    void *memory;
    pl_batch b;
    pl_loader *l = make_loader(2, &memory);
    pl_io_fail_at(PL_IO_READ, 40, EIO, 1);
    assert_int_equal(pl_loader_begin(l, &train, 0, 1000, &err), PL_OK);
    pl_status status;
    int good = 0;
    while ((status = pl_loader_next(l, &b, &err)) == PL_OK) pl_loader_release(l), good++;
    pl_io_fail_at(PL_IO_READ, 0, 0, 0);
    assert_true(good > 0 && good < 40);
    assert_int_equal(status, PL_E_STORAGE);
    assert_says(&err, "reading at byte");
    assert_int_equal(pl_loader_next(l, &b, &err), PL_E_STORAGE);
    check_stream(l, &train, 3, 20); /* a new stream starts clean */
    pl_loader_deinit(l);
    free(memory);
}

static void test_refusals(void **state)
{
    (void)state;
    pl_loader *l;
    pl_loader_options o = {
        .tokens = &tokens, .micro_batch = MICRO, .sequence = SEQUENCE, .slots = 0, .stack_bytes = 65536};
    uint8_t memory[64];
    assert_int_equal(pl_loader_init(memory, &o, &l, &err), PL_E_CONFIG);
    o.slots = 4, o.micro_batch = UINT32_MAX, o.sequence = UINT32_MAX;
    assert_int_equal(pl_loader_bytes(&o), 0);
    assert_int_equal(pl_loader_init(memory, &o, &l, &err), PL_E_CONFIG);
    o = (pl_loader_options){
        .tokens = &tokens, .micro_batch = MICRO, .sequence = SEQUENCE + 1, .slots = 2, .stack_bytes = 100};
    void *block = loader_memory(pl_loader_bytes(&o));
    assert_int_equal(pl_loader_init(block, &o, &l, &err), PL_OK);
    assert_int_equal(pl_loader_start(l, &err), PL_E_CONFIG);
    assert_says(&err, "stack of 100 bytes");
    assert_int_equal(pl_loader_begin(l, &train, 0, 1, &err), PL_E_INTERNAL);
    pl_loader_deinit(l);
    pl_loader_deinit(NULL);
    free(block);
}

static pl_status begin_or_fail(void *context, pl_error *e)
{
    int *calls = context;
    return ++*calls == 1 ? PL_OK : pl_fail(e, PL_E_INTERNAL, "the second thread is not wanted");
}

/* The thread's first act is the caller's; its failure is that of start. */
static void test_thread_begins(void **state)
{
    (void)state;
    int calls = 0;
    pl_loader *l;
    pl_loader_options o = {.tokens = &tokens,
                           .micro_batch = MICRO,
                           .sequence = SEQUENCE,
                           .slots = 2,
                           .stack_bytes = 65536,
                           .thread_begins = begin_or_fail,
                           .context = &calls};
    void *memory = loader_memory(pl_loader_bytes(&o));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_loader_init(memory, &o, &l, &err), PL_OK);
        assert_int_equal(pl_loader_start(l, &err), i ? PL_E_INTERNAL : PL_OK);
        assert_int_equal(calls, i + 1);
        if (i == 0) check_stream(l, &train, 0, 5);
        pl_loader_deinit(l);
    }
    assert_says(&err, "not wanted");
    free(memory);
}

/* Kills the process at mmap, brk, munmap, clone, clone3; all threads. 0 when installed. */
static int forbid_memory(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* In the child: 0 = went through, 77 = no filter to be had here. */
static int run_without_memory(void)
{
    void *memory;
    pl_batch b;
    int32_t sum = 0;
    pl_loader *l = make_loader(2, &memory);
    if (forbid_memory()) return 77;
    pl_alloc_seal(1);
    for (int round = 0; round < 2; round++) {
        if (pl_loader_begin(l, round ? &validation : &train, 0, 20, &err) != PL_OK) return 1;
        for (;;) {
            if (pl_loader_next(l, &b, &err) != PL_OK) return 1;
            if (!b.tokens) break;
            sum += b.tokens[0];
            pl_loader_release(l);
        }
    }
    return sum ? 0 : 1;
}

static void test_no_memory_once_it_runs(void **state)
{
    (void)state;
    int status;
    if (scratch_instrumented()) skip();
    pid_t child = fork();
    if (child == 0) _exit(run_without_memory());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d: it asked for memory", WTERMSIG(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_switching),
        cmocka_unit_test(test_errors_of_the_thread),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_thread_begins),
        cmocka_unit_test(test_no_memory_once_it_runs),
    };
    return cmocka_run_group_tests(tests, make_tokens, drop_tokens);
}

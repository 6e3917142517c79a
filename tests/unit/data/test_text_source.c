/* Text as a source, through a ring, against reading directly: from any step, of either part, by one thread and by
 * several; errors of reading; no system call that asks for memory once it runs. */
#include "unit/data/token_file.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "data/text/text_source.h"
#include "stream/ring.h"
#include "support/program.h"

enum { COUNT = 50000, VOCAB = 788, SEQUENCE = 24, BATCH = 10, MICRO = 4, MICROS = 3 };

static pl_error err;
static pl_tokens tokens;
static pl_text_source text;

static int make_tokens(void **state)
{
    if (scratch_make(state)) return -1;
    write_known_tokens(scratch_path("tokens"), COUNT, VOCAB);
    pl_sampler_options o = {.sequence = SEQUENCE, .batch = BATCH, .validation_fraction = 0.1, .seed = 5};
    return pl_tokens_open(&tokens, scratch_path("tokens"), &err) || pl_text_source_init(&text, &tokens, &o, &err);
}

static int drop_tokens(void **state)
{
    pl_tokens_close(&tokens);
    return scratch_remove(state);
}

static void *ring_memory(const pl_ring_options *o)
{
    uint64_t bytes;
    assert_int_equal(pl_ring_bytes(o, &bytes, &err), PL_OK);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static pl_ring *make_ring(uint32_t slots, uint32_t threads, void **memory)
{
    pl_ring_options o = {
        .source = &text.source, .micro_batch = MICRO, .slots = slots, .threads = threads, .stack_bytes = 65536};
    pl_ring *r;
    *memory = ring_memory(&o);
    assert_int_equal(pl_ring_init(*memory, &o, &r, &err), PL_OK);
    if (pl_ring_start(r, &err) != PL_OK) fail_msg("%s", err.text);
    return r;
}

static void check_row(const pl_slot *s, uint32_t row, pl_window w)
{
    const int32_t *ids = s->port[0].at, *next = s->port[1].at;
    for (uint32_t i = 0; i < SEQUENCE; i++) {
        int32_t token = ids[row * SEQUENCE + i], target = next[row * SEQUENCE + i];
        if (token != (i < w.counted ? (int32_t)known_token(w.start + i, VOCAB) : 0) ||
            target != (i < w.counted ? (int32_t)known_token(w.start + i + 1, VOCAB) : -1))
            fail_msg("step %llu, row %u, place %u: %d -> %d", (unsigned long long)s->step, row, i, token, target);
    }
}

static void check_stream(pl_ring *r, pl_part part, uint64_t first, uint64_t end)
{
    pl_slot s;
    pl_ring_begin(r, part, first, end);
    for (uint64_t step = first; step < end; step++) {
        uint64_t counted = 0;
        for (uint32_t micro = 0; micro < MICROS; micro++) {
            assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
            assert_int_equal(s.ports, 2);
            assert_string_equal(s.port[1].name, "targets");
            assert_int_equal(s.port[1].bytes, MICRO * SEQUENCE * sizeof(int32_t));
            for (uint32_t row = 0; row < MICRO; row++)
                check_row(&s, row, pl_sampler_window(&text.sampler[part], step, micro * MICRO + row));
            counted += s.counted;
            pl_ring_release(r);
        }
        assert_int_equal(counted, text.source.kind->count(&text.source, part, step));
    }
    assert_int_equal(pl_ring_next(r, &s, &err), PL_OK);
    assert_int_equal(s.ports, 0);
}

static void test_streams(void **state)
{
    (void)state;
    const uint64_t *epoch = text.source.steps_per_epoch;
    for (uint32_t slots = 1; slots <= 4; slots++) {
        void *memory;
        pl_ring *r = make_ring(slots, (slots + 1) / 2, &memory);
        check_stream(r, PL_PART_TRAIN, 0, 2 * epoch[PL_PART_TRAIN] + 3);
        check_stream(r, PL_PART_TRAIN, 117, 140); /* resumed in the middle of an epoch */
        check_stream(r, PL_PART_VALIDATION, 0, epoch[PL_PART_VALIDATION]);
        check_stream(r, PL_PART_TRAIN, 9, 9);
        pl_ring_deinit(r);
        free(memory);
    }
}

static void test_without_validation(void **state)
{
    (void)state;
    pl_text_source all;
    pl_sampler_options o = {.sequence = SEQUENCE, .batch = BATCH, .seed = 5};
    assert_int_equal(pl_text_source_init(&all, &tokens, &o, &err), PL_OK);
    assert_int_equal(all.source.steps_per_epoch[PL_PART_VALIDATION], 0);
    assert_true(all.source.steps_per_epoch[PL_PART_TRAIN] > text.source.steps_per_epoch[PL_PART_TRAIN]);
    o.sequence = COUNT;
    assert_int_equal(pl_text_source_init(&all, &tokens, &o, &err), PL_E_DATA);
    assert_says(&err, "use a longer text");
}

/* Nothing but a validation part, from the first token on, however short it is. */
static void test_whole(void **state)
{
    (void)state;
    pl_text_source all;
    uint64_t begin, end;
    pl_sampler_options o = {.sequence = SEQUENCE, .batch = BATCH, .whole = true};
    assert_int_equal(pl_text_source_init(&all, &tokens, &o, &err), PL_OK);
    assert_int_equal(all.source.steps_per_epoch[PL_PART_TRAIN], 0);
    pl_sampler_targets(&all.sampler[PL_PART_VALIDATION], 0, &begin, &end);
    assert_true(begin == 1 && end == COUNT);
    assert_int_equal(pl_sampler_epoch_tokens(&all.sampler[PL_PART_VALIDATION]), COUNT - 1);
    o.sequence = 2 * COUNT;
    assert_int_equal(pl_text_source_init(&all, &tokens, &o, &err), PL_OK);
    assert_int_equal(all.source.steps_per_epoch[PL_PART_VALIDATION], 1);
}

static void test_errors_of_reading(void **state)
{
    (void)state;
    void *memory;
    pl_slot s;
    pl_ring *r = make_ring(2, 1, &memory);
    pl_io_fail_at(PL_IO_READ, 40, EIO, 1);
    pl_ring_begin(r, PL_PART_TRAIN, 0, 1000);
    pl_status status;
    int good = 0;
    while ((status = pl_ring_next(r, &s, &err)) == PL_OK) pl_ring_release(r), good++;
    pl_io_fail_at(PL_IO_READ, 0, 0, 0);
    assert_true(good > 0 && good < 40);
    assert_int_equal(status, PL_E_STORAGE);
    assert_says(&err, "reading at byte");
    assert_int_equal(pl_ring_next(r, &s, &err), PL_E_STORAGE);
    check_stream(r, PL_PART_TRAIN, 3, 20); /* a new stream starts clean */
    pl_ring_deinit(r);
    free(memory);
}

static void test_too_large(void **state)
{
    (void)state;
    uint64_t bytes;
    pl_text_source long_one = text;
    long_one.sampler[PL_PART_TRAIN].sequence = UINT32_MAX;
    pl_ring_options o = {.source = &long_one.source, .micro_batch = UINT32_MAX, .slots = 4, .threads = 1};
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_E_CONFIG);
    assert_says(&err, "absurdly large");
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
    pl_slot s;
    int32_t sum = 0;
    pl_ring *r = make_ring(3, 2, &memory);
    if (forbid_memory()) return 77;
    pl_alloc_seal(1);
    for (int round = 0; round < 2; round++) {
        pl_ring_begin(r, round ? PL_PART_VALIDATION : PL_PART_TRAIN, 0, 20);
        for (;;) {
            if (pl_ring_next(r, &s, &err) != PL_OK) return 1;
            if (!s.ports) break;
            sum += *(int32_t *)s.port[0].at;
            pl_ring_release(r);
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
        cmocka_unit_test(test_streams),   cmocka_unit_test(test_without_validation),
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_errors_of_reading),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_no_memory_once_it_runs),
    };
    return cmocka_run_group_tests(tests, make_tokens, drop_tokens);
}

#include "support/runner.h"

#include <errno.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/arena.h"
#include "run/threads.h"

enum { ANSWER_FD = 77 };

extern char **environ;

static pl_memory_owners owners;
static pl_memory_range ranges[PL_MEMORY_RANGES_OWN + PL_THREADS_MAX]; /* for more threads than it has room for */
static runner_request request;
static runner_result result;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every thread writes its part of the arena, a different part each time. */
static void write_arena(const pl_arena *arena, int threads, int loops)
{
    for (int loop = 0; loop < loops; loop++) {
        if (threads == 1) {
            memset(arena->base, loop, arena->bytes);
            continue;
        }
#pragma omp parallel num_threads(threads)
        {
            uint64_t part = arena->bytes / (uint64_t)threads;
            uint64_t mine = (uint64_t)((omp_get_thread_num() + loop) % threads);
            memset(arena->base + mine * part, loop, part);
        }
    }
}

/* Touches one page in each 2 MiB of 16 MiB and lets the kernel make huge pages of them: what prepare keeps from
 * happening. */
static void invite_huge_pages(void)
{
    enum { BYTES = 16 << 20 };
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    for (size_t at = 0; at < BYTES; at += PL_HUGE_PAGE_BYTES) p[at] = 1;
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

static void do_misdeed(const char *what)
{
    if (strcmp(what, "pre-leak") == 0) {
        char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) p[4096] = 1;
    } else if (strcmp(what, "pre-heap") == 0) {
        uint64_t bytes = 2 * request.options.heap_bytes; /* of a block; the heap was planned for half */
        volatile char *p = malloc(bytes);
        for (uint64_t at = 0; p && at < bytes; at += PL_PAGE_BYTES) p[at] = 1;
    } else if (strcmp(what, "pre-thp") == 0) {
        invite_huge_pages();
    } else if (strncmp(what, "pre-", 4) == 0) {
        abort();
    }
}

static void do_late_misdeed(const char *what)
{
    if (strcmp(what, "mmap") == 0) {
        void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) munmap(p, 4096);
    } else if (strcmp(what, "brk") == 0) {
        void *p = sbrk(4096);
        if (p == (void *)-1) return;
    } else if (strcmp(what, "malloc") == 0) {
        void *volatile p = malloc(100); /* a test's misdeed, to be found by the preloaded counter */
        free(p);
    } else if (strcmp(what, "team") == 0) {
        int got = 0;
#pragma omp parallel num_threads(2)
#pragma omp atomic
        got++;
        write_arena(&(pl_arena){.base = (unsigned char *)&result, .bytes = 0}, request.threads, 1);
    } else if (strcmp(what, "region1") == 0) {
#pragma omp parallel num_threads(1)
        __asm__ volatile("" ::: "memory");
    }
}

static sem_t helper_ready;
static pl_status helper_status;

static void *help(void *unused)
{
    helper_status = pl_process_adopt_thread(&request.options, &owners, &result.error);
    sem_post(&helper_ready);
    for (;;) pause();
    return unused;
}

/* One after the other; they live until the process ends. */
static pl_status create_helpers(int count)
{
    sem_init(&helper_ready, 0, 0);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, help, NULL)) return PL_E_NOMEM;
        pthread_detach(thread);
        sem_wait(&helper_ready);
        PL_TRY(helper_status);
    }
    return PL_OK;
}

static pl_status work(pl_error *err)
{
    static pl_arena arena;
    PL_TRY(pl_process_start(err));
    PL_TRY(pl_process_prepare(&request.options, &owners, err));
    const size_t room = pl_memory_owners_room((size_t)(request.threads - 1 + request.helper_threads));
    if (room) pl_memory_owners_move(&owners, ranges, room);
    PL_TRY(pl_threads_create(request.threads, request.helper_threads, &request.options, &owners, err));
    PL_TRY(create_helpers(request.helper_threads));
    pl_arena_options options = {"ram", request.huge_pages != 0};
    PL_TRY(pl_arena_map(&arena, request.arena_bytes, &options, &owners, err));
    result.arena_huge_bytes = arena.huge_bytes;
    write_arena(&(pl_arena){.base = arena.base, .bytes = arena.bytes / 2}, request.threads, 2);
    result.arena_untouched_bytes = pl_arena_untouched_bytes(&arena);
    PL_TRY(pl_threads_check(request.threads, &owners, err));
    do_misdeed(request.misdeed);
    PL_TRY(pl_lockdown_commit(request.lockdown, err));
    PL_TRY(pl_memory_measure(&owners, &result.committed, err));
    pl_process_faults before = pl_process_count_faults();
    double begin = now_seconds();
    write_arena(&arena, request.threads, request.loops);
    result.loop_seconds = now_seconds() - begin;
    result.faults_in_loop = pl_process_count_faults().minor - before.minor;
    do_late_misdeed(request.misdeed);
    if (request.seconds) sleep((unsigned)request.seconds);
    PL_TRY(pl_memory_measure(&owners, &result.end, err));
    pl_lockdown_read(&result.lockdown);
    result.heap = pl_process_count_heap();
    pl_arena_unmap(&arena);
    return PL_OK;
}

static void transfer(int fd, void *data, size_t bytes, int writing)
{
    for (size_t done = 0; done < bytes;) {
        char *at = (char *)data + done;
        ssize_t n = writing ? write(fd, at, bytes - done) : read(fd, at, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        done += (size_t)n;
    }
}

void runner_main(int argc, char **argv, char **envp)
{
    (void)envp;
    if (argc < 2 || strcmp(argv[1], "--runner") != 0) return;
    transfer(ANSWER_FD + 1, &request, sizeof request, 0);
    pl_status status = work(&result.error);
    if (status != PL_OK) fprintf(stderr, "runner: %s\n", result.error.text);
    transfer(ANSWER_FD, &result, sizeof result, 1);
    exit(status == PL_OK ? 0 : 1);
}

runner_request runner_request_default(int threads)
{
    return (runner_request){
        .threads = threads, .arena_bytes = 8 << 20, .loops = 20, .options = pl_process_options_default()};
}

static void become_runner(const runner_request *wanted, char *const *extra, int from_parent, int to_parent)
{
    if (dup2(to_parent, ANSWER_FD) < 0 || dup2(from_parent, ANSWER_FD + 1) < 0) _exit(99);
    struct rlimit address_space = {wanted->address_limit_bytes, wanted->address_limit_bytes};
    struct rlimit stack = {RLIM_INFINITY, RLIM_INFINITY};
    if (wanted->address_limit_bytes && setrlimit(RLIMIT_AS, &address_space)) _exit(97);
    if (wanted->endless_stack && setrlimit(RLIMIT_STACK, &stack)) _exit(96);
    if (wanted->fixed_addresses && personality(ADDR_NO_RANDOMIZE) < 0) _exit(95);
    for (; extra && *extra; extra++) putenv(*extra);
    char *argv[] = {"runner", "--runner", NULL};
    pl_process_exec exec = {argv, environ, wanted->threads, (int)sysconf(_SC_NPROCESSORS_ONLN), &wanted->options};
    pl_error err = {0};
    (void)!pl_process_exec_self(&exec, &err);
    fprintf(stderr, "%s\n", err.text);
    _exit(98);
}

static int finish(pid_t child, int answer, runner_result *out)
{
    int state = 0;
    transfer(answer, out, sizeof *out, 0);
    close(answer);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return state;
}

int runner_run_watched(const runner_request *wanted, char *const *extra, runner_result *out,
                       void (*watch)(pid_t, void *), void *context)
{
    int down[2], up[2];
    memset(out, 0, sizeof *out);
    if (pipe(down) || pipe(up)) return -1;
    pid_t child = fork();
    if (child == 0) become_runner(wanted, extra, down[0], up[1]);
    close(down[0]);
    close(up[1]);
    transfer(down[1], (void *)(uintptr_t)wanted, sizeof *wanted, 1);
    close(down[1]);
    struct pollfd answer = {.fd = up[0], .events = POLLIN};
    while (watch && poll(&answer, 1, 20) == 0) watch(child, context);
    return finish(child, up[0], out);
}

int runner_run(const runner_request *wanted, char *const *extra, runner_result *out)
{
    return runner_run_watched(wanted, extra, out, NULL, NULL);
}

/* A small stand-in for the command: it plans in one process, executes itself as runner in another, and the runner hands
 * its measurement back through a pipe. Used by the tests of base/process and run/. */
#ifndef PL_TESTS_SUPPORT_RUNNER_H
#define PL_TESTS_SUPPORT_RUNNER_H

#include <sys/types.h>

#include "base/process.h"
#include "run/lockdown.h"

/* Figures are exact, and the filter is armed, with gcc's libgomp. A sanitizer's shadow and heap are not ours to plan,
 * and it maps memory at exit; so does LLVM's libomp (a clang build), which also begins with a megabyte of heap and a
 * shared mapping. */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define RUNNER_EXACT 0
#else
#define RUNNER_EXACT 1
#endif

typedef struct runner_request {
    int threads;        /* of the team */
    int helper_threads; /* that only wait: stand-ins for loader and writer */
    uint64_t arena_bytes;
    int huge_pages;
    pl_lockdown_mode lockdown;
    int loops;        /* parallel regions that write the arena after "committed" */
    int seconds;      /* sleep before the second measurement */
    char misdeed[16]; /* see do_misdeed in runner.c; "" = none; those that begin with "pre-" come before "committed" */
    uint64_t address_limit_bytes; /* RLIMIT_AS of the runner; 0 = as it is */
    int endless_stack;            /* RLIMIT_STACK unlimited: the kernel's other address layout */
    int fixed_addresses;          /* without address randomisation: heap right behind the program's bss */
    pl_process_options options;
} runner_request;

typedef struct runner_result {
    pl_error error; /* status PL_OK: the rest is valid */
    pl_memory_measured committed, end;
    uint64_t faults_in_loop, arena_huge_bytes, arena_untouched_bytes;
    double loop_seconds;
    pl_lockdown_report lockdown;
    pl_process_heap heap;
} runner_result;

/* To be called first in main(): when this process is a runner it works, answers and exits. */
void runner_main(int argc, char **argv, char **envp);
/* Runs the request in a fresh process (extra: further environment entries, NULL-terminated, or NULL). The exit status
 * as waitpid gives it; result is zeroed when the runner died before it answered. */
int runner_run(const runner_request *, char *const *extra, runner_result *);
/* The same, calling watch(pid, context) again and again while the runner lives. */
int runner_run_watched(const runner_request *, char *const *extra, runner_result *, void (*watch)(pid_t, void *),
                       void *);
runner_request runner_request_default(int threads);

#endif

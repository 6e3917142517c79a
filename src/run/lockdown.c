/* Source: kernel documentation userspace-api/seccomp_filter.rst. The filter looks at the number of the system call
 * only. */
#include "run/lockdown.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/process.h"

static const int forbidden[] = {
    SYS_mmap,  SYS_munmap, SYS_mremap, SYS_brk,   SYS_madvise, SYS_mprotect,
    SYS_clone, SYS_clone3, SYS_fork,   SYS_vfork, SYS_shmat,   SYS_process_madvise,
};
enum { FORBIDDEN_COUNT = sizeof forbidden / sizeof forbidden[0] };

/* A filter is for the whole process and for good, and so is what belongs to it. */
static atomic_bool active;
static atomic_uint_fast64_t offence_count;
static pl_lockdown_report recorded;
static uintptr_t heap_end; /* what a refused brk gives back: the end as it is */

pl_status pl_lockdown_parse(const char *text, pl_lockdown_mode *mode, pl_error *err)
{
    *mode = PL_LOCKDOWN_OFF;
    if (!text || !*text || strcmp(text, "0") == 0) return PL_OK;
    *mode = PL_LOCKDOWN_KILL;
    if (strcmp(text, "1") == 0 || strcmp(text, "kill") == 0) return PL_OK;
    *mode = PL_LOCKDOWN_COUNT;
    if (strcmp(text, "count") == 0) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "'%.40s' is not a mode of the memory filter: 0, 1, kill or count", text);
}

/* The refused call returns as if the kernel had no memory. */
static void on_refused(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    uint_fast64_t index = atomic_fetch_add(&offence_count, 1);
    if (index < PL_LOCKDOWN_OFFENCES_MAX) {
        recorded.offence[index].system_call = info->si_syscall;
        recorded.offence[index].address = (uintptr_t)info->si_call_addr;
    }
    ucontext_t *state = context;
    state->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_brk ? (greg_t)heap_end : -ENOMEM;
}

static pl_status install_handler(pl_error *err)
{
    struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, NULL) == 0) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED, "the handler of refused system calls cannot be installed: %s",
                   strerror(errno));
}

/* if (arch != x86-64) kill; for each forbidden number: if (nr == number) refuse; allow */
static unsigned short build_filter(struct sock_filter *code, unsigned refuse)
{
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < FORBIDDEN_COUNT; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refuse);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return n;
}

static pl_status install_filter(unsigned refuse, pl_error *err)
{
    struct sock_filter code[5 + 2 * FORBIDDEN_COUNT];
    struct sock_fprog program = {.len = build_filter(code, refuse), .filter = code};
    long result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0) result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (result == 0) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED, "the memory filter cannot be installed on all threads: %s",
                   result < 0 ? strerror(errno) : "a thread has a filter of its own");
}

typedef void (*test_hook)(void);

/* A preloaded test library's counter begins there. Looked up before the filter, because a failing look-up writes an
 * error text to the heap. */
static test_hook find_test_hook(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "pl_test_committed");
    test_hook hook;
    memcpy(&hook, &symbol, sizeof hook); /* ISO C has no cast from object to function */
    (void)dlerror();
    return hook;
}

pl_status pl_lockdown_commit(pl_lockdown_mode mode, pl_error *err)
{
    test_hook hook = find_test_hook();
    if (mode != PL_LOCKDOWN_OFF) {
        heap_end = (uintptr_t)sbrk(0);
        pl_process_forbid_left_out();
        if (mode == PL_LOCKDOWN_COUNT) PL_TRY(install_handler(err));
        PL_TRY(install_filter(mode == PL_LOCKDOWN_KILL ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_TRAP, err));
        atomic_store(&active, true);
    }
    if (hook) hook();
    return PL_OK;
}

bool pl_lockdown_active(void) { return atomic_load(&active); }

void pl_lockdown_read(pl_lockdown_report *report)
{
    *report = recorded;
    report->offences = atomic_load(&offence_count);
}

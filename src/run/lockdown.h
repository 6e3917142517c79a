/* The moment "committed", enforced by the kernel: a seccomp filter over all threads refuses every call that could
 * change the memory of the process (mmap, brk, munmap, mremap, madvise, mprotect, shmat, clone, clone3, fork). It
 * cannot be taken off again, so it is a mode for tests (PLIMSOLL_TEST_SECCOMP in the command), and arenas stay mapped
 * until the process ends.
 *
 * What the process leaves out of its program (base/parts.h) cannot be called any more in this mode.
 *
 * A library preloaded by a test may define `void pl_test_committed(void)`; it is called then, in every mode. */
#ifndef PL_RUN_LOCKDOWN_H
#define PL_RUN_LOCKDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum pl_lockdown_mode {
    PL_LOCKDOWN_OFF,   /* only the preload hook */
    PL_LOCKDOWN_KILL,  /* the process dies with SIGSYS at the first offence */
    PL_LOCKDOWN_COUNT, /* the call fails with ENOMEM and is counted with its caller's address */
} pl_lockdown_mode;

enum { PL_LOCKDOWN_OFFENCES_MAX = 16 };

typedef struct pl_lockdown_report {
    uint64_t offences; /* all; the first few in detail: */
    struct {
        int system_call;
        uintptr_t address; /* of the instruction after the call */
    } offence[PL_LOCKDOWN_OFFENCES_MAX];
} pl_lockdown_report;

/* "" or "0" off, "1" or "kill", "count"; PL_E_USAGE otherwise. text may be NULL: off. */
pl_status pl_lockdown_parse(const char *text, pl_lockdown_mode *, pl_error *);
pl_status pl_lockdown_commit(pl_lockdown_mode, pl_error *);
bool pl_lockdown_active(void);
void pl_lockdown_read(pl_lockdown_report *);

#endif

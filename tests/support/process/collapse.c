#include "support/process/collapse.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/process.h"
#include "base/procfile.h"

enum { COLLAPSE_ADVICE = 25 /* MADV_COLLAPSE */ };

/* Region by region, so that one that refuses does not keep the others from it. */
static long collapse_mapping(int pidfd, const pl_mapping *m, int *error)
{
    long collapsed = 0;
    uintptr_t mask = PL_HUGE_PAGE_BYTES - 1;
    for (uintptr_t at = (m->begin + mask) & ~mask; at + PL_HUGE_PAGE_BYTES <= m->end; at += PL_HUGE_PAGE_BYTES) {
        struct iovec region = {(void *)at, PL_HUGE_PAGE_BYTES};
        if (syscall(SYS_process_madvise, pidfd, &region, 1ul, COLLAPSE_ADVICE, 0u) > 0)
            collapsed++;
        else if (errno == EPERM || errno == ENOSYS || errno == ESRCH)
            *error = errno;
    }
    return collapsed;
}

long collapse_process(pid_t pid)
{
    char path[64];
    pl_procfile maps;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);
    if (pidfd < 0) return -1;
    if (pl_procfile_open(&maps, path)) {
        close(pidfd);
        return -1;
    }
    long collapsed = 0;
    int error = 0;
    pl_mapping m;
    for (char *line; (line = pl_procfile_line(&maps));) {
        if (pl_mapping_parse(line, &m) && m.protection[0] == 'r') collapsed += collapse_mapping(pidfd, &m, &error);
    }
    pl_procfile_close(&maps);
    close(pidfd);
    errno = error;
    return error ? -1 : collapsed;
}

/* "Transparent huge pages = always", emulated for one process without touching the system: what khugepaged would do in
 * a minute is done at once from outside, by process_madvise(MADV_COLLAPSE) on every mapping. Like khugepaged it obeys
 * PR_SET_THP_DISABLE and MADV_NOHUGEPAGE. Needs Linux 6.1 and the right to ptrace (root). */
#ifndef PL_TESTS_SUPPORT_COLLAPSE_H
#define PL_TESTS_SUPPORT_COLLAPSE_H

#include <sys/types.h>

/* The number of 2 MiB regions that are huge pages afterwards, in all mappings of the process; -1 with errno when the
 * kernel or our rights do not allow it (or the process is gone). */
long collapse_process(pid_t);

#endif

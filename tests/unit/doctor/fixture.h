/* Process 77 as the kernel could tell it: every byte below is known, so the right rows are too. */
#ifndef PL_TESTS_UNIT_DOCTOR_FIXTURE_H
#define PL_TESTS_UNIT_DOCTOR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "doctor/doctor.h"
#include "support/fake_root.h"

/* A mapping's lines; all sizes in kB, resident memory all private and dirty. */
#define MAP(line, size, rss, anonymous, swap)                                                                          \
    line "\nSize:           " #size " kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\nRss:  " #rss       \
         " kB\nPss:   " #rss " kB\nShared_Clean:          0 kB\nShared_Dirty:          0 kB\nPrivate_Clean:         "  \
         "0 kB\nPrivate_Dirty:         " #rss " kB\nReferenced:            " #rss                                      \
         " kB\nAnonymous:             " #anonymous                                                                     \
         " kB\nLazyFree:              0 kB\nAnonHugePages:         0 kB\nShared_Hugetlb:        0 kB\n"                \
         "Private_Hugetlb:       0 kB\nSwap:                  " #swap " kB\nSwapPss:               " #swap             \
         " kB\nLocked:                0 kB\nTHPeligible:           0\nVmFlags: rd wr mr mw me ac \n"

static const char fixture_smaps[] =
    MAP("00400000-00402000 r-xp 00000000 fe:00 11                     /opt/bin/server", 8, 8, 0, 0)
        MAP("00402000-00403000 rw-p 00002000 fe:00 11                     /opt/bin/server", 4, 4, 4, 0)
            MAP("00403000-00405000 rw-p 00000000 00:00 0 ", 8, 8, 8, 0)                              /* its bss */
    MAP("01000000-01100000 rw-p 00000000 00:00 0                      [heap]", 1024, 1000, 1000, 24) /* heap */
    MAP("7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ", 1024, 400, 400, 0)                       /* an arena */
    MAP("7f0000100000-7f0004000000 ---p 00000000 00:00 0 ", 64512, 0, 0, 0)
        MAP("7f0005000000-7f0005001000 ---p 00000000 00:00 0 ", 4, 0, 0, 0)  /* guard */
    MAP("7f0005001000-7f0005801000 rw-p 00000000 00:00 0 ", 8192, 12, 12, 0) /* stack of thread 78 */
    MAP("7f0006000000-7f0006001000 ---p 00000000 00:00 0 ", 4, 0, 0, 0)      /* guard */
    MAP("7f0006001000-7f0006801000 rw-p 00000000 00:00 0 ", 8192, 8, 8, 0)   /* nobody's: a guess */
    MAP("7f0007000000-7f0007100000 rw-p 00000000 00:00 0 ", 1024, 1024, 1024,
        0) MAP("7f0007200000-7f0007201000 rw-p 00000000 00:00 0                      [anon: my pool]", 4, 4, 4, 0)
        MAP("7f0008000000-7f0008010000 r--p 00000000 fe:00 12                     /srv/odd\\012name (deleted)", 64, 40,
            0, 0) MAP("7f0008100000-7f0008110000 rw-s 00000000 fe:00 13                     /srv/shared.bin", 64, 64, 0,
                      0) MAP("7f0009000000-7f0009010000 rw-s 00000000 00:01 14                     /dev/zero (deleted)",
                             64, 16, 0, 0)
            MAP("7f0009100000-7f0009110000 rw-s 00000000 00:01 15                     /memfd:ring (deleted)", 64, 4, 0,
                0) MAP("7f0009200000-7f0009210000 r--s 00000000 00:20 16                     /run/on-tmpfs", 64, 20, 0,
                       0) MAP("7f000a000000-7f000a010000 r-xp 00000000 fe:00 17                     /lib/libx.so.1", 64,
                              60, 0, 0)
                MAP("7f000a010000-7f000a011000 rw-p 00010000 fe:00 17                     /lib/libx.so.1", 4, 4, 4, 0)
                    MAP("7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                      [stack]", 132, 20, 20, 0)
                        MAP("7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                      [vdso]", 8, 4, 0, 0);

/* The sum of the resident kilobytes above. */
enum { FIXTURE_RSS_KB = 20 + 1000 + 400 + 12 + 8 + 1024 + 4 + 40 + 64 + 16 + 4 + 20 + 64 + 20 + 4 };

static const char fixture_rollup[] = "00400000-7ffc00102000 ---p 00000000 00:00 0                          [rollup]\n"
                                     "Rss:                2700 kB\nPss:                2700 kB\nSwap: 24 kB\n";
_Static_assert(FIXTURE_RSS_KB == 2700, "the rollup is the sum");

static const char fixture_status[] =
    "Name:\tserver\nUmask:\t0022\nState:\tS "
    "(sleeping)\nTgid:\t77\nNgid:\t0\nPid:\t77\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n"
    "NSpid:\t77\t5\nKthread:\t0\nVmPeak:\t  90000 kB\nVmSize:\t  83000 kB\nVmLck:\t       0 kB\nVmHWM:\t    3000 kB\n"
    "VmRSS:\t    2700 kB\nRssAnon:\t    2484 kB\nRssFile:\t     176 kB\nRssShmem:\t      40 kB\nVmPTE:\t     100 kB\n"
    "VmSwap:\t      24 kB\nHugetlbPages:\t       0 kB\nThreads:\t3\n";

static inline void fixture_put(void)
{
    fake_root_put("/proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\nSwapTotal: 1000 kB\n"
                                   "CommitLimit:     9000000 kB\nCommitted_AS:    4000000 kB\n");
    fake_root_put("/proc/cpuinfo", "model name\t: Test CPU\n");
    fake_root_put("/proc/sys/vm/overcommit_memory", "1\n");
    fake_root_put("/proc/77/status", fixture_status);
    fake_root_put("/proc/77/smaps", fixture_smaps);
    fake_root_put("/proc/77/smaps_rollup", fixture_rollup);
    fake_root_put("/proc/77/stat", "77 (ser)\nver) S 1 77 77 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 4242 84992000 675 0 0\n");
    fake_root_put_bytes("/proc/77/cmdline",
                        "/opt/bin/server\0--port\0"
                        "80",
                        25);
    fake_root_put("/proc/77/limits",
                  "Limit                     Soft Limit           Hard Limit           Units     \n"
                  "Max data size             unlimited            unlimited            bytes     \n"
                  "Max stack size            8388608              unlimited            bytes     \n"
                  "Max locked memory         65536                65536                bytes     \n"
                  "Max address space         1000000000           unlimited            bytes     \n");
    fake_root_put("/proc/77/mountinfo",
                  "36 1 254:0 / / rw - ext4 /dev/root rw\n37 36 0:32 / /run rw - tmpfs tmpfs rw\n");
    fake_root_put("/proc/77/task/77/syscall", "230 0x1 0x1 0x7ffc 0x0 0x0 0x0 0x7ffc00020100 0x7f000a000545\n");
    fake_root_put("/proc/77/task/77/comm", "server\n");
    fake_root_put("/proc/77/task/78/syscall", "-1 0x7f0005800f00 0x7f000a000545\n");
    fake_root_put("/proc/77/task/78/comm", "worker\n");
    fake_root_put("/proc/77/task/79/syscall", "running\n");
    fake_root_put("/proc/77/task/79/comm", "busy\n");
    char link[128];
    snprintf(link, sizeof link, "%s/proc/77/exe", fake_root);
    (void)unlink(link);
    assert_int_equal(symlink("/opt/bin/server", link), 0);
}

#endif

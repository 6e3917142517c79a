/* Machine facts from made-up /proc and /sys trees: every limit is known, so the right answer is too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/machine.h"
#include "base/procfile.h"
#include "support/fake_root.h"
#include "support/program.h"

static int made_up_cores; /* 0: those that there are */

/* In place of the C library's: a kernel that was built for more cores than a cpu_set_t has refuses to fill one. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    if (!made_up_cores) return syscall(SYS_sched_getaffinity, pid, bytes, set) < 0 ? -1 : 0;
    if (bytes * 8 < (size_t)made_up_cores) return errno = EINVAL, -1;
    for (int core = 0; core < made_up_cores; core++) CPU_SET_S((size_t)core, bytes, set);
    return 0;
}

static int begin(void **state)
{
    if (fake_root_begin(state)) return -1;
    fake_root_put("/proc/meminfo",
                  "MemTotal:       16000000 kB\nMemFree:  1000 kB\nMemAvailable:    8000000 kB\nCached: 5 kB\n");
    fake_root_put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU @ 1 GHz\nflags\t: a b c\n");
    fake_root_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    return 0;
}

static pl_machine read_machine(void)
{
    pl_machine m;
    pl_error err = {0};
    if (pl_machine_read(fake_root, &m, &err) != PL_OK) fail_msg("%s", err.text);
    return m;
}

static void test_no_cgroup(void **state)
{
    (void)state;
    pl_machine m = read_machine();
    assert_string_equal(m.cpu_name, "Test CPU @ 1 GHz");
    assert_string_equal(m.transparent_huge_pages, "madvise");
    assert_int_equal(m.ram_bytes, 16000000ull * 1024);
    assert_int_equal(m.available_bytes, 8000000ull * 1024);
    assert_true(m.cgroup_limit_bytes == PL_MACHINE_UNLIMITED && m.cgroup_room_bytes == PL_MACHINE_UNLIMITED);
    assert_true(m.cores >= 1 && m.cores <= m.cores_online && isinf(m.cores_quota));
    assert_int_equal(m.cache_bytes, 0);
    assert_false(m.is_virtual);
}

static void test_virtual(void **state)
{
    (void)state;
    fake_root_put("/proc/cpuinfo",
                  "processor\t: 0\nflags\t\t: fpu rdrand hypervisor lahf_lm\nmodel name\t: A\n\nprocessor\t: 1\n"
                  "model name\t: B\n");
    pl_machine m = read_machine();
    assert_true(m.is_virtual);
    assert_string_equal(m.cpu_name, "A");
}

static void test_largest_cache(void **state)
{
    (void)state;
    fake_root_put("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n");
    fake_root_put("/sys/devices/system/cpu/cpu0/cache/index2/size", "1024K\n");
    fake_root_put("/sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n");
    assert_int_equal(read_machine().cache_bytes, 32 << 20);
    fake_root_put("/sys/devices/system/cpu/cpu0/cache/index3/size", "96M\n");
    assert_int_equal(read_machine().cache_bytes, 96 << 20);
    fake_root_put("/sys/devices/system/cpu/cpu0/cache/index3/size", "many\n");
    assert_int_equal(read_machine().cache_bytes, 1 << 20);
}

/* As kernels write them: three groups deep, the middle one throttled below its limit. A memory.high that a lower
 * memory.max hides does not bind, one that says "max" never. */
static void test_v2_throttle_binds(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/user.slice/run.scope/job\n");
    fake_root_put("/proc/self/mountinfo",
                  "24 1 0:22 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
                  "rw,nsdelegate,memory_recursiveprot\n");
    fake_root_put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.high", "max\n");
    fake_root_put("/sys/fs/cgroup/user.slice/memory.current", "900000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.max", "700000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.high", "400000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.current", "120000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.stat",
                  "anon 90000000\nfile 30000000\nkernel_stack 65536\ninactive_anon 90000000\nactive_anon 0\n"
                  "inactive_file 15000000\nactive_file 5000000\nunevictable 0\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/job/memory.max", "500000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/job/memory.high", "600000000\n");
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/job/memory.current", "1000000\n");
    pl_machine m = read_machine();
    assert_int_equal(m.cgroup_error, 0);
    assert_int_equal(m.cgroup_limit_bytes, 400000000);
    assert_int_equal(m.cgroup_room_bytes, 400000000 - 100000000);
    assert_non_null(strstr(m.cgroup_path, "/user.slice/run.scope"));
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.high", "max\n");
    assert_int_equal(read_machine().cgroup_limit_bytes, 500000000);
    fake_root_put("/sys/fs/cgroup/user.slice/run.scope/memory.high", "many\n");
    m = read_machine();
    assert_true(m.cgroup_error);
    assert_non_null(strstr(m.cgroup_path, "run.scope/memory.high"));
}

static void test_v2_ancestor_binds(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/a/b\n");
    fake_root_put("/proc/self/mountinfo",
                  "30 1 0:5 / /proc rw - proc proc rw\n35 30 0:30 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    fake_root_put("/cg/a/b/memory.max", "900000000\n");
    fake_root_put("/cg/a/b/memory.current", "100000000\n");
    fake_root_put("/cg/a/b/memory.stat", "anon 1\ninactive_file 30000000\nactive_file 20000000\n");
    fake_root_put("/cg/a/memory.max", "500000000\n");
    fake_root_put("/cg/a/memory.current", "400000000\n");
    fake_root_put("/cg/a/memory.stat", "inactive_file 10000000\nactive_file 0\nfile 99\n");
    fake_root_put("/cg/a/cpu.max", "150000 100000\n");
    fake_root_put("/cg/a/b/cpu.max", "max 100000\n");
    pl_machine m = read_machine();
    assert_int_equal(m.cgroup_limit_bytes, 500000000);
    assert_int_equal(m.cgroup_room_bytes, 500000000 - 390000000); /* page cache counts as free */
    assert_non_null(strstr(m.cgroup_path, "/cg/a"));
    assert_true(fabs(m.cores_quota - 1.5) < 1e-12);
    assert_true(m.cores <= 2);
    pl_machine_budget b;
    pl_error err = {0};
    assert_int_equal(pl_machine_auto_budget(&m, &b, &err), PL_OK);
    assert_string_equal(b.bound_by, "cgroup limit");
    assert_int_equal(b.bytes, 110000000 - 110000000 / 16);
    fake_root_put("/cg/a/memory.current", "485956480\n"); /* 24,043,520 bytes left: a small model trains in them */
    m = read_machine();
    assert_int_equal(pl_machine_auto_budget(&m, &b, &err), PL_OK);
    assert_int_equal(b.bytes, 24043520 - 24043520 / 16);
    fake_root_put("/cg/a/memory.current", "510000000\n");
    m = read_machine();
    assert_int_equal(m.cgroup_room_bytes, 0);
    assert_int_equal(pl_machine_auto_budget(&m, &b, &err), PL_E_BUDGET);
    assert_non_null(strstr(err.text, "cgroup limit"));
}

static void test_v1_container(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/\n");
    fake_root_put("/proc/self/mountinfo", "40 1 0:31 /docker/x /cg1/memory rw - cgroup cgroup rw,memory\n"
                                          "41 1 0:32 /docker/x /cg1/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    fake_root_put("/cg1/memory/memory.limit_in_bytes", "300000000\n");
    fake_root_put("/cg1/memory/memory.usage_in_bytes", "50000000\n");
    fake_root_put("/cg1/memory/memory.stat",
                  "inactive_file 5\ntotal_inactive_file 10000000\ntotal_active_file 10000000\n");
    fake_root_put("/cg1/cpu/cpu.cfs_quota_us", "50000\n");
    fake_root_put("/cg1/cpu/cpu.cfs_period_us", "100000\n");
    pl_machine m = read_machine();
    assert_int_equal(m.cgroup_limit_bytes, 300000000);
    assert_int_equal(m.cgroup_room_bytes, 270000000);
    assert_int_equal(m.cores, 1);
    fake_root_put("/cg1/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* version 1 for "none" */
    fake_root_put("/cg1/cpu/cpu.cfs_quota_us", "-1\n");
    m = read_machine();
    assert_true(m.cgroup_room_bytes == PL_MACHINE_UNLIMITED && isinf(m.cores_quota));
}

static void test_unreadable_is_least_favourable(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/a\n");
    fake_root_put("/proc/self/mountinfo", "35 30 0:30 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_put("/cg/a/memory.max", "not a number\n");
    pl_machine m = read_machine();
    assert_true(m.cgroup_error);
    assert_int_equal(m.cgroup_room_bytes, 0);
    pl_machine_budget b;
    pl_error err = {0};
    assert_int_equal(pl_machine_auto_budget(&m, &b, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "/cg/a/memory.max"));
    fake_root_put("/cg/a/memory.max", "1000\n"); /* a limit, but no usage */
    assert_true(read_machine().cgroup_error);
    fake_root_put("/cg/a/memory.max", "max\n");
    assert_false(read_machine().cgroup_error);
}

static void test_group_outside_of_the_mount(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/../../other\n");
    fake_root_put("/proc/self/mountinfo", "35 30 0:30 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_put("/cg/memory.max", "7000000\n");
    fake_root_put("/cg/memory.current", "1000000\n");
    assert_int_equal(read_machine().cgroup_room_bytes, 6000000);
}

/* A container that systemd started: the part's name has a backslash, which mountinfo shows as \134. */
static void test_escaped_names(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "0::/machine.slice/machine-a\\x2db.scope/inner\n");
    fake_root_put("/proc/self/mountinfo",
                  "35 30 0:30 /machine.slice/machine-a\\134x2db.scope /c\\040g rw - cgroup2 cgroup2 rw\n");
    fake_root_put("/c g/memory.max", "900000000\n");
    fake_root_put("/c g/memory.current", "100000000\n");
    fake_root_put("/c g/inner/memory.max", "500000000\n");
    fake_root_put("/c g/inner/memory.current", "100000000\n");
    pl_machine m = read_machine();
    assert_int_equal(m.cgroup_limit_bytes, 500000000);
    assert_int_equal(m.cgroup_room_bytes, 400000000);
}

static void test_damaged_files(void **state)
{
    (void)state;
    fake_root_put("/proc/self/cgroup", "garbage\n\n:\n::\n4:memory\n0::");
    fake_root_put("/proc/self/mountinfo", " - \n1 2 3 - cgroup2\n - cgroup2 x y\n\n1 2 3 4 5 6 - cgroup\n");
    fake_root_put("/sys/kernel/mm/transparent_hugepage/enabled", "nothing here\n");
    fake_root_put("/proc/cpuinfo", "model name\nmodel name");
    pl_machine m = read_machine();
    assert_true(m.cgroup_room_bytes == PL_MACHINE_UNLIMITED);
    assert_string_equal(m.transparent_huge_pages, "unknown");
    fake_root_put("/proc/meminfo", "Mem\n");
    pl_error err = {0};
    assert_int_equal(pl_machine_read(fake_root, &m, &err), PL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "MemTotal"));
}

static void test_this_machine(void **state)
{
    (void)state;
    pl_machine m;
    pl_error err = {0};
    assert_int_equal(pl_machine_read("", &m, &err), PL_OK);
    assert_true(m.ram_bytes > 0 && m.available_bytes <= m.ram_bytes);
    assert_true(m.cores >= 1 && m.cores <= sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(strlen(m.kernel) > 0 && strlen(m.cpu_name) > 0);
}

static void test_more_cores_than_a_set_has(void **state)
{
    (void)state;
    static const int cores[] = {1, 1024, 1025, 2048, 8192};
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
        made_up_cores = cores[i];
        const pl_machine m = read_machine();
        made_up_cores = 0;
        assert_int_equal(m.cores_allowed, cores[i]);
    }
}

static void test_long_lines_are_cut(void **state)
{
    (void)state;
    char *text = malloc(20000);
    memset(text, 'x', 19999);
    memcpy(text + 10000, "\nKey:\t12 kB\n", 12);
    text[19999] = 0;
    fake_root_put("/long", text);
    free(text);
    char path[128];
    snprintf(path, sizeof path, "%s/long", fake_root);
    pl_procfile f;
    assert_int_equal(pl_procfile_open(&f, path), 0);
    assert_int_equal(strlen(pl_procfile_line(&f)), 1023);
    uint64_t value;
    assert_true(pl_procfile_field(pl_procfile_line(&f), "Key", &value));
    assert_int_equal(value, 12 * 1024);
    assert_int_equal(strlen(pl_procfile_line(&f)), 1023);
    assert_null(pl_procfile_line(&f));
    pl_procfile_close(&f);
    snprintf(path, sizeof path, "%s/none", fake_root);
    assert_int_equal(pl_procfile_open(&f, path), -1);
    assert_false(pl_procfile_field("Keys: 3", "Key", &value));
    assert_false(pl_procfile_field("Key: none", "Key", &value));
    pl_mapping m;
    assert_true(pl_mapping_parse("7f00-8f00 rw-p 00000000 00:00 0 ", &m));
    assert_true(m.begin == 0x7f00 && m.end == 0x8f00 && m.inode == 0 && m.name[0] == 0);
    assert_true(pl_mapping_parse("7f00-8f00 r-xp 00001000 fe:00 247134      /usr/bin/a b", &m));
    assert_true(m.inode == 247134 && strcmp(m.name, "/usr/bin/a b") == 0 && strcmp(m.protection, "r-xp") == 0);
    assert_false(pl_mapping_parse("Rss:  12 kB", &m));
    assert_false(pl_mapping_parse("7f00-8f00 r", &m));
    assert_false(pl_mapping_parse("", &m));
}

static void the_ceiling_is_the_least_limit(void **state)
{
    (void)state;
    pl_machine m = {.ram_bytes = 8000,
                    .swap_bytes = 2000,
                    .cgroup_limit_bytes = PL_MACHINE_UNLIMITED,
                    .address_space_limit_bytes = PL_MACHINE_UNLIMITED,
                    .data_limit_bytes = PL_MACHINE_UNLIMITED};
    assert_int_equal(pl_machine_find_ceiling(&m).bytes, 10000);
    m.cgroup_limit_bytes = 5000;
    assert_string_equal(pl_machine_find_ceiling(&m).bound_by, "the cgroup limit");
    m.address_space_limit_bytes = 4000;
    assert_string_equal(pl_machine_find_ceiling(&m).bound_by, "RLIMIT_AS");
    m.data_limit_bytes = 3000;
    assert_int_equal(pl_machine_find_ceiling(&m).bytes, 3000);
}

static pl_machine_need need_of(uint64_t charged)
{
    return (pl_machine_need){charged, charged - 10, charged + 100, charged - 20, "own.at_once"};
}

static pl_status limits(const pl_machine *m, uint64_t charged, const char *said)
{
    pl_error err = {0};
    pl_machine_need need = need_of(charged);
    pl_status status = pl_machine_check_limits(m, &need, &err);
    if (status != PL_OK) assert_non_null(strstr(err.text, said));
    return status;
}

/* Each limit binds its own figure, to the byte. */
static void limits_bind_what_they_count(void **state)
{
    (void)state;
    pl_machine m = {.ram_bytes = 8000,
                    .swap_bytes = 2000,
                    .cgroup_limit_bytes = PL_MACHINE_UNLIMITED,
                    .address_space_limit_bytes = PL_MACHINE_UNLIMITED,
                    .data_limit_bytes = PL_MACHINE_UNLIMITED};
    assert_int_equal(limits(&m, 10010, ""), PL_OK);
    assert_int_equal(limits(&m, 10011, "holds 10001 bytes, 1 bytes more than the memory and swap"), PL_E_BUDGET);
    m.cgroup_limit_bytes = 5000;
    assert_int_equal(limits(&m, 5000, ""), PL_OK);
    assert_int_equal(limits(&m, 5001, "charged 5001 bytes, 1 bytes more than the cgroup limit"), PL_E_BUDGET);
    m.address_space_limit_bytes = 4000;
    assert_int_equal(limits(&m, 3900, ""), PL_OK);
    assert_int_equal(limits(&m, 3901, "RLIMIT_AS"), PL_E_BUDGET);
    m.data_limit_bytes = 3000;
    assert_int_equal(limits(&m, 3020, ""), PL_OK);
    assert_int_equal(limits(&m, 3021, "RLIMIT_DATA"), PL_E_BUDGET);
    assert_int_equal(limits(&m, 3021, "make the model or own.at_once smaller"), PL_E_BUDGET);
}

/* What others are charged for counts, what this process gives back does not, nor what the kernel charges in advance. */
static void what_is_free_is_what_others_leave(void **state)
{
    (void)state;
    const uint64_t mb = 1 << 20;
    pl_error err = {0};
    pl_machine m = {.cores_online = 4,
                    .available_bytes = 900 * mb,
                    .swap_free_bytes = 50 * mb,
                    .own_bytes = 3 * mb,
                    .cgroup_room_bytes = 100 * mb,
                    .cgroup_path = "/cg/a"};
    pl_machine_need need = need_of(105 * mb); /* 100 + 3, 1 MiB beside, 4 cores × 256 KiB in advance */
    assert_int_equal(pl_machine_check_free(&m, &need, &err), PL_OK);
    need.charged_bytes++;
    assert_int_equal(pl_machine_check_free(&m, &need, &err), PL_E_BUDGET);
    assert_non_null(strstr(err.text, "others in /cg/a leave 108003328"));
    m.cgroup_room_bytes = PL_MACHINE_UNLIMITED;
    need.charged_bytes = 953 * mb;
    assert_int_equal(pl_machine_check_free(&m, &need, &err), PL_OK);
    need.charged_bytes++;
    assert_int_equal(pl_machine_check_free(&m, &need, &err), PL_E_BUDGET);
    assert_non_null(strstr(err.text, "free on this machine: 1 bytes are missing"));
    m.cgroup_error = true;
    assert_int_equal(pl_machine_check_free(&m, &need, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "cannot be read"));
}

/* Own memory is what is lost with the process: pages of files are free wherever they are. */
static void own_memory_is_read(void **state)
{
    (void)state;
    fake_root_put("/proc/self/status",
                  "VmPTE:\t      60 kB\nRssAnon:\t    1000 kB\nRssFile:\t 999 kB\nRssShmem:\t 40 kB\n");
    assert_int_equal(read_machine().own_bytes, 1100 << 10);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_cgroup, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_virtual, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_largest_cache, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_v2_throttle_binds, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_v2_ancestor_binds, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_v1_container, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_unreadable_is_least_favourable, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_group_outside_of_the_mount, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_escaped_names, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_damaged_files, begin, fake_root_end),
        cmocka_unit_test(the_ceiling_is_the_least_limit),
        cmocka_unit_test(limits_bind_what_they_count),
        cmocka_unit_test(what_is_free_is_what_others_leave),
        cmocka_unit_test_setup_teardown(own_memory_is_read, begin, fake_root_end),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test_setup_teardown(test_more_cores_than_a_set_has, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_long_lines_are_cut, begin, fake_root_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

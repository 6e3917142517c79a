#include "base/machine.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/machine_cgroup.h"
#include "base/machine_file.h"
#include "base/process.h"
#include "base/procfile.h"

enum { PATH_BYTES = 512 };
enum { TIGHT_BYTES = 64 << 20 }; /* eight times the largest read-ahead that was met */
/* What is charged and held by nobody, or by this process's kernel side: MEMCG_CHARGE_BATCH pages a core in advance,
 * pages of files on their way to a list, a kernel stack, open files. */
enum { CHARGED_AHEAD_BYTES = 64 << 12, CHARGED_BESIDE_BYTES = 1 << 20 };

/* Of the first processor: "model name : …", "flags : fpu … hypervisor …". */
static void read_processor(const char *root, pl_machine *m)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    snprintf(m->cpu_name, sizeof m->cpu_name, "unknown");
    pl_procfile f;
    if (pl_procfile_open(&f, path)) return;
    for (char *line; (line = pl_procfile_line(&f)) && *line;) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0)
            snprintf(m->cpu_name, sizeof m->cpu_name, "%s", colon + 1 + strspn(colon + 1, " \t"));
        if (colon && strncmp(line, "cpu MHz", 7) == 0) m->hertz = 1e6 * (double)strtoull(colon + 1, NULL, 10);
        if (colon && strncmp(line, "flags", 5) == 0) m->is_virtual = strstr(colon, " hypervisor") != NULL;
    }
    pl_procfile_close(&f);
}

/* /proc/cpuinfo gives a low clock for a core that is idle. */
static void read_clock(const char *root, pl_machine *m)
{
    char path[PATH_BYTES], text[64];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", root);
    if (pl_procfile_read_line(path, text, sizeof text) == 0) m->hertz = 1e3 * (double)strtoull(text, NULL, 10);
}

/* "32768K" of the largest. (sysconf asks the processor, whose answer in a virtual machine may be that of the whole
 * host: ten times what a core can use.) */
static void read_cache(const char *root, pl_machine *m)
{
    char path[PATH_BYTES], text[64];
    for (int level = 0; level < 5; level++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu0/cache/index%d/size", root, level);
        if (pl_procfile_read_line(path, text, sizeof text)) continue;
        char *unit;
        uint64_t bytes = strtoull(text, &unit, 10);
        bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
        if (bytes > m->cache_bytes) m->cache_bytes = bytes;
    }
}

static int count_allowed_cores(void)
{
    cpu_set_t set[16] = {0}; /* 16,384 cores: twice what Linux can be built for */
    if (sched_getaffinity(0, sizeof set, set) == 0) return CPU_COUNT_S(sizeof set, set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void pl_machine_find_cores(pl_machine *m)
{
    m->cores = m->cores_allowed;
    if (m->cores_quota < m->cores) m->cores = (int)ceil(m->cores_quota);
    if (m->cores < 1) m->cores = 1;
}

static void count_cores(pl_machine *m)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    m->cores_online = online > 0 ? (int)online : 1;
    m->cores_allowed = count_allowed_cores();
    pl_machine_find_cores(m);
}

/* A container's /proc may hold processes only (subset=pid); the call knows no page cache, so what is free is the least
 * there can be. */
static bool ask_memory(pl_machine *m)
{
    struct sysinfo info;
    if (sysinfo(&info)) return false;
    m->ram_bytes = (uint64_t)info.totalram * info.mem_unit;
    m->swap_bytes = (uint64_t)info.totalswap * info.mem_unit;
    m->swap_free_bytes = (uint64_t)info.freeswap * info.mem_unit;
    m->available_bytes = ((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
    return true;
}

static pl_status read_memory(const char *root, pl_machine *m, pl_error *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!pl_procfile_find(path, "MemTotal", &m->ram_bytes)) {
        int why = errno;
        if (!root[0] && why == ENOENT && ask_memory(m)) return PL_OK;
        return pl_fail(err, PL_E_UNSUPPORTED, "%s: %s%s", path, why ? strerror(why) : "it has no MemTotal",
                       pl_procfile_hint(why));
    }
    pl_procfile_find(path, "SwapTotal", &m->swap_bytes);
    pl_procfile_find(path, "SwapFree", &m->swap_free_bytes);
    if (pl_procfile_find(path, "MemAvailable", &m->available_bytes)) return PL_OK;
    if (errno) return pl_fail(err, PL_E_UNSUPPORTED, "%s: cannot be read: %s", path, strerror(errno));
    /* Kernels before 3.14: free pages and page cache. */
    uint64_t cached = 0;
    pl_procfile_find(path, "MemFree", &m->available_bytes);
    pl_procfile_find(path, "Cached", &cached);
    m->available_bytes += cached;
    return PL_OK;
}

/* Pages of files count as free wherever they are, so they are none of it. */
static void read_own(const char *root, pl_machine *m)
{
    static const char *const keys[] = {"RssAnon", "RssShmem", "VmPTE"};
    char path[PATH_BYTES];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/proc/self/status", root);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pl_procfile_find(path, keys[i], &bytes)) m->own_bytes += bytes;
}

static uint64_t process_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return PL_MACHINE_UNLIMITED;
    return limit.rlim_cur;
}

/* "always [madvise] never" gives madvise. */
static void read_huge_pages(const char *root, pl_machine *m)
{
    char path[PATH_BYTES], text[128];
    snprintf(path, sizeof path, "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
    snprintf(m->transparent_huge_pages, sizeof m->transparent_huge_pages, "unknown");
    if (pl_procfile_read_line(path, text, sizeof text)) return;
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close) return;
    *close = 0;
    snprintf(m->transparent_huge_pages, sizeof m->transparent_huge_pages, "%s", open + 1);
}

pl_status pl_machine_read(const char *root, pl_machine *m, pl_error *err)
{
    *m = (pl_machine){0};
    read_processor(root, m);
    read_clock(root, m);
    read_cache(root, m);
    m->isa = pl_isa_of_machine();
    PL_TRY(read_memory(root, m, err));
    read_own(root, m);
    pl_cgroup_read(root, m);
    count_cores(m);
    m->address_space_limit_bytes = process_limit(RLIMIT_AS);
    m->data_limit_bytes = pl_process_data_limit();
    m->stack_limit_bytes = process_limit(RLIMIT_STACK);
    struct utsname name;
    snprintf(m->kernel, sizeof m->kernel, "%s", uname(&name) ? "unknown" : name.release);
    read_huge_pages(root, m);
    return PL_OK;
}

/* What a process limit leaves beyond what the process has already. */
static uint64_t limit_room(uint64_t limit, const char *key)
{
    if (limit == PL_MACHINE_UNLIMITED) return limit;
    uint64_t held = 0;
    pl_procfile_find("/proc/self/status", key, &held);
    return limit > held ? limit - held : 0;
}

/* Everything else on the machine breathes: a sixteenth of the room, at most 2 GiB. In a small container too there is
 * room for a small model, so no least. */
static uint64_t reserve_of(uint64_t room)
{
    uint64_t reserve = room / 16, most = (uint64_t)2 << 30;
    return reserve > most ? most : reserve;
}

pl_status pl_machine_auto_budget(const pl_machine *m, pl_machine_budget *b, pl_error *err)
{
    if (m->cgroup_error) {
        return pl_fail(err, PL_E_STORAGE,
                       "the memory limit %s cannot be read (%s), so 'budget: auto' counts it as used up: give the "
                       "budget as a size",
                       m->cgroup_path, strerror(m->cgroup_error));
    }
    const struct {
        const char *name;
        uint64_t room;
    } bounds[] = {
        {"available memory", m->available_bytes},
        {"cgroup limit", m->cgroup_room_bytes},
        {"RLIMIT_AS", limit_room(m->address_space_limit_bytes, "VmSize")},
        {"RLIMIT_DATA", limit_room(m->data_limit_bytes, "VmData")},
    };
    *b = (pl_machine_budget){.room_bytes = PL_MACHINE_UNLIMITED, .bound_by = ""};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (bounds[i].room >= b->room_bytes) continue;
        b->room_bytes = bounds[i].room;
        b->bound_by = bounds[i].name;
    }
    b->reserve_bytes = reserve_of(b->room_bytes);
    if (b->room_bytes == 0) {
        return pl_fail(err, PL_E_BUDGET,
                       "nothing is free (%s), so 'budget: auto' has nothing to give: free memory or give the budget as "
                       "a size",
                       b->bound_by);
    }
    b->bytes = b->room_bytes - b->reserve_bytes;
    return PL_OK;
}

static const char *memory_name(void)
{
    return pl_machine_described() ? "the memory and swap of that machine" : "the memory and swap of this machine";
}

pl_machine_ceiling pl_machine_find_ceiling(const pl_machine *m)
{
    const pl_machine_ceiling bounds[] = {{m->ram_bytes + m->swap_bytes, memory_name()},
                                         {m->cgroup_limit_bytes, "the cgroup limit"},
                                         {m->address_space_limit_bytes, "RLIMIT_AS"},
                                         {m->data_limit_bytes, "RLIMIT_DATA"}};
    pl_machine_ceiling least = bounds[0];
    for (size_t i = 1; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].bytes < least.bytes) least = bounds[i];
    return least;
}

bool pl_machine_is_tight(const pl_machine *m) { return m->cgroup_limit_bytes < TIGHT_BYTES; }

pl_status pl_machine_check_limits(const pl_machine *m, const pl_machine_need *need, pl_error *err)
{
    const struct {
        uint64_t need, limit;
        const char *what, *name;
    } bounds[] = {
        {need->charged_bytes, m->cgroup_limit_bytes, "is charged", "the cgroup limit"},
        {need->resident_bytes, m->ram_bytes + m->swap_bytes, "holds", memory_name()},
        {need->address_bytes, m->address_space_limit_bytes, "takes addresses of", "RLIMIT_AS (ulimit -v)"},
        {need->data_bytes, m->data_limit_bytes, "has data of", "RLIMIT_DATA (ulimit -d)"},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (bounds[i].need <= bounds[i].limit) continue;
        return pl_fail(
            err, PL_E_BUDGET,
            "the plan %s %llu bytes, %llu bytes more than %s, which allows at most %llu bytes; set memory.budget to "
            "auto, or make the model or %s smaller",
            bounds[i].what, (unsigned long long)bounds[i].need, (unsigned long long)(bounds[i].need - bounds[i].limit),
            bounds[i].name, (unsigned long long)bounds[i].limit, need->at_once_key);
    }
    return PL_OK;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return a > PL_MACHINE_UNLIMITED - b ? PL_MACHINE_UNLIMITED : a + b;
}

pl_status pl_machine_check_free(const pl_machine *m, const pl_machine_need *need, pl_error *err)
{
    uint64_t ahead = (uint64_t)m->cores_online * CHARGED_AHEAD_BYTES + CHARGED_BESIDE_BYTES;
    uint64_t group = add_capped(m->cgroup_room_bytes, m->own_bytes);
    uint64_t machine = add_capped(m->available_bytes, m->swap_free_bytes + m->own_bytes);
    if (m->cgroup_error)
        return pl_fail(err, PL_E_STORAGE,
                       "the memory limit %s cannot be read (%s), so it is not known whether the %llu bytes of the plan "
                       "may be held here; make it readable",
                       m->cgroup_path, strerror(m->cgroup_error), (unsigned long long)need->charged_bytes);
    if (need->charged_bytes > add_capped(group, ahead))
        return pl_fail(err, PL_E_BUDGET,
                       "the plan is charged %llu bytes, but others in %s leave %llu bytes of its limit: %llu bytes are "
                       "missing; end "
                       "them, or give a smaller memory.budget",
                       (unsigned long long)need->charged_bytes, m->cgroup_path, (unsigned long long)group,
                       (unsigned long long)(need->charged_bytes - group));
    if (need->charged_bytes > machine)
        return pl_fail(err, PL_E_BUDGET,
                       "the plan is charged %llu bytes, but %llu bytes are free on %s: %llu bytes are missing; end "
                       "other programs, or give a smaller memory.budget",
                       (unsigned long long)need->charged_bytes, (unsigned long long)machine, pl_machine_words(),
                       (unsigned long long)(need->charged_bytes - machine));
    return PL_OK;
}

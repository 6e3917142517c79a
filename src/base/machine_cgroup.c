/* Control groups, versions 2 and 1. /proc/self/cgroup says which group this process is in, /proc/self/mountinfo where
 * that hierarchy is mounted and which part of it (a container often sees only its own branch):
 *
 *      group /a/b/c, mounted part /a  at /sys/fs/cgroup   →  /sys/fs/cgroup/b/c, /sys/fs/cgroup/b, /sys/fs/cgroup
 *
 * Each level's room is limit − usage + page cache of the group; the least of all levels binds. Source: kernel
 * documentation admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
#include "base/machine_cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/procfile.h"

enum { PATH_BYTES = 2 * PL_CGROUP_PATH_BYTES };

/* The names one version of the interface uses. */
typedef struct cgroup_files {
    const char *limit, *throttle, *usage, *inactive_cache, *active_cache;
} cgroup_files;

/* Above memory.high nothing is killed, but every request waits until pages are taken back, of which a plan has none to
 * give: a run there hardly moves. Version 1's soft limit only says who gives first when the machine is short. */
static const cgroup_files files_v2 = {"memory.max", "memory.high", "memory.current", "inactive_file", "active_file"};
static const cgroup_files files_v1 = {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_inactive_file",
                                      "total_active_file"};

/* True when the comma-separated list has the word. */
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (strncmp(p, word, length) == 0 && (p[length] == ',' || p[length] == 0)) return true;
    }
    return false;
}

/* "4:memory:/a/b" (version 1) or "0::/a/b" (version 2: controller ""). */
static bool find_group(const char *root, const char *process, const char *controller, char *group, size_t room)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/%s/cgroup", root, process);
    pl_procfile f;
    if (pl_procfile_open(&f, path)) return false;
    bool found = false;
    for (char *line; !found && (line = pl_procfile_line(&f));) {
        char *controllers = strchr(line, ':');
        char *name = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!name) continue;
        *name = 0;
        found = *controller ? lists(controllers + 1, controller) : strcmp(line, "0:") == 0;
        if (found) snprintf(group, room, "%s", name + 1);
    }
    pl_procfile_close(&f);
    errno = f.error;
    return found;
}

/* 36 25 0:32 /part /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory */
static bool parse_mount(char *line, const char *controller, char **part, char **mount)
{
    char *tail = strstr(line, " - ");
    if (!tail) return false;
    *tail = 0;
    char *save = NULL, *type = strtok_r(tail + 3, " ", &save);
    strtok_r(NULL, " ", &save);
    char *options = strtok_r(NULL, " ", &save);
    if (!type || strcmp(type, *controller ? "cgroup" : "cgroup2") != 0) return false;
    if (*controller && !(options && lists(options, controller))) return false;
    strtok_r(line, " ", &save);
    strtok_r(NULL, " ", &save);
    strtok_r(NULL, " ", &save);
    *part = strtok_r(NULL, " ", &save);
    *mount = strtok_r(NULL, " ", &save);
    if (!*part || !*mount) return false;
    pl_procfile_unescape(*part);
    pl_procfile_unescape(*mount);
    return true;
}

static void set_place(const char *root, const char *part, const char *mount, const char *group, pl_cgroup_place *place)
{
    snprintf(place->mount, sizeof place->mount, "%s%s", root, mount);
    size_t length = strcmp(part, "/") == 0 ? 0 : strlen(part);
    bool inside = strncmp(group, part, length) == 0 && (group[length] == '/' || group[length] == 0);
    /* A group outside of the mounted part (a cgroup namespace shows "/../x") is seen only as the mount itself. */
    const char *below = inside ? group + length : "";
    if (strcmp(below, "/") == 0 || strstr(below, "/..")) below = "";
    snprintf(place->below, sizeof place->below, "%s", below);
}

/* False: not in sight, or (errno) what says so cannot be read. */
bool pl_cgroup_find(const char *root, const char *process, const char *controller, pl_cgroup_place *place)
{
    char group[PATH_BYTES / 2], path[PATH_BYTES];
    if (!find_group(root, process, controller, group, sizeof group)) return false;
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    pl_procfile f;
    if (pl_procfile_open(&f, path)) return false;
    bool found = false;
    char *part, *mount;
    for (char *line; !found && (line = pl_procfile_line(&f));) {
        found = parse_mount(line, controller, &part, &mount);
        if (found) set_place(root, part, mount, group, place);
    }
    pl_procfile_close(&f);
    errno = f.error;
    return found;
}

int pl_cgroup_read_number(const char *folder, const char *name, uint64_t *value)
{
    char path[PATH_BYTES * 2], text[64], *end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (pl_procfile_read_line(path, text, sizeof text)) return errno == ENOENT ? 1 : -1;
    *value = PL_MACHINE_UNLIMITED;
    if (strcmp(text, "max") == 0) return 0;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return end == text || errno ? -1 : 0;
}

/* Page cache of the group; unreadable counts as none, the least favourable. */
static uint64_t cache_bytes(const char *folder, const cgroup_files *files)
{
    char path[PATH_BYTES * 2];
    uint64_t inactive = 0, active = 0;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    pl_procfile_find(path, files->inactive_cache, &inactive);
    pl_procfile_find(path, files->active_cache, &active);
    return inactive + active;
}

static void bind_level(const char *folder, uint64_t limit, uint64_t room, pl_machine *m)
{
    if (limit < m->cgroup_limit_bytes) m->cgroup_limit_bytes = limit;
    if (room >= m->cgroup_room_bytes) return;
    m->cgroup_room_bytes = room;
    snprintf(m->cgroup_path, sizeof m->cgroup_path, "%.255s", folder);
}

static void fail_level(const char *folder, const char *file, pl_machine *m)
{
    m->cgroup_error = errno ? errno : EINVAL;
    m->cgroup_room_bytes = 0;
    snprintf(m->cgroup_path, sizeof m->cgroup_path, "%.200s/%s", folder, file);
}

static void read_memory_level(const char *folder, const cgroup_files *files, pl_machine *m)
{
    uint64_t limit, usage = 0, throttle = PL_MACHINE_UNLIMITED;
    int got = pl_cgroup_read_number(folder, files->limit, &limit);
    if (got == 1) return; /* the root group has no limit file */
    if (got != 0) return fail_level(folder, files->limit, m);
    if (files->throttle && pl_cgroup_read_number(folder, files->throttle, &throttle) < 0)
        return fail_level(folder, files->throttle, m);
    if (throttle < limit) limit = throttle;
    if (limit >= (uint64_t)1 << 62) return; /* "max", or version 1's way to say so */
    if (pl_cgroup_read_number(folder, files->usage, &usage) != 0) return fail_level(folder, files->usage, m);
    uint64_t cache = cache_bytes(folder, files);
    uint64_t fixed = usage > cache ? usage - cache : 0;
    bind_level(folder, limit, limit > fixed ? limit - fixed : 0, m);
}

static double quota_v2(const char *folder)
{
    char path[PATH_BYTES * 2], text[64], *end;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (pl_procfile_read_line(path, text, sizeof text)) return INFINITY;
    double quota = pl_read_double(text, &end);
    double period = pl_read_double(end, NULL);
    return end != text && quota > 0 && period > 0 ? quota / period : INFINITY;
}

static double quota_v1(const char *folder)
{
    char path[PATH_BYTES * 2], quota[64];
    uint64_t period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (pl_procfile_read_line(path, quota, sizeof quota)) return INFINITY;
    double microseconds = pl_read_double(quota, NULL);
    bool known = pl_cgroup_read_number(folder, "cpu.cfs_period_us", &period) == 0 && period > 0;
    return known && microseconds > 0 ? microseconds / (double)period : INFINITY;
}

/* Calls for the group and each ancestor down to the mount. */
static void walk_memory(pl_cgroup_place place, const cgroup_files *files, pl_machine *m)
{
    for (;;) {
        char folder[PATH_BYTES];
        snprintf(folder, sizeof folder, "%s%s", place.mount, place.below);
        read_memory_level(folder, files, m);
        char *slash = strrchr(place.below, '/');
        if (!slash || m->cgroup_error) return;
        *slash = 0;
    }
}

static void walk_quota(pl_cgroup_place place, double (*quota_of)(const char *), pl_machine *m)
{
    for (;;) {
        char folder[PATH_BYTES];
        snprintf(folder, sizeof folder, "%s%s", place.mount, place.below);
        double quota = quota_of(folder);
        if (quota < m->cores_quota) m->cores_quota = quota;
        char *slash = strrchr(place.below, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* Where there are no control groups there is no limit; where one cannot look, there may be any. */
static bool find_memory(const char *root, const char *controller, pl_cgroup_place *place, pl_machine *m)
{
    if (pl_cgroup_find(root, "self", controller, place)) return true;
    if (errno == 0 || errno == ENOENT) return false;
    m->cgroup_error = errno;
    m->cgroup_room_bytes = 0;
    snprintf(m->cgroup_path, sizeof m->cgroup_path, "%.200s/proc/self/cgroup", root);
    return false;
}

void pl_cgroup_read(const char *root, pl_machine *m)
{
    m->cgroup_limit_bytes = m->cgroup_room_bytes = PL_MACHINE_UNLIMITED;
    m->cores_quota = INFINITY;
    pl_cgroup_place place;
    if (find_memory(root, "", &place, m)) {
        walk_memory(place, &files_v2, m);
        walk_quota(place, quota_v2, m);
    }
    if (!m->cgroup_error && find_memory(root, "memory", &place, m)) walk_memory(place, &files_v1, m);
    if (pl_cgroup_find(root, "self", "cpu", &place)) walk_quota(place, quota_v1, m);
}

/* Facts about one process. What needs no permission (status, limits, cgroup) is read of every process; mappings and
 * stack pointers need the right to trace it: the same user, or CAP_SYS_PTRACE. Source: proc_pid_status(5),
 * proc_pid_stat(5), proc_pid_limits(5), ptrace(2) "Ptrace access mode checking". */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "base/io.h"

enum { PATH_BYTES = 512, COMMAND_BYTES = 4096, TMPFS_MAX = 64 };

const char *pl_doctor_limit_name(pl_doctor_limit limit)
{
    static const char *const names[PL_DOCTOR_LIMITS] = {"RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_RSS",
                                                        "RLIMIT_MEMLOCK"};
    return (unsigned)limit < PL_DOCTOR_LIMITS ? names[limit] : "?";
}

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pl_doctor_seconds(void) { return read_clock(CLOCK_MONOTONIC); }
double pl_doctor_work_seconds(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static void path_of(char *path, const char *root, pid_t id, const char *file)
{
    snprintf(path, PATH_BYTES, "%s/proc/%d/%s", root, (int)id, file);
}

/* ---- status ---- */

typedef struct state {
    char letter;
    uint64_t group, kernel_thread;
    bool memory; /* there is a VmSize */
} state;

static void read_status_line(const char *line, pl_doctor_process *p, state *s)
{
    pl_doctor_status *t = &p->status;
    uint64_t number;
    struct {
        const char *key;
        uint64_t *value;
    } const keys[] = {
        {"VmRSS", &t->resident_bytes},         {"RssAnon", &t->anonymous_bytes},
        {"RssFile", &t->file_bytes},           {"VmHWM", &t->peak_bytes},
        {"RssShmem", &t->shared_memory_bytes}, {"VmPeak", &t->virtual_peak_bytes},
        {"VmPTE", &t->page_table_bytes},       {"VmSwap", &t->swap_bytes},
        {"VmLck", &t->locked_bytes},           {"Threads", &t->threads},
        {"HugetlbPages", &t->hugetlb_bytes},   {"Tgid", &s->group},
        {"Kthread", &s->kernel_thread},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pl_procfile_field(line, keys[i].key, keys[i].value)) return;
    if (pl_procfile_field(line, "VmSize", &t->virtual_bytes)) s->memory = true;
    if (pl_procfile_field(line, "PPid", &number)) p->parent = (pid_t)number;
    if (pl_procfile_field(line, "Uid", &number)) p->user = (unsigned)number;
    if (strncmp(line, "State:", 6) == 0) s->letter = line[6 + strspn(line + 6, " \t")];
    if (strncmp(line, "Name:", 5) == 0) snprintf(p->name, sizeof p->name, "%s", line + 5 + strspn(line + 5, " \t"));
    if (strncmp(line, "NSpid:", 6) == 0) { /* one number for each namespace it is in, its own last */
        const char *last = strrchr(line, '\t');
        p->inner_id = last && strchr(line, '\t') != last ? (pid_t)strtol(last, NULL, 10) : 0;
    }
}

static pl_status say_absent(const char *root, pid_t id, pl_error *err)
{
    bool hidden = !*root && (kill(id, 0) == 0 || errno == EPERM);
    if (hidden)
        return pl_fail(err, PL_E_DATA,
                       "process %d exists, but /proc hides it (mounted with hidepid): ask as its user or as root",
                       (int)id);
    return pl_fail(err, PL_E_DATA, "there is no process %d; ps -e lists those that exist", (int)id);
}

pl_status pl_doctor_unreadable(const char *path, pl_error *err)
{
    if (errno == ENOMEM) return pl_fail(err, PL_E_NOMEM, "no memory to read %s", path);
    return pl_fail(err, PL_E_STORAGE, "%s cannot be read: %s%s", path, strerror(errno), pl_io_hint(errno));
}

bool pl_doctor_is_gone(int error) { return error == ENOENT || error == ESRCH; }

static pl_status read_status(const char *root, pl_doctor_process *p, state *s, pl_error *err)
{
    char path[PATH_BYTES];
    pl_procfile f;
    path_of(path, root, p->id, "status");
    *s = (state){0};
    p->status = (pl_doctor_status){0};
    if (pl_procfile_open(&f, path)) {
        bool hidden = errno == EACCES || errno == EPERM; /* hidepid=1 */
        return hidden || pl_doctor_is_gone(errno) ? say_absent(root, p->id, err) : pl_doctor_unreadable(path, err);
    }
    for (char *line; (line = pl_procfile_line(&f));) read_status_line(line, p, s);
    pl_procfile_close(&f);
    return s->letter ? PL_OK : say_absent(root, p->id, err);
}

static pl_status check_memory(const pl_doctor_process *p, const state *s, pl_error *err)
{
    if (s->memory) return PL_OK;
    if (s->letter == 'Z' || s->letter == 'X')
        return pl_fail(err, PL_E_DATA,
                       "process %d (%s) has ended and holds no memory; it is a zombie until its parent %d asks how "
                       "it ended",
                       (int)p->id, p->name, (int)p->parent);
    if (s->kernel_thread || p->parent == 2 || p->id == 2)
        return pl_fail(err, PL_E_DATA,
                       "process %d (%s) is a thread of the kernel: it has no memory of its own, only a kernel stack",
                       (int)p->id, p->name);
    return pl_fail(err, PL_E_DATA, "process %d (%s) has no memory any more: it is about to end", (int)p->id, p->name);
}

/* ---- small files ---- */

/* comm may hold blanks, brackets and newlines; what follows the last bracket does not. Field 22 is the start time. */
static uint64_t read_start(const char *root, pid_t id)
{
    char path[PATH_BYTES], text[1024];
    path_of(path, root, id, "stat");
    if (pl_procfile_read(path, text, sizeof text)) return 0;
    const char *p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++) p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

static void take_run_folder(pl_doctor_process *p, const char *text, size_t bytes)
{
    const char *slash = strrchr(text, '/');
    const char *second = text + strlen(text) + 1;
    if (strcmp(slash ? slash + 1 : text, "plimsoll") != 0 || second >= text + bytes || strcmp(second, "__run") != 0)
        return;
    for (const char *word = second; word < text + bytes; word += strlen(word) + 1)
        if (strncmp(word, "--out=", 6) == 0) p->run_folder = pl_pool_strdup(p->pool, word + 6);
}

static pl_status read_command(const char *root, pl_doctor_process *p, pl_error *err)
{
    char path[PATH_BYTES], text[COMMAND_BYTES];
    path_of(path, root, p->id, "cmdline");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) close(fd);
    size_t bytes = got > 0 ? (size_t)got : 0;
    text[bytes] = 0;
    take_run_folder(p, text, bytes);
    while (bytes && !text[bytes - 1]) bytes--;
    for (size_t i = 0; i < bytes; i++)
        if (!text[i]) text[i] = ' ';
    p->command = pl_pool_strdup(p->pool, text);
    path_of(path, root, p->id, "exe");
    got = readlink(path, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    p->executable = pl_pool_strdup(p->pool, text);
    return p->command && p->executable ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to read process %d", (int)p->id);
}

/* "Max address space         unlimited            unlimited            bytes" */
static void read_limits(const char *root, pl_doctor_process *p)
{
    static const char *const keys[PL_DOCTOR_LIMITS] = {"Max address space ", "Max data size ", "Max stack size ",
                                                       "Max resident set ", "Max locked memory "};
    char path[PATH_BYTES];
    pl_procfile f;
    for (int i = 0; i < PL_DOCTOR_LIMITS; i++) p->limit[i] = PL_MACHINE_UNLIMITED;
    path_of(path, root, p->id, "limits");
    if (pl_procfile_open(&f, path)) return;
    for (char *line; (line = pl_procfile_line(&f));)
        for (int i = 0; i < PL_DOCTOR_LIMITS; i++) {
            if (strncmp(line, keys[i], strlen(keys[i])) != 0) continue;
            char *end, *value = line + strlen(keys[i]);
            uint64_t number = strtoull(value, &end, 10);
            if (end != value) p->limit[i] = number;
        }
    pl_procfile_close(&f);
}

static pl_status read_surroundings(const char *root, pl_doctor_process *p, pl_error *err)
{
    char path[PATH_BYTES], text[32];
    PL_TRY(pl_machine_read(root, &p->machine, err));
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    (void)pl_procfile_find(path, "CommitLimit", &p->commit_limit_bytes);
    (void)pl_procfile_find(path, "Committed_AS", &p->committed_bytes);
    snprintf(path, sizeof path, "%s/proc/sys/vm/overcommit_memory", root);
    p->overcommit = pl_procfile_read_line(path, text, sizeof text) ? -1 : (int)strtol(text, NULL, 10);
    snprintf(text, sizeof text, "%d", (int)p->id);
    pl_cgroup_account_read(root, text, &p->cgroup);
    return PL_OK;
}

/* ---- mappings ---- */

typedef struct tmpfs_list {
    size_t count;
    unsigned device[TMPFS_MAX][2];
} tmpfs_list;

/* 36 25 0:32 /part /mount rw,relatime shared:9 - tmpfs tmpfs rw */
static void read_tmpfs(const char *root, pid_t id, tmpfs_list *list)
{
    char path[PATH_BYTES];
    pl_procfile f;
    list->count = 0;
    path_of(path, root, id, "mountinfo");
    if (pl_procfile_open(&f, path)) return;
    for (char *line; list->count < TMPFS_MAX && (line = pl_procfile_line(&f));) {
        unsigned *device = list->device[list->count];
        const char *tail = strstr(line, " - ");
        bool tmpfs = tail && (strncmp(tail + 3, "tmpfs ", 6) == 0 || strncmp(tail + 3, "ramfs ", 6) == 0);
        if (tmpfs && sscanf(line, "%*d %*d %u:%u ", &device[0], &device[1]) == 2) list->count++;
    }
    pl_procfile_close(&f);
}

static bool is_tmpfs(const tmpfs_list *list, const pl_smaps_entry *e)
{
    for (size_t i = 0; i < list->count && e->inode; i++)
        if (list->device[i][0] == e->device_major && list->device[i][1] == e->device_minor) return true;
    return false;
}

static const char *keep_name(pl_doctor_process *p, const char *name)
{
    if (!*name) return "";
    const char *last = p->map_count ? p->map[p->map_count - 1].name : "";
    return strcmp(last, name) == 0 ? last : pl_pool_strdup(p->pool, name);
}

static pl_status add_map(pl_doctor_process *p, size_t *capacity, const tmpfs_list *tmpfs, pl_smaps_entry *e,
                         pl_error *err)
{
    pl_procfile_unescape(e->name);
    const char *name = keep_name(p, e->name);
    if (!name || pl_grow(&p->map, capacity, p->map_count, sizeof *p->map))
        return pl_fail(err, PL_E_NOMEM, "no memory to read the mappings of process %d", (int)p->id);
    pl_doctor_map *m = &p->map[p->map_count++];
    *m = (pl_doctor_map){.begin = e->begin, .end = e->end, .offset = e->offset, .inode = e->inode, .name = name};
    memcpy(m->protection, e->protection, sizeof m->protection);
    memcpy(m->bytes, e->bytes, sizeof m->bytes);
    m->tmpfs = is_tmpfs(tmpfs, e);
    return PL_OK;
}

static pl_status read_maps(const char *root, pl_doctor_process *p, pl_error *err)
{
    char path[PATH_BYTES];
    pl_smaps smaps;
    pl_smaps_entry entry;
    tmpfs_list tmpfs;
    size_t capacity = 0;
    pl_status status = PL_OK;
    path_of(path, root, p->id, "smaps");
    if (pl_smaps_open(&smaps, path)) return PL_OK; /* not permitted: the report says so */
    read_tmpfs(root, p->id, &tmpfs);
    while (status == PL_OK && pl_smaps_read(&smaps, &entry)) status = add_map(p, &capacity, &tmpfs, &entry, err);
    pl_smaps_close(&smaps);
    p->permitted = p->map_count > 0;
    return status;
}

static void read_rollup(const char *root, pl_doctor_process *p)
{
    char path[PATH_BYTES];
    pl_smaps smaps;
    pl_smaps_entry entry;
    path_of(path, root, p->id, "smaps_rollup");
    if (pl_smaps_open(&smaps, path)) return;
    p->rollup_known = pl_smaps_read(&smaps, &entry);
    if (p->rollup_known) memcpy(p->rollup, entry.bytes, sizeof p->rollup);
    pl_smaps_close(&smaps);
}

/* ---- together ---- */

static pl_status read_all(const char *root, pl_doctor_process *p, pl_error *err)
{
    state s;
    PL_TRY(read_status(root, p, &s, err));
    if (s.group && (pid_t)s.group != p->id) {
        p->id = (pid_t)s.group;
        PL_TRY(read_status(root, p, &s, err));
    }
    PL_TRY(check_memory(p, &s, err));
    p->start_ticks = read_start(root, p->id);
    PL_TRY(read_command(root, p, err));
    read_limits(root, p);
    PL_TRY(read_maps(root, p, err));
    read_rollup(root, p);
    pl_doctor_read_images(root, p);
    PL_TRY(read_status(root, p, &s, err));
    PL_TRY(check_memory(p, &s, err)); /* it may have ended while it was read */
    if (p->status.peak_bytes < p->rollup[PL_SMAPS_RSS]) p->status.peak_bytes = p->rollup[PL_SMAPS_RSS]; /* it lags */
    if (p->permitted) PL_TRY(pl_doctor_threads_read(root, p, err));
    if (p->permitted) PL_TRY(pl_doctor_divide_joined(root, p, err));
    return read_surroundings(root, p, err);
}

pl_status pl_doctor_process_read(const char *root, pid_t id, pl_doctor_process *p, pl_error *err)
{
    *p = (pl_doctor_process){.id = id, .asked_id = id, .seconds = pl_doctor_seconds(), .pool = pl_pool_create()};
    if (!p->pool) return pl_fail(err, PL_E_NOMEM, "no memory to read process %d", (int)id);
    double worked = pl_doctor_work_seconds();
    pl_status status = read_all(root, p, err);
    p->cost_seconds = pl_doctor_work_seconds() - worked;
    if (status != PL_OK) pl_doctor_process_deinit(p);
    return status;
}

void pl_doctor_process_deinit(pl_doctor_process *p)
{
    pl_free(p->map);
    pl_free(p->thread);
    pl_pool_destroy(p->pool);
    *p = (pl_doctor_process){0};
}

/* A fresh process of the same executable. What OpenMP reads only while it is loaded must be in the environment; what
 * was tokenised, searched and planned before is left behind with the old memory. Huge pages are switched off before the
 * exec because the setting survives it, so that even the loader's first mapping is covered. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process.h"

enum { ADDED_MAX = 6, ADDED_BYTES = 48 };

typedef struct environment {
    char **entries; /* NULL-terminated */
    size_t count;
    char added[ADDED_MAX][ADDED_BYTES];
    size_t added_count;
    char *tunables;
} environment;

static void deinit(environment *e)
{
    pl_free(e->entries);
    pl_free(e->tunables);
}

static bool has_name(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static const char *find_entry(char *const *envp, const char *name)
{
    for (; *envp; envp++) {
        if (has_name(*envp, name)) return *envp;
    }
    return NULL;
}

static void put_entry(environment *e, const char *name, char *entry)
{
    for (size_t i = 0; i < e->count; i++) {
        if (!has_name(e->entries[i], name)) continue;
        e->entries[i] = entry;
        return;
    }
    e->entries[e->count++] = entry;
    e->entries[e->count] = NULL;
}

/* Replaces or adds. */
static void set_entry(environment *e, const char *name, unsigned long long value, const char *text)
{
    char *entry = e->added[e->added_count++];
    if (text)
        snprintf(entry, ADDED_BYTES, "%s=%s", name, text);
    else
        snprintf(entry, ADDED_BYTES, "%s=%llu", name, value);
    put_entry(e, name, entry);
}

/* Works against a heap of fixed size: hugetlb takes it from elsewhere, a top pad grows it before main() begins.
 * MALLOC_PERTURB_ only fills blocks, and whoever sets it is looking for something. Against the planner's fence works
 * what makes stacks large: of the runner before this process, or of a user. libgomp ends a process that gets none. */
static bool works_against_plan(const char *entry)
{
    if (has_name(entry, "OMP_STACKSIZE") || has_name(entry, "GOMP_STACKSIZE")) return true;
    if (has_name(entry, "GLIBC_TUNABLES")) return strstr(entry, "glibc.malloc.");
    return strncmp(entry, "MALLOC_", 7) == 0 && !has_name(entry, "MALLOC_PERTURB_");
}

static int copy_environment(environment *e, char *const *envp)
{
    size_t count = 0;
    while (envp[count]) count++;
    e->entries = pl_alloc(count + ADDED_MAX + 1, sizeof *e->entries);
    if (!e->entries) return -1;
    for (size_t i = 0; i < count; i++)
        if (!works_against_plan(envp[i])) e->entries[e->count++] = envp[i];
    return 0;
}

/* Blocks that glibc keeps in its cache of small ones do not join their neighbours, and one of 32 bytes at the end of a
 * gap keeps 60 kB from whoever asks next: what the heap must hold would be a matter of luck. Without the cache it is
 * what is counted (api/compile_heap.c); after "committed" nobody asks any more. Other tunables stay. */
static int add_malloc(environment *e)
{
    static const char name[] = "GLIBC_TUNABLES", ours[] = "glibc.malloc.tcache_count=0";
    const char *entry = find_entry(e->entries, name), *others = entry ? entry + sizeof name : "";
    const size_t room = sizeof name + sizeof ours + 1 + strlen(others);
    e->tunables = pl_alloc(1, room);
    if (!e->tunables) return -1;
    snprintf(e->tunables, room, "%s=%s%s%s", name, ours, others[0] ? ":" : "", others);
    put_entry(e, name, e->tunables);
    return 0;
}

/* With more threads than cores a waiting thread must give its core away at once, or 64 threads on 2 cores spin each
 * other to death: libgomp counts the cores of the affinity mask only, not a container's quota. A user's own choice
 * stands. */
static void add_openmp(environment *e, const pl_process_exec *exec)
{
    set_entry(e, "OMP_NUM_THREADS", (unsigned long long)exec->threads, NULL);
    set_entry(e, "OMP_DYNAMIC", 0, "false");
    char size[32];
    snprintf(size, sizeof size, "%lluB", (unsigned long long)exec->options->thread_stack_reserved_bytes);
    set_entry(e, "OMP_STACKSIZE", 0, size);
    bool chosen = find_entry(exec->envp, "OMP_WAIT_POLICY") || find_entry(exec->envp, "GOMP_SPINCOUNT");
    if (chosen) return;
    /* With a core for each thread, waiting spins some tens of microseconds, which regions end within when the machine
     * is free (2,000 was as fast as libgomp's 300,000), and then sleeps, so that on a busy machine it does not take the
     * core away from the thread it waits for (measured at a load of 10: three times as fast). */
    if (exec->threads > exec->cores) set_entry(e, "OMP_WAIT_POLICY", 0, "passive");
    set_entry(e, "GOMP_SPINCOUNT", exec->threads > exec->cores ? 0 : 2000, NULL);
}

/* Returns only on failure. */
static pl_status exec_again(char *const *argv, const environment *e, pl_error *err)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (length > 0) execve(path, argv, e->entries); /* by its name first: that is what ps and top show */
    execve("/proc/self/exe", argv, e->entries);
    return pl_fail(err, PL_E_UNSUPPORTED, "the command cannot start itself again (%s): %s",
                   length > 0 ? path : "/proc/self/exe", strerror(errno));
}

pl_status pl_process_restart(char *const *argv, char *const *envp, pl_error *err)
{
    environment e = {0};
    if (copy_environment(&e, envp)) return pl_fail(err, PL_E_NOMEM, "no memory for the environment of the command");
    pl_status status = exec_again(argv, &e, err);
    deinit(&e);
    return status;
}

pl_status pl_process_restart_plain(char *const *argv, char *const *envp, pl_error *err)
{
    bool plain = true;
    for (size_t i = 0; envp[i]; i++) plain = plain && !works_against_plan(envp[i]);
    return plain ? PL_OK : pl_process_restart(argv, envp, err);
}

pl_status pl_process_exec_self(const pl_process_exec *exec, pl_error *err)
{
    environment e = {0};
    if (copy_environment(&e, exec->envp) || add_malloc(&e)) {
        deinit(&e);
        return pl_fail(err, PL_E_NOMEM, "no memory for the environment of the runner");
    }
    add_openmp(&e, exec);
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* prepare tries again and says so when it cannot */
    pl_status status = exec_again(exec->argv, &e, err);
    deinit(&e);
    return status;
}

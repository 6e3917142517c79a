/* A process and all that descend from it, and what each holds: cheap enough to be asked many times a second.
 *
 * /proc/N/stat has parent, start time and an Rss that may be off by many pages (per-processor counters that are not
 * added up); so of those that are kept, VmRSS of /proc/N/status is read. Several processes share pages (copy on
 * write, libraries), so theirs are added as Pss, which divides a shared page by those that share it. Reading Pss
 * walks the page tables: some milliseconds a gigabyte. A process whose parent has ended is its grandparent's no more
 * (the kernel hands it to init), so it is not seen here. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"

enum { PATH_BYTES = 512, DEPTH_MAX = 256 };

/* "7 (a (b) c) S 1 …": the name may hold anything, a newline too, so the fields begin behind the last bracket. False:
 * gone or dead. */
static bool read_member(const char *root, pid_t id, pl_doctor_member *m)
{
    char path[PATH_BYTES], text[1024], state = 0;
    int parent = 0;
    unsigned long long start = 0;
    long pages = 0;
    snprintf(path, sizeof path, "%s/proc/%d/stat", root, (int)id);
    if (pl_procfile_read(path, text, sizeof text)) return false;
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open) return false;
    int got =
        sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu %*u %ld",
               &state, &parent, &start, &pages);
    if (got != 4 || state == 'Z' || state == 'X' || pages < 0) return false;
    uint64_t bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    *m = (pl_doctor_member){id, (pid_t)parent, "", start, bytes, bytes};
    snprintf(m->name, sizeof m->name, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static int by_id(const void *a, const void *b)
{
    pid_t x = ((const pl_doctor_member *)a)->id, y = ((const pl_doctor_member *)b)->id;
    return (x > y) - (x < y);
}

static bool descends(const pl_doctor_member *all, size_t count, const pl_doctor_member *m, pid_t from)
{
    for (int depth = 0; m && depth < DEPTH_MAX; depth++) {
        if (m->parent == from) return true;
        pl_doctor_member key = {.id = m->parent};
        m = m->parent > 1 ? bsearch(&key, all, count, sizeof *all, by_id) : NULL;
    }
    return false;
}

static pl_status list_all(const char *root, pl_doctor_member **list, size_t *count, pl_error *err)
{
    char path[PATH_BYTES];
    size_t capacity = *count;
    pl_status status = PL_OK;
    snprintf(path, sizeof path, "%s/proc", root);
    DIR *folder = opendir(path);
    if (!folder) return pl_doctor_unreadable(path, err);
    for (struct dirent *entry; status == PL_OK && (entry = readdir(folder));) {
        long id = strtol(entry->d_name, NULL, 10);
        if (id <= 0 || id == (*list)[0].id) continue;
        if (pl_grow(list, &capacity, *count, sizeof **list))
            status = pl_fail(err, PL_E_NOMEM, "no memory to list the processes");
        else
            *count += read_member(root, (pid_t)id, &(*list)[*count]);
    }
    closedir(folder);
    return status;
}

/* Keeps the first and what descends from it. */
static pl_status keep_descendants(pl_doctor_member *list, size_t *count, pl_error *err)
{
    size_t kept = 1, all = *count - 1;
    bool *keep = pl_alloc(all + 1, sizeof *keep);
    if (!keep) return pl_fail(err, PL_E_NOMEM, "no memory to list the processes");
    if (all) qsort(list + 1, all, sizeof *list, by_id);
    for (size_t i = 0; i < all; i++) keep[i] = descends(list + 1, all, &list[i + 1], list[0].id);
    for (size_t i = 0; i < all; i++)
        if (keep[i] && kept < PL_DOCTOR_MEMBERS_MAX) list[kept++] = list[i + 1];
    pl_free(keep);
    *count = kept;
    return PL_OK;
}

static void read_resident(const char *root, pl_doctor_member *m)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/%d/status", root, (int)m->id);
    if (pl_procfile_find(path, "VmRSS", &m->resident_bytes)) m->proportional_bytes = m->resident_bytes;
}

static void read_proportional(const char *root, pl_doctor_member *m)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/%d/smaps_rollup", root, (int)m->id);
    (void)pl_procfile_find(path, "Pss", &m->proportional_bytes);
}

static pl_status read_first(const char *root, pid_t id, pl_doctor_member *m, pl_error *err)
{
    char path[PATH_BYTES];
    errno = 0;
    if (read_member(root, id, m)) return PL_OK;
    if (!errno || pl_doctor_is_gone(errno)) return pl_fail(err, PL_E_DATA, "process %d has ended", (int)id);
    snprintf(path, sizeof path, "%s/proc/%d/stat", root, (int)id);
    return pl_doctor_unreadable(path, err);
}

pl_status pl_doctor_tree_read(const char *root, pid_t id, bool tree, pl_doctor_member **list, size_t *count,
                              pl_error *err)
{
    *count = 0;
    *list = pl_alloc(1, sizeof **list);
    if (!*list) return pl_fail(err, PL_E_NOMEM, "no memory to list the processes");
    pl_status status = read_first(root, id, *list, err);
    *count = 1;
    if (status == PL_OK && tree) status = list_all(root, list, count, err);
    if (status == PL_OK) status = keep_descendants(*list, count, err);
    for (size_t i = 0; status == PL_OK && i < *count; i++) read_resident(root, &(*list)[i]);
    for (size_t i = 0; status == PL_OK && *count > 1 && i < *count; i++) read_proportional(root, &(*list)[i]);
    if (status == PL_OK) return PL_OK;
    pl_free(*list);
    *list = NULL;
    *count = 0;
    return status;
}

#include "store/run_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "store/folder.h"
#include "store/sum_file.h"

bool pl_run_file_is_record(const char *name, const pl_run_data *data)
{
    static const char *const names[] = {"config.yaml",
                                        "plan.lock",
                                        "plan.html",
                                        "metrics.jsonl",
                                        "report.json",
                                        "lock",
                                        "trace.json",
                                        "report.html",
                                        "times.json",
                                        "predictions.csv",
                                        ("predictions.csv" PL_SUM_FILE_ENDING),
                                        PL_STARTS_FILE,
                                        PL_RUN_INT8_FILE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return data->is_record(name) || strncmp(name, "events.out.tfevents.", 20) == 0 ||
           (strncmp(name, "dump-", 5) == 0 && pl_ends_with(name, ".txt"));
}

/* ---- what a file begins with ---- */

bool pl_run_head_begins(const void *head, size_t bytes, const char *magic)
{
    return bytes >= strlen(magic) && memcmp(head, magic, strlen(magic)) == 0;
}

/* A process number and a line end. */
bool pl_run_head_is_lock(const void *head, size_t bytes)
{
    const char *text = head;
    size_t digits = 0;
    while (digits < bytes && text[digits] >= '0' && text[digits] <= '9') digits++;
    return digits && digits + 1 == bytes && text[digits] == '\n';
}

bool pl_run_head_is_blocks(const void *head, size_t bytes) { return pl_run_head_begins(head, bytes, "PLBLOCKS"); }

/* The number of bytes read; 0: none, or not a file that we may read. */
static size_t read_head(const char *path, char head[PL_RUN_HEAD_BYTES])
{
    struct stat st;
    const int fd = pl_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) n = pread(fd, head, PL_RUN_HEAD_BYTES, 0);
    if (fd >= 0) close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* ---- folders ---- */

static bool has(const char *folder, const char *name, mode_t type)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    return pl_path_join(path, sizeof path, folder, name, NULL) == PL_OK && lstat(path, &st) == 0 &&
           (st.st_mode & S_IFMT) == type;
}

typedef struct search {
    const char *folder; /* folder of checkpoints */
    bool found;
} search;

/* Fails if it is a checkpoint, to end the search. */
static pl_status see_checkpoint(void *context, const char *name, pl_error *err)
{
    static const char schema[] = "{\n  \"schema\": \"plimsoll.run/";
    char path[PL_FILE_PATH_MAX], head[PL_RUN_HEAD_BYTES];
    search *s = context;
    const int n = snprintf(path, sizeof path, "%s/%s/run.json", s->folder, name);
    if (n < 0 || (size_t)n >= sizeof path) return PL_OK;
    s->found = pl_run_head_begins(head, read_head(path, head), schema);
    return s->found ? pl_fail(err, PL_E_STOPPED, "found") : PL_OK;
}

/* A run that was copied or unpacked may have no lock. */
static bool has_checkpoint(const char *folder)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    char path[PL_FILE_PATH_MAX];
    pl_error ignored;
    search s = {.folder = path};
    if (pl_path_join(path, sizeof path, folder, "checkpoints", NULL) == PL_OK)
        (void)pl_folder_each(path, list, see_checkpoint, &s, &ignored);
    return s.found;
}

bool pl_run_is_folder(const char *folder)
{
    char path[PL_FILE_PATH_MAX], head[PL_RUN_HEAD_BYTES];
    if (!has(folder, "config.yaml", S_IFREG) && !has(folder, "checkpoints", S_IFDIR)) return false;
    if (pl_path_join(path, sizeof path, folder, "lock", NULL) != PL_OK) return false;
    return pl_run_head_is_lock(head, read_head(path, head)) || has_checkpoint(folder);
}

/* ---- what a kill left ---- */

typedef struct sweeping {
    const char *folder;
    const pl_run_data *data;
} sweeping;

/* A writer takes over such a file, unless another process is writing it; so beginning and giving up removes it. */
static pl_status sweep_one(void *context, const char *name, pl_error *err)
{
    char record[NAME_MAX + 1], path[PL_FILE_PATH_MAX];
    const sweeping *s = context;
    pl_file_writer w;
    pl_error ignored;
    (void)err;
    if (!pl_ends_with(name, PL_FILE_TEMPORARY)) return PL_OK;
    snprintf(record, sizeof record, "%.*s", (int)(strlen(name) - strlen(PL_FILE_TEMPORARY)), name);
    if (!pl_run_file_is_record(record, s->data)) return PL_OK;
    if (pl_path_join(path, sizeof path, s->folder, record, &ignored) != PL_OK) return PL_OK;
    if (pl_file_create(&w, path, &ignored) == PL_OK) pl_file_abandon(&w);
    return PL_OK;
}

void pl_run_sweep(const char *folder, const pl_run_data *data)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    sweeping s = {folder, data};
    pl_error ignored;
    (void)pl_folder_each(folder, list, sweep_one, &s, &ignored);
}

/* ---- may it be written? ---- */

/* Cuts the path where its last name begins, and returns that; NULL: it has none. */
static const char *cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) return NULL;
    *slash = 0;
    return slash + 1;
}

/* Is one of the folders in the path a run's `checkpoints`? Then the path is cut to the run's. */
static bool is_in_checkpoints(char *path)
{
    for (const char *name; (name = cut(path));) {
        const bool may = strcmp(name, "checkpoints") == 0;
        if (may && pl_run_is_folder(path[0] ? path : "/")) return true;
    }
    return false;
}

static pl_status refuse(const char *path, const char *why, pl_error *err)
{
    return pl_fail(err, PL_E_USAGE, "%.400s: %s, and would be written over; choose another name", path, why);
}

pl_status pl_run_check_free(const char *path, const char *own, const pl_run_data *data, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], head[PL_RUN_HEAD_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    const char *name = cut(folder);
    if (name && pl_run_file_is_record(name, data) && !(own && strcmp(name, own) == 0) &&
        pl_run_is_folder(folder[0] ? folder : "/"))
        return refuse(path, "is a name that a run keeps in its folder", err);
    if (name && is_in_checkpoints(folder))
        return pl_fail(
            err, PL_E_USAGE,
            "%.400s: lies among the checkpoints of the run %.300s, where nothing else may be written; choose "
            "another place",
            path, folder);
    const size_t bytes = read_head(path, head);
    if (data->is_prepared(head, bytes)) return refuse(path, "is data that a run has prepared", err);
    if (pl_run_head_is_blocks(head, bytes)) return refuse(path, "is a file of results", err);
    if (pl_run_head_begins(head, bytes, "\x89HDF\r\n\x1a\n"))
        return refuse(path, "is an HDF5 file, of results or of data", err);
    if (pl_run_head_begins(head, bytes, "SQLite format 3"))
        return refuse(path, "is a cache of pages, or another database", err);
    return PL_OK;
}

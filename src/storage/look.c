/* What lies in a folder. Each entry is identified by its content, or by a name that nothing else has; all else is
 * unknown. No link is followed, and no other file system entered. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "data/pages/cache.h"
#include "storage/storage.h"
#include "store/beside.h"
#include "store/block_file.h"
#include "store/checkpoint.h"
#include "store/folder.h"
#include "store/run_files.h"

enum { BLOCK = 512, HEAD_BYTES = PL_STORAGE_HEAD_BYTES, FOLDERS_MAX = 1 << 20 };

/* ---- paths and texts ---- */

pl_status pl_storage_path(const pl_storage *s, const char *path, char full[PL_FILE_PATH_MAX], pl_error *err)
{
    if (path[0]) return pl_path_join(full, PL_FILE_PATH_MAX, s->root, path, err);
    strcpy(full, s->root);
    return PL_OK;
}

pl_status pl_storage_text(const pl_storage *s, const char **to, pl_error *err, const char *format, ...)
{
    char text[PL_FILE_PATH_MAX];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (bytes < 0 || (size_t)bytes >= sizeof text)
        return pl_fail(err, PL_E_USAGE, "%s: a path below it is too long", s->root);
    *to = pl_pool_strdup(s->pool, text);
    return *to ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of what lies there", s->root);
}

/* ---- a folder being read ---- */

/* One name in it. */
typedef struct seen {
    const char *name;
    struct stat st;
    bool is_taken; /* it belongs to another entry, or is one */
} seen;

typedef struct reading {
    pl_storage *s;
    const pl_storage_folder *folder;
    char path[PL_FILE_PATH_MAX]; /* of the folder */
    seen *seen;
    size_t count, room;
} reading;

static pl_status note_name(void *context, const char *name, pl_error *err)
{
    reading *r = context;
    if (pl_grow(&r->seen, &r->room, r->count, sizeof *r->seen) != 0)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of what lies there", r->s->root);
    r->seen[r->count] = (seen){.name = pl_pool_strdup(r->s->pool, name)};
    if (!r->seen[r->count].name)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of what lies there", r->s->root);
    r->count++;
    return PL_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const seen *)a)->name, ((const seen *)b)->name); }

static seen *find(reading *r, const char *name)
{
    const seen wanted = {.name = name};
    return r->count ? bsearch(&wanted, r->seen, r->count, sizeof *r->seen, by_name) : NULL;
}

static pl_status cannot_see(const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
}

/* What vanished between listing and looking does not matter; a disk that fails does. */
static pl_status look_at_each(reading *r, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    for (size_t i = 0; i < r->count; i++) {
        PL_TRY(pl_path_join(path, sizeof path, r->path, r->seen[i].name, err));
        r->seen[i].is_taken = lstat(path, &r->seen[i].st) != 0;
        if (r->seen[i].is_taken && errno != ENOENT) return cannot_see(path, err);
    }
    return PL_OK;
}

static uint64_t disk_bytes(const struct stat *st) { return (uint64_t)st->st_blocks * BLOCK; }

static pl_status add(reading *r, seen *n, pl_storage_kind kind, pl_storage_fate fate, const char *why,
                     pl_storage_entry **to, pl_error *err)
{
    pl_storage *s = r->s;
    if (pl_grow(&s->entry, &s->entry_room, s->entries, sizeof *s->entry) != 0)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of what lies there", s->root);
    pl_storage_entry *e = &s->entry[s->entries];
    *e = (pl_storage_entry){
        .item = {.kind = kind, .fate = fate, .why = why, .bytes = S_ISDIR(n->st.st_mode) ? 0 : disk_bytes(&n->st)},
        .run = r->folder->run,
        .set = PL_STORAGE_NONE,
        .device = n->st.st_dev,
        .inode = n->st.st_ino};
    e->item.age_seconds = s->now > n->st.st_mtime ? (double)(s->now - n->st.st_mtime) : 0;
    PL_TRY(pl_storage_text(s, &e->item.path, err, "%s%s%s", r->folder->path, r->folder->path[0] ? "/" : "", n->name));
    s->entries++;
    n->is_taken = true;
    if (to) *to = e;
    return PL_OK;
}

static pl_status add_folder(pl_storage *s, const char *path, size_t run, pl_error *err)
{
    if (s->folders >= FOLDERS_MAX || pl_grow(&s->folder, &s->folder_room, s->folders, sizeof *s->folder) != 0)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its folders", s->root);
    s->folder[s->folders++] = (pl_storage_folder){path, run};
    return PL_OK;
}

/* ---- what belongs to another name ---- */

static void take(reading *r, pl_storage_entry *e, const char *stem, size_t bytes, const char *ending)
{
    char name[NAME_MAX + 1];
    int n = snprintf(name, sizeof name, "%.*s%s", (int)bytes, stem, ending);
    seen *other = n > 0 && (size_t)n < sizeof name ? find(r, name) : NULL;
    if (!other || other->is_taken || !S_ISREG(other->st.st_mode)) return;
    e->item.bytes += disk_bytes(&other->st);
    other->is_taken = true;
}

static bool exists_as(reading *r, const char *name, mode_t type)
{
    seen *n = find(r, name);
    return n && !n->is_taken && (n->st.st_mode & S_IFMT) == type;
}

/* ---- files ---- */

static const char not_ours[] = "not known to be Plimsoll's: left alone";

/* Its first bytes; none if we may not read it, or it is gone. */
typedef struct head {
    unsigned char bytes[HEAD_BYTES];
    size_t count;
    bool is_closed; /* we may not read it */
} head;

static pl_status read_head(const reading *r, const seen *n, head *h, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    *h = (head){0};
    PL_TRY(pl_path_join(path, sizeof path, r->path, n->name, err));
    int fd = pl_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    h->is_closed = fd < 0 && (errno == EACCES || errno == EPERM);
    if (fd < 0) return h->is_closed || errno == ENOENT || errno == ELOOP ? PL_OK : cannot_see(path, err);
    const uint64_t bytes = (uint64_t)n->st.st_size;
    h->count = bytes < HEAD_BYTES ? (size_t)bytes : HEAD_BYTES;
    pl_status status = pl_file_read_at(fd, path, 0, h->bytes, h->count, err);
    close(fd);
    if (status == PL_E_DATA) h->count = 0; /* it has become shorter */
    return status == PL_E_DATA ? PL_OK : status;
}

static bool begins(const head *h, const char *magic, size_t n)
{
    return h->count >= n && memcmp(h->bytes, magic, n) == 0;
}

static bool is_blocks(const head *h) { return pl_run_head_is_blocks(h->bytes, h->count); }
static bool is_hdf5(const head *h) { return begins(h, "\x89HDF\r\n\x1a\n", 8); }

static pl_status add_temporary(reading *r, seen *n, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, r->path, n->name, err));
    if (pl_storage_is_open(path) == 1)
        return add(r, n, PL_STORAGE_TEMPORARY, PL_STORAGE_IN_USE, "a process is writing it", NULL, err);
    return add(r, n, PL_STORAGE_TEMPORARY, PL_STORAGE_GOES, "left behind by a process that was killed", NULL, err);
}

static bool is_cache(const seen *n, const head *h)
{
    static const unsigned char application[] = {0x50, 0x6c, 0x6d, 0x70}; /* modules/cache.c */
    return strcmp(n->name, PL_PAGE_CACHE_NAME) == 0 && begins(h, "SQLite format 3", 16) &&
           h->count >= PL_RUN_HEAD_BYTES && memcmp(h->bytes + 68, application, sizeof application) == 0;
}

static pl_status add_cache(reading *r, seen *n, pl_error *err)
{
    pl_storage_entry *e;
    PL_TRY(add(r, n, PL_STORAGE_CACHE, PL_STORAGE_STAYS, "can be removed at any time: pages are drawn again", &e, err));
    take(r, e, n->name, strlen(n->name), "-journal");
    return PL_OK;
}

static pl_status describe_results(const pl_storage *s, pl_storage_entry *e, const pl_block_reader *b, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(b);
    const uint64_t blocks = pl_block_count(l), done = pl_block_reader_done(b);
    char all[32], some[32];
    e->item.kind = l->whole ? PL_STORAGE_PART : PL_STORAGE_RESULTS;
    if (done < blocks)
        return pl_storage_text(s, &e->item.why, err, "%s of %s blocks are finished: let the run go on",
                               pl_format_count(done, some, sizeof some), pl_format_count(blocks, all, sizeof all));
    e->is_finished = true;
    e->item.why = l->whole ? "a finished part of a job" : "finished results";
    return PL_OK;
}

static pl_status note_others(const pl_storage *s, pl_storage_entry *e, const pl_block_reader *b, const char *path,
                             pl_error *err)
{
    pl_error why = {0};
    const pl_status status = pl_storage_check_alone(b, path, &why);
    if (status != PL_OK && status != PL_E_DATA) return pl_fail(err, status, "%s", why.text);
    e->has_others = status == PL_E_DATA;
    return e->has_others ? pl_storage_text(s, &e->item.why, err, "stays: %.600s", why.text) : PL_OK;
}

/* Damaged results are results, too; an HDF5 file without our index is foreign. */
static pl_status add_results(reading *r, seen *n, pl_storage_shape shape, uint64_t bytes, bool is_ours, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_error why = {0};
    pl_storage_entry *e;
    pl_block_reader *b = NULL;
    PL_TRY(pl_path_join(path, sizeof path, r->path, n->name, err));
    pl_status status = pl_block_reader_open(path, false, &b, &why);
    if (status != PL_OK && status != PL_E_DATA) return pl_fail(err, status, "%s", why.text);
    if (status == PL_E_DATA && !is_ours && strncmp(n->name, "SYNTHETIC_", 10) == 0)
        return add(r, n, PL_STORAGE_OUTPUT, PL_STORAGE_STAYS, "a synthetic flight", NULL, err);
    if (status == PL_E_DATA && !is_ours) return add(r, n, PL_STORAGE_UNKNOWN, PL_STORAGE_STAYS, not_ours, NULL, err);
    status = add(r, n, PL_STORAGE_RESULTS, PL_STORAGE_STAYS, "damaged results; plimsoll results check", &e, err);
    if (status == PL_OK && b) status = describe_results(r->s, e, b, err);
    if (status == PL_OK && b && e->item.kind == PL_STORAGE_PART) status = note_others(r->s, e, b, path, err);
    pl_block_reader_close(b);
    if (status != PL_OK) return status;
    e->shape = shape;
    if (shape == PL_STORAGE_TREE) e->item.bytes += bytes;
    return PL_OK;
}

/* RUN/checkpoints itself, and no other folder of that name below the run. */
static bool is_in_checkpoints(const reading *r)
{
    if (r->folder->run == PL_STORAGE_NONE) return false;
    const char *run = r->s->run[r->folder->run].path, *path = r->folder->path;
    const size_t n = strlen(run);
    if (n && (strncmp(path, run, n) != 0 || path[n] != '/')) return false;
    return strcmp(path + (n ? n + 1 : 0), "checkpoints") == 0;
}

static bool is_pointer(const reading *r, const char *name)
{
    return is_in_checkpoints(r) && (strcmp(name, "latest") == 0 || strcmp(name, "best") == 0);
}

/* NAME.html, .yaml, .processes.jsonl and .times.json next to results NAME.h5 or NAME.blocks or a folder NAME. */
static pl_status find_beside(reading *r, const char *name, size_t stem, const char *form, bool *is, pl_error *err)
{
    char other[2 * NAME_MAX];
    head h;
    snprintf(other, sizeof other, "%.*s%s", (int)stem, name, form);
    seen *n = find(r, other);
    if (n && S_ISDIR(n->st.st_mode)) *is = true;
    if (!n || !S_ISREG(n->st.st_mode) || *is) return PL_OK;
    PL_TRY(read_head(r, n, &h, err));
    *is = is_blocks(&h) || is_hdf5(&h);
    return PL_OK;
}

static pl_status is_beside_results(reading *r, const char *name, bool *is, pl_error *err)
{
    static const char *const forms[] = {"", ".blocks", ".h5"};
    static const char *const endings[] = {PL_BESIDE_PAGE, PL_BESIDE_CONFIG, PL_BESIDE_PROCESSES, PL_BESIDE_TIMES};
    *is = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms && pl_ends_with(name, endings[i]); k++)
            PL_TRY(find_beside(r, name, strlen(name) - strlen(endings[i]), forms[k], is, err));
    return PL_OK;
}

/* An ONNX file keeps large weights in a file next to it. */
static pl_status add_output(reading *r, seen *n, const char *what, pl_error *err)
{
    pl_storage_entry *e;
    PL_TRY(add(r, n, PL_STORAGE_OUTPUT, PL_STORAGE_STAYS, what, &e, err));
    if (pl_ends_with(n->name, ".onnx")) take(r, e, n->name, strlen(n->name), ".data");
    return PL_OK;
}

static pl_status add_file(reading *r, seen *n, pl_error *err)
{
    head h;
    bool is_beside;
    const pl_storage_fate stays = PL_STORAGE_STAYS;
    if (pl_ends_with(n->name, PL_FILE_TEMPORARY)) return add_temporary(r, n, err);
    if (r->s->is_brief) return PL_OK;
    PL_TRY(read_head(r, n, &h, err));
    if (is_cache(n, &h)) return add_cache(r, n, err);
    if (is_blocks(&h) || is_hdf5(&h)) return add_results(r, n, PL_STORAGE_FILE, 0, is_blocks(&h), err);
    if (r->s->data->is_prepared(h.bytes, h.count))
        return add(r, n, PL_STORAGE_DATA, stays, "prepared data; made again from its source when needed", NULL, err);
    if (is_pointer(r, n->name) || (r->folder->run != PL_STORAGE_NONE && pl_run_file_is_record(n->name, r->s->data)))
        return add(r, n, PL_STORAGE_RUN, stays, "a record of a run", NULL, err);
    if (strcmp(n->name, "lock") == 0 && pl_run_head_is_lock(h.bytes, h.count))
        return add(r, n, PL_STORAGE_RUN, stays, "says who used the folder last", NULL, err);
    PL_TRY(is_beside_results(r, n->name, &is_beside, err));
    if (is_beside) return add(r, n, PL_STORAGE_RUN, stays, "belongs to results", NULL, err);
    const char *output = pl_storage_output_of(n->name, h.bytes, h.count);
    if (output) return add_output(r, n, output, err);
    return add(r, n, PL_STORAGE_UNKNOWN, stays, h.is_closed ? "cannot be opened: left alone" : not_ours, NULL, err);
}

/* ---- folders ---- */

/* A folder's files, and whether they are only those of a checkpoint or of results in the form npy. */
typedef struct content {
    const char *path;
    uint64_t bytes;
    bool has_index, is_npy, is_step;
    bool has_links; /* or other things that are not files */
} content;

static pl_status note_content(void *context, const char *name, pl_error *err)
{
    static const char *const step[] = {PL_MODEL_FILE,
                                       PL_STATE_FILE,
                                       PL_RECORD_FILE,
                                       PL_MODEL_FILE PL_FILE_TEMPORARY,
                                       PL_STATE_FILE PL_FILE_TEMPORARY,
                                       PL_RECORD_FILE PL_FILE_TEMPORARY};
    content *c = context;
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    bool in_step = false;
    PL_TRY(pl_path_join(path, sizeof path, c->path, name, err));
    if (lstat(path, &st) != 0) return errno == ENOENT ? PL_OK : cannot_see(path, err);
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) in_step |= strcmp(name, step[i]) == 0;
    if (!S_ISREG(st.st_mode) || !in_step) c->is_step = false;
    if (!S_ISREG(st.st_mode)) c->has_links = true;
    const bool is_index = strcmp(name, "index") == 0;
    if (!S_ISREG(st.st_mode) || !(is_index || pl_ends_with(name, ".npy"))) c->is_npy = false;
    c->has_index |= is_index;
    if (S_ISREG(st.st_mode)) c->bytes += disk_bytes(&st);
    return PL_OK;
}

static pl_status look_into(const char *path, content *c, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    *c = (content){.path = path, .is_npy = true, .is_step = true};
    return pl_folder_each(path, list, note_content, c, err);
}

static pl_status add_step(reading *r, seen *n, const content *c, uint64_t step, pl_error *err)
{
    pl_storage_entry *e;
    pl_error why = {0};
    pl_saved saved;
    pl_status status = pl_saved_open(c->path, PL_SAVED_RECORD, &saved, &why);
    const uint64_t recorded = status == PL_OK ? saved.record->step : step;
    pl_saved_deinit(&saved);
    if (status != PL_OK && status != PL_E_DATA) return pl_fail(err, status, "%s", why.text);
    const char *what = status != PL_OK ? "its run.json cannot be read: left alone"
                       : !c->is_step   ? "has things in it that are not of a checkpoint: left alone"
                                       : "a checkpoint";
    PL_TRY(add(r, n, PL_STORAGE_CHECKPOINT, PL_STORAGE_STAYS, what, &e, err));
    e->item.bytes += c->bytes;
    e->shape = PL_STORAGE_STEP;
    e->step = step;
    if (c->has_links) r->s->run[r->folder->run].has_links = true;
    /* decide.c thins out those of runs */
    if (status != PL_OK || !c->is_step || recorded != step) e->run = PL_STORAGE_NONE;
    if (recorded == step) return PL_OK;
    return pl_storage_text(r->s, &e->item.why, err, "a copy of step %" PRIu64 " under another number: left alone",
                           recorded);
}

static pl_status add_left_over(reading *r, seen *n, const content *c, pl_storage_shape shape, pl_error *err)
{
    pl_storage_entry *e = NULL;
    char index[PL_FILE_PATH_MAX];
    bool is_open = false;
    if (shape == PL_STORAGE_TREE && c->has_index) {
        PL_TRY(pl_path_join(index, sizeof index, c->path, "index", err));
        is_open = pl_storage_is_open(index) == 1;
    }
    PL_TRY(add(r, n, PL_STORAGE_TEMPORARY, is_open ? PL_STORAGE_IN_USE : PL_STORAGE_GOES,
               is_open ? "a process is writing it" : "left behind by a process that was killed", &e, err));
    e->item.bytes += c->bytes;
    e->shape = shape;
    return PL_OK;
}

/* It is removed only when the one that took its place is sound. */
static pl_status add_old(reading *r, seen *n, const content *c, pl_error *err)
{
    pl_storage_entry *e;
    pl_error why = {0};
    if (r->s->is_brief) return PL_OK;
    const pl_status status = pl_storage_check_replaced(c->path, &why);
    if (status == PL_OK) return add_left_over(r, n, c, PL_STORAGE_STEP_LEFT_OVER, err);
    if (status != PL_E_DATA) return pl_fail(err, status, "%s", why.text);
    PL_TRY(add(r, n, PL_STORAGE_TEMPORARY, PL_STORAGE_STAYS, NULL, &e, err));
    e->item.bytes += c->bytes;
    return pl_storage_text(r->s, &e->item.why, err, "stays, as the one in its place is not sound: %.300s", why.text);
}

/* A run's step-…, and what a kill leaves of one (store/checkpoint_save.c). */
static pl_status add_of_checkpoints(reading *r, seen *n, const content *c, bool *known, pl_error *err)
{
    char name[PL_STEP_NAME_BYTES];
    uint64_t step;
    *known = true;
    if (pl_step_name_parse(n->name, &step) == 0) return r->s->is_brief ? PL_OK : add_step(r, n, c, step, err);
    if (pl_ends_with(n->name, ".tmp") && c->is_step) {
        snprintf(name, sizeof name, "%.*s", (int)(strlen(n->name) - 4), n->name);
        if (pl_step_name_parse(name, &step) == 0) return add_left_over(r, n, c, PL_STORAGE_STEP_LEFT_OVER, err);
    }
    if (pl_ends_with(n->name, ".old") && c->is_step) {
        snprintf(name, sizeof name, "%.*s", (int)(strlen(n->name) - 4), n->name);
        if (pl_step_name_parse(name, &step) == 0 && find(r, name)) return add_old(r, n, c, err);
    }
    *known = false;
    return PL_OK;
}

static pl_status add_one_folder(reading *r, seen *n, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const char *below;
    bool known = false;
    content c;
    if (n->st.st_dev != r->s->device)
        return add(r, n, PL_STORAGE_UNKNOWN, PL_STORAGE_STAYS, "another disk is mounted there: left alone", NULL, err);
    PL_TRY(pl_path_join(path, sizeof path, r->path, n->name, err));
    if (access(path, R_OK | X_OK) != 0 && errno == EACCES)
        return add(r, n, PL_STORAGE_UNKNOWN, PL_STORAGE_STAYS, "cannot be opened: left alone", NULL, err);
    PL_TRY(look_into(path, &c, err));
    if (is_in_checkpoints(r)) PL_TRY(add_of_checkpoints(r, n, &c, &known, err));
    if (known) return PL_OK;
    if (pl_ends_with(n->name, PL_FILE_TEMPORARY) && c.is_npy) return add_left_over(r, n, &c, PL_STORAGE_TREE, err);
    if (c.has_index && c.is_npy && r->s->is_brief) return PL_OK;
    if (c.has_index && c.is_npy) return add_results(r, n, PL_STORAGE_TREE, c.bytes, true, err);
    PL_TRY(pl_storage_text(r->s, &below, err, "%s%s%s", r->folder->path, r->folder->path[0] ? "/" : "", n->name));
    return add_folder(r->s, below, r->folder->run, err);
}

/* ---- the walk ---- */

static pl_status has_own_lock(reading *r, bool *has, pl_error *err)
{
    head h = {0};
    if (exists_as(r, "lock", S_IFREG)) PL_TRY(read_head(r, find(r, "lock"), &h, err));
    *has = pl_run_head_is_lock(h.bytes, h.count);
    return PL_OK;
}

/* As pl_run_is_folder, from what was seen, but only with a lock of ours: we create none, for that would write there. */
static pl_status note_run(reading *r, pl_storage_folder *folder, pl_error *err)
{
    pl_storage *s = r->s;
    bool is_run = exists_as(r, "config.yaml", S_IFREG) || exists_as(r, "checkpoints", S_IFDIR), is_locked = false;
    if (is_run) PL_TRY(has_own_lock(r, &is_locked, err));
    if (!is_locked) return PL_OK;
    if (pl_grow(&s->run, &s->run_room, s->runs, sizeof *s->run) != 0)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of what lies there", s->root);
    s->run[s->runs] = (pl_storage_run){.path = folder->path, .holder = pl_folder_holder(r->path)};
    folder->run = s->runs++;
    return PL_OK;
}

static pl_status add_each(reading *r, pl_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        seen *n = &r->seen[i];
        if (n->is_taken) continue;
        if (S_ISREG(n->st.st_mode))
            PL_TRY(add_file(r, n, err));
        else if (S_ISDIR(n->st.st_mode))
            PL_TRY(add_one_folder(r, n, err));
        else if (S_ISLNK(n->st.st_mode)) {
            if (is_in_checkpoints(r)) r->s->run[r->folder->run].has_links = true;
            PL_TRY(add(r, n, PL_STORAGE_LINK, PL_STORAGE_STAYS, "a link: it and what it leads to are left alone", NULL,
                       err));
        } else
            PL_TRY(add(r, n, PL_STORAGE_UNKNOWN, PL_STORAGE_STAYS, "no regular file: left alone", NULL, err));
    }
    return PL_OK;
}

static pl_status read_folder(reading *r, pl_storage_folder folder, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    r->folder = &folder;
    r->count = 0;
    PL_TRY(pl_storage_path(r->s, folder.path, r->path, err));
    PL_TRY(pl_folder_each(r->path, list, note_name, r, err));
    if (r->count) qsort(r->seen, r->count, sizeof *r->seen, by_name);
    PL_TRY(look_at_each(r, err));
    PL_TRY(note_run(r, &folder, err));
    return add_each(r, err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const pl_storage_entry *)a)->item.path, ((const pl_storage_entry *)b)->item.path);
}

/* Whatever a process is working on stays as it is. */
static pl_status spare_runs(pl_storage *s, pl_error *err)
{
    for (size_t i = 0; i < s->entries; i++) {
        pl_storage_entry *e = &s->entry[i];
        const long pid = e->run == PL_STORAGE_NONE ? 0 : s->run[e->run].holder;
        if (!pid || (e->item.kind != PL_STORAGE_TEMPORARY && e->item.kind != PL_STORAGE_CHECKPOINT)) continue;
        e->item.fate = PL_STORAGE_IN_USE;
        PL_TRY(pl_storage_text(s, &e->item.why, err, "process %ld is using this run", pid));
    }
    return PL_OK;
}

pl_status pl_storage_walk(pl_storage *s, pl_error *err)
{
    pl_status status = PL_OK;
    reading *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look at it", s->root);
    r->s = s;
    status = add_folder(s, "", PL_STORAGE_NONE, err);
    for (size_t i = 0; i < s->folders && status == PL_OK; i++) status = read_folder(r, s->folder[i], err);
    pl_free(r->seen);
    pl_free(r);
    if (status != PL_OK) return status;
    if (s->entries) qsort(s->entry, s->entries, sizeof *s->entry, by_path);
    return spare_runs(s, err);
}

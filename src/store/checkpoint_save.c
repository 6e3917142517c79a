#include "store/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "store/checkpoint_scratch.h"
#include "store/folder.h"

static const char *const files[] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE};
enum { FILE_COUNT = sizeof files / sizeof *files };

#define STEP_NONE UINT64_MAX

/* OUT/checkpoints/step-…suffix */
static pl_status step_path(const pl_checkpoint *c, uint64_t step, const char *suffix, char path[PL_FILE_PATH_MAX],
                           pl_error *err)
{
    char name[PL_STEP_NAME_BYTES], both[2 * PL_STEP_NAME_BYTES];
    snprintf(both, sizeof both, "%s%s", pl_step_name_print(step, name), suffix);
    return pl_path_join(path, PL_FILE_PATH_MAX, c->folder, both, err);
}

/* Somebody has moved it, or a file of it, away and left a link: it can be loaded, and is never removed or replaced. */
static bool is_linked(const char *path) { return pl_remove_meets_link(path, files, FILE_COUNT); }

static pl_status rename_folder(const char *from, const char *to, unsigned flags, pl_error *err)
{
    int rc = pl_io_inject(PL_IO_RENAME) ? -1 : renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
    if (rc == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* ---- start ---- */

/* .tmp: never finished, or on its way out. .old: put aside while a new one of the same step came (replace below): the
 * new one is there, or the old one comes back. A link stays, unless the run needs its name. */
static pl_status clean_one(void *context, const char *name, pl_error *err)
{
    pl_checkpoint *c = context;
    uint64_t step;
    int is_old = pl_step_name_parse_with(name, ".old", &step) == 0;
    if (!is_old && pl_step_name_parse_with(name, ".tmp", &step)) {
        if (strcmp(name, "latest" PL_FILE_TEMPORARY) != 0 && strcmp(name, "best" PL_FILE_TEMPORARY) != 0) return PL_OK;
        PL_TRY(pl_path_join(c->path, sizeof c->path, c->folder, name, err));
        (void)pl_remove_file(c->path, NULL);
        return PL_OK;
    }
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->folder, name, err));
    if (is_old) {
        PL_TRY(step_path(c, step, "", c->final, err));
        if (access(c->final, F_OK) != 0 && !is_linked(c->final)) return rename_folder(c->path, c->final, 0, err);
    }
    if (step <= c->current && is_linked(c->path)) return PL_OK;
    return pl_remove_folder(c->path, files, FILE_COUNT, err);
}

/* Replaces OUT/checkpoints/<pointer> by the name of the step's folder. */
static pl_status point(pl_checkpoint *c, const char *pointer, uint64_t step, pl_error *err)
{
    char name[PL_STEP_NAME_BYTES + 1];
    pl_file_writer *w = &c->writer.file;
    pl_step_name_print(step, name);
    strcat(name, "\n");
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->folder, pointer, err));
    PL_TRY(pl_file_create(w, c->path, err));
    pl_status status = pl_file_write(w, name, strlen(name), err);
    if (status == PL_OK) return pl_file_commit(w, err);
    pl_file_abandon(w);
    return status;
}

static int points_to(pl_checkpoint *c, const char *pointer, uint64_t step)
{
    char name[PL_STEP_NAME_BYTES + 1], found[PL_STEP_NAME_BYTES + 1];
    uint64_t bytes;
    int fd;
    pl_step_name_print(step, name);
    strcat(name, "\n");
    if (pl_path_join(c->path, sizeof c->path, c->folder, pointer, NULL) != PL_OK) return 0;
    if (pl_file_open(c->path, &fd, &bytes, NULL) != PL_OK) return 0;
    int same = bytes == strlen(name) && pl_file_read_at(fd, c->path, 0, found, bytes, NULL) == PL_OK &&
               memcmp(found, name, bytes) == 0;
    close(fd);
    return same;
}

static int is_there(pl_checkpoint *c, uint64_t step)
{
    return step != STEP_NONE && step_path(c, step, "", c->final, NULL) == PL_OK && access(c->final, F_OK) == 0;
}

/* What a kill between two renames left behind. A checkpoint from another folder (weights to begin with) changes
 * nothing. What is right is not written again: the disk may be full until thinning has made room. */
static pl_status restore_pointers(pl_checkpoint *c, uint64_t latest, pl_error *err)
{
    if (is_there(c, latest) && !points_to(c, "latest", latest)) PL_TRY(point(c, "latest", latest, err));
    if (is_there(c, c->best)) return points_to(c, "best", c->best) ? PL_OK : point(c, "best", c->best, err);
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->folder, "best", err));
    (void)pl_remove_file(c->path, NULL);
    return PL_OK;
}

/* ---- thinning ---- */

/* The path of a step's folder in c->final; false: it is a link, or has one in it, and is left alone. */
static pl_status look_at_step(pl_checkpoint *c, uint64_t step, bool *is_ours, pl_error *err)
{
    PL_TRY(step_path(c, step, "", c->final, err));
    *is_ours = !is_linked(c->final);
    return PL_OK;
}

/* Keeps the highest keep_last steps up to the current one, in descending order. */
static pl_status note_step(void *context, const char *name, pl_error *err)
{
    pl_checkpoint *c = context;
    uint64_t step;
    bool is_ours;
    if (pl_step_name_parse(name, &step) || step > c->current) return PL_OK;
    PL_TRY(look_at_step(c, step, &is_ours, err));
    if (!is_ours) return PL_OK;
    uint32_t at = c->kept_count;
    while (at > 0 && c->kept[at - 1] < step) at--;
    if (at == c->spec->keep_last) return PL_OK;
    uint32_t last = c->kept_count < c->spec->keep_last ? c->kept_count++ : c->kept_count - 1;
    memmove(c->kept + at + 1, c->kept + at, (last - at) * sizeof *c->kept);
    c->kept[at] = step;
    return PL_OK;
}

/* Before the best checkpoint goes (keep_best off): a pointer to what is not there would stop whoever follows it. */
static pl_status forget_best(pl_checkpoint *c, pl_error *err)
{
    if (!points_to(c, "best", c->best)) return PL_OK;
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->folder, "best", err));
    (void)pl_remove_file(c->path, NULL);
    return PL_OK;
}

/* Steps above the current one are of a future that a resume from an older checkpoint has cut off: they go too. */
static pl_status remove_if_not_kept(void *context, const char *name, pl_error *err)
{
    pl_checkpoint *c = context;
    uint64_t step;
    bool is_ours;
    if (pl_step_name_parse(name, &step) || step == c->current) return PL_OK;
    if (c->spec->keep_best && step == c->best) return PL_OK;
    for (uint32_t i = 0; i < c->kept_count; i++)
        if (c->kept[i] == step) return PL_OK;
    PL_TRY(look_at_step(c, step, &is_ours, err));
    if (!is_ours) return PL_OK;
    if (step == c->best) PL_TRY(forget_best(c, err));
    PL_TRY(step_path(c, step, ".tmp", c->temporary, err));
    PL_TRY(rename_folder(c->final, c->temporary, 0, err)); /* never a folder of its name with files missing */
    return pl_remove_folder(c->temporary, files, FILE_COUNT, err);
}

static pl_status refuse_linked(const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE,
                   "%s: is a link, or has one in it, and is not replaced when the run reaches its step; move it away",
                   path);
}

/* The run comes to that step again and puts a new one in its place: whether it can is said now, not after hours. */
static pl_status check_replaceable(pl_checkpoint *c, uint64_t step, pl_error *err)
{
    struct stat st;
    bool is_ours;
    PL_TRY(look_at_step(c, step, &is_ours, err));
    if (!is_ours) return refuse_linked(c->final, err);
    if (access(c->final, W_OK | X_OK) != 0 && errno == EACCES)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be replaced when the run reaches its step: %s; move it away",
                       c->final, strerror(EACCES));
    for (int i = 0; i < FILE_COUNT; i++) {
        PL_TRY(pl_path_join(c->path, sizeof c->path, c->final, files[i], err));
        if (lstat(c->path, &st) == 0 && S_ISDIR(st.st_mode))
            return pl_fail(err, PL_E_STORAGE,
                           "%s: is a folder where a file was expected, which cannot be replaced when the run reaches "
                           "its step; move it away",
                           c->path);
    }
    return PL_OK;
}

static pl_status remove_if_older(void *context, const char *name, pl_error *err)
{
    pl_checkpoint *c = context;
    uint64_t step;
    if (pl_step_name_parse(name, &step)) return PL_OK;
    return step > c->current ? check_replaceable(c, step, err) : remove_if_not_kept(c, name, err);
}

/* The first of them, in the order of the folder, stands in c->path. */
static pl_status count_linked(void *context, const char *name, pl_error *err)
{
    pl_checkpoint *c = context;
    uint64_t step;
    const bool is_step = pl_step_name_parse(name, &step) == 0 || pl_step_name_parse_with(name, ".tmp", &step) == 0 ||
                         pl_step_name_parse_with(name, ".old", &step) == 0;
    if (!is_step) return PL_OK;
    PL_TRY(pl_path_join(c->final, sizeof c->final, c->folder, name, err));
    if (!is_linked(c->final) || c->linked == UINT16_MAX) return PL_OK;
    if (c->linked++ == 0) strcpy(c->path, c->final);
    return PL_OK;
}

/* Told once, and again when there are more of them or fewer. c->temporary is free by now. */
static pl_status note_linked(pl_checkpoint *c, pl_error *err)
{
    const uint16_t before = c->linked;
    char more[64] = "";
    c->linked = 0;
    PL_TRY(pl_folder_each(c->folder, c->list, count_linked, c, err));
    c->has_note = c->linked && c->linked != before;
    if (!c->has_note) return PL_OK;
    if (c->linked > 1) snprintf(more, sizeof more, " (and %u more there)", c->linked - 1u);
    snprintf(c->temporary, sizeof c->temporary,
             "%.300s is a link, or has one in it%s: left alone, not counted by train.keep_last, and as good to resume "
             "from as any other; remove it by hand when it is no longer needed",
             c->path, more);
    return PL_OK;
}

const char *pl_checkpoint_take_note(pl_checkpoint *c)
{
    const bool has_note = c->has_note;
    c->has_note = false;
    return has_note ? c->temporary : NULL;
}

static pl_status thin_out(pl_checkpoint *c, pl_error *err)
{
    c->kept_count = 0;
    PL_TRY(pl_folder_each(c->folder, c->list, note_step, c, err));
    PL_TRY(pl_folder_each(c->folder, c->list, remove_if_not_kept, c, err));
    return note_linked(c, err);
}

/* A kill after a save may have come before its thinning, and the run may have nothing left to save. Later steps stay
 * until something is saved: where this is a fall-back, one of them is the damaged one. */
static pl_status thin_out_at_start(pl_checkpoint *c, uint64_t resumed, pl_error *err)
{
    if (!is_there(c, resumed)) return PL_OK;
    c->current = resumed;
    c->kept_count = 0;
    PL_TRY(pl_folder_each(c->folder, c->list, note_step, c, err));
    return pl_folder_each(c->folder, c->list, remove_if_older, c, err);
}

/* ---- create ---- */

static pl_status put_in_order(pl_checkpoint *c, const pl_checkpoint_spec *spec, const pl_record *resumed, pl_error *err)
{
    const uint64_t step = resumed ? resumed->step : STEP_NONE;
    c->spec = spec;
    c->best = resumed && resumed->has_best ? resumed->best_step : STEP_NONE;
    c->kept = (uint64_t *)(c + 1);
    c->record_text = (char *)(c->kept + spec->keep_last);
    PL_TRY(pl_path_join(c->folder, sizeof c->folder, spec->folder, "checkpoints", err));
    PL_TRY(pl_folder_create(c->folder, err));
    c->current = resumed ? resumed->step : 0;
    PL_TRY(pl_folder_each(c->folder, c->list, clean_one, c, err));
    PL_TRY(restore_pointers(c, step, err));
    return thin_out_at_start(c, step, err);
}

pl_status pl_checkpoint_create(const pl_checkpoint_spec *spec, const pl_record *resumed, void *scratch,
                               uint64_t scratch_bytes, pl_checkpoint **out, pl_error *err)
{
    pl_checkpoint_sizes sizes;
    pl_checkpoint *c = scratch;
    *out = NULL;
    PL_TRY(pl_checkpoint_measure(spec, &sizes, err));
    if (scratch_bytes < sizes.scratch_bytes)
        return pl_fail(err, PL_E_INTERNAL, "saving needs %" PRIu64 " bytes of scratch memory, %" PRIu64 " were given",
                       sizes.scratch_bytes, scratch_bytes);
    memset(scratch, 0, sizes.scratch_bytes); /* touched now: no page fault in a save */
    c->record_bytes = sizes.record_bytes;
    PL_TRY(put_in_order(c, spec, resumed, err));
    PL_TRY(note_linked(c, err));
    *out = c;
    return PL_OK;
}

pl_status pl_checkpoint_tidy(const pl_checkpoint_spec *spec, const pl_record *latest, pl_error *err)
{
    pl_checkpoint *c = pl_alloc(1, pl_checkpoint_scratch_size(spec, 0));
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to put checkpoints in order");
    const pl_status status = put_in_order(c, spec, latest, err);
    pl_free(c);
    return status;
}

/* ---- save ---- */

static pl_status write_record(pl_checkpoint *c, const pl_record *record, pl_error *err)
{
    pl_file_writer *w = &c->writer.file;
    PL_TRY(pl_record_print(record, c->record_text, c->record_bytes, err));
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->temporary, PL_RECORD_FILE, err));
    PL_TRY(pl_file_create(w, c->path, err));
    pl_status status = pl_file_write(w, c->record_text, (size_t)c->record_bytes, err);
    if (status == PL_OK) return pl_file_commit(w, err);
    pl_file_abandon(w);
    return status;
}

static pl_status write_tensors(pl_checkpoint *c, const char *name, const pl_st_list *list, pl_record_file *file,
                               pl_error *err)
{
    PL_TRY(pl_path_join(c->path, sizeof c->path, c->temporary, name, err));
    PL_TRY(pl_safetensors_write(&c->writer, c->path, list, &file->checksum, err));
    file->bytes = c->writer.file.bytes;
    return PL_OK;
}

static pl_status write_files(pl_checkpoint *c, pl_record *record, pl_error *err)
{
    PL_TRY(pl_remove_folder(c->temporary, files, FILE_COUNT, err));
    PL_TRY(pl_folder_create_one(c->temporary, err));
    PL_TRY(write_tensors(c, PL_MODEL_FILE, &c->spec->model, &record->model, err));
    PL_TRY(write_tensors(c, PL_STATE_FILE, &c->spec->state, &record->state, err));
    return write_record(c, record, err);
}

/* Gives the finished folder its name. When one of that step is there (a step done again after a fall-back) the two
 * trade names in one system call; where the file system cannot, the old one steps aside first (clean_one puts that
 * right). */
static pl_status replace(pl_checkpoint *c, pl_error *err)
{
    if (is_linked(c->final)) return refuse_linked(c->final, err);
    if (access(c->final, F_OK) != 0) {
        PL_TRY(rename_folder(c->temporary, c->final, 0, err));
        return pl_folder_sync(c->folder, err);
    }
    if (rename_folder(c->temporary, c->final, RENAME_EXCHANGE, err) == PL_OK) {
        PL_TRY(pl_folder_sync(c->folder, err));
        return pl_remove_folder(c->temporary, files, FILE_COUNT, err);
    }
    PL_TRY(step_path(c, c->current, ".old", c->path, err));
    PL_TRY(rename_folder(c->final, c->path, 0, err));
    pl_status status = rename_folder(c->temporary, c->final, 0, err);
    if (status != PL_OK) {
        renameat2(AT_FDCWD, c->path, AT_FDCWD, c->final, 0);
        return status;
    }
    PL_TRY(pl_folder_sync(c->folder, err));
    return pl_remove_folder(c->path, files, FILE_COUNT, err);
}

static pl_status write_and_name(pl_checkpoint *c, pl_record *record, pl_error *err)
{
    PL_TRY(step_path(c, record->step, "", c->final, err));
    PL_TRY(step_path(c, record->step, ".tmp", c->temporary, err));
    pl_status status = write_files(c, record, err);
    if (status == PL_OK) status = replace(c, err);
    if (status == PL_OK) return PL_OK;
    pl_error ignored;
    if (pl_remove_folder(c->temporary, files, FILE_COUNT, &ignored) != PL_OK) { /* the next start tries again */
    }
    return status;
}

/* The best first: a run whose last step is the latest is taken for complete, and whoever uses it takes its best. */
static pl_status point_best_and_latest(pl_checkpoint *c, const pl_record *record, pl_error *err)
{
    if (record->has_best && record->best_step == record->step) {
        PL_TRY(point(c, "best", record->step, err));
        c->best = record->step;
    }
    return point(c, "latest", record->step, err);
}

pl_status pl_checkpoint_save(pl_checkpoint *c, pl_record *record, pl_error *err)
{
    static const char *const stages[] = {"could not be saved (earlier ones are unchanged)",
                                         "is written, but could not be made the latest or the best",
                                         "is saved, but an older one could not be removed"};
    int stage = 0;
    c->current = record->step;
    pl_status status = write_and_name(c, record, err);
    if (status == PL_OK) stage = 1, status = point_best_and_latest(c, record, err);
    if (status == PL_OK) stage = 2, status = thin_out(c, err);
    if (status == PL_OK) return PL_OK;
    return pl_fail_prefix(err, status, "the checkpoint of step %" PRIu64 " %s", record->step, stages[stage]);
}

#include "store/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/folder.h"

enum { POINTER_FILE_MAX = 256 };

void pl_saved_deinit(pl_saved *s)
{
    pl_record_destroy(s->record);
    s->record = NULL;
}

/* ---- one checkpoint ---- */

static pl_status verify_file(const char *folder, const char *name, const pl_record_file *file, void *buffer,
                             pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    uint64_t checksum, bytes;
    int fd;
    PL_TRY(pl_path_join(path, sizeof path, folder, name, err));
    PL_TRY(pl_file_open(path, &fd, &bytes, err)); /* the size first: reading may take long */
    close(fd);
    if (bytes == file->bytes) PL_TRY(pl_checksum_file(path, buffer, PL_SAVED_READ_BYTES, &checksum, &bytes, err));
    if (bytes != file->bytes)
        return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes, but run.json says %" PRIu64 " bytes; it is damaged",
                       path, bytes, file->bytes);
    if (checksum != file->checksum)
        return pl_fail(err, PL_E_DATA, "%s: does not match its checksum in run.json; it is damaged", path);
    return PL_OK;
}

/* Who publishes weights leaves it out. */
static pl_status require_state(const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    bool is_there;
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_STATE_FILE, err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (is_there) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: is missing, and training cannot go on from weights alone (eval and generate can)", path);
}

static pl_status verify(const pl_saved *s, pl_saved_part part, pl_error *err)
{
    if (part == PL_SAVED_WHOLE) PL_TRY(require_state(s->path, err));
    void *buffer = pl_alloc(1, PL_SAVED_READ_BYTES);
    if (!buffer) return pl_fail(err, PL_E_NOMEM, "%s: no memory to check it", s->path);
    pl_status status = verify_file(s->path, PL_MODEL_FILE, &s->record->model, buffer, err);
    if (status == PL_OK && part == PL_SAVED_WHOLE)
        status = verify_file(s->path, PL_STATE_FILE, &s->record->state, buffer, err);
    pl_free(buffer);
    return status;
}

pl_status pl_saved_open(const char *folder, pl_saved_part part, pl_saved *s, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    *s = (pl_saved){0};
    if (strlen(folder) >= sizeof s->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", folder);
    strcpy(s->path, folder);
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_RECORD_FILE, err));
    PL_TRY(pl_record_read(path, &s->record, err));
    pl_status status = part == PL_SAVED_RECORD ? PL_OK : verify(s, part, err);
    if (status != PL_OK) pl_saved_deinit(s);
    return status;
}

/* ---- which one ---- */

/* The step that the file OUT/checkpoints/<pointer> names. */
static pl_status read_pointer(const char *checkpoints, const char *pointer, uint64_t *step, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text;
    PL_TRY(pl_path_join(path, sizeof path, checkpoints, pointer, err));
    PL_TRY(pl_file_read_all(path, POINTER_FILE_MAX, &text, NULL, err));
    text[strcspn(text, "\n")] = 0;
    int rc = pl_step_name_parse(text, step);
    pl_free(text);
    if (rc == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: does not name a checkpoint; \"step-…\" was expected", path);
}

/* The highest step below a bound among the folders there. */
typedef struct search {
    uint64_t below, highest;
    bool found;
} search;

static pl_status note_highest(void *context, const char *name, pl_error *err)
{
    search *s = context;
    uint64_t step;
    (void)err;
    if (pl_step_name_parse(name, &step) || step >= s->below || (s->found && step <= s->highest)) return PL_OK;
    s->highest = step;
    s->found = true;
    return PL_OK;
}

static pl_status highest_below(const char *checkpoints, uint64_t below, search *s, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    *s = (search){.below = below};
    return pl_folder_each(checkpoints, list, note_highest, s, err);
}

static pl_status open_step(const char *checkpoints, uint64_t step, pl_saved_part part, pl_saved *s, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], name[PL_STEP_NAME_BYTES];
    PL_TRY(pl_path_join(path, sizeof path, checkpoints, pl_step_name_print(step, name), err));
    return pl_saved_open(path, part, s, err);
}

/* Damage is what falling back is for; a lack of memory, of rights or of descriptors is not: the checkpoint is sound. */
static int is_damage(pl_status status) { return status == PL_E_DATA; }

/* From the newest folder down (the one already tried is met again and fails again). */
static pl_status fall_back(const char *checkpoints, pl_saved_part part, pl_saved *s, const pl_error *first,
                           pl_error *err)
{
    search next;
    pl_error why = *first, again;
    for (uint64_t below = UINT64_MAX;; below = next.highest) {
        PL_TRY(highest_below(checkpoints, below, &next, err));
        if (!next.found) break;
        pl_status status = open_step(checkpoints, next.highest, part, s, &again);
        if (status == PL_OK) {
            snprintf(s->warning, sizeof s->warning, "%.700s; step %" PRIu64 " is used instead", why.text, next.highest);
            return PL_OK;
        }
        if (!is_damage(status)) return pl_fail(err, status, "%s", again.text);
    }
    return pl_fail(err, PL_E_DATA, "%s: no sound checkpoint is left: %s", checkpoints, why.text);
}

pl_status pl_saved_find(const char *folder, pl_saved_part part, pl_saved *s, pl_error *err)
{
    char checkpoints[PL_FILE_PATH_MAX];
    uint64_t step;
    search any;
    pl_error why;
    *s = (pl_saved){0};
    PL_TRY(pl_path_join(checkpoints, sizeof checkpoints, folder, "checkpoints", err));
    PL_TRY(highest_below(checkpoints, UINT64_MAX, &any, err));
    if (!any.found) return PL_OK;
    pl_status status = read_pointer(checkpoints, "latest", &step, &why);
    if (status == PL_OK) status = open_step(checkpoints, step, part, s, &why);
    if (status == PL_OK) return PL_OK;
    if (!is_damage(status)) return pl_fail(err, status, "%s", why.text);
    return fall_back(checkpoints, part, s, &why, err);
}

pl_status pl_saved_find_best(const char *folder, pl_saved_part part, pl_saved *s, pl_error *err)
{
    char checkpoints[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    uint64_t step;
    bool is_there;
    pl_error why;
    *s = (pl_saved){0};
    PL_TRY(pl_path_join(checkpoints, sizeof checkpoints, folder, "checkpoints", err));
    PL_TRY(pl_path_join(path, sizeof path, checkpoints, "best", err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    pl_status status = read_pointer(checkpoints, "best", &step, &why);
    if (status == PL_OK) status = open_step(checkpoints, step, part, s, &why);
    if (status == PL_OK || !is_damage(status)) return status == PL_OK ? status : pl_fail(err, status, "%s", why.text);
    return pl_fail(err, PL_E_DATA,
                   "%.600s; it is the run's best checkpoint: put it back, or take another one with `checkpoint` (of a "
                   "training that begins with it: another run with train.init_from)",
                   why.text);
}

pl_status pl_saved_refuse_new(const char *folder, const pl_saved *s, pl_error *err)
{
    if (!s->record) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: holds a run that is at step %" PRIu64
                   "; go on with `run.resume`, start over with `overwrite`, or "
                   "choose another folder with `run.out`",
                   folder, s->record->step);
}

pl_status pl_saved_refuse_past(const char *folder, const pl_saved *s, uint64_t steps, pl_error *err)
{
    if (!s->record || s->record->step <= steps) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: holds a run that is at step %" PRIu64 ", past the %" PRIu64 " steps asked for in all; "
                   "ask for more (`train.steps`, `train.epochs`), or begin another run with `run.out`",
                   folder, s->record->step, steps);
}

pl_status pl_saved_refuse_none(const char *folder, const pl_saved *s, pl_error *err)
{
    if (s->record) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%s: holds no checkpoint to go on from; leave `run.resume` out to begin, or give `run.resume`=auto, which "
        "begins where there is none",
        folder);
}

/* ---- is it of this model? ---- */

static pl_status open_tensors(const pl_saved *s, const char *name, pl_safetensors **file, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    *file = NULL;
    PL_TRY(pl_path_join(path, sizeof path, s->path, name, err));
    return pl_safetensors_open(path, file, err);
}

/* The first lines that differ, each cut to a readable length. */
static pl_status name_config_difference(const pl_saved *s, const char *config, pl_error *err)
{
    const char *a = s->record->config, *b = config;
    int line = 1;
    while (*a || *b) {
        int n = (int)strcspn(a, "\n"), m = (int)strcspn(b, "\n");
        if (n != m || strncmp(a, b, (size_t)n) != 0)
            return pl_fail(err, PL_E_CONFIG,
                           "%s: is a checkpoint of another model: line %d of its config is \"%.*s\", here it"
                           " is \"%.*s\"; resume with the config it was made with",
                           s->path, line, n < 120 ? n : 120, a, m < 120 ? m : 120, b);
        a += n + (a[n] == '\n'), b += m + (b[m] == '\n');
        line++;
    }
    return pl_fail(err, PL_E_CONFIG,
                   "%s: is a checkpoint of another model, though tensors and config are the same; another"
                   " version of Plimsoll made it",
                   s->path);
}

pl_status pl_saved_match(const pl_saved *s, uint64_t model_hash, const char *config, const pl_st_list *model,
                         pl_error *err)
{
    pl_safetensors *file;
    pl_error why;
    if (s->record->model_hash == model_hash) return PL_OK;
    PL_TRY(open_tensors(s, PL_MODEL_FILE, &file, err));
    pl_status status = pl_safetensors_match_all(file, model, &why);
    pl_safetensors_destroy(file);
    if (status == PL_OK) return name_config_difference(s, config, err);
    return pl_fail(err, PL_E_CONFIG, "%s: is a checkpoint of another model: %s", s->path, why.text);
}

/* ---- load ---- */

static pl_status read_all(const pl_safetensors *file, const pl_st_list *list, pl_error *err)
{
    for (size_t i = 0; i < list->count; i++) PL_TRY(pl_safetensors_read(file, &list->entries[i], err));
    return PL_OK;
}

/* As train.optimizer_state calls it. */
static const char *form_name(pl_st_dtype dtype)
{
    return dtype == PL_ST_BF16 ? "bf16" : dtype == PL_ST_U8 ? "8bit" : dtype == PL_ST_F32 ? "f32" : "another form";
}

/* The state in another form is no damage: the run was started with another setting. */
static pl_status match_state(const pl_saved *s, const pl_safetensors *file, const pl_st_list *state, pl_error *err)
{
    pl_status status = pl_safetensors_match_all(file, state, err);
    for (size_t i = 0; status == PL_E_DATA && i < state->count; i++) {
        const pl_st_entry *e = &state->entries[i];
        const pl_st_tensor *t = pl_safetensors_find(file, e->name);
        if (!t || t->dtype == e->dtype) continue;
        return pl_fail(err, PL_E_CONFIG,
                       "%.400s: keeps the optimizer's state as %s, this run keeps it as %s (%.200s); resume with "
                       "train.optimizer_state as it was, or start anew in another folder with `run.out`",
                       s->path, form_name(t->dtype), form_name(e->dtype), e->name);
    }
    return status;
}

pl_status pl_saved_count(const pl_saved *s, const pl_st_list *model, size_t *found, size_t *all, pl_error *err)
{
    pl_safetensors *file;
    *found = 0;
    PL_TRY(open_tensors(s, PL_MODEL_FILE, &file, err));
    for (size_t i = 0; i < model->count; i++) *found += pl_safetensors_find(file, model->entries[i].name) != NULL;
    *all = pl_safetensors_count(file);
    pl_safetensors_destroy(file);
    return PL_OK;
}

pl_status pl_saved_lacks(const pl_saved *s, const pl_st_list *state, bool *lacks, pl_error *err)
{
    pl_safetensors *file;
    *lacks = false;
    PL_TRY(open_tensors(s, PL_STATE_FILE, &file, err));
    for (size_t i = 0; i < state->count; i++)
        *lacks |= state->entries[i].optional && !pl_safetensors_find(file, state->entries[i].name);
    pl_safetensors_destroy(file);
    return PL_OK;
}

pl_status pl_saved_load(const pl_saved *s, const pl_st_list *model, const pl_st_list *state, pl_error *err)
{
    pl_safetensors *model_file = NULL, *state_file = NULL;
    pl_status status;
    PL_TRY_DONE(open_tensors(s, PL_MODEL_FILE, &model_file, err));
    PL_TRY_DONE(pl_safetensors_match_all(model_file, model, err));
    if (state) {
        PL_TRY_DONE(open_tensors(s, PL_STATE_FILE, &state_file, err));
        PL_TRY_DONE(match_state(s, state_file, state, err));
    }
    PL_TRY_DONE(read_all(model_file, model, err));
    if (state) PL_TRY_DONE(read_all(state_file, state, err));
done:
    pl_safetensors_destroy(model_file);
    pl_safetensors_destroy(state_file);
    return status;
}

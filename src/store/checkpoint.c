/* Names and sizes of checkpoints: what the plan asks before the run. */
#include "store/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "base/size.h"
#include "store/checkpoint_scratch.h"
#include "store/folder.h"

/* Disks give space in blocks; this is the usual one, and what is added for each file and folder. */
enum { BLOCK_BYTES = 4096 };

const char *pl_step_name_print(uint64_t step, char name[PL_STEP_NAME_BYTES])
{
    snprintf(name, PL_STEP_NAME_BYTES, "step-%08" PRIu64, step);
    return name;
}

int pl_step_name_parse(const char *name, uint64_t *step)
{
    char again[PL_STEP_NAME_BYTES];
    *step = 0;
    if (strncmp(name, "step-", 5) != 0 || strlen(name) > 5 + 19) return -1;
    for (const char *c = name + 5; *c; c++) {
        if (*c < '0' || *c > '9') return -1;
        *step = *step * 10 + (uint64_t)(*c - '0');
    }
    return strcmp(pl_step_name_print(*step, again), name) == 0 ? 0 : -1;
}

int pl_step_name_parse_with(const char *name, const char *suffix, uint64_t *step)
{
    char stem[2 * PL_STEP_NAME_BYTES];
    size_t n = strlen(name), m = strlen(suffix);
    if (n < m || strcmp(name + n - m, suffix) != 0 || n - m >= sizeof stem) return -1;
    memcpy(stem, name, n - m);
    stem[n - m] = 0;
    return pl_step_name_parse(stem, step);
}

pl_status pl_checkpoint_measure(const pl_checkpoint_spec *spec, pl_checkpoint_sizes *sizes, pl_error *err)
{
    uint64_t at_once = (uint64_t)spec->keep_last + (spec->keep_best ? 1 : 0) + 1;
    *sizes = (pl_checkpoint_sizes){0};
    if (spec->keep_last < 1) return pl_fail(err, PL_E_USAGE, "at least one checkpoint has to be kept");
    PL_TRY(pl_safetensors_check(&spec->model, err));
    PL_TRY(pl_safetensors_check(&spec->state, err));
    sizes->model_bytes = pl_safetensors_file_bytes(&spec->model);
    sizes->state_bytes = pl_safetensors_file_bytes(&spec->state);
    sizes->record_bytes = pl_record_bytes(spec->record);
    if (!sizes->record_bytes) return pl_fail(err, PL_E_NOMEM, "no memory to measure run.json");
    if (sizes->record_bytes > PL_RECORD_BYTES_MAX)
        return pl_fail(err, PL_E_USAGE,
                       "the config is too long for run.json: %" PRIu64 " bytes, at most %d are allowed",
                       sizes->record_bytes, PL_RECORD_BYTES_MAX);
    sizes->checkpoint_bytes = sizes->model_bytes + sizes->state_bytes + sizes->record_bytes;
    if (pl_size_mul(sizes->checkpoint_bytes, at_once, &sizes->disk_bytes) || sizes->disk_bytes > INT64_MAX)
        return pl_fail(err, PL_E_USAGE, "keeping %u checkpoints of %" PRIu64 " bytes is more than a disk can hold",
                       spec->keep_last, sizes->checkpoint_bytes);
    sizes->scratch_bytes = pl_checkpoint_scratch_size(spec, sizes->record_bytes);
    return PL_OK;
}

/* Bytes that are taken already: by checkpoints, which go as new ones come, and by what create removes at once. */
typedef struct usage {
    const char *checkpoints;
    uint64_t kept_bytes, leftover_bytes;
} usage;

/* The folder's three files, each under its name or its temporary one. */
static uint64_t folder_bytes(const char *checkpoints, const char *name)
{
    static const char *const files[] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE};
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    uint64_t bytes = 0;
    if (pl_path_join(path, sizeof path, checkpoints, name, NULL) != PL_OK) return 0;
    if (pl_remove_meets_link(path, files, sizeof files / sizeof *files)) return 0; /* it stays */
    for (size_t i = 0; i < 2 * sizeof files / sizeof *files; i++) {
        int n =
            snprintf(path, sizeof path, "%s/%s/%s%s", checkpoints, name, files[i / 2], i % 2 ? PL_FILE_TEMPORARY : "");
        if (n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0) bytes += (uint64_t)st.st_blocks * 512;
    }
    return bytes;
}

/* An .old comes back when there is no other of its step (checkpoint_save.c). */
static int is_leftover(const char *checkpoints, const char *name)
{
    char path[PL_FILE_PATH_MAX], final[PL_STEP_NAME_BYTES];
    uint64_t step;
    if (pl_step_name_parse_with(name, ".tmp", &step) == 0) return 1;
    if (pl_step_name_parse_with(name, ".old", &step)) return 0;
    return pl_path_join(path, sizeof path, checkpoints, pl_step_name_print(step, final), NULL) == PL_OK &&
           access(path, F_OK) == 0;
}

static pl_status add_usage(void *context, const char *name, pl_error *err)
{
    usage *u = context;
    uint64_t step;
    (void)err;
    if (is_leftover(u->checkpoints, name))
        u->leftover_bytes += folder_bytes(u->checkpoints, name);
    else if (pl_step_name_parse(name, &step) == 0 || pl_step_name_parse_with(name, ".old", &step) == 0)
        u->kept_bytes += folder_bytes(u->checkpoints, name);
    return PL_OK;
}

static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* A limit on the size of files (ulimit -f) is told now, not at the first save. */
static pl_status require_file_size(const char *folder, const pl_checkpoint_sizes *sizes, pl_error *err)
{
    struct rlimit limit;
    uint64_t largest = sizes->model_bytes > sizes->state_bytes ? sizes->model_bytes : sizes->state_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= largest) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: a checkpoint has a file of %" PRIu64 " bytes, but no file may be larger than %" PRIu64
                   " bytes (ulimit -f): raise that limit",
                   folder, largest, (uint64_t)limit.rlim_cur);
}

pl_status pl_checkpoint_reserve(const pl_checkpoint_spec *spec, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], what[64];
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    pl_checkpoint_sizes sizes;
    usage there = {.checkpoints = path};
    PL_TRY(pl_checkpoint_measure(spec, &sizes, err));
    PL_TRY(require_file_size(spec->folder, &sizes, err));
    PL_TRY(pl_path_join(path, sizeof path, spec->folder, "checkpoints", err));
    PL_TRY(pl_folder_each(path, list, add_usage, &there, err));
    /* Old ones go only after the new one is there, so however many there are, one more must find room. */
    uint64_t copies = sizes.disk_bytes / sizes.checkpoint_bytes;
    uint64_t one = sizes.checkpoint_bytes + 4 * BLOCK_BYTES; /* three files and their folder */
    uint64_t more = less(copies * one, there.kept_bytes);
    snprintf(what, sizeof what, "%" PRIu64 " checkpoints", copies);
    return pl_disk_require(spec->folder, less(more > one ? more : one, there.leftover_bytes), what, err);
}

/* Checkpoints of a run, in OUT/checkpoints:
 *
 *   step-00001200/          model.safetensors   weights, running statistics, averages …: for anyone to load
 *                           state.safetensors   what only training needs: optimizer, loss scale …
 *                           run.json            step, place in the data, hashes, config, checksums (record.h)
 *   latest, best            text files with the name of a folder
 *   step-00001300.tmp/      being written, or left over from a crash: removed at the next start
 *
 * A folder gets its name by one rename, after everything in it is on disk; then `latest` is replaced, then `best`, then
 * folders that are no longer kept go. A kill at any instant leaves the old latest or the new one, whole. run.json says
 * which step is best, so a `best` that a kill left behind is put right at the next start, and so are folders that a
 * kill kept from going.
 *
 * After create no memory is asked for: what saving needs lies in the caller's block, its size known beforehand, as are
 * the bytes on disk. Saving is the work of one thread, while nothing writes the tensors. */
#ifndef PL_STORE_CHECKPOINT_H
#define PL_STORE_CHECKPOINT_H

#include "store/record.h"
#include "store/safetensors.h"

/* What is saved where. The lists, their entries and the texts of the record must outlive the checkpoint. */
typedef struct pl_checkpoint_spec {
    const char *folder; /* OUT */
    pl_st_list model, state;
    uint32_t keep_last;      /* at least 1 */
    bool keep_best;          /* one more is kept when the best is not among the last */
    const pl_record *record; /* its texts and the keys of its counters; numbers are not looked at */
} pl_checkpoint_spec;

typedef struct pl_checkpoint_sizes {
    uint64_t model_bytes, state_bytes, record_bytes; /* of the three files */
    uint64_t checkpoint_bytes;                       /* their sum: one checkpoint */
    uint64_t disk_bytes;                             /* at most at once: kept, best, and the one being written */
    uint64_t scratch_bytes;                          /* the block for create */
} pl_checkpoint_sizes;

/* Checks the lists and tells every size; pure but for the names it checks. */
pl_status pl_checkpoint_measure(const pl_checkpoint_spec *, pl_checkpoint_sizes *, pl_error *);

/* PL_E_STORAGE when the disk has less free than the run will still take (what lies in OUT/checkpoints counts). */
pl_status pl_checkpoint_reserve(const pl_checkpoint_spec *, pl_error *);

/* ---- checkpoint_save.c ---- */

typedef struct pl_checkpoint pl_checkpoint;

/* Makes the folder, removes what crashes left behind, makes `latest` and `best` those of the record that the run goes
 * on from, and removes the older ones that are not kept; a fresh run (NULL) has no best and removes none. Comes before
 * reserve, for which it makes room. The caller holds the folder's lock (folder.h). `scratch` is aligned to
 * 64 and stays the caller's; nothing to destroy. The first save removes checkpoints of later steps: they are of a
 * cut-off future. */
pl_status pl_checkpoint_create(const pl_checkpoint_spec *, const pl_record *resumed, void *scratch,
                               uint64_t scratch_bytes, pl_checkpoint **, pl_error *);

/* What create does to the folder, for a run whose training is complete and was killed before it thinned: its next
 * process only evaluates. Of the spec the lists and the record are not looked at. The caller holds the lock. */
pl_status pl_checkpoint_tidy(const pl_checkpoint_spec *, const pl_record *latest, pl_error *);

/* After create or save, once: a sentence about folders of steps that are links, or have one in them; NULL: there is no
 * new one. Somebody moved what they lead to: it is neither removed nor replaced and counts for no checkpoint that is
 * kept. Valid until the next call. */
const char *pl_checkpoint_take_note(pl_checkpoint *);

/* Saves the tensors as they are now. In record, has_best with best_step == step makes this one the best. Fills the
 * record's two files. On failure the checkpoints before are as they were. */
pl_status pl_checkpoint_save(pl_checkpoint *, pl_record *, pl_error *);

/* ---- checkpoint_forget.c ---- */

/* All checkpoints in the folder of a run go, whatever is in them; links stay, and are PL_E_STORAGE. The caller holds
 * the folder's lock. */
pl_status pl_saved_forget(const char *folder, pl_error *);

/* ---- checkpoint_load.c ---- */

enum { PL_SAVED_READ_BYTES = 64 << 10 }; /* of a file at once, while its checksum is made */

typedef struct pl_saved {
    char path[PL_FILE_PATH_MAX]; /* of the checkpoint's folder */
    pl_record *record;
    char warning[PL_ERROR_TEXT_BYTES]; /* empty, or what is damaged and what is used in its place */
} pl_saved;

/* How much of a checkpoint is needed; the rest need not be there and is not looked at. */
typedef enum pl_saved_part {
    PL_SAVED_RECORD,  /* a look at the tensors may take long */
    PL_SAVED_WEIGHTS, /* all that evaluating and generating need */
    PL_SAVED_WHOLE,
} pl_saved_part;

/* The latest checkpoint of OUT whose files match their checksums. When the latest is damaged the newest sound one
 * before it, with a warning. PL_OK and record NULL when OUT has none; PL_E_DATA when all it has are damaged. */
pl_status pl_saved_find(const char *folder, pl_saved_part, pl_saved *, pl_error *);

/* The best one of OUT (`best`). PL_OK and record NULL when there is no `best`; PL_E_DATA when that one is damaged:
 * a caller that asks for the best weights is not given others. */
pl_status pl_saved_find_best(const char *folder, pl_saved_part, pl_saved *, pl_error *);

/* PL_E_STORAGE when something was found: a fresh run does not silently continue or overwrite another one. */
pl_status pl_saved_refuse_new(const char *folder, const pl_saved *, pl_error *);
/* PL_E_CONFIG when what was found is past so many steps: a run does not go back. */
pl_status pl_saved_refuse_past(const char *folder, const pl_saved *, uint64_t steps, pl_error *);
/* PL_E_DATA when nothing was found: a run that is to go on does not silently begin. */
pl_status pl_saved_refuse_none(const char *folder, const pl_saved *, pl_error *);

/* This one: a checkpoint's own folder. */
pl_status pl_saved_open(const char *checkpoint_folder, pl_saved_part, pl_saved *, pl_error *);

/* Is it of this model? Otherwise PL_E_CONFIG with the first tensor, or the first line of the config, that differs. */
pl_status pl_saved_match(const pl_saved *, uint64_t model_hash, const char *config, const pl_st_list *model,
                         pl_error *);

/* Reads every entry's data; state may be NULL (weights alone). Names, dtypes and shapes of all are checked before the
 * first byte is read, so a mismatch leaves the memory as it was. */
pl_status pl_saved_load(const pl_saved *, const pl_st_list *model, const pl_st_list *state, pl_error *);

/* How many tensors of the list its model has, and how many in all. */
pl_status pl_saved_count(const pl_saved *, const pl_st_list *model, size_t *found, size_t *all, pl_error *);
/* Does its file of that list lack one of the optional entries? */
pl_status pl_saved_lacks(const pl_saved *, const pl_st_list *state, bool *lacks, pl_error *);

void pl_saved_deinit(pl_saved *); /* harmless on a zeroed one */

/* ---- checkpoint_rehearse.c ---- */

/* Asks the heap for what finding and loading a checkpoint like this one would (its state, too, where it has any), and
 * gives it back; `goes_on` is called, where it is not NULL, while the record is held. No file is touched. */
pl_status pl_saved_rehearse(const pl_checkpoint_spec *, pl_status (*goes_on)(void *, const pl_saved *, pl_error *),
                            void *context, pl_error *);

/* ---- names, shared by both ---- */

enum { PL_STEP_NAME_BYTES = 32 };
const char *pl_step_name_print(uint64_t step, char name[PL_STEP_NAME_BYTES]); /* "step-00001200" */
int pl_step_name_parse(const char *name, uint64_t *step);                     /* 0 on success; no suffix allowed */

#define PL_MODEL_FILE  "model.safetensors"
#define PL_STATE_FILE  "state.safetensors"
#define PL_RECORD_FILE "run.json"

#endif

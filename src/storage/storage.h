/* The storage of a folder: a list of what lies there, each entry with what is to become of it and why.
 *
 *   look.c    walks the folder and identifies what it finds: by content, or by a name that nothing else has
 *   decide.c  what becomes of checkpoints, caches and parts under the rules
 *   output.c  what commands wrote for people and other programs
 *   held.c    who is using it: asked of the kernel, never guessed from an age
 *   clean.c   does it, item by item; if killed, what is left is whole, and the next clean finishes
 *   step.c    the folder of a checkpoint
 *   own.c     the files of results, as their layout names them
 *   join.c    parts in temp/ as one file in datasets/
 *
 * Nothing is deleted that is not in the list, and each item is looked at again under its lock. */
#ifndef PL_STORAGE_STORAGE_H
#define PL_STORAGE_STORAGE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/file.h"
#include "plimsoll/storage.h"
#include "store/run_files.h"

#define PL_STORAGE_NONE SIZE_MAX

#define PL_STORAGE_TEMP     "temp"
#define PL_STORAGE_DATASETS "datasets"

/* How a thing is removed. */
typedef enum pl_storage_shape {
    PL_STORAGE_FILE,
    PL_STORAGE_TREE,          /* a folder of results in the form npy, whole or being made */
    PL_STORAGE_STEP,          /* the folder of a checkpoint */
    PL_STORAGE_STEP_LEFT_OVER /* the same under a temporary name */
} pl_storage_shape;

typedef struct pl_storage_entry {
    pl_storage_item item;
    pl_storage_shape shape;
    size_t run; /* the run in whose folder it lies, or PL_STORAGE_NONE */
    size_t set; /* for a part that joins */
    uint64_t step;
    bool is_finished; /* for results: every block is finished */
    bool has_others;  /* for a part: it contains files that are not its own */
    bool is_sound;    /* for a checkpoint: was read, and counts as one of the last */
    dev_t device;
    ino_t inode;
} pl_storage_entry;

typedef struct pl_storage_run {
    const char *path;
    long holder;           /* the process that is at work there; 0: none */
    bool has_links;        /* among its checkpoints, or in them; or other things that are not files */
    uint64_t best, latest; /* the steps that the pointers named when its checkpoints were thinned out */
} pl_storage_run;

/* The parts of one job that lie in temp/, and what they become. */
typedef struct pl_storage_set {
    const char *target; /* relative to the folder: datasets/… */
    const char *first;  /* the path of one of them */
} pl_storage_set;

typedef struct pl_storage_folder {
    const char *path;
    size_t run;
} pl_storage_folder;

struct pl_storage {
    char root[PL_FILE_PATH_MAX];
    pl_storage_rules rules;
    const pl_run_data *data;
    bool is_brief; /* temporary names only: no file is opened for its content */
    pl_pool *pool;
    dev_t device;
    int64_t now;
    uint64_t disk_free;
    pl_storage_entry *entry;
    size_t entries, entry_room;
    pl_storage_run *run;
    size_t runs, run_room;
    pl_storage_set *set;
    size_t sets, set_room;
    pl_storage_folder *folder; /* to walk, while looking */
    size_t folders, folder_room;
};

/* The path prefixed with the root. */
pl_status pl_storage_path(const pl_storage *, const char *path, char full[PL_FILE_PATH_MAX], pl_error *);
/* A text in the pool. PL_E_NOMEM. */
pl_status pl_storage_text(const pl_storage *, const char **to, pl_error *, const char *format, ...) PL_PRINTF(4, 5);

/* ---- look.c ---- */
pl_status pl_storage_walk(pl_storage *, pl_error *);

/* ---- output.c ---- */
/* What a file with this name and beginning is, if a command wrote it for people or other programs; NULL: not known to
 * be one. */
enum { PL_STORAGE_HEAD_BYTES = 256 };
const char *pl_storage_output_of(const char *name, const void *head, size_t bytes);

/* ---- decide.c ---- */
pl_status pl_storage_check_rules(const pl_storage_rules *, pl_error *); /* PL_E_USAGE */
pl_status pl_storage_decide(pl_storage *, pl_error *);
/* Under the lock: do the run's pointers still name the same, and do the checkpoints that were to stay exist?
 * PL_E_STOPPED where not. */
pl_status pl_storage_check_kept(const pl_storage *, size_t run, pl_error *);

/* ---- held.c ---- */
/* Does any process have the file open? Asked by way of a lease, which the kernel grants only if none does. -1: cannot
 * be told here. */
int pl_storage_is_open(const char *path);
/* Takes the lock of whoever makes a file of this temporary name, so that nobody begins while it is removed. *fd is -1
 * and *is_held set if somebody has it. */
pl_status pl_storage_hold(const char *path, int *fd, bool *is_held, pl_error *);

/* ---- clean.c ---- */
/* `joined` (or NULL) is told of a file made in datasets/, and of a part that it was made from. */
typedef struct pl_storage_ears {
    void (*tell)(void *context, const pl_storage_item *, uint64_t gained, const char *problem);
    void *context;
    pl_status (*joined)(const char *target, const char *part, pl_error *);
} pl_storage_ears;
pl_status pl_storage_work(const pl_storage *, const pl_storage_ears *, pl_storage_cleaned *, pl_error *);
/* ---- own.c ---- */
struct pl_block_reader;
/* PL_E_DATA if one of its files, or its folder, is a link or something else. */
pl_status pl_storage_check_regular(const struct pl_block_reader *, const char *path, pl_error *);
/* PL_E_DATA if a file of the part also belongs to the whole. */
pl_status pl_storage_check_apart(const struct pl_block_reader *, const char *part, const struct pl_block_reader *,
                                 const char *whole, pl_error *);
/* PL_E_DATA if other files lie in its folder. */
pl_status pl_storage_check_alone(const struct pl_block_reader *, const char *path, pl_error *);
pl_status pl_storage_sync_own(const struct pl_block_reader *, const char *path, pl_error *);
/* Removes its files, not the folder. */
pl_status pl_storage_remove_own(const struct pl_block_reader *, const char *path, pl_error *);

/* ---- step.c ---- */
/* PL_E_DATA unless it is a folder with the three files of a checkpoint, none of them a link. */
pl_status pl_storage_check_step(const char *path, pl_error *);
/* Is the checkpoint that replaced step-N.old sound? PL_OK for a path with another ending. */
pl_status pl_storage_check_replaced(const char *old, pl_error *);
/* Renames it, durably: then it may be emptied. *aside is set once it has the new name, so that after a later failure it
 * is known to be ours, though `path` is gone. */
pl_status pl_storage_put_aside(const char *path, const char *temporary, bool *aside, pl_error *);
pl_status pl_storage_remove_step(const char *path, bool *aside, pl_error *);
/* Empties a step that has a temporary name. */
pl_status pl_storage_empty_step(const char *path, pl_error *);

/* ---- join.c ---- */
/* Afterwards the target is whole, on the disk and under its name; then parts may be removed. */
pl_status pl_storage_join(const pl_storage *, size_t set, const pl_storage_ears *, pl_error *);
/* Is every byte of the part in the whole? If not, PL_E_DATA says where it differs. The part stays locked until *held is
 * closed by pl_block_reader_close. */
pl_status pl_storage_compare(const char *whole, const char *part, struct pl_block_reader **held, pl_error *);

#endif

/* Which files are a run's, or results: by the names in its folder, or by how a file begins. Asked by whoever lists a
 * folder (storage/look.c), and before something else is written to a path. */
#ifndef PL_STORE_RUN_FILES_H
#define PL_STORE_RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PL_STARTS_FILE   "starts.jsonl"     /* how a run was started, one line per start */
#define PL_RUN_INT8_FILE "int8.safetensors" /* what quantize leaves in the folder of a run */

/* `head`, here and below: the first bytes of a file, up to PL_RUN_HEAD_BYTES. */
enum { PL_RUN_HEAD_BYTES = 72 };

/* What the data of runs keep in their folders; comes from systems/system.h, which knows all kinds of data. */
typedef struct pl_run_data {
    bool (*is_record)(const char *name);                 /* a small file, known by its name */
    bool (*is_prepared)(const void *head, size_t bytes); /* made from the user's data, known by how it begins */
} pl_run_data;

/* What a run keeps in its folder besides checkpoints. */
bool pl_run_file_is_record(const char *name, const pl_run_data *);
bool pl_run_head_begins(const void *head, size_t bytes, const char *magic);
bool pl_run_head_is_lock(const void *head, size_t bytes);   /* as pl_folder_lock writes it */
bool pl_run_head_is_blocks(const void *head, size_t bytes); /* results */

/* Is this the folder of a run? config.yaml and `checkpoints` may be another program's, and so may any `lock` but ours;
 * then a checkpoint of ours decides. */
bool pl_run_is_folder(const char *folder);

/* Removes what a kill left of a half-written record: where nothing is left to do, no new one replaces it. For the
 * holder of the folder's lock. What cannot be removed, or is being written, stays. Asks for no memory. */
void pl_run_sweep(const char *folder, const pl_run_data *);

/* PL_E_USAGE if a file at that path would lie among a run's checkpoints, or replace one of its records, prepared data,
 * results or a cache: the caller writes none of these. The path contains no links. own: the name of a record that the
 * caller may write, or NULL. */
pl_status pl_run_check_free(const char *path, const char *own, const pl_run_data *, pl_error *);

#endif

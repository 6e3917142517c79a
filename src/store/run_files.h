/* Which files are a run's, or results: by the names that lie in its folder, or by what a file begins with. Who lists a
 * folder asks (storage/look.c), and who is told where to write something else. */
#ifndef PL_STORE_RUN_FILES_H
#define PL_STORE_RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PL_STARTS_FILE   "starts.jsonl"     /* how a run was started, a line for each time */
#define PL_RUN_INT8_FILE "int8.safetensors" /* what quantize leaves in the folder of a run */

/* `head`, here and below: the first bytes of a file, up to PL_RUN_HEAD_BYTES. */
enum { PL_RUN_HEAD_BYTES = 72 };

/* What the data of runs keep in their folders; who knows all kinds of data tells it (systems/system.h). */
typedef struct pl_run_data {
    bool (*is_record)(const char *name);                 /* a small one, known by its name */
    bool (*is_prepared)(const void *head, size_t bytes); /* what was made of the user's data, known by how it begins */
} pl_run_data;

/* What a run keeps in its folder beside checkpoints. */
bool pl_run_file_is_record(const char *name, const pl_run_data *);
bool pl_run_head_begins(const void *head, size_t bytes, const char *magic);
bool pl_run_head_is_lock(const void *head, size_t bytes);   /* as pl_folder_lock writes it */
bool pl_run_head_is_blocks(const void *head, size_t bytes); /* results */

/* Is this the folder of a run? config.yaml and `checkpoints` may be another program's, and so may any `lock` but
 * ours; then a checkpoint of ours tells. */
bool pl_run_is_folder(const char *folder);

/* What a kill left of a record that was being written goes: where nothing is left to do no other takes its place. For
 * who holds the folder's lock. What cannot be removed, or somebody is writing, stays. Asks for no memory. */
void pl_run_sweep(const char *folder, const pl_run_data *);

/* PL_E_USAGE where a file of that path would lie among the checkpoints of a run, or in the place of one of its records,
 * of prepared data, of results or of a cache: none of that is written by who asks. The path has no links in it. own:
 * the name of a record that the caller may write, or NULL. */
pl_status pl_run_check_free(const char *path, const char *own, const pl_run_data *, pl_error *);

#endif

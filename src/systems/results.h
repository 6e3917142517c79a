/* What systems that keep results in a block file have in common: the part of a job array, the file, and the text that
 * says what decides the numbers in it. */
#ifndef PL_SYSTEMS_RESULTS_H
#define PL_SYSTEMS_RESULTS_H

#include "base/facts.h"
#include "base/file.h"
#include "base/str.h"
#include "config/config.h"

/* Number `part` of `parts` has the items first … first + count − 1. */
typedef struct pl_share {
    uint32_t part, parts;
    uint64_t first, count;
} pl_share;

/* Reads a key "I/N": `key` is its path, `text` its value, `word` what an item is called ("operators"). All items where
 * no part is given. PL_E_CONFIG. */
pl_status pl_share_read(const pl_config *, const char *key, const char *text, const char *word, uint64_t items,
                        pl_share *, pl_error *);

/* The path of the file: `given` is the value of `key`; if that is "", it lies in the folder of the run, named by the
 * backend's form. A part has a file of its own: results-2-of-4.h5. PL_E_CONFIG. */
pl_status pl_results_find_path(const pl_config *, const char *key, const char *given, pl_config_store_backend,
                               const pl_share *, char path[PL_FILE_PATH_MAX], pl_error *);

#define PL_RESULTS_HASH "hash."
/* Appends a JSON object of the keys that the command reads and that decide the numbers in the file, and no more:
 * another config with the same is the same job. `facts` are added to the keys: hashes of what the config only names, as
 * "hash.NAME"; or NULL. */
pl_status pl_results_say_identity(const pl_config *, pl_config_reader, const pl_facts *facts, pl_str *text, pl_error *);

#endif

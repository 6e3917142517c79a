/* run.json: what a checkpoint says about the run beside its tensors (schema "plimsoll.run/1").
 *
 * It holds no time and no rate: of a run that was interrupted and resumed and one that was not, only the config (and so
 * the checksum) differs.
 * Its length is known beforehand (spaces fill it up), so the plan can book it. The last member is the checksum of all
 * bytes before it. */
#ifndef PL_STORE_RECORD_H
#define PL_STORE_RECORD_H

#include <stdbool.h>

#include "base/facts.h"
#include "base/str.h"
#include "base/checksum.h"

enum { PL_RECORD_BYTES_MAX = 4 << 20 }; /* of a run.json that is written or read; bounds the memory it takes */

typedef struct pl_record_counter {
    const char *key;
    double value; /* whole numbers exactly up to 2^53 */
} pl_record_counter;

typedef struct pl_record_file {
    uint64_t bytes, checksum;
} pl_record_file;

/* The caller fills all but the two files, which the save fills. Texts belong to the maker of the record. */
typedef struct pl_record {
    uint64_t step, epoch, sample; /* steps done; epoch and sample of the next step */
    uint64_t model_hash, plan_hash;
    pl_facts identity; /* hashes of what it was trained with and on; 0, or none of a name: not known (an older file) */
    const char *config;
    const char *best_metric; /* its name; NULL when the run has none */
    bool has_best;
    double best_value;
    uint64_t best_step;
    const pl_record_counter *counters;
    size_t counter_count;
    pl_record_file model, state;
} pl_record;

/* Length of the file for any numbers, given the texts (config, metric's name, keys). 0 when memory is refused. */
uint64_t pl_record_bytes(const pl_record *);

/* The file's `bytes` (of pl_record_bytes) bytes into text, which has room for one more. Asks for no memory. */
pl_status pl_record_print(const pl_record *, char *text, uint64_t bytes, pl_error *);

/* Reads a record from a text; the memory it holds is given back by destroy. `name` stands in the sentences. */
pl_status pl_record_parse(const char *text, size_t bytes, const char *name, pl_record **, pl_error *);
pl_status pl_record_read(const char *path, pl_record **, pl_error *);
void pl_record_destroy(pl_record *); /* of parse and read; NULL is fine */

/* A counter's value, or `otherwise` when the record has none of that name. */
double pl_record_counter_value(const pl_record *, const char *key, double otherwise);

#endif

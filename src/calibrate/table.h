/* The table in memory, and what the files of this folder share. */
#ifndef PL_CALIBRATE_TABLE_H
#define PL_CALIBRATE_TABLE_H

#include <time.h>

#include "calibrate/calibrate.h"

enum { PL_CALIBRATION_KEY_BYTES = 1024, PL_CALIBRATION_PATH_BYTES = 4096 };

typedef struct pl_calibration_entry {
    char *key;
    double seconds, spread;
    double work;      /* of the node that was measured (pl_node_work): how its seconds go over to other sizes */
    double busy;      /* how many times as long runs took, others' work included, while it was measured; 1: quiet */
    uint64_t samples; /* 0: none that counts, for they were disturbed and are far from what other sizes say */
    uint64_t at;      /* of a job: when it was done, in seconds of the calendar */
    bool brief;       /* measured by a short look (pl_calibration_options.brief) */
    bool fresh;       /* measured in this process: not to be measured again in it */
    bool used;        /* asked for, or measured, since the table was opened */
} pl_calibration_entry;

/* What the keys begin with that no kernel has: of a job (pl_calibration_finish), of a rate of the machine (rates.c). */
#define PL_CALIBRATION_FINISHED "finished "
#define PL_CALIBRATION_RATE     "rate "

/* What a table is valid for. */
typedef struct pl_calibration_machine {
    char cpu[96];
    char isa[16];
    int cores;
    uint64_t kernels;     /* hash of the machine code */
    uint64_t cache_bytes; /* not in the file: the processor's name says it */
    bool is_virtual;      /* nor is this */
} pl_calibration_machine;

/* Of a node that was asked about before. */
typedef struct pl_calibration_answer {
    uint64_t hash;
    size_t begin, count; /* in words */
    pl_duration prediction;
    pl_id entry; /* PL_NONE: the table has none */
} pl_calibration_answer;

#define PL_CALIBRATION_NO_MATTER '-'

typedef struct pl_calibration_recall {
    pl_calibration_answer *answer;
    uint64_t *words;
    uint32_t *slot; /* open addressing over answer; PL_NONE: free */
    size_t count, capacity, word_count, word_capacity, slot_count;
    char attr_kind[PL_OP_COUNT][PL_ATTR_MAX]; /* 'i', 'f', 'a', PL_CALIBRATION_NO_MATTER; 0: there is no such */
} pl_calibration_recall;

/* The entries again, by what they have in common but for sizes (estimate.c). */
typedef struct pl_calibration_kin {
    struct pl_calibration_relative *relative;
    size_t count; /* entries that are in it, as many as the table had */
} pl_calibration_kin;

/* From so much on a machine counts as busy (pl_calibration_entry.busy). */
#define PL_CALIBRATION_BUSY 1.25

struct pl_calibration {
    pl_calibration_options options; /* zeros resolved */
    pl_calibration_machine machine;
    char path[PL_CALIBRATION_PATH_BYTES]; /* "": kept nowhere */
    char warning[512];
    pl_calibration_entry *entry; /* in the order in which they were measured */
    size_t count, capacity;
    uint32_t *slot; /* open addressing over entry; PL_NONE: free */
    size_t slot_count;
    pl_calibration_recall recall;
    pl_calibration_kin kin;
    pl_rates rates; /* zeros until pl_calibration_find_rates */
    bool changed;
    double measured_seconds;
    bool has_measured; /* kernels, in this process */
    bool again;        /* the machine is quiet now: what was measured while it was busy is not known */
};

/* ---- table.c ---- */
const pl_calibration_entry *pl_calibration_find(const pl_calibration *, const char *key); /* NULL: not there */
/* The same, and notes that it is in use: saving keeps it longest. */
const pl_calibration_entry *pl_calibration_touch(pl_calibration *, const char *key);
/* Does it need no measuring? What a short look found is known to such looks alone, what has no sample to none. */
bool pl_calibration_is_known(const pl_calibration *, const pl_calibration_entry *);
/* Adds or replaces. */
pl_status pl_calibration_put(pl_calibration *, const char *key, const pl_calibration_entry *figures, pl_error *);
void pl_calibration_clear(pl_calibration *);

/* ---- estimate.c ---- */
/* What the other entries say of a key, whether or not it has one. Negative: nothing. */
double pl_calibration_estimate_key(pl_calibration *, const char *key, double work);
/* Without looking among the answers that were given before. */
pl_duration pl_calibration_predict_anew(pl_calibration *, const pl_graph *, const pl_node *,
                                        const pl_calibration_entry *own);
void pl_calibration_kin_clear(pl_calibration_kin *);

/* ---- calibrate.c ---- */
/* The entry of a node, measured where it stands or in another pass; it is in use then. NULL: there is none. */
const pl_calibration_entry *pl_calibration_entry_of(pl_calibration *, const pl_graph *, const pl_node *);

/* ---- recall.c ---- */
void pl_calibration_recall_init(pl_calibration_recall *);
void pl_calibration_recall_clear(pl_calibration_recall *);
/* The same as pl_calibration_entry_of, or what is predicted, at a tenth of the time where the like of it was asked
 * before. */
const pl_calibration_entry *pl_calibration_recall_entry(pl_calibration *, const pl_graph *, const pl_node *);
pl_duration pl_calibration_recall_prediction(pl_calibration *, const pl_graph *, const pl_node *);

/* ---- key.c: what a key is made of ---- */
bool pl_calibration_attr_matters(const char *name);
/* The input whose storage output k takes, or -1: in place less memory is moved. */
int pl_calibration_input_below(const pl_graph *, const pl_node *, int k);

/* ---- load.c ---- */
double pl_seconds_of(clockid_t);
int pl_seconds_compare(const void *, const void *); /* for qsort */
/* What others take of the machine: begun, and then looked at. */
typedef struct pl_load {
    double wall_seconds, own_seconds; /* of this thread */
    uint64_t stolen, ticks;           /* of all processors that are not idle, by /proc/stat */
} pl_load;
void pl_load_begin(pl_load *);
/* How many times as long this thread took as it needed, as it never slept; and as the machine beneath this one let it.
 * Both at least 1. */
double pl_load_slowed(const pl_load *);
double pl_load_stolen(const pl_load *);
long pl_load_switches(void);                        /* by the system, of this process, so far */
int pl_calibration_at_once(const pl_calibration *); /* threads of the team that have a core */

/* ---- machine.c ---- */
pl_status pl_calibration_machine_read(pl_calibration_machine *, pl_error *);

/* ---- file.c ---- */
/* Fills the table; what is wrong with the file goes into the warning. PL_E_NOMEM only. */
pl_status pl_calibration_read(pl_calibration *, pl_error *);

#endif

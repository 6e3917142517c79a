/* Seconds per node, measured on this machine with the kernels and at the shapes of the graph itself.
 *
 * A calibration is a table: key -> mean seconds and spread. The key of a node is a text: operator, phase, shapes and
 * dtypes of inputs and outputs (strides where they are windows), which optional ones are there, attributes that change
 * the work, threads, instruction set. The table belongs to one machine: processor, instruction set, cores, and the code
 * of the kernels (a hash of this executable's machine code), so that a new build measures anew.
 *
 * Order of calls (all in the planning process, before anything large is allocated):
 *      pl_calibration_open       reads the file, if there is a usable one; never fails because of the file
 *      pl_calibration_measure    measures the nodes of a bound graph whose keys are missing (none: returns at once)
 *      pl_calibration_save       when something was measured; a folder that cannot be written is a warning
 *      pl_plan_create            with .cost = {pl_calibration_cost, pl_calibration_range, calibration}
 *      pl_calibration_close
 *
 * Measuring replays the graph's programs in their order (replay.c), so that each node finds in the caches what it will
 * find there in the run, and what opening parallel regions costs is inside each figure: the sum of nodes × trips is the
 * prediction of a step. */
#ifndef PL_CALIBRATE_CALIBRATE_H
#define PL_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "ir/properties.h"

/* Memory that a measurement may take unless the options say otherwise: more than the last-level cache of a common
 * processor, so that weights are as cold as in a run, and less than any run that needs a plan. */
#define PL_CALIBRATION_BYTES_MAX   (UINT64_C(48) << 20)
#define PL_CALIBRATION_SECONDS_MAX 4.0
/* Of all calls together. A search may ask for dozens of graphs, and one whose attention takes a second for each layer
 * would be measured for minutes: the calls get less and less, and at the end what is not known is estimated. */
#define PL_CALIBRATION_TOTAL_SECONDS_MAX 24.0
/* Four thousand kernels: what a search over the largest models asks for, more than a thousand, and much beside it. A
 * larger file is not read; saving keeps what was used last. */
#define PL_CALIBRATION_FILE_BYTES_MAX (UINT64_C(1) << 20)

typedef struct pl_calibration pl_calibration;

typedef struct pl_calibration_options {
    pl_team team;             /* the run's; it must not change within a process (base/process.h) */
    bool huge_pages;          /* as the run's arena */
    uint64_t bytes_max;       /* scratch memory of a measurement; 0: PL_CALIBRATION_BYTES_MAX */
    uint64_t bytes_more;      /* or so much, where the operands of a node need it; at most: no more than bytes_max */
    double seconds_max;       /* of one call of measure; 0: PL_CALIBRATION_SECONDS_MAX */
    double total_seconds_max; /* of all calls; 0: PL_CALIBRATION_TOTAL_SECONDS_MAX */
    /* Above 0 for a look at many graphs: a node that is no farther from a measured one (pl_calibration_distance) is not
     * measured, and the others at one place of the graph each. */
    double near_distance;
    /* A short look: what is measured is marked so, and is measured again by the next who has more time. */
    bool brief;
    /* Called now and then while measuring; NULL: not. done and total count keys. */
    void (*progress)(void *context, size_t done, size_t total, double seconds);
    void *progress_context;
} pl_calibration_options;

/* path NULL: nothing is read or kept. A file that is missing, damaged, too large or of another machine or build gives
 * an empty table, and a warning unless it was just missing. PL_E_NOMEM only. */
pl_status pl_calibration_open(const char *path, const pl_calibration_options *, pl_calibration **, pl_error *);
void pl_calibration_close(pl_calibration *); /* NULL is fine; does not save */

/* folder "/calibration-<hash of the machine>-<hash of the kernels>.json" into room bytes. */
pl_status pl_calibration_path(char *path, size_t room, const char *folder, pl_error *);

/* What a reader should be told (a file that was ignored or could not be written); "" for nothing. */
const char *pl_calibration_warning(const pl_calibration *);

/* How many distinct keys of the graph are not in the table. PL_E_NOMEM. What is asked for, here or below, is in use. */
pl_status pl_calibration_count_missing(pl_calibration *, const pl_graph *, size_t *count, pl_error *);
/* Scratch memory that measure would take for this graph now: 0 when nothing is missing, never more than bytes_max. */
pl_status pl_calibration_bytes(pl_calibration *, const pl_graph *, uint64_t *bytes, pl_error *);
/* Measures what is missing. The graph must be bound (pl_rewrite_bind_batch). Nodes with an operand larger than the
 * scratch memory are not measured, nor is what is left when the time of all calls is over: then it returns at once. */
pl_status pl_calibration_measure(pl_calibration *, const pl_graph *, pl_error *);
/* A job that is done, under a name that tells it from other jobs: for a day who does the same job again measures
 * nothing more, and so comes to the same end; but where the machine was busy when it was done, and is not any more. A
 * job that was done before is not noted again before that. */
pl_status pl_calibration_finish(pl_calibration *, const char *job, pl_error *);
bool pl_calibration_is_finished(pl_calibration *, const char *job);
/* Before measuring: if the machine is quiet now, what was measured while it was busy is missing. */
void pl_calibration_measure_busy_again(pl_calibration *);
double pl_calibration_measured_seconds(const pl_calibration *); /* how long measuring has taken in this process */

/* Were kernels measured in this process, and are they in the file? */
bool pl_calibration_has_news(const pl_calibration *);
/* Writes the file when something was measured since it was read, or when the file will soon be full and what is in use
 * stands where it would go first. A file that cannot be written is a warning, not a
 * failure. PL_E_NOMEM only. */
pl_status pl_calibration_save(pl_calibration *, pl_error *);

/* Seconds of one execution of a node as it was measured; negative: it was not. */
double pl_calibration_seconds(pl_calibration *, const pl_graph *, const pl_node *);

/* ---- rates.c ---- */
/* What this machine's team does at most, for the numbers that the graph's products multiply, and f32 and bf16 in any
 * case (NULL: for these): looked up, or measured, which takes some tenths of a second, and kept. Estimates rest on
 * it, so it comes first. PL_E_NOMEM. */
pl_status pl_calibration_find_rates(pl_calibration *, const pl_graph *, pl_error *);
pl_rates pl_calibration_rates(const pl_calibration *); /* zeros: not found */
/* Takes the rates from the table, without measuring any. False: the table lacks that of f32, or that of memory
 * measured on a quiet machine. */
bool pl_calibration_recall_rates(pl_calibration *);
/* Has the team its cores to itself just now? A look of some hundredths of a second. */
bool pl_calibration_is_quiet(const pl_calibration *);
/* Is there a rate to measure, or something of a busy machine, which asks for such a look? */
bool pl_calibration_will_compute(pl_calibration *, const pl_graph *);

/* ---- guess.c ---- */
/* What such a team does at most by its instruction set and clock (0: not known), where nothing was measured. */
pl_rates pl_rates_guess(pl_team, double hertz);

/* ---- estimate.c ---- */
/* What one execution takes, told of every node: as it was measured; or, where it was not, or was disturbed and is far
 * from what other sizes say, estimated: from measured nodes that differ in sizes alone, else of the same operator, else
 * from the rates of the machine. A run whose machine is as it was lies between low and high. */
pl_duration pl_calibration_predict(pl_calibration *, const pl_graph *, const pl_node *);
/* The two functions of pl_cost_model: context is the pl_calibration. */
double pl_calibration_cost(void *calibration, const pl_graph *, const pl_node *);
pl_duration pl_calibration_range(void *calibration, const pl_graph *, const pl_node *);
/* How far the nearest measured size is: the root of the sum of the squares of the logarithms of quotients. 0: this very
 * one; INFINITY: there is none, or this very one was measured by a short look alone, and this is none, or was
 * disturbed and is far from what other sizes say. */
double pl_calibration_distance(pl_calibration *, const pl_graph *, const pl_node *);
/* What estimates are off by: each entry in use is estimated from the others; the sum of the differences over the sum of
 * the seconds. Negative: there are no two of a kind. */
double pl_calibration_error(pl_calibration *);

size_t pl_calibration_count(const pl_calibration *); /* entries */
/* Of the file; "": none is kept. And what its table takes of the heap, about. */
const char *pl_calibration_file(const pl_calibration *);
uint64_t pl_calibration_held_bytes(const pl_calibration *);

/* ---- key.c ---- */
/* The node's key, appended. */
void pl_calibration_key(const pl_graph *, const pl_node *, const pl_calibration_options *, pl_str *key);

#endif

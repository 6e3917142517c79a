/* What a training left in its folder, as a document: how far it got, its settings, curves over all steps, memory
 * planned and measured, where the time went, files. Also several trainings, compared. */
#ifndef PL_REPORT_TRAINING_H
#define PL_REPORT_TRAINING_H

#include "base/process.h"
#include "report/times.h"
#include "show/doc.h"
#include "show/html.h"

/* By step, in the order of the file; of a step made twice, after a kill, the last counts. */
typedef struct pl_report_series {
    pl_curve_point *point;
    size_t count, capacity;
} pl_report_series;

/* A text that the model wrote after a step. */
typedef struct pl_report_sample {
    double step;
    char *text;
} pl_report_sample;

typedef struct pl_report_metrics {
    pl_report_series loss, validation, rate, learning_rate;
    pl_report_sample *sample; /* in the order of the file */
    size_t samples, sample_capacity;
    char rate_name[40]; /* items, in the words of the run; "": the run gives no rate */
} pl_report_metrics;

/* Here and below, a line that is not a JSON object is skipped: the last one of a killed run may be torn. PL_E_NOMEM. */
pl_status pl_report_metrics_read(const char *lines, size_t bytes, pl_report_metrics *, pl_error *);
void pl_report_metrics_deinit(pl_report_metrics *);

/* One start of a run; "": not known. */
typedef struct pl_report_start {
    char time[32], version[64], machine[192];
    char *command;
} pl_report_start;

typedef struct pl_report_starts {
    pl_report_start *start;
    size_t count, capacity;
    char trouble[320]; /* why there are none, though there should be; "": nothing is wrong */
} pl_report_starts;

/* starts.jsonl. PL_E_NOMEM. */
pl_status pl_report_starts_read(const char *lines, size_t bytes, pl_report_starts *, pl_error *);
void pl_report_starts_deinit(pl_report_starts *);

typedef struct pl_report_memory {
    pl_process_planned planned;
    pl_memory_measured measured;
} pl_report_memory;

/* The ledger that a run left, plimsoll.ledger/1. PL_E_DATA: it is not a ledger; PL_E_NOMEM. */
pl_status pl_report_memory_read(const char *name, const char *text, size_t bytes, pl_report_memory *, pl_error *);

typedef struct pl_report_setting {
    char *key, *value, *usual; /* usual: the default */
} pl_report_setting;

typedef struct pl_report_file {
    char name[256];
    uint64_t bytes;
} pl_report_file;

typedef struct pl_report_training {
    const char *path; /* the folder, as it was named */
    char name[256];   /* the last part of the path */
    const char *arch;
    const char *prompt; /* that its samples continue; "": none */
    char ended[32];     /* "2026-11-29 18:05": when it last wrote; "": not known */
    uint64_t steps;     /* asked for; 0: not known */
    pl_report_starts starts;
    pl_report_metrics metrics;
    const pl_report_memory *memory; /* NULL: it left none */
    const pl_report_times *times;   /* likewise */
    pl_report_setting *setting;     /* those that differ from their defaults */
    size_t settings;
    pl_report_file *file;
    size_t files;
} pl_report_training;

enum { PL_REPORT_TRAININGS_MAX = 8 }; /* this many have colours of their own */
typedef struct pl_report_comparison {
    const pl_report_training *training;
    size_t count;
} pl_report_comparison;

/* Both keep pointers into their arguments until the document is rendered. */
void pl_report_add_training(const pl_report_training *, pl_doc *);
/* Several trainings: their curves in one chart, and a table of what differs. For programs, schema "plimsoll.runs/1". */
void pl_report_add_comparison(const pl_report_comparison *, pl_doc *);

#endif

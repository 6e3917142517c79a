/* Where the time of a program goes, by components (ir/components.h): measured, predicted, what is computed and moved,
 * and the least time that can take. A plain value, filled from a plan and from what a session measured, or read from
 * the file that a run leaves; text, JSON and page show the same numbers.
 *
 * All times are of one run of the program, a step say. The rows and `other_seconds` add up to `seconds`. The rates are
 * what the machine does at most (ir/properties.h), as it was measured, or as it turned out: no row takes less than its
 * least time. */
#ifndef PL_REPORT_TIMES_H
#define PL_REPORT_TIMES_H

#include "ir/components.h"
#include "plan/plan.h"
#include "show/doc.h"

#define PL_TIMES_SCHEMA "plimsoll.times/1"
enum { PL_REPORT_TIMES_NAME = 40, PL_REPORT_TIMES_BESIDES = 4 };

typedef struct pl_report_time {
    char name[PL_REPORT_TIMES_NAME];
    pl_phase phase;
    double seconds;           /* measured; not looked at where runs is 0 */
    double predicted_seconds; /* negative: not known */
    double flops, bytes;      /* by the operators' cost rules */
    double least_seconds;     /* negative: the rates are not known */
    double computing_seconds; /* of its products alone at the rate of their numbers; likewise */
} pl_report_time;

/* What else the process did, between the runs. */
typedef struct pl_report_besides {
    char name[PL_REPORT_TIMES_NAME];
    double seconds; /* altogether */
    uint64_t count;
} pl_report_besides;

typedef struct pl_report_times {
    char program[PL_REPORT_TIMES_NAME];
    char run[PL_REPORT_TIMES_NAME]; /* what one run of it is called: "step" */
    uint64_t runs, first;           /* measured, and made before in other processes; runs 0: predicted alone */
    double seconds, other_seconds;  /* mean; of it in no component */
    double predicted_seconds;       /* negative: not known */
    double estimated_seconds;       /* of these, what was not measured */
    double flops_per_second, bytes_per_second; /* 0: not known */
    pl_report_time row[PL_COMPONENTS_MAX];
    size_t count;
    pl_report_besides besides[PL_REPORT_TIMES_BESIDES];
    size_t besides_count;
} pl_report_times;

/* ---- times.c. No heap: may be called after "committed". ---- */
/* What is known of the program before it runs; components: of this program. */
void pl_report_times_predict(const pl_plan *, pl_id program, const pl_components *, pl_report_times *);
/* After seconds were filled in: what was measured to be faster than the rates raises them. */
void pl_report_times_raise(pl_report_times *);
/* A section; to programs the members of schema PL_TIMES_SCHEMA. */
void pl_report_times_add(const pl_report_times *, pl_doc *);
/* Sum of the rows: measured, predicted (negative: not all are known), computed, moved, least. */
pl_report_time pl_report_times_sum(const pl_report_times *);

/* ---- times_json.c ---- */
/* PL_E_DATA: it is none; `name` is the file's, for the sentence. PL_E_NOMEM. */
pl_status pl_report_times_read(const char *name, const char *text, size_t bytes, pl_report_times *, pl_error *);

#endif

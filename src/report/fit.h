/* What a search found (fit/result.h), for a person and for programs: the chosen plan and why, the front of time against
 * bytes, and when nothing fits the certificate. */
#ifndef PL_REPORT_FIT_H
#define PL_REPORT_FIT_H

#include "fit/result.h"
#include "plan/plan.h"
#include "show/render.h"

typedef struct pl_report_fit_options {
    const char *title; /* of the config; NULL: none */
    unsigned width;    /* columns of text */
    bool color;        /* ANSI colours in text */
    uint64_t steps;    /* of the whole run; 0: not known */
} pl_report_fit_options;

/* plan: the chosen one; NULL: nothing fits. JSON: schema "plimsoll.fit/1", docs/fit.md. PL_E_NOMEM when memory is
 * refused. */
pl_status pl_report_fit(const pl_fit_result *, const pl_plan *plan, const pl_report_fit_options *, pl_doc_form,
                        pl_str *out, pl_error *);

/* ---- fit_front.c ---- */
/* The front, by bytes; the block is for pl_free. */
pl_status pl_report_front(const pl_fit_result *, const pl_fit_point ***front, size_t *count, pl_error *);
/* Why the chosen value of the axis and no other, in words: of each other value (the three nearest) the fastest plan
 * that fits the budget; where none does, the smallest. Nothing when nothing else was looked at. */
void pl_report_reason(const pl_fit_result *, size_t axis, pl_str *out);
double pl_report_items_per_second(const pl_fit_result *, const pl_fit_point *); /* negative: not known */

/* ---- fit_certificate.c: sentences without an end of line, when nothing fits ---- */
void pl_report_say_least(const pl_fit_result *, pl_str *out);
void pl_report_say_peak(const pl_fit_result *, pl_str *out); /* of the smallest plan */
/* What it would cost in time; nothing when that is not known at all. */
void pl_report_say_permission(const pl_fit_result *, const pl_fit_permission *, pl_str *out);
void pl_report_say_remedy(const pl_fit_result *, pl_str *out);

/* ---- fit_time.c: what holds a step up, and what would make it faster ---- */
typedef struct pl_report_step {
    double seconds;                                          /* of a step, predicted */
    double computing_seconds, moving_seconds, small_seconds; /* their sum: what its nodes are bound by */
    double once_seconds;                                     /* of it, what is not done for each micro-batch */
    double flops_per_second, bytes_per_second;               /* the best that was measured */
    const char *bottleneck;                                  /* a constant */
} pl_report_step;

bool pl_report_time_step(const pl_plan *, pl_report_step *); /* false: not all of its times are known */
/* The fastest plan of the front that a larger budget would allow; NULL: none is faster. */
const pl_fit_point *pl_report_larger_budget(const pl_fit_result *);
/* By how much more items a second there would be with a batch of twice the size: 0.03 for 3 %. */
double pl_report_larger_batch_gain(const pl_report_step *);

#endif

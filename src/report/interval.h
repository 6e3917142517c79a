/* A predicted time in words: how long, between which times, and what that rests on. */
#ifndef PL_REPORT_INTERVAL_H
#define PL_REPORT_INTERVAL_H

#include "base/str.h"
#include "plan/plan.h"
#include "show/doc.h"

/* From so much on it is said that the machine was busy (pl_duration.busy). */
#define PL_REPORT_BUSY 1.25
/* What stands before a time that was not measured at its shapes, and what explains it behind a table. */
#define PL_REPORT_ESTIMATED      "~"
#define PL_REPORT_ESTIMATED_NOTE "~ estimated: from kernels of other sizes, or from this machine's rates"

/* Of one run of a program, what was not measured. */
double pl_report_estimated_seconds(const pl_plan *, pl_id program);
/* "~1.23 s", "unknown", or `none` where it takes no time. */
const char *pl_report_seconds(double seconds, bool estimated, const char *none, char text[48]);
/* "1.23 s (1.05 s to 1.5 s)" */
void pl_report_say_interval(double seconds, double low, double high, pl_str *out);
/* Sentences: which part of it was estimated, and that the machine was busy: nothing where neither is so. */
void pl_report_say_basis(double seconds, double low, double high, double estimated_seconds, double busy, pl_str *out);
/* To programs: NAME_low, NAME_high, estimated_NAME, busy, of a name that is a constant. */
#define pl_report_add_interval(doc, name, duration, estimated_seconds)                                                 \
    pl_report_add_range(doc, name "_low", name "_high", "estimated_" name, duration, estimated_seconds)
void pl_report_add_range(pl_doc *, const char *low, const char *high, const char *estimated, const pl_duration *,
                         double estimated_seconds);

#endif

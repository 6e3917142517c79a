/* The memory of any process on this machine, explained: where its bytes are, which limits hold for it, what the largest
 * causes are. Only /proc and /sys are read; the process is not stopped.
 *
 *     pl_doctor *doctor;
 *     if (pl_doctor_open(pid, false, &doctor, &error) == PL_OK && pl_doctor_look(doctor, &alive, &error) == PL_OK)
 *         pl_doctor_text(doctor, PL_DOCTOR_REPORT, PL_DOCTOR_PEAK, &text, &bytes, &error);
 *     pl_doctor_close(doctor);
 *
 * Call pl_doctor_look again and again to watch: the fullest moment is kept. */
#ifndef PLIMSOLL_DOCTOR_H
#define PLIMSOLL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_doctor pl_doctor;

/* tree: the processes that descend from it are counted, too, and the largest of them is the one explained.
 * PL_E_DATA when there is no such process, or it has no memory (a zombie, a kernel thread). */
PL_API PL_MUST_USE pl_status pl_doctor_open(int process_id, bool tree, pl_doctor **, pl_error *);
PL_API void pl_doctor_close(pl_doctor *); /* NULL is fine */

/* Looks once. *alive is false when the process has ended: not a failure once a look has succeeded. */
PL_API PL_MUST_USE pl_status pl_doctor_look(pl_doctor *, bool *alive, pl_error *);

/* Of the looks so far; bytes: Rss of one process, the sum of Pss of several. */
typedef struct pl_doctor_now {
    uint64_t bytes, peak_bytes;
    double seconds; /* since the first look */
    uint32_t processes;
    uint64_t looks;
    double cost_seconds; /* of the last look: a caller that looks too often only measures itself */
    bool peak_is_last;   /* the report of the peak is that of the last look */
} pl_doctor_now;
PL_API pl_doctor_now pl_doctor_count(const pl_doctor *);

/* ru_maxrss, in bytes, of a child that was waited for: the largest Rss of it or of one of its children. The report
 * compares it with what the looks saw. */
PL_API void pl_doctor_set_kernel_peak(pl_doctor *, uint64_t bytes);

typedef enum pl_doctor_form {
    PL_DOCTOR_REPORT,      /* for a person: table, stacks, limits, causes */
    PL_DOCTOR_REPORT_LONG, /* and every stack, every mapping */
    PL_DOCTOR_TABLE,       /* which process, and the table alone */
    PL_DOCTOR_PLOT,        /* memory over time, in characters */
    PL_DOCTOR_JSON,        /* schema plimsoll.doctor/1: both moments, all samples */
    PL_DOCTOR_HTML,        /* one page with the curve */
} pl_doctor_form;

typedef enum pl_doctor_when { PL_DOCTOR_PEAK, PL_DOCTOR_LAST } pl_doctor_when; /* the fullest look, the last one */

/* Text in a block for pl_text_free. `when` matters for the reports only. */
PL_API PL_MUST_USE pl_status pl_doctor_text(const pl_doctor *, pl_doctor_form, pl_doctor_when, char **text,
                                            size_t *bytes, pl_error *);

#ifdef __cplusplus
}
#endif
#endif

/* Within src/doctor: sections of the report. */
#ifndef PL_DOCTOR_REPORT_H
#define PL_DOCTOR_REPORT_H

#include "doctor/doctor.h"
#include "show/render.h"

/* ---- report.c: to programs, what a row sums up ---- */
void pl_doctor_add_row_keys(const pl_doctor_row *, pl_doc *);

/* ---- report_lists.c; detailed: people see all of them, else the largest ---- */
void pl_doctor_add_stacks(const pl_doctor_view *, bool detailed, pl_doc *);
void pl_doctor_add_groups(const pl_doctor_view *, bool detailed, pl_doc *); /* to programs, arenas of malloc too */
void pl_doctor_add_maps(const pl_doctor_view *, pl_doc *);                  /* for people */
void pl_doctor_add_members(const pl_doctor_moment *, pl_doc *);

/* ---- report_limits.c ---- */
void pl_doctor_add_limits(const pl_doctor_process *, pl_doc *);

#endif

/* Where the time of a run went: each component of its program, measured and predicted (docs/times.md). */
#ifndef PLIMSOLL_TIMES_H
#define PLIMSOLL_TIMES_H

#include <stddef.h>

#include "plimsoll/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_times_form { PL_TIMES_TEXT, PL_TIMES_JSON /* schema plimsoll.times/1 */, PL_TIMES_HTML } pl_times_form;

/* A table of what the run has done since it was opened, as text or JSON in the caller's memory (128 KiB suffice;
 * terminated). Asks for no memory. PL_E_USAGE when nothing has run. */
PL_API PL_MUST_USE pl_status pl_run_times(const pl_run *, pl_times_form, char *text, size_t room, pl_error *);
/* Where its JSON belongs, so that pl_times_report finds it: times.json in the folder of a training, NAME.times.json
 * next to results; "": the command keeps nothing. */
PL_API PL_MUST_USE pl_status pl_run_times_path(const pl_run *, char *path, size_t room, pl_error *);

/* The table left by the run in this folder, or by the run that made these results, in a block for pl_text_free; as
 * HTML, a page of its own, with curves of gates where the run's metrics.jsonl has such numbers. PL_E_DATA when there is
 * no table. The columns of a line (0: 80) and ANSI colour matter only for text, here and below. */
PL_API PL_MUST_USE pl_status pl_times_report(const char *path, pl_times_form, unsigned columns, bool color, char **text,
                                             size_t *bytes, pl_error *);
/* The text of the starts.jsonl that a training keeps in its folder (docs/formats.md): a line for this start (time,
 * version, machine, the command as a shell would take it; "": not known), after the existing lines when the training
 * resumes. In a block for pl_text_free. PL_E_STORAGE, PL_E_DATA: the file of that name cannot be read, is a link or is
 * foreign, and is to be left alone. PL_E_NOMEM. */
PL_API PL_MUST_USE pl_status pl_starts_text(const char *folder, bool goes_on, const char *command, char **text,
                                            size_t *bytes, pl_error *);
/* What the training in this folder is and achieved: settings that differ from their defaults, curves over all steps,
 * samples, memory planned and measured, where the time went, how it was started, files. As JSON, and for results, it is
 * pl_times_report. For several trainings (8 at most): their curves in one chart and a table of what differs; JSON of
 * schema plimsoll.runs/1. For a pretrained model: what it is, as its files say; JSON of schema plimsoll.model/1. In a
 * block for pl_text_free. */
PL_API PL_MUST_USE pl_status pl_runs_report(const char *const *paths, size_t count, pl_times_form, unsigned columns,
                                            bool color, char **text, size_t *bytes, pl_error *);
/* The same for several trainings, called by these names instead of their folders'. */
PL_API PL_MUST_USE pl_status pl_runs_report_as(const char *const *names, const char *const *paths, size_t count,
                                               pl_times_form, unsigned columns, bool color, char **text, size_t *bytes,
                                               pl_error *);

#ifdef __cplusplus
}
#endif
#endif

/* Machines as files, so that a plan can be made for one that is elsewhere. */
#ifndef PLIMSOLL_MACHINE_H
#define PLIMSOLL_MACHINE_H

#include <stddef.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What plans depend on, of this machine: JSON of schema plimsoll.machine/1, with its rates where the calibration in
 * this folder has them (NULL: without). Nothing is measured. In a block for pl_text_free. */
PL_API PL_MUST_USE pl_status pl_machine_text(const char *cache_folder, char **text, size_t *bytes, pl_error *);
/* From now on this process plans for the machine in that file: threads, instruction set, budget and limits are that
 * machine's, and nothing is measured. It may plan, but run nothing any more. PL_E_DATA. */
PL_API PL_MUST_USE pl_status pl_machine_plan_for(const char *path, pl_error *);

#ifdef __cplusplus
}
#endif

#endif

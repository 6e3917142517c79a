/* What a training that goes on asks of the run in its folder. */
#ifndef PL_API_RESUME_H
#define PL_API_RESUME_H

#include "config/config.h"
#include "store/checkpoint.h"

/* PL_E_DATA when run.resume is true and nothing was found, PL_E_CONFIG when what was found is another model, past its
 * end where the config says how many steps that is, or keeps what the config wants changed. A record whose config this
 * version cannot read is for the run itself to compare. */
pl_status pl_resume_check(const pl_config *, const char *folder, const pl_saved *, pl_error *);

/* What decides numbers and is another value from here on: "train.learning_rate 0.001 (0.003 before)"; cut to room. */
pl_status pl_resume_changes(const pl_config *, const pl_saved *, char *text, size_t room, pl_error *);

/* Asks the heap for what the two may, for a moment: also what stands in no folder yet. */
pl_status pl_resume_rehearse(const pl_config *, const pl_saved *, pl_error *);

#endif

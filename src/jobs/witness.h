/* What the witnesses of several jobs have in common: the weights, as a file of safetensors that says who wrote it. */
#ifndef PL_JOBS_WITNESS_H
#define PL_JOBS_WITNESS_H

#include "run/session.h"

#define PL_WITNESS_WEIGHTS "weights.safetensors"

/* What would be replaced, these files and the weights, is of an earlier witness: its weights say that they were written
 * so. Else PL_E_STORAGE, and nothing is written. names: NULL behind the last. */
pl_status pl_witness_check_folder(const char *folder, const char *by, const char *const names[], pl_error *);
/* All that is saved with a model, under its own names. The heap is used. PL_E_STORAGE. */
pl_status pl_witness_write_weights(const pl_session *, const char *folder, const char *by, pl_error *);

#endif

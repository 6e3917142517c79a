/* What the witnesses of several jobs have in common: the weights, as a file of safetensors that says who wrote it. */
#ifndef PL_JOBS_WITNESS_H
#define PL_JOBS_WITNESS_H

#include "run/session.h"

#define PL_WITNESS_WEIGHTS "weights.safetensors"

/* Has the folder weights that were written so? */
bool pl_witness_is_marked(const char *folder, const char *by);
/* All that is saved with a model, under its own names. The heap is used. PL_E_STORAGE. */
pl_status pl_witness_write_weights(const pl_session *, const char *folder, const char *by, pl_error *);

#endif

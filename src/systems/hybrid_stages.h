/* The trainings of a config of pages that are read: n2n, of the adapter alone; task, which may begin with that; then
 * finetune, which begins with the weights of task and trains the last layers of the frozen tower, too. And the
 * denoiser's, which runs only when named. */
#ifndef PL_SYSTEMS_HYBRID_STAGES_H
#define PL_SYSTEMS_HYBRID_STAGES_H

#include "systems/system.h"

bool pl_hybrid_stage(const pl_config *, uint32_t k, pl_stage_row *);
/* Checks keys of several trainings against each other. PL_E_CONFIG. */
pl_status pl_hybrid_check(const pl_config *, pl_error *);
pl_status pl_hybrid_report_stages(const pl_config *, const char *out, pl_doc *, pl_error *);

#endif

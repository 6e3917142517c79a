/* The trainings of a config of cloud heights, in their order: pretrain, final, and a fold for each flight left out. */
#ifndef PL_SYSTEMS_CLOUDS_STAGES_H
#define PL_SYSTEMS_CLOUDS_STAGES_H

#include "systems/system.h"

bool pl_clouds_stage(const pl_config *, uint32_t k, pl_stage_row *);
pl_status pl_clouds_report_stages(const pl_config *, const char *out, pl_doc *, pl_error *);

#define PL_CLOUDS_PRETRAIN "pretrain"
#define PL_CLOUDS_FINAL    "final"
#define PL_CLOUDS_LOO      "loo-"

/* The stage that a command on this config is about: the named one, else the first of all; "": there is none. */
void pl_clouds_stage_of(const pl_config *, char name[PL_STAGE_NAME_BYTES]);

#endif

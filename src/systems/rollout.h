/* What the row of rollouts is made of. */
#ifndef PL_SYSTEMS_ROLLOUT_H
#define PL_SYSTEMS_ROLLOUT_H

#include "config/config.h"
#include "data/fields/rollout_data.h"
#include "systems/results.h"

/* ---- rollout_read.c ---- */
/* A config as plain values, and what they point to. */
typedef struct pl_rollout_reading {
    pl_rollout_setup setup;
    pl_dimension dimension[PL_CONFIG_DIMENSION_COUNT];
    char path[PL_FILE_PATH_MAX];
    pl_str text;
} pl_rollout_reading;
/* PL_E_CONFIG. Free it with pl_rollout_reading_deinit, also when this fails. */
pl_status pl_rollout_read(const pl_config *, pl_rollout_reading *, pl_error *);
void pl_rollout_reading_deinit(pl_rollout_reading *);

/* sampling.part. PL_E_CONFIG. */
pl_status pl_rollout_read_share(const pl_config *, pl_share *, pl_error *);

#endif

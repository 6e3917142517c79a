/* Regression of cloud heights, within systems/: from its keys to flights, frame file and data. */
#ifndef PL_SYSTEMS_CLOUDS_H
#define PL_SYSTEMS_CLOUDS_H

#include "base/alloc.h"
#include "systems/clouds_prepare.h"
#include "systems/system.h"

/* What a config says about its flights, in the form for the preparation. Large: on the heap. */
typedef struct pl_clouds_reading {
    pl_clouds_options options; /* except progress and before_writing */
    pl_flight_files flight[sizeof((pl_config_flights){0}).item / sizeof(pl_config_flight)];
    pl_pool *texts;
    char path[PL_FILE_PATH_MAX]; /* of the frame file */
} pl_clouds_reading;

/* ---- clouds.c ---- */
/* The name of the flight whose samples weigh more in the final training, "" for none. Where no key names it, it is the
 * flight of the pre-training, if the final training has that. */
const char *pl_clouds_overweight(const pl_config *);

/* ---- clouds_read.c ---- */
/* PL_E_CONFIG if there are no flights. The config must live as long as the reading. */
pl_status pl_clouds_read(const pl_config *, pl_clouds_reading **, pl_error *);
void pl_clouds_reading_destroy(pl_clouds_reading *); /* NULL is fine */

pl_status pl_clouds_need_flights(pl_error *); /* always PL_E_CONFIG: there are no flights, and only a plan needs none */

/* ---- clouds_check.c ---- */
/* Checks that need several keys: about the folder, and about flights and the trainings on them. PL_E_CONFIG. */
pl_status pl_clouds_check_folder(const pl_config *, pl_error *);
pl_status pl_clouds_check_flights(const pl_config *, pl_error *);

/* ---- clouds_run.c ---- */
pl_status pl_clouds_prepare_run(pl_preparation *, pl_progress, void *context, pl_error *);

#endif

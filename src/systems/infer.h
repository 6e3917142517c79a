/* Files for a model's inference program, in any system: its face says what it takes (ir/face.h). */
#ifndef PL_SYSTEMS_INFER_H
#define PL_SYSTEMS_INFER_H

#include "config/config.h"
#include "ir/graph.h"
#include "stream/data.h"
#include "systems/system.h"

/* Names of the files that the command runs the model on, as data/infer/names.h has them: "" where the caller brings a
 * batch at a time; NULL where it runs on the system's own data instead of files. */
const char *pl_system_files(const pl_config *, pl_command);
/* The folder for large temporary files. */
const char *pl_system_scratch(const pl_config *);
/* First values in place of trained weights. */
bool pl_system_is_seeded(const pl_config *, pl_command);

/* of: the system's own data, which this takes over, also when it fails. faced: the graph whose program pl_job_infer
 * runs (rewrite/face.c), which shows what the inputs are; NULL where a plan says so: then `planned` is its identity.
 * told: hears of files being prepared, or NULL. PL_E_USAGE, PL_E_DATA: a file is missing or does not fit. */
pl_status pl_system_take_files(const pl_config *, pl_command, pl_data *of, const pl_graph *faced,
                               const pl_facts *planned, const pl_staging_told *told, pl_data **, pl_error *);

#endif

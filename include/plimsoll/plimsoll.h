/* Plimsoll: trains and runs neural networks inside a memory budget. Before the first step it knows where every byte of
 * the process goes; it refuses what cannot fit, and runs what fits so that measured memory equals the plan.
 *
 * Callers need not and must not know graphs, tensors, kernels or file layouts. They see configs, plans, runs and texts.
 *
 *     pl_error error;
 *     pl_config *config = pl_config_create();
 *     pl_plan *plan = NULL;
 *     pl_run *run = NULL;
 *     pl_run_options options = {.host = true};
 *     if (pl_config_load_file(config, "mlp.yaml", &error) || pl_config_check(config, &error) ||
 *         pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &error) ||
 *         pl_plan_make(config, PL_COMMAND_TRAIN, NULL, NULL, NULL, &plan, &error) ||
 *         pl_run_open(plan, &options, &run, &error) || pl_run_train(run, &error))
 *         fprintf(stderr, "%s\n", error.text);
 *     pl_run_close(run), pl_plan_destroy(plan), pl_config_destroy(config);
 */
#ifndef PLIMSOLL_PLIMSOLL_H
#define PLIMSOLL_PLIMSOLL_H

#include "plimsoll/compare.h"
#include "plimsoll/config.h"
#include "plimsoll/convert.h"
#include "plimsoll/doctor.h"
#include "plimsoll/draw.h"
#include "plimsoll/export.h"
#include "plimsoll/fit.h"
#include "plimsoll/infer.h"
#include "plimsoll/machine.h"
#include "plimsoll/place.h"
#include "plimsoll/plan.h"
#include "plimsoll/recompute.h"
#include "plimsoll/results.h"
#include "plimsoll/run.h"
#include "plimsoll/stages.h"
#include "plimsoll/status.h"
#include "plimsoll/storage.h"
#include "plimsoll/synth.h"
#include "plimsoll/times.h"
#include "plimsoll/verify.h"
#include "plimsoll/version.h"
#include "plimsoll/watch.h"

#endif

/* What eval found of a pretrained model, for people and for programs. */
#ifndef PL_CLI_SCORED_H
#define PL_CLI_SCORED_H

#include "command.h"

/* verdict: of the process's memory now. */
pl_status pl_put_scored(const pl_text_score *, const pl_run_verdict *, bool as_json, pl_error *);

#endif

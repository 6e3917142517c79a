/* Of configs whose work is several trainings (plimsoll/stages.h): each is a planner and a runner of its own, and behind
 * it the command is begun again, which finds the next. */
#ifndef PL_CLI_STAGES_H
#define PL_CLI_STAGES_H

#include "load.h"
#include "planning.h"

/* The config becomes that of the stage that is next, the input's folder its own. A config of one training stays as it
 * is (stage->count 0). Whoever begins the first of them makes a plan of those that come later, too: what cannot fit is
 * refused at once. PL_E_CONFIG where the config was changed between two stages. */
pl_status pl_cli_take_stage(const pl_cli_command *, pl_cli_input *, const pl_talk *, pl_stage *, pl_error *);
/* The folder of all trainings of this command, where it goes through several; else NULL. */
const char *pl_cli_stages_folder(void);
/* --stage NAME makes the config that training's, and the input's folder its own. *count: how many trainings there are;
 * of several that nobody names the config stays that of its own keys. */
pl_status pl_cli_name_stage(pl_cli_input *, uint32_t *count, pl_error *);
/* The same for a command that only plans, or compares plans; of several it is said that what follows is of the config's
 * own keys. */
pl_status pl_cli_plan_stage(const pl_cli_command *, pl_cli_input *, pl_error *);
/* All are done: prints the table, and keeps it as JSON and as a page. Returns the exit code. */
int pl_cli_conclude_stages(const pl_cli_input *, const pl_talk *);

#endif

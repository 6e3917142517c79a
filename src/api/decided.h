/* What the search turned on by leave of the user decides the numbers of a run: the config that is kept says so in place
 * of auto, for a run that is resumed must do the same, whatever a search would take by then. */
#ifndef PL_API_DECIDED_H
#define PL_API_DECIDED_H

#include "config/config.h"
#include "fit/choice.h"

/* The words of the choice, where the config says auto. */
void pl_decide(pl_config *, const pl_choice *);
/* Those of the run in the config's folder, where it kept any. */
pl_status pl_decide_as_kept(pl_config *, pl_error *);

#endif

/* Within src/systems: what the row of texts to capsules and the page about its results share. */
#ifndef PL_SYSTEMS_CAPSULES_H
#define PL_SYSTEMS_CAPSULES_H

#include "data/pages/texts.h"
#include "systems/system.h"

#define PL_CAPSULES_INDEX "texts.index" /* in the folder of the run */

/* Which texts a config names; strings are the config's. */
pl_status pl_capsules_texts(const pl_config *, pl_texts_setup *, pl_error *);

/* ---- capsules_page.c: the row of the system ---- */
pl_status pl_capsules_page_write(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);

#endif

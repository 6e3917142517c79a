/* Within src/systems: the command encode of the system hybrid, whose model a run has trained. */
#ifndef PL_SYSTEMS_HYBRID_TEXTS_H
#define PL_SYSTEMS_HYBRID_TEXTS_H

#include "systems/system.h"

extern const pl_dataset pl_dataset_hybrid_texts;

pl_status pl_hybrid_write_page(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);

#endif

/* Within src/systems: the command encode of the system hybrid, whose model a run has trained. */
#ifndef PL_SYSTEMS_HYBRID_TEXTS_H
#define PL_SYSTEMS_HYBRID_TEXTS_H

#include "systems/system.h"

/* pl_system: check_folder, prepare, open (of the command encode), page. */
pl_status pl_hybrid_check_folder(pl_preparation *, pl_command, pl_error *);
pl_status pl_hybrid_prepare(pl_preparation *, pl_progress, void *context, pl_error *);
pl_status pl_hybrid_open_texts(const pl_config *, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
pl_status pl_hybrid_write_page(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);

#endif

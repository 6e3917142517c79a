/* Within src/api: what the storage needs of results. */
#ifndef PL_API_STORAGE_H
#define PL_API_STORAGE_H

#include "storage/storage.h"

/* With the config of a part the page about all of it finds what the results only name; one that is there stays. */
pl_status pl_results_take_config(const char *path, const char *part, pl_error *);

#endif

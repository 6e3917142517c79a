/* The module that a system's processes begin with. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "systems/system.h"

enum { SLACK_BYTES = 4 << 10 }; /* another process may have it mapped in other pieces */

/* At most one dataset of a system wants a module. */
static const pl_dataset *with_module(const char *system)
{
    const pl_system *y = pl_system_named(system);
    for (int i = 0; y && y->dataset[i]; i++)
        if (y->dataset[i]->load_module) return y->dataset[i];
    return NULL;
}

static pl_status load(const pl_dataset *d, const char *further, pl_error *err)
{
    const size_t before = mallinfo2().uordblks;
    PL_TRY(d->load_module(further, err));
    const size_t after = mallinfo2().uordblks;
    pl_process_note_libraries((after > before ? after - before : 0) + SLACK_BYTES);
    return PL_OK;
}

const char *pl_config_module(const pl_config *c)
{
    const pl_dataset *d = pl_dataset_of_run(c);
    const char *further = d->further_module ? d->further_module(c) : NULL;
    return !d->load_module ? NULL : further ? further : pl_system_name(c);
}

/* "SYSTEM", or "SYSTEM:FURTHER". */
pl_status pl_process_begin(const char *module, pl_error *err)
{
    char name[64];
    const char *colon = module ? strchr(module, ':') : NULL;
    snprintf(name, sizeof name, "%.*s", (int)(colon ? colon - module : 60), module ? module : "");
    const pl_dataset *d = module ? with_module(name) : NULL;
    if (d) PL_TRY(load(d, colon ? colon + 1 : NULL, err));
    return pl_process_start(err);
}

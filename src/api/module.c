/* The module that a system's processes begin with. */
#include <malloc.h>

#include "base/process.h"
#include "systems/system.h"

enum { SLACK_BYTES = 4 << 10 }; /* another process may have it in other pieces */

static pl_status load(const pl_system *y, pl_error *err)
{
    const size_t before = mallinfo2().uordblks;
    PL_TRY(y->load_module(err));
    const size_t after = mallinfo2().uordblks;
    pl_process_note_libraries((after > before ? after - before : 0) + SLACK_BYTES);
    return PL_OK;
}

const char *pl_config_module(const pl_config *c) { return pl_system_of(c)->load_module ? pl_system_name(c) : NULL; }

pl_status pl_process_begin(const char *module, pl_error *err)
{
    const pl_system *y = module ? pl_system_named(module) : NULL;
    if (y && y->load_module) PL_TRY(load(y, err));
    return pl_process_start(err);
}

/* The module that a system's processes begin with. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "systems/system.h"

extern char **environ;

#define ENVIRONMENT "PLIMSOLL_INTERNAL_MODULE"
enum { SLACK_BYTES = 4 << 10 }; /* another process may have it in other pieces */

static pl_status load(const pl_system *y, pl_error *err)
{
    const size_t before = mallinfo2().uordblks;
    PL_TRY(y->load_module(err));
    const size_t after = mallinfo2().uordblks;
    pl_process_note_libraries((after > before ? after - before : 0) + SLACK_BYTES);
    return PL_OK;
}

pl_status pl_process_begin(pl_error *err)
{
    const char *name = getenv(ENVIRONMENT);
    const pl_system *y = name ? pl_system_named(name) : NULL;
    if (y && y->load_module) PL_TRY(load(y, err));
    return pl_process_start(err);
}

pl_status pl_process_restart_for(const pl_config *c, char *const *argv, pl_error *err)
{
    const char *begun = getenv(ENVIRONMENT), *name = pl_system_name(c);
    if (!pl_system_of(c)->load_module || (begun && strcmp(begun, name) == 0)) return PL_OK;
    if (setenv(ENVIRONMENT, name, 1) != 0) return pl_fail(err, PL_E_NOMEM, "no memory to begin the command anew");
    return pl_process_restart(argv, environ, err);
}

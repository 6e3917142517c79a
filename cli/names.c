/* More names of files than a config takes: they go into a file, a line each, which the config names as @LIST. It has no
 * name from the start, so it is gone with the last process that has it open; the runner is one of them. */
#include "load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pl_status put(FILE *file, const pl_cli_arguments *a, size_t first)
{
    for (size_t i = first; i < a->operand_count; i++)
        if (fprintf(file, "%s\n", a->all[i]) < 0) return PL_E_STORAGE;
    return fflush(file) == 0 ? PL_OK : PL_E_STORAGE;
}

/* What stdio holds of it is given back; its descriptor stays open, in who comes by exec, too. */
static pl_status write_names(int fd, const pl_cli_arguments *a, size_t first)
{
    const int own = dup(fd);
    FILE *file = own >= 0 ? fdopen(own, "w") : NULL;
    if (!file) {
        if (own >= 0) close(own);
        return PL_E_STORAGE;
    }
    pl_status status = put(file, a, first);
    return fclose(file) == 0 ? status : PL_E_STORAGE;
}

pl_status pl_cli_list_names(const pl_cli_input *in, size_t first, char *text, size_t room, pl_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    pl_status status = pl_cli_setting(in->config, "infer", "scratch", folder, sizeof folder, err);
    if (status != PL_OK) return status;
    snprintf(path, sizeof path, "%s/plimsoll-names-XXXXXX", strcmp(folder, "auto") == 0 ? "/var/tmp" : folder);
    const int fd = mkstemp(path);
    if (fd >= 0) (void)unlink(path);
    if (fd >= 0 && write_names(fd, &in->arguments, first) == PL_OK) {
        snprintf(text, room, "@/proc/self/fd/%d", fd);
        return PL_OK;
    }
    const int why = errno;
    if (fd >= 0) close(fd);
    return pl_cli_error(
        err, PL_E_STORAGE,
        "the names of so many files cannot be put into a file in %s: %s; name another folder (--scratch), "
        "or give the names in a file of yours (@LIST)",
        strcmp(folder, "auto") == 0 ? "/var/tmp" : folder, strerror(why));
}

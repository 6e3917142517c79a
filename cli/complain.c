/* Failures, said in one form. */
#include <stdarg.h>
#include <stdio.h>

#include "command.h"
#include "out.h"

pl_status pl_cli_error(pl_error *err, pl_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(err->text, sizeof err->text, format, list);
    va_end(list);
    return err->status = status;
}

int pl_cli_complain(const char *command, pl_status status, const pl_error *err)
{
    const char *gap = command[0] ? " " : "";
    pl_say("plimsoll%s%s: %s\n", gap, command, err->text[0] ? err->text : pl_status_name(status));
    return pl_status_exit_code(status);
}

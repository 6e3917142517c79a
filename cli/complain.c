/* Failures, said in one form. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "out.h"
#include "signals.h"

pl_status pl_cli_error(pl_error *err, pl_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(err->text, sizeof err->text, format, list);
    va_end(list);
    return err->status = status;
}

/* The sentence may quote a path or a word of the command line: what would act on a terminal, or break the line, becomes
 * a question mark. */
static void disarm(const char *text, pl_line *line)
{
    for (size_t at = 0, bytes = strlen(text); at < bytes;) {
        size_t n = pl_character_bytes(text + at, bytes - at);
        bool shown = n > 0 && text[at] != '\n' && text[at] != '\t';
        pl_line_bytes(line, shown ? text + at : "?", shown ? n : 1);
        at += n ? n : 1;
    }
}

/* Most who ask for memory in the library do not know who refuses it; those that do name the limit. */
static const char *remedy(pl_status status, const char *text)
{
    bool is_said = status != PL_E_NOMEM || strstr(text, "raise the limit");
    return is_said ? "" : "; end other programs or raise the limit (ulimit -v, ulimit -d, the container's)";
}

int pl_cli_complain(const char *command, pl_status status, const pl_error *err)
{
    char text[PL_ERROR_TEXT_BYTES] = "";
    if (status == PL_E_STOPPED) return pl_signal_exit_code(); /* as was asked for: no word about it */
    pl_line line = {text, sizeof text, 0};
    disarm(err->text[0] ? err->text : pl_status_name(status), &line);
    pl_say("plimsoll%s%s: %s%s\n", command[0] ? " " : "", command, text, remedy(status, text));
    return pl_status_exit_code(status);
}

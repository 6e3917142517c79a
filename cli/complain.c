/* Failures, said in one form. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "format.h"
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

/* ---- what the library says, as the command shows it ---- */

enum { SHOWN_BYTES = 2 * PL_ERROR_TEXT_BYTES, LINE_COLUMNS = 100 };

/* A setting that the library names in backquotes is an option here: `run.out` is --out, `checkpoint` --checkpoint.
 * Returns what was read, 0: it is no such name. */
static size_t show_setting(const char *text, pl_line *line)
{
    char name[64];
    const size_t bytes = text[0] == '`' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyzHL_.-0123456789") : 0;
    if (bytes == 0 || bytes >= sizeof name || text[bytes + 1] != '`') return 0;
    snprintf(name, sizeof name, "%.*s", (int)bytes, text + 1);
    const char *option = pl_config_option_of(name);
    pl_line_add(line, "--%s%s", option || !strchr(name, '.') ? "" : "set ", option ? option : name);
    return bytes + 2;
}

/* "85721088 bytes" is "85.7 MB (85,721,088 bytes)"; in parentheses, or before some, only "85,721,088 bytes". */
static size_t show_bytes(const char *text, bool has_unit, pl_line *line)
{
    char count[PL_FORMAT_BYTES], size[PL_FORMAT_BYTES];
    const size_t digits = strspn(text, "0123456789");
    if (digits < 5 || digits > 19 || strncmp(text + digits, " bytes", 6) != 0) return 0;
    const uint64_t bytes = strtoull(text, NULL, 10);
    pl_show_count(bytes, count);
    has_unit = has_unit || (strncmp(text + digits + 6, " (", 2) == 0 && isdigit((unsigned char)text[digits + 8]));
    if (has_unit)
        pl_line_add(line, "%s bytes", count);
    else
        pl_line_add(line, "%s (%s bytes)", pl_show_bytes(bytes, size), count);
    return digits + 6;
}

/* The sentence may quote a path or a word of the command line: what would act on a terminal, or break the line, becomes
 * a question mark. */
static void show(const char *text, bool for_people, pl_line *line)
{
    char before = ' ';
    for (size_t at = 0, bytes = strlen(text), n; at < bytes; before = text[at + n - 1], at += n) {
        n = show_setting(text + at, line);
        if (!n && for_people && (before == ' ' || before == '(')) n = show_bytes(text + at, before == '(', line);
        if (n) continue;
        n = pl_character_bytes(text + at, bytes - at);
        const bool shown = n > 0 && text[at] != '\n' && text[at] != '\t';
        pl_line_bytes(line, shown ? text + at : "?", shown ? n : 1);
        n += n == 0;
    }
}

/* A long sentence in lines: what, why, what to do, as its semicolons part it. */
static void fold(const char *text, pl_line *line)
{
    size_t column = 0;
    for (const char *end; *text; text = *end ? end + 2 : end) {
        end = strstr(text, "; ");
        if (!end) end = text + strlen(text);
        const size_t bytes = (size_t)(end - text);
        const bool breaks = column && column + 2 + bytes > LINE_COLUMNS;
        pl_line_add(line, "%s", breaks ? "\n  " : column ? "; " : "");
        pl_line_bytes(line, text, bytes);
        column = (breaks || !column ? 0 : column) + 2 + bytes;
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
    char shown[SHOWN_BYTES] = "", folded[SHOWN_BYTES] = "";
    if (status == PL_E_STOPPED) return pl_signal_exit_code(); /* as was asked for: no word about it */
    pl_line line = {shown, sizeof shown, 0}, lines = {folded, sizeof folded, 0};
    const bool for_people = !getenv(PL_CLI_SENTENCE);
    show(err->text[0] ? err->text : pl_status_name(status), for_people, &line);
    pl_line_add(&line, "%s", remedy(status, shown));
    fold(shown, &lines);
    pl_say("plimsoll%s%s: %s\n", command[0] ? " " : "", command, for_people ? folded : shown);
    return pl_status_exit_code(status);
}

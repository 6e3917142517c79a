#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/locale.h"

static const struct {
    const char *name;
    int exit_code;
} statuses[] = {
    [PL_OK] = {"PL_OK", 0},
    [PL_E_INTERNAL] = {"PL_E_INTERNAL", 1},
    [PL_E_NOMEM] = {"PL_E_NOMEM", 1},
    [PL_E_USAGE] = {"PL_E_USAGE", 2},
    [PL_E_CONFIG] = {"PL_E_CONFIG", 2},
    [PL_E_BUDGET] = {"PL_E_BUDGET", 3},
    [PL_E_DATA] = {"PL_E_DATA", 4},
    [PL_E_STORAGE] = {"PL_E_STORAGE", 5},
    [PL_E_MISMATCH] = {"PL_E_MISMATCH", 6},
    [PL_E_STOPPED] = {"PL_E_STOPPED", 75},
    [PL_E_DIVERGED] = {"PL_E_DIVERGED", 1},
    [PL_E_UNSUPPORTED] = {"PL_E_UNSUPPORTED", 1},
};

const char *pl_status_name(pl_status status)
{
    if ((unsigned)status >= sizeof statuses / sizeof *statuses) return "PL_E_UNKNOWN";
    return statuses[status].name;
}

int pl_status_exit_code(pl_status status)
{
    if ((unsigned)status >= sizeof statuses / sizeof *statuses) return 1;
    return statuses[status].exit_code;
}

/* What a sentence quotes came from outside, and sentences go to terminals: control characters (C0, DEL, C1) and bytes
 * that are no UTF-8, such as the rest of a character that was cut, become '?'. */
static void make_printable(char *text)
{
    unsigned char *p = (unsigned char *)text;
    for (size_t left = strlen(text), n; left > 0; p += n, left -= n) {
        n = pl_json_utf8_length(p, left);
        if (n == 0 || p[0] < 0x20 || p[0] == 0x7f || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)) {
            memset(p, '?', n ? n : 1);
            n = n ? n : 1;
        }
    }
}

pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...)
{
    if (!err) return status;
    char text[PL_ERROR_TEXT_BYTES]; /* the arguments may point into err->text */
    va_list args;
    va_start(args, fmt);
    pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    make_printable(text);
    err->status = status;
    memcpy(err->text, text, sizeof text);
    return status;
}

pl_status pl_fail_prefix(pl_error *err, pl_status status, const char *fmt, ...)
{
    if (!err) return status;
    char text[PL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    int used = pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof text) snprintf(text + used, sizeof text - (size_t)used, ": %s", err->text);
    make_printable(text);
    err->status = status;
    memcpy(err->text, text, sizeof text);
    return status;
}

void pl_error_append(pl_error *err, const char *fmt, ...)
{
    if (!err) return;
    char text[PL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "%s", text);
    make_printable(err->text);
}

void pl_error_clear(pl_error *err)
{
    if (!err) return;
    err->status = PL_OK;
    err->text[0] = 0;
}

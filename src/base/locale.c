#include "base/locale.h"

#include <stdio.h>
#include <stdlib.h>

locale_t pl_locale_enter(void) { return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); }
void pl_locale_leave(locale_t before) { uselocale(before); }

double pl_read_double(const char *text, char **end)
{
    locale_t before = pl_locale_enter();
    double value = strtod(text, end);
    pl_locale_leave(before);
    return value;
}

int pl_vprint(char *text, size_t room, const char *fmt, va_list args)
{
    locale_t before = pl_locale_enter();
    int needed = vsnprintf(text, room, fmt, args);
    pl_locale_leave(before);
    return needed;
}

int pl_print(char *text, size_t room, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int needed = pl_vprint(text, room, fmt, args);
    va_end(args);
    return needed;
}

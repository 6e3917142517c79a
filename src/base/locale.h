/* Numbers are read and written with a point, whatever locale the host program has set: a plan or a config from under
 * "de_DE" is the same text as from under "C". glibc's "C" locale is static, so nothing here allocates or can fail, and
 * uselocale concerns the calling thread alone. Whatever prints or reads a double goes through one of these. */
#ifndef PL_BASE_LOCALE_H
#define PL_BASE_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

#include "plimsoll/status.h"

/* Between these two, numbers read and print as in the C locale. */
locale_t pl_locale_enter(void);
void pl_locale_leave(locale_t before);

/* strtod, snprintf and vsnprintf between the two. */
double pl_read_double(const char *text, char **end);
int pl_print(char *text, size_t room, const char *fmt, ...) PL_PRINTF(3, 4);
int pl_vprint(char *text, size_t room, const char *fmt, va_list args);

#endif

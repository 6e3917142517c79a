/* A locale that writes 0,5: a host program may have set one, and files and pages are the same bytes then. */
#ifndef PL_TESTS_SUPPORT_COMMA_H
#define PL_TESTS_SUPPORT_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* One that the machine has (LOCPATH names a folder of locales), or that localedef makes in the folder; false: none. */
static inline bool comma_begin(const char *folder)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    char command[8192];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) return true;
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
    (void)!system(command); /* of what it warns the locale is good all the same */
    setenv("LOCPATH", folder, 1);
    const bool made = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    unsetenv("LOCPATH");
    return made;
}

static inline void comma_end(void) { setlocale(LC_ALL, "C"); }

#endif

#include "support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

int enter_folder(char *path) { return mkdtemp(path) && chdir(path) == 0 ? 0 : -1; }

int leave_folder(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", path);
    return chdir("/") != 0 || system(command) != 0;
}

void write_file(const char *path, const char *text, int times)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < times; i++) assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

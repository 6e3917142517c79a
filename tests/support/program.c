#include "support/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE = 2 };

static test_program *first; /* by name */

static void find_name(test_program *p)
{
    const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path;
    snprintf(p->name, sizeof p->name, "%.*s", (int)strcspn(name, "."), name);
}

void test_program_register(test_program *p)
{
    test_program **at = &first;
    find_name(p);
    while (*at && strcmp((*at)->name, p->name) < 0) at = &(*at)->next;
    if (*at && strcmp((*at)->name, p->name) == 0) {
        fprintf(stderr, "%s and %s have one name: rename one\n", (*at)->path, p->path);
        exit(USAGE);
    }
    p->next = *at;
    *at = p;
}

static void list(FILE *f, const char *before)
{
    for (const test_program *p = first; p; p = p->next) fprintf(f, "%s%s\n", before, p->name);
}

static int explain(const char *self)
{
    fprintf(stderr, "usage: %s NAME [SEED…]    the tests of one file\n       %s --list\nNAME is one of\n", self, self);
    list(stderr, "  ");
    return USAGE;
}

static const test_program *find(const char *name)
{
    for (const test_program *p = first; p; p = p->next)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

int main(int argc, char **argv)
{
    static char command[8192];
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list(stdout, "");
        return 0;
    }
    const test_program *p = argc > 1 ? find(argv[1]) : NULL;
    if (!p) return explain(argv[0]);
    snprintf(command, sizeof command, "%s %s", argv[0], argv[1]);
    argv[1] = command;
    return p->run(argc - 1, argv + 1);
}

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool brief;
static const char *usage_line = "";

void bench_begin(int *argc, char **argv, const char *usage)
{
    int kept = 1;
    usage_line = usage;
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("usage: %s\n", usage);
            exit(0);
        }
        if (strcmp(argv[i], "--brief") == 0)
            brief = true;
        else
            argv[kept++] = argv[i];
    }
    argv[ *argc = kept] = NULL;
}

int bench_refuse(void)
{
    fprintf(stderr, "usage: %s\n", usage_line);
    return 2;
}

bool bench_is_brief(void) { return brief; }

int bench_samples(int usual) { return brief ? 1 : usual; }

double bench_sample_seconds(double usual) { return brief ? 0 : usual; }

double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int bench_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the benches share: the clock, the order of samples, --help and --brief.
 *
 * --brief is for the suite, which asks whether a bench runs at all: the same code prints the same lines, from one
 * sample each, as short as can be, and from smaller shapes where the usual ones take long. Such figures tell little. */
#ifndef PL_BENCH_BENCH_H
#define PL_BENCH_BENCH_H

#include <stdbool.h>

/* To be called first: takes --brief out of the arguments, wherever it stands. --help prints the usage and ends the
 * program with 0. */
void bench_begin(int *argc, char **argv, const char *usage);
int bench_refuse(void); /* prints the usage as a complaint; returns the exit code of wrong arguments */
bool bench_is_brief(void);

int bench_samples(int usual);                    /* 1 if brief */
double bench_sample_seconds(double usual);       /* 0 if brief: what is sampled is run once */
double bench_seconds(void);                      /* monotonic clock */
int bench_ascending(const void *, const void *); /* of doubles, for qsort */

#endif

/* Where the random cases of a test begin: its first argument, else PLIMSOLL_TEST_SEED, else the clock. The suite sets
 * the variable (tools/run-tests.sh), so that it tries the same cases each time; `make soak` goes through new ones. */
#ifndef PL_TEST_SEED_H
#define PL_TEST_SEED_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t test_seed(int argc, char **argv)
{
    const char *given = argc > 1 ? argv[1] : getenv("PLIMSOLL_TEST_SEED");
    return given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
}

/* The same for a test of which the seed is all there is to know: says at once, since it may crash, how to repeat it. */
static inline uint64_t test_seed_said(int argc, char **argv)
{
    uint64_t seed = test_seed(argc, argv);
    printf("repeat with: %s %" PRIu64 "\n", argv[0], seed);
    fflush(stdout);
    return seed;
}

#endif

/* Where the random cases of a test begin: its first argument, else PLIMSOLL_TEST_SEED, else the clock. The suite sets
 * the variable (tools/run-tests.sh), so that it tries the same cases each time; `make soak` goes through new ones. */
#ifndef PL_TEST_SEED_H
#define PL_TEST_SEED_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t test_seed(int argc, char **argv)
{
    const char *given = argc > 1 ? argv[1] : getenv("PLIMSOLL_TEST_SEED");
    return given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
}

#endif

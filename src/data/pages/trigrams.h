/* A text as numbers that nobody has learnt: the mean of a random vector for each of its trigrams, three bytes that
 * follow one another, with a space in front of the text and behind it. The vector of a trigram is standard normal, and
 * a function of the seed and of the trigram's hash alone, so that there is no table of them. */
#ifndef PL_DATA_TRIGRAMS_H
#define PL_DATA_TRIGRAMS_H

#include <stddef.h>
#include <stdint.h>

enum { PL_TRIGRAM_WIDTH_MAX = 1024 };

/* Writes `width` numbers, at most PL_TRIGRAM_WIDTH_MAX; zeros for a text without a byte. Asks for no memory. */
void pl_trigram_feature(uint64_t seed, const char *text, size_t bytes, uint32_t width, float *feature);

#endif

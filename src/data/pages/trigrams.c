#include "data/pages/trigrams.h"

#include <string.h>

#include "base/hash.h"
#include "base/philox.h"

enum { LETTERS = 3 };

static char letter(const char *text, size_t bytes, size_t i) { return i == 0 || i > bytes ? ' ' : text[i - 1]; }

static void add(const pl_philox *random, uint64_t hash, uint32_t width, float *feature)
{
    float vector[PL_TRIGRAM_WIDTH_MAX];
    pl_philox_normal_f32(random, 0, hash, 0, width, vector);
    for (uint32_t i = 0; i < width; i++) feature[i] += vector[i];
}

void pl_trigram_feature(uint64_t seed, const char *text, size_t bytes, uint32_t width, float *feature)
{
    const pl_philox random = pl_philox_init(seed, pl_stream_id("data/trigrams"));
    memset(feature, 0, width * sizeof *feature);
    if (bytes == 0) return;
    for (size_t i = 0; i < bytes; i++) { /* of bytes + 2 letters there are so many */
        char of[LETTERS];
        for (size_t k = 0; k < LETTERS; k++) of[k] = letter(text, bytes, i + k);
        add(&random, XXH64(of, sizeof of, 0), width, feature);
    }
    for (uint32_t i = 0; i < width; i++) feature[i] /= (float)bytes;
}

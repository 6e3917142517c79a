#include "base/philox.h"

#include <math.h>

static uint64_t mix64(uint64_t x) /* the finalizer of SplitMix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

pl_philox pl_philox_init(uint64_t seed, uint64_t stream)
{
    uint64_t key = mix64(mix64(seed) ^ stream);
    return (pl_philox){{(uint32_t)key, (uint32_t)(key >> 32)}};
}

void pl_philox_block(const pl_philox *p, uint32_t step, uint64_t sample, uint32_t block, uint32_t out[4])
{
    uint32_t c[4] = {block, (uint32_t)sample, (uint32_t)(sample >> 32), step}, k0 = p->key[0], k1 = p->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        for (int i = 0; i < 4; i++) c[i] = next[i];
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

uint64_t pl_stream_id(const char *scope)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *scope; scope++) hash = (hash ^ (unsigned char)*scope) * 0x100000001b3u;
    return hash;
}

static void normal_pair(uint32_t a, uint32_t b, float *first, float *second)
{
    double u = ((double)a + 0.5) * 0x1p-32, v = ((double)b + 0.5) * 0x1p-32;
    double r = sqrt(-2 * log(u)), angle = 6.283185307179586476925 * v;
    *first = (float)(r * cos(angle));
    *second = (float)(r * sin(angle));
}

void pl_philox_normal_f32(const pl_philox *p, uint32_t step, uint64_t sample, uint64_t begin, uint64_t end, float *out)
{
    for (uint64_t block = begin / 4; block * 4 < end; block++) {
        uint32_t bits[4];
        float z[4];
        pl_philox_block(p, step, sample, (uint32_t)block, bits);
        normal_pair(bits[0], bits[1], &z[0], &z[1]);
        normal_pair(bits[2], bits[3], &z[2], &z[3]);
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t at = block * 4 + i;
            if (at >= begin && at < end) out[at - begin] = z[i];
        }
    }
}

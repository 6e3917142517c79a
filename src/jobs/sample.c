#include "jobs/sample.h"

#include <math.h>
#include <stddef.h>

#include "base/philox.h"

typedef struct candidate {
    float logit;
    uint32_t id;
} candidate;

uint64_t pl_sample_workspace_bytes(uint32_t vocab) { return (uint64_t)vocab * sizeof(candidate); }

/* a before b: higher logit, among equals the lower id, so that the order is total. */
static int before(const candidate *a, const candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Heap sort in place: qsort may ask for memory. The root is the candidate that comes last. */
static void sift(candidate *c, size_t root, size_t count)
{
    candidate moved = c[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(&c[child], &c[child + 1])) child++;
        if (!before(&moved, &c[child])) break;
        c[root] = c[child];
    }
    c[root] = moved;
}

static void sort_candidates(candidate *c, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) sift(c, i, count);
    for (size_t end = count; end-- > 1;) {
        candidate last = c[0];
        c[0] = c[end];
        c[end] = last;
        sift(c, 0, end);
    }
}

bool pl_sampling_penalizes(const pl_sampling *s)
{
    return s->repeat_last_n != 0 && (s->repeat_penalty != 1 || s->frequency_penalty != 0 || s->presence_penalty != 0);
}

static float penalize(float logit, uint32_t count, const pl_sampling *s)
{
    const float repeat = (float)s->repeat_penalty;
    if (count == 0) return logit;
    logit = logit < 0 ? logit * repeat : logit / repeat;
    return logit - ((float)count * (float)s->frequency_penalty + (float)s->presence_penalty);
}

/* How many of the sorted candidates top-p and then min-p keep; their weights, exp((logit − max)/T), replace the logits:
 * the likeliest has 1. kept: their sum. */
static size_t nucleus(candidate *c, size_t count, const pl_sampling *s, double *kept)
{
    double total = 0;
    size_t n = 0;
    float top = c[0].logit;
    for (size_t i = 0; i < count; i++) {
        c[i].logit = (float)exp((double)(c[i].logit - top) / s->temperature);
        total += (double)c[i].logit;
    }
    *kept = 0;
    do {
        *kept += (double)c[n++].logit;
    } while (*kept < s->top_p * total && n < count && (double)c[n].logit >= s->min_p);
    return n;
}

uint32_t pl_sample_token(const float *logits, uint32_t vocab, const pl_sampling *s, const uint32_t *count,
                         uint64_t position, uint32_t sample, void *workspace)
{
    candidate *c = workspace;
    size_t kept = vocab, best = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        const float logit = count ? penalize(logits[i], count[i], s) : logits[i];
        /* a NaN is never the likeliest */
        c[i] = (candidate){isnan(logit) ? -INFINITY : logit, i};
        if (before(&c[i], &c[best])) best = i;
    }
    if (s->temperature <= 0 || isinf(c[best].logit)) return c[best].id;
    sort_candidates(c, kept);
    if (s->top_k > 0 && (uint64_t)s->top_k < kept) kept = (size_t)s->top_k;
    double sum = 0, at = 0;
    kept = nucleus(c, kept, s, &sum);
    uint32_t bits[4];
    pl_philox random = pl_philox_init(s->seed, pl_stream_id("generate"));
    pl_philox_block(&random, sample, position, 0, bits);
    double pick = ((double)bits[0] + 0.5) * 0x1p-32 * sum;
    for (size_t i = 0; i < kept; i++) {
        at += (double)c[i].logit;
        if (pick < at) return c[i].id;
    }
    return c[kept - 1].id;
}

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

/* How many of the sorted candidates top-p keeps; their weights, exp((logit − max)/T), replace the logits. */
static size_t nucleus(candidate *c, size_t count, const pl_sampling *s, double *kept)
{
    double total = 0, sum = 0;
    float top = c[0].logit;
    for (size_t i = 0; i < count; i++) {
        c[i].logit = (float)exp((double)(c[i].logit - top) / s->temperature);
        total += (double)c[i].logit;
    }
    for (size_t i = 0; i < count; i++) {
        sum += (double)c[i].logit;
        if (sum >= s->top_p * total || i + 1 == count) {
            *kept = sum;
            return i + 1;
        }
    }
    return 0;
}

uint32_t pl_sample_token(const float *logits, uint32_t vocab, const pl_sampling *s, uint64_t position, void *workspace)
{
    candidate *c = workspace;
    size_t count = vocab, best = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        /* a NaN is never the likeliest */
        c[i] = (candidate){isnan(logits[i]) ? -INFINITY : logits[i], i};
        if (before(&c[i], &c[best])) best = i;
    }
    if (s->temperature <= 0 || isinf(c[best].logit)) return c[best].id;
    sort_candidates(c, count);
    if (s->top_k > 0 && (uint64_t)s->top_k < count) count = (size_t)s->top_k;
    double kept = 0, at = 0;
    count = nucleus(c, count, s, &kept);
    uint32_t bits[4];
    pl_philox random = pl_philox_init(s->seed, pl_stream_id("generate"));
    pl_philox_block(&random, 0, position, 0, bits);
    double pick = ((double)bits[0] + 0.5) * 0x1p-32 * kept;
    for (size_t i = 0; i < count; i++) {
        at += (double)c[i].logit;
        if (pick < at) return c[i].id;
    }
    return c[count - 1].id;
}

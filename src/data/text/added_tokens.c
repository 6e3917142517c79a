/* Added tokens (<|im_end|>, …) are found in the text before it is cut into pieces: at each place the longest one, from
 * left to right. A set is sorted by text, so that the tokens which share a beginning are a range, and a range shrinks
 * with every further byte. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_impl.h"

/* The first of [low, high), which share `at` bytes, whose next byte is at least `byte`; one that ends there is less. */
static uint32_t first_with(const pl_added_set *set, uint32_t low, uint32_t high, size_t at, unsigned byte)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const pl_added_token *a = set->by_text[middle];
        if (a->wanted_bytes <= at || a->wanted[at] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const pl_added_token *pl_added_longest(const pl_added_set *set, const uint8_t *text, size_t bytes)
{
    const pl_added_token *found = NULL;
    uint32_t low = 0, high = set->count;
    if (!bytes || !set->first[text[0]]) return NULL;
    for (size_t at = 0; at < bytes; at++) {
        low = first_with(set, low, high, at, text[at]);
        high = first_with(set, low, high, at, text[at] + 1u);
        if (low == high) break;
        if (set->by_text[low]->wanted_bytes == at + 1) found = set->by_text[low];
    }
    return found;
}

enum { CLUSTER_MAX = 2 * PL_TOKEN_BYTES_MAX };

static bool goes_before(const pl_added_token *a, const pl_added_token *b)
{
    return a->wanted_bytes != b->wanted_bytes ? a->wanted_bytes > b->wanted_bytes : a->id < b->id;
}

/* llama.cpp looks for its tokens one after the other, the longest first, in the whole text. Tokens that overlap are a
 * cluster, which begins at `from`: of these the longest is taken, of the lowest id among equals, and leftmost; what is
 * before it is looked at in the same way. Returns what the cluster begins with then, at *at. */
static const pl_added_token *resolve(const pl_added_set *set, const uint8_t *p, size_t bytes, size_t from, size_t *at)
{
    const pl_added_token *here = pl_added_longest(set, p + from, bytes - from);
    size_t end = from + here->wanted_bytes;
    bool is_first = true; /* as nearly always: nothing that overlaps it goes before it */
    for (size_t i = from + 1; i < end && is_first; i++) {
        const pl_added_token *a = pl_added_longest(set, p + i, bytes - i);
        is_first = !a || !goes_before(a, here);
    }
    if (is_first) return here;
    for (size_t i = from; i < end && end - from < CLUSTER_MAX; i++) {
        const pl_added_token *a = pl_added_longest(set, p + i, bytes - i);
        if (a && i + a->wanted_bytes > end) end = i + a->wanted_bytes;
    }
    for (const pl_added_token *taken = NULL;;) {
        const pl_added_token *best = NULL;
        size_t place = from;
        for (size_t i = from; i < end; i++) {
            const pl_added_token *a = pl_added_longest(set, p + i, end - i);
            if (a && (!best || goes_before(a, best))) best = a, place = i;
        }
        if (!best) return taken;
        taken = best;
        end = *at = place;
        if (place == from) return best;
    }
}

const pl_added_token *pl_added_search(const pl_added_set *set, const uint8_t *p, size_t bytes, int final, size_t *at)
{
    const size_t unsure = !set->count || final    ? 0
                          : set->is_longest_first ? CLUSTER_MAX + PL_TOKEN_BYTES_MAX
                                                  : set->longest - 1;
    if (!set->count) {
        *at = bytes;
        return NULL;
    }
    for (; *at + unsure < bytes; ++*at) {
        const pl_added_token *found = set->first[p[*at]] ? pl_added_longest(set, p + *at, bytes - *at) : NULL;
        if (found) return set->is_longest_first ? resolve(set, p, bytes, *at, at) : found;
    }
    return NULL;
}

/* ---- building ---- */

static int compare_wanted(const void *left, const void *right)
{
    const pl_added_token *a = *(const pl_added_token *const *)left, *b = *(const pl_added_token *const *)right;
    const size_t common = a->wanted_bytes < b->wanted_bytes ? a->wanted_bytes : b->wanted_bytes;
    const int order = memcmp(a->wanted, b->wanted, common);
    if (order || a->wanted_bytes != b->wanted_bytes) return order ? order : a->wanted_bytes < b->wanted_bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static pl_status fill_set(pl_added_set *set, const pl_tokenizer *t, int normalized, pl_error *err)
{
    set->by_text = pl_alloc((size_t)t->added_count + 1, sizeof *set->by_text);
    if (!set->by_text) return pl_fail(err, PL_E_NOMEM, "no memory for the tokenizer's tables");
    for (uint32_t i = 0; i < t->added_count; i++) {
        const pl_added_token *a = &t->added[i];
        if (a->normalized != normalized || !a->wanted_bytes) continue;
        set->by_text[set->count++] = a;
        set->first[a->wanted[0]] = 1;
        set->strips_left |= a->strips_left;
        if (a->wanted_bytes > set->longest) set->longest = a->wanted_bytes;
    }
    if (set->count) qsort(set->by_text, set->count, sizeof *set->by_text, compare_wanted);
    return PL_OK;
}

/* Longest first; among equals by id: the order of a file's list has no meaning and must not reach the hash. */
static int compare_added(const void *left, const void *right)
{
    const pl_added_token *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

pl_status pl_tokenizer_set_added(pl_tokenizer *t, const pl_added_token *added, uint32_t count, pl_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) total += added[i].wanted_bytes;
    t->added = pl_alloc(count, sizeof *t->added);
    t->wanted = pl_alloc(total + 1, 1);
    t->added_bit = pl_alloc((size_t)t->vocab / 8 + 1, 1);
    if (!t->added || !t->wanted || !t->added_bit)
        return pl_fail(err, PL_E_NOMEM, "no memory for the tokenizer's tables");
    t->added_count = count;
    if (count) memcpy(t->added, added, count * sizeof *added), qsort(t->added, count, sizeof *added, compare_added);
    for (uint32_t i = 0, at = 0; i < count; i++) {
        pl_added_token *a = &t->added[i];
        if (a->wanted) {
            memcpy(t->wanted + at, a->wanted, a->wanted_bytes);
            a->wanted = t->wanted + at;
            at += a->wanted_bytes;
        } else {
            a->wanted = t->text + t->offset[a->id];
            a->wanted_bytes = a->bytes;
        }
        t->added_bit[a->id / 8] |= (uint8_t)(1u << a->id % 8);
        if (a->normalized != t->added[0].normalized) t->added_mixed = 1;
    }
    PL_TRY(fill_set(&t->raw, t, 0, err));
    return fill_set(&t->normalized, t, 1, err);
}

void pl_tokenizer_free_added(pl_tokenizer *t)
{
    pl_free(t->raw.by_text);
    pl_free(t->normalized.by_text);
    pl_free(t->wanted);
    pl_free(t->added_bit);
    pl_free(t->added);
}

#include "data/words.h"

#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer_impl.h"

uint64_t pl_words_bytes(uint32_t word_limit, uint32_t text_limit)
{
    return (uint64_t)word_limit * sizeof(pl_word) + text_limit + (uint64_t)pl_table_size(word_limit) * sizeof(uint32_t);
}

pl_status pl_words_init(pl_words *w, uint32_t word_limit, uint32_t text_limit, pl_error *err)
{
    *w = (pl_words){.word_limit = word_limit, .text_limit = text_limit, .mask = pl_table_size(word_limit) - 1};
    w->word = pl_alloc(word_limit, sizeof *w->word);
    w->text = pl_alloc(text_limit, 1);
    w->slot = pl_alloc((size_t)w->mask + 1, sizeof *w->slot);
    if (w->word && w->text && w->slot) return PL_OK;
    pl_words_deinit(w);
    return pl_fail(err, PL_E_NOMEM, "no memory for the table of words (%llu bytes)",
                   (unsigned long long)pl_words_bytes(word_limit, text_limit));
}

void pl_words_close(pl_words *w)
{
    pl_free(w->slot);
    w->slot = NULL;
}

void pl_words_deinit(pl_words *w)
{
    pl_words_close(w);
    pl_free(w->word);
    pl_free(w->text);
    *w = (pl_words){0};
}

static uint32_t *place_of(const pl_words *w, const uint8_t *text, uint32_t bytes)
{
    for (uint32_t at = (uint32_t)pl_hash_bytes(text, bytes);; at++) {
        uint32_t *slot = &w->slot[at & w->mask];
        if (*slot == 0) return slot;
        const pl_word *word = &w->word[*slot - 1];
        if (word->bytes == bytes && memcmp(w->text + word->offset, text, bytes) == 0) return slot;
    }
}

/* ---- eviction ---- */

/* The count at or below which at least `wanted` words lie, the smallest such. Bisection: O(words · log of the largest).
 */
static uint64_t count_limit(const pl_words *w, uint32_t wanted)
{
    uint64_t low = 1, high = UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint32_t below = 0;
        for (uint32_t i = 0; i < w->count; i++) below += w->word[i].count <= middle;
        if (below >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* How many words at exactly `limit` stay, when `keep` words stay in all. */
static uint32_t stay_at_limit(const pl_words *w, uint64_t limit, uint32_t keep)
{
    uint32_t above = 0;
    for (uint32_t i = 0; i < w->count; i++) above += w->word[i].count > limit;
    return keep - above;
}

static void keep_word(pl_words *w, uint32_t to, uint32_t from)
{
    pl_word word = w->word[from];
    memmove(w->text + w->text_bytes, w->text + word.offset, word.bytes);
    word.offset = w->text_bytes;
    w->text_bytes += word.bytes;
    w->word[to] = word;
    *place_of(w, w->text + word.offset, word.bytes) = to + 1;
}

static void evict_half(pl_words *w)
{
    uint32_t leave = w->count - w->count / 2, kept = 0, count = w->count;
    uint64_t limit = count_limit(w, leave);
    uint32_t equals = stay_at_limit(w, limit, w->count - leave);
    memset(w->slot, 0, ((size_t)w->mask + 1) * sizeof *w->slot);
    w->text_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t times = w->word[i].count;
        if (times > limit || (times == limit && equals > 0)) {
            if (times == limit) equals--;
            keep_word(w, kept++, i);
        } else {
            w->evicted += times;
        }
    }
    w->count = kept;
}

/* ---- adding ---- */

void pl_words_add(pl_words *w, const uint8_t *text, uint32_t bytes)
{
    uint32_t *slot = place_of(w, text, bytes);
    if (*slot) {
        w->word[*slot - 1].count++;
        return;
    }
    while (w->count == w->word_limit || bytes > w->text_limit - w->text_bytes) {
        evict_half(w);
        slot = place_of(w, text, bytes);
    }
    w->word[w->count] = (pl_word){1, w->text_bytes, bytes};
    memcpy(w->text + w->text_bytes, text, bytes);
    w->text_bytes += bytes;
    *slot = ++w->count;
}

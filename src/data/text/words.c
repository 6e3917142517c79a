#include "data/text/words.h"

#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_impl.h"

enum { FIRST_WORDS = 4096, FIRST_TEXT_BYTES = 64 << 10 };

uint64_t pl_words_bytes(uint32_t word_limit, uint32_t text_limit)
{
    uint64_t slots = (uint64_t)pl_table_size(word_limit) * sizeof(uint32_t);
    return (uint64_t)word_limit * sizeof(pl_word) + text_limit + slots + slots / 2;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

pl_status pl_words_init(pl_words *w, uint32_t word_limit, uint32_t text_limit, pl_error *err)
{
    *w = (pl_words){.word_limit = word_limit,
                    .text_limit = text_limit,
                    .word_room = least(word_limit, FIRST_WORDS),
                    .text_room = least(text_limit, FIRST_TEXT_BYTES)};
    w->mask = pl_table_size(w->word_room) - 1;
    w->word = pl_alloc(w->word_room, sizeof *w->word);
    w->text = pl_alloc(w->text_room, 1);
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

/* ---- growing ---- */

static bool grow_words(pl_words *w)
{
    uint32_t room = w->word_room < w->word_limit / 2 ? 2 * w->word_room : w->word_limit;
    uint32_t mask = pl_table_size(room) - 1;
    pl_word *word = pl_realloc(w->word, room, sizeof *word);
    if (word) w->word = word;
    uint32_t *slot = word ? pl_alloc((size_t)mask + 1, sizeof *slot) : NULL;
    if (!slot) return false;
    pl_free(w->slot);
    w->slot = slot;
    w->mask = mask;
    w->word_room = room;
    for (uint32_t i = 0; i < w->count; i++) *place_of(w, w->text + word[i].offset, word[i].bytes) = i + 1;
    return true;
}

static bool grow_text(pl_words *w)
{
    uint32_t room = w->text_room < w->text_limit / 2 ? 2 * w->text_room : w->text_limit;
    uint8_t *text = pl_realloc(w->text, room, 1);
    if (!text) return false;
    w->text = text;
    w->text_room = room;
    return true;
}

static bool lacks_words(const pl_words *w) { return w->count == w->word_room && w->word_room < w->word_limit; }

static bool lacks_text(const pl_words *w, uint32_t bytes)
{
    return bytes > w->text_room - w->text_bytes && w->text_room < w->text_limit;
}

/* Room for one more as far as the bounds allow; what lies beyond is for evict_half. */
static bool make_room(pl_words *w, uint32_t bytes)
{
    while (lacks_text(w, bytes))
        if (!grow_text(w)) return false;
    return !lacks_words(w) || grow_words(w);
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
    if (*slot || w->refused) {
        if (*slot) w->word[*slot - 1].count++;
        return;
    }
    if (!make_room(w, bytes)) {
        w->refused = true;
        return;
    }
    slot = place_of(w, text, bytes);
    while (w->count == w->word_limit || bytes > w->text_limit - w->text_bytes) {
        evict_half(w);
        slot = place_of(w, text, bytes);
    }
    w->word[w->count] = (pl_word){1, w->text_bytes, bytes};
    memcpy(w->text + w->text_bytes, text, bytes);
    w->text_bytes += bytes;
    *slot = ++w->count;
}

#include "data/pages/lexicon.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/permutation.h"

static pl_status make_room(uint32_t count, pl_lexicon *l, pl_error *err)
{
    *l = (pl_lexicon){.word = pl_alloc(count, sizeof *l->word), .bytes = pl_alloc(count, 1), .count = count};
    if (l->word && l->bytes) return PL_OK;
    pl_lexicon_deinit(l);
    return pl_fail(err, PL_E_NOMEM, "no memory for %u words", count);
}

void pl_lexicon_deinit(pl_lexicon *l)
{
    pl_free(l->word);
    pl_free(l->bytes);
    *l = (pl_lexicon){0};
}

/* Rows are zero behind their word. */
static void finish(pl_lexicon *l) { l->hash = XXH64(l->word, (size_t)l->count * sizeof *l->word, 0); }

/* ---- from a seed ---- */

static const char consonants[] = "bcdfghjklmnprstvwxyz", vowels[] = "aeiou";
enum { CONSONANTS = sizeof consonants - 1, VOWELS = sizeof vowels - 1, SYLLABLES = CONSONANTS * VOWELS };

/* Half of all words of that length at most, so that they look drawn at random. */
static int syllables_for(uint32_t count) { return count <= SYLLABLES * SYLLABLES / 2 ? 2 : 3; }

pl_status pl_lexicon_make(uint64_t seed, uint32_t count, pl_lexicon *l, pl_error *err)
{
    const int syllables = syllables_for(count);
    uint64_t all = 1;
    for (int i = 0; i < syllables; i++) all *= SYLLABLES;
    const pl_permutation order = pl_permutation_init(all, pl_philox_init(seed, pl_stream_id("data/lexicon")));
    PL_TRY(make_room(count, l, err));
    for (uint32_t w = 0; w < count; w++) {
        uint64_t number = pl_permutation_at(&order, 0, w);
        for (int i = 0; i < syllables; i++, number /= SYLLABLES) {
            l->word[w][2 * i] = consonants[number % SYLLABLES / VOWELS];
            l->word[w][2 * i + 1] = vowels[number % VOWELS];
        }
        l->bytes[w] = (uint8_t)(2 * syllables);
    }
    finish(l);
    return PL_OK;
}

/* ---- from a file ---- */

static bool is_word(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] <= ' ' || text[i] > '~') return false;
    return bytes > 0 && bytes < PL_LEXICON_WORD_BYTES;
}

/* Of 2^k places, more than half of them free, each the number of a word plus one. */
typedef struct places {
    uint32_t *at;
    uint64_t mask;
} places;

static pl_status find_twin(const pl_lexicon *l, const places *p, uint32_t number, const char *path, uint64_t line,
                           pl_error *err)
{
    uint64_t at = XXH64(l->word[number], sizeof *l->word, 0) & p->mask;
    for (; p->at[at]; at = (at + 1) & p->mask)
        if (memcmp(l->word[p->at[at] - 1], l->word[number], sizeof *l->word) == 0)
            return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": the word %s is there twice; leave one out", path, line,
                           l->word[number]);
    p->at[at] = number + 1;
    return PL_OK;
}

static pl_status take_line(pl_lexicon *l, const places *p, uint32_t number, const char *text, size_t bytes,
                           const char *path, uint64_t line, pl_error *err)
{
    if (!is_word(text, bytes))
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": is no word of 1 to %d letters, digits or signs of ASCII without spaces; "
                       "write one word a line",
                       path, line, PL_LEXICON_WORD_BYTES - 1);
    memcpy(l->word[number], text, bytes);
    l->bytes[number] = (uint8_t)bytes;
    return find_twin(l, p, number, path, line, err);
}

/* Empty lines are no words. */
static pl_status take_lines(pl_lexicon *l, const places *p, const char *text, size_t bytes, const char *path,
                            pl_error *err)
{
    uint32_t found = 0;
    uint64_t line = 1;
    for (size_t at = 0; at < bytes && found < l->count; line++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - text) - at : bytes - at, next = at + length + 1;
        if (length > 0 && text[at + length - 1] == '\r') length--;
        if (length > 0) PL_TRY(take_line(l, p, found++, text + at, length, path, line, err));
        at = next;
    }
    if (found == l->count) return PL_OK;
    if (found == 0) return pl_fail(err, PL_E_DATA, "%s: has no words; give a file with one a line", path);
    return pl_fail(err, PL_E_DATA, "%s: has %u words, and reading.words is %u; make that smaller, or give more words",
                   path, found, l->count);
}

pl_status pl_lexicon_read(const char *path, uint32_t count, pl_lexicon *l, pl_error *err)
{
    enum { FILE_MAX = 64 << 20 };
    char *text;
    size_t bytes;
    places p = {.mask = 1};
    PL_TRY(pl_file_read_text(path, FILE_MAX, &text, &bytes, err));
    while (p.mask < 2 * (uint64_t)count) p.mask *= 2;
    p.at = pl_alloc(p.mask--, sizeof *p.at);
    pl_status status = p.at ? make_room(count, l, err) : pl_fail(err, PL_E_NOMEM, "no memory for %u words", count);
    if (status == PL_OK) {
        status = take_lines(l, &p, text, bytes, path, err);
        if (status != PL_OK) pl_lexicon_deinit(l);
    }
    if (status == PL_OK) finish(l);
    pl_free(p.at);
    pl_free(text);
    return status;
}

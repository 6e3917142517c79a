/* Unicode Standard Annex 15: decompose fully, sort each run of marks by combining class, then compose every character
 * with the last starter unless one between them blocks it. */
#include "data/text/nfc.h"

#include <stdlib.h>

typedef struct decomposed_part {
    uint16_t at, count;
} decomposed_part;

typedef struct combining {
    uint32_t first, last, class;
} combining;

typedef struct composed_pair {
    uint32_t first, second, whole;
} composed_pair;

#include "data/text/unicode_composition.inc"
#include "data/text/unicode_decomposition.inc"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { HANGUL = 0xac00, HANGUL_COUNT = 11172, LEADS = 0x1100, VOWELS = 0x1161, TAILS = 0x11a7 };
enum { LEAD_COUNT = 19, VOWEL_COUNT = 21, TAIL_COUNT = 28 }; /* the first tail stands for none */

static bool is_in(uint32_t c, uint32_t first, uint32_t count) { return c - first < count; }

static int compare_points(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static int compare_classes(const void *left, const void *right)
{
    const combining *a = left, *b = right;
    return a->last < b->first ? -1 : a->first > b->last;
}

static int compare_pairs(const void *left, const void *right)
{
    const composed_pair *a = left, *b = right;
    return a->first != b->first ? compare_points(&a->first, &b->first) : compare_points(&a->second, &b->second);
}

static uint32_t class_of(uint32_t c)
{
    const combining key = {c, c, 0},
                    *found = bsearch(&key, combining_class, COUNT(combining_class), sizeof key, compare_classes);
    return found ? found->class : 0;
}

/* Its full decomposition, or itself; returns how many there are. */
static size_t decompose(uint32_t c, uint32_t out[PL_NFC_EXPANSION_MAX])
{
    if (is_in(c, HANGUL, HANGUL_COUNT)) {
        const uint32_t k = c - HANGUL, tail = k % TAIL_COUNT;
        out[0] = LEADS + k / (VOWEL_COUNT * TAIL_COUNT), out[1] = VOWELS + k / TAIL_COUNT % VOWEL_COUNT;
        out[2] = TAILS + tail;
        return tail ? 3 : 2;
    }
    const uint32_t *found = bsearch(&c, decomposed, COUNT(decomposed), sizeof c, compare_points);
    out[0] = c;
    if (!found) return 1;
    const decomposed_part part = decomposed_parts[found - decomposed];
    for (size_t i = 0; i < part.count; i++) out[i] = decomposition[part.at + i];
    return part.count;
}

static bool continues(uint32_t c)
{
    return class_of(c) != 0 || is_in(c, VOWELS, VOWEL_COUNT) || is_in(c, TAILS, TAIL_COUNT) ||
           bsearch(&c, composed_second, COUNT(composed_second), sizeof c, compare_points);
}

bool pl_nfc_begins(uint32_t c)
{
    uint32_t part[PL_NFC_EXPANSION_MAX];
    if (c < 0x300) return true; /* the first mark */
    (void)decompose(c, part);
    return !continues(c) && !continues(part[0]);
}

/* What two compose to, or 0. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    if (is_in(a, LEADS, LEAD_COUNT) && is_in(b, VOWELS, VOWEL_COUNT))
        return HANGUL + ((a - LEADS) * VOWEL_COUNT + (b - VOWELS)) * TAIL_COUNT;
    if (is_in(a, HANGUL, HANGUL_COUNT) && (a - HANGUL) % TAIL_COUNT == 0 && is_in(b, TAILS + 1, TAIL_COUNT - 1))
        return a + b - TAILS;
    const composed_pair key = {a, b, 0}, *found = bsearch(&key, composed, COUNT(composed), sizeof key, compare_pairs);
    return found ? found->whole : 0;
}

enum { CLASS_SHIFT = 24, POINT_MASK = (1 << CLASS_SHIFT) - 1 };

/* Each with its class in the upper byte. Stable: insertion, since runs are short. */
static void sort_marks(uint32_t *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t class = class_of(p[i]), c = p[i] | class << CLASS_SHIFT;
        size_t at = i;
        for (; class && at && p[at - 1] >> CLASS_SHIFT > class; at--) p[at] = p[at - 1];
        p[at] = c;
    }
}

size_t pl_nfc_compose(const uint32_t *cluster, size_t count, uint32_t *p)
{
    size_t n = 0, made = 0, starter = SIZE_MAX;
    uint32_t last = 0; /* the class of the last one after the starter that stayed */
    for (size_t i = 0; i < count; i++) n += decompose(cluster[i], p + n);
    sort_marks(p, n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t class = p[i] >> CLASS_SHIFT, c = p[i] & POINT_MASK;
        const bool is_blocked = starter == SIZE_MAX || (made != starter + 1 && last >= class);
        const uint32_t whole = is_blocked ? 0 : compose(p[starter], c);
        if (whole) {
            p[starter] = whole;
            continue;
        }
        last = class;
        if (class == 0) starter = made;
        p[made++] = c;
    }
    return made;
}

/* O(n log n): a heap of possible merges, of which those that time has overtaken are recognised when they come up,
 * because the pair at their place no longer has their rank. Every merge takes one entry and adds at most two to the
 * n − 1 of the beginning, so 2n are room enough. */
#include "data/text/bpe_merge.h"

#include <string.h>

#include "data/text/unicode.h"

static void heap_push(pl_bpe_work *w, uint64_t entry)
{
    uint32_t at = w->heap_count++;
    for (; at > 0 && w->heap[(at - 1) / 2] > entry; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = entry;
}

static uint64_t heap_pop(pl_bpe_work *w)
{
    uint64_t top = w->heap[0], moved = w->heap[--w->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= w->heap_count) break;
        if (child + 1 < w->heap_count && w->heap[child + 1] < w->heap[child]) child++;
        if (w->heap[child] >= moved) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = moved;
    return top;
}

static uint32_t append(pl_bpe_work *w, uint32_t count, uint32_t id)
{
    w->symbol[count] = (pl_symbol){id, count ? count - 1 : PL_TOKEN_NONE, PL_TOKEN_NONE};
    if (count) w->symbol[count - 1].next = count;
    return count + 1;
}

/* One symbol a byte. A byte that the vocabulary lacks becomes the unknown token (one for a run of them when they are
 * fused) or nothing, as in Hugging Face's library. */
static uint32_t split_bytes(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes)
{
    uint32_t count = 0;
    int after_unknown = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint32_t id = t->byte_id[piece[i]];
        int unknown = id == PL_TOKEN_NONE;
        if (!unknown)
            count = append(w, count, id);
        else if (t->unknown != PL_TOKEN_NONE && !(after_unknown && t->fuse_unknown))
            count = append(w, count, t->unknown);
        after_unknown = unknown;
    }
    return count;
}

/* One symbol a character; what the vocabulary lacks becomes the tokens of its bytes, where it has all of them, else the
 * unknown token or nothing. As in Hugging Face's library an unknown token waits for what comes next: bytes overtake it,
 * and the fused run goes on behind them. */
static uint32_t split_chars(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes)
{
    uint32_t count = 0;
    int waits = 0;
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t c;
        length = pl_utf8_read(piece + at, bytes - at, &c);
        if (length == 0) length = 1; /* the beginning of a character, cut off */
        const uint32_t id = pl_tokenizer_find(t, piece + at, length);
        size_t known = 0;
        while (id == PL_TOKEN_NONE && known < length && t->byte_id[piece[at + known]] != PL_TOKEN_NONE) known++;
        if (id != PL_TOKEN_NONE) {
            if (waits) count = append(w, count, t->unknown);
            waits = 0;
            count = append(w, count, id);
        } else if (known == length) {
            for (size_t i = 0; i < length; i++) count = append(w, count, t->byte_id[piece[at + i]]);
        } else if (t->unknown != PL_TOKEN_NONE) {
            if (waits && !t->fuse_unknown) count = append(w, count, t->unknown);
            waits = 1;
        }
    }
    return waits ? append(w, count, t->unknown) : count;
}

static void merge_at(pl_bpe_work *w, uint32_t place)
{
    pl_symbol *left = &w->symbol[place], *right = &w->symbol[left->next];
    left->next = right->next;
    right->id = PL_TOKEN_NONE;
    if (left->next != PL_TOKEN_NONE) w->symbol[left->next].prev = place;
}

static void consider(const pl_tokenizer *t, pl_bpe_work *w, uint32_t place)
{
    const pl_symbol *s = &w->symbol[place];
    if (s->next == PL_TOKEN_NONE) return;
    uint32_t rank = pl_tokenizer_rank(t, s->id, w->symbol[s->next].id);
    if (rank != PL_TOKEN_NONE) heap_push(w, (uint64_t)rank << 32 | place);
}

/* Is the entry's merge still possible at its place? */
static int still_there(const pl_tokenizer *t, const pl_bpe_work *w, uint32_t place, uint32_t rank)
{
    const pl_symbol *s = &w->symbol[place];
    if (s->id == PL_TOKEN_NONE || s->next == PL_TOKEN_NONE) return 0;
    return s->id == t->merge[rank].left && w->symbol[s->next].id == t->merge[rank].right;
}

static uint32_t merge_ranked(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes)
{
    uint32_t *ids = (uint32_t *)w->heap;
    const uint32_t count = t->pipeline.is_bytes ? split_bytes(t, w, piece, bytes) : split_chars(t, w, piece, bytes);
    w->heap_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++) consider(t, w, i);
    while (w->heap_count) {
        uint64_t entry = heap_pop(w);
        uint32_t place = (uint32_t)entry, rank = (uint32_t)(entry >> 32);
        if (!still_there(t, w, place, rank)) continue;
        merge_at(w, place);
        w->symbol[place].id = t->merge[rank].id;
        if (w->symbol[place].prev != PL_TOKEN_NONE) consider(t, w, w->symbol[place].prev);
        consider(t, w, place);
    }
    uint32_t made = 0;
    for (uint32_t at = count ? 0 : PL_TOKEN_NONE; at != PL_TOKEN_NONE; at = w->symbol[at].next)
        ids[made++] = w->symbol[at].id;
    return made;
}

/* ---- scores ---- */

/* Where the symbol ends in the piece. */
static uint32_t end_of(const pl_bpe_work *w, uint32_t place, size_t bytes)
{
    const uint32_t next = w->symbol[place].next;
    return next == PL_TOKEN_NONE ? (uint32_t)bytes : w->symbol[next].id;
}

/* The token that a symbol and the next one make, or PL_TOKEN_NONE. */
static uint32_t joined(const pl_tokenizer *t, const pl_bpe_work *w, uint32_t place, const uint8_t *piece, size_t bytes)
{
    const pl_symbol *s = &w->symbol[place];
    if (s->id == PL_TOKEN_NONE || s->next == PL_TOKEN_NONE) return PL_TOKEN_NONE;
    const uint32_t length = end_of(w, s->next, bytes) - s->id;
    return length > t->longest ? PL_TOKEN_NONE : pl_tokenizer_find(t, piece + s->id, length);
}

/* Falls as the score rises. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;
    score += 0.0f; /* no −0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

static void consider_joined(const pl_tokenizer *t, pl_bpe_work *w, uint32_t place, const uint8_t *piece, size_t bytes)
{
    const uint32_t id = joined(t, w, place, piece, bytes);
    if (id != PL_TOKEN_NONE) heap_push(w, (uint64_t)rank_of_score(t->score[id]) << 32 | place);
}

static uint32_t put_symbol(const pl_tokenizer *t, const uint8_t *text, size_t bytes, uint32_t *ids, uint32_t made)
{
    const uint32_t id = pl_tokenizer_find(t, text, bytes);
    if (id != PL_TOKEN_NONE) {
        ids[made++] = id;
        return made;
    }
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t byte = t->byte_id[text[i]] != PL_TOKEN_NONE ? t->byte_id[text[i]] : t->unknown;
        if (byte != PL_TOKEN_NONE) ids[made++] = byte;
    }
    return made;
}

static uint32_t merge_scored(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes)
{
    uint32_t *ids = (uint32_t *)w->heap, count = 0, made = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t c;
        const size_t length = pl_utf8_read(piece + at, bytes - at, &c);
        count = append(w, count, (uint32_t)at);
        at += length ? length : 1;
    }
    w->heap_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++) consider_joined(t, w, i, piece, bytes);
    while (w->heap_count) {
        const uint64_t entry = heap_pop(w);
        const uint32_t place = (uint32_t)entry, id = joined(t, w, place, piece, bytes);
        if (id == PL_TOKEN_NONE || rank_of_score(t->score[id]) != (uint32_t)(entry >> 32)) continue;
        merge_at(w, place);
        if (w->symbol[place].prev != PL_TOKEN_NONE) consider_joined(t, w, w->symbol[place].prev, piece, bytes);
        consider_joined(t, w, place, piece, bytes);
    }
    for (uint32_t at = count ? 0 : PL_TOKEN_NONE; at != PL_TOKEN_NONE; at = w->symbol[at].next)
        made = put_symbol(t, piece + w->symbol[at].id, end_of(w, at, bytes) - w->symbol[at].id, ids, made);
    return made;
}

uint32_t pl_bpe_merge_piece(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes,
                            const uint32_t **ids)
{
    *ids = (const uint32_t *)w->heap;
    return t->score ? merge_scored(t, w, piece, bytes) : merge_ranked(t, w, piece, bytes);
}

/* ---- pieces without a pattern ---- */

static int may_join(const pl_tokenizer *t, uint32_t before, uint32_t c)
{
    const uint64_t bit = pl_hash_pair(before, c) & t->inner_mask;
    return !t->inner || (t->inner[bit / 8] >> bit % 8 & 1);
}

size_t pl_bpe_cut(const pl_tokenizer *t, const uint8_t *p, size_t n, int final, size_t cap)
{
    uint32_t before = PL_NOT_UTF8, c;
    for (size_t at = 0, length; at < n; at += length, before = c) {
        length = pl_utf8_read(p + at, n - at, &c);
        if (length == 0 && !final) return 0;
        if (length == 0) length = 1;
        if (at && (at + length > cap || (c == ' ' && t->pipeline.cuts_blanks) || !may_join(t, before, c))) return at;
    }
    return final ? n : 0;
}

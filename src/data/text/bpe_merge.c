/* O(n log n): a heap of possible merges, of which those that time has overtaken are recognised when they come up,
 * because the pair at their place no longer has their rank. Every merge adds at most two entries to the n − 1 of the
 * beginning, so 3n are room enough. */
#include "data/text/bpe_merge.h"

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

static void consider(const pl_tokenizer *t, pl_bpe_work *w, uint32_t place)
{
    const pl_symbol *s = &w->symbol[place];
    if (s->next == PL_TOKEN_NONE) return;
    uint32_t rank = pl_tokenizer_rank(t, s->id, w->symbol[s->next].id);
    if (rank != PL_TOKEN_NONE) heap_push(w, (uint64_t)rank << 32 | place);
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

static void merge_at(pl_bpe_work *w, uint32_t place, uint32_t id)
{
    pl_symbol *left = &w->symbol[place], *right = &w->symbol[left->next];
    left->id = id;
    left->next = right->next;
    right->id = PL_TOKEN_NONE;
    if (left->next != PL_TOKEN_NONE) w->symbol[left->next].prev = place;
}

/* Is the entry's merge still possible at its place? */
static int still_there(const pl_tokenizer *t, const pl_bpe_work *w, uint32_t place, uint32_t rank)
{
    const pl_symbol *s = &w->symbol[place];
    if (s->id == PL_TOKEN_NONE || s->next == PL_TOKEN_NONE) return 0;
    return s->id == t->merge[rank].left && w->symbol[s->next].id == t->merge[rank].right;
}

uint32_t pl_bpe_merge_piece(const pl_tokenizer *t, pl_bpe_work *w, const uint8_t *piece, size_t bytes)
{
    uint32_t count = split_bytes(t, w, piece, bytes);
    w->heap_count = 0;
    for (uint32_t i = 0; i + 1 < count; i++) consider(t, w, i);
    while (w->heap_count) {
        uint64_t entry = heap_pop(w);
        uint32_t place = (uint32_t)entry, rank = (uint32_t)(entry >> 32);
        if (!still_there(t, w, place, rank)) continue;
        merge_at(w, place, t->merge[rank].id);
        count--;
        if (w->symbol[place].prev != PL_TOKEN_NONE) consider(t, w, w->symbol[place].prev);
        consider(t, w, place);
    }
    return count;
}

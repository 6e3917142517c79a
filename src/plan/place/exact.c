/* Exact search: is there a placement below a capacity? After MiniMalloc (Moffitt, ASPLOS'23), with stronger bounds and
 * a memory of failed states.
 *
 * The idea. Drop every buffer of any placement as far as it falls: each then sits on the floor, at its fixed offset or
 * on another buffer. Among all placements that fit, take one whose sorted list of offsets is lexicographically least;
 * where offsets tie, a fixed total order of the buffers, their rank, decides who is listed first. The search walks down
 * such lists, placing one buffer at a time at the lowest offset left to it, and may cut whatever the least list cannot
 * contain. Every cut below keeps it, so all of them together are sound, in any combination of switches:
 *
 *   canonical      the list never steps down: the next buffer lies above the line (offset, rank) of the last one. A
 * buffer whose lowest offset is below the line is blocked: it can only be placed after a neighbour lifted it, so it
 * will lie no lower than the lowest top an unplaced neighbour can have dominance      no buffer is placed at or above
 * the top of the place where another unplaced one could lie now: moving that one there would give a lesser list hatless
 * a buffer with nothing unplaced above it fails => its siblings fail: it could be dropped to this place twins of two
 * buffers alike in life, size and alignment the one of lower rank comes first: swap them section bound  in each
 * section, unplaced buffers i can lie no lower than at(i): taken by rising at, a pointer t = max(t, at(i)) + size(i) is
 * a lower bound on the section's top (one machine, release dates) memo           what is below a node depends only on
 * the unplaced buffers, their lowest offsets and who is blocked
 *
 * When the unplaced buffers fall apart into pieces that share no moment, each piece is solved alone; if one fails, so
 * does the node. A piece may get ranks of its own, from what is left in its sections: ties are the only thing ranks
 * decide, so the least list of offsets stays. Several rankings are tried in turn with a growing limit on nodes, until
 * one finds or refutes: search trees of this kind have heavy tails, and which ranking is lucky differs from problem to
 * problem.
 *
 * Invariant: low[i] is the lowest aligned offset of i above everything placed that conflicts with it (fixed: at least
 * its offset); everything changed is written to the trail and undone from it. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { MEMO_BITS_MIN = 8, MEMO_BITS_MAX = 18, RANKINGS = 4 };

/* Long, large and crowded first. `fresh`: pieces are ranked anew. */
static const struct ranking {
    enum { WIDTH_AREA_TOTAL, TOTAL_AREA_WIDTH, TOTAL_WIDTH_AREA } keys;
    bool fresh;
} rankings[RANKINGS] = {
    {TOTAL_WIDTH_AREA, true}, {TOTAL_AREA_WIDTH, true}, {TOTAL_WIDTH_AREA, false}, {WIDTH_AREA_TOTAL, false}};

typedef struct order {
    uint64_t at; /* lowest offset it can have in the least list */
    uint32_t rank, item;
} order;

typedef struct change {
    uint64_t low;
    uint32_t item;
} change;

typedef struct node {
    uint32_t begin, end; /* of unplaced */
    uint32_t section_begin, section_end;
    uint64_t line; /* (line, line_rank): the last one placed */
    uint32_t line_rank;
    uint64_t salt; /* says which ranks hold, for the memo */
} node;

typedef struct ranked {
    double keys[3];
    uint32_t item;
} ranked;

/* Stacks shared by all nodes: each node owns what it pushed. */
typedef struct stack {
    void *elements;
    size_t count, capacity;
} stack;

struct place_search {
    const place_part *part;
    place_run *run;
    uint64_t capacity, stop_at; /* work at which to give up */
    uint64_t nodes_left;        /* of this attempt */
    uint32_t ranking;
    uint32_t *rank, *twin; /* twin: the one alike just before it, or PLACE_NO_ITEM */
    uint64_t *low, *offset;
    uint64_t *top;    /* by section: scratch of the bound */
    uint32_t *cuts;   /* by section: unplaced items that span it and the next one */
    order *unplaced;  /* a permutation; each node owns a range of it */
    stack trail;      /* of change */
    stack choices;    /* of order */
    stack pieces;     /* of node */
    stack old_ranks;  /* of order: item and rank */
    ranked *list;     /* scratch of ranking */
    uint32_t *placed; /* a stack */
    uint32_t placed_count;
    uint64_t *memo;
    unsigned memo_bits;
    bool refused; /* memory */
};

static place_answer solve(place_search *, node);
static place_answer expand(place_search *, const node *);

/* --- order, bound and memory of a node --- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static bool is_blocked(const place_search *s, const node *n, uint32_t item)
{
    if (!s->run->options->canonical) return false;
    return s->low[item] != n->line ? s->low[item] < n->line : s->rank[item] < n->line_rank;
}

/* The lowest top that an unplaced neighbour of a blocked item can have, if nothing is placed below `line` any more. */
static uint64_t lifted(place_search *s, uint64_t line, uint32_t item)
{
    uint32_t count;
    const uint32_t *row = place_part_conflicts(s->part, item, &count);
    uint64_t least = INT64_MAX; /* nothing lifts it: beyond any capacity */
    for (uint32_t k = 0; k < count; k++) {
        if (s->offset[row[k]] != PL_PLACE_NONE) continue;
        uint64_t at = s->low[row[k]] > line ? s->low[row[k]] : line, top = at + s->part->items[row[k]].size;
        if (top < least) least = top;
    }
    place_run_spend(s->run, count);
    return least;
}

/* What a node can do: nothing lies below `lowest` any more, nothing may be placed at `least_top` or above. */
typedef struct outlook {
    uint64_t lowest, least_top;
} outlook;

static outlook look(const place_search *s, const node *n)
{
    outlook view = {INT64_MAX, INT64_MAX};
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t item = s->unplaced[k].item;
        uint64_t low = s->low[item], top = low + s->part->items[item].size;
        if (low < view.lowest && !is_blocked(s, n, item)) view.lowest = low;
        if (top < view.least_top) view.least_top = top;
    }
    if (!s->run->options->dominance) view.least_top = INT64_MAX;
    return view;
}

/* Fills at, sorts by (at, rank) – nearly sorted already, so by insertion – and returns the state's hash. */
static uint64_t sort_unplaced(place_search *s, const node *n, uint64_t line)
{
    uint64_t hash = n->salt;
    order *o = s->unplaced;
    for (uint32_t k = n->begin; k < n->end; k++) {
        order now = o[k];
        bool blocked = is_blocked(s, n, now.item);
        now.at = blocked ? lifted(s, line, now.item) : s->low[now.item];
        now.rank = s->rank[now.item];
        hash ^= mix((uint64_t)now.item * UINT64_C(0x9e3779b97f4a7c15) + (blocked ? PL_PLACE_NONE : now.at));
        uint32_t j = k;
        for (; j > n->begin && (o[j - 1].at > now.at || (o[j - 1].at == now.at && o[j - 1].rank > now.rank)); j--)
            o[j] = o[j - 1];
        o[j] = now;
    }
    return hash;
}

static bool exceeds_sections(place_search *s, const node *n)
{
    uint64_t work = 0, capacity = s->capacity;
    memset(s->top + n->section_begin, 0, (n->section_end - n->section_begin) * sizeof *s->top);
    for (uint32_t k = n->begin; k < n->end; k++) {
        const place_item *item = &s->part->items[s->unplaced[k].item];
        uint64_t at = s->unplaced[k].at, highest = 0, *top = s->top;
        for (uint32_t i = item->first; i < item->last; i++) {
            uint64_t t = (top[i] > at ? top[i] : at) + item->size;
            top[i] = t;
            highest = t > highest ? t : highest;
        }
        work += item->last - item->first;
        if (highest > capacity) break;
        if (k + 1 == n->end) {
            place_run_spend(s->run, work);
            return false;
        }
    }
    place_run_spend(s->run, work);
    return true;
}

static bool exceeds_singly(const place_search *s, const node *n)
{
    for (uint32_t k = n->begin; k < n->end; k++)
        if (s->unplaced[k].at + s->part->items[s->unplaced[k].item].size > s->capacity) return true;
    return false;
}

/* --- placing and taking back --- */

/* Room for one more element of a stack; NULL (and the search given up) when memory is refused. */
static void *push(place_search *s, stack *to, size_t elem_bytes)
{
    if (pl_grow(&to->elements, &to->capacity, to->count, elem_bytes)) {
        s->refused = true;
        return NULL;
    }
    return (char *)to->elements + elem_bytes * to->count++;
}

typedef struct mark {
    size_t trail_count;
    uint32_t placed_count;
} mark;

/* Lifts what conflicts with it. *hatless: nothing unplaced does. False when something can no longer fit. */
static bool place(place_search *s, uint32_t item, uint64_t at, bool *hatless)
{
    uint32_t count;
    uint64_t height = at + s->part->items[item].size;
    const uint32_t *row = place_part_conflicts(s->part, item, &count);
    s->offset[item] = at;
    s->placed[s->placed_count++] = item;
    for (uint32_t i = s->part->items[item].first; i + 1 < s->part->items[item].last; i++) s->cuts[i]--;
    *hatless = true;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = row[k];
        if (s->offset[other] != PL_PLACE_NONE) continue;
        *hatless = false;
        if (s->low[other] >= height) continue;
        change *c = push(s, &s->trail, sizeof *c);
        if (!c) return false;
        *c = (change){s->low[other], other};
        const place_item *o = &s->part->items[other];
        s->low[other] = pl_align_up(height, o->alignment);
        if (s->low[other] + o->size > s->capacity || s->low[other] > o->fixed) return false;
    }
    return true;
}

static void take_back(place_search *s, mark to)
{
    while (s->trail.count > to.trail_count) {
        const change *c = (const change *)s->trail.elements + --s->trail.count;
        s->low[c->item] = c->low;
    }
    while (s->placed_count > to.placed_count) {
        uint32_t item = s->placed[--s->placed_count];
        s->offset[item] = PL_PLACE_NONE;
        for (uint32_t i = s->part->items[item].first; i + 1 < s->part->items[item].last; i++) s->cuts[i]++;
    }
}

/* --- ranks --- */

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    for (int k = 0; k < 3; k++)
        if (a->keys[k] != b->keys[k]) return a->keys[k] > b->keys[k] ? -1 : 1;
    return a->item < b->item ? -1 : 1;
}

/* Ranks the node's items among themselves, by width, area and the fullest of their sections, counting only what the
 * node has left to place; its line then has no rank, and its salt says who was ranked. */
static void rank_items(place_search *s, node *n)
{
    memset(s->top + n->section_begin, 0, (n->section_end - n->section_begin) * sizeof *s->top);
    for (uint32_t k = n->begin; k < n->end; k++) {
        const place_item *item = &s->part->items[s->unplaced[k].item];
        for (uint32_t i = item->first; i < item->last; i++) s->top[i] += item->size;
    }
    uint64_t salt = s->ranking + 1;
    for (uint32_t k = n->begin; k < n->end; k++) {
        const place_item *item = &s->part->items[s->unplaced[k].item];
        uint64_t fullest = 0;
        for (uint32_t i = item->first; i < item->last; i++)
            if (s->top[i] > fullest) fullest = s->top[i];
        double width = (double)(item->upper - item->lower), area = width * (double)item->size, total = (double)fullest;
        const double keys[][3] = {[WIDTH_AREA_TOTAL] = {width, area, total},
                                  [TOTAL_AREA_WIDTH] = {total, area, width},
                                  [TOTAL_WIDTH_AREA] = {total, width, area}};
        ranked *r = &s->list[k - n->begin];
        memcpy(r->keys, keys[rankings[s->ranking].keys], sizeof r->keys);
        r->item = s->unplaced[k].item;
        salt ^= mix(r->item + UINT64_C(0x51ab1e));
    }
    qsort(s->list, n->end - n->begin, sizeof *s->list, compare_ranked);
    for (uint32_t r = 0; r < n->end - n->begin; r++) s->rank[s->list[r].item] = r;
    n->line_rank = 0;
    n->salt = mix(salt);
}

/* --- the tree --- */

/* Moves the items of the node's range that end by `section` to its front; returns where the others begin. */
static uint32_t split_at(place_search *s, const node *n, uint32_t section)
{
    uint32_t border = n->begin;
    for (uint32_t k = n->begin; k < n->end; k++) {
        if (s->part->items[s->unplaced[k].item].last > section) continue;
        order o = s->unplaced[k];
        s->unplaced[k] = s->unplaced[border];
        s->unplaced[border++] = o;
    }
    return border;
}

static bool push_piece(place_search *s, node piece)
{
    if (piece.begin == piece.end) return true;
    node *p = push(s, &s->pieces, sizeof *p);
    if (p) *p = piece;
    return p != NULL;
}

/* The node's buffers in pieces that share no section. */
static bool push_pieces(place_search *s, node n)
{
    for (uint32_t i = n.section_begin; s->run->options->dynamic_decomposition && i + 1 < n.section_end; i++) {
        if (s->cuts[i]) continue;
        node left = n;
        left.end = n.begin = split_at(s, &n, i + 1);
        left.section_end = n.section_begin = i + 1;
        if (!push_piece(s, left)) return false;
    }
    return push_piece(s, n);
}

static place_answer solve_fresh(place_search *s, node piece)
{
    size_t first = s->old_ranks.count;
    for (uint32_t k = piece.begin; k < piece.end; k++) {
        order *o = push(s, &s->old_ranks, sizeof *o);
        if (!o) return PLACE_UNKNOWN;
        *o = (order){0, s->rank[s->unplaced[k].item], s->unplaced[k].item};
    }
    rank_items(s, &piece);
    place_answer answer = solve(s, piece);
    const order *old = s->old_ranks.elements;
    for (size_t k = first; k < s->old_ranks.count; k++) s->rank[old[k].item] = old[k].rank;
    s->old_ranks.count = first;
    return answer;
}

static place_answer solve_pieces(place_search *s, const node *n)
{
    size_t first = s->pieces.count;
    if (!push_pieces(s, *n)) return PLACE_UNKNOWN;
    size_t end = s->pieces.count;
    place_answer answer = PLACE_YES;
    for (size_t k = first; k < end && answer == PLACE_YES; k++) {
        node piece = ((const node *)s->pieces.elements)[k];
        if (end == first + 1)
            answer = expand(s, &piece);
        else
            answer = rankings[s->ranking].fresh ? solve_fresh(s, piece) : solve(s, piece);
    }
    s->pieces.count = first;
    return answer;
}

static bool push_choices(place_search *s, const node *n)
{
    uint64_t least_top = look(s, n).least_top;
    for (uint32_t k = n->begin; k < n->end; k++) {
        const order *o = &s->unplaced[k];
        if (o->at >= least_top) break;
        if (is_blocked(s, n, o->item)) continue;
        uint32_t twin = s->run->options->twins ? s->twin[o->item] : PLACE_NO_ITEM;
        if (twin != PLACE_NO_ITEM && s->offset[twin] == PL_PLACE_NONE) continue;
        order *choice = push(s, &s->choices, sizeof *choice);
        if (!choice) return false;
        *choice = *o;
    }
    return true;
}

/* Takes the item out of the node's range, which deeper nodes have permuted meanwhile. */
static void remove_item(place_search *s, node *n, uint32_t item)
{
    uint32_t k = n->begin;
    while (s->unplaced[k].item != item) k++;
    order o = s->unplaced[k];
    memmove(&s->unplaced[k], &s->unplaced[k + 1], (n->end - k - 1) * sizeof o);
    s->unplaced[--n->end] = o;
}

static place_answer branch(place_search *s, const node *n, const order *c, bool *hatless)
{
    mark before = {s->trail.count, s->placed_count};
    place_answer answer = PLACE_NO;
    if (place(s, c->item, c->at, hatless)) {
        node child = *n;
        remove_item(s, &child, c->item);
        child.line = c->at, child.line_rank = c->rank;
        answer = solve(s, child);
    }
    if (s->refused) answer = PLACE_UNKNOWN;
    if (answer != PLACE_YES) take_back(s, before);
    return answer;
}

static place_answer expand(place_search *s, const node *n)
{
    size_t first = s->choices.count;
    if (!push_choices(s, n)) return PLACE_UNKNOWN;
    place_answer answer = PLACE_NO;
    for (size_t k = first; k < s->choices.count && answer == PLACE_NO; k++) {
        order choice = ((const order *)s->choices.elements)[k];
        bool hatless = false;
        answer = branch(s, n, &choice, &hatless);
        if (hatless && s->run->options->hatless) break;
    }
    s->choices.count = first;
    return answer;
}

static place_answer solve(place_search *s, node n)
{
    if (n.begin == n.end) return PLACE_YES;
    s->run->nodes++;
    if (s->nodes_left == 0 || s->run->work >= s->stop_at) return PLACE_UNKNOWN;
    s->nodes_left--;
    if (place_run_spend(s->run, 4 * (uint64_t)(n.end - n.begin) + 50)) return PLACE_UNKNOWN;
    outlook view = look(s, &n);
    if (view.lowest >= view.least_top) return PLACE_NO; /* also when all are blocked */
    uint64_t hash = sort_unplaced(s, &n, view.lowest), *slot = &s->memo[hash >> (64 - s->memo_bits)];
    if (s->run->options->memo && *slot == hash) return PLACE_NO;
    bool exceeds = s->run->options->section_bound ? exceeds_sections(s, &n) : exceeds_singly(s, &n);
    if (exceeds) return PLACE_NO;
    place_answer answer = solve_pieces(s, &n);
    if (answer == PLACE_NO) *slot = hash;
    return answer;
}

/* --- preparing a part and an attempt --- */

static bool alike(const place_item *a, const place_item *b)
{
    return a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->alignment == b->alignment &&
           a->fixed == PL_PLACE_NONE && b->fixed == PL_PLACE_NONE;
}

static void prepare(place_search *s)
{
    const place_part *part = s->part;
    memset(s->cuts, 0, part->section_count * sizeof *s->cuts);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        s->low[i] = item->fixed == PL_PLACE_NONE ? 0 : item->fixed;
        s->offset[i] = PL_PLACE_NONE;
        s->unplaced[i] = (order){0, 0, i};
        s->twin[i] = i && alike(item - 1, item) ? i - 1 : PLACE_NO_ITEM; /* sorted: twins are neighbours */
        for (uint32_t k = item->first; k + 1 < item->last; k++) s->cuts[k]++;
    }
    s->trail.count = s->choices.count = s->pieces.count = s->old_ranks.count = s->placed_count = 0;
}

pl_status place_search_try(place_search *s, uint64_t capacity, uint64_t work_limit, uint64_t *offsets,
                           place_answer *answer, pl_error *err)
{
    s->refused = false;
    s->capacity = capacity;
    s->stop_at = work_limit > UINT64_MAX - s->run->work ? UINT64_MAX : s->run->work + work_limit;
    *answer = PLACE_UNKNOWN;
    memset(s->memo, 0, sizeof *s->memo << s->memo_bits);
    uint64_t node_limit = 2 * (uint64_t)s->part->count + 16;
    for (uint32_t k = 0; *answer == PLACE_UNKNOWN && !s->refused; k++) {
        if (s->run->work >= s->stop_at || place_run_spend(s->run, 0)) break;
        if (k && k % RANKINGS == 0) node_limit *= 2;
        s->ranking = k % RANKINGS;
        s->nodes_left = node_limit;
        prepare(s);
        node root = {0, s->part->count, 0, s->part->section_count, 0, 0, 0};
        rank_items(s, &root);
        *answer = solve(s, root);
    }
    if (s->refused) return pl_fail(err, PL_E_NOMEM, "no memory for the exact search over %u buffers", s->part->count);
    if (*answer == PLACE_YES) memcpy(offsets, s->offset, s->part->count * sizeof *offsets);
    return PL_OK;
}

place_search *place_search_create(const place_part *part, place_run *run)
{
    place_search *s = pl_alloc(1, sizeof *s);
    if (!s) return NULL;
    size_t n = part->count;
    s->part = part, s->run = run;
    s->memo_bits = MEMO_BITS_MIN;
    while (s->memo_bits < MEMO_BITS_MAX && n * n * 8 >> s->memo_bits) s->memo_bits++;
    s->rank = pl_alloc(n, sizeof *s->rank);
    s->twin = pl_alloc(n, sizeof *s->twin);
    s->low = pl_alloc(n, sizeof *s->low);
    s->offset = pl_alloc(n, sizeof *s->offset);
    s->list = pl_alloc(n, sizeof *s->list);
    s->top = pl_alloc(part->section_count, sizeof *s->top);
    s->cuts = pl_alloc(part->section_count, sizeof *s->cuts);
    s->unplaced = pl_alloc(n, sizeof *s->unplaced);
    s->placed = pl_alloc(n, sizeof *s->placed);
    s->memo = pl_alloc((size_t)1 << s->memo_bits, sizeof *s->memo);
    if (s->rank && s->twin && s->low && s->offset && s->list && s->top && s->cuts && s->unplaced && s->placed &&
        s->memo)
        return s;
    place_search_destroy(s);
    return NULL;
}

void place_search_destroy(place_search *s)
{
    if (!s) return;
    pl_free(s->rank);
    pl_free(s->twin);
    pl_free(s->low);
    pl_free(s->offset);
    pl_free(s->list);
    pl_free(s->top);
    pl_free(s->cuts);
    pl_free(s->unplaced);
    pl_free(s->trail.elements);
    pl_free(s->choices.elements);
    pl_free(s->pieces.elements);
    pl_free(s->old_ranks.elements);
    pl_free(s->placed);
    pl_free(s->memo);
    pl_free(s);
}

/* Exact search: is there a placement within a capacity?
 *
 * The idea. Of all placements that fit take one whose offsets have the least sum. In it each free buffer rests on the
 * floor or on another buffer, and none could lie lower. The search builds that one from below. It keeps for each
 * section the floor: nothing left to place in this section lies lower. At a node it takes a section whose floor is the
 * lowest of all and asks: what begins exactly there? The answers – each buffer of the section that could, or nothing
 * – exclude each other, so no placement is ever met twice; and the question is about one moment, so that a failure is
 * noticed where it arises, not after all that happens elsewhere was tried. (MiniMalloc, Moffitt, ASPLOS'23, asks for
 * the next buffer in a sorted list of offsets instead: the whole time line takes part in each choice.)
 *
 * "Nothing begins at the floor f of section s" raises the floor of s. A buffer i of s whose lowest offset is above f
 * lies there or higher; one that could lie at f but does not rests on a buffer k that is not alive in s, hence at
 * low(k) + size(k) or higher.
 *
 * Cuts, each of which keeps the placement sought, so that any combination is sound:
 *
 *   fixed ones     low(i) lies above, below or between the fixed buffers in the way of i
 *   floor rise     a floor rises to the lowest offset that a buffer of the section can have
 *   section bound  unplaced buffers of a section lie no lower than low(i): taken by rising low, a pointer
 *                  t = max(t, low(i)) + size(i) ends at or below the section's top (one machine, release dates)
 *   dominance      no unplaced buffer would fit whole below the floors: it would lie there, with a lesser sum
 *   twins          of buffers alike in life, size and alignment the first one lies lowest
 *   memo           what is below a node depends on the unplaced buffers alone, how low each can lie and the top of
 *                  what was placed below it; a state that failed fails within any lesser capacity as well
 *
 * When the unplaced buffers fall apart into pieces that share no section, each is solved alone. Which of the lowest
 * sections is asked first: the one with the fewest answers. Trees of this kind have heavy tails, so there are many
 * attempts with few nodes each, with orders of answers that differ by fixed random numbers, and every third node
 * belongs to a long attempt, so that proofs come to an end; half of the attempts prefer sections that have often
 * failed (as dom/wdeg in constraint programming, Boussemart et al. 2004).
 *
 * Invariant: floor[s] bounds every unplaced buffer of s from below; base[s] is the top of what is placed in s, left[s]
 * the sum of what is not; all changes of the three are on the trail and undone from it. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum {
    MEMO_BITS_MIN = 8,
    MEMO_BITS_MAX = 18,
    LONG_SHARE = 3, /* one node in so many belongs to a long attempt */
};

#define NOISE   0.6                   /* of the criteria, at most */
#define NOWHERE ((uint64_t)INT64_MAX) /* beyond any capacity */

typedef struct order {
    uint64_t low; /* lowest offset it can have */
    uint32_t item;
} order;

typedef struct change {
    uint64_t *where, value;
} change;

typedef struct node {
    uint32_t begin, end; /* of unplaced */
    uint32_t section_begin, section_end;
} node;

/* What the order of the answers goes by, largest first: the fullest moment of a buffer's life, over the whole problem;
 * the mean and the fullest of what is left to place at its moments; its life. Besides: how low it lies in the guide. */
typedef enum criterion { FULLEST, MEAN_LEFT, FULLEST_LEFT, LIFE, CRITERIA, GUIDE = CRITERIA } criterion;

typedef struct choice {
    double key;
    uint32_t item;
} choice;

/* Stacks shared by all nodes: each node owns what it pushed. */
typedef struct stack {
    void *elements;
    size_t count, capacity;
} stack;

struct place_search {
    const place_part *part;
    place_run *run;
    uint64_t capacity, stop_at;     /* work at which to give up */
    uint64_t nodes, node_limit;     /* of this attempt */
    const uint64_t *guide;          /* offsets, by item, of a placement that some attempts follow; or NULL */
    bool by_weight;                 /* prefer sections that have often failed */
    criterion by;                   /* the order of the answers */
    double *noise;                  /* by item: a factor on what is compared */
    uint32_t *twin;                 /* by item: the one alike just before it, or PLACE_NO_ITEM */
    uint64_t *low, *offset;         /* by item; low: scratch of a node, offset PL_PLACE_NONE = unplaced */
    uint64_t *floor, *base, *left;  /* by section */
    uint64_t *top, *least;          /* by section: scratch */
    uint32_t *answers, *cuts;       /* by section: scratch; unplaced items that span it and the next one */
    double *weight;                 /* by section: how often it failed */
    order *fixed;                   /* the fixed items in the way of each one, by offset */
    uint32_t *fixed_begin;          /* by item: where its begin in `fixed`; one more at the end */
    order *unplaced;                /* a permutation; each node owns a range of it */
    uint32_t *placed, placed_count; /* a stack */
    stack trail;                    /* of change */
    stack choices;                  /* of choice */
    stack pieces;                   /* of node */
    uint64_t *memo;
    unsigned memo_bits;
    uint64_t memo_capacity; /* of the failures in the memo */
    bool refused;           /* memory */
};

static place_answer solve(place_search *, node);

static const place_item *item_of(const place_search *s, uint32_t i) { return &s->part->items[i]; }

/* --- trail --- */

/* Room for one more element of a stack; NULL (and the search given up) when memory is refused. */
static void *push(place_search *s, stack *to, size_t elem_bytes)
{
    if (pl_grow(&to->elements, &to->capacity, to->count, elem_bytes)) {
        s->refused = true;
        return NULL;
    }
    return (char *)to->elements + elem_bytes * to->count++;
}

static bool set(place_search *s, uint64_t *where, uint64_t value)
{
    if (*where == value) return true;
    change *c = push(s, &s->trail, sizeof *c);
    if (!c) return false;
    *c = (change){where, *where};
    *where = value;
    return true;
}

typedef struct mark {
    size_t trail_count;
    uint32_t placed_count;
} mark;

static mark mark_here(const place_search *s) { return (mark){s->trail.count, s->placed_count}; }

static void take_back(place_search *s, mark to)
{
    while (s->trail.count > to.trail_count) {
        const change *c = (const change *)s->trail.elements + --s->trail.count;
        *c->where = c->value;
    }
    while (s->placed_count > to.placed_count) {
        uint32_t item = s->placed[--s->placed_count];
        s->offset[item] = PL_PLACE_NONE;
        for (uint32_t q = item_of(s, item)->first; q + 1 < item_of(s, item)->last; q++) s->cuts[q]++;
    }
}

static bool place(place_search *s, uint32_t i, uint64_t at)
{
    const place_item *item = item_of(s, i);
    uint64_t top = at + item->size;
    s->offset[i] = at;
    s->placed[s->placed_count++] = i;
    for (uint32_t q = item->first; q + 1 < item->last; q++) s->cuts[q]--;
    for (uint32_t q = item->first; q < item->last; q++)
        if (!set(s, &s->floor[q], top) || !set(s, &s->base[q], top) || !set(s, &s->left[q], s->left[q] - item->size))
            return false;
    return true;
}

/* --- what a node knows --- */

static uint64_t highest(const uint64_t *by_section, const place_item *item)
{
    uint64_t most = 0;
    for (uint32_t q = item->first; q < item->last; q++) most = by_section[q] > most ? by_section[q] : most;
    return most;
}

static bool fails_at(place_search *s, uint32_t section)
{
    s->weight[section] += 1;
    return false;
}

/* The lowest offset from the floor on at which the item meets none of the fixed ones. */
static uint64_t past_fixed(const place_search *s, uint32_t i, uint64_t floor)
{
    const place_item *item = item_of(s, i);
    uint64_t at = pl_align_up(floor, item->alignment);
    for (uint32_t k = s->fixed_begin[i]; k < s->fixed_begin[i + 1] && s->fixed[k].low < at + item->size; k++) {
        const order *f = &s->fixed[k];
        uint64_t end = f->low + item_of(s, f->item)->size;
        if (end > at) at = pl_align_up(end, item->alignment);
    }
    return at;
}

/* Low of each item from the floors, the floors from low. Low never grows from that: one pass is a fixed point. */
static bool find_lows(place_search *s, const node *n)
{
    uint64_t spans = 0;
    for (uint32_t q = n->section_begin; q < n->section_end; q++) s->least[q] = NOWHERE;
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t i = s->unplaced[k].item;
        const place_item *item = item_of(s, i);
        uint64_t floor = highest(s->floor, item);
        uint64_t low = item->fixed == PL_PLACE_NONE ? past_fixed(s, i, floor) : item->fixed;
        if (low < floor || low + item->size > s->capacity) return fails_at(s, item->first);
        s->low[i] = s->unplaced[k].low = low;
        for (uint32_t q = item->first; q < item->last; q++) s->least[q] = low < s->least[q] ? low : s->least[q];
        spans += item->last - item->first + s->fixed_begin[i + 1] - s->fixed_begin[i];
    }
    place_run_spend(s->run, 3 * spans + 4 * (uint64_t)(n->end - n->begin) + 100);
    for (uint32_t q = n->section_begin; q < n->section_end; q++) {
        if (!s->left[q]) continue;
        if (s->run->options->floor_rise && !set(s, &s->floor[q], s->least[q])) return false;
        if (s->floor[q] + s->left[q] > s->capacity) return fails_at(s, q);
    }
    return true;
}

/* Sorts by (low, item); nearly sorted already, so by insertion. */
static void sort_unplaced(place_search *s, const node *n)
{
    order *o = s->unplaced;
    for (uint32_t k = n->begin + 1; k < n->end; k++) {
        order now = o[k];
        uint32_t j = k;
        for (; j > n->begin && (o[j - 1].low > now.low || (o[j - 1].low == now.low && o[j - 1].item > now.item)); j--)
            o[j] = o[j - 1];
        o[j] = now;
    }
}

static bool fits_sections(place_search *s, const node *n)
{
    if (!s->run->options->section_bound) return true;
    sort_unplaced(s, n);
    uint64_t capacity = s->capacity, *top = s->top;
    memset(top + n->section_begin, 0, (n->section_end - n->section_begin) * sizeof *top);
    for (uint32_t k = n->begin; k < n->end; k++) {
        const place_item *item = item_of(s, s->unplaced[k].item);
        uint64_t low = s->unplaced[k].low;
        for (uint32_t q = item->first; q < item->last; q++) {
            top[q] = (top[q] > low ? top[q] : low) + item->size;
            if (top[q] > capacity) return fails_at(s, q);
        }
    }
    return true;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

/* The state's hash; false when an item would fit whole below the floors. */
static bool undominated(place_search *s, const node *n, uint64_t *hash)
{
    *hash = UINT64_C(0x2545f4914f6cdd1d); /* never the hash of an empty slot */
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t i = s->unplaced[k].item;
        const place_item *item = item_of(s, i);
        uint64_t base = 0, floor = NOWHERE;
        for (uint32_t q = item->first; q < item->last; q++) {
            base = s->base[q] > base ? s->base[q] : base;
            floor = s->floor[q] < floor ? s->floor[q] : floor;
        }
        base = pl_align_up(base, item->alignment);
        bool below = item->fixed == PL_PLACE_NONE && floor >= base + item->size;
        if (below && s->run->options->dominance) return false;
        *hash ^= mix(mix(s->low[i] + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) + base);
    }
    return true;
}

/* --- the question: a section, its answers --- */

static bool is_answer(const place_search *s, uint32_t i, uint64_t floor)
{
    uint32_t twin = s->run->options->twins ? s->twin[i] : PLACE_NO_ITEM;
    return s->low[i] == floor && (twin == PLACE_NO_ITEM || s->offset[twin] != PL_PLACE_NONE);
}

/* Of the sections with the lowest floor the one with the fewest answers, then with the least room to waste. */
static uint32_t choose_section(place_search *s, const node *n)
{
    uint64_t floor = NOWHERE, best_room = 0;
    for (uint32_t q = n->section_begin; q < n->section_end; q++)
        if (s->left[q] && s->floor[q] < floor) floor = s->floor[q];
    memset(s->answers + n->section_begin, 0, (n->section_end - n->section_begin) * sizeof *s->answers);
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t i = s->unplaced[k].item;
        if (!is_answer(s, i, floor)) continue;
        for (uint32_t q = item_of(s, i)->first; q < item_of(s, i)->last; q++) s->answers[q]++;
    }
    uint32_t best = n->section_end;
    double best_key = 0;
    for (uint32_t q = n->section_begin; q < n->section_end; q++) {
        if (!s->left[q] || s->floor[q] != floor) continue;
        uint64_t room = s->capacity - floor - s->left[q];
        double key = s->answers[q] + (room > 0);
        if (s->by_weight) key /= 1 + s->weight[q];
        if (best != n->section_end && (key > best_key || (key == best_key && room >= best_room))) continue;
        best = q, best_key = key, best_room = room;
        if (!s->run->options->fewest_answers) break;
    }
    return best;
}

static bool spans(const place_item *item, uint32_t section) { return item->first <= section && section < item->last; }

/* The floor of the section if nothing begins at the one it has; NOWHERE when that cannot fit. */
static uint64_t raised_floor(place_search *s, const node *n, uint32_t section)
{
    uint64_t floor = s->floor[section], raised = NOWHERE;
    if (floor + s->left[section] >= s->capacity) return NOWHERE;
    for (uint32_t q = n->section_begin; q < n->section_end; q++) s->top[q] = NOWHERE;
    for (uint32_t k = n->begin; k < n->end; k++) { /* lowest top of what is not alive in the section */
        const place_item *item = item_of(s, s->unplaced[k].item);
        if (spans(item, section)) continue;
        uint64_t top = s->low[s->unplaced[k].item] + item->size;
        for (uint32_t q = item->first; q < item->last; q++) s->top[q] = top < s->top[q] ? top : s->top[q];
    }
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t i = s->unplaced[k].item;
        const place_item *item = item_of(s, i);
        if (!spans(item, section)) continue;
        uint64_t rest = s->low[i];
        if (rest == floor && item->fixed != PL_PLACE_NONE) continue; /* it is an answer, and has no other place */
        if (rest == floor) {
            rest = NOWHERE;
            for (uint32_t q = item->first; q < item->last; q++) rest = s->top[q] < rest ? s->top[q] : rest;
            rest = pl_align_up(rest, item->alignment);
        }
        raised = rest < raised ? rest : raised;
    }
    return raised < s->capacity && raised + s->left[section] <= s->capacity ? raised : NOWHERE;
}

static double measure(const place_search *s, uint32_t i)
{
    const place_item *item = item_of(s, i);
    uint32_t sections = item->last - item->first;
    double left = 0;
    switch (s->by) {
    case FULLEST: /* long ones first where this is equal */
        return (double)highest(s->part->section_sum, item) *
               (1 + 1e-3 * (double)(item->upper - item->lower) / (double)s->part->span);
    case MEAN_LEFT:
        for (uint32_t q = item->first; q < item->last; q++) left += (double)s->left[q];
        return left / sections;
    case FULLEST_LEFT:
        return (double)highest(s->left, item) * (1 + (double)sections / s->part->section_count);
    case GUIDE:
        return (double)(2 * s->capacity) - (double)s->guide[i];
    case LIFE:
        break;
    }
    return (double)(item->upper - item->lower);
}

/* Pushes the items that can begin at the floor of the section in the order in which they are tried. */
static bool push_choices(place_search *s, const node *n, uint32_t section)
{
    size_t first = s->choices.count;
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t i = s->unplaced[k].item;
        if (!spans(item_of(s, i), section) || !is_answer(s, i, s->floor[section])) continue;
        if (!push(s, &s->choices, sizeof(choice))) return false;
        choice c = {measure(s, i) * s->noise[i], i}, *list = s->choices.elements;
        size_t at = s->choices.count - 1;
        for (; at > first && (list[at - 1].key < c.key || (list[at - 1].key == c.key && list[at - 1].item > i)); at--)
            list[at] = list[at - 1];
        list[at] = c;
    }
    return true;
}

/* --- the tree --- */

/* Moves the items of the node's range that end by `section` to its front; returns where the others begin. */
static uint32_t split_at(place_search *s, const node *n, uint32_t section)
{
    uint32_t border = n->begin;
    for (uint32_t k = n->begin; k < n->end; k++) {
        if (item_of(s, s->unplaced[k].item)->last > section) continue;
        order o = s->unplaced[k];
        s->unplaced[k] = s->unplaced[border];
        s->unplaced[border++] = o;
    }
    return border;
}

static bool push_piece(place_search *s, node piece, size_t first)
{
    if (piece.begin == piece.end) return true;
    if (!push(s, &s->pieces, sizeof piece)) return false;
    node *p = s->pieces.elements;
    size_t at = s->pieces.count - 1; /* small ones first: they fail soonest */
    for (; at > first && p[at - 1].end - p[at - 1].begin > piece.end - piece.begin; at--) p[at] = p[at - 1];
    p[at] = piece;
    return true;
}

/* The node's buffers in pieces that share no section. */
static bool push_pieces(place_search *s, node n)
{
    size_t first = s->pieces.count;
    for (uint32_t q = n.section_begin; s->run->options->dynamic_decomposition && q + 1 < n.section_end; q++) {
        if (s->cuts[q]) continue;
        node left = n;
        left.end = n.begin = split_at(s, &n, q + 1);
        left.section_end = n.section_begin = q + 1;
        if (!push_piece(s, left, first)) return false;
    }
    return push_piece(s, n, first);
}

static place_answer solve_pieces(place_search *s, node n)
{
    size_t first = s->pieces.count;
    if (!push_pieces(s, n)) return PLACE_UNKNOWN;
    size_t end = s->pieces.count;
    place_answer answer = PLACE_YES;
    for (size_t k = first; k < end && answer == PLACE_YES; k++)
        answer = solve(s, ((const node *)s->pieces.elements)[k]);
    s->pieces.count = first;
    return answer;
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

static place_answer try_choices(place_search *s, const node *n, uint32_t section)
{
    size_t first = s->choices.count;
    uint64_t floor = s->floor[section];
    if (!push_choices(s, n, section)) return PLACE_UNKNOWN;
    place_answer answer = PLACE_NO;
    for (size_t k = first; k < s->choices.count && answer == PLACE_NO; k++) {
        uint32_t item = ((const choice *)s->choices.elements)[k].item;
        mark before = mark_here(s);
        node child = *n;
        remove_item(s, &child, item);
        answer = place(s, item, floor) ? solve_pieces(s, child) : PLACE_UNKNOWN;
        if (answer != PLACE_YES) take_back(s, before);
    }
    s->choices.count = first;
    return answer;
}

/* Asks one section after another, of which each is raised when no answer has led anywhere. */
static place_answer ask(place_search *s, const node *n)
{
    for (;;) {
        uint64_t hash;
        s->run->nodes++;
        if (s->nodes++ >= s->node_limit || s->run->work >= s->stop_at || place_run_spend(s->run, 0))
            return PLACE_UNKNOWN;
        if (!find_lows(s, n) || !fits_sections(s, n) || !undominated(s, n, &hash))
            return s->refused ? PLACE_UNKNOWN : PLACE_NO;
        uint64_t *slot = &s->memo[hash >> (64 - s->memo_bits)];
        if (s->run->options->memo && *slot == hash) return PLACE_NO;
        uint32_t section = choose_section(s, n);
        uint64_t raised = raised_floor(s, n, section);
        place_answer answer = try_choices(s, n, section);
        if (answer != PLACE_NO) return answer;
        if (raised == NOWHERE) {
            *slot = hash;
            return PLACE_NO;
        }
        if (!set(s, &s->floor[section], raised)) return PLACE_UNKNOWN;
    }
}

static place_answer solve(place_search *s, node n)
{
    mark before = mark_here(s);
    place_answer answer = ask(s, &n);
    if (answer != PLACE_YES) take_back(s, before);
    return answer;
}

/* --- preparing a part and an attempt --- */

static int compare_orders(const void *left, const void *right)
{
    const order *a = left, *b = right;
    if (a->low != b->low) return a->low < b->low ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Lists for each free item the fixed ones that share a section with it; into `to` unless it is NULL. */
static uint32_t list_fixed(place_search *s, const order *all, uint32_t all_count, order *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->part->count; i++) {
        const place_item *item = item_of(s, i);
        s->fixed_begin[i] = count;
        for (uint32_t k = 0; item->fixed == PL_PLACE_NONE && k < all_count; k++) {
            const place_item *f = item_of(s, all[k].item);
            if (f->first >= item->last || item->first >= f->last) continue;
            if (to) to[count] = all[k];
            count++;
        }
    }
    return s->fixed_begin[s->part->count] = count;
}

static bool find_fixed(place_search *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->part->count; i++)
        if (item_of(s, i)->fixed != PL_PLACE_NONE) s->unplaced[count++] = (order){item_of(s, i)->fixed, i};
    qsort(s->unplaced, count, sizeof *s->unplaced, compare_orders);
    s->fixed = pl_alloc(list_fixed(s, s->unplaced, count, NULL), sizeof *s->fixed);
    if (s->fixed) list_fixed(s, s->unplaced, count, s->fixed);
    return s->fixed;
}

static bool alike(const place_item *a, const place_item *b)
{
    return a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->alignment == b->alignment &&
           a->fixed == PL_PLACE_NONE && b->fixed == PL_PLACE_NONE;
}

static void prepare(place_search *s)
{
    const place_part *part = s->part;
    memset(s->cuts, 0, part->section_count * sizeof *s->cuts);
    memset(s->floor, 0, part->section_count * sizeof *s->floor);
    memset(s->base, 0, part->section_count * sizeof *s->base);
    memcpy(s->left, part->section_sum, part->section_count * sizeof *s->left);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        s->offset[i] = PL_PLACE_NONE;
        s->unplaced[i] = (order){0, i};
        s->twin[i] = i && alike(item - 1, item) ? i - 1 : PLACE_NO_ITEM; /* sorted: twins are neighbours */
        for (uint32_t q = item->first; q + 1 < item->last; q++) s->cuts[q]++;
    }
    s->trail.count = s->choices.count = s->pieces.count = s->placed_count = 0;
}

/* The first attempts at a capacity are without noise; no two others anywhere have the same. */
static place_answer attempt(place_search *s, uint32_t number, uint64_t node_limit)
{
    prepare(s);
    s->by = number % CRITERIA;
    if (s->guide && number >= CRITERIA && number % 2) s->by = GUIDE;
    s->by_weight = s->run->options->failure_weights && number / CRITERIA % 2;
    for (uint32_t i = 0; i < s->part->count; i++) {
        uint64_t random = mix(i + 1 + s->run->attempts * UINT64_C(0x9e3779b97f4a7c15));
        s->noise[i] = number < CRITERIA ? 1 : 1 + NOISE * (double)(random >> 11) * 0x1p-53;
    }
    s->run->attempts++;
    s->nodes = 0;
    s->node_limit = node_limit;
    return solve_pieces(s, (node){0, s->part->count, 0, s->part->section_count});
}

static place_answer search(place_search *s)
{
    place_answer answer = PLACE_UNKNOWN;
    uint64_t nodes = 0, long_nodes = 0, long_limit = 8 * (uint64_t)s->part->count;
    if (!s->run->options->restarts) return attempt(s, 0, UINT64_MAX);
    for (uint32_t k = 0; answer == PLACE_UNKNOWN && !s->refused; k++) {
        uint64_t limit = (2 + k / 32) * (uint64_t)s->part->count + 16;
        bool is_long = LONG_SHARE * (long_nodes + long_limit) <= nodes;
        if (is_long) limit = long_limit, long_limit *= 2;
        if (s->run->work >= s->stop_at || place_run_spend(s->run, 0)) break;
        answer = attempt(s, k, limit);
        nodes += s->nodes;
        if (is_long) long_nodes += s->nodes;
    }
    return answer;
}

void place_search_follow(place_search *s, const uint64_t *offsets) { s->guide = offsets; }

pl_status place_search_try(place_search *s, uint64_t capacity, uint64_t work_limit, uint64_t *offsets,
                           place_answer *answer, pl_error *err)
{
    s->refused = false;
    s->stop_at = work_limit > UINT64_MAX - s->run->work ? UINT64_MAX : s->run->work + work_limit;
    if (capacity > s->memo_capacity) memset(s->memo, 0, sizeof *s->memo << s->memo_bits);
    s->capacity = s->memo_capacity = capacity;
    memset(s->weight, 0, s->part->section_count * sizeof *s->weight);
    *answer = search(s);
    if (s->refused) return pl_fail(err, PL_E_NOMEM, "no memory for the exact search over %u buffers", s->part->count);
    if (*answer == PLACE_YES) memcpy(offsets, s->offset, s->part->count * sizeof *offsets);
    return PL_OK;
}

place_search *place_search_create(const place_part *part, place_run *run)
{
    place_search *s = pl_alloc(1, sizeof *s);
    if (!s) return NULL;
    size_t n = part->count, sections = part->section_count;
    s->part = part, s->run = run;
    s->memo_bits = MEMO_BITS_MIN;
    while (s->memo_bits < MEMO_BITS_MAX && n * n * 8 >> s->memo_bits) s->memo_bits++;
    s->noise = pl_alloc(n, sizeof *s->noise);
    s->twin = pl_alloc(n, sizeof *s->twin);
    s->low = pl_alloc(n, sizeof *s->low);
    s->offset = pl_alloc(n, sizeof *s->offset);
    s->unplaced = pl_alloc(n, sizeof *s->unplaced);
    s->placed = pl_alloc(n, sizeof *s->placed);
    s->floor = pl_alloc(5 * sections, sizeof *s->floor); /* and base, left, top, least */
    s->answers = pl_alloc(2 * sections, sizeof *s->answers);
    s->weight = pl_alloc(sections, sizeof *s->weight);
    s->fixed_begin = pl_alloc(n + 1, sizeof *s->fixed_begin);
    s->memo = pl_alloc((size_t)1 << s->memo_bits, sizeof *s->memo);
    if (s->noise && s->twin && s->low && s->offset && s->unplaced && s->placed && s->floor && s->answers && s->weight &&
        s->memo && s->fixed_begin && find_fixed(s)) {
        s->base = s->floor + sections, s->left = s->base + sections, s->top = s->left + sections;
        s->least = s->top + sections, s->cuts = s->answers + sections;
        return s;
    }
    place_search_destroy(s);
    return NULL;
}

void place_search_destroy(place_search *s)
{
    if (!s) return;
    pl_free(s->noise);
    pl_free(s->fixed);
    pl_free(s->fixed_begin);
    pl_free(s->twin);
    pl_free(s->low);
    pl_free(s->offset);
    pl_free(s->unplaced);
    pl_free(s->placed);
    pl_free(s->floor);
    pl_free(s->answers);
    pl_free(s->weight);
    pl_free(s->trail.elements);
    pl_free(s->choices.elements);
    pl_free(s->pieces.elements);
    pl_free(s->memo);
    pl_free(s);
}

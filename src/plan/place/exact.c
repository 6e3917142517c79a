/* Exact search: is there a placement below a capacity? After MiniMalloc (Moffitt, ASPLOS'23), with a stronger section
 * bound and a memory of failed states.
 *
 * The idea. Drop every buffer of any placement as far as it falls: each then sits on the floor, on a fixed offset or on
 * another buffer. List the buffers by (offset, rank), rank being any fixed total order. Among all placements that fit,
 * take the one whose list is lexicographically least; the search walks down such lists, placing one buffer at a time at
 * the lowest offset left to it, and may cut whatever the least list cannot contain. Every cut below keeps the least list,
 * so all of them together are sound, in any combination of switches:
 *
 *   canonical      the list never steps down: (offset, rank) of the next buffer is above that of the last one. A buffer
 *                  whose lowest offset is below that line ("blocked") can only be placed after something lifts it, so it
 *                  will lie at least at line + its smallest neighbour's size
 *   dominance      no buffer is placed at or above the top of the place where another unplaced one could lie now: moving
 *                  that one there would give a lesser list
 *   hatless        a buffer with nothing unplaced above it fails ⇒ its siblings fail: it could be dropped to this place
 *   twins          of two buffers alike in life, size and alignment the one of lower rank comes first: swap them
 *   section bound  in each section, unplaced buffers i can lie no lower than low(i): taken by rising low, a pointer
 *                  t = max(t, low(i)) + size(i) is a lower bound on the section's top (one machine, release dates)
 *   memo           what is below a node depends only on the unplaced buffers, their lowest offsets and who is blocked
 *
 * When the unplaced buffers fall apart into groups that share no moment, each is solved alone; if one fails, so does the
 * node. Three ranks are tried in turn with a growing limit on nodes, until one finds or refutes.
 *
 * Invariant: low[i] is the lowest aligned offset of i above everything placed that conflicts with it (fixed: at least its
 * offset); everything changed is written to the trail and undone from it. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { MEMO_BITS_MIN = 8, MEMO_BITS_MAX = 18, RANKINGS = 3 };

typedef struct order {
    uint64_t at; /* lowest offset it can have in the least list */
    uint32_t rank, item;
} order;

typedef struct change {
    uint64_t low;
    uint32_t item;
} change;

typedef struct choice {
    uint64_t at;
    uint32_t rank, item;
} choice;

struct place_search {
    const place_part *part;
    place_run *run;
    uint64_t capacity, stop_at; /* work at which to give up */
    uint64_t nodes_left;        /* of this attempt */
    uint32_t ranking;
    uint32_t *rank, *twin; /* twin: the one alike just before it in rank, or PLACE_NO_ITEM */
    uint64_t *low, *offset, *least_neighbour;
    uint64_t *top;   /* by section: scratch of the bound */
    uint32_t *cuts;  /* by section: unplaced items that span it and the next one */
    order *unplaced; /* a permutation; each node owns a range of it */
    change *trail;
    size_t trail_count, trail_capacity;
    choice *choices; /* a stack: each node owns what it pushed */
    size_t choice_count, choice_capacity;
    uint32_t *placed; /* a stack */
    uint32_t placed_count;
    uint64_t *memo;
    unsigned memo_bits;
    bool refused; /* memory */
};

typedef struct node {
    uint32_t begin, end;                   /* of unplaced */
    uint32_t section_begin, section_end;
    uint64_t line;                         /* (line, line_rank): the last one placed */
    uint32_t line_rank;
} node;

static place_answer solve(place_search *, node);

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

/* Fills at, sorts by (at, rank) – nearly sorted already, so by insertion – and returns the state's hash. */
static uint64_t sort_unplaced(place_search *s, const node *n)
{
    uint64_t hash = s->ranking;
    order *o = s->unplaced;
    for (uint32_t k = n->begin; k < n->end; k++) {
        order now = o[k];
        bool blocked = is_blocked(s, n, now.item);
        now.at = blocked ? n->line + s->least_neighbour[now.item] : s->low[now.item];
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
        if (pl_grow(&s->trail, &s->trail_capacity, s->trail_count, sizeof *s->trail)) {
            s->refused = true;
            return false;
        }
        s->trail[s->trail_count++] = (change){s->low[other], other};
        const place_item *o = &s->part->items[other];
        s->low[other] = pl_align_up(height, o->alignment);
        if (s->low[other] + o->size > s->capacity || s->low[other] > o->fixed) return false;
    }
    return true;
}

static void take_back(place_search *s, mark to)
{
    while (s->trail_count > to.trail_count) {
        const change *c = &s->trail[--s->trail_count];
        s->low[c->item] = c->low;
    }
    while (s->placed_count > to.placed_count) {
        uint32_t item = s->placed[--s->placed_count];
        s->offset[item] = PL_PLACE_NONE;
        for (uint32_t i = s->part->items[item].first; i + 1 < s->part->items[item].last; i++) s->cuts[i]++;
    }
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

/* The node's buffers in groups that share no section, after `item` was placed. */
static place_answer solve_groups(place_search *s, node n, uint32_t item)
{
    const place_item *placed = &s->part->items[item];
    if (!s->run->options->dynamic_decomposition) return solve(s, n);
    for (uint32_t i = placed->first; i + 1 < placed->last; i++) {
        if (s->cuts[i]) continue;
        node left = n;
        left.end = n.begin = split_at(s, &n, i + 1);
        left.section_end = n.section_begin = i + 1;
        place_answer answer = solve(s, left);
        if (answer != PLACE_YES) return answer;
    }
    return solve(s, n);
}

static bool push_choices(place_search *s, const node *n)
{
    uint64_t least_top = PL_PLACE_NONE;
    for (uint32_t k = n->begin; k < n->end; k++) {
        uint32_t item = s->unplaced[k].item;
        uint64_t top = s->low[item] + s->part->items[item].size;
        if (top < least_top) least_top = top;
    }
    for (uint32_t k = n->begin; k < n->end; k++) {
        const order *o = &s->unplaced[k];
        if (s->run->options->dominance && o->at >= least_top) break;
        if (is_blocked(s, n, o->item)) continue;
        uint32_t twin = s->run->options->twins ? s->twin[o->item] : PLACE_NO_ITEM;
        if (twin != PLACE_NO_ITEM && s->offset[twin] == PL_PLACE_NONE) continue;
        if (pl_grow(&s->choices, &s->choice_capacity, s->choice_count, sizeof *s->choices)) return false;
        s->choices[s->choice_count++] = (choice){o->at, o->rank, o->item};
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

static place_answer branch(place_search *s, const node *n, const choice *c, bool *hatless)
{
    mark before = {s->trail_count, s->placed_count};
    place_answer answer = PLACE_NO;
    if (place(s, c->item, c->at, hatless)) {
        node child = *n;
        remove_item(s, &child, c->item);
        child.line = c->at, child.line_rank = c->rank;
        answer = solve_groups(s, child, c->item);
    }
    if (s->refused) answer = PLACE_UNKNOWN;
    if (answer != PLACE_YES) take_back(s, before);
    return answer;
}

static place_answer expand(place_search *s, const node *n)
{
    size_t first = s->choice_count;
    if (!push_choices(s, n)) {
        s->refused = true;
        return PLACE_UNKNOWN;
    }
    place_answer answer = PLACE_NO;
    for (size_t k = first; k < s->choice_count && answer == PLACE_NO; k++) {
        choice c = s->choices[k];
        bool hatless = false;
        answer = branch(s, n, &c, &hatless);
        if (hatless && s->run->options->hatless) break;
    }
    s->choice_count = first;
    return answer;
}

static place_answer solve(place_search *s, node n)
{
    if (n.begin == n.end) return PLACE_YES;
    s->run->nodes++;
    if (s->nodes_left == 0 || s->run->work >= s->stop_at) return PLACE_UNKNOWN;
    s->nodes_left--;
    if (place_run_spend(s->run, 4 * (uint64_t)(n.end - n.begin) + 50)) return PLACE_UNKNOWN;
    uint64_t hash = sort_unplaced(s, &n), *slot = &s->memo[hash >> (64 - s->memo_bits)];
    if (s->run->options->memo && *slot == hash) return PLACE_NO;
    bool exceeds = s->run->options->section_bound ? exceeds_sections(s, &n) : exceeds_singly(s, &n);
    if (exceeds) return PLACE_NO;
    place_answer answer = expand(s, &n);
    if (answer == PLACE_NO) *slot = hash;
    return answer;
}

/* --- preparing a part and an attempt --- */

typedef struct ranked {
    double keys[3];
    uint32_t item;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    for (int k = 0; k < 3; k++)
        if (a->keys[k] != b->keys[k]) return a->keys[k] > b->keys[k] ? -1 : 1;
    return a->item < b->item ? -1 : 1;
}

/* Long, large and crowded first: width, area and the fullest section in three priorities. */
static void rank_items(place_search *s, ranked *list)
{
    const place_part *part = s->part;
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        double width = (double)(item->upper - item->lower), area = width * (double)item->size, total = 0;
        for (uint32_t k = item->first; k < item->last; k++)
            if ((double)part->section_sum[k] > total) total = (double)part->section_sum[k];
        double by[RANKINGS][3] = {{width, area, total}, {total, area, width}, {total, width, area}};
        memcpy(list[i].keys, by[s->ranking], sizeof list[i].keys);
        list[i].item = i;
    }
    qsort(list, part->count, sizeof *list, compare_ranked);
    for (uint32_t r = 0; r < part->count; r++) s->rank[list[r].item] = r;
}

static bool alike(const place_item *a, const place_item *b)
{
    return a->first == b->first && a->last == b->last && a->size == b->size && a->alignment == b->alignment &&
           a->fixed == PL_PLACE_NONE && b->fixed == PL_PLACE_NONE;
}

/* Twins have the same neighbours, so it is enough to look along one row. */
static void find_twins(place_search *s)
{
    for (uint32_t i = 0; i < s->part->count; i++) {
        uint32_t count, best = PLACE_NO_ITEM;
        const uint32_t *row = place_part_conflicts(s->part, i, &count);
        uint64_t least = PL_PLACE_NONE;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t j = row[k];
            if (s->part->items[j].size < least) least = s->part->items[j].size;
            if (s->rank[j] > s->rank[i] || !alike(&s->part->items[i], &s->part->items[j])) continue;
            if (best == PLACE_NO_ITEM || s->rank[j] > s->rank[best]) best = j;
        }
        s->twin[i] = best;
        s->least_neighbour[i] = count ? least : INT64_MAX; /* nothing can lift it */
    }
}

static void prepare(place_search *s, ranked *list)
{
    const place_part *part = s->part;
    rank_items(s, list);
    find_twins(s);
    memset(s->cuts, 0, part->section_count * sizeof *s->cuts);
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        s->low[i] = item->fixed == PL_PLACE_NONE ? 0 : item->fixed;
        s->offset[i] = PL_PLACE_NONE;
        s->unplaced[i] = (order){0, s->rank[i], i};
        for (uint32_t k = item->first; k + 1 < item->last; k++) s->cuts[k]++;
    }
    s->trail_count = s->choice_count = s->placed_count = 0;
}

pl_status place_search_try(place_search *s, uint64_t capacity, uint64_t work_limit, uint64_t *offsets,
                           place_answer *answer, pl_error *err)
{
    ranked *list = pl_alloc(s->part->count, sizeof *list);
    s->refused = !list;
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
        prepare(s, list);
        *answer = solve(s, (node){0, s->part->count, 0, s->part->section_count, 0, 0});
    }
    pl_free(list);
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
    s->least_neighbour = pl_alloc(n, sizeof *s->least_neighbour);
    s->top = pl_alloc(part->section_count, sizeof *s->top);
    s->cuts = pl_alloc(part->section_count, sizeof *s->cuts);
    s->unplaced = pl_alloc(n, sizeof *s->unplaced);
    s->placed = pl_alloc(n, sizeof *s->placed);
    s->memo = pl_alloc((size_t)1 << s->memo_bits, sizeof *s->memo);
    if (s->rank && s->twin && s->low && s->offset && s->least_neighbour && s->top && s->cuts && s->unplaced &&
        s->placed && s->memo)
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
    pl_free(s->least_neighbour);
    pl_free(s->top);
    pl_free(s->cuts);
    pl_free(s->unplaced);
    pl_free(s->trail);
    pl_free(s->choices);
    pl_free(s->placed);
    pl_free(s->memo);
    pl_free(s);
}

/* The judge of plans; shares no code with the placer.
 *
 * Do two blocks that are alive together overlap? Time is swept: at its first position a block takes its addresses, at
 * its last it gives them back, and whoever finds one of its addresses taken overlaps. The addresses are the stretches
 * between all ends of blocks, counted in a tree: a leaf is a stretch, a node knows how often all of it is taken (own)
 * and the most that any stretch below is (most). Only when something is wrong are the two searched for, pair by pair.
 */
#include <stdlib.h>

#include "backend/backend.h"
#include "base/size.h"
#include "ir/properties.h"
#include "plan/plan.h"

typedef struct named_block {
    const pl_block *block;
    const char *name;
} named_block;

static size_t add_block(named_block *out, size_t count, const pl_block *b, pl_id space, const char *name)
{
    if (b->bytes == 0 || b->space != space) return count;
    out[count] = (named_block){b, name};
    return count + 1;
}

/* Of one space. */
static size_t all_blocks(const pl_plan *p, pl_id space, named_block *out)
{
    size_t count = 0;
    for (size_t i = 0; i < p->graph->value_count; i++)
        count = add_block(out, count, &p->value[i], space, p->graph->value[i].name);
    for (size_t i = 0; i < p->graph->node_count; i++)
        count = add_block(out, count, &p->workspace[i], space, pl_op_name(p->graph->node[i].op));
    return count;
}

static bool overlap(const pl_block *a, const pl_block *b)
{
    bool together = a->space == b->space && a->first < b->last && b->first < a->last;
    return together && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

typedef struct event {
    uint64_t position;
    uint32_t block;
    bool begins;
} event;

typedef struct sweep {
    event *event;      /* sorted: ends before beginnings, for lives are half-open */
    uint64_t *address; /* sorted beginnings and ends of blocks; stretch k is [address[k], address[k + 1]) */
    size_t address_count;
    int32_t *own, *most; /* [4 · addresses] */
} sweep;

static int compare_events(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->position != b->position) return a->position < b->position ? -1 : 1;
    if (a->begins != b->begins) return a->begins ? 1 : -1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static size_t stretch_at(const sweep *s, uint64_t address)
{
    size_t low = 0, high = s->address_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->address[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds to the stretches [from, to) of the node, which stands for [begin, end); returns the most among them. */
static int32_t take(sweep *s, size_t node, size_t begin, size_t end, size_t from, size_t to, int32_t step)
{
    if (to <= begin || end <= from) return 0;
    if (from <= begin && end <= to) {
        s->own[node] += step;
        return s->most[node] += step;
    }
    size_t middle = begin + (end - begin) / 2;
    int32_t left = take(s, 2 * node, begin, middle, from, to, step);
    int32_t right = take(s, 2 * node + 1, middle, end, from, to, step);
    int32_t below = s->most[2 * node] > s->most[2 * node + 1] ? s->most[2 * node] : s->most[2 * node + 1];
    s->most[node] = s->own[node] + below;
    return s->own[node] + (left > right ? left : right);
}

static pl_status name_overlap(const named_block *b, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (overlap(b[i].block, b[j].block))
                return pl_fail(err, PL_E_INTERNAL, "plan: %s and %s are alive together and overlap", b[i].name,
                               b[j].name);
    return pl_fail(err, PL_E_INTERNAL, "plan: the judge of overlaps contradicts itself");
}

static pl_status sweep_blocks(sweep *s, const named_block *b, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const pl_block *x = b[i].block;
        s->event[2 * i] = (event){x->first, (uint32_t)i, true};
        s->event[2 * i + 1] = (event){x->last, (uint32_t)i, false};
        s->address[2 * i] = x->offset;
        s->address[2 * i + 1] = x->offset + x->bytes;
    }
    s->address_count = 2 * count;
    qsort(s->event, 2 * count, sizeof *s->event, compare_events);
    qsort(s->address, 2 * count, sizeof *s->address, compare_addresses);
    for (size_t i = 0; i < 2 * count; i++) {
        const pl_block *x = b[s->event[i].block].block;
        size_t from = stretch_at(s, x->offset), to = stretch_at(s, x->offset + x->bytes);
        if (take(s, 1, 0, s->address_count, from, to, s->event[i].begins ? 1 : -1) > 1)
            return name_overlap(b, count, err);
    }
    return PL_OK;
}

static pl_status check_overlaps(const named_block *b, size_t count, pl_error *err)
{
    sweep s = {0};
    pl_status status = PL_OK;
    s.event = pl_alloc(2 * count + 1, sizeof *s.event);
    s.address = pl_alloc(2 * count + 1, sizeof *s.address);
    s.own = pl_alloc(8 * count + 8, sizeof *s.own);
    s.most = pl_alloc(8 * count + 8, sizeof *s.most);
    if (!s.event || !s.address || !s.own || !s.most || count >= UINT32_MAX)
        status = pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    else
        status = sweep_blocks(&s, b, count, err);
    pl_free(s.event);
    pl_free(s.address);
    pl_free(s.own);
    pl_free(s.most);
    return status;
}

/* Kernels take numbers and blocks wherever these lie. */
static bool is_in_place(const pl_plan *p, const named_block *b)
{
    const pl_block *x = b->block;
    if (!pl_graph_space_is_files(p->graph, x->space)) return x->offset % PL_PLAN_ALIGNMENT == 0;
    return x->offset == p->graph->value[x - p->value].place;
}

static pl_status check_blocks(const pl_plan *p, const named_block *b, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const pl_block *x = b[i].block;
        uint64_t end;
        if (pl_size_add(x->offset, x->bytes, &end) || end > p->arena[x->space].bytes || !is_in_place(p, &b[i]) ||
            x->first >= x->last)
            return pl_fail(err, PL_E_INTERNAL,
                           "plan: the block of %s lies outside the arena, is not aligned or has no life", b[i].name);
    }
    return check_overlaps(b, count, err);
}

/* A value has its bytes, and lives from the first to the last position at which somebody needs it (live.c). */
static pl_status check_lives(const pl_plan *p, const pl_block *need, pl_error *err)
{
    for (size_t i = 0; i < p->graph->value_count; i++) {
        const pl_block *b = &p->value[i];
        if (need[i].bytes == 0) continue;
        if (b->space != need[i].space)
            return pl_fail(err, PL_E_INTERNAL, "plan: %s lies in another space than its graph says",
                           p->graph->value[i].name);
        if (b->bytes < need[i].bytes)
            return pl_fail(err, PL_E_INTERNAL, "plan: %s needs %llu bytes but has %llu", p->graph->value[i].name,
                           (unsigned long long)need[i].bytes, (unsigned long long)b->bytes);
        if (b->first > need[i].first || b->last < need[i].last)
            return pl_fail(err, PL_E_INTERNAL, "plan: %s must live from %llu to %llu, not from %llu to %llu",
                           p->graph->value[i].name, (unsigned long long)need[i].first, (unsigned long long)need[i].last,
                           (unsigned long long)b->first, (unsigned long long)b->last);
    }
    return PL_OK;
}

static pl_status check_values(const pl_plan *p, pl_error *err)
{
    pl_block *need = pl_alloc(p->graph->value_count + 1, sizeof *need);
    if (!need) return pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    pl_status status = pl_plan_find_lives(p->graph, need, err);
    if (status == PL_OK) status = check_lives(p, need, err);
    pl_free(need);
    return status;
}

static pl_status check_node(const pl_plan *p, size_t position, pl_error *err)
{
    const pl_node *n = &p->graph->node[position];
    const pl_block *b = &p->workspace[position];
    uint64_t needed = 0;
    if (n->dead)
        return pl_fail(err, PL_E_INTERNAL, "plan: node %zu (%s) is dead but would run", position, pl_op_name(n->op));
    PL_TRY(pl_backend_workspace_bytes(p->graph, n, p->team, &needed, err));
    if (needed == 0 || (b->bytes >= needed && b->first <= position && position < b->last)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "plan: node %zu (%s) has %llu bytes of workspace, its kernel needs %llu",
                   position, pl_op_name(n->op), (unsigned long long)b->bytes, (unsigned long long)needed);
}

/* Who asks for the micro-batch of a plan with a batch finds the program that trains on it. */
static pl_status check_batch(const pl_plan *p, pl_error *err)
{
    pl_id train = pl_graph_find_trained(p->graph);
    if (p->batch == 0 || (train != PL_NONE && p->graph->region[train].batch > 0)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "plan: a batch of %llu %s, but no program that trains on some of them",
                   (unsigned long long)p->batch, pl_plan_words_of(p)->samples);
}

static pl_status check_totals(const pl_process_planned *l, pl_error *err)
{
    uint64_t resident = 0, charged;
    bool too_large = false;
    for (size_t i = 0; i < l->row_count; i++) too_large |= pl_size_add(resident, l->row[i].resident_bytes, &resident);
    too_large |= pl_size_add(resident, l->page_table_bytes, &charged);
    too_large |= pl_size_add(charged, l->kernel_bytes, &charged);
    if (!too_large && resident == l->resident_bytes && charged == l->charged_bytes) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "plan: the rows of memory do not add up to the totals, %llu bytes charged",
                   (unsigned long long)l->charged_bytes);
}

pl_status pl_plan_check(const pl_plan *p, pl_error *err)
{
    if (p->team.threads < 1) return pl_fail(err, PL_E_INTERNAL, "plan: a team of %d threads", p->team.threads);
    PL_TRY(pl_graph_check(p->graph, PL_STAGE_BOUND, err));
    PL_TRY(check_batch(p, err));
    PL_TRY(check_totals(&p->ledger, err));
    named_block *b = pl_alloc(p->graph->value_count + p->graph->node_count + 1, sizeof *b);
    if (!b) return pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    pl_status status = PL_OK;
    for (pl_id k = 0; k < p->graph->space_count && status == PL_OK; k++)
        status = check_blocks(p, b, all_blocks(p, k, b), err);
    pl_free(b);
    if (status == PL_OK) status = check_values(p, err);
    for (size_t i = 0; i < p->graph->node_count && status == PL_OK; i++) status = check_node(p, i, err);
    return status;
}

/* Lives of values over the schedule. */
#include "base/size.h"
#include "plan/plan.h"

typedef struct span {
    uint64_t first, last; /* positions */
} span;

void pl_plan_program_span(const pl_graph *g, pl_id program, uint64_t *first, uint64_t *last)
{
    *first = *last = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        if (pl_region_program(g, g->node[i].region) != program) continue;
        if (*last == 0) *first = i;
        *last = i + 1;
    }
}

uint64_t pl_node_trips(const pl_graph *g, const pl_node *n)
{
    uint64_t trips = 1;
    for (pl_id r = n->region; r != PL_NONE; r = g->region[r].parent) trips *= g->region[r].trip;
    return trips;
}

/* The end of the outermost region that holds `reader` but not `maker`: a value made outside and read inside a repeated
 * stretch is needed until the stretch has run for the last time. */
static uint64_t needed_until(const pl_graph *g, const span *region, pl_id maker_region, pl_id reader_region,
                             uint64_t read_end)
{
    for (pl_id r = reader_region; r != PL_NONE; r = g->region[r].parent) {
        bool holds_maker = false;
        for (pl_id m = maker_region; m != PL_NONE; m = g->region[m].parent) holds_maker |= m == r;
        if (holds_maker) break;
        if (g->region[r].trip > 1 && region[r].last > read_end) read_end = region[r].last;
    }
    return read_end;
}

/* A tile is one of a stack that is filled or read trip by trip: the stack is needed as long as the region repeats. */
static void touch_tile(const pl_graph *g, const span *region, pl_block *stack, size_t position)
{
    for (pl_id r = g->node[position].region; r != PL_NONE; r = g->region[r].parent) {
        if (g->region[r].trip <= 1) continue;
        if (region[r].first < stack->first) stack->first = (uint32_t)region[r].first;
        if (region[r].last > stack->last) stack->last = (uint32_t)region[r].last;
    }
}

static void touch(const pl_graph *g, const span *region, pl_block *block, pl_id *maker, pl_id value, size_t position)
{
    if (value == PL_NONE) return;
    pl_id root = pl_value_root(g, value);
    pl_block *b = &block[root];
    if (b->last == 0) {
        b->first = (uint32_t)position;
        maker[root] = g->node[position].region;
    }
    uint64_t end = needed_until(g, region, maker[root], g->node[position].region, position + 1);
    if (end > b->last) b->last = (uint32_t)end;
    if (g->value[value].tile) touch_tile(g, region, b, position);
}

/* Of every region at once, programs among them. */
static void find_spans(const pl_graph *g, span *of)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (pl_id r = g->node[i].region; r != PL_NONE; r = g->region[r].parent) {
            if (of[r].last == 0) of[r].first = i;
            of[r].last = i + 1;
        }
}

static bool lives_with_its_program(const pl_value *v)
{
    return v->role == PL_ROLE_INPUT || v->role == PL_ROLE_OUTPUT || v->role == PL_ROLE_STATE;
}

pl_status pl_plan_find_lives(const pl_graph *g, pl_block *block, pl_error *err)
{
    pl_id *maker = pl_alloc(g->value_count + 1, sizeof *maker);
    span *region = pl_alloc(g->region_count + 1, sizeof *region);
    pl_status status = PL_OK;
    if (!maker || !region)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to find the lives of %zu values", g->value_count));
    find_spans(g, region);
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) touch(g, region, block, maker, n->out[k], i);
        for (int k = 0; k < PL_NODE_IN_MAX; k++) touch(g, region, block, maker, n->in[k], i);
        touch(g, region, block, maker, n->predicate, i);
    }
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (pl_value_root(g, (pl_id)i) != i) continue;
        if (v->program == PL_NONE)
            block[i].first = 0, block[i].last = (uint32_t)g->node_count;
        else if (lives_with_its_program(v))
            block[i].first = (uint32_t)region[v->program].first, block[i].last = (uint32_t)region[v->program].last;
        block[i].space = v->space;
        block[i].bytes = block[i].last ? pl_value_bytes(g, (pl_id)i) : 0;
    }
done:
    pl_free(maker);
    pl_free(region);
    return status;
}

/* As differences (modulo 2^64): at its first position a block comes, at its last it goes. */
static void add_difference(const pl_block *b, size_t positions, uint64_t *sum)
{
    uint64_t bytes = pl_align_up(b->bytes, PL_PLAN_ALIGNMENT);
    if (b->first >= b->last) return;
    sum[b->first] += bytes;
    if (b->last < positions) sum[b->last] -= bytes;
}

pl_id pl_plan_workspace_space(const pl_graph *g, const pl_node *n)
{
    (void)g, (void)n; /* every queue is the processor's */
    return PL_SPACE_RAM;
}

void pl_plan_alive(const pl_plan *p, pl_id space, uint64_t *sum)
{
    size_t positions = p->graph->node_count;
    for (size_t i = 0; i < positions; i++) sum[i] = 0;
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (p->value[i].space == space) add_difference(&p->value[i], positions, sum);
    for (size_t i = 0; i < positions; i++)
        if (p->workspace[i].space == space) add_difference(&p->workspace[i], positions, sum);
    for (size_t i = 1; i < positions; i++) sum[i] += sum[i - 1];
}

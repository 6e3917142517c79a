#include "calibrate/layout.h"

#include <string.h>

#include "base/size.h"

enum { ALIGNMENT = 64, SMALL_MIN = 256, SMALL_MAX = 1 << 20, OWN_SHARE = 16 };

typedef struct life {
    size_t first, last; /* nodes, inclusive */
} life;

typedef struct live_block {
    uint64_t begin, end;
    size_t last;
} live_block;

typedef struct builder {
    pl_layout *l;
    life *life;       /* [values], of roots */
    live_block *live; /* sorted by begin */
    size_t live_count;
    size_t *program_end; /* [regions] last node of a program */
    pl_team team;
} builder;

static uint64_t room_of(const pl_graph *g, pl_id root) { return pl_align_up(pl_value_bytes(g, root), ALIGNMENT); }

static pl_area_kind kind_of(const pl_graph *g, pl_id root, uint64_t small_bytes)
{
    const pl_value *v = &g->value[root];
    if (room_of(g, root) <= small_bytes) return PL_AREA_OWN;
    if (v->role == PL_ROLE_OPTIMIZER) return PL_AREA_MOMENT; /* of any dtype: see the fill of scratch.c */
    if (!pl_dtype_is_real(v->dtype)) return PL_AREA_OWN;
    if (v->program != PL_NONE) return PL_AREA_ACTIVATION;
    return v->role == PL_ROLE_GRADIENT ? PL_AREA_GRADIENT : PL_AREA_WEIGHT;
}

/* ---- lives ---- */

static void find_program_ends(builder *b)
{
    const pl_graph *g = b->l->graph;
    for (size_t i = 0; i < g->node_count; i++) b->program_end[pl_region_program(g, g->node[i].region)] = i;
}

static size_t end_of_program(const builder *b, size_t node)
{
    return b->program_end[pl_region_program(b->l->graph, b->l->graph->node[node].region)];
}

static void touch(builder *b, pl_id value, size_t node)
{
    const pl_graph *g = b->l->graph;
    if (value == PL_NONE) return;
    pl_id root = pl_value_root(g, value);
    life *at = &b->life[root];
    if (b->l->kind[root] == PL_AREA_COUNT) {
        b->l->kind[root] = PL_AREA_ACTIVATION; /* seen; the kind comes later */
        pl_role role = g->value[root].role;
        bool lasting = role == PL_ROLE_INPUT || role == PL_ROLE_OUTPUT || role == PL_ROLE_STATE;
        *at = (life){node, lasting ? end_of_program(b, node) : node};
    }
    if (node > at->last) at->last = node;
    /* made outside of a repeated region and read inside: needed in every trip */
    if (g->node[node].region != g->node[at->first].region) at->last = end_of_program(b, node);
}

static void find_lives(builder *b)
{
    pl_layout *l = b->l;
    memset(l->kind, PL_AREA_COUNT, l->graph->value_count);
    for (size_t i = 0; i < l->graph->node_count; i++) {
        if (!l->run[i]) continue;
        const pl_node *n = &l->graph->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++) touch(b, n->in[k], i);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) touch(b, n->out[k], i);
        touch(b, n->predicate, i);
    }
}

/* ---- places ---- */

static void remove_dead(builder *b, size_t node)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->live_count; i++)
        if (b->live[i].last > node) b->live[kept++] = b->live[i];
    b->live_count = kept;
}

/* The lowest gap that is large enough. */
static uint64_t place(builder *b, uint64_t bytes, size_t last)
{
    uint64_t at = 0;
    size_t i = 0;
    for (; i < b->live_count && b->live[i].begin < at + bytes; i++)
        if (b->live[i].end > at) at = b->live[i].end;
    while (i > 0 && b->live[i - 1].begin > at) i--;
    memmove(&b->live[i + 1], &b->live[i], (b->live_count - i) * sizeof *b->live);
    b->live[i] = (live_block){at, at + bytes, last};
    b->live_count++;
    return at;
}

static void grow_area(pl_area *a, uint64_t bytes, uint64_t end)
{
    if (bytes > a->largest_bytes) a->largest_bytes = bytes;
    if (end > a->demand_bytes) a->demand_bytes = end;
}

static void place_value(builder *b, pl_id value, size_t node)
{
    if (value == PL_NONE) return;
    pl_layout *l = b->l;
    pl_id root = pl_value_root(l->graph, value);
    uint64_t room = room_of(l->graph, root);
    if (l->kind[root] != PL_AREA_ACTIVATION || b->life[root].first != node || l->home[root] != UINT64_MAX) return;
    l->home[root] = place(b, room, b->life[root].last);
    grow_area(&l->area[PL_AREA_ACTIVATION], room, l->home[root] + room);
}

static void place_activations(builder *b)
{
    pl_layout *l = b->l;
    b->live_count = 0;
    for (size_t i = 0; i < l->graph->node_count; i++) {
        if (!l->run[i]) continue;
        const pl_node *n = &l->graph->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++) place_value(b, n->in[k], i);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) place_value(b, n->out[k], i);
        uint64_t room = pl_align_up(l->workspace_bytes[i], ALIGNMENT);
        grow_area(&l->area[PL_AREA_WORKSPACE], room, room);
        remove_dead(b, i);
    }
}

/* Everything but activations stands in a row, in the order of the values: as in the plan. */
static void place_all(builder *b, uint64_t small_bytes)
{
    pl_layout *l = b->l;
    memset(l->area, 0, sizeof l->area);
    for (size_t i = 0; i < l->graph->value_count; i++) {
        l->home[i] = UINT64_MAX;
        if (l->kind[i] == PL_AREA_COUNT) continue;
        l->kind[i] = (uint8_t)kind_of(l->graph, (pl_id)i, small_bytes);
        if (l->kind[i] == PL_AREA_ACTIVATION) continue;
        pl_area *a = &l->area[l->kind[i]];
        l->home[i] = a->demand_bytes;
        grow_area(a, room_of(l->graph, (pl_id)i), a->demand_bytes + room_of(l->graph, (pl_id)i));
    }
    place_activations(b);
}

/* The size up to which values get a place of their own when areas overlap: statistics of rows, norms' weights. */
static uint64_t find_small(const pl_layout *l, uint64_t bytes_max)
{
    uint64_t small = SMALL_MIN;
    for (uint64_t next = SMALL_MIN; next <= SMALL_MAX; next *= 2) {
        uint64_t sum = 0;
        for (size_t i = 0; i < l->graph->value_count; i++) {
            uint64_t room = l->kind[i] == PL_AREA_COUNT ? 0 : room_of(l->graph, (pl_id)i);
            if (room <= next) sum += room;
        }
        if (sum > bytes_max / OWN_SHARE) break;
        small = next;
    }
    return small;
}

/* ---- sizes of the areas ---- */

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void settle(pl_layout *l)
{
    uint64_t at = 0;
    for (int k = 0; k < PL_AREA_COUNT; k++) {
        if (k == PL_AREA_MOMENT && l->moments_shared) continue;
        l->area[k].begin = at;
        at += l->area[k].bytes;
    }
    if (l->moments_shared) {
        l->area[PL_AREA_MOMENT].begin = l->area[PL_AREA_ACTIVATION].begin;
        l->area[PL_AREA_MOMENT].bytes = l->area[PL_AREA_ACTIVATION].bytes;
    }
    l->bytes = at;
}

static bool fits_whole(pl_layout *l, uint64_t bytes_max)
{
    uint64_t sum = 0;
    for (int k = 0; k < PL_AREA_COUNT; k++) {
        l->area[k].bytes = l->area[k].demand_bytes;
        if (pl_size_add(sum, l->area[k].demand_bytes, &sum)) return false;
    }
    return sum <= bytes_max;
}

/* Each of the three gets room for its largest value as far as there is room, then its share of the rest. */
static void share_out(pl_layout *l, uint64_t bytes_max)
{
    static const pl_area_kind order[] = {PL_AREA_WEIGHT, PL_AREA_GRADIENT, PL_AREA_ACTIVATION};
    pl_area *moment = &l->area[PL_AREA_MOMENT], *activation = &l->area[PL_AREA_ACTIVATION];
    l->moments_shared = true;
    uint64_t demand[PL_AREA_COUNT] = {0},
             left = bytes_max - l->area[PL_AREA_OWN].bytes - l->area[PL_AREA_WORKSPACE].bytes;
    for (int i = 0; i < 3; i++) {
        pl_area *a = &l->area[order[i]];
        demand[i] = a->demand_bytes;
        if (a == activation) demand[i] = max_u64(demand[i], moment->demand_bytes);
        a->bytes = a == activation ? max_u64(a->largest_bytes, moment->largest_bytes) : a->largest_bytes;
        a->bytes = min_u64(a->bytes, left);
        left -= a->bytes;
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            pl_area *a = &l->area[order[i]];
            uint64_t more =
                min_u64(demand[i] - min_u64(demand[i], a->bytes), left / (uint64_t)(3 - i) / ALIGNMENT * ALIGNMENT);
            a->bytes += more;
            left -= more;
        }
}

static bool has_room(const pl_layout *l, pl_id value)
{
    if (value == PL_NONE) return true;
    pl_id root = pl_value_root(l->graph, value);
    return room_of(l->graph, root) <= l->area[l->kind[root]].bytes;
}

static void drop_oversized(pl_layout *l)
{
    for (size_t i = 0; i < l->graph->node_count; i++) {
        const pl_node *n = &l->graph->node[i];
        if (!l->run[i]) continue;
        for (int k = 0; k < PL_NODE_IN_MAX; k++) l->run[i] &= has_room(l, n->in[k]);
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) l->run[i] &= has_room(l, n->out[k]);
        l->run[i] &= l->workspace_bytes[i] <= l->area[PL_AREA_WORKSPACE].bytes;
    }
}

static pl_status find_workspaces(builder *b, pl_error *err)
{
    pl_layout *l = b->l;
    for (size_t i = 0; i < l->graph->node_count; i++)
        if (l->run[i])
            PL_TRY(pl_backend_workspace_bytes(l->graph, &l->graph->node[i], b->team, &l->workspace_bytes[i], err));
    return PL_OK;
}

static void lay_out(builder *b, uint64_t bytes_max)
{
    pl_layout *l = b->l;
    find_lives(b);
    place_all(b, 0);
    bytes_max = bytes_max / ALIGNMENT * ALIGNMENT;
    if (!fits_whole(l, bytes_max)) {
        place_all(b, find_small(l, bytes_max));
        pl_area *own = &l->area[PL_AREA_OWN], *workspace = &l->area[PL_AREA_WORKSPACE];
        own->bytes = min_u64(own->demand_bytes, bytes_max);
        workspace->bytes = min_u64(workspace->demand_bytes, bytes_max - own->bytes);
        if (own->bytes < own->demand_bytes) memset(l->run, 0, l->graph->node_count * sizeof *l->run);
        share_out(l, bytes_max);
    }
    settle(l);
    drop_oversized(l);
}

pl_status pl_layout_init(pl_layout *l, const pl_graph *g, bool *run, pl_team team, uint64_t bytes_max, pl_error *err)
{
    pl_status status;
    *l = (pl_layout){.graph = g, .run = run};
    builder b = {.l = l, .team = team};
    l->kind = pl_alloc(g->value_count + 1, sizeof *l->kind);
    l->home = pl_alloc(g->value_count + 1, sizeof *l->home);
    l->workspace_bytes = pl_alloc(g->node_count + 1, sizeof *l->workspace_bytes);
    b.life = pl_alloc(g->value_count + 1, sizeof *b.life);
    b.live = pl_alloc(g->value_count + 2, sizeof *b.live);
    b.program_end = pl_alloc(g->region_count + 1, sizeof *b.program_end);
    if (!l->kind || !l->home || !l->workspace_bytes || !b.life || !b.live || !b.program_end)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to lay out a calibration of %zu nodes", g->node_count));
    find_program_ends(&b);
    PL_TRY_DONE(find_workspaces(&b, err));
    lay_out(&b, bytes_max);
done:
    pl_free(b.life);
    pl_free(b.live);
    pl_free(b.program_end);
    if (status != PL_OK) pl_layout_deinit(l);
    return status;
}

void pl_layout_deinit(pl_layout *l)
{
    pl_free(l->kind);
    pl_free(l->home);
    pl_free(l->workspace_bytes);
    *l = (pl_layout){0};
}

/* In a ring the places of a turn follow those of the turn before; a value is never cut in two. */
static uint64_t wrap(const pl_area *a, uint64_t home, uint64_t bytes, uint64_t turn)
{
    if (a->demand_bytes <= a->bytes) return a->begin + home;
    uint64_t places = (a->bytes - bytes) / ALIGNMENT + 1;
    return a->begin + (home + turn * a->demand_bytes) / ALIGNMENT % places * ALIGNMENT;
}

uint64_t pl_layout_offset(const pl_layout *l, pl_id root, uint64_t turn)
{
    const pl_area *a = &l->area[l->kind[root]];
    return wrap(a, l->home[root], room_of(l->graph, root), l->kind[root] == PL_AREA_ACTIVATION ? 0 : turn);
}

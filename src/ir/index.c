#include "ir/index.h"

#include <string.h>

enum { SLOTS_MIN = 64 };

/* ---- readers ---- */

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory to index the graph"); }

pl_status pl_readers_add(pl_readers *r, pl_id value, pl_id node, pl_error *err)
{
    if (value >= r->value_count) return PL_OK;
    if (r->count >= UINT32_MAX - 1 || pl_grow(&r->entry, &r->capacity, r->count, sizeof *r->entry))
        return no_memory(err);
    r->entry[r->count++] = (pl_reader){node, r->head[value]};
    r->head[value] = (uint32_t)r->count;
    return PL_OK;
}

/* From the last node to the first, because each goes in front. */
pl_status pl_readers_init(pl_readers *r, const pl_graph *g, pl_error *err)
{
    pl_status status = PL_OK;
    *r = (pl_readers){.head = pl_alloc(g->value_count + 1, sizeof *r->head),
                      .viewed = pl_alloc(g->value_count + 1, sizeof *r->viewed),
                      .value_count = g->value_count};
    if (!r->head || !r->viewed) status = no_memory(err);
    for (size_t i = 0; i < g->value_count && status == PL_OK; i++)
        if (g->value[i].view_of != PL_NONE) r->viewed[g->value[i].view_of] = true;
    for (size_t i = g->node_count; i-- > 0 && status == PL_OK;)
        for (int k = 0; k < PL_NODE_IN_MAX && !g->node[i].dead && status == PL_OK; k++)
            status = pl_readers_add(r, g->node[i].in[k], (pl_id)i, err);
    if (status != PL_OK) pl_readers_deinit(r);
    return status;
}

void pl_readers_deinit(pl_readers *r)
{
    pl_free(r->head);
    pl_free(r->viewed);
    pl_free(r->entry);
    *r = (pl_readers){0};
}

static const pl_reader *at(const pl_readers *r, uint32_t index) { return index ? &r->entry[index - 1] : NULL; }

const pl_reader *pl_readers_first(const pl_readers *r, pl_id value)
{
    return value < r->value_count ? at(r, r->head[value]) : NULL;
}

const pl_reader *pl_readers_next(const pl_readers *r, const pl_reader *reader) { return at(r, reader->next); }

bool pl_readers_know(const pl_readers *r, const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return value < r->value_count && v->view_of == PL_NONE && v->update_of == PL_NONE && !r->viewed[value];
}

bool pl_node_reads(const pl_node *n, pl_id value)
{
    for (int k = 0; k < PL_NODE_IN_MAX && !n->dead; k++)
        if (n->in[k] == value) return true;
    return false;
}

bool pl_readers_have_one(const pl_readers *r, const pl_graph *g, pl_id value)
{
    int count = 0;
    for (const pl_reader *e = pl_readers_first(r, value); e; e = pl_readers_next(r, e))
        count += pl_node_reads(&g->node[e->node], value);
    return count == 1;
}

bool pl_readers_may_wait(const pl_readers *r, const pl_graph *g, pl_id node, pl_id last)
{
    if (node == PL_NONE) return true;
    const pl_id made = pl_node_result(&g->node[node]);
    for (const pl_reader *e = pl_readers_first(r, made); e; e = pl_readers_next(r, e))
        if (!g->node[e->node].dead && e->node <= last) return false;
    return true;
}

/* ---- names ---- */

static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h ^ h >> 32;
}

/* The slot of the name, or the free one where it belongs. */
static pl_id *slot_of(const pl_names *n, const pl_graph *g, const char *name)
{
    size_t i = (size_t)hash(name) & (n->slot_count - 1);
    while (n->slot[i] != PL_NONE && strcmp(g->value[n->slot[i]].name, name) != 0) i = (i + 1) & (n->slot_count - 1);
    return &n->slot[i];
}

static pl_status resize(pl_names *n, const pl_graph *g, size_t slots, pl_error *err)
{
    pl_names larger = {.slot = pl_alloc(slots, sizeof *larger.slot), .slot_count = slots, .count = n->count};
    if (!larger.slot) return no_memory(err);
    memset(larger.slot, 0xff, slots * sizeof *larger.slot);
    for (size_t i = 0; i < n->slot_count; i++)
        if (n->slot[i] != PL_NONE) *slot_of(&larger, g, g->value[n->slot[i]].name) = n->slot[i];
    pl_names_deinit(n);
    *n = larger;
    return PL_OK;
}

pl_status pl_names_add(pl_names *n, const pl_graph *g, pl_id value, pl_error *err)
{
    if (2 * (n->count + 1) > n->slot_count) PL_TRY(resize(n, g, n->slot_count ? 2 * n->slot_count : SLOTS_MIN, err));
    pl_id *slot = slot_of(n, g, g->value[value].name);
    if (*slot != PL_NONE) return PL_OK;
    *slot = value;
    n->count++;
    return PL_OK;
}

pl_status pl_names_init(pl_names *n, const pl_graph *g, pl_error *err)
{
    pl_status status = PL_OK;
    *n = (pl_names){0};
    for (size_t i = 0; i < g->value_count && status == PL_OK; i++) status = pl_names_add(n, g, (pl_id)i, err);
    if (status != PL_OK) pl_names_deinit(n);
    return status;
}

pl_id pl_names_find(const pl_names *n, const pl_graph *g, const char *name)
{
    return n->slot_count ? *slot_of(n, g, name) : PL_NONE;
}

void pl_names_deinit(pl_names *n)
{
    pl_free(n->slot);
    *n = (pl_names){0};
}

/* Who holds the bytes: values grouped by the first parts of their scope. A model may have thousands of components, so
 * they are found through a hash table. */
#include "report/account.h"

#include <string.h>

pl_report_group pl_report_group_of(pl_role role)
{
    switch (role) {
    case PL_ROLE_WEIGHT:
    case PL_ROLE_AVERAGE:
        return PL_GROUP_WEIGHTS;
    case PL_ROLE_GRADIENT:
        return PL_GROUP_GRADIENTS;
    case PL_ROLE_OPTIMIZER:
        return PL_GROUP_OPTIMIZER;
    case PL_ROLE_SAVED:
    case PL_ROLE_TEMPORARY:
        return PL_GROUP_ACTIVATIONS;
    case PL_ROLE_WORKSPACE:
        return PL_GROUP_WORKSPACE;
    default:
        return PL_GROUP_OTHER;
    }
}

static size_t prefix_bytes(const char *scope, unsigned depth)
{
    size_t n = 0;
    for (; scope[n]; n++)
        if (scope[n] == '/' && --depth == 0) break;
    return n;
}

static uint32_t hash(const char *text, size_t bytes)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* The slot of this scope, or the free one where it belongs. */
static uint32_t *find_slot(pl_report_components *c, const char *scope, size_t bytes)
{
    size_t at = hash(scope, bytes) & (c->slot_count - 1);
    for (;; at = (at + 1) & (c->slot_count - 1)) {
        const pl_report_component *item = c->slot[at] ? &c->item[c->slot[at] - 1] : NULL;
        if (!item || (item->bytes == bytes && memcmp(item->scope, scope, bytes) == 0)) return &c->slot[at];
    }
}

static int grow_slots(pl_report_components *c)
{
    size_t count = c->slot_count ? 2 * c->slot_count : 64;
    uint32_t *slot = pl_alloc(count, sizeof *slot);
    if (!slot) return -1;
    pl_free(c->slot);
    c->slot = slot;
    c->slot_count = count;
    for (size_t i = 0; i < c->count; i++) *find_slot(c, c->item[i].scope, c->item[i].bytes) = (uint32_t)i + 1;
    return 0;
}

static pl_report_component *component_of(pl_report_components *c, const char *scope, unsigned depth)
{
    size_t bytes = prefix_bytes(scope, depth);
    if (2 * c->count >= c->slot_count && grow_slots(c)) return NULL;
    uint32_t *slot = find_slot(c, scope, bytes);
    if (*slot == 0) {
        if (pl_grow(&c->item, &c->capacity, c->count, sizeof *c->item)) return NULL;
        c->item[c->count++] = (pl_report_component){.scope = scope, .bytes = bytes};
        *slot = (uint32_t)c->count;
    }
    return &c->item[*slot - 1];
}

static int add(pl_report_components *c, const pl_plan *p, const pl_block *b, const char *scope, pl_role role,
               unsigned depth)
{
    if (!pl_report_is_alive(b, p->arena->peak_position)) return 0;
    pl_report_component *item = component_of(c, scope, depth);
    if (!item) return -1;
    item->group_bytes[pl_report_group_of(role)] += b->bytes;
    item->total_bytes += b->bytes;
    return 0;
}

pl_status pl_report_components_create(const pl_plan *p, unsigned depth, pl_report_components *c, pl_error *err)
{
    const pl_graph *g = p->graph;
    int refused = 0;
    *c = (pl_report_components){0};
    if (depth == 0) depth = 1;
    for (size_t i = 0; i < g->value_count && !refused; i++)
        refused = add(c, p, &p->value[i], g->value[i].scope, g->value[i].role, depth);
    for (size_t i = 0; i < g->node_count && !refused; i++)
        refused = add(c, p, &p->workspace[i], g->node[i].scope, PL_ROLE_WORKSPACE, depth);
    if (!refused) return PL_OK;
    pl_report_components_deinit(c);
    return pl_fail(err, PL_E_NOMEM, "no memory to group the plan's bytes by component");
}

void pl_report_components_deinit(pl_report_components *c)
{
    pl_free(c->item);
    pl_free(c->slot);
    *c = (pl_report_components){0};
}

#include "ir/components.h"

#include <string.h>

/* "block.3": so many bytes of it are its name; 0: it is not numbered. */
static size_t numbered(const char *part, size_t bytes)
{
    size_t digits = 0;
    while (digits < bytes && part[bytes - 1 - digits] >= '0' && part[bytes - 1 - digits] <= '9') digits++;
    const size_t dot = bytes - digits;
    return digits && dot > 1 && part[dot - 1] == '.' ? dot - 1 : 0;
}

const char *pl_component_name(const char *scope, size_t *bytes)
{
    for (;; scope += *bytes + 1) {
        *bytes = strcspn(scope, "/");
        const size_t name = numbered(scope, *bytes);
        if (!name) return scope;
        if (scope[*bytes]) continue;
        *bytes = name; /* there is no other part */
        return scope;
    }
}

static bool is_same(const pl_component *a, const pl_component *b)
{
    return a->phase == b->phase && a->bytes == b->bytes && memcmp(a->name, b->name, a->bytes) == 0;
}

static uint8_t find_or_add(pl_components *c, const pl_component *of)
{
    for (size_t i = 0; i < c->count; i++)
        if (is_same(&c->item[i], of)) return (uint8_t)i;
    if (c->count == PL_COMPONENTS_MAX) {
        c->item[c->count - 1] = (pl_component){.name = "others", .bytes = 6, .phase = PL_PHASE_FORWARD};
        return PL_COMPONENTS_MAX - 1;
    }
    c->item[c->count] = *of;
    return (uint8_t)c->count++;
}

/* Gradients begin as zeros before anything else is done, and are the backward pass's all the same. */
static pl_phase pass_of(const pl_graph *g, const pl_node *n)
{
    const pl_id result = pl_node_result(n);
    const bool zeroes = n->phase == PL_PHASE_FORWARD && result != PL_NONE && g->value[result].role == PL_ROLE_GRADIENT;
    return zeroes ? PL_PHASE_BACKWARD : n->phase;
}

static pl_component component_of(const pl_node *n, pl_phase pass)
{
    pl_component c = {.name = "update", .bytes = 6, .phase = pass};
    if (pass != PL_PHASE_UPDATE) c.name = pl_component_name(n->scope, &c.bytes);
    return c;
}

static void add_pass(const pl_graph *g, pl_id program, pl_phase pass, pl_components *c)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pass_of(g, n) != pass || pl_region_program(g, n->region) != program) continue;
        const pl_component of = component_of(n, pass);
        c->of[i] = find_or_add(c, &of);
    }
}

pl_status pl_components_create(const pl_graph *g, pl_id program, pl_components *c, pl_error *err)
{
    *c = (pl_components){.of = pl_alloc(g->node_count + 1, sizeof *c->of)};
    if (!c->of) return pl_fail(err, PL_E_NOMEM, "no memory for the components of the program");
    memset(c->of, PL_COMPONENT_NONE, g->node_count);
    for (int pass = 0; pass < PL_PHASE_COUNT && program != PL_NONE; pass++) add_pass(g, program, (pl_phase)pass, c);
    return PL_OK;
}

void pl_components_deinit(pl_components *c)
{
    pl_free(c->of);
    *c = (pl_components){0};
}

/* The bytes of a plan at its peak, by role. */
#include "report/account.h"

#include <inttypes.h>

#include "base/size.h"
#include "ir/properties.h"

const char *pl_report_role_title(pl_role role)
{
    static const char *const titles[PL_ROLE_COUNT] = {
        [PL_ROLE_WEIGHT] = "weights",
        [PL_ROLE_GRADIENT] = "gradients",
        [PL_ROLE_OPTIMIZER] = "optimizer state",
        [PL_ROLE_AVERAGE] = "averaged weights",
        [PL_ROLE_STATE] = "state",
        [PL_ROLE_SAVED] = "saved activations",
        [PL_ROLE_TEMPORARY] = "temporaries",
        [PL_ROLE_WORKSPACE] = "workspace",
        [PL_ROLE_INPUT] = "inputs",
        [PL_ROLE_OUTPUT] = "outputs",
        [PL_ROLE_STAGING] = "staging",
        [PL_ROLE_IO] = "I/O",
    };
    return titles[role];
}

bool pl_report_is_alive(const pl_block *b, uint64_t position)
{
    return b->bytes && b->space == PL_SPACE_RAM && b->first <= position && position < b->last;
}

static void add_block(pl_report_account *a, const pl_plan *p, const pl_block *b, pl_role role, bool persistent)
{
    if (!pl_report_is_alive(b, p->arena->peak_position)) return;
    a->role_bytes[role] += b->bytes;
    a->role_count[role]++;
    if (persistent) a->always_bytes[role] += b->bytes;
    a->alive_bytes += b->bytes;
    a->alignment_bytes += pl_align_up(b->bytes, PL_PLAN_ALIGNMENT) - b->bytes;
}

/* The row of the plan's arena; further arenas, of the loader say, are rows of their own. */
static size_t find_arena_row(const pl_process_planned *ledger)
{
    for (size_t i = 0; i < ledger->row_count; i++)
        if (ledger->row[i].kind == PL_MEMORY_ARENA) return i;
    return ledger->row_count;
}

static unsigned storage_of(const pl_value *v) { return v->encoding ? PL_DTYPE_COUNT + v->encoding : v->dtype; }

pl_report_account pl_report_sum(const pl_plan *p)
{
    const pl_graph *g = p->graph;
    pl_report_account a = {.arena_bytes = p->arena->bytes, .arena_row = find_arena_row(&p->ledger)};
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        add_block(&a, p, &p->value[i], v->role, v->program == PL_NONE);
        if (pl_report_is_alive(&p->value[i], p->arena->peak_position)) a.role_storage[v->role] |= 1u << storage_of(v);
    }
    for (size_t i = 0; i < g->node_count; i++) add_block(&a, p, &p->workspace[i], PL_ROLE_WORKSPACE, false);
    a.gap_bytes = p->arena->bytes - a.alive_bytes - a.alignment_bytes;
    if (a.arena_row < p->ledger.row_count)
        a.rounding_bytes = p->ledger.row[a.arena_row].resident_bytes - p->arena->bytes;
    for (size_t i = 0; i < p->disk_count; i++) a.disk_bytes += p->disk[i].bytes;
    return a;
}

/* 16 bits where some value of the program's own is of 16 bits. */
static pl_dtype precision_of(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_dtype dtype = g->value[i].dtype;
        if (g->value[i].program == program && (dtype == PL_DTYPE_BF16 || dtype == PL_DTYPE_F16)) return dtype;
    }
    return PL_DTYPE_F32;
}

pl_report_model pl_report_describe(const pl_plan *p)
{
    const pl_graph *g = p->graph;
    pl_report_model m = {.accumulation = 1};
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (v->role != PL_ROLE_WEIGHT || v->program != PL_NONE || pl_value_root(g, (pl_id)i) != i)
            continue; /* copies for a step are no parameters */
        m.parameters += pl_shape_elems(&v->shape);
        m.weights++;
        if (v->block > m.layers) m.layers = v->block;
    }
    pl_id train = pl_graph_find_trained(g);
    if (train == PL_NONE || p->batch == 0) return m;
    m.micro_batch = (uint64_t)g->region[train].batch;
    for (size_t i = 0; i < g->region_count; i++)
        if (g->region[i].parent == train && g->region[i].trip > m.accumulation) m.accumulation = g->region[i].trip;
    m.batch = p->batch;
    m.precision = precision_of(g, train);
    m.last = m.batch - (m.accumulation - 1) * m.micro_batch;
    return m;
}

void pl_report_batch(const pl_report_model *m, pl_str *out)
{
    if (m->batch == 0) return;
    if (m->last == m->micro_batch)
        pl_str_printf(out, "micro-batch %" PRIu64 " × accumulation %" PRIu64 " = batch %" PRIu64, m->micro_batch,
                      m->accumulation, m->batch);
    else
        pl_str_printf(out, "batch %" PRIu64 " in %" PRIu64 " micro-batches of %" PRIu64 ", the last with %" PRIu64,
                      m->batch, m->accumulation, m->micro_batch, m->last);
}

#include "matrix.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

typedef struct matrix_bit {
    uint32_t stage, node;
} matrix_bit;

static void toggle(uint64_t *row, uint32_t v) { row[v / 64] ^= UINT64_C(1) << (v % 64); }

static int64_t over_budget(const matrix *m, uint32_t t)
{
    int64_t peak = m->stage[t].base + m->stage[t].rise;
    return peak > m->g->budget ? peak - m->g->budget : 0;
}

/* What of `entry` is needed or stays; the rest is freed as the stage begins, if it was resident at all. */
static bool stays(const matrix *m, uint32_t t, uint32_t v) { return m->g->keep[v] || matrix_wants(m, t + 1, v); }

/* ---- one stage from scratch ---- */

/* What must run, into m->runs from last to first; `touched` gets it and all that it reads. Remembers the last reader of
 * each. */
static uint32_t find_runs(matrix *m, uint32_t t)
{
    const recompute_graph *g = m->g;
    uint64_t *touched = matrix_row(m, m->touched, t);
    const uint64_t *entry = matrix_row(m, m->entry, t);
    uint32_t target = m->node_at[t], count = 0;
    memset(touched, 0, m->words * sizeof *touched);
    toggle(touched, target);
    m->last_reader[target] = target;
    for (uint32_t w = target / 64 + 1; w-- > 0;) {
        uint64_t below = ~UINT64_C(0); /* bits not yet looked at */
        for (uint64_t todo; (todo = touched[w] & ~entry[w] & below) != 0;) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(todo), v = 64 * w + bit;
            below = (UINT64_C(1) << bit) - 1;
            m->runs[count++] = v;
            for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
                uint32_t d = g->dep[k];
                if (matrix_has(touched, d)) continue;
                toggle(touched, d);
                m->last_reader[d] = v;
            }
        }
    }
    return count;
}

/* Bytes resident as the stage begins, less what is neither read in it nor wanted behind it. */
static int64_t find_base(const matrix *m, uint32_t t)
{
    const uint64_t *entry = matrix_row(m, m->entry, t), *touched = matrix_row(m, m->touched, t);
    const uint64_t *next = matrix_row(m, m->wanted, t + 1);
    int64_t base = m->g->fixed + m->stage[t].held;
    for (uint32_t w = 0; w < m->words; w++)
        for (uint64_t rest = entry[w] & ~(touched[w] | next[w] | m->kept[w]); rest; rest &= rest - 1)
            base -= m->g->size[64 * w + (uint32_t)__builtin_ctzll(rest)];
    return base;
}

static void count_steps(matrix *m, uint64_t steps)
{
    if (m->run) m->cut |= recompute_run_step(m->run, steps);
}

static void run_stage(matrix *m, uint32_t t)
{
    const recompute_graph *g = m->g;
    uint32_t count = find_runs(m, t);
    uint64_t reads = 0;
    int64_t held = 0, rise = 0;
    double cost = 0;
    for (uint32_t r = count; r-- > 0;) {
        uint32_t v = m->runs[r];
        cost += g->cost[v];
        if (held + g->size[v] + g->work[v] > rise) rise = held + g->size[v] + g->work[v];
        held += g->size[v];
        reads += g->dep_begin[v + 1] - g->dep_begin[v];
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            uint32_t d = g->dep[k];
            if (m->last_reader[d] == v && !stays(m, t, d)) held -= g->size[d];
        }
    }
    m->stage[t].cost = cost;
    m->stage[t].rise = rise;
    m->stage[t].base = find_base(m, t);
    m->visits += 40 + 2 * m->words + 30 * (uint64_t)count;
    count_steps(m, 40 + 4 * m->words + 10 * (uint64_t)count + 2 * reads);
}

/* ---- what a change does to the stages ---- */

static pl_status toggle_entry(matrix *m, uint32_t t, uint32_t v, pl_error *err)
{
    uint64_t *row = matrix_row(m, m->entry, t);
    if (pl_grow(&m->toggled, &m->toggled_capacity, m->toggled_count, sizeof *m->toggled))
        return pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", m->count);
    m->toggled[m->toggled_count++] = (matrix_bit){t, v};
    toggle(row, v);
    if (t < m->count) m->stage[t].held += matrix_has(row, v) ? m->g->size[v] : -m->g->size[v];
    return PL_OK;
}

/* A stage that does not touch v: is v there, and wanted behind it? */
static pl_status pass_on(matrix *m, uint32_t t, uint32_t v, uint32_t *next_count, pl_error *err)
{
    bool now = matrix_enters(m, t, v) && stays(m, t, v);
    if (now == matrix_enters(m, t + 1, v)) return PL_OK;
    m->stage[t].base += now ? m->g->size[v] : -m->g->size[v];
    m->differs_next[(*next_count)++] = v;
    return toggle_entry(m, t + 1, v, err);
}

static bool flips_row(const matrix_flip *f, uint32_t stage) { return f->first <= stage && stage < f->last; }

static pl_status visit_quickly(matrix *m, uint32_t t, const matrix_change *change, uint32_t *next_count, pl_error *err)
{
    for (uint32_t k = 0; k < m->differs_count; k++) PL_TRY(pass_on(m, t, m->differs[k], next_count, err));
    for (uint32_t k = 0; k < change->count; k++)
        if (flips_row(&change->flips[k], t + 1)) PL_TRY(pass_on(m, t, change->flips[k].node, next_count, err));
    m->visits += 8 + 4 * (m->differs_count + change->count);
    count_steps(m, 8 + 4 * (m->differs_count + change->count));
    return PL_OK;
}

static pl_status visit_anew(matrix *m, uint32_t t, uint32_t *next_count, pl_error *err)
{
    uint64_t *touched = matrix_row(m, m->touched, t);
    const uint64_t *entry = matrix_row(m, m->entry, t), *wanted = matrix_row(m, m->wanted, t + 1);
    memcpy(matrix_row(m, m->old_touched, (uint32_t)m->redone_count), touched, m->words * sizeof *touched);
    m->redone[m->redone_count++] = t;
    run_stage(m, t);
    for (uint32_t w = 0; w < m->words; w++) {
        uint64_t leaves = (entry[w] | touched[w]) & (wanted[w] | m->kept[w]);
        uint64_t differ = leaves ^ matrix_row(m, m->entry, t + 1)[w];
        for (; differ; differ &= differ - 1) {
            uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(differ);
            m->differs_next[(*next_count)++] = v;
            PL_TRY(toggle_entry(m, t + 1, v, err));
        }
    }
    return PL_OK;
}

static bool is_touched(const matrix *m, uint32_t t, const matrix_change *change)
{
    const uint64_t *touched = matrix_row(m, m->touched, t);
    if (change->swapped != RECOMPUTE_NO_NODE && (t == change->swapped || t == change->swapped + 1)) return true;
    for (uint32_t k = 0; k < m->differs_count; k++)
        if (matrix_has(touched, m->differs[k])) return true;
    for (uint32_t k = 0; k < change->count; k++)
        if (flips_row(&change->flips[k], t + 1) && matrix_has(touched, change->flips[k].node)) return true;
    return false;
}

static pl_status visit(matrix *m, uint32_t t, const matrix_change *change, pl_error *err)
{
    uint32_t next_count = 0;
    m->old_stage[t] = m->stage[t];
    m->old_stage[t].held = 0; /* comes back with the entry bits */
    m->cost -= m->stage[t].cost;
    m->over -= over_budget(m, t);
    PL_TRY(is_touched(m, t, change) ? visit_anew(m, t, &next_count, err)
                                    : visit_quickly(m, t, change, &next_count, err));
    m->cost += m->stage[t].cost;
    m->over += over_budget(m, t);
    uint32_t *swap = m->differs;
    m->differs = m->differs_next;
    m->differs_next = swap;
    m->differs_count = next_count;
    return PL_OK;
}

/* ---- changes ---- */

static void turn_round(matrix *m, const matrix_change *change)
{
    for (uint32_t k = 0; k < change->count; k++) {
        const matrix_flip *f = &change->flips[k];
        for (uint32_t t = f->first; t < f->last; t++) toggle(matrix_row(m, m->wanted, t), f->node);
    }
    if (change->swapped == RECOMPUTE_NO_NODE) return;
    uint32_t *pair = m->node_at + change->swapped, first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
    m->stage_of[pair[0]] = change->swapped;
    m->stage_of[pair[1]] = change->swapped + 1;
}

pl_status matrix_apply(matrix *m, const matrix_change *change, pl_error *err)
{
    uint32_t first = m->count, behind = 0;
    if (change->swapped != RECOMPUTE_NO_NODE) {
        first = change->swapped;
        behind = change->swapped + 2;
    }
    for (uint32_t k = 0; k < change->count; k++) {
        const matrix_flip *f = &change->flips[k];
        uint32_t before = f->first > 0 ? f->first - 1 : 0; /* where it begins to be held, or not */
        if (before < first) first = before;
        if (f->last > behind + 1) behind = f->last - 1;
    }
    m->redone_count = m->toggled_count = 0;
    m->differs_count = 0;
    m->first_visited = m->end_visited = first;
    m->old_cost = m->cost;
    m->old_over = m->over;
    turn_round(m, change);
    for (uint32_t t = first; t < m->count && (m->differs_count > 0 || t < behind) && !m->cut; t++) {
        PL_TRY(visit(m, t, change, err));
        m->end_visited = t + 1;
    }
    return PL_OK;
}

void matrix_undo(matrix *m, const matrix_change *change)
{
    turn_round(m, change); /* turned round twice is as before */
    for (size_t k = m->toggled_count; k-- > 0;) {
        matrix_bit bit = m->toggled[k];
        uint64_t *row = matrix_row(m, m->entry, bit.stage);
        toggle(row, bit.node);
        if (bit.stage < m->count)
            m->stage[bit.stage].held += matrix_has(row, bit.node) ? m->g->size[bit.node] : -m->g->size[bit.node];
    }
    for (uint32_t t = m->first_visited; t < m->end_visited; t++) {
        int64_t held = m->stage[t].held;
        m->stage[t] = m->old_stage[t];
        m->stage[t].held = held;
    }
    for (size_t k = 0; k < m->redone_count; k++)
        memcpy(matrix_row(m, m->touched, m->redone[k]), matrix_row(m, m->old_touched, (uint32_t)k),
               m->words * sizeof *m->touched);
    m->cost = m->old_cost;
    m->over = m->old_over;
}

/* ---- from and to sequences ---- */

/* Lives of the sequence into `wanted`: from the computation of an instance to its last use, over the stages whose
 * beginning lies between. born: by node, the stage of the latest instance + 1. */
static void want_lives(matrix *m, const recompute_sequence *s, uint32_t *latest_stage)
{
    const recompute_graph *g = m->g;
    uint32_t stage = 0;
    for (uint32_t v = 0; v < m->count; v++) m->stage_of[v] = RECOMPUTE_NO_NODE;
    for (size_t i = 0; i < s->count && !m->cut; i++) {
        uint32_t v = s->node[i];
        count_steps(m, 2 + g->dep_begin[v + 1] - g->dep_begin[v]);
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            uint32_t d = g->dep[k];
            while (latest_stage[d] < stage) {
                uint64_t *row = matrix_row(m, m->wanted, ++latest_stage[d]);
                if (!matrix_has(row, d)) toggle(row, d);
            }
        }
        latest_stage[v] = stage;
        if (m->stage_of[v] != RECOMPUTE_NO_NODE) continue;
        m->stage_of[v] = stage;
        m->node_at[stage++] = v;
    }
}

/* What leaves stage t and enters the next. */
static void enter_next(matrix *m, uint32_t t)
{
    uint64_t *next = matrix_row(m, m->entry, t + 1);
    int64_t held = 0;
    for (uint32_t w = 0; w < m->words; w++) {
        next[w] = (matrix_row(m, m->entry, t)[w] | matrix_row(m, m->touched, t)[w]) &
                  (matrix_row(m, m->wanted, t + 1)[w] | m->kept[w]);
        for (uint64_t rest = next[w]; rest; rest &= rest - 1)
            held += m->g->size[64 * w + (uint32_t)__builtin_ctzll(rest)];
    }
    if (t + 1 < m->count) m->stage[t + 1].held = held;
}

void matrix_refresh(matrix *m)
{
    memset(m->entry, 0, m->words * sizeof *m->entry);
    m->stage[0].held = 0;
    m->cost = 0;
    m->over = 0;
    for (uint32_t t = 0; t < m->count && !m->cut; t++) {
        run_stage(m, t);
        enter_next(m, t);
        m->cost += m->stage[t].cost;
        m->over += over_budget(m, t);
    }
}

pl_status matrix_load(matrix *m, const recompute_sequence *s, pl_error *err)
{
    const recompute_graph *g = m->g;
    uint32_t *latest_stage = pl_alloc(m->count, sizeof *latest_stage);
    if (!latest_stage) return pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", m->count);
    memset(m->wanted, 0, (m->count + 1) * m->words * sizeof *m->wanted);
    want_lives(m, s, latest_stage);
    pl_free(latest_stage);
    matrix_refresh(m);
    for (uint32_t v = 0; v < m->count; v++) {
        m->last_stage[v] = m->stage_of[v];
        for (uint32_t k = g->use_begin[v]; k < g->use_begin[v + 1]; k++)
            if (m->stage_of[g->use[k]] > m->last_stage[v]) m->last_stage[v] = m->stage_of[g->use[k]];
    }
    return PL_OK;
}

pl_status matrix_sequence(matrix *m, recompute_sequence *s, pl_error *err)
{
    s->count = 0;
    for (uint32_t t = 0; t < m->count; t++)
        for (uint32_t w = 0; w < m->words; w++) {
            uint64_t runs = matrix_row(m, m->touched, t)[w] & ~matrix_row(m, m->entry, t)[w];
            for (; runs; runs &= runs - 1)
                if (recompute_sequence_append(s, 64 * w + (uint32_t)__builtin_ctzll(runs)))
                    return pl_fail(err, PL_E_NOMEM, "no memory for a schedule of %zu computations", s->count);
        }
    return PL_OK;
}

pl_status matrix_init(matrix *m, const recompute_graph *g, pl_error *err)
{
    size_t n = g->count, words = (n + 63) / 64, row = words * sizeof *m->wanted;
    *m = (matrix){.g = g, .count = g->count, .words = (uint32_t)words};
    m->node_at = pl_alloc(n, sizeof *m->node_at);
    m->stage_of = pl_alloc(n, sizeof *m->stage_of);
    m->last_stage = pl_alloc(n, sizeof *m->last_stage);
    m->wanted = pl_alloc(n + 1, row);
    m->entry = pl_alloc(n + 1, row);
    m->touched = pl_alloc(n, row);
    m->old_touched = pl_alloc(n, row);
    m->kept = pl_alloc(1, row);
    m->stage = pl_alloc(n, sizeof *m->stage);
    m->old_stage = pl_alloc(n, sizeof *m->old_stage);
    m->redone = pl_alloc(n, sizeof *m->redone);
    m->differs = pl_alloc(n, sizeof *m->differs);
    m->differs_next = pl_alloc(n, sizeof *m->differs_next);
    m->last_reader = pl_alloc(n, sizeof *m->last_reader);
    m->runs = pl_alloc(n, sizeof *m->runs);
    if (!m->node_at || !m->stage_of || !m->last_stage || !m->wanted || !m->entry || !m->touched || !m->old_touched ||
        !m->kept || !m->stage || !m->old_stage || !m->redone || !m->differs || !m->differs_next || !m->last_reader ||
        !m->runs)
        return pl_fail(err, PL_E_NOMEM, "no memory to plan %zu nodes", n);
    for (uint32_t v = 0; v < n; v++)
        if (g->keep[v]) toggle(m->kept, v);
    return PL_OK;
}

void matrix_deinit(matrix *m)
{
    pl_free(m->node_at);
    pl_free(m->stage_of);
    pl_free(m->last_stage);
    pl_free(m->wanted);
    pl_free(m->entry);
    pl_free(m->touched);
    pl_free(m->old_touched);
    pl_free(m->kept);
    pl_free(m->stage);
    pl_free(m->old_stage);
    pl_free(m->redone);
    pl_free(m->differs);
    pl_free(m->differs_next);
    pl_free(m->last_reader);
    pl_free(m->runs);
    pl_free(m->toggled);
    *m = (matrix){0};
}

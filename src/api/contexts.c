/* A pretrained model in contexts of several lengths: what a person asks who does not know yet which one fits. Each is
 * planned by the planner itself. Nothing is measured: times follow from what the calibration knows of such kernels and
 * of this machine, else from the instruction set and the clock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/compile.h"
#include "base/alloc.h"
#include "base/machine_file.h"
#include "base/process.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "config/schema.h"
#include "ir/op.h"
#include "report/account.h"
#include "systems/system.h"

enum { PROMPT = 512 };

typedef struct looking {
    const pl_config *config;
    const char *cache_folder; /* of the calibration; NULL: none is kept */
    const pl_plan *plan;
    pl_rates rates;
    pl_contexts *c;
} looking;

/* ---- times ---- */

/* What products reach of these rates, and what a call takes besides. With 0.7, SmolLM2-135M in blocks of 4 bits is
 * predicted to about a tenth of what was measured: 110 tokens a second, 900 of a prompt (2 threads, AVX-512). */
#define REACHED      0.7
#define CALL_SECONDS 3e-6

/* That team's part of what all cores of a described machine were measured to do. */
static bool take_described(looking *l)
{
    const pl_machine_file *m = pl_machine_described();
    if (!m || !(m->f32_operations > 0) || !(m->memory_bytes > 0)) return false;
    const double part = fmin(1, (double)l->plan->team.threads / m->machine.cores);
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++) l->rates.operations[what] = part * m->f32_operations;
    if (m->bf16_operations > 0) l->rates.operations[PL_ARITHMETIC_BF16] = part * m->bf16_operations;
    l->rates.bytes = m->memory_bytes;
    return true;
}

/* That were measured here. */
static pl_status recall_rates(looking *l, bool *is_known, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_calibration *known;
    const pl_calibration_options o = {.team = l->plan->team};
    const char *folder = l->cache_folder;
    if (!folder || pl_machine_described()) return PL_OK;
    PL_TRY(pl_calibration_path(path, sizeof path, folder, err));
    PL_TRY(pl_calibration_open(path, &o, &known, err));
    *is_known = pl_calibration_recall_rates(known);
    l->rates = pl_calibration_rates(known);
    pl_calibration_close(known);
    return PL_OK;
}

static pl_status find_rates(looking *l, const pl_machine *m, pl_error *err)
{
    const pl_team team = l->plan->team;
    bool is_known = take_described(l);
    PL_TRY(recall_rates(l, &is_known, err));
    if (!is_known) l->rates = pl_rates_guess(team, m->hertz);
    if (is_known)
        snprintf(l->c->basis, sizeof l->c->basis, "estimated from the rates that were measured on %s machine",
                 pl_machine_described() ? "that" : "this");
    else
        snprintf(l->c->basis, sizeof l->c->basis, "estimated from the instruction set (%s, %d thread%s)",
                 pl_isa_name(team.isa), team.threads, pl_plural((uint64_t)team.threads));
    return PL_OK;
}

static double node_seconds(const looking *l, const pl_graph *g, const pl_node *n)
{
    const pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    const double computing = cost.flops / l->rates.operations[pl_node_arithmetic(g, n)];
    return pl_op_is_outside(n->op) ? 0 : fmax(computing, cost.bytes / l->rates.bytes) / REACHED + CALL_SECONDS;
}

/* One run of the program. */
static double seconds_of(const looking *l, const pl_plan *p, const char *program)
{
    const pl_graph *g = p->graph;
    const pl_id of = pl_graph_find_program(g, program);
    double total = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->node[i].dead && pl_region_program(g, g->node[i].region) == of)
            total += node_seconds(l, g, &g->node[i]) * (double)pl_node_trips(g, &g->node[i]);
    return total;
}

/* That a program takes at once. */
static double tokens_of(const pl_plan *p, const char *input)
{
    return (double)pl_shape_elems(&p->graph->value[pl_graph_find_value(p->graph, input)].shape);
}

/* All tokens but the last go through "prefill", as many at a time as it takes; after the last the first new one is
 * there. */
static double prompt_seconds(const looking *l, const pl_plan *p, uint64_t tokens)
{
    return seconds_of(l, p, "prefill") * ceil((double)(tokens - 1) / tokens_of(p, "prefill.tokens")) +
           seconds_of(l, p, "generate");
}

/* ---- rows ---- */

static bool has_budget(const pl_config *c)
{
    return c->memory.budget != PL_CONFIG_BYTES_AUTO && c->memory.budget != PL_CONFIG_BYTES_NONE;
}

static bool fits(const looking *l, const pl_plan *p)
{
    pl_error ignored = {0};
    if (has_budget(l->config) && pl_plan_charged_bytes(p) > l->config->memory.budget) return false;
    return pl_plan_check_machine(p, &ignored) == PL_OK;
}

static void add_row(looking *l, const pl_plan *p, uint64_t length)
{
    pl_contexts *c = l->c;
    const pl_report_account a = pl_report_sum(p);
    pl_context *row = &c->row[c->count++];
    *row = (pl_context){.length = length,
                        .weight_bytes = a.role_bytes[PL_ROLE_WEIGHT],
                        .cache_bytes = a.role_bytes[PL_ROLE_STATE],
                        .charged_bytes = pl_plan_charged_bytes(p),
                        .item_seconds = seconds_of(l, p, "generate") / tokens_of(p, "generate.tokens")};
    row->other_bytes = a.arena_bytes - row->weight_bytes - row->cache_bytes;
    row->fits = fits(l, p);
    if (c->prompt) return;
    c->prompt = length < PROMPT ? length : PROMPT;
    c->prompt_seconds = prompt_seconds(l, p, c->prompt);
}

/* As the plan would be with that context and no budget. */
static pl_status plan_row(looking *l, uint64_t length, pl_error *err)
{
    char text[24];
    pl_plan *plan = NULL;
    const pl_compile_options o = {.command = l->plan->command, .unmeasured = true, .quick = true};
    pl_config *c = pl_config_copy(l->config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to plan for other contexts");
    snprintf(text, sizeof text, "%llu", (unsigned long long)length);
    pl_status status = pl_config_set(c, "model.context", text, "the table of contexts", err);
    if (status == PL_OK) status = pl_config_set(c, "memory.budget", "none", "the table of contexts", err);
    if (status == PL_OK) status = pl_compile(c, &o, NULL, &plan, err);
    if (status == PL_OK) add_row(l, plan, length);
    pl_plan_destroy(plan);
    pl_config_destroy(c);
    return status == PL_E_BUDGET ? PL_OK : status; /* too long for any machine: no row */
}

static pl_status add_rows(looking *l, pl_error *err)
{
    const uint64_t own = l->plan->context;
    static const uint64_t lengths[] = {512, 2048, 8192, 32768, 131072};
    bool has_own = false;
    for (size_t i = 0; i <= sizeof lengths / sizeof *lengths; i++) {
        const uint64_t next = i < sizeof lengths / sizeof *lengths ? lengths[i] : UINT64_MAX;
        if (!has_own && own <= next) {
            has_own = true;
            l->c->own = l->c->count;
            add_row(l, l->plan, own);
        }
        if (next != own && next <= l->plan->context_most) PL_TRY(plan_row(l, next, err));
    }
    return PL_OK;
}

static void find_room(const pl_config *config, const pl_machine *m, pl_contexts *c)
{
    const pl_machine_ceiling ceiling = pl_machine_find_ceiling(m);
    c->room_bytes = has_budget(config) ? config->memory.budget : ceiling.bytes;
    c->room = has_budget(config) ? "the budget" : ceiling.bound_by;
}

static pl_status look(looking *l, pl_error *err)
{
    pl_machine machine;
    PL_TRY(pl_machine_planned(&machine, err));
    find_room(l->config, &machine, l->c);
    PL_TRY(find_rates(l, &machine, err));
    return add_rows(l, err);
}

pl_status pl_look_at_contexts(const pl_config *config, const char *cache_folder, pl_plan *plan, pl_error *err)
{
    looking l = {.config = config, .cache_folder = cache_folder, .plan = plan, .c = pl_alloc(1, sizeof *l.c)};
    if (!l.c) return pl_fail(err, PL_E_NOMEM, "no memory for the table of contexts");
    const pl_status status = look(&l, err);
    if (status == PL_OK)
        plan->contexts = l.c;
    else
        pl_free(l.c);
    /* In a small container there may be no room for it: a plan without the table is a plan. */
    return status == PL_E_NOMEM && pl_process_fence_left() != UINT64_MAX ? PL_OK : status;
}

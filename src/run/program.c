#include "run/program.h"

#include <time.h>

typedef enum instruction_kind { RUN_CALL, BEGIN_REGION, END_REGION } instruction_kind;

typedef struct instruction {
    instruction_kind kind;
    uint32_t index; /* call: node; begin: where its end is; end: where its begin is */
    uint64_t trip;  /* of the region */
} instruction;

struct pl_program {
    const pl_plan *plan;
    unsigned char *base[PL_SPACES_MAX];
    uint64_t *offset; /* [values] of storage roots */
    pl_call *call;    /* [nodes] */
    bool *moves;      /* [nodes] uses a tile: its addresses are those of the trip, so it is bound anew in each */
    instruction *code;
    size_t code_count;
    size_t *entry; /* [regions] where a program begins in code; one past its end in `leave` */
    size_t *leave;
};

void pl_program_destroy(pl_program *p)
{
    if (!p) return;
    pl_free(p->offset);
    pl_free(p->call);
    pl_free(p->moves);
    pl_free(p->code);
    pl_free(p->entry);
    pl_free(p->leave);
    pl_free(p);
}

static pl_addresses addresses_of(const pl_program *p)
{
    pl_addresses a = {.offset = p->offset};
    for (int k = 0; k < PL_SPACES_MAX; k++) a.base[k] = p->base[k];
    return a;
}

static pl_status bind_calls(pl_program *p, pl_error *err)
{
    const pl_graph *g = p->plan->graph;
    pl_addresses addresses = addresses_of(p);
    for (size_t i = 0; i < g->value_count; i++) p->offset[i] = p->plan->value[i].offset;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_block *b = &p->plan->workspace[i];
        void *workspace = b->bytes ? p->base[b->space] + b->offset : NULL;
        PL_TRY(pl_backend_bind(g, &g->node[i], &addresses, workspace, &p->call[i], err));
        p->moves[i] = pl_node_uses_tile(g, &g->node[i]);
    }
    return PL_OK;
}

static void emit(pl_program *p, instruction_kind kind, uint32_t index, uint64_t trip)
{
    p->code[p->code_count++] = (instruction){kind, index, trip};
}

static unsigned depth_of(const pl_graph *g, pl_id region)
{
    unsigned depth = 0;
    for (; g->region[region].parent != PL_NONE; region = g->region[region].parent) depth++;
    return depth;
}

/* Opens and closes regions so that `to` is the innermost open one. */
static void change_region(pl_program *p, pl_id *open, unsigned *depth, pl_id to)
{
    const pl_graph *g = p->plan->graph;
    pl_id path[PL_REGION_DEPTH_MAX];
    unsigned wanted = depth_of(g, to), common = 0;
    for (unsigned i = wanted; i > 0; i--, to = g->region[to].parent) path[i - 1] = to;
    while (common < wanted && common < *depth && p->code[open[common]].index == path[common]) common++;
    while (*depth > common) {
        uint32_t begin = (uint32_t)open[--*depth];
        emit(p, END_REGION, begin, p->code[begin].trip);
        p->code[begin].index = (uint32_t)p->code_count - 1;
    }
    while (*depth < wanted) {
        open[*depth] = (pl_id)p->code_count;
        emit(p, BEGIN_REGION, path[*depth], g->region[path[*depth]].trip);
        ++*depth;
    }
}

static pl_status emit_program(pl_program *p, pl_id program, pl_error *err)
{
    const pl_graph *g = p->plan->graph;
    pl_id open[PL_REGION_DEPTH_MAX];
    unsigned depth = 0;
    p->entry[program] = p->code_count;
    for (size_t i = 0; i < g->node_count; i++) {
        if (pl_region_program(g, g->node[i].region) != program) continue;
        if (depth_of(g, g->node[i].region) > PL_REGION_DEPTH_MAX)
            return pl_fail(err, PL_E_UNSUPPORTED, "regions are nested deeper than %d", PL_REGION_DEPTH_MAX);
        change_region(p, open, &depth, g->node[i].region);
        emit(p, RUN_CALL, (uint32_t)i, 1);
    }
    change_region(p, open, &depth, program);
    p->leave[program] = p->code_count;
    return PL_OK;
}

static pl_status check_memory(const pl_plan *plan, const pl_program_memory *m, pl_error *err)
{
    for (uint32_t k = 0; k < plan->graph->space_count; k++)
        if (m[k].bytes < plan->arena[k].bytes || (uintptr_t)m[k].base % PL_PLAN_ALIGNMENT)
            return pl_fail(err, PL_E_USAGE, "the plan needs %llu bytes of %s aligned to %d, got %llu",
                           (unsigned long long)plan->arena[k].bytes, plan->graph->space[k], PL_PLAN_ALIGNMENT,
                           (unsigned long long)m[k].bytes);
    return PL_OK;
}

pl_status pl_program_create(const pl_plan *plan, void *memory, uint64_t bytes, pl_program **program, pl_error *err)
{
    const pl_program_memory ram[PL_SPACES_MAX] = {{memory, bytes}};
    return pl_program_create_in(plan, ram, program, err);
}

pl_status pl_program_create_nowhere(const pl_plan *plan, pl_program **program, pl_error *err)
{
    pl_program_memory nowhere[PL_SPACES_MAX];
    for (pl_id k = 0; k < PL_SPACES_MAX; k++)
        nowhere[k] = (pl_program_memory){(void *)(uintptr_t)PL_PLAN_ALIGNMENT, UINT64_MAX};
    return pl_program_create_in(plan, nowhere, program, err);
}

pl_status pl_program_create_in(const pl_plan *plan, const pl_program_memory memory[PL_SPACES_MAX], pl_program **program,
                               pl_error *err)
{
    const pl_graph *g = plan->graph;
    PL_TRY(check_memory(plan, memory, err));
    pl_status status = PL_OK;
    pl_program *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory for the program");
    p->plan = plan;
    for (int k = 0; k < PL_SPACES_MAX; k++) p->base[k] = memory[k].base;
    p->offset = pl_alloc(g->value_count + 1, sizeof *p->offset);
    p->call = pl_alloc(g->node_count + 1, sizeof *p->call);
    p->moves = pl_alloc(g->node_count + 1, sizeof *p->moves);
    p->code = pl_alloc(g->node_count + 2 * g->region_count + 1,
                       sizeof *p->code); /* a region is one stretch: opened and closed once */
    p->entry = pl_alloc(g->region_count + 1, sizeof *p->entry);
    p->leave = pl_alloc(g->region_count + 1, sizeof *p->leave);
    if (!p->offset || !p->call || !p->moves || !p->code || !p->entry || !p->leave)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the program"));
    PL_TRY_DONE(bind_calls(p, err));
    for (size_t r = 0; r < g->region_count; r++)
        if (g->region[r].parent == PL_NONE) PL_TRY_DONE(emit_program(p, (pl_id)r, err));
    *program = p;
    return PL_OK;
done:
    pl_program_destroy(p);
    return status;
}

/* The clock should never go back, but some do all the same (libfaketime's, a machine that was put back to an earlier
 * state): then it goes on from where it was, so that no rate, no time and no interval is negative. Each thread has a
 * clock of its own, so that two runs in one process do not put each other's on. */
double pl_run_now(void)
{
    static _Thread_local int64_t last, behind;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + behind;
    if (now < last) {
        behind += last - now;
        now = last;
    }
    last = now;
    return 1e-9 * (double)now;
}

/* Asks for no memory: a call is a plain value. */
static pl_status move(pl_program *p, uint32_t node, uint64_t iteration, pl_error *err)
{
    pl_addresses addresses = addresses_of(p);
    addresses.trip = iteration;
    const pl_graph *g = p->plan->graph;
    return pl_backend_bind(g, &g->node[node], &addresses, p->call[node].workspace, &p->call[node], err);
}

static pl_status exec(const pl_program *p, const pl_call *call, const pl_trips *trips, const pl_program_hooks *h,
                      pl_error *err)
{
    if (call->op == PL_OP_LOAD) return h->load ? h->load(h->context, trips, &call->u.load, err) : PL_OK;
    if (call->op == PL_OP_STORE && call->predicate && *call->predicate == 0) return PL_OK;
    if (call->op == PL_OP_STORE) return h->store ? h->store(h->context, trips, &call->u.store, err) : PL_OK;
    pl_backend_exec(call, p->plan->team);
    return PL_OK;
}

static pl_status run_call(pl_program *p, uint32_t node, const pl_trips *trips, const pl_program_hooks *hooks,
                          pl_error *err)
{
    const pl_call *call = &p->call[node];
    bool timed = hooks->seconds || hooks->timed;
    if (hooks->clock) pl_run_clock_enter(hooks->clock, node);
    double begin = timed ? pl_run_now() : 0;
    if (p->moves[node]) PL_TRY(move(p, node, pl_trips_last(trips), err));
    if (hooks->begins) hooks->begins(hooks->context, node);
    PL_TRY(exec(p, call, trips, hooks, err));
    if (!timed) return PL_OK;
    double end = pl_run_now();
    if (hooks->seconds) hooks->seconds[node] += end - begin;
    return hooks->timed ? hooks->timed(hooks->context, node, begin, end, err) : PL_OK;
}

pl_status pl_program_run(pl_program *p, pl_id program, const pl_program_hooks *hooks, pl_error *err)
{
    pl_trips trips = {0};
    if (hooks->clock) pl_run_clock_begin(hooks->clock);
    for (size_t i = p->entry[program]; i < p->leave[program]; i++) {
        const instruction *in = &p->code[i];
        switch (in->kind) {
        case RUN_CALL:
            PL_TRY(run_call(p, in->index, &trips, hooks, err));
            break;
        case BEGIN_REGION:
            trips.trip[trips.depth++] = 0;
            break;
        case END_REGION:
            if (hooks->trip) hooks->trip(hooks->context);
            if (++trips.trip[trips.depth - 1] < (hooks->single_trip ? 1 : in->trip))
                i = in->index;
            else
                trips.depth--;
            break;
        }
    }
    if (hooks->clock) pl_run_clock_leave(hooks->clock);
    return PL_OK;
}

uint64_t pl_program_count_trips(const pl_program *p, pl_id program)
{
    uint64_t trips = 0, times = 1;
    for (size_t i = p->entry[program]; i < p->leave[program]; i++) {
        const instruction *in = &p->code[i];
        if (in->kind == BEGIN_REGION) trips += times *= in->trip;
        if (in->kind == END_REGION) times /= in->trip;
    }
    return trips;
}

static void print_call(const pl_program *p, uint32_t node, pl_str *out)
{
    const pl_graph *g = p->plan->graph;
    const pl_node *n = &g->node[node];
    pl_str_printf(out, "call %u %s", node, pl_op_name(n->op));
    for (int side = 0; side < 2; side++) {
        const pl_id *id = side ? n->out : n->in;
        pl_str_append(out, side ? " out" : " in");
        for (int k = 0; k < (side ? PL_NODE_OUT_MAX : PL_NODE_IN_MAX); k++)
            if (id[k] != PL_NONE)
                pl_str_printf(out, " +%llu",
                              (unsigned long long)((unsigned char *)pl_program_address(p, id[k]) -
                                                   p->base[p->plan->graph->value[id[k]].space]));
    }
    if (p->plan->workspace[node].bytes)
        pl_str_printf(out, " workspace +%llu", (unsigned long long)p->plan->workspace[node].offset);
    pl_str_printf(out, " scope %s\n", n->scope);
}

void pl_program_print(const pl_program *p, pl_str *out)
{
    for (size_t r = 0; r < p->plan->graph->region_count; r++) {
        if (p->plan->graph->region[r].parent != PL_NONE) continue;
        pl_str_printf(out, "program %s\n", p->plan->graph->region[r].name);
        for (size_t i = p->entry[r]; i < p->leave[r]; i++) {
            const instruction *in = &p->code[i];
            if (in->kind == RUN_CALL)
                print_call(p, in->index, out);
            else
                pl_str_printf(out, "%s %llu times\n", in->kind == BEGIN_REGION ? "begin" : "end",
                              (unsigned long long)in->trip);
        }
    }
}

void *pl_program_address(const pl_program *p, pl_id value)
{
    pl_addresses addresses = addresses_of(p);
    return pl_address_of(p->plan->graph, &addresses, value);
}

void *pl_program_find(const pl_program *p, const char *name)
{
    pl_id id = pl_graph_find_value(p->plan->graph, name);
    if (id == PL_NONE || p->plan->value[pl_value_root(p->plan->graph, id)].bytes == 0) return NULL;
    return pl_program_address(p, id);
}

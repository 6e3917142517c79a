/* From a bound graph to a plan: lives, workspaces, placement, and the rows of the whole process. */
#include "plan/plan.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/size.h"
#include "plimsoll/place.h"

void pl_plan_destroy(pl_plan *p)
{
    if (!p) return;
    pl_graph_destroy(p->graph);
    pl_free(p->value);
    pl_free(p->workspace);
    pl_free(p->seconds);
    pl_free(p->estimated);
    pl_free(p->time);
    pl_free(p->config);
    pl_pool_destroy(p->names);
    pl_work_destroy(p->work);
    pl_free(p->advice);
    pl_free(p->contexts);
    if (p->held) close(p->held);
    pl_free(p);
}

static pl_status find_workspaces(pl_plan *p, pl_error *err)
{
    for (size_t i = 0; i < p->graph->node_count; i++) {
        uint64_t bytes = 0;
        PL_TRY(pl_backend_workspace_bytes(p->graph, &p->graph->node[i], p->team, &bytes, err));
        pl_id space = pl_plan_workspace_space(p->graph, &p->graph->node[i]);
        if (bytes) p->workspace[i] = (pl_block){0, bytes, (uint32_t)i, (uint32_t)i + 1, space};
    }
    return PL_OK;
}

/* Persistent blocks live always, so they stack at the bottom without a search; `placed` collects the others. */
static pl_status stack_persistent(pl_plan *p, pl_id space, uint64_t *bottom, pl_error *err)
{
    *bottom = 0;
    for (size_t i = 0; i < p->graph->value_count; i++) {
        pl_block *b = &p->value[i];
        if (b->bytes == 0 || b->space != space || p->graph->value[i].program != PL_NONE) continue;
        b->offset = *bottom;
        uint64_t room = pl_align_up(b->bytes, PL_PLAN_ALIGNMENT);
        if (pl_size_add(*bottom, room, bottom) || *bottom >> 56)
            return pl_fail(err, PL_E_CONFIG,
                           "the weights and their optimizer state need more than 2^56 bytes; make the model smaller");
    }
    return PL_OK;
}

/* What lies in files lies there already. */
static void note_places(pl_plan *p, pl_id space)
{
    uint64_t end = 0;
    for (size_t i = 0; i < p->graph->value_count; i++) {
        pl_block *b = &p->value[i];
        if (b->bytes == 0 || b->space != space) continue;
        b->offset = p->graph->value[i].place;
        if (b->offset + b->bytes > end) end = b->offset + b->bytes;
    }
    p->arena[space] = (pl_plan_arena){.bytes = end, .lower_bound_bytes = end, .heuristic = "none"};
}

static size_t collect(pl_plan *p, pl_id space, pl_block **block, pl_place_buffer *buffer)
{
    size_t count = 0;
    for (size_t i = 0; i < p->graph->value_count + p->graph->node_count; i++) {
        bool workspace = i >= p->graph->value_count;
        pl_block *b = workspace ? &p->workspace[i - p->graph->value_count] : &p->value[i];
        bool persistent = !workspace && p->graph->value[i].program == PL_NONE;
        if (b->bytes == 0 || b->space != space || persistent) continue;
        block[count] = b;
        buffer[count++] = (pl_place_buffer){.lower = b->first,
                                            .upper = b->last,
                                            .size = pl_align_up(b->bytes, PL_PLAN_ALIGNMENT),
                                            .alignment = PL_PLAN_ALIGNMENT,
                                            .fixed_offset = PL_PLACE_NONE};
    }
    return count;
}

static pl_status place(pl_plan *p, pl_id space, bool quick, pl_error *err)
{
    size_t room = p->graph->value_count + p->graph->node_count + 1, count = 0;
    uint64_t bottom;
    pl_status status = PL_OK;
    if (pl_graph_space_is_files(p->graph, space)) return note_places(p, space), PL_OK;
    pl_block **block = pl_alloc(room, sizeof *block);
    pl_place_buffer *buffer = pl_alloc(room, sizeof *buffer);
    uint64_t *offset = pl_alloc(room, sizeof *offset);
    if (!block || !buffer || !offset) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to place %zu blocks", room));
    PL_TRY_DONE(stack_persistent(p, space, &bottom, err));
    count = collect(p, space, block, buffer);
    pl_place_problem problem = {.buffers = buffer, .buffer_count = count, .capacity = PL_PLACE_NONE};
    pl_place_solution solution = {.offsets = offset};
    pl_place_options options = pl_place_options_default();
    options.exact = options.squeaky_wheel = !quick;
    PL_TRY_DONE(pl_place(&problem, &options, &solution, err));
    for (size_t i = 0; i < count; i++) block[i]->offset = bottom + offset[i];
    p->arena[space] = (pl_plan_arena){.bytes = bottom + solution.peak,
                                      .lower_bound_bytes = bottom + solution.lower_bound,
                                      .peak_position = solution.bound_time,
                                      .heuristic = solution.heuristic ? solution.heuristic : "none",
                                      .place_seconds = solution.seconds};
done:
    pl_free(block);
    pl_free(buffer);
    pl_free(offset);
    return status;
}

/* Sizes that no machine has are refused before anything is laid out. */
static pl_status check_sizes(const pl_plan *p, pl_error *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (pl_size_add(total, p->value[i].bytes, &total) || total >> 60)
            return pl_fail(err, PL_E_CONFIG, "value %s is absurdly large; make model or micro-batch smaller",
                           p->graph->value[i].name);
    return PL_OK;
}

pl_status pl_plan_account(pl_plan *p, int helper_threads, pl_error *err)
{
    pl_process_arena arena[PL_SPACES_MAX];
    for (uint32_t k = 0; k < p->graph->space_count; k++) {
        uint64_t grain = k == PL_SPACE_RAM && p->huge_pages ? PL_HUGE_PAGE_BYTES : PL_PAGE_BYTES;
        const bool is_files = pl_graph_space_is_files(p->graph, k);
        arena[k] = (pl_process_arena){p->graph->space[k], pl_align_up(p->arena[k].bytes, grain), is_files};
    }
    return pl_process_plan(&p->process, p->team.threads, helper_threads, arena, p->graph->space_count, &p->ledger, err);
}

pl_duration pl_cost_predict(const pl_cost_model *cost, const pl_graph *g, const pl_node *n)
{
    if (cost->predict) return cost->predict(cost->context, g, n);
    const double s = cost->seconds ? cost->seconds(cost->context, g, n) : -1;
    return s < 0 ? (pl_duration){-1, -1, -1, 1, true} : (pl_duration){s, s, s, 1, false};
}

/* Intervals are added up as if all nodes were off to the same side, which a busy machine makes them. `busy` is a sum
 * of seconds here. */
static void add_time(pl_duration *sum, const pl_duration *p, double trips)
{
    if (sum->seconds < 0 || p->seconds < 0) {
        *sum = (pl_duration){-1, -1, -1, 1, true};
        return;
    }
    sum->seconds += trips * p->seconds;
    sum->low += trips * p->low;
    sum->high += trips * p->high;
    sum->busy += trips * p->seconds * p->busy;
    sum->estimated |= p->estimated;
}

static pl_status make_room_for_times(pl_plan *p, pl_error *err)
{
    if (!p->time) p->time = pl_alloc(p->graph->region_count + 1, sizeof *p->time);
    if (!p->estimated) p->estimated = pl_alloc(p->graph->node_count + 1, sizeof *p->estimated);
    if (!p->time || !p->estimated) return pl_fail(err, PL_E_NOMEM, "no memory for the times of a plan");
    memset(p->time, 0, p->graph->region_count * sizeof *p->time);
    return PL_OK;
}

pl_status pl_plan_predict(pl_plan *p, const pl_cost_model *cost, pl_error *err)
{
    const pl_graph *g = p->graph;
    if (cost->predict) PL_TRY(make_room_for_times(p, err));
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        const pl_duration s = pl_cost_predict(cost, g, n);
        p->seconds[i] = s.seconds >= 0 ? s.seconds : -1;
        if (!cost->predict) continue;
        p->estimated[i] = s.estimated;
        add_time(&p->time[pl_region_program(g, n->region)], &s, (double)pl_node_trips(g, n));
    }
    for (size_t i = 0; i < g->region_count && cost->predict; i++)
        if (p->time[i].seconds >= 0)
            p->time[i].busy = p->time[i].seconds > 0 ? p->time[i].busy / p->time[i].seconds : 1;
    return PL_OK;
}

/* Huge pages where rounding up to them adds at most a sixteenth. */
static bool huge_pages_pay(uint64_t arena_bytes)
{
    return (pl_align_up(arena_bytes, PL_HUGE_PAGE_BYTES) - arena_bytes) <= arena_bytes / 16;
}

/* All but the places: whose bytes, how long, and which workspaces. The graph becomes the plan's on success. */
static pl_status lay_out(pl_graph *g, const pl_plan_options *options, pl_plan **plan, pl_error *err)
{
    pl_status status = PL_OK;
    pl_plan *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory for the plan");
    p->team = options->team;
    p->process = options->process;
    p->value = pl_alloc(g->value_count + 1, sizeof *p->value);
    p->workspace = pl_alloc(g->node_count + 1, sizeof *p->workspace);
    p->seconds = pl_alloc(g->node_count + 1, sizeof *p->seconds);
    if (!p->value || !p->workspace || !p->seconds) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the plan"));
    p->graph = g;
    PL_TRY_DONE(pl_plan_find_lives(g, p->value, err));
    PL_TRY_DONE(check_sizes(p, err));
    PL_TRY_DONE(find_workspaces(p, err));
    *plan = p;
    return PL_OK;
done:
    p->graph = NULL; /* stays the caller's */
    pl_plan_destroy(p);
    return status;
}

pl_status pl_plan_create(pl_graph *g, const pl_plan_options *options, pl_plan **plan, pl_error *err)
{
    pl_status status = PL_OK;
    pl_plan *p;
    PL_TRY(lay_out(g, options, &p, err));
    for (pl_id k = 0; k < g->space_count; k++) PL_TRY_DONE(place(p, k, options->quick, err));
    p->huge_pages = options->huge_pages && huge_pages_pay(p->arena->bytes);
    PL_TRY_DONE(pl_plan_predict(p, &options->cost, err));
    PL_TRY_DONE(pl_plan_account(p, options->helper_threads, err));
    *plan = p;
    return PL_OK;
done:
    p->graph = NULL;
    pl_plan_destroy(p);
    return status;
}

pl_status pl_plan_find_least(pl_graph *g, const pl_plan_options *options, uint64_t *charged_bytes, pl_error *err)
{
    pl_status status = PL_OK;
    pl_plan *p;
    PL_TRY(lay_out(g, options, &p, err));
    uint64_t *alive = pl_alloc(g->node_count + 1, sizeof *alive);
    if (!alive) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for what is alive at %zu nodes", g->node_count));
    for (pl_id k = 0; k < g->space_count; k++) {
        if (pl_graph_space_is_files(g, k)) note_places(p, k);
        pl_plan_alive(p, k, alive);
        for (size_t i = 0; i < g->node_count; i++)
            if (alive[i] > p->arena[k].bytes) p->arena[k].bytes = alive[i];
    }
    p->process.heap_bytes = PL_PAGE_BYTES;
    PL_TRY_DONE(pl_plan_account(p, options->helper_threads, err));
    *charged_bytes = pl_plan_charged_bytes(p);
done:
    pl_free(alive);
    p->graph = NULL;
    pl_plan_destroy(p);
    return status;
}

uint64_t pl_plan_resident_bytes(const pl_plan *p) { return p->ledger.resident_bytes; }
uint64_t pl_plan_charged_bytes(const pl_plan *p) { return p->ledger.charged_bytes + p->writer_cache_bytes; }

static bool is_spared(const pl_graph *g, const pl_node *n)
{
    if (n->predicate == PL_NONE) return false;
    const pl_id maker = g->value[pl_value_root(g, n->predicate)].producer;
    return maker != PL_NONE && g->node[maker].op == PL_OP_LOAD;
}

double pl_plan_spared_seconds(const pl_plan *p, pl_id program)
{
    double total = 0;
    for (size_t i = 0; i < p->graph->node_count; i++) {
        const pl_node *n = &p->graph->node[i];
        if (pl_region_program(p->graph, n->region) != program || !is_spared(p->graph, n)) continue;
        if (p->seconds[i] > 0) total += p->seconds[i] * (double)pl_node_trips(p->graph, n);
    }
    return total;
}

double pl_plan_program_seconds(const pl_plan *p, pl_id program)
{
    double total = 0;
    for (size_t i = 0; i < p->graph->node_count; i++) {
        if (pl_region_program(p->graph, p->graph->node[i].region) != program) continue;
        if (p->seconds[i] < 0) return -1;
        total += p->seconds[i] * (double)pl_node_trips(p->graph, &p->graph->node[i]);
    }
    return total;
}

pl_duration pl_plan_program_time(const pl_plan *p, pl_id program)
{
    if (p->time) return p->time[program];
    const double seconds = pl_plan_program_seconds(p, program);
    return (pl_duration){seconds, seconds, seconds, 1, p->estimated_share > 0};
}

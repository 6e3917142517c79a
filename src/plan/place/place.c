/* pl_place: the whole road on one screen. Items → parts of the time line → for each part: greedy passes, exact search
 * from the lower bound upward, the squeaky wheel if that did not end → with time left, more of it for the highest part
 * → offsets, peak, verdict.
 *
 * A part need not be better than the worst of the others: its target is the largest lower bound of all, or the largest
 * peak so far. Work is shared out in elementary steps, not seconds, so that the same plan comes out on each machine. */
#include "part.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"

enum {
    EXACT_ITEMS_MAX = 2000, /* beyond it one descent alone costs seconds, and the recursion a deep stack */
    QUICK_ITEMS_MIN = 1000, /* up to it the first greedy pass is over before the limits are looked at */
    FAILURES_MAX = 2,       /* of tries above the lower bound in a round of the search */
};

pl_place_options pl_place_options_default(void)
{
    return (pl_place_options){.by_size = true,
                              .by_class = true,
                              .by_moment = true,
                              .by_area = true,
                              .by_duration = true,
                              .by_birth = true,
                              .by_conflicts = true,
                              .first_fit = true,
                              .best_fit = true,
                              .skyline = true,
                              .exact = true,
                              .time_decomposition = true,
                              .floor_rise = true,
                              .section_bound = true,
                              .dominance = true,
                              .twins = true,
                              .memo = true,
                              .dynamic_decomposition = true,
                              .fewest_answers = true,
                              .failure_weights = true,
                              .restarts = true,
                              .squeaky_wheel = true,
                              .work_limit = UINT64_C(1000000000)};
}

/* Shares are of this; by the clock when nothing else bounds the work. */
static uint64_t work_left(const place_run *run)
{
    uint64_t left = run->work < run->work_limit ? run->work_limit - run->work : 0;
    if (run->deadline <= 0 || run->work_limit != PL_PLACE_NONE) return left;
    return (uint64_t)fmin(fmax(run->deadline - place_now(), 0) * 1e9, 1e18);
}

/* What is known of a part's optimum while the exact search closes in on it. */
typedef struct bracket {
    uint64_t proven; /* nothing below fits */
    uint64_t stuck;  /* at or below it the search gave up; never below proven */
} bracket;

static pl_status try_capacity(const place_part *part, place_search *search, uint64_t capacity, uint64_t work,
                              place_best *best, bracket *b, pl_error *err)
{
    place_answer answer;
    PL_TRY(place_search_try(search, capacity, work, best->trial, &answer, err));
    uint64_t next = (capacity / part->grain + 1) * part->grain; /* the least peak above it that there can be */
    if (answer == PLACE_NO) b->proven = next;
    if (answer != PLACE_YES && next > b->stuck) b->stuck = next;
    if (answer != PLACE_YES) return PL_OK;
    memcpy(best->offsets, best->trial, part->count * sizeof *best->offsets);
    best->peak = 0;
    for (uint32_t i = 0; i < part->count; i++)
        if (best->offsets[i] + part->items[i].size > best->peak) best->peak = best->offsets[i] + part->items[i].size;
    best->heuristic = "exact search";
    place_search_follow(search, best->offsets);
    return PL_OK;
}

/* The capacity asked for first, if there is one. Then rounds, each beginning at the lower bound, where most problems
 * end, and halving what is open above it until some tries have failed: luck decides, hardly less at a higher capacity
 * than at a lower one. The rounds get longer. */
static pl_status search_part(const place_part *part, place_run *run, uint64_t capacity, place_best *best, bracket *b,
                             pl_error *err)
{
    place_search *search = place_search_create(part, run);
    if (!search)
        return pl_fail(err, PL_E_NOMEM, "no memory for the exact search over %u buffers", (unsigned)part->count);
    static const struct {
        uint64_t at_bound, above; /* of the work left: 1 / share */
    } share[] = {{8, 32}, {16, 16}, {16, 12}, {16, 8}, {8, 4}, {4, 2}, {1, 1}};
    pl_status status = PL_OK;
    uint64_t floor = b->proven > best->target ? b->proven : best->target;
    if (capacity < best->peak && capacity > floor)
        PL_TRY_DONE(try_capacity(part, search, capacity, work_left(run) / 2, best, b, err));
    if (best->peak <= capacity && capacity != PL_PLACE_NONE && capacity > floor && work_left(run) > run->work_limit / 4)
        run->work_limit = run->work + run->work_limit / 4; /* met: going on is a courtesy */
    for (size_t round = 0; round < sizeof share / sizeof *share; round++) {
        b->stuck = b->proven;
        for (int failures = 0; failures <= FAILURES_MAX && !place_run_spend(run, 0);) {
            uint64_t low = b->stuck > best->target ? b->stuck : best->target, peak = best->peak;
            if (peak <= low) break;
            uint64_t goal = failures == 0 && low == floor ? low : low + (peak - low) / 2 / part->grain * part->grain;
            uint64_t work = work_left(run) / (goal == low ? share[round].at_bound : share[round].above);
            PL_TRY_DONE(try_capacity(part, search, goal, work, best, b, err));
            failures += best->peak == peak;
        }
        floor = b->proven > best->target ? b->proven : best->target;
    }
done:
    place_search_destroy(search);
    return status;
}

/* What takes long, when the greedy passes were not enough. */
static pl_status search_on(place_part *part, place_run *run, uint64_t capacity, bool endless, place_best *best,
                           bracket *b, pl_error *err)
{
    bool exact = run->options->exact && part->count <= EXACT_ITEMS_MAX;
    if (best->peak > best->target && exact) PL_TRY(search_part(part, run, capacity, best, b, err));
    if (best->peak <= best->target || best->peak <= b->proven || !run->options->squeaky_wheel) return PL_OK;
    uint64_t work = exact || run->last_part ? work_left(run) : work_left(run) / 4;
    return place_squeaky(part, run, best, work, endless, err);
}

static pl_status place_part_solve(place_part *part, place_run *run, uint64_t capacity, place_best *best, bracket *b,
                                  pl_error *err)
{
    if (part->count > QUICK_ITEMS_MIN) PL_TRY(place_quick(part, best, err));
    PL_TRY(place_greedy(part, run, best, err));
    return search_on(part, run, capacity, false, best, b, err);
}

static pl_status best_init(place_best *best, uint32_t count, uint64_t target, pl_error *err)
{
    *best = (place_best){.peak = PL_PLACE_NONE, .target = target, .heuristic = "none"};
    for (size_t k = 0; k < PLACE_WHEEL_STARTS; k++) best->least[k] = PL_PLACE_NONE;
    best->offsets = pl_alloc(count, sizeof *best->offsets);
    best->trial = pl_alloc(count, sizeof *best->trial);
    if (best->offsets && best->trial) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)count);
}

static void best_deinit(place_best *best)
{
    pl_free(best->offsets);
    pl_free(best->trial);
}

/* What is known of a part of the time line. */
typedef struct stretch {
    place_part part;
    place_best best;
    bracket bracket;
} stretch;

/* The parts of the time line, in a block for pl_free; each initialised. */
static pl_status build_stretches(const pl_place_options *options, place_item *items, uint32_t count, stretch **all,
                                 size_t *stretch_count, pl_error *err)
{
    size_t capacity = 0;
    for (uint32_t begin = 0; begin < count;) {
        uint32_t length = options->time_decomposition ? place_items_part_length(items + begin, count - begin) : count;
        if (pl_grow(all, &capacity, *stretch_count, sizeof **all))
            return pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)count);
        stretch *s = &(*all)[*stretch_count];
        *s = (stretch){0};
        PL_TRY(place_part_init(&s->part, items + begin, length, err));
        (*stretch_count)++;
        s->bracket = (bracket){s->part.lower_bound, s->part.lower_bound};
        begin += length;
    }
    return PL_OK;
}

/* Takes a solved part into the solution. */
static void merge_stretch(const stretch *s, pl_place_solution *solution)
{
    const place_item *items = s->part.items;
    for (uint32_t i = 0; i < s->part.count; i++) solution->offsets[items[i].buffer] = s->best.offsets[i];
    if (s->best.peak <= solution->peak) return;
    solution->peak = s->best.peak;
    solution->heuristic = s->best.heuristic;
    for (uint32_t i = 0; i < s->part.count; i++)
        if (s->best.offsets[i] + items[i].size == s->best.peak) solution->peak_time = items[i].lower;
}

static stretch *highest(stretch *all, size_t count)
{
    stretch *worst = all;
    for (size_t k = 1; k < count; k++)
        if (all[k].best.peak > worst->best.peak) worst = &all[k];
    return worst;
}

/* With time left when the allowed work is done, the highest part gets as much again, then twice as much, and so on: all
 * else was done as without a time limit, so the answer is never worse. One that needs less leaves the rest to the part
 * that is the highest now. */
static pl_status go_on(stretch *all, size_t count, place_run *run, uint64_t capacity, uint64_t lower_bound,
                       pl_error *err)
{
    uint64_t work = run->options->work_limit ? run->options->work_limit : 1;
    while (count && run->deadline > 0 && work < PL_PLACE_NONE / 4 && !run->out_of_time) {
        stretch *s = highest(all, count);
        if (s->best.peak <= lower_bound || s->best.peak <= s->bracket.proven) break;
        if (place_now() >= run->deadline) break; /* a turn may book too little work for a look */
        s->best.target = lower_bound;
        run->last_part = true;
        run->work_limit = run->work + work;
        PL_TRY(search_on(&s->part, run, capacity, true, &s->best, &s->bracket, err));
        if (run->work >= run->work_limit)
            work *= 2;
        else if (highest(all, count) == s)
            break; /* it knows no more to do */
    }
    return PL_OK;
}

static pl_status solve_stretches(stretch *all, size_t count, place_run *run, uint64_t capacity,
                                 pl_place_solution *solution, uint64_t *proven, pl_error *err)
{
    for (size_t k = 0; k < count; k++) {
        if (all[k].part.lower_bound <= solution->lower_bound) continue;
        solution->lower_bound = all[k].part.lower_bound;
        solution->bound_time = all[k].part.bound_time;
    }
    uint64_t target = solution->lower_bound;
    for (size_t k = 0; k < count; k++) {
        stretch *s = &all[k];
        run->last_part = k + 1 == count;
        PL_TRY(best_init(&s->best, s->part.count, target, err));
        PL_TRY(place_part_solve(&s->part, run, capacity, &s->best, &s->bracket, err));
        if (s->best.peak > target) target = s->best.peak;
    }
    PL_TRY(go_on(all, count, run, capacity, solution->lower_bound, err));
    *proven = solution->lower_bound;
    for (size_t k = 0; k < count; k++) {
        merge_stretch(&all[k], solution);
        if (all[k].bracket.proven > *proven) *proven = all[k].bracket.proven;
    }
    return PL_OK;
}

static pl_status judge(const pl_place_problem *problem, pl_place_solution *solution, uint64_t proven, pl_error *err)
{
    char count[32], needed[16], room[16];
    solution->optimal = solution->peak <= proven;
    if (problem->capacity == PL_PLACE_NONE || solution->peak <= problem->capacity) return PL_OK;
    pl_format_bytes(problem->capacity, room, sizeof room);
    if (proven > problem->capacity) {
        solution->verdict = PL_PLACE_IMPOSSIBLE;
        return pl_fail(err, PL_E_BUDGET,
                       "no placement fits %" PRIu64 " byte%s (%s): at time %" PRIu64 " at least %" PRIu64
                       " bytes (%s) are needed, %s bytes more; proven",
                       problem->capacity, problem->capacity == 1 ? "" : "s", room, solution->bound_time, proven,
                       pl_format_bytes(proven, needed, sizeof needed),
                       pl_format_count(proven - problem->capacity, count, sizeof count));
    }
    solution->verdict = PL_PLACE_NOT_FOUND;
    return pl_fail(
        err, PL_E_BUDGET,
        "no placement within %" PRIu64 " byte%s (%s) was found within the limits: the best one needs %" PRIu64
        " bytes (%s), %s too many, at time %" PRIu64 "; the lower bound is %" PRIu64
        ", so one may exist: allow more time",
        problem->capacity, problem->capacity == 1 ? "" : "s", room, solution->peak,
        pl_format_bytes(solution->peak, needed, sizeof needed),
        pl_format_count(solution->peak - problem->capacity, count, sizeof count), solution->peak_time, proven);
}

static void place_empty(const pl_place_problem *problem, uint64_t *offsets)
{
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *b = &problem->buffers[i];
        offsets[i] = b->fixed_offset == PL_PLACE_NONE ? 0 : b->fixed_offset;
    }
}

pl_status pl_place(const pl_place_problem *problem, const pl_place_options *options, pl_place_solution *solution,
                   pl_error *err)
{
    double start = place_now();
    place_run run = {.options = options, .work_limit = options->work_limit};
    if (options->time_limit_s > 0) run.deadline = start + options->time_limit_s;
    *solution = (pl_place_solution){.offsets = solution->offsets, .heuristic = "nothing to place"};
    place_item *items = NULL;
    stretch *all = NULL;
    size_t stretch_count = 0;
    uint32_t count = 0;
    uint64_t proven = 0;
    pl_status status = place_items_build(problem, &items, &count, err);
    if (status == PL_OK) place_empty(problem, solution->offsets);
    if (status == PL_OK) status = build_stretches(options, items, count, &all, &stretch_count, err);
    if (status == PL_OK) status = solve_stretches(all, stretch_count, &run, problem->capacity, solution, &proven, err);
    if (status == PL_OK) status = judge(problem, solution, proven, err);
    for (size_t k = 0; k < stretch_count; k++) {
        best_deinit(&all[k].best);
        place_part_deinit(&all[k].part);
    }
    pl_free(all);
    pl_free(items);
    solution->nodes = run.nodes;
    solution->work = run.work;
    solution->seconds = place_now() - start;
    return status;
}

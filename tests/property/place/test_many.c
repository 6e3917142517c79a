/* Many buffers and limits: each pass against a plain walk over all that is placed, the free list against a plain
 * allocator, the bound and the clash of fixed buffers against their definitions; what is found is never lost; limits
 * bind. Time is counted in looks at a clock of our own, so nothing hangs on the machine. A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cases.h"
#include "support/program.h"

enum { MANY = 10500 /* enough to be listed by windows of time */ };

/* ---- a clock that goes on by a second each time that somebody looks ---- */

static uint64_t looks;
static bool looks_count;
static uint64_t most_bytes; /* held at a look */

int clock_gettime(clockid_t id, struct timespec *at)
{
    if (!looks_count) return (int)syscall(SYS_clock_gettime, id, at);
    uint64_t bytes = pl_alloc_live_bytes();
    if (bytes > most_bytes) most_bytes = bytes;
    *at = (struct timespec){.tv_sec = (time_t)++looks};
    return 0;
}

static place_case one;
static uint32_t rank[CASE_MAX]; /* by buffer: in the order of birth */

static pl_place_solution solve(const pl_place_options *options, uint64_t seed)
{
    pl_place_problem problem = case_problem(&one);
    pl_place_solution s = {.offsets = one.offsets};
    pl_error err = {0};
    uint64_t peak = 0;
    looks = 0;
    looks_count = options->time_limit_s > 0;
    pl_status status = pl_place(&problem, options, &s, &err);
    looks_count = false;
    if (status != PL_OK || pl_place_validate(&problem, s.offsets, &peak, &err) != PL_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    if (peak != s.peak) fail_msg("seed %llu: the peak told is not the peak", (unsigned long long)seed);
    return s;
}

/* ---- the plain walk ---- */

static int compare_births(const void *left, const void *right)
{
    const uint32_t *x = left, *y = right;
    const pl_place_buffer *a = &one.buffers[*x], *b = &one.buffers[*y];
    if (a->lower != b->lower) return a->lower < b->lower ? -1 : 1;
    if (a->upper != b->upper) return a->upper < b->upper ? -1 : 1;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    if (a->alignment != b->alignment) return a->alignment < b->alignment ? -1 : 1;
    return *x < *y ? -1 : 1;
}

static uint32_t degree[CASE_MAX];
static bool by_degree;

/* By size, then life; or by conflicts, then size; then birth. */
static int compare_wanted(const void *left, const void *right)
{
    const uint32_t *x = left, *y = right;
    const pl_place_buffer *a = &one.buffers[*x], *b = &one.buffers[*y];
    uint64_t a_life = a->upper - a->lower, b_life = b->upper - b->lower;
    if (by_degree && degree[*x] != degree[*y]) return degree[*x] > degree[*y] ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (!by_degree && a_life != b_life) return a_life > b_life ? -1 : 1;
    return rank[*x] < rank[*y] ? -1 : 1;
}

static uint64_t align_up(uint64_t x, uint64_t alignment) { return (x + alignment - 1) / alignment * alignment; }

static bool meet(const pl_place_buffer *a, const pl_place_buffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

static uint32_t placed[CASE_MAX];
static uint64_t at[CASE_MAX]; /* offsets of the oracle, by buffer */

/* Into the lowest gap among the first `count` of `placed`, which are sorted by offset, or the tightest. */
static uint64_t plain_gap(uint32_t i, uint32_t count, bool best_fit)
{
    const pl_place_buffer *b = &one.buffers[i];
    uint64_t floor = 0, best = UINT64_MAX, room = UINT64_MAX;
    for (uint32_t k = 0; k < count; k++) {
        const pl_place_buffer *o = &one.buffers[placed[k]];
        uint64_t begin = at[placed[k]], end = begin + o->size;
        if (!meet(b, o)) continue;
        if (begin >= floor + b->size && begin - floor < room) best = floor, room = begin - floor;
        if (best != UINT64_MAX && !best_fit) break;
        if (end > floor) floor = align_up(end, b->alignment);
    }
    return best == UINT64_MAX ? floor : best;
}

static void plain_insert(uint32_t i, uint32_t count, uint64_t offset)
{
    uint32_t k = count;
    at[i] = offset;
    for (; k && at[placed[k - 1]] > offset; k--) placed[k] = placed[k - 1];
    placed[k] = i;
}

static uint64_t plain_pass(const uint32_t *order, bool best_fit)
{
    uint64_t peak = 0;
    uint32_t count = 0;
    for (int fixed = 1; fixed >= 0; fixed--) {
        for (uint32_t k = 0; k < one.count; k++) {
            const pl_place_buffer *b = &one.buffers[order[k]];
            if ((b->fixed_offset != PL_PLACE_NONE) != fixed) continue;
            uint64_t offset = fixed ? b->fixed_offset : plain_gap(order[k], count, best_fit);
            plain_insert(order[k], count++, offset);
            if (offset + b->size > peak) peak = offset + b->size;
        }
    }
    return peak;
}

static void rank_births(uint32_t *order)
{
    for (uint32_t i = 0; i < one.count; i++) order[i] = i, one.buffers[i].id = NULL;
    qsort(order, one.count, sizeof *order, compare_births);
    for (uint32_t k = 0; k < one.count; k++) rank[order[k]] = k;
}

/* Aligned ones among them, and a few fixed, one above the other. */
static void many(uint64_t seed)
{
    uint64_t floor = 0;
    case_large(&one, seed, MANY);
    for (size_t i = 0; i < one.count; i++) {
        pl_place_buffer *b = &one.buffers[i];
        if (case_random(&one, 4) == 0) b->alignment = UINT64_C(1) << case_random(&one, 12);
        if (i % 1000) continue;
        b->alignment = 1;
        b->fixed_offset = floor;
        floor += b->size + 4096;
    }
}

static void count_degrees(void)
{
    for (uint32_t i = 0; i < one.count; i++) {
        degree[i] = 0;
        for (uint32_t j = 0; j < one.count; j++) degree[i] += j != i && meet(&one.buffers[i], &one.buffers[j]);
    }
}

static void check_passes(uint64_t seed)
{
    static uint32_t order[CASE_MAX];
    pl_place_options none = {.work_limit = PL_PLACE_NONE}, all = pl_place_options_default();
    many(seed);
    rank_births(order);
    count_degrees();
    uint64_t quick = solve(&none, seed).peak, least = quick;
    for (int conflicts = 0; conflicts < 2; conflicts++) {
        by_degree = conflicts;
        qsort(order, one.count, sizeof *order, compare_wanted);
        pl_place_options both = none;
        *(conflicts ? &both.by_conflicts : &both.by_size) = true;
        uint64_t lower = quick;
        for (int best_fit = 0; best_fit < 2; best_fit++) {
            pl_place_options options = both;
            *(best_fit ? &options.best_fit : &options.first_fit) = true;
            uint64_t peak = plain_pass(order, best_fit);
            pl_place_solution s = solve(&options, seed);
            if (s.peak != (peak < quick ? peak : quick))
                fail_msg("seed %llu, conflicts %d, best fit %d: another peak", (unsigned long long)seed, conflicts,
                         best_fit);
            for (uint32_t i = 0; peak < quick && i < one.count; i++)
                if (s.offsets[i] != at[i]) fail_msg("seed %llu: another placement", (unsigned long long)seed);
            if (peak < lower) lower = peak;
        }
        both.first_fit = both.best_fit = true;
        if (solve(&both, seed).peak != lower) fail_msg("seed %llu: a fit was lost", (unsigned long long)seed);
        if (lower < least) least = lower;
    }
    assert_true(least < quick); /* or nothing was compared */
    all.exact = all.squeaky_wheel = false;
    all.work_limit = PL_PLACE_NONE;
    if (solve(&all, seed).peak > least) fail_msg("seed %llu: a pass was lost", (unsigned long long)seed);
}

static uint64_t first_seed = 1;

static void test_passes(void **state)
{
    (void)state;
    check_passes(first_seed);
}

/* ---- the free list: an allocator that keeps all that lives in a list ---- */

static void test_free_list(void **state)
{
    (void)state;
    static uint32_t order[CASE_MAX];
    for (uint64_t seed = first_seed; seed < first_seed + 4; seed++) {
        uint64_t floor = 0, peak = 0;
        uint32_t alive = 0;
        case_begin(&one, seed);
        for (unsigned i = 0; i < 8000; i++) { /* thousands live at once, and leave more gaps than a chunk holds */
            uint64_t lower = case_random(&one, 4000);
            case_add(&one, lower, lower + 1 + case_random(&one, 2000), 1 + case_random(&one, 1000));
            if (seed % 2 && i % 3 == 0) one.buffers[i].alignment = UINT64_C(1) << case_random(&one, 9);
        }
        one.buffers[7].alignment = 1, one.buffers[7].fixed_offset = 777;
        floor = peak = 777 + one.buffers[7].size;
        rank_births(order);
        for (uint32_t k = 0; k < one.count; k++) {
            const pl_place_buffer *b = &one.buffers[order[k]];
            uint32_t left = 0;
            for (uint32_t j = 0; j < alive; j++)
                if (one.buffers[placed[j]].upper > b->lower) placed[left++] = placed[j];
            alive = left;
            if (b->fixed_offset != PL_PLACE_NONE) {
                at[order[k]] = b->fixed_offset;
                continue;
            }
            uint64_t offset = align_up(floor, b->alignment);
            for (uint32_t j = 0; j < alive && offset + b->size > at[placed[j]]; j++)
                offset = align_up(at[placed[j]] + one.buffers[placed[j]].size, b->alignment);
            plain_insert(order[k], alive++, offset);
            if (offset + b->size > peak) peak = offset + b->size;
        }
        pl_place_options options = {.work_limit = PL_PLACE_NONE};
        pl_place_solution s = solve(&options, seed);
        if (s.peak != peak || memcmp(s.offsets, at, one.count * sizeof *at) != 0)
            fail_msg("seed %llu: another placement than the allocator's", (unsigned long long)seed);
    }
}

/* ---- limits ---- */

/* One pass over what is all alive together would take far more than is allowed. */
static void test_work_binds(void **state)
{
    (void)state;
    case_begin(&one, 1);
    for (unsigned i = 0; i < 30000; i++)
        case_add(&one, case_random(&one, 1000), 1000 + case_random(&one, 1000), 1 + case_random(&one, 1 << 20));
    pl_place_options options = pl_place_options_default();
    options.work_limit = 20000000;
    pl_place_solution s = solve(&options, 1);
    if (s.work > 2 * options.work_limit) fail_msg("%llu steps", (unsigned long long)s.work);
}

/* More looks at the clock never give a higher peak, not less than without a clock, and are all used. */
static void test_time_is_used_and_binds(void **state)
{
    (void)state;
    pl_place_options options = pl_place_options_default();
    case_large(&one, first_seed, MANY);
    options.work_limit = 20000000;
    uint64_t without = solve(&options, first_seed).peak, last = UINT64_MAX;
    for (unsigned time = 1; time <= 600; time *= 5) {
        options.time_limit_s = time;
        pl_place_solution s = solve(&options, first_seed);
        if (s.peak > last) fail_msg("%u looks give more than fewer looks", time);
        if (looks > time + 5) fail_msg("%llu looks of %u", (unsigned long long)looks, time);
        if (looks < time && !s.optimal)
            fail_msg("%llu looks of %u: it ends too early", (unsigned long long)looks, time);
        last = s.peak;
    }
    assert_true(last <= without);
}

/* Time that is left goes to the highest part of the time line, also where that is not the last one. */
static void test_time_for_the_highest_part(void **state)
{
    (void)state;
    case_tiling(&one, 14, 250, 1 << 20, 15);
    case_add(&one, 2000000, 2000001, 1);
    pl_place_options options = pl_place_options_default();
    options.work_limit = 5000000;
    uint64_t without = solve(&options, 14).peak;
    assert_true(without > 1 << 20);
    options.time_limit_s = 4000;
    assert_true(solve(&options, 14).peak < without);
}

/* Three hundred at random, `copies` times one behind the other: so many parts, as high as each other. */
static void copies_of_hard_part(uint64_t seed, unsigned copies)
{
    case_begin(&one, seed);
    for (unsigned i = 0; i < 300; i++) {
        uint64_t lower = case_random(&one, 1000), length = 1 + case_random(&one, 300);
        case_add(&one, lower, lower + length, 64 * (1 + case_random(&one, 64)));
    }
    for (size_t i = 0; i + 300 < 300 * (size_t)copies; i++)
        case_add(&one, one.buffers[i].lower + 10000, one.buffers[i].upper + 10000, one.buffers[i].size);
}

/* Where the highest part reaches the bound, the time that is left goes to the one that is the highest then. */
static void test_time_for_each_part(void **state)
{
    (void)state;
    pl_place_options options = pl_place_options_default();
    options.work_limit = 200000;
    for (uint64_t seed = first_seed; seed < first_seed + 2; seed++) {
        options.time_limit_s = 600;
        copies_of_hard_part(seed, 1);
        pl_place_solution alone = solve(&options, seed);
        options.time_limit_s = 2400;
        copies_of_hard_part(seed, 2);
        pl_place_solution both = solve(&options, seed);
        if (looks < 2400 && !both.optimal)
            fail_msg("seed %llu: %llu looks of 2400: it ends too early", (unsigned long long)seed,
                     (unsigned long long)looks);
        if (alone.optimal && both.peak != alone.peak)
            fail_msg("seed %llu: two copies take %llu bytes, one %llu", (unsigned long long)seed,
                     (unsigned long long)both.peak, (unsigned long long)alone.peak);
    }
}

/* Nothing allowed but time: what any limit begins with, and then all of the time. */
static void test_time_alone(void **state)
{
    (void)state;
    pl_place_options options = pl_place_options_default();
    options.work_limit = 0;
    copies_of_hard_part(first_seed, 1);
    uint64_t without = solve(&options, first_seed).peak;
    options.time_limit_s = 100;
    pl_place_solution s = solve(&options, first_seed);
    assert_true(s.peak <= without);
    if (looks > 105 || (looks < 100 && !s.optimal)) fail_msg("%llu looks of 100", (unsigned long long)looks);
}

/* ---- memory ---- */

/* Windows of time cost what is in them, however short the lives: some hundred bytes a buffer. And they are wide enough
 * for many lives here, so the placement is compared with the plain walk's once more. */
static void test_memory_of_short_lives(void **state)
{
    (void)state;
    static uint32_t order[CASE_MAX];
    static const uint64_t begin[] = {5000, 6000, 14000}; /* by birth 5000 above the bound, by size at it */
    pl_place_options options = {.by_size = true, .first_fit = true, .work_limit = PL_PLACE_NONE, .time_limit_s = 1000};
    case_begin(&one, first_seed);
    for (uint64_t i = 0; i < MANY; i++)
        case_add(&one, 2 * i, 2 * i + 3, i < 3 ? begin[i] : 1 + case_random(&one, 1000));
    rank_births(order);
    by_degree = false;
    qsort(order, one.count, sizeof *order, compare_wanted);
    uint64_t peak = plain_pass(order, false);
    most_bytes = 0;
    pl_place_solution s = solve(&options, first_seed);
    assert_true(looks > 10); /* the windows' memory was seen */
    if (most_bytes > 500 * MANY)
        fail_msg("seed %llu: %llu bytes a buffer", (unsigned long long)first_seed,
                 (unsigned long long)most_bytes / MANY);
    if (s.peak != peak || memcmp(s.offsets, at, one.count * sizeof *at) != 0)
        fail_msg("seed %llu: another placement", (unsigned long long)first_seed);
}

/* ---- the bound and the clash of fixed buffers, by their definitions ---- */

static uint64_t plain_bound(void)
{
    uint64_t bound = 0;
    for (uint64_t t = 0; t < 16; t++) {
        for (uint64_t block = 1; block <= 64; block *= 2) {
            uint64_t sum = 0, waste = 0;
            for (size_t i = 0; i < one.count; i++) {
                const pl_place_buffer *b = &one.buffers[i];
                if (!b->size || b->alignment < block || t < b->lower || t >= b->upper) continue;
                uint64_t whole = align_up(b->size, block);
                sum += whole;
                if (whole - b->size > waste) waste = whole - b->size;
            }
            if (sum - waste > bound) bound = sum - waste;
        }
    }
    for (size_t i = 0; i < one.count; i++)
        if (one.buffers[i].size && one.buffers[i].fixed_offset != PL_PLACE_NONE &&
            one.buffers[i].fixed_offset + one.buffers[i].size > bound)
            bound = one.buffers[i].fixed_offset + one.buffers[i].size;
    return bound;
}

static void test_bound(void **state)
{
    (void)state;
    pl_place_options options = {.by_size = true, .first_fit = true, .work_limit = PL_PLACE_NONE};
    for (uint64_t seed = first_seed; seed < first_seed + 2000; seed++) {
        case_small(&one, seed, 14);
        options.time_decomposition = seed % 2;
        if (solve(&options, seed).lower_bound != plain_bound())
            fail_msg("seed %llu: another bound", (unsigned long long)seed);
    }
}

static bool clash(void)
{
    for (size_t i = 0; i < one.count; i++)
        for (size_t j = 0; j < i; j++) {
            const pl_place_buffer *a = &one.buffers[i], *b = &one.buffers[j];
            if (!a->size || !b->size || a->fixed_offset == PL_PLACE_NONE || b->fixed_offset == PL_PLACE_NONE) continue;
            if (meet(a, b) && a->fixed_offset < b->fixed_offset + b->size &&
                b->fixed_offset < a->fixed_offset + a->size)
                return true;
        }
    return false;
}

static pl_status place_fixed(pl_error *err)
{
    pl_place_problem problem = case_problem(&one);
    pl_place_solution s = {.offsets = one.offsets};
    pl_place_options options = {.work_limit = PL_PLACE_NONE};
    return pl_place(&problem, &options, &s, err);
}

static void test_fixed_clash(void **state)
{
    (void)state;
    pl_error err = {0};
    for (uint64_t seed = first_seed; seed < first_seed + 3000; seed++) {
        case_begin(&one, seed);
        unsigned count = 2 + (unsigned)case_random(&one, 7);
        while (one.count < count) {
            uint64_t lower = case_random(&one, 12), length = 1 + case_random(&one, 4);
            pl_place_buffer *b = case_add(&one, lower, lower + length, case_random(&one, 6));
            if (case_random(&one, 5)) b->fixed_offset = case_random(&one, 30);
        }
        pl_status status = place_fixed(&err);
        if (status != (clash() ? PL_E_DATA : PL_OK)) fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    }
    case_begin(&one, 1); /* all alive together: looked at pair by pair these would take long */
    for (uint64_t i = 0; i < CASE_MAX; i++)
        case_add(&one, i % 7, 10 + i % 5, 64)->fixed_offset = 128 * (i * 7919 % CASE_MAX);
    assert_int_equal(place_fixed(&err), PL_OK);
    one.buffers[4321].size = 65 + 64;
    assert_int_equal(place_fixed(&err), PL_E_DATA);
    assert_non_null(strstr(err.text, "b4321"));
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes),
                                       cmocka_unit_test(test_free_list),
                                       cmocka_unit_test(test_work_binds),
                                       cmocka_unit_test(test_time_is_used_and_binds),
                                       cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_time_for_the_highest_part),
                                       cmocka_unit_test(test_time_for_each_part),
                                       cmocka_unit_test(test_time_alone),
                                       cmocka_unit_test(test_memory_of_short_lives),
                                       cmocka_unit_test(test_fixed_clash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A placement problem as CSV: read, solved in little time, judged, printed in every form, read again. The sum of the
 * bytes says what else: bits 0 to 4 switch parts of the search off, bit 5 sets a capacity. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "plimsoll/place.h"

enum { BUFFERS_MAX = 400, WORK = 200000 };

static pl_place_options options_of(uint8_t bits)
{
    pl_place_options o = pl_place_options_default();
    o.work_limit = WORK;
    o.exact = !(bits & 1);
    o.squeaky_wheel = !(bits & 2);
    o.memo = !(bits & 4);
    o.dynamic_decomposition = !(bits & 8);
    o.skyline = !(bits & 16);
    return o;
}

static pl_place_table *parse(const char *text, size_t bytes, const char *name)
{
    pl_error err = {0};
    pl_place_table *table = NULL;
    pl_status status = pl_place_table_parse(text, bytes, name, &table, &err);
    if (status == PL_OK) return table;
    FUZZ_CHECK(!table, "a table that was refused");
    fuzz_refused(status, &err, name, FUZZ_LINE_COLUMN);
    return NULL;
}

/* The printed CSV is the same problem with every offset fixed, so it reads back and has one answer. */
static void check_csv(const pl_place_problem *problem, const char *text, size_t bytes)
{
    pl_error err = {0};
    pl_place_table *again = parse(text, bytes, "again");
    FUZZ_CHECK(again, "what was printed is refused");
    pl_place_problem fixed = pl_place_table_problem(again);
    FUZZ_CHECK(fixed.buffer_count == problem->buffer_count, "%zu buffers became %zu", problem->buffer_count,
               fixed.buffer_count);
    uint64_t *offsets = calloc(fixed.buffer_count + 1, sizeof *offsets);
    FUZZ_CHECK(offsets, "no memory");
    for (size_t i = 0; i < fixed.buffer_count; i++) {
        const pl_place_buffer *a = &problem->buffers[i], *b = &fixed.buffers[i];
        FUZZ_CHECK(a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->alignment == b->alignment,
                   "row %zu came back as another buffer", i);
        offsets[i] = b->fixed_offset;
    }
    FUZZ_CHECK(pl_place_validate(&fixed, offsets, NULL, &err) == PL_OK, "the printed placement is wrong: %s", err.text);
    free(offsets);
    pl_place_table_destroy(again);
}

static void check_texts(const pl_place_problem *problem, const pl_place_solution *solution)
{
    for (int form = PL_PLACE_CSV; form <= PL_PLACE_SVG; form++) {
        pl_error err = {0};
        char *text;
        size_t bytes;
        FUZZ_CHECK(pl_place_print(problem, solution, (pl_place_form)form, &text, &bytes, &err) == PL_OK, "%s",
                   err.text);
        if (form == PL_PLACE_CSV) check_csv(problem, text, bytes);
        pl_place_text_free(text);
    }
}

static void check_solution(const pl_place_problem *problem, const pl_place_solution *s)
{
    pl_error err = {0};
    uint64_t peak = 0;
    FUZZ_CHECK(pl_place_validate(problem, s->offsets, &peak, &err) == PL_OK, "a wrong placement: %s", err.text);
    FUZZ_CHECK(peak == s->peak, "a peak of %llu was told, it is %llu", (unsigned long long)s->peak,
               (unsigned long long)peak);
    FUZZ_CHECK(s->peak >= s->lower_bound, "a peak of %llu below the bound %llu", (unsigned long long)s->peak,
               (unsigned long long)s->lower_bound);
    check_texts(problem, s);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_place_table *table;
    uint64_t offsets[64];
    pl_place_solution solution = {.offsets = offsets};
    pl_status status = pl_place_table_parse((const char *)data, size, "input", &table, err);
    pl_place_problem problem = table ? pl_place_table_problem(table) : (pl_place_problem){0};
    pl_place_options options = options_of(0);
    if (table && problem.buffer_count <= 64) status = pl_place(&problem, &options, &solution, err);
    pl_place_table_destroy(table);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    uint64_t before = pl_alloc_live_blocks();
    uint8_t bits = 0;
    for (size_t i = 0; i < size; i++) bits = (uint8_t)(bits + data[i]);
    pl_place_table *table = parse((const char *)data, size, "input");
    pl_place_problem problem = table ? pl_place_table_problem(table) : (pl_place_problem){0};
    uint64_t *offsets = calloc(problem.buffer_count + 1, sizeof *offsets);
    FUZZ_CHECK(offsets, "no memory");
    if (table && problem.buffer_count <= BUFFERS_MAX) {
        pl_place_solution solution = {.offsets = offsets};
        pl_place_options options = options_of(bits);
        if (bits & 32) problem.capacity = (uint64_t)bits * problem.buffer_count;
        pl_status status = pl_place(&problem, &options, &solution, &err);
        if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
        if (status == PL_OK || status == PL_E_BUDGET) check_solution(&problem, &solution);
    }
    free(offsets);
    pl_place_table_destroy(table);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}

/* plimsoll/results.h: random parts of what a small rollout left, against the arrays that it should have made; what is
 * not finished is not given out. */
#include "unit/store/small_blocks.h"

#include <inttypes.h>

#include "base/philox.h"
#include "plimsoll/results.h"
#include "support/program.h"
#include "support/seed.h"

enum { PARTS = 300 };

static uint64_t seed, drawn;
static small_blocks b;
static pl_error err;
static pl_block_found found;

static uint32_t draw(uint32_t below)
{
    pl_philox p = pl_philox_init(seed, 1);
    uint32_t out[4];
    pl_philox_block(&p, 0, drawn++, 0, out);
    return out[0] % below;
}

static void draw_part(const pl_results_dataset *d, uint64_t *begin, uint64_t *end)
{
    for (uint32_t i = 0; i < d->rank; i++) {
        bool all = draw(3) == 0;
        begin[i] = all ? 0 : draw((uint32_t)d->shape[i]);
        end[i] = all ? d->shape[i] : begin[i] + 1 + draw((uint32_t)(d->shape[i] - begin[i]));
    }
}

static bool next_place(uint32_t rank, const uint64_t *begin, const uint64_t *end, uint64_t *at)
{
    for (uint32_t i = rank; i-- > 0; at[i] = begin[i])
        if (++at[i] < end[i]) return true;
    return false;
}

/* Whether its bytes lie together, told without the library: the distance of its first and last element. */
static bool is_in_one_piece(const pl_results_dataset *d, const uint64_t *begin, const uint64_t *end)
{
    uint64_t first = 0, last = 0, count = 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        first = first * d->shape[i] + begin[i], last = last * d->shape[i] + end[i] - 1;
        count *= end[i] - begin[i];
    }
    return last - first + 1 == count;
}

static unsigned mapped, in_pieces;

static void check_mapped(pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end, const char *part,
                         uint64_t bytes)
{
    const pl_results_dataset d = pl_results_at(r, dataset);
    const void *at;
    const pl_status status = pl_results_map(r, dataset, begin, end, &at, &err);
    if (is_in_one_piece(&d, begin, end)) {
        if (status != PL_OK) fail_msg("%s", err.text);
        assert_memory_equal(at, part, bytes);
        assert_int_equal((uintptr_t)at % d.element_bytes, 0);
        mapped++;
    } else {
        assert_int_equal(status, PL_E_USAGE);
        assert_says(err.text, "does not lie in one piece");
        assert_null(at);
        in_pieces++;
    }
}

/* Element by element. */
static void check_part(pl_results *r, size_t dataset, const char *whole)
{
    static char part[sizeof(small_arrays)];
    const pl_results_dataset d = pl_results_at(r, dataset);
    uint64_t begin[PL_RESULTS_RANK_MAX], end[PL_RESULTS_RANK_MAX], at[PL_RESULTS_RANK_MAX], count = 1, k = 0;
    draw_part(&d, begin, end);
    for (uint32_t i = 0; i < d.rank; i++) count *= end[i] - begin[i], at[i] = begin[i];
    if (pl_results_read(r, dataset, begin, end, part, count * d.element_bytes, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(pl_results_is_done(r, dataset, begin, end));
    check_mapped(r, dataset, begin, end, part, count * d.element_bytes);
    do {
        uint64_t element = 0;
        for (uint32_t i = 0; i < d.rank; i++) element = element * d.shape[i] + at[i];
        assert_memory_equal(part + k++ * d.element_bytes, whole + element * d.element_bytes, d.element_bytes);
    } while (next_place(d.rank, begin, end, at));
    assert_int_equal(k, count);
}

static void test_parts(void **state)
{
    const small_arrays *a = expected_arrays();
    const struct {
        const char *name;
        const void *whole;
    } sets[] = {{"outputs/fields", a->fields},
                {"metrics/energy", a->energy},
                {"features", a->features},
                {"metadata/noise", small_names}};
    pl_results *r;
    (void)state;
    for (int form = 0; form < PL_BLOCK_FORMS; form += 2) {
        const char *path = in_folder("form-%d", form);
        if (small_run_all(&b, path, (pl_block_form)form, &small_layout, &found, &err) != PL_OK)
            fail_msg("%s", err.text);
        if (pl_results_open(path, &r, &err) != PL_OK) fail_msg("%s", err.text);
        for (int i = 0; i < PARTS; i++) {
            int set = (int)draw(4);
            check_part(r, pl_results_find(r, sets[set].name), sets[set].whole);
        }
        assert_true(pl_results_find(r, "nothing") == PL_RESULTS_NONE);
        pl_results_close(r);
    }
    assert_true(mapped > PARTS / 10 && in_pieces > PARTS / 10);
}

static void expect(pl_status wanted, pl_status status, const char *part)
{
    if (status != wanted) fail_msg("%s came: %s", pl_status_name(status), err.text);
    assert_says(err.text, part);
}

/* Operator 0 alone is finished. */
static pl_results *open_unfinished(const char *path)
{
    pl_results *r = NULL;
    if (pl_block_file_make(path, PL_BLOCK_NATIVE, &small_layout, &found, &err) != PL_OK ||
        small_open(&b, path, &small_layout, &err) != PL_OK || run_operator(&b, &small_layout, 0, &err) != PL_OK ||
        pl_block_file_close(b.file, &err) != PL_OK || pl_results_open(path, &r, &err) != PL_OK)
        fail_msg("%s", err.text);
    return r;
}

static void test_unfinished(void **state)
{
    uint64_t begin[4] = {0, 0, 0, 0}, end[4] = {1, REALISATIONS, STATES, 1};
    uint16_t column[2 * REALISATIONS * STATES];
    pl_results *r = open_unfinished(in_folder("unfinished"));
    (void)state;
    pl_results_summary s = pl_results_summarize(r);
    assert_int_equal(s.blocks, BLOCKS);
    assert_int_equal(s.done, BLOCKS / OPERATORS);
    assert_int_equal(s.done_bytes, s.bytes / OPERATORS);
    assert_int_equal(s.whole, 0);
    assert_int_equal(pl_results_at(r, TRAJECTORIES).done, REALISATIONS * PIECES);
    assert_string_equal(pl_results_at(r, TRAJECTORIES).axis[2], "state");
    size_t fields = pl_results_find(r, "outputs/fields");
    assert_int_equal(pl_results_read(r, fields, begin, end, column, sizeof column / 2, &err), PL_OK);
    expect(PL_E_USAGE, pl_results_read(r, fields, begin, end, column, 2, &err), "its place has 2");
    end[0] = 2;
    assert_false(pl_results_is_done(r, fields, begin, end));
    expect(PL_E_DATA, pl_results_read(r, fields, begin, end, column, sizeof column, &err),
           "states of operator 1, realisation 0, state 0 to 3 are not finished");
    expect(PL_E_DATA, pl_results_export(r, fields, begin, end, in_folder("x.npy"), &err), "are not finished");
    assert_false(exists(in_folder("x.npy")));
    end[0] = OPERATORS + 1;
    expect(PL_E_USAGE, pl_results_read(r, fields, begin, end, column, sizeof column, &err), "dimension 0 has 3 places");
    pl_results_close(r);
}

/* Cut off before it is opened, and between two looks; damaged bytes are the reader's to check. */
static void test_mapped_file_that_is_cut_off(void **state)
{
    const uint64_t begin[4] = {0, 0, 0, 0}, end[4] = {OPERATORS, REALISATIONS, STATES, WIDTH};
    const void *at;
    struct stat st;
    (void)state;
    for (int form = 0; form < PL_BLOCK_FORMS; form += 2) {
        char file[300];
        pl_results *r;
        snprintf(file, sizeof file, "%s", in_folder("cut-%d", form));
        if (small_run_all(&b, file, (pl_block_form)form, &small_layout, &found, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_int_equal(pl_results_open(file, &r, &err), PL_OK);
        const size_t fields = pl_results_find(r, "outputs/fields");
        if (form) strcat(file, "/outputs.fields.npy");
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(pl_results_map(r, fields, begin, end, &at, &err), PL_OK);
        assert_memory_equal(at, expected_arrays()->fields, sizeof expected_arrays()->fields);
        assert_int_equal(truncate(file, st.st_size / 4), 0);
        expect(PL_E_DATA, pl_results_map(r, fields, begin, end, &at, &err), "it is truncated");
        pl_results_close(r);
        if (pl_results_open(in_folder("cut-%d", form), &r, &err) == PL_OK) {
            expect(PL_E_DATA, pl_results_map(r, fields, begin, end, &at, &err), "it is truncated");
            pl_results_close(r);
        } else {
            assert_says(err.text, "truncated");
        }
    }
}

static void test_what_is_not_finished_is_not_mapped(void **state)
{
    const uint64_t begin[4] = {0, 0, 0, 0}, one[4] = {1, 1, STATES, WIDTH}, all[4] = {2, REALISATIONS, STATES, WIDTH};
    const void *at;
    pl_results *r = open_unfinished(in_folder("unfinished-map"));
    (void)state;
    const size_t fields = pl_results_find(r, "outputs/fields");
    assert_int_equal(pl_results_map(r, fields, begin, one, &at, &err), PL_OK);
    expect(PL_E_DATA, pl_results_map(r, fields, begin, all, &at, &err), "are not finished");
    assert_null(at);
    pl_results_close(r);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_unfinished),
                                       cmocka_unit_test(test_mapped_file_that_is_cut_off),
                                       cmocka_unit_test(test_what_is_not_finished_is_not_mapped)};
    seed = test_seed_said(argc, argv);
    use_memory_for_folder();
    return cmocka_run_group_tests_name("results", tests, make_test_folder, remove_test_folder);
}

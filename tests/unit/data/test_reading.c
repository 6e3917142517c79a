/* Lexicons, from a seed and from files, good and bad; pages of words: what is written on one is what its labels say,
 * whatever the micro-batch, each page belongs to one part, and of an epoch each page of a part comes once. */
#include <math.h>

#include "unit/data/scratch.h"

#include "base/hash.h"
#include "base/philox.h"
#include "base/policy.h"

#include "data/pages/layout.h"
#include "data/pages/reading.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static pl_module module;
static pl_font_file file;
static bool is_there;
#define NEEDS_MODULE()                                                                                                 \
    if (!is_there) skip()

/* ---- the lexicon ---- */

static void check_lexicon(const pl_lexicon *l, uint32_t count)
{
    assert_int_equal(l->count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(strlen(l->word[i]), l->bytes[i]);
        assert_in_range(l->bytes[i], 1, PL_LEXICON_WORD_BYTES - 1);
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) assert_string_not_equal(l->word[i], l->word[k]);
}

static void test_made(void **state)
{
    (void)state;
    pl_error err;
    pl_lexicon a, b;
    for (uint32_t count = 1; count < 7000; count = count * 3 + 1) {
        assert_int_equal(pl_lexicon_make(seed, count, &a, &err), PL_OK);
        check_lexicon(&a, count);
        assert_int_equal(pl_lexicon_make(seed, count, &b, &err), PL_OK);
        assert_int_equal(a.hash, b.hash);
        pl_lexicon_deinit(&b);
        assert_int_equal(pl_lexicon_make(seed + 1, count + 1, &b, &err), PL_OK);
        assert_int_not_equal(a.hash, b.hash);
        pl_lexicon_deinit(&a);
        pl_lexicon_deinit(&b);
    }
    assert_int_equal(pl_lexicon_make(seed, PL_LEXICON_MADE_MAX, &a, &err), PL_OK); /* of three syllables */
    assert_int_equal(a.bytes[0], 6);
    pl_lexicon_deinit(&a);
}

static void read_file(const char *text, uint32_t count, const char *sentence)
{
    pl_error err = {0};
    pl_lexicon l;
    const pl_status status = pl_lexicon_read(scratch_file("lexicon.txt", text, strlen(text)), count, &l, &err);
    if (!sentence) {
        assert_int_equal(status, PL_OK);
        check_lexicon(&l, count);
        pl_lexicon_deinit(&l);
        return;
    }
    assert_int_equal(status, PL_E_DATA);
    if (!strstr(err.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

static void test_files(void **state)
{
    (void)state;
    read_file("one\ntwo\r\n\nthree", 3, NULL);
    read_file("one\ntwo\none\n", 2, NULL); /* no more is read */
    read_file("\xef\xbb\xbf"
              "one\ntwo\n",
              2, NULL); /* behind a mark */
    read_file("one\ntwo\none\n", 3, "lexicon.txt:3: the word one is there twice");
    read_file("one\ntwo\n", 3, "has 2 words, and reading.words is 3");
    read_file("", 1, "has no words");
    read_file("\n\r\n\n", 1, "has no words");
    read_file("one two\n", 1, "lexicon.txt:1: is no word");
    read_file("one\ngr\xc3\xbc\xc3\x9f\n", 2, "lexicon.txt:2: is no word");
    read_file("12345678901234567890123456789012\n", 1, "is no word");
    pl_error err = {0};
    pl_lexicon l;
    assert_int_equal(pl_lexicon_read("/nowhere/words", 1, &l, &err), PL_E_DATA);
}

/* ---- pages ---- */

static pl_reading *open_setup(pl_reading_setup s, uint32_t words, pl_error *err)
{
    void *memory = pl_alloc(1, file.bytes);
    pl_reading *r = NULL;
    assert_non_null(memory);
    assert_int_equal(pl_font_read(&file, memory, &s.font, err), PL_OK);
    assert_int_equal(pl_lexicon_make(seed, words, &s.lexicon, err), PL_OK);
    return pl_reading_open(&s, &r, err) == PL_OK ? r : NULL;
}

static pl_reading *open_reading(uint32_t words, uint64_t pages, double held_out, uint32_t image_size, pl_error *err)
{
    const pl_reading_setup s = {
        .pages = pages, .seed = seed, .held_out = held_out, .image_size = image_size, .capsules = 12, .batch = 5};
    return open_setup(s, words, err);
}

typedef struct batch {
    uint8_t *pages;
    int32_t *labels;
    uint64_t counted;
} batch;

/* A step as micro-batches of so many. */
static batch fill_step(const pl_reading *r, pl_part part, uint64_t step, uint32_t micro)
{
    const uint32_t size = r->setup.image_size, trips = (r->source.batch + micro - 1) / micro;
    const size_t page = (size_t)size * size;
    pl_error err;
    pl_source_layout l;
    assert_int_equal(r->source.kind->describe(&r->source, micro, &l, &err), PL_OK);
    assert_int_equal(l.port[0].bytes, micro * page);
    assert_int_equal(l.port[1].bytes, micro * 12 * sizeof(int32_t));
    void *scratch = aligned_alloc(64, (l.scratch_bytes + 63) / 64 * 64);
    memset(scratch, 0, l.scratch_bytes);
    r->source.kind->prepare(&r->source, scratch);
    batch b = {malloc(trips * micro * page), malloc((size_t)trips * micro * 12 * sizeof(int32_t)), 0};
    for (uint32_t i = 0; i < trips; i++) {
        pl_slot slot = {.ports = 2, .part = part, .step = step, .micro = i, .micro_count = trips, .rows = micro};
        slot.port[0].at = b.pages + i * micro * page;
        slot.port[1].at = b.labels + (size_t)i * micro * 12;
        assert_int_equal(r->source.kind->fill(&r->source, scratch, &slot, &err), PL_OK);
        b.counted += slot.counted;
    }
    free(scratch);
    return b;
}

static void release(batch b)
{
    free(b.pages);
    free(b.labels);
}

/* The page that has these labels on it, drawn by hand; and its words are as many as the page takes. */
static void check_page(const pl_reading *r, const uint8_t *page, const int32_t *label)
{
    char text[12 * PL_LEXICON_WORD_BYTES] = "";
    static pl_page_lines lines;
    pl_page_remarks remarks;
    pl_error err;
    uint64_t bytes = pl_drawer_bytes(&r->geometry);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    uint8_t *drawn = malloc((size_t)r->setup.image_size * r->setup.image_size);
    pl_drawer *d;
    int words = 0;
    for (; words < 12 && label[words] >= 0; words++)
        sprintf(text + strlen(text), "%s%s", words ? " " : "", r->setup.lexicon.word[label[words]]);
    for (int k = words; k < 12; k++) assert_int_equal(label[k], -1);
    assert_int_equal(pl_drawer_open(r->draw.functions, &r->geometry, &r->setup.font, memory, bytes, &d, &err), PL_OK);
    pl_draw_page(d, text, strlen(text), drawn, &remarks);
    assert_int_equal(remarks.truncated_bytes, 0);
    assert_memory_equal(drawn, page, (size_t)r->setup.image_size * r->setup.image_size);
    pl_page_lay_out(text, strlen(text), r->columns, r->rows, &lines);
    if (words < 12) { /* one more, as short as they are, has no place on the last line */
        assert_int_equal(lines.rows, r->rows);
        assert_true(lines.length[lines.rows - 1] + 1 + 4 > r->columns);
    }
    pl_drawer_close(d);
    free(memory);
    free(drawn);
}

static void test_pages_are_read(void **state)
{
    (void)state;
    NEEDS_MODULE();
    static const uint32_t sizes[] = {64, 112, 224};
    pl_error err = {0};
    for (int s = 0; s < 3; s++) {
        pl_reading *r = open_reading(50, 200, 0.2, sizes[s], &err);
        if (!r) fail_msg("%s", err.text);
        const size_t page = (size_t)sizes[s] * sizes[s];
        for (uint64_t step = 0; step < 3; step++) {
            batch whole = fill_step(r, PL_PART_TRAIN, step, 5), parts = fill_step(r, PL_PART_TRAIN, step, 2);
            assert_memory_equal(whole.pages, parts.pages, 5 * page);
            assert_memory_equal(whole.labels, parts.labels, 5 * 12 * sizeof(int32_t));
            assert_int_equal(whole.counted, parts.counted);
            assert_int_equal(whole.counted, r->source.kind->count(&r->source, PL_PART_TRAIN, step));
            for (int i = 0; i < 5; i++) check_page(r, whole.pages + i * page, whole.labels + i * 12);
            for (size_t i = 5 * page; i < 6 * page; i++) assert_int_equal(parts.pages[i], 255); /* empty paper */
            release(whole), release(parts);
        }
        pl_data_close(&r->data);
    }
}

/* ---- pages of which a policy says how they are drawn ---- */

enum { CHOSEN_SIDE = 96, CHOSEN_PIXELS = CHOSEN_SIDE * CHOSEN_SIDE, FEATURE = PL_POLICY_FEATURES + 1 };

static size_t text_of_page(const pl_reading *r, uint64_t number, char text[12 * PL_LEXICON_WORD_BYTES])
{
    uint32_t word[64];
    const uint32_t words = pl_reading_words(r, number, word);
    text[0] = 0;
    for (uint32_t i = 0; i < words; i++)
        sprintf(text + strlen(text), "%s%s", i ? " " : "", r->setup.lexicon.word[word[i]]);
    return strlen(text);
}

/* Each size by a drawer of its own: 12 pixels on lines of 16, and up to 3 more or less of both. */
static void check_sizes(const pl_reading *r, const char *text, const uint8_t *pages)
{
    static uint8_t drawn[CHOSEN_PIXELS];
    pl_page_remarks remarks;
    pl_error err;
    for (int k = 0; k < PL_POLICY_SIZES; k++) {
        const uint32_t more = (uint32_t)k - 3;
        const pl_page_geometry g = {CHOSEN_SIDE, 12 + more, 10, 16 + more, true};
        void *memory = aligned_alloc(64, (pl_drawer_bytes(&g) + 63) / 64 * 64);
        pl_drawer *d;
        assert_int_equal(pl_drawer_open(r->draw.functions, &g, &r->setup.font, memory, pl_drawer_bytes(&g), &d, &err),
                         PL_OK);
        pl_draw_page(d, text, strlen(text), drawn, &remarks);
        assert_memory_equal(drawn, pages + k * CHOSEN_PIXELS, CHOSEN_PIXELS);
        pl_drawer_close(d);
        free(memory);
    }
}

/* The mean of the vectors of " ab", "abc", … "yz ", in double. */
static void check_feature(const char *text, const float *feature)
{
    char all[12 * PL_LEXICON_WORD_BYTES + 2];
    const int windows = sprintf(all, " %s ", text) - 2;
    const pl_philox random = pl_philox_init(seed, pl_stream_id("data/trigrams"));
    double sum[PL_POLICY_FEATURES] = {0};
    for (int i = 0; i < windows; i++) {
        float vector[PL_POLICY_FEATURES];
        pl_philox_normal_f32(&random, 0, XXH64(all + i, 3, 0), 0, PL_POLICY_FEATURES, vector);
        for (int k = 0; k < PL_POLICY_FEATURES; k++) sum[k] += (double)vector[k];
    }
    for (int k = 0; k < PL_POLICY_FEATURES; k++) assert_true(fabs(sum[k] / windows - (double)feature[k]) < 1e-5);
    assert_true(feature[PL_POLICY_FEATURES] == 1);
}

static void test_all_sizes(void **state)
{
    (void)state;
    NEEDS_MODULE();
    enum { ROWS = 5 };
    static uint8_t pages[ROWS * PL_POLICY_SIZES * CHOSEN_PIXELS];
    static float feature[ROWS * FEATURE];
    pl_error err = {0};
    pl_source_layout l;
    pl_reading *r = open_setup((pl_reading_setup){.pages = 60,
                                                  .seed = seed,
                                                  .held_out = 0.3,
                                                  .image_size = CHOSEN_SIDE,
                                                  .capsules = 12,
                                                  .batch = ROWS,
                                                  .counts_pages = true,
                                                  .chooses = true},
                               40, &err);
    if (!r) fail_msg("%s", err.text);
    const uint64_t last = r->source.steps_per_epoch[1] - 1;
    assert_int_equal(r->source.kind->describe(&r->source, ROWS, &l, &err), PL_OK);
    assert_int_equal(l.ports, 2);
    assert_int_equal(l.port[0].bytes, sizeof pages);
    assert_int_equal(l.port[1].bytes, sizeof feature);
    void *scratch = aligned_alloc(64, (l.scratch_bytes + 63) / 64 * 64);
    memset(scratch, 0, l.scratch_bytes);
    r->source.kind->prepare(&r->source, scratch);
    for (uint64_t step = 0; step <= last; step += last ? last : 1) {
        pl_slot slot = {.ports = 2, .part = PL_PART_VALIDATION, .step = step, .micro_count = 1, .rows = ROWS};
        slot.port[0].at = pages, slot.port[1].at = feature;
        assert_int_equal(r->source.kind->fill(&r->source, scratch, &slot, &err), PL_OK);
        const uint64_t left = r->count[1] - step * ROWS, rows = left < ROWS ? left : ROWS;
        assert_int_equal(slot.counted, rows);
        for (uint64_t i = 0; i < ROWS; i++) {
            char text[12 * PL_LEXICON_WORD_BYTES];
            if (i < rows) {
                text_of_page(r, r->page[1][step * ROWS + i], text);
                check_sizes(r, text, pages + i * PL_POLICY_SIZES * CHOSEN_PIXELS);
                check_feature(text, feature + i * FEATURE);
            } else { /* no page */
                for (int k = 0; k < FEATURE; k++) assert_true(feature[i * FEATURE + (uint64_t)k] == 0);
            }
        }
    }
    free(scratch);
    pl_data_close(&r->data);
    assert_null(open_setup(
        (pl_reading_setup){.pages = 60, .seed = seed, .image_size = 38, .capsules = 12, .batch = ROWS, .chooses = true},
        40, &err));
}

/* Pages by what is on them. */
static void test_parts(void **state)
{
    (void)state;
    NEEDS_MODULE();
    enum { PAGES = 400 };
    pl_error err = {0};
    pl_reading *r = open_reading(300, PAGES, 0.25, 224, &err);
    if (!r) fail_msg("%s", err.text);
    int seen[PAGES] = {0};
    for (int part = 0; part < 2; part++)
        for (uint64_t i = 0; i < r->count[part]; i++) seen[r->page[part][i]] += part + 1;
    for (int i = 0; i < PAGES; i++) assert_in_range(seen[i], 1, 2);
    assert_int_equal(r->count[0] + r->count[1], PAGES);
    assert_in_range(r->count[1], PAGES / 8, PAGES * 3 / 8); /* 100, give or take six deviations */
    /* an epoch is the count of its part, whatever the order: the words of all its steps, of whole epochs, add up */
    uint64_t words = 0, in_steps = 0;
    uint32_t word[64];
    for (uint64_t i = 0; i < r->count[1]; i++) words += pl_reading_words(r, r->page[1][i], word);
    for (uint64_t step = 0; step < r->source.steps_per_epoch[1]; step++)
        in_steps += r->source.kind->count(&r->source, PL_PART_VALIDATION, step);
    assert_int_equal(words, in_steps);
    words = in_steps = 0;
    for (uint64_t i = 0; i < r->count[0]; i++) words += 5 * pl_reading_words(r, r->page[0][i], word);
    for (uint64_t step = 0; step < r->count[0]; step++) /* five epochs */
        in_steps += r->source.kind->count(&r->source, PL_PART_TRAIN, step);
    assert_int_equal(words, in_steps);
    pl_data_close(&r->data);
}

static void test_refused(void **state)
{
    (void)state;
    NEEDS_MODULE();
    pl_error err = {0};
    assert_null(open_reading(7000, 100, 0.5, 57, &err)); /* three syllables, and lines of five letters */
    assert_non_null(strstr(err.text, "longer than a line, which has 5 letters"));
    assert_null(open_reading(50, 100, 0.5, 41, &err));
    assert_non_null(strstr(err.text, "longer than a line, which has 3 letters"));
    assert_null(open_reading(50, 1, 0.5, 64, &err));
    assert_non_null(strstr(err.text, "leaves none"));
}

static int open_module(void **state)
{
    pl_error err;
    if (pl_draw_load("this test", &module, &err) != PL_OK || pl_font_find(NULL, &file, &err) != PL_OK) {
        printf("skipped: %s\n", err.text);
        return scratch_make(state);
    }
    is_there = true;
    return scratch_make(state);
}

static int close_module(void **state)
{
    pl_module_unload(&module);
    return scratch_remove(state);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_made),           cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_pages_are_read), cmocka_unit_test(test_all_sizes),
                                       cmocka_unit_test(test_parts),          cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, open_module, close_module);
}

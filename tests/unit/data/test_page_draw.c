/* Pages: the fast way shows what shaping shows, letter by letter and in random lines; a page depends on its text alone,
 * whatever was drawn before it, by whom, and where memory was refused; nothing that a page takes stays taken; bad fonts
 * are refused by a sentence. Pixels are held against Pillow's by tests/pages/pages.py. */
#include "unit/data/scratch.h"

#include "base/module.h"
#include "base/utf8.h"
#include "data/pages/draw.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIZE = 224, PIXELS = SIZE * SIZE, TEXT = 4096 };

static scratch_random numbers;
static pl_error err;
static pl_module module;
static pl_font_file file;
static pl_font font;
static pl_page_geometry geometry;
static bool is_there;

static pl_drawer *open_drawer(void **memory)
{
    pl_drawer *d;
    *memory = malloc(pl_drawer_bytes(&geometry));
    assert_non_null(*memory);
    if (pl_drawer_open(module.functions, &geometry, &font, *memory, pl_drawer_bytes(&geometry), &d, &err) != PL_OK)
        fail_msg("%s", err.text);
    return d;
}

static void close_drawer(pl_drawer *d, void *memory)
{
    pl_drawer_close(d);
    free(memory);
}

static pl_page_remarks draw(pl_drawer *d, const char *text, uint8_t page[PIXELS])
{
    pl_page_remarks r;
    pl_draw_page(d, text, strlen(text), page, &r);
    return r;
}

static int open_module(void **state)
{
    (void)state;
    geometry = pl_page_geometry_of(SIZE);
    if (pl_draw_load("this test", &module, &err) != PL_OK || pl_font_find(NULL, &file, &err) != PL_OK) {
        printf("skipped: %s\n", err.text);
        return 0;
    }
    void *bytes = malloc(file.bytes);
    if (!bytes || pl_font_read(&file, bytes, &font, &err) != PL_OK) return -1;
    is_there = true;
    return 0;
}

static int close_module(void **state)
{
    (void)state;
    free((void *)font.data);
    pl_module_unload(&module);
    return 0;
}

#define NEEDS_MODULE()                                                                                                 \
    if (!is_there) skip()

/* Sanitizers and valgrind serve the libraries in place of the module. */
static bool module_serves(void) { return pl_module_can_own_first() && !scratch_instrumented(); }

/* ---- texts ---- */

typedef struct letters {
    uint32_t first, last;
} letters;

static const letters nasty[] = {
    {0x00, 0x1b},     {0x20, 0x7f},       {0xa0, 0x24f},     {0x300, 0x36f},   {0x590, 0x5ff},   {0x600, 0x6ff},
    {0x900, 0x97f},   {0xe00, 0xe7f},     {0xf00, 0xfff},    {0x1000, 0x109f}, {0x1100, 0x11ff}, {0x1780, 0x17ff},
    {0x1800, 0x18af}, {0x200b, 0x2028},   {0x202a, 0x206f},  {0x4e00, 0x4eff}, {0xac00, 0xacff}, {0xfb50, 0xfdff},
    {0xfe00, 0xfe0f}, {0x1f300, 0x1f6ff}, {0xe0100, 0xe01ef}};
/* Those of the fast way and some that it leaves to Raqm. */
static const letters usual[] = {{0x20, 0x7e},     {0x20, 0x7e},     {0xa0, 0x24f},     {0x370, 0x52f},
                                {0x2010, 0x205e}, {0x2190, 0x27bf}, {0x3041, 0x30ff},  {0x4e00, 0x9fff},
                                {0xac00, 0xd7a3}, {0xff01, 0xff5e}, {0x1f300, 0x1f64f}};

/* Few or many scripts at once. */
static void make_text(char text[TEXT], const letters *from, size_t count, int length)
{
    const uint64_t some = 1 + scratch_next(&numbers, 3), first = scratch_next(&numbers, count);
    const bool all = scratch_next(&numbers, 2);
    size_t n = 0;
    for (int i = 0; i < length; i++) {
        const letters *l = &from[all ? scratch_next(&numbers, count) : (first + scratch_next(&numbers, some)) % count];
        const uint32_t c = l->first + (uint32_t)scratch_next(&numbers, l->last - l->first + 1);
        n += pl_utf8_write(scratch_next(&numbers, 8) == 0 ? ' ' : c == 0 ? 1 : c, (uint8_t *)text + n);
    }
    text[n] = 0;
}

/* ---- tests ---- */

static void check_same(pl_drawer *fast, pl_drawer *shaped, const char *text, uint32_t c)
{
    static uint8_t page[2][PIXELS];
    const pl_page_remarks a = draw(fast, text, page[0]), b = draw(shaped, text, page[1]);
    if (memcmp(page[0], page[1], PIXELS) != 0 || memcmp(&a, &b, sizeof a) != 0)
        fail_msg("the fast way differs at U+%04X: %s", c, text);
}

/* Every letter that could come that way, between others; of those without a glyph some. */
static void test_fast_letters(void **state)
{
    (void)state;
    NEEDS_MODULE();
    void *memory[2];
    pl_drawer *fast = open_drawer(&memory[0]), *shaped = open_drawer(&memory[1]);
    pl_pen_facts facts;
    char text[TEXT];
    pl_drawer_tell(fast, &facts);
    if (!facts.has_fast_way) skip(); /* the font of this system is another version */
    pl_drawer_shape_all(shaped);
    size_t n = 0;
    for (uint32_t c = 0x21, last = 0x21; c < 0x20000; c += c < 0x2800 ? 1 : 1 + (uint32_t)scratch_next(&numbers, 199)) {
        if (c >= 0xd800 && c < 0xe000) c = 0xe000;
        if (c == 0x7f) c = 0xa0;
        n += (size_t)sprintf(text + n, "i");
        n += pl_utf8_write(c, (uint8_t *)text + n);
        text[n] = 0;
        if (n < 300 && (c & 15) != 15) continue;
        check_same(fast, shaped, text, last);
        n = 0, last = c;
    }
    for (int i = 0; i < 50; i++) {
        make_text(text, usual, sizeof usual / sizeof *usual, 350);
        check_same(fast, shaped, text, 0);
    }
    close_drawer(fast, memory[0]);
    close_drawer(shaped, memory[1]);
}

static const char known[] =
    "Known: \u0645\u0631\u062d\u0628\u0627 e\u0301 \u05e9\u05c1 abc\n\tdef f(x): return \u4f60 \U0001f600 "
    "and a long line of words";

static void test_depends_on_its_text(void **state)
{
    (void)state;
    NEEDS_MODULE();
    static uint8_t first[PIXELS], page[PIXELS];
    void *memory[2];
    char text[TEXT];
    const pl_draw_module *functions = module.functions;
    uint64_t used, used_after, peak, refused;
    pl_pen_facts before, after;
    pl_drawer *d = open_drawer(&memory[0]), *other = open_drawer(&memory[1]);
    const pl_page_remarks remarks = draw(d, known, first);
    assert_int_equal(remarks.unshaped_lines, 0);
    assert_true(remarks.missing_glyphs > 0);
    functions->memory(&used, &peak, &refused);
    pl_drawer_tell(d, &before);
    for (int i = 0; i < 200; i++) {
        make_text(text, nasty, sizeof nasty / sizeof *nasty, 400);
        assert_int_equal(draw(i % 2 ? d : other, text, page).unshaped_lines, 0);
        if (i % 20) continue;
        const pl_page_remarks again = draw(d, known, page);
        assert_memory_equal(&again, &remarks, sizeof again);
        assert_memory_equal(page, first, PIXELS);
    }
    close_drawer(other, memory[1]); /* what the libraries share lay in neither */
    draw(d, known, page);
    assert_memory_equal(page, first, PIXELS);
    pl_drawer_tell(d, &after);
    functions->memory(&used_after, &peak, &refused);
    assert_int_equal(after.font_bytes, before.font_bytes);
    assert_int_equal(after.outlived, 0);
    assert_int_equal(used_after, used);
    assert_int_equal(refused, 0);
    if (module_serves()) assert_true(after.shaping_peak_bytes > 10000 && used > 0);
    close_drawer(d, memory[0]);
}

/* Where a request is refused, the line is drawn without shaping and counted; the next page is as ever. */
static void test_refused_memory(void **state)
{
    (void)state;
    NEEDS_MODULE();
    if (!module_serves()) skip();
    static uint8_t first[PIXELS], page[PIXELS];
    void *memory;
    pl_drawer *d = open_drawer(&memory);
    pl_page_remarks r = draw(d, known, first);
    uint64_t n = 1;
    do {
        pl_drawer_refuse(d, n);
        r = draw(d, known, page);
        pl_drawer_refuse(d, 0);
        if (r.unshaped_lines == 0) assert_memory_equal(page, first, PIXELS);
        assert_int_equal(draw(d, known, page).unshaped_lines, 0);
        assert_memory_equal(page, first, PIXELS);
    } while (r.unshaped_lines > 0 && (n += n < 40 ? 1 : 5) < 10000);
    assert_true(n > 50 && n < 10000);
    close_drawer(d, memory);
}

static void test_any_bytes(void **state)
{
    (void)state;
    NEEDS_MODULE();
    static uint8_t page[PIXELS];
    static char text[1 << 20];
    void *memory;
    pl_page_remarks r;
    pl_drawer *d = open_drawer(&memory);
    assert_int_equal(pl_drawer_columns(d), 29);
    assert_int_equal(pl_drawer_rows(d), 12);
    for (int c = 0; c < 256; c += c == 32 || c == 64 ? 1 : 31) {
        memset(text, c, sizeof text);
        pl_draw_page(d, text, sizeof text, page, &r);
        assert_int_equal(r.invalid_bytes, c < 0x80 ? 0 : 29 * 12);
        assert_int_equal(r.missing_glyphs > 0, c == 0); /* U+001F is white space to Python */
    }
    assert_int_equal(draw(d, "a\u2066b\nc\u2029d\n\u2067\u2029\u05d0", page).unshaped_lines,
                     1); /* see breaks_fribidi */
    pl_draw_page(d, NULL, 0, page, &r);
    for (int i = 0; i < PIXELS; i++) assert_int_equal(page[i], 255);
    assert_true(r.lines == 1 && r.truncated_bytes == 0);
    close_drawer(d, memory);
}

static void test_sizes(void **state)
{
    (void)state;
    NEEDS_MODULE();
    static uint8_t page[PL_PAGE_SIZE_MAX * PL_PAGE_SIZE_MAX + 1];
    pl_page_remarks r;
    for (uint32_t size = PL_PAGE_SIZE_MIN; size <= PL_PAGE_SIZE_MAX; size += size < 66 ? 5 : 166) {
        const pl_page_geometry g = pl_page_geometry_of(size);
        void *memory = malloc(pl_drawer_bytes(&g));
        pl_drawer *d;
        assert_non_null(memory);
        assert_int_equal(pl_drawer_open(module.functions, &g, &font, memory, pl_drawer_bytes(&g), &d, &err), PL_OK);
        assert_int_equal(pl_drawer_columns(d), (size - 20) / 7);
        assert_int_equal(pl_drawer_rows(d), (size - 20) / 16);
        page[size * size] = 77;
        pl_draw_page(d, known, strlen(known), page, &r);
        assert_int_equal(page[size * size], 77);
        close_drawer(d, memory);
    }
    pl_page_geometry g = pl_page_geometry_of(PL_PAGE_SIZE_MIN - 1);
    assert_int_equal(pl_page_geometry_check(&g, &err), PL_E_USAGE);
    g = pl_page_geometry_of(PL_PAGE_SIZE_MAX + 1);
    assert_int_equal(pl_page_geometry_check(&g, &err), PL_E_USAGE);
    g = pl_page_geometry_of(SIZE), g.padding_px = 112;
    assert_int_equal(pl_page_geometry_check(&g, &err), PL_E_USAGE);
}

/* No font, half of one, one with wrong bytes: a sentence, or a page. */
static void test_bad_fonts(void **state)
{
    (void)state;
    pl_font_file f;
    assert_int_equal(pl_font_find("/nowhere/font.ttf", &f, &err), PL_E_DATA);
    NEEDS_MODULE();
    static uint8_t page[PIXELS];
    uint8_t *copy = malloc(font.bytes);
    void *memory = malloc(pl_drawer_bytes(&geometry));
    pl_drawer *d;
    int opened = 0;
    assert_true(copy && memory);
    for (int i = 0; i < 9; i++) {
        pl_font bad = {copy, i % 3 == 0 ? scratch_next(&numbers, font.bytes) : font.bytes, 0};
        memcpy(copy, font.data, font.bytes);
        for (int j = 0; j < 300 && i % 3; j++) /* behind the list of tables, which is found out at once */
            copy[400 + scratch_next(&numbers, i % 3 == 1 ? 20000 : font.bytes - 400)] =
                (uint8_t)scratch_next(&numbers, 256);
        pl_status status =
            pl_drawer_open(module.functions, &geometry, &bad, memory, pl_drawer_bytes(&geometry), &d, &err);
        assert_true(status == PL_OK || (status == PL_E_DATA && strlen(err.text) > 20));
        if (status != PL_OK) continue;
        draw(d, known, page);
        pl_drawer_close(d);
        opened++;
    }
    printf("%d damaged fonts could be drawn with\n", opened);
    free(memory);
    free(copy);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_letters),   cmocka_unit_test(test_depends_on_its_text),
        cmocka_unit_test(test_refused_memory), cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_bad_fonts)};
    numbers = (scratch_random){.key = pl_philox_init(test_seed_said(argc, argv), 22)};
    return cmocka_run_group_tests(tests, open_module, close_module);
}

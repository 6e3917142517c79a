/* A text as a page: its lines, and, where the module and the font are there, its pixels. Any bytes make a page, the
 * same one each time and by both ways, with no more memory than the drawer has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/pages/draw.h"
#include "data/pages/layout.h"
#include "fuzz/fuzz.h"

enum { SIZE = 224, PIXELS = SIZE * SIZE };

static pl_drawer *drawers[2]; /* the second shapes every line */

static pl_drawer *open_drawer(const pl_draw_module *module, const pl_font *font)
{
    const pl_page_geometry g = pl_page_geometry_of(SIZE);
    pl_error err = {0};
    pl_drawer *d;
    void *memory = malloc(pl_drawer_bytes(&g));
    FUZZ_CHECK(memory, "no memory");
    FUZZ_CHECK(pl_drawer_open(module, &g, font, memory, pl_drawer_bytes(&g), &d, &err) == PL_OK, "%s", err.text);
    return d;
}

/* Both stay open for all inputs, as in a run. */
static void open_once(void)
{
    static bool is_tried;
    static pl_module module;
    static pl_font_file file;
    static pl_font font;
    pl_error err = {0};
    if (is_tried) return;
    is_tried = true;
    if (pl_draw_load("this target", &module, &err) != PL_OK || pl_font_find(NULL, &file, &err) != PL_OK) {
        fprintf(stderr, "lines only: %s\n", err.text);
        return;
    }
    static void *bytes;
    bytes = malloc(file.bytes);
    FUZZ_CHECK(bytes && pl_font_read(&file, bytes, &font, &err) == PL_OK, "%s", err.text);
    for (int i = 0; i < 2; i++) drawers[i] = open_drawer(module.functions, &font);
    pl_drawer_shape_all(drawers[1]);
}

static void check_lines(const char *text, size_t size, uint32_t columns, uint32_t rows)
{
    static pl_page_lines l;
    pl_page_lay_out(text, size, columns, rows, &l);
    FUZZ_CHECK(l.rows >= 1 && l.rows <= rows, "%u lines of %u", l.rows, rows);
    FUZZ_CHECK(l.invalid_bytes + l.truncated_bytes <= size, "more bytes are missed than there are");
    for (uint32_t i = 0; i < l.rows; i++) {
        FUZZ_CHECK(l.length[i] <= columns, "line %u has %u letters", i, l.length[i]);
        for (uint32_t j = 0; j < l.length[i]; j++)
            FUZZ_CHECK(l.text[i][j] <= 0x10ffff && l.text[i][j] != '\n' && l.text[i][j] != '\t', "U+%04X",
                       l.text[i][j]);
    }
}

/* Lines with isolates (U+2066 to U+2069) and separators of paragraphs are not shaped. */
static void check_page(const char *text, size_t size)
{
    static uint8_t page[3][PIXELS];
    pl_page_remarks r[3];
    pl_pen_facts facts;
    for (int i = 0; i < 3; i++) pl_draw_page(drawers[i & 1], text, size, page[i], &r[i]);
    FUZZ_CHECK(memcmp(page[0], page[2], PIXELS) == 0 && memcmp(&r[0], &r[2], sizeof *r) == 0,
               "a page differs from itself");
    FUZZ_CHECK(memcmp(page[0], page[1], PIXELS) == 0 && memcmp(&r[0], &r[1], sizeof *r) == 0, "the fast way differs");
    FUZZ_CHECK(r[0].unshaped_lines == 0 || memmem(text, size, "\xe2\x81", 2), "%llu lines were not shaped",
               (unsigned long long)r[0].unshaped_lines);
    pl_drawer_tell(drawers[1], &facts);
    FUZZ_CHECK(facts.outlived == 0, "something outlived its line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    open_once();
    check_lines(text, size, 29, 12);
    check_lines(text, size, 1 + (uint32_t)size % 7, 1 + (uint32_t)size % 5);
    check_lines(text, size, PL_PAGE_COLUMNS_MAX, PL_PAGE_ROWS_MAX);
    if (drawers[0]) check_page(text, size);
    return 0;
}

/* What tests/pages/pages.py compares with other programs: texts on standard input, each behind its length in bytes and
 * a line break.
 *
 *   plimsoll_pages lines COLUMNS ROWS     of each text its lines, in UTF-8, behind their number and the bytes left out
 *   plimsoll_pages draw SIZE whole|fraction [shaped]
 *                                         of each text the page and the four numbers of what was remarked; `shaped`:
 *                                         without the fast way
 *   plimsoll_pages time SIZE whole|fraction [shaped]
 *                                         all texts, a hundred times, by one thread */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "data/pages/draw.h"
#include "data/pages/layout.h"

static char *read_text(size_t *bytes)
{
    if (scanf("%zu", bytes) != 1 || getchar() != '\n') return NULL;
    char *text = malloc(*bytes + 1);
    if (text && fread(text, 1, *bytes, stdin) == *bytes) return text;
    exit(1);
}

static int print_lines(uint32_t columns, uint32_t rows)
{
    static pl_page_lines l;
    size_t bytes;
    for (char *text; (text = read_text(&bytes)); free(text)) {
        pl_page_lay_out(text, bytes, columns, rows, &l);
        printf("%" PRIu32 " %" PRIu64 "\n", l.rows, l.truncated_bytes);
        for (uint32_t i = 0; i < l.rows; i++) {
            uint8_t c[4];
            for (uint32_t j = 0; j < l.length[i]; j++) fwrite(c, 1, pl_utf8_write(l.text[i][j], c), stdout);
            putchar('\n');
        }
    }
    return 0;
}

static int draw_pages(pl_drawer *d, uint32_t size)
{
    static uint8_t page[PL_PAGE_SIZE_MAX * PL_PAGE_SIZE_MAX];
    pl_page_remarks r;
    size_t bytes;
    for (char *text; (text = read_text(&bytes)); free(text)) {
        pl_draw_page(d, text, bytes, page, &r);
        fwrite(page, 1, (size_t)size * size, stdout);
        fwrite(&r, sizeof r, 1, stdout);
    }
    return 0;
}

static int time_pages(pl_drawer *d)
{
    static uint8_t page[PL_PAGE_SIZE_MAX * PL_PAGE_SIZE_MAX];
    pl_page_remarks r;
    size_t bytes;
    uint64_t pages = 0;
    clock_t spent = 0;
    for (char *text; (text = read_text(&bytes)); free(text)) {
        clock_t start = clock();
        for (int i = 0; i < 100; i++) pl_draw_page(d, text, bytes, page, &r), pages++;
        spent += clock() - start;
    }
    printf("%" PRIu64 " pages in %.3f s\n", pages, (double)spent / CLOCKS_PER_SEC);
    return 0;
}

static int fail(const pl_error *err) { return fprintf(stderr, "%s\n", err->text), 1; }

static int draw(const char *what, uint32_t size, bool whole, bool shaped)
{
    static pl_font_file file;
    pl_error err = {0};
    pl_module module;
    pl_font font;
    pl_drawer *d;
    pl_page_geometry g = pl_page_geometry_of(size);
    g.whole_advances = whole;
    if (pl_draw_load("this test", &module, &err) || pl_font_find(NULL, &file, &err)) return fail(&err);
    void *memory = malloc(pl_drawer_bytes(&g)), *bytes = malloc(file.bytes);
    if (!memory || !bytes || pl_font_read(&file, bytes, &font, &err) ||
        pl_drawer_open(module.functions, &g, &font, memory, pl_drawer_bytes(&g), &d, &err))
        return fail(&err);
    if (shaped) pl_drawer_shape_all(d);
    int code = strcmp(what, "time") == 0 ? time_pages(d) : draw_pages(d, size);
    pl_pen_facts f;
    uint64_t used, peak, refused;
    pl_drawer_tell(d, &f);
    ((const pl_draw_module *)module.functions)->memory(&used, &peak, &refused);
    fprintf(stderr,
            "columns %" PRIu32 ", rows %" PRIu32 "; font %" PRIu64 " of at most %" PRIu64
            " bytes, shaping at most %" PRIu64 ", glyphs %" PRIu64 ", outlived %" PRIu64 "; the module %" PRIu64
            " of at most %" PRIu64 ", refused %" PRIu64 "\n",
            pl_drawer_columns(d), pl_drawer_rows(d), f.font_bytes, f.font_peak_bytes, f.shaping_peak_bytes,
            f.glyph_bytes, f.outlived, used, peak, refused);
    pl_drawer_close(d);
    free(bytes);
    free(memory);
    pl_module_unload(&module);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    const uint32_t first = (uint32_t)atoi(argv[2]);
    if (strcmp(argv[1], "lines") == 0) return print_lines(first, (uint32_t)atoi(argv[3]));
    return draw(argv[1], first, strcmp(argv[3], "whole") == 0, argc > 4);
}

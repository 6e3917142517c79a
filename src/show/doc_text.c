/* A document as text: columns as wide as their widest cell, words to the left, numbers to the right.
 *
 * Words of the last column that do not fit the line go on below, where they began; where there is little room for them,
 * they stand in lines of their own. A table whose numbers alone are wider than the line becomes a list: a row's first
 * cell in a line, and the others with their titles below it. */
#include <string.h>

#include "show/cell.h"
#include "show/item.h"
#include "show/render.h"

enum {
    GAP = 2,          /* spaces between columns */
    WORDS_MIN = 18,   /* room for words of the last column, else they stand below */
    WORDS_INDENT = 6, /* there */
    LIST_INDENT = 4,
    LANES_MAX = 2 * PL_DOC_COLUMNS_MAX
};

/* A column of text: of a column of bytes there are two. */
typedef struct lane {
    const pl_doc_column *column;
    int cell;
    bool megabytes;
    size_t width;
} lane;

typedef struct grid {
    const pl_doc *d;
    const pl_text_form *form;
    const pl_doc_item *table;
    pl_str *out;
    lane lane[LANES_MAX];
    int count;
    bool titled;
} grid;

typedef struct row {
    const pl_doc_item *cell[PL_DOC_COLUMNS_MAX];
    unsigned flags;
} row;

/* ---- rows ---- */

static const pl_doc_item *read_row(const pl_doc *d, const pl_doc_item *begin, row *r)
{
    int count = 0;
    const pl_doc_item *i = begin;
    *r = (row){.flags = begin->flags};
    while ((i = pl_item_next(d, i)) && i->tag != PL_ITEM_ROW_END) {
        if (i->tag == PL_ITEM_TABLE)
            i = pl_item_end(d, i);
        else if (i->tag == PL_ITEM_CELL && !i->name && count < PL_DOC_COLUMNS_MAX)
            r->cell[count++] = i;
        if (!i) break;
    }
    return i;
}

static const char *cell_text(const lane *l, const row *r, char text[PL_CELL_BYTES])
{
    const pl_doc_item *cell = r->cell[l->cell];
    text[0] = 0;
    if (!cell) return text;
    return l->megabytes ? pl_cell_megabytes(cell, text) : pl_cell_format(l->column, cell, "-", text);
}

static const char *title_of(const lane *l, char clean[PL_CELL_BYTES])
{
    pl_text_clean(clean, PL_CELL_BYTES, l->megabytes ? "MB" : l->column->title);
    return clean;
}
static bool is_right(const lane *l) { return pl_cell_is_number(l->column->kind); }
static size_t columns_of(const char *text) { return pl_text_columns(text, strlen(text)); }
static size_t indent_of(const row *r, int k) { return k == 0 && r->flags & PL_DOC_INDENT ? 2 : 0; }

/* ---- measuring ---- */

static void find_lanes(grid *g)
{
    const pl_doc_column *columns = pl_item_columns(g->table);
    for (int k = 0; k < (int)g->table->value.count; k++) {
        if (columns[k].kind == PL_DOC_BAR) continue;
        g->titled |= columns[k].title[0] != 0;
        g->lane[g->count++] = (lane){.column = &columns[k], .cell = k, .width = columns_of(columns[k].title)};
        if (columns[k].kind == PL_DOC_BYTES)
            g->lane[g->count++] = (lane){.column = &columns[k], .cell = k, .megabytes = true, .width = 2};
    }
}

/* Lanes that no row fills go: their titles would stand over nothing. */
static void drop_empty(grid *g, const bool *filled)
{
    int kept = 0;
    for (int k = 0; k < g->count; k++)
        if (filled[k]) g->lane[kept++] = g->lane[k];
    g->count = kept;
}

static void drop_extra(grid *g)
{
    int kept = 0;
    for (int k = 0; k < g->count; k++)
        if (!g->lane[k].column->is_extra) g->lane[kept++] = g->lane[k];
    g->count = kept;
}

static void measure(grid *g)
{
    char text[PL_CELL_BYTES];
    bool filled[LANES_MAX] = {false};
    row r;
    find_lanes(g);
    for (const pl_doc_item *i = g->table; (i = pl_item_row(g->d, i));) {
        i = read_row(g->d, i, &r);
        for (int k = 0; k < g->count; k++) {
            size_t width = columns_of(cell_text(&g->lane[k], &r, text)) + indent_of(&r, k);
            filled[k] |= text[0] != 0;
            if (width > g->lane[k].width) g->lane[k].width = width;
        }
    }
    drop_empty(g, filled);
}

static size_t begin_of(const grid *g, int count)
{
    size_t begin = 0;
    for (int k = 0; k < count; k++) begin += g->lane[k].width + GAP;
    return begin;
}

/* ---- writing ---- */

static void paint(const grid *g, unsigned flags, bool on)
{
    if (!g->form->color || !(flags & (PL_DOC_STRONG | PL_DOC_TOTAL | PL_DOC_BAD))) return;
    pl_str_append(g->out, !on ? "\033[0m" : flags & PL_DOC_BAD ? "\033[1;31m" : "\033[1m");
}

/* Words of any length: a cell's text would be cut. column: where the cursor is. */
static void write_wrapped(const char *text, size_t column, size_t indent, size_t columns, pl_str *out)
{
    bool begun = false; /* a word stands in the line */
    size_t bytes;
    for (const char *at = text; *at; at += bytes + (at[bytes] == ' ')) {
        bytes = strcspn(at, " ");
        const size_t wide = pl_text_columns(at, bytes);
        if (begun && column + 1 + wide > columns) {
            pl_str_append(out, "\n");
            pl_str_pad(out, ' ', indent);
            column = indent, begun = false;
        }
        if (begun) pl_str_append(out, " ");
        pl_text_append(out, at, bytes, false);
        column += wide + begun, begun = true;
    }
}

static void write_words_below(const grid *g, const char *text, size_t begin, size_t owed)
{
    const bool fits = begin + WORDS_MIN <= g->form->columns;
    const size_t indent = fits ? begin : WORDS_INDENT;
    if (!fits) pl_str_append(g->out, "\n");
    pl_str_pad(g->out, ' ', fits ? owed : indent);
    write_wrapped(text, indent, indent, g->form->columns, g->out);
}

static size_t write_cell(const grid *g, const lane *l, const char *text, size_t indent, size_t owed)
{
    const size_t wide = columns_of(text) + indent, fill = l->width > wide ? l->width - wide : 0;
    if (!text[0]) return owed + l->width + GAP;
    pl_str_pad(g->out, ' ', owed + indent + (is_right(l) ? fill : 0));
    pl_str_append(g->out, text);
    return is_right(l) ? GAP : fill + GAP;
}

static void write_row(const grid *g, const row *r)
{
    char text[PL_CELL_BYTES];
    size_t owed = 0; /* spaces before the next cell: none are left at the end of a line */
    paint(g, r->flags, true);
    for (int k = 0; k < g->count; k++) {
        const lane *l = &g->lane[k];
        const pl_doc_item *cell = r->cell[l->cell];
        const size_t begin = begin_of(g, k);
        cell_text(l, r, text);
        const bool may_wrap = text[0] && cell->type == PL_CELL_WORDS && k > 0 && k + 1 == g->count && !is_right(l);
        if (may_wrap && begin + pl_text_columns(pl_item_text(cell), cell->text_bytes) > g->form->columns)
            write_words_below(g, pl_item_text(cell), begin, owed);
        else
            owed = write_cell(g, l, text, indent_of(r, k), owed);
    }
    paint(g, r->flags, false);
    pl_str_append(g->out, "\n");
}

static void write_titles(const grid *g)
{
    size_t owed = 0;
    char clean[PL_CELL_BYTES];
    for (int k = 0; k < g->count && g->titled; k++) {
        const char *title = title_of(&g->lane[k], clean);
        if (begin_of(g, k) + columns_of(title) > g->form->columns) break; /* of words that stand below */
        owed = write_cell(g, &g->lane[k], title, 0, owed);
    }
    if (g->titled) pl_str_append(g->out, "\n");
}

/* Under the numbers from the first to the last of them. */
static void write_rule(const grid *g)
{
    int first = 0, last = g->count - 1;
    while (first < g->count && !is_right(&g->lane[first])) first++;
    while (last > first && !is_right(&g->lane[last])) last--;
    if (first > last) return;
    pl_str_pad(g->out, ' ', begin_of(g, first));
    pl_str_pad(g->out, '-', begin_of(g, last) + g->lane[last].width - begin_of(g, first));
    pl_str_append(g->out, "\n");
}

/* ---- a list in place of a table that is too wide ---- */

static bool is_too_wide(const grid *g)
{
    const bool words_last = g->count > 1 && !is_right(&g->lane[g->count - 1]);
    const int numbers = words_last ? g->count - 1 : g->count;
    return numbers > 1 && begin_of(g, numbers - 1) + g->lane[numbers - 1].width > g->form->columns;
}

static void write_list_row(const grid *g, const row *r)
{
    char text[PL_CELL_BYTES], clean[PL_CELL_BYTES];
    size_t column = 0;
    paint(g, r->flags, true);
    pl_str_pad(g->out, ' ', indent_of(r, 0));
    pl_str_append(g->out, cell_text(&g->lane[0], r, text));
    paint(g, r->flags, false);
    for (int k = 1; k < g->count; k++) {
        const char *title = title_of(&g->lane[k], clean);
        if (!cell_text(&g->lane[k], r, text)[0]) continue;
        const size_t wide = columns_of(title) + (title[0] != 0) + columns_of(text);
        const bool is_new = column == 0 || column + GAP + wide > g->form->columns;
        pl_str_append(g->out, is_new ? "\n" : "");
        pl_str_pad(g->out, ' ', is_new ? LIST_INDENT : GAP);
        const size_t begin = is_new ? LIST_INDENT : column + GAP;
        pl_str_printf(g->out, "%s%s", title, title[0] ? " " : "");
        if (r->cell[g->lane[k].cell]->type == PL_CELL_WORDS)
            write_wrapped(pl_item_text(r->cell[g->lane[k].cell]), begin + wide - columns_of(text), LIST_INDENT,
                          g->form->columns, g->out);
        else
            pl_str_append(g->out, text);
        column = begin + wide;
    }
    pl_str_append(g->out, "\n");
}

static const pl_doc_item *write_table(const pl_doc *d, const pl_text_form *form, const pl_doc_item *table, pl_str *out)
{
    grid g = {.d = d, .form = form, .table = table, .out = out};
    row r;
    measure(&g);
    if (is_too_wide(&g)) drop_extra(&g);
    const bool list = is_too_wide(&g), any = pl_item_row(d, table) != NULL;
    if (!list && any) write_titles(&g);
    for (const pl_doc_item *i = table; (i = pl_item_row(d, i));) {
        i = read_row(d, i, &r);
        if (!list && r.flags & PL_DOC_TOTAL) write_rule(&g);
        if (list)
            write_list_row(&g, &r);
        else
            write_row(&g, &r);
    }
    return pl_item_end(d, table);
}

/* ---- everything else ---- */

static void write_heading(const pl_text_form *form, const char *text, pl_str *out)
{
    char clean[PL_CELL_BYTES];
    if (!text[0]) return;
    if (out->bytes) pl_str_append(out, "\n");
    if (form->color) pl_str_append(out, "\033[1;34m");
    pl_text_clean(clean, sizeof clean, text);
    pl_str_wrap(out, clean, strlen(clean), 0, form->columns);
    pl_str_append(out, form->color ? "\033[0m\n" : "\n");
}

static void write_title(const pl_text_form *form, const pl_doc_item *title, pl_str *out)
{
    char text[PL_CELL_BYTES];
    if (title->text_bytes == 0) return;
    pl_text_clean(text, sizeof text, pl_item_text(title));
    pl_str_printf(out, form->color ? "\033[1m%s%s\033[0m\n" : "%s%s\n", title->name ? title->name : "", text);
}

/* Every line of it is broken where the terminal would break it. */
static void write_paragraph(const pl_text_form *form, const pl_doc_item *item, pl_str *out)
{
    const size_t from = out->bytes;
    if (item->text_bytes == 0 || item->flags & PL_DOC_HIDDEN) return;
    const bool color = form->color && item->flags & (PL_DOC_GOOD | PL_DOC_BAD);
    if (color) pl_str_append(out, item->flags & PL_DOC_BAD ? "\033[1;31m" : "\033[32m");
    pl_text_append(out, pl_item_text(item), item->text_bytes, true);
    pl_str_fold(out, from, form->columns);
    if (color) pl_str_append(out, "\033[0m");
    if (out->bytes && !out->failed && pl_item_text(item)[item->text_bytes - 1] != '\n') pl_str_append(out, "\n");
}

/* Cards that follow each other stand under each other, their numbers to the right. */
static const pl_doc_item *write_cards(const pl_doc *d, const pl_text_form *form, const pl_doc_item *first, pl_str *out)
{
    size_t width = 0;
    const pl_doc_item *last = first;
    for (const pl_doc_item *i = first; i && i->tag == PL_ITEM_CARD; i = pl_item_next(d, i)) {
        const size_t wide = columns_of(pl_item_text(i));
        if (wide > width) width = wide;
        last = i;
    }
    for (const pl_doc_item *i = first; i && i->tag == PL_ITEM_CARD; i = pl_item_next(d, i)) {
        const char *number = pl_item_text(i), *words = number + strlen(number) + 1;
        pl_str_pad(out, ' ', GAP + width - columns_of(number));
        pl_str_append(out, number);
        pl_str_pad(out, ' ', GAP);
        write_wrapped(words, width + 2 * GAP, width + 2 * GAP, form->columns, out);
        pl_str_append(out, "\n");
    }
    return last;
}

static void write_figure(const pl_text_form *form, const pl_doc_item *item, pl_str *out)
{
    pl_doc_figure figure;
    memcpy(&figure, pl_item_text(item), sizeof figure);
    if (figure.text) figure.text(figure.of, form->columns, form->color, out);
}

static const pl_doc_item *write_item(const pl_doc *d, const pl_text_form *form, const pl_doc_item *i, pl_str *out)
{
    switch ((pl_doc_tag)i->tag) {
    case PL_ITEM_TITLE:
        write_title(form, i, out);
        return i;
    case PL_ITEM_SECTION:
        if (i->flags & PL_ITEM_DRAWN || (form->is_short && i->flags & PL_ITEM_LONG)) return pl_item_end(d, i);
        write_heading(form, i->name ? i->name : pl_item_text(i), out);
        return i;
    case PL_ITEM_PARAGRAPH:
        write_paragraph(form, i, out);
        return i;
    case PL_ITEM_CARD:
        return write_cards(d, form, i, out);
    case PL_ITEM_TABLE:
        return write_table(d, form, i, out);
    case PL_ITEM_FIGURE:
        write_figure(form, i, out);
        return i;
    default:
        return i;
    }
}

pl_text_form pl_text_form_of(unsigned columns, bool color)
{
    enum { LEAST = 40, MOST = 200 };
    if (columns == 0) columns = PL_TEXT_COLUMNS;
    return (pl_text_form){.columns = columns < LEAST ? LEAST : columns > MOST ? MOST : columns, .color = color};
}

void pl_doc_print(const pl_doc *d, const pl_text_form *form, pl_str *out)
{
    pl_text_form f = form ? *form : (pl_text_form){0};
    if (f.columns == 0) f.columns = PL_TEXT_COLUMNS;
    for (const pl_doc_item *i = NULL; (i = pl_item_next(d, i));)
        if (!(i = write_item(d, &f, i, out))) break;
    if (d->body.failed) out->failed = 1;
}

void pl_doc_write(const pl_doc *d, pl_doc_form form, const pl_text_form *text, pl_str *out)
{
    switch (form) {
    case PL_FORM_TEXT:
        pl_doc_print(d, text, out);
        break;
    case PL_FORM_JSON:
        pl_doc_write_json(d, false, out);
        break;
    case PL_FORM_PAGE:
        pl_doc_page(d, out);
        break;
    }
}

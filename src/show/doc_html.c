/* A document as a page. Whatever was not a constant of ours is escaped. Every cell of a table carries its title, which
 * stands next to it where the window is too narrow for columns (style.c). */
#include <string.h>

#include "show/cell.h"
#include "show/html.h"
#include "show/item.h"
#include "show/render.h"

typedef struct page {
    const pl_doc *d;
    pl_str *out;
    const pl_doc_item *table;        /* that is open */
    size_t column;                   /* of its next cell */
    bool filled[PL_DOC_COLUMNS_MAX]; /* by some row: others are left out */
    unsigned row;                    /* flags of the row that is open */
    bool in_row, in_bar;
    bool explored;          /* some picture on it can be */
    unsigned depth, folded; /* sections that are open; of these, a bit each */
} page;

/* ---- tables ---- */

static bool says_something(const pl_doc_item *cell)
{
    return cell->type != PL_CELL_BLANK && (cell->type != PL_CELL_WORDS || cell->text_bytes);
}

static void find_filled(page *p)
{
    size_t k = 0;
    memset(p->filled, 0, sizeof p->filled);
    for (const pl_doc_item *i = p->table; (i = pl_item_next(p->d, i)) && i->tag != PL_ITEM_TABLE_END;) {
        if (i->tag == PL_ITEM_TABLE) i = pl_item_end(p->d, i);
        if (i && i->tag == PL_ITEM_ROW && i->flags & PL_DOC_HIDDEN) i = pl_item_end(p->d, i);
        if (!i) return;
        if (i->tag == PL_ITEM_ROW) k = 0;
        if (i->tag == PL_ITEM_CELL && !i->name && k < PL_DOC_COLUMNS_MAX) p->filled[k++] |= says_something(i);
    }
}

static void write_titles(const page *p)
{
    const pl_doc_column *c = pl_item_columns(p->table);
    bool titled = false;
    for (size_t k = 0; k < p->table->value.count; k++) titled |= p->filled[k] && c[k].title[0];
    pl_str_append(p->out, titled ? "<table class='labels'>" : "<table class='facts'>");
    if (titled) pl_str_append(p->out, "<tr>");
    for (size_t k = 0; k < p->table->value.count && titled; k++) {
        if (!p->filled[k]) continue;
        pl_str_append(p->out, pl_cell_is_number(c[k].kind) ? "<th scope='col' class='n'>" : "<th scope='col'>");
        pl_html_text(p->out, c[k].title);
        pl_str_append(p->out, c[k].kind == PL_DOC_BYTES ? "</th><th scope='col' class='n'>MB</th>" : "</th>");
    }
    pl_str_append(p->out, titled ? "</tr>\n" : "\n");
}

static void begin_row(page *p, const pl_doc_item *row)
{
    const char *class = row->flags & PL_DOC_BAD      ? " class='bad'"
                        : row->flags & PL_DOC_TOTAL  ? " class='total'"
                        : row->flags & PL_DOC_STRONG ? " class='strong'"
                                                     : "";
    p->in_row = true;
    p->row = row->flags;
    p->column = 0;
    pl_str_printf(p->out, "<tr%s>", class);
}

static void write_text_cell(const page *p, const pl_doc_column *c, const char *label, const char *text)
{
    const bool number = pl_cell_is_number(c->kind), indented = p->column == 1 && p->row & PL_DOC_INDENT;
    pl_str_printf(p->out, "<td%s", number ? " class='n'" : c->is_remark ? " class='w'" : indented ? " class='in'" : "");
    if (label[0] && (p->column > 1 || number)) {
        pl_str_append(p->out, " data-l='");
        pl_html_text(p->out, label);
        pl_str_append(p->out, "'");
    }
    pl_str_append(p->out, ">");
    pl_html_text(p->out, text);
    pl_str_append(p->out, "</td>");
}

static void write_cell(page *p, const pl_doc_item *cell)
{
    const size_t k = p->column++;
    char text[PL_CELL_BYTES];
    if (k >= p->table->value.count) return;
    const pl_doc_column *c = &pl_item_columns(p->table)[k];
    if (!p->filled[k]) return;
    if (cell->type == PL_CELL_BAR) {
        pl_str_append(p->out, p->in_bar ? "</td>" : "<td></td>");
        p->in_bar = false;
    } else if (cell->type == PL_CELL_WORDS && !pl_cell_is_number(c->kind)) {
        write_text_cell(p, c, c->title, pl_item_text(cell)); /* whole, however long */
    } else {
        write_text_cell(p, c, c->title, pl_cell_format(c, cell, "–", text));
        if (c->kind == PL_DOC_BYTES) write_text_cell(p, c, "MB", pl_cell_megabytes(cell, text));
    }
}

static void write_share(page *p, const pl_doc_item *share)
{
    const double x = share->value.real;
    const pl_doc_item *next = pl_item_next(p->d, share);
    if (!p->in_bar)
        pl_str_append(p->out, next && next->tag == PL_ITEM_SHARE ? "<td class='bar parts'>" : "<td class='bar'>");
    p->in_bar = true;
    if (x > 0) pl_str_printf(p->out, "<i class='%s' style='width:%.2f%%'></i>", share->name, x < 1 ? 100 * x : 100.0);
}

static void end_row(page *p)
{
    static const pl_doc_item blank = {.tag = PL_ITEM_CELL, .type = PL_CELL_BLANK};
    while (p->column < p->table->value.count) write_cell(p, &blank);
    pl_str_append(p->out, "</tr>\n");
    p->in_row = false;
}

/* ---- everything else ---- */

static void write_paragraph(const page *p, const pl_doc_item *item)
{
    const char *class = item->flags & PL_DOC_BAD    ? "<span class='bad'>"
                        : item->flags & PL_DOC_GOOD ? "<span class='good'>"
                                                    : NULL;
    if (item->text_bytes == 0 || item->flags & PL_DOC_HIDDEN) return;
    pl_str_printf(p->out, "<p>%s", class ? class : "");
    pl_html_lines(p->out, pl_item_text(item));
    pl_str_append(p->out, class ? "</span></p>\n" : "</p>\n");
}

static const pl_doc_item *write_cards(const page *p, const pl_doc_item *i)
{
    const pl_doc_item *last = i;
    pl_str_append(p->out, "<div class='cards'>\n");
    for (; i && i->tag == PL_ITEM_CARD; last = i, i = pl_item_next(p->d, i)) {
        const char *number = pl_item_text(i);
        pl_str_append(p->out, "<div class='card'><b>");
        pl_html_text(p->out, number);
        pl_str_append(p->out, "</b><span>");
        pl_html_text(p->out, number + strlen(number) + 1);
        pl_str_append(p->out, "</span></div>\n");
    }
    pl_str_append(p->out, "</div>\n");
    return last;
}

static void begin_section(page *p, const pl_doc_item *section)
{
    const char *title = section->name ? section->name : pl_item_text(section);
    const bool folded = section->flags & PL_ITEM_FOLDED, part = p->depth > 0;
    const char *heading = folded ? "summary" : part ? "h3" : "h2";
    pl_str_append(p->out, folded                          ? "<details>"
                          : section->flags & PL_ITEM_HALF ? "<div class='part half'>"
                          : part                          ? "<div class='part'>"
                                                          : "<section>");
    if (title[0]) {
        pl_str_printf(p->out, "<%s>", heading);
        pl_html_text(p->out, title);
        pl_str_printf(p->out, "</%s>", heading);
    }
    pl_str_append(p->out, "\n");
    p->folded = p->folded << 1 | folded;
    p->depth++;
}

static void end_section(page *p)
{
    p->depth--;
    pl_str_append(p->out, p->folded & 1 ? "</details>\n" : p->depth ? "</div>\n" : "</section>\n");
    p->folded >>= 1;
}

static void write_figure(page *p, const pl_doc_item *item)
{
    pl_doc_figure figure;
    memcpy(&figure, pl_item_text(item), sizeof figure);
    if (figure.page) figure.page(figure.of, p->out);
    p->explored |= figure.explored;
}

static const pl_doc_item *write_item(page *p, const pl_doc_item *i)
{
    switch ((pl_doc_tag)i->tag) {
    case PL_ITEM_SECTION:
        begin_section(p, i);
        break;
    case PL_ITEM_SECTION_END:
        end_section(p);
        break;
    case PL_ITEM_CARD:
        return write_cards(p, i);
    case PL_ITEM_PARAGRAPH:
        write_paragraph(p, i);
        break;
    case PL_ITEM_FIGURE:
        write_figure(p, i);
        break;
    case PL_ITEM_DRAWING:
        pl_str_append_bytes(p->out, pl_item_text(i), i->text_bytes);
        break;
    case PL_ITEM_TABLE:
        if (p->in_row || !pl_item_row(p->d, i)) return pl_item_end(p->d, i);
        p->table = i;
        find_filled(p);
        write_titles(p);
        break;
    case PL_ITEM_TABLE_END:
        pl_str_append(p->out, "</table>\n");
        p->table = NULL;
        break;
    case PL_ITEM_ROW:
        if (i->flags & PL_DOC_HIDDEN) return pl_item_end(p->d, i);
        begin_row(p, i);
        break;
    case PL_ITEM_ROW_END:
        end_row(p);
        break;
    case PL_ITEM_CELL:
        if (p->in_row && !i->name) write_cell(p, i);
        break;
    case PL_ITEM_SHARE:
        write_share(p, i);
        break;
    default:
        break;
    }
    return i;
}

static void write_body(page *p)
{
    for (const pl_doc_item *i = NULL; (i = pl_item_next(p->d, i));)
        if (!(i = write_item(p, i))) break;
    if (p->d->body.failed) p->out->failed = 1;
}

void pl_doc_page(const pl_doc *d, pl_str *out)
{
    page p = {.d = d, .out = out};
    const pl_doc_item *first = pl_item_next(d, NULL);
    const bool titled = first && first->tag == PL_ITEM_TITLE;
    pl_html_page_begin(&(pl_html_page){.title = titled ? pl_item_text(first) : "Plimsoll",
                                       .what = titled ? first->value.text : "report",
                                       .before = titled ? first->name : NULL},
                       out);
    write_body(&p);
    pl_html_page_end(p.explored, out);
}

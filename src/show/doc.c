/* Writing a document: see doc.h for what is said, item.h for how it lies. */
#include "show/doc.h"

#include <stdarg.h>
#include <string.h>

#include "show/item.h"
#include "show/render.h"

enum { ALIGNMENT = 8 };
_Static_assert(sizeof(pl_doc_item) % ALIGNMENT == 0, "items follow each other without a gap");

pl_doc pl_doc_begin(void) { return (pl_doc){.open = SIZE_MAX}; }

pl_doc pl_doc_begin_fixed(void *memory, size_t bytes)
{
    return (pl_doc){.body = pl_str_fixed(memory, bytes), .open = SIZE_MAX};
}

pl_doc pl_doc_begin_in(char *memory, size_t room, pl_str *text)
{
    size_t first = room / 8 * 3;
    *text = pl_str_fixed(memory, first ? first : 1);
    while (first + 1 < room && (uintptr_t)(memory + first) % ALIGNMENT) first++;
    return pl_doc_begin_fixed(memory + first, room - first);
}

void pl_doc_deinit(pl_doc *d)
{
    pl_str_deinit(&d->body);
    *d = pl_doc_begin();
}

/* ---- items ---- */

static void open_item(pl_doc *d, pl_doc_item item)
{
    d->open = d->body.bytes;
    pl_str_append_bytes(&d->body, &item, sizeof item);
}

static void close_item(pl_doc *d)
{
    static const char zeros[ALIGNMENT];
    if (!d->body.failed) {
        pl_doc_item *item = (pl_doc_item *)(void *)(d->body.data + d->open);
        item->text_bytes = (uint32_t)(d->body.bytes - d->open - sizeof *item);
        if (item->text_bytes) pl_str_append_bytes(&d->body, zeros, ALIGNMENT - d->body.bytes % ALIGNMENT);
    }
    d->open = SIZE_MAX;
}

static void add(pl_doc *d, pl_doc_item item)
{
    open_item(d, item);
    close_item(d);
}

static void add_text(pl_doc *d, pl_doc_item item, const void *text, size_t bytes)
{
    open_item(d, item);
    pl_str_append_bytes(&d->body, text, bytes);
    close_item(d);
}

const pl_doc_item *pl_item_next(const pl_doc *d, const pl_doc_item *item)
{
    size_t at = 0;
    if (item)
        at = (size_t)((const char *)item - d->body.data) + sizeof *item +
             (item->text_bytes ? (item->text_bytes / ALIGNMENT + 1) * ALIGNMENT : 0);
    if (d->body.failed || at >= d->body.bytes) return NULL;
    return (const pl_doc_item *)(const void *)(d->body.data + at);
}

const char *pl_item_text(const pl_doc_item *item) { return item->text_bytes ? (const char *)(item + 1) : ""; }

/* The tag of an end follows that of its beginning; tables lie in rows of others, so depth is counted. */
const pl_doc_item *pl_item_end(const pl_doc *d, const pl_doc_item *begin)
{
    int depth = 0;
    for (const pl_doc_item *i = begin; i; i = pl_item_next(d, i)) {
        depth += i->tag == begin->tag;
        if (i->tag == begin->tag + 1 && --depth == 0) return i;
    }
    return NULL;
}

const pl_doc_item *pl_item_row(const pl_doc *d, const pl_doc_item *i)
{
    while ((i = pl_item_next(d, i)) && i->tag != PL_ITEM_TABLE_END) {
        if (i->tag != PL_ITEM_ROW) continue;
        if (!(i->flags & PL_DOC_HIDDEN)) return i;
        if (!(i = pl_item_end(d, i))) return NULL;
    }
    return NULL;
}

const pl_doc_column *pl_item_columns(const pl_doc_item *item)
{
    return (const pl_doc_column *)(const void *)(item + 1);
}

/* ---- for people ---- */

void pl_doc_title(pl_doc *d, const char *before, const char *what, const char *title)
{
    add_text(d, (pl_doc_item){.tag = PL_ITEM_TITLE, .name = before, .value.text = what}, title, strlen(title));
}

static void add_section(pl_doc *d, const char *title, uint16_t flags)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_SECTION, .flags = flags, .name = title});
}

void pl_doc_section(pl_doc *d, const char *title) { add_section(d, title, 0); }
void pl_doc_section_long(pl_doc *d, const char *title) { add_section(d, title, PL_ITEM_LONG); }
void pl_doc_section_half(pl_doc *d, const char *title) { add_section(d, title, PL_ITEM_HALF); }
void pl_doc_section_folded(pl_doc *d, const char *title) { add_section(d, title, PL_ITEM_FOLDED); }
void pl_doc_section_drawn(pl_doc *d, const char *title) { add_section(d, title, PL_ITEM_DRAWN); }

void pl_doc_section_named(pl_doc *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    open_item(d, (pl_doc_item){.tag = PL_ITEM_SECTION});
    pl_str_vprintf(&d->body, fmt, args);
    close_item(d);
    va_end(args);
}

void pl_doc_section_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_SECTION_END}); }

void pl_doc_card(pl_doc *d, const char *number, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    open_item(d, (pl_doc_item){.tag = PL_ITEM_CARD});
    pl_str_append_bytes(&d->body, number, strlen(number) + 1);
    pl_str_vprintf(&d->body, fmt, args);
    close_item(d);
    va_end(args);
}

pl_str *pl_doc_paragraph(pl_doc *d, unsigned flags)
{
    open_item(d, (pl_doc_item){.tag = PL_ITEM_PARAGRAPH, .flags = (uint16_t)flags});
    return &d->body;
}

void pl_doc_paragraph_end(pl_doc *d) { close_item(d); }

void pl_doc_say(pl_doc *d, unsigned flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pl_doc_paragraph(d, flags);
    pl_str_vprintf(&d->body, fmt, args);
    close_item(d);
    va_end(args);
}

void pl_doc_draw(pl_doc *d, const pl_doc_figure *figure)
{
    add_text(d, (pl_doc_item){.tag = PL_ITEM_FIGURE}, figure, sizeof *figure);
}

pl_str *pl_doc_drawing(pl_doc *d)
{
    open_item(d, (pl_doc_item){.tag = PL_ITEM_DRAWING});
    return &d->body;
}

void pl_doc_drawing_end(pl_doc *d) { close_item(d); }

void pl_doc_shown(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_SHOWN}); }
void pl_doc_shown_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_SHOWN_END}); }

/* ---- tables ---- */

void pl_doc_table(pl_doc *d, const char *key, const pl_doc_column *columns, int count)
{
    add_text(d, (pl_doc_item){.tag = PL_ITEM_TABLE, .name = key, .value.count = (uint64_t)count}, columns,
             (size_t)count * sizeof *columns);
}

void pl_doc_table_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_TABLE_END}); }

void pl_doc_row_of(pl_doc *d, const char *key, unsigned flags)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_ROW, .flags = (uint16_t)flags, .name = key});
}

void pl_doc_row(pl_doc *d, unsigned flags) { pl_doc_row_of(d, NULL, flags); }
void pl_doc_row_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_ROW_END}); }

pl_str *pl_doc_sentence(pl_doc *d, const char *key)
{
    open_item(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_WORDS, .name = key});
    return &d->body;
}

void pl_doc_sentence_end(pl_doc *d) { close_item(d); }

void pl_doc_words(pl_doc *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pl_str_vprintf(pl_doc_sentence(d, NULL), fmt, args);
    close_item(d);
    va_end(args);
}

void pl_doc_text(pl_doc *d, const char *text, size_t bytes) { pl_doc_key_text(d, NULL, text, bytes); }

void pl_doc_count(pl_doc *d, uint64_t n) { pl_doc_key_count(d, NULL, n); }
void pl_doc_difference(pl_doc *d, int64_t n) { pl_doc_key_difference(d, NULL, n); }
void pl_doc_real(pl_doc *d, double x) { pl_doc_key_real(d, NULL, x); }
void pl_doc_bool(pl_doc *d, bool yes) { pl_doc_key_bool(d, NULL, yes); }
void pl_doc_unknown(pl_doc *d) { pl_doc_key_null(d, NULL); }
void pl_doc_blank(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_BLANK}); }

void pl_doc_number(pl_doc *d, double x, int digits)
{
    add(d,
        (pl_doc_item){
            .tag = PL_ITEM_CELL, .type = PL_CELL_REAL, .flags = (uint16_t)(digits << PL_ITEM_DIGITS), .value.real = x});
}

void pl_doc_seconds(pl_doc *d, double seconds, bool is_estimated)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL,
                         .type = PL_CELL_REAL,
                         .flags = (uint16_t)(PL_ITEM_SECONDS | (is_estimated ? PL_ITEM_ESTIMATED : 0)),
                         .value.real = seconds});
}

void pl_doc_bar(pl_doc *d, const char *class_name, double share)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_SHARE, .name = class_name, .value.real = share});
}

void pl_doc_bar_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_BAR}); }

/* ---- for programs ---- */

void pl_doc_object(pl_doc *d, const char *key) { add(d, (pl_doc_item){.tag = PL_ITEM_OBJECT, .name = key}); }
void pl_doc_object_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_OBJECT_END}); }
void pl_doc_array(pl_doc *d, const char *key) { add(d, (pl_doc_item){.tag = PL_ITEM_ARRAY, .name = key}); }
void pl_doc_array_end(pl_doc *d) { add(d, (pl_doc_item){.tag = PL_ITEM_ARRAY_END}); }

void pl_doc_key_text(pl_doc *d, const char *key, const char *text, size_t bytes)
{
    add_text(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_WORDS, .name = key}, text, bytes);
}

void pl_doc_key_words(pl_doc *d, const char *key, const char *text)
{
    if (text)
        pl_doc_key_text(d, key, text, strlen(text));
    else
        pl_doc_key_null(d, key);
}

void pl_doc_key_count(pl_doc *d, const char *key, uint64_t n)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_COUNT, .name = key, .value.count = n});
}

void pl_doc_key_difference(pl_doc *d, const char *key, int64_t n)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_DIFFERENCE, .name = key, .value.difference = n});
}

void pl_doc_key_real(pl_doc *d, const char *key, double x)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_REAL, .name = key, .value.real = x});
}

void pl_doc_key_bool(pl_doc *d, const char *key, bool yes)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_BOOL, .name = key, .value.count = yes});
}

void pl_doc_key_null(pl_doc *d, const char *key)
{
    add(d, (pl_doc_item){.tag = PL_ITEM_CELL, .type = PL_CELL_UNKNOWN, .name = key});
}

void pl_doc_key_count_if(pl_doc *d, bool known, const char *key, uint64_t n)
{
    known ? pl_doc_key_count(d, key, n) : pl_doc_key_null(d, key);
}

void pl_doc_key_real_if(pl_doc *d, bool known, const char *key, double x)
{
    known ? pl_doc_key_real(d, key, x) : pl_doc_key_null(d, key);
}

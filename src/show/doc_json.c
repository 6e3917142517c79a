/* A document as JSON: what has a key. A table with a key is an array, a row in it an object; a row with a key is a
 * number of the object that is open. */
#include <string.h>

#include "show/item.h"
#include "show/render.h"

/* A table in a row is for programs, so there may be one in another. */
enum { DEPTH = 4 };

typedef struct level {
    const pl_doc_item *table;
    const pl_doc_item *row; /* that is open */
    size_t column;          /* of its next cell */
    bool said;              /* the row's key has its number */
} level;

typedef struct state {
    pl_json *j;
    level level[DEPTH];
    int depth; /* tables that are open */
    level *at; /* the innermost; NULL: none is */
} state;

static void write_key(pl_json *j, const char *key)
{
    if (key && key[0]) pl_json_key(j, key);
}

static void write_value(pl_json *j, const pl_doc_item *cell)
{
    switch ((pl_cell_type)cell->type) {
    case PL_CELL_WORDS:
        pl_json_string_bytes(j, pl_item_text(cell), cell->text_bytes);
        break;
    case PL_CELL_COUNT:
        pl_json_uint(j, cell->value.count);
        break;
    case PL_CELL_DIFFERENCE:
        pl_json_int(j, cell->value.difference);
        break;
    case PL_CELL_REAL:
        if (cell->flags & PL_ITEM_SECONDS && !(cell->value.real > 0))
            pl_json_null(j);
        else
            pl_json_double(j, cell->value.real);
        break;
    case PL_CELL_BOOL:
        pl_json_bool(j, cell->value.count);
        break;
    case PL_CELL_UNKNOWN:
    case PL_CELL_BLANK:
    case PL_CELL_BAR:
        pl_json_null(j);
        break;
    }
}

static bool is_number(const pl_doc_item *cell)
{
    return cell->type == PL_CELL_COUNT || cell->type == PL_CELL_DIFFERENCE || cell->type == PL_CELL_REAL;
}

/* The key of the next cell; NULL: it is not for programs. */
static const char *take_key(level *at)
{
    const size_t k = at->column++;
    if (k >= at->table->value.count) return NULL;
    return at->row->name ? at->row->name : pl_item_columns(at->table)[k].key;
}

static void write_cell(state *s, const pl_doc_item *cell)
{
    level *at = s->at;
    const bool in_row = !cell->name && at && at->row;
    const char *key = in_row ? take_key(at) : cell->name;
    if (cell->type == PL_CELL_BLANK || (in_row && !key)) return;
    if (in_row && at->row->name && (at->said || !is_number(cell))) return;
    if (in_row) at->said = true;
    write_key(s->j, key);
    write_value(s->j, cell);
}

static void begin_row(state *s, const pl_doc_item *row)
{
    s->at->row = row;
    s->at->column = 0;
    s->at->said = false;
    if (!row->name) pl_json_object(s->j);
}

static void end_row(state *s)
{
    if (!s->at->row->name) pl_json_object_end(s->j);
    s->at->row = NULL;
}

static void begin_table(state *s, const pl_doc_item *table)
{
    s->at = &s->level[s->depth++];
    *s->at = (level){.table = table};
    if (!table->name) return;
    pl_json_key(s->j, table->name);
    pl_json_array(s->j);
}

static void end_table(state *s)
{
    if (s->at->table->name) pl_json_array_end(s->j);
    s->depth--;
    s->at = s->depth ? &s->level[s->depth - 1] : NULL;
}

static void write_item(state *s, const pl_doc_item *i)
{
    switch ((pl_doc_tag)i->tag) {
    case PL_ITEM_TABLE:
        begin_table(s, i);
        break;
    case PL_ITEM_TABLE_END:
        end_table(s);
        break;
    case PL_ITEM_ROW:
        begin_row(s, i);
        break;
    case PL_ITEM_ROW_END:
        end_row(s);
        break;
    case PL_ITEM_CELL:
        write_cell(s, i);
        break;
    case PL_ITEM_OBJECT:
        write_key(s->j, i->name);
        pl_json_object(s->j);
        break;
    case PL_ITEM_OBJECT_END:
        pl_json_object_end(s->j);
        break;
    case PL_ITEM_ARRAY:
        write_key(s->j, i->name);
        pl_json_array(s->j);
        break;
    case PL_ITEM_ARRAY_END:
        pl_json_array_end(s->j);
        break;
    case PL_ITEM_TITLE:
    case PL_ITEM_SECTION:
    case PL_ITEM_SECTION_END:
    case PL_ITEM_SHOWN:
    case PL_ITEM_SHOWN_END:
    case PL_ITEM_CARD:
    case PL_ITEM_PARAGRAPH:
    case PL_ITEM_SHARE:
    case PL_ITEM_FIGURE:
    case PL_ITEM_DRAWING:
        break;
    }
}

static bool is_for_people(const pl_doc_item *i)
{
    return i->tag == PL_ITEM_SHOWN || (i->tag == PL_ITEM_ROW && i->flags & PL_DOC_SHOWN);
}

void pl_doc_json(const pl_doc *d, pl_json *j)
{
    state s = {.j = j};
    for (const pl_doc_item *i = NULL; (i = pl_item_next(d, i));)
        if (!is_for_people(i))
            write_item(&s, i);
        else if (!(i = pl_item_end(d, i)))
            break;
    if (d->body.failed) j->out->failed = 1;
}

void pl_doc_write_json(const pl_doc *d, bool compact, pl_str *out)
{
    pl_json j = pl_json_begin(out, compact);
    pl_json_object(&j);
    pl_doc_json(d, &j);
    pl_json_document_end(&j);
}

/* See table.h. Numbers never need more than their own cell, so measuring is the same code as writing with the ink off.
 */
#include "report/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/locale.h"
#include "base/units.h"

enum { GAP = 2, WORDS_MIN = 18, WORDS_INDENT = 6 }; /* spaces between columns; room for words, else their indent */

/* ---- the table ---- */

pl_table pl_table_begin(pl_str *out, const char *columns)
{
    return (pl_table){.out = out, .columns = columns, .line = PL_TEXT_COLUMNS};
}

bool pl_table_pass(pl_table *t)
{
    t->pass++;
    t->column = 0;
    return t->pass <= 2;
}

/* Words of the last column: where they begin, and are they more than the rest of the line holds? */
static bool is_long(const pl_table *t, size_t columns, size_t *begin)
{
    *begin = 0;
    for (int i = 0; i < t->column; i++) *begin += t->width[i] + GAP;
    bool words = t->column > 0 && t->columns[t->column] == 'l' && !t->columns[t->column + 1];
    return words && *begin + columns > t->line;
}

static void write_long(pl_table *t, const char *text, size_t bytes, size_t begin)
{
    bool beside = begin + WORDS_MIN <= t->line;
    size_t indent = beside ? begin : WORDS_INDENT;
    if (!beside) pl_str_append(t->out, "\n");
    pl_str_pad(t->out, ' ', beside ? t->owed : indent);
    if (t->color && t->strong) pl_str_append(t->out, "\033[1m");
    pl_str_wrap(t->out, text, bytes, indent, t->line);
    if (t->color && t->strong) pl_str_append(t->out, "\033[0m");
}

static void write_cell(pl_table *t, const char *text, size_t bytes, size_t columns)
{
    size_t fill = t->width[t->column] > columns ? t->width[t->column] - columns : 0;
    bool right = t->columns[t->column] == 'r', bold = t->color && t->strong && bytes;
    if (bytes) {
        pl_str_pad(t->out, ' ', t->owed + (right ? fill : 0));
        if (bold) pl_str_append(t->out, "\033[1m");
        pl_str_append_bytes(t->out, text, bytes);
        if (bold) pl_str_append(t->out, "\033[0m");
        t->owed = right ? GAP : fill + GAP;
    } else {
        t->owed += fill + GAP;
    }
}

void pl_table_cell(pl_table *t, const char *fmt, ...)
{
    char raw[PL_TABLE_CELL_BYTES], text[PL_TABLE_CELL_BYTES];
    if (t->column >= PL_TABLE_COLUMNS_MAX || !t->columns[t->column]) return;
    va_list args;
    va_start(args, fmt);
    pl_vprint(raw, sizeof raw, fmt, args);
    va_end(args);
    pl_text_clean(text, sizeof text, raw);
    size_t bytes = strlen(text), columns = pl_text_columns(text, bytes);
    size_t begin;
    if (t->pass == 2 && is_long(t, columns, &begin))
        write_long(t, text, bytes, begin);
    else if (t->pass == 2)
        write_cell(t, text, bytes, columns);
    else if (columns > t->width[t->column])
        t->width[t->column] = columns;
    t->column++;
}

void pl_table_end_row(pl_table *t)
{
    if (t->pass == 2) pl_str_append(t->out, "\n");
    t->column = 0;
    t->owed = 0;
    t->strong = false;
}

void pl_table_rule(pl_table *t, int first, int last)
{
    size_t before = 0, width = 0;
    for (int i = 0; i < first; i++) before += t->width[i] + GAP;
    for (int i = first; i < last; i++) width += t->width[i] + (i + 1 < last ? GAP : 0);
    if (t->pass == 2) {
        pl_str_pad(t->out, ' ', before);
        pl_str_pad(t->out, '-', width);
        pl_str_append(t->out, "\n");
    }
    t->column = 0;
}

void pl_table_count(pl_table *t, uint64_t count)
{
    char text[32];
    pl_table_cell(t, "%s", pl_format_count(count, text, sizeof text));
}

/* Hundredths of a megabyte, rounded to the nearest, without the rounding of doubles. */
static void format_megabytes(uint64_t bytes, char *text, size_t room)
{
    char whole[32];
    uint64_t hundredths = bytes / 10000 + (bytes % 10000 >= 5000);
    snprintf(text, room, "%s.%02" PRIu64, pl_format_count(hundredths / 100, whole, sizeof whole), hundredths % 100);
}

void pl_table_megabytes(pl_table *t, uint64_t bytes)
{
    char text[40];
    format_megabytes(bytes, text, sizeof text);
    pl_table_cell(t, "%s", bytes ? text : "-");
}

void pl_table_bytes(pl_table *t, uint64_t bytes)
{
    char text[40];
    format_megabytes(bytes, text, sizeof text);
    pl_table_count(t, bytes);
    pl_table_cell(t, "%s", text);
}

void pl_table_difference(pl_table *t, int64_t bytes)
{
    char count[32];
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    pl_table_cell(t, "%s%s", bytes ? bytes < 0 ? "-" : "+" : "", pl_format_count(size, count, sizeof count));
}

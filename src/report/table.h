/* Tables of text: columns as wide as their widest cell, words to the left, numbers to the right.
 *
 * Words of the last column that do not fit the line go on below, where they began; where there is little room for them,
 * they stand in lines of their own.
 *
 * A table is told twice: the first pass measures, the second writes. So it needs no memory for its cells, may be
 * written after "committed", and the caller's loop is the table:
 *
 *     for (pl_table t = pl_table_begin(out, "lr"); pl_table_pass(&t);) {
 *         pl_table_cell(&t, "%s", "weights");
 *         pl_table_bytes(&t, 123456);
 *         pl_table_end_row(&t);
 *     }
 */
#ifndef PL_REPORT_TABLE_H
#define PL_REPORT_TABLE_H

#include <stdbool.h>

#include "base/str.h"
#include "show/cell.h"
#include "show/render.h"

enum { PL_TABLE_COLUMNS_MAX = 12, PL_TABLE_CELL_BYTES = 256 };

typedef struct pl_table {
    pl_str *out;
    const char *columns;                      /* one letter each: 'l' words, 'r' numbers */
    size_t width[PL_TABLE_COLUMNS_MAX], line; /* of a column; of the line, for words of the last column */
    int pass;                                 /* 0 before the first, 1 measuring, 2 writing */
    int column;                               /* of the next cell */
    size_t owed;                              /* spaces before the next cell: none are left at the end of a line */
    bool color;
    bool strong; /* this row stands out: bold where colours are on */
} pl_table;

pl_table pl_table_begin(pl_str *out, const char *columns);
bool pl_table_pass(pl_table *);
/* Cut to PL_TABLE_CELL_BYTES − 1 bytes, at a character's end. Cells beyond the last column are not written. */
void pl_table_cell(pl_table *, const char *fmt, ...) PL_PRINTF(2, 3);
void pl_table_count(pl_table *, uint64_t count);     /* 1,234,567 */
void pl_table_bytes(pl_table *, uint64_t bytes);     /* two cells: exact bytes, MB with two decimals */
void pl_table_difference(pl_table *, int64_t bytes); /* one cell: exact bytes with sign; 0 is "0" */
void pl_table_megabytes(pl_table *, uint64_t bytes); /* one cell: MB with two decimals; 0 is "-" */
void pl_table_end_row(pl_table *);
/* A line under the cells of the row before: over the columns [first, last). */
void pl_table_rule(pl_table *, int first, int last);

#endif

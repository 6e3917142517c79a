/* How a cell looks: the one place where numbers of a document become digits. */
#ifndef PL_SHOW_CELL_H
#define PL_SHOW_CELL_H

#include "show/item.h"

enum { PL_CELL_BYTES = 256 };

/* Into text; what is longer is cut at a character's end. Control characters and bytes that are no UTF-8 become '?'.
 * unknown: what stands for a number that is not known. Returns text. */
const char *pl_cell_format(const pl_doc_column *, const pl_doc_item *cell, const char *unknown,
                           char text[PL_CELL_BYTES]);
/* The megabytes next to the cell of a PL_DOC_BYTES column: "115.34"; "" when it holds no number. */
const char *pl_cell_megabytes(const pl_doc_item *cell, char text[PL_CELL_BYTES]);
/* Numbers stand to the right. */
bool pl_cell_is_number(pl_doc_kind);

/* ---- text.c: what a terminal makes of UTF-8 ---- */

/* Columns that a terminal needs: combining marks take none, East Asian wide characters two, a byte that is no UTF-8
 * one. */
size_t pl_text_columns(const char *text, size_t bytes);
/* What a terminal may safely show: control characters and bytes that are no UTF-8 become '?'. At most room − 1 bytes,
 * cut at a character's end. */
void pl_text_clean(char *to, size_t room, const char *from);
/* The same, appended; keep_lines: their ends stay. */
void pl_text_append(pl_str *, const char *text, size_t bytes, bool keep_lines);

#endif

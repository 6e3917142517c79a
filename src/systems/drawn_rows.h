/* Lines of a text file for a model of pages: each line is an item, drawn as the pages are that the model is made for.
 * The drawer's memory is asked for at the start. Of a line that is longer than a page the beginning is drawn, and that
 * is remarked, as encode does it. */
#ifndef PL_SYSTEMS_DRAWN_ROWS_H
#define PL_SYSTEMS_DRAWN_ROWS_H

#include "data/infer/rows.h"
#include "data/pages/draw.h"

typedef struct pl_drawn_form {
    const pl_draw_module *draw;
    const pl_page_geometry *geometry;
    const pl_font *font;
} pl_drawn_form;

/* What a pl_rows_kind of such pages is made of. */
bool pl_drawn_is_mine(const pl_infer_port *, const char *head, size_t bytes);
pl_status pl_drawn_open(pl_rows *, const pl_drawn_form *, pl_error *);
pl_status pl_drawn_read(const pl_rows *, uint64_t row, void *to, void *scratch, pl_error *);
void pl_drawn_close(pl_rows *);
extern const pl_rows_remark pl_drawn_remarks[];

#endif

/* Lines of a text file for a model of pages: each line is an item, drawn as the pages are that the model is made for.
 * The drawer's memory is asked for at the start. Of a line that is longer than a page the beginning is drawn, and that
 * is remarked, as encode does it. */
#ifndef PL_SYSTEMS_DRAWN_ROWS_H
#define PL_SYSTEMS_DRAWN_ROWS_H

#include "data/infer/rows.h"

extern const pl_rows_kind pl_drawn_rows; /* of data that are drawn (stream/data.h) */

#endif

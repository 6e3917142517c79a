#include "show/cell.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"

#define FIXED_MOST    1e6  /* from here on digits after the point say nothing */
#define SECONDS_LEAST 1e-7 /* less is shown as none: its column would be wider than lines allow */

bool pl_cell_is_number(pl_doc_kind kind) { return kind != PL_DOC_WORDS && kind != PL_DOC_BOOL && kind != PL_DOC_BAR; }

/* Hundredths of a megabyte, rounded to the nearest, without the rounding of doubles. */
static void format_megabytes(uint64_t bytes, char text[PL_CELL_BYTES])
{
    char whole[32];
    uint64_t hundredths = bytes / 10000 + (bytes % 10000 >= 5000);
    snprintf(text, PL_CELL_BYTES, "%s.%02" PRIu64, pl_format_count(hundredths / 100, whole, sizeof whole),
             hundredths % 100);
}

const char *pl_cell_megabytes(const pl_doc_item *cell, char text[PL_CELL_BYTES])
{
    text[0] = 0;
    if (cell->type == PL_CELL_COUNT) format_megabytes(cell->value.count, text);
    return text;
}

static void format_seconds(const pl_doc_item *cell, const char *unknown, char text[PL_CELL_BYTES])
{
    char number[32];
    if (cell->value.real < 0)
        snprintf(text, PL_CELL_BYTES, "unknown");
    else if (cell->value.real < SECONDS_LEAST)
        snprintf(text, PL_CELL_BYTES, "%s", unknown);
    else
        snprintf(text, PL_CELL_BYTES, "%s%s", cell->flags & PL_ITEM_ESTIMATED ? "~" : "",
                 pl_format_seconds(cell->value.real, number, sizeof number));
}

static void format_real(const pl_doc_column *c, const pl_doc_item *cell, const char *unknown, char text[PL_CELL_BYTES])
{
    const double x = cell->value.real;
    const int digits = cell->flags >> PL_ITEM_DIGITS ? cell->flags >> PL_ITEM_DIGITS : c->digits;
    if (!isfinite(x))
        snprintf(text, PL_CELL_BYTES, "%s", unknown);
    else if (c->kind == PL_DOC_SECONDS)
        format_seconds(cell, unknown, text);
    else if (c->kind == PL_DOC_OPERATIONS && x == 0)
        snprintf(text, PL_CELL_BYTES, "%s", unknown);
    else if (c->kind == PL_DOC_OPERATIONS)
        pl_format_operations(x, text, PL_CELL_BYTES);
    else if (c->kind == PL_DOC_RATE)
        pl_format_rate(x, text, PL_CELL_BYTES);
    else if (c->kind == PL_DOC_MOVED && !(x < 1e18))
        snprintf(text, PL_CELL_BYTES, "?");
    else if (c->kind == PL_DOC_MOVED)
        pl_format_bytes((uint64_t)x, text, PL_CELL_BYTES);
    else if (c->kind == PL_DOC_PERCENT)
        pl_print(text, PL_CELL_BYTES, "%.*f %%", digits, 100 * x);
    else if (c->kind == PL_DOC_FIXED && fabs(x) < FIXED_MOST)
        pl_print(text, PL_CELL_BYTES, "%.*f", digits, x);
    else
        pl_print(text, PL_CELL_BYTES, "%.*g", digits, x);
}

static void format_count(pl_doc_kind kind, uint64_t n, const char *unknown, char text[PL_CELL_BYTES])
{
    if (kind == PL_DOC_MEGABYTES && n == 0)
        snprintf(text, PL_CELL_BYTES, "%s", unknown);
    else if (kind == PL_DOC_MEGABYTES)
        format_megabytes(n, text);
    else if (kind == PL_DOC_SIZE)
        pl_format_bytes(n, text, PL_CELL_BYTES);
    else
        pl_format_count(n, text, PL_CELL_BYTES);
}

static void format_difference(int64_t n, char text[PL_CELL_BYTES])
{
    char count[32];
    const uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    snprintf(text, PL_CELL_BYTES, "%s%s", n ? n < 0 ? "-" : "+" : "", pl_format_count(size, count, sizeof count));
}

const char *pl_cell_format(const pl_doc_column *c, const pl_doc_item *cell, const char *unknown,
                           char text[PL_CELL_BYTES])
{
    text[0] = 0;
    switch ((pl_cell_type)cell->type) {
    case PL_CELL_UNKNOWN:
        snprintf(text, PL_CELL_BYTES, "%s", c->kind == PL_DOC_SECONDS || c->kind == PL_DOC_RATE ? "unknown" : unknown);
        break;
    case PL_CELL_WORDS:
        pl_text_clean(text, PL_CELL_BYTES, pl_item_text(cell));
        break;
    case PL_CELL_COUNT:
        format_count(c->kind, cell->value.count, unknown, text);
        break;
    case PL_CELL_DIFFERENCE:
        format_difference(cell->value.difference, text);
        break;
    case PL_CELL_REAL:
        format_real(c, cell, unknown, text);
        break;
    case PL_CELL_BOOL:
        snprintf(text, PL_CELL_BYTES, "%s", cell->value.count ? "yes" : "no");
        break;
    case PL_CELL_BLANK:
    case PL_CELL_BAR:
        break;
    }
    return text;
}

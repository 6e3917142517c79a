/* Pages packed: most rows are empty, most of the others white, and the rest has few shades of grey. Lossless for any
 * page whatever. A page is rows of so many bytes, one for each pixel, or for each colour of it; 255 is white. Below, a
 * byte is called a pixel.
 *
 *   u8 n          shades besides white, 0 … 255
 *   n bytes       they, ascending
 *   then bits, the lowest of a byte first: of each row, has it ink? of each pixel of those rows, is it ink? of each of
 *   those pixels its shade's number, in as few bits as n needs */
#ifndef PL_DATA_PAGES_PACK_H
#define PL_DATA_PAGES_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* At most. */
static inline uint64_t pl_pack_bytes(uint32_t rows, uint32_t columns)
{
    const uint64_t pixels = (uint64_t)rows * columns;
    return 1 + 255 + (rows + pixels) / 8 + 1 + pixels + 1;
}

uint64_t pl_pack(const uint8_t *page, uint32_t rows, uint32_t columns, uint8_t *to); /* bytes */
/* False: not a packed page of that size; the page's contents are then undefined. */
bool pl_unpack(const uint8_t *from, uint64_t bytes, uint32_t rows, uint32_t columns, uint8_t *page);

#endif

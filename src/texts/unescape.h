/* A text that is not raw in its file, decoded in portions into the caller's memory: what is within the quotes of a JSON
 * string, or of a CSV field. It never fails, since whoever found the text has checked it: what is not an escape after
 * all becomes U+FFFD, as does half of a surrogate pair. For valid text, decoded bytes are never more than encoded
 * ones. */
#ifndef PL_TEXTS_UNESCAPE_H
#define PL_TEXTS_UNESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_text_encoding { PL_TEXT_RAW, PL_TEXT_JSON, PL_TEXT_CSV } pl_text_encoding;

typedef struct pl_unescape {
    pl_text_encoding encoding;
    uint8_t *to;
    size_t room, bytes; /* decoded so far */
    /* Half of a surrogate pair becomes a byte that is not UTF-8, to be counted as such; else U+FFFD. */
    bool marks_broken;
    bool whole; /* nothing was left out for lack of room */
    /* private */
    int state;
    uint32_t unit, high; /* the digits so far; the first half of a pair, or 0 */
} pl_unescape;

/* `to` may be where the encoded bytes lie. */
pl_unescape pl_unescape_begin(pl_text_encoding, void *to, size_t room);
/* False when there is no more room: the rest need not be fed. */
bool pl_unescape_feed(pl_unescape *, const uint8_t *from, size_t bytes);
void pl_unescape_end(pl_unescape *);

#endif

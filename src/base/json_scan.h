/* Reading JSON that is too large for a tree: values are met one after the other in a text that stays as it is. Nothing
 * is allocated. Whatever is passed over is checked as well: the whole text is known to be JSON once it was scanned. */
#ifndef PL_BASE_JSON_SCAN_H
#define PL_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_json_scan {
    const char *name, *text; /* the name is for messages */
    size_t bytes, at;
} pl_json_scan;

/* The first character of the next value, 0 at the end of the text. */
char pl_json_scan_peek(pl_json_scan *);
/* Passes over the next value. */
pl_status pl_json_scan_skip(pl_json_scan *, pl_error *);
/* Enters the next value, which must be an object ('{') or a list ('['). */
pl_status pl_json_scan_enter(pl_json_scan *, char bracket, pl_error *);
/* Is there another member of what was entered? Moves to it; otherwise out of the list or object. `first`: none was met
 * yet. */
pl_status pl_json_scan_next(pl_json_scan *, char bracket, bool first, bool *more, pl_error *);
/* The next value, a string, as UTF-8. PL_E_DATA where it is longer than room. */
pl_status pl_json_scan_string(pl_json_scan *, char *out, size_t room, size_t *bytes, pl_error *);
/* A string and the colon after it. */
pl_status pl_json_scan_key(pl_json_scan *, char *out, size_t room, size_t *bytes, pl_error *);
/* The next value, if it is a whole number of at most 18 digits and no sign; otherwise −1 (and it is passed over). */
pl_status pl_json_scan_count(pl_json_scan *, int64_t *count, pl_error *);
/* Nothing but white space is left. */
pl_status pl_json_scan_end(pl_json_scan *, pl_error *);

#endif

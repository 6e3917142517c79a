/* Texts that end a text which is being written: what comes before the first of them goes out, and what may be the
 * beginning of one waits. Byte by byte, so that it does not matter how tokens cut them. Asks for no memory. */
#ifndef PL_JOBS_STOPS_H
#define PL_JOBS_STOPS_H

#include <stdbool.h>
#include <stddef.h>

enum { PL_STOPS_BYTES = 4096 }; /* of all, with a zero behind each */

typedef struct pl_stops {
    char text[PL_STOPS_BYTES + 1]; /* one behind the other, each with its zero; an empty one is the end */
    size_t longest;
} pl_stops;

/* lines: one text a line, in which \n, \t, \r and \\ are what they are in C; empty lines are none. Of at most
 * PL_STOPS_BYTES - 1 bytes. */
void pl_stops_read(pl_stops *, const char *lines);

/* What waits, in the caller's memory: room for `longest` bytes and those that are put at once. */
typedef struct pl_stops_window {
    const pl_stops *stops;
    char *held;
    size_t bytes;
    bool stopped; /* one of them has come; what is put now is lost */
} pl_stops_window;

/* Adds bytes. Returns how many of held can go out now, with pl_stops_drop afterwards. */
size_t pl_stops_put(pl_stops_window *, const void *text, size_t bytes);
void pl_stops_drop(pl_stops_window *, size_t bytes);

#endif

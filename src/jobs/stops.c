#include "jobs/stops.h"

#include <string.h>

/* The byte that a line has at *at, behind which *at is moved. */
static char read_byte(const char **at)
{
    static const char letters[] = "ntr\\", values[] = "\n\t\r\\";
    const char c = *(*at)++;
    const char *letter = c == '\\' && **at ? strchr(letters, **at) : NULL;
    if (!letter) return c;
    (*at)++;
    return values[letter - letters];
}

void pl_stops_read(pl_stops *s, const char *lines)
{
    size_t used = 0;
    *s = (pl_stops){.longest = 0};
    while (*lines) {
        const size_t begin = used;
        while (*lines && *lines != '\n') s->text[used++] = read_byte(&lines);
        if (used - begin > s->longest) s->longest = used - begin;
        if (used > begin) s->text[used++] = 0;
        lines += *lines == '\n';
    }
    s->text[used] = 0;
}

/* Of the text with which `held` ends the longest, or 0. */
static size_t find_end(const pl_stops_window *w)
{
    size_t found = 0;
    for (const char *stop = w->stops->text; *stop; stop += strlen(stop) + 1) {
        const size_t bytes = strlen(stop);
        if (bytes > found && bytes <= w->bytes && memcmp(w->held + w->bytes - bytes, stop, bytes) == 0) found = bytes;
    }
    return found;
}

static bool begins_one(const pl_stops *s, const char *text, size_t bytes)
{
    for (const char *stop = s->text; *stop; stop += strlen(stop) + 1)
        if (strncmp(stop, text, bytes) == 0) return true;
    return false;
}

/* How many of the last bytes may be the beginning of one. */
static size_t count_waiting(const pl_stops_window *w)
{
    size_t waiting = w->bytes < w->stops->longest ? w->bytes : w->stops->longest;
    while (waiting > 0 && !begins_one(w->stops, w->held + w->bytes - waiting, waiting)) waiting--;
    return waiting;
}

size_t pl_stops_put(pl_stops_window *w, const void *text, size_t bytes)
{
    for (size_t i = 0; i < bytes && !w->stopped; i++) {
        w->held[w->bytes++] = ((const char *)text)[i];
        const size_t end = find_end(w);
        w->bytes -= end;
        w->stopped = end > 0;
    }
    return w->stopped ? w->bytes : w->bytes - count_waiting(w);
}

void pl_stops_drop(pl_stops_window *w, size_t bytes)
{
    w->bytes -= bytes;
    memmove(w->held, w->held + bytes, w->bytes);
}

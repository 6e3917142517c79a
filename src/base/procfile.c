#include "base/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

int pl_procfile_open(pl_procfile *f, const char *path)
{
    f->next = f->end = 0;
    f->error = 0;
    f->fd = pl_io_open(path, O_RDONLY);
    return f->fd < 0 ? -1 : 0;
}

void pl_procfile_close(pl_procfile *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

/* The next byte, or -1 at the end and from the first error on. */
static int next_byte(pl_procfile *f)
{
    if (f->error) return -1;
    if (f->next == f->end) {
        ssize_t got;
        do got = read(f->fd, f->chunk, sizeof f->chunk);
        while (got < 0 && errno == EINTR);
        if (got < 0) f->error = errno;
        if (got <= 0) return -1;
        f->next = 0;
        f->end = (size_t)got;
    }
    return (unsigned char)f->chunk[f->next++];
}

char *pl_procfile_line(pl_procfile *f)
{
    size_t used = 0;
    int c;
    while ((c = next_byte(f)) >= 0 && c != '\n') {
        if (used < sizeof f->line - 1) f->line[used++] = (char)c;
    }
    f->line[used] = 0;
    return f->error || (c < 0 && used == 0) ? NULL : f->line; /* half a line is none */
}

bool pl_procfile_field(const char *line, const char *key, uint64_t *value)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) return false;
    const char *p = line + length;
    if (*p == ':') p++;
    if (*p != ' ' && *p != '\t') return false;
    char *end;
    errno = 0;
    uint64_t number = strtoull(p, &end, 10);
    if (end == p || errno) return false;
    *value = strcmp(end, " kB") == 0 ? number * 1024 : number;
    return true;
}

bool pl_procfile_find(const char *path, const char *key, uint64_t *value)
{
    pl_procfile f;
    if (pl_procfile_open(&f, path)) return false;
    bool found = false;
    for (char *line; !found && (line = pl_procfile_line(&f));) found = pl_procfile_field(line, key, value);
    pl_procfile_close(&f);
    errno = f.error;
    return found;
}

int pl_procfile_read(const char *path, char *text, size_t room)
{
    pl_procfile f;
    size_t used = 0;
    if (pl_procfile_open(&f, path)) return -1;
    for (int c; used + 1 < room && (c = next_byte(&f)) >= 0;) text[used++] = (char)c;
    text[used] = 0;
    pl_procfile_close(&f);
    if (f.error) errno = f.error;
    return f.error ? -1 : 0;
}

int pl_procfile_read_line(const char *path, char *text, size_t room)
{
    if (pl_procfile_read(path, text, room)) return -1;
    text[strcspn(text, "\n")] = 0;
    return 0;
}

void pl_procfile_unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && strspn(from + 1, "01234567") >= 3;
        *to = octal ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = 0;
}

/* 55ed843d2000-55ed843d4000 r--p 00000000 fe:00 247134                     /usr/bin/cat */
bool pl_mapping_parse(const char *line, pl_mapping *m)
{
    char *end;
    m->begin = strtoul(line, &end, 16);
    if (end == line || *end != '-') return false;
    line = end + 1;
    m->end = strtoul(line, &end, 16);
    if (end == line || *end != ' ' || strlen(end) < 6) return false;
    memcpy(m->protection, end + 1, 4);
    m->protection[4] = 0;
    m->offset = strtoul(end + 5, &end, 16);
    m->device_major = (unsigned)strtoul(end, &end, 16);
    m->device_minor = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
    if (*end != ' ') return false;
    m->inode = strtoul(end, &end, 10);
    m->name = end + strspn(end, " ");
    return m->begin < m->end;
}

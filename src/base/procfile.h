/* Reading the text files of /proc and /sys line by line without the heap: the buffer is the caller's (on its stack, or
 * static), so it works after "committed" too. Lines longer than 1023 bytes are cut. */
#ifndef PL_BASE_PROCFILE_H
#define PL_BASE_PROCFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_procfile {
    int fd, error;    /* errno of the read that failed, 0: none. To be asked for when there are no more lines */
    size_t next, end; /* unread bytes of chunk */
    char chunk[2048];
    char line[1024];
} pl_procfile;

int pl_procfile_open(pl_procfile *, const char *path); /* 0, or -1 with errno set */
char *pl_procfile_line(pl_procfile *); /* without its newline; NULL at the end. Valid until the next call */
void pl_procfile_close(pl_procfile *);

/* "Key:    123 kB" gives 123·1024, "Key: 7" gives 7; false when the line has another key. */
bool pl_procfile_field(const char *line, const char *key, uint64_t *value);
/* The first such field of a file; false when there is none (errno is 0 then) or the file cannot be read (errno). */
bool pl_procfile_find(const char *path, const char *key, uint64_t *value);
/* A short file into text, as much of it as has room; 0, or -1 with errno set. */
int pl_procfile_read(const char *path, char *text, size_t room);
/* Its first line only. */
int pl_procfile_read_line(const char *path, char *text, size_t room);

/* Undoes, in place, what the kernel does to paths: blank, tab, newline and backslash stand there as \040, \011, \012,
 * \134. Backslashes are common: systemd writes a dash in a name as \x2d. */
void pl_procfile_unescape(char *path);

/* One line of /proc/self/maps, or the first line of a mapping in smaps. */
typedef struct pl_mapping {
    uintptr_t begin, end;
    char protection[5]; /* rwxp */
    uint64_t offset, inode;
    unsigned device_major, device_minor;
    const char *name; /* inside the line; "" for anonymous memory */
} pl_mapping;
bool pl_mapping_parse(const char *line, pl_mapping *); /* false: no such line, or an empty range */

#endif

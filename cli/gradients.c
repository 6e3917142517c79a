/* What is in a safetensors file: u64 length of the header, little-endian; the header, JSON:
 *   {"__metadata__":{…},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, …}; the data.
 * Read as a stream through a small buffer, because this runs after "committed". The file is the library's own, but a
 * damaged one gives a sentence and no harm: names are cut, numbers checked. */
#include "gradients.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "out.h"

enum { BUFFER_BYTES = 4096, NAME_BYTES = 160, SHAPE_BYTES = 96 };

typedef struct stream {
    int fd;
    uint64_t at, end; /* of the header, in the file */
    char buffer[BUFFER_BYTES];
    size_t used, filled;
    int error; /* errno of the read that failed */
} stream;

typedef struct tensor {
    char name[NAME_BYTES], dtype[16], shape[SHAPE_BYTES];
    uint64_t begin; /* in the data */
} tensor;

/* Up to that many bytes: fewer only at the end of the file; -1 with errno. */
static ssize_t read_at(int fd, void *data, size_t bytes, off_t at)
{
    size_t got = 0;
    while (got < bytes) {
        ssize_t n = pread(fd, (char *)data + got, bytes - got, at + (off_t)got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int peek(stream *s)
{
    if (s->used < s->filled) return (unsigned char)s->buffer[s->used];
    if (s->at >= s->end) return -1;
    uint64_t room = s->end - s->at < BUFFER_BYTES ? s->end - s->at : BUFFER_BYTES;
    ssize_t n = read_at(s->fd, s->buffer, (size_t)room, (off_t)s->at);
    if (n < 0) s->error = errno;
    if (n <= 0) return -1;
    s->at += (uint64_t)n;
    s->used = 0;
    s->filled = (size_t)n;
    return (unsigned char)s->buffer[0];
}

static int next(stream *s)
{
    int c = peek(s);
    if (c >= 0) s->used++;
    return c;
}

/* The next character that is no space or separator, not taken. */
static int peek_token(stream *s)
{
    while (peek(s) >= 0 && strchr(" \t\r\n,:", peek(s))) next(s);
    return peek(s);
}

/* A string at the stream, cut to room. */
static void read_string(stream *s, char *text, size_t room)
{
    size_t bytes = 0;
    for (int c = next(s); (c = next(s)) >= 0 && c != '"';) {
        if (c == '\\') c = next(s);
        if (bytes + 1 < room) text[bytes++] = (char)c;
    }
    text[bytes] = 0;
}

/* Any value, its text cut to room. */
static void read_value(stream *s, char *text, size_t room)
{
    size_t bytes = 0;
    int depth = 0;
    bool quoted = false;
    for (int c = peek_token(s); c >= 0; c = peek(s)) {
        if (!quoted && depth == 0 && bytes && strchr(",}]", c)) break;
        if (c == '"') quoted = !quoted;
        if (!quoted && (c == '[' || c == '{')) depth++;
        if (!quoted && (c == ']' || c == '}')) depth--;
        if (bytes + 1 < room) text[bytes++] = (char)c;
        next(s);
        if (!quoted && depth == 0 && strchr("]}\"", c)) break;
    }
    text[bytes] = 0;
}

/* At the '{' behind the name. */
static void read_entry(stream *s, tensor *t)
{
    char key[32], value[SHAPE_BYTES];
    next(s);
    while (peek_token(s) == '"') {
        read_string(s, key, sizeof key);
        read_value(s, value, sizeof value);
        size_t n = strlen(value);
        if (strcmp(key, "dtype") == 0 && n >= 2) snprintf(t->dtype, sizeof t->dtype, "%.*s", (int)(n - 2), value + 1);
        if (strcmp(key, "shape") == 0) snprintf(t->shape, sizeof t->shape, "%s", value);
        if (strcmp(key, "data_offsets") == 0) t->begin = strtoull(value + 1, NULL, 10);
    }
    if (peek(s) == '}') next(s);
}

/* The value of a tensor of one number; false when it is none. */
static bool read_scalar(stream *s, const tensor *t, double *value)
{
    float single;
    off_t at = (off_t)(s->end + t->begin);
    if (strcmp(t->shape, "[]") != 0 && strcmp(t->shape, "[1]") != 0) return false;
    bool is_double = strcmp(t->dtype, "F64") == 0;
    if (!is_double && strcmp(t->dtype, "F32") != 0) return false;
    size_t bytes = is_double ? sizeof *value : sizeof single;
    ssize_t n = read_at(s->fd, is_double ? (void *)value : &single, bytes, at);
    if (n < 0) s->error = errno;
    if (n == sizeof single) *value = (double)single;
    return n == (ssize_t)bytes;
}

static pl_status print_tensor(stream *s, const tensor *t, pl_error *err)
{
    double value;
    pl_status status = pl_put_format(err, "%-44s %-4s %s", t->name, t->dtype, t->shape);
    if (status == PL_OK && read_scalar(s, t, &value)) status = pl_put_format(err, " = %.9g", value);
    return status == PL_OK ? pl_put_text("\n", err) : status;
}

static pl_status list(stream *s, const char *path, pl_error *err)
{
    unsigned long long count = 0;
    pl_status status = PL_OK;
    int first = next(s);
    if (first != '{' && !s->error) return pl_cli_error(err, PL_E_DATA, "%s: is not a safetensors file", path);
    while (status == PL_OK && peek_token(s) == '"') {
        tensor t = {0};
        char ignored[8];
        read_string(s, t.name, sizeof t.name);
        if (strcmp(t.name, "__metadata__") == 0 || peek_token(s) != '{') {
            read_value(s, ignored, sizeof ignored);
            continue;
        }
        read_entry(s, &t);
        count++;
        status = print_tensor(s, &t, err);
    }
    if (status == PL_OK && s->error)
        return pl_cli_error(err, PL_E_STORAGE, "%s: cannot be read: %s", path, strerror(s->error));
    return status == PL_OK ? pl_put_format(err, "%llu tensors in %s\n", count, path) : status;
}

pl_status pl_list_tensors(const char *path, pl_error *err)
{
    unsigned char length[8];
    stream s = {.fd = -1, .at = sizeof length};
    do s.fd = open(path, O_RDONLY | O_CLOEXEC);
    while (s.fd < 0 && errno == EINTR);
    if (s.fd < 0) return pl_cli_error(err, PL_E_STORAGE, "%s: cannot be read: %s", path, strerror(errno));
    pl_status status = PL_OK;
    ssize_t got = read_at(s.fd, length, sizeof length, 0);
    if (got < 0)
        status = pl_cli_error(err, PL_E_STORAGE, "%s: cannot be read: %s", path, strerror(errno));
    else if (got != sizeof length)
        status = pl_cli_error(err, PL_E_DATA, "%s: is not a safetensors file", path);
    for (int i = 8; i-- > 0;) s.end = s.end << 8 | length[i];
    s.end += sizeof length;
    if (status == PL_OK) status = list(&s, path, err);
    close(s.fd);
    return status;
}

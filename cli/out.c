#include "out.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "command.h"

enum { SAY_BYTES = 4096, COLUMNS = 80 };

/* 0, or errno. */
static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        text += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* ---- talk and data ---- */

static volatile sig_atomic_t in_line; /* mostly a progress bar: a handler that exits ends the line first */

static bool leaves_in_line(const char *text, size_t bytes)
{
    static const char erase[] = "\033[K";
    size_t n = sizeof erase - 1;
    return bytes && text[bytes - 1] != '\n' && !(bytes >= n && memcmp(text + bytes - n, erase, n) == 0);
}

void pl_say_bytes(const char *text, size_t bytes)
{
    bool leaves = leaves_in_line(text, bytes);
    if (leaves) in_line = 1;
    (void)write_all(STDERR_FILENO, text, bytes);
    if (bytes && !leaves) in_line = 0;
}

void pl_say_end_line(void)
{
    if (in_line) (void)write_all(STDERR_FILENO, "\n", 1);
    in_line = 0;
}

static size_t format_into(char *text, const char *format, va_list list)
{
    int n = vsnprintf(text, SAY_BYTES, format, list);
    return n < 0 ? 0 : n < SAY_BYTES ? (size_t)n : SAY_BYTES - 1;
}

void pl_say(const char *format, ...)
{
    char text[SAY_BYTES];
    va_list list;
    va_start(list, format);
    size_t bytes = format_into(text, format, list);
    va_end(list);
    pl_say_bytes(text, bytes);
}

pl_status pl_put(const char *text, size_t bytes, pl_error *err)
{
    int error = write_all(STDOUT_FILENO, text, bytes);
    if (error == 0) return PL_OK;
    (void)pl_cli_error(err, PL_E_STORAGE, "the standard output cannot be written: %s", strerror(error));
    errno = error;
    return PL_E_STORAGE;
}

pl_status pl_put_kept(const char *text, size_t bytes, pl_error *err)
{
    const pl_status status = pl_put(text, bytes, err);
    return status != PL_OK && errno == EPIPE ? PL_OK : status;
}

pl_status pl_put_text(const char *text, pl_error *err) { return pl_put(text, strlen(text), err); }

bool pl_is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

pl_status pl_put_to(const char *path, pl_status (*save)(const char *path, const char *text, size_t bytes, pl_error *),
                    const char *text, size_t bytes, pl_error *err)
{
    return !path || pl_is_stdout(path) ? pl_put(text, bytes, err) : save(path, text, bytes, err);
}

pl_status pl_put_format(pl_error *err, const char *format, ...)
{
    char text[SAY_BYTES];
    va_list list;
    va_start(list, format);
    size_t bytes = format_into(text, format, list);
    va_end(list);
    return pl_put(text, bytes, err);
}

pl_status pl_put_words(const char *text, size_t bytes, size_t indent, const char *end, pl_error *err)
{
    size_t column = indent;
    pl_status status = PL_OK;
    for (size_t at = 0, word; at < bytes && status == PL_OK; at += word + (at + word < bytes)) {
        word = 0;
        while (at + word < bytes && text[at + word] != ' ') word++;
        bool breaks = column > indent && column + 1 + word > COLUMNS;
        const char *before = column > indent ? " " : "";
        status = breaks ? pl_put_format(err, "\n%*s", (int)indent, "") : pl_put_text(before, err);
        if (status == PL_OK) status = pl_put(text + at, word, err);
        column = breaks ? indent + word : column + strlen(before) + word;
    }
    return status == PL_OK ? pl_put_text(end, err) : status;
}

/* ---- lines ---- */

void pl_line_bytes(pl_line *line, const char *text, size_t bytes)
{
    if (line->bytes + 1 >= line->room) return;
    if (bytes > line->room - line->bytes - 1) bytes = line->room - line->bytes - 1;
    memcpy(line->text + line->bytes, text, bytes);
    line->bytes += bytes;
    line->text[line->bytes] = 0;
}

void pl_line_add(pl_line *line, const char *format, ...)
{
    char text[SAY_BYTES];
    va_list list;
    va_start(list, format);
    size_t bytes = format_into(text, format, list);
    va_end(list);
    pl_line_bytes(line, text, bytes);
}

static size_t continuation_bytes(unsigned char first)
{
    if (first < 0x80) return 0;
    if (first >= 0xc2 && first < 0xe0) return 1;
    if (first >= 0xe0 && first < 0xf0) return 2;
    return first >= 0xf0 && first < 0xf5 ? 3 : SIZE_MAX;
}

/* The second byte decides about overlong forms, surrogates and the end of Unicode. */
static bool is_second_byte(unsigned char first, unsigned char second)
{
    if (first == 0xe0) return second >= 0xa0;
    if (first == 0xed) return second < 0xa0;
    if (first == 0xf0) return second >= 0x90;
    if (first == 0xf4) return second < 0x90;
    return first != 0xc2 || second >= 0xa0; /* C1 controls act on terminals too */
}

size_t pl_character_bytes(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t more = continuation_bytes(p[0]);
    if (more >= bytes) return 0;
    if (more == 0) return p[0] == '\n' || p[0] == '\t' || (p[0] >= 0x20 && p[0] != 0x7f);
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return is_second_byte(p[0], p[1]) ? more + 1 : 0;
}

static void json_character(pl_line *line, const char *text, size_t bytes)
{
    if (bytes == 1 && (*text == '"' || *text == '\\')) pl_line_bytes(line, "\\", 1);
    if (*text == '\n')
        pl_line_bytes(line, "\\n", 2);
    else if (*text == '\t')
        pl_line_bytes(line, "\\t", 2);
    else
        pl_line_bytes(line, text, bytes);
}

const char *pl_show_plainly(const char *name, char text[PL_SHOWN_BYTES])
{
    pl_line line = {text, PL_SHOWN_BYTES, 0};
    text[0] = 0;
    for (size_t at = 0, bytes = strlen(name); at < bytes;) {
        size_t n = pl_character_bytes(name + at, bytes - at);
        bool shown = n > 0 && name[at] != '\n' && name[at] != '\t';
        pl_line_bytes(&line, shown ? name + at : "?", shown ? n : 1);
        at += n ? n : 1;
    }
    return text;
}

void pl_line_json(pl_line *line, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t n = pl_character_bytes(text + at, bytes - at);
        unsigned char byte = (unsigned char)text[at];
        if (n)
            json_character(line, text + at, n);
        else if (byte < 0x80)
            pl_line_add(line, "\\u%04x", byte);
        else
            pl_line_add(line, "\\ufffd");
        at += n ? n : 1;
    }
}

/* ---- terminals ---- */

bool pl_is_terminal(int fd) { return isatty(fd) == 1; }

bool pl_terminal_redraws(int fd)
{
    const char *term = getenv("TERM");
    return pl_is_terminal(fd) && !(term && strcmp(term, "dumb") == 0);
}

unsigned pl_terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

#include "base/line_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/locale.h"

pl_status pl_line_flush(pl_line_file *l, pl_error *err)
{
    const size_t bytes = l->bytes;
    l->bytes = 0;
    return pl_file_write(l->file, l->text, bytes, err);
}

pl_status pl_line_begin(pl_line_file *l, pl_error *err)
{
    return l->bytes + PL_LINE_BYTES > PL_LINE_BLOCK_BYTES ? pl_line_flush(l, err) : PL_OK;
}

void pl_line_put(pl_line_file *l, const char *fmt, ...)
{
    const size_t room = PL_LINE_BLOCK_BYTES - l->bytes;
    va_list arguments;
    va_start(arguments, fmt);
    const int n = pl_vprint(l->text + l->bytes, room, fmt, arguments);
    va_end(arguments);
    if (n > 0) l->bytes += (size_t)n < room ? (size_t)n : room - 1;
}

pl_status pl_line_file_write(const char *path, pl_status (*put)(pl_line_file *, const void *context, pl_error *),
                             const void *context, pl_error *err)
{
    pl_file_writer file;
    pl_line_file l = {.file = &file};
    PL_TRY(pl_file_create(&file, path, err));
    pl_status status = put(&l, context, err);
    if (status == PL_OK) status = pl_line_flush(&l, err);
    if (status == PL_OK) return pl_file_commit(&file, err);
    pl_file_abandon(&file);
    return status;
}

/* ---- reading one ---- */

#define FILE_BYTES_MAX (UINT64_C(1) << 32)

pl_status pl_lines_open(pl_lines *l, const char *path, const char *header, const char *what, pl_error *err)
{
    size_t bytes;
    *l = (pl_lines){.path = path, .what = what, .line = 1};
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &l->text, &bytes, err));
    l->at = l->text + strlen(header);
    if (strncmp(l->text, header, strlen(header)) == 0) return PL_OK;
    pl_lines_close(l);
    return pl_fail(err, PL_E_DATA,
                   "%s:1: the first line of such a file is \"%.*s\", and this one's is another; " PL_LINES_REMEDY, path,
                   (int)strcspn(header, "\n"), header);
}

char *pl_lines_next(pl_lines *l)
{
    char *line = l->at, *end = strchr(line, '\n');
    if (!*line) return NULL;
    l->line++;
    if (!end) return l->at = strchr(line, 0);
    *end = 0;
    l->at = end + 1;
    return line;
}

pl_status pl_lines_refuse(const pl_lines *l, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": is no %s; " PL_LINES_REMEDY, l->path, l->line, l->what);
}

void pl_lines_close(pl_lines *l)
{
    pl_free(l->text);
    *l = (pl_lines){0};
}

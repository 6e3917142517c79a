#include "base/line_file.h"
#include "base/locale.h"

#include <stdarg.h>
#include <stdio.h>

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

/* Generated text. As data (generate) it goes out as it is, but for a terminal, which must not be told to do things by a
 * model. As a sample within training it stands in a frame:
 *
 *   sample at step 100
 *   | The meaning of the
 *   | word is
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "out.h"
#include "progress.h"

static void put_data(pl_view *v, const char *text, size_t bytes)
{
    if (v->status == PL_OK) v->status = pl_put(text, bytes, &v->error);
}

/* Broken characters and controls are shown as U+FFFD. */
static void put_on_terminal(pl_view *v, const char *text, size_t bytes)
{
    static const char replacement[] = "\xef\xbf\xbd";
    for (size_t at = 0; at < bytes;) {
        size_t n = pl_character_bytes(text + at, bytes - at);
        if (n)
            put_data(v, text + at, n);
        else
            put_data(v, replacement, sizeof replacement - 1);
        at += n ? n : 1;
    }
}

static void begin_line(pl_view *v, pl_line *line)
{
    pl_line_add(line, "%s", v->color ? "\n\033[2m  |\033[0m " : "\n  | ");
    v->text_column = 0;
}

static void add_framed(pl_view *v, pl_line *line, const char *text, size_t bytes, unsigned width)
{
    for (size_t at = 0; at < bytes;) {
        size_t n = pl_character_bytes(text + at, bytes - at);
        bool newline = text[at] == '\n',
             full = v->text_column >= width || (text[at] == ' ' && v->text_column + 8 >= width);
        if (newline || full) begin_line(v, line);
        if (!newline && !(full && text[at] == ' ')) {
            if (n)
                pl_line_bytes(line, text[at] == '\t' ? " " : text + at, n);
            else
                pl_line_add(line, "\xef\xbf\xbd");
            v->text_column++;
        }
        at += n ? n : 1;
    }
}

static void put_framed(pl_view *v, const char *text, size_t bytes)
{
    char block[4096];
    pl_line line = {block, sizeof block, 0};
    unsigned columns = pl_terminal_columns(STDERR_FILENO), width = (columns > 100 ? 100 : columns) - 6;
    if (!v->in_text) {
        pl_view_clear(v);
        pl_line_add(&line, "sample at step %" PRIu64, v->step);
        begin_line(v, &line);
    }
    add_framed(v, &line, text, bytes, width);
    pl_say_bytes(line.text, line.bytes);
}

void pl_view_text(pl_view *v, const char *text, size_t bytes)
{
    if (!v->text_to_stdout)
        put_framed(v, text, bytes);
    else if (pl_is_terminal(STDOUT_FILENO))
        put_on_terminal(v, text, bytes);
    else
        put_data(v, text, bytes);
    v->in_text = true;
}

void pl_view_text_end(pl_view *v)
{
    if (v->text_to_stdout)
        put_data(v, "\n", 1);
    else if (v->in_text)
        pl_say("\n");
    v->in_text = false;
}

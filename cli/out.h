/* Text to stdout and stderr by write(2), from buffers of fixed size: safe after "committed". */
#ifndef PL_CLI_OUT_H
#define PL_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

/* Messages, to stderr; cut at 4 KiB. What cannot be written is lost: a message is no reason to end a run. */
void pl_say(const char *format, ...) PL_PRINTF(1, 2);
void pl_say_bytes(const char *text, size_t bytes);
/* If stderr is in the middle of a line, ends it. For signal handlers, too. */
void pl_say_end_line(void);

/* Data, to stdout: all, or PL_E_STORAGE with errno as write left it. */
pl_status pl_put(const char *text, size_t bytes, pl_error *);
pl_status pl_put_text(const char *text, pl_error *);
/* The same for what is kept elsewhere, too, and may outlive its readers (signals.h): one that leaves is no failure. */
pl_status pl_put_kept(const char *text, size_t bytes, pl_error *);
/* Does this word, which says where data go, mean standard output? NULL does not. */
bool pl_is_stdout(const char *path);
/* To stdout where the path is NULL or "-", else into that file: pl_text_save, or pl_page_save. */
pl_status pl_put_to(const char *path, pl_status (*save)(const char *path, const char *text, size_t bytes, pl_error *),
                    const char *text, size_t bytes, pl_error *);
/* Text in lines of 80 columns: the first begins at the cursor, in column `indent`, further lines after as many spaces;
 * then what ends it. */
pl_status pl_put_words(const char *text, size_t bytes, size_t indent, const char *end, pl_error *);
pl_status pl_put_format(pl_error *, const char *format, ...) PL_PRINTF(2, 3); /* at most 4 KiB */

/* A line put together piece by piece in the caller's memory; cut when room is short, and always terminated. */
typedef struct pl_line {
    char *text;
    size_t room, bytes;
} pl_line;
void pl_line_add(pl_line *, const char *format, ...) PL_PRINTF(2, 3);
void pl_line_bytes(pl_line *, const char *text, size_t bytes);
/* The inside of a JSON string: escaped, bytes that are not UTF-8 replaced by U+FFFD. */
void pl_line_json(pl_line *, const char *text, size_t bytes);

/* A path, or other foreign text, made safe for a terminal: control characters become question marks. Returns the
 * text. */
enum { PL_SHOWN_BYTES = 1024 };
const char *pl_show_plainly(const char *name, char text[PL_SHOWN_BYTES]);

/* Bytes of the UTF-8 character at text, or 0 for a broken one or a control character other than newline and tab. */
size_t pl_character_bytes(const char *text, size_t bytes);

bool pl_is_terminal(int fd);
/* Can the terminal rewrite its last line? With TERM=dumb (an editor's window, mostly) it cannot, and gets lines. */
bool pl_terminal_redraws(int fd);
unsigned pl_terminal_columns(int fd); /* 80 when it is not a terminal */

#endif

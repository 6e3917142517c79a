/* Text to stdout and stderr by write(2), from buffers of fixed size: may be used after "committed". */
#ifndef PL_CLI_OUT_H
#define PL_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

/* Talk, to stderr; at most 4 KiB, cut beyond. What cannot be written is lost: talk is no reason to end a run. */
void pl_say(const char *format, ...) PL_PRINTF(1, 2);
void pl_say_bytes(const char *text, size_t bytes);
/* Ends the line that stderr is in the middle of, if it is. For signal handlers, too. */
void pl_say_end_line(void);

/* Data, to stdout: all of it, or PL_E_STORAGE with errno as write left it. */
pl_status pl_put(const char *text, size_t bytes, pl_error *);
pl_status pl_put_text(const char *text, pl_error *);
/* The same of what is kept elsewhere, by who outlives its readers (signals.h): that one left is its own affair. */
pl_status pl_put_kept(const char *text, size_t bytes, pl_error *);
/* Is a word that says where data go standard output? NULL is not. */
bool pl_is_stdout(const char *path);
/* To stdout where the path is NULL or "-", else into that file: pl_text_save, or pl_page_save. */
pl_status pl_put_to(const char *path, pl_status (*save)(const char *path, const char *text, size_t bytes, pl_error *),
                    const char *text, size_t bytes, pl_error *);
/* Words for lines of 80 columns: the first stands where the cursor is, at column `indent`, further lines begin behind
 * so many spaces; then what ends it. */
pl_status pl_put_words(const char *text, size_t bytes, size_t indent, const char *end, pl_error *);
pl_status pl_put_format(pl_error *, const char *format, ...) PL_PRINTF(2, 3); /* at most 4 KiB */

/* A line put together piece by piece in the caller's memory; cut, and always terminated, when room is short. */
typedef struct pl_line {
    char *text;
    size_t room, bytes;
} pl_line;
void pl_line_add(pl_line *, const char *format, ...) PL_PRINTF(2, 3);
void pl_line_bytes(pl_line *, const char *text, size_t bytes);
/* The inside of a JSON string: escaped, bytes that are no UTF-8 replaced by U+FFFD. */
void pl_line_json(pl_line *, const char *text, size_t bytes);

/* A path, or another text of somebody else's, as a terminal may show it: what would act there becomes a question mark.
 * Returns the text. */
enum { PL_SHOWN_BYTES = 1024 };
const char *pl_show_plainly(const char *name, char text[PL_SHOWN_BYTES]);

/* Bytes of the UTF-8 character at text, or 0: broken, or a control character other than newline and tab. */
size_t pl_character_bytes(const char *text, size_t bytes);

bool pl_is_terminal(int fd);
/* One that can write its last line again; with TERM=dumb (an editor's window, mostly) it cannot, and gets lines. */
bool pl_terminal_redraws(int fd);
unsigned pl_terminal_columns(int fd); /* 80 when it is none */

#endif

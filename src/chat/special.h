/* Special tokens are never forged: the text of a special token in what a person wrote (`<|im_end|>` in a message)
 * stays text. Before rendering, each occurrence is put between two marks, private characters that are removed from
 * what people write; afterwards the rendered text is cut at them, and what stood between is encoded without any
 * special token. */
#ifndef PL_CHAT_SPECIAL_H
#define PL_CHAT_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_chat_special {
    const char *text;
    size_t bytes;
} pl_chat_special;

typedef struct pl_chat_specials {
    const pl_chat_special *sorted;
    size_t count;
} pl_chat_specials;

enum { PL_CHAT_MARK_BYTES = 4 }; /* each: U+F0000 and U+F0001 */

/* Sorts the texts in place, as the functions below need them. None may be empty. */
pl_chat_specials pl_chat_specials_sort(pl_chat_special *texts, size_t count);

/* Writes the text with its marks, as far as there is room, and returns the bytes of all of it. Of several texts that
 * begin at the same place, the longest is marked. */
size_t pl_chat_mark(const pl_chat_specials *, const char *text, size_t bytes, char *to, size_t room);

typedef struct pl_chat_piece {
    const char *text;
    size_t bytes;
    bool is_literal; /* a person wrote it: encoded by itself, without added tokens */
    bool is_first;   /* else no blank is put before it, where a tokenizer puts one before a text */
} pl_chat_piece;

/* The next piece of a rendered text, from *at on, which begins as 0; false: there are no more. No piece is empty, and
 * the marks are in none. A lone mark, which a template may leave (it can split texts anywhere), parts two pieces. */
bool pl_chat_next_piece(const pl_chat_specials *, const char *rendered, size_t bytes, size_t *at, pl_chat_piece *);

#endif

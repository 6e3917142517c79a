/* Texts as Python sees them: characters are code points (a byte that is no UTF-8 counts as one), and white space is
 * Unicode's. */
#ifndef PL_CHAT_TEXT_H
#define PL_CHAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at p[0 … n), n ≥ 1. */
size_t pl_chat_char(const char *p, size_t n);
size_t pl_chat_char_before(const char *p, size_t n); /* of the one that ends at p + n */
size_t pl_chat_length(const char *p, size_t n);      /* characters */
/* The byte at which character `index` begins; n behind the last one. */
size_t pl_chat_offset(const char *p, size_t n, size_t index);
/* Bytes of the white space that p begins with, or ends with. */
size_t pl_chat_space(const char *p, size_t n);
size_t pl_chat_space_before(const char *p, size_t n);
bool pl_chat_is_ascii(const char *p, size_t n);

#endif

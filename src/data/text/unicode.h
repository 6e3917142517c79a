/* Reading UTF-8 that may be broken, and the four classes of code points that the GPT-2 pattern tells apart.
 *
 * A byte that begins no valid sequence is a character of its own, of class "other": any file has a reading. Classes are
 * those of Unicode 16.0 as Hugging Face's tokenizers knows them (unicode_ranges.inc). */
#ifndef PL_DATA_UNICODE_H
#define PL_DATA_UNICODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum pl_char_class { PL_CHAR_OTHER, PL_CHAR_LETTER, PL_CHAR_NUMBER, PL_CHAR_SPACE } pl_char_class;

#define PL_NOT_UTF8 UINT32_MAX

pl_char_class pl_unicode_class(uint32_t code_point);

/* The character at p[0 … n), n ≥ 1: its bytes (1 to 4) and *code_point, or 1 and PL_NOT_UTF8 when p[0] begins none.
 * 0 when the n bytes are the beginning of a valid character that goes on behind them. */
size_t pl_utf8_read(const uint8_t *p, size_t n, uint32_t *code_point);

/* Writes 1 to 4 bytes. */
size_t pl_utf8_write(uint32_t code_point, uint8_t out[4]);

#endif

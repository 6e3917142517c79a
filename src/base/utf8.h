/* UTF-8 that may be broken: a byte that begins no valid sequence is a character of its own, so any bytes have a
 * reading. */
#ifndef PL_BASE_UTF8_H
#define PL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define PL_NOT_UTF8 UINT32_MAX

/* The character at p[0 … n), n ≥ 1: its bytes (1 to 4) and *code_point, or 1 and PL_NOT_UTF8 when p[0] begins none.
 * 0 when the n bytes are the beginning of a valid character that goes on behind them. */
size_t pl_utf8_read(const uint8_t *p, size_t n, uint32_t *code_point);

/* Bytes of the byte order mark that the text begins with, which some editors leave there: 3, or 0. It is no character
 * of any text: whoever reads what people wrote reads on after it. */
size_t pl_utf8_mark(const void *text, size_t bytes);

/* Writes 1 to 4 bytes. */
size_t pl_utf8_write(uint32_t code_point, uint8_t out[4]);

#endif

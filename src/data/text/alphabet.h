/* GPT-2's alphabet of 256 printable characters, one for each byte, in which byte-level BPE writes its tokens down:
 * '!'…'~', U+00A1…U+00AC and U+00AE…U+00FF stand for themselves, the other 68 bytes, in order, for U+0100…U+0143.
 * A space is thus "Ġ", a line feed "Ċ". */
#ifndef PL_DATA_ALPHABET_H
#define PL_DATA_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

enum { PL_ALPHABET_LAST = 0x143 };

uint32_t pl_alphabet_char(uint8_t byte);
int pl_alphabet_byte(uint32_t code_point); /* the byte, or −1 when the character is not in the alphabet */
/* The bytes that a text in the alphabet, which is UTF-8, stands for; `out` may be the text. Returns how many, or −1
 * where a character, *other, is not in it: `out` has changed then. */
int64_t pl_alphabet_decode(const uint8_t *text, size_t bytes, uint8_t *out, uint32_t *other);
/* The bytes in order of their characters: as Hugging Face's trainer numbers them. */
void pl_alphabet_order(uint8_t bytes[256]);

#endif

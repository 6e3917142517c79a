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
/* The bytes in order of their characters: as Hugging Face's trainer numbers them. */
void pl_alphabet_order(uint8_t bytes[256]);

#endif

/* The four classes of code points that the patterns of pre-tokenizers tell apart; a byte that begins no valid sequence
 * of UTF-8 is of class "other". They are those of Unicode 16.0 as Hugging Face's tokenizers knows them
 * (unicode_ranges.inc). */
#ifndef PL_DATA_UNICODE_H
#define PL_DATA_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

typedef enum pl_char_class { PL_CHAR_OTHER, PL_CHAR_LETTER, PL_CHAR_NUMBER, PL_CHAR_SPACE } pl_char_class;

pl_char_class pl_unicode_class(uint32_t code_point);
bool pl_unicode_is_punctuation(uint32_t code_point); /* \p{P} */
/* What the pre-tokenizer Digits isolates: numbers, and some of a newer Unicode. */
bool pl_unicode_is_digit(uint32_t code_point);

#endif

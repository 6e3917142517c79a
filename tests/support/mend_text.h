/* A text that ends with a line "checksum …" (a plan) gets the right one, in its place. */
#ifndef TESTS_SUPPORT_MEND_TEXT_H
#define TESTS_SUPPORT_MEND_TEXT_H

#include <string.h>

#include "base/checksum.h"

static inline void mend_text(char *text, size_t bytes)
{
    static const char word[] = "checksum ";
    const size_t digits = PL_CHECKSUM_TEXT_BYTES - 1,
                 length = sizeof word - 1 + digits + 1; /* and the end of the line */
    char right[PL_CHECKSUM_TEXT_BYTES];
    if (bytes < length || memcmp(text + bytes - length, word, sizeof word - 1) != 0) return;
    size_t line = bytes - length;
    while (line && text[line - 1] != '\n') line--;
    pl_checksum_print(pl_checksum_of(text, line), right);
    memcpy(text + bytes - 1 - digits, right, digits);
}

#endif

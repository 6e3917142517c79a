/* Texts that need no file: number i is a pure function of (seed, i). Of code, prose and formulas, with names and
 * numbers drawn at random; one in sixteen has accents, Greek, Cyrillic, Arabic or Hebrew words, tabs or paragraphs. */
#ifndef PL_DATA_GRAMMAR_H
#define PL_DATA_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

/* Characters of a text, and room for its bytes. */
enum { PL_GRAMMAR_CHARACTERS_MIN = 20, PL_GRAMMAR_CHARACTERS_MAX = 400, PL_GRAMMAR_TEXT_BYTES = 1600 };

/* Returns how many bytes; no zero ends them. Asks for no memory. */
size_t pl_grammar_text(uint64_t seed, uint64_t id, char text[PL_GRAMMAR_TEXT_BYTES]);

#endif

/* Pre-tokenizers: they cut text into pieces without remainder, and merges never cross a cut. Each piece is found from
 * the bytes at its beginning and at most one character after its end, so a stream can be cut with a bounded window. */
#ifndef PL_DATA_PRETOKEN_H
#define PL_DATA_PRETOKEN_H

#include <stddef.h>
#include <stdint.h>

enum { PL_PRETOKEN_LOOKAHEAD = 4, PL_PRETOKEN_CAP_MIN = 8 };

/* The patterns, as Hugging Face's tokenizers and the makers of models write them. */
#define PL_PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define PL_PATTERN_LLAMA3                                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"           \
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define PL_PATTERN_QWEN2                                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"                \
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef enum pl_scanner {
    PL_SCANNER_NONE, /* does not cut */
    PL_SCANNER_GPT2, /* Radford et al. 2019, encoder.py */
    PL_SCANNER_LLAMA3,
    PL_SCANNER_QWEN2,
    PL_SCANNERS
} pl_scanner;

/* Cuts made before the pattern is applied to what lies between them. */
typedef enum pl_precut {
    PL_PRECUT_NONE,
    PL_PRECUT_EACH_DIGIT,  /* Digits(individual_digits = true) */
    PL_PRECUT_DIGITS,      /* Digits: runs of them */
    PL_PRECUT_PUNCTUATION, /* llama.cpp's "default": runs of [\p{P}$+<=>^~|]; after the pattern runs of numbers are cut
                              off, and from these three ASCII digits at a time */
    PL_PRECUTS
} pl_precut;

typedef struct pl_pretoken {
    pl_scanner scanner;
    pl_precut precut;
} pl_pretoken;

/* Bytes of the first piece of p[0 … n), n ≥ 1. `final` says that the text ends there; without it, 0 means that more
 * bytes are needed to tell. A piece longer than cap is cut at the last character that ends within cap, and what follows
 * is looked at afresh; with n ≥ cap + PL_PRETOKEN_LOOKAHEAD the answer is never 0. */
size_t pl_pretoken_length(pl_pretoken, const uint8_t *p, size_t n, int final, size_t cap);

#endif

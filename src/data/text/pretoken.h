/* The GPT-2 pattern (Radford et al. 2019, encoder.py), as Hugging Face's ByteLevel pre-tokenizer applies it:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * It cuts text into pieces without remainder; merges never cross a cut. Each piece is found from the bytes at its
 * beginning and at most one character behind its end, so a stream can be cut with a bounded window. */
#ifndef PL_DATA_PRETOKEN_H
#define PL_DATA_PRETOKEN_H

#include <stddef.h>
#include <stdint.h>

enum { PL_PRETOKEN_LOOKAHEAD = 4, PL_PRETOKEN_CAP_MIN = 8 };

/* Bytes of the first piece of p[0 … n), n ≥ 1. `final` says that the text ends there; without it, 0 means that more
 * bytes are needed to tell. A piece longer than cap is cut at the last character that ends within cap, and what follows
 * is looked at afresh; with n ≥ cap + PL_PRETOKEN_LOOKAHEAD the answer is never 0. */
size_t pl_pretoken_length(const uint8_t *p, size_t n, int final, size_t cap);

#endif

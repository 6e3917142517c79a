#!/usr/bin/env python3
"""Writes src/data/text/unicode_lower.inc: what each code point is in lower case, for the tokenizer of words.

The promise is "the same ids as Hugging Face's tokenizers", so that library is asked, code point by code point (Unicode 16.0 at the
time of writing). Needs `pip install tokenizers`; not part of the build. Ranges are first, last, step, and what is added; U+0130
alone becomes two (i and U+0307), which data/text/word_split.c knows.
"""
import tokenizers
from tokenizers import normalizers

lower = normalizers.Lowercase()
ranges = []
for cp in range(0x110000):
    if 0xD800 <= cp < 0xE000:
        continue
    text = lower.normalize_str(chr(cp))
    if text == chr(cp):
        continue
    if len(text) > 1:
        assert cp == 0x130 and text == "i\u0307", hex(cp)
        continue
    more = ord(text) - cp
    last = ranges[-1] if ranges else None
    if last and last[3] == more and (last[1] + last[2] == cp or (last[0] == last[1] and cp - last[0] == 2)):
        last[2] = cp - last[1]
        last[1] = cp
    else:
        ranges.append([cp, cp, 1, more])

print(f"/* Written by tools/make_unicode_lower.py from tokenizers {tokenizers.__version__}; do not edit. */")
line = ""
for first, last, step, more in ranges:
    item = f"{{0x{first:x}, 0x{last:x}, {step}, {more}}},"
    if len(line) + len(item) > 118:
        print(line)
        line = ""
    line += (" " if line else "") + item
print(line)

#!/usr/bin/env python3
"""Writes src/data/text/unicode_ranges.inc: which code points are letters, numbers and white space for the GPT-2 pattern.

The promise is "the same ids as Hugging Face's tokenizers", so that library is asked, code point by code point, in which
run of the pattern it puts each (Unicode 16.0 at the time of writing). Needs `pip install tokenizers`; not part of the
build. A check against Python's own unicodedata (an older Unicode) is printed: only code points unassigned there, and
U+001C..1F (white space for Python, not for Unicode), may differ.
"""
import sys
import unicodedata

import tokenizers
from tokenizers import pre_tokenizers

OTHER, LETTER, NUMBER, SPACE = range(4)
pattern = pre_tokenizers.ByteLevel(add_prefix_space=False)


def joins(first, second):
    return len(pattern.pre_tokenize_str(first + second)) == 1


def class_of(char):
    for sample, number in (("a", LETTER), ("1", NUMBER), ("!", OTHER)):
        if joins(sample, char):
            return number
    return SPACE


def python_class_of(char):
    kind = unicodedata.category(char)[0]
    return LETTER if kind == "L" else NUMBER if kind == "N" else SPACE if char.isspace() else OTHER


classes = [OTHER if 0xD800 <= cp < 0xE000 else class_of(chr(cp)) for cp in range(0x110000)]
differ = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000
          and classes[cp] != python_class_of(chr(cp)) and unicodedata.category(chr(cp)) != "Cn"]
print("differ from Python's Unicode", unicodedata.unidata_version, [hex(cp) for cp in differ], file=sys.stderr)

starts = [cp for cp in range(0x110000) if cp == 0 or classes[cp] != classes[cp - 1]]
print(f"/* Written by tools/make_unicode_classes.py from tokenizers {tokenizers.__version__}; do not edit.\n"
      " * Each number is (first code point << 2) | class, valid up to the next one's first code point. */")
line = ""
for cp in starts:
    item = f"0x{cp << 2 | classes[cp]:x},"
    if len(line) + len(item) > 118:
        print(line)
        line = ""
    line += (" " if line else "") + item
print(line)

#!/usr/bin/env python3
"""Writes src/data/text/unicode_punctuation.inc and src/data/text/unicode_digits.inc: ranges of code points, as first and last.

Punctuation is the class P of the pattern that some GGUF files name; digits are what the pre-tokenizer Digits of Hugging Face's
tokenizers isolates, less those of class N (unicode_ranges.inc). That library is asked, code point by code point. Needs
`pip install tokenizers`; not part of the build. Argument: the folder of the source, src/data/text.
"""
import sys

import tokenizers
from tokenizers import Regex, pre_tokenizers

points = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000]


def cut_off(pattern):
    """Code points that are not in one piece with a letter before them."""
    return [cp for cp in points if len(pattern.pre_tokenize_str("a" + chr(cp))) > 1]


def write(name, chosen):
    ranges = []
    for cp in chosen:
        if ranges and ranges[-1][1] == cp - 1:
            ranges[-1][1] = cp
        else:
            ranges.append([cp, cp])
    with open(f"{sys.argv[1]}/{name}", "w", encoding="ascii") as out:
        out.write(f"/* Written by tools/make_unicode_sets.py from tokenizers {tokenizers.__version__}; do not edit. */\n")
        line = ""
        for first, last in ranges:
            item = f"{{0x{first:x}, 0x{last:x}}},"
            if len(line) + len(item) > 118:
                out.write(line + "\n")
                line = ""
            line += (" " if line else "") + item
        out.write(line + "\n")


numbers = set(cut_off(pre_tokenizers.Split(Regex(r"\p{N}"), "isolated")))
write("unicode_punctuation.inc", cut_off(pre_tokenizers.Split(Regex(r"\p{P}"), "isolated")))
write("unicode_digits.inc", [cp for cp in cut_off(pre_tokenizers.Digits(individual_digits=True)) if cp not in numbers])

#!/usr/bin/env python3
"""Writes src/data/text/unicode_decomposition.inc and unicode_composition.inc: what canonical composition (NFC) needs.

The promise is "the same ids as Hugging Face's tokenizers", whose tables are older than Python's: that library is asked for each
full decomposition, whether a mark is reordered at all, and which pairs are composed. Needs `pip install tokenizers`; not part of the
build. Hangul is arithmetic and not in the tables. Argument: the folder of the source, src/data/text.
"""
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers

nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str


def is_reordered(cp, mark):
    """The mark goes before one of a larger class, or after one of a smaller."""
    return nfd("a\u0301" + mark) != "a\u0301" + mark if cp == 1 else nfd("a" + mark + "\u0334") != "a" + mark + "\u0334"


points = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000 and not 0xAC00 <= cp < 0xD7A4]
full = {cp: [ord(c) for c in nfd(chr(cp))] for cp in points if nfd(chr(cp)) != chr(cp)}
ccc = {cp: unicodedata.combining(chr(cp)) for cp in points if unicodedata.combining(chr(cp))
       and cp not in full and is_reordered(unicodedata.combining(chr(cp)), chr(cp))}
pairs = []
for cp in full:
    parts = unicodedata.decomposition(chr(cp)).split()
    if len(parts) == 2 and nfc(chr(cp)) == chr(cp):
        pairs.append((int(parts[0], 16), int(parts[1], 16), cp))


def show(out, name, items):
    print(f"static const {name}[] = {{", file=out)
    line = ""
    for item in items:
        if len(line) + len(item) + 1 > 119:
            print(line, file=out)
            line = ""
        line += (" " if line else "") + item + ","
    print(line + "\n};", file=out)


ranges = []
for cp in sorted(ccc):
    if ranges and ranges[-1][1] == cp - 1 and ranges[-1][2] == ccc[cp]:
        ranges[-1][1] = cp
    else:
        ranges.append([cp, cp, ccc[cp]])
places = []
for cp in sorted(full):
    places.append((sum(places[-1]) if places else 0, len(full[cp])))
written = f"/* Written by tools/make_unicode_nfc.py from tokenizers {tokenizers.__version__}; do not edit. */"
with open(f"{sys.argv[1]}/unicode_decomposition.inc", "w", encoding="ascii") as f:
    print(written, file=f)
    print("/* Code points with a decomposition, rising; where each lies in the array of all, and how long it is. */", file=f)
    show(f, "uint32_t decomposed", [f"0x{cp:x}" for cp in sorted(full)])
    show(f, "decomposed_part decomposed_parts", [f"{{{at}, {count}}}" for at, count in places])
    show(f, "uint32_t decomposition", [f"0x{c:x}" for cp in sorted(full) for c in full[cp]])
with open(f"{sys.argv[1]}/unicode_composition.inc", "w", encoding="ascii") as f:
    print(written, file=f)
    print("/* First and last of a range with the same combining class, which is not 0; rising. */", file=f)
    show(f, "combining combining_class", [f"{{0x{a:x}, 0x{b:x}, {k}}}" for a, b, k in ranges])
    print("/* First, second, what they compose to; rising. */", file=f)
    show(f, "composed_pair composed", [f"{{0x{a:x}, 0x{b:x}, 0x{c:x}}}" for a, b, c in sorted(pairs)])
    print("/* What may be the second of a pair; rising. */", file=f)
    show(f, "uint32_t composed_second", [f"0x{b:x}" for b in sorted({b for _, b, _ in pairs})])

#!/usr/bin/env python3
"""Texts as lines, against Python's own textwrap; as pages, against Pillow, which draws with the same libraries. Where glyphs
advance by 1/64 pixel it is Pillow with Raqm, of every kind of text; where they advance by whole pixels it is Pillow without, of
texts that need no shaping. Equal to the byte, if Pillow uses the system's FreeType (Debian's python3-pil); Pillow's wheels bring
versions of their own, and are not compared with.

And that the libraries take their memory from the module.

    pages.py plimsoll_pages [SEED]                 77: skipped
"""
import os
import random
import re
import struct
import subprocess
import sys
import textwrap
import time
import unicodedata

PROGRAM = sys.argv[1]
SEED = int(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PLIMSOLL_TEST_SEED", time.time_ns()))
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"


def run(texts, *words):
    """What the program says of the texts (bytes)."""
    stream = b"".join(b"%d\n%s" % (len(text), text) for text in texts)
    done = subprocess.run([PROGRAM, *words], input=stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{PROGRAM} {' '.join(words)}: {done.returncode} {done.stderr.decode()}")
    return done.stdout


def lines_of(text, columns):
    """As the source makes them."""
    lines = []
    for paragraph in text.split("\n"):
        if paragraph.strip():
            lines += textwrap.fill(paragraph, width=columns, break_long_words=True, break_on_hyphens=False).split("\n")
        else:
            lines.append("")
    return lines


# ---- texts ----

LATIN = [chr(c) for c in range(0x20, 0x7f)]
BLANK = [" "] * 20 + ["\t", "\t", "\n", "\n", "\r", "\v", "\f"]
ODD_BLANK = ["\u00a0", "\u2003", "\u3000", "\x1c", "\x1f", "\x85", "\u2028", "\u202f", "\u1680"]
OTHERS = {
    "accents": [chr(c) for c in (*range(0xa1, 0xad), *range(0xae, 0x250), *range(0x370, 0x483), *range(0x48a, 0x530))],
    "marks": [chr(c) for c in range(0x300, 0x370)] + list("aeiouxyzAEIOU\u0131") * 4,
    "arabic": [chr(c) for c in range(0x620, 0x660)] + list("\u0644\u0627\u0644\u0627 (12)"),
    "hebrew": [chr(c) for c in range(0x591, 0x5f4)] + list(" -.,12ab"),
    "indic": [chr(c) for c in range(0x900, 0x980)] + list("\u0915\u094d\u0937\u093f") * 8,
    "asian": [chr(c) for c in range(0xe00, 0xe80)] + [chr(c) for c in range(0x4e00, 0x4e80)] + [chr(c) for c in range(0x3040, 0x3100)]
             + [chr(c) for c in range(0xac00, 0xac80)] + [chr(c) for c in range(0x1100, 0x1200)],
    "symbols": [chr(c) for c in range(0x2000, 0x2070) if c != 0x2029] + [chr(c) for c in range(0x2190, 0x2800)] + [chr(c) for c in range(0x1f300, 0x1f650)]
               + ["\u200d", "\ufe0f", "\U0001f3fd"],
    "anything": [chr(c) for c in range(1, 0x3000) if chr(c) not in "\r\n" and not 0x2066 <= c <= 0x2069],
}


def make_text(numbers, letters, length):
    word = numbers.choice((0.05, 0.2, 0.5))
    return "".join(numbers.choice(BLANK) if numbers.random() < word else numbers.choice(letters) for _ in range(length))


def nasty_texts(numbers, count):
    """For the lines: everything that textwrap looks at."""
    letters = LATIN + ODD_BLANK * 3 + list("-") * 20 + ["\u0301", "\u4e00", "\U0001f600"]
    texts = ["", " ", "\n", "\n\n", "a", "\t", "\ta", "a\t", "-" * 100, " " * 100 + "a", "a" + " " * 100 + "b", "\u00a0" * 100,
             "\u00a0" * 100 + "x", "a " + "\u00a0" * 100, "a " + "\u00a0" * 100 + "x", "x" * 29 + " " + "y" * 40, "x" * 28 + " " + "y" * 40,
             "a b " + "c" * 60, "\r\t.", "ab\r\t.", "\v \f", "a\n\n\nb\n", "\x1c" * 40 + "z", ("a" * 29 + "\n") * 12, ("a" * 29 + "\n") * 13]
    for _ in range(count):
        some = numbers.sample(letters, numbers.choice((2, 5, 40)))
        texts.append(make_text(numbers, some, numbers.choice((5, 40, 200, 1000))))
    return texts


# ---- lines ----

def check_lines(numbers):
    texts = nasty_texts(numbers, 600)
    for columns, rows in ((29, 12), (28, 12), (6, 2), (1, 5), (128, 64)):
        out = run([text.encode() for text in texts], "lines", str(columns), str(rows)).decode().split("\n")
        at = 0
        for text in texts:
            count, left = map(int, out[at].split())
            got, want = out[at + 1:at + 1 + count], lines_of(text, columns)
            at += 1 + count
            if got != want[:rows]:
                sys.exit(f"{columns} columns: {text!r}\nPlimsoll {got}\ntextwrap {want[:rows]}")
            if (left > 0) != any(line.strip(" ") for line in want[rows:]) and text.isascii() and not set(text) & set("\x1c\x1f"):
                sys.exit(f"{columns} columns, {rows} rows: {left} bytes left of {text!r}")
    print(f"lines: {len(texts)} texts as textwrap breaks them (Python {sys.version.split()[0]}), seed {SEED}")


# ---- pages ----

PILLOW = r"""
import struct, sys
from PIL import Image, ImageDraw, ImageFont, features
kind, size = sys.argv[1], int(sys.argv[2])
if kind == "what":
    print(int(features.check("raqm")), features.version("freetype2")); raise SystemExit
engine = ImageFont.Layout.RAQM if kind == "fraction" else ImageFont.Layout.BASIC
font = ImageFont.truetype(sys.argv[3], 12, layout_engine=engine)
inner = size - 20
letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
assert font.getlength(letters) * 64 == round(font.getlength(letters) * 64)
data = sys.stdin.buffer
while head := data.read(4):
    text = data.read(struct.unpack("<I", head)[0]).decode()
    page = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(page)
    for i, line in enumerate(text.split("\n") if text else []):
        if line: draw.text((10, 10 + 16 * i), line, font=font, fill="black")
    red, green, blue = page.split()
    assert red.tobytes() == green.tobytes() == blue.tobytes()
    sys.stdout.buffer.write(red.tobytes())
    columns = int(inner / (font.getlength(letters) / 62))
    sys.stdout.buffer.write(struct.pack("<I", columns))
"""


def pillow(python, kind, size, texts=()):
    stream = b"".join(struct.pack("<I", len(text)) + text for text in (t.encode() for t in texts))
    return subprocess.run([python, "-c", PILLOW, kind, str(size), FONT], input=stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def find_pillow():
    """A Python whose Pillow has Raqm and the system's FreeType; or why there is none."""
    system = subprocess.run(["pkg-config", "--modversion", "freetype2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()
    why = "no Pillow (python3-pil)"
    for python in ("/usr/bin/python3", sys.executable):
        done = pillow(python, "what", 0) if os.path.exists(python) else None
        if not done or done.returncode:
            continue
        raqm, freetype = done.stdout.decode().split()
        wheel = subprocess.run([python, "-c", "import PIL; print(PIL.__file__)"], stdout=subprocess.PIPE).stdout.decode()
        if raqm != "1":
            why = "Pillow has no Raqm"
        elif "dist-packages" not in wheel or not wheel.startswith("/usr/lib/"):
            why = f"Pillow brings FreeType {freetype} of its own, the system has {system}"
        else:
            return python, ""
    return None, why


def difference(got, want, size):
    spots = [i for i in range(size * size) if got[i] != want[i]]
    i = spots[0]
    return f"{len(spots)} pixels differ, first x {i % size}, y {i // size}: {got[i]}, Pillow {want[i]}"


def compare(python, kind, size, columns, rows, texts, *words):
    lines = [lines_of(text, columns)[:rows] for text in texts]
    done = pillow(python, kind, size, ["\n".join(l) for l in lines])
    if done.returncode:
        sys.exit(done.stderr.decode())
    got, want, bytes_each = run([text.encode() for text in texts], "draw", str(size), kind, *words), done.stdout, size * size
    for i, text in enumerate(texts):
        page = got[i * (bytes_each + 40):][:bytes_each]
        invalid, _, unshaped, _ = struct.unpack("<4Q", got[i * (bytes_each + 40) + bytes_each:][:32])
        other = want[i * (bytes_each + 4):][:bytes_each]
        seen_columns = struct.unpack("<I", want[i * (bytes_each + 4) + bytes_each:][:4])[0]
        if seen_columns != columns or invalid or unshaped:
            sys.exit(f"{kind}: Pillow has {seen_columns} columns, not {columns}; {invalid} bytes invalid, {unshaped} lines not shaped")
        if page != other:
            sys.exit(f"{kind}, size {size} {words}: {difference(page, other, size)}; seed {SEED}\n{text!r}\n{lines[i]}")


FIXED = ["", "Hello, world!", "\tif a:\n\t\treturn b", "x" * 500, "na\u00efve caf\u00e9, \u0141\u00f3d\u017a, \u041c\u043e\u0441\u043a\u0432\u0430, \u0391\u03b8\u03ae\u03bd\u03b1",
         "e\u0301a\u0308o\u0302\u0323 x\u0301\u0301\u0301\u0301\u0301", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 123 abc",
         "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd (abc) 12", "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f", "\u4f60\u597d \U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467",
         "abc \u05d0\u05d1\u05d2 def", "A" + "\u0301" * 60, "\u202eabc\u202c def", "\ufffd\ufffe\u0000a"]


def check_pages(numbers, python):
    shaped = FIXED + [make_text(numbers, letters + LATIN * share, 300) for letters in OTHERS.values() for share in (0, 1) for _ in range(4)]
    compare(python, "fraction", 224, 28, 12, shaped)
    compare(python, "fraction", 224, 28, 12, shaped, "shaped")
    compare(python, "fraction", 64, 6, 2, shaped)
    # Raqm draws what the font lacks of its parts, where it has those; Pillow alone does not.
    whole = [c for c in OTHERS["accents"] if c <= "\u017f" or not unicodedata.decomposition(c)]
    simple = [make_text(numbers, letters, 400) for letters in (LATIN, LATIN + whole) for _ in range(30)] + FIXED[:5]
    for size, columns, rows in ((224, 29, 12), (64, 6, 2)):
        compare(python, "whole", size, columns, rows, simple)
        compare(python, "whole", size, columns, rows, simple, "shaped")
    print(f"pages: {len(shaped)} as Pillow with Raqm draws them, {len(simple)} as Pillow without, to the byte")


# ---- whose memory ----

LIBRARIES = ("libraqm", "libfreetype", "libharfbuzz", "libfribidi", "libgraphite2", "libglib", "libpng", "libbrotli", "libz.")
MEMORY = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "reallocarray", "strdup", "strndup", "valloc",
          "getenv", "secure_getenv", "setlocale")


def check_bindings():
    """What the dynamic linker says: the libraries that came with the module call its malloc, not the program's."""
    done = subprocess.run([PROGRAM, "draw", "224", "whole"], input=b"5\nhello", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "LD_DEBUG": "bindings"})
    bound = re.findall(r"binding file \S*?([^/ ]+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'", done.stderr.decode())
    of_libraries = [(who, to, symbol) for who, to, symbol in bound if who.startswith(LIBRARIES) and symbol in MEMORY]
    elsewhere = [b for b in of_libraries if not b[1].endswith("plimsoll-draw.so")]
    callers = {who.split(".")[0] for who, _, symbol in of_libraries if symbol == "malloc"}
    if elsewhere or not {"libraqm", "libharfbuzz", "libfribidi"} <= callers:
        sys.exit(f"not bound to the module: {elsewhere or callers}")
    print(f"memory: {len(of_libraries)} functions of {len(callers)} libraries are the module's")


def main():
    print(f"repeat with: pages.py {PROGRAM} {SEED}", flush=True)
    numbers = random.Random(SEED)
    check_lines(numbers)
    if not os.path.exists(FONT):
        print(f"pages: skipped, there is no {FONT} (fonts-dejavu-core)")
        sys.exit(77)
    python, why = find_pillow()
    if not python:
        print(f"pages: skipped, {why}")
        sys.exit(77)
    check_pages(numbers, python)
    check_bindings()


main()

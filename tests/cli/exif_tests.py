"""Tests that pictures are turned as PIL turns them (ImageOps.exif_transpose): the tag Orientation of each type, in either byte order,
wherever in the directory, and in each layout of segments that cameras and programs write. Called as cli_tests.py is."""
import json
import os
import subprocess

from cli_tests import SEED, Skipped, check, main, run
from clouds_tests import DEBIAN
from encode_tests import SMALL, write_encoder
from infer_tests import lines

SIDE = SMALL["image_size"]

# Writes pictures, and next to each NAME what PIL shows of it as NAME.png; prints the names.
PROGRAM = """
import io, json, random, struct, sys, warnings, zlib
import PIL
from PIL import Image, ImageOps
warnings.simplefilter("ignore")
draw, SIDE = random.Random(%d), %d
UNITS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 14: 4, 99: 4}
FORMS = {1: "B", 2: "c", 3: "H", 4: "L", 5: "LL", 6: "b", 7: "B", 8: "h", 9: "l", 10: "ll", 11: "f", 12: "d", 13: "L", 16: "Q", 14: "L", 99: "L"}

def number(order, kind, value):
    if kind == 2: return str(value).encode()
    if kind in (5, 10): return struct.pack(order + FORMS[kind], *((value * 3, 3) if kind == 5 else (-value, -1)))
    return struct.pack(order + FORMS[kind], value)

def tiff(order, entries, at=8, head=None):
    # entries: (tag, type, count, bytes of the value); what does not fit in place comes after the directory
    more, table, after = b"", b"", at + 2 + 12 * len(entries) + 4
    for tag, kind, count, data in entries:
        place = data.ljust(4, b"\\0") if len(data) <= 4 else struct.pack(order + "L", after + len(more))
        if data == b"cut": place = struct.pack(order + "L", 60000)
        table += struct.pack(order + "HHL", tag, kind, count) + place
        if len(data) > 4: more += data
    head = head or (b"II*\\0" if order == "<" else b"MM\\0*")
    return head + struct.pack(order + "L", at) + bytes(at - 8) + struct.pack(order + "H", len(entries)) + table + bytes(4) + more

def others(order, count):
    return [(0x100 + i, 3, 1, struct.pack(order + "H", 7)) for i in range(count)]

def turned(order, value, kind=3, count=1):
    return (0x112, kind, count, number(order, kind, value) * count)

def app1(data, begins=b"Exif\\0\\0"):
    return b"\\xff\\xe1" + struct.pack(">H", len(begins + data) + 2) + begins + data

XMP = b"http://ns.adobe.com/xap/1.0/\\0"
image = Image.frombytes("RGB", (SIDE + 1, SIDE), draw.randbytes(3 * SIDE * (SIDE + 1)))
plain = io.BytesIO(); image.save(plain, "JPEG", quality=90); plain = plain.getvalue()
names = []

def keep(name, data):
    open(name, "wb").write(data)
    try:
        with Image.open(name) as i: ImageOps.exif_transpose(i).save(name + ".png")
    except Exception:
        return # what PIL cannot read says nothing
    names.append(name)

def jpeg(name, *segments):
    keep(name + ".jpg", plain[:2] + b"".join(segments) + plain[2:])

def png(name, *blocks, after=()):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\\0" + image.tobytes()[3 * (SIDE + 1) * y:][:3 * (SIDE + 1)] for y in range(SIDE))
    keep(name + "-png.png", b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE + 1, SIDE, 8, 2, 0, 0, 0)) +
         b"".join(chunk(b"eXIf", b) for b in blocks) + chunk(b"IDAT", zlib.compress(rows)) +
         b"".join(chunk(b"eXIf", b) for b in after) + chunk(b"IEND", b""))

for order in "<>":
    end = "le" if order == "<" else "be"
    for value in range(0, 10):
        for kind in UNITS:
            block = tiff(order, others(order, draw.randrange(3)) + [turned(order, value, kind)])
            jpeg(f"type{kind}-{value}-{end}", app1(block))
        other = value %% 8 + 1
        one, two = tiff(order, [turned(order, value)] + others(order, 2)), tiff(draw.choice("<>"), [turned("<", other)])
        nothing = tiff(order, others(order, 3))
        note = (0x10f, 2, 40, draw.randbytes(40))
        long = tiff(order, [note, turned(order, value, 4)]) + draw.randbytes(draw.randrange(30, 3000))
        cut = draw.randrange(80, len(long))
        jpeg(f"split-{value}-{end}", app1(long[:cut]), app1(long[cut:]))
        jpeg(f"apart-{value}-{end}", app1(long[:cut]), app1(b"<x/>", XMP), app1(long[cut:]))
        jpeg(f"two-{value}-{end}", app1(one), app1(two))
        jpeg(f"first-without-{value}-{end}", app1(nothing), app1(one))
        jpeg(f"after-xmp-{value}-{end}", app1(b"<x/>", XMP), app1(one))
        jpeg(f"far-{value}-{end}", app1(tiff(order, [turned(order, value)], at=draw.randrange(9, 200))))
        jpeg(f"again-{value}-{end}", app1(tiff(order, [turned(order, other), turned(order, value)])))
        jpeg(f"again-none-{value}-{end}", app1(tiff(order, [turned(order, value), (0x112, 3, 0, b"")])))
        jpeg(f"many-{value}-{end}", app1(tiff(order, [turned(order, value, 3, draw.choice((2, 3)))])))
        jpeg(f"before-cut-{value}-{end}", app1(tiff(order, [turned(order, value), (0x10f, 2, 40, b"cut")])))
        jpeg(f"after-cut-{value}-{end}", app1(tiff(order, [(0x10f, 2, 40, b"cut"), turned(order, value)])))
        jpeg(f"unknown-{value}-{end}", app1(tiff(order, [(0x10f, 99, 1, bytes(4)), turned(order, value)])))
        jpeg(f"ends-{value}-{end}", app1(one[:draw.randrange(10, len(one))]))
        jpeg(f"head-{value}-{end}", app1(tiff(order, [turned(order, value)], head=b"II\\0*" if order == "<" else b"MM*\\0")))
        png(f"{value}-{end}", one)
        png(f"long-{value}-{end}", tiff(order, [turned(order, value, 4)]))
        png(f"two-{value}-{end}", two, one)
        png(f"after-{value}-{end}", after=(two, one))
        png(f"both-{value}-{end}", one, after=(two,))
        png(f"nothing-{value}-{end}", nothing, after=(one,))
print(json.dumps([PIL.__version__, names]))
"""


def test_as_pil_turns_them():
    config = write_encoder()
    done = subprocess.run([DEBIAN, "-B", "-c", PROGRAM % (SEED, SIDE)], capture_output=True, text=True) if os.path.exists(DEBIAN) else None
    if not done or "ModuleNotFoundError" in done.stderr:
        raise Skipped("no PIL here (Debian: python3-pil)")
    check(done.returncode == 0, done.stderr)
    version, names = json.loads(done.stdout)
    check(len(names) > 400, "PIL", version, "reads", len(names), "of the pictures")
    with open("names", "w") as file:
        file.write("".join(f"{n}\n" for n in names))
    with open("seen", "w") as file:
        file.write("".join(f"{n}.png\n" for n in names))
    found, wanted = (lines(run("infer", config, at)[0]) for at in ("@names", "@seen"))
    wrong = [f["source"] for f, w in zip(found, wanted) if {**f, "source": ""} != {**w, "source": ""}]
    check(len(found) == len(wanted) == len(names) and not wrong, len(wrong), "are not turned as PIL", version, "does:", wrong[:20])
    kinds = {json.dumps(w["capsules"]) for w in wanted}
    check(len(kinds) == 2 * 8, "there are", len(kinds), "ways of turning JPEG and PNG")


if __name__ == "__main__":
    main({"exif": [test_as_pil_turns_them]})

"""Tests of infer on pictures and HDF5: an item is what the same numbers are as .npy. Pictures in PNG are written here, by the format's own rules;
those in JPEG, and files of HDF5, by make_file (MAKE_FILE), by their libraries. Called as cli_tests.py is."""
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import time
import zlib

import cli_tests
from cli_tests import SEED, check, environment, main, read, refused, run, write_config, write_text
from clouds_tests import synth, write_clouds
from encode_tests import SMALL, write_encoder
from hybrid_tests import write_hybrid
from infer_tests import lines, save

DRAW = random.Random(SEED)
SIDE = SMALL["image_size"]


# ---- pictures ----

def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(path, width, height, kind, depth, rows, more=b""):
    """rows: bytes of each, packed. kind: 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA."""
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) + more +
                   chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def in_rows(values, width):
    return [bytes(values[at:at + width]) for at in range(0, len(values), width)]


def make(*words, data=b""):
    done = subprocess.run([os.environ["MAKE_FILE"], *map(str, words)], input=data, capture_output=True, timeout=60)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def same(config, files, arrays, *words):
    """Files and arrays in their order are the same items; the source is the file's own name."""
    told, wanted = (lines(run("infer", config, *names, *words)[0]) for names in (files, arrays))
    check(len(told) == len(wanted), len(told), len(wanted))
    for t, w in zip(told, wanted):
        check({**t, "source": ""} == {**w, "source": ""}, t["source"], "is not", w["source"])
    return [t["source"] for t in told]


def draw_bytes(count):
    return [DRAW.randrange(256) for _ in range(count)]


def flat_rgb(name, rgb):
    save(name, "|u1", (1, SIDE, SIDE, 3), rgb)


def test_png():
    """Of each kind, as large as the model takes them."""
    config, n = write_encoder(), SIDE * SIDE
    grey, rgb, alpha = draw_bytes(n), draw_bytes(3 * n), draw_bytes(n)
    png("grey.png", SIDE, SIDE, 0, 8, in_rows(grey, SIDE))
    flat_rgb("grey.npy", [g for g in grey for _ in range(3)])
    png("rgb.png", SIDE, SIDE, 2, 8, in_rows(rgb, 3 * SIDE))
    flat_rgb("rgb.npy", rgb)
    png("rgba.png", SIDE, SIDE, 6, 8, in_rows([x for i in range(n) for x in (*rgb[3 * i:3 * i + 3], alpha[i])], 4 * SIDE))
    flat_rgb("rgba.npy", [(rgb[3 * i + c] * alpha[i] + 255 * (255 - alpha[i]) + 127) // 255 for i in range(n) for c in range(3)])
    colours = draw_bytes(3 * 256)
    png("palette.png", SIDE, SIDE, 3, 8, in_rows(grey, SIDE), chunk(b"PLTE", bytes(colours)))
    flat_rgb("palette.npy", [colours[3 * g + c] for g in grey for c in range(3)])
    deep = [DRAW.randrange(65536) for _ in range(n)]
    png("deep.png", SIDE, SIDE, 0, 16, in_rows([b for d in deep for b in (d >> 8, d & 255)], 2 * SIDE))
    flat_rgb("deep.npy", [(d * 255 + 32895) >> 16 for d in deep for _ in range(3)])
    bits = [DRAW.randrange(2) for _ in range(n)]
    packed = [sum(b << 7 - k for k, b in enumerate(bits[at:at + 8])) for at in range(0, n, 8)]
    png("bits.png", SIDE, SIDE, 0, 1, in_rows(packed, SIDE // 8))
    flat_rgb("bits.npy", [255 * b for b in bits for _ in range(3)])
    kinds = ("grey", "rgb", "rgba", "palette", "deep", "bits")
    for more in ([], ["--batch", "1"], ["--threads", "2", "--latency"]):
        sources = same(config, [f"{k}.png" for k in kinds], [f"{k}.npy" for k in kinds], *more)
        check(sources == [f"{k}.png" for k in kinds], sources)


def test_jpeg():
    config, n = write_encoder(), SIDE * SIDE
    grey, rgb, cmyk = draw_bytes(n), draw_bytes(3 * n), draw_bytes(4 * n)
    make("jpeg", "grey.jpg", SIDE, SIDE, "grey", data=bytes(grey))
    flat_rgb("grey.npy", [g for g in make("pixels", "grey.jpg") for _ in range(3)])
    for name, more in (("rgb", ()), ("progressive", ("progressive",))):
        make("jpeg", f"{name}.jpeg", SIDE, SIDE, "rgb", *more, data=bytes(rgb))
        flat_rgb(f"{name}.npy", list(make("pixels", f"{name}.jpeg")))
    make("jpeg", "cmyk.jpg", SIDE, SIDE, "cmyk", data=bytes(cmyk))
    ink = make("pixels", "cmyk.jpg")
    flat_rgb("cmyk.npy", [(ink[4 * i + c] * ink[4 * i + 3] + 127) // 255 for i in range(n) for c in range(3)])
    files = ["grey.jpg", "rgb.jpeg", "progressive.jpeg", "cmyk.jpg"]
    check(same(config, files, ["grey.npy", "rgb.npy", "progressive.npy", "cmyk.npy"]) == files, "sources")


# Where of the file the pixel lies that is seen in row y, column x of a picture that is seen h high and w wide, by the tag's value.
TURNED = {1: lambda y, x, h, w: (y, x), 2: lambda y, x, h, w: (y, w - 1 - x), 3: lambda y, x, h, w: (h - 1 - y, w - 1 - x),
          4: lambda y, x, h, w: (h - 1 - y, x), 5: lambda y, x, h, w: (x, y), 6: lambda y, x, h, w: (w - 1 - x, y),
          7: lambda y, x, h, w: (w - 1 - x, h - 1 - y), 8: lambda y, x, h, w: (x, h - 1 - y)}


def exif(value, order="<", kind=3, others=2):
    """A block as TIFF has it, with other tags before."""
    entries = [struct.pack(order + "HHIHH", 0x100 + i, 3, 1, 7, 0) for i in range(others)] + [struct.pack(order + "HHIHH", 0x112, kind, 1, value, 0)]
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries)) + b"".join(entries) + bytes(4)


def app1(name, data, was):
    """The file with a segment behind its first marker."""
    with open(name, "wb") as file:
        file.write(was[:2] + b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data + was[2:])


def test_turned():
    """As the camera was held: what is seen is the picture, also where more of it is cropped at one end than at the other."""
    config = write_encoder()
    for wide, high in ((SIDE + 1, SIDE), (SIDE, SIDE + 3)):
        make("jpeg", "as_it_lies.jpg", wide, high, "rgb", data=bytes(draw_bytes(3 * wide * high)))
        was, pixels = read("as_it_lies.jpg"), make("pixels", "as_it_lies.jpg")
        files = []
        for value, of in TURNED.items():
            h, w = (wide, high) if value > 4 else (high, wide)
            rows = [[of(y, x, h, w) for x in range(w)] for y in range(h)]
            png(f"{value}-seen.png", w, h, 2, 8, [b"".join(pixels[3 * (y * wide + x):][:3] for y, x in row) for row in rows])
            for order in "<>":
                name = f"{value}{'le' if order == '<' else 'be'}.jpg"
                app1(name, b"Exif\0\0" + exif(value, order), was)
                files.append((name, f"{value}-seen.png"))
            png(f"{value}-turned.png", wide, high, 2, 8, in_rows(pixels, 3 * wide), chunk(b"eXIf", exif(value, ">")))
            files.append((f"{value}-turned.png", f"{value}-seen.png"))
        same(config, [f[0] for f in files], [f[1] for f in files])
        seen = [t["capsules"] for t in lines(run("infer", config, *[f"{v}-seen.png" for v in TURNED])[0])]
        check(all(a != b for i, a in enumerate(seen) for b in seen[:i]), "two ways of turning are one")
    bad = [exif(0), exif(9), exif(6, kind=2), exif(6)[:20], b"II*\0\xff\xff\xff\xff", b"II", exif(6).replace(b"II", b"IM"), b"http://ns.adobe.com/xap/1.0/\0"]
    for i, data in enumerate(bad):
        app1(f"bad{i}.jpg", b"Exif\0\0" + data, was)
    app1("bare.jpg", b"Exif", was)
    app1("xmp.jpg", b"http://ns.adobe.com/xap/1.0/\0" + bytes(60000), was)
    names = [f"bad{i}.jpg" for i in range(len(bad))] + ["bare.jpg", "xmp.jpg"]
    same(config, names, ["as_it_lies.jpg"] * len(names))


def test_sizes():
    """The middle of a longer side; a picture of one colour is that of any size; kinds of files may be mixed."""
    config = write_encoder()
    tall = draw_bytes(SIDE * SIDE * 2)
    png("tall.png", SIDE, 2 * SIDE, 0, 8, in_rows(tall, SIDE))
    save("middle.npy", "|u1", (SIDE, SIDE), tall[SIDE * SIDE // 2:SIDE * SIDE * 3 // 2])
    png("large.png", 7 * SIDE + 3, 3 * SIDE + 1, 2, 8, in_rows([10, 200, 90] * ((7 * SIDE + 3) * (3 * SIDE + 1)), 3 * (7 * SIDE + 3)))
    png("small.png", 3, 2, 2, 8, in_rows([10, 200, 90] * 6, 9))
    flat_rgb("one.npy", [10, 200, 90] * (SIDE * SIDE))
    files = ["tall.png", "middle.npy", "large.png", "one.npy", "small.png"]
    check(same(config, files, ["middle.npy", "middle.npy", "one.npy", "one.npy", "one.npy"]) == files, "sources")


# ---- HDF5 ----

def test_hdf5():
    config, n = write_encoder(), SIDE * SIDE
    grey, planes = draw_bytes(5 * n), [DRAW.random() for _ in range(2 * 3 * n)]
    narrow = struct.pack(f"<{len(planes)}f", *planes)
    save("grey.npy", "|u1", (5, SIDE, SIDE), grey)
    save("planes.npy", "<f4", (2, 3, SIDE, SIDE), list(struct.unpack(f"<{len(planes)}f", narrow)))
    make("hdf5", "f.h5", "grey", "u8", 5, SIDE, SIDE, data=bytes(grey))
    make("hdf5", "f.h5", "in/a/group:/grey", "u8,gzip", 5, SIDE, SIDE, data=bytes(grey))
    make("hdf5", "f.h5", "planes", "f32", 2, 3, SIDE, SIDE, data=narrow)
    make("hdf5", "f.h5", "wide", "f64,gzip", 2, 3, SIDE, SIDE, data=struct.pack(f"<{len(planes)}d", *struct.unpack(f"<{len(planes)}f", narrow)))
    make("hdf5", "f.h5", "big_endian", "f32be", 2, 3, SIDE, SIDE, data=struct.pack(f">{len(planes)}f", *planes))
    make("hdf5", "f.h5", "one", "u8", SIDE, SIDE, data=bytes(grey[:n]))
    for name in ("grey", "in/a/group:/grey"):
        check(same(config, [f"images=f.h5:/{name}"], ["grey.npy"]) == [f"f.h5:/{name}[{i}]" for i in range(5)], "sources")
    for name in ("planes", "wide", "big_endian"):
        same(config, [f"f.h5:/{name}"], ["planes.npy"], "--batch", "1")
    save("one.npy", "|u1", (SIDE, SIDE), grey[:n])
    check(same(config, ["f.h5:/one", "f.h5:/planes"], ["one.npy", "planes.npy"]) == ["f.h5:/one", "f.h5:/planes[0]", "f.h5:/planes[1]"], "sources")
    half = struct.pack(f"<{len(planes)}e", *planes)
    make("hdf5", "f.h5", "half", "f16", 2, 3, SIDE, SIDE, data=half)
    save("half.npy", "<f4", (2, 3, SIDE, SIDE), struct.unpack(f"<{len(planes)}e", half))
    same(config, ["f.h5:/half"], ["half.npy"])
    make("hdf5", "f.h5", "half_be", "f16be", 2, 3, SIDE, SIDE, data=struct.pack(f">{len(planes)}e", *planes))
    same(config, ["f.h5:/half_be"], ["half.npy"])
    with open("block.mat", "wb") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512) + read("f.h5"))
    same(config, ["block.mat:/one"], ["one.npy"])
    os.makedirs("with:")
    os.rename("f.h5", "with:/colon.h5")
    same(config, ["images=with:/colon.h5:/one"], ["one.npy"])


def test_hdf5_ids():
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    length = cli_tests.TINY["model"]["sequence"]
    ids = [DRAW.randrange(256) for _ in range(3 * length - 1)] + [-1]
    save("ids.npy", "<i8", (3, length), ids)
    for name, code in (("i16", "<h"), ("i32", "<i"), ("i64", "<q"), ("i32be", ">i")):
        make("hdf5", "f.h5", name, name, 3, length, data=b"".join(struct.pack(code, i) for i in ids))
        same("out", [f"f.h5:/{name}"], ["ids.npy"])
    make("hdf5", "f.h5", "u32", "u32", 3, length, data=struct.pack(f"<{3 * length}I", *ids[:-1], 255))
    save("ids.npy", "<i8", (3, length), ids[:-1] + [255])
    same("out", ["f.h5:/u32"], ["ids.npy"])
    for name, code, bad in (("i64bad", "<q", 256), ("u64", "<Q", 2 ** 64 - 1), ("i64low", "<q", -2)):
        make("hdf5", "f.h5", name, name.replace("bad", "").replace("low", ""), 1, length, data=b"".join(struct.pack(code, 1) for _ in range(length - 1)) + struct.pack(code, bad))
        refused(4, f"f.h5:/{name}: item 0 has the number -?[0-9]+ in tokens, where -1 to 255 were expected", "infer", "out", f"f.h5:/{name}")
    make("hdf5", "f.h5", "real", "f32", 1, length, data=bytes(4 * length))
    refused(4, "f.h5:/real: is f4 .*, but tokens takes whole numbers", "infer", "out", "f.h5:/real")


# ---- other systems ----

def test_hybrid_pictures():
    config = write_hybrid()
    rgb = draw_bytes(3 * 64 * 64)
    png("x.png", 64, 64, 2, 8, in_rows(rgb, 3 * 64))
    save("x.npy", "|u1", (1, 64, 64, 3), rgb)
    check(same(config, ["x.png"], ["x.npy"], "--seeded") == ["x.png"], "sources")


def test_clouds_hdf5():
    """Several inputs, each from a file of its own kind."""
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    name = next(n for n in sorted(os.listdir("out")) if os.path.exists(f"out/{n}/checkpoints"))
    images, angles = ([struct.unpack("<f", struct.pack("<f", DRAW.gauss(0, 1)))[0] for _ in range(n)] for n in (3 * 2 * 16 * 16, 3 * 2))
    save("images.npy", "<f4", (3, 2, 16, 16), images)
    save("angles.npy", "<f4", (3, 2), angles)
    make("hdf5", "f.h5", "camera/images", "f32,gzip", 3, 2, 16, 16, data=struct.pack(f"<{len(images)}f", *images))
    make("hdf5", "f.h5", "angles", "f64", 3, 2, data=struct.pack(f"<{len(angles)}d", *angles))
    arrays = ["images.npy", "angles.npy"]
    check(same(f"out/{name}", ["images=f.h5:/camera/images", "angles=f.h5:/angles"], arrays) == [f"f.h5:/camera/images[{i}]" for i in range(3)], "sources")
    same(f"out/{name}", ["angles=f.h5:/angles", "images.npy"], arrays, "--batch", "2")
    refused(4, "f.h5:/angles: is f8 .3, 2., but images takes real numbers .count, 2, 16, 16.", "infer", f"out/{name}", "f.h5:/angles", "angles.npy")
    png("x.png", 3, 2, 0, 8, [b"\1\2\3", b"\4\5\6"])
    refused(4, r"zeros: is no file that images can be read from \(NumPy arrays, .npy, datasets of HDF5 files\); real", "infer", f"out/{name}", zeros(), "angles.npy")
    refused(2, "image=x.png: there is no such file, and the model has no input image; its inputs are images, angles", "infer", f"out/{name}", "image=x.png", "angles.npy")
    refused(4, "x.png: is a picture, but images takes real numbers .count, 2, 16, 16.; give it a NumPy array", "infer", f"out/{name}", "x.png", "angles.npy")


# ---- many, memory, what is left ----

def test_before_reading():
    """A budget that no plan fits is refused before pictures are read; reading many is told."""
    config = write_encoder()
    png("bad.png", SIDE, SIDE, 0, 8, [b"\1"])
    refused(3, "needs [0-9.]+ .B .*; the files, which were not read yet, come on top of that$", "infer", config, "bad.png", "--budget", "1MB")
    refused(4, "bad.png: is no whole picture", "infer", config, "bad.png")
    side = 1500
    png("large.png", side, side, 2, 8, [DRAW.randbytes(3 * side)] * side)
    _, err = run("infer", config, *["large.png"] * 40, "--brief", "--to", "lines.jsonl")
    check(err.count("reading pictures and HDF5 …") == 1, err)

def test_many():
    """Of a list more than a config takes; each is itself."""
    config, names = write_encoder(), []
    values = [DRAW.randrange(256) for _ in range(700)]
    os.makedirs("pictures" + "x" * 100)
    for i, v in enumerate(values):
        names.append(f"pictures{'x' * 100}/{i}.png")
        png(names[-1], 2, 2, 0, 8, [bytes([v, v])] * 2)
    with open("list.txt", "w") as file:
        file.write("\r\n".join(names) + "\n\n")
    check(os.path.getsize("list.txt") > 64 << 10, "the names are few")
    save("many.npy", "|u1", (700, SIDE, SIDE), [v for v in values for _ in range(SIDE * SIDE)])
    check(same(config, ["@list.txt"], ["many.npy"], "--brief") == names, "sources")
    brief = run("infer", config, "@list.txt", "--npy", "listed")
    run("infer", config, "many.npy", "--npy", "many")
    check(read("listed.capsules.npy") == read("many.capsules.npy") and brief[0] == "", "other numbers")
    same(config, ["images=@list.txt"], ["many.npy"], "--brief")
    with open("half.txt", "w") as file:
        file.write("\n".join(names[:350]))
    same(config, ["@half.txt", *names[350:]], ["many.npy"], "--brief")
    same(config, [*names[:350], "images=@half.txt"], names[:350] * 2, "--brief")
    _, err = run("infer", config, *names, "--to", "lines.jsonl", "--ledger")
    check("As planned, to the byte." in err, err)
    os.makedirs("scratch")
    same(config, names, ["@list.txt"], "--brief", "--scratch", "scratch")
    check(os.listdir("scratch") == [], "a list is left")
    refused(5, "the names of so many files cannot be put into a file in gone: No such file", "infer", config, *names, "--scratch", "gone")


def test_memory():
    """To the byte, and that of a .npy with as many items."""
    config = write_encoder()
    for i in range(300):
        png(f"{i}.png", SIDE, SIDE, 0, 8, in_rows(draw_bytes(SIDE * SIDE), SIDE))
    with open("list.txt", "w") as file:
        file.write("".join(f"{i}.png\n" for i in range(300)))
    make("hdf5", "f.h5", "x", "u8", 300, SIDE, SIDE, data=bytes(300 * SIDE * SIDE))
    for files in (["0.png"], ["@list.txt"], ["f.h5:/x"]):
        _, err = run("infer", config, *files, "--batch", "3", "--to", "lines.jsonl", "--ledger")
        check("As planned, to the byte." in err, err)
    run("infer", config, "0.png", "f.h5:/x", "--to", "lines.jsonl", env=environment(PLIMSOLL_TEST_SECCOMP="kill"))


def left_open():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            pass
    return [f for f in found if f.startswith(os.path.abspath("scratch"))]


def test_nothing_is_left():
    """Also of what is killed: what was made ready has no name."""
    os.makedirs("scratch")
    config = write_encoder()
    make("hdf5", "f.h5", "x", "u8", 3000, SIDE, SIDE, data=bytes(3000 * SIDE * SIDE))
    words = ["infer", config, "f.h5:/x", "--scratch", "scratch", "--latency", "--threads", "1", "--to", "lines.jsonl"]
    for instant in [DRAW.random() * 0.6 for _ in range(6)]:
        process = subprocess.Popen([cli_tests.COMMAND, *words], stderr=subprocess.DEVNULL, env=environment())
        time.sleep(instant)
        process.send_signal(signal.SIGKILL)
        process.wait()
        check(os.listdir("scratch") == [], os.listdir("scratch"))
        for _ in range(100):
            if not left_open():
                break
            time.sleep(0.05)
        check(left_open() == [], left_open())
    run(*words)
    check(os.listdir("scratch") == [] and left_open() == [], "something is left")


# ---- what is refused ----

def many_scans(config):
    """What a picture in several scans takes at once is bounded by its header."""
    for colours, full, wide, high, refuses in (("rgb", True, 6689, 6689, True), ("cmyk", False, 5793, 5800, True), ("rgb", True, 6688, 6688, False),
                                               ("rgb", False, 8000, 8000, False)):
        make("jpeg", "scans.jpg", SIDE, SIDE, colours, "progressive", data=bytes(4 * SIDE * SIDE))
        data = bytearray(read("scans.jpg"))
        at = data.index(b"\xff\xc2")
        data[at + 5:at + 9] = struct.pack(">HH", high, wide)
        if full:
            data[at + 11] = 0x11
        with open("scans.jpg", "wb") as file:
            file.write(data[:data.index(b"\xff\xda") + 20])
        said = (f"scans.jpg: is too large a picture: {wide} x {high} pixels in several scans .progressive. take [0-9]+ bytes of memory, at most 268435456 are given; save it as baseline"
                if refuses else "scans.jpg: is no whole picture: the file ends before the picture does")
        refused(4, said, "infer", config, "scans.jpg")


def zeros():
    with open("zeros", "wb") as file:
        file.write(bytes(100))
    return "zeros"


def test_bad_pictures():
    config = write_encoder()
    png("good.png", 3, 2, 0, 8, [b"\1\2\3", b"\4\5\6"])
    whole = read("good.png")
    with open("cut.png", "wb") as file:
        file.write(whole[:-20])
    refused(4, "cut.png: is no whole picture: ", "infer", config, "good.png", "cut.png")
    with open("none.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + DRAW.randbytes(100))
    refused(4, "none.png: is no whole picture: ", "infer", config, "none.png")
    with open("bomb.png", "wb") as file:
        file.write(whole[:16] + chunk(b"IHDR", struct.pack(">IIBBBBB", 100000, 100000, 8, 0, 0, 0, 0))[8:] + whole[33:])
    refused(4, "bomb.png: is too large a picture: 100000 x 100000 pixels, at most 67108864 together", "infer", config, "bomb.png")
    many_scans(config)
    make("jpeg", "good.jpg", 32, 32, "rgb", data=DRAW.randbytes(3 * 32 * 32))
    with open("cut.jpg", "wb") as file:
        file.write(read("good.jpg")[:-100])
    refused(4, "cut.jpg: is no whole picture: ", "infer", config, "cut.jpg")
    with open("fake.png", "wb") as file:
        file.write(b"GIF89a\0\0")
    refused(4, r"fake.png: is no file that images can be read from \(.*PNG or JPEG", "infer", config, "fake.png")
    for name, kind in (("page.jpg", "pictures"), ("page.PNG", "pictures"), ("page.npy", "NumPy arrays"), ("page.h5", "datasets")):
        with open(name, "wb") as file:
            file.write(b"404 not found\n")
        refused(4, f"{name}: has the name of {kind}.*, and does not begin as one", "infer", config, name)
    os.makedirs("folder")
    refused(4, r"folder: is a folder; name the files in it \(folder/\*\)", "infer", config, "folder")
    refused(4, "good.png:/x: datasets are of HDF5", "infer", config, "good.png:/x")
    refused(2, "the same file", "infer", config, "good.png", "--to", "good.png")
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    refused(4, "good.png: is a picture, but tokens takes whole numbers", "infer", "out", "good.png")
    refused(4, r"zeros: is no file that tokens can be read from \(NumPy arrays, .npy, datasets of HDF5 files, lines of text\); whole numbers", "infer", "out", zeros())
    refused(4, r"zeros: is no file that images can be read from \(NumPy arrays, .npy, pictures in PNG or JPEG, datasets of HDF5 files, lines of text.*\)", "infer", config, zeros())


def test_bad_hdf5():
    config, n = write_encoder(), SIDE * SIDE
    make("hdf5", "f.h5", "x", "u8", 1, SIDE, SIDE, data=bytes(n))
    refused(4, r"f.h5: is an HDF5 file; name a dataset of it, as images=f.h5:/DATASET", "infer", config, "f.h5")
    refused(4, "f.h5:/y: the file has no such dataset", "infer", config, "f.h5:/y")
    refused(4, "f.h5:/x/y: the file has no such dataset", "infer", config, "f.h5:/x/y")
    with open("text.txt", "w") as file:
        file.write("a line\n")
    refused(4, "text.txt: cannot be read: .*; the file is no HDF5, is damaged, or is being written", "infer", config, "text.txt:/x")
    refused(4, "gone.h5:/x: cannot be opened", "infer", config, "gone.h5:/x")
    refused(2, "the same file", "infer", config, "f.h5:/x", "--to", "f.h5")
    for name, type_, shape, data, said in (
            ("flat", "u8", (n,), bytes(n), rf"f.h5:/flat: is u1 \[{n}\], but images takes"),
            ("half", "f16", (n,), bytes(2 * n), rf"f.h5:/half: is f2 \[{n}\], but images takes"),
            ("half_be", "f16be", (n,), bytes(2 * n), rf"f.h5:/half_be: is f2 \[{n}\], but images takes"),
            ("whole_u4", "u32", (1, SIDE, SIDE), bytes(4 * n), "f.h5:/whole_u4: is u4 "),
            ("whole", "i32", (1, SIDE, SIDE), bytes(4 * n), "f.h5:/whole: is i4 "),
            ("scalar", "f32", (), bytes(4), "f.h5:/scalar: is f4 "),
            ("words", "text", (2,), b"abcdefgh", "f.h5:/words: is no dataset of whole or real numbers"),
            ("none", "u8", (0, SIDE, SIDE), b"", "f.h5:/none: has no items"),
            ("nan", "f32", (1, SIDE, SIDE), struct.pack("<f", float("nan")) * n, "f.h5:/nan: item 0 has a number that is infinite or NaN"),
            ("bright", "f32", (1, SIDE, SIDE), struct.pack("<f", 2) * n, "f.h5:/bright: item 0 has a brightness of 2"),
            ("huge", "u8,hollow", (1 << 40, SIDE, SIDE), b"", "f.h5:/huge: its numbers take .* which has .* free")):
        make("hdf5", "f.h5", name, type_, *shape, data=data)
        refused(5 if name == "huge" else 4, said, "infer", config, f"f.h5:/{name}")
    with open("damaged.h5", "wb") as file:
        file.write(read("f.h5")[:700])
    refused(4, "damaged.h5: cannot be read: ", "infer", config, "damaged.h5:/x")
    for i in range(12):
        data = bytearray(read("f.h5"))
        for _ in range(8):
            data[DRAW.randrange(8, 6000)] = DRAW.randrange(256)
        with open("random.h5", "wb") as file:
            file.write(data)
        done = subprocess.run([cli_tests.COMMAND, "infer", config, "random.h5:/x", "--brief"], capture_output=True, text=True, env=environment(), timeout=120)
        check(done.returncode in (0, 4, 5), i, done.returncode, done.stderr)


def test_scratch():
    config = write_encoder()
    png("x.png", 3, 2, 0, 8, [b"\1\2\3", b"\4\5\6"])
    refused(5, r"gone: no file for what is read of pictures and HDF5 can be made there: No such file or directory.*--scratch", "infer", config, "x.png",
            "--scratch", "gone")
    if os.path.isdir("/dev/shm"):
        refused(5, r"/dev/shm: lies in memory \(tmpfs\).*--scratch", "infer", config, "x.png", "--scratch", "/dev/shm")

    def bound():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    make("hdf5", "f.h5", "x", "u8", 3000, SIDE, SIDE, data=bytes(3000 * SIDE * SIDE))
    refused(5, "File too large", "infer", config, "f.h5:/x", preexec_fn=bound)


def test_lists():
    config = write_encoder()
    with open("list.txt", "w") as file:
        file.write("gone.png\n")
    refused(4, "gone.png: cannot be opened", "infer", config, "@list.txt")
    refused(4, "^plimsoll infer: list.txt:1: gone.png: cannot be opened", "infer", config, "@list.txt")
    refused(4, "^plimsoll infer: gone.txt: cannot be opened", "infer", config, "@gone.txt")
    with open("list.txt", "w") as file:
        file.write("@list.txt\n")
    refused(4, "list.txt: is a list in a list, more than 8 deep", "infer", config, "@list.txt")
    with open("list.txt", "w") as file:
        file.write("\n\n")
    refused(4, "list.txt: the list names no files", "infer", config, "@list.txt")
    with open("list.txt", "wb") as file:
        file.write(b"a\0b\n")
    refused(4, "list.txt: is no list of files: it has zeros in it", "infer", config, "@list.txt")
    png("x.png", 3, 2, 0, 8, [b"\1\2\3", b"\4\5\6"])
    with open("list.txt", "w") as file:
        file.write("x.png")
    refused(2, "list.txt is read as a list of files, and the results would be written over it", "infer", config, "@list.txt", "--to", "list.txt")
    for line in ("foo=x.png", "image=@list.txt", "image=x.png:/y"):
        name = line.split("=")[0]
        refused(2, f"{line}: there is no such file, and the model has no input {name}; its input is images", "infer", config, line)
        with open("names.txt", "w") as file:
            file.write(f"x.png\n{line}\n")
        refused(2, f"{line}: there is no such file, and the model has no input {name}; its input is images", "infer", config, "@names.txt")
    os.makedirs("sub/deep")
    for name, lines in (("sub/list", "x.png\r\n\n@deep/list\nimages=@deep/list\n"), ("sub/deep/list", "../../x.png\n")):
        with open(name, "w") as file:  # each name is seen from its list
            file.write(lines)
    shutil.copy("x.png", "sub/x.png")
    sources = [json.loads(line)["source"] for line in run("infer", config, "@sub/list", "--brief", "--seeded")[0].splitlines()]
    check(sources == ["sub/x.png", "sub/deep/../../x.png", "sub/deep/../../x.png"], sources)
    with open("sub/deep/list", "a") as file:
        file.write("\n@more\n")
    refused(4, "^plimsoll infer: sub/deep/list:3: sub/deep/more: cannot be opened", "infer", config, "@sub/list")
    os.symlink("x.png", "foo=y.png")
    run("infer", config, "foo=y.png", "images=foo=y.png")
    refused(4, "gone/a=x.png: cannot be opened", "infer", config, "gone/a=x.png")
    refused(2, "x.png is read as images", "infer", config, "@list.txt", "--to", "x.png")


GROUPS = {"infer_files": [test_before_reading, test_png, test_jpeg, test_turned, test_sizes, test_hdf5, test_hdf5_ids, test_hybrid_pictures, test_clouds_hdf5, test_many, test_memory, test_nothing_is_left],
          "infer_files_refused": [test_bad_pictures, test_bad_hdf5, test_scratch, test_lists]}

if __name__ == "__main__":
    main(GROUPS)

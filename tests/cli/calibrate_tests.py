"""Tests of quantize --calibrate, whose samples are items of files. What it makes of a training's own samples, brought as files, is held against
what it makes of the training part; ranges against the numbers of the files; and bad input. Called as cli_tests.py is."""
import filecmp
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import zlib

from chain_tests import make_chains, write_chain
from cli_tests import COMMAND, SEED, Failed, await_event, check, environment, main, read, refused, run, start, write_text
from said import plain
from clouds_tests import synth, write_clouds
from encode_tests import SMALL, weights_for, write_encoder
from hybrid_tests import write_hybrid
from infer_tests import flat, save
from quantize_tests import f32, range_of, tensors_of
from quantize_trained_tests import MODEL, evaluate, quantize, train

DRAW = random.Random(SEED)


def tables(*words):
    """name → rows, as programs see them."""
    rows = [json.loads(line) for line in quantize_json(*words)]
    return {name: [row for row in rows if row.get("table") == name] for name in ("layers", "ranges", "held_out", "outputs")}


def quantize_json(*words):
    return run("quantize", *words, "--progress", "json")[0].splitlines()


def whole_text():
    """One whose training part is whole sequences."""
    write_text(words=200)
    text = read("text.txt")
    while (edge_of(text) - 1) % MODEL["sequence"]:
        text = text[:-1]
    with open("text.txt", "wb") as file:
        file.write(text)


def edge_of(text):
    return len(text) - int(len(text) * 0.2)


def windows():
    """The training part's sequences."""
    text, n = read("text.txt"), MODEL["sequence"]
    return [list(text[i:i + n]) for i in range(0, edge_of(text) - n, n)]


def save_ids(path, rows, descr="|u1"):
    save(path, descr, (len(rows), len(rows[0])), sum(rows, []))


def test_a_training_brought_as_files():
    """All its sequences, in another order and from two files: the same bytes, however the method spreads them."""
    whole_text()
    for model in ({}, {"tie_embeddings": "false"}, {"arch": "mlp", "window": 4, "heads": None, "tie_embeddings": "false"}):
        out = "out" + str(len(model))
        train(out=out, model=model)
        rows = windows()
        DRAW.shuffle(rows)
        save_ids("a.npy", rows[:7])
        save_ids("b.npy", rows[7:], "<i8")
        for method in ("minmax", "percentile", "entropy"):
            quantize(out, "--method", method, "--samples", "100000", "--quantized", "own.safetensors")
            said = quantize(out, "--method", method, "--calibrate", "a.npy", "b.npy", "--quantized", "files.safetensors", "--quiet")
            check((said == "" or method == "entropy") and filecmp.cmp("own.safetensors", "files.safetensors", shallow=False), model, method, said)


def test_ranges_that_leave_much_out():
    """Are told with the table that shows them, and only then. Of these angles one is all that the smallest range has, in its last bin, where
    what lies beyond is counted, too: levels tell that without loss."""
    synth()
    run("train", write_clouds(), "--pretrain", "--no_loo", "--quiet")
    normals("images.npy", 20, 2, 16, 16)
    save("angles.npy", "<f4", (20, 2), [0.0623, 1] + 16 * [0.9] + 3 * [0.901] + 16 * [0.8] + 3 * [0.801])
    seen = set()
    for method in ("entropy", "minmax"):
        rows = [json.loads(line) for line in quantize_json("out/pretrain", "--method", method, "--calibrate", "angles=angles.npy", "images.npy")]
        much = sum(row["share_beyond"] > 0.1 for row in rows if row.get("table") == "ranges")
        told = [row["text"] for row in rows if row["event"] == "warning" and "leave out more than a tenth" in row["text"]]
        check(len(told) == (much > 0) and all(text.startswith(f"{much} of ") for text in told), method, much, told)
        seen.add((method, much > 0))
    check(("minmax", False) in seen and ("entropy", True) in seen, seen)


def normals(path, *shape):
    numbers = [f32(DRAW.gauss(0, 1)) for _ in range(math.prod(shape))]
    save(path, "<f4", shape, numbers)
    return numbers


def judged(folder, *files, layers=1):
    """Of a model that was trained: eval and infer take what came, and its layers are those that the training part's samples make. What comes out
    of the files' items is near; what is held out need not be like them."""
    found = tables(folder, "--calibrate", *files)
    check(len(found["layers"]) >= layers and not found["held_out"] and found["outputs"], found)
    check(all(0 < o["error"] < 0.5 and -1 <= o.get("least_cosine", 1) <= o.get("mean_cosine", 1) <= 1 for o in found["outputs"]), found["outputs"])
    wide, narrow = evaluate(folder), evaluate(folder, "--weights", f"{folder}/int8.safetensors")
    check(wide["loss"] != narrow["loss"], wide, narrow)
    ours = [run("infer", folder, *files, *words)[0] for words in ([], ["--weights", f"{folder}/int8.safetensors"])]
    check(ours[0] != ours[1] and len(ours[0].splitlines()) == len(ours[1].splitlines()), ours)
    quantize(folder, "--quantized", "own.safetensors", "--quiet")
    check(sorted(tensors_of("own.safetensors")) == sorted(tensors_of(f"{folder}/int8.safetensors")), "another set of layers")
    return found, outputs_differ(*ours)


def outputs_differ(wide, narrow):
    """The largest share by which an output of all items differs: its name → the root of Σ(y − y8)² / Σ y²."""
    found = {}
    for a, b in zip(wide.splitlines(), narrow.splitlines(), strict=True):
        a, b = json.loads(a), json.loads(b)
        for name in a:
            if isinstance(a[name], list) and a[name] and isinstance(flat(a[name])[0], float):
                x, y = flat(a[name]), flat(b[name])
                sums = found.setdefault(name, [0, 0])
                sums[0] += sum((p - q) ** 2 for p, q in zip(x, y, strict=True))
                sums[1] += sum(p * p for p in x)
    return {name: math.sqrt(d / s) for name, (d, s) in found.items()}


def as_infer_says(found, differ):
    for o in found["outputs"]:
        check(abs(o["error"] - differ[o["output"]]) <= 1e-4 * o["error"], o, differ)


def test_cloud_heights():
    """A range is that of the numbers in the file, where a layer reads them as they are."""
    synth()
    run("train", write_clouds(), "--pretrain", "--no_loo", "--quiet")
    normals("images.npy", 5, 2, 16, 16)
    angles = normals("angles.npy", 5, 2)
    found, differ = judged("out/pretrain", "angles=angles.npy", "images.npy")
    as_infer_says(found, differ)
    first = next(row for row in found["ranges"] if row["range"] == "film_layers.0.film_mlp.0.weight.input.0")
    check((f32(first["least"]), f32(first["largest"])) == (min(angles), max(angles)), first, angles)


def test_pages():
    run("train", write_hybrid(reasoning={"halt_max_steps": 3}), "--quiet")
    save("pages.npy", "|u1", (3, 64, 64), list(DRAW.randbytes(3 * 64 * 64)))
    as_infer_says(*judged("out", "pages.npy"))


def test_a_part_alone():
    """What is not run on files is calibrated with its own samples."""
    config = write_hybrid(n2n_pretrain={"only": True, "steps": 2, "batch_size": 3})
    save("pages.npy", "|u1", (1, 64, 64), [0] * 64 * 64)
    refused(2, r'n2n_pretrain.only makes the config that of another training, .*; take quantization.files \(--calibrate\) away, and its own samples', "plan", config, "--command", "quantize",
            "--set", "quantization.files=pages.npy")
    run("plan", config, "--command", "quantize")


def test_a_tower_that_does_not_always_run():
    """Its layers stay in f32 in an evaluation; so they do here."""
    run("train", write_hybrid(vision_encoder={"features_cache": "10MB"}), "--quiet")
    save("pages.npy", "|u1", (3, 64, 64), list(DRAW.randbytes(3 * 64 * 64)))
    as_infer_says(*judged("out", "pages.npy"))


def test_room():
    """For outputs where they are compared: an evaluation that keeps features, which are larger than any layer, has that of the widest layer."""
    config = write_hybrid(vision_encoder={"features_cache": "10MB", "image_size": 256})
    values = {v["name"]: v for v in json.loads(run("plan", config, "--command", "quantize", "--json")[0])["values"]}
    shapes = [values[name.removesuffix(".int8")]["shape"] for name in values if name.endswith(".weight.int8")]
    widest = max(4 * (rows + math.prod(rest)) + rows * math.prod(rest) for rows, *rest in shapes)
    check(values["quantize.rows"]["bytes"] == widest, values["quantize.rows"], widest, shapes)


def test_chains():
    make_chains()
    run("train", write_chain(), "--quiet")
    rows = [[DRAW.randrange(250) for _ in range(6)] + [0xfe] + [-1] * 3 + [0xff] + [DRAW.randrange(250) for _ in range(8)] for _ in range(3)]
    save_ids("tokens.npy", rows, "<i4")
    as_infer_says(*judged("out", "tokens.npy"))


def test_encoder():
    """Its own texts as a file of lines, or the pages that they are drawn to: the same bytes as of the config's texts."""
    lines = ["".join(DRAW.choice("abcdefgh xyz") for _ in range(30)).strip() or "a" for _ in range(5)]
    with open("t.txt", "w") as file:
        file.write("".join(line + "\n" for line in lines))
    own = write_encoder(texts="t.txt", text_format=None, count=None, weights=weights_for("w.safetensors"))
    method = DRAW.choice(["minmax", "percentile", "entropy"])
    quantize(own, "--method", method, "--quantized", "own.safetensors")
    files = write_encoder("files.yaml", weights="w.safetensors", texts="not/there.txt", text_format=None, count=None)
    found = tables(files, "--method", method, "--calibrate", "t.txt", "--quantized", "files.safetensors")
    check(filecmp.cmp("own.safetensors", "files.safetensors", shallow=False), method, lines)
    check([o["output"] for o in found["outputs"]] == ["capsules", "checksums", "children"], found["outputs"])
    ours = [run("infer", files, "t.txt", *words)[0] for words in ([], ["--weights", "files.safetensors"])]
    as_infer_says(found, outputs_differ(*ours))


def picture(path, side, change=lambda n: n):
    """A PNG of random grey."""
    rows = b"".join(b"\0" + DRAW.randbytes(side) for _ in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    with open(path, "wb") as file:
        file.write(change(b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)))


def test_bad_input():
    """A sentence, the right code, and what was there before stays."""
    config = write_encoder(weights=weights_for("w.safetensors"))
    side = SMALL["image_size"]
    save("pages.npy", "|u1", (2, side, side), list(DRAW.randbytes(2 * side * side)))
    quantize(config, "--calibrate", "pages.npy", "--quantized", "q.safetensors")
    before = read("q.safetensors")

    def fails(code, sentence, *words):
        refused(code, sentence, "quantize", config, "--quantized", "q.safetensors", *words)
        check(read("q.safetensors") == before and not any(".tmp" in name for name in os.listdir(".")), words, os.listdir("."))
    save("shape.npy", "|u1", (2, side, side + 1), [0] * (2 * side * (side + 1)))
    fails(4, r"shape.npy: is u1 .*, but images takes", "--calibrate", "shape.npy")
    save("none.npy", "|u1", (0, side, side), [])
    fails(4, "none.npy", "--calibrate", "none.npy")
    for name, content in (("empty.txt", b""), ("other.bin", b"\x93NUMPY"), ("half.png", None)):
        if content is None:
            picture(name, side, lambda data: data[:len(data) // 2])
        else:
            with open(name, "wb") as file:
                file.write(content)
        fails(4, name, "--calibrate", name)
    for wrong in (math.nan, math.inf):
        numbers = [DRAW.random() for _ in range(3 * side * side)]
        numbers[DRAW.randrange(len(numbers))] = wrong
        save("nan.npy", "<f4", (1, 3, side, side), numbers)
        fails(4, "nan.npy", "--calibrate", "pages.npy", "nan.npy")
    fails(4, "no/such.npy", "--calibrate", "no/such.npy")
    fails(2, "the same file", "--calibrate", "q.safetensors")
    fails(2, "there is also pages.npy; files to calibrate with stand behind --calibrate", "pages.npy")
    fails(2, "--scratch is of files to calibrate with", "--scratch", ".")
    fails(2, "leave one out", "--calibrate", "pages.npy", "--set", "quantization.files=pages.npy")
    fails(2, "--calibrate has an empty value", "--calibrate", "")
    fails(2, "--calibrate needs a value: --calibrate FILE; --quiet is an option", "--calibrate", "--quiet")
    fails(2, "--calibrate needs a value: --calibrate FILE; --samples is an option", "--calibrate", "--samples", "3", "pages.npy")
    fails(2, "the name of a file is empty", "--calibrate", "pages.npy", "")
    fails(3, "--budget|budget", "--calibrate", "pages.npy", "--budget", "10MB")
    fails(2, "--batch", "--calibrate", "pages.npy", "--batch", "2")
    refused(5, "no/such/folder", "quantize", config, "--calibrate", "pages.npy", "--quantized", "no/such/folder/q.safetensors")
    picture("page.png", side)
    quantize(config, "--calibrate", "page.png", "--quantized", "picture.safetensors")
    shutil.copy("page.png", "--quiet")
    for words in (["--calibrate", "./--quiet"], ["--calibrate=--quiet"]):
        quantize(config, *words, "--quantized", "same.safetensors")
        check(filecmp.cmp("same.safetensors", "picture.safetensors", shallow=False), words)
    with open("list", "w") as file:
        file.write("pages.npy\npage.png\n")
    quantize(config, "--calibrate", "@list", "--samples", "2", "--quantized", "list.safetensors")
    check(read("list.safetensors") == before, "the first two of a list are the pages")
    said = quantize(config, "--calibrate", "@list", "--samples", "9", "--quantized", "list.safetensors")
    check("there are 3 items, and the calibration sees no more" in said, said)
    said = quantize(config, "--calibrate", "page.png", "--samples", "9", "--quantized", "list.safetensors")
    check("there is 1 item, and the calibration sees no more" in said, said)


def test_files_that_change():
    """Numbers that are read several times are the same each time: one that is written to meanwhile, also with as many bytes, is refused."""
    config = write_encoder(weights=weights_for("w.safetensors"))
    side = SMALL["image_size"]
    save("pages.npy", "|u1", (2000, side, side), list(DRAW.randbytes(side * side)) * 2000)
    with open("t.txt", "w") as file:
        file.write("some words\n" * 2000)
    for name in ("pages.npy", "t.txt"):
        process = start("quantize", config, "--calibrate", name, "--quantized", "q.safetensors")
        await_event(process, "committed")
        process.send_signal(signal.SIGSTOP)
        with open(name, "r+b") as file:
            file.seek(-2, os.SEEK_END)
            file.write(b"!")
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        check(process.returncode == 4 and f"{name}: was changed while it was read" in err.decode(), name, process.returncode, err)
        check(not os.path.exists("q.safetensors"), name, "a file was written")


def scale(path, name, largest):
    """A tensor of float32 in a safetensors file, as large as that."""
    data = bytearray(read(path))
    bytes_of_header = struct.unpack("<Q", data[:8])[0]
    begin, end = (8 + bytes_of_header + at for at in json.loads(data[8:8 + bytes_of_header])[name]["data_offsets"])
    numbers = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    data[begin:end] = struct.pack(f"<{len(numbers)}f", *(x * largest / max(map(abs, numbers)) for x in numbers))
    with open(path, "wb") as file:
        file.write(data)


def test_outputs_that_are_not_finite():
    """Layers in 8 bits are, but what is made of them is not."""
    train(model={"tie_embeddings": "false"})
    run("export", "out", "--format", "safetensors", "--out", "w.safetensors")
    scale("w.safetensors", "lm_head.weight", 3.3e38)
    save_ids("tokens.npy", [[DRAW.randrange(97, 123) for _ in range(MODEL["sequence"])] for _ in range(3)])
    refused(4, "logits: what the model gives out, in f32 or in 8 bits, is not finite", "quantize", "out", "--weights", "w.safetensors",
            "--calibrate", "tokens.npy", "--quantized", "q.safetensors")
    check(not os.path.exists("q.safetensors"), "a file was written")


def test_outputs_of_zeros():
    """Are the same in both forms, so their cosine is 1, here and beside each other in a comparison."""
    train(model={"tie_embeddings": "false"})
    run("export", "out", "--format", "safetensors", "--out", "w.safetensors")
    scale("w.safetensors", "lm_head.weight", 0)
    save_ids("tokens.npy", [[DRAW.randrange(97, 123) for _ in range(MODEL["sequence"])] for _ in range(3)])
    words = ["out", "--weights", "w.safetensors"]
    found = tables(*words, "--calibrate", "tokens.npy", "--quantized", "q.safetensors")["outputs"]
    check([(o["error"], o["least_cosine"], o["mean_cosine"]) for o in found] == [(0, 1, 1)], found)
    told = json.loads(run("infer", *words, "tokens.npy", "--compare", "--json", "--turns", "1")[0])
    found = next(v for v in told["variants"] if v["variant"] == "int8")["outputs"]
    check([(o["difference"], o["least_cosine"], o["mean_cosine"]) for o in found] == [(0, 1, 1)], found)


def smallest(*words):
    """The budget that refusals lead to, and that one byte less is refused."""
    budget = 1 << 20
    for _ in range(4):
        done = subprocess.run([COMMAND, *words, "--budget", str(budget)], capture_output=True, env=environment())
        if done.returncode == 0:
            run(*words, "--budget", str(budget - 1), code=3)
            return str(budget)
        check(done.returncode == 3, words, done.stderr)
        budget = int(re.findall(r"raise the budget to (\d+) bytes", plain(done.stderr.decode()))[-1])
    raise Failed(f"{words}: what a refusal says is refused again and again")


def test_keys_of_infer():
    """They change nothing of a calibration, nor what it needs; and one by one is one by one, however many a config takes at once."""
    config = write_encoder(weights=weights_for("w.safetensors"))
    picture("page.png", SMALL["image_size"])
    quantization = ["quantize", config, "--calibrate", "page.png", "--quantized", "q.safetensors"]
    inference = ["infer", config, "page.png", "--to", "r.jsonl", "--latency"]
    budgets = [smallest(*words) for words in (quantization, inference)]
    results = [read(name) for name in ("q.safetensors", "r.jsonl")]
    with open(config, "a") as file:
        file.write("infer:\n  batch: 4096\n  latency: true\n")
    run(*quantization, "--budget", budgets[0])
    run(*inference, "--budget", budgets[1])
    check([read(name) for name in ("q.safetensors", "r.jsonl")] == results, "infer.batch changes bits")
    with open(config, "a") as file:
        file.write("  seeded: true\n  brief: true\n  files: not/there.npy\n  npy: not/there\n  to: not/there.jsonl\n")
    run(*quantization, "--budget", budgets[0])
    check(read("q.safetensors") == results[0], "a key of infer changes a calibration")


def unheard(*words):
    """Its exit code where who reads along has left."""
    reader, writer = os.pipe()
    os.close(reader)
    code = subprocess.run([COMMAND, *words], stdout=writer, stderr=writer, env=environment(), timeout=60).returncode
    os.close(writer)
    return code


def test_a_reader_that_leaves():
    """What goes to files is made all the same."""
    config = write_encoder(weights=weights_for("w.safetensors"))
    picture("page.png", SMALL["image_size"])
    for words, name in ((["quantize", config, "--calibrate", "page.png", "--quantized", "q.safetensors"], "q.safetensors"),
                        (["infer", config, "page.png", "--to", "r.jsonl"], "r.jsonl"), (["infer", config, "page.png", "--npy", "r"], "r.capsules.npy")):
        run(*words)
        whole = read(name)
        for more in ([], ["--progress", "json"]):
            os.unlink(name)
            code = unheard(*words, *more)
            check(code == 0 and read(name) == whole, words, more, code)


def test_what_is_remarked():
    """Lines that are not read as they were meant are samples, and are told; of those that the calibration sees."""
    config = write_encoder(weights=weights_for("w.safetensors"))
    lines = ["a", "", "word " * 3000, "b", ""]
    with open("t.txt", "w") as file:
        file.write("".join(line + "\n" for line in lines))
    told = run("infer", config, "t.txt", "--brief")[1]
    check("warning: 2 are empty lines; 1 are longer than a page" in told, told)
    said = quantize(config, "--calibrate", "t.txt", "--quiet")
    check(said.startswith("warning: 2 are empty lines; 1 are longer than a page") and "(of 5 items), and the calibration has seen them" in said, said)
    warnings = [json.loads(line) for line in quantize_json(config, "--calibrate", "t.txt", "--samples", "2")]
    check([w["text"] for w in warnings if w["event"] == "warning"] == ["1 are empty lines (of 2 items), and the calibration has seen them"], warnings)
    said = quantize(config, "--calibrate", "t.txt", "--samples", "1", "--quiet")
    check(said == "", said)


GROUPS = {"calibrate": [test_a_training_brought_as_files, test_cloud_heights, test_pages, test_a_part_alone, test_a_tower_that_does_not_always_run, test_room,
                        test_chains, test_encoder, test_ranges_that_leave_much_out, test_bad_input, test_keys_of_infer, test_a_reader_that_leaves, test_what_is_remarked, test_outputs_that_are_not_finite, test_outputs_of_zeros,
                        test_files_that_change]}

if __name__ == "__main__":
    main(GROUPS)

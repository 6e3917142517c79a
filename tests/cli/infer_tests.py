"""Tests of infer: any model on files. What it gives out is held against export_forward (EXPORT_FORWARD), which runs a program of the config on
raw inputs without any of infer's own way in and out; and what a host program (INFER_HOST) makes in memory of its own, against the command.
Called as cli_tests.py is."""
import array
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess

import cli_tests
from chain_tests import make_chains, write_chain
from cli_tests import SEED, check, environment, last_checkpoint, main, read, refused, run, write_config, write_text
from said import plain
from clouds_tests import synth, write_clouds
from encode_tests import SMALL, write_encoder
from hybrid_tests import write_hybrid
from rollout_oracle import load_weights
from rollout_tests import write_rollout

DRAW = random.Random(SEED)
NEAR = 1e-5
SAID = {"words", "halts", "height_km", "tokens", "loss", "perplexity", "next"}  # by the systems, beside what models give out
FORMATS = {"<f4": "f", "<f8": "d", "|u1": "B", "<i4": "i", "<i8": "q", "<u2": "H", "<f2": "e", ">f4": "f"}


# ---- arrays as numpy.save writes them, without numpy ----

def save(path, descr, shape, values, version=1, fortran=False):
    shape_text = "(" + "".join(f"{n}, " for n in shape).rstrip(" ") + ")"
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape_text}, }}"
    fixed = 10 if version == 1 else 12
    text = text + " " * (-(fixed + len(text) + 1) % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode())
        file.write(struct.pack(f"{order}{len(values)}{FORMATS[descr]}", *values))


def load(path):
    data = read(path)
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])
    check(header["descr"] == "<f4" and not header["fortran_order"], header)
    values = array.array("f")
    values.frombytes(data[10 + length:])
    return header["shape"], values


def flat(x):
    return [x] if not isinstance(x, list) else [e for part in x for e in flat(part)]


def shape_of(x):
    return (len(x), *shape_of(x[0])) if isinstance(x, list) else ()


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


# ---- against what the program gives by itself ----

def forward(config, command, program, count, weights, given):
    os.makedirs("ours", exist_ok=True)
    done = subprocess.run([os.environ["EXPORT_FORWARD"], config, command, program, str(count), weights, "ours", *given], capture_output=True,
                          text=True, env=environment(), timeout=120)
    check(done.returncode == 0, done.stderr)


def ours(left, count, matrix):
    x = array.array("f")
    x.frombytes(read(f"ours/{left}"))
    if not matrix:
        return x
    shape, w = matrix
    rows = [w[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
    return [sum(a * b for a, b in zip(x[at:at + shape[1]], row)) for at in range(0, len(x), shape[1]) for row in rows]


def near(name, got, wanted, within=NEAR):
    check(len(got) == len(wanted), name, len(got), len(wanted))
    size = max(abs(x) for x in wanted)
    worst = max(abs(a - b) for a, b in zip(got, wanted))
    check(size > 0 and worst <= within * size, f"{name}: {worst} away, of {size}")


def agrees(model, config, command, program, inputs, outputs, *words, count=3):
    """inputs: name → (descr and shape of the raw port, descr and shape of an item in the file, values of the file made of the raw ones, word
    for export_forward or None); outputs: name → (what export_forward leaves, matrix or None, shape of an item)."""
    run("export", model, "--format", "safetensors", "--out", "m.safetensors", *words)
    given, files = [], []
    for name, (raw, shape, of_file, value) in inputs.items():
        elems = count * math.prod(shape[0])
        values = raw(elems)
        with open(name + ".raw", "wb") as file:
            file.write(values[0])
        given.append((value + "=" if value else "") + name + ".raw")
        descr, per_item, numbers = of_file(values[1])
        save(name + ".npy", descr, (count, *per_item), numbers)
        files.append(f"{name}={name}.npy")
    forward(config, command, program, count, "m.safetensors", given)
    run("infer", model, *files, "--npy", "got", *words)
    out, _ = run("infer", model, *files, *words, "--batch", "2")
    told = lines(out)
    check([t["item"] for t in told] == list(range(count)), out[:200])
    first = list(inputs)[0]
    check([t["source"] for t in told] == [f"{first}.npy[{i}]" for i in range(count)], out[:200])
    for name, (left, times, item) in outputs.items():
        matrix = times and matrix_of("m.safetensors", times)
        shape, got = load(f"got.{name}.npy")
        check(tuple(shape) == (count, *item), name, shape)
        near(name, got, ours(left, count, matrix))
        check(all(shape_of(t[name]) == tuple(item) for t in told), name, [shape_of(t[name]) for t in told])
        exact = array.array("f", [x for t in told for x in flat(t[name])])
        check(exact == got, f"{name}: lines and arrays are not the same numbers")
    check(set(told[0]) - SAID == {"item", "source", *outputs}, told[0].keys())
    same_with_any(model, files, words, out)
    for name, (_, _, of_file, _) in inputs.items():
        bring(name, of_file)
    host_agrees(model, words, inputs, outputs, count)
    return told


def host(model, batch, which, given):
    """What a host program makes of raw inputs: its values, and the bytes of each output."""
    os.makedirs("host", exist_ok=True)
    done = subprocess.run([os.environ["INFER_HOST"], model, str(batch), which, "host", *given], capture_output=True, text=True, env=environment(),
                          timeout=120)
    check(done.returncode == 0, done.stderr)
    told = [line.split() for line in done.stdout.splitlines()]
    check(told[-3:] == [["requests", "0"], ["same", "1"], ["guarded", "1"]], told[-3:])
    return {name: (way, kind, [int(n) for n in shape]) for name, way, kind, *shape in told[:-3]}


def host_agrees(model, words, raw, outputs, count):
    """In memory of its own, all at once and two with what is left over: the bytes are those of the command."""
    values = host(model, count, "first" if "--seeded" in words else "trained", [f"{name}={name}.host" for name in raw])
    check({n for n, v in values.items() if v[0] == "in"} == set(raw) and {n for n, v in values.items() if v[0] == "out"} == set(outputs), values)
    for name in outputs:
        shape, got = load(f"got.{name}.npy")
        check(values[name][1:] == ("f32", list(shape)), values[name], shape)
        check(read(f"host/{name}") == got.tobytes(), f"{name}: a host program has other bits")


def same_with_any(model, files, words, out):
    for more in (["--batch", "1"], ["--batch", "3", "--threads", "2"], ["--threads", "1"], ["--latency"]):
        check(run("infer", model, *files, *words, *more)[0] == out, "other numbers with", more)


def matrix_of(path, name):
    data = read(path)
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + length])[name]
    begin, end = entry["data_offsets"]
    w = array.array("f")
    w.frombytes(data[8 + length + begin:8 + length + end])
    return entry["shape"], w


def bring(name, of_file):
    """The raw port as a host program brings it: pages as planes of f32."""
    data = read(name + ".raw")
    descr, shape, values = of_file(list(data))
    if descr == "|u1":
        side = shape[0] * shape[1]
        narrow = [struct.unpack("<f", struct.pack("<f", v / 255))[0] for v in values]
        data = b"".join(3 * struct.pack(f"<{side}f", *narrow[at:at + side]) for at in range(0, len(narrow), side))
    with open(name + ".host", "wb") as file:
        file.write(data)


# ---- inputs: what the program takes as raw bytes, and the same as a file ----

def pages(side):
    def raw(elems):
        data = DRAW.randbytes(elems)
        return data, list(data)
    return raw, ((side, side),), lambda values: ("|u1", (side, side), values), None


def normals(*shape, descr="<f4", value=None):
    def raw(elems):
        values = [struct.unpack("<f", struct.pack("<f", DRAW.gauss(0, 1)))[0] for _ in range(elems)]
        return struct.pack(f"<{elems}f", *values), values
    return raw, (shape,), lambda values: (descr, shape, values), value


def ids(length, below, descr="<i4"):
    def raw(elems):
        values = [DRAW.randrange(below) for _ in range(elems)]
        return struct.pack(f"<{elems}i", *values), values
    return raw, ((length,),), lambda values: (descr, (length,), values), None


# ---- each system ----

def encoder(**keys):
    k = {**SMALL, **keys}
    capsules = k["target_capsules"]
    outputs = {"capsules": ("stored.0", None, (capsules, k["hidden_size"])), "checksums": ("stored.1", None, (capsules, k["checksum_dim"])),
               "children": ("stored.2", None, (capsules, k["children_per_capsule"], k["hidden_size"]))}
    return k, outputs


def test_encoder():
    config = write_encoder()
    k, outputs = encoder()
    agrees(config, config, "encode", "encode", {"images": pages(k["image_size"])}, outputs)
    patches = (k["image_size"] // k["patch_size"]) ** 2
    config = write_encoder(attention_entropy="true")
    agrees(config, config, "encode", "encode", {"images": pages(k["image_size"])},
           {**outputs, "attention": ("stored.4", None, (k["target_capsules"], patches))})


def test_pictures_of_all_kinds():
    """Grey bytes, colours first or last, real numbers of each width: the same picture is the same item."""
    config = write_encoder()
    side = SMALL["image_size"]
    grey = [DRAW.randrange(256) for _ in range(side * side)]
    narrow = [struct.unpack("<f", struct.pack("<f", g / 255))[0] for g in grey]
    save("grey.npy", "|u1", (1, side, side), grey)
    save("one.npy", "|u1", (side, side), grey)
    save("first.npy", "|u1", (1, 3, side, side), grey * 3)
    save("last.npy", "|u1", (1, side, side, 3), [g for g in grey for _ in range(3)])
    save("real.npy", "<f4", (1, side, side), narrow)
    save("double.npy", "<f8", (1, 3, side, side), narrow * 3)
    save("version2.npy", "<f4", (1, side, side), narrow, version=2)
    save("version3.npy", "<f4", (1, side, side), narrow, version=3)
    files = ["grey.npy", "one.npy", "first.npy", "last.npy", "real.npy", "double.npy", "version2.npy", "version3.npy"]
    told = lines(run("infer", config, *files)[0])
    check([t["source"] for t in told] == files, [t["source"] for t in told])
    for t in told[1:]:
        check({**t, "item": 0, "source": "grey.npy"} == told[0], t["source"] + " is another picture")
    save("half.npy", "<f2", (1, side, side), [round(g / 255 * 8) / 8 for g in grey])
    save("same.npy", "<f4", (1, side, side), [round(g / 255 * 8) / 8 for g in grey])
    half, same = lines(run("infer", config, "half.npy", "same.npy")[0])
    check(half["capsules"] == same["capsules"] != told[0]["capsules"], "numbers of 16 bits are others")


def test_colours():
    """Each colour is its own: planes in another order are another picture."""
    config = write_encoder()
    side = SMALL["image_size"]
    planes = [[DRAW.random() for _ in range(side * side)] for _ in range(3)]
    save("rgb.npy", "<f4", (1, 3, side, side), sum(planes, []))
    save("bgr.npy", "<f4", (1, 3, side, side), sum(planes[::-1], []))
    rgb, bgr = lines(run("infer", config, "rgb.npy", "bgr.npy")[0])
    check(rgb["capsules"] != bgr["capsules"], "colours are not looked at")


def test_hybrid():
    outputs = {"logits": ("stored.0", None, (3, 12)), "q_halt": ("stored.1", None, (1,)), "capsules": ("stored.2", None, (3, 16))}
    for sections in ({}, {"vision_encoder": {"fusion_type": "attention"}, "output_head": {"vq_codebook": "straight_through"}}):
        config = write_hybrid(**sections)
        agrees(config, config, "evaluate", "infer", {"images": pages(64)}, outputs, "--seeded")


def test_trained_hybrid():
    config = write_hybrid(train={"steps": 3, "checkpoint_every": 3})
    run("train", config)
    outputs = {"logits": ("stored.0", None, (3, 12)), "q_halt": ("stored.1", None, (1,)), "capsules": ("stored.2", None, (3, 16))}
    agrees("out", "out/config.yaml", "evaluate", "infer", {"images": pages(64)}, outputs)


def language(weight, descr="<i4", **sections):
    write_text(words=3000)
    config = write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4}, **sections)
    shutil.rmtree("out", ignore_errors=True)
    run("train", config)
    k = {**cli_tests.TINY["model"], **sections.get("model", {})}
    agrees("out", "out/config.yaml", "evaluate", "evaluate", {"tokens": ids(k["sequence"], 256, descr)},
           {"logits": ("judged.0", weight, (k["sequence"], 256))}, count=2)


def test_gpt():
    language("transformer.wte.weight")
    check(len(lines(run("infer", "out", "tokens.npy", "--checkpoint", last_checkpoint("out"))[0])) == 2, "a checkpoint is not taken")


def test_mlp():
    language("embedding.weight", "<u2", model={"arch": "mlp", "window": 5, "layers": 2, "heads": None, "activation": "tanh"})


def test_chain():
    make_chains()
    run("train", write_chain(train={"steps": 2, "checkpoint_every": 2}))

    def raw(elems):
        rows = [[DRAW.randrange(250) for _ in range(6)] + [0xfe] + [-1] * 3 + [0xff] + [DRAW.randrange(250) for _ in range(8)] for _ in range(elems // 19)]
        values = sum(rows, [])
        return struct.pack(f"<{elems}i", *values), values
    agrees("out", "out/config.yaml", "evaluate", "evaluate", {"tokens": (raw, ((19,),), lambda v: ("<i8", (19,), v), None)},
           {"logits": ("judged.0", None, (9, 256))})


def test_clouds():
    synth()
    run("train", write_clouds(loo="false"), "--pretrain")
    name = next(n for n in sorted(os.listdir("out")) if os.path.exists(f"out/{n}/checkpoints"))
    told = agrees(f"out/{name}", f"out/{name}/config.yaml", "evaluate", "evaluate",
                  {"images": normals(2, 16, 16), "angles": normals(2, descr="<f8")}, {"height": ("stored.0", None, (1,))})
    h, km = [t["height"][0] for t in told], [t["height_km"] for t in told]
    slope = (km[1] - km[0]) / (h[1] - h[0])
    check(slope > 0 and abs(km[2] - km[0] - slope * (h[2] - h[0])) <= 1e-4 * abs(km[0]), "heights in km are not those that were standardised", h, km)
    save("few.npy", "<f4", (2, 2), [0] * 4)
    by_order = run("infer", f"out/{name}", "images.npy", "angles.npy")[0]
    check(by_order == run("infer", f"out/{name}", "angles=angles.npy", "images.npy")[0], "names and order are not the same")
    refused(4, "there are 3 items of images and 2 of angles", "infer", f"out/{name}", "images.npy", "few.npy")
    refused(2, "a file is missing: the model's input angles", "infer", f"out/{name}", "images.npy")
    refused(2, "each of the model's 2 inputs has a file already", "infer", f"out/{name}", "images.npy", "angles.npy", "few.npy")


def operator(grid=8, **keys):
    config = write_rollout(**keys)
    agrees(config, config, "rollout", "features", {"state": normals(grid, grid, 3, value="state")}, {"output": ("stored.0", None, (grid, grid, 3))})


def test_operators():
    operator(space={"normalization": ["instance"], "base_channels": [4], "num_layers": [4]})
    operator(arch="fno_operator", space={"kernel_size": None, "base_channels": [3], "grid_size": [24]}, grid=24)
    operator(arch="unet_operator", space={"kernel_size": None, "num_layers": None, "base_channels": [4], "grid_size": [16]}, grid=16)


# ---- what systems say of an item ----

def softmax(row):
    most = max(row)
    e = [math.exp(x - most) for x in row]
    return [x / sum(e) for x in e]


def test_texts():
    """Lines of a file, by the run's tokenizer: the same numbers as of its ids; loss and next tokens by hand."""
    for tokenizer in ({}, {"tokenizer": "bpe", "vocab_size": 300}):
        shutil.rmtree("out", ignore_errors=True)
        write_text(words=3000)
        run("train", write_config(train={"steps": 30, "checkpoint_every": 15, "eval_every": 15}, data=tokenizer))
        length = cli_tests.TINY["model"]["sequence"]
        with open("lines.txt", "w") as file:
            file.write("the sea\nship\r\nw")
        told = lines(run("infer", "out", "lines.txt", "--ledger")[0])
        check([t["source"] for t in told] == ["lines.txt[0]", "lines.txt[1]", "lines.txt[2]"], told[0]["source"])
        if not tokenizer:
            text = [list(b"the sea"), list(b"ship"), list(b"w")]
            save("ids.npy", "<i4", (3, length), sum((t + [-1] * (length - len(t)) for t in text), []))
            for t, same in zip(told, lines(run("infer", "out", "ids.npy")[0])):
                check({**t, "source": ""} == {**same, "source": ""}, "a line is not its ids")
            for ids, t in zip(text, told):
                check(t["tokens"] == len(ids), t["tokens"])
                losses = [-math.log(softmax(t["logits"][i])[ids[i + 1]]) for i in range(len(ids) - 1)]
                check(bool(losses) == ("loss" in t), t.keys())
                if losses:
                    mean = sum(losses) / len(losses)
                    near("loss", [t["loss"], t["perplexity"]], [mean, math.exp(mean)])
        for t in told:
            row = softmax(t["logits"][t["tokens"] - 1])
            best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:5]
            check([n["id"] for n in t["next"]] == best, t["next"], best)
            near("probabilities", [n["probability"] for n in t["next"]], [row[i] for i in best])
        brief = lines(run("infer", "out", "lines.txt", "--brief", "--batch", "2")[0])
        check(brief == [{k: v for k, v in t.items() if k != "logits"} for t in told], brief)
        with open("blank.txt", "w") as file:
            file.write("a\n\nb\n")
        check([t["tokens"] > 0 for t in lines(run("infer", "out", "blank.txt", "--brief")[0])] == [True, False, True], "an empty line is no item")
        with open("long.txt", "w") as file: # judge_tests.py has what becomes of longer lines
            file.write("a\n" + "xyzw" * 10000)
        long = lines(run("infer", "out", "long.txt", "--brief")[0])[1]
        check(long["tokens"] == 40000 if not tokenizer else 10000 < long["tokens"] <= 40000, long)


def test_words_read():
    """The likeliest word of each capsule, of the lexicon or a control; and whether reasoning may end."""
    with open("words.txt", "w") as file:
        file.write("".join(f"word{i}\n" for i in range(8)))
    config = write_hybrid(reading={"lexicon": "words.txt"})
    save("pages.npy", "|u1", (2, 64, 64), list(DRAW.randbytes(2 * 64 * 64)))
    names = [f"word{i}" for i in range(8)] + ["EXPAND", "STOP", "MERGE", "PAD"]
    for t in lines(run("infer", config, "pages.npy", "--seeded")[0]):
        check(t["words"] == [names[max(range(12), key=lambda i: row[i])] for row in t["logits"]], t)
        near("halts", [t["halts"]], [1 / (1 + math.exp(-t["q_halt"][0]))])


# ---- where it goes ----

def some_pages(count=3, name="pages.npy"):
    side = SMALL["image_size"]
    save(name, "|u1", (count, side, side), list(DRAW.randbytes(count * side * side)))
    return write_encoder()


def test_where_it_goes():
    config = some_pages()
    out, err = run("infer", config, "pages.npy")
    check("3 items in" in err, err)
    nothing, _ = run("infer", config, "pages.npy", "--to", "lines.jsonl")
    check(nothing == "" and read("lines.jsonl").decode() == out, "a file of lines has other lines")
    closing = lines(run("infer", config, "pages.npy", "--to", "again.jsonl", "--json")[0])
    check(len(closing) == 1 and closing[0]["schema"] == "plimsoll.infer/1" and closing[0]["items"] == 3 and closing[0]["not_finite"] == 0, closing)
    check("median_seconds" not in closing[0], closing)
    closing = lines(run("infer", config, "pages.npy", "--json")[0])
    check([c.get("item") for c in closing] == [0, 1, 2, None] and closing[3]["items"] == 3, closing)
    told = lines(run("infer", config, "pages.npy", "--latency", "--json", "--npy", "got")[0])[0]
    check(0 < told["median_seconds"] <= told["p95_seconds"] <= told["most_seconds"] <= told["seconds"], told)
    check(sorted(os.listdir(".")).count("got.capsules.npy") == 1, os.listdir("."))
    arrays = {name: read(name) for name in os.listdir(".") if name.startswith("got.")}
    with open(config) as file:
        plain = file.read()
    for key in ("to: not.jsonl", "npy: not"):  # what a config says of it is not of a run that is told where
        with open(config, "w") as file:
            file.write(f"{plain}infer:\n  {key}\n")
        check(run("infer", config, "pages.npy", "--to", "-")[0] == out, key, "not to stdout")
        run("infer", config, "pages.npy", "--to", "told.jsonl")
        run("infer", config, "pages.npy", "--npy", "told")
        check(read("told.jsonl").decode() == out and all(read(name.replace("got", "told")) == arrays[name] for name in arrays), key)
        check(not any(name.startswith("not") for name in os.listdir(".")), key, os.listdir("."))
        for more in ("--to", "--npy"):
            refused(2, "leave one out", "infer", config, "pages.npy", more, "x", "--set", "infer.to=y" if more == "--npy" else "infer.npy=y")


def test_progress_for_programs():
    """Where stdout is free: what has been done, and at the end the ledger; a summary before it when it is asked for."""
    config = write_encoder()
    side = SMALL["image_size"]
    count = 4000
    save("many.npy", "|u1", (count, side, side), list(DRAW.randbytes(side * side)) * count)
    for words in (["--to", "r.jsonl"], ["--npy", "r"]):
        told = lines(run("infer", config, "many.npy", *words, "--progress", "json", "--json")[0])
        events = [t.get("event") for t in told]
        check(events[0] == "committed" and [e for e in events if e != "part"] == ["committed", None, "times", "ledger"], events)
        parts = [(t["part"], t["parts"], t["step"], t["steps"]) for t in told if t.get("event") == "part"]
        check(all(0 <= a <= b and step == steps == 0 for a, b, step, steps in parts), parts)
        check(next(t for t in told if t["schema"] == "plimsoll.infer/1")["items"] == count and told[-1]["ledger"]["as_planned"], told[-1])
    plain = run("infer", config, "many.npy", "--brief", "--progress", "json")[0]
    check([t["item"] for t in lines(plain)] == list(range(count)), "progress among results")


def test_memory_is_as_planned():
    """To the byte, and the same for few items and many: the files are never in memory."""
    config = some_pages()
    some_pages(400, "many.npy")
    resident = []
    for name in ("pages.npy", "many.npy"):
        _, err = run("infer", config, name, "--batch", "3", "--to", "lines.jsonl", "--ledger")
        check("As planned, to the byte." in err, err)
        resident.append(next(line for line in err.splitlines() if line.startswith("resident")).split()[1])
    check(resident[0] == resident[1], "memory grows with the items", resident)


def test_weights_that_do_not_fit():
    """What a model on files can be made smaller by, beside another model: 16 bits or 8, unless a file of weights is named, which may be that."""
    write_encoder(image_size=64, hidden_size=1024, num_heads=8, num_layers=1)
    with open("lines.txt", "w") as file:
        file.write("a text")
    _, said = run("infer", "encode.yaml", "lines.txt", "--budget", "1MB", code=3)
    floor = int(re.search(r"is charged (\d+) bytes before any", plain(said))[1])
    smaller = r"the weights alone are \d+ bytes, .*; make width or layers smaller"
    refused(3, smaller + r", or take --precision bf16 or weights in 8 bits \(plimsoll quantize\)$", "infer", "encode.yaml", "lines.txt", "--budget", str(floor))
    run("export", "encode.yaml", "--format", "safetensors", "--out", "w.safetensors")
    refused(3, smaller + "$", "infer", "encode.yaml", "lines.txt", "--weights", "w.safetensors", "--budget", str(floor))


def test_many_files():
    config = some_pages(2)
    some_pages(1, "single.npy")
    told = lines(run("infer", config, "pages.npy", "single.npy", "pages.npy", "--batch", "4")[0])
    check([t["source"] for t in told] == ["pages.npy[0]", "pages.npy[1]", "single.npy", "pages.npy[0]", "pages.npy[1]"], told)
    check(told[3]["capsules"] == told[0]["capsules"] != told[2]["capsules"], "items are not what their names say")


def test_not_finite():
    """Weights that are finite and far too large: null in lines, as it is in arrays, and a warning with their number."""
    config = some_pages(2)
    run("export", config, "--format", "safetensors", "--out", "w.safetensors")
    data = bytearray(read("w.safetensors"))
    length = int.from_bytes(data[:8], "little")
    for name in ("checksum_head.0.bias", "checksum_head.2.weight"):
        begin, end = json.loads(data[8:8 + length])[name]["data_offsets"]
        data[begin + 8 + length:end + 8 + length] = struct.pack("<f", 3e38) * ((end - begin) // 4)
    with open("w.safetensors", "wb") as file:
        file.write(data)
    out, err = run("infer", config, "pages.npy", "--weights", "w.safetensors", "--json")
    told = lines(out)
    bad = [x for t in told[:2] for x in flat(t["checksums"])]
    check(bad == [None] * len(bad) and len(bad) > 0, bad)
    check(f"{len(bad)} numbers of the results are infinite or NaN, written as null" in err and told[2]["not_finite"] == len(bad), err, told[2])
    _, err = run("infer", config, "pages.npy", "--weights", "w.safetensors", "--npy", "got")
    check(f"{len(bad)} numbers of the results are infinite or NaN" in err and "null" not in err, err)
    check(all(not math.isfinite(x) for x in load("got.checksums.npy")[1]), "numbers in the array are others")


def test_weights():
    """Of a file; those that training left, in their best checkpoint; first values."""
    config = some_pages(1)
    other = run("infer", write_encoder(seed=5), "pages.npy")[0]
    run("export", write_encoder(), "--format", "safetensors", "--out", "first.safetensors")
    run("export", write_encoder(seed=5), "--format", "safetensors", "--out", "w.safetensors")
    check(run("infer", write_encoder(), "pages.npy", "--weights", "w.safetensors")[0] == other != run("infer", config, "pages.npy")[0], "other weights")
    run("quantize", write_encoder(), "--samples", "4", "--quantized", "int8.safetensors")
    wide, narrow = (lines(run("infer", config, "pages.npy", "--weights", w)[0])[0]["capsules"] for w in ("first.safetensors", "int8.safetensors"))
    check(wide != narrow, "8 bits are not used")
    near("capsules in 8 bits", flat(narrow), flat(wide), 0.2)
    write_text(words=3000)
    config = write_config(train={"steps": 8, "checkpoint_every": 4, "eval_every": 4})
    run("train", config)
    save("ids.npy", "<i4", (1, cli_tests.TINY["model"]["sequence"]), [1] * cli_tests.TINY["model"]["sequence"])
    trained, seeded = (run("infer", "out", "ids.npy", *w)[0] for w in ([], ["--seeded"]))
    check(trained != seeded, "training has changed nothing")
    check(load_weights(last_checkpoint("out") + "/model.safetensors") != {}, "there is no checkpoint")


# ---- bad input ----

def test_bad_arrays():
    config = write_encoder()
    side = SMALL["image_size"]
    page = [0] * (side * side)
    save("order.npy", "|u1", (1, side, side), page, fortran=True)
    refused(4, "order.npy: lies in Fortran's order", "infer", config, "order.npy")
    save("big.npy", ">f4", (1, side, side), page)
    refused(4, r"big.npy: its numbers are big endian \(\">f4\"\)", "infer", config, "big.npy")
    save("whole.npy", "<i4", (1, side, side), page)
    refused(4, rf"whole.npy: is i4 \[1, {side}, {side}\], but images takes real numbers \[count, 3, {side}, {side}\]", "infer", config, "whole.npy")
    save("small.npy", "|u1", (1, side, side - 1), page[:-side])
    refused(4, "small.npy: is u1", "infer", config, "small.npy")
    save("none.npy", "|u1", (0, side, side), [])
    refused(4, "none.npy: has no items", "infer", config, "none.npy")
    for what, value in (("infinite or NaN", math.nan), ("infinite or NaN", math.inf), ("a brightness of 2; images are from 0 to 1", 2)):
        save("bad.npy", "<f4", (2, side, side), page + page[:-1] + [value])
        refused(4, "bad.npy: item 1 has .*" + what, "infer", config, "bad.npy")
    save("cut.npy", "|u1", (1, side, side), page)
    with open("cut.npy", "rb+") as file:
        file.truncate(os.path.getsize("cut.npy") - 7)
    refused(4, "cut.npy: its shape needs .* bytes behind the header", "infer", config, "cut.npy")
    with open("empty.npy", "w"):
        pass
    refused(4, "empty.npy: is empty", "infer", config, "empty.npy")
    with open("text.txt", "wb") as file:
        file.write(b"no\0array\n")
    refused(4, "text.txt: is no file that images can be read from", "infer", config, "text.txt")
    refused(4, "gone.npy: cannot be opened", "infer", config, "gone.npy")
    check(not os.path.exists("out"), "a folder was made")


def test_bad_ids():
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    length = cli_tests.TINY["model"]["sequence"]
    for bad in (256, -2, 70000):
        save("ids.npy", "<i4", (1, length), [1] * (length - 1) + [bad])
        refused(4, f"ids.npy: item 0 has the number {bad} in tokens, where -1 to 255 were expected", "infer", "out", "ids.npy")
    save("real.npy", "<f4", (1, length), [1] * length)
    refused(4, "real.npy: is f4", "infer", "out", "real.npy")
    save("short.npy", "<i4", (1, length - 1), [1] * (length - 1))
    refused(4, f"short.npy: is i4 .*, but tokens takes whole numbers .count, {length}.", "infer", "out", "short.npy")


def test_words():
    config = some_pages()
    refused(2, "there are no files to run the model on", "infer", config)
    refused(2, "--out is a file of lines, and --npy", "infer", config, "pages.npy", "--to", "a", "--npy", "b")
    refused(2, "leave one out", "infer", config, "pages.npy", "--seeded", "--checkpoint", "x")
    refused(2, "--seeded and --weights both name weights", "infer", config, "pages.npy", "--seeded", "--weights", "w.safetensors")
    refused(2, "--seeded and --weights both name weights", "export", config, "--format", "onnx", "--out", "x", "--seeded", "--weights", "w.safetensors")
    refused(2, "--brief .*--npy .*leave one out", "infer", config, "pages.npy", "--brief", "--npy", "x")
    write_text(words=3000)
    refused(4, "tokenizer.json: cannot be opened.*train first .plimsoll train.", "infer", write_config("text.yaml"), "text.txt", "--seeded")
    refused(2, "--checkpoint names weights of a model that is trained here; leave it out", "encode", config, "--checkpoint", "x")
    refused(2, "one of plimsoll generate, eval, verify, encode, quantize, infer and export, not of plimsoll rollout", "rollout", "x.yaml", "--checkpoint", "x")
    refused(2, "are one file|the same file", "infer", config, "pages.npy", "--to", "pages.npy")
    refused(2, "are one file|the same file", "infer", config, "images=pages.npy", "--to", "pages.npy")
    shutil.copy("pages.npy", "x.capsules.npy")
    refused(2, "are one file|the same file", "infer", config, "x.capsules.npy", "--npy", "x")
    shutil.copy("pages.npy", "o.plimsoll.tmp")
    refused(2, "the same file", "infer", config, "o.plimsoll.tmp", "--to", "o")
    check(os.path.exists("o.plimsoll.tmp"), "what was read is gone")
    os.remove("o.plimsoll.tmp")
    refused(5, "gone/lines: cannot be created", "infer", config, "pages.npy", "--to", "gone/lines")
    refused(3, "budget", "infer", config, "pages.npy", "--budget", "1MB")
    refused(4, r"nothing was trained there yet; train first: plimsoll train hybrid.yaml, or take a file of weights \(--weights FILE\) or first values \(--seeded\)$", "infer", write_hybrid(), "pages.npy")
    check(sorted(n for n in os.listdir(".") if n.endswith(".tmp")) == [], os.listdir("."))


def test_not_run():
    config = write_hybrid(reading={"noise": 40})
    refused(2, "reading.noise 40 adds noise to pages, and those of others are read without any; train with 0", "infer", config, "pages.npy", "--seeded")


GROUPS = {"infer": [test_progress_for_programs, test_encoder, test_pictures_of_all_kinds, test_colours, test_texts, test_gpt, test_mlp, test_where_it_goes, test_memory_is_as_planned, test_weights_that_do_not_fit,
                    test_many_files, test_not_finite, test_weights],
          "infer_systems": [test_hybrid, test_words_read, test_trained_hybrid, test_chain, test_clouds, test_operators],
          "infer_refused": [test_bad_arrays, test_bad_ids, test_words, test_not_run]}

if __name__ == "__main__":
    main(GROUPS)

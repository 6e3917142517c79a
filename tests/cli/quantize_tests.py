"""Tests of quantize, and of encode with what it wrote: an encoder in plain Python whose layers are rounded as docs/quantize.md says
(encode_oracle.py), the same bits however it is cut, and what bad input is answered. Called as cli_tests.py is."""
import filecmp
import json
import math
import os
import random
import shutil
import re
import struct

import encode_oracle
from cli_tests import SEED, check, main, read, refused, run
from encode_oracle import Encoder, draw_weights, write_weights
from encode_tests import SMALL, encode, numbers_of, weights_for, write_encoder
from checksum import xxh64

DRAW = random.Random(SEED)
PANEL = 16


# ---- the file ----

def tensors_of(path):
    """name → (dtype, shape, bytes)"""
    data = read(path)
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__")
    return {name: (t["dtype"], t["shape"], data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]) for name, t in header.items()}


def metadata_of(path):
    data = read(path)
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]


def without_checksum(data):
    """A file of version 1, whose damage is found by what it holds: the key has another name of that length."""
    check(data.count(b'"plimsoll.checksum"') == 1, data[:300])
    return re.sub(rb'"plimsoll\.(int8|binary)/2"', rb'"plimsoll.\1/1"', data).replace(b'"plimsoll.checksum"', b'"plimsoll.no_check"')


def checksum_of(path):
    """As docs/quantize.md says."""
    data, key = read(path), b'"plimsoll.checksum":"'
    at = data.index(key) + len(key)
    return f"{xxh64(data[:at] + b'0' * 16 + data[at + 16:]):016x}"


def unpack(packed, rows, width):
    """docs/quantize.md: scales, sums, panels → rows of (q, scale)"""
    padded, fours = -(-rows // PANEL) * PANEL, -(-width // 4)
    scales = struct.unpack(f"<{padded}f", packed[:4 * padded])
    sums = struct.unpack(f"<{padded}i", packed[4 * padded:8 * padded])
    q = struct.unpack(f"<{len(packed) - 8 * padded}b", packed[8 * padded:])
    found = []
    for j in range(rows):
        at = j // PANEL * fours * PANEL * 4
        row = [q[at + (p // 4 * PANEL + j % PANEL) * 4 + p % 4] for p in range(width)]
        check(sum(row) == sums[j] and max(map(abs, row)) <= 127, j, sums[j])
        found.append((row, scales[j]))
    return found


def range_of(tensors, name):
    dtype, shape, data = tensors[name]
    check(dtype == "F32" and shape == [2], name, dtype, shape)
    return struct.unpack("<2f", data)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def rounded(x, least, largest):
    """What the 256 numbers of a range make of x."""
    low, high = min(least, 0), max(largest, 0)
    scale = f32((high - low) / 255) or 1
    zero = round(-low / scale)
    return (min(max(round(x / scale) + zero, 0), 255) - zero) * scale


# ---- an encoder that rounds ----

class Rounding:
    """In the place of encode_oracle.times: it knows a layer by its weights, and counts how often it was asked for."""

    def __init__(self, file, weights):
        tensors = tensors_of(file)
        self.layers, self.uses, self.exact = [], {}, encode_oracle.times
        for name, (shape, numbers) in weights.items():
            if name + ".int8" not in tensors:
                continue
            rows, width = shape[0], math.prod(shape[1:])
            found = unpack(tensors[name + ".int8"][2], rows, width)
            for j, (q, scale) in enumerate(found):
                check(all(abs(v * scale - w) <= scale / 2 * 1.001 for v, w in zip(q, numbers[j * width:])), name, j)
            self.layers.append((name, list(numbers[:width]), [[v * scale for v in q] for q, scale in found]))
        self.ranges = {name: range_of(tensors, name) for name in tensors if ".input." in name}
        self.seen = {}

    def __call__(self, rows, weight, bias=None):
        for name, first, instead in self.layers:
            if list(weight[0]) == first and len(weight) == len(instead):
                return self.exact(self.come(name, rows), instead, bias)
        return self.exact(rows, weight, bias)

    def come(self, name, rows):
        """What comes to two layers has one range, under the name of the first."""
        use = self.uses[name] = self.uses.get(name, -1) + 1
        site = f"{name}.input.{use}"
        key = tuple(rows[0])
        if site in self.ranges:
            self.seen[key] = site
        at = self.seen.get(key, f"{name}.input.0")  # children come capsule by capsule
        return [[rounded(x, *self.ranges[at]) for x in row] for row in rows]


def distances(weights, file, text, **keys):
    """Of ours in 8 bits from an encoder that rounds, and from one that does not."""
    run("encode", write_encoder(weights=file, **keys), "--witness", "witness", "--only", str(text))
    k = {**SMALL, **keys}
    grid, children = (2, 2), k["children_per_capsule"]
    exact = encode_oracle.times
    plain = Encoder("witness", k["num_heads"], k["num_layers"], k["H_cycles"], k["L_cycles"], False, weights=weights).distances(grid, children)
    encode_oracle.times = Rounding(file, encode_oracle.load_weights(weights))
    try:
        ours = Encoder("witness", k["num_heads"], k["num_layers"], k["H_cycles"], k["L_cycles"], False, weights=weights).distances(grid, children)
    finally:
        encode_oracle.times = exact
        shutil.rmtree("witness")
    return plain, ours


def quantize(config, *words, **options):
    _, said = run("quantize", config, *words, **options)
    return said


def test_layers_are_rounded_as_defined():
    for method in ("minmax", "percentile", "entropy"):
        keys = DRAW.choice([{}, {"num_layers": 2, "image_size": 48, "patch_size": 12}, {"hidden_size": 12, "num_heads": 3}])
        weights = weights_for("w.safetensors", **keys)
        quantize(write_encoder(weights=weights, **keys), "--quantized", "q.safetensors", "--method", method, "--samples", "40")
        plain, ours = distances(weights, "q.safetensors", DRAW.randrange(40), **keys)
        print(method, keys, {name: f"{plain[name]:.1e} {ours[name]:.1e}" for name in ours})
        # Where x/scale is next to a half, its f32 and ours round it to different sides.
        check(ours["sketches"] < 2e-3 and ours["sketches"] < plain["sketches"] / 2, method, keys, plain, ours)
        shutil.rmtree("out", ignore_errors=True)


def cosine(a, b):
    return math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def test_methods():
    weights = weights_for("w.safetensors")
    config = write_encoder(weights=weights, out="plain")
    encode(config)
    shape, plain = numbers_of("plain/results.blocks")
    ranges, width = {}, shape[-1]
    for method in ("minmax", "percentile", "entropy"):
        said = quantize(config, "--quantized", f"{method}.safetensors", "--method", method, "--samples", "70")
        check("encoder.L_blocks.0.mlp.down_proj " in said and "beyond" in said, said)
        tensors = tensors_of(f"{method}.safetensors")
        ranges[method] = {n: range_of(tensors, n) for n in tensors if ".input." in n}
        encode(write_encoder("int8.yaml", weights=f"{method}.safetensors", out=method))
        numbers = numbers_of(f"{method}/results.blocks")[1]
        cosines = [cosine(plain[i:i + width], numbers[i:i + width]) for i in range(0, len(plain), width)]
        worst, mean = min(cosines), math.fsum(cosines) / len(cosines)
        told = [float(x) for x in next(line for line in said.splitlines() if line.startswith("sketches ")).split()[-2:]]
        print(method, worst, mean, told)
        # Where hardly a number is near 0, entropy may leave out nearly all: of random weights that comes.
        check(worst < 1 and (worst > 0.99 or method == "entropy"), method, worst)
        check(abs(told[0] - worst) < 2e-6 and abs(told[1] - mean) < 2e-6, told, worst, mean)
    check(ranges["minmax"]["encoder.patch_embed.weight.input.0"] == (0, 1), ranges["minmax"])
    for name, (least, largest) in ranges["minmax"].items():
        for method in ("percentile", "entropy"):
            low, high = ranges[method][name]
            check(least <= low <= high <= largest, name, method, low, high)


def test_some_stay():
    """The layers that lose most stay in f32; that all do is refused."""
    weights = weights_for("w.safetensors")
    config = write_encoder(weights=weights, out="plain")
    said = quantize(config, "--quantized", "all.safetensors", "--samples", "20")
    worst = [line.split()[0] + ".weight" for line in said.splitlines() if line.rstrip().endswith("%") and ".input." not in line]
    check(len(worst) == 9, said)
    quantize(config, "--quantized", "some.safetensors", "--samples", "20", "--keep_f32", "2")
    kept = [n for n, t in tensors_of("some.safetensors").items() if n.endswith(".weight") and len(t[1]) > 1]
    check(sorted(kept) == sorted(worst[:2]), kept, worst)
    encode(write_encoder("int8.yaml", weights="some.safetensors", out="some"))
    refused(2, "keep_f32 is 99, and the model has 9 layers that can be done in 8 bits: none would be", "quantize", config, "--quantized",
            "some.safetensors", "--samples", "20", "--keep_f32", "99")
    check(len([n for n in tensors_of("some.safetensors") if n.endswith(".int8")]) == 7, "a good file was written over")


def test_same_bits_however_it_is_cut():
    config = write_encoder()
    for threads in (1, 2, 3):
        quantize(config, "--quantized", f"{threads}.safetensors", "--method", "entropy", "--threads", str(threads))
        check(filecmp.cmp("1.safetensors", f"{threads}.safetensors", shallow=False), threads)
    for k, (threads, batch) in enumerate(((1, 1), (2, 5), (3, 16))):
        encode(write_encoder("int8.yaml", weights="1.safetensors", out=f"cut{k}", threads=threads, batch_size=batch))
        check(filecmp.cmp("cut0/results.blocks", f"cut{k}/results.blocks", shallow=False), threads, batch)


def test_bad_input():
    weights = weights_for("w.safetensors")
    config = write_encoder(weights=weights)
    said = quantize(config, "--quantized", "q.safetensors", "--samples", "1000")
    check("there are 70 texts, and the calibration sees no more" in said, said)
    other = "other.yaml"
    refused(4, "holds weights in 8 bits already", "quantize", write_encoder(other, weights="q.safetensors"))
    refused(4, "are of a model with encoder.width", "encode", write_encoder(other, weights="q.safetensors", hidden_size=24))
    refused(2, "encoder.precision bf16", "encode", write_encoder(other, weights="q.safetensors", precision="bfloat16"))
    refused(2, "encoder.precision fp16", "quantize", write_encoder(other, weights=weights, precision="float16"), "--quantized", "x.safetensors")
    whole = read("q.safetensors")
    with open("cut.safetensors", "wb") as file:
        file.write(whole[:-7])
    refused(4, "cut.safetensors", "encode", write_encoder(other, weights="cut.safetensors"))
    for spoil, name in ((b"\xff\xff\xff\x7f", ".int8"), (struct.pack("<2f", 1, -1), ".input.0")):
        tensor = next(n for n in tensors_of("q.safetensors") if n.endswith(name))
        at = whole.index(tensors_of("q.safetensors")[tensor][2])
        with open("spoilt.safetensors", "wb") as file:
            file.write(without_checksum(whole[:at] + spoil + whole[at + len(spoil):]))
        refused(4, tensor, "encode", write_encoder(other, weights="spoilt.safetensors", out="spoilt" + name))
    with open("format.safetensors", "wb") as file:
        file.write(whole.replace(b"plimsoll.int8/2", b"plimsoll.int8/9"))
    refused(4, "plimsoll.int8/9", "encode", write_encoder(other, weights="format.safetensors", out="format"))
    quantize(config, "--out", "trailing/", "--samples", "1")
    check(os.path.exists("trailing/int8.safetensors"), os.listdir("."))
    refused(2, "quantization.samples", "quantize", config, "--samples", "0")
    refused(2, "quantization.percentile", "quantize", config, "--percentile", "99")
    refused(2, "--output", "quantize", config, "--output", "x")
    refused(5, "no/such/folder", "quantize", config, "--quantized", "no/such/folder/q.safetensors")
    weights_for("nan.safetensors", change=lambda made: made["encoder.pre_pool_norm.bias"][2].__setitem__(0, math.inf))
    refused(4, "nan.safetensors", "quantize", write_encoder(other, weights="nan.safetensors"))
    check(not any(name.endswith(".tmp") for name in os.listdir(".")), os.listdir("."))
    refused(2, "quantize", "quantize", "../nothing.yaml")


def test_checksum():
    """A bit of any tensor is missed; a file without a checksum, of before there was one, is taken as it is."""
    quantize(write_encoder(weights=weights_for("w.safetensors")), "--quantized", "q.safetensors", "--samples", "3")
    whole, tensors = read("q.safetensors"), tensors_of("q.safetensors")
    check(metadata_of("q.safetensors")["plimsoll.checksum"] == checksum_of("q.safetensors"), metadata_of("q.safetensors"), checksum_of("q.safetensors"))
    encode(write_encoder("int8.yaml", weights="q.safetensors", out="whole"))
    names = [DRAW.choice([n for n in tensors if n.endswith(end) and tensors[n][2]]) for end in (".int8", ".input.0", ".bias", ".weight")]
    for name in names:
        dtype, _, data = tensors[name]
        place = DRAW.randrange(len(data))
        place -= place % 4 if dtype == "F32" else 0  # of a float the low bits: it stays finite
        spoilt = bytearray(whole)
        spoilt[whole.index(data) + place] ^= 1 << DRAW.randrange(8)
        with open("spoilt.safetensors", "wb") as file:
            file.write(spoilt)
        refused(4, r"spoilt.safetensors: its tensors are not those that were written \(checksum [0-9a-f]{16}, and its metadata say [0-9a-f]{16}\); copy it again",
                "encode", write_encoder("spoilt.yaml", weights="spoilt.safetensors", out="spoilt"))
    begin = 8 + struct.unpack("<Q", whole[:8])[0]
    for says in (b"", b"0", b"g" * 16, b"0" * 4000):
        header = whole[8:begin].replace(checksum_of("q.safetensors").encode(), says)
        with open("says.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + whole[begin:])
        refused(4, "says.safetensors: its tensors are not those that were written", "encode", write_encoder("says.yaml", weights="says.safetensors", out="says"))
    with open("old.safetensors", "wb") as file:
        file.write(without_checksum(whole))
    encode(write_encoder("old.yaml", weights="old.safetensors", out="old"))
    check(numbers_of("whole/results.blocks") == numbers_of("old/results.blocks"), "other results")


GROUPS = {"quantize": [test_layers_are_rounded_as_defined, test_methods, test_some_stay, test_same_bits_however_it_is_cut, test_checksum, test_bad_input]}

if __name__ == "__main__":
    main(GROUPS)

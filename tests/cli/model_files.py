"""GGUF files and folders of safetensors, read by their definitions alone, and numbers in blocks by those of ggml's reference
quantizers: oracles that need nothing but Python."""
import json
import os
import struct

BLOCK_TYPES = {0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20), 6: ("q5_0", 32, 22),
               7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34), 12: ("q4_k", 256, 144), 13: ("q5_k", 256, 176),
               14: ("q6_k", 256, 210), 30: ("bf16", 1, 2)}
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kind):
        value, = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def string(self):
        count = self.take("Q")
        self.at += count
        return self.data[self.at - count:self.at]

    def value(self, kind):
        if kind == 8:
            return self.string().decode()
        if kind != 9:
            return self.take(NUMBERS[kind])
        kind, count = self.take("I"), self.take("Q")
        return [self.value(kind) for _ in range(count)]


def read_gguf(path):
    """Its keys; its tensors as {name: (type, ne, bytes)}. Fails where the file breaks a rule of llama.cpp."""
    keys, tensors, _ = read_gguf_parts(path)
    return keys, tensors


def write_gguf(path, head, tensors):
    """`head`: what stands before the list of tensors, as read_gguf_parts gives it."""
    kinds, infos, data = {name: kind for kind, (name, _, _) in BLOCK_TYPES.items()}, b"", b""
    for name, (encoding, ne, piece) in tensors.items():
        infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack(f"<I{len(ne)}Q", len(ne), *ne)
        infos += struct.pack("<IQ", kinds[encoding], len(data))
        data += piece + bytes(-len(piece) % 32)
    with open(path, "wb") as file:
        file.write(head + infos + bytes(-len(head + infos) % 32) + data)


def read_gguf_parts(path):
    with open(path, "rb") as file:
        r = Reader(file.read())
    assert r.data[:4] == b"GGUF"
    r.at = 4
    assert r.take("I") == 3
    count, keys = r.take("Q"), {}
    for _ in range(r.take("Q")):
        key = r.string().decode()
        assert key not in keys, key
        keys[key] = r.value(r.take("I"))
    listed, head = [], r.data[:r.at]
    for _ in range(count):
        name = r.string().decode()
        ne = [r.take("Q") for _ in range(r.take("I"))]
        listed.append((name, ne, r.take("I"), r.take("Q")))
    base, end, tensors = r.at + -r.at % 32, 0, {}
    for name, ne, kind, offset in listed:
        encoding, block, size = BLOCK_TYPES[kind]
        assert offset == end and ne[0] % block == 0, (name, offset, end)
        numbers = 1
        for n in ne:
            numbers *= n
        bytes_ = numbers // block * size
        assert name not in tensors and len(r.data) >= base + offset + bytes_
        tensors[name] = (encoding, ne, r.data[base + offset:base + offset + bytes_])
        end = offset + bytes_ + -bytes_ % 32
    assert len(r.data) == base + end, (len(r.data), base + end)
    return keys, tensors, head


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    count, = struct.unpack_from("<Q", data)
    header, end, tensors = json.loads(data[8:8 + count]), 0, {}
    header.pop("__metadata__", None)
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        a, z = about["data_offsets"]
        assert a == end, name
        tensors[name] = (about["dtype"].lower(), about["shape"], data[8 + count + a:8 + count + z])
        end = z
    assert len(data) == 8 + count + end
    return tensors


def read_folder(folder):
    """Its config; its tensors as {name: (type, shape, bytes)}; how many files they are in."""
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        return config, read_safetensors(os.path.join(folder, "model.safetensors")), 1
    with open(index) as file:
        told = json.load(file)
    tensors = {}
    for name in sorted(set(told["weight_map"].values())):
        part = read_safetensors(os.path.join(folder, name))
        assert all(told["weight_map"][t] == name for t in part) and not set(part) & set(tensors)
        tensors.update(part)
    assert set(tensors) == set(told["weight_map"])
    assert told["metadata"]["total_size"] == sum(len(t[2]) for t in tensors.values())
    return config, tensors, len(set(told["weight_map"].values()))


# ---- numbers in other encodings: each operation is one of f32 ----

def half(x):
    return struct.pack("<e", x)


def nibbles(codes):
    return bytes((codes[j] & 15) | (codes[j + 16] & 15) << 4 for j in range(16))


def fifth_bits(codes):
    return struct.pack("<I", sum((c >> 4) << j for j, c in enumerate(codes)))


def around(x, zero):
    """Q4_0, Q5_0: the number farthest from 0 becomes code 0."""
    farthest = 0.0
    for v in x:
        if abs(v) > abs(farthest):
            farthest = v
    d = f32(farthest / -zero)
    by = f32(1 / d) if d else 0.0
    return d, [min(2 * zero - 1, int(f32(f32(v * by) + (zero + 0.5)))) for v in x]


def between(x, most):
    least = min(x)
    d = f32(f32(max(x) - least) / most)
    by = f32(1 / d) if d else 0.0
    return d, least, [min(most, int(f32(f32(f32(v - least) * by) + 0.5))) for v in x]


def block(x, encoding):
    """32 numbers: their bytes, and what these stand for."""
    if encoding == "q8_0":
        d = f32(max(abs(v) for v in x) / 127)
        by = f32(1 / d) if d else 0.0
        codes = [int(abs(f32(v * by)) + 0.5) * (1 if v > 0 else -1) for v in x]
        scale, = struct.unpack("<e", half(d))
        return half(d) + struct.pack("<32b", *codes), [f32(c * scale) for c in codes]
    if encoding in ("q4_0", "q5_0"):
        zero = 8 if encoding == "q4_0" else 16
        d, codes = around(x, zero)
        scale, = struct.unpack("<e", half(d))
        high = fifth_bits(codes) if zero == 16 else b""
        return half(d) + high + nibbles(codes), [f32((c - zero) * scale) for c in codes]
    most = {"q4_1": 15, "q5_1": 31}[encoding]
    d, least, codes = between(x, most)
    scale, = struct.unpack("<e", half(d))
    start, = struct.unpack("<e", half(least))
    high = fifth_bits(codes) if most == 31 else b""
    return half(d) + half(least) + high + nibbles(codes), [f32(f32(c * scale) + start) for c in codes]


def encode(numbers, encoding):
    """Bytes, and the numbers that they stand for."""
    if encoding == "f32":
        return struct.pack(f"<{len(numbers)}f", *numbers), list(numbers)
    if encoding == "f16":
        data = struct.pack(f"<{len(numbers)}e", *numbers)
        return data, list(struct.unpack(f"<{len(numbers)}e", data))
    if encoding == "bf16":
        words = [struct.unpack("<I", struct.pack("<f", v))[0] for v in numbers]
        words = [(w + 0x7fff + (w >> 16 & 1)) >> 16 for w in words]
        return struct.pack(f"<{len(words)}H", *words), [struct.unpack("<f", struct.pack("<I", w << 16))[0] for w in words]
    data, values = b"", []
    for at in range(0, len(numbers), 32):
        more, some = block(numbers[at:at + 32], encoding)
        data += more
        values += some
    return data, values

"""The encoder of pages in plain Python, from a witness (plimsoll encode --witness): the formulas of docs/capsules.md, in
double precision, one number after the other."""
import json
import math
import operator
import os
import struct

from rollout_oracle import load_npy, load_weights


def times(rows, weight, bias=None):
    """x Wᵀ + b for each row."""
    out = [[math.fsum(map(operator.mul, x, w)) for w in weight] for x in rows]
    return [[y + b for y, b in zip(row, bias)] for row in out] if bias else out


def plus(a, b):
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    return [v / math.fsum(e) for v in e]


def rms(rows, eps):
    return [[v / math.sqrt(math.fsum(u * u for u in x) / len(x) + eps) for v in x] for x in rows]


def layer_norm(rows, gain, bias, eps):
    out = []
    for x in rows:
        mean = math.fsum(x) / len(x)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + eps)
        out.append([g * (v - mean) / deviation + b for v, g, b in zip(x, gain, bias)])
    return out


class Encoder:
    """weights: the file that they are read from, where it is not the witness's own."""

    def __init__(self, folder, heads, layers, outer, inner, trm, eps=1e-6, weights=None):
        weights = load_weights(weights or os.path.join(folder, "weights.safetensors"))
        self.w = {name: shaped(*tensor) for name, tensor in weights.items()}
        self.page = shaped(*load_npy(os.path.join(folder, "page.npy")))
        self.stored = {name: shaped(*load_npy(os.path.join(folder, name + ".npy"))) for name in ("sketches", "checksums", "children")}
        self.heads, self.layers, self.outer, self.inner, self.trm, self.eps = heads, layers, outer, inner, trm, eps

    def patches(self):
        weight = self.w["encoder.patch_embed.weight"]
        p, side = len(weight[0][0]), len(self.page)
        flat = [[v for colour in out for row in colour for v in row] for out in weight]
        rows = []
        for top in range(0, side, p):
            for left in range(0, side, p):
                grey = [self.page[top + i][left + j] / 255 for i in range(p) for j in range(p)]
                rows.append(grey * 3)
        return plus(times(rows, flat, self.w["encoder.patch_embed.bias"]), self.w["encoder.pos_embed.pos_embedding"][0])

    def attention(self, h, name):
        qkv = times(h, self.w[name + "self_attn.qkv_proj.weight"])
        width = len(h[0])
        size, out = width // self.heads, [[] for _ in h]
        for head in range(self.heads):
            q, k, v = ([row[part * width + head * size:part * width + (head + 1) * size] for row in qkv] for part in range(3))
            for i, row in enumerate(q):
                a = softmax([x[0] for x in times(k, [[y / math.sqrt(size) for y in row]])])
                out[i] += [math.fsum(a[n] * v[n][c] for n in range(len(v))) for c in range(size)]
        return times(out, self.w[name + "self_attn.o_proj.weight"])

    def feed_forward(self, h, name):
        both = times(h, self.w[name + "mlp.gate_up_proj.weight"])
        half = len(both[0]) // 2
        hidden = [[g / (1 + math.exp(-g)) * u for g, u in zip(row[:half], row[half:])] for row in both]
        return times(hidden, self.w[name + "mlp.down_proj.weight"])

    def blocks(self, h):
        for i in range(self.layers):
            name = f"encoder.L_blocks.{i}."
            h = rms(plus(h, self.attention(h, name)), self.eps)
            h = rms(plus(h, self.feed_forward(h, name)), self.eps)
        return h

    def tokens(self):
        x = self.patches()
        if not self.trm:
            for _ in range(self.outer * self.inner):
                x = self.blocks(x)
            return x
        high, low = [self.w["encoder.H_init"]] * len(x), [self.w["encoder.L_init"]] * len(x)
        for _ in range(self.outer):
            for _ in range(self.inner):
                low = self.blocks(plus(low, plus(high, x)))
            high = self.blocks(plus(high, low))
        return high

    def capsules(self, t, grid, children):
        """Sketches, and the tokens that their children are made of."""
        if "encoder.spatial_pool.attn_conv.weight" in self.w:
            weight = [[c[0][0] for c in out] for out in self.w["encoder.spatial_pool.attn_conv.weight"]]
            logits = times(t, weight, self.w["encoder.spatial_pool.attn_conv.bias"])
            maps = [softmax([row[k] for row in logits]) for k in range(len(weight))]
            self.entropy = [-math.fsum(p * math.log(p + 1e-8) for p in a) for a in maps]
            sketches = [[math.fsum(a[n] * t[n][c] for n in range(len(t))) for c in range(len(t[0]))] for a in maps]
            if children:
                return sketches, [[t[n] for n in sorted(range(len(t)), key=lambda n: (-a[n], n))[:children]] for a in maps]
        else:
            side, sketches = math.isqrt(len(t)), []
            for i in range(grid[0]):
                for j in range(grid[1]):
                    field = [t[y * side + x] for y in range(i * side // grid[0], -(-(i + 1) * side // grid[0]))
                             for x in range(j * side // grid[1], -(-(j + 1) * side // grid[1]))]
                    sketches.append([math.fsum(row[c] for row in field) / len(field) for c in range(len(t[0]))])
        return sketches, [[s] * len(self.stored["children"][0]) for s in sketches]

    def distances(self, grid, children):
        """How far what was stored is from what this makes, as a share, by name."""
        w = self.w
        t = layer_norm(self.tokens(), w["encoder.pre_pool_norm.weight"], w["encoder.pre_pool_norm.bias"], self.eps)
        sketches, of = self.capsules(t, grid, children)
        hidden = times(sketches, w["checksum_head.0.weight"], w["checksum_head.0.bias"])
        made = {"sketches": sketches,
                "checksums": times([[max(0, v) for v in row] for row in hidden], w["checksum_head.2.weight"], w["checksum_head.2.bias"]),
                "children": [times(rows, w["children_projection.weight"], w["children_projection.bias"]) for rows in of]}
        return {name: distance(self.stored[name], made[name]) for name in made}


def flatten(x):
    return [v for part in x for v in flatten(part)] if isinstance(x, list) else [x]


def distance(a, b):
    a, b = flatten(a), flatten(b)
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)) / math.fsum(y * y for y in b)) if len(a) == len(b) else math.inf


def shaped(shape, numbers):
    """Numbers in a row as lists in lists."""
    numbers = list(map(float, numbers))
    for n in reversed(shape[1:]):
        numbers = [numbers[i:i + n] for i in range(0, len(numbers), n)]
    return numbers


# ---- weights of one's own ----

def tensors_of(k):
    """Names and shapes (docs/capsules.md), and the width of what each number is multiplied with."""
    d, patch, trm = k["hidden_size"], k["patch_size"], k.get("recursion") == "trm"
    inner = 256 * math.ceil(round(k.get("expansion", 4) * d * 2 / 3) / 256)
    made = {"encoder.patch_embed.weight": (d, 3, patch, patch), "encoder.patch_embed.bias": (d,),
            "encoder.pos_embed.pos_embedding": (1, (k["image_size"] // patch) ** 2, d),
            "encoder.pre_pool_norm.weight": (d,), "encoder.pre_pool_norm.bias": (d,),
            "checksum_head.0.weight": (128, d), "checksum_head.0.bias": (128,),
            "checksum_head.2.weight": (k["checksum_dim"], 128), "checksum_head.2.bias": (k["checksum_dim"],),
            "children_projection.weight": (d, d), "children_projection.bias": (d,)}
    for i in range(k["num_layers"]):
        name = f"encoder.L_blocks.{i}."
        made.update({name + "self_attn.qkv_proj.weight": (3 * d, d), name + "self_attn.o_proj.weight": (d, d),
                     name + "mlp.gate_up_proj.weight": (2 * inner, d), name + "mlp.down_proj.weight": (d, inner)})
    if k.get("pooling_method", "attention") == "attention":
        made.update({"encoder.spatial_pool.attn_conv.weight": (k["target_capsules"], d, 1, 1), "encoder.spatial_pool.attn_conv.bias": (k["target_capsules"],)})
    return {**made, **({"encoder.H_init": (d,), "encoder.L_init": (d,)} if trm else {})}


PACKED = {"F32": lambda x: struct.pack(f"<{len(x)}f", *x), "F16": lambda x: struct.pack(f"<{len(x)}e", *x),
          "BF16": lambda x: b"".join(struct.pack("<f", v)[2:] for v in x), "F64": lambda x: struct.pack(f"<{len(x)}d", *x),
          "I64": lambda x: struct.pack(f"<{len(x)}q", *x)}


def write_weights(path, tensors):
    """name → (dtype, shape, numbers), as a file of safetensors."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        packed = PACKED[dtype](numbers)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def draw_weights(k, source, dtypes):
    """Random ones for these keys, each of one of the dtypes, in a random order."""
    made = {}
    for name, shape in sorted(tensors_of(k).items(), key=lambda _: source.random()):
        size = math.prod(shape)
        scale = 1 / math.sqrt(size / shape[0]) if len(shape) > 1 else 0.5
        made[name] = (source.choice(dtypes), shape, [source.gauss(0, scale) + ("norm.weight" in name) for _ in range(size)])
    return made

"""Writes tiny pretrained models as folders and GGUF files, from the descriptions of these formats and nothing else.

A model is {our name: (rows, columns, numbers)}; a vector has 0 rows. Writers apply what each format does to a tensor
(fusing, transposing, neighbouring rotary rows, the 1 of Gemma's norms), so that a reader has to undo it."""
import json
import os
import random
import struct

GATED = ("llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma", "gemma2", "gemma3_text", "phi3")
POST = ("gemma2", "gemma3_text")


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Model:
    """Sizes of a family, and random numbers that 16 bits hold: multiples of 1/64 in [-1, 1)."""

    def __init__(self, family, seed, bias=False, tied=False, width=32):
        draw = random.Random(f"{family} {seed}")
        self.family, self.width, self.layers, self.heads, self.keys, self.head = family, width, 2, 4, 2, width // 2
        self.inner, self.vocab, self.context, self.bias, self.tied = 2 * width, 40, 64, bias, tied
        if family == "gpt2":
            self.keys, self.head = 4, width // 4
        if family == "phi3":
            self.head = width // 4
        self.tensors = {name: (rows, columns, [draw.randrange(-64, 64) / 64 for _ in range((rows or 1) * columns)])
                        for name, rows, columns in self.shapes()}

    def shapes(self):
        yield "model.embed_tokens.weight", self.vocab, self.width
        if self.family == "gpt2":
            yield "model.embed_positions.weight", self.context, self.width
        yield from self.norm("model.norm", self.width)
        if not self.tied:
            yield "lm_head.weight", self.vocab, self.width
        for i in range(self.layers):
            yield from self.block(f"model.layers.{i}.")

    def norm(self, name, width):
        yield name + ".weight", 0, width
        if self.family == "gpt2":
            yield name + ".bias", 0, width

    def linear(self, name, rows, columns, bias):
        yield name + ".weight", rows, columns
        if bias:
            yield name + ".bias", 0, rows

    def block(self, p):
        gpt2, qkv = self.family == "gpt2", self.bias or self.family in ("qwen2", "gpt2")
        yield from self.norm(p + "input_layernorm", self.width)
        for name, heads in (("q", self.heads), ("k", self.keys), ("v", self.keys)):
            yield from self.linear(f"{p}self_attn.{name}_proj", heads * self.head, self.width, qkv)
        yield from self.linear(p + "self_attn.o_proj", self.width, self.heads * self.head, self.bias or gpt2)
        if self.family in ("qwen3", "gemma3_text"):
            yield p + "self_attn.q_norm.weight", 0, self.head
            yield p + "self_attn.k_norm.weight", 0, self.head
        yield from self.norm(p + "post_attention_layernorm", self.width)
        if self.family in POST:
            yield p + "pre_feedforward_layernorm.weight", 0, self.width
            yield p + "post_feedforward_layernorm.weight", 0, self.width
        inner_bias = gpt2 or (self.bias and self.family in ("llama", "smollm3"))
        for name in ("gate", "up") if self.family in GATED else ("up",):
            yield from self.linear(f"{p}mlp.{name}_proj", self.inner, self.width, inner_bias)
        yield from self.linear(p + "mlp.down_proj", self.width, self.inner, inner_bias)

    def adds_one(self, name):
        return self.family.startswith("gemma") and "norm" in name

    def config(self):
        if self.family == "gpt2":
            return {"model_type": "gpt2", "vocab_size": self.vocab, "n_embd": self.width, "n_layer": self.layers,
                    "n_head": self.heads, "n_positions": self.context, "n_inner": self.inner,
                    "tie_word_embeddings": self.tied}
        config = {"model_type": self.family, "vocab_size": self.vocab, "hidden_size": self.width, "head_dim": self.head,
                  "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.keys,
                  "intermediate_size": self.inner, "max_position_embeddings": self.context, "tie_word_embeddings": self.tied}
        if self.bias:
            config |= {"attention_bias": True} | ({"mlp_bias": True} if self.family in ("llama", "smollm3") else {})
        if self.family == "phi3":
            del config["head_dim"]
        return config


def transposed(tensor):
    rows, columns, x = tensor
    return columns, rows, [x[r * columns + c] for c in range(columns) for r in range(rows)]


def stacked(parts):
    if parts[0][0] == 0:  # vectors
        joined = [x for p in parts for x in p[2]]
        return 0, len(joined), joined
    return sum(p[0] for p in parts), parts[0][1], [x for p in parts for x in p[2]]


def fuse(tensors, names, fused):
    """The tensors with those of `names` in each block stacked as `fused`, weights and biases."""
    out = dict(tensors)
    for ending in (".weight", ".bias"):
        for first in [n for n in tensors if n.endswith(names[0] + ending)]:
            p = first[:-len(names[0] + ending)]
            out[p + fused + ending] = stacked([out.pop(p + n + ending) for n in names])
    return out


def renamed(tensors, table, blocks):
    out = {}
    for name, value in tensors.items():
        stem, ending = name.rsplit(".", 1)
        stem = stem.replace("model.layers.", blocks)
        for ours, theirs in table.items():
            if stem == ours or stem.endswith("." + ours):
                stem = stem[:len(stem) - len(ours)] + theirs
                break
        out[f"{stem}.{ending}"] = value
    return out


QKV = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]


def hf_tensors(model, prefix=""):
    t = dict(model.tensors)
    if model.family == "phi3":
        t = fuse(fuse(t, QKV, "self_attn.qkv_proj"), ["mlp.gate_proj", "mlp.up_proj"], "mlp.gate_up_proj")
    if model.family == "gpt2":
        t = fuse(t, QKV, "attn.c_attn")
        t = {n: transposed(v) if "layers" in n and v[0] else v for n, v in t.items()}
        table = {"model.embed_tokens": "transformer.wte", "model.embed_positions": "transformer.wpe",
                 "model.norm": "transformer.ln_f", "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2",
                 "self_attn.o_proj": "attn.c_proj", "mlp.up_proj": "mlp.c_fc", "mlp.down_proj": "mlp.c_proj"}
        t = renamed(t, table, "transformer.h.")
    if prefix:
        t = {prefix + n.removeprefix("model.") if n.startswith("model.") else n: v for n, v in t.items()}
    return t


def numbers_as(dtype, x):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in x)
    return struct.pack("<%d%s" % (len(x), {"F32": "f", "F16": "e", "F64": "d"}[dtype]), *x)


def write_safetensors(path, tensors, dtype, change=None):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (rows, columns, x) in tensors.items():
        kind = dtype if isinstance(dtype, str) else dtype[len(header) % len(dtype)]
        raw = numbers_as(kind, x)
        header[name] = {"dtype": kind, "shape": [columns] if rows == 0 else [rows, columns],
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if change:
        change(header)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_folder(folder, model, dtype="F32", shards=1, prefix="", more=None, change=None):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(model.config() | (more or {}), file)
    tensors = list(hf_tensors(model, prefix).items())
    if shards == 1:
        return write_safetensors(os.path.join(folder, "model.safetensors"), dict(tensors), dtype, change)
    index = {}
    for k in range(shards):
        name = f"model-{k + 1:05}-of-{shards:05}.safetensors"
        write_safetensors(os.path.join(folder, name), dict(tensors[k::shards]), dtype)
        index |= {tensor: name for tensor, _ in tensors[k::shards]}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": 0}, "weight_map": index}, file)
    return None


# ---- GGUF ----

GGUF_NAMES = {"model.embed_tokens": "token_embd", "model.embed_positions": "position_embd", "model.norm": "output_norm",
              "lm_head": "output", "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
              "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
              "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def neighbours(tensor, heads):
    """Rows k and k + half of each head next to each other."""
    rows, columns, x = tensor
    is_vector = rows == 0
    if is_vector:
        rows, columns = columns, 1
    size = rows // heads
    order = [h * size + k // 2 + k % 2 * (size // 2) for h in range(heads) for k in range(size)]
    moved = [x[r * columns + c] for r in order for c in range(columns)]
    return (0, rows, moved) if is_vector else (rows, columns, moved)


def gguf_tensors(model):
    t = dict(model.tensors)
    if model.family in ("llama", "mistral", "smollm3"):
        heads = {"q_proj": model.heads, "k_proj": model.keys}
        t = {n: next((neighbours(v, h) for k, h in heads.items() if k in n), v) for n, v in t.items()}
    if model.family in ("phi3", "gpt2"):
        t = fuse(t, QKV, "attn_qkv")
    if model.family == "phi3":
        t = fuse(t, ["mlp.gate_proj", "mlp.up_proj"], "ffn_up")
    post = {"post_attention_layernorm": "post_attention_norm" if model.family in POST else "ffn_norm"}
    return renamed(t, GGUF_NAMES | post, "blk.")


def text(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


KINDS = {"u8": (0, "<B"), "i8": (1, "<b"), "u16": (2, "<H"), "i16": (3, "<h"), "u32": (4, "<I"), "i32": (5, "<i"),
         "f32": (6, "<f"), "bool": (7, "<?"), "u64": (10, "<Q"), "i64": (11, "<q"), "f64": (12, "<d")}


def value(kind, v):
    if kind == "str":
        return struct.pack("<I", 8) + text(v)
    if kind.startswith("["):
        inner = kind[1:]
        raw = b"".join(text(x) if inner == "str" else struct.pack(KINDS[inner][1], x) for x in v)
        return struct.pack("<IIQ", 9, 8 if inner == "str" else KINDS[inner][0], len(v)) + raw
    return struct.pack("<I", KINDS[kind][0]) + struct.pack(KINDS[kind][1], v)


def keys(model):
    arch = {"mistral": "llama", "gemma3_text": "gemma3"}.get(model.family, model.family)
    eps = "attention.layer_norm_epsilon" if arch == "gpt2" else "attention.layer_norm_rms_epsilon"
    own = {"block_count": ("u32", model.layers), "context_length": ("u32", model.context),
           "embedding_length": ("u32", model.width), "feed_forward_length": ("u32", model.inner),
           "attention.head_count": ("u32", model.heads), "attention.head_count_kv": ("u32", model.keys),
           "attention.key_length": ("u32", model.head), "attention.value_length": ("u32", model.head), eps: ("f32", 1e-5)}
    return {"general.architecture": ("str", arch)} | {f"{arch}.{k}": v for k, v in own.items()}


def random_blocks(kind, count, draw):
    """`count` numbers as random blocks, and what they are, each step rounded to f32."""
    if kind == "Q8_0":
        d, q = draw.choice([0.25, 0.0625, 0.0099]), [draw.randrange(-128, 128) for _ in range(32)]
        scale = struct.unpack("<e", struct.pack("<e", d))[0]
        return struct.pack("<e32b", d, *q), [f32(scale * x) for x in q]
    assert kind == "Q4_1" and count
    d, m, q = draw.choice([0.25, 0.011]), draw.choice([-1.5, 0.3]), [draw.randrange(256) for _ in range(16)]
    scale, low = struct.unpack("<2e", struct.pack("<2e", d, m))
    nibbles = [x & 15 for x in q] + [x >> 4 for x in q]
    return struct.pack("<2e16B", d, m, *q), [f32(f32(n * scale) + low) for n in nibbles]


TYPES = {"F32": 0, "F16": 1, "BF16": 30, "Q4_1": 3, "Q8_0": 8}


def randomised(model, kind, seed):
    """Blocks at random in place of the model's matrices: their bytes by GGUF name; the model gets their numbers."""
    draw, raws = random.Random(seed), {}
    for name, (rows, columns, _) in list(model.tensors.items()):
        if rows == 0:
            continue
        blocks = [random_blocks(kind, 32, draw) for _ in range(rows * columns // 32)]
        model.tensors[name] = (rows, columns, [x for _, numbers in blocks for x in numbers])
        raws[name] = [b for b, _ in blocks]
    return raws


def pack_matrix(tensor, lookup, kind):
    """A matrix of random blocks: each run of 32 numbers is one of them."""
    _, _, x = tensor
    return b"".join(lookup[tuple(x[i:i + 32])] for i in range(0, len(x), 32)) if kind in ("Q8_0", "Q4_1") else numbers_as(kind, x)


def write_gguf(path, model, kind="F32", more=None, tensors=None, version=3, alignment=32, seed=1):
    lookup = {}
    if kind in ("Q8_0", "Q4_1"):
        for name, blocks in randomised(model, kind, seed).items():
            x = model.tensors[name][2]
            lookup |= {tuple(x[32 * i:32 * i + 32]): raw for i, raw in enumerate(blocks)}
    pairs = keys(model) | (more or {})
    if alignment != 32:
        pairs["general.alignment"] = ("u32", alignment)
    pairs = {k: v for k, v in pairs.items() if v is not None}
    infos, data = b"", b""
    all_tensors = gguf_tensors(model) | (tensors or {})
    for name, tensor in all_tensors.items():
        rows, columns, x = tensor
        stored = "F32" if rows == 0 else kind
        raw = numbers_as("F32", x) if rows == 0 else pack_matrix(tensor, lookup, kind)
        ne = [columns] if rows == 0 else [columns, rows]
        infos += text(name) + struct.pack("<I%dQIQ" % len(ne), len(ne), *ne, TYPES[stored], len(data))
        data += raw + bytes(-len(raw) % alignment)
    head = b"GGUF" + struct.pack("<IQQ", version, len(all_tensors), len(pairs))
    head += b"".join(text(k) + value(*v) for k, v in pairs.items()) + infos
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % alignment) + data)

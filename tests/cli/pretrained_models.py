"""Tiny random language models as Hugging Face has them, and what they compute, by plain loops over doubles: an oracle that
needs nothing but Python. Definitions: docs/own-models.md; names and keys as in transformers."""
import json
import math
import os
import random
import struct

FAMILIES = {
    "llama": {},
    "mistral": {"window_every": 1},
    "qwen2": {"query_bias": True},
    "qwen3": {"qk_norm": True},
    "smollm3": {"tied": True, "no_rope_every": 4, "theta": 2e6},
    "gemma": {"tied": True, "one": True, "act": "gelu_tanh", "scaled": True},
    "gemma2": {"tied": True, "one": True, "post": True, "act": "gelu_tanh", "scaled": True, "cap": 50.0, "out_cap": 30.0,
               "window_every": 2, "scalar": 12},
    "gemma3_text": {"tied": True, "one": True, "post": True, "qk_norm": True, "act": "gelu_tanh", "scaled": True,
                    "window_every": 6, "scalar": 12, "theta": 1e6, "local_theta": 1e4},
    "olmo2": {"post": True, "only_post": True, "joint_qk_norm": True},
    "phi3": {"fused": True},
    "gpt2": {"layer_norm": True, "table": True, "act": "gelu_tanh", "tied": True, "plain": True},
}
CLASSES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
           "qwen3": "Qwen3ForCausalLM", "smollm3": "SmolLM3ForCausalLM", "gemma": "GemmaForCausalLM",
           "gemma2": "Gemma2ForCausalLM", "gemma3_text": "Gemma3ForCausalLM", "olmo2": "Olmo2ForCausalLM", "phi3": "Phi3ForCausalLM",
           "gpt2": "GPT2LMHeadModel"}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bytes_to_characters():
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    to = {b: chr(b) for b in kept}
    for b in range(256):
        if b not in to:
            to[b] = chr(256 + len([x for x in to if ord(to[x]) >= 256]))
    return to


def tokenizer():
    """256 bytes, three merges, and the special tokens <s> and </s>: byte-level BPE as of GPT-2."""
    characters = bytes_to_characters()
    vocab = {characters[b]: b for b in range(256)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    for a, b in merges:
        vocab[a + b] = len(vocab)
    specials = ["<s>", "</s>"]
    added = [{"id": len(vocab) + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, s in enumerate(specials)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocab, "merges": [f"{a} {b}" for a, b in merges]}}


class Model:
    def __init__(self, family="llama", seed=1, width=32, heads=4, key_heads=2, head_width=8, inner=48, layers=2, vocab=261,
                 context=64, window=5, **more):
        self.family, self.o = family, dict(FAMILIES[family], **more)
        if self.o.get("table"):
            key_heads, head_width = heads, width // heads
        self.width, self.heads, self.key_heads, self.head_width = width, heads, key_heads, head_width
        self.inner, self.layers, self.vocab, self.context, self.window = inner, layers, vocab, context, window
        self.cache = None  # how keys and values are rounded: "BF16", "F16" or "Q8_0"
        self.flow = False  # is what meets a matrix rounded to blocks of 8 bits?
        self.random = random.Random(seed)
        self.w = {}
        self.make()

    def draw(self, name, rows, columns, mean=0.0, scale=None):
        scale = 1.5 / math.sqrt(columns) if scale is None else scale
        self.w[name] = [[f32(self.random.gauss(mean, scale)) for _ in range(columns)] for _ in range(rows)]

    def draw_norm(self, name, width):
        self.draw(name + ".weight", 1, width, 0.0 if self.o.get("one") else 1.0, 0.2)
        if self.o.get("layer_norm"):
            self.draw(name + ".bias", 1, width, 0.0, 0.2)

    def draw_linear(self, name, out, columns, bias):
        self.draw(name + ".weight", out, columns)
        if bias:
            self.draw(name + ".bias", 1, out, 0.0, 0.3)

    def make(self):
        o, d, q, k = self.o, self.width, self.heads * self.head_width, self.key_heads * self.head_width
        all_bias = bool(o.get("plain"))
        self.draw("model.embed_tokens.weight", self.vocab, d, scale=1.0)
        if o.get("table"):
            self.draw("model.embed_positions.weight", self.context, d, scale=0.5)
        for i in range(self.layers):
            at = f"model.layers.{i}."
            if not o.get("only_post"):
                self.draw_norm(at + "input_layernorm", d)
            self.draw_norm(at + "post_attention_layernorm", d)
            if o.get("post"):
                if not o.get("only_post"):
                    self.draw_norm(at + "pre_feedforward_layernorm", d)
                self.draw_norm(at + "post_feedforward_layernorm", d)
            bias = all_bias or bool(o.get("query_bias"))
            self.draw_linear(at + "self_attn.q_proj", q, d, bias)
            self.draw_linear(at + "self_attn.k_proj", k, d, bias)
            self.draw_linear(at + "self_attn.v_proj", k, d, bias)
            self.draw_linear(at + "self_attn.o_proj", d, q, all_bias)
            if o.get("qk_norm"):
                self.draw_norm(at + "self_attn.q_norm", self.head_width)
                self.draw_norm(at + "self_attn.k_norm", self.head_width)
            if o.get("joint_qk_norm"):
                self.draw_norm(at + "self_attn.q_norm", q)
                self.draw_norm(at + "self_attn.k_norm", k)
            if not o.get("plain"):
                self.draw_linear(at + "mlp.gate_proj", self.inner, d, False)
            self.draw_linear(at + "mlp.up_proj", self.inner, d, all_bias)
            self.draw_linear(at + "mlp.down_proj", d, self.inner, all_bias)
        self.draw_norm("model.norm", d)
        if not o.get("tied"):
            self.draw("lm_head.weight", self.vocab, d)

    # ---- what it computes ----

    def multiply(self, name, x):
        x = rounded(x, "Q8_0") if self.flow else x
        bias = self.w.get(name + ".bias", [[0.0] * len(self.w[name + ".weight"])])[0]
        return [sum(a * b for a, b in zip(row, x)) + c for row, c in zip(self.w[name + ".weight"], bias)]

    def norm(self, name, x):
        if name + ".weight" not in self.w:
            return x
        gain = [g + 1 if self.o.get("one") else g for g in self.w[name + ".weight"][0]]
        if self.o.get("layer_norm"):
            mean = sum(x) / len(x)
            scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
            return [(v - mean) * scale * g + b for v, g, b in zip(x, gain, self.w[name + ".bias"][0])]
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + self.eps())
        return [v * scale * g for v, g in zip(x, gain)]

    def eps(self):
        return 1e-5 if self.family in ("gpt2", "phi3", "olmo2") else 1e-6

    def activate(self, z):
        if self.o.get("act") == "gelu_tanh":
            return 0.5 * z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z ** 3)))
        return z / (1 + math.exp(-z))

    def slides(self, i):
        every = self.o.get("window_every", 0)
        return every == 1 or (every > 1 and (i % 2 == 0 if every == 2 else (i + 1) % every != 0))

    def theta(self, i):
        """0: the block has no rotary positions."""
        every = self.o.get("no_rope_every", 0)
        if self.o.get("table") or (every and (i + 1) % every == 0):
            return 0
        return self.o["local_theta"] if "local_theta" in self.o and self.slides(i) else self.o.get("theta", 1e4)

    def turn(self, x, position, theta):
        half = len(x) // 2
        out = list(x)
        for j in range(half):
            angle = position * theta ** (-2 * j / (2 * half))
            c, s = math.cos(angle), math.sin(angle)
            out[j], out[j + half] = x[j] * c - x[j + half] * s, x[j + half] * c + x[j] * s
        return out

    def attend(self, i, rows):
        at, h, theta = f"model.layers.{i}.self_attn.", self.head_width, self.theta(i)
        parts = {"q": [], "k": [], "v": []}
        for t, x in enumerate(rows):
            for which, to in parts.items():
                y = self.multiply(at + which + "_proj", x)
                if which != "v" and self.o.get("joint_qk_norm"):
                    y = self.norm(at + which + "_norm", y)
                heads = [y[j:j + h] for j in range(0, len(y), h)]
                if which != "v":
                    if self.o.get("qk_norm"):
                        heads = [self.norm(at + which + "_norm", head) for head in heads]
                    if theta:
                        heads = [self.turn(head, t, theta) for head in heads]
                if which != "q" and self.cache:
                    heads = [rounded(head, self.cache) for head in heads]
                to.append(heads)
        scale = self.o.get("scalar", h) ** -0.5
        out = []
        for t in range(len(rows)):
            first = max(0, t - self.window + 1) if self.slides(i) else 0
            joined = []
            for j in range(self.heads):
                shared = j * self.key_heads // self.heads
                s = [scale * sum(a * b for a, b in zip(parts["q"][t][j], parts["k"][u][shared])) for u in range(first, t + 1)]
                if self.o.get("cap"):
                    s = [self.o["cap"] * math.tanh(z / self.o["cap"]) for z in s]
                most = max(s)
                p = [math.exp(z - most) for z in s]
                joined += [sum(p[u] * parts["v"][first + u][shared][c] for u in range(len(p))) / sum(p) for c in range(h)]
            out.append(self.multiply(at + "o_proj", joined))
        return out

    def feed_forward(self, i, x):
        at = f"model.layers.{i}.mlp."
        up = self.multiply(at + "up_proj", x)
        if self.o.get("plain"):
            return self.multiply(at + "down_proj", [self.activate(z) for z in up])
        gate = self.multiply(at + "gate_proj", x)
        return self.multiply(at + "down_proj", [self.activate(g) * u for g, u in zip(gate, up)])

    def block(self, i, rows):
        at, post = f"model.layers.{i}.", self.o.get("post")
        y = self.attend(i, [self.norm(at + "input_layernorm", x) for x in rows])
        if post:
            y = [self.norm(at + "post_attention_layernorm", x) for x in y]
        rows = [[a + b for a, b in zip(x, z)] for x, z in zip(rows, y)]
        second = "pre_feedforward_layernorm" if post else "post_attention_layernorm"
        y = [self.feed_forward(i, self.norm(at + second, x)) for x in rows]
        if post:
            y = [self.norm(at + "post_feedforward_layernorm", x) for x in y]
        return [[a + b for a, b in zip(x, z)] for x, z in zip(rows, y)]

    def logits(self, ids):
        scale = math.sqrt(self.width) if self.o.get("scaled") else 1.0
        rows = [[scale * v for v in self.w["model.embed_tokens.weight"][i]] for i in ids]
        if self.o.get("table"):
            rows = [[a + b for a, b in zip(x, p)] for x, p in zip(rows, self.w["model.embed_positions.weight"])]
        for i in range(self.layers):
            rows = self.block(i, rows)
        head = "model.embed_tokens" if self.o.get("tied") else "lm_head"
        out = [self.multiply(head, self.norm("model.norm", x)) for x in rows]
        cap = self.o.get("out_cap")
        return [[cap * math.tanh(z / cap) for z in row] if cap else row for row in out]

    def greedy(self, ids, count):
        """The likeliest tokens, one after the other, and the least lead of one over the second."""
        ids, lead = list(ids), math.inf
        for _ in range(count):
            row = self.logits(ids)[-1]
            order = sorted(range(len(row)), key=lambda i: (-row[i], i))
            lead = min(lead, row[order[0]] - row[order[1]])
            ids.append(order[0])
        return ids[len(ids) - count:], lead

    def round(self, dtype, of_matrices=False):
        """Its numbers, or those of the matrices that are multiplied, become those that such a file holds."""
        for name, rows in self.w.items():
            if not of_matrices or len(rows) > 1 and "positions" not in name:
                self.w[name] = [rounded(row, dtype) for row in rows]

    # ---- as a folder ----

    def config(self):
        if self.family == "gpt2":
            c = {"n_embd": self.width, "n_layer": self.layers, "n_head": self.heads, "n_inner": self.inner,
                 "n_positions": self.context, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
        else:
            c = {"hidden_size": self.width, "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
                 "num_key_value_heads": self.key_heads, "head_dim": self.head_width, "intermediate_size": self.inner,
                 "max_position_embeddings": self.context, "rms_norm_eps": self.eps(), "rope_theta": self.o.get("theta", 1e4),
                 "hidden_act": "silu", "tie_word_embeddings": bool(self.o.get("tied"))}
        if self.o.get("scaled"):
            c.pop("hidden_act")
            c["hidden_activation"] = "gelu_pytorch_tanh"
        if self.o.get("window_every"):
            c["sliding_window"] = self.window
        if self.o.get("scalar"):
            c["query_pre_attn_scalar"] = self.o["scalar"]
        if "local_theta" in self.o:
            c["rope_local_base_freq"] = self.o["local_theta"]
        if self.family == "gemma2":
            c.update(attn_logit_softcapping=self.o["cap"], final_logit_softcapping=self.o["out_cap"])
        return dict(c, model_type=self.family, architectures=[CLASSES[self.family]], vocab_size=self.vocab,
                    bos_token_id=259, eos_token_id=260, pad_token_id=260,
                    torch_dtype="float32")

    def tensors(self):
        """Under the names, and in the shapes, of the family's files."""
        out, transposed = {}, {}
        for name, rows in self.w.items():
            is_vector = "norm" in name or name.endswith(".bias")
            out[name] = (rows[0], [len(rows[0])]) if is_vector else ([v for r in rows for v in r], [len(rows), len(rows[0])])
        if self.o.get("fused"):
            self.fuse(out, "self_attn.qkv_proj.weight", [f"self_attn.{x}_proj.weight" for x in "qkv"])
            self.fuse(out, "mlp.gate_up_proj.weight", ["mlp.gate_proj.weight", "mlp.up_proj.weight"])
        if self.family != "gpt2":
            return out
        for bias in ("weight", "bias"):
            self.fuse(out, "attn.c_attn." + bias, [f"self_attn.{x}_proj.{bias}" for x in "qkv"])
        names = {"model.embed_tokens": "transformer.wte", "model.embed_positions": "transformer.wpe",
                 "model.norm": "transformer.ln_f", "model.layers": "transformer.h", "input_layernorm": "ln_1",
                 "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.c_proj", "mlp.up_proj": "mlp.c_fc",
                 "mlp.down_proj": "mlp.c_proj"}
        for name, (values, shape) in out.items():
            is_matrix = len(shape) == 2 and ".layers." in name
            for old, new in names.items():
                name = name.replace(old, new)
            if is_matrix:  # a Conv1D
                values = [values[r * shape[1] + c] for c in range(shape[1]) for r in range(shape[0])]
                shape = shape[::-1]
            transposed[name] = (values, shape)
        return transposed

    def fuse(self, out, name, parts):
        for i in range(self.layers):
            at = f"model.layers.{i}."
            taken = [out.pop(at + part) for part in parts]
            out[at + name] = (sum((v for v, _ in taken), []), [sum(s[0] for _, s in taken)] + taken[0][1][1:])

    def save(self, folder, dtype="F32"):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(self.config(), file, indent=2)
        with open(os.path.join(folder, "tokenizer.json"), "w") as file:
            json.dump(tokenizer(), file)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
            json.dump({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}, file)
        write_safetensors(os.path.join(folder, "model.safetensors"), self.tensors(), dtype)
        return folder


def pack(values, dtype):
    if dtype == "F32":
        return struct.pack(f"<{len(values)}f", *values)
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    words = (struct.unpack("<I", struct.pack("<f", v))[0] for v in values)
    return struct.pack(f"<{len(values)}H", *(((w + 0x7fff + (w >> 16 & 1)) >> 16) for w in words))


def unpack(data, dtype):
    if dtype == "F16":
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in struct.unpack(f"<{len(data) // 2}H", data)]


def rounded(values, dtype):
    """What they become where they are stored so; Q8_0 as ggml's reference has it."""
    if dtype != "Q8_0":
        return unpack(pack(values, dtype), dtype)
    out = []
    for at in range(0, len(values), 32):
        block = [f32(v) for v in values[at:at + 32]]
        d = f32(max(abs(v) for v in block) / 127)
        scale = unpack(pack([d], "F16"), "F16")[0]
        out += [math.copysign(math.floor(abs(f32(v * f32(1 / d))) + 0.5), v) * scale if d else 0.0 for v in block]
    return out


def write_safetensors(path, tensors, dtype):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (values, shape) in tensors.items():
        piece = pack(values, dtype)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)

"""Pretrained models of every family and format, written by model_files.py and shown by show_model: options, names, shapes,
and every number to the bit; keys of GGUF one by one; what is refused. pretrained_tests.py SHOW_MODEL"""
import json
import os
import struct
import subprocess
import sys
import tempfile

from model_files import POST, Model, f32, write_folder, write_gguf

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma", "gemma2", "gemma3_text", "gpt2", "phi3")
SHOW_MODEL = sys.argv[1]


def show(path, staging=4096):
    with tempfile.NamedTemporaryFile() as numbers:
        shown = subprocess.run([SHOW_MODEL, path, numbers.name], capture_output=True, text=True, check=True,
                               env=dict(os.environ, STAGING_BYTES=str(staging)))
        return json.loads(shown.stdout), numbers.read()


def check_numbers(model, path, staging, stored, adds_one):
    got, raw = show(path, staging)
    assert "refused" not in got, (path, got["refused"])
    assert {t[0] for t in got["tensors"]} == set(model.tensors), {t[0] for t in got["tensors"]} ^ set(model.tensors)
    at = 0
    for name, rows, columns, encoding, _ in got["tensors"]:
        want_rows, want_columns, x = model.tensors[name]
        assert (rows, columns) == (want_rows or 1, want_columns), (path, name, rows, columns)
        if adds_one and model.adds_one(name):
            x = [f32(v + 1) for v in x]
        assert raw[at:at + 4 * len(x)] == struct.pack("<%df" % len(x), *x), f"{path}: {name} has other numbers"
        if stored:
            assert encoding == (stored if want_rows else "f32"), (name, encoding)
        at += 4 * len(x)
    assert at == len(raw)
    return got


def test_folders(folder):
    for i, family in enumerate(FAMILIES):
        for dtype, shards, staging in (("F32", 1, 4096), ("BF16", 3, 70000), ("F16", 1, 5001), (("F64", "F32", "BF16"), 2, 4096)):
            path = os.path.join(folder, f"{family}-{dtype}-{shards}")
            model = Model(family, i, bias=i % 2 == 0 and family not in ("qwen2", "gpt2"), tied=shards == 3)
            if family in ("mistral", "phi3"):
                model = Model(family, i, tied=shards == 3)
            write_folder(path, model, dtype, shards)
            got = check_numbers(model, path, staging, None, True)
            assert got["family"] == family and got["is_tied"] == model.tied
            assert got["has_post_norms"] == (family in POST)


def test_prefixes(folder):
    picture = ("vision_tower.x.weight", "multi_modal_projector.y")
    for family, prefix in (("llama", "other."), ("gemma3_text", "language_model.model."), ("qwen2", "model.language_model.")):
        path, model = os.path.join(folder, family), Model(family, 1, tied=True)
        config = model.config()
        if family == "gemma3_text":
            model.config = lambda c=config: {"model_type": "gemma3", "text_config": c, "vision_config": {}}
        write_folder(path, model, prefix="" if prefix == "other." else prefix,
                     change=lambda h: h.update({k: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in picture})
                     if family == "gemma3_text" else None)
        check_numbers(model, path, 4096, None, True)
    path, model = os.path.join(folder, "none"), Model("qwen3", 1, tied=True)
    tensors = {n.removeprefix("model."): v for n, v in model.tensors.items()}
    bare = Model("qwen3", 1, tied=True)
    bare.tensors = tensors
    write_folder(path, bare)
    check_numbers(model, path, 4096, None, True)


def test_one_row(folder):
    """A feed-forward network of one number: matrices of one row are no vectors."""
    for family in ("llama", "phi3", "gpt2"):
        model = Model(family, 4, tied=True)
        model.inner = 1
        model.tensors = {n: (r, c, [i / 64 for i in range((r or 1) * c)]) for n, r, c in model.shapes()}
        write_folder(os.path.join(folder, family), model)
        check_numbers(model, os.path.join(folder, family), 4096, None, True)
        write_gguf(os.path.join(folder, family + ".gguf"), model)
        check_numbers(model, os.path.join(folder, family + ".gguf"), 4096, None, False)


def test_gpt2_names(folder):
    """As the oldest files have them: no prefix, and masks that nothing needs."""
    empty = {"F32": [], "U8": [1, 1, 0, 4]}
    masks = {"h.0.attn.bias": "U8", "h.1.attn.masked_bias": "F32"}

    def as_old(header):
        for name in [n for n in header if n.startswith("transformer.")]:
            header[name.removeprefix("transformer.")] = header.pop(name)
        for name, dtype in masks.items():
            header[name] = {"dtype": dtype, "shape": empty[dtype] or [0], "data_offsets": [0, 0]}

    path, model = os.path.join(folder, "old"), Model("gpt2", 3, tied=True)
    write_folder(path, model, "F16", change=as_old)
    check_numbers(model, path, 4096, None, True)
    write_folder(path, model, "F32", change=lambda h: h.update({"transformer.h.0.attn.c_attn.mask": h.pop("transformer.ln_f.bias")}))
    refused(show(path)[0], "transformer.ln_f.bias is missing; tensor transformer.h.0.attn.c_attn.mask is unknown")


def test_gguf(folder):
    for i, family in enumerate(FAMILIES):
        for kind in ("F32", "F16", "BF16", "Q8_0", "Q4_1"):
            # rows of whole blocks: a head is 32 wide in all but gpt2 and phi3
            model = Model(family, i, bias=family in ("llama", "smollm3", "gemma"), tied=i % 2 == 0, width=64)
            path = os.path.join(folder, f"{family}-{kind}.gguf")
            write_gguf(path, model, kind, version=2 + i % 2, alignment=32 << i % 3, seed=i)
            got = check_numbers(model, path, (4096, 9999)[i % 2], kind.lower(), False)
            assert got["family"] == {"mistral": "llama"}.get(family, family)
            assert got["has_query_bias"] == (model.bias or family in ("qwen2", "gpt2"))


def expect(got, **wanted):
    for key, want in wanted.items():
        assert got[key] == want, (key, got[key], want)


def test_keys(folder):
    """Keys of GGUF files, one by one, against what OWN_MODELS.md says about them."""
    path = os.path.join(folder, "keys.gguf")

    def read(family, more, tensors=None, layers=2):
        model = Model(family, 1, tied=True)
        if layers != 2:
            model.layers = layers
            model.tensors = {n: (r, c, [0.0] * ((r or 1) * c)) for n, r, c in model.shapes()}
        write_gguf(path, model, more=more, tensors=tensors)
        return show(path)[0]

    window = {"gemma2.attention.sliding_window": ("u32", 7), "gemma3.attention.sliding_window": ("u32", 5)}
    expect(read("gemma2", {}), attention_cap=50, output_cap=30, blocks=[[0, 4096], [0, 0]])
    expect(read("gemma2", window | {"gemma2.attn_logit_softcapping": ("f32", 5.0)}), attention_cap=5, blocks=[[0, 7], [0, 0]])
    expect(read("gemma3_text", {}), blocks=[[0, 0], [0, 0]], output_cap=0)
    expect(read("gemma3_text", window, layers=7), blocks=[[1, 5]] * 5 + [[0, 0], [1, 5]])
    pattern = {"gemma3.attention.sliding_window_pattern": ("[bool", [False, True])}
    expect(read("gemma3_text", window | pattern), blocks=[[0, 0], [1, 5]])
    expect(read("smollm3", {}, layers=5), blocks=[[0, 0], [0, 0], [0, 0], [-1, 0], [0, 0]])
    expect(read("phi3", {"phi3.attention.sliding_window": ("u32", 9)}), blocks=[[0, 9], [0, 9]])
    expect(read("qwen2", {"qwen2.attention.sliding_window": ("u32", 9)}), blocks=[[0, 0], [0, 0]])
    expect(read("llama", {"llama.attention.head_count_kv": ("[i32", [2, 2])}), key_heads=2)
    plain = read("llama", {"llama.rope.freq_base": ("f32", 100.0)})["ropes"][0]["frequencies"]
    linear = read("llama", {"llama.rope.freq_base": ("f32", 100.0), "llama.rope.scaling.factor": ("f32", 4.0)})
    assert all(abs(4 * b - a) < 1e-12 for a, b in zip(plain, linear["ropes"][0]["frequencies"]))
    old = read("llama", {"llama.rope.freq_base": ("f32", 100.0), "llama.rope.scale_linear": ("f32", 4.0)})
    assert old["ropes"] == linear["ropes"]
    freqs = {"rope_freqs.weight": (0, 8, [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0])}
    divided = read("llama", {"llama.rope.freq_base": ("f32", 100.0)}, freqs)["ropes"][0]["frequencies"]
    assert all(abs(a / d - b) < 1e-12 for a, b, d in zip(plain, divided, freqs["rope_freqs.weight"][2]))
    tokens = {"tokenizer.ggml.bos_token_id": ("u32", 3), "tokenizer.ggml.eos_token_id": ("u32", 4),
              "tokenizer.ggml.eot_token_id": ("u32", 5), "tokenizer.ggml.eom_token_id": ("u32", 4)}
    expect(read("llama", tokens), bos=3, eos=4, pad=-1, stop=[4, 5])
    for kind in ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"):
        expect(read("llama", {"llama.context_length": (kind, 100), "llama.attention.head_count_kv": ("[" + kind, [2, 2])}),
               context=100, key_heads=2)
        if kind[0] != "u":
            refused(read("llama", {"llama.context_length": (kind, -100)}), "llama.context_length is missing or not")
    expect(read("llama", {"llama.attention.layer_norm_rms_epsilon": ("f64", 1e-7)}), norm_eps=1e-7)
    absent = {"llama.attention.key_length": None, "llama.attention.value_length": None, "llama.attention.head_count_kv": None}
    refused(read("llama", absent), "tensor blk.0.attn_q.weight has 64 × 32 numbers; 32 × 32 were expected")


def refused(got, sentence):
    assert sentence in got.get("refused", "accepted"), (sentence, got.get("refused", "accepted"))


def test_refused_gguf(folder):
    path = os.path.join(folder, "refused.gguf")
    cases = [({"general.architecture": ("str", "falcon")}, "general.architecture \"falcon\" is not supported"),
             ({"llama.expert_count": ("u32", 8), "split.count": ("u32", 2), "llama.rope.scaling.type": ("str", "longrope")},
              "split.count: one of several files"), ({"llama.expert_count": ("u32", 8), "llama.rope.dimension_count": ("u32", 8)},
              "expert_count: experts are not supported; rope.dimension_count 8"),
             ({"llama.block_count": None}, "llama.block_count is missing"),
             ({"llama.block_count": ("u32", 100000)}, "llama.block_count is missing or not a whole number of 1 to 256"),
             ({"llama.embedding_length": ("str", "x")}, "embedding_length is not a number"),
             ({"llama.attention.head_count_kv": ("[i32", [2, 1])}, "attention.head_count_kv differs between layers"),
             ({"general.alignment": ("u32", 24)}, "general.alignment is 24"),
             ({"general.type": ("str", "adapter")}, "general.type is \"adapter\""),
             ({"llama.attention.layer_norm_rms_epsilon": None}, "the epsilon of norms is nan"),
             ({"llama.rope.scaling.type": ("str", "longrope")}, "rope.scaling.type \"longrope\" is not supported")]
    for more, sentence in cases:
        write_gguf(path, Model("llama", 1), more=more)
        refused(show(path)[0], sentence)
    for version, sentence in ((1, "is of GGUF version 1"), (3 << 24, "big-endian"), (4, "is of GGUF version 4")):
        write_gguf(path, Model("llama", 1), version=version)
        refused(show(path)[0], sentence)
    write_gguf(path, Model("llama", 1), tensors={"blk.0.attn_rot_embd.weight": (0, 4, [0.0] * 4)})
    refused(show(path)[0], "tensor blk.0.attn_rot_embd.weight is unknown")


def patched(path, find, offset, new):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = data.index(find) + len(find) + offset
    data[at:at + len(new)] = new
    with open(path, "wb") as file:
        file.write(data)
    return show(path)[0]


def test_damaged_gguf(folder):
    """Single fields of a header: counts, types, offsets, names."""
    path = os.path.join(folder, "damaged.gguf")
    cases = [(b"GGUF", 4, struct.pack("<Q", 1 << 60), "says that it has"), (b"GGUF", 12, struct.pack("<Q", 5000), "says that it has"),
             (b"blk.0.ffn_up.weight", 20, struct.pack("<I", 10), "blk.0.ffn_up.weight is of type Q2_K, which is not supported"),
             (b"blk.0.ffn_up.weight", 20, struct.pack("<I", 77), "is of type unknown"),
             (b"blk.0.ffn_up.weight", 20, struct.pack("<I", 12), "its rows are not whole blocks"),
             (b"blk.0.ffn_up.weight", 24, struct.pack("<Q", 0), "it overlaps another tensor"),
             (b"blk.0.ffn_up.weight", 24, struct.pack("<Q", 1 << 40), "does not lie in the file"),
             (b"blk.0.ffn_up.weight", 24, struct.pack("<Q", 8), "not a multiple of the alignment"),
             (b"blk.0.ffn_up.weight", 0, struct.pack("<I", 5), "not 1 to 4 dimensions"),
             (b"blk.0.ffn_up.weight", 4, struct.pack("<Q", 1 << 62), "more bytes than a file can hold"),
             (b"blk.0.ffn_u", 0, b"\0", "holds a zero"), (b"blk.0.", 0, b"attn_k.weight", ""),
             (b"llama.block_coun", 1, struct.pack("<I", 13), "which no version of GGUF knows"),
             (b"llama.block_coun", 0, b"\0", "a key at byte"),
             (b"general.architecture", 4, struct.pack("<Q", 1 << 50), "bytes follow, but it ends at")]
    for find, offset, new, sentence in cases:
        write_gguf(path, Model("llama", 1))
        refused(patched(path, find, offset, new), sentence)
    write_gguf(path, Model("llama", 1))
    refused(patched(path, b"llama.embedding_leng", -len("embedding_leng"), b"feed_forward_l"), "")
    write_gguf(path, Model("llama", 1), more={"llama.x1": ("u32", 1), "llama.x2": ("u32", 1)})
    refused(patched(path, b"llama.x2", -1, b"1"), "has the key \"llama.x1\" twice")
    write_gguf(path, Model("llama", 1))
    refused(patched(path, b"blk.1.ffn_norm", -len("1.ffn_norm"), b"0"), "there are two of that name")


def test_refused_safetensors(folder):
    def rename(old, new):
        return lambda h: h.update({new: h.pop(old)})

    norm = "model.norm.weight"
    cases = [(rename(norm, "x.weight"), "tensor model.norm.weight is missing; tensor x.weight is unknown"),
             (lambda h: h[norm].update(dtype="I32"), "tensor model.norm.weight is of type I32, which is not supported"),
             (lambda h: h[norm].update(shape=[1, 32]), "model.norm.weight has 1 × 32 numbers"),
             (lambda h: h[norm].update(shape=[31]), "needs 124 bytes"),
             (lambda h: h[norm].update(data_offsets=[0, 128]), "tensors may neither overlap nor leave holes"),
             (lambda h: h[norm].update(data_offsets=[1 << 40, (1 << 40) + 128]), "do not lie in the"),
             (lambda h: h.update({"model.layers.0.self_attn.rotary_emb.inv_freq": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}),
              None)]
    for i, (change, sentence) in enumerate(cases):
        path = os.path.join(folder, f"refused{i}")
        write_folder(path, Model("llama", 1), change=change)
        got = show(path)[0]
        assert sentence or "refused" not in got, got
        if sentence:
            refused(got, sentence)


def test_large(folder):
    """Headers of eight billion weights in four shards without contents, and a vocabulary of 262,144 tokens: opening keeps
    and takes little."""
    config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
              "tie_word_embeddings": False}
    model = Model("llama", 1)
    model.layers, model.width, model.inner, model.vocab, model.heads, model.keys, model.head = 32, 4096, 14336, 128256, 32, 8, 128
    shapes, index = list(model.shapes()), {}
    for k in range(4):
        header, at, name = {}, 0, f"model-{k}.safetensors"
        for tensor, rows, columns in shapes[k::4]:
            shape, size = [rows, columns] if rows else [columns], 2 * (rows or 1) * columns
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            index[tensor], at = name, at + size
        raw = json.dumps(header).encode()
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack("<Q", len(raw)) + raw)
            file.truncate(8 + len(raw) + at)
    for name, value in (("config.json", config), ("model.safetensors.index.json", {"weight_map": index})):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    vocabulary = {"tokenizer.ggml.tokens": ("[str", [f"token{i}" for i in range(1 << 18)]),
                  "tokenizer.ggml.scores": ("[f32", [0.0] * (1 << 18))}
    write_gguf(os.path.join(folder, "vocabulary.gguf"), Model("llama", 1), more=vocabulary)
    for path in (folder, os.path.join(folder, "vocabulary.gguf")):
        got = json.loads(subprocess.run([SHOW_MODEL, path], capture_output=True, text=True, check=True).stdout)
        assert "refused" not in got, got
        assert got["heap_bytes"] < 200_000 and got["heap_peak_bytes"] < 400_000, (got["heap_bytes"], got["heap_peak_bytes"])


def main():
    tests = [v for k, v in globals().items() if k.startswith("test_")]
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
        print(f"ok {test.__name__}", flush=True)


main()

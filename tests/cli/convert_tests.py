"""Tests of plimsoll convert. Called as cli_tests.py is. Oracles: model_files.py reads what was written, and has numbers in
blocks by their definition; with PL_OWN_PYTHON also transformers, tokenizers and gguf (converted_models.py)."""
import fcntl
import json
import math
import os
import random
import shutil
import struct
import subprocess

import model_files
import pretrained_models
from cli_tests import COMMAND, SEED, Skipped, check, environment, main, read, refused, run
from model_files import f32

DRAW = random.Random(SEED)
TEXT = "the cat and the dog: it's 12"
HERE = os.path.dirname(os.path.abspath(__file__))
GGUF_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
              "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
              "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
              "mlp.down_proj": "ffn_down", "post_feedforward_layernorm": "post_ffw_norm",
              "pre_feedforward_layernorm": "ffn_norm"}
OUTER_NAMES = {"model.embed_tokens": "token_embd", "model.embed_positions": "position_embd", "model.norm": "output_norm",
               "lm_head": "output"}


def make(family, **more):
    """Without what a GGUF file has no place for: a window that tells, other scales."""
    if family in ("gemma2", "gemma3_text"):
        more["scalar"] = 8
    if family == "mistral":
        more["window"] = 64
    layers = 7 if family == "gemma3_text" else 4
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=layers, **more)


def any_model():
    return make(DRAW.choice(list(pretrained_models.FAMILIES)))


def permuted(rows, heads):
    """A head's rows j and j + half become neighbours."""
    width = len(rows) // heads
    return [rows[h * width + part * (width // 2) + j] for h in range(heads) for j in range(width // 2) for part in (0, 1)]


def gguf_tensors(model):
    """What a GGUF file has to hold: {name: (rows, is it a vector)}."""
    out, post = {}, model.o.get("post")
    for name, rows in model.w.items():
        base, ending = name.rsplit(".", 1)
        is_vector = "norm" in base or ending == "bias"
        if base in OUTER_NAMES:
            out[f"{OUTER_NAMES[base]}.{ending}"] = ([[f32(v + 1) for v in rows[0]]] if is_vector and model.o.get("one")
                                                    else rows, is_vector)
            continue
        block, inner = base[len("model.layers."):].split(".", 1)
        if inner == "post_attention_layernorm":
            new = "post_attention_norm" if post else "ffn_norm"
        else:
            new = GGUF_NAMES[inner]
        if is_vector and "norm" in base and model.o.get("one"):
            rows = [[f32(v + 1) for v in rows[0]]]
        if new in ("attn_q", "attn_k") and model.family in ("llama", "mistral", "smollm3"):
            heads = model.heads if new == "attn_q" else model.key_heads
            rows = [[r[0] for r in permuted([[v] for v in rows[0]], heads)]] if is_vector else permuted(rows, heads)
        out[f"blk.{block}.{new}.{ending}"] = (rows, is_vector)
    fused = [("attn_qkv", ["attn_q", "attn_k", "attn_v"])] if model.family in ("gpt2", "phi3") else []
    fused += [("ffn_up", ["ffn_gate", "ffn_up"])] if model.family == "phi3" else []
    for new, parts in fused:
        for ending in ("weight", "bias"):
            for i in range(model.layers):
                taken = [out.pop(f"blk.{i}.{part}.{ending}") for part in parts if f"blk.{i}.{part}.{ending}" in out]
                if taken:
                    rows = sum((r for r, _ in taken), [])
                    out[f"blk.{i}.{new}.{ending}"] = ([sum(rows, [])] if taken[0][1] else rows, taken[0][1])
    return out


def wanted_encoding(name, rows, is_vector, encoding):
    if is_vector or name.startswith("position_embd"):
        return "f32"
    if encoding in ("q4_0", "q4_1", "q5_0", "q5_1") and name in ("token_embd.weight", "output.weight"):
        encoding = "q8_0"
    return "f32" if encoding.startswith("q") and len(rows[0]) % 32 else encoding


def check_gguf(path, model, encoding):
    """Returns the errors of each tensor: (relative, largest)."""
    keys, got = model_files.read_gguf(path)
    wanted, errors = gguf_tensors(model), {}
    check(set(got) == set(wanted), model.family, set(got) ^ set(wanted))
    for name, (rows, is_vector) in wanted.items():
        kind = wanted_encoding(name, rows, is_vector, encoding)
        numbers = [v for row in rows for v in row]
        data, values = model_files.encode(numbers, kind)
        ne = [len(rows[0])] if is_vector else [len(rows[0]), len(rows)]
        check(got[name][0] == kind and got[name][1] == ne, model.family, name, got[name][:2], kind, ne)
        check(got[name][2] == data, model.family, name, kind, "has other bytes")
        off = [abs(a - b) for a, b in zip(numbers, values)]
        if max(off) > 0:
            errors[name] = ((sum(e * e for e in off) / sum(v * v for v in numbers)) ** 0.5, max(off))
    arch = {"mistral": "llama", "gemma3_text": "gemma3"}.get(model.family, model.family)
    check(keys["general.architecture"] == arch and keys[arch + ".block_count"] == model.layers and
          keys[arch + ".embedding_length"] == model.width and keys[arch + ".context_length"] == model.context, keys)
    return errors


def check_tokenizer(path):
    keys, _ = model_files.read_gguf(path)
    told = pretrained_models.tokenizer()
    tokens = [t for t, _ in sorted(told["model"]["vocab"].items(), key=lambda item: item[1])] + ["<s>", "</s>"]
    check(keys["tokenizer.ggml.model"] == "gpt2" and keys["tokenizer.ggml.pre"] == "gpt-2", keys)
    check(keys["tokenizer.ggml.tokens"] == tokens and keys["tokenizer.ggml.merges"] == told["model"]["merges"], "tokens")
    check(keys["tokenizer.ggml.token_type"] == [1] * 259 + [3, 3], keys["tokenizer.ggml.token_type"])
    check((keys["tokenizer.ggml.bos_token_id"], keys["tokenizer.ggml.eos_token_id"]) == (259, 260), "bos, eos")
    check(keys["tokenizer.ggml.add_bos_token"] is False, "add_bos")


def logits(model):
    """The bytes of what infer computes."""
    with open("text.txt", "w") as file:
        file.write(TEXT + "\n")
    run("infer", model, "text.txt", "--npy", "got", "--sequence", "32")
    with open("got.logits.npy", "rb") as file:
        return file.read()


def same_tensors(a, b, skip=lambda name: False):
    check(set(a) == set(b), set(a) ^ set(b))
    for name in a:
        check(a[name][:2] == b[name][:2] and (skip(name) or a[name][2] == b[name][2]), name, "differs")


# ---- the tests ----

def test_there_and_back():
    """Folder, GGUF, folder: each tensor to the byte, the same logits to the bit, the same text."""
    for family in pretrained_models.FAMILIES:
        model = make(family)
        folder = model.save(family)
        run("convert", folder, family + ".gguf", "--quiet")
        check_gguf(family + ".gguf", model, "f32")
        check_tokenizer(family + ".gguf")
        want = logits(folder)
        check(logits(family + ".gguf") == want, family, "other logits from the GGUF file")
        run("convert", family + ".gguf", family + "-back", "--quiet")
        _, before, _ = model_files.read_folder(folder)
        config, after, _ = model_files.read_folder(family + "-back")
        same_tensors(before, after, skip=lambda name: model.o.get("one") and "norm" in name)  # 1 was added and taken away, in f32
        check(config["model_type"] == {"mistral": "llama"}.get(family, family) and config["dtype"] == "float32", config)
        if not model.o.get("one"):
            check(logits(family + "-back") == want, family, "other logits from the folder that came back")
        prompt = TEXT[:DRAW.randrange(1, len(TEXT))]
        texts = [run("generate", m, prompt, "--temperature", "0", "--tokens", "6", "--quiet")[0]
                 for m in (folder, family + ".gguf", family + "-back")]
        check(len(set(texts)) == 1, family, texts)
        run("convert", family + ".gguf", family + "-again.gguf", "--quiet")
        check(model_files.read_gguf(family + "-again.gguf") == model_files.read_gguf(family + ".gguf"), family, "a copy differs")
        for path in (folder, family + "-back"):
            shutil.rmtree(path)


def test_tiles():
    """Matrices that are read and written in several tiles: rows that change their places, and columns that become rows."""
    for family, sizes in (("llama", {"width": 1024, "heads": 28, "key_heads": 2, "head_width": 48, "inner": 33}),
                          ("gpt2", {"width": 32, "inner": 34000})):
        model = pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=1, **sizes)
        folder = model.save(family)
        run("convert", folder, family + ".gguf", "--quiet")
        check_gguf(family + ".gguf", model, "f32")
        run("convert", family + ".gguf", family + "-back", "--quiet")
        same_tensors(model_files.read_folder(folder)[1], model_files.read_folder(family + "-back")[1])
        out, _ = run("convert", folder, family + "-copy", "--json")
        same_tensors(model_files.read_folder(folder)[1], model_files.read_folder(family + "-copy")[1])
        told = json.loads(out)
        check(told["planned_bytes"] == told["measured_bytes"] < 20e6, told["planned_bytes"], told["measured_bytes"])


def test_encodings():
    """Blocks to the byte, and the errors that are told."""
    for encoding in ("bf16", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"):
        model = any_model()
        folder = model.save("of-" + encoding)
        out, _ = run("convert", folder, encoding + ".gguf", "--encoding", encoding, "--json")
        told, errors = json.loads(out), check_gguf(encoding + ".gguf", model, encoding)
        check(told["rounded"] == len(errors) and told["planned_bytes"] == told["measured_bytes"], told)
        check(told["file_bytes"] == os.path.getsize(encoding + ".gguf"), told)
        for tensor in told["tensors"]:
            relative, largest = errors.get(tensor["name"], (0, 0))
            check(abs(tensor["relative_error"] - relative) <= 1e-6 * relative + 1e-12 and
                  abs(tensor["largest_error"] - largest) <= 1e-6 * largest, tensor, relative, largest)
    out, err = run("convert", folder, "again.gguf", "--encoding", encoding, "--ledger")
    check("tensors rounded, error" in out and "planned" in out and "measured" in out, out)
    check(read("again.gguf") == read(encoding + ".gguf"), "the same conversion gave other bytes")
    out, err = run("convert", "again.gguf", "twice.gguf", "--encoding", "q8_0")
    check("are rounded again" in err, err)


def test_stored_stays():
    """16 bits, and blocks, are what they were; a folder gets the numbers of blocks in f32."""
    for dtype in ("BF16", "F16"):
        model = any_model()
        model.round(dtype)
        folder = model.save("stored-" + dtype, dtype)
        run("convert", folder, dtype + ".gguf", "--quiet")
        check_gguf(dtype + ".gguf", model, dtype.lower())
        run("convert", folder, dtype + "-copy", "--quiet")
        same_tensors(model_files.read_folder(folder)[1], model_files.read_folder(dtype + "-copy")[1])
        check(read(dtype + "-copy/config.json") == read(folder + "/config.json"), "config.json changed")
    model = make("llama")
    run("convert", model.save("blocks"), "blocks.gguf", "--encoding", "q4_1", "--quiet")
    run("convert", "blocks.gguf", "unpacked", "--quiet")
    _, tensors, _ = model_files.read_folder("unpacked")
    name = "model.layers.1.self_attn.v_proj.weight"
    values = model_files.encode([v for row in model.w[name] for v in row], "q4_1")[1]
    check(tensors[name] == ("f32", [16, 32], model_files.encode(values, "f32")[0]), name)
    check(logits("unpacked") == logits("blocks.gguf"), "other logits")


def random_block(encoding):
    """Any bytes are one, but for its scales in f16, which are finite."""
    size = {"q4_k": 144, "q5_k": 176, "q6_k": 210}[encoding]
    data = bytearray(DRAW.randrange(256) for _ in range(size))
    for at in ((208,) if encoding == "q6_k" else (0, 2)):
        data[at:at + 2] = struct.pack("<e", DRAW.uniform(-1e-3, 1e-3))
    return bytes(data)


def test_other_blocks():
    """Blocks that are only read are copied; a folder gets their numbers."""
    run("convert", make("llama", width=256).save("wide"), "wide.gguf", "--quiet")
    _, tensors, head = model_files.read_gguf_parts("wide.gguf")
    for name, (_, ne, _) in tensors.items():
        if len(ne) == 2 and ne[0] == 256:
            kind = DRAW.choice(["q4_k", "q5_k", "q6_k"])
            tensors[name] = (kind, ne, b"".join(random_block(kind) for _ in range(ne[1])))
    model_files.write_gguf("blocks.gguf", head, tensors)
    run("convert", "blocks.gguf", "same.gguf", "--quiet")
    check(model_files.read_gguf("same.gguf")[1] == tensors, "blocks changed")
    run("convert", "blocks.gguf", "unpacked", "--quiet")
    check(logits("unpacked") == logits("blocks.gguf"), "other logits")


def test_shards():
    model = any_model()
    folder = model.save("whole")
    size = DRAW.randrange(9000, 40000)
    run("convert", folder, "parts", "--shard-size", str(size), "--quiet")
    config, tensors, files = model_files.read_folder("parts")
    check(files > 1, size)
    for name in os.listdir("parts"):
        path = os.path.join("parts", name)
        is_one = name.startswith("model-") and len(model_files.read_safetensors(path)) == 1
        check(is_one or not name.startswith("model-") or os.path.getsize(path) <= size, name, os.path.getsize(path), size)
    same_tensors(model_files.read_folder(folder)[1], tensors)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        check(read("parts/" + name) == read(folder + "/" + name), name, "changed")
    run("convert", "parts", "merged", "--quiet")
    check(model_files.read_folder("merged")[2] == 1, "not merged")
    same_tensors(tensors, model_files.read_folder("merged")[1])
    run("convert", "parts", "narrow", "--encoding", "bf16", "--quiet")
    narrow, tensors, _ = model_files.read_folder("narrow")
    check(narrow == dict(config, torch_dtype="bfloat16") and {t[0] for t in tensors.values()} == {"bf16"}, narrow)


def test_template():
    """The chat template goes along, both ways; the tokenizer can be left out."""
    folder = make("qwen2").save("chats")
    template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}\u00e9"
    with open(folder + "/chat_template.jinja", "w") as file:
        file.write(template)
    run("convert", folder, "chats.gguf", "--quiet")
    check(model_files.read_gguf("chats.gguf")[0]["tokenizer.chat_template"] == template, "the template changed")
    run("convert", "chats.gguf", "chats-back", "--quiet")
    with open("chats-back/chat_template.jinja") as file:
        check(file.read() == template, "the template changed on its way back")
    run("convert", folder, "bare.gguf", "--without-tokenizer", "--quiet")
    check(not any(k.startswith("tokenizer.") for k in model_files.read_gguf("bare.gguf")[0]), "has a tokenizer")


def write_pictures(folder):
    """A model that sees pictures, too: its language model under another prefix, in another config."""
    model = make("gemma3_text")
    model.save(folder)
    tensors = {"language_model." + name: value for name, value in model.tensors().items()}
    tensors["vision_tower.post.weight"] = ([1.0, 2.0], [2])
    pretrained_models.write_safetensors(folder + "/model.safetensors", tensors, "F32")
    with open(folder + "/config.json", "w") as file:
        json.dump({"model_type": "gemma3", "text_config": model.config(), "vision_config": {}}, file)
    return model


def scaled(family, **scaling):
    model = make(family)
    folder = model.save("scaled-" + scaling["rope_type"])
    config = dict(model.config(), rope_scaling=scaling)
    with open(folder + "/config.json", "w") as file:
        json.dump(config, file)
    return folder


def test_rotary():
    """Scaled rotary positions: keys, or llama3's rule as the divisors that it stands for; and back."""
    factor, high, context = DRAW.choice([8.0, 32.0]), DRAW.choice([4.0, 6.0]), DRAW.choice([8, 16])
    told = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": high,
            "original_max_position_embeddings": context}
    folder = scaled("llama", **told)
    run("convert", folder, "llama3.gguf", "--quiet")
    _, tensors = model_files.read_gguf("llama3.gguf")
    divisors = struct.unpack("<4f", tensors["rope_freqs.weight"][2])
    for j, got in enumerate(divisors):
        turns = context * 1e4 ** (-j / 4) / (2 * math.pi)
        u = min(max((turns - 1) / (high - 1), 0), 1)
        check(abs(got * (u + (1 - u) / factor) - 1) < 1e-6, j, got, told)
    for other in (("linear", {"factor": 2.0}), ("yarn", {"factor": 4.0, "original_max_position_embeddings": 16})):
        folder = scaled("qwen2", rope_type=other[0], **other[1])
        run("convert", folder, other[0] + ".gguf", "--quiet")
        run("convert", other[0] + ".gguf", other[0] + "-back", "--quiet")
        back = json.loads(read(other[0] + "-back/config.json"))["rope_parameters"]
        check(back["rope_type"] == other[0] and all(back[k] == v for k, v in other[1].items()), back)
        check(logits(folder) == logits(other[0] + ".gguf") == logits(other[0] + "-back"), other, "other logits")
    refused(1, "yarn with a factor of its own", "convert", scaled("qwen2", rope_type="yarn", factor=4.0, attention_factor=2.0),
            "x.gguf")


def test_llama3_comes_back():
    """The numbers of Llama 3.1 and 3.2 are found from the divisors."""
    for factor in (8.0, 32.0):
        model = pretrained_models.Model("llama", DRAW.randrange(1 << 30), layers=1, heads=1, key_heads=1, head_width=64,
                                        theta=5e5)
        folder = model.save(f"llama{factor}")
        told = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192}
        with open(folder + "/config.json", "w") as file:
            json.dump(dict(model.config(), rope_scaling=told), file)
        run("convert", folder, "there.gguf", "--quiet")
        run("convert", "there.gguf", f"back{factor}", "--quiet")
        check(json.loads(read(f"back{factor}/config.json"))["rope_parameters"] == dict(told, rope_theta=5e5), factor)
        got, want = (logits(m)[-4 * model.vocab:] for m in ("there.gguf", folder))  # after the last token; divisors are f32
        got, want = (struct.unpack(f"<{model.vocab}f", rows) for rows in (got, want))
        check(max(abs(a - b) for a, b in zip(got, want)) <= 1e-4 * max(abs(b) for b in want), "other logits")
        os.remove("there.gguf")


def test_pictures():
    model = write_pictures("sees")
    run("convert", "sees", "sees.gguf", "--quiet")
    check_gguf("sees.gguf", model, "f32")
    refused(1, "vision_tower.post.weight is of the part that sees pictures", "convert", "sees", "copy")


def test_left_behind():
    """What a killed conversion left is no obstacle."""
    folder = make("llama").save("model")
    os.mkdir("new")
    for name in ("new/model.safetensors.plimsoll.tmp", "new/model-00002-of-00007.safetensors.plimsoll.tmp",
                 "new/config.json.123-4.plimsoll.tmp", "new.gguf.plimsoll.tmp"):
        with open(name, "w") as file:
            file.write("half")
    run("convert", folder, "new", "--quiet")
    run("convert", folder, "new.gguf", "--quiet")
    check(not [n for n in os.listdir("new") + os.listdir(".") if n.endswith(".tmp")], os.listdir("new"))
    same_tensors(model_files.read_folder(folder)[1], model_files.read_folder("new")[1])
    run("convert", folder, "fresh", "--quiet")
    check(sorted(os.listdir("new")) == sorted(os.listdir("fresh")), os.listdir("new"))


def contents(path):
    names = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
    return {name[len(path):]: read(name) for name in names}


def test_at_once():
    """Of several conversions to one name one succeeds, and all that is there is its own."""
    folder = make("llama", width=64, inner=512).save("model")
    os.mkdir("held")
    for out, lock in (("held.gguf", "held.gguf.plimsoll.tmp"), ("held", "held/config.json.plimsoll.tmp")):
        with open(lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            refused(5, "is being written by another process; wait for its end", "convert", folder, out)
            check(os.path.exists(lock), "the other's file is gone")
        os.remove(lock)
    forms = [["--encoding", e, "--shard-size", s] for e in ("f32", "bf16", "f16") for s in ("20kB", "50kB", "5GB")]
    for ending in ("", ".gguf"):
        forms = [form[:2] if ending else form for form in forms]
        for i, form in enumerate(forms):
            run("convert", folder, f"alone{i}{ending}", *form, "--quiet")
        started = [subprocess.Popen([COMMAND, "convert", folder, "out" + ending, *form, "--quiet"], env=environment(),
                                    stderr=subprocess.PIPE) for form in forms]
        told = [(p.communicate()[1].decode(), p.returncode) for p in started]
        check(sorted(code for _, code in told)[:2] != [0, 0] and 0 in [code for _, code in told], told)
        check(all(code in (0, 2, 5) for _, code in told), told)
        winner = [code for _, code in told].index(0)
        check(contents("out" + ending) == contents(f"alone{winner}{ending}"), os.listdir("."), forms[winner])
    check(not [n for n in os.listdir(".") if n.endswith(".tmp")], os.listdir("."))


def test_refused():
    folder = make("llama").save("model")
    run("convert", folder, "there.gguf", "--quiet")
    before = read("there.gguf")
    refused(2, "is there already", "convert", folder, "there.gguf")
    refused(2, "is the model itself", "convert", folder, folder)
    refused(2, "is the model itself", "convert", "there.gguf", "./there.gguf")
    refused(2, "is unknown; f32, bf16", "convert", folder, "x.gguf", "--encoding", "q9")
    refused(1, "is only read", "convert", folder, "x.gguf", "--encoding", "q4_k")
    refused(2, "has no place in a folder", "convert", folder, "x", "--encoding", "q4_0")
    refused(2, "MODEL and OUT are expected", "convert", folder)
    refused(2, "expects a size", "convert", folder, "x", "--shard-size", "many")
    refused(2, "--shard-size is 0; give the most bytes", "convert", folder, "x", "--shard-size", "0")
    refused(2, "a GGUF file is written whole; leave out --shard-size", "convert", folder, "x.gguf", "--shard-size", "1MB")
    run("convert", folder, "capitals.GGUF", "--quiet")
    check(read("capitals.GGUF") == before, "a name in capitals is another form")
    refused(2, "there is no such file", "convert", "nowhere.GGUF", "x")
    refused(2, "there is no such file or folder", "convert", "nowhere/at/all", "x.gguf")
    refused(5, "nowhere", "convert", folder, "nowhere/x.gguf")
    with open("there.gguf", "rb") as file:
        data = file.read()
    with open("cut.gguf", "wb") as file:
        file.write(data[:-100])
    refused(4, "damaged or truncated", "convert", "cut.gguf", "x.gguf")
    odd = json.loads(read(folder + "/tokenizer.json"))
    odd["pre_tokenizer"]["add_prefix_space"] = True
    with open(folder + "/tokenizer.json", "w") as file:
        json.dump(odd, file)
    refused(1, "no name for this pre-tokenizer; --without-tokenizer", "convert", folder, "x.gguf")
    scaled = pretrained_models.Model("gemma2", 1).save("scaled")
    refused(1, "scores of attention are scaled", "convert", scaled, "x.gguf")
    check(read("there.gguf") == before and not os.path.exists("x") and not os.path.exists("x.gguf"), os.listdir("."))
    check(not [n for n in os.listdir(".") if n.endswith(".tmp")], os.listdir("."))


def test_not_finite():
    """What cannot be rounded is refused, and leaves nothing."""
    model = make("llama")
    model.w["model.layers.2.mlp.up_proj.weight"][3][5] = 1e30
    folder = model.save("large")
    refused(4, "blk.2.ffn_up.weight holds a number that is not finite or too large for f16", "convert", folder, "x.gguf",
            "--encoding", "f16")
    refused(4, "too large for f16", "convert", folder, "x", "--encoding", "f16")
    check(not os.path.exists("x") and not os.path.exists("x.gguf"), os.listdir("."))


def test_judged():
    """transformers, tokenizers and gguf read what was written."""
    python = os.environ.get("PL_OWN_PYTHON")
    if not python:
        raise Skipped("PL_OWN_PYTHON does not name a Python with torch, transformers and gguf")
    for family in pretrained_models.FAMILIES:
        folder = make(family).save(family)
        run("convert", folder, family + ".gguf", "--quiet")
        run("convert", family + ".gguf", family + "-back", "--quiet")
        run("convert", folder, family + ".q4_0.gguf", "--encoding", "q4_0", "--quiet")
    done = subprocess.run([python, "-B", os.path.join(HERE, "converted_models.py"), *pretrained_models.FAMILIES],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stdout, done.stderr[-2000:])


if __name__ == "__main__":
    main({"convert": [test_there_and_back, test_stored_stays, test_template],
          "convert_encodings": [test_encodings, test_other_blocks, test_tiles, test_shards, test_not_finite, test_refused],
          "convert_forms": [test_rotary, test_llama3_comes_back, test_pictures, test_left_behind, test_at_once],
          "convert_judged": [test_judged]})

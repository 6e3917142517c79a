"""Tests of weights that stay in the pages of a model's files (--weights mmap). The oracle is the same model with its weights
read, and, for how much stays there, the list of tensors as their maker knows it. Called as cli_tests.py is."""
import json
import os
import random
import struct
import subprocess
import time

import pretrained_models
from cli_tests import COMMAND, SEED, check, environment, main, refused, run

DRAW = random.Random(SEED)
TEXT = "the cat and the dog: it's 12\n"
GREEDY = ["--temperature", "0", "--tokens", "6"]
PAGE = 4096


def make(family, **more):
    sizes = dict(width=64, heads=4, key_heads=2, head_width=16, inner=96, vocab=288)
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), **dict(sizes, **more))


def outputs(model, way, *more):
    """Logits, loss and text, to the bit."""
    with open("text.txt", "w") as file:
        file.write(TEXT)
    run("infer", model, "text.txt", "--npy", way, "--sequence", "24", "--weights", way, *more)
    with open(way + ".logits.npy", "rb") as file:
        logits = file.read()
    text, told = run("generate", model, TEXT, *GREEDY, "--weights", way, "--ledger", *more)
    check("As planned, to the byte." in told, model, told)
    check(("mapped files" in told) == (way == "mmap"), model, told)
    scored = json.loads(run("eval", model, "--text", "text.txt", "--sequence", "8", "--weights", way, "--json", *more)[0])
    check(scored["planned_bytes"] == scored["measured_bytes"], model, scored)
    check(("mapped_files_bytes" in scored) == (way == "mmap"), model, scored)
    return logits, text, scored["loss"]


def check_same(model, *more):
    check(outputs(model, "mmap", *more) == outputs(model, "arena", *more), model, more, "differ")


def test_folders():
    """Matrices of GPT-2 are transposed, and gains of norms are not mapped: these are read."""
    for family in ("llama", "gemma3_text", "gpt2", DRAW.choice(list(pretrained_models.FAMILIES))):
        check_same(make(family).save(family))
    model, dtype = make(DRAW.choice(["llama", "qwen3", "phi3"])), DRAW.choice(["BF16", "F16"])
    model.round(dtype)
    check_same(model.save("narrow", dtype), "--threads", str(DRAW.choice([1, 2])))


def test_shards():
    folder = make("llama").save("whole")
    run("convert", folder, "shards", "--shard-size", "100kB", "--quiet")
    check(len([name for name in os.listdir("shards") if name.endswith(".safetensors")]) > 2, os.listdir("shards"))
    check_same("shards")
    check(outputs("shards", "mmap") == outputs(folder, "mmap"), "shards compute something else")


def test_gguf():
    """Rows of llama's queries and keys are in another order there, so these are read."""
    encodings = ["f32", "bf16", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
    for family, more in (("llama", {}), ("gemma3_text", {"scalar": 16}), ("gpt2", {})):
        folder = make(family, **more).save(family)
        for encoding in ["f32", *DRAW.sample(encodings[1:], 3)]:
            run("convert", folder, "model.gguf", "--encoding", encoding, "--quiet")
            check_same("model.gguf")
            if encoding.startswith("q"):
                check_same("model.gguf", "--activations", "int8")
            os.remove("model.gguf")


def pad_safetensors(path, tail):
    """With blanks in its header the file ends so many bytes after the beginning of a page."""
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack("<Q", data[:8])[0]
    blanks = (tail - len(data)) % PAGE
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", n + blanks) + data[8:8 + n] + b" " * blanks + data[8 + n:])


def pad_gguf(path):
    """With a key more, of a string, the file ends where a page does; its data stay as aligned as they were."""
    with open(path, "rb") as file:
        data = file.read()
    check(len(data) % 32 == 0, path, len(data))
    bytes_more = (-len(data)) % PAGE or PAGE
    text = b"x" * (bytes_more - 8 - 3 - 4 - 8)
    key = struct.pack("<Q", 3) + b"pad" + struct.pack("<IQ", 8, len(text)) + text
    with open(path, "wb") as file:
        file.write(data[:16] + struct.pack("<Q", struct.unpack("<Q", data[16:24])[0] + 1) + key + data[24:])


def test_end_of_a_page():
    """Nothing reads beyond a tensor that ends where its file's last page ends: no address follows."""
    for dtype in ("F32", "BF16", "F16"):
        model = make("llama")
        if dtype != "F32":
            model.round(dtype)
        folder = model.save(dtype, dtype)
        pad_safetensors(os.path.join(folder, "model.safetensors"), 0)
        check_same(folder)
    folder = make("llama").save("whole")
    for encoding in ("f32", "q8_0", "q4_1"):
        run("convert", folder, "model.gguf", "--encoding", encoding, "--quiet")
        pad_gguf("model.gguf")
        check_same("model.gguf")
        os.remove("model.gguf")


def test_beyond_4_gib():
    """A tensor whose place needs more than 32 bits, in a file with a hole."""
    folder = make("llama").save("model")
    path, hole = os.path.join(folder, "model.safetensors"), 5 << 30
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    first, last = header["lm_head.weight"]["data_offsets"]
    check(last == len(data) - 8 - n, "lm_head.weight was to be the last")
    header["lm_head.weight"]["data_offsets"] = [first + hole, last + hole]
    header["model.rotary_emb.inv_freq"] = {"dtype": "F32", "shape": [hole // 4], "data_offsets": [first, first + hole]}  # is ignored
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    want = outputs(folder, "arena")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data[8 + n:8 + n + first])
        file.seek(hole, os.SEEK_CUR)
        file.write(data[8 + n + first:])
    check(outputs(folder, "mmap") == want, "the tensor is not where its header says")
    os.remove(path)


def test_prompt_cache():
    """Belongs to the model, however its weights are held."""
    folder, prompt = make("llama").save("model"), TEXT * 2
    kept = [*GREEDY, "--prefill_tokens", "4", "--prompt_cache", "cache"]
    want, first = run("generate", folder, prompt, *kept)
    out, told = run("generate", folder, prompt, *kept, "--weights", "mmap")
    check(out == want and first != told, out, want, told)


def weight_bytes(model, *more):
    told = json.loads(run("plan", model, "--json", *more)[0])
    roles = {row["role"]: row["bytes"] for row in told["arena"]["roles"]}
    return roles["weight"], told["process"]


def test_how_much():
    """The arena holds what is read, to the byte, and the plan says what the files have at most."""
    model = make("llama")
    folder = model.save("model")
    numbers = {name: len(rows) * len(rows[0]) for name, rows in model.w.items()}
    whole, process = weight_bytes(folder)
    check(whole == 4 * sum(numbers.values()) and "mapped_files_bytes" not in process, whole, process)
    left, process = weight_bytes(folder, "--weights", "mmap")
    size = os.path.getsize(os.path.join(folder, "model.safetensors"))
    norms = sum(4 * n for name, n in numbers.items() if "norm" in name)
    check(left == norms and process["mapped_files_bytes"] == -(-size // PAGE) * PAGE, left, process, size)
    row = [row for row in process["rows"] if row["kind"] == "mapped files"]
    check(len(row) == 1 and row[0]["resident_bytes"] == 0 and row[0]["reserved_bytes"] == process["mapped_files_bytes"], row)
    run("convert", folder, "model.gguf", "--encoding", "f32", "--quiet")
    left = weight_bytes("model.gguf", "--weights", "mmap")[0]
    permuted = sum(n for name, n in numbers.items() if "q_proj" in name or "k_proj" in name)
    check(left == norms + 4 * permuted, left, norms, permuted)


def test_ledger():
    """Pages of the files are counted apart, and so are their faults: nothing else of the process faults."""
    model = make(DRAW.choice(["llama", "gpt2"]), inner=640).save("model")
    _, told = run("generate", model, "x", *GREEDY, "--weights", "mmap", "--ledger", env=environment(PLIMSOLL_TEST_SECCOMP="kill"))
    lines = {line[:20].strip(): line.split() for line in told.splitlines()}
    most, held = (int(word.replace(",", "")) for word in lines["mapped files"][2:4])
    resident, peak = (int(lines[name][2].replace(",", "")) for name in ("resident", "peak"))
    check(0 < held <= most and peak <= resident + most + (1 << 20), lines)  # VmHWM is rounded up at times
    check("Page faults of mapped files since the start of the work: " in told, told)


def test_budget():
    """A budget that is too small for the weights holds what is left of the process."""
    folder = make("llama", width=256, inner=1024, vocab=2048).save("model")
    charged = [weight_bytes(folder, "--weights", way, "--sequence", "32")[1]["charged_bytes"] for way in ("arena", "mmap")]
    check(charged[0] - charged[1] > 4 << 20, charged)
    budget = ["--sequence", "32", "--budget", str(charged[1] + (1 << 20))]
    refused(3, "budget", "generate", folder, "x", *GREEDY, *budget)
    run("generate", folder, "x", *GREEDY, *budget, "--weights", "mmap")


def test_refusals():
    folder = make("llama").save("model")
    for encoding in ("q4_0", "bf16"):
        refused(2, rf"model.weights is mmap, but no matrix of .*model lies in its files as it is used \(model.encoding is {encoding}\).*leave it out",
                "generate", folder, "x", "--weights", "mmap", "--encoding", encoding)
    refused(2, "model.weights must be arena or mmap", "generate", folder, "x", "--weights", "file.safetensors")
    pad_safetensors(os.path.join(folder, "model.safetensors"), 1)  # no number of four bytes can be taken there
    refused(2, "no matrix of .*model lies in its files as it is used", "plan", folder, "--weights", "mmap")
    refused(2, "a comparison sets model.weights by itself", "infer", folder, "text.txt", "--compare", "--weights", "mmap")


def test_export():
    """Reads all weights, whatever a config says of other commands."""
    model = os.path.abspath(make("llama").save("model"))
    with open("config.yaml", "w") as file:
        file.write(f"model: {{arch: decoder, source: {model}, weights: mmap, context: 16}}\n")
    run("export", "config.yaml", "--format", "onnx", "--out", "mapped.onnx")
    run("export", model, "--format", "onnx", "--out", "read.onnx", "--sequence", "16")
    with open("mapped.onnx", "rb") as a, open("read.onnx", "rb") as b:
        a, b = (file.read().split(b"plimsoll.config")[0][:-8] for file in (a, b))  # the config differs
        check(len(a) > 300000 and a == b, "another model", len(a), len(b))


def test_host_program():
    """In memory of its own, which is smaller by the weights: the same logits."""
    model = os.path.abspath(make("llama").save("model"))
    ids = struct.pack("<16i", *(DRAW.randrange(258) for _ in range(16)))
    with open("ids", "wb") as file:
        file.write(ids)
    logits = []
    for way in ("arena", "mmap"):
        os.makedirs(way)
        with open(way + ".yaml", "w") as file:
            file.write(f"model: {{arch: decoder, source: {model}, weights: {way}, context: 16}}\n")
        done = subprocess.run([os.environ["INFER_HOST"], way + ".yaml", "1", "trained", way, "tokens=ids"], capture_output=True, text=True,
                              env=environment(), timeout=120)
        check(done.returncode == 0 and done.stdout.endswith("requests 0\nsame 1\nguarded 1\n"), done.stdout, done.stderr)
        with open(way + "/logits", "rb") as file:
            logits.append(file.read())
    check(logits[0] == logits[1] and len(logits[0]) == 4 * 16 * 288, [len(x) for x in logits])


class Lines:
    """A run that answers lines: after the first answer it has its weights, and reads them again for the second."""

    def __init__(self, model):
        words = [COMMAND, "generate", model, "--interactive", "--weights", "mmap", "--json", "--threads", "1", *GREEDY]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment())
        self.first = self.ask()

    def ask(self):
        try:
            self.process.stdin.write("the cat\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        while self.state() not in "SZ":  # its files are looked at after the answer; then it waits for a line, or has ended
            time.sleep(0.001)
        return json.loads(line)["text"] if line else None

    def state(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    def end(self):
        _, told = self.process.communicate(timeout=60)
        return self.process.returncode, " ".join(told.split())


def test_file_is_cut_off():
    """A sentence that names the file, and the exit code of files: also where the file is one of several."""
    folder = make("llama").save("model")
    run("convert", folder, "shards", "--shard-size", "100kB", "--quiet")
    shards = sorted(os.path.join("shards", name) for name in os.listdir("shards") if name.endswith(".safetensors"))
    for model, path in (("model", "model/model.safetensors"), ("shards", DRAW.choice(shards))):
        lines = Lines(model)
        check(lines.first is not None, "no answer")
        os.truncate(path, 0)
        check(lines.ask() is None, "an answer without the file")
        code, told = lines.end()
        check(code == 5 and f"{path}: became shorter, or cannot be read any more, while it was mapped" in told, code, told)


def test_file_is_written_to():
    make("llama").save("model")
    lines = Lines("model")
    with open("model/model.safetensors", "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\0\0")
    lines.ask()
    code, told = lines.end()
    check(code == 5 and "model.safetensors: was written to while it was in use" in told, code, told)


def test_file_is_replaced():
    """The one that is mapped is still the old one."""
    make("llama").save("model")
    lines = Lines("model")
    make("llama").save("other")
    os.replace("other/model.safetensors", "model/model.safetensors")
    check(lines.ask() == lines.first and lines.first is not None, "another answer to the same line")
    code, told = lines.end()
    check(code == 0, code, told)


if __name__ == "__main__":
    main({"mapped_weights": [test_folders, test_shards, test_end_of_a_page, test_prompt_cache, test_refusals, test_export],
          "mapped_gguf": [test_gguf],
          "mapped_memory": [test_beyond_4_gib, test_how_much, test_ledger, test_budget],
          "mapped_host": [test_host_program],
          "mapped_files": [test_file_is_cut_off, test_file_is_written_to, test_file_is_replaced]})

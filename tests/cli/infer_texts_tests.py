"""Tests of what goes into infer and where it goes: texts of any length, files that the config names, what belongs to a run, weights that say which model
they are of, a stop. Called as cli_tests.py is."""
import json
import os
import random
import re
import select
import shutil
import signal
import time

import cli_tests
from cli_tests import SEED, check, environment, last_checkpoint, main, needed, read, refused, run, start, write_config, write_text
from encode_tests import SMALL, write_encoder
from hybrid_tests import write_hybrid
from infer_tests import lines, save, some_pages
from width_tests import on_terminal

DRAW = random.Random(SEED)


def remarked(texts):
    """What encode marks, infer marks by the same words, and draws the same of it."""
    bad = [b"word " * n for n in (60, 1000, 20000)] + [b"no utf \xff", "\U0001f600".encode(), b"\xc3\xa9" * 20000]
    lines_of = [text.encode() for text in texts] + bad
    DRAW.shuffle(lines_of)
    with open("t.txt", "wb") as file:
        file.write(b"\n".join(lines_of))
    config = write_encoder(texts="t.txt", text_format="lines", count=0, image_size=112, storage="npy", out="marked")
    run("encode", config)
    bits = list(read("marked/results/remarks.npy")[-len(lines_of):])
    words = ["truncated", "invalid", "missing_glyphs", "unshaped"]
    for more in ([], ["--batch", "1"], ["--batch", "4"]):
        out, err = run("infer", config, "t.txt", *more)
        told = lines(out)
        got = [t.get("remarks", []) for t in told]
        check(got == [[w for i, w in enumerate(words) if b >> i & 1] for b in bits], got, bits)
        count = sum(b & 1 for b in bits)
        check(count >= 3 and f"{count} are longer than a page" in err and f"(of {len(bits)} items; the key remarks of a line says which)" in err, err)
    _, err = run("infer", config, "t.txt", "--npy", "got")
    check(f"{count} are longer than a page" in err and "key remarks" not in err, err)
    cut = next(i for i, b in enumerate(bits) if b & 1)
    run("encode", config, "--witness", "witness", "--only", str(cut))
    page = lines(run("infer", config, "witness/page.npy")[0])[0]
    check(page["capsules"] == told[cut]["capsules"], "a cut line is another page")
    shutil.rmtree("witness")


def test_texts_as_pages():
    """A line of text is the page that encode draws of it."""
    texts = ["the sea", "a ship that", "no land"]
    with open("t.txt", "w") as file:
        file.write("\n".join(texts) + "\n")
    config = write_encoder(texts="t.txt", text_format="lines", count=0, image_size=112)
    told = lines(run("infer", config, "t.txt", "--batch", "2")[0])
    check(len(told) == 3 and told[1]["source"] == "t.txt[1]", told)
    for i in range(3):
        run("encode", config, "--witness", "witness", "--only", str(i))
        page = lines(run("infer", config, "witness/page.npy")[0])[0]
        check({**page, "item": i, "source": told[i]["source"]} == told[i], f"line {i} is another page")
        shutil.rmtree("witness")
    remarked(texts)
    hybrid = write_hybrid()
    with open("t.txt", "w") as file:
        file.write("sea")
    check("words" in lines(run("infer", hybrid, "t.txt", "--seeded", "--brief")[0])[0], "hybrid models read no texts")


def test_standard_input():
    """Is read once, also by a command that begins anew with what draws texts."""
    text = "the sea\n\na ship that\n"
    with open("t.txt", "w") as file:
        file.write(text)
    for config in (write_encoder(), write_hybrid()):
        told, of_file = (lines(run("infer", config, name, "--seeded", "--brief", input=text.encode())[0]) for name in ("-", "t.txt"))
        check([{**item, "source": ""} for item in told] == [{**item, "source": ""} for item in of_file] and len(told) == 3, told, of_file)
        refused(4, "standard input .-. is empty; items are needed", "infer", config, "-", "--seeded", input=b"")


def test_empty_lines():
    """Are items, that the n-th line be the n-th item, whatever model reads them; and said."""
    texts = ["one", "", "two", "", "", "three", ""]
    for name, end in (("n.txt", "\n"), ("rn.txt", "\r\n")):
        with open(name, "wb") as file:
            file.write("".join(text + end for text in texts).encode())
    config = write_encoder(texts="n.txt", text_format="lines", count=0, image_size=112)
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    for model in (config, "out"):
        for name in ("n.txt", "rn.txt"):
            out, err = run("infer", model, name, "--batch", "2")
            told = lines(out)
            check([t["source"] for t in told] == [f"{name}[{i}]" for i in range(7)], told)
            check([t.get("remarks", []) for t in told] == [[] if text else ["empty"] for text in texts], told)
            check("4 are empty lines (of 7 items; the key remarks of a line says which)" in err, err)
    check([t["tokens"] for t in told] == [len(text) for text in texts] and "loss" not in told[1] and "next" not in told[1], told[1].keys())


def test_many_lines():
    """Of a long text not each line's place is kept: any order of files, any batch, each item is its line. Memory does not grow with lines."""
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    letters = b"abcdefghijklmnopqrstuvwxyz"
    count = DRAW.randrange(9000, 20000)
    texts = [bytes(DRAW.choice(letters) for _ in range(DRAW.randrange(1, 9))) for _ in range(count)]
    with open("many.txt", "wb") as file:
        file.write(b"".join(text + DRAW.choice((b"\n", b"\r\n")) for text in texts))
    with open("few.txt", "wb") as file:
        file.write(b"\n".join(texts[:40]))
    planned = []
    for name, of in (("few.txt", texts[:40]), ("many.txt", texts)):
        told, err = run("infer", "out", name, "--brief", "--batch", "16", "--ledger")
        check([t["tokens"] for t in lines(told)] == [len(text) for text in of], name)
        planned.append(next(line for line in err.splitlines() if line.startswith("resident")).split()[1])
    check(planned[0] == planned[1], "memory grows with the lines", planned)
    odd = os.fsdecode(b"few\xff\x07.txt")  # a config cannot name it, a list can
    shutil.copy("few.txt", odd)
    check([t["tokens"] for t in lines(run("infer", "out", odd, "--brief")[0])] == [len(text) for text in texts[:40]], "a name that is not UTF-8")
    with open("few.txt", "ab") as file:
        file.write(b"\nsome more\n" * 3 + b"a\0b\n")
    refused(4, r"few.txt: is no text: byte \d+ is 0, in line 46", "infer", "out", "few.txt")


def test_on_a_terminal():
    """A row of numbers for each token is for programs: who reads gets what is said of a line, and the numbers when they are asked for."""
    write_text()
    run("train", write_config(), "--quiet")
    with open("t.txt", "w") as file:
        file.write("a line\n")
    whole, brief = run("infer", "out", "t.txt")[0], run("infer", "out", "t.txt", "--brief")[0]
    check("logits" in whole and "logits" not in brief, whole[:200], brief[:200])
    check(brief.strip() in on_terminal(200, "infer", "out", "t.txt", "--quiet")[0], "on a terminal")
    check(whole.strip() in on_terminal(200, "infer", "out", "t.txt", "--out", "-", "--quiet")[0], "asked for")


def test_files_of_the_config():
    """infer.files names files where no words do; what the command line says twice is refused."""
    config = some_pages(2)
    some_pages(1, "single.npy")
    wanted = run("infer", config, "pages.npy", "single.npy")[0]
    check(run("infer", config, "--set", "infer.files=pages.npy\nsingle.npy")[0] == wanted, "--set")
    check(run("infer", config, env=environment(PLIMSOLL_INFER_FILES="pages.npy\nsingle.npy"))[0] == wanted, "the environment")
    check(run("infer", config, "pages.npy", "single.npy", env=environment(PLIMSOLL_INFER_FILES="gone.npy"))[0] == wanted, "words are stronger")
    refused(2, "both name the files", "infer", config, "pages.npy", "--set", "infer.files=single.npy")


def stopped(process, begun):
    """Stops it when it has begun; what it said last, for people or for programs, or None where it came to its end before."""
    while process.poll() is None and not begun():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    check(process.returncode in (0, 130), process.returncode, err)
    notes = re.findall(r'"event":"note".*"text":"([^"]*)"', out.decode())
    return (notes or err.decode().strip().split("\n"))[-1] if process.returncode else None


def test_stopped():
    """One sentence, the code of the signal, and no file."""
    config = some_pages(500)
    # Its lines fill the pipe, so it cannot come to its end before somebody reads them.
    process = start("infer", config, "pages.npy", "--batch", "1")
    said = stopped(process, lambda: select.select([process.stdout], [], [], 0)[0])
    check(said and re.search(r"stopped after \d+ of 500 items$", said), said)
    said, files = None, 4
    while not said:
        files *= 2
        process = start("infer", config, *["pages.npy"] * files, "--batch", "1", "--to", "lines.jsonl")
        said = stopped(process, lambda: os.path.exists("lines.jsonl.plimsoll.tmp"))
        check(said or files < 500, "it is never stopped")
        check(bool(said) != os.path.exists("lines.jsonl"), said, os.listdir("."))
    check(re.search(rf"stopped after \d+ of {500 * files} items; no file was written$", said), said)
    check(not any("lines" in name for name in os.listdir(".")), os.listdir("."))


def test_what_is_a_runs_is_left_alone():
    """No command that writes a model or what it gives out puts that in the place of what belongs to a run, whoever's: same names elsewhere are free."""
    write_text(words=3000)
    config = write_config(train={"steps": 2, "checkpoint_every": 2})
    run("train", config)
    run("train", config, "--out", "other")
    run("quantize", "out", "--samples", "2")
    length = cli_tests.TINY["model"]["sequence"]
    save("ids.npy", "<i4", (1, length), [1] * length)
    os.symlink("other", "link")
    os.symlink("other/report.json", "report")
    step = os.path.basename(last_checkpoint("out"))
    def files():
        return {path: read(path) for at in ("out", "other") for folder, _, names in os.walk(at) for path in (f"{folder}/{n}" for n in names)}
    before = files()
    kept = ["plan.lock", "plan.html", "dump-plan.txt", "int8.safetensors", "metrics.jsonl", "tokens.bin", "times.json", "predictions.csv"]
    for name in [f"{at}/{name}" for at in ("out", "other", "link", "./out/../other") for name in kept] + ["report", f"other/checkpoints/{step}/x", "other/checkpoints/new"]:
        refused(2, "other name|other place", "infer", "out", "ids.npy", "--to", name)
        refused(2, "other name|other place", "export", "out", "--format", "safetensors", "--out", name)
        if not name.endswith("int8.safetensors"):
            refused(2, "other name|other place", "quantize", "out", "--samples", "2", "--quantized", name)
    for prefix in ("other/checkpoints/x", f"link/checkpoints/{step}/x", "out/checkpoints/x"):
        refused(2, "other place", "infer", "out", "ids.npy", "--npy", prefix)
    check({p: b for p, b in files().items() if not p.startswith("out/")} == {p: b for p, b in before.items() if not p.startswith("out/")}, "a run was touched")
    check(files().keys() == before.keys(), files().keys() ^ before.keys())
    for name, head in (("r.blocks", b"PLBLOCKS"), ("r.h5", b"\x89HDF\r\n\x1a\n"), ("plimsoll-pages.sqlite", b"SQLite format 3\0"), ("f.bin", b"PLMFRAME")):
        with open(name, "wb") as file:
            file.write(head + bytes(100))
        refused(2, "would be written over; choose another name", "infer", "out", "ids.npy", "--to", name)
        refused(2, "would be written over; choose another name", "export", "out", "--format", "safetensors", "--out", name)
        check(read(name) == head + bytes(100), name)
    shutil.copytree("other", "copy", ignore=shutil.ignore_patterns("lock"))
    before = {name: read(f"copy/{name}") for name in ("plan.lock", f"checkpoints/{step}/model.safetensors")}
    for name in ("plan.lock", "metrics.jsonl", "report.json", f"checkpoints/{step}/x", f"checkpoints/{step}/model.safetensors", "checkpoints/new"):
        refused(2, "other name|other place", "infer", "out", "ids.npy", "--to", f"copy/{name}")
        refused(2, "other name|other place", "export", "out", "--format", "safetensors", "--out", f"copy/{name}")
    check(before == {name: read(f"copy/{name}") for name in before}, "a copied run was touched")
    run("infer", "copy", "ids.npy", "--to", "copy/own.jsonl")
    os.makedirs("free/checkpoints/step")
    with open("free/checkpoints/step/run.json", "w") as file:
        file.write('{"schema": "another/1"}')
    for name in ("free/plan.lock", "free/checkpoints/x", "out/own.jsonl"):
        run("infer", "out", "ids.npy", "--to", name)


def test_weights_of_another_model():
    """A file says what its weights were made with: the same shapes are not the same model."""
    config = some_pages(1)
    run("export", config, "--format", "safetensors", "--out", "w.safetensors")
    other = write_encoder("other.yaml", L_cycles=SMALL["L_cycles"] + 1)
    said = f"w.safetensors: its weights are of a model with encoder.L_cycles {SMALL['L_cycles']}, but other.yaml:.* says {SMALL['L_cycles'] + 1}; give the config"
    refused(4, said, "infer", other, "pages.npy", "--weights", "w.safetensors")
    refused(4, said, "export", other, "--weights", "w.safetensors", "--format", "onnx", "--out", "x")
    refused(4, said, "quantize", other, "--weights", "w.safetensors")
    run("infer", write_encoder("other.yaml", seed=77, rms_norm_eps=None), "pages.npy", "--weights", "w.safetensors", "--threads", "2")
    run("quantize", config, "--samples", "2", "--quantized", "int8.safetensors")
    refused(4, said.replace("w.safe", "int8.safe"), "infer", write_encoder("other.yaml", L_cycles=SMALL["L_cycles"] + 1), "pages.npy", "--weights", "int8.safetensors")
    data = read("w.safetensors")
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    for metadata in (None, {"format": "pt"}):
        header["__metadata__"] = metadata or {}
        text = json.dumps(header).encode()
        with open("bare.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + data[8 + length:])
        run("infer", other, "pages.npy", "--weights", "bare.safetensors")
    header["__metadata__"] = {"plimsoll.config": "encoder: ["}
    text = json.dumps(header).encode()
    with open("bare.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data[8 + length:])
    refused(4, "bare.safetensors: the config of its weights cannot be read", "infer", other, "pages.npy", "--weights", "bare.safetensors")
    write_text(words=3000)
    config = write_config(train={"steps": 2, "checkpoint_every": 2})
    run("train", config)
    run("export", "out", "--format", "safetensors", "--out", "gpt.safetensors")
    run("eval", "out", "--weights", "gpt.safetensors")
    for key, value in (("model.norm_eps", "1e-3"), ("model.activation", "relu"), ("model.heads", "1")):
        refused(4, f"gpt.safetensors: its weights are of a model with {key} .*, but --set {key} says", "eval", "out", "--weights", "gpt.safetensors", "--set", f"{key}={value}")


def test_batch_of_a_budget():
    """Fewer at once where more do not fit, whatever a training had at once; the remedy is a key that infer reads."""
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2, "batch_size": 8, "micro_batch": 8}))
    length = cli_tests.TINY["model"]["sequence"]
    save("ids.npy", "<i4", (16, length), [1] * 16 * length)

    def needs(batch):
        return needed(run("infer", "out", "ids.npy", "--batch", str(batch), "--budget", "1MB", code=3)[1])
    least, most = needs(1), needs(16)
    check(least < most, least, most)
    budget = str((least + most) // 2)
    check(len(lines(run("infer", "out", "ids.npy", "--brief", "--budget", budget)[0])) == 16, "lines")
    refused(3, "set infer.batch to 1$", "infer", "out", "ids.npy", "--batch", "16", "--budget", budget)
    check(len(lines(run("infer", "out", "ids.npy", "--brief", "--budget", budget, "--set", "infer.batch=1")[0])) == 16, "lines")


GROUPS = {"infer_texts": [test_texts_as_pages, test_standard_input, test_empty_lines, test_many_lines, test_on_a_terminal, test_files_of_the_config, test_stopped],
          "infer_apart": [test_what_is_a_runs_is_left_alone, test_weights_of_another_model, test_batch_of_a_budget]}

if __name__ == "__main__":
    main(GROUPS)

"""Tests of what a run's folder keeps: folder_tests.py PLIMSOLL FOLDER GROUP…

Its tokenizer, its text and its tokens, whatever a later command names, from wherever it is called, whoever else is at work
there. The tests' tools are those of cli_tests.py."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess

from checksum import xxh64
from cli_tests import COMMAND, Skipped, await_event, check, environment, finish, last_checkpoint, main, read, refused, run, start, without_rights, write_config, write_text
from said import unfolded
from encode_tests import encode, write_encoder

BPE = {"tokenizer": "bpe", "vocab_size": 270}


def kept(out="out", progress=("metrics.jsonl", "checkpoints/latest")):
    """What later commands must not change: the files' bytes, and that they are the same files."""
    names = [n for n in ("tokens.bin", "tokenizer.json", "config.yaml", "plan.lock", *progress) if os.path.exists(f"{out}/{n}")]
    return {n: (os.stat(f"{out}/{n}").st_ino, read(f"{out}/{n}")) for n in names}


def record(out="out"):
    return json.loads(read(last_checkpoint(out) + "/run.json"))


def write_record(record, out="out"):
    """run.json as another version may have written it; its last member is the checksum of what comes before."""
    path = last_checkpoint(out) + "/run.json"
    whole = read(path)
    check(f"{xxh64(whole[:-36]):016x}".encode() == whole[-20:-4], "xxh64 is not the program's", whole[-40:])
    body = (json.dumps({k: v for k, v in record.items() if k != "checksum"})[:-1] + ",").encode()
    with open(path, "wb") as file:
        file.write(body + b'\n  "checksum": "%016x"\n}\n' % xxh64(body))


def test_other_text():
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    run("train", config, "--quiet", "--steps", "20")
    check(re.fullmatch("[0-9a-f]{16}", record()["text_hash"]) and re.fullmatch("[0-9a-f]{16}", record()["tokenizer_hash"]), record())
    loss = json.loads(run("eval", "out", "--json")[0])["loss"]
    before = kept()
    refused(2, r"other.txt: is not the text .* run in out .*\(.*text.txt then\); .*--out", "train", config, "--resume", "--steps", "30",
            "--text", "other.txt")
    refused(5, r"out: holds a run that is at step 20", "train", config, "--text", "other.txt")
    check(kept() == before, "a refused run changed files")
    # To look is fine, with the run's own tokenizer.
    other = json.loads(run("eval", "out", "--text", "other.txt", "--json")[0])["loss"]
    check(other != loss, "the other text was not looked at")
    check(json.loads(run("eval", config, "--text", "other.txt", "--json")[0])["loss"] == other, "config and folder differ")
    run("plan", config, "--text", "other.txt")
    run("verify", "--gradients", "g.safetensors", config, "--text", "other.txt")
    check(kept() == before, "looking at another text changed the run")
    check(len(os.listdir("out/texts")) == 1, os.listdir("out/texts"))
    check(json.loads(run("eval", "out", "--json")[0])["loss"] == loss, "the run's own loss is another now")
    # The same text under another name or time is the same text.
    shutil.copy("text.txt", "copy.txt")
    check(json.loads(run("eval", "out", "--text", "copy.txt", "--json")[0])["loss"] == loss, "a copy is another text")
    run("train", config, "--resume", "--quiet", "--steps", "30", "--text", "copy.txt")
    check(len(os.listdir("out/texts")) == 1 and record()["step"] == 30, "a copy is another text")
    # A text that was changed in place is another one.
    shutil.copy("other.txt", "text.txt")
    refused(2, r"text.txt: is not the text", "train", config, "--resume", "--steps", "40")


def test_other_text_in_a_shared_cache():
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data={**BPE, "cache": "cache"})
    run("train", config, "--quiet", "--steps", "20")
    check(os.path.exists("cache/tokens.bin") and not os.path.exists("out/tokens.bin"), os.listdir("cache"))
    loss = json.loads(run("eval", "out", "--json")[0])["loss"]
    run("train", config, "--quiet", "--steps", "20", "--text", "other.txt", "--out", "second")
    check(read("out/tokenizer.json") != read("second/tokenizer.json"), "one tokenizer for two texts")
    check(json.loads(run("eval", "out", "--json")[0])["loss"] == loss, "the second run changed the first")
    run("train", config, "--resume", "--quiet", "--steps", "30")
    run("train", config, "--quiet", "--steps", "20", "--out", "straight")
    check(read("out/tokenizer.json") == read("straight/tokenizer.json"), "the tokenizer changed")
    refused(2, r"other.txt: is not the text", "train", config, "--resume", "--steps", "40", "--text", "other.txt")


def test_other_tokenizer():
    write_text()
    write_text("other.txt", seed=6)
    for name, text in (("a", "text.txt"), ("b", "other.txt")):
        run("train", write_config(data=BPE), "--text", text, "--out", name, "--steps", "1", "--quiet")
    config = write_config(data={"tokenizer": "a/tokenizer.json"})
    run("train", config, "--quiet", "--steps", "20")
    before = kept()
    pattern = r"b/tokenizer.json: is another tokenizer than out/tokenizer.json, .*--out"
    refused(2, pattern, "train", config, "--resume", "--steps", "30", "--tokenizer", "b/tokenizer.json")
    for words in (["eval"], ["generate"], ["verify", "--gradients", "g"]):
        refused(2, pattern, *words, config, "--tokenizer", "b/tokenizer.json")
    refused(2, r"another model.*tokenizer", "generate", config, "--tokenizer", "bytes")
    check(kept() == before, "a refused command changed files")
    # The run has a copy of its own: where the file was plays no part any more.
    check(read("out/tokenizer.json") == read("a/tokenizer.json"), "the copy is none")
    os.rename("a", "moved")
    text = run("generate", config)[0]
    check(run("generate", "out")[0] == text, "config and folder differ")
    run("eval", "out")
    run("train", config, "--resume", "--quiet", "--steps", "30")
    run("train", "out", "--resume", "--quiet", "--steps", "40")
    # A tokenizer.json that somebody put into the folder.
    shutil.copy("b/tokenizer.json", "out/tokenizer.json")
    for words in (["train", "--resume", "--steps", "50"], ["eval"], ["generate"]):
        refused(2, r"out/tokenizer.json: is not the tokenizer that out/checkpoints/step-\d+ was trained with", *words, config)
    shutil.copy("moved/tokenizer.json", "out/tokenizer.json")
    # A checkpoint of a run with another tokenizer.
    run("train", write_config("second.yaml", data={"tokenizer": "b/tokenizer.json"}), "--quiet", "--steps", "20", "--out", "second")
    for command in ("eval", "generate"):
        refused(2, r"second/checkpoints/step-00000020: was trained with another tokenizer than that of out/", command, config,
                "--checkpoint", last_checkpoint("second"))


def test_other_model():
    """Said before anything is planned, with the key that differs; nothing in the folder is touched."""
    write_text()
    config = write_config(model={"norm_eps": "1.1e-7"}, train={"steps": 20})
    run("train", config, "--quiet")
    before = kept()
    for words, pattern in ((["--width", "32"], "model.width is 32 here and 16 in the saved run"),
                           (["--layers", "2"], "model.layers is 2 here and 1 in the saved run"),
                           (["--set", "model.norm_eps=1e-6"], "model.norm_eps is 1e-06 here and 1.1e-07 in the saved run"),
                           (["--tokenizer", "chars"], "data.tokenizer is chars here and bytes in the saved run")):
        for which in (config, "out"):
            _, err = run("train", which, "--resume", "--steps", "30", *words, code=2)
            check(re.fullmatch(rf"plimsoll train: --[a-z]+: {pattern}, which is another model; .*another --out\n",
                               unfolded(err).replace("--set model.norm_eps", "--set")), which, err)
    check(kept() == before, "a refused resume changed", [n for n in before if kept().get(n) != before[n]])
    run("train", config, "--resume", "--quiet", "--steps", "30")
    run("train", "out", "--resume", "--quiet", "--steps", "40", "--dropout", "0.1")


def test_run_keeps_its_tokenizer():
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    run("train", config, "--quiet", "--steps", "20")
    tokenizer = read("out/tokenizer.json")
    os.remove("out/tokens.bin")
    for words in (["eval", config], ["plan", config], ["verify", config, "--gradients", "g"]):
        run(*words, "--text", "other.txt")
        check(read("out/tokenizer.json") == tokenizer, *words, "replaced the tokenizer")


def test_older_record():
    """A run.json without the hashes still loads; the next one has them."""
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    run("train", config, "--quiet", "--steps", "20")
    old = record()
    write_record({k: v for k, v in old.items() if k not in ("text_hash", "tokenizer_hash")})
    check("text_hash" not in record(), "the record was not changed")
    run("eval", "out"), run("generate", "out")
    refused(2, r"other.txt: is not the text", "train", config, "--resume", "--steps", "30", "--text", "other.txt")
    run("train", config, "--resume", "--quiet", "--steps", "30")
    check([record()[k] for k in ("text_hash", "tokenizer_hash")] == [old[k] for k in ("text_hash", "tokenizer_hash")], record())


def test_moved_folder():
    os.mkdir("here")
    os.mkdir("there")
    os.chdir("here")
    write_text()
    config = write_config(data={**BPE, "cache": "cache"})
    run("train", config, "--quiet", "--steps", "20", "--checkpoint_every", "1000")
    text, loss = run("generate", "out")[0], run("eval", "out", "--json")[0]
    os.chdir("../there")
    before = kept("../here/out")
    check(run("generate", "../here/out")[0] == text, "another folder, another text")
    check(run("eval", "../here/out", "--json")[0] == loss, "another folder, another loss")
    check(kept("../here/out") == before and not os.listdir("."), "looking from elsewhere changed something:", os.listdir("."))
    run("train", "../here/out", "--resume", "--quiet", "--steps", "30")
    check(record("../here/out")["step"] == 30 and not os.listdir("."), os.listdir("."))
    os.rename("../here/out", "run")
    check(run("generate", "run")[0] != "" and os.listdir(".") == ["run"], os.listdir("."))
    shutil.rmtree("../here")
    check(run("generate", "run", "--prompt", "the ")[0].startswith("the "), "generate needs more than the run's folder")
    check(os.listdir(".") == ["run"], os.listdir("."))
    os.chdir("..")


def test_same_config_in_another_folder():
    write_text()
    run("train", write_config(data=BPE), "--quiet", "--steps", "20")
    before = kept()
    run("train", "out", "--out", "other", "--quiet", "--steps", "30")
    check(kept() == before and record()["step"] == 20, "the first run was changed")
    check(record("other")["step"] == 30 and read("out/tokenizer.json") == read("other/tokenizer.json"), record("other"))
    check(b"/other\n" in read("other/config.yaml"), read("other/config.yaml"))
    refused(5, "other: holds a run that is at step 30", "train", "out", "--out", "other", "--steps", "40")
    run("train", "out", "--out", "other", "--resume", "--quiet", "--steps", "40")
    check(json.loads(run("eval", "out", "--out", "other", "--json")[0])["step"] == 40, "another run")
    check(json.loads(run("eval", "out", "--json")[0])["step"] == 20, "another run")


def test_failed_text_leaves_nothing():
    write_text()
    open("empty.txt", "w").close()
    with open("short.txt", "w") as file:
        file.write("short")
    with open("held.txt", "w") as file: # long enough to train on, too short to hold a part out
        file.write("the cat " * 20)
    before = sorted(os.listdir("."))
    for name, code in (("none.txt", 4), ("empty.txt", 4), ("short.txt", 4), ("held.txt", 4), (".", 2)):
        for more in ({}, BPE, {"cache": "runs/cache"}):
            config = write_config(data={"text": f"./{name}", **more})
            for command in ("train", "plan", "eval"):
                refused(4 if command == "eval" else code, r"\S", command, config, "--out", "runs/deep/out")
                check(sorted(os.listdir(".")) == sorted({*before, config}), command, name, more, "left", os.listdir("."))
    # What was there before stays.
    os.makedirs("runs/deep/out")
    open("runs/deep/out/note", "w").close()
    refused(4, r"\S", "train", write_config(data={"text": "./short.txt"}), "--out", "runs/deep/out")
    check(os.listdir("runs/deep/out") == ["note"], os.listdir("runs/deep/out"))


def test_folder_in_use():
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    process = start("train", config, "--steps", "100000", "--checkpoint_every", "1000000", "--eval_every", "1000000")
    await_event(process, "step")
    before = kept("out", ())
    for words in (["train"], ["train", "--resume"], ["plan"], ["eval"]):
        refused(5, r"out: another run \(process \d+\) is using this folder", *words, config, "--text", "other.txt")
        check(kept("out", ()) == before, *words, "changed a folder in use")
    run("plan", config)
    check(kept("out", ()) == before, "plan changed a folder in use")
    process.send_signal(signal.SIGTERM)
    check(finish(process) == 143, process.returncode)
    run("train", config, "--resume", "--quiet", "--steps", str(record()["step"]))


def test_folder_that_loses_its_lock():
    """The lock is the folder's: who removes the file called lock lets nobody in."""
    write_text()
    config = write_config()
    process = start("train", config, "--steps", "100000", "--checkpoint_every", "1000000", "--eval_every", "1000000")
    await_event(process, "step")
    os.remove("out/lock")
    before = kept("out", ())
    for words in (["train"], ["train", "--resume"]):
        refused(5, "out: another run .*is using this folder", *words, config)
    refused(5, "out: another run .*is using this folder", "train", config, "--out", "new", "--set", "data.cache=out", "--tokenizer", "chars")
    check(kept("out", ()) == before and not os.path.exists("new"), "a folder in use changed")
    process.send_signal(signal.SIGTERM)
    check(finish(process) == 143, process.returncode)
    run("train", config, "--quiet", "--steps", "5", "--out", "new", "--set", "data.cache=new")
    run("train", config, "--quiet", "--steps", "5", "--out", "newer", "--set", "data.cache=./newer/../newer")
    run("train", config, "--quiet", "--steps", "5", "--out", "newest", "--set", "data.cache=new", "--tokenizer", "chars")


def test_config_that_was_emptied():
    write_text()
    run("train", write_config(), "--quiet", "--steps", "2", "--out", "own")
    os.truncate("own/config.yaml", 0)
    for words in (("config", "own"), ("plan", "own"), ("train", "own", "--resume")):
        refused(4, "own/config.yaml: is empty, and a run keeps its whole config there; put a copy of it back", *words)


def test_files_that_were_there():
    """A first start in a folder writes over nothing that no run of ours wrote, nor through a link."""
    write_text()
    config = write_config()
    for name in ("config.yaml", "report.json"):
        os.makedirs("own")
        shutil.copy(config, f"own/{name}")
        for words in ((config,), (config, "--resume")) + ((("own/config.yaml",),) if name == "config.yaml" else ()):
            refused(5, f"own/{name}: exists but belongs to no run .*--out", "train", *words, "--out", "own")
            check(os.listdir("own") == [name] and read(f"own/{name}") == read(config), words, os.listdir("own"))
        shutil.rmtree("own")
    run("train", config, "--out", "prepared", "--tokenizer", "chars", "--steps", "1", "--quiet")
    os.makedirs("own")
    shutil.copy("prepared/tokenizer.json", "own")
    foreign = read("own/tokenizer.json")
    for words in (("train",), ("plan",), ("plan", "--set", "data.cache=cache"), ("plan", "--tokenizer", "bytes")):
        refused(5, r"own/tokenizer.json: exists but belongs to no run .*--tokenizer.*--out", words[0], config, *words[1:], "--out", "own")
        check(os.listdir("own") == ["tokenizer.json"] and read("own/tokenizer.json") == foreign, words, os.listdir("own"))
    run("plan", config, "--out", "own", "--tokenizer", "own/tokenizer.json")
    check(os.listdir("own") == ["tokenizer.json"] and read("own/tokenizer.json") == foreign, "plan leaves something", os.listdir("own"))
    for words in (("--tokenizer", "own/tokenizer.json"), ()): # prepares, and is refused then
        run("train", config, "--out", "own", *words, "--budget", "1MB", code=3)
    check(read("own/tokenizer.json") != foreign, "what was prepared here may be prepared anew")
    shutil.rmtree("own")
    os.makedirs("cached")
    cache = ("--set", "data.cache=cached", "--out", "elsewhere")
    for content in (json.dumps(json.loads(foreign), indent=1).encode(), b"my own words", foreign[:-1]):
        with open("cached/tokenizer.json", "wb") as file:
            file.write(content)
        for words in (("train",), ("plan",), ("plan", "--tokenizer", "bpe", "--vocab_size", "300")):
            refused(5, r"cached/tokenizer.json: exists, but not as Plimsoll writes it.*--tokenizer.*data.cache", words[0], config, *words[1:], *cache)
            check(os.listdir("cached") == ["tokenizer.json"] and read("cached/tokenizer.json") == content, words, os.listdir("cached"))
            check(not os.path.exists("elsewhere"), os.path.exists("elsewhere") and os.listdir("elsewhere"))
    with open("cached/tokenizer.json", "wb") as file:  # as of a run that was killed before it had tokens
        file.write(foreign)
    run("plan", config, *cache)
    check(read("cached/tokenizer.json") != foreign and not os.path.exists("elsewhere"), "what was prepared here may be prepared anew")
    shutil.rmtree("cached")
    refused(5, r"\./config.yaml: exists but belongs to no run .*--out", "train", config, "--out", ".")
    for text in ("my own notes\n", '{"loss": 1}\n', "no newline"):
        os.makedirs("own", exist_ok=True)
        with open("own/metrics.jsonl", "w") as file:
            file.write(text)
        refused(4, "metrics.jsonl:1:1: this is not a line of a run's metrics .*move the file away", "train", config, "--quiet", "--out", "own")
        check(read("own/metrics.jsonl") == text.encode(), "a file of somebody's was cut")
        shutil.rmtree("own")
    for name in ("lock", "metrics.jsonl"):
        for content in ("precious\n", '{"step":1,"loss":2}\n', ""):
            os.makedirs("own")
            with open("precious", "w") as file:
                file.write(content)
            os.symlink(os.path.abspath("precious"), f"own/{name}")
            refused(5, f"own/{name}: .*(symbolic links|is a link)", "train", config, "--quiet", "--out", "own")
            check(read("precious") == content.encode(), name, "was followed")
            shutil.rmtree("own")
    # What died before its first checkpoint is ours: the next start is a fresh one.
    os.makedirs("own")
    with open("own/metrics.jsonl", "w") as file:
        file.write('{"step":1,"loss":2}\n{"step":2,"lo')
    run("train", config, "--quiet", "--steps", "5", "--out", "own")
    check(b"lo\n" not in read("own/metrics.jsonl"), "the old lines are still there")
    run("train", "own/config.yaml", "--resume", "--quiet", "--steps", "10")


def test_files_without_rights():
    """What may not be read is neither damaged nor made anew, and nothing older is taken in its place."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skipped("root may read everything, and there is no setpriv")
    write_text()
    config = write_config(train={"checkpoint_every": 10})
    run("train", config, "--quiet", "--steps", "20")
    os.chmod(".", 0o777)
    for at, _, names in os.walk("out"):
        for path in (at, *(f"{at}/{n}" for n in names)):
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
    for path, commands in (("out/tokens.bin", ("plan", "eval")), ("out/tokenizer.json", ("plan", "eval", "generate")), (config, ("plan", "train")),
                           (last_checkpoint("out") + "/model.safetensors", ("eval", "generate", "resume")), (last_checkpoint("out"), ("eval", "resume")),
                           ("text.txt", ("plan",))):
        before, mode = kept(), os.stat(path).st_mode
        os.chmod(path, 0)
        for command in commands:
            words = ["train", config, "--resume", "--steps", "30"] if command == "resume" else [command, config]
            done = subprocess.run(without_rights(*words), capture_output=True, text=True, env=environment(), timeout=60)
            if done.returncode in (126, 127) or "setpriv" in done.stderr:
                raise Skipped("the command cannot be started as nobody: " + done.stderr)
            said = unfolded(done.stderr).strip().split("\n")[-1]
            check(done.returncode == 5 and path in said and "Permission denied" in said, path, command, done.returncode, said)
        os.chmod(path, mode & 0o777)
        check(kept() == before, path, "was made anew")
    # What cannot be replaced is said before the steps that lead there are done again.
    run("plan", config)  # that the text had other rights in between is noted in the tokens
    model, before = last_checkpoint("out") + "/model.safetensors", kept("out", ("metrics.jsonl",))
    os.remove(model)
    os.mkdir(model)
    refused(5, "model.safetensors: is a folder where a file was expected, .*move it away", "train", config, "--resume", "--quiet", "--steps", "30")
    check(kept("out", ("metrics.jsonl",)) == before, "steps were done before it was said")
    os.rename(os.path.dirname(model), "away")
    run("train", config, "--resume", "--quiet", "--steps", "30")


def event_files(out="out"):
    return sorted(n for n in os.listdir(out) if n.startswith("events.out."))


def test_event_files():
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20")
    first = event_files()
    check(len(first) == 1, first)
    run("train", config, "--quiet", "--resume", "--steps", "20")
    check(event_files() == first, "nothing left to do, but there is", event_files())
    run("train", config, "--quiet", "--resume", "--steps", "30")
    check(len(event_files()) == 2, event_files())
    run("train", config, "--quiet", "--resume", "--steps", "40", "--no-tensorboard")
    check(len(event_files()) == 2, event_files())


def fields(data):
    """Protobuf's wire format: (number, value) of each field."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
        yield tag >> 3, data[at:at + size]
        at += size


def curves(out):
    """What TensorBoard shows: {tag: {step: value}}, later files and restarts (SessionLog START) replacing earlier ones."""
    shown = {}
    for name in event_files(out):
        data, at = read(f"{out}/{name}"), 0
        while at < len(data):
            size = struct.unpack_from("<Q", data, at)[0]
            event, at = dict(fields(data[at + 12:at + 12 + size])), at + size + 16
            step = event.get(2, 0)
            if 7 in event:
                shown = {tag: {s: v for s, v in points.items() if s < step} for tag, points in shown.items()}
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                shown.setdefault(value[1].decode(), {})[step] = struct.unpack("<f", value[2])[0]
    return {tag: points for tag, points in shown.items() if points}


def test_event_files_of_a_run_that_died():
    """Before its first checkpoint: the next start is a fresh one, in metrics.jsonl and in TensorBoard."""
    write_text()
    config = write_config(train={"log_every": 1, "checkpoint_every": 1000000, "eval_every": 1000000})
    process = start("train", config, "--steps", "1000000")
    await_event(process, "step", 300)
    process.kill()
    finish(process)
    check(not os.path.exists("out/checkpoints/latest") and len(curves("out")["loss"]) >= 299, "the test killed too late")
    run("train", config, "--quiet", "--steps", "40")
    check(len(event_files()) == 2, event_files())
    steps = {m["step"]: m["loss"] for m in map(json.loads, read("out/metrics.jsonl").splitlines()) if "loss" in m}
    check(list(curves("out")["loss"]) == list(steps) == list(range(1, 41)), list(curves("out")["loss"])[-3:], list(steps)[-3:])


def test_two_runs_share_a_cache():
    """At the same time, on two texts: each ends as if it had been alone, or says that the tokens were changed under it."""
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    words = ["train", "--quiet", "--steps", "20", "--set", "data.cache=cache"]
    for name in ("text", "other"):
        run("train", config, "--quiet", "--steps", "20", "--text", f"{name}.txt", "--out", f"{name}.alone")
    for turn in range(3):
        both = {name: subprocess.Popen([COMMAND, *words, config, "--text", f"{name}.txt", "--out", f"{name}.{turn}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env=environment()) for name in ("text", "other")}
        for name, process in both.items():
            said = process.communicate(timeout=60)[1].decode()
            if process.returncode == 0:
                check(record(f"{name}.{turn}")["files"] == record(f"{name}.alone")["files"], name, "is another run")
            else:
                check(process.returncode == 4 and re.search("cache/token.*start this (one|command) again", unfolded(said)), process.returncode, said)


def test_trace_replaces_no_results():
    """Whether they are there or will be."""
    beside = ("results.html", "results.yaml", "results.processes.jsonl")
    for form, names in (("native", ("results.blocks", *beside)), ("npy", ("results", "results/sketches.npy", *beside))):
        config = write_encoder(storage=form, out="out-" + form)
        for there in (False, True):
            if there:
                encode(config)
            for name in names:
                path = f"out-{form}/{name}"
                was = read(path) if os.path.isfile(path) else None
                refused(2, "(are the same file|where nothing else may be written); give another name", "encode", config, "--trace", path)
                check((read(path) if os.path.isfile(path) else None) == was, path, "was written")
        refused(2, "(are the same file|where nothing else may be written); give another name", "encode", config, "--trace", f"later/../out-{form}/{names[0]}")
        run("encode", config, "--trace", f"out-{form}/trace.json", "--set", "run.out=traced-" + form)
        encode(f"out-{form}/results.yaml", "--set", "run.out=again-" + form)  # what is kept is a config
        os.symlink(f"real/{names[0]}", form)
        os.symlink(f"../{form}", f"out-{form}/link")
        for path in (form, f"out-{form}/link"):
            refused(2, "are the same file|where nothing else may be written", "encode", config, "--set", "run.out=real", "--trace", path)
            check(not os.path.exists("real"), "something was made")


def refused_without(*words, code=2, made):
    """The command is refused before it makes anything: what is here stays, and nothing comes."""
    def all_files():
        return {os.path.join(at, name): read(os.path.join(at, name)) for at, _, names in os.walk(".") for name in names if "lock" not in name}
    before = all_files()
    refused(code, made, *words)
    now = all_files()
    check(now == before, words, sorted(set(now) ^ set(before)))


def test_a_trace_takes_the_place_of_a_trace_only():
    config = write_encoder(out="out")
    encode(config, "--set", "run.out=parts", "--part", "1/2")
    encode(config, "--set", "run.out=out", "--dump", "plan")
    none = "is there already and is no trace; choose another name for the trace"
    for path in ("parts/results-1-of-2.blocks", "out/dump-plan.txt", "out/results.html", config):
        refused_without("encode", config, "--part", "2/2", "--set", "run.out=parts", "--trace", path, made=f"{none}|same file")
    refused_without("encode", config, "--set", "run.out=new", "--trace", "new/sub/trace.json", code=5, made="trace.json: cannot be created: the folder new/sub is not there")
    refused(2, "run.trace and the dump .* are the same file", "encode", config, "--set", "run.out=new", "--dump", "plan", "--trace", "new/dump-plan.txt")
    for path in ("ca/plimsoll-pages.sqlite", "ca/x", "ca"):
        refused_without("encode", config, "--set", "pipeline.cache_dir=ca", "--set", "run.out=new", "--trace", path, made="lies within the cache")
    for was in (None, b"", b'[\n{"ph"', "whole"):
        if isinstance(was, bytes):
            with open("trace.json", "wb") as file:
                file.write(was)
        encode(config, "--set", f"run.out=traced-{was}", "--trace", "trace.json")
        events = json.loads(read("trace.json"))
        check(events[0]["ph"] == "M" and events[1]["ph"] == "X", events[:2])


def test_a_page_takes_the_place_of_a_page_only():
    config = write_encoder(out="out")
    encode(config)
    for path in ("out/results.blocks", config):
        before = read(path)
        refused(2, "is there already and is no page; choose another name for the page|same file", "plan", config, "--set", "run.out=new", "--html", path)
        check(read(path) == before, path, "was written")
    for _ in range(2):
        run("plan", config, "--set", "run.out=new", "--html", "page.html")
    check(read("page.html").startswith(b"<!doctype html>"), "no page")


def test_a_look_leaves_nothing():
    """plan and fit make what they need, and take it away again: also where planning fails, and in the folder of a run; what was there
    stays, and so does a cache that was asked for."""
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(data=BPE)
    for words in (("plan",), ("plan", "--json"), ("fit", "--quiet"), ("plan", "--command", "evaluate")):
        run(words[0], config, "--out", "a/b/c", *words[1:])
        check(not os.path.exists("a"), words, "leaves", [*os.walk("a")])
    run("plan", config, "--out", "a/b/c", "--budget", "1MB", code=3)
    check(not os.path.exists("a"), "a plan that is refused leaves", [*os.walk("a")])
    os.makedirs("a/b/c")
    with open("a/b/c/notes", "w", encoding="ascii") as file:
        file.write("mine")
    run("plan", config, "--out", "a/b/c", "--cache", "cache")
    check([*os.walk("a")] == [("a", ["b"], []), ("a/b", ["c"], []), ("a/b/c", [], ["notes"])], [*os.walk("a")])
    check(sorted(os.listdir("cache")) == ["tokenizer.json", "tokens.bin"], os.listdir("cache"))
    run("train", config, "--steps", "4", "--quiet")
    before = kept(), sorted(os.listdir("out"))
    run("plan", "out", "--text", "other.txt")
    run("fit", "out", "--quiet")
    check((kept(), sorted(os.listdir("out"))) == before, "a look at a run changes it", os.listdir("out"))


GROUPS = {"folder": [test_a_look_leaves_nothing, test_other_model, test_other_text, test_other_text_in_a_shared_cache, test_two_runs_share_a_cache, test_other_tokenizer,
                     test_run_keeps_its_tokenizer, test_older_record, test_moved_folder, test_same_config_in_another_folder,
                     test_failed_text_leaves_nothing, test_folder_in_use, test_folder_that_loses_its_lock, test_files_that_were_there, test_files_without_rights,
                     test_event_files, test_event_files_of_a_run_that_died, test_trace_replaces_no_results,
                     test_a_trace_takes_the_place_of_a_trace_only, test_a_page_takes_the_place_of_a_page_only]}

if __name__ == "__main__":
    main(GROUPS)

"""A run as a person reads of it afterwards, and several next to each other: judged by the files that the runs left, read here
by themselves. Called as cli_tests.py is."""
import html
import json
import os
import re
import shlex
import shutil

from cli_tests import COMMAND, check, main, read, refused, run

TEXT = "a page of a run says what it is and what it came to. " * 400
SETTINGS = {"model": {"layers": 1, "width": 32, "heads": 2, "sequence": 16}, "train": {"batch_size": 4, "eval_every": 3, "checkpoint_every": 3, "log_every": 1}}


def train(out, *words, steps=6):
    with open("text.txt", "w") as file:
        file.write(TEXT)
    with open("gpt.yaml", "w") as file:
        json.dump({**SETTINGS, "model": {"arch": "gpt", **SETTINGS["model"]}, "data": {"text": "text.txt", "validation_fraction": 0.2}}, file)
    run("train", "gpt.yaml", "--out", out, "--steps", str(steps), "--threads", "1", "--quiet", *words)


def lines_of(out):
    return [json.loads(line) for line in read(f"{out}/metrics.jsonl").splitlines()]


def validated(out):
    return [(m["validation_loss"], m["step"]) for m in lines_of(out) if "validation_loss" in m]


def section(text, title):
    check(f"\n{title}\n" in text, title, "is missing:", text)
    return text[text.index(f"\n{title}\n") + 1:].split("\n\n")[0].splitlines()[1:]


def test_text():
    train("out")
    text, _ = run("report", "out/")
    best, step = min(validated("out"))
    check(text.startswith("out\nA training of gpt in out/; last written 20"), text[:200])
    check(re.search(rf"^ *6  steps$", text, re.M) and re.search(rf"^ *{best:.4f}  validation loss, the best, at step {step}$", text, re.M), text)
    told = dict(re.findall(r"^(\S+) +\S+\s+(\S+)$", "\n".join(section(text, "Settings that differ from their defaults")[1:]), re.M))
    wanted = {f"{s}.{k}": str(v) for s, keys in SETTINGS.items() for k, v in keys.items()}
    check(wanted.items() <= told.items() and told["train.steps"] == "6" and "train.seed" not in told and "model.norm" not in told, told)
    ledger = json.loads(read("out/report.json"))
    rows = {line.split()[0]: line.split()[1:3] for line in section(text, "Memory, planned and measured") if re.search(r"\d", line)}
    check(rows["resident"] == [f"{ledger['planned_bytes']:,}", f"{ledger['measured_bytes']:,}"] and rows["peak"][1] == f"{ledger['peak_bytes']:,}", rows)
    check("As planned, to the byte." in text and "Time by component" in text, text)
    files = {line.split()[0]: int(line.split()[1].replace(",", "")) for line in section(text, "Files")[1:] if "---" not in line}
    check(files.pop("all") == sum(files.values()), files)
    check(all(os.path.getsize(f"out/{name}") == size for name, size in files.items()) and "checkpoints/step-00000006/model.safetensors" in files, files)


def test_end_of_a_run():
    """Result, peak, where it lies, what to do with it; the table with --ledger alone."""
    train("out")
    _, err = run("train", "gpt.yaml", "--out", "new", "--steps", "6", "--threads", "1", "--tokenizer", "bytes")
    end = err[err.index("done: 6 steps"):].splitlines()
    best, step = min(validated("new"))
    peak = json.loads(read("new/report.json"))["peak_bytes"]
    check(3 < len(end) <= 6 and end[1].startswith(f"best validation: loss {best:.4f} at step {step}"), end)
    check(end[2].startswith(f"As planned, to the byte. Peak {peak:,} bytes (") and end[3].startswith("kept in new; plimsoll report"), end)
    check("rather than words" in end[4] and end[-1] == f'next: {COMMAND} generate new --prompt "The "', end)
    check(run(*shlex.split(end[-1])[2:])[0].startswith("The "), "the next command")
    _, err = run("train", "gpt.yaml", "--out", "told", "--steps", "6", "--threads", "1", "--ledger")
    check("\nunexplained " in err and "best validation" not in err, err)


def points(page, title):
    """Along the axis, where the curve's points are drawn."""
    chart = page[page.index(f"<h2>{title}</h2>"):].split("</section>")[0]
    return [[float(x) for x in re.findall(r"[ML]([0-9.]+) ", path)] for path in re.findall(r"<path class='(?:train|valid)' d='([^']*)'", chart)]


def test_starts():
    """How it was started, as it was typed: a line for each time; a new run begins a new list."""
    train("a b")
    run("train", "gpt.yaml", "--out", "a b", "--steps", "12", "--threads", "1", "--quiet", "--resume")
    lines = [json.loads(line) for line in read("a b/starts.jsonl").splitlines()]
    check([line["schema"] for line in lines] == ["plimsoll.start/1"] * 2, lines)
    told = json.loads(run("--version", "--json")[0])
    check(all((line["version"], line["commit"]) == (told["version"], told["commit"]) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["time"]) and line["machine"] for line in lines), lines, told)
    typed = [shlex.split(line["command"]) for line in lines]
    check(typed[0] == [COMMAND, "train", "gpt.yaml", "--out", "a b", "--steps", "6", "--threads", "1", "--quiet"] and typed[1][-4:] == ["--threads", "1", "--quiet", "--resume"], typed)
    text, _ = run("report", "a b")
    check("How it was started\n" + lines[0]["time"] in text and lines[1]["time"] in text, text)
    with open("a b/starts.jsonl", "ab") as file:
        file.write(b"torn {")
    run("train", "gpt.yaml", "--out", "a b", "--steps", "15", "--threads", "1", "--quiet", "--resume")
    check(len(read("a b/starts.jsonl").splitlines()) == 4 and run("report", "a b")[0].count("  command ") == 3, read("a b/starts.jsonl"))
    run("train", "gpt.yaml", "--out", "a b", "--steps", "6", "--threads", "1", "--quiet", "--overwrite")
    (line,) = read("a b/starts.jsonl").splitlines()
    check(json.loads(line)["command"].endswith("--overwrite"), line)
    os.remove("a b/starts.jsonl")  # an earlier version kept none
    check("How it was started" not in run("report", "a b")[0], "from nothing")


def test_starts_that_are_not_ours():
    """What has the name is left alone: a link, a folder, another file. A list that is long loses its oldest lines."""
    again = ["train", "gpt.yaml", "--out", "out", "--threads", "1", "--resume", "--steps"]
    train("out")
    one = read("out/starts.jsonl")
    with open("out/starts.jsonl", "wb") as file:
        file.write(one * (1 + (300 << 10) // len(one)))
    run(*again, "7")
    lines = read("out/starts.jsonl").splitlines(keepends=True)
    check(len(read("out/starts.jsonl")) <= (256 << 10) + 2 * len(one) and all(line == one for line in lines[:-1]) and json.loads(lines[-1])["command"].endswith("7"), len(lines))
    check("How it was started" in run("report", "out")[0], "a long one")
    for step, (what, make) in enumerate({"is a link": lambda: os.symlink("../precious", "out/starts.jsonl"), "is not a regular file": lambda: os.mkdir("out/starts.jsonl"),
                                         "does not say how a run was started": lambda: shutil.copy("precious", "out/starts.jsonl")}.items()):
        with open("precious", "w") as file:
            file.write("mine\n")
        os.remove("out/starts.jsonl") if not os.path.isdir("out/starts.jsonl") or os.path.islink("out/starts.jsonl") else os.rmdir("out/starts.jsonl")
        make()
        _, err = run(*again, str(8 + step))
        check(re.search(rf"warning: out/starts.jsonl: .*{what}.*; it is left alone", err) and "As planned, to the byte" in err, what, err)
        check(read("precious") == b"mine\n" and (os.path.isdir("out/starts.jsonl") or read("out/starts.jsonl") == b"mine\n"), what)
        check(what in run("report", "out")[0].replace("\n", " "), what, run("report", "out")[0])


def test_samples():
    """The texts that were shown between steps, in the order of steps, also where the run was stopped and went on; on the page eight at most."""
    words = ["--sample_every", "2", "--tokens", "20", "--schedule", "constant", "--warmup_steps", "2", "--prompt", "of  a"]
    train("out", *words, steps=24)
    kept = [(m["step"], m["sample"]) for m in lines_of("out") if "sample" in m]
    check([step for step, _ in kept] == list(range(2, 25, 2)) and all(text for _, text in kept), kept)
    shown = run("train", "gpt.yaml", "--out", "loud", "--steps", "24", "--threads", "1", *words, "--progress", "json")[0]
    events = [json.loads(line) for line in shown.splitlines()]
    check("".join(e["text"] for e in events if e["event"] == "text") == "".join(text for _, text in kept), "what was shown is what is kept", kept)
    train("halves", *words, steps=9)
    run("train", "gpt.yaml", "--out", "halves", "--steps", "24", "--threads", "1", *words, "--quiet", "--resume")
    check([(m["step"], m["sample"]) for m in lines_of("halves") if "sample" in m] == kept, "across a stop")
    found = re.findall(r"^Step (\d+): ", run("report", "out")[0], re.M)
    check(len(found) == 8 and found[0] == "2" and found[-1] == "24" and found == sorted(found, key=int), found)
    run("report", "out", "--html", "page.html")
    page = html.unescape(re.sub("<br>", "\n", read("page.html").decode()))
    shown = {step: re.sub("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", "\ufffd", text) for step, text in kept}
    check(all(f"Step {step}: {shown[step]}".split("\n")[0] in page for step in map(int, found)) and "How it was started" in page and "after “of  a”:" in page, "on the page")


def test_page():
    """All steps, across a run that went on; and after a kill those that were made again count once."""
    train("out")
    run("train", "gpt.yaml", "--out", "out", "--steps", "12", "--threads", "1", "--quiet", "--resume")
    run("report", "out", "--html", "page.html")
    page = read("page.html").decode()
    check(page.startswith("<!doctype html>") and "<title>out – run</title>" in page and "<script" not in page and "http" not in page, page[:300])
    training, validation = points(page, "Loss")
    check(len(training) == 12 and len(validation) == len(validated("out")) and training == sorted(training), training, validation)
    check(len(points(page, "Rate")[0]) == 12 and len(points(page, "Learning rate")[0]) == 12, "rates")
    with open("out/metrics.jsonl", "a") as file:
        file.write("".join(json.dumps({**m, "loss": 1}) + "\n" for m in lines_of("out") if "loss" in m and m["step"] > 9) + '{"step": 13, "lo')
    again = points(run("report", "out", "--html", "-")[0], "Loss")[0]
    check(len(again) == 12 and again == training, again)
    for part in ("Settings that differ", "Memory, planned and measured", "Time by component", "checkpoints/step-00000012/model.safetensors", "As planned, to the byte."):
        check(part in page, part, "is not on the page")


def test_several():
    train("a")
    train("b", "--learning_rate", "0.01", "--layers", "2", steps=9)
    train("c", "--learning_rate", "0.01")
    told = json.loads(run("report", "a", "b", "c", "--json")[0])
    check(told["schema"] == "plimsoll.runs/1" and [r["run"] for r in told["runs"]] == ["a", "b", "c"], told)
    for r in told["runs"]:
        ledger = json.loads(read(f"{r['run']}/report.json"))
        check((r["loss"], r["loss_step"]) == min(validated(r["run"])) and r["peak_bytes"] == ledger["peak_bytes"] and r["planned_bytes"] == ledger["planned_bytes"], r)
    differ = {row["setting"]: row["values"] for row in told["settings"]}
    check(differ["model.layers"] == ["1", "2", "1"] and differ["train.learning_rate"] == ["0.0003", "0.01", "0.01"], differ)
    check({"model.layers", "train.learning_rate", "train.steps"} == set(differ), sorted(differ))
    text, _ = run("report", "a", "b", "c")
    check(re.search(r"^model\.layers +1 +2 +1$", text, re.M) and re.search(r"^b +9 +\d", text, re.M), text)
    page, _ = run("report", "a", "b", "c", "--html", "-")
    check(page.count("<path class=") == 3 and "<span><i class='gradient'></i>b</span>" in page, page[:500])
    os.rename("b", "b<i>\033&")
    page, _ = run("report", "a", "b<i>\033&", "--html", "-")
    check("<i>\033" not in page and page.count("b&#60;i&#62;\ufffd&#38;</") >= 2, "a name that is markup")
    text, _ = run("report", "a", "b<i>\033&")
    check("\033" not in text and "b<i>?&" in text, text)
    text, _ = run("report", "a", "a")
    check(text.rstrip().endswith("Settings that differ\nnone: the configs are the same but for their folders"), text)
    refused(4, "nowhere: holds no run: config.yaml is missing", "report", "a", "nowhere")
    refused(2, "9 runs are more than the 8 that one page compares", "report", *["a"] * 9)


def test_what_is_missing():
    """A run that was killed, or is of an earlier version: what is there is told."""
    train("out")
    for name in ("report.json", "times.json"):
        shutil.move(f"out/{name}", name)
    text, _ = run("report", "out")
    check("Memory, planned" not in text and "Time by" not in text and "validation loss, the best" in text, text)
    shutil.copy("gpt.yaml", "out/report.json")
    refused(4, "out/report.json: is no ledger of a run", "report", "out")
    os.remove("out/metrics.jsonl")
    refused(4, "has no table of times", "report", "out")


if __name__ == "__main__":
    main({"report": [test_text, test_end_of_a_run, test_starts, test_starts_that_are_not_ours, test_samples, test_page, test_several, test_what_is_missing]})

"""The table of times as a person sees it: at the end of a training, from its folder, as JSON and page, after going on; of an encoding and a rollout; and what
has none. Numbers of seconds are compared with each other alone, never with a clock. Called as cli_tests.py is."""
import json
import os
import re
import signal

from cli_tests import await_event, check, finish, main, read, refused, run, start
from encode_tests import write_encoder
from rollout_tests import write_rollout

TEXT = "hello there, this is a text of a few words and some more. " * 400


def train(*words, steps=6, **keys):
    with open("text.txt", "w") as file:
        file.write(TEXT)
    with open("gpt.yaml", "w") as file:
        file.write("model: {arch: gpt, layers: 2, width: 32, heads: 2, sequence: 16}\ndata: {text: text.txt, validation_fraction: 0.2}\n"
                   f"train: {{batch_size: 4, steps: {steps}, eval_every: 3, checkpoint_every: 3, log_every: 1}}\nrun: {{out: out, threads: 1}}\n")
    return run("train", "gpt.yaml", *words)


def table(path):
    out, _ = run("report", path, "--json")
    return json.loads(out)


def adds_up(t):
    """Rows and what is in none are the step, by construction; each component has a pass and what it computes."""
    whole = sum(row["seconds"] for row in t["components"]) + t["other_seconds"]
    check(t["seconds"] > 0 and abs(whole - t["seconds"]) <= 1e-6 * t["seconds"], whole, t["seconds"])
    check(all(row["seconds"] >= 0 and row["flops"] >= 0 and row["pass"] in ("forward", "backward", "update") for row in t["components"]), t)
    names = [(row["name"], row["pass"]) for row in t["components"]]
    check(len(set(names)) == len(names), names)
    return names


def test_of_a_training():
    _, err = train("--ledger")
    check("\nTime by component\nOf a step, mean of 6.\n" in err and re.search(r"^attention, backward +\S+", err, re.M) and re.search(r"^update +\S+", err, re.M), err)
    check(re.search(r"^Besides: evaluating .* in 2 times, saving .* in \d times?\.$", err, re.M), err)
    t = table("out")
    names = adds_up(t)
    check({("data", "forward"), ("embedding", "forward"), ("attention", "forward"), ("feed_forward", "backward"), ("update", "update")} <= set(names), names)
    check(t["runs"] == 6 and t["first"] == 0 and t["program"] == "train" and t["run"] == "step", t)
    check(t == json.loads(read("out/times.json")), "the file is what is reported")
    text, _ = run("report", "out")
    table_of = text[text.index("\nTime by component\n"):text.index("\n\nHow it was started\n")]
    check(table_of in err, table_of, err)
    _, err = run("train", "gpt.yaml", "--quiet", "--out", "silent")
    check("component" not in err and "As planned" not in err and os.path.exists("silent/times.json"), err)


def test_flops_are_the_plans():
    """Against plan --json, which sums by operators."""
    train()
    out, _ = run("plan", "gpt.yaml", "--json")
    program = next(p for p in json.loads(out)["programs"] if p["name"] == "train")
    flops = sum(row["flops"] for row in table("out")["components"])
    check(abs(flops - program["flops"]) <= 1e-9 * flops, flops, program["flops"])


def test_after_going_on():
    train(steps=4)
    open("out/times.json.plimsoll.tmp", "w").close()  # as a kill leaves it: the next table takes its place
    _, err = run("train", "gpt.yaml", "--resume", "--steps", "9", "--ledger")
    check(not os.path.exists("out/times.json.plimsoll.tmp"), sorted(os.listdir("out")))
    t = table("out")
    adds_up(t)
    check(t["first"] == 4 and t["runs"] == 5 and "mean of 5 (5 to 9, since it resumed)" in err, t, err)


def test_stopped():
    train(steps=2)
    process = start("train", "gpt.yaml", "--steps", "100000", "--out", "stopped")
    await_event(process, "step", 3)
    process.send_signal(signal.SIGINT)
    finish(process)
    adds_up(table("stopped"))


def test_progress_for_programs():
    out, _ = train("--progress", "json")
    events = [json.loads(line) for line in out.splitlines()]
    times = [e["times"] for e in events if e["event"] == "times"]
    check(len(times) == 1 and times[0] == json.loads(read("out/times.json")), events[-2:])


def test_page():
    train()
    page, _ = run("report", "out", "--html", "-")
    check(page.startswith("<!doctype html>") and "attention, backward" in page and "<script" not in page and "http" not in page, page[:300])
    run("report", "out", "--html", "page.html")
    check(read("page.html").decode() == page, "the same page")
    plan = read("out/plan.html").decode()
    check("<h2>Time by component</h2>\n<p>Of a step, predicted." in plan, plan[:300])


def test_of_results():
    """Of the program that is run again and again: a rollout's step, an encoding's pages. Named by folder or by the results."""
    _, err = run("rollout", write_rollout(), "--ledger")
    check("Time by component\nOf a run of step, mean of 3." in err, err)
    t = table("out")
    check(t["program"] == "step" and t["runs"] == 3 and len(adds_up(t)) > 1 and t == table("out/results.blocks") == json.loads(read("out/results.times.json")), t)
    check(read("out/results.html").count(b"<h2>Time by component</h2>") == 1 and read("out/results.html").endswith(b"</main></body></html>\n"), "the page")
    os.mkdir("again")
    open("again/results.times.json.plimsoll.tmp", "w").close()
    run("rollout", write_rollout(), "--out", "again", "--quiet")
    check(os.path.exists("again/results.times.json"), "a quiet one keeps it, too")
    check(not os.path.exists("again/results.times.json.plimsoll.tmp"), sorted(os.listdir("again")))
    kept = read("again/results.times.json")
    open("again/results.times.json.plimsoll.tmp", "w").close()  # killed at its very end: all is done, and no other table comes
    _, err = run("rollout", write_rollout(), "--out", "again")
    check("all is done" in err and not os.path.exists("again/results.times.json.plimsoll.tmp") and read("again/results.times.json") == kept, err)


def test_of_an_encoding():
    _, err = run("encode", write_encoder(count=20), "--ledger")
    t = table("out")
    names = adds_up(t)
    check("Time by component\nOf a run of encode, mean of" in err and t["first"] == 0 and t["runs"] > 0 and ("attention", "forward") in names, err, t)


def test_what_has_none():
    train()
    refused(2, "is no page", "report", "out", "--html", "out/config.yaml")
    os.remove("out/times.json")
    refused(4, "has no table of times", "report", "out", "--json")
    check("Time by component" not in run("report", "out")[0], "a table that is not there")
    refused(4, "does not exist", "report", "nowhere")
    os.makedirs("empty")
    refused(4, "holds neither a run nor results", "report", "empty")
    refused(2, "the folder of a run", "report")
    with open("out/times.json", "w") as file:
        file.write('{"schema": "plimsoll.times/1"}')
    refused(4, "no table of times of this version", "report", "out")
    with open("out/times.json", "w") as file:
        file.write("{")
    refused(4, "is no table of times", "report", "out")


if __name__ == "__main__":
    main({"times": [test_of_a_training, test_flops_are_the_plans, test_after_going_on, test_stopped, test_progress_for_programs, test_page, test_of_results, test_of_an_encoding, test_what_has_none]})

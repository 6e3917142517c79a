"""A time is always told: every example with no time to measure, the same question again, a machine that was busy, and rates that nothing exceeds. All
under clocks that are made up (tests/support/process/preload_clock.c), so that no outcome hangs on the machine. Called as cli_tests.py is."""
import glob
import json
import os
import re
import subprocess
import sys

import cli_tests
from cli_tests import Skipped, check, environment, main, read, run, write_config, write_text

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NO_TIME = "50000000000"  # nanoseconds that each look at the clock takes: measuring is over when it begins
UNTOLD = re.compile(r"unknown|not known|(?<![\w.])\?(?![\w.])")


def clocked(cache, step=None, busy=None):
    """The environment of a command whose clock is made up, with a cache of its own."""
    clock = os.environ.get("PL_PRELOAD_CLOCK")
    if not clock:
        raise Skipped("PL_PRELOAD_CLOCK does not name the clock")
    more = {"PL_PRELOAD_CLOCK_STEP_NS": step, "PL_PRELOAD_CLOCK_BUSY": busy}
    env = environment(LD_PRELOAD=clock, **{name: value for name, value in more.items() if value})
    env["XDG_CACHE_HOME"] = os.path.abspath(cache)
    return env


def settled(text):
    """Without what is not the plan's: how long placing took, and what is free."""
    return re.sub(r"in [0-9.]+ \S+\)|[0-9.]+ [kMGT]?B (of [0-9.]+ [kMGT]?B\s+)?are\s+free", "", text)


def holds(low, seconds, high):
    return low is not None and 0 < low < seconds < high


def needs(name):
    """What the example reads, small, and how it is named."""
    if name.startswith("clouds"):
        folder, height = ("flights-tiny", "48") if name == "clouds_tiny" else ("flights", "480")
        if not os.path.exists(folder):
            done = subprocess.run([cli_tests.COMMAND, "synth", "clouds", folder, "--height", height, "--width", "64"], capture_output=True, text=True,
                                  env=environment(), timeout=120)
            if done.returncode and "libhdf5" in done.stderr:
                return None
            check(done.returncode == 0, done.stderr)
        return []
    if name.startswith("chain"):
        with open("chains.jsonl", "w") as file:
            subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_chains.py"), "--count", "400", "--terms", "3", "--modulus", "10"],
                           stdout=file, check=True)
        return ["--chains", "chains.jsonl"]
    return ["--text", "text.txt"] if name in ("gpt", "tiny", "mlp", "fables", "words") else []


def of_work(plan):
    work = plan["work"]
    check(holds(work["seconds_low"], work["seconds"], work["seconds_high"]), work)
    for shape in work.get("shapes") or work["trainings"]:
        check(holds(shape["seconds_low"], shape["seconds"], shape["seconds_high"]) and not shape["measured"], shape)


def of_step(plan):
    check(holds(plan["seconds_per_step_low"], plan["seconds_per_step"], plan["seconds_per_step_high"]), plan["seconds_per_step"])
    check(abs(plan["estimated_seconds_per_step"] / plan["seconds_per_step"] - 1) < 1e-9 and plan["busy"] == 1, plan["estimated_seconds_per_step"])


def test_every_example():
    """With a cold cache and no time to measure: text, JSON and page tell a time and its interval, and that it is estimated."""
    write_text(words=20000)
    seen = 0
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.yaml"))):
        name = os.path.basename(path)[:-5]
        words = needs(name)
        if words is None:
            continue
        env, told = clocked("cache-" + name, NO_TIME), ["plan", path, *words]
        out, err = run(*told, "--html", "page.html", env=env)
        check(not UNTOLD.search(out), name, UNTOLD.search(out), out)
        check(re.search(r"Predicted: .*\(.* to .*\)", out) and "stimated" in out, name, out)
        page = read("page.html").decode()
        check("unknown" not in page and "stimated" in page, name)
        plan = json.loads(run(*told, "--json", env=env)[0])
        check("work" in plan, name)
        of_work(plan)
        if plan["seconds_per_step"]:
            of_step(plan)
        for program in plan["programs"]:
            check(program["seconds"] is None or holds(program["seconds_low"], program["seconds"], program["seconds_high"]), name, program["name"])
        seen += 1
    check(seen > 10, seen)


MODEL = {"model": {"width": 48, "layers": 2, "heads": 4}, "train": {"micro_batch": "auto", "batch_size": 16}, "run": {"threads": 2}}


def test_the_same_again():
    """However much could be measured before the time was up, whoever asks again is answered the same, also a search for the front that found nothing
    new; a question that is another one measures."""
    write_text()
    config = write_config(**{**MODEL, "model": {"width": 32, "layers": 1, "heads": 2}})
    for step in ("50000000", NO_TIME):
        env = clocked(f"cache-{step}", step)
        for words in (["plan", config], ["plan", config, "--budget", "20MB"], ["fit", config]):
            first, again = (run(*words, env=env) for _ in range(2))
            check(settled(first[0]) == settled(again[0]), step, words, first[0], again[0])
            check("measuring kernels" not in again[1], step, words, again[1])


def test_a_busy_machine():
    """Others leave the process a third of its time: it is said, the interval holds three times as long, and it stays so as long as they are there. When
    they have gone the same question measures again, once."""
    write_text()
    config = write_config(**MODEL)

    def plan(busy):
        env = clocked("cache", busy=busy)
        text, err = run("plan", config, env=env)
        told = json.loads(run("plan", config, "--json", env=env)[0])
        return told, "measuring kernels" in err, "This machine was busy" in text
    busy, measured, said = plan("3")
    check(measured and said and busy["busy"] > 2.9, measured, said, busy["busy"])
    check(busy["seconds_per_step_high"] > 2.9 * busy["seconds_per_step"] > 5 * busy["seconds_per_step_low"], busy["seconds_per_step_high"])
    factor = max(busy["seconds_per_step_high"] / busy["seconds_per_step"], busy["seconds_per_step"] / busy["seconds_per_step_low"])
    told = re.search(r"off\s+by\s+a\s+factor\s+of\s+(\d+(\.\d)?)\.", run("plan", config, env=clocked("cache", busy="3"))[0])
    check(told and abs(float(told[1]) / factor - 1) < 0.1, factor, told)
    again, measured, said = plan("3")
    check(not measured and said and again["seconds_per_step"] == busy["seconds_per_step"], measured, said)
    quiet, measured, said = plan(None)
    check(measured and not said and quiet["busy"] < 1.25, measured, said, quiet["busy"])
    check(quiet["seconds_per_step_high"] < 2 * quiet["seconds_per_step"], quiet["seconds_per_step_high"])
    check(plan(None)[1:] == (False, False), "it is measured once")


def test_nothing_exceeds_the_rates():
    """Whatever the clock made of the rates: no component takes less than its least time, or does more than all."""
    write_text()
    for i, step in enumerate((None, NO_TIME)):
        config = write_config(model={"width": 32, "layers": 1}, train={"batch_size": 4, "steps": 3}, run={"threads": 1, "out": f"out{i}"})
        run("plan", config, "--out-lock", f"lock{i}", env=clocked(f"cache{i}", step))
        out = run("train", config, "--lock", f"lock{i}", "--ledger")[1]
        times = json.loads(read(f"out{i}/times.json"))
        check(times["flops_per_second"] > 0 and times["bytes_per_second"] > 0, times)
        for row in times["components"]:
            check(0 <= row["computing_seconds"] <= row["least_seconds"] <= row["seconds"] * (1 + 1e-9), row)
        shares = [int(share) for share in re.findall(r"(\d+) % +\S+(?: .s)?$", out, re.M)]
        check(all(share <= 100 for share in shares), out)
        check(("estimated, not" in out) == (step is not None), out)


if __name__ == "__main__":
    main({"estimate": [test_every_example, test_the_same_again, test_a_busy_machine, test_nothing_exceeds_the_rates]})

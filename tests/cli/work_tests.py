"""Tests of what planning itself takes: refused at once where that is too much, as foretold where it is not; and of budgets
that no plan can have. Called as cli_tests.py is."""
import glob
import json
import os
import re
import resource
import subprocess

from cli_tests import COMMAND, Skipped, check, environment, main, needed, read, run, write_config, write_text
from said import plain

SAID = r"to plan (\d+) layers, a graph of (\d+) nodes, would take (\d+) bytes, and (.*) (\d+) bytes; take fewer model.layers: (\d+) can be planned"


def limit(data_bytes):
    return data_bytes and (lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes)))


def measured(*args, data_bytes=None):
    """Exit code, standard error and most resident bytes of the command."""
    with open("out.txt", "wb") as out, open("err.txt", "wb") as err:
        process = subprocess.Popen([COMMAND, *args], stdout=out, stderr=err, preexec_fn=limit(data_bytes), env=environment())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, read("err.txt").decode(), usage.ru_maxrss * 1024


def foretold(*args, data_bytes=None):
    code, err, bytes_ = measured(*args, data_bytes=data_bytes)
    said = re.search(SAID, plain(err))
    check(code == 3 and said, args, code, err)
    check(bytes_ < 40 << 20, args, bytes_)  # nothing was built
    return [said[4], *map(int, said.group(1, 2, 3, 5, 6))]


def test_too_deep_to_plan():
    write_text()
    config = write_config(model={"layers": 8000})
    run("plan", config, "--layers", "1")  # the text is prepared
    for command in (["plan", config], ["plan", config, "--json"], ["plan", config, "--budget", "100GB"], ["train", config],
                    ["fit", config, "--budget", "100GB"], ["verify", config], ["plan", config, "--layers", "100000"],
                    ["plan", config, "--layers", "1000", "--set", "train.layer_major=1", "--set", "train.layer_major_keep=0"]):
        foretold(*command)
    run("train", config, "--layers", "1", "--steps", "1", "--quiet", "--out", "flat")
    foretold("plan", config, "--command", "evaluate", "--layers", "100000")
    whose, layers, _, bytes_, most, fit = foretold("plan", config)
    check(whose == "planning may take at most" and layers == 8000 and most == 1 << 30 < bytes_ and 1000 < fit < 8000, whose, fit)


def test_foretold_as_it_is():
    """Refused by a limit with a figure, and planned without it in as many bytes, in as many nodes."""
    write_text()
    config = write_config()
    run("plan", config, "--layers", "1")
    deep = ["--set", "train.layer_major=1", "--set", "train.layer_major_keep=0"]
    limit = 32 << 20
    for options in (["--layers", "300"], ["--layers", "70", *deep], ["--layers", "2000", "--arch", "mlp"],
                    ["--layers", "900", "--command", "evaluate"]):
        write_config(model={"heads": None if "mlp" in options else 2})
        _, layers, nodes, bytes_, most, fits = foretold("plan", config, *options, data_bytes=limit)
        check(most == limit and fits < layers, most, fits)
        options[1] = str(fits)
        check(not re.search(SAID, plain(measured("plan", config, *options, data_bytes=limit)[1])), options)
        foretold("plan", config, "--layers", str(fits + 1), *options[2:], data_bytes=limit)
        run("plan", config, "--layers", str(layers), *options[2:])  # where kernels are measured that is memory, too
        code, err, held = measured("plan", config, "--layers", str(layers), *options[2:], "--out-lock", "lock")
        made = sum(line.startswith("node ") for line in open("lock"))
        check(code == 0, err)
        check(0.8 * made < nodes < 1.25 * made and 0.75 * held < bytes_ < 1.25 * held, options, nodes, made, bytes_, held)


def test_progress():
    """What takes long says so."""
    write_text()
    config = write_config(model={"width": 8, "heads": 2, "sequence": 8})
    _, err = run("plan", config, "--layers", "1200")
    check(err.count("planning …\n") == 1, err)
    _, err = run("plan", config, "--layers", "2")
    check("planning …" not in err, err)


FLOOR = r"no model fits: the process alone \(.*\) is charged (\d+) bytes before any"


def test_below_the_floor():
    """A budget that nothing fits into asks for no smaller model; one that a smaller model fits into does."""
    write_text()
    config = write_config()
    least = ["--width", "1", "--heads", "1", "--layers", "1", "--sequence", "1", "--feed_forward", "1"]
    run("train", config, "--steps", "1", "--quiet")
    for words in (["plan", config], ["fit", config], ["eval", "out"], ["generate", "out"],
                  ["plan", config, "--width", "4096"]):
        out, err = run(*words, "--budget", "2MB", code=3)
        floor = int(re.search(FLOOR, plain(err))[1])
        told = " ".join(out.replace(",", "").split())
        check("smaller" not in err and (words[0] != "fit" or re.search(FLOOR, told)), words, out, err)
    needs = needed(run("plan", config, *least, "--budget", "1MB", code=3)[1])
    _, err = run("plan", config, "--budget", "2MB", code=3)
    floor = int(re.search(FLOOR, plain(err))[1])
    check(floor <= needs <= floor + 1000000, floor, needs)
    check(re.search(FLOOR, plain(run("plan", config, "--budget", str(floor - 1), code=3)[1])), "a byte less than the floor")
    _, err = run("plan", config, "--budget", str(floor), code=3)
    check("no model fits" not in err and "set train.micro_batch to auto" in err, err)
    run("plan", config, *least, "--budget", str(needs))


def racing_environment():
    """Under a clock that races the time to measure soon ends. The cache is fresh."""
    clock = os.environ.get("PL_PRELOAD_CLOCK")
    if not clock:
        raise Skipped("PL_PRELOAD_CLOCK does not name the clock")
    racing = environment(LD_PRELOAD=clock, PL_PRELOAD_CLOCK_STEP_NS="20000000")
    racing["XDG_CACHE_HOME"] = os.path.abspath("fresh")
    return racing


def test_planned_once():
    """Where the time to measure ends before all is known: under a clock that races, it soon does. The next command of the
    same config measures nothing, and plans the same bytes; another config measures."""
    write_text()
    config = write_config(model={"width": 48, "layers": 2, "heads": 4}, train={"micro_batch": "auto", "batch_size": 16})
    racing = racing_environment()
    least = needed(run("plan", config, "--budget", "2MB", code=3)[1])
    search = [config, "--budget", str(least + 400000)]
    told = []
    for words in (["plan", *search, "--out-lock", "first"], ["plan", *search, "--json", "--out-lock", "second"],
                  ["train", *search, "--steps", "1", "--checkpoint_every", "1"], ["plan", *search, "--width", "44"]):
        told.append("measuring kernels" in run(*words, env=racing)[1])
    check(told == [True, False, False, True], told)
    check(read("first") == read("second"), "planned twice, the plans differ")
    arenas = [re.search(r"\narena bytes=\d+", read(name).decode())[0] for name in ("first", "out/plan.lock")]
    check(arenas[0] == arenas[1], arenas)
    check(b"finished plan" in b"".join(read(name) for name in glob.glob("fresh/*/calibration-*")), "all was measured: nothing is shown")


def test_planned_elsewhere():
    """Where threads and budget are left to the command, what one plan found finished is not so for another team, or where
    other memory is free. A limit of the process is what is free, and stays."""
    write_text()
    config = write_config(model={"width": 48, "layers": 2, "heads": 4}, train={"micro_batch": "auto", "batch_size": 16},
                          run={"threads": "auto"})
    racing = racing_environment()
    said, teams = [], []
    for budget, threads, room in (("none", "2", None), ("none", "2", None), ("none", "1", None), ("auto", "1", 64 << 20),
                                  ("auto", "1", (64 << 20) - 100000), ("auto", "1", 40 << 20)):
        out, err = run("plan", config, "--budget", budget, "--json", env={**racing, "OMP_THREAD_LIMIT": threads},
                       preexec_fn=limit(room))
        said.append("measuring kernels" in err)
        teams.append(json.loads(out)["threads"])
    other_team = teams[0] != teams[2]  # not so where there is one core
    check(said == [True, False, other_team, True, False, True], said, teams)


if __name__ == "__main__":
    main({"work": [test_too_deep_to_plan, test_foretold_as_it_is, test_progress, test_below_the_floor, test_planned_once,
                   test_planned_elsewhere]})

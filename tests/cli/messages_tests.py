"""What refusals look like: what, why and what to do in short lines, bytes grouped and with units, options that the command has; and what a
second training in a folder is told, and does. Called as cli_tests.py is."""
import json
import os
import re

from cli_tests import check, last_checkpoint, main, read, refused, run, write_config, write_text
from said import needed, unfolded


def lines_of(err):
    """Those of the refusal: from the command's name on."""
    lines = err.rstrip("\n").split("\n")
    begin = max(i for i, line in enumerate(lines) if line.startswith("plimsoll"))
    check(all(line.startswith("  ") for line in lines[begin + 1:]), err)
    return lines[begin:]


def test_budget():
    """The exact bytes run; a page less is refused with the figures."""
    write_text()
    config = write_config()
    err = run("plan", config, "--budget", "5MB", code=3)[1]
    lines = lines_of(err)
    check(2 <= len(lines) <= 4, lines)
    figures = re.match(r"plimsoll plan: the smallest plan needs ([0-9.]+) MB \(([0-9,]+) bytes\), ([0-9.]+) MB \(([0-9,]+) bytes\) more than the "
                       r"budget of 5\.00 MB \(5,000,000 bytes\)$", lines[0])
    check(figures, lines[0])
    exact, more = (int(figures[i].replace(",", "")) for i in (2, 4))
    check(exact - more == 5000000 and exact == needed(err) and abs(float(figures[1]) * 1e6 - exact) < 0.06e6, lines[0])
    check("raise the budget to" in lines[-1] and f"({exact:,} bytes)" in lines[-1], lines[-1])
    check(json.loads(run("plan", config, "--json", "--budget", str(exact))[0])["process"]["charged_bytes"] <= exact, "it does not run")
    check(all(not re.search(r"\d{5,} bytes", line) for line in lines), lines)


def test_short_stays_short():
    err = run("plan", "nosuch.yaml", code=2)[1]
    check(err.count("\n") == 1, err)


def trained(config, *words):
    run("train", config, "--quiet", *words)
    return read(f"{last_checkpoint('out')}/model.safetensors")


def test_second_training():
    write_text()
    config = write_config(train={"steps": 20})
    first = trained(config)
    refused(5, r"out: holds a run that is at step 20; go on with --resume, start over with --overwrite, or choose another folder with --out",
            "train", config)
    # What is refused leaves the run as it is.
    refused(3, "the smallest plan needs", "train", config, "--overwrite", "--budget", "5MB")
    refused(2, "--overwrite starts over and --resume goes on; give one of them", "train", config, "--overwrite", "--resume")
    check(read(f"{last_checkpoint('out')}/model.safetensors") == first, "a refused training changed the run")
    other = trained(config, "--overwrite", "--seed", "7")
    check(other != first, "another seed gave the same weights")
    check(trained(config, "--overwrite") == first, "a training in a folder that held another is not that of a new folder")
    with open("out/metrics.jsonl") as file:
        steps = [json.loads(line).get("step") for line in file]
    check(sorted(s for s in steps if s) == [s for s in steps if s] and max(s for s in steps if s) == 20, steps)
    run("train", config, "--quiet", "--resume", "--steps", "25")


def test_overwrites_less_than_before():
    """Of a run of 20 steps nothing is left behind one of 5; where there is none, it begins."""
    write_text()
    config = write_config()
    trained(config, "--overwrite")
    trained(config, "--overwrite", "--steps", "5")
    steps = sorted(name for name in os.listdir("out/checkpoints") if name.startswith("step-"))
    check(steps and steps[-1] == "step-00000005", steps)


def test_overwrites_nothing_that_it_might_need():
    """What can still be refused is refused before anything is removed: all that a folder of checkpoints holds stays."""
    write_text()
    config = write_config(train={"steps": 4})
    first = trained(config)
    run("plan", config, "--out-lock", "run.lock", "--out", "elsewhere")
    refused(2, "--overwrite plans anew and --lock runs a plan that was made; give one of them", "train", config, "--overwrite", "--lock", "run.lock")
    refused(2, "--overwrite would remove a run before it is known whether the new one can begin with ", "train", config, "--overwrite", "--init_from", "out")
    step = last_checkpoint("out")
    with open(f"{step}/notes.txt", "w") as file:
        file.write("mine")
    refused(5, r"step-\d+/notes.txt: is no part of a checkpoint, so nothing is removed; move it away", "train", config, "--overwrite")
    check(read(f"{step}/notes.txt") == b"mine" and read(f"{last_checkpoint('out')}/model.safetensors") == first, "something went")
    os.remove(f"{step}/notes.txt")
    os.rename(step, "moved")
    os.symlink(os.path.abspath("moved"), step)
    refused(5, "is a link", "train", config, "--overwrite")
    check(read("moved/model.safetensors") == first and os.path.exists("out/checkpoints/latest"), sorted(os.listdir("out/checkpoints")))
    os.remove(step)
    os.rename("moved", step)
    check(trained(config, "--overwrite") == first, "it did not begin anew")


def test_stopped_is_not_overwritten():
    """The command that goes on from there has no --overwrite in it."""
    import signal
    import subprocess
    import time

    from cli_tests import COMMAND, environment
    write_text()
    config = write_config()
    process = subprocess.Popen([COMMAND, "train", config, "--overwrite", "--steps", "100000"], stderr=subprocess.PIPE, env=environment())
    while not os.path.exists("out/checkpoints/latest"):
        check(process.poll() is None, "it ended")
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1].decode()
    check(re.search(r"train config\.yaml --steps 100000 --resume$", said, re.MULTILINE), said[-600:])


def test_begin_with_a_file():
    write_text()
    config = write_config()
    for name in ("model.pt", "there.safetensors"):
        if name.startswith("there"):
            open(name, "w").close()
        refused(4, rf"{name}: is a file, and a training begins with the folder of a run \(--init_from runs/NAME\); weights of other programs are "
                r"for models in use: export them as safetensors, which --weights takes", "train", config, "--init_from", name)
    check(not os.path.exists("out"), "a refused training left its folder")


def test_settings_are_options():
    """What the library calls by its key the command calls by its option."""
    write_text()
    config = write_config()
    trained(config)
    for words in (["train", config, "--width", "64", "--resume"], ["train", config, "--resume", "--steps", "5"], ["train", config, "--out", "none", "--resume"]):
        err = unfolded(run(*words, code={"--width": 2, "--resume": 2, "--out": 4}[words[2]])[1])
        check("--" in err and "`" not in err, words, err)


if __name__ == "__main__":
    main({"messages": [test_budget, test_short_stays_short, test_second_training, test_overwrites_less_than_before, test_overwrites_nothing_that_it_might_need, test_stopped_is_not_overwritten,
                       test_begin_with_a_file, test_settings_are_options]})

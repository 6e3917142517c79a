"""Tests of a run that goes on: what --resume refuses and what it says, what a stop leaves behind and prints, a lock that serves begin and
resume, weights without the optimizer's state. The oracle of what goes on is the run that never stopped. Called as cli_tests.py is."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess

from alive_tests import SLOW, await_text, on_terminal
from cli_tests import (COMMAND, Failed, await_event, check, environment, finish, last_checkpoint, main, metrics, read, reference, refused, run,
                       same_run, start, write_config, write_text)

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/config.md")


def in_pieces(config, *ways):
    """Trains, stopped after some steps in each of these ways. The schedule is that of all steps: pieces are made by stopping, not by --steps."""
    for words in ways:
        process = start("train", config, "--resume=auto", *words)
        try:
            await_event(process, "step", 3)
            process.send_signal(signal.SIGTERM)
        except Failed:
            pass  # it came to its end
        if finish(process) == 0:
            break
        check(process.returncode == 143, words, "ended with", process.returncode)


def test_resume_in_pieces():
    config = write_config()
    reference(config)
    in_pieces(config, [], ["--no-tensorboard"], ["--micro_batch", "2"], ["--threads", "2"])
    run("train", config, "--resume", "--quiet")
    same_run("whole", "out")


def test_killed_while_records_are_written():
    """What a kill left of them goes with the next command that works in the folder, though it has nothing to do; what is nobody's stays."""
    config = write_config()
    reference(config)
    shutil.copytree("whole", "out")
    for name in ("times.json", "report.json", "plan.lock", "dump-plan.txt", "mine.txt"):
        with open(f"out/{name}.plimsoll.tmp", "w") as file:
            file.write("half of it")
    run("train", config, "--resume", "--quiet")
    same_run("whole", "out")
    check([n for n in os.listdir("out") if n.endswith(".tmp")] == ["mine.txt.plimsoll.tmp"], os.listdir("out"))


def test_nothing_to_go_on_from():
    write_text()
    config = write_config()
    sentence = r"out: holds no checkpoint to go on from; leave --resume out to begin, or give --resume=auto"
    for words in (["train"], ["plan"], ["fit"]):
        refused(4, sentence, *words, config, "--resume")
        check(not os.path.exists("out"), words, "made a folder")
    run("train", config, "--quiet", "--steps", "20", "--resume=auto")
    run("train", config, "--quiet", "--resume=auto", "--steps", "40")
    check([m["step"] for m in metrics("out") if "loss" in m][-1] == 40, "auto does not go on")
    run("plan", config, "--resume", "--json")
    # Stopped before its first checkpoint is not begun, either.
    process = start("train", config, "--out", "early", "--steps", "100000", "--checkpoint_every", "1000000", "--eval_every", "1000000")
    await_event(process, "step")
    process.kill()
    finish(process)
    refused(4, "early: holds no checkpoint", "train", config, "--out", "early", "--resume")
    with open("resume.yaml", "w") as file:
        file.write(read(config).decode() + "  resume: auto\n")
    run("train", "resume.yaml", "--out", "early", "--quiet", "--steps", "20")


def test_past_its_end():
    write_text()
    config = write_config(train={"steps": 40, "checkpoint_every": 40, "eval_every": 40})
    run("train", config, "--quiet")
    before = {n: read(f"out/{n}") for n in ("config.yaml", "plan.lock", "metrics.jsonl", "report.json")}
    for command in ("train", "plan", "fit"):
        refused(2, r"out: holds a run that is at step 40, past the 20 steps asked for in all; .*--steps.*--out", command, config, "--resume",
                "--steps", "20")
    check(before == {n: read(f"out/{n}") for n in before}, "a refused resume changed files")
    _, err = run("train", config, "--resume")
    check("nothing was left to do: all 40 steps were made before; --steps N" in err, err)
    _, err = run("train", config, "--resume", "--learning_rate", "0.5")
    check("going on" not in err and read("out/config.yaml") == before["config.yaml"], "nothing was trained with another rate:", err)
    _, err = run("train", config, "--resume=auto", "--progress", "json")
    check("nothing was left" not in err, err)
    # How many steps an epoch has only the tokens tell.
    write_text("short.txt", words=300)
    config = write_config(data={"text": "short.txt"}, train={"steps": "auto", "epochs": 2, "checkpoint_every": 5, "eval_every": 5})
    run("train", config, "--quiet", "--out", "epochs")
    refused(2, r"epochs: holds a run that is at step \d+, past the \d+ steps asked for in all", "train", config, "--resume", "--epochs", "1", "--out", "epochs")


# No training of a text reads them: what a rollout's results hold against a config, its own tests try. Names are no keys.
OF_OTHERS = ("outside", "texts", "encoder", "pipeline", "quantization", "metadata", "arrays", "parameter_space", "sampling", "simulation", "dataset", "logging", "Other names",
             "vision_encoder", "reasoning", "latent_planning", "reading", "denoiser", "page_policy", "n2n_pretrain", "task_training", "finetune", "chain")


def documented():
    """Every key of trained systems that decides numbers, as docs/config.md has it: section.key → may it change?"""
    section, found = "", {}
    for line in read(DOCUMENT).decode().splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = re.split(r"(?<!\\)\|", line)
        if section.strip("()").split(".")[0] in OF_OTHERS:
            continue
        if line.startswith("| `") and cells[-2].strip() not in ("", "model"):
            found[f"{section}.{cells[1].strip().strip('`')}"] = cells[-2].strip() == "numbers"
    return found


CHANGED = {"model.dropout": "0.1", "data.format": "plain", "model.init_std": "0.03", "data.validation_fraction": "0.1", "train.batch_size": "4", "train.gradient_accumulation_steps": "3", "train.steps": "61",
           "train.epochs": "3", "train.learning_rate": "0.0025", "train.schedule": "plateau", "train.min_lr_ratio": "0.2", "train.warmup_steps": "7",
           "train.plateau_patience": "5", "train.plateau_factor": "0.25", "train.optimizer": "adam_atan2", "train.optimizer_state": "bf16", "train.ema_rate": "0.5", "train.beta1": "0.8", "train.beta2": "0.9",
           "train.epsilon": "1e-07", "train.weight_decay": "0.2", "train.grad_clip": "1.5", "train.mixed_precision": "bf16", "train.shared_sums": "on", "train.seed": "9",
           "train.early_stopping_patience": "70", "train.early_stopping_min_delta": "0.125", "fit.allow": "bf16"}


def test_what_may_change():
    """The last column of docs/config.md is what happens, key by key."""
    write_text()
    write_text("other.txt", seed=6)
    config = write_config(train={"steps": 40, "log_every": 1, "micro_batch": 4})
    run("train", config, "--quiet")
    before = {n: read(f"out/{n}") for n in ("config.yaml", "plan.lock", "metrics.jsonl")}
    rules = documented()
    # run.precision decides what encode makes of a trained model; no training reads it.
    check(set(rules) - set(CHANGED) == {"data.text", "data.key", "train.init_from", "run.precision"}, "keys without a value to change to:", set(rules) ^ set(CHANGED))
    settled, free = ([key for key, may in rules.items() if may == which and key in CHANGED] for which in (False, True))
    check("train.seed" in settled and "train.learning_rate" in free, rules)
    for key in settled:
        refused(2, rf"--set {key}: {re.escape(key)} is \S+ here and \S+ in the saved run, which keeps it from its first step to its last; set it back",
                "train", config, "--resume", "--steps", "60", "--set", f"{key}={CHANGED[key]}")
    refused(2, "train.seed is 9 here and 1", "plan", config, "--resume", "--seed", "9")
    refused(2, "other.txt: is not the text", "train", config, "--resume", "--steps", "60", "--text", "other.txt")
    check(before == {n: read(f"out/{n}") for n in before}, "a refused resume changed files")
    words = [word for key in free for word in ("--set", f"{key}={CHANGED[key]}")]
    _, err = run("train", config, "--resume", *words)
    said = re.search(r"; going on from step 40 with (.*)\n", err)
    check(said, err)
    for key in free:
        check(re.search(rf"(^|, ){re.escape(key)} {re.escape(CHANGED[key])} \(\S+ before\)(,|$)", said[1]), key, "is not said:", said[1])
    check(len(said[1].split("), ")) == len(free), said[1])
    rate = {m["step"]: m["lr"] for m in metrics("out") if "lr" in m}
    check(len(rate) == 61 and abs(rate[41] / 0.0025 - 1) < 1e-6, "the new rate is not taken", rate)
    # Now they are the run's: nothing is new, and the old ones would be.
    _, err = run("train", "out", "--resume", "--steps", "62")
    check("going on from step 61 with train.steps 62 (61 before)\n" in err, err)
    _, err = run("train", config, "--resume", "--steps", "63")
    check("train.learning_rate 0.003 (0.0025 before)" in err and "train.mixed_precision off (bf16 before)" in err, err)


def go_on(err):
    """The command that was printed after a stop."""
    found = re.search(r"Resume with:\r?\n  (.*?)\r?\n", err)
    check(found, "no command to go on with:", err)
    return found[1]


def in_shell(command, env=None):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env or environment(), timeout=120)
    check(done.returncode == 0, command, "gave", done.returncode, done.stderr)
    return done.stderr


def stop(*words, env=None, code=143):
    process = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env or environment())
    begins = await_text(process, rb"step +\d+/")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1].decode()
    check(process.returncode == code, process.returncode, said)
    return said


def test_changes_are_those_since_the_checkpoint_that_is_taken():
    """The latest checkpoint is damaged: what is another value than in the one before it is said, not than in the latest."""
    write_text()
    config = write_config(train={"steps": 4, "checkpoint_every": 4, "eval_every": 4, "schedule": "constant"})
    run("train", config, "--quiet")
    run("train", config, "--quiet", "--resume", "--steps", "8", "--learning_rate", "1e-3")
    with open("out/checkpoints/step-00000008/model.safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    _, err = run("train", config, "--resume", "--steps", "9", "--learning_rate", "1e-3")
    said = " ".join(err.split())
    check("going on from step 4 with" in said and "train.learning_rate 0.001 (0.003 before)" in said and "train.steps 9 (4 before)" in said, err)


def test_command_that_goes_on():
    """As printed, a shell takes it: the same config, options, variables, lock and folder."""
    write_text()
    os.makedirs("a folder")
    odd = "a folder/it's $HOME\n\x1b[1m \\ é.yaml"
    config = write_config(odd, train={"steps": 20000, "log_every": 50, "checkpoint_every": 5000, "eval_every": 5000})
    env = environment(PLIMSOLL_TRAIN_WEIGHT_DECAY="0.05", PLIMSOLL_GENERATE_PROMPT="a b", PLIMSOLL_SERVICE_HOST="10.0.0.11", PLIMSOLL_PORT="tcp://10.0.0.11:80")
    said = stop("train", config, "--out", "o ut", "--set", "train.beta2=0.9", "--learning_rate", "0.002", "--progress", "plain", env=env)
    check("the state is saved. Resume with:\n" in said, said)
    command = go_on(said)
    check(command.endswith(" --resume") and "PLIMSOLL_TRAIN_WEIGHT_DECAY=0.05 PLIMSOLL_GENERATE_PROMPT='a b' " in command, command)
    check("PLIMSOLL_SERVICE_HOST" not in command and "PLIMSOLL_PORT" not in command, "what Kubernetes injects is printed:", command)
    check(not re.search(r"[\x00-\x1f\x7f]", command), "what acts on a terminal is printed:", repr(command))
    step = int(re.search(r"stopped at step (\d+) of", said)[1])
    err = in_shell(f"{command} --steps {step + 5}")
    check(re.search(rf"going on from step {step} with train.steps {step + 5} \(20000 before\)\n", err), err)
    # Behind "--" nothing is an option; what resumes already is printed as it was.
    said = stop("train", "--out", "second", "--steps", "100000", "--", write_config())
    check(" --resume -- config.yaml" in go_on(said), said)
    said = stop("train", "config.yaml", "--out=second", "--steps=100000", "--resume=auto")
    check(go_on(said) == shlex.join([COMMAND, "train", "config.yaml", "--out=second", "--steps=100000", "--resume=auto"]), said)
    # For programs it is in the event.
    process = start("train", "config.yaml", "--out", "json", "--steps", "100000", "--seed", "1")
    await_event(process, "step")
    process.send_signal(signal.SIGTERM)
    events = [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]
    stopped = next(event for event in events if event["event"] == "stopped")
    words = ["train", "config.yaml", "--out", "json", "--steps", "100000", "--seed", "1", "--progress", "json", "--resume"]
    check(stopped["go_on"] == shlex.join([COMMAND, *words]), stopped)
    lines = run(*words, "--steps", str(stopped["step"] + 5), "--learning_rate", "0.5")[0].splitlines()
    check("train.learning_rate 0.5 (0.003 before)" in json.loads(lines[0])["changed"], lines[0])
    # Too long to be printed whole, it is not printed.
    said = stop("train", "config.yaml", "--out", "long", *["--steps", "100000"] * 600)
    check("the state is saved\n" in said and "Go on with" not in said, said)


def second_signal(*words):
    """On a terminal: exit code, and what was said from the first signal on."""
    code, text = on_terminal(100, [-signal.SIGINT, -signal.SIGINT], "train", *words, "--progress", "bar")
    return code, text


def test_second_signal():
    """It leaves at once, on a line of its own, and tells what there is to go on with."""
    write_text()
    # A step that outlasts the test on any machine: nothing may be saved before the second signal.
    code, said = second_signal(write_config("endless.yaml", train={**SLOW, "batch_size": 1 << 22}), "--out", "endless")
    check(code == 1, "nothing can be resumed, and the exit code is", code, said)
    check(said.endswith("\r\nexited at once: nothing was saved yet, so there is nothing to resume; start again\r\n"), repr(said[-400:]))
    check(re.search(r"\d/100000[^\n]*\n<acted>\n(\^C)?\r\nexited at once", said), "the bar's line is not ended:", repr(said[-400:]))
    # With a checkpoint, which a stop leaves.
    config = write_config(train={**SLOW, "batch_size": 1 << 17})
    process = start("train", config, "--out", "saved")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    finish(process)
    if not os.path.exists("saved/checkpoints/latest"):
        raise Failed("no checkpoint of the first step")
    code, said = second_signal(config, "--out", "saved", "--resume")
    check(code == 130, code, said)
    check("exited at once: what came after the checkpoint of step " in said and go_on(said).endswith("--resume --progress bar"), repr(said[-600:]))


def kill_at(event, count, *words):
    process = start(*words)
    await_event(process, event, count)
    process.kill()
    finish(process)


def test_lock_serves_a_resume():
    """Killed under a lock, a run goes on under the same lock, and under the one in its folder: nothing is planned, the memory is as planned."""
    config = write_config(train={"steps": 400, "checkpoint_every": 20})
    reference(config)
    run("fit", config, "--quiet", "--lock", "the.lock")
    begin = ("train", config, "--lock", "the.lock")
    refused(4, "holds no checkpoint to go on from", *begin, "--resume")
    kill_at("saved", 2, *begin, "--resume=auto")
    refused(5, "out: holds a run that is at step", *begin)
    for words in (begin, ("train", config, "--lock", "out/plan.lock"), ("train", "out", "--lock", "out/plan.lock"),
                  ("train", os.path.abspath("out"), "--lock", "the.lock"), ("train", config, "--lock", os.path.abspath("out/plan.lock"))):
        kill_at("saved", 2, *words, "--resume")
        check(read("out/plan.lock") == read("the.lock"), "another plan ran than was locked")
    empty = {**environment(), "XDG_CACHE_HOME": os.path.abspath("empty")}
    _, err = run(*begin, "--resume=auto", env=empty)
    check("as planned before" in err and "measuring" not in err and not os.listdir("empty/plimsoll"), err, os.listdir("empty/plimsoll"))
    report = json.loads(read("out/report.json"))
    check(report["as_planned"], report)
    same_run("whole", "out")
    refused(2, "train.seed is 3 here and 1 in the saved run", *begin, "--resume", "--seed", "3")
    refused(2, "run.out is .other., but the plan was made for .out.", *begin, "--resume=auto", "--out", "other")


def test_lock_of_a_resumed_run():
    """A plan that was made for a run that goes on serves one that begins, too, and says nothing about it."""
    config = write_config(train={"steps": 40})
    reference(config)
    run("train", config, "--quiet", "--steps", "20")
    run("plan", config, "--resume", "--out-lock", "later.lock")
    run("train", config, "--quiet", "--lock", "later.lock", "--resume")
    shutil.rmtree("out")
    run("train", config, "--quiet", "--lock", "later.lock")
    same_run("whole", "out")


def test_a_checkpoint_that_was_moved():
    """A link stands in its place: it is resumed from, neither it nor what it leads to is removed, and it counts for no other."""
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--steps", "20", "--checkpoint_every", "5", "--keep_last", "2")
    os.mkdir("big")
    shutil.move("out/checkpoints/step-00000020", "big/step-00000020")
    os.symlink(os.path.abspath("big/step-00000020"), "out/checkpoints/step-00000020")
    moved = {name: read(f"big/step-00000020/{name}") for name in os.listdir("big/step-00000020")}
    shutil.move("out/checkpoints", "big/checkpoints")  # and their folder
    os.symlink("../big/checkpoints", "out/checkpoints")
    words = ("train", config, "--quiet", "--checkpoint_every", "5", "--keep_last", "2", "--resume", "--steps")
    said = run(*words, "40")[1]
    check(said.count("step-00000020 is a link, or has one in it: left alone") == 1, said)
    check({name: read(f"big/step-00000020/{name}") for name in os.listdir("big/step-00000020")} == moved, "what was moved was touched")
    kept = {name for name in os.listdir("big/checkpoints") if name.startswith("step-")}
    best = "step-" + read("out/checkpoints/best").decode().strip()[5:]
    check(kept == {"step-00000020", "step-00000035", "step-00000040", best}, kept)
    os.rename("out/checkpoints/step-00000020", "out/checkpoints/step-00000020.tmp")  # as builds before left it
    run(*words, "50")
    check({name: read(f"big/step-00000020/{name}") for name in os.listdir("big/step-00000020")} == moved, "what was moved was touched")


def test_weights_alone():
    """eval and generate need no optimizer state; training does, and takes the checkpoint before."""
    write_text()
    config = write_config(train={"steps": 40, "checkpoint_every": 20})
    run("train", config, "--quiet")
    evaluated, text = run("eval", "out", "--json")[0], run("generate", "out")[0]
    checkpoint = last_checkpoint("out")
    for name in os.listdir("out/checkpoints"):
        if name.startswith("step-"):
            os.rename(f"out/checkpoints/{name}/state.safetensors", f"{name}.state")
    check(run("eval", "out", "--json") == (evaluated, ""), "eval")
    check(run("generate", "out")[0] == text, "generate")
    shutil.copytree(checkpoint, "published")
    check(run("eval", "out", "--json", "--checkpoint", "published")[0] == evaluated, "eval --checkpoint")
    check(run("generate", "out", "--checkpoint", "published")[0] == text, "generate --checkpoint")
    run("verify", "--gradients", "g.safetensors", "out", "--checkpoint", "published")
    refused(4, r"no sound checkpoint is left: .*step-00000040/state.safetensors: is missing, and training cannot go on from weights alone", "train",
            config, "--resume", "--steps", "60")
    os.rename("step-00000020.state", "out/checkpoints/step-00000020/state.safetensors")
    _, err = run("train", config, "--resume", "--quiet", "--steps", "60")
    check(re.search(r"warning: .*step-00000040/state.safetensors: is missing, .*; step 20 is used instead", err), err)


GROUPS = {"resume": [test_nothing_to_go_on_from, test_resume_in_pieces, test_killed_while_records_are_written, test_past_its_end, test_what_may_change,
                     test_changes_are_those_since_the_checkpoint_that_is_taken, test_command_that_goes_on, test_second_signal,
                     test_lock_serves_a_resume, test_lock_of_a_resumed_run, test_a_checkpoint_that_was_moved,
                     test_weights_alone]}

if __name__ == "__main__":
    main(GROUPS)

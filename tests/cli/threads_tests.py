"""More threads than any machine of ours has cores: the same bits as with one, memory as planned to the byte, and a system that
refuses them is a sentence. Called as cli_tests.py is."""
import json
import os
import shutil
import subprocess

from cli_tests import COMMAND, Skipped, check, environment, main, read, run, write_config, write_text
from encode_tests import write_encoder
from rollout_tests import write_rollout

MANY = ("65", "128", "512")
CLOCK = os.environ.get("PL_PRELOAD_CLOCK")  # of tests/support/process: measuring kernels takes no time
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def with_clock():
    return environment(**({"LD_PRELOAD": CLOCK} if CLOCK else {}))


def trained(config, threads, *words):
    """The weights, and what was held: as planned, else the exit code were another."""
    out = f"out{threads}"
    run("plan", config, "--threads", threads, *words, env=with_clock())  # kernels are known, then
    run("train", config, "--quiet", "--threads", threads, "--out", out, *words)
    report = json.loads(read(f"{out}/report.json"))
    check(report["as_planned"] and report["difference_bytes"] == 0, threads, report["planned_bytes"], report["measured_bytes"])
    newest = sorted(os.listdir(f"{out}/checkpoints"))[-1]
    return read(f"{out}/checkpoints/{newest}/model.safetensors"), report["measured_bytes"]


def test_training():
    """A step wakes the team: its products are large enough for it, at 512 threads too."""
    write_text()
    config = write_config(model={"width": 64, "heads": 2, "sequence": 32}, train={"steps": 4, "eval_every": 4, "checkpoint_every": 4})
    weights, held = trained(config, "1")
    for threads in MANY:
        others, more = trained(config, threads)
        check(others == weights, "other bits with", threads)
        check(more - held >= (int(threads) - 1) * 65536, "the stacks of", threads, "are not counted:", more, held)


def test_perceptron():
    write_text()
    config = write_config(model={"arch": "mlp", "width": 32, "heads": None, "sequence": 8}, train={"steps": 4})
    weights, _ = trained(config, "1")
    check(all(trained(config, threads)[0] == weights for threads in MANY), "other bits")


def test_rollout():
    made = {}
    for threads in ("1", "65", "512"):
        config = write_rollout()
        _, err = run("rollout", config, "--threads", threads, "--out", f"out{threads}")
        check("As planned, to the byte." in err, threads, err[-1500:])
        run("results", "export", f"out{threads}/results.blocks", "--dataset", "outputs/fields", "--out", "fields.npy")
        made[threads] = read("fields.npy")
    check(len(set(made.values())) == 1, "other bits")


def test_encoding():
    """Also with many threads that draw."""
    made = {}
    for threads, workers in (("1", "1"), ("65", "65"), ("512", "2")):
        out = f"out{threads}"
        _, err = run("encode", write_encoder(count=8), "--threads", threads, "--num_workers", workers, "--out", out)
        check("As planned, to the byte." in err, threads, err[-1500:])
        run("results", "export", f"{out}/results.blocks", "--dataset", "sketches", "--out", "sketches.npy")
        made[threads] = read("sketches.npy")
    check(len(set(made.values())) == 1, "other bits")


def test_system_that_refuses():
    """What was planned where there were no limits is refused by the runner, before anything is written."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skipped("root has no limit of processes, and there is no setpriv")
    write_text()
    config = write_config()
    run("plan", config, "--threads", "512", "--out", "of_nobody/out", env=with_clock())
    run("plan", config, "--threads", "512", "--out", "of_nobody/out", "--out-lock", "plan.lock")
    os.makedirs("of_nobody/out", exist_ok=True)
    subprocess.run(["chmod", "-R", "a+rwX", "."], check=True)
    env = {k: v for k, v in environment(HOME="/nonexistent").items() if k != "XDG_CACHE_HOME"}
    words = ["train", config, "--threads", "512", "--lock", "plan.lock", "--out", "of_nobody/out"]
    done = subprocess.run([*(NOBODY if os.geteuid() == 0 else []), "bash", "-c", 'ulimit -u 100; exec "$@"', "bash", COMMAND, *words], capture_output=True, text=True,
                          env=env, timeout=60)
    if done.returncode in (126, 127) or "setpriv" in done.stderr:
        raise Skipped("the command cannot be started as nobody: " + done.stderr)
    check(done.returncode == 1 and "the system refuses thread" in done.stderr and "of 513" in done.stderr and "give --threads" in done.stderr
          and "pids.max" in done.stderr and "libgomp" not in done.stderr, done.returncode, done.stderr)


if __name__ == "__main__":
    main({"threads": [test_training, test_perceptron, test_rollout, test_encoding, test_system_that_refuses]})

"""Tests of docs/cluster.md: its scripts are run as they stand there, with stand-ins for what only a cluster has. Called as
cli_tests.py is."""
import os
import shutil
import subprocess

from cli_tests import COMMAND, Skipped, check, environment, main, read, refused, run, write_config, write_text
from rollout_tests import write_rollout

PARTS = 8
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cluster.md")


def block(first):
    """The indented block of the page that begins with this line."""
    lines = read(PAGE).decode().split("\n")
    begin = end = next(i for i, line in enumerate(lines) if line.startswith("    " + first))
    while lines[end].startswith("    "):
        end += 1
    return "\n".join(line[4:] for line in lines[begin:end]) + "\n"


def stand_in(name, text):
    os.makedirs("bin", exist_ok=True)
    with open(f"bin/{name}", "w") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(f"bin/{name}", 0o755)


def prepare():
    """Eight operators, a whole run of them, and `plimsoll` as scripts call it."""
    write_rollout("rollout.yaml", sampling={"total_samples": PARTS}, dataset={"storage": "{backend: hdf5}"})
    stand_in("plimsoll", f'exec "{COMMAND}" "$@"\n')
    whole = subprocess.run([COMMAND, "rollout", "rollout.yaml", "--quiet", "--out", "whole"], capture_output=True, text=True, env=environment())
    if whole.returncode and "libhdf5" in whole.stderr:
        raise Skipped(whole.stderr.strip())
    check(whole.returncode == 0, whole.stderr)


def do(script, code=0, **variables):
    """By bash, which shellcheck, where it is there, has nothing to say against."""
    with open("script", "w") as file:
        file.write(script)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-s", "bash", "script"], capture_output=True, text=True)
        check(done.returncode == 0, done.stdout)
    path = f"{os.path.abspath('bin')}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "script"], capture_output=True, text=True, timeout=120,
                          env=environment(PATH=path, PLIMSOLL_RUN_OUT="rollout", **variables))
    check(done.returncode == code, script, done.returncode, done.stderr)
    return done.stdout


def check_joined():
    """Each part has what the whole run has of its operator, and all are joined."""
    check(os.path.getsize("all.h5") > 1000, "not joined")
    for part in range(PARTS):
        run("results", "export", f"rollout/results-{part + 1}-of-{PARTS}.h5", "--dataset", "outputs/fields", "--out", "part.npy")
        run("results", "export", "whole/results.h5", "--dataset", "outputs/fields", "--at", str(part), "--out", "whole.npy")
        check(read("part.npy") == read("whole.npy"), "part", part + 1, "differs")


def test_slurm():
    prepare()
    stand_in("srun", '[ -z "$STOPPED_WITH" ] || exit "$STOPPED_WITH"\nexec "$@"\n')
    stand_in("scontrol", 'echo "$*"\n')
    stand_in("sbatch", f"""export SLURM_ARRAY_JOB_ID=11 SLURM_CPUS_PER_TASK=1
for word; do case $word in --wrap=*) exec sh -c "${{word#--wrap=}}" ;; esac; done
for task in $(seq {PARTS}); do SLURM_ARRAY_TASK_ID=$task bash "$word" >&2 || exit; done
echo 11
""")
    script = block("#!/bin/bash")
    check(f"#SBATCH --array=1-{PARTS}\n" in script and f"parts={PARTS}\n" in script, script)
    with open("rollout.sbatch", "w") as file:
        file.write(script)
    do(block("id=$(sbatch"))
    check_joined()
    task = {"SLURM_ARRAY_JOB_ID": "11", "SLURM_ARRAY_TASK_ID": "3", "SLURM_CPUS_PER_TASK": "1"}
    for code, requeued in ((143, True), (130, True), (75, True), (137, False), (2, False), (5, False)):
        check(do(script, code=code, STOPPED_WITH=str(code), **task) == ("requeue 11_3\n" if requeued else ""), code, "requeued or not")


def test_kubernetes():
    try:
        import yaml
    except ImportError:
        raise Skipped("no PyYAML")
    prepare()
    job = yaml.safe_load(block("apiVersion: batch/v1"))["spec"]
    container, = job["template"]["spec"]["containers"]
    check(job["completionMode"] == "Indexed" and job["completions"] == PARTS, job)
    check(container["command"] == ["sh", "-c"] and len(container["args"]) == 1, container)
    for index in range(PARTS):
        do(container["args"][0], JOB_COMPLETION_INDEX=str(index))
    do("plimsoll results join all.h5 rollout/results-*-of-8.h5\n")
    check_joined()


def test_parallel():
    if not shutil.which("parallel"):
        raise Skipped("no GNU parallel")
    prepare()
    do(block("seq 8 | parallel"))
    check_joined()
    do(block("seq 8 | parallel").replace("all.h5", "again.h5"))
    memory = int(do(block("for part in 1 2").replace("| jq --slurp 'map(.process.charged_bytes) | max'", "| grep -m 1 -o '\"charged_bytes\": [0-9]*'")).split()[-1])
    check(8000000 < memory < 100000000, memory)


def test_service():
    """A Service called plimsoll in the namespace: what it puts into each pod changes nothing; a misspelled variable next to it is still
    refused."""
    write_text()
    service = {"PLIMSOLL_SERVICE_HOST": "10.0.0.11", "PLIMSOLL_SERVICE_PORT": "80", "PLIMSOLL_SERVICE_PORT_HTTP": "80",
               "PLIMSOLL_PORT": "tcp://10.0.0.11:80", "PLIMSOLL_PORT_80_TCP": "tcp://10.0.0.11:80", "PLIMSOLL_PORT_80_TCP_PROTO": "tcp",
               "PLIMSOLL_PORT_80_TCP_PORT": "80", "PLIMSOLL_PORT_80_TCP_ADDR": "10.0.0.11"}
    config = write_config(train={"steps": 4, "eval_every": 2})
    wanted = run("config", config)[0]
    check(run("config", config, env=environment(**service))[0] == wanted, "the service set a key")
    check("batch_size: 4" in run("config", config, env=environment(**service, PLIMSOLL_BATCH_SIZE="4"))[0], "a key is no longer set")
    run("train", config, "--quiet", env=environment(**service))
    refused(2, r"PLIMSOLL_WIDHT.*did you mean PLIMSOLL_WIDTH", "train", config, env=environment(**service, PLIMSOLL_WIDHT="3"))
    refused(2, r"PLIMSOLL_PORT is not one", "train", config, env=environment(**{**service, "PLIMSOLL_PORT": "80"}))


if __name__ == "__main__":
    main({"cluster": [test_slurm, test_kubernetes, test_parallel, test_service]})

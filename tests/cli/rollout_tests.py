"""Tests of rollouts: what comes out against a second program (rollout_oracle.py), that its bits hang on nothing but the
config, that memory is as planned, and what bad input is answered. Called as cli_tests.py is."""
import filecmp
import json
import operator
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

from cli_tests import COMMAND, SEED, Skipped, check, environment, finish, main, read, refused, run
from soak import share_of
from said import plain
from rollout_oracle import Witness, load_npy

DRAW = random.Random(SEED)
GROUP = {"num_layers": "architecture", "dropout_rate": "architecture", "base_channels": "architecture", "kernel_size": "architecture", "activation": "architecture",
         "noise_type": "stochastic", "noise_scale": "stochastic", "noise_schedule": "stochastic", "spatial_correlation": "stochastic",
         "normalization": "operator", "grid_size": "operator", "update_policy": "evolution"}
SMALL = {"num_layers": [2], "base_channels": [4], "kernel_size": [3], "grid_size": [8], "noise_scale": [0.01], "spatial_correlation": [0]}
FORMS = {"native": "results.blocks", "hdf5": "results.h5", "npy": "results"}


def write_rollout(path="rollout.yaml", space=None, sampling=None, simulation=None, dataset=None, more="", arch="cnn_operator"):
    """A dimension is its choices, or text as it is, or None: what the arch does not have."""
    text = f"model:\n  arch: {arch}\nparameter_space:\n"
    dimensions = {name: value for name, value in {**SMALL, **(space or {})}.items() if value is not None}
    for group in ("architecture", "stochastic", "operator", "evolution"):
        text += f"  {group}:\n" if any(GROUP[name] == group for name in dimensions) else ""
        for name, value in dimensions.items():
            if GROUP[name] == group:
                choices = value if isinstance(value, str) else f"{{type: choice, choices: [{', '.join(map(str, value))}]}}"
                text += f"    {name}: {choices}\n"
    sections = {"sampling": {"total_samples": 1, "validation": "{check_discrepancy: false, check_correlation: false}", **(sampling or {})},
                "simulation": {"num_realizations": 1, "num_timesteps": 4, "seed": 1, **(simulation or {})},
                "dataset": {"store": "both", **(dataset or {})}, "run": {"threads": 1, "out": "out"}}
    for name, keys in sections.items():
        text += f"{name}:\n" + "".join(f"  {k}: {v}\n" for k, v in keys.items())
    with open(path, "w") as file:
        file.write(text + more)
    return path


def witness(config, folder, *words):
    run("rollout", config, "--witness", folder, *words)
    return Witness(folder)


# ---- against another program ----

# Of a step, of three, of metrics. A channel that is nearly constant is divided by as little as the root of the norm's 1e-5, and
# rounding with it; the next step does so again.
BOUNDS = 1e-4, 1e-2, 1e-5


def random_case(i):
    """Every policy with every noise and every post-process, whatever the seed; the rest is drawn."""
    space = {"num_layers": [(2, 4)[(i // 2) % 2]], "kernel_size": [(3, 5)[i % 2]], "base_channels": [DRAW.choice((1, 2, 3, 5))],
             "grid_size": [DRAW.randint(8, 11)], "update_policy": [("autoregressive", "residual", "convex")[i % 3]],
             "noise_type": [("gaussian", "laplace", "multiplicative", "dropout")[i % 4]],
             "noise_schedule": [DRAW.choice(("constant", "annealing", "periodic"))],
             "noise_scale": [round(DRAW.uniform(0.01, 0.5), 3)], "spatial_correlation": [DRAW.choice((0, 0.2))],
             "activation": [DRAW.choice(("gelu", "gelu", "silu", "tanh", "relu"))], "normalization": [DRAW.choice(("instance", "group", "batch"))]}
    if i % 3 == 2:
        space["dropout_rate"] = [round(DRAW.uniform(0.1, 0.6), 2)]
    update = {"post_process": ("none", "minmax", "zscore")[i // 3 % 3], "dt": DRAW.choice((0.01, 0.5)), "alpha": DRAW.choice((0.2, 0.5))}
    if DRAW.random() < 0.3:
        update["clamp"] = "[-1, 0.9]"
    return space, {"seed": DRAW.randrange(1 << 30), "num_timesteps": 9, "rollout_dropout": str("dropout_rate" in space).lower(), "update": "{" + ", ".join(f"{k}: {v}" for k, v in update.items()) + "}"}


def repeats(config, *words, bounds=BOUNDS):
    w = witness(config, "witness", "--steps", "3", *words)
    check(f"arch: {w.parameters['arch']}\n" in read(config).decode(), w.parameters)
    found = [*w.repeat(), w.repeat_metrics()]
    shutil.rmtree("witness")
    check(all(map(operator.lt, found, bounds)), "a step, all steps and metrics differ by", found, w.parameters, read(config).decode())
    return found


def test_another_program_repeats_it():
    worst = [0, 0, 0]
    for i in range(12):
        space, simulation = random_case(i)
        worst = list(map(max, worst, repeats(write_rollout(space=space, simulation=simulation))))
    # A kernel that is wider than the field reaches beyond it on all sides.
    wide = write_rollout(space={"kernel_size": [15], "grid_size": [4], "update_policy": ["autoregressive"]})
    print("a step differs by %.1e, three by %.1e, metrics by %.1e" % tuple(map(max, worst, repeats(wide))))


def test_features():
    """Fields so small that the norm's 1e-5 counts: there a gain is not 1."""
    farthest = 0
    for layers, norm in ((2, "instance"), (4, "group"), (1, "instance")):
        w = witness(write_rollout(space={"num_layers": [layers], "normalization": [norm], "noise_scale": [0.5], "base_channels": [6]},
                                  simulation={"seed": DRAW.randrange(1 << 30), "input_generation": "{variance: 1e-8}"}), f"w{layers}")
        gains, ratio = w.repeat_features()
        told = w.parameters["features"]
        check(gains < 1e-5 and ratio < 3, "gains differ by", gains, "and the answers to small changes by a factor of", ratio, told)
        farthest = max(farthest, *(abs(told[f"gain_scale_{s}"] - 1) for s in ("0.50", "0.75", "1.25", "1.50")))
    check(farthest > 5e-5, "gains of 1 tell nothing:", farthest)


def test_another_program_repeats_other_kinds():
    """U-Nets and Fourier operators, as small as they can be; norms over four pixels, at the bottom of that U-Net, magnify rounding."""
    unet = {"num_layers": None, "kernel_size": [DRAW.choice((3, 5))], "base_channels": [1], "grid_size": [16],
            "normalization": [DRAW.choice(("instance", "group"))], "activation": [DRAW.choice(("gelu", "tanh"))],
            "update_policy": ["convex"], "noise_scale": [0.1], "dropout_rate": [0.3]}
    fourier = {"num_layers": [DRAW.choice((1, 2))], "kernel_size": None, "base_channels": [DRAW.choice((2, 3))],
               "grid_size": [DRAW.choice((24, 25))], "update_policy": ["autoregressive"], "noise_scale": [0.1], "dropout_rate": [0.3]}
    simulation = {"seed": DRAW.randrange(1 << 30), "num_timesteps": 9, "rollout_dropout": "true"}
    for arch, space, bound in ("unet_operator", unet, 3e-3), ("fno_operator", fourier, 1e-5):
        found = repeats(write_rollout(space=space, simulation=simulation, arch=arch), bounds=(bound, max(bound, BOUNDS[1]), BOUNDS[2]))
        print(f"{arch}: a step differs by %.1e, three by %.1e, metrics by %.1e" % tuple(found))


def test_size_of_the_field_does_not_count():
    """O(cx) = O(x): a norm follows the first convolution, and only its 1e-5 beside the variance is not scaled."""
    for policy, bound in (("autoregressive", 1e-3), ("residual", None)):
        states = []
        for variance in (4, 64):
            config = write_rollout(space={"update_policy": [policy], "num_layers": [4], "noise_scale": [0]},
                                   simulation={"seed": SEED % 1000, "input_generation": f"{{variance: {variance}}}"})
            states.append(witness(config, f"{policy}{variance}", "--steps", "1"))
        small, large = (w.state(0) for w in states)
        check(max(abs(4 * a - b) for a, b in zip(small, large)) < 1e-5 * max(large), "one field is not 4 times the other")
        small, large = (w.state(1) for w in states)
        apart = max(abs(a - b) for a, b in zip(small, large)) / max(map(abs, small))
        check(apart < bound if bound else apart > 0.1, policy, "differs by", apart)


def test_results_are_those_of_the_witness():
    config = write_rollout(space={"num_layers": [2, 4], "kernel_size": [3, 5], "grid_size": [12], "noise_scale": [0.3]},
                           sampling={"total_samples": 3}, simulation={"num_realizations": 2, "num_timesteps": 6, "seed": SEED},
                           dataset={"storage": "{block_states: 4}"})
    run("rollout", config, "--quiet")
    names = ("energy", "entropy", "autocorrelation", "variance", "mean_magnitude")
    for number in (0, 2):
        w = witness(config, f"w{number}", "--only", str(number), "--steps", "5")
        def stored(dataset, at):
            run("results", "export", "out/results.blocks", "--dataset", dataset, "--at", f"operator={number}{at}", "--out", "part.npy")
            return load_npy("part.npy")[1].tobytes()
        check(stored("outputs/fields", ",realisation=0,state=1:6") == w.states.tobytes(), "states of operator", number)
        check(stored("outputs/fields", ",realisation=0,state=0") == w.field.tobytes() == stored("inputs/fields", ""), "its field")
        check(stored("outputs/fields", ",realisation=1,state=1:6") != w.states.tobytes(), "two realisations with one noise")
        for k, name in enumerate(names):
            check(stored(f"metrics/{name}", ",realisation=0") == w.metrics[k::5].tobytes(), name, "of operator", number)


# ---- the same bits ----

def same_results(a, b):
    """A file, or a folder of files."""
    if os.path.isdir(a):
        names = sorted(os.listdir(a))
        check(names == sorted(os.listdir(b)), "files differ:", names, os.listdir(b))
        differ = [n for n in names if not filecmp.cmp(f"{a}/{n}", f"{b}/{n}", shallow=False)]
        check(not differ, a, "and", b, "differ in", differ)
    else:
        check(filecmp.cmp(a, b, shallow=False), a, "and", b, "differ")


def write_some(form="native", states=30, **simulation):
    """Three operators of two shapes or three, three realisations each, in blocks that do not divide the states."""
    return write_rollout(f"{form}.yaml", space={"num_layers": [2, 4], "grid_size": [10], "noise_scale": [0.1], "spatial_correlation": [0, 0.2], "dropout_rate": [0, 0.2]},
                         sampling={"total_samples": 3}, dataset={"storage": f"{{backend: {form}, block_states: 8}}"},
                         simulation={"num_realizations": 3, "num_timesteps": states, "rollout_dropout": "true", **simulation})


def make(form, config):
    """The undisturbed run, and the seconds that it took; None where the form is not there."""
    began = time.monotonic()
    done = subprocess.run([COMMAND, "rollout", config, "--quiet", "--out", "whole"], capture_output=True, text=True, env=environment(), timeout=120)
    if form == "hdf5" and done.returncode != 0 and "libhdf5" in done.stderr:
        print("hdf5 is not tried:", done.stderr.strip())
        return None
    check(done.returncode == 0, form, done.returncode, done.stderr)
    return time.monotonic() - began


def test_same_bits_however_it_is_cut():
    config = write_some()
    make("native", config)
    for at_once, threads in ((2, 2), (3, 1), (2, 1)):
        run("rollout", config, "--quiet", "--out", f"{at_once}-{threads}", "--realizations_at_once", str(at_once), "--threads", str(threads))
        same_results("whole/results.blocks", f"{at_once}-{threads}/results.blocks")


def kill_on_and_on(config, seconds, lives, *words):
    """Runs that are killed at random instants, and one that is not; how many were."""
    killed = 0
    for _ in range(lives):
        process = subprocess.Popen([COMMAND, "rollout", config, "--quiet", "--out", "out", *words], stderr=subprocess.PIPE, env=environment())
        try:
            process.wait(DRAW.uniform(0, 0.7 * seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        _, said = process.communicate(timeout=60)
        check(process.returncode in (0, -signal.SIGKILL), process.returncode, said)
        killed += process.returncode != 0
    run("rollout", config, "--quiet", "--out", "out", *words)
    return killed


def test_same_bits_after_kills():
    for form, name in FORMS.items():
        config = write_some(form, states=100)
        seconds = make(form, config)
        if seconds is None:
            continue
        kill_on_and_on(config, seconds, 5, "--realizations_at_once", str(DRAW.randint(1, 3)))
        same_results(f"whole/{name}", f"out/{name}")
        shutil.rmtree("out")
        shutil.rmtree("whole")


def test_a_hundred_kills():
    kills = {}
    for form, name in FORMS.items():
        config = write_some(form, states=200)
        seconds = make(form, config)
        while seconds is not None and kills.setdefault(form, 0) < share_of(34, 3):
            kills[form] += kill_on_and_on(config, seconds, 8, "--realizations_at_once", str(DRAW.randint(1, 3)))
            same_results(f"whole/{name}", f"out/{name}")
            shutil.rmtree("out")
        shutil.rmtree("whole", ignore_errors=True)
    print("killed:", kills)


def write_slow():
    """Each state takes some milliseconds on any machine, and nearly no room on the disk."""
    return write_rollout("slow.yaml", space={"base_channels": [32], "kernel_size": [5], "grid_size": [32]},
                         simulation={"num_timesteps": 100000, "extract_operator_features": "false"}, dataset={"store": "features"})


def begin(config, *words):
    """A run that is at work, or through already."""
    process = subprocess.Popen([COMMAND, "rollout", config, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    while line := process.stderr.readline():
        if line.startswith(b"committed"):
            break
    return process


def test_stop_and_go_on():
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 75)):
        process = begin(write_slow())
        process.send_signal(number)
        said = process.communicate(timeout=60)[1].decode()
        check(process.returncode == code, number, "gave", process.returncode, said)
        check("stopped with 0 of 1 operator done; out/results.blocks has what is whole, and the same command goes on" in said, said)
    config = write_some(states=300)
    run("rollout", config, "--quiet", "--out", "whole")
    for _ in range(3):
        process = begin(config, "--out", "stopped")
        time.sleep(DRAW.uniform(0, 0.1))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1].decode()
        check(process.returncode in (0, 130), process.returncode, said)
        out, _ = run("results", "check", "stopped/results.blocks", "--json")
        check(json.loads(out)["damaged"] == 0, out)
    run("rollout", config, "--quiet", "--out", "stopped")
    same_results("whole/results.blocks", "stopped/results.blocks")
    _, said = run("rollout", config, "--out", "stopped")
    check("all is done" in said, said)


def test_stopped_between_two_programs():
    """A run of several shapes is planner, runner, planner, … by exec: a signal that finds the next one without a handler stops it as any does."""
    preload = os.environ.get("PL_PRELOAD_SIGNAL_LIBRARY")
    if not preload:
        raise Skipped("PL_PRELOAD_SIGNAL_LIBRARY does not name the library")
    config, wanted, begun = write_some(), 1, 1
    run("rollout", config, "--quiet", "--out", "whole")
    while begun >= wanted: # a program may begin another before it has handlers
        wanted += 1 # not the first program: who begins that one holds no signal back
        env = environment(LD_PRELOAD=preload, PL_PRELOAD_SIGNAL=f"{int(signal.SIGINT)}:{wanted}:begun")
        process = subprocess.run([COMMAND, "rollout", config, "--out", f"stopped{wanted}"], capture_output=True, text=True, env=env, timeout=60)
        begun = os.path.getsize("begun")
        os.remove("begun")
        check(process.returncode == (130 if begun >= wanted else 0), "program", wanted, "gave", process.returncode, process.stderr)
        run("rollout", config, "--quiet", "--out", f"stopped{wanted}")
        same_results("whole/results.blocks", f"stopped{wanted}/results.blocks")
    check(begun > 4, "only", begun, "programs")


def test_a_witness_is_whole_or_none():
    """Stopped, it leaves what was there; killed, nothing that the next one does not replace, and no parameters of another."""
    config, slow = write_rollout(), write_slow()
    w = witness(config, "w", "--steps", "2")
    whole = {name: read(f"w/{name}") for name in os.listdir("w")}
    check(len(whole) == 6, whole.keys())
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = subprocess.Popen([COMMAND, "rollout", slow, "--witness", "w", "--steps", "99000"], stderr=subprocess.PIPE, env=environment())
        while process.poll() is None and not os.path.exists("w/states.npy.plimsoll.tmp"):
            time.sleep(0.001)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        check(process.returncode == code and not said, number, "gave", process.returncode, said)
        check({name: read(f"w/{name}") for name in whole} == whole, "a stopped witness changed the one before")
        check(number == signal.SIGKILL or len(os.listdir("w")) == len(whole), os.listdir("w"))
    check(witness(config, "w", "--steps", "3", "--only", "0").states[:len(w.states)] == w.states, "the next one is another")
    check(len(os.listdir("w")) == len(whole), "leftovers:", os.listdir("w"))


def test_a_witness_replaces_nothing_else():
    config = write_rollout()
    for name in ("states.npy", "weights.safetensors", "parameters.json"):
        os.mkdir("own")
        with open(f"own/{name}", "w") as file:
            file.write("somebody's")
        with open("own/notes.txt", "w") as file:
            file.write("notes")
        refused(5, f"own/{name}: is there already, and is not of an earlier witness", "rollout", config, "--witness", "own")
        check(sorted(os.listdir("own")) == sorted([name, "notes.txt"]) and read(f"own/{name}") == b"somebody's", os.listdir("own"))
        os.rename(f"own/{name}", f"own/{name}.tmp")
        witness(config, "own")
        os.remove("own/parameters.json")  # a replacement that was killed has none
        witness(config, "own", "--steps", "2")
        check(read(f"own/{name}.tmp") == b"somebody's" and read("own/notes.txt") == b"notes", "another's file was taken over")
        shutil.rmtree("own")


def test_parts_are_those_of_the_whole():
    config = write_some(states=5)
    make("native", config)
    first = 0
    for part in (1, 2):
        run("rollout", config, "--quiet", "--out", "parts", "--part", f"{part}/2")
        told = json.loads(run("results", "ls", f"parts/results-{part}-of-2.blocks", "--json")[0])
        check(told["first"] == first and told["whole"] == 3, told)
        for dataset in ("outputs/fields", "metrics/entropy", "inputs/fields", "parameters/params"):
            run("results", "export", f"parts/results-{part}-of-2.blocks", "--dataset", dataset, "--out", "part.npy")
            run("results", "export", "whole/results.blocks", "--dataset", dataset, "--at", f"{first}:{first + told['share']}", "--out", "whole.npy")
            check(read("part.npy") == read("whole.npy"), dataset, "of part", part, "differs")
        first += told["share"]
    check(first == 3, "parts have", first, "operators")


def test_each_shape_has_a_trace():
    config = write_rollout(space={"num_layers": [1, 2]}, sampling={"total_samples": 8})
    os.mkdir("traces")
    run("rollout", config, "--quiet", "--trace", "traces/t.json", "--dump", "plan")
    check(sorted(os.listdir("traces")) == ["t-shape-1.json", "t-shape-2.json"], os.listdir("traces"))
    refused(2, "are the same file|where nothing else may be written", "rollout", config, "--set", "dataset.output_path=traces/r-shape-1.blocks", "--trace", "traces/r.blocks")
    check(sorted(os.listdir("traces")) == ["t-shape-1.json", "t-shape-2.json"], os.listdir("traces"))
    for shape in (1, 2):
        nodes = {event["cat"] for event in json.load(open(f"traces/t-shape-{shape}.json")) if event["ph"] == "X"}
        check(any("layer.0" in n for n in nodes) and any("layer.1" in n for n in nodes) == (shape == 2), shape, nodes)
        check(os.path.getsize(f"out/dump-plan-shape-{shape}.txt") > 1000, shape)
    check(not os.path.exists("out/dump-plan.txt"), os.listdir("out"))


# ---- progress ----

def done_bytes(results):
    return json.loads(run("results", "ls", results, "--json")[0])["done_bytes"]


def test_progress():
    """Under a clock that races an operator lasts: a log hears of it while it does. Bytes are those that results ls counts."""
    clock = os.environ.get("PL_PRELOAD_CLOCK")
    if not clock:
        raise Skipped("PL_PRELOAD_CLOCK does not name the clock")
    racing = environment(LD_PRELOAD=clock, PL_PRELOAD_CLOCK_STEP_NS="50000000")
    config = write_rollout(simulation={"num_timesteps": 400}, sampling={"total_samples": 2})
    _, said = run("rollout", config, "--out", "plain", env=racing)
    check(re.search(r"^operators done 0/2  step \d+/400  .*states/s  .* of .*  eta ", said, re.M), said)
    check("eta 0" not in said and " 0 states/s" not in said and "done: 2 of 2 operators; the results are in " in said, said)
    out, _ = run("rollout", config, "--progress", "json", env=racing)
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [e["event"] for e in events]
    check(kinds[0] == "committed" and kinds[-3:] == ["finished", "times", "ledger"] and kinds.count("step") == 2 and "part" in kinds, kinds)
    told = json.loads(run("results", "ls", "out/results.blocks", "--json")[0])
    there = [e["result_bytes"] for e in events[:-2]]
    check(there == sorted(there) and there[0] == 0 and there[-1] == told["bytes"] == told["done_bytes"], there, told)
    check(all(e["planned_result_bytes"] == told["bytes"] for e in events[:-2]), events)
    parts = [e for e in events if e["event"] == "part"]
    check(all(0 < e["part"] <= e["parts"] == 400 for e in parts), parts)
    check(all((e["seconds_left"] is None) == (e["states_per_second"] is None) for e in parts), "time left without a rate", parts)
    check(any(e["seconds_left"] is not None and e["seconds_left"] > 0 for e in parts), parts)
    check(events[-1]["ledger"]["as_planned"], events[-1])
    process = begin(write_some(states=2000), "--out", "stopped")
    while not done_bytes("stopped/results.blocks") and process.poll() is None:
        time.sleep(0.001)  # stopped before the first block, it would begin anew
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    _, said = run("rollout", "native.yaml", "--out", "stopped")
    check(re.search(r"^committed: .*; going on with .*B of .*B$", said, re.M) or "all is done" in said, said)


# ---- memory ----

def test_as_planned():
    for _ in range(5):
        space = {"num_layers": [DRAW.randint(1, 5)], "base_channels": [DRAW.randint(1, 12)], "kernel_size": [DRAW.choice((1, 3, 5, 7))],
                 "grid_size": [DRAW.randint(4, 24)], "spatial_correlation": [DRAW.choice((0, 0.1))], "normalization": [DRAW.choice(("instance", "group", "batch"))]}
        simulation = {"rollout_dropout": DRAW.choice(("false", "true")),"precision": DRAW.choice(("float32", "bfloat16", "float16")), "num_realizations": DRAW.randint(1, 4),
                      "realizations_at_once": DRAW.randint(1, 4), "num_timesteps": DRAW.randint(1, 30)}
        dataset = {"store": DRAW.choice(("features", "trajectories", "both")), "storage": f"{{state_dtype: {DRAW.choice(('f32', 'f16'))}}}"}
        _, said = run("rollout", write_rollout(space=space, simulation=simulation, dataset=dataset), "--threads", str(DRAW.randint(1, 2)),
                      env=environment(PLIMSOLL_TEST_SECCOMP="kill"))
        check("As planned, to the byte." in said, said, space, simulation, dataset)
        shutil.rmtree("out")


def test_memory_does_not_know_how_many_states():
    planned = []
    for states in (25, 5000):
        config = write_rollout(simulation={"num_timesteps": states})
        plan = json.loads(run("plan", config, "--command", "rollout", "--json")[0])
        planned.append((plan["process"]["resident_bytes"], plan["arena"]["bytes"]))
    check(planned[0] == planned[1], planned)


# ---- bad input ----

def test_spaces_that_are_none():
    def one(name, value, pattern, code=2):
        refused(code, pattern, "rollout", write_rollout("bad.yaml", space={name: value}))
    one("base_channels", "{type: integer, bounds: [9, 8]}", r"bad.yaml:\d+:\d+: the bounds of parameter_space.architecture.base_channels begin at 9, above their end 8")
    one("update_policy", "{type: choice, choices: [residual, convex], weights: [0.75, 0.35]}", r"weights of parameter_space.evolution.update_policy sum to 1.1, not to 1")
    one("update_policy", "{type: choice, choices: [residual, convex], weights: [1]}", r"has 1 weight and 2 choices; give one for each")
    sizes = write_rollout("sizes.yaml", space={"grid_size": "{type: integer, bounds: [8, 16]}"}, sampling={"total_samples": 8})
    refused(2, r"sizes.yaml:\d+:\d+: parameter_space.operator.grid_size: fields of \d+ and of \d+ pixels do not fit one file", "rollout", sizes)
    one("noise_scale", "{type: continuous, bounds: [0, 1], log_scale: true}", r"noise_scale has a log scale, and bounds that begin at 0")
    one("noise_scale", "{type: whole, bounds: [0, 1]}", r"noise_scale.type must be integer, continuous, choice or boolean")
    one("noise_scale", "{type: continuous, choices: [0, 1]}", r"noise_scale")
    one("kernel_size", [4], r"kernel_size.choices must be a list of 1 to 16 odd integers")
    one("grid_size", [2], r"grid_size.choices")
    one("activation", ["swish"], r"activation.choices")
    refused(2, r"bad.yaml:\d+:\d+: parameter_space.operator.grid_size: fields of (8 and of 12|12 and of 8) pixels", "rollout",
            write_rollout("bad.yaml", space={"grid_size": [8, 12]}, sampling={"total_samples": 2}))
    refused(2, r"train.steps is not used when model.arch is cnn_operator", "rollout", write_rollout("bad.yaml", more="train:\n  steps: 5\n"))
    refused(2, r"--set train.steps: this command does not read", "rollout", write_rollout(), "--set", "train.steps=5")
    refused(2, r"there is no operator 1", "rollout", write_rollout(), "--only", "1", "--witness", "w")
    refused(2, r"--only goes with --witness", "rollout", write_rollout(), "--only", "0")
    refused(2, r"run.trace .*t.json: a witness has no trace", "rollout", write_rollout(), "--trace", "t.json", "--witness", "w")
    refused(2, r"4 steps are too many for a witness; take at most 3", "rollout", write_rollout(), "--steps", "4", "--witness", "w")
    for command in ("train", "eval", "generate", "verify"):
        refused(2, rf"a config whose model.arch is cnn_operator has no command {command}: it has rollout and infer$", command, write_rollout())
    refused(2, r"has no command verify: it has rollout", "verify", write_rollout(), "--gradients", "g")
    refused(2, r"has no command eval: it has rollout", "plan", write_rollout(), "--command", "eval")
    refused(2, r"bad.yaml:\d+:\d+: dataset.output_path .*/ ends with a slash", "rollout", write_rollout("bad.yaml", dataset={"output_path": "results/"}))
    check(not os.path.exists("out"), "what was refused left a folder")


def test_remedies_are_keys_of_a_rollout():
    config = write_rollout(space={"grid_size": [32]}, simulation={"num_realizations": 4})
    _, said = run("plan", config, "--budget", "1MB", code=3)
    floor = int(re.search(r"is charged (\d+) bytes before any", plain(said))[1])
    size = "parameter_space.operator.grid_size or parameter_space.architecture.base_channels"
    refused(3, rf"raise the budget to \d+ bytes, or make {size} smaller", "plan", config, "--budget", str(floor))
    refused(3, r"set simulation.realizations_at_once to 1$", "rollout", config, "--realizations_at_once", "4", "--budget", str(floor))
    wide = write_rollout(space={"base_channels": [512]})
    refused(3, r"the weights alone are \d+ bytes, .*; make parameter_space.architecture.base_channels smaller, or take --precision bf16$", "plan", wide, "--budget", str(floor))
    check(run("plan", config, "--graph")[0] == run("plan", config, "--graph", "--command", "rollout")[0], "plan takes another command")


def test_points_that_are_not_even():
    config = write_rollout(sampling={"total_samples": 5, "validation": "{check_discrepancy: true, max_discrepancy: 0.01}"},
                           space={"noise_scale": "{type: continuous, bounds: [0, 1]}"})
    refused(2, r"rollout.yaml:\d+:\d+: the first 5 of 5 Sobol points have a centred discrepancy", "rollout", config)
    refused(2, r"--total_samples: the first 4 of 4 Sobol points", "rollout", config, "--total_samples", "4")
    check(not os.path.exists("out"), "what was refused left a folder")


def test_help_has_the_keys_of_rollouts():
    out, _ = run("rollout", "--help")
    for option in ("--arch", "--isa", "--set simulation.seed", "--threads", "--set parameter_space.architecture.num_layers"):
        check(re.search(f"^  {option}[ .=]", out, re.M), option, "is not told of", out)
    for option in ("--heads", "--width", "--tokenizer", "--batch_size", "--micro_batch", "--set model.norm"):
        check(not re.search(f"^  {option}[ =]", out, re.M), option, "is always refused", out)
    check("--heads" in run("train", "--help")[0] and "parameter_space" not in run("train", "--help")[0], "the help of train")


def test_results_of_another_config():
    config = write_rollout()
    run("rollout", config, "--quiet")
    before = read("out/results.blocks")
    refused(2, r"results of another configuration: simulation.seed is 1 there and 2 here; choose", "rollout", config, "--set", "simulation.seed=2")
    refused(2, r"results of another", "rollout", config, "--num_timesteps", "5")
    check(read("out/results.blocks") == before, "a refused run changed the results")
    run("rollout", config, "--quiet", "--realizations_at_once", "1", "--threads", "2") # decides no number
    with open("out/results.blocks", "r+b") as file:
        file.seek(40)
        file.write(b"nonsense")
    refused(4, r"results.blocks", "rollout", config)
    with open("out/results.blocks", "wb") as file:
        file.write(b"no results at all\n" * 1000)
    refused(4, r"results.blocks", "rollout", config)


def load_parameters(path):
    run("results", "export", path, "--dataset", "parameters/params", "--out", "parameters.npy")
    return load_npy("parameters.npy")[1].tobytes()


def damage(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def test_damaged_results():
    config = write_some()
    make("native", config)
    shutil.copytree("whole", "out")
    # A state that is nowhere else in the file: its place is where its block begins.
    run("results", "export", "whole/results.blocks", "--dataset", "outputs/fields", "--at", "1,2,8:16", "--out", "block.npy")
    at = read("whole/results.blocks").index(load_npy("block.npy")[1].tobytes()[:64])
    damage("out/results.blocks", at + DRAW.randrange(8 * 3 * 100 * 4))
    refused_check = subprocess.run([COMMAND, "results", "check", "out/results.blocks"], capture_output=True, text=True, env=environment())
    said = refused_check.stderr
    check(refused_check.returncode == 4 and said.count(": damaged\n") == 1, refused_check.returncode, said)
    check("operator 1" in said and "realisation 2" in said, "the block is not named:", said)
    run("rollout", config, "--quiet", "--out", "out") # what is marked is not read
    run("results", "check", "--repair", "out/results.blocks")
    run("rollout", config, "--quiet", "--out", "out")
    same_results("whole/results.blocks", "out/results.blocks")
    # So are the operators' parameters, which no block has.
    damage("out/results.blocks", read("out/results.blocks").index(load_parameters("whole/results.blocks")))
    refused_check = subprocess.run([COMMAND, "results", "check", "out/results.blocks", "--repair"], capture_output=True, text=True, env=environment())
    check("parameters/params: damaged" in refused_check.stderr, refused_check.stderr)
    run("rollout", config, "--quiet", "--out", "out")
    same_results("whole/results.blocks", "out/results.blocks")
    # Killed after its last mark, a file still holds what the next blocks would have gone on from.
    index = read("out/results.blocks")
    with open("out/results.blocks", "r+b") as file:
        file.seek(int.from_bytes(index[32:40], "little") - 1) # the last byte of the index, that of the last such place
        file.write(b"x")
    run("rollout", config, "--quiet", "--out", "out")
    same_results("whole/results.blocks", "out/results.blocks")
    # Cut off: what is gone is made again.
    size = os.path.getsize("out/results.blocks")
    with open("out/results.blocks", "r+b") as file:
        file.truncate(at + 100)
    check(size > at + 100, size, at)
    run("rollout", config, "--quiet", "--out", "out")
    same_results("whole/results.blocks", "out/results.blocks")


def test_places_that_are_none():
    os.mkdir("empty")
    os.symlink("nowhere", "dangling")
    with open("file", "w") as file:
        file.write("nothing")
    config = write_rollout()
    for place, what in (("empty", "is a folder, but none of results"), ("dangling", "is a link that leads nowhere"), ("file/x", "is no path")):
        refused(5, f"^plimsoll rollout: {place}: {what}", "rollout", config, "--output_path", place)
    for place, what in (("dangling", "is a link that leads nowhere"), ("file", "is in the way: a folder was expected there")):
        refused(5, f"^plimsoll rollout: {place}: {what}", "rollout", config, "--witness", place)
    refused(5, "^plimsoll rollout: file/results.blocks: is no path", "rollout", config, "--out", "file")
    refused(5, "^plimsoll rollout: dangling: is a link that leads nowhere", "rollout", config, "--out", "dangling")


def test_one_run_at_a_time():
    config = write_slow()
    process = begin(config)
    try:
        refused(5, r"results.blocks.*(process|open|used)", "rollout", config)
    finally:
        process.send_signal(signal.SIGTERM)
        check(finish(process) == 143, "the first run did not end as asked")


def test_full_disk():
    if os.geteuid() != 0:
        raise Skipped("only root may mount a small disk")
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", "small"], capture_output=True).returncode:
        raise Skipped("tmpfs cannot be mounted here")
    try:
        refused(5, r"small/results.blocks.*\d.*\d", "rollout", write_rollout(simulation={"num_timesteps": 1000}), "--set", "dataset.output_path=small/results.blocks")
        check(os.listdir("small") == [], "something is left on the full disk:", os.listdir("small"))
    finally:
        subprocess.run(["umount", "small"])


if __name__ == "__main__":
    main({"rollout": [test_another_program_repeats_it, test_another_program_repeats_other_kinds, test_features, test_size_of_the_field_does_not_count, test_results_are_those_of_the_witness,
                      test_same_bits_however_it_is_cut, test_parts_are_those_of_the_whole, test_same_bits_after_kills, test_stop_and_go_on, test_stopped_between_two_programs, test_a_witness_is_whole_or_none, test_a_witness_replaces_nothing_else, test_each_shape_has_a_trace, test_progress, test_as_planned,
                      test_memory_does_not_know_how_many_states],
          "rollout_refused": [test_spaces_that_are_none, test_help_has_the_keys_of_rollouts, test_points_that_are_not_even, test_remedies_are_keys_of_a_rollout, test_results_of_another_config, test_damaged_results,
                              test_places_that_are_none, test_one_run_at_a_time, test_full_disk],
          "rollout_kills": [test_a_hundred_kills]})

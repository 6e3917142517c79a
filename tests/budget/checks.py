"""The checks: each takes (bench, arguments), gives the words for the table, raises Failure or Skip. ALL names them."""

import glob
import hashlib
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import time

import random_config
import suite
from harness import PROGRESS, Failure, Skip, look, plain, repeat, tail, write_text

PAGE_BYTES = 4096
EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")
THREAD_BYTES_MAX = 500_000


def tiny(bench, out, **keys):
    """A small transformer that evaluates, samples and saves; other keys as model__width=64."""
    options = {
        "model.width": 32, "model.layers": 2, "model.heads": 4, "model.sequence": 32, "data.text": bench.text(),
        "data.tokenizer": "bytes", "data.validation_fraction": 0.1, "train.batch_size": 8, "train.micro_batch": 4,
        "train.steps": 6, "train.eval_every": 2, "train.eval_batches": 2, "train.checkpoint_every": 2,
        "train.sample_every": 3, "generate.tokens": 12, "run.threads": 2, "run.out": out,
    }
    options.update({k.replace("__", "."): v for k, v in keys.items()})
    return random_config.options_of(options)


def spread(values):
    return f"median {statistics.median(map(abs, values)):,.0f}, most over {max(values):+,}, most under {min(values):+,}"


# ---- planned = measured over random configurations ----


def run_random(bench, seed, index, found):
    rng = random.Random(f"{seed}/{index}")
    keys = random_config.draw(rng, bench)
    bench.measures = not bench.clock or index % 8 == 0  # as where a person runs it
    out = keys["run.out"] = bench.out()
    options = random_config.options_of(keys)
    plan = bench.plan(options)
    own = bench.train(options, out).judge(plan)
    found["train"].append(own)
    beside = {key: own[key] for key in ("resident", "peak", "seen_resident", "seen_peak", "unexplained") if own.get(key)}
    if beside:
        print(f"  index {index}: {own['planned']:,} planned; {beside}; {own['worst']} {own['rows']:,}", flush=True)
    if index % 4 == 0:
        generate = bench.plan(command="generate", config=out)["process"]["resident_bytes"]
        found["kin"].append(bench.ledger("generate", out, generate))
    if index % 4 == 1 and keys["data.validation_fraction"]:
        evaluate = bench.plan(command="evaluate", config=out)["process"]["resident_bytes"]
        found["kin"].append(bench.ledger("eval", out, evaluate))
    os.remove(keys["data.text"])
    shutil.rmtree(out)


def say_random(found):
    rows = {key: [f[key] for f in found["train"] if key in f] for key in ("resident", "peak", "seen_resident", "seen_peak")}
    rows["generate and eval"] = [f["resident"] for f in found["kin"]]
    for name, values in rows.items():
        if values:
            print(f"  {name:18} {len(values):4} runs: {spread(values)} bytes")
    print(f"  most unexplained {max(f['unexplained'] for f in found['train']):,} bytes; "
          f"worst single row {max(f['rows'] for f in found['train']):,} bytes")
    sizes = [f["planned"] for f in found["train"]]
    print(f"  planned {min(sizes):,} to {max(sizes):,} bytes", flush=True)


def check_random(bench, arguments):
    found = {"train": [], "kin": []}
    try:
        count = suite.run_random(arguments, lambda index: run_random(bench, arguments.seed, index, found))
    finally:
        if found["train"]:
            say_random(found)
    watched = sum("seen_resident" in f for f in found["train"])
    if watched == 0:
        raise Failure("not one run could be looked at from outside")
    return f"{count} configurations, {watched} watched: resident {spread([f['resident'] for f in found['train']])} bytes"


# ---- very deep models: the heap grows with the number of tensors, most of all when a checkpoint is read ----


def check_deep(bench, arguments):
    del arguments
    out = bench.out()
    options = tiny(bench, out, model__layers=400, model__width=4, model__heads=1, model__feed_forward=4, model__sequence=8,
                   train__batch_size=1, train__micro_batch=1, train__steps=2, train__eval_batches=1)
    bench.train(options, out).judge(bench.plan(options))
    resume = [*options, "--resume", "--steps", 3]
    bench.train(resume, out).judge(bench.plan(resume))
    for name, command in (("generate", "generate"), ("eval", "evaluate")):
        bench.ledger(name, out, bench.plan(command=command, config=out)["process"]["resident_bytes"])
    return "400 layers: train, resume, generate, eval as planned"


# ---- planned again, the same plan ----

SURROUNDINGS = {  # what malloc goes through, and holds, before the heap of the runner is planned
    "as usual": {}, "once more": {}, "nothing kept for reuse": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"},
    "blocks mapped": {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4096", "FILLER": "x" * 60_000},
}


def lock_text(bench, command, options, out, env):
    line = bench.command(command, bench.config, *options, "--lock" if command == "fit" else "--out-lock", out)
    bench.run(line, env)
    with open(out, encoding="utf-8") as f:
        return f.read()


TRIES = 10


def known_times(cache):
    """What is known of the kernels' times, or "" where nothing is."""
    known = ""
    for folder, _, names in sorted(os.walk(cache)):
        for name in sorted(names):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                known += f.read()
    return known


def lock_of_known(bench, command, options, out, env):
    """The lock, and what was known before, of which it was made; None: it was measured each time. What was measured on a busy machine
    is measured again on a quiet one."""
    for _ in range(TRIES):
        before = known_times(env["XDG_CACHE_HOME"])
        text = lock_text(bench, command, options, out, env)
        if known_times(env["XDG_CACHE_HOME"]) == before:
            return text, before
    return text, None


def check_alike(command, locks):
    """Those that knew the same, and measured nothing, are the same."""
    for known in {known for _, known in locks.values()} - {None}:
        texts = {name: text for name, (text, its) in locks.items() if its == known}
        if len(set(texts.values())) == 1:
            continue
        sizes = {name: re.search(r"process heap=(\d+).*?charged=(\d+)", text, re.S).groups() for name, text in texts.items()}
        raise Failure(f"plans differ (heap, charged): {sizes}\n  repeat, twice: {command}")


def heap_with_prompt(bench, options, characters, env):
    """The prompt is kept in the plan, a quote as several bytes of it, and so are more that the runner reads."""
    plan = bench.plan([*options, "--set", "generate.prompt=" + '"' * characters], env=env)
    return next(r["resident_bytes"] for r in plan["process"]["rows"] if r["kind"] == "heap")


def check_border(bench):
    """The heap is planned in steps: at the very byte where the next one begins any doubt would show."""
    low, high = 0, 4000
    for layers in range(1, 33):
        options = tiny(bench, bench.path("border"), model__layers=layers, train__mixed_precision="off", train__gradient_checkpointing="off")
        least, most = (heap_with_prompt(bench, options, n, {}) for n in (low, high))
        if least != most:
            break
    else:
        raise Failure("no prompt takes memory")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if heap_with_prompt(bench, options, middle, {}) == least else (low, middle)
    most = heap_with_prompt(bench, options, high, {})  # a long prompt may take two steps
    for name, env in SURROUNDINGS.items():
        found = [heap_with_prompt(bench, options, n, env) for n in (low, high)]
        if found != [least, most]:
            raise Failure(f"{name}: a heap of {found}, not {least} and {most}, with a prompt of {low} and {high} quotes, {layers} layers")


def check_again(bench, arguments):
    """A plan made again is the same to the byte, whatever the planner's own heap went through; and where kernels are
    measured anew, the same graph takes the same bytes."""
    count = 0
    check_border(bench)
    for index in range(-(-arguments.count // 20)):
        keys = random_config.draw_with_budget(random.Random(f"{arguments.seed}/{index}"), bench, 4)
        out, options = keys["run.out"], random_config.options_of(keys)
        figures = {}
        for command in ("plan", "fit") if "memory.budget" in keys else ("plan",):
            cache = {"XDG_CACHE_HOME": f"{out}-{command}"}
            locks = {name: lock_of_known(bench, command, options, out + ".lock", {**env, **cache}) for name, env in SURROUNDINGS.items()}
            check_alike(" ".join(bench.command(command, bench.config, *options)), locks)
            count += len(locks)
            for text, _ in locks.values():
                head, graph = re.sub(r"^time .*\n", "", text, flags=re.M).split("\ngraph ", 1)
                figures.setdefault(graph, set()).add(head)
        for heads in figures.values():
            if len(heads) != 1:
                raise Failure(f"index {index}: the same graph with other figures: {' | '.join(sorted(heads))[:600]}")
    return f"{count} plans, in {len(SURROUNDINGS)} surroundings each, the same to the byte"


# ---- no call that changes memory after "committed" ----


def check_seccomp(bench, arguments):
    del arguments
    runs = 0
    for threads in (1, 2, 8):
        for mode in ("kill", "count"):
            out, env = bench.out(), {"PLIMSOLL_TEST_SECCOMP": mode}
            run = bench.train(tiny(bench, out, run__threads=threads, run__trace=bench.path("trace.json")), out, env)
            if not run.witness or run.witness["seccomp"] != 2:
                raise Failure(f"the filter was not seen in /proc/PID/status\n{run.repeat}")
            bench.run(bench.command("generate", out, "--prompt", "the ", "--tokens", 50), env)
            bench.run(bench.command("eval", out), env)
            bench.run(bench.command("train", out, "--resume", "--steps", 9), env)
            bench.run(bench.command("verify", "--gradients", bench.path("gradients.safetensors"), out), env)
            runs += 5
    check_stop(bench)
    return f"{runs + 2} commands under kill and count; stopped by a signal as well"


# ---- the program's own pages ----

PROGRAM_BYTES_MAX = 3_000_000
SMALLEST_GPT_BYTES = 83_000_000


def check_program(bench, arguments):
    """What a training of text never calls is not held; of each level's kernels only its own; and nobody calls the rest."""
    del arguments
    figures, env = {}, {"PLIMSOLL_TEST_SECCOMP": "kill"}  # who calls what is left out is ended
    for isa in ("ref", "baseline", "avx2", "auto"):
        out = bench.out()
        options = tiny(bench, out, run__isa=isa)
        plan = bench.plan(options)
        run = bench.train(options, out, env)
        run.judge(plan)
        figures[isa] = next(r["resident_bytes"] for r in plan["process"]["rows"] if r["kind"] == "program")
        if figures[isa] > PROGRAM_BYTES_MAX:
            raise Failure(f"the program holds {figures[isa]:,} bytes, {PROGRAM_BYTES_MAX:,} are allowed\n{run.repeat}")
    bench.run(bench.command("plan", os.path.join(EXAMPLES, "gpt.yaml"), "--text", bench.text(300_000), "--budget", SMALLEST_GPT_BYTES))
    return "held of the program: " + ", ".join(f"{isa} {figure:,}" for isa, figure in figures.items())


def wait_for(what, path, child, seconds=60):
    begin = time.monotonic()
    while what not in open(path, errors="replace").read():
        if child.poll() is not None or time.monotonic() - begin > seconds:
            child.kill()
            raise Failure(f"'{what}' did not come\n{repeat(child.args, {})}\n{tail(open(path, errors='replace').read())}")
        time.sleep(0.02)


def start(bench, line, log, env=None):
    with open(log, "wb") as f:
        return subprocess.Popen(line, env={**bench.environment, **(env or {})}, stdin=subprocess.DEVNULL, stdout=f, stderr=f)


def check_stop(bench):
    """SIGUSR1 prints the ledger, SIGTERM saves and leaves: both without memory."""
    out, log = bench.out(), bench.path("stop.log")
    options = tiny(bench, out, train__steps=10**6, train__eval_every=10**6, train__sample_every=0, train__checkpoint_every=10**6,
                   train__log_every=50)
    child = start(bench, bench.command("train", bench.config, *options), log, {"PLIMSOLL_TEST_SECCOMP": "kill"})
    wait_for("committed", log, child)
    child.send_signal(signal.SIGUSR1)
    wait_for("As planned", log, child)
    child.send_signal(signal.SIGTERM)
    if child.wait(60) != 128 + signal.SIGTERM:
        raise Failure(f"exit {child.returncode} where 143 is expected\n{repeat(child.args, {})}\n{tail(open(log).read())}")


def count_heap_calls(bench, line):
    """Calls of the heap after "committed", by kind, and who called."""
    report = bench.path("malloc.txt")
    if os.path.exists(report):
        os.remove(report)
    extra = {"LD_PRELOAD": bench.preload, "PL_MALLOC_REPORT": report}
    bench.run(line, extra)
    if not os.path.exists(report):
        raise Failure(f"the counter never heard of \"committed\"\n{repeat(line, extra)}")
    text = open(report).read()
    words = " ".join(text.splitlines()[:2]).split()
    return dict(zip(words[::2], map(int, words[1::2]))), text, repeat(line, extra)


def check_heap(bench, arguments):
    del arguments
    if not os.path.exists(bench.preload):
        raise Skip("no pl_preload_malloc.so")
    slack = []
    for line in (*heap_commands(bench), *heap_encoders(bench)):
        calls, text, words = count_heap_calls(bench, line)
        if any(calls[kind] for kind in ("malloc", "calloc", "realloc", "other")):
            raise Failure(f"the heap was asked after \"committed\"\n{words}\n{tail(text, 99)}")
        slack.append(check_slack(calls, line, words))
    return f"{len(slack)} commands ask the heap for nothing; of it was never used {min(slack):.1%} to {max(slack):.1%}"


HEAP_MODELS = {  # each: begun, gone on with, and what comes after
    "small": {"run__trace": "trace.json"},
    "threads": {"run__threads": 9},
    "perceptron": {"model__arch": "mlp", "model__heads": None, "model__window": 8},
    "bpe with samples": {"data__tokenizer": "bpe", "data__vocab_size": 700, "train__sample_every": 1},
    "more bpe": {"data__tokenizer": "bpe", "data__vocab_size": 1500, "train__sample_every": 1},
    "much bpe": {"data__tokenizer": "bpe", "data__vocab_size": 2500, "train__sample_every": 1},
    "characters": {"data__tokenizer": "chars", "train__sample_every": 1},
    "precision": {"train__mixed_precision": "bf16", "train__optimizer_state": "8bit"},
    "deep": {"model__layers": 150, "model__width": 4, "model__heads": 1, "model__feed_forward": 4, "model__sequence": 8},
}


def heap_commands(bench):
    for keys in HEAP_MODELS.values():
        out = bench.out()
        if "run__trace" in keys:
            keys = {**keys, "run__trace": bench.path(keys["run__trace"])}
        options = without_none(bench, out, {"train__steps": 2, "train__eval_batches": 1, **keys})
        yield bench.command("train", bench.config, *options)
        yield bench.command("train", bench.config, *options, "--resume", "--steps", 3, "--progress", "json")
        yield bench.command("generate", out, "--tokens", 5, "--ledger")
        yield bench.command("eval", out, "--ledger")


HEAP_APPLICATIONS = (2, 30, 198, 204, 212, 222, 234, 400)  # of one block: arrays of the graph double between some of these


def heap_encoders(bench):
    """As deep as recursion makes them: the text of the plan has up to hundreds of kilobytes."""
    if not os.path.exists(os.path.join(os.path.dirname(bench.plimsoll), "plimsoll-draw.so")):
        return
    config = bench.path("encoder.yaml")
    with open(config, "w", encoding="ascii") as f:
        f.write("model: {arch: capsules}\ntexts: {format: grammar, count: 2}\npipeline: {batch_size: 1, block_texts: 2}\n"
                "encoder: {image_size: 64, hidden_size: 64, num_heads: 4, num_layers: 1, H_cycles: 1}\n")
    for applications in HEAP_APPLICATIONS:
        yield bench.command("encode", config, "--set", f"encoder.L_cycles={applications}", "--out", bench.out(), "--quiet")


def check_slack(calls, line, words):
    """Of what is planned for luck (compile_heap.c: a sixteenth, 256 kB at most, and a step of 64 kB) some must be left, and
    all but a begun training's room for a checkpoint that it did not read must be for something: the holes that the tree of
    a tokenizer leaves may be of use, or not."""
    share, resumed = calls["spare"] / calls["heap"], "--resume" in line
    most = 72 * 1024 + calls["heap"] / (4 if any("data.tokenizer=" in word and "bytes" not in word for word in line) else 8)
    if calls["spare"] < 4096 or resumed and calls["spare"] > most:
        raise Failure(f"of a heap of {calls['heap']:,} bytes {calls['spare']:,} were never used\n{words}")
    return share


# ---- page faults ----


def check_faults(bench, arguments):
    steps, runs = 400 if arguments.soak else 60, 0
    for keys in ({}, {"memory__huge_pages": "off"}, {"run__threads": 16}, {"model__arch": "mlp", "model__window": 8}):
        if "model__arch" in keys:
            keys = {**keys, "model__heads": None}
        out = bench.out()
        every = max(1, steps // 4)
        merged = {"train__steps": steps, "train__eval_every": every, "train__checkpoint_every": every, "train__sample_every": every, **keys}
        run = bench.train(without_none(bench, out, merged), out)
        if run.faults is None or run.faults:
            raise Failure(f"{run.faults} page faults since step 2\n{run.repeat}\n{tail(run.errors, 4)}")
        runs += 1
    return f"{runs} runs of {steps} steps with evaluation, samples and checkpoints: 0 faults since step 2"


def without_none(bench, out, keys):
    """tiny() without the keys that are None (a perceptron has no heads)."""
    words = tiny(bench, out, **keys)
    return [w for pair in zip(words[::2], words[1::2]) if not pair[1].endswith("=None") for w in pair]


# ---- transparent huge pages "always" ----


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        words = f.read().split()
    return int(words[0]) if words else None


def watch_under_thp(bench, keys, seconds):
    out, log = bench.out(), bench.path("thp.log")
    options = tiny(bench, out, train__steps=10**6, train__eval_every=50, train__checkpoint_every=200, train__sample_every=100, **keys)
    child = start(bench, [bench.thp_always, *bench.command("train", bench.config, *options)], log)
    wait_for("committed", log, child)
    pid, seen, begin = child_of(child.pid), [], time.monotonic()
    while time.monotonic() - begin < seconds and child.poll() is None:
        seen.append(look(pid))
        time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    code, text = child.wait(60), open(log, errors="replace").read()
    if code == 77 or "NOT ALLOWED" in text:
        raise Skip("process_madvise(MADV_COLLAPSE) is not allowed here")
    if code != 128 + signal.SIGTERM or None in seen:
        raise Failure(f"exit {code} where 143 is expected\n{repeat(child.args, {})}\n{tail(text)}")
    with open(os.path.join(out, "report.json")) as f:
        as_planned = '"as_planned": true' in f.read()
    grown = max(max(s["rss"], s["peak"]) for s in seen) - seen[0]["rss"]
    if grown or not as_planned:
        raise Failure(f"resident grew by {grown:,} bytes in {seconds} s\n{repeat(child.args, {})}\n{tail(text, 30)}")
    return len(seen), int(re.search(r"thp_always: (\d+) rounds", text).group(1))


def check_thp(bench, arguments):
    if not os.path.exists(bench.thp_always):
        raise Skip("no thp_always")
    seconds, looks, rounds = 45 if arguments.soak else 10, 0, 0
    for keys in ({"memory__huge_pages": "auto", "model__width": 64}, {"memory__huge_pages": "off", "run__threads": 8}):
        a, b = watch_under_thp(bench, keys, seconds if keys["memory__huge_pages"] == "off" or arguments.soak else seconds / 3)
        looks, rounds = looks + a, rounds + b
    return f"collapsed {rounds} times in runs of up to {seconds} s, looked at {looks} times: resident constant"


# ---- the same bits with any number of threads ----


def weights_of(out):
    """Hashes of the last checkpoint's weights."""
    path = sorted(glob.glob(os.path.join(out, "checkpoints", "step-*", "model.safetensors")))[-1]
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


SAME_BITS = {
    "dropout and clip": {"model__dropout": 0.1, "train__grad_clip": 1},
    "2048 rows": {"model__width": 64, "model__sequence": 64, "train__batch_size": 32, "train__micro_batch": 32, "train__steps": 3},
    "2048 inputs": {"model__feed_forward": 2048, "model__sequence": 64, "train__batch_size": 4, "train__steps": 3},
    "odd sizes": {"model__width": 51, "model__heads": 3, "model__sequence": 37, "train__batch_size": 5, "train__micro_batch": 5,
                  "model__norm": "rms_norm", "model__tie_embeddings": "false"},
    "perceptron": {"model__arch": "mlp", "model__heads": None, "model__width": 64, "model__window": 32, "model__sequence": 64,
                   "train__batch_size": 32, "train__micro_batch": 32, "train__steps": 3},
}


def check_bits(bench, arguments):
    del arguments
    counts = (1, 2, 8, 16, 64)
    for name, keys in SAME_BITS.items():
        hashes = {}
        for threads in counts:
            out = bench.out()
            run = bench.train(without_none(bench, out, {"train__sample_every": 0, **keys, "run__threads": threads}), out, watch=False)
            hashes.setdefault(weights_of(out), []).append(f"{threads} threads")
        for micro in (1, 3): # of 8, 32, 4, 5 and 32: the last one short, but for 1
            out = bench.out()
            keys = {"train__sample_every": 0, **keys, "train__micro_batch": micro, "run__threads": 2}
            run = bench.train(without_none(bench, out, keys), out, watch=False)
            hashes.setdefault(weights_of(out), []).append(f"micro-batch {micro}")
        if len(hashes) != 1:
            raise Failure(f"{name}: other bits with other threads or micro-batches: {list(hashes.values())}\n{run.repeat}")
    return (f"{len(SAME_BITS)} models ({', '.join(SAME_BITS)}) at {', '.join(map(str, counts))} threads and with other "
            "micro-batches: the same bits")


# ---- the size of the text ----


def check_texts(bench, arguments):
    sizes = (1, 10, 24) if arguments.soak else (1, 10)
    words = []
    for keys in ({"data__tokenizer": "bpe", "data__vocab_size": 400}, {"data__tokenizer": "bytes"}):
        seen = set()
        for megabytes in sizes:
            path, out = bench.path(f"{megabytes}MB.txt"), bench.out()
            if not os.path.exists(path):
                write_text(path, megabytes * 10**6, 7)
            options = tiny(bench, out, data__text=path, data__cache=out, **keys)
            plan = bench.plan(options)
            run = bench.train(options, out)
            run.judge(plan)
            seen.add((plan["process"]["resident_bytes"], run.report["rollup_bytes"], run.report["peak_bytes"]))
        if len(seen) != 1:
            raise Failure(f"(planned, measured, peak) differ between texts of {sizes} MB: {sorted(seen)}\n{run.repeat}")
        words.append(f"{keys['data__tokenizer']} {seen.pop()[2]:,} bytes")
    return f"peak with texts of {', '.join(map(str, sizes))} MB the same: {'; '.join(words)}"


# ---- the budget ----


def least_budget(bench, keys, guess):
    """What the refusal of a budget says that the smallest plan needs. The budget is a part of the kept config, and so of
    the plan's text: it is asked with as many digits as the answer has."""
    budget = 10 ** (len(str(guess)) - 1)
    line = bench.command("train", bench.config, *without_none(bench, bench.out(), {**keys, "memory__budget": budget}), *PROGRESS)
    _, errors = bench.run(line, expect=(0, 3))
    found = re.search(r"smallest plan needs (\d+) bytes", plain(errors))
    if not found and "As planned" in errors:  # it fits: the answer has a digit less
        return least_budget(bench, keys, budget - 1)
    if not found:
        raise Failure(f"the sentence does not say what is needed\n{repeat(line, {})}\n{tail(errors)}")
    need = int(found.group(1))
    return need if len(str(need)) == len(str(budget)) else least_budget(bench, keys, need)


def check_budget(bench, arguments):
    del arguments
    for keys in ({"train__batch_size": 1, "train__micro_batch": 1}, {"train__batch_size": 4, "train__micro_batch": "auto"}):
        floor = bench.plan(tiny(bench, bench.out(), **{**keys, "train__micro_batch": 1}))["process"]["charged_bytes"]
        need = least_budget(bench, keys, floor)  # of any micro-batch: a step of the heap may weigh more than activations
        out = bench.out()
        run = bench.train(tiny(bench, out, memory__budget=need, **keys), out)
        if run.report["rollup_bytes"] + run.report["measured_page_table_bytes"] > need:
            raise Failure(f"more than the budget of {need:,} bytes was held\n{run.repeat}")
        line = bench.command("train", bench.config, *tiny(bench, bench.out(), memory__budget=need - PAGE_BYTES, **keys))
        _, errors = bench.run(line, expect=3)
        pattern = rf"needs {need} bytes, {PAGE_BYTES} bytes more than the budget of {need - PAGE_BYTES} bytes.*peak: \S+ \([\d,]+ bytes\).*budget"
        if not re.search(pattern, plain(errors), re.S):
            raise Failure(f"the sentence does not say what is missing, what is large and what to do\n{repeat(line, {})}\n{tail(errors)}")
    return f"a budget of {need:,} bytes runs, one page less is refused with its sentence"


# ---- computing again what does not fit ----

RECOMPUTED = {
    "transformer": {"model__width": 64, "model__layers": 4, "model__sequence": 64, "train__batch_size": 16, "train__micro_batch": 16},
    "with dropout": {"model__width": 48, "model__layers": 3, "model__sequence": 50, "train__batch_size": 12, "train__micro_batch": 6,
                     "model__dropout": 0.2, "model__norm": "rms_norm", "model__activation": "silu", "train__grad_clip": 1},
    "perceptron": {"model__arch": "mlp", "model__heads": None, "model__width": 64, "model__window": 16, "model__sequence": 64,
                   "model__layers": 6, "train__batch_size": 16, "train__micro_batch": 16, "model__dropout": 0.1},
}


def check_recompute(bench, arguments):
    """Under budgets that only computing again can meet, planned is measured, and the weights are those of a run without."""
    del arguments
    shares = []
    for name, keys in RECOMPUTED.items():
        keys = {"train__sample_every": 0, **keys}
        whole = bench.plan(without_none(bench, bench.out(), {**keys, "train__gradient_checkpointing": "off"}))
        most = whole["process"]["charged_bytes"]
        least = least_budget(bench, keys, most)
        hashes = {}
        for how in ("off", "full", (2 * least + most) // 3, least):
            how = {"train__gradient_checkpointing": how} if isinstance(how, str) else {"memory__budget": how}
            out = bench.out()
            options = without_none(bench, out, {**keys, **how})
            planned = bench.plan(options)
            run = bench.train(options, out)
            run.judge(planned)
            if run.report["rollup_bytes"] + run.report["measured_page_table_bytes"] > how.get("memory__budget", most):
                raise Failure(f"{name}: more than the budget of {how} was held\n{run.repeat}")
            hashes.setdefault(weights_of(out), []).append(how)
        if len(hashes) != 1:
            raise Failure(f"{name}: other bits with other choices of what is computed again: {list(hashes.values())}\n{run.repeat}")
        shares.append(f"{name} {most / 1e6:.2f} to {least / 1e6:.2f} MB")
    return "planned is measured, the same bits: " + ", ".join(shares)


# ---- what a thread costs ----


def check_threads(bench, arguments):
    del arguments
    figures = []
    for threads in (1, 2, 3, 8, 32, 64):
        out = bench.out()
        options = tiny(bench, out, run__threads=threads, train__steps=3)
        plan = bench.plan(options)["process"]
        run = bench.train(options, out)
        figures.append({"threads": threads, "resident planned": plan["resident_bytes"], "charged planned": plan["charged_bytes"],
                        "resident measured": run.report["rollup_bytes"],
                        "with page tables measured": run.report["rollup_bytes"] + run.report["measured_page_table_bytes"]})
    worst = {}
    for before, after in zip(figures, figures[1:]):
        for key in list(after)[1:]:
            each = (after[key] - before[key]) / (after["threads"] - before["threads"])
            worst[key] = max(worst.get(key, 0), each)
    dear = {key: round(each) for key, each in worst.items() if each >= THREAD_BYTES_MAX}
    if dear:
        raise Failure(f"a further thread costs {dear} bytes\n{run.repeat}")
    return "a further thread costs at most " + ", ".join(f"{each:,.0f} bytes {key}" for key, each in worst.items())


ALL = {
    "random": check_random, "again": check_again, "deep": check_deep, "seccomp": check_seccomp, "heap": check_heap, "faults": check_faults,
    "thp": check_thp, "bits": check_bits, "texts": check_texts, "budget": check_budget, "recompute": check_recompute,
    "threads": check_threads, "program": check_program,
}

#!/usr/bin/env python3
"""The kernel as the judge: enforce.py --plimsoll FILE [--only random,auto,others,cold,planner,leftovers,rollouts,clouds,capsules,hybrid,stages] [--seed N] [--count N].

A plan's lock file is run in a memory cgroup whose limit is its charged figure, to the page. The kernel is told to kill there;
a run that ends well has never given it a reason. One page less, and the command must refuse before "committed" (exit 3).

The figures: `needed` is what the run held (resident, page tables, kernel), `planned` the charged figure
without the page cache of files being written, which the kernel takes back when it wants to.

77 when the machine lets nobody make a group, with the reason. `--only random --seed S --index I` repeats one."""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

import random_config
import suite
from capsules import check_capsules
from checks import tiny
from clouds import check_clouds
from hybrid import check_hybrid
from group import PAGE_BYTES, Inside
from harness import Failure, plain, repeat, tail
from rollouts import check_rollouts
from stages import check_stages

REFUSED = 3


def plan_anew(bench, options, out):
    """As for a new container: tokens and a lock file, no run. (the plan's process, the options that run it): what
    is charged is then its figure to the byte, and planning needs no room inside."""
    shutil.rmtree(out, ignore_errors=True)
    process = bench.plan([*options, "--out-lock", out + ".lock"])["process"]
    return process, [*options, "--lock", out + ".lock"]


def run_at(bench, options, out, limit, expect):
    """No kernel was ever measured here."""
    run = bench.train(options, out, {"XDG_CACHE_HOME": out + "-cache"}, bench.limited(limit), expect)
    if bench.group.kills():
        raise Failure(f"the kernel killed {bench.group.kills()} times at {limit:,} bytes\n{run.repeat}")
    return run


def check_refusal(run, charged, limit):
    pattern = rf"charged {charged} bytes, {charged - limit} bytes more than the cgroup limit.*at most {limit} bytes;"
    if not re.search(pattern, plain(run.errors)) and "take more memory than the cgroup's limit leaves" not in run.errors:
        raise Failure(f"the sentence does not say what is missing\n{run.repeat}\n{tail(run.errors)}")
    if b'"committed"' in run.output or "committed" in run.errors:
        raise Failure(f"refused after \"committed\"\n{run.repeat}\n{tail(run.errors)}")


def run_one(bench, seed, index, found):
    rng = random.Random(f"{seed}/{index}")
    keys = random_config.draw_with_budget(rng, bench, 16)
    out, options = keys["run.out"], random_config.options_of(keys)
    process, locked = plan_anew(bench, options, out)
    charged = process["charged_bytes"]
    if charged % PAGE_BYTES:
        raise Failure(f"{charged} bytes charged are no whole pages")
    run = run_at(bench, locked, out, charged, 0)
    run.judge({"process": process})
    kernel = bench.group.kernel_peak()
    own = {"charged": charged, "budget": keys.get("memory.budget"), "peak": bench.group.peak(), "faults": run.faults,
           "planned": charged - process["writer_cache_bytes"], "kernel": kernel,
           "kernel planned": process["kernel_bytes"] + process["page_table_bytes"]}
    # The kernel's part holds the page tables, where it is told at all.
    own["needed"] = run.report["rollup_bytes"] + (kernel or run.report["measured_page_table_bytes"])
    if index % 3 == 0:  # the plan of a run that begins holds what reading a checkpoint needs
        run_at(bench, [*locked, "--resume"], out, charged, 0).judge({"process": process})
    again, locked = plan_anew(bench, options, out)
    if again["charged_bytes"] != charged:
        raise Failure(f"{charged} bytes charged, planned again {again['charged_bytes']}\n{run.repeat}")
    check_refusal(run_at(bench, locked, out, charged - PAGE_BYTES, REFUSED), charged, charged - PAGE_BYTES)
    found.append(own)
    if own["needed"] > own["planned"] or (kernel or 0) > own["kernel planned"]:
        print(f"  index {index}: {own}", flush=True)
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(out + "-cache", ignore_errors=True)


def say(found):
    rows = {"needed / planned": [f["needed"] / f["planned"] for f in found],
            "most ever charged / charged planned": [f["peak"] / f["charged"] for f in found if f["peak"]],
            "kernel memory and page tables / planned": [f["kernel"] / f["kernel planned"] for f in found if f["kernel"]]}
    for name, values in rows.items():
        if values:
            print(f"  {name:40} {len(values):4} runs: least {min(values):.3f}, median {statistics.median(values):.3f}, "
                  f"most {max(values):.3f}")
    sizes = [f["charged"] for f in found]
    print(f"  charged {min(sizes):,} to {max(sizes):,} bytes; {sum(f['budget'] is not None for f in found)} with a budget", flush=True)


def check_random(bench, arguments):
    found = []
    try:
        count = suite.run_random(arguments, lambda index: run_one(bench, arguments.seed, index, found))
    finally:
        if found:
            say(found)
    return f"{count} configurations ran at their charged figure, none killed; one page less: refused"


def check_auto(bench, arguments):
    """`memory.budget: auto` in a group plans for the group, and says what it left for others."""
    del arguments
    out = bench.out()
    options = tiny(bench, out, train__micro_batch="auto", train__batch_size=16, model__width=64, memory__budget="auto")
    most = bench.plan(tiny(bench, out, train__micro_batch="auto", train__batch_size=16, model__width=64))["process"]["charged_bytes"]
    words = []
    for limit in (2 * most, most - (512 << 10)):
        limit -= limit % PAGE_BYTES
        plan = bench.plan(options, prefix=bench.limited(limit))["process"]["charged_bytes"]
        room = limit - limit // 16
        # what measuring kernels leaves in the planner's own heap takes nothing from the budget
        out_cold, _ = bench.run(bench.command("plan", bench.config, "--json", *options), {"XDG_CACHE_HOME": bench.path(f"cold-{limit}")}, bench.limited(limit))
        for charged in (plan, json.loads(out_cold)["process"]["charged_bytes"]):
            if charged > room:
                raise Failure(f"{charged:,} bytes planned in a group of {limit:,}, of which a sixteenth is for others")
        shutil.rmtree(out, ignore_errors=True)
        run = run_at(bench, options, out, limit, 0)
        said = re.search(r"budget: .* \(auto: .* by cgroup limit, less a reserve of .* for others\)", run.errors)
        if not said:
            raise Failure(f"the reserve is not named\n{run.repeat}\n{tail(run.errors)}")
        words.append(f"{plan:,} of {limit:,}")
    line = bench.command("train", bench.config, *options, "--out", bench.out())
    # Too small for the run, and large enough for what comes before a refusal (9.5 MB, pages of the program's file among
    # them): in less the kernel may or may not find pages to take back in time.
    _, errors = bench.run(line, prefix=bench.limited(10 << 20), expect=REFUSED)
    return f"planned for the group: {', '.join(words)}; in 10 MiB refused: {errors.strip().splitlines()[-1][:60]}…"


def check_others(bench, arguments):
    """What others are charged for in the same group counts: 24 MiB of them, and the interpreter that holds these."""
    del arguments
    options = tiny(bench, bench.out(), model__width=256)
    charged = bench.plan(options)["process"]["charged_bytes"]
    prefix = bench.limited(charged + (20 << 20))
    hold = bench.path("hold.py")
    with open(hold, "w", encoding="ascii") as f:
        f.write("import sys, subprocess\nheld = bytearray(24 << 20)\nfor i in range(0, len(held), 4096):\n    held[i] = 1\n"
                "sys.exit(subprocess.run(sys.argv[1:]).returncode)\n")
    line = [sys.executable, hold, *bench.command("train", bench.config, *options)]
    _, errors = bench.run(line, prefix=prefix, expect=REFUSED)
    if not re.search(rf"charged {charged} bytes, but others in \S+ leave \d+ bytes of its limit: \d+ bytes are missing", plain(errors)):
        raise Failure(f"the sentence does not name the others\n{repeat(line, {})}\n{tail(errors)}")
    bench.group.set_limit(charged + (48 << 20))
    bench.run(line, prefix=prefix)
    return "24 MiB that another process holds in the group count"


def check_cold(bench, arguments):
    """A container without a home, many threads: kernels are measured by the whole team inside of the
    limit, and what that leaves behind is nobody else's."""
    del arguments
    options = tiny(bench, bench.out(), run__threads=64, train__steps=1, train__eval_every=100, train__sample_every=0)
    charged = bench.plan(options)["process"]["charged_bytes"]
    for start in range(2):
        out = bench.out()
        run = run_at(bench, [*options, "--out", out], out, charged, 0)
        if "measuring kernels" not in run.errors:
            raise Failure(f"start {start} measured nothing\n{run.repeat}")
    return "64 threads measured and ran at the charged figure"


def check_planner(bench, arguments):
    """A plan that is too large to be made is refused as well: where that is known at once, and where it turns out."""
    del arguments
    options = tiny(bench, bench.out(), model__layers=600, model__width=4, model__heads=1, model__feed_forward=4, model__sequence=8,
                   train__batch_size=1, train__micro_batch=1)
    line = bench.command("train", bench.config, *options)
    _, errors = bench.run(line, prefix=bench.limited(64 << 20), expect=REFUSED)
    said = re.search(r"to plan 600 layers, a graph of \d+ nodes, would take (\d+) bytes, and the cgroup limit allows at most 67108864 bytes;", plain(errors))
    if not said:
        raise Failure(f"not at once\n{repeat(line, {})}\n{tail(errors)}")
    limit = int(said[1]) // PAGE_BYTES * PAGE_BYTES + PAGE_BYTES  # and none for the program itself
    _, errors = bench.run(line, prefix=bench.limited(limit), expect=REFUSED)
    if "preparing the text and planning take more memory than the cgroup's limit leaves" not in errors:
        raise Failure(f"not for want of memory to plan\n{repeat(line, {})}\n{tail(errors)}")
    if bench.group.kills():
        raise Failure(f"the planner was killed\n{repeat(line, {})}")
    return f"600 layers in 64 MiB and in {limit:,} bytes: planning is refused, not killed"


MAKER = "import os, signal, group; print(group.Group().folder, flush=True); os.kill(os.getpid(), signal.{})"


def make_group_in(signal_name):
    """A process that made a group, its folder, and then sent itself this signal."""
    process = subprocess.Popen([sys.executable, "-B", "-c", MAKER.format(signal_name)], stdout=subprocess.PIPE, text=True,
                               cwd=os.path.dirname(os.path.abspath(__file__)))
    return process, process.stdout.readline().strip()


def check_leftovers(bench, arguments):
    """What a killed run left goes with the next; what belongs to a living one stays."""
    del arguments
    bench.limited(64 << 20)  # or Skip
    (dead, left), (alive, used) = make_group_in("SIGKILL"), make_group_in("SIGSTOP")
    try:
        dead.wait()
        if not (left and used and os.path.isdir(left)):
            raise Failure(f"no groups to look at: {left!r}, {used!r}")
        bench.limited(64 << 20)
        if os.path.isdir(left) or not os.path.isdir(used):
            raise Failure(f"{left} of a dead process {'is' if os.path.isdir(left) else 'is not'} there, {used} of a living one "
                          f"{'is' if os.path.isdir(used) else 'is not'}")
    finally:
        alive.kill()
        alive.wait()
        for folder in {left, used} - {""}:
            if os.path.isdir(folder):
                os.rmdir(folder)
    return "the group of a killed run went, that of a living one stayed"


ALL = {"random": check_random, "auto": check_auto, "others": check_others, "cold": check_cold, "planner": check_planner, "leftovers": check_leftovers,
       "rollouts": check_rollouts, "clouds": check_clouds, "capsules": check_capsules, "hybrid": check_hybrid,
       "stages": check_stages}


def main():
    suite.run(ALL, suite.options(__doc__, ALL, 12).parse_args(), lambda a: Inside(a.plimsoll, a.keep))


if __name__ == "__main__":
    main()

"""Tests of plimsoll recompute: recompute_tests.py PLIMSOLL FOLDER GROUP…

Schedules are judged here by the rules of docs/recompute.md, in a few lines that share nothing with the command."""
import json
import os
import random
import re
import subprocess

from cli_tests import COMMAND, SEED, check, environment, main, read, refused, run
from said import unfolded

CHAIN = """dag 8 chain # three layers forward and backward
node 0 0 1 0 0 # x0
node 1 1 1 0 1 0
node 2 1 1 0 1 1
node 3 1 1 0 1 2
node 4 0 1 0 1 3 # B3
node 5 0 1 0 2 2 4
node 6 0 1 0 2 1 5
node 7 0 1 0 2 0 6
keep 0
"""


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def judge(dag, schedule):
    """Cost and peak of the steps; fails where they break a rule."""
    nodes, fixed, kept, resident, ran, cost, peak = {}, 0, set(), set(), set(), 0, 0
    for line in dag.split("\n"):
        words = line.split("#")[0].split()
        if words[:1] == ["node"]:
            nodes[int(words[1])] = (float(words[2]), int(words[3]), int(words[4]), [int(w) for w in words[6:]])
        elif words[:1] == ["fixed"]:
            fixed = int(words[1])
        elif words[:1] == ["keep"]:
            kept |= {int(w) for w in words[1:]}
    for step in schedule.strip().split("\n"):
        action, node = step.split()
        node = int(node)
        if action == "F":
            check(node in resident and node not in kept, step)
            resident.remove(node)
            continue
        check(action == "C" and node not in resident and set(nodes[node][3]) <= resident, step)
        peak = max(peak, fixed + sum(nodes[r][1] for r in resident) + nodes[node][1] + nodes[node][2])
        cost += nodes[node][0]
        resident.add(node)
        ran.add(node)
    check(ran == set(nodes), "not all nodes ran")
    return cost, peak


def blocks(layers, seed):
    """Forward and backward of layers with uneven costs and sizes."""
    source = random.Random(seed)
    lines, count = [], 4 * layers + 1
    for node in range(count):
        inputs = [node - 1] if node else []
        if node % 4 == 0 and node:
            inputs.append(node - 4)
        lines.append((source.randint(1, 90), source.randint(1, 16) << 20, 0, inputs))
    for node in range(count - 1, -1, -1):
        inputs = [len(lines) - 1] + ([node - 1] if node else [])
        lines.append((source.randint(1, 90), source.randint(1, 8) << 20, source.randint(0, 1) << 20, inputs))
    return f"dag {len(lines)} blocks\nfixed 1048576\n" + "".join(
        f"node {i} {c} {s} {w} {len(d)} {' '.join(map(str, d))}\n" for i, (c, s, w, d) in enumerate(lines))


def test_a_chain():
    write("chain.dag", CHAIN)
    out, _ = run("recompute", "chain.dag", "--budget", "4", "--out", "chain.sched")
    for line in ("nodes        8", "budget       4 bytes, met", "cost         4, 33.333 % above", "lower bound  4, proven optimal",
                 r"peak         4 bytes, 80.0 % of storing all \(5\)", "floor        4 bytes"):
        check(re.search(line, out), line, "is not in", out)
    check(judge(CHAIN, read("chain.sched").decode()) == (4, 4), "the schedule is not what was said")
    out, err = run("recompute", "chain.dag", "--budget", "5B", "--out", "-")
    check(judge(CHAIN, out) == (3, 5) and "storing all" in err, out, err)
    done = subprocess.run([COMMAND, "recompute", "-", "--budget", "4", "--json"], input=CHAIN.encode(), capture_output=True, env=environment())
    result = json.loads(done.stdout)
    check(result["schema"] == "plimsoll.recompute/1" and result["optimal"] and result["cost"] == 4 and result["peak_bytes"] == 4, result)
    check(judge(CHAIN, "\n".join(result["schedule"])) == (4, 4), result)


def test_budgets():
    """A sweep: each schedule passes the judge, the same every time; the least budget is met."""
    for seed in (SEED,):
        text = blocks(3, seed)
        write("blocks.dag", text)
        least = json.loads(run("recompute", "blocks.dag", "--min", "--json")[0])
        check(least["verdict"] == "fits" and least["peak_bytes"] == least["budget_bytes"] >= least["floor_bytes"], least)
        for share in (0, 0.3, 1):
            budget = int(least["peak_bytes"] + share * (least["store_all_bytes"] - least["peak_bytes"]))
            one, two = (json.loads(run("recompute", "blocks.dag", "--budget", str(budget), "--json")[0]) for _ in range(2))
            check(one["schedule"] == two["schedule"], "another schedule the second time, seed", seed)
            cost, peak = judge(text, "\n".join(one["schedule"]))
            check((cost, peak) == (one["cost"], one["peak_bytes"]) and peak <= budget, one)
        check(one["added_share"] == 0 and one["optimal"], "all fits, but costs more")
        timed = json.loads(run("recompute", "blocks.dag", "--budget", str(least["peak_bytes"]), "--time", "3", "--json")[0])
        check(judge(text, "\n".join(timed["schedule"]))[1] <= least["peak_bytes"] and timed["seconds"] < 15, timed)


def layers(count, width, reads, seed):
    """Layers whose nodes read some of the layer before."""
    source = random.Random(seed)
    lines = []
    for node in range(count):
        begin = (node // width - 1) * width
        inputs = sorted(source.sample(range(begin, begin + width), reads)) if begin >= 0 else []
        lines.append(f"node {node} {source.randint(1, 50)} {source.randint(1, 100)} 0 {len(inputs)} {' '.join(map(str, inputs))}\n")
    return f"dag {count} layers\n" + "".join(lines)


def test_time():
    """A greedy pass over such layers may compute the same for ever. Far more is allowed than the limit, for slow machines."""
    for seed in (1, 2):
        text = layers(500, 10, 5, seed)
        write("layers.dag", text)
        store_all = json.loads(run("recompute", "layers.dag", "--budget", "1GB", "--json")[0])["store_all_bytes"]
        for words in (["--min"], ["--budget", str(store_all * 8 // 10)]):
            done = subprocess.run([COMMAND, "recompute", "layers.dag", *words, "--time", "0.5", "--json"], capture_output=True, env=environment(), timeout=60)
            result, err = json.loads(done.stdout), done.stderr.decode()
            check(judge(text, "\n".join(result["schedule"])) == (result["cost"], result["peak_bytes"]), result["method"])
            if "--min" in words:
                check(done.returncode == 0 and result["peak_bytes"] == result["budget_bytes"], done.returncode, err)
            else:
                check(done.returncode == (0 if result["peak_bytes"] <= result["budget_bytes"] else 3), done.returncode, err)
                check(done.returncode == 0 or "found within the limits" in err and "allow more time" in err, err)
            check(result["seconds"] < 20, result["seconds"], "seconds of 0.5")


def test_no_schedule():
    write("chain.dag", CHAIN)
    out, err = run("recompute", "chain.dag", "--budget", "3", "--out", "chain.sched", code=3)
    check("budget       3 bytes, cannot be met (proven)" in out, out)
    check(re.search(r"no schedule fits 3 bytes .*at least 4 bytes|needs 4 bytes .*; proven", unfolded(err)), err)
    check(not os.path.exists("chain.sched"), "a schedule that does not fit was written")
    out, _ = run("recompute", "chain.dag", "--min")
    check("least budget 4 bytes, proven" in out, out)


def test_refused():
    write("chain.dag", CHAIN)
    refused(2, "a .dag file is missing; try plimsoll recompute --help", "recompute")
    refused(2, "--budget SIZE is missing, or --min", "recompute", "chain.dag")
    refused(2, "--min and --budget exclude each other", "recompute", "chain.dag", "--min", "--budget", "4")
    refused(2, "--out - and --json exclude each other", "recompute", "chain.dag", "--budget", "4", "--json", "--out", "-")
    refused(2, "--budget expects a size such as .*, not many", "recompute", "chain.dag", "--budget", "many")
    refused(2, "--time expects a number of seconds above 0, not 0", "recompute", "chain.dag", "--budget", "4", "--time", "0")
    refused(2, "one file only, but there is also b.dag", "recompute", "a.dag", "b.dag", "--budget", "4")
    refused(2, "unknown option --bugdet", "recompute", "chain.dag", "--bugdet", "4")
    refused(4, "missing.dag", "recompute", "missing.dag", "--budget", "4")
    refused(4, r"bad.dag:2:8: the cost is \"x\"; expected a finite number", "recompute", write("bad.dag", "dag 1 x\nnode 0 x 1 0 0\n"), "--budget", "4")
    refused(4, r"bad.dag: ends after 1 nodes; the header promises 2", "recompute", write("bad.dag", "dag 2 x\nnode 0 1 1 0 0\n"), "--budget", "4")
    refused(4, "exceed 2.62 bytes", "recompute", write("bad.dag", f"dag 1 x\nnode 0 1 {2 ** 62} 0 0\n"), "--budget", "4")


GROUPS = {"recompute": [test_a_chain, test_budgets, test_time, test_no_schedule, test_refused]}

if __name__ == "__main__":
    main(GROUPS)

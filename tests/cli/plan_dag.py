#!/usr/bin/env python3
"""The graph of one micro-batch of a plan, as a problem for a recompute planner: plan_dag.py PLAN.json > PLAN.dag

docs/plan-json.md says what is taken from where."""
import json
import sys


def convert(plan):
    nodes, values = plan["nodes"], plan["values"]
    train = next(p for p in plan["programs"] if p["name"] == "train")
    inside = [n for n in nodes[train["first"]:train["last"]] if n["recomputes"] is None and n["phase"] != "update"]
    regions = [n["region"] for n in inside]
    region = max(set(regions), key=regions.count)
    inside = [n for n in inside if n["region"] == region]

    def first(value):
        """Through windows and what was made again to the value that a node made first; None: it was there before."""
        while values[value]["again_of"] is not None or values[value]["view_of"] is not None:
            again = values[value]["again_of"]
            value = again if again is not None else values[value]["view_of"]
        return value

    def is_kept(value):
        return values[values[value]["root"]]["program"] is None

    index, lines = {}, []
    for node in inside:
        deps = sorted({index[v] for v in (first(i) for i in node["inputs"] if i is not None) if v in index})
        size = sum(values[o]["bytes"] for o in node["outputs"] if o is not None and not is_kept(o))
        cost = node["seconds"] if plan["seconds_per_step"] else node["flops"]
        label = f"{node['op']} {node['scope']}"
        lines.append(f"node {len(lines)} {cost or 0!r} {size} {node['workspace_bytes']} {len(deps)} {' '.join(map(str, deps))} # {label}")
        for output in node["outputs"]:
            if output is not None:
                index[first(output)] = index[output] = len(lines) - 1
    fixed = sum(v["block_bytes"] or 0 for v in values if v["program"] is None)
    return f"dag {len(lines)} plan\nfixed {fixed}\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        sys.stdout.write(convert(json.load(file)))

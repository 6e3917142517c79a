"""Tests of what an evaluation of arch hybrid tells of its gates: mean, deviation, least, largest and median of all of them, against gates that plain
Python computes from the weights and the pages; and the page that shows them by step. Called as cli_tests.py is."""
import csv
import io
import json
import math
import re
import statistics
import struct

from cli_tests import check, last_checkpoint, main, metrics, read, run
from encode_oracle import shaped, times
from hybrid_tests import header, write_hybrid
from rollout_oracle import load_weights
from tower_oracle import Tower, TrainedTower, gelu
from tower_tests import LAYERS, tower_file

PAGES, BINS = 11, 1024
PARTS = ("fusion", "adapter", "planner")


def sigmoid(rows):
    return [1 / (1 + math.exp(-row[0])) for row in rows]


def gates_of(weights, pages):
    """Of each page the gates of fusion and adapter, 16 each (docs/hybrid.md)."""
    def of(before):
        return {name[len(before):]: tensor for name, tensor in weights.items() if name.startswith(before)}
    frozen, trained = Tower(of("clip.vision_model."), 2, LAYERS), TrainedTower(of("vit."), 2, 1)
    w = {name: shaped(*tensor) for name, tensor in weights.items() if name.startswith(("fusion.", "adapter.gate"))}
    found = []
    for page in pages:
        p, t = frozen.features(page), trained.features(page)
        inner = gelu(times([a + b for a, b in zip(p, t)], w["fusion.gate.0.weight"], w["fusion.gate.0.bias"]))
        fusion = sigmoid(times(inner, w["fusion.gate.2.weight"], w["fusion.gate.2.bias"]))
        f = [[g * x + (1 - g) * y for x, y in zip(a, b)] for g, a, b in zip(fusion, p, t)]
        found.append((fusion, sigmoid(times(f, w["adapter.gate.weight"], w["adapter.gate.bias"]))))
    return found


def close(told, name, gates):
    """Half a bin is what the median may be off."""
    want = {"mean": statistics.fmean(gates), "std": statistics.pstdev(gates), "min": min(gates), "max": max(gates), "median": statistics.median(gates)}
    for what, value in want.items():
        room = 0.5 / BINS + 2e-6 if what == "median" else 2e-6
        check(abs(told[f"{name}_gate_{what}"] - value) <= room, name, what, told[f"{name}_gate_{what}"], value)


def test_gates_are_those_of_another_program():
    """All pages are trained with, so the batch of a step is all of them, and its gradients tell how they look; of these eval is then told that it holds
    out most. Which ones those are its predictions tell: by the means of the gates of a page. Micro-batches and steps
    are not full, the last one is nearly empty."""
    tower_file("clip.safetensors")
    config = write_hybrid(reading={"words": 64, "pages": PAGES, "held_out": 0}, train={"batch_size": PAGES, "micro_batch": PAGES, "steps": 20, "learning_rate": 0.01, "warmup_steps": 0},
                          vision_encoder={"dropout": 0, "pretrained_layers": LAYERS, "pretrained_weights": "clip.safetensors"}, latent_planning={"path_dropout": 0})
    run("train", config, "--quiet")
    run("verify", "--gradients", "g.safetensors", "out")
    drawn = header("g.safetensors")["train.pages"]
    pages = [[drawn[i * 4096 + r * 64:i * 4096 + (r + 1) * 64] for r in range(64)] for i in range(PAGES)]
    gates = gates_of(load_weights(f"{last_checkpoint('out')}/model.safetensors"), pages)
    told = {}
    for micro, batch, threads in ((PAGES, PAGES, 1), (3, 4, 2), (1, 4, 1), (100, 100, 2)):
        words = ["eval", "out", "--set", "reading.held_out=0.7", "--set", f"train.batch_size={batch}", "--set", f"train.micro_batch={micro}", "--threads", str(threads)]
        told[micro] = {key: value for key, value in json.loads(run(*words, "--json", "--predictions", "p.csv")[0]).items() if key != "loss"}
        check(told[micro] == told[PAGES], told)
    rows = list(csv.DictReader(io.StringIO(read("p.csv").decode())))
    check(2 < len(rows) < PAGES and len(rows) % 4, "take another number of pages", len(rows))
    seen = []
    for row in rows:
        apart, own = min((max(abs(float(row[f"{name}_gate"]) - statistics.fmean(gates[i][k])) for k, name in enumerate(PARTS[:2])), i) for i in range(PAGES))
        check(apart < 2e-6, row, apart)
        seen.append(own)
    check(len(set(seen)) == len(rows), "a page twice", seen)
    for k, name in enumerate(PARTS[:2]):
        close(told[1], name, [g for i in seen for g in gates[i][k]])
        check(told[1][f"{name}_gate_max"] - told[1][f"{name}_gate_min"] > 8 / BINS, "all gates are alike", told[1])
    close(told[1], "planner", [float(row["planner_gate"]) for row in rows])


def test_gates_that_are_alike():
    """Where one number is the gate of all tokens, all that is told of it is that number."""
    run("train", write_hybrid(vision_encoder={"fusion_type": "learned_avg", "adapter_layers": 0}, latent_planning={"enable_latent_planning": False}), "--quiet")
    alpha = struct.unpack("f", header(f"{last_checkpoint('out')}/model.safetensors")["fusion.alpha"])[0]
    told = [m for m in metrics("out") if "validation_loss" in m][-1]
    for what in ("mean", "min", "max", "median"):
        check(abs(told[f"fusion_gate_{what}"] - 1 / (1 + math.exp(-alpha))) < 1e-6, what, told, alpha)
    check(told["fusion_gate_min"] == told["fusion_gate_max"] == told["fusion_gate_median"], told)
    check(not any(key.startswith(("adapter", "planner", "path")) for key in told), told)


def test_what_is_shown():
    """metrics.jsonl has all of it, the line of a validation least and largest, the page a dot for each validation at what metrics.jsonl tells."""
    _, err = run("train", write_hybrid(train={"steps": 6, "eval_every": 2, "log_every": 1}))
    lines = [m for m in metrics("out") if "validation_loss" in m]
    check(len(lines) == 3, lines)
    for line in lines:
        for name in PARTS:
            least, middle, largest = (line[f"{name}_gate_{what}"] for what in ("min", "median", "max"))
            check(0 < least <= middle <= largest < 1 and least <= line[f"{name}_gate_mean"] <= largest, line)
            words = rf"step {line['step']} .*{name} gate {line[f'{name}_gate_mean']:.3f}  min {least:.3f}  max {largest:.3f}  "
            check(re.search(words, err), words, err)
    check("median" not in err, err)
    out, _ = run("eval", "out")
    for word in ("its min", "its max", "its median", "its std"):
        check(out.count(word) == 3, word, out)
    with open("out/metrics.jsonl", "a") as file:
        file.write('{"step":7,"validation_loss":')  # torn by a kill
    page, _ = run("report", "out", "--html", "-")
    shown = dict(re.findall(r"<section><h2>((?:Gates: |Path )\w+)</h2>(.*?)</section>", page, re.S))
    check(list(shown) == ["Gates: fusion", "Gates: adapter", "Gates: planner", "Path entropy"], list(shown))
    for title, section in shown.items():
        key = "path_entropy" if title == "Path entropy" else title.split()[1] + "_gate_mean"
        check(re.findall(r"<title>step (\d+): ([\d.]+)</title>", section) == [(str(m["step"]), f"{m[key]:.4f}") for m in lines], title, section)
        paths = re.findall(r"<path class='(\w+)' d='M[\d.]+ ([\d.]+)", section)
        if title.startswith("Gates"):  # the y axis points down
            high = {name: float(y) for name, y in paths}
            check(list(high) == ["valid", "train", "most", "least"] and high["most"] <= min(high["valid"], high["train"]) and max(high["valid"], high["train"]) <= high["least"], high)
            check(all(f"</i>{word}</span>" in section for word in ("mean", "median", "largest", "least")), section)
    with open("out/metrics.jsonl", "w") as file:  # nearly constant: a unit in the last place
        file.writelines(f'{{"step":{k},"validation_loss":1,"path_entropy":{value}}}\n' for k, value in enumerate((0.6931471805599453, 0.6931471805599454, "null"), 1))
    page, _ = run("report", "out", "--html", "-")
    section = page[page.index("<h2>Path entropy"):]
    check(section.count("class='soft end tick'") in range(3, 9) and len(re.findall("<circle", section)) == 2 and "Gates" not in page, page)
    run("train", write_hybrid(out="plain", vision_encoder={"adapter_layers": 0}, latent_planning={"enable_latent_planning": False}), "--quiet")
    page, _ = run("report", "plain", "--html", "-")
    check("Gates: fusion" in page and "adapter</h2>" not in page and "planner</h2>" not in page and "Path entropy" not in page, page)


GROUPS = {"hybrid_gates": [test_gates_are_those_of_another_program, test_gates_that_are_alike, test_what_is_shown]}

if __name__ == "__main__":
    main(GROUPS)

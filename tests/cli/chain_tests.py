"""Tests of arch chain as a person runs it: gradients through all latents, the same bits however a batch is cut, kills and going on, the curriculum,
bad input. Called as cli_tests.py is.

The oracle of the gradients is the model written out below in plain Python, in double precision, and finite differences of it."""
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys

from cli_tests import SEED, await_event, check, finish, last_checkpoint, main, metrics, needed, read, refused, run, same_run, start_closely
from clouds_tests import predicted_again

MAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/make_chains.py")
PAD, ANSWER, END, BOT, EOT = 0xfb, 0xfc, 0xfd, 0xfe, 0xff
SMALL = {"model": {"arch": "chain", "width": 8, "layers": 2, "heads": 2, "feed_forward": 12, "sequence": 19, "init_std": 0.3},
         "chain": {"file": "chains.jsonl", "question": 6, "latents": 3, "stages": 0, "replaced": 1, "held_out": 0.3},
         "train": {"batch_size": 6, "steps": 6, "learning_rate": 0.003}}


def make_chains(path="chains.jsonl", count=40, terms=3, modulus=5, seed=SEED, more=()):
    made = subprocess.run([sys.executable, MAKE, *more, "--count", str(count), "--terms", str(terms), "--modulus", str(modulus), "--seed", str(seed)],
                          capture_output=True, check=True)
    with open(path, "wb") as file:
        file.write(made.stdout)
    return [json.loads(line) for line in made.stdout.splitlines()]


def write_chain(path="chain.yaml", out="out", **sections):
    merged = {name: {**keys, **sections.pop(name, {})} for name, keys in SMALL.items()}
    merged["train"].setdefault("seed", SEED % 1000)
    with open(path, "w") as file:
        file.write(f"run: {{out: {out}, threads: 1}}\n" + "".join(f"{name}: {json.dumps(keys)}\n" for name, keys in merged.items()))
    return path


def tensors(path):
    """Of a file of safetensors each tensor: its shape, and its numbers."""
    data = read(path)
    size = int.from_bytes(data[:8], "little")
    form = {"F32": "f", "F64": "d", "I32": "i"}
    found = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and t["dtype"] in form:
            begin, end = t["data_offsets"]
            kind = form[t["dtype"]]
            found[name] = t["shape"], list(struct.unpack(f"<{(end - begin) // struct.calcsize(kind)}{kind}", data[8 + size + begin:8 + size + end]))
    return found


def lasting(folder):
    return [read(f"{last_checkpoint(folder)}/{name}.safetensors") for name in ("model", "state")]


# ---- the model, in plain Python ----

def linear(x, w, bias=None):
    out, width = len(w) // len(x), len(x)
    return [sum(a * b for a, b in zip(w[o * width:(o + 1) * width], x)) + (bias[o] if bias else 0) for o in range(out)]


def norm(x, w, name):
    mean = sum(x) / len(x)
    scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    return [(v - mean) * scale * g + b for v, g, b in zip(x, w[name + ".weight"], w[name + ".bias"])]


def gelu(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def add(a, b):
    return [u + v for u, v in zip(a, b)]


def attention(rows, w, name, heads):
    width = len(rows[0])
    size = width // heads
    qkv = [linear(row, w[name + ".c_attn.weight"]) for row in rows]
    out = []
    for t in range(len(rows)):
        mixed = []
        for h in range(0, width, size):
            score = [sum(qkv[t][h + j] * qkv[s][width + h + j] for j in range(size)) / math.sqrt(size) for s in range(t + 1)]
            share = [math.exp(z - max(score)) for z in score]
            mixed += [sum(p * qkv[s][2 * width + h + j] for s, p in enumerate(share)) / sum(share) for j in range(size)]
        out.append(linear(mixed, w[name + ".c_proj.weight"]))
    return out


def blocks(rows, w, layers, heads):
    for i in range(layers):
        h = f"transformer.h.{i}"
        rows = [add(x, a) for x, a in zip(rows, attention([norm(x, w, h + ".ln_1") for x in rows], w, h + ".attn", heads))]
        for t, x in enumerate(rows):
            inner = [gelu(v) for v in linear(norm(x, w, h + ".ln_2"), w[h + ".mlp.c_fc.weight"], w[h + ".mlp.c_fc.bias"])]
            rows[t] = add(x, linear(inner, w[h + ".mlp.c_proj.weight"], w[h + ".mlp.c_proj.bias"]))
    return [norm(x, w, "transformer.ln_f") for x in rows]


def row_of(table, index, width):
    return table[index * width:(index + 1) * width]


def chain_loss(tokens, targets, w, model, given=None, thoughts=None):
    """Sum over the targets. given: latents that are taken as they are, in place of what the model thinks; thoughts: takes those of the model."""
    width, rows = model["width"], []
    for t, token in enumerate(tokens):
        place = row_of(w["transformer.wpe.weight"], t, width)
        if token >= 0:
            rows.append(add(row_of(w["transformer.wte.weight"], token, width), place))
            continue
        thought = given[t] if given else blocks(list(rows), w, model["layers"], model["heads"])[-1]
        if thoughts is not None:
            thoughts[t] = thought
        rows.append(add(thought, place))
    hidden, loss = blocks(rows, w, model["layers"], model["heads"]), 0
    for x, target in zip(hidden[len(tokens) - len(targets):], targets):
        if target >= 0:
            logits = linear(x, w["transformer.wte.weight"])
            top = max(logits)
            loss += top + math.log(sum(math.exp(z - top) for z in logits)) - logits[target]
    return loss


def batch_of(found, name):
    (samples, length), numbers = found[name]
    return [numbers[i * length:(i + 1) * length] for i in range(samples)]


def mean_loss(batch, w, model, given=None):
    counted = sum(t >= 0 for _, targets in batch for t in targets)
    return sum(chain_loss(tokens, targets, w, model, given and given[i]) for i, (tokens, targets) in enumerate(batch)) / counted


# ---- tests ----

def expected_rows(chain, question, latents, rest, replaced):
    """What a chain's ports are, from its JSON."""
    asked = chain["question"].encode()
    behind = [b for step in chain["steps"][replaced:] for b in step.encode() + b"\n"] + [ANSWER, *chain["answer"].encode(), END]
    marks = behind.index(ANSWER)
    none = [-1] * (rest - len(behind))
    tokens = [PAD] * (question - len(asked)) + list(asked) + [BOT] + [-1] * latents + [EOT] + (behind + [PAD] * len(none))[:rest - 1]
    return tokens, behind + none, [-1] * (marks + 1) + behind[marks + 1:] + none


def test_gradients_through_all_latents():
    """Every weight's gradient, at numbers drawn from it, against finite differences; latents that were constants would give others."""
    chains = make_chains(count=20)
    config = write_chain(train={"batch_size": 2, "steps": 2, "learning_rate": 0.01, "seed": 5})
    run("train", config, "--quiet")
    run("verify", "--gradients", "g.safetensors", "out")
    found, model = tensors("g.safetensors"), SMALL["model"]
    known = [expected_rows(chain, 6, 3, 9, 1) for chain in chains]
    rows = list(zip(*(batch_of(found, f"train.{port}") for port in ("tokens", "targets", "answers"))))
    check(all(row in known for row in rows), "these are no chains of the file:", rows)
    batch = [row[:2] for row in rows]
    w = {name: numbers for name, (_, numbers) in tensors(f"{last_checkpoint('out')}/model.safetensors").items()}
    given = [{} for _ in batch]
    for (tokens, targets), thoughts in zip(batch, given):
        chain_loss(tokens, targets, w, model, thoughts=thoughts)
    draw, eps, apart, checked = random.Random(SEED), 1e-4, 0, 0
    for name, numbers in sorted(w.items()):
        gradient = found["grad." + name][1]
        largest = max(abs(g) for g in gradient)
        check(largest > 0, name, "has no gradient")
        seen = [i for i, g in enumerate(gradient) if g != 0]
        for i in draw.sample(seen, min(3, len(seen))):
            def slope(thoughts):
                kept, loss = numbers[i], []
                for numbers[i] in (kept + eps, kept - eps):
                    loss.append(mean_loss(batch, w, model, thoughts))
                numbers[i] = kept
                return (loss[0] - loss[1]) / (2 * eps)
            full = slope(None)
            check(abs(full - gradient[i]) < 2e-4 * largest, f"{name}[{i}]: {gradient[i]} and by differences {full}; largest {largest}")
            apart = max(apart, abs(full - slope(given)) / largest)
            checked += 1
    check(checked > 60 and apart > 0.05, "latents as constants give the same gradients:", checked, apart)


def test_same_bits_however_it_is_cut():
    make_chains()
    for name, words in (("whole", ["--micro_batch", "6"]), ("ones", ["--micro_batch", "1", "--threads", "2"]),
                        ("four", ["--micro_batch", "4", "--gradient_checkpointing", "full"])):
        run("train", write_chain(out=name), "--quiet", *words)
    for name in ("ones", "four"):
        check(metrics(name) == metrics("whole"), name, metrics(name), metrics("whole"))
        check(lasting(name) == lasting("whole"), name)


def test_planned_is_measured():
    make_chains()
    for sections in ({}, {"chain": {"replaced": 0}, "model": {"sequence": 23}}, {"chain": {"latents": 1, "replaced": 2, "answer_only": True}}):
        _, err = run("train", write_chain(out=f"out{len(os.listdir())}", **sections), "--ledger")
        check("As planned, to the byte." in err and "page faults since step 2: 0" in err, err[-500:])
    run("train", write_chain(out="narrow"), "--quiet", "--set", "train.mixed_precision=bf16")


def test_killed_and_gone_on():
    make_chains()
    config = write_chain(train={"steps": 60, "checkpoint_every": 5, "log_every": 1, "eval_every": 10})
    run("train", config, "--quiet", "--out", "whole")
    for number in (signal.SIGKILL, signal.SIGINT):
        process = start_closely("train", config, "--resume=auto")
        await_event(process, "step", 10)
        process.send_signal(number)
        finish(process)
    run("train", config, "--quiet", "--resume=auto")
    same_run("out", "whole")


LEARNS = {"model": {"width": 32, "feed_forward": 128, "sequence": 22, "init_std": 0.05},
          "chain": {"question": 5, "latents": 1, "stages": 2, "replaced": 0, "held_out": 0.05},
          "train": {"batch_size": 32, "steps": 500, "learning_rate": 0.003, "seed": 1, "eval_batches": 0, "eval_every": 200}}


def test_curriculum_learns():
    """Chains of two steps modulo 3, first written out, then latent; 0 is right for half of them, for products make zeros. There are 108 of them, so
    what is held out was seen. One seed: of some a stage so short learns less."""
    chains = make_chains(count=6000, modulus=3, seed=1, more=["--repeat"])
    guessed = max(sum(chain["answer"] == digit for chain in chains[-300:]) for digit in "012") / 300
    check(guessed < 0.6, guessed)
    config = write_chain(**json.loads(json.dumps(LEARNS)))
    out, _ = run("train", config, "--quiet")
    results = json.loads(read("out/results.json"))
    told = [(t["training"], t["latents"], t["chains"]) for t in results["trainings"]]
    check(told == [("stage-0", 0, 300), ("stage-1", 1, 300), ("stage-2", 2, 300), ("answer", 2, 300)], told)
    for t, least in zip(results["trainings"], (0.95, 0.95, 0.65, 0.9)):
        check(t["answer_accuracy"] > least and t["token_accuracy"] >= t["answer_accuracy"] * 0.99, t, guessed)
    for t in results["trainings"]:
        rows = [list(map(int, line.split(","))) for line in read(f"out/{t['training']}/predictions.csv").decode().splitlines()[1:]]
        check([row[0] for row in rows] == list(range(5700, 6000)), "the last chains of the file are held out")
        check(sum(row[1] for row in rows) == t["tokens"] and sum(row[5] for row in rows) / 300 == t["answer_accuracy"], t)
        check(all(row[3] == 2 and row[5] == (row[4] == 2) for row in rows), "an answer is a digit and its end")
    check(results["trainings"][2]["tokens"] == 300 * 3, "behind the latents of stage 2 only the answer is left", results)
    again, _ = run("eval", "out/answer")
    check("answers right" in again and "tokens right" in again and "answer " in out, again, out)
    config_of = read("out/stage-2/config.yaml").decode()
    check("replaced: 2" in config_of and "stages: 0" in config_of and "out/stage-1" in config_of, config_of)
    os.remove("out/answer/predictions.csv.xxh64")  # as of an older build: with it, they would be made again (test_changed_predictions)
    for text, words in (("chain\n", 'predictions.csv:1: the first line of such a file is "chain,tokens'),
                        (read("out/answer/predictions.csv").decode() + "1,2,3,1,1,1\n", "predictions.csv:302: is no chain; delete the file and train again")):
        with open("out/answer/predictions.csv", "w") as file:
            file.write(text)
        refused(4, words, "train", config, "--resume")


def test_stages_go_on():
    """Killed in its second stage the curriculum ends as one that was not; by hand, stage by stage, it is the same."""
    make_chains()
    keys = {"chain": {"stages": 1, "replaced": 0}, "model": {"sequence": 26}, "train": {"steps": 60, "warmup_steps": 10, "checkpoint_every": 5, "log_every": 1, "eval_every": 10}}
    config = write_chain(**json.loads(json.dumps(keys)))
    run("train", config, "--quiet", "--out", "whole")
    process = start_closely("train", config)
    await_event(process, "step", 75)
    process.send_signal(signal.SIGKILL)
    finish(process)
    refused(5, "was begun before; continue with --resume", "train", config)
    run("train", config, "--quiet", "--resume")
    refused(4, "holds no training that stage-1 could begin with; make it first, with the same command and --stage stage-0", "train", config, "--out", "hand",
            "--stage", "stage-1")
    run("plan", config, "--out", "hand", "--stage", "stage-1")  # a plan needs nothing of an earlier training
    for stage in ("stage-0", "stage-1", "answer"):
        run("train", config, "--quiet", "--out", "hand", "--stage", stage)
    for stage in ("stage-0", "stage-1", "answer"):
        same_run(f"out/{stage}", f"whole/{stage}")
        same_run(f"hand/{stage}", f"whole/{stage}")
    first = metrics("whole/stage-1")[0]
    check(first["step"] == 1 and first["lr"] < 0.003, "the learning rate begins anew", first)


def test_later_training_does_not_fit():
    """A budget for the first training alone is refused for the second, before anything is made."""
    make_chains()
    config = write_chain(chain={"stages": 1, "replaced": 0}, model={"sequence": 26})
    least = [needed(run("plan", config, "--stage", stage, "--budget", "1MB", code=3)[1])
             for stage in ("stage-0", "stage-1")]
    check(least[0] < least[1], least)
    run("plan", config, "--stage", "stage-0", "--budget", str(least[0]))
    for command in ("plan", "train"):
        _, err = run(command, config, "--budget", str(least[0]), code=3)
        check(f"({least[1]:,} bytes)" in err and "(stage-1, 2 of 3 trainings)" in err, command, err)
        check(not os.path.exists("out/stage-0"), command)


def test_bad_lines():
    good = '{"question": "1+2", "steps": ["1+2=3"], "answer": "3"}'
    for number, (line, words) in enumerate((
            ("nonsense", r"lines.jsonl:2:\d+: is not valid JSON: .*; each line must be an object \{\"question\""),
            ('{"question": "\xff"}', r"lines.jsonl:2:\d+: is not valid JSON"),
            ("[1]", r"lines.jsonl:2: is no object; each line must be an object"),
            ('{"steps": [], "answer": "3"}', r"lines.jsonl:2: \"question\" is no text"),
            ('{"question": "", "steps": [], "answer": "3"}', r"lines.jsonl:2: \"question\" is no text, or an empty one"),
            ('{"question": "1", "steps": "1", "answer": "3"}', r"lines.jsonl:2: \"steps\" is no list"),
            ('{"question": "1", "steps": [1], "answer": "3"}', r"lines.jsonl:2: a step is no text"),
            ('{"question": "1", "steps": [], "answer": 3}', r"lines.jsonl:2: \"answer\" is no text"),
            ('{"question": "1", "question": "2", "steps": [], "answer": "3"}', r"lines.jsonl:2:\d+: is not valid JSON: duplicate"),
            ('{"question": "1+2+3+4", "steps": [], "answer": "3"}', r"lines.jsonl:2: the question has 7 bytes and chain.question is 6; make that 7 at least"),
            ('{"question": "1", "steps": ["a", "1+2=3"], "answer": "12345"}',
             r"lines.jsonl:2: steps and answer take 13 tokens, and model.sequence 19 leaves 9 behind the question and 3 latents; make model.sequence 23 at least"),
            ('{"question": "1", "steps": [], "answer": "' + "x" * (1 << 20) + '"}', r"lines.jsonl:2: the line has more than 1048576 bytes"))):
        with open("lines.jsonl", "w", encoding="latin-1") as file:
            file.write(f"{good}\n{line}\n{good}\n")
        refused(4, words, "train", write_chain(out=f"bad{number}", chain={"file": "lines.jsonl"}))
        check(not os.path.exists(f"bad{number}"), "something is left of", line)


def test_bad_files():
    with open("empty.jsonl", "w") as file:
        file.write("\n  \n")
    refused(4, "empty.jsonl: has no chains of thought", "train", write_chain(chain={"file": "empty.jsonl"}))
    refused(4, "none.jsonl", "train", write_chain(chain={"file": "none.jsonl"}))
    refused(2, "chain.file", "train", write_chain(chain={"file": "none"}))
    make_chains("two.jsonl", count=2)
    refused(4, "of 2 chains of thought, chain.held_out 0.3 leaves none to evaluate; give more of them", "train", write_chain(chain={"file": "two.jsonl"}))
    make_chains("chains.bin", count=20)
    refused(2, "chain.file", "train", write_chain(out=".", chain={"file": "chains.bin"}))
    make_chains()
    run("train", write_chain(), "--quiet")
    make_chains("other.jsonl", count=30, modulus=3)
    refused(2, "other.jsonl: are not the chains that the run in out was trained on; resume with its file", "train", write_chain(chain={"file": "other.jsonl"}),
            "--resume", "--steps", "12")
    run("train", write_chain(), "--quiet", "--resume", "--steps", "12")
    data = bytearray(read("out/chains.bin"))
    data[200] ^= 1
    with open("out/chains.bin", "wb") as file:
        file.write(data)
    refused(4, "chains.bin", "eval", "out")


def test_bad_keys():
    for sections, words in (
            ({"model": {"sequence": 12}}, r"model.sequence 12 has no room for a question of 6 tokens \(chain.question\), 3 latents and an answer; make it 13 at least"),
            ({"model": {"heads": 3}}, r"model.heads 3 does not divide model.width 8"),
            ({"model": {"dropout": 0.1}}, r"model.dropout is not used when model.arch is chain"),
            ({"chain": {"latents": 64, "replaced": 5}}, r"chain.latents 64 for each of 5 steps .* more than the 256 latents"),
            ({"chain": {"stages": 2}}, r"chain.replaced is for one training, and chain.stages 2 asks for several"),
            ({"chain": {"stages": 2, "replaced": 0, "stage": "stage-3"}}, r"there is no stage stage-3; they are stage-0, stage-1, stage-2 and answer"),
            ({"chain": {"stage": "stage-0"}}, r"there is no stage stage-0, since the config is one training"),
            ({"chain": {"stages": 2, "replaced": 0, "held_out": 0}}, r"is judged by chains that were held out, and chain.held_out is 0; raise it, or write chain.stages 0"),
            ({"chain": {"question": 0}}, r"chain.question must be an integer from 1 to 65535|chain.question.* 0"),
            ({"chain": {"thoughts": 2}}, r"thoughts")):
        make_chains()
        refused(2, words, "train", write_chain(**json.loads(json.dumps(sections))))
        check(not os.path.exists("out"), "something is left")


def test_changed_predictions():
    make_chains(count=20)
    config = write_chain(chain={"stages": 1, "replaced": 0}, model={"sequence": 26}, train={"steps": 2})
    run("train", config, "--quiet")
    predicted_again(config, "stage-0")


GROUPS = {"chain": [test_gradients_through_all_latents, test_same_bits_however_it_is_cut, test_planned_is_measured, test_killed_and_gone_on, test_bad_lines,
                    test_bad_files, test_bad_keys],
          "chain_stages": [test_changed_predictions, test_curriculum_learns, test_stages_go_on]}

if __name__ == "__main__":
    main(GROUPS)

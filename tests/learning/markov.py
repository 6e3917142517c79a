"""A text whose entropy is known: markov.py PLIMSOLL FOLDER   (PLIMSOLL_TEST_SEED repeats a run)

docs/sources/threaded-text.md (a). An order-1 Markov chain over 64 letters, eight successors for each, writes a training text and a fresh
one. Its entropy rate h = sum_i pi_i H(row i) is the best loss that any model can reach on fresh text. The tiny transformer
of docs/sources/threaded-text.md must come within 0.05 nat of it, and never below it by more than chance: a model that sees its targets
(a mask that leaks, a shift that is off) goes far below. The first letter of a window is known, so no window pays for a
start. A perceptron that sees one letter is held to the same."""
import json
import math
import os
import random
import shutil
import subprocess
import sys

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"
SUCCESSORS = 8
TRAIN, FRESH = 300_000, 120_000
COMMAND, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SEED = int(os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30)))
MODELS = {
    "gpt": ["--arch", "gpt", "--width", "32", "--layers", "2", "--heads", "4", "--sequence", "32"],
    "mlp": ["--arch", "mlp", "--width", "64", "--layers", "1", "--window", "1", "--sequence", "32"],
}


def make_chain(rng):
    """Rows of (successor, probability): the popular letters (Zipf) follow more often, in another order for each row."""
    weights = [1 / (rank + 1) for rank in range(len(LETTERS))]
    chain = []
    for _ in LETTERS:
        successors = set()
        while len(successors) < SUCCESSORS:
            successors.update(rng.choices(range(len(LETTERS)), weights))
        shares = [rng.random() + 0.05 for _ in successors]
        chain.append([(s, p / sum(shares)) for s, p in zip(sorted(successors), shares)])
    return chain


def stationary(chain):
    pi = [1 / len(chain)] * len(chain)
    for _ in range(2000):
        new = [0.0] * len(chain)
        for i, row in enumerate(chain):
            for j, p in row:
                new[j] += pi[i] * p
        pi = new
    return pi


def entropy_rate(chain):
    return -sum(share * sum(p * math.log(p) for _, p in row) for share, row in zip(stationary(chain), chain))


def walk(chain, rng, count):
    state, out = 0, []
    rows = [([j for j, _ in row], [p for _, p in row]) for row in chain]
    for _ in range(count):
        state = rng.choices(*rows[state])[0]
        out.append(state)
    return out


def spread(chain, states):
    """The mean surprise of this very text under the true chain, and the standard error of such a mean."""
    table = [dict(row) for row in chain]
    surprises = [-math.log(table[a][b]) for a, b in zip(states, states[1:])]
    mean = sum(surprises) / len(surprises)
    return mean, math.sqrt(sum((s - mean) ** 2 for s in surprises) / len(surprises) / len(surprises))


def plimsoll(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    env.update(XDG_CACHE_HOME=os.path.join(FOLDER, "cache"), OMP_WAIT_POLICY="passive")
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, env=env, cwd=FOLDER)
    if done.returncode:
        sys.exit(f"plimsoll {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def loss_on_fresh_text(name, options):
    """Trains, and evaluates on the end of the text: the part that training never sees."""
    out = os.path.join(FOLDER, name)
    held_out = str(FRESH / (TRAIN + FRESH))
    plimsoll("train", os.path.join(FOLDER, "base.yaml"), *options, "--out", out, "--text", "text", "--set",
             f"data.validation_fraction={held_out}")
    values = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
    losses = [v["validation_loss"] for v in values if "validation_loss" in v]
    if not losses:
        sys.exit(f"{name}: no validation loss in metrics.jsonl")
    return losses[-1]


def main():
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    chain = make_chain(rng)
    states = walk(chain, rng, TRAIN + FRESH)
    open(os.path.join(FOLDER, "text"), "w").write("".join(LETTERS[s] for s in states))
    open(os.path.join(FOLDER, "base.yaml"), "w").write(
        "data: {tokenizer: chars}\n"
        "train: {batch_size: 32, steps: 1000, learning_rate: 1e-2, eval_every: 500, eval_batches: 1000, log_every: 100}\n"
        "run: {threads: 1}\n")
    h = entropy_rate(chain)
    here, error = spread(chain, states[TRAIN:])
    print(f"entropy rate {h:.4f} nats; of the fresh text {here:.4f}, standard error {error:.4f}")
    failed = []
    for name, options in MODELS.items():
        loss = loss_on_fresh_text(name, options)
        ok = here - 3e-3 <= loss <= here + 0.05 and loss >= h - 5 * error
        print(f"{name}: {loss:.4f} nats on fresh text, {loss - here:+.4f}: {'as it must be' if ok else 'WRONG'}")
        failed += [] if ok else [name]
    sys.exit(f"seed {SEED}: {', '.join(failed)}" if failed else 0)


main()

"""Tests of the features of operators: against a second program (rollout_oracle.py) with random numbers of its own making, that they hang on
neither noise nor how the work is cut, and what of them is stored where. Called as cli_tests.py is."""
import json
import math
import os
import random
import shutil
import struct

from cli_tests import SEED, check, main, run
from rollout_oracle import Operator, Witness, image_of, load_npy, philox_block, philox_key, planes_of
from rollout_tests import same_results, write_rollout

DRAW = random.Random(SEED)
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
CHANGES, SCALES = (1e-4, 1e-3, 1e-2), (0.5, 0.75, 1.25, 1.5)
NAMES = ["lipschitz_eps_1e-4", "lipschitz_eps_1e-3", "lipschitz_eps_1e-2", "gain_scale_0.50", "gain_scale_0.75", "gain_scale_1.25",
         "gain_scale_1.50", "linearity_r2", "saturation_degree", "compression_ratio"]


def normals(seed, stream, step, sample, count):
    key, result = philox_key(seed, stream), []
    for block in range((count + 3) // 4):
        words = philox_block(key, step, sample, block)
        for a, b in (words[:2], words[2:]):
            radius, angle = math.sqrt(-2 * math.log((a + 0.5) / 2 ** 32)), 2 * math.pi * (b + 0.5) / 2 ** 32
            result += [radius * math.cos(angle), radius * math.sin(angle)]
    return result[:count]


# ---- the features from the definition ----

def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def norm(values):
    return math.sqrt(math.fsum(v * v for v in values))


def features_of(w):
    side = w.side
    quiet = [[0.0] * (side * w.channels) for _ in range(side)]
    operate = Operator(w.weights, w.parameters)
    x = [v for row in image_of(w.field, side, 3) for v in row]

    def answer(numbers):
        return planes_of(operate([numbers[y * side * 3:(y + 1) * side * 3] for y in range(side)], quiet), side, 3)

    base, result = answer(x), []
    for k, eps in enumerate(CHANGES):
        z = normals(w.parameters["seed"], "features", k, w.parameters["operator"], len(x))
        near = [single(a + eps * b) for a, b in zip(x, z)]
        result.append(norm(a - b for a, b in zip(answer(near), base)) / norm(a - b for a, b in zip(near, x)))
    gains = [norm(answer([s * v for v in x])) / norm(base) for s in SCALES]
    mean, middle = sum(SCALES) / 4, sum(gains) / 4
    slope = sum((s - mean) * (g - middle) for s, g in zip(SCALES, gains)) / sum((s - mean) ** 2 for s in SCALES)
    rest = sum((g - middle - slope * (s - mean)) ** 2 for s, g in zip(SCALES, gains))
    r2 = 1 - rest / (sum((g - middle) ** 2 for g in gains) + 1e-10)
    return result + gains + [r2, 1.5 - gains[3], gains[0] / gains[3]]


# The smaller the change, the more of the answer to it is the rounding of float32; so is what the line leaves of gains that are all but equal.
BOUNDS = (3e-2, 3e-3, 3e-4) + (1e-4,) * 4 + (2e-2, 1e-4, 1e-4)


def test_another_program_measures_the_same():
    for i in range(6):
        space = {"num_layers": [(2, 4)[i % 2]], "kernel_size": [(3, 5)[i // 2 % 2]], "base_channels": [DRAW.randint(1, 4)], "grid_size": [8],
                 "noise_scale": [0.5], "noise_type": [("gaussian", "multiplicative", "dropout")[i % 3]]}
        # Small fields: there the norm's 1e-5 counts, and gains are not all 1.
        variance = (1, 1e-4)[i // 3]
        config = write_rollout(space=space, simulation={"seed": DRAW.randrange(1 << 30), "input_generation":
                                                        f"{{method: gaussian_random_field, length_scale: 0.1, variance: {variance}}}"})
        run("rollout", config, "--witness", "witness", "--steps", "1")
        run("rollout", config, "--quiet", "--set", "dataset.storage.backend=npy")
        w = Witness("witness")
        said = w.parameters["features"]
        shape, stored = load_npy("out/results/features.operator.npy")
        check(list(said) == NAMES, said)
        check(shape == (1, 10) and [single(said[n]) for n in NAMES] == list(stored), "the witness says", said, "and the results", stored)
        for name, want, have, bound in zip(NAMES, features_of(w), stored, BOUNDS):
            check(math.isfinite(have), name, have)
            check(abs(have - want) <= bound * max(abs(want), 0.1), name, "is", have, "and not", want, w.parameters)
        check(variance == 1e-4 or all(abs(v - 1) < 1e-3 for v in stored[3:7]), "a norm comes first, and the gain is", list(stored[3:7]))
        shutil.rmtree("witness")
        shutil.rmtree("out")


def test_same_bits_however_it_is_cut():
    """Some inputs at once or each alone; and beside noise or none."""
    def make(out, *words, scale=0.3):
        config = write_rollout(f"{out}.yaml", space={"num_layers": [2, 4], "grid_size": [9], "noise_scale": [scale]}, sampling={"total_samples": 3},
                               simulation={"num_realizations": 9, "num_timesteps": 3}, dataset={"store": "features", "storage": "{backend: npy}"})
        run("rollout", config, "--quiet", "--out", out, *words)
        return load_npy(f"{out}/results/features.operator.npy")
    whole = make("whole")
    check(whole[0] == (3, 10) and len(set(whole[1])) > 24, whole)
    for at_once, threads in ((3, 2), (5, 1), (8, 2), (9, 1)):
        check(make(f"at{at_once}", "--realizations_at_once", str(at_once), "--threads", str(threads)) == whole, at_once, "at once")
        same_results("whole/results", f"at{at_once}/results")
    check(make("silent", scale=0) == whole, "noise is in the features")
    # Features that were lost are made again, beside states that are all there.
    with open("at3/results/features.operator.npy", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    run("results", "check", "--repair", "at3/results")
    run("rollout", "at3.yaml", "--quiet", "--out", "at3")
    same_results("whole/results", "at3/results")


def test_what_is_stored():
    def datasets(*words):
        shutil.rmtree("out", ignore_errors=True)
        config = write_rollout(dataset={"storage": "{backend: npy}", "store": "auto"})
        _, said = run("rollout", config, *words, "--threads", "2")
        check("As planned, to the byte." in said, said)
        return {name.split(".")[0] for name in os.listdir("out/results") if name.endswith(".npy")}
    always = {"inputs", "metrics", "parameters"}
    for words, more in (((), {"features"}), (("--store", "features"), {"features"}), (("--store", "trajectories"), {"outputs"}),
                        (("--store", "both"), {"features", "outputs"}), (("--set", "dataset.storage.store_trajectories=true"), {"features", "outputs"}),
                        (("--set", "simulation.extract_operator_features=false"), set())):
        found = datasets(*words)
        check(found == always | more, words, found)


def test_every_arch_has_them():
    """One without a norm answers to the size of its input; the others all but not."""
    for arch, scaled in (("unet", False), ("fno", True)):
        example = os.path.join(EXAMPLES, f"rollout_{arch}.yaml")
        words = ("--num_timesteps", "2", "--num_realizations", "1", "--set", "dataset.storage.backend=npy")
        run("rollout", example, "--quiet", "--out", arch, *words)
        run("rollout", example, "--quiet", "--out", f"{arch}2", "--threads", "2", *words)
        same_results(f"{arch}/results", f"{arch}2/results")
        shape, found = load_npy(f"{arch}/results/features.operator.npy")
        check(shape == (2, 10) and all(math.isfinite(v) for v in found) and all(v > 0 for v in found[:3]), arch, list(found))
        for gains in (found[3:7], found[13:17]):
            check(any(abs(g - 1) > 1e-2 for g in gains) == scaled, arch, list(gains))


def test_other_precisions():
    for precision, bound in (("float16", 3e-2), ("bfloat16", 0.3)):
        config = write_rollout(simulation={"precision": precision})
        run("rollout", config, "--witness", precision, "--steps", "1")
        with open(f"{precision}/parameters.json") as file:
            found = json.load(file)["features"]
        run("rollout", config, "--witness", f"{precision}-32", "--steps", "1", "--precision", "float32")
        with open(f"{precision}-32/parameters.json") as file:
            exact = json.load(file)["features"]
        for name in NAMES[3:7] + NAMES[8:]:
            check(abs(found[name] - exact[name]) < bound, precision, name, found[name], exact[name])
        check(abs(found[NAMES[2]] / exact[NAMES[2]] - 1) < 10 * bound, precision, found[NAMES[2]], exact[NAMES[2]])


if __name__ == "__main__":
    main({"rollout_features": [test_another_program_measures_the_same, test_same_bits_however_it_is_cut, test_what_is_stored,
                               test_every_arch_has_them, test_other_precisions]})

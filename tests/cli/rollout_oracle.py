"""A rollout written down a second time, from the definition and in double precision, in plain Python: the judge of what
plimsoll rollout --witness leaves. Channels lie last, as in the weights; the field of a witness has them first."""
import json
import math
import operator
import os
import random
import struct
from array import array

EPS = 1e-5
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B"}


def dot(a, b):
    return sum(map(operator.mul, a, b))


# ---- the random numbers of src/base/philox.h, once more ----

M64 = (1 << 64) - 1


def mix64(x):
    x = (x + 0x9e3779b97f4a7c15) & M64
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M64
    x = (x ^ x >> 27) * 0x94d049bb133111eb & M64
    return x ^ x >> 31


def philox_key(seed, stream):
    scope = 0xcbf29ce484222325
    for byte in stream.encode():
        scope = (scope ^ byte) * 0x100000001b3 & M64
    key = mix64(mix64(seed) ^ scope)
    return key & 0xFFFFFFFF, key >> 32


def philox_block(key, step, sample, block):
    c, (k0, k1) = (block, sample & 0xFFFFFFFF, sample >> 32, step), key
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = (b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


# ---- files ----

def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def load_npy(path):
    """(shape, numbers in C order)"""
    data = read_bytes(path)
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{path} is no .npy")
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:begin].decode(), {"__builtins__": {}})
    half = header["descr"] == "<f2"
    numbers = struct.unpack(f"<{(len(data) - begin) // 2}e", data[begin:]) if half else array(CODES[header["descr"]], data[begin:])
    if header["fortran_order"] or len(numbers) != math.prod(header["shape"]):
        raise ValueError(f"{path}: {header}, and {len(numbers)} numbers")
    return header["shape"], numbers


def load_weights(path):
    """name → (shape, numbers); F32, BF16, which is the upper half of one, or F16"""
    data = read_bytes(path)
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in ("F32", "BF16", "F16"):
            raise ValueError(f"{name} is {entry['dtype']}")
        first, last = entry["data_offsets"]
        numbers = data[begin + first:begin + last]
        if entry["dtype"] == "F16":
            found[name] = entry["shape"], list(struct.unpack(f"<{len(numbers) // 2}e", numbers))
            continue
        if entry["dtype"] == "BF16":
            numbers = struct.pack(f"<{len(numbers) // 2}I", *(half << 16 for half in array("H", numbers)))
        found[name] = entry["shape"], list(array("f", numbers))
    return found


# ---- an image is a list of rows, a row a list of side·channels numbers ----

def image_of(planes, side, channels):
    """From [channels, side, side]."""
    return [[planes[(c * side + y) * side + x] for x in range(side) for c in range(channels)] for y in range(side)]


def planes_of(image, side, channels):
    return [image[y][x * channels + c] for c in range(channels) for y in range(side) for x in range(side)]


def convolve(image, shape, weight, bias=None):
    """Stride 1, zeros around; weights [out, k, k, in]."""
    out, k, _, channels = shape
    side, pad = len(image), k // 2
    empty = [0.0] * ((side + 2 * pad) * channels)
    edge = [0.0] * (pad * channels)
    rows = [empty] * pad + [edge + row + edge for row in image] + [empty] * pad
    kernels = [weight[o * k * k * channels:(o + 1) * k * k * channels] for o in range(out)]
    add = bias or [0.0] * out
    result = []
    for y in range(side):
        line = []
        for x in range(side):
            patch = [number for row in rows[y:y + k] for number in row[x * channels:(x + k) * channels]]
            line += [dot(patch, kernel) + b for kernel, b in zip(kernels, add)]
        result.append(line)
    return result


ACTIVATIONS = {
    "none": lambda x: x,
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
}


def normalize(image, channels, groups, gain, shift, activation):
    """Of each group of channels over all pixels: mean 0, variance 1 (over n); then the activation."""
    side, per = len(image), channels // groups
    result = [row[:] for row in image]
    for g in range(groups):
        members = [(y, x * channels + g * per + c, g * per + c) for y in range(side) for x in range(side) for c in range(per)]
        values = [image[y][at] for y, at, _ in members]
        mean = math.fsum(values) / len(values)
        scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values) + EPS)
        for (y, at, c), v in zip(members, values):
            result[y][at] = activation((v - mean) * scale * gain[c] + shift[c])
    return result


def combine(a, b, how):
    return [[how(x, y) for x, y in zip(p, q)] for p, q in zip(a, b)]


def rescale(image, channels, gain, shift, activation):
    """Batch norm as evaluation has it, with a mean of 0 and a variance of 1."""
    factor = 1 / math.sqrt(1 + EPS)
    return [[activation(v * factor * gain[i % channels] + shift[i % channels]) for i, v in enumerate(row)] for row in image]


class Operator:
    """`step`: whose channels are dropped, where any are; None: none are."""
    step = None

    def __init__(self, weights, parameters):
        self.w, self.p = weights, parameters
        self.activation = ACTIVATIONS[parameters["activation"]]

    def norm(self, image, channels, name):
        gain, shift = self.w[name + ".norm.weight"][1], self.w[name + ".norm.bias"][1]
        if self.p["normalization"] == "batch":
            return self.drop(rescale(image, channels, gain, shift, self.activation), channels, name)
        return self.drop(normalize(image, channels, self.groups(channels), gain, shift, self.activation), channels, name)

    def drop(self, image, channels, name):
        rate = self.p["dropout_rate"]
        if rate == 0 or self.step is None:
            return image
        key, factors = philox_key(self.p["seed"], "dropout " + name), []
        for block in range((channels + 3) // 4): # of realisation 0
            factors += [0.0 if (word >> 8) / 2 ** 24 < rate else 1 / (1 - rate) for word in philox_block(key, self.step, self.p["operator"] << 32, block)]
        self.factors += factors[:channels]
        return [[v * factors[i % channels] for i, v in enumerate(row)] for row in image]

    def groups(self, channels):
        if self.p["normalization"] == "instance":
            return channels
        return next(g for g in range(8, 0, -1) if channels % g == 0)

    def block(self, x, name):
        """CB: convolution without bias, norm, activation."""
        shape, weight = self.w[name + ".weight"]
        out = shape[0]
        return self.norm(convolve(x, shape, weight), out, name)

    def layer(self, x, i):
        name = f"layers.{i}"
        if self.p["num_layers"] <= 3:
            return self.block(x, name)
        y = self.block(self.block(x, name + ".conv1"), name + ".conv2")
        skip = self.w.get(name + ".skip.weight")
        return combine(y, convolve(x, *skip) if skip else x, operator.add)

    def __call__(self, x, noise):
        """`noise`: what is added to the features before the output."""
        x = self.block(x, "stem")
        for i in range(self.p["num_layers"]):
            x = self.layer(x, i)
        shape, weight = self.w["output.weight"]
        return convolve(combine(x, noise, operator.add), shape, weight, self.w["output.bias"][1])


class UNet(Operator):
    """A stem; three levels down, of two residual blocks and a convolution of stride 2; three up, beside what went down."""

    def residual(self, x, name):
        y = self.block(self.block(x, name + ".conv1"), name + ".conv2")
        skip = self.w.get(name + ".skip.weight")
        return combine(y, convolve(x, *skip) if skip else x, operator.add)

    def two(self, x, name):
        return self.residual(self.residual(x, name + ".block1"), name + ".block2")

    def halve(self, x, name):
        """Stride 2 is every other pixel of stride 1."""
        shape, weight = self.w[name + ".weight"]
        out = shape[0]
        y = [[v for i in range(0, len(x), 2) for v in row[i * out:(i + 1) * out]] for row in convolve(x, shape, weight)[::2]]
        return self.norm(y, out, name)

    def __call__(self, x, noise):
        x, skips = self.block(x, "stem"), []
        for i in range(3):
            skips.append(self.two(x, f"down.{i}"))
            x = self.halve(skips[-1], f"down.{i}.reduce")
        for i in (2, 1, 0):
            larger, skip = double(x, self.w[f"down.{min(i + 1, 2)}.reduce.weight"][0][0]), skips[i]
            x = self.two(self.block(beside(larger, skip), f"up.{i}.merge"), f"up.{i}")
        shape, weight = self.w["output.weight"]
        return convolve(combine(x, noise, operator.add), shape, weight, self.w["output.bias"][1])


def double(image, channels):
    """Bilinear, pixel centres: row o lies at (o + 1/2)/2 - 1/2 of the rows."""
    side = len(image)

    def taps(o):
        at = min(max((o + 0.5) / 2 - 0.5, 0.0), side - 1.0)
        low = int(at)
        return low, min(low + 1, side - 1), at - low

    result = []
    for y in range(2 * side):
        a, b, v = taps(y)
        line = []
        for x in range(2 * side):
            c, d, u = taps(x)
            line += [(1 - v) * ((1 - u) * image[a][c * channels + k] + u * image[a][d * channels + k])
                     + v * ((1 - u) * image[b][c * channels + k] + u * image[b][d * channels + k]) for k in range(channels)]
        result.append(line)
    return result


def beside(a, b):
    """The channels of a, then those of b, pixel by pixel."""
    side, m, n = len(a), len(a[0]) // len(a), len(b[0]) // len(b)
    return [[v for x in range(side) for v in p[x * m:(x + 1) * m] + q[x * n:(x + 1) * n]] for p, q in zip(a, b)]


class Fourier(Operator):
    """Lift of state and coordinates; layers act(K v + W v + b), no act in the last; two linears."""
    modes = 12

    def linear(self, x, name):
        (out, channels), weight = self.w[name + ".weight"]
        bias = self.w[name + ".bias"][1]
        rows = [weight[o * channels:(o + 1) * channels] for o in range(out)]
        return [[dot(line[i:i + channels], row) + b for i in range(0, len(line), channels) for row, b in zip(rows, bias)] for line in x]

    def spectral(self, x, name):
        """Of the transform X[k,l] the rows 0 ... 11 and -12 ... -1 and the columns 0 ... 11, each times its matrix; back by the inverse
        of a real image's transform: column l stands for -l, too, but where these are one."""
        (_, _, channels, _, out), weight = self.w[name]
        side, m = len(x), self.modes
        wave = [complex(math.cos(2 * math.pi * i / side), math.sin(2 * math.pi * i / side)) for i in range(side)]
        across = [[[sum(line[w * channels + c] * wave[-l * w % side] for w in range(side)) for l in range(m)] for line in x] for c in range(channels)]
        result = [[0.0] * (side * out) for _ in range(side)]
        for r, k in enumerate([*range(m), *range(-m, 0)]):
            for l in range(m):
                mode = [sum(across[c][h][l] * wave[-k * h % side] for h in range(side)) for c in range(channels)]
                begin = (r * m + l) * channels * 2 * out
                factor = (1 if l == 0 or 2 * l == side else 2) / side ** 2
                for o in range(out):
                    mixed = factor * sum(mode[c] * complex(weight[begin + c * 2 * out + o], weight[begin + c * 2 * out + out + o]) for c in range(channels))
                    for h in range(side):
                        turned, line = mixed * wave[k * h % side], result[h]
                        for w in range(side):
                            line[w * out + o] += (turned * wave[l * w % side]).real
        return result

    def __call__(self, x, noise):
        side = len(x)
        places = [[v for w in range(side) for v in (h / (side - 1), w / (side - 1))] for h in range(side)]
        x = self.linear(beside(x, places), "lift")
        for i in range(self.p["num_layers"]):
            x = combine(self.spectral(x, f"layers.{i}.spectral.weight"), self.linear(x, f"layers.{i}.linear"), operator.add)
            if i + 1 < self.p["num_layers"]:
                x = self.drop([[self.activation(v) for v in line] for line in x], len(x[0]) // side, f"layers.{i}")
        hidden = self.linear(combine(x, noise, operator.add), "output.0")
        return self.linear([[self.activation(v) for v in line] for line in hidden], "output.1")


def operator_of(weights, parameters):
    kind = UNet if "down.0.reduce.weight" in weights else Fourier if "lift.weight" in weights else Operator
    return kind(weights, parameters)


# ---- from state to state ----

def advance(p, x, y):
    if p["update_policy"] == "residual":
        return combine(x, y, lambda a, b: a + p["dt"] * b)
    if p["update_policy"] == "convex":
        return combine(x, y, lambda a, b: p["alpha"] * a + (1 - p["alpha"]) * b)
    return y


def post_process(p, x):
    values = [v for row in x for v in row]
    low, factor = 0.0, 1.0
    if p["post_process"] == "minmax":
        low = min(values)
        factor = 1 / (max(values) - low)
    elif p["post_process"] == "zscore":
        low = math.fsum(values) / len(values)
        factor = 1 / (math.sqrt(math.fsum((v - low) ** 2 for v in values) / (len(values) - 1)) + 1e-8)
    floor = -math.inf if p["clamp_low"] is None else p["clamp_low"]
    ceiling = math.inf if p["clamp_high"] is None else p["clamp_high"]
    return [[max(floor, min(ceiling, (v - low) * factor)) for v in row] for row in x]


def metrics_of(x, previous):
    """energy, entropy of 50 bins, correlation with the state before, variance (over n − 1), mean |x|"""
    n, low, high = len(x), min(x), max(x)
    mean = math.fsum(x) / n
    bins = [0] * 50
    for v in x:
        bins[min(49, int((v - low) * (50 / (high - low))))] += 1
    squares = math.fsum((v - mean) ** 2 for v in x)
    correlation = 0.0
    if previous:
        before = math.fsum(previous) / n
        together = math.fsum((a - mean) * (b - before) for a, b in zip(x, previous))
        correlation = together / math.sqrt(squares * math.fsum((b - before) ** 2 for b in previous))
    return [math.fsum(v * v for v in x), -math.fsum(b / n * math.log(b / n) for b in bins if b), correlation, squares / (n - 1),
            math.fsum(map(abs, x)) / n]


# ---- a witness ----

class Witness:
    def __init__(self, folder):
        self.parameters = p = json.loads(read_bytes(f"{folder}/parameters.json"))
        self.weights = load_weights(f"{folder}/weights.safetensors")
        shape, self.field = load_npy(f"{folder}/field.npy")
        (self.steps, *state), self.states = load_npy(f"{folder}/states.npy")
        (steps, self.channels, *grid), self.noise = load_npy(f"{folder}/noise.npy")
        rows, self.metrics = load_npy(f"{folder}/metrics.npy")
        self.dropout = load_npy(f"{folder}/dropout.npy")[1] if os.path.exists(f"{folder}/dropout.npy") else []
        self.side = p["grid_size"]
        if list(shape) != state or state != [3, self.side, self.side] or grid != state[1:] or steps != self.steps or rows != (steps + 1, 5):
            raise ValueError(f"{folder}: shapes do not go together")

    def state(self, t):
        """[3, H, W] as one list; state 0 is the field."""
        size = 3 * self.side ** 2
        return list(self.states[(t - 1) * size:t * size]) if t else list(self.field)

    def repeat(self):
        """The largest difference of a state, relative to its largest number: where each step is repeated from the state
        before it as written, and where all is repeated from the field on."""
        operate, worst = operator_of(self.weights, self.parameters), [0.0, 0.0]
        chain, size = image_of(self.field, self.side, 3), self.channels * self.side ** 2
        for t in range(1, self.steps + 1):
            noise, theirs = image_of(self.noise[(t - 1) * size:t * size], self.side, self.channels), self.state(t)
            if not all(map(math.isfinite, theirs)):
                return [math.inf, math.inf]
            operate.step, operate.factors = t, []
            def step(x):
                return post_process(self.parameters, advance(self.parameters, x, operate(x, noise)))
            single = step(image_of(self.state(t - 1), self.side, 3))
            told = self.dropout[(t - 1) * len(operate.factors):t * len(operate.factors)]
            if len(told) != len(operate.factors) or any(abs(a - b) > 1e-6 * b for a, b in zip(told, operate.factors)):
                raise ValueError(f"other channels are dropped in step {t}: {told}, not {operate.factors}")
            chain = step(chain) if t > 1 else single
            for k, ours in enumerate((single, chain)):
                apart = max(map(abs, map(operator.sub, planes_of(ours, self.side, 3), theirs)))
                worst[k] = max(worst[k], apart / max(map(abs, theirs)))
        return worst

    def repeat_features(self):
        """The largest difference of an answer's gain, where the field is scaled and there is no noise; and how far the
        answers to small changes are from ours, whose random numbers are others: the largest ratio either way."""
        operate, draw = operator_of(self.weights, self.parameters), random.Random(1)
        silent = [[0.0] * (self.channels * self.side) for _ in range(self.side)]
        def answer(field):
            return [v for row in operate(image_of(field, self.side, 3), silent) for v in row]
        def norm(values):
            return math.sqrt(math.fsum(v * v for v in values))
        told, field = self.parameters["features"], list(self.field)
        at_field, gain = answer(field), {}
        for scale in (0.5, 0.75, 1.25, 1.5):
            gain[scale] = norm(answer([scale * v for v in field])) / norm(at_field)
        apart = [told[f"gain_scale_{s:.2f}"] - gain[s] for s in gain]
        apart += [told["saturation_degree"] - (1.5 - gain[1.5]), told["compression_ratio"] - gain[0.5] / gain[1.5]]
        ratios = [1.0]
        for deviation in ("1e-4", "1e-3", "1e-2"):
            change = [draw.gauss(0, float(deviation)) for _ in field]
            ours = norm(map(operator.sub, answer(list(map(operator.add, field, change))), at_field)) / norm(change)
            ratios += [ours / told[f"lipschitz_eps_{deviation}"], told[f"lipschitz_eps_{deviation}"] / ours]
        return max(map(abs, apart)), max(ratios)

    def repeat_metrics(self):
        """Likewise of the metrics; they are measured of the states as written."""
        worst = 0.0
        for t in range(self.steps + 1):
            expected = metrics_of(self.state(t), self.state(t - 1) if t else None)
            for k, value in enumerate(expected):
                worst = max(worst, abs(self.metrics[t * 5 + k] - value) / max(1e-3, abs(value)))
        return worst

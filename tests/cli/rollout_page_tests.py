"""Tests of the page about results of rollouts: each pixel against the states in the file, quantiles against Python's own, what is not
finite and not finished, what processes told, bad input. Called as cli_tests.py is."""
import base64
import html
import json
import math
import os
import random
import re
import shutil
import statistics
import struct

from cli_tests import SEED, check, main, read, refused, run
from rollout_tests import damage, write_rollout

DRAW = random.Random(SEED)
POLICIES = ["autoregressive", "residual", "convex"]
METRICS = {"Energy": "energy", "Entropy": "entropy", "Autocorrelation": "autocorrelation", "Variance": "variance", "Mean magnitude": "mean_magnitude"}
OPERATORS, REALISATIONS, STATES, GRID, BLOCK = 9, 2, 23, 11, 8


def load(path):
    """(shape, numbers, where they begin) of a .npy file of f16 or f32."""
    data = read(path)
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:begin].decode(), {"__builtins__": {}})
    count = math.prod(header["shape"])
    return header["shape"], struct.unpack(f"<{count}{'e' if header['descr'] == '<f2' else 'f'}", data[begin:]), begin


def put(path, place, number):
    with open(path, "r+b") as file:
        file.seek(load(path)[2] + 4 * place)
        file.write(struct.pack("<f", number))


def page_of(path, *words):
    return run("results", "report", path, "--html", "-", *words)[0]


# ---- what a page says ----

def pictures(page):
    """(operator, channel, state) → (side, indices of colours from the first row on), in the order of the page; and the colours."""
    found, colours = {}, None
    for operator, channel, state, data in re.findall(r"<img alt='operator (\d+), channel (\d+), state (\d+): [^']*' src='data:image/bmp;base64,([^']*)'", page):
        data = base64.b64decode(data, validate=True)
        size, begin, head, width, height, planes, bits, packed = struct.unpack("<2xI4xIIiiHHI", data[:34])
        check(data[:2] == b"BM" and size == len(data) and head == 40 and width == height and (planes, bits, packed) == (1, 8, 0), "no BMP", data[:54])
        colours = colours or data[54:begin]
        check(colours == data[54:begin] and len(colours) == 1024, "other colours")
        row = (width + 3) // 4 * 4
        check(len(data) == begin + row * height, "length of a picture")
        lines = [data[begin + row * y:begin + row * y + width] for y in range(height)]
        found[int(operator), int(channel), int(state)] = width, b"".join(reversed(lines))
    return found, colours


def tables(page):
    """metric → {(state, policy): (10 %, median, 90 %, values)}"""
    found = {}
    for title in METRICS:
        part = page[page.index(f"<h3>{title}</h3>"):]
        part = part[:part.index("</details>")]
        found[title] = {(int(s), p): tuple(math.nan if v == "–" else float(v.replace(",", "")) for v in re.findall(r"data-l='[^']*'>([^<]*)<", rest))
                        for s, p, rest in re.findall(r"<tr><td>state (\d+), (\w+)</td>(.*?)</tr>", part)}
    return found


def words_of(page):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S)))


# ---- what it must say ----

def levels(planes, side, factor):
    """Colours of the pictures of a channel: pixels are means of factor × factor numbers; one scale for all."""
    pixels = []
    for plane, grid in planes:
        for y in range(side):
            for x in range(side):
                part = [plane[j * grid + i] for j in range(y * factor, min((y + 1) * factor, grid)) for i in range(x * factor, min((x + 1) * factor, grid))]
                pixels.append(struct.unpack("f", struct.pack("f", sum(part) / len(part)))[0] if all(map(math.isfinite, part)) else math.nan)
    finite = [v for v in pixels if math.isfinite(v)]
    low, high = min(finite), max(finite)
    index = [255 if math.isnan(v) else int((v - low) / (high - low) * 254 + 0.5) for v in pixels]
    return [bytes(index[k * side * side:(k + 1) * side * side]) for k in range(len(planes))]


def chosen_states(states):
    return sorted({round(states ** (k / 5)) - 1 for k in range(6)})


def check_pictures(page, folder, expected):
    """expected: (operator, its states that are finished) in order."""
    found, colours = pictures(page)
    (_, realisations, states, channels, grid, _), fields, _ = load(f"{folder}/outputs.fields.npy")
    factor = 1
    while (grid + factor - 1) // factor > 128:
        factor *= 2
    side = (grid + factor - 1) // factor
    check(list(found) == [(o, c, t) for o, finished in expected for c in range(3) for t in chosen_states(finished)], "pictures:", list(found), expected)
    for operator, finished in expected:
        for channel in range(channels):
            planes = []
            for t in chosen_states(finished):
                first = (((operator * realisations) * states + t) * channels + channel) * grid * grid
                planes.append((fields[first:first + grid * grid], grid))
            for t, wanted in zip(chosen_states(finished), levels(planes, side, factor)):
                check(found[operator, channel, t] == (side, wanted), "picture of operator", operator, "channel", channel, "state", t)
    light = [0.2126 * colours[4 * i + 2] + 0.7152 * colours[4 * i + 1] + 0.0722 * colours[4 * i] for i in range(255)]
    check(all(a < b + 0.8 for a, b in zip(light, light[1:])) and light[-1] > light[0] + 150, "colours do not grow lighter")
    check(colours[1020:1023] == bytes((0x7a, 0, 0xe6)), "the colour of what is not finite")


def policies_of(folder):
    (count, dimensions), values, _ = load(f"{folder}/parameters.params.npy")
    return [POLICIES[int(values[i * dimensions + dimensions - 1])] for i in range(count)]


def in_turn(policies, operators):
    """The next operator of each policy in turn, six at most."""
    lists, taken = {p: [i for i in operators if policies[i] == p] for p in POLICIES}, []
    while any(lists.values()):
        taken += [lists[p].pop(0) for p in POLICIES if lists[p]]
    return taken[:6]


def check_tables(page, folder, operators):
    """Against statistics.quantiles, of the finished operators."""
    policies = policies_of(folder)
    told = tables(page)
    for title, name in METRICS.items():
        (_, realisations, states), values, _ = load(f"{folder}/metrics.{name}.npy")
        begin = int(name == "autocorrelation")
        rows = [begin + r * (states - 1 - begin) // 10 for r in range(11)]
        check(sorted(told[title]) == sorted((t, p) for t in rows for p in {policies[o] for o in operators}), title, sorted(told[title]))
        for (t, policy), (low, median, high, count) in told[title].items():
            series = [values[(o * realisations + m) * states + t] for o in operators if policies[o] == policy for m in range(realisations)]
            finite = [v for v in series if math.isfinite(v)]
            deciles = statistics.quantiles(finite, n=10, method="inclusive")
            check(count == len(finite), title, t, policy, count)
            for a, b in ((low, deciles[0]), (median, statistics.median(finite)), (high, deciles[8])):
                check(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-12), title, "state", t, policy, (low, median, high), deciles)


# ---- the tests ----

def write_three_policies():
    return write_rollout(space={"num_layers": [1, 2], "grid_size": [GRID], "noise_scale": "{type: continuous, bounds: [0.001, 1], log_scale: true}",
                                "update_policy": POLICIES},
                         sampling={"total_samples": OPERATORS}, dataset={"storage": f"{{backend: npy, block_states: {BLOCK}}}"},
                         simulation={"num_realizations": REALISATIONS, "num_timesteps": STATES, "seed": DRAW.randrange(1 << 30)})


def test_page():
    config = write_three_policies()
    _, said = run("rollout", config)
    check(said.endswith("page: out/results.html\n"), said)
    page, all_of_it = page_of("out"), list(range(OPERATORS))
    check(read("out/results.html").decode() == page and page_of("out/results") == page, "one page, however it is asked for")
    check(not re.search(r"(src|href)=['\"](?!data:)|<script|<link|url\(|@import", page), "something comes from elsewhere")
    check_pictures(page, "out/results", [(o, STATES) for o in in_turn(policies_of("out/results"), all_of_it)])
    check_tables(page, "out/results", all_of_it)
    words = words_of(page)
    check("All operators are finished." in words and "9 of 9 operators finished" in words and "not finite" not in words.replace("that are not finite", ""), words)
    check(words.count("as planned") == 1 and "not as planned" not in words and "of 2 processes" in words, words[-600:])
    for layers in (1, 2):
        shape = re.search(rf"num_layers {layers}, base_channels 4, kernel_size 3, activation gelu, .*? grid_size 11 (\d) of \1 ([\d,]+) \2 0 ", words)
        check(shape and int(shape[1]) in (4, 5), "planned and measured", words[-900:])
    # Of one operator; and a file that was asked for.
    run("results", "report", "out", "--only", "7", "--html", "seven.html")
    check_pictures(read("seven.html").decode(), "out/results", [(7, STATES)])
    # What is not finite: of the fields, and of a metric.
    shown = in_turn(policies_of("out/results"), all_of_it)[0]
    for place, number in enumerate((math.nan, math.inf, -math.inf)):
        put("out/results/outputs.fields.npy", shown * REALISATIONS * STATES * 3 * GRID * GRID + place, number)
    for place, number in ((5, math.nan), (6, math.inf)):
        put("out/results/metrics.variance.npy", (shown * REALISATIONS + 1) * STATES + place, number)
    page = page_of("out")
    check_pictures(page, "out/results", [(o, STATES) for o in in_turn(policies_of("out/results"), all_of_it)])
    check_tables(page, "out/results", all_of_it)
    numbers = 3 * len(chosen_states(STATES)) * GRID * GRID
    check(f"3 of these {numbers:,} numbers are not finite" in words_of(page), "numbers")
    check(re.search(rf"{policies_of('out/results')[shown]}: 2 of [\d,]+ values are not finite and left out", words_of(page)), "values")
    # What is not finished: damaged blocks no longer count.
    run("results", "check", "--repair", "out/results")
    page = page_of("out")
    left = [o for o in all_of_it if o != shown]
    check("Not all is finished: 8 of 9 operators" in words_of(page) and "1 of 9" not in words_of(page), words_of(page)[:300])
    check_pictures(page, "out/results", [(o, STATES) for o in in_turn(policies_of("out/results"), left)])
    check("not finite" not in words_of(page).replace("that are not finite", ""), "what is not finished is counted")
    refused(4, f"no state of operator {shown} is finished", "results", "report", "out", "--html", "-", "--only", str(shown))
    # A line that was cut off hides no other.
    with open("out/results.processes.jsonl", "a") as file:
        file.write('{"schema":"plimsoll.process/1","group":0,"pla')
    check("of 2 processes" in words_of(page_of("out")), "what processes told")
    run("rollout", config, "--quiet")
    page = read("out/results.html").decode()
    check_tables(page, "out/results", all_of_it)
    check("of 3 processes" in words_of(page), words_of(page)[-600:])


def test_begun():
    """The second block of realisation 0 is gone: eight states are left to show, and no rollout to measure."""
    config = write_rollout(space={"update_policy": ["residual"]}, simulation={"num_timesteps": 20}, dataset={"storage": "{backend: npy, block_states: 8}"})
    run("rollout", config, "--quiet")
    path = "out/results/outputs.fields.npy"
    damage(path, load(path)[2] + 9 * 3 * 8 * 8 * 4)
    run("results", "check", "--repair", "out/results")
    page = page_of("out")
    check_pictures(page, "out/results", [(0, 8)])
    check("No realisation is finished yet" in words_of(page) and "Operator 0, residual, not finished" in words_of(page), words_of(page)[:900])


def test_large_and_narrow():
    """Fields of more than 128 pixels are halved; states are f16."""
    config = write_rollout(space={"num_layers": [1], "base_channels": [1], "grid_size": [131], "update_policy": ["convex"]}, simulation={"num_timesteps": 3},
                           dataset={"storage": "{backend: npy, state_dtype: f16}"})
    run("rollout", config, "--quiet")
    page = page_of("out")
    check_pictures(page, "out/results", [(0, 3)])
    check("A pixel is the mean of 2 × 2 numbers" in words_of(page) and max(s for s, _ in pictures(page)[0].values()) == 66, "halved")


def test_features_alone():
    run("rollout", write_rollout(dataset={"store": "features"}), "--quiet")
    page = page_of("out/results.blocks")
    check([k for k in pictures(page)[0]] == [(0, c, 0) for c in range(3)] and "States are not stored" in words_of(page), list(pictures(page)[0]))
    # New results are another run's: what processes told about the old ones goes.
    os.remove("out/results.blocks")
    run("rollout", write_rollout(dataset={"store": "features"}), "--quiet")
    told = [json.loads(line) for line in read("out/results.processes.jsonl").splitlines()]
    check(len(told) == 1 and told[0]["as_planned"] and told[0]["items"] == 3 and told[0]["peak_bytes"] >= told[0]["measured_bytes"], told)


def test_refused():
    config = write_rollout(sampling={"total_samples": 2})
    for part in ("1/2", "2/2"):
        run("rollout", config, "--quiet", "--part", part)
    check(sorted(f for f in os.listdir("out") if f.endswith(".html")) == ["results-1-of-2.html", "results-2-of-2.html"], os.listdir("out"))
    part = "out/results-2-of-2.blocks"
    check("operators 1 to 1 of 2 (a part of a job)" in words_of(page_of(part)) and set(k[0] for k in pictures(page_of(part))[0]) == {1}, "a part")
    refused(2, "there is no operator 0; it has 1 to 1", "results", "report", part, "--only", "0")
    refused(2, "holds several results; name one of", "results", "report", "out")
    os.mkdir("empty")
    refused(4, "empty: holds no results", "results", "report", "empty")
    refused(4, "nothing.*cannot be opened", "results", "report", "nothing")
    refused(2, "a number was expected", "results", "report", part, "--only", "one")
    refused(2, "--only is no option of ls", "results", "ls", part, "--only", "1")
    refused(2, "one folder of a run, or its results, is expected", "results", "report", part, part)
    refused(2, "are the same file", "results", "report", part, "--html", part)
    shutil.copy(part, "damaged.blocks")
    damage("damaged.blocks", 60)
    refused(4, "is damaged", "results", "report", "damaged.blocks")
    os.truncate(part, 100)
    refused(4, "results-2-of-2.blocks", "results", "report", part)


if __name__ == "__main__":
    main({"rollout_page": [test_page, test_begun, test_large_and_narrow, test_features_alone, test_refused]})

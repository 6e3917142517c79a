"""Tests of encode: capsules against a second program (encode_oracle.py), that their bits hang on nothing but the texts and the
model, that what is killed ends as what was not, and what bad input is answered. Called as cli_tests.py is."""
import base64
import csv
import filecmp
import html
import json
import math
import operator
import os
import random
import re
import shutil
import signal
import subprocess
import time

import cli_tests
from cli_tests import COMMAND, SEED, Skipped, check, environment, main, read, refused, run
from soak import share_of
from encode_oracle import Encoder, draw_weights, write_weights
from rollout_oracle import load_npy

DRAW = random.Random(SEED)
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
SMALL = {"image_size": 40, "patch_size": 8, "hidden_size": 16, "num_heads": 2, "num_layers": 1, "H_cycles": 1, "L_cycles": 2,
         "target_capsules": 4, "capsule_grid_shape": "[2, 2]", "children_per_capsule": 2, "checksum_dim": 3, "text_format": "grammar",
         "count": 70, "block_texts": 16, "seed": SEED}


SECTIONS = {"texts": {"texts": "path", "text_format": "format", "text_key": "key", "count": "count", "font": "font"},
            "pipeline": {k: k for k in ("batch_size", "block_texts", "num_workers", "storage", "time_limit", "cache_dir", "cache_size")}}


def write_encoder(path="encode.yaml", threads=1, out="out", **keys):
    """A key that is None is left out."""
    module = os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-draw.so")
    if not os.path.exists(module) or not os.path.exists(FONT):
        raise Skipped("there is no module to draw with, or no font")
    with open(path, "w") as file:
        file.write(f"model:\n  arch: capsules\nrun:\n  threads: {threads}\n  out: {out}\n")
        given = {k: v for k, v in {**SMALL, **keys}.items() if v is not None}
        for section, names in SECTIONS.items():
            file.write(f"{section}:\n" + "".join(f"  {name}: {given.pop(k)}\n" for k, name in names.items() if k in given))
        file.write("encoder:\n" + "".join(f"  {k}: {v}\n" for k, v in given.items()))
    return path


def put(path, text):
    with open(path, "w", newline="") as file:
        file.write(text)


def encode(config, *words, **options):
    _, said = run("encode", config, *words, **options)
    check("As planned, to the byte." in said, said[-1500:])
    return said


def export(results, dataset="sketches"):
    run("results", "export", results, "--dataset", dataset, "--out", "export.npy")
    return read("export.npy")


def numbers_of(results, dataset="sketches"):
    """(shape, numbers)"""
    export(results, dataset)
    return load_npy("export.npy")


# ---- against another program ----

def repeats(text, grid=(2, 2), **keys):
    config = write_encoder(**keys)
    run("encode", config, "--witness", "witness", "--only", str(text))
    k = {**SMALL, **keys}
    encoder = Encoder("witness", k["num_heads"], k["num_layers"], k["H_cycles"], k["L_cycles"], k.get("recursion") == "trm", weights=k.get("weights"))
    children = k["children_per_capsule"] if k.get("real_children", "true") == "true" else 0
    found = encoder.distances(grid, children)
    shutil.rmtree("witness")
    return found


def test_another_program_repeats_it():
    # Numbers are stored with 11 bits: 2e-4 is what rounding them leaves.
    cases = [{}, {"recursion": "trm", "H_cycles": 2, "L_cycles": 1}, {"pooling_method": "avg"}, {"real_children": "false"},
             {"hidden_size": 12, "num_heads": 3, "num_layers": 2, "image_size": 48, "patch_size": 12},
             {"capsule_grid_shape": "[1, 5]", "target_capsules": 5, "children_per_capsule": 3, "pooling_method": "attention"}]
    for keys in cases:
        found = repeats(DRAW.randrange(SMALL["count"]), **keys)
        check(all(d < 5e-4 for d in found.values()), keys, found)
        print(", ".join(f"{name} {d:.1e}" for name, d in found.items()))
    found = repeats(3, precision="bfloat16")
    check(found["sketches"] < 5e-2 and found["checksums"] < 5e-2, found)  # children: in 8 bits another token may be the largest


def weights_for(path, dtypes=("F32",), change=None, **keys):
    """A file of random ones; change: of their table, before it is written."""
    made = draw_weights({**SMALL, **keys}, DRAW, dtypes)
    if change:
        change(made)
    write_weights(path, made)
    return path


def test_weights_of_a_file():
    cases = [{}, {"recursion": "trm", "H_cycles": 2, "L_cycles": 1}, {"pooling_method": "avg", "num_layers": 2}]
    for dtypes in (("F32",), ("F16",), ("BF16",), ("F32", "F16", "BF16")):
        keys = DRAW.choice(cases)
        found = repeats(DRAW.randrange(SMALL["count"]), weights=weights_for("w.safetensors", dtypes, **keys), **keys)
        check(all(d < 5e-4 for d in found.values()), dtypes, keys, found)
    found = repeats(3, weights=weights_for("w.safetensors", ("F32", "F16")), precision="bfloat16")
    check(found["sketches"] < 5e-2 and found["checksums"] < 5e-2, found)


def test_attention_entropy():
    """Against the definition, in double precision, for texts of several blocks; nothing else changes."""
    encode(write_encoder(out="without"))
    for keys in ({}, {"real_children": "false"}):
        config = write_encoder(attention_entropy="true", **keys)
        encode(config, "--out", "with")
        shape, entropy = numbers_of("with/results.blocks", "entropy")
        check(shape == (SMALL["count"], SMALL["target_capsules"]), shape)
        for text in (0, DRAW.randrange(SMALL["count"]), SMALL["count"] - 1):
            run("encode", config, "--witness", "witness", "--only", str(text))
            encoder = Encoder("witness", SMALL["num_heads"], SMALL["num_layers"], SMALL["H_cycles"], SMALL["L_cycles"], False)
            found = encoder.distances((2, 2), SMALL["children_per_capsule"] if not keys else 0)
            check(all(d < 5e-4 for d in found.values()), found)
            ours = entropy[text * shape[1]:(text + 1) * shape[1]]
            check(all(abs(a - b) < 2e-5 for a, b in zip(ours, encoder.entropy)), list(ours), encoder.entropy)
        check(export("with/results.blocks") == export("without/results.blocks"), "sketches are others with the entropy")
        shutil.rmtree("with")
    encode(write_encoder(out="threads", attention_entropy="true", batch_size=5, threads=2))
    encode(write_encoder(out="one", attention_entropy="true", batch_size=16))
    check(filecmp.cmp("threads/results.blocks", "one/results.blocks", shallow=False), "other bits with another batch")
    refused(2, "encoder.attention_entropy", "plan", write_encoder(attention_entropy="true", pooling_method="avg"))
    refused(2, "encoder.attention_entropy is true there and not set here", "encode", write_encoder(out="one"))
    encode(write_encoder(out="plain"))
    refused(2, "encoder.attention_entropy is not set there and true here", "encode", write_encoder(out="plain", attention_entropy="true"))


def test_numbers_that_are_not_finite():
    """What f16 cannot hold is counted, said and marked, text by text. With mean pooling sketches grow with the weights of the last
    norm: these are made so large that those of some texts are too large, but not of all."""
    sets, keys = ("sketches", "checksums", "children"), {"pooling_method": "avg", "weights": "w.safetensors", "batch_size": DRAW.randint(1, 16)}
    made = draw_weights({**SMALL, **keys}, DRAW, ("F32",))

    def scale(by, *names):
        for name in names:
            made[name] = (*made[name][:2], [by * x for x in made[name][2]])
        write_weights("w.safetensors", made)

    scale(1e-3, "checksum_head.2.weight", "children_projection.weight")
    _, said = run("encode", write_encoder(out="small", **keys))
    check("infinite" not in said and "infinite" not in run("results", "check", "small/results.blocks")[0], said)
    sketches = numbers_of("small/results.blocks")[1]
    largest = [max(map(abs, sketches[i:i + 64])) for i in range(0, len(sketches), 64)]
    scale(65504 / ((min(largest) + max(largest)) / 2), "encoder.pre_pool_norm.weight", "encoder.pre_pool_norm.bias")
    _, said = run("encode", write_encoder(**keys))
    rows, numbers = [False] * SMALL["count"], 0
    for name in sets:
        shape, of = numbers_of("out/results.blocks", name)
        for i, x in enumerate(of):
            if not math.isfinite(x):
                rows[i // (len(of) // shape[0])] = True
                numbers += 1
    check(0 < sum(rows) < SMALL["count"], sum(rows), "of the texts have numbers that are not finite")
    check([r >> 4 & 1 for r in numbers_of("out/results.blocks", "remarks")[1]] == rows, rows)
    check(f"the capsules of text {rows.index(True)} have numbers that are infinite or NaN" in said, said)
    check(f"{sum(rows)} have capsules with numbers that are infinite or NaN" in said, said)
    check(f": 0 damaged; {numbers} number" in run("results", "check", "out/results.blocks")[0], numbers)
    check(json.loads(run("results", "check", "--json", "out/results.blocks")[0])["not_finite"] == numbers, numbers)
    page = page_of("out")
    check(re.search(rf"have capsules with numbers that are infinite or NaN.*?>{sum(rows)}<", page, re.S), "the page does not say it")


def test_results_know_their_weights():
    """By what is in the file, not by where it lies."""
    weights_for("a.safetensors", ("F32", "BF16"))
    config = write_encoder(weights="a.safetensors", out="out", count=3000, block_texts=7)
    encode(config, "--out", "whole")
    for _ in range(3):
        kill_once(["encode", config, "--quiet"], DRAW.uniform(0.05, 0.5))
    shutil.copy("a.safetensors", "copy.safetensors")
    run("encode", config, "--weights", "copy.safetensors")
    check(filecmp.cmp("whole/results.blocks", "out/results.blocks", shallow=False), "what was killed ended otherwise")
    weights_for("b.safetensors")
    refused(2, "holds results of another configuration", "encode", config, "--weights", "b.safetensors")
    refused(2, "not set here", "encode", config, "--weights", "none")
    # Those of a witness are weights like any others.
    encode(write_encoder(out="seeded"))
    run("encode", write_encoder(out="seeded"), "--witness", "witness", "--only", "0")
    encode(write_encoder(out="again", weights="witness/weights.safetensors"))
    check(numbers_of("seeded/results.blocks")[1] == numbers_of("again/results.blocks")[1], "a witness's weights give others")
    kept = read("witness/weights.safetensors")
    refused(2, "weights are read from this file", "encode", "encode.yaml", "--weights", "witness/weights.safetensors", "--precision", "bfloat16", "--witness", "witness", "--only", "0")
    check(read("witness/weights.safetensors") == kept, "a witness wrote over the weights")
    run("plan", config)
    run("fit", config, "--budget", "100MB")


def test_weights_refused():
    def refuses(pattern, change=None, dtypes=("F32",), keys=None, **made_for):
        weights_for("bad.safetensors", dtypes, change, **made_for)
        for command in ("plan", "encode"):
            refused(4, "bad.safetensors: .*" + pattern, command, write_encoder(weights="bad.safetensors", **(keys or {})))
        check(not os.path.exists("out/results.blocks"), "refused weights left results")

    def number(value, name="children_projection.weight", dtype="F32"):
        def change(made):
            made[name][2][7] = value
            made[name] = (dtype, *made[name][1:])
        return change

    refuses('has no tensor "encoder.pre_pool_norm.bias"; the model takes F32 .16.', lambda made: made.pop("encoder.pre_pool_norm.bias"))
    refuses('holds a tensor "extra.weight", which the model has not got', lambda made: made.update({"extra.weight": ("F32", (2,), [0, 0])}))
    refuses('"encoder.patch_embed.weight" is F32 .8, 3, 8, 8. there, but the model takes F32 .16, 3, 8, 8.', hidden_size=8)
    refuses('"children_projection.bias" is F64 there; F32, BF16 or F16 was expected',
            lambda made: made.update({"children_projection.bias": ("F64", *made["children_projection.bias"][1:])}))
    refuses('"children_projection.weight", number 7 is nan', number(float("nan")))
    refuses('"children_projection.weight", number 7 is -inf', number(float("-inf"), dtype="BF16"))
    refuses('number 7 is 70000; .* at most 65504 .* in f16', number(70000), keys={"precision": "float16"})
    refused(4, "no.safetensors", "plan", write_encoder(weights="no.safetensors"))
    weights_for("cut.safetensors")
    with open("cut.safetensors", "r+b") as file:
        file.truncate(os.path.getsize("cut.safetensors") - 1)
    refused(4, "cut.safetensors", "plan", write_encoder(weights="cut.safetensors"))


def test_only_the_product_of_cycles_counts():
    made = []
    for outer, inner in ((2, 3), (3, 2), (1, 6), (6, 1)):
        encode(write_encoder(H_cycles=outer, L_cycles=inner, out=f"out{outer}"))
        made.append(b"".join(export(f"out{outer}/results.blocks", name) for name in ("sketches", "checksums", "children")))
    check(len(set(made)) == 1, "other cycles of the same product give other bits")


# ---- bits ----

def test_bits_hang_on_the_texts_alone():
    encode(write_encoder(batch_size=1, out="one"))
    whole = "one/results.blocks"
    ways = [(1, {"batch_size": 16}), (2, {"batch_size": 7, "num_workers": 3}), (2, {"num_workers": 2}), (2, {"batch_size": DRAW.randint(1, 16), "num_workers": DRAW.randint(1, 4)})]
    for i, (threads, keys) in enumerate(ways):
        encode(write_encoder(threads=threads, out=f"way{i}", **keys))
        check(filecmp.cmp(whole, f"way{i}/results.blocks", shallow=False), "other bits by", threads, keys)
    parts = DRAW.randint(2, 9)  # at 5 or more a part has less than a block
    found = []
    for part in range(1, parts + 1):
        encode(write_encoder(out="parts"), "--part", f"{part}/{parts}")
        found += numbers_of(f"parts/results-{part}-of-{parts}.blocks")[1]
    check(found == list(numbers_of(whole)[1]), f"{parts} parts are not the whole")
    run("results", "join", "joined", *(f"parts/results-{part}-of-{parts}.blocks" for part in range(1, parts + 1)))
    check(filecmp.cmp(whole, "joined", shallow=False), f"{parts} parts, joined, have other bytes than the whole")
    with open("joined.yaml") as kept:
        check(not re.search(rf"part:.*[0-9]/{parts}", kept.read()), "what was joined says that it is a part")
    run("results", "join", "--move", "moved", *(f"parts/results-{part}-of-{parts}.blocks" for part in range(1, parts + 1)))
    check(filecmp.cmp(whole, "moved", shallow=False), f"{parts} parts, moved together, have other bytes than the whole")
    check(len(pictures(page_of("moved"))) == 6 and not any(n.endswith(".blocks") for n in os.listdir("parts")), "what is left of parts")
    run("results", "check", whole)


def test_forms_of_the_same_texts():
    texts = ["plain", "two\nparagraphs", "", "tab\there", 'quoted "so", and', "äöü عربي", "x" * 500, "last"]
    os.mkdir("folder")
    for i, text in enumerate(texts):
        put(f"folder/{i}.txt", text)
    with open("t.jsonl", "w") as file:
        file.write("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    with open("t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "body"])
        writer.writerows(enumerate(texts))
    made = []
    for name, keys in (("folder", {}), ("t.jsonl", {}), ("t.csv", {"text_key": "body"})):
        said = encode(write_encoder(texts=name, text_format=None, count=None, seed=1, out="out-" + name, **keys))
        check("1 are longer than a page" not in said and "longer than a page" in said, said)
        made.append(export(f"out-{name}/results.blocks"))
    check(made[0] == made[1] == made[2], "the forms give other capsules")
    lines = [text for text in texts if "\n" not in text]
    put("lines.txt", "\r\n".join(lines))
    encode(write_encoder(texts="lines.txt", text_format=None, count=None, seed=1, out="lines"))
    check(export("lines/results.blocks")[-64:] == made[0][-64:], "the last line is not the last text")


def test_names_tell_the_form():
    """In capitals, too; what was taken is said, what is none of it refused with what helps, and what has no effect is no key."""
    keys = {"text_format": None, "count": None, "out": "out"}
    def said_of(name, **more):
        out, _ = run("plan", config := write_encoder(texts=name, **{**keys, **more}))
        said = encode(config)
        shutil.rmtree("out")
        told = re.search(r"All of the work\n(.*?)\.\n\d", out, re.S)
        check(told and " ".join(told[1].split()) in said, told and told[1], said)
        return " ".join(told[1].split())

    put("T.JsonL", '{"text": "a"}\n{"text": "b"}\n')
    shutil.copy("T.JsonL", "t.ndjson")
    put("t.CSV", "id,text\r\n1,a\r\n2,b\r\n")
    put("t.log", "one\ntwo\nthree\n")
    os.mkdir("t.json")
    put("t.json/a", "a")
    for name, words in (("T.JsonL", "2 texts: JSON lines of T.JsonL"), ("t.ndjson", "2 texts: JSON lines of t.ndjson"), ("t.CSV", "2 texts: CSV records of t.CSV"),
                        ("t.log", "3 texts: lines of t.log"), ("t.json", "1 text: files of t.json")):
        check(said_of(name) == words, name, said_of(name))
    check(said_of("t.log", count=2) == "the first 2 of 3 texts: lines of t.log", said_of("t.log", count=2))
    check(said_of("t.log", count=4) == "3 texts: lines of t.log; there are no more (texts.count 4)", said_of("t.log", count=4))
    check(said_of(None, text_format="grammar", count=7) == "7 texts: of a grammar", "of a grammar")
    for name, why in (("a.json", "one JSON document"), ("a.TSV", "has tabs"), ("a.zst", "is compressed"), ("a.parquet", "Parquet")):
        put(name, '{"text": "a"}\n')
        for command in ("plan", "encode"):
            refused(2, f"encode.yaml:.*texts.path {name} .*{why}.*texts.format", command, write_encoder(texts=name, **keys))
        encode(write_encoder(texts=name, **{**keys, "text_format": "jsonl", "out": "out-" + name}))
    for name, more in (("t.log", {}), ("t.json", {}), (None, {"text_format": "grammar", "count": 5}), ("T.JsonL", {"text_format": "lines"})):
        refused(2, 'texts.key "body" is not looked for', "plan", write_encoder(texts=name, text_key="body", **{**keys, **more}))
    run("plan", write_encoder(text_key="body", **{**keys, "count": 5}))


def test_half_a_pair_is_counted():
    """As a byte that is no UTF-8 is, with the same pixels as U+FFFD itself, with a cache of pages, too."""
    with open("t.jsonl", "w") as file:
        file.write('{"text": "\\ufffd"}\n{"text": "\\ud800"}\n{"text": "\\udc00"}\n{"text": "\\ud83d\\ude00"}\n')
    for cache in ("none", "cache", "cache"):
        encode(write_encoder(texts="t.jsonl", text_format=None, count=None, out="out", cache_dir=cache))
        remarks, numbers = numbers_of("out/results.blocks", "remarks")[1], numbers_of("out/results.blocks")[1]
        check([r & 2 for r in remarks] == [0, 2, 2, 0], list(remarks))
        check(numbers[:64] == numbers[64:128] == numbers[128:192], "other pixels")
        shutil.rmtree("out")


def test_equal_texts_are_encoded_alike():
    put("t.txt", "a\nb\na\nc\n")
    encode(write_encoder(texts="t.txt", text_format=None, count=None))
    shape, numbers = numbers_of("out/results.blocks")
    check(shape == (4, 4, 16), shape)
    rows = [numbers[i * 64:(i + 1) * 64] for i in range(4)]
    check(rows[0] == rows[2] and rows[0] != rows[1] and rows[0] != rows[3], "equal texts differ, or others do not")


# ---- the page about results ----

def page_of(path, *words):
    page = run("results", "report", path, "--html", "-", *words)[0]
    ours = re.sub(r"<span class='said'>.*?</span>|<td class='w'>.*?</td>", "", page, flags=re.S)  # texts may say anything
    check(re.findall(r"(?:src|href)\s*=\s*['\"](?!data:)", ours) == [] and "http:" not in ours and "https:" not in ours and page.endswith("</html>\n"), "it loads something")
    return page


def pictures(page):
    """number → PNG"""
    return {int(n): base64.b64decode(data, validate=True)
            for n, data in re.findall(r"<img alt='page of text (\d+)' src='data:image/png;base64,([^']*)'", page)}


def neighbours(page):
    """[(number, [(cosine, number)])]"""
    found = []
    for table in re.findall(r"<h2>Nearest neighbours</h2>.*?</table>", page, re.S):
        for asked, number, cosine in re.findall(r"<tr( class='strong')?><td class='n' data-l='text'>([\d,]+)</td><td class='n' data-l='cosine'>([-\d.]*)</td>", table):
            number = int(number.replace(",", ""))
            if asked:
                found.append((number, []))
            else:
                found[-1][1].append((float(cosine), number))
    return found


def cosine(a, b):
    return math.fsum(map(operator.mul, a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(x * x for x in b))


def check_neighbours(page, rows, first=0):
    for of, near in neighbours(page):
        by_hand = sorted(((cosine(rows[of - first], row), -i - first) for i, row in enumerate(rows) if i != of - first), reverse=True)[:3]
        check(len(near) == min(3, len(rows) - 1), near)
        for (shown, number), (value, minus) in zip(near, by_hand):
            equal = cosine(rows[of - first], rows[number - first])
            check(abs(shown - value) < 2e-6 and abs(equal - value) < 1e-9, of, near, by_hand)


def test_page_about_results():
    texts = [DRAW.choice(("", "plain", "<b>&amp; \"it's\"", "a b " * DRAW.randint(1, 60), "\U0001f600 " + "x" * DRAW.randint(0, 9), "عربي", "tab\there")) + str(i)
             for i in range(60)]
    put("t.txt", "\n".join(texts) + "\n")
    config = write_encoder(texts="t.txt", text_format=None, count=None, attention_entropy="true", image_size=64, patch_size=16)
    _, said = run("encode", config)
    check(said.endswith("page: out/results.html\n"), said[-300:])
    page = read("out/results.html").decode()
    check(page_of("out") == page and page_of("out/results.blocks").replace("out/results.blocks", "") == page.replace("out/results.blocks", ""), "one page, however it is asked for")
    shape, numbers = numbers_of("out/results.blocks")
    size = shape[1] * shape[2]
    rows = [numbers[i * size:(i + 1) * size] for i in range(shape[0])]
    check_neighbours(page, rows)
    check(len(neighbours(page)) == 6 and len(pictures(page)) == 6, "six are shown")
    check("<title>Capsules of 60 texts – results</title>" in page and "<h1>Capsules of 60 texts</h1>" in page, "a page is called by what it is about")
    check("The weights are random" in page, "neighbours by weights that nobody trained are not marked")
    for number, png in pictures(page).items():
        run("draw", texts[number], "--image_size", "64", "--out", "p.png")
        check(read("p.png") == png, f"the picture of text {number} is another")
        said = html.unescape(re.search(rf"alt='page of text {number}'.*?<span class='said'>(.*?)</span>", page, re.S)[1])
        check(said == texts[number] or said.endswith(" …") and texts[number].startswith(said[:-2]), said, texts[number])
    remarks = list(numbers_of("out/results.blocks", "remarks")[1])
    told = re.findall(r"data-l='number'>([\d,]+)</td>", page)
    check([int(n) for n in told] == [sum(r >> k & 1 for r in remarks) for k in range(5)], told, remarks)
    norms = [math.sqrt(math.fsum(x * x for x in numbers[i:i + shape[2]])) for i in range(0, len(numbers), shape[2])]
    entropies = numbers_of("out/results.blocks", "entropy")[1]
    for title, values in (("Norms of the sketches", norms), ("Entropy of the attention", entropies)):
        part = page[page.index(f"<h3>{title}"):].split("</svg>")[0]
        low, high, mean = map(float, re.search(r"from ([-\d.e+]+) to ([-\d.e+]+), mean ([-\d.e+]+)<", part).groups())
        check(all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip((low, high, mean), (min(values), max(values), math.fsum(values) / len(values)))), title, low, high, mean)
        check(sum(int(n.replace(",", "")) for n in re.findall(r": ([\d,]+)</title>", part)) == len(values), title, "not all are counted")
    check("As planned" not in page and "1 of 1" in page and "60 of 60 finished" in page, "what processes told")
    only = page_of("out", "--only", "7")
    check(list(pictures(only)) == [7] and [of for of, _ in neighbours(only)] == [7], "--only")
    refused(2, "there is no text 60; it holds 0 to 59", "results", "report", "out", "--only", "60")


def test_page_without_texts():
    """What is not there is said, and the rest is shown; parts and other forms."""
    put("t.txt", "".join(f"text {i}\n" for i in range(50)))
    config = write_encoder(texts="t.txt", text_format=None, count=None, storage="npy")
    run("encode", config, "--part", "2/2")
    page = page_of("out/results-2-of-2")
    numbers = numbers_of("out/results-2-of-2")[1]
    check_neighbours(page, [numbers[i * 64:(i + 1) * 64] for i in range(25)], first=25)
    check(sorted(pictures(page)) == sorted(of for of, _ in neighbours(page)) and min(pictures(page)) == 25, list(pictures(page)))
    shutil.move("out", "moved")
    check(pictures(page_of("moved/results-2-of-2")) == pictures(page), "moved, the texts are not found")
    put("t.txt", "other\n" * 50)
    for why, change in (("was changed since its index was made", None), ("is not known", lambda: os.remove("moved/results-2-of-2.yaml")),
                        ("not YAML", lambda: put("moved/results-2-of-2.yaml", "{"))):
        if change:
            change()
        page = page_of("moved/results-2-of-2")
        check(re.search("They are not drawn: .*" + why, page) and not pictures(page) and len(neighbours(page)) == 6, why)
    encode(write_encoder(out="grammar"))
    os.remove("grammar/results.yaml")
    check(len(pictures(page_of("grammar"))) == 6, "texts of a grammar need no config")
    # Nothing is finished yet, in most cases; and sketches that are too long to be compared.
    process = subprocess.Popen([COMMAND, "encode", write_encoder(out="begun", count=4000, block_texts=4000)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment())
    while not os.path.exists("begun/results.blocks") and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.wait()
    done = json.loads(run("results", "ls", "--json", "begun/results.blocks")[0])["done"]
    check("Not all is finished: 0 of 4,000 texts" in page_of("begun") if done == 0 else True, "a page about nothing")
    encode(write_encoder(out="wide", hidden_size=512, num_heads=8, target_capsules=2304, capsule_grid_shape="[48, 48]", count=2, block_texts=2))
    page = page_of("wide")
    check("Sketches of a text have 1,179,648 numbers together" in page and len(pictures(page)) == 2 and not neighbours(page), "long sketches")


def test_page_replaces_nothing_that_is_read():
    weights_for("w.safetensors")
    shutil.copy(FONT, "font.ttf")
    put("t.txt", "".join(f"text {i}\n" for i in range(20)))
    keys = {"text_format": None, "count": None, "weights": "w.safetensors", "font": "font.ttf"}
    encode(write_encoder(texts="t.txt", **keys))
    os.mkdir("folder")
    put("folder/a.txt", "a")
    encode(write_encoder(texts="folder", out="other", storage="npy", **keys))
    before = {name: read(name) for name in ("t.txt", "w.safetensors", "font.ttf", "out/texts.index", "out/results.yaml", "out/results.blocks", "out/results.processes.jsonl")}
    os.symlink("t.txt", "link")
    for name in (*before, "link", "out/../t.txt"):
        refused(2, "the page .*are the same file; give another name", "results", "report", "out", "--html", name)
    for name in ("folder/page.html", "folder/a.txt", "other/results/sketches.npy", "other/results/page.html"):
        refused(2, "lies in .*where nothing else may be written", "results", "report", "other", "--html", name)
    check(all(read(name) == text for name, text in before.items()), "a page was written over what is read")
    for name, text in (("notes.md", "mine"), ("short", "<!doc")):
        put(name, text)
        refused(2, "is there already and is no page", "results", "report", "out", "--html", name)
        check(read(name) == text.encode(), "a page was written over", name)
    for _ in range(2):  # a page replaces a page
        run("results", "report", "out", "--html", "again.html")
    check("random" not in page_of("out"), "weights of a file are said to be random")
    os.mkdir("third")
    shutil.copy("t.txt", "third/results.html")
    _, said = run("encode", write_encoder(texts="third/results.html", out="third", **keys))
    check("their page third/results.html was not made" in said and read("third/results.html") == before["t.txt"], said)
    run("results", "report", "third", "--html", "page.html")


# ---- killed, and gone on with ----

FORMS = {"native": "results.blocks", "npy": "results", "hdf5": "results.h5"}


def write_many(path, count):
    """Lines, a few of which no page holds or UTF-8 knows, so that there are remarks."""
    with open(path, "wb") as file:
        for i in range(count):
            file.write(b"%d %s\n" % (i, DRAW.choice((b"a ship", b"the line of the load, " * 9, b"", "ä € عربي".encode(), b"\xff"))))


def same_results(one, other):
    """A file, or a folder of them."""
    names = sorted(os.listdir(one)) if os.path.isdir(one) else [""]
    check(not os.path.isdir(one) or sorted(os.listdir(other)) == names, one, "and", other, "hold other files")
    for name in names:
        a, b = (os.path.join(path, name) if name else path for path in (one, other))
        check(filecmp.cmp(a, b, shallow=False), a, "and", b, "differ")


def vary(config):
    """What decides no bit."""
    words = ["--threads", str(DRAW.randint(1, 3)), "--num_workers", str(DRAW.randint(1, 3))]
    if DRAW.random() < 0.6:
        return [*words, "--batch_size", str(DRAW.randint(1, 7))]
    out, _ = run("plan", config, *words, "--batch_size", "1", "--json")
    return [*words, "--budget", str(json.loads(out)["process"]["charged_bytes"] + 4096 * DRAW.randint(0, 300))]


def encode_to_the_end(config, *words):
    return subprocess.run([COMMAND, "encode", config, "--quiet", *words], capture_output=True, text=True, env=environment(), timeout=1500)


def kill_and_go_on(form, count, kills):
    """So many runs are killed at random instants, each time another goes on, with what decides no bit changed; one that is
    through meanwhile is compared, and the next begins anew. How many lives each file had; none where the form is not there."""
    write_many("many.txt", count)
    config = write_encoder("kills.yaml", texts="many.txt", text_format=None, count=None, block_texts=7, storage=form)
    began = time.monotonic()
    done = encode_to_the_end(config, "--out", "whole")
    if form == "hdf5" and done.returncode != 0 and "libhdf5" in done.stderr:
        print("hdf5 is not tried:", done.stderr.strip())
        return []
    check(done.returncode == 0, form, done.stderr)
    seconds, killed, lives = time.monotonic() - began, 0, []
    while killed < kills:
        shutil.rmtree("out", ignore_errors=True)
        lives.append(0)
        while killed < kills and kill_once(["encode", config, "--quiet", *vary(config)], DRAW.uniform(0, 1.2 * seconds / kills)):
            killed, lives[-1] = killed + 1, lives[-1] + 1
        done = encode_to_the_end(config, *vary(config))
        check(done.returncode == 0, form, done.stderr)
        same_results(f"whole/{FORMS[form]}", f"out/{FORMS[form]}")
    _, said = run("encode", config)
    check("all is done" in said, said)
    return lives


def kill_once(words, seconds):
    process = subprocess.Popen([COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    _, said = process.communicate()
    check(process.returncode in (0, -signal.SIGKILL), process.returncode, said)
    return process.returncode != 0


def test_killed_and_resumed():
    for form in FORMS:
        print(form, "kills of each file:", kill_and_go_on(form, 2000, 3))
        shutil.rmtree("whole", ignore_errors=True)


def test_killed_twenty_times():
    for form in FORMS:
        print(form, "kills of each file:", kill_and_go_on(form, share_of(100000), share_of(20, 3)))
        shutil.rmtree("whole", ignore_errors=True)


# ---- bad input ----

def test_refused():
    refused(2, "texts.count is 0, all of them, but a grammar has no end", "encode", write_encoder(count=0))
    refused(2, "texts.path is empty", "encode", write_encoder(text_format=None))
    refused(2, "encoder.patch_size 7 does not divide encoder.image_size 40", "encode", write_encoder(patch_size=7))
    refused(2, "encoder.heads 3 does not divide encoder.width 16", "encode", write_encoder(num_heads=3))
    refused(2, "is not encoder.target_capsules 4", "encode", write_encoder(capsule_grid_shape="[2, 3]"))
    refused(2, "children_per_capsule 26 is more than the 25 patches", "encode", write_encoder(children_per_capsule=26))
    refused(2, "pipeline.batch_size 17 is more than pipeline.block_texts 16", "encode", write_encoder(batch_size=17))
    refused(2, "part", "encode", write_encoder(), "--part", "3/2")
    refused(4, "no.txt", "encode", write_encoder(texts="no.txt", text_format=None, count=None))
    refused(4, "no.ttf", "encode", write_encoder(font="no.ttf"))
    refused(2, "encoder.expansion 0.001 leaves the feed-forward layers without a number", "plan", write_encoder(expansion=0.001))
    refused(2, "apply 5120 blocks to each text", "plan", write_encoder(L_cycles=1024, H_cycles=5))
    put("font.txt", "no font")
    refused(4, "font.txt", "encode", write_encoder(font="font.txt"))
    os.mkdir("folder")
    put("folder/a.txt", "a")
    refused(2, "lies within the texts", "encode", write_encoder(texts="folder", text_format=None, count=None, out="folder/runs/out"))
    for words in (["--output", "folder/r.blocks"], ["--set", "pipeline.cache_dir=folder/cache"], ["--trace", "folder/trace.json"], ["--trace", "folder/new/trace.json"]):
        refused(2, "lies within the texts", "encode", write_encoder(texts="folder", text_format=None, count=None), *words)
    os.makedirs("out", exist_ok=True)
    for name in ("texts.index", "results.yaml", "results.processes.jsonl"):
        put("out/" + name, "a text\n")
        refused(2, "are the same file", "encode", write_encoder(texts="out/" + name, text_format="lines", count=None))
        check(read("out/" + name) == b"a text\n", name, "was written")
        os.remove("out/" + name)
    run("encode", write_encoder(texts="folder", text_format=None, count=None, out="fresh"), "--witness", "witness")
    put("empty.txt", "")
    refused(4, "empty.txt", "encode", write_encoder(texts="empty.txt", text_format=None, count=None))
    put("bad.jsonl", '{"text": "a"}\n{"text": 3}\n')
    refused(4, "bad.jsonl:2", "encode", write_encoder(texts="bad.jsonl", text_format=None, count=None))
    refused(3, "charged", "encode", write_encoder(), "--budget", "10MB")
    check(not os.path.exists("out/results.blocks"), "a refused encode left results")
    out, _ = run("plan", write_encoder(text_format=None, count=1907747, out="planned"))
    check("Files on disk" in out and not os.path.exists("planned"), "a plan without texts", out[-500:])
    encode(write_encoder())
    for keys, words in (({"seed": SEED + 1}, f"encoder.seed is {SEED} there and {SEED + 1} here"), ({"num_heads": 4}, "encoder.num_heads is 2 there and 4 here"),
                        ({"recursion": "trm"}, "encoder.recursion is flat there and trm here"), ({"count": 71}, "the extent of the axis text of texts is 70 there and 71 here")):
        refused(2, f"results of another configuration: {words}; choose another file", "encode", write_encoder(**keys))


def test_options_are_those_of_the_encoder():
    """--seed and --batch_size are keys of trainings, too."""
    config = write_encoder(seed=1, count=8)
    encode(config, "--seed", "9", "--out", "option")
    encode(write_encoder(seed=9, count=8, out="key"))
    check(filecmp.cmp("option/results.blocks", "key/results.blocks", shallow=False), "--seed is not encoder.seed")
    refused(2, "pipeline.batch_size 500 is more than", "plan", config, "--batch_size", "500")
    refused(2, "is another configuration|another", "encode", write_encoder(seed=1, count=8, out="key"))


def test_texts_that_change_meanwhile():
    put("t.txt", "".join(f"text {i}\n" for i in range(3000)))
    config = write_encoder(texts="t.txt", text_format=None, count=None, block_texts=5, L_cycles=6, image_size=48, seed=1)
    encode(config, "--out", "whole")
    before = os.stat("t.txt")
    process = subprocess.Popen([COMMAND, "encode", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    while not os.path.exists("out/results.blocks"):
        time.sleep(0.001)
    time.sleep(DRAW.uniform(0, 0.2))
    good = read("t.txt")
    with open("t.txt", "r+b") as file:
        file.write(b"TEXT" * (len(good) // 4))
    said = process.communicate()[1].decode()
    check(process.returncode == 0 or "was changed since its index was made" in said, process.returncode, said[-500:])
    with open("t.txt", "r+b") as file:
        file.write(good)
    os.utime("t.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    run("encode", config)
    check(filecmp.cmp("whole/results.blocks", "out/results.blocks", shallow=False), "a text of the changed file is among the results")


def test_parts_that_begin_together():
    put("t.txt", "".join(f"text {i}\n" for i in range(200)))
    config = write_encoder(texts="t.txt", text_format=None, count=None, out="parts")
    parts = [subprocess.Popen([COMMAND, "encode", config, "--part", f"{i}/4"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()) for i in range(1, 5)]
    said = [part.communicate()[1].decode() for part in parts]
    check(all(part.returncode == 0 for part in parts), said)


def test_long_texts_are_cut_between_characters():
    put("t.txt", "a" + " " * 65533 + "é fine\n" + "b" * 70000 + "\n")
    encode(write_encoder(texts="t.txt", text_format=None, count=None))
    check(list(numbers_of("out/results.blocks", "remarks")[1]) == [1, 1], numbers_of("out/results.blocks", "remarks"))


def test_time_limit():
    encode(write_encoder(out="whole", count=4000, block_texts=10))
    config = write_encoder(out="out", count=4000, block_texts=10, time_limit="0.1s")
    out, _ = run("plan", config)
    check("A run ends by itself after 100 ms" in out, out[-1500:])
    codes, said = [], ""
    while not codes or codes[-1] == 75:  # on a quick machine at once
        done = subprocess.run([COMMAND, "encode", config], capture_output=True, env=environment(), timeout=120)
        codes.append(done.returncode)
        said += done.stderr.decode()
    check(codes[-1] == 0 and (len(codes) == 1 or "stopped with" in said), codes, said[-2000:])
    check(said.count("As planned, to the byte.") == len(codes), codes, said[-2000:])
    check(filecmp.cmp("whole/results.blocks", "out/results.blocks", shallow=False), "a limit of time gave other bits")
    refused(2, 'pipeline.time_limit "soon" is no time', "encode", config, "--time_limit", "soon")


def test_stop_and_go_on():
    """A stop ends with the same table as the end."""
    config = write_encoder(count=100000, L_cycles=50, block_texts=10)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = subprocess.Popen([COMMAND, "encode", config, "--ledger"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
        while (line := process.stderr.readline()) and not line.startswith(b"committed"):
            pass
        process.send_signal(number)
        said = process.communicate(timeout=60)[1].decode()
        check(process.returncode == code, number, "gave", process.returncode, said)
        check("out/results.blocks has what is whole, and the same command goes on" in said, said)
        check("As planned, to the byte." in said and "unexplained" in said, said)


def test_plan_of_two_million():
    """docs/capsules.md: 177.3 GB, not 220 or 642."""
    out, _ = run("plan", write_encoder(**{key: None for key in SMALL}), "--count", "1907747", "--json")
    plan = json.loads(out)
    check(abs(plan["disk"]["bytes"] / 177.285e9 - 1) < 1e-3 and plan["work"]["items"] == 9937, plan["disk"], plan["work"])
    check(plan["model"]["layers"] == 2 and plan["model"]["parameters"] == 15600812, plan["model"])
    for recursion in ("flat", "trm"):
        out, _ = run("plan", write_encoder(num_layers=3, recursion=recursion, L_cycles=4))
        check(" tensors, 3 layers; " in out, recursion, out[:300])


if __name__ == "__main__":
    main({"encode": [test_another_program_repeats_it, test_weights_of_a_file, test_attention_entropy, test_numbers_that_are_not_finite, test_results_know_their_weights,
                     test_only_the_product_of_cycles_counts, test_bits_hang_on_the_texts_alone,
                     test_forms_of_the_same_texts, test_names_tell_the_form, test_half_a_pair_is_counted, test_equal_texts_are_encoded_alike, test_page_about_results, test_page_without_texts, test_page_replaces_nothing_that_is_read, test_killed_and_resumed],
          "encode_refused": [test_refused, test_weights_refused, test_options_are_those_of_the_encoder, test_texts_that_change_meanwhile, test_parts_that_begin_together,
                         test_long_texts_are_cut_between_characters, test_time_limit, test_stop_and_go_on, test_plan_of_two_million],
          "encode_kills": [test_killed_twenty_times]})

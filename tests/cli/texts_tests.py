"""Tests of texts as people bring them (corpus_tests.py has their forms): what is no text to learn is refused with what to do, and a byte order mark is no part of any list, chain, item,
graph or tokenizer. Called as cli_tests.py is."""
import bz2
import io
import json
import lzma
import os
import random
import shutil
import zipfile

from chain_tests import make_chains, write_chain
from cli_tests import SEED, check, last_checkpoint, main, read, refused, run, same_run, write_config, write_text
from infer_tests import lines
from recompute_tests import CHAIN

DRAW = random.Random(SEED)
MARK = b"\xef\xbb\xbf"


def text_file():
    write_text()
    return "text.txt"


def put(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def zipped(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("text.txt", data)
    return file.getvalue()


def json_lines(texts, key="text"):
    return "".join(json.dumps({key: text, "n": DRAW.random()}) + "\n" for text in texts)


def test_what_is_no_text():
    config = write_config()
    text = read(text_file())
    for path, data, said in (("t", lzma.compress(text), r"t: is compressed \(xz\), .*unpack it \(xz -dc FILE > TEXT\)"),
                             ("t.zip", zipped(text), r"is compressed \(zip\)"),
                             ("t.bz2", bz2.compress(text), r"is compressed \(bzip2\)"),
                             ("t.zst", b"\x28\xb5\x2f\xfd" + text, r"is compressed \(zstd\)"),
                             ("t.parquet", b"PAR1" + text, "is Parquet, which is not read; convert it"),
                             ("t.jsonl", text, "t.jsonl:1:.*is not valid JSON"),
                             ("t.csv", text, 't.csv:1: has no column "text"')):
        put(path, data)
        for command in (["train"], ["plan"], ["fit"]):
            refused(4, said, *command, config, "--text", path)
        check(not os.path.exists("out"), path, "made a folder")


def test_what_is_a_text():
    """What is not certain is a text: it may be one that somebody means."""
    config = write_config()
    words = read(text_file()).decode().split()
    rows = json_lines(words)
    for data in (bytes(DRAW.randrange(256) for _ in range(20000)),          # any bytes
                 "{\n" + "\n".join(words) + "\n}\n",
                 rows.split("\n")[0] + "\n" + "\n".join(words),             # one object, then a text
                 "{sea}\n" + rows,                                          # one line that is no JSON
                 rows.replace("{", "[").replace("}", "]"),
                 json.dumps([{"text": word} for word in words], indent=1),  # one document
                 json.dumps({"text": " ".join(words)}),
                 "a,b\n" * 5000,
                 "PK, gzip and BZh9\n" * 1000):
        path = put("t.csv.txt", data)
        shutil.rmtree("out", ignore_errors=True)
        run("plan", config, "--text", path)


def test_a_run_goes_on():
    """A run that has learnt such a file (older builds took any) goes on with it, and learns no other."""
    config = write_config(data={"tokenizer": "bytes"})
    put("rows.txt", "text\n" + read(text_file()).decode().replace(" ", "\n"))
    run("train", config, "--text", "rows.txt", "--out", "out", "--quiet", "--steps", "20")
    os.rename("rows.txt", "rows.csv")
    run("train", config, "--text", "rows.csv", "--out", "out", "--quiet", "--resume")
    check(last_checkpoint("out").endswith("step-00000120"), "the run did not go on")
    run("eval", "out", "--text", "rows.csv")
    put("other.csv", read("rows.csv") + b"more\n")  # another one is read as what it is
    run("eval", "out", "--text", "other.csv")
    refused(2, "is not the text that the run in .* was trained on", "train", config, "--text", "other.csv", "--out", "out", "--resume")


def test_byte_order_marks():
    config = write_config(data={"tokenizer": "bytes"})
    write_text()
    run("train", config, "--quiet", "--steps", "3")
    put("plain.txt", "sea\nship\n")
    put("marked.txt", MARK + b"sea\nship\n")
    plain, marked = (lines(run("infer", "out", path)[0]) for path in ("plain.txt", "marked.txt"))
    check([{**item, "source": ""} for item in plain] == [{**item, "source": ""} for item in marked], "the mark was read as a character")
    put("list", MARK + b"plain.txt\r\n@inner\n")
    put("inner", MARK + b"marked.txt\n")
    listed = lines(run("infer", "out", "@list")[0])
    check([item["source"] for item in listed] == ["plain.txt[0]", "plain.txt[1]", "marked.txt[0]", "marked.txt[1]"], listed)
    put("graph.dag", CHAIN)
    put("marked.dag", MARK + read("graph.dag"))
    plain, marked = (json.loads(run("recompute", path, "--min", "--json")[0]) for path in ("graph.dag", "marked.dag"))
    check(plain["schedule"] == marked["schedule"], plain, marked)
    put("tokenizer.json", MARK + read("out/tokenizer.json"))
    run("train", config, "--tokenizer", "tokenizer.json", "--out", "given", "--quiet", "--steps", "3")
    same_run("out", "given")


def test_chains_after_a_mark():
    make_chains()
    run("train", write_chain(out="plain"), "--quiet")
    put("chains.jsonl", MARK + read("chains.jsonl"))
    run("train", write_chain(out="marked"), "--quiet")
    last = read("plain/checkpoints/latest").decode().strip()
    for name in ("model", "state"):
        check(read(f"plain/checkpoints/{last}/{name}.safetensors") == read(f"marked/checkpoints/{last}/{name}.safetensors"), name, "differs")


GROUPS = {"brought": [test_what_is_no_text, test_what_is_a_text, test_a_run_goes_on, test_byte_order_marks, test_chains_after_a_mark]}

if __name__ == "__main__":
    main(GROUPS)

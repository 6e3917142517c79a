"""Tests of what language models read: every form of the same documents gives the same tokens, which an oracle here writes down by itself;
what is damaged is said. Called as cli_tests.py is."""
import csv
import gzip
import json
import os
import random
import shutil
import struct

from cli_tests import SEED, Skipped, check, last_checkpoint, main, read, refused, run, same_run, write_config
import cli_tests
from encode_tests import encode, export, write_encoder

DRAW = random.Random(SEED)
STEPS = ("--steps", "2", "--quiet")


def documents(count=120, awkward=True):
    """Some with what each form has to escape, some empty, one longer than any block of a reader's."""
    words = ["sea", "ship", "isle", "\u00e9t\u00e9", "\u4e2d\u6587", "\U0001f600", '"quoted"', "a,b", "\\n", "it's", "{x}", "--"]
    ends = ["", "\n", "\r", "\r\n", " ", '"', ","]
    texts = ["".join(DRAW.choice(words) + DRAW.choice([" ", " ", ", ", "\n", "\t"]) for _ in range(DRAW.randint(0, 40))) + DRAW.choice(ends)
             for _ in range(count)]
    if not awkward:
        texts = ["".join(c for c in text if c not in "\r\n") for text in texts]
    texts[DRAW.randrange(count)] = ""
    texts[DRAW.randrange(count)] = "long " * 70000
    return texts


def put(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def as_jsonl(texts, key="text"):
    return "".join(json.dumps({"id": i, key: text, "more": {"text": "not this", "n": [1, "x"]}}, ensure_ascii=DRAW.random() < 0.5) + DRAW.choice(["\n", "\r\n", "\n\n"])
                   for i, text in enumerate(texts))


def as_csv(texts, column="text", path="t.csv"):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator=DRAW.choice(["\n", "\r\n"]), quoting=DRAW.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
        out.writerow(["id", column, "more"])
        out.writerows([i, text, DRAW.choice(["", "a,b", 'say "x"'])] for i, text in enumerate(texts))
    return path


def as_squad(contexts, questions=(), answers=()):
    """One question a context; of two answers the first counts."""
    paragraphs = [{"context": text, "qas": [{"question": q, "id": "1", "answers": [{"text": a, "answer_start": 0}, {"text": "second"}], "plausible_answers": [{"text": "no"}]}
                                             for q, a in zip(questions[i:i + 1], answers[i:i + 1])]} for i, text in enumerate(contexts)]
    return json.dumps({"version": "1.1", "data": [{"title": "context", "paragraphs": paragraphs[:50]}, {"title": "t", "paragraphs": paragraphs[50:]}]},
                      indent=DRAW.choice([None, 1]), ensure_ascii=DRAW.random() < 0.5)


def as_folder(texts, folder="docs", ending=".txt"):
    """In the order of the bytes of their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    for i, text in enumerate(texts):
        put(f"{folder}/{'A' if i < 10 else 'b' if i < 60 else 'c/d'}/{i:04d}{ending}", text)
    return folder


def pieces(data):
    """gzip in several streams one behind the other, as pigz and cat make them; zeros may stand between them and after the last, as on a tape."""
    cut = DRAW.randrange(len(data))
    return gzip.compress(data[:cut]) + b"\0" * DRAW.choice([0, 0, 512, 300_000]) + gzip.compress(data[cut:]) + b"\0" * DRAW.choice([0, 7, 262_144])


def tokens(out="out"):
    """The ids of a token file, read by what src/data/text/tokens.h says."""
    data = read(f"{out}/tokens.bin")
    size, count = struct.unpack_from("<I", data, 20)[0], struct.unpack_from("<Q", data, 24)[0]
    return struct.unpack_from(f"<{count}{'H' if size == 2 else 'I'}", data, 128)


def text_hash(out="out"):
    return read(f"{out}/tokens.bin")[64:72]


def bytes_of(texts):
    """With the tokenizer of bytes: each text that is not empty, and a line feed unless it ends so."""
    return b"".join(t.encode() + (b"" if t.endswith("\n") else b"\n") for t in texts if t)


def train(*words, config, out="out"):
    shutil.rmtree(out, ignore_errors=True)
    run("train", config, "--out", out, *STEPS, *words)


def needs_gzip():
    if not os.path.exists(os.path.join(os.path.dirname(cli_tests.COMMAND), "plimsoll-gzip.so")):
        raise Skipped("the module plimsoll-gzip.so was not built")


def test_forms_of_the_same_texts():
    """Bytes are what the oracle says, and BPE makes the same of every form."""
    needs_gzip()
    config = write_config(data={"text": None})
    texts = documents()
    put("t.jsonl", as_jsonl(texts))
    put("body.jsonl", as_jsonl(texts, 'bo"dy'))
    as_csv(texts)
    as_csv(texts, "some text", "named.csv")
    put("t.json", as_squad(texts))
    as_folder(texts)
    for name in ("t.jsonl", "t.csv", "t.json"):
        put(name + ".gz", pieces(read(name)))
    put("lists/list", "../docs/A\n@within/inner\n")  # each name is seen from its list
    put("lists/within/inner", "\r\n".join(["../../docs/b", "../../docs/c/*"]))
    forms = [("--text", "t.jsonl"), ("--text", "t.csv"), ("--text", "t.json"), ("--text", "docs"), ("--text", "docs/*"), ("--text", "@lists/list"),
             ("--text", "t.jsonl.gz"), ("--text", "t.csv.gz"), ("--text", "t.json.gz"),
             ("--text", "body.jsonl", "--text_key", 'bo"dy'), ("--text", "named.csv", "--text_key", "some text"), ("--text", "t.csv", "--text_key", "2"),
             ("--text", "docs/A", "--text", "docs/b", "--text", "docs/c"),
             ("--text", "t.json", "--text_key", "contexts", "--text_format", "squad")]
    for form in forms:
        train(*form, config=config)
        check(bytes(tokens()) == bytes_of(texts), form, "are other bytes than those of the texts")
    first = None
    for form in [forms[i] for i in (0, 3, *DRAW.sample(range(len(forms)), 3))]:
        train(*form, "--tokenizer", "bpe", "--vocab_size", "300", config=config)
        made = (tokens(), read("out/tokenizer.json"))
        check(made == (first or made), form, "makes other tokens")
        first = made
    ends = [i for i, token in enumerate(first[0]) if token == 0]
    check(len(ends) == sum(1 for t in texts if t) and ends[-1] == len(first[0]) - 1, "texts do not end with the end of text", len(ends))


def test_lines_and_plain():
    config = write_config(data={"text": None})
    texts = [t for t in documents(awkward=False)]
    put("t.txt", "\r\n".join(texts))
    train("--text", "t.txt", "--text_format", "lines", config=config)
    check(bytes(tokens()) == bytes_of(texts), "lines")
    for words in ((), ("--text_format", "plain")):
        train("--text", "t.txt", *words, config=config)
        check(bytes(tokens()) == read("t.txt"), "a plain file is not as it is")
    put("t.jsonl", as_jsonl(texts))
    train("--text", "t.jsonl", "--text_format", "plain", config=config)
    check(bytes(tokens()) == read("t.jsonl"), "what is said to be plain was read")


def test_squad_parts():
    config = write_config(data={"text": None})
    contexts, questions, answers = documents(60), documents(60, False), documents(60, False)
    put("t.json", as_squad(contexts, questions, answers))
    mixed = {"": lambda i: [contexts[i], answers[i], questions[i]], "questions": lambda i: [questions[i]], "answers,contexts": lambda i: [contexts[i], answers[i]]}
    for key, of in mixed.items():
        train("--text", "t.json", *(["--text_key", key] if key else []), config=config)
        data = bytes(tokens())
        wanted = [t for i in range(60) for t in of(i)]
        if not key:  # in the order of the file: a question stands before its answers there
            wanted = [t for i in range(60) for t in (contexts[i], questions[i], answers[i])]
        check(data == bytes_of(wanted), "parts", repr(key))
    refused(2, 'the key "titles" names no parts of SQuAD', "plan", config, "--text", "t.json", "--text_format", "squad", "--text_key", "titles")


def test_a_list_in_the_config():
    texts = documents(40, False)
    for i in range(4):
        put(f"p{i}.txt", "".join(texts[10 * i:10 * i + 10]))
    config = write_config(data={"text": '[p0.txt, p1.txt, "p[23].txt"]'})
    train(config=config)
    check(bytes(tokens()) == bytes_of(["".join(texts[i:i + 10]) for i in (0, 10, 20, 30)]), "the list is other bytes")
    made = tokens()
    train("--set", 'data.text=[p0.txt, p1.txt, "p[23].txt"]', config=write_config(data={"text": None}))
    check(tokens() == made, "the list of an option is another")
    kept = run("config", "out/config.yaml")[0]
    check(os.getcwd() + "/p0.txt" in kept and os.getcwd() + "/p[23].txt" in kept, kept)
    run("eval", "out")


def test_a_run_goes_on_with_its_texts():
    """Of several files the contents count, in order: not their names, their times, or where they lie."""
    config = write_config(data={"text": None}, train={"steps": 40, "checkpoint_every": 20, "eval_every": 20, "schedule": "constant", "warmup_steps": 0})
    texts = documents(60)
    as_folder(texts)
    run("train", config, "--text", "docs", "--out", "whole", "--quiet")
    run("train", config, "--text", "docs", "--out", "out", "--quiet", "--steps", "20")
    shutil.copytree("docs", "moved")
    shutil.rmtree("docs")
    run("train", config, "--text", "moved", "--out", "out", "--quiet", "--resume")
    same_run("out", "whole")
    before = text_hash()
    changed = sorted(os.path.join(f, n) for f, _, names in os.walk("moved") for n in names)
    a, b = (p for p in DRAW.sample([c for c in changed if os.path.getsize(c)], 2))
    kept = read(a), read(b)
    if kept[0] != kept[1]:
        put(a, kept[1]), put(b, kept[0])
        refused(2, "moved: is not the text that the run in out was trained on", "train", config, "--text", "moved", "--out", "out", "--resume", "--steps", "60")
        put(a, kept[0]), put(b, kept[1])
    put("moved/c/d/9999.txt", "more")
    refused(2, "is not the text that the run in out was trained on", "train", config, "--text", "moved", "--out", "out", "--resume", "--steps", "60")
    os.remove("moved/c/d/9999.txt")
    run("train", config, "--text", "moved", "--out", "out", "--quiet", "--resume", "--steps", "60")
    check(text_hash() == before, "the hash of the texts")
    put("rows.jsonl", as_jsonl(texts))
    run("eval", "out", "--text", "rows.jsonl")
    check(os.path.isdir("out/texts"), "another text of an evaluation does not lie apart")


def test_another_key_is_named():
    """Of the same file another key, or another form, is another text: the refusal says which of them differs."""
    config = write_config(data={"text": None})
    put("t.jsonl", "".join(json.dumps({"text": t, "body": t[::-1]}) + "\n" for t in documents(60, False)))
    train("--text", "t.jsonl", config=config)
    words = ["train", config, "--text", "t.jsonl", "--out", "out", "--resume", "--steps", "60"]
    refused(2, r't.jsonl: with --text_key "body" it is not the text that the run in out was trained on \(t.jsonl with --text_key "" then\)', *words, "--text_key", "body")
    refused(2, r"t.jsonl: with --text_format plain it is not the text .* \(t.jsonl with --text_format auto then\)", *words, "--text_format", "plain")
    refused(2, r't.jsonl: with --text_key "a" and --text_format csv it is not the text', *words, "--text_format", "csv", "--text_key", "a")
    put("u.jsonl", read("t.jsonl") + b'{"text": "more"}\n')
    refused(2, r"u.jsonl: is not the text that the run in out was trained on \(t.jsonl then\)", *(w.replace("t.jsonl", "u.jsonl") for w in words))


def test_standard_input():
    """It is read once; whatever comes later finds it in the folder, also where that was moved."""
    config = write_config(data={"text": None}, train={"steps": 40, "checkpoint_every": 20, "eval_every": 20, "schedule": "constant", "warmup_steps": 0})
    text = "sea ship isle " * 3000
    put("text.txt", text)
    run("train", config, "--text", "text.txt", "--out", "whole", "--quiet")
    run("train", config, "--text", "-", "--out", "out", "--quiet", "--steps", "20", input=text.encode())
    check(read("out/stdin.txt") == text.encode() and tokens() == tokens("whole"), "standard input is other tokens")
    run("train", config, "--text", "-", "--out", "out", "--quiet", "--resume", input=DRAW.choice([b"", text.encode()]))
    same_run("out", "whole")
    refused(2, "standard input is another text than out/stdin.txt", "train", config, "--text", "-", "--out", "out", "--resume", "--steps", "60", input=b"something else")
    os.rename("out", "there")
    check(run("eval", "there")[0] == run("eval", "whole")[0], "eval of the text that came from standard input")
    run("eval", "there", "--text", "-", input=b"a ship on the sea " * 200)
    check(read("there/stdin.txt") == text.encode(), "an evaluation wrote over the text of the run")
    os.rename("there/stdin.txt", "kept.txt")
    refused(4, "there/stdin.txt: is not there any more; it is what the run read from standard input", "train", "there", "--resume", "--steps", "60")
    run("train", "there", "--text", "kept.txt", "--resume", "--steps", "60", "--quiet")
    refused(4, "standard input is empty", "train", config, "--text", "-", "--out", "none", input=b"")
    check(not os.path.exists("none"), "a folder was left of nothing")
    run("plan", config, "--text", "-", "--out", "none", input=text.encode())
    check(not os.path.exists("none"), "a plan left something")


def test_what_is_damaged():
    """With the file and the place; and nothing is left of it."""
    needs_gzip()
    config = write_config(data={"text": None})
    good = as_jsonl(documents(30, False)).encode()
    packed = gzip.compress(good)
    flipped = bytearray(packed)
    flipped[-6] ^= 1  # its checksum
    as_csv(["a", "b"], path="good.csv")
    os.makedirs("empty/in/it", exist_ok=True)
    put("zeros/a.txt", "")
    squad = as_squad(documents(60))
    wrong = [("bad.jsonl", good + b'{"text": "x"', r"bad.jsonl:\d+:\d+: is not valid JSON", ()),
             ("bad.jsonl", good + b'{"body": "x"}\n', r'bad.jsonl:\d+: its object has no key "text"', ()),
             ("bad.jsonl", good + b'{"text": 5}\n', 'what stands at the key "text" is no string', ()),
             ("good.jsonl", good, r'good.jsonl:1: its object has no key "body"', ("--text_key", "body")),
             ("good.csv", read("good.csv"), 'good.csv:1: has no column "body"', ("--text_key", "body")),
             ("bad.csv", b'text\n"a\n', "bad.csv:2: field 1 of the record that begins here has no closing quote", ()),
             ("bad.csv", b"text,n\na\n", "bad.csv:2: has 1 fields, the first record 2", ()),
             ("cut.gz", packed[:DRAW.randrange(20, len(packed) - 1)], "cut.gz: is compressed by gzip and cut off", ("--text_format", "plain")),
             ("bad.gz", bytes(flipped), "bad.gz: is compressed by gzip and damaged", ("--text_format", "plain")),
             ("tail.gz", packed + b"tail", "tail.gz: has other bytes after what gzip compressed", ("--text_format", "plain")),
             ("bad.json", squad[:DRAW.randrange(200, len(squad) - 1)], r"bad.json:\d+:\d+: is not valid JSON", ()),
             ("bad.json", squad.replace('"qas": [', '"qas": {', 1), r"bad.json:\d+:\d+: is not valid JSON", ()),
             ("no.json", '{"data": [{"paragraphs": []}]}', "no.json: is not SQuAD's JSON", ()),
             ("plain.txt", "sea", r'plain.txt: the key "body" is not looked for', ("--text_key", "body")),
             ("none.csv", "text\n\n", "none.csv: has no text, but only empty ones", ())]
    for path, data, said, words in wrong:
        put(path, data)
        refused(2 if "is not looked for" in said else 4, said, "train", config, "--text", path, *words)
        check(not os.path.exists("out"), path, "left a folder")
    for name, code, said in (("empty", 4, "empty: no file lies in it"), ("zeros", 4, "zeros: all files in it are empty"), ("*.none", 4, r"\*.none: matches no file"),
                             ("gone", 4, "gone"), ("@gone", 4, "gone"), (".", 2, "lies in ., a folder of texts, and would be read as one")):
        refused(code, said, "train", config, "--text", name)
        check(not os.path.exists("out"), name, "left a folder")
    put("some/plain.txt", "sea")
    put("some/other.txt", "land")
    for words in (["some"], ["some/*"], ["some/plain.txt", "--text", "some/other.txt"], ["some", "--text_format", "lines"], ["some/plain.txt", "--text", "some/other.txt", "--text_format", "plain"]):
        refused(2, 'some.*: the key "body" is not looked for: none of the files has keys or columns; leave it out', "train", config, "--text", *words, "--text_key", "body")
        check(not os.path.exists("out"), words, "left a folder")
    refused(2, 'the key "body" is not looked for', "encode", write_encoder(out="out", text_format=None, count=None), "--texts", "some/*", "--text_key", "body")
    put("some/rows.jsonl", as_jsonl(documents(60, False), "body"))
    train("--text", "some", "--text_key", "body", config=config)  # one of them has keys
    shutil.rmtree("out")
    put("lists/a", "\n../some/plain.txt\n@b\n")
    for line, said in (("gone.txt", "lists/gone.txt: cannot be opened"), ("@gone", "lists/gone: cannot be opened"), ("*.none", r"lists/\*.none: matches no file")):
        put("lists/b", "../some/plain.txt\n\n" + line)
        refused(4, "^plimsoll train: lists/b:3: " + said, "train", config, "--text", "@lists/a")
        refused(4, "^plimsoll encode: lists/b:3: " + said, "encode", write_encoder(out="out", text_format=None, count=None), "--texts", "@lists/a")
    put("self", "@self\n")
    refused(4, "self: is a list in a list, more than 8 deep", "train", config, "--text", "@self")
    refused(2, "data.format grammar makes texts for plimsoll encode", "plan", config, "--text", "good.jsonl", "--text_format", "grammar")


def test_bytes_that_are_no_text():
    """Any bytes are a text; of a string in JSON, half of a pair is the byte FF, which is no UTF-8 either."""
    config = write_config(data={"text": None})
    blob = bytes(DRAW.randrange(256) for _ in range(5000))
    put("blob/a", blob)
    put("blob/b", b"sea" * 200)
    train("--text", "blob", config=config)
    check(bytes(tokens()) == blob + (b"" if blob.endswith(b"\n") else b"\n") + b"sea" * 200 + b"\n", "bytes of a folder")
    put("t.jsonl", b'{"text": "a\\ud800b"}\n{"text": "' + b"\xff\xfe raw" * 20 + b'"}\n' + b'{"text": "end"}\n' * 2000)
    train("--text", "t.jsonl", config=config)
    check(bytes(tokens()) == b"a\xffb\n" + b"\xff\xfe raw" * 20 + b"\n" + b"end\n" * 2000, "bytes of a string")


def test_commands_read_them():
    """Gradients, evaluations and 8 bits read what training does."""
    config = write_config(data={"text": None}, train={"steps": 20, "checkpoint_every": 20})
    texts = documents(60)
    put("t.jsonl", as_jsonl(texts))
    put("t.txt", bytes_of(texts))
    for name in ("t.jsonl", "t.txt"):
        run("train", config, "--text", name, "--out", name + ".run", "--quiet")
    a, b = (read(last_checkpoint(name + ".run") + "/model.safetensors") for name in ("t.jsonl", "t.txt"))
    check(a == b, "the same bytes train to other weights")
    check(run("eval", "t.jsonl.run")[0] == run("eval", "t.txt.run")[0], "eval")
    for name in ("t.jsonl", "t.txt"):
        run("quantize", name + ".run", "--quantized", name + ".int8", "--samples", "4")
    check(read("t.jsonl.int8") == read("t.txt.int8"), "quantize")
    for name in ("t.jsonl", "t.txt"):
        run("verify", config, "--text", name, "--out", "verified", "--gradients", name + ".gradients")
    check(read("t.jsonl.gradients") == read("t.txt.gradients"), "gradients")


def words_of(text):
    """As data/text/words_train.h says, for texts in which lower case is Python's."""
    return text.lower().split()


def test_words():
    """The vocabulary and the ids of an oracle; of Hugging Face's library, too, where it is there."""
    config = write_config(data={"text": None, "tokenizer": "words", "vocab_size": 300})
    alphabet = "abcxyzABC.,!\u00c9\u00e9\u00df\u0416\u0436\u4e2d\U0001f600'\"\\-7"
    pool = ["".join(DRAW.choice(alphabet) for _ in range(DRAW.randint(1, 5))) for _ in range(700)] + ["w" * 1500]
    texts = ["".join(pool[int(DRAW.random() ** 2 * len(pool))] + DRAW.choice([" ", "\n", "\t ", "\u00a0", "\u3000"]) for _ in range(DRAW.randint(1, 90))) for _ in range(150)]
    put("t.jsonl", as_jsonl(texts))
    as_folder(texts)
    train("--text", "t.jsonl", config=config)
    count = {}
    for text in texts:
        for word in words_of(text):
            count[word] = count.get(word, 0) + 1
    known = [w for w in sorted(count, key=lambda w: (-count[w], w.encode())) if len(w.encode()) < 1024][:295]
    vocabulary = {w: i for i, w in enumerate(["<PAD>", "<UNK>", "<BOS>", "<EOS>", "<MASK>", *known])}
    made = json.loads(read("out/tokenizer.json"))
    check(made["model"]["type"] == "WordLevel" and made["model"]["unk_token"] == "<UNK>" and made["model"]["vocab"] == vocabulary, "the vocabulary")
    wanted = [i for text in texts for i in [*(vocabulary.get(w, 1) for w in words_of(text)), 3]]
    check(list(tokens()) == wanted, "the ids")
    train("--text", "docs", config=config)
    check(list(tokens()) == wanted, "the ids of a folder")
    put("made.json", json.dumps(made))
    given = write_config("given.yaml", data={"text": "docs", "tokenizer": "./made.json"})
    train(config=given)
    check(list(tokens()) == wanted, "the ids with a tokenizer that is given")
    said = json.loads(run("generate", "out", "--prompt", texts[0].replace("\n", " "), "--tokens", "30", "--json")[0].splitlines()[0])
    check("  " not in said["text"], "words are parted by more than a blank:", said)
    try:
        import tokenizers
    except ImportError:
        return
    theirs = tokenizers.Tokenizer.from_file("out/tokenizer.json")
    check([i for text in texts for i in [*theirs.encode(text, add_special_tokens=False).ids, 3]] == wanted, "their ids")


def test_words_refused():
    config = write_config(data={"text": "text.txt", "tokenizer": "given.json"})
    put("text.txt", "a b c " * 500)
    good = {"version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"},
            "model": {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"}}
    for change, said in (({"normalizer": {"type": "NFC"}}, "the normalizer NFC is not supported with WordLevel"), ({"pre_tokenizer": None}, "the pre_tokenizer null is not supported"),
                         ({"decoder": {"type": "WordPiece"}}, '"decoder" is set, which is not supported'), ({"model": {"type": "WordLevel", "vocab": {"a": 0}}}, 'needs an "unk_token"'),
                         ({"model": {"type": "WordLevel", "vocab": {"": 0, "?": 1}, "unk_token": "?"}}, "the token with id 0 is empty"), ({"model": {"type": "WordLevel"}}, 'needs an object "vocab"'),
                         ({"added_tokens": [{"id": 1, "content": "a", "normalized": True}]}, "is looked for in lower case")):
        put("given.json", json.dumps({**good, **change}))
        refused(4, said, "train", config)
    put("given.json", json.dumps({**good, "normalizer": None}))
    run("train", config, *STEPS)
    check(set(tokens()) == {0, 1}, "the ids of a given tokenizer")


def test_the_example_of_words():
    """The size that its source documents."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
    plan = json.loads(run("plan", os.path.join(place, "words.yaml"), "--text", os.path.join(place, "fables.txt"), "--json")[0])
    check(plan["model"]["parameters"] == 4540928, plan["model"])


def test_gathered_texts():
    """Of several files, of a folder of records, of what gzip compressed and of standard input come the sketches that lines give."""
    needs_gzip()
    texts = [f"text {i} of {DRAW.randrange(1000)}" for i in range(30)]
    texts[DRAW.randrange(30)] = ""
    rows = ["".join(json.dumps({"text": t}) + "\n" for t in texts[k:k + 10]) for k in (0, 10, 20)]
    for k, part in enumerate(rows):
        put(f"rows/{k}.jsonl.gz", gzip.compress(part.encode()))
    put("lines.txt", "\n".join(texts) + "\n")
    put("lines.txt.gz", gzip.compress(read("lines.txt")))
    put("squad.json", json.dumps({"data": [{"paragraphs": [{"context": t} for t in texts]}]}))
    put("list", "rows/0.jsonl.gz\nrows/[12]*\n")
    keys = {"text_format": None, "count": None}
    encode(write_encoder(texts="lines.txt", out="lines", **keys))
    wanted = export("lines/results.blocks")
    for n, (words, options) in enumerate(((["rows/*.gz"], {}), (["@list"], {}), (["rows", "--text_format", "jsonl"], {}), (["lines.txt.gz"], {}), (["squad.json", "--text_format", "squad"], {}),
                                          (["rows/0.jsonl.gz", "--texts", "rows/1.jsonl.gz", "--texts", "rows/2.jsonl.gz"], {}),
                                          (["-"], {"input": read("lines.txt")}), (["-", "--text_format", "jsonl"], {"input": "".join(rows).encode()}))):
        config = write_encoder(f"{n}.yaml", out=f"o{n}", **keys)
        encode(config, "--texts", *words, **options)
        check(export(f"o{n}/results.blocks") == wanted, words, "are other sketches")
        run("encode", config, "--texts", *words, **options)  # all is done
    for words, said in ((["rows/0.jsonl.gz", "--texts", "rows/1.jsonl.gz"], "20 texts: gathered from rows/0.jsonl.gz and others"), (["@list"], "30 texts: gathered from @list")):
        planned = run("plan", write_encoder("said.yaml", out="said", **keys), "--texts", *words)[0]
        check(said in planned, words, planned[:600])
    refused(2, "standard input is another text than o6/stdin.txt", "encode", "6.yaml", "--texts", "-", input=b"other\n")
    refused(2, "holds results of another configuration: hash.texts", "encode", "0.yaml", "--texts", "rows/[01]*")
    gathered = bytearray(read("o1/texts.index.gathered"))
    gathered[DRAW.randrange(len(gathered))] ^= 1
    put("o1/texts.index.gathered", bytes(gathered))
    refused(4, "texts.index.gathered: is damaged .checksum.; delete it, it is made again", "encode", "1.yaml", "--texts", "@list")
    os.remove("o1/texts.index.gathered")
    run("encode", "1.yaml", "--texts", "@list")
    for name, code, said in (("none/*", 4, "matches no file"), ("@none", 4, "none"), ("rows/*.gz", 2, "lies within the texts")):
        refused(code, said, "encode", write_encoder(out="rows/out" if code == 2 else "new", **keys), "--texts", "rows" if code == 2 else name)
    put("cut.jsonl.gz", read("rows/0.jsonl.gz")[:-9])
    refused(4, "cut.jsonl.gz: is compressed by gzip and cut off", "encode", write_encoder(out="new", **keys), "--texts", "cut.jsonl.gz")
    check(not os.path.exists("new"), "a folder was left of nothing")


def said_by_infer(*words, **options):
    """What infer says of each item, but for the name of its file."""
    out, _ = run("infer", "out", *words, "--brief", **options)
    return [{k: v for k, v in json.loads(line).items() if k != "source"} for line in out.splitlines()]


def test_infer_reads_them():
    """Items of records are what lines are; those with line ends in them, too."""
    needs_gzip()
    config = write_config(data={"text": None})
    put("text.txt", "sea ship isle " * 3000)
    run("train", config, "--text", "text.txt", *STEPS)
    texts = [t[:3000] for t in documents(40, False)]
    put("t.txt", "\n".join(texts) + "\n")
    put("t.jsonl", as_jsonl(texts))
    put("body.jsonl", as_jsonl(texts, "body"))
    as_csv(texts)
    put("t.json", as_squad(texts))
    for name in ("t.txt", "t.jsonl"):
        put(name + ".gz", pieces(read(name)))
    wanted = said_by_infer("t.txt")
    check(len(wanted) == 40, wanted)
    for words in (["t.jsonl"], ["t.csv"], ["t.jsonl.gz"], ["t.txt.gz"], ["body.jsonl", "--text_key", "body"], ["t.json", "--text_format", "squad"]):
        check(said_by_infer(*words) == wanted, words, "are other items")
    check(said_by_infer("-", input=read("t.txt")) == wanted and said_by_infer("-", "--text_format", "jsonl", input=read("t.jsonl")) == wanted, "standard input")
    put("more.jsonl", as_jsonl(["sea\nship", "isle"]))
    said = said_by_infer("more.jsonl", "t.txt")
    check([i["tokens"] for i in said[:2]] == [8, 4] and [{**i, "item": i["item"] - 2} for i in said[2:]] == wanted, said[:3])
    whole = said_by_infer("t.txt.gz", "--text_format", "plain")
    check(len(whole) == 1 and whole[0]["tokens"] == len(read("t.txt")), whole)
    put("cut.gz", read("t.jsonl.gz")[:40])
    for name, said in (("cut.gz", "cut off"), ("body.jsonl", 'has no key "text"')):
        refused(4, said, "infer", "out", name)
    refused(4, "standard input .-. is empty", "infer", "out", "-", input=b"")
    put("u.txt", "sea\n")
    for name, key in (("t.txt", "body"), ("u.txt", "1"), ("t.txt.gz", "body")):
        refused(2, f'{name}: the key "{key}" is not looked for', "infer", "out", name, "u.txt", "--text_key", key)
    check(len(said_by_infer("u.txt", "body.jsonl", "--text_key", "body")) == 41, "lines next to records")


if __name__ == "__main__":
    main({
        "corpus_infer": [test_infer_reads_them],
        "encode_gathered": [test_gathered_texts],
        "corpus_words": [test_words, test_words_refused, test_the_example_of_words],
        "corpus": [test_forms_of_the_same_texts, test_lines_and_plain, test_squad_parts, test_a_list_in_the_config, test_bytes_that_are_no_text],
        "corpus_runs": [test_a_run_goes_on_with_its_texts, test_another_key_is_named, test_standard_input, test_commands_read_them],
        "corpus_damaged": [test_what_is_damaged],
    })

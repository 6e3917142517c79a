#!/usr/bin/env python3
"""Ids and decoded texts of many hostile texts, ours against those of Hugging Face's tokenizers, for each tokenizer.json given
(or a file that holds one as "tokenizer", as those in tests/unit/data/tokenizers do):

    compare.py TOKENS MEGABYTES TOKENIZER.json …       PLIMSOLL_TEST_SEED repeats the texts

TOKENS is the program tests/tokens/tokens. Runs in the Python that the environment variable PL_OWN_PYTHON names, which has
tokenizers; without it, nothing is compared (exit code 77). Texts are of all classes of characters, of the tokenizer's own tokens and
added tokens, and some are long. Prints how many differ, and the shortest that do.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

if "tokenizers" not in sys.modules and os.environ.get("PL_OWN_PYTHON", sys.executable) != sys.executable:
    os.execv(os.environ["PL_OWN_PYTHON"], [os.environ["PL_OWN_PYTHON"], "-B", *sys.argv])
try:
    from tokenizers import Tokenizer
except ImportError:
    print("PL_OWN_PYTHON names no Python with the package tokenizers: nothing was compared")
    sys.exit(77)

STREAM_MAX = 16384  # bytes of a piece, PL_ENCODER_PIECE_MAX: an encoder that does not know how long a text is cuts there
POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def groups_of(tok):
    by_class = {}
    for c in POINTS:
        by_class.setdefault(unicodedata.category(c)[0], []).append(c)
    vocab = list(tok.get_vocab())
    added = [a.content for a in tok.get_added_tokens_decoder().values()]
    space = list(" \n\r\t\u00a0\u3000\u2028\u0085 ")
    return ([by_class["L"], by_class["N"], by_class["P"], by_class["S"], by_class["M"], POINTS] +
            [[chr(c) for c in range(32, 127)]] * 3 + [space + [" "] * 8 + ["\n"] * 2] * 3 + [vocab] * 3 + [added] +
            [list("'strevmldSTREVMLD\u017f0123456789")] * 2 + [["\u2581", "\u0120", "\u010a", "<0x41>", "<", "|"]])


def texts_of(tok, megabytes, rnd):
    groups, made = groups_of(tok), 0
    while made < megabytes * 1000000:
        kind = rnd.random()
        if kind < 0.02:
            text = rnd.choice(rnd.choice(groups)) * rnd.randint(1, 3000)
        elif kind < 0.05:
            few = rnd.choices(rnd.choice(groups), k=3)
            text = "".join(rnd.choices(few, k=rnd.randint(1, 3000)))
        elif kind < 0.06:
            text = "".join(rnd.choice(rnd.choice(groups)) for _ in range(20000))
        else:
            text = "".join(rnd.choice(rnd.choice(groups)) for _ in range(rnd.randint(0, 120)))
        made += len(text.encode())
        yield text


def read_results(path):
    with open(path, "rb") as f:
        while head := f.read(4):
            n, = struct.unpack("<I", head)
            if n == 0xFFFFFFFF:
                yield None
                continue
            ids = list(struct.unpack(f"<{n}I", f.read(4 * n)))
            texts = []
            for _ in range(2):
                size, = struct.unpack("<I", f.read(4))
                texts.append(f.read(size).decode("utf-8", "surrogateescape"))
            yield ids, *texts


def compare(program, path, megabytes, seed):
    rnd = random.Random(seed)
    with open(path, encoding="utf-8") as f:
        whole = json.load(f)
    whole = json.dumps(whole.get("tokenizer", whole))
    tok = Tokenizer.from_str(whole)
    tok.no_truncation()
    texts = list(texts_of(tok, megabytes, rnd))
    differ = {"ids": [], "ids with special": [], "ids in a stream": [], "decoded": [], "decoded, no special": []}
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/texts", "wb") as f:
            for text in texts:
                data = text.encode()
                f.write(struct.pack("<I", len(data)) + data)
        with open(f"{folder}/tokenizer.json", "w", encoding="utf-8") as f:
            f.write(whole)
        results = {}
        for mode in ("", "special", "stream"):
            subprocess.run([program, f"{folder}/tokenizer.json", f"{folder}/texts", f"{folder}/out", *mode.split()], check=True)
            results[mode] = list(read_results(f"{folder}/out"))
    for i, text in enumerate(texts):
        ids, special = tok.encode(text, add_special_tokens=False).ids, tok.encode(text).ids
        ours = results[""][i]
        bad = {"ids": ours[0] != ids, "ids with special": results["special"][i][0] != special,
               "ids in a stream": len(text.encode()) < STREAM_MAX and results["stream"][i][0] != ids,
               "decoded": ours[1] != tok.decode(ids, skip_special_tokens=False),
               "decoded, no special": ours[2] != tok.decode(ids)}
        for what, is_bad in bad.items():
            if is_bad:
                differ[what].append(i)
    size = sum(len(t.encode()) for t in texts)
    print(f"{path}: {len(texts)} texts, {size / 1e6:.1f} MB, seed {seed}: " +
          ", ".join(f"{what} differ in {len(where)}" for what, where in differ.items()))
    for what, where in differ.items():
        if where:
            i = min(where, key=lambda k: len(texts[k]))
            print(f"  {what}: {ascii(texts[i])[:300]}\n    ours   {str(results['special' if 'with' in what else ''][i])[:300]}\n"
                  f"    theirs {str(tok.encode(texts[i], add_special_tokens='with' in what).ids)[:300]}"
                  f" {ascii(tok.decode(tok.encode(texts[i], add_special_tokens=False).ids, skip_special_tokens='no' in what))[:200]}")
    return not any(differ.values())


if __name__ == "__main__":
    SEED = int(os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30)))
    good = [compare(sys.argv[1], path, float(sys.argv[2]), SEED) for path in sys.argv[3:]]
    sys.exit(0 if all(good) else 1)

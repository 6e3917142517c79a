#!/usr/bin/env python3
"""Writes tests/unit/data/tokenizers/NAME.json: a small tokenizer for each pipeline of people's models, and the ids and texts that
Hugging Face's tokenizers gives for hostile texts. Needs `pip install tokenizers`; not part of the build.

    make_cases.py FOLDER
"""
import json
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre

TEXT = ("the cat sat on the mat and the other thing is what they're saying, isn't it? 2026 12 123 1234 don't we'll "
        "for (int i = 0; i < n; i++) { return x; }\n\n\tthe end.  The END\nüber schöne Straße 日本語 東京 日本 привет мир " * 6)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
TEXTS = ["", " ", "  ", "   a", "a ", "a  ", "\n", "\r\n", " \n ", "\n \n", "  \n\n  x", "\t\tx", "a\tb", "a \t b",
         "it's IT'S 'tis it'S it'll I'VE '' '\u017f", "don\u2019t", "0", "12", "123", "12345678", " 1234", "1 234,567.89",
         "٣٤٥ ½²③Ⅷ", "x1y22z333", "\U00011de3a\U00016ff5", "é e\u0301 ﬁ \u1e9b\u0323 Å", "한글\u1112\u1161\u11ab", "a\u0301\u0316\u0334b",
         "中文字符 東京", "नमस्ते", "Привет, мир!", "😀👩‍👩‍👧", "a\u200bb\u00a0c\u3000d\u2028e\u0085f", "\u00ad\ufeffx\x00\x7f",
         "<s>x</s>", "<s> a <s>", " <|im_end|> \n x", "a <|im_end|>b <|im_end|>\n\n c", "\n\n<t> \n <t>b", "a <l> \t<l>b",
         "<|im_end|", "<0x41>", "▁", " ▁ a▁b", "▁▁▁", "Ġ Ċ", "...!!!??? ((()))[]{}--- ===\n###", "the other thing", " the  cat",
         "the<n>cat <n>", "A\u030a<Å>", "aaaaaaaaaaaaaaaa", "\n\n\n\n\nx", "ß ẞ ſ ǅ", "\U0010ffff\ufffd"]


def special(text, **how):
    return AddedToken(text, special=True, normalized=False, **how)


def add(tok, before):
    tok.add_special_tokens([special("<|im_end|>", rstrip=True), special("<l>", lstrip=True)])
    tok.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("<t>", normalized=False), AddedToken("<n>", normalized=True),
                    AddedToken("<Å>", normalized=True)])
    parts = [(t, tok.token_to_id(t)) for t in (before, "<|im_end|>") if t]
    tok.post_processor = processors.TemplateProcessing(
        single=f"{before or ''} $A <|im_end|>".strip(), pair=f"{before or ''} $A $B".strip(), special_tokens=parts)
    return tok


def byte_level(pre_tokenizer, normalizer=None, before=None, **how):
    tok = Tokenizer(models.BPE(**how))
    tok.pre_tokenizer, tok.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    tok.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False, special_tokens=["<s>"] if before else []))
    return add(tok, before)


def sentence_piece(normalizer, pre_tokenizer, strips, fallback=True, fuse=True):
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre.Metaspace()
    pieces.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=130, show_progress=False))
    model = json.loads(pieces.to_str())["model"]
    order = sorted(model["vocab"], key=model["vocab"].get)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256) if fallback or 0x40 <= b < 0xE0]
    tokens += ["▁▁", "▁▁▁▁"] + [t for t in order if len(t) > 1] + [t for t in order if len(t) == 1]
    vocab = {t: i for i, t in enumerate(tokens)}
    merges = [(t[:k], t[k:]) for t in tokens if len(t) > 1 and not t.startswith("<") for k in range(1, len(t))
              if t[:k] in vocab and t[k:] in vocab]
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
    if normalizer:
        tok.normalizer = normalizer
    if pre_tokenizer:
        tok.pre_tokenizer = pre_tokenizer
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tok.decoder = decoders.Sequence(parts + ([decoders.Strip(" ", 1, 0)] if strips else []))
    tok.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    return add(tok, "<s>")


def split(pattern):
    return pre.Sequence([pre.Split(Regex(pattern), "isolated"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def digits(individual):
    return pre.Sequence([pre.Digits(individual_digits=individual), pre.ByteLevel(add_prefix_space=False, use_regex=True)])


replace, prepend = normalizers.Replace(" ", "▁"), normalizers.Prepend("▁")
CASES = {
    "gpt2": lambda: byte_level(pre.ByteLevel(add_prefix_space=True)),
    "smollm": lambda: byte_level(digits(True), before="<s>"),
    "digits": lambda: byte_level(digits(False)),
    "llama3": lambda: byte_level(split(LLAMA3), before="<s>", ignore_merges=True),
    "qwen2": lambda: byte_level(split(QWEN2), normalizers.NFC()),
    "llama2": lambda: sentence_piece(normalizers.Sequence([prepend, replace]), None, True),
    "mistral": lambda: sentence_piece(None, pre.Metaspace(prepend_scheme="first", split=False), True),
    "metaspace": lambda: sentence_piece(None, pre.Metaspace(prepend_scheme="always", split=True), False),
    "gemma": lambda: sentence_piece(replace, pre.Split(" ", "merged_with_previous"), False),
    "unknown": lambda: sentence_piece(normalizers.Sequence([prepend, replace]), None, True, fallback=False),
    "unknown_apart": lambda: sentence_piece(replace, None, False, fallback=False, fuse=False),
}

for name, make in CASES.items():
    tok = make()
    cases = []
    for text in TEXTS:
        ids = tok.encode(text, add_special_tokens=False).ids
        cases.append([text, ids, tok.encode(text).ids, tok.decode(ids, skip_special_tokens=False), tok.decode(ids)])
    with open(f"{sys.argv[1]}/{name}.json", "w", encoding="utf-8") as out:
        out.write('{"tokenizer": ' + json.dumps(json.loads(tok.to_str()), separators=(",", ":")) + ',\n"cases": [\n')
        out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")

"""Tests of plimsoll chat. Called as cli_tests.py is. The oracle writes the chat as the template would by plain string
operations, and computes the model by plain loops over doubles (pretrained_models.py)."""
import json
import os
import random

import pretrained_models
from cli_tests import SEED, check, environment, main, read, refused, run, unfolded, write_config
from own_models_tests import ids_of

DRAW = random.Random(SEED)
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ '[' + m['role'][0] + ']' + m['content'] }}"
            "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}[a]{% endif %}")
BOS, EOS = 259, 260
MESSAGES = ["the cat", "and the dog?", "it's 12 o'clock", "say </s> to the <s>", "</s>", "", "naïve 東京",
            " the\tother  "]


def save(folder, template=TEMPLATE, context=160, seed=None, family="llama", **more):
    model = pretrained_models.Model(family, DRAW.randrange(1 << 30) if seed is None else seed, context=context, **more)
    model.save(folder)
    path = os.path.join(folder, "tokenizer_config.json")
    config = json.loads(read(path))
    if template is not None:
        config["chat_template"] = template
    with open(path, "w") as file:
        json.dump(config, file)
    return model


def literal(text):
    """What a person wrote: the texts of special tokens in it are encoded apart, and never become these tokens."""
    ids, at, plain = [], 0, 0
    while at < len(text):
        special = next((s for s in ("</s>", "<s>") if text.startswith(s, at)), None)
        if special:
            ids += ids_of(text[plain:at]) + ids_of(special)
            at += len(special)
            plain = at
        else:
            at += 1
    return ids + ids_of(text[plain:])


def chat_ids(messages):
    ids = [BOS]
    for role, text in messages:
        ids += ids_of(f"[{role}]") + literal(text) + ([EOS] if role == "a" else [])
    return ids + ids_of("[a]")


def answer(model, messages, tokens, stop=None):
    """The answer's text, why it ends, and how far the best token was ahead where it was least."""
    ids, lead = model.greedy(chat_ids(messages), tokens)
    kept = ids[:ids.index(EOS)] if EOS in ids else ids
    parts = {256: b"th", 257: b"the", 258: b" the", BOS: b""}
    text = b"".join(parts[t] if t >= 256 else bytes([t]) for t in kept).decode(errors="replace")
    if stop and stop in text:
        return text[:text.index(stop)], "stop", lead
    return text, "end" if EOS in ids else "length", lead


def play(model, folder, messages, *options, system=None, tokens=5, stop=None):
    """All messages in one chat, each answer as the oracle has it. False: the oracle's best two tokens were too near."""
    chat, want = [("s", system)] if system else [], []
    for message in messages:
        chat.append(("u", message))
        text, ended, lead = answer(model, chat, tokens, stop)
        if lead < 1e-3:
            return False
        want.append((text, ended, len(chat_ids(chat))))
        chat.append(("a", text))
    more = (["--system", system] if system else []) + (["--stop", stop] if stop else [])
    out, _ = run("chat", folder, "--temperature", "0", "--tokens", str(tokens), "--json", *more, *options,
                 input="".join(m + "\n" for m in messages).encode())
    told = [json.loads(line) for line in out.splitlines()]
    got = [(t["text"], t["ended_by"], t["prompt_tokens"]) for t in told]
    check(got == want, f"the chat {messages}, system {system!r}, stop {stop!r}, is\n  {got}\nnot\n  {want}")
    return True


def test_turns():
    model = save("model")
    for _ in range(3):
        play(model, "model", DRAW.sample(MESSAGES, 2), system=DRAW.choice([None, "be </s> brief"]))


def test_rings():
    """Caches that hold no more than a window; and a chat whose first message was asked before."""
    model = save("model", family="mistral")
    for rows in DRAW.sample(["1", "2", "5", "9"], 2):
        messages = DRAW.sample(MESSAGES, 2)
        for _ in range(2):
            play(model, "model", messages, "--prefill_tokens", rows, "--prompt_cache", rows + ".bin")


def test_special_text_is_text():
    model = save("model")
    told = json.loads(run("chat", "model", "say </s> to <s>", "--temperature", "0", "-n", "1", "--json")[0])
    check(told["prompt_tokens"] == len(chat_ids([("u", "say </s> to <s>")])) == 1 + 3 + 15 + 3, told)
    play(model, "model", ["</s>", "<s></s"])


def test_stop():
    """A stop text ends the answer; the next message follows what was told of it."""
    for _ in range(8):
        model = save("model")
        text, _, _ = answer(model, [("u", "the cat")], 6)
        stops = [c for c in text[1:] if 33 <= ord(c) < 127 and c != "\\"]
        if stops and play(model, "model", ["the cat", "and?"], tokens=6, stop=stops[0]):
            return


def test_one_message():
    save("model")
    words = ("--temperature", "0", "--tokens", "4", "--json")
    first = json.loads(run("chat", "model", *words, input=b"the cat\n")[0])
    with open("message.txt", "w") as file:
        file.write("the cat\n")
    for given in (["the cat"], ["@message.txt"], ["-p", "the cat"]):
        told = json.loads(run("chat", "model", *given, *words)[0])
        check(told["text"] == first["text"] and told["prompt_tokens"] == first["prompt_tokens"], given, told, first)
    out, err = run("chat", "model", "the cat", *words[:-1])
    check(out.rstrip("\n") == first["text"].rstrip("\n") or not first["text"].isprintable(), out, first)
    _, err = run("chat", "model", "the cat", *words, "--ledger")
    check("As planned, to the byte." in err, err)
    # What asks for memory while it chats is killed.
    run("chat", "model", *words, "--stop", "xyzzy", "--repeat-penalty", "1.1", "--system", "be brief",
        input=b"the cat\nand </s>?\n\xff\n", env=environment(PLIMSOLL_TEST_SECCOMP="kill"), code=4)
    refused(2, "one answer", "chat", "model", "the cat", "--num-samples", "2")


def test_full_context():
    save("model")
    lines = "".join(f"message {i}\n" for i in range(9)).encode()
    out, err = run("chat", "model", "--sequence", "64", "--tokens", "3", "--json", input=lines, code=2)
    check(1 <= len(out.splitlines()) < 9 and "the chat fills its context of" in unfolded(err), out, err)
    refused(2, "the chat fills its context of", "chat", "model", "x" * 100, "--sequence", "64")
    # An answer that fills the context is told, and is the last.
    out, err = run("chat", "model", "--sequence", "32", "--json", "--top-k", "1", input=b"hello\nhello\n", code=2)
    told = [json.loads(line) for line in out.splitlines()]
    check(len(told) == 1 and told[0]["ended_by"] in ("context", "end"), out)


def test_templates():
    """Where one comes from: a file of its own wins, a list has a default, a key of the config wins over all."""
    save("bare", template=None)
    refused(4, "without a chat template; name .*: chatml, llama2, llama3, gemma, phi3, zephyr, mistral, or a file", "chat",
            "bare", "hi")
    words = ("--temperature", "0", "-n", "1", "--json")

    def count(folder, *more):
        return json.loads(run("chat", folder, "hi", *words, *more)[0])["prompt_tokens"]
    chatml = ("<|im_start|>system\nYou are a helpful AI assistant<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
              "<|im_start|>assistant\n")
    check(count("bare", "--chat_template", "chatml") == len(ids_of(chatml)), "chatml")
    with open("own.jinja", "w") as file:
        file.write("{{ messages[0].content }}!\n")
    check(count("bare", "--chat_template", "./own.jinja") == 3, "a file")
    save("list", template=[{"name": "tool_use", "template": "xxxxx"}, {"name": "default", "template": TEMPLATE},
                           {"template": "yyyyyyy", "name": "rag"}])
    check(count("list") == len(chat_ids([("u", "hi")])), "a list")
    with open("list/chat_template.jinja", "w") as file:
        file.write("{{ messages[0].content }}?{{ eos_token }}{{ unk_token }}")
    check(count("list") == 4, "chat_template.jinja")
    save("broken", template="{% if messages %}{{ 'x' }")
    refused(4, "tokenizer_config.json: chat template, line 1: ", "chat", "broken", "hi")
    save("empty", template="{# nothing #}")
    refused(4, "the chat template writes nothing", "chat", "empty", "hi")


def test_sampling():
    """What generation_config.json says is the default, and what the user says counts."""
    save("model")
    with open("model/generation_config.json", "w") as file:
        json.dump({"temperature": 0.6, "top_k": 1, "repetition_penalty": 1.1, "eos_token_id": EOS}, file)
    words = ("chat", "model", "the cat", "--tokens", "6", "--json")

    def text(*more):
        out, err = run(*words, *more)
        return json.loads(out)["text"], unfolded(err)
    first, err = text()
    check("sampling as generation_config.json says: temperature 0.6, top_k 1, repetition_penalty 1.1\n" in err, err)
    check(first == text("--seed", "9")[0] == text("--temperature", "0")[0], "top_k 1 takes the likeliest token")
    check("sampling" not in text("--quiet")[1], "--quiet")
    given, err = text("--temperature", "0.9", "--top_p", "0.5", "--top_k", "0", "--repeat_penalty", "1")
    check("sampling" not in err, err)
    os.remove("model/generation_config.json")
    check(given == text("--temperature", "0.9", "--top_p", "0.5")[0], given)
    check("sampling" not in text()[1], "no generation_config.json")


def test_refusals():
    """A message that cannot be answered is said, and leaves the chat as it was."""
    refuses = "{% if 'no' == messages[-1].content %}{{ raise_exception('not this') }}{% endif %}"
    model = save("model", template=refuses + TEMPLATE)
    text, _, lead = answer(model, [("u", "yes")], 3)
    out, err = run("chat", "model", "--temperature", "0", "-n", "3", "--json", input=b"no\n\xff\nyes\n", code=4)
    told = [json.loads(line) for line in out.splitlines()]
    check(len(told) == 1 and "not this" in unfolded(err) and "is not UTF-8" in unfolded(err), out, err)
    check(told[0]["prompt_tokens"] == len(chat_ids([("u", "yes")])), told)
    check(lead < 1e-3 or told[0]["text"] == text, told, text)
    write_config()
    refused(2, "config.yaml: names no pretrained model", "chat", "config.yaml", "hi")


if __name__ == "__main__":
    main({"chat": [test_turns, test_rings, test_special_text_is_text, test_stop, test_one_message, test_full_context, test_templates,
                   test_sampling, test_refusals]})

"""Tests of what goes wrong with people's own language models: weights that are no numbers, messages that are refused,
files that cannot be had. Called as cli_tests.py is."""
import json
import os
import random
import re
import resource

import model_files
import pretrained_models
from cli_tests import SEED, check, environment, main, read, refused, run, unfolded
from export_tests import need_module

DRAW = random.Random(SEED)
TEXT = "the cat and the dog: it's 12"
FAMILIES = list(pretrained_models.FAMILIES)
BRIEF = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


def make(family, **more):
    layers = 7 if family == "gemma3_text" else 4
    return pretrained_models.Model(family, DRAW.randrange(1 << 30), layers=layers, **more)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def sentence(*words):
    """As the library says it, figures in full."""
    return unfolded(run(*words, code=3, env=environment(PLIMSOLL_INTERNAL_SENTENCE="1"))[1]).strip().split("\n")[-1]


def spoil(model, value):
    """One number of a matrix whose results nothing turns into finite numbers; its name."""
    name = DRAW.choice([n for n in model.w if n.endswith(("down_proj.weight", "o_proj.weight", "v_proj.weight"))])
    row = DRAW.choice(model.w[name])
    row[DRAW.randrange(len(row))] = value
    return name


def test_not_finite():
    """NaN and infinity among weights: no text, no chat and no figure, but which weight it is."""
    write("text.txt", TEXT + "\n")
    write("choices.jsonl", json.dumps({"prompt": "the", "choices": [" cat", " dog"]}) + "\n")
    write("brief.jinja", BRIEF)
    for value in (float("nan"), float("-inf")):
        model = make(DRAW.choice(FAMILIES))
        name = spoil(model, value)
        model.save("model", DRAW.choice(["F32", "BF16"]) if value != value else "F32")
        blame = f"is not finite, for the weight {name} holds an infinity or NaN"
        words = ["--temperature", DRAW.choice(["0", "0.7"])]
        out, err = run("generate", "model", TEXT, *words, code=1)
        check(out == TEXT + "\n", out)
        refused(1, "token 1 of the text .after .* of the prompt. " + blame, "generate", "model", TEXT, *words, "--json")
        refused(1, "token 1 of the text .after .* of the prompt. " + blame, "chat", "model", "--chat_template",
                "./brief.jinja", "--json", *words, input=b"the cat\nand\n")
        refused(1, "the loss of token 1 that is judged " + blame, "eval", "model", "--text", "text.txt", "--protocol", "windows")
        refused(1, "the loss of token 1 that is judged " + blame, "eval", "model", "--choices", "choices.jsonl")
        _, err = run("infer", "model", "text.txt", "--npy", "got", "--sequence", "32")
        check("infinite or NaN; so is one of the weight " in unfolded(err), err)
    out, _ = run("infer", "model", "text.txt", "--compare", "--turns", "1", "--sequence", "32", "--json")
    check("numbers of the results are infinite or NaN" in json.loads(out)["variants"][0]["remark"], out)
    encoding, at = DRAW.choice([("q8_0", 0), ("q4_0", 0), ("q4_1", 2), ("q5_1", 0)])
    run("convert", make("llama", inner=64).save("whole"), "blocks.gguf", "--encoding", encoding, "--quiet")
    _, tensors, head = model_files.read_gguf_parts("blocks.gguf")
    kind, ne, data = tensors["blk.1.ffn_down.weight"]
    tensors["blk.1.ffn_down.weight"] = (kind, ne, data[:at] + b"\x00\x7e" + data[at + 2:])  # scale or least number of a block
    model_files.write_gguf("nan.gguf", head, tensors)
    check(kind == encoding, kind, ne)
    refused(4, "tensor blk.1.ffn_down.weight has a block whose scale is not finite", "generate", "nan.gguf", TEXT, "--json")
    refused(1, "is not finite, for the weight model.layers.1.mlp.down_proj.weight holds an infinity or NaN", "generate",
            "nan.gguf", TEXT, "--json", "--weights", "mmap")
    large = make("llama")
    for name, rows in large.w.items():
        if name.endswith(("up_proj.weight", "gate_proj.weight")):
            large.w[name] = [[3e38] * len(row) for row in rows]
    large.save("large")
    refused(1, "a logit .* is not finite, though all weights are: numbers grow too large", "generate", "large", TEXT, "--json")


def test_without_effect():
    """What a text that is written on from does not read is refused."""
    make("llama").save("model")
    for words in (["--system", "be brief"], ["--chat_template", "chatml"]):
        refused(2, f"{words[0]} is of a chat, .* plimsoll chat", "generate", "model", "the", *words)
    write("text.txt", TEXT)
    refused(2, "has no first values; leave --seeded out", "infer", "model", "text.txt", "--seeded")
    for words in (["generate", "model", "the"], ["eval", "model", "--text", "text.txt"], ["infer", "model", "text.txt"]):
        refused(2, "--checkpoint names weights of a model that is trained here", *words, "--checkpoint", "x")
    refused(2, "the prompt has 1 token, and the context", "generate", "model", "x", "--sequence", "1")


def test_refused_lines():
    """A script sees that a line had no answer; the others have theirs."""
    model = make("llama", context=512)
    model.save("model")
    write("brief.jinja", "{% if messages[-1].content == 'no' %}{{ raise_exception('not this') }}{% endif %}" + BRIEF)
    chat = ["chat", "model", "--chat_template", "./brief.jinja", "--json", "-n", "2", "--temperature", "0"]
    for lines, answers, code in ((b"no\nno\n", 0, 4), (b"no\nthe\n", 1, 4), (b"the\n\xff\n", 1, 4), (b"the\ncat\n", 2, 0),
                                 (b"", 0, 0)):
        out, err = run(*chat, input=lines, code=code)
        check(len(out.splitlines()) == answers, lines, out)
        check((code == 0) == ("not every line was answered" not in err), lines, err)
    out, err = run("generate", "model", "--interactive", "--json", "-n", "2", "--sequence", "16",
                   input=b"x" * 40 + b"\nthe\n", code=2)
    check(len(out.splitlines()) == 1 and "has 40 tokens" in unfolded(err), out, err)


def test_prompt_cache_first():
    """What a prompt's cache is refused for is said before the prompt is shown, and what keeps nothing says so."""
    model = make(DRAW.choice(["llama", "mistral", "gemma3_text"]), context=200)
    model.save("model")
    more = ["--prefill_tokens", "8", "--tokens", "4", "--temperature", "0"]
    write("notes.txt", "not a prompt's cache, but what somebody wrote down, and wants to keep\n" * 2)
    for prompt in (TEXT * 2, "the"):
        refused(4, "is no prompt's cache", "generate", "model", prompt, *more, "--prompt_cache", "notes.txt")
    refused(5, "nowhere/prompt.bin", "generate", "model", TEXT * 2, *more, "--prompt_cache", "nowhere/prompt.bin")
    out, err = run("generate", "model", "the cat", *more, "--prompt_cache", "prompt.bin")
    check("warning: the prompt has 5 tokens, of which nothing is kept in prompt.bin: that takes whole chunks of 8 tokens" in
          unfolded(err) and not os.path.exists("prompt.bin"), err)
    _, err = run("generate", "model", TEXT * 2, *more, "--prompt_cache", "prompt.bin")
    before = read("prompt.bin")
    same, err = run("generate", "model", "the cat", *more, "--prompt_cache", "prompt.bin")
    check(same == out and read("prompt.bin") == before and "nothing is kept" in unfolded(err), err)
    write("brief.jinja", BRIEF)
    out, err = run("chat", "model", "--chat_template", "./brief.jinja", *more, "--prompt_cache", "kept.bin", input=b"the\n" + TEXT.encode() + b"\n")
    check(unfolded(err).count("nothing is kept") == 1, err)


def charged(*words, **options):
    return json.loads(run("plan", "model", "--json", *words, **options)[0])["process"]["charged_bytes"]


def test_plans():
    """plan takes what the command takes: a chat, files, standard input."""
    make("llama", context=512).save("model")
    write("brief.jinja", BRIEF)
    write("short.txt", TEXT + "\n")
    write("long.txt", (TEXT + "\n") * 3000)
    item = json.dumps({"prompt": TEXT, "choices": [" cat", " dog"]}) + "\n"
    check(charged("--command", "chat", "--chat_template", "./brief.jinja") > charged("--command", "generate"), "a chat holds no more")
    write("config.yaml", "data: {text: short.txt}\n")
    refused(2, "names no pretrained model", "plan", "config.yaml", "--command", "chat")
    refused(2, "none of train, .*, infer, chat", "plan", "model", "--command", "chats")
    sizes = ["--command", "infer", "--sequence", "64"]
    told = json.loads(run("infer", "model", "long.txt", "--json", "--brief", "--sequence", "64")[0].splitlines()[-1])
    check(charged(*sizes, "long.txt") > charged(*sizes), "files take nothing")
    whole = json.loads(run("plan", "model", "long.txt", "--json", *sizes)[0])["process"]
    check(told["planned_bytes"] == whole["resident_bytes"] or told["planned_bytes"] == whole["charged_bytes"], told, whole)
    check(charged(*sizes, "-", input=(TEXT + "\n").encode() * 3000) == charged(*sizes, "long.txt"), "another plan for standard input")
    refused(2, "one config only, but there is also long.txt; files are taken with --command infer", "plan", "model", "long.txt")
    for words, text in ((["--text", "-"], TEXT * 100), (["--choices", "-"], item)):
        check(charged("--command", "eval", *words, input=text.encode()) > 0, words)
        write("in.txt", text)
        named = run("eval", "model", words[0], "in.txt", "--json", "--sequence", "64")[0]
        piped = run("eval", "model", *words, "--json", "--sequence", "64", input=text.encode())[0]
        told = [[{k: v for k, v in json.loads(line).items() if "second" not in k} for line in out.splitlines()] for out in (named, piped)]
        check(told[0] == told[1], told)
        refused(4, "standard input .-. is empty", "eval", "model", *words, input=b"")


def test_export():
    """An export holds no more than it says before, and is refused where that is over the budget."""
    need_module()
    model = make(DRAW.choice(FAMILIES), width=64, inner=700)
    model.save("model", "BF16")
    words = ["export", "model", "--format", "onnx", "--sequence", "16", "--out", "x.onnx"]
    told = json.loads(run(*words, "--json")[0])
    planned = told["planned_bytes"]
    check(told["held_bytes"] + told["values_bytes"] < planned < told["held_bytes"] + told["values_bytes"] + 16e6, told)
    run(*words, "--budget", str(2 * planned), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (planned, planned)))
    os.remove("x.onnx")
    refused(3, "to export it takes up to .* more than the budget of .*; raise the budget", *words, "--budget", str(planned // 2))
    check(not os.path.exists("x.onnx"), "written all the same")
    elsewhere = [*words[:-1], "nowhere/x.onnx", "--budget", "1MB"]  # which is looked at later, before weights are read
    refused(5, "nowhere/x.onnx: cannot be created", *elsewhere)
    run(*words, "--budget", str(planned + 1_000_000))


def test_lowered_chunk():
    """How many tokens a budget lets a prompt be read at once is said, by plan and by those that run it."""
    make("llama", context=512, inner=768).save("model")
    write("text.txt", TEXT * 100)
    most, least = charged(), charged("--prefill_tokens", "8")
    budget = ["--budget", str((least + most) // 2)]
    chosen = json.loads(run("plan", "model", "--json", *budget)[0])["process"]["lowered_chunk"]
    check(chosen in (8, 16, 32, 64) and charged("--prefill_tokens", str(chosen)) == charged(*budget), chosen)
    check(f"{chosen}  tokens are read at a time, to fit the budget" in run("plan", "model", *budget)[0], chosen)
    for quiet in ([], ["--quiet"]):
        err = run("generate", "model", TEXT, "-n", "2", *budget, *quiet)[1]
        check((f"tokens are read {chosen} at a time to fit the budget" in err) == (not quiet), err)
    check("at a time" not in run("generate", "model", TEXT, "-n", "2")[1], "said without need")


def test_advice():
    """What a refusal says would fit, fits, as it is said; where nothing would, nothing is said but the budget."""
    model = make("llama", context=3000, head_width=32, inner=1024, width=64)
    model.save("model")
    write("text.txt", TEXT * 400)
    write("short.txt", TEXT * 20)
    write("choices.jsonl", json.dumps({"prompt": TEXT, "choices": [" cat", " dog"]}) + "\n")
    write("brief.jinja", BRIEF)
    commands = (["generate", "model", TEXT, "-n", "3"], ["chat", "model", TEXT, "-n", "3", "--chat_template", "./brief.jinja"],
                ["eval", "model", "--text", "text.txt"], ["eval", "model", "--text", "text.txt", "--protocol", "windows"],
                ["eval", "model", "--choices", "choices.jsonl"], ["infer", "model", "short.txt"])
    for words in commands:
        needed = int(re.search(r"needs ([0-9]+) bytes", sentence(*words, "--budget", "9MB"))[1])
        least = needed
        for budget in (needed - needed // 40, DRAW.randrange(8_000_000, needed)):
            told = sentence(*words, "--budget", str(budget))
            check(f"raise the budget to {needed} bytes" in told, words, told)
            found = re.search("it fits with (.*): ([0-9.]+) MB charged, and the results", told)
            if not found:
                continue
            check(float(found[2]) <= budget / 1e6 + 0.05, told)
            least = budget
            run(*words, *found[1].split(), "--budget", str(budget))
        check(least < needed, words, "no advice")


if __name__ == "__main__":
    main({"own_faults": [test_not_finite, test_without_effect, test_refused_lines, test_prompt_cache_first],
          "own_advice": [test_advice, test_plans, test_lowered_chunk, test_export]})

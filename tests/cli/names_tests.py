"""Names of keys and options that people bring along from Hugging Face's Trainer, nanoGPT, llama.cpp and Lightning. The table
below says what each must do, from the documentation of those programs: which key of ours it is, or what its refusal must say.
Called as cli_tests.py is."""
import json

from cli_tests import Failed, check, main, refused, run

TINY = """model:
  width: 32
  layers: 2
  heads: 4
  sequence: 32
data:
  tokenizer: bytes
"""

# name -> value given, key that it sets, value that the key then has
ACCEPTED = {
    "lr": ("0.5", "train.learning_rate", 0.5),
    "max_steps": ("7", "train.steps", 7),
    "max_iters": ("8", "train.steps", 8),
    "num_train_epochs": ("3", "train.epochs", 3),
    "max_epochs": ("4", "train.epochs", 4),
    "per_device_train_batch_size": ("6", "train.batch_size", 6),
    "batch_size": ("5", "train.batch_size", 5),
    "gradient_accumulation_steps": ("2", "train.gradient_accumulation_steps", 2),
    "accumulate_grad_batches": ("3", "train.gradient_accumulation_steps", 3),
    "block_size": ("48", "model.sequence", 48),
    "max_seq_length": ("40", "model.sequence", 40),
    "n_embd": ("64", "model.width", 64),
    "n_head": ("8", "model.heads", 8),
    "n_layer": ("3", "model.layers", 3),
    "hidden_size": ("96", "model.width", 96),
    "num_attention_heads": ("2", "model.heads", 2),
    "num_hidden_layers": ("5", "model.layers", 5),
    "dropout": ("0.25", "model.dropout", 0.25),
    "bf16": ("true", "train.mixed_precision", "bf16"),
    "fp16": ("true", "train.mixed_precision", "fp16"),
    "output_dir": ("there", "run.out", "there"),
    "out_dir": ("there", "run.out", "there"),
    "warmup_steps": ("9", "train.warmup_steps", 9),
    "weight_decay": ("0.01", "train.weight_decay", 0.01),
    "max_grad_norm": ("1.5", "train.grad_clip", 1.5),
    "gradient_clip_val": ("2.5", "train.grad_clip", 2.5),
    "optim": ("adamw_torch", "train.optimizer", "adamw"),
    "eval_steps": ("11", "train.eval_every", 11),
    "eval_interval": ("12", "train.eval_every", 12),
    "save_steps": ("13", "train.checkpoint_every", 13),
    "logging_steps": ("14", "train.log_every", 14),
    "gradient_checkpointing": ("true", "train.gradient_checkpointing", "full"),
    "max_new_tokens": ("15", "generate.tokens", 15),
    "n_predict": ("16", "generate.tokens", 16),
    "temp": ("0.5", "generate.temperature", 0.5),
    "top_k": ("17", "generate.top_k", 17),
    "top_p": ("0.75", "generate.top_p", 0.75),
}
# name -> value given, what the refusal must tell to write or to do
REFUSED = {
    "precision": ("bf16", "--mixed_precision bf16"),
    "warmup_ratio": ("0.1", r"--warmup_steps N"),
    "lr_scheduler_type": ("cosine", r"--schedule cosine, linear or constant, and --min_lr_ratio 0"),
    "save_total_limit": ("3", r"--keep_last N"),
    "resume_from_checkpoint": ("runs/a", r"plimsoll train FOLDER --resume"),
    "ctx_size": ("512", r"--sequence N"),
    "device": ("cuda", "only the CPU"),
    "compile": ("true", "kernels are compiled already"),
    "num_workers": ("4", "leave it out"),
    "dataset": ("shakespeare", r"--text FILE"),
    "report_to": ("wandb", r"metrics\.jsonl"),
}
# These are of generate: they are its options, or refused with what there is.
SAMPLING = ("min_p", "repeat_penalty")
SPELLINGS = (lambda name: "--" + name, lambda name: "--" + name.replace("_", "-"))


def tiny(extra=""):
    with open("tiny.yaml", "w") as file:
        file.write(TINY + extra)
    return "tiny.yaml"


def value_in(config, key, *words):
    section, name = key.split(".")
    return json.loads(run("config", config, "--json", *words)[0])[section][name]


def value_of(key, *words):
    return value_in("tiny.yaml", key, *words)


def test_options_of_others():
    tiny()
    for name, (given, key, wanted) in ACCEPTED.items():
        for spell in SPELLINGS:
            for words in ([spell(name), given], [f"{spell(name)}={given}"]):
                check(value_of(key, *words) == wanted, words, value_of(key, *words))


def test_options_that_are_refused():
    tiny()
    for name, (given, what) in REFUSED.items():
        for spell in SPELLINGS:
            refused(2, what, "train", "tiny.yaml", spell(name), given)
            refused(2, what, "train", "tiny.yaml", f"{spell(name)}={given}")


def test_words_of_precisions():
    """Lightning's and accelerate's, of a training; as the precision of a model in use they are refused with the key that they are of."""
    tiny()
    for word, wanted in (("bf16-mixed", "bf16"), ("16-mixed", "fp16"), ("32-true", "off"), ("no", "off")):
        check(value_of("train.mixed_precision", "--mixed_precision", word) == wanted, word)
    for word in ("bf16-mixed", "16-mixed"):
        refused(2, "--mixed_precision (bf|fp)16", "train", "tiny.yaml", "--precision", word)


def test_keys_of_others():
    """Outside of any section, and in the one where the key is."""
    for name, (given, key, wanted) in ACCEPTED.items():
        section, own = key.split(".")
        if section != "model":
            tiny(f"{section}:\n  {name}: {given}\n")
            check(value_of(key) == wanted, name, "in", section)
        if name != own or name in ("batch_size", "gradient_accumulation_steps"):
            with open("tiny.yaml", "w") as file:
                file.write("".join(line for line in TINY.splitlines(True) if f" {own}:" not in line) + f"{name}: {given}\n")
            check(value_of(key) == wanted, name, "outside of any section")


def test_keys_that_are_refused():
    for name, (given, what) in REFUSED.items():
        if name == "num_workers":  # a key of other trainings, which has no effect and says so
            continue
        refused(2, rf'tiny\.yaml:8:\d+: "{name}" is no key here: .*{what}', "train", tiny(f"{name}: {given}\n"))


def test_sampling_is_answered():
    tiny()
    for name in SAMPLING:
        for spell in SPELLINGS:
            try:
                run("config", "tiny.yaml", spell(name), "0.1")
            except Failed as failed:
                check("exit code 2" in str(failed) and "--temperature" in str(failed) or "--top_p" in str(failed), failed)


def test_what_is_so_anyway():
    plain = run("config", tiny(), "--json")[0]
    for words in (["--device", "cpu"], ["--compile=False"], ["--no-compile"], ["--bf16=false"], ["--bf16", "False"], ["--no-fp16"]):
        check(run("config", "tiny.yaml", "--json", *words)[0] == plain, words)
    check(run("config", tiny("device: cpu\ncompile: false\nbf16: false\nfp16: false\n"), "--json")[0] == plain, "in a file")
    check(value_of("train.mixed_precision", "--bf16") == "bf16", "the option alone")
    tiny("bf16: true\nfp16: false\n")
    check(value_of("train.mixed_precision") == "bf16", "one of two")
    refused(2, r"tiny.yaml:9:\d+: train.mixed_precision is here a second time, as \"fp16\"; the first, \"bf16\", is on line 8", "config",
            tiny("bf16: true\nfp16: true\n"))
    refused(2, r"--bf16 must be true or false, not \"maybe\"", "config", tiny(), "--bf16=maybe")


def test_one_vocabulary():
    """gpt's words are those of every arch; what they were called is taken, and is what JSON and runs say."""
    for old, new in (("encoder:\n  hidden_size: 64\n  num_heads: 4\n  num_layers: 1\n  precision: bfloat16\n",
                      "encoder:\n  width: 64\n  heads: 4\n  layers: 1\n  precision: bf16\n"),
                     ("vision_encoder:\n  vit_heads: 4\n  hidden_size: 64\n  num_heads: 4\n  num_layers: 3\nreasoning:\n  hidden_size: 64\n  num_heads: 4\n",
                      "vision_encoder:\n  vit_heads: 4\n  width: 64\n  heads: 4\n  layers: 3\nreasoning:\n  width: 64\n  heads: 4\n")):
        printed = []
        for text in (old, new):
            with open("words.yaml", "w") as file:
                file.write(text)
            printed.append(run("config", "words.yaml", "--json")[0])
            own = run("config", "words.yaml")[0]
            check("\n  width: 64\n" in own and "hidden_size" not in own and "bfloat16" not in own, own)
        check(printed[0] == printed[1] and '"hidden_size": 64' in printed[0], *printed)
    with open("encoder.yaml", "w") as file:
        file.write("model:\n  arch: capsules\n")
    for word in ("--width", "--hidden_size", "--hidden-size"):
        check(value_in("encoder.yaml", "encoder.hidden_size", word, "48", "--heads", "4") == 48, word)
    tiny()
    for word, wanted in (("float32", "float32"), ("f32", "float32"), ("bf16", "bfloat16"), ("bfloat16", "bfloat16"), ("fp16", "float16")):
        check(value_of("run.precision", "--precision", word) == wanted, word)
    for word, wanted in (("bfloat16", "bf16"), ("float16", "fp16"), ("f32", "off"), ("float32", "off")):
        check(value_of("train.mixed_precision", "--mixed_precision", word) == wanted, word)
    refused(2, r"--precision must be f32, bf16 or fp16, not \"half\"", "eval", "tiny.yaml", "--precision", "half")


def test_hints_hit():
    """What they led to before: a key that is then refused, another arch, another option."""
    tiny()
    for words, wrong in ((["--batch-size", "4"], "capsules"), (["--block_size", "8"], "batch_size"), (["--device", "cuda"], "simulation"),
                         (["--num_workers", "4"], "arch"), (["--count", "4"], "write \"arch")):
        err = run("train", "tiny.yaml", *words, code=2)[1]
        check(wrong not in err, words, err)
    refused(2, "--gradient_checkpointing needs a value: off, auto or full", "train", "tiny.yaml", "--gradient_checkpointing")
    check(value_of("train.learning_rate", "--set", "train.lr=0.5") == 0.5, "--set by another name")
    refused(2, r"--set: \"train.warmup_ratio\" is no key here: .*--warmup_steps N", "config", "tiny.yaml", "--set", "train.warmup_ratio=0.1")


if __name__ == "__main__":
    main({"names": [test_options_of_others, test_options_that_are_refused, test_words_of_precisions, test_keys_of_others, test_keys_that_are_refused,
                    test_sampling_is_answered, test_what_is_so_anyway, test_one_vocabulary, test_hints_hit]})

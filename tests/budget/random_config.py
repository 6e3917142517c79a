"""A random configuration of `plimsoll train`: small enough for a fraction of a second, as different as possible."""

import math

# What the search may take, and where: in the order of the bytes that it frees.
LEAVE = {"optimizer_bf16": ("train.optimizer_state", "bf16"), "optimizer_8bit": ("train.optimizer_state", "8bit"),
         "fp16": ("train.mixed_precision", "fp16"), "bf16": ("train.mixed_precision", "bf16")}
THREADS = (1, 1, 2, 2, 3, 4, 5, 8, 16, 24, 32, 48, 63, 64)


def set_key(key, value):
    return ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]


def draw_gpt(rng, keys):
    heads = rng.choice((1, 1, 2, 3, 4, 8))
    keys["model.heads"] = heads
    keys["model.width"] = heads * rng.choice([d for d in (2, 4, 8, 12, 16, 20, 32, 64) if heads * d <= 128])
    keys["model.feed_forward"] = rng.choice(("auto", "auto", rng.randint(1, 256)))
    keys["model.norm"] = rng.choice(("layer_norm", "rms_norm"))
    keys["model.attention_bias"] = rng.random() < 0.3


def draw_mlp(rng, keys):
    keys["model.width"] = rng.randint(1, 128)
    keys["model.window"] = rng.randint(1, 16)


def draw_model(rng, keys):
    keys["model.arch"] = rng.choice(("gpt", "gpt", "mlp"))
    (draw_gpt if keys["model.arch"] == "gpt" else draw_mlp)(rng, keys)
    keys["model.layers"] = rng.choice((1, 1, 2, 2, 3, 4, 6, 12))
    keys["model.activation"] = rng.choice(("gelu", "silu", "relu", "tanh"))
    keys["model.bias"] = rng.random() < 0.7
    keys["model.tie_embeddings"] = rng.random() < 0.6
    keys["model.dropout"] = rng.choice((0, 0, 0.1, 0.5))


def draw_batch(rng, keys, threads):
    tokens_max = 4096 if threads <= 4 else 512  # more threads than cores are slow, and the sums are the same
    sequence = rng.choice((2, 5, 8, 16, 32, 33, 64, 100, 128))
    batch = rng.randint(1, max(1, min(24, tokens_max // sequence)))
    keys["model.sequence"], keys["train.batch_size"] = sequence, batch
    if "model.window" in keys:
        keys["model.window"] = min(keys["model.window"], sequence)
    divisors = [m for m in range(1, batch + 1) if batch % m == 0]
    keys["train.micro_batch"] = rng.choice(divisors) if rng.random() < 0.9 or batch > 4 else "auto"


def draw_data(rng, keys, bench):
    size = int(math.exp(rng.uniform(math.log(20_000), math.log(300_000))))
    keys["data.text"] = bench.text(size, rng.randint(1, 10**6))
    keys["data.tokenizer"] = rng.choice(("bytes", "chars", "bpe"))
    if keys["data.tokenizer"] == "bpe":
        keys["data.vocab_size"] = rng.randint(257, 500)
    keys["data.validation_fraction"] = rng.choice((0, 0.1, 0.2))


def draw_train(rng, keys):
    evaluates = keys["data.validation_fraction"] > 0
    steps = keys["train.steps"] = rng.randint(3, 5)
    keys["train.grad_clip"] = rng.choice((0, 0, 1, 0.01))
    keys["train.mixed_precision"] = rng.choice(("off", "off", "bf16", "fp16"))
    keys["train.schedule"] = rng.choice(("cosine", "linear", "constant", "plateau" if evaluates else "cosine"))
    keys["train.seed"] = rng.randint(0, 10**6)
    keys["train.optimizer_state"] = rng.choice(("f32", "f32", "bf16", "8bit"))
    if evaluates:  # else a key that nothing would read is refused
        keys["train.eval_every"] = rng.choice((1, 2, steps))
        keys["train.eval_batches"] = rng.randint(1, 2)
        keys["train.keep_best"] = rng.random() < 0.5
    keys["train.checkpoint_every"] = rng.choice((1, 2, steps))
    keys["train.keep_last"] = rng.randint(1, 3)
    keys["train.tensorboard"] = rng.random() < 0.5
    keys["train.sample_every"] = rng.choice((0, 0, 2, steps))


def draw_leave(rng, keys):
    """Half of the configurations leave a key or two to the search, and say what it may take for them."""
    words = [word for word in LEAVE if rng.random() < 0.5]
    if not words or rng.random() < 0.5:
        return
    for word in words:
        keys[LEAVE[word][0]] = "auto"
    keys["fit.allow"] = ",".join(words)


def looks_at_gradients(keys):
    """Clipping, and fp16's check for overflow, look at the whole gradient before the first weight changes: refused with
    layer_major and with updates in the backward pass."""
    return keys["train.grad_clip"] or keys["train.mixed_precision"] == "fp16"


def updates_early(keys):
    return keys.get("train.layer_major") or keys.get("train.update_in_backward") == "on"


def all_taken(keys):
    """The keys as they are when the search takes all that it may, and that these keys allow."""
    taken = dict(keys)
    for word in LEAVE:
        key, value = LEAVE[word]
        if word in keys.get("fit.allow", "").split(",") and not (updates_early(keys) and looks_at_gradients({**taken, key: value})):
            taken[key] = value
    return taken


def draw_memory(rng, keys):
    keys["train.gradient_checkpointing"] = rng.choice(("off", "auto", "auto", "full"))
    keys["train.feed_forward_rows"] = rng.choice((0, 0, "auto", rng.randint(1, keys["model.sequence"] * keys["train.batch_size"])))


def draw_order(rng, keys):
    if looks_at_gradients(keys):
        return
    keys["train.layer_major"] = rng.choice((0, 0, 1, 2, 3))
    keys["train.layer_major_keep"] = rng.choice((0, 1, 2))
    if keys["train.micro_batch"] == keys["train.batch_size"] or keys["train.layer_major"]:
        keys["train.update_in_backward"] = rng.choice(("auto", "on", "off"))


def draw_generate(rng, keys):
    keys["generate.tokens"] = rng.randint(1, 24)
    keys["generate.temperature"] = rng.choice((0, 0.8, 1))
    keys["generate.top_k"] = rng.choice((0, 1, 40))
    keys["generate.prompt"] = rng.choice(("", "", "a", "to be or not "))


def draw(rng, bench):
    """Keys and values, in the order in which they are set."""
    keys = {}
    threads = keys["run.threads"] = rng.choice((*THREADS, rng.randint(1, 64)))
    draw_model(rng, keys)
    if threads > 8:
        keys["model.layers"] = min(3, keys["model.layers"])
    draw_batch(rng, keys, threads)
    draw_data(rng, keys, bench)
    draw_train(rng, keys)
    draw_leave(rng, keys)
    draw_memory(rng, keys)
    draw_order(rng, keys)
    draw_generate(rng, keys)
    keys["memory.huge_pages"] = rng.choice(("auto", "auto", "off"))
    keys["memory.thread_stack"] = rng.choice(("256KiB", "256KiB", "512KiB", "2MiB"))
    keys["run.isa"] = rng.choice(("auto", "auto", "auto", "avx2", "baseline"))
    return keys


def draw_with_budget(rng, bench, threads_max):
    """Half of them with a budget between the smallest plan and the one without any."""
    keys = draw(rng, bench)
    keys["run.threads"], keys["run.out"] = min(keys["run.threads"], threads_max), bench.out()
    if rng.random() < 0.5:
        return keys
    if not keys.get("train.layer_major"):
        keys["train.update_in_backward"] = "auto"  # on would need one micro-batch
    free = dict(keys, **{"train.micro_batch": keys["train.batch_size"]})
    least = dict(all_taken(keys), **{"train.micro_batch": 1, "memory.huge_pages": "off"})
    most, floor = (bench.plan(options_of(k))["process"]["charged_bytes"] for k in (free, least))
    keys["train.micro_batch"], keys["memory.budget"] = "auto", int(floor + (most - floor) * rng.random()) + (128 << 10)
    return keys


def options_of(keys):
    """Of train, which refuses those of generate when it writes no samples."""
    reads = lambda key: keys.get("train.sample_every") or not key.startswith("generate.")
    return [word for key, value in keys.items() if reads(key) for word in set_key(key, value)]

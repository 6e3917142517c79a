"""Tests of the frozen tower of arch hybrid: weights of a file under CLIP's names, storage in 16 bits, layers that are trained after all,
features that are kept. Files are written and read by plain Python. Called as cli_tests.py is."""
import json
import math
import os
import random
import re
import shutil
import signal
import struct

from cli_tests import SEED, await_event, check, environment, finish, last_checkpoint, main, metrics, read, refused, run, start
from encode_oracle import write_weights
from hybrid_tests import header, write_hybrid
from rollout_oracle import load_weights
from tower_oracle import Tower

DRAW = random.Random(SEED)
LAYERS, WIDTH = 2, 16
TOWER = {"vision_encoder": {"pretrained_layers": LAYERS, "dropout": 0}, "latent_planning": {"path_dropout": 0},
         "train": {"steps": 2, "checkpoint_every": 1, "keep_last": 3, "log_every": 1}}


def sections(**more):
    return {name: {**TOWER.get(name, {}), **more.get(name, {})} for name in {**TOWER, **more}}


def names():
    """name → shape of CLIP's vision tower at the tests' size, as Hugging Face has it."""
    found = {"embeddings.class_embedding": [WIDTH], "embeddings.patch_embedding.weight": [WIDTH, 3, 16, 16], "embeddings.position_embedding.weight": [17, WIDTH],
             "pre_layrnorm.weight": [WIDTH], "pre_layrnorm.bias": [WIDTH]}
    for i in range(LAYERS):
        for part, out, into in [(f"self_attn.{p}_proj", WIDTH, WIDTH) for p in ("q", "k", "v", "out")] + [("mlp.fc1", 4 * WIDTH, WIDTH), ("mlp.fc2", WIDTH, 4 * WIDTH)]:
            found[f"encoder.layers.{i}.{part}.weight"], found[f"encoder.layers.{i}.{part}.bias"] = [out, into], [out]
        for norm in ("layer_norm1", "layer_norm2"):
            found[f"encoder.layers.{i}.{norm}.weight"] = found[f"encoder.layers.{i}.{norm}.bias"] = [WIDTH]
    return found


def draw_tower(dtypes=("F32",), before=""):
    """Random weights, in a random order; 1 more or less where a norm multiplies."""
    made = {}
    for name, shape in sorted(names().items(), key=lambda _: DRAW.random()):
        size = math.prod(shape)
        center, scale = ("norm" in name and name.endswith("weight")), 0.3 / math.sqrt(size / shape[0])
        made[f"{before}vision_model.{name}"] = (DRAW.choice(dtypes), shape, [DRAW.gauss(center, scale) for _ in range(size)])
    return made


def tower_file(path, dtypes=("F32",), before="", change=None):
    made = draw_tower(dtypes, before)
    if change:
        change(made)
    write_weights(path, made)
    return path


def bf16(numbers):
    """Rounded to the nearest, ties to even: the upper half of an f32."""
    bits = struct.unpack(f"<{len(numbers)}I", struct.pack(f"<{len(numbers)}f", *numbers))
    return list(struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}I", *((b + 0x7fff + (b >> 16 & 1)) >> 16 << 16 for b in bits))))


def f16(numbers):
    return list(struct.unpack(f"<{len(numbers)}e", struct.pack(f"<{len(numbers)}e", *numbers)))


def of_tower(path, before="clip."):
    return {name[len(before):]: tensor for name, tensor in load_weights(path).items() if name.startswith(before + "vision_model.")}


def train(config, out):
    """Anew."""
    shutil.rmtree(out, ignore_errors=True)
    run("train", config, "--quiet")


def test_weights_of_a_file():
    """They are in the model as they are in the file, whatever type and prefix they have there and what else is in it, and stay so."""
    def whole_model(made):
        before = next(iter(made)).split("vision_model.")[0]
        made[f"{before}vision_model.post_layernorm.weight"] = ("F32", [WIDTH], [math.nan] * WIDTH)
        made[f"{before}vision_model.embeddings.position_ids"] = ("I64", [1, 17], list(range(17)))
        made["text_model.encoder.layers.0.mlp.fc1.weight"] = ("F16", [2, 3], [1] * 6)
        made["logit_scale"] = ("F32", [], [4.6])
    for dtypes, before, change, unread in ((("F32",), "", None, 0), (("F32", "F16", "BF16"), "", whole_model, 4), (("F16",), "clip.", whole_model, 4)):
        tower_file("clip.safetensors", dtypes, before, change)
        config = write_hybrid(out="out", **sections(vision_encoder={"pretrained_weights": "clip.safetensors"}))
        out, err = run("plan", config)
        said = f"frozen tower is that of clip.safetensors: {len(names())} tensors" + (f" ({unread} more are of other parts and not used)" if unread else "")
        check(said in " ".join((out + err).split()), err)
        train(config, "out")
        given = {name[len(before):]: tensor for name, tensor in read_tower("clip.safetensors", before).items()}
        for step in (1, 2):
            check(of_tower(f"out/checkpoints/step-0000000{step}/model.safetensors") == given, dtypes, "other weights in step", step)
    run("eval", "out")


def write_shards(folder, made, count):
    """As Hugging Face's libraries write several files."""
    os.makedirs(folder)
    names = [f"model-{k + 1:05}-of-{count:05}.safetensors" for k in range(count)]
    for k, name in enumerate(names):
        write_weights(f"{folder}/{name}", dict(list(made.items())[k::count]))
    with open(f"{folder}/model.safetensors.index.json", "w") as file:
        json.dump({"metadata": {"total_size": 1}, "weight_map": {name: names[i % count] for i, name in enumerate(made)}}, file)
    return [f"{folder}/{name}" for name in names]


def test_folders():
    """A folder as it is downloaded, with one file or several, and its name on the hub give the bits of the file."""
    made = draw_tower(("F32", "F16", "BF16"))
    made["text_model.encoder.layers.0.mlp.fc1.weight"] = ("F16", [2, 3], [1] * 6)
    write_weights("clip.safetensors", made)
    os.makedirs("one"), shutil.copy("clip.safetensors", "one/model.safetensors")
    write_shards("several", made, 3)
    snapshot = "hub/models--org--clip-tiny/snapshots/12ab"
    os.makedirs("hub/models--org--clip-tiny/refs"), shutil.copytree("several", snapshot)
    with open("hub/models--org--clip-tiny/refs/main", "w") as file:
        file.write("12ab")
    env = environment(HF_HUB_CACHE=os.path.abspath("hub"))
    for path, said in (("clip.safetensors", "clip.safetensors"), ("one", "one/model.safetensors"), ("several", "several/model.safetensors.index.json"),
                       ("several/model.safetensors.index.json", "several/model.safetensors.index.json"), ("org/clip-tiny", "12ab/model.safetensors.index")):
        config = write_hybrid(out="out", **sections(vision_encoder={"pretrained_weights": path}))
        shutil.rmtree("out", ignore_errors=True)
        out, err = run("plan", config, env=env)
        out = " ".join((out + err).split())
        check(said in out and f": {len(names())} tensors (1 more are of other parts" in out, path, out)
        _, err = run("train", config, env=env)
        check("As planned, to the byte." in err, path, err[-500:])
        got = metrics("out"), [read(f"out/checkpoints/step-0000000{step}/model.safetensors") for step in (1, 2)]
        first = got if path == "clip.safetensors" else first
        check(got == first, path, "gives another run")
    run("train", write_hybrid(out="out", **sections(vision_encoder={"pretrained_weights": "several"}, train={"steps": 3})), "--resume", "--quiet")
    # the run contains its tower: the folder may be gone, or empty
    os.remove("several/model-00002-of-00003.safetensors")
    more = lambda steps: write_hybrid(out="out", **sections(vision_encoder={"pretrained_weights": "several"}, train={"steps": steps}))
    run("train", more(4), "--resume", "--quiet")
    shutil.rmtree("several"), os.makedirs("several")
    run("train", more(5), "--resume", "--quiet")
    run("eval", more(5), "--json")
    # a folder is refused as its file is: where weights are not read, and with other words for them
    for path in (last_checkpoint("out"), last_checkpoint("out") + "/model.safetensors"):
        refused(2, "--set run.weights: this command does not read run.weights", "train", config, "--set", f"run.weights={path}")
        refused(2, "--weights: this command does not read run.weights", "train", config, "--weights", path)
    # a model of one's own in its folder
    words = ["eval", "out", "--json", "--weights"]
    folder = last_checkpoint("out")
    check(run(*words, folder)[0] == run(*words, f"{folder}/model.safetensors")[0], "another evaluation")


def test_bad_folders():
    made, q = draw_tower(), "vision_model.encoder.layers.1.self_attn.q_proj.weight"
    def config(path):
        return write_hybrid(out="new", **sections(vision_encoder={"pretrained_weights": path}))
    def bad(words, code=4):
        for command in ("plan", "train"):
            refused(code, words, command, config("clip"), env=environment(HF_HUB_CACHE=os.path.abspath("hub")))
    os.makedirs("clip")
    bad("clip: has neither model.safetensors nor model.safetensors.index.json")
    with open("clip/pytorch_model.bin", "w") as file:
        file.write("x")
    bad(r"clip: has its weights as pytorch_model.bin only; .* transformers.AutoModel.from_pretrained\(FOLDER\)", code=1)
    shutil.rmtree("clip")
    bad("clip: there is no such file or folder, and no download of a model of that name was found; fetch its model.safetensors .* into a folder")
    files = write_shards("clip", made, 3)
    os.rename(files[1], "away")
    bad("model-00002-of-00003.safetensors: cannot be opened")
    shutil.copy(files[0], files[1])
    bad('model.safetensors.index.json: tensor "vision_model.[a-z0-9_.]*" is in two of its files')
    os.remove(files[1]), os.rename("away", files[1])
    run("plan", config("clip"))
    # a shard that another takes the place of
    holder = next(k for k in range(3) if q in list(made)[k::3])
    part = dict(list(made.items())[holder::3])
    part[q] = ("F32", [WIDTH, WIDTH], [math.nan] + part[q][2][1:])
    write_weights(files[holder], part)
    bad(f'{os.path.basename(files[holder])}: tensor "{q}", number 0 is nan')
    part.pop(q)
    write_weights(files[holder], part)
    bad(f'model.safetensors.index.json: tensor "{q}" is not in {os.path.basename(files[holder])}')
    check(not os.path.exists("new/checkpoints"), "began a run")


def read_tower(path, before):
    """Those of the names that the model takes; the rest need not be of real numbers."""
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    table = {name: entry for name, entry in json.loads(data[8:8 + size]).items() if name[len(before) + len("vision_model."):] in names() and name.startswith(before)}
    with open("mine.safetensors", "wb") as file:
        text = json.dumps(table).encode()
        file.write(struct.pack("<Q", len(text)) + text + data[8 + size:])
    return load_weights("mine.safetensors")


def test_a_seeded_tower_again():
    """A run's own checkpoint is such a file: its tower, and nothing else of it, begins another run."""
    run("train", write_hybrid(out="first", **sections()), "--quiet")
    first = f"{last_checkpoint('first')}/model.safetensors"
    run("train", write_hybrid(out="second", **sections(vision_encoder={"pretrained_weights": first}, train={"seed": SEED % 1000 + 1})), "--quiet")
    second = f"{last_checkpoint('second')}/model.safetensors"
    check(of_tower(first) == of_tower(second), "another tower")
    check(header(first)["vit.layernorm.bias"] != header(second)["vit.layernorm.bias"], "the seed is the same")


def test_stored_in_16_bits():
    """Matrices are rounded once, vectors are not; a tower whose numbers have so few digits gives the same bits in either storage."""
    rounded = {"bf16": (bf16, "BF16"), "fp16": (f16, "F16")}
    for word, (narrow, dtype) in rounded.items():
        def digits(made, narrow=narrow):
            for name, (was, shape, numbers) in made.items():
                made[name] = was, shape, narrow(numbers)
        for change in (None, digits) if word == "bf16" else (None,):
            tower_file("clip.safetensors", change=change)
            given = of_tower("clip.safetensors", "")
            for out, precision in (("wide", "f32"), (word, word)):
                config = write_hybrid(out=out, **sections(vision_encoder={"pretrained_weights": "clip.safetensors", "pretrained_precision": precision}))
                train(config, out)
            stored = of_tower(f"{last_checkpoint(word)}/model.safetensors")
            for name, (shape, numbers) in stored.items():
                check(numbers == (narrow(given[name][1]) if len(shape) > 1 else given[name][1]), word, name)
            kinds = {name: entry["dtype"] for name, entry in table(f"{last_checkpoint(word)}/model.safetensors").items()}
            check({kinds["clip." + name] for name, (shape, _) in stored.items() if len(shape) > 1} == {dtype}, kinds)
            check(all(kind == "F32" for name, kind in kinds.items() if not name.startswith("clip.")), kinds)
            same = metrics("wide") == metrics(word)
            check(same == (change is not None), word, "the same loss" if same else "another loss", change)
    run("eval", "fp16")


def test_taken_by_leave():
    """Where a budget asks for it, fit.allow says so and the key is auto; the run keeps what was taken."""
    keys = {"vision_encoder": {"hidden_size": 96}, "memory": {"huge_pages": "off"},
            "train": {"micro_batch": 1, "gradient_checkpointing": "full", "update_in_backward": "off", "optimizer_state": "f32", "mixed_precision": "off"}}
    config = write_hybrid(out="new", **sections(**keys))
    wide, narrow = (json.loads(run("plan", config, "--json", "--set", f"vision_encoder.pretrained_precision={word}")[0])["process"]["charged_bytes"]
                    for word in ("f32", "bf16"))
    matrices = 2 * (96 * 3 * 256 + 17 * 96 + LAYERS * 12 * 96 * 96)  # bytes that 16 bits spare
    check(0.5 * matrices < wide - narrow < matrices + 8192, wide, narrow, matrices)  # the heap has its steps
    budget = f"{wide - 60000}B"
    refused(3, "the smallest plan needs", "plan", config, "--budget", budget)
    config = write_hybrid(out="out", **sections(**keys, fit={"allow": ["frozen_bf16"]}))
    run("train", config, "--budget", budget, "--quiet")
    kinds = table(f"{last_checkpoint('out')}/model.safetensors")
    check(kinds["clip.vision_model.encoder.layers.0.mlp.fc1.weight"]["dtype"] == "BF16" and kinds["vit.encoder.layer.0.intermediate.dense.weight"]["dtype"] == "F32", kinds)
    check("pretrained_precision: bf16" in json.loads(read(f"{last_checkpoint('out')}/run.json"))["config"], "not kept")
    run("eval", "out")


def table(path):
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    return {name: entry for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def test_layers_are_thawed():
    """The last layers, and nothing before them, are trained: they have gradients and moments, and change."""
    tower_file("clip.safetensors")
    for count in range(LAYERS + 1):
        config = write_hybrid(out=f"t{count}", **sections(vision_encoder={"pretrained_weights": "clip.safetensors", "unfreeze_pretrained_layers": count}))
        run("train", config, "--quiet")
        first, last = (header(f"t{count}/checkpoints/step-0000000{step}/model.safetensors") for step in (1, 2))
        thawed = {name for name in first if (found := re.match(r"clip\..*layers\.(\d+)\.", name)) and int(found[1]) >= LAYERS - count}
        changed = {name for name in first if first[name] != last[name] and name.startswith("clip.")}
        check(len(thawed) == 16 * count and changed == thawed, count, sorted(changed ^ thawed))
        state = table(f"t{count}/checkpoints/step-00000002/state.safetensors")
        check({name.split(".", 1)[1] for name in state if "clip." in name} == thawed, count, "moments of other weights", sorted(state)[:5])
    check(metrics("t0")[0]["loss"] == metrics("t2")[0]["loss"] and metrics("t0")[-1] != metrics("t2")[-1], "the first loss is that of the same model")
    refused(2, r"unfreeze_pretrained_layers 3 is more than the 2 layers", "plan", write_hybrid(**sections(vision_encoder={"unfreeze_pretrained_layers": 3})))
    refused(2, r"unfreeze_pretrained_layers", "train", write_hybrid(out="t1", **sections(vision_encoder={"pretrained_weights": "clip.safetensors"}, train={"steps": 3})), "--resume")


def test_goes_on_with_its_tower():
    tower_file("clip.safetensors"), tower_file("other.safetensors")
    def config(path, steps):
        return write_hybrid(**sections(vision_encoder={"pretrained_weights": path}, train={"steps": steps}))
    run("train", config("clip.safetensors", 2), "--quiet")
    refused(2, "another frozen tower", "train", config("other.safetensors", 3), "--resume")
    os.rename("clip.safetensors", "moved.safetensors")
    run("train", config("moved.safetensors", 3), "--resume", "--quiet")
    refused(2, "train.init_from brings the frozen tower", "plan", write_hybrid(out="new", **sections(vision_encoder={"pretrained_weights": "moved.safetensors"}, train={"init_from": "out"})))
    os.remove("moved.safetensors")
    run("eval", "out")
    before = of_tower(f"{last_checkpoint('out')}/model.safetensors", "clip.")
    out, _ = run("plan", config("moved.safetensors", 4))
    check("the frozen tower is the run's own" in out.replace("\n", " "), out[:500])
    refused(5, "go on with --resume", "train", config("moved.safetensors", 4))
    run("train", config("moved.safetensors", 4), "--resume", "--quiet")
    check(last_checkpoint("out").endswith("00000004") and of_tower(f"{last_checkpoint('out')}/model.safetensors", "clip.") == before, "another tower")
    refused(4, "moved.safetensors", "train", write_hybrid("anew.yaml", out="anew", **sections(vision_encoder={"pretrained_weights": "moved.safetensors"})))
    tower_file("moved.safetensors", change=lambda made: made["vision_model.pre_layrnorm.bias"][2].__setitem__(0, 0.5))
    run("train", write_hybrid("whole.yaml", out="whole", **sections(vision_encoder={"pretrained_weights": "moved.safetensors"}, train={"steps": 4})), "--quiet")
    refused(2, "another frozen tower", "train", config("moved.safetensors", 5), "--resume")


def test_bad_files():
    q = "vision_model.encoder.layers.1.self_attn.q_proj.weight"
    def patches(made):
        made["vision_model.embeddings.patch_embedding.weight"] = ("F32", [WIDTH, 3, 32, 32], [0.1] * (WIDTH * 3 * 32 * 32))
    def not_finite(made):
        made[q][2][7] = math.nan
    def large(made):
        made[q][2][3] = 1e6
    def text_only(made):
        made.clear()
        made["text_model.final_layer_norm.bias"] = ("F32", [2], [0, 0])
    changes = [(patches, {}, r'patch_embedding.weight" is F32 \[16, 3, 32, 32\] there, but the model takes F32 \[16, 3, 16, 16\]'),
               (lambda made: made.pop(q), {}, f'has no tensor "{q}"; the model takes F32 \\[16, 16\\]'),
               (lambda made: made.update({"vision_model.encoder.layers.2.mlp.fc1.bias": ("F32", [64], [0] * 64)}), {}, "layers.2.mlp.fc1.bias\", which the model has not got"),
               (lambda made: made.update({q: ("I64", [16, 16], [0] * 256)}), {}, "q_proj.weight\" is I64 there; F32, BF16 or F16 was expected"),
               (not_finite, {}, 'q_proj.weight", number 7 is nan'), (large, {"pretrained_precision": "fp16"}, "number 3 is 1e\\+06; a finite one of at most 65504"),
               (text_only, {}, 'has no tensor whose name begins with "vision_model."')]
    for change, keys, words in changes:
        tower_file("bad.safetensors", change=change)
        for command in ("plan", "train"):
            refused(4, "bad.safetensors: .*" + words, command, write_hybrid(out="new", **sections(vision_encoder={"pretrained_weights": "bad.safetensors", **keys})))
    # where a search may take fp16, what is too large for it alone is no mistake
    tower_file("large.safetensors", change=large)
    allowed = sections(vision_encoder={"pretrained_weights": "large.safetensors"}, fit={"allow": ["frozen_fp16"]})
    out, _ = run("plan", write_hybrid(out="new", **json.loads(json.dumps(allowed))))
    check("some are too large for fp16, which is not tried" in out.replace("\n", " "), out[:600])
    allowed["fit"]["allow"].append("frozen_bf16")
    tight = int(json.loads(run("plan", write_hybrid(out="new", **json.loads(json.dumps(allowed))), "--json", "--set", "vision_encoder.pretrained_precision=bf16")[0])["process"]["charged_bytes"])
    plan = json.loads(run("plan", write_hybrid(out="new", **json.loads(json.dumps(allowed))), "--json", "--budget", str(tight))[0])
    check(plan["process"]["charged_bytes"] <= tight, "bf16 may still be taken")
    tower_file("bad.safetensors")
    data = read("bad.safetensors")
    for size in (0, 7, 100, len(data) - 1):
        with open("bad.safetensors", "wb") as file:
            file.write(data[:size])
        refused(4, "bad.safetensors", "plan", write_hybrid(out="new", **sections(vision_encoder={"pretrained_weights": "bad.safetensors"})))
    refused(4, "none.safetensors", "plan", write_hybrid(out="new", **sections(vision_encoder={"pretrained_weights": "none.safetensors"})))
    check(not os.path.exists("new/checkpoints"), "began a run")


def test_another_program_makes_the_same_features():
    """What the tower makes of the pages of a batch, against the formulas in plain Python."""
    tower_file("clip.safetensors")
    config = write_hybrid(**sections(vision_encoder={"pretrained_weights": "clip.safetensors", "features_cache": "1MB"}, train={"batch_size": 2}))
    run("train", config, "--quiet")
    run("verify", "--gradients", "g.safetensors", "out")
    data, entries = read("g.safetensors"), table("g.safetensors")
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    pages, made = (data[begin + entries[f"train.{name}"]["data_offsets"][0]:begin + entries[f"train.{name}"]["data_offsets"][1]] for name in ("pages", "features"))
    weights = {name.removeprefix("vision_model."): tensor for name, tensor in of_tower("clip.safetensors", "").items()}
    tower = Tower(weights, 2, LAYERS)
    for i in range(2):
        page = [pages[i * 4096 + r * 64:i * 4096 + (r + 1) * 64] for r in range(64)]
        got = struct.unpack(f"<{16 * WIDTH}f", made[i * 64 * WIDTH:(i + 1) * 64 * WIDTH])
        want = [v for row in tower.features(page) for v in row]
        apart, size = math.dist(got, want), math.hypot(*want)
        check(apart < 2e-6 * size and size > 1, i, apart / size)


def run_of(out, cache, **keys):
    config = write_hybrid(out=out, **sections(vision_encoder={"pretrained_weights": "clip.safetensors", "features_cache": cache},
                                              train={"steps": 14, "eval_every": 7, "checkpoint_every": 7, "schedule": "constant", "warmup_steps": 0, **keys}))
    return config


def test_features_are_kept():
    """The same bits without a cache, with one for all pages, with one for some, however the batch is cut and in 16 bits; killed and gone on, too."""
    tower_file("clip.safetensors")
    seen = []
    for keys, cases in (({}, [("all", "1MB", ["--micro_batch", "6"]), ("some", 20000, ["--micro_batch", "4"])]),
                        ({"mixed_precision": "bf16"}, [("ones", "1MB", ["--micro_batch", "1"])])):
        shutil.rmtree("none", ignore_errors=True)
        run("train", run_of("none", 0, **keys), "--quiet")
        seen.append(metrics("none"))
        for out, cache, words in cases:
            _, err = run("train", run_of(out, cache, **keys), *words)
            check("As planned, to the byte." in err, err[-500:])
            check(metrics(out) == metrics("none"), out, keys)
            check(read(f"{last_checkpoint(out)}/model.safetensors") == read(f"{last_checkpoint('none')}/model.safetensors"), out, keys)
            check(os.path.getsize(f"{out}/features.cache") <= (10 ** 6 if cache == "1MB" else 20000), "larger than allowed")
    check(seen[0] != seen[1], "16 bits give the numbers of 32")
    out, _ = run("eval", "all")
    check(f"{min(m['validation_loss'] for m in metrics('all') if 'validation_loss' in m):.5f}" in out, out)
    places = known("some/features.cache")
    check(0 < len(places) < 60 and all(places) and len(known("all/features.cache")) == 60 and all(known("all/features.cache")), places)
    out, err = run("plan", run_of("new", 20000))
    for words in (f"features of pages 0 to {len(places) - 1} are kept", "features of pages", "does not make it again: it takes"):
        check(words in " ".join((out + err).split()), words, out, err)
    config = run_of("killed", "1MB", steps=40, log_every=1)
    process = start("train", config, "--resume=auto")
    await_event(process, "step", 12)
    process.send_signal(signal.SIGKILL)
    finish(process)
    run("train", config, "--resume=auto", "--quiet")
    run("train", run_of("alive", 0, steps=40, log_every=1), "--quiet")
    check(metrics("killed") == metrics("alive"), "another run after a kill")


def test_features_that_are_not_finite():
    """Weights that are numbers, but make none: a sentence about the tower, kept or not, and nothing is saved."""
    tower_file("clip.safetensors", change=lambda made: made.update({"vision_model.pre_layrnorm.weight": ("F32", [WIDTH], [3e38] * WIDTH)}))
    refused(4, r"what the frozen tower makes of page \d+ is not finite; give vision_encoder.pretrained_weights other weights", "train", run_of("kept", "1MB"))
    refused(1, r"the loss is not finite at step 1, before any update: the weights that it begins with are too large", "train", run_of("not", 0))
    check(not any(known("kept/features.cache")) and not os.listdir("kept/checkpoints"), "something was kept")


def known(path):
    """Which places of a file of features have something in them."""
    data = read(path)
    count = struct.unpack("<8sQQQ", data[:32])[2]
    return [value != 0 for value in struct.unpack(f"<{count}Q", data[64:64 + 8 * count])]


def test_damaged_features():
    """What is damaged is made again, and said; what is of another tower, too; what is no such file is left alone."""
    tower_file("clip.safetensors")
    run("train", run_of("none", 0, steps=30), "--quiet")
    run("train", run_of("out", "1MB"), "--quiet")
    whole = read("out/features.cache")
    shutil.copytree("out", "saved")
    def go_on():
        _, err = run("train", run_of("out", "1MB", steps=30), "--resume")
        check(metrics("out") == metrics("none") and read("out/features.cache") == whole, "other numbers")
        shutil.rmtree("out")
        shutil.copytree("saved", "out")
        return " ".join(err.split())
    def write(at, bytes_):
        with open("out/features.cache", "r+b") as file:
            file.seek(at)
            file.write(bytes_)
    check("features" not in go_on(), "a warning where nothing is wrong")
    at = len(whole) - DRAW.randrange(1, 50 * 64 * WIDTH)
    write(at, bytes([whole[at] ^ 1 << DRAW.randrange(8)]))
    check(re.search(r"features.cache: the features of 1 page are no longer as they were written, and are made again", go_on()), "not said")
    write(24, b"\xff")
    check("features.cache: holds features of another tower or of other pages, or is damaged; they are made anew" in go_on(), "not said")
    os.truncate("out/features.cache", len(whole) // 2)
    check("they are made anew" in go_on(), "not said")
    with open("out/features.cache", "w") as file:
        file.write("mine")
    refused(2, "features.cache: is no file of features; move it away", "train", run_of("out", "1MB", steps=30), "--resume")
    check(read("out/features.cache") == b"mine", "written over")
    refused(2, "vision_encoder.features_cache 4.00 kB is too small for the features of one page, which take 5.12 kB", "plan", run_of("new", "4KB"))
    refused(2, "features_cache keeps what a frozen tower makes", "plan",
            write_hybrid(out="new", **sections(vision_encoder={"features_cache": "1MB", "unfreeze_pretrained_layers": 1})))


GROUPS = {"features": [test_another_program_makes_the_same_features, test_features_are_kept, test_features_that_are_not_finite, test_damaged_features],
          "tower": [test_weights_of_a_file, test_folders, test_bad_folders, test_a_seeded_tower_again, test_stored_in_16_bits, test_taken_by_leave, test_layers_are_thawed, test_goes_on_with_its_tower, test_bad_files]}

if __name__ == "__main__":
    main(GROUPS)

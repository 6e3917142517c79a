"""What five write-ups of other programs have as configuration, as it stands there (sources/NUMBER_NAME.yaml): each runs, or is refused
with the line to write. Models are small where options can say so: what is tried is that the words mean what they should.
Called as cli_tests.py is."""
import json
import os
import re

from cli_tests import check, main, needed, refused, run

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources")
CLOUDS = ["--count", "8", "--frame_width", "64", "--set", "swath_slice=[0,48]", "--set", "channels=[8,16,32]", "--set", "dense=[32,16]"]
PAGES = [word for key, value in (("vision_encoder.image_size", 64), ("vision_encoder.hidden_size", 64), ("vision_encoder.num_heads", 4),
                                 ("vision_encoder.vit_heads", 4), ("vision_encoder.pretrained_layers", 1), ("vision_encoder.vit_layers", 1),
                                 ("vision_encoder.adapter_layers", 1), ("reasoning.hidden_size", 64), ("reasoning.num_heads", 4),
                                 ("reading.words", 64), ("reading.pages", 3000)) for word in ("--set", f"{key}={value}")]
ROLLOUTS = ["--set", "parameter_space.operator.grid_size.choices=[16]", "--set", "sampling.total_samples=2",
            "--set", "sampling.validation.check_discrepancy=false", "--set", "sampling.validation.check_correlation=false",
            "--num_timesteps", "4"]
TEXTS = ["--hidden_size", "64", "--num_heads", "4", "--num_layers", "1", "--image_size", "64"]


def path(name):
    return os.path.join(SOURCES, name + ".yaml")


def config(name, *words):
    return json.loads(run("config", path(name), "--json", *words)[0])


def plan(name, *words):
    """What the config comes to, and its plan."""
    return config(name, *words), run("plan", path(name), *words)[0]


def test_every_file_is_tried():
    with open(os.path.abspath(__file__)) as file:
        text = file.read()
    for name in os.listdir(SOURCES):
        check(f'"{name[:-5]}"' in text, name, "is in no test")


def test_000():
    c = config("000_summary", *TEXTS)
    check(c["model"]["arch"] == "capsules" and c["pipeline"]["batch_size"] == 192 and c["pipeline"]["num_workers"] == 2, c)
    check(c["texts"]["count"] == 1907747, c)
    record = json.loads(run("plan", path("000_summary"), "--json", *TEXTS)[0])
    check(record["advice"]["samples"] == 1907747 and record["work"]["shapes"][0]["items"] == 9937, record["advice"])


def test_001():
    refused(2, r"001_layout.yaml:37:25: vision_encoder.progressive_fusion follows the share of the steps that are done, .*: write "
            r"\"steps: …\" under train", "plan", path("001_layout"))
    c, text = plan("001_layout", *PAGES, "--steps", "100000")
    train = c["train"]
    check(c["model"]["arch"] == "hybrid" and train["batch_size"] == 192 and train["learning_rate"] == 3e-4, c)
    check(train["mixed_precision"] == "bf16" and train["warmup_steps"] == 1000 and train["min_lr_ratio"] == 0.1, c)
    check(c["vision_encoder"]["progressive_fusion"] and "batch 192" in text, c, text)
    refused(2, r"this command needs data\.text: write \"text: …\" under data in the config file, or give --text", "plan", path("001_keys"))
    c, text = plan("001_keys", "--arch", "hybrid", *PAGES)
    check(c["train"]["batch_size"] == 192 and c["train"]["mixed_precision"] == "bf16" and c["torch_compile"] and c["num_workers"] == 4, c)


def test_001_towers():
    """Of the encoders that are named there one is here; the others are refused by name."""
    for tower, what in (("dinov2", "256 tokens"), ("siglip", "no class token")):
        with open(path("001_layout")) as file:
            text = file.read().replace("pretrained_model: 'clip' ", f"pretrained_model: '{tower}' ")
        with open("tower.yaml", "w") as file:
            file.write(text)
        refused(2, rf"tower.yaml:4:23: vision_encoder.pretrained_model cannot be {tower}: .*{what}.*write \"pretrained_model: clip\"",
                "plan", "tower.yaml")


def test_002_files():
    """Both files, without a line for the arch and without flights; the small model takes less memory than the full one."""
    charged = {}
    for name, channels in (("002_full", 256), ("002_minimal", 128)):
        c = config(name)
        check(c["model"]["arch"] == "clouds" and c["train"]["epochs"] == 50 and c["temporal_frames"] == 5, c)
        text, _ = run("plan", path(name), "--set", "swath_slice=[0,96]", "--frame_width", "96", "--count", "64")
        charged[name] = int(re.search(r"charged +([0-9,]+)", text)[1].replace(",", ""))
        check("64 samples of 5 frames of 96 x 96 pixels, which are counted" in " ".join(text.split()), text)
        refused(2, r"this command needs flights: name them .*; plimsoll plan needs no more than count and frame_width",
                "train", path(name), "--out", "never")
    check(charged["002_minimal"] < charged["002_full"], charged)
    check(not os.path.exists("never"), "a refused training left its folder")


def test_002_pieces():
    """Each as the whole file, and beside the file that it is meant for."""
    for name, key, value in (("002_checkpointing", "gradient_checkpointing", "full"), ("002_no_checkpointing", "gradient_checkpointing", "auto"),
                             ("002_compile", None, "reduce-overhead"), ("002_compile_mode", None, "max-autotune"), ("002_no_compile", None, None)):
        refused(2, r"this command needs data\.text", "plan", path(name))
        c, text = plan(name, "--arch", "clouds", *CLOUDS)
        check(c["train"][key] == value if key else c.get("torch_compile_mode") == value, name, c)
        with open("whole.yaml", "w") as whole, open(path("002_minimal")) as a, open(path(name)) as b:
            piece = b.read()
            said = [line.split(":")[0] for line in piece.splitlines()]
            whole.write("".join(line for line in a if line.split(":")[0] not in said) + piece)
        check(json.loads(run("config", "whole.yaml", "--json")[0])["model"]["arch"] == "clouds", name)
        run("plan", "whole.yaml", *CLOUDS)


def test_002_options():
    words = ["--batch_size", "4", "--temporal_frames", "4", *CLOUDS]
    c, text = plan("002_minimal", *words)
    check(c["train"]["batch_size"] == 4 and c["temporal_frames"] == 4 and "8 samples of 4 frames" in " ".join(text.split()), c, text)
    for word, value in (("true", "full"), ("false", "auto"), ("off", "off")):
        check(config("002_minimal", "--gradient_checkpointing", word)["train"]["gradient_checkpointing"] == value, word)
    refused(2, "unknown option --config: the name of a config stands by itself, as in plimsoll train FILE", "train", "--config", path("002_minimal"))


def test_004():
    c, text = plan("004_precision", *ROLLOUTS)
    check(c["model"]["arch"] == "cnn_operator" and c["simulation"]["precision"] == "float16" and c["sampling"]["batch_size"] == 2, c)
    c, text = plan("004_space", *ROLLOUTS)
    space = c["parameter_space"]["architecture"]["base_channels"]
    check(space["type"] == "integer" and space["bounds"] == [16, 48] and c["model"]["arch"] == "cnn_operator", c)
    _, err = run("rollout", path("004_precision"), *ROLLOUTS, "--num_realizations", "1", "--out", "out")
    check("sampling.batch_size (operators come one after another" in err and "As planned" in err, err)


def test_levers():
    """A budget that is too small: what is named fits, and no more is named than that."""
    def charged(file, *words):
        return int(re.search(r"charged +([0-9,]+)", run("plan", file, *words)[0])[1].replace(",", ""))

    def named(file, budget, *words):
        """Its figure is of a plan that is chosen without times; with them a larger one may be quicker, inside the budget."""
        _, err = run("plan", file, *words, "--budget", str(budget), code=3)
        found = re.search(r"it fits with (.*): ([0-9.]+) ([kM]B) charged", " ".join(err.split()))
        check(found and float(found[2]) * {"kB": 1e3, "MB": 1e6}[found[3]] <= budget * 1.001, err)
        check(charged(file, *words, "--budget", str(budget), *found[1].split()) <= budget, found[0])
        return found[1]

    sizes = ["--set", "swath_slice=[0,96]", "--frame_width", "96", "--count", "64"]
    check(75e6 < charged(path("002_full"), *sizes), "it fits as it is")
    check(named(path("002_full"), 75000000, *sizes) == "--gradient_checkpointing auto", "another lever")
    _, err = run("plan", path("002_full"), *sizes, "--gradient_checkpointing", "auto", "--budget", "40MB", code=3)
    least = needed(err)  # whether that fits is asked with less care than the plan takes
    check(named(path("002_full"), int(least * 1.01), *sizes) == "--gradient_checkpointing auto", "a lever that costs more, though this one fits")
    with open("text.txt", "w") as file:
        file.write("hello world, this is a text\n" * 2000)
    with open("text.yaml", "w") as file:
        file.write("model: {width: 32, layers: 1, heads: 2, sequence: 32}\ndata: {tokenizer: bytes, text: text.txt}\n")
    by_itself = charged("text.yaml", "--micro_batch", "1")
    check(named("text.yaml", by_itself + 100000, "--micro_batch", "32") == "--micro_batch auto", "another lever")


GROUPS = {"sources": [test_every_file_is_tried, test_000, test_001, test_001_towers, test_002_files, test_002_pieces, test_002_options,
                      test_004, test_levers]}

if __name__ == "__main__":
    main(GROUPS)

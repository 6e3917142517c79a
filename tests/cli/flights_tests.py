"""The config of a regression of cloud heights as the command reads it. Called as cli_tests.py is."""
import json
import os
import re
import shutil
import subprocess

import cli_tests
from cli_tests import check, environment, main, read, refused, run

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
NAMES = ["10Feb25", "30Oct24", "04Nov24", "23Oct24", "18Feb25", "12Feb25"]
# Section 3.9 of the description, by the names that the result has.
DOCUMENTED = {"train": {"learning_rate": 1e-3, "weight_decay": 0.04, "epochs": 50, "optimizer": "adamw", "schedule": "plateau",
                        "early_stopping_patience": 15, "early_stopping_min_delta": 0.00025, "warmup_steps": 2000},
              "overweight_factor": 3.5, "temporal_frames": 5, "loss_type": "huber", "loss_alpha": 0.5, "huber_delta": 1, "gamma": 1.5,
              "under_weight": 1, "filter_type": "basic", "loo": False, "loo_epochs": 30, "hard_mining_k": 0.35, "hard_mining_factor": 1.5,
              "swath_slice": [40, 480], "use_spatial_attention": True, "use_temporal_attention": True, "flat_field_correction": True,
              "clahe_clip_limit": 0.01, "zscore_normalize": True, "augment": True, "angles_mode": "both", "pretrain_flight": "30Oct24",
              "overweight_flight": "30Oct24", "validation_flight": "12Feb25", "architecture": {"name": "transformer"}}


def effective(*words, **how):
    return json.loads(run("config", *words, "--json", **how)[0])


def has(found, wanted):
    for key, value in wanted.items():
        if isinstance(value, dict):
            has(found[key], value)
        else:
            check(found[key] == value, key, found[key], value)


def test_documented_files():
    """What they say is what is read, and what is printed reads back as itself."""
    for kind, batch, small, checkpointing in (("full", 20, False, "full"), ("small", 16, True, "auto")):
        file = shutil.copy(os.path.join(EXAMPLES, f"clouds_{kind}.yaml"), ".")
        found = effective(file)
        has(found, DOCUMENTED)
        has(found, {"memory_optimized": small, "train": {"batch_size": batch, "gradient_checkpointing": checkpointing},
                    "run": {"out": f"runs/clouds_{kind}"}})
        check([flight["name"] for flight in found["flights"]] == NAMES, found["flights"])
        check(all(re.fullmatch(r"10Feb25/.*\.(h5|hdf5|hdf)", path) for path in list(found["flights"][0].values())[1:]), found["flights"][0])
        out = run("config", file)[0]
        with open("effective.yaml", "w") as text:
            text.write(out)
        check(run("config", "effective.yaml")[0] == out, "the effective config does not read back as itself:", out)


def test_defaults_are_the_documented_ones():
    """A file that says nothing but its arch has what the documented files say."""
    with open("bare.yaml", "w") as file:
        file.write("model: {arch: clouds}\n")
    flights = ("pretrain_flight", "overweight_flight", "validation_flight")
    has(effective("bare.yaml"), {k: v for k, v in DOCUMENTED.items() if k not in flights})
    has(effective("bare.yaml")["train"], {"batch_size": 20, "plateau_patience": 5, "plateau_factor": 0.5, "min_lr_ratio": 1e-3, "beta2": 0.999,
                                          "grad_clip": 1, "eval_batches": 0})
    has(effective("bare.yaml", "--arch", "gpt")["train"], {"batch_size": 32, "schedule": "cosine", "learning_rate": 3e-4})


def test_documented_options():
    file = shutil.copy(os.path.join(EXAMPLES, "clouds_full.yaml"), ".")
    words = "--batch_size 4 --temporal_frames 3 --epochs 2 --learning_rate 0.5 --weight_decay 0.25 --loss_type huber_mae --angles_mode sza_only " \
            "--architecture_name cnn --loo --no_pretrain --no_final --save_name mine"
    found = effective(file, *words.split())
    has(found, {"train": {"batch_size": 4, "epochs": 2, "learning_rate": 0.5, "weight_decay": 0.25}, "temporal_frames": 3, "loss_type": "huber_mae",
                "angles_mode": "sza_only", "architecture": {"name": "cnn"}, "loo": True, "pretrain": False, "final": False,
                "run": {"out": "runs/clouds_full/mine"}})
    has(effective(file, env=environment(PLIMSOLL_EPOCHS="7", PLIMSOLL_GAMMA="2")), {"train": {"epochs": 7}, "gamma": 2})
    page = run("help", "train")[0]
    for option in ("--temporal_frames", "--loss_type", "--angles_mode", "--architecture_name", "--loo, --no-loo", "--pretrain, --no-pretrain",
                   "--final, --no-final", "--save_name", "--early_stopping_patience", "flights: (file only)"):
        check(f"\n  {option}" in page, option, page)
    check("--temporal_frames" not in run("help", "generate")[0], "another system's command has it")


def test_refused_flights():
    lines = read(os.path.join(EXAMPLES, "clouds_tiny.yaml")).decode().splitlines()

    def of(change, text="", add=""):
        """The lines that begin so replaced by the text, and lines more."""
        with open("bad.yaml", "w") as file:
            file.write("\n".join([text if line.startswith(change) else line for line in lines]) + "\n" + add)
        return "bad.yaml"

    run("config", of("no such line"))
    refused(2, r"bad.yaml:\d+:18: pretrain_flight names the flight \"30Oct2\".*did you mean \"30Oct24\"", "config", of("pretrain_flight", "pretrain_flight: 30Oct2"))
    refused(2, r"--stage: the stage final needs a flight", "config", of("validation_flight"), "--stage", "final")
    refused(2, r"bad.yaml:\d+:14: swath_slice begins at row 52", "config", of("swath_slice", "swath_slice: [52, 4]"))
    refused(2, r"bad.yaml:\d+:5: flights\[7\] has no nFileName", "config", of("-", add="  - {name: x, iFileName: a, cFileName: b}\n"))
    refused(2, r"bad.yaml:\d+:5: flights\[7\] and flights\[2\] are both called 30Oct24", "config",
            of("-", add="  - {name: 30Oct24, iFileName: a, cFileName: b, nFileName: c}\n"))
    check("model:\n  arch: clouds\n" in run("config", of("  arch:"))[0], "the arch that alone reads flights is not taken")
    refused(2, r"bad.yaml:\d+:\d+: .* is read when model.arch is clouds, and no arch is said: write \"arch: clouds\" under model", "config",
            of("  arch:", add="data: {text: t}\n"))
    refused(2, r"bad.yaml:\d+:2: train.epochs is here a second time.*on line \d+", "config", of("-", add="train:\n epochs: 3\n"))
    refused(2, r"--set flights: flights is a list of mappings, which only a config file can give", "config", of("-"), "--set", "flights=[]")


def test_without_effect():
    """Keys of other programs are said where a training begins, before it looks for its data; the quiet are told nothing."""
    file = shutil.copy(os.path.join(EXAMPLES, "clouds_tiny.yaml"), ".")
    words = ["train", file, "--data_directory", "nowhere", "--set", "torch_compile=true", "--set", "num_workers=4"]
    line = "without effect here: num_workers (how data are read and what memory is taken the plan says), torch_compile (kernels are " \
           "compiled already, and every plan fuses those that can be fused)\n"
    for quiet in ([], ["--quiet"]):
        done = subprocess.run([cli_tests.COMMAND, *words, *quiet], capture_output=True, env=environment(), timeout=60)
        check(done.returncode != 0 and done.stderr.decode().count(line) == (0 if quiet else 1), done.returncode, done.stderr)


def test_schema():
    """An editor knows the keys: those of other programs with what stands for them, records, other names."""
    keys = json.loads(run("config", "--schema")[0])["properties"]
    check(keys["torch_compile_mode"]["enum"] == ["default", "reduce-overhead", "max-autotune"], keys["torch_compile_mode"])
    check("no effect here: " in keys["num_workers"]["description"], keys["num_workers"])
    check(keys["flights"]["items"]["required"] == ["name", "iFileName", "cFileName", "nFileName"], keys["flights"])
    check(keys["scheduler"] == {"$ref": "#/properties/train/properties/schedule"}, keys["scheduler"])
    try:
        import jsonschema
        import yaml
    except ImportError:
        print("(no jsonschema or yaml for Python: the examples are not checked against the schema)")
        return
    for name in sorted(os.listdir(EXAMPLES)):
        if name.startswith("clouds_"): # the numbers of others, 1e-3, are text to a reader of YAML 1.1
            jsonschema.validate(yaml.safe_load(read(os.path.join(EXAMPLES, name))), json.loads(run("config", "--schema")[0]))


if __name__ == "__main__":
    main({"flights": [test_documented_files, test_defaults_are_the_documented_ones, test_documented_options, test_refused_flights, test_without_effect,
                      test_schema]})

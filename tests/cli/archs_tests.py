"""Every arch in every precision it takes, planned, searched and run: what no system's own tests try, for each tries the precisions that it
is about. Called as cli_tests.py is. The list of archs and of precisions is the command's, so a new one is missed here at once."""
import json
import os
import re
import shutil

from chain_tests import make_chains, write_chain
from cli_tests import check, environment, last_checkpoint, main, read, run, write_config, write_text
from clouds_tests import synth, write_clouds
from encode_tests import write_encoder
from hybrid_tests import write_hybrid
from rollout_tests import write_rollout

CLOCK = os.environ.get("PL_PRELOAD_CLOCK")  # of tests/support/process: measuring kernels takes no time
STEPS = {"steps": 2, "eval_every": 2}


def text_of(arch):
    write_text(words=1500)
    return write_config(model={"arch": arch, "width": 8, "heads": None if arch == "mlp" else 2}, train={**STEPS, "eval_batches": 1})


def chain(arch):
    make_chains(count=20)
    return write_chain(train={"batch_size": 6, **STEPS})


def hybrid(arch):
    return write_hybrid(reading={"words": 8, "pages": 24, "held_out": 0.3}, train={"batch_size": 6, **STEPS})


def clouds(arch):
    return write_clouds(folder=synth(), loo="false", epochs=1)


def rollout(arch):
    """With all programs that an operator has, and several realisations to choose how many are at once."""
    space = {"cnn_operator": {"num_layers": [5]}, "unet_operator": {"num_layers": None, "kernel_size": None, "grid_size": [16]},
             "fno_operator": {"kernel_size": None, "grid_size": [24]}}
    return write_rollout(arch=arch, space=space[arch], simulation={"num_realizations": 3, "extract_operator_features": "true"})


def capsules(arch):
    return write_encoder(count=5)


TRAINED = {"key": "train.mixed_precision", "run": "train", "fit": ["--set", "fit.allow=bf16,fp16"], "used": ["eval"]}
ROLLED = {"key": "simulation.precision", "run": "rollout", "fit": ["--realizations-at-once", "auto"], "used": []}
ENCODED = {"key": "encoder.precision", "run": "encode", "fit": ["--set", "pipeline.batch_size=auto"], "used": []}
ARCHS = {"gpt": (text_of, TRAINED), "mlp": (text_of, TRAINED), "chain": (chain, TRAINED), "hybrid": (hybrid, TRAINED), "clouds": (clouds, TRAINED),
         "cnn_operator": (rollout, ROLLED), "unet_operator": (rollout, ROLLED), "fno_operator": (rollout, ROLLED),
         "capsules": (capsules, ENCODED)}


def words_of(path):
    """Its own, without what others call them: what a shell completes."""
    return re.search(rf"[ |]{re.escape(path)}\) words='([^']*)'", run("completion", "bash")[0])[1].split()


def results_of(arch):
    """What the run came to, as bytes."""
    if ARCHS[arch][1] is TRAINED:
        return read(f"{last_checkpoint('out/final' if arch == 'clouds' else 'out')}/model.safetensors")
    return b"".join(read(os.path.join(at, name)) for at, _, names in os.walk("out") for name in sorted(names) if name.startswith("results.blocks"))


def try_arch(arch):
    make, system = ARCHS[arch]
    config, racing, results = make(arch), environment(LD_PRELOAD=CLOCK) if CLOCK else environment(), {}
    for word in words_of(system["key"]):
        as_word = ["--set", f"{system['key']}={word}"]
        shutil.rmtree("out", ignore_errors=True)
        check(json.loads(run("plan", config, "--json", *as_word, env=racing)[0])["schema"] == "plimsoll.plan/1", arch, word)
        found = json.loads(run("fit", config, "--json", "--quiet", *as_word, *system["fit"], env=racing)[0])
        check(found["chosen"]["charged_bytes"] > 0 and len(found["points"]) > 1, arch, word, found)
        said = run(system["run"], config, *as_word)[1]
        check("As planned, to the byte." in said, arch, word, said[-1500:])
        results[word] = results_of(arch)
    for word in words_of("run.precision") if system["used"] else []:
        run(*system["used"], "out/final" if arch == "clouds" else "out", "--json", "--set", f"run.precision={word}")
    results.pop("auto", None)
    check(len(set(results.values())) == len(results), arch, "precisions with the same numbers, of", *results)


def test_of(arch):
    def test():
        try_arch(arch)
    test.__name__ = "test_" + arch
    return test


def test_no_arch_is_missing():
    named, apart = words_of("model.arch"), {"decoder"}  # has no training and no results: own_models_tests.py
    check({*ARCHS, *apart} == set(named), "archs that are not tried, or are no more:", {*ARCHS, *apart} ^ set(named))


GROUPS = {"archs": [test_no_arch_is_missing, *(test_of(arch) for arch in ARCHS)]}


if __name__ == "__main__":
    main(GROUPS, own_cache=True)

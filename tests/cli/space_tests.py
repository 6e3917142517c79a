"""The parameter space of rollouts as the command reads it. Called as cli_tests.py is."""
import json
import os
import shutil

from cli_tests import check, environment, main, read, refused, run

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
TINY = os.path.join(EXAMPLES, "rollout_tiny.yaml")
LAYERS, POLICY = "parameter_space.architecture.num_layers", "parameter_space.evolution.update_policy"


def test_effective_space():
    shutil.copy(TINY, "tiny.yaml")
    words = ["--set", f"{LAYERS}.bounds=[2, 3]", "--set", f"{POLICY}.choices=convex", "--set", f"{POLICY}.weights=1",
             "--set", "metadata.description=line\n# no comment"]
    env = environment(PLIMSOLL_PARAMETER_SPACE_ARCHITECTURE_KERNEL_SIZE_CHOICES="[3,5]")
    out, _ = run("config", "tiny.yaml", *words, env=env)
    with open("effective.yaml", "w") as file:
        file.write(out)
    check(run("config", "effective.yaml")[0] == out, "the effective config does not read back as itself:", out)
    found = json.loads(run("config", "effective.yaml", "--json")[0])
    space = found["parameter_space"]
    check(space["architecture"]["num_layers"]["bounds"] == [2, 3] and space["architecture"]["kernel_size"]["choices"] == [3, 5], space)
    check(space["evolution"]["update_policy"] == {"type": "choice", "choices": ["convex"], "weights": [1]}, space)
    check(found["metadata"]["description"] == "line\n# no comment" and found["sampling"]["validation"]["check_correlation"] is False, found)


def test_without_effect():
    """Keys of other programs are said once, where results begin, unless nothing is to be said."""
    shutil.copy(TINY, "tiny.yaml")
    words = ["rollout", "tiny.yaml", "--set", "simulation.device=cuda", "--set", "dataset.storage.chunk_size=5", "--set", "sampling.total_samples=1"]
    line = ("without effect here: simulation.device (the processor computes), dataset.storage.chunk_size "
            "(data sets are contiguous; block_states says what is written together)\n")
    _, err = run(*words)
    check(err.count(line) == 1, err)
    check("without effect" not in run(*words)[1], "said a second time")
    check("without effect" not in run(*words, "--quiet", "--out", "quiet")[1], "said to who wants quiet")


def test_spaces_that_make_no_sense():
    shutil.copy(TINY, "tiny.yaml")
    refused(2, f"--set {LAYERS}.bounds: the bounds of {LAYERS} begin at 5, above their end 2; write the least first",
            "rollout", "tiny.yaml", "--set", f"{LAYERS}.bounds=[5,2]")
    refused(2, f"--set {POLICY}.weights: the weights of {POLICY} sum to 0.9, not to 1; divide each by that",
            "rollout", "tiny.yaml", "--set", f"{POLICY}.weights=[0.5, 0.4]")
    refused(2, r"2 of 2 Sobol points have a centred discrepancy of [0-9.]+, more than sampling.validation.max_discrepancy 0.01; take more",
            "rollout", "tiny.yaml", "--set", "sampling.validation.check_discrepancy=true")
    refused(2, r"the 2 Sobol points have a correlation of 1, more than sampling.validation.max_pairwise_correlation 0.05; take more",
            "rollout", "tiny.yaml", "--set", "sampling.validation.check_correlation=true")
    check(not os.path.exists("runs"), "something was left")


def states_of(*words):
    """What a rollout leaves of its states; its memory was as planned, else its exit status were another."""
    shutil.rmtree("out", ignore_errors=True)
    _, err = run("rollout", *words, "--set", "dataset.storage.backend=npy", "--set", "dataset.output_path=out", "--num_timesteps", "4")
    check("As planned" in err, err)
    return read("out/outputs.fields.npy")


def test_kinds_of_operators():
    """The same states with any number of threads and of realisations at once; others with another precision."""
    for kind in "unet", "fno":
        shutil.copy(os.path.join(EXAMPLES, f"rollout_{kind}.yaml"), "kind.yaml")
        states = states_of("kind.yaml", "--threads", "1")
        again = states_of("kind.yaml", "--threads", "3", "--set", "simulation.realizations_at_once=2")
        check(states == again, kind, "depends on threads or on realisations at once")
        for precision in "float16", "bfloat16":
            check(states_of("kind.yaml", "--precision", precision) != states, kind, precision)


def test_grids_that_do_not_fit():
    grid = "parameter_space.operator.grid_size.choices"
    for kind, sizes, sentence in (
            ("unet", "[32,36]", "a grid of 36 does not fit the three halvings of a U-Net; take at least 16, a multiple of 8"),
            ("unet", "[8]", "a grid of 8 does not fit the three halvings of a U-Net; take at least 16, a multiple of 8"),
            ("fno", "[22]", "a grid of 22 does not fit twelve Fourier modes of either sign; take at least 24")):
        shutil.copy(os.path.join(EXAMPLES, f"rollout_{kind}.yaml"), "kind.yaml")
        refused(2, f"--set {grid}: {sentence}", "rollout", "kind.yaml", "--set", f"{grid}={sizes}")
    refused(2, f"{LAYERS}.bounds is not used when model.arch is unet_operator; take it out",
            "rollout", os.path.join(EXAMPLES, "rollout_unet.yaml"), "--set", f"{LAYERS}.bounds=[1,2]")
    check(not os.path.exists("runs"), "something was left")


GROUPS = {"space": [test_effective_space, test_without_effect, test_spaces_that_make_no_sense, test_kinds_of_operators,
                    test_grids_that_do_not_fit]}

if __name__ == "__main__":
    main(GROUPS)

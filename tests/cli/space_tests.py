"""The parameter space of rollouts as the command reads it. Called as cli_tests.py is."""
import json
import os
import shutil

from cli_tests import check, environment, main, refused, run

TINY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/rollout_tiny.yaml")
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
    line = "without effect here: simulation.device, dataset.storage.chunk_size\n"
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


GROUPS = {"space": [test_effective_space, test_without_effect, test_spaces_that_make_no_sense]}

if __name__ == "__main__":
    main(GROUPS)

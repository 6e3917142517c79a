"""Tests of several trainings in one command: all are planned before the first begins, and a plan of one of them runs. Called as cli_tests.py is."""
import json
import os
import re

from chain_tests import lasting, make_chains, write_chain
from cli_tests import check, main, needed, read, refused, run
from clouds_tests import synth, write_clouds
from hybrid_tests import PAGES, write_hybrid


def least(config, stage, *words):
    _, err = run("plan", config, "--stage", stage, "--budget", "1MB", *words, code=3)
    return needed(err)


def test_all_are_planned_first():
    """What fits the first alone is refused before the first begins. The last training knows twenty flights, the first one."""
    synth("few")  # where there is no HDF5, this ends here
    run("synth", "clouds", "many", "--flights", "20", "--labels", "full", "--height", "16", "--width", "16")
    config = write_clouds("pair.yaml", "many", loo="false", pretrain="true", final="true", epochs=1)
    first, last = least(config, "pretrain"), least(config, "final")
    check(first < last, first, last, "this case needs a last training that takes more")
    refused(3, rf"the smallest plan needs .*\({last:,} bytes\).* \(final, 2 of 2 trainings\)", "train", config, "--budget", str(first))
    check(not os.path.exists("out/pretrain"), os.listdir("out"))
    run("plan", config, "--stage", "final", "--budget", str(last))


def test_lock_of_one_training():
    """What plan --stage NAME --out-lock wrote, train --stage NAME --lock runs: the same bits. The evaluation after it has a plan of its own."""
    make_chains()
    chain = write_chain(model={"sequence": 24}, chain={"stages": 1, "replaced": 0, "latents": 1})
    pages = write_hybrid(**{**json.loads(json.dumps(PAGES)), "denoiser": {"channels": 2, "depth": 2, "steps": 3, "batch_size": 3}})
    for number, (config, stage) in enumerate(((chain, "stage-0"), (pages, "denoiser"))):
        words = ["--stage", stage, "--out", f"locked{number}"]
        run("plan", config, *words, "--out-lock", f"{number}.lock")
        run("train", config, *words, "--lock", f"{number}.lock", "--quiet")
        run("train", config, "--stage", stage, "--out", f"planned{number}", "--quiet")
        check(lasting(f"locked{number}/{stage}") == lasting(f"planned{number}/{stage}"), stage, "other bits")
        check(read(f"locked{number}/{stage}/predictions.csv") == read(f"planned{number}/{stage}/predictions.csv"), stage)
    refused(2, "--lock runs a plan of one training, and this config has 3: say which with --stage", "train", chain, "--lock", "0.lock", "--out", "new")
    refused(2, "the plan was made for", "train", chain, "--stage", "stage-1", "--lock", "0.lock", "--out", "locked0")


if __name__ == "__main__":
    main({"stages": [test_all_are_planned_first, test_lock_of_one_training]})

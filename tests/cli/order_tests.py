"""Tests of when gradients are applied: order_tests.py PLIMSOLL FOLDER GROUP…   Called as cli_tests.py is.

The oracle of every order is the run in the plain one: where no table is tied it leaves the same bits."""
import json
import random
import signal
import time

from cli_tests import SEED, Failed, await_event, check, finish, last_checkpoint, main, read, refused, run, same_run, start, write_config, write_text

# 5 blocks, the last micro-batch one sequence short, dropout counted by sample.
MODEL = {"layers": 5, "dropout": 0.1, "tie_embeddings": "false"}
TRAIN = {"micro_batch": 3, "steps": 40}


def tiled(blocks, keep, **train):
    return write_config(model=MODEL, train={**TRAIN, "layer_major": blocks, "layer_major_keep": keep, **train})


def planned(config, *words):
    return json.loads(run("plan", config, "--json", *words)[0])


def test_layer_major_leaves_the_same_bits():
    write_text()
    run("train", write_config(model=MODEL, train=TRAIN), "--quiet", "--out", "plain")
    for blocks, keep in ((1, 0), (1, 2), (2, 1), (9, 1)):
        run("train", tiled(blocks, keep), "--quiet", "--out", f"out{blocks}{keep}")
        same_run("plain", f"out{blocks}{keep}")


def test_layer_major_interrupted():
    write_text()
    config = tiled(2, 1, steps=160)
    run("train", config, "--quiet", "--out", "whole")
    source = random.Random(SEED)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        process = start("train", config, "--resume=auto")
        try:
            await_event(process, "step", 3)
        except Failed:
            break
        time.sleep(source.random() * 0.1)
        process.send_signal(number)
        finish(process)
    run("train", config, "--resume=auto", "--quiet")
    same_run("whole", "out")


def test_layer_major_holds_less():
    write_text()
    wide = {"width": 64, "layers": 6, "sequence": 16}
    sizes = [planned(write_config(model=wide, train={"micro_batch": 1, "layer_major": blocks, "layer_major_keep": 0}))["arena"]["bytes"]
             for blocks in (0, 3, 2, 1)]
    check(sizes == sorted(sizes, reverse=True) and sizes[3] < sizes[0], sizes)


def test_update_in_backward():
    write_text()
    words = ("--set", "train.micro_batch=8")
    run("train", write_config(), "--quiet", "--steps", "40", "--out", "plain", *words)
    run("train", write_config(train={"update_in_backward": "on"}), "--quiet", "--steps", "40", *words)
    for name in ("model.safetensors", "state.safetensors"):
        check(read(f"{last_checkpoint('plain')}/{name}") == read(f"{last_checkpoint('out')}/{name}"), name)
    sizes = [planned(write_config(train={"update_in_backward": word}), *words)["arena"]["bytes"] for word in ("off", "on")]
    check(sizes[1] < sizes[0], sizes)
    auto = planned(write_config(train={"update_in_backward": "on", "micro_batch": "auto"}))["model"]
    check(auto["micro_batch"] == 8, auto)


def test_what_is_not_possible_is_said():
    write_text()
    refused(2, "update_in_backward: on is not possible: the gradients of several micro-batches", "plan", write_config(train={"update_in_backward": "on"}))
    refused(2, "update_in_backward: on is not possible: train.grad_clip .* looks at the whole gradient", "train",
            write_config(train={"update_in_backward": "on", "micro_batch": 8, "grad_clip": 1}))
    refused(2, "layer_major is not possible: train.grad_clip .* looks at the whole gradient", "train", tiled(1, 1, grad_clip=1))
    refused(2, "train.layer_major", "plan", tiled(-1, 1))


if __name__ == "__main__":
    main({"order": [test_layer_major_leaves_the_same_bits, test_layer_major_interrupted, test_layer_major_holds_less, test_update_in_backward,
                    test_what_is_not_possible_is_said]})

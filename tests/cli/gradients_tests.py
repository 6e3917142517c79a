"""Tests of the batch that verify --gradients writes beside the gradients: it is the one of the loss, in every precision. Called as cli_tests.py is."""
import os
import struct

from cli_tests import check, last_checkpoint, main, refused, run
from clouds_tests import synth, write_clouds
from hybrid_tests import header, write_hybrid

PRECISIONS = ("off", "bf16", "fp16")


def batch_of(path):
    return {name: data for name, data in header(path).items() if name != "loss" and not name.startswith("grad.")}


def loss_of(path):
    return struct.unpack("<d", header(path)["loss"])[0]


def in_all_precisions(*model, tame=True):
    """The batch, which is the same; and so are losses of weights that 16 bits hold, but for a share of them."""
    for precision in PRECISIONS:
        run("verify", "--gradients", precision, "--mixed_precision", precision, *model)
    batch, plain = batch_of("off"), loss_of("off")
    for precision in PRECISIONS[1:]:
        check(batch_of(precision) == batch, precision, "has another batch:", [n for n in batch if batch_of(precision).get(n) != batch[n]])
        check(not tame or abs(loss_of(precision) - plain) < 0.05 * max(1, abs(plain)), precision, loss_of(precision), plain)
    return batch


def test_real_inputs():
    """Images, angles and targets of flights, and the noise of pages, are numbers of f32: no loss scale is in them."""
    config = write_clouds(folder=synth(), loo="false", epochs=1)
    run("train", config, "--quiet")
    batch = in_all_precisions("out/final")
    images = struct.unpack(f"<{len(batch['train.images']) // 4}f", batch["train.images"])
    check({"train.images", "train.target"} <= set(batch) and max(map(abs, images)) > 0.1, sorted(batch), max(map(abs, images)))


def test_noise():
    run("train", write_hybrid(reading={"words": 8, "pages": 60, "held_out": 0.3, "noise": 0.2}), "--quiet")
    batch = in_all_precisions("out")
    check(any(struct.unpack(f"<{len(batch['train.noise']) // 4}f", batch["train.noise"])), "there is no noise")


def rows(data, count):
    return [data[i * len(data) // count:(i + 1) * len(data) // count] for i in range(count)]


def test_pages_that_stay():
    """Where a page stays for several steps it is the carried one, whose number of steps the checkpoint's state has; in a free place it is the
    one that the data bring, as where none stays. A rate so large that the first attempts in fp16 overflow: each begins as the step does."""
    keys = {"train": {"steps": 3, "checkpoint_every": 1, "keep_last": 3, "learning_rate": 1}, "output_head": {"vq_codebook": "beside"}}
    reasoning = {"num_heads": 2, "L_layers": 1}
    run("train", write_hybrid("stay.yaml", out="stay", reasoning={**reasoning, "halt_max_steps": 3, "halt_exploration": 1}, **keys), "--quiet")
    run("train", write_hybrid("plain.yaml", out="plain", reasoning=reasoning, **keys), "--quiet")
    kinds = set()
    for step in (2, 3):
        at = f"checkpoints/step-{step:08d}"
        batch = in_all_precisions("stay", "--checkpoint", f"stay/{at}", tame=False)
        run("verify", "--gradients", "fresh", "plain", "--checkpoint", f"plain/{at}")
        fresh, state = batch_of("fresh"), header(f"stay/{at}/state.safetensors")
        places = len(state["carry.done"]) // 4
        for name, carried in (("train.pages", "carry.pages"), ("train.labels", "carry.labels")):
            check(fresh[name] != batch[name] or not any(state["carry.done"]), "nothing stays:", name)
            for i, done in enumerate(struct.unpack(f"<{places}i", state["carry.done"])):
                kinds.add(done > 0)
                check(rows(batch[name], places)[i] == rows(state[carried] if done else fresh[name], places)[i], step, name, i, done)
    check(kinds == {True, False}, "places are all taken, or all free")
    os.remove(last_checkpoint("stay") + "/state.safetensors")
    refused(4, "state.safetensors: is missing", "verify", "--gradients", "g", "stay", "--checkpoint", last_checkpoint("stay"))


def test_published_weights():
    """Where nothing is carried the weights are enough."""
    run("train", write_hybrid(), "--quiet")
    run("verify", "--gradients", "whole", "out")
    os.remove(last_checkpoint("out") + "/state.safetensors")
    run("verify", "--gradients", "weights", "out")
    check(header("whole") == header("weights"), "the state decides")


GROUPS = {"gradients": [test_real_inputs, test_noise, test_pages_that_stay, test_published_weights]}


if __name__ == "__main__":
    main(GROUPS)

"""Pages that are read at their charged figure: random hybrids, in groups whose limit is what the plan is charged, to the page."""

import random
import shutil

import random_config
import suite
from clouds import check_eval, check_train, draw_budget, yes
from harness import Skip

DRAW, CACHE = "plimsoll-draw.so", "plimsoll-cache.so"


def draw_model(rng):
    heads = rng.choice((1, 2, 4))
    patch = rng.choice((8, 16, 16))
    keys = {"vision_encoder.patch_size": patch, "vision_encoder.image_size": patch * rng.randint(6, 8), "vision_encoder.hidden_size": heads * 2 * rng.randint(4, 16),
            "vision_encoder.pretrained_layers": rng.randint(1, 3), "vision_encoder.vit_layers": rng.randint(1, 3), "vision_encoder.vit_heads": heads,
            "vision_encoder.adapter_layers": rng.randint(0, 2), "vision_encoder.num_heads": heads, "vision_encoder.num_layers": rng.randint(1, 2),
            "vision_encoder.H_cycles": rng.randint(1, 3), "vision_encoder.L_cycles": rng.randint(1, 3), "vision_encoder.target_capsules": rng.randint(1, 12),
            "vision_encoder.children_per_capsule": rng.randint(1, 6), "vision_encoder.dropout": rng.choice((0, 0.1)), "vision_encoder.clip_normalize": yes(rng),
            "reasoning.num_heads": heads, "reasoning.L_layers": rng.randint(1, 3), "reasoning.H_cycles": rng.randint(1, 3), "reasoning.L_cycles": rng.randint(1, 3),
            "latent_planning.enable_latent_planning": yes(rng, 0.8), "latent_planning.latent_num_paths": rng.randint(1, 4),
            "latent_planning.latent_planning_depth": rng.randint(1, 2), "latent_planning.latent_use_adaptive_gate": yes(rng, 0.8),
            "vision_encoder.pretrained_precision": rng.choice(("auto", "f32", "bf16", "fp16")), "vision_encoder.unfreeze_pretrained_layers": rng.choice((0, 0, 1))}
    keys.update({"reasoning.halt_max_steps": rng.choice((1, 1, 2, 4)), "vision_encoder.fusion_type": rng.choice(("gated", "gated", "learned_avg", "average")),
                 "vision_encoder.progressive_fusion": yes(rng), "output_head.vq_codebook": rng.choice(("none", "beside", "straight_through"))})
    if rng.random() < 0.2:
        keys["vision_encoder.fusion_type"] = "attention"
    if keys["vision_encoder.fusion_type"] in ("attention", "average"):
        keys["vision_encoder.progressive_fusion"] = False
    if rng.random() < 0.2:  # the adapter alone
        keys.update({"n2n_pretrain.only": True, "vision_encoder.adapter_layers": rng.randint(1, 2), "vision_encoder.unfreeze_pretrained_layers": 0})
    if not keys["vision_encoder.unfreeze_pretrained_layers"] and keys["reasoning.halt_max_steps"] == 1:
        keys["vision_encoder.features_cache"] = rng.choice(("0", "100kB", "20MB"))
    if rng.random() < 0.2:
        keys.update({"vision_encoder.features_cache": "0", "reading.noise": rng.choice((10, 50))})
    if rng.random() < 0.15:  # the denoiser alone
        keys.update({"vision_encoder.features_cache": "0", "denoiser.only": True, "n2n_pretrain.only": False, "denoiser.channels": rng.choice((2, 5, 8)),
                     "denoiser.depth": rng.randint(1, 3 if patch == 8 else 4), "denoiser.target": rng.choice(("noisy", "clean"))})
        if rng.random() < 0.5:  # or the policy that tries one
            keys.update({"denoiser.only": False, "page_policy.only": True, "page_policy.samples": rng.randint(2, 9), "vision_encoder.pretrained_precision": "f32"})
    elif rng.random() < 0.25:  # a denoiser in front, and what it makes is kept
        keys.update({"vision_encoder.features_cache": "0", "reading.noise": 0, "dataset.cache_images": True, "vision_encoder.pretrained_precision": "f32",
                     "denoiser.channels": rng.choice((2, 5, 8)), "denoiser.depth": rng.randint(1, 3)})
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in keys.items()}


def draw_train(rng):
    keys = {"train.batch_size": rng.randint(2, 12), "train.steps": rng.randint(2, 4), "train.seed": rng.randrange(10**6), "train.grad_clip": rng.choice((0, 1)),
            "train.mixed_precision": rng.choice(("off", "off", "bf16")), "train.optimizer_state": rng.choice(("f32", "f32", "bf16", "8bit")),
            "train.gradient_checkpointing": rng.choice(("off", "auto", "auto", "full")), "reading.words": rng.randint(2, 3000),
            "reading.pages": rng.randint(40, 4000), "reading.held_out": rng.choice((0.1, 0.3)), "run.threads": rng.choice((1, 1, 2, 2, 3, 4, 8)),
            "run.isa": rng.choice(("auto", "auto", "auto", "avx2", "baseline")), "memory.huge_pages": rng.choice(("auto", "auto", "off"))}
    for key in ("train.eval_every", "train.checkpoint_every"):
        keys[key] = rng.choice(("auto", 1, 2))
    return keys


def train_denoiser(bench, keys):
    """That of one step, of the same config, in a folder of its own."""
    out = bench.out()
    of_it = {**keys, "page_policy.only": "false", "n2n_pretrain.only": "false", "denoiser.only": "true", "train.steps": 1, "run.out": out}
    bench.run(bench.command("train", bench.config, "--quiet", *random_config.options_of(of_it)))
    return out


def run_one(bench, seed, index, found):
    rng = random.Random(f"{seed}/{index}")
    keys = {**draw_model(rng), **draw_train(rng)}
    if keys.get("dataset.cache_images") == "true" and not bench.has_module(CACHE):
        keys["dataset.cache_images"] = "false"
    bench.config = bench.path(f"hybrid-{index}.yaml")
    with open(bench.config, "w", encoding="utf-8") as f:
        f.write("model: {arch: hybrid}\n")
    if keys.get("page_policy.only") == "true" or "dataset.cache_images" in keys:
        keys["dataset.denoiser_path"] = train_denoiser(bench, keys)
    keys["run.out"] = out = bench.out()
    draw_budget(rng, bench, keys)
    charged = check_train(bench, random_config.options_of(keys), out)
    found.append((charged, "memory.budget" in keys, check_eval(bench, out, predictions=False)))
    shutil.rmtree(out)


def check_hybrid(bench, arguments):
    found = []
    if not bench.has_module(DRAW):
        raise Skip(f"{DRAW} was not built: there are no pages to read")
    count = suite.run_random(arguments, lambda index: run_one(bench, arguments.seed, index, found))
    sizes, budgets, more = ([row[i] for row in found] for i in range(3))
    return f"{count} hybrids, {sum(budgets)} with a budget, trained in groups of {min(sizes):,} to {max(sizes):,} bytes, their charged figures, and " \
           f"evaluated likewise ({sum(more)} with room to plan); none killed"

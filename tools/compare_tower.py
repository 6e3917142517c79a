#!/usr/bin/env python3
"""Compares what the frozen tower of arch hybrid makes of a batch of pages with PyTorch, on weights of a CLIP file.

    plimsoll train CONFIG --steps 1 --set vision_encoder.pretrained_weights=CLIP --set vision_encoder.features_cache=1GB --out RUN
    plimsoll verify --gradients g.safetensors RUN
    tools/compare_tower.py g.safetensors CLIP RUN/checkpoints/step-00000001

Needs `pip install torch safetensors`; where `transformers` is there, its CLIPVisionModel is asked as well. Neither the build nor the tests need them. The
judge is PyTorch in f64; a difference is |a - b| / |b|, of the norms of all features. Ends with 1 when it is above 1e-5 (1e-2 where the tower is stored in
16 bits: then the file's own numbers are not what it computes with)."""
import json
import sys

import torch
from compare_hybrid import CLIP, DEVIATION, MEAN, Hybrid, read_config
from safetensors.torch import load_file

ROOT = "vision_model."


def tower_of(path):
    """Of a file of CLIP's, whatever stands before the root."""
    found = {name: t for name, t in load_file(path).items() if ROOT in name}
    before = next(iter(found)).split(ROOT)[0]
    return {name.removeprefix(before): t for name, t in found.items() if name.startswith(before + ROOT)}


def by_hand(weights, config, pages, dtype):
    w = {"clip." + name: t.to(dtype) for name, t in weights.items() if t.is_floating_point()}
    w["q_head.bias"] = torch.zeros(1, dtype=dtype)  # says the dtype
    vision = config["vision_encoder"]
    with torch.no_grad():
        return Hybrid(w, config).tower(pages, CLIP, int(vision["pretrained_layers"]), vision["clip_normalize"] == "true")


def by_transformers(weights, config, pages, dtype):
    from transformers import CLIPVisionConfig, CLIPVisionModel
    vision = {key: value for key, value in config["vision_encoder"].items()}
    model = CLIPVisionModel(CLIPVisionConfig(hidden_size=int(vision["hidden_size"]), intermediate_size=4 * int(vision["hidden_size"]),
                                             num_hidden_layers=int(vision["pretrained_layers"]), num_attention_heads=int(vision["vit_heads"]),
                                             image_size=int(vision["image_size"]), patch_size=int(vision["patch_size"]), hidden_act="quick_gelu")).to(dtype).eval()
    missing, unexpected = model.load_state_dict({name: t.to(dtype) for name, t in weights.items() if t.is_floating_point()}, strict=False)
    if unexpected or [name for name in missing if "post_layernorm" not in name and "position_ids" not in name]:
        raise SystemExit(f"transformers has other names: {missing} {unexpected}")
    x = pages.to(dtype)[:, None].expand(-1, 3, -1, -1) / 255
    if vision["clip_normalize"] == "true":
        x = (x - x.new_tensor(MEAN).view(3, 1, 1)) / x.new_tensor(DEVIATION).view(3, 1, 1)
    with torch.no_grad():
        return model(pixel_values=x).last_hidden_state[:, 1:]


def main():
    ours, weights = load_file(sys.argv[1]), tower_of(sys.argv[2])
    config = read_config(json.load(open(sys.argv[3] + "/run.json"))["config"])
    got, pages, failed = ours["train.features"].double(), ours["train.pages"], False
    limit = 1e-5 if config["vision_encoder"].get("pretrained_precision", "f32") in ("auto", "f32") else 1e-2
    judges = [("PyTorch in f64", by_hand, torch.float64), ("PyTorch in f32", by_hand, torch.float32)]
    try:
        import transformers
        judges.append((f"transformers {transformers.__version__} in f64", by_transformers, torch.float64))
    except ImportError:
        print("transformers is not installed: the formulas are compared, not its model")
    want = by_hand(weights, config, pages, torch.float64)
    for name, judge, dtype in judges:
        made = judge(weights, config, pages, dtype).double()
        apart = ((got if dtype == torch.float64 else want) - made).norm().item() / made.norm().item()
        failed |= dtype == torch.float64 and not apart <= limit
        print(f"{'ours' if dtype == torch.float64 else 'PyTorch in f64'} against {name}: {apart:.2e} of the norm, {made.norm().item():.4g}, of {tuple(made.shape)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

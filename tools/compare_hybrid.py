#!/usr/bin/env python3
"""Compares loss and every gradient of arch hybrid with PyTorch, on the same weights and the same batch.

    plimsoll train CONFIG --steps 1 --checkpoint_every 1 --out RUN        (any checkpoint will do)
    plimsoll verify --gradients g.safetensors RUN
    tools/compare_hybrid.py g.safetensors RUN/checkpoints/step-00000001

Needs `pip install torch safetensors`; neither the build nor the tests need it. It knows nothing of Plimsoll but its files. What is left out at random
would be other numbers there: set vision_encoder.dropout and latent_planning.path_dropout to 0; and where n2n_pretrain.only is true, n2n_pretrain.noise to
1e-12, of which no number of a small batch is left out; where denoiser.only or page_policy.only is true, denoiser.noise to 1e-6, and page_policy.dropout to
0: what the policy draws is drawn here once more. The judge is PyTorch in f64; a difference is
|a - b| / |b|, of the norms of a tensor. Ends with 1 when one is above 1e-4 (1e-7 absolute,
or what PyTorch itself is off in f32, where the gradient is zero by symmetry)."""
import json
import math
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

LIMIT, ZERO = 1e-4, 1e-7
CLIP = dict(p="clip.vision_model.", cls="embeddings.class_embedding", pos="embeddings.position_embedding.weight", patch="embeddings.patch_embedding",
            layer="encoder.layers", q="self_attn.q_proj", k="self_attn.k_proj", v="self_attn.v_proj", o="self_attn.out_proj", n1="layer_norm1",
            n2="layer_norm2", f1="mlp.fc1", f2="mlp.fc2", eps=1e-5, act=lambda x: x * torch.sigmoid(1.702 * x))
VIT = dict(p="vit.", cls="embeddings.cls_token", pos="embeddings.position_embeddings", patch="embeddings.patch_embeddings.projection",
           layer="encoder.layer", q="attention.attention.query", k="attention.attention.key", v="attention.attention.value",
           o="attention.output.dense", n1="layernorm_before", n2="layernorm_after", f1="intermediate.dense", f2="output.dense", eps=1e-12, act=F.gelu)
MEAN, DEVIATION = (.48145466, .4578275, .40821073), (.26862954, .26130258, .27577711)


def read_config(text):
    config = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if line[:1] != " ":
            section = config.setdefault(key, {})
        else:
            section[key.strip()] = value.strip()
    return config


def ramp(step, steps):
    """What progressive_fusion adds at this step (from 1)."""
    second = int(.7 * steps)
    return .3 if step <= int(.2 * steps) else 0 if step <= second else .3 - .6 * (min(step, steps) - second) / (steps - second)


def update_codes(weights, state):
    """The codes as the step makes them, from the sums of the one before."""
    book, sums, sizes, averages = weights["output_head.vq_codebook"].double(), state["codes.sums"].double(), state["codes.sizes"].double(), state["codes.averages"].double()
    if sums[:, -1].sum() == 0:
        return book
    sizes, averages = .99 * sizes + .01 * sums[:, -1], .99 * averages + .01 * sums[:, :-1]
    return averages / ((sizes + 1e-5) / (sizes.sum() + len(sizes) * 1e-5) * sizes.sum())[:, None]


M64 = (1 << 64) - 1
CHOICES = (("size", 7, 3), ("across", 11, 5), ("down", 11, 5))


def random_words(seed, stream, step, sample, count):
    """Philox 4x32-10 (Salmon et al. 2011), as src/base/philox.h keys and counts it."""
    def mix(x):
        x = (x + 0x9e3779b97f4a7c15) & M64
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & M64
        x = (x ^ x >> 27) * 0x94d049bb133111eb & M64
        return x ^ x >> 31
    scope, words = 0xcbf29ce484222325, []
    for byte in stream.encode():
        scope = (scope ^ byte) * 0x100000001b3 & M64
    key = mix(mix(seed) ^ scope)
    for block in range(-(-count // 4)):
        c, k0, k1 = (block, sample & 0xFFFFFFFF, sample >> 32, step), key & 0xFFFFFFFF, key >> 32
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = (b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF
            k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
        words += c
    return words[:count]


def gumbel(words):
    return [-math.log(-math.log(((w >> 8) + .5) / 2**24)) for w in words]


def normal(words):
    pairs = zip(words[::2], words[1::2])
    return [math.sqrt(-2 * math.log((a + .5) / 2**32)) * turn(2 * math.pi * (b + .5) / 2**32) for a, b in pairs for turn in (math.cos, math.sin)]


class Hybrid:
    def __init__(self, weights, config, state, step):
        self.w, self.c, self.state, self.step = weights, config, state, step
        v, r, p = (config[name] for name in ("vision_encoder", "reasoning", "latent_planning"))
        self.d, self.patch, self.capsules = int(v["hidden_size"]), int(v["patch_size"]), int(v["target_capsules"])
        self.v, self.r, self.p = v, r, p

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def norm(self, x, name, eps):
        return F.layer_norm(x, (self.d,), self.w[name + ".weight"], self.w[name + ".bias"], eps)

    def two(self, x, name):
        return self.linear(F.gelu(self.linear(x, name + ".0")), name + ".2")

    def attend(self, q, k, v, heads):
        q, k, v = (z.unflatten(-1, (heads, -1)).transpose(1, 2) for z in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def tower(self, pages, t, layers, standardize):
        x = pages.to(self.w[t["p"] + t["cls"]].dtype)
        x = (x if x.dim() == 4 else x[:, None].expand(-1, 3, -1, -1)) / 255
        if standardize:
            x = (x - x.new_tensor(MEAN).view(3, 1, 1)) / x.new_tensor(DEVIATION).view(3, 1, 1)
        s, p = self.patch, t["p"]
        x = F.conv2d(x, self.w[p + t["patch"] + ".weight"].view(self.d, 3, s, s), self.w.get(p + t["patch"] + ".bias"), stride=s).flatten(2).transpose(1, 2)
        x = torch.cat([self.w[p + t["cls"]].expand(len(x), 1, -1), x], 1) + self.w[p + t["pos"]]
        if t is CLIP:
            x = self.norm(x, p + "pre_layrnorm", t["eps"])
        for i in range(layers):
            name = f"{p}{t['layer']}.{i}."
            h = self.norm(x, name + t["n1"], t["eps"])
            h = self.attend(*(self.linear(h, name + t[z]) for z in "qkv"), int(self.v["vit_heads"]))
            x = x + self.linear(h, name + t["o"])
            x = x + self.linear(t["act"](self.linear(self.norm(x, name + t["n2"], t["eps"]), name + t["f1"])), name + t["f2"])
        return (x if t is CLIP else self.norm(x, "vit.layernorm", t["eps"]))[:, 1:]

    def encoder_layer(self, x, name):
        h = self.norm(x, name + ".norm1", 1e-5)
        qkv = F.linear(h, self.w[name + ".self_attn.in_proj_weight"], self.w[name + ".self_attn.in_proj_bias"]).chunk(3, -1)
        x = x + self.linear(self.attend(*qkv, int(self.v["num_heads"])), name + ".self_attn.out_proj")
        return x + self.linear(F.gelu(self.linear(self.norm(x, name + ".norm2", 1e-5), name + ".linear1")), name + ".linear2")

    def blocks(self, x, name, count, heads, eps, turned):
        for i in range(count):
            q, k, v = self.linear(x, f"{name}.{i}.self_attn.qkv_proj").chunk(3, -1)
            if turned:
                q, k = self.turn(q, heads), self.turn(k, heads)
            x = F.rms_norm(x + self.linear(self.attend(q, k, v, heads), f"{name}.{i}.self_attn.o_proj"), (self.d,), eps=eps)
            gate, up = self.linear(x, f"{name}.{i}.mlp.gate_up_proj").chunk(2, -1)
            x = F.rms_norm(x + self.linear(F.silu(gate) * up, f"{name}.{i}.mlp.down_proj"), (self.d,), eps=eps)
        return x

    def turn(self, x, heads):
        half = self.d // heads // 2
        angle = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * 1e4 ** (-torch.arange(half, dtype=x.dtype) / half)
        x = x.unflatten(-1, (heads, -1))
        a, b = x[..., :half], x[..., half:]
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        return torch.cat([a * c - b * s, b * c + a * s], -1).flatten(2)

    def see(self, pages):
        frozen = self.tower(pages, CLIP, int(self.v["pretrained_layers"]), self.v["clip_normalize"] == "true")
        return self.fuse(frozen, self.tower(pages, VIT, int(self.v["vit_layers"]), False))

    def embed(self, pages):
        """Without towers: the encoder's own embedding."""
        x = pages.to(self.w["encoder.patch_embed.weight"].dtype)
        x = (x if x.dim() == 4 else x[:, None].expand(-1, 3, -1, -1)) / 255
        x = F.unfold(x, self.patch, stride=self.patch).transpose(1, 2)
        return self.linear(x, "encoder.patch_embed") + self.w["encoder.pos_embed.pos_embedding"]

    def fuse(self, frozen, trained):
        if self.v["fusion_type"] == "attention":  # a softmax over the two sources, for each query and token
            q = self.linear(trained, "fusion.query")
            scores = torch.stack([q @ self.linear(x, "fusion.key").transpose(1, 2) for x in (frozen, trained)]) / self.d**0.5
            shares = scores.softmax(0)
            return shares[0] @ self.linear(frozen, "fusion.value") + shares[1] @ self.linear(trained, "fusion.value")
        gated = self.v["fusion_type"] == "gated"
        z = self.two(torch.cat([frozen, trained], -1), "fusion.gate") if gated else self.w["fusion.alpha"]
        g = torch.sigmoid(z + ramp(self.step, int(self.c["train"]["steps"])) if self.v["progressive_fusion"] == "true" else z)
        return g * frozen + (1 - g) * trained

    def adapt(self, f):
        x = f
        for i in range(int(self.v["adapter_layers"])):
            x = self.encoder_layer(x, f"adapter.layers.{i}")
        s = torch.sigmoid(self.linear(f, "adapter.gate")) if x is not f else 0
        return s * x + (1 - s) * f

    def two_convolutions(self, x, name):
        for i in (0, 3):
            x = self.convolve(x, f"{name}.{i}", 1)
            mean, variance, gain, offset = (self.w[f"{name}.{i + 1}.{z}"] for z in ("running_mean", "running_var", "weight", "bias"))
            alone = self.c["denoiser"]["only"] == "true"
            x = F.relu(F.batch_norm(x, None if alone else mean, None if alone else variance, gain, offset, training=alone))
        return x

    def convolve(self, x, name, pad):
        return F.conv2d(x, self.w[name + ".weight"].permute(0, 3, 1, 2), self.w[name + ".bias"], padding=pad)

    def denoise(self, x):
        depth, skips = int(self.c["denoiser"]["depth"]), []
        for i in range(depth):
            skips.append(self.two_convolutions(x, f"denoiser.encoders.{i}"))
            x = F.max_pool2d(skips[-1], 2)
        x = self.two_convolutions(x, "denoiser.bottleneck")
        for i in reversed(range(depth)):
            x = F.conv_transpose2d(x, self.w[f"denoiser.upconvs.{i}.weight"].permute(0, 3, 1, 2), self.w[f"denoiser.upconvs.{i}.bias"], stride=2)
            x = self.two_convolutions(torch.cat([x, skips[i]], 1), f"denoiser.decoders.{i}")
        return self.convolve(x, "denoiser.final_conv", 0)

    def draw(self, said, count, stream, kind):
        """[B, count, n]: numbers near what is said, for each sample of this step."""
        b, n = said.shape
        first, seed = (self.step - 1) * b, int(self.c["train"]["seed"])
        rows = [kind(random_words(seed, stream, self.step, first + i, -(-count * n // 4) * 4))[:count * n] for i in range(b)]
        return said.detach()[:, None], torch.tensor(rows, dtype=said.dtype).view(b, count, n)

    def judge(self, pages, feature):
        """The loss of the policy: what it has drawn, tried and kept."""
        count = int(self.c["page_policy"]["samples"])
        x = F.relu(self.linear(feature[:, :768].to(self.w["policy.strength.bias"].dtype), "policy.layers.0"))
        x = F.relu(self.linear(x, "policy.layers.3"))
        logits, ids = {}, {}
        for name, n, as_is in CHOICES:
            prior = torch.zeros(n, dtype=x.dtype)
            prior[as_is] = math.log(n - 1)
            logits[name] = self.linear(x, "policy." + name) + prior
            said, random = self.draw(logits[name], count, "policy/" + name, gumbel)
            ids[name] = (said + random).argmax(-1)
        strength = self.linear(x, "policy.strength")
        said, random = self.draw(strength, count, "policy/strength", normal)
        tried = (said + float(self.c["page_policy"]["exploration"]) * random)[..., 0]
        clean, apart = pages[:, 3].to(x.dtype) / 255, torch.empty_like(tried)
        for b in range(len(pages)):
            for g in range(count):
                moved = torch.full_like(pages[b, 0], 255)
                right, down, side = int(ids["across"][b, g]) - 5, int(ids["down"][b, g]) - 5, moved.shape[-1]
                to = [slice(max(0, z), side + min(0, z)) for z in (down, right)]
                moved[to[0], to[1]] = pages[b, ids["size"][b, g]][tuple(slice(max(0, -z), side - max(0, z)) for z in (down, right))]
                noisy = (moved.to(x.dtype) / 255).expand(1, 3, -1, -1)
                s = torch.sigmoid(tried[b, g])
                apart[b, g] = ((s * self.denoise(noisy) + (1 - s) * noisy - clean[b]) ** 2).sum().detach()
        kept = (-apart).topk(count // 2, -1)[1]
        rows = sum(F.cross_entropy(logits[name][:, None].expand(-1, count // 2, -1).flatten(0, 1), ids[name].gather(1, kept).flatten()) for name, _, _ in CHOICES)
        return rows + F.mse_loss(torch.sigmoid(strength).expand(-1, count // 2), torch.sigmoid(tried.gather(1, kept)))

    def loss(self, pages, labels):
        if self.c["page_policy"]["only"] == "true":
            return self.judge(pages, labels)
        if "denoiser.final_conv.bias" in self.w:
            clean = pages.to(self.w["denoiser.final_conv.bias"].dtype)[:, None].expand(-1, 3, -1, -1) / 255
            if self.c["denoiser"]["only"] == "true":
                return F.mse_loss(self.denoise(clean), clean)
            pages = (self.denoise(clean).clamp(0, 1) * 255).round()
        if self.c["n2n_pretrain"]["only"] == "true":
            clean = self.tower(pages, CLIP, int(self.v["pretrained_layers"]), self.v["clip_normalize"] == "true")
            return F.mse_loss(self.adapt(clean), clean)
        deep = int(self.r["halt_max_steps"]) > 1
        if deep:
            stays = self.state["carry.done"] > 0  # the pages and labels that stay are those of the file
        x = self.adapt(self.embed(pages) if self.v["fusion_type"] == "none" else self.see(pages))
        for _ in range(int(self.v["H_cycles"]) * int(self.v["L_cycles"])):
            x = self.blocks(x, "encoder.L_blocks", int(self.v["num_layers"]), int(self.v["num_heads"]), 1e-6, False)
        t = self.norm(x, "encoder.pre_pool_norm", 1e-6)
        a = self.linear(t, "encoder.spatial_pool.attn_conv").softmax(1).transpose(1, 2)
        capsules = a @ t
        checksums = self.linear(F.relu(self.linear(capsules, "checksum_head.0")), "checksum_head.2")
        index = a.topk(int(self.v["children_per_capsule"]), -1)[1]
        children = self.linear(t.gather(1, index.flatten(1)[..., None].expand(-1, -1, self.d)), "children_projection").unflatten(1, index.shape[1:])
        high, low = self.w["reasoner.H_init"].expand_as(capsules), self.w["reasoner.L_init"].expand_as(capsules)
        if deep:
            high, low = (torch.where(stays[:, None, None], self.state["carry." + name].to(z.dtype), z) for name, z in (("z_H", high), ("z_L", low)))
        net = lambda z: self.blocks(z, "reasoner.L_level.layers", int(self.r["L_layers"]), int(self.r["num_heads"]), 1e-5, True)
        for _ in range(int(self.r["H_cycles"])):
            high, low = high.detach(), low.detach()
            for _ in range(int(self.r["L_cycles"])):
                low = net(low + (high + capsules))
            high = net(high + low)
        planned = read = self.plan(high)
        commitment = 0
        if self.c["output_head"]["vq_codebook"] != "none":
            book = self.w["output_head.vq_codebook"].detach()
            code = book[torch.cdist(planned.detach(), book[None]).argmin(-1)]
            commitment = .25 * F.mse_loss(planned, code)
            if self.c["output_head"]["vq_codebook"] == "straight_through":
                read = planned + (code - planned).detach()
        logits = self.linear(read, "output_head.output_proj")
        seen = labels >= 0
        right = ((logits.argmax(-1) == labels) | ~seen).all(-1)
        halt = self.linear(high[:, 0], "q_head")[:, 0]
        recall = (1 - F.cosine_similarity(high, capsules, -1)).mean() + .2 * F.mse_loss(children.mean(2), capsules) + .01 * ((checksums.norm(dim=-1) - 1) ** 2).mean()
        words = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1, reduction="none")
        words = (words.sum(1) / seen.sum(1)).mean() if deep else words.sum() / seen.sum()
        return words + commitment + .5 * F.binary_cross_entropy_with_logits(halt, right.to(halt.dtype)) + .5 * recall

    def plan(self, z):
        if self.p["enable_latent_planning"] != "true":
            return z
        ways = torch.stack([self.two(z, f"planner.path_generators.{i}") for i in range(int(self.p["latent_num_paths"]))], 1)
        y = ways.flatten(0, 1)
        for i in range(int(self.p["latent_planning_depth"])):
            y = self.encoder_layer(y, f"planner.refinement.layers.{i}")
        y = y.view_as(ways)
        share = self.two(y.mean(2), "planner.path_scorer").softmax(1)
        out = F.gelu(self.linear((share[..., None] * y).sum(1), "planner.output_projection.0"))
        out = self.norm(out, "planner.output_projection.2", 1e-5) + z
        if self.p["latent_use_adaptive_gate"] != "true":
            return out
        g = torch.sigmoid(self.two(z.mean(1), "planner.gate"))[:, None]
        return g * out + (1 - g) * z


def is_frozen(name, vision, front):
    """The tower but for its last layers, where so many are trained; what the reasoner begins with; and the denoiser in front."""
    if name.startswith(CLIP["p"]):
        layer = name.removeprefix(CLIP["p"] + CLIP["layer"] + ".").split(".")[0]
        return not layer.isdigit() or int(layer) < int(vision["pretrained_layers"]) - int(vision.get("unfreeze_pretrained_layers", 0))
    return name in ("reasoner.H_init", "reasoner.L_init") or name.startswith("denoiser.") and (".running_" in name or front)


def differentiate(weights, config, state, step, batch, dtype):
    w = {name: t.to(dtype).requires_grad_(not is_frozen(name, config["vision_encoder"], config["denoiser"]["only"] != "true")) for name, t in weights.items()}
    seen = batch["train.feature"] if config["page_policy"]["only"] == "true" else batch["train.labels"].long()
    loss = Hybrid(w, config, state, step).loss(batch["train.pages"], seen)
    loss.backward()
    return loss.item(), {name: t.grad for name, t in w.items() if t.grad is not None}


def main():
    ours = load_file(sys.argv[1])
    weights = load_file(sys.argv[2] + "/model.safetensors")
    config = read_config(json.load(open(sys.argv[2] + "/run.json"))["config"])
    state, step = load_file(sys.argv[2] + "/state.safetensors"), int(sys.argv[2].rstrip("/").rsplit("-", 1)[1]) + 1
    if "output_head.vq_codebook" in weights:
        weights["output_head.vq_codebook"] = update_codes(weights, state)  # no leaf: no gradient
    loss, grads = differentiate(weights, config, state, step, ours, torch.float64)
    _, single = differentiate(weights, config, state, step, ours, torch.float32)
    print(f"loss {ours['loss'].item():.8f}, PyTorch in f64 {loss:.8f}")
    largest = max(g.norm().item() for g in grads.values())
    worst, failed = 0, abs(ours["loss"].item() - loss) > LIMIT * abs(loss)
    print(f"{'tensor':70} {'norm':>10} {'difference':>11} {'PyTorch f32':>11}")
    for name in sorted(grads):
        if name not in weights or "grad." + name not in ours:
            failed, _ = True, print(name, "has no gradient in the file")
            continue
        want, got, size = grads[name], ours["grad." + name].double().view_as(grads[name]), grads[name].norm().item()
        apart, torch_apart = (got - want).norm().item(), (single[name].double() - want).norm().item()
        is_zero = size < 1e-5 * largest
        bad = apart > max(ZERO, torch_apart) if is_zero else apart > LIMIT * size
        failed |= bad
        worst = max(worst, 0 if is_zero else apart / size)
        print(f"{name:70} {size:10.3e} {apart if is_zero else apart / size:11.2e} {torch_apart if is_zero else torch_apart / size:11.2e}{' zero' if is_zero else ''}{' FAILED' if bad else ''}")
    print(f"largest difference {worst:.2e} of the norm, {LIMIT} allowed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

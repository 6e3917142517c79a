"""Random configurations of every family, as transformers understands them, against what show_model says.

    transformers_oracle.py SHOW_MODEL [CASES] [SEED]        needs torch and transformers

Each case is a config.json that leaves out or respells some keys, and a model.safetensors without numbers (a sparse file)
whose names and shapes are those of the model that transformers builds of it. Sizes, windows, rotary frequencies, scales,
caps, biases and names of all tensors are compared."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
import transformers

CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "smollm3": "SmolLM3",
           "gemma": "Gemma", "gemma2": "Gemma2", "gemma3_text": "Gemma3Text", "gpt2": "GPT2", "phi3": "Phi3"}


def random_rope(family, draw):
    kinds = ["default"] if family == "phi3" else ["default", "linear", "llama3", "yarn"]
    rope = {"rope_type": draw.choice(kinds), "rope_theta": draw.choice([1e4, 5e5, 1e6, 12345.5])}
    if rope["rope_type"] != "default":
        rope["factor"] = draw.choice([2.0, 4.0, 8.0])
        if draw.random() < .6:
            rope["original_max_position_embeddings"] = draw.choice([64, 512, 4096])
    if rope["rope_type"] == "llama3":
        rope.update(low_freq_factor=draw.choice([1.0, 0.5]), high_freq_factor=draw.choice([4.0, 2.0]))
    if rope["rope_type"] == "yarn":
        extra = {"beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.25, "truncate": False}
        if family == "gemma3_text":
            del extra["truncate"]  # transformers does not see it there
        rope.update({k: v for k, v in extra.items() if draw.random() < .3})
        if draw.random() < .3:
            rope.update(mscale=0.707, mscale_all_dim=draw.choice([0.5, 1.0]))
    return rope


def spell_rope(config, family, draw):
    if family == "gpt2" or draw.random() < .2:
        return
    rope = random_rope(family, draw)
    local = {"rope_type": "default", "rope_theta": draw.choice([1e4, 2e4])}
    if draw.random() < .5:
        config["rope_parameters"] = {"full_attention": rope, "sliding_attention": local} if family == "gemma3_text" else rope
        return
    config["rope_theta"] = rope.pop("rope_theta")
    if family == "gemma3_text" and draw.random() < .5:
        config["rope_local_base_freq"] = local["rope_theta"]
    kind = rope.pop("rope_type")
    if kind != "default":
        old = draw.random() < .5 and family != "gemma3_text"  # where transformers does not see it
        config["rope_scaling"] = {"type" if old else "rope_type": kind, **rope}
    elif draw.random() < .5:
        config["rope_scaling"] = None


def random_sizes(family, draw):
    heads, width = draw.choice([2, 4, 8]), draw.choice([64, 128])
    if family == "gpt2":
        return {"vocab_size": draw.randrange(50, 900), "n_embd": width, "n_layer": draw.randrange(1, 5), "n_head": heads,
                "n_positions": draw.choice([128, 256]), "n_inner": draw.choice([None, 96])}
    sizes = {"vocab_size": draw.randrange(50, 900), "hidden_size": width, "intermediate_size": draw.choice([96, 160]),
             "num_hidden_layers": draw.randrange(1, 9), "num_attention_heads": heads,
             "num_key_value_heads": draw.choice([1, 2, heads]), "max_position_embeddings": draw.choice([128, 4096]),
             "head_dim": draw.choice([16, 32, 64])}
    if family in ("phi3", "qwen2", "smollm3"):
        del sizes["head_dim"]
    return sizes


def random_options(family, layers, draw):
    window = draw.choice([None, 9, 100])
    types = [draw.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]
    all_options = {
        "tie_word_embeddings": draw.random() < .5, "rms_norm_eps": draw.choice([1e-5, 1e-6]),
        "attention_bias": draw.random() < .5, "mlp_bias": draw.random() < .5,
        "sliding_window": window, "use_sliding_window": draw.random() < .7, "max_window_layers": draw.randrange(0, 6),
        "layer_types": types, "no_rope_layer_interval": draw.randrange(2, 5), "sliding_window_pattern": draw.randrange(2, 5),
        "no_rope_layers": [draw.randrange(2) for _ in range(layers)],
        "query_pre_attn_scalar": draw.choice([16, 100]), "final_logit_softcapping": draw.choice([None, 20.0]),
        "attn_logit_softcapping": draw.choice([None, 40.0]), "scale_attn_weights": draw.random() < .5,
        "hidden_act": draw.choice(["silu", "gelu", "gelu_pytorch_tanh"]),
        "hidden_activation": draw.choice(["silu", "gelu", "gelu_pytorch_tanh"]),
        "activation_function": draw.choice(["gelu_new", "gelu"]), "layer_norm_epsilon": 1e-4}
    own = {"llama": "attention_bias mlp_bias hidden_act", "mistral": "sliding_window hidden_act",
           "qwen2": "sliding_window use_sliding_window max_window_layers layer_types hidden_act",
           "qwen3": "attention_bias sliding_window use_sliding_window max_window_layers layer_types hidden_act",
           "smollm3": "attention_bias mlp_bias sliding_window use_sliding_window layer_types no_rope_layers "
                      "no_rope_layer_interval hidden_act",
           "gemma": "attention_bias hidden_act", "phi3": "sliding_window hidden_act",
           "gemma2": "attention_bias sliding_window layer_types query_pre_attn_scalar final_logit_softcapping "
                     "attn_logit_softcapping hidden_activation",
           "gemma3_text": "attention_bias sliding_window layer_types query_pre_attn_scalar final_logit_softcapping "
                          "hidden_activation sliding_window_pattern",
           "gpt2": "scale_attn_weights activation_function layer_norm_epsilon"}[family].split()
    own += ["tie_word_embeddings"] + (["rms_norm_eps"] if family != "gpt2" else [])
    options = {k: all_options[k] for k in own if draw.random() < .6}
    if options.get("sliding_window", 9) is None and family in ("gemma2", "gemma3_text"):
        del options["sliding_window"]  # transformers fails on it
    return options


def random_config(family, draw):
    config = random_sizes(family, draw)
    config |= random_options(family, config.get("num_hidden_layers", 0), draw)
    spell_rope(config, family, draw)
    if draw.random() < .3 and family in ("llama", "mistral"):
        config["head_dim"] = None
    if draw.random() < .1 and family in ("llama", "phi3"):
        config["num_key_value_heads"] = None
    return config | {"model_type": family}


def write_folder(folder, config, tensors):
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 4
        for n in shape:
            size *= n
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def windows_of(model, config, family):
    if family in ("mistral", "phi3"):
        return [config.sliding_window or 0] * config.num_hidden_layers
    if family in ("llama", "gemma", "gpt2"):
        return [0] * config.num_hidden_layers
    if family == "smollm3":
        return [layer.self_attn.sliding_window or 0 for layer in model.model.layers]
    types = config.layer_types
    return [(config.sliding_window or 0) if types[i] == "sliding_attention" else 0 for i in range(len(types))]


def check_rope(model, config, family, got):
    rotary = type(model.model.rotary_emb)(config)  # on a real device
    for i, (rope, _) in enumerate(got["blocks"]):
        has_rope = bool(getattr(model.model.layers[i].self_attn, "use_rope", 1))
        assert (rope >= 0) == has_rope, f"block {i} has rope {rope}"
        if rope < 0:
            continue
        kind = config.layer_types[i] + "_" if family == "gemma3_text" else ""
        mine = got["ropes"][rope]
        torch.testing.assert_close(torch.tensor(mine["frequencies"]), getattr(rotary, kind + "inv_freq").float(),
                                   rtol=3e-6, atol=0)
        theirs = getattr(rotary, kind + "attention_scaling")
        assert abs(mine["magnitude"] - theirs) < 1e-6, (mine["magnitude"], theirs)


def check_sizes(model, config, family, got):
    gpt2 = family == "gpt2"
    first = model.transformer.h[0].attn if gpt2 else model.model.layers[0].self_attn
    head = config.hidden_size // config.num_attention_heads if gpt2 else first.head_dim
    same = {"family": family, "width": config.hidden_size, "layers": config.num_hidden_layers, "vocab": config.vocab_size,
            "heads": config.num_attention_heads, "head_width": head, "context": config.max_position_embeddings,
            "key_heads": config.num_attention_heads if gpt2 else config.num_key_value_heads,
            "is_tied": config.tie_word_embeddings, "inner": (config.n_inner or 4 * config.n_embd) if gpt2 else
            config.intermediate_size}
    scale = (head ** -.5 if config.scale_attn_weights else 1) if gpt2 else first.scaling
    near = {"norm_eps": config.layer_norm_epsilon if gpt2 else config.rms_norm_eps, "attention_scale": scale,
            "attention_cap": (config.attn_logit_softcapping or 0) if family == "gemma2" else 0,
            "output_cap": (config.final_logit_softcapping or 0) if family in ("gemma2", "gemma3_text") else 0,
            "embedding_scale": config.hidden_size ** .5 if family.startswith("gemma") else 1}
    for key, value in same.items():
        assert got[key] == value, (key, got[key], value)
    for key, value in near.items():
        assert abs(got[key] - value) <= 1e-9 * abs(value), (key, got[key], value)
    act = config.activation_function if gpt2 else getattr(config, "hidden_activation", None) or config.hidden_act
    names = {"silu": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh"}
    assert got["activation"] == names[act], (got["activation"], act)


def check(show_model, folder, family, config_file):
    config = getattr(transformers, CLASSES[family] + "Config").from_dict(json.loads(json.dumps(config_file | {"pad_token_id": 0})))
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = {k: list(v.shape) for k, v in model.state_dict().items()}
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight")
    write_folder(folder, config_file, tensors)
    got = json.loads(subprocess.run([show_model, folder], capture_output=True, text=True, check=True).stdout)
    assert "refused" not in got, got["refused"]
    check_sizes(model, config, family, got)
    assert [w for _, w in got["blocks"]] == windows_of(model, config, family), got["blocks"]
    if family != "gpt2":
        check_rope(model, config, family, got)


def main():
    show_model, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = int(sys.argv[3] if len(sys.argv) > 3 else os.environ.get("PLIMSOLL_TEST_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}", flush=True)
    for i in range(cases):
        draw, family = random.Random(f"{seed} {i}"), list(CLASSES)[i % len(CLASSES)]
        config = random_config(family, draw)
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(show_model, folder, family, config)
            except Exception:
                print(f"case {i}: {json.dumps(config)}", flush=True)
                raise
    print(f"ok: {cases} configurations as transformers {transformers.__version__} understands them")


main()

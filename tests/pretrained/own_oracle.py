"""What own.py, an implementation of the same definitions in numpy, reads of a model, compared with what show_model says.

    own_oracle.py SHOW_MODEL MODEL…       needs numpy, and own.py on PYTHONPATH

The programs share nothing but the files. Numbers are the same to the bit, options too; f64 figures to 1e-6."""
import json
import subprocess
import sys
import tempfile

import numpy
import own

NAMES = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
         "qn": "self_attn.q_norm", "kn": "self_attn.k_norm", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
         "down": "mlp.down_proj", "n1": "input_layernorm", "p1": "post_attention_layernorm",
         "p2": "post_feedforward_layernorm"}
OUTER = {"tok": "model.embed_tokens", "pos": "model.embed_positions", "norm": "model.norm", "head": "lm_head"}
NORMS = ("n1", "n2", "p1", "p2", "qn", "kn", "norm")


def canonical(key, options):
    """("1.q.b", …) -> "model.layers.1.self_attn.q_proj.bias"."""
    parts = key.split(".")
    ending = "bias" if parts[-1] == "b" else "weight"
    if parts[0] in OUTER:
        return f"{OUTER[parts[0]]}.{ending}", parts[0]
    post = {"n2": "pre_feedforward_layernorm" if options.post else "post_attention_layernorm"}
    return f"model.layers.{parts[0]}.{(NAMES | post)[parts[1]]}.{ending}", parts[1]


def expected_tensors(options, weights):
    out = {}
    for key, value in weights.items():
        name, kind = canonical(key, options)
        value = numpy.asarray(value).astype(numpy.float32)
        if options.norm == "rms1" and kind in NORMS:
            value = value + numpy.float32(1)
        out[name] = value
    return out


def expected_ropes(options):
    if options.pos != "rope":
        return [[-1, w] for w in options.win], None
    return [[None if r else -1, w] for r, w in zip(options.rope, options.win)], options.rope


def check_options(options, got):
    acts = {"silu": "silu", "gelu_tanh": "gelu_tanh", "gelu_erf": "gelu"}
    same = {"family": options.family, "activation": acts[options.act], "width": options.d, "layers": options.layers,
            "heads": options.heads, "key_heads": options.kv, "head_width": options.hd, "inner": options.ffn,
            "vocab": options.vocab, "context": options.ctx, "is_layer_norm": options.norm == "layer",
            "has_post_norms": options.post, "has_qk_norm": options.qk, "is_gated": options.gated,
            "is_tied": bool(options.tied), "has_position_table": options.pos == "table"}
    near = {"norm_eps": options.eps, "embedding_scale": options.emb, "attention_scale": options.scale,
            "attention_cap": options.cap_att or 0, "output_cap": options.cap_out or 0}
    for key, value in same.items():
        assert got[key] == value, (key, got[key], value)
    for key, value in near.items():
        assert abs(got[key] - value) <= 1e-6 * abs(value), (key, got[key], value)
    blocks, ropes = expected_ropes(options)
    for i, (rope, window) in enumerate(blocks):
        assert got["blocks"][i][1] == window, (i, got["blocks"][i], window)
        assert (got["blocks"][i][0] == -1) == (rope == -1), i
        if rope is None:
            mine = got["ropes"][got["blocks"][i][0]]
            numpy.testing.assert_allclose(mine["frequencies"], ropes[i][0], rtol=1e-6)
            assert abs(mine["magnitude"] - ropes[i][1]) < 1e-12


def check(show_model, path, staging):
    with tempfile.NamedTemporaryFile() as numbers:
        shown = subprocess.run([show_model, path, numbers.name], capture_output=True, text=True, check=True,
                               env={"STAGING_BYTES": str(staging)})
        got = json.loads(shown.stdout)
        assert "refused" not in got, got["refused"]
        values = numpy.fromfile(numbers.name, numpy.float32)
    options, weights = own.load(path)
    options.vocab = len(weights["tok"])
    check_options(options, got)
    expected, at = expected_tensors(options, weights), 0
    for name, rows, columns, _, _ in got["tensors"]:
        mine = values[at:at + rows * columns]
        at += rows * columns
        want = expected.pop(name)
        assert want.size == mine.size, (name, want.shape, rows, columns)
        assert (want.reshape(-1).view(numpy.uint32) == mine.view(numpy.uint32)).all(), f"{name} has other numbers"
    assert at == len(values) and not expected, f"not read: {sorted(expected)}"
    return len(got["tensors"]), at, got["heap_bytes"]


def main():
    show_model, models = sys.argv[1], sys.argv[2:]
    for i, path in enumerate(models):
        tensors, numbers, heap = check(show_model, path, (4096, 5000, 1 << 20)[i % 3])
        print(f"ok {path}: {tensors} tensors, {numbers} numbers, {heap} bytes of heap", flush=True)


main()

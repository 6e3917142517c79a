"""ONNX's own checker and ONNX Runtime, for export_tests.py: export_onnx.py JOB.json, run by a Python that has onnx, onnxruntime and numpy.

The job names the model; for each input a file of raw numbers with its dtype and shape ("pages": bytes that become planes of three colours
from 0 to 1); for each output a file of f32 that Plimsoll left, and a matrix of a safetensors file that is still to be multiplied with it, or
null. Prints {"inputs", "outputs": name → shape as declared, "errors": output → largest difference over largest magnitude, …}.

"int8" names the folder in which export_forward left what went through layers in 8 bits. A number that is next to a half step is rounded this way
or that, whatever is done, and what is one step away in the first layer may be several in the last. So it is shown piece by piece: "layers" has
what each layer makes of what came to ours, alone; "between" what everything but the layers makes of what ours gave out. Both are done by ONNX
Runtime with all that it can do, which makes products of integers of the layers ("fused"), and, each node as it stands, by ONNX's own reference
("plain"). "whole" is how far the whole model is away then: the root of Σ(theirs − ours)² / Σ ours², of each output."""
import json
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

job = json.load(open(sys.argv[1]))
path = job["model"]
onnx.checker.check_model(path, full_check=True)
model = onnx.load(path, load_external_data=False)
found = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
known = {v.name for v in found.graph.value_info} | {v.name for v in found.graph.output}


def shapes(ports):
    return {p.name: [d.dim_param or d.dim_value for d in p.type.tensor_type.shape.dim] for p in ports}


def matrix(path, name):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin, end = header[name]["data_offsets"]
        file.seek(begin, 1)
        return np.frombuffer(file.read(end - begin), np.float32).reshape(header[name]["shape"])


def feed(how):
    x = np.fromfile(how["file"], how["dtype"]).reshape(how["shape"])
    if how.get("pages"):
        x = np.repeat((x.astype(np.float32) / np.float32(255))[:, None], 3, 1)
    return x.astype(np.int64) if x.dtype == np.int32 else x


def open_session(of, level=None, optimized=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if level is not None:
        options.graph_optimization_level = level
    if optimized:
        options.optimized_model_filepath = optimized
    return onnxruntime.InferenceSession(of, options, providers=["CPUExecutionProvider"])


def run(session):
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs)))


def compare(got):
    """output → (largest difference over largest magnitude, root of Σ(theirs − ours)² / Σ ours²)"""
    errors = {}
    for name, how in job["outputs"].items():
        ours = np.fromfile(how["file"], np.float32).astype(np.float64)
        if how.get("times"):
            w = matrix(*how["times"])
            ours = ours.reshape(-1, w.shape[1]) @ w.T.astype(np.float64)
        off = got[name] - ours.reshape(got[name].shape)
        errors[name] = (float(np.abs(off).max() / max(np.abs(ours).max(), 1e-30)), float(np.sqrt((off ** 2).sum() / max((ours ** 2).sum(), 1e-30))))
    return errors


# ---- layers in 8 bits ----

def find_layers(graph):
    """In their order: the nodes QuantizeLinear, DequantizeLinear, that of the matrix, MatMul, and Add of a bias or None."""
    makes = {o: n for n in graph.node for o in n.output}
    reads = {i: n for n in graph.node if n.op_type == "Add" for i in n.input}
    tensors = {t.name: t for t in graph.initializer}
    for n in graph.node:
        weight = makes.get(n.input[1]) if n.op_type == "MatMul" else None
        if weight is None or weight.op_type != "DequantizeLinear":
            continue
        back, add = makes[n.input[0]], reads.get(n.output[0])
        is_bias = add is not None and any(i in tensors and len(tensors[i].dims) == 1 for i in add.input)
        yield makes[back.input[0]], back, weight, n, add if is_bias else None


def no_dims(name, dtype):
    return helper.make_tensor_value_info(name, dtype, None)


def one_layer(of, nodes):
    """A model of these nodes alone, x → u8, y."""
    wanted = [n for n in nodes if n is not None]
    x, given = nodes[0].input[0], {i for n in wanted for i in n.input}
    graph = helper.make_graph(
        wanted, "layer", [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, [None, None, None])],
        [no_dims(nodes[0].output[0], onnx.TensorProto.UINT8), no_dims(wanted[-1].output[0], onnx.TensorProto.FLOAT)],
        [t for t in of.graph.initializer if t.name in given])
    return helper.make_model(graph, opset_imports=of.opset_import, ir_version=of.ir_version)


def without_layers(of, layers):
    """The model to which what layers give out is given, and which gives out what comes to them in u8, too."""
    whole = onnx.ModelProto()
    whole.CopyFrom(of)
    dims = {v.name: v.type.tensor_type.shape for v in found.graph.value_info}
    given = {(nodes[4] or nodes[3]).output[0]: f"given.{k}" for k, nodes in enumerate(layers)}
    for n in whole.graph.node:
        n.input[:] = [given.get(i, i) for i in n.input]
    shapes = []
    for name, to in given.items():
        shapes.append([d.dim_value or -1 for d in dims[name].dim])
        whole.graph.input.append(helper.make_tensor_value_info(to, onnx.TensorProto.FLOAT, [None if d < 0 else d for d in shapes[-1]]))
    whole.graph.output.extend(no_dims(q, onnx.TensorProto.UINT8) for q in dict.fromkeys(nodes[0].output[0] for nodes in layers))
    return whole, shapes


def left(folder, k, what):
    try:
        return np.fromfile(f"{folder}/int8.{k}.{what}", np.float32)
    except FileNotFoundError:
        return np.float32(0)


def count_steps(told, theirs, x, scale, zero):
    """Of u8 from those that docs/quantize.md makes of x."""
    steps = np.abs(theirs.astype(int).reshape(x.shape) - np.clip(np.rint(x / scale) + zero, 0, 255))
    told["others"] += int((steps > 0).sum())
    told["numbers"] += steps.size
    told["steps"] = max(told["steps"], int(steps.max()))
    return steps


def compare_layers(folder, of, evaluate):
    """error: the largest difference of what a layer gives out that is not explained by steps, over the largest number, that with what is
    added to it."""
    tensors = {t.name: numpy_helper.to_array(t) for t in of.graph.initializer}
    told = {"others": 0, "steps": 0, "numbers": 0, "error": 0}
    for k, nodes in enumerate(find_layers(of.graph)):
        q, own, scale, zero = tensors[nodes[2].input[0]], tensors[nodes[2].input[1]], tensors[nodes[0].input[1]], tensors[nodes[0].input[2]]
        x = left(folder, k, "x").reshape(1, -1, q.shape[0])
        y = left(folder, k, "y").astype(np.float64) - left(folder, k, "residual")
        rounded, product = evaluate(one_layer(of, nodes), {nodes[0].input[0]: x})
        allowed = (count_steps(told, rounded, x, scale, zero) * scale) @ (np.abs(q.astype(np.float64)) * own)
        beyond = np.maximum(np.abs(product - y.reshape(product.shape)) - allowed, 0)
        told["error"] = max(told["error"], float(beyond.max() / np.abs(left(folder, k, "y")).max()))
    return told


def compare_between(folder, of, evaluate):
    layers = list(find_layers(of.graph))
    tensors = {t.name: numpy_helper.to_array(t) for t in of.graph.initializer}
    told = {"others": 0, "steps": 0, "numbers": 0}
    whole, shapes = without_layers(of, layers)
    given = {f"given.{k}": (left(folder, k, "y") - left(folder, k, "residual")).reshape(s) for k, s in enumerate(shapes)}
    got = dict(zip([o.name for o in whole.graph.output], evaluate(whole, {**inputs, **given})))
    for k, nodes in enumerate(layers):
        count_steps(told, got[nodes[0].output[0]], left(folder, k, "x"), tensors[nodes[0].input[1]], tensors[nodes[0].input[2]])
    told["errors"] = {n: e[0] for n, e in compare(got).items()}
    return told


def fused(of, given):
    return open_session(of.SerializeToString()).run(None, given)


def plain(of, given):
    return ReferenceEvaluator(of, new_ops=[QuantizeLinear, DequantizeLinear]).run(None, given)


class QuantizeLinear(OpRun):
    """The reference has these two of later opsets only."""
    op_domain = ""

    def _run(self, x, scale, zero, **_):
        return (np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8),)


class DequantizeLinear(OpRun):
    op_domain = ""

    def _run(self, q, scale, zero=0, **_):
        return ((q.astype(np.int32) - np.int32(zero)).astype(np.float32) * scale,)  # behind the last axis, scales are a row


def count_operators(of):
    count = {}
    for n in of.graph.node:
        count[n.op_type] = count.get(n.op_type, 0) + 1
    return count


def add_int8(told, folder):
    whole = onnx.load(path)
    names = [o.name for o in model.graph.output]
    told["ours"] = [line.split()[0] for line in open(folder + "/int8.txt")]
    told["theirs"] = [nodes[2].input[0] for nodes in find_layers(whole.graph)]
    told["operators"] = {"written": count_operators(model), "optimized": count_operators(onnx.load("optimized.onnx"))}
    unfused = run(open_session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL))
    told["whole"] = {how: {n: e[1] for n, e in compare(got).items()} for how, got in
                     (("fused", run(session)), ("unfused", unfused), ("plain", dict(zip(names, plain(whole, inputs)))))}
    for evaluate in (fused, plain) if told["ours"] == told["theirs"] else ():
        told[evaluate.__name__] = {"layers": compare_layers(folder, whole, evaluate), "between": compare_between(folder, whole, evaluate)}


inputs = {name: feed(how) for name, how in job["inputs"].items()}
session = open_session(path, optimized="optimized.onnx" if job.get("int8") else None)
told = {"inputs": shapes(model.graph.input), "outputs": shapes(model.graph.output), "errors": {n: e[0] for n, e in compare(run(session)).items()},
        "opset": [(o.domain, o.version) for o in model.opset_import],
        "producer": [model.producer_name, model.producer_version], "metadata": {p.key: p.value for p in model.metadata_props},
        "nodes": len(model.graph.node), "initializers": [t.name for t in model.graph.initializer],
        "unshaped": [o for n in model.graph.node for o in n.output if o not in known]}
if job.get("int8"):
    add_int8(told, job["int8"])
print(json.dumps(told))

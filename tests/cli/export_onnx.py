"""ONNX's own checker and ONNX Runtime, for export_tests.py: export_onnx.py JOB.json, run by a Python that has onnx, onnxruntime and numpy.

The job names the model; for each input a file of raw numbers with its dtype and shape ("pages": bytes that become planes of three colours
from 0 to 1); for each output a file of f32 that Plimsoll left, and a matrix of a safetensors file that is still to be multiplied with it, or
null. Prints {"inputs", "outputs": name → shape as declared, "errors": output → largest difference over largest magnitude, …}."""
import json
import sys

import numpy as np
import onnx
import onnxruntime

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


options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(path, options)
names = [o.name for o in session.get_outputs()]
got = dict(zip(names, session.run(None, {name: feed(how) for name, how in job["inputs"].items()})))
errors = {}
for name, how in job["outputs"].items():
    ours = np.fromfile(how["file"], np.float32)
    if how.get("times"):
        w = matrix(*how["times"])
        ours = ours.reshape(-1, w.shape[1]).astype(np.float64) @ w.T.astype(np.float64)
    ours = ours.reshape(got[name].shape)
    errors[name] = float(np.abs(got[name] - ours).max() / max(np.abs(ours).max(), 1e-30))
initializers = [t.name for t in model.graph.initializer]
print(json.dumps({"inputs": shapes(model.graph.input), "outputs": shapes(model.graph.output), "errors": errors,
                  "opset": [(o.domain, o.version) for o in model.opset_import], "producer": [model.producer_name, model.producer_version],
                  "metadata": {p.key: p.value for p in model.metadata_props}, "nodes": len(model.graph.node),
                  "initializers": initializers, "unshaped": [o for n in model.graph.node for o in n.output if o not in known]}))

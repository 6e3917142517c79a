"""What other programs make of a conversion: converted_models.py FAMILY..., in a folder with FAMILY (the original),
FAMILY.gguf, FAMILY-back and FAMILY.q4_0.gguf. Needs torch, transformers and gguf."""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import torch
import transformers
from gguf import GGUFReader, dequantize, quantize
from gguf.constants import GGMLQuantizationType

TEXTS = ["", "the cat and the dog", "  two  blanks", "1234 <s> x</s>", "\u00e9\u6771\u4eac \U0001f600\n\nit's"]


def logits(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.arange(0, 40).remainder(259)[None]).logits[0].numpy()


def judge(family):
    want, got = logits(family), logits(family + "-back")
    assert numpy.abs(want - got).max() <= 1e-4 * want.std(), (family, numpy.abs(want - got).max())

    first, second = (transformers.AutoTokenizer.from_pretrained(f) for f in (family, family + "-back"))
    for text in TEXTS:
        a, b = first(text)["input_ids"], second(text)["input_ids"]
        assert a == b and first.decode(a) == second.decode(b), (text, a, b)
    assert first.eos_token == second.eos_token and first.bos_token == second.bos_token

    whole, packed = GGUFReader(family + ".gguf"), GGUFReader(family + ".q4_0.gguf")
    for a, b in zip(whole.tensors, packed.tensors):
        assert a.name == b.name and a.tensor_type == GGMLQuantizationType.F32
        made = quantize(numpy.array(a.data), b.tensor_type)
        assert (made.view(numpy.uint8).ravel() == numpy.array(b.data).view(numpy.uint8).ravel()).all(), a.name
        dequantize(b.data, b.tensor_type)
    print(family, "ok")


for name in sys.argv[1:]:
    judge(name)

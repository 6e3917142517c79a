"""CLIP's vision tower in plain Python, up to the last hidden state without the class token: the formulas of docs/hybrid.md, in double precision."""
import math

from encode_oracle import layer_norm, plus, shaped, softmax, times

MEAN, DEVIATION = (.48145466, .4578275, .40821073), (.26862954, .26130258, .27577711)


class Tower:
    """weights: name behind "vision_model." → (shape, numbers)"""

    def __init__(self, weights, heads, layers, eps=1e-5):
        self.w = {name: shaped(shape, numbers) for name, (shape, numbers) in weights.items()}
        self.heads, self.layers, self.eps = heads, layers, eps

    def linear(self, x, name):
        return times(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return layer_norm(x, self.w[name + ".weight"], self.w[name + ".bias"], self.eps)

    def patches(self, page):
        weight = self.w["embeddings.patch_embedding.weight"]
        p, side = len(weight[0][0]), len(page)
        flat = [[v for colour in out for row in colour for v in row] for out in weight]
        rows = []
        for top in range(0, side, p):
            for left in range(0, side, p):
                grey = [page[top + i][left + j] / 255 for i in range(p) for j in range(p)]
                rows.append([(v - mean) / deviation for mean, deviation in zip(MEAN, DEVIATION) for v in grey])
        return times(rows, flat)

    def attention(self, h, name):
        q, k, v = (self.linear(h, f"{name}.{part}_proj") for part in "qkv")
        size, out = len(h[0]) // self.heads, [[] for _ in h]
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            for i, row in enumerate(q):
                a = softmax([math.fsum(x * y for x, y in zip(row[own], other[own])) / math.sqrt(size) for other in k])
                out[i] += [math.fsum(share * other[own][c] for share, other in zip(a, v)) for c in range(size)]
        return self.linear(out, f"{name}.out_proj")

    def features(self, page):
        x = plus([self.w["embeddings.class_embedding"]] + self.patches(page), self.w["embeddings.position_embedding.weight"])
        x = self.norm(x, "pre_layrnorm")
        for i in range(self.layers):
            name = f"encoder.layers.{i}."
            x = plus(x, self.attention(self.norm(x, name + "layer_norm1"), name + "self_attn"))
            h = [[v / (1 + math.exp(-1.702 * v)) for v in row] for row in self.linear(self.norm(x, name + "layer_norm2"), name + "mlp.fc1")]
            x = plus(x, self.linear(h, name + "mlp.fc2"))
        return x[1:]


class TrainedTower(Tower):
    """ViTModel, up to the last hidden state without the class token. weights: name behind "vit." → (shape, numbers), the convolution as a matrix."""
    RENAMED = (("embeddings.cls_token", "embeddings.class_embedding"), ("embeddings.position_embeddings", "embeddings.position_embedding.weight"), ("encoder.layer.", "encoder.layers."),
               (".attention.attention.query.", ".self_attn.q_proj."), (".attention.attention.key.", ".self_attn.k_proj."), (".attention.attention.value.", ".self_attn.v_proj."))

    def __init__(self, weights, heads, layers):
        super().__init__(weights, heads, layers, 1e-12)
        for old, new in self.RENAMED:
            self.w = {name.replace(old, new): tensor for name, tensor in self.w.items()}

    def patches(self, page, p):
        name, side = "embeddings.patch_embeddings.projection", len(page)
        return self.linear([[page[top + i][left + j] / 255 for _ in range(3) for i in range(p) for j in range(p)] for top in range(0, side, p) for left in range(0, side, p)], name)

    def attention(self, h, name):
        self.w.update({f"{name}.out_proj.{kind}": self.w[name.replace("self_attn", "attention.output.dense") + "." + kind] for kind in ("weight", "bias")})
        return super().attention(h, name)

    def features(self, page, p=16):
        x = plus([self.w["embeddings.class_embedding"]] + self.patches(page, p), self.w["embeddings.position_embedding.weight"])
        for i in range(self.layers):
            name = f"encoder.layers.{i}."
            x = plus(x, self.attention(self.norm(x, name + "layernorm_before"), name + "self_attn"))
            x = plus(x, self.linear(gelu(self.linear(self.norm(x, name + "layernorm_after"), name + "intermediate.dense")), name + "output.dense"))
        return self.norm(x, "layernorm")[1:]


def gelu(rows):
    return [[v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in row] for row in rows]

"""Rows of tables that data names, or of parts of batches, and what follows them, beside torch, eager and compiled.

python3 embeddings.py export DIR [NAME ...]      as blocks.py does
python3 embeddings.py time PACKAGES [NAME ...]"""
import sys
import torch, torch.nn.functional as F
import blocks
from blocks import rms
E = F.embedding
def norm(x, g, b): return F.layer_norm(x, (x.shape[-1],), g, b)
def sums(i, w, p, g, b): x = E(i, w) + p; return x, norm(x, g, b)
def kept(i, w, g): x = E(i, w); return x, rms(x, g)
def taken(x, i): return torch.gather(x, 1, i[..., None].expand(-1, -1, x.shape[-1]))
def rows(most, *shape): return ("rows", most, *shape)
def table(*shape): return ("normal", *shape)
blocks.CASES.clear()
blocks.CASES.update({
    **{f"bert_{d}": (lambda i, t, w, p, v, g, b: norm(E(i, w) + p + E(t, v), g, b), [rows(30522, 16, 512), rows(2, 16, 512), table(30522, d), table(512, d), table(2, d), (d,), (d,)]) for d in (768, 1024)},
    "word_and_place": (lambda i, w, p, g, b: norm(E(i, w) + p, g, b), [rows(30522, 16, 512), table(30522, 768), table(512, 768), (768,), (768,)]),
    "roberta": (lambda i, j, w, p, g, b: norm(E(i, w) + E(j, p), g, b), [rows(50265, 32, 512), rows(514, 32, 512), table(50265, 1024), table(514, 1024), (1024,), (1024,)]),
    "gpt2": (sums, [rows(50257, 8, 1024), table(50257, 768), table(1024, 768), (768,), (768,)]), "gpt2_xl": (sums, [rows(50257, 8, 1024), table(50257, 1600), table(1024, 1600), (1600,), (1600,)]),
    **{f"rms_{d}": (lambda i, w, g: rms(E(i, w), g), [rows(32000, n), table(32000, d), (d,)]) for d, n in ((2048, 16384), (4096, 8192), (8192, 8192), (16384, 4096))}, "llama": (kept, [rows(32000, 4, 2048), table(32000, 4096), (4096,)]),
    "gemma": (lambda i, w, g: rms(E(i, w) * 48.0, g), [rows(256000, 4, 2048), table(256000, 2304), (2304,)]), "normalized": (lambda i, w: F.normalize(E(i, w).float(), dim=-1).half(), [rows(100000, 65536), table(100000, 256)]),
    **{f"scores_{d}": (lambda i, j, u, v: (E(i, u) * E(j, v)).sum(-1), [rows(100000, 262144), rows(100000, 262144), table(100000, d), table(100000, d)]) for d in (64, 128)},
    "translated": (lambda i, r, j, e, t: (E(i, e) + E(r, t) - E(j, e)).float().norm(dim=-1), [rows(100000, 65536), rows(1000, 65536), rows(100000, 65536), table(100000, 256), table(1000, 256)]),
    **{f"bag_{d}": (lambda i, w: E(i, w).float().sum(1).half(), [rows(100000, 8192, 32), table(100000, d)]) for d in (64, 128, 512)}, "biases": (lambda x, i, b: F.gelu(x + E(i, b)), [table(16384, 2048), rows(64, 16384), table(64, 2048)]),
    "codes": (lambda z, i, c: z + (E(i, c) - z) * 0.5, [table(65536, 256), rows(8192, 65536), table(8192, 256)]), "softmax": (lambda i, w: F.softmax(E(i, w), -1), [rows(50000, 8192), table(50000, 4096)]), "taken": (lambda x, i: norm(taken(x, i), None, None), [table(64, 1024, 1024), rows(1024, 64, 256)]), "taken_alone": (taken, [table(64, 1024, 1024), rows(1024, 64, 256)]), "indexed": (lambda x, i, g: rms(x[i], g), [table(4096, 4096), rows(4096, 8192), (4096,)]),
    **{f"shifted_loss_{n}": (lambda x, t: -torch.gather(F.log_softmax(x[:, :-1], -1), 2, t[:, 1:, None]), [table(8, 512, n), rows(n, 8, 512)]) for n in (8000, 32000, 50304)},
    **{f"experts_{k}": (lambda y, i, w: (y[i] * w[..., None]).sum(1), [table(16384, 2048), rows(16384, 4096, k), table(4096, k)]) for k in (2, 4, 8)}, "neighbours": (lambda h, i: h[i].mean(1), [table(65536, 128), rows(65536, 65536, 16)]), "mean_pool": (lambda x: x.mean(1), [table(64, 512, 768)]),
    "places": (lambda x, g, b: norm(x[:, 1:], g, b), [table(64, 197, 768), (768,), (768,)]), "class": (lambda x, g, b: norm(x[:, 0], g, b), [table(4096, 50, 768), (768,), (768,)]), "differences": (lambda x: (x[:, 1:] - x[:, :-1]).float().pow(2).mean(-1), [table(16, 1024, 1024)]),
    "alone": (lambda i, w: E(i, w), [rows(50000, 16384), table(50000, 2048)]),
})
if __name__ == "__main__":
    {"export": blocks.export, "time": blocks.time}[sys.argv[1]](sys.argv[2], sys.argv[3:])

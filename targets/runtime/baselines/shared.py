"""What batches and rows share behind products (convolutions, channels, gates), and rows that are parts of longer ones, beside torch, eager and compiled.

python3 shared.py export DIR [NAME ...]      as blocks.py does
python3 shared.py time PACKAGES [NAME ...]"""
import sys
import torch, torch.nn.functional as F
import blocks
from blocks import rms
L, C = F.linear, F.conv2d
def norm(x, m, v, g, b): return F.batch_norm(x, m, v.abs() + 0.5, g, b)
def conv_norm(x, w, *s, **how): return F.relu(norm(C(x, w, **how), *s))
def bottleneck(x, w1, *rest):
    a, w2, b, w3, c = rest[:4], rest[4], rest[5:9], rest[9], rest[10:]
    return F.relu(x + norm(C(conv_norm(conv_norm(x, w1, *a), w2, *b, padding=1), w3), *c))
def inverted(x, w1, *rest):
    a, d, b, w3, c = rest[:4], rest[4], rest[5:9], rest[9], rest[10:]
    h = F.hardtanh(norm(C(x, w1), *a), 0, 6); h = F.hardtanh(norm(C(h, d, padding=1, groups=h.shape[1]), *b), 0, 6); return x + norm(C(h, w3), *c)
def modulated(x, s, g): return F.layer_norm(x, (x.shape[-1],), eps=1e-6) * (1 + g[:, None]) + s[:, None]
def dit(x, s, g, a, w1, b1, w2, b2): return x + a[:, None] * L(F.gelu(L(modulated(x, s, g), w1, b1), approximate="tanh"), w2, b2)
def dit_of(x, c, w, b, *rest): return dit(x, *L(F.silu(c), w, b).chunk(3, -1), *rest)
def compressed(x, w, n, u): c, r = L(x, w).split((512, 64), -1); return L(rms(c, n), u), r
def gated(xz, n): x, z = xz.chunk(2, -1); h = x.float() * F.silu(z.float()); return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * n
def two_norms(x, n, b, m, c): a, d = x.chunk(2, -1); return F.layer_norm(a, (1024,), n, b), F.layer_norm(d, (1024,), m, c)
def spatial(x, l, b, w, c): u, v = x.chunk(2, -1); return u * (w @ F.layer_norm(v, (1024,), l, b) + c[:, None])
def normal(*shapes): return [("normal", *shape) for shape in shapes]
def image(b, c, w): return ("normal", b, c, w, w)
def stats(c): return normal(*[(c,)] * 4)
D = 1152
ROWS, MLP = ("normal", 16, 256, D), [(4 * D, D), (4 * D,), (D, 4 * D), (D,)]
blocks.CASES.clear()
blocks.CASES.update({
    **{f"conv_1x1_{c}x{w}": (C, [image(32, c, w), (o, c, 1, 1)]) for c, w, o in ((256, 28, 512), (64, 56, 256), (1024, 14, 256))}, "conv_1x1_norm": (conv_norm, [image(32, 256, 28), (512, 256, 1, 1), *stats(512)]),
    "conv_3x3_norm": (lambda *xs: conv_norm(*xs, padding=1), [image(32, 128, 28), (128, 128, 3, 3), *stats(128)]), "conv_7x7_norm": (lambda *xs: conv_norm(*xs, stride=2, padding=3), [image(32, 3, 224), (64, 3, 7, 7), *stats(64)]),
    "conv_stride": (lambda x, w, b: F.relu(C(x, w, b, stride=2, padding=1)), [image(32, 64, 56), (128, 64, 3, 3), (128,)]), "conv_group_norm": (lambda x, w, g, b: F.silu(F.group_norm(C(x, w, padding=1), 32, g, b)), [image(4, 128, 64), (128, 128, 3, 3), (128,), (128,)]),
    "conv_transposed": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [image(8, 128, 32), (128, 64, 2, 2)]), "upsampled": (lambda x, w, b: C(F.interpolate(x, scale_factor=2.0), w, b, padding=1), [image(4, 128, 64), (128, 128, 3, 3), (128,)]),
    "bottleneck": (bottleneck, [image(32, 256, 56), (64, 256, 1, 1), *stats(64), (64, 64, 3, 3), *stats(64), (256, 64, 1, 1), *stats(256)]),
    "inverted_residual": (inverted, [image(32, 32, 56), (192, 32, 1, 1), *stats(192), (192, 1, 3, 3), *stats(192), (32, 192, 1, 1), *stats(32)]),
    "conv_1d": (lambda x, w, b: F.gelu(F.conv1d(x, w, b, padding=1)), [("normal", 8, 80, 3000), (512, 80, 3), (512,)]), "conv_1d_1": (lambda x, w, b: F.conv1d(x, w, b), [("normal", 16, 512, 1500), (1024, 512, 1), (1024,)]),
    "conv_1d_gated": (lambda x, w, b: F.glu(F.conv1d(x, w, b), 1), [("normal", 16, 512, 1500), (1024, 512, 1), (1024,)]), "norm_eval": (lambda *xs: F.relu(norm(*xs)), [image(32, 256, 56), *stats(256)]),
    "film": (lambda x, g, b: x * (1 + g[:, :, None, None]) + b[:, :, None, None], [image(16, 256, 64), (16, 256), (16, 256)]), "gate_residual": (lambda x, a, h, w, b: x + a[:, None] * L(h, w, b), [ROWS, (16, D), ROWS, (D, D), (D,)]),
    "dit": (dit, [ROWS, *[(16, D)] * 3, *MLP]), "dit_conditioned": (dit_of, [ROWS, (16, D), (3 * D, D), (3 * D,), *MLP]), "head_gate": (lambda o, g, w: L((o * torch.sigmoid(g)[..., None]).flatten(-2), w), [("normal", 4096, 16, 64), ("normal", 4096, 16), (1024, 1024)]),
    "rms_of_slice": (lambda x, n: rms(x[..., :512], n), [("normal", 16384, 576), (512,)]), "compressed_kv": (compressed, [("normal", 4096, 5120), (576, 5120), (512,), (4096, 512)]), "gated_rms": (gated, [("normal", 8192, 8192), (4096,)]),
    "two_norms": (two_norms, [("normal", 8192, 2048), *[(1024,)] * 4]), "spatial_gate": (spatial, [("normal", 32, 256, 2048), (1024,), (1024,), ("normal", 256, 256), (256,)]), "experts": (lambda y, w: (y * w[..., None]).sum(1), normal((4096, 8, 2048), (4096, 8))),
})
if __name__ == "__main__":
    {"export": blocks.export, "time": blocks.time}[sys.argv[1]](sys.argv[2], sys.argv[3:])

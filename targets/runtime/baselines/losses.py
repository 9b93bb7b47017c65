"""Losses, what whole tensors are reduced to, places of extremes, gates and einsums beside torch, eager and compiled.

python3 losses.py export DIR [NAME ...]      as blocks.py does
python3 losses.py time PACKAGES [NAME ...]"""
import sys
import torch, torch.nn.functional as F
import blocks
E, L = torch.einsum, F.linear
def unit(x): return x / (x.float().pow(2).sum(-1, keepdim=True).sqrt().clamp(min=1e-12)).to(x.dtype)
def lse(x, d): m = x.amax(d, keepdim=True); return (torch.log(torch.exp(x - m).sum(d, keepdim=True)) + m).squeeze(d)
def clip_loss(a, b): s = unit(a) @ unit(b).t() * 14.0; return -(torch.log_softmax(s.float(), -1).diagonal().mean() + torch.log_softmax(s.t().float(), -1).diagonal().mean()) / 2
def info_nce(a, b): s = (a @ b.t()).float() * 0.05; return lse(s, -1).mean() + lse(s, 0).mean() - 2 * s.diagonal().mean()
def linear_loss(x, w, t): y = L(x, w).float(); return lse(y, -1) - y.gather(-1, t[:, None])[:, 0]
def dice(x, t): p, t = torch.sigmoid(x.float()).flatten(1), t.float().flatten(1); return (1 - (2 * (p * t).sum(-1) + 1) / (p.sum(-1) + t.sum(-1) + 1)).mean()
def nearest_code(x, c): return (x.float().pow(2).sum(-1, keepdim=True) - 2 * (x @ c.t()).float() + c.float().pow(2).sum(-1)[None]).argmin(-1)
def clipped(g): n = g.float().pow(2).sum().sqrt(); return g * (1.0 / (n + 1e-6)).clamp(max=1.0).to(g.dtype)
def standardised(x): h = x.float(); return ((h - h.mean()) * torch.rsqrt(h.var(unbiased=False) + 1e-5)).to(x.dtype)
def lstm(x, h, c, w, u, b): i, f, o, n = (L(x, w, b) + L(h, u)).chunk(4, -1); c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n); return torch.sigmoid(o) * torch.tanh(c), c
def patches(x, l, b, w): return L(F.layer_norm(torch.cat((x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]), -1), (384,), l, b), w)
def of_channels(q, k, v, t): q, k = (F.normalize(own.float(), dim=-2).to(v.dtype) for own in (q, k)); return v @ torch.softmax((k.transpose(-1, -2) @ q) * t, -2)
def normal(*shapes): return [("normal", *shape) for shape in shapes]
ROWS, IMAGE, HEADS = (8192, 4096), (4, 64, 256, 256), (16, 12, 512, 64)
blocks.CASES.clear()
blocks.CASES.update({
    "clip_loss": (clip_loss, [(4096, 512)] * 2), "info_nce": (info_nce, [(4096, 512)] * 2), "linear_loss": (linear_loss, [(2048, 2048), (32000, 2048), ("int", 2048)]),
    "loss_of_transposed": (lambda s: torch.log_softmax(s.t().float(), -1).diagonal().mean(), normal((4096, 4096))), "dice": (dice, normal(*[(64, 1, 512, 512)] * 2)),
    "nearest_code": (nearest_code, normal((16384, 256), (1024, 256))), "clip_gradient": (clipped, normal((4096, 8192))), "normalise_all": (lambda x: x / x.float().norm().to(x.dtype), normal((4096, 8192))),
    "most_of_all": (lambda x: x / x.abs().max(), normal((4096, 8192))), "standardise_all": (standardised, normal((4096, 4096))), "layer_norm_2d": (lambda x: F.layer_norm(x, (2048, 2048)), normal((4, 2048, 2048))),
    "softmax_all": (lambda x: torch.softmax(x.float().flatten(), 0).to(x.dtype).view(x.shape), normal((4096, 4096))), "softmax_two": (lambda x: torch.softmax(x.flatten(1), -1), normal((2, 4194304))),
    "group_norm_one": (lambda x, w, b: F.group_norm(x, 1, w, b), normal(IMAGE, (64,), (64,))), "group_norm_one_f32": (lambda x, w, b: F.group_norm(x, 1, w, b), [("float", *IMAGE), ("float", 64), ("float", 64)]),
    "argmin": (lambda x: (-x).argmin(-1), normal(ROWS)), "argmax_scaled": (lambda x, w: (x * w).argmax(-1), normal(ROWS, (4096,))), "argmax_softmax": (lambda x: torch.softmax(x.float(), -1).max(-1)[1], normal(ROWS)),
    "max_scaled": (lambda x, w: (x * w).max(-1), normal(ROWS, (4096,))), "argmax_linear": (lambda x, w: L(x, w).argmax(-1), [(2048, 2048), (32000, 2048)]),
    "lstm": (lstm, [(512, 1024), (512, 1024), ("normal", 512, 1024), (4096, 1024), (4096, 1024), (4096,)]), "patches": (patches, [("normal", 32, 56, 56, 96), (384,), (384,), (192, 384)]),
    "attention_of_channels": (of_channels, normal(*[(32, 8, 1024, 64)] * 3, (8, 1, 1))), "outer_mean": (lambda a, b: E("bsi,bsj->bij", a, b) / a.shape[1], normal(*[(32, 1024, 256)] * 2)),
    "einsum_linear": (lambda x, w: E("ij,kj->ik", x, w), normal((4096, 1024), (1024, 1024))), "einsum_heads": (lambda x, w: E("bsd,dhk->bshk", x, w), normal((8, 512, 1024), (1024, 16, 64))),
    "einsum_of_heads": (lambda x, w: E("bshk,hkd->bsd", x, w), normal((8, 512, 16, 64), (16, 64, 1024))), "einsum_batch": (lambda a, b: E("bij,bjk->bik", a, b), normal(*[(32, 512, 512)] * 2)),
    "einsum_experts": (lambda x, w: E("ecd,edf->ecf", x, w), normal((8, 1024, 1024), (8, 1024, 2048))), "einsum_groups": (lambda q, k: E("bsghd,btgd->bghst", q, k), normal((4, 512, 4, 4, 64), (4, 512, 4, 64))),
    "einsum_linear_attention": (lambda q, k, v: E("bhsd,bhde->bhse", q, E("bhsd,bhse->bhde", k, v)), normal(*[HEADS] * 3)), "einsum_dots": (lambda x, y: E("bnd,bnd->bn", x, y), normal(*[(16, 4096, 256)] * 2)),
    "einsum_bilinear": (lambda x, w, y: E("bi,oij,bj->bo", x, w, y), normal((512, 128), (64, 128, 128), (512, 128))), "einsum_graph": (lambda x, a: E("nctv,vw->nctw", x, a), normal((64, 64, 300, 25), (25, 25))),
    "einsum_channels": (lambda x, w: E("bchw,oc->bohw", x, w), normal((32, 256, 28, 28), (512, 256))), "einsum_attention": (lambda q, k, v: E("bhst,bthd->bshd", torch.softmax(E("bshd,bthd->bhst", q, k) * 0.125, -1), v), normal(*[(8, 1024, 16, 64)] * 3)),
})
if __name__ == "__main__":
    {"export": blocks.export, "time": blocks.time}[sys.argv[1]](sys.argv[2], sys.argv[3:])

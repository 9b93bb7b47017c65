"""Blocks of models, and epilogues behind linear layers of many sizes, beside torch, eager and compiled.

    python3 blocks.py export DIR [NAME ...]      writes DIR/NAME.mlir of each case (wants torch-mlir); names are prefixes
    python3 blocks.py time PACKAGES [NAME ...]   times PACKAGES/NAME (`axe compile NAME.mlir --target sm_90a -o PACKAGES/NAME/`) in CUDA graphs

Each result is compared with torch's. Epilogues (`epilogue_KIND_DTYPE_MxNxK`) are timed beside eager alone."""
import os, statistics as st, sys
import torch, torch.nn.functional as F
f16 = torch.float16
def rms(x,w): 
    h=x.float(); return (h*torch.rsqrt(h.pow(2).mean(-1,keepdim=True)+1e-6)).to(x.dtype)*w
def rope(x,c,s):
    a,b=x.chunk(2,-1); return x*c+torch.cat((-b,a),-1)*s
def heads(x,h): b,s,d=x.shape; return x.view(b,s,h,d//h).transpose(1,2)
def attn(q,k,v,**kw): 
    o=F.scaled_dot_product_attention(q,k,v,**kw); b,h,s,d=o.shape; return o.transpose(1,2).reshape(b,s,h*d)
def llama_mlp(x,g,u,d): return F.linear(F.silu(F.linear(x,g))*F.linear(x,u),d)
def bert_layer(x,m,wq,bq,wk,bk,wv,bv,wo,bo,l1,b1,w1,c1,w2,c2,l2,b2):
    q,k,v=(heads(F.linear(x,w,b),16) for w,b in ((wq,bq),(wk,bk),(wv,bv)))
    x=F.layer_norm(x+F.linear(attn(q,k,v,attn_mask=m),wo,bo),(1024,),l1,b1)
    return F.layer_norm(x+F.linear(F.gelu(F.linear(x,w1,c1)),w2,c2),(1024,),l2,b2)
def vit_layer(x,l1,b1,wqkv,bqkv,wo,bo,l2,b2,w1,c1,w2,c2):
    h=F.layer_norm(x,(768,),l1,b1); b,s,_=x.shape; qkv=F.linear(h,wqkv,bqkv).view(b,s,3,12,64).permute(2,0,3,1,4)
    x=x+F.linear(attn(qkv[0],qkv[1],qkv[2]),wo,bo); h=F.layer_norm(x,(768,),l2,b2)
    return x+F.linear(F.gelu(F.linear(h,w1,c1)),w2,c2)
def geglu(x,w,b,w2,b2):
    h,g=F.linear(x,w,b).chunk(2,-1); return F.linear(h*F.gelu(g),w2,b2)
def resblock(x,g1,b1,c1,e1,emb,g2,b2,c2,e2):
    h=F.conv2d(F.silu(F.group_norm(x,32,g1,b1)),c1,e1,padding=1)+emb[:,:,None,None]
    return x+F.conv2d(F.silu(F.group_norm(h,32,g2,b2)),c2,e2,padding=1)
def gn_silu(x,g,b): return F.silu(F.group_norm(x,32,g,b))
def convnext(x,dw,db,l,b,w1,c1,w2,c2,g):
    h=F.conv2d(x,dw,db,padding=3,groups=96).permute(0,2,3,1); h=F.linear(F.gelu(F.linear(F.layer_norm(h,(96,),l,b),w1,c1)),w2,c2)*g
    return x+h.permute(0,3,1,2)
def ln_grad(dy, x, w):
    h = x.float(); c = h - h.mean(-1, keepdim=True); r = torch.rsqrt(c.pow(2).mean(-1, keepdim=True) + 1e-5); n = c * r; d = dy.float() * w.float()
    return (r * (d - d.mean(-1, keepdim=True) - n * (d * n).mean(-1, keepdim=True))).to(x.dtype), (dy.float() * n).sum(0), dy.float().sum(0)
def linear_attn(q, k, v):
    q, k = F.elu(q.float()) + 1, F.elu(k.float()) + 1; z = 1 / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
    return (q.to(v.dtype) @ (k.to(v.dtype).transpose(-1, -2) @ v)) * z.to(v.dtype)
def rms_grad(dy, x, w):
    h, d = x.float(), dy.float(); r = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6); n = h * r; e = d * w.float()
    return (r * (e - n * (e * n).mean(-1, keepdim=True))).to(x.dtype), (d * n).sum(0)
def gelu_grad(dy, x):
    h = x.float(); g = dy * (0.5 * (1 + torch.erf(h * .70710678)) + h * torch.exp(-.5 * h ** 2) * .3989423).to(dy.dtype); return g, g.float().sum(0)
def relu_grad(dy, y): g = dy * (y > 0).to(dy.dtype); return g, g.float().sum(0)
def qk_norm(x, wq, wk, nq, nk, c, s):
    q, k = (heads(F.linear(x, w), n) for w, n in ((wq, 32), (wk, 8))); return rope(rms(q, nq), c, s), rope(rms(k, nk), c, s)
def qwen_attn(x, wn, wq, wk, wv, wo, nq, nk, c, s):
    h = rms(x, wn); q, k, v = (heads(F.linear(h, w), n) for w, n in ((wq, 32), (wk, 8), (wv, 8))); q, k = rope(rms(q, nq), c, s), rope(rms(k, nk), c, s)
    k, v = (t.repeat_interleave(4, 1) for t in (k, v)); return x + F.linear(attn(q, k, v), wo)
def rope_tables(p, f): a = p[:, None].float() * f; a = torch.cat((a, a), -1); return a.cos().half(), a.sin().half()
def self_attn(x, wq, wk, wv, wo, bo): q, k, v = (heads(F.linear(x, w), 8) for w in (wq, wk, wv)); return x + F.linear(attn(q, k, v), wo, bo)
def permuted(x): b, s, _ = x.shape; q = x.view(b, s, 3, 12, 64).permute(2, 0, 3, 1, 4); return attn(q[0], q[1], q[2])
def split(x): q, k, v = (heads(t, 12) for t in x.split(768, -1)); return attn(q, k, v)
def sdpa(q, k, v): return F.scaled_dot_product_attention(q, k, v)
def plain(q, k, v): return torch.softmax((q @ k.transpose(-1, -2) * q.shape[-1] ** -.5).float(), -1).to(q.dtype) @ v
def swin(qkv, bias, mask):
    b, n, _ = qkv.shape; q, k, v = qkv.view(b, n, 3, 4, 32).permute(2, 0, 3, 1, 4).unbind(0); a = (q * 32 ** -.5) @ k.transpose(-2, -1) + bias
    a = (a.view(b // len(mask), len(mask), 4, n, n) + mask[None, :, None]).view(b, 4, n, n); return (torch.softmax(a, -1) @ v).transpose(1, 2).reshape(b, n, 128)
def sam(q, k, v, rh, rw):
    b, h, w, _ = rh.shape; a = (q * .125) @ k.transpose(-2, -1); a = (a.view(b, h, w, h, w) + rh[..., None] + rw[:, :, :, None]).view(b, h * w, h * w); return torch.softmax(a, -1) @ v
H, I, E = 4096, 14336, 1024
T = [(2048, 128)] * 2
VIT = [(768,), (768,), (2304, 768), (2304,), (768, 768), (768,), (768,), (768,), (3072, 768), (3072,), (768, 3072), (768,)]
BERT = [(E, E), (E,)] * 4 + [(E,), (E,), (4 * E, E), (4 * E,), (E, 4 * E), (E,), (E,), (E,)]
CASES = {
    "llama_mlp": (llama_mlp, [(2048, H), (I, H), (I, H), (H, I)]), "vit_layer": (vit_layer, [(64, 197, 768), *VIT]), "bert_layer": (bert_layer, [(16, 512, E), (16, 1, 1, 512), *BERT]),
    "geglu": (geglu, [(8192, 640), (5120, 640), (5120,), (640, 2560), (640,)]),
    "resblock": (resblock, [(2, 320, 64, 64), (320,), (320,), (320, 320, 3, 3), (320,), (2, 320), (320,), (320,), (320, 320, 3, 3), (320,)]),
    **{f"gn_silu_{s[2]}": (gn_silu, [s, (s[1],), (s[1],)]) for s in ((8, 320, 64, 64), (16, 640, 32, 32), (64, 1280, 16, 16))},
    "qk_norm": (qk_norm, [(4, 2048, H), (H, H), (E, H), (128,), (128,), *T]), "qwen_attn": (qwen_attn, [(2, 2048, H), (H,), (H, H), (E, H), (E, H), (H, H), (128,), (128,), *T]),
    "rms_rope": (lambda x, n, c, s: rope(rms(x, n), c, s), [(4, 32, 2048, 128), (128,), *T]), "rms_rope_heads": (lambda x, n, c, s: rope(rms(heads(x, 32), n), c, s), [(4, 2048, H), (128,), *T]),
    "rms_heads": (lambda x, n: rms(heads(x, 32), n), [(4, 2048, H), (128,)]), "rope_heads": (lambda x, c, s: rope(heads(x, 32), c, s), [(4, 2048, H), *T]),
    "ln_rope": (lambda x, w, b, c, s: rope(F.layer_norm(x, (128,), w, b), c, s), [(4, 32, 2048, 128), (128,), (128,), *T]),
    "rms_rope_64": (lambda x, n, c, s: rope(rms(heads(x, 64), n), c, s), [(4, 2048, H), (64,), *[(2048, 64)] * 2]),
    "ln_heads": (lambda x, w, b: F.layer_norm(heads(x, 32), (128,), w, b), [(4, 2048, H), (128,), (128,)]),
    "l2_heads": (lambda x: F.normalize(heads(x, 32), dim=-1), [(4, 2048, H)]), "softmax_heads": (lambda x: heads(x, 32).softmax(-1), [(4, 2048, H)]),
    "rope_tables": (rope_tables, [("int", 8192), ("float", 64)]), "attn_permuted": (permuted, [(64, 197, 2304)]), "attn_split": (split, [(8, 1024, 2304)]),
    "self_attn_40": (self_attn, [(2, 4096, 320), *[(320, 320)] * 4, (320,)]), "sdpa_40_77": (sdpa, [("normal", 2, 8, 4096, 40), *[("normal", 2, 8, 77, 40)] * 2]),
    **{f"sdpa_{d}": (sdpa, [("normal", 2, 8, 4096, d)] * 3) for d in (40, 48, 64)}, **{f"sdpa_{d}": (sdpa, [("normal", 8, 16, 1024, d)] * 3) for d in (72, 88)},
    "linear_rms": (lambda x, w, g: rms(F.linear(x, w), g), [(8192, 1024), (1024, 1024), (1024,)]),
    **{f"upsample_{n}": (lambda x, n=n, a=a: F.interpolate(x, size=(n, n), mode="bilinear", align_corners=a), [("normal", 8, 64, h, h)]) for n, h, a in ((128, 64, False), (224, 56, True), (100, 64, False))},
    "swin": (swin, [("normal", 1024, 49, 384), ("normal", 4, 49, 49), ("normal", 64, 49, 49)]),
    **{f"sam_{h * h}": (sam, [("normal", b, h * h, 64)] * 3 + [("normal", b, h, h, h)] * 2) for b, h in ((192, 16), (12, 64), (300, 14))},
    **{f"short_{s}_{d}": (plain, [("normal", 2 ** 23 // (s * d) // 8 * 8, s, d)] * 3) for s in (16, 32, 49, 64, 100, 128, 197, 256) for d in (32, 64, 128)},
    **{f"map_{n}_{t}_": (f, [("float" if t == "f32" else "normal", 8192, 8192)]) for n, f in (("sin", torch.sin), ("cos", torch.cos)) for t in ("f32", "f16", "bf16")},
    "ada_ln": (lambda x, s, g: F.layer_norm(x, (1024,)) * (1 + g[:, None]) + s[:, None], [("normal", 8, 4096, 1024), (8, 1024), (8, 1024)]),
    "key_mask": (lambda x, m: torch.softmax(x + (m[:, None, None] - 1) * 6e4, -1), [("normal", 16, 12, 512, 512), ("normal", 16, 512)]),
    "linear_attn": (linear_attn, [("normal", 16, 12, 512, 64)] * 3), "rms_grad": (rms_grad, [(8192, 4096), (8192, 4096), (4096,)]),
    **{f"{n}_grad_{r}": (f, [("normal", r, c)] * 2 + [(c,)] * (n == "ln")) for n, f in (("ln", ln_grad), ("gelu", gelu_grad), ("relu", relu_grad)) for r, c in ((8192, 4096), (32768, 768), (2000, 1000))},
    "map_two": (lambda x: (x.sin(), x.cos()), [(8192, 8192)]), "map_three": (lambda x, y: (x + y, x - y, x * y), [(8192, 8192)] * 2),
}
L = F.linear
EPILOGUES = {
    "relu":lambda x,w,b,r: F.relu(L(x,w)), "sig":lambda x,w,b,r: torch.sigmoid(L(x,w)), "sigb":lambda x,w,b,r: torch.sigmoid(L(x,w,b)),
    "elu":lambda x,w,b,r: F.elu(L(x,w)), "hsw":lambda x,w,b,r: F.hardswish(L(x,w)), "softplus":lambda x,w,b,r: F.softplus(L(x,w)),
    "tanh":lambda x,w,b,r: torch.tanh(L(x,w)), "exp":lambda x,w,b,r: torch.exp(L(x,w)), "sq":lambda x,w,b,r: L(x,w).square(),"f32":lambda x,w,b,r: L(x,w).float(),
    "reluf":lambda x,w,b,r: F.relu(L(x,w).float()), "scale":lambda x,w,b,r: L(x,w)*b, "rs":lambda x,w,b,r: L(x,w)*0.5+r, "gelur":lambda x,w,b,r: F.gelu(L(x,w))+r,
    "silur":lambda x,w,b,r: F.silu(L(x,w))*r, "gelun":lambda x,w,b,r: F.gelu(L(x,w),approximate="tanh"), "mish":lambda x,w,b,r: F.mish(L(x,w)), "abs":lambda x,w,b,r: L(x,w).abs(),
    "clamp":lambda x,w,b,r: L(x,w).clamp(-1,1), "rowsum":lambda x,w,b,r: (lambda y:(y,y.float().sum(-1)))(L(x,w)), "silusum":lambda x,w,b,r: (lambda y:(y,y.float().pow(2).mean(-1)))(F.silu(L(x,w))),
    "two":lambda x,w,b,r: (lambda y:(y,F.silu(y)))(L(x,w)), "i8":lambda x,w,b,r: (L(x,w)*16).clamp(-127,127).to(torch.int8),
    "bool":lambda x,w,b,r: L(x,w)>0, "rsqrt":lambda x,w,b,r: torch.rsqrt(L(x,w).abs()+1e-3), "bf":lambda x,w,b,r: L(x,w).to(torch.bfloat16 if x.dtype==torch.float16 else torch.float16),
    "softsign":lambda x,w,b,r: F.softsign(L(x,w)), "sin":lambda x,w,b,r: torch.sin(L(x,w)),
}
SIZES = ((8192, 12288, 4096), (4096, 4096, 4096), (2048, 4096, 1024), (128, 4096, 4096), (16, 4096, 4096), (512, 2048, 512), (8192, 8192, 512), (1000, 3000, 1000), (333, 4100, 700), (4096, 1024, 8192), (77, 129, 65), (4096, 64, 2048))
for kind, fn in EPILOGUES.items():
    for dtype, sizes in (("f16", SIZES), ("bf16", (SIZES[0], SIZES[6], SIZES[8]))):
        for m, n, k in sizes: CASES[f"epilogue_{kind}_{dtype}_{m}x{n}x{k}"] = (fn, [(m, k), (n, k), (n,), (m, n)])
def packed(f): return lambda x, w, *b: (lambda a, g: f(a) * g)(*L(x, w, *b).chunk(2, -1))
def neighbours(x, w, b): y = L(x, w, b); g = y[..., ::2].clamp(max=7.0); return (y[..., 1::2].clamp(-7.0, 7.0) + 1) * (g * torch.sigmoid(g * 1.702))
def two(x, g, u): return F.silu(L(x, g)) * L(x, u)
def two_biases(x, g, a, u, b): return F.gelu(L(x, g, a)) * L(x, u, b)
def two_stored(x, g, u): a, b = L(x, g), L(x, u); return a, b, F.silu(a) * b
def two_kn(x, g, u): return F.silu(x @ g) * (x @ u)
GATES = {
    "packed": (packed(F.silu), lambda m, n, k: [(m, k), (2 * n, k)]), "packed_bias": (packed(F.gelu), lambda m, n, k: [(m, k), (2 * n, k), (2 * n,)]),
    "packed_kn": (lambda x, w: (lambda a, g: F.silu(a) * g)(*(x @ w).chunk(2, -1)), lambda m, n, k: [(m, k), (k, 2 * n)]),
    "neighbours": (neighbours, lambda m, n, k: [(m, k), (2 * n, k), (2 * n,)]), "two": (two, lambda m, n, k: [(m, k), (n, k), (n, k)]),
    "two_biases": (two_biases, lambda m, n, k: [(m, k), *[(n, k), (n,)] * 2]), "two_stored": (two_stored, lambda m, n, k: [(m, k), (n, k), (n, k)]),
    "two_kn": (two_kn, lambda m, n, k: [(m, k), (k, n), (k, n)]),
}
# The feed-forward blocks of LLaMA 7B, Qwen3 8B and others, for batches of prompts and for few rows.
GATED = ((8192, 12288, 4096), (8192, 11008, 4096), (4096, 5504, 2048), (2048, 14336, 4096), (2048, 4096, 1024), (1000, 3000, 1000), (512, 2048, 512), (128, 4096, 4096), (64, 11008, 4096), (16, 11008, 4096), (16, 5504, 2048))
for kind, (fn, shapes) in GATES.items():
    for m, n, k in GATED: CASES[f"gated_{kind}_{m}x{n}x{k}"] = (fn, shapes(m, n, k))
def made(shape, device, dtype):
    """An input: numbers of one scale behind a product with weights of two dimensions, or of rows of a table."""
    kind, *own = shape if isinstance(shape[0], str) else ("weights", *shape)
    if kind == "rows": most, *own = own; return torch.randint(0, most, own, device="cuda") if device != "meta" else torch.empty(own, device=device, dtype=torch.int64)
    if device == "meta": return torch.empty(own, device=device, dtype={"int": torch.int64, "float": torch.float32}.get(kind, dtype))
    if kind == "int": return torch.arange(own[0], device=device)
    if kind == "float": return torch.rand(own, device=device)
    scale = 1 if kind == "normal" or len(own) not in (2, 4) or len(own) == 4 and own[-1] > 8 else own[1] ** -.5 / (3 if len(own) == 4 else 1)
    return (torch.randn(own, device=device) * scale).to(dtype)
def inputs(name, device): fn, shapes = CASES[name]; dtype = torch.bfloat16 if "_bf16_" in name else f16; return fn, [made(s, device, dtype) for s in shapes]
def chosen(names): return [n for n in CASES if not names or n.startswith(tuple(names))]
def export(folder, names):
    from torch_mlir import fx
    os.makedirs(folder, exist_ok=True)
    class Module(torch.nn.Module):
        def __init__(self, fn): super().__init__(); self.fn = fn
        def forward(self, *xs): return self.fn(*xs)
    for name in chosen(names):
        fn, args = inputs(name, "meta")
        open(f"{folder}/{name}.mlir", "w").write(str(fx.export_and_import(Module(fn), *args, output_type="linalg-on-tensors", func_name="main")))
def timed(f, n, rounds=7):
    f(); out = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True); a.record()
        for _ in range(n): f()
        b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b) / n * 1e3)
    return st.median(out)
def graphed(bind, n):
    s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream()); g = torch.cuda.CUDAGraph()
    with torch.cuda.stream(s): bind()()
    s.synchronize()
    with torch.cuda.graph(g):
        run = bind()    # on the graph's stream
        for _ in range(n): run()
    g.run = run
    return timed(g.replay, 1) / n
def time(folder, names):
    from cubin import DT, Package
    for name in chosen(names):
        if not os.path.exists(f"{folder}/{name}"): continue
        torch.manual_seed(0); fn, xs = inputs(name, "cuda"); truth = fn(*xs); truth = truth if isinstance(truth, tuple) else (truth,)
        p = Package(f"{folder}/{name}"); outs = [torch.full(o["shape"], 77, device="cuda").to(DT[o["dtype"]][1]) for o in p.m["outputs"]]
        bind = lambda: p.bind({**{i["name"]: x for i, x in zip(p.m["inputs"], xs)}, **{o["name"]: t for o, t in zip(p.m["outputs"], outs)}})
        bind()(); torch.cuda.synchronize(); norm = lambda t: t.double().nan_to_num(0, 0, 0).norm()
        error = max((norm(o.double() - t.double()) / norm(t).clamp(min=1e-9)).item() for o, t in zip(outs, truth))
        n = max(2, min(40, int(20000 / timed(lambda: fn(*xs), 2, 3)))); times = {"axe": graphed(bind, n), "eager": graphed(lambda: lambda: fn(*xs), n)}
        if not name.startswith("epilogue_"): torch._dynamo.reset(); compiled = torch.compile(fn); compiled(*xs); times["compiled"] = graphed(lambda: lambda: compiled(*xs), n)
        print(f"{name}: {len(p.m['steps'])} kernels  " + "  ".join(f"{k} {t:.1f} us" for k, t in times.items()) + f"  error {error:.0e}{'' if error < 2e-2 else ' WRONG'}", flush=True)
        del p, outs, xs, truth; torch.cuda.empty_cache()
if __name__ == "__main__":
    {"export": export, "time": time}[sys.argv[1]](sys.argv[2], sys.argv[3:])

"""Times packages of attention beside FlashAttention-3 and cuDNN in one process, in turns, on random data. TFLOP/s, medians of events.

    python3 attention.py --fa3 _vllm_fa3_C.abi3.so --packages DIR [--rounds 10] [--json OUT]

Names of packages: ANY-DTYPE-D-S-(full|causal)[-KV]; each has kernels.cubin and manifest.json. Packages of f8E4M3FN have results in bf16."""
import argparse, glob, json, os, statistics as st
import torch, torch.nn.functional as F
from cubin import DT, Package
from torch.nn.attention import sdpa_kernel, SDPBackend
ap = argparse.ArgumentParser(); ap.add_argument("--fa3"); ap.add_argument("--packages"); ap.add_argument("--rounds", type=int, default=8)
ap.add_argument("--json"); ap.add_argument("--only", default=""); ap.add_argument("--no-rivals", action="store_true"); a = ap.parse_args()
d = "cuda"
lens = {}
def lengths(B, S): return lens.setdefault((B, S), torch.arange(0, (B + 1) * S, S, device=d, dtype=torch.int32))
if a.fa3 and not a.no_rivals:
    torch.ops.load_library(a.fa3); fwd = torch.ops._vllm_fa3_C.fwd
def fa3(q, k, v, causal):
    B, S, H, D = q.shape; T = k.shape[1]
    r = fwd(q.view(B * S, H, D), k.view(B * T, -1, D), v.view(B * T, -1, D), None, None, None, None, lengths(B, S), lengths(B, T),
            None, None, None, S, T, None, None, None, None, None, None, None, None, None, D ** -0.5, causal, -1, -1, 0.0,
            True, None, 1, None, 0, None, 1, 0, None)
    return r[0].view(B, S, H, D)
cases = {}
for path in sorted(glob.glob(a.packages + "/*")):
    name = os.path.basename(path)
    if a.only in name: cases.setdefault("-".join(name.split("-")[1:]), []).append((name.split("-")[0], path))
rows = []
for case, packs in cases.items():
    m = json.load(open(packs[0][1] + "/manifest.json")); (B, S, H, D), kv = m["inputs"][0]["shape"], m["inputs"][1]["shape"]
    dt = DT[m["inputs"][0]["dtype"]][1]; causal = "causal" in case
    narrow = dt == torch.float8_e4m3fn; out = torch.bfloat16 if narrow else dt
    q, k, v = [torch.randn(*shape, device=d, dtype=out).to(dt) for shape in [(B, S, H, D), kv, kv]]
    fl = 4 * B * H * S * S * D * (.5 if causal else 1); qt, kt, vt = [x.transpose(1, 2) for x in (q, k, v)]
    runs, errors = {}, {}
    gqa = kv[2] != H
    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION): return F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=gqa)
    if not a.no_rivals:
        if a.fa3: runs["fa3"] = lambda: fa3(q, k, v, causal)
        if not narrow: runs["cudnn"] = cudnn
    # float64 on some rows of one head
    bb, hh, rr = B - 1, H - 1, torch.randint(0, S, (64,), device=d)
    qw, kw, vw = [x.to(out) for x in (q, k, v)]
    s = qw[bb, rr, hh].double() @ kw[bb, :, hh // (H // kv[2])].double().T * D ** -0.5
    if causal: s = s.masked_fill(torch.arange(S, device=d)[None] > rr[:, None], -float("inf"))
    truth = torch.softmax(s, -1) @ vw[bb, :, hh // (H // kv[2])].double()
    def err(x): return ((x[bb, rr, hh].double() - truth).norm() / truth.norm()).item()
    base = fa3(q, k, v, causal) if "fa3" in runs else None if narrow else cudnn().transpose(1, 2)
    if "fa3" in runs: errors["fa3"] = err(base)
    for name, path in packs:
        try:
            p = Package(path); o = torch.full(q.shape, float("nan"), device=d, dtype=out)
            r = p.bind(dict(arg0=q, arg1=k, arg2=v, out0=o)); r(); torch.cuda.synchronize()
            e = err(o); far = 0.0 if base is None else (o.float() - base.float()).abs().max().item()
            errors[name] = e
            if not (e < (5e-2 if narrow else 5e-3) and far < (1 if narrow else .1)): print("WRONG", case, name, e, far, flush=True)
            r.p = p; r.o = o; runs[name] = r
        except RuntimeError as x: print("FAILED", case, name, x, flush=True); 
    ts = {n: [] for n in runs}
    for f in runs.values():
        for _ in range(2): f()
    for _ in range(a.rounds):
        for n, f in runs.items():
            f(); ev = [torch.cuda.Event(True) for _ in range(4)]
            ev[0].record()
            for x in ev[1:]: f(); x.record()
            torch.cuda.synchronize(); ts[n] += [x.elapsed_time(y) for x, y in zip(ev, ev[1:])]
    row = dict(case=case, **{n: round(fl / st.median(t) / 1e9, 1) for n, t in ts.items()}); rows.append(row)
    print(row, {n: f"{e:.1e}" for n, e in errors.items()}, flush=True)
if a.json: json.dump(rows, open(a.json, "w"))

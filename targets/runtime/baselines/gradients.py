"""Times packages of attention's gradients beside cuDNN's backward, or where it has none FlashAttention-2's (torch's both), in one process, in turns, on random data. TFLOP/s of five
products, medians of events; errors against f64 of one head of keys and values.

    python3 gradients.py --packages DIR [--rounds 5]

Names of packages: ANY-DTYPE-D-S-(full|causal); each has kernels.cubin and manifest.json. Arguments are q, k, v, o, dO and the logarithms of
sums as [batch, place, head, column], or q, k, v and dO, and perhaps the logarithms and o, as [batch, head, place, column]; results dQ,
dK and dV."""
import argparse, glob, json, os, statistics as st
import torch, torch.nn.functional as F
from cubin import DT, Package
from torch.nn.attention import sdpa_kernel, SDPBackend
ap = argparse.ArgumentParser(); ap.add_argument("--packages"); ap.add_argument("--rounds", type=int, default=5); a = ap.parse_args()
d, block = "cuda", 2048
def scores(q, k, first, causal, D):
    """Scores of rows from `first` on, in the operands' type."""
    s = q @ k.T * D ** -.5
    if causal: s.masked_fill_(torch.arange(len(k), device=d)[None] > torch.arange(first, first + len(q), device=d)[:, None], -float("inf"))
    return s
def logarithms(q, k, group, causal):
    """Of the sums of exponentials of each row, [batch, head, place] in f32."""
    B, S, H, D = q.shape; L = torch.empty(B, H, S, device=d)
    for b in range(B):
        for h in range(H):
            for r in range(0, S, block):
                L[b, h, r:r + block] = torch.logsumexp(scores(q[b, r:r + block, h].float(), k[b, :, h // group].float(), r, causal, D), -1)
    return L
def truth(q, k, v, do, group, causal):
    """dQ of the last head, and dK and dV of the last head of keys, in f64."""
    B, S, H, D = q.shape; K, V = k[-1, :, -1].double(), v[-1, :, -1].double(); dq, dk, dv = (torch.zeros_like(K) for _ in range(3))
    for h in range(H - group, H):
        for r in range(0, S, block):
            Q, dO = q[-1, r:r + block, h].double(), do[-1, r:r + block, h].double()
            p = torch.softmax(scores(Q, K, r, causal, D), -1); dp = dO @ V.T
            ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * D ** -.5
            dv += p.T @ dO; dk += ds.T @ Q
            if h == H - 1: dq[r:r + block] = ds @ K
    return dq, dk, dv
def is_by_head(m):
    """Whether tensors are [batch, head, place, column]; of six, the last is then the result and not the logarithms."""
    return len(m["inputs"]) == 4 or len(m["inputs"][-1]["shape"]) == 4
cases = {}
for path in sorted(glob.glob(a.packages + "/*")):
    name = os.path.basename(path); cases.setdefault("-".join(name.split("-")[1:]), []).append((name.split("-")[0], path))
for case, packs in cases.items():
    m = json.load(open(packs[0][1] + "/manifest.json")); by_head = is_by_head(m)
    own, kv = ([x["shape"][i] for i in ((0, 2, 1, 3) if by_head else range(4))] for x in m["inputs"][:2]); B, S, H, D = own
    dt = DT[m["inputs"][0]["dtype"]][1]; causal = "causal" in case; group = H // kv[2]
    q, do = (torch.randn(*own, device=d, dtype=dt) for _ in range(2)); k, v = (torch.randn(*kv, device=d, dtype=dt) for _ in range(2))
    qt, kt, vt = (x.transpose(1, 2).requires_grad_() for x in (q, k, v))
    for peer, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("fa2", SDPBackend.FLASH_ATTENTION)):
        run = lambda: torch.autograd.grad(o, (qt, kt, vt), do.transpose(1, 2), retain_graph=True)
        try:
            with sdpa_kernel(backend): o = F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=group > 1)
            run(); break
        except RuntimeError as why: print("none:", peer, case, str(why).split("\n")[0][:100], flush=True)
    runs = {peer: lambda o=o: torch.autograd.grad(o, (qt, kt, vt), do.transpose(1, 2), retain_graph=True)}
    with torch.no_grad(): right, L = truth(q, k, v, do, group, causal), logarithms(q, k, group, causal)
    error = lambda gs: max(((g[-1, :, -1].double() - t).norm() / t.norm()).item() for g, t in zip(gs, right))
    errors = {peer: error([g.transpose(1, 2) for g in runs[peer]()])}
    for name, path in packs:
        p = Package(path); four = is_by_head(p.m); given = four and len(p.m["inputs"]) == 6
        lie = (lambda x: x.detach().transpose(1, 2).contiguous()) if four else (lambda x: x.detach())
        ins = [lie(x) for x in ((q, k, v, do) if four else (q, k, v, o.transpose(1, 2).contiguous(), do, L))] + ([L, o.detach().contiguous()] if given else [])
        outs = [torch.full_like(lie(x), float("nan")) for x in (q, k, v)]
        r = p.bind({**{f"arg{i}": x for i, x in enumerate(ins)}, **{f"out{i}": x for i, x in enumerate(outs)}}); r(); torch.cuda.synchronize()
        errors[name] = error([x.transpose(1, 2) for x in outs] if four else outs)
        if not errors[name] < 1.3 * errors[peer] + 1e-3: print("WRONG", case, name, errors[name], flush=True)
        r.kept = p, ins, outs; runs[name] = r
    ts = {n: [] for n in runs}
    for _ in range(a.rounds):
        for n, f in runs.items():
            f(); ev = [torch.cuda.Event(True) for _ in range(4)]; ev[0].record()
            for x in ev[1:]: f(); x.record()
            torch.cuda.synchronize(); ts[n] += [x.elapsed_time(y) for x, y in zip(ev, ev[1:])]
    fl = 10 * B * H * S * S * D * (.5 if causal else 1)
    print(case, {n: f"{st.median(t) * 1e3:.0f} us, {fl / st.median(t) / 1e9:.0f} TFLOP/s" for n, t in ts.items()}, {n: f"{e:.1e}" for n, e in errors.items()}, flush=True)

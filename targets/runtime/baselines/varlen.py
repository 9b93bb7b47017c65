"""Times packages of attention with lengths and with pages: python3 varlen.py PACKAGES"""
import glob, os, statistics as st, sys
import torch
from cubin import DT, Package
def timed(f, rounds=5, n=10):
    for _ in range(2): f()
    out = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True); a.record()
        for _ in range(n): f()
        b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b) / n)
    return st.median(out)
def truth(q, k, v, b, h, n, causal):
    g = h // (q.shape[2] // k.shape[2]); s = q[b, :, h].double() @ k[b, :, g].double().T * q.shape[-1] ** -0.5
    i, j = torch.arange(q.shape[1], device="cuda")[:, None], torch.arange(k.shape[1], device="cuda")[None]
    s = s.masked_fill(~(j <= i + n - q.shape[1] if causal else (j < n).expand_as(s)), float("-inf"))
    return torch.softmax(s, -1) @ v[b, :, g].double()
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    name = os.path.basename(path); p = Package(path); torch.cuda.empty_cache()
    ins = p.m["inputs"]; q, k, v = (torch.randn(i["shape"], device="cuda", dtype=torch.float16) for i in ins[:3]); B = q.shape[0]
    o = torch.full(p.m["outputs"][0]["shape"], float("nan"), device="cuda", dtype=q.dtype)
    given = {i["name"]: t for i, t in zip(ins, (q, k, v))}; kk, vv, total = k, v, k.shape[1]
    if "paged" in name:
        page, t = k.shape[1], ins[-1]; total = page * t["shape"][1]
        table = torch.randperm(k.shape[0], device="cuda")[:t["shape"][0] * t["shape"][1]].view(t["shape"]).to(DT[t["dtype"]][1])
        given[t["name"]] = table
    masked = "static" not in name and "causal" not in name
    for what in (["full", "half", "ragged"] if masked else ["full"]):
        n = {"full": torch.full((B,), total), "half": torch.full((B,), total // 2), "ragged": torch.linspace(total // 64, total, B).long()}[what]
        if "cached" in name: n = torch.full((B,), total)
        if masked: given[ins[3]["name"]] = n.to(DT[ins[3]["dtype"]][1]).cuda()
        o.fill_(float("nan")); run = p.bind({**given, p.m["outputs"][0]["name"]: o}); run(); torch.cuda.synchronize()
        bad = 0
        for b, h in ((0, 0), (B - 1, q.shape[2] - 1)):
            K, V = (x[table[b].long()].reshape(1, total, *x.shape[2:]) for x in (k, v)) if "paged" in name else (k[b:b + 1], v[b:b + 1])
            own = truth(q[b:b + 1], K, V, 0, h, int(n[b]), "cached" in name or "causal" in name)
            bad = max(bad, ((o[b, :, h].double() - own).norm() / own.norm()).item())
        us = timed(run) * 1e3; byte = int(n.sum()) * 2 * 2 * k.shape[-1] * k.shape[-2 if k.dim() == 4 else 1]
        print(f"{name:12s} {what:7s} {us:9.1f} us {byte / us / 1e6:5.2f} TB/s of keys seen, error {bad:.1e} {'right' if bad < 6e-3 else 'WRONG'}", flush=True)
        if "cached" in name: break
    del p, given, q, k, v, o

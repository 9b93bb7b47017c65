"""Grouped products beside torch: python3 grouped.py --packages DIR [--rounds 8]. TFLOP/s, medians of events, every result checked.

Packages: DIR/T-N-K-G-DTYPE-LAYOUT[-tag] with kernels.cubin and manifest.json. Sizes of groups: even, and random uneven ones."""
import argparse, glob, os, statistics as st
import torch
from cubin import DT, Package
ap = argparse.ArgumentParser(); ap.add_argument("--packages", required=True)
ap.add_argument("--rounds", type=int, default=8); a = ap.parse_args()
d = "cuda"
print("torch", torch.__version__, torch.cuda.get_device_name())
def sizes(T, G, kind):
    if kind == "even": return [T * (g + 1) // G - T * g // G for g in range(G)]
    gen = torch.Generator().manual_seed(G + T); w = torch.rand(G, generator=gen) ** 2
    cut = (torch.cumsum(w, 0) / w.sum() * T).round().long().tolist(); cut[-1] = T
    return [b - a for a, b in zip([0] + cut[:-1], cut)]
cases = {}
for path in sorted(glob.glob(a.packages + "/*")):
    cases.setdefault("-".join(os.path.basename(path).split("-")[:6]), []).append(path)
for case, paths in cases.items():
    T, N, K, G, dtype, layout = case.split("-"); T, N, K, G = map(int, (T, N, K, G)); dt = DT[dtype][1]
    x = torch.randn(T, K, device=d, dtype=dt); w = torch.randn(G, *((N, K) if layout == "nt" else (K, N)), device=d, dtype=dt) * K ** -.5
    wt = w.transpose(1, 2) if layout == "nt" else w
    for kind in ("even", "uneven"):
        m = sizes(T, G, kind); ends = torch.tensor(m, device=d).cumsum(0).int(); offs = torch.cat([torch.zeros(1, device=d, dtype=torch.int32), ends])
        cut = [0] + ends.tolist(); out = torch.empty(T, N, device=d, dtype=dt)
        def loop():
            for g in range(G): torch.mm(x[cut[g]:cut[g + 1]], wt[g], out=out[cut[g]:cut[g + 1]])
        loop(); base = out.clone(); runs = {"loop": loop}
        if hasattr(torch, "_grouped_mm"):
            def grouped(): return torch._grouped_mm(x, wt, offs=ends, out_dtype=dt)
            try:
                e = (grouped().float() - base.float()).norm() / base.float().norm(); print("  _grouped_mm error", f"{e.item():.1e}")
                runs["_grouped_mm"] = grouped
            except Exception as error: print("  _grouped_mm:", str(error).split("\n")[0])
        for path in paths:
            name = "axe" + "-".join([""] + os.path.basename(path).split("-")[6:])
            o = torch.full((T, N), float("nan"), device=d, dtype=dt)
            try: r = Package(path).bind(dict(arg0=x, arg1=w, arg2=offs, out0=o)); r(); torch.cuda.synchronize()
            except RuntimeError as error: print("  FAILED", case, name, error); continue
            e = ((o.float() - base.float()).norm() / base.float().norm()).item()
            if not e < 2e-2 or (o.float() - base.float()).abs().max().item() > .2: print("  WRONG", case, kind, name, e); continue
            # Rows of no group: zeros.
            keep = offs.clone(); offs[0] = 100; offs[-1] = T - 50; o.fill_(float("nan")); r(); torch.cuda.synchronize()
            bad = o[:100].abs().max().item() + o[T - 50:].abs().max().item() if cut[1] >= 100 and cut[-2] <= T - 50 else 0.0
            if bad != 0 or o.isnan().any(): print("  WRONG outside", case, kind, name, bad)
            # Offsets that are none: what is read and written stays inside.
            offs.copy_(torch.randint(-2**31, 2**31 - 1, (G + 1,), device=d).int()); r(); torch.cuda.synchronize(); offs.copy_(keep)
            r.o = o; runs[name] = r
        ts = {n: [] for n in runs}
        for f in runs.values(): f(); f()
        for _ in range(a.rounds):
            for n, f in runs.items():
                f(); ev = [torch.cuda.Event(True) for _ in range(4)]; ev[0].record()
                for y in ev[1:]: f(); y.record()
                torch.cuda.synchronize(); ts[n] += [p.elapsed_time(q) for p, q in zip(ev, ev[1:])]
        us = {n: st.median(t) * 1e3 for n, t in ts.items()}; fl = 2 * T * N * K
        print(case, kind, {n: f"{t:.1f} us {fl / t / 1e6:.0f} TFLOP/s" for n, t in us.items()}, flush=True)

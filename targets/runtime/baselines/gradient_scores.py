"""Times packages of attention's gradients whose scores are more than products, beside torch's (FlexAttention compiled, and scaled_dot_product_attention where it takes the form), in one process, in
turns, on random data. Medians of events; errors against f32 of one head, in its norm.

    python3 gradient_scores.py --packages DIR [--rounds 5] [--flex]

Names of packages: ANY-FORM-DTYPE-D-S, with FORM of none, causal, bias, bits, cap, causalcap, alibi, lengths, segments; each has kernels.cubin and manifest.json. Arguments are q, k, v and dO, logarithms of
sums and the result, as [batch, head, place, column], then what the form reads."""
import argparse, glob, json, os, statistics as st
import torch, torch.nn.functional as F
from cubin import DT, Package
ap = argparse.ArgumentParser(); ap.add_argument("--packages"); ap.add_argument("--rounds", type=int, default=5); ap.add_argument("--flex", action="store_true"); a = ap.parse_args()
d, CAP = "cuda", 30.0
def data(form, B, H, S, dt):
    """What the form reads beside the operands."""
    if form == "bias": return [torch.randn(H, S, S, device=d, dtype=dt)]
    if form == "bits": return [torch.rand(B, S, S, device=d) < .7]
    if form == "alibi": return [2.0 ** -(8 * torch.arange(1, H + 1, device=d) / H)]
    if form == "lengths": return [torch.linspace(S // 2, S, B, device=d).to(torch.int32)]
    if form == "segments": return [torch.sort(torch.randint(0, 4, (B, S), device=d, dtype=torch.int32), 1)[0]]
    return []
def grown(form, s, more, b, h, i, j):
    """Scores of one head, of which s are scaled products, f32."""
    if "cap" in form: s = CAP * torch.tanh(s / CAP)
    if form == "bias": s = s + more[0][h].float()
    if form == "alibi": s = s - (i - j) * more[0][h]
    seen = torch.ones_like(s, dtype=torch.bool)
    if form == "bits": seen = more[0][b]
    if form == "lengths": seen = seen & (j < more[0][b])
    if form == "segments": seen = more[0][b][:, None] == more[0][b][None, :]
    if form in ("causal", "causalcap", "alibi"): seen = seen & (j <= i)
    return s.masked_fill(~seen, -float("inf"))
def flex(form, more, B, H, S):
    from torch.nn.attention.flex_attention import flex_attention, create_block_mask
    def score(s, b, h, i, j):
        if "cap" in form: s = CAP * torch.tanh(s / CAP)
        if form == "bias": s = s + more[0][h, i, j]
        if form == "alibi": s = s - (i - j) * more[0][h]
        return s
    def mask(b, h, i, j):
        if form == "bits": return more[0][b, i, j]
        if form == "lengths": return j < more[0][b]
        if form == "segments": return more[0][b, i] == more[0][b, j]
        return j <= i
    masked = form in ("causal", "causalcap", "alibi", "bits", "lengths", "segments")
    block = create_block_mask(mask, B, None, S, S, device=d) if masked else None
    own = score if form in ("bias", "alibi", "cap", "causalcap") else None
    return torch.compile(lambda q, k, v: flex_attention(q, k, v, score_mod=own, block_mask=block))
cases = {}
for path in sorted(glob.glob(a.packages + "/*")):
    name = os.path.basename(path); cases.setdefault("-".join(name.split("-")[1:]), []).append((name.split("-")[0], path))
for case, packs in cases.items():
    form = case.split("-")[0]; m = json.load(open(packs[0][1] + "/manifest.json")); B, H, S, D = m["inputs"][0]["shape"]; dt = DT[m["inputs"][0]["dtype"]][1]
    q, k, v, do = (torch.randn(B, H, S, D, device=d, dtype=dt) for _ in range(4)); more = data(form, B, H, S, dt)
    i, j = torch.arange(S, device=d)[:, None], torch.arange(S, device=d)[None]
    L, o = torch.empty(B, H, S, device=d), torch.empty_like(q)
    for b in range(B):
        for h in range(H):
            s = grown(form, q[b, h].float() @ k[b, h].float().T * D ** -.5, more, b, h, i, j); L[b, h] = torch.logsumexp(s, -1); o[b, h] = (torch.softmax(s, -1) @ v[b, h].float()).to(dt)
    Q, K, V = (x[-1, -1].float().requires_grad_() for x in (q, k, v))
    right = torch.autograd.grad(torch.softmax(grown(form, Q @ K.T * D ** -.5, more, B - 1, H - 1, i, j), -1) @ V, (Q, K, V), do[-1, -1].float())
    error = lambda gs: max(((g[-1, -1].float() - t).norm() / t.norm()).item() for g, t in zip(gs, right)); runs, errors = {}, {}
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    def peer(name, forward):
        try:
            out = forward(*leaves); run = lambda: torch.autograd.grad(out, leaves, do, retain_graph=True); errors[name] = error(run()); runs[name] = run
        except Exception as why: print("none:", name, case, str(why).split("\n")[0][:150], flush=True)
    if a.flex: peer("flex", flex(form, more, B, H, S))
    if form in ("none", "causal"): peer("sdpa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=form == "causal"))
    if form == "bias": peer("sdpa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=more[0][None]))
    if form == "bits": peer("sdpa", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=more[0][:, None]))
    for name, path in packs:
        p = Package(path); outs = [torch.full_like(x, float("nan")) for x in (q, k, v)]; ins = [q, k, v, do, L, o, *more]
        r = p.bind({**{f"arg{n}": x for n, x in enumerate(ins)}, **{f"out{n}": x for n, x in enumerate(outs)}}); r(); torch.cuda.synchronize()
        errors[name] = error(outs); r.kept = p, ins, outs; runs[name] = r
    ts = {n: [] for n in runs}
    for _ in range(a.rounds):
        for n, f in runs.items():
            f(); ev = [torch.cuda.Event(True) for _ in range(4)]; ev[0].record()
            for x in ev[1:]: f(); x.record()
            torch.cuda.synchronize(); ts[n] += [x.elapsed_time(y) for x, y in zip(ev, ev[1:])]
    print(case, {n: f"{st.median(t) * 1e3:.0f} us" for n, t in ts.items()}, {n: f"{e:.1e}" for n, e in errors.items()}, flush=True)
    del runs, r, p, leaves, q, k, v, do, o, L, more; torch.cuda.empty_cache()

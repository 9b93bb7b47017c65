"""Times packages of decode attention beside the bandwidth of a copy, by CUDA graphs of 20 runs each: bytes of keys and values over the time; with a
mask that is added to scores also beside the quickest of torch's own kernels.

    python3 decode.py PACKAGES     # folders with kernels.cubin and manifest.json; those that begin with bhsd- have [B, H, S, D], others [B, S, H, D]"""
import glob, os, statistics as st, sys
import torch
from cubin import DT, Package
def timed(f, n=20, rounds=5):
    for _ in range(3): f()
    out = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True); a.record()
        for _ in range(n): f()
        b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b) / n)
    return st.median(out)
def graphed(bind, n=20):
    s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream()); g = torch.cuda.CUDAGraph()
    with torch.cuda.stream(s): bind()()
    s.synchronize()
    with torch.cuda.graph(g):
        run = bind()    # on the graph's stream
        for _ in range(n): run()
    g.run = run
    return timed(g.replay, 1) / n
def rival(q, k, v, mask):
    """The quickest of torch's kernels that take these, which lie as [B, H, S, D]: its name and its time."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    found = []
    for kind in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        def run():
            with sdpa_kernel(kind): return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        try: found.append((timed(run), kind.name))
        except RuntimeError: pass
    return min(found, default=None)
def error(q, k, v, o, mask=None):
    """The greatest norm of the difference to f64, of the first and the last head."""
    bad = 0
    for b, h in ((0, 0), (q.shape[0] - 1, q.shape[2] - 1)):
        g = h // (q.shape[2] // k.shape[2]); s = q[b, :, h].double() @ k[b, :, g].double().T * q.shape[-1] ** -0.5
        if mask is not None: s += mask[b, 0].double()
        truth = torch.softmax(s, -1) @ v[b, :, g].double(); bad = max(bad, ((o[b, :, h].double() - truth).norm() / truth.norm()).item())
    return bad
x = torch.empty(1 << 30, device="cuda", dtype=torch.uint8); y = torch.empty_like(x)
copy = 2 * x.numel() / timed(lambda: y.copy_(x)) / 1e9
del x, y
print(f"copy {copy:.2f} TB/s on {torch.cuda.get_device_name()}", flush=True)
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    name = os.path.basename(path); p = Package(path); torch.cuda.empty_cache()
    given = {i["name"]: torch.randn(i["shape"], device="cuda", dtype=DT[i["dtype"]][1]) for i in p.m["inputs"]}
    q, k, v = list(given.values())[:3]; o = torch.full(p.m["outputs"][0]["shape"], float("nan"), device="cuda", dtype=q.dtype)
    bind = lambda: p.bind({**given, p.m["outputs"][0]["name"]: o})
    bind()(); torch.cuda.synchronize()
    views = [z.transpose(1, 2) if name.startswith("bhsd-") else z for z in (q, k, v, o)]
    mask = list(given.values())[3] if len(given) == 4 else None
    bad, byte, graph = error(*views, mask), 2 * (k.numel() + v.numel()), graphed(bind)
    print(f"{name:26s} {byte / 2**20:7.0f} MiB {graph * 1e3:8.1f} us {byte / graph / 1e9:5.2f} TB/s, {byte / graph / 1e9 / copy:.3f} of copy, error {bad:.1e} {'right' if bad < 6e-3 else 'WRONG'}", flush=True)
    if mask is not None: print(f"{'':26s} torch's quickest: {rival(*(z.transpose(1, 2) for z in views[:3]), mask)}", flush=True)
    del p, given, q, k, v, o, views, mask

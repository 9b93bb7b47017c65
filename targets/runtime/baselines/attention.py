"""Times packages of attention beside FlashAttention-3 and cuDNN in one process, in turns, on random data. TFLOP/s, medians of events.

    python3 bench.py --fa3 _vllm_fa3_C.abi3.so --packages DIR [--rounds 10] [--json OUT]

Names of packages: ANY-DTYPE-D-S-(full|causal)[-KV]; each has kernels.cubin and manifest.json."""
import argparse, ctypes as C, glob, json, os, statistics as st, sys, time
import torch, torch.nn.functional as F
from torch.nn.attention import sdpa_kernel, SDPBackend
ap = argparse.ArgumentParser(); ap.add_argument("--fa3"); ap.add_argument("--packages"); ap.add_argument("--rounds", type=int, default=8)
ap.add_argument("--json"); ap.add_argument("--only", default=""); ap.add_argument("--no-rivals", action="store_true"); a = ap.parse_args()
cu = C.CDLL("libcuda.so.1"); d = "cuda"
def ok(r):
    if r: raise RuntimeError(f"CUDA driver error {r}")
torch.zeros(1, device=d)
DT = {"f16": (6, torch.float16), "bf16": (9, torch.bfloat16), "f32": (7, torch.float32)}
SW = {"none": 0, "b32": 1, "b64": 2, "b128": 3}; L2 = {"none": 0, "b64": 1, "b128": 2, "b256": 3}
class Package:
    """A package whose only step is a launch."""
    def __init__(self, path):
        m = self.m = json.load(open(path + "/manifest.json")); k = self.k = m["kernels"][0]
        mod = C.c_void_p(); self.code = open(f"{path}/{k['cubin']}", "rb").read()
        ok(cu.cuModuleLoadData(C.byref(mod), self.code)); self.f = C.c_void_p()
        ok(cu.cuModuleGetFunction(C.byref(self.f), mod, k["symbol"].encode()))
        ok(cu.cuFuncSetAttribute(self.f, 8, k["dynamic_shared_bytes"]))
    def bind(self, tensors):
        """Arguments for tensors by the manifest's names."""
        launch = self.m["steps"][0]["launch"]; held = []
        for p, arg in zip(self.k["params"], launch["args"]):
            if "memory" in arg:
                held.append(C.c_uint64(tensors[arg["memory"]["name"]].data_ptr())); continue
            t, mp = arg["tensor"], p["kind"]["tensor_map"]["map"]
            buf = C.create_string_buffer(256); at = (C.addressof(buf) + 127) & ~127
            n = len(t["dims"]); u64, u32 = C.c_uint64 * n, C.c_uint32 * n
            ptr = tensors[t["at"]["name"]].data_ptr() + t["at"].get("offset_bytes", 0)
            ok(cu.cuTensorMapEncodeTiled(C.c_void_p(at), DT[mp["dtype"]][0], n, C.c_void_p(ptr), u64(*t["dims"]),
               (C.c_uint64 * max(1, n - 1))(*t["strides_bytes"]), u32(*mp["box"]), u32(*[1] * n), 0, SW[mp["swizzle"]], L2[mp["l2_promotion"]], 0))
            held.append((C.c_char * 128).from_address(at)); held[-1]._keep = buf
        params = (C.c_void_p * len(held))(*[C.addressof(x) for x in held]); g, b = launch["grid"], self.k["block"]
        s = C.c_void_p(torch.cuda.current_stream().cuda_stream)
        def run(): ok(cu.cuLaunchKernel(self.f, *g, *b, self.k["dynamic_shared_bytes"], s, params, None))
        run.held = held; return run
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
    q = torch.randn(B, S, H, D, device=d, dtype=dt); k, v = [torch.randn(*kv, device=d, dtype=dt) for _ in range(2)]
    fl = 4 * B * H * S * S * D * (.5 if causal else 1); qt, kt, vt = [x.transpose(1, 2) for x in (q, k, v)]
    runs, errors = {}, {}
    gqa = kv[2] != H
    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION): return F.scaled_dot_product_attention(qt, kt, vt, is_causal=causal, enable_gqa=gqa)
    if not a.no_rivals:
        if a.fa3: runs["fa3"] = lambda: fa3(q, k, v, causal)
        runs["cudnn"] = cudnn
    # float64 on some rows of one head
    bb, hh, rr = B - 1, H - 1, torch.randint(0, S, (64,), device=d)
    s = q[bb, rr, hh].double() @ k[bb, :, hh // (H // kv[2])].double().T * D ** -0.5
    if causal: s = s.masked_fill(torch.arange(S, device=d)[None] > rr[:, None], -float("inf"))
    truth = torch.softmax(s, -1) @ v[bb, :, hh // (H // kv[2])].double()
    def err(x): return ((x[bb, rr, hh].double() - truth).norm() / truth.norm()).item()
    base = fa3(q, k, v, causal) if "fa3" in runs else cudnn().transpose(1, 2)
    if "fa3" in runs: errors["fa3"] = err(base)
    for name, path in packs:
        try:
            p = Package(path); o = torch.full_like(q, float("nan"))
            r = p.bind(dict(arg0=q, arg1=k, arg2=v, out0=o)); r(); torch.cuda.synchronize()
            e = err(o); far = (o.float() - base.float()).abs().max().item()
            errors[name] = e
            if not (e < 5e-3 and far < .1): print("WRONG", case, name, e, far, flush=True)
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

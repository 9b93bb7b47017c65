"""Rows, reductions, permutations and elementwise chains beside torch, eager and compiled, and a copy.

python3 rows.py export DIR            writes DIR/NAME.mlir of each case (wants torch-mlir)
python3 rows.py time PACKAGES [NAME]  times PACKAGES/NAME (`axe compile NAME.mlir --target sm_90a -o PACKAGES/NAME/`); each result is checked against f64
"""
import glob, os, statistics as st, sys
import torch, torch.nn.functional as F
f16, f32, i64 = torch.float16, torch.float32, torch.int64
CASES = {}
def case(name, fn, *inputs): CASES[name] = (fn, inputs)
def rope(x, cos, sin):
    a, b = x.chunk(2, -1); return x * cos + torch.cat((-b, a), -1) * sin
def swiglu(x):
    a, b = x.chunk(2, -1); return F.silu(a) * b
def normed_sum(x, r, g):
    h = x + r; return F.rms_norm(h, (h.shape[-1],), g), h
for r, n in ((1048576, 64), (131072, 512), (16384, 4096), (8192, 8192), (2048, 32768), (512, 131072), (256, 262144)):
    case(f"softmax_{r}x{n}", lambda x: F.softmax(x, -1), ((r, n), f16))
for r, n in ((16384, 4096), (2048, 32768)): case(f"logsoftmax_{r}x{n}", lambda x: F.log_softmax(x, -1), ((r, n), f16))
for r, n in ((131072, 512), (16384, 4096), (2048, 32768)):
    case(f"rmsnorm_{r}x{n}", lambda x, g: F.rms_norm(x, (x.shape[-1],), g), ((r, n), f16), ((n,), f16))
    case(f"layernorm_{r}x{n}", lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b), ((r, n), f16), ((n,), f16), ((n,), f16))
case("rmsnorm_residual_16384x4096", normed_sum, ((16384, 4096), f16), ((16384, 4096), f16), ((4096,), f16))
# Logits of vocabularies, and extents of which nothing is a multiple.
for n in (32000, 50257, 50304, 128256, 151936):
    case(f"softmax_{2**26 // n}x{n}", lambda x: F.softmax(x, -1), ((2**26 // n, n), f16))
    case(f"softmax_{2**25 // n}x{n}_f32", lambda x: F.softmax(x, -1), ((2**25 // n, n), f32))
    case(f"logsoftmax_{2**26 // n}x{n}", lambda x: F.log_softmax(x, -1), ((2**26 // n, n), f16))
for n in (65, 127, 1001):
    case(f"softmax_{2**26 // n}x{n}", lambda x: F.softmax(x, -1), ((2**26 // n, n), f16))
    case(f"softmax_{2**25 // n}x{n}_f32", lambda x: F.softmax(x, -1), ((2**25 // n, n), f32))
for n in (2001, 4001, 8001, 16001): case(f"logsoftmax_{2**26 // n}x{n}", lambda x: F.log_softmax(x, -1), ((2**26 // n, n), f16))
case("softmax_2097x16001_f32", lambda x: F.softmax(x, -1), ((2097, 16001), f32))
for n in (513, 8001): case(f"rmsnorm_{2**26 // n}x{n}", lambda x, g: F.rms_norm(x, (x.shape[-1],), g), ((2**26 // n, n), f16), ((n,), f16))
case("layernorm_67041x1001", lambda x, g, b: F.layer_norm(x, (1001,), g, b), ((67041, 1001), f16), ((1001,), f16), ((1001,), f16))
case("relu_67041x1001", F.relu, ((67041, 1001), f16))
case("add_67041x1001", lambda x, b: x + b, ((67041, 1001), f16), ((1001,), f16))
case("add_33520x1001_f32", lambda x, b: x + b, ((33520, 1001), f32), ((1001,), f32))
case("t_67041x1001", lambda x: x.t().contiguous(), ((67041, 1001), f16))
case("t_65537x1000", lambda x: x.t().contiguous(), ((65537, 1000), f16))
case("t_1001x67041", lambda x: x.t().contiguous(), ((1001, 67041), f16))
case("t_64x1024x1023", lambda x: x.transpose(1, 2).contiguous(), ((64, 1024, 1023), f16))
case("colsum_65536x1001", lambda x: x.float().sum(0), ((65536, 1001), f16))
case("permute_8x2048x32x127", lambda x: x.permute(0, 2, 1, 3).contiguous(), ((8, 2048, 32, 127), f16))
for n in (4096, 32000, 50257, 128256):
    case(f"cross_entropy_{2**27 // n}x{n}", lambda x, y: F.cross_entropy(x, y, reduction="none"), ((2**27 // n, n), f16), ((2**27 // n,), i64))
case("logsumexp_2670x50257", lambda x: torch.logsumexp(x, -1), ((2670, 50257), f16))
case("amax_2670x50257", lambda x: x.amax(-1), ((2670, 50257), f16))
case("rowsum_1046x128256", lambda x: x.sum(-1), ((1046, 128256), f16))
case("argmax_2048x32768", lambda x: x.argmax(-1), ((2048, 32768), f16))
case("argmax_16384x4096", lambda x: x.argmax(-1), ((16384, 4096), f16))
case("rope_8x32x2048x128", rope, ((8, 32, 2048, 128), f16), ((2048, 128), f16), ((2048, 128), f16))
case("swiglu_8192x24576", swiglu, ((8192, 24576), f16))
case("gelu_16384x8192", lambda x: F.gelu(x, approximate="tanh"), ((16384, 8192), f16))
case("add_16384x8192", lambda x, b: x + b, ((16384, 8192), f16), ((8192,), f16))
case("t_8192x8192", lambda x: x.t().contiguous(), ((8192, 8192), f16))
case("permute_8x2048x32x128", lambda x: x.permute(0, 2, 1, 3).contiguous(), ((8, 2048, 32, 128), f16))
case("permute_64x96x128x96", lambda x: x.permute(2, 3, 0, 1).contiguous(), ((64, 96, 128, 96), f16))
case("permute_32x16x64x32x64", lambda x: x.permute(0, 4, 2, 1, 3).contiguous(), ((32, 16, 64, 32, 64), f16))
case("amax_16384x4096", lambda x: x.amax(-1), ((16384, 4096), f16))
case("rowsum_16384x4096_f32", lambda x: x.sum(-1), ((16384, 4096), f32))
case("colsum_16384x4096_f32", lambda x: x.sum(0), ((16384, 4096), f32))
case("colsum_131072x512", lambda x: x.sum(0), ((131072, 512), f16))
# Rows that no number of parts divides, and columns that no vector does.
case("colsum_67041x1001", lambda x: x.sum(0), ((67041, 1001), f16))
case("mse_67043x512_f32", lambda x, y: F.mse_loss(x, y), ((67043, 512), f32), ((67043, 512), f32))
case("colsum_1000003x64_f32", lambda x: x.sum(0), ((1000003, 64), f32))
case("sum_16384x4096_f32", lambda x: x.sum(), ((16384, 4096), f32))
def export(folder):
    from torch_mlir import fx
    os.makedirs(folder, exist_ok=True)
    class Module(torch.nn.Module):
        def __init__(self, fn): super().__init__(); self.fn = fn
        def forward(self, *xs): return self.fn(*xs)
    for name, (fn, inputs) in CASES.items():
        module = fx.export_and_import(Module(fn), *[torch.zeros(s, dtype=d) for s, d in inputs], output_type="linalg-on-tensors", func_name="main")
        open(f"{folder}/{name}.mlir", "w").write(str(module))
def timed(f, n=10, rounds=3):
    f(); out = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True); a.record()
        for _ in range(n): f()
        b.record(); torch.cuda.synchronize(); out.append(a.elapsed_time(b) / n)
    return out
def time(folder, names, compiles=True):
    from cubin import DT, Package
    x = torch.empty(1 << 28, device="cuda", dtype=torch.uint8); y = torch.empty_like(x)
    copy = 2 * x.numel() / st.median(timed(lambda: y.copy_(x))) / 1e9; del x, y
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, a copy at {copy:.2f} TB/s", flush=True)
    for path in sorted(glob.glob(folder + "/*")):
        name = os.path.basename(path)
        if name not in CASES or names and name not in names: continue
        fn, inputs = CASES[name]; p = Package(path)
        xs = [torch.randint(0, inputs[0][0][-1], s, device="cuda") if d == i64 else torch.randn(s, device="cuda").to(d) for s, d in inputs]
        outs = [torch.full(o["shape"], 77, device="cuda", dtype=DT[o["dtype"]][1]) for o in p.m["outputs"]]
        run = p.bind({**{i["name"]: x for i, x in zip(p.m["inputs"], xs)}, **{o["name"]: t for o, t in zip(p.m["outputs"], outs)}}); run(); torch.cuda.synchronize()
        truth = fn(*[x.double() if x.is_floating_point() else x for x in xs]); truth = truth if isinstance(truth, (tuple, list)) else (truth,)
        error = max(((o.double() - w.double()).norm() / w.double().norm().clamp_min(1e-30)).item() for o, w in zip(outs, truth)); del truth
        runs = {"axe": run, "eager": lambda: fn(*xs)}
        if compiles: torch._dynamo.reset(); compiled = torch.compile(fn); compiled(*xs); runs["compiled"] = lambda: compiled(*xs)
        times = {k: [] for k in runs}
        for _ in range(4):
            for k, f in runs.items(): times[k] += timed(f)
        m = {k: st.median(v) for k, v in times.items()}; best = min(m[k] for k in m if k != "axe")
        moved = sum(t.numel() * t.element_size() for t in xs + outs)
        print(f"{name:30s} {moved / 2**20:5.0f} MiB  " + "  ".join(f"{k} {v * 1e3:7.1f} us" for k, v in m.items())
              + f"  {moved / m['axe'] / 1e9 / copy:.2f} of copy  {best / m['axe']:.2f} of torch's best  error {error:.0e}  {len(p.m['steps'])} kernels", flush=True)
        del run, p, outs, xs; torch.cuda.empty_cache()
if __name__ == "__main__":
    export(sys.argv[2]) if sys.argv[1] == "export" else time(sys.argv[2], sys.argv[3:])

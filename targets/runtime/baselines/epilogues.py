"""What an epilogue costs: linear layers with what torch has behind them, beside the plain product, on the weights of `--suite llm`; and a
feed-forward block beside torch, eager and compiled.

python3 epilogues.py export DIR            writes DIR/NAME.mlir of each case (wants torch-mlir)
python3 epilogues.py time PACKAGES [JSON]  times PACKAGES/NAME (`axe compile NAME.mlir --target sm_90a -o PACKAGES/NAME/`): the kernels of a weight in turns

Some rows of each result are checked against f64."""
import collections, json, os, random, statistics as st, sys
import torch, torch.nn.functional as F
f16, M = torch.float16, 8192
# Columns and depth of the two products of each model's feed-forward block (targets/runtime/src/bench/weights.rs).
MODELS = ((4096, 24576, 12288), (5120, 51200, 25600), (4096, 28672, 14336), (8192, 57344, 28672), (16384, 106496, 53248), (3584, 28672, 14336), (4608, 73728, 36864), (12288, 49152, 49152))
WEIGHTS = [w for hidden, up, down in MODELS for w in ((up, hidden), (hidden, down))]
def two(x, w, r): h = F.linear(x, w) + r; return h, F.silu(h)
def amax(x, w, b): y = F.linear(x, w, b); return y, y.abs().amax(-1)
def squares(x, w, r): h = F.linear(x, w) + r; return h, h.float().pow(2).mean(-1)
KINDS = {"plain": lambda x, w: F.linear(x, w), "bias": lambda x, w, b: F.linear(x, w, b), "gelu": lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
         "silu": lambda x, w, b: F.silu(F.linear(x, w, b)), "residual": lambda x, w, r: F.linear(x, w) + r, "two": two, "amax": amax, "squares": squares}
def mlp(x, w, b, v, c): return F.linear(F.gelu(F.linear(x, w, b), approximate="tanh"), v, c)
def shapes(kind, n, k):
    third = {"plain": (), "bias": ((n,),), "gelu": ((n,),), "silu": ((n,),), "amax": ((n,),)}
    return (M, k), (n, k), *third.get(kind, ((M, n),))
CASES = {f"{kind}_{n}x{k}": (kind, fn, shapes(kind, n, k)) for n, k in dict.fromkeys(WEIGHTS) for kind, fn in KINDS.items()}
BLOCKS = {"mlp_qwen3_8b": (mlp, ((M, 4096), (12288, 4096), (12288,), (4096, 12288), (4096,)))}
def export(folder):
    from torch_mlir import fx
    os.makedirs(folder, exist_ok=True)
    class Module(torch.nn.Module):
        def __init__(self, fn): super().__init__(); self.fn = fn
        def forward(self, *xs): return self.fn(*xs)
    for name, (fn, inputs) in {**{n: c[1:] for n, c in CASES.items()}, **BLOCKS}.items():
        with torch.device("meta"): args = [torch.empty(s, dtype=f16) for s in inputs]
        module = fx.export_and_import(Module(fn), *args, output_type="linalg-on-tensors", func_name="main")
        open(f"{folder}/{name}.mlir", "w").write(str(module))
def drawn(shape): return torch.randn(shape, device="cuda", dtype=f16) * (shape[-1] ** -.5 if len(shape) == 2 and shape[0] != M else 1)
def bind(path, fn, xs):
    """A package on these tensors, its results poisoned; whether the rows that are looked at are right."""
    from cubin import DT, Package
    p = Package(path); outs = [torch.full(o["shape"], 77, device="cuda", dtype=DT[o["dtype"]][1]) for o in p.m["outputs"]]
    run = p.bind({**{i["name"]: x for i, x in zip(p.m["inputs"], xs)}, **{o["name"]: t for o, t in zip(p.m["outputs"], outs)}}); run(); torch.cuda.synchronize()
    rows = torch.randint(0, M, (64,), device="cuda"); few = [x[rows].double() if i in (0, 2) and x.dim() == 2 else x.double() for i, x in enumerate(xs)]
    truth = fn(*few) if fn is not squares else (lambda h: (h, h.pow(2).mean(-1)))(F.linear(*few[:2]) + few[2])
    error = max(((o[rows].double() - t).norm() / t.norm()).item() for o, t in zip(outs, truth if isinstance(truth, tuple) else (truth,)))
    run.kept = p, outs; run.error = error; run.steps = len(p.m["steps"])
    return run
def turns(runs, rounds):
    """Milliseconds: medians of each over rounds, each in another order, since what ran before leaves the chip's power its mark."""
    times, order = collections.defaultdict(list), list(runs)
    for _ in range(rounds):
        random.shuffle(order)
        for k in order:
            ev = [torch.cuda.Event(True) for _ in range(3)]; runs[k]()
            for x in ev: x.record(); runs[k]()
            torch.cuda.synchronize(); times[k] += [x.elapsed_time(y) for x, y in zip(ev, ev[1:])]
    return {k: st.median(v) for k, v in times.items()}
def time(folder, out):
    ratios, table = collections.defaultdict(list), {}
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for n, k in dict.fromkeys(WEIGHTS):
        runs, shared = {}, {}
        for kind, fn in KINDS.items():
            path = f"{folder}/{kind}_{n}x{k}"
            if not os.path.exists(path): continue
            runs[kind] = bind(path, fn, [shared.setdefault(s, drawn(s)) for s in shapes(kind, n, k)])
        if "plain" not in runs: continue
        m = turns(runs, max(6, min(24, int(6e13 / (2 * M * n * k))))); table[f"{n}x{k}"] = m
        for kind in m: ratios[kind].append(m[kind] / m["plain"])
        print(f"{n}x{k}: " + "  ".join(f"{kind} {t * 1e3:.0f} us {t / m['plain']:.3f}" + (f" ({runs[kind].steps} kernels)" if runs[kind].steps > 1 else "")
              + (f" WRONG {runs[kind].error:.0e}" if not runs[kind].error < 3e-3 else "") for kind, t in m.items()), flush=True)
        del runs, shared; torch.cuda.empty_cache()
    for kind, all in ratios.items(): print(f"{kind:9s} mean {st.geometric_mean(all):.3f}  worst {max(all):.3f}", flush=True)
    for name, (fn, inputs) in BLOCKS.items():
        if not os.path.exists(f"{folder}/{name}"): continue
        xs = [drawn(s) for s in inputs]; run = bind(f"{folder}/{name}", fn, xs); compiled = torch.compile(fn, mode="max-autotune-no-cudagraphs"); compiled(*xs)
        m = turns({"axe": run, "eager": lambda: fn(*xs), "compiled": lambda: compiled(*xs)}, 30); table[name] = m
        print(name, {k: f"{t * 1e3:.0f} us" for k, t in m.items()}, f"{min(m['eager'], m['compiled']) / m['axe']:.3f} of torch's best, error {run.error:.0e}", flush=True)
    if out: json.dump(table, open(out, "w"), indent=1)
if __name__ == "__main__":
    export(sys.argv[2]) if sys.argv[1] == "export" else time(sys.argv[2], (sys.argv + [None])[3])

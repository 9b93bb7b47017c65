"""What `rows.py` times, of many lengths, and moves and maps of shapes that models have: beside torch, eager, and a copy.

python3 survey.py export DIR            writes DIR/NAME.mlir of each case (wants torch-mlir)
python3 survey.py time PACKAGES [NAME]  times PACKAGES/NAME (`axe compile NAME.mlir --target sm_90a -o PACKAGES/NAME/`); each result is checked against f64
"""
import sys
import torch, torch.nn.functional as F
import rows
from rows import case, f16, f32, i64, normed_sum, rope
rows.CASES.clear()
TYPES = {"f16": f16, "bf16": torch.bfloat16, "f32": f32}
SHORT = 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 192, 200, 224, 256, 320, 384, 640, 768
LONG = (1024, 1280, 1536, 2048, 3072, 5120, 8192, 12288, 16384, 20480, 24576, 28672, 32768, 36864, 40001, 40960, 49152, 60008, 65536, 98304, 131072, 163840, 200000,
        250002, 262144)
ODD = (65, 97, 100, 102, 127, 130, 150, 197, 250, 301, 333, 402, 501, 770, 1000, 1001, 1002, 1501, 2047, 3001, 4097, 5000, 5003, 6001, 6002, 7001, 9001, 10007, 12001, 16386, 16387, 28704, 33333, 36008, 50257, 65537, 70000, 100000,
       100001, 120000, 131073, 151936)
def layer_norm(x, g, b): return F.layer_norm(x, (x.shape[-1],), g, b)
def rms_norm(x, g): return F.rms_norm(x, (x.shape[-1],), g)
def softmax(x): return F.softmax(x, -1)
def log_softmax(x): return F.log_softmax(x, -1)
def entropy(x, y): return F.cross_entropy(x, y, reduction="none")
for t, d in TYPES.items():
    for n in SHORT + LONG + ODD:
        if t == "bf16" and n in ODD: continue
        r = 2**27 // d.itemsize // n; x, g, y = ((r, n), d), ((n,), d), ((2 * r,), i64); long = ((2 * r, n), d)
        case(f"layernorm_{t}_{n}", layer_norm, x, g, g); case(f"rmsnorm_{t}_{n}", rms_norm, x, g); case(f"softmax_{t}_{n}", softmax, x)
        if n in (64, 200, 768, 1024, 8192, 24576, 65536, 262144, *ODD): case(f"rmsres_{t}_{n}", normed_sum, x, x, g)
        if n in (64, 200, 1024, 16384, 65536, 262144):
            case(f"entropy_{t}_{n}", entropy, long, y); case(f"argmax_{t}_{n}", lambda x: x.argmax(-1), long); case(f"sum_{t}_{n}", lambda x: x.sum(-1), long)
            case(f"logsoftmax_{t}_{n}", log_softmax, x)
for r, n in ((131072, 256), (16384, 2048), (8192, 4096), (1334, 50304)):
    x = ((r, n), f16); case(f"widesoftmax_{r}x{n}", lambda x: softmax(x.float()), x); case(f"widelogsoftmax_{r}x{n}", lambda x: log_softmax(x.float()), x)
    case(f"widermsnorm_{r}x{n}", lambda x, g: rms_norm(x.float(), g), x, ((n,), f32))
for t, d in (("f16", f16), ("f32", f32)):
    for s in ((4096, 11008), (50257, 768), (8192, 5120), (32000, 2048), (131072, 320), (262144, 96), (1000000, 48)): case(f"t_{t}_{s[0]}x{s[1]}", lambda x: x.t().contiguous(), (s, d))
    for b, h, n, k in ((8, 32, 2048, 64), (8, 25, 2048, 80), (8, 20, 4096, 96), (64, 12, 1024, 64)): case(f"heads_{t}_{b}x{h}x{n}x{k}", lambda x: x.permute(0, 2, 1, 3).contiguous(), ((b, n, h, k), d))
    for b, c, w in ((256, 3, 224), (64, 64, 112), (64, 320, 56), (256, 512, 14), (512, 1280, 7), (32, 96, 128)):
        x, name = ((b, c, w, w), d), f"{t}_{b}x{c}x{w}"
        case(f"nhwc_{name}", lambda x: x.permute(0, 2, 3, 1).contiguous(), x); case(f"nchw_{name}", lambda x: x.permute(0, 3, 1, 2).contiguous(), ((b, w, w, c), d))
        case(f"bias_{name}", lambda x, y: torch.relu(x + y), x, ((c, 1, 1), d)); case(f"mean_{name}", lambda x: x.mean((2, 3)), x)
    for b, c, w in ((16, 320, 64), (32, 640, 32), (64, 1280, 16), (8, 128, 256)): case(f"groupnorm_{t}_{b}x{c}x{w}", lambda x, g, b: F.group_norm(x, 32, g, b), ((b, c, w, w), d), ((c,), d), ((c,), d))
    for s in ((16384, 3000), (40000, 768), (100000, 257)):
        x, name = (s, d), f"{t}_{s[0]}x{s[1]}"
        case(f"cast_{name}", lambda x: x.to(f32 if x.dtype == f16 else f16), x); case(f"silu_{name}", F.silu, x); case(f"glu_{name}", lambda x, y: F.silu(x) * y, x, x)
        case(f"cat_{name}", lambda x, y: torch.cat((x, y), -1), x, x); case(f"slice_{name}", lambda x: x[:, 1:].contiguous(), x); case(f"scale_{name}", lambda x, y: x * y, x, ((s[0], 1), d))
    for k in (64, 80, 96, 128):
        case(f"rope_{t}_{k}", rope, ((8, 24, 2048, k), d), ((2048, k), d), ((2048, k), d)); case(f"ropebshd_{t}_{k}", rope, ((8, 2048, 24, k), d), ((2048, 1, k), d), ((2048, 1, k), d))
    case(f"kl_{t}", lambda x, y: F.kl_div(log_softmax(x), softmax(y), reduction="batchmean"), ((2048, 32000), d), ((2048, 32000), d))
if __name__ == "__main__":
    rows.export(sys.argv[2]) if sys.argv[1] == "export" else rows.time(sys.argv[2], sys.argv[3:], False)

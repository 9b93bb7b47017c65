"""Packages of one kernel, launched by the driver on torch's tensors and stream: for baselines that take turns with torch in one process."""
import ctypes as C, json
import torch
cu = C.CDLL("libcuda.so.1")
def ok(r):
    if r: raise RuntimeError(f"CUDA driver error {r}")
torch.zeros(1, device="cuda")
DT = {"f16": (6, torch.float16), "bf16": (9, torch.bfloat16), "f32": (7, torch.float32)}
SW = {"none": 0, "b32": 1, "b64": 2, "b128": 3}; L2 = {"none": 0, "b64": 1, "b128": 2, "b256": 3}
class Package:
    """A package of one kernel, which is launched once."""
    def __init__(self, path):
        m = self.m = json.load(open(path + "/manifest.json")); k = self.k = m["kernels"][0]
        mod = C.c_void_p(); self.code = open(f"{path}/{k['cubin']}", "rb").read()
        ok(cu.cuModuleLoadData(C.byref(mod), self.code)); self.f = C.c_void_p()
        ok(cu.cuModuleGetFunction(C.byref(self.f), mod, k["symbol"].encode()))
        ok(cu.cuFuncSetAttribute(self.f, 8, k["dynamic_shared_bytes"]))
    def bind(self, tensors):
        """Arguments for tensors by the manifest's names."""
        launch = next(step["launch"] for step in self.m["steps"] if "launch" in step); held = []
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

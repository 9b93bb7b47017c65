"""Packages launched by the driver on torch's tensors and stream: for baselines that take turns with torch in one process."""
import ctypes as C, json, math
import torch
cu = C.CDLL("libcuda.so.1")
def ok(r):
    if r: raise RuntimeError(f"CUDA driver error {r}")
torch.zeros(1, device="cuda")
# What cuTensorMapEncodeTiled calls a type, where tensor maps have it, and torch's.
DT = {"f16": (6, torch.float16), "bf16": (9, torch.bfloat16), "f32": (7, torch.float32), "f64": (None, torch.float64), "i64": (None, torch.int64), "i32": (None, torch.int32), "i8": (None, torch.int8), "bool": (None, torch.bool), "u8": (0, torch.uint8), "f8e4m3": (0, torch.float8_e4m3fn)}
SW = {"none": 0, "b32": 1, "b64": 2, "b128": 3}; L2 = {"none": 0, "b64": 1, "b128": 2, "b256": 3}
class Config(C.Structure):
    """CUlaunchConfig."""
    _fields_ = [("sizes", C.c_uint * 7), ("stream", C.c_void_p), ("attributes", C.c_void_p), ("count", C.c_uint)]
class Attribute(C.Structure):
    """CUlaunchAttribute: its kind, and 64 bytes from the eighth on of which an int is used."""
    _fields_ = [("id", C.c_int), ("pad", C.c_int), ("value", C.c_int * 16)]
SERIALIZED_BY_PROGRAM = 6
NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
class Package:
    """A package of launches alone, of static sizes."""
    def __init__(self, path):
        m = self.m = json.load(open(path + "/manifest.json")); self.kernels, self.code = {}, []
        for k in m["kernels"]:
            mod, f = C.c_void_p(), C.c_void_p(); code = open(f"{path}/{k['cubin']}", "rb").read(); self.code.append(code)
            ok(cu.cuModuleLoadData(C.byref(mod), code)); ok(cu.cuModuleGetFunction(C.byref(f), mod, k["symbol"].encode()))
            ok(cu.cuFuncSetAttribute(f, 8, k["dynamic_shared_bytes"]))
            if math.prod(k.get("cluster") or [1]) > 8: ok(cu.cuFuncSetAttribute(f, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
            self.kernels[k["name"]] = k, f
        self.buffers = {b["name"]: torch.empty(b["shape"], device="cuda", dtype=DT[b["dtype"]][1]) for b in m.get("buffers", [])}
        for b in m.get("buffers", []):
            init, own = b.get("init"), self.buffers[b["name"]]
            if isinstance(init, dict): own.copy_(torch.frombuffer(bytearray(open(f"{path}/{init['data']['file']}", "rb").read()), dtype=own.dtype).view(own.shape))
    def bind(self, tensors):
        """Arguments for tensors by the manifest's names."""
        tensors = {**tensors, **self.buffers}; s = C.c_void_p(torch.cuda.current_stream().cuda_stream); calls = []
        at_of = lambda m: tensors[m["name"]].data_ptr() + m.get("offset_bytes", 0)
        for step in self.m["steps"]:
            launch = step["launch"]; k, f = self.kernels[launch["kernel"]]; held = []
            for p, arg in zip(k["params"], launch["args"]):
                if "memory" in arg:
                    held.append(C.c_uint64(at_of(arg["memory"]))); continue
                t, mp = arg["tensor"], p["kind"]["tensor_map"]["map"]
                buf = C.create_string_buffer(256); at = (C.addressof(buf) + 127) & ~127
                n = len(t["dims"]); u64, u32 = C.c_uint64 * n, C.c_uint32 * n
                ok(cu.cuTensorMapEncodeTiled(C.c_void_p(at), DT[mp["dtype"]][0], n, C.c_void_p(at_of(t["at"])), u64(*t["dims"]),
                   (C.c_uint64 * max(1, n - 1))(*t["strides_bytes"]), u32(*mp["box"]), u32(*[1] * n), 0, SW[mp["swizzle"]], L2[mp["l2_promotion"]], 0))
                held.append((C.c_char * 128).from_address(at)); held[-1]._keep = buf
            params = (C.c_void_p * len(held))(*[C.addressof(x) for x in held])
            early = Attribute(SERIALIZED_BY_PROGRAM, 0, (1,)); sizes = (*launch["grid"], *k["block"], k["dynamic_shared_bytes"])
            how = Config(sizes, s, C.addressof(early), 1 if launch.get("overlaps_previous") else 0)
            calls.append((f, C.byref(how), params, (held, how, early)))
        def run():
            for f, how, params, _ in calls: ok(cu.cuLaunchKernelEx(how, f, params, None))
        return run

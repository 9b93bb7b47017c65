"""Functions of torch that are maps, rows, reductions, gathers or permutations of tensors of 64 to 256 MiB beside torch, eager: where kernels are plainly bad.

python3 sweep.py export DIR            writes DIR/NAME.mlir of each case (wants torch-mlir)
python3 sweep.py time PACKAGES [NAME]  as rows.py does, without torch.compile
"""
import sys
import torch, torch.nn.functional as F
import rows
from rows import f16, f32, i64
rows.CASES.clear()
KINDS = {f16: ("f16", 1), f32: ("f32", 2)}
def case(name, fn, *inputs, kinds=(f16, f32)):
    """A case in each of the types, where inputs name none; in f32 of half the first extent of the first input, and of those of its shape."""
    first = inputs[0][0]
    for kind in kinds:
        tag, by = KINDS[kind]
        rows.case(f"{name}_{tag}", fn, *[((s[0] // by, *s[1:]) if s == first else s, d[0] if d else kind) for s, *d in inputs])
A, IMAGE = (16384, 4096), (64, 64, 128, 128)
def maps():
    one = {"clamp": lambda x: x.clamp(-1, 1), "hardswish": F.hardswish, "mish": F.mish, "elu": F.elu, "softplus": F.softplus, "leaky_relu": F.leaky_relu, "sigmoid": torch.sigmoid,
           "gelu": F.gelu, "silu": F.silu, "pow3": lambda x: x ** 3, "pow1.5": lambda x: x.abs() ** 1.5, "rsqrt_abs": lambda x: (x.abs() + 1).pow(-0.5),
           "quantize": lambda x: (x * 16).round().clamp(-128, 127).to(torch.int8)}
    for name, fn in one.items(): case(name, fn, (A,))
    case("masked_fill", lambda x, y: x.masked_fill(y > 0, -1e4), (A,), (A,))
    case("where", lambda x, y: torch.where(x > y, x, y * 2), (A,), (A,))
    case("lerp", lambda x, y: torch.lerp(x, y, 0.3), (A,), (A,))
    case("bias_gelu", lambda x, b: F.gelu(x + b), (A,), ((4096,),))
    case("glu", lambda x: F.glu(x, -1), (A,))
    case("outer", torch.outer, ((16384,),), ((4096,),))
    case("tril", torch.tril, ((8192, 8192),))
    case("batch_norm", lambda x, m, v, g, b: F.batch_norm(x, m, v.abs() + 1, g, b), (IMAGE,), *[((64,),)] * 4)
def reductions():
    case("vector_norm", lambda x: torch.linalg.vector_norm(x, dim=-1), (A,))
    case("norm_all", lambda x: torch.linalg.vector_norm(x), (A,))
    case("norm1", lambda x: torch.linalg.vector_norm(x, ord=1, dim=-1), (A,))
    case("normalize", lambda x: F.normalize(x, dim=-1), (A,))
    case("cosine", lambda x, y: F.cosine_similarity(x, y, dim=-1), (A,), (A,))
    case("var", lambda x: x.var(-1), (A,)); case("std_columns", lambda x: x.std(0), (A,))
    case("mean", lambda x: x.mean(-1), (A,)); case("mean_columns", lambda x: x.mean(0), (A,))
    case("mean_middle", lambda x: x.mean(1), ((64, 1024, 1024),)); case("mean_image", lambda x: x.mean((2, 3)), (IMAGE,))
    case("sum_channels", lambda x: x.sum((0, 2, 3)), (IMAGE,)); case("amax_0_2", lambda x: x.amax((0, 2)), ((64, 1024, 1024),))
    case("argmin", lambda x: x.argmin(-1), (A,)); case("argmax_columns", lambda x: x.argmax(0), (A,))
    case("any", lambda x: (x > 3).any(-1), (A,)); case("all", lambda x: (x < 3).all(-1), (A,))
    case("logsumexp_columns", lambda x: torch.logsumexp(x, 0), (A,)); case("mse", F.mse_loss, (A,), (A,)); case("l1", lambda x, y: F.l1_loss(x, y), (A,), (A,))
    case("bce", lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), (A,), (A,)); case("cumsum", lambda x: x.cumsum(-1), (A,)); case("prod", lambda x: x.prod(-1), (A,))
def normalizations():
    case("softmax_middle", lambda x: F.softmax(x, 1), ((64, 1024, 1024),)); case("softmax_first", lambda x: F.softmax(x, 0), ((1024, 65536),)); case("softmax_channels", lambda x: F.softmax(x, 1), (IMAGE,))
    case("softmax_odd", lambda x: F.softmax(x, -1), ((1335, 50257),)); case("softmax_scaled_masked", lambda x, m: F.softmax(x * 0.125 + m, -1), ((16, 16, 512, 512),), ((512, 512),))
    case("group_norm", lambda x, g, b: F.group_norm(x, 8, g, b), (IMAGE,), ((64,),), ((64,),)); case("instance_norm", lambda x: F.instance_norm(x), (IMAGE,))
    case("group_norm_written", lambda x, g, b: (lambda y, w, c: ((y - y.mean((2, 3), True)) * (y.var((2, 3), unbiased=False, keepdim=True) + 1e-5).rsqrt() * w + c).reshape(x.shape))(x.reshape(x.shape[0], 8, 8, -1), g.reshape(8, 8, 1), b.reshape(8, 8, 1)), (IMAGE,), ((64,),), ((64,),))
    case("layer_norm_2", lambda x, g, b: F.layer_norm(x, (64, 64), g, b), ((16384, 64, 64),), ((64, 64),), ((64, 64),)); case("layer_norm_odd", lambda x, g, b: F.layer_norm(x, (1000,), g, b), ((65536, 1000),), ((1000,),), ((1000,),))
    case("layer_norm_32768", lambda x, g, b: F.layer_norm(x, (32768,), g, b), ((2048, 32768),), ((32768,),), ((32768,),)); case("layer_norm_silu", lambda x, g, b: F.silu(F.layer_norm(x, (4096,), g, b)), (A,), ((4096,),), ((4096,),))
    case("log_softmax_channels", lambda x: F.log_softmax(x, 1), (IMAGE,)); case("normalize_channels", lambda x: F.normalize(x, dim=1), (IMAGE,))
    case("layer_norm_channels", lambda x, g, b: (x - x.mean(1, True)) * (x.var(1, unbiased=False, keepdim=True) + 1e-6).rsqrt() * g + b, (IMAGE,), ((64, 1, 1),), ((64, 1, 1),))
    case("layer_norm_permuted", lambda x, g, b: F.layer_norm(x.permute(0, 2, 3, 1), (64,), g, b).permute(0, 3, 1, 2), (IMAGE,), ((64,),), ((64,),))
    case("cross_entropy_channels", lambda x, t: F.cross_entropy(x, t, reduction="none"), ((1024, 64, 32, 32),), ((1024, 32, 32), i64), kinds=(f16,))
    case("softmax_classes", lambda x: F.softmax(x, 1), ((16, 21, 512, 512),))
    case("batch_norm_training", lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True), (IMAGE,), ((64,),), ((64,),))
    case("aminmax", lambda x: (x.amin(-1), x.amax(-1)), (A,)); case("standardize", lambda x: (x - x.mean(-1, True)) / x.std(-1, keepdim=True), (A,))
    case("rms_norm_4096", lambda x, g: F.rms_norm(x, (4096,), g), (A,), ((4096,),))
def permutations():
    case("cat_0", lambda x, y: torch.cat((x, y)), ((8192, 4096),), ((8192, 4096),)); case("cat_1", lambda x, y: torch.cat((x, y), 1), ((16384, 2048),), ((16384, 2048),)); case("stack", lambda x, y: torch.stack((x, y), 2), ((16384, 2048),), ((16384, 2048),))
    case("roll", lambda x: x.roll(3, -1), (A,)); case("flip", lambda x: x.flip(-1), (A,)); case("pad", lambda x: F.pad(x, (1, 1, 1, 1)), (IMAGE,)); case("reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), (IMAGE,))
    case("repeat_interleave", lambda x: x.repeat_interleave(2, -1), ((16384, 2048),)); case("repeat_heads", lambda x: x[:, :, None].expand(8, 8, 4, 2048, 128).reshape(8, 32, 2048, 128), ((8, 8, 2048, 128),), kinds=(f16,))
    case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (IMAGE,)); case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (IMAGE,)); case("windows", lambda x: x.view(x.shape[0], 64, 16, 8, 16, 8).permute(0, 2, 4, 3, 5, 1).contiguous(), (IMAGE,))
    case("image_planes", lambda x: x.permute(0, 3, 1, 2).contiguous(), ((512, 224, 224, 3),)); case("image_channels", lambda x: x.permute(0, 2, 3, 1).contiguous(), ((512, 3, 224, 224),))
    case("nchw_to_nhwc", lambda x: x.permute(0, 2, 3, 1).contiguous(), (IMAGE,)); case("transpose_inner", lambda x: x.transpose(1, 2).contiguous(), ((64, 1024, 1024),))
    case("avg_pool", lambda x: F.avg_pool2d(x, 2), (IMAGE,)); case("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGE,)); case("adaptive_pool", lambda x: F.adaptive_avg_pool2d(x, (1, 1)), (IMAGE,))
    case("depthwise", lambda x, w: F.conv2d(x, w, padding=1, groups=64), (IMAGE,), ((64, 1, 3, 3),))
    case("upsample", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), ((64, 64, 64, 64),)); case("unfold", lambda x: x.unfold(1, 16, 8).contiguous(), ((8192, 4096),))
    case("upsample_expand", lambda x: x[:, :, :, None, :, None].expand(*x.shape[:3], 2, x.shape[3], 2).reshape(*x.shape[:2], 128, 128), ((64, 64, 64, 64),))
    # Indices are below the last extent of the first input (rows.py): the table has as many rows in f32 too.
    case("embedding", lambda t, i: F.embedding(i, t), ((8192, 4096),), ((16384,), i64)); case("index_select", lambda t, i: t.index_select(0, i), ((8192, 4096),), ((16384,), i64)); case("gather", lambda x, i: torch.gather(x, 1, i), ((4096, 4096),), ((4096, 4096), i64))
    case("rope_interleaved", lambda x, c, s: torch.stack((x[..., 0::2] * c - x[..., 1::2] * s, x[..., 0::2] * s + x[..., 1::2] * c), -1).flatten(-2), ((256, 2048, 128),), ((2048, 64),), ((2048, 64),))
    case("qkv_split", lambda x: [t.contiguous() for t in x.view(4, 4096, 3, 16, 128).permute(2, 0, 3, 1, 4).unbind(0)], ((16384, 6144),), kinds=(f16,))
def parts():
    """What is reduced in parts: columns that no CTA holds, and few long rows."""
    rows.case("softmax_columns_16384_f16", lambda x: x.softmax(0), ((16384, 4096), f16)); rows.case("log_softmax_columns_16384_f32", lambda x: x.log_softmax(0), ((16384, 2048), f32))
    rows.case("logsumexp_8x8388608_f16", lambda x: torch.logsumexp(x, -1), ((8, 8388608), f16)); rows.case("logsumexp_8x100000_f32", lambda x: torch.logsumexp(x, -1), ((8, 100000), f32))
    for kind, tag in ((f16, "f16"), (f32, "f32")): rows.case(f"var_few_rows_{tag}", lambda x: x.var(-1), ((8, 8388608), kind))
    rows.case("var_64x128000_f16", lambda x: x.var(-1), ((64, 128000), f16)); rows.case("var_8x100000_f32", lambda x: x.var(-1), ((8, 100000), f32))
for part in (maps, reductions, normalizations, permutations, parts): part()
if __name__ == "__main__":
    rows.export(sys.argv[2]) if sys.argv[1] == "export" else rows.time(sys.argv[2], sys.argv[3:], compiles=False)

"""Functions of math and i1 on tensors that no tile divides, beside numpy in more digits.

functions.py FOLDER AXE TARGET [NAME ...]    compiles each module, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                             and compares the results; what it writes is left in FOLDER
"""
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ROWS, COLUMNS = 37, 29
MAP = "affine_map<(d0, d1) -> (d0, d1)>"
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
         "void16": "bf16"}


class Format:
    """A float format: what it holds, as numbers of a wider one where NumPy lacks it, and how its files hold it."""

    def __init__(self, dtype):
        self.dtype, self.info = dtype, np.finfo(dtype)
        self.element = NAMES[np.dtype(dtype).name]

    def rounded(self, values):
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.dtype)

    def stored(self, values):
        return values


class BFloat16(Format):
    """The upper halves of f32, rounded to even; in files two bytes without a type (reference.py)."""

    def __init__(self):
        self.dtype, self.element = np.float32, "bf16"
        self.info = SimpleNamespace(eps=2.0**-7, tiny=2.0**-126, max=float.fromhex("0x1.fep127"))

    def rounded(self, values):
        with np.errstate(over="ignore"):
            bits = np.atleast_1d(np.asarray(values).astype(np.float32)).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).reshape(np.shape(values))

    def stored(self, values):
        return (values.view(np.uint32) >> 16).astype(np.uint16).view("V2")


def widened(values):
    """The numbers in a file's array."""
    if values.dtype.kind != "V":
        return values
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def one(function):
    return np.vectorize(function, otypes=[np.float64])


def safe(function):
    def applied(*numbers):
        try:
            return function(*numbers)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
    return one(applied)


# What a function is, where its arguments come from, and how many units in the last place of f64 it may be off.
ONE = {
    "exp": (np.exp, (-30, 30), 4),
    "exp2": (np.exp2, (-30, 30), 4),
    "expm1": (np.expm1, (-4, 10), 4),
    "log": (np.log, (1e-3, 50), 4),
    "log2": (np.log2, (1e-3, 50), 4),
    "log10": (np.log10, (1e-3, 50), 4),
    "log1p": (np.log1p, (-0.9, 50), 4),
    "sin": (np.sin, (-1e6, 1e6), 4),
    "cos": (np.cos, (-50, 50), 4),
    "tan": (np.tan, (-50, 50), 6),
    "asin": (np.arcsin, (-1, 1), 6),
    "acos": (np.arccos, (-1, 1), 6),
    "atan": (np.arctan, (-30, 30), 4),
    "sinh": (np.sinh, (-20, 20), 6),
    "cosh": (np.cosh, (-20, 20), 6),
    "tanh": (np.tanh, (-4, 4), 6),
    "asinh": (np.arcsinh, (-30, 30), 6),
    "acosh": (np.arccosh, (1, 30), 6),
    "atanh": (np.arctanh, (-0.99, 0.99), 6),
    "cbrt": (np.cbrt, (-30, 30), 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.01, 30), 4),
    "sqrt": (np.sqrt, (0, 30), 1),
    "erf": (one(math.erf), (-4, 4), 6),
    "erfc": (one(math.erfc), (-3, 5), 8),
    "absf": (np.abs, (-30, 30), 0),
    "ceil": (np.ceil, (-30, 30), 0),
    "floor": (np.floor, (-30, 30), 0),
    "trunc": (np.trunc, (-30, 30), 0),
    "round": (lambda x: np.trunc(x + np.copysign(0.5, x)), (-30, 30), 0),
    "roundeven": (np.rint, (-30, 30), 0),
}
# What narrow floats have by the hardware's approximations: 2^-20 of the value and of the argument's size.
APPROXIMATE = {"exp", "exp2", "log", "log2", "tanh", "erf", "rsqrt"}
# Of f32 in f32: 1.5 units in the last place, where the others are rounded correctly.
IN_F32 = {"log1p"}
TWO = {"atan2": (np.arctan2, (-30, 30), 6), "powf": (safe(math.pow), (0.1, 6), 6), "copysign": (np.copysign, (-30, 30), 0)}
# Exponents that powers are products and roots of, and two that stay.
EXPONENTS = [0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.3]
# Twos and halves, where rounding has ties; zeros of both signs.
TIES = np.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5])
CLASSES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


class Module:
    """A function of tensors: each result is a body on its arguments."""

    def __init__(self):
        self.inputs, self.outputs, self.lines = [], [], []

    @staticmethod
    def type(array):
        return f"tensor<{'x'.join([str(extent) for extent in array.shape] + [NAMES[array.dtype.name]])}>"

    def input(self, array):
        self.inputs.append(array)
        return len(self.inputs) - 1

    def map(self, body, inputs, want, judge=None):
        number = len(self.outputs)
        element = NAMES[want.dtype.name]
        types = [self.type(self.inputs[at]) for at in inputs]
        arguments = [f"%x{place}: {NAMES[self.inputs[at].dtype.name]}" for place, at in enumerate(inputs)]
        self.lines += [
            f"%e{number} = tensor.empty() : {self.type(want)}",
            f"%r{number} = linalg.generic {{indexing_maps = [{', '.join([MAP] * (len(inputs) + 1))}], iterator_types = [\"parallel\", \"parallel\"]}}",
            f"    ins({', '.join(f'%a{at}' for at in inputs)} : {', '.join(types)}) outs(%e{number} : {self.type(want)}) {{",
            f"^bb0({', '.join(arguments)}, %o: {element}):",
            *(f"  {line}" for line in body),
            f"  linalg.yield %r : {element}",
            f"}} -> {self.type(want)}",
        ]
        self.outputs.append((want, judge))

    def reduce(self, operator, start, at, dims, want):
        number, source = len(self.outputs), self.inputs[at]
        element = NAMES[want.dtype.name]
        kept = ", ".join(f"d{dim}" for dim in range(source.ndim) if dim not in dims)
        loops = ", ".join(f"d{dim}" for dim in range(source.ndim))
        kinds = ", ".join('"reduction"' if dim in dims else '"parallel"' for dim in range(source.ndim))
        self.lines += [
            f"%c{number} = arith.constant {start} : {element}" if element != "i1" else f"%c{number} = arith.constant {start}",
            f"%e{number} = tensor.empty() : {self.type(want)}",
            f"%f{number} = linalg.fill ins(%c{number} : {element}) outs(%e{number} : {self.type(want)}) -> {self.type(want)}",
            f"%r{number} = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({kept})>], iterator_types = [{kinds}]}}",
            f"    ins(%a{at} : {self.type(source)}) outs(%f{number} : {self.type(want)}) {{",
            f"^bb0(%x: {element}, %o: {element}):",
            f"  %r = {operator} %x, %o : {element}",
            f"  linalg.yield %r : {element}",
            f"}} -> {self.type(want)}",
        ]
        self.outputs.append((want, None))

    def text(self):
        arguments = ", ".join(f"%a{at}: {self.type(array)}" for at, array in enumerate(self.inputs))
        types = ", ".join(self.type(want) for want, _ in self.outputs)
        values = ", ".join(f"%r{at}" for at in range(len(self.outputs)))
        body = "\n  ".join(self.lines)
        return f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {values} : {types}\n}}\n"


def within(units, roundoff, approximate, size):
    """Judges a result against f64: units in the last place of f64, rounding to the type, what hardware approximates."""

    def judge(got, want):
        got = widened(got)
        with np.errstate(invalid="ignore"):
            error = np.abs(got.astype(np.float64) - want)
            allowed = np.abs(want) * (units * 2.0**-52 + roundoff) + (approximate * 2.0**-20) * (np.abs(want) * (1 + size) + 1)
        allowed = allowed + (2.0**-24 if roundoff > 2.0**-12 else 0.0)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        return ~(same | (error <= allowed))

    return judge


def numbers(range_, kind, seed):
    generator = np.random.default_rng(seed)
    values = generator.uniform(*range_, (ROWS, COLUMNS))
    ties = TIES[(TIES >= range_[0]) & (TIES <= range_[1])]
    values[0, : len(ties)] = ties
    # Rounding may leave the range: its ends, rounded, may too.
    inside = kind.rounded(values)
    return np.where((inside >= range_[0]) & (inside <= range_[1]), inside, kind.rounded(ties[-1:] if len(ties) else [sum(range_) / 2])[0])


def functions(kind):
    module, roundoff = Module(), kind.info.eps * 0.5
    element = kind.element
    narrow = element != "f64"
    given = lambda values: module.input(kind.stored(values))
    result = lambda want: kind.stored(kind.rounded(want))
    for seed, (name, (function, range_, units)) in enumerate(ONE.items()):
        if element == "f16" and name in ("exp", "exp2", "sin", "sinh", "cosh"):
            range_ = (-5, 5)
        x = numbers(range_, kind, seed)
        with np.errstate(all="ignore"):
            want = function(x.astype(np.float64))
        size = np.abs(x.astype(np.float64))
        own = roundoff * (3 if name in IN_F32 else 1)
        judge = within(units, own if narrow else 0.0, int(narrow and name in APPROXIMATE), size)
        judged = lambda got, judge=judge, want=want: judge(got, want)
        module.map([f"%r = math.{name} %x0 : {element}"], [given(x)], result(want), judged)
    for seed, (name, (function, range_, units)) in enumerate(TWO.items()):
        x, y = numbers(range_, kind, 100 + seed), numbers((-3, 3), kind, 200 + seed)
        want = function(x.astype(np.float64), y.astype(np.float64))
        judge = within(units, roundoff if narrow else 0.0, 0, 0)
        judged = lambda got, judge=judge, want=want: judge(got, want)
        module.map([f"%r = math.{name} %x0, %x1 : {element}"], [given(x), given(y)], result(want), judged)
    x = numbers((-2, 2), kind, 300)
    n = np.random.default_rng(1).integers(-6, 7, (ROWS, COLUMNS)).astype(np.int32)
    want = safe(lambda a, b: float(a) ** int(b))(x.astype(np.float64), n)
    judge = within(6, roundoff if narrow else 0.0, 0, 0)
    # Zero to a negative power is infinite, of the zero's sign where the power is odd.
    zero = (x == 0) & (n < 0)
    want[zero] = np.where(n[zero] % 2 == 1, np.copysign(np.inf, x[zero]), np.inf)
    rounded = kind.rounded(want)
    module.map(
        [f"%r = math.fpowi %x0, %x1 : {element}, i32"],
        [given(x), module.input(n)],
        kind.stored(rounded),
        lambda got: judge(got, rounded.astype(np.float64) if element == "f16" else want),
    )
    powers(module, kind, given, result, narrow)
    info = kind.info
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, info.tiny, info.tiny / 4, info.max])
    x = np.resize(special, (ROWS, COLUMNS)).astype(kind.dtype)
    at = given(x)
    for name, function in CLASSES.items():
        module.map([f"%r = math.{name} %x0 : {element}"], [at], function(x))
    normal = np.isfinite(x) & (np.abs(x) >= info.tiny)
    module.map([f"%r = math.isnormal %x0 : {element}"], [at], normal)
    return module


def powers(module, kind, given, result, narrow):
    """Constant exponents: at most two units in the last place off, and C's special cases, signs of zeros included."""
    info, element = kind.info, kind.element
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.max, -info.max]
    x = numbers((0.1, 6), kind, 400)
    x[0, : len(special)] = kind.rounded(np.array(special))
    for seed, exponent in enumerate(EXPONENTS):
        with np.errstate(all="ignore"):
            # Of an exponent that is no array, NumPy takes roots of its own for 0.5.
            want = np.power(x.astype(np.float64), np.full(x.shape, kind.rounded(exponent), np.float64))
            rounded = kind.rounded(want)
        judge = within(6, 4 * info.eps if narrow else 0.0, 0, 0)

        def judged(got, judge=judge, want=want, rounded=rounded):
            bits = widened(got)
            settled = ~np.isfinite(rounded) | (rounded == 0)
            wrong = settled & ~((bits == rounded) | (np.isnan(bits) & np.isnan(rounded))) | (rounded == 0) & (np.signbit(bits) != np.signbit(rounded))
            return wrong | (~settled & judge(got, want))

        body = [f"%c = arith.constant {exponent} : {element}", f"%r = math.powf %x0, %c : {element}"]
        module.map(body, [given(x)], result(want), judged)


def wrapped(values, dtype):
    bits = np.dtype(dtype).itemsize * 8
    low = np.vectorize(lambda number: int(number) & ((1 << bits) - 1), otypes=[object])(values)
    return np.vectorize(lambda number: number - (1 << bits) if number >> (bits - 1) else number, otypes=[object])(low).astype(dtype)


def integers(dtype):
    module, bits = Module(), np.dtype(dtype).itemsize * 8
    element = NAMES[np.dtype(dtype).name]
    generator, info = np.random.default_rng(5), np.iinfo(dtype)
    x = generator.integers(info.min, info.max, (ROWS, COLUMNS), dtype=dtype, endpoint=True)
    x[0, :6] = [0, 1, -1, info.min, info.max, 2]
    at = module.input(x)
    pattern = np.vectorize(lambda number: format(int(number) & ((1 << bits) - 1), f"0{bits}b"))(x)
    count = lambda function: np.vectorize(function, otypes=[np.int64])(pattern).astype(dtype)
    module.map([f"%r = math.absi %x0 : {element}"], [at], np.abs(x))
    module.map([f"%r = math.ctpop %x0 : {element}"], [at], count(lambda text: text.count("1")))
    module.map([f"%r = math.ctlz %x0 : {element}"], [at], count(lambda text: len(text) - len(text.lstrip("0"))))
    module.map([f"%r = math.cttz %x0 : {element}"], [at], count(lambda text: len(text) - len(text.rstrip("0"))))
    base, power = generator.integers(-5, 6, (ROWS, COLUMNS)).astype(dtype), generator.integers(-3, 12, (ROWS, COLUMNS)).astype(dtype)
    base[base == 0] = 1

    def raised(x, n):
        x, n = int(x), int(n)
        if n < 0:
            return {1: 1, -1: -1 if n % 2 else 1}.get(x, 0)
        return x**n

    want = wrapped(np.vectorize(raised, otypes=[object])(base, power), dtype)
    module.map([f"%r = math.ipowi %x0, %x1 : {element}"], [module.input(base), module.input(power)], want)
    unsigned = x.view(np.dtype(dtype.__name__.replace("int", "uint")))
    signed = lambda values: values.view(dtype)
    for dims in ((1,), (0,), (0, 1)):
        module.reduce("arith.maxui", 0, at, dims, signed(unsigned.max(axis=dims)))
        module.reduce("arith.minui", -1, at, dims, signed(unsigned.min(axis=dims)))
        module.reduce("arith.xori", 0, at, dims, np.bitwise_xor.reduce(x, axis=dims))
        module.reduce("arith.andi", -1, at, dims, np.bitwise_and.reduce(x, axis=dims))
        module.reduce("arith.ori", 0, at, dims, np.bitwise_or.reduce(x, axis=dims))
        module.reduce("arith.muli", 1, at, dims, wrapped(np.multiply.reduce(x.astype(object), axis=dims), dtype))
        module.reduce("arith.maxsi", info.min, at, dims, x.max(axis=dims))
        module.reduce("arith.addi", 0, at, dims, wrapped(x.astype(object).sum(axis=dims), dtype))
    return module


def bits():
    """i1 as arguments and results, in maps and selects, reduced over rows, columns and all, transposed and broadcast."""
    module, generator = Module(), np.random.default_rng(9)
    a, b = (generator.integers(0, 2, (ROWS, COLUMNS)).astype(bool) for _ in range(2))
    a[3], a[:, 5], b[4] = True, True, False
    x = generator.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
    at, also, real = module.input(a), module.input(b), module.input(x)
    module.map(["%r = arith.andi %x0, %x1 : i1"], [at, also], a & b)
    module.map(["%r = arith.xori %x0, %x1 : i1"], [at, also], a ^ b)
    module.map(["%c = arith.constant true", "%r = arith.xori %x0, %c : i1"], [at], ~a)
    module.map(["%c = arith.constant 0.0 : f32", "%r = arith.cmpf ogt, %x0, %c : f32"], [real], x > 0)
    module.map(["%r = arith.uitofp %x0 : i1 to f32"], [at], a.astype(np.float32))
    module.map(["%r = arith.extui %x0 : i1 to i64"], [at], a.astype(np.int64))
    module.map(["%c = arith.constant -2.0 : f32", "%r = arith.select %x0, %x1, %c : f32"], [at, real], np.where(a, x, np.float32(-2)))
    module.map(["%r = arith.select %x0, %x1, %x0 : i1"], [at, also], np.where(a, b, a))
    for dims in ((1,), (0,), (0, 1)):
        module.reduce("arith.andi", "true", at, dims, np.asarray(a.all(axis=dims)))
        module.reduce("arith.ori", "false", also, dims, np.asarray(b.any(axis=dims)))
        module.reduce("arith.xori", "false", at, dims, np.logical_xor.reduce(a, axis=dims))
    number = len(module.outputs)
    turned, kind = a.T.copy(), module.type(a)
    module.lines += [
        f"%e{number} = tensor.empty() : {module.type(turned)}",
        f"%r{number} = linalg.transpose ins(%a{at} : {kind}) outs(%e{number} : {module.type(turned)}) permutation = [1, 0]",
        f"%k{number} = arith.constant dense<{str(b[:, :1].tolist()).lower()}> : tensor<{ROWS}x1xi1>",
        f"%e{number + 1} = tensor.empty() : {kind}",
        f"%r{number + 1} = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, {MAP}, {MAP}], iterator_types = [\"parallel\", \"parallel\"]}}",
        f"    ins(%k{number}, %a{at} : tensor<{ROWS}x1xi1>, {kind}) outs(%e{number + 1} : {kind}) {{",
        "^bb0(%x: i1, %y: i1, %o: i1):",
        "  %r = arith.ori %x, %y : i1",
        "  linalg.yield %r : i1",
        f"}} -> {kind}",
    ]
    module.outputs += [(turned, None), (b[:, :1] | a, None)]
    return module


MODULES = {
    "f16": lambda: functions(Format(np.float16)),
    "bf16": lambda: functions(BFloat16()),
    "f32": lambda: functions(Format(np.float32)),
    "f64": lambda: functions(Format(np.float64)),
    "i8": lambda: integers(np.int8),
    "i16": lambda: integers(np.int16),
    "i32": lambda: integers(np.int32),
    "i64": lambda: integers(np.int64),
    "i1": bits,
}


def run(axe, *arguments):
    done = subprocess.run([axe, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"axe {arguments[0]} {arguments[1]}: {done.stdout}{done.stderr}")


def check(folder, axe, target, name):
    module, folder = MODULES[name](), folder / f"{name}.{target}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "module.mlir").write_text(module.text())
    run(axe, "compile", folder / "module.mlir", "--target", target, "-o", folder / "module.axe")
    inputs = []
    for at, array in enumerate(module.inputs):
        np.save(folder / f"arg{at}.npy", array)
        inputs += ["--input", f"arg{at}={folder / f'arg{at}.npy'}"]
    out = folder / "out"
    run(axe, "run" if target == "cpu" else "sim", folder / "module.axe", *inputs, "--out", out)
    wrong = 0
    for at, (want, judge) in enumerate(module.outputs):
        got = np.load(out / f"out{at}.npy")
        if got.dtype != want.dtype or got.shape != want.shape:
            sys.exit(f"{name}: result {at}: expected {want.dtype} {want.shape}, got {got.dtype} {got.shape}")
        bad = (got != want) if judge is None else judge(got)
        if bad.any():
            first = tuple(np.argwhere(bad)[0])
            line = [line for line in module.lines if line.strip().startswith("%r =")][at : at + 1]
            print(f"{name}: result {at} {line}: {bad.sum()} of {bad.size} wrong, at {first}: expected {want[first]}, got {got[first]}")
            wrong += 1
    return wrong


if __name__ == "__main__":
    folder, axe, target, *names = sys.argv[1:]
    sys.exit(1 if sum([check(Path(folder), axe, target, name) for name in names or MODULES]) else 0)

"""Elementary functions and activations at every number of f16 and bf16, through the compiler and the simulator.

elementary.py FOLDER AXE TARGET TYPE

What is expected is formed in f64 and rounded once. Between that and a result there may be one number of the type. Where the
f32 arithmetic that a module asks for is itself further off (e^89 is infinite in f32, 1 + tanh(-10) is zero), a result may be
like that arithmetic's instead.
"""
import math
import subprocess
import sys
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 256, 256
C0, C1 = 0.044715, 0.7978845608028654


def vectorized(function):
    return np.vectorize(function, otypes=[float])


ERF, ERFC = vectorized(math.erf), vectorized(math.erfc)


class Type:
    """A 16-bit float: its numbers in f64, and how a number is rounded to it."""

    def __init__(self, name):
        self.name = name
        bits = np.arange(1 << 16, dtype=np.uint16)
        self.bits = bits
        if name == "f16":
            self.numbers = bits.view(np.float16).astype(float)
        else:
            self.numbers = (bits.astype(np.uint32) << 16).view(np.float32).astype(float)

    def stored(self):
        return self.bits.view(np.float16) if self.name == "f16" else self.bits.view("V2")

    def read(self, stored):
        return np.ascontiguousarray(stored).reshape(-1).view(np.uint16)

    def round(self, x):
        """The bits of the nearest number."""
        x = np.asarray(x, float)
        if self.name == "f16":
            return x.astype(np.float16).view(np.uint16)
        # Rounded to odd in f32 first: the second rounding is then that of the number itself.
        near = x.astype(np.float32)
        bits = near.view(np.uint32).astype(np.int64)
        with np.errstate(invalid="ignore"):
            less, more = np.abs(near.astype(float)) < np.abs(x), np.abs(near.astype(float)) > np.abs(x)
        finite = np.isfinite(near) & np.isfinite(x)
        even = bits & 1 == 0
        bits = np.where(finite & even & less, bits + 1, np.where(finite & even & more, bits - 1, bits))
        up = 0x7FFF + ((bits >> 16) & 1)
        rounded = np.where(np.isnan(x), 0x7FC0, (bits + np.where(np.isfinite(near), up, 0)) >> 16)
        return rounded.astype(np.uint16)

    def value(self, x):
        """The nearest number."""
        return self.numbers[self.round(x)]

    def places(self, bits):
        """Where numbers are among all of the type, in order."""
        magnitude = (bits & 0x7FFF).astype(int)
        return np.where(bits >> 15 == 1, -magnitude, magnitude)

    def distance(self, got, want):
        a, b = self.numbers[got], self.numbers[want]
        nan = np.isnan(a) | np.isnan(b)
        apart = np.abs(self.places(got) - self.places(want))
        return np.where(nan, np.where(np.isnan(a) & np.isnan(b), 0, 1 << 16), apart)


def f32(x):
    return np.asarray(x).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name: the body in f32 of %x, the exact value, and what the body's own f32 arithmetic gives where that is told apart.
def tanh_inner(x):
    return C1 * (x + C0 * x**3)


WIDE = {
    "sigmoid": (["%a = arith.negf %x : f32", "%b = math.exp %a : f32", "%c = arith.addf %b, %one : f32", "%r = arith.divf %one, %c : f32"],
                sigmoid, lambda x: 1 / (1 + np.exp(-f32(x)))),
    "silu": (["%a = arith.negf %x : f32", "%b = math.exp %a : f32", "%c = arith.addf %b, %one : f32", "%d = arith.divf %one, %c : f32",
              "%r = arith.mulf %x, %d : f32"], lambda x: x * sigmoid(x), lambda x: f32(x) * (1 / (1 + np.exp(-f32(x))))),
    "quotient": (["%a = arith.negf %x : f32", "%b = math.exp %a : f32", "%c = arith.addf %b, %one : f32", "%r = arith.divf %x, %c : f32"],
                 lambda x: x * sigmoid(x), lambda x: f32(x) / (1 + np.exp(-f32(x)))),
    "gelu_tanh": (["%a = math.fpowi %x, %three : f32, i64", "%b = arith.mulf %a, %c0 : f32", "%c = arith.addf %x, %b : f32",
                   "%d = arith.mulf %c, %c1 : f32", "%e = math.tanh %d : f32", "%f = arith.addf %e, %one : f32",
                   "%g = arith.mulf %f, %half : f32", "%r = arith.mulf %x, %g : f32"],
                  lambda x: x * sigmoid(2 * tanh_inner(x)),
                  lambda x: f32(x) * (np.float32(0.5) * (np.float32(1) + np.tanh(f32(tanh_inner(f32(x))))))),
    "gelu_erf": (["%a = math.sqrt %two : f32", "%b = arith.divf %x, %a : f32", "%c = math.erf %b : f32", "%d = arith.addf %c, %one : f32",
                  "%e = arith.mulf %d, %half : f32", "%r = arith.mulf %x, %e : f32"],
                 lambda x: x * 0.5 * ERFC(-x / math.sqrt(2)),
                 lambda x: f32(x) * (np.float32(0.5) * (np.float32(1) + f32(ERF(x / math.sqrt(2)))))),
    "softplus": (["%a = math.exp %x : f32", "%b = arith.addf %a, %one : f32", "%c = math.log %b : f32", "%d = arith.cmpf ogt, %x, %twenty : f32",
                  "%r = arith.select %d, %x, %c : f32"], lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 21)))),
                 lambda x: np.where(x > 20, f32(x), np.log(1 + np.exp(np.minimum(f32(x), np.float32(21)))))),
    "tanh": (["%r = math.tanh %x : f32"], np.tanh, None),
    "erf": (["%r = math.erf %x : f32"], ERF, None),
    "root": (["%a = math.absf %x : f32", "%r = math.rsqrt %a : f32"], lambda x: 1 / np.sqrt(np.abs(x)), None),
}
NARROW = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "tanh": np.tanh, "erf": ERF, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
# Powers with constant exponents, in f32 and in the type.
POWERS = (2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 1.5, -1.5)
CONSTANTS = {"one": 1.0, "two": 2.0, "half": 0.5, "twenty": 20.0, "c0": C0, "c1": C1}


def module(name, body, kind, wide):
    """One function of every number, in f32 between two conversions or in the type itself."""
    shape = f"tensor<{ROWS}x{COLUMNS}x{kind}>"
    e = "f32" if wide else kind
    lines = ["%x = arith.extf %i : " + f"{kind} to f32"] if wide else []
    lines += [line.replace("%x", "%i") if not wide else line for line in body]
    lines += [f"%t = arith.truncf %r : f32 to {kind}", f"linalg.yield %t : {kind}"] if wide else [f"linalg.yield %r : {kind}"]
    constants = [f"%{key} = arith.constant {value!r} : {e}" for key, value in CONSTANTS.items()]
    return "\n".join([
        "#m = affine_map<(d0, d1) -> (d0, d1)>",
        f"func.func @{name}(%source: {shape}) -> {shape} {{",
        *constants, "%three = arith.constant 3 : i64", f"%to = tensor.empty() : {shape}",
        f'%v = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}} ins(%source : {shape}) outs(%to : {shape}) {{',
        f"^bb0(%i: {kind}, %o: {kind}):", *lines, f"}} -> {shape}", f"return %v : {shape}", "}", ""])


def run(folder, axe, target, name, text, x):
    path = folder / f"{name}.mlir"
    path.write_text(text)
    np.save(folder / "x.npy", x)
    package, out = folder / f"{name}.axe", folder / f"{name}.out"
    out.mkdir(exist_ok=True)
    subprocess.run([axe, "compile", path, "--target", target, "-o", package], check=True)
    subprocess.run([axe, "sim", package, "--input", f"arg0={folder / 'x.npy'}", "--out", out], check=True, stdout=subprocess.DEVNULL)
    return np.load(next(out.glob("*.npy")))


def report(name, kind, distance, numbers):
    worst = int(np.argmax(distance))
    wrong = np.count_nonzero(distance)
    print(f"{name} {kind.name}: at most {distance[worst]} apart, at {numbers[worst]!r}; {wrong} of 65536 not rounded correctly")
    return distance[worst] <= 1


def check(folder, axe, target, kind):
    kind, fine = Type(kind), True
    x = kind.stored().reshape(ROWS, COLUMNS)
    for name, (body, exact, own) in WIDE.items():
        got = kind.read(run(folder, axe, target, name, module(name, body, kind.name, True), x))
        distance = kind.distance(got, kind.round(exact(kind.numbers)))
        if own is not None:
            distance = np.minimum(distance, kind.distance(got, kind.round(own(kind.numbers))))
        fine &= report(name, kind, distance, kind.numbers)
    for name, exact in NARROW.items():
        body = [f"%r = math.{name} %x : {kind.name}"]
        got = kind.read(run(folder, axe, target, name + "_of", module(name, body, kind.name, False), x))
        fine &= report(name + " in the type", kind, kind.distance(got, kind.round(exact(kind.numbers))), kind.numbers)
    for power in POWERS:
        for wide in (True, False):
            e = "f32" if wide else kind.name
            body = [f"%p = arith.constant {power} : {e}", f"%r = math.powf %x, %p : {e}"]
            name = f"power_{power}" + ("" if wide else "_of")
            got = kind.read(run(folder, axe, target, name, module("power", body, kind.name, wide), x))
            # Of an exponent that is no array, NumPy takes roots of its own for 0.5.
            want = kind.round(np.power(kind.numbers, np.full(kind.numbers.shape, power)))
            # Of a zero the sign counts too.
            zero = (want & 0x7FFF == 0) & ((got ^ want) & 0x8000 != 0)
            fine &= report(name, kind, np.where(zero, 1 << 16, kind.distance(got, want)), kind.numbers)
    return fine & check_rounded_gelu(folder, axe, target, kind, x)


def check_rounded_gelu(folder, axe, target, kind, x):
    """torch's form in the type itself: every step is rounded. What a step of tanh of another digit makes of it is allowed."""
    e = kind.name
    body = [f"%a = math.fpowi %x, %three : {e}, i64", f"%b = arith.mulf %a, %c0 : {e}", f"%c = arith.addf %x, %b : {e}",
            f"%d = arith.mulf %c, %c1 : {e}", f"%e0 = math.tanh %d : {e}", f"%f = arith.addf %e0, %one : {e}",
            f"%g = arith.mulf %f, %half : {e}", f"%r = arith.mulf %x, %g : {e}"]
    got = kind.read(run(folder, axe, target, "gelu_rounded", module("gelu", body, e, False), x))
    r, v = kind.value, kind.numbers
    square = r(v * v)
    inner = r(r(v + r(r(square * v) * r(C0))) * r(C1))
    outer = lambda tanh: r(v * r(r(tanh + 1) * 0.5))
    tanh = r(np.tanh(inner))
    chain = outer(tanh)
    distance = kind.distance(got, kind.round(chain))
    step = 2.0**-11 if e == "f16" else 2.0**-8
    allowed = np.abs(chain) * (2 * step) + np.abs(v) * 0.5 * step * (np.abs(tanh) > 0)
    wrong = ~((np.abs(kind.numbers[got] - chain) <= allowed) | (distance == 0))
    share = np.count_nonzero(distance > 1) / 65536
    print(f"gelu of rounded steps {e}: {share:.2%} more than one apart from the chain of correctly rounded steps")
    return not wrong.any() and share < (0.01 if e == "f16" else 0.05)


if __name__ == "__main__":
    folder, axe, target, kind = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    np.seterr(all="ignore")
    sys.exit(0 if check(Path(folder), axe, target, kind) else "results are further off than that")

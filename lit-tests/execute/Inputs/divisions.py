"""Integer divisions, shifts by registers and conversions of floats, on tensors that no tile divides, beside numpy.

divisions.py FOLDER AXE TARGET [NAME ...]    compiles each module, or those named, for a chip and simulates it, or for `cpu` and runs it,
                                             and compares the results; what it writes is left in FOLDER
"""
import subprocess
import sys
from pathlib import Path

import numpy as np

OPERATORS = {
    "divsi": lambda a, b: truncated(a, b),
    "remsi": lambda a, b: a - truncated(a, b) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: unsigned(a, a.dtype) // unsigned(b, a.dtype),
    "remui": lambda a, b: unsigned(a, a.dtype) % unsigned(b, a.dtype),
    "ceildivui": lambda a, b: -(-unsigned(a, a.dtype).astype(object) // unsigned(b, a.dtype).astype(object)),
}


def unsigned(x, dtype):
    return x.astype(np.dtype(dtype.str.replace("i", "u")))


def exact(x):
    return x.astype(object)


def truncated(a, b):
    quotient = abs(exact(a)) // abs(exact(b))
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def wrapped(x, dtype):
    """Integers of any size in the bits of `dtype`."""
    bits = np.dtype(dtype).itemsize * 8
    low = np.vectorize(lambda number: int(number) & ((1 << bits) - 1), otypes=[object])(x)
    return np.vectorize(lambda number: number - (1 << bits) if number >> (bits - 1) else number, otypes=[object])(low).astype(dtype)


def expected(operator, a, b):
    if operator in ("floordivsi", "ceildivsi"):
        return wrapped(OPERATORS[operator](exact(a), exact(b)), a.dtype)
    return wrapped(OPERATORS[operator](a, b), a.dtype)


class Module:
    """A function of tensors: each result is a body on its arguments."""

    def __init__(self, dynamic=False):
        self.inputs, self.outputs, self.lines, self.dynamic = [], [], [], dynamic

    def type(self, array):
        element = {"int": "i", "float": "f"}[array.dtype.name.rstrip("0123456789")] + str(array.dtype.itemsize * 8)
        extents = [str(extent) for extent in array.shape]
        if self.dynamic and extents:
            extents[0] = "?"
        return f"tensor<{'x'.join(extents + [element])}>"

    def input(self, array):
        self.inputs.append(array)
        return len(self.inputs) - 1

    def element(self, array):
        return self.type(array)[7:-1].split("x")[-1]

    def empty(self, number, array, like):
        if not self.dynamic:
            self.lines.append(f"%e{number} = tensor.empty() : {self.type(array)}")
            return
        self.lines.append(f"%z{number} = arith.constant 0 : index")
        self.lines.append(f"%n{number} = tensor.dim %a{like}, %z{number} : {self.type(self.inputs[like])}")
        self.lines.append(f"%e{number} = tensor.empty(%n{number}) : {self.type(array)}")

    def map(self, values, maps, body, result, returned=True):
        """`body` has lines that give %r from %x0, %x1, ...; a map is the dimensions that an operand has."""
        number = len(self.lines)
        dims = ", ".join(f"d{dim}" for dim in range(result.ndim))
        affine = [f"affine_map<({dims}) -> ({', '.join(f'd{dim}' for dim in one)})>" for one in [*maps, range(result.ndim)]]
        self.empty(number, result, int(values[0][0][2:]) if values[0][0].startswith("%a") else 0)
        kinds = ", ".join(['"parallel"'] * result.ndim)
        types = ", ".join(kind for _, kind, _ in values)
        arguments = ", ".join(f"%x{at}: {element}" for at, (_, _, element) in enumerate(values))
        element = self.element(result)
        self.lines.append(
            f"%v{number} = linalg.generic {{indexing_maps = [{', '.join(affine)}], iterator_types = [{kinds}]}} "
            f"ins({', '.join(name for name, _, _ in values)} : {types}) outs(%e{number} : {self.type(result)}) {{"
        )
        self.lines.append(f"^bb0({arguments}, %o: {element}):")
        self.lines += [f"  {line}" for line in body]
        self.lines.append(f"  linalg.yield %r : {element}")
        self.lines.append(f"}} -> {self.type(result)}")
        if returned:
            self.outputs.append((f"%v{number}", result))
        return f"%v{number}", self.type(result), element

    def argument(self, number):
        array = self.inputs[number]
        return f"%a{number}", self.type(array), self.element(array)

    def write(self, folder, name):
        arguments = ", ".join(f"%a{at}: {self.type(array)}" for at, array in enumerate(self.inputs))
        results = ", ".join(self.type(array) for _, array in self.outputs)
        values = ", ".join(value for value, _ in self.outputs)
        text = [f"func.func @main({arguments}) -> ({results}) {{"]
        text += [f"  {line}" for line in self.lines]
        text += [f"  return {values} : {results}", "}"]
        (folder / f"{name}.mlir").write_text("\n".join(text) + "\n")
        for at, array in enumerate(self.inputs):
            np.save(folder / f"{name}.arg{at}.npy", array)


def numbers(rng, shape, dtype):
    """Of every magnitude, both ends of the type among them."""
    ends = np.iinfo(dtype)
    shift = rng.integers(0, np.dtype(dtype).itemsize * 8, shape)
    values = (rng.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True) >> shift.astype(dtype)).astype(dtype)
    values.flat[: min(2, values.size)] = [ends.min, ends.max][: min(2, values.size)]
    return values


def divisors(rng, shape, dtype):
    """None is zero; and none is -1, which would overflow with the least number."""
    values = numbers(rng, shape, dtype)
    values[(values == 0) | (values == -1)] = 3
    return values


def maps(rng, shape, dtype, dynamic=False, undefined=False):
    """Each operator; where it is `undefined` some divisors are 0, and -1 below the least number: they divide as 1 does."""
    module = Module(dynamic)
    a, b = numbers(rng, shape, dtype), divisors(rng, shape, dtype)
    if undefined:
        b.flat[3::7] = 0
        a.flat[5::7], b.flat[5::7] = np.iinfo(dtype).min, -1
    x, y = module.input(a), module.input(b)
    values = [module.argument(x), module.argument(y)]
    element = module.element(a)
    dims = [range(len(shape))] * 2
    for operator in OPERATORS:
        body = [f"%r = arith.{operator} %x0, %x1 : {element}"]
        by = np.where((b == 0) | ((b == -1) & (a == np.iinfo(dtype).min) & operator.endswith("si")), dtype(1), b)
        module.map(values, dims, body, expected(operator, a, by))
    return module


def chains(rng, shape):
    """Divisors that padding makes poison: a shift by more bits than there are, the integer of an infinity."""
    module = Module()
    a, b = numbers(rng, shape, np.int32), divisors(rng, shape, np.int32)
    amount = rng.integers(1, 32, shape, dtype=np.int32)
    f = rng.choice(np.float32([0.5, -0.25, 3.0, 100.0]), shape)
    for array in (a, b, amount, f):
        module.input(array)
    x, y, s, g = (module.argument(at) for at in range(4))
    dims = [range(len(shape))] * 3
    one = "%one = arith.constant 1 : i32"
    shifts = {
        "shrui": wrapped(unsigned(b, b.dtype) >> unsigned(amount - 1, b.dtype), np.int32),
        "shrsi": b >> (amount - 1),
        "shli": wrapped(exact(b) << exact(amount - 1), np.int32),
    }
    for name, shifted in shifts.items():
        body = [one, "%s = arith.subi %x2, %one : i32", f"%t = arith.{name} %x1, %s : i32"]
        body += ["%d = arith.ori %t, %one : i32", "%r = arith.remui %x0, %d : i32"]
        module.map([x, y, s], dims, body, expected("remui", a, (shifted | 1).astype(np.int32)))
    body = [one, "%f = arith.constant 64.0 : f32", "%t = arith.divf %f, %x1 : f32", "%i = arith.fptosi %t : f32 to i32"]
    body += ["%d = arith.ori %i, %one : i32", "%r = arith.divui %x0, %d : i32"]
    module.map([x, g], dims[:2], body, expected("divui", a, (np.int32(64 / f) | 1).astype(np.int32)))
    body = ["%r = arith.muli %x0, %x1 overflow<nsw, nuw> : i32"]
    small = module.input((a & 0x7FFF).astype(np.int32))
    product = module.map([module.argument(small), s], dims[:2], body, (a & 0x7FFF) * amount, returned=False)
    body = [one, "%d = arith.addi %x1, %one overflow<nsw, nuw> : i32", "%r = arith.ceildivui %x0, %d : i32"]
    module.map([x, product], dims[:2], body, expected("ceildivui", a, ((a & 0x7FFF) * amount + 1).astype(np.int32)))
    return module


def rows(rng, shape):
    """Divided by a value of each row, and of each column; and sums and maxima of quotients along rows."""
    module = Module()
    a = numbers(rng, shape, np.int32)
    of_row, of_column = divisors(rng, shape[:1], np.int32), divisors(rng, shape[1:], np.int32)
    for array in (a, of_row, of_column):
        module.input(array)
    x, r, c = (module.argument(at) for at in range(3))
    for operator in ("floordivsi", "remui"):
        body = [f"%r = arith.{operator} %x0, %x1 : i32"]
        module.map([x, r], [range(2), [0]], body, expected(operator, a, np.broadcast_to(of_row[:, None], shape)))
        by_column = expected(operator, a, np.broadcast_to(of_column, shape))
        value, kind, _ = module.map([x, c], [range(2), [1]], body, by_column, returned=False)
        for name, start, total in (("addi", 0, by_column.sum(1)), ("maxsi", -(2**31), by_column.max(1))):
            number = len(module.lines)
            total = wrapped(exact(total), np.int32)
            module.lines += [
                f"%e{number} = tensor.empty() : {module.type(total)}",
                f"%s{number} = arith.constant {start} : i32",
                f"%i{number} = linalg.fill ins(%s{number} : i32) outs(%e{number} : {module.type(total)}) -> {module.type(total)}",
                f"%v{number} = linalg.reduce {{ arith.{name} }} ins({value} : {kind}) outs(%i{number} : {module.type(total)}) dimensions = [1]",
            ]
            module.outputs.append((f"%v{number}", total))
    return module


def product(rng, m, n, k, dtype, element):
    """What follows a product: sums divided by a value of each column, by one another tensor's."""
    module = Module()
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    sums = a.astype(np.int32) @ b.astype(np.int32)
    total = sums.astype(np.float32) if element == "f32" else sums
    c, d = divisors(rng, (n,), np.int32), divisors(rng, (m, n), np.int32)
    for array in (a, b, c, d):
        module.input(array)
    kind = module.type(total)
    zero = "0.0" if element == "f32" else "0"
    module.lines += [
        f"%zero = arith.constant {zero} : {element}",
        f"%empty = tensor.empty() : {kind}",
        f"%init = linalg.fill ins(%zero : {element}) outs(%empty : {kind}) -> {kind}",
        f"%p = linalg.matmul ins(%a0, %a1 : {module.type(a)}, {module.type(b)}) outs(%init : {kind}) -> {kind}",
    ]
    whole = ["%i = arith.fptosi %x0 : f32 to i32"] if element == "f32" else []
    x = "%i" if whole else "%x0"
    p = ("%p", kind, element)
    module.map([p, module.argument(2)], [range(2), [1]], [*whole, f"%r = arith.divsi {x}, %x1 : i32"], expected("divsi", sums, np.broadcast_to(c, (m, n))))
    module.map([p, module.argument(3)], [range(2), range(2)], [*whole, f"%r = arith.remui {x}, %x1 : i32"], expected("remui", sums, d))
    return module


def modules():
    rng = np.random.default_rng(0)
    square = {f"square-{np.dtype(dtype).name}": maps(rng, (16, 16), dtype) for dtype in (np.int8, np.int16, np.int32, np.int64)}
    return square | {
        "zeros": maps(rng, (5, 19), np.int32, undefined=True),
        "row": maps(rng, (1, 3), np.int32),
        "vector": maps(rng, (7,), np.int32),
        "three": maps(rng, (3, 5, 13), np.int32),
        "dynamic": maps(rng, (37, 100), np.int32, dynamic=True),
        "chains": chains(rng, (9, 21)),
        "rows": rows(rng, (5, 100)),
        "long": rows(rng, (2, 3000)),
        "bytes": product(rng, 33, 24, 48, np.int8, "i32"),
        "halves": product(rng, 65, 40, 72, np.float16, "f32"),
    }


def run(folder, axe, target, name, module):
    module.write(folder, name)
    package, outputs = folder / f"{name}.axe", folder / f"{name}.results"
    inputs = [f"--input=arg{at}={folder / f'{name}.arg{at}.npy'}" for at in range(len(module.inputs))]
    execute = ["run"] if target == "cpu" else ["sim", "--check"]
    subprocess.run([axe, "compile", folder / f"{name}.mlir", "--target", target, "-o", package], check=True)
    subprocess.run([axe, *execute, package, *inputs, "--out", outputs], check=True)
    for at, (_, want) in enumerate(module.outputs):
        got = np.load(outputs / f"out{at}.npy")
        wrong = np.argwhere(want != got)
        if want.shape != got.shape or len(wrong):
            at_first = tuple(wrong[0]) if len(wrong) else got.shape
            sys.exit(f"{name} out{at}: {len(wrong)} differ, the first at {at_first}: expected {want[at_first]}, got {got[at_first]}")


def main(folder, axe, target, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in modules().items():
        if not names or name in names:
            run(folder, axe, target, name, module)


if __name__ == "__main__":
    main(*sys.argv[1:])

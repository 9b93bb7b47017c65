"""Runs printed source on the stand-in.

    run.py JOB.json

The job names the source, its generation, the chip, the kernel and files of raw elements for arguments and results.
Exits with 1 and the reason where the source is refused.
"""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import stand_in

# What the kernel language is a subset of Python for: imports, one decorated function, loops, assignments, calls.
ALLOWED = (
    ast.Module, ast.Import, ast.alias, ast.FunctionDef, ast.arguments, ast.arg, ast.For, ast.Assign, ast.AugAssign,
    ast.Expr, ast.Return, ast.Pass, ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Subscript, ast.Slice, ast.Tuple,
    ast.List, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context,
)
NUMPY = {"bf16": "<u2", "f16": "<f2", "f32": "<f4", "i8": "i1", "i16": "<i2", "i32": "<i4", "u8": "u1", "u16": "<u2", "u32": "<u4"}
NAMES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i8": "int8", "i16": "int16", "i32": "int32",
         "u8": "uint8", "u16": "uint16", "u32": "uint32"}


def read(argument):
    raw = np.fromfile(argument["file"], NUMPY[argument["dtype"]]).reshape(argument["shape"])
    if argument["dtype"] == "bf16":
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    tensor = stand_in.Tensor(argument["shape"], NAMES[argument["dtype"]], stand_in.Space.hbm)
    tensor.values, tensor.written = raw.astype(tensor.values.dtype), np.full(argument["shape"], True)
    return tensor


def write(tensor, result):
    stand_in.need(isinstance(tensor, stand_in.Tensor) and tensor.buffer is stand_in.Space.shared_hbm, "a result in shared_hbm")
    stand_in.need(tensor.written.all(), "a result that is written whole")
    values = tensor.values
    if result["dtype"] == "bf16":
        values = values.astype(np.float32).view(np.uint32) >> 16
    values.astype(NUMPY[result["dtype"]]).tofile(result["file"])


def main():
    job = json.loads(Path(sys.argv[1]).read_text())
    source = Path(job["source"]).read_text()
    for node in ast.walk(ast.parse(source)):
        stand_in.need(isinstance(node, ALLOWED), f"{type(node).__name__} is not of the kernel language")
        stand_in.need(not isinstance(node, (ast.Is, ast.IsNot)), "'is' is not of the kernel language")
    stand_in.install(job["generation"], job["chip"])
    scope = {}
    exec(compile(source, job["source"], "exec"), scope)
    results = scope[job["kernel"]](*[read(argument) for argument in job["inputs"]])
    results = results if isinstance(results, tuple) else (results,)
    stand_in.need(len(results) == len(job["outputs"]), "as many results as outputs")
    for tensor, result in zip(results, job["outputs"]):
        write(tensor, result)


try:
    main()
except (stand_in.Refused, TypeError, AttributeError) as error:
    print(f"refused: {error}", file=sys.stderr)
    sys.exit(1)

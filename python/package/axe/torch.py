"""PyTorch: modules and graphs as packages, packages as operators.

    package = axe.compile(torch.export.export(module, (x,)), target="sm_90a")
    y = package(x)

`op` makes a package an operator of torch, with shapes known to the tracer; `backend` is what
`torch.compile(module, backend="axe")` calls. torch-mlir converts graphs to linalg (`pip install torch-mlir`, of LLVM's
snapshots index); there is a `ConversionError` where it is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from axe import _axe, _tensors
from axe._compile import compile as _compile
from axe._package import Package

log = logging.getLogger("axe.torch")


class ConversionError(_axe.AxeError):
    """A graph that was not converted: no converter, or one that refuses it."""


def _converter() -> Any:
    try:
        from torch_mlir import fx
    except ImportError as error:
        raise ConversionError(
            "torch graphs become linalg by torch-mlir, which is not installed: pip install torch-mlir -f "
            "https://github.com/llvm/torch-mlir-release/releases/expanded_assets/dev-wheels"
        ) from error
    return fx


def _text(convert: Callable[[], Any]) -> str:
    try:
        return convert().operation.get_asm(enable_debug_info=True)
    except Exception as error:
        raise ConversionError(f"torch-mlir: {error}") from error


def linalg(program: torch.export.ExportedProgram | torch.nn.Module, *inputs: Any, name: str = "main") -> str:
    """An exported program, or a module with example inputs, as linalg on tensors. Parameters become constants."""
    fx = _converter()
    return _text(lambda: fx.export_and_import(program, *inputs, output_type="linalg-on-tensors", func_name=name))


def compile(module: torch.nn.Module, *inputs: torch.Tensor, target: str | None = None, **options: Any) -> Package:
    """Compiles a module for inputs like these: `axe.compile` of what `torch.export.export` makes of it. The target is that
    of the GPU of the first input where it has one."""
    program = torch.export.export(module, inputs)
    return _compile(program, target=target or _chip(inputs), **options)


def _chip(inputs: Sequence[Any]) -> str | None:
    """The chip of the GPU that the first tensor is on."""
    device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), None)
    if device is None or device.type != "cuda":
        return None
    major, minor = torch.cuda.get_device_capability(device)
    # Hopper's matrix instructions are in the code of its own chip alone.
    exact = f"sm_{major}{minor}a"
    return exact if exact in _axe.targets()[0] else f"sm_{major}{minor}"


def _extent(expression: Any, symbols: dict[str, int]) -> int:
    """The value of a dimension of a manifest (docs/packages.md, "Expressions")."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return symbols[expression]
    ((operator, operands),) = expression.items()
    a, b = (_extent(operand, symbols) for operand in operands)
    actions: dict[str, Callable[[], int]] = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floor_div": lambda: a // b,
        "ceil_div": lambda: -(-a // b),
        "mod": lambda: a % b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
    }
    return actions[operator]()


def _symbols(manifest: dict[str, Any], inputs: Sequence[torch.Tensor]) -> dict[str, int]:
    by_name = dict(zip((spec["name"] for spec in manifest["inputs"]), inputs))
    sources = ((symbol["name"], symbol.get("from")) for symbol in manifest["symbols"])
    return {name: by_name[source["input"]].shape[source["dim"]] for name, source in sources if source}


def op(package: Package, name: str) -> torch.library.CustomOpDef:
    """A package as the operator `name` (`namespace::name`) of torch, forward only: it can be called in modules, exported and
    traced by torch.compile, which calls the kernel and looks not inside. On CUDA it launches; on the host it computes
    `Package.reference`.

        gelu = axe.torch.op(package, "mine::gelu_linear")
        y = torch.ops.mine.gelu_linear(x, w)
    """
    manifest = package.manifest
    outputs = manifest["outputs"]
    if not outputs:
        raise _axe.PackageError(f"package `{package.name}` is for {package.target} and names no outputs: compile it for a chip")
    names = ", ".join(f"Tensor {_identifier(spec['name'], at)}" for at, spec in enumerate(manifest["inputs"]))
    results = ", ".join(["Tensor"] * len(outputs))
    schema = f"({names}) -> {results if len(outputs) == 1 else f'({results})'}"

    def run(*inputs: torch.Tensor) -> Any:
        if inputs and inputs[0].device.type == "cuda":
            return package(*(x.contiguous() for x in inputs))
        return _on_host(package, inputs)

    def fake(*inputs: torch.Tensor) -> Any:
        symbols = _symbols(manifest, inputs)
        made = []
        for spec in outputs:
            shape = [_extent(extent, symbols) for extent in spec["shape"]]
            made.append(inputs[0].new_empty(shape, dtype=getattr(torch, _tensors.TORCH[spec["dtype"]])))
        return made[0] if len(made) == 1 else tuple(made)

    operator = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    return operator


def _identifier(name: str, at: int) -> str:
    return name if name.isidentifier() else f"input{at}"


def _on_host(package: Package, inputs: Sequence[torch.Tensor], simulated: bool = False) -> Any:
    """The results of a package on the host, as torch tensors."""
    results = (package.simulate if simulated else package.reference)(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    specs = package.manifest["outputs"]
    made = []
    for at, array in enumerate(results):
        tensor = torch.from_numpy(array.view("u1") if array.dtype.itemsize == 1 else array.view(f"u{array.dtype.itemsize}"))
        dtype = specs[at]["dtype"] if at < len(specs) else _name(array.dtype)
        made.append(tensor.view(getattr(torch, _tensors.TORCH[dtype])))
    return made[0] if len(made) == 1 else tuple(made)


def _name(dtype: Any) -> str:
    """The manifest's name of a NumPy type."""
    return next(name for name in _tensors.TORCH if _tensors.numpy_type(name) == dtype)


def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """What `torch.compile(module, backend="axe")` calls for each graph: a kernel package's launches where Axe takes the
    graph, else the graph as torch runs it (the logger `axe.torch` says why). Forward graphs alone are compiled: one whose
    inputs require gradients is left to torch.

    Options (`torch.compile(..., options={...})`): `target` is the chip (that of the inputs' GPU), `simulate=True` runs the
    kernels of graphs on the host in the simulator (without, those are left to torch), `required=True` makes it an error to
    leave a graph to torch, `ptxas` is the assembler.
    """
    options = dict(options.pop("options", None) or options)
    simulate, required = bool(options.pop("simulate", False)), bool(options.pop("required", False))
    target, ptxas = options.pop("target", None), options.pop("ptxas", None)
    if options:
        raise TypeError(f"unknown options of the backend axe: {', '.join(options)}")

    def left(why: object) -> Callable[..., Any]:
        if required:
            raise ConversionError(f"the graph was left to torch: {why}")
        log.warning("a graph is left to torch: %s", why)
        return graph.forward

    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if len(tensors) != len(inputs) or not tensors:
        return left("it has inputs that are no tensors (dynamic shapes: compile with dynamic=False)")
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return left("its inputs require gradients (torch.no_grad() or inference_mode())")
    on_gpu = tensors[0].device.type == "cuda"
    if not on_gpu and not simulate:
        return left("its inputs are on the host, and simulate=True is not given")
    try:
        package, results = _of_graph(graph, tensors, target or _chip(tensors), ptxas)
    except _axe.AxeError as error:
        return left(error)

    def call(*arguments: torch.Tensor) -> Any:
        arguments = tuple(x.detach().contiguous() for x in arguments)
        made = package(*arguments) if on_gpu else _on_host(package, arguments, simulated=True)
        return results(made)

    return call


def _of_graph(
    graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], target: str | None, ptxas: Any
) -> tuple[Package, Callable[[Any], Any]]:
    """The package of a graph of torch.compile, and what makes the graph's results of the package's."""
    fx = _converter()
    flat: dict[str, Any] = {}

    def take(functional: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        flat["graph"] = functional
        return functional.forward

    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    def forward(functional: torch.fx.GraphModule, example: Sequence[Any]) -> Any:
        return make_boxed_func(take(functional, example))

    try:
        aot_autograd(fw_compiler=forward, decompositions=get_decomposition_table())(graph, list(inputs))
    except Exception as error:
        raise ConversionError(f"torch: {error}") from error
    functional = flat.get("graph")
    if functional is None:
        raise ConversionError("torch made no graph of aten operators")
    (returned,) = next(node for node in functional.graph.nodes if node.op == "output").args
    returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if any(not isinstance(node, torch.fx.Node) or node.op == "placeholder" for node in returned):
        raise ConversionError("the graph returns its inputs or constants")
    text = _text(lambda: fx.stateless_fx_import(functional, output_type="linalg-on-tensors", model_name="main"))
    package = _compile(text, target=target, ptxas=ptxas)
    return package, lambda made: list(made) if isinstance(made, tuple) else [made]

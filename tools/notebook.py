"""Executes notebooks, as `jupyter nbconvert --execute` would, without Jupyter.

    python3 tools/notebook.py run NOTEBOOK...      every code cell runs, and gives the outputs that the notebook shows
    python3 tools/notebook.py write NOTEBOOK...    as `run`, and writes the outputs into the notebook

Cells run in order in one namespace, in an empty folder. Outputs are what a cell prints and the value of its last expression,
as text and, where it has `_repr_svg_`, as a picture. Magics are not known.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def shown(value: Any, count: int) -> dict[str, Any]:
    """The output of a last expression."""
    data = {"text/plain": lines(repr(value))}
    svg = getattr(value, "_repr_svg_", lambda: None)()
    if svg is not None:
        data["image/svg+xml"] = lines(svg)
    return {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def execute(source: str, names: dict[str, Any], name: str, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        outputs.append(shown(value, count))
    return outputs


def run(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The notebook with its outputs, and what is wrong with it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong = []
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        where = f"{path.name}, cell {count}"
        try:
            made = execute("".join(cell["source"]), names, f"<{where}>", count)
        except BaseException:
            wrong.append(f"{where}:\n{traceback.format_exc()}")
            break
        if made != cell["outputs"]:
            wrong.append(f"{where}: expected\n{json.dumps(cell['outputs'])[:2000]}\ngot\n{json.dumps(made)[:2000]}")
        cell["outputs"], cell["execution_count"] = made, count
    return notebook, wrong


def main() -> None:
    action, *names = sys.argv[1:] or [""]
    if action not in ("run", "write") or not names:
        sys.exit(__doc__)
    failed = False
    for path in [Path(name).resolve() for name in names]:
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            notebook, wrong = run(path)
            os.chdir(before)
        if action == "write":
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            wrong = [each for each in wrong if "Traceback" in each]
        failed |= bool(wrong)
        print(f"{'FAILED' if wrong else 'ok':6} {path.name}")
        print("\n".join(wrong), file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()

# The lit tests, in two configurations of one folder:
#
#   make lit          axe-opt is this project's driver                   (--param driver=axe-opt, the default)
#   make lit-stock    axe-opt is a stock mlir-opt that loads the plugin  (--param driver=stock)
#
# By hand, after `make build`: /usr/lib/llvm-22/bin/lit -sv lit-tests [--filter REGEX]
#
# Features for REQUIRES / UNSUPPORTED:
#   axe-driver   the driver is our own: `axe`, and flags that only axe-opt has
#   stock        the driver is mlir-opt with the plugin
#   own-driver   our own driver is there too, as %own_opt
#   ptxas        ptxas is there (make deps puts it into .deps/bin)
#   nvdisasm     nvdisasm is there (as ptxas)
#   gpu          an NVIDIA GPU is there
import os
import re
import subprocess
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parent.parent
target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
driver = lit_config.params.get("driver", "axe-opt")
bin_dir = Path(lit_config.params.get("bin_dir", target / "debug"))
build_dir = Path(lit_config.params.get("build_dir", root / "build"))
llvm_bin = Path(lit_config.params.get("llvm_prefix", "/usr/lib/llvm-22")) / "bin"
plugin = Path(lit_config.params.get("plugin", build_dir / "lib" / "libAxePlugin.so"))

if driver not in ("axe-opt", "stock"):
    lit_config.fatal(f"driver={driver}: expected axe-opt or stock")


def existing(path, command):
    """`path` as text; a missing one ends the run, for else every test would fail with its own riddle."""
    if not path.is_file():
        lit_config.fatal(f"{path} is missing: run '{command}' first")
    return str(path)


def registered_passes(library):
    """The names of all passes and pipelines that mlir-opt has once it has loaded the plugin."""
    command = [llvm_bin / "mlir-opt", f"--load-dialect-plugin={library}", f"--load-pass-plugin={library}", "--help"]
    listing = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    names = re.findall(r"^      --([\w-]+)", listing.stdout, re.MULTILINE)
    if listing.returncode != 0 or "axe-canonicalize-layouts" not in names:
        lit_config.fatal(f"mlir-opt cannot load {library}: {listing.stderr}")
    return names


config.name = "Axe" if driver == "axe-opt" else "Axe through mlir-opt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = str(Path(__file__).resolve().parent)
config.test_exec_root = str(build_dir / "lit" / driver)

# A tool's name stands for the tool where it is a word of a command: not inside a path, an option or another name.
tools = {
    "FileCheck": existing(llvm_bin / "FileCheck", "make deps"),
    "not": existing(llvm_bin / "not", "make deps"),
    "split-file": existing(llvm_bin / "split-file", "make deps"),
    "mlir-opt-22": existing(llvm_bin / "mlir-opt", "make deps"),
    "mlir-translate-22": existing(llvm_bin / "mlir-translate", "make deps"),
    "mlir-runner-22": existing(llvm_bin / "mlir-runner", "make deps"),
}
if driver == "axe-opt":
    config.available_features.add("axe-driver")
    tools["axe-opt"] = existing(bin_dir / "axe-opt", "make build")
    tools["axe"] = existing(bin_dir / "axe", "make build")
    tools["axe-cases"] = existing(bin_dir / "axe-cases", "make build")
    tools["axe-graphs"] = existing(bin_dir / "axe-graphs", "make build")
    tools["axe-lsp-server"] = existing(bin_dir / "axe-lsp-server", "make build")
    config.substitutions.append(("%axe_opt", tools["axe-opt"]))
    config.substitutions.append(("%axe ", tools["axe"] + " "))
else:
    config.available_features.add("stock")
    library = existing(plugin, "make plugin")
    names = Path(config.test_exec_root) / "passes.txt"
    names.parent.mkdir(parents=True, exist_ok=True)
    names.write_text("\n".join(registered_passes(library)))
    wrapper = Path(config.test_source_root) / "stock_opt.py"
    # Our own driver, where it is built, for what compares the two.
    if (bin_dir / "axe-opt").is_file():
        config.available_features.add("own-driver")
        config.substitutions.append(("%own_opt", str(bin_dir / "axe-opt")))
    tools["axe-opt"] = f"{sys.executable} {wrapper} {llvm_bin / 'mlir-opt'} {library} {names}"
for name, command in tools.items():
    config.substitutions.append((rf"(?<![\w./%=-]){name}(?![\w./=-])", command))

config.substitutions += [
    ("%examples", str(root / "examples")),
    ("%models", str(root / "examples" / "models")),
    ("%reference", f"python3 {root / 'examples' / 'models' / 'reference.py'}"),
    ("%llvm_lib", str(llvm_bin.parent / "lib")),
]

ptxas = root / ".deps" / "bin" / "ptxas"
if ptxas.is_file():
    config.available_features.add("ptxas")
    config.substitutions.append((r"(?<![\w./%=-])ptxas(?![\w./=-])", str(ptxas)))
if (root / ".deps" / "bin" / "nvdisasm").is_file():
    config.available_features.add("nvdisasm")
if Path("/dev/nvidiactl").exists():
    config.available_features.add("gpu")

config.environment["PATH"] = os.pathsep.join([str(root / ".deps" / "bin"), str(llvm_bin), os.environ.get("PATH", "")])
config.environment["PYTHONPATH"] = str(root / ".deps" / "python")
for name in ("HOME", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "ASAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

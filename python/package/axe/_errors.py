"""Modules that were not compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from axe import _axe


@dataclass(frozen=True)
class Diagnostic:
    """One line of what the compiler says: `file:line:column: severity: message`."""

    severity: str
    """error, warning, remark or note."""
    message: str
    file: str | None = None
    """As the module's locations name it; None where the place is in no file."""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:{self.line}:{self.column}: "
        return f"{place}{self.severity}: {self.message}"


class CompileError(_axe.AxeError):
    """A module that was not compiled."""

    diagnostics: list[Diagnostic]
    """What is wrong, and where."""

    def __init__(self, message: str, records: Sequence[tuple[str, str, tuple[str, int, int] | None]] = ()) -> None:
        super().__init__(message)
        found = [Diagnostic(severity, text, *(place or (None, None, None))) for severity, text, place in records]
        # What is wrong with no part of the module, such as a target that there is not, is the message.
        self.diagnostics = found or [Diagnostic("error", message)]


@contextmanager
def compiling() -> Iterator[None]:
    """Raises what the extension raises of a module as `CompileError`."""
    try:
        yield
    except _axe.CompileFailed as error:
        raise CompileError(str(error), error.records) from None

"""Explain errors of imports: a missing optional package, with the extra of maxops that installs it, or a broken one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

_CANNOT_MAP = "failed to map segment"  # the words of the dynamic loader if there is not enough memory for a library


@contextmanager
def needed(part: str, extra: str) -> Iterator[None]:
    """Return a context manager for imports of optional packages. Errors for missing packages name the extra.

    The error is a ModuleNotFoundError, and its `name` is the missing module, as callers of optional imports expect.
    """
    try:
        yield
    except ImportError as error:
        if not (package := missing_package(error)):
            raise
        raise ModuleNotFoundError(
            f'{part} requires the package {package!r}, which is not installed: pip install "maxops[{extra}]"',
            name=error.name,
        ) from error


def missing_package(error: Exception) -> str:
    """Return the name of the optional package that an import did not find, or "" if the error has another cause.

    A folder without Python files counts as missing, because Python imports it as an empty package. A module without
    submodules does not, because it hides the package: "No module named 'onnx.checker'; 'onnx' is not a package".
    """
    package = _package_of(error)
    found = sys.modules.get(package)
    if getattr(found, "__file__", None) or (found is None and not isinstance(error, ModuleNotFoundError)):
        return ""
    return package


def cause_of(error: Exception) -> str:
    """Describe an error whose cause is not in maxops: memory, a warning or another package. Return "" otherwise."""
    if isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and _CANNOT_MAP in str(error) and "permitted" not in str(error)
    ):
        return f"out of memory: {error}".rstrip(": ")
    if isinstance(error, Warning):
        return f"{error} (a warning, which Python raises as an error because of -W or PYTHONWARNINGS)"
    return broken_package_text(error)


def broken_package_text(error: Exception) -> str:
    """Return a message if the import of another package raised the error, or "" if the error has another cause."""
    after: list[tuple[str, str]] = []  # the functions and modules that the last function or module of maxops called
    for frame, _ in walk_tb(error.__traceback__):
        root = _root(frame.f_globals.get("__name__", ""))
        if root == "maxops":
            after = []
        elif root != "importlib":
            after.append((root, frame.f_code.co_name))
    package = after[0][0] if after and after[0][1] == "<module>" else _package_of(error)
    if not package:
        return ""
    if not after and isinstance(error.__cause__, ImportError):  # the error of `needed`, which is complete
        return str(error)
    return (
        f"the package {package!r} cannot be imported: {type(error).__name__}: {error}; reinstall it, or rename your "
        "own file or folder that has its name"
    )


def _package_of(error: Exception) -> str:
    """Return the name of the package that an ImportError names, or "" if it names none, or maxops."""
    package = _root(error.name or "") if isinstance(error, ImportError) else ""
    return "" if package == "maxops" else package


def _root(name: str) -> str:
    return name.partition(".")[0]

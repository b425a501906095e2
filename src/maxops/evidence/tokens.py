"""Computes digests of source files from their tokens. Comments and formatting do not affect a digest.

The build runs this module before the package exists, so this module must not import maxops.
"""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

_C = (".c", ".cpp", ".h", ".def")
_C_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
# Strings, numbers, names and operators. As in compilers, the longest operator matches first.
_C_TOKEN = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\.?\d(?:[eEpP][+-]|'?\w|\.)*|\w+"""
    r"""|<=>|<<=|>>=|->\*|\.\.\.|::|\+\+|--|->|\.\*|<<|>>|<=|>=|==|!=|&&|\|\||##|[-+*/%&|^]=|\S"""
)
_PYTHON_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the tokens of a C, C++ or Python file, and of the bytes of any other file."""
    if path.suffix == ".py":
        tokens = _python(path.read_text(encoding="utf-8"))
    elif path.suffix in _C:
        tokens = _c(path.read_text(encoding="utf-8"))
    else:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256("\n".join(tokens).encode()).hexdigest()


def _python(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _PYTHON_LAYOUT:
            # The digest depends on the presence of indents and line breaks, but not on their characters.
            yield tokenize.tok_name[token.type] if not token.string.strip() else token.string


def _c(text: str) -> Iterator[str]:
    without = _C_COMMENT.sub(lambda found: " " if found[0].startswith("/") else found[0], text.replace("\\\n", " "))
    for line in without.splitlines():
        yield from _C_TOKEN.findall(line)
        if line.lstrip().startswith("#"):  # a preprocessor directive ends at the end of its line
            yield "\n"

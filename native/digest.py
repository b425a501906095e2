"""Computes the digest of the native core's sources, which the build embeds and `maxops evidence` compares.

python native/digest.py HEADER
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src" / "maxops" / "evidence"))

from tokens import digest_of  # type: ignore[import-not-found]  # noqa: E402

KINDS = (".cpp", ".h", ".def")


def digest() -> str:
    """Return the SHA-256 of the sources' names and tokens, and of CMakeLists.txt."""
    paths = [*(path for path in (ROOT / "native").rglob("*") if path.suffix in KINDS), ROOT / "CMakeLists.txt"]
    whole = hashlib.sha256()
    for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in paths):
        whole.update(f"{name} {digest_of(path)}\n".encode())
    return whole.hexdigest()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(f'#define MAXOPS_SOURCES "{digest()}"\n', encoding="utf-8")

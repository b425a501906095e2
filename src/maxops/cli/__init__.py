"""The command `maxops`. Its own needs, typer, rich and onnx, come with the extra "cli"."""

from __future__ import annotations

import sys

EXTRA = ("typer", "rich", "onnx", "google", "defusedxml")


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        # here, so that a missing package becomes a line and not a traceback
        from maxops.cli.app import app  # noqa: PLC0415

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        print(f'maxops: error: the command needs the package {package!r}: pip install "maxops[cli]"', file=sys.stderr)
        sys.exit(2)

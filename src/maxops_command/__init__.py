"""The `maxops` command, before maxops itself: what is wrong with the environment is one line too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        import maxops  # noqa: F401, PLC0415  (it reads the environment, and refuses what it does not understand)
    except ValueError as error:  # a ConfigurationError, which cannot be imported now
        print(f"maxops: error: {error}", file=sys.stderr)
        sys.exit(2)
    from maxops.cli import main as command  # noqa: PLC0415

    command()

"""Rejects options of a command that have no effect together with other options."""

from __future__ import annotations

from collections.abc import Collection

import typer


def reject_unused(context: typer.Context, option: str, used: Collection[str]) -> None:
    """Raise an error for a specified option or argument that has no effect with `option`, unless it is in `used`."""
    for param in context.command.params:
        source = context.get_parameter_source(str(param.name))
        name = param.opts[0] if param.param_type_name == "option" else str(param.metavar).strip(".")
        if source is not None and source.name == "COMMANDLINE" and name not in {option, *used}:
            raise typer.BadParameter(f"{name} has no effect with {option}")

"""The commands' frame: options of `maxops` itself, exit codes, and errors in one line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import maxops
from maxops import _native
from maxops.cli import arrays, bench, check, conform, operators, rewrite, run
from maxops.errors import MaxopsError

BAD_USE = 2  # 1 is kept for "ran, but the outputs differ", and "read, but a clause is broken"
INTERRUPTED = 130
CLOSED_PIPE = 141  # as a shell reports a program that SIGPIPE ended

# UsageError, which typer does not export: click's class in its older versions, its own in newer ones
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Group(TyperGroup):
    """Commands whose errors are one line on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line and exit."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            # format_message: what click and typer call the text without the usage lines
            _complain(f"{error.format_message().rstrip('.')}; see {_help_of(error)}")  # type: ignore[attr-defined]
            code = BAD_USE
        if not standalone_mode:
            return code
        sys.exit(code or 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and turn what may go wrong in any of them into a line and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except MaxopsError as error:
            _complain(str(error))
            raise typer.Exit(BAD_USE) from error
        except MemoryError as error:
            _complain(f"memory does not suffice: {error}")
            raise typer.Exit(BAD_USE) from error
        except KeyboardInterrupt as error:
            print("maxops: interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # Python flushes stdout once more at exit, and would complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(CLOSED_PIPE) from error
        return result


def _complain(message: str) -> None:
    print(f"maxops: error: {' '.join(line.strip() for line in message.splitlines())}", file=sys.stderr)


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'maxops'} --help"


def _warn_in_one_line(message: Warning | str, *_: object) -> str:
    return f"maxops: warning: {message}\n"


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("maxops")
        except PackageNotFoundError:
            number = "(source tree, not installed)"
        print(f"maxops {number}")
        print(f"native core: {_native.isa()}, threads: {maxops.get_num_threads()}")
        raise typer.Exit


app = typer.Typer(
    name="maxops",
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Max, ReduceMax and SegmentMax exactly as ONNX, SONNX and OpenVINO specify them.",
)


@app.callback(invoke_without_command=True)
def _options(
    ctx: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del show_version
    warnings.formatwarning = _warn_in_one_line  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        # a name or a path that the terminal's encoding lacks must not end the command
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if ctx.invoked_subcommand is None:
        with redirect_stdout(sys.stderr):  # with rich, typer prints the help itself
            print(ctx.get_help())
        raise typer.Exit(BAD_USE)


app.command("run")(run.run)
app.command("rewrite")(rewrite.rewrite)
app.command("maximum")(arrays.maximum)
app.command("reduce-max")(arrays.reduce_max)
app.command("segment-max")(arrays.segment_max)
app.command("check")(check.check)
app.command("operators")(operators.operators)
app.command("conform")(conform.conform)
app.command("bench")(bench.bench)

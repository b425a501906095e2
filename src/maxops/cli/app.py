"""The commands' frame: options of `maxops` itself, exit codes, and errors in one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import maxops
from maxops import _native
from maxops.cli import arrays, bench, check, clause, conform, evidence, info, operators, rewrite, run
from maxops.cli.table import printable
from maxops.errors import MaxopsError
from maxops.program import BAD_USE, INTERRUPTED, discard, print_line

CLOSED_PIPE = 141  # as a shell reports a program that SIGPIPE ended

# UsageError, which typer does not export: click's class in its older versions, its own in newer ones
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Group(TyperGroup):
    """Commands with one boundary: whatever the system, a file or its user has against one is a line on stderr."""

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
        del windows_expand_args  # shells expand patterns
        name = prog_name or "maxops"
        self._main_shell_completion(extra, name, complete_var)  # which exits, if a shell asks
        arguments = list(sys.argv[1:] if args is None else args)
        code = _code_of(lambda: self._run(name, arguments, extra))
        if not standalone_mode:
            return code
        sys.exit(code)

    def _run(self, name: str, arguments: list[str], extra: dict[str, Any]) -> None:
        with self.make_context(name, arguments, **extra) as context:
            self.invoke(context)


def _code_of(command: Callable[[], None]) -> int:
    """Run a command to the last letter of its output; the exit code, and a line if something was wrong."""
    code, message = 0, ""
    try:
        command()
    except typer.Exit as end:
        code = end.exit_code
    except UsageError as error:
        # format_message: what click and typer call the text without the usage lines
        message = f"{error.format_message().rstrip('.')}; see {_help_of(error)}"  # type: ignore[attr-defined]
    except MaxopsError as error:
        message = str(error)
    except MemoryError as error:
        message = f"out of memory: {error}"
    except BrokenPipeError:
        code = CLOSED_PIPE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = CLOSED_PIPE  # rich, with which typer prints the help, makes it 1
    except OSError as error:
        message = _os_error_text(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
        discard(sys.stdout)
    except OSError as error:
        message = _os_error_text(error)
        discard(sys.stdout)
    if message:
        print_line(f"maxops: error: {printable(' '.join(line.strip() for line in message.splitlines()))}")
        code = BAD_USE
    elif code == INTERRUPTED:
        print_line("maxops: interrupted")
    return code


def _os_error_text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'maxops'} --help"


def _warn_in_one_line(message: Warning | str, *_: object) -> str:
    return f"maxops: warning: {printable(str(message))}\n"


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"maxops {info.own_version()}")
        print(f"native core: {_native.isa()}, threads: {maxops.get_num_threads()}")
        raise typer.Exit


app: typer.Typer = typer.Typer(
    name="maxops",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
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
app.command("clause")(clause.clause)
app.command("operators")(operators.operators)
app.command("conform")(conform.conform)
app.command("bench")(bench.bench)
app.command("evidence")(evidence.evidence)
app.command("info")(info.info)

"""The command-line program `maxops`: its commands, its exit codes and its one-line error messages."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import maxops
from maxops import _native
from maxops.errors import MaxopsError
from maxops.extras import broken_package_text, cause_of
from maxops.program import BAD_USE, CLOSED_PIPE, INTERRUPTED, discard, print_line
from maxops.shown import printable
from maxops.version import version

_SHOWN = 60  # maximum number of characters of a wrong value
SETTINGS = {"help_option_names": ["-h", "--help"]}
# For each command: its module in maxops.cli, which is imported on first use, and its summary.
COMMANDS = {
    "run": ("run", "Run a model, and compare its outputs with expected outputs."),
    "rewrite": ("rewrite", "Replace the max operators of a model for ONNX Runtime."),
    "maximum": ("arrays", "Compute the element-wise maximum of .npy files."),
    "reduce-max": ("arrays", "Compute the maximum of a .npy file along axes."),
    "segment-max": ("arrays", "Compute the maximum of each segment of rows in a .npy file."),
    "check": ("check", "Check models against the clauses of a standard."),
    "clause": ("clause", "Explain clauses of the standards."),
    "operators": ("operators", "List the operators and their types."),
    "conform": ("conform", "Test whether runtimes conform to ONNX, SONNX and OpenVINO."),
    "bench": ("bench", "Benchmark the operators against other libraries."),
    "evidence": ("evidence", "Show how the clauses are verified."),
    "info": ("info", "Show versions, settings and extras for a bug report."),
}

# typer does not export UsageError: older versions use click's class, newer versions their own
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class _PlainHelp:
    """A mixin that removes the Python types that typer adds to the help, such as <bool> after flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments for the help and the parser."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: ""
        return params


class Command(_PlainHelp, TyperCommand):
    """A command that rejects repeated options and empty file names.

    typer would silently use the last value of an option, and the current folder for an empty name, such as that of an
    unset shell variable.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command. Usage errors name the command."""
        try:
            if ctx.resilient_parsing:  # the shell requests completions
                return list(super().parse_args(ctx, args))
            texts, _, given = self.make_parser(ctx).parse_args(list(args))
            self._refuse_repeated(given, ctx)
            rest = list(super().parse_args(ctx, args))
            self._refuse_empty_names(texts, ctx)
            return rest
        except UsageError as error:
            if error.ctx is None:  # type: ignore[attr-defined]  # typer sets no context for a missing value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def _refuse_repeated(self, given: Sequence[Any], ctx: Any) -> None:
        single = [param for param in given if param.param_type_name == "option" and not param.multiple]
        for param, count in Counter(single).items():
            is_plain_flag = param.is_flag and not param.secondary_opts
            if count > 1 and not is_plain_flag:
                names = "/".join([param.opts[0], *param.secondary_opts])
                raise typer.BadParameter(
                    f"specified {count} times, but can be specified only once", ctx=ctx, param_hint=names
                )

    def _refuse_empty_names(self, texts: Mapping[str, Any], ctx: Any) -> None:
        params: list[Any] = self.params
        for param in params:
            values = _as_list(ctx.params.get(param.name))
            if "" in _as_list(texts.get(param.name)) and any(isinstance(value, Path) for value in values):
                raise typer.BadParameter("expected a file name, got an empty string", ctx=ctx, param=param)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Commands(Mapping[str, Any]):
    """A mapping of names to commands. The module of a command is imported on first use."""

    def __getitem__(self, name: str) -> Any:
        module = import_module(f"maxops.cli.{COMMANDS[name][0]}")
        alone = typer.Typer(add_completion=False, context_settings=SETTINGS, rich_markup_mode=None)
        alone.command(name, cls=Command)(getattr(module, name.replace("-", "_")))
        return typer.main.get_command(alone)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the command, or the default for an unknown name. Import errors propagate."""
        return self[name] if name in COMMANDS else default

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Group(_PlainHelp, TyperGroup):
    """The top-level command, which prints usage errors, file errors and system errors as one line on stderr."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summary of each command, without importing the command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

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
        self._main_shell_completion(extra, name, complete_var)  # exits if a shell requests completions
        arguments = list(sys.argv[1:] if args is None else args)
        code = _code_of(lambda: self._run(name, arguments, extra))
        if not standalone_mode:
            return code
        sys.exit(code)

    def _run(self, name: str, arguments: list[str], extra: dict[str, Any]) -> None:
        with self.make_context(name, arguments, **extra) as context:
            self.invoke(context)


def _code_of(command: Callable[[], None]) -> int:
    """Run a command, flush its output, print an error line if the command failed, and return the exit code."""
    code, message = 0, ""
    try:
        command()
    except typer.Exit as end:
        code = end.exit_code
    except UsageError as error:
        message = f"{_usage_text(error).rstrip('.')}; see {_help_of(error)}"
    except MaxopsError as error:
        message = str(error)
    except MemoryError as error:
        message = cause_of(error)
    except BrokenPipeError:
        code = CLOSED_PIPE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = CLOSED_PIPE  # rich, which prints typer's help, would exit with 1
    except OSError as error:
        message = broken_package_text(error) or _os_error_text(error)
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
    if isinstance(error, FileNotFoundError) and not error.filename:  # os.getcwd raises it without a file name
        return "the current folder no longer exists; change to another folder, or create it again"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _usage_text(error: Any) -> str:
    """Return the text of a usage error. If pydantic rejects a value, replace pydantic's text with a shorter one."""
    message = isinstance(error, typer.BadParameter) and (_conversion_text(error.__cause__) or error.message)
    if message:
        hint = _hint_of(error)
        return f"{hint}: {message}" if hint else message
    # in click and typer, format_message returns the text without the usage lines
    return str(error.format_message())


def _hint_of(error: Any) -> str:
    param = error.param
    if error.param_hint or param is None:
        return str(error.param_hint or "")
    return f"'{param.opts[0] if param.param_type_name == 'option' else param.metavar}'"


_KINDS = {"int": "a valid integer", "float": "a valid number"}


def _conversion_text(cause: Any) -> str:
    """Describe a validation error of pydantic, which newer versions of typer use. Return "" for other errors."""
    if not hasattr(cause, "errors"):
        return ""
    first = cause.errors()[0]
    kind, limits = first["type"], first.get("ctx", {})
    value = repr(first["input"])
    value = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    for limit, words in (("ge", "at least"), ("le", "at most")):
        if limit in limits:
            return f"{value} is out of range; expected {words} {limits[limit]}"
    if "error" in limits:  # typer's own types, such as choices and paths, state the error
        return str(limits["error"])
    return f"{value} is not {_KINDS.get(kind.partition('_')[0], 'a valid value')}"


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'maxops'} --help"


def _warn_in_one_line(message: Warning | str, *_: object) -> str:
    return f"maxops: warning: {printable(str(message))}\n"


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"maxops {version}")
        print(f"native core: {_native.isa()}, threads: {maxops.get_num_threads()}")
        raise typer.Exit


app: typer.Typer = typer.Typer(
    name="maxops",
    cls=Group,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain-text help, because importing rich takes as long as everything else
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
        print(ctx.get_help(), file=sys.stderr)
        raise typer.Exit(BAD_USE)

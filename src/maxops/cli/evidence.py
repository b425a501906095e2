"""`maxops evidence`: shows the evidence for each clause, and whether it applies to this build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxops import _native
from maxops import evidence as package
from maxops.atomic_files import atomic_write, errors_of
from maxops.cli import streams
from maxops.cli.table import say, show
from maxops.errors import OutputError
from maxops.program import FAILED


def evidence(
    form: streams.Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show each claim.")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the matrix of clauses as CSV.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the matrix of clauses as HTML.")
    ] = None,
    parents: streams.Parents = False,
) -> None:
    """Show how each clause is verified. Exits with 1 if the evidence is for a different build."""
    files = {path: text for path, text in ((csv, package.as_csv), (html, package.as_html)) if path is not None}
    if csv is not None and csv == html:
        raise OutputError(f"{csv} is specified for two outputs; use a different file for each")
    streams.check_outputs(files, [], overwrite=False, parents=parents)
    named = {path: text for path, text in files.items() if not streams.is_stream(path)}
    kept = streams.stdout_kept_for(files)
    with atomic_write(make_folders=parents) as temporary:
        for path, text in named.items():
            with errors_of(path):
                temporary(path).write_text(text(), encoding="utf-8")
    streams.say_written(named)
    differing = package.differences()
    if streams.STREAM in files:
        streams.give_text(streams.STREAM, files[streams.STREAM]())
    with kept:
        if as_json or form == "json":
            installed = _native.build() | {"isa": _native.isa(), "differs": differing}
            assumptions = package.read("matrix")["assumptions"]
            document = package.read("evidence") | {"installed": installed, "assumptions": assumptions}
            print(json.dumps(document | {"clauses": package.rows()}, indent=1))
        else:
            _show(differing, verbose=verbose)
    if differing:
        raise typer.Exit(FAILED)


def _show(differing: list[str], *, verbose: bool) -> None:
    evidence = package.read("evidence")
    if verbose:
        show(
            ("claim", "method", "goals", "open", "cases", "tool", "statement"),
            [
                (
                    *(each["id"], each["method"], str(each["goals"]), str(len(each["open"]) or "")),
                    *(f"{each['cases']:,}" if each["cases"] else "", each["tool"], each["says"]),
                )
                for each in evidence["claims"]
            ],
        )
    columns = ("claims", "goals", "open", "cases")
    show(
        ("method", *columns),
        [(name, *(f"{of[column]:,}" for column in columns)) for name, of in package.by_method().items()],
    )
    more = "" if verbose else "; -v shows each claim"
    say(f"clauses: {len(package.rows())} (--csv and --html list how each is verified){more}")
    for name, value in evidence["run"].items():
        say(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    if checks := evidence.get("release_checks"):
        dates = (f"{name} {each['date']} (commit {each['commit'][:10]})" for name, each in checks.items())
        say(f"release checks that passed: {'; '.join(dates)}")
    else:
        say("release checks: not recorded")
    build = evidence["build"]
    say(f"build: {build['compiler']} {build['flags']}, with kernels for {', '.join(build['instruction_sets'])}")
    named = ", ".join(package.isas()) or "none"
    say(f"instruction set in use: {_native.isa()}; claims about compiled code cover: {named}")
    if differing:
        say(f"the evidence is for a different build; differences: {'; '.join(differing)}")
    else:
        say("the evidence is for this build and for the installed files")

"""All commands with every error of files and of the machine: one line, exit code 2, and no leftover files.

Exit code 1 means only that outputs differ or that a clause is violated. The files that a command reads and writes are
slots in its arguments. The tests put each error into each slot in turn.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from command_server import Job, Outcome, Stream, outcomes
from helpers import ir_models, models
from helpers.conformance_runs import swift
from maxops.cli import app
from maxops.evidence import differences

ROWS = np.arange(2 * 4096, dtype=np.float32).reshape(2, 4096)  # results exceed the free space of the full disk
MAX_OF_ROWS = models.model(
    [models.node("Max", ["x", "w"], "y"), models.node("Max", ["x"], "z")],
    [models.value("x", (2, 4096))],
    [models.value("y", (2, 4096)), models.value("z", (2, 4096))],
    [models.tensor("w", ROWS)],
)
BROKEN_CLAUSES = models.model([models.node("Max", ["x", "q"], f"y{n}") for n in range(20)], ["x", "q"])
IR = ir_models.segment_net('fill_mode="zero"', (2, 4096), False, (-1, 4096))
_SPEED = json.loads((Path(__file__).resolve().parents[2] / "docs/speed.json").read_text())
BENCH = json.dumps(_SPEED | {"cases": _SPEED["cases"][:120]})  # the page is larger than the free space of the full disk
LONG = "n" * 256  # a part of a path may have at most 255 bytes


def _npy(path: Path, array: Any) -> None:
    with path.open("wb") as file:
        np.save(file, array)


def _run_json() -> str:
    run = swift()
    return json.dumps(run | {"notes": ["x" * 5000]})


def _write_inputs(folder: Path) -> None:
    """Write the inputs of all commands to a new folder."""
    folder.mkdir(parents=True)
    _npy(folder / "x.npy", ROWS)
    _npy(folder / "ids.npy", np.array([0, 2]))
    np.savez(folder / "x.npz", x=ROWS)
    (folder / "x.pb").write_bytes(models.tensor("x", ROWS).SerializeToString())
    (folder / "m.onnx").write_bytes(MAX_OF_ROWS.SerializeToString())
    (folder / "broken.onnx").write_bytes(BROKEN_CLAUSES.SerializeToString())
    (folder / "external.onnx").write_bytes(models.external(location="w.bin").SerializeToString())
    (folder / "w.bin").write_bytes(bytes(16))
    (folder / "m.xml").write_text(IR)
    (folder / "m.bin").write_bytes(b"")
    (folder / "run.json").write_text(_run_json())
    (folder / "bench.json").write_text(BENCH)
    data = folder / "suite/test_data_set_0"
    data.mkdir(parents=True)
    (folder / "suite/model.onnx").write_bytes(MAX_OF_ROWS.SerializeToString())
    for name, array in {"input_0": ROWS, "output_0": ROWS, "output_1": ROWS}.items():
        (data / f"{name}.pb").write_bytes(models.tensor("", array).SerializeToString())


# The arguments of each command: {in:...} names an input file, {out:...} an output file, and {out:} an output folder.
COMMANDS = {
    "run": "run {in:m.onnx} --input x={in:x.npy} --output {out:}",
    "run on npz": "run {in:m.onnx} --input {in:x.npz} --output {out:}",
    "run on pb": "run {in:m.onnx} --input {in:x.pb} --output {out:}",
    "run on its own data": "run {in:suite} --output {out:}",
    "run of an IR": "run {in:m.xml} --input data={in:x.npy} --input ids={in:ids.npy} --output {out:}",
    "maximum": "maximum {in:x.npy} {in:x.npy} --output {out:m.npy}",
    "maximum shown": "maximum {in:x.npy}",
    "reduce-max": "reduce-max {in:x.npy} --axes 0 --output {out:r.npy}",
    "segment-max": "segment-max {in:x.npy} {in:ids.npy} --fill-mode ZERO --output {out:s.npy}",
    "operators": "operators --clauses",
    "operators as JSON": "operators --json",
    "check": "check {in:broken.onnx} --output {out:report.txt} --all",
    "check shown": "check {in:broken.onnx} --format json",
    "check of an IR": "check {in:m.xml} --format sarif --all --output {out:report.sarif}",
    "check of a folder": "check {in:suite} --format sarif --all --output {out:report.json}",
    "conform": "conform --format text --from {in:run.json} --compare {in:run.json} --baseline {in:run.json} "
    "--json {out:run.json} --junit {out:run.xml} --html {out:run.html}",
    "conform saves": "conform --save {out:cases} --parents --only ONNX.Max-13.T/*/two*,OpenVINO.SegmentMax-16.T/int8/*",
    "conform runs": "conform numpy --only ONNX.Max-13.T/int8/two* --html {out:run.html}",
    "conform in a pipe": "conform --from {in:run.json} --junit {out:run.xml} --format concise",
    "clause": "clause ONNX.Max-13.shape model",
    "info": "info --format json",
    "rewrite": "rewrite {in:m.onnx} {out:moved.onnx}",
    "rewrite with data": "rewrite {in:external.onnx} {out:moved.onnx}",
    "bench": "bench Max --quick --sizes 1 --types int8,int16,int32 --libraries numpy --seconds 0.001 "
    "--threads 1 --json {out:bench.json}",
    "bench shown": "bench --from {in:bench.json}",
    "bench as a page": "bench --from {in:bench.json} --markdown {out:bench.md}",
    "evidence": "evidence",
    "evidence with files": "evidence --csv {out:matrix.csv} --html {out:matrix.html}",
    "help": "--help",
    "version": "--version",
}


# Commands that each print a different kind of output.
STREAMED = [name for name in COMMANDS if not re.search(" (on npz|on pb|of|with|as a|runs|saves)", name)]

# The expected ending of a command: an error line and exit code 2; the same ending as without an error; either,
# depending on whether it prints; exit code 2 without output; 0; or 1.
REFUSED, USUAL, LOST, UNTOLD, WELL, DIFFERS = "refused", "usual", "lost", "untold", "well", "differs"
# These tests ignore that the evidence may not match the build while native code is being changed.
OTHER_BUILD = int(bool(differences()))
USUAL_CODES = {"check": 1, "check shown": 1, "conform in a pipe": 1}
USUAL_CODES |= {"evidence": OTHER_BUILD, "evidence with files": OTHER_BUILD}


class Case(NamedTuple):
    """A job, words (an error must contain one of them), and the expected ending."""

    job: Job
    words: tuple[str, ...]
    end: str = REFUSED


class Places(NamedTuple):
    """Folders: with valid inputs, with valid outputs, and with errors."""

    right: Path
    out: Path
    forbidden: Path
    full: Path
    read_only: Path


def _slots(command: str) -> list[tuple[str, str]]:
    return re.findall(r"{(in|out):([^}]*)}", command)


def _name_of(case: str) -> str:
    return case.partition(",")[0]


def _filled(command: str, places: Places, number: int = -1, place: Path | None = None) -> list[str]:
    """Return the arguments of a command, with one slot in another folder."""
    parts: Iterator[str] = iter(
        str((place if slot == number and place else places.right if side == "in" else places.out) / name)
        for slot, (side, name) in enumerate(_slots(command))
    )
    return [re.sub("{[^}]*}", lambda _: next(parts), word) for word in command.split(" ")]


def _wrong_places(side: str, places: Places) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """Return folders that are invalid for a slot, each with the words of the error."""
    message = {
        "in a folder that may not be entered": (places.forbidden, ("Permission denied", "not readable")),
        "below a part of 256 bytes": (places.right / LONG, ("File name too long",)),
        "below a loop of links": (places.right / "loop", ("symbolic links",)),
    }
    if side == "out":
        message["below a file"] = (places.right / "x.npy", ("Not a directory", "does not exist; pass --parents"))
        refused = ("Read-only file system", "Permission denied", "not permitted")
        message["on a read-only file system"] = (places.read_only, refused)
        message["on a full disk"] = (places.full, ("No space left on device", "File too large"))
    return message


Which = Callable[[int, Sequence[Any]], Sequence[Any]]  # selects some values for the turn with this number


def _every(_turn: int, possible: Sequence[Any]) -> Sequence[Any]:
    return possible


def _one(turn: int, possible: Sequence[Any]) -> Sequence[Any]:
    return [possible[turn % len(possible)]]


def _of_places(places: Places, which: Which) -> Iterator[tuple[str, Case]]:
    """Yield every slot of every command in every invalid folder, or each slot in one folder."""
    turns = {"in": itertools.count(), "out": itertools.count()}
    for name, command in COMMANDS.items():
        yield name, Case(Job(_filled(command, places), str(places.out)), (), USUAL)
        for number, (side, file) in enumerate(_slots(command)):
            for how, (place, words) in which(next(turns[side]), list(_wrong_places(side, places).items())):
                slot = f"{'reads' if side == 'in' else 'writes'} {file or 'its folder'} (slot {number})"
                watched = place if place == places.full else places.out
                job = Job(_filled(command, places, number, place), str(watched), full=place == places.full)
                yield f"{name}, which {slot} {how}", Case(job, words)


def _of_streams(places: Places, which: Which) -> Iterator[tuple[str, Case]]:
    """Yield every command with each kind of closed or full standard stream, or with one kind."""
    streams: tuple[tuple[Stream, str], ...] = (("full", "No space left on device"), ("closed", "Bad file descriptor"))
    for turn, name in enumerate(STREAMED):
        words = _filled(COMMANDS[name], places)
        every = {
            f"{name}, stdout {stream}": Case(Job(words, str(places.out), stdout=stream), ("stdout", message), LOST)
            for stream, message in streams
        }
        every[f"{name}, stderr full"] = Case(Job(words, str(places.out), stderr="full"), (), USUAL)
        yield from which(turn, list(every.items()))
    for stream, _ in streams:
        job = Job(["operators", "--nonsense"], str(places.out), stderr=stream)
        yield f"operators, with a wrong option and stderr {stream}", Case(job, (), UNTOLD)


# ------------------------------------------------------------------------------------------- what is in the files


def _header(shape: object) -> bytes:
    text = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _with_run(**changes: Any) -> str:
    run = swift()
    number = next(
        n for n, each in enumerate(run["findings"]) if "bits" in each["expected"] and each["expected"]["bits"]
    )
    run["findings"][number] |= changes  # type: ignore[typeddict-item]
    return json.dumps(run)


def _elements(**changes: Any) -> dict[str, Any]:
    return {"type": "float32", "shape": [1], "values": ["1.0"], "bits": ["3F800000"]} | changes


READERS_OF_ONNX = {"run": "run {} --input x={1}/x.npy", "check": "check {}", "rewrite": "rewrite {} {2}/moved.onnx"}
READERS_OF_IR = {"run": "run {}", "check": "check {}"}
READERS_OF_NPY = {
    "maximum": "maximum {}",
    "reduce-max": "reduce-max {}",
    "segment-max": "segment-max {} {}/ids.npy --fill-mode ZERO",
    "segment-max by": "segment-max {1}/x.npy {0} --fill-mode ZERO",
    "run": "run {1}/m.onnx --input x={0}",
}
READERS_OF_RUNS = {"--from": "conform --from {}", "--compare": "conform --from {1}/run.json --compare {0}"}

BAD_NPY = {
    "a size of 2^70 beside 0": _header((1 << 70, 0)),
    "0 beside a size of 2^70": _header((0, 1 << 70)),
    "65 axes": _header((1,) * 65) + bytes(4),
    "65 axes and no elements": _header((0,) * 65),
    "a size of 4000 digits": _header((10**4000,)),
}
# The verdicts of the checker, which reads no weights, for models with these locations.
LOCATIONS = {
    "longer than a name may be": (LONG, DIFFERS),
    "longer than a path may be": ("d/" * 3000 + "w", DIFFERS),
    "with a NUL": ("w\0.bin", DIFFERS),
    "that is a loop of links": ("loop", DIFFERS),
    "below a loop of links": ("loop/w.bin", DIFFERS),
    "that is a folder": ("suite", DIFFERS),
    "in a folder that may not be entered": ("closed/w.bin", REFUSED),
    "that may not be read": ("unread.bin", WELL),  # the checker reads no weights
}
BAD_IR = {
    "a version of 5000 digits": (ir_models.net([], [], "1" * 5000), "the IR version must be"),
    "a version of other digits": (ir_models.net([], [], "\N{ARABIC-INDIC DIGIT ONE}" * 2), "the IR version must be"),
    "a Const of 65 axes": (ir_models.reduce_net(8, shape=",".join(["1"] * 65)), "65"),
    "a Const of no elements and 65 axes": (ir_models.reduce_net(0, shape=",".join(["0"] * 65)), "65"),
    "a Const of a size past 2^63": (ir_models.reduce_net(0, shape="0," + "9" * 19), "9999"),
}
BAD_RUNS = {
    "bits that are no digits": _with_run(expected=_elements(bits=["no bits!"]), actual=_elements()),
    "bits that are too few": _with_run(expected=_elements(bits=["3F80"]), actual=_elements()),
    "bits that are too many": _with_run(expected=_elements(), actual=_elements(bits=["3F8000000"])),
    "bits with a sign": _with_run(expected=_elements(bits=["-3F80000"]), actual=_elements()),
    "bits with spaces": _with_run(expected=_elements(bits=[" 3F8000 "]), actual=_elements()),
    "bits that are empty": _with_run(expected=_elements(bits=[""]), actual=_elements()),
    "bits of an unknown type": _with_run(expected=_elements(type="float12"), actual=_elements(type="float12")),
    "negative sizes": _with_run(expected=_elements(shape=[-1, -1]), actual=_elements()),
    "infinite seconds": json.dumps(swift() | {"seconds": 0}).replace('"seconds": 0', '"seconds": 1e999'),
    "seconds of 5000 digits": json.dumps(swift() | {"seconds": 0}).replace('"seconds": 0', f'"seconds": {"1" * 5000}'),
}
BAD_OPTIONS = {
    "conform reference --only ONNX.Max-13.T/int8/two* --timeout inf": "inf",
    "conform reference --only ONNX.Max-13.T/int8/two* --timeout nan": "nan",
    "conform reference --only ONNX.Max-13.T/int8/two* --timeout 1e300": "1e+300",
    "bench Max --quick --threads 0": "--threads",
    "bench Max --quick --threads -1": "--threads",
    "bench Max --quick --threads 1000000": "--threads",
    "bench Max --quick --seconds inf": "inf",
    "bench Max --quick --seconds nan": "nan",
    "bench Max --quick --seconds -1": "-1",
    "bench Max --quick --seconds 0": "0",
    f"reduce-max x.npy --axes {10**30}": str(10**30),
    f"reduce-max x.npy --axes {'1' * 5000}": "--axes",
    f"segment-max x.npy ids.npy --fill-mode ZERO --num-segments {10**30}": str(10**30),
    f"segment-max x.npy ids.npy --fill-mode ZERO --num-segments {'1' * 5000}": "--num-segments",
}


def _of_contents(places: Places, which: Which) -> Iterator[tuple[str, Case]]:
    """Yield every command that reads a kind of file, or one such command, with every invalid file of this kind."""
    folder = places.right

    def case(command: str, path: Path, word: str, end: str = REFUSED) -> Case:
        split = [each.format(path, folder, places.out) if "{" in each else each for each in command.split(" ")]
        return Case(Job(split, str(places.out)), (word,), end)

    for turn, (message, data) in enumerate(BAD_NPY.items()):
        (path := folder / f"{message}.npy").write_bytes(data)
        for name, command in which(turn, list(READERS_OF_NPY.items())):
            yield f"{name}, of an array with {message}", case(command, path, str(path))
    for turn, (message, (location, verdict)) in enumerate(LOCATIONS.items()):
        path = folder / f"location {message}.onnx"
        path.write_bytes(models.external(location=location).SerializeToString())
        for name, command in which(turn, list(READERS_OF_ONNX.items())):
            end = verdict if name == "check" else REFUSED
            yield f"{name}, with data in a location {message}", case(command, path, str(folder), end)
    for turn, (message, (text, words)) in enumerate(BAD_IR.items()):
        (path := folder / f"{message}.xml").write_text(text, encoding="utf-8")
        path.with_suffix(".bin").write_bytes(bytes(8))
        for name, command in which(turn, list(READERS_OF_IR.items())):
            # the checker reports a port that contradicts the data; the file itself is readable
            end = DIFFERS if name == "check" and "Const" in message else REFUSED
            yield f"{name}, of an IR with {message}", case(command, path, words, end)
    for turn, (message, text) in enumerate(BAD_RUNS.items()):
        (path := folder / f"{message}.json").write_text(text)
        for name, command in which(turn, list(READERS_OF_RUNS.items())):
            yield f"conform {name}, of a run with {message}", case(command, path, str(path))
    for command, words in BAD_OPTIONS.items():
        split = [str(folder / word) if word.endswith(".npy") else word for word in command.split(" ")]
        yield command[:80], Case(Job(split, str(places.out)), (words,))


def _of_ranks(places: Places, which: Which) -> Iterator[tuple[str, Case]]:
    """Yield unusual but valid inputs: arrays of more axes than NumPy's older iterators support."""
    for turn, rank in enumerate((33, 64)):
        (folder := places.right / f"rank {rank}").mkdir()
        _npy(folder / "x.npy", np.ones((1,) * rank, np.float32))
        _npy(folder / "ids.npy", np.zeros(1, np.int64))
        dims = models.value("x", (1,) * rank)
        made = models.model([models.node("Max", ["x"], "y")], [dims], [models.value("y", (1,) * rank)])
        (folder / "model.onnx").write_bytes(made.SerializeToString())
        (folder / "test_data_set_0").mkdir()
        for name in ("input_0", "output_0"):
            array = np.ones((1,) * rank, np.float32) * (2 if name == "output_0" else 1)
            (folder / f"test_data_set_0/{name}.pb").write_bytes(models.tensor("", array).SerializeToString())
        every = {
            "maximum {}/x.npy": WELL,
            "reduce-max {}/x.npy": WELL,
            "segment-max {}/x.npy {}/ids.npy --fill-mode ZERO": WELL,
            "run {}/model.onnx --input x={}/x.npy": WELL,
            "run {}": DIFFERS,
        }
        for command, end in which(turn, list(every.items())):
            words = [word.replace("{}", str(folder)) for word in command.split(" ")]
            yield f"{words[0]}, {end}, of rank {rank}", Case(Job(words, str(places.out)), (), end)


# --------------------------------------------------------------------------------------------------------- the walk


class Walk(NamedTuple):
    """The cases with their endings, and whether they are complete."""

    cases: dict[str, Case]
    found: dict[str, Outcome]
    is_whole: bool


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["part", "whole"])
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Run all cases or, for each slot, stream and file, a rotating selection."""
    is_whole = bool(request.param)
    base = tmp_path_factory.mktemp("walk")
    places = Places(*(base / name for name in Places._fields))
    for folder in (places.right, places.forbidden, places.read_only):
        _write_inputs(folder)
    places.out.mkdir()
    places.full.mkdir()
    (places.right / "loop").symlink_to("loop")
    (places.right / "closed").mkdir(mode=0)
    (places.right / "unread.bin").write_bytes(bytes(16))
    (places.right / "unread.bin").chmod(0)
    places.forbidden.chmod(0)
    try:
        cases = dict(each for make in GROUPS for each in make(places, _every if is_whole else _one))
        jobs = {name: case.job for name, case in cases.items()}
        return Walk(cases, outcomes((places.full, places.read_only), jobs), is_whole)
    finally:
        places.forbidden.chmod(0o700)
        (places.right / "closed").chmod(0o700)


GROUPS = (_of_places, _of_streams, _of_contents, _of_ranks)


TALK = r"maxops: (wrote |swiftmax|numpy[ :]|warning: .*: nothing was checked: )"


def _beside_talk(stderr: str) -> str:
    """Return stderr without the lines about written files, summaries and skipped checks."""
    said = [line for line in stderr.splitlines() if not re.match(TALK, line)]
    return "\n".join(said)


def _fault(name: str, case: Case, found: Outcome, *, prints: bool) -> str:
    """Return the error in a command's ending, or ""."""
    end = case.end
    if end == LOST:  # output files are written, and nothing else should be printed
        end = REFUSED if prints else USUAL
    if end == DIFFERS:
        return "" if found.code == 1 and found.stdout and not found.stderr else f"not 1: {found}"
    if end in (USUAL, WELL):
        code = USUAL_CODES.get(_name_of(name), 0) if end == USUAL else 0
        return "" if found.code == code and not _beside_talk(found.stderr) else f"not as usual: {found}"
    if found.code != 2:
        return f"not 2: {found}"
    if end == UNTOLD:
        return ""
    error = _beside_talk(found.stderr)  # without the lines printed before the error
    if not (error.startswith("maxops: error: ") and "\n" not in error and found.stderr.endswith(f"{error}\n")):
        return f"not one line: {found.stderr}"
    if not any(word in found.stderr for word in case.words):
        return f"not what is wrong, {case.words}: {found.stderr}"
    return f"left behind: {found.new}" if found.new and case.end == REFUSED else ""


def faults(walk: Walk) -> list[str]:
    cases, found, _ = walk
    return [
        f"{name}: {fault}"
        for name, case in cases.items()
        if (fault := _fault(name, case, found[name], prints=bool(found.get(_name_of(name), found[name]).stdout)))
    ]


def test_every_command_in_every_situation_is_one_line_and_2(walk: Walk) -> None:
    assert "\n".join(faults(walk)) == ""


def test_the_walk_has_every_command_and_every_situation(walk: Walk) -> None:
    words = {command.split(" ")[0] for command in COMMANDS.values()}
    assert words == {*app.COMMANDS} | {"--help", "--version"}
    slots = [side for command in COMMANDS.values() for side, _ in _slots(command)]
    possible = [(3, slots.count("in")), (6, slots.count("out")), (3, len(STREAMED)), (5, 2)]
    possible += [(5, len(BAD_NPY)), (3, len(LOCATIONS)), (2, len(BAD_IR)), (2, len(BAD_RUNS))]
    ways = sum(count * (each if walk.is_whole else 1) for each, count in possible)
    assert len(walk.cases) == len(COMMANDS) + ways + 2 + len(BAD_OPTIONS)
    message = "\n".join(walk.cases)
    readers = (READERS_OF_NPY, READERS_OF_ONNX, READERS_OF_IR)
    for name in (
        *COMMANDS,
        *(name for each in readers for name in each),
        *_wrong_places("out", Places(*map(Path, Places._fields))),
    ):
        assert name in message


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "new"),
    [
        (1, "", "maxops: error: why\n", []),
        (70, "", "Traceback\nmaxops: error: why\n", []),
        (2, "", "Traceback\nmaxops: error: why\n", []),
        (2, "", "", []),
        (2, "", "maxops: error: y\n", []),
        (2, "", "maxops: error: why\n", ["m.npy"]),
    ],
)
def test_the_walk_notices(code: int, stdout: str, stderr: str, new: list[str]) -> None:
    case = Case(Job([], ""), ("why",))
    assert _fault("maximum", case, Outcome(code, stdout, stderr, new), prints=False)
    assert not _fault("maximum", case, Outcome(2, "", "maxops: error: why\n", []), prints=False)

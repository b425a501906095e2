"""Fuzzes the readers of models: each mutated model must be read or rejected with an error of maxops.

`python tests/fuzz.py --count 1000000` tries a million mutants; the tests try as many as they can in a few seconds.
Mutations change bytes, or fields of a message that stays well-formed. If a mutant raises another error, crashes or
hangs, the script keeps it in a file and exits with 1.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, parser

from helpers import models
from maxops import errors, openvino
from maxops import onnx as mx
from maxops.checker import check

SLOWEST = 20  # seconds per mutant
INTEGERS = (0, 1, -1, 2, 7, 16, 127, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
TEXTS = ("", "x", "y", "Max", "ReduceMax", "SegmentMax", "If", "maxops", "ai.onnx", "../w", "/etc/hostname", "\0", "é")

OURS = """<ir_version: 8, opset_import: ["": 13]> g (float[2,n] x) => (float[2] z) {
    c = Constant <value = float[1] {1.5}> () y = Max (x, c) z = ReduceMax <axes = [1], keepdims = 0> (y) }"""
NEWER = """<ir_version: 10, opset_import: ["": 20, "maxops": 1]> g (float[n] x, int64[n] ids) => (float[k] z)
    <int64[1] axes = {0}> { y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids) z = ReduceMax (y, axes) }"""
NESTED = """<ir_version: 9, opset_import: ["": 18, "local": 1]> g (bool c, float[2] a, float[2] b) => (float[2] y) {
    y = If (c) <then_branch = yes () => (float[2] t) { t = Max(a, b) },
                else_branch = no () => (float[2] e) { e = local.lower <over = [0]> (a, b) }> }
    <domain: "local", opset_import: ["": 13]> lower <over> (p, q) => (r)
        { m = Max(p, q) r = ReduceMax <axes: ints = @over> (m) }"""
LOOP = """<ir_version: 9, opset_import: ["": 13]> g (int64 n, float[2] a) => (float[2] y) {
    on = Constant <value = bool {1}> ()
    y = Loop (n, on, a) <body = one (int64 i, bool go, float[2] b) => (bool more, float[2] best)
        { more = Identity(go) best = Max(b, a) }> }"""
NO_TEXT = "no UTF-8"  # a placeholder for bytes that are not UTF-8
IR = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter"><data shape="3,2" element_type="f32"/>
<output><port id="0"><dim>3</dim><dim>2</dim></port></output></layer>
<layer id="1" name="c" type="Const"><data element_type="i64" offset="0" size="8" shape="1"/>
<output><port id="0"><dim>1</dim></port></output></layer>
<layer id="2" name="r" type="ReduceMax"><data keep_dims="true"/>
<input><port id="0"><dim>3</dim><dim>2</dim></port><port id="1"><dim>1</dim></port></input>
<output><port id="2"><dim>3</dim><dim>1</dim></port></output></layer>
<layer id="3" name="y" type="Result"><input><port id="0"><dim>3</dim><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"""

SEEDS = [
    *(parser.parse_model(text) for text in (OURS, NEWER, NESTED, LOOP)),
    models.external(location="w.bin", offset="0", length="16"),
]


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return the data with a few bytes changed, removed or repeated."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(changed) + 1), chance.randint(1, 60)
        kind = chance.randrange(4)
        if kind == 0 and changed:
            changed[at % len(changed)] = chance.randrange(256)
        elif kind == 1:
            del changed[at : at + length]
        elif kind == 2:
            changed[at:at] = changed[at : at + length]
        else:
            del changed[at : len(changed) if chance.random() < 0.2 else at + 1]
    return bytes(changed)


def mutate_fields(message: Any, chance: random.Random) -> None:
    """Change one field somewhere inside a message, which stays well-formed."""
    while True:
        fields = message.ListFields()
        inner = [
            part
            for field, value in fields
            if field.type == FieldDescriptor.TYPE_MESSAGE
            for part in (value if field.is_repeated else [value])
        ]
        if not inner or chance.random() < 0.25:
            break
        message = chance.choice(inner)
    descriptors = message.DESCRIPTOR.fields
    field = chance.choice([field for field, _ in fields] if fields and chance.random() < 0.8 else descriptors)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        _mutate_message(message, field, chance)
    elif field.is_repeated:
        values = getattr(message, field.name)
        kind = chance.randrange(3)
        if kind == 0 and values:
            del values[chance.randrange(len(values))]
        elif kind == 1 and values:
            values[chance.randrange(len(values))] = chance.choice(_values(field))
        else:
            values.extend(chance.choice(_values(field)) for _ in range(chance.choice((1, 2, 50))))
    elif chance.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, chance.choice(_values(field)))


def single_changes(model: ModelProto) -> Iterator[bytes]:
    """Yield every model that differs in one field: set, removed, repeated, or a string that is not UTF-8."""
    for message in reversed(_messages(model)):  # inner messages first, because restoring a message replaces them
        for field in message.DESCRIPTOR.fields:
            held = message.__class__()
            held.CopyFrom(message)
            for change in _changes(field, len(getattr(message, field.name)) if field.is_repeated else None):
                change(message)
                yield model.SerializeToString().replace(NO_TEXT.encode(), b"\xff" * len(NO_TEXT))
                message.CopyFrom(held)


def _messages(message: Any) -> list[Any]:
    found = [message]
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            found += [each for part in (value if field.is_repeated else [value]) for each in _messages(part)]
    return found


def _changes(field: Any, count: int | None) -> Iterator[Callable[[Any], object]]:
    """Yield the changes of a message's field. `count` is the number of values of a repeated field."""
    name = field.name
    values = [] if field.type == FieldDescriptor.TYPE_MESSAGE else _values(field)
    if field.type == FieldDescriptor.TYPE_STRING:
        values.append(NO_TEXT)
    if count is None:
        yield lambda message: message.ClearField(name)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            yield lambda message: (message.ClearField(name), getattr(message, name).SetInParent())
        for value in values:
            yield lambda message, value=value: setattr(message, name, value)  # type: ignore[misc]
        return
    for at in range(count):
        yield lambda message, at=at: getattr(message, name).pop(at)  # type: ignore[misc]
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            yield lambda message, at=at: getattr(message, name).add().CopyFrom(getattr(message, name)[at])  # type: ignore[misc]
        for value in values:
            yield lambda message, at=at, value=value: getattr(message, name).__setitem__(at, value)  # type: ignore[misc]
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        yield lambda message: getattr(message, name).add()
    for value in values:
        yield lambda message, value=value: getattr(message, name).append(value)  # type: ignore[misc]


def _mutate_message(message: Any, field: Any, chance: random.Random) -> None:
    value = getattr(message, field.name)
    if not field.is_repeated:
        message.ClearField(field.name) if chance.random() < 0.7 else value.SetInParent()
    elif value and chance.random() < 0.5:
        value.add().CopyFrom(chance.choice(value))
    elif value:
        del value[chance.randrange(len(value))]
    else:
        value.add()


def _values(field: Any) -> list[Any]:
    if field.type == FieldDescriptor.TYPE_STRING:
        return [*TEXTS]
    if field.type == FieldDescriptor.TYPE_BYTES:
        return [b"", b"\x5a", bytes(4), b"\xff\x80\x7f\1\0\0\0\x80", b"\xff" * 100]
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return [0.0, float("nan"), -1.5, float("inf")]
    if field.type == FieldDescriptor.TYPE_ENUM:
        return [value.number for value in field.enum_type.values]
    bits = 32 if field.type == FieldDescriptor.TYPE_INT32 else 64
    low = 0 if field.type == FieldDescriptor.TYPE_UINT64 else -(2 ** (bits - 1))
    return [number for number in INTEGERS if low <= number < 2 ** (bits - 1)]


def mutant(chance: random.Random) -> tuple[str, bytes]:
    """Return the file extension and the bytes of a mutated model."""
    if chance.random() < 0.15:
        return ".xml", mutated_bytes(IR.encode(), chance)
    model = chance.choice(SEEDS)
    if chance.random() < 0.5:
        return ".onnx", mutated_bytes(model.SerializeToString(), chance)
    copy = ModelProto.FromString(model.SerializeToString())
    for _ in range(chance.randint(1, 3)):
        mutate_fields(copy, chance)
    return ".onnx", copy.SerializeToString()


def entry_points(path: Path) -> list[Callable[[], object]]:
    """Return the calls that read a file."""
    if path.suffix == ".xml":
        return [lambda: openvino.load(path), lambda: check(path)]
    found: list[Callable[[], object]] = [
        lambda: mx.load(path),
        lambda: _with_message(path, mx.rewrite),
        lambda: _with_message(path, mx.portable),
    ]
    if path.stat().st_size % 8 == 0:  # for one file in eight, because check() starts a process
        found.append(lambda: check(path))
    return found


def _with_message(path: Path, work: Callable[[ModelProto], object]) -> None:
    try:
        model = ModelProto.FromString(path.read_bytes())
    except DecodeError:
        return
    work(model)


def attempt(path: Path) -> Counter[str]:
    """Pass a file to every entry point and count the outcomes. Errors that are not from maxops propagate."""
    seen: Counter[str] = Counter()
    for entry_point in entry_points(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", openvino.IRWarning)
            try:
                entry_point()
                seen["read"] += 1
            except errors.MaxopsError as error:
                if not str(error).strip():
                    raise AssertionError("an error without a text") from error
                seen["refused"] += 1
    return seen


def _work(seed: int, count: int, stop: float, folder: str, results: Any) -> None:
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    place = Path(folder)
    (place / "w.bin").write_bytes(bytes(16))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a mutant that hangs ends the process
    while seen["mutants"] < count and time.monotonic() < stop:
        ending, data = mutant(chance)
        path = place / f"mutant{ending}"
        path.write_bytes(data)
        path.with_suffix(".bin").write_bytes(np.array([1]).tobytes())
        signal.alarm(SLOWEST)
        seen += attempt(path)
        signal.alarm(0)
        seen["mutants"] += 1
    results.put(seen)


def fuzz(count: int, seconds: float, seed: int, workers: int) -> Counter[str]:
    """Try mutants in worker processes and return the counts. Raise RuntimeError if a worker fails."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    stop = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / str(number) for number in range(workers)]
        processes = []
        for number, place in enumerate(places):
            place.mkdir()
            share = count // workers + (number < count % workers)
            process = context.Process(target=_work, args=(seed + number, share, stop, str(place), results))
            process.start()
            processes.append(process)
        for process, place in zip(processes, places, strict=True):
            process.join()
            if process.exitcode != 0:
                for other in processes:
                    other.terminate()
                    other.join()
                kept = Path(tempfile.mkdtemp(prefix="maxops-fuzz-"))
                for file in place.iterdir():
                    (kept / file.name).write_bytes(file.read_bytes())
                raise RuntimeError(f"a worker ended with {process.exitcode}; its last mutant is in {kept}")
    seen: Counter[str] = Counter()
    for _ in processes:
        seen += results.get()
    return seen


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    began = time.monotonic()
    try:
        seen = fuzz(chosen.count, chosen.seconds, chosen.seed, chosen.workers)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{dict(seen)} in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

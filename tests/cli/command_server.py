"""Runs `maxops` commands in separate processes, which are forked from a server that has imported their modules.

python command_server.py < jobs.json > outcomes.json

Jobs and outcomes are `Job` and `Outcome` as JSON. A job's process has real file descriptors for its output. Permissions
apply to it even if root runs the tests. If permitted, the server mounts two small file systems that only it sees: one
is full except for a page, and the other is read-only. Otherwise, files in the first are limited to a few bytes, and the
second is the kernel's /sys.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Literal, Self

Stream = Literal["kept", "full", "closed"]

SECONDS = 60
PAGE = 4096  # free bytes on the full file system
WHOLE = 1 << 20
FEW = 64  # the size limit of files if nothing can be mounted

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 32, 16384, 1 << 18
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAPABILITY_VERSION = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Job:
    """A command and its environment. The outcome lists the new files in the folder `watched`."""

    words: Sequence[str]
    watched: str
    stdout: Stream = "kept"
    stderr: Stream = "kept"
    full: bool = False  # whether the watched folder is on the full file system


@dataclass(frozen=True)
class Outcome:
    """The exit code of a command, its output, and its new files."""

    code: int
    stdout: str
    stderr: str
    new: list[str]


def outcomes(folders: tuple[Path, Path], jobs: dict[str, Job]) -> dict[str, Outcome]:
    """Run jobs one after the other in a separate server. The two folders become a full and a read-only file system."""
    message = {"folders": list(map(str, folders)), "jobs": {name: asdict(job) for name, job in jobs.items()}}
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(message),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=15 * SECONDS,
        env=os.environ | {"MAXOPS_BENCH_ENVIRONMENT": "1"},  # otherwise, `maxops bench` restarts its process
    )
    return {name: Outcome(**each) for name, each in json.loads(done.stdout).items()}


# ------------------------------------------------------------------------------------------------- the machine


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _mount(place: str, kind: bytes | None, flags: int, data: bytes | None) -> None:
    _checked(_LIBC.mount(b"none", place.encode(), kind, flags, data))


def _mounted(full: str, read_only: str) -> bool:
    """Mount both file systems for this process alone. Return False if that is not permitted."""
    user, group = os.geteuid(), os.getegid()
    try:
        _checked(_LIBC.unshare(_CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)))
        if user:
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
                Path(f"/proc/self/{name}").write_text(text)
        _mount("/", None, _MS_REC | _MS_PRIVATE, None)
        _mount(full, b"tmpfs", 0, f"size={WHOLE}".encode())
        (Path(full) / "filler").write_bytes(bytes(WHOLE - PAGE))
        kept = tempfile.mkdtemp()
        shutil.copytree(read_only, kept, dirs_exist_ok=True)
        _mount(read_only, b"tmpfs", 0, None)
        shutil.copytree(kept, read_only, dirs_exist_ok=True)
        shutil.rmtree(kept)
        _mount(read_only, None, _MS_REMOUNT | _MS_RDONLY, None)
    except OSError:  # not permitted, as in many containers
        return False
    return True


def _obey_permissions() -> None:
    """Make permissions apply to this process, even if root runs it."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, in two words
    _checked(_LIBC.capget(header, sets))
    for number in range(3):
        sets[number] &= ~(1 << _CAP_DAC_OVERRIDE | 1 << _CAP_DAC_READ_SEARCH)
    _checked(_LIBC.capset(header, sets))


# ------------------------------------------------------------------------------------------------------- jobs


class _Kept:
    """A pipe that receives the output of a command, regardless of the size limit of files."""

    def __enter__(self) -> Self:
        self.reading, self.writing = os.pipe()
        fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, WHOLE)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (self.reading, self.writing):
            os.close(number)

    def text(self) -> str:
        """Return the content of the pipe."""
        os.set_blocking(self.reading, False)
        try:
            return os.read(self.reading, WHOLE).decode()
        except BlockingIOError:  # empty
            return ""


def _open(stream: Stream, kept: int, number: int) -> None:
    if stream == "kept":
        os.dup2(kept, number)
    elif stream == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)
    else:
        os.close(number)
    # as at Python's startup, which asks each stream for its properties once
    opened = None if stream == "closed" else open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    setattr(sys, "stdout" if number == 1 else "stderr", opened)


def _be_job(job: Job, kept: tuple[int, int], *, can_mount: bool) -> None:
    """Set up this process for a job, except for the command itself."""
    _obey_permissions()
    signal.alarm(SECONDS)
    if job.full and not can_mount:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FEW, FEW))
    _open(job.stdout, kept[0], 1)
    _open(job.stderr, kept[1], 2)


def _files(folder: str) -> set[str]:
    return {str(path) for path in Path(folder).rglob("*")}


def _serve() -> Job | None:
    """Run the jobs. Return the job in its own process, and None in the server."""
    message = json.load(sys.stdin)
    full, read_only = message["folders"]
    can_mount = _mounted(full, read_only)

    import maxops.checker.as_json  # noqa: PLC0415
    import maxops.checker.sarif  # noqa: PLC0415
    import maxops.cli.app  # noqa: PLC0415
    import maxops.conformance.cases  # noqa: PLC0415
    import maxops.conformance.page  # noqa: PLC0415
    import maxops.conformance.session  # noqa: PLC0415
    import maxops.openvino  # noqa: PLC0415

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for words in (["operators"], ["--help"], ["check", "--nonsense"]):  # later commands share their imports
            maxops.cli.app.app(words, standalone_mode=False)
    gc.freeze()  # keeps memory pages shared
    found = {}
    for name, job in ((name, Job(**each)) for name, each in message["jobs"].items()):
        before = _files(job.watched)
        with _Kept() as out, _Kept() as err:
            child = os.fork()
            if child == 0:
                _be_job(job, (out.writing, err.writing), can_mount=can_mount)
                words = [word if can_mount else word.replace(read_only, "/sys/kernel") for word in job.words]
                return replace(job, words=words)
            _, status = os.waitpid(child, 0)
            texts = [out.text(), err.text()]
        new = sorted(_files(job.watched) - before)
        for path in map(Path, reversed(new)):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        found[name] = Outcome(os.waitstatus_to_exitcode(status), texts[0], texts[1], new)
    json.dump({name: asdict(each) for name, each in found.items()}, sys.stdout)
    return None


def _end_of(job: Job) -> int:
    """Run the command of this process, and return its exit code as Python would after the last flush."""
    from maxops.cli import main  # noqa: PLC0415

    sys.argv = ["maxops", *job.words]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        code = 120
    return code


if __name__ == "__main__" and (mine := _serve()) is not None:
    # without finalizing the imported modules, which takes longer than the command
    os._exit(_end_of(mine))

#!/usr/bin/env python
"""Breaks the native code deliberately, and checks that the enumerations of the miniature build detect each break.

Each break is one edit of one file in native/. It is built in a copy of the tree, and `python -m exhaustive` has one
minute to detect it. `make faults` runs all breaks, which takes about twenty seconds each; `python tests/breaks.py
--only resume` runs those whose name contains the word. A break that is not detected is a gap in the tests:
the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
# On processors without AVX-512, its kernels use emulated instructions, and its hooks in vec_x86.h are not compiled.
HAS_AVX512 = "avx512bw" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
HOOKS = "core/vec_x86.h"
SECONDS = 60


@dataclass(frozen=True)
class Break:
    """An edit, and the instruction set whose kernels contain the edited code."""

    name: str
    file: str
    old: str
    new: str
    isa: str = "baseline"

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern of the old text that ignores line breaks."""
        return re.compile(r"\s+".join(re.escape(word) for word in self.old.split()))

    def apply(self, root: Path) -> str:
        """Edit the file and return its old text. Raise ValueError unless it contains the text exactly once."""
        path = root / "native" / self.file
        text = path.read_text(encoding="utf-8")
        if len(found := self.pattern().findall(text)) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {len(found)} times")
        path.write_text(self.pattern().sub(lambda _: self.new, text), encoding="utf-8")
        return text


_SEGMENT, _IDS, _BLOCKS, _ROWS = (
    "kernels/segment.h",
    "kernels/segment_ids.h",
    "kernels/segment_blocks.h",
    "drivers/segment_rows.h",
)
BREAKS = (
    # ------------------------------------------------------------------ segments: resumption
    Break("a run never resumes the open segment", _SEGMENT, "resumes = id == walk->previous;", "resumes = false;"),
    Break(
        "a run resumes the segment before its own",
        _SEGMENT,
        "resumes = id == walk->previous;",
        "resumes = walk->previous >= 0 && id <= walk->previous + 1;",
    ),
    Break(
        "the first rows of a block of one column are dropped",
        _SEGMENT,
        "one_segment<T>(walk, walk->previous, data, stride, i);",
        "",
    ),
    Break(
        "after single rows the first of them is the open segment's key",
        _SEGMENT,
        "T::key(items[i + rows - 1].value)};",
        "T::key(items[i].value)};",
    ),
    Break(
        "a short segment starts with the key of the one before",
        _SEGMENT,
        "before = id == previous ? best : T::kLowestKey;",
        "before = best;",
    ),
    Break(
        "a short segment forgets its rows before",
        _SEGMENT,
        "before = id == previous ? best : T::kLowestKey;",
        "before = T::kLowestKey;",
    ),
    Break(
        "a scan resumes no segment of the block before",
        _BLOCKS,
        "carry = Scan::lane(T::bits(at->best));",
        "carry = Scan::lane(T::bits(T::kLowestKey));",
    ),
    Break(
        "a scan's first row always opens a segment",
        _BLOCKS,
        "place[-1] = first == previous ? 0 : -1;",
        "place[-1] = -1;",
    ),
    Break(
        "a scan leaves the first segment's key as the open one",
        _BLOCKS,
        "T::key(Scan::bits(segments.best[segments.count - 1]))};",
        "T::key(Scan::bits(segments.best[0]))};",
    ),
    # ------------------------------------------------------------------ segments: tails and ends of runs
    Break(
        "the last element of each run of single rows is not copied",
        _SEGMENT,
        "end = begin + kSingles * width;",
        "end = begin + kSingles * width - 1;",
    ),
    Break(
        "a run takes the first row of the next segment",
        _IDS,
        "while (i < n && ids[i].value == id) ++i;",
        "while (i < n && ids[i].value == id) ++i;\ni += i < n;",
    ),
    Break(
        "galloping looks at the wrong end of a stretch",
        _IDS,
        "if (n - i >= stretch && ids[i + stretch - 1].value == id) i += stretch;",
        "if (n - i >= stretch && ids[i].value == id) i += stretch;",
    ),
    Break(
        "the last row of a segment is dropped",
        _SEGMENT,
        "at<Item<T>>(data, stride) + j, stride, rows - 1, n);",
        "at<Item<T>>(data, stride) + j, stride, rows > 1 ? rows - 2 : 0, n);",
    ),
    Break("few rows leave out the first when they merge", _SEGMENT, "r = merge ? 0 : 1; r < rows;", "r = 1; r < rows;"),
    Break(
        "the last column of a block of columns is not finished",
        _SEGMENT,
        "kernels.finish(out, keys, n);",
        "kernels.finish(out, keys, n > 1 ? n - 1 : n);",
    ),
    Break(
        "the last stores of a scan are moved by one",
        _BLOCKS,
        "store_some(out + count - kSome, segments.best + count - kSome);",
        "store_some(out + count - kSome, segments.best + count - kSome - 1);",
    ),
    Break(
        "the last segment of a block with gaps is not stored",
        _BLOCKS,
        "for (std::size_t k = 0; k < count; ++k) out[segments.place[k]] = rows[k];",
        "for (std::size_t k = 0; k + 1 < count; ++k) out[segments.place[k]] = rows[k];",
    ),
    # ------------------------------------------------------------------ segments: empty ones
    Break(
        "the fill goes into the first single row",
        _SEGMENT,
        "if (done > 0) fill<T>(walk, previous + 1, first);",
        "if (done > 0) fill<T>(walk, previous + 1, first + 1);",
    ),
    Break(
        "the fill before single rows leaves the last empty segment",
        _SEGMENT,
        "if (done > 0) fill<T>(walk, previous + 1, first);",
        "if (done > 0) fill<T>(walk, previous + 1, first - 1);",
    ),
    Break(
        "the fill before a run leaves the first empty segment",
        _SEGMENT,
        "fill<T>(walk, walk->previous + 1, id); walk->previous = id;",
        "fill<T>(walk, walk->previous + 2, id);\nwalk->previous = id;",
    ),
    Break(
        "a gap of one segment is not filled",
        _SEGMENT,
        "if (id > previous + 1) fill<T>(walk, previous + 1, id);",
        "if (id > previous + 2) fill<T>(walk, previous + 1, id);",
    ),
    Break(
        "gaps within a scan's block are not filled",
        _BLOCKS,
        "gaps ? block.last + 1 : block.first);",
        "block.first);",
    ),
    Break(
        "the first empty segment past the last row is not filled",
        "drivers/segment.cpp",
        "fill_rows(run, whole, call, last + 1, call.num_segments);",
        "fill_rows(run, whole, call, last + 2, call.num_segments);",
    ),
    # ------------------------------------------------------------------ segments: threads, pieces, offsets
    Break(
        "the first share's head is not merged",
        "drivers/segment.cpp",
        "for (std::size_t share = 1; share < shares; ++share)",
        "for (std::size_t share = 2; share < shares; ++share)",
    ),
    Break(
        "a share does not know the row before it",
        "drivers/segment.cpp",
        "walk.previous = row == 0 ? -1 : whole.clamped(walk.last_id);",
        "walk.previous = -1;",
    ),
    Break(
        "pieces of columns are read from the first column",
        _ROWS,
        "block.data = row_address(row) + column * kernels_.itemsize;",
        "block.data = row_address(row);",
    ),
    Break(
        "a long run of offsets takes the rows after it",
        "drivers/segment_rows.cpp",
        "s + 1 < bounded_ ? std::min(offset(s + 1), end) : end;",
        "end;",
    ),
    Break(
        "ids of offsets begin a row early",
        "drivers/segment_rows.cpp",
        "stop <= row ? ids : ids + (stop - row);",
        "stop <= row + 1 ? ids : ids + (stop - row - 1);",
    ),
    # ------------------------------------------------------------------ segments in any order
    Break(
        "a piece of one column is taken for contiguous",
        "kernels/unsorted.h",
        "if (to->width > 1 || to->stride != sizeof(Keys)) return accumulate_rows",
        "if (to->width > 1) return accumulate_rows",
    ),
    Break(
        "the first copy of the keys is not merged",
        "drivers/scatter.cpp",
        "for (std::size_t copy = 1; copy < spread.copies(); ++copy) kernels.merge_segments",
        "for (std::size_t copy = 2; copy < spread.copies(); ++copy) kernels.merge_segments",
    ),
    Break(
        "ranges of segments leave out the last of each",
        "drivers/segment_spread.cpp",
        "take({0, rows_.width(), begin, end, part(i), part(i + 1), 0});",
        "take({0, rows_.width(), begin, end, part(i), part(i + 1) - 1, 0});",
    ),
    Break(
        "the last row of a block of chosen rows is left out",
        "kernels/unsorted.h",
        "for (std::size_t k = 0; k < count; ++k) has_lowest |=",
        "for (std::size_t k = 0; k + 1 < count; ++k)\nhas_lowest |=",
    ),
    # ------------------------------------------------------------------ ReduceMax
    Break(
        "the last of the rows that are left is dropped",
        "kernels/reduce.h",
        "while (rows > 0) { // Fewer",
        "while (rows > 1) {\n// Fewer",
    ),
    Break(
        "transposed rows past the last whole tile are dropped",
        "kernels/reduce.h",
        "for (std::size_t r = 0; r < rows; r += kTile)",
        "for (std::size_t r = 0; r + kTile <= rows; r += kTile)",
    ),
    Break(
        "parts of a reduced axis leave out an element between them",
        "drivers/reduce.cpp",
        "whole.part(i * n / parts, (i + 1) * n / parts, to)",
        "whole.part(i * n / parts, (i + 1) * n / parts - (i + 1 < parts && n > 3 * parts), to)",
    ),
    Break(
        "the last strip of columns is dropped",
        "drivers/reduce.cpp",
        "for (std::size_t column = 0; column < columns; column += strip)",
        "for (std::size_t column = 0; column + strip <= columns; column += strip)",
    ),
    Break(
        "rows that fill no group are dropped",
        "drivers/reduce.cpp",
        "across, length % groups, n);",
        "across, 0 * (length % groups), n);",
    ),
    Break(
        "the last part's maxima are not merged",
        "drivers/reduce.cpp",
        "stacked.size[0] = parts;",
        "stacked.size[0] = parts > 1 ? parts - 1 : parts;",
    ),
    # ------------------------------------------------------------------ indices
    Break(
        "later rows overwrite the index of a column",
        "kernels/argmax.h",
        "if (first[j] == kNone || indices[begin + j] >= 0) continue;",
        "if (first[j] == kNone) continue;",
    ),
    Break(
        "a later part of a single output wins",
        "drivers/argmax.cpp",
        "for (std::size_t i = 0; i < parts && place < 0; ++i) place =",
        "for (std::size_t i = 0; i < parts; ++i) place =",
    ),
    Break(
        "the last row of a segment is the index",
        "kernels/argmax.h",
        "if (static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(*index)) *index = row;",
        "*index = row;",
    ),
    # ------------------------------------------------------------------ Max
    Break(
        "gathered inputs share one buffer",
        "drivers/fold.cpp",
        "in[i] = fetch(k, block, buffers[i]);",
        "in[i] = fetch(k, block, buffers[0]);",
    ),
    Break(
        "the last columns of a tile are dropped",
        "drivers/fold_tiles.cpp",
        "for (std::size_t column = 0; column < columns_; column += kTileColumns)",
        "for (std::size_t column = 0; column + kTileColumns <= columns_; column += kTileColumns)",
    ),
    Break(
        "an output that overlaps an input is written through",
        "bindings/memory.cpp",
        "if (!in_place || !is_same_array(out, inputs[i])) return false;",
        "if (!in_place) return false;",
    ),
    Break(
        "the last chunk of a gather is dropped",
        "kernels/copy.h",
        "for (std::size_t i = 0; i < n; i += chunk)",
        "for (std::size_t i = 0; i + chunk <= n; i += chunk)",
    ),
    # ------------------------------------------------------------------ vectors
    Break(
        "of two zeros the second wins",
        "kernels/maxima.h",
        "bit_and(float_max(x, y), float_max(y, x))",
        "float_max(x, y)",
    ),
    Break(
        "the sign of a zero is the highest's alone",
        "kernels/maxima.h",
        "bit_and(high, bit_or(all, magnitude));",
        "high;",
    ),
    Break(
        "a NaN beside a number is no NaN",
        "kernels/maxima.h",
        "nan = either(nan, other.nan);",
        "",
    ),
    Break(
        "among negative numbers the highest integer is the highest number",
        "kernels/maxima.h",
        "const V number = select_negative(high, low, high);",
        "const V number = high;",
    ),
    Break(
        "the elements past the last whole vector are left out",
        "kernels/elementwise.h",
        "store(out + n - V::kLanes, whole(n - V::kLanes));",
        "(void)n;",
        "x86-64-v3",
    ),
    Break(
        "a reduction's last vector is left out",
        "kernels/reduce.h",
        "a.accumulate(V::load(items + i)); if (i < n) a.accumulate(V::load(items + n - kLanes));",
        "a.accumulate(V::load(items + i));",
        "x86-64-v3",
    ),
    Break(
        "a row's last vector is left out",
        "kernels/reduce.h",
        "if (n > i) a.accumulate(V::load(items + n - kLanes));",
        "",
        "x86-64-v3",
    ),
    Break(
        "the last row of narrow columns is left out",
        "kernels/reduce.h",
        "if (r < rows) (all[v].accumulate(load(row_at(r), v)), ...);",
        "static_cast<void>(r);",
    ),
    Break(
        # The miniature has no narrow columns of two or more vectors; tests/operators/test_sizes.py tests them.
        "narrow columns forget the rows of the block before",
        "kernels/reduce.h",
        "store(acc + place(v), max(Keys::load(acc + place(v)), found));",
        "store(acc + place(v), found);",
    ),
    Break(
        "five to eight rows are taken as four",
        "kernels/reduce.h",
        "kColumnsLoop<T, 8, false>(acc, row, next, n);",
        "kColumnsLoop<T, 4, false>(acc, row, next, n);",
        "x86-64-v4",
    ),
    Break(
        "columns past the last whole vector are left out",
        "kernels/reduce.h",
        "else whole(n - V::kLanes);",
        "else (void)n;",
        "x86-64-v3",
    ),
    Break(
        "a piece is its first word alone",
        "core/vec.h",
        "auto* last = first + bytes - least; if constexpr (width > 16) { using Half = Vec<Int, width / 2>; "
        "if constexpr (2 * least == width) { return",
        "auto* last = first;\nif constexpr (width > 16) {\nusing Half = Vec<Int, width / 2>;\n"
        "if constexpr (2 * least == width) {\nreturn",
    ),
    Break(
        "AVX-512: a mask leaves out the last item",
        HOOKS,
        "((std::uint64_t{1} << lanes) - 1)",
        "((std::uint64_t{1} << lanes) / 2)",
        "x86-64-v4",
    ),
    Break(
        "a vector's scan resumes nothing",
        "kernels/segment_scan.h",
        "keys = max_where(same_lanes<V>(equal(here, Places::splat(place[-1]))), keys, carry);",
        "",
        "x86-64-v3",
    ),
    Break(
        "AVX-512: a vector's scan resumes nothing",
        "kernels/segment_avx512.h",
        "keys = Lanes::highest(goes_on, keys, carry);",
        "",
        "x86-64-v4",
    ),
)


class Miniature:
    """A copy of the repository with its own miniature build, which is rebuilt if a file changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for part in ("native", "src", "tests", "CMakeLists.txt"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, root / part)

    def restore(self, each: Break, text: str) -> None:
        """Restore the file."""
        (self.root / "native" / each.file).write_text(text, encoding="utf-8")

    def build(self, isa: str) -> None:
        """Compile the changed files. Raise CalledProcessError with the compiler's output on failure."""
        place = self.root / f"build-{isa}"
        sets = isa.replace("x86-64-", "x86_64_")
        emulates = "OFF" if HAS_AVX512 else "ON"
        options = ("MAXOPS_MINIATURE=ON", f"MAXOPS_EMULATE_AVX512={emulates}", f"MAXOPS_ISAS={sets}")
        flags = [f"-D{option}" for option in (*options, f"Python_EXECUTABLE={sys.executable}")]
        for command in (
            ["cmake", "-S", str(self.root), "-B", str(place), *flags],
            ["cmake", "--build", str(place), "-j2"],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
        for library in place.glob("_*.so"):
            shutil.copy(library, self.root / "src" / "maxops" / library.name)

    def search(self, isa: str, seconds: float) -> tuple[int, str]:
        """Run the enumerations. Return their exit code and the first line that reports a wrong result."""
        paths = os.pathsep.join(str(self.root / part) for part in ("src", "tests"))
        command = [sys.executable, "-m", "exhaustive", "--isa", isa]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                timeout=seconds,
                env={**os.environ, "PYTHONPATH": paths},
            )
        except subprocess.TimeoutExpired:
            return 0, f"nothing in {seconds:.0f} s"
        lines = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
        return done.returncode, lines[0] if lines else (done.stderr.splitlines() or ["nothing"])[-1]


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="run only breaks whose name contains this text")
    options.add_argument("--seconds", type=float, default=SECONDS, help="time limit of the search for each break")
    chosen = options.parse_args()
    found: dict[str, bool] = {}
    table = Table("break", "file", "seconds", "found by")
    with tempfile.TemporaryDirectory(prefix="maxops-breaks-") as folder:
        miniature = Miniature(Path(folder))
        for each in BREAKS:
            if chosen.only not in each.name:
                continue
            if each.file == HOOKS and each.isa == "x86-64-v4" and not HAS_AVX512:
                print(f"passed over, without AVX-512: {each.name}", flush=True)
                continue
            before = each.apply(miniature.root)
            try:
                miniature.build(each.isa)
                began = time.monotonic()
                code, words = miniature.search(each.isa, chosen.seconds)
            except subprocess.CalledProcessError as error:
                sys.exit(f"{each.name}: does not compile\n{error.stdout}{error.stderr}")
            finally:
                miniature.restore(each, before)
            found[each.name] = code != 0
            table.add_row(
                each.name, each.file, f"{time.monotonic() - began:.1f}", words[:60] if code else f"- ({words})"
            )
            print(f"{'found ' if code else 'MISSED'} {each.name}: {words[:100]}", flush=True)
    Console(width=140).print(table)
    missed = [name for name, was_found in found.items() if not was_found]
    print(f"{len(found) - len(missed)} of {len(found)} breaks found" + (f"; missed: {missed}" if missed else ""))
    return 1 if missed or not found else 0


if __name__ == "__main__":
    sys.exit(main())

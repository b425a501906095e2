"""Runs programs that use PyPI packages, unchanged and with their imports replaced by `maxops.compat`.

    python conformance/moved.py

The script installs each package twice, replaces one import in one copy, and runs the program alternately on both
copies. The results must be equal bit for bit. The script writes the table in docs/reference/compat.md, and exits with 1
if a result differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "compat.md"
BEGIN, END = "<!-- the table of conformance/moved.py -->\n", "<!-- the end of it -->\n"
PAIRS = 5


class Program(NamedTuple):
    """A package, the changed file and import, a description, and code whose `program` returns a list of arrays."""

    package: str
    file: str
    before: str
    after: str
    runs: str
    code: str


PROGRAMS = (
    Program(
        "motmetrics==1.4.0",
        "motmetrics/distances.py",
        "import numpy as np",
        "from maxops.compat import numpy as np",
        "the IoU of 1,000 by 1,000 boxes",
        """
from motmetrics.distances import boxiou
boxes = np.random.default_rng(1).random((2, 1000, 4)) * 50
def program():
    return [boxiou(boxes[0, :, None], boxes[1])]
""",
    ),
    Program(
        "xarray==2026.9.0",
        "xarray/core/groupby.py",
        "from flox.xarray import xarray_reduce",
        "from maxops.compat.flox import xarray_reduce",
        "the maxima by calendar month of 20 years of daily data at 500 places, with some NaN",
        """
import xarray as xr
rng = np.random.default_rng(1)
values = rng.standard_normal((7305, 500)).astype(np.float32)
values[rng.random(values.shape) < 0.1] = np.nan
days = xr.DataArray(values, dims=("time", "place"), coords={"time": xr.date_range("2000-01-01", periods=7305)})
def program():
    return [days.groupby("time.month").max().values]
""",
    ),
    Program(
        "torch_geometric==2.8.1",
        "torch_geometric/typing.py",
        "import torch_scatter",
        "from maxops.compat import torch_scatter",
        "ten training steps on 64 graphs with max pooling; the original is PyG without torch_scatter",
        """
import torch
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, MaxAggregation
seed_everything(1)
torch.set_num_threads(1)
graphs = FakeDataset(num_graphs=64, avg_num_nodes=100, num_channels=32)
batch = next(iter(DataLoader(graphs, batch_size=64)))
def program():
    torch.manual_seed(2)
    layer, pool, out = GCNConv(32, 64), MaxAggregation(), torch.nn.Linear(64, graphs.num_classes)
    step = torch.optim.SGD([*layer.parameters(), *out.parameters()], lr=0.1)
    losses = []
    for _ in range(10):
        pooled = pool(layer(batch.x, batch.edge_index), ptr=batch.ptr)
        loss = torch.nn.functional.cross_entropy(out(pooled), batch.y)
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.detach().numpy())
    return losses
""",
    ),
)
RUN = """
import hashlib, json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
exec(sys.argv[1])
program()
for _ in sys.stdin:  # a line for each run
    start = time.perf_counter()
    result = program()
    seconds = time.perf_counter() - start
    digest = hashlib.sha256()
    for each in result:
        digest.update(f"{each.dtype.str}{each.shape}".encode() + np.ascontiguousarray(each).tobytes())
    print(json.dumps([seconds, digest.hexdigest()]), flush=True)
"""


def install(program: Program, folder: Path, *, moved: bool) -> None:
    """Install a package into a folder. `moved` replaces its import."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), program.package]
    subprocess.run(pip, check=True)
    file = folder / program.file
    text = file.read_text(encoding="utf-8")
    if text.count(program.before) != 1:
        raise SystemExit(f"{program.package}: {program.file} must contain {program.before!r} exactly once")
    if moved:
        file.write_text(text.replace(program.before, program.after), encoding="utf-8")


def row(program: Program) -> tuple[str, bool]:
    """Return a program's row in the table, and whether its results are equal."""
    times: list[list[float]] = [[], []]
    digests: list[set[str]] = [set(), set()]
    with tempfile.TemporaryDirectory() as place:
        running = []
        for number in range(2):
            folder = Path(place, str(number))
            install(program, folder, moved=bool(number))
            command = [sys.executable, "-c", RUN, program.code]
            environment = os.environ | {"PYTHONPATH": str(folder)}
            running.append(
                subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        for _ in range(PAIRS):
            for number, process in enumerate(running):
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    for each in running:
                        each.kill()
                    raise SystemExit(
                        f"{program.package}: the {('original', 'moved program')[number]} failed; see the output above"
                    )
                seconds, digest = json.loads(line)
                times[number].append(seconds)
                digests[number].add(digest)
        for process in running:
            process.communicate()
    are_equal = len(digests[0] | digests[1]) == 1
    ratio = sorted(theirs / ours for theirs, ours in zip(*times, strict=True))[PAIRS // 2]
    said = f"`{program.before}` to `{program.after}`"
    return f"| {program.package} | {said} | {program.runs} | {'yes' if are_equal else 'NO'} | {ratio:.2f} |", are_equal


def main() -> None:
    """Run all programs."""
    rows = [row(program) for program in PROGRAMS]
    lines = ["| program | import | runs | bit-identical | speedup |", "| --- | --- | --- | --- | --- |"]
    text = "\n".join([*lines, *(line for line, _ in rows)])
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    sys.exit(not all(are_equal for _, are_equal in rows))


if __name__ == "__main__":
    main()

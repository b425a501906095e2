"""Exports a PyTorch module with three kinds of maximum to ONNX, with PyTorch's exporter, and writes its test data.

python -m pip install torch onnxscript && python examples/exported/export.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper

POINTS, CELLS = 200, 16
INPUTS, OUTPUTS = ("points", "cells"), ("grid", "heights")


class HighestInCells(torch.nn.Module):
    """Computes a height map of a point cloud: the highest coordinate of the points in each cell, above a floor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("floor", torch.tensor([-0.5, 0.0, 0.25]))
        self.register_buffer("empty", torch.full((CELLS,), -1.0))

    def forward(self, points: torch.Tensor, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the grid (16,) and each point's height (n,) from points (n, 3) and their cells (n,)."""
        heights = torch.amax(torch.maximum(points, self.floor), dim=-1)
        return torch.scatter_reduce(self.empty, 0, cells, heights, "amax"), heights


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    """Return points and the indices of their cells. The points are always the same, and the last cells are empty."""
    random = torch.Generator().manual_seed(7)
    return torch.randn(POINTS, 3, generator=random), torch.randint(0, CELLS - 3, (POINTS,), generator=random)


def export(folder: Path) -> None:
    """Write the model, its inputs, and the outputs that PyTorch computes, in ONNX's test layout."""
    module, given = HighestInCells().eval(), arguments()
    torch.onnx.export(
        module,
        given,
        folder / "model.onnx",
        dynamo=True,
        external_data=False,
        verbose=False,
        input_names=INPUTS,
        output_names=OUTPUTS,
        dynamic_shapes={"points": {0: "n"}, "cells": {0: "n"}},
    )
    # remove the metadata of the exporter, which contains paths of this machine
    model = onnx.load(folder / "model.onnx")
    for node in model.graph.node:
        node.ClearField("metadata_props")
    model.graph.ClearField("metadata_props")
    model.ClearField("metadata_props")
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        value.ClearField("metadata_props")
    onnx.save(model, folder / "model.onnx")
    data = folder / "test_data_set_0"
    data.mkdir(exist_ok=True)
    for kind, names, tensors in (("input", INPUTS, given), ("output", OUTPUTS, module(*given))):
        for number, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
            message = numpy_helper.from_array(tensor.numpy(), name)
            (data / f"{kind}_{number}.pb").write_bytes(message.SerializeToString())


if __name__ == "__main__":
    export(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

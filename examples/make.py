"""Creates the example models, their inputs, and their expected outputs, which `maxops.reference` computes.

`python examples/make.py` writes the same bytes each time. `--into FOLDER` writes the files to another folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from maxops import reference

Float32 = npt.NDArray[np.float32]

CLASSES = 80
STRIDES = {"stride8": 20, "stride16": 10, "stride32": 5}  # cells along each side of a 160x160 image
SCENES = ("april", "may", "june")
PIXELS = 48


def detector(folder: Path) -> None:
    """Write the last stage of an object detector, which computes maxima of the class scores in three grids of cells."""
    rng = np.random.default_rng(20240501)
    scores = {
        name: (rng.normal(-6, 1.5, (1, CLASSES, side, side))).astype(np.float32) for name, side in STRIDES.items()
    }
    # a dog (16) nearby, a bicycle (1) farther away, and a distant car (2), in the grids for objects of their sizes
    scores["stride32"][0, 16, 2:4, 1:3] = 4.5
    scores["stride16"][0, 1, 4:7, 3:8] = 3.25
    scores["stride8"][0, 2, 3, 14:17] = 1.125

    nodes, expected, best = [], {}, []
    for name, data in scores.items():
        nodes.append(
            helper.make_node(
                "ReduceMax", [name, "class_axis"], [f"confidence_{name}"], f"confidence_{name}", keepdims=0
            )
        )
        nodes.append(helper.make_node("ReduceMax", [name, "cell_axes"], [f"best_{name}"], f"best_{name}", keepdims=0))
        expected[f"confidence_{name}"] = reference.reduce_max(data, (1,), keepdims=False)
        best.append(reference.reduce_max(data, (2, 3), keepdims=False))
    nodes.append(helper.make_node("Max", [f"best_{name}" for name in STRIDES], ["class_scores"], "across_scales"))
    expected["class_scores"] = reference.maximum(*best)

    sides = STRIDES.items()
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", CLASSES, s, s]) for n, s in sides]
    outputs = [helper.make_tensor_value_info(f"confidence_{n}", TensorProto.FLOAT, ["batch", s, s]) for n, s in sides]
    outputs.append(helper.make_tensor_value_info("class_scores", TensorProto.FLOAT, ["batch", CLASSES]))
    axes = [
        numpy_helper.from_array(np.array([1]), "class_axis"),
        numpy_helper.from_array(np.array([-2, -1]), "cell_axes"),
    ]
    graph = helper.make_graph(nodes, "detector_post_processing", inputs, outputs, axes)
    _save_model(graph, 18, folder)
    data_set = folder / "test_data_set_0"
    data_set.mkdir(exist_ok=True)
    for kind, tensors in (("input", scores), ("output", expected)):
        for number, (name, array) in enumerate(tensors.items()):
            (data_set / f"{kind}_{number}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def composite(folder: Path) -> None:
    """Write a model of a maximum-value composite: the greenest value of each pixel in three satellite scenes."""
    rng = np.random.default_rng(20240601)
    y, x = np.mgrid[0:PIXELS, 0:PIXELS].astype(np.float32) / np.float32(PIXELS)
    fields = np.where((x * 4).astype(int) % 2 == (y * 3).astype(int) % 2, 0.55, 0.2)
    scenes: dict[str, Float32] = {}
    for number, name in enumerate(SCENES):
        scene = fields + 0.1 * number + rng.normal(0, 0.03, (PIXELS, PIXELS))
        scenes[name] = scene.astype(np.float32)
    # outside the swath, a scene has no observations, and the other scenes determine the maximum
    scenes["april"][:, :7] = -np.inf
    scenes["june"][41:, :] = -np.inf
    scenes["may"][44:, :4] = -np.inf
    scenes["april"][44:, :] = -np.inf  # no scene covers the corner
    # a dead detector line and a saturated spot are observations with unknown values
    scenes["may"][18, :] = np.nan
    scenes["june"][30:33, 25:29] = np.nan

    whole = reference.maximum(*scenes.values())
    expected = {"composite": whole, "greenest": reference.reduce_max(whole, (0, 1), keepdims=False)}

    size = ["height", "width"]
    nodes = [
        helper.make_node("Max", list(SCENES), ["composite"], "maximum_value_composite"),
        helper.make_node("ReduceMax", ["composite"], ["greenest"], "greenest_pixel", keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name in SCENES]
    outputs = [
        helper.make_tensor_value_info("composite", TensorProto.FLOAT, size),
        helper.make_tensor_value_info("greenest", TensorProto.FLOAT, []),
    ]
    _save_model(helper.make_graph(nodes, "maximum_value_composite", inputs, outputs), 13, folder)
    for name, array in scenes.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "expected").mkdir(exist_ok=True)
    for name, array in expected.items():
        np.save(folder / "expected" / f"{name}.npy", array)


def _save_model(graph: onnx.GraphProto, opset: int, folder: Path) -> None:
    # set fixed versions, so that a newer onnx package writes the same bytes
    model = helper.make_model(
        graph, producer_name="maxops examples", opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(__file__).parent)
    into = parser.parse_args().into
    detector(into / "detector")
    composite(into / "composite")

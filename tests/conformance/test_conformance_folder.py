"""Cases in folders: models in standard formats, with the arrays of the case bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from helpers import bits
from helpers.all_cases import ALL
from maxops import dtypes, openvino
from maxops import onnx as maxops_onnx
from maxops.atomic_files import atomic_write
from maxops.cli.app import app
from maxops.conformance.case import Case
from maxops.conformance.folder import REFUSAL, folder_name, spread, write
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.onnx import suite

BY_ID = {case.id: case for case in ALL}


def save(case: Case, directory: Path, numbers: list[int] | None = None) -> Path:
    with atomic_write(make_folders=True) as temporary:
        return write(case, directory, temporary, numbers)


def saved_onnx() -> list[Case]:
    """Return one small case of each clause and model construct, with every form of inputs and attributes."""
    found = {}
    for case in ALL:
        is_small = not any(word in case.sentence for word in ("sample", "arrays", "000 elements"))
        if case.quick and case.row.standard == "ONNX" and not case.refusal and is_small:
            found[case.id if "within" in case.sentence else case.clause.id] = case
    return list(found.values())


@pytest.mark.parametrize("case", saved_onnx(), ids=lambda case: str(case.id))
def test_a_saved_case_is_a_test_folder_that_agrees(case: Case, tmp_path: Path) -> None:
    folder = save(case, tmp_path)
    onnx.checker.check_model(onnx.load(folder / suite.MODEL), full_check=True)
    model = maxops_onnx.load(folder / suite.MODEL)
    trial = case.make()
    assert trial.expected is not None
    for number, place in enumerate(suite.data_set_folders(folder)):
        data = suite.read_data_set(place, model)
        for array, given in zip(data.inputs.values(), trial.feeds[number], strict=True):
            bits.assert_same_bits(array, given)
        (expected,) = data.expected.values()
        bits.assert_same_bits(expected, trial.expected[number])
        (actual,) = model.run(data.inputs).values()
        bits.assert_same_bits(actual, expected)
    assert number == len(trial.feeds) - 1


def test_maxops_run_agrees_with_a_saved_case(tmp_path: Path) -> None:
    folder = save(BY_ID["ONNX.Max-13.shape/bfloat16/matrices-a-size-of-1-on-either-side"], tmp_path)
    assert CliRunner().invoke(app, ["run", str(folder)]).exit_code == 0
    expected = folder / "test_data_set_3" / "output_0.pb"
    tensor = onnx.load_tensor(expected)
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[0, 0] = 127
    onnx.save_tensor(onnx.numpy_helper.from_array(array, "y"), expected)
    assert CliRunner().invoke(app, ["run", str(folder)]).exit_code == 1


def test_a_saved_refusal_has_no_outputs_and_says_why(tmp_path: Path) -> None:
    folder = save(BY_ID["ONNX.ReduceMax-1.axes.range/float32/axes-1-of-rank-1"], tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", REFUSAL, "test_data_set_0"]
    assert [path.name for path in (folder / "test_data_set_0").iterdir()] == ["input_0.pb"]
    assert "[ONNX.ReduceMax-1.axes.range]" in (folder / REFUSAL).read_text()


@pytest.mark.parametrize(
    "name",
    [
        "T/bfloat16/a-short-vector-in-two-segments",
        "lowest/float16/empty-in-the-middle-LOWEST",
        "num_segments.larger/int64/constant-ids-and-a-constant-6-for-5-segments",
    ],
)
def test_a_saved_case_of_openvino_is_an_ir_that_agrees(name: str, tmp_path: Path) -> None:
    case = BY_ID[f"OpenVINO.SegmentMax-16.{name}"]
    folder = save(case, tmp_path)
    model = openvino.load(folder / "model.xml")
    trial = case.make()
    assert trial.expected is not None
    place = folder / "test_data_set_0"
    given = {each.name: np.load(place / f"input_{number}.npy") for number, each in enumerate(trial.call.fed)}
    for each in trial.call.fed:
        given[each.name] = given[each.name].view(each.dtype.numpy)
    expected = np.load(place / "output_0.npy").view(case.dtype.numpy)
    bits.assert_same_bits(expected, trial.expected[0])
    (actual,) = model.run(given).values()
    bits.assert_same_bits(actual, expected)


def test_some_feeds_of_many_are_saved(tmp_path: Path) -> None:
    case = BY_ID["ONNX.Max-13.value/int8/each-pair-of-boundary-values-in-each-lane-of-lengths-97-to-130"]
    folder = save(case, tmp_path, [1000, 3])
    model = maxops_onnx.load(folder / suite.MODEL)
    assert [place.name for place in suite.data_set_folders(folder)] == ["test_data_set_0", "test_data_set_1"]
    data = suite.read_data_set(folder / "test_data_set_1", model)
    bits.assert_same_bits(data.inputs["a"], case.make().feeds[1000][0])


@pytest.mark.parametrize(("count", "most"), [(1, 50), (50, 50), (51, 50), (17_000, 50), (9, 3)])
def test_a_spread_has_the_first_and_the_last(count: int, most: int) -> None:
    chosen = spread(count, most)
    assert len(set(chosen)) == len(chosen) == min(count, most)
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (0, count - 1)


def test_the_command_saves_a_few_data_sets_and_says_so(tmp_path: Path) -> None:
    name = "ONNX.Max-13.value/int8/each-pair-of-boundary-values-in-each-lane-of-lengths-97-to-130"
    folder = tmp_path / "saved"
    words = ["conform", "--only", f"{name},onnx.max-13.t/int8/two", "--save", str(folder), "--parents"]
    more = "1 case has more than 50 data sets; only 50 evenly spaced ones per case were written"
    said = f"2 cases were written to {folder}\n{more}\n"
    assert CliRunner().invoke(app, words).stdout.endswith(said)
    assert len(list((folder / folder_name(BY_ID[name])).glob("test_data_set_*"))) == 50


def test_what_no_model_holds_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotApplicableError):
        save(BY_ID["SONNX.Max.value/real/each-pair-of-some-rationals"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_every_case_has_a_model(tmp_path: Path) -> None:
    """Test that the small cases of each row, including invalid calls, are written without an error."""
    for case in ALL:
        if case.dtype is dtypes.FLOAT32 and case.refusal and case.id == case.trial_id:
            save(case, tmp_path)
    assert len(list(tmp_path.iterdir())) > 200

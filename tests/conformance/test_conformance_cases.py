"""The kit's cases: they are complete, their names are stable, and they expect the results of the reference."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from helpers import bits
from helpers.all_cases import ALL, UNCOVERED
from maxops import dtypes, spec
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Input
from maxops.conformance.cases import NoSuchCaseError, cases, large, reduce_max, segment_max, select
from maxops.conformance.cases.family import is_current, judges, rows
from maxops.conformance.cases.pairs import Which, pairs, repeated
from maxops.conformance.cases.reduce_max import copies_with_one
from maxops.conformance.expected import expected_result, without_nan
from maxops.conformance.folder import folder_name
from maxops.dtypes import DType
from maxops.errors import MaxopsError
from maxops.plan import Array
from maxops.spec import Spec

BY_ID = {case.id: case for case in ALL}
QUICK = [case for case in ALL if case.quick]


# ------------------------------------------------------------------------------------------------------- names


def test_ids_are_unique() -> None:
    assert len(BY_ID) == len(ALL)
    assert len({folder_name(case).lower() for case in ALL}) == len(ALL)


def test_ids_stay() -> None:
    """Test ids of each family, because saved runs and `--only` name cases by their ids."""
    assert {
        "ONNX.Max-13.value/int64/each-pair-of-boundary-values-in-each-lane-of-lengths-1-to-8",
        "SONNX.Max.NaN/float16/each-pair-with-a-NaN-in-each-lane-of-lengths-97-to-130",
        "ONNX.Max-6.shape/float32/shapes-1-and-5",
        "ONNX.ReduceMax-20.empty/bool/data-2x0x3-constant-axes-1-keepdims-0",
        "ONNX.ReduceMax-1.axes.range/float32/axes-1-of-rank-1",
        "OpenVINO.SegmentMax-16.ids/float32/ids-that-decrease-int32",
        "SONNX.Max.zero-size/float32/shapes-0-and-1",
        "SONNX.Max.value/real/each-pair-of-some-rationals",
    } <= {*BY_ID}


def test_the_order_stays() -> None:
    code = "from maxops.conformance.cases import cases\nprint(*(case.id for case in cases()), sep='\\n')"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert listed[:-1] == [case.id for case in ALL]


def test_cases_of_one_trial_stand_together() -> None:
    trials = [(name, list(group)) for name, group in groupby(ALL, key=lambda case: case.trial_id)]
    assert len({name for name, _ in trials}) == len(trials)
    for name, group in trials:
        assert group[0].id == name
        assert len({case.quick for case in group}) == 1
        assert len({case.refusal for case in group}) == 1


# ---------------------------------------------------------------------------------------------------- coverage


def missing(found: Iterable[Case]) -> Iterator[str]:
    """Yield clauses without a case or a reason for having none, and types without cases of values."""
    found = list(found)
    asked = {case.clause.id for case in found}
    typed = {(case.clause.id, case.dtype) for case in found}
    for row in spec.ALL:
        for short, _ in row.rules:
            if (row.clause(short) in asked) == (short in UNCOVERED):
                yield row.clause(short)
        for dtype in row.dtypes:
            names = ["T", "value", "nan"] if dtype.kind == "float" else ["T", "value"]
            yield from (f"{row.clause(short)}/{dtype}" for short in names if (row.clause(short), dtype) not in typed)


def test_every_clause_and_type_has_cases() -> None:
    assert list(missing(ALL)) == []


def test_a_clause_without_cases_is_seen() -> None:
    clause = spec.MAX_1.clause("consumed_inputs")
    assert list(missing(case for case in ALL if case.clause.id != clause)) == [clause]
    few = [case for case in ALL if case.dtype is not dtypes.BOOL or case.clause.id != spec.REDUCE_MAX_20.clause("T")]
    assert list(missing(few)) == ["ONNX.ReduceMax-20.T/bool"]


def test_the_clauses_without_cases_are_in_the_table() -> None:
    assert set(UNCOVERED) <= {short for row in spec.ALL for short, _ in row.rules}


@pytest.mark.parametrize("refusal", [False, True], ids=["answers", "refusals"])
def test_a_short_run_has_each_clause_of_the_newest_versions(refusal: bool) -> None:
    def clauses(found: Iterable[Case]) -> set[str]:
        return {case.clause.id for case in found if is_current(case.row) and case.refusal == refusal}

    assert clauses(QUICK) == clauses(ALL)


def test_a_short_run_has_the_values_of_each_type_of_the_newest_versions() -> None:
    asked = {(case.clause.id, case.dtype) for case in QUICK}
    for row in filter(is_current, spec.ALL):
        about = {"T": row.dtypes, "value": row.dtypes}
        about["NaN" if "NaN" in dict(row.rules) else "nan"] = tuple(each for each in row.dtypes if each.kind == "float")
        about |= {short: row.dtypes for short in ("empty", "lowest") if short in dict(row.rules)}
        for short, types in about.items():
            assert [dtype for dtype in types if (row.clause(short), dtype) not in asked] == [], row.clause(short)


@pytest.mark.parametrize("operator", ["Max", "ReduceMax", "SegmentMax"])
@pytest.mark.parametrize("dtype", [dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64, dtypes.BFLOAT16], ids=str)
def test_a_short_run_has_both_zeros(dtype: DType, operator: str) -> None:
    found = [case for case in QUICK if case.row.operator == operator and case.dtype is dtype]
    assert any(case.sentence.find("zeros of both signs") >= 0 for case in found)


@pytest.mark.parametrize("dtype", [dtypes.FLOAT32, dtypes.INT64], ids=str)
def test_a_short_run_has_each_layout_of_some_types(dtype: DType) -> None:
    sentences = " ".join(case.sentence for case in QUICK if case.dtype is dtype and case.clause.id.endswith(".value"))
    for layout in (*reduce_max.LAYOUTS, *segment_max.LAYOUTS):
        assert f"{layout} with each pair" in sentences


@pytest.mark.parametrize("row", [row for row in spec.ALL if not is_current(row)], ids=lambda row: str(row.name))
def test_a_short_run_has_of_an_older_version_what_is_its_own(row: Spec) -> None:
    found = [case for case in QUICK if case.row is row]
    answers = {case.clause.id: case.dtype for case in found if not case.refusal}
    assert answers.pop(row.clause("T")) is answers.pop(row.clause("value")) is dtypes.FLOAT32
    assert set(answers) <= {row.clause(name) for name in row.attributes if name == "consumed_inputs"}
    refused = Counter(case.clause.id for case in found if case.refusal)
    assert refused.pop(row.clause("T")) == 1
    own = {"shape"} if row.broadcast == "none" else set() if row.negative_axes else {"axes.range"}
    assert set(refused) == {row.clause(short) for short in own}


def test_a_short_run_is_short_and_has_the_other_reading_where_a_feed_has_a_nan() -> None:
    trials = {case.trial_id: case for case in QUICK}
    assert len(trials) < 800
    feeds = 0
    for case in trials.values():
        if "000000" in case.sentence:  # the same as with fewer elements
            continue
        trial = case.make()
        feeds += len(trial.feeds)
        has_nan = any(pool.is_nan(array).any() for feed in trial.feeds for array in feed)
        assert len(trial.without_nan) == (len(trial.feeds) if has_nan and not case.refusal else 0), case.id
    assert feeds < 6_000


def test_a_full_run_takes_minutes() -> None:
    trials = {case.trial_id: case for case in ALL}
    assert len(trials) < 5_000
    of_type = [case for case in trials.values() if case.dtype is dtypes.INT8]  # a tenth of all cases, as for any type
    assert sum(len(case.make().feeds) for case in of_type) < 100_000


def test_a_new_version_and_a_new_type_have_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(spec.MAX_13, version=99, dtypes=(*spec.MAX_13.dtypes, dtypes.BOOL))
    monkeypatch.setattr(spec, "ALL", (*spec.ALL, newer))
    made = {case.id: case for case in cases()}
    assert "ONNX.Max-99.value/bool/each-pair-of-boundary-values-in-each-lane-of-lengths-1-to-8" in made
    lanes = "value/int8/each-pair-of-boundary-values-in-each-lane-of-lengths-1-to-8"
    assert made[f"SONNX.Max.{lanes}"].trial_id == f"ONNX.Max-99.{lanes}"
    quick = {case.dtype for case in made.values() if case.quick and case.clause.id == "ONNX.Max-99.value"}
    assert quick == {*newer.dtypes}
    assert {case.dtype for case in made.values() if case.quick and case.row is spec.MAX_13} == {
        dtypes.FLOAT32,
        dtypes.BOOL,
    }


# ------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("dtype", bits.STORED, ids=str)
def test_the_pool_is_a_part_of_the_tests_own(dtype: DType) -> None:
    assert {*pool.ordinary_words(dtype)} <= {*bits.pool_words(dtype)}
    assert not pool.is_nan(pool.ordinary(dtype)).any()
    assert len(pool.ordinary_words(dtype)) <= 16
    if dtype.kind == "float":
        assert pool.is_nan(pool.nans(dtype)).all()
        assert len({*pool.nan_words(dtype)}) == 3


def test_the_pool_has_neighbours_that_narrower_types_confuse() -> None:
    values = set(pool.ordinary(dtypes.INT64).tolist())
    assert {2**24, 2**24 + 1, 2**31, 2**31 + 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**32, 2**32 + 1} <= values


def test_distinct_values_are() -> None:
    for dtype in dtypes.ALL:
        data = pool.distinct(dtype, (2, 5, 25))
        assert data.shape == (2, 5, 25)
        assert len({*data.reshape(-1).tolist()}) == (2 if dtype is dtypes.BOOL else 250)


def sampled() -> list[Case]:
    """Return a case of the newest rows for each description, with a float and an unsigned type. Omit large calls."""
    found = {}
    is_large = {case.id for case in large.cases()}
    for case in ALL:
        if (
            case.id not in is_large
            and not case.refusal
            and case.row.standard in ("ONNX", "OpenVINO")
            and is_current(case.row)
        ):
            found[case.clause.id, case.sentence, case.dtype.kind] = case
    return [case for case in found.values() if case.dtype.kind in ("float", "uint")]


@pytest.mark.parametrize("operator", ["Max", "ReduceMax", "SegmentMax"])
def test_results_by_lookup_are_those_of_the_reference(operator: str) -> None:
    checked = 0
    for case in sampled():
        if case.row.operator != operator:
            continue
        trial = case.make()
        assert trial.expected is not None
        assert len(trial.expected) == len(trial.feeds)
        for number in {0, len(trial.feeds) // 3, len(trial.feeds) - 1}:
            feed = trial.feeds[number]
            if sum(array.size for array in feed) <= 2000:
                bits.assert_same_bits(trial.expected[number], expected_result(case.row, trial.call, feed))
                if trial.without_nan:
                    bits.assert_same_bits(trial.without_nan[number], without_nan(case.row, trial.call, feed))
                checked += 1
    assert checked > 100


def test_every_lane_meets_every_pair() -> None:
    name = "ONNX.Max-13.value/int16/each-pair-of-boundary-values-in-each-lane-of-lengths-9-to-16"
    values = set(pool.ordinary(dtypes.INT16).tolist())
    met: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for first, second in BY_ID[name].make().feeds:
        for lane, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            met.setdefault((len(first), lane), set()).add(pair)
    assert set(met) == {(length, lane) for length in range(9, 17) for lane in range(length)}
    assert all(pairs_met == {(u, v) for u in values for v in values} for pairs_met in met.values())


@pytest.mark.parametrize("length", [2, 17, 93, 94, 130])
def test_the_other_value_stands_at_every_place(length: int) -> None:
    for table in (pairs(dtypes.FLOAT32, "nan"), repeated(dtypes.FLOAT32, "nan"), repeated(dtypes.INT8, "value")):
        found = set()
        for array in copies_with_one(table, length):
            differs = bits.words(array) != bits.words(table.u)[:, np.newaxis]
            assert (differs.sum(axis=1) <= 1).all()
            found |= {*np.nonzero(differs)[1].tolist()}
        assert found == set(range(length))


@pytest.mark.parametrize("length", [2, 17, 130])
@pytest.mark.parametrize(("dtype", "which"), [(dtypes.FLOAT16, "zeros"), (dtypes.BOOL, "value")], ids=["zeros", "bool"])
def test_each_of_two_values_stands_at_every_place(dtype: DType, which: Which, length: int) -> None:
    table = repeated(dtype, which)
    (array,) = copies_with_one(table, length)
    differs = bits.words(array) != bits.words(table.u)[:, np.newaxis]
    rows, places = np.nonzero(differs)
    assert {*zip(bits.words(table.v)[rows].tolist(), places.tolist(), strict=True)} == {
        (word, place) for word in set(bits.words(table.v).tolist()) for place in range(length)
    }


@pytest.mark.parametrize("layout", reduce_max.LAYOUTS)
@pytest.mark.parametrize("which", ["value", "nan"])
def test_a_sample_has_every_pair(layout: str, which: str) -> None:
    words = {"value": "each pair of boundary values", "nan": "each pair with a NaN"}[which]
    clause = {"value": "value", "nan": "nan"}[which]
    sentence = f"{layout}-with-{words}-one-among-copies-of-the-other-a-sample-of-lengths-1-to-130".replace(" ", "-")
    trial = BY_ID[f"ONNX.ReduceMax-20.{clause}/float32/{sentence}"].make()
    met = set()
    for (data,) in trial.feeds:
        for line in np.atleast_2d(bits.words(data).T if layout == "columns" else bits.words(data)):
            met.add(frozenset(line.tolist()))
    table = pairs(dtypes.FLOAT32, "nan" if which == "nan" else "value")
    expected = {
        frozenset(pair) for pair in zip(bits.words(table.u).tolist(), bits.words(table.v).tolist(), strict=True)
    }
    assert expected <= met


def test_a_sample_of_lanes_has_every_pair() -> None:
    trial = BY_ID["ONNX.Max-13.value/int64/each-pair-of-boundary-values-a-sample-of-lengths-1-to-130"].make()
    counts = Counter(pair for u, v in trial.feeds for pair in zip(u.tolist(), v.tolist(), strict=True))
    values = pool.ordinary(dtypes.INT64).tolist()
    assert set(counts) == {(u, v) for u in values for v in values}
    assert {len(u) for u, _ in trial.feeds} >= {1, 3, 8, 16, 17, 31, 65, 130}


def float32(values: list[Any]) -> Array:
    return np.array(values, np.float32)


def test_the_reading_without_nan() -> None:
    nan, inf = np.nan, np.inf
    call = Call(spec.MAX_13, (Input("a", dtypes.FLOAT32, (None,)), Input("b", dtypes.FLOAT32, (None,))))
    feed = float32([nan, 1, nan, -inf]), float32([2, nan, nan, nan])
    bits.assert_same_bits(without_nan(spec.MAX_13, call, feed), float32([2, 1, nan, -inf]))
    bits.assert_same_bits(expected_result(spec.MAX_13, call, feed), float32([nan] * 4))

    reduce = Call(spec.REDUCE_MAX_13, (Input("data", dtypes.FLOAT32, (None, None)),), (("axes", [1]), ("keepdims", 0)))
    data = float32([[nan, 1], [nan, nan], [nan, -inf]])
    bits.assert_same_bits(without_nan(spec.REDUCE_MAX_13, reduce, (data,)), float32([1, nan, -inf]))
    nothing = without_nan(spec.REDUCE_MAX_13, reduce, (np.empty((2, 0), np.float32),))
    bits.assert_same_bits(nothing, float32([-inf, -inf]))

    row = spec.SEGMENT_MAX_16
    inputs = Input("data", dtypes.FLOAT32, (None,)), Input("segment_ids", dtypes.INT64, (None,))
    segment = Call(row, inputs, (("fill_mode", "LOWEST"),))
    feed = float32([nan, nan, 3, nan]), np.array([0, 0, 2, 2])
    fill = np.finfo(np.float32).min
    bits.assert_same_bits(without_nan(row, segment, feed), float32([nan, fill, 3]))


def test_the_reading_without_nan_of_what_goes_through() -> None:
    """Test that the alternative result without NaN keeps data that is not reduced, including a NaN's bits."""
    inputs = (Input("data", dtypes.FLOAT32, (None,)), Input("axes", dtypes.INT64, (0,), np.empty(0, np.int64)))
    call = Call(spec.REDUCE_MAX_18, inputs, (("noop_with_empty_axes", 1),))
    data = np.array([0xFFC00005, 0x3F800000], np.uint32).view(np.float32)
    bits.assert_same_bits(without_nan(spec.REDUCE_MAX_18, call, (data,)), data)


def test_the_reading_without_nan_of_a_type_without_it() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    call = Call(spec.MAX_13, (Input("a", dtypes.REAL, (None,)), Input("b", dtypes.REAL, (None,))))
    feed = np.array([third, half], object), np.array([half, third], object)
    assert without_nan(spec.SONNX_MAX, call, feed).tolist() == [half, half]


# ---------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("row", spec.ALL, ids=lambda row: f"{row.standard} {row.name}")
def test_the_planner_refuses_what_is_to_be_refused(row: Spec) -> None:
    refused = [case for case in ALL if case.refusal and case.row is row]
    assert len(refused) > 5
    for case in refused:
        trial = case.make()
        with pytest.raises(MaxopsError) as error:
            expected_result(row, trial.call, trial.feeds[0])
        assert error.value.clause == case.clause.id, case.id


def test_what_sonnx_refuses_onnx_may_take() -> None:
    trial = BY_ID["SONNX.Max.zero-size/float32/shapes-0-and-1"].make()
    assert expected_result(spec.MAX_13, trial.call, trial.feeds[0]).shape == (0,)


# ------------------------------------------------------------------------------------------------------ choice


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["max-13.t/INT8/two"], {"ONNX.Max-13.T/int8/two-short-vectors"}),
        (["ONNX.Max-13.T/int8/T*"], {"ONNX.Max-13.T/int8/two-short-vectors"}),
        (
            ["*max-6.t/float16/*vectors, onnx.max-8.t/float16/two*"],
            {"ONNX.Max-6.T/float16/two-short-vectors", "ONNX.Max-8.T/float16/two-short-vectors"},
        ),
        (
            ["ONNX.Max-1[23].T/int8/two*"],
            {"ONNX.Max-12.T/int8/two-short-vectors", "ONNX.Max-13.T/int8/two-short-vectors"},
        ),
    ],
    ids=["part", "glob", "several", "set"],
)
def test_cases_are_chosen_by_patterns(only: list[str], expected: set[str]) -> None:
    assert {case.id for case in select(ALL, only)} == expected


def test_the_quick_ones_are_among_all() -> None:
    assert select(ALL, quick=True) == QUICK
    assert select(ALL) == ALL
    assert 0 < len(select(ALL, ["int64"], quick=True)) < len(select(ALL, ["int64"]))


@pytest.mark.parametrize(
    ("pattern", "near"),
    [("ONNX.Max-31.value", "ONNX.Max-13.value"), ("ONNX.Max-13.T/int8/tow-short*", "int8/two-short")],
)
def test_a_pattern_that_nothing_fits_is_one_line(pattern: str, near: str) -> None:
    with pytest.raises(NoSuchCaseError) as error:
        select(ALL, ["int64", pattern])
    assert pattern in str(error.value)
    assert near in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_that_profile_another_follow_the_newest() -> None:
    assert [row.standard for row in judges(spec.MAX_13)] == ["ONNX", "SONNX", "SONNX draft"]
    assert judges(spec.MAX_12) == [spec.MAX_12]
    assert rows("Max")[0] is spec.MAX_1

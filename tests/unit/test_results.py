"""Provenance and its identity, results, and the formats they are kept in."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import bertology.results.result as result_module
from bertology.cli.results import show_result
from bertology.errors import ParameterError, UnknownNameError
from bertology.results import Provenance, Result, identity_of
from bertology.results.drawing import Drawing
from bertology.results.evidence import evidence_array
from bertology.results.formats import (
    arrays_from_bytes,
    arrays_to_bytes,
    table_from_bytes,
    table_to_bytes,
)
from bertology.results.result import find_kinds_with, kind_of
from bertology.stats import Estimate

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def provenance(**changes: Any) -> Provenance:
    given: dict[str, Any] = {
        "study": "head-ablation",
        "study_version": 1,
        "parameters": {"how": "uniform", "heads": (0, 1)},
        "model": {"name": "tiny", "fingerprint": "m1", "shape": {"layers": 2, "heads": 2}},
        "corpus": {"name": "mrpc", "fingerprint": "c1", "size": 408, "split": "validation"},
    }
    return Provenance(**{**given, **changes})


class Drawn(Result):
    def drawings(self) -> Sequence[Drawing]:
        return [
            Drawing("heads", lambda: Figure(figsize=(1, 1)), "One cell for each <head>."),
            Drawing("layers", lambda: Figure(figsize=(2, 1)), "One bar for each layer."),
        ]


def drawn() -> Drawn:
    tables = {"heads": pd.DataFrame({"layer": [0, 1], "gain": [0.1, np.nan]}), "b": pd.DataFrame()}
    arrays = evidence_array({"best_head_gain": Estimate(0.01, 0.004, 0.02, 408)})
    return Drawn(provenance(), tables, arrays.assign(gain=("layer", [0.1, np.nan])))


# Identity


@pytest.mark.parametrize(
    "changes",
    [
        {"created": "2020-01-01T00:00:00+00:00"},
        {"duration": 12.0},
        {"versions": {"torch": "9"}},
        {"command": "bertology run"},
        {"seed": 3},
        {"model": {"name": "other", "fingerprint": "m1", "device": "cuda"}},
        {"corpus": {"name": "other", "fingerprint": "c1"}},
        {"parameters": {"heads": [np.int64(0), 1], "how": "uniform"}},
    ],
)
def test_identity_does_not_depend_on(changes: dict[str, Any]) -> None:
    assert provenance(**changes).identity == provenance().identity


@pytest.mark.parametrize(
    "changes",
    [
        {"study": "other"},
        {"study_version": 2},
        {"parameters": {"how": "zero", "heads": (0, 1)}},
        {"model": {"name": "tiny", "fingerprint": "m2"}},
        {"corpus": {"name": "mrpc", "fingerprint": "c2"}},
        {"corpus": None},
    ],
)
def test_identity_depends_on(changes: dict[str, Any]) -> None:
    assert provenance(**changes).identity != provenance().identity


def test_identity_is_the_same_in_every_release() -> None:
    """A changed hash would orphan every stored result."""
    p = provenance()
    assert p.identity == "95f5cbddf63e886a"
    assert p.key == f"head-ablation/{p.identity}"
    assert p.identity == identity_of(
        "head-ablation", 1, parameters=p.parameters, model="m1", corpus="c1"
    )


def test_provenance_survives_json() -> None:
    p = provenance(duration=1.5, command="bertology run head-ablation")
    assert Provenance.from_json(json.loads(json.dumps(p.as_json()))) == p
    assert dataclasses.replace(p, duration=2.0).identity == p.identity
    assert p.versions["numpy"] == np.__version__


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_provenance_refuses_what_json_cannot_hold(value: object) -> None:
    with pytest.raises(ParameterError, match="'parameters' parameter of Provenance must hold only"):
        provenance(parameters={"x": value})


def test_provenance_needs_fingerprints() -> None:
    with pytest.raises(ParameterError, match=r"'model'.*must hold a 'fingerprint'"):
        provenance(model={"name": "tiny"})


# Result


def test_main_table_and_figure_come_first() -> None:
    result = drawn()
    assert result.table() is result.tables["heads"]
    assert result.table("b").empty
    assert list(result.plot().get_size_inches()) == [1, 1]
    assert list(result.plot("layers").get_size_inches()) == [2, 1]


def test_unknown_names_are_told() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown figure 'layer'.*\n.*'layers'"):
        drawn().plot("layer")
    with pytest.raises(UnknownNameError, match=r"Unknown table 'haeds'.*\n.*'heads'"):
        drawn().table("haeds")
    with pytest.raises(UnknownNameError, match="figure"):
        Result(provenance()).plot()


def test_summary_and_html_show_what_follows() -> None:
    result = drawn()
    text = str(result)
    assert "head-ablation of tiny over mrpc" in text
    assert "holds: Disabling some heads improves" in text
    assert "best head gain was not measured" not in text
    assert "worst head loss was not measured" in text
    html = result._repr_html_()
    assert "data:image/svg+xml;base64," in html
    assert "<b>mrpc</b>" in html
    assert "One cell for each &lt;head&gt;.</small></figcaption>" in html
    assert "1 more figures" not in html
    assert "One more figure" in html
    assert "<code>.plot(&#x27;layers&#x27;)</code> One bar for each layer." in html


def test_html_is_escaped_and_survives_a_broken_figure(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Result):
        def drawings(self) -> Sequence[Drawing]:
            def draw() -> Figure:
                raise ZeroDivisionError("no data")

            return [Drawing("a", draw, "A figure.")]

    table = pd.DataFrame({"<i>": range(12)})
    html = Broken(
        provenance(model={"name": "<script>", "fingerprint": "x"}), {"t": table}
    )._repr_html_()
    assert "<script>" not in html
    assert "<i>" not in html
    assert "2 more rows" in html
    assert "no data" in caplog.text


def test_equality_sees_every_difference() -> None:
    one = drawn()
    same = Drawn(one.provenance, dict(one.tables), one.arrays.copy())
    assert one.equals(same)
    same.tables["heads"] = one.tables["heads"].astype({"layer": "int32"})
    assert not one.equals(same)
    assert not one.equals(Drawn(one.provenance, one.tables, one.arrays.assign_attrs(a=1)))
    renamed = one.tables["heads"].rename_axis("row")
    assert not one.equals(Drawn(one.provenance, {**one.tables, "heads": renamed}, one.arrays))


@pytest.fixture
def _own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_module, "_find", None)


@pytest.mark.usefixtures("_own_kinds")
def test_kinds_are_found_through_the_hook() -> None:
    assert kind_of("head-ablation") is Result

    def find(study: str) -> type[Result]:
        if study != "head-ablation":
            raise UnknownNameError("study", study, ["head-ablation"])
        return Drawn

    find_kinds_with(find)
    assert kind_of("head-ablation") is Drawn
    assert kind_of("of-a-plugin-that-is-gone") is Result


# Formats

NAMES = st.text(alphabet="abcdefgh_é日", min_size=1, max_size=4)
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
LETTERS = pd.CategoricalDtype(["a", "b"], ordered=True)
NUMBERS = st.floats(width=64) | st.integers(-(2**40), 2**40).map(float)


def _column(size: int) -> st.SearchStrategy[pd.Series[Any]]:
    def of(values: st.SearchStrategy[Any], dtype: Any) -> st.SearchStrategy[pd.Series[Any]]:
        return st.lists(values, min_size=size, max_size=size).map(
            lambda v: pd.Series(v, dtype=dtype)
        )

    return st.one_of(
        of(NUMBERS, "float64"),
        of(st.floats(width=32), "float32"),
        of(st.integers(-100, 100), "int8"),
        of(st.booleans(), "bool"),
        of(TEXT, "str"),
        of(st.none() | TEXT, "str"),
        of(st.none() | st.integers(0, 9), "Int64"),
        # Parquet forgets the categories of a column without rows.
        of(st.sampled_from(["a", "b"]), LETTERS if size else "str"),
    )


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    size = draw(st.integers(0, 4))
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    table = pd.DataFrame({n: draw(_column(size)) for n in names}, index=range(size))
    kind = draw(st.sampled_from(["range", "text", "pairs"]))
    if kind == "text":
        table.index = pd.Index([f"é{i}" for i in range(size)], dtype="str", name=draw(NAMES))
    elif kind == "pairs":
        table.index = pd.MultiIndex.from_product([range(size), ["x"]], names=["layer", "part"])
    return table


@QUICK
@given(tables())
def test_tables_read_back_equal(table: pd.DataFrame) -> None:
    data = table_to_bytes(table)
    pd.testing.assert_frame_equal(table_from_bytes(data), table)
    assert table_to_bytes(table) == data


ATTRIBUTES = st.dictionaries(
    st.sampled_from(["about", "unit", "level", "of"]),
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | TEXT
    | st.just("json:[1]")
    | st.lists(st.integers(0, 3))
    | st.dictionaries(st.sampled_from("ab"), TEXT),
)


def _values(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    size = int(np.prod(shape))

    def of(values: st.SearchStrategy[Any], dtype: str) -> st.SearchStrategy[Any]:
        filled = st.lists(values, min_size=size, max_size=size)
        return filled.map(lambda v: np.array(v, dtype=dtype).reshape(shape))

    return st.one_of(
        of(NUMBERS, "float64"),
        of(st.floats(width=32), "float32"),
        of(st.integers(0, 200), "uint8"),
        of(st.integers(-(2**60), 2**60), "int64"),
        of(st.booleans(), "bool"),
        of(TEXT.map(lambda t: t[:6]), "U6"),
    )


@st.composite
def datasets(draw: st.DrawFn) -> xr.Dataset:
    sizes = {"layer": draw(st.integers(0, 3)), "head": draw(st.integers(0, 2))}
    arrays = xr.Dataset(attrs=draw(ATTRIBUTES))
    dims: tuple[str, ...]
    for name, dims in (("a", ("layer", "head")), ("b", ("layer",)), ("c", ())):
        if draw(st.booleans()):
            shape = tuple(sizes[d] for d in dims)
            arrays[name] = xr.Variable(dims, draw(_values(shape)), attrs=draw(ATTRIBUTES))
    for dim, size in sizes.items():
        if dim in arrays.dims and draw(st.booleans()):
            coordinate = draw(st.sampled_from([np.arange(size), np.arange(size) > 0]))
            arrays = arrays.assign_coords({dim: coordinate, f"{dim}_name": (dim, ["é"] * size)})
    return arrays


@QUICK
@given(datasets())
def test_arrays_read_back_equal(arrays: xr.Dataset) -> None:
    data = arrays_to_bytes(arrays)
    back = arrays_from_bytes(data)
    xr.testing.assert_identical(back, arrays)
    assert all(back[n].dtype.kind == arrays[n].dtype.kind for n in arrays.variables)
    assert arrays_to_bytes(back) == data


def test_xarray_reads_the_same() -> None:
    """Also where an array is called as one of its dimensions."""
    named = {
        "map": (("map", "row"), np.eye(3, 2)),
        "cell": (("row", "cell"), np.eye(2, 4)),
        "kind": ("row", ["a", "bc"]),
        "sure": ("row", [True, False]),
    }
    arrays = xr.Dataset(named, attrs={"words": 3, "of": "a"})
    data = arrays_to_bytes(arrays)
    xr.testing.assert_identical(arrays_from_bytes(data), arrays)
    with xr.open_dataset(io.BytesIO(data), engine="h5netcdf") as opened:
        xr.testing.assert_identical(opened.load(), arrays)


@QUICK
@given(datasets())
def test_what_is_written_quickly_is_what_xarray_writes(arrays: xr.Dataset) -> None:
    data = arrays_to_bytes(arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertology.results.formats.plain_to_netcdf", lambda given, compressed: None)
        slowly = arrays_to_bytes(arrays)
    opened = [xr.load_dataset(io.BytesIO(one), engine="h5netcdf") for one in (data, slowly)]
    xr.testing.assert_identical(*opened)
    assert list(opened[0].variables) == list(opened[1].variables)


def test_a_unit_of_time_does_not_turn_numbers_into_times() -> None:
    arrays = xr.Dataset({"spent": ("x", [1.0, np.nan], {"units": "seconds"})})
    xr.testing.assert_identical(arrays_from_bytes(arrays_to_bytes(arrays)), arrays)


def test_tables_are_shown_with_the_strongest_rows_first() -> None:
    """The first twenty of 144 heads by their number say nothing."""

    class Ranked(Result):
        strongest: ClassVar[Mapping[str, str]] = {"heads": "excess"}

    names = {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1]}
    heads = pd.DataFrame(
        {**names, "weight": 0.5, "excess": [-9.0, 0.1, np.nan, 0.3], "excess_low": 0.0}
    )
    effects = pd.DataFrame({**names, "difference": [0.0, -0.4, 0.1, 0.2]})
    layers = pd.DataFrame({"layer": [0, 1], "difference": [0.0, -0.4]})
    result = Ranked(provenance(), {"heads": heads, "effects": effects, "layers": layers})
    shown = result.shown("heads")
    assert list(shown.columns[:4]) == ["layer", "head", "excess", "excess_low"]
    assert shown["excess"].tolist()[:3] == [0.3, 0.1, -9.0]
    assert result.order_of("heads") == "largest excess first"
    assert result.shown("effects")["difference"].tolist() == [-0.4, 0.2, 0.1, 0.0]
    assert result.shown("layers").equals(layers)  # profiles keep their order
    assert result.table("heads") is heads
    sure = heads.assign(sure=[False, True, False, False])
    result.tables["heads"] = sure
    assert result.shown("heads")["excess"].tolist()[:3] == [0.1, 0.3, -9.0]
    assert result.order_of("heads") == "sure ones before others, largest excess first"
    bounded = heads.assign(excess_low=[-10.0, 0.05, np.nan, -0.1], excess_high=1.0)
    result.tables["heads"] = bounded
    assert result.shown("heads")["excess"].tolist()[:2] == [0.1, 0.3]  # by its own interval
    scores = pd.DataFrame(
        {"score": ["ari", "accuracy"], "n": 9, "layer": [-1, 3], "value": 0.5, "excess": [0.1, 0.3]}
    )
    told = Ranked(provenance(), {"heads": scores}).shown("heads")
    assert list(told.columns) == ["score", "n", "layer", "excess", "value"]


def test_tables_say_how_layers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A layer -1 stood in tables, and nothing said what it is."""
    lemmas = pd.DataFrame({"lemma of a certain length": ["bank.n"]})  # titles are as wide as tables
    tables = {"layers": pd.DataFrame({"layer": [-1, 0]}), "lemmas": lemmas}
    show_result(Result(provenance(), tables))
    shown = " ".join(capsys.readouterr().out.split())
    assert "layers (2 rows; layers and heads count from 0, -1 is what enters layer 0)" in shown
    assert "lemmas (1 row)" in shown


@pytest.mark.parametrize(
    ("model", "about"),
    [
        ({"name": "bertology-mini"}, "bertology-mini on reviews (test)"),
        (
            {"name": "/far/out/reviews-pretrained/seed-0"},
            "reviews-pretrained/seed-0 on reviews (test)",
        ),
        (
            {"name": "out/seed-0", "tuned_from": {"name": "a/mini", "task": "films"}},
            "mini fine-tuned on films (seed 0), over reviews (test)",
        ),
    ],
)
def test_titles_name_models_by_what_they_are(model: dict[str, Any], about: str) -> None:
    corpus = {"name": "reviews", "split": "test", "fingerprint": "c"}
    assert Provenance("s", 1, {}, {**model, "fingerprint": "f"}, corpus).about == about

"""A store of made-up results about a model of 2 layers × 3 heads and what was made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import bertology.studies  # noqa: F401 - or its import would undo what the fixture sets
from bertology.report.atlas import claims as claims_module
from bertology.results import result as result_module
from bertology.results.drawing import Drawing
from bertology.results.known_claims import judge
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.rules import Relation, Rule
from bertology.results.store import Store
from bertology.results.verdicts import Claim, Published, Source
from bertology.stats import Estimate

EVIL = '</script><img src="x" onerror=alert(1)> & co'
SHAPE = {"layers": 2, "heads": 3, "hidden": 12, "head_size": 4, "mlp": 24}
TUNED_A, TUNED_B = "/far/away/a-1/toy-tuned", "/far/away/b-2/toy-tuned"


def claim(name: str, study: str = "toy-study", value: float = 0.0) -> Claim:
    rule = Rule("gain", Relation.ABOVE, value)
    published = Published(f"about 3 {EVIL}")
    source = Source(f"Paper of {study}", "4.1", figure="2")
    words = f"{name} is so {EVIL}"
    return Claim(f"toy.{name}", source, words, published, study, rule, f"Because {EVIL}.")


CLAIMS = [claim("gains"), claim("losses", value=1.0), claim("unknown", "never-run")]


class Toy(Result):
    """Six heads whose values its arrays hold."""

    def evidence(self) -> dict[str, Estimate]:
        middle = float(self.arrays["gain"].mean())
        return {"gain": Estimate(middle, middle - 0.2, middle + 0.2, 12)}

    def verdicts(self) -> Any:
        return judge(self.provenance.study, self.evidence(), CLAIMS)

    def headline(self) -> str:
        return f"A toy {EVIL}"

    def drawings(self) -> Sequence[Drawing]:
        caption = f"One cell for each head. {EVIL}"
        return [Drawing("heads", self._draw, caption), Drawing("broken", self._fail, "Broken.")]

    def measures(self) -> Sequence[Measure]:
        gain, unit = self.arrays["gain"].to_numpy(), self.arrays.attrs.get("unit", "points of F1")
        sure = np.zeros_like(gain, dtype=bool)
        sure[1, 2] = True
        bounds = {"low": gain - 0.1, "high": gain + 0.1}
        kinds = np.array([[0, 1, 0], [1, 1, np.nan]])
        return [
            Measure("gain", "Gain without the head", gain, unit, **bounds, sure=sure,
                    middle=0.0, reading="Above 0: better without it."),
            Measure("kind", "Kind of head", kinds, kinds=("plain", f"odd {EVIL}"),
                    reading="What it is."),
            Measure("layer-gain", "Gain without the layer", gain.mean(1), unit,
                    reading="Above 0: better without it."),
        ]  # fmt: skip

    def _draw(self) -> Figure:
        figure = Figure(figsize=(2, 1))
        axes = figure.add_subplot()
        axes.pcolormesh(self.arrays["gain"].to_numpy())
        figure.text(0.5, 0.5, "value 0.12345")
        return figure

    def _fail(self) -> Figure:
        raise ValueError("cannot be drawn")


def make(model: Mapping[str, Any], data: str = "plain", shift: float = 0.0, **more: Any) -> Toy:
    """A result; `more` goes into its provenance."""
    described = {"family": "bert", "shape": SHAPE, "head": "base", "parameters": 1234, **model}
    asked = {"study": "toy-study", "study_version": 1, "parameters": {"seed": 0}, **more}
    corpus = {"name": data, "fingerprint": f"data-{data}", "size": 12, "split": "validation"}
    provenance = Provenance(model=described, corpus=corpus, **asked)
    gain = np.arange(6.0).reshape(2, 3) / 10 - 0.3 + shift
    mean = np.full((2, 3, 4, 4), 0.25)
    mean[0, 1] = np.eye(4)
    arrays = xr.Dataset(
        {
            "gain": (("layer", "head"), gain),
            "mean_map": (("layer", "head", "from", "to"), mean),
            "map_0": (
                ("layer", "head", "q", "k"),
                mean[:, :, :3, :3],
                {"tokens": ["a", "<b>", "c"]},
            ),
        },
        attrs={"examples": 12},
    )
    table = pd.DataFrame(
        {
            "layer": [0, 0, 0, 1, 1, 1], "head": [0, 1, 2] * 2, "gain": gain.ravel(),
            "gain_low": gain.ravel() - 0.1, "gain_high": gain.ravel() + 0.1,
            "p": [1.2e-7, 0.5, 0.04321987, np.nan, 1.0, 98765.5],
            "note": [EVIL, "a_b & 5 %", "", "[CLS] |", "y", "z"],
        }
    )  # fmt: skip
    return Toy(provenance, {"heads": table, "more": table.head(2)}, arrays)


MODEL = {"name": "toy", "fingerprint": "aaaa11112222"}


def results() -> list[Toy]:
    """The model's own, two tasks of it (one recorded as such, one compared), another model."""
    origin = {"name": "toy", "fingerprint": MODEL["fingerprint"], "task": "task-a"}
    tuned_a = {"name": TUNED_A, "fingerprint": "bbbb", "tuned_from": origin}
    tuned_b = {"name": TUNED_B, "fingerprint": "cccc", "head": "classification"}
    command = "bertology run toy-study --model /far/away/toy --store /far/away/results"
    return [
        make(MODEL, command=command),
        make(tuned_a, "task-a", 0.5),
        make(tuned_a, "plain", 0.6),
        make(tuned_b, "task-b", -0.5, others={"before": MODEL}),
        make({"name": "other", "fingerprint": "dddd"}, shift=1.0),
    ]


@pytest.fixture
def toy_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The results in a store that reads them as toys, judged by toy claims."""
    monkeypatch.setattr(result_module, "_find", lambda study: Toy)
    monkeypatch.setattr(claims_module, "load_claims", lambda: CLAIMS)
    store = Store(str(tmp_path / "results"))
    for result in results():
        store.save(result)
    return store

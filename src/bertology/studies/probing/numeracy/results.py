"""What numeracy found: how well numbers are decoded, near and far, by writing and layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.annotated.numbers import FAR, NEAR, PIECES
from bertology.report import drawings
from bertology.report.figures import Decodings, Dots, decoded_values
from bertology.results.answers import NOTHING_SURE, of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, dashed
from bertology.results.result import Result
from bertology.studies.designs.tables import bounded
from bertology.studies.probing.numeracy.scores import BASELINES, GroupScores, apart, mean_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.stats import Estimate


Key = tuple[str, str]


def by_group(
    seen: Mapping[Key, GroupScores], gains: Mapping[Key, Estimate], *, level: float
) -> pd.DataFrame:
    """The layer that dev picks, beside its baselines; bounds hold for all rows together."""
    import pandas as pd

    rows, each = [], 1 - (1 - level) / len(seen)
    for key, one in seen.items():
        near, far = one.best(NEAR), one.best(FAR)
        copies = one.copies_share()
        rows.append(
            {
                "writing": key[0],
                "group": key[1],
                "layer": one.layer,
                **bounded("near", one.share(near, NEAR, each)),
                **bounded("far", one.share(far, FAR, each)),
                **{kind: one.base_share(kind, NEAR) for kind in BASELINES},
                **{f"far_{kind}": one.base_share(kind, FAR) for kind in BASELINES},
                "input": float(one.right(one.said[NEAR][:, 0], NEAR).mean()),
                "shuffled": float(np.mean(copies)) if copies else np.nan,
                **bounded("gain", gains[key].beyond_all()),
                **one.errors(near, NEAR),
                **{f"far_{name}": x for name, x in one.errors(far, FAR).items()},
                "numbers": one.sizes(NEAR),
                "far_numbers": one.sizes(FAR),
            }
        )
    return pd.DataFrame(rows)


def by_layer(seen: Mapping[Key, GroupScores], *, level: float) -> pd.DataFrame:
    """One row for each writing, group and layer (-1 is the input)."""
    import pandas as pd

    rows = []
    every = sum(one.said[NEAR].shape[1] for one in seen.values())
    each = 1 - (1 - level) / every
    for (writing, group), one in seen.items():
        for layer in range(one.said[NEAR].shape[1]):
            near, far = (one.said[role][:, layer] for role in (NEAR, FAR))
            rows.append(
                {
                    "writing": writing,
                    "group": group,
                    "layer": layer - 1,
                    **bounded("near", one.share(near, NEAR, each)),
                    **bounded("far", one.share(far, FAR, each)),
                    **one.errors(near, NEAR),
                    **{f"far_{name}": x for name, x in one.errors(far, FAR).items()},
                }
            )
    return pd.DataFrame(rows)


def by_number(seen: Mapping[Key, GroupScores], part: xr.Dataset, writing: str) -> pd.DataFrame:
    """What four depths, and the picked layer, say of each number, as a mean over seeds."""
    import pandas as pd

    frames = []
    for (of, group), one in seen.items():
        if of != writing or one.lists:
            continue
        last = one.said[NEAR].shape[1] - 1
        depths = sorted({0, last // 3, 2 * last // 3, last, one.layer + 1})
        for role in (NEAR, FAR):
            own = part[f"{role}_group"].to_numpy() == group
            frames += [
                pd.DataFrame(
                    {
                        "group": group,
                        "asked": role,
                        "number": part[f"{role}_word"].to_numpy()[own],
                        "value": one.target[role],
                        "layer": depth - 1,
                        "said": one.said[role][:, depth].mean(axis=0).astype(np.float32),
                    }
                )
                for depth in depths
            ]
    columns = ["group", "asked", "number", "value", "layer", "said"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def by_tuned(
    seen: Mapping[Key, GroupScores], said: Mapping[str, Sequence[xr.Dataset]], *, level: float
) -> tuple[pd.DataFrame, Estimate | None]:
    """Fine-tuned models by writing and group; what larger numbers lose where they learnt."""
    import pandas as pd

    rows, lost, each = [], [], 1 - (1 - level) / len(seen)
    for (writing, group), one in seen.items():
        told = {
            role: np.stack([one.of_group(part[role].to_numpy(), role) for part in said[writing]])
            for role in (NEAR, FAR)
        }
        gain = one.gain(each, told[NEAR])
        if writing == PIECES and gain.surely_there:
            lost.append(apart(*(one.share(told[role], role, level) for role in (NEAR, FAR))))
        rows.append(
            {
                "writing": writing,
                "group": group,
                **bounded("near", one.share(told[NEAR], NEAR, each)),
                **bounded("far", one.share(told[FAR], FAR, each)),
                **bounded("gain", gain.beyond_all()),
                **one.errors(told[NEAR], NEAR),
                **{f"far_{name}": x for name, x in one.errors(told[FAR], FAR).items()},
            }
        )
    return pd.DataFrame(rows), mean_of(lost)


_SHARES = ("near", "far", "gain", "constant", "length", "vectors", "input", "shuffled")
_MOST_DRAWN = 3  # groups whose single numbers are drawn


class NumeracyResult(Result):
    """Which numbers are decoded.

    Table `groups`: for each writing and group (notation and range) the share of numbers decoded
    right, within the range (`near`) and beyond it (`far`), at the layer that dev picks (-1 is the
    input of the first), baselines on the same numbers, the smallest `gain` over them, and errors of
    values: root mean squares in units and of log10 (1 + value), R²; `layers`: by layer; `numbers`:
    what some depths say of each number; `tuned`: of models that were fine-tuned.
    """

    strongest: ClassVar[Mapping[str, str]] = {"groups": "gain"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "groups": dict.fromkeys((*_SHARES, *(f"far_{s}" for s in _SHARES[3:6])), "%"),
        "layers": {"near": "%", "far": "%"},
        "tuned": {"near": "%", "far": "%", "gain": "%"},
    }

    @property
    def _asked(self) -> str:
        if self.facts["lists"]:
            return "the largest of the list is found"
        return (
            f"a value is decoded to within {100 * float(self.facts['tolerance']):g} % of the range"
        )

    @property
    def answer(self) -> str:
        """What is decoded beyond all baselines, and what larger numbers lose."""
        rows = self.tables["groups"]
        own = rows[rows["writing"] == self.facts["writing"]]
        sure = own[own["gain_low"] > 0]
        if not len(sure):
            best = own.loc[own["gain"].idxmax()]
            shown = points(of_row(best, ("gain", "gain_low", "gain_high")))
            return (
                f"{NOTHING_SURE}: no group of numbers is surely decoded beyond length, random "
                f"vectors and shuffled weights; the most is {shown} ({best['group']})."
            )
        best = sure.loc[sure["gain"].idxmax()]
        near = percent(of_row(best, ("near", "near_low", "near_high")))
        said = f"Of {best['group']}, {self._asked} in {near} of those not learnt"
        lost = self.evidence().get("extrapolation_loss")
        if lost is not None:
            said += f"; larger numbers lose {points(lost)}"
        return f"{said}."

    def measures(self) -> Sequence[Measure]:
        """Shares of numbers by layer."""
        table = self.tables["layers"]
        return [
            Measure.of_column(
                rows,
                "near",
                name=f"{writing}-{dashed(str(group))}-near",
                title=f"Decoded within the range: {_called(str(writing), str(group))}",
                unit="% of numbers",
                scale=100.0,
                reading="High: a linear probe of this layer tells numbers that it did not learn.",
            )
            for (writing, group), rows in table[table["layer"] >= 0].groupby(
                ["writing", "group"], sort=False
            )
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Groups with their baselines; layers; decoded against true values."""
        measures = self.measures()
        rows = self.tables["groups"]
        near = "within the range (%)"
        found = [
            drawings.dots(
                "groups",
                [
                    Dots.of_columns(near, rows, "near", hollow="shuffled", bars="length"),
                    Dots.of_columns("larger numbers (%)", rows, "far"),
                    Dots.of_columns("gain (points)", rows, "gain", level=0.0),
                ],
                [_called(str(r.writing), str(r.group)) for r in rows.itertuples()],
                self.about,
                title="Numbers that are decoded",
                caption="For each group and writing of numbers the per cent that is decoded right: "
                "numbers within the range that were not learnt, and larger ones; then the gain "
                "over the best baseline. Diamonds are shuffled weights, bars the length of the "
                "number alone. Intervals are over numbers and seeds and hold for all rows "
                "together.",
                note="Diamonds: shuffled weights, the mean. Bars: the length of the number alone. "
                "Gain: over mean, length, random vectors and shuffled weights, the smallest.",
            ),
            drawings.rows(
                "layers",
                measures,
                self.about,
                title="Numbers decoded by layer",
                reading="Only numbers that were not learnt are asked about.",
                labels=[
                    _called(str(w), str(g))
                    for w, g in self.tables["groups"][["writing", "group"]].itertuples(index=False)
                ],
            ),
        ]
        if len(self.tables["numbers"]):
            found.append(
                Drawing(
                    "numbers",
                    self._numbers,
                    "Decoded values upwards against true values to the right, by layer. Blue dots "
                    "are numbers within the range that was learnt, but not learnt themselves; "
                    "vermilion ones are larger. On the grey line a value is decoded exactly; wild "
                    "ones are drawn at the edge.",
                )
            )
        if "tuned" in self.tables:
            found.append(self._tuned())
        return found

    def _tuned(self) -> Drawing:
        rows = self.tables["tuned"]
        frozen = self.tables["groups"].set_index(["writing", "group"])
        beside = frozen.loc[list(rows[["writing", "group"]].itertuples(index=False, name=None))]
        panels = []
        for role, label in (("near", "within the range (%)"), ("far", "larger numbers (%)")):
            own = Dots.of_columns(label, rows, role)
            panels.append(replace(own, hollow=100 * beside[role].to_numpy()))
        return drawings.dots(
            "tuned",
            panels,
            [_called(str(r.writing), str(r.group)) for r in rows.itertuples()],
            self.about,
            title="Numbers that fine-tuned models decode",
            caption="The same of models that were fine-tuned as a whole, one for each group and "
            "seed: the per cent decoded right within the range and beyond it. Diamonds "
            "are what probes of the frozen model get.",
            note="Diamonds: probes of the frozen model. Intervals are over numbers and seeds.",
        )

    def _numbers(self) -> Figure:
        table = self.tables["numbers"]
        sizes = table.groupby("group", sort=False)["number"].nunique()
        drawn = [str(g) for g in sizes.sort_values(ascending=False, kind="stable").index]
        groups = drawn[:_MOST_DRAWN]
        depths = _depths(table[table["group"].isin(groups)])
        return decoded_values(
            [
                Decodings(
                    group,
                    "input" if depth < 0 else f"layer {depth}",
                    rows["value"],
                    rows["said"],
                    rows["asked"] == FAR,
                )
                for group in groups
                for depth in depths
                for rows in [table[(table["group"] == group) & (table["layer"] == depth)]]
            ],
            title=f"Decoded and true values\n{self.about}",
            note="Blue: within the range, not learnt. Vermilion: larger than any learnt. Layers "
            "are numbered from 0.",
        )


def _depths(table: pd.DataFrame) -> list[int]:
    """The layers that all groups have."""
    of = [set(rows["layer"]) for _, rows in table.groupby("group")]
    return sorted(int(layer) for layer in set.intersection(*of))


def _called(writing: str, group: str) -> str:
    return group if writing == PIECES else f"{group}, {writing}"

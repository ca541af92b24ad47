"""The table of compression as readers see it: rows, losses, times, commands, and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.report.figures import Costs, Dots, interval_dots, trade_offs
from bertology.results.answers import NOTHING_SURE, listed, percent, points
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.compression.compression_table.rows import ALONE, METHOD, ROWS, SMALL, TEACHER
from bertology.studies.compression.compression_table.scores import CompressionScores, speed_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIZES = {"smaller": "bytes", "fewer": "parameters", "nonzero": "nonzero"}
"""What is told as so many times less, by what is counted."""
BEST_SMALL, BEST_STUDENT = "best_small_kept", "best_student_over_alone"  # quantities
SMALL_PICKS, STUDENT_PICKS = "best_small", "best_student"  # facts: the row that was picked most
PICKS = "_picks"  # and with this ending: how often each row was picked
_NAMED = 3  # rows that were picked, in the answer
_CPU = "cpu"  # other devices are named as their maker does
_KINDS = {
    TEACHER: "teacher",
    METHOD: "compressed",
    ALONE: "same shape, no teacher",
    SMALL: "small, pre-trained",
}
_COUNTED = {"smaller": "bytes", "nonzero": "parameters that are not zero"}
_SHOWN = -100.0, 300.0  # per cent of the teacher's score; intervals may go far beyond
_LOSS = {
    **dict.fromkeys(("over_teacher", "over_alone", "net"), "points"),
    **dict.fromkeys(("kept_above_constant", "changed", "lost", "won"), "%"),
}


class CompressionTableResult(Result):
    """What every row keeps and saves (`rows`), what it loses, how fast it is, and its command.

    `rows` has one row for each model: `smaller` is how many times smaller its file is than the
    teacher's, `fewer` how many times fewer parameters it has, `nonzero` the same without zeros;
    `score` is the mean over seeds with an interval over seeds and examples, `kept` its ratio to the
    teacher's, `faster` how many times as fast it is on the CPU, text by text and in batches of 32,
    with intervals over rounds, and `gpu_faster` the same on a GPU, where models were timed on one
    (`speeds` has its name). The columns `published…` are of another model on other tasks: the
    figures of Table 1 of the Primer. `losses` has the paired difference to the teacher, what is
    kept of what it has above a constant answer (without ends, `inf`, where the teacher is not
    surely above it), and which answers are others. Every interval is that of its row alone.
    """

    lead: ClassVar[int] = 3
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "rows": {"score": "× 100", "kept": "%"},
        "losses": _LOSS,
    }

    @property
    def answer(self) -> str:
        """What the best small model keeps, and whether the best student needs its teacher."""
        facts, found, why = self.facts, self.evidence(), self.reasons()
        kept, gain = (found.get(n) for n in (BEST_SMALL, BEST_STUDENT))
        if kept is None and gain is None:
            told = dict.fromkeys(why[n] for n in (BEST_SMALL, BEST_STUDENT) if n in why)
            reasons = [reason.removeprefix("not judged: ") for reason in told]
            return f"{NOTHING_SURE}: {'; '.join(reasons) or 'no row is a small model'}."
        told_of = []
        if kept is not None:
            told_of.append(
                f"The best small model ({self._picked(SMALL_PICKS, smaller=True)}) keeps "
                f"{percent(kept, '.1f', limits=(1.0,))} of the teacher's {facts['judged']}."
            )
        if gain is not None:
            surely = (
                "surely better" if gain.low > 0 else "surely worse" if gain.high < 0
                else "not surely better"
            )  # fmt: skip
            told_of.append(
                f"The best student ({self._picked(STUDENT_PICKS)}) is {surely} than the same size "
                f"without a teacher: {points(gain)}."
            )
        return " ".join(told_of)

    def _picked(self, name: str, *, smaller: bool = False) -> str:
        """`gobo, 9.1 times smaller`; where several were picked, the number is of all of them."""
        first = str(self.facts[name])
        counts = {
            row: int(times)
            for row, _, times in (
                one.rpartition(":") for one in str(self.facts.get(f"{name}{PICKS}", "")).split()
            )
        } or {first: 1}  # results from before they were counted
        sizes = self.table().set_index("row")["smaller"]
        mostly = 2 * counts[first] > sum(counts.values())
        meant = [first] if mostly else list(counts)
        least, most = (f"{end(sizes[row] for row in meant):.1f}" for end in (min, max))
        size = f"{least} times smaller" if least == most else f"{least} to {most} times smaller"
        told = [first if len(counts) == 1 else f"mostly {first}" if mostly else _either(counts)]
        told += [size] if smaller else []
        told += [f"else {_either(list(counts)[1:])}"] if mostly and len(counts) > 1 else []
        return ", ".join(told)

    def headline(self) -> str:
        """What was learnt from what."""
        facts = self.facts
        return (
            f"{facts['task']}: {facts['train_size']} examples to learn from, {facts['examples']} "
            f"to score, {facts['epochs']} epochs, {facts['seeds']} seeds; {len(self.table()) - 1} "
            "models beside the teacher"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Size and time against score, what is kept, and which answers flip."""
        costs = "megabytes of the model's file, on a logarithmic scale"
        if self._timed:
            costs = (
                "megabytes of the model's file, and the time for one text on a CPU as a share of "
                "the teacher's, on logarithmic scales"
            )
        pareto = (
            f"To the right: {costs}. Upwards: the score, times a hundred, with "
            "intervals over seeds and examples (of many models, of the teacher and on the grey "
            "line; figure `kept` has all). The dashed line is the teacher; the grey one goes "
            "through models that no other beats in both. Colours tell compressed models, those of "
            "the same shape without a teacher, and small pre-trained ones. Numbers that have no "
            "room are left out."
        )
        kept = (
            "What each model keeps of the teacher's score, and of what that has above a constant "
            "answer, over seeds and examples (without ends where it is not surely above); how many "
            "times less it is: parameters, bytes where numbers have fewer bits, parameters that "
            "are not zero where they are zeroed, as claims count them. Hollow diamonds are figures "
            "of the papers (Table 1 of the Primer), of another model and other tasks; ranges such "
            "as 94-100 have none."
        )
        flips = (
            "The share of examples that a model answers otherwise than the teacher, and how many "
            "more are right than before less those that are wrong now, in points; over seeds and "
            "examples. A score may stay while many answers change."
        )
        found = [
            Drawing("pareto", self._draw_pareto, pareto),
            Drawing("kept", self._draw_kept, kept),
        ]
        if np.isfinite(self.tables["losses"]["changed"].to_numpy(float)).any():
            found.append(Drawing("flips", self._draw_flips, flips))
        return found

    @property
    def _timed(self) -> bool:
        """Whether there are times of a CPU."""
        return bool(np.isfinite(self.table()["faster_1"].to_numpy(float)).any())

    def _draw_pareto(self) -> Figure:
        table, commands = self.table(), self.tables["commands"]
        score = [100 * table[c].to_numpy(float) for c in ("score", "score_low", "score_high")]
        panels = [Costs("megabytes on the disk", commands["bytes"].to_numpy(float) / 1e6)]
        note = f"Means over {self.facts['seeds']} seeds."
        if self._timed:
            times = 1 / table["faster_1"].to_numpy(float)
            panels.append(Costs("time for one text, teacher = 1", times))
            noise = table.loc[table["kind"] == TEACHER].iloc[0]
            ends = f"{noise['faster_1_low']:.2f} to {noise['faster_1_high']:.2f}"
            note += f" Against a copy of itself the teacher is {ends} times as fast: noise."
        return trade_offs(
            panels,
            (score[0], score[1], score[2]),
            list(table["row"]),
            [_KINDS[kind] for kind in table["kind"]],
            ylabel=f"{self.facts['judged']} × 100",
            marked=list(table["kind"]).index(TEACHER),
            title=f"What smaller models cost\n{self.about}",
            note=note,
        )

    def _draw_kept(self) -> Figure:
        table, losses = self.table(), self.tables["losses"]
        published = table["published_kept"].map(_first_number).to_numpy(float)
        sizes = table["published_smaller"].map(_first_number).to_numpy(float)
        kept = [100 * table[f"kept{end}"].to_numpy(float) for end in ("", "_low", "_high")]
        counted = [_counted(*row) for row in zip(table["row"], table["kind"], strict=True)]
        less = np.array([float(table[n].iloc[i]) for i, n in enumerate(counted)])
        panels = [
            Dots("score kept (%)", *kept, level=100.0, hollow=published, within=_SHOWN),
            Dots.of_columns(
                "kept above constant (%)", losses, "kept_above_constant", level=100.0, within=_SHOWN
            ),
            Dots("times less", less, less, less, hollow=sizes, ratios=True),
        ]
        own = {
            what: listed(n for n, c in zip(table["row"], counted, strict=True) if c == column)
            for column, what in _COUNTED.items()
            if column in counted
        }
        told = "".join(f"; {what} of {names}" for what, names in own.items())
        return interval_dots(
            panels,
            list(table["row"]),
            title=f"What smaller models keep\n{self.about}",
            note=f"Means over {self.facts['seeds']} seeds. Times less: parameters{told}. Hollow "
            "diamonds: published, of another model and other tasks. Arrows: the interval goes on.",
        )

    def _draw_flips(self) -> Figure:
        losses = self.tables["losses"]
        rows = losses[losses["row"] != TEACHER]
        panels = [
            Dots.of_columns("answers that changed (%)", rows, "changed", level=0.0),
            Dots.of_columns("more right answers (points)", rows, "net", level=0.0),
        ]
        return interval_dots(
            panels, list(rows["row"]), title=f"Which answers flip\n{self.about}", note=""
        )


def _either(names: Iterable[str]) -> str:
    """`a, b or c`; of many, the first ones."""
    told = list(names)
    if len(told) > _NAMED + 1:
        told = [*told[:_NAMED], f"one of {len(told) - _NAMED} more"]
    return " or ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def _counted(name: str, kind: str) -> str:
    """The column that tells how much less a row is; of methods as they are written, the file."""
    if name in ROWS:
        return ROWS[name].saves
    return "smaller" if kind == METHOD else "fewer"


def _first_number(text: object) -> float:
    """Of a published figure such as `98 (of BERT-large)`; a range such as `94-100` has none."""
    word = str(text).partition(" ")[0]
    try:
        return float(word)
    except ValueError:
        return math.nan


def _bounds(name: str, found: Estimate | None) -> dict[str, float]:
    ends = (math.nan,) * 3 if found is None else (found.value, found.low, found.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def tables_of(
    scores: CompressionScores,
    speeds: Mapping[tuple[str, str, int], Estimate],
    metrics: Sequence[str],
    commands: Mapping[str, str],
) -> dict[str, pd.DataFrame]:
    """All tables, rows in the order of the study."""
    import pandas as pd

    main, losses, told = list[dict[str, object]](), list[dict[str, object]](), []
    for name, row in scores.rows.items():
        published = row.published
        main.append(
            {"row": name, "kind": row.kind}
            | {n: scores.times(name, fact) for n, fact in SIZES.items()}
            | _bounds("score", scores.runs.score(name, scores.judged))
            | _bounds("kept", None if row.kind == TEACHER else scores.kept(name))
            | _speed_columns(name, speeds)
            | {
                f"published_{n}": "" if published is None else getattr(published, n)
                for n in ("smaller", "kept", "faster", "evaluated", "source")
            }
        )
        losses.append({"row": name} | _losses(scores, name))
        told.append(
            {"row": name, "title": row.title, "command": commands[name]}
            | {n: scores.mean(name, n) for n in ("bytes", "parameters", "nonzero")}
            | {n: scores.mean(name, n) for n in ("epochs", "seconds")}
        )
    return {
        "rows": pd.DataFrame(main),
        "losses": pd.DataFrame(losses),
        "speeds": speed_table(speeds),
        "commands": pd.DataFrame(told),
        "runs": scores.runs.runs("row", metrics),
    }


def _speed_columns(name: str, speeds: Mapping[tuple[str, str, int], Estimate]) -> dict[str, float]:
    """How many times as fast a row is on the CPU; and on the GPU, where rows were timed on one."""
    found = dict[str, float]()
    for size in (1, 32):
        found |= _bounds(f"faster_{size}", speeds.get((name, _CPU, size)))
    for gpu in dict.fromkeys(device for _, device, _ in speeds if device != _CPU):
        for size in (1, 32):
            found |= _bounds(f"gpu_faster_{size}", speeds.get((name, gpu, size)))
    return found


def _losses(scores: CompressionScores, name: str) -> dict[str, object]:
    """What is lost; of the teacher itself, nothing."""
    own = name == TEACHER
    flips = None if own else scores.flips(name)
    return {
        **_bounds("over_teacher", None if own else scores.over(name, TEACHER)),
        **_bounds("kept_above_constant", None if own else scores.kept(name, above=True)),
        **_bounds("over_alone", None if own else scores.over_alone(name)),
        **_bounds("changed", None if flips is None else flips.changed),
        "lost": math.nan if flips is None else flips.lost,
        "won": math.nan if flips is None else flips.won,
        **_bounds("net", None if flips is None else flips.net),
        "moved": math.nan if flips is None else flips.moved,
        "failed": int(scores.runs.collapsed(name).sum()),
    }

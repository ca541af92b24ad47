"""Compression table: what do smaller models keep of a fine-tuned model, and what do they save?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import ParameterError
from bertology.metrics import judged_metric
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Costs, Dots, trade_offs
from bertology.results.answers import NOTHING_SURE, listed, percent, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance, short_model
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.compression.compression_table.rows import (
    ALONE,
    METHOD,
    ROWS,
    SMALL,
    TEACHER,
    Row,
    alone_rows,
    named_files,
    read_rows,
    row_command,
    told_of,
)
from bertology.studies.compression.compression_table.runs import TableRun, Timed, timings
from bertology.studies.compression.compression_table.scores import (
    FEWEST,
    LEAST_SMALLER,
    CompressionScores,
    Picked,
    speed_table,
    speed_ups,
)
from bertology.studies.designs.scored_runs import ScoredRuns, answered, learnt_nothing
from bertology.studies.designs.tables import bounded
from bertology.studies.designs.task_trials import BARS, TaskTrials, same_training_data
from bertology.studies.designs.trials import Reach, reaching, split_part
from bertology.studies.study import Context

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.tuning import TuningJob


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
        flips = (
            "The share of examples that a model answers otherwise than the teacher, and how many "
            "more are right than before less those that are wrong now, in points; over seeds and "
            "examples. A score may stay while many answers change."
        )
        found = [
            Drawing("pareto", self._draw_pareto, pareto),
            self._draw_kept(),
        ]
        if np.isfinite(self.tables["losses"]["changed"].to_numpy(float)).any():
            losses = self.tables["losses"]
            rows = losses[losses["row"] != TEACHER]
            panels = [
                Dots.of_columns("answers that changed (%)", rows, "changed", level=0.0),
                Dots.of_columns("more right answers (points)", rows, "net", level=0.0),
            ]
            found.append(
                drawings.dots(
                    "flips",
                    panels,
                    rows["row"],
                    self.about,
                    title="Which answers flip",
                    caption=flips,
                )
            )
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

    def _draw_kept(self) -> Drawing:
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
        return drawings.dots(
            "kept",
            panels,
            table["row"],
            self.about,
            title="What smaller models keep",
            caption="What each model keeps of the teacher's score, and of what that has above a "
            "constant answer, over seeds and examples (without ends where it is not surely above); "
            "how many times less it is: parameters, bytes where numbers have fewer bits, "
            "parameters that are not zero where they are zeroed, as claims count them. Hollow "
            "diamonds are figures of the papers (Table 1 of the Primer), of another model and "
            "other tasks; ranges such as 94-100 have none.",
            note=f"Means over {self.facts['seeds']} seeds. Times less: parameters{told}. Hollow "
            "diamonds: published, of another model and other tasks. Arrows: the interval goes on.",
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
            | bounded("score", scores.runs.score(name, scores.judged))
            | bounded("kept", None if row.kind == TEACHER else scores.kept(name))
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
        found |= bounded(f"faster_{size}", speeds.get((name, _CPU, size)))
    for gpu in dict.fromkeys(device for _, device, _ in speeds if device != _CPU):
        for size in (1, 32):
            found |= bounded(f"gpu_faster_{size}", speeds.get((name, gpu, size)))
    return found


def _losses(scores: CompressionScores, name: str) -> dict[str, object]:
    """What is lost; of the teacher itself, nothing."""
    own = name == TEACHER
    flips = None if own else scores.flips(name)
    return {
        **bounded("over_teacher", None if own else scores.over(name, TEACHER)),
        **bounded("kept_above_constant", None if own else scores.kept(name, above=True)),
        **bounded("over_alone", None if own else scores.over_alone(name)),
        **bounded("changed", None if flips is None else flips.changed),
        "lost": math.nan if flips is None else flips.lost,
        "won": math.nan if flips is None else flips.won,
        **bounded("net", None if flips is None else flips.net),
        "moved": math.nan if flips is None else flips.moved,
        "failed": int(scores.runs.collapsed(name).sum()),
    }


TIMINGS = "timings"
STARTS, PLACES, _NONE = ("cut", "random"), ("cpu", "gpu"), "none"
_UNTIMED = "not judged: no times were measured on a CPU"
_DIVERGED = "not judged: the training of this row's first model diverged"
_NO_SMALL = (
    f"not judged: no row is a small model, at least {LEAST_SMALLER} times smaller (16 bits alone "
    "do not make one)"
)
_NO_STUDENT = (
    "not judged: no row is a student that stands beside its shape without a teacher (`--alone`)"
)
_TOO_FEW = f"not judged: the best is picked and scored on at least {FEWEST} examples"


@dataclass(frozen=True)
class CompressionTable(TaskTrials):
    """What do smaller models keep of a fine-tuned model's score, and what do they save?

    Method: for each seed the model is fine-tuned on the training split, and every row makes a
    smaller model of that teacher, as `bertology compress` does: a name (`pkd-half`, `q8bert`, …),
    which fits a published method to the model's size, or methods as they are written, several
    joined by `+` (`layer_choice:layers=6+int8`). All are scored on the corpus that is given, the
    validation split, which chooses nothing. Told are: how many times smaller the file is, and how
    many times fewer the parameters; which share of the teacher's score is kept, and the paired
    difference; which answers are others than the teacher's; and how many times as fast it is, one
    text at a time and in batches of 32. Times are those of the first seed's models, measured at the
    end on one machine, teacher and smaller model taking turns; the teacher against a copy of itself
    tells what is noise. A shape's times hang on the length of texts and hardly on the task, so that
    one task may be enough (`--times none` for others). Beside each row stands what Table 1 of the
    Primer says of its method.

    Every student has two baselines of its own shape, without a teacher: the layers that it begins
    with (or parts of them) of the model before fine-tuning, and random weights, trained on the
    labels for as many epochs as the longest of its students. Students that begin with a small
    pre-trained model (`soft_labels:start=FOLDER`) have that model itself, fine-tuned as it is, in
    place of both. `--small` names models that were pre-trained in that size, which are fine-tuned
    as they are. The best small model (16 bits alone do not make one), and the best student, are
    picked by the other half of the seeds and of the examples than they are scored on; they surely
    are worse than something only where every row is.

    Claims rest on accuracy (correlation for regressions and CoLA), and each on a row that was
    chosen before: its interval is that of this row alone, over seeds and examples. Sizes are
    counted, so that claims on them are plain comparisons; those on speed are over rounds. None is
    judged where the teacher does not surely beat a constant answer, and no claim that much is kept
    holds for a row that does not.

    Source: A Primer in BERTology (TACL 2020), section 7 and Table 1. Limits: published figures are
    of BERT-base (or large) over other tasks, data and machines; that a row is like its paper's
    method is not that it is the same: students learn from the task's data only, where some papers
    distil on text first, and every method has one setting. Zeros are stored in full: what they
    would save is told as parameters that are not zero. Speed is that of this machine and of
    PyTorch.
    """

    version: ClassVar[int] = 5  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = CompressionTableResult
    trains_models: ClassVar[bool] = True
    column: ClassVar[str] = "row"
    timed_parts: ClassVar[frozenset[str]] = frozenset({TIMINGS})

    methods: tuple[str, ...] = parameter(
        tuple(ROWS), "Rows: names of the docs page, or methods of `bertology compress`."
    )
    alone: tuple[str, ...] = parameter(
        STARTS,
        "Baselines without a teacher for each student's shape: cut (pre-trained layers), random; "
        "or none.",
    )
    small: tuple[str, ...] = parameter(
        (), "Small pre-trained models, which are fine-tuned as they are.", metavar="MODEL,…"
    )
    times: tuple[str, ...] = parameter(
        PLACES, "Where models are timed: cpu, gpu (if they are on one); or none."
    )
    rounds: int = parameter(7, "Rounds in which each model is timed.", minimum=3)
    threads: int = parameter(2, "Threads of the CPU for times.", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_rows(self.methods)
        for field, given, known in (
            ("alone", self.alone, STARTS), ("times", self.times, PLACES),
        ):  # fmt: skip
            odd = [name for name in given if name not in known]
            if given != (_NONE,) and (odd or len(set(given)) < len(given)):
                must = f"be some of {', '.join(known)}, no one twice, or {_NONE}"
                raise ParameterError(field, "CompressionTable", must, list(given))
        names = [_small_name(name) for name in self.small]
        if len(set(names)) < len(names):
            must = "name models with different names"
            raise ParameterError("small", "CompressionTable", must, list(self.small))

    @classmethod
    def enough_for(cls, quantities: Sequence[str]) -> dict[str, Any]:
        """The rows that they are of, and no baselines where none is asked for; the best of all."""
        if any(name.startswith("best") for name in quantities):
            return {}
        named = [r for r in ROWS.values() if any(n.startswith(r.quantity) for n in quantities)]
        named += [ROWS["soft-half"]] if any("_over_soft_half" in n for n in quantities) else []
        if not named:
            return {}
        starts = STARTS if any(n.endswith("_over_alone") for n in quantities) else (_NONE,)
        return {"methods": tuple(row.name for row in named), "alone": starts}

    # What there is to do ----------------------------------------------------------------------

    def rows(self, shape: Shape, corpus: Corpus) -> dict[str, Row]:
        """All rows by name, the teacher first; baselines follow."""
        numbers = corpus.task is not None and corpus.task.kind == "regression"
        asked = [r for r in read_rows(self.methods, shape) if not (numbers and r.classes_only)]
        found = [
            Row(TEACHER, "the fine-tuned model", kind=TEACHER),
            *alone_rows(asked, [s for s in self.alone if s != _NONE], self.epochs),
            *(Row(f"small-{_small_name(n)}", f"{_small_name(n)}, as it is", n, SMALL)
              for n in self.small),
        ]  # fmt: skip
        return {row.name: row for row in found}

    @property
    def variants(self) -> Sequence[str]:
        """Those that are asked for; how large students are depends on the model."""
        return [row.name for row in read_rows(self.methods)]

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """A run each, and times at the end."""
        named = [f"{name}-seed-{k}" for k in range(self.seeds) for name in self.rows(shape, corpus)]
        return named if self.times == (_NONE,) else [*named, TIMINGS]

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Methods must be known, and fit together and the model; and other models the task."""
        from bertology.model.encoder import Encoder
        from bertology.train.compress import read_methods
        from bertology.train.encoded import task_of
        from bertology.train.starts import begin, find_start

        super().check(encoder, corpus)
        if self.times == ("gpu",) and encoder.device.type != "cuda":
            must = f"have cpu or be {_NONE}, since the model is not on a GPU"
            raise ParameterError("times", "CompressionTable", must, list(self.times))
        for row in self.rows(encoder.shape, corpus).values():
            if row.kind == SMALL:
                begin(Encoder.load(row.text), task_of(corpus), find_start("pretrained"), seed=0)
            elif row.kind != TEACHER:
                read_methods(row.methods)[0].check_fit(encoder)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The training data, the small models, and files that methods name."""
        from bertology.model.encoder import Encoder

        known = super().ingredients(corpus) | named_files(read_rows(self.methods))
        return known | {f"small:{_small_name(n)}": Encoder.load(n).fingerprint for n in self.small}

    # The work ---------------------------------------------------------------------------------

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Make one model, or go on with it, and keep its answers; or time all of them."""
        reach, rows = reaching(context), self.rows(encoder.shape, corpus)
        with ExitStack() as stack:
            folder = context.trained or Path(stack.enter_context(TemporaryDirectory()))
            if part == TIMINGS:
                run = self._run(encoder, corpus, 0, folder)
                teacher, *others = rows.values()
                how = Timed(self.times, self.rounds, self.threads)
                return timings(run, teacher, others, how, reach)
            name, seed = split_part(part)
            run, row = self._run(encoder, corpus, seed, folder), rows[name]
            timed = not seed and self.times != (_NONE,)  # models of the first seed are
            found = self._answered(row, run, reach, keep=timed or _begins_another(row, rows))
        reach(BARS)
        return found

    def _run(self, encoder: Encoder, corpus: Corpus, seed: int, folder: Path) -> TableRun:
        from bertology.train.compress.settings import CompressSettings
        from bertology.train.starts import find_start
        from bertology.train.tuning import TuningJob

        train, start = self.load_train(corpus), find_start("pretrained")

        def tuning(base: Encoder) -> TuningJob:
            settings = self.settings(start, base.shape.hidden, seed)
            return TuningJob(base, train, corpus, start, settings)

        settings = CompressSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            rate=self.learning_rate,
            max_length=self.max_length,
            seed=seed,
        )
        return TableRun(encoder, train, corpus, settings, tuning, folder)

    def _answered(self, row: Row, run: TableRun, reach: Reach, *, keep: bool) -> xr.Dataset:
        from bertology.train.evaluate import baseline

        assert run.corpus.task is not None
        told = run.told(row, reach, keep=keep)
        return answered(
            {row.name: np.array(told.predictions)},
            run.corpus,
            run.train,
            kind=row.kind,
            title=row.title,
            text=row.text,
            alone=" ".join(row.alone),
            answers=run.corpus.task.kind,
            diverged=int(told.diverged),
            **told.numbers,
            **told_of(run.encoder, run.corpus),
            **{f"constant_{m}": s for m, s in baseline(run.train, run.corpus).items()},
        )

    # What it says -----------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """What is kept and saved, by row, with intervals; and the best of them."""
        runs = {name: part for name, part in measured.items() if name != TIMINGS}
        same_training_data(runs)
        facts = next(iter(runs.values())).attrs
        metrics = str(facts["metrics"]).split()
        judged = judged_metric(metrics)
        told: dict[str, list[Mapping[str, object]]] = {}
        for part, found in sorted(runs.items(), key=lambda item: split_part(item[0])[1]):
            told.setdefault(split_part(part)[0], []).append(found.attrs)
        rows = {name: _row(name, own[0]) for name, own in told.items()}
        scores = CompressionScores(
            ScoredRuns.read(runs, self.level, order=list(rows)),
            rows,
            told,
            judged,
            float(facts[f"constant_{judged}"]),
            facts["answers"] == "regression",
        )
        timed = measured.get(TIMINGS)
        speeds = {} if timed is None else speed_ups(timed["spent"], self.level)
        small, student = (scores.picked(n) for n in (scores.small(), scores.students()))
        evidence = _evidence(scores, speeds)
        evidence[BEST_SMALL] = None if small is None else scores.kept_by(small)
        evidence[BEST_STUDENT] = None if student is None else scores.best_over_alone(student)
        commands = {name: row_command(row, told[name][0], self) for name, row in rows.items()}
        if scores.learnt():
            unlearnt = _unlearnt(scores, {BEST_SMALL: small, BEST_STUDENT: student})
            evidence |= dict.fromkeys(unlearnt)
            reasons = _reasons(scores, evidence) | unlearnt
        else:
            reasons, evidence = dict.fromkeys(evidence, learnt_nothing([TEACHER])), {}
        return self.result(
            provenance,
            tables_of(scores, speeds, metrics, commands),
            evidence=evidence,
            reasons=reasons,
            facts={
                "task": facts["task"],
                "train_size": facts["train_size"],
                "judged": judged,
                "examples": len(scores.runs.labels),
                "epochs": self.epochs,
                "seeds": self.seeds,
                "threads": self.threads,
                "constant": scores.constant,
                **_picks(SMALL_PICKS, small),
                **_picks(STUDENT_PICKS, student),
            },
        )


def _small_name(model: str) -> str:
    """As names of rows and files take it: `runs/plain-4x156/model` is `plain-4x156-model`."""
    return short_model(model).replace("/", "-")


def _begins_another(row: Row, rows: Mapping[str, Row]) -> bool:
    """Whether another row goes on with this row's model."""
    many = len(row.methods)
    return any(len(o.methods) > many > 0 and o.methods[:many] == row.methods for o in rows.values())


def _row(name: str, told: Mapping[str, object]) -> Row:
    """A row as its parts tell of it, with what was published."""
    known = ROWS.get(name)
    return Row(
        name,
        str(told["title"]),
        str(told["text"]),
        str(told["kind"]),
        known.published if known else None,
        alone=tuple(str(told["alone"]).split()),
    )


def _picks(name: str, picked: Picked | None) -> dict[str, str]:
    """The row that was picked most often, and how often each was."""
    counts = {} if picked is None else picked.counts
    told = " ".join(f"{row}:{times}" for row, times in counts.items())
    return {name: next(iter(counts), ""), f"{name}{PICKS}": told}


def _reasons(scores: CompressionScores, evidence: Mapping[str, Estimate | None]) -> dict[str, str]:
    """Why there is no estimate of what there could be one of."""
    why = {
        BEST_SMALL: _TOO_FEW if scores.small() else _NO_SMALL,
        BEST_STUDENT: _TOO_FEW if scores.students() else _NO_STUDENT,
    }
    for name, row in scores.rows.items():
        lost = bool(scores.facts[name][0].get("diverged", 0))
        for what in ("faster", *SIZES):
            why[f"{row.quantity}_{what}"] = _DIVERGED if lost else _UNTIMED
    return {name: told for name, told in why.items() if evidence.get(name, scores) is None}


def _unlearnt(scores: CompressionScores, best: Mapping[str, Picked | None]) -> dict[str, str]:
    """Why quantities are not judged: rows that were trained, and learnt nothing.

    What a student is compared with need not have learnt: that nothing is learnt without a teacher
    is what is said of teachers.
    """
    of = {f"{row.quantity}_{what}": [name] for name, row in scores.rows.items()
          for what in ("kept", "over_alone")}  # fmt: skip
    of["pkd_half_over_soft_half"] = ["pkd-half"]
    of |= {quantity: picked.names for quantity, picked in best.items() if picked}
    known = scores.runs.predictions
    poor = {
        quantity: [name for name in names if name in known and scores.learnt_nothing(name)]
        for quantity, names in of.items()
    }
    return {quantity: learnt_nothing(names) for quantity, names in poor.items() if names}


def _evidence(
    scores: CompressionScores, speeds: Mapping[tuple[str, str, int], Estimate]
) -> dict[str, Estimate | None]:
    """What claims rest on: rows that have a name, which were chosen before."""
    found = dict[str, Estimate | None]()
    for name, row in scores.rows.items():
        if name not in ROWS or row.kind == ALONE:
            continue
        found[f"{row.quantity}_kept"] = scores.kept_surely(name)
        found[f"{row.quantity}_faster"] = speeds.get((name, "cpu", 1))
        for size, fact in SIZES.items():
            times = scores.times(name, fact)  # counted; nothing is drawn
            exact = Estimate(times, times, times, len(scores.facts[name]), unit="models")
            found[f"{row.quantity}_{size}"] = None if math.isnan(times) else exact
        if row.alone:
            found[f"{row.quantity}_over_alone"] = scores.over_alone(name)
    found["pkd_half_over_soft_half"] = scores.over("pkd-half", "soft-half")
    return found

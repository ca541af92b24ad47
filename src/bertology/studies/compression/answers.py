"""Answers: which examples of its task does a classifier answer right, and how surely?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import of_row, percent, plain
from bertology.results.compared import PERCENT, row_mean
from bertology.results.drawing import Drawing
from bertology.results.flips import ANSWERS
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.partial_means import partial_means
from bertology.studies.designs.blocks import Blocks
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import with_bounds
from bertology.studies.study import TASK, Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Example, Task
    from bertology.model.encoder import Encoder

ALL = "all examples"
_ERROR = "points of the label"
_MOST = 12  # kinds of examples in the figure
_SCORE = ("score", "score_low", "score_high")


class AnswersResult(Result):
    """What a classifier answers, example by example.

    Table `scores`: of all examples, of those with each label, of each group (such as a heuristic of
    HANS) and of each group with each label, the share that is answered right with its interval;
    where answers are numbers, how far they are from the right ones on average. Table `answers`:
    each example with its texts, the right answer, the model's, and the probability that the model
    gives it (`sure`).
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    @property
    def answer(self) -> str:
        """The score, and the kind of examples with the lowest one."""
        table = self.tables["scores"]
        whole, rest = table.iloc[0], table.iloc[1:]
        if self._numbers:
            return (
                f"Answers are {plain(of_row(whole, _SCORE), '.2g')} from the right ones on "
                f"average, in {len(self.tables[ANSWERS]):,} examples."
            )
        told = f"Right answers: {percent(of_row(whole, _SCORE))} of {int(whole['n']):,} examples"
        if rest.empty:
            return f"{told}."
        least = rest.iloc[int(rest["score"].argmin())]
        return f"{told}; fewest of {least['of']}: {percent(of_row(least, _SCORE))}."

    def drawings(self) -> Sequence[Drawing]:
        """The score of each kind of examples."""
        what = "how far answers are from the right ones" if self._numbers else "right answers"
        rows = self.tables["scores"].head(_MOST)
        scale = 1.0 if self._numbers else 100.0
        label = f"distance ({_ERROR})" if self._numbers else "right answers (%)"
        return [
            drawings.dots(
                "scores",
                [Dots.of_columns(label, rows, _SCORE[0], scale=scale)],
                [f"{of} ({n})" for of, n in zip(rows["of"], rows["n"], strict=True)],
                self.about,
                title="Answers by kind of example",
                caption=f"One row for all examples and one for each kind of them: {what}, with "
                "intervals over examples that hold for all rows together. Kinds are the data's: "
                f"labels, groups, and labels within groups (the first {_MOST} rows).",
                note="In brackets: how many examples.",
            )
        ]

    @property
    def _numbers(self) -> bool:
        return bool(self.facts["numbers"])


@dataclass(frozen=True)
class Answers(Blocks):
    """Which examples of its task does a classifier answer right, and how surely?

    Method: the classifier answers every example as it is; nothing is trained. Right answers are
    counted for all examples, for each label, for each group that the data tell apart, and for each
    label within a group. Over pairs that are made as HANS is, groups are the heuristics, and those
    that are not entailed show whether the model follows them. A model of inference with three
    labels may be asked pairs with two: neutral and contradicted is not entailed. Where answers are
    numbers, their distance from the right ones is averaged. Every answer is kept with its
    probability, so that `bertology report --compare` tells which examples two models answer
    differently. Intervals are over examples, and hold for all rows of the table together.

    Source: McCoy et al. (2019) for pairs that mislead; Hooker et al. (2019), "What do compressed
    deep neural networks forget?", for examples that change. Limits: the probability of an answer
    is not how often such answers are right. Examples of one template are alike, so that intervals
    over other templates would be wider.
    """

    needs: ClassVar[Needs] = Needs(fields=frozenset({"label"}), head="classification", task=True)
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = AnswersResult
    compared_over: ClassVar[tuple[str, ...]] = (TASK, "grammar-heuristics")
    fewest: ClassVar[int] = 2
    block: ClassVar[int] = 2048
    fills_gpu: ClassVar[bool] = True

    def task_for(self, encoder: Encoder, corpus: Corpus) -> Task | None:
        """Three labels where the data tell two of inference, and the model three."""
        from bertology.data.tasks import THREE_WAY, has_neutral, is_inference

        outputs = getattr(encoder.model.config, "num_labels", None)
        if outputs != len(THREE_WAY) or not is_inference(corpus) or has_neutral(corpus):
            return corpus.task
        assert corpus.task is not None
        # Models differ in the order of the three: only names can tell which is which.
        return replace(corpus.task, labels=THREE_WAY, ordered=False)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Answers must be classes or numbers."""
        from bertology.train.encoded import task_of

        super().check(encoder, corpus)
        task_of(corpus)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Probabilities of all labels, or numbers, of one block of examples."""
        import xarray as xr

        from bertology.train.answers import encode_for, outputs

        block, task = self.of_block(part, corpus), self.task_for(encoder, corpus)
        assert task is not None
        assert corpus.task is not None
        encoded = encode_for(encoder, replace(block, task=task))
        said = outputs(encoder, encoded, task, batch_tokens=context.batch_tokens)
        if len(task.labels) > len(corpus.task.labels):
            said = _in_two(said, corpus.task)
        context.advance(len(block))
        return xr.Dataset(
            {
                "said": (("example", "label"), said),
                "right": ("example", np.array([float(e.get("label")) for e in block])),
                "id": ("example", np.array([e.id for e in block], dtype=str)),
                "texts": ("example", np.array([" | ".join(e.texts) for e in block], dtype=str)),
                "group": ("example", np.array([_group(e) for e in block], dtype=str)),
            },
            coords={"label": list(corpus.task.labels) or ["number"]},
            attrs={"numbers": int(corpus.task.kind == "regression")},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores of all kinds of examples, and the table of answers."""
        import pandas as pd

        seen = _Seen.of(list(in_order(measured)))
        rows = {of: np.where(those, seen.scores, np.nan) for of, those in seen.kinds()}
        share = not seen.numbers
        found = partial_means(
            np.stack(list(rows.values())),
            within=(0.0, 1.0 if share else np.inf),
            support=(0.0, 1.0) if share else None,
            level=self.level,
            among=len(rows),
        )
        scores = pd.DataFrame(
            {"of": list(rows), "n": found.n, **with_bounds("score", found, p=False)}
        )
        return self.result(
            provenance,
            {"scores": scores, ANSWERS: seen.table()},
            facts={"numbers": int(seen.numbers), "examples": len(seen.right)},
            compared=[
                row_mean(
                    f"{seen.opening}{of}", values, level=self.level,
                    unit=PERCENT if share else _ERROR,
                )
                for of, values in rows.items()
            ],
        )  # fmt: skip


@dataclass(frozen=True)
class _Seen:
    """What was measured of all examples."""

    said: NDArray[np.float64]  # (N, labels): probabilities, or one number
    right: NDArray[np.float64]
    id: NDArray[np.str_]
    texts: NDArray[np.str_]
    group: NDArray[np.str_]
    labels: Sequence[str]
    numbers: bool

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> _Seen:
        names = ("said", "right", "id", "texts", "group")
        joined = [np.concatenate([part[n].to_numpy() for part in parts]) for n in names]
        labels = [str(label) for label in parts[0]["label"].to_numpy()]
        said, right, id, texts, group = joined
        numbers = bool(parts[0].attrs["numbers"])
        return cls(said, right, id, texts, group, labels, numbers)

    @property
    def opening(self) -> str:
        """How titles of numbers begin."""
        return "distance from the right answer, " if self.numbers else "right answers, "

    @property
    def scores(self) -> NDArray[np.float64]:
        """Of each example: whether it is right, or how far away."""
        if self.numbers:
            return np.abs(self.said[:, 0] - self.right)
        return np.asarray(self.said.argmax(-1) == self.right, dtype=np.float64)

    def kinds(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Names of kinds of examples, and which ones are of the kind."""
        whole = np.ones(len(self.right), dtype=bool)
        groups = [str(g) for g in dict.fromkeys(self.group) if g]
        by_label = [] if self.numbers else [(n, self.right == i) for i, n in enumerate(self.labels)]
        yield ALL, whole
        yield from by_label
        for group in groups:
            of = self.group == group
            yield group, of
            for name, rows in by_label:
                if (of & rows).any() and not (of <= rows).all():
                    yield f"{group}, {name}", of & rows

    def table(self) -> pd.DataFrame:
        """Each example with what is right, and what was said."""
        import pandas as pd

        if self.numbers:
            right, said, sure = self.right, self.said[:, 0], np.full(len(self.right), np.nan)
        else:
            names = np.array(self.labels, dtype=object)
            right, said = names[self.right.astype(int)], names[self.said.argmax(-1)]
            sure = self.said.max(-1)
        columns = {"id": self.id.astype(object), "texts": self.texts.astype(object)}
        return pd.DataFrame({**columns, "right": right, "answer": said, "sure": sure})


def _group(example: Example) -> str:
    return str(example.annotations.get("group") or "")


def _in_two(said: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
    """(N, 3) in the order of THREE_WAY to (N, 2) in the order of the task's labels.

    The answer is the likeliest of the three: neutral and contradicted may each be less likely than
    entailed, and likelier together. So the likelier of the two stands for what is not entailed.
    """
    from bertology.data.tasks import plain_name

    entailed, other = said[:, 0], said[:, 1:].max(-1)
    both = [entailed if plain_name(label) == "entailment" else other for label in task.labels]
    return np.stack(both, axis=1)

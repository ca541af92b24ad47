"""Reasoning chains: are answers found that follow from one statement, and from several?"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.data.clozes import MASK
from bertology.errors import DataError
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.least_means import least_means
from bertology.studies.designs.clozes import ClozeStudy, read_by_a_lens, too_long
from bertology.studies.designs.layer_lines import Line, line_measures
from bertology.studies.designs.parts import in_order, start_of
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from numpy.typing import ArrayLike, NDArray

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder


# What was answered in chains of statements, by version of the text and number of steps.
#
# A version is what stands before the question: all statements, only those of a short text, the same
# words in random order, or nothing. An answer is right if the statements make the right candidate
# likelier than the others, beyond what the question alone makes of them; `plain` is without this.


ALL, SHORT, MIXED, NONE = "all statements", "short text", "words mixed", "no statements"
VERSIONS = (ALL, SHORT, MIXED, NONE)
_BETWEEN = re.compile(r"(?<=[.!?])\s+")


def texts_of(example: Example, seed: int) -> dict[str, str]:
    """The text in each version that it has."""
    sentences = _BETWEEN.split(example.text.strip())
    at = next((i for i, sentence in enumerate(sentences) if MASK in sentence), 0)
    before, question = sentences[:at], " ".join(sentences[at:])
    found = {ALL: example.text}
    if not before:
        return found
    if kept := example.annotations.get("short"):
        found[SHORT] = " ".join([*(before[i] for i in kept), question])
    words = " ".join(before).split()
    # By the statements, so that all questions about them see the same disorder.
    random.Random(f"{seed}-{' '.join(before)}").shuffle(words)
    return found | {MIXED: f"{' '.join(words)} {question}", NONE: question}


@dataclass(frozen=True)
class ChainScores:
    """All questions (N), by version (V) and reading (R)."""

    plain: NDArray[
        np.float64
    ]  # (V, N, R) 1 right, 0 wrong, between: equally likely; NaN: not asked
    raised: NDArray[np.float64]  # the same, beyond what the question alone makes likely
    chance: NDArray[np.float64]
    steps: NDArray[np.int64]  # 0: not known
    group: NDArray[np.str_]
    item: NDArray[np.str_]

    @classmethod
    def of(cls, parts: Sequence[xr.Dataset]) -> ChainScores:
        """All parts together."""
        plain, raised = (
            _right(np.concatenate([part[name].to_numpy() for part in parts], axis=1))
            for name in ("plain", "raised")
        )
        others = ("chance", "steps", "group", "item")
        return cls(
            plain, raised, *(np.concatenate([part[n].to_numpy() for part in parts]) for n in others)
        )

    @property
    def told(self) -> list[int]:
        """Numbers of steps; empty where the corpus does not tell them."""
        return sorted({int(n) for n in self.steps if n > 0})

    @property
    def groups(self) -> list[str]:
        """Kinds of questions, in the order in which they come."""
        return list(dict.fromkeys(map(str, self.group)))

    def judged(self, version: str = ALL) -> NDArray[np.float64]:
        """(N, R) raised where there is a question alone to compare with; else plain."""
        at = VERSIONS.index(version)
        found: NDArray[np.float64] = np.where(
            np.isnan(self.raised[at]), self.plain[at], self.raised[at]
        )
        return found

    def by_item(
        self, values: NDArray[np.float64], among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """(R, items) means over the questions of an item; NaN where it has none of them."""
        _, item = np.unique(self.item, return_inverse=True)
        there = np.isfinite(values) & (True if among is None else among[:, None])
        found = np.full((values.shape[1], item.max() + 1), np.nan)
        for r in range(values.shape[1]):
            n = np.bincount(item, there[:, r], minlength=found.shape[1])
            total = np.bincount(item, np.where(there[:, r], values[:, r], 0.0), found.shape[1])
            found[r, n > 0] = total[n > 0] / n[n > 0]
        return found

    def drops(self, values: NDArray[np.float64], among: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Values of items whose mean is the drop by one step more, and whose spread is its own.

        The drop is the slope of least squares over all questions; what each item adds to its error
        is what makes the interval, so that questions of an item count as one observation.
        """
        known = among & np.isfinite(values) & (self.steps > 0)
        x, y = self.steps[known].astype(float), (values - self.chance)[known]
        if len(np.unique(x)) < 2:
            return np.empty(0)
        away = x - x.mean()
        slope = float(away @ y / (away @ away))
        errors = away * (y - y.mean() - slope * away) / (away @ away)
        _, item = np.unique(self.item[known], return_inverse=True)
        found = np.bincount(item, errors).astype(np.float64)
        return -slope - len(found) * found


def _right(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    right = (margins > 0) + 0.5 * (margins == 0)
    return np.where(np.isnan(margins), np.nan, right)


EVERY = "all"
_SIDES = ("accuracy", "accuracy_low", "accuracy_high")
_READING = "High: read from this layer, the head already gives what follows."
_LINES = {  # columns of the table of layers
    "fewest": Line(
        "Questions of the fewest steps whose right answer the statements make likelier",
        "fewest steps",
        _READING,
    ),
    "more": Line("The same with more steps", "more steps", _READING),
}


class ReasoningChainsResult(Result):
    """How often answers are right, by number of steps.

    Table `steps`: accuracy by kind of question, version of the text and number of steps, `plain`
    being without what the question alone makes likely; `drops`: what one step more costs in each
    version; `layers`: accuracy with the fewest steps and with more.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "steps": {"accuracy": "%", "plain": "%", "chance": "%"},
        "drops": {"drop": "points"},
        "layers": dict.fromkeys(_LINES, "%"),
    }

    @property
    def answer(self) -> str:
        """Accuracy with the fewest and the most steps, and the drop by step."""
        rows = self.tables["steps"]
        rows = rows[(rows["group"] == EVERY) & (rows["version"] == ALL)]
        fewest = of_row(rows.iloc[0], _SIDES)
        chance = f"chance: {100 * rows['chance'].iloc[0]:.0f} %"
        shown = percent(fewest, ".1f", limits=(float(rows["chance"].iloc[0]),))
        if len(rows) < 2:
            return f"The right answer is found in {shown} of questions ({chance})."
        one = self.evidence().get("one_step_gain")
        sure = one is not None and one.low > 0
        most, last = int(rows["steps"].iloc[-1]), of_row(rows.iloc[-1], _SIDES)
        text = (
            f"{'Surely' if sure else 'Not surely'} above chance with "
            f"{_steps(int(rows['steps'].iloc[0]))}: {shown} of questions are answered right "
            f"({chance}), and {percent(last, '.1f', limits=(0.5,))} with {_steps(most)}"
        )
        if (drop := self.evidence().get("step_drop")) is not None:
            return f"{text}; each step costs {points(drop)}."
        return f"{text}."

    def measures(self) -> Sequence[Measure]:
        """Accuracy by layer; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], _LINES, of="chains")

    def drawings(self) -> Sequence[Drawing]:
        """Accuracy by steps in each version, and by layer."""
        found = [self._draw_steps()]
        return [*found, *read_by_a_lens(self, _LINES, "Chains of statements")]

    def _draw_steps(self) -> Drawing:
        rows = self.tables["steps"]
        keys = list(dict.fromkeys(zip(rows["group"], rows["steps"], strict=True)))
        panels = []
        for version in VERSIONS:
            some = rows[rows["version"] == version].set_index(["group", "steps"]).reindex(keys)
            if version != NONE and some["accuracy"].notna().any():
                label = f"{version} (%)"
                panels.append(Dots.of_columns(label, some, "accuracy", hollow="chance"))
        return drawings.dots(
            "steps",
            panels,
            [f"{group}, {_steps(int(n))}" if n else str(group) for group, n in keys],
            self.about,
            title="Answers that follow from statements",
            caption="One row for each kind of question and number of steps: the per cent of "
            "answers that are right, given all statements, a short text without those that are not "
            "needed, and the same words in random order. Intervals hold for all dots together; "
            "diamonds are chance.",
            note="Diamonds: chance. Intervals hold for all dots together.",
        )


@dataclass(frozen=True)
class ReasoningChains(ClozeStudy):
    """Are answers found that follow from one statement, and what does each further step cost?

    Method: statements come before a question with a blank and a few candidates. An answer counts
    as right if the statements make the right candidate likelier than the others, beyond what the
    question alone makes of them (`plain` is without this); equal ones share. The cost of a step is
    the slope of accuracy over the number of statements that an answer takes. Texts of the bundled
    chains are equally long whatever the steps, so that the cost is not that of longer texts; short
    texts without idle statements stand beside. Controls: the words of all statements in random
    order, and the question alone. Intervals are over items (statements with all their questions).
    The cost is judged only where the fewest steps are surely above chance and above mixed words.

    Source: the question is of Zhou et al. (2020) and Richardson and Sabharwal (2019), as the survey
    of Rogers et al. (2020) tells it; texts and method are ours. Limits: a model at chance from two
    steps on drops, too. Where all statements and question are one sentence, as in oLMpics, there
    are no controls and accuracy is plain. Only grammar-chains tells which statements a short text
    keeps.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "answer", "candidates"}),
        capabilities=frozenset({"residual"}),
        head="mlm",
    )
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = ReasoningChainsResult
    block: ClassVar[int] = 500
    fills_gpu: ClassVar[bool] = True

    def shown(self, corpus: Corpus) -> Corpus:
        """As many questions as asked for, but whole items."""
        if len(corpus) <= self.examples:
            return corpus
        items: dict[str, list[int]] = {}
        for i, example in enumerate(corpus.examples):
            items.setdefault(_item(example, i), []).append(i)
        order = list(items)
        random.Random(self.seed).shuffle(order)
        drawn: list[int] = []
        for name in order:
            if drawn and len(drawn) + len(items[name]) > self.examples:
                break
            drawn += items[name]
        examples = [corpus.examples[i] for i in sorted(drawn)]
        return replace(corpus, examples=examples, origin={}, drawn_from=len(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """By how much the right candidate is likelier, by version and layer."""
        import xarray as xr

        from bertology.model.masked_lm.questions import Question

        block, layers = self.of_block(part, corpus), self.readings(encoder)
        asked = []
        for at, example in enumerate(block):
            given = _candidates(example)
            for version, text in texts_of(example, self.seed).items():
                asked.append((VERSIONS.index(version), at, Question(text, given)))
        over = too_long(encoder, [f"{q.text} {max(q.candidates, key=len)}" for *_, q in asked])
        asked = [one for i, one in enumerate(asked) if i not in over]
        margins = np.full((2, len(VERSIONS), len(block), layers), np.nan)
        scores: dict[tuple[int, int], NDArray[np.float64]] = {}
        answers = self.engine(encoder, corpus, context).answers(q for *_, q in asked)
        for (number, at, _), answer in zip(asked, answers, strict=True):
            scores[number, at] = answer.scores
        alone_at = VERSIONS.index(NONE)
        for (number, at), found in scores.items():
            right = np.isin(block[at].get("candidates"), block[at].get("answer"))
            margins[0, number, at] = _margin(found, right)
            alone = scores.get((alone_at, at))
            if alone is not None and number != alone_at:
                margins[1, number, at] = _margin(found - alone, right)
        context.advance(len(block))
        known = [np.isin(e.get("candidates"), e.get("answer")) for e in block]
        first = start_of(part)
        return xr.Dataset(
            {
                "plain": (("version", "example", "layer"), margins[0]),
                "raised": (("version", "example", "layer"), margins[1]),
                "chance": ("example", [right.mean() for right in known]),
                "steps": ("example", [int(e.annotations.get("steps") or 0) for e in block]),
                "group": ("example", [str(e.annotations.get("group") or EVERY) for e in block]),
                "item": ("example", [_item(e, first + i) for i, e in enumerate(block)]),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Accuracies, the cost of a step, and whether it can be judged."""
        found = ChainScores.of(list(in_order(measured)))
        one, drop, reason = self._evidence(found)
        return self.result(
            provenance,
            {
                "steps": self._steps(found),
                "drops": self._drops(found),
                "layers": self._layers(found),
            },
            evidence={"one_step_gain": one, "step_drop": drop},
            reasons={
                "one_step_gain": "not judged: the corpus does not tell how many steps answers take",
                "step_drop": reason,
            },
            facts={
                "questions": len(found.steps),
                "items": len(np.unique(found.item)),
                "too_long": int(np.isnan(found.plain[0, :, -1]).sum()),
                "lens": self.lens,
            },
        )

    def _evidence(self, found: ChainScores) -> tuple[Estimate | None, Estimate | None, str]:
        """What is found with the fewest steps, what a step more costs, or why it is not judged."""
        if not found.told:
            return None, None, "not judged: the corpus does not tell how many steps answers take"
        fewest = found.steps == found.told[0]
        right, mixed = (found.judged(version)[:, -1:] for version in (ALL, MIXED))
        gain, control = (
            self._mean(found.by_item(of, fewest)[-1])
            for of in (right - found.chance[:, None], right - mixed)
        )
        if gain is None:
            return None, None, "not judged: too few questions of the fewest steps"
        one = gain.with_controls(
            {} if control is None else {"the same words in random order": control}
        )
        rows_of_drop = found.drops(right[:, 0], np.ones(len(fewest), bool))
        if len(rows_of_drop) < 2:
            return one, None, "not judged: all answers take the same number of steps"
        if not one.surely_there:
            return one, None, (
                f"not judged: with {_steps(found.told[0])} answers are not surely above chance and "
                "above mixed words, so that there is nothing to drop from"
            )  # fmt: skip
        drop = self.means(rows_of_drop[None]).estimate(0)
        return one, None if drop is None else drop.counting("items"), ""

    def _mean(self, row: NDArray[np.float64]) -> Estimate | None:
        """Over items; None of one."""
        known = row[np.isfinite(row)]
        if len(known) < 2:
            return None
        of = least_means([known[None]], level=self.level)
        return Estimate(of.value[0], of.low[0], of.high[0], int(of.n[0]), self.level, "items")

    def _steps(self, found: ChainScores) -> pd.DataFrame:
        """One row for each kind, version and number of steps, with bounds for all rows together."""
        import pandas as pd

        labels, rows = [], []
        for group, some in _groups(found):
            for at, version in enumerate(VERSIONS):
                for steps in found.told or [0]:
                    among = some & (found.steps == steps)
                    plain = found.plain[at, :, -1:]
                    if not np.isfinite(plain[among]).any():
                        continue
                    labels.append(
                        (group, version, steps, int(np.isfinite(plain[among]).sum()),
                         float(found.chance[among].mean()))
                    )  # fmt: skip
                    judged = found.judged(version)[:, -1:]
                    rows.append([found.by_item(x, among)[0] for x in (judged, plain)])
        means = self.means(np.concatenate(rows), within=(0, 1), support=(0, 1))
        table = pd.DataFrame(labels, columns=["group", "version", "steps", "n", "chance"])
        bounds = with_bounds("accuracy", means, p=False)
        table = table.assign(**{name: np.asarray(of)[::2] for name, of in bounds.items()})
        return table.assign(plain=means.value[1::2])

    def _drops(self, found: ChainScores) -> pd.DataFrame:
        """What one step more costs, by kind and version."""
        import pandas as pd

        rows = []
        for group, some in _groups(found):
            for version in VERSIONS[:-1]:
                drops = found.drops(found.judged(version)[:, -1], some)
                if len(drops) > 1:
                    means = self.means(drops[None])
                    ends = means.low[0], means.high[0]
                    rows.append((group, version, len(drops), means.value[0], *ends))
        columns = ["group", "version", "items", "drop", "drop_low", "drop_high"]
        return pd.DataFrame(rows, columns=columns)

    def _layers(self, found: ChainScores) -> pd.DataFrame:
        fewest = found.steps == (found.told[0] if found.told else 0)
        columns: dict[str, ArrayLike] = {}
        for name, among in (("fewest", fewest), ("more", ~fewest)):
            if among.any():
                means = self.means(
                    found.by_item(found.judged(), among), within=(0, 1), support=(0, 1)
                )
                columns |= with_bounds(name, means, p=False)
        return labelled_table({"layer": range(found.plain.shape[2])}, columns)


def _groups(found: ChainScores) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """All questions, then each kind where there are several."""
    yield EVERY, np.ones(len(found.group), bool)
    if len(found.groups) > 1:
        yield from ((group, found.group == group) for group in found.groups)


def _margin(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(R,) of scores (R, C): by how much the best right candidate is above the best other."""
    found: NDArray[np.float64] = scores[:, right].max(axis=1) - scores[:, ~right].max(axis=1)
    return found


def _candidates(example: Example) -> tuple[str, ...]:
    given = tuple(str(word) for word in example.get("candidates"))
    right = set(example.get("answer"))
    if not right & set(given) or not set(given) - right:
        raise DataError(
            f"The candidates of {example.id!r} must hold a right answer and a wrong one; they are "
            f"{', '.join(given) or 'none'}.",
            hint="Give 'candidates' and 'answer', such as [taller, shorter] and [taller].",
        )
    return given


def _item(example: Example, number: int) -> str:
    return str(example.annotations.get("item") or f"question {number:06d}")


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"

"""Number words: does the model know how many legs a bird has?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.studies.designs.clozes import ClozeStudy, question_of, read_by_a_lens
from bertology.studies.designs.layer_lines import Line, line_measures
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from numpy.typing import ArrayLike

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.stats import Estimate

_GUESSES = (1, 3)
PLAIN, CALIBRATED, MAJORITY = "as they are", "less liked everywhere", "most frequent answers"
_LINES = {  # columns of the table of layers
    column: Line(
        f"Right number words, scores {label}",
        label,
        "High: read from this layer, the head already gives the right number.",
    )
    for column, label in (("first", PLAIN), ("calibrated", CALIBRATED))
}
_ALL = "all"


class NumberWordsResult(Result):
    """How often the right number word is the likeliest.

    Table `accuracy`: the share of sentences whose answer is the first, or among the first three, of
    the candidates, by `score`: the model's as they are, less what each word gets in other
    sentences, and the most frequent answers of other sentences; of all sentences, and by answer;
    `layers`: the same of all, by layer.
    """

    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "accuracy": {"share": "%"},
        "layers": {"first": "%", "calibrated": "%"},
    }

    @property
    def answer(self) -> str:
        """The share of right words, beside the most frequent one."""
        found = self.evidence()
        first, gain = found["accuracy_at_1"], found["gain_over_majority"]
        sure = (
            "Surely more" if gain.low > 0 else "Surely less" if gain.high < 0 else "Not surely more"
        )
        return (
            f"{sure} than by frequency: the right number word is the likeliest in "
            f"{percent(first, '.1f')} of sentences; against always the most frequent one that is "
            f"{points(gain)}."
        )

    def measures(self) -> Sequence[Measure]:
        """By layer; nothing where only the model itself was asked."""
        return line_measures(self.tables["layers"], _LINES, of="number-words")

    def drawings(self) -> Sequence[Drawing]:
        """By answer, and by layer."""
        found = [self._answers()]
        return [*found, *read_by_a_lens(self, _LINES, "Number words")]

    def _answers(self) -> Drawing:
        table = self.tables["accuracy"]
        panels = []
        for k in _GUESSES:
            own, other = (
                table[(table["k"] == k) & (table["score"] == score)]
                for score in (PLAIN, CALIBRATED)
            )
            sides = (100 * own[f"share{end}"].to_numpy() for end in ("", "_low", "_high"))
            label = "the likeliest (%)" if k == 1 else f"among the first {k} (%)"
            panels.append(Dots(label, *sides, hollow=100 * other["share"].to_numpy()))
        return drawings.dots(
            "answers",
            panels,
            [f"{row.answer} ({row.n})" for row in own.itertuples()],
            self.about,
            title="Right number words",
            caption="The per cent of sentences whose number word is the likeliest of the "
            "candidates, and among the first three, by what the right word is. Diamonds: scores "
            "less what each word gets in other sentences, so that words that are liked everywhere "
            "gain nothing. Intervals hold for all rows together.",
            note="Diamonds: less what each word gets in other sentences. In brackets: sentences.",
        )


@dataclass(frozen=True)
class NumberWords(ClozeStudy):
    """Does the model know how many legs a bird has?

    Method: sentences lack a number word. The log-probabilities of all candidates (no, zero, one …
    ten) are compared, and a sentence counts if its answer is the first, or among the first three.
    Words that are liked everywhere gain by it; so scores are also taken less the mean that each
    word gets in the other half of the sentences. Always the most frequent answers of the other half
    are the baseline. By layer, the head reads the states of each. Intervals are over sentences.

    Source: Lin et al. (2020), "Birds Have Four Legs?! NumerSense". Limits: answers of the corpus
    come from sentences people wrote, in which other numbers may be true as well. A candidate of
    several pieces is filled from the left.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "answer", "candidates"}),
        capabilities=frozenset({"residual"}),
        head="mlm",
    )
    version: ClassVar[int] = 2  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = NumberWordsResult
    fills_gpu: ClassVar[bool] = True

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """All sentences must have the same candidates, the answer among them."""
        super().check(encoder, corpus)
        first = tuple(corpus[0].get("candidates"))
        for example in corpus:
            if tuple(example.get("candidates")) != first:
                raise DataError(
                    f"Example {example.id!r} has other candidates than the first of "
                    f"{corpus.name!r}. All must have the same ones.",
                    hint="Give numersense.",
                )
            if example.get("answer")[0] not in first:
                raise DataError(
                    f"The answer of example {example.id!r} is not among its candidates.",
                    hint=f"Candidates are {', '.join(first)}.",
                )

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Log-probabilities of all candidates, by layer."""
        import xarray as xr

        block = self.of_block(part, corpus)
        found = self.engine(encoder, corpus, context).answers(question_of(e) for e in block)
        scores = np.stack([answer.scores.T for answer in found])  # (N, C, R)
        context.advance(len(block))
        return xr.Dataset(
            {
                "score": (("example", "candidate", "layer"), scores),
                "answer": ("example", [str(e.get("answer")[0]) for e in block]),
            },
            coords={"candidate": [str(word) for word in block[0].get("candidates")]},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares of right words, beside the most frequent ones."""
        parts = list(in_order(measured))
        words = parts[0]["candidate"].to_numpy().tolist()
        scores = np.concatenate([part["score"].to_numpy() for part in parts])
        told = np.concatenate([part["answer"].to_numpy() for part in parts])
        right = np.array([words.index(word) for word in told.tolist()])
        frequent = _frequencies(right, len(words))[..., None]
        asked = {PLAIN: scores, CALIBRATED: _calibrated(scores), MAJORITY: frequent}
        hits = {(n, k): _hits(of, right, k)[:, -1] for n, of in asked.items() for k in _GUESSES}
        evidence = {f"accuracy_at_{k}": self._mean(hits[PLAIN, k]) for k in _GUESSES} | {
            "gain_over_majority": self._mean(hits[PLAIN, 1] - hits[MAJORITY, 1], -1.0),
            "calibration_gain": self._mean(hits[CALIBRATED, 1] - hits[PLAIN, 1], -1.0),
        }
        columns: dict[str, ArrayLike] = {}
        for name, score in (("first", PLAIN), ("calibrated", CALIBRATED)):
            of_layers = _hits(asked[score], right, 1).T
            means = self.means(of_layers, within=(0, 1), support=(0, 1))
            columns |= with_bounds(name, means, p=False)
        return self.result(
            provenance,
            {
                "accuracy": self._by_answer(hits, told, words),
                "layers": labelled_table({"layer": range(scores.shape[2])}, columns),
            },
            evidence=evidence,
            facts={"sentences": len(right), "lens": self.lens},
        )

    def _mean(self, values: Floats, lowest: float = 0.0) -> Estimate | None:
        support = (lowest, 1.0)
        found = self.means(values[None], within=support, support=support).estimate(0)
        return None if found is None else found.counting("sentences")

    def _by_answer(
        self,
        hits: Mapping[tuple[str, int], Floats],
        told: NDArray[np.str_],
        words: Sequence[str],
    ) -> pd.DataFrame:
        import pandas as pd

        rows, values = [], []
        for answer in (_ALL, *(word for word in words if (told == word).sum() > 1)):
            own = np.full(len(told), True) if answer == _ALL else told == answer
            for (score, k), of in hits.items():
                rows.append({"answer": answer, "score": score, "k": k, "n": int(own.sum())})
                values.append(np.where(own, of, np.nan))
        means = self.means(np.stack(values), within=(0, 1), support=(0, 1))
        table = pd.DataFrame(rows)
        for name, column in with_bounds("share", means, p=False).items():
            table[name] = np.asarray(column)
        return table


def _hits(scores: Floats, right: NDArray[np.int64], k: int) -> Floats:
    """(N, R): whether the answer is among the first k; of equal ones, as often as chance gives."""
    own = np.take_along_axis(scores, right[:, None, None], axis=1)  # (N, 1, R)
    above, equal = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
    found: Floats = np.clip((k - above) / equal, 0.0, 1.0)
    return found


def _calibrated(scores: Floats) -> Floats:
    """Scores less what each word gets in the other half of the sentences."""
    found, second = scores.copy(), np.arange(len(scores)) % 2 == 1
    for half in (second, ~second):
        if (~half).any():
            found[half] -= scores[~half].mean(axis=0)
    return found


def _frequencies(right: NDArray[np.int64], words: int) -> Floats:
    """(N, words): how often each is the answer in the other half of the sentences."""
    found, second = np.zeros((len(right), words)), np.arange(len(right)) % 2 == 1
    for half in (second, ~second):
        found[half] = np.bincount(right[~half], minlength=words)
    return found

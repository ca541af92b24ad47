"""Attention distractors: does a verb attend to its subject rather than to other nouns?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertology.arrays import Floats
from bertology.errors import DataError
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.best_of_many import picked_on_other_half
from bertology.stats.contrasts import difference_within
from bertology.stats.grouped import Answers, grouped_mean
from bertology.studies.designs.blocks import Tagged
from bertology.studies.designs.parts import Gathered, gather
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import head_table, labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus, Example
    from bertology.data.words.dependencies import Dependency
    from bertology.model.encoder import Encoder

ALL = "all"
LEAST = 0.001  # a share below counts as this much: the logarithm of nothing has no end
FEW = 10  # sentences of a kind, below which it has no row
_KEPT = (
    "share", "elsewhere", "first", "layer_share", "better", "choices", "kind", "form", "nearest",
    "frame",
)  # fmt: skip
NEAREST = 0.9  # of the sentences: where the nearest noun is right in more, places tell it
_NEAR = (
    "not judged: the nearest noun is right in nearly all sentences, so a head that knows no more "
    "than places would do"
)
_NO_PAIR = (
    "not judged: of words that are guessed right in some sentences of a kind and wrong in others, "
    "there are too few"
)


_UNGUESSED = (
    "not judged: the model does not surely guess the right form of hidden words, so that nothing "
    "is said of how attention finds it"
)


class AttentionDistractorsResult(Result):
    """How clearly heads and layers attend to the right noun among others.

    `pointing` is 1 where all of the attention to candidates goes to the right one, 0 where it is
    divided as evenly as by chance, below 0 where it misleads. Table `heads`: confusion, pointing,
    how often the right one comes first, and the share of the right one beyond what other words give
    it (`selectivity`); `layers`: the same of layers; `kinds`: by number of distractors and kind of
    sentence, the best head and layer, cross-fitted, the even baseline, and how often the model
    guesses the hidden word right; `guesses`: pointing where that guess is right and wrong.
    """

    strongest: ClassVar[Mapping[str, str]] = {"heads": "pointing"}
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "heads": {"hit": "%"},
        "kinds": {"hit": "%", "guessed": "%"},
    }

    @property
    def answer(self) -> str:
        """The best layer and the best head, from even (0) to a sure pointer (100)."""
        found = self.evidence()
        layer, head = found["best_layer_pointing"], found["best_head_pointing"]
        weak = "Weakly" if layer.high < 0.5 else "Clearly" if layer.low > 0.5 else "Not surely"
        return (
            f"{weak}: the best layer's attention goes {percent(layer)} of the way from even to "
            f"the right noun alone, over {layer.n:,} frames of sentences. The best head, "
            f"{self._best()}, goes {percent(head)} of it."
        )

    def _best(self) -> str:
        heads = self.tables["heads"]
        row = heads.iloc[int(heads["pointing"].to_numpy().argmax())]
        return f"{int(row['layer'])}.{int(row['head'])}"

    def measures(self) -> Sequence[Measure]:
        """Pointing, hits and selectivity of heads; pointing of layers."""
        return list(self._measures())

    def _measures(self) -> Iterator[Measure]:
        heads, level = self.tables["heads"], self.facts["level"]
        yield Measure.of_column(
            heads.assign(sure=heads["pointing_low"] > 0),
            "pointing",
            name="pointing",
            title="How clearly the head points to the right noun",
            unit="of the way from even to sure",
            sure="sure",
            middle=0.0,
            reading="1: only the right noun gets attention; 0: as by chance; below 0: misled.",
        )
        yield Measure.of_column(
            heads.assign(sure=(heads["selectivity_p"] < 1 - level) & (heads["selectivity"] > 0)),
            "selectivity",
            name="selectivity",
            title="Share of the right noun beyond what other words give it",
            unit="points",
            sure="sure",
            middle=0.0,
            scale=100.0,
            reading="Above 0: the verb or pronoun attends to it more than other words do.",
        )
        yield Measure.of_column(
            heads,
            "hit",
            name="hit",
            title="Sentences in which the right noun gets most",
            unit="%",
            scale=100.0,
            reading="High: of all candidates the right one mostly gets most attention.",
        )
        yield Measure.of_column(
            self.tables["layers"],
            "pointing",
            name="layer-pointing",
            title="How clearly the layer points to the right noun",
            unit="of the way from even to sure",
            reading="High: the layer's heads together attend to the right noun, not to others.",
        )

    def drawings(self) -> Sequence[Drawing]:
        """Kinds of sentences, heads, layers."""
        pointing, selectivity, hit, layers = self._measures()
        caption = (
            "One row for each number of distractors and kind of sentence: first the confusion "
            "of the best head and layer, minus the logarithm of the share that the right noun gets "
            "among all, beside that of even attention; low is clear. Last how often the "
            "model guesses the hidden verb or pronoun right; chance would be 50 %."
        )
        table = self.tables["kinds"]
        even = table["even"].to_numpy()
        return [
            drawings.dots(
                "kinds",
                [
                    Dots.of_columns("best head (nats)", table, "head", scale=1.0),
                    Dots.of_columns("best layer (nats)", table, "layer", scale=1.0),
                    Dots("even (nats)", even, even, even),
                    Dots.of_columns("guessed right (%)", table, "guessed", level=50),
                ],
                table["kind"],
                self.about,
                title="Confusion by distractors",
                caption=caption,
                note="Low confusion is clear. Best heads and layers are picked on the other half "
                "of the frames. Dashed: chance, 50 %. Intervals are over frames of sentences.",
            ),
            drawings.grids(
                "heads",
                [replace(hit, sure=pointing.sure)],
                self.about,
                title="Sentences in which the right noun gets most attention",
                reading="High: of all candidates the right one mostly gets most.",
                labels=[""],
                sure="surely point to it better than even attention, corrected for all heads",
            ),
            drawings.grid(selectivity, self.about, name="selectivity"),
            drawings.bars(layers, self.about, name="layers"),
        ]


_DRAWN = ("head", "layer", "guessed")


@dataclass(frozen=True)
class AttentionDistractors(Tagged):
    """Does a verb attend to its subject, and a reflexive to its antecedent, past other nouns?

    Method: in each sentence the attention from the verb (or the reflexive) to the head words of all
    noun phrases is taken, the right one and distractors: the sum over pieces attended to, the mean
    over those that attend. The confusion of a head is minus the logarithm of the right one's share
    among them; even attention has the logarithm of their number. `pointing` is how far of the way
    from there to no confusion a head comes. A layer's confusion is that of its heads' attention
    added up. Sentences with the same words but for their nouns and the word itself have one frame:
    corpora that are made by a grammar have few of them, and what is true of one sentence is true of
    the others. So frames are what is counted. The best head and the best layer are picked on one
    half of the frames and scored on the other; bounds of heads hold for all of them. A head that
    all words attend to the subject by is no pointer: `selectivity` is the right one's share less
    what it is as seen from other words.
    Beside it the model's own guess: the word is hidden, and its right form is to be likelier than
    the wrong one of the minimal pair. Sentences without a distractor are guessed, and no more.

    Source: Lin et al. (2019), Open Sesame: Getting Inside BERT's Linguistic Knowledge, whose the
    confusion score is; A Primer in BERTology, section 5.1. Limits: attention to the right noun is
    not yet use of it. Where a corpus does not say which noun is the subject (`linzen-agreement`), a
    tagger does, and errs. A share of less than a thousandth counts as a thousandth.
    """

    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}),
        fields=frozenset({"text", "words", "contrast"}),
        head="mlm",
    )
    version: ClassVar[int] = 4  # frames are counted, not sentences
    measured_version: ClassVar[int] = 2  # frames
    result_type: ClassVar[type[Result]] = AttentionDistractorsResult
    all_heads: ClassVar[bool] = True

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Shares of the right noun by head and layer; how much likelier the right form is."""
        import xarray as xr

        from bertology.annotated.dependencies import candidates_of, right_over_wrong, span_of
        from bertology.annotated.tagged_batches import annotated
        from bertology.annotated.words import word_batches
        from bertology.data.corpus import Field
        from bertology.data.words.dependencies import dependency_of
        from bertology.model.reducers.candidate_attention import CandidateAttention

        block = self.of_block(part, corpus)
        if Field.SUBJECT not in block.fields:
            block, _ = annotated(block, self.tagger)
        known = [dependency_of(example) for example in block]
        shape, n = encoder.shape, len(block)
        of_heads = (n, shape.layers, shape.heads)
        share, elsewhere, first = (np.full(of_heads, np.nan, np.float32) for _ in range(3))
        layer = np.full((n, shape.layers), np.nan, np.float32)
        spans: list[tuple[int, int] | None] = [None] * n
        for read in word_batches(encoder, block, tokens_per_batch=context.batch_tokens):
            rows, candidates = [], []
            for row, i in enumerate(read.batch.indices):
                one = known[i]
                found = None if one is None else candidates_of(read, row, one)
                if one is None or found is None:
                    known[i] = None
                    continue
                spans[i] = span_of(read, row, one)
                if len(found.choices) > 1:
                    rows.append(row)
                    candidates.append(found)
            if rows:
                batch = read.batch.only(rows)
                reducer = CandidateAttention(batch, candidates)
                encoder.run(batch, reduce={"layer.*.head.*.pattern": reducer})
                seen, at = reducer.value(), list(batch.indices)
                share[at], layer[at] = seen.of_heads, seen.of_layers
                elsewhere[at], first[at] = seen.elsewhere, seen.first
            context.advance(len(read.batch))
        better = right_over_wrong(encoder, block, spans, context.batch_tokens)
        choices = [0 if one is None else 1 + len(one.distractors) for one in known]
        kinds = ["" if one is None else one.kind for one in known]
        nearest = [one is not None and one.nearest == one.target for one in known]
        forms = [
            e.text[slice(*span)].lower() if span else ""
            for e, span in zip(block, spans, strict=True)
        ]
        frames = [_frame(example, one) for example, one in zip(block, known, strict=True)]
        places = ("example", "layer", "head")
        return xr.Dataset(
            {
                "share": (places, share),
                "elsewhere": (places, elsewhere),
                "first": (places, first),
                "layer_share": (places[:2], layer),
                "better": ("example", better),
                "choices": ("example", np.array(choices, np.int64)),
                "kind": ("example", np.array(kinds, dtype=str)),
                "form": ("example", np.array(forms, dtype=str)),
                "frame": ("example", np.array(frames, dtype=str)),
                "nearest": ("example", np.array(nearest, dtype=np.float32)),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Confusion, pointing and selectivity with bounds over frames; guesses beside them."""
        seen = gather(measured, concatenate=_KEPT)
        used: NDArray[np.bool_] = np.asarray(np.isfinite(seen["share"]).all((1, 2)))
        _, frames = np.unique(seen["frame"], return_inverse=True)
        if len(np.unique(frames[used])) < 2:
            raise DataError(
                "Fewer than two frames of sentences have a word whose subject or antecedent is "
                "known, and another noun beside it.",
                hint="Try --corpus grammar-agreement or --corpus clams.",
            )
        by = _Pointing.of(seen, used, frames[used])
        tables = {
            "kinds": self._kinds(seen, used, by, frames),
            "heads": self._heads(by),
            "layers": self._layers(by),
            "guesses": self._guesses(seen, used, by),
        }
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(seen, used, by),
            reasons={
                "right_over_wrong": _NO_PAIR,
                "strong_pointing": _NEAR,
                "weak_pointing": _UNGUESSED,
            },
            facts={
                "examples": int(used.sum()),
                "sentences": int((seen["choices"] > 0).sum()),
                "frames": len(np.unique(frames[used])),
                "nearest": float(seen["nearest"][used].mean()),
            },
        )

    def _heads(self, by: _Pointing) -> pd.DataFrame:
        _, layers, heads = by.confusion.shape

        def rows(values: Floats) -> Floats:
            return by_frame(values.reshape(len(values), -1).T, by.frames)

        columns: dict[str, ArrayLike] = {"confusion": by.confusion.mean(0)}
        columns |= with_bounds("pointing", self.means(rows(by.pointing), families=2), p=False)
        columns["hit"] = by.first.mean(0)
        selectivity = self.means(rows(by.selectivity), within=(-1.0, 1.0), families=2)
        return head_table((layers, heads), columns | with_bounds("selectivity", selectivity))

    def _layers(self, by: _Pointing) -> pd.DataFrame:
        columns: dict[str, ArrayLike] = {"confusion": by.layer_confusion.mean(0)}
        columns |= with_bounds(
            "pointing", self.means(by_frame(by.layer_pointing.T, by.frames)), p=False
        )
        return labelled_table({"layer": range(by.layer_pointing.shape[1])}, columns)

    def _kinds(
        self, seen: Gathered, used: NDArray[np.bool_], by: _Pointing, frames: NDArray[np.int64]
    ) -> pd.DataFrame:
        """All sentences, then by number of distractors, then by kind, where there are some."""
        import pandas as pd

        kinds, choices = seen["kind"].astype(str), seen["choices"].astype(np.int64)
        right = (seen["better"] > 0).astype(np.float64)
        right[~np.isfinite(seen["better"])] = np.nan
        groups: dict[str, NDArray[np.bool_]] = {ALL: choices > 0}
        for count in np.unique(choices[choices > 0]).tolist():
            groups[f"{count - 1} distractor{'s' * (count != 2)}"] = choices == count
        groups |= {str(k): kinds == k for k in np.unique(kinds) if k}
        head, layer = (np.full(len(used), np.nan) for _ in range(2))
        head[used], layer[used] = by.best_confusion, by.best_layer_confusion
        rows = []
        for name, some in groups.items():
            if some.sum() < FEW:
                continue
            there, told = some & used, some & np.isfinite(right)
            values = by_frame(np.stack([head[there], layer[there]]), frames[there])
            numbers = [np.nan] * 6
            if values.shape[1] > 1:
                means = self.means(values, within=(0.0, np.inf))
                sides = (means.value, means.low, means.high)
                numbers = [float(side[k]) for k in range(2) for side in sides]
            numbers += self._guessed(right[told], frames[told])
            even = float(np.log(choices[some & used]).mean()) if (some & used).any() else np.nan
            rows.append((name, int(some.sum()), even, *numbers))
        ends = [f"{name}{end}" for name in _DRAWN for end in ("", "_low", "_high")]
        return pd.DataFrame(rows, columns=["kind", "n", "even", *ends])

    def _guessed(self, right: Floats, frames: NDArray[np.int64]) -> list[float]:
        """Guesses that are all right do not make the share certain."""
        if not right.size:
            return [np.nan] * 3
        found = grouped_mean(Answers(right[None], frames), level=self.level)
        return [found.value, found.low, found.high]

    def _guesses(self, seen: Gathered, used: NDArray[np.bool_], by: _Pointing) -> pd.DataFrame:
        import pandas as pd

        better, rows = seen["better"][used], []
        for name, some in (("right", better > 0), ("wrong", better <= 0)):
            if len(np.unique(by.frames[some])) > 1:
                means = self.means(by_frame(by.best_pointing[some][None], by.frames[some]))
                ends = (means.value[0], means.low[0], means.high[0])
                rows.append((name, int(some.sum()), *map(float, ends)))
        return pd.DataFrame(
            rows, columns=["guess", "n", "pointing", "pointing_low", "pointing_high"]
        )

    def _evidence(
        self, seen: Gathered, used: NDArray[np.bool_], by: _Pointing
    ) -> dict[str, Estimate | None]:
        def one(values: Floats, least: float = -np.inf) -> Estimate | None:
            rows = by_frame(values[None], by.frames)
            found = self.means(rows, within=(least, 1.0)).estimate(0)
            return found and found.counting("frames")

        # The same word in the same kind of sentence: which form a model prefers whatever the
        # sentence, and what that form attends to, would be taken for a relation.
        alike = np.char.add(np.char.add(seen["kind"].astype(str), "\t"), seen["form"].astype(str))
        by_place = seen["nearest"][used].mean() > NEAREST
        layer, guessed = one(by.best_layer_pointing), self._forms_guessed(seen, used, by)
        known = guessed is not None and guessed.low > 0.5
        points_anyway = layer is not None and layer.low > 0.5
        return {
            "best_layer_pointing": layer,
            "weak_pointing": layer if known or points_anyway else None,
            "guessed": guessed,
            "best_head_pointing": one(by.best_pointing),
            "strong_pointing": None if by_place else one(by.best_pointing),
            "best_head_selectivity": one(by.best_selectivity, -1.0),
            "right_over_wrong": difference_within(
                by.best_pointing,
                seen["better"][used] > 0,
                alike[used],
                self.level,
                "frames",
                clusters=by.frames,
            ),
        }

    def _forms_guessed(
        self, seen: Gathered, used: NDArray[np.bool_], by: _Pointing
    ) -> Estimate | None:
        """The share of hidden words that are guessed right; each form weighs the same.

        So it gains nothing to find one form likelier than the other whatever the sentence.
        """
        told = np.isfinite(seen["better"][used])
        if len(np.unique(by.frames[told])) < 2:
            return None
        _, form, often = np.unique(
            seen["form"][used][told], return_inverse=True, return_counts=True
        )
        right = (seen["better"][used][told] > 0).astype(np.float64)
        rows = by_frame(right[None], by.frames[told], 1 / often[form])
        found = self.means(rows, within=(0.0, 1.0), reach=1.0).estimate(0)
        return found and found.counting("frames")


def _frame(example: Example, known: Dependency | None) -> str:
    """The words of a sentence but for its nouns and the word that depends on one of them."""
    if known is None:
        return ""
    left_out = {known.word, known.target, *known.distractors}
    words = enumerate(example.annotations["words"])
    return " ".join("_" if at in left_out else str(word).lower() for at, word in words)


def by_frame(values: Floats, frames: NDArray[np.int64], weights: ArrayLike | None = None) -> Floats:
    """Of sentences (V, N) a value for each frame (V, F), whose mean is that of all sentences."""
    _, at = np.unique(frames, return_inverse=True)
    weight = np.ones(len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
    held = np.zeros((len(at), int(at.max(initial=-1)) + 1))
    held[np.arange(len(at)), at] = weight
    return per_item(values @ held, held.sum(axis=0))


@dataclass(frozen=True)
class _Pointing:
    """Of the sentences with distractors: heads (N, L, H), layers (N, L), the best ones (N,)."""

    confusion: Floats
    pointing: Floats
    selectivity: Floats
    first: Floats
    layer_confusion: Floats
    layer_pointing: Floats
    best_confusion: Floats
    best_pointing: Floats
    best_selectivity: Floats
    best_layer_confusion: Floats
    best_layer_pointing: Floats
    frames: NDArray[np.int64]

    @classmethod
    def of(cls, seen: Gathered, used: NDArray[np.bool_], frames: NDArray[np.int64]) -> _Pointing:
        share, layer = (seen[n][used].astype(np.float64) for n in ("share", "layer_share"))
        even = np.log(seen["choices"][used].astype(np.float64))
        confusion, of_layers = (-np.log(np.maximum(s, LEAST)) for s in (share, layer))
        pointing, layer_pointing = (
            1 - confusion / even[:, None, None],
            1 - of_layers / even[:, None],
        )
        # Where a sentence has no other words, nothing is known of them: even is taken.
        elsewhere = seen["elsewhere"][used].astype(np.float64)
        elsewhere = np.where(np.isfinite(elsewhere), elsewhere, np.exp(-even)[:, None, None])
        selectivity = share - elsewhere
        _, number = np.unique(frames, return_inverse=True)
        best, selective, best_layer = (
            picked_on_other_half(x.reshape(len(x), 1, -1), together=number)[:, 0]
            for x in (pointing, selectivity, layer_pointing)
        )
        return cls(
            confusion, pointing, selectivity, seen["first"][used], of_layers, layer_pointing,
            _taken(confusion, best), _taken(pointing, best), _taken(selectivity, selective),
            _taken(of_layers, best_layer), _taken(layer_pointing, best_layer), frames,
        )  # fmt: skip


def _taken(values: Floats, which: NDArray[np.int64]) -> Floats:
    """(N,): of each sentence the value of one head or layer."""
    flat = values.reshape(len(values), -1)
    found: Floats = np.take_along_axis(flat, which[:, None], axis=1)[:, 0]
    return found

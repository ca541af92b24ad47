"""Sentence position: does a word's state depend on whether its sentence is the first or second?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Band, band_curve
from bertology.results.answers import NOTHING_SURE, percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure, Tracked
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.contrasts import ratio_of_means
from bertology.stats.repeated import repeated
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.position_scores import moved_scores, parity_scores, relative
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.geometry.outlier_dimensions.questions import (
    asked_of,
    predicts_words,
    uninformed,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.moved_sentences import MovedWords, ParityWords
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats.partial_means import PartialMeans


NO_WORDS = (
    "not judged: this model predicts no words, so it is not known whether it has learnt anything"
)
NOT_LEARNT = (
    "not judged: the model does not surely know more of hidden words than how frequent they are; "
    "places and segments move the states of any model, also of one that has learnt nothing"
)


def known_of_texts(
    encoder: Encoder,
    judged: Sequence[str],
    others: Corpus,
    *,
    hidden: float = 0.15,
    seed: int = 0,
    batch_tokens: int = 4096,
) -> NDArray[np.float64]:
    """(texts,) nats by which hidden words cost less than guessing by frequency, at the least.

    NaN for texts without a word to hide; nothing where the model predicts no words.
    """
    from bertology.data.corpus import Corpus

    if encoder.family.causal or not predicts_words(encoder):
        return np.zeros(0)
    texts = Corpus.of_texts(judged)
    guess = uninformed(encoder, texts, others)
    found = np.full(len(judged), np.nan)
    for batch in encoder.batches(texts.texts, tokens_per_batch=batch_tokens):
        asked = asked_of(encoder, batch, texts, start=0, hidden=hidden, seed=seed)
        losses, there = asked.predict().losses, asked.there
        by_guess = np.where(there, guess.losses(asked.wanted)[..., 0], 0.0).sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[list(batch.indices)] = by_guess / there.sum(1) - losses
    return found


_SHIFTS = {
    "position": (
        "Shift of a word by the position of its sentence",
        "position of the sentence",
        "High: a word's state is another one where its sentence comes second.",
    ),
    "place": (
        "Shift by the places of the tokens alone",
        "places (position ids)",
        "High: later places move a word's state, in the same segment.",
    ),
    "segment": (
        "Shift by the segment alone",
        "segment (type ids)",
        "High: the second segment moves a word's state, at the same places.",
    ),
    "neighbour": (
        "Change by another neighbour sentence",
        "another neighbour",
        "High: what the other sentence says changes a word's state.",
    ),
}


class SentencePositionResult(Result):
    """How far words move with the position of their sentence.

    Table `layers` (-1 is what enters the first one): squared shifts beyond another neighbour as
    shares of the spread of all words (`position`; `place` and `segment` of which it is made, with
    twice what both share), `neighbour`, the squared change by another neighbour; distances in units
    of the spread's root and cosine distances, of first and second place with the same neighbour and
    of two neighbours in the same place; `told`, how often a direction that was learnt on other
    sentences tells the first from the second place of two words of one kind; `common`, the share of
    the squared shift along the mean shift of other sentences; `with_input` and `with_last`, cosines
    of the mean shift with that of the input and of the last layer.
    Table `parities`: how much farther words of one kind are across first and second sentences than
    within them, as a share of the latter (`parity`), with the share of draws that come as far from
    0 (`parity_p`), and silhouettes of words among sentences of the same and of the other place.
    Table `kinds`: the same for single words, in squared distances of the last layer. Array
    `angles`: cosines of mean shifts of all layers. Bounds in tables hold for all layers together.
    """

    @property
    def answer(self) -> str:
        """The shift in the last layer, beside that by another neighbour."""
        evidence = self.evidence()
        shift, neighbour = (evidence.get(f"{n}_shift") for n in ("position", "neighbour"))
        if shift is None or neighbour is None:
            return f"{NOTHING_SURE}: states have no spread, so no shift can be compared with it."
        what = (
            "as second sentence of a pair, the last states of a sentence's words are moved by "
            f"{percent(shift, '.1f')} of the spread of all words (squared), over and above another "
            f"neighbour, which changes them by {percent(neighbour, '.1f')}"
        )
        if shift.low > 0:
            return f"Surely: {what}."
        return f"{NOTHING_SURE}: {what}."

    def headline(self) -> str:
        """What it rests on."""
        facts = self.facts
        readings = "four" if "segment" in self.tables["layers"] else "two"
        return (
            f"{facts['words']} words of {facts['sentences']} sentences in {readings} "
            f"readings, with two neighbours each; {facts['pairs']} pairs of texts that follow each "
            "other"
        )

    def over_training(self) -> Sequence[Tracked]:
        """The shift in the last layer."""
        return [
            Tracked(
                "position_shift",
                "the shift of words by the position of their sentence",
                layers="position-shift",
                scale=100.0,
                unit="% of the spread",
            )
        ]

    def measures(self) -> Sequence[Measure]:
        """Shifts, what tells first from second, and how words of both kinds of sentences differ."""
        table = self.tables["layers"]
        layers = table[table["layer"] >= 0]
        found = [
            Measure.of_column(
                layers,
                column,
                name=f"{column}-shift",
                title=title,
                unit="% of the spread",
                scale=100.0,
                middle=0.0,
                reading=reading,
            )
            for column, (title, _, reading) in _SHIFTS.items()
            if column in layers
        ]
        if "told" in layers:
            found.append(
                Measure.of_column(
                    layers,
                    "told",
                    name="position-told",
                    title="First or second place, told from the state",
                    unit="% right",
                    scale=100.0,
                    middle=50.0,
                    reading="50: a direction that was learnt on other sentences tells nothing.",
                )
            )
        found += [
            Measure.of_column(
                layers,
                column,
                name=f"shift-{column.replace('_', '-')}",
                title=f"Cosine of the mean shift with that of the {of}",
                unit="cosine",
                middle=0.0,
                reading="1: words are moved in the same direction there.",
            )
            for column, of in (("with_input", "input"), ("with_last", "last layer"))
        ]
        if "parities" in self.tables:
            table = self.tables["parities"]
            found.append(
                Measure.of_column(
                    table[table["layer"] >= 0],
                    "parity",
                    name="parity-excess",
                    title="How much farther words are across first and second sentences",
                    unit="% of the squared distance within",
                    scale=100.0,
                    middle=0.0,
                    reading="0: a word is as near to itself across both as within each.",
                )
            )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Shifts by layer, directions, and words in first and second sentences."""
        by_name = {m.name: m for m in self.measures()}
        shifts = [n for n in _SHIFTS if f"{n}-shift" in by_name]
        found = [
            drawings.profile(
                "shifts",
                [by_name[f"{n}-shift"] for n in shifts],
                self.about,
                title="What moves the states of a sentence's words",
                reading="Squared shifts as shares of the spread of all words' states; those by "
                "position, places and segments are beyond what another neighbour does.",
                labels=[_SHIFTS[n][1] for n in shifts],
            ),
            Drawing(
                "directions",
                self._directions,
                "Are words moved in the same direction in all layers? Cosines of the mean shift of "
                "a layer with that of the input and of the last layer, each learnt on another half "
                "of the sentences. 1: the same direction; they have no intervals.",
                ("shift-with-input", "shift-with-last"),
            ),
        ]
        found += [
            drawings.bars(by_name[name], self.about, name=short)
            for name, short in (("position-told", "told"), ("parity-excess", "parities"))
            if name in by_name
        ]
        return found

    def _directions(self) -> Figure:
        names = {"with the input": "shift-with-input", "with the last layer": "shift-with-last"}
        return band_curve(
            [Band(label, self.measure(name).values) for label, name in names.items()],
            None,
            title=f"Are words moved in the same direction in all layers?\n{self.about}",
            label="cosine of mean shifts",
            xlabel="layer",
            note="Layers are numbered from 0.",
        )


_FEWEST = 8  # sentences
_SHARES = ("position", "place", "segment", "neighbour")
_OTHERS = ("distance", "neighbour_distance")
_PLAIN = ("cosine", "neighbour_cosine", "told")
_SILHOUETTES = ("same_silhouette", "other_silhouette")
_NO_SEGMENTS = "not judged: this family does not tell two texts apart by segments"
_DRAWN = "not judged: these texts were drawn at random (--limit), so they do not follow each other"
_NO_WORDS = "not judged: no word occurs in three first and three second sentences"
_NO_SHIFT = "not judged: there is no sure shift that could have a direction"


@dataclass(frozen=True)
class SentencePosition(Resampled):
    """Does a word's state depend on whether its sentence comes first or second?

    Method: sentences are read as first and as second of a pair, beside two other sentences of the
    corpus, which are as long as each other. What a neighbour does is kept apart: the shift of a
    word counts as far as it is the same with both neighbours, which is by how much states move
    farther when place and neighbour change than when the neighbour alone does. It is squared and
    given as a share of the spread of all words' states. Where the family has segments, they are
    exchanged at the same places, so that what places (position ids) do and what segments (type ids)
    do are told apart: four readings of the same words. The shift is looked at for one common
    direction (learnt on one half of the sentences, measured on the other), for the angles between
    directions of layers, and for a linear discriminant (learnt on the other half) that tells first
    from second place of two words of the same kind. Then texts that follow each other are read as
    pairs, as in BERT's training: how much farther are words of one kind across first and second
    sentences than within them (squared distances, silhouettes), beside draws that exchange first
    and second in random pairs. Intervals are over sentences, or over groups of pairs.

    Source: Mickus et al. (2019), What do you mean, BERT?, as A Primer in BERTology (section 3)
    tells it. Limits: that words move at all is no claim, since places and segments are part of the
    input and move the states of an untrained model too; claims are judged on the last layer, and
    only for a model that knows more of hidden words than their frequency. With --limit texts are
    drawn at random, and odd and even ones are not looked at. Texts that fill more than half of what
    a model reads are left out.
    """

    version: ClassVar[int] = 3  # that words move at all is no claim
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"residual"}), fields=frozenset({"text"}), head="saved"
    )
    result_type: ClassVar[type[Result]] = SentencePositionResult
    fills_gpu: ClassVar[bool] = True

    examples: int = parameter(
        300, "Draw so many sentences that are moved; all if there are fewer.", minimum=_FEWEST,
        option="sentences",
    )  # fmt: skip
    words: int = parameter(6, "At most so many words of each sentence.", minimum=1)
    # Here chance is drawn while measuring.
    resamples: int = parameter(2000, "Resamples behind the correction.", minimum=100)
    pairs: int = parameter(
        1000, "At most so many pairs of texts that follow each other; 0: none.", minimum=0
    )
    kinds: int = parameter(60, "Words that are compared over pairs, at most.", minimum=2)
    each: int = parameter(
        10, "Occurrences of each in first and in second sentences, at most.", minimum=3
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """A model that only looks back sees another text where the order changes."""
        if encoder.family.causal:
            raise CapabilityError(
                f"{encoder.family.title} models see only what comes before, so a sentence that "
                "comes second is another text to them.",
                hint="Give an encoder: bertology families",
            )
        if len(corpus) < _FEWEST:
            raise DataError(
                f"Sentences are moved beside others: {_FEWEST} or more are needed. "
                f"{corpus.name!r} has {len(corpus)}.",
                hint="Give more text.",
            )

    def shown(self, corpus: Corpus) -> Corpus:
        """All texts, in their order."""
        return corpus

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """None: texts that are too long are left out, not cut."""
        return []

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """One: directions are learnt on all sentences."""
        return ["all"]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Sentences in two places with two neighbours."""
        return 4 * min(self.examples, len(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Numbers by layer and sentence, and of words in odd and even sentences."""
        from bertology.annotated import moved_sentences as moved

        count = moved.pool_size(self.examples)
        pool = moved.drawn_sentences(encoder, corpus, count, seed=self.seed)
        sentences = pool[: self.examples]
        words = moved.moved_words(
            encoder, sentences, pool, words=self.words, seed=self.seed,
            batch_tokens=context.batch_tokens, advance=context.advance,
        )  # fmt: skip
        known = known_of_texts(
            encoder,
            [s.text for s in sentences],
            corpus,
            seed=self.seed,
            batch_tokens=context.batch_tokens,
        )
        found = measured_words(words, known)
        return found.merge(self._parities(encoder, corpus, context), combine_attrs="override")

    def _parities(self, encoder: Encoder, corpus: Corpus, context: Context) -> xr.Dataset:
        """Of words in first and second sentences of adjacent pairs; empty where there are none."""
        import xarray as xr

        from bertology.annotated import moved_sentences as moved

        if corpus.drawn_from is not None or not self.pairs:
            return xr.Dataset()
        pairs = moved.adjacent_pairs(encoder, corpus, self.pairs, seed=self.seed)
        words = pairs and moved.parity_words(
            encoder, pairs, kinds=self.kinds, each=self.each, seed=self.seed,
            batch_tokens=context.batch_tokens,
        )  # fmt: skip
        if not words:
            return xr.Dataset()
        return measured_parities(words, draws=self.resamples, seed=self.seed)

    # The conclusion ----------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Tables by layer, and what claims are judged on."""
        import xarray as xr

        seen = measured["all"]
        tables = {"layers": self._layers(seen)}
        if "parity" in seen:
            tables |= {"parities": self._parity_layers(seen), "kinds": _kinds(seen)}
        evidence, reasons = self._evidence(seen, drawn="drawn_from" in (provenance.corpus or {}))
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=reasons,
            facts={
                "sentences": seen.sizes["sentence"],
                "words": int(seen.attrs["words"]),
                "pairs": seen.sizes.get("pair", 0),
            },
            arrays=xr.Dataset({"angles": (("layer", "layer_b"), seen["angles"].to_numpy())}),
        )

    def _layers(self, seen: xr.Dataset) -> pd.DataFrame:
        spread = seen["spread"].to_numpy()
        columns: dict[str, Any] = {}
        for name in (n for n in _SHARES if n in seen):
            rows = relative(seen[name].to_numpy(), spread)
            # A squared change cannot be below 0; products of two shifts can.
            least = 0.0 if name == "neighbour" else -np.inf
            columns |= with_bounds(name, self.means(rows, within=(least, np.inf)), p=False)
        lengths = np.sqrt(spread.mean(1, keepdims=True))
        for name in _OTHERS:
            rows = seen[name].to_numpy() / np.maximum(lengths, 1e-300)
            columns |= with_bounds(name, self.means(rows, within=(0.0, np.inf)), p=False)
        for name in _PLAIN:
            rows = seen[name].to_numpy()
            if np.isfinite(rows).sum(1).min() > 1:
                columns |= with_bounds(name, self._plain_means(name, rows), p=False)
        columns["common"] = seen["common"].mean("sentence").to_numpy() / np.where(
            (columns["position_low"] > 0), seen["position"].mean("sentence").to_numpy(), np.nan
        )
        angles = seen["angles"].to_numpy()
        columns["with_last"] = angles[:, -1]
        columns["with_input"] = angles[0]
        return labelled_table({"layer": range(-1, len(spread) - 1)}, columns)

    def _plain_means(self, name: str, rows: Floats) -> PartialMeans:
        if name == "told":
            return self.means(rows, within=(0.0, 1.0), support=(0.0, 1.0))
        return self.means(rows, within=(0.0, 2.0))

    def _parity_layers(self, seen: xr.Dataset) -> pd.DataFrame:
        depths = seen.sizes["depth"]
        everywhere = 1 - (1 - self.level) / depths
        found = [self._parity(seen, layer, everywhere) for layer in range(depths)]
        columns: dict[str, Any] = {
            "parity": [e.value for e in found],
            "parity_low": [e.low for e in found],
            "parity_high": [e.high for e in found],
            "parity_p": seen["parity_p"].to_numpy(),
        }
        for name in _SILHOUETTES:
            rows = seen[name].to_numpy()
            if np.isfinite(rows).sum(1).min() > 1:
                columns |= with_bounds(name, self.means(rows, within=(-1.0, 1.0)), p=False)
        return labelled_table({"layer": range(-1, len(found) - 1)}, columns)

    def _parity(self, seen: xr.Dataset, layer: int, level: float) -> Estimate:
        """What was measured, with an error by the jackknife over groups of pairs.

        Not the jackknife's own mean, which corrects a bias that this difference of means does not
        have, and adds noise: without a group, words with few occurrences are missing. Groups that
        do not differ give no bounds (`repeated`), where `left_out_estimate` would be sure.
        """
        whole, pairs = float(seen["parity"][layer]), seen.sizes["pair"]
        left_out = seen["parity_left_out"][layer].to_numpy()
        groups = len(left_out)
        found = repeated(groups * whole - (groups - 1) * left_out, level)
        half = (found.high - found.low) / 2
        return Estimate(
            whole, whole - half, whole + half, pairs, level, "pairs of texts",
            freedom=max(groups - 1, 1),
        )  # fmt: skip

    def _evidence(
        self, seen: xr.Dataset, *, drawn: bool
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        """Of the last layer."""
        last = {
            str(name): seen[name][-1].to_numpy()
            for name in seen
            if seen[name].dims[:1] == ("depth",)
        }

        def share(name: str, of: str = "spread") -> Estimate | None:
            found = ratio_of_means(last[name], last[of], self.level)
            return None if found is None else found.counting("sentences")

        found = {f"{n}_shift": share(n) for n in _SHARES if n in last}
        neighbour = found["neighbour_shift"]
        if neighbour is not None:  # a squared change, which cannot be below 0
            found["neighbour_shift"] = replace(neighbour, low=max(neighbour.low, 0.0))
        reasons: dict[str, str] = {}
        if "segment" in last:
            apart = last["segment"] - last["place"]
            ratio = ratio_of_means(apart, last["spread"], self.level)
            found["segment_over_place"] = ratio and ratio.counting("sentences")
        else:
            reasons |= dict.fromkeys(
                ("place_shift", "segment_shift", "segment_over_place"), _NO_SEGMENTS
            )
        shift = found["position_shift"]
        if shift is not None and shift.low > 0:
            found["common_share"] = share("common", "position")
        else:
            reasons["common_share"] = _NO_SHIFT
        told = self._plain_means("told", last["told"][None]).estimate(0)
        found["position_told"] = told and told.counting("sentences")
        if "parity" in seen:
            found["parity_excess"] = self._tested_parity(seen)
        else:
            reasons["parity_excess"] = _DRAWN if drawn else _NO_WORDS
        judged = ("segment_over_place", "parity_excess")
        why = self._not_learnt(seen["known"].to_numpy())
        for name in judged:
            if why or name in reasons:
                reasons[f"trained_{name}"] = why or reasons[name]
            else:
                found[f"trained_{name}"] = found.get(name)
        return found, reasons

    def _tested_parity(self, seen: xr.Dataset) -> Estimate:
        """Of the last layer; nothing is sure that draws of first and second do as well."""
        found, p = self._parity(seen, -1, self.level), float(seen["parity_p"][-1])
        if p < 1 - self.level or np.isnan(found.low):
            return found
        return replace(found, low=min(found.low, 0.0), high=max(found.high, 0.0))

    def _not_learnt(self, known: Floats) -> str:
        """Why claims say nothing of this model; empty where it surely knows words."""
        values = known[np.isfinite(known)]
        if not len(known):
            return NO_WORDS
        sure = len(values) > 1 and mean_interval(values, self.level).low > 0
        return "" if sure else NOT_LEARNT


def measured_words(words: MovedWords, known: Floats) -> xr.Dataset:
    """Numbers by layer and sentence, and what the model knows of each sentence's hidden words."""
    import xarray as xr

    scores = moved_scores(words)
    arrays: dict[str, tuple[Any, Floats]] = {
        name: (("depth", "sentence"), values)
        for name, values in scores.items()
        if name != "mean_shift"
    }
    arrays |= {
        "angles": (("depth", "depth_b"), _angles(scores["mean_shift"])),
        "known": ("asked", known),
    }
    return xr.Dataset(arrays, attrs={"words": len(words.sentence)})


def measured_parities(words: ParityWords, *, draws: int, seed: int) -> xr.Dataset:
    """How words of first and second sentences differ, by layer."""
    import xarray as xr

    scores = parity_scores(words, draws=draws, seed=seed)
    dims = {
        "parity": ("depth",),
        "parity_p": ("depth",),
        "parity_left_out": ("depth", "group"),
        "same_silhouette": ("depth", "pair"),
        "other_silhouette": ("depth", "pair"),
        "apart": ("kind", "side"),
    }
    counts = np.bincount(words.kind, minlength=len(words.kinds))
    arrays: dict[str, tuple[Any, Any]] = {n: (dims[n], values) for n, values in scores.items()}
    return xr.Dataset(
        {**arrays, "occurrences": ("kind", counts)}, coords={"kind": list(words.kinds)}
    )


def _angles(means: Floats) -> Floats:
    """(layers + 1, layers + 1) cosines of mean shifts, of one half against the other."""
    lengths = np.maximum(np.linalg.norm(means, axis=-1, keepdims=True), 1e-300)
    one, other = means / lengths
    return np.asarray((one @ other.T + other @ one.T) / 2)


def _kinds(seen: xr.Dataset) -> pd.DataFrame:
    """Of each word that was compared over pairs, in the last layer."""
    apart = seen["apart"].to_numpy()
    columns = {"occurrences": seen["occurrences"].to_numpy()}
    columns |= {n: apart[:, i] for i, n in enumerate(("within_first", "within_second", "across"))}
    table = labelled_table({"word": seen["kind"].to_numpy()}, columns)
    table["excess"] = table["across"] - (table["within_first"] + table["within_second"]) / 2
    return table.sort_values("excess", ascending=False, ignore_index=True)

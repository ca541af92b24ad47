"""Sentence position: does a word's state depend on whether its sentence is the first or second?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import CapabilityError, DataError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, mean_interval
from bertology.stats.contrasts import ratio_of_means
from bertology.stats.repeated import repeated
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.position_scores import moved_scores, parity_scores, relative
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.geometry.sentence_position.results import SentencePositionResult
from bertology.studies.geometry.sentence_position.word_knowledge import (
    NO_WORDS,
    NOT_LEARNT,
    known_of_texts,
)
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.moved_sentences import MovedWords, ParityWords
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.stats.partial_means import PartialMeans

Floats = NDArray[np.float64]
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
    tells it. Limits: claims are judged on the last layer, and only for a model that knows more of
    hidden words than their frequency: places and segments are part of the input, so they move the
    states of an untrained model too. With --limit texts are drawn at random, and odd and even ones
    are not looked at. Texts that fill more than half of what a model reads are left out.
    """

    version: ClassVar[int] = 2
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

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """A model that only looks back sees another text where the order changes."""
        if encoder.family.causal:
            raise CapabilityError(
                f"{encoder.family.title} models see only what comes before, so a sentence that "
                "comes second is another text to them.",
                hint="Give an encoder: bertology families",
            )
        if corpus is not None and len(corpus) < _FEWEST:
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
        judged = ("position_shift", "segment_over_place", "parity_excess")
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

"""Relation heads: does a head attend from a word to the words it is linked with?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.data.words.link_limits import LinkedSentence, LinkLimits
from bertology.data.words.link_moves import DIRECTIONS, KINDS, LinkedPieces, comparisons, pieces_of
from bertology.data.words.links import check_relation
from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.result import Provenance, Result
from bertology.stats import mean_interval
from bertology.studies.answers.relation_heads import RelationHeadsResult
from bertology.studies.designs.blocks import BlockStudy, in_order, start_of
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

__all__ = ["RelationHeads", "RelationHeadsResult"]

LINKED = "linked"
_FITS, _COMPARED = "linked words are whole in the model's input", "all comparisons are possible"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RelationHeads(BlockStudy[RelationHeadsResult]):
    """Does a head attend from a word to the words it is linked with?

    Method: for every sentence and head, the largest attention weight among the pairs of pieces
    that a link of the relation connects (`weight`, averaged over sentences); heads above the 99th
    percentile of all heads are those the paper names. That many heads lie above it in any model,
    whatever they do. So each link is also compared with unlinked pairs: as far apart elsewhere in
    the sentence, of the same attended word, of the same attending word, and at the same places of
    other sentences. Each difference is averaged so that every word counts once, by the words that
    links start from and by those they end in: what a head does with one frequent word is no
    relation. `excess` is the smallest of these averages; a head carries the relation if it is
    surely positive after correction for all heads and comparisons. Sentences for which a
    comparison is impossible are left out of it and counted.

    Source: Revealing the Dark Secrets of BERT (EMNLP 2019), section 4.2 and Figure 3. Limits: an
    excess says that a head tells linked from unlinked words, not that the model uses it.
    """

    version: ClassVar[int] = 1
    block: ClassVar[int] = 2048  # those within the limits are compared with each other
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}), fields=frozenset({"text", "words"}), head="base"
    )
    help_options: ClassVar[tuple[str, str]] = ("--no-every", "--no-every")
    result_type: ClassVar[type[Result]] = RelationHeadsResult

    relation: str = parameter(
        "frame", "frame, role:NAME, coreference, verb-subject, noun-pronoun, nsubj, obj, …"
    )
    direction: str = parameter(
        "both", "Which end attends; forward is from the first to the second.", choices=DIRECTIONS
    )
    max_element: int = parameter(3, "Tokens of a linked element at most; 0: any.", minimum=0)
    max_tokens: int = parameter(12, "Tokens of a sentence at most; 0: any.", minimum=0)
    min_distance: int = parameter(2, "Distance of linked words; neighbours have 1.", minimum=1)
    every: bool = parameter(True, "Leave out sentences with any link outside the limits.")
    percentile: float = parameter(99.0, "The paper's threshold.", minimum=0.0, maximum=100.0)
    draws: int = parameter(10, "Unlinked pairs of each kind for a sentence.", minimum=1)
    margin: float = parameter(0.01, "An excess up to this counts as none.", minimum=0.0)
    resamples: int = parameter(2000, "Resamples behind the correction.", minimum=100)
    level: float = parameter(0.95, "Confidence level.", minimum=0.5, maximum=0.999)
    seed: int = parameter(0, "Seed of the choice of unlinked pairs.", minimum=0)

    # The work ----------------------------------------------------------------------------------

    @property
    def limits(self) -> LinkLimits:
        """Which sentences are looked at."""
        return LinkLimits(
            self.relation, self.max_element, self.max_tokens, self.min_distance, self.every
        )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """The relation must be annotated, and two sentences with it must be within the limits."""
        from bertology.annotated.words import require_offsets

        require_offsets(encoder)
        if corpus is None:
            return
        check_relation(self.relation, corpus)
        sentences, left = self.limits.passing(corpus)
        if len(sentences) < 2:
            counted = zip(self.limits.stages, left, strict=True)
            raise DataError(
                f"{len(sentences)} sentences of {corpus.name!r} are within the limits; at least 2 "
                "are needed.",
                hint="Left after each limit: " + ", ".join(f"{s}: {n}" for s, n in counted) + ".",
            )

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those of the sentences within the limits."""
        within = [sentence.example for sentence in self.limits.passing(corpus)[0]]
        return replace(corpus, examples=within).texts if within else []

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each sentence within the limits."""
        return len(self._block(corpus, part)[0])

    def _block(self, corpus: Corpus, part: str) -> tuple[list[LinkedSentence], list[int]]:
        return self.limits.passing(self.of_block(part, corpus), first=start_of(part))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Weights of linked and of unlinked pairs, for each sentence of a block within the limits.

        Per sentence and head there is one number for the links and one for each comparison.
        """
        import xarray as xr

        found, left = self._block(corpus, part)
        sentences = _in_pieces(encoder, found, self.direction)
        weights = self._maxima(encoder, sentences, context)
        context.advance(len(found) - len(sentences))
        data = xr.Dataset(
            {
                "weight": (("sentence", "pairs", "layer", "head"), weights),
                "words": (("sentence", "end"), _words(sentences)),
                "left": ("stage", [*left, len(sentences)]),
            },
            coords={"pairs": [LINKED, *KINDS], "stage": [*self.limits.stages, _FITS]},
        )
        if sentences:
            data["map"] = _whole_map(encoder, sentences[0])
        return data

    def _maxima(
        self, encoder: Encoder, sentences: list[LinkedPieces], context: Context
    ) -> NDArray[np.float32]:
        """(sentence, pairs, layer, head): the linked pairs, then each kind of comparison."""
        from bertology.model.reducers.pair_maxima import Aim, PairMaxima

        width, shape = 1 + len(KINDS), encoder.shape
        if not sentences:
            return np.zeros((0, width, shape.layers, shape.heads), np.float32)
        wanted = [[(s.pairs, i * width)] for i, s in enumerate(sentences)]
        for i, moved in enumerate(comparisons(sentences, draws=self.draws, seed=self.seed)):
            for kind, drawn in moved.items():
                for host, pairs in drawn:
                    wanted[host].append((pairs, i * width + 1 + KINDS.index(kind)))
        maxima = PairMaxima(shape, len(sentences) * width)
        texts = [s.text for s in sentences]
        for batch in encoder.batches(texts, tokens_per_batch=context.batch_tokens):
            aims = [Aim(r, *a) for r, at in enumerate(batch.indices) for a in wanted[at]]
            maxima.aim(aims)
            encoder.run(batch, reduce={"layer.*.head.*.pattern": maxima})
            context.advance(len(batch))
        return maxima.means().reshape(len(sentences), width, shape.layers, shape.heads)

    # The conclusion ----------------------------------------------------------------------------

    def conclude(
        self, measured: Mapping[str, xr.Dataset], provenance: Provenance
    ) -> RelationHeadsResult:
        """Mean weights, the paper's threshold, and differences that hold for all heads."""
        import pandas as pd
        import xarray as xr

        parts = list(in_order(measured))
        weights = np.concatenate([p["weight"].to_numpy() for p in parts]).astype(np.float64)
        words = np.concatenate([p["words"].to_numpy() for p in parts])  # (N, 2)
        compared = ~np.isnan(weights).any(axis=(1, 2, 3))  # (N,)
        stages = [str(s) for s in parts[0]["stage"].to_numpy()]
        left = np.sum([p["left"].to_numpy() for p in parts], axis=0).tolist()
        impossible = np.isnan(weights[:, 1:, 0, 0]).sum(axis=0)  # per kind
        for kind, missing in zip(KINDS, impossible, strict=True):
            stages.append(f"a comparison by {kind} is possible")
            left.append(len(weights) - int(missing))
        stages.append(_COMPARED)
        left.append(int(compared.sum()))
        if compared.sum() < 2:
            raise DataError(
                f"{int(compared.sum())} sentences can be compared with unlinked pairs; at least 2 "
                "are needed.",
                hint="Take more sentences, a larger max_tokens, or every off (--no-every).",
            )
        tables = {
            "heads": self._heads(weights, weights[compared], words[compared]),
            "sentences": pd.DataFrame({"limit": stages, "sentences": left}),
        }
        facts = {"sentences": len(weights), "compared": int(compared.sum())}
        facts |= {n: getattr(self, n) for n in ("relation", "percentile", "level", "margin")}
        first = next(p for p in parts if "map" in p)
        return RelationHeadsResult(
            provenance, tables, xr.Dataset({"map": first["map"]}, attrs=facts)
        )

    def _heads(self, weights: Floats, compared: Floats, words: NDArray[Any]) -> pd.DataFrame:
        import pandas as pd

        layers, heads = (index.ravel() for index in np.indices(weights.shape[2:]))
        means = [mean_interval(s, self.level) for s in weights[:, 0].reshape(len(weights), -1).T]
        mean = np.array([m.value for m in means])
        excess = (compared[:, :1] - compared[:, 1:]).reshape(len(compared), -1)  # (N, kinds × V)
        value, low, high, p = self._excess(excess, words)  # (ends, kinds, V) each
        of_kind = value.min(axis=0)
        least = [a.min(axis=(0, 1)) for a in (value, low, high)]
        p_adjusted = p.max(axis=(0, 1))
        return pd.DataFrame(
            {
                "layer": layers,
                "head": heads,
                "weight": mean,
                "weight_low": [m.low for m in means],
                "weight_high": [m.high for m in means],
                "above_percentile": mean > np.percentile(mean, self.percentile),
                **{f"excess_{kind}": of_kind[i] for i, kind in enumerate(KINDS)},
                # The least of several means: each bound is the least of theirs.
                "excess": least[0],
                "simultaneous_low": least[1],
                "simultaneous_high": least[2],
                "p_adjusted": p_adjusted,
                "nearest": [KINDS[i] for i in of_kind.argmin(axis=0)],
                "sure": (least[1] > 0) & (p_adjusted < 1 - self.level),
            }
        )

    def _excess(self, excess: Floats, words: NDArray[Any]) -> list[Floats]:
        """Means, bounds and p-values as (ends, kinds, heads): each word counts once at its end.

        `he` ends a fifth of the links, and what a head does with one word is not a relation.
        """
        from bertology.stats.paired import simultaneous

        found = []
        for end in range(2):
            rows = _each_word_once(excess, words[:, end]).T  # (kinds × V, words)
            strict = simultaneous(
                rows,
                np.ones(len(rows)),
                level=(1 + self.level) / 2,  # two ends
                resamples=self.resamples,
                seed=self.seed,
            )
            mean = rows.mean(axis=1)
            p = np.where(mean > 0, np.minimum(2 * strict.p, 1.0), 1.0)
            found.append([mean, strict.low, strict.high, p])
        return [np.stack([of_end[i].reshape(len(KINDS), -1) for of_end in found]) for i in range(4)]


def _in_pieces(
    encoder: Encoder, found: Sequence[LinkedSentence], direction: str
) -> list[LinkedPieces]:
    """Links between words as links between pieces, where these are whole."""
    from bertology.annotated.words import words_of
    from bertology.data.words.piece_words import words_of_first_text

    read = words_of(encoder, [s.example for s in found], words=words_of_first_text)
    made = [pieces_of(s, r.alignment, direction) for s, r in zip(found, read, strict=True)]
    return [pieces for pieces in made if pieces is not None]


def _words(sentences: Sequence[LinkedPieces]) -> NDArray[Any]:
    """(sentence, 2): the words that links start from and end in."""
    return np.array([s.words for s in sentences], dtype=object).reshape(-1, 2)


def _each_word_once(values: Floats, words: NDArray[Any]) -> Floats:
    """Means over the rows of `values` (N, V) that have the same words: (W, V)."""
    _, which = np.unique(words.astype(str), return_inverse=True)
    sums = np.zeros((which.max() + 1, values.shape[1]))
    np.add.at(sums, which, values)
    return sums / np.bincount(which)[:, None]


def _whole_map(encoder: Encoder, sentence: LinkedPieces) -> xr.DataArray:
    import xarray as xr

    trace = encoder.run(encoder.encode(sentence.text, too_long="truncate"), record=_PATTERNS)
    maps = trace[_PATTERNS][:, 0].float().cpu().numpy()
    attrs = {"tokens": trace.tokens[0], "pairs": [int(i) for pair in sentence.pairs for i in pair]}
    return xr.DataArray(maps, dims=("layer", "head", "query", "key"), attrs=attrs)


_PATTERNS = "layer.*.head.*.pattern"

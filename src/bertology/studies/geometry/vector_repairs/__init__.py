"""Vector repairs: do cosines agree better with people once the narrow cone is undone?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.rank_agreement import PairLinks
from bertology.stats.vector_repairs import REPAIRS, Learnt
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.probes import INPUT
from bertology.studies.designs.shuffled_copies import MODEL, ShuffledCopies
from bertology.studies.geometry.shared.other_data import other_corpus
from bertology.studies.geometry.shared.pair_scores import check_judged
from bertology.studies.geometry.shared.pair_turns import dealt_texts
from bertology.studies.geometry.vector_repairs.results import VectorRepairsResult
from bertology.studies.geometry.vector_repairs.scores import RepairScores
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr

    from bertology.annotated.pair_vectors import ScoredPairs
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

Floats = NDArray[np.float64]
_FEWEST = 20  # pairs that are scored, and vectors that a repair is learnt from
_NONE = "none"
_DIGITS = 10  # of cosines: in a narrow cone those of single precision would often be equal


@dataclass(frozen=True)
class VectorRepairs(ShuffledCopies, Resampled):
    """Do cosines agree better with human judgements once vectors are made more isotropic?

    Method: for pairs that people scored by how alike they are (sentences, words, words in their
    contexts, or any file with text, text_b and label) each text becomes one vector after every
    layer: the mean over its pieces, or over those of its target words. A word alone is read as a
    text of one word; with `contexts` its vector is the mean over its occurrences in another corpus.
    Vectors are taken as they are, and after each repair: less their mean; less their largest
    principal components (All-but-the-top); standardised by dimension; without the dimensions that
    contribute most to the mean cosine; whitened, with a covariance that is shrunk where texts are
    few. What a repair needs is learnt on other texts than it is scored on: texts are dealt into
    `folds`, and those in the folds of a pair are left out; or it is learnt from another corpus. The
    score is Spearman's correlation of cosines with judgements. Gains over no repair are paired;
    bounds of a table hold for all of its rows together; pairs that share a text or a word are not
    taken as independent. The best layer and repair are picked on other pairs than they are scored
    on, which share no text with these (texts are dealt into two sides, ten times). The same model
    with its weights in random order, six times, is a baseline: what its repaired vectors tell too
    is no knowledge. Its input counts as one of its layers: vectors of chance for words tell which
    words two texts share.

    Source: Mu and Viswanath (2018) on static vectors; Timkey and van Schijndel (2021) on contextual
    ones. Limits: a mean over tokens is a plain way to read a sentence off a model; models that were
    trained for similarity are not needed here, but may be given. All texts are held in memory, one
    vector for each layer.
    """

    version: ClassVar[int] = 3
    needs: ClassVar[Needs] = Needs(fields=frozenset({"text", "text_b", "label"}))
    result_type: ClassVar[type[Result]] = VectorRepairsResult
    fewest: ClassVar[int] = _FEWEST
    fills_gpu: ClassVar[bool] = True
    copies: ClassVar[int] = 6  # with shuffled weights: one alone would not tell how they scatter

    repairs: tuple[str, ...] = parameter((), "Which repairs (centred,whitened); all if not given.")
    components: int = parameter(
        0, "Principal components that are removed; 0: one for each 100 dimensions.", minimum=0
    )
    dimensions: int = parameter(3, "Dominating dimensions that are removed.", minimum=1)
    vector: str = parameter(
        "mean",
        "The vector of a whole text: the mean over its pieces, or the state of its first token.",
        choices=("mean", "first"),
    )
    folds: int = parameter(5, "Parts that texts are dealt into, to learn repairs.", minimum=3)
    learn_from: str = parameter(
        "", "Learn repairs from the texts of this corpus instead: name, path or hub id."
    )
    learn_split: str = parameter("validation", "Which split of it.")
    contexts: str = parameter(
        "", "For pairs of words: a corpus over whose occurrences each word is averaged."
    )
    contexts_split: str = parameter("validation", "Which split of it.")
    other_examples: int = parameter(
        5000, "Draw so many examples at most of these other corpora.", minimum=1
    )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse unknown repairs, and what cannot be averaged over contexts."""
        from bertology.annotated.words import require_offsets

        super().check(encoder, corpus)
        require_offsets(encoder)
        for name in self.repairs:
            if name not in REPAIRS:
                raise UnknownNameError("repair", name, REPAIRS)
        if self.repairs and set(self.repairs) == {_NONE}:
            raise ParameterError("repairs", "vector-repairs", "hold a repair", self.repairs)
        if corpus is None:
            return
        check_judged(self.shown(corpus).labels, corpus.name)
        if self.contexts and ("targets" in corpus.fields or _phrases(corpus)):
            raise CapabilityError(
                f"The texts of {corpus.name!r} are not single words, so they cannot be averaged "
                "over contexts.",
                hint="Leave out --contexts.",
            )

    def chosen(self) -> list[str]:
        """No repair first, then those asked for."""
        return [_NONE, *(n for n in REPAIRS if n != _NONE and n in (self.repairs or REPAIRS))]

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Texts are read one by one, each once."""
        from bertology.annotated.pair_vectors import scored_pairs

        return [one.text for one in scored_pairs(self.shown(corpus)).compared]

    def ingredients(self, corpus: Corpus | None) -> dict[str, str]:
        """The other corpora."""
        found = {}
        for name, split in (("learn_from", self.learn_split), ("contexts", self.contexts_split)):
            if getattr(self, name) and corpus is not None:
                found[name] = self._other(corpus, getattr(self, name), split).fingerprint
        return found

    def _other(self, corpus: Corpus, name: str, split: str) -> Corpus:
        return other_corpus(corpus, name, split=split, limit=self.other_examples, seed=self.seed)

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Texts that are read, and layers that are repaired."""
        from bertology.annotated.pair_vectors import scored_pairs

        read = 0
        if self.contexts:
            read += len(self._other(corpus, self.contexts, self.contexts_split))
        else:
            read += len(scored_pairs(self.shown(corpus)).compared)
        if self.learn_from:
            read += len(self._other(corpus, self.learn_from, self.learn_split))
        return read + shape.layers + 1

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Cosines of all pairs by repair and layer."""
        import xarray as xr

        from bertology.annotated.pair_vectors import (
            Compared,
            compared_vectors,
            normal_text,
            scored_pairs,
        )

        encoder = self.reader(encoder, part)
        given = scored_pairs(self.shown(corpus))
        reading: dict[str, Any] = {
            "batch_tokens": context.batch_tokens,
            "advance": context.advance,
        }
        first = self.vector == "first"
        if self.contexts:
            vectors, there = self._averaged(encoder, corpus, given, reading)
        else:
            vectors, there = compared_vectors(encoder, given.compared, first=first, **reading)
        others = None
        if self.learn_from:
            scored = {normal_text(one.text) for one in given.compared}
            texts = [
                Compared(one.text)
                for one in self._other(corpus, self.learn_from, self.learn_split)
                if normal_text(one.text) not in scored
            ]
            others, known = compared_vectors(encoder, texts, first=first, **reading)
            others = others[:, known]
        kept: NDArray[np.bool_] = np.all(there[given.pairs], axis=1)
        pairs = given.pairs[kept]
        if len(pairs) < _FEWEST:
            raise DataError(
                f"Of {len(kept)} pairs {len(pairs)} have a vector for both texts; {_FEWEST} are "
                "needed.",
                hint="Give more pairs (--limit), or more texts to find the words in."
                if self.contexts
                else "Give more pairs (--limit).",
            )
        check_judged(given.judged[kept], corpus.name)
        learnt = self._learnt_on(given.units, pairs, there, others)
        cosines = np.zeros((len(self.chosen()), len(vectors), len(pairs)))
        for layer, of in enumerate(vectors):
            for fold, rows in learnt:
                known = of[rows] if others is None else others[layer]
                self._score(cosines[:, layer], of, pairs, fold, np.asarray(known, np.float64))
            context.advance(1)
        links = given.links
        return xr.Dataset(
            {
                "cosine": (("repair", "layer", "pair"), cosines),
                "judged": ("pair", given.judged[kept]),
                "first": ("pair", links.first[kept]),
                "second": ("pair", links.second[kept]),
            },
            coords={"repair": self.chosen(), "layer": [INPUT, *range(encoder.shape.layers)]},
            attrs={
                "missing": int((~kept).sum()),
                "components": self._components(encoder.shape.hidden),
                "learnt_on": min(len(rows) for _, rows in learnt)
                if others is None
                else others.shape[1],
            },
        )

    def _averaged(
        self, encoder: Encoder, corpus: Corpus, given: ScoredPairs, reading: Mapping[str, Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Words as means over their occurrences."""
        from bertology.annotated.word_contexts import ContextSums, add_contexts, spelt

        named = [spelt(one.text.strip(), lower=True) for one in given.compared]
        device = "cuda" if encoder.device.type == "cuda" else "cpu"  # others lack doubles
        layers = range(encoder.shape.layers + 1)
        sums = ContextSums(sorted(set(named)), layers, encoder.shape.hidden, device=device)
        other = self._other(corpus, self.contexts, self.contexts_split)
        add_contexts(encoder, list(other), sums, lower=True, **reading)
        rows = [sums.numbers[name] for name in named]
        there = (sums.counts > 0).cpu().numpy()[rows]
        return sums.vectors("mean")[:, rows].astype(np.float32), there

    def _components(self, width: int) -> int:
        return self.components or max(1, round(width / 100))

    def _learnt_on(
        self,
        units: NDArray[np.int64],
        pairs: NDArray[np.int64],
        there: NDArray[np.bool_],
        others: NDArray[np.float32] | None,
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each fold its pairs, and the texts that repairs are learnt on: none is in it.

        Copies of a text, or the same word in other texts (`units`), are in the same fold.
        """
        if others is not None:
            if others.shape[1] < _FEWEST:
                raise DataError(f"{others.shape[1]} texts are too few to learn repairs from.")
            return [(np.arange(len(pairs)), np.arange(0))]
        texts, count, found = len(units), int(units.max()) + 1, []
        groups = dealt_texts(units[pairs], count, self.folds, seed=self.seed)[units]
        for both in sorted({tuple(sorted(groups[pair].tolist())) for pair in pairs}):
            fold = np.flatnonzero((np.sort(groups[pairs], axis=1) == both).all(axis=1))
            rows = np.flatnonzero(there & ~np.isin(groups, both))
            if len(rows) < _FEWEST:
                raise DataError(
                    f"Only {len(rows)} of {texts} texts are in another fold than those of a pair; "
                    f"repairs need {_FEWEST} to learn from.",
                    hint="Give more --folds, or other texts to learn from (--learn-from).",
                )
            found.append((fold, rows))
        return found

    def _score(
        self,
        into: Floats,
        vectors: NDArray[np.float32],
        pairs: NDArray[np.int64],
        fold: NDArray[np.int64],
        known: Floats,
    ) -> None:
        """Cosines (repairs, pairs) of one fold."""
        width = vectors.shape[1]
        one, other = (vectors[pairs[fold, side]].astype(np.float64) for side in (0, 1))
        learnt = Learnt(known, components=self._components(width), dimensions=self.dimensions)
        for at, name in enumerate(self.chosen()):
            repair = learnt.repair(name)
            into[at, fold] = _cosines(repair(one), repair(other))

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Agreement by repair and layer, gains over no repair, and the cross-fitted best."""
        model = measured[MODEL]
        links = PairLinks(model["first"].to_numpy(), model["second"].to_numpy())
        judged = model["judged"].to_numpy()
        names = [str(n) for n in model["repair"].to_numpy()]
        layers = [int(n) for n in model["layer"].to_numpy()]
        found = RepairScores(
            model["cosine"].to_numpy(),
            [part["cosine"].to_numpy() for part in self.of_copies(measured)],
            judged,
            links,
        )
        options = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        evidence: dict[str, Estimate | None] = {"best_gain": found.best_gain(self.level)}
        for at, name in enumerate(names[1:], start=1):
            evidence[f"{name.replace('-', '_')}_gain"] = found.mean_gain(at, self.level)
        return self.result(
            provenance,
            {
                "repairs": found.by_repair(names, layers, options),
                "layers": found.by_layer(names, layers, options),
                "comparisons": found.comparisons(names, layers, self.level),
            },
            evidence=evidence,
            reasons={"": "not judged: this repair was left out (--repairs)"},
            facts={
                "examples": len(judged),
                "texts": len(np.unique(np.concatenate([links.first, links.second]))),
                "shared": bool(links.shares_texts),
                **{str(name): value for name, value in model.attrs.items()},
            },
        )


def _cosines(one: Floats, other: Floats) -> Floats:
    """Of rows; 0 where a vector is nothing. What differs by rounding alone is the same rank."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Floats = (one * other).sum(axis=1) / np.where(lengths > 0, lengths, np.inf)
    return found.round(_DIGITS)


def _phrases(corpus: Corpus) -> bool:
    """Whether more than a few texts have several words."""
    texts = [text for one in corpus for text in one.texts]
    return sum(len(text.split()) > 1 for text in texts) > len(texts) / 10

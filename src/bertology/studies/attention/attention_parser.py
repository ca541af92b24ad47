"""Attention parser: is syntax in a combination of heads rather than in single ones?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.arrays import Floats, Ints
from bertology.errors import DataError
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import of_row, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.least_means import least_means
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import Gathered, gather
from bertology.studies.designs.shares import per_item
from bertology.studies.designs.tables import head_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.annotated.trees.arc_sentences import Sentences
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

CHAIN, OFFSET, BEST_HEAD = "right chain", "best offset", "best head"
DISTANCES, ATTENTION, SHUFFLED = "distances", "attention", "shuffled weights"
WORDS, TOLD = " and words", ", relation told"
TRAINED = tuple(
    feature + more for feature in (DISTANCES, ATTENTION, SHUFFLED) for more in ("", WORDS, TOLD)
)
PARSERS = (
    CHAIN, OFFSET, DISTANCES, SHUFFLED, BEST_HEAD, ATTENTION,
    DISTANCES + WORDS, SHUFFLED + WORDS, ATTENTION + WORDS,
    DISTANCES + TOLD, SHUFFLED + TOLD, BEST_HEAD + TOLD, ATTENTION + TOLD,
)  # fmt: skip
"""In the order in which they are shown: alone, with words, told the relation of the word."""
PUBLISHED = {
    CHAIN: 26,
    ATTENTION: 61,
    DISTANCES + WORDS: 58,
    SHUFFLED + WORDS: 30,
    ATTENTION + WORDS: 77,
}
"""Clark et al. (2019), Table 3: UAS of BERT-base on the Wall Street Journal, GloVe as words."""
RIVALS = {
    ATTENTION: (CHAIN, OFFSET, DISTANCES, SHUFFLED, BEST_HEAD),
    ATTENTION + WORDS: (DISTANCES + WORDS, SHUFFLED + WORDS),
    ATTENTION + TOLD: (DISTANCES + TOLD, SHUFFLED + TOLD, BEST_HEAD + TOLD),
}
"""What each mix of heads must beat: each is a row of `gains`."""
STATED = {
    ATTENTION: (CHAIN, OFFSET, DISTANCES, BEST_HEAD),
    ATTENTION + WORDS: (DISTANCES + WORDS,),
    ATTENTION + TOLD: (BEST_HEAD + TOLD,),
}
"""Those of which claims say that they are beaten; the other rivals are controls."""
COMPARED = tuple((mix, rival) for mix, rivals in RIVALS.items() for rival in rivals)
NEGLIGIBLE = 0.05  # as in the claims
_FEWEST = 10  # sentences with a relation, for it to be shown
_RELATION_COLUMNS = [
    "relation", "n", "mix", "mix_low", "mix_high", "single_head", "picked", "distances", "shuffled",
    "gain", "gain_low", "gain_high",
]  # fmt: skip
_HALVES = ("half-0", "half-1")


class AttentionParserResult(Result):
    """How well heads together say which word another one depends on.

    Table `parsers`: the share of words whose head is found (UAS) by each parser, with the published
    score beside it; `gains`: parsers against what they should beat, with bounds for all rows
    together; `relations`: the mix of all heads beside the best single head of the relation
    (`picked`), distances and shuffled weights, all told the relation, and its smallest gain over
    them, with bounds for all relations; `weights`: what one standard deviation of each head's
    attention adds to the score of a pair, from the word to its head and the other way round, mean
    of both halves.
    """

    strongest: ClassVar[Mapping[str, str]] = {"relations": "gain", "gains": "gain"}

    @property
    def answer(self) -> str:
        """The mix beside single heads and distances, relation told, then all without."""
        over = self.evidence()["told_mix_over_single"].beyond_all()
        sure = "Yes" if over.low > 0 else "No" if over.high < NEGLIGIBLE else "Not sure"
        found = self.tables["parsers"]
        told, plain, words = (
            percent(of_row(found[found["parser"] == name].iloc[0], ("uas", "uas_low", "uas_high")))
            for name in (ATTENTION + TOLD, ATTENTION, ATTENTION + WORDS)
        )
        return (
            f"{sure}: told the relation, all heads together find the head of {told} of the words, "
            f"{points(over, '.0f')} against single heads, distances and shuffled weights; without "
            f"being told {plain}, and with word vectors {words}."
        )

    def measures(self) -> Sequence[Measure]:
        """Weights of heads in the mix, by direction."""
        ways = {"to-head": "from a word to its head", "to-dependent": "from the head to the word"}
        return [
            Measure.of_column(
                self.tables["weights"],
                column,
                name=f"{name}-weight",
                title=f"Weight in the mix of heads: attention {way}",
                unit="log odds per standard deviation",
                middle=0.0,
                reading="Above 0: where the head attends so, the pair is more likely an arc.",
            )
            for (name, way), column in zip(ways.items(), ("to_head", "to_dependent"), strict=True)
        ]

    def drawings(self) -> Sequence[Drawing]:
        """Parsers, relations, and what each head is worth in the mix."""
        rows = self.tables["parsers"]
        relations = self.tables["relations"].sort_values("gain", ascending=False)
        return [
            drawings.dots(
                "parsers",
                [Dots.of_columns("head found (%)", rows, "uas")],
                rows["parser"],
                self.about,
                title="Who finds the head of a word?",
                caption="The share of words whose head is found (UAS). Trained parsers and picked "
                "heads are scored on the half of the sentences that they were not trained or "
                "picked on; intervals hold for all rows together. `told`: the parser knows by "
                "which relation the word hangs from its head.",
                note="Trained on one half of the sentences, scored on the other.",
            ),
            drawings.dots(
                "relations",
                [
                    Dots.of_columns("head found (%)", relations, "mix"),
                    Dots.of_columns("gain", relations, "gain", level=0.0),
                ],
                relations["relation"],
                self.about,
                title="All heads together, relation by relation",
                caption="The share of words whose head is found by all heads together, and what "
                "they gain over the best single head of the relation, over distances and over "
                "shuffled weights, whichever gain is the smallest; all are told the relation. "
                "Intervals hold for all relations together.",
                note="Gain: points over the best of single head, distances and shuffled weights.",
            ),
            drawings.grids(
                "weights",
                list(self.measures()),
                self.about,
                title="What each head is worth in the mix of all heads",
                reading="Left where a word attends to its head, right where the head attends to "
                "the word.",
                labels=["to the head", "to the dependent"],
            ),
        ]


@dataclass(frozen=True)
class AttentionParser(Resampled):
    """Is syntax in a combination of heads rather than in single ones?

    Method: for each word, every other word may be its head; how likely it is depends on a trained
    weighted sum of the attention of all heads between the two words, in both directions. The
    weights are the same for all words (`attention`), depend linearly on vectors of both words
    (`attention and words`; the model's own input embeddings on their main axes), or on the relation
    of the word to its head (`relation told`). Beside them stand the same parsers on the distance
    between the words, and on the attention of the same model with its weights in random order; the
    word to the right (`right chain`), the best fixed offset, the best single head in one direction,
    and the best one for each relation. All is trained, and all heads and offsets are picked, on one
    half of the sentences and scored on the other; the penalty on large weights is chosen within the
    half that trains. The score is the share of words whose likeliest head is the annotated one
    (UAS); punctuation and the root are left out. Heads together count as better only if they beat
    all of that: the best single head, distances, and what training finds in shuffled weights.

    Source: Clark et al. (2019), section 5, for the parsers; Hoover et al. (2019) for the question.
    Limits: a word's likeliest head is taken alone, so heads need not make a tree. What a trained
    mix finds is in the attention, which does not say that the model uses it. Few sentences favour
    single heads, which need no training.
    """

    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns"}),
        fields=frozenset({"text", "words", "heads", "relations"}),
    )
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = AttentionParserResult
    all_heads: ClassVar[bool] = True
    fewest: ClassVar[int] = 4

    examples: int = drawn(300, "sentences", minimum=4)
    vector_size: int = parameter(32, "Main axes of the word vectors.", minimum=1, maximum=256)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The half of the sentences that is scored; the other one trains."""
        return _HALVES

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """Reading the sentences twice, then training the parsers, each counted as half as much."""
        n = len(self.shown(corpus))
        return 2 * n + len(TRAINED) * (n // 2)

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Words of one half whose head is found by parsers that were trained on the other."""
        import xarray as xr

        from bertology.annotated.trees.arc_models import ArcModel, fit_arcs, principal_vectors
        from bertology.annotated.trees.arc_sentences import read_sentences
        from bertology.annotated.trees.gold import RELATIONS
        from bertology.model.weight_noise import shuffled_copy

        shown, half = self.shown(corpus), _HALVES.index(part)
        read = partial(
            read_sentences, corpus=shown, batch_tokens=context.batch_tokens, advance=context.advance
        )
        sentences = read(encoder)
        if len(sentences) < self.fewest:
            raise DataError(
                f"{self.fewest} sentences with an annotated tree of three words or more are "
                f"needed. The corpus gives {len(sentences)}.",
                hint="Give a corpus with dependency trees, such as ud-ewt, and longer sentences.",
            )
        test, train = sentences.halves()[:: -1 if half else 1]
        axes = principal_vectors(sentences.vectors, sentences.words_of(train), self.vector_size)
        shuffled = read(shuffled_copy(encoder, seed=self.seed))
        found, picked = _picked(sentences, train, test)
        weights = {}
        for name in TRAINED:
            feature = "distance" if name.startswith(DISTANCES) else "attention"
            of = shuffled if name.startswith(SHUFFLED) else sentences
            told = len(RELATIONS) if name.endswith(TOLD) else 0
            model = ArcModel(feature, axes if name.endswith(WORDS) else None, told)
            fit = fit_arcs(model, of, train)
            found[name], weights[name] = fit.heads(of, test), fit.weights
            context.advance(len(shown) // 2)
        shape = encoder.shape
        mix = weights[ATTENTION][..., 0].reshape(1, 2, shape.layers, shape.heads)
        hits = np.zeros((len(test), len(PARSERS), len(RELATIONS)), np.uint16)
        arcs = np.zeros((len(test), len(RELATIONS)), np.uint16)
        for row, sentence in enumerate(test):
            gold, kinds = sentences.heads[sentence], sentences.relations[sentence]
            there = gold >= 0
            arcs[row] = np.bincount(kinds[there], minlength=len(RELATIONS))
            for number, name in enumerate(PARSERS):
                right = there & (found[name][row] == gold)
                hits[row, number] = np.bincount(kinds[right], minlength=len(RELATIONS))
        return xr.Dataset(
            {
                "hits": (("example", "relation", "parser"), hits.swapaxes(1, 2)),
                "arcs": (("example", "relation"), arcs),
                "weights": (("half", "way", "layer", "head"), mix),
                "picked": (("half", "relation"), picked[None]),
            },
            coords={"parser": list(PARSERS), "relation": list(RELATIONS)},
            attrs={"layers": shape.layers, "heads": shape.heads, "sentences": len(sentences)},
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Scores, gains, relations; halves together."""
        import pandas as pd

        seen = gather(measured, concatenate=("hits", "arcs", "weights", "picked"))
        of, arcs = _by_parser(seen, slice(None))
        uas = self.means(per_item(np.stack(list(of.values())), arcs), within=(0, 1), reach=1.0)
        over = per_item(np.stack([of[a] - of[b] for a, b in COMPARED]), arcs)
        gain = self.means(over, within=(-1, 1), reach=1.0)
        weights = seen["weights"].mean(axis=0)
        tables = {
            "parsers": pd.DataFrame(
                {
                    "parser": PARSERS,
                    "n": uas.n,
                    **with_bounds("uas", uas, p=False),
                    "published": [PUBLISHED.get(name, np.nan) / 100 for name in PARSERS],
                }
            ),
            "gains": pd.DataFrame(
                {
                    "parser": [a for a, _ in COMPARED],
                    "against": [b for _, b in COMPARED],
                    "n": gain.n,
                    **with_bounds("gain", gain),
                }
            ),
            "relations": self._relations(seen),
            "weights": head_table(
                weights.shape[1:], {"to_head": weights[0], "to_dependent": weights[1]}
            ),
        }
        return self.result(
            provenance,
            tables,
            evidence=self._evidence(seen),
            reasons={
                "obj_mix_over_single": "not judged: too few sentences have an annotated object"
            },
            facts={"examples": int((arcs > 0).sum()), **seen.facts},
        )

    def _relations(self, seen: Gathered) -> pd.DataFrame:
        """Each relation that is in ten sentences or more; bounds are for all of them together."""
        import pandas as pd

        names = seen.labels("relation")
        kept = [r for r in range(len(names)) if (seen["arcs"][:, r] > 0).sum() >= _FEWEST]
        shape = int(seen.facts["layers"]), int(seen.facts["heads"])
        rows: list[dict[str, object]] = []
        for r in kept:
            some, level = slice(r, r + 1), 1 - (1 - self.level) / len(kept)
            of, arcs = _by_parser(seen, some)
            score = {name: per_item(hits, arcs) for name, hits in of.items()}
            mix = self.means(
                score[ATTENTION + TOLD][None], within=(0, 1), reach=1.0, families=len(kept)
            )
            told = ATTENTION + TOLD
            gain = self._least(seen, told, some, RIVALS[told], level=level)
            # The same head in both halves is told once.
            heads = dict.fromkeys(_named(half[r], *shape) for half in seen["picked"])
            rows.append(
                {
                    "relation": names[r],
                    "n": int(mix.n[0]),
                    "mix": mix.value[0],
                    "mix_low": mix.simultaneous_low[0],
                    "mix_high": mix.simultaneous_high[0],
                    **{
                        column: float(np.nanmean(score[name + TOLD]))
                        for column, name in (
                            ("single_head", BEST_HEAD),
                            ("distances", DISTANCES),
                            ("shuffled", SHUFFLED),
                        )
                    },
                    "picked": " and ".join(heads),
                    "gain": np.nan if gain is None else gain.value,
                    "gain_low": np.nan if gain is None else gain.low,
                    "gain_high": np.nan if gain is None else gain.high,
                }
            )
        return pd.DataFrame(rows, columns=_RELATION_COLUMNS)

    def _evidence(self, seen: Gathered) -> dict[str, Estimate | None]:
        """The gains of heads together over what claims name, with controls."""
        every, obj = slice(None), seen.labels("relation").index("obj")
        return {
            "mix_over_others": self._gain(seen, ATTENTION, every),
            "words_mix_over_others": self._gain(seen, ATTENTION + WORDS, every),
            "told_mix_over_single": self._gain(seen, ATTENTION + TOLD, every),
            "obj_mix_over_single": self._gain(seen, ATTENTION + TOLD, slice(obj, obj + 1)),
        }

    def _gain(self, seen: Gathered, mix: str, relations: slice) -> Estimate | None:
        """What a mix gains over what claims name, with its other rivals as controls."""
        stated = self._least(seen, mix, relations, STATED[mix])
        others = [rival for rival in RIVALS[mix] if rival not in STATED[mix]]
        return stated and stated.with_controls(
            {rival: self._least(seen, mix, relations, [rival]) for rival in others}
        )

    def _least(
        self,
        seen: Gathered,
        mix: str,
        relations: slice,
        rivals: Sequence[str],
        *,
        level: float | None = None,
    ) -> Estimate | None:
        """The smallest gain of a mix over rivals; all must be above zero for it to be."""
        of, arcs = _by_parser(seen, relations)
        there = arcs > 0
        if there.sum() < _FEWEST:
            return None
        rows = [per_item((of[mix] - of[rival])[there][None], arcs[there]) for rival in rivals]
        found = least_means(rows, level=self.level if level is None else level)
        value, low, high = (
            float(np.clip(side[0], -1, 1)) for side in (found.value, found.low, found.high)
        )
        return Estimate(value, low, high, int(there.sum()), self.level, "sentences")


def _by_parser(seen: Gathered, relations: slice) -> tuple[dict[str, Floats], Floats]:
    """Words of some relations whose head each parser finds, by sentence; and all such words."""
    hits = seen["hits"][:, relations].sum(axis=1).astype(np.float64).T
    return dict(zip(PARSERS, hits, strict=True)), seen["arcs"][:, relations].sum(axis=1)


def _picked(
    sentences: Sentences, train: Ints, test: Ints
) -> tuple[dict[str, Sequence[Ints]], Ints]:
    """What the best offset and the best heads on `train` find in `test`; the heads by relation."""
    from bertology.annotated.trees.gold import OFFSETS

    by_offset = sentences.hits(train, partial(sentences.at_offsets, offsets=OFFSETS))
    by_head = sentences.hits(train, sentences.attended)
    offset = OFFSETS[int(by_offset.sum(axis=0).argmax())]
    best = int(by_head.sum(axis=0).argmax())
    picked = np.where(by_head.any(axis=1), by_head.argmax(axis=1), best)  # (R,)
    attended = [sentences.attended(s) for s in test]
    found: dict[str, Sequence[Ints]] = {
        name: [sentences.at_offsets(s, [away])[:, 0] for s in test]
        for name, away in ((CHAIN, 1), (OFFSET, offset))
    }
    found[BEST_HEAD] = [of[:, best] for of in attended]
    found[BEST_HEAD + TOLD] = [
        np.take_along_axis(of, picked[sentences.relations[s]][:, None], axis=1)[:, 0]
        for s, of in zip(test, attended, strict=True)
    ]
    return found, picked


def _named(candidate: int, layers: int, heads: int) -> str:
    """`8.10`, or `8.10 turned round` where the head word attends to the word."""
    turned, at = divmod(int(candidate), layers * heads)
    return f"{at // heads}.{at % heads}{' turned round' if turned else ''}"

"""Structural probe transfer: does a probe of trees that learnt in one language serve in another?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import stdtrit

from bertology.arrays import Bools, Floats
from bertology.data.corpus import Corpus, Field
from bertology.data.languages import name_of
from bertology.errors import DataError, ParameterError
from bertology.parameters import parameter, pooling_of
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.report.figures.named_grid import named_grid
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Sampled
from bertology.studies.designs.tables import bounded
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from bertology.annotated.trees.distances import TreeSentence, TreeSentences
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.probes.tree_scores import Fitted, SentenceScores
    from bertology.train.probes.tree_streams import TreeStream

MODEL, SHUFFLED = "model", "shuffled"
ALL, OTHERS = "(all)", "(others)"
"""As sources: probes that learnt from as many sentences as those of one language, of all languages
in equal parts, or of all but the one that is scored."""
SCORES = {"uuas": "arcs found (UUAS)", "dspr": "correlation of distances (DSpr.)"}
_DEPTH = 7 / 12  # of the layers: where Chi et al. probe multilingual BERT
_FEWEST_LANGUAGES = 3
_FEWEST = 10  # test sentences of a language


class StructuralProbeTransferResult(Result):
    """What probes that learnt in one language find in the others.

    Table `transfer`: for each language that trains (`source`) and each that is scored (`target`)
    the share of annotated arcs that are found (`uuas`), the same of probes of the input and of
    shuffled weights, and Spearman's correlation of distances (`dspr`); `languages`: for each
    target the chain and the random tree, its own probe, the mean of probes of single other
    languages, that of all others and that of all languages, and correlations of distances; `gains`:
    over languages, what each of these has beyond the best tree that needs no model, and beyond
    controls.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "transfer": {"uuas": "%", "input": "%", "shuffled": "%"},
        "languages": dict.fromkeys(
            ("own", "transfer", "others", "all", "chain", "random", "input", "shuffled"), "%"
        ),
    }

    @property
    def answer(self) -> str:
        """What probes of other languages find, and what they gain over trees without a model."""
        table = self.tables["languages"]
        gain, found = self.evidence()["transfer_gain"], self.evidence()["transfer_uuas"]
        sure = "Some of it" if gain.beyond_all().low > 0 else NOTHING_SURE
        return (
            f"{sure}: probes that learnt in another language find {percent(found)} of the "
            f"annotated arcs, {points(gain)} against the best tree that needs no model, over "
            f"{len(table)} languages."
        )

    def measures(self) -> Sequence[Measure]:
        """None: one layer is read."""
        return []

    def _names(self) -> list[str]:
        return [str(code) for code in self.tables["languages"]["language"]]

    def drawings(self) -> Sequence[Drawing]:
        """Both scores of each pair of languages, and each language beside its baselines."""
        rows = self.tables["languages"]
        caption = (
            "Rows are the languages whose sentences trained the probe, columns those that are "
            "scored, on other sentences than those that trained in any language: {}. Where a "
            "column has much the same in all rows, languages share the directions that tell of "
            "trees."
        )
        return [
            Drawing(
                "uuas",
                partial(self._matrix, "uuas"),
                caption.format("the per cent of annotated arcs that are found"),
            ),
            drawings.dots(
                "languages",
                [
                    Dots.of_columns("its own probe (%)", rows, "own", hollow="chain"),
                    Dots.of_columns(
                        "probes of one other language (%)", rows, "transfer", hollow="input"
                    ),
                    Dots.of_columns("probe of all others (%)", rows, "others", hollow="shuffled"),
                ],
                [name_of(code) for code in self._names()],
                self.about,
                title="Annotated arcs found by probes of other languages",
                caption="One row for each language that is scored: the per cent of annotated arcs "
                "that are found by a probe of the language itself, by probes of single other "
                "languages (their mean), and by one of all others together, each with an interval "
                "over sentences. Hollow: a chain of words, then probes of other languages on the "
                "input, and on shuffled weights.",
                note="Hollow, from the left: a chain, the input, shuffled weights (the last two "
                "by probes of other languages).",
                same_scale=True,
            ),
            Drawing(
                "dspr",
                partial(self._matrix, "dspr"),
                caption.format("the correlation of distances, times 100"),
            ),
        ]

    def _matrix(self, score: str) -> Figure:
        codes = self._names()
        sources = [*codes, *([ALL] if ALL in set(self.tables["transfer"]["source"]) else [])]
        wide = self.tables["transfer"].pivot_table(
            index="source", columns="target", values=score, dropna=False
        )
        return named_grid(
            100 * wide.reindex(index=sources, columns=codes).to_numpy(np.float64),
            rows=[name_of(code) for code in sources],
            columns=[name_of(code) for code in codes],
            title=f"Probes of other languages: {SCORES[score]}\n{self.about}",
            label="% of arcs" if score == "uuas" else "correlation × 100",
            axes_names=("learnt in", "scored in"),
            note="(all): a probe of as many sentences, of all languages in equal parts.",
        )


@dataclass(frozen=True)
class StructuralProbeTransfer(Sampled):
    """Does a probe that learnt in one language find the syntactic trees of another?

    Method: structural probes as in `structural-probe`, of one layer: a matrix after which the
    squared distance of two words is to be the number of arcs between them. One is learnt for each
    language, and scored in all. Texts are the same in all languages, so that of ten items seven
    train, one is held out and two are scored, in every language the same ones: what is scored never
    trained, in no language. Two more probes learn from as many sentences as those of one language:
    of all languages in equal parts, and of all but the one that is scored. Baselines: a chain (each
    word hangs from the one before it) and a random tree need no model; the input of the first layer
    and the same model with its weights in random order are controls, with probes of the same
    languages. Intervals of means over pairs of languages put two parts together as squares: other
    languages (each is left out in turn, as source and as target) and other sentences.

    Source: Chi, Hewitt and Manning (2020), who probe the seventh of twelve layers of multilingual
    BERT; Hewitt and Manning (2019). Limits: what a matrix finds need not be used by the model. The
    rank is given, not chosen. Sentences are translations of each other, and annotated by one scheme
    of which treebanks differ in detail. A probe that knows only how far words stand apart serves in
    all languages: that is why the chain and the input are set beside it.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "words", "heads", "relations", "language", "item"})
    )
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = StructuralProbeTransferResult
    fewest: ClassVar[int] = 20

    layer: int = parameter(
        -1, "The layer that is probed; -1: the one at seven twelfths of the depth.", minimum=-1
    )
    rank: int = parameter(64, "Rank of the probes.", minimum=1)
    pooling: str = pooling_of("a word")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse layers that are not there, and corpora in too few languages."""
        super().check(encoder, corpus)
        if self.layer >= encoder.shape.layers:
            last = encoder.shape.layers - 1
            raise ParameterError(
                "layer", "structural-probe-transfer", f"be at most {last}", self.layer
            )
        codes = {str(example.get(Field.LANGUAGE)) for example in corpus}
        if len(codes) < _FEWEST_LANGUAGES:
            raise DataError(
                f"{corpus.name!r} has texts in {len(codes)} languages; {_FEWEST_LANGUAGES} are "
                "needed.",
                hint="Try --corpus pud.",
            )

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """The model, and its shuffled weights."""
        return [MODEL, SHUFFLED]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """The examples that are read; each training counts as a language's examples."""
        return 2 * len(self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Scores of test items by source, target and layer: the input, and the one probed."""
        import xarray as xr

        from bertology.annotated.states import SomeLayers, word_states
        from bertology.annotated.trees.distances import tree_sentences
        from bertology.model.weight_noise import shuffled_copy
        from bertology.train.probes.structural import DISTANCE
        from bertology.train.probes.tree_scores import chain_scores, fitted, scored_sentences
        from bertology.train.probes.tree_streams import TreeStream

        shown = self.shown(corpus)
        depth = round(_DEPTH * encoder.shape.layers) - 1
        layer = max(depth, 0) if self.layer < 0 else self.layer
        states = word_states(
            shuffled_copy(encoder, seed=self.seed) if part == SHUFFLED else encoder,
            shown,
            pooling=self.pooling,
            folder=context.states,
            batch_tokens=context.batch_tokens,
            advance=context.advance,
        )
        some = SomeLayers(states, (0, layer + 1))
        trees = tree_sentences(shown, states)
        by_item, items = _by_item(shown, trees)
        codes = sorted(by_item)

        def learnt(sentences: Sequence[TreeSentence]) -> Fitted:
            own = replace(trees, sentences=sentences)
            stream = TreeStream(some, sentences, device=encoder.device)
            rank = min(self.rank, encoder.shape.hidden)
            return fitted(stream, own, [rank], kinds=[DISTANCE], seed=self.seed)

        def mixed(among: Sequence[str]) -> list[TreeSentence]:
            """Each item in one language, by turns."""
            turns = ((item, among[at % len(among)]) for at, item in enumerate(items))
            return [by_item[code][item] for item, code in turns if item in by_item[code]]

        tests = _test_items(by_item, items)
        shape = (len(codes), len(tests))
        arcs, counted, chain = np.zeros(shape), np.zeros(shape), np.full((2, *shape), np.nan)
        streams: dict[str, tuple[TreeStream, TreeSentences, list[int]]] = {}
        for at, code in enumerate(codes):
            every = [by_item[code][item] for item in items if item in by_item[code]]
            own = replace(trees, sentences=every)
            place = {id(one): row for row, one in enumerate(every)}
            rows = [place[id(by_item[code][item])] for item in tests]
            streams[code] = TreeStream(some, every, device=encoder.device), own, rows
            for number, item in enumerate(tests):
                one = by_item[code][item]
                arcs[at, number], counted[at, number] = one.arcs.sum(), one.counted.sum()
                chain[:, at, number] = _scores([chain_scores(number, one)])[:, 0, 0]
        sources = [*codes, *([ALL, OTHERS] if part == MODEL else [])]
        found = np.full((2, len(sources), *shape, 2), np.nan, np.float32)
        for at, source in enumerate(sources):
            probe = None
            for to, target in enumerate(codes):
                if probe is None or source == OTHERS:
                    probe = learnt(
                        mixed([c for c in codes if source == ALL or c != target])
                        if source in (ALL, OTHERS)
                        else [by_item[source][i] for i in items if i in by_item[source]]
                    )
                stream, own, rows = streams[target]
                found[:, at, to] = _scores(scored_sentences(stream, own, probe, rows))
            context.advance(len(shown) // len(sources))
        dims = ("source", "target", "item", "reading")
        data = xr.Dataset(
            {
                **{name: (dims, found[at]) for at, name in enumerate(SCORES)},
                **{f"chain_{name}": (dims[1:3], chain[at]) for at, name in enumerate(SCORES)},
                "arcs": (dims[1:3], arcs),
                "counted": (dims[1:3], counted),
            },
            coords={"source": sources, "target": codes, "item": tests},
        )
        data.attrs = {
            "layer": layer,
            "missing": states.missing,
            "short": trees.short,
            "broken": trees.broken,
            "trained": sum(one.part == 0 for one in by_item[codes[0]].values()),
        }
        return data

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Each pair of languages, each target beside its baselines, and means over languages."""
        model, shuffled = _Found.of(measured[MODEL]), _Found.of(measured[SHUFFLED])
        chain = model.chain_hits
        random = np.where(model.counted > 0, 2 * model.arcs / np.maximum(model.counted, 1), 0.0)
        # The better of the two in each language: most often the chain.
        better = chain.sum(1) >= random.sum(1)
        plain = np.where(better[:, None], chain, random)
        own, one_other = model.own(1), model.of_others(1)
        gains: dict[str, Estimate | None] = {}
        for name, hits, controls in (
            ("own", own, (model.own(0), shuffled.own(1))),
            ("transfer", one_other, (model.of_others(0), shuffled.of_others(1))),
            ("others", model.hits_of(OTHERS, 1), (model.hits_of(OTHERS, 0), shuffled.of_others(1))),
        ):
            over = self._mean(model, hits - plain)
            gains[f"{name}_gain"] = over.with_controls(
                {
                    "the input": self._mean(model, hits - controls[0]),
                    "shuffled weights": self._mean(model, hits - controls[1]),
                }
            )
        evidence = {
            **gains,
            "transfer_uuas": self._mean(model, one_other),
            "joint_over_own": self._mean(model, model.hits_of(ALL, 1) - own),
            "transfer_over_own": self._mean(model, one_other - own),
        }
        return self.result(
            provenance,
            {
                "languages": self._languages(model, shuffled, chain, random),
                "transfer": _pairs(model, shuffled),
                "gains": _gains(evidence),
            },
            evidence=evidence,
            facts={
                "examples": int(model.arcs.shape[1]),
                "languages": len(model.codes),
                **{str(name): value for name, value in measured[MODEL].attrs.items()},
            },
        )

    def _mean(self, model: _Found, hits: Floats) -> Estimate:
        """The mean over languages of a share of arcs, hits (sources or 1, targets, items).

        With intervals over other languages and other sentences together.
        """
        values = _shares(hits, model.arcs)  # (S, T)
        whole, n = _off(values), len(model.codes)
        without = np.array([_off(values, left=at) for at in range(n)])
        over_languages = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
        # How much each item moves the mean: shares are ratios of sums over items.
        moved = (hits - values[..., None] * model.arcs) / model.arcs.sum(1, keepdims=True)
        weights = _weights(values)
        influence = (weights[..., None] * np.where(np.isfinite(moved), moved, 0.0)).sum((0, 1))
        items = len(influence)
        over_items = np.sqrt(items / (items - 1) * (influence**2).sum())
        arm = float(
            np.hypot(
                stdtrit(n - 1, (1 + self.level) / 2) * over_languages,
                stdtrit(items - 1, (1 + self.level) / 2) * over_items,
            )
        )
        return Estimate(whole, whole - arm, whole + arm, n, self.level, "languages", freedom=n - 1)

    def _languages(
        self, model: _Found, shuffled: _Found, chain: Floats, random: Floats
    ) -> pd.DataFrame:
        import pandas as pd

        shown = {
            "own": model.own(1),
            "transfer": np.nanmean(model.of_others(1), axis=0)[None],
            "others": model.hits_of(OTHERS, 1),
            "all": model.hits_of(ALL, 1),
        }
        beside = {
            "chain": chain,
            "random": random,
            "input": np.nanmean(model.of_others(0), axis=0),
            "shuffled": np.nanmean(shuffled.of_others(1), axis=0),
        }
        rows = []
        for at, code in enumerate(model.codes):
            arcs = model.arcs[at]
            row: dict[str, object] = {"language": code, "sentences": int((arcs > 0).sum())}
            for name, hits in shown.items():
                row |= bounded(name, self._of_sentences(hits[0, at], arcs, len(model.codes)))
            row |= {name: float(of[at].sum() / arcs.sum()) for name, of in beside.items()}
            row |= {f"dspr_{name}": float(np.nanmean(of)) for name, of in model.distances_of(at)}
            rows.append(row)
        return pd.DataFrame(rows)

    def _of_sentences(self, hits: Floats, arcs: Floats, families: int) -> Estimate:
        """A share of arcs over sentences of one language; bounds hold for all languages."""
        share, n = float(hits.sum() / arcs.sum()), len(arcs)
        moved = (hits - share * arcs) / arcs.sum()
        error = np.sqrt(n / (n - 1) * (moved**2).sum())
        arm = float(stdtrit(n - 1, 1 - (1 - self.level) / 2 / families) * error)
        return Estimate(
            share, max(share - arm, 0.0), min(share + arm, 1.0), n, self.level, "sentences"
        )


@dataclass(frozen=True)
class _Found:
    """What was measured of a model, or of its shuffled weights."""

    codes: Sequence[str]
    sources: Sequence[str]
    hits: Floats  # (sources, targets, items, readings): annotated arcs that are found
    distances: Floats
    arcs: Floats  # (targets, items)
    counted: Floats
    chain_hits: Floats
    chain_distances: Floats

    @classmethod
    def of(cls, part: xr.Dataset) -> _Found:
        """Read off a part."""
        names = ("uuas", "dspr", "arcs", "counted", "chain_uuas", "chain_dspr")
        arrays = [part[name].to_numpy().astype(np.float64) for name in names]
        codes, sources = (part[n].to_numpy().astype(str).tolist() for n in ("target", "source"))
        return cls(codes, sources, *arrays)

    def own(self, reading: int) -> Floats:
        """Hits of each language's own probe: (1, targets, items)."""
        n = np.arange(len(self.codes))
        return np.asarray(self.hits[n, n, :, reading])[None]

    def of_others(self, reading: int) -> Floats:
        """Hits of probes of other languages: (sources, targets, items); NaN of its own."""
        found = self.hits[: len(self.codes), ..., reading].copy()
        n = np.arange(len(self.codes))
        found[n, n] = np.nan
        return found

    def distances_of(self, target: int) -> Iterator[tuple[str, Floats]]:
        """Correlations of distances: of its own probe, of single others, and of a chain."""
        yield "own", self.distances[target, target, :, 1]
        others = [at for at in range(len(self.codes)) if at != target]
        yield "transfer", self.distances[others, target, :, 1]
        yield "chain", self.chain_distances[target]

    def hits_of(self, source: str, reading: int) -> Floats:
        """Hits of the probe of a source: (1, targets, items)."""
        return np.asarray(self.hits[self.sources.index(source), ..., reading])[None]


def _by_item(
    corpus: Corpus, trees: TreeSentences
) -> tuple[dict[str, dict[str, TreeSentence]], list[str]]:
    """Sentences by language and item, which trains, is held out or scored in all languages."""
    from bertology.annotated.probe_questions import parts_of_texts

    items = list(dict.fromkeys(str(example.get(Field.ITEM)) for example in corpus))
    part = dict(zip(items, parts_of_texts(Corpus.of_texts(items)).tolist(), strict=True))
    found: dict[str, dict[str, TreeSentence]] = {}
    for one in trees.sentences:
        example = corpus[one.example]
        item = str(example.get(Field.ITEM))
        own = found.setdefault(str(example.get(Field.LANGUAGE)), {})
        own[item] = replace(one, part=part[item])
    return found, items


def _test_items(
    by_item: Mapping[str, Mapping[str, TreeSentence]], items: Sequence[str]
) -> list[str]:
    """Items to score that have a tree in every language."""
    found = [
        item
        for item in items
        if all(item in own and own[item].part == 2 for own in by_item.values())
    ]
    least = min(sum(one.part == 1 for one in own.values()) for own in by_item.values())
    if len(found) < _FEWEST or not least:
        raise DataError(
            f"{len(found)} test sentences have a tree of three words or more in every language; "
            f"{_FEWEST} are needed.",
            hint="Give more text with --limit; two items of ten are scored.",
        )
    return found


def _scores(scored: Sequence[SentenceScores]) -> Floats:
    """Hits and correlations: (2, items, readings)."""
    rows = [np.stack([getattr(one, name) for one in scored]) for name in ("hits", "distance")]
    return np.stack(rows).astype(np.float64)


def _shares(hits: Floats, arcs: Floats) -> Floats:
    """Of hits (S, T, items) the share of all arcs: (S, T)."""
    found: Floats = hits.sum(2) / arcs.sum(1)
    return found


def _there(values: Floats, left: int | None = None) -> Bools:
    """Which pairs count: without one language, as source and as target."""
    there = np.isfinite(values)
    if left is not None:
        there[:, left] = False
        if len(values) > 1:
            there[left] = False
    return there


def _off(values: Floats, left: int | None = None) -> float:
    return float(values[_there(values, left)].mean())


def _weights(values: Floats) -> Floats:
    there = _there(values)
    return np.asarray(there / there.sum(), np.float64)


def _pairs(model: _Found, shuffled: _Found) -> pd.DataFrame:
    """Every source and target."""
    import pandas as pd

    uuas, chance = (of.hits.sum(2) / of.arcs.sum(1)[:, None] for of in (model, shuffled))
    distances = np.nanmean(model.distances, axis=2)
    known = {code: at for at, code in enumerate(shuffled.sources)}
    return pd.DataFrame(
        [
            {
                "source": source,
                "target": target,
                "uuas": uuas[at, to, 1],
                "input": uuas[at, to, 0],
                "shuffled": chance[known[source], to, 1] if source in known else np.nan,
                "dspr": distances[at, to, 1],
            }
            for at, source in enumerate(model.sources)
            for to, target in enumerate(model.codes)
        ]
    )


def _gains(evidence: Mapping[str, Estimate | None]) -> pd.DataFrame:
    """What is claimed, and the least of it and its controls."""
    import pandas as pd

    rows = []
    for name, found in evidence.items():
        if found is not None:
            least = found.beyond_all() if found.controls else found
            rows.append(
                {"quantity": name, **bounded("value", found), **bounded("beyond_controls", least)}
            )
    return pd.DataFrame(rows)

"""Affordances: what objects are, what can be done with them, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import DataError
from bertology.parameters import parameter
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.checkerboards import Checkerboards, weighted
from bertology.studies.cloze.affordances.judged_pairs import (
    FOLDS,
    JudgedPairs,
    joined,
    probe_scores,
    relation_of,
    whole_entities,
)
from bertology.studies.cloze.affordances.results import (
    CLOZE,
    INPUT,
    PROBE,
    SHUFFLED,
    AffordancesResult,
)
from bertology.studies.cloze.affordances.results import NEW as BOTH_NEW
from bertology.studies.cloze.shared.clozes import ClozeStudy, too_long
from bertology.studies.designs.parts import in_order
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

PROPERTIES, AFFORDED, RELATED = "object-property", "object-affordance", "affordance-property"
_GAINS = {PROPERTIES: "property_gain", AFFORDED: "affordance_gain", RELATED: "relation_gain"}
_COPIES = 2  # of shuffled weights
_FEWEST = 2 * FOLDS  # entities


@dataclass(frozen=True)
class Affordances(ClozeStudy):
    """Does the model know what objects are, what can be done with them, and what follows from it?

    Method: sentences join a thing and an attribute and are so or not: an apple is heavy; he ate the
    apple; if you can eat something, then it is heavy. Scores are compared in checkerboards of two
    things, each with one of two attributes: is score(apple, edible) + score(hammer, heavy) more
    than score(apple, heavy) + score(hammer, edible)? What things or attributes have alone cancels,
    so that chance is 50 % for each relation, and what is above is their interaction. Scores are of
    probes, and of a blank: the log-probability of the thing in place. A probe is ridge regression
    on the mean states of the thing, of the other words, and their product; no thing is in training
    and test, and penalty and layer are chosen on training things. Beside it: probes that saw
    neither thing nor attribute, of the model's input, and of two copies with shuffled weights.
    Intervals are over things and attributes together. F1 and accuracy of probes are given, too.

    Source: Forbes, Holtzman and Choi (2019), who trained classifiers and give F1; checkerboards are
    ours. Limits: what is told in a blank may be that words occur together. Relations have labels
    of different quality: those of affordances and properties are made of judgements of pictures.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "label", "entity", "group"}),
        capabilities=frozenset({"residual"}),
        head="mlm",
    )
    version: ClassVar[int] = 2
    result_type: ClassVar[type[Result]] = AffordancesResult
    block: ClassVar[int] = 2000
    fills_gpu: ClassVar[bool] = True

    examples: int = parameter(
        12000,
        "About so many sentences, as many of each relation, of things with all their sentences.",
        minimum=2,
        at_least_option="limit",
    )

    def check(self, encoder: Encoder, corpus: Corpus | None) -> None:
        """Refuse what has too few things, or other labels than yes and no."""
        from bertology.annotated.words import require_offsets

        super().check(encoder, corpus)
        require_offsets(encoder)
        if corpus is None:
            return
        for example in corpus.examples:
            if example.label not in (0, 1):
                raise DataError(
                    f"The label of {example.id!r} is {example.label!r}; sentences are so (1) or "
                    "not (0).",
                    hint="Give a corpus such as physical-commonsense or grammar-objects.",
                )
        things: dict[str, set[str]] = {}
        for example in self.shown(corpus):
            things.setdefault(relation_of(example, corpus.name), set()).add(example.get("entity"))
        for relation, of in things.items() or {corpus.name: set()}.items():
            if len(of) < _FEWEST:
                raise DataError(
                    f"{relation!r} has sentences of {len(of)} things; {_FEWEST} or more are "
                    "needed, so that probes are tested on things that they did not see.",
                    hint="Give more sentences, or a larger --limit.",
                )

    def shown(self, corpus: Corpus) -> Corpus:
        """Things with all their sentences; not those that name the thing twice (a toy is a toy)."""
        from bertology.annotated.entity_states import entity_places

        once = [e for e in corpus.examples if len(entity_places(e)) == 1]
        chosen = whole_entities(once, corpus.name, self.examples, self.seed)
        return replace(corpus, examples=chosen, origin={}, drawn_from=len(corpus))

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blanks by blocks of sentences; probes of the model and of shuffled weights."""
        blocks = [part.replace("examples", "cloze", 1) for part in self._blocks(corpus, self.block)]
        return [*blocks, "probe", *(f"probe-shuffled-{copy}" for copy in range(_COPIES))]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each sentence."""
        return len(self.of_block(part, corpus) if _is_cloze(part) else self.shown(corpus))

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Log-probabilities of things in their places, or scores of probes."""
        if _is_cloze(part):
            return self._cloze(encoder, corpus, part, context)
        return self._probes(encoder, corpus, part, context)

    def _cloze(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        import xarray as xr

        from bertology.annotated.entity_states import entity_places
        from bertology.model.masked_lm.questions import BLANK, Question

        block = self.of_block(part, corpus)
        over = too_long(encoder, [e.text for e in block])
        asked = []
        for at, example in enumerate(block):
            if at not in over:
                start, end = entity_places(example)[0]
                text = f"{example.text[:start]}{BLANK}{example.text[end:]}"
                asked.append((at, Question(text, (example.text[start:end],))))
        scores = np.full((len(block), self.readings(encoder)), np.nan)
        answers = self.engine(encoder, corpus, context).answers(q for _, q in asked)
        for (at, _), answer in zip(asked, answers, strict=True):
            scores[at] = answer.scores[:, 0]
        context.advance(len(block))
        return xr.Dataset({"cloze": (("example", "reading"), scores)})

    def _probes(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        import xarray as xr

        from bertology.annotated.entity_states import entity_states
        from bertology.model.weight_noise import shuffled_copy

        whole = part == "probe"
        if not whole:
            copy = int(part.rpartition("-")[2])
            encoder = shuffled_copy(encoder, seed=_COPIES * self.seed + copy)
        shown = list(self.shown(corpus))
        states = entity_states(
            encoder, shown, batch_tokens=context.batch_tokens, advance=context.advance
        )
        relations = np.array([relation_of(e, corpus.name) for e in shown])
        known = np.isfinite(states[0, :, :, 0]).all(axis=1)
        entity, group = (np.array([str(e.get(n)) for e in shown]) for n in ("entity", "group"))
        label = np.array([float(e.label or 0) for e in shown])
        layers = np.full((len(shown), encoder.shape.layers + 1), np.nan)
        picked, new = (np.full(len(shown), np.nan) for _ in range(2))
        said, group_said, fold = (np.zeros(len(shown), np.int64) for _ in range(3))
        for relation in dict.fromkeys(relations):
            some = np.flatnonzero(known & (relations == relation))
            found = probe_scores(
                states[:, some], label[some], entity[some].tolist(), group[some].tolist(),
                seed=self.seed, device=encoder.device, new_groups=whole,
            )  # fmt: skip
            layers[some], picked[some], new[some] = found.layers, found.picked, found.both_new
            said[some], group_said[some], fold[some] = found.said, found.group_said, found.fold
        if not whole:
            return xr.Dataset({"picked": ("example", picked)})
        columns = {
            "entity": entity, "group": group, "relation": relations, "label": label, "fold": fold,
            "picked": picked, "both_new": new, "said": said, "group_said": group_said,
        }  # fmt: skip
        return xr.Dataset(
            {
                **{name: ("example", values) for name, values in columns.items()},
                "layers": (("example", "depth"), layers),
            }
        )

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Checkerboards by relation and way of asking, and what claims are judged on."""
        import pandas as pd

        whole = measured["probe"]
        columns = {str(name): whole[name].to_numpy() for name in whole.data_vars}
        columns["copies"] = np.stack(
            [measured[f"probe-shuffled-{c}"]["picked"].to_numpy() for c in range(_COPIES)], axis=1
        )
        blanks = {name: of for name, of in measured.items() if _is_cloze(name)}
        columns["cloze"] = joined(list(in_order(blanks)), "cloze")
        known = np.isfinite(columns["picked"]) & np.isfinite(columns["cloze"][:, -1])
        relations = columns.pop("relation")
        found = {
            str(name): _Relation.of(JudgedPairs.of(columns, known & (relations == name)))
            for name in dict.fromkeys(relations)
        }
        evidence, reasons = self._evidence(found)
        return self.result(
            provenance,
            {
                "relations": pd.DataFrame(
                    [row for name, one in found.items() for row in self._ways(name, one)]
                ),
                "scores": pd.DataFrame([self._scores(name, one) for name, one in found.items()]),
                "layers": self._layers(found),
            },
            evidence=evidence,
            reasons=reasons,
            facts={
                "sentences": int(known.sum()),
                "lens": self.lens,
                "left_out": int((~known).sum()),
            },
        )

    def _evidence(
        self, found: Mapping[str, _Relation]
    ) -> tuple[dict[str, Estimate | None], dict[str, str]]:
        gains = {
            name: found[relation].gain(self.level) if relation in found else None
            for relation, name in _GAINS.items()
        }
        evidence: dict[str, Estimate | None] = dict(gains)
        evidence["each_gain"] = _least([gains["property_gain"], gains["affordance_gain"]])
        for relation, name in _GAINS.items():
            if relation in found:
                share = found[relation].cloze.estimate(level=self.level)
                evidence[name.replace("gain", "cloze")] = share and share.counting(_COUNTED)
        each, short = evidence["each_gain"], None
        if each is not None and each.low > 0 and gains["relation_gain"] is not None:
            parts = [(w, found[n].picked, 0) for w, n in _COMPARED]
            short = weighted(parts, level=self.level)
        evidence["relation_shortfall"] = short and short.counting(_COUNTED)
        lacks = "not judged: the corpus has no sentences on this relation, or no checkerboards"
        reasons = dict.fromkeys([*_GAINS.values(), "each_gain"], lacks)
        reasons["relation_shortfall"] = (
            lacks
            if each is None or gains["relation_gain"] is None
            else "not judged: properties and affordances are not surely known, so that there is "
            "nothing for their relation to be short of"
        )
        return evidence, reasons

    def _ways(self, relation: str, one: _Relation) -> list[dict[str, object]]:
        """A row for each way of asking."""
        level = 1 - (1 - self.level) / len(one.ways)
        rows: list[dict[str, object]] = []
        for way, (boards, at) in one.ways.items():
            share = boards.estimate(at, level=level)
            low, high = (np.nan, np.nan) if share is None else (share.low, share.high)
            rows.append(
                {
                    "relation": relation,
                    "way": way,
                    "boards": boards.boards,
                    "share": np.nan if share is None else share.value,
                    "share_low": low,
                    "share_high": high,
                }
            )
        return rows

    def _scores(self, relation: str, one: _Relation) -> dict[str, object]:
        """F1 and accuracy of the probe, of attributes alone and of the more frequent label."""
        pairs = one.pairs
        row: dict[str, object] = {
            "relation": relation,
            "n": len(pairs.label),
            "things": len(np.unique(pairs.entity)),
            "attributes": len(np.unique(pairs.group)),
            "yes": float(pairs.label.mean()),
        }
        for metric in ("f1", "accuracy"):
            found = pairs.score(metric, pairs.said, self.level)
            row |= {metric: found.value, f"{metric}_low": found.low, f"{metric}_high": found.high}
            row[f"{metric}_attribute"] = pairs.score(metric, pairs.group_said, self.level).value
        every = np.ones_like(pairs.said)
        row["f1_always"] = pairs.score("f1", every, self.level).value
        row["accuracy_always"] = float(max(pairs.label.mean(), 1 - pairs.label.mean()))
        return row

    def _layers(self, found: Mapping[str, _Relation]) -> pd.DataFrame:
        """Shares by relation and layer, of probes and of blanks; bounds hold for all layers."""
        import pandas as pd

        rows = []
        for relation, one in found.items():
            depth = len(one.layers.value) - 1
            level = 1 - (1 - self.level) / depth
            for layer in range(depth):
                row: dict[str, object] = {"relation": relation, "layer": layer}
                for name, boards, at in (
                    ("probe", one.layers, layer + 1), ("cloze", one.cloze, layer),
                ):  # fmt: skip
                    lens = len(boards.value) > 1
                    share = boards.estimate(at, level=level) if lens else None
                    sides = ("", "_low", "_high")
                    values = (
                        (np.nan,) * 3 if share is None else (share.value, share.low, share.high)
                    )
                    row |= {f"{name}{side}": v for side, v in zip(sides, values, strict=True)}
                rows.append(row)
        return pd.DataFrame(rows)


_COUNTED = "things or attributes"
_COMPARED = ((0.5, PROPERTIES), (0.5, AFFORDED), (-1.0, RELATED))


@dataclass(frozen=True)
class _Relation:
    """Checkerboards of one relation, by way of asking."""

    pairs: JudgedPairs
    picked: Checkerboards
    both_new: Checkerboards
    layers: Checkerboards
    copies: Checkerboards
    cloze: Checkerboards

    @classmethod
    def of(cls, pairs: JudgedPairs) -> _Relation:
        """All that is counted once."""
        return cls(
            pairs,
            pairs.boards(pairs.picked[:, None], folds=True),
            pairs.boards(pairs.both_new[:, None], folds=True),
            pairs.boards(pairs.layers, folds=True),
            pairs.boards(pairs.copies, folds=True),
            pairs.boards(pairs.cloze, folds=False),
        )

    @property
    def ways(self) -> dict[str, tuple[Checkerboards, int]]:
        """What rows of the table show."""
        copies = {f"{SHUFFLED} {c + 1}": (self.copies, c) for c in range(_COPIES)}
        return {
            PROBE: (self.picked, 0),
            BOTH_NEW: (self.both_new, 0),
            INPUT: (self.layers, 0),
            **copies,
            CLOZE: (self.cloze, -1),
        }

    def gain(self, level: float) -> Estimate | None:
        """What the probe tells beyond chance and beyond shuffled weights, whichever is the more."""
        share = self.picked.estimate(0, level=level)
        if share is None:
            return None
        above = replace(share, value=share.value - 0.5, low=share.low - 0.5, high=share.high - 0.5)
        beyond = [self.picked.gain(self.copies, 0, c, level=level) for c in range(_COPIES)]
        return _least([above, *beyond])


def _least(found: Sequence[Estimate | None]) -> Estimate | None:
    """The smallest of several; it is surely above a border if all of them are."""
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    least = min(known, key=lambda one: one.value)
    # From above all of them must hold together.
    high = min(one.at_level(1 - (1 - one.level) / len(known)).high for one in known)
    return replace(least, low=min(one.low for one in known), high=high, unit=_COUNTED)


def _is_cloze(part: str) -> bool:
    return bool(re.match(r"cloze-\d", part))

"""Affordances: what objects are, what can be done with them, and what follows from it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.errors import DataError
from bertology.metrics import METRICS
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, of_row, percent
from bertology.results.drawing import Drawing
from bertology.results.measures import Measure
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, least_of
from bertology.stats.checkerboards import Checkerboards, checkerboards, weighted
from bertology.stats.crossed import crossed_score
from bertology.studies.designs.clozes import ClozeStudy, too_long
from bertology.studies.designs.parts import in_order
from bertology.studies.designs.tables import bounded
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import torch
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

    Floats = NDArray[np.float64]


# Sentences that join a thing and an attribute, judged yes or no: what probes say of them.
#
# A relation (`object-property`) is a table of entities by groups; some cells may be missing. Probes
# are cross-fitted by entity, so that no entity is in training and test; labels are taken less the
# mean of their group in what trains, so that a probe learns what is more than the group alone.


FOLDS = 4


def relation_of(example: Example, corpus: str) -> str:
    """The relation that a sentence is of; corpora with one only need not name it."""
    return str(example.annotations.get("relation") or corpus)


def whole_entities(examples: Sequence[Example], corpus: str, most: int, seed: int) -> list[Example]:
    """About so many, the same number of each relation, of entities with all their sentences."""
    rows: dict[str, dict[str, list[int]]] = {}
    for i, example in enumerate(examples):
        of = rows.setdefault(relation_of(example, corpus), {})
        of.setdefault(str(example.get("entity")), []).append(i)
    drawn: list[int] = []
    for relation, entities in rows.items():
        order, room = list(entities), most // len(rows)
        random.Random(f"{seed}-{relation}").shuffle(order)
        for name in order:
            if room < len(entities[name]):
                break
            drawn += entities[name]
            room -= len(entities[name])
    return [examples[i] for i in sorted(drawn)]


@dataclass(frozen=True)
class ProbeScores:
    """Of one relation's sentences (N), each by a probe that did not see its entity."""

    layers: Floats  # (N, L + 1) by layer, 0 being the input
    picked: Floats  # by the layer that told most of another part of what trained
    both_new: Floats  # the same, by probes that saw neither its entity nor its group
    said: NDArray[np.int64]  # yes or no, by the picked layer and its group's mean
    group_said: NDArray[np.int64]  # by the group's mean alone
    fold: NDArray[np.int64]


def probe_scores(
    states: NDArray[np.float16],
    labels: Floats,
    entities: Sequence[str],
    groups: Sequence[str],
    *,
    seed: int,
    device: torch.device,
    new_groups: bool = True,
) -> ProbeScores:
    """Of states (L + 1, N, 2, width): the entity's and the others'.

    A probe sees both and their product, dimension by dimension: what goes with what.
    """
    import torch

    from bertology.train.probes.ridge import cross_fitted

    fold, other = _folds(entities, seed), _folds(groups, seed)
    parts = [torch.from_numpy(np.flatnonzero(fold == f)).to(device) for f in range(FOLDS)]
    means = np.stack([_group_means(labels, groups, fold != f) for f in range(FOLDS)], axis=1)
    wanted = torch.from_numpy(labels[:, None] - means).float().to(device)
    found = []
    for layer in range(len(states)):
        seen = _features(states[layer], device)
        found.append(cross_fitted(seen, wanted, parts))
    told = np.stack([one.told for one in found])  # (L + 1, folds)
    best = 1 + told[1:].argmax(axis=0)
    at, own = np.arange(len(labels)), best[fold]
    layers = np.stack([one.scores for one in found])
    inner = np.stack([one.inner for one in found])
    both = np.full(len(labels), np.nan)
    for layer in sorted(set(best.tolist())) if new_groups else ():
        seen = _features(states[layer], device)
        for f in range(FOLDS):
            new = torch.from_numpy(other != f).to(device)
            scores = cross_fitted(seen, wanted, parts, trains=new).scores
            mine = (other == f) & (own == layer)
            both[mine] = scores[mine]
    mean = means[at, fold]
    said, group_said = (np.zeros(len(labels), np.int64) for _ in range(2))
    for f in range(FOLDS):
        mine, chosen = fold == f, fold == (f + 1) % FOLDS
        given = inner[best[f], chosen] + means[chosen, f]
        border = _border(given, labels[chosen])
        said[mine] = layers[best[f], mine] + mean[mine] > border
        border = _border(means[chosen, f], labels[chosen])
        group_said[mine] = mean[mine] > border
    return ProbeScores(layers.T, layers[own, at], both, said, group_said, fold)


def _folds(names: Sequence[str], seed: int) -> NDArray[np.int64]:
    known = sorted(set(names))
    random.Random(seed).shuffle(known)
    of = {name: i % FOLDS for i, name in enumerate(known)}
    return np.array([of[name] for name in names])


def _group_means(labels: Floats, groups: Sequence[str], trains: NDArray[np.bool_]) -> Floats:
    """(N,) of each sentence's group, over what trains; of all where the group is not there."""
    _, at = np.unique(np.asarray(groups), return_inverse=True)
    n = np.bincount(at, trains)
    yes = np.bincount(at, labels * trains)
    whole = float(labels[trains].mean())
    return np.where(n > 0, yes / np.maximum(n, 1), whole)[at]


def _features(states: NDArray[np.float16], device: torch.device) -> torch.Tensor:
    import torch

    from bertology.train.probes.ridge import standardised

    both = torch.from_numpy(states.astype(np.float32)).to(device)
    one, other = standardised(both[:, 0]), standardised(both[:, 1])
    return torch.cat([one, other, standardised(one * other)], dim=1)


def _border(scores: Floats, labels: Floats) -> float:
    """The score above which to say yes, for the best F1."""
    order = np.argsort(-scores, kind="stable")
    yes = np.cumsum(labels[order])
    f1 = 2 * yes / (np.arange(1, len(labels) + 1) + max(labels.sum(), 1))
    ordered = scores[order]
    last = np.append(ordered[1:] < ordered[:-1], True)  # equal scores stand on one side
    at = int(np.where(last, f1, -1.0).argmax())
    after = ordered[at + 1] if at + 1 < len(ordered) else ordered[at] - 1.0
    return float((ordered[at] + after) / 2)


@dataclass(frozen=True)
class JudgedPairs:
    """All that was measured of one relation."""

    entity: NDArray[np.str_]  # (N,)
    group: NDArray[np.str_]
    label: Floats
    fold: NDArray[np.int64]
    layers: Floats  # (N, L + 1)
    picked: Floats
    both_new: Floats
    said: NDArray[np.int64]
    group_said: NDArray[np.int64]
    copies: Floats  # (N, copies) of shuffled weights
    cloze: Floats  # (N, R)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], some: NDArray[np.bool_]) -> JudgedPairs:
        """Some of the sentences."""
        return cls(**{f.name: columns[f.name][some] for f in fields(cls)})

    def boards(self, scores: Floats, *, folds: bool) -> Checkerboards:
        """Of scores (N, R), in checkerboards of entities (of one fold) and groups."""
        entities, at = np.unique(self.entity, return_inverse=True)
        groups, of = np.unique(self.group, return_inverse=True)
        table = np.full((scores.shape[1], len(entities), len(groups)), np.nan)
        labels = np.full(table.shape[1:], np.nan)
        table[:, at, of], labels[at, of] = scores.T, self.label
        fold = np.zeros(len(entities), np.int64)
        fold[at] = self.fold
        return checkerboards(table, labels, folds=fold if folds else None)

    def score(self, metric: str, said: NDArray[np.int64], level: float) -> Estimate:
        """F1 or accuracy, with an interval over entities."""
        of = METRICS[metric]
        rows = of.statistics(said, self.label.astype(np.int64))
        _, at = np.unique(self.entity, return_inverse=True)
        sums = np.stack([np.bincount(at, column) for column in rows.T], axis=1).astype(np.float64)
        return crossed_score(of, sums[None], level=level).counting("entities")


def joined(parts: Sequence[xr.Dataset], name: str) -> NDArray[Any]:
    """One column of all parts."""
    return np.concatenate([part[name].to_numpy() for part in parts])


PROBE, NEW, INPUT = "probe", "probe, attribute new too", "probe of the input"
SHUFFLED, CLOZE = "probe of shuffled weights", "blank"
_SIDES = ("share", "share_low", "share_high")


class AffordancesResult(Result):
    """How often it is told which of two things goes with which of two attributes.

    Table `relations`: checkerboards told right, by relation and way of asking; chance is 50 %.
    `scores`: F1 and accuracy of the probe, of attributes alone, and of always the same answer.
    `layers`: checkerboards by layer.
    """

    lead: ClassVar[int] = 1
    hundredths: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "relations": {"share": "%"},
        "scores": {
            "f1": "%", "accuracy": "%", "f1_attribute": "%", "accuracy_attribute": "%",
            "f1_always": "%", "accuracy_always": "%", "yes": "%",
        },
        "layers": {"probe": "%", "cloze": "%"},
    }  # fmt: skip

    @property
    def answer(self) -> str:
        """The shares of the probe, by relation."""
        rows = self.tables["relations"]
        found = [
            (str(row["relation"]), of_row(row, _SIDES))
            for _, row in rows[(rows["way"] == PROBE) & rows["share"].notna()].iterrows()
        ]
        if not found:
            return f"{NOTHING_SURE}: no two things have one of two attributes each."
        said = [f"{name} {percent(share, '.1f', limits=(0.5,))}" for name, share in found]
        sure = any(share.low > 0.5 for _, share in found)
        return (
            f"{'Probes' if sure else f'{NOTHING_SURE}: probes'} tell which thing goes with which "
            f"attribute in {', '.join(said)} of checkerboards; chance, and whatever things and "
            "attributes have alone, is 50 %."
        )

    def measures(self) -> Sequence[Measure]:
        """Shares by layer, of each relation and way of asking."""
        found = []
        for relation, table in self.tables["layers"].groupby("relation", sort=False):
            for column, title in (("probe", "probes of it"), ("cloze", "blanks, read from it")):
                if table[column].notna().any():
                    found.append(
                        Measure.of_column(
                            table,
                            column,
                            name=f"{column}-{_slug(str(relation))}",
                            title=f"Checkerboards told right, {relation}, by {title}",
                            unit="%",
                            scale=100.0,
                            middle=50.0,
                            reading="High: this layer tells which thing goes with which attribute. "
                            "Chance is 50.",
                        )
                    )
        return found

    def drawings(self) -> Sequence[Drawing]:
        """Shares by relation, and by layer."""
        found = [self._draw_relations()]
        if shown := [m for m in self.measures() if m.name.startswith("probe-")]:
            found.append(
                drawings.profile(
                    "layers",
                    shown,
                    self.about,
                    title="What goes with what, by layer",
                    reading="Each line is a relation, told by probes on things that they did not "
                    "see. Above 50: more than things and attributes have alone.",
                    labels=[m.name.partition("-")[2] for m in shown],
                )
            )
        return found

    def _draw_relations(self) -> Drawing:
        rows = self.tables["relations"]
        ways = list(dict.fromkeys(rows["way"]))
        panels = []
        for relation, some in rows.groupby("relation", sort=False):
            ordered = some.set_index("way").loc[ways].reset_index()
            panels.append(Dots.of_columns(f"{relation} (%)", ordered, "share", level=50))
        return drawings.dots(
            "relations",
            panels,
            ways,
            self.about,
            title="Which thing goes with which attribute",
            caption="One panel for each relation, one row for each way of asking: the per cent of "
            "checkerboards (two things, each with one of two attributes) that are told right. "
            "Whatever things or attributes have alone gives 50. Intervals hold for all rows of "
            "a panel together.",
            note="Dashed: chance, 50 %. Intervals hold for all rows of a panel together.",
        )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "relation"


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
    finds_words: ClassVar[bool] = True
    version: ClassVar[int] = 4  # bounds allow for rare answers that were not seen
    result_type: ClassVar[type[Result]] = AffordancesResult
    block: ClassVar[int] = 2000
    fills_gpu: ClassVar[bool] = True

    examples: int = parameter(
        12000,
        "About so many sentences, as many of each relation, of things with all their sentences.",
        minimum=2,
        at_least_option="limit",
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse what has too few things, or other labels than yes and no."""
        super().check(encoder, corpus)
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
        both = [one for n in ("property_gain", "affordance_gain") if (one := gains[n]) is not None]
        evidence["each_gain"] = least_of(both) if len(both) == 2 else None  # it is said of both
        for relation, name in _GAINS.items():
            if relation in found:
                share = found[relation].cloze.estimate(level=self.level)
                evidence[name.replace("gain", "cloze")] = share and share.counting(_COUNTED)
        each, short = evidence["each_gain"], None
        if each is not None and each.surely_there and gains["relation_gain"] is not None:
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
            row |= bounded(metric, found)
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
            NEW: (self.both_new, 0),
            INPUT: (self.layers, 0),
            **copies,
            CLOZE: (self.cloze, -1),
        }

    def gain(self, level: float) -> Estimate | None:
        """What the probe tells beyond chance; shuffled weights are its control."""
        share = self.picked.estimate(0, level=level)
        if share is None:
            return None
        above = replace(share, value=share.value - 0.5, low=share.low - 0.5, high=share.high - 0.5)
        beyond = [self.picked.gain(self.copies, 0, c, level=level) for c in range(_COPIES)]
        known = [one for one in beyond if one is not None]
        chance = least_of(known) if len(known) == len(beyond) else None
        return above.with_controls({SHUFFLED: chance}).counting(_COUNTED)


def _is_cloze(part: str) -> bool:
    return bool(re.match(r"cloze-\d", part))

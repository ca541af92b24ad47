"""What a study of heuristics reads: inference to learn from, pairs that mislead, their controls.

The control of a pair that is not entailed has the same premise and the hypothesis of another pair
of its kind, with few of the premise's words: it is not entailed either, but no heuristic misleads.
What is said of both is compared. The grammar's own training data have no counterexamples to a
heuristic unless they are switched on, so that the heuristic is right in them, or of no use.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Floats
from bertology.errors import DataError

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Example, Task

_TRIED = 50  # hypotheses that may become the one of a control
FEWEST = 10  # pairs of a heuristic that are not entailed
ENTAILED, NOT = 0, 1  # the two labels in which all is scored
ALL = "all"  # heuristics together
# As the grammar has them; told here, too, so that a study can be made without the lexicon.
_SWITCHES = {"grammar-entailment": ("lexical_overlap", "subsequence", "constituent")}


@dataclass(frozen=True)
class Source:
    """Where inference is learnt from."""

    name: str
    train: str  # splits
    scored: str
    examples: int | None  # to learn from
    limit: int | None  # to score


@dataclass(frozen=True)
class Texts:
    """Three corpora that every model is asked: pairs that mislead, their controls, and the task."""

    scored: Corpus
    controls: Corpus
    task: Corpus


@dataclass(frozen=True)
class HeuristicData:
    """What is learnt, in the labels of the task; and what is asked, in two."""

    train: Corpus
    texts: Texts
    validation: Corpus  # the task as it is asked, in its own labels
    controlled: NDArray[np.int64]  # which of the scored pairs each control belongs to

    @property
    def task(self) -> Task:
        """What models learn: three labels where the data have them, else two."""
        assert self.train.task is not None
        return self.train.task

    @property
    def groups(self) -> list[str]:
        """The heuristics."""
        return list(dict.fromkeys(str(e.get("group")) for e in self.texts.scored))

    def as_numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
        """The heuristic and the subcase of each scored pair, and the names of subcases.

        A subcase is of one heuristic and one label, also where names are the same. Without
        subcases a heuristic is one.
        """
        pairs = self.texts.scored
        keys = [
            (str(e.get("group")), int(e.get("label")), str(e.annotations.get("subcase") or ""))
            for e in pairs
        ]
        known = sorted(set(keys), key=lambda key: (self.groups.index(key[0]), *key[1:]))
        group = np.array([self.groups.index(g) for g, _, _ in keys])
        subcase = np.array([known.index(key) for key in keys])
        return group, subcase, [name or group for group, _, name in known]


def switches_of(name: str) -> tuple[str, ...]:
    """The heuristics whose counterexamples a corpus of the grammar can have or not have."""
    return _SWITCHES.get(name, ())


def _loaded(source: Source, root: Any, taught: str) -> tuple[Corpus, Corpus]:
    """What is learnt and what is asked of the task; the task is asked as it is without teaching."""
    from bertology.data.loading import load_corpus

    switches = switches_of(source.name)
    off: dict[str, Any] = dict.fromkeys(switches, False)
    on: dict[str, Any] = {name: taught in (name, ALL) for name in switches}
    name = source.name
    learnt = load_corpus(name, split=source.train, limit=source.examples, root=root, **on)
    asked = load_corpus(name, split=source.scored, limit=source.limit, root=root, **off)
    return learnt, asked


def read_data(corpus: Corpus, source: Source, taught: str = "") -> HeuristicData:
    """All that one training needs; `taught`: a heuristic whose counterexamples are learnt."""
    from bertology.data.tasks import has_neutral, inference_corpus

    scored = inference_corpus(corpus, three_way=False)
    _check(scored)
    learnt, asked = _loaded(source, corpus.origin.get("root"), taught)
    three_way = has_neutral(learnt) and has_neutral(asked)
    own, places = controls(scored)
    unseen = {e.texts for e in scored} | {e.texts for e in own} | {e.texts for e in asked}
    train = inference_corpus(learnt, three_way=three_way)
    kept = [e for e in train if e.texts not in unseen]
    if len(kept) < 2:
        raise DataError(
            f"{source.name!r} has no examples to learn from that are not scored.",
            hint="Name another split to learn from (--nli-split), or other data (--nli).",
        )
    return HeuristicData(
        replace(train, examples=kept),
        Texts(scored, own, inference_corpus(asked, three_way=False)),
        inference_corpus(asked, three_way=three_way),
        places,
    )


def _check(scored: Corpus) -> None:
    counts = Counter((str(e.get("group")), int(e.get("label"))) for e in scored)
    for group in dict.fromkeys(str(e.get("group")) for e in scored):
        for label, name in ((ENTAILED, "entailed"), (NOT, "not entailed")):
            if counts[group, label] < FEWEST:
                raise DataError(
                    f"Heuristic {group!r} of {scored.name!r} has {counts[group, label]} pairs that "
                    f"are {name}; at least {FEWEST} are needed.",
                    hint="Give more examples (--limit).",
                )


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def _share_lacking(hypothesis: set[str], premise: set[str]) -> float:
    return len(hypothesis - premise) / max(1, len(hypothesis))


def controls(scored: Corpus) -> tuple[Corpus, NDArray[np.int64]]:
    """Controls of the pairs that are not entailed, and the places of these pairs.

    Of the next hypotheses of the same subcase, the one is taken that shares the fewest of its words
    with the premise; if all are made of its words, one of the same heuristic. Pairs for which there
    is none at all have no control. One word alone that the premise lacks would be too little: what
    is learnt from real data goes by how much overlaps, and would still apply.
    """
    pools: dict[tuple[str, ...], list[int]] = defaultdict(list)
    keys = {}
    for at, example in enumerate(scored):
        if example.get("label") == NOT:
            group = str(example.get("group"))
            keys[at] = (group, str(example.annotations.get("subcase") or "")), (group,)
            for key in keys[at]:
                pools[key].append(at)
    words = [(set(_words(e.text)), set(_words(str(e.text_b)))) for e in scored]
    turns = {key: {at: i for i, at in enumerate(pool)} for key, pool in pools.items()}
    found, places = list["Example"](), []
    for at in keys:
        example = scored[at]
        for key in keys[at]:
            pool, turn = pools[key], turns[key][at]
            others = [pool[(turn + k) % len(pool)] for k in range(1, min(len(pool), _TRIED + 1))]
            lacking = [_share_lacking(words[o][1], words[at][0]) for o in others]
            if lacking and max(lacking) > 0:
                other = others[int(np.argmax(lacking))]
                text = scored[other].text_b
                found.append(replace(example, id=f"{example.id}-control", text_b=text))
                places.append(at)
                break
    if not found:
        raise DataError(
            f"No pair of {scored.name!r} has a control: all hypotheses are made of the words of "
            "all premises.",
        )
    return replace(scored, examples=found), np.array(places)


def collapsed(said: Floats) -> Floats:
    """Answers in two labels: what is neutral or contradicted is not entailed."""
    return np.asarray(said != ENTAILED, dtype=np.float64)


def overlap_answers(train: Corpus, asked: Sequence[Corpus]) -> list[Floats]:
    """What a logistic regression says that knows nothing but how far the texts overlap.

    It knows the share of the hypothesis's words that the premise has, whether it has all, whether
    they stand there in one piece, and how long one is beside the other.
    """
    from sklearn.linear_model import LogisticRegression

    labels = np.asarray(train.labels)
    if len(set(labels.tolist())) == 1:
        return [np.full(len(one), float(labels[0])) for one in asked]
    model = LogisticRegression(max_iter=1000).fit(_overlap(train), labels)
    return [np.asarray(model.predict(_overlap(one)), dtype=np.float64) for one in asked]


def _overlap(corpus: Corpus) -> Floats:
    rows = []
    for example in corpus:
        premise, hypothesis = _words(example.text), _words(str(example.text_b))
        has = set(premise)
        share = float(np.mean([word in has for word in hypothesis])) if hypothesis else 1.0
        piece = f" {' '.join(hypothesis)} " in f" {' '.join(premise)} "
        long = len(hypothesis) / max(1, len(premise))
        rows.append([share, float(share == 1), float(piece), min(long, 2.0)])
    return np.array(rows)

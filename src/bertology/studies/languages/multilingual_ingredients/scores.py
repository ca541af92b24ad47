"""How alike the two languages of one model are: sentences, words and tags, from its states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.train.pretrain.two_languages import TwoLanguages
    from bertology.train.protocols import PretrainingBert, Tokenizer

_PENALTY = 1.0  # of the tagger, for features with a spread of one


def told_apart(one: Floats, other: Floats) -> float:
    """The share of rows whose nearest row of the other kind, by cosine, is their own twin.

    Both directions count alike. Of equally near rows (as where a model gives all the same state)
    none is the nearest.
    """
    cosines = _unit(one) @ _unit(other).T
    own = np.diag(cosines)
    others = cosines - np.diag(np.full(len(own), np.inf))
    return float(((own > others.max(1)).mean() + (own > others.max(0)).mean()) / 2)


def _unit(rows: Floats) -> Floats:
    centred: Floats = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return centred


def by_layer(one: Floats, other: Floats) -> Floats:
    """`told_apart` for states (n, layers, hidden) of both languages, in each layer."""
    return np.array([told_apart(one[:, k], other[:, k]) for k in range(one.shape[1])])


def pooled(states: Sequence[Floats], kept: Sequence[Bools]) -> Floats:
    """(n, layers, hidden): the means over those pieces of each sentence that are `kept`."""
    return np.stack([s[:, k].mean(1) for s, k in zip(states, kept, strict=True)])


def deep_layer(layers: int) -> int:
    """The layer after two thirds of the model, as layer 8 of 12; 0 is what enters it."""
    return max(1, round(2 * layers / 3))


def multilinguality(retrieval: Floats, translation: Floats) -> float:
    """The mean of both over what enters the model and the layer after two thirds of it."""
    chosen = [0, deep_layer(len(retrieval) - 1)]
    return float(np.mean([retrieval[chosen], translation[chosen]]))


class Tagger:
    """A linear probe of tags: least squares on one column for each tag, with a small penalty."""

    def __init__(self, states: Floats, tags: Ints, classes: int) -> None:
        self.mean, spread = states.mean(0), states.std(0)
        self.spread = np.where(spread > 1e-6, spread, 1.0)
        wanted = np.eye(classes)[tags]
        self.intercept = wanted.mean(0)
        rows = (states - self.mean) / self.spread
        inner = rows.T @ rows + _PENALTY * np.eye(rows.shape[1])
        self.weights = np.linalg.solve(inner, rows.T @ (wanted - self.intercept))

    def accuracy(self, states: Floats, tags: Ints) -> float:
        """The share of states that get their tag."""
        rows = (states - self.mean) / self.spread
        return float((np.argmax(rows @ self.weights + self.intercept, 1) == tags).mean())


@dataclass(frozen=True)
class Tagged:
    """Sentences as pieces, with the first piece of each word and the number of its tag."""

    sentences: list[Ints]
    places: list[Ints]
    tags: list[Ints]

    @classmethod
    def of(
        cls, corpus: Corpus, tokenizer: Tokenizer, *, most: int, names: dict[str, int]
    ) -> Tagged:
        """Sentences of at most so many pieces; `names` gets a number for each new tag."""
        from bertology.data.corpus import Field

        found = cls([], [], [])
        for example in corpus:
            words = [str(w) for w in example.get(Field.WORDS)]
            encoded = [ids[1:-1] for ids in tokenizer(words, padding=False)["input_ids"]]
            sizes = np.array([len(pieces) for pieces in encoded])
            if sizes.all() and sizes.sum() <= most:
                found.sentences.append(np.concatenate([np.array(p) for p in encoded]))
                found.places.append(np.cumsum(sizes) - sizes)
                tags = [names.setdefault(str(t), len(names)) for t in example.get(Field.POS)]
                found.tags.append(np.array(tags))
        return found


@dataclass(frozen=True)
class Asked:
    """What is asked of every model: sentences, words, and tags, but not of `shared` pieces."""

    sentences: Sequence[Ints]
    words: Sequence[Ints]  # one piece each
    learnt: Tagged
    tested: Tagged
    shared: Bools

    def of(self, model: PretrainingBert, languages: TwoLanguages) -> dict[str, Any]:
        """All measures of a model; retrieval and translation also by layer."""
        from bertology.train.pretrain.two_languages import states_of

        kept = [~self.shared[s] for s in self.sentences]
        all_kept = [np.ones(1, bool)] * len(self.words)
        retrieval, translation = (
            by_layer(*(pooled(states_of(model, languages, texts, k), of) for k in (0, 1)))
            for texts, of in ((self.sentences, kept), (self.words, all_kept))
        )
        deep = deep_layer(len(retrieval) - 1)

        def rows(part: Tagged, language: int) -> tuple[Floats, Ints]:
            states = states_of(model, languages, part.sentences, language)
            places = [
                p[~self.shared[s[p]]] for s, p in zip(part.sentences, part.places, strict=True)
            ]
            tags = [
                t[~self.shared[s[p]]]
                for s, p, t in zip(part.sentences, part.places, part.tags, strict=True)
            ]
            found = [s[deep][p] for s, p in zip(states, places, strict=True)]
            return np.concatenate(found), np.concatenate(tags)

        classes = 1 + max(int(t.max()) for p in (self.learnt, self.tested) for t in p.tags)
        tagger = Tagger(*rows(self.learnt, 0), classes)
        return {
            "multilinguality": multilinguality(retrieval, translation),
            "retrieval": float(retrieval[deep]),
            "translation": float(translation[deep]),
            "retrieval_by_layer": ("depth", retrieval),
            "translation_by_layer": ("depth", translation),
            "tagging": tagger.accuracy(*rows(self.tested, 0)),
            "transfer": tagger.accuracy(*rows(self.tested, 1)),
        }

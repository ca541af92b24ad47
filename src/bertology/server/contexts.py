"""A word in contexts: states of its occurrences in a plane, by sense or else by cluster.

Texts are read a few at a time, so that others' questions are answered in between; states are kept,
so that another layer or method needs no pass of the model.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from starlette.concurrency import run_in_threadpool

from bertology.annotated.concordance import (
    ConcordanceLine,
    concordance,
    concordance_states,
    sense_concordance,
    sense_words,
)
from bertology.annotated.sense_planes import available_methods, plane_of, unit_states
from bertology.arrays import Floats
from bertology.data.corpus import Corpus
from bertology.errors import BertologyError, DataError
from bertology.server.reading import ModelReader
from bertology.server.views import ContextsQuestion

BUNDLED = "grammar-senses"
"""The corpus whose sentences are taken where none are given."""
MOST_POINTS = 2000  # texts, and occurrences in them
LONGEST = 1000  # characters of a text
ALL_CHARACTERS = 300_000
_LEAST = 3  # occurrences that make a plane
_AT_ONCE = 64  # occurrences for which the model is busy before others have their turn
_ROOM = 96 * 2**20  # bytes of states that are kept
_PLANES = 2 * 2**20  # bytes of planes and clusters that are kept
_UNKNOWN = "sense not given"

Key = TypeVar("Key", bound=Hashable)
Asked = tuple[str, tuple[tuple[str, str | None], ...], str]


@dataclass(frozen=True)
class Read:
    """The occurrences that the model has states of, and what is told of them."""

    occurrences: Sequence[ConcordanceLine]
    states: NDArray[np.float16]  # (layers + 1, occurrences, dimensions)
    has_senses: bool
    note: str


class _Recent(Generic[Key]):
    """The last arrays that were made, as many as there is room for."""

    def __init__(self, room: int) -> None:
        self._room, self._made = room, OrderedDict[Key, tuple[object, int]]()

    def get(self, key: Key) -> object | None:
        if key not in self._made:
            return None
        self._made.move_to_end(key)
        return self._made[key][0]

    def keep(self, key: Key, value: object, size: int) -> None:
        self._made[key] = (value, size)
        while sum(n for _, n in self._made.values()) > self._room and len(self._made) > 1:
            self._made.popitem(last=False)


def about_contexts() -> dict[str, object]:
    """What the page offers, and how much it may ask for."""
    return {
        "methods": list(available_methods()),
        "words": sense_words(_bundled()),
        "most": MOST_POINTS,
        "longest": LONGEST,
    }


@cache
def _bundled() -> Corpus:
    from bertology.data.loading import load_corpus

    return load_corpus(BUNDLED)


class WordContexts:
    """Planes of one model. Used on the event loop, so that what is kept needs no lock."""

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self._read: _Recent[Asked] = _Recent(_ROOM)
        self._made: _Recent[tuple[object, ...]] = _Recent(_PLANES)

    async def of(
        self, question: ContextsQuestion, *, is_abandoned: Callable[[], Awaitable[bool]]
    ) -> dict[str, object] | None:
        """Places, groups and texts of all points; None if nobody waits for them any more."""
        layers = self._reader.encoder.shape.layers
        if question.layer >= layers:
            raise BertologyError(
                f"There is no layer {question.layer}: the model has {layers}, 0 to {layers - 1}; "
                "-1 are the embeddings."
            )
        read = await self._states(question, is_abandoned)
        if read is None:
            return None
        states = read.states[question.layer + 1]
        asked = self._asked(question)
        place = partial(plane_of, states, question.method)
        at = await self._kept((asked, question.layer, question.method), place)
        if read.has_senses:
            groups = [one.sense or _UNKNOWN for one in read.occurrences]
        else:
            cluster = partial(_clusters, states, question.clusters)
            found = await self._kept((asked, question.layer, question.clusters), cluster)
            groups = [f"cluster {int(n) + 1}" for n in found]
        return {
            "kind": "sense" if read.has_senses else "cluster",
            "note": read.note,
            "groups": groups,
            "x": at[:, 0].tolist(),
            "y": at[:, 1].tolist(),
            "texts": [one.text for one in read.occurrences],
            "starts": [one.start for one in read.occurrences],
            "ends": [one.end for one in read.occurrences],
        }

    async def _kept(self, key: tuple[object, ...], make: Callable[[], Floats]) -> Floats:
        kept = self._made.get(key)
        if isinstance(kept, np.ndarray):
            return kept
        found: Floats = await run_in_threadpool(make)
        self._made.keep(key, found, found.nbytes)
        return found

    def _asked(self, question: ContextsQuestion) -> Asked:
        return question.word, tuple((c.text, c.sense) for c in question.contexts), question.pooling

    async def _states(
        self, question: ContextsQuestion, is_abandoned: Callable[[], Awaitable[bool]]
    ) -> Read | None:
        asked = self._asked(question)
        kept = self._read.get(asked)
        if isinstance(kept, Read):
            return kept
        occurrences, told = await run_in_threadpool(_occurrences, question)
        encoder, states, there = self._reader.encoder, [], []
        for start in range(0, len(occurrences), _AT_ONCE):
            if await is_abandoned():
                return None
            some = occurrences[start : start + _AT_ONCE]
            work = partial(concordance_states, encoder, some, pooling=question.pooling)
            found = await asyncio.wrap_future(self._reader.worker.begin(work))
            states.append(found[0])
            there.append(found[1])
        seen = np.concatenate(there)
        own = [one for one, is_seen in zip(occurrences, seen, strict=True) if is_seen]
        if len(own) < _LEAST:
            raise DataError(
                f"The model reads {len(own)} of the occurrences; a plane needs {_LEAST}.",
                hint="Give shorter texts: the rest lies beyond what the model takes.",
            )
        if len(own) < len(occurrences):
            told.append(f"{len(occurrences) - len(own)} lie beyond what the model reads of a text.")
        kept_states = np.concatenate(states, axis=1)[:, seen]
        if not np.isfinite(kept_states).all():
            raise DataError(f"States of {encoder.name!r} are not finite, so they have no place.")
        senses = any(one.sense for one in own)
        read = Read(own, kept_states, senses, " ".join(told))
        self._read.keep(asked, read, kept_states.nbytes)
        return read


def _occurrences(question: ContextsQuestion) -> tuple[list[ConcordanceLine], list[str]]:
    """Where the word is in the given texts, or else in the bundled ones; and this in words."""
    word = question.word.strip()
    if not question.contexts:
        found = sense_concordance(_bundled(), word)
        if not found:
            words = sense_words(_bundled())
            raise DataError(
                f"The bundled sentences have no senses of {word!r}.",
                hint=f"Give texts with it, one in each line, or choose one of: {', '.join(words)}.",
            )
        return _checked(found), [f"{len(found):,} occurrences in bundled sentences ({BUNDLED})."]
    texts = [context.text for context in question.contexts]
    _check(texts)
    senses = [(context.sense or "").strip() for context in question.contexts]
    found = concordance(texts, word.split(","), senses)
    having = {one.text for one in found}
    if not found:
        raise DataError(
            f"None of the given texts has the word {word!r}.",
            hint="Other forms of it are added with commas: bank, banks.",
        )
    some = sum(text in having for text in texts)
    told = [f"{len(found):,} occurrences in {some:,} of {len(texts):,} texts."]
    return _checked(found), told


def _check(texts: Sequence[str]) -> None:
    if len(texts) > MOST_POINTS:
        raise DataError(f"There are {len(texts):,} texts; at most {MOST_POINTS:,} are taken.")
    for number, text in enumerate(texts, 1):
        if len(text) > LONGEST:
            raise DataError(
                f"Text {number} has {len(text):,} characters; at most {LONGEST:,} are taken.",
                hint="Give one sentence in each line.",
            )
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise DataError(f"Text {number} contains half of a surrogate pair: no character.")
    total = sum(map(len, texts))
    if total > ALL_CHARACTERS:
        raise DataError(
            f"The texts have {total:,} characters; at most {ALL_CHARACTERS:,} are taken.",
            hint="Give fewer or shorter texts.",
        )


def _checked(found: list[ConcordanceLine]) -> list[ConcordanceLine]:
    if len(found) > MOST_POINTS:
        raise DataError(
            f"The word occurs {len(found):,} times; at most {MOST_POINTS:,} are shown.",
            hint="Give fewer texts.",
        )
    if len(found) < _LEAST:
        times = "once" if len(found) == 1 else "twice"
        raise DataError(
            f"The word occurs only {times}; a plane needs {_LEAST} occurrences.",
            hint="Give more texts with it.",
        )
    return found


def _clusters(states: NDArray[np.float16], wanted: int) -> Floats:
    """The number of each state's cluster by k-means on directions, the largest cluster first."""
    from sklearn.cluster import KMeans

    unit = unit_states(states)
    distinct = len(np.unique(unit, axis=0))
    made = KMeans(min(wanted, distinct), n_init=5, random_state=0).fit_predict(unit)
    order = np.argsort(-np.bincount(made), kind="stable")
    return np.asarray(np.argsort(order)[made], np.float64)

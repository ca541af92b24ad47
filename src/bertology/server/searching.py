"""Which heads do this here? All heads in the order of a relation, a pattern or a likeness."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Field
from bertology.errors import UnknownNameError
from bertology.server.patterns import PATTERNS, Ranking
from bertology.server.reading import Reader
from bertology.server.relations import RELATIONS, Annotated, tagged
from bertology.server.task_examples import TaskExamples
from bertology.server.views import SearchQuestion
from bertology.server.working import Kept

__all__ = ["Searching", "offered"]

Maps = NDArray[np.floating[Any]]
Texts = tuple[str, str | None]
_KEPT = 64  # tagged texts


def offered() -> dict[str, list[dict[str, str]]]:
    """What can be looked for, for the page's menus."""
    return {
        "relations": [{"name": n, "title": r.title} for n, r in RELATIONS.items()],
        "patterns": [{"name": n, "title": p.title} for n, p in PATTERNS.items()],
    }


class Searching:
    """Searches among the heads of one model."""

    def __init__(self, reader: Reader, examples: TaskExamples) -> None:
        self._reader, self._examples = reader, examples
        self._tagged: Kept[Texts, Annotated] = Kept(
            reader.worker, lambda texts: tagged(*texts), size=lambda _: 1, room=_KEPT
        )

    def answer(self, question: SearchQuestion) -> dict[str, Any]:
        """All heads, the best first."""
        query = question.query
        if query.kind == "similar":
            self._reader.check_head(query.layer, query.head)
        elif query.name not in (known := RELATIONS if query.kind == "relation" else PATTERNS):
            raise UnknownNameError(query.kind, query.name, known)
        reading = self._reader.read(question.view.shown)
        maps = self._reader.maps(reading)
        tokenizer = self._reader.encoder.tokenizer
        if query.kind == "similar":
            found = _similar(maps, query.layer, query.head)
        elif query.kind == "pattern":
            found = PATTERNS[query.name](reading.sentence, maps, tokenizer)
        else:
            known_words = self._annotated(question.view.text, question.view.pair)
            relation = RELATIONS[query.name]
            found = relation.rank(reading.sentence, maps, known_words, tokenizer)
        return found.as_json()

    def _annotated(self, text: str, pair: str | None) -> Annotated:
        example = self._examples.find(text, pair)
        about = {} if example is None else example.annotations
        whole = all(f in about for f in (Field.POS, Field.HEADS, Field.RELATIONS))
        if example is not None and whole and (pair is None or Field.OFFSETS in about):
            return Annotated(example, "the corpus's own annotation")
        return self._tagged.get((text, pair))


def _similar(maps: Maps, layer: int, head: int) -> Ranking:
    """The cosine between maps; the head itself comes first, with 1."""
    flat = maps.reshape(*maps.shape[:2], -1)
    own = flat[layer, head]
    lengths = np.linalg.norm(flat, axis=-1) * np.linalg.norm(own)
    cosines = np.divide(flat @ own, lengths, out=np.full_like(lengths, np.nan), where=lengths > 0)
    cosines[layer, head] = 1.0
    return Ranking(
        np.minimum(cosines, 1.0), f"maps like that of layer {layer}, head {head}", "cosine"
    )

"""The search for heads: all heads, sorted by a relation, a pattern or a similarity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from bertology.data.corpus import Field
from bertology.errors import UnknownNameError
from bertology.server.patterns import PATTERNS
from bertology.server.rankings import Ranking
from bertology.server.reading import ModelReader
from bertology.server.relations import RELATIONS, AnnotatedText, tagged
from bertology.server.shown import Shown
from bertology.server.task_examples import TaskExamples
from bertology.server.working import Kept

Known = TypeVar("Known")
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

    def __init__(self, reader: ModelReader, examples: TaskExamples) -> None:
        self._reader, self._examples = reader, examples
        self._tagged: Kept[Texts, AnnotatedText] = Kept(
            reader.worker, lambda texts: tagged(*texts), size=lambda _: 1, room=_KEPT
        )

    def prepare(self, text: str, pair: str | None) -> None:
        """Start to tag a text, without waiting: the tagger is loaded when it is first needed."""
        self._tagged.begin((text, pair))

    def relation(self, shown: Shown, name: str) -> dict[str, object]:
        """Heads that attend along a relation between words, the best first."""
        relation = _known("relation", name, RELATIONS)
        reading = self._reader.read(shown)
        maps, tokenizer = self._reader.maps(reading), self._reader.encoder.tokenizer
        known = self._annotated(shown.text, shown.pair)
        return relation.rank(reading.sentence, maps, known, tokenizer).as_json()

    def pattern(self, shown: Shown, name: str) -> dict[str, object]:
        """Heads that show a pattern which does not depend on words, the best first."""
        pattern = _known("pattern", name, PATTERNS)
        reading = self._reader.read(shown)
        tokenizer = self._reader.encoder.tokenizer
        return pattern(reading.sentence, self._reader.maps(reading), tokenizer).as_json()

    def similar(self, shown: Shown, layer: int, head: int) -> dict[str, object]:
        """Heads whose maps are like that of one head; the head itself comes first, with 1."""
        from bertology.model.reducers.map_scores import similarity_to

        self._reader.check_head(layer, head)
        maps = self._reader.maps(self._reader.read(shown))
        found = f"maps similar to that of layer {layer}, head {head}"
        return Ranking(similarity_to(maps, layer, head), found, "cosine").as_json()

    def _annotated(self, text: str, pair: str | None) -> AnnotatedText:
        found = self._examples.find(text, pair)
        example = None if found is None else found[1]
        about = {} if example is None else example.annotations
        whole = all(f in about for f in (Field.POS, Field.HEADS, Field.RELATIONS))
        if example is not None and whole and (pair is None or Field.OFFSETS in about):
            return AnnotatedText(example, "the corpus's own annotation")
        return self._tagged.get((text, pair))


def _known(kind: str, name: str, among: Mapping[str, Known]) -> Known:
    if name not in among:
        raise UnknownNameError(kind, name, among)
    return among[name]

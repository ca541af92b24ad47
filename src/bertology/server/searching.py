"""The search for heads: all heads, sorted by a relation, a pattern or a similarity."""

from __future__ import annotations

from bertology.data.corpus import Field
from bertology.errors import UnknownNameError
from bertology.server.patterns import PATTERNS
from bertology.server.rankings import Maps, Ranking
from bertology.server.reading import ModelReader
from bertology.server.relations import RELATIONS, AnnotatedText, tagged
from bertology.server.task_examples import TaskExamples
from bertology.server.views import SearchQuestion
from bertology.server.working import Kept

__all__ = ["Searching", "offered"]

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

    def answer(self, question: SearchQuestion) -> dict[str, object]:
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

    def _annotated(self, text: str, pair: str | None) -> AnnotatedText:
        example = self._examples.find(text, pair)
        about = {} if example is None else example.annotations
        whole = all(f in about for f in (Field.POS, Field.HEADS, Field.RELATIONS))
        if example is not None and whole and (pair is None or Field.OFFSETS in about):
            return AnnotatedText(example, "the corpus's own annotation")
        return self._tagged.get((text, pair))


def _similar(maps: Maps, layer: int, head: int) -> Ranking:
    """Heads with maps similar to that of one head; the head itself comes first, with 1."""
    from bertology.model.reducers.map_scores import similarity_to

    found = f"maps similar to that of layer {layer}, head {head}"
    return Ranking(similarity_to(maps, layer, head), found, "cosine")

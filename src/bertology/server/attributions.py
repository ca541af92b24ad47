"""The classifier's answer, and how much each word matters to it by the method that is chosen."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bertology.errors import BertologyError, DataError, ModelError
from bertology.model.attributions.method_names import METHODS, TITLES
from bertology.server.reading import ModelReader
from bertology.server.sentences import Sentence, encode
from bertology.server.shown import Shown
from bertology.server.working import Kept

if TYPE_CHECKING:
    from bertology.model.attributions.units import Units

MOST_TOKENS = 128
"""Methods that need many passes are not asked of longer texts: all users share one model."""
_MANY_PASSES = ("integrated-gradients", "left-out")
_ROOM = 2 * 2**20  # bytes of answers that are kept
_SIGNED = ("gradient-x-input", "integrated-gradients", "left-out")

Asked = tuple[Shown, str]


class Attributions:
    """Answers of one classifier, explained; the last explanations are kept."""

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader
        self._kept: Kept[Asked, dict[str, object]] = Kept(
            reader.worker, self._of, size=lambda found: len(repr(found)), room=_ROOM
        )

    @cached_property
    def about(self) -> list[dict[str, object]]:
        """The methods that the page offers; none where the model is no classifier of this kind."""
        from bertology.model.attributions.answering import check_classifier
        from bertology.model.attributions.methods import methods_of

        encoder = self._reader.encoder
        try:
            check_classifier(encoder)
        except BertologyError:
            return []
        if self._reader.several_labels:
            return []
        return [
            {
                "name": name,
                "title": TITLES[name],
                "about": METHODS[name],
                "signed": name in _SIGNED,
            }
            for name in methods_of(encoder)
        ]

    def of(self, shown: Shown, method: str) -> dict[str, object]:
        """The answer to the shown text, and the relevance of each word; waits for it."""
        from bertology.model.attributions.answering import check_classifier

        check_classifier(self._reader.encoder)
        return self._kept.get((shown, method))

    def _of(self, asked: Asked) -> dict[str, object]:
        """On the worker's thread."""
        from bertology.model.attributions.methods import attribute

        shown, method = asked
        encoder, labels = self._reader.encoder, self._reader.labels or ()
        sentence, batch = encode(encoder, shown)
        if method in _MANY_PASSES and len(sentence) > MOST_TOKENS:
            raise DataError(
                f"The text has {len(sentence)} tokens. This method needs many passes and is "
                f"offered for at most {MOST_TOKENS}.",
                hint="Choose another method, or a shorter text.",
            )
        with encoder.doing(*self._reader.interventions(shown.changes)):
            found = attribute(encoder, batch, (method,))
        shares = found.logits[0].softmax(-1)
        relevance = found.relevance[method][0]
        if not (shares.isfinite().all() and relevance.isfinite().all()):
            raise ModelError(f"{encoder.name!r} answers with numbers that are not finite.")
        answer = int(found.answers[0])
        return {
            "method": method,
            "answer": labels[answer],
            "probability": float(shares[answer]),
            "words": _words(sentence, found.units, relevance.tolist()),
        }


def _words(sentence: Sentence, units: Units, relevance: list[float]) -> list[dict[str, object]]:
    """Words in their order and of which text (0 or 1); special tokens have no relevance."""
    found: list[dict[str, object]] = []
    pieces_of: dict[int, list[int]] = {}
    for place, unit in enumerate(units.ids[0].tolist()):
        if place >= len(sentence):
            break
        if unit < 0:
            found.append({"word": sentence.pieces[place], "relevance": None, "special": True})
        elif unit not in pieces_of:
            pieces_of[unit] = [place]
            known = {"relevance": relevance[unit], "special": False, "side": sentence.sides[place]}
            found.append({"word": "", **known, "unit": unit})
        else:
            pieces_of[unit].append(place)
    for entry in found:
        if "unit" in entry:
            unit = int(str(entry.pop("unit")))
            entry["word"] = _spelt(sentence, units, unit, pieces_of[unit])
    return found


def _spelt(sentence: Sentence, units: Units, unit: int, pieces: list[int]) -> str:
    """As it was written; the mask where all of it is hidden."""
    if set(pieces) <= set(sentence.masked) or not units.places[0]:
        return sentence.pieces[pieces[0]]
    text, start, end = units.places[0][unit]
    return sentence.texts[text][start:end]

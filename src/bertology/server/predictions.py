"""Predictions before and after parts are switched off, as they are sent to the page."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.server.reading import ModelReader, Reading
from bertology.server.shown import Shown

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Predictions:
    """Predictions of one model, with the names of tokens and classes."""

    def __init__(self, reader: ModelReader) -> None:
        self._reader = reader

    def of(self, shown: Shown, top: int) -> dict[str, object]:
        """Predictions before and, if something is off, after. Both list the same tokens."""
        self._reader.check_answers()
        asked = [self._reader.begin(shown.intact)]
        if shown.changes:
            asked.append(self._reader.begin(shown))
        readings = [future.result() for future in asked]
        listed = [self._listed(readings, place, top) for place in range(self._places(readings[0]))]
        answers = [self._answer(reading, listed) for reading in readings]
        return {"before": answers[0], "after": answers[1] if len(answers) > 1 else None}

    def _places(self, reading: Reading) -> int:
        return 0 if reading.hidden is None else len(reading.hidden)

    def _listed(self, readings: list[Reading], place: int, top: int) -> set[int]:
        """The tokens that are among the most probable of any reading."""
        found: set[int] = set()
        for reading in readings:
            assert reading.hidden is not None
            found.update(_likeliest(reading.hidden[place], top))
        return found

    def _answer(self, reading: Reading, listed: list[set[int]]) -> dict[str, object]:
        masked = []
        for place, tokens in enumerate(listed):
            assert reading.hidden is not None
            row, position = reading.hidden[place], reading.sentence.masked[place]
            order = sorted(tokens, key=lambda token: (-row[token], token))
            # Two tokens may look the same (" the" and "the"), so the page gets the id too.
            told = [{"token": self._name(t), "probability": float(row[t]), "id": t} for t in order]
            original = reading.sentence.originals[position]
            masked.append({"position": position, "original": original, "predictions": told})
        classes = None
        if reading.classes is not None:
            pairs = zip(self._reader.labels or (), reading.classes, strict=True)
            classes = [{"label": label, "probability": share} for label, share in pairs]
        return {"masked": masked, "classes": classes, "value": reading.value}

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        # A copy: a tokenizer changes its settings while it works, so two threads cannot share it.
        own: PreTrainedTokenizerBase = copy.deepcopy(self._reader.encoder.tokenizer)
        return own

    def _name(self, token: int) -> str:
        piece = self._tokenizer.convert_ids_to_tokens(token)
        if piece is None:  # a model's vocabulary may be padded to a round size
            return f"token {token}"
        return str(self._tokenizer.decode([token])).strip() or str(piece)


def _likeliest(row: NDArray[np.float32], top: int) -> list[int]:
    top = min(top, len(row))
    found: list[int] = np.argpartition(-row, top - 1)[:top].tolist()
    return found

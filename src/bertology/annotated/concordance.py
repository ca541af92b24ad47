"""A word in its contexts: where it stands in texts, its sense where one is known, its states."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import require_offsets
from bertology.data.corpus import Example, Field
from bertology.data.words.alignment import align
from bertology.data.words.piece_words import word_spans
from bertology.errors import DataError, ParameterError

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.model.encoder import Encoder

_POOLINGS = ("mean", "first", "last")


@dataclass(frozen=True)
class ConcordanceLine:
    """Some characters of a text, and the sense they have there; empty where it is not known."""

    text: str
    start: int
    end: int
    sense: str = ""


def concordance(
    texts: Sequence[str], forms: Sequence[str], senses: Sequence[str] = ()
) -> list[ConcordanceLine]:
    """Every place where one of the forms stands as a whole word, whatever its case.

    Scripts that do not part words have no whole words: there it is found anywhere.
    """
    wanted = sorted({form.strip() for form in forms if form.strip()}, key=len, reverse=True)
    if not wanted:
        raise DataError("There is no word to look for.", hint="Give one, such as: bank")
    pattern = re.compile("|".join(map(_whole, wanted)), re.IGNORECASE)
    known = senses or [""] * len(texts)
    return [
        ConcordanceLine(text, match.start(), match.end(), sense)
        for text, sense in zip(texts, known, strict=True)
        for match in pattern.finditer(text)
    ]


def _whole(form: str) -> str:
    found = re.escape(form)
    if any(unicodedata.category(letter) == "Lo" for letter in form):
        return found
    return rf"(?<!\w){found}(?!\w)"


def sense_concordance(corpus: Sequence[Example], word: str) -> list[ConcordanceLine]:
    """The annotated occurrences of a lemma, such as `bank.n`, or of any lemma that begins so."""
    found = []
    for example in corpus:
        own = [s for s in example.get(Field.SENSES) if _is_of(str(s[2]), word)]
        if own:
            spans = word_spans(example)[0]
            found += [
                ConcordanceLine(example.text, spans[first][0], spans[end - 1][1], str(sense))
                for first, end, _, sense in own
            ]
    return found


def sense_words(corpus: Sequence[Example]) -> list[str]:
    """The words that a corpus has senses of, without their parts of speech."""
    lemmas = {str(s[2]) for example in corpus for s in example.get(Field.SENSES)}
    return sorted({lemma.rpartition(".")[0] or lemma for lemma in lemmas})


def _is_of(lemma: str, word: str) -> bool:
    return word.lower() in (lemma.lower(), lemma.lower().rpartition(".")[0])


def concordance_states(
    encoder: Encoder, lines: Sequence[ConcordanceLine], *, pooling: str = "mean"
) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
    """States (layer, line, dimension), the first layer being the embeddings; which are there.

    A word of several pieces is their mean, or the first or last of them (`pooling`). Words that lie
    beyond what the model reads of a text have no state: theirs are 0.
    """
    if pooling not in _POOLINGS:
        must = f"be one of {', '.join(_POOLINGS)}"
        raise ParameterError("pooling", "concordance_states", must, pooling)
    from bertology.model.reducers.unit_states import UnitStates

    require_offsets(encoder)
    of_text: dict[str, list[int]] = {}
    for i in sorted(range(len(lines)), key=lambda i: lines[i].start):
        of_text.setdefault(lines[i].text, []).append(i)
    texts = list(of_text)
    shape = (encoder.shape.layers + 1, len(lines), encoder.shape.hidden)
    states, there = np.zeros(shape, np.float16), np.zeros(len(lines), bool)
    for batch in encoder.batches(texts) if texts else ():
        groups: list[list[Sequence[int]]] = []
        rows: list[int] = []
        for index, encoding in zip(batch.indices, batch.encodings or (), strict=True):
            own = of_text[texts[index]]
            spans = [(lines[i].start, lines[i].end) for i in own]
            alignment = align(encoding, texts[index], words=[spans])
            pieces = [alignment.spelling(word) for word in range(len(own))]
            rows += [i for i, some in zip(own, pieces, strict=True) if some]
            groups.append([some for some in pieces if some])
        if rows:
            take = partial(_take, into=states, rows=rows)
            reducer = UnitStates(batch, groups, take, pooling=pooling)
            encoder.run(batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
            there[rows] = True
    return states, there


def _take(number: int, states: Tensor, *, into: NDArray[np.float16], rows: list[int]) -> None:
    into[number, rows] = states.half().cpu().numpy()

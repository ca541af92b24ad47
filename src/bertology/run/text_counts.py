"""How many texts were too long for the model, and how many pieces its tokenizer does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder


class TextCounts(TypedDict):
    """Two fields of the provenance. They follow from the model, the corpus and the parameters, so
    they are not part of the identity."""

    cut: dict[str, object] | None
    """How many texts were cut, of how many, and at what length; None without a limit."""
    unknown: dict[str, object] | None
    """How many pieces are the unknown token, of how many; None where no text is read."""


def text_counts(study: Study, encoder: Encoder, corpus: Corpus | None) -> TextCounts:
    """Count over the texts that the study reads."""
    from bertology.model.batch import count_pieces

    texts = [] if corpus is None else study.texts_read(corpus)
    if encoder.tokenizer is None or not texts:
        return {"cut": None, "unknown": None}
    limit = study.cut_at(encoder)
    found = count_pieces(encoder.tokenizer, texts, limit)
    cut: dict[str, object] | None = None
    if limit is not None:
        asked = limit != encoder.max_length
        cut = {"texts": found.longer, "of": len(texts), "tokens": limit, "asked": asked}
    unknown = {"pieces": found.unknown, "of": found.pieces, "token": found.unknown_token}
    return {"cut": cut, "unknown": unknown}

"""How many texts were too long for the model, for the reader of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["cut_texts"]


def cut_texts(study: Study, encoder: Encoder, corpus: Corpus | None) -> dict[str, Any] | None:
    """What `Provenance.cut` holds; it follows from what the identity stands for, and adds nothing.

    None where no text is read or where none can be too long.
    """
    from bertology.model.batch import count_longer

    if corpus is None or encoder.tokenizer is None:
        return None
    limit = study.cut_at(encoder)
    texts = [] if limit is None else study.texts_read(corpus)
    if limit is None or not texts:
        return None
    return {
        "texts": count_longer(encoder.tokenizer, texts, limit),
        "of": len(texts),
        "tokens": limit,
        "asked": limit != encoder.max_length,
    }

"""How many texts were too long for the model and were cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

__all__ = ["cut_texts"]


def cut_texts(study: Study, encoder: Encoder, corpus: Corpus | None) -> dict[str, object] | None:
    """The field `cut` of the provenance: how many texts were cut, of how many, and at what length.

    None where no text is read or where none can be too long. It is not part of the identity: it
    follows from the model, the corpus and the parameters.
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

"""Batches of a corpus together with the classes of their tokens, tagged where that is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np

from bertology.annotated.tagger import ADDED, SPACY_PIPELINE
from bertology.annotated.words import WordBatch, word_batches
from bertology.bundled import bundled_fingerprint
from bertology.data.words.classes import (
    BY_CORPUS,
    SPECIAL,
    Specials,
    TokenClass,
    class_masks,
    has_classes,
    position_groups,
)
from bertology.errors import CapabilityError

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Field
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.class_attention import Groups

TAGGING = ("auto", "gold", "bundled", "spacy", "stanza")
"""Where classes come from. "auto" is the corpus's own annotation, else the bundled tagger."""


def check_tagging(corpus: Corpus, how: str) -> None:
    """Refuse, before any work, gold annotation that is not there."""
    if how == "gold" and not has_classes(corpus.fields):
        have = ", ".join(sorted(corpus.fields))
        raise CapabilityError(
            f"Corpus {corpus.name!r} has no annotation of words, tags and subjects.",
            hint=f"It has: {have}. Have it tagged with tagger='bundled' (--tagger bundled).",
        )


def tagging_ingredients(how: str) -> dict[str, str]:
    """What decides the tags beside the corpus: the bundled tagger, or a library and its model."""
    if how in ("auto", "bundled"):
        return {"bundled_tagger": bundled_fingerprint("tagger/tagger.safetensors")}
    packages = {"spacy": ("spacy", SPACY_PIPELINE), "stanza": ("stanza",)}.get(how, ())
    found = {}
    for name in packages:
        with suppress(PackageNotFoundError):  # what is not there is refused where it is asked for
            found[name] = version(name)
    return found


def added_fields(corpus: Corpus, how: str) -> frozenset[Field]:
    """What a tagger would add to the corpus; nothing where its own annotation is used."""
    if how == "gold" or (how == "auto" and has_classes(corpus.fields)):
        return frozenset()
    return ADDED


def annotated(corpus: Corpus, how: str) -> tuple[Corpus, str]:
    """The corpus with what classes are made of, and who says so."""
    from bertology.annotated.tagger import annotate, find_tagger

    if not added_fields(corpus, how):
        return corpus, BY_CORPUS
    tagger = find_tagger("bundled" if how == "auto" else how)
    return annotate(corpus, tagger), tagger.name


@dataclass(frozen=True)
class ClassifiedBatch(WordBatch):
    """A batch with the classes of its tokens, in the order of TokenClass."""

    groups: Groups

    def only(self, chosen: Collection[int]) -> ClassifiedBatch:
        """Those of its examples whose indices are chosen, padded as before."""
        wanted = set(chosen)
        rows = [row for row, i in enumerate(self.batch.indices) if i in wanted]
        return ClassifiedBatch(
            self.batch.only(rows), [self.examples[row] for row in rows], self.groups.only(rows)
        )


def classified_batches(
    encoder: Encoder, corpus: Corpus, *, bins: int, batch_tokens: int
) -> Iterator[ClassifiedBatch]:
    """The corpus in batches; tokens in the same one of `bins` parts of a text are alike."""
    from bertology.model.reducers.class_attention import Groups

    specials, kinds = Specials.of(encoder.tokenizer), list(TokenClass)
    apart = [kinds.index(k) for k in (*SPECIAL, TokenClass.PUNCTUATION)]
    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens):
        masks = [class_masks(one, specials) for one in read.examples]
        places = [position_groups(one.encoding, bins) for one in read.examples]
        words = [
            (place >= 0) & ~np.any(mask[apart], axis=0)
            for mask, place in zip(masks, places, strict=True)
        ]
        groups = Groups.over(read.batch, masks, places, words)
        yield ClassifiedBatch(read.batch, read.examples, groups)

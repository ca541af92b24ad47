"""A made-up corpus, a tiny vocabulary, and shards of every form, made once for all tests here."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Any

import pytest

from bertology.train.pretrain.shards import Dealing, Shards, prepare
from bertology.train.pretrain.text import Document
from bertology.train.vocabulary import wordpieces

SYLLABLES = "ba ke li mo nu ra sti tor vex win zal pru".split()
NAMES = "Anna", "Bo Berg", "New Kelimo City", "Dr. Zal", "Raba"
# Few enough pieces that many words are of several.
VOCABULARY = 120
LABELS = "good", "bad", "mixed"


def _lexicon(draw: Random, size: int = 150) -> list[str]:
    words = {"".join(draw.choices(SYLLABLES, k=draw.choice((1, 1, 2, 3)))) for _ in range(size)}
    return sorted(words)


def _sentence(draw: Random, words: list[str], sizes: tuple[int, int] = (3, 9)) -> str:
    # Rank and weight as in real text: a few words are most of it.
    weights = [1 / (rank + 2) for rank in range(len(words))]
    return " ".join(draw.choices(words, weights, k=draw.randint(*sizes))).capitalize() + "."


def _with_names(draw: Random, words: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A sentence with two names in it, and where they are, in characters."""
    parts = draw.choices(words, k=draw.randint(3, 6))
    places = sorted(draw.sample(range(len(parts) + 1), 2))
    for place, name in zip(reversed(places), draw.sample(NAMES, 2), strict=True):
        parts.insert(place, name)
    begins = [0, *accumulate(len(part) + 1 for part in parts)]
    spans = [(begins[i], begins[i] + len(part)) for i, part in enumerate(parts) if part in NAMES]
    return " ".join(parts) + ".", tuple(spans)


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    """80 documents of 3 to 8 sentences."""
    draw = Random(7)
    words = _lexicon(draw)
    return [
        Document(tuple(_sentence(draw, words) for _ in range(draw.randint(3, 8))))
        for _ in range(80)
    ]


@pytest.fixture(scope="session")
def tokenizer(documents: list[Document]) -> Any:
    """WordPiece of 120 pieces; many words are of several."""
    texts = [s for d in documents for s in d.sentences] + list(NAMES)
    return wordpieces(lambda: texts, vocab_size=VOCABULARY, max_length=64)


@pytest.fixture(scope="session")
def shards(
    documents: list[Document], tokenizer: Any, tmp_path_factory: pytest.TempPathFactory
) -> Shards:
    """The documents as they are: one shard, and a tenth of them held out."""
    return prepare(
        tmp_path_factory.mktemp("plain") / "shards",
        documents,
        tokenizer,
        dealing=Dealing(held_out=0.1),
    )


@pytest.fixture(scope="session")
def entity_documents() -> list[Document]:
    """60 documents of 2 to 4 sentences, each with two names marked in it."""
    draw = Random(8)
    words = _lexicon(draw)
    made = []
    for _ in range(60):
        pairs = [_with_names(draw, words) for _ in range(draw.randint(2, 4))]
        made.append(Document(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)))
    return made


@pytest.fixture(scope="session")
def entity_shards(
    entity_documents: list[Document], tokenizer: Any, tmp_path_factory: pytest.TempPathFactory
) -> Shards:
    """Documents with entities."""
    return prepare(
        tmp_path_factory.mktemp("entities") / "shards",
        entity_documents,
        tokenizer,
        dealing=Dealing(held_out=0.1),
    )


@pytest.fixture(scope="session")
def labelled_documents() -> list[Document]:
    """60 documents of one to three sentences, each with one of three labels."""
    draw = Random(9)
    words = _lexicon(draw)
    return [
        Document(
            tuple(_sentence(draw, words) for _ in range(draw.randint(1, 3))), label=LABELS[i % 3]
        )
        for i in range(60)
    ]


@pytest.fixture(scope="session")
def labelled_shards(
    labelled_documents: list[Document], tokenizer: Any, tmp_path_factory: pytest.TempPathFactory
) -> Shards:
    """Documents with labels."""
    return prepare(
        tmp_path_factory.mktemp("labelled") / "shards",
        labelled_documents,
        tokenizer,
        dealing=Dealing(held_out=0.1),
    )


@pytest.fixture(scope="session")
def translation_documents() -> list[Document]:
    """60 pairs: a sentence, and the same with every word turned round."""
    draw = Random(10)
    words = _lexicon(draw)
    sentences = [_sentence(draw, words) for _ in range(60)]
    turned = [" ".join(w[::-1] for w in s.rstrip(".").split()) + "." for s in sentences]
    return [Document(pair) for pair in zip(sentences, turned, strict=True)]


@pytest.fixture(scope="session")
def translation_shards(
    translation_documents: list[Document], tokenizer: Any, tmp_path_factory: pytest.TempPathFactory
) -> Shards:
    """Documents of a sentence and its translation."""
    return prepare(
        tmp_path_factory.mktemp("translations") / "shards",
        translation_documents,
        tokenizer,
        dealing=Dealing(held_out=0.1),
    )

"""The documents that a recipe names: read as often as needed, counted, and hashed by content."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from bertology.errors import DataError
from bertology.plain_files import local_path
from bertology.train.pretrain.recipe import Recipe, TextSource
from bertology.train.pretrain.text import Document, find_files, read_documents

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus

_CHUNK = 1 << 20


class TextCount(TypedDict):
    """How much text was read from one source."""

    name: str
    documents: int
    sentences: int
    words: int


class Collection:
    """Iterate over it for documents; `counts` then says how much was read."""

    def __init__(self, recipe: Recipe) -> None:
        self.text: TextSource = recipe.text
        self.counts: list[TextCount] = []
        self._files = find_files(recipe.base / local_path(f) for f in self.text.files)

    def __iter__(self) -> Iterator[Document]:
        # Filled while documents are read, so that it is whole once they are.
        self.counts.clear()
        if self.text.corpus is not None:
            yield from self._counted(self.text.corpus, self._of_corpus())
        for file in self._files:
            yield from self._counted(file.name, read_documents([file]))

    def sentences(self) -> Iterator[str]:
        """All sentences, without their documents."""
        for document in self:
            yield from document.sentences

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the text itself; names and places of files do not enter."""
        digest = blake2b(digest_size=16)
        if self.text.corpus is not None:
            digest.update(f"{self._corpus.fingerprint} by {self.text.together}".encode())
        for path in self._files:
            digest.update(_content(path))
        return digest.hexdigest()

    @cached_property
    def _corpus(self) -> Corpus:
        from bertology.data.loading import load_corpus

        name = self.text.corpus or ""
        return load_corpus(name, split=self.text.split, limit=self.text.examples)

    def _counted(self, name: str, documents: Iterator[Document]) -> Iterator[Document]:
        count: TextCount = {"name": name, "documents": 0, "sentences": 0, "words": 0}
        self.counts.append(count)
        for document in documents:
            count["documents"] += 1
            count["sentences"] += len(document.sentences)
            count["words"] += sum(len(s.split()) for s in document.sentences)
            yield document

    def _of_corpus(self) -> Iterator[Document]:
        """Examples as documents: `together` of them in each, and their label if there is one."""
        names = self._corpus.task.labels if self._corpus.task else ()
        stream = iter(self._corpus)
        while group := list(islice(stream, self.text.together)):
            parts = tuple(p for example in group for p in example.texts)
            label = group[0].label if names and self.text.together == 1 else None
            yield Document(parts, label=None if label is None else names[int(label)])


def _content(path: Path) -> bytes:
    digest = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    return digest.digest()

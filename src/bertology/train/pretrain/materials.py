"""A tokenizer and shards for a recipe: made once, found again, or waited for.

With several processes (torchrun) the first one prepares the text, and the others wait until its
mark says that what they need is there. The mark is a file, since data may take longer to prepare
than connected processes wait for each other, and since machines that train together share a disk.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from bertology.drafts import draft_folder
from bertology.errors import DataError, JobError, ModelError, StoreError
from bertology.plain_files import local_path
from bertology.train.checkpoint import save_tokenizer
from bertology.train.pretrain.config import Vocabulary
from bertology.train.pretrain.recipe import Recipe, TextSource
from bertology.train.pretrain.shards import Shards, open_shards, prepare
from bertology.train.pretrain.text import Document, find_files, read_documents
from bertology.train.protocols import Tokenizer
from bertology.train.vocabulary import wordpieces

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus

TOKENIZER, SHARDS = "tokenizer", "shards"
_MARK = "made.json"
_PATIENCE = 6 * 3600  # seconds that other processes wait for the first
_PAUSE = 0.2
Tell = Callable[[str], None]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class TrainingMaterials:
    """What training needs beside the recipe."""

    tokenizer: Tokenizer
    shards: Shards


def is_first() -> bool:
    """Whether this process prepares, prints and saves; torchrun numbers them."""
    return os.environ.get("RANK", "0") == "0"


def ready_materials(
    recipe: Recipe, folder: Path, *, tell: Tell = lambda line: None
) -> TrainingMaterials:
    """The tokenizer and the shards, in `folder`: made now, or those that were made before."""
    collection = Collection(recipe)
    tokenizer = _tokenizer(recipe, collection, folder / TOKENIZER, tell)
    place, wanted = folder / SHARDS, _shards_wanted(recipe, collection, tokenizer)
    if not _is_made(place, wanted):
        if is_first():
            tell("Preparing the text …")
            prepare(
                place,
                collection,
                tokenizer,
                dealing=recipe.text.dealing(),
                sources=collection.counts,  # read last, when everything is counted
            )
            _mark(place, wanted)
        else:
            _wait_for(place, wanted)
    return TrainingMaterials(tokenizer, open_shards(place))


def find_materials(recipe: Recipe, folder: Path) -> TrainingMaterials | None:
    """What `ready_materials` would give, if nothing had to be made for it."""
    collection = Collection(recipe)
    if isinstance(recipe.vocabulary, Vocabulary):
        wanted = _vocabulary_wanted(recipe.vocabulary, collection)
        if not _is_made(folder / TOKENIZER, wanted):
            return None
    tokenizer = _tokenizer(recipe, collection, folder / TOKENIZER, lambda line: None)
    if not _is_made(folder / SHARDS, _shards_wanted(recipe, collection, tokenizer)):
        return None
    return TrainingMaterials(tokenizer, open_shards(folder / SHARDS))


def most_pieces(recipe: Recipe) -> int:
    """How large the vocabulary will be at most; one that is there is counted."""
    given = recipe.vocabulary
    return len(_existing(given, recipe.base)) if isinstance(given, str) else given.size


def _tokenizer(recipe: Recipe, collection: Collection, place: Path, tell: Tell) -> Tokenizer:
    given = recipe.vocabulary
    if isinstance(given, str):
        tokenizer = _existing(given, recipe.base)
    else:
        wanted = _vocabulary_wanted(given, collection)
        if not _is_made(place, wanted):
            if is_first():
                tell(f"Making a vocabulary of {given.size:,} pieces …")
                _make_tokenizer(given, collection, place, wanted)
            else:
                _wait_for(place, wanted)
        tokenizer = _load(str(place))
    tokenizer.model_max_length = recipe.training.model.max_length
    return tokenizer


def _vocabulary_wanted(vocabulary: Vocabulary, collection: Collection) -> str:
    return _hashed(collection.fingerprint, repr(vocabulary))


def _shards_wanted(recipe: Recipe, collection: Collection, tokenizer: Tokenizer) -> str:
    pieces = tokenizer.backend_tokenizer.to_str()
    return _hashed(collection.fingerprint, pieces, repr(recipe.text.dealing()))


def _hashed(*parts: str) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _make_tokenizer(
    vocabulary: Vocabulary, collection: Collection, place: Path, wanted: str
) -> None:
    tokenizer = wordpieces(
        collection.sentences,
        vocab_size=vocabulary.size,
        max_length=512,  # the recipe's own is set whenever it is loaded
        lowercase=vocabulary.lowercase,
        alphabet=vocabulary.alphabet,
    )
    try:
        with draft_folder(place) as draft:
            save_tokenizer(tokenizer, draft)
            shutil.rmtree(place, ignore_errors=True)
            draft.rename(place)
    except OSError as error:
        raise _unwritable(place, error) from error
    _mark(place, wanted)


def _existing(name: str, base: Path) -> Tokenizer:
    """A tokenizer beside the recipe, of a bundled model, or of one on the hub."""
    from bertology.model.loading.names import bundled_models

    beside = base / local_path(name)
    if beside.is_dir():
        return _load(str(beside))
    return _load(str(bundled_models().get(name, name)))


def _load(where: str) -> Tokenizer:
    import transformers

    try:
        tokenizer: Tokenizer = transformers.AutoTokenizer.from_pretrained(where, use_fast=True)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(
            f"No tokenizer could be loaded from {where!r}: {first}",
            hint="Give a folder with tokenizer.json, a bundled model, or a name on the hub.",
        ) from error
    if not getattr(tokenizer, "backend_tokenizer", None):
        raise ModelError(f"The tokenizer of {where!r} is not a fast one (tokenizer.json).")
    return tokenizer


def _mark(folder: Path, fingerprint: str) -> None:
    draft = folder / f".{_MARK}"
    try:
        draft.write_text(json.dumps({"fingerprint": fingerprint}) + "\n", encoding="utf-8")
        draft.replace(folder / _MARK)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _is_made(folder: Path, fingerprint: str) -> bool:
    try:
        mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(mark, dict) and mark.get("fingerprint") == fingerprint


def _wait_for(folder: Path, fingerprint: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not _is_made(folder, fingerprint):
        if time.monotonic() > end:
            raise JobError(
                f"The first process did not prepare {folder} in {_PATIENCE // 3600} hours.",
                hint="Prepare it with one process, then start all of them.",
            )
        time.sleep(_PAUSE)


def _unwritable(place: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{place} cannot be written: {error.strerror or error}.",
        hint="Choose a folder you may write to, on a disk with space.",
    )


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

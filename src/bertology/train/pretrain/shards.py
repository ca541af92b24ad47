"""Tokenized text on disk: memory-mapped shards that know their sentences and documents.

A shard is a few files beside each other:

    tokens.bin      the pieces of all documents; each document ends with [SEP]
    sentences.npy   where each sentence begins, and where the last one ends
    documents.npy   the first sentence of each document, and the number of sentences
    entities.bin    0 outside, 1 at the first piece of an entity, 2 inside one (if any were given)
    labels.npy      the label of each document (if they were given)

Documents are dealt to the shards at random, so one shard looks like the whole; shard `held-out`
is never trained on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO

import numpy as np
from numpy.typing import NDArray

from bertology.drafts import draft_folder
from bertology.errors import DataError, ParameterError, StoreError
from bertology.train.pretrain.text import Document
from bertology.train.protocols import Tokenizer

HELD_OUT = "held-out"
_META = "shards.json"
_SCHEMA = 1
_BATCH = 2000  # documents that are tokenized together
_SPECIAL = ("cls", "sep", "pad", "mask", "unk")
# numpy parses the header of a file as Python, and CPython 3.11 may fail when two threads parse at
# once ("AST constructor recursion depth mismatch"): a feed plans ahead while another batch is made.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True)
class Shard:
    """Memory-mapped arrays; `tokens[sentences[i]:sentences[i + 1]]` is a sentence."""

    tokens: NDArray[np.uint16] | NDArray[np.uint32]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]
    entities: NDArray[np.uint8] | None = None
    labels: NDArray[np.int64] | None = None

    @property
    def document_starts(self) -> NDArray[np.int64]:
        """Where each document begins, in tokens; and the end of the last one."""
        return self.sentences[self.documents]


@dataclass(frozen=True)
class Shards:
    """A folder of shards, with the content of its `shards.json`."""

    folder: Path
    names: tuple[str, ...]  # to train on
    tokens: int  # in all of them
    held_out_tokens: int
    documents: int
    sentences: int
    vocab_size: int
    kind: str  # of the numbers that tokens are kept as
    special: dict[str, int]  # cls, sep, pad, mask, unk
    continues: tuple[int, ...]  # ids of pieces that go on a word ("##s")
    labels: tuple[str, ...]  # of documents, if they have any
    fingerprint: str
    sources: tuple[dict[str, object], ...] = ()
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), compare=False)

    def open(self, name: str) -> Shard:
        """One shard, mapped and not read; `held-out` is one too."""
        with _ONE_AT_A_TIME:
            return self._open(name)

    def _open(self, name: str) -> Shard:
        try:
            shard = Shard(
                tokens=np.memmap(self.folder / f"{name}.tokens.bin", dtype=self.kind, mode="r"),
                sentences=np.load(self.folder / f"{name}.sentences.npy", allow_pickle=False),
                documents=np.load(self.folder / f"{name}.documents.npy", allow_pickle=False),
                entities=np.memmap(self.folder / f"{name}.entities.bin", dtype=np.uint8, mode="r")
                if self.entities
                else None,
                labels=np.load(self.folder / f"{name}.labels.npy", allow_pickle=False)
                if self.labels
                else None,
            )
            if len(shard.tokens) != shard.sentences[-1]:
                raise ValueError(
                    f"{shard.sentences[-1]} tokens expected, {len(shard.tokens)} there"
                )
            return shard
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(
                f"The shard {name!r} in {self.folder} is incomplete: {error}.",
                hint="Delete the folder; the same command prepares the text again.",
            ) from None

    @property
    def entities(self) -> bool:
        """Whether entities were given."""
        return (self.folder / f"{HELD_OUT}.entities.bin").is_file()


_MOST_SHARDS = 100_000  # each is a few files


@dataclass(frozen=True)
class Dealing:
    """How documents are dealt to shards."""

    held_out: float = 0.005  # share of the documents that is never trained on
    shards: int = 1  # one is in memory at a time; a few hundred million tokens each is right
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ParameterError("held_out", "Dealing", "lie between 0 and 1", self.held_out)
        if not 1 <= self.shards <= _MOST_SHARDS:
            must = f"be at least 1 and at most {_MOST_SHARDS:,}"
            raise ParameterError("shards", "Dealing", must, self.shards)

    def shard_of(self, number: int) -> str:
        """The shard of the document with this number: by chance, and always the same."""
        drawn = blake2b(f"{self.seed}:{number}".encode(), digest_size=8).digest()
        share = int.from_bytes(drawn, "big") / 2**64
        if share < self.held_out:
            return HELD_OUT
        rest = (share - self.held_out) / (1 - self.held_out)  # 1 when a draw is rounded up
        return _name(min(int(rest * self.shards), self.shards - 1))


def prepare(
    folder: str | Path,
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    *,
    dealing: Dealing | None = None,
    sources: Iterable[Mapping[str, object]] = (),
    advance: Callable[[int], None] = lambda documents: None,
) -> Shards:
    """Tokenize documents into shards, all or nothing; `sources` is kept beside them."""
    place = Path(folder)
    if place.exists() and not _may_replace(place):
        raise StoreError(
            f"{place} exists already and holds no shards.", hint="Choose another folder."
        )
    try:
        with draft_folder(place) as draft:
            with closing(_Preparation(draft, tokenizer, dealing or Dealing())) as work:
                for batch in _batches(documents):
                    work.add(batch)
                    advance(len(batch))
                work.finish([dict(source) for source in sources])
            _put_in_place(draft, place)
    except OSError as error:
        raise StoreError(
            f"The shards cannot be written to {place}: {error.strerror or error}.",
            hint="Choose a folder you may write to, on a disk with space.",
        ) from error
    return open_shards(place)


def _put_in_place(draft: Path, place: Path) -> None:
    old = draft.with_name(f"{draft.name}.old")
    try:
        if place.exists():
            place.rename(old)
        draft.rename(place)
    finally:
        if old.exists() and not place.exists():
            old.rename(place)
        shutil.rmtree(old, ignore_errors=True)


def _may_replace(place: Path) -> bool:
    """Whether nothing of somebody else's is lost."""
    return place.is_dir() and ((place / _META).is_file() or not any(place.iterdir()))


def open_shards(folder: str | Path) -> Shards:
    """The shards in a folder that `prepare` made."""
    place = Path(folder)
    try:
        meta = json.loads((place / _META).read_text(encoding="utf-8"))
        counts = np.load(place / "counts.npy", allow_pickle=False)
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{place} holds no shards: {error}.") from error
    if not isinstance(meta, dict) or meta.pop("schema", None) != _SCHEMA:
        raise StoreError(f"{place} was made by another version; prepare the text again.")
    try:
        for name in ("names", "continues", "labels", "sources"):
            meta[name] = tuple(meta[name])
        return Shards(folder=place, counts=counts, **meta)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{place / _META} is damaged; prepare the text again.") from error


class _Preparation:
    """A folder of shards while it grows."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, dealing: Dealing) -> None:
        self.folder, self.tokenizer, self.dealing = folder, tokenizer, dealing
        self.special = {name: getattr(tokenizer, f"{name}_token_id") for name in _SPECIAL}
        if missing := [name for name, value in self.special.items() if value is None]:
            raise DataError(
                f"The tokenizer has no {', '.join(missing)} token; pre-training needs it."
            )
        self.size = len(tokenizer)
        self.kind = np.dtype(np.uint16 if self.size <= 2**16 else np.uint32)
        names = [HELD_OUT, *(_name(i) for i in range(dealing.shards))]
        self.shards = {name: _Growing(folder / name) for name in names}
        self.labels: dict[str, int] = {}
        self.counts = np.zeros(self.size, np.int64)
        vocabulary = json.dumps(tokenizer.get_vocab(), sort_keys=True)
        self.digest = blake2b(vocabulary.encode(), digest_size=16)
        self.number = 0
        self.form: tuple[bool, bool] | None = None  # whether documents have entities, and labels

    def add(self, documents: list[Document]) -> None:
        for document, pieces, marks in _tokenized(documents, self.tokenizer, self.special["sep"]):
            form = (marks is not None, document.label is not None)
            if form != (self.form or form):
                raise DataError(
                    f"Document {self.number + 1} has entities or a label where others have none, "
                    "or the other way round."
                )
            self.form = form
            name = self.dealing.shard_of(self.number)
            tokens = np.concatenate([np.asarray(p, self.kind) for p in pieces])
            lengths = [len(p) for p in pieces]
            # All that a model can learn from: text cut into other sentences is other text.
            self.digest.update(repr((name, lengths, document.label)).encode() + tokens.tobytes())
            if document.label is not None:
                self.shards[name].labels.append(
                    self.labels.setdefault(document.label, len(self.labels))
                )
            self.shards[name].add(tokens, lengths)
            if marks is not None:
                flat = np.concatenate([np.asarray(m, np.uint8) for m in marks])
                self.shards[name].add_marks(flat)
                self.digest.update(flat.tobytes())
            if name != HELD_OUT:
                self.counts += np.bincount(tokens, minlength=self.size)
            self.number += 1

    def finish(self, sources: list[dict[str, object]]) -> None:
        if not self.number:
            raise DataError("There is no text to pre-train on.")
        empty = [name for name, shard in self.shards.items() if not shard.sizes]
        if empty:
            raise DataError(
                f"{self.number} documents are too few for {self.dealing.shards} shards and a "
                f"held-out share of {self.dealing.held_out:g}: {', '.join(empty)} got none.",
                hint="Give more documents (an empty line ends one), or a larger held-out share.",
            )
        self.close()
        for shard in self.shards.values():
            shard.write_bounds()
        held_out, *training = self.shards.values()
        np.save(self.folder / "counts.npy", self.counts, allow_pickle=False)
        vocabulary = self.tokenizer.get_vocab()
        meta = {
            "schema": _SCHEMA,
            "names": [name for name in self.shards if name != HELD_OUT],
            "tokens": sum(sum(s.lengths) for s in training),
            "held_out_tokens": sum(held_out.lengths),
            "documents": sum(len(s.sizes) for s in training),
            "sentences": sum(len(s.lengths) for s in training),
            "vocab_size": self.size,
            "kind": self.kind.name,
            "special": self.special,
            "continues": sorted(i for piece, i in vocabulary.items() if piece.startswith("##")),
            "labels": list(self.labels),
            "fingerprint": self.digest.hexdigest(),
            "sources": sources,
        }
        (self.folder / _META).write_text(json.dumps(meta, ensure_ascii=False) + "\n", "utf-8")

    def close(self) -> None:
        """Close all files, also after an error in the text."""
        for shard in self.shards.values():
            shard.close()


class _Growing:
    """One shard: tokens go to the disk at once, boundaries are few and stay in memory."""

    def __init__(self, stem: Path) -> None:
        self.stem = stem
        self.labels: list[int] = []
        self.lengths: list[int] = []  # of sentences
        self.sizes: list[int] = []  # of documents, in sentences
        self._files: dict[str, IO[bytes]] = {}

    def add(self, tokens: NDArray[np.generic], lengths: list[int]) -> None:
        self._append("tokens", tokens)
        self.lengths += lengths
        self.sizes.append(len(lengths))

    def add_marks(self, marks: NDArray[np.uint8]) -> None:
        self._append("entities", marks)

    def _append(self, name: str, array: NDArray[np.generic]) -> None:
        if name not in self._files:
            self._files[name] = open(f"{self.stem}.{name}.bin", "wb")  # noqa: SIM115
        self._files[name].write(array.tobytes())

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def write_bounds(self) -> None:
        arrays = {
            "sentences": np.cumsum([0, *self.lengths], dtype=np.int64),
            "documents": np.cumsum([0, *self.sizes], dtype=np.int64),
        }
        if self.labels:
            arrays["labels"] = np.asarray(self.labels, np.int64)
        for name, array in arrays.items():
            np.save(f"{self.stem}.{name}.npy", array, allow_pickle=False)


def _name(number: int) -> str:
    return f"shard-{number:05d}"


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        yield batch


def _tokenized(
    documents: list[Document], tokenizer: Tokenizer, sep: int
) -> Iterator[tuple[Document, list[list[int]], list[list[int]] | None]]:
    """Each document with the pieces, and the entity marks, of its sentences."""
    backend = tokenizer.backend_tokenizer
    lines = [s for d in documents for s in d.sentences]
    # Offsets cost a third of the time and are only of use where there are entities.
    spans = any(d.entities is not None for d in documents)
    encode = backend.encode_batch if spans else backend.encode_batch_fast
    # Text about [MASK] is text: without this it would become the mark itself.
    before, backend.encode_special_tokens = backend.encode_special_tokens, True
    try:
        encoded = iter(encode(lines, add_special_tokens=False))
    finally:
        backend.encode_special_tokens = before
    for document in documents:
        pieces: list[list[int]] = []
        marks: list[list[int]] = []
        for i in range(len(document.sentences)):
            found = next(encoded)
            if not found.ids:
                continue  # a line of marks that the normaliser drops
            pieces.append(list(found.ids))
            if document.entities is not None:
                marks.append(_marks(found.offsets, document.entities[i]))
        if not pieces:
            continue
        pieces[-1].append(sep)
        if document.entities is not None:
            marks[-1].append(0)
        yield document, pieces, marks if document.entities is not None else None


def _marks(offsets: list[tuple[int, int]], entities: Iterable[tuple[int, int]]) -> list[int]:
    """1 for the first piece of an entity, 2 for its others, 0 elsewhere; the longest one wins."""
    marks = [0] * len(offsets)
    for first, last in sorted(entities, key=lambda span: span[1] - span[0]):
        inside = [i for i, (a, b) in enumerate(offsets) if a < last and b > first]
        for i in inside:
            marks[i] = 1 if i == inside[0] else 2
    return marks

"""States of words after each layer, computed once for a model and a corpus, kept on disk.

They lie in a folder of the store, `states/<key>/`: one safetensors file for each block of examples,
with float16 numbers (layer, word, dimension), layer 0 being what enters the first layer. NetCDF, as
results have it, cannot be memory-mapped. The key says model, corpus, pooling and which words are
kept (all, if none are chosen), so every study of the same asks for the same files. A file is moved
into place when it is whole: a run that was stopped goes on with the blocks that are missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.annotated.words import require_offsets, word_batches
from bertology.data.words.piece_words import known_words
from bertology.drafts import draft_file
from bertology.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder

Halves = NDArray[np.float16]
Words = Sequence[Sequence[int]]
"""Numbers of words, counted through the texts of an example, for each example."""
POOLINGS = ("first", "last", "mean", "tokens")
"""The state of a word is that of its first or last piece, or the mean; or states of all tokens,
special ones too."""
ROOM = "BERTOLOGY_STATES_GB"  # the environment variable that gives them more room
_USUAL_ROOM = 8.0  # GB
_BLOCK = 256  # examples
_VERSION = 1


@dataclass(frozen=True)
class _Block:
    path: Path
    words: NDArray[np.int64]
    """How many states each example has."""


class States:
    """States (layer, unit, dimension) of the words or tokens of a corpus, in its order.

    `counts[i]` are those of example i. `there` says of every word of the corpus whether it has a
    state. `missing` words were asked for (all, if none were chosen) and have none: they were cut
    off, or have no piece of their own.
    """

    chosen: int | None = None
    """How many words were asked for, if not all."""

    def __init__(
        self,
        blocks: Sequence[_Block],
        there: NDArray[np.bool_],
        folder: Path,
        chosen: int | None = None,
    ) -> None:
        self._blocks, self.there, self.folder, self.chosen = blocks, there, folder, chosen
        self.counts = np.concatenate([block.words for block in blocks])

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def missing(self) -> int:
        """Words that were asked for, and have no state."""
        asked = len(self.there) if self.chosen is None else self.chosen
        return asked - int(self.there.sum())

    @property
    def examples(self) -> NDArray[np.int64]:
        """The example of each state."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def layer(self, number: int) -> Halves:
        """(units, dimension) after one layer; 0 is the input of the first."""
        from safetensors import safe_open

        found = []
        for block in self._blocks:
            with safe_open(block.path, framework="np") as file:
                found.append(file.get_slice("states")[number])
        return np.concatenate(found)

    @property
    def block_sizes(self) -> list[int]:
        """How many states each block has."""
        return [int(block.words.sum()) for block in self._blocks]

    def block(self, number: int) -> Halves:
        """(layers, units, dimension) of one block of examples."""
        from safetensors import safe_open

        with safe_open(self._blocks[number].path, framework="np") as file:
            found: Halves = file.get_tensor("states")
        return found


class SomeLayers(States):
    """The same states, of some layers only, in this order; held in memory once they were read."""

    def __init__(self, states: States, layers: Sequence[int]) -> None:
        self._states, self._layers = states, list(layers)
        self.counts, self.there = states.counts, states.there
        self.folder, self.chosen = states.folder, states.chosen
        self._held: dict[int, Halves] = {}

    @property
    def block_sizes(self) -> list[int]:
        """How many states each block has."""
        return self._states.block_sizes

    def layer(self, number: int) -> Halves:
        """(units, dimension) of one of the layers, by its place among them."""
        return self._states.layer(self._layers[number])

    def block(self, number: int) -> Halves:
        """(layers, units, dimension) of one block of examples."""
        if number not in self._held:
            self._held[number] = self._states.block(number)[self._layers]
        return self._held[number]


def room_for_states() -> float:
    """How many bytes of states there may be on disk."""
    given = os.environ.get(ROOM, str(_USUAL_ROOM))
    try:
        found = float(given)
    except ValueError:
        found = -1.0
    if not found > 0:
        raise ParameterError(ROOM, "the environment", "be a number of gigabytes above 0", given)
    return found * 1e9


def word_states(
    encoder: Encoder,
    corpus: Corpus,
    *,
    words: Words | None = None,
    pooling: str = "mean",
    folder: Path | None = None,
    batch_tokens: int = 4096,
    advance: Callable[[int], None] = lambda examples: None,
) -> States:
    """All states of a corpus, computed as far as they are not in `folder` (the store's `states`).

    With `words`, only the states of these are kept: texts are read whole all the same. Without a
    folder they lie in a temporary one as long as the result is held. `advance` is called for each
    example.
    """
    if pooling not in POOLINGS:
        raise ParameterError("pooling", "states", f"be one of {', '.join(POOLINGS)}", pooling)
    if words is not None:
        if pooling == "tokens":
            raise ParameterError("pooling", "states", "be of words, where some are chosen", pooling)
        words = [sorted(set(own)) for own in words]
    require_offsets(encoder)
    temporary = tempfile.TemporaryDirectory() if folder is None else None
    root = Path(temporary.name) if temporary is not None else Path(folder or "")
    place = root / _key(encoder, corpus, pooling, words)
    units = _count(corpus) if words is None else sum(map(len, words))
    _check_room(encoder, units, place)
    place.mkdir(parents=True, exist_ok=True)
    blocks, there = [], []
    for start in range(0, len(corpus), _BLOCK):
        path = place / f"{start:06d}.safetensors"
        some = corpus[start : start + _BLOCK]
        if path.is_file():
            advance(len(some))
        else:
            own = None if words is None else words[start : start + _BLOCK]
            _write(encoder, some, path, own, pooling, batch_tokens, advance)
        counts, present = _index(path)
        blocks.append(_Block(path, counts))
        there.append(present)
    found = States(blocks, np.concatenate(there), place, None if words is None else units)
    if temporary is not None:
        weakref.finalize(found, temporary.cleanup)
    return found


def _write(
    encoder: Encoder,
    corpus: Corpus,
    path: Path,
    words: Words | None,
    pooling: str,
    batch_tokens: int,
    advance: Callable[[int], None],
) -> None:
    """Compute one block and move it into place."""
    from safetensors.numpy import save_file

    from bertology.model.reducers.unit_states import UnitStates

    layers = encoder.shape.layers + 1
    kept: dict[int, Halves] = {}
    there: dict[int, NDArray[np.bool_]] = {}

    def take(number: int, states: Tensor, *, into: Halves) -> None:
        into[number] = states.half().cpu().numpy()

    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens):
        groups: list[list[Sequence[int]]] = []
        for at, one in zip(read.batch.indices, read.examples, strict=True):
            every: dict[int, Sequence[int]]
            if pooling == "tokens":
                size = len(one.places)
                every = {piece: (piece,) for piece in range(size)}
            else:
                size = len(one.alignment)
                asked = range(size) if words is None else words[at]
                every = {word: one.alignment.pieces_of(word) for word in asked}
            there[at] = np.zeros(size, bool)
            there[at][[unit for unit, pieces in every.items() if pieces]] = True
            groups.append([pieces for pieces in every.values() if pieces])
        sizes = [len(of) for of in groups]
        states = np.zeros((layers, sum(sizes), encoder.shape.hidden), np.float16)
        how = "first" if pooling == "tokens" else pooling
        reducer = UnitStates(read.batch, groups, partial(take, into=states), pooling=how)
        if sum(sizes):
            encoder.run(read.batch, reduce={"embeddings": reducer, "layer.*.residual": reducer})
        ends = np.cumsum([0, *sizes])
        for row, example in enumerate(read.batch.indices):
            kept[example] = states[:, ends[row] : ends[row + 1]]
        advance(len(read.batch))
    order = range(len(corpus))
    try:
        with draft_file(path) as draft:
            save_file(
                {
                    "states": np.concatenate([kept[i] for i in order], axis=1),
                    "counts": np.array([kept[i].shape[1] for i in order], np.int64),
                    "there": np.concatenate([there[i] for i in order]).astype(np.uint8),
                },
                draft,
            )
    except OSError as error:
        raise StoreError(
            f"States cannot be written to {path.parent}: {error.strerror or error}.",
            hint="Make room, or look at fewer examples with --limit.",
        ) from error


def _index(path: Path) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return file.get_tensor("counts"), file.get_tensor("there").astype(bool)
    except (SafetensorError, OSError) as error:
        raise StoreError(
            f"States in {path} cannot be read: {error}.",
            hint="Remove the file; what it held is computed again.",
        ) from error


def _key(encoder: Encoder, corpus: Corpus, pooling: str, words: Words | None) -> str:
    """Of the model, texts and words, and of those that are chosen; what else is annotated does not
    change a state.
    """
    digest = hashlib.sha256(f"{_VERSION} {_BLOCK} {pooling} {encoder.fingerprint}\n".encode())
    for example in corpus:
        row = [example.texts, known_words(example)]
        digest.update(json.dumps(row).encode())
    if words is not None:
        digest.update(f"\nwords {json.dumps(words)}".encode())
    return digest.hexdigest()[:16]


def _count(corpus: Corpus) -> int:
    return sum(len(words) for example in corpus for words in known_words(example))


def _check_room(encoder: Encoder, units: int, place: Path) -> None:
    """Refuse before any work what would take more room than is allowed."""
    needed = 2 * (encoder.shape.layers + 1) * encoder.shape.hidden * units
    others = sum(
        file.stat().st_size for file in place.parent.glob("*/*.safetensors") if file.parent != place
    )
    allowed = room_for_states()
    if (wanted := needed + others) > allowed:
        raise StoreError(
            f"States of {units:,} words would take {needed / 1e9:.1f} GB on disk"
            + (f", beside {others / 1e9:.1f} GB that are there already" if others else "")
            + f". {allowed / 1e9:.1f} GB are allowed.",
            hint="Look at fewer examples with --limit (and --train-examples, where there is a "
            "split to learn from), "
            + (f"remove {place.parent}, " if others else "")
            + f"or allow more by the environment variable {ROOM}={math.ceil(wanted / 1e9)} (GB).",
        )

"""Models by name that are loaded only when something must be measured.

What identifies a model is a hash of its weights, config and tokenizer, which loading computes. A
store keeps it beside a hash of the files that the model was loaded from, so that the next command
finds results and measurements of the same files without loading the model.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.errors import BertologyError
from bertology.model.loading.names import STEPS, locate
from bertology.results.provenance import library_versions
from bertology.run.loading import ModelSource, describe_model

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.results.store import Store

_DECIDE = ("bertology", "torch", "transformers")  # how files become a model
_APART = {STEPS, "checkpoints"}  # folders of other models, inside a model's


@dataclass
class ModelAtHand:
    """A model that can be loaded with a head; the store may know it already."""

    source: ModelSource
    head: str
    store: Store
    _encoder: Encoder | None = field(default=None, init=False)
    _read: str | None = field(default=None, init=False)  # the files that it was loaded from
    _about: dict[str, Any] | None = field(default=None, init=False)

    def encoder(self) -> Encoder:
        """The model, loaded once."""
        if self._encoder is None:
            self._read = self._key()
            self._encoder = self.source.load(self.head)
        return self._encoder

    def loaded(self, encoder: Encoder) -> ModelAtHand:
        """The same, where it was loaded just now."""
        self._read, self._encoder = self._key(), encoder
        return self

    def remember(self) -> None:
        """Let the store know it, if it was loaded: when what was asked of it is stored."""
        if self._read is not None and self._encoder and self._encoder.tokenizer is not None:
            self.store.remember_model(self._read, describe_model(self._encoder))
            self._read = None

    def known(self) -> dict[str, Any] | None:
        """What `describe_model` says of it, without loading; None where the store cannot know."""
        if self._about is None:
            key = self._key()
            found = None if key is None else self.store.known_model(key)
            self._about = None if found is None else {**found, "name": self.source.name}
        return self._about

    def about(self) -> dict[str, Any]:
        """What `describe_model` says of it; it is loaded where the store cannot know."""
        found = self.known()
        if found is None:
            encoder = self.encoder()
            encoder.require_tokenizer()
            found = self._about = describe_model(encoder)
        return found

    def beside(self, name: str) -> ModelAtHand:
        """Another model, loaded as this one is."""
        return ModelAtHand(replace(self.source, name=name, num_labels=None), self.head, self.store)

    def _key(self) -> str | None:
        """A hash of the files and of how they are read; None for what is not a local folder."""
        if self.source.trust_remote_code:
            return None  # code may come from anywhere
        try:
            where = locate(self.source.name)
        except BertologyError:
            return None  # loading says why
        folders = [Path(place) for place in (where.source, where.home) if place is not None]
        if not all(folder.is_dir() for folder in folders):
            return None
        files = [file for folder in folders for file in _files(folder)]
        files += [] if where.weights is None else [where.weights]
        versions = library_versions()
        asked = {
            "files": [(file.name, _digest(file, *_state(file))) for file in files],
            "head": self.head,
            "num_labels": self.source.num_labels,
            "dtype": self.source.dtype,
            "pickle": self.source.allow_pickle,
            "versions": [versions.get(name) for name in _DECIDE],
        }
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    inside = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in inside if not _APART & {*path.relative_to(folder).parts})


def _state(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1024)
def _digest(file: Path, size: int, changed: int) -> str:
    """The hash of a file's contents; read once in a process as long as it does not change."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

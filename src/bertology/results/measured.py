"""What was measured and stays: the parts of a study, from which results are concluded.

    <url>/measured/<key>/<part>.nc       one for each part, compressed
                         started.json    while the work is under way
                         measured.json   when it is done: what was measured, its parts, checksums

A part is written whole or not at all, and `measured.json` after all parts. So what a killed process
leaves is an unfinished measurement, and the next run measures only what is missing. The key is a
hash of all that can change the parts: study and `measured_version`, measuring parameters, model,
corpus, ingredients. What only concludes, such as the level of intervals, is not part of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bertology.errors import BertologyError, ResultNotFoundError, StoreError
from bertology.plain_files import parse_json
from bertology.results.formats import arrays_from_bytes, arrays_to_bytes
from bertology.results.provenance import IDENTITY_LENGTH, Provenance, identity_of
from bertology.results.stored_record import checked_name, damaged, decoded, encoded, read_provenance

if TYPE_CHECKING:
    import xarray as xr

    from bertology.results.files import Files

FOLDER = "measured"
_RECORD, _STARTED = "measured.json", "started.json"
_SCHEMA_VERSION = 1
_KEY = re.compile(f"[0-9a-f]{{{IDENTITY_LENGTH}}}")
_log = logging.getLogger(__name__)


class PartLostError(BertologyError):
    """A part that was there is gone or damaged; it can be measured again."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"The part {part!r} is lost: {why}.", hint="Run the study again.")


@dataclass(frozen=True)
class StoredPart:
    """A part's name, and what its file must be."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Measurement:
    """The record of a finished measurement: all that concluding needs beside the parts."""

    key: str
    measured_version: int
    parameters: dict[str, Any]
    """Those that measuring may read; not those that only conclude."""
    provenance: Provenance
    """Of the run that measured; its duration is that of the measuring."""
    parts: tuple[StoredPart, ...]
    kept: bool = True
    """Whether the parts are still here; dropped ones are measured again."""
    notes: tuple[str, ...] = ()
    """What the reader was told of model and corpus when it was measured."""

    @property
    def bytes(self) -> int:
        """The size of all parts."""
        return sum(part.bytes for part in self.parts)

    def named(self) -> dict[str, Any]:
        """What a result says of the measurement that it comes from."""
        p = self.provenance
        return {"key": self.key, "created": p.created, "versions": p.versions}


def measurement_key(
    measured_version: int, parameters: Mapping[str, object], provenance: Provenance
) -> str:
    """The key of what `provenance` rests on, where `parameters` are those that measuring reads."""
    p = provenance
    meant = {name: other["fingerprint"] for name, other in p.others.items()}
    return identity_of(
        f"{p.study} measured",
        measured_version,
        parameters={**parameters, **meant, **p.ingredients},
        model=p.model["fingerprint"],
        corpus=None if p.corpus is None else p.corpus["fingerprint"],
    )


@dataclass(frozen=True)
class Stored:
    """What lies in the folder of a measurement, finished or not."""

    key: str
    study: str
    bytes: int
    parts: int
    record: Measurement | None = None
    """None while it is unfinished."""


@dataclass(frozen=True)
class Measurements:
    """The measurements of a store."""

    files: Files
    url: str
    _told: set[str] = field(default_factory=set)

    # Parts -----------------------------------------------------------------------------------

    def save_part(self, key: str, part: str, arrays: xr.Dataset) -> None:
        """Save a finished part."""
        path = _path(key, part)
        self.files.write(path, encoded(path, _compressed, arrays))

    def load_part(self, key: str, part: str) -> xr.Dataset:
        """A part that was saved."""
        path = _path(key, part)
        try:
            data = self.files.read(path)
        except FileNotFoundError:
            raise ResultNotFoundError(
                f"The store {self.url!r} has no part {part!r} of {key}.",
                hint="Run the study again: only what is missing is measured.",
            ) from None
        return decoded(path, arrays_from_bytes, data)

    def has_part(self, key: str, part: str) -> bool:
        """Whether a part was saved."""
        return self.files.exists(_path(key, part))

    def parts(self, key: str) -> list[str]:
        """Names of the parts that were saved."""
        names = self.files.names(_folder(key))
        return [name.removesuffix(".nc") for name in names if name.endswith(".nc")]

    def sound_parts(self, key: str, parts: Sequence[str]) -> list[str]:
        """Those of the parts that are here as they were written; damaged ones are removed."""
        record = self.find(key)
        known = {} if record is None else {part.name: part for part in record.parts}
        there = set(self.parts(key))
        return [p for p in parts if p in there and self._is_sound(key, p, known.get(p))]

    def _is_sound(self, key: str, part: str, written: StoredPart | None) -> bool:
        path = _path(key, part)
        try:
            data = self.files.read(path)
        except FileNotFoundError:
            return False
        try:
            if written is not None and hashlib.sha256(data).hexdigest() != written.sha256:
                raise damaged(path, "its contents are not what was written")
            if written is None:
                decoded(path, arrays_from_bytes, data)
        except StoreError as error:
            _log.warning("%s It is removed, and measured again when it is needed.", error.problem)
            self.files.remove(path)
            return False
        return True

    # Work under way --------------------------------------------------------------------------

    def begin(self, key: str, study: str, *, force: bool) -> None:
        """Mark the work as begun. It fails before any work if the store is read-only.

        With `force`, what was measured before is measured again; but what an interrupted run with
        `force` has measured is kept, so that the same command continues it.
        """
        before = self._json(f"{_folder(key)}/{_STARTED}") or {}
        if force and not before.get("forced"):
            self.files.remove(_folder(key))
        mark = {"study": study, "forced": force}
        self.files.write(f"{_folder(key)}/{_STARTED}", json.dumps(mark).encode())

    def finish(self, measurement: Measurement) -> Measurement:
        """Write the record of a measurement, with the checksums of all its parts."""
        parts = []
        for part in measurement.parts:
            try:
                data = self.files.read(_path(measurement.key, part.name))
            except FileNotFoundError:
                raise PartLostError(part.name, "its file is gone") from None
            digest = hashlib.sha256(data).hexdigest()
            parts.append(StoredPart(part.name, len(data), digest))
        done = replace(measurement, parts=tuple(parts))
        self._write(done)
        return done

    def end(self, key: str) -> None:
        """Take the mark of `begin` away, when a result is stored."""
        self.files.remove(f"{_folder(key)}/{_STARTED}")

    def drop(self, key: str) -> None:
        """Remove the parts. The record stays, so that results still find what they come from."""
        record = self.find(key)
        if record is None:
            self.files.remove(_folder(key))
            return
        # First the record: what is said to be here must be here, whenever this is stopped.
        self._write(replace(record, kept=False))
        for part in self.parts(key):
            self.files.remove(_path(key, part))
        self.end(key)

    # Records ---------------------------------------------------------------------------------

    def find(self, key: str) -> Measurement | None:
        """The record of a finished measurement; None where there is none that can be read."""
        path = f"{_folder(key)}/{_RECORD}"
        found = self._json(path)
        if found is None:
            return None
        try:
            return _read(key, found, path)
        except (StoreError, KeyError, TypeError, ValueError) as error:
            if path not in self._told:
                self._told.add(path)
                _log.warning("%s cannot be read (%s); its parts are looked at anew.", path, error)
            return None

    def records(self) -> Iterator[Measurement]:
        """All finished measurements, by key."""
        found = (self.find(key) for key in self._keys())
        return (record for record in found if record is not None)

    def on_disk(self) -> Iterator[Stored]:
        """What each measurement takes, unfinished ones too."""
        for key in self._keys():
            record = self.find(key)
            mark = self._json(f"{_folder(key)}/{_STARTED}") or {}
            study = str(mark.get("study", "")) if record is None else record.provenance.study
            names = [name for name in self.files.names(_folder(key)) if name.endswith(".nc")]
            size = sum(self.files.size(f"{_folder(key)}/{name}") for name in names)
            yield Stored(key, study, size, len(names), record)

    def _keys(self) -> list[str]:
        return [name for name in self.files.names(FOLDER) if _KEY.fullmatch(name)]

    def _json(self, path: str) -> dict[str, Any] | None:
        try:
            found = parse_json(self.files.read(path).decode(), label=path, error=StoreError)
        except (FileNotFoundError, UnicodeDecodeError, StoreError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, of: Measurement) -> None:
        record = {
            "schema_version": _SCHEMA_VERSION,
            "study": of.provenance.study,
            **asdict(of),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        self.files.write(f"{_folder(of.key)}/{_RECORD}", text.encode())


def _compressed(arrays: xr.Dataset) -> bytes:
    return arrays_to_bytes(arrays, compressed=True)


def _read(key: str, record: Mapping[str, Any], path: str) -> Measurement:
    if record.get("schema_version") != _SCHEMA_VERSION:
        raise damaged(path, f"its schema version is {record.get('schema_version')!r:.60}")
    parts = tuple(StoredPart(**part) for part in record["parts"])
    for part in parts:
        checked_name("part", part.name)
    return Measurement(
        key=key,
        measured_version=int(record["measured_version"]),
        parameters=dict(record["parameters"]),
        provenance=read_provenance(record, path),
        parts=parts,
        kept=bool(record["kept"]),
        notes=tuple(map(str, record["notes"])),
    )


def _folder(key: str) -> str:
    return f"{FOLDER}/{checked_name('measurement', key)}"


def _path(key: str, part: str) -> str:
    return f"{_folder(key)}/{checked_name('part', part)}.nc"

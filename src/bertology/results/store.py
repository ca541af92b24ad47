"""The store of results: a folder, local or behind any fsspec URL, that processes may share.

    <url>/<study>/<identity>/result.json        schema version, provenance, what files there are
                             <table>.parquet    one for each table
                             arrays.nc          the labelled arrays
                             figures/<name>.svg drawn from the data, by the code in drawn-by
    <url>/measured/<key>/<part>.nc              what was measured; see `results/measured.py`
    <url>/models/<key>.json                     fingerprints of models, by the hash of their files
    <url>/states/<key>/<block>.safetensors      states of words (`annotated.states`); local only

`result.json` is written after the data it lists: a folder without it is unfinished and is not
read. A data file is never overwritten: where another process left different bytes
under the same name, the new file gets another name, and `result.json` lists the right one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bertology.errors import ResultNotFoundError, StoreError
from bertology.results.drawing_code import drawn_by
from bertology.results.files import Files, LocalFiles, open_files
from bertology.results.formats import (
    arrays_from_bytes,
    arrays_to_bytes,
    table_from_bytes,
    table_to_bytes,
)
from bertology.results.measured import FOLDER, Measurements
from bertology.results.provenance import IDENTITY_LENGTH, Provenance
from bertology.results.result import Result, kind_of
from bertology.results.stored_record import (
    SAFE_NAME,
    SCHEMA_VERSION,
    checked_name,
    damaged,
    decoded,
    encoded,
    read_provenance,
    read_stored,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

T = TypeVar("T")
Provenances = list[Provenance]  # inside the class `list` is the method
Names = list[str]

_log = logging.getLogger(__name__)
LATEST = "latest"  # in place of an identity: the newest result
_IDENTITY = re.compile(f"[0-9a-f]{{{IDENTITY_LENGTH}}}")
# Folders beside those of studies.
_STATES, _TRAINED, _MODELS = "states", "trained", "models"
_OTHERS = {FOLDER, "unfinished", _STATES, _TRAINED, _MODELS}  # unfinished: of earlier releases
_DRAWN_BY = "figures/drawn-by"  # the code that drew the figures beside it


class Store:
    """Keeps results, and what was measured, under a URL.

    Results are addressed by their Provenance, by `study/identity`, by identity, or by any prefix
    of it that is unique, as in git. `options` go to the fsspec file system.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] = "results",
        *,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.url, self.options = os.fspath(url), dict(options or {})
        self._opened: Files | None = None
        self._measured: Measurements | None = None

    def __repr__(self) -> str:
        return f"Store({self.url!r})"

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[object, ...]]:
        return _reopen, (self.url, self.options)  # an open connection cannot be pickled

    @property
    def _files(self) -> Files:
        if self._opened is None:
            self._opened = open_files(self.url, self.options)
        return self._opened

    @property
    def measured(self) -> Measurements:
        """The measurements: parts that results are concluded from."""
        if self._measured is None:
            self._measured = Measurements(self._files, self.url)
        return self._measured

    def folder_of_states(self) -> Path | None:
        """Where states of words are kept; None where the store is not on a local disk."""
        return self._local(_STATES)

    def folder_of_trained(self) -> Path | None:
        """Where models and masks that studies made are kept; None as for states."""
        return self._local(_TRAINED)

    def _local(self, name: str) -> Path | None:
        files = self._files
        return Path(files.root) / name if isinstance(files, LocalFiles) else None

    # Results

    def save(self, result: Result) -> str:
        """Write a result and give its identity; figures are drawn after the data is written."""
        folder = f"{checked_name('study', result.provenance.study)}/{result.provenance.identity}"
        tables = [
            {
                "name": name,
                "rows": len(table),
                "columns": [str(column) for column in table.columns],
                **self._put(
                    folder, f"{checked_name('table', name)}.parquet", table_to_bytes, table
                ),
            }
            for name, table in result.tables.items()
        ]
        arrays = {
            "sizes": {str(dim): size for dim, size in result.arrays.sizes.items()},
            "variables": [str(name) for name in result.arrays.data_vars],
            **self._put(folder, "arrays.nc", arrays_to_bytes, result.arrays),
        }
        record = {
            "schema_version": SCHEMA_VERSION,
            "identity": result.identity,
            "provenance": result.provenance.as_json(),
            "tables": tables,
            "arrays": arrays,
        }
        text = json.dumps(record, indent=2, ensure_ascii=False)
        self._files.write(f"{folder}/result.json", text.encode())
        self._draw(result, folder, record)
        return result.identity

    def load(self, of: Provenance | str, result_type: type[Result] | None = None) -> Result:
        """The result, as `result_type`, or as the class that its study declares."""
        folder = self._find(of)
        record = self._record(folder)
        provenance = read_provenance(record, f"{folder}/result.json")
        kind = result_type or kind_of(provenance.study)
        tables = {e["name"]: self._table(folder, e) for e in record["tables"]}
        result = kind(provenance, tables, self._arrays(folder, record["arrays"]))
        result.drawn_before(partial(self._figure, folder, kind, record))
        return result

    def has(self, of: Provenance | str) -> bool:
        """Whether there is a finished result with exactly this identity."""
        study, identity = _address(of)
        studies = [study] if study else self._studies()
        return bool(_IDENTITY.fullmatch(identity)) and any(
            self._files.exists(f"{name}/{identity}/result.json") for name in studies
        )

    def list(self, study: str | None = None) -> Provenances:
        """Provenances of all finished results, newest first; unreadable ones are logged."""
        found = []
        for folder in self._folders(study):
            try:
                found.append(read_provenance(self._record(folder), f"{folder}/result.json"))
            except ResultNotFoundError:
                continue  # work under way
            except StoreError as error:
                _log.warning("%s", error.problem)
        return sorted(found, key=lambda p: (p.created, p.identity), reverse=True)

    def folder(self, of: Provenance | str) -> str:
        """The address of a result's folder, for messages and for other programs."""
        return f"{self.url.rstrip('/')}/{self._find(of)}"

    # Models that were loaded

    def remember_model(self, key: str, about: Mapping[str, object]) -> None:
        """Keep what is known of a model, by the hash of its files; a read-only store does not."""
        try:
            self._files.write(f"{_MODELS}/{key}.json", json.dumps(about).encode())
        except StoreError:
            _log.debug("the store keeps no models")

    def known_model(self, key: str) -> dict[str, Any] | None:
        """What was kept of a model; None where there is nothing that can be read."""
        path = f"{_MODELS}/{checked_name('model', key)}.json"
        try:
            found = json.loads(self._files.read(path))
        except (OSError, StoreError, ValueError):
            return None
        return found if isinstance(found, dict) and "fingerprint" in found else None

    # Addresses

    def _studies(self) -> Names:
        names = self._files.names()
        # A study's name has no dot; the name of a stray file has one.
        return [n for n in names if SAFE_NAME.fullmatch(n) and "." not in n and n not in _OTHERS]

    def _folders(self, study: str | None = None) -> Names:
        return [
            f"{name}/{identity}"
            for name in ([study] if study else self._studies())
            for identity in self._files.names(name)
            if _IDENTITY.fullmatch(identity)
        ]

    def _find(self, of: Provenance | str) -> str:
        """The folder of the one finished result that `of` means."""
        study, prefix = _address(of)
        if prefix == LATEST and (newest := self.list(study)[:1]):
            return newest[0].key
        folders = [f for f in self._folders(study) if f.rpartition("/")[2].startswith(prefix)]
        matching = [f for f in folders if self._files.exists(f"{f}/result.json")]
        if not prefix or not matching:
            raise ResultNotFoundError(
                f"The store {self.url!r} has no finished result {prefix!r}.",
                hint=f"See what is there with: bertology list --store {self.url}",
            )
        if len(matching) > 1:
            shown = ", ".join(matching[:8]) + (" …" if len(matching) > 8 else "")
            raise ResultNotFoundError(
                f"{prefix!r} is ambiguous in the store {self.url!r}: {shown}.",
                hint="Give more characters of the identity.",
            )
        return matching[0]

    # Files

    def _record(self, folder: str) -> dict[str, Any]:
        path = f"{folder}/result.json"
        try:
            data = self._files.read(path)
        except FileNotFoundError:
            raise ResultNotFoundError(f"There is no finished result at {folder}.") from None
        return read_stored(data, path, self.url)

    def _put(
        self, folder: str, name: str, encode: Callable[[T], bytes], thing: T
    ) -> dict[str, str | int]:
        data = encoded(f"{folder}/{name}", encode, thing)
        digest = hashlib.sha256(data).hexdigest()
        path = f"{folder}/{name}"
        if not self._files.create(path, data) and self._files.read(path) != data:
            stem, _, ending = name.rpartition(".")
            name = f"{stem}-{digest[:12]}.{ending}"
            self._files.write(f"{folder}/{name}", data)
        return {"file": name, "bytes": len(data), "sha256": digest}

    def _get(self, folder: str, entry: Mapping[str, object], decode: Callable[[bytes], T]) -> T:
        path = f"{folder}/{entry.get('file')}"
        try:
            data = self._files.read(path)
        except FileNotFoundError:
            raise damaged(path, "the file is missing") from None
        if len(data) != entry.get("bytes"):
            raise damaged(path, f"{entry.get('bytes')} bytes were written, {len(data)} are there")
        if hashlib.sha256(data).hexdigest() != entry.get("sha256"):
            raise damaged(path, "its contents are not what was written")
        return decoded(path, decode, data)

    def _table(self, folder: str, entry: Mapping[str, Any]) -> pd.DataFrame:
        table = self._get(folder, entry, table_from_bytes)
        there = [str(column) for column in table.columns]
        if there != entry.get("columns", there):
            raise damaged(f"{folder}/{entry['file']}", "it has other columns than were written")
        return table

    def _arrays(self, folder: str, entry: Mapping[str, Any]) -> xr.Dataset:
        arrays = self._get(folder, entry, arrays_from_bytes)
        there = {str(name) for name in arrays.data_vars}
        if there != set(entry.get("variables", there)):
            raise damaged(f"{folder}/{entry['file']}", "it has other arrays than were written")
        return arrays

    def _draw(self, result: Result, folder: str, record: Mapping[str, Any]) -> None:
        try:
            drawings = result.figures()
        except Exception as error:
            _log.warning("the figures of %s were not drawn: %s", folder, error)
            return
        by, there = _drawn(type(result), record), set(self._files.names(f"{folder}/figures"))
        if self._drawn_by(folder) == by and {f"{name}.svg" for name in drawings} <= there:
            return  # drawn before, by the same code of the same data
        failed = False
        for name in drawings:
            try:
                data = result.svg(name)
                self._files.write(f"{folder}/figures/{checked_name('figure', name)}.svg", data)
            except Exception as error:
                # The data is saved; a figure can be drawn from it at any time.
                _log.warning("figure %s of %s was not drawn: %s", name, folder, error)
                failed = True
        # After all figures: some of an earlier drawing must not be shown as of this one.
        if drawings and not failed:
            self._files.write(f"{folder}/{_DRAWN_BY}", by.encode())

    def _drawn_by(self, folder: str) -> str | None:
        try:
            return self._files.read(f"{folder}/{_DRAWN_BY}").decode()
        except (OSError, StoreError, UnicodeDecodeError):
            return None

    def _figure(
        self, folder: str, kind: type[Result], record: Mapping[str, Any], name: str
    ) -> bytes | None:
        """A stored figure, if the same code would draw it of the same data now."""
        try:
            if self._drawn_by(folder) != _drawn(kind, record):
                return None
            svg = self._files.read(f"{folder}/figures/{checked_name('figure', name)}.svg")
            return svg if b"<svg" in svg and svg.rstrip().endswith(b"</svg>") else None
        except (OSError, StoreError, UnicodeDecodeError):
            return None  # it is drawn from the data instead


# Of a result's provenance, what no figure shows.
_UNSEEN = ("versions", "created", "duration", "command", "measured")


def _drawn(kind: type[Result], record: Mapping[str, Any]) -> str:
    """The code that draws the figures of a result, and the data that they are drawn of."""
    about = {k: v for k, v in record["provenance"].items() if k not in _UNSEEN}
    files = [(e.get("name"), e["sha256"]) for e in (*record["tables"], record["arrays"])]
    data = json.dumps([about, files], sort_keys=True)
    return f"{drawn_by(kind)} {hashlib.sha256(data.encode()).hexdigest()[:16]}"


def _reopen(url: str, options: dict[str, object]) -> Store:
    return Store(url, options=options)


def _address(of: Provenance | str) -> tuple[str | None, str]:
    """Study, where it is known, and identity or a prefix of it."""
    if isinstance(of, Provenance):
        return checked_name("study", of.study), of.identity
    study, _, identity = of.strip().rpartition("/")
    return (checked_name("study", study) if study else None), identity.lower()

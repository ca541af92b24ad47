"""The one reader of `result.json`: every field is checked before anything uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bertology.errors import ParameterError, SchemaVersionError, StoreError
from bertology.plain_files import parse_json
from bertology.results.provenance import Provenance

SCHEMA_VERSION = 1
SAFE_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
"""What names of studies, tables and files look like; none points outside the store."""

Check = Callable[[Any], bool]
T = TypeVar("T")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(SAFE_NAME.fullmatch(value))


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _has(**fields: Check) -> Check:
    """A mapping with these fields, and perhaps others."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(name in value and check(value[name]) for name, check in fields.items())
    )


def _may_have(check: Check, **fields: Check) -> Check:
    return lambda value: (
        check(value) and all(c(value[name]) for name, c in fields.items() if name in value)
    )


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_FILE = _has(file=_is_name, bytes=_is_whole, sha256=_is_text)
_TABLE = _may_have(lambda e: _FILE(e) and _has(name=_is_name)(e), columns=_texts)
_ARRAYS = _may_have(_FILE, variables=_texts)
_SHAPE: Check = lambda v: _is_mapping(v) and all(map(_maybe(_is_whole), v.values()))  # noqa: E731
_MODEL = _may_have(
    _has(fingerprint=_is_text),
    shape=_SHAPE,
    parameters=_maybe(_is_whole),
    tuned_from=_maybe(_is_mapping),
)
_PAIRS: Check = lambda v: isinstance(v, list) and all(_texts(p) and len(p) == 2 for p in v)  # noqa: E731
_CORPUS = _may_have(
    _has(fingerprint=_is_text, name=_is_text),
    size=_maybe(_is_whole),
    drawn_from=_maybe(_is_whole),
    labels=_maybe(lambda v: not v or _has(pairs=_PAIRS, by=_is_text)(v)),
)

_PROVENANCE: dict[str, Check] = {
    "study": _is_name,
    "study_version": _is_whole,
    "parameters": _is_mapping,
    "model": _MODEL,
    "corpus": _maybe(_CORPUS),
    "others": lambda v: _is_mapping(v) and all(map(_MODEL, v.values())),
    "ingredients": _is_mapping,
    "results": _is_mapping,
    "measured": _maybe(_has(key=_is_text)),
    "over": _is_text,
    "seed": _maybe(_is_whole),
    "versions": _is_mapping,
    "created": _is_text,
    "duration": lambda v: _is_whole(v) or isinstance(v, float),
    "command": _maybe(_is_text),
    "cut": _maybe(_has(texts=_is_whole, of=_is_whole, tokens=_is_whole)),
    "unknown": _maybe(_has(pieces=_is_whole, of=_is_whole, token=_is_text)),
}
_NEEDED = ("study", "study_version", "parameters", "model")


def read_stored(data: bytes, path: str, url: str) -> dict[str, Any]:
    """The record in a `result.json`, of this version and with every field as it was written."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise damaged(path, "it is not UTF-8") from None
    try:
        record = parse_json(text, label=path, error=StoreError)
    except StoreError as error:
        raise damaged(path, error.problem.removeprefix(f"{path}, ").rstrip(".")) from None
    version = record.get("schema_version") if isinstance(record, dict) else None
    if not isinstance(record, dict) or version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        raise SchemaVersionError(
            f"{url.rstrip('/')}/{path} has schema version {version!r:.60}; this release of "
            f"bertology reads {SCHEMA_VERSION}.",
            hint="Update with: pip install -U bertology"
            if newer
            else "Run the study again to write the new version; the old folder is not changed.",
        )
    tables = record.get("tables")
    if not isinstance(tables, list) or not all(map(_TABLE, tables)):
        raise damaged(path, "its list of tables is missing or incomplete")
    if not _ARRAYS(record.get("arrays")):
        raise damaged(path, "its entry of the arrays is missing or incomplete")
    return record


def read_provenance(record: Mapping[str, Any], path: str) -> Provenance:
    """How the result was made, by its record."""
    given = record.get("provenance")
    if not isinstance(given, Mapping):
        raise damaged(path, "its provenance is missing")
    for name, is_right in _PROVENANCE.items():
        if name not in given and name in _NEEDED:
            raise damaged(path, f"{name!r} is missing in its provenance")
        if name in given and not is_right(given[name]):
            raise damaged(path, f"{name!r} of its provenance is not what was written")
    try:
        return Provenance.from_json(given)
    except ParameterError as error:
        raise damaged(path, f"its provenance is incomplete: {error.problem.rstrip('.')}") from None


def checked_name(kind: str, name: str) -> str:
    """Names become file names; none may point outside the store."""
    if not SAFE_NAME.fullmatch(name):
        raise ParameterError(
            kind, "the store", "be letters, digits, '_', '-' and '.' ('.' and '-' not first)", name
        )
    return name


def encoded(path: str, encode: Callable[[T], bytes], thing: T) -> bytes:
    """The bytes of a table or of arrays; what the format cannot hold is refused in words."""
    try:
        return encode(thing)
    except Exception as error:
        # pandas, pyarrow, xarray and h5py each refuse in their own way.
        raise StoreError(f"{path} cannot be written in its format: {error}") from error


def decoded(path: str, decode: Callable[[bytes], T], data: bytes) -> T:
    """The table or arrays that some bytes hold; bytes that hold none are refused in words."""
    try:
        return decode(data)
    except Exception as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def damaged(path: str, why: str) -> StoreError:
    """What to say of a file that is not as it was written."""
    return StoreError(
        f"{path} is damaged: {why}.",
        hint="Run the study again with the same parameters and --force to write it again; "
        "other results are not touched.",
    )

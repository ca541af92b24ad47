"""Files that users give: regular ones, in UTF-8, with JSON that can be held; refused in words.

Everything read from outside goes through here, so that a pipe does not wait for ever, and neither
a deep nesting nor a number of 5,000 digits ends in an error of Python's own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bertology.errors import BertologyError, DataError

_LONGEST_NAME, _LONGEST_PATH = 255, 4096  # bytes, on every common disk
_SHOWN = 60

Kind = type[BertologyError]


def local_path(name: str | os.PathLike[str], *, error: Kind = DataError) -> Path:
    """A path with the home folder put in; `~nobody` stays as it is, and is then not found."""
    text = os.path.expanduser(os.fspath(name))
    parts = text.split("/")
    longest = max(len(os.fsencode(part)) for part in parts)
    if longest > _LONGEST_NAME or len(os.fsencode(text)) > _LONGEST_PATH:
        raise error(
            f"{text[:_SHOWN]!r}… is too long for the name of a file: {len(text):,} characters."
        )
    if "\x00" in text:
        raise error(f"{text[:_SHOWN]!r} cannot be the name of a file: it holds a NUL character.")
    return Path(text)


def read_bytes(path: Path, *, error: Kind = DataError) -> bytes:
    """The contents of a regular file."""
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "a pipe or a device"
            raise error(f"{path} is {what}, not a file.")
        return path.read_bytes()
    except FileNotFoundError:
        raise error(f"There is no file {path}.") from None
    except OSError as problem:
        raise error(f"Cannot read {path}: {problem.strerror or problem}.") from None


def read_utf8(path: Path, *, error: Kind = DataError) -> str:
    """The text of a regular file, decoded as UTF-8 (a byte-order mark is dropped)."""
    raw = read_bytes(path, error=error)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise error(
            f"{path} is not UTF-8: byte 0x{raw[problem.start]:02x} in line {line}.",
            hint=f"Convert it, e.g.: iconv -f latin1 -t utf-8 {path.name} > {path.stem}-utf8"
            f"{path.suffix}",
        ) from None


def read_json(path: Path, *, error: Kind = DataError) -> Any:
    """The JSON document in a regular file."""
    return parse_json(read_utf8(path, error=error), label=str(path), error=error)


def parse_json(text: str, *, label: str, first_line: int = 1, error: Kind = DataError) -> Any:
    """The JSON document that a text is; `label` names the file in messages."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        line = first_line + problem.lineno - 1
        where = f"{label}, line {line}"
        raise error(f"{where}: not JSON ({problem.msg}, column {problem.colno}).") from None
    except RecursionError:
        raise error(f"{label}, line {first_line}: the JSON is nested too deep.") from None
    except ValueError:
        # The only other thing that json refuses: whole numbers that Python does not convert.
        raise error(f"{label}, line {first_line}: a number has too many digits.") from None
    if "\\ud" in text or "\\uD" in text:
        _refuse_half_characters(found, f"{label}, line {first_line}", error)
    return found


def _refuse_half_characters(found: object, where: str, error: Kind) -> None:
    """JSON can write one half of a character (`\\ud800`), which no file and no tokenizer takes."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as problem:
        half = ord(str(problem.object)[problem.start])
        raise error(
            f"{where}: the text holds half a character (\\u{half:04x}).",
            hint="Characters beyond U+FFFF are written as two such halves; one of them is missing.",
        ) from None

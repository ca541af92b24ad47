"""Reading text files: strict UTF-8, every failure with its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertology.errors import DataError

__all__ = ["numbered_lines", "read_text"]


def read_text(path: Path) -> str:
    """The whole file, decoded as UTF-8 (a byte-order mark is dropped)."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        raise DataError(
            f"{path} is not UTF-8: byte 0x{byte:02x} in line {line}.",
            hint=f"Convert it, e.g.: iconv -f latin1 -t utf-8 {path.name} > {path.stem}-utf8"
            f"{path.suffix}",
        ) from None
    if not text.strip():
        raise DataError(f"{path} is empty.", hint="A corpus needs at least one example.")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Lines with their numbers from 1, cut at \n only.

    `str.splitlines` would also cut at U+2028 and U+0085, which occur inside real sentences.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")

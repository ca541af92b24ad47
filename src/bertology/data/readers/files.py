"""Reading text files: strict UTF-8, every failure with its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, fromstring

from bertology.errors import DataError
from bertology.plain_files import read_bytes, read_utf8


def read_text(path: Path) -> str:
    """The whole file, decoded as UTF-8 (a byte-order mark is dropped)."""
    text = read_utf8(path)
    if not text.strip():
        raise DataError(f"{path} is empty.", hint="A corpus needs at least one example.")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Lines with their numbers from 1, cut at \n only.

    `str.splitlines` would also cut at U+2028 and U+0085, which occur inside real sentences.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")


def xml_root(path: Path) -> Element:
    """The root of an XML file that defines no entities of its own."""
    data = read_bytes(path)
    if b"<!ENTITY" in data or b"<!DOCTYPE" in data:
        raise DataError(f"{path.name} defines entities of its own, which are not read.")
    try:
        return fromstring(data)
    except (ParseError, ValueError, LookupError) as error:
        raise DataError(f"{path.name} is not XML: {error}.") from None

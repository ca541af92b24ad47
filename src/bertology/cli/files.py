"""Files that commands write beside what they print."""

from __future__ import annotations

from pathlib import Path

from bertology.cli.console import say
from bertology.errors import StoreError


def check_file(given: str | None, option: str) -> None:
    """Refuse a file that cannot be written, before the work and not after."""
    if given is not None and (Path(given).is_dir() or not Path(given).parent.is_dir()):
        raise StoreError(
            f"{given} cannot be written: it is a folder, or its folder does not exist.",
            hint=f"Give a file in an existing folder with {option}.",
        )


def write_file(name: str, text: str) -> None:
    """Write a file whole or not at all, and say so."""
    path = Path(name)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error
    say(f"Written: {path}")

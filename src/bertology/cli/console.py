"""What the commands print: results on standard output, problems on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bertology.drafts import write_whole
from bertology.errors import BertologyError, StoreError

if TYPE_CHECKING:
    from rich.console import Console

_SPACE = 3  # characters between two columns
_WIDTH_OF_PIPES = 140  # where there is no terminal; rich's 80 columns are too few for tables


def examples(*lines: str) -> str:
    """The end of a command's `--help`; typer needs an empty line between two lines."""
    return "\n\n".join(["Examples:", *(f"  {line}" for line in lines)])


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    told = stream.isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if told else _WIDTH_OF_PIPES)


def say(text: str = "", *, style: str | None = None) -> None:
    """Print a line without wrapping (it may be a command to copy) and without markup."""
    _console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def say_next(*commands: str) -> None:
    """Print what may be done next: commands that can be pasted, each on a line of its own."""
    say("Next:")
    for command in commands:
        say(f"  {command}")


def say_error(error: BertologyError) -> None:
    """Print what went wrong, and how to solve it."""
    console = _console(stderr=True)
    console.print("Error: ", style="bold red", end="")
    console.print(error.problem, markup=False, highlight=False, soft_wrap=True)
    if error.hint:
        console.print(error.hint, style="cyan", markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print what the reader of the result must know, on standard error."""
    _console(stderr=True).print(f"Note: {text}", style="yellow", markup=False, highlight=False)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object] | None],
    *,
    title: str | None = None,
    styles: Mapping[str, str] | None = None,
    widths: Mapping[str, int] | None = None,
) -> None:
    """Print a table; numbers are aligned to the right, and a row that is None is a line.

    `styles` has the style of cells by their text; `widths` fixes columns where there is space.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console, given = _console(), list(rows)
    fixed = widths if widths is not None and sum(widths.values()) < 0.6 * console.width else {}
    cells = [row for row in given if row is not None]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[i]) for row in cells)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(name, justify=justify, overflow="fold", width=fixed.get(name))
    looks = styles or {}
    for row in given:
        if row is None:
            table.add_section()
        else:
            texts = [text_of(value) for value in row]
            table.add_row(*(Text(text, style=looks.get(text, "")) for text in texts))
    console.print(table)


def columns_that_fit(
    columns: Sequence[str], rows: Sequence[Sequence[object]], ranks: Sequence[int]
) -> list[int]:
    """The numbers of the columns that fit into the terminal.

    Those of the highest rank are left out first, from the right; those of rank 0 never are.
    """
    widths = [
        _SPACE + max([len(name), *(len(text_of(row[i])) for row in rows)])
        for i, name in enumerate(columns)
    ]
    kept, room = list(range(len(columns))), _console().width + 1
    for rank in sorted({r for r in ranks if r}, reverse=True):
        for i in reversed([i for i in kept if ranks[i] == rank]):
            if sum(widths[k] for k in kept) <= room:
                return kept
            kept.remove(i)
    return kept


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_of(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if value != value:  # as intervals that are not known: there is no such number
        return "–"
    from bertology.results.number_text import whole_number_text

    return whole_number_text(value)


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
    try:
        write_whole(path, text)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error
    say(f"Written: {path}")

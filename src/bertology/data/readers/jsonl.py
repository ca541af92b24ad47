"""JSON Lines, and JSON files that hold a list of objects or a mapping of ids to objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.table import Row, build, grouped
from bertology.errors import DataError
from bertology.plain_files import parse_json


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The corpus in a .jsonl or .json file."""
    path, request = Path(source), Request.of(source, request)
    rows = _document(path) if path.suffix.lower() == ".json" else objects(path)
    return grouped(build(rows, _header(rows, request), request, where=path.name), path, request)


def objects(path: Path) -> list[Row]:
    """One object per line."""
    rows = []
    for number, line in numbered_lines(read_text(path)):
        if line.strip():
            found = parse_json(line, label=path.name, first_line=number)
            rows.append(Row(number, _object(found, path, number)))
    return rows


def whole(path: Path) -> Any:
    """The JSON document in a file."""
    return parse_json(read_text(path), label=path.name)


def _document(path: Path) -> list[Row]:
    text = read_text(path)
    try:
        content = parse_json(text, label=path.name)
    except DataError:
        if text.lstrip().startswith("{") and "\n{" in text.strip():
            return objects(path)  # JSON Lines in a file called .json
        raise
    if isinstance(content, list):
        return [Row(i, _object(item, path, i)) for i, item in enumerate(content, start=1)]
    if isinstance(content, dict) and all(isinstance(v, dict) for v in content.values()):
        return [Row(i, {"id": k, **v}) for i, (k, v) in enumerate(content.items(), start=1)]
    raise DataError(
        f"{path.name} is JSON, but does not hold examples.",
        hint="Give a list of objects, a mapping of ids to objects, or an object per line (.jsonl).",
    )


def _object(value: object, path: Path, line: int) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(
            f"{path.name}, line {line}: this must be an object {{…}}, not {value!r:.60}."
        )
    return value


def _header(rows: list[Row], request: Request) -> list[str]:
    keys = dict.fromkeys(key for row in rows for key in row.values)
    everywhere = set(keys).intersection(*(row.values for row in rows))
    # An annotation that only some objects have is not a field of the corpus, unless the user
    # names its column.
    wanted = {*everywhere, *request.columns.values(), "text", "text_b", "label"}
    fields = {field.value for field in Field}
    return [key for key in keys if key in wanted or key not in fields]

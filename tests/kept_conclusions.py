"""Keeps what studies and joins conclude in the tests, so that a change of the house changes none.

    python -m pytest -p kept_conclusions tests/studies --kept FOLDER     # before the change
    python -m pytest -p kept_conclusions tests/studies --kept OTHER      # after it
    python tests/kept_conclusions.py FOLDER OTHER                        # what differs

Each conclusion is a file named by its study and by a hash of its numbers, so that it does not
matter in which test or process it was made. What has no equal is compared with the nearest of its
study.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-9


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--kept", metavar="FOLDER", help="Keep all conclusions in this folder.")


def pytest_configure(config: Any) -> None:
    if (folder := config.getoption("--kept")) is None:
        return
    from bertology.studies.study import Question

    Path(folder).mkdir(parents=True, exist_ok=True)
    make = Question.result

    def kept(self: Question, provenance: Any, *given: Any, **named: Any) -> Any:
        result = make(self, provenance, *given, **named)
        keep(Path(folder), provenance.study, dict(numbers(result)))
        return result

    Question.result = kept


def numbers(result: Any) -> Iterator[tuple[str, Any]]:
    """All that was concluded, by name: columns of tables, arrays, estimates and facts."""
    for name, table in result.tables.items():
        for column, values in table.reset_index().items():
            yield f"{name} {column}", plain(values.to_numpy())
    for name, values in result.arrays.variables.items():
        yield f"array {name}", plain(values.to_numpy())
    for name, value in result.arrays.attrs.items():
        yield f"fact {name}", plain(np.asarray(value))
    for verdict in result.verdicts():
        yield f"verdict {verdict.claim.id}", np.asarray(str(verdict.outcome))


def plain(values: Any) -> Any:
    return values if values.dtype.kind in "biufU" else values.astype(str)


def keep(folder: Path, study: str, found: Mapping[str, Any]) -> None:
    digest = hashlib.sha256()
    for name, values in sorted(found.items()):
        digest.update(f"{name} {values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    path = folder / f"{study}.{digest.hexdigest()[:24]}.npz"
    if not path.exists():
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        with path.open("wb") as file:
            np.savez_compressed(file, **{"made in": np.asarray(test), **found})


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[float, str]:
    """The largest difference, relative to the larger number, and what differs most."""
    names = {*one, *other} - {"made in"}
    most = max((differs(one.get(n), other.get(n)), n) for n in names)
    return most


def differs(a: Any, b: Any) -> float:
    if a is None or b is None or a.shape != b.shape:
        return float("inf")
    if (a.dtype.kind == "U") != (b.dtype.kind == "U"):
        return float("inf")
    if a.dtype.kind == "U" or not a.size:
        return 0.0 if (a == b).all() else float("inf")
    a, b = a.astype(float), b.astype(float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0)
    return float(np.where(same, 0.0, np.nan_to_num(apart, nan=np.inf)).max())


def compare(before: Path, after: Path) -> int:
    """Prints what of `before` is not in `after`; the number of conclusions that changed."""
    names = [{p.name for p in folder.glob("*.npz")} for folder in (before, after)]
    missing, new = sorted(names[0] - names[1]), sorted(names[1] - names[0])
    near, changed = 0, 0
    for name in missing:
        study = name.partition(".")[0]
        one = dict(np.load(before / name))
        rivals = [n for n in new if n.partition(".")[0] == study]
        ways = sorted((*difference(one, dict(np.load(after / n))), n) for n in rivals)
        if ways and ways[0][0] <= TOLERANCE:
            near += 1
            continue
        changed += 1
        told = f"{ways[0][0]:.2g} in {ways[0][1]!r}" if ways else "it is not made any more"
        print(f"{study}: {told} ({one['made in']})")
    print(
        f"{len(names[0])} conclusions before, {len(names[1])} after: {len(names[0] & names[1])} "
        f"equal to the bit, {near} to {TOLERANCE:g}, {changed} others"
    )
    return changed


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1]), Path(sys.argv[2])) > 0)

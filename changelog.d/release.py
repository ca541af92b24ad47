"""Print what is not released yet; with a version, make that release of it.

python changelog.d/release.py          print what the next release will tell
python changelog.d/release.py 0.3.0    put it into CHANGELOG.md, remove its files, set the version
"""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")
OPENING = "## ["  # of a release in CHANGELOG.md, the newest first


def fragments(root: Path) -> list[Path]:
    """Every change that is not released yet."""
    found = sorted((root / "changelog.d").glob("*.md"))
    return [path for path in found if path.name != "README.md"]


def told(root: Path) -> str:
    """These changes as one section of the changelog, without its heading."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in fragments(root):
        kind = path.name.removesuffix(".md").rpartition(".")[2]
        text = path.read_text(encoding="utf-8").strip("\n")
        if kind not in by_kind:
            raise SystemExit(f"{path.name}: the kind must be one of {', '.join(KINDS)}.")
        if not text.startswith("- "):
            raise SystemExit(f"{path.name}: it must hold list items, each starting with '- '.")
        by_kind[kind].append(text)
    sections = [
        f"### {kind.title()}\n\n" + "\n".join(it) + "\n" for kind, it in by_kind.items() if it
    ]
    return "\n".join(sections)


def release(root: Path, version: str, date: datetime.date) -> None:
    """Move the changes into CHANGELOG.md and set the package's version."""
    changelog, package = root / "CHANGELOG.md", root / "src" / "bertology" / "__init__.py"
    before, opening, after = changelog.read_text(encoding="utf-8").partition(OPENING)
    section = f"{OPENING}{version}] - {date.isoformat()}\n\n{told(root)}\n"
    changelog.write_text(before + section + opening + after, encoding="utf-8")
    code = package.read_text(encoding="utf-8")
    line = f'__version__ = "{version}"'
    package.write_text(re.sub(r'^__version__ = ".*"$', line, code, flags=re.M), encoding="utf-8")
    for path in fragments(root):
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        release(ROOT, sys.argv[1], datetime.date.today())
    else:
        print(told(ROOT), end="")

"""A tiny model, a tiny corpus, and the metadata of an installed plugin, made on the spot."""

from __future__ import annotations

import json
import time
from pathlib import Path

import tiny

WORDS = "the a an cat dog sees hears old new house . ?".split()


def make_model(folder: Path) -> Path:
    """Save a tiny random BERT with two labels, and a tokenizer."""
    tiny.model("bert", "classification").save_pretrained(folder)
    tiny.tokenizer(WORDS).save_pretrained(folder)
    return folder


def make_corpus(path: Path) -> Path:
    """Write a few labelled sentences."""
    pairs = [(a, b) for a in ("old", "new") for b in ("a", "the", "an old")]
    rows = [
        {"text": f"the {a} cat sees {b} dog .", "label": i % 2} for i, (a, b) in enumerate(pairs)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def make_metadata(folder: Path) -> Path:
    """Write what an installer would leave of a package that brings the toy study and claim."""
    home = folder / "toy-1.0.dist-info"
    home.mkdir(parents=True)
    home.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    home.joinpath("entry_points.txt").write_text(
        "[bertology.studies]\ntoy-lengths = toy.study:ToyLengths\n"
        "[bertology.claims]\ntoy = toy.claims\n"
    )
    return folder


class ToyWorld:
    """A folder with a model, a corpus, a store and a diary of who measured what."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = str(make_model(folder / "model"))
        self.corpus = str(make_corpus(folder / "corpus.jsonl"))


class Diary:
    """Notes that the toy study leaves, one file for each attempt at a part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def attempts(self) -> dict[str, int]:
        """How often each part was begun."""
        names = [path.stem for path in self.folder.glob("part-*")]
        return {name: names.count(name) for name in sorted(names)}

    def wait_for(self, part: str, *, attempt: int = 0, seconds: float = 180) -> int:
        """The id of the process that is at a part, as soon as there is one."""
        end = time.monotonic() + seconds
        note = self.folder / f"{part}.{attempt}"
        while time.monotonic() < end:
            if note.is_file() and note.read_text():
                return int(note.read_text())
            time.sleep(0.02)
        raise TimeoutError(f"{part} was not begun within {seconds} s")

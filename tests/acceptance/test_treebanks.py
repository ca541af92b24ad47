"""Every treebank here, as published: the words that `conllu` counts, each with its place."""

from __future__ import annotations

import tarfile
from pathlib import Path

import conllu
import pytest

from bertology.data import Field, load_corpus
from bertology.data.readers.conllu import read


@pytest.fixture(scope="module")
def root(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all treebanks."""
    found = tmp_path_factory.mktemp("treebanks")
    for name in ("ud-english", "ud-more", "ud-pud-15-languages"):
        archive = shared / "data" / f"{name}.tar.xz"
        if not archive.is_file():
            pytest.skip(f"needs {name}.tar.xz among the shared datasets")
        with tarfile.open(archive) as tar:
            tar.extractall(found, filter="data")
    return found


def _check(path: Path) -> None:
    """Words, multiword tokens, empty nodes and text are those that the package tells."""
    text = path.read_text(encoding="utf-8")
    parsed = conllu.parse(text, fields=("id", "form"))
    corpus = read(path)
    assert len(corpus) == len(parsed)
    for example, sentence in zip(corpus, parsed, strict=True):
        words = [token for token in sentence if isinstance(token["id"], int)]
        assert example.get(Field.WORDS) == [word["form"] for word in words]
        assert example.text == sentence.metadata["text"]
        inside = {
            n
            for token in sentence
            if isinstance(token["id"], tuple) and token["id"][1] == "-"
            for n in range(token["id"][0], token["id"][2] + 1)
        }
        for word, (start, end) in zip(words, example.get(Field.OFFSETS), strict=True):
            if word["id"] not in inside:
                assert example.text[start:end] == word["form"]


def test_multiword_tokens_and_empty_nodes(root: Path) -> None:
    for name in ("UD_French-PUD/fr_pud-ud-test", "UD_Finnish-PUD/fi_pud-ud-test"):
        _check(root / "ud" / f"{name}.conllu")


@pytest.mark.slow
def test_every_treebank(root: Path) -> None:
    paths = [p for p in sorted((root / "ud").glob("*/*.conllu")) if "noreddit" not in p.name]
    assert len(paths) > 30
    for path in paths:
        _check(path)


def test_parallel_sentences(root: Path) -> None:
    corpus = load_corpus("pud", root=root, languages="de,ja,ko", limit=20)
    assert len(corpus) == 60
    items = {e.id.partition("/")[2] for e in corpus}
    assert len(items) == 20
    assert items == {e.get(Field.ITEM) for e in corpus}

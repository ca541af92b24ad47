"""Syntax heads of the bundled model on a treebank: as plain transformers count them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import bertology as bt
import planted_links
import syntax_reference as reference
from bertology.studies.attention.syntax_heads import SyntaxHeads

TREEBANK = "en_ewt-ud-dev.conllu"


def test_counts_are_those_of_plain_transformers(shared: Path, tmp_path: Path) -> None:
    with tarfile.open(shared / "data" / "ud-english.tar.xz") as archive:
        (member,) = (m for m in archive if m.name.endswith(TREEBANK))
        found = archive.extractfile(member)
        assert found is not None
        (tmp_path / TREEBANK).write_bytes(found.read())
    corpus = bt.load_corpus(str(tmp_path / TREEBANK), limit=60)
    encoder = bt.load(device="cpu")
    result = planted_links.ask(SyntaxHeads(resamples=200), encoder, corpus)
    reference.check(result, encoder, corpus)
    best = result.table("relations").set_index("relation").loc["obj"]
    assert best["share"] > 0.7
    assert best["gain"] > 0.3
